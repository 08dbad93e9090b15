/* model_card.c - see model_card.h. */
#include "cli/export/model_card.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/text_input.h"
#include "cli/export/export_check.h"
#include "cli/hub/pull_file.h"

void model_card_add(model_card *card, const char *what, const char *format, ...) {
    va_list arguments;
    if (!card->wanted || card->count == CARD_FACTS) return;
    card->facts[card->count].what = what;
    va_start(arguments, format);
    pith__text_format(card->facts[card->count].value, sizeof card->facts[card->count].value, format,
                      arguments);
    va_end(arguments);
    card->count++;
}

static void card_path(char *path, const model_out *out) {
    snprintf(path, PATH_MAX, "%.*s.md", PATH_MAX - 4, out->path);
}

int model_card_place(const model_card *card, const model_out *out, bool force) {
    char path[PATH_MAX];
    struct stat st;
    card_path(path, out);
    if (!card->wanted || force || stat(path, &st)) return EXIT_DONE;
    return fail(out->c, "%s exists; --force replaces it", path);
}

int model_card_compare(model_card *card, const model_out *out, const char *model,
                       const pith_source_options *from, const pith_export_options *how) {
    const pith_export_options options = PITH_EXPORT_OPTIONS_INIT;
    double worst;
    if (!card->wanted) return EXIT_DONE;
    int code = export_check(out->c, &worst, out->path, model, from, how ? how : &options);
    if (!code && worst >= 0)
        model_card_add(card, "largest difference of an element of its outputs, on three texts",
                       "%.2g", worst);
    if (!code && worst < 0)
        model_card_add(card, "compared with its source", "no: the model is not run on texts");
    return code;
}

/* A cell of a table: '|' would end it, and a line break the row. */
static void card_put(bytes *text, const char *value) {
    for (; *value; value++) {
        if (*value == '|') bytes_add(text, "\\", 1);
        bytes_add(text, *value == '\n' || *value == '\r' ? " " : value, 1);
    }
}

static int card_add_file(bytes *text, const model_out *out, const char *path, const char *name) {
    struct stat st;
    char hash[65];
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return EXIT_DONE;
    if (!pull_file_hash(path, hash))
        return fail(out->c, "%s cannot be read for its hash: %s", path, strerror(errno));
    bytes_add(text, "| `", 3);
    card_put(text, name);
    bytes_print(text, "` | %lld | `%s` |\n", (long long)st.st_size, hash);
    return EXIT_DONE;
}

static const char *card_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The small files of a directory, by name. */
static int card_add_folder(bytes *text, const model_out *out) {
    struct dirent **entries = NULL;
    const int count = *out->folder ? scandir(out->folder, &entries, NULL, alphasort) : 0;
    int code = count < 0 ? fail(out->c, "%s: %s", out->folder, strerror(errno)) : EXIT_DONE;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        const char *name = entries[i]->d_name;
        const size_t n = strlen(name);
        const bool ours = !strcmp(name, card_name(out->path)) ||
                          !strcmp(name, card_name(out->data_path)) ||
                          (n > 3 && !strcmp(name + n - 3, ".md"));
        if (!code && !ours &&
            snprintf(path, sizeof path, "%s/%s", out->folder, name) < (int)sizeof path)
            code = card_add_file(text, out, path, name);
        free(entries[i]);
    }
    free(entries);
    return code;
}

static int card_text(bytes *text, const model_card *card, const model_out *out) {
    bytes_print(text, "# " PITH_CUT_FMT "\n\n| | |\n|---|---|\n",
                PITH_CUT(pith__str_of(card_name(out->path)), 300));
    for (size_t i = 0; i < card->count; i++) {
        bytes_add(text, "| ", 2);
        card_put(text, card->facts[i].what);
        bytes_add(text, " | ", 3);
        card_put(text, card->facts[i].value);
        bytes_add(text, " |\n", 3);
    }
    bytes_print(
        text, "| written by | pith %s, `pith %s` |\n\n| file | bytes | SHA-256 |\n|---|---|---|\n",
        pith_version(), out->c->name);
    int code = card_add_file(text, out, out->path, card_name(out->path));
    if (!code && out->data_opened)
        code = card_add_file(text, out, out->data_path, card_name(out->data_path));
    return code ? code : card_add_folder(text, out);
}

int model_card_write(const model_card *card, const model_out *out) {
    char path[PATH_MAX];
    bytes text = { NULL, 0, 0 };
    output file;
    if (!card->wanted) return EXIT_DONE;
    card_path(path, out);
    int code = card_text(&text, card, out);
    if (!code && !(code = output_open(&file, out->c, path, NULL))) {
        const bool good = output_write(&file, text.data, text.size);
        code = output_close(&file, out->c, good, good ? EXIT_DONE : EXIT_FAILED);
    }
    free(text.data);
    return code;
}
