/* op_conv.c - Conv, ConvTranspose, ConvInteger, QLinearConv, pith.QLinearConvLast: weights times
 * windows.
 *
 * The windows of a tile of outputs are written as columns [channels * kernel, tile]. A convolution
 * is then a matmul with the weights [maps, channels * kernel], and sums go in the order channel,
 * kernel row, column. Tiles are shared among threads. A transposed convolution is the matmul with
 * the transposed weights, whose columns are added back into place. f32 goes through the GEMM, f64
 * is computed in f64. f32 with one or two spatial axes and 8-bit integers have files of their own
 * (conv_f32.c, conv_transpose.c, conv_int.c); what the last leaves out is exact in f64. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/matmul.h"
#include "engine/ops/shared/conv_f32.h"
#include "engine/ops/shared/conv_int.h"
#include "engine/ops/shared/conv_transpose.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"
#include "engine/ops/shared/window_attrs.h"

/* Outputs of one matmul. More use the GEMM better, until the columns (TILE * channels * kernel
 * floats) leave L2. */
enum { TILE = 256 };

typedef pith__conv_int_inputs layout;

static const struct {
    const char *name;
    layout inputs;
} layouts[] = {
    { "Conv", { 0, -1, -1, 1, -1, -1, -1, -1, 2 } },
    { "ConvTranspose", { 0, -1, -1, 1, -1, -1, -1, -1, 2 } },
    { "ConvInteger", { 0, -1, 2, 1, -1, 3, -1, -1, -1 } },
    { "QLinearConv", { 0, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "QLinearConvLast", { 0, 1, 2, 3, 4, 5, 6, 7, 8 } },
};

/* What only convolutions of integers need, so that a build of the others does not link it. */
typedef struct conv_integers conv_integers;

/* What prepare decides. At most one of f32_planes, phases and integers.possible holds; without them
 * the columns of windows are multiplied (see the top). */
typedef struct state {
    const layout *inputs;
    const conv_integers *whole; /* NULL: the operator is one of floats */
    pith__gemm_f32_fn *gemm;
    pith__gemm_pack_f32_fn *pack;
    pith__matmul_fn *matmul; /* computes in f64 */
    pith__window_add_fn *add;
    bool f32_planes; /* f32 with one or two spatial axes: by `f32` */
    pith__conv_f32 f32;
    bool phases; /* transposed f32 with one or two spatial axes: by conv_transpose.h where the
                    windows fit */
    pith__conv_int integers; /* of 8-bit numbers, if it is possible */
    bool transposed;
    size_t size;
} state;

static const layout *conv_find_layout(const pith__node *node) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (pith__str_is(node->op_type, layouts[i].name)) return &layouts[i].inputs;
    }
    return NULL;
}

/* Sizes that do not depend on windows. */
typedef pith__conv_sizes sizes;

/* dims[rank] of the input (x_last) or output (y_last) with the channels at axis 1; they are the
 * last axis if the node's attribute of that name says so. */
static void conv_dims(int64_t *to, const pith__node *node, const char *last, const int64_t *dims,
                      int rank) {
    const bool moved = rank > 2 && pith__node_int(node, last, 0);
    for (int i = 0; i < rank; i++) to[i] = dims[i];
    if (!moved) return;
    to[1] = dims[rank - 1];
    for (int i = 2; i < rank; i++) to[i] = dims[i - 1];
}

