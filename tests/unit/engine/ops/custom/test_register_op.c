/* Operators that a program registers, in models that the test writes: through include/pith alone.
 */
#include "support/operator_models.h"

/* ---- y = x * factor + offset: attributes, state, scratch, threads ---- */

typedef struct scale_state {
    float factor, offset;
    int64_t extra;
} scale_state;

static pith_status scale_infer(pith_op_infer *c) {
    c->out[0] = *c->in[0];
    return PITH_OK;
}

static pith_status scale_prepare(pith_op_prepare *c) {
    size_t count;
    const int64_t *extra = pith_op_ints(&count, c->node, "extra");
    const pith_str mode = pith_op_string(c->node, "mode");
    scale_state *state = pith_op_state(c, sizeof *state);
    if (!state) return PITH_ERR_MEMORY;
    assert_int_equal((uintptr_t)state % 64, 0);
    state->factor = pith_op_float(c->node, "factor");
    state->offset = (float)pith_op_int(c->node, "offset");
    state->extra = 0;
    for (size_t i = 0; i < count; i++) state->extra += extra[i];
    if (mode.size == 3 && !memcmp(mode.data, "neg", 3)) state->factor = -state->factor;
    c->state = state;
    return PITH_OK;
}

static pith_status scale_scratch(size_t *bytes, const pith_op_infer *c, const void *state,
                                 int32_t threads) {
    assert_non_null(state);
    assert_true(threads >= 1);
    *bytes = (size_t)pith_shape_count(c->out[0].dims, c->out[0].rank) * sizeof(float);
    return PITH_OK;
}

static void scale_part(void *context, size_t part, int worker) {
    pith_op_run *r = context;
    const scale_state *state = r->state;
    const float *x = r->in[0]->data;
    float *scratch = r->scratch;
    assert_true(worker >= 0 && worker < r->threads);
    scratch[part] = x[part] * state->factor;
    ((float *)r->out[0]->data)[part] = scratch[part] + state->offset + (float)state->extra;
}

static pith_status scale_run(pith_op_run *r) {
    pith_op_parallel(r, scale_part, r, (size_t)pith_shape_count(r->in[0]->dims, r->in[0]->rank));
    return PITH_OK;
}

static const pith_operator scale = {
    PITH_OPERATOR_BEGIN,
    .domain = "example",
    .name = "Scale",
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .flags = PITH_OPERATOR_ELEMENTWISE,
    .types = "f32|f64",
    .attributes = "factor float = 2.5; offset int -9..9 = 3; mode string pos|neg = pos; extra ints",
    .infer = scale_infer,
    .prepare = scale_prepare,
    .scratch = scale_scratch,
    .run = scale_run,
};

static void an_operator_is_found_once_it_is_registered(void **state) {
    (void)state;
    const message plain = model_of("Scale", PITH_F32, 1, NULL);
    float y[6];
    int64_t count;
    pith_error err;
    refused(&plain, PITH_ERR_UNSUPPORTED, "example.Scale");
    registered(&scale);
    pith_model *model = opened(&plain);
    assert_int_equal(run(model, y, &count, 6, 1, &err), PITH_OK);
    assert_int_equal(count, 6);
    for (int i = 0; i < 6; i++) assert_true(y[i] == (float)i * 2.5f + 3);
    pith_model_close(model);
}

