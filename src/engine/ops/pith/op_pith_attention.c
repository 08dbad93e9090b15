/* op_pith_attention.c - pith.Attention: softmax(scale q k^T + bias) v per text and head, over
 * projected rows.
 *
 *   inputs      q, k, v   [batch, sequence, columns]: the heads lie next to each other in
 *                         a row, and head h begins at column columns[i] + h * size. One value may
 *                         serve for all three. If bit i of head_major is set: [batch, heads,
 *                         sequence, size]. With offsets: [tokens, …], the texts packed
 *               bias      f32, broadcasts to [batch, heads, queries, keys] (may be absent)
 *               key_mask  [batch, keys], zero for keys to skip; or [batch], the number of keys to
 *                         keep; or [2 batch], their ends and then their starts; or [3 batch + 2],
 *                         which begins with their numbers (may be absent)
 *               offsets   i64 [texts + 1]: where each text begins (absent: not ragged)
 *   output      [batch, queries, heads * v_size], or [tokens, heads * v_size]
 *   attributes  heads, kv_heads, size, v_size, scale, columns [3], pitches [3] (the sizes if
 *               absent), head_major; window_left, window_right: query i sees keys i - window_left
 *               to i + window_right, -1: no limit (causal is a window_right of 0); none_left: what
 *               a query gives that has no key left, a pith__none_left; skipped [3]: if that is the
 *               softmax of the scores, the numbers to add to the score of a key that the mask
 *               skips, that is outside of the window, and both; mask_numbers: what numbers other
 *               than 0 and 1 in key_mask mean, a pith__mask_numbers; precision: a pith_precision;
 *               int8 and bf16 are fixed point of 16 bits
 *
 * The numeric definition is that of engine/kernels/attention.h, so the rows of a text are the same
 * bits in both forms. */
#include <math.h>

#include "base/checked.h"
#include "engine/kernels/attention.h"
#include "engine/ops/op.h"

enum { Q, K, V, BIAS, KEY_MASK, OFFSETS, INPUTS };

/* The fewest queries of a part, if the queries of a text and head are split at all. Each part packs
 * the keys and values again, which costs as much as about five queries. Fewer queries waste more of
 * that; more leave threads idle. */
#define ATTENTION_QUERIES 64

typedef struct attention {
    pith__attention_f32_fn *fn;
    const char *kernel; /* for profiles */
    int64_t heads, kv_heads, size, v_size, columns[3], pitches[3], window_left, window_right;
    float scale;
    int head_major;
    pith__none_left none_left;
    pith__mask_numbers mask_numbers;
    float skipped[3];
    pith__attention_f32_fn *plain; /* for rows with numbers of their own */
} attention;

static const pith__type *attention_input(const pith__infer *c, int i) {
    return i < c->in_count ? c->in[i] : NULL;
}

/* Heads and sizes stay below this, so that their products fit 64 bits. */
#define LIMIT ((int64_t)1 << 24)

/* Types and ranks of what may be absent; sizes are checked in the run. */
static pith_status attention_check_extras(const pith__infer *c) {
    const pith__type *bias = attention_input(c, BIAS), *mask = attention_input(c, KEY_MASK),
                     *offsets = attention_input(c, OFFSETS);
    if (bias && bias->dtype != PITH_F32) return pith__op_fail(c, "bias must be float32");
    if (bias && (bias->rank == 0 || bias->rank > 4))
        return pith__op_fail(c, "bias has rank %d", bias->rank);
    if (mask && mask->dtype != PITH_F32 && mask->dtype != PITH_I64 && mask->dtype != PITH_I32 &&
        mask->dtype != PITH_BOOL) {
        return pith__op_fail(c, "key_mask has an unsupported dtype");
    }
    if (mask && (mask->rank == 0 || mask->rank > 2))
        return pith__op_fail(c, "key_mask has rank %d", mask->rank);
    if (offsets && (offsets->dtype != PITH_I64 || offsets->rank != 1))
        return pith__op_fail(c, "offsets must be an int64 vector");
    return PITH_OK;
}

