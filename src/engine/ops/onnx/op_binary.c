/* op_binary.c - operators with two broadcast inputs that are one loop, y = f(a, b), and their sums
 * over many inputs.
 *
 * A row per operator names its family in engine/kernels/maps_binary.c. Before opset 7 broadcasting
 * went in one direction and could begin at an axis (PRelu: at the channel). The attribute `axis` is
 * handled by padding b's shape with ones. */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/maps.h"
#include "engine/ops/shared/elementwise.h"

typedef struct row {
    const char *name, *family;
    pith__elem_fn *elem; /* contents of shape arithmetic; NULL: not followed */
} row;

#define ELEM(name, op)                                                                             \
    static pith__dim name(pith__dims *dims, const pith__dim *x, int count) {                       \
        pith__dim r = x[0];                                                                        \
        for (int i = 1; i < count; i++) r = pith__dim_apply(dims, op, r, x[i]);                    \
        return r;                                                                                  \
    }
ELEM(elem_add, PITH_DIM_ADD)
ELEM(elem_sub, PITH_DIM_SUB)
ELEM(elem_mul, PITH_DIM_MUL)
ELEM(binary_elem_min, PITH_DIM_MIN)
ELEM(binary_elem_max, PITH_DIM_MAX)

/* It cannot be negative, whatever the inputs' sizes are. */
static bool binary_is_size(pith__dims *dims, pith__dim x) {
    return pith__dim_equal(pith__dim_apply(dims, PITH_DIM_MAX, x, 0), x);
}

/* The operator truncates, symbols divide with floor: the same where both sides are sizes, or
 * nothing is left over. */
static pith__dim binary_elem_div(pith__dims *dims, const pith__dim *x, int count) {
    (void)count;
    if (pith__dim_known(x[0]) && pith__dim_known(x[1]))
        return x[1] == 0 ? PITH_DIM_UNKNOWN : x[0] / x[1];
    pith__dim q = pith__dim_apply(dims, PITH_DIM_FLOOR_DIV, x[0], x[1]);
    bool exact = pith__dim_equal(pith__dim_apply(dims, PITH_DIM_MUL, q, x[1]), x[0]);
    return exact || (binary_is_size(dims, x[0]) && binary_is_size(dims, x[1])) ? q
                                                                               : PITH_DIM_UNKNOWN;
}

static pith__dim binary_elem_mod(pith__dims *dims, const pith__dim *x, int count) {
    (void)dims;
    (void)count;
    if (!pith__dim_known(x[0]) || !pith__dim_known(x[1]) || x[1] == 0 || x[1] == -1)
        return PITH_DIM_UNKNOWN;
    int64_t m = x[0] % x[1];
    return m != 0 && (m < 0) != (x[1] < 0) ? m + x[1] : m;
}

/* A size is never negative, so it differs from a negative number whatever it is. */
static pith__dim binary_elem_equal(pith__dims *dims, const pith__dim *x, int count) {
    (void)count;
    if (pith__dim_equal(x[0], x[1])) return 1;
    if (pith__dim_known(x[0]) && pith__dim_known(x[1])) return 0;
    for (int i = 0; i < 2; i++) {
        if (binary_is_size(dims, x[i]) && pith__dim_known(x[1 - i]) && x[1 - i] < 0) return 0;
    }
    return PITH_DIM_UNKNOWN;
}

#define COMPARE(name, op)                                                                          \
    static pith__dim name(pith__dims *dims, const pith__dim *x, int count) {                       \
        (void)dims;                                                                                \
        (void)count;                                                                               \
        return pith__dim_known(x[0]) && pith__dim_known(x[1]) ? x[0] op x[1] : PITH_DIM_UNKNOWN;   \
    }
COMPARE(elem_less, <)
COMPARE(elem_less_equal, <=)
COMPARE(elem_greater, >)
COMPARE(elem_greater_equal, >=)
COMPARE(elem_and, &&)
COMPARE(elem_or, ||)

