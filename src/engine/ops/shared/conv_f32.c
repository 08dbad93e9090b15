/* conv_f32.c - see conv_f32.h. */
#include "engine/ops/shared/conv_f32.h"

#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/elementwise.h"

/* PART: positions of one part of the work, if there are enough. PARTS: parts for each thread; with
 * fewer positions the maps are shared out too, PANELS panels at least, or of FEW positions as many
 * as have GRAIN weights. DEPTHWISE: with so many maps of one channel, tiles of maps are faster.
 * BLOCK: maps that get their tail while they are in the cache, if a part reads no more than READ
 * floats, which then stay there too. */
enum {
    BLOCK = 64,
    READ = 1 << 17,
    PART = 512,
    PARTS = 4,
    PANELS = 2,
    FEW = 8,
    GRAIN = 32768,
    DEPTHWISE = 16
};
/* Rows of the output may be one part, which copies the rows of the planes that it needs, so that
 * they stay in the cache: ROWS of them for inputs of FEW_CHANNELS (pictures), else as many as need
 * KEPT floats, LEAST_ROWS or more; planes that are no larger are copied as a whole. */
enum { ROWS = 8, FEW_CHANNELS = 4, KEPT = 160 << 10, LEAST_ROWS = 4, MOST_ROWS = 32 };

typedef struct job {
    const pith__conv_f32 *s;
    const pith__conv_sizes *z;
    const pith__window *w;
    const float *x, *source, *weights, *bias; /* source: the weights as they are given; weights:
                                                 their panels */
    float *y, *planes;
    const pith__tail *tail; /* of y_all; NULL: none */
    const float *y_all;
    int64_t *offsets;
    int64_t in, out, taps, plane; /* places of a channel, windows of a map; floats of a plane or of
                                     a channel */
    int64_t step, columns, positions, parts, map_parts;
    int64_t rows;          /* of a part, see conv_part_rows */
    int64_t panels, block; /* of a group's maps: panels, and how many get their tail at a time */
} job;

/* Windows of one place each, one beside the other, over all of the input: the input is its own
 * plane. */
static bool conv_f32_is_plain(const pith__window *w) {
    for (int d = 0; d < w->rank; d++)
        if (w->kernel[d] != 1 || w->stride[d] != 1 || w->begin[d] || w->in[d] != w->out[d])
            return false;
    return true;
}

/* Without last axes of one place, which would make rows of one place. */
static pith__window conv_flat(const pith__window *w) {
    pith__window flat = *w;
    for (int d = w->rank - 1; d > 0; d--) {
        if (w->in[d] != 1 || w->out[d] != 1 || w->kernel[d] != 1 || w->begin[d]) break;
        flat.rank = d;
    }
    return flat;
}

static bool conv_f32_is_depthwise(const pith__conv_sizes *z) {
    return z->channels == 1 && z->maps < DEPTHWISE;
}