/* out[i] of a transposed convolution; pads may follow from output_shape. */
static pith_status conv_transposed_output(pith__dim *out, pith__window *w, pith__dims *dims,
                                          const pith__node *node, const pith__dim *in,
                                          pith_error *err) {
    size_t extra_count, shape_count;
    const int64_t *extra = pith__node_ints(node, "output_padding", &extra_count),
                  *shape = pith__node_ints(node, "output_shape", &shape_count);
    pith_str mode = pith__node_str(node, "auto_pad", "NOTSET");
    bool lower = pith__str_is(mode, "SAME_LOWER"), same = lower || pith__str_is(mode, "SAME_UPPER");
    if ((extra && extra_count != (size_t)w->rank) ||
        (shape && shape_count != (size_t)w->rank && shape_count != (size_t)w->rank + 2)) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output_padding or output_shape does not have %d numbers", w->rank);
    }
    if (shape) shape += shape_count - (size_t)w->rank;
    for (int i = 0; i < w->rank; i++) {
        int64_t more = extra ? extra[i] : 0, reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (more < 0 || more > INT32_MAX || (shape && (shape[i] < 0 || shape[i] > INT32_MAX))) {
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "output_padding or output_shape is out of range at axis %d", i);
        }
        pith__dim full = pith__dim_apply(
            dims, PITH_DIM_MUL, pith__dim_apply(dims, PITH_DIM_SUB, in[i], 1), w->stride[i]);
        full = pith__dim_apply(dims, PITH_DIM_ADD, full, reach + more);
        if (shape || same) {
            out[i] = shape ? shape[i] : pith__dim_apply(dims, PITH_DIM_MUL, in[i], w->stride[i]);
            if (!pith__dim_known(full) || !pith__dim_known(out[i])) continue;
            int64_t total = full - out[i] > 0 ? full - out[i] : 0;
            w->begin[i] = pith__str_is(mode, "SAME_UPPER") ? total / 2 : total - total / 2;
            w->end[i] = total - w->begin[i];
        } else {
            out[i] = pith__dim_apply(dims, PITH_DIM_SUB, full, w->begin[i] + w->end[i]);
        }
        if (pith__dim_known(out[i]) && out[i] < 0)
            return pith__fail(err, PITH_ERR_ARGUMENT, "spatial axis %d would have size %lld", i,
                              (long long)out[i]);
    }
    return PITH_OK;
}

/* The window of a transposed convolution walks the output, once per input place. */
static pith_status conv_transposed_window(pith__window *w, const pith__node *node, const int64_t *x,
                                          const int64_t *weights, const int64_t *y, int rank,
                                          pith_error *err) {
    pith__dim out[PITH_WINDOW_RANK];
    PITH_TRY(pith__windows_attributes(w, node, rank, weights + 2, err));
    PITH_TRY(conv_transposed_output(out, w, NULL, node, x + 2, err));
    for (int i = 0; i < rank; i++) {
        w->in[i] = y[i + 2];
        w->out[i] = x[i + 2];
    }
    return PITH_OK;
}

static bool conv_differ(pith__dim a, pith__dim b) {
    return pith__dim_known(a) && pith__dim_known(b) && a != b;
}

/* Scales and zero points are one number, those of the weights one or one for each map. */
static pith_status conv_check_numbers(const pith__infer *c, const layout *l, pith__dim maps) {
    const int inputs[] = { l->x_scale, l->x_zero, l->w_scale, l->w_zero, l->y_scale, l->y_zero };
    for (int i = 0; i < 6; i++) {
        if (inputs[i] < 0 || !pith__has_input(c, inputs[i])) continue;
        int64_t own = pith__type_count(c->in[inputs[i]]);
        bool by_map = inputs[i] == l->w_scale || inputs[i] == l->w_zero;
        if (own >= 0 && own != 1 && (!by_map || conv_differ(own, maps)))
            return pith__op_fail(c, "input %d has %lld elements", inputs[i], (long long)own);
    }
    return PITH_OK;
}

/* Checks channels and groups, then infers the spatial sizes, which may be symbols. A transposed
 * convolution has its maps in the second axis of the weights. With x_last and y_last the channels
 * are the last axis of the input or output, and everything inside counts as if they were axis 1. */