/* From head to head in a row. */
static bool attention_read_pitches(const pith__node *node, int64_t *pitches) {
    size_t count;
    const int64_t *given = pith__node_ints(node, "pitches", &count);
    int64_t size = pith__node_int(node, "size", 0);
    pitches[Q] = pitches[K] = size;
    pitches[V] = pith__node_int(node, "v_size", 0);
    if (given && count != 3) return false;
    if (given) {
        for (int i = 0; i < 3; i++) {
            if (given[i] < 0 || given[i] > LIMIT) return false;
            pitches[i] = given[i];
        }
    }
    return true;
}

/* Everything that a fault in a pass or a file could get wrong is checked here: later steps compute
 * addresses from these attributes. LIMIT keeps the products of two of them inside of 63 bits. */
static pith_status attention_infer(pith__infer *c) {
    static const char *const names[] = { "q", "k", "v" };
    bool ragged = attention_input(c, OFFSETS) != NULL;
    int64_t heads = pith__node_int(c->node, "heads", 0),
            kv_heads = pith__node_int(c->node, "kv_heads", 0);
    int64_t size[3] = { pith__node_int(c->node, "size", 0), 0,
                        pith__node_int(c->node, "v_size", 0) },
            count;
    size[1] = size[0];
    size_t columns_count;
    const int64_t *columns = pith__node_ints(c->node, "columns", &columns_count);
    if (heads < 1 || kv_heads < 1 || heads % kv_heads || size[0] < 1 || size[2] < 1 ||
        heads > LIMIT || size[0] > LIMIT || size[2] > LIMIT)
        return pith__op_fail(c, "impossible numbers of heads or sizes");
    if (columns_count && columns_count != 3)
        return pith__op_fail(c, "columns has %zu numbers, not 3", columns_count);
    for (size_t i = 0; i < columns_count; i++) {
        if (columns[i] < 0 || columns[i] > LIMIT * LIMIT)
            return pith__op_fail(c, "columns[%zu] is impossible", i);
    }
    int64_t pitches[3];
    if (!attention_read_pitches(c->node, pitches))
        return pith__op_fail(c, "pitches are not three possible numbers");
    PITH_TRY(attention_check_extras(c));
    count = heads * size[2];
    for (int i = 0; i < 3; i++) {
        const pith__type *t = c->in[i];
        bool head_major = pith__node_int(c->node, "head_major", 0) >> i & 1;
        if (!t || t->dtype != PITH_F32) return pith__op_fail(c, "%s must be float32", names[i]);
        if (t->rank < 0) continue;
        int want = ragged ? 2 : 3;
        if (head_major && !ragged) want = 4;
        if (t->rank < want) return pith__op_fail(c, "%s has rank %d", names[i], t->rank);
        if (head_major && !ragged) {
            const pith__dim need[] = { PITH_DIM_UNKNOWN, i == Q ? heads : kv_heads,
                                       PITH_DIM_UNKNOWN, size[i] };
            for (int d = 1; d < 4; d += 2) {
                if (pith__dim_known(t->dims[d]) && t->dims[d] != need[d])
                    return pith__op_fail(c, "%s has other heads", names[i]);
            }
            if (t->rank != 4) return pith__op_fail(c, "%s has rank %d", names[i], t->rank);
            continue;
        }
        pith__dim row = pith__dim_product(c->dims, t->dims + want - 1, t->rank - want + 1);
        int64_t used = ((i == Q ? heads : kv_heads) - 1) * pitches[i] + size[i] +
                       (columns_count == 3 ? columns[i] : 0);
        if (pith__dim_known(row) && row < used) {
            return pith__op_fail(c, "%s has rows of %lld, needs %lld", names[i], (long long)row,
                                 (long long)used);
        }
    }
    pith__type_set(&c->out[0], PITH_F32, -1, NULL);
    if (c->in[Q]->rank < 0) return PITH_OK;
    bool head_major = pith__node_int(c->node, "head_major", 0) & 1;
    pith__dim rows = c->in[Q]->dims[head_major ? 2 : 1];
    pith__dim dims[3] = { c->in[Q]->dims[0], ragged ? count : rows, count };
    pith__type_set(&c->out[0], PITH_F32, ragged ? 2 : 3, dims);
    return PITH_OK;
}

