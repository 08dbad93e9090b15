/* norm_unicode.c - NFC, NFD, NFKC, NFKD with origins.
 *
 * Text is copied up to a character that may change. The segment from the starter before it to the
 * next stable character is decomposed, ordered and, for the composed forms, composed (UAX #15).
 * Origins follow the rule of Hugging Face tokenizers: every resulting character has a "change": 1
 * if it was inserted, 0 if it replaces the next original character, -n if it also swallows the n
 * characters after that. Composition adds changes. So order among marks, not identity, decides from
 * which original mark an output mark is said to come. */
#include "base/unicode/tokenizer_characters.h"

#include "text/pipeline.h"

enum { SLOT = PITH_SCRATCH_NORMAL };

typedef struct normal_form {
    size_t (*decompose)(uint32_t c, uint32_t out[PITH_DECOMPOSITION_MAX]);
    bool (*settled)(uint32_t c);
    uint32_t (*compose)(uint32_t a, uint32_t b); /* NULL: the form is not composed */
} normal_form;

typedef struct mark {
    uint32_t c;
    int32_t change;
    int32_t ccc;
} mark;

/* Stable by combining class: insertion for short runs, counting for long ones, so that a text of
 * marks stays linear. */
static void order(mark *run, size_t n, mark *spare) {
    if (n < 24) {
        for (size_t i = 1; i < n; i++) {
            mark m = run[i];
            size_t k = i;
            for (; k > 0 && run[k - 1].ccc > m.ccc; k--) run[k] = run[k - 1];
            run[k] = m;
        }
        return;
    }
    size_t at[257] = { 0 };
    for (size_t i = 0; i < n; i++) at[run[i].ccc + 1]++;
    for (int i = 0; i < 256; i++) at[i + 1] += at[i];
    for (size_t i = 0; i < n; i++) spare[at[run[i].ccc]++] = run[i];
    memcpy(run, spare, n * sizeof *run);
}

/* The composition of UAX #15: each character is joined to the last starter if the pair has a
 * composite and nothing between blocks it, which is a mark of the same or a higher class. A
 * composite swallows the characters of what it joined, hence the sum of changes. */
static size_t compose(const normal_form *form, mark *m, size_t n) {
    size_t out = 0, starter = SIZE_MAX;
    int last = -1; /* class of the last mark after the starter that did not compose */
    for (size_t i = 0; i < n; i++) {
        mark x = m[i];
        if (starter != SIZE_MAX && last < x.ccc) {
            uint32_t both = form->compose(m[starter].c, x.c);
            if (both) {
                m[starter].c = both;
                m[starter].change += x.change - 1;
                continue;
            }
        }
        if (x.ccc == 0) {
            starter = out;
            last = -1;
        } else
            last = x.ccc;
        m[out++] = x;
    }
    return out;
}

/* A segment from begin, a character boundary, to end: decomposed, its runs of marks put in the
 * order of their classes, then composed. Order is stable, as UAX #15 asks. At the end the changes
 * are followed along the original text to give every character its origin. */
