/* embed_table.c - see embed_table.h. */
#include "cli/embed/embed_table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/message.h"

/* Texts of a call. Objects are read again for it, so their texts are copied. */
#define CALL_TEXTS ((size_t)1024)
#define CALL_BYTES ((size_t)4 << 20)

int embed_table(float **vectors, const command *c, const pith_model *model, text_table *texts,
                size_t dim, const pith_embed_options *options, progress_line *progress) {
    pith_error err = PITH_ERROR_INIT;
    pith_str *some = grow(NULL, CALL_TEXTS * sizeof *some);
    size_t *ends = grow(NULL, CALL_TEXTS * sizeof *ends), done = 0;
    bytes copies = { NULL, 0, 0 };
    size_t size;
    int code = EXIT_DONE;
    if (__builtin_mul_overflow(texts->count, dim * sizeof **vectors, &size)) size = SIZE_MAX;
    *vectors = grow(NULL, size + (size < SIZE_MAX));
    while (!code && done < texts->count) {
        size_t n = 0;
        for (copies.size = 0; n < CALL_TEXTS && copies.size < CALL_BYTES; n++) {
            if (done + n == texts->count) break;
            const pith_str text = text_table_text(texts, done + n);
            bytes_add(&copies, text.data, text.size);
            ends[n] = copies.size;
        }
        for (size_t i = 0; i < n; i++) some[i] = bytes_text(&copies, i ? ends[i - 1] : 0, ends[i]);
        if (pith_embed(*vectors + done * dim, model, some, n, options, &err))
            code = fail(c, "texts %zu to %zu: %s", done + 1, done + n, err.message);
        done += n;
        progress_line_show(progress, done, texts->count);
    }
    progress_line_end(progress, done, texts->count);
    free(copies.data);
    free(ends);
    free(some);
    return code;
}

/* Appends a word for a shell, in quotes if it needs them. */
static void put_word(bytes *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._/+:=@%-";
    bytes_add(out, " ", 1);
    if (*word && strspn(word, plain) == strlen(word)) {
        bytes_add(out, word, strlen(word));
        return;
    }
    bytes_add(out, "'", 1);
    for (; *word; word++)
        if (*word == '\'')
            bytes_add(out, "'\\''", 4);
        else
            bytes_add(out, word, 1);
    bytes_add(out, "'", 1);
}

/* "texts.npy" for "texts.csv", from malloc. */
static char *vectors_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *dot = strrchr(name, '.');
    const size_t stem = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    char *made = grow(NULL, stem + 5);
    memcpy(made, path, stem);
    strcpy(made + stem, ".npy");
    return made;
}

void embed_table_tell(const command *c, const text_table *texts, const char *path,
                      const char *model, const row_options *rows, int32_t dim) {
    bytes line = { NULL, 0, 0 };
    char *vectors = vectors_name(path);
    bytes_print(&line, "pith embed");
    if (model) bytes_print(&line, " -m"), put_word(&line, model);
    for (size_t i = 0; i < rows->columns.count; i++)
        bytes_print(&line, " --column"), put_word(&line, rows->columns.items[i]);
    if (dim) bytes_print(&line, " --dim %d", (int)dim);
    if (rows->null) bytes_print(&line, " -0");
    if (rows->invalid == 1) bytes_print(&line, " --invalid replace");
    if (texts->skipped) bytes_print(&line, " --errors skip");
    bytes_print(&line, " -o");
    put_word(&line, vectors);
    put_word(&line, path);
    bytes_print(&line, "; then add --index");
    put_word(&line, vectors);
    bytes_add(&line, "", 1);
    note("pith %s: %zu %s embedded for this call alone; to keep the vectors: %s", c->name,
         texts->count, texts->count == 1 ? "text is" : "texts are", line.data);
    free(vectors);
    free(line.data);
}