/* With fmod the sign is the dividend's. */
static pith__dim binary_elem_fmod(pith__dims *dims, const pith__dim *x, int count) {
    (void)dims;
    (void)count;
    bool known = pith__dim_known(x[0]) && pith__dim_known(x[1]) && x[1] != 0 && x[1] != -1;
    return known ? x[0] % x[1] : PITH_DIM_UNKNOWN;
}

/* One row per operator. Greater and GreaterOrEqual use the loop of Less with its operands swapped;
 * Mean sums and then divides; Mod, Pow and BitShift choose their family when they are prepared. */
static const row rows[] = {
    { "Add", "add", elem_add },
    { "And", "and", elem_and },
    { "BitwiseAnd", "bit_and", NULL },
    { "BitwiseOr", "bit_or", NULL },
    { "BitwiseXor", "bit_xor", NULL },
    { "Div", "div", binary_elem_div },
    { "Equal", "equal", binary_elem_equal },
    { "Greater", "less", elem_greater },
    { "GreaterOrEqual", "less_equal", elem_greater_equal },
    { "Less", "less", elem_less },
    { "LessOrEqual", "less_equal", elem_less_equal },
    { "Max", "max", binary_elem_max },
    { "Mean", "add", NULL },
    { "Min", "min", binary_elem_min },
    { "Mod", "mod", NULL },
    { "Mul", "mul", elem_mul },
    { "Or", "or", elem_or },
    { "PRelu", "prelu", NULL },
    { "Sub", "sub", elem_sub },
    { "Sum", "add", elem_add },
    { "Xor", "xor", NULL },
};

static const row *binary_find_row(const pith__node *node) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (pith__str_is(node->op_type, rows[i].name)) return &rows[i];
    }
    return NULL;
}

/* Rank that b is padded to at its end, for the old attribute; b's own rank otherwise. */
static int binary_padded_rank(const pith__node *node, int a_rank, int b_rank) {
    bool per_channel = pith__str_is(node->op_type, "PRelu");
    if (node->opset >= 7 || !(per_channel || pith__node_attr(node, "axis")) || a_rank < b_rank)
        return b_rank;
    int64_t axis = pith__node_int(node, "axis", per_channel);
    if (axis < 0) axis += a_rank;
    return axis < 0 || axis > a_rank - b_rank ? b_rank : (int)(a_rank - axis);
}

/* Broadcasts the shapes. Contents are followed only for operands that needed no padding and, for
 * Mod, without fmod: the row's function knows neither. */
static pith_status binary_infer_shape(pith__infer *c, int dtype) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, c->in_count - 1));
    pith__type b = *c->in[1], out;
    if (b.rank >= 0 && c->in[0]->rank >= 0) {
        int rank = binary_padded_rank(c->node, c->in[0]->rank, b.rank);
        while (b.rank < rank) b.dims[b.rank++] = 1;
    }
    /* as the rows' functions have it */
    bool plain = b.rank == c->in[1]->rank && !pith__node_int(c->node, "fmod", 0);
    pith__type_init(&out);
    PITH_TRY(pith__infer_broadcast(c, c->in[0], &b, &out));
    pith__infer_set(c, 0, dtype, out.rank, out.dims);
    const row *found = binary_find_row(c->node);
    return found && found->elem && plain ? pith__infer_elems(c, found->elem) : PITH_OK;
}

static pith_status binary_infer(pith__infer *c) {
    int dtype = c->in[0]->dtype != PITH_UNDEFINED ? c->in[0]->dtype : c->in[1]->dtype;
    return binary_infer_shape(c, dtype);
}

static pith_status binary_infer_mod(pith__infer *c) {
    bool fmod = pith__node_int(c->node, "fmod", 0) != 0;
    PITH_TRY(binary_infer(c));
    return pith__infer_elems(c, fmod ? binary_elem_fmod : binary_elem_mod);
}

