/* run.c - pith run: any model on tensors from files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dtype.h"
#include "cli/profile_file.h"
#include "cli/tensor_file.h"

static const char help[];

static int run(int argc, char **argv);

const command command_run = { "run", "any model on tensors from files", help, run };

static const char help[] =
    "usage: pith run MODEL -i NAME=FILE... -o DIR\n"
    "\n"
    "Runs a model once. Inputs are .npy files, or .pb files as the ONNX test folders hold them; each output is written "
    "to\n"
    "DIR/<number>_<name>.npy and listed on standard output. Types NumPy lacks (bfloat16, 8-bit floats) are unsigned\n"
    "integers of their size in the files.\n"
    "\n"
    "  pith run model.onnx                                      lists the inputs that are wanted\n"
    "  pith run model.onnx -i x=x.npy -o results\n"
    "  pith run model.onnx -i x=x.npy --input-shape x=1,3,224,224 -o results\n"
    "\n"
    "  -i, --input NAME=FILE       an input; FILE alone if the model has one input\n"
    "  --input-shape NAME=A,B,...  gives the input this shape; the number of elements stays\n"
    "  -o, --output DIR            made if it is not there; without it nothing is written\n"
    "  --level N                   optimisation level 0 to 3 (3)\n"
    "  -t, --threads N             (all the process may use)\n"
    "  --profile FILE              a Chrome trace of every step and phase, for ui.perfetto.dev\n";

typedef struct inputs {
    const char **names;
    tensor_file *files;
    pith_tensor *tensors;
    size_t count;
} inputs;

/* Splits NAME=VALUE at the first '='; a name is copied. */
static const char *split(const char *argument, char **name) {
    const char *equal = strchr(argument, '=');
    if (!equal) return NULL;
    *name = strndup(argument, (size_t)(equal - argument));
    return equal + 1;
}

static int find_input(const pith_model *model, const char *name) {
    for (size_t i = 0; i < pith_model_input_count(model); i++)
        if (!strcmp(pith_model_input(model, i).name, name)) return (int)i;
    return -1;
}

/* A .npy file has no bfloat16 and the like: unsigned integers of the wanted type's size are taken for it. */
static void reinterpret(pith_tensor *t, int32_t wanted) {
    bool raw = t->dtype == PITH_U8 || t->dtype == PITH_U16;
    bool lacking =
        wanted == PITH_BF16 || (wanted >= PITH_F8E4M3FN && wanted <= PITH_F8E5M2FNUZ) || wanted == PITH_F8E8M0;
    if (raw && lacking && pith_dtype_bits(wanted) == pith_dtype_bits(t->dtype)) t->dtype = wanted;
}

static int load_inputs(inputs *in, const pith_model *model, const string_list *given) {
    const command *c = &command_run;
    char message[1200];
    in->names = grow(NULL, given->count * sizeof *in->names);
    in->files = grow(NULL, given->count * sizeof *in->files);
    in->tensors = grow(NULL, given->count * sizeof *in->tensors);
    for (size_t i = 0; i < given->count; i++) {
        char *name = NULL;
        const char *path = split(given->items[i], &name);
        if (!path && pith_model_input_count(model) == 1) {
            path = given->items[i];
            name = strdup(pith_model_input(model, 0).name);
        }
        if (!path) return usage(c, "-i takes NAME=FILE, not '%s'", given->items[i]);
        int index = find_input(model, name);
        int32_t wanted = index < 0 ? PITH_UNDEFINED : pith_model_input(model, (size_t)index).dtype;
        if (!tensor_file_open(&in->files[i], path, wanted == PITH_UNDEFINED ? PITH_F32 : wanted, message,
                              sizeof message)) {
            free(name);
            return fail(c, "input '%s': %s", given->items[i], message);
        }
        reinterpret(&in->files[i].tensor, wanted);
        in->names[i] = name;
        in->tensors[i] = in->files[i].tensor;
        in->count++;
    }
    return EXIT_DONE;
}

