/* select_why.c - see select_why.h.
 *
 * The model is opened again and again, each time with one more pass, and the nodes of the operator
 * are looked for in the graph as the library prints it. */
#include "cli/select/select_why.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/text_input.h"
#include "cli/select/select_uses.h"

enum { WHY_NODES = 5 }; /* as many are named */

typedef struct why {
    FILE *out;
    const char *name, *path;
    char shown[256]; /* as descriptions have it: "com.microsoft.Gelu" */
    pith_open_options open;
    unsigned uses;
    const command *c;
    bool found, is_operator; /* among the pieces that were recorded */
    const char *when;
    bytes text;         /* of a description */
    string_list passes; /* of this build, in order */
} why;

/* "gemm" and "gemm f32" are both names of a kernel. */
static void why_hear_piece(void *user, const pith_build_piece *piece) {
    why *w = user;
    const size_t n = strlen(w->name);
    if (strncmp(piece->name, w->name, n) || (piece->name[n] && piece->name[n] != ' ')) return;
    w->found = true;
    if (!strcmp(piece->list, "operators")) w->is_operator = true;
    fprintf(w->out, "  needed %s (%s: %s%s%s%s)\n", w->when, piece->list, piece->name,
            *piece->dtypes ? " " : "", piece->dtypes, piece->upgraded ? ", in an older form" : "");
}

static void why_hear_pass(void *user, const pith_build_piece *piece) {
    const size_t size = strlen(piece->name) + 1;
    if (!strcmp(piece->list, "passes")) list_add(user, memcpy(grow(NULL, size), piece->name, size));
}

/* ---- recording ---- */

static int why_open(pith_model **model, const why *w, const pith_open_options *open) {
    pith_error err = PITH_ERROR_INIT;
    return pith_model_open(model, w->path, open, &err) ? fail_model(w->c, &err, w->path)
                                                       : EXIT_DONE;
}

static int why_record(why *w, const char *when, pith_model **model) {
    pith_error err = PITH_ERROR_INIT;
    unsigned done = 0;
    int code = EXIT_DONE;
    w->when = when;
    if (pith_pieces_record(&err)) return fail(w->c, "%s", err.message);
    if (!*model)
        code = why_open(model, w, &w->open);
    else if (select_use(*model, w->uses, &done, &err))
        code = fail(w->c, "%s: %s", w->path, err.message);
    if (pith_pieces_read(why_hear_piece, w, &err)) return fail(w->c, "%s", err.message);
    return code;
}

/* ---- nodes ---- */

/* The nodes of the operator in the graph, each with a line of "%9 f32[…] = Gather(…)". Prints some
 * of them. */
static size_t why_count_nodes(const why *w, bool print) {
    const size_t n = strlen(w->shown);
    size_t count = 0;
    for (const char *at = w->text.data, *end = at + w->text.size, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *is = NULL;
        if (!stop) stop = end;
        next = stop < end ? stop + 1 : end;
        for (const char *c = at; !is && c + 3 < stop; c++)
            if (!memcmp(c, " = ", 3)) is = c + 3;
        if (!is || (size_t)(stop - is) <= n || memcmp(is, w->shown, n) || is[n] != '(') continue;
        const char *close = memchr(is, ')', (size_t)(stop - is));
        if (count++ < WHY_NODES && print)
            fprintf(w->out, "    %.*s\n", (int)((close ? close + 1 : stop) - at), at);
    }
    if (print && count > WHY_NODES) fprintf(w->out, "    and %zu more\n", count - WHY_NODES);
    return count;
}

static int why_describe(why *w, const pith_open_options *open, pith_description form) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    w->text.size = 0;
    int code = why_open(&model, w, open);
    if (code) return code;
    const pith_writer writer = bytes_writer(&w->text);
    if (pith_model_describe(model, form, NULL, &writer, &err))
        code = fail(w->c, "%s: %s", w->path, err.message);
    pith_model_close(model);
    return code;
}

/* How many nodes of the file have the operator. */
static json_int_t why_count_file(const why *w) {
    json_t *description = json_loadb(w->text.data, w->text.size, 0, NULL), *op;
    json_int_t count = 0;
    size_t i;
    json_array_foreach(json_object_get(description, "ops"), i, op) {
        char name[256];
        const char *domain = json_string_value(json_object_get(op, "domain"));
        const bool plain = !strcmp(domain, "ai.onnx");
        snprintf(name, sizeof name, "%s%s%s", plain ? "" : domain, plain ? "" : ".",
                 json_string_value(json_object_get(op, "op")));
        if (!strcmp(name, w->shown)) count += json_integer_value(json_object_get(op, "count"));
    }
    json_decref(description);
    return count;
}

/* The first form of the graph that has the operator. Prints it. */
static int why_find_maker(why *w) {
    pith_open_options open = w->open;
    open.flags |= PITH_OPEN_DESCRIBE;
    int code = why_describe(w, &open, PITH_DESCRIBE_JSON);
    const json_int_t in_file = code ? 0 : why_count_file(w);
    if (in_file) fprintf(w->out, "  in the model: %lld nodes\n", (long long)in_file);
    open.optimization = PITH_OPTIMIZATION_NONE;
    if (!code) code = why_describe(w, &open, PITH_DESCRIBE_NODES);
    if (code || in_file) return code;
    if (why_count_nodes(w, false))
        return fputs("  made when the model is read, from other or older forms\n", w->out), 0;
    if (w->open.optimization != PITH_OPTIMIZATION_NONE)
        for (size_t i = 0; i < w->passes.count && !code; i++) {
            open = w->open;
            open.stop_after = w->passes.items[i];
            code = why_describe(w, &open, PITH_DESCRIBE_NODES);
            if (!code && why_count_nodes(w, false))
                return fprintf(w->out, "  made by the pass %s\n", w->passes.items[i]), EXIT_DONE;
        }
    if (!code) fputs("  made after the first round of passes, or for packed texts\n", w->out);
    return code;
}

int select_why(FILE *out, const char *name, const char *path, const pith_open_options *open,
               unsigned uses, const command *c) {
    why w = { .out = out, .name = name, .path = path, .open = *open, .uses = uses, .c = c };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    const char *colons = strstr(name, "::");
    snprintf(w.shown, sizeof w.shown, "%.*s%s%s", colons ? (int)(colons - name) : 0, name,
             colons ? "." : "", colons ? colons + 2 : name);
    fprintf(out, "%s:\n", path);
    int code =
        pith_pieces_list(why_hear_pass, &w.passes, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
    if (!code) code = why_record(&w, "to open it", &model);
    if (!code) code = why_record(&w, "to use it", &model);
    pith_model_close(model);
    if (!code && !w.found) fputs("  not needed\n", out);
    if (!code && w.is_operator) code = why_find_maker(&w);
    if (!code && w.is_operator) code = why_describe(&w, &w.open, PITH_DESCRIBE_NODES);
    if (!code && w.is_operator) {
        const size_t nodes = why_count_nodes(&w, false);
        fprintf(out, "  run: %zu nodes%s\n", nodes, nodes ? "" : "; others took their place");
        why_count_nodes(&w, true);
    }
    for (size_t i = 0; i < w.passes.count; i++) free((char *)w.passes.items[i]);
    free(w.text.data);
    free(w.passes.items);
    return code;
}
