/* conv_int.c - see conv_int.h. */
#include "engine/ops/shared/conv_int.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/packed_constants.h"

/* TILE: windows of one part, whose rows stay in L2. BLOCK: maps whose sums are written, so that
 * they stay in L1. COLUMNS: maps of a part where there are few tiles. MOST_TERMS: products of a sum
 * that fit 32 bits, whatever the numbers are. MOST_SETS: bytes of a sum that is a weight less its
 * zero point. SLACK: bytes behind each part of the scratch. */
enum {
    TILE = 64,
    BLOCK = 128,
    COLUMNS = 64,
    MOST_SETS = 3,
    SLACK = 16,
    MOST_TERMS = 32768,
    GRAIN = 1 << 14
};

typedef struct weights {
    const pith__conv_int *p;
    const pith_tensor *from, *zero; /* zero: depthwise; NULL: none */
} weights;

/* Elements of the packed weights of depthwise windows. */
static int64_t conv_int_quads(const pith__conv_int *p) {
    const int64_t blocks = (p->groups + PITH_DEPTHWISE_BLOCK - 1) / PITH_DEPTHWISE_BLOCK;
    return blocks * PITH_DEPTHWISE_BLOCK * ((p->sets * p->taps + 3) / 4);
}

/* Element i, or the only one. */
static int32_t conv_int_byte(const pith_tensor *t, int64_t i) {
    if (t->bytes == 1) i = 0;
    return t->dtype == PITH_U8 ? ((const uint8_t *)t->data)[i] : ((const int8_t *)t->data)[i];
}

/* Weights less their zero points. What 8 bits do not hold of them stands in the next set of taps.
 */
static void conv_int_fill_quads(void *packed, const void *context, size_t part, void *scratch) {
    const weights *w = context;
    const pith__conv_int *p = w->p;
    (void)part, (void)scratch;
    memset(packed, 0, (size_t)conv_int_quads(p) * sizeof(int32_t));
    for (int64_t c = 0; c < p->groups; c++) {
        const int32_t zero = w->zero ? conv_int_byte(w->zero, c) : 0;
        for (int64_t tap = 0; tap < p->taps; tap++) {
            int32_t left = conv_int_byte(w->from, c * p->taps + tap) - zero;
            for (int64_t set = 0; set < p->sets; set++) {
                const int32_t capped = left > 127 ? 127 : left,
                              held = capped < -128 ? -128 : capped;
                const int64_t t = set * p->taps + tap;
                ((int8_t *)packed)[pith__depthwise_place(t, c, p->sets * p->taps) * 4 + t % 4] =
                    (int8_t)held;
                left -= held;
            }
        }
    }
}

/* How many sets of 8 bits hold the weights of a type less a zero point. */
static int conv_int_sets(pith_dtype type, int32_t zero) {
    const int32_t least = (type == PITH_U8 ? 0 : -128) - zero, most = least + 255;
    int sets = 1;
    while (least < -128 * sets || most > 127 * sets) sets++;
    return sets;
}

/* One panel of 16 maps of a group, k in the order tap, channel; bytes without sign are made signed.
 */
static void conv_int_fill_panel(void *packed, const void *context, size_t part, void *scratch) {
    const weights *w = context;
    const pith__conv_int *p = w->p;
    int64_t panels = (p->maps + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL,
            group = (int64_t)part / panels, n0 = (int64_t)part % panels * PITH_GEMM_PANEL;
    int64_t n = p->maps - n0 < PITH_GEMM_PANEL ? p->maps - n0 : PITH_GEMM_PANEL,
            k = p->taps * p->channels;
    const uint8_t *from = (const uint8_t *)w->from->data + (group * p->maps + n0) * k;
    uint8_t flip = w->from->dtype == PITH_U8 ? 0x80 : 0;
    int8_t *bytes = scratch;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < p->channels; c++) {
            for (int64_t t = 0; t < p->taps; t++)
                bytes[(t * p->channels + c) * n + j] =
                    (int8_t)(from[(j * p->channels + c) * p->taps + t] ^ flip);
        }
    }
    p->pack((char *)packed + group * p->packed_size +
                n0 / PITH_GEMM_PANEL * pith__gemm_int8_panel_bytes(k),
            bytes, n, 1, k, n, 0, n);
}

