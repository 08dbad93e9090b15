/* test_relational_gradient.c - the network against a plain double version of every layer: answers,
 * losses, and gradients by central differences of that version. */
#include "support/relational_test.h"

#include <math.h>

#include "tables/network/network.h"

enum { DIM_MAX = 64, TEXT_MAX = 384 };

typedef struct plain {
    const pith__network *n;
    const pith__pack *pack;
    const pith__rdb *rdb;
    const pith__target *target;
    double *w; /* the parameters */
} plain;

static const double *at(const plain *p, int parameter) {
    return p->w + p->n->parameters[parameter].offset;
}

/* y = x W^T + bias. */
static void plain_linear(double *y, const plain *p, int parameter, bool bias, const double *x) {
    const pith__parameter *q = &p->n->parameters[parameter];
    for (int o = 0; o < q->out; o++) {
        y[o] = bias ? at(p, parameter + 1)[o] : 0;
        for (int i = 0; i < q->in; i++) y[o] += at(p, parameter)[o * q->in + i] * x[i];
    }
}

static void plain_norm(double *y, const plain *p, int parameter, const double *x) {
    const int dim = p->n->shape.dim;
    double squares = 0;
    for (int i = 0; i < dim; i++) squares += x[i] * x[i];
    for (int i = 0; i < dim; i++) y[i] = x[i] / sqrt(squares / dim + 1e-6) * at(p, parameter)[i];
}

static void plain_text(double *x, const plain *p, uint32_t string) {
    for (uint32_t i = 0; i < p->rdb->dim; i++)
        x[i] = p->rdb->vectors[(size_t)string * p->rdb->dim + i];
}

static void plain_cell(double *h, const plain *p, const pith__cell *cell) {
    const pith__rdb_column *c = &p->rdb->tables[cell->table].columns[cell->column];
    double text[TEXT_MAX], raw[DIM_MAX], name[DIM_MAX], value[DIM_MAX];
    plain_text(text, p, c->name_string);
    plain_linear(raw, p, p->n->name, true, text);
    plain_norm(name, p, p->n->name_norm, raw);
    if (cell->state == PITH_CELL_VALUE) {
        if (c->stype == PITH_STYPE_TEXT || c->stype == PITH_STYPE_CATEGORICAL) {
            plain_text(text, p, ((const uint32_t *)c->data)[cell->row]);
            plain_linear(raw, p, p->n->text, true, text);
        } else {
            float seen[PITH_TIME_FEATURES] = { pith__rdb_scaled(c, cell->row) };
            double x[PITH_TIME_FEATURES];
            if (c->stype == PITH_STYPE_TIMESTAMP)
                pith__rdb_time_features(seen, c, cell->row, p->pack->asked[cell->sequence], false);
            for (int i = 0; i < PITH_TIME_FEATURES; i++) x[i] = seen[i];
            plain_linear(raw, p,
                         c->stype == PITH_STYPE_NUMERICAL ? p->n->number
                         : c->stype == PITH_STYPE_BOOLEAN ? p->n->boolean
                                                          : p->n->time,
                         true, x);
        }
        plain_norm(value, p, p->n->value_norm, raw);
    } else {
        memcpy(value, at(p, cell->state == PITH_CELL_MASKED ? p->n->mask : p->n->null),
               sizeof(double) * (size_t)p->n->shape.dim);
    }
    for (int i = 0; i < p->n->shape.dim; i++) h[i] = name[i] + value[i];
}

/* Whether a cell sees another one, from what the kinds of attention mean. */
static bool sees(const plain *p, int kind, uint32_t query, uint32_t key) {
    const pith__cell *q = &p->pack->cells[query], *k = &p->pack->cells[key];
    if (q->sequence != k->sequence) return false;
    if (1 << kind == PITH_ATTEND_FULL || query == key) return true;
    if (1 << kind == PITH_ATTEND_COLUMN) return q->table == k->table && q->column == k->column;
    if (1 << kind == PITH_ATTEND_FEATURE && q->place == k->place) return true;
    for (uint32_t e = 0; e < p->pack->edge_count; e++) {
        const pith__edge *edge = &p->pack->edges[e];
        if (1 << kind == PITH_ATTEND_FEATURE ? edge->child == q->place && edge->parent == k->place
                                             : edge->parent == q->place && edge->child == k->place)
            return true;
    }
    return false;
}

