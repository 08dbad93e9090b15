/* norm_precompiled.c - SentencePiece's character map, applied as Hugging Face's spm_precompiled
 * applies it.
 *
 * The map is a Darts double array whose keys are character sequences, and a text of zero-terminated
 * replacements. A grapheme cluster below six bytes is looked up first, and its shortest prefix in
 * the map replaces all of it. Otherwise each character is looked up alone. Offsets follow Hugging
 * Face's list of changes: a replacement consumes as many characters as it has itself. Further
 * characters share the offsets of the one before. Removed characters count to the last character
 * written; if they are at the very start they count to nothing, and the offsets of what follows are
 * shifted. */

#include "base/unicode/character.h"
#include "base/unicode/tokenizer_characters.h"
#include "text/pipeline.h"
#include "text/sources/key_report.h"

/* Bytes of the longest grapheme cluster that is looked up as a whole, as in spm_precompiled. */
enum { CLUSTER_MAX = 5 };

typedef struct charsmap {
    const uint32_t *units;
    uint32_t unit_count, size;
    const char *replacements; /* [size], the byte after is 0 */
    uint8_t plain[128];       /* ASCII characters the map does not have */
    /* Bit s: a key begins with byte 0xC0 + i and a byte whose low six bits are s. */
    uint64_t begins[64];
} charsmap;

/* The way down the trie for one byte; false: no key goes on with it. */
static inline bool step(const charsmap *map, uint32_t *unit, uint32_t *at, unsigned char c) {
    *at ^= c;
    if (*at >= map->unit_count || ((*unit = map->units[*at]) & (1u << 31 | 0xFF)) != c)
        return false;
    *at ^= (*unit >> 10) << ((*unit & 1u << 9) >> 6);
    return true;
}

static uint32_t root(const charsmap *map) {
    return (map->units[0] >> 10) << ((map->units[0] & 1u << 9) >> 6);
}

static bool ends_key(uint32_t unit) { return unit >> 8 & 1; }

/* The replacement of the shortest prefix of key that the map has; data NULL: none. */
static pith_str norm_precompiled_look_up(const charsmap *map, const char *key, size_t size) {
    uint32_t unit, at = root(map);
    for (size_t i = 0; i < size && key[i] && step(map, &unit, &at, (unsigned char)key[i]); i++) {
        if (!ends_key(unit)) continue;
        uint32_t begin = at < map->unit_count ? map->units[at] & 0x7FFFFFFF : UINT32_MAX;
        if (begin > map->size) break;
        return (pith_str){ map->replacements + begin, strlen(map->replacements + begin) };
    }
    return (pith_str){ NULL, 0 };
}

static bool begins_key(const charsmap *map, unsigned char first, unsigned char second) {
    uint32_t unit, at = root(map);
    return step(map, &unit, &at, first) && (ends_key(unit) || step(map, &unit, &at, second));
}

/* The last character written may still change what it consumes, so it waits. */
typedef struct change {
    pith__encoding *enc;
    uint32_t cursor, end; /* the next character of the text to be consumed */
    char bytes[4];
    uint32_t size;  /* 0: nothing waits */
    int32_t change; /* > 0: consumes nothing; <= 0: one character and -change more */
} change;

/* Writes the characters that wait and moves the cursor of the original over what they replace: none
 * for an inserted character, one for one that replaces, more for one that is followed by removed
 * ones. It follows Hugging Face's list of changes, so that offsets agree. */
static void norm_precompiled_flush(change *w) {
    if (!w->size) return;
    pith__encoding *enc = w->enc;
    uint32_t begin = w->cursor;
    if (w->change > 0) {
        pith__encoding_put(enc, w->bytes, w->size, begin ? begin - 1 : 0);
    } else {
        pith__encoding_put(enc, w->bytes, w->size, begin < w->end ? begin : w->end - 1);
        const char *p = enc->text.data + begin, *end = enc->text.data + w->end;
        for (int32_t i = w->change; i <= 0 && p < end; i++) pith__utf8_next(&p);
        w->cursor = (uint32_t)(p - enc->text.data);
    }
    w->size = 0;
}

static void put_character(change *w, const char *bytes, size_t size, int32_t how) {
    norm_precompiled_flush(w);
    memcpy(w->bytes, bytes, size);
    w->size = (uint32_t)size;
    w->change = how;
}

