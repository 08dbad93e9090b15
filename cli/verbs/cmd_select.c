/* cmd_select.c - pith select: the pieces of Pith that models need, as a list that a smaller build
 * is made from.
 *
 * The models are opened and used as their users would use them, while the library notes which
 * pieces it takes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/output/output.h"
#include "cli/select/ort_config.h"
#include "cli/select/piece_file.h"
#include "cli/select/cost/select_cost.h"
#include "cli/select/select_uses.h"
#include "cli/select/select_why.h"

/* What came of the uses that were asked for. */
typedef struct select_trial {
    unsigned done;
    char fault[4096 + PITH_ERROR_MESSAGE_SIZE]; /* of the first that a model could not be put to;
                                                   "": none */
} select_trial;

typedef struct select_settings {
    const char *output, *isas, *ort_operators, *why;
    const char *cost; /* the archive; "": the one beside the command; NULL: nothing is weighed */
    json_t *ort;      /* what ort_operators gets; NULL: nothing is asked for */
    pith_open_options open;
    string_list uses;
    bool merge, quiet, unfused, all;
    select_trial *trial;
} select_settings;

/* ---- the list ---- */

static void select_take_piece(void *user, const pith_build_piece *piece) {
    piece_kind kind = piece_kind_find(piece->list, strlen(piece->list));
    size_t size = strcspn(piece->name, " ");
    uint32_t facts = piece->upgraded ? PIECE_UPGRADED : 0;
    /* The dtype of a kernel stands behind its name. */
    for (const char *at = piece->name[size] ? piece->name + size + 1 : piece->dtypes; *at;) {
        size_t n = strcspn(at, " ");
        int dtype = piece_dtype_find(at, n);
        if (dtype >= 0) facts |= 1u << dtype;
        at += n + (at[n] != 0);
    }
    if (kind == PIECE_KINDS || !piece_list_add(user, kind, piece->name, size, facts)) {
        fputs("pith select: out of memory\n", stderr);
        exit(EXIT_FAILED);
    }
}

/* Opens the model with these options, and uses it. Of several models each may do a part of what is
 * asked for. */
static int select_model_once(const char *path, const pith_open_options *open, unsigned uses,
                             select_trial *trial) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    unsigned done = 0;
    pith_status status = pith_model_open(&model, path, open, &err);
    if (status) return fail_model(&command_select, &err, path);
    status = select_use(model, uses, &done, &err);
    pith_model_close(model);
    trial->done |= done;
    if (status && !done) return fail(&command_select, "%s: %s", path, err.message);
    if (status && !trial->fault[0])
        snprintf(trial->fault, sizeof trial->fault, "%s: %s", path, err.message);
    return EXIT_DONE;
}

/* Adds what one model needs. */
static int select_model(piece_list *list, const char *path, const select_settings *s,
                        unsigned uses) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_pieces_record(&err)) return fail(&command_select, "%s", err.message);
    int code = select_model_once(path, &s->open, uses, s->trial);
    if (s->unfused)
        for (int level = 0; !code && level < s->open.optimization; level++) {
            pith_open_options open = s->open;
            open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            code = select_model_once(path, &open, uses, s->trial);
        }
    if (pith_pieces_read(select_take_piece, list, &err))
        return fail(&command_select, "%s", err.message);
    if (!code && s->ort) code = ort_config_add_model(s->ort, path, &s->open, &command_select);
    return code;
}

static bool select_ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* Whether the entries of a directory make it a model; else its directories may be models. */
static bool select_is_model(struct dirent **entries, int count) {
    static const char *const ends[] = { ".onnx", ".safetensors", ".pith", ".bin" };
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (!strcmp(name, "modules.json") || !strcmp(name, "config.json") || !strcmp(name, "onnx"))
            return true;
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            if (select_ends_in(name, ends[k])) return true;
    }
    return false;
}

static int select_path(piece_list *list, const char *path, const select_settings *s, unsigned uses,
                       size_t *models);

static int select_directories(piece_list *list, const char *path, struct dirent **entries,
                              int count, const select_settings *s, unsigned uses, size_t *models) {
    int code = EXIT_DONE;
    for (int i = 0; i < count && !code; i++) {
        char inner[4096];
        struct stat st;
        int n = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof inner) continue;
        if (!stat(inner, &st) && S_ISDIR(st.st_mode))
            code = select_path(list, inner, s, uses, models);
    }
    return code;
}

/* A model, or a directory of models. */
static int select_path(piece_list *list, const char *path, const select_settings *s, unsigned uses,
                       size_t *models) {
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort), code;
    if (count < 0 || select_is_model(entries, count)) {
        if (!s->quiet) note("%s", path);
        code = select_model(list, path, s, uses);
        ++*models;
    } else {
        code = select_directories(list, path, entries, count, s, uses, models);
    }
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    return code;
}

/* Unites with what was read before. */
static int select_unite(piece_list *list, piece_list *next, bool first) {
    bool good = true;
    if (first)
        *list = *next;
    else
        good = piece_list_unite(list, next);
    if (!first) piece_list_free(next);
    return good ? EXIT_DONE : fail(&command_select, "out of memory");
}