static pith_status binary_infer_test(pith__infer *c) { return binary_infer_shape(c, PITH_BOOL); }

static pith_status binary_prepare_family(pith__prepare *c, const char *family, int dtype,
                                         int result) {
    pith__map_state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(pith__map_find(s, family, dtype, c));
    s->result = result ? result : s->compute;
    c->state = s;
    return PITH_OK;
}

static pith_status binary_prepare(pith__prepare *c) {
    return binary_prepare_family(c, binary_find_row(c->node)->family, c->in[0]->dtype, 0);
}

static pith_status binary_prepare_test(pith__prepare *c) {
    return binary_prepare_family(c, binary_find_row(c->node)->family, c->in[0]->dtype, PITH_BOOL);
}

static pith_status binary_prepare_as_unsigned(pith__prepare *c, const char *family) {
    static const uint8_t unsigned_of[PITH_DTYPE_COUNT] = {
        [PITH_U8] = PITH_U8,   [PITH_I8] = PITH_U8,   [PITH_U16] = PITH_U16, [PITH_I16] = PITH_U16,
        [PITH_U32] = PITH_U32, [PITH_I32] = PITH_U32, [PITH_U64] = PITH_U64, [PITH_I64] = PITH_U64
    };
    int dtype = c->in[0]->dtype;
    if (dtype < 0 || dtype >= PITH_DTYPE_COUNT || !unsigned_of[dtype])
        return pith__fail_dtype(c->err, dtype);
    PITH_TRY(binary_prepare_family(c, family, unsigned_of[dtype], dtype));
    ((pith__map_state *)c->state)->compute = dtype;
    return PITH_OK;
}

static pith_status binary_prepare_bits(pith__prepare *c) {
    return binary_prepare_as_unsigned(c, binary_find_row(c->node)->family);
}

static pith_status binary_prepare_shift(pith__prepare *c) {
    pith_str direction = pith__node_str(c->node, "direction", "");
    bool left = pith__str_is(direction, "LEFT");
    if (!left && !pith__str_is(direction, "RIGHT")) {
        return pith__op_fail(c, "attribute direction is '" PITH_STR_FMT "', expected LEFT or RIGHT",
                             PITH_STR_ARG(direction));
    }
    return left ? binary_prepare_as_unsigned(c, "shift_left")
                : binary_prepare_family(c, "shift_right", c->in[0]->dtype, 0);
}

static pith_status binary_prepare_mod(pith__prepare *c) {
    return binary_prepare_family(c, pith__node_int(c->node, "fmod", 0) ? "fmod" : "mod",
                                 c->in[0]->dtype, 0);
}

/* Only where no rank has to be made equal. */
static bool binary_elementwise(const pith__run *r, pith__elementwise *e) {
    *e = pith__map2_of(r->state, r->out[0], r->in[0], r->in[1]);
    return binary_padded_rank(r->node, r->in[0]->rank, r->in[1]->rank) == r->in[1]->rank;
}

static pith_status binary_apply(pith__run *r, const pith_tensor *a, const pith_tensor *b) {
    pith_tensor padded = *r->in[1];
    int rank = binary_padded_rank(r->node, r->in[0]->rank, padded.rank);
    while (padded.rank < rank) padded.dims[padded.rank++] = 1;
    if (a == r->in[1]) a = &padded;
    if (b == r->in[1]) b = &padded;
    pith__map2_apply(r, r->state, r->out[0], a, b);
    return PITH_OK;
}

static pith_status binary_run(pith__run *r) { return binary_apply(r, r->in[0], r->in[1]); }
static pith_status binary_run_swapped(pith__run *r) { return binary_apply(r, r->in[1], r->in[0]); }

/* ---- Pow: the exponent may have a type of its own ---- */