static void attributes_reach_it_and_are_checked(void **state) {
    (void)state;
    message given = { .size = 0 }, wrong = { .size = 0 }, unknown = { .size = 0 },
            kind = { .size = 0 };
    float y[4];
    int64_t count;
    pith_error err;
    put_attribute(&given, "factor", 1, 0.5f, 0, NULL);
    put_attribute(&given, "offset", 2, 0, -2, NULL);
    put_attribute(&given, "mode", 3, 0, 0, "neg");
    put_attribute(&given, "extra", 7, 0, 3, NULL); /* 5 + 6 + 7 */
    const message good = model_of("Scale", PITH_F32, 1, &given);
    pith_model *model = opened(&good);
    assert_int_equal(run(model, y, &count, 4, 1, &err), PITH_OK);
    for (int i = 0; i < 4; i++) assert_true(y[i] == (float)i * -0.5f - 2 + 18);
    pith_model_close(model);
    put_attribute(&wrong, "offset", 2, 0, 10, NULL);
    const message out_of_range = model_of("Scale", PITH_F32, 1, &wrong);
    refused(&out_of_range, PITH_ERR_ARGUMENT,
            "node 0 'mine' (Scale): attribute 'offset' is 10, expected -9 to 9");
    put_attribute(&unknown, "axis", 2, 0, 1, NULL);
    const message other = model_of("Scale", PITH_F32, 1, &unknown);
    refused(&other, PITH_ERR_ARGUMENT,
            "has no attribute 'axis'; it has factor, offset, mode, extra");
    put_attribute(&kind, "factor", 2, 0, 1, NULL);
    const message other_kind = model_of("Scale", PITH_F32, 1, &kind);
    refused(&other_kind, PITH_ERR_ARGUMENT, "attribute 'factor' is of type int, expected float");
}

static void other_dtypes_and_counts_are_refused(void **state) {
    (void)state;
    const message ints = model_of("Scale", PITH_I64, 1, NULL),
                  two = model_of("Scale", PITH_F32, 2, NULL);
    refused(&ints, PITH_ERR_UNSUPPORTED, "int64");
    refused(&ints, PITH_ERR_UNSUPPORTED, "f32|f64");
    refused(&two, PITH_ERR_ARGUMENT, "has 2 inputs, at most 1 are allowed");
}

/* ---- dynamic shapes: every other element ---- */

static pith_status some_infer(pith_op_infer *c) {
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].rank = 1;
    c->out[0].dims[0] = -1;
    return PITH_OK;
}

static int some_mode;

static pith_status some_run(pith_op_run *r) {
    const int64_t n = pith_shape_count(r->in[0]->dims, r->in[0]->rank), half = (n + 1) / 2,
                  negative = -3;
    const float *x = r->in[0]->data;
    if (some_mode == 1) return PITH_OK;
    if (some_mode == 2) return pith_op_output(r, 0, PITH_F32, 1, &negative);
    if (some_mode == 3) return pith_op_output(r, 4, PITH_F32, 1, &half);
    if (some_mode == 4)
        return snprintf(r->err->message, sizeof r->err->message, "no %s today", "luck"),
               PITH_ERR_RUN;
    if (some_mode == 5) return PITH_ERR_RUN;
    if (some_mode == 6) return (pith_status)77;
    pith_status status = pith_op_output(r, 0, PITH_F32, 1, &half);
    if (status) return status;
    for (int64_t i = 0; i < half; i++) ((float *)r->out[0]->data)[i] = x[2 * i];
    return PITH_OK;
}

static void run_may_find_the_shape_and_fail(void **state) {
    (void)state;
    static const char *const says[] = {
        "node 0 'mine' (Some): run did not call pith_op_output for output 0",
        "pith_op_output: the shape of output 0 is no shape",
        "pith_op_output: the node has no output 4",
        "node 0 'mine' (Some): no luck today",
        "the operator's run failed and gave no reason",
        "the operator's run returned 77, which is no pith_status"
    };
    pith_operator some = { PITH_OPERATOR_BEGIN, .domain = "example", .name = "Some",
                           .min_inputs = 1,     .max_inputs = 1,     .max_outputs = 1,
                           .infer = some_infer, .run = some_run };
    some.flags = PITH_OPERATOR_DYNAMIC;
    registered(&some);
    const message bytes = model_of("Some", PITH_F32, 1, NULL);
    pith_model *model = opened(&bytes);
    float y[6];
    int64_t count;
    pith_error err;
    for (some_mode = 1; some_mode <= 6; some_mode++) {
        assert_int_not_equal(run(model, y, &count, 6, 1, &err), PITH_OK);
        if (!strstr(err.message, says[some_mode - 1])) fail_msg("%s", err.message);
    }
    some_mode = 0;
    assert_int_equal(run(model, y, &count, 6, 1, &err), PITH_OK);
    assert_int_equal(count, 3);
    assert_true(y[0] == 0 && y[1] == 2 && y[2] == 4);
    pith_model_close(model);
}

