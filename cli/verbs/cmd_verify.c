/* cmd_verify.c - pith verify: runs ONNX test folders, and checks the bytes of compiled models.
 *
 * A folder with model.onnx holds test_data_set_N folders with input_I.pb and output_I.pb, where I
 * is the index of the model's input or output. Folders are independent and run in parallel, each on
 * one thread. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/arrays/tensor_file.h"
#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/parallel.h"
#include "cli/base/text_input.h"
#include "cli/compare/compare_tensors.h"
#include "cli/compare/reopen_compiled.h"
#include "cli/compare/verify_fusions.h"
#include "cli/options/field_flags.h"
#include "cli/options/runtime_choice.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

typedef enum outcome { PASSED, FAILED, SKIPPED } outcome;

/* A line of the skip list. */
typedef struct skip {
    const char *name, *reason;
    bool may_pass; /* by chance */
} skip;

typedef struct test {
    char *folder;
    const char *name; /* the folder's last part */
    const skip *skip; /* or NULL */
    outcome outcome;
    double worst;
    char message[1400];
} test;

typedef struct job {
    test *tests;
    size_t count;
    double rtol, atol; /* negative: not given */
    int32_t level, loop_limit;
    bool compiled; /* each model is compiled, and what came out is run */
    bool strict;
    runtime_choice runtime;
    pith_open_options open; /* how the runtime is chosen */
} job;

/* nftw has no context. */
static job *collecting;

static int collect(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    if (type == FTW_DNR) return errno = EACCES, -1;
    if (type != FTW_F || strcmp(path + where->base, "model.onnx")) return 0;
    job *j = collecting;
    j->tests = grow_for(j->tests, j->count, sizeof *j->tests);
    test *t = &j->tests[j->count++];
    memset(t, 0, sizeof *t);
    t->folder = strndup(path, where->base ? (size_t)where->base - 1 : 0);
    char *slash = strrchr(t->folder, '/');
    t->name = slash ? slash + 1 : t->folder;
    return 0;
}

static int compare_folders(const void *a, const void *b) {
    return strcmp(((const test *)a)->folder, ((const test *)b)->folder);
}

/* ---- one test ---- */

