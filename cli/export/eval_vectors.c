/* eval_vectors.c - see eval_vectors.h.
 *
 * A file without tokenizer cannot be given texts. So a temporary directory gets a link to it and
 * the small files of the model, and is opened in its place. */

#include "cli/export/eval_vectors.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/export/export_files.h"
#include "cli/export/temporary_folder.h"

enum { NEAREST = 10 };

typedef struct evaluated {
    const command *c;
    char folder[PATH_MAX]; /* temporary; "": none */
    const char *path;      /* what is opened for the changed model */
    size_t dim;
    float *vectors[2]; /* [texts, dim], of the model and of what was made of it */
} evaluated;

/* ---- the directory ---- */

/* A link of that name to the file, if it is there. */
static int eval_link(const evaluated *e, const char *file, const char *name) {
    char whole[PATH_MAX], link[PATH_MAX + NAME_MAX + 2];
    if (!realpath(file, whole))
        return errno == ENOENT ? EXIT_DONE : fail(e->c, "%s: %s", file, strerror(errno));
    snprintf(link, sizeof link, "%s/%s", e->folder, name);
    return symlink(whole, link) ? fail(e->c, "%s: %s", link, strerror(errno)) : EXIT_DONE;
}

static int eval_place(evaluated *e, const char *made, const char *model, bool pooled) {
    const char *slash = strrchr(made, '/'), *name = slash ? slash + 1 : made;
    char from[PATH_MAX], data[PATH_MAX], data_name[NAME_MAX + 8];
    struct stat st;
    e->path = made;
    if (!stat(made, &st) && S_ISDIR(st.st_mode)) return EXIT_DONE;
    int code = export_model_folder(e->c, from, model);
    if (code) return code;
    code = temporary_folder_make(e->folder, e->c);
    if (code) return code;
    e->path = e->folder;
    snprintf(data, sizeof data, "%s.data", made);
    snprintf(data_name, sizeof data_name, "%s.data", name);
    code = export_copy_files(e->c, from, e->folder, pooled);
    if (!code) code = eval_link(e, made, "model.onnx");
    return code ? code : eval_link(e, data, data_name);
}

/* ---- the vectors ---- */

static int eval_embed(evaluated *e, int which, const char *path, const pith_open_options *options,
                      const pith_str *texts, size_t count) {
    pith_model *model;
    pith_error err = PITH_ERROR_INIT;
    int code = EXIT_DONE;
    if (pith_model_open(&model, path, options, &err))
        return fail(e->c, "%s: %s", path, err.message);
    const size_t dim = pith_embed_dim(model, NULL);
    if (!dim || (which && dim != e->dim)) {
        code = fail(e->c, "%s gives %zu numbers for a text, the model %zu", path, dim, e->dim);
    } else {
        e->dim = dim;
        e->vectors[which] = grow(NULL, (count * dim + 1) * sizeof(float));
        if (pith_embed(e->vectors[which], model, texts, count, NULL, &err))
            code = fail(e->c, "%s", err.message);
    }
    pith_model_close(model);
    return code;
}

/* ---- the figures ---- */

static double eval_cosine(const float *a, const float *b, size_t dim) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < dim; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : aa == bb;
}

/* The nearest other texts of each text. */
static int eval_nearest(pith_hit *hits, const evaluated *e, const float *vectors, size_t count) {
    pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pith_search_index *index;
    pith_error err = PITH_ERROR_INIT;
    if (pith_search_index_create(&index, vectors, count, e->dim, &how, &err))
        return fail(e->c, "%s", err.message);
    pith_status status = pith_search(hits, index, vectors, count, NEAREST + 1, NULL, &err);
    pith_search_index_destroy(index);
    return status ? fail(e->c, "%s", err.message) : EXIT_DONE;
}

/* Whether the index is among the first of the hits that are not the text itself. */
static bool eval_is_near(const pith_hit *hits, int64_t index, int64_t self) {
    for (int i = 0, seen = 0; i <= NEAREST && seen < NEAREST; i++) {
        if (hits[i].index == self) continue;
        if (hits[i].index == index) return true;
        seen++;
    }
    return false;
}

