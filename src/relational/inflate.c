/* inflate.c - see inflate.h. Codes are decoded bit by bit with counts of each length, which is small and fast enough to
 * read tables. Source: RFC 1951 (DEFLATE), RFC 1952 (gzip). */
#include "relational/inflate.h"

#include <string.h>

#include "base/error.h"

enum { CODE_BITS = 15, LITERALS = 288, DISTANCES = 32 };

typedef struct inflate_code {
    uint16_t counts[CODE_BITS + 1], symbols[LITERALS];
} inflate_code;

typedef struct inflate_state {
    const uint8_t *p, *end;
    uint32_t bits;
    int held;
    bool short_of; /* the file ended within the data */
    char *out;
    size_t size, room, member;
    pith_arena *arena;
} inflate_state;

static uint32_t inflate_bits(inflate_state *s, int n) {
    while (s->held < n) {
        if (s->p == s->end) {
            s->short_of = true;
            return 0;
        }
        s->bits |= (uint32_t)*s->p++ << s->held;
        s->held += 8;
    }
    const uint32_t value = s->bits & ((1u << n) - 1);
    s->bits >>= n;
    s->held -= n;
    return value;
}

/* Canonical Huffman codes from their lengths. False if more codes are given than there can be. */
static bool code_make(inflate_code *c, const uint8_t *lengths, int count) {
    uint16_t begin[CODE_BITS + 2] = { 0 };
    int left = 1;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < count; i++) c->counts[lengths[i]]++;
    for (int n = 1; n <= CODE_BITS; n++) {
        left = left * 2 - c->counts[n];
        if (left < 0) return false;
        begin[n + 1] = (uint16_t)(begin[n] + c->counts[n]);
    }
    for (int i = 0; i < count; i++)
        if (lengths[i]) c->symbols[begin[lengths[i]]++] = (uint16_t)i;
    return true;
}

/* Returns -1 for a code that does not exist. */
static int code_next(inflate_state *s, const inflate_code *c) {
    int code = 0, first = 0, index = 0;
    for (int n = 1; n <= CODE_BITS; n++) {
        code |= (int)inflate_bits(s, 1);
        if (s->short_of) return -1;
        const int count = c->counts[n];
        if (code - first < count) return c->symbols[index + code - first];
        index += count;
        first = (first + count) * 2;
        code *= 2;
    }
    return -1;
}

static bool inflate_room(inflate_state *s, size_t more) {
    if (s->room - s->size >= more) return true;
    size_t room = s->room * 2 > s->size + more ? s->room * 2 : s->size + more;
    char *out = pith_arena_alloc(s->arena, room);
    if (!out) return false;
    if (s->size) memcpy(out, s->out, s->size);
    s->out = out;
    s->room = room;
    return true;
}

typedef enum inflate_end { INFLATE_DONE, INFLATE_BROKEN, INFLATE_MEMORY } inflate_end;

static inflate_end inflate_stored(inflate_state *s) {
    s->bits = 0;
    s->held = 0;
    if (s->end - s->p < 4) return INFLATE_BROKEN;
    const size_t n = (size_t)(s->p[0] | s->p[1] << 8);
    if ((n ^ 0xFFFF) != (size_t)(s->p[2] | s->p[3] << 8)) return INFLATE_BROKEN;
    s->p += 4;
    if ((size_t)(s->end - s->p) < n) return INFLATE_BROKEN;
    if (!inflate_room(s, n)) return INFLATE_MEMORY;
    memcpy(s->out + s->size, s->p, n);
    s->size += n;
    s->p += n;
    return INFLATE_DONE;
}

