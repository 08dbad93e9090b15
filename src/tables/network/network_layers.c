/* network_layers.c - see network_layers.h. */
#include "tables/network/network_layers.h"

#include <string.h>

#include "base/error.h"

float *pith__work_room(pith__network_work *w, size_t count) {
    float *x = pith__arena_alloc64(w->arena, (count + 16) * sizeof *x);
    if (!x) w->failed = true;
    return x;
}

float *pith__work_floats(pith__network_work *w, size_t count) {
    float *x = pith__work_room(w, count);
    if (x) memset(x, 0, count * sizeof *x);
    return x;
}

float *pith__linear(pith__network_work *w, int parameter, bool bias, const float *x, size_t rows) {
    const pith__parameter *p = &w->network->parameters[parameter];
    float *y = pith__work_room(w, rows * (size_t)p->out);
    if (w->failed || !rows) return y;
    const pith__gemm g = { .a = x,
                           .b = p->forward,
                           .c = y,
                           .bias = bias ? w->network->weights + p[1].offset : NULL,
                           .m = (int64_t)rows,
                           .n = p->out,
                           .k = p->in,
                           .lda = p->in,
                           .ldc = p->out };
    w->network->kernels->gemm(&g, 0, g.m, 0, g.n);
    return y;
}

/* d W = d_y^T x, with the rows as the summed axis: a GEMM like any other once d_y is transposed and
 * x is packed. Sums have a fixed order, so gradients have the same bits on every level. */
static void linear_weights(pith__network_work *w, const pith__parameter *p, const float *x,
                           const float *d_y, size_t rows) {
    const size_t in = (size_t)p->in, out = (size_t)p->out;
    float *turned = pith__work_room(w, rows * out), *sum = pith__work_room(w, in * out);
    float *packed = pith__work_room(w, (size_t)pith__gemm_f32_packed_size((int64_t)rows, p->in));
    if (w->failed) return;
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++) turned[o * rows + r] = d_y[r * out + o];
    w->network->kernels->pack(packed, x, p->in, 1, (int64_t)rows, p->in, 0, p->in);
    const pith__gemm g = { .a = turned,
                           .b = packed,
                           .c = sum,
                           .m = p->out,
                           .n = p->in,
                           .k = (int64_t)rows,
                           .lda = (int64_t)rows,
                           .ldc = p->in };
    w->network->kernels->gemm(&g, 0, g.m, 0, g.n);
    float *d = w->gradient + p->offset;
    for (size_t i = 0; i < in * out; i++) d[i] += sum[i];
}

/* Gradients of y = x W + b: those of W and b are added to w->d, that of x is d_y W^T, by the matrix
 * that was packed the other way. x is not wanted where it is data. */
float *pith__linear_back(pith__network_work *w, int parameter, bool bias, const float *x,
                         const float *d_y, size_t rows, bool wanted) {
    const pith__parameter *p = &w->network->parameters[parameter];
    if (w->failed || !rows) return NULL;
    const pith__arena_mark mark = pith__arena_get_mark(w->arena);
    linear_weights(w, p, x, d_y, rows);
    pith__arena_rewind(w->arena, mark);
    if (bias) {
        float *d = w->gradient + p[1].offset;
        for (size_t r = 0; r < rows; r++)
            for (int32_t o = 0; o < p->out; o++) d[o] += d_y[r * (size_t)p->out + (size_t)o];
    }
    if (!wanted) return NULL;
    float *d_x = pith__work_room(w, rows * (size_t)p->in);
    if (w->failed) return NULL;
    const pith__gemm g = { .a = d_y,
                           .b = p->backward,
                           .c = d_x,
                           .m = (int64_t)rows,
                           .n = p->in,
                           .k = p->out,
                           .lda = p->out,
                           .ldc = p->in };
    w->network->kernels->gemm(&g, 0, g.m, 0, g.n);
    return d_x;
}

pith__normed pith__norm(pith__network_work *w, int parameter, const float *x, size_t rows) {
    const pith__network *network = w->network;
    const int32_t dim = network->shape.dim;
    pith__normed n = { .x = x, .rows = rows, .parameter = parameter };
    n.y = pith__work_room(w, rows * (size_t)dim);
    n.inverse = pith__work_room(w, rows);
    if (w->failed || !rows) return n;
    const pith__layer_norm a = { .x = x,
                                 .gamma = network->weights + network->parameters[parameter].offset,
                                 .y = n.y,
                                 .inv_out = n.inverse,
                                 .rows = (int64_t)rows,
                                 .n = dim,
                                 .epsilon = PITH_NORM_EPSILON };
    network->kernels->norm(&a);
    return n;
}

