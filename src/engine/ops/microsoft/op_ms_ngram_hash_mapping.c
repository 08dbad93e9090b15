/* op_ms_ngram_hash_mapping.c - com.microsoft's NGramHashMapping and VarlenNGramHashMapping: ids of
 * n-grams of tokens.
 *
 * For n from 2 on, the n tokens that end at a position are multiplied by one number each and
 * combined by exclusive or. Each head then takes the remainder by the size of its vocabulary.
 * Tokens before a sequence come from past_ids, else they are eos_token_id or pad_id. Arithmetic
 * wraps in the dtype of the ids. Source: ONNX Runtime's schemas of these names. */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

/* Numbers of the inputs of both forms; -1: there is none. */
typedef struct ngram_layout {
    int ends, past, offsets, eos, segments, past_segments, counts;
} ngram_layout;

static const ngram_layout ngram_layouts[2] = { { -1, 3, 4, 5, 6, -1, -1 },
                                               { 3, 4, 5, 6, 7, 8, 9 } };
enum { IDS, MULTIPLIERS, VOCABULARIES };

typedef struct ngram {
    const ngram_layout *in;
    bool packed, reset;
    int64_t most, heads, pad, capacity; /* heads: of one n */
} ngram;

/* Both operators have the same inputs at different places: `in` says where. */
static void ngram_read(ngram *s, const pith__node *node) {
    *s = (ngram){ .packed = pith__str_is(node->op_type, "VarlenNGramHashMapping"),
                  .reset = pith__node_int(node, "reset_on_eos", 0) != 0,
                  .most = pith__node_int(node, "max_ngram_size", 0),
                  .heads = pith__node_int(node, "n_head_per_ngram", 0),
                  .pad = pith__node_int(node, "pad_id", 0),
                  .capacity = pith__node_int(node, "state_update_capacity", 0) };
    s->in = &ngram_layouts[s->packed];
}

/* One id per n and head. The states that a next call needs are the last most - 1 tokens and their
 * segments. */
static pith_status ngram_infer(pith__infer *c) {
    ngram s;
    ngram_read(&s, c->node);
    const pith__type *ids = c->in[IDS];
    int rank = s.packed ? 1 : 2;
    if (ids->rank >= 0 && ids->rank != rank)
        return pith__op_fail(c, "input_ids has %d dimensions, not %d", ids->rank, rank);
    PITH_TRY(pith__infer_equal_dtypes(c, IDS, VOCABULARIES));
    const int same[] = { s.in->past, s.in->offsets, s.in->eos };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const pith__type *t = pith__has_input(c, same[i]) ? c->in[same[i]] : NULL;
        if (t && t->dtype && ids->dtype && t->dtype != ids->dtype)
            return pith__fail_dtype(c->err, t->dtype);
    }
    if (s.packed && !pith__has_input(c, s.in->ends))
        return pith__op_fail(c, "input %d is missing", s.in->ends);
    if ((s.capacity > 0) != (s.in->counts >= 0 && pith__has_input(c, s.in->counts)))
        return pith__op_fail(c, "capture_count goes with state_update_capacity, and only with it");
    pith__dim batch = PITH_DIM_UNKNOWN, out[3], all = (s.most - 1) * s.heads;
    for (int i = 0; i < rank; i++) out[i] = ids->rank == rank ? ids->dims[i] : PITH_DIM_UNKNOWN;
    out[rank] = all;
    if (!s.packed) batch = out[0];
    if (s.packed && c->in[s.in->ends]->rank == 1)
        batch = pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[s.in->ends]->dims[0], 1);
    pith__infer_set(c, 0, ids->dtype, rank + 1, out);
    pith__infer_set(c, 1, ids->dtype, 2, (pith__dim[]){ batch, s.most - 1 });
    pith__infer_set(c, 2, PITH_I32, 2, (pith__dim[]){ batch, s.most - 1 });
    pith__infer_set(c, 3, ids->dtype, 3, (pith__dim[]){ batch, s.capacity, s.most - 1 });
    return PITH_OK;
}

