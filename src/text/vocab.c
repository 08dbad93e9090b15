/* vocab.c - builds and searches a vocabulary. Open addressing with linear probing, at most half
 * full. A vocabulary whose strings pile up in one place is refused instead of being searched
 * slowly; only a hostile one does. */
#include "text/vocab.h"

#include "text/frozen_tokenizer.h"

/* How many slots a string may lie from its place. Random strings stay below 40 at a million
 * entries, so a vocabulary that exceeds the limit is hostile and refused. */
#define PROBE_LIMIT 512

/* Slots that are prefetched while earlier strings are inserted: enough to hide the latency of
 * memory. */
enum { AHEAD = 16 };

bool pith__vocab_add(pith__vocab_builder *b, pith_str text, int32_t id) {
    if (b->count >= PITH_TOKEN_ID_MAX || text.size >= PITH_TEXT_MAX ||
        b->bytes + text.size >= PITH_TEXT_MAX ||
        !pith__arena_grow(b->scratch, (void **)&b->entries, b->count, &b->capacity,
                          sizeof *b->entries))
        return false;
    b->entries[b->count++] = (pith__vocab_entry){ text.data, (uint32_t)text.size, id };
    b->bytes += text.size;
    return true;
}

void pith__vocab_parse(pith__vocab_builder *b, pith__json *j) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        int64_t id = pith__json_int(j);
        if (j->failed) return;
        if (id < 0 || id >= PITH_TOKEN_ID_MAX)
            pith__json_fail(j, PITH_ERR_FORMAT, "id %lld is not between 0 and %d", (long long)id,
                            PITH_TOKEN_ID_MAX - 1);
        else if (!pith__vocab_add(b, key, (int32_t)id))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory, or the vocabulary is too large");
    }
}

/* pith__vocab_hash of a string that is read up to 8 bytes too far: the products of 8 bytes do not
 * wait for each other, and where a short string ends is no branch. powers: 8 zeros, then
 * PITH_VOCAB_PRIME^0 to ^8. */
static uint64_t hash_pooled(const uint64_t powers[17], const char *p, size_t size) {
    uint64_t hash = 0;
    for (size_t n; size; p += n, size -= n) {
        n = size < 8 ? size : 8;
        hash *= powers[8 + n];
        for (size_t i = 0; i < 8; i++) hash += ((unsigned char)p[i] + 1u) * powers[7 + n - i];
    }
    return hash;
}

/* Puts a string, which is the next one of the pool, into its slot; false: it collides with too
 * many. */
static bool vocab_put(pith__vocab *v, pith__vocab_slot *slots, uint32_t *by_id,
                      const pith__vocab_entry *e, uint64_t mixed, uint32_t begin) {
    uint32_t at = (uint32_t)mixed & v->mask, probes = 0, tag = (uint32_t)(mixed >> 32);
    pith__vocab_slot *slot = &slots[at];
    while (slot->size != UINT32_MAX &&
           !(slot->tag == tag && slot->size == e->size &&
             memcmp(v->pool + slot->begin, v->pool + begin, e->size) == 0)) {
        if (++probes > PROBE_LIMIT) return false;
        at = (at + 1) & v->mask;
        slot = &slots[at];
    }
    if (slot->size == UINT32_MAX) v->count++;
    *slot = (pith__vocab_slot){ tag, begin, e->size, e->id };
    by_id[e->id] = at;
    if (e->size > v->longest) v->longest = e->size;
    return true;
}

/* Strings are hashed AHEAD entries before they are put into the table, and their slots are
 * prefetched: the table is larger than the caches, and the loop would otherwise wait for memory at
 * each entry. */
pith_status pith__vocab_build(pith__vocab *v, const pith__vocab_builder *b, pith__arena *arena,
                              pith__stop *stop, pith_error *err) {
    memset(v, 0, sizeof *v);
    uint32_t capacity = 16;
    while (capacity < 2 * b->count) capacity *= 2;
    v->mask = capacity - 1;
    v->pool_size = (uint32_t)b->bytes;
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].id >= v->id_count) v->id_count = b->entries[i].id + 1;
    if ((size_t)v->id_count > 4 * b->count + ((size_t)1 << 20))
        return pith__fail(err, PITH_ERR_FORMAT,
                          "id %d is far beyond the %zu tokens of the vocabulary", v->id_count - 1,
                          b->count);
    size_t id_bytes = (size_t)v->id_count * sizeof *v->by_id,
           slot_bytes = capacity * sizeof *v->slots;
    pith__vocab_slot *slots = pith__arena_alloc64(arena, slot_bytes);
    char *pool = pith__arena_alloc(arena, b->bytes + PITH_VOCAB_TAIL);
    uint32_t *by_id = pith__arena_alloc(arena, id_bytes);
    if (!slots || !pool || !by_id) return pith__fail_memory(err, slot_bytes + id_bytes + b->bytes);
    memset(slots, 0xFF, slot_bytes);
    memset(by_id, 0xFF, id_bytes);
    memset(pool, 0, b->bytes + PITH_VOCAB_TAIL);
    v->slots = slots;
    v->pool = pool;
    v->by_id = by_id;
    uint64_t mixed[AHEAD], powers[17] = { [8] = 1 };
    for (size_t i = 9; i < 17; i++) powers[i] = powers[i - 1] * PITH_VOCAB_PRIME;
    uint32_t begin = 0, end = 0;
    for (size_t i = 0; i < b->count + AHEAD; i++) {
        if (i % 4096 == 0) PITH_TRY(pith__stop_check(stop, err));
        if (i >= AHEAD) {
            const pith__vocab_entry *e = &b->entries[i - AHEAD];
            if (!vocab_put(v, slots, by_id, e, mixed[i % AHEAD], begin))
                return pith__fail(err, PITH_ERR_FORMAT,
                                  "the vocabulary's strings collide (at entry %zu)", i - AHEAD);
            begin += e->size;
        }
        if (i < b->count) {
            const pith__vocab_entry *e = &b->entries[i];
            if (e->size) memcpy(pool + end, e->text, e->size);
            mixed[i % AHEAD] = pith__vocab_mix(hash_pooled(powers, pool + end, e->size));
            __builtin_prefetch(&slots[(uint32_t)mixed[i % AHEAD] & v->mask], 1);
            end += e->size;
        }
    }
    return PITH_OK;
}

