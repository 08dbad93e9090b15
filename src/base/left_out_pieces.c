/* left_out_pieces.c - see left_out_pieces.h. */
#include "base/left_out_pieces.h"

#include <stdio.h>

/* FNV-1a with 32 bits (Fowler, Noll, Vo). tools/trim.c computes the same. */
static uint32_t dropped_hash(uint32_t hash, pith_str text) {
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT32_C(16777619);
    return hash;
}

bool pith__piece_is_dropped(const char *kind, pith_str name) {
    if (!pith__dropped_count) return false;
    uint32_t hash = dropped_hash(UINT32_C(2166136261), pith__str_of(kind));
    hash = dropped_hash(dropped_hash(hash, PITH_STR(" ")), name);
    for (size_t i = 0; i < pith__dropped_count; i++)
        if (pith__dropped_table[i] == hash) return true;
    return false;
}

void pith__lacks_note(pith__lacks *lacks, const char *kind, pith_str name, const char *place) {
    char line[256], item[512];
    snprintf(line, sizeof line, "'- " PITH_STR_FMT "' under '%s:'", PITH_STR_ARG(name), kind);
    const size_t used = strlen(lacks->text);
    if (strstr(lacks->text, line)) return;
    const int size = snprintf(item, sizeof item, "%s%s%s%s", lacks->count++ ? ", " : "", line,
                              place[0] ? " for " : "", place);
    if (size > 0 && (size_t)size < sizeof item && used + (size_t)size < sizeof lacks->text)
        memcpy(lacks->text + used, item, (size_t)size + 1);
    else
        lacks->unnamed++;
}

#define LACKS "this selective build lacks pieces; add to its list, and build again: "

bool pith__error_is_lack(const pith_error *err) {
    return (pith__dropped_count || pith__dropped_names[0]) && strstr(err->message, LACKS);
}

pith_status pith__lacks_check(const pith__lacks *lacks, pith_error *err) {
    char more[64] = "";
    if (!lacks->count) return PITH_OK;
    if (lacks->unnamed) snprintf(more, sizeof more, " and %zu more", lacks->unnamed);
    return pith__fail(err, PITH_ERR_UNSUPPORTED, LACKS "%s%s", lacks->text, more);
}

static char dropped_plain(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Whether both are the same name but for '-', '_' and capitals. */
static bool dropped_is(const char *listed, pith_str name) {
    size_t at = 0;
    for (;; listed++, at++) {
        while (*listed == '_') listed++;
        while (at < name.size && (name.data[at] == '-' || name.data[at] == '_')) at++;
        if (at == name.size || !*listed) return at == name.size && !*listed;
        if (dropped_plain(*listed) != dropped_plain(name.data[at])) return false;
    }
}

/* The next of the small kinds' names that is of this kind, at `at` or behind it; NULL: there is
 * none. */
static const char *dropped_next(const char *at, const char *kind) {
    const size_t size = strlen(kind);
    for (; *at; at += strlen(at) + 1)
        if (!strncmp(at, kind, size) && at[size] == ' ') return at;
    return NULL;
}

pith_status pith__piece_check(const char *kind, pith_str name, pith_error *err) {
    return pith__piece_check_for(kind, name, "", err);
}

pith_status pith__piece_check_for(const char *kind, pith_str name, const char *place,
                                  pith_error *err) {
    pith__lacks lacks = { .count = 0 };
    if (pith__piece_is_dropped(kind, name)) pith__lacks_note(&lacks, kind, name, place);
    for (const char *at = pith__dropped_names; (at = dropped_next(at, kind));
         at += strlen(at) + 1) {
        const char *listed = at + strlen(kind) + 1;
        if (dropped_is(listed, name)) pith__lacks_note(&lacks, kind, pith__str_of(listed), place);
    }
    return pith__lacks_check(&lacks, err);
}

pith_status pith__piece_check_any(const char *kind, pith_error *err) {
    pith__lacks lacks = { .count = 0 };
    for (const char *at = pith__dropped_names; (at = dropped_next(at, kind)); at += strlen(at) + 1)
        pith__lacks_note(&lacks, kind, pith__str_of(at + strlen(kind) + 1), "");
    return pith__lacks_check(&lacks, err);
}
