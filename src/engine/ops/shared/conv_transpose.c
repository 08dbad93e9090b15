/* conv_transpose.c - see conv_transpose.h. */
#include "engine/ops/shared/conv_transpose.h"

#include <string.h>

#include "base/checked.h"

/* POSITIONS and MAPS: of one part of the work, so that its results stay in L2 until they are woven.
 * PHASES and KERNEL: at most, along an axis. PADDED: times that the padded input may be as large as
 * the output and the input together. */
enum {
    PANEL = PITH_GEMM_PANEL,
    POSITIONS = 256,
    MAPS = 64,
    PHASES = 64,
    KERNEL = 1024,
    PADDED = 2
};

/* One of the two axes; there is a first one of one place if the window has rank 1. Output place q +
 * stride * j of phase q reads the padded input at j + shift - low. */
typedef struct axis {
    int64_t in, out, kernel, stride, dilation, begin, phases;
    int64_t low, length; /* of the padded input: its first place and its size */
    int64_t block;       /* places of a phase in one part */
} axis;

typedef struct job {
    const pith__conv_f32 *s;
    const pith__conv_sizes *z;
    axis a[2];
    const float *source, *bias; /* source: the weights as they are given */
    const float *x;
    float *y, *planes, *weights, *rows;
    int64_t *offsets, *starts; /* starts [phases + 1]: kernel places before each phase */
    int64_t plane, kernel, row_parts, column_parts, map_parts, rows_floats;
} job;

/* Whether kernel place k belongs to phase q; *shift: where it reads. */
static bool conv_transpose_axis_reads(const axis *a, int64_t q, int64_t k, int64_t *shift) {
    const int64_t at = q + a->begin - k * a->dilation;
    *shift = at / a->stride;
    return at % a->stride == 0;
}

static int64_t conv_transpose_axis_places(const axis *a, int64_t q) {
    return (a->out - q + a->stride - 1) / a->stride;
}

/* False if there is nothing to read, or too many phases or kernel places. */
static bool conv_transpose_axis_set(axis *a, const pith__window *w, int d) {
    const bool whole = d >= 0;
    *a = (axis){ .in = whole ? w->out[d] : 1,
                 .out = whole ? w->in[d] : 1,
                 .kernel = whole ? w->kernel[d] : 1,
                 .stride = whole ? w->stride[d] : 1,
                 .dilation = whole ? w->dilation[d] : 1,
                 .begin = whole ? w->begin[d] : 0 };
    a->phases = a->stride < a->out ? a->stride : a->out;
    if (a->in < 1 || a->out < 1 || a->kernel < 1 || a->kernel > KERNEL || a->phases > PHASES)
        return false;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t k = 0; k < a->kernel; k++) {
        const int64_t rest = (k * a->dilation - a->begin) % a->stride,
                      q = rest < 0 ? rest + a->stride : rest;
        int64_t shift;
        if (q >= a->phases || !conv_transpose_axis_reads(a, q, k, &shift)) continue;
        const int64_t last = shift + conv_transpose_axis_places(a, q) - 1;
        if (shift < low) low = shift;
        if (last > high) high = last;
    }
    if (low > high) return false;
    a->low = low;
    a->length = high - low + 1;
    return true;
}

static int64_t transpose_panels(const pith__conv_sizes *z) { return (z->maps + PANEL - 1) / PANEL; }

/* Both axes with the size of their blocks: up to POSITIONS places, whole rows if they fit. False: a
 * size overflows, or the padded image would be more than PADDED times as large as input and output
 * together. */
static bool transpose_axes(axis a[2], const pith__conv_sizes *z, const pith__window *w) {
    int64_t padded, in, out, most;
    if (z->channels < 1 || w->rank > 2 || !conv_transpose_axis_set(&a[0], w, w->rank - 2) ||
        !conv_transpose_axis_set(&a[1], w, w->rank - 1))
        return false;
    a[1].block = conv_transpose_axis_places(&a[1], 0) < POSITIONS
                     ? conv_transpose_axis_places(&a[1], 0)
                     : POSITIONS;
    a[0].block = conv_transpose_axis_places(&a[0], 0);
    if (a[0].block > POSITIONS / a[1].block) a[0].block = POSITIONS / a[1].block;
    if (a[1].block < conv_transpose_axis_places(&a[1], 0)) a[0].block = 1;
    return !pith__mul_overflows(a[0].length, a[1].length, &padded) &&
           !pith__mul_overflows(a[0].in, a[1].in, &in) &&
           !pith__mul_overflows(a[0].out, a[1].out, &out) && !pith__add_overflows(in, out, &most) &&
           padded / PADDED <= most && padded < INT64_MAX / 64;
}

