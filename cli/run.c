/* run.c - pith run: any model on tensors from files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dtype.h"
#include "cli/model_inputs.h"
#include "cli/output.h"
#include "cli/profile_file.h"

static const char help[];

static int run(int argc, char **argv);

const command command_run = { "run", "any model on tensors from files", help, run };

static const char help[] =
    "usage: pith run MODEL -i NAME=FILE... -o DIR\n"
    "\n"
    "Runs a model once. Inputs are .npy files, or .pb files as the ONNX test folders hold them (tensors, sequences,\n"
    "optionals); each output is written to DIR/<number>_<name>.npy and listed on standard output. Types NumPy lacks\n"
    "(bfloat16, 8-bit floats, 4-bit integers) are integers of their size, at least a byte, in .npy files.\n"
    "\n"
    "  pith run model.onnx                                      lists the inputs that are wanted\n"
    "  pith run model.onnx -i x=x.npy -o results\n"
    "  pith run model.onnx -i x=x.npy --input-shape x=1x3x480x640 -o results\n"
    "\n"
    "  -m, --model MODEL           the same as the argument\n"
    "  -i, --input NAME=FILE       an input; FILE alone if the model has one input\n"
    "  --input-shape NAME=AxBx...  the input has this shape, whatever the model declares; a file of as many elements\n"
    "                              is taken to have it too\n"
    "  --strict-shapes             declared shapes that contradict the real ones are errors, not warnings\n"
    "  -o, --output DIR            made if it is not there; without it nothing is written\n"
    "  --pb                        writes DIR/<number>_<name>.pb instead: every type, sequences and optionals whole\n"
    "  --level N                   optimisation level 0 to 3 (3)\n"
    "  --check                     compare the optimised model with the model as written first; leave out passes\n"
    "                              that do not hold\n"
    "  --precision HOW             auto|f32|int8|bf16: arithmetic of the dense layers (auto: f32)\n"
    "  -t, --threads N             (all the process may use)\n"
    "  --memory-limit SIZE         bytes the model and the run may hold, as in 200M; mapped files are not counted\n"
    "  --loop-limit N              iterations a Loop may take; beyond it the run fails (1000000)\n"
    "  --profile FILE              a Chrome trace of every step and phase, for ui.perfetto.dev\n";

/* A name that is safe as part of a file's. */
static void clean_name(char *name) {
    for (; *name; name++)
        if (*name == '/' || (unsigned char)*name <= ' ') *name = '_';
}

static int write_outputs(const pith_model *model, const pith_tensor *outputs, const char *dir, bool as_pb,
                         const string_list *inputs) {
    const command *c = &command_run;
    const tensor_sink sink = { c, inputs };
    char path[4096], shape[300];
    int code = EXIT_DONE;
    for (size_t i = 0; i < pith_model_output_count(model) && !code; i++) {
        bool raw = false;
        pith_port port = pith_model_output(model, i);
        char *name = strdup(port.name);
        printf("%zu %s %s\n", i, name, tensor_text(&outputs[i], shape, sizeof shape));
        clean_name(name);
        if (dir) snprintf(path, sizeof path, "%s/%zu_%.200s", dir, i, name);
        free(name);
        if (dir && as_pb)
            code = tensor_file_write_pb(&sink, &outputs[i], path, port.name, port.dtype == PITH_NONE);
        else if (dir)
            code = tensor_file_write(&sink, &outputs[i], path, &raw);
        if (raw)
            fprintf(stderr, "output %zu: %s is written as unsigned integers\n", i, pith_dtype_name(outputs[i].dtype));
    }
    return output_close_standard(c, code);
}

/* Makes the folder of the outputs before the model runs, so that a wrong name costs no time. */
static int make_folder(const command *c, const char *dir) {
    struct stat st;
    if (!dir || !mkdir(dir, 0777)) return EXIT_DONE;
    if (errno != EEXIST) return fail(c, "%s: %s", dir, strerror(errno));
    if (!stat(dir, &st) && !S_ISDIR(st.st_mode)) return fail(c, "%s is a file; -o takes a folder", dir);
    return EXIT_DONE;
}

static int run(int argc, char **argv) {
    const command *c = &command_run;
    const char *path = NULL, *dir = NULL, *profile_path = NULL;
    bool strict = false, as_pb = false;
    string_list rest = { NULL, 0 }, given = { NULL, 0 }, shapes = { NULL, 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    bool check = false;
    int32_t loop_limit = LOOP_LIMIT;
    pith_run_options run_options = PITH_RUN_OPTIONS_INIT;
    const option options[] = {
        { "model", 'm', OPTION_STRING, &path, 0, 0, NULL },
        { "input", 'i', OPTION_LIST, &given, 0, 0, NULL },
        { "input-shape", 0, OPTION_LIST, &shapes, 0, 0, NULL },
        { "strict-shapes", 0, OPTION_FLAG, &strict, 0, 0, NULL },
        { "output", 'o', OPTION_STRING, &dir, 0, 0, NULL },
        { "pb", 0, OPTION_FLAG, &as_pb, 0, 0, NULL },
        { "level", 0, OPTION_INT, &open_options.optimization, 0, 3, NULL },
        { "precision", 0, OPTION_CHOICE, &open_options.precision, 0, 0, PRECISIONS },
        { "check", 0, OPTION_FLAG, &check, 0, 0, NULL },
        { "threads", 't', OPTION_INT, &run_options.threads, 1, 4096, NULL },
        { "memory-limit", 0, OPTION_BYTES, &open_options.memory_limit, 0, 0, NULL },
        { "loop-limit", 0, OPTION_INT, &loop_limit, 1, INT32_MAX, NULL },
        { "profile", 0, OPTION_STRING, &profile_path, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &rest);
    if (code < 0) code = take_model(c, &path, &rest);
    if (code < 0 && !path) code = usage(c, "give one model: a directory, an .onnx file or a .pith file");
    if (code >= 0) {
        free(given.items);
        free(shapes.items);
        return code;
    }

    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    code = profile_open(&profile, c, profile_path, NULL);
    if (code) return code;
    open_options.log = &warnings;
    open_options.loop_limit = loop_limit;
    open_options.flags = (strict ? PITH_OPEN_STRICT_SHAPES : 0) | (check ? PITH_OPEN_CHECK : 0);
    open_options.input_shapes = shapes.items;
    open_options.input_shape_count = shapes.count;
    open_options.profile = run_options.profile = profile;
    pith_model *model;
    pith_session *session = NULL;
    model_inputs in = { .count = 0 };
    if (pith_model_open(&model, path, &open_options, &err)) {
        pith_profile_destroy(profile);
        return fail_model(c, &err, path);
    }
    pith_tensor *outputs = grow(NULL, pith_model_output_count(model) * sizeof *outputs);
    uint64_t begin = pith_profile_now();
    list_add(&in.paths, path);
    code = model_inputs_load(&in, c, model, &given);
    if (!code) code = model_inputs_shape(&in, c, &shapes);
    if (!code) code = make_folder(c, dir);
    pith_profile_phase(profile, "read inputs", begin);
    if (!code && (pith_session_create(&session, model, &err) ||
                  pith_session_run(session, outputs, in.names, in.tensors, in.count, &run_options, &err)))
        code = fail(c, "%s", err.message);
    begin = pith_profile_now();
    if (!code) code = write_outputs(model, outputs, dir, as_pb, &in.paths);
    pith_profile_phase(profile, "write", begin);
    pith_session_destroy(session);
    pith_model_close(model);
    model_inputs_free(&in);
    free(outputs);
    free(given.items);
    free(shapes.items);
    return profile_close(profile, c, code);
}
