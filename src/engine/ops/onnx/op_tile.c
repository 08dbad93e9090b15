/* op_tile.c - Tile: a tensor repeated a number of times along each axis.
 *
 * The last axes are repeated by copies that double in length; a part of the first long axis is the
 * unit of work of a thread. Source: ONNX Tile (opset 13). */
#include <string.h>

#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/infer_shapes.h"

/* Opset 1 had the number of tiles and one axis as two inputs, of any number type: 1 but at that
 * axis. */
static pith_status tile_upgrade(pith__node *node, pith_error *err) {
    static int64_t numbers[] = { 0, 1 };
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    pith__value *constants[2];
    for (int i = 0; i < 2; i++) {
        pith_tensor scalar = { .data = &numbers[i], .bytes = sizeof numbers[i], .dtype = PITH_I64 };
        constants[i] = pith__graph_add_const(node->graph, PITH_STR(""), &scalar);
        if (!constants[i]) return pith__fail_memory(err, sizeof scalar);
    }
    pith__value *rank =
        pith__compose1(node, "Size", pith__compose1(node, "Shape", pith__node_input(node, 0)));
    pith__value *axes =
        rank ? pith__compose3(node, "Range", constants[0], rank, constants[1]) : NULL;
    pith__value *here = pith__compose2(
        node, "Equal", axes, pith__compose_cast(node, pith__node_input(node, 2), PITH_I64));
    pith__value *tiles = pith__compose_cast(node, pith__node_input(node, 1), PITH_I64);
    pith__value *repeats =
        here && tiles ? pith__compose3(node, "Where", here, tiles, constants[1]) : NULL;
    return pith__compose_become(
        node, pith__compose2(node, "Tile", pith__node_input(node, 0), repeats), err);
}

/* A product of known sizes that is not known has overflowed. */
static pith_status tile_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers repeats;
    PITH_TRY(pith__infer_numbers(c, 1, &repeats));
    if (x->rank >= 0 && repeats.count >= 0 && repeats.count != x->rank) {
        return pith__op_fail(c, "repeats has %d numbers, the input has rank %d", repeats.count,
                             x->rank);
    }
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        pith__dim times = repeats.count >= 0 ? repeats.items[i] : PITH_DIM_UNKNOWN;
        if (pith__dim_known(times) && times < 0)
            return pith__op_fail(c, "repeats[%d] is %lld; it must not be negative", i,
                                 (long long)times);
        dims[i] = pith__dim_apply(c->dims, PITH_DIM_MUL, x->dims[i], times);
        if (pith__dim_known(x->dims[i]) && pith__dim_known(times) && !pith__dim_known(dims[i])) {
            return pith__op_fail(c, "axis %d would be too long", i);
        }
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* Along the first axis that is not 1 long, pieces are tiled one by one; those of the axes before it
 * are copies. */
typedef struct tile_job {
    const pith_tensor *x;
    char *y;
    size_t bytes[PITH_MAX_RANK + 1]; /* of x from an axis on */
    int64_t tiles[PITH_MAX_RANK];
    int plain;                        /* from this axis on, nothing is repeated */
    int axis;                         /* behind that of the pieces */
    int64_t copies, pieces, per_part; /* copies of each piece in y */
    size_t y_piece;
} tile_job;

/* The first `unit` bytes at `to`, `times` times. Copies grow as far as they are still in the L1
 * cache. */
static void tile_repeat(char *to, size_t unit, int64_t times) {
    const size_t most = 8192 / unit * unit > unit ? 8192 / unit * unit : unit,
                 total = unit * (size_t)times;
    for (size_t done = unit, n; done < total; done += n) {
        n = done < most ? done : most;
        n = n < total - done ? n : total - done;
        memcpy(to + done, to, n);
    }
}

/* The tiles of all axes from `axis` on; returns their bytes. */
static size_t tile_axes(const tile_job *j, char *to, const char *from, int axis) {
    size_t done = 0;
    if (axis + 1 < j->plain) {
        for (int64_t i = 0; i < j->x->dims[axis]; i++, from += j->bytes[axis + 1])
            done += tile_axes(j, to + done, from, axis + 1);
    } else {
        done = j->bytes[axis];
        memcpy(to, from, done);
    }
    if (axis >= j->plain) return done;
    tile_repeat(to, done, j->tiles[axis]);
    return done * (size_t)j->tiles[axis];
}

static void tile_part(void *context, size_t part, int worker) {
    const tile_job *j = context;
    const int64_t first = (int64_t)part * j->per_part,
                  end = first + j->per_part < j->pieces ? first + j->per_part : j->pieces;
    (void)worker;
    for (int64_t i = first; i < end; i++)
        tile_axes(j, j->y + (size_t)i * j->y_piece,
                  (const char *)j->x->data + (size_t)i * j->bytes[j->axis], j->axis);
    for (int64_t c = 1; c < j->copies; c++)
        memcpy(j->y + (size_t)(c * j->pieces + first) * j->y_piece,
               j->y + (size_t)first * j->y_piece, (size_t)(end - first) * j->y_piece);
}

/* Trailing axes that are not repeated are one piece. The first axis longer than 1 is what threads
 * share; copies of leading axes are made of what a part wrote. */
static pith_status tile_run(pith__run *r) {
    enum { GRAIN = 131072 }; /* bytes that are worth a thread */
    const pith_tensor *x = r->in[0];
    const pith_tensor *y = r->out[0];
    tile_job j = { .x = x, .y = y->data, .plain = x->rank, .copies = 1, .pieces = 1 };
    if (!pith__tensor_count(y)) return PITH_OK;
    j.bytes[x->rank] = j.y_piece = pith__element_size(x->dtype);
    for (int i = x->rank - 1; i >= 0; i--) {
        j.tiles[i] = y->dims[i] / x->dims[i];
        j.bytes[i] = j.bytes[i + 1] * (size_t)x->dims[i];
        if (j.plain == i + 1 && j.tiles[i] == 1) j.plain = i;
    }
    while (j.axis < x->rank && j.pieces == 1) {
        j.pieces = x->dims[j.axis];
        j.copies *= j.tiles[j.axis++];
    }
    for (int i = j.axis; i < x->rank; i++) j.y_piece *= (size_t)y->dims[i];
    j.per_part = pith__run_chunk(r, j.pieces, (int64_t)j.y_piece * j.copies, GRAIN);
    pith__run_parallel(r, tile_part, &j, (size_t)((j.pieces + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

const pith__op pith__op_Tile = { .domain = "",
                                 .name = "Tile",
                                 .since = 6,
                                 .newest = 13,
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .max_outputs = 1,
                                 .types = "mn",
                                 .attrs = "",
                                 .upgrade = tile_upgrade,
                                 .shape_inputs = 1u << 1,
                                 .infer = tile_infer,
                                 .prepare = pith__prepare_movable,
                                 .run = tile_run };