bool pith__conv_transpose_fits(const pith__conv_sizes *z, const pith__window *w) {
    axis a[2];
    return transpose_axes(a, z, w);
}

/* The input is its own plane. */
static bool transpose_is_plain(const axis a[2]) {
    return a[0].low == 0 && a[0].length == a[0].in && a[1].low == 0 && a[1].length == a[1].in;
}

/* Stride 1: the one phase of a row is the row. */
static bool transpose_is_direct(const axis a[2]) {
    return a[1].stride == 1 && (a[0].stride == 1 || a[0].block == 1);
}

static int64_t transpose_plane(const axis a[2]) {
    return transpose_is_plain(a) ? a[0].in * a[1].in
                                 : (a[0].length * a[1].length + PITH_TAPS_BLOCK + 15) / 16 * 16;
}

static int64_t transpose_rows_floats(const axis a[2], int64_t maps) {
    const int64_t most = maps < MAPS ? maps : MAPS;
    return transpose_is_direct(a) ? 0
                                  : (a[1].phases * most * a[0].block * a[1].block + 15) / 16 * 16;
}

static bool transpose_add(size_t *bytes, int64_t count, int64_t times, size_t size) {
    size_t own;
    return count >= 0 && times >= 0 && !pith__mul_overflows((size_t)count, (size_t)times, &own) &&
           !pith__mul_overflows(own, size, &own) && own < SIZE_MAX - 64 &&
           !pith__add_overflows(*bytes, pith__round64(own), bytes);
}

/* The lists of phases and taps, the weights by phase, rows per worker, and padded planes unless the
 * image can be read as it is. */
bool pith__conv_transpose_scratch(const pith__conv_sizes *z, const pith__window *w, int threads,
                                  size_t *bytes) {
    axis a[2];
    int64_t wide, maps;
    if (!transpose_axes(a, z, w) || pith__mul_overflows(z->groups, z->channels, &wide) ||
        pith__mul_overflows(wide, transpose_panels(z) * PANEL, &maps))
        return false;
    const int64_t kernel = a[0].kernel * a[1].kernel;
    return transpose_add(bytes, a[0].phases * a[1].phases + 1, 1, sizeof(int64_t)) &&
           transpose_add(bytes, kernel, z->channels, sizeof(int64_t)) &&
           transpose_add(bytes, kernel, maps, sizeof(float)) &&
           transpose_add(bytes, transpose_rows_floats(a, z->maps), threads, sizeof(float)) &&
           (transpose_is_plain(a) || transpose_add(bytes, transpose_plane(a), wide, sizeof(float)));
}

/* Fills starts and offsets: those of all channels of a phase, then those of the next one. */
static void transpose_list(job *j) {
    const axis *h = &j->a[0], *v = &j->a[1];
    int64_t next = 0, phase = 0, up, left;
    for (int64_t q = 0; q < h->phases; q++) {
        for (int64_t p = 0; p < v->phases; p++) {
            int64_t *own = j->offsets + next * j->z->channels, count = 0;
            j->starts[phase++] = next;
            for (int64_t k = 0; k < h->kernel; k++) {
                if (!conv_transpose_axis_reads(h, q, k, &up)) continue;
                for (int64_t l = 0; l < v->kernel; l++)
                    if (conv_transpose_axis_reads(v, p, l, &left))
                        own[count++] = (up - h->low) * v->length + left - v->low;
            }
            for (int64_t i = count; i < count * j->z->channels; i++)
                own[i] = own[i - count] + j->plane;
            next += count;
        }
    }
    j->starts[phase] = next;
}

/* The weights of one map of all phases: [phase][groups, panels][channels, kernel places of the
 * phase][16 maps]. */
