/* op_ms_tokenizer.c - com.microsoft's Tokenizer: strings into tokens, by regular expressions for
 * separators or for tokens.
 *
 * Separators are applied one after another; each one cuts all pieces that are left. The longest
 * match counts, as in RE2 with that option; PCRE2's DFA matching gives it. A token counts if it has
 * at least mincharnum characters. The last axis of the result is as long as the most tokens of a
 * string. If no string has a token, it is empty, with or without marks. Source: ONNX Runtime's
 * ContribOperators.md. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/unicode/utf8.h"
#include "engine/ops/shared/infer_shapes.h"

/* TOKENIZER_STEPS: steps of one match before it is an error, so that an expression cannot run
 * without end. TOKENIZER_WORKSPACE: integers for PCRE2's DFA matcher, the size its manual uses.
 * TOKENIZER_SEPARATORS: how many separators a node may have. */
enum { TOKENIZER_STEPS = 1000000, TOKENIZER_WORKSPACE = 1000, TOKENIZER_SEPARATORS = 64 };

/* Either separators or an expression for tokens. How many tokens the longest row has is known in
 * the run. */
static pith_status tokenizer_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    size_t separators;
    bool cuts = pith__node_strs(c->node, "separators", &separators) && separators > 0;
    if (cuts == (pith__node_attr(c->node, "tokenexp") != NULL))
        return pith__op_fail(c, "one of the attributes separators and tokenexp must be there");
    if (cuts && separators > TOKENIZER_SEPARATORS)
        return pith__op_fail(c, "%zu separators, at most %d are supported", separators,
                             TOKENIZER_SEPARATORS);
    if (x->rank >= 0 && x->rank != 1 && x->rank != 2)
        return pith__op_fail(c, "X has %d dimensions, not 1 or 2", x->rank);
    pith__dim dims[3] = { 0 };
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    if (x->rank >= 0) dims[x->rank] = PITH_DIM_UNKNOWN;
    pith__infer_set(c, 0, PITH_STRING, x->rank < 0 ? -1 : x->rank + 1, dims);
    return PITH_OK;
}

typedef struct tokenizer {
    pith__run *r;
    pcre2_code *codes[TOKENIZER_SEPARATORS];
    size_t count;
    bool cuts, characters; /* cuts: codes are of separators; characters: every one is a token */
    pcre2_match_data *match;
    pcre2_match_context *limits;
    int64_t least;
    pith_str *tokens; /* of all strings; NULL while they are only counted */
    int64_t found;
} tokenizer;

static void tokenizer_close(tokenizer *t) {
    for (size_t i = 0; i < t->count; i++) pcre2_code_free(t->codes[i]);
    pcre2_match_data_free(t->match);
    pcre2_match_context_free(t->limits);
}

/* Patterns are UTF-8, so a dot is a character. A fault in one tells its place. */
static pith_status tokenizer_compile(tokenizer *t, pith_str pattern) {
    int error;
    PCRE2_SIZE at;
    char message[128] = "";
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)(pattern.data ? pattern.data : ""), pattern.size,
                                     PCRE2_UTF, &error, &at, NULL);
    if (code) {
        t->codes[t->count++] = code;
        return PITH_OK;
    }
    pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
    return pith__fail(t->r->err, PITH_ERR_FORMAT, "pattern '" PITH_STR_FMT "': %s at byte %zu",
                      PITH_STR_ARG(pattern), message, (size_t)at);
}

/* An empty separator and the expression `.` mean characters, for which nothing is compiled. Limits
 * stop patterns that would take exponential time. */
static pith_status tokenizer_open(tokenizer *t, pith__run *r) {
    size_t count;
    const pith_str *separators = pith__node_strs(r->node, "separators", &count);
    pith_str expression = pith__node_str(r->node, "tokenexp", "");
    *t =
        (tokenizer){ .r = r, .cuts = count > 0, .least = pith__node_int(r->node, "mincharnum", 1) };
    t->characters = t->cuts ? count == 1 && !separators[0].size : pith__str_is(expression, ".");
    t->match = pcre2_match_data_create(1, NULL);
    t->limits = pcre2_match_context_create(NULL);
    if (!t->match || !t->limits) return pith__fail_memory(r->err, 0);
    pcre2_set_match_limit(t->limits, TOKENIZER_STEPS);
    pcre2_set_depth_limit(t->limits, TOKENIZER_STEPS);
    if (t->characters) return PITH_OK;
    for (size_t i = 0; i < count; i++) PITH_TRY(tokenizer_compile(t, separators[i]));
    return t->cuts ? PITH_OK : tokenizer_compile(t, expression);
}

/* The first and longest match at or after *begin; *found false if there is none. Empty ones are
 * passed over. */