void pith__vocab_save(const pith__vocab *v, pith__frozen_writer *w) {
    pith__frozen_put(w, "vocab.slots", v->slots, (size_t)v->mask + 1, sizeof *v->slots);
    pith__frozen_put(w, "vocab.ids", v->by_id, (size_t)v->id_count, sizeof *v->by_id);
    pith__frozen_put(w, "vocab.text", v->pool, v->pool_size + PITH_VOCAB_TAIL, 1);
}

/* That every string lies in the pool and every search ends soon; counts them. A search passes at
 * most the longest run of full slots. */
static bool check_slots(pith__vocab *v) {
    uint32_t run = 0, longest_run = 0;
    bool good = true;
    for (size_t i = 0; i <= v->mask; i++) {
        const pith__vocab_slot *slot = &v->slots[i];
        if (slot->size == UINT32_MAX) {
            good &= slot->id == -1;
            run = 0;
            continue;
        }
        good &= slot->begin <= v->pool_size && slot->size <= v->pool_size - slot->begin;
        good &= (uint32_t)slot->id < (uint32_t)v->id_count;
        if (slot->size > v->longest) v->longest = slot->size;
        if (++run > longest_run) longest_run = run;
        v->count++;
    }
    return good && v->count <= v->mask && longest_run <= 2 * PROBE_LIMIT;
}

/* Takes the tables of a frozen tokenizer after checking every slot and id, so that look-ups need no
 * bounds checks. */
pith_status pith__vocab_open(pith__vocab *v, pith__loader *loader) {
    size_t slot_count, id_count, bytes;
    memset(v, 0, sizeof *v);
    if (!(v->slots = pith__frozen_table(loader, "vocab.slots", sizeof *v->slots, &slot_count)) ||
        !(v->by_id = pith__frozen_table(loader, "vocab.ids", sizeof *v->by_id, &id_count)) ||
        !(v->pool = pith__frozen_table(loader, "vocab.text", 1, &bytes)))
        return loader->err->code;
    if (slot_count < 2 || slot_count & (slot_count - 1) ||
        slot_count > (size_t)4 * PITH_TOKEN_ID_MAX || id_count > PITH_TOKEN_ID_MAX ||
        bytes < PITH_VOCAB_TAIL || bytes > PITH_TEXT_MAX)
        return pith__frozen_damaged(loader, "vocab.slots");
    v->mask = (uint32_t)slot_count - 1;
    v->id_count = (int32_t)id_count;
    v->pool_size = (uint32_t)bytes - PITH_VOCAB_TAIL;
    if (!check_slots(v)) return pith__frozen_damaged(loader, "vocab.slots");
    for (size_t i = 0; i < id_count; i++)
        if (v->by_id[i] > v->mask && v->by_id[i] != UINT32_MAX)
            return pith__frozen_damaged(loader, "vocab.ids");
    return PITH_OK;
}

pith_status pith__vocab_take(pith__vocab *v, const pith__vocab_builder *b, pith__loader *loader) {
    return loader->frozen.data ? pith__vocab_open(v, loader)
                               : pith__vocab_build(v, b, loader->arena, loader->stop, loader->err);
}

int32_t pith__vocab_id(const pith__vocab *v, pith_str text) {
    return pith__vocab_find(v, pith__vocab_hash(0, text.data, text.size), PITH_STR(""), text.data,
                            (uint32_t)text.size);
}

pith_str pith__vocab_token(const pith__vocab *v, int32_t id) {
    if (id < 0 || id >= v->id_count || v->by_id[id] == UINT32_MAX) return (pith_str){ NULL, 0 };
    const pith__vocab_slot *slot = &v->slots[v->by_id[id]];
    if (slot->id != id) return (pith_str){ NULL, 0 };
    return (pith_str){ v->pool + slot->begin, slot->size };
}

int32_t pith__vocab_model_id(const void *model, pith_str token) {
    return pith__vocab_id(model, token);
}
pith_str pith__vocab_model_token(const void *model, int32_t id) {
    return pith__vocab_token(model, id);
}
int32_t pith__vocab_model_size(const void *model) { return ((const pith__vocab *)model)->id_count; }
int32_t pith__vocab_model_count(const void *model) {
    return (int32_t)((const pith__vocab *)model)->count;
}
