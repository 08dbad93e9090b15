/* common_options.h - options that several verbs have, each for a place in the settings of the verb. */
#ifndef PITH_CLI_COMMON_OPTIONS_H
#define PITH_CLI_COMMON_OPTIONS_H

#include "cli/cli.h"

/* A heading above the options that follow. */
#define OPTION_SECTION(title)                                                                                          \
    { "", 0, OPTION_HEADING, 0, NULL, .help = title }
#define OPTION_END                                                                                                     \
    { NULL, 0, OPTION_HEADING, 0, NULL, .help = NULL }

#define OPTION_MODEL(at)                                                                                               \
    {                                                                                                                  \
        "model", 'm', OPTION_STRING, at, "MODEL",                                                                      \
            .help = "a directory, an .onnx or .pith file, or a name in the model cache (" DEFAULT_MODEL ")"            \
    }
#define OPTION_MODEL_ARGUMENT(at)                                                                                      \
    { "model", 'm', OPTION_STRING, at, "MODEL", .help = "the model, instead of the argument" }
#define OPTION_TOKENIZER(at)                                                                                           \
    {                                                                                                                  \
        "model", 'm', OPTION_STRING, at, "MODEL",                                                                      \
            .help = "a directory, a tokenizer file, or a name in the model cache (" DEFAULT_MODEL ")"                  \
    }
#define OPTION_PROMPT_NAME(at)                                                                                         \
    {                                                                                                                  \
        "prompt-name", 0, OPTION_STRING, at, "NAME",                                                                   \
            .help = "put the model's prompt of this name before each text; \"\" for none"                              \
    }
#define OPTION_LEVEL(at)                                                                                               \
    { "level", 0, OPTION_INT, at, "N", .help = "optimisation level, 0 to 3 (3)", .min = 0, .max = 3 }
#define OPTION_CHECK(at)                                                                                               \
    {                                                                                                                  \
        "check", 0, OPTION_FLAG, at, NULL,                                                                             \
            .help = "first compare the optimised model with the model as written, and leave out passes that change a " \
                    "result"                                                                                           \
    }
/* The choices are in the order of pith_precision. */
#define OPTION_PRECISION(at)                                                                                           \
    {                                                                                                                  \
        "precision", 0, OPTION_CHOICE, at, "HOW",                                                                      \
            .help = "arithmetic of the dense layers (auto: f32, or what a .pith file was compiled for)",               \
            .choices = "auto|f32|int8|bf16"                                                                            \
    }
#define OPTION_MODEL_FILE(at)                                                                                          \
    {                                                                                                                  \
        "model-file", 0, OPTION_STRING, at, "NAME",                                                                    \
            .help = "which file of the model's directory to open, such as onnx/model_fp16.onnx (the best one)"         \
    }
#define OPTION_ROUTE(at)                                                                                               \
    {                                                                                                                  \
        "route", 0, OPTION_STRING, at, "NAME",                                                                         \
            .help = "which route of the model's Router module to take, such as query (the model's default)"            \
    }
#define OPTION_THREADS(at)                                                                                             \
    {                                                                                                                  \
        "threads", 't', OPTION_INT, at, "N", .help = "number of threads (all the process may use)", .min = 1,          \
                                             .max = 4096                                                               \
    }
#define OPTION_PIN(at)                                                                                                 \
    { "pin", 0, OPTION_FLAG, at, NULL, .help = "pin each thread to one CPU; only for machines that do nothing else" }
#define OPTION_BATCH_TOKENS(at)                                                                                        \
    {                                                                                                                  \
        "batch-tokens", 0, OPTION_INT, at, "N",                                                                        \
            .help = "tokens that one thread runs at once (128 to 512, by its L2 cache); changes memory and speed, "    \
                    "never a vector",                                                                                  \
            .min = 1, .max = INT32_MAX                                                                                 \
    }
#define OPTION_MEMORY_LIMIT(at)                                                                                        \
    {                                                                                                                  \
        "memory-limit", 0, OPTION_BYTES, at, "SIZE",                                                                   \
            .help = "bytes that the model and its work may hold, such as 200M; mapped files do not count"              \
    }
#define OPTION_PROFILE(at)                                                                                             \
    {                                                                                                                  \
        "profile", 0, OPTION_STRING, at, "FILE",                                                                       \
            .help = "write a Chrome trace of every step and phase, for ui.perfetto.dev"                                \
    }
#define OPTION_STRICT_SHAPES(at)                                                                                       \
    {                                                                                                                  \
        "strict-shapes", 0, OPTION_FLAG, at, NULL,                                                                     \
            .help = "declared shapes that contradict the real ones are errors, not warnings"                           \
    }
#define OPTION_INPUT_SHAPE(at)                                                                                         \
    {                                                                                                                  \
        "input-shape", 0, OPTION_LIST, at, "NAME=AxBx...",                                                             \
            .help = "give an input this shape, whatever the model declares; a file with as many elements is taken to " \
                    "have it too"                                                                                      \
    }
#define OPTION_LOOP_LIMIT(at)                                                                                          \
    {                                                                                                                  \
        "loop-limit", 0, OPTION_INT, at, "N",                                                                          \
            .help = "iterations that one Loop may take before the run fails (1000000)", .min = 1, .max = INT32_MAX     \
    }
#define OPTION_NULL(at)                                                                                                \
    { "null", '0', OPTION_FLAG, at, NULL, .help = "texts end with a NUL byte instead of a newline" }
#define OPTION_INVALID(at)                                                                                             \
    {                                                                                                                  \
        "invalid", 0, OPTION_CHOICE, at, "HOW", .help = "what to do with bytes that are not UTF-8 (error)",            \
                                                .choices = "error|replace"                                             \
    }
#define OPTION_JSON(at, what)                                                                                          \
    { "json", 0, OPTION_FLAG, at, NULL, .help = what }
#define OPTION_OUTPUT(at)                                                                                              \
    {                                                                                                                  \
        "output", 'o', OPTION_STRING, at, "FILE",                                                                      \
            .help = "write to this file, which appears under its name when it is complete (standard output)"           \
    }

#endif
