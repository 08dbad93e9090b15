/* main.c - the command: finds the verb, everything else is in the verb's own file. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

extern const command command_embed, command_similarity, command_tokenize, command_detokenize, command_run,
    command_verify, command_inspect, command_bench, command_compile;

static const command *const commands[] = { &command_embed,      &command_similarity, &command_tokenize,
                                           &command_detokenize, &command_run,        &command_verify,
                                           &command_inspect,    &command_bench,      &command_compile };
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static int help(FILE *out) {
    fputs("pith turns text into vectors and runs any ONNX model.\n\n"
          "  echo \"a cat sat on the mat\" | pith embed              one JSON array a line\n"
          "  pith embed -o vectors.npy --format npy texts.txt      a NumPy file [texts, dim]\n"
          "  pith similarity \"a cat\" \"a kitten\"                    cosine of texts\n"
          "  pith inspect model.onnx                               what a model is made of\n"
          "  pith run model.onnx -i x=x.npy -o results             any model, NumPy files in and out\n"
          "  pith compile -o model.pith                            a model as one file that opens in milliseconds\n\n"
          "commands (pith COMMAND --help shows options and examples):\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nModels: -m takes a directory in Hugging Face layout, an .onnx file, or a name in the model cache\n"
          "($PITH_CACHE, else $XDG_CACHE_HOME/pith, else ~/.cache/pith). The default is " DEFAULT_MODEL ".\n",
          out);
    return fflush(out) ? EXIT_FAILED : EXIT_DONE;
}

static int unknown_command(const char *verb) {
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (is_near(verb, commands[i]->name, &best)) near = commands[i]->name;
    fprintf(stderr, "pith: unknown command '%s'", verb);
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fputs("\n'pith --help' lists the commands\n", stderr);
    return EXIT_USAGE;
}

/* Standard streams that the caller has closed are made unusable, so that no file that is opened takes their place. */
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
        help(stderr);
        return EXIT_USAGE;
    }
    const char *verb = argv[1];
    if (!strcmp(verb, "--version") || !strcmp(verb, "version")) {
        printf("pith %s\n", pith_version());
        return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
    }
    bool asks_help = !strcmp(verb, "--help") || !strcmp(verb, "-h") || !strcmp(verb, "help");
    if (asks_help && argc == 2) return help(stdout);
    if (asks_help) verb = argv[2];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(verb, commands[i]->name)) {
            if (!asks_help) return commands[i]->run(argc - 1, argv + 1);
            fputs(commands[i]->help, stdout);
            return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
        }
    return unknown_command(verb);
}