/* The 16-bit kernel if the precision asks for it and the machine has it, else f32; `plain` is f32
 * in any case, for rows that are done again. */
static pith_status attention_prepare(pith__prepare *c) {
    attention *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    const int64_t precision = pith__node_int(c->node, "precision", PITH_PRECISION_AUTO);
    if (precision > PITH_PRECISION_F32) s->fn = pith__attention_i16_find(c->isa);
    if (precision > PITH_PRECISION_F32 && !s->fn)
        (void)pith__prepare_find(c, "attention", PITH_I16);
    s->kernel = s->fn ? "attention i16" : "attention f32";
    if (!s->fn) s->fn = PITH_PREPARE_KERNEL(pith__attention_f32_fn, "attention", PITH_F32, c);
    s->plain = PITH_PREPARE_KERNEL(pith__attention_f32_fn, "attention", PITH_F32, c);
    if (!s->fn || !s->plain)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no float32 attention");
    s->heads = pith__node_int(c->node, "heads", 0);
    s->kv_heads = pith__node_int(c->node, "kv_heads", 0);
    s->size = pith__node_int(c->node, "size", 0);
    s->v_size = pith__node_int(c->node, "v_size", 0);
    s->scale = pith__node_float(c->node, "scale", 1.0f);
    s->window_left = pith__node_int(c->node, "window_left", -1);
    s->window_right = pith__node_int(c->node, "window_right", -1);
    s->head_major = pith__node_choice(c->node, "head_major", 0);
    s->none_left = (pith__none_left)pith__node_int(c->node, "none_left", PITH_NONE_LEFT_MEAN);
    s->mask_numbers =
        (pith__mask_numbers)pith__node_int(c->node, "mask_numbers", PITH_MASK_ANY_KEEPS);
    size_t count;
    const int64_t *columns = pith__node_ints(c->node, "columns", &count);
    if (columns) {
        for (size_t i = 0; i < 3 && i < count; i++) s->columns[i] = columns[i];
    }
    const float *skipped = pith__node_floats(c->node, "skipped", &count);
    if (skipped) {
        for (size_t i = 0; i < 3 && i < count; i++) s->skipped[i] = skipped[i];
    }
    if (!attention_read_pitches(c->node, s->pitches))
        return pith__fail(c->err, PITH_ERR_FORMAT, "pitches are impossible");
    c->state = s;
    return PITH_OK;
}

/* The longest run of keys a part may meet, from the dims of k. */
static int64_t attention_keys_max(const attention *s, const int64_t *dims, bool ragged) {
    if (ragged) return dims[0];
    return dims[s->head_major >> K & 1 ? 2 : 1];
}

/* Floats per worker, rounded so that the next worker's part is aligned: the kernel's, and what is
 * added to a row of scores. */
static int64_t attention_worker_floats(const attention *s, int64_t keys) {
    return (pith__attention_f32_scratch(keys, s->size, s->v_size) + keys + 15) / 16 * 16;
}

/* Per worker the kernel's memory and one row of scores, and one byte per key for the mask. */
static pith_status attention_scratch(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes) {
    const attention *s = state;
    bool ragged = attention_input(c, OFFSETS) != NULL;
    int64_t keys = attention_keys_max(s, c->in[K]->dims, ragged), floats, total;
    if (pith__mul_overflows(attention_worker_floats(s, keys), (int64_t)threads, &floats) ||
        pith__mul_overflows(floats, (int64_t)sizeof(float), &total))
        return pith__fail_memory(c->err, SIZE_MAX);
    int64_t mask = attention_input(c, KEY_MASK) ? c->in[K]->dims[0] * keys : 0;
    if (pith__add_overflows(total, mask, &total)) return pith__fail_memory(c->err, SIZE_MAX);
    *bytes = (size_t)total;
    return PITH_OK;
}