static void transpose_run_weights(void *context, size_t part, int worker) {
    const job *j = context;
    const axis *h = &j->a[0], *v = &j->a[1];
    const int64_t maps = j->z->maps, group = (int64_t)part / maps, map = (int64_t)part % maps,
                  steps = j->z->channels;
    int64_t phase = 0, shift;
    (void)worker;
    for (int64_t q = 0; q < h->phases; q++) {
        for (int64_t p = 0; p < v->phases; p++, phase++) {
            const int64_t first = j->starts[phase], taps = j->starts[phase + 1] - first;
            float *to =
                j->weights +
                (first * j->z->groups + group * taps) * transpose_panels(j->z) * PANEL * steps +
                map / PANEL * PANEL * steps * taps + map % PANEL;
            int64_t tap = 0;
            for (int64_t k = 0; k < h->kernel; k++) {
                if (!conv_transpose_axis_reads(h, q, k, &shift)) continue;
                for (int64_t l = 0; l < v->kernel; l++) {
                    if (!conv_transpose_axis_reads(v, p, l, &shift)) continue;
                    const float *from =
                        j->source + (group * steps * maps + map) * j->kernel + k * v->kernel + l;
                    for (int64_t c = 0; c < steps; c++)
                        to[(c * taps + tap) * PANEL] = from[c * maps * j->kernel];
                    tap++;
                }
            }
        }
    }
}

static void transpose_run_plane(void *context, size_t part, int worker) {
    const job *j = context;
    pith__window w = { .rank = 2 };
    (void)worker;
    for (int d = 0; d < 2; d++) {
        w.in[d] = j->a[d].in;
        w.out[d] = j->a[d].length;
        w.begin[d] = -j->a[d].low;
        w.kernel[d] = w.stride[d] = w.dilation[d] = 1;
    }
    j->s->plane(j->planes + (int64_t)part * j->plane, j->x + (int64_t)part * w.in[0] * w.in[1], &w,
                0);
}

typedef uint32_t four __attribute__((vector_size(16)));
#if defined(__clang__)
#define FOUR_MIXED(a, b, i) __builtin_shufflevector(a, b, i, i + 4, i + 1, i + 5)
#else
#define FOUR_MIXED(a, b, i) __builtin_shuffle(a, b, (four){ i, i + 4, i + 1, i + 5 })
#endif

/* to[phases * i + p] = from[p * step + i], i below n. */
static void transpose_weave(float *to, const float *from, int64_t step, int64_t phases, int64_t n) {
    int64_t i = 0;
    if (phases == 2) {
        for (; i + 4 <= n; i += 4) {
            four a, b, low, high;
            memcpy(&a, from + i, sizeof a);
            memcpy(&b, from + step + i, sizeof b);
            low = FOUR_MIXED(a, b, 0);
            high = FOUR_MIXED(a, b, 2);
            memcpy(to + 2 * i, &low, sizeof low);
            memcpy(to + 2 * i + 4, &high, sizeof high);
        }
    }
    for (; i < n; i++)
        for (int64_t p = 0; p < phases; p++) to[i * phases + p] = from[p * step + i];
}

/* The same of row i of each phase, where the phases have places[p] each. */
static void transpose_weave_ragged(float *to, const float *rows, int64_t i, int64_t step,
                                   const int64_t *places, int64_t phases) {
    for (int64_t p = 0; p < phases; p++)
        for (int64_t n = 0; n < places[p]; n++)
            to[n * phases + p] = rows[p * step + i * places[p] + n];
}

/* Rows [r0, r1) of row phase q and places [c0, …) of all column phases, of maps [m0, m1). */
static void transpose_block(const job *j, int64_t group, int64_t q, const int64_t r[2], int64_t c0,
                            const int64_t m[2], float *rows) {
    const axis *h = &j->a[0], *v = &j->a[1];
    const int64_t maps = m[1] - m[0], count = r[1] - r[0], all = transpose_panels(j->z) * PANEL,
                  out = h->out * v->out;
    const bool direct = transpose_is_direct(j->a);
    float *y =
        j->y + (group * j->z->maps + m[0]) * out + (r[0] * h->stride + q) * v->out + c0 * v->stride;
    const int64_t step = maps * count * v->block;
    int64_t least = v->block, places[PHASES];
    bool same = true;
    for (int64_t p = 0; p < v->phases; p++) {
        const int64_t left = conv_transpose_axis_places(v, p) - c0, phase = q * v->phases + p,
                      first = j->starts[phase];
        const int64_t k = (j->starts[phase + 1] - first) * j->z->channels;
        places[p] = left < v->block ? left : v->block;
        same = same && places[p] == places[0];
        if (places[p] < least) least = places[p];
        if (places[p] <= 0) continue;
        pith__conv c = { .x = (j->planes ? j->planes : j->x) + group * j->z->channels * j->plane +
                              r[0] * v->length + c0,
                         .offsets = j->offsets + first * j->z->channels,
                         .weights = j->weights +
                                    (first * j->z->groups * j->z->channels + group * k) * all +
                                    m[0] * k,
                         .bias = j->bias ? j->bias + group * j->z->maps + m[0] : NULL,
                         .y = direct ? y : rows + p * step,
                         .k = k,
                         .y_map = direct ? out : count * places[p],
                         .step = v->length,
                         .columns = places[p] };
        j->s->conv(&c, 0, maps, 0, (count - 1) * v->length + places[p]);
    }
    if (!direct) {
        for (int64_t i = 0; i < maps * count; i++) {
            float *to = y + i / count * out + i % count * h->stride * v->out;
            if (v->phases == 1)
                memcpy(to, rows + i * least, (size_t)least * sizeof *to);
            else if (same)
                transpose_weave(to, rows + i * least, step, v->phases, least);
            else
                transpose_weave_ragged(to, rows, i, step, places, v->phases);
        }
    }
}