static const char *previous(const char *p) {
    do p--;
    while ((*p & 0xC0) == 0x80);
    return p;
}

/* Text bytes [begin, end) stay as they are. */
static void norm_precompiled_keep(change *w, uint32_t begin, uint32_t end) {
    const char *text = w->enc->text.data, *p = text + begin, *last;
    if (begin == end) return;
    norm_precompiled_flush(w);
    last = previous(text + end);
    if (w->cursor == begin) {
        if (p < last) pith__encoding_copy(w->enc, begin, (uint32_t)(last - text));
        w->cursor = (uint32_t)(last - text);
        p = last;
    }
    while (p < text + end) {
        const char *character = p;
        pith__utf8_next(&p);
        put_character(w, character, (size_t)(p - character), 0);
    }
}

static int32_t norm_precompiled_count_characters(const char *p, size_t size) {
    int32_t count = 0;
    for (size_t i = 0; i < size; i++) count += (p[i] & 0xC0) != 0x80;
    return count;
}

static void replace(change *w, int32_t old_count, pith_str with) {
    int32_t more = norm_precompiled_count_characters(with.data, with.size) - old_count, at = 0;
    for (const char *p = with.data, *end = p + with.size; p < end; at++) {
        const char *character = p;
        pith__utf8_next(&p);
        put_character(w, character, (size_t)(p - character), more > 0 && at >= old_count);
    }
    if (more < 0 && w->size) w->change += more;
}

/* True for the common characters that begin a cluster, whatever common one comes before (except CR
 * LF). */
static bool is_common(uint32_t c) {
    return c < 0x300 || (c >= 0x370 && c < 0x483) || (c >= 0x48A && c < 0x590) ||
           (c >= 0x3041 && c < 0x3097) || (c >= 0x30A1 && c < 0x30FB) ||
           (c >= 0x4E00 && c < 0xA000);
}

/* A character that Unicode 15 treats as the peer, of 17, treats c: a mark, a prepended one,
 * another. */
static uint32_t stand_in(uint32_t c) {
    if (pith__char_is_newer_mark(c)) return 0x300;
    if (c == 0x113D1) return 0x600;
    if (c == 0x11A3A) return 0x4E00;
    return c;
}

/* The end of the grapheme cluster that begins at p (UAX #29), with the state that
 * pith__character_joins carries along. Two common characters never join, CR LF aside, which settles
 * most of a text without a look-up. */
static const char *cluster_end(const char *p, const char *end) {
    uint8_t state = 0;
    uint32_t before = stand_in(pith__utf8_next(&p));
    while (p < end) {
        const char *after = p;
        uint32_t c = pith__utf8_next(&after);
        if (is_common(before) && is_common(c) && !(before == '\r' && c == '\n')) break;
        c = stand_in(c);
        if (!state) pith__character_joins(&state, before);
        if (!pith__character_joins(&state, c)) break;
        before = c;
        p = after;
    }
    return p;
}

/* Replaces text bytes [begin, end), one cluster or character, if the map has them; *kept: where the
 * bytes begin that are still to be written as they are. */
static bool try_replace(const charsmap *map, change *w, uint32_t *kept, uint32_t begin,
                        uint32_t end) {
    const char *key = w->enc->text.data + begin;
    unsigned lead = (unsigned char)key[0];
    if (lead >= 0xC0 && !(map->begins[lead & 63] >> (key[1] & 63) & 1)) return false;
    pith_str with = norm_precompiled_look_up(map, key, end - begin);
    if (!with.data) return false;
    norm_precompiled_keep(w, *kept, begin);
    replace(w, norm_precompiled_count_characters(key, end - begin), with);
    *kept = end;
    return true;
}

/* ASCII that the map leaves alone, followed by ASCII, is passed over: no key can begin there. Else
 * a grapheme cluster is tried as a whole, if it is short enough, and then its characters one by
 * one, in the order in which SentencePiece's port in Hugging Face's library does it. */
