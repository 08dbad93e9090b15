/* field_flags.c - see field_flags.h. */
#include "cli/options/field_flags.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What messages of the library name, and the row of options.def that sets it. `make lint` finds
 * every field in its row, and every one that a message names in this list. */
static const struct {
    char field[32];
    uint16_t row;
} fields[] = {
    { "PITH_ENCODE_SPARSE", ROW_sparse },
    { "PITH_OPEN_CHECK", ROW_check },
    { "PITH_OPEN_NO_ARENA", ROW_arena },
    { "PITH_OPEN_NO_PLAN_REUSE", ROW_plan_reuse },
    { "pith_detect_options.width", ROW_detect_size },
    { "pith_embed_options.max_length", ROW_max_length_embed },
    { "pith_embed_options.pooling", ROW_pooling },
    { "pith_encode_options.alpha", ROW_bm42_alpha },
    { "pith_encode_options.avg_len", ROW_bm25_avg_len },
    { "pith_encode_options.b", ROW_bm25_b },
    { "pith_encode_options.k", ROW_bm25_k },
    { "pith_export_options.pool", ROW_pool },
    { "pith_open_options.loop_limit", ROW_loop_limit },
    { "pith_open_options.memory_limit", ROW_memory_limit },
    { "pith_open_options.model_file", ROW_model_file },
    { "pith_open_options.route", ROW_route },
};

static bool field_is_of(const command *c, const option_row *row) {
    const option *o = c->options;
    while ((o->row || o->heading) && o->row != row) o++;
    return o->row == row;
}

/* The row of the field at p, if one begins there: the verb's own, else the first; *size is the
 * length of its name. */
static const option_row *field_find(const command *c, const char *p, size_t *size) {
    const option_row *found = NULL;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t n = strlen(fields[i].field);
        const option_row *row = &option_rows[fields[i].row];
        if (strncmp(p, fields[i].field, n) || isalnum((unsigned char)p[n]) || p[n] == '_') continue;
        *size = n;
        if (!found || field_is_of(c, row)) found = row;
    }
    return found;
}

void name_flags(const command *c, char *message) {
    size_t size;
    for (char *p = message; *p; p++) {
        const option_row *row = *p == 'p' || *p == 'P' ? field_find(c, p, &size) : NULL;
        if (!row) continue;
        char flag[64];
        const bool off = memmem(p, size, "_NO_", 4);
        const size_t n = (size_t)snprintf(flag, sizeof flag, off ? "--no-%s" : "--%s", row->name);
        memcpy(p, flag, n);
        memmove(p + n, p + size, strlen(p + size) + 1);
    }
}
