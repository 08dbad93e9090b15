/* own_operators.c - runs a model with two operators of this folder. usage: own_operators model.onnx
 */
#include <pith/pith.h>

#include <stdio.h>

/* example.RowRange: [rows, columns] to the largest minus the smallest number of each row. */
static pith_status row_range_infer(pith_op_infer *c) {
    const pith_op_type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 2) {
        snprintf(c->err->message, sizeof c->err->message, "x has rank %d, and must have 2",
                 (int)x->rank);
        return PITH_ERR_ARGUMENT;
    }
    c->out[0].dtype = x->dtype;
    c->out[0].rank = 1;
    c->out[0].dims[0] = x->rank == 2 ? x->dims[0] : -1;
    return PITH_OK;
}

static pith_status row_range_run(pith_op_run *r) {
    const float *x = r->in[0]->data;
    float *y = r->out[0]->data;
    const int64_t rows = r->in[0]->dims[0], columns = r->in[0]->dims[1];
    for (int64_t i = 0; i < rows; i++, x += columns) {
        float low = columns ? x[0] : 0, high = low;
        for (int64_t k = 1; k < columns; k++) {
            if (x[k] < low) low = x[k];
            if (x[k] > high) high = x[k];
        }
        y[i] = high - low;
    }
    return PITH_OK;
}

static const pith_operator row_range = {
    PITH_OPERATOR_BEGIN,      .domain = "example",  .name = "RowRange", .min_inputs = 1,
    .max_inputs = 1,          .max_outputs = 1,     .types = "f32",     .attributes = "",
    .infer = row_range_infer, .run = row_range_run,
};

int main(int argc, char **argv) {
    static float numbers[3][4] = { { 1, 2, 3, 4 }, { 0, -5, 0.25f, 9 }, { 7, 7, 7, 7 } };
    const pith_tensor x = {
        .data = numbers, .bytes = sizeof numbers, .dtype = PITH_F32, .rank = 2, .dims = { 3, 4 }
    };
    const char *const names[] = { "x" };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    pith_tensor y;
    if (argc < 2) return puts("usage: own_operators model.onnx"), 2;
    pith_status status = pith_register_op(&row_range, &err);
    if (!status) status = pith_model_open(&model, argv[1], NULL, &err);
    if (!status) status = pith_session_create(&session, model, &err);
    if (!status) status = pith_session_run(session, &y, names, &x, 1, NULL, &err);
    if (status) return printf("%s\n", err.message), 1;
    for (int64_t i = 0; i < y.dims[0]; i++) printf("%g\n", ((const float *)y.data)[i]);
    pith_session_destroy(session);
    pith_model_close(model);
    return 0;
}