static pith_status conv_infer(pith__infer *c) {
    const layout *l = conv_find_layout(c->node);
    const pith__type *x = c->in[l->x], *w = c->in[l->w];
    bool transposed = pith__str_is(c->node->op_type, "ConvTranspose");
    int dtype = l->x_zero >= 0 ? PITH_I32 : x->dtype;
    if (l->y_zero >= 0) dtype = c->in[l->y_zero]->dtype;
    int64_t groups = pith__node_int(c->node, "group", 1);
    if (l->x_zero < 0) PITH_TRY(pith__infer_equal_dtypes(c, 0, 2));
    if (groups < 1 || groups > INT32_MAX)
        return pith__op_fail(c, "attribute group is %lld", (long long)groups);
    if (x->rank < 0 || w->rank < 0) {
        pith__infer_set(c, 0, dtype, x->rank >= 0 ? -1 : x->rank, NULL);
        return PITH_OK;
    }
    if (x->rank < 3 || x->rank != w->rank)
        return pith__op_fail(c, "input and weights have ranks %d and %d", x->rank, w->rank);
    pith__dim in[PITH_MAX_RANK], out[PITH_MAX_RANK];
    conv_dims(in, c->node, "x_last", x->dims, x->rank);
    pith__dim dims[PITH_MAX_RANK],
        wide = pith__dim_apply(c->dims, PITH_DIM_MUL, w->dims[1], groups);
    dims[0] = in[0];
    dims[1] = transposed ? wide : w->dims[0];
    if (conv_differ(in[1], transposed ? w->dims[0] : wide) ||
        (pith__dim_known(w->dims[0]) && w->dims[0] % groups)) {
        char channels[64];
        return pith__op_fail(c, "input has %s channels; the weights do not fit %lld groups of them",
                             pith__dim_text(c->dims, in[1], channels, sizeof channels),
                             (long long)groups);
    }
    PITH_TRY(conv_check_numbers(c, l, w->dims[0]));
    if (l->bias >= 0 && pith__has_input(c, l->bias)) {
        int64_t own = pith__type_count(c->in[l->bias]);
        if (own >= 0 && conv_differ(own, dims[1]))
            return pith__op_fail(c, "bias has %lld elements for %lld output channels",
                                 (long long)own, (long long)dims[1]);
    }
    for (int i = 0; i < x->rank - 2; i++) dims[i + 2] = PITH_DIM_UNKNOWN;
    bool known = true;
    for (int i = 2; i < w->rank; i++) known &= pith__dim_known(w->dims[i]);
    if (known) {
        pith__window window;
        PITH_TRY(pith__windows_attributes(&window, c->node, x->rank - 2, w->dims + 2, c->err));
        if (transposed)
            PITH_TRY(conv_transposed_output(dims + 2, &window, c->dims, c->node, in + 2, c->err));
        else
            PITH_TRY(pith__windows_output(dims + 2, c->dims, &window, c->node, in + 2, 1, c->err));
    }
    memcpy(out, dims, sizeof out);
    if (pith__node_int(c->node, "y_last", 0)) {
        out[x->rank - 1] = dims[1];
        for (int i = 2; i < x->rank; i++) out[i - 1] = dims[i];
    }
    pith__infer_set(c, 0, dtype, x->rank, out);
    return PITH_OK;
}

struct conv_integers {
    pith_status (*prepare)(pith__conv_int *p, pith__prepare *c, const pith__conv_int_inputs *in);
    bool (*scratch)(const pith__conv_int *p, const pith__window *w, int threads, size_t *bytes);
    pith_status (*run)(pith__run *r, const pith__conv_int *p, const pith__conv_int_inputs *in,
                       const pith__window *w);
    void (*widen)(double *to, const pith_tensor *t, const pith_tensor *zero, int64_t row);
    void (*finish)(const pith__run *r, const layout *l, const double *sums, int64_t maps,
                   int64_t plane);
};

/* Chooses the way: f32 of at most two spatial axes has files of its own, 8-bit integers too where
 * their sums fit (whole->prepare decides); the rest is columns times weights, by the GEMM in f32
 * and by a plain matmul in f64. */