static int64_t conv_panels(const pith__conv_sizes *z) {
    return (z->maps + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL;
}

/* Floats of the packed weights of a group, -1 on overflow. */
static int64_t conv_packed_floats(const pith__conv_sizes *z, int64_t taps) {
    int64_t steps;
    return pith__mul_overflows(z->channels, taps, &steps)
               ? -1
               : pith__gemm_f32_packed_size(steps, z->maps);
}

/* The window of output rows [r0, r1) over the rows of the input that it needs. Returns the first of
 * these. */
static int64_t conv_rows_of(pith__window *part, const pith__window *w, int64_t r0, int64_t r1) {
    const int64_t reach = (w->kernel[0] - 1) * w->dilation[0] + 1,
                  from = r0 * w->stride[0] - w->begin[0],
                  to = (r1 - 1) * w->stride[0] - w->begin[0] + reach, size = w->in[0];
    int64_t first = from < size ? from : size, last = to < size ? to : size;
    if (first < 0) first = 0;
    if (last < first) last = first;
    *part = *w;
    part->begin[0] = first - from;
    part->end[0] = to - last;
    part->in[0] = last - first;
    part->out[0] = r1 - r0;
    return first;
}

/* Floats of the planes that `rows` rows of the output need; INT64_MAX if they are too many. */
static int64_t conv_rows_floats(const pith__conv_sizes *z, const pith__window *w, int64_t rows) {
    pith__window part;
    int64_t all;
    conv_rows_of(&part, w, 1, rows + 1);
    const int64_t floats = pith__taps_floats(&part);
    return floats < 0 || pith__mul_overflows(floats, z->channels, &all) ? INT64_MAX : all;
}

/* The rows of a part; 0: planes are copied as a whole. */
static int64_t conv_part_rows(const pith__conv_sizes *z, const pith__window *w) {
    int64_t rows = ROWS, all;
    if (w->rank != 2 || z->groups != 1 || conv_f32_is_depthwise(z) || conv_f32_is_plain(w))
        return 0;
    if (z->channels <= FEW_CHANNELS) return w->out[0] >= 4 * ROWS ? ROWS : 0;
    if (!pith__mul_overflows(pith__taps_floats(w), z->channels, &all) && all <= KEPT) return 0;
    for (rows = MOST_ROWS; rows >= LEAST_ROWS && conv_rows_floats(z, w, rows) > KEPT;) rows--;
    if (rows < LEAST_ROWS || w->out[0] < 2 * LEAST_ROWS) return 0;
    const int64_t parts = (w->out[0] + rows - 1) / rows;
    return (w->out[0] + parts - 1) / parts;
}

/* Floats of a plane, or of what `rows` rows of a part need of it if they are not 0; -1 on overflow.
 */
static int64_t conv_plane_floats(const pith__window *w, int64_t rows) {
    pith__window part = *w;
    if (rows) conv_rows_of(&part, w, 1, rows + 1);
    return pith__taps_floats(&part);
}

/* Constant weights [groups * maps, channels, …] are packed now. */
static pith_status conv_prepare_weights(pith__conv_f32 *s, pith__prepare *c) {
    const pith__type *w = c->in[1];
    const int64_t groups = pith__node_int(c->node, "group", 1), count = pith__type_count(w);
    if (!pith__pack_can(c, 1) || w->rank < 3 || count < 1 || w->dims[0] % groups) return PITH_OK;
    const int64_t maps = w->dims[0] / groups, steps = count / w->dims[0];
    const pith__conv_sizes z = { .groups = groups, .channels = w->dims[1], .maps = maps };
    const int64_t floats = conv_packed_floats(&z, steps / z.channels);
    int64_t all;
    if (conv_f32_is_depthwise(&z)) return PITH_OK;
    if (floats < 0 || pith__mul_overflows(floats, groups, &all))
        return pith__fail_memory(c->err, SIZE_MAX);
    pith__pack_matrix *list = pith__arena_array(c->arena, (size_t)groups, sizeof *list);
    if (!list) return pith__fail_memory(c->err, sizeof *list);
    for (int64_t g = 0; g < groups; g++)
        list[g] = (pith__pack_matrix){ 1, true, g * maps * steps, maps, g * floats };
    s->constant = true;
    return pith__prepare_pack_f32(c, &s->packed, list, (size_t)groups, steps, (size_t)all);
}

pith_status pith__conv_f32_prepare(pith__conv_f32 *s, pith__prepare *c) {
    pith__kernel_fn *taps, *depthwise, *pack;
    PITH_TRY(pith__prepare_kernel(c, "taps_sum", PITH_F32, &taps));
    PITH_TRY(pith__prepare_kernel(c, "depthwise", PITH_F32, &depthwise));
    PITH_TRY(pith__prepare_kernel(c, "gemm_pack", PITH_F32, &pack));
    s->pack = (pith__gemm_pack_f32_fn *)pack;
    s->taps = (pith__taps_fn *)taps;
    s->depthwise = (pith__depthwise_fn *)depthwise;
    PITH_TRY(pith__conv_f32_prepare_planes(s, c));
    return conv_prepare_weights(s, c);
}

pith_status pith__conv_f32_prepare_planes(pith__conv_f32 *s, pith__prepare *c) {
    pith__kernel_fn *conv, *plane;
    PITH_TRY(pith__prepare_kernel(c, "conv", PITH_F32, &conv));
    PITH_TRY(pith__prepare_kernel(c, "taps_plane", PITH_F32, &plane));
    s->conv = (pith__conv_fn *)conv;
    s->plane = (pith__taps_plane_fn *)plane;
    return PITH_OK;
}

/* Bytes of weights that each run packs; false on overflow. */
static bool conv_weights_bytes(const pith__conv_f32 *s, const pith__conv_sizes *z, int64_t taps,
                               size_t *bytes) {
    const int64_t floats = conv_packed_floats(z, taps);
    int64_t all;
    *bytes = 0;
    if (s->constant || conv_f32_is_depthwise(z)) return true;
    return floats >= 0 && !pith__mul_overflows(floats, z->groups, &all) &&
           !pith__mul_overflows((size_t)all, sizeof(float), bytes);
}

bool pith__conv_f32_scratch(const pith__conv_f32 *s, const pith__conv_sizes *z,
                            const pith__window *window, int threads, size_t *bytes) {
    const pith__window flat = conv_flat(window), *w = &flat;
    const int64_t rows = conv_part_rows(z, w), floats = conv_plane_floats(w, rows);
    const int64_t taps = pith__window_count(w->kernel, w->rank);
    int64_t steps, planes = 0;
    size_t own, weights;
    if (!conv_weights_bytes(s, z, taps, &weights) || pith__add_overflows(*bytes, weights, bytes))
        return false;
    if (floats < 0 || pith__mul_overflows(taps, z->channels, &steps) || steps > INT64_MAX / 64)
        return false;
    if (conv_f32_is_depthwise(z)) planes = threads;
    if (!conv_f32_is_depthwise(z) && !conv_f32_is_plain(w) &&
        pith__mul_overflows(z->groups, z->channels, &planes))
        return false;
    if (rows && (pith__mul_overflows((int64_t)threads, z->channels, &planes) ||
                 pith__mul_overflows((int64_t)threads, steps, &steps)))
        return false;
    return !pith__mul_overflows((size_t)planes, pith__round64((size_t)floats * sizeof(float)),
                                &own) &&
           !pith__add_overflows(own, pith__round64((size_t)steps * sizeof(int64_t)), &own) &&
           !pith__add_overflows(*bytes, own, bytes);
}

static void conv_copy_channel(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    j->s->plane(j->planes + (int64_t)part * j->plane, j->x + (int64_t)part * j->in, j->w, 0);
}

/* The first map of a part. */
static int64_t conv_first_map(const job *j, int64_t part) {
    const int64_t first = j->panels * part / j->map_parts * PITH_GEMM_PANEL;
    return first < j->z->maps ? first : j->z->maps;
}

/* How many parts the maps of a group are shared out to. */
static int64_t conv_map_parts(const job *j, int threads) {
    const int64_t wanted = PARTS * (int64_t)threads, shared = j->parts * j->z->groups;
    const int64_t least = (wanted + shared - 1) / shared, steps = j->z->channels * j->taps;
    const int64_t worth =
        j->positions > FEW ? j->panels / PANELS : j->panels * PITH_GEMM_PANEL * steps / GRAIN;
    int64_t most = worth < j->panels ? worth : j->panels;
    if (worth < 1) most = 1;
    return least < most ? least : most;
}

/* The panels of a group's weights. */
static const float *conv_weights_of(const job *j, int64_t group) {
    return j->weights + group * j->panels * PITH_GEMM_PANEL * j->z->channels * j->taps;
}

/* One panel, of weights that are no constants. */
static void conv_pack_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t maps = j->z->maps, steps = j->z->channels * j->taps,
                  group = (int64_t)part / j->panels,
                  first = (int64_t)part % j->panels * PITH_GEMM_PANEL,
                  end = maps - first < PITH_GEMM_PANEL ? maps : first + PITH_GEMM_PANEL;
    (void)worker;
    j->s->pack((float *)(uintptr_t)conv_weights_of(j, group), j->source + group * maps * steps, 1,
               steps, steps, maps, first, end);
}