static pith_status norm_precompiled_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const charsmap *map = self;
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t at = piece.begin, kept = at;
    change w = { .enc = enc, .cursor = at, .end = piece.end };
    while (at < piece.end) {
        if (pith__encoding_stops(enc, at)) return PITH_OK;
        unsigned char c = (unsigned char)text[at];
        if (c < 0x80 && map->plain[c] &&
            (at + 1 == piece.end || (unsigned char)text[at + 1] < 0x80)) {
            at++;
            continue;
        }
        uint32_t stop = (uint32_t)(cluster_end(text + at, end) - text);
        bool tried = stop - at <= CLUSTER_MAX;
        if (tried && try_replace(map, &w, &kept, at, stop)) at = stop;
        while (at < stop) {
            const char *p = text + at;
            pith__utf8_next(&p);
            uint32_t after = (uint32_t)(p - text);
            if (!(tried && after == stop)) try_replace(map, &w, &kept, at, after);
            tried = false;
            at = after;
        }
    }
    norm_precompiled_keep(&w, kept, piece.end);
    norm_precompiled_flush(&w);
    return PITH_OK;
}

/* RFC 4648 without line breaks; returns the bytes written or SIZE_MAX. */
static size_t decode_base64(unsigned char *out, pith_str in) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    signed char value[256];
    memset(value, -1, sizeof value);
    for (int i = 0; i < 64; i++) value[(unsigned char)digits[i]] = (signed char)i;
    size_t size = 0, length = in.size;
    if (length % 4) return SIZE_MAX;
    while (length && in.size - length < 2 && in.data[length - 1] == '=') length--;
    uint32_t bits = 0;
    for (size_t i = 0; i < length; i++) {
        int v = value[(unsigned char)in.data[i]];
        if (v < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4) out[size++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    return size;
}

static uint32_t read_u32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Reads the map: the size of the trie, its units in little-endian, then the replacements. Notes
 * which ASCII characters no key changes and which pairs of leading bytes begin a key, so that most
 * of a text needs no walk. Returns what is wrong with the map, or NULL. */
static const char *read_map(charsmap *map, unsigned char *bytes, size_t size) {
    if (size < 4) return "the charsmap has no header";
    uint32_t trie_bytes = read_u32(bytes);
    if (trie_bytes % 4 || trie_bytes < 4 || trie_bytes > size - 4)
        return "the charsmap's trie has an impossible size";
    uint32_t *units = (uint32_t *)(void *)bytes;
    for (uint32_t i = 0; i < trie_bytes / 4; i++) units[i] = read_u32(bytes + 4 + 4 * (size_t)i);
    map->units = units;
    map->unit_count = trie_bytes / 4;
    map->replacements = (const char *)bytes + 4 + trie_bytes;
    map->size = (uint32_t)(size - 4 - trie_bytes);
    bytes[size] = 0;
    if (pith__utf8_valid_prefix(map->replacements, map->size) != map->size)
        return "the charsmap's replacements are not UTF-8";
    for (unsigned c = 0; c < 128; c++) {
        char key = (char)c;
        map->plain[c] = c != '\r' && !norm_precompiled_look_up(map, &key, 1).data;
    }
    for (unsigned i = 0; i < 64; i++)
        for (unsigned k = 0; k < 64; k++)
            map->begins[i] |=
                (uint64_t)begins_key(map, (unsigned char)(0xC0 | i), (unsigned char)(0x80 | k))
                << k;
    return NULL;
}

static void norm_precompiled_parse(const void **self, pith__json *j, pith__loader *loader) {
    charsmap *map = pith__arena_array(loader->arena, 1, sizeof *map);
    pith_str key, encoded = { NULL, 0 };
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "precompiled_charsmap"))
            encoded = pith__json_string(j);
        else
            pith__key_other(j, loader, key, "");
    }
    if (j->failed) return;
    unsigned char *bytes = pith__arena_alloc(loader->arena, encoded.size / 4 * 3 + 4);
    if (!map || !bytes) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory: %zu bytes are needed", encoded.size);
        return;
    }
    size_t size = encoded.size < INT32_MAX ? decode_base64(bytes, encoded) : SIZE_MAX;
    const char *fault =
        size == SIZE_MAX ? "the charsmap is not base64" : read_map(map, bytes, size);
    if (fault)
        pith__json_fail(j, PITH_ERR_FORMAT, "%s", fault);
    else
        *self = map;
}

const pith__normalizer_desc pith__normalizer_Precompiled = { .name = "Precompiled",
                                                             .flags = PITH_STEP_LOCAL,
                                                             .parse = norm_precompiled_parse,
                                                             .run = norm_precompiled_run };