static int set_shapes(inputs *in, const string_list *shapes) {
    const command *c = &command_run;
    for (size_t s = 0; s < shapes->count; s++) {
        char *name = NULL;
        const char *text = split(shapes->items[s], &name);
        if (!text) return usage(c, "--input-shape takes NAME=A,B,..., not '%s'", shapes->items[s]);
        size_t i = 0;
        while (i < in->count && strcmp(in->names[i], name)) i++;
        free(name);
        if (i == in->count) return usage(c, "--input-shape '%s': that input is not given", shapes->items[s]);
        pith_tensor *t = &in->tensors[i];
        int64_t before = pith_dims_count(t->dims, t->rank);
        t->rank = 0;
        while (*text) {
            char *end;
            long long n = strtoll(text, &end, 10);
            if (end == text || n < 0 || t->rank == PITH_MAX_RANK || (*end && *end != ','))
                return usage(c, "--input-shape '%s' is not a list of numbers", shapes->items[s]);
            t->dims[t->rank++] = n;
            text = *end ? end + 1 : end;
        }
        if (pith_dims_count(t->dims, t->rank) != before)
            return fail(c, "--input-shape '%s': the file has %lld elements", shapes->items[s], (long long)before);
    }
    return EXIT_DONE;
}

/* A name that is safe as part of a file's. */
static void clean_name(char *name) {
    for (; *name; name++)
        if (*name == '/' || (unsigned char)*name <= ' ') *name = '_';
}

static int write_outputs(const pith_model *model, const pith_tensor *outputs, const char *dir) {
    const command *c = &command_run;
    char message[5000], path[4096], shape[300];
    if (dir && mkdir(dir, 0777) && errno != EEXIST) return fail(c, "%s: %s", dir, strerror(errno));
    for (size_t i = 0; i < pith_model_output_count(model); i++) {
        bool raw = false;
        char *name = strdup(pith_model_output(model, i).name);
        printf("%zu %s %s\n", i, name, tensor_text(&outputs[i], shape, sizeof shape));
        clean_name(name);
        if (dir) snprintf(path, sizeof path, "%s/%zu_%.200s", dir, i, name);
        free(name);
        if (dir && !tensor_file_write(&outputs[i], path, &raw, message, sizeof message)) return fail(c, "%s", message);
        if (raw)
            fprintf(stderr, "output %zu: %s is written as unsigned integers\n", i, pith_dtype_name(outputs[i].dtype));
    }
    return fflush(stdout) ? fail(c, "standard output cannot be written") : EXIT_DONE;
}

static int run(int argc, char **argv) {
    const command *c = &command_run;
    const char *dir = NULL, *profile_path = NULL;
    string_list rest = { NULL, 0 }, given = { NULL, 0 }, shapes = { NULL, 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    pith_run_options run_options = PITH_RUN_OPTIONS_INIT;
    const option options[] = {
        { "input", 'i', OPTION_LIST, &given, 0, 0, NULL },
        { "input-shape", 0, OPTION_LIST, &shapes, 0, 0, NULL },
        { "output", 'o', OPTION_STRING, &dir, 0, 0, NULL },
        { "level", 0, OPTION_INT, &open_options.optimization, 0, 3, NULL },
        { "threads", 't', OPTION_INT, &run_options.threads, 1, 4096, NULL },
        { "profile", 0, OPTION_STRING, &profile_path, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &rest);
    if (code < 0 && rest.count != 1) code = usage(c, "one model is wanted, not %zu", rest.count);
    if (code >= 0) {
        free(given.items);
        free(shapes.items);
        return code;
    }

    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    code = profile_open(&profile, c, profile_path);
    if (code) return code;
    open_options.log = &warnings;
    open_options.profile = run_options.profile = profile;
    pith_model *model;
    pith_session *session = NULL;
    inputs in = { NULL, NULL, NULL, 0 };
    if (pith_model_open(&model, rest.items[0], &open_options, &err)) {
        pith_profile_destroy(profile);
        return fail_model(c, &err, rest.items[0]);
    }
    pith_tensor *outputs = grow(NULL, pith_model_output_count(model) * sizeof *outputs);
    uint64_t begin = pith_profile_now();
    code = load_inputs(&in, model, &given);
    if (!code) code = set_shapes(&in, &shapes);
    pith_profile_phase(profile, "read inputs", begin);
    if (!code && (pith_session_create(&session, model, &err) ||
                  pith_session_run(session, outputs, in.names, in.tensors, in.count, &run_options, &err)))
        code = fail(c, "%s", err.message);
    begin = pith_profile_now();
    if (!code) code = write_outputs(model, outputs, dir);
    pith_profile_phase(profile, "write", begin);
    pith_session_destroy(session);
    pith_model_close(model);
    for (size_t i = 0; i < in.count; i++) {
        free((char *)(uintptr_t)in.names[i]);
        tensor_file_close(&in.files[i]);
    }
    free(in.names);
    free(in.files);
    free(in.tensors);
    free(outputs);
    free(given.items);
    free(shapes.items);
    return profile_close(profile, c, profile_path, code);
}
