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