static int64_t ngram_get(const pith_tensor *t, int64_t i) {
    return t->dtype == PITH_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

static void ngram_put(pith_tensor *t, int64_t i, int64_t v) {
    if (t->dtype == PITH_I32)
        ((int32_t *)t->data)[i] = (int32_t)(uint32_t)(uint64_t)v;
    else
        ((int64_t *)t->data)[i] = v;
}

typedef struct ngram_job {
    pith__run *r;
    ngram s;
    const pith_tensor *ids, *past, *offsets, *eos, *segments, *past_segments;
    int64_t missing; /* what stands for tokens before a sequence */
} ngram_job;

/* A sequence: its number, its tokens in ids. */
typedef struct ngram_row {
    int64_t b, first, length;
} ngram_row;

/* Token at a place of a sequence; before it, what past_ids has, or the one that stands for nothing.
 */
static int64_t ngram_token(const ngram_job *j, const ngram_row *row, int64_t at) {
    if (at >= 0) return ngram_get(j->ids, row->first + at);
    int64_t before = j->s.most - 1;
    return j->past && at >= -before ? ngram_get(j->past, row->b * before + before + at)
                                    : j->missing;
}

/* Segment at a place; *known: it is given. Before a sequence it is the first one's, where it is
 * not. */
static int64_t ngram_segment(const ngram_job *j, const ngram_row *row, int64_t at, bool *known) {
    int64_t before = j->s.most - 1;
    *known = j->segments && (at >= 0 || (j->past_segments && at >= -before));
    if (!*known) return j->segments && row->length ? ngram_get(j->segments, row->first) : 0;
    return at >= 0 ? ngram_get(j->segments, row->first + at)
                   : ngram_get(j->past_segments, row->b * before + before + at);
}

/* The place before which nothing counts for an n-gram that ends at `at`, going back `before` places
 * at most. */
static int64_t ngram_start(const ngram_job *j, const ngram_row *row, int64_t at) {
    int64_t start = at;
    for (int64_t back = 1; back < j->s.most; back++) {
        bool here, there;
        int64_t own = ngram_segment(j, row, start, &here),
                other = ngram_segment(j, row, start - 1, &there);
        if (here && there && own != other) return start;
        if (j->eos && j->s.reset && ngram_token(j, row, start - 1) == j->missing) return start;
        start--;
    }
    return start;
}

static int64_t ngram_wrap(const ngram_job *j, uint64_t v) {
    return j->ids->dtype == PITH_I32 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
}

/* All ids of one position. mix grows by one token per n, so each n-gram costs one step. Tokens
 * before the segment's start count as missing. Hashes are signed, so a negative remainder is moved
 * up. */
static void ngram_hash(const ngram_job *j, const ngram_row *row, int64_t at, int64_t to) {
    const pith_tensor *sizes = j->r->in[VOCABULARIES];
    uint64_t mix = 0;
    int64_t start = ngram_start(j, row, at), head = 0;
    for (int64_t n = 0; n < j->s.most; n++) {
        int64_t token = at - n >= start ? ngram_token(j, row, at - n) : j->missing;
        mix ^= (uint64_t)ngram_wrap(j, (uint64_t)token *
                                           (uint64_t)ngram_get(j->r->in[MULTIPLIERS], n));
        if (n > 0) {
            for (int64_t h = 0; h < j->s.heads; h++, head++) {
                int64_t size = ngram_get(sizes, head), value = ngram_wrap(j, mix),
                        rest = size == 1 ? 0 : value % size;
                if (rest < 0) rest += size;
                if (j->offsets)
                    rest = ngram_wrap(j, (uint64_t)rest + (uint64_t)ngram_get(j->offsets, head));
                ngram_put(j->r->out[0], to + head, rest);
            }
        }
    }
}

/* What the next call needs after the first `count` tokens. */
static void ngram_state(const ngram_job *j, const ngram_row *row, int64_t count, pith_tensor *t,
                        int64_t to, bool segments) {
    int64_t before = j->s.most - 1;
    bool known;
    for (int64_t i = 0; i < before; i++) {
        int64_t at = count - before + i;
        ngram_put(t, to + i,
                  segments ? ngram_segment(j, row, at, &known) : ngram_token(j, row, at));
    }
}

/* Numbers of elements, sizes of vocabularies, and rising ends: everything that the places below
 * rely on. */
static pith_status ngram_check(const ngram_job *j, int64_t tokens, int64_t batch) {
    const pith__run *r = j->r;
    int64_t all = (j->s.most - 1) * j->s.heads, states = batch * (j->s.most - 1);
    const int inputs[] = { VOCABULARIES,           j->s.in->offsets,  j->s.in->past,
                           j->s.in->past_segments, j->s.in->segments, j->s.in->eos,
                           j->s.in->counts };
    const int64_t wanted[] = { all, all, states, states, tokens, 1, batch };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i] < 0 || !pith__has_input(r, inputs[i])) continue;
        int64_t count = pith__tensor_count(r->in[inputs[i]]);
        if (count != wanted[i])
            return pith__op_fail(r, "input %d has %lld elements, not %lld", inputs[i],
                                 (long long)count, (long long)wanted[i]);
    }
    if (pith__tensor_count(r->in[MULTIPLIERS]) < j->s.most)
        return pith__op_fail(r, "%lld multipliers for n-grams of %lld",
                             (long long)pith__tensor_count(r->in[MULTIPLIERS]),
                             (long long)j->s.most);
    for (int64_t i = 0; i < all; i++)
        if (ngram_get(r->in[VOCABULARIES], i) < 1)
            return pith__op_fail(r, "vocabulary size %lld is not positive", (long long)i);
    int64_t last = 0;
    if (j->s.packed) {
        for (int64_t i = 0; i <= batch; i++) {
            int64_t end = ngram_get(r->in[j->s.in->ends], i);
            if (end < last || (i == 0 && end) || (i == batch && end != tokens))
                return pith__op_fail(r, "the sequences' ends do not rise from 0 to %lld",
                                     (long long)tokens);
            last = end;
        }
    }
    return PITH_OK;
}

