/* subgraph_results.c - see subgraph_results.h. */
#include "engine/exec/subgraph_results.h"

/* Items that no sequence holds are dropped when they take three times as much as the others, plus
 * SLACK. The factor bounds the work: a drop copies what is still needed, at most a quarter of what
 * is there. SLACK keeps small loops from dropping at all. Larger values hold more memory, smaller
 * ones copy more often. */
#define SLACK ((size_t)1 << 20)

static void *kept_arena_memory(void *arena, size_t bytes) {
    return pith__arena_alloc64(arena, bytes);
}

void pith__kept_init(pith__kept *k, const pith_allocator *allocator) {
    *k = (pith__kept){ .turn = 0 };
    pith__arena_init(&k->turns[0], allocator);
    pith__arena_init(&k->turns[1], allocator);
    pith__arena_init(&k->items, allocator);
    pith__arena_init(&k->dropped, allocator);
}

void pith__kept_free(pith__kept *k) {
    pith__arena_free(&k->turns[0]);
    pith__arena_free(&k->turns[1]);
    pith__arena_free(&k->items);
    pith__arena_free(&k->dropped);
}

size_t pith__kept_bytes(const pith__kept *k) {
    return k->turns[0].total + k->turns[1].total + k->items.total + k->dropped.total;
}

/* Items are told apart by where their contents lie; empty ones are in no map, since they are never
 * read. at must stay as long as the map. */
static pith_str address_key(void *const *at) { return (pith_str){ (const char *)at, sizeof *at }; }

static bool is_in(const pith__map *map, const pith_tensor *item) {
    return pith__map_get(map, address_key(&item->data)) != UINT32_MAX;
}

/* The items of the sequences among the given tensors. */
static bool find_given(pith__map *map, const pith_tensor *given, size_t count, pith__arena *arena) {
    if (pith__map_init(map, arena, 16)) return false;
    for (size_t i = 0; i < count; i++) {
        if (given[i].dtype != PITH_SEQUENCE) continue;
        const pith_tensor *items = given[i].data;
        for (int64_t n = 0; n < given[i].dims[0]; n++)
            if (items[n].bytes && !pith__map_put(map, address_key(&items[n].data), 0, NULL))
                return false;
    }
    return true;
}

/* A copy of the item that lies in k->items. */
static pith_status kept_add_item(pith__kept *k, pith_tensor *item, pith_error *err) {
    if (!k->has_items && pith__map_init(&k->known, &k->items, 16)) return pith__fail_memory(err, 0);
    k->has_items = true;
    PITH_TRY(pith__tensor_copy(item, item, kept_arena_memory, &k->items, k->stop, err));
    void **address = pith__arena_alloc(&k->items, sizeof *address);
    if (!address) return pith__fail_memory(err, sizeof *address);
    *address = item->data;
    return pith__map_put(&k->known, address_key(address), 0, NULL) ? PITH_OK
                                                                   : pith__fail_memory(err, 0);
}

/* The items are shared where they last long enough, else copied. *bytes: of those that lie in
 * k->items. */
static pith_status keep_items(pith__kept *k, const pith_tensor *sequence, const pith__map *given,
                              size_t *bytes, pith_error *err) {
    pith_tensor *items = sequence->data;
    for (int64_t n = 0; n < sequence->dims[0]; n++) {
        bool known = k->has_items && is_in(&k->known, &items[n]);
        if (!items[n].bytes || (!known && is_in(given, &items[n]))) continue;
        if (!known) PITH_TRY(kept_add_item(k, &items[n], err));
        *bytes += items[n].bytes;
    }
    return PITH_OK;
}

/* Copies the items that are still in an output; the others go with the call after this one. */
static pith_status drop_items(pith__kept *k, pith_tensor *outputs, size_t count, pith_error *err) {
    pith__map old = k->known;
    k->dropped = k->items;
    pith__arena_init(&k->items, k->dropped.allocator);
    k->has_items = false;
    for (size_t i = 0; i < count; i++) {
        if (outputs[i].dtype != PITH_SEQUENCE) continue;
        pith_tensor *items = outputs[i].data;
        for (int64_t n = 0; n < outputs[i].dims[0]; n++)
            if (items[n].bytes && is_in(&old, &items[n]))
                PITH_TRY(kept_add_item(k, &items[n], err));
    }
    return PITH_OK;
}

static pith_status copy_array(pith_tensor *sequence, pith__arena *arena, pith_error *err) {
    void *copy = pith__arena_alloc64(arena, sequence->bytes);
    if (!copy) return pith__fail_memory(err, sequence->bytes);
    if (sequence->bytes) memcpy(copy, sequence->data, sequence->bytes);
    sequence->data = copy;
    return PITH_OK;
}

/* Two arenas take turns: the results of the call before may be inputs of this one, so they are kept
 * for one call more. Items of sequences are shared where they last long enough; else a loop that
 * appends would copy all items in every iteration. */
pith_status pith__kept_keep(pith__kept *k, pith_tensor *outputs, size_t count,
                            const pith_tensor *given, size_t given_count, pith__stop *stop,
                            pith_error *err) {
    pith__arena *arena = &k->turns[k->turn ^= 1];
    pith__map shared = { .arena = NULL };
    size_t bytes = 0;
    bool sequences = false;
    k->stop = stop;
    pith__arena_reset(arena);
    pith__arena_free(&k->dropped);
    for (size_t i = 0; i < count; i++) {
        if (outputs[i].dtype != PITH_SEQUENCE) {
            PITH_TRY(
                pith__tensor_copy(&outputs[i], &outputs[i], kept_arena_memory, arena, stop, err));
            continue;
        }
        if (!sequences && !find_given(&shared, given, given_count, arena))
            return pith__fail_memory(err, 0);
        sequences = true;
        PITH_TRY(copy_array(&outputs[i], arena, err));
        PITH_TRY(keep_items(k, &outputs[i], &shared, &bytes, err));
    }
    bool drop = k->items.total > SLACK && (k->items.total - SLACK) / 4 > bytes;
    return drop ? drop_items(k, outputs, count, err) : PITH_OK;
}