typedef struct work {
    const attention *s;
    const pith__run *r;
    const int64_t *offsets; /* NULL: not ragged */
    uint8_t *mask;          /* [batch, keys] or NULL */
    bool odd;               /* it holds numbers other than 0 and 1 that mean something else */
    const pith_tensor *bias;
    int64_t bias_stride[3]; /* batch, head, query */
    int64_t batch, queries, keys, row_floats[3], blocks, block, worker_floats;
} work;

/* Where row `row` of sequence b, head h of input i begins. */
static const float *attention_rows_of(const work *w, int i, int64_t b, int64_t head, int64_t row) {
    const attention *s = w->s;
    const pith_tensor *t = w->r->in[i];
    int64_t size = i == V ? s->v_size : s->size, at = s->columns[i] + head * s->pitches[i];
    if (w->offsets) return (const float *)t->data + (w->offsets[b] + row) * w->row_floats[i] + at;
    if (s->head_major >> i & 1) {
        return (const float *)t->data + ((b * t->dims[1] + head) * t->dims[2] + row) * size;
    }
    return (const float *)t->data + (b * t->dims[1] + row) * w->row_floats[i] + at;
}

static bool attention_in_window(const attention *s, int64_t query, int64_t key) {
    return (s->window_left < 0 || query - key <= s->window_left) &&
           (s->window_right < 0 || key - query <= s->window_right);
}

/* The number at a place of key_mask, whatever its dtype. */
static double attention_mask_number(const pith_tensor *t, int64_t i) {
    switch (t->dtype) {
    case PITH_F32: return (double)((const float *)t->data)[i];
    case PITH_I64: return (double)((const int64_t *)t->data)[i];
    case PITH_I32: return (double)((const int32_t *)t->data)[i];
    default: return (double)(((const uint8_t *)t->data)[i] != 0);
    }
}

/* What the mask and the window add to the score of a key, as numbers. */
static float attention_skip_number(const work *w, int64_t b, int64_t query, int64_t key) {
    const float *skipped = w->s->skipped;
    float outside = attention_in_window(w->s, query, key) ? 0.0f : skipped[1];
    int64_t at = b * w->keys + key;
    bool numbers = w->mask && w->r->in[KEY_MASK]->rank == 2;
    double number = !w->mask || w->mask[at] ? 1.0 : 0.0;
    if (numbers) number = attention_mask_number(w->r->in[KEY_MASK], at);
    if (number == 1.0) return outside;
    if (number == 0.0) return outside != 0.0f ? skipped[2] : skipped[0];
    if (w->s->mask_numbers != PITH_MASK_LINEAR) return outside;
    float padded = skipped[0] * (1.0f - (float)number);
    return outside != 0.0f && skipped[2] == outside ? outside : padded + outside;
}

/* One row with numbers added to all its scores, in row: of a query that has no key left, or of an
 * odd mask. Where the largest number absorbs the scores, the keys that have it count alike. */
static void attention_redo_row(const work *w, const pith__attention *a, int64_t i, float *row,
                               float *scratch) {
    float largest = -INFINITY;
    for (int64_t j = 0; j < a->keys; j++) largest = row[j] > largest ? row[j] : largest;
    pith__attention one = *a;
    one.q += i * a->q_stride;
    one.o += i * a->o_stride;
    one.queries = 1;
    one.key_mask = NULL;
    one.causal_offset = INT64_MAX;
    one.window_left = -1;
    one.bias = row;
    one.bias_stride = 0;
    if (largest <= PITH_ABSORBS && largest > -INFINITY) {
        one.scale = 0.0f;
        for (int64_t j = 0; j < a->keys; j++) row[j] = row[j] == largest ? 0.0f : -INFINITY;
    }
    w->s->plain(&one, scratch);
}

/* Rows that have no key left, or all rows if a mask number is odd, get the softmax of scores that
 * include the numbers for skipped keys. One row at a time, by the f32 kernel. */
