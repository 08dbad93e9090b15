/* suite.c - models on the CPU and on the far backend: outputs equal bit for bit, or within the
 * tolerance of the devices.
 *
 * far_suite [--level N] [--seeds N] [--every N] [--devices LIST] FOLDER…: each model.onnx below the
 * folders is run on its test data sets, twice, with every node on the far backend that can be there
 * (seed 0) and with drawn choices. */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "far.h"
#include "formats/onnx/model_read.h"
#include "models/model.h"
#include "pith/pith.h"

enum { MOST_INPUTS = 256 };

static struct folders {
    char **items;
    size_t count;
} found;

static int collect(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    if (type != FTW_F || strcmp(path + where->base, "model.onnx")) return 0;
    found.items = realloc(found.items, (found.count + 1) * sizeof *found.items);
    found.items[found.count++] = strndup(path, (size_t)where->base - 1);
    return 0;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *devices; /* NULL: those of the build */

/* Both 0: the same bits. Of floats that are finite on both sides. */
static struct tolerance { double rtol, atol; } tolerance;

static bool near(const pith_tensor *a, const pith_tensor *b) {
    if (a->dtype != PITH_F32 || (!tolerance.rtol && !tolerance.atol)) return false;
    const float *x = a->data, *y = b->data;
    for (size_t i = 0; i < a->bytes / sizeof *x; i++)
        if (x[i] != y[i] && fabs((double)x[i] - (double)y[i]) >
                                tolerance.atol + tolerance.rtol * fabs((double)x[i]))
            return false;
    return true;
}

static bool same(const pith_tensor *a, const pith_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    if (a->dtype == PITH_NONE) return true;
    if (a->dtype == PITH_SEQUENCE) {
        const pith_tensor *x = a->data, *y = b->data;
        for (int64_t i = 0; i < a->dims[0]; i++)
            if (!same(&x[i], &y[i])) return false;
        return true;
    }
    if (a->dtype == PITH_STRING) {
        const pith_str *x = a->data, *y = b->data;
        for (int64_t i = 0; i < pith__tensor_count(a); i++)
            if (!pith__str_eq(x[i], y[i])) return false;
        return true;
    }
    return a->bytes == b->bytes && (!a->bytes || !memcmp(a->data, b->data, a->bytes) || near(a, b));
}

/* A model opened for one choice of nodes. */
typedef struct side {
    uint32_t seed;
    pith_model *model;
    pith_session *session;
    pith_tensor outputs[MOST_INPUTS];
    pith_status status;
    pith_error err;
} side;

/* The widest of the model's devices. */
static void take_tolerance(const pith_model *model) {
    const pith__plan *plan;
    if (pith__model_plan(&plan, model, NULL, NULL)) return;
    for (size_t i = 0; i < plan->devices->count; i++) {
        const pith__device *d = &plan->devices->items[i];
        const pith__accuracy a = pith__device_accuracy(d);
        if (a.rtol > tolerance.rtol) tolerance.rtol = a.rtol;
        if (a.atol > tolerance.atol) tolerance.atol = a.atol;
    }
}

/* A list falls back, which would hide an error. */
static bool side_stayed(const side *s, const char *folder) {
    pith_statistics n = PITH_STATISTICS_INIT;
    if (pith_model_statistics(&n, s->model, NULL) || !n.device_fallbacks) return true;
    printf("%s: work of a device went on elsewhere with seed %u\n", folder, s->seed);
    return false;
}

static bool side_open(side *s, uint32_t seed, const char *folder, int level) {
    char path[4200];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    options.devices = devices;
    *s = (side){ .seed = far.seed = seed, .err = PITH_ERROR_INIT };
    if (pith_model_open(&s->model, path, &options, &s->err)) return false;
    take_tolerance(s->model);
    return !pith_session_create(&s->session, s->model, &s->err) &&
           pith_model_output_count(s->model) <= MOST_INPUTS;
}

static void side_close(side *s) {
    pith_session_destroy(s->session);
    pith_model_close(s->model);
}

static void side_run(side *s, const char *const *names, const pith_tensor *inputs, size_t count) {
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    options.call.threads = 2;
    far.seed = s->seed;
    s->status = pith_session_run(s->session, s->outputs, names, inputs, count, &options, &s->err);
}

static bool sides_agree(const side *a, const side *b, const char *what) {
    if (a->status || b->status) {
        bool both = a->status == b->status && !strcmp(a->err.message, b->err.message);
        if (!both)
            printf("%s: '%s' on the CPU, '%s' with seed %u\n", what, a->err.message, b->err.message,
                   b->seed);
        return both;
    }
    for (size_t i = 0; i < pith_model_output_count(a->model); i++) {
        if (same(&a->outputs[i], &b->outputs[i])) continue;
        if (b->seed != FAR_NONE) printf("%s: output %zu differs with seed %u\n", what, i, b->seed);
        return false;
    }
    return true;
}

static size_t read_inputs(pith_tensor *inputs, const char **names, const pith_model *model,
                          const char *set, pith__files *files) {
    size_t count = 0;
    for (size_t i = 0; i < pith_model_input_count(model) && i < MOST_INPUTS; i++) {
        char path[4400];
        pith_str bytes;
        pith_error err = PITH_ERROR_INIT;
        const pith_port *port = pith_model_input(model, i);
        snprintf(path, sizeof path, "%s/input_%zu.pb", set, i);
        if (access(path, F_OK)) continue;
        if (pith__files_open(&bytes, files, path, &err) ||
            pith__onnx_read_value(&inputs[count], NULL, bytes, port->dtype ? port->dtype : PITH_F32,
                                  NULL, files->arena, &err)) {
            printf("%s: %s\n", path, err.message);
            exit(1);
        }
        names[count++] = port->name;
    }
    return count;
}

/* Every set, twice: the second time on a binding that is there already. */
static bool run_sets(side *cpu, side *other, const char *folder) {
    bool good = true;
    for (int set = 0; good; set++) {
        char path[4200];
        pith_tensor inputs[MOST_INPUTS];
        const char *names[MOST_INPUTS];
        pith__arena arena;
        pith__arena_init(&arena, &pith__allocator_default);
        pith__files files = { .arena = &arena };
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
        if (access(path, F_OK)) break;
        size_t count = read_inputs(inputs, names, cpu->model, path, &files);
        for (int turn = 0; turn < 2 && good; turn++) {
            side_run(cpu, names, inputs, count);
            side_run(other, names, inputs, count);
            good = sides_agree(cpu, other, path);
        }
        pith__files_close(&files);
        pith__arena_free(&arena);
    }
    return good;
}

/* Runs on the CPU differ where numbers are drawn; such a model has nothing to compare. */
static bool is_drawn(side *cpu, const char *folder, int level) {
    side again;
    bool drawn = !side_open(&again, FAR_NONE, folder, level) || !run_sets(cpu, &again, folder);
    side_close(&again);
    return drawn;
}

static bool check_model(const char *folder, int level, uint32_t first, uint32_t seeds) {
    static side cpu, other;
    bool good = true;
    bool opened = side_open(&cpu, FAR_NONE, folder, level);
    for (uint32_t n = 0; good && n <= seeds; n++) {
        uint32_t seed = n ? first + n : FAR_ALL;
        if (side_open(&other, seed, folder, level) != opened) {
            printf("%s: seed %u: '%s', on the CPU '%s'\n", folder, seed, other.err.message,
                   cpu.err.message);
            good = false;
        }
        if (good && opened && !run_sets(&cpu, &other, folder)) good = is_drawn(&cpu, folder, level);
        if (good && opened) good = side_stayed(&other, folder);
        side_close(&other);
    }
    side_close(&cpu);
    if (good && (far.opened || far.bytes)) {
        printf("%s: %zu contexts and %zu bytes are left\n", folder, far.opened, far.bytes);
        good = false;
    }
    return good;
}

int main(int argc, char **argv) {
    int level = 3;
    uint32_t seeds = 2;
    size_t every = 1, failed = 0, models = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--level") && i + 1 < argc)
            level = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
            seeds = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--devices") && i + 1 < argc)
            devices = argv[++i];
        else if (!strcmp(argv[i], "--every") && i + 1 < argc)
            every = (size_t)atoi(argv[++i]);
        else if (nftw(argv[i], collect, 16, FTW_PHYS))
            return perror(argv[i]), 2;
    }
    if (found.count) qsort(found.items, found.count, sizeof *found.items, compare_paths);
    for (size_t i = 0; i < found.count; i += every, models++)
        failed += !check_model(found.items[i], level, (uint32_t)i, seeds);
    printf("%zu models, %zu failed, %zu far steps, %zu copies\n", models, failed, far.steps,
           far.copies);
    return failed || !far.steps || !far.copies;
}