static const pith_tensor *ngram_input(const pith__run *r, int i) {
    return i >= 0 && pith__has_input(r, i) ? r->in[i] : NULL;
}

/* The outputs of one sequence. Captured states are those after each of the first steps; the rest of
 * their room is pad_id. */
static pith_status ngram_sequence(const ngram_job *j, const ngram_row *row) {
    const pith__run *r = j->r;
    int64_t spent = 0, all = (j->s.most - 1) * j->s.heads, before = j->s.most - 1;
    if (r->out[0]) {
        for (int64_t i = 0; i < row->length; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 64 * all));
            ngram_hash(j, row, i, (row->first + i) * all);
        }
    }
    if (r->out_count > 1 && r->out[1])
        ngram_state(j, row, row->length, r->out[1], row->b * before, false);
    if (r->out_count > 2 && r->out[2])
        ngram_state(j, row, row->length, r->out[2], row->b * before, true);
    if (r->out_count < 4 || !r->out[3]) return PITH_OK;
    int64_t wanted = j->s.capacity ? ngram_get(r->in[j->s.in->counts], row->b) : 0;
    for (int64_t i = 0; i < j->s.capacity; i++) {
        int64_t to = (row->b * j->s.capacity + i) * before;
        bool captured = i < wanted && i < row->length;
        if (!captured) {
            for (int64_t k = 0; k < before; k++) ngram_put(r->out[3], to + k, j->s.pad);
        }
        if (captured) ngram_state(j, row, i + 1, r->out[3], to, false);
        PITH_TRY(pith__run_spend(r, &spent, 16 * before));
    }
    return PITH_OK;
}

/* A sequence is a row of the batch or the range between two ends. */
static pith_status ngram_run(pith__run *r) {
    ngram_job j = { .r = r, .ids = r->in[IDS] };
    ngram_read(&j.s, r->node);
    j.past = ngram_input(r, j.s.in->past), j.offsets = ngram_input(r, j.s.in->offsets);
    j.eos = ngram_input(r, j.s.in->eos), j.segments = ngram_input(r, j.s.in->segments);
    j.past_segments = ngram_input(r, j.s.in->past_segments);
    int64_t tokens = pith__tensor_count(j.ids);
    int64_t batch = j.s.packed ? pith__tensor_count(r->in[j.s.in->ends]) - 1 : j.ids->dims[0];
    if (batch < 0) return pith__op_fail(r, "cumulative_sequence_length is empty");
    PITH_TRY(ngram_check(&j, tokens, batch));
    if (r->out_count > 2 && r->out[2] && !j.segments)
        return pith__op_fail(r, "present_segment_ids without segment_ids");
    j.missing = j.eos ? ngram_get(j.eos, 0) : j.s.pad;
    for (int64_t b = 0; b < batch; b++) {
        ngram_row row = { .b = b,
                          .first =
                              j.s.packed ? ngram_get(r->in[j.s.in->ends], b) : b * j.ids->dims[1] };
        row.length =
            j.s.packed ? ngram_get(r->in[j.s.in->ends], b + 1) - row.first : j.ids->dims[1];
        PITH_TRY(ngram_sequence(&j, &row));
    }
    return PITH_OK;
}

#define NGRAM(symbol, name_, max, outputs, types_, attrs_)                                         \
    const pith__op pith__op_##symbol = {                                                           \
        .domain = "com.microsoft",                                                                 \
        .name = name_,                                                                             \
        .since = 1,                                                                                \
        .newest = 1,                                                                               \
        .min_inputs = 3,                                                                           \
        .max_inputs = max,                                                                         \
        .max_outputs = outputs,                                                                    \
        .types = types_,                                                                           \
        .attrs = "max_ngram_size int! 2..32767; n_head_per_ngram int! 1..32767; pad_id int! any; " \
                 "reset_on_eos bool = 0" attrs_,                                                   \
        .infer = ngram_infer,                                                                      \
        .run = ngram_run                                                                           \
    };
NGRAM(NGramHashMapping_ms, "NGramHashMapping", 7, 2, "iiiiiiw", "")
NGRAM(VarlenNGramHashMapping_ms, "VarlenNGramHashMapping", 10, 4, "iiiwiiiwww",
      "; state_update_capacity int 0..8 = 0")