static void attention_redo_rows(const work *w, const pith__attention *a, int64_t b, int64_t first,
                                float *scratch) {
    float *row = scratch + w->worker_floats - a->keys;
    for (int64_t i = 0; i < a->queries; i++) {
        bool redo = true;
        if (!w->odd) {
            for (int64_t j = 0; redo && j < a->keys; j++)
                redo = (a->key_mask && !a->key_mask[j]) || !attention_in_window(w->s, first + i, j);
        }
        if (!redo) continue;
        for (int64_t j = 0; j < a->keys; j++)
            row[j] = (a->bias ? a->bias[i * a->bias_stride + j] : 0.0f) +
                     attention_skip_number(w, b, first + i, j);
        attention_redo_row(w, a, i, row, scratch);
    }
}

/* A bias may leave a query without a key too. */
static void attention_clear_nan_rows(const pith__attention *a) {
    for (int64_t i = 0; i < a->queries; i++) {
        float *o = a->o + i * a->o_stride;
        if (isnan(o[0])) memset(o, 0, (size_t)a->dv * sizeof *o);
    }
}

/* A block of queries of one head of one text. A ragged graph makes as many blocks for each text as
 * the longest one needs; those behind a text's end have nothing to do. */
static void attention_part(void *context, size_t index, int worker) {
    const work *w = context;
    const attention *s = w->s;
    int64_t block = (int64_t)index % w->blocks, head = (int64_t)index / w->blocks % s->heads;
    int64_t b = (int64_t)index / w->blocks / s->heads, kv_head = head / (s->heads / s->kv_heads);
    int64_t queries = w->offsets ? w->offsets[b + 1] - w->offsets[b] : w->queries,
            first = block * w->block;
    if (first >= queries) return;
    pith__attention a = {
        .q = attention_rows_of(w, Q, b, head, first),
        .k = attention_rows_of(w, K, b, kv_head, 0),
        .v = attention_rows_of(w, V, b, kv_head, 0),
        .q_stride = w->row_floats[Q],
        .k_stride = w->row_floats[K],
        .v_stride = w->row_floats[V],
        .o_stride = s->heads * s->v_size,
        .queries = queries - first < w->block ? queries - first : w->block,
        .keys = w->offsets ? queries : w->keys,
        .d = s->size,
        .dv = s->v_size,
        .scale = s->scale,
        .causal_offset = INT64_MAX,
        .window_left = -1,
        .window_right = -1,
        .none_left = s->none_left,
    };
    if (s->window_left >= 0 || s->window_right >= 0) {
        /* The kernel counts both limits from its causal diagonal, here the last key that row
         * `first` may see. */
        int64_t right = s->window_right >= 0 && s->window_right < a.keys ? s->window_right : a.keys;
        a.causal_offset = first + right;
        if (s->window_left >= 0)
            a.window_left = (s->window_left < a.keys ? s->window_left : a.keys) + right;
    }
    int64_t out_row = (w->offsets ? w->offsets[b] : b * w->queries) + first;
    a.o = (float *)w->r->out[0]->data + out_row * a.o_stride + head * s->v_size;
    if (w->bias) {
        a.bias = (const float *)w->bias->data + b * w->bias_stride[0] + head * w->bias_stride[1] +
                 first * w->bias_stride[2];
        a.bias_stride = w->bias_stride[2];
    }
    if (w->mask) a.key_mask = w->mask + b * w->keys;
    float *scratch = (float *)w->r->scratch + worker * w->worker_floats;
    s->fn(&a, scratch);
    if (s->none_left == PITH_NONE_LEFT_SCORES || w->odd)
        attention_redo_rows(w, &a, b, first, scratch);
    if (s->none_left == PITH_NONE_LEFT_ZERO && w->bias) attention_clear_nan_rows(&a);
}