/* The tail of `maps` maps, `count` elements from y on of each. */
static void conv_finish(const job *j, const float *y, int64_t maps, int64_t count) {
    const bool whole = count == j->out;
    if (whole) count *= maps;
    for (int64_t m = 0; m < (whole ? 1 : maps); m++)
        pith__tail_apply(j->tail, y + m * j->out - j->y_all, count);
}

/* Maps [m0, m1) at positions [n0, n1), which are elements [first, first + count) of a map. */
static void conv_run_maps(const job *j, const pith__conv *c, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1, int64_t first, int64_t count) {
    for (int64_t m = m0, next; m < m1; m = next) {
        next = j->tail && m1 - m > j->block ? m + j->block : m1;
        j->s->conv(c, m, next, n0, n1);
        conv_finish(j, c->y + m * j->out + first, next - m, count);
    }
}

static void conv_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t at = (int64_t)part % j->parts, maps = (int64_t)part / j->parts % j->map_parts,
                  group = (int64_t)part / j->parts / j->map_parts;
    const int64_t m0 = conv_first_map(j, maps), m1 = conv_first_map(j, maps + 1);
    (void)worker;
    pith__conv c = { .x = (j->planes ? j->planes : j->x) + group * j->z->channels * j->plane,
                     .offsets = j->offsets,
                     .weights = conv_weights_of(j, group),
                     .bias = j->bias ? j->bias + group * j->z->maps : NULL,
                     .y = j->y + group * j->z->maps * j->out,
                     .k = j->z->channels * j->taps,
                     .y_map = j->out,
                     .step = j->step,
                     .columns = j->columns };
    const int64_t n0 = at * PART, n1 = n0 + PART < j->positions ? n0 + PART : j->positions;
    const int64_t first = pith__conv_place(n0, j->step, j->columns),
                  count = pith__conv_place(n1, j->step, j->columns) - first;
    conv_run_maps(j, &c, m0, m1, n0, n1, first, count);
}

