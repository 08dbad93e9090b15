/* vocab.c - building and asking a vocabulary. Open addressing with linear probing, at most half full; a vocabulary
 * whose strings pile up in one place (only a hostile one does) is refused rather than searched slowly. */
#include "text/vocab.h"

/* Longest run of occupied slots a string may lie from its place. Random strings stay below 40 at a million entries. */
#define PROBE_LIMIT 512

bool pith_vocab_add(pith_vocab_builder *b, pith_str text, int32_t id) {
    if (b->count >= PITH_TOKEN_ID_MAX || text.size >= PITH_TEXT_MAX || b->bytes + text.size >= PITH_TEXT_MAX ||
        !pith_arena_grow(b->scratch, (void **)&b->entries, b->count, &b->capacity, sizeof *b->entries))
        return false;
    b->entries[b->count].text = text;
    b->entries[b->count++].id = id;
    b->bytes += text.size;
    return true;
}

void pith_vocab_parse(pith_vocab_builder *b, pith_json *j) {
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        int64_t id = pith_json_int(j);
        if (j->failed) return;
        if (id < 0 || id >= PITH_TOKEN_ID_MAX)
            pith_json_fail(j, PITH_ERR_FORMAT, "id %lld is not between 0 and %d", (long long)id, PITH_TOKEN_ID_MAX - 1);
        else if (!pith_vocab_add(b, key, (int32_t)id))
            pith_json_fail(j, PITH_ERR_MEMORY, "out of memory, or the vocabulary is too large");
    }
}

pith_status pith_vocab_build(pith_vocab *v, const pith_vocab_builder *b, pith_arena *arena, pith_error *err) {
    memset(v, 0, sizeof *v);
    uint32_t capacity = 16;
    while (capacity < 2 * b->count) capacity *= 2;
    v->mask = capacity - 1;
    v->pool_size = (uint32_t)b->bytes;
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].id >= v->id_count) v->id_count = b->entries[i].id + 1;
    if ((size_t)v->id_count > 4 * b->count + ((size_t)1 << 20))
        return pith_fail(err, PITH_ERR_FORMAT, "id %d is far beyond the %zu tokens of the vocabulary", v->id_count - 1,
                         b->count);
    size_t id_bytes = (size_t)v->id_count * sizeof *v->by_id, slot_bytes = capacity * sizeof *v->slots;
    v->slots = pith_arena_alloc64(arena, slot_bytes);
    v->pool = pith_arena_alloc(arena, b->bytes + 16);
    v->by_id = pith_arena_alloc(arena, id_bytes);
    if (!v->slots || !v->pool || !v->by_id) return pith_fail_memory(err, slot_bytes + id_bytes + b->bytes);
    memset(v->slots, 0xFF, slot_bytes);
    memset(v->by_id, 0xFF, id_bytes);
    memset(v->pool + b->bytes, 0, 16);
    uint32_t begin = 0;
    for (size_t i = 0; i < b->count; i++) {
        pith_str text = b->entries[i].text;
        uint32_t size = (uint32_t)text.size;
        uint64_t mixed = pith_vocab_mix(pith_vocab_hash(0, text.data, size));
        uint32_t at = (uint32_t)mixed & v->mask, probes = 0, tag = (uint32_t)(mixed >> 32);
        pith_vocab_slot *slot = &v->slots[at];
        if (size) memcpy(v->pool + begin, text.data, size);
        while (slot->size != UINT32_MAX &&
               !(slot->tag == tag && slot->size == size && memcmp(v->pool + slot->begin, v->pool + begin, size) == 0)) {
            if (++probes > PROBE_LIMIT)
                return pith_fail(err, PITH_ERR_FORMAT, "the vocabulary's strings collide (at entry %zu)", i);
            at = (at + 1) & v->mask;
            slot = &v->slots[at];
        }
        if (slot->size == UINT32_MAX) v->count++;
        *slot = (pith_vocab_slot){ tag, begin, size, b->entries[i].id };
        v->by_id[slot->id] = at;
        if (size > v->longest) v->longest = size;
        begin += size;
    }
    return PITH_OK;
}

int32_t pith_vocab_id(const pith_vocab *v, pith_str text) {
    return pith_vocab_find(v, pith_vocab_hash(0, text.data, text.size), PITH_STR(""), text.data, (uint32_t)text.size);
}

pith_str pith_vocab_token(const pith_vocab *v, int32_t id) {
    if (id < 0 || id >= v->id_count || v->by_id[id] == UINT32_MAX) return (pith_str){ NULL, 0 };
    const pith_vocab_slot *slot = &v->slots[v->by_id[id]];
    return (pith_str){ v->pool + slot->begin, slot->size };
}
