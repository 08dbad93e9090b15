/* main.c - the command: finds the verb. Everything else is in the verb's own file. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/options/completion.h"
#include "cli/options/help.h"
#include "cli/options/manual.h"
#include "cli/options/other_tools.h"

const command *const verbs[] = {
#define VERB(name) &command_##name,
#define LEFT_OUT(name, lines)
#include "cli/verbs.def"
#undef VERB
#undef LEFT_OUT
    NULL,
};

/* Verbs that a selective build is without, and what they need; tools/trim.c writes these lines. */
static const struct {
    const char *name, *lines;
} left_out[] = {
#define VERB(name)
#define LEFT_OUT(name, lines) { #name, lines },
#include "cli/verbs.def"
#undef VERB
#undef LEFT_OUT
    { NULL, NULL },
};

typedef struct program_settings {
    bool help, version;
    int completion; /* -1: not asked for */
    const char *man;
} program_settings;

#define AT(id, member) OPTION_PLACE(id, program_settings, member)

static const option options[] = {
    AT(help, help), AT(version, version), AT(completion, completion), AT(man, man), OPTION_END,
};

static const example examples[] = {
    { "echo \"a cat sat on the mat\" | pith embed", "one JSON array per line" },
    { "pith embed -o vectors.npy --format npy texts.txt", "a NumPy file [texts, dim]" },
    { "pith similarity \"a cat\" \"a kitten\"", "cosine similarity" },
    { "pith inspect model.onnx", "what a model is made of" },
    { "pith run model.onnx -i x=x.npy -o results", "any model, NumPy files in and out" },
    { "pith compile -o model.pith", "one file that opens in milliseconds" },
    { NULL, NULL },
};

const command program = {
    .name = "",
    .summary = "text to vectors, and any ONNX model",
    .forms = "COMMAND [options] [arguments]\nhelp COMMAND\n--version",
    .description = "pith turns text into vectors and runs any ONNX model.",
    .notes = "A model is a directory in Hugging Face layout, an .onnx file, a compiled .pith file, "
             "or a name in the model "
             "cache ($PITH_CACHE, else $XDG_CACHE_HOME/pith, else ~/.cache/pith). The default "
             "is " DEFAULT_MODEL ".",
    .examples = examples,
    .options = options,
};

static const command *find_verb(const char *name) {
    for (const command *const *verb = verbs; *verb; verb++)
        if (!strcmp(name, (*verb)->name)) return *verb;
    return NULL;
}

static int unknown_command(const char *name) {
    char hint[300], small[40];
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; left_out[i].name; i++)
        if (!strcmp(name, left_out[i].name)) {
            note("pith: this selective build leaves out the command '%s'; add to its list, and "
                 "build again: %s",
                 name, left_out[i].lines);
            return EXIT_FAILED;
        }
    if (other_verb(hint, sizeof hint, name)) {
        note("pith: unknown command '%s'%s", name, hint);
        return EXIT_USAGE;
    }
    small_letters(small, sizeof small, name, SIZE_MAX);
    for (const command *const *verb = verbs; *verb; verb++)
        if (is_near(small, (*verb)->name, &best)) near = (*verb)->name;
    note("pith: unknown command '%s'%s%s%s", name, near ? "; did you mean '" : "", near ? near : "",
         near ? "'?" : "");
    note("'pith --help' lists the commands");
    return EXIT_USAGE;
}

/* Options before any verb. */
static int program_run(int argc, char **argv) {
    program_settings s = { .completion = -1 };
    string_list rest = { NULL, 0 };
    int code = take_options(&program, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count)
        return usage(&program, "options of a command follow its name: pith %s ...", rest.items[0]);
    if (s.version) return help_version();
    const command *page = &program;
    if (!s.man)
        page = NULL;
    else if (strcmp(s.man, "pith"))
        page = find_verb(s.man);
    if (s.man && !page) return unknown_command(s.man);
    if (page) manual_print(page, stdout);
    if (s.completion >= 0) completion_print(s.completion, stdout);
    return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
}

/* "help", "help all", "help VERB", "help VERB all". */
static int print_help(int argc, char **argv) {
    const bool all = argc > 2 && !strcmp(argv[argc - 1], "all");
    if (argc - all == 2) return help_print(&program, all, stdout);
    const command *verb = find_verb(argv[2]);
    return verb ? help_print(verb, all, stdout) : unknown_command(argv[2]);
}

/* Standard streams that the caller has closed are made unusable, so that no file that is opened
 * takes their place. */
static void hold_standard_streams(void) {
    static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd) _exit(EXIT_FAILED);
}

int main(int argc, char **argv) {
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves is seen as EPIPE */
    signal(SIGXFSZ, SIG_IGN); /* a file beyond its limit is seen as EFBIG */
    if (argc < 2) {
        help_print(&program, false, stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (name[0] == '-') return program_run(argc, argv);
    if (!strcmp(name, "version")) return help_version();
    if (!strcmp(name, "help")) return print_help(argc, argv);
    const command *verb = find_verb(name);
    return verb ? verb->run(argc - 1, argv + 1) : unknown_command(name);
}