static pith_status conv_prepare_any(pith__prepare *c, const conv_integers *whole) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->whole = whole;
    s->inputs = conv_find_layout(c->node);
    s->transposed = pith__str_is(c->node->op_type, "ConvTranspose");
    int dtype = c->in[s->inputs->x]->dtype, w_dtype = c->in[s->inputs->w]->dtype;
    bool f32 = pith__compute_dtype(dtype) == PITH_F32;
    if (s->inputs->x_zero >= 0 ? (dtype != PITH_U8 && dtype != PITH_I8) : !f32 && dtype != PITH_F64)
        return pith__fail_dtype(c->err, dtype);
    if (s->inputs->x_zero >= 0 && w_dtype != PITH_U8 && w_dtype != PITH_I8)
        return pith__fail_dtype(c->err, w_dtype);
    s->f32_planes =
        f32 && !s->transposed && s->inputs->x_zero < 0 && c->in[s->inputs->x]->rank <= 4;
    s->phases = f32 && s->transposed && c->in[s->inputs->x]->rank <= 4;
    s->size = f32 ? sizeof(float) : sizeof(double);
    c->state = s;
    if (s->f32_planes) return pith__conv_f32_prepare(&s->f32, c);
    if (s->phases) PITH_TRY(pith__conv_f32_prepare_planes(&s->f32, c));
    pith__kernel_fn *gemm = NULL, *pack = NULL, *matmul = NULL, *add;
    if (whole) PITH_TRY(whole->prepare(&s->integers, c, s->inputs));
    if (f32) {
        PITH_TRY(pith__prepare_kernel(c, "gemm", PITH_F32, &gemm));
        PITH_TRY(pith__prepare_kernel(c, "gemm_pack", PITH_F32, &pack));
    } else {
        PITH_TRY(pith__prepare_kernel(c, "matmul", PITH_F64, &matmul));
    }
    PITH_TRY(pith__prepare_kernel(c, "window_add", f32 ? PITH_F32 : PITH_F64, &add));
    s->gemm = (pith__gemm_f32_fn *)gemm;
    s->pack = (pith__gemm_pack_f32_fn *)pack;
    s->matmul = (pith__matmul_fn *)matmul;
    s->add = (pith__window_add_fn *)add;
    return PITH_OK;
}

static sizes conv_sizes_of(const pith__node *node, const int64_t *x, const int64_t *w,
                           bool transposed) {
    sizes z = { .batch = x[0], .groups = pith__node_int(node, "group", 1) };
    z.channels = x[1] / z.groups;
    z.maps = transposed ? w[1] : w[0] / z.groups;
    return z;
}

/* Elements of the columns of one part, their packed form (f32) and the result; false on overflow.
 */
static bool conv_part_elements(const state *s, const sizes *z, int64_t kernel, int64_t windows,
                               int64_t places[3]) {
    int64_t tile = windows < TILE ? windows : TILE, rows;
    if (s->transposed) { /* the whole input plane, transposed weights, columns */
        return !pith__mul_overflows(z->maps, kernel, &rows) &&
               !pith__mul_overflows(rows, windows, &places[0]) &&
               !pith__mul_overflows(rows, z->channels, &places[2]) &&
               (places[1] = s->gemm ? pith__gemm_f32_packed_size(z->channels, windows) : 0) >= 0;
    }
    places[2] = z->maps * tile;
    return !pith__mul_overflows(z->channels, kernel, &rows) &&
           !pith__mul_overflows(rows, tile, &places[0]) &&
           (places[1] = s->gemm ? pith__gemm_f32_packed_size(rows, tile) : 0) >= 0;
}

static bool conv_add_bytes(size_t *bytes, int64_t elements, size_t size) {
    size_t own;
    return elements >= 0 && !pith__mul_overflows((size_t)elements, size, &own) &&
           !pith__add_overflows(*bytes, own + 64, bytes);
}

/* The inputs that a run does not read, as bits. */
static uint32_t conv_unread(const state *s) {
    return s->f32_planes && s->f32.constant ? 1u << s->inputs->w : 0;
}

/* The way decides: the specialised files say what they need; the general one needs columns, their
 * packed form and a result per worker, and integers that take it also copies of everything in f64.
 */