static pith_status binary_infer_pow(pith__infer *c) {
    pith__type out;
    pith__type_init(&out);
    pith__type b = *c->in[1];
    if (b.rank >= 0 && c->in[0]->rank >= 0) {
        int rank = binary_padded_rank(c->node, c->in[0]->rank, b.rank);
        while (b.rank < rank) b.dims[b.rank++] = 1;
    }
    PITH_TRY(pith__infer_broadcast(c, c->in[0], &b, &out));
    pith__infer_set(c, 0, c->in[0]->dtype, out.rank, out.dims);
    return PITH_OK;
}

static pith_status binary_prepare_pow(pith__prepare *c) {
    int base = c->in[0]->dtype, exponent = c->in[1]->dtype;
    if (!pith__convert_known(exponent, PITH_F64)) return pith__fail_dtype(c->err, exponent);
    bool mixed = !pith__dtype_is_float(base) && pith__dtype_is_float(exponent);
    return binary_prepare_family(c, "pow", mixed ? PITH_F64 : base, 0);
}

/* ---- Sum, Mean, Max, Min ---- */

/* Shapes broadcast one after another, as the sums do. */
static pith_status binary_infer_many(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, c->in_count - 1));
    pith__type out = *c->in[0];
    for (int i = 1; i < c->in_count; i++) {
        pith__type next;
        pith__type_init(&next);
        PITH_TRY(pith__infer_broadcast(c, &out, c->in[i], &next));
        out.rank = next.rank;
        for (int k = 0; k < next.rank; k++) out.dims[k] = next.dims[k];
    }
    pith__infer_set(c, 0, out.dtype, out.rank, out.dims);
    const row *found = binary_find_row(c->node);
    return found->elem ? pith__infer_elems(c, found->elem) : PITH_OK;
}

static void binary_scale_loop(const void *context, void *y, const void *const *x,
                              const int *strides, int64_t n) {
    double count = *(const double *)context;
    const double *p = x[0];
    double *q = y;
    (void)strides;
    for (int64_t i = 0; i < n; i++) q[i] = p[i] / count;
}

/* The first two operands give the output, each further one is combined with it in place. Mean
 * divides at the end, in double, so that its rounding is one step. */
static pith_status binary_run_many(pith__run *r) {
    pith_tensor *out = r->out[0];
    const pith_tensor *sum = r->in[0];
    if (r->in_count == 1) PITH_TRY(pith__run_bytes(r, out->data, sum->data, sum->bytes));
    for (int i = 1; i < r->in_count; i++) {
        pith__map2_apply(r, r->state, out, sum, r->in[i]);
        sum = out;
    }
    if (!pith__str_is(r->node->op_type, "Mean")) return PITH_OK;
    double count = r->in_count;
    pith__elementwise e = { .count = 1,
                            .in = { out },
                            .out = out,
                            .compute = { PITH_F64 },
                            .result = PITH_F64,
                            .loop = binary_scale_loop,
                            .context = &count };
    pith__elementwise_run(r, &e);
    return PITH_OK;
}

/* An operator of two operands. run_ is binary_run, or binary_run_swapped for Greater and
 * GreaterOrEqual, which then cannot run as the tail of another step. */
#define BINARY(symbol, types_, since_, newest_, attrs_, flags_, infer_, prepare_, run_)            \
    const pith__op pith__op_##symbol = { .domain = "",                                             \
                                         .name = #symbol,                                          \
                                         .since = since_,                                          \
                                         .min_inputs = 2,                                          \
                                         .max_inputs = 2,                                          \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .flags = flags_,                                          \
                                         .infer = infer_,                                          \
                                         .prepare = prepare_,                                      \
                                         .run = run_,                                              \
                                         .elementwise =                                            \
                                             run_ == binary_run ? binary_elementwise : NULL };
#define MAP_FLAGS (PITH_OP_ELEMENTWISE | PITH_OP_IN_PLACE | PITH_OP_TAILS)
BINARY(Add, "n", 1, 14, "axis int @-6; broadcast bool = 0 @-6; consumed_inputs ints @-5", MAP_FLAGS,
       binary_infer, binary_prepare, binary_run)