static int eval_overlap(double *overlap, const evaluated *e, size_t count) {
    pith_hit *hits = grow(NULL, 2 * count * (NEAREST + 1) * sizeof *hits),
             *others = hits + count * (NEAREST + 1);
    int code = eval_nearest(hits, e, e->vectors[0], count);
    size_t same = 0;
    if (!code) code = eval_nearest(others, e, e->vectors[1], count);
    if (!code)
        for (size_t t = 0; t < count; t++) {
            const pith_hit *mine = hits + t * (NEAREST + 1), *theirs = others + t * (NEAREST + 1);
            for (int i = 0, seen = 0; i <= NEAREST && seen < NEAREST; i++) {
                if (mine[i].index == (int64_t)t) continue;
                same += eval_is_near(theirs, mine[i].index, (int64_t)t);
                seen++;
            }
        }
    *overlap = (double)same / (double)(count * NEAREST);
    free(hits);
    return code;
}

static int eval_compare(vector_figures *f, const evaluated *e) {
    f->mean = f->worst = 0;
    f->overlap = -1;
    for (size_t i = 0; i < f->texts; i++) {
        const double off =
            1 - eval_cosine(e->vectors[0] + i * e->dim, e->vectors[1] + i * e->dim, e->dim);
        f->mean += off / (double)f->texts;
        f->worst = off > f->worst || isnan(off) ? off : f->worst;
    }
    return f->texts < NEAREST + 2 ? EXIT_DONE : eval_overlap(&f->overlap, e, f->texts);
}

/* ---- pairs with scores ---- */

typedef struct ranked {
    double value;
    size_t at;
} ranked;

static int eval_by_value(const void *a, const void *b) {
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return x < y ? -1 : x > y;
}

/* Ranks from 1; equal values have the mean of theirs. */
static void eval_ranks(double *ranks, ranked *sorted, size_t count) {
    qsort(sorted, count, sizeof *sorted, eval_by_value);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && sorted[to].value == sorted[from].value;) to++;
        for (size_t i = from; i < to; i++) ranks[sorted[i].at] = (double)(from + 1 + to) / 2;
    }
}

/* Spearman's correlation is Pearson's of the ranks. */
static double eval_spearman(const evaluated *e, const float *vectors, const eval_texts *on) {
    const size_t pairs = on->count / 2;
    ranked *sorted = grow(NULL, (pairs + 1) * sizeof *sorted);
    double *ranks = grow(NULL, (2 * pairs + 1) * sizeof *ranks), xy = 0, xx = 0, yy = 0;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < pairs; i++) {
            const float *first = vectors + 2 * i * e->dim;
            sorted[i] =
                (ranked){ side ? on->scores[i] : eval_cosine(first, first + e->dim, e->dim), i };
        }
        eval_ranks(ranks + (size_t)side * pairs, sorted, pairs);
    }
    for (size_t i = 0; i < pairs; i++) {
        const double middle = (double)(pairs + 1) / 2, x = ranks[i] - middle,
                     y = ranks[pairs + i] - middle;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    free(sorted);
    free(ranks);
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

int eval_vectors(vector_figures *figures, const command *c, const char *made, bool pooled,
                 const char *model, const pith_open_options *model_options, eval_texts *on) {
    evaluated e = { .c = c, .dim = on->dim, .vectors = { on->vectors, NULL } };
    figures->texts = on->count;
    int code = eval_place(&e, made, model, pooled);
    if (!code && !on->vectors) code = eval_embed(&e, 0, model, model_options, on->texts, on->count);
    on->vectors = e.vectors[0];
    on->dim = e.dim;
    if (!code) code = eval_embed(&e, 1, e.path, NULL, on->texts, on->count);
    if (!code) code = eval_compare(figures, &e);
    if (!code && on->scores)
        for (int i = 0; i < 2; i++) figures->sts[i] = eval_spearman(&e, e.vectors[i], on);
    temporary_folder_remove(e.folder);
    free(e.vectors[1]);
    return code;
}