/* Panels of 16 maps. u8 weights are stored minus 128, which the layout's name says. */
static pith_status conv_int_pack(pith__conv_int *p, pith__prepare *c, int input) {
    int64_t k = p->taps * p->channels;
    size_t bytes;
    weights *w = pith__arena_array(c->arena, 1, sizeof *w);
    p->packed_size = pith__gemm_int8_packed_size(k, p->maps);
    if (!w || p->packed_size < 0 ||
        pith__mul_overflows((size_t)p->packed_size, (size_t)p->groups, &bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    *w = (weights){ p, c->in[input]->data, NULL };
    pith__pack pack = { .layout = c->in[input]->dtype == PITH_U8 ? "conv-u8-128x16" : "conv-i8x16",
                        .bytes = bytes,
                        .inputs = 1u << input,
                        .fill = conv_int_fill_panel,
                        .context = w,
                        .parts = (size_t)(p->groups *
                                          ((p->maps + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL)),
                        .scratch = (size_t)k * PITH_GEMM_PANEL };
    return pith__prepare_pack(c, &p->packed, &pack);
}

/* Depthwise weights are packed less their zero points, which are constants nearly always. */
static pith_status conv_int_pack_quads(pith__conv_int *p, pith__prepare *c,
                                       const pith__conv_int_inputs *in) {
    const bool zero = in->w_zero >= 0 && in->w_zero < c->in_count && c->in[in->w_zero];
    p->sets = MOST_SETS;
    if (zero && !(pith__pack_can(c, in->w_zero) && c->in[in->w_zero]->data)) return PITH_OK;
    weights *w = pith__arena_array(c->arena, 1, sizeof *w);
    if (!w) return pith__fail_memory(c->err, sizeof *w);
    *w = (weights){ p, c->in[in->w]->data, zero ? c->in[in->w_zero]->data : NULL };
    p->sets = zero ? 1 : conv_int_sets(c->in[in->w]->dtype, 0);
    if (zero) {
        for (int64_t i = 0; i < (int64_t)w->zero->bytes; i++) {
            const int sets = conv_int_sets(c->in[in->w]->dtype, conv_int_byte(w->zero, i));
            if (sets > p->sets) p->sets = sets;
        }
    }
    p->ready = true;
    pith__pack pack = { .layout = "conv-quads",
                        .bytes = (size_t)conv_int_quads(p) * sizeof(int32_t),
                        .inputs = 1u << in->w,
                        .fill = conv_int_fill_quads,
                        .context = w,
                        .parts = 1 };
    return pith__prepare_pack(c, &p->packed, &pack);
}

bool pith__conv_int_suits(const pith__type *w, int64_t groups) {
    if (w->rank < 3 || w->rank > 4 || groups < 1 || (w->dtype != PITH_U8 && w->dtype != PITH_I8))
        return false;
    const int64_t channels = w->dims[1], taps = pith__window_count(w->dims + 2, w->rank - 2);
    return channels > 0 && w->dims[0] / groups > 0 && taps > 0 && channels <= MOST_TERMS &&
           taps <= MOST_TERMS / channels;
}

/* Not possible: kernels or constant weights are missing, and the caller takes another way. Families
 * whose kernel depends on the CPU are looked up by name if none is found, so that a selective build
 * still records them. */
pith_status pith__conv_int_prepare(pith__conv_int *p, pith__prepare *c,
                                   const pith__conv_int_inputs *in) {
    const pith__type *w = c->in[in->w];
    p->groups = pith__node_int(c->node, "group", 1);
    p->x_last = pith__node_int(c->node, "x_last", 0);
    p->y_last = pith__node_int(c->node, "y_last", 0);
    if (!pith__pack_can(c, in->w) || !pith__conv_int_suits(w, p->groups)) return PITH_OK;
    p->rank = w->rank - 2;
    p->channels = w->dims[1];
    p->maps = w->dims[0] / p->groups;
    p->taps = pith__window_count(w->dims + 2, p->rank);
    p->gemm = pith__gemm_i8_find(NULL, p->taps * p->channels, c->isa);
    if (!p->gemm) (void)pith__prepare_find(c, "gemm", PITH_I8);
    p->pack = PITH_PREPARE_KERNEL(pith__gemm_pack_i8_fn, "gemm_pack", PITH_I8, c);
    p->turn = PITH_PREPARE_KERNEL(pith__turn_bytes_fn, "turn_bytes", PITH_U8, c);
    p->sum_taps = (pith__depthwise_bytes_fn *)pith__kernel_find_vnni("depthwise_vnni", "depthwise",
                                                                     PITH_U8, c->isa);
    if (!p->sum_taps) (void)pith__prepare_find(c, "depthwise", PITH_U8);
    p->requantize = PITH_PREPARE_KERNEL(pith__requantize_fn, "requantize", PITH_I32, c);
    if (!p->gemm || !p->pack || !p->turn || !p->sum_taps || !p->requantize) return PITH_OK;
    p->possible = true;
    p->wide = in->y_scale < 0;
    p->depthwise = p->channels == 1 && p->maps == 1;
    return p->depthwise ? conv_int_pack_quads(p, c, in) : conv_int_pack(p, c, in->w);
}

/* The padded picture and the parts of the scratch, in bytes. */
typedef struct room {
    int64_t rows, columns; /* of the picture */
    /* bytes: before they are turned */
    size_t picture, maps, taps, weights, tile, sums, bytes, row_sums, worker;
} room;

static bool conv_int_add(size_t *bytes, int64_t count, int64_t each, size_t size, size_t *own) {
    int64_t n;
    if (pith__mul_overflows(count, each, &n) || n < 0 || pith__mul_overflows((size_t)n, size, own))
        return false;
    return !pith__add_overflows(*own, (size_t)63 + SLACK, own) &&
           (*own &= ~(size_t)63, !pith__add_overflows(*bytes, *own, bytes));
}

static bool conv_int_axis_length(const pith__window *w, int d, int64_t *length) {
    int64_t last, reach;
    return !pith__mul_overflows(w->out[d] - 1, w->stride[d], &last) &&
           !pith__mul_overflows(w->kernel[d] - 1, w->dilation[d], &reach) &&
           !pith__add_overflows(last, reach + 1, length);
}

/* Where each part of the scratch lies: the padded picture, the numbers per map, the tables of taps,
 * then each worker's tile and sums. Scratch and run both come here. False: a size overflows. */
static bool conv_int_room(const pith__conv_int *p, const pith__window *w, int threads, room *m,
                          size_t *bytes) {
    int64_t all = p->groups * p->maps, places;
    size_t workers;
    m->rows = 1;
    m->worker = 0;
    return (w->rank == 1 || conv_int_axis_length(w, 0, &m->rows)) &&
           conv_int_axis_length(w, w->rank - 1, &m->columns) &&
           !pith__mul_overflows(m->rows, m->columns, &places) &&
           conv_int_add(bytes, places, p->groups * p->channels, 1, &m->picture) &&
           conv_int_add(bytes, all, 3, sizeof(int32_t), &m->maps) &&
           conv_int_add(bytes, p->depthwise ? p->sets * p->taps : p->taps, 1, sizeof(int64_t),
                        &m->taps) &&
           conv_int_add(bytes, p->depthwise && !p->ready ? conv_int_quads(p) : 0, 1,
                        sizeof(int32_t), &m->weights) &&
           conv_int_add(&m->worker, TILE, p->taps * p->channels, 1, &m->tile) &&
           conv_int_add(&m->worker, p->wide ? TILE : 0, p->depthwise ? all : BLOCK, sizeof(int32_t),
                        &m->sums) &&
           conv_int_add(&m->worker, p->wide || p->y_last ? 0 : TILE, p->depthwise ? all : p->maps,
                        1, &m->bytes) &&
           conv_int_add(&m->worker, TILE, 1, sizeof(int32_t), &m->row_sums) &&
           !pith__mul_overflows(m->worker, (size_t)(threads > 0 ? threads : 1), &workers) &&
           !pith__add_overflows(*bytes, workers + 64, bytes);
}

bool pith__conv_int_scratch(const pith__conv_int *p, const pith__window *w, int threads,
                            size_t *bytes) {
    room m;
    return conv_int_room(p, w, threads, &m, bytes);
}

typedef struct job {
    const pith__conv_int *p;
    const pith__window *w;
    room m;
    const uint8_t *x;       /* of one picture [channels, …], or [… , channels] */
    uint8_t *turned;        /* where the picture goes */
    const uint8_t *picture; /* [rows, columns, channels]: turned, or x itself */
    int64_t columns;        /* of the picture */
    uint8_t x_flip, x_zero, y_flip;
    int64_t all_channels, windows, tiles, column_parts, rows_per_part;
    int64_t tile_rows, tile_columns; /* windows of a depthwise part */
    uint8_t *y;                      /* of one picture, or wide */
    int32_t *wide;
    bool direct; /* the picture's places are the rows of the matmul */
    int64_t *offsets;
    int32_t *add, *zeros;
    const int32_t *weights; /* depthwise */
    float *scale;
    bool needs_rows;
    char *workers;
    pith__requantize out; /* of the first map */
} job;

/* Copies and flips the top bit where i8 becomes u8, 32 bytes at a time, which compilers make
 * vectors of. */
static void conv_int_copy(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip) {
    if (!flip) {
        memcpy(to, from, (size_t)n);
        return;
    }
    const uint64_t flips = flip * 0x0101010101010101u;
    for (; n >= 32; n -= 32, to += 32, from += 32) {
        uint64_t eight[4];
        memcpy(eight, from, sizeof eight);
        for (int i = 0; i < 4; i++) eight[i] ^= flips;
        memcpy(to, eight, sizeof eight);
    }
    for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ flip;
}

/* Whether the input is what the windows would read of its copy. */
static bool conv_int_is_picture(const job *j) {
    bool same = j->p->x_last && !j->x_flip;
    for (int d = 0; d < j->w->rank; d++)
        same = same && !j->w->begin[d] &&
               (d < j->w->rank - 1 ? j->m.rows : j->m.columns) <= j->w->in[d];
    return same;
}

/* Rows of the padded picture. */
static void conv_int_turn_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__window *w = j->w;
    int last = w->rank - 1;
    int64_t in_rows = last ? w->in[0] : 1, in_columns = w->in[last], top = last ? w->begin[0] : 0,
            left = w->begin[last];
    int64_t first = (int64_t)part * j->rows_per_part, row_bytes = j->m.columns * j->all_channels;
    (void)worker;
    for (int64_t i = first; i < first + j->rows_per_part && i < j->m.rows; i++) {
        uint8_t *to = j->turned + i * row_bytes;
        int64_t from = i - top,
                end = left + in_columns < j->m.columns ? left + in_columns : j->m.columns;
        bool inside = from >= 0 && from < in_rows && end > left;
        if (!inside) {
            memset(to, j->x_zero, (size_t)row_bytes);
            continue;
        }
        memset(to, j->x_zero, (size_t)(left * j->all_channels));
        if (j->p->x_last)
            conv_int_copy(to + left * j->all_channels, j->x + from * in_columns * j->all_channels,
                          (end - left) * j->all_channels, j->x_flip);
        else
            j->p->turn(to + left * j->all_channels, j->all_channels, j->x + from * in_columns,
                       in_rows * in_columns, end - left, j->all_channels, j->x_flip);
        memset(to + end * j->all_channels, j->x_zero,
               (size_t)((j->m.columns - end) * j->all_channels));
    }
}

/* The first byte of a window's places. */
static int64_t conv_int_place(const job *j, int64_t window) {
    const pith__window *w = j->w;
    int last = w->rank - 1;
    int64_t row = last ? window / w->out[last] * w->stride[0] : 0,
            column = window % w->out[last] * w->stride[last];
    return (row * j->columns + column) * j->all_channels;
}

/* The windows of places [o0, o1) as rows. Where taps of a kernel row lie next to each other they
 * are one copy; a short one always copies SLACK bytes, since a copy of fixed size needs no call. */
static void conv_int_fill_rows(const job *j, uint8_t *rows, int64_t group, int64_t o0, int64_t o1) {
    const pith__conv_int *p = j->p;
    int last = j->w->rank - 1;
    /* taps of a kernel row lie next to each other */
    bool run = p->groups == 1 && j->w->dilation[last] == 1;
    int64_t each = run ? j->w->kernel[last] : 1;
    size_t bytes = (size_t)(each * p->channels);
    const bool few = bytes <= SLACK && j->turned; /* what is copied too much is overwritten by the
                                                     next */
    for (int64_t o = o0; o < o1; o++) {
        const uint8_t *from = j->picture + conv_int_place(j, o) + group * p->channels;
        for (int64_t t = 0; t < p->taps; t += each, rows += bytes) {
            if (few)
                memcpy(rows, from + j->offsets[t], SLACK);
            else
                memcpy(rows, from + j->offsets[t], bytes);
        }
    }
}

/* What becomes of sums of windows from o on and maps from `map` on. Bytes whose maps are not the
 * last axis go to *bytes first. */
static pith__requantize conv_int_out(const job *j, const int32_t *row_sums, int64_t map, int64_t o,
                                     uint8_t *bytes, int64_t maps) {
    const bool last = j->p->y_last;
    pith__requantize out = j->out;
    out.row_sums = row_sums;
    out.add = j->add + map;
    out.zeros = j->needs_rows ? j->zeros + map : NULL;
    out.plane = j->windows;
    if (j->p->wide) {
        out.wide = j->wide + map * j->windows + o;
        return out;
    }
    out.scale = j->scale + map;
    out.step = last ? j->p->groups * j->p->maps : maps;
    out.y = last ? j->y + o * out.step + map : bytes;
    return out;
}

/* Bytes of `windows` windows from o on and `maps` maps, to their planes. */
static void conv_int_place_bytes(const job *j, const uint8_t *bytes, int64_t map, int64_t o,
                                 int64_t windows, int64_t maps) {
    if (!j->p->wide && !j->p->y_last)
        j->p->turn(j->y + map * j->windows + o, j->windows, bytes, maps, maps, windows, 0);
}

/* Maps [n0, n1) of a tile. Results of i32 (wide) go through a block of sums that stays in the
 * cache; the others are requantised inside of the matmul. */
static void conv_int_multiply(const job *j, char *own, pith__gemm_int8 *g, const int32_t *row_sums,
                              int64_t group, int64_t o0, int64_t n0, int64_t n1) {
    const pith__conv_int *p = j->p;
    uint8_t *bytes = (uint8_t *)own + j->m.tile + j->m.sums;
    const int64_t block = p->wide ? BLOCK : n1 - n0;
    for (int64_t n = n0; n < n1; n += block) {
        const int64_t map = group * p->maps + n, maps = n1 - n < block ? n1 - n : block;
        pith__requantize out = conv_int_out(j, row_sums, map, o0, bytes, maps);
        g->b = (const char *)p->packed + group * p->packed_size +
               n / PITH_GEMM_PANEL * pith__gemm_int8_panel_bytes(g->k);
        g->n = g->ldc = maps;
        if (p->wide)
            g->c = (int32_t *)(void *)(own + j->m.tile);
        else
            g->bytes = &out;
        p->gemm(g, 0, g->m, 0, maps);
        if (p->wide) p->requantize(&out, g->c, maps, 0, g->m, 0, maps);
        conv_int_place_bytes(j, bytes, map, o0, g->m, maps);
    }
}

/* A tile: rows of windows (or the picture itself if the kernel is 1x1 without strides), the sums of
 * the rows where zero points need them, the product. */
static void conv_int_matmul(const job *j, char *own, int64_t group, int64_t o0, int64_t o1,
                            int64_t n0, int64_t n1) {
    const pith__conv_int *p = j->p;
    int64_t k = p->taps * p->channels;
    uint8_t *tile = (uint8_t *)own;
    int32_t *row_sums = (int32_t *)(void *)(own + j->m.tile + j->m.sums + j->m.bytes);
    pith__gemm_int8 g = { .a = tile, .m = o1 - o0, .k = k, .lda = k, .requantize = p->requantize };
    if (j->direct) {
        g.a = j->picture + o0 * j->all_channels + group * p->channels;
        g.lda = j->all_channels;
    } else {
        conv_int_fill_rows(j, tile, group, o0, o1);
    }
    if (j->needs_rows) {
        for (int64_t i = 0; i < o1 - o0; i++) {
            const uint8_t *row = (const uint8_t *)g.a + i * g.lda;
            uint32_t sum = 0;
            for (int64_t e = 0; e < k; e++) sum += row[e];
            row_sums[i] = (int32_t)sum;
        }
    }
    conv_int_multiply(j, own, &g, row_sums, group, o0, n0, n1);
}

/* A part is a few rows of windows, or some windows of one row. */
static void conv_int_depthwise(const job *j, char *own, int64_t part) {
    const pith__window *w = j->w;
    const int last = w->rank - 1;
    const int64_t across = (w->out[last] + j->tile_columns - 1) / j->tile_columns,
                  all_rows = j->windows / w->out[last];
    const int64_t row = part / across * j->tile_rows, column = part % across * j->tile_columns;
    const int64_t o = row * w->out[last] + column;
    uint8_t *bytes = (uint8_t *)own + j->m.tile + j->m.sums;
    pith__requantize out = conv_int_out(j, NULL, 0, o, bytes, j->all_channels);
    const pith__depthwise_bytes a = {
        .x = j->picture + conv_int_place(j, o),
        .offsets = j->offsets,
        .weights = j->weights,
        .taps = j->p->sets * j->p->taps,
        .channels = j->all_channels,
        .rows = all_rows - row < j->tile_rows ? all_rows - row : j->tile_rows,
        .columns =
            w->out[last] - column < j->tile_columns ? w->out[last] - column : j->tile_columns,
        .row_step = last ? w->stride[0] * j->columns * j->all_channels : 0,
        .step = w->stride[last] * j->all_channels,
        .out = &out,
        .sums = (int32_t *)(void *)(own + j->m.tile),
    };
    j->p->sum_taps(&a);
    if (j->p->wide)
        j->p->requantize(&out, a.sums, a.channels, 0, a.rows * a.columns, 0, a.channels);
    conv_int_place_bytes(j, bytes, 0, o, a.rows * a.columns, a.channels);
}

static void conv_int_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    char *own = j->workers + (size_t)worker * j->m.worker;
    if (j->p->depthwise) {
        conv_int_depthwise(j, own, (int64_t)part);
        return;
    }
    int64_t n = (int64_t)part % j->column_parts, rest = (int64_t)part / j->column_parts;
    int64_t o0 = rest % j->tiles * TILE, o1 = o0 + TILE < j->windows ? o0 + TILE : j->windows;
    int64_t n0 = n * COLUMNS, n1 = n == j->column_parts - 1 ? j->p->maps : n0 + COLUMNS;
    conv_int_matmul(j, own, rest / j->tiles, o0, o1, n0, n1);
}

static float conv_int_number(const pith__run *r, int input) {
    float v;
    pith__convert(&v, PITH_F32, 0, r->in[input]->data, r->in[input]->dtype, 0, 1, true);
    return v;
}

static int32_t conv_int_zero(const pith__run *r, int input, int64_t i) {
    return input >= 0 && pith__has_input(r, input) ? conv_int_byte(r->in[input], i) : 0;
}

/* The sum of a map's weights as they are packed; of a depthwise map, of its weights less their zero
 * point. */
static int32_t conv_int_weight_sum(const job *j, int64_t map) {
    const pith__conv_int *p = j->p;
    int32_t sum = 0;
    if (!p->depthwise) {
        int64_t panel = pith__gemm_int8_panel_bytes(p->taps * p->channels), n = map % p->maps;
        const char *at =
            (const char *)p->packed + map / p->maps * p->packed_size + n / 16 * panel + panel - 64;
        memcpy(&sum, at + n % 16 * (int64_t)sizeof sum, sizeof sum);
        return sum;
    }
    const int64_t taps = p->sets * p->taps;
    for (int64_t t = 0; t < taps; t++)
        sum += ((const int8_t *)j->weights)[pith__depthwise_place(t, map, taps) * 4 + t % 4];
    return sum;
}

/* What a map's sums get: the bias, and the picture's zero point times the weights less theirs. */
static void conv_int_maps(job *j, const pith__run *r, const pith__conv_int_inputs *in) {
    const pith__conv_int *p = j->p;
    const int32_t *bias =
        in->bias >= 0 && pith__has_input(r, in->bias) ? r->in[in->bias]->data : NULL;
    const int32_t base = r->in[in->w]->dtype == PITH_U8 ? 128 : 0;
    const uint32_t x_zero = j->x_zero, k = (uint32_t)(p->taps * p->channels);
    for (int64_t map = 0; map < p->groups * p->maps; map++) {
        j->zeros[map] = p->depthwise ? 0 : conv_int_zero(r, in->w_zero, map) - base;
        j->needs_rows |= j->zeros[map] != 0;
        const uint32_t add =
            x_zero * (k * (uint32_t)j->zeros[map] - (uint32_t)conv_int_weight_sum(j, map));
        j->add[map] = (int32_t)(add + (bias ? (uint32_t)bias[map] : 0));
    }
    if (p->wide) return;
    const float x_scale = conv_int_number(r, in->x_scale),
                y_scale = conv_int_number(r, in->y_scale);
    const pith_tensor *w_scale = r->in[in->w_scale];
    const int64_t own = pith__tensor_count(w_scale); /* one for all, or one per map */
    pith__convert(j->scale, PITH_F32, 0, w_scale->data, w_scale->dtype, 0, own, true);
    for (int64_t map = p->groups * p->maps; map-- > 0;) /* the first one last: others may read it */
        j->scale[map] = x_scale * j->scale[own == 1 ? 0 : map] / y_scale;
}

static void conv_int_offsets(job *j) {
    const pith__window *w = j->w;
    int last = w->rank - 1;
    const int64_t sets = j->p->depthwise ? j->p->sets : 1;
    for (int64_t i = 0; i < sets * j->p->taps; i++) {
        const int64_t t = i % j->p->taps;
        int64_t row = last ? t / w->kernel[1] * w->dilation[0] : 0,
                column = t % w->kernel[last] * w->dilation[last];
        j->offsets[i] = (row * j->columns + column) * j->all_channels;
    }
}

/* Parts of at most TILE windows. */
static void conv_int_tiles(job *j) {
    const int64_t columns = j->w->out[j->w->rank - 1], rows = j->windows / columns;
    j->tile_columns = columns < TILE ? columns : TILE;
    j->tile_rows = TILE / j->tile_columns;
    j->tiles = j->p->depthwise ? (columns + j->tile_columns - 1) / j->tile_columns *
                                     ((rows + j->tile_rows - 1) / j->tile_rows)
                               : (j->windows + TILE - 1) / TILE;
}

static void conv_int_picture(pith__run *r, job *j) {
    const pith__conv_int *p = j->p;
    int64_t work = j->m.columns * j->all_channels, groups = p->depthwise ? 1 : p->groups;
    if (j->turned) {
        j->rows_per_part = pith__run_chunk(r, j->m.rows, work, GRAIN);
        pith__run_parallel(r, conv_int_turn_part, j,
                           (size_t)((j->m.rows + j->rows_per_part - 1) / j->rows_per_part));
    } else {
        j->picture = j->x;
    }
    pith__run_parallel(r, conv_int_run_part, j, (size_t)(groups * j->tiles * j->column_parts));
}

/* Images one after another. Each is first turned to [rows, columns, channels] with its padding,
 * then its tiles are shared by the threads. With few tiles the maps are shared as well. */
pith_status pith__conv_int_run(pith__run *r, const pith__conv_int *p,
                               const pith__conv_int_inputs *in, const pith__window *w) {
    const pith_tensor *x = r->in[in->x], *y = r->out[0];
    size_t bytes = 0;
    job j = { .p = p, .w = w };
    if (!conv_int_room(p, w, r->exec->threads, &j.m, &bytes))
        return pith__fail_memory(r->err, SIZE_MAX);
    char *at = r->scratch;
    j.all_channels = p->groups * p->channels;
    j.windows = pith__window_count(w->out, w->rank);
    conv_int_tiles(&j);
    j.column_parts = 1;
    if (!p->depthwise && r->exec->threads > 1 && p->groups * j.tiles < 2 * r->exec->threads &&
        p->maps >= 2 * COLUMNS)
        j.column_parts = p->maps / COLUMNS;
    j.turned = (uint8_t *)at;
    at += j.m.picture;
    j.add = (int32_t *)(void *)at;
    j.zeros = j.add + p->groups * p->maps;
    j.scale = (float *)(void *)(j.zeros + p->groups * p->maps);
    at += j.m.maps;
    j.offsets = (int64_t *)(void *)at;
    at += j.m.taps;
    j.weights = p->ready ? p->packed : (const int32_t *)(void *)at;
    if (p->depthwise && !p->ready) {
        const weights own = { p, r->in[in->w],
                              in->w_zero >= 0 && pith__has_input(r, in->w_zero) ? r->in[in->w_zero]
                                                                                : NULL };
        conv_int_fill_quads(at, &own, 0, NULL);
    }
    at += j.m.weights;
    j.workers = at;
    j.x_flip = x->dtype == PITH_I8 ? 0x80 : 0;
    j.x_zero = (uint8_t)(conv_int_zero(r, in->x_zero, 0) + (x->dtype == PITH_I8 ? 128 : 0));
    j.direct = p->taps == 1;
    for (int d = 0; d < w->rank; d++) j.direct &= w->stride[d] == 1;
    if (conv_int_is_picture(&j)) j.turned = NULL;
    j.picture = j.turned;
    j.columns = j.turned ? j.m.columns : w->in[w->rank - 1];
    conv_int_maps(&j, r, in);
    conv_int_offsets(&j);
    int64_t pictures = x->dims[0], in_size = pith__tensor_count(x) / pictures,
            out_size = pith__tensor_count(y) / pictures;
    if (!p->wide) {
        j.out.zero = conv_int_zero(r, in->y_zero, 0);
        float low = y->dtype == PITH_I8 ? -128 : 0;
        j.out.low = low - (float)j.out.zero;
        j.out.high = low + 255 - (float)j.out.zero;
    }
    for (int64_t i = 0; i < pictures; i++) {
        j.x = (const uint8_t *)x->data + i * in_size;
        if (p->wide)
            j.wide = (int32_t *)y->data + i * out_size;
        else
            j.y = (uint8_t *)y->data + i * out_size;
        conv_int_picture(r, &j);
    }
    return PITH_OK;
}