/* *unread: what the command ends with, if a configuration has lines that were passed over. */
static int select_models(piece_list *list, const string_list *paths, const select_settings *s,
                         unsigned uses, int *unread) {
    for (size_t i = 0; i < paths->count; i++) {
        piece_list next = { 0 };
        size_t models = 0;
        if (ort_config_is(paths->items[i])) {
            const int code = ort_config_read(&next, paths->items[i], &command_select, unread);
            if (code) return piece_list_free(&next), code;
        } else {
            int code = select_path(&next, paths->items[i], s, uses, &models);
            if (!code && !models)
                code = fail(&command_select, "%s: no model in it", paths->items[i]);
            for (int k = 0; k < PIECE_KINDS; k++)
                if (k != PIECE_ISAS) next.kinds[k].listed = true;
            if (code) return piece_list_free(&next), code;
        }
        if (select_unite(list, &next, !i)) return EXIT_FAILED;
    }
    const unsigned missing = uses & ~s->trial->done;
    if (missing && s->trial->fault[0])
        return fail(&command_select, "no model can be used for '%s': %s", select_use_name(missing),
                    s->trial->fault);
    if (s->trial->fault[0]) fprintf(stderr, "pith select: warning: %s\n", s->trial->fault);
    return EXIT_DONE;
}

static int select_merge(piece_list *list, const string_list *paths, int *unread) {
    for (size_t i = 0; i < paths->count; i++) {
        piece_list next = { 0 };
        char message[1024];
        if (ort_config_is(paths->items[i])) {
            const int code = ort_config_read(&next, paths->items[i], &command_select, unread);
            if (code) return piece_list_free(&next), code;
        } else if (!piece_file_read(&next, paths->items[i], message, sizeof message)) {
            piece_list_free(&next);
            return fail(&command_select, "%s", message);
        }
        if (select_unite(list, &next, !i)) return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- the command ---- */

/* Each --use may name several, with commas between them. */
static int select_read_uses(unsigned *uses, const select_settings *s) {
    for (size_t i = 0; i < s->uses.count; i++)
        for (const char *at = s->uses.items[i];; at++) {
            char name[32];
            const size_t size = strcspn(at, ",");
            snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name), at);
            const unsigned use = select_use_of(name);
            if (!use)
                return usage(&command_select, "--use '%s' is unknown; it is %s", name,
                             select_use_names);
            *uses |= use;
            at += size;
            if (!*at) break;
        }
    return EXIT_DONE;
}

static int select_read_isas(piece_list *list, const char *isas) {
    static const char *const known[] = { "scalar", "avx2", "avx512", "neon" };
    while (isas && *isas) {
        size_t size = strcspn(isas, ",");
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found |= strlen(known[k]) == size && !memcmp(known[k], isas, size);
        if (!found)
            return usage(&command_select,
                         "--isas '%.*s' is unknown; it is scalar, avx2, avx512 or neon", (int)size,
                         isas);
        if (!piece_list_add(list, PIECE_ISAS, isas, size, 0))
            return fail(&command_select, "out of memory");
        isas += size + (isas[size] != 0);
    }
    return EXIT_DONE;
}

static int select_write_list(const piece_list *list, const select_settings *s,
                             const string_list *read) {
    const command *c = &command_select;
    output out;
    int code = output_open(&out, c, s->output, read);
    if (code) return code;
    piece_file_write(
        out.file, list,
        "# Pieces of Pith for a selective build; docs/selective-build.md explains them.\n");
    return output_close(&out, c, true, EXIT_DONE);
}

static int select_write_ort(const select_settings *s, const string_list *read) {
    output out;
    int code = s->ort ? output_open(&out, &command_select, s->ort_operators, read) : EXIT_DONE;
    if (code || !s->ort) return code;
    ort_config_write(out.file, s->ort);
    return output_close(&out, &command_select, true, EXIT_DONE);
}

/* What the options say together. Returns -1 to go on, else the exit code. */
static int select_take(select_settings *s, unsigned *uses, const string_list *rest) {
    const command *c = &command_select;
    if (s->all && (rest->count || s->merge || s->uses.count || s->ort_operators || s->cost ||
                   s->why || s->unfused))
        return usage(c,
                     "--all lists this build and opens no model: it goes with -o and --isas alone");
    if (!rest->count && !s->cost && !s->all)
        return usage(c, s->merge ? "--merge needs the lists to unite"
                                 : "name a model, or a directory of models");
    if (s->merge &&
        ((s->isas && !s->cost) || (s->uses.count && !s->cost) || s->ort_operators || s->why))
        return usage(c,
                     "--merge unites lists and opens no model: it goes with -o and --cost alone");
    if (s->ort_operators && (s->cost || s->why))
        return usage(c, "--ort-operators goes with neither --cost nor --why, which write no lists");
    if (s->ort_operators && (!strcmp(s->ort_operators, "-") || !ort_config_is(s->ort_operators)))
        return usage(c, "--ort-operators is the name of a file that ends in .config");
    if (s->ort_operators) s->ort = json_object();
    s->open.call.log = &warnings;
    const int code = select_read_uses(uses, s);
    return code ? code : -1;
}