static pith_status conv_scratch(const pith__infer *c, const void *state_, int threads,
                                size_t *bytes) {
    const state *s = state_;
    const layout *l = s->inputs;
    const pith__type *x = c->in[l->x], *w = c->in[l->w], *y = &c->out[0];
    int64_t in[PITH_MAX_RANK], out[PITH_MAX_RANK];
    conv_dims(in, c->node, "x_last", x->dims, x->rank);
    conv_dims(out, c->node, "y_last", y->dims, y->rank);
    sizes z = conv_sizes_of(c->node, in, w->dims, s->transposed);
    const int rank = x->rank - 2;
    int64_t kernel = pith__window_count(w->dims + 2, rank), places[3];
    int64_t windows = pith__dims_count(s->transposed ? in + 2 : out + 2, rank);
    size_t part = 0;
    *bytes = 0;
    if (s->integers.possible || s->f32_planes) {
        pith__window window;
        PITH_TRY(pith__windows_attributes(&window, c->node, rank, w->dims + 2, c->err));
        pith__windows_complete(&window, c->node, in + 2, out + 2);
        if (!(s->f32_planes ? pith__conv_f32_scratch(&s->f32, &z, &window, threads, bytes)
                            : s->whole->scratch(&s->integers, &window, threads, bytes)))
            return pith__fail_memory(c->err, SIZE_MAX);
        return pith__widen_scratch(c, conv_unread(s), bytes);
    }
    if (s->phases) {
        pith__window window;
        PITH_TRY(conv_transposed_window(&window, c->node, in, w->dims, out, rank, c->err));
        if (pith__conv_transpose_fits(&z, &window)) {
            if (!pith__conv_transpose_scratch(&z, &window, threads, bytes))
                return pith__fail_memory(c->err, SIZE_MAX);
            return pith__widen_scratch(c, 0, bytes);
        }
    }
    bool fits = windows >= 0 && conv_part_elements(s, &z, kernel, windows, places);
    for (int i = 0; fits && i < 3; i++) fits = conv_add_bytes(&part, places[i], s->size);
    fits = fits && !pith__mul_overflows(part, (size_t)threads, bytes);
    if (l->x_zero >= 0) { /* everything in f64 */
        fits = fits && conv_add_bytes(bytes, pith__type_count(x), 8) &&
               conv_add_bytes(bytes, pith__type_count(w), 8) &&
               conv_add_bytes(bytes, pith__type_count(y), 8);
    }
    return fits ? pith__widen_scratch(c, 0, bytes) : pith__fail_memory(c->err, SIZE_MAX);
}

typedef struct job {
    const pith__run *r;
    const state *s;
    sizes z;
    pith__window w;
    const char *x, *weights;
    char *y, *workers;
    int64_t kernel, windows, plane, places[3], tiles;
    size_t worker_bytes;
} job;

/* c[m, n] = a[m, k] b[k, n]; c's rows are `stride` apart. */
static void conv_product(const job *j, const char *a, const char *b, char *packed, char *to,
                         int64_t m, int64_t n, int64_t k, int64_t stride, char *dense) {
    const state *s = j->s;
    if (s->gemm) {
        s->pack((float *)(void *)packed, (const float *)(const void *)b, n, 1, k, n, 0, n);
        pith__gemm g = { .a = (const float *)(const void *)a,
                         .b = (const float *)(void *)packed,
                         .c = (float *)(void *)to,
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = k,
                         .ldc = stride };
        s->gemm(&g, 0, m, 0, n);
        return;
    }
    pith__matmul p = { .a = a,
                       .b = b,
                       .c = stride == n ? to : dense,
                       .n = n,
                       .k = k,
                       .a_row = k,
                       .a_column = 1,
                       .b_row = n,
                       .b_column = 1 };
    s->matmul(&p, 0, m);
    if (stride != n) {
        for (int64_t i = 0; i < m; i++) {
            memcpy(to + (size_t)(i * stride) * sizeof(double),
                   dense + (size_t)(i * n) * sizeof(double), (size_t)n * sizeof(double));
        }
    }
}

/* One tile of up to TILE outputs of one group of one image: its windows as columns, then the matmul
 * into the output's rows. */
static void conv_run_tile(void *context, size_t part, int worker) {
    const job *j = context;
    const sizes *z = &j->z;
    size_t size = j->s->size;
    int64_t tile = (int64_t)part % j->tiles, group = (int64_t)part / j->tiles % z->groups,
            batch = (int64_t)part / j->tiles / z->groups;
    int64_t o0 = tile * TILE, o1 = o0 + TILE < j->windows ? o0 + TILE : j->windows,
            rows = z->channels * j->kernel;
    char *columns = j->workers + (size_t)worker * j->worker_bytes,
         *packed = columns + pith__round64((size_t)j->places[0] * size);
    char *dense = packed + pith__round64((size_t)j->places[1] * size);
    int64_t image = batch * z->groups + group;
    pith__window_columns(columns, j->x + (size_t)(image * z->channels * j->plane) * size, &j->w,
                         z->channels, o0, o1, size);
    conv_product(j, j->weights + (size_t)(group * z->maps * rows) * size, columns, packed,
                 j->y + (size_t)(image * z->maps * j->windows + o0) * size, z->maps, o1 - o0, rows,
                 j->windows, dense);
}