/* The mask as bytes; *odd: rows must be done with its numbers. */
static pith_status attention_fill_mask(work *w, const pith__run *r, const pith_tensor *t) {
    bool lengths = t->rank == 1, starts = lengths && w->batch && t->dims[0] == 2 * w->batch;
    bool fits = lengths ? starts || t->dims[0] == w->batch || t->dims[0] == 3 * w->batch + 2
                        : t->rank == 2 && t->dims[0] == w->batch && t->dims[1] == w->keys;
    if (!fits || (lengths && t->dtype != PITH_I64 && t->dtype != PITH_I32))
        return pith__op_fail(r, "the key mask does not have the shape of the keys");
    for (int64_t i = 0; i < w->batch * w->keys; i++) {
        int64_t b = i / w->keys, key = i % w->keys;
        double number = attention_mask_number(t, lengths ? b : i);
        w->mask[i] = !lengths
                         ? number != 0.0
                         : (double)key < number &&
                               (!starts || (double)key >= attention_mask_number(t, w->batch + b));
        if (lengths || number == 0.0 || number == 1.0 || w->s->mask_numbers == PITH_MASK_ANY_KEEPS)
            continue;
        if (w->s->mask_numbers == PITH_MASK_BINARY)
            return pith__fail(r->err, PITH_ERR_ARGUMENT,
                              "the attention mask holds %g at [%lld, %lld]: attention was fused "
                              "for masks of 0 and 1; "
                              "open the model with optimization 2 for other numbers",
                              number, (long long)b, (long long)key);
        w->odd = true;
    }
    return PITH_OK;
}

/* Strides of the bias along batch, heads and queries; 0 where it broadcasts. */
static pith_status attention_bias_strides(work *w, const pith__run *r) {
    const pith_tensor *t = w->bias;
    int64_t want[4] = { w->batch, w->s->heads, w->queries, w->keys }, stride = 1;
    for (int d = 3; d >= 0; d--) {
        int at = d - (4 - t->rank);
        int64_t size = at >= 0 ? t->dims[at] : 1;
        bool covers = w->offsets && d >= 2 ? size >= want[d] : size == want[d];
        if (!covers && (size != 1 || d == 3))
            return pith__op_fail(r, "the bias does not broadcast to the scores");
        if (d < 3) w->bias_stride[d] = size == 1 ? 0 : stride;
        stride *= size;
    }
    return PITH_OK;
}

/* Offsets rise from 0 to the number of tokens. */
static pith_status attention_check_offsets(const pith__run *r, const int64_t *offsets,
                                           int64_t texts, int64_t tokens) {
    for (int64_t b = 0; b < texts; b++) {
        if (offsets[b] > offsets[b + 1]) return pith__op_fail(r, "offsets descend");
    }
    if (texts < 0 || offsets[0] != 0 || offsets[texts] != tokens)
        return pith__op_fail(r, "offsets do not cover the tokens");
    return PITH_OK;
}

/* Cuts the queries so that there are PARTS_PER_THREAD parts per thread: enough for all threads to
 * end at about the same time. */
static void attention_split_queries(work *w, int threads) {
    enum { PARTS_PER_THREAD = 6 };
    int64_t pairs = w->batch * w->s->heads,
            wanted = threads > 1 ? (int64_t)threads * PARTS_PER_THREAD : 1,
            least =
                pith__run_parts_least(w->r, (double)pairs * (double)w->queries * (double)w->keys *
                                                (double)(w->s->size + w->s->v_size));
    if (wanted < least) wanted = least;
    int64_t blocks = pairs < wanted ? (wanted + pairs - 1) / pairs : 1,
            most = w->queries / ATTENTION_QUERIES;
    if (blocks > most) blocks = most > 1 ? most : 1;
    w->block = (w->queries + blocks - 1) / blocks;
    w->blocks = (w->queries + w->block - 1) / w->block;
}

static const pith_tensor *attention_optional(const pith__run *r, int i) {
    return i < r->in_count ? r->in[i] : NULL;
}

/* row_floats is the distance between rows of q, k and v: of a head's rows if it is head-major, else
 * of all heads' columns. */
