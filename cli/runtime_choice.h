/* runtime_choice.h - the options that choose the runtime, for every verb that opens a model. */
#ifndef PITH_CLI_RUNTIME_CHOICE_H
#define PITH_CLI_RUNTIME_CHOICE_H

#include "cli/telemetry.h"

/* All zero at first. */
typedef struct runtime_choice {
    int name;      /* index into RUNTIME_NAMES */
    int telemetry; /* index into TELEMETRY_FORMATS, of the verbs that tell of their stages */
    bool strict;
    const char *library, *python, *profile;
    string_list providers, settings;
    int level; /* as in pith_runtime_options: all, none, basic, extended */
    pith_runtime_options options;
} runtime_choice;

#define RUNTIME_NAMES "builtin|ort|auto"

/* The options, for a runtime_choice at this place in the settings of a verb. */
#define OPTIONS_RUNTIME(at)                                                                                            \
    OPTION_SECTION("runtime"),                                                                                         \
        { "runtime",                                                                                                   \
          0,                                                                                                           \
          OPTION_CHOICE,                                                                                               \
          (at) + offsetof(runtime_choice, name),                                                                       \
          "NAME",                                                                                                      \
          .help = "what runs the model (builtin); ort: ONNX Runtime; auto: ONNX Runtime only where Pith lacks an "     \
                  "operator or a type",                                                                                \
          .choices = RUNTIME_NAMES },                                                                                  \
        { "runtime-strict",                                                                                            \
          0,                                                                                                           \
          OPTION_FLAG,                                                                                                 \
          (at) + offsetof(runtime_choice, strict),                                                                     \
          NULL,                                                                                                        \
          .help = "fail where the builtin runtime would stand in for ONNX Runtime" },                                  \
        OPTIONS_ORT(at)
#define OPTION_TELEMETRY(at)                                                                                           \
    {                                                                                                                  \
        "telemetry", 0, OPTION_CHOICE, (at) + offsetof(runtime_choice, telemetry), "FORMAT",                           \
            .help = "tell each stage on standard error when it ends, with runtime, threads and milliseconds (off)",    \
            .choices = TELEMETRY_FORMATS                                                                               \
    }
#define OPTIONS_ORT(at)                                                                                                \
    { "ort-library", 0,                                                                                                \
      OPTION_STRING, (at) + offsetof(runtime_choice, library),                                                         \
      "FILE",        .help = "the library of ONNX Runtime ($ORT_DYLIB_PATH; else it is searched)" },                   \
        { "ort-python",                                                                                                \
          0,                                                                                                           \
          OPTION_STRING,                                                                                               \
          (at) + offsetof(runtime_choice, python),                                                                     \
          "DIR",                                                                                                       \
          .help = "a Python environment with the package onnxruntime, whose library is used ($VIRTUAL_ENV)" },         \
        { "ep",                                                                                                        \
          0,                                                                                                           \
          OPTION_LIST,                                                                                                 \
          (at) + offsetof(runtime_choice, providers),                                                                  \
          "NAME[:KEY=VALUE,...]",                                                                                      \
          .help = "an execution provider of ONNX Runtime, such as cuda:device_id=0; may be given many times, the "     \
                  "preferred one first (cpu)" },                                                                       \
        { "ort-level",                                                                                                 \
          0,                                                                                                           \
          OPTION_CHOICE,                                                                                               \
          (at) + offsetof(runtime_choice, level),                                                                      \
          "NAME",                                                                                                      \
          .help = "how far ONNX Runtime optimises the model (all)",                                                    \
          .choices = "all|none|basic|extended" },                                                                      \
        { "ort-config", 0,                                                                                             \
          OPTION_LIST,  (at) + offsetof(runtime_choice, settings),                                                     \
          "KEY=VALUE",  .help = "an entry of ONNX Runtime's session configuration; may be given many times" },         \
    {                                                                                                                  \
        "ort-profile", 0, OPTION_STRING, (at) + offsetof(runtime_choice, profile), "PREFIX",                           \
            .help = "ONNX Runtime writes its own profile to PREFIX_<time>.json"                                        \
    }

/* Puts the choice into the options of opening; threads: those of the runs that follow, 0 for all. The choice must
 * outlive the call that opens. $ORT_DYLIB_PATH and $VIRTUAL_ENV are read here, unless the program runs with the rights
 * of another user. */
void runtime_choice_apply(pith_open_options *open, runtime_choice *choice, int32_t threads);
void runtime_choice_free(runtime_choice *choice);

#endif
