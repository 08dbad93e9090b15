/* api_search.c - the public functions of pith/search.h. */
#include "api/entry.h"
#include "search/search.h"

pith_status pith_search_index_create(pith_search_index **index, const void *rows, size_t count,
                                     size_t dim, const pith_search_index_options *options,
                                     pith_error *err) {
    PITH_ENTRY(pith__search_index_make(index, rows, count, dim, options, err));
}

void pith_search_index_destroy(pith_search_index *index) { pith__search_index_free(index); }

size_t pith_search_index_count(const pith_search_index *index) {
    return pith__search_index_items(index);
}

size_t pith_search_index_bytes(const pith_search_index *index) { return index->bytes; }

pith_status pith_search(pith_hit *hits, const pith_search_index *index, const float *queries,
                        size_t count, size_t k, const pith_search_options *options,
                        pith_error *err) {
    PITH_ENTRY(pith__search_run(hits, index, queries, count, k, options, err));
}

pith_status pith_search_index_build(pith_search_index **index, const pith_row_source *source,
                                    size_t dim, const pith_search_index_options *options,
                                    pith_error *err) {
    PITH_ENTRY(pith__search_index_build(index, source, dim, options, err));
}

pith_status pith_search_index_add(pith_search_index *index, const void *rows, const int64_t *ids,
                                  size_t count, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__search_index_add(index, rows, ids, count, call, err));
}

pith_status pith_search_index_remove(pith_search_index *index, size_t *removed, const int64_t *ids,
                                     size_t count, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__search_index_remove(index, removed, ids, count, call, err));
}

pith_status pith_search_index_save(const pith_search_index *index, const pith_call *call,
                                   const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__search_index_save(index, call, writer, err));
}

pith_status pith_search_index_open(pith_search_index **index, const char *path, size_t dim,
                                   const pith_search_index_options *options, pith_error *err) {
    PITH_ENTRY(pith__search_index_open(index, path, dim, options, err));
}

pith_status pith_search_index_open_memory(pith_search_index **index, const void *data, size_t size,
                                          size_t dim, const pith_search_index_options *options,
                                          pith_error *err) {
    PITH_ENTRY(pith__search_index_open_memory(index, data, size, dim, options, err));
}

pith_status pith_search_index_verify(const char *path, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__search_index_verify(path, call, err));
}

size_t pith_search_index_dim(const pith_search_index *index) { return index->dim; }

int32_t pith_search_index_metric(const pith_search_index *index) { return index->metric; }