/* offsets of the channels one after the other, from those of one. */
static void conv_spread(int64_t *offsets, int64_t taps, int64_t channels, int64_t plane) {
    for (int64_t i = taps; i < taps * channels; i++) offsets[i] = offsets[i - taps] + plane;
}

/* Some rows of all maps. */
static void conv_run_rows(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__conv_sizes *z = j->z;
    const int64_t steps = z->channels * j->taps, r0 = (int64_t)part * j->rows,
                  r1 = r0 + j->rows < j->w->out[0] ? r0 + j->rows : j->w->out[0];
    float *planes = j->planes + worker * z->channels * j->plane;
    int64_t *offsets = j->offsets + worker * steps;
    pith__window w;
    const int64_t first = conv_rows_of(&w, j->w, r0, r1);
    pith__conv c = { .x = planes,
                     .offsets = offsets,
                     .weights = j->weights,
                     .bias = j->bias,
                     .y = j->y,
                     .k = steps,
                     .y_map = j->out,
                     .columns = j->columns };
    pith__taps_offsets(offsets, &c.step, &w);
    conv_spread(offsets, j->taps, z->channels, j->plane);
    for (int64_t i = 0; i < z->channels; i++)
        j->s->plane(planes + i * j->plane, j->x + i * j->in + first * j->w->in[1], &w, 0);
    c.y += r0 * j->columns;
    conv_run_maps(j, &c, 0, z->maps, 0, (r1 - r0 - 1) * c.step + j->columns, 0,
                  (r1 - r0) * j->columns);
}