/* The folder's tolerance; false: its data.json is there but cannot be read, why tells. */
static bool find_tolerance(tolerance *close, const job *j, const char *folder, char *why,
                           size_t size) {
    char path[4096];
    json_error_t fault;
    tolerance t = { 1e-3, 1e-7, 0x1p-6 }; /* those of the runner of ONNX's own tests: two ulps of
                                             bf16 */
    snprintf(path, sizeof path, "%s/data.json", folder);
    json_t *data = json_load_file(path, 0, &fault);
    if (!data && !access(path, F_OK)) {
        snprintf(why, size, "data.json:%d: %s", fault.line, fault.text);
        return false;
    }
    json_t *rtol = json_object_get(data, "rtol"), *atol = json_object_get(data, "atol");
    if (json_is_number(rtol)) t.rtol = json_number_value(rtol);
    if (json_is_number(atol)) t.atol = json_number_value(atol);
    json_decref(data);
    if (j->rtol >= 0) t.rtol = j->rtol, t.rtol_bf16 = 0;
    if (j->atol >= 0) t.atol = j->atol;
    *close = t;
    return true;
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

typedef struct loaded {
    tensor_file *files;
    pith_tensor *tensors;
    const char **names;
    size_t count;
} loaded;

static bool load_inputs(loaded *in, const pith_model *model, const char *set, char *message,
                        size_t size) {
    char path[4200];
    for (size_t i = 0; i < pith_model_input_count(model); i++) {
        const pith_port *port = pith_model_input(model, i);
        snprintf(path, sizeof path, "%s/input_%zu.pb", set, i);
        if (!exists(path)) continue; /* the session says if it is wanted */
        if (!tensor_file_open(&in->files[in->count], path, tensor_file_kind_of(port), message,
                              size))
            return false;
        in->tensors[in->count] = in->files[in->count].tensor;
        in->names[in->count++] = port->name;
    }
    return true;
}

static bool check_outputs(test *t, const pith_model *model, const pith_tensor *outputs,
                          const char *set, tolerance close) {
    char path[4200], why[1000];
    size_t compared = 0;
    for (size_t i = 0; i < pith_model_output_count(model); i++) {
        const pith_port *port = pith_model_output(model, i);
        tensor_file wanted;
        snprintf(path, sizeof path, "%s/output_%zu.pb", set, i);
        if (!exists(path)) continue;
        if (!tensor_file_open(&wanted, path, tensor_file_kind_of(port), t->message,
                              sizeof t->message))
            return false;
        bool good = tensors_agree(&outputs[i], &wanted.tensor, close, &t->worst, why, sizeof why);
        tensor_file_close(&wanted);
        compared++;
        if (good) continue;
        pith__text_print(t->message, sizeof t->message, "%s: output %zu '" PITH_CUT_FMT "': %s",
                         strrchr(set, '/') + 1, i, PITH_CUT(pith__str_of(port->name), 100), why);
        return false;
    }
    if (!compared)
        pith__text_print(t->message, sizeof t->message, "%s has no outputs", strrchr(set, '/') + 1);
    return compared > 0;
}

static bool run_set(test *t, const pith_model *model, pith_session *session, const char *set,
                    tolerance close) {
    size_t inputs = pith_model_input_count(model);
    loaded in = { grow(NULL, inputs * sizeof *in.files), grow(NULL, inputs * sizeof *in.tensors),
                  grow(NULL, inputs * sizeof *in.names), 0 };
    pith_tensor *outputs = grow(NULL, pith_model_output_count(model) * sizeof *outputs);
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    options.call.threads = 1;
    bool good = load_inputs(&in, model, set, t->message, sizeof t->message);
    if (good &&
        pith_session_run(session, outputs, in.names, in.tensors, in.count, &options, &err)) {
        pith__text_print(t->message, sizeof t->message, "%s: %s", strrchr(set, '/') + 1,
                         err.message);
        name_flags(&command_verify, t->message);
        good = false;
    }
    good = good && check_outputs(t, model, outputs, set, close);
    for (size_t i = 0; i < in.count; i++) tensor_file_close(&in.files[i]);
    free(in.files);
    free(in.tensors);
    free(in.names);
    free(outputs);
    return good;
}

static int filter_sets(const struct dirent *entry) {
    return !strncmp(entry->d_name, "test_data_set_", 14);
}

/* Runs the folder's sets of test data on the open model; true if all agree. */
static bool run_sets(test *t, const job *j, const pith_model *model, pith_session *session,
                     struct dirent **sets, int count) {
    char path[4096];
    tolerance close;
    bool good = find_tolerance(&close, j, t->folder, t->message, sizeof t->message);
    for (int i = 0; good && i < count; i++) {
        snprintf(path, sizeof path, "%s/%.60s", t->folder, sets[i]->d_name);
        good = run_set(t, model, session, path, close);
    }
    return good;
}

/* Opens the model of a test and runs its sets; true if all agree. */
static bool run_folder(test *t, const job *j, struct dirent **sets, int count) {
    char path[4096];
    pith_open_options options = j->open;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    void *file = NULL;
    bool good = false;
    options.optimization = j->level;
    options.loop_limit = j->loop_limit;
    options.flags = j->strict ? PITH_OPEN_STRICT_SHAPES : 0;
    snprintf(path, sizeof path, "%s/model.onnx", t->folder);
    if (pith_model_open(&model, path, &options, &err) ||
        (j->compiled && reopen_compiled(&model, &file, &options, &err)) ||
        pith_session_create(&session, model, &err)) {
        pith__text_print(t->message, sizeof t->message, "%s", err.message);
        name_flags(&command_verify, t->message);
    } else {
        good = run_sets(t, j, model, session, sets, count);
    }
    pith_session_destroy(session);
    pith_model_close(model);
    free(file);
    return good;
}

/* A test of the skip list is skipped, unless it passes: then the list is wrong. */
static void apply_skip(test *t) {
    bool stale = t->outcome == PASSED && !t->skip->may_pass;
    if (stale)
        pith__text_print(t->message, sizeof t->message, "passes, but is in the skip list: %s",
                         t->skip->reason);
    else
        pith__text_print(t->message, sizeof t->message, "%s", t->skip->reason);
    t->outcome = stale ? FAILED : SKIPPED;
}

static void run_test(void *context, size_t part) {
    job *j = context;
    test *t = &j->tests[part];
    struct dirent **sets = NULL;
    int count = scandir(t->folder, &sets, filter_sets, alphasort);
    if (count <= 0) {
        t->outcome = SKIPPED;
        pith__text_print(t->message, sizeof t->message, "no test_data_set_N");
    } else {
        t->outcome = run_folder(t, j, sets, count) ? PASSED : FAILED;
        if (t->skip) apply_skip(t);
    }
    for (int i = 0; i < count; i++) free(sets[i]);
    free(sets);
}

/* ---- the list of skips ---- */

typedef struct skip_list {
    bytes text;
    skip *items;
    size_t count;
} skip_list;

static int read_skips(skip_list *list, const char *path) {
    text_input in;
    string_list paths = { &path, 1 };
    int state;
    if (!path) return EXIT_DONE;
    size_t *ends = NULL;
    text_input_open(&in, &paths);
    while ((state = text_input_next(&in, &list->text, NULL)) > 0) {
        bytes_add(&list->text, "", 1);
        ends = grow_for(ends, list->count, sizeof *ends);
        ends[list->count++] = list->text.size;
    }
    list->items = grow(NULL, list->count * sizeof *list->items);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        char *line = list->text.data + (i ? ends[i - 1] : 0);
        line += strspn(line, " \t");
        size_t n = strcspn(line, " \t");
        if (!n || line[0] == '#') continue;
        char *reason = line + n + strspn(line + n, " \t");
        line[n] = 0;
        bool may_pass = line[0] == '~';
        list->items[kept++] =
            (skip){ line + may_pass, *reason ? reason : "no reason given", may_pass };
    }
    list->count = kept;
    free(ends);
    int code = state < 0 ? fail(&command_verify, "%s", in.message) : EXIT_DONE;
    text_input_close(&in);
    return code;
}