/* ---- infer that leaves things open or is wrong ---- */

static int odd_mode;

static pith_status odd_infer(pith_op_infer *c) {
    c->out[0] = *c->in[0];
    if (odd_mode == 1) c->out[0].rank = 99;
    if (odd_mode == 2) c->out[0].dtype = 500;
    if (odd_mode == 3) c->out[0].rank = 1, c->out[0].dims[0] = -1;
    if (odd_mode == 4)
        return snprintf(c->err->message, sizeof c->err->message, "x is odd"), PITH_ERR_ARGUMENT;
    return PITH_OK;
}

static pith_status odd_run(pith_op_run *r) {
    memcpy(r->out[0]->data, r->in[0]->data, r->in[0]->bytes);
    return PITH_OK;
}

static void what_infer_says_is_checked(void **state) {
    (void)state;
    const pith_operator odd = { PITH_OPERATOR_BEGIN, .domain = "example", .name = "Odd",
                                .min_inputs = 1,     .max_inputs = 1,     .max_outputs = 1,
                                .attributes = "",    .infer = odd_infer,  .run = odd_run };
    registered(&odd);
    const message bytes = model_of("Odd", PITH_F32, 1, NULL);
    odd_mode = 1;
    refused(&bytes, PITH_ERR_ARGUMENT, "node 0 'mine' (Odd): infer gave output 0 the rank 99");
    odd_mode = 2;
    refused(&bytes, PITH_ERR_ARGUMENT, "infer gave output 0 the dtype 500");
    odd_mode = 4;
    refused(&bytes, PITH_ERR_ARGUMENT, "node 0 'mine' (Odd): x is odd");
    odd_mode = 3;
    pith_model *model = opened(&bytes);
    float y[2];
    int64_t count;
    pith_error err;
    assert_int_equal(run(model, y, &count, 2, 1, &err), PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(err.message, "infer left the type of output 0 open, although all inputs are known"));
    odd_mode = 0;
    assert_int_equal(run(model, y, &count, 2, 1, &err), PITH_OK);
    assert_true(y[1] == 1);
    pith_model_close(model);
}

/* ---- descriptors ---- */

static void wrong(pith_operator op, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_register_op(&op, &err), PITH_ERR_ARGUMENT);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
    assert_int_equal(pith_register_op(&op, NULL), PITH_ERR_ARGUMENT);
}

#define WRONG(says, field, value)                                                                  \
    do {                                                                                           \
        pith_operator wrong_op_ = scale;                                                           \
        wrong_op_.name = "Wrong";                                                                  \
        wrong_op_.field = value;                                                                   \
        wrong(wrong_op_, says);                                                                    \
    } while (0)