static void plain_attend(double *h, const plain *p, const pith__network_layer *layer, int kind) {
    const int dim = p->n->shape.dim, head = dim / p->n->shape.heads;
    const uint32_t cells = p->pack->cell_count;
    double *qkv = calloc((size_t)cells * 3 * (size_t)dim, sizeof *qkv),
           *share = calloc(cells, sizeof *share);
    double normed[DIM_MAX], o[DIM_MAX], y[DIM_MAX];
    for (uint32_t i = 0; i < cells; i++) {
        plain_norm(normed, p, layer->norm, h + i * (uint32_t)dim);
        plain_linear(qkv + i * 3 * (uint32_t)dim, p, layer->in, false, normed);
    }
    for (uint32_t i = 0; i < cells; i++) {
        for (int a = 0; a < p->n->shape.heads; a++) {
            double sum = 0;
            for (uint32_t j = 0; j < cells; j++) {
                share[j] = 0;
                if (!sees(p, kind, i, j)) continue;
                for (int d = a * head; d < (a + 1) * head; d++)
                    share[j] += qkv[i * 3 * (uint32_t)dim + (uint32_t)d] *
                                qkv[j * 3 * (uint32_t)dim + (uint32_t)(dim + d)];
                share[j] = exp(share[j] / sqrt(head));
                sum += share[j];
            }
            for (int d = a * head; d < (a + 1) * head; d++) {
                o[d] = 0;
                for (uint32_t j = 0; j < cells; j++)
                    o[d] += share[j] / sum * qkv[j * 3 * (uint32_t)dim + (uint32_t)(2 * dim + d)];
            }
        }
        plain_linear(y, p, layer->out, false, o);
        for (int d = 0; d < dim; d++) h[i * (uint32_t)dim + (uint32_t)d] += y[d];
    }
    free(qkv);
    free(share);
}

static void plain_feed(double *h, const plain *p, const pith__network_layer *layer) {
    const int ff = p->n->shape.ff, dim = p->n->shape.dim;
    double normed[DIM_MAX], x[8 * DIM_MAX], y[DIM_MAX];
    for (uint32_t i = 0; i < p->pack->cell_count; i++) {
        plain_norm(normed, p, layer->norm, h + i * (uint32_t)dim);
        plain_linear(x, p, layer->in, false, normed);
        for (int k = 0; k < ff; k++) x[k] = x[k] / (1 + exp(-x[k])) * x[ff + k];
        plain_linear(y, p, layer->out, false, x);
        for (int d = 0; d < dim; d++) h[i * (uint32_t)dim + (uint32_t)d] += y[d];
    }
}

/* The sum of the losses; answers[sequences] if that is not NULL. */
static double plain_loss(double *answers, const plain *p) {
    const uint32_t dim = (uint32_t)p->n->shape.dim;
    const pith__target *t = p->target;
    double *h = calloc((size_t)p->pack->cell_count * dim, sizeof *h), normed[DIM_MAX], loss = 0;
    for (uint32_t i = 0; i < p->pack->cell_count; i++)
        plain_cell(h + i * dim, p, &p->pack->cells[i]);
    for (int b = 0; b < p->n->shape.blocks; b++) {
        for (int k = 0; k < PITH_ATTEND_KINDS; k++)
            if (p->n->shape.attend & 1u << k) plain_attend(h, p, &p->n->blocks[b].attend[k], k);
        plain_feed(h, p, &p->n->blocks[b].ff);
    }
    for (uint32_t s = 0; s < p->pack->sequences; s++) {
        const uint32_t cell = p->pack->seeds[s], row = p->pack->cells[cell].row;
        double z[PITH_TARGET_CLASSES];
        plain_norm(normed, p, p->n->last_norm, h + cell * dim);
        plain_linear(z, p, p->n->head, true, normed);
        if (answers) memcpy(answers + s * (uint32_t)t->outputs, z, (size_t)t->outputs * sizeof *z);
        if (t->kind == PITH_TARGET_BOOLEAN) {
            loss += log1p(exp(z[0])) - z[0] * ((const uint8_t *)t->column->data)[row];
        } else if (t->kind == PITH_TARGET_CLASS) {
            double sum = 0, own = NAN;
            for (int k = 0; k < t->outputs; k++) {
                sum += exp(z[k]);
                if (t->classes[k] == ((const uint32_t *)t->column->data)[row]) own = z[k];
            }
            loss += log(sum) - own;
        } else {
            double want = pith__rdb_scaled(t->column, row);
            if (t->kind ==
                PITH_TARGET_RANK) { /* the share of smaller training labels, those that are equal
                                       counting half */
                double below = 0, all = 0;
                const double *x = t->column->data;
                for (uint32_t i = 0; i < p->rdb->tables[t->task->table].rows; i++) {
                    if (pith__rdb_split(p->rdb, t->task, i) != PITH_TRAIN) continue;
                    below += x[i] < x[row] ? 1 : x[i] == x[row] ? 0.5 : 0;
                    all++;
                }
                want = (below / all - 0.5) * sqrt(12);
            }
            const double away = fabs(z[0] - want);
            assert_true(fabs(away - 1) > 1e-3); /* the kink of Huber's loss */
            loss += away <= 1 ? away * away / 2 : away - 0.5;
        }
    }
    free(h);
    return loss;
}

