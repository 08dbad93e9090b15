/* field_flags.c - see field_flags.h. */
#include "cli/options/field_flags.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What messages of the library name, and the row of options.def that sets it. `make lint` finds
 * every field in its row, and every one that a message names in this list. */
static const struct {
    char field[40];
    uint16_t row;
} fields[] = {
    { "PITH_ENCODE_SPARSE", ROW_sparse },
    { "PITH_OPEN_CHECK", ROW_check },
    { "PITH_OPEN_NO_ARENA", ROW_arena },
    { "PITH_OPEN_NO_PLAN_REUSE", ROW_plan_reuse },
    { "pith_convert_options.to", ROW_to_convert },
    { "pith_detect_options.width", ROW_detect_size },
    { "pith_embed_options.max_length", ROW_max_length_embed },
    { "pith_embed_options.pooling", ROW_pooling },
    { "pith_embed_options.prompt_name", ROW_prompt_name },
    { "pith_encode_options.alpha", ROW_bm42_alpha },
    { "pith_encode_options.avg_len", ROW_bm25_avg_len },
    { "pith_encode_options.b", ROW_bm25_b },
    { "pith_encode_options.k", ROW_bm25_k },
    { "pith_export_options.pool", ROW_pool },
    { "pith_open_options.input_shapes", ROW_input_shape },
    { "pith_open_options.loop_limit", ROW_loop_limit },
    { "pith_open_options.memory_limit", ROW_memory_limit },
    { "pith_open_options.model_file", ROW_model_file },
    { "pith_open_options.route", ROW_route },
    { "pith_open_options.stop_after", ROW_after },
    { "pith_optimize_options.inputs", ROW_extract_input },
    { "pith_optimize_options.outputs", ROW_extract_output },
    { "pith_runtime_options.ort_library", ROW_ort_library },
    { "pith_runtime_options.providers", ROW_ep },
    { "pith_runtime_options.settings", ROW_ort_config },
    { "pith_search_index_options.first_pass", ROW_first_pass },
};

/* Functions that messages recommend, and the verbs that call them; no text is longer. */
static const struct {
    const char *function, *verb;
} functions[] = {
    { "PITH_DESCRIBE_DOT of pith_model_describe", "'pith inspect --dot'" },
    { "pith_database_draft of pith/tables.h", "`pith preprocess --draft`" },
    { "pith_embed_images of pith/image.h", "'pith embed --images'" },
};

static bool field_is_of(const command *c, const option_row *row) {
    const option *o = c->options;
    while ((o->row || o->heading) && o->row != row) o++;
    return o->row == row;
}

static bool begins(const char *p, const char *name) {
    const size_t n = strlen(name);
    return !strncmp(p, name, n) && !isalnum((unsigned char)p[n]) && p[n] != '_';
}

/* The name that begins at p, if there is one, and what stands for it: the verb's own flag, else the
 * first. */
static const char *name_at(char flag[64], const command *c, const char *p) {
    const char *name = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (begins(p, functions[i].function)) {
            snprintf(flag, 64, "%s", functions[i].verb);
            return functions[i].function;
        }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const option_row *row = &option_rows[fields[i].row];
        if (!begins(p, fields[i].field) || (name && !field_is_of(c, row))) continue;
        name = fields[i].field;
        snprintf(flag, 64, "--%s%s", strstr(name, "_NO_") ? "no-" : "", row->name);
    }
    return name;
}

void name_flags(const command *c, char *message) {
    char flag[64];
    for (char *p = message; *p; p++) {
        const char *name = *p == 'p' || *p == 'P' ? name_at(flag, c, p) : NULL;
        if (!name) continue;
        const size_t size = strlen(name), n = strlen(flag);
        memcpy(p, flag, n);
        memmove(p + n, p + size, strlen(p + size) + 1);
        p += n - 1;
    }
}
