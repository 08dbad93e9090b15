/* first_tokens.c - which tokenizers may be given only the beginning of a text, and where a text may
 * be cut. */
#include "text/first_tokens.h"

#include "text/added_tokens.h"
#include "text/encoding.h"
#include "text/run_steps.h"

/* How much of a text is tokenized first: BYTES_PER_TOKEN for each token that is wanted, and at
 * least BYTES_LEAST. Most tokens have fewer bytes, so one attempt is usually enough; an attempt
 * that gives too few tokens is repeated with twice as much. More bytes mean fewer repetitions and
 * more work that is thrown away. */
enum { BYTES_PER_TOKEN = 16, BYTES_LEAST = 4096 };

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Finds out by trying whether a normalizer leaves spaces alone and makes letters of letters, each
 * by itself: it is run on every one of them. That needs no list of normalizers. */
static pith_status keeps_words(bool *keeps, pith__encoding *enc, const pith__text_step *step) {
    static const char probe[] = " abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const pith__normalizer_desc *desc = step->desc;
    *keeps = true;
    for (const char *p = probe; *p && *keeps; p++) {
        if (!pith__encoding_begin(enc, (pith_str){ p, 1 }, false))
            return pith__fail_memory(enc->err, 1);
        PITH_TRY(desc->run(step->self, enc, enc->pieces[0]));
        if (enc->out_of_memory) return pith__fail_memory(enc->err, 1);
        *keeps = enc->out.size == 1 &&
                 (*p == ' ' ? enc->out.data[0] == ' ' : is_letter(enc->out.data[0]));
    }
    return PITH_OK;
}

/* Strip and Prepend change the ends of a text only, which a probe of one character would take for
 * more. */
static bool changes_ends(const pith__normalizer_desc *desc) {
    return strcmp(desc->name, "Strip") == 0 || strcmp(desc->name, "Prepend") == 0;
}

/* A beginning may be encoded alone only if every normalizer works locally, and if it turns letters
 * into letters and leaves spaces: a cut must stay a cut in the normalised text. */
static pith_status normalizers_allow(bool *allow, pith__loader *loader) {
    const pith__step_list *list = &loader->tokenizer->normalizers;
    pith__encoding *enc = pith__encoding_acquire(loader->tokenizer);
    if (!enc) return pith__fail_memory(loader->err, sizeof *enc);
    pith_status status = PITH_OK;
    enc->err = loader->err;
    *allow = true;
    for (size_t i = 0; i < list->count && *allow && !status; i++) {
        const pith__normalizer_desc *desc = list->steps[i].desc;
        uint32_t flags = desc->flags | (desc->nature ? desc->nature(list->steps[i].self) : 0);
        *allow = flags & PITH_STEP_LOCAL;
        if (*allow && !changes_ends(desc)) status = keeps_words(allow, enc, &list->steps[i]);
    }
    pith__encoding_release(enc);
    return status;
}

/* The step that cuts must come before any that is not local; what comes after it sees pieces that
 * are whole. */
static bool pretokenizers_allow(const pith__step_list *list) {
    bool cut = false;
    for (size_t i = 0; i < list->count; i++) {
        const pith__pretokenizer_desc *desc = list->steps[i].desc;
        uint32_t flags = desc->flags | (desc->nature ? desc->nature(list->steps[i].self) : 0);
        cut |= (flags & PITH_STEP_CUTS) != 0;
        if (!cut && !(flags & PITH_STEP_LOCAL)) return false;
    }
    return cut;
}

/* No added token lies across such a place. */
static bool added_allow(const pith__added_tokens *added) {
    for (size_t i = 0; i < added->count; i++) {
        const pith_str texts[] = { added->tokens[i].content, added->tokens[i].pattern };
        for (int k = 0; k < 2; k++)
            for (size_t at = 1; at < texts[k].size; at++)
                if (texts[k].data[at] == ' ' && is_letter(texts[k].data[at - 1])) return false;
    }
    return true;
}

pith_status pith__first_tokens_find_out(pith__loader *loader) {
    pith_tokenizer *t = loader->tokenizer;
    if (!pretokenizers_allow(&t->pretokenizers) || !added_allow(t->added_tokens)) return PITH_OK;
    return normalizers_allow(&t->begins_alone, loader);
}

/* The first place at or after `from` where the text may be cut; its end if there is none. */
static size_t find_cut(pith_str text, size_t from) {
    for (size_t at = from; at + 1 < text.size; at++) {
        const char *space = memchr(text.data + at, ' ', text.size - 1 - at);
        if (!space) break;
        if (is_letter(space[-1]) && is_letter(space[1])) return (size_t)(space - text.data);
        at = (size_t)(space - text.data);
    }
    return text.size;
}

/* Encodes ever longer beginnings, each twice as long as the one before, until one gives more tokens
 * than the limit. So a long text costs at most twice what its needed beginning costs. From half of
 * the text on, the whole text is encoded. */
pith_status pith__first_tokens_encode(pith__encoding *enc, pith_str text, bool offsets) {
    size_t first = enc->count, wanted = enc->limit == SIZE_MAX ? SIZE_MAX : enc->limit - first;
    bool alone = enc->tokenizer->begins_alone && text.size < PITH_TEXT_MAX &&
                 wanted < text.size / BYTES_PER_TOKEN / 2;
    if (alone)
        for (size_t size = wanted * BYTES_PER_TOKEN + BYTES_LEAST; size < text.size / 2;
             size *= 2) {
            size_t cut = find_cut(text, size);
            if (cut == text.size) break;
            PITH_TRY(pith__encode_text(enc, (pith_str){ text.data, cut }, offsets));
            if (enc->count > enc->limit) return PITH_OK;
            enc->count = first;
        }
    return pith__encode_text(enc, text, offsets);
}