/* The bytes of the list, or of everything where nothing is named. */
static int select_weigh(const piece_list *list, const select_settings *s, const string_list *rest,
                        unsigned uses) {
    output out;
    int code = output_open(&out, &command_select, s->output, rest);
    if (!code)
        code = select_cost(out.file, list, s->cost, uses, &command_select);
    else
        return code;
    return output_close(&out, &command_select, !code, code);
}

static int select_explain(const select_settings *s, const string_list *rest, unsigned uses) {
    output out;
    int code = output_open(&out, &command_select, s->output, rest);
    if (code) return code;
    for (size_t i = 0; i < rest->count && !code; i++)
        code = select_why(out.file, s->why, rest->items[i], &s->open, uses, &command_select);
    if (!code && s->cost) code = select_cost_path(out.file, s->why, s->cost, uses, &command_select);
    return output_close(&out, &command_select, !code, code);
}

static int select_all(piece_list *list) {
    pith_error err = PITH_ERROR_INIT;
    return pith_pieces_list(select_take_piece, list, &err)
               ? fail(&command_select, "%s", err.message)
               : EXIT_DONE;
}

/* Reads the lists and models, and writes what is asked for. */
static int select_do(const select_settings *s, const string_list *rest, unsigned uses) {
    piece_list list = { 0 };
    int unread = EXIT_DONE;
    int code;
    if (s->all)
        code = select_all(&list);
    else if (s->merge)
        code = select_merge(&list, rest, &unread);
    else
        code = select_models(&list, rest, s, uses, &unread);
    if (!code) code = select_read_isas(&list, s->isas);
    if (!code && s->cost) code = select_weigh(&list, s, rest, uses);
    if (!code) code = select_write_ort(s, rest);
    if (!code && !s->cost) code = select_write_list(&list, s, rest);
    piece_list_free(&list);
    return code ? code : unread;
}

static int select_run(int argc, char **argv) {
    const command *c = &command_select;
    select_trial trial = { .done = 0 };
    select_settings s = { .open = PITH_OPEN_OPTIONS_INIT, .trial = &trial };
    string_list rest = { NULL, 0 };
    unsigned uses = 0;
    char archive[4096];
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    code = select_take(&s, &uses, &rest);
    if (code < 0 && s.cost && !*s.cost) {
        if (!select_cost_find(archive, sizeof archive, c)) code = EXIT_FAILED;
        s.cost = archive;
    }
    if (code < 0) code = s.why ? select_explain(&s, &rest, uses) : select_do(&s, &rest, uses);
    json_decref(s.ort);
    free(s.uses.items);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, select_settings, member)

static const option options[] = {
    AT(output, output),
    AT(use, uses),
    AT(isas, isas),
    AT(merge, merge),
    AT(unfused, unfused),
    AT(all_pieces, all),
    AT(ort_operators, ort_operators),
    AT(cost, cost),
    AT(why, why),
    AT(optimization, open.optimization),
    AT(precision, open.precision),
    AT(model_file, open.model_file),
    AT(route, open.route),
    AT(inter_op_threads, open.inter_op_threads),
    AT(quiet_select, quiet),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith select all-MiniLM-L6-v2 -o ops.yaml", "what one model needs" },
    { "pith select models/ face.onnx -o ops.yaml",
      "several models, and all models of a directory" },
    { "pith select all-MiniLM-L6-v2 --use embed,search -o ops.yaml",
      "for a program that embeds and searches" },
    { "pith select --merge a.yaml b.yaml -o ops.yaml", "the union of two lists" },
    { "pith select required_operators.config -o ops.yaml",
      "the operators of an ONNX Runtime build" },
    { "pith select model.onnx -o ops.yaml --ort-operators required_operators.config",
      "and a list for one" },
    { "pith select all-MiniLM-L6-v2 --cost --use embed",
      "the bytes of each piece in a program that embeds texts" },
    { "pith select model.onnx --why com.microsoft::BiasGelu",
      "which nodes and which pass need an operator" },
    { "cmake -B small -DPITH_SELECT_OPS_YAML=ops.yaml -DPITH_DTYPE_SELECTIVE=ON",
      "the build of a list" },
    { NULL, NULL },
};

const command command_select = {
    .name = "select",
    .summary = "list the operators and other pieces that models need, for a small build",
    .forms = "[options] MODEL...\n--merge [-o FILE] LIST...\n--all [-o FILE]\n--cost[=LIBRARY] "
             "[MODEL...]\n--why PIECE "
             "[--cost[=LIBRARY]] [MODEL...]",
    .takes = "MODEL",
    .description =
        "Opens the models, uses them, and writes which operators, kernels, passes, tokenizer steps "
        "and other "
        "pieces of Pith that took, as the optimiser left them. A build made from the list holds "
        "these and no others. "
        "The list is the same on every processor. It may be edited, and written by hand.\n"
        "A MODEL that ends in .config is ONNX Runtime's required_operators.config, with or without "
        "types.",
    .examples = examples,
    .options = options,
    .run = select_run,
};