static pith_status tokenizer_match(tokenizer *t, size_t code, pith_str text, size_t *begin,
                                   size_t *end, bool *found) {
    int work[TOKENIZER_WORKSPACE];
    int got =
        pcre2_dfa_match(t->codes[code], (PCRE2_SPTR)(text.data ? text.data : ""), text.size, *begin,
                        PCRE2_NOTEMPTY, t->match, t->limits, work, TOKENIZER_WORKSPACE);
    *found = got >= 0;
    if (got < 0 && got != PCRE2_ERROR_NOMATCH) {
        char message[128] = "";
        pcre2_get_error_message(got, (PCRE2_UCHAR *)message, sizeof message);
        return pith__fail(t->r->err, PITH_ERR_RUN, "a string cannot be matched: %s", message);
    }
    if (!*found) return PITH_OK;
    *begin = pcre2_get_ovector_pointer(t->match)[0];
    *end = pcre2_get_ovector_pointer(t->match)[1];
    return PITH_OK;
}

static void tokenizer_token(tokenizer *t, pith_str piece) {
    int64_t characters = 0;
    for (size_t i = 0; i < piece.size; i++)
        characters += ((unsigned char)piece.data[i] & 0xC0) != 0x80;
    if (!characters || characters < t->least) return;
    if (t->tokens) t->tokens[t->found] = piece;
    t->found++;
}

/* What separators from `code` on leave of a piece. */
static pith_status tokenizer_cut(tokenizer *t, size_t code, pith_str text) {
    size_t at = 0;
    bool found = code < t->count;
    if (code == t->count) tokenizer_token(t, text);
    while (found) {
        size_t begin = at, end = 0;
        PITH_TRY(tokenizer_match(t, code, text, &begin, &end, &found));
        size_t stop = found ? begin : text.size;
        PITH_TRY(tokenizer_cut(t, code + 1, (pith_str){ text.data + at, stop - at }));
        at = end;
    }
    return PITH_OK;
}

/* One string into tokens. Bad UTF-8 is refused here, with a message of its own. Empty matches are
 * none. */
static pith_status tokenizer_string(tokenizer *t, pith_str text) {
    if (!text.data) text = PITH_STR("");
    if (pith__utf8_valid_prefix(text.data, text.size) != text.size)
        return pith__op_fail(t->r, "a string is not UTF-8");
    if (t->characters) {
        for (size_t at = 0, next; at < text.size; at = next) {
            for (next = at + 1;
                 next < text.size && ((unsigned char)text.data[next] & 0xC0) == 0x80;)
                next++;
            tokenizer_token(t, (pith_str){ text.data + at, next - at });
        }
        return PITH_OK;
    }
    if (t->cuts) return tokenizer_cut(t, 0, text);
    size_t at = 0, end = 0;
    for (bool found;; at = end) {
        PITH_TRY(tokenizer_match(t, 0, text, &at, &end, &found));
        if (!found) return PITH_OK;
        tokenizer_token(t, (pith_str){ text.data + at, end - at });
    }
}

/* Twice over all strings: the first time only counts, for the width of the output. Shorter rows end
 * in pad_value. */
static pith_status tokenizer_fill(tokenizer *t) {
    const pith_tensor *x = t->r->in[0];
    int64_t count = pith__tensor_count(x), widest = 0,
            marks = pith__node_int(t->r->node, "mark", 0) ? 1 : 0, dims[3];
    for (int64_t i = 0; i < count; i++) {
        PITH_TRY(pith__run_look(t->r));
        t->found = 0;
        PITH_TRY(tokenizer_string(t, ((const pith_str *)x->data)[i]));
        if (t->found > widest) widest = t->found;
    }
    int rank = x->rank + (count > 0);
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank] = widest ? widest + 2 * marks : 0;
    PITH_TRY(pith__run_alloc(t->r, 0, PITH_STRING, rank, dims));
    pith_str *y = t->r->out[0]->data, pad = pith__node_str(t->r->node, "pad_value", "");
    if (widest) {
        for (int64_t i = 0; i < count; i++, y += widest + 2 * marks) {
            PITH_TRY(pith__run_look(t->r));
            t->found = 0;
            t->tokens = y + marks;
            PITH_TRY(tokenizer_string(t, ((const pith_str *)x->data)[i]));
            if (marks) y[0] = PITH_STR("\x02"), y[t->found + 1] = PITH_STR("\x03");
            for (int64_t k = t->found + 2 * marks; k < widest + 2 * marks; k++) y[k] = pad;
        }
    }
    return PITH_OK;
}

static pith_status tokenizer_run(pith__run *r) {
    tokenizer t;
    pith_status status = tokenizer_open(&t, r);
    if (!status) status = tokenizer_fill(&t);
    tokenizer_close(&t);
    return status;
}

const pith__op pith__op_Tokenizer_ms = {
    .domain = "com.microsoft",
    .name = "Tokenizer",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .flags = PITH_OP_LATE,
    .types = "s",
    .attrs = "mark bool!; mincharnum int! 1..; pad_value string!; separators strings; "
             "tokenexp string",
    .infer = tokenizer_infer,
    .run = tokenizer_run,
    .note = "PCRE2 syntax"
};
