/* cmd_similarity.c - pith similarity: how close texts are to each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/options/work_options.h"
#include "cli/output/output.h"

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

typedef struct similarity_settings {
    const char *model;
    pith_open_options open;
    pith_embed_options embed;
    work_settings work;
    runtime_choice runtime;
    bool json;
} similarity_settings;

static int similarity_run(int argc, char **argv) {
    const command *c = &command_similarity;
    similarity_settings s = { .open = PITH_OPEN_OPTIONS_INIT,
                              .embed = PITH_EMBED_OPTIONS_INIT,
                              .work = WORK_SETTINGS_INIT };
    string_list texts = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &texts);
    if (code >= 0) return code;
    if (texts.count < 2) return usage(c, "give at least two texts");

    pith_error err = PITH_ERROR_INIT;
    work_model w = { c,          s.model,
                     &s.work,    &s.open,
                     &s.runtime, s.embed.call.threads,
                     NULL,       &s.embed.call.profile,
                     NULL,       0 };
    s.embed.batching = &s.work.batching;
    code = work_open(&w);
    if (code) return code;
    size_t dim = pith_embed_dim(w.model, &s.embed);
    float *vectors = grow(NULL, texts.count * dim * sizeof *vectors);
    pith_str *strings = grow(NULL, texts.count * sizeof *strings);
    for (size_t i = 0; i < texts.count; i++)
        strings[i] = (pith_str){ texts.items[i], strlen(texts.items[i]) };
    if (pith_embed(vectors, w.model, strings, texts.count, &s.embed, &err))
        code = fail(c, "%s", err.message);
    else if (s.json)
        print_matrix(vectors, texts.count, dim), code = EXIT_DONE;
    else
        print_pairs(vectors, &texts, dim), code = EXIT_DONE;
    code = output_close_standard(c, code);
    code = work_tell(&w, code);
    free(strings);
    free(vectors);
    return work_close(&w, code);
}

#define AT(id, member) OPTION_PLACE(id, similarity_settings, member)

static const option options[] = {
    AT(model, model),
    AT(prompt_name, embed.prompt_name),
    OPTIONS_PASSES(similarity_settings),
    AT(model_file, open.model_file),
    AT(route, open.route),
    AT(json_similarity, json),
    OPTIONS_TOLD(similarity_settings),
    AT(threads, embed.call.threads),
    OPTIONS_MEMORY(similarity_settings),
    OPTIONS_RUNTIME(similarity_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith similarity \"a cat sat on the mat\" \"a kitten rested on the rug\"", "one number" },
    { "pith similarity --json \"one\" \"two\" \"three\"", "a matrix" },
    { "pith similarity -- \"-5 degrees\" \"cold\"", "texts that begin with '-'" },
    { NULL, NULL },
};

const command command_similarity = {
    .name = "similarity",
    .summary = "cosine similarity of texts",
    .forms = "[-m MODEL] [--json] TEXT TEXT...",
    .description = "Two texts give one number. More texts give a line for each pair.",
    .examples = examples,
    .options = options,
    .run = similarity_run,
};
