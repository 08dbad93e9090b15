/* schema_compact.c - the text of a schema as a database keeps it. The text has been read, so it is
 * JSON. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/sources/table_source.h"

/* The bytes of the string that begins at text.data[at], with both quotation marks. */
static size_t compact_string(pith_str text, size_t at) {
    size_t end = at + 1;
    while (end < text.size && text.data[end] != '"') end += text.data[end] == '\\' ? 2 : 1;
    return (end < text.size ? end + 1 : text.size) - at;
}

/* The bytes of the name of a file, in its quotation marks, without its ending and the last mark. */
static size_t compact_plain(pith_str string) {
    return 1 + pith__source_plain((pith_str){ string.data + 1, string.size - 2 }).size;
}

pith_status pith__schema_compact(pith_str *compact, pith_str text, pith__arena *arena,
                                 pith_error *err) {
    char *out = pith__arena_alloc(arena, text.size + 1);
    pith_str before = { NULL, 0 };
    size_t n = 0;
    bool value = false; /* a colon came after the string before */
    if (!out) return pith__fail_memory(err, text.size);
    for (size_t i = 0; i < text.size;) {
        const char c = text.data[i];
        if (c != '"') {
            i++;
            if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
            value = c == ':';
            out[n++] = c;
            continue;
        }
        const pith_str string = { text.data + i, compact_string(text, i) };
        const bool file = value && pith__str_is(before, "\"file\"");
        const size_t size = file ? compact_plain(string) : string.size;
        memcpy(out + n, string.data, size);
        n += size;
        if (file) out[n++] = '"';
        before = string;
        value = false;
        i += string.size;
    }
    out[n] = 0;
    *compact = (pith_str){ out, n };
    return PITH_OK;
}