/* One group of one image. The matmul gives every window of the output as a column; windows that
 * overlap are added, in ascending order of input places. */
static void conv_run_transposed(void *context, size_t part, int worker) {
    const job *j = context;
    const sizes *z = &j->z;
    size_t size = j->s->size;
    int64_t group = (int64_t)part % z->groups, rows = z->maps * j->kernel;
    char *columns = j->workers + (size_t)worker * j->worker_bytes,
         *packed = columns + pith__round64((size_t)j->places[0] * size);
    char *turned = packed + pith__round64((size_t)j->places[1] * size);
    const char *weights = j->weights + (size_t)(group * z->channels * rows) * size;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < z->channels; k++) {
            memcpy(turned + (size_t)(i * z->channels + k) * size,
                   weights + (size_t)(k * rows + i) * size, size);
        }
    }
    conv_product(j, turned, j->x + (size_t)((int64_t)part * z->channels * j->windows) * size,
                 packed, columns, rows, j->windows, z->channels, j->windows, NULL);
    char *y = j->y + (size_t)((int64_t)part * z->maps * j->plane) * size;
    memset(y, 0, (size_t)(z->maps * j->plane) * size);
    j->s->add(y, columns, &j->w, z->maps);
}

/* t - zero as doubles; zero: one number, or one per row of `row` elements. */
static void conv_widen_integers(double *to, const pith_tensor *t, const pith_tensor *zero,
                                int64_t row) {
    int64_t total = pith__tensor_count(t), zeros = zero ? pith__tensor_count(zero) : 0;
    pith__convert(to, PITH_F64, 0, t->data, t->dtype, 0, total, true);
    if (zeros) {
        for (int64_t i = 0; i < total; i++) {
            double z;
            pith__convert(&z, PITH_F64, 0, zero->data, zero->dtype,
                          zeros == 1 ? 0 : i / row % zeros, 1, true);
            to[i] -= z;
        }
    }
}

static float conv_number(const pith__run *r, int input, int64_t i) {
    float v;
    const pith_tensor *t = r->in[input];
    pith__convert(&v, PITH_F32, 0, t->data, t->dtype, pith__tensor_count(t) == 1 ? 0 : i, 1, true);
    return v;
}

/* Exact sums into the output's type: as they are, or scaled and rounded. */
static void conv_finish_integers(const pith__run *r, const layout *l, const double *sums,
                                 int64_t maps, int64_t plane) {
    pith_tensor *y = r->out[0];
    double low = y->dtype == PITH_I8 ? -128 : 0, high = y->dtype == PITH_I8 ? 127 : 255;
    for (int64_t i = 0; i < pith__tensor_count(y); i++) {
        int64_t map = i / plane % maps;
        double v = sums[i];
        if (l->y_scale >= 0) {
            if (pith__has_input(r, l->bias))
                v += (double)((const int32_t *)r->in[l->bias]->data)[map];
            float scaled =
                (float)v * (conv_number(r, l->x_scale, 0) * conv_number(r, l->w_scale, map) /
                            conv_number(r, l->y_scale, 0));
            v = rint((double)scaled) + (double)conv_number(r, l->y_zero, 0);
            if (v < low) v = low;
            if (v > high) v = high;
        }
        pith__convert(y->data, y->dtype, i, &v, PITH_F64, 0, 1, true);
    }
}

/* After the sums, as the numeric definition says. Only the general way needs it; the others add the
 * bias themselves. */
