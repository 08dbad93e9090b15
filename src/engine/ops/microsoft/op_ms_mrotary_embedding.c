/* op_ms_mrotary_embedding.c - com.microsoft's MRotaryEmbedding, written out at load: rotary
 * positions of three kinds (time, height, width), each of which gives its own columns of the
 * cosines and sines. Source: ONNX Runtime's schema of this name. */
#include "engine/ops/shared/compose_ops.h"

enum { TIME, HEIGHT, WIDTH };

/* Which kind of position column i takes. */
static int mrotary_kind(const int64_t sections[3], bool interleaved, int64_t i) {
    if (!interleaved && i < sections[TIME]) return TIME;
    if (!interleaved) return i < sections[TIME] + sections[HEIGHT] ? HEIGHT : WIDTH;
    return i % 3 && i < 3 * sections[i % 3] ? (int)(i % 3) : TIME;
}

/* A row of bools: the columns of a kind. */
static pith__value *mrotary_columns(pith__node *node, const int64_t sections[3], int64_t columns,
                                    int kind) {
    pith_tensor t = {
        .dtype = PITH_BOOL, .rank = 1, .bytes = (size_t)columns, .dims = { columns }
    };
    bool *own = t.data = pith__arena_alloc(node->graph->arena, (size_t)columns + 1);
    if (!own) return NULL;
    for (int64_t i = 0; i < columns; i++)
        own[i] = mrotary_kind(sections, pith__node_int(node, "mrope_layout", 0) != 0, i) == kind;
    return pith__graph_add_const(node->graph, PITH_STR(""), &t);
}

/* Gathers the rows of cosines and sines for each kind of position, picks the columns of each kind
 * by Where with constant masks, and leaves the turning to RotaryEmbedding. */
static pith_status mrotary_upgrade(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "interleaved", "num_heads", "rotary_embedding_dim", NULL };
    PITH_TRY(pith__compose_require(node, 15u, 1, err));
    size_t count;
    const int64_t *sections = pith__node_ints(node, "mrope_section", &count);
    if (count != 3)
        return pith__fail(err, PITH_ERR_ARGUMENT, "mrope_section has %zu numbers, not 3", count);
    float scale = pith__node_float(node, "scale", 1);
    int64_t columns = sections[0] + sections[1] + sections[2];
    pith__value *kinds[3], *places[3], *in[] = { pith__node_input(node, 0), NULL, NULL };
    for (int64_t i = 0; i < 3; i++) {
        places[i] = pith__compose_list(node, "Gather", pith__node_input(node, 1), &i, 1);
        places[i] =
            places[i] ? pith__compose_list(node, "Squeeze", places[i], (int64_t[]){ 0 }, 1) : NULL;
        kinds[i] = mrotary_columns(node, sections, columns, (int)i);
        if (!places[i] || !kinds[i]) return pith__fail_memory(err, 0);
    }
    for (int i = 1; i < 3; i++) { /* cosines, sines */
        in[i] = pith__compose2(node, "Gather", pith__node_input(node, 1 + i), places[TIME]);
        for (int k = HEIGHT; in[i] && k <= WIDTH; k++) {
            pith__value *other =
                pith__compose2(node, "Gather", pith__node_input(node, 1 + i), places[k]);
            in[i] = pith__compose3(node, "Where", kinds[k], other, in[i]);
        }
        if (scale != 1 && in[i]) /* of what is turned */
            in[i] = pith__compose2(
                node, "Mul", in[i],
                pith__compose2(node, "CastLike",
                               pith__graph_add_f32(node->graph, PITH_STR(""), scale), in[i]));
        if (!in[i]) return pith__fail_memory(err, 0);
    }
    pith__value *y =
        pith__with_attributes(pith__compose(node, "", "RotaryEmbedding", in, 3, 1), node, kept);
    return pith__compose_become(node, y, err);
}

PITH_OP_COMPOSED(MRotaryEmbedding_ms, "com.microsoft", "MRotaryEmbedding", 4, 4, 1, mrotary_upgrade,
                 NULL,
                 .attrs = "interleaved bool; is_packed_batching bool; mrope_layout int 0|1; "
                          "mrope_section ints! 0..65536; "
                          "num_heads int 0..; rotary_embedding_dim int 0..; scale float")
