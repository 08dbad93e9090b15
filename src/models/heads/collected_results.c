/* collected_results.c - see collected_results.h. */
#include "models/heads/collected_results.h"

#include "base/checked.h"
#include "base/error.h"

pith_status pith__collected_put(void **data, pith__collected *c, size_t text, size_t items,
                                size_t item_bytes, pith_error *err) {
    pith__collected_piece *piece = &c->pieces[text];
    size_t bytes;
    pith__memory_free(c->allocator, piece->data);
    *piece = (pith__collected_piece){ .items = 0 };
    if (pith__mul_overflows(items, item_bytes, &bytes)) return pith__fail_memory(err, SIZE_MAX);
    piece->data = items ? pith__memory_alloc(c->allocator, bytes, 16) : NULL;
    if (items && !piece->data) return pith__fail_memory(err, bytes);
    piece->items = items;
    *data = piece->data;
    return PITH_OK;
}

pith_status pith__collected_put_none(pith__collected *c, size_t text) {
    void *data;
    return pith__collected_put(&data, c, text, 0, 0, NULL);
}

size_t pith__collected_items(const pith__collected *c) {
    size_t items = 0;
    for (size_t i = 0; i < c->count; i++) items += c->pieces[i].items;
    return items;
}

void pith__collected_free(pith__collected *c) {
    for (size_t i = 0; i < c->count; i++) {
        pith__memory_free(c->allocator, c->pieces[i].data);
        c->pieces[i].data = NULL;
    }
}