static pith_status norm_unicode_segment(pith__encoding *enc, const char *text, uint32_t begin,
                                        uint32_t end, uint32_t piece_begin,
                                        const normal_form *form) {
    size_t most = (size_t)(end - begin) * PITH_DECOMPOSITION_MAX;
    if (end - begin > 64) { /* the usual expansion is small: count it where it matters */
        most = 0;
        uint32_t d[PITH_DECOMPOSITION_MAX];
        for (const char *p = text + begin; p < text + end;) {
            if (pith__encoding_stops(enc, (size_t)(p - text))) return PITH_OK;
            most += form->decompose(pith__utf8_next(&p), d);
        }
        pith__encoding_restart(enc);
    }
    mark *m = pith__encoding_scratch(enc, SLOT, 2 * most * sizeof *m);
    if (!m) return pith__fail_memory(enc->err, most * sizeof *m);
    mark *spare = m + most;
    size_t n = 0, run = 0;
    for (const char *p = text + begin; p < text + end;) {
        if (pith__encoding_stops(enc, (size_t)(p - text))) return PITH_OK;
        uint32_t d[PITH_DECOMPOSITION_MAX];
        size_t k = form->decompose(pith__utf8_next(&p), d);
        for (size_t i = 0; i < k; i++) {
            int ccc = pith__char_combining_class(d[i]);
            if (ccc == 0) {
                order(m + run, n - run, spare);
                run = n + 1;
            }
            m[n++] = (mark){ d[i], i > 0, ccc };
        }
    }
    if (run < n) order(m + run, n - run, spare);
    if (form->compose) n = compose(form, m, n);
    uint32_t at = begin;
    for (size_t i = 0; i < n; i++) {
        uint32_t from = piece_begin;
        if (m[i].change <= 0 && at < end)
            from = at;
        else if (at > piece_begin)
            from = at - 1;
        pith__encoding_put_char(enc, m[i].c, from);
        for (int32_t k = m[i].change; k <= 0 && at < end; k++) {
            do at++;
            while (at < end && (text[at] & 0xC0) == 0x80);
        }
    }
    return PITH_OK;
}

/* Copies what is settled: characters that neither change nor join a character before them. A
 * segment begins at the last such character, because what follows may compose with it, and ends
 * before the next. */
static pith_status norm_unicode_normalise(const void *self, pith__encoding *enc, pith__piece piece,
                                          const normal_form *form) {
    bool (*const settled)(uint32_t) = form->settled;
    (void)self;
    const char *text = enc->text.data, *end = text + piece.end, *p = text + piece.begin,
               *copied = p, *last = p;
    while (p < end) {
        const char *c = p;
        if (*p >= 0) {
            last = p++;
            continue;
        }
        if (pith__encoding_stops(enc, (size_t)(p - text))) return PITH_OK;
        if (settled(pith__utf8_next(&p))) {
            last = c;
            continue;
        }
        const char *stop = p;
        while (stop < end) {
            const char *next = stop;
            if (settled(pith__utf8_next(&next))) break;
            stop = next;
        }
        pith__encoding_copy(enc, (uint32_t)(copied - text), (uint32_t)(last - text));
        PITH_TRY(norm_unicode_segment(enc, text, (uint32_t)(last - text), (uint32_t)(stop - text),
                                      piece.begin, form));
        copied = last = p = stop;
    }
    pith__encoding_copy(enc, (uint32_t)(copied - text), piece.end);
    return PITH_OK;
}

static pith_status nfc(const void *self, pith__encoding *enc, pith__piece piece) {
    static const normal_form form = { pith__char_decompose, pith__char_is_settled,
                                      pith__char_compose };
    return norm_unicode_normalise(self, enc, piece, &form);
}
static pith_status nfd(const void *self, pith__encoding *enc, pith__piece piece) {
    static const normal_form form = { pith__char_decompose, pith__char_is_decomposed, NULL };
    return norm_unicode_normalise(self, enc, piece, &form);
}
static pith_status nfkc(const void *self, pith__encoding *enc, pith__piece piece) {
    static const normal_form form = { pith__char_decompose_compatible, pith__char_is_settled,
                                      pith__char_compose };
    return norm_unicode_normalise(self, enc, piece, &form);
}
static pith_status nfkd(const void *self, pith__encoding *enc, pith__piece piece) {
    static const normal_form form = { pith__char_decompose_compatible, pith__char_is_decomposed,
                                      NULL };
    return norm_unicode_normalise(self, enc, piece, &form);
}

const pith__normalizer_desc pith__normalizer_NFC = { "NFC", PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL,
                                                     NULL, nfc, NULL };
const pith__normalizer_desc pith__normalizer_NFD = { "NFD", PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL,
                                                     NULL, nfd, NULL };
const pith__normalizer_desc pith__normalizer_NFKC = { "NFKC",
                                                      PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL, NULL,
                                                      nfkc, NULL };
const pith__normalizer_desc pith__normalizer_NFKD = { "NFKD",
                                                      PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL, NULL,
                                                      nfkd, NULL };