/* Some nulls, so that their vector is learned too. */
static void add_nulls(pith__rdb *r) {
    for (uint32_t t = 0; t < r->table_count; t++)
        for (uint32_t c = 0; c < r->tables[t].column_count; c++) {
            pith__rdb_column *column = &r->tables[t].columns[c];
            const size_t each = pith__rdb_value_bytes(column->stype);
            char *copy = pith__arena_alloc(&r->arena, r->tables[t].rows * each);
            memcpy(copy, column->data, r->tables[t].rows * each);
            for (uint32_t i = t + c;
                 i < r->tables[t].rows && column->stype == PITH_STYPE_NUMERICAL && t == 1; i += 3)
                ((double *)(void *)copy)[i] = NAN;
            column->data = copy;
        }
}

static void check_gradient(pith_database *db, uint32_t table, const char *column, bool rank,
                           unsigned attend) {
    pith__rdb *r = &db->rdb;
    pith_error err = PITH_ERROR_INIT;
    pith__arena arena;
    pith__network n;
    pith__pack pack;
    pith__rdb_task task = r->tasks[0];
    pith__target target;
    pith__network_shape shape = { 32, 2, 48, 2, (int32_t)r->dim, 1, attend };
    const pith__sample_options options = { .width = 3, .cells = 60, .seed = 5 };
    const uint32_t seeds[] = { table == 2 ? 20000 : 200, table == 2 ? 23456 : 5000,
                               table == 2 ? 15000 : 1234 };
    float answers[3 * PITH_TARGET_CLASSES];
    double losses[3], plain_answers[3 * PITH_TARGET_CLASSES];
    for (uint32_t c = 0; c < r->tables[table].column_count; c++)
        if (!strncmp(r->tables[table].columns[c].name.data, column, strlen(column)))
            task.column = c;
    if (table != 2) task.split = PITH_SPLIT_HASH, task.train_percent = 80, task.time_column = -1;
    task.table = table;
    task.rank = rank;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__target_make(&target, r, &task, NULL, &arena, &err), PITH_OK);
    shape.outputs = target.outputs;
    assert_int_equal(pith__network_make(&n, &shape, 11, &arena, &err), PITH_OK);
    assert_true(pith__pack_begin(&pack, &arena, 3, &options));
    for (int i = 0; i < 3; i++) pith__pack_add(&pack, r, &task, seeds[i], &options);
    assert_true(pith__pack_list(&pack, &arena, attend));
    float *d = pith__arena_array(&arena, n.size, sizeof *d);
    uint32_t *slots = pith__arena_alloc(&arena, r->string_count * sizeof *slots);
    memset(slots, 0xFF, r->string_count * sizeof *slots);
    assert_true(pith__network_run(answers, d, losses, &n, r, &target, &pack, &options, slots, NULL,
                                  &arena));
    plain p = { &n, &pack, r, &target, calloc(n.size, sizeof *p.w) };
    for (size_t i = 0; i < n.size; i++) p.w[i] = n.weights[i];
    const double loss = plain_loss(plain_answers, &p);
    assert_true(fabs(loss - losses[0] - losses[1] - losses[2]) <= 1e-5 * loss);
    for (int i = 0; i < 3 * target.outputs; i++)
        assert_true(fabs(answers[i] - plain_answers[i]) <= 1e-5);
    uint64_t state = 1;
    int nonzero = 0;
    for (int k = 0; k < n.parameter_count; k++) {
        const pith__parameter *q = &n.parameters[k];
        const size_t count = (size_t)q->out * (size_t)q->in;
        double most = 0;
        for (size_t i = 0; i < count; i++) most = fmax(most, fabs(d[q->offset + i]));
        for (int i = 0; i < 3; i++) {
            double *x = &p.w[q->offset + pith__random_next(&state) % count], own = *x;
            const double *const begin = p.w;
            *x = own + 1e-4;
            const double up = plain_loss(NULL, &p);
            *x = own - 1e-4;
            const double difference = (up - plain_loss(NULL, &p)) / 2e-4;
            *x = own;
            if (fabs(difference - d[x - begin]) > 1e-4 * most + 1e-7)
                fail_msg("parameter %d, number %zu: %g, but the difference is %g", k,
                         (size_t)(x - begin) - q->offset, d[x - begin], difference);
            nonzero += difference != 0;
        }
    }
    assert_true(nonzero > n.parameter_count);
    free(p.w);
    pith__arena_free(&arena);
}

static void gradients(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    add_nulls(&db->rdb);
    check_gradient(db, 2, "returned", false, 7);
    check_gradient(db, 2, "returned", false, 8);
    check_gradient(db, 2, "quantity", false, 7);
    check_gradient(db, 2, "quantity", true, 7);
    check_gradient(db, 1, "category", false, 7);
    pith_database_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gradients) };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    test_clean();
    rmdir(test_directory());
    return failures;
}