/* Copies an earlier stretch of the member, which may overlap its own copy. */
static inflate_end inflate_copy(inflate_state *s, int symbol, const inflate_code *distances) {
    static const uint16_t lengths[] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint16_t begins[] = { 1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                       33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                       1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    if (symbol >= 29) return INFLATE_BROKEN;
    const int more = symbol < 8 || symbol == 28 ? 0 : (symbol - 4) / 4;
    const size_t length = lengths[symbol] + inflate_bits(s, more);
    const int d = code_next(s, distances);
    if (d < 0 || d >= 30) return INFLATE_BROKEN;
    const size_t distance = begins[d] + inflate_bits(s, d < 4 ? 0 : (d - 2) / 2);
    if (s->short_of || distance > s->size - s->member) return INFLATE_BROKEN;
    if (!inflate_room(s, length)) return INFLATE_MEMORY;
    for (size_t i = 0; i < length; i++, s->size++) s->out[s->size] = s->out[s->size - distance];
    return INFLATE_DONE;
}

static inflate_end inflate_symbols(inflate_state *s, const inflate_code *literals, const inflate_code *distances) {
    for (;;) {
        const int symbol = code_next(s, literals);
        inflate_end end = INFLATE_DONE;
        if (symbol < 0) return INFLATE_BROKEN;
        if (symbol == 256) return INFLATE_DONE;
        if (symbol > 256)
            end = inflate_copy(s, symbol - 257, distances);
        else if (!inflate_room(s, 1))
            end = INFLATE_MEMORY;
        else
            s->out[s->size++] = (char)symbol;
        if (end) return end;
    }
}

static inflate_end inflate_fixed(inflate_state *s) {
    uint8_t lengths[LITERALS], five[30];
    inflate_code literals, distances;
    for (int i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(five, 5, sizeof five);
    code_make(&literals, lengths, LITERALS);
    code_make(&distances, five, 30);
    return inflate_symbols(s, &literals, &distances);
}

/* The lengths of both codes, themselves coded. */
static bool inflate_lengths(inflate_state *s, uint8_t *lengths, int count, int codes) {
    static const uint8_t order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t of_lengths[19] = { 0 };
    inflate_code code;
    for (int i = 0; i < codes; i++) of_lengths[order[i]] = (uint8_t)inflate_bits(s, 3);
    if (s->short_of || !code_make(&code, of_lengths, 19)) return false;
    for (int i = 0; i < count;) {
        const int symbol = code_next(s, &code);
        int times = 1, value = symbol;
        if (symbol < 0) return false;
        if (symbol == 16) {
            if (!i) return false;
            value = lengths[i - 1];
            times = 3 + (int)inflate_bits(s, 2);
        } else if (symbol > 16) {
            value = 0;
            times = symbol == 17 ? 3 + (int)inflate_bits(s, 3) : 11 + (int)inflate_bits(s, 7);
        }
        if (times > count - i) return false;
        for (; times > 0; times--) lengths[i++] = (uint8_t)value;
    }
    return !s->short_of;
}

static inflate_end inflate_dynamic(inflate_state *s) {
    uint8_t lengths[LITERALS + DISTANCES];
    inflate_code literals, distances;
    const int n = (int)inflate_bits(s, 5) + 257, d = (int)inflate_bits(s, 5) + 1, codes = (int)inflate_bits(s, 4) + 4;
    if (n > 286 || d > 30 || !inflate_lengths(s, lengths, n + d, codes)) return INFLATE_BROKEN;
    if (!lengths[256] || !code_make(&literals, lengths, n) || !code_make(&distances, lengths + n, d))
        return INFLATE_BROKEN;
    return inflate_symbols(s, &literals, &distances);
}

static inflate_end inflate_run(inflate_state *s) {
    for (bool last = false; !last;) {
        last = inflate_bits(s, 1);
        const uint32_t kind = inflate_bits(s, 2);
        if (s->short_of || kind == 3) return INFLATE_BROKEN;
        const inflate_end end = kind == 0 ? inflate_stored(s) : kind == 1 ? inflate_fixed(s) : inflate_dynamic(s);
        if (end) return end;
    }
    s->bits = 0;
    s->held = 0;
    return INFLATE_DONE;
}

static uint32_t gzip_crc(const char *data, size_t size) {
    static const uint32_t nibbles[16] = { 0,          0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                          0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                          0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C };
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)data[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}

/* Skips the header of a member. */
static bool gzip_header(inflate_state *s) {
    if (s->end - s->p < 10 || s->p[0] != 0x1F || s->p[1] != 0x8B || s->p[2] != 8 || s->p[3] & 0xE0) return false;
    const int flags = s->p[3];
    s->p += 10;
    if (flags & 4) {
        if (s->end - s->p < 2) return false;
        const ptrdiff_t n = 2 + (s->p[0] | s->p[1] << 8);
        if (s->end - s->p < n) return false;
        s->p += n;
    }
    for (int flag = 8; flag <= 16; flag *= 2) {
        if (!(flags & flag)) continue;
        const uint8_t *nul = memchr(s->p, 0, (size_t)(s->end - s->p));
        if (!nul) return false;
        s->p = nul + 1;
    }
    if (!(flags & 2)) return true;
    if (s->end - s->p < 2) return false;
    s->p += 2;
    return true;
}

static uint32_t gzip_u32(const uint8_t *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }

bool pith_gzip_is(pith_str bytes) { return bytes.size >= 2 && !memcmp(bytes.data, "\x1F\x8B", 2); }

pith_status pith_gzip_unpack(pith_str *text, pith_str bytes, const char *path, pith_arena *arena, pith_error *err) {
    inflate_state s = { .p = (const uint8_t *)bytes.data,
                        .end = (const uint8_t *)bytes.data + bytes.size,
                        .arena = arena };
    if (!inflate_room(&s, 4 * bytes.size + 64)) return pith_fail_memory(err, 4 * bytes.size);
    while (s.p < s.end) {
        s.member = s.size;
        const inflate_end end = gzip_header(&s) ? inflate_run(&s) : INFLATE_BROKEN;
        if (end == INFLATE_MEMORY) return pith_fail_memory(err, s.size);
        if (end == INFLATE_BROKEN || s.end - s.p < 8)
            return pith_fail(err, PITH_ERR_FORMAT, "%s is not a whole gzip file: its data ends or breaks at byte %zu",
                             path, (size_t)(s.p - (const uint8_t *)bytes.data));
        if (gzip_u32(s.p) != gzip_crc(s.out + s.member, s.size - s.member) ||
            gzip_u32(s.p + 4) != (uint32_t)(s.size - s.member))
            return pith_fail(err, PITH_ERR_FORMAT, "%s is damaged: the checksum of its text is wrong", path);
        s.p += 8;
    }
    *text = (pith_str){ s.out, s.size };
    return PITH_OK;
}
