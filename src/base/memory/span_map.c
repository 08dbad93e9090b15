/* span_map.c - open addressing with linear probing, at most three quarters full, power-of-two
 * sizes.
 *
 * The hash is SipHash-1-3 (Aumasson and Bernstein) with random key bytes per map, so that nobody
 * can write a vocabulary that collides. A slot keeps 32 bits of the hash: most misses end without
 * touching the key. */
#include "base/memory/span_map.h"

#include <string.h>
#include <sys/random.h>

#include "base/os/clock.h"
#include "base/str.h"

struct pith__map_slot {
    pith_str key; /* data is NULL in a free slot */
    uint32_t hash, value;
};

#define SIP_ROUND                                                                                  \
    do {                                                                                           \
        a += b, b = b << 13 | b >> 51, b ^= a, a = a << 32 | a >> 32;                              \
        c += d, d = d << 16 | d >> 48, d ^= c;                                                     \
        a += d, d = d << 21 | d >> 43, d ^= a;                                                     \
        c += b, b = b << 17 | b >> 47, b ^= c, c = c << 32 | c >> 32;                              \
    } while (0)

/* SipHash with one round per eight bytes and three at the end, the second key derived from the
 * first. It is folded to 32 bits, which is what a slot keeps. */
static uint32_t hash_of(uint64_t seed, pith_str key) {
    uint64_t k0 = seed, k1 = seed * 0x9E3779B97F4A7C15u ^ 0xD1B54A32D192ED03u;
    uint64_t a = k0 ^ 0x736F6D6570736575u, b = k1 ^ 0x646F72616E646F6Du;
    uint64_t c = k0 ^ 0x6C7967656E657261u, d = k1 ^ 0x7465646279746573u, m;
    const char *p = key.data;
    size_t left = key.size;
    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&m, p, 8);
        d ^= m;
        SIP_ROUND;
        a ^= m;
    }
    m = 0;
    if (left) memcpy(&m, p, left);
    m |= (uint64_t)key.size << 56;
    d ^= m;
    SIP_ROUND;
    a ^= m;
    c ^= 0xFF;
    SIP_ROUND;
    SIP_ROUND;
    SIP_ROUND;
    uint64_t h = a ^ b ^ c ^ d;
    return (uint32_t)(h ^ h >> 32);
}

/* The slot that holds the key, or the free one where it belongs. */
static struct pith__map_slot *slot_of(const pith__map *map, pith_str key, uint32_t hash) {
    for (uint32_t i = hash & map->mask;; i = (i + 1) & map->mask) {
        struct pith__map_slot *slot = &map->slots[i];
        if (!slot->key.data || (slot->hash == hash && pith__str_eq(slot->key, key))) return slot;
    }
}

static bool resize(pith__map *map, size_t slot_count) {
    if (slot_count > (size_t)1 << 31) return false;
    struct pith__map_slot *old = map->slots,
                          *slots = pith__arena_array(map->arena, slot_count, sizeof *slots);
    if (!slots) return false;
    size_t old_count = old ? (size_t)map->mask + 1 : 0;
    map->slots = slots;
    map->mask = (uint32_t)(slot_count - 1);
    for (size_t i = 0; i < old_count; i++)
        if (old[i].key.data) *slot_of(map, old[i].key, old[i].hash) = old[i];
    return true;
}

pith_status pith__map_init(pith__map *map, pith__arena *arena, size_t expected_count) {
    *map = (pith__map){ .arena = arena };
    size_t slot_count = 16;
    if (getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK) != (ssize_t)sizeof map->seed) {
        map->seed =
            (uint64_t)(uintptr_t)&slot_count ^ pith__clock_ns() << 20 ^ (uint64_t)(uintptr_t)map;
    }
    while (slot_count / 4 * 3 <= expected_count && slot_count <= (size_t)1 << 31) slot_count *= 2;
    return resize(map, slot_count) ? PITH_OK : PITH_ERR_MEMORY;
}

/* The table grows at three quarters: beyond that, runs of slots that are in use become long. A key
 * that is there keeps its slot and its span, and gets the new value. */
bool pith__map_put(pith__map *map, pith_str key, uint32_t value, uint32_t *old) {
    if (!key.data) key.data = "";
    uint32_t hash = hash_of(map->seed, key);
    struct pith__map_slot *slot = slot_of(map, key, hash);
    if (old) *old = slot->key.data ? slot->value : UINT32_MAX;
    if (!slot->key.data) {
        if (map->count >= ((size_t)map->mask + 1) / 4 * 3) {
            if (!resize(map, ((size_t)map->mask + 1) * 2)) return false;
            slot = slot_of(map, key, hash);
        }
        map->count++;
        slot->key = key;
        slot->hash = hash;
    }
    slot->value = value;
    return true;
}

uint32_t pith__map_get(const pith__map *map, pith_str key) {
    const struct pith__map_slot *slot = slot_of(map, key, hash_of(map->seed, key));
    return slot->key.data ? slot->value : UINT32_MAX;
}