static void mark_skips(job *j, const skip_list *list) {
    for (size_t i = 0; i < j->count; i++)
        for (size_t k = 0; k < list->count; k++)
            if (!strcmp(list->items[k].name, j->tests[i].name)) j->tests[i].skip = &list->items[k];
}

/* ---- telling ---- */

static const char *const outcome_names[] = { "passed", "failed", "skipped" };

static void verify_print_json(const job *j, const size_t *totals) {
    json_t *results = json_array();
    for (size_t i = 0; i < j->count; i++) {
        const test *t = &j->tests[i];
        json_t *row = json_pack("{s:o, s:o, s:s, s:o}", "name", json_text(t->name), "path",
                                json_text(t->folder), "status", outcome_names[t->outcome],
                                "message", json_text(t->message));
        if (row && t->worst < 1e308)
            json_object_set_new(row, "max_difference", json_real(t->worst));
        json_array_append_new(results, row ? row : json_null());
    }
    json_t *all = json_pack("{s:I, s:I, s:I, s:o}", "passed", (json_int_t)totals[PASSED], "failed",
                            (json_int_t)totals[FAILED], "skipped", (json_int_t)totals[SKIPPED],
                            "results", results);
    json_print(all);
}

static void verify_print_text(const job *j, const size_t *totals, bool verbose) {
    for (size_t i = 0; i < j->count; i++) {
        const test *t = &j->tests[i];
        if (t->outcome == FAILED)
            printf("FAILED %s: %s\n", shown(t->name), shown(t->message));
        else if (verbose && t->outcome == SKIPPED)
            printf("skipped %s: %s\n", shown(t->name), shown(t->message));
        else if (verbose)
            printf("passed %s (max difference %.3g)\n", shown(t->name), t->worst);
    }
    printf("%zu passed, %zu failed, %zu skipped\n", totals[PASSED], totals[FAILED],
           totals[SKIPPED]);
}