static pith_status attention_run(pith__run *r) {
    const attention *s = r->state;
    const pith_tensor *q = r->in[Q], *k = r->in[K], *v = r->in[V],
                      *offsets = attention_optional(r, OFFSETS);
    work w = { .s = s, .r = r, .bias = attention_optional(r, BIAS), .batch = q->dims[0] };
    if (offsets) {
        w.offsets = offsets->data;
        w.batch = offsets->dims[0] - 1;
        if (k->dims[0] != q->dims[0] || v->dims[0] != q->dims[0])
            return pith__op_fail(r, "q, k and v differ in tokens");
        PITH_TRY(attention_check_offsets(r, w.offsets, w.batch, q->dims[0]));
        for (int64_t b = 0; b < w.batch; b++) {
            int64_t length = w.offsets[b + 1] - w.offsets[b];
            if (length > w.keys) w.keys = w.queries = length;
        }
    } else {
        w.queries = q->dims[s->head_major & 1 ? 2 : 1];
        w.keys = attention_keys_max(s, k->dims, false);
        int64_t v_keys = v->dims[s->head_major >> V & 1 ? 2 : 1];
        if (k->dims[0] != w.batch || v->dims[0] != w.batch || v_keys != w.keys) {
            return pith__op_fail(r, "q, k and v differ in batch or length");
        }
    }
    if (pith__tensor_count(r->out[0]) == 0) return PITH_OK;
    for (int i = 0; i < 3; i++) {
        bool head_major = !offsets && s->head_major >> i & 1;
        int64_t rows = offsets ? r->in[i]->dims[0] : r->in[i]->dims[0] * r->in[i]->dims[1];
        if (head_major)
            w.row_floats[i] = i == V ? s->v_size : s->size;
        else
            w.row_floats[i] = pith__tensor_count(r->in[i]) / (rows ? rows : 1);
    }
    if (w.bias) PITH_TRY(attention_bias_strides(&w, r));
    w.worker_floats = attention_worker_floats(s, offsets ? k->dims[0] : w.keys);
    if (attention_optional(r, KEY_MASK) && !offsets) {
        w.mask = (uint8_t *)((float *)r->scratch + w.worker_floats * r->exec->threads);
        PITH_TRY(attention_fill_mask(&w, r, r->in[KEY_MASK]));
    }
    attention_split_queries(&w, r->exec->threads);
    pith__run_parallel(r, attention_part, &w, (size_t)(w.batch * s->heads * w.blocks));
    return PITH_OK;
}

/* Every query with every key of its text: what masks and windows leave out is counted as well. */
static void attention_cost(const pith__run *r, pith__cost *cost) {
    const attention *s = r->state;
    const pith_tensor *q = r->in[Q], *offsets = attention_optional(r, OFFSETS);
    int64_t rows = pith__tensor_count(r->out[0]) / (s->heads * s->v_size);
    double pairs =
        offsets ? 0 : (double)rows * (double)attention_keys_max(s, r->in[K]->dims, false);
    if (offsets && offsets->data) {
        for (int64_t b = 0; b + 1 < offsets->dims[0]; b++) {
            const int64_t *at = (const int64_t *)offsets->data + b;
            pairs += (double)(at[1] - at[0]) * (double)(at[1] - at[0]);
        }
    }
    cost->operations = 2.0 * pairs * (double)(s->heads * (s->size + s->v_size));
    /* One value may serve for all three: only its own rows are read. */
    if (q == r->in[K] || q->data == r->in[K]->data)
        cost->bytes = (double)(q->bytes + r->out[0]->bytes);
    cost->kernel = s->kernel;
}

const pith__op pith__op_Attention_pith = {
    .domain = "pith",
    .name = "Attention",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = INPUTS,
    .max_outputs = 1,
    .attrs =
        "columns ints 0..; head_major int 0..7; heads int! 1..; kv_heads int! 1..; mask_numbers "
        "int 0..2 = 0; "
        "none_left int 0..3 = 1; pitches ints 0..; precision int 0..3 = 0; scale float = 1; size "
        "int! 1..; "
        "skipped floats; v_size int! 1..; window_left int -1.. = -1; window_right int -1.. = -1",
    .infer = attention_infer,
    .prepare = attention_prepare,
    .scratch = attention_scratch,
    .run = attention_run,
    .cost = attention_cost,
};
