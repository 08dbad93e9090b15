/* runtime_choice.h - the options that choose the runtime, for every verb that opens a model. */
#ifndef PITH_CLI_OPTIONS_RUNTIME_CHOICE_H
#define PITH_CLI_OPTIONS_RUNTIME_CHOICE_H

#include "cli/output/telemetry.h"

/* All zero at first. */
typedef struct runtime_choice {
    int name;      /* builtin, ort, auto */
    int telemetry; /* as telemetry_begin takes it, of the verbs that tell of their stages */
    bool strict;
    const char *library, *python, *profile;
    const char *devices; /* names in the order of preference, each with its settings, with commas
                            between all */
    string_list entries;
    int level;             /* as in pith_runtime_options: all, none, basic, extended */
    string_list providers; /* what runtime_choice_apply makes of devices */
    char *names;           /* the text of these */
    pith_runtime_options options;
} runtime_choice;

/* Rows of a verb's table; `member` is the runtime_choice in its settings. */
#define OPTIONS_RUNTIME(settings, member)                                                          \
    OPTION_SECTION("runtime"), OPTION_PLACE(runtime, settings, member.name),                       \
        OPTION_PLACE(runtime_strict, settings, member.strict), OPTIONS_ORT(settings, member)
#define OPTIONS_ORT(settings, member)                                                              \
    OPTION_PLACE(ort_library, settings, member.library),                                           \
        OPTION_PLACE(ort_python, settings, member.python),                                         \
        OPTION_PLACE(ep, settings, member.devices),                                                \
        OPTION_PLACE(ort_level, settings, member.level),                                           \
        OPTION_PLACE(ort_config, settings, member.entries),                                        \
        OPTION_PLACE(ort_profile, settings, member.profile)

/* EXIT_DONE, or EXIT_USAGE after a message: a flag of ONNX Runtime was given, and the builtin
 * runtime alone runs the model. */
int runtime_choice_check(const command *c, const runtime_choice *choice);
/* Puts the choice into the options of opening; threads: those of the runs that follow, 0 for all.
 * The choice must outlive the call that opens. $ORT_DYLIB_PATH and $VIRTUAL_ENV are read here,
 * unless the program runs with the rights of another user. */
void runtime_choice_apply(pith_open_options *open, runtime_choice *choice, int32_t threads);
/* The choice is all zero then. */
void runtime_choice_free(runtime_choice *choice);

#endif