/* The maps of one channel. */
static void conv_run_taps(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t image = (int64_t)part, group = image % j->z->groups;
    float *plane = j->planes + worker * j->plane;
    pith__taps a = { .x = plane,
                     .offsets = j->offsets,
                     .taps = j->taps,
                     .rows = j->w->rank == 2 ? j->w->out[0] : 1,
                     .columns = j->columns,
                     .step = j->step };
    pith__depthwise d = { .x = j->x + image * j->in };
    const bool dense = pith__depthwise_fits(&d, j->w);
    if (!dense) j->s->plane(plane, d.x, j->w, 0);
    for (int64_t m = 0; m < j->z->maps; m++) {
        const int64_t map = group * j->z->maps + m;
        a.weights = j->source + map * j->taps;
        a.bias = j->bias ? j->bias + map : NULL;
        a.y = j->y + (image * j->z->maps + m) * j->out;
        d.weights = a.weights, d.bias = a.bias, d.y = a.y;
        if (dense)
            j->s->depthwise(&d);
        else
            j->s->taps(&a);
        pith__tail_apply(j->tail, a.y - j->y_all, j->out);
    }
}

/* Where the weights' panels are; packs them first if they are no constants. */
static void conv_find_weights(pith__run *r, job *j, char *scratch) {
    j->weights = j->s->constant ? j->s->packed : (const float *)(void *)scratch;
    if (!j->s->constant)
        pith__run_parallel(r, conv_pack_part, j, (size_t)(j->z->groups * j->panels));
}

void pith__conv_f32_run(pith__run *r, const pith__conv_f32 *s, const pith__conv_sizes *z,
                        const pith__window *window, const float *x, const float *weights,
                        const float *bias, float *y) {
    const pith__window flat = conv_flat(window), *w = &flat;
    job j = {
        .s = s, .z = z, .w = w, .source = weights, .bias = bias, .tail = r->tail, .y_all = y
    };
    const bool plain = conv_f32_is_plain(w) && !conv_f32_is_depthwise(z);
    char *scratch = r->scratch;
    size_t own;
    j.in = pith__window_count(w->in, w->rank);
    j.out = pith__window_count(w->out, w->rank);
    j.taps = pith__window_count(w->kernel, w->rank);
    j.panels = conv_panels(z);
    j.rows = conv_part_rows(z, w);
    if (!conv_weights_bytes(s, z, j.taps, &own)) return; /* the scratch has been computed */
    j.offsets = (int64_t *)(void *)(scratch + own);
    j.columns = plain ? j.out : w->out[w->rank - 1];
    j.plane = plain
                  ? j.in
                  : (int64_t)(pith__round64((size_t)conv_plane_floats(w, j.rows) * sizeof(float)) /
                              sizeof(float));
    const int64_t steps = j.taps * z->channels * (j.rows ? r->exec->threads : 1);
    if (!plain)
        j.planes =
            (float *)(void *)((char *)j.offsets + pith__round64((size_t)steps * sizeof(int64_t)));
    if (plain)
        j.offsets[0] = 0, j.step = j.out;
    else
        pith__taps_offsets(j.offsets, &j.step, w);
    if (conv_f32_is_depthwise(z)) {
        j.x = x;
        j.y = y;
        pith__run_parallel(r, conv_run_taps, &j, (size_t)(z->batch * z->groups));
        return;
    }
    conv_find_weights(r, &j, scratch);
    conv_spread(j.offsets, j.taps, z->channels, j.plane);
    j.positions = plain || w->rank == 1 ? j.columns : (w->out[0] - 1) * j.step + j.columns;
    j.parts = (j.positions + PART - 1) / PART;
    j.map_parts = conv_map_parts(&j, r->exec->threads);
    const int64_t longest = j.positions < PART ? j.positions : PART;
    j.block = j.rows || longest * z->channels <= READ ? BLOCK : z->maps;
    for (int64_t image = 0; image < z->batch; image++) {
        j.x = x + image * z->groups * z->channels * j.in;
        j.y = y + image * z->groups * z->maps * j.out;
        if (j.rows) {
            pith__run_parallel(r, conv_run_rows, &j, (size_t)((w->out[0] + j.rows - 1) / j.rows));
            continue;
        }
        if (j.planes)
            pith__run_parallel(r, conv_copy_channel, &j, (size_t)(z->groups * z->channels));
        pith__run_parallel(r, conv_run_part, &j, (size_t)(j.parts * z->groups * j.map_parts));
    }
}