BINARY(And, "b", 1, 7, "axis int @-6; broadcast bool = 0 @-6", MAP_FLAGS, binary_infer,
       binary_prepare, binary_run)
BINARY(BitShift, "z", 11, 28, "direction string! LEFT|RIGHT", MAP_FLAGS, binary_infer,
       binary_prepare_shift, binary_run)
BINARY(BitwiseAnd, "z", 18, 18, "", MAP_FLAGS, binary_infer, binary_prepare_bits, binary_run)
BINARY(BitwiseOr, "z", 18, 18, "", MAP_FLAGS, binary_infer, binary_prepare_bits, binary_run)
BINARY(BitwiseXor, "z", 18, 18, "", MAP_FLAGS, binary_infer, binary_prepare_bits, binary_run)
BINARY(Div, "n", 1, 14, "axis int @-6; broadcast bool = 0 @-6; consumed_inputs ints @-5", MAP_FLAGS,
       binary_infer, binary_prepare, binary_run)
BINARY(Equal, "c", 1, 19, "axis int @-6; broadcast bool = 0 @-6", PITH_OP_ELEMENTWISE,
       binary_infer_test, binary_prepare_test, binary_run)
BINARY(Greater, "n", 1, 13, "axis int @-6; broadcast bool = 0 @-6", PITH_OP_ELEMENTWISE,
       binary_infer_test, binary_prepare_test, binary_run_swapped)
BINARY(GreaterOrEqual, "n", 1, 16, "", PITH_OP_ELEMENTWISE, binary_infer_test, binary_prepare_test,
       binary_run_swapped)
BINARY(Less, "n", 1, 13, "axis int @-6; broadcast bool = 0 @-6", PITH_OP_ELEMENTWISE,
       binary_infer_test, binary_prepare_test, binary_run)
BINARY(LessOrEqual, "n", 1, 16, "", PITH_OP_ELEMENTWISE, binary_infer_test, binary_prepare_test,
       binary_run)
BINARY(Mod, "n", 10, 28, "fmod bool = 0", MAP_FLAGS, binary_infer_mod, binary_prepare_mod,
       binary_run)
BINARY(Mul, "n", 1, 14, "axis int @-6; broadcast bool = 0 @-6; consumed_inputs ints @-5", MAP_FLAGS,
       binary_infer, binary_prepare, binary_run)
BINARY(Or, "b", 1, 7, "axis int @-6; broadcast bool = 0 @-6", MAP_FLAGS, binary_infer,
       binary_prepare, binary_run)
BINARY(Pow, "jn", 1, 15, "axis int @-6; broadcast bool = 0 @-6", MAP_FLAGS, binary_infer_pow,
       binary_prepare_pow, binary_run)
BINARY(PRelu, "r", 1, 16, "consumed_inputs ints @-5", MAP_FLAGS, binary_infer, binary_prepare,
       binary_run)
BINARY(Sub, "n", 1, 14, "axis int @-6; broadcast bool = 0 @-6; consumed_inputs ints @-5", MAP_FLAGS,
       binary_infer, binary_prepare, binary_run)
BINARY(Xor, "b", 1, 7, "axis int @-6; broadcast bool = 0 @-6", MAP_FLAGS, binary_infer,
       binary_prepare, binary_run)

/* An operator of one or more operands of one dtype. */
#define MANY(symbol, types_, newest_)                                                              \
    const pith__op pith__op_##symbol = { .domain = "",                                             \
                                         .name = #symbol,                                          \
                                         .since = 1,                                               \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = -1,                                         \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = "consumed_inputs ints @-5",                      \
                                         .flags = PITH_OP_ELEMENTWISE,                             \
                                         .infer = binary_infer_many,                               \
                                         .prepare = binary_prepare,                                \
                                         .run = binary_run_many };
MANY(Max, "n", 13)
MANY(Mean, "f", 13)
MANY(Min, "n", 13)
MANY(Sum, "f", 13)