static void wrong_descriptors_are_refused(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_register_op(NULL, &err), PITH_ERR_ARGUMENT);
    WRONG("the operator was compiled for version 2 of pith/op.h", abi, 2);
    WRONG("begin it with PITH_OPERATOR_BEGIN", size, 8);
    WRONG("the operator has no name", name, "");
    WRONG("the operator has no name", name, NULL);
    WRONG("operator example::Scale: an operator of this name was registered before", name, "Scale");
    WRONG("operator example::Wrong: it has no infer", infer, NULL);
    WRONG("operator example::Wrong: it has no run", run, NULL);
    WRONG("max_outputs is 0; it must be from 1 to 64", max_outputs, 0);
    WRONG("min_inputs is -1", min_inputs, -1);
    WRONG("max_inputs is 0, less than min_inputs, 1", max_inputs, 0);
    WRONG("max_inputs 65", max_inputs, 65);
    WRONG("flags has bits", flags, 1 << 20);
    WRONG("PITH_OPERATOR_DYNAMIC excludes", flags,
          PITH_OPERATOR_DYNAMIC | PITH_OPERATOR_ELEMENTWISE);
    WRONG("types: 'f33' is not read", types, "f32 f33");
    WRONG("types: 'f32||f64' is not read", types, "f32||f64");
    WRONG("types has more than 16 words", types, "* * * * * * * * * * * * * * * * *");
    WRONG("attributes: 'axis integer' is not read", attributes, "axis integer");
    WRONG("attributes: 'body' is of a kind that these operators do not have", attributes,
          "body graph");
    WRONG("attributes: 'pads' is a list, which has no default", attributes, "pads ints = 1,2");
    pith_operator builtin = scale;
    builtin.domain = NULL;
    builtin.name = "Add";
    wrong(builtin, "operator Add: Pith has an operator of this name");
    builtin.domain = "ai.onnx";
    wrong(builtin, "Pith has an operator of this name");
    builtin.domain = "com.microsoft";
    builtin.name = "BiasGelu";
    wrong(builtin, "operator com.microsoft::BiasGelu: Pith has");
}

/* ---- threads ---- */

enum { THREADS = 8, NAMES = 20 };

static pthread_barrier_t barrier;

typedef struct racer {
    int won;
    const message *model;
    char names[NAMES][16];
} racer;

static void *race(void *user) {
    racer *own = user;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < NAMES; i++) {
        pith_operator op = scale;
        pith_error err = PITH_ERROR_INIT;
        float y[40];
        int64_t count;
        snprintf(own->names[i], sizeof own->names[i], "Race%d", i);
        op.name = own->names[i];
        if (!pith_register_op(&op, &err))
            own->won++;
        else if (!strstr(err.message, "was registered before"))
            own->won = 1000;
        /* at the same time, models are opened and run */
        pith_model *model = opened(own->model);
        if (run(model, y, &count, 40, 1, &err) || y[39] != 39 * 2.5f + 3) own->won = 1000;
        pith_model_close(model);
    }
    return NULL;
}

static void threads_may_register_and_open(void **state) {
    (void)state;
    const message bytes = model_of("Scale", PITH_F32, 1, NULL);
    pthread_t threads[THREADS];
    static racer racers[THREADS]; /* names live as long as the process */
    int won = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        racers[i].model = &bytes;
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        won += racers[i].won;
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(won, NAMES);
}

/* ---- what selective builds hear ---- */

static void note(void *user, const pith_build_piece *piece) {
    if (strcmp(piece->list, "operators")) return;
    strcat(user, piece->name);
    strcat(user, "(");
    strcat(user, piece->dtypes);
    strcat(user, ") ");
}

static void a_list_of_pieces_names_it(void **state) {
    (void)state;
    char heard[512] = "";
    float y[4];
    int64_t count;
    pith_error err = PITH_ERROR_INIT;
    const message bytes = model_of("Scale", PITH_F32, 1, NULL);
    assert_int_equal(pith_pieces_record(&err), PITH_OK);
    pith_model *model = opened(&bytes);
    assert_int_equal(run(model, y, &count, 4, 1, &err), PITH_OK);
    pith_model_close(model);
    assert_int_equal(pith_pieces_read(note, heard, &err), PITH_OK);
    assert_string_equal(heard, "example::Scale(f32) ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_is_found_once_it_is_registered),
        cmocka_unit_test(attributes_reach_it_and_are_checked),
        cmocka_unit_test(other_dtypes_and_counts_are_refused),
        cmocka_unit_test(run_may_find_the_shape_and_fail),
        cmocka_unit_test(what_infer_says_is_checked),
        cmocka_unit_test(wrong_descriptors_are_refused),
        cmocka_unit_test(threads_may_register_and_open),
        cmocka_unit_test(a_list_of_pieces_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