/* One block of one phase: parts count maps fastest, so that threads next to each other read the
 * same pixels. */
static void transpose_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const axis *h = &j->a[0], *v = &j->a[1];
    int64_t rest = (int64_t)part;
    const int64_t at = rest % j->map_parts,
                  column = (rest /= j->map_parts) % j->column_parts * v->block;
    const int64_t q = (rest /= j->column_parts) % h->phases,
                  row = (rest /= h->phases) % j->row_parts * h->block;
    const int64_t m[2] = { MAPS * at, MAPS * (at + 1) < j->z->maps ? MAPS * (at + 1) : j->z->maps };
    const int64_t end = conv_transpose_axis_places(h, q),
                  r[2] = { row, row + h->block < end ? row + h->block : end };
    if (r[0] < r[1])
        transpose_block(j, rest / j->row_parts, q, r, column, m, j->rows + worker * j->rows_floats);
}

static void *transpose_take(char **at, int64_t count, size_t size) {
    void *own = *at;
    *at += pith__round64((size_t)count * size);
    return own;
}

/* Weights are regrouped by phase once per run. Then, image by image, planes are padded and the
 * blocks computed. Every output is written by one block. */
void pith__conv_transpose_run(pith__run *r, const pith__conv_f32 *s, const pith__conv_sizes *z,
                              const pith__window *w, const float *x, const float *weights,
                              const float *bias, float *y) {
    job j = { .s = s, .z = z, .source = weights, .bias = bias };
    if (!transpose_axes(j.a, z, w)) return; /* pith__conv_transpose_fits has said so */
    const int64_t channels = z->groups * z->channels, maps = z->groups * z->maps;
    char *at = r->scratch;
    j.plane = transpose_plane(j.a);
    j.kernel = j.a[0].kernel * j.a[1].kernel;
    j.rows_floats = transpose_rows_floats(j.a, z->maps);
    j.starts = transpose_take(&at, j.a[0].phases * j.a[1].phases + 1, sizeof(int64_t));
    j.offsets = transpose_take(&at, j.kernel * z->channels, sizeof(int64_t));
    j.weights =
        transpose_take(&at, j.kernel * channels * transpose_panels(z) * PANEL, sizeof(float));
    j.rows = transpose_take(&at, j.rows_floats * r->exec->threads, sizeof(float));
    if (!transpose_is_plain(j.a)) j.planes = (float *)(void *)at;
    j.row_parts = (conv_transpose_axis_places(&j.a[0], 0) + j.a[0].block - 1) / j.a[0].block;
    j.column_parts = (conv_transpose_axis_places(&j.a[1], 0) + j.a[1].block - 1) / j.a[1].block;
    j.map_parts = (z->maps + MAPS - 1) / MAPS;
    transpose_list(&j);
    pith__run_parallel(r, transpose_run_weights, &j, (size_t)maps);
    for (int64_t image = 0; image < z->batch; image++) {
        j.x = x + image * channels * j.a[0].in * j.a[1].in;
        j.y = y + image * maps * j.a[0].out * j.a[1].out;
        if (j.planes) pith__run_parallel(r, transpose_run_plane, &j, (size_t)channels);
        pith__run_parallel(
            r, transpose_run_part, &j,
            (size_t)(z->groups * j.row_parts * j.a[0].phases * j.column_parts * j.map_parts));
    }
}
