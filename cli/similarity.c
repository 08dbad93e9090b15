/* similarity.c - pith similarity: how close texts are to each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

static const char help[];

static int run(int argc, char **argv);

const command command_similarity = { "similarity", "cosine of texts", help, run };

static const char help[] =
    "usage: pith similarity [-m MODEL] [--json] TEXT TEXT...\n"
    "\n"
    "Two texts give one number; more give a line for each pair.\n"
    "\n"
    "  pith similarity \"a cat sat on the mat\" \"a kitten rested on the rug\"\n"
    "  pith similarity --json \"one\" \"two\" \"three\"                a matrix\n"
    "  pith similarity -- \"-5 degrees\" \"cold\"                    texts that begin with '-'\n"
    "\n"
    "  -m, --model MODEL      directory, .onnx file or name in the model cache (" DEFAULT_MODEL ")\n"
    "  --prompt-name NAME     put the model's prompt of this name before each text\n"
    "  --check                compare the optimised model with the model as written first; leave out passes\n"
    "                         that do not hold\n"
    "  --precision HOW        auto|f32|int8|bf16: arithmetic of the dense layers (auto: f32)\n"
    "  --json                 {\"similarities\": [[...], ...]}\n"
    "  -t, --threads N        (all the process may use)\n";

static double cosine(const float *a, const float *b, size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static void print_matrix(const float *vectors, size_t count, size_t dim) {
    fputs("{\"similarities\": [", stdout);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", [" : "[", stdout);
        for (size_t k = 0; k < count; k++)
            printf("%s%.6f", k ? ", " : "", cosine(vectors + i * dim, vectors + k * dim, dim));
        fputs("]", stdout);
    }
    fputs("]}\n", stdout);
}

static void print_pairs(const float *vectors, const string_list *texts, size_t dim) {
    for (size_t i = 0; i < texts->count; i++)
        for (size_t k = i + 1; k < texts->count; k++) {
            printf("%.4f", cosine(vectors + i * dim, vectors + k * dim, dim));
            if (texts->count > 2) printf("  %s  |  %s", texts->items[i], texts->items[k]);
            putchar('\n');
        }
}

static int run(int argc, char **argv) {
    const command *c = &command_similarity;
    const char *model_path = DEFAULT_MODEL;
    bool json = false;
    string_list texts = { NULL, 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    bool check = false;
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model_path, 0, 0, NULL },
        { "prompt-name", 0, OPTION_STRING, &embed_options.prompt_name, 0, 0, NULL },
        { "precision", 0, OPTION_CHOICE, &open_options.precision, 0, 0, PRECISIONS },
        { "check", 0, OPTION_FLAG, &check, 0, 0, NULL },
        { "json", 0, OPTION_FLAG, &json, 0, 0, NULL },
        { "threads", 't', OPTION_INT, &embed_options.threads, 1, 4096, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &texts);
    if (code >= 0) return code;
    if (texts.count < 2) return usage(c, "give at least two texts");

    pith_error err = PITH_ERROR_INIT;
    open_options.log = &warnings;
    pith_model *model;
    if (check) open_options.flags |= PITH_OPEN_CHECK;
    if (pith_model_open(&model, model_path, &open_options, &err)) return fail_model(c, &err, model_path);
    size_t dim = pith_embed_dim(model, &embed_options);
    float *vectors = grow(NULL, texts.count * dim * sizeof *vectors);
    pith_str *strings = grow(NULL, texts.count * sizeof *strings);
    for (size_t i = 0; i < texts.count; i++) strings[i] = (pith_str){ texts.items[i], strlen(texts.items[i]) };
    if (pith_embed(vectors, model, strings, texts.count, &embed_options, &err))
        code = fail(c, "%s", err.message);
    else if (json)
        print_matrix(vectors, texts.count, dim), code = EXIT_DONE;
    else
        print_pairs(vectors, &texts, dim), code = EXIT_DONE;
    code = output_close_standard(c, code);
    free(strings);
    free(vectors);
    pith_model_close(model);
    return code;
}
