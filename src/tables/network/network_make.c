/* network_make.c - the parameters of a network: their order, their first values, their packed
 * copies. */
#include <math.h>

#include "base/error.h"
#include "base/os/cpu.h"
#include "tables/network/network_layers.h"

static int parameter_add(pith__network *n, int kind, int32_t out, int32_t in, int32_t fan) {
    n->parameters[n->parameter_count] =
        (pith__parameter){ .offset = n->size, .out = out, .in = in, .kind = kind, .fan = fan };
    n->size += (size_t)out * (size_t)in;
    return n->parameter_count++;
}

/* A matrix and its bias. */
static int parameter_linear(pith__network *n, int32_t out, int32_t in) {
    const int at = parameter_add(n, PITH_PARAMETER_MATRIX, out, in, in);
    parameter_add(n, PITH_PARAMETER_BIAS, 1, out, in);
    return at;
}

static pith__network_layer parameter_layer(pith__network *n, int32_t inner, int32_t middle) {
    const int32_t dim = n->shape.dim;
    pith__network_layer layer;
    layer.norm = parameter_add(n, PITH_PARAMETER_ONES, 1, dim, dim);
    layer.in = parameter_add(n, PITH_PARAMETER_MATRIX, inner, dim, dim);
    layer.out = parameter_add(n, PITH_PARAMETER_MATRIX, dim, middle, middle);
    return layer;
}

/* Gives each parameter its place. The order is that of files and of the random numbers of first
 * values, so it may not change. */
static void network_lay_out(pith__network *n) {
    const int32_t dim = n->shape.dim;
    n->name = parameter_linear(n, dim, n->shape.text);
    n->text = parameter_linear(n, dim, n->shape.text);
    n->number = parameter_linear(n, dim, 1);
    n->boolean = parameter_linear(n, dim, 1);
    n->time = parameter_linear(n, dim, PITH_TIME_FEATURES);
    n->mask = parameter_add(n, PITH_PARAMETER_SMALL, 1, dim, dim);
    n->null = parameter_add(n, PITH_PARAMETER_SMALL, 1, dim, dim);
    n->name_norm = parameter_add(n, PITH_PARAMETER_ONES, 1, dim, dim);
    n->value_norm = parameter_add(n, PITH_PARAMETER_ONES, 1, dim, dim);
    n->last_norm = parameter_add(n, PITH_PARAMETER_ONES, 1, dim, dim);
    for (int b = 0; b < n->shape.blocks; b++) {
        for (int k = 0; k < PITH_ATTEND_KINDS; k++)
            if (n->shape.attend & 1u << k)
                n->blocks[b].attend[k] = parameter_layer(n, 3 * dim, dim);
        n->blocks[b].ff = parameter_layer(n, 2 * n->shape.ff, n->shape.ff);
    }
    n->head = parameter_linear(n, n->shape.outputs, dim);
}

static void parameter_draw(float *w, const pith__parameter *p, uint64_t *state) {
    const size_t count = (size_t)p->out * (size_t)p->in;
    const double bound = p->kind == PITH_PARAMETER_SMALL ? 0.03 : 1 / sqrt((double)p->fan);
    for (size_t i = 0; i < count; i++) {
        const double x = (double)(pith__random_next(state) >> 11) * 0x1p-53;
        w[p->offset + i] = p->kind == PITH_PARAMETER_ONES ? 1.0f : (float)((2 * x - 1) * bound);
    }
}

static pith_status network_kernels(const pith__network_kernels **kernels, pith__arena *arena,
                                   pith_error *err) {
    pith__lacks lacks = { .count = 0 };
    const pith__isa isa = pith__cpu_get()->isa;
    pith__network_kernels *k = pith__arena_array(arena, 1, sizeof *k);
    if (!k) return pith__fail_memory(err, sizeof *k);
    k->gemm = PITH_KERNEL_NEED(pith__gemm_f32_fn, "gemm", PITH_F32, isa, &lacks);
    k->pack = PITH_KERNEL_NEED(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, isa, &lacks);
    k->norm = PITH_KERNEL_NEED(pith__layer_norm_f32_fn, "rms_norm", PITH_F32, isa, &lacks);
    k->norm_back = PITH_KERNEL_NEED(pith__rms_norm_back_fn, "rms_norm_back", PITH_F32, isa, &lacks);
    k->attention = PITH_KERNEL_NEED(pith__key_attention_fn, "key_attention", PITH_F32, isa, &lacks);
    k->attention_back =
        PITH_KERNEL_NEED(pith__key_attention_fn, "key_attention_back", PITH_F32, isa, &lacks);
    k->swiglu = PITH_KERNEL_NEED(pith__swiglu_fn, "swiglu", PITH_F32, isa, &lacks);
    k->swiglu_back = PITH_KERNEL_NEED(pith__swiglu_back_fn, "swiglu_back", PITH_F32, isa, &lacks);
    k->adamw = PITH_KERNEL_NEED(pith__adamw_fn, "adamw", PITH_F32, isa, &lacks);
    *kernels = k;
    return pith__lacks_check(&lacks, err);
}

void pith__network_pack(pith__network *n) {
    for (int i = 0; i < n->parameter_count; i++) {
        const pith__parameter *p = &n->parameters[i];
        if (p->kind != PITH_PARAMETER_MATRIX) continue;
        n->kernels->pack(p->forward, n->weights + p->offset, 1, p->in, p->in, p->out, 0, p->out);
        n->kernels->pack(p->backward, n->weights + p->offset, p->in, 1, p->out, p->in, 0, p->in);
    }
}

pith_status pith__network_make(pith__network *n, const pith__network_shape *shape, uint64_t seed,
                               pith__arena *arena, pith_error *err) {
    uint64_t state = pith__random_state(seed, 1, 0, 0);
    *n = (pith__network){ .shape = *shape, .arena = arena };
    network_lay_out(n);
    n->weights = pith__arena_alloc64(arena, n->size * sizeof *n->weights);
    PITH_TRY(network_kernels(&n->kernels, arena, err));
    if (!n->weights) return pith__fail_memory(err, n->size * sizeof *n->weights);
    for (int i = 0; i < n->parameter_count; i++) {
        pith__parameter *p = &n->parameters[i];
        parameter_draw(n->weights, p, &state);
        if (p->kind != PITH_PARAMETER_MATRIX) continue;
        p->forward = pith__arena_alloc64(arena, (size_t)pith__gemm_f32_packed_size(p->in, p->out) *
                                                    sizeof(float));
        p->backward = pith__arena_alloc64(arena, (size_t)pith__gemm_f32_packed_size(p->out, p->in) *
                                                     sizeof(float));
        if (!p->forward || !p->backward) return pith__fail_memory(err, n->size * sizeof(float));
    }
    pith__network_pack(n);
    return PITH_OK;
}
