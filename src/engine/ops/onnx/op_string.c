/* op_string.c - StringConcat, StringSplit and StringNormalizer.
 *
 * Characters of results lie in the run's memory. Case is changed by Unicode's simple mappings
 * whatever the locale, and accents are not touched. Source: ONNX StringConcat and StringSplit
 * (opset 20), StringNormalizer (opset 10). */
#include <string.h>

#include "base/unicode/character.h"
#include "base/unicode/utf8.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status string_infer_concat(pith__infer *c) {
    c->out[0].dtype = PITH_STRING;
    return pith__infer_broadcast(c, c->in[0], c->in[1], &c->out[0]);
}

/* Index into a tensor broadcast to out, for the i-th element of out. */
static int64_t string_broadcast_index(const pith_tensor *t, const pith_tensor *out, int64_t i) {
    int64_t index = 0, step = 1;
    for (int d = out->rank - 1, k = t->rank - 1; k >= 0; d--, k--) {
        if (t->dims[k] != 1) index += i % out->dims[d] * step;
        step *= t->dims[k];
        i /= out->dims[d];
    }
    return index;
}

/* Every result has bytes of its own, since an operand may be broadcast. */
static pith_status string_run_concat(pith__run *r) {
    const pith_tensor *a = r->in[0], *b = r->in[1];
    pith_str *y = r->out[0]->data;
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++) {
        PITH_TRY(pith__run_step(r, i * 8));
        pith_str left = ((const pith_str *)a->data)[string_broadcast_index(a, r->out[0], i)];
        pith_str right = ((const pith_str *)b->data)[string_broadcast_index(b, r->out[0], i)];
        char *text = r->exec->alloc(r->exec, left.size + right.size + 1);
        if (!text) return pith__fail_memory(r->err, left.size + right.size);
        if (left.size) memcpy(text, left.data, left.size);
        if (right.size) memcpy(text + left.size, right.data, right.size);
        y[i] = (pith_str){ text, left.size + right.size };
    }
    return PITH_OK;
}

const pith__op pith__op_StringConcat = {
    .domain = "",
    .name = "StringConcat",
    .since = 20,
    .newest = 20,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "s",
    .attrs = "",
    .infer = string_infer_concat,
    .run = string_run_concat,
};

static pith_status string_infer_split(pith__infer *c) {
    pith__dim dims[PITH_MAX_RANK];
    int rank = c->in[0]->rank;
    if (rank >= PITH_MAX_RANK) return pith__op_fail(c, "rank %d is too large", rank);
    for (int i = 0; i < rank; i++) dims[i] = c->in[0]->dims[i];
    if (rank >= 0) dims[rank] = PITH_DIM_UNKNOWN;
    pith__type_set(&c->out[0], PITH_STRING, rank < 0 ? -1 : rank + 1, dims);
    if (c->out_count > 1) pith__type_set(&c->out[1], PITH_I64, rank, c->in[0]->dims);
    return PITH_OK;
}

static bool string_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next part of *rest, which it shortens; false at the end. An empty delimiter means runs of
 * white space. */
static bool string_next_part(pith_str *rest, pith_str delimiter, bool last, pith_str *part,
                             bool *more) {
    if (!delimiter.size) {
        while (rest->size && string_is_space(*rest->data)) rest->data++, rest->size--;
        if (!rest->size) return false;
        size_t n = 0;
        while (n < rest->size && (last || !string_is_space(rest->data[n]))) n++;
        *part = (pith_str){ rest->data, n };
        rest->data += n, rest->size -= n;
        return true;
    }
    if (!*more) return false;
    if (!last) {
        for (size_t i = 0; i + delimiter.size <= rest->size; i++) {
            if (memcmp(rest->data + i, delimiter.data, delimiter.size) != 0) continue;
            *part = (pith_str){ rest->data, i };
            rest->data += i + delimiter.size, rest->size -= i + delimiter.size;
            return true;
        }
    }
    *part = *rest;
    *more = false;
    return true;
}

/* Writes up to `room` parts and returns how many there are. */
static int64_t string_split(pith_str text, pith_str delimiter, int64_t most, pith_str *parts,
                            int64_t room) {
    pith_str part;
    bool more = true;
    int64_t count = 0;
    while (string_next_part(&text, delimiter, count == most, &part, &more)) {
        if (count < room) parts[count] = part;
        count++;
    }
    return count;
}

/* Parts are counted first: the last axis is as long as the most parts of a text, and shorter ones
 * are filled with empty strings. Parts point into the input's texts. */
