/* gguf_header.c - see gguf_header.h. */
#include "formats/weights/gguf/gguf_header.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Types of values; those below TYPE_STRING and TYPE_U64 to TYPE_F64 have a size of their own. */
enum {
    TYPE_U8,
    TYPE_I8,
    TYPE_U16,
    TYPE_I16,
    TYPE_U32,
    TYPE_I32,
    TYPE_F32,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_ARRAY,
    TYPE_U64,
    TYPE_I64,
    TYPE_F64,
    TYPES
};
enum { VERSION_LEAST = 2, VERSION_MOST = 3, NEST_MAX = 4 };

/* Bytes of each type; 0: it has a length of its own. */
static const uint8_t gguf_sizes[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

pith_status pith__gguf_fail(const pith__gguf *g, const char *what) {
    return pith__fail(g->err, PITH_ERR_FORMAT, "%s: %s at byte %td", g->name, what,
                      g->next - g->begin);
}

/* *to is zeros after an error, so that callers that go on for a better message read no memory of
 * others. */
pith_status pith__gguf_take(pith__gguf *g, void *to, size_t size) {
    if ((size_t)(g->end - g->next) < size) {
        memset(to, 0, size);
        return pith__gguf_fail(g, "the file is cut short");
    }
    memcpy(to, g->next, size);
    g->next += size;
    return PITH_OK;
}

pith_status pith__gguf_text(pith__gguf *g, pith_str *text) {
    uint64_t size;
    PITH_TRY(pith__gguf_take(g, &size, sizeof size));
    if (size > (uint64_t)(g->end - g->next))
        return pith__gguf_fail(g, "a string reaches beyond the end");
    *text = (pith_str){ g->next, (size_t)size };
    g->next += size;
    return PITH_OK;
}

/* Lists are passed over, not kept: a vocabulary has hundreds of thousands of strings, and most
 * settings are never asked for. The nesting is bounded, because a file of a few bytes could ask for
 * any depth. */
static pith_status gguf_skip_array(pith__gguf *g, uint32_t type, uint64_t count, int depth) {
    uint32_t inner_type;
    uint64_t bytes, inner_count;
    pith_str text;
    if (type >= TYPES || depth == NEST_MAX)
        return pith__gguf_fail(g, "a setting of an unknown type");
    if (gguf_sizes[type]) {
        if (pith__mul_overflows(count, (uint64_t)gguf_sizes[type], &bytes) ||
            bytes > (uint64_t)(g->end - g->next))
            return pith__gguf_fail(g, "a list reaches beyond the end");
        g->next += bytes;
        return PITH_OK;
    }
    for (uint64_t i = 0; i < count; i++) { /* each takes bytes of the file */
        if (type == TYPE_STRING) {
            PITH_TRY(pith__gguf_text(g, &text));
            continue;
        }
        PITH_TRY(pith__gguf_take(g, &inner_type, sizeof inner_type));
        PITH_TRY(pith__gguf_take(g, &inner_count, sizeof inner_count));
        PITH_TRY(gguf_skip_array(g, inner_type, inner_count, depth + 1));
    }
    return PITH_OK;
}

/* A value with a size of its own. */
static pith_status gguf_number(pith__gguf *g, pith__gguf_entry *e, uint32_t type) {
    uint64_t bits = 0;
    const int size = gguf_sizes[type];
    PITH_TRY(pith__gguf_take(g, &bits, (size_t)size)); /* little-endian, as the machine */
    if (type == TYPE_F32) {
        float f;
        memcpy(&f, &bits, sizeof f);
        e->real = f;
    } else if (type == TYPE_F64) {
        memcpy(&e->real, &bits, sizeof bits);
    } else {
        const bool has_sign =
            type == TYPE_I8 || type == TYPE_I16 || type == TYPE_I32 || type == TYPE_I64;
        if (has_sign && bits >> (size * 8 - 1) & 1) return PITH_OK;
        e->count = bits;
        e->real = (double)bits;
        e->kind = PITH_GGUF_COUNT;
        return PITH_OK;
    }
    e->kind = PITH_GGUF_REAL;
    return PITH_OK;
}

/* The numbers of a list stand at any address and in any of the types; the sign is extended by hand
 * for those of less than 8 bytes. */
double pith__gguf_number(const pith__gguf_entry *e, uint64_t i) {
    const int size = gguf_sizes[e->item];
    const bool has_sign =
        e->item == TYPE_I8 || e->item == TYPE_I16 || e->item == TYPE_I32 || e->item == TYPE_I64;
    uint64_t bits = 0;
    memcpy(&bits, e->text.data + i * (size_t)size, (size_t)size);
    if (e->item == TYPE_F32) {
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    if (e->item == TYPE_F64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    const uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    return has_sign ? (double)(int64_t)((bits ^ sign) - sign) : (double)bits;
}

/* Reads one setting and leaves the place behind it. Lists of strings keep a copy of the place of
 * their first item, from which pith__gguf_text can go on. */
pith_status pith__gguf_next(pith__gguf *g, pith__gguf_entry *e) {
    uint32_t type, items;
    *e = (pith__gguf_entry){ .kind = PITH_GGUF_OTHER };
    g->entries--;
    PITH_TRY(pith__gguf_text(g, &e->key));
    PITH_TRY(pith__gguf_take(g, &type, sizeof type));
    if (type >= TYPES) return pith__gguf_fail(g, "a setting of an unknown type");
    if (type == TYPE_STRING) {
        e->kind = PITH_GGUF_TEXT;
        return pith__gguf_text(g, &e->text);
    }
    if (type != TYPE_ARRAY) return gguf_number(g, e, type);
    PITH_TRY(pith__gguf_take(g, &items, sizeof items));
    PITH_TRY(pith__gguf_take(g, &e->count, sizeof e->count));
    e->texts = *g;
    if (items == TYPE_STRING) e->kind = PITH_GGUF_TEXTS;
    const char *begin = g->next;
    PITH_TRY(gguf_skip_array(g, items, e->count, 0));
    if (!gguf_sizes[items]) return PITH_OK;
    e->kind = PITH_GGUF_NUMBERS;
    e->item = items;
    e->text = (pith_str){ begin, (size_t)(g->next - begin) };
    return PITH_OK;
}

bool pith__gguf_is(pith_str bytes) {
    return bytes.size >= 4 && !memcmp(bytes.data, PITH_GGUF_MAGIC, 4);
}

/* The header: magic, version, number of tensors, number of settings. Version 1 had shorter lengths
 * and is not read. Big-endian files have a version that is out of range. */
pith_status pith__gguf_begin(pith__gguf *g, pith_str bytes, const char *name, pith_error *err) {
    char magic[4];
    uint32_t version;
    *g = (pith__gguf){ bytes.data, bytes.data, bytes.data + bytes.size, name, 0, 0, err };
    PITH_TRY(pith__gguf_take(g, magic, sizeof magic));
    if (!pith__gguf_is(bytes)) return pith__fail(err, PITH_ERR_FORMAT, "%s: not a GGUF file", name);
    PITH_TRY(pith__gguf_take(g, &version, sizeof version));
    if (version < VERSION_LEAST || version > VERSION_MOST)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: version %u of GGUF; 2 and 3 are read",
                          name, version);
    PITH_TRY(pith__gguf_take(g, &g->tensors, sizeof g->tensors));
    return pith__gguf_take(g, &g->entries, sizeof g->entries);
}
