/* cmd_run.c - pith run: any model on tensors from files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/input/model_inputs.h"
#include "cli/options/work_options.h"
#include "cli/output/output.h"

/* A name that is safe as part of a file's. */
static void clean_name(char *name) {
    for (; *name; name++)
        if (*name == '/' || (unsigned char)*name <= ' ') *name = '_';
}

static int write_outputs(const pith_model *model, const pith_tensor *outputs, const char *dir,
                         bool as_pb, const string_list *inputs) {
    const command *c = &command_run;
    const tensor_sink sink = { c, inputs };
    char path[4096], shape[300];
    int code = EXIT_DONE;
    for (size_t i = 0; i < pith_model_output_count(model) && !code; i++) {
        bool raw = false;
        const pith_port *port = pith_model_output(model, i);
        char *name = strdup(port->name);
        const bool maps = port->item_dtype == PITH_MAP_I64 || port->item_dtype == PITH_MAP_STRING;
        printf("%zu %s %s%s%s\n", i, shown(name), tensor_text(&outputs[i], shape, sizeof shape),
               maps ? " " : "", maps ? pith_element_name(port->item_dtype) : "");
        clean_name(name);
        if (dir) snprintf(path, sizeof path, "%s/%zu_%.200s", dir, i, name);
        free(name);
        if (dir && as_pb)
            code = tensor_file_write_pb(&sink, &outputs[i], path, port);
        else if (dir)
            code = tensor_file_write(&sink, &outputs[i], path, &raw);
        if (raw)
            note("output %zu: %s is written as unsigned integers of the same size, since NumPy "
                 "lacks it",
                 i, pith_element_name(outputs[i].dtype));
    }
    return output_close_standard(c, code);
}

/* Makes the folder of the outputs before the model runs, so that a wrong name costs no time. */
static int make_folder(const command *c, const char *dir) {
    struct stat st;
    if (!dir || !mkdir(dir, 0777)) return EXIT_DONE;
    if (errno != EEXIST) return fail(c, "%s: %s", dir, strerror(errno));
    if (!stat(dir, &st) && !S_ISDIR(st.st_mode))
        return fail(c, "%s is a file; give -o a folder", dir);
    return EXIT_DONE;
}

typedef struct run_settings {
    const char *model, *dir;
    bool as_pb;
    string_list given, shapes;
    work_settings work;
    pith_open_options open;
    int32_t loop_limit;
    pith_run_options run;
    runtime_choice runtime;
} run_settings;

static int run_model(const command *c, run_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    model_inputs in = { .count = 0 };
    work_model w = { c,         s->model, &s->work, &s->open, &s->runtime, s->run.call.threads,
                     &in.paths, &profile, NULL,     0 };
    s->open.loop_limit = s->loop_limit;
    s->open.input_shapes = s->shapes.items;
    s->open.input_shape_count = s->shapes.count;
    int code = work_open(&w);
    if (code) return code;
    s->run.call.profile = profile;
    pith_session *session = NULL;
    pith_tensor *outputs = grow(NULL, pith_model_output_count(w.model) * sizeof *outputs);
    uint64_t begin = pith_profile_now();
    list_add(&in.paths, s->model);
    code = model_inputs_load(&in, c, w.model, &s->given);
    if (!code) code = model_inputs_shape(&in, c, &s->shapes);
    if (!code) code = make_folder(c, s->dir);
    pith_profile_phase(profile, "read inputs", begin);
    if (!code &&
        (pith_session_create(&session, w.model, &err) ||
         pith_session_run(session, outputs, in.names, in.tensors, in.count, &s->run, &err)))
        code = fail(c, "%s", err.message);
    begin = pith_profile_now();
    if (!code) code = write_outputs(w.model, outputs, s->dir, s->as_pb, &in.paths);
    pith_profile_phase(profile, "write", begin);
    code = work_tell(&w, code);
    pith_session_destroy(session);
    free(outputs);
    code = work_close(&w, code);
    model_inputs_free(&in);
    return code;
}

static int run_run(int argc, char **argv) {
    const command *c = &command_run;
    run_settings s = { .work = WORK_SETTINGS_INIT,
                       .open = PITH_OPEN_OPTIONS_INIT,
                       .run = PITH_RUN_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (code < 0 && !s.model)
        code = usage(c, "give one model: a directory, an .onnx file or a .pith file");
    if (code < 0) code = run_model(c, &s);
    free(s.given.items);
    free(s.shapes.items);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, run_settings, member)

static const option options[] = {
    AT(model_compile, model),
    OPTION_SECTION("inputs and outputs"),
    AT(input_run, given),
    AT(input_shape, shapes),
    AT(strict_shapes, work.strict),
    AT(output_run, dir),
    AT(pb, as_pb),
    OPTION_SECTION("work"),
    OPTIONS_PASSES(run_settings),
    AT(model_file, open.model_file),
    AT(route, open.route),
    AT(threads, run.call.threads),
    OPTIONS_MEMORY(run_settings),
    AT(loop_limit, loop_limit),
    OPTIONS_TOLD(run_settings),
    OPTIONS_RUNTIME(run_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith inspect model.onnx", "lists the inputs of the model" },
    { "pith run model.onnx -i x=x.npy -o results", NULL },
    { "pith run model.onnx -i x=x.npy --input-shape x=1x3x480x640 -o results", NULL },
    { NULL, NULL },
};

const command command_run = {
    .name = "run",
    .summary = "run any model on tensors from files",
    .forms = "MODEL -i NAME=FILE... -o DIR",
    .takes = "MODEL",
    .description = "Runs a model once. Inputs are .npy files, or .pb files as the ONNX test "
                   "folders hold them (tensors, "
                   "sequences, optionals). Each output is written to DIR/<number>_<name>.npy and "
                   "listed on standard "
                   "output.\n"
                   "Types that NumPy lacks (bfloat16, 8-bit floats, 4-bit integers) are written to "
                   ".npy files as integers "
                   "of their size, of at least one byte.",
    .examples = examples,
    .options = options,
    .run = run_run,
};
