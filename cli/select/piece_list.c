/* piece_list.c - see piece_list.h. */
#include "cli/select/piece_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const piece_kind_names[PIECE_KINDS] = {
    "operators",   "kernels",        "passes",           "ragged",   "readers",
    "families",    "tasks",          "modules",          "heads",    "tokenizer_sources",
    "normalizers", "pre_tokenizers", "tokenizer_models", "decoders", "runtimes",
    "parts",       "isas",
};

const char *const piece_dtypes[PIECE_DTYPES] = {
    "f32",
    "u8",
    "i8",
    "u16",
    "i16",
    "i32",
    "i64",
    "string",
    "bool",
    "f16",
    "f64",
    "u32",
    "u64",
    "complex64",
    "complex128",
    "bf16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "uint4",
    "int4",
    "float4_e2m1fn",
    "float8_e8m0fnu",
    "uint2",
    "int2",
};

static int piece_name_find(const char *const *names, int count, const char *name, size_t size) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == size && !memcmp(names[i], name, size)) return i;
    return -1;
}

piece_kind piece_kind_find(const char *name, size_t size) {
    int found = piece_name_find(piece_kind_names, PIECE_KINDS, name, size);
    return found < 0 ? PIECE_KINDS : (piece_kind)found;
}

int piece_dtype_find(const char *name, size_t size) {
    return piece_name_find(piece_dtypes, PIECE_DTYPES, name, size);
}

/* Domains that symbols show at their beginning or at their end. */
static const struct {
    const char *domain, *before, *after;
} piece_domains[] = {
    { "com.microsoft::", "", "_ms" },
    { "pith::", "", "_pith" },
    { "ai.onnx.ml::", "ml_", "" },
    { "ai.onnx.preview::", "preview_", "" },
    { "ai.onnx.preview.training::", "training_", "" },
    { "com.microsoft.nchwc::", "nchwc_", "" },
};
enum { PIECE_DOMAINS = sizeof piece_domains / sizeof *piece_domains };

void piece_symbol(char *symbol, size_t size, const char *name) {
    for (size_t i = 0; i < PIECE_DOMAINS; i++) {
        const size_t n = strlen(piece_domains[i].domain);
        if (strncmp(name, piece_domains[i].domain, n)) continue;
        snprintf(symbol, size, "%s%s%s", piece_domains[i].before, name + n, piece_domains[i].after);
        return;
    }
    const char *colons = strstr(name, "::");
    snprintf(symbol, size, "%s", colons ? colons + 2 : name);
}

void piece_name(char *name, size_t size, const char *symbol) {
    if (!strstr(symbol, "::"))
        for (size_t i = 0; i < PIECE_DOMAINS; i++) {
            const char *before = piece_domains[i].before, *after = piece_domains[i].after;
            const size_t b = strlen(before), a = strlen(after), n = strlen(symbol);
            if (n <= a + b || strncmp(symbol, before, b) || strcmp(symbol + n - a, after)) continue;
            snprintf(name, size, "%s%.*s", piece_domains[i].domain, (int)(n - a - b), symbol + b);
            return;
        }
    snprintf(name, size, "%s", symbol);
}

/* All dtypes and some dtypes are all dtypes. */
static uint32_t piece_unite_facts(uint32_t a, uint32_t b) {
    uint32_t upgraded = (a | b) & PIECE_UPGRADED, x = a & ~PIECE_UPGRADED, y = b & ~PIECE_UPGRADED;
    return upgraded | (x && y ? x | y : 0);
}

/* Where the name stands or would stand. */
static size_t piece_place(const piece_names *names, const char *name, size_t size, bool *there) {
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *other = names->items[middle].name;
        int order = strncmp(name, other, size);
        if (!order && other[size]) order = -1;
        if (!order) {
            *there = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *there = false;
    return low;
}

bool piece_list_add(piece_list *list, piece_kind kind, const char *name, size_t size,
                    uint32_t facts) {
    piece_names *names = &list->kinds[kind];
    bool there;
    size_t at = piece_place(names, name, size, &there);
    names->listed = true;
    if (there) {
        names->items[at].facts = piece_unite_facts(names->items[at].facts, facts);
        return true;
    }
    char *copy = malloc(size + 1);
    piece_item *items = realloc(names->items, (names->count + 1) * sizeof *items);
    if (items) names->items = items;
    if (!copy || !items) {
        free(copy);
        return false;
    }
    memcpy(copy, name, size);
    copy[size] = 0;
    memmove(items + at + 1, items + at, (names->count - at) * sizeof *items);
    items[at] = (piece_item){ copy, facts };
    names->count++;
    return true;
}

const piece_item *piece_list_find(const piece_list *list, piece_kind kind, const char *name) {
    bool there;
    size_t at = piece_place(&list->kinds[kind], name, strlen(name), &there);
    return there ? &list->kinds[kind].items[at] : NULL;
}

static void piece_names_free(piece_names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->items[i].name);
    free(names->items);
    *names = (piece_names){ .listed = false };
}

bool piece_list_unite(piece_list *list, const piece_list *other) {
    for (int k = 0; k < PIECE_KINDS; k++) {
        const piece_names *more = &other->kinds[k];
        if (!list->kinds[k].listed) continue;
        if (!more->listed) piece_names_free(&list->kinds[k]);
        for (size_t i = 0; i < more->count; i++)
            if (!piece_list_add(list, (piece_kind)k, more->items[i].name,
                                strlen(more->items[i].name), more->items[i].facts))
                return false;
    }
    return true;
}

void piece_list_free(piece_list *list) {
    for (int k = 0; k < PIECE_KINDS; k++) piece_names_free(&list->kinds[k]);
}