static void conv_add_bias(const pith__run *r, const pith_tensor *bias, int64_t maps, int64_t plane,
                          bool f32) {
    int64_t rows = pith__tensor_count(r->out[0]) / plane;
    for (int64_t i = 0; i < rows; i++) {
        if (f32) {
            float *y = (float *)r->out[0]->data + i * plane,
                  b = ((const float *)bias->data)[i % maps];
            for (int64_t k = 0; k < plane; k++) y[k] += b;
        } else {
            double *y = (double *)r->out[0]->data + i * plane,
                   b = ((const double *)bias->data)[i % maps];
            for (int64_t k = 0; k < plane; k++) y[k] += b;
        }
    }
}

/* Sizes and windows of a run. */
static pith_status conv_job_begin(job *j, const pith__run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[s->inputs->x], *w = r->in[s->inputs->w], *y = r->out[0];
    int64_t in[PITH_MAX_RANK], out[PITH_MAX_RANK];
    conv_dims(in, r->node, "x_last", x->dims, x->rank);
    conv_dims(out, r->node, "y_last", y->dims, y->rank);
    j->z = conv_sizes_of(r->node, in, w->dims, s->transposed);
    if (s->transposed)
        return conv_transposed_window(&j->w, r->node, in, w->dims, out, x->rank - 2, r->err);
    PITH_TRY(pith__windows_attributes(&j->w, r->node, x->rank - 2, w->dims + 2, r->err));
    pith__windows_complete(&j->w, r->node, in + 2, out + 2);
    return PITH_OK;
}

/* Runs the way that was chosen. The general way widens integers to f64 first and rounds their sums
 * afterwards: both exact, because sums of 8-bit products stay below 2^53. */
static pith_status conv_run_plain(pith__run *r) {
    const state *s = r->state;
    const layout *l = s->inputs;
    const pith_tensor *x = r->in[l->x], *w = r->in[l->w];
    pith_tensor *y = r->out[0];
    if (!pith__tensor_count(y)) return PITH_OK;
    job j = { .r = r, .s = s, .x = x->data, .weights = w->data, .y = y->data };
    PITH_TRY(conv_job_begin(&j, r));
    if (s->integers.possible) return s->whole->run(r, &s->integers, l, &j.w);
    if (s->f32_planes) {
        pith__conv_f32_run(r, &s->f32, &j.z, &j.w, x->data, w->data,
                           pith__has_input(r, l->bias) ? r->in[l->bias]->data : NULL, y->data);
        return PITH_OK;
    }
    if (s->phases && pith__conv_transpose_fits(&j.z, &j.w)) {
        pith__conv_transpose_run(r, &s->f32, &j.z, &j.w, x->data, w->data,
                                 pith__has_input(r, l->bias) ? r->in[l->bias]->data : NULL,
                                 y->data);
        return PITH_OK;
    }
    j.kernel = pith__window_count(j.w.kernel, j.w.rank);
    j.windows = pith__window_count(j.w.out, j.w.rank);
    j.plane = pith__window_count(j.w.in, j.w.rank);
    conv_part_elements(s, &j.z, j.kernel, j.windows, j.places);
    for (int i = 0; i < 3; i++) j.worker_bytes += pith__round64((size_t)j.places[i] * s->size);
    char *rest = r->scratch;
    double *sums = NULL;
    if (s->whole) {
        double *wide_x = (double *)(void *)rest, *wide_w;
        rest += pith__round64((size_t)pith__tensor_count(x) * sizeof(double));
        wide_w = (double *)(void *)rest;
        rest += pith__round64((size_t)pith__tensor_count(w) * sizeof(double));
        sums = (double *)(void *)rest;
        rest += pith__round64((size_t)pith__tensor_count(y) * sizeof(double));
        s->whole->widen(wide_x, x, pith__has_input(r, l->x_zero) ? r->in[l->x_zero] : NULL,
                        pith__tensor_count(x));
        s->whole->widen(wide_w, w, pith__has_input(r, l->w_zero) ? r->in[l->w_zero] : NULL,
                        pith__tensor_count(w) / w->dims[0]);
        j.x = (const char *)wide_x;
        j.weights = (const char *)wide_w;
        j.y = (char *)sums;
    }
    j.workers = rest;
    j.tiles = (j.windows + TILE - 1) / TILE;
    if (s->transposed)
        pith__run_parallel(r, conv_run_transposed, &j, (size_t)(j.z.batch * j.z.groups));
    else
        pith__run_parallel(r, conv_run_tile, &j, (size_t)(j.z.batch * j.z.groups * j.tiles));
    int64_t plane = s->transposed ? j.plane : j.windows, maps = j.z.maps * j.z.groups;
    if (sums)
        s->whole->finish(r, l, sums, maps, plane);
    else if (pith__has_input(r, l->bias))
        conv_add_bias(r, r->in[l->bias], maps, plane, s->gemm != NULL);
    return PITH_OK;
}