void pith__norm_back(pith__network_work *w, const pith__normed *n, const float *d_y, float *d_x) {
    const size_t offset = w->network->parameters[n->parameter].offset;
    if (w->failed || !n->rows) return;
    w->network->kernels->norm_back(n->x, n->inverse, w->network->weights + offset, d_y, d_x,
                                   w->gradient + offset, (int64_t)n->rows, w->network->shape.dim);
}

static void residual_add(float *h, const float *x, size_t count) {
    for (size_t i = 0; i < count; i++) h[i] += x[i];
}

/* h as it is now, which the norm reads again in the backward pass. */
static const float *residual_keep(pith__network_work *w, const float *h, size_t count) {
    float *copy = pith__work_room(w, count);
    if (copy && !w->failed) memcpy(copy, h, count * sizeof *copy);
    return copy;
}

/* h += out(attention(in(norm(h)))), over the keys that the pack lists for this kind. What the
 * backward pass needs is kept. */
void pith__attend(pith__network_work *w, pith__residual *kept, const pith__network_layer *layer,
                  int kind, float *h) {
    const size_t cells = w->pack->cell_count, dim = (size_t)w->network->shape.dim;
    const pith__key_list *keys = &w->pack->lists[kind];
    if (w->failed) return;
    kept->normed = pith__norm(w, layer->norm, residual_keep(w, h, cells * dim), cells);
    kept->inner = pith__linear(w, layer->in, false, kept->normed.y, cells);
    kept->middle = pith__work_room(w, cells * dim);
    const size_t pairs = keys->begin[cells] * (size_t)w->network->shape.heads;
    kept->attention =
        (pith__key_attention){ .qkv = kept->inner,
                               .begin = keys->begin,
                               .keys = keys->keys,
                               .out = kept->middle,
                               .share = pith__work_room(w, pairs),
                               .cells = (int64_t)cells,
                               .dim = w->network->shape.dim,
                               .head = w->network->shape.dim / w->network->shape.heads };
    if (w->failed) return;
    w->network->kernels->attention(&kept->attention);
    const float *y = pith__linear(w, layer->out, false, kept->middle, cells);
    if (!w->failed) residual_add(h, y, cells * dim);
}

void pith__attend_back(pith__network_work *w, const pith__residual *kept,
                       const pith__network_layer *layer, float *d_h) {
    const size_t cells = w->pack->cell_count;
    pith__key_attention a = kept->attention;
    if (w->failed) return;
    const pith__arena_mark mark = pith__arena_get_mark(w->arena);
    a.d_out = pith__linear_back(w, layer->out, false, kept->middle, d_h, cells, true);
    a.d_qkv = pith__work_floats(w, cells * 3 * (size_t)w->network->shape.dim);
    if (!w->failed) {
        w->network->kernels->attention_back(&a);
        const float *d_y =
            pith__linear_back(w, layer->in, false, kept->normed.y, a.d_qkv, cells, true);
        pith__norm_back(w, &kept->normed, d_y, d_h);
    }
    pith__arena_rewind(w->arena, mark);
}

void pith__feed(pith__network_work *w, pith__residual *kept, const pith__network_layer *layer,
                float *h) {
    const size_t cells = w->pack->cell_count, dim = (size_t)w->network->shape.dim;
    if (w->failed) return;
    kept->normed = pith__norm(w, layer->norm, residual_keep(w, h, cells * dim), cells);
    kept->inner = pith__linear(w, layer->in, false, kept->normed.y, cells);
    kept->middle = pith__work_room(w, cells * (size_t)w->network->shape.ff);
    if (w->failed) return;
    w->network->kernels->swiglu(kept->inner, kept->middle, (int64_t)cells, w->network->shape.ff);
    const float *y = pith__linear(w, layer->out, false, kept->middle, cells);
    if (!w->failed) residual_add(h, y, cells * dim);
}

void pith__feed_back(pith__network_work *w, const pith__residual *kept,
                     const pith__network_layer *layer, float *d_h) {
    const size_t cells = w->pack->cell_count;
    if (w->failed) return;
    const pith__arena_mark mark = pith__arena_get_mark(w->arena);
    const float *d_middle = pith__linear_back(w, layer->out, false, kept->middle, d_h, cells, true);
    float *d_inner = pith__work_room(w, cells * 2 * (size_t)w->network->shape.ff);
    if (!w->failed) {
        w->network->kernels->swiglu_back(kept->inner, d_middle, d_inner, (int64_t)cells,
                                         w->network->shape.ff);
        const float *d_y =
            pith__linear_back(w, layer->in, false, kept->normed.y, d_inner, cells, true);
        pith__norm_back(w, &kept->normed, d_y, d_h);
    }
    pith__arena_rewind(w->arena, mark);
}