static pith_status string_run_split(pith__run *r) {
    const pith_tensor *x = r->in[0];
    const pith_str *texts = x->data;
    pith_str delimiter = pith__node_str(r->node, "delimiter", "");
    int64_t most = pith__node_int(r->node, "maxsplit", INT64_MAX), count = pith__tensor_count(x),
            widest = 0, spent = 0;
    if (most < 0) most = INT64_MAX;
    if (r->out_count > 1 && r->out[1]) PITH_TRY(pith__run_alloc(r, 1, PITH_I64, x->rank, x->dims));
    for (int64_t i = 0; i < count; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 8 * (int64_t)texts[i].size));
        int64_t parts = string_split(texts[i], delimiter, most, NULL, 0);
        if (parts > widest) widest = parts;
        if (r->out_count > 1 && r->out[1]) ((int64_t *)r->out[1]->data)[i] = parts;
    }
    if (!r->out[0]) return PITH_OK;
    int64_t dims[PITH_MAX_RANK];
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    dims[x->rank] = widest;
    PITH_TRY(pith__run_alloc(r, 0, PITH_STRING, x->rank + 1, dims));
    pith_str *y = r->out[0]->data;
    for (int64_t i = 0; i < count * widest; i++) {
        PITH_TRY(pith__run_step(r, i));
        y[i] = PITH_STR("");
    }
    for (int64_t i = 0; i < count; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 8 * (int64_t)texts[i].size));
        string_split(texts[i], delimiter, most, y + i * widest, widest);
    }
    return PITH_OK;
}

const pith__op pith__op_StringSplit = {
    .domain = "",
    .name = "StringSplit",
    .since = 20,
    .newest = 20,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 2,
    .types = "s",
    .attrs = "delimiter string; maxsplit int",
    .flags = PITH_OP_LATE,
    .infer = string_infer_split,
    .run = string_run_split,
};

typedef enum letter_case { AS_IS, LOWER, UPPER } letter_case;

static pith_status string_infer_normalizer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 1 &&
        !(x->rank == 2 && (!pith__dim_known(x->dims[0]) || x->dims[0] == 1)))
        return pith__op_fail(c, "input must be [C] or [1, C]");
    pith__dim dims[2] = { 1, PITH_DIM_UNKNOWN };
    if (x->rank == 1) dims[0] = PITH_DIM_UNKNOWN;
    pith__type_set(&c->out[0], PITH_STRING, x->rank, dims);
    return PITH_OK;
}

/* A code point takes at most twice its bytes under the simple mappings. */
static pith_status string_change_case(pith__run *r, pith_str *text, letter_case to) {
    if (to == AS_IS) return PITH_OK;
    if (pith__utf8_valid_prefix(text->data, text->size) != text->size)
        return pith__op_fail(r, "a string is not UTF-8");
    char *out = r->exec->alloc(r->exec, 2 * text->size + 4);
    if (!out) return pith__fail_memory(r->err, 2 * text->size);
    size_t n = 0;
    for (const char *p = text->data, *end = p + text->size; p < end;) {
        uint32_t c = pith__utf8_next(&p);
        n += pith__utf8_put(out + n,
                            to == LOWER ? pith__character_lower(c) : pith__character_upper(c));
    }
    *text = (pith_str){ out, n };
    return PITH_OK;
}

/* Stop words are compared after both sides are in lower case, unless case matters. A result without
 * any string is one empty string. */
static pith_status string_run_normalizer(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_str action = pith__node_str(r->node, "case_change_action", "NONE");
    letter_case to = pith__str_is(action, "LOWER") ? LOWER : AS_IS;
    if (pith__str_is(action, "UPPER")) to = UPPER;
    bool sensitive = pith__node_int(r->node, "is_case_sensitive", 0) != 0;
    size_t stop_count;
    const pith_str *stops = pith__node_strs(r->node, "stopwords", &stop_count);
    int64_t count = pith__tensor_count(x), kept = 0;
    pith_str *texts = r->exec->alloc(r->exec, (size_t)(count + 1) * sizeof *texts);
    if (!texts) return pith__fail_memory(r->err, (size_t)count * sizeof *texts);
    for (int64_t i = 0; i < count; i++) {
        pith_str text = ((const pith_str *)x->data)[i], compared = text;
        PITH_TRY(pith__run_look(r));
        if (!sensitive) PITH_TRY(string_change_case(r, &compared, LOWER));
        bool stop = false;
        for (size_t k = 0; k < stop_count && !stop; k++) {
            pith_str word = stops[k];
            if (!sensitive) PITH_TRY(string_change_case(r, &word, LOWER));
            stop = pith__str_eq(word, compared);
        }
        if (stop) continue;
        PITH_TRY(string_change_case(r, &text, to));
        texts[kept++] = text;
    }
    if (!kept) texts[kept++] = PITH_STR("");
    int64_t dims[2] = { x->rank == 1 ? kept : 1, kept };
    PITH_TRY(pith__run_alloc(r, 0, PITH_STRING, x->rank, dims));
    memcpy(r->out[0]->data, texts, (size_t)kept * sizeof *texts);
    return PITH_OK;
}

const pith__op pith__op_StringNormalizer = {
    .domain = "",
    .name = "StringNormalizer",
    .since = 10,
    .newest = 10,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "s",
    .attrs = "case_change_action string LOWER|UPPER|NONE = NONE; "
             "is_case_sensitive bool = 0; locale string; stopwords strings",
    .flags = PITH_OP_LATE,
    .infer = string_infer_normalizer,
    .run = string_run_normalizer,
    .note = "simple case mappings, no locale",
};