/* The planes of f32 finish each part with the tail; other ways finish all at the end. */
static pith_status conv_run(pith__run *r) {
    const state *s = r->state;
    if (s->f32_planes && r->out[0]->dtype == PITH_F32) return conv_run_plain(r);
    pith__run without = *r;
    without.tail = NULL;
    PITH_TRY(pith__widen_run(&without, conv_unread(s), conv_run_plain));
    pith__run_tail(r);
    return PITH_OK;
}

static void conv_cost(const pith__run *r, pith__cost *cost) {
    const state *s = r->state;
    const pith_tensor *w = r->in[s->inputs->w],
                      *windows = s->transposed ? r->in[s->inputs->x] : r->out[0];
    double per_window = (double)pith__tensor_count(w) / (double)(w->dims[0] ? w->dims[0] : 1);
    cost->operations = 2.0 * (double)pith__tensor_count(windows) * per_window;
    cost->kernel = s->gemm ? "gemm f32" : NULL;
    if (s->f32_planes || s->phases) cost->kernel = "conv f32";
}

static pith_status conv_prepare(pith__prepare *c) { return conv_prepare_any(c, NULL); }

static const conv_integers conv_integers_all = { pith__conv_int_prepare, pith__conv_int_scratch,
                                                 pith__conv_int_run, conv_widen_integers,
                                                 conv_finish_integers };

static pith_status conv_prepare_integers(pith__prepare *c) {
    return conv_prepare_any(c, &conv_integers_all);
}

static pith_status conv_prepare_last(pith__prepare *c) {
    PITH_TRY(conv_prepare_integers(c));
    if (((const state *)c->state)->integers.possible || c->lacking) return PITH_OK;
    return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                      "the weights are not constants, or too many for a sum of 32 bits");
}

#define CONV(symbol, prepare_, types_, since_, newest_, attrs_, min, max)                          \
    CONV_OF(symbol, "", #symbol, prepare_, types_, since_, newest_, attrs_, min, max)

/* A convolution: the inputs' places follow from its name (layouts), the way from prepare_. */
#define CONV_OF(symbol, domain_, name_, prepare_, types_, since_, newest_, attrs_, min, max)       \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = since_,                                          \
                                         .min_inputs = min,                                        \
                                         .max_inputs = max,                                        \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .flags = PITH_OP_TAILS,                                   \
                                         .infer = conv_infer,                                      \
                                         .prepare = prepare_,                                      \
                                         .scratch = conv_scratch,                                  \
                                         .run = conv_run,                                          \
                                         .cost = conv_cost };
CONV(Conv, conv_prepare, "f", 1, 22,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; "
     "strides ints 1..",
     2, 3)
CONV(ConvInteger, conv_prepare_integers, "q", 10, 10,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; "
     "strides ints 1..",
     2, 4)
CONV(ConvTranspose, conv_prepare, "f", 1, 22,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; "
     "output_padding ints 0..; output_shape ints 0..; pads ints; strides ints 1..",
     2, 3)
CONV(QLinearConv, conv_prepare_integers, "qeqqeqeqw", 10, 10,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; "
     "strides ints 1..",
     8, 9)
/* QLinearConv with the channels as the last axis of x, of y or of both. pass_channels_last.c makes
 * it. */
CONV_OF(QLinearConvLast_pith, "pith", "QLinearConvLast", conv_prepare_last, "qeqqeqeqw", 1, 1,
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; "
        "strides ints 1..; x_last int 0..1 = 0; y_last int 0..1 = 0",
        8, 9)