static bool is_file(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Compiled models, each as a test whose name is its path. */
static void verify_files(job *j, const string_list *paths) {
    j->tests = grow(NULL, paths->count * sizeof *j->tests);
    memset(j->tests, 0, paths->count * sizeof *j->tests);
    for (j->count = 0; j->count < paths->count; j->count++) {
        test *t = &j->tests[j->count];
        pith_error err = PITH_ERROR_INIT;
        t->folder = strdup(paths->items[j->count]);
        t->name = t->folder;
        pith_source_options from = PITH_SOURCE_OPTIONS_INIT;
        pith_source *source = NULL;
        from.flags = PITH_SOURCE_FILE;
        pith_status status = pith_source_open(&source, t->folder, &from, &err);
        if (!status) status = pith_source_verify(source, NULL, &err);
        pith_source_close(source);
        if (!status) continue;
        t->outcome = FAILED;
        const char *end = strrchr(t->folder, '.');
        bool onnx = end && !strcmp(end, ".onnx");
        pith__text_print(
            t->message, sizeof t->message, "%s%s", err.message,
            onnx ? "; of an ONNX model give the folder that holds it and its test_data_set_0" : "");
    }
}

static int print_files(const job *j, const size_t *totals, bool as_json) {
    if (as_json) verify_print_json(j, totals);
    if (!as_json) {
        for (size_t i = 0; i < j->count; i++)
            if (j->tests[i].outcome == PASSED)
                printf("%s: as it was written\n", shown(j->tests[i].folder));
            else
                fail(&command_verify, "%s", j->tests[i].message);
    }
    return output_close_standard(&command_verify, totals[FAILED] ? EXIT_FAILED : EXIT_DONE);
}

static int collect_tests(job *j, const string_list *dirs, skip_list *skips, const char *skip_path) {
    const command *c = &command_verify;
    int code = read_skips(skips, skip_path);
    collecting = j;
    for (size_t i = 0; !code && i < dirs->count; i++)
        if (nftw(dirs->items[i], collect, 16, 0))
            code = fail(c, "%s: %s", dirs->items[i], strerror(errno));
    if (!code && !j->count)
        code = fail(c, "there is no model.onnx in %s or in a folder below it", dirs->items[0]);
    return code;
}

typedef struct verify_settings {
    job job;
    const char *skip_path;
    bool list, json, verbose, fusions;
    fusion_check checked;
    int32_t threads;
} verify_settings;

static int verify_check(const command *c, const verify_settings *s, const string_list *dirs) {
    if (s->fusions && !dirs->count) return usage(c, "--fusions needs a model");
    if (s->fusions) return EXIT_DONE;
    if (s->checked.runs || s->checked.seed) return usage(c, "--runs and --seed go with --fusions");
    if (!dirs->count)
        return usage(c,
                     "give it a folder with a model.onnx and its test_data_set_0, or a .pith file");
    if (s->list && s->json) return usage(c, "--list and --json do not go together");
    return EXIT_DONE;
}

static void count_outcomes(size_t *totals, const job *j) {
    for (size_t i = 0; i < j->count; i++) totals[j->tests[i].outcome]++;
}

static int run_tests(const command *c, verify_settings *s) {
    job *j = &s->job;
    size_t totals[3] = { 0, 0, 0 };
    if (!s->list) parallel_run(run_test, j, j->count, s->threads);
    count_outcomes(totals, j);
    if (s->list)
        for (size_t i = 0; i < j->count; i++) puts(j->tests[i].name);
    if (!s->list && s->json)
        verify_print_json(j, totals);
    else if (!s->list)
        verify_print_text(j, totals, s->verbose);
    return output_close_standard(c, !s->list && totals[FAILED] ? EXIT_FAILED : EXIT_DONE);
}

static int verify_folders(const command *c, verify_settings *s, const string_list *dirs) {
    job *j = &s->job;
    skip_list skips = { { NULL, 0, 0 }, NULL, 0 };
    int code = collect_tests(j, dirs, &skips, s->skip_path);
    if (!code) {
        qsort(j->tests, j->count, sizeof *j->tests, compare_folders);
        mark_skips(j, &skips);
        code = run_tests(c, s);
    }
    free(skips.text.data);
    free(skips.items);
    return code;
}

static int verify_run(int argc, char **argv) {
    const command *c = &command_verify;
    string_list dirs = { NULL, 0 };
    verify_settings s = { .job = { .rtol = -1, .atol = -1, .open = PITH_OPEN_OPTIONS_INIT } };
    job *j = &s.job;
    int code = take_options(c, &s, argc, argv, &dirs);
    if (code >= 0) return code;
    code = verify_check(c, &s, &dirs);
    if (!code) code = runtime_choice_check(c, &j->runtime);
    if (code) return code;
    j->runtime.strict = true; /* a test says what passed */
    runtime_choice_apply(&j->open, &j->runtime, 1);
    s.checked.level = j->level;
    s.checked.loop_limit = j->loop_limit;
    s.checked.as_json = s.json;
    if (s.fusions) return verify_fusions(c, &dirs, &s.checked);
    if (is_file(dirs.items[0])) {
        size_t totals[3] = { 0, 0, 0 };
        verify_files(j, &dirs);
        count_outcomes(totals, j);
        code = print_files(j, totals, s.json);
    } else {
        code = verify_folders(c, &s, &dirs);
    }
    for (size_t i = 0; i < j->count; i++) free(j->tests[i].folder);
    free(j->tests);
    runtime_choice_free(&j->runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, verify_settings, member)

static const option options[] = {
    AT(rtol, job.rtol),
    AT(atol, job.atol),
    AT(optimization, job.level),
    AT(compiled, job.compiled),
    AT(strict_shapes, job.strict),
    AT(loop_limit, job.loop_limit),
    AT(skip_list, skip_path),
    AT(list, list),
    AT(json_verify, json),
    AT(verbose, verbose),
    AT(threads, threads),
    OPTIONS_RUNTIME(verify_settings, job.runtime),
    OPTION_SOURCES,
    OPTION_SECTION("fusions"),
    AT(fusions, fusions),
    AT(runs_verify, checked.runs),
    AT(seed, checked.seed),
    OPTION_END,
};

static const example examples[] = {
    { "pith verify tests/data/models", NULL },
    { "pith verify onnx/backend/test/data/node --skip-list skip.txt", NULL },
    { "pith verify --level 0 --json model-folder", NULL },
    { "pith verify minilm.pith", "checks all bytes of the file" },
    { "pith verify --fusions model.onnx", "does the optimised model give the same results?" },
    { NULL, NULL },
};

const command command_verify = {
    .name = "verify",
    .summary = "compare ONNX test folders with their outputs; check compiled files and fusions",
    .forms = "[options] DIR...\nFILE.pith...\n--fusions MODEL...",
    .takes = "FILE",
    .description = "Runs every model.onnx found below the folders on its test_data_set_N and "
                   "compares the outputs. The "
                   "tolerance is the official one (rtol 1e-3, for bf16 2^-6, atol 1e-7), that of a "
                   "data.json in the folder, "
                   "or the one given here. --fusions needs no test data.",
    .notes = "The last line is 'N passed, N failed, N skipped'.",
    .examples = examples,
    .options = options,
    .run = verify_run,
};
