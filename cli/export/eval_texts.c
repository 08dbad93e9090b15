/* eval_texts.c - see eval_texts.h. */
#include "base/str.h"
#include "base/text_out.h"
#include "cli/export/eval_texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIRST, SECOND, SCORE, COLUMNS };

typedef struct pair_reader {
    eval_texts *t;
    const command *c;
    const char *path;
    size_t columns[COLUMNS];
    size_t record, *places, room; /* places: where each text begins in t->kept, and ends */
} pair_reader;

static bool eval_ends_in(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    return n > m && !strcasecmp(path + n - m, end);
}

static int eval_read_lines(eval_texts *t, const command *c, const char *path) {
    int code = text_lines_open(&t->lines, c, path, '\n');
    if (code) return code;
    t->of_lines = true;
    t->texts = grow(NULL, (t->lines.count + 1) * sizeof *t->texts);
    for (size_t i = 0; i < t->lines.count; i++) {
        const pith_str line = text_lines_get(&t->lines, i);
        if (line.size) t->texts[t->count++] = line;
    }
    return EXIT_DONE;
}

/* ---- pairs ---- */

static const char *const eval_column_names[COLUMNS][4] = {
    { "sentence1", "text1", "sentence_1", "s1" },
    { "sentence2", "text2", "sentence_2", "s2" },
    { "score", "label", "similarity", "similarity_score" }
};

/* The columns that the first record names. False: it is no header. */
static bool eval_take_header(pair_reader *r, const char *const *fields, size_t count) {
    size_t found[COLUMNS] = { SIZE_MAX, SIZE_MAX, SIZE_MAX };
    for (size_t i = 0; i < count; i++)
        for (int column = 0; column < COLUMNS; column++)
            for (int n = 0; n < 4; n++)
                if (!strcasecmp(fields[i], eval_column_names[column][n])) found[column] = i;
    for (int column = 0; column < COLUMNS; column++)
        if (found[column] == SIZE_MAX) return false;
    memcpy(r->columns, found, sizeof found);
    return true;
}

static void eval_keep(pair_reader *r, const char *text) {
    const size_t size = strlen(text);
    r->places[r->t->count++] = r->t->kept.size;
    bytes_add(&r->t->kept, text, size);
}

static int eval_take_record(pair_reader *r, const char *const *fields, size_t count, size_t line) {
    char *end;
    if (!r->record++ && eval_take_header(r, fields, count)) return EXIT_DONE;
    for (int i = 0; i < COLUMNS; i++)
        if (r->columns[i] >= count)
            return fail(r->c, "%s: line %zu has %zu columns; two texts and a score are needed",
                        r->path, line, count);
    const char *number = fields[r->columns[SCORE]];
    const double score = strtod(number, &end);
    if (end == number || *end || !isfinite(score))
        return fail(r->c, "%s: line %zu: '" PITH_CUT_FMT "' is no score", r->path, line,
                    PITH_CUT(pith__str_of(number), 60));
    if (r->t->count + 3 > r->room) {
        r->room = 2 * r->room + 1024;
        r->places = grow(r->places, r->room * sizeof *r->places);
        r->t->scores = grow(r->t->scores, r->room / 2 * sizeof *r->t->scores);
    }
    r->t->scores[r->t->count / 2] = score;
    eval_keep(r, fields[r->columns[FIRST]]);
    eval_keep(r, fields[r->columns[SECOND]]);
    return EXIT_DONE;
}

static int eval_read_csv(pair_reader *r) {
    bool there = true;
    int code = csv_in_open(&r->t->csv, r->c, r->path);
    r->t->of_csv = !code;
    while (!code && !(code = csv_in_next(&r->t->csv, r->c, &there)) && there)
        code = eval_take_record(r, r->t->csv.fields, r->t->csv.count, r->t->csv.line);
    return code;
}

/* Fields with tabs between, without quotes. */
static int eval_read_tsv(pair_reader *r) {
    bytes line = { NULL, 0, 0 };
    int code = text_lines_open(&r->t->lines, r->c, r->path, '\n');
    r->t->of_lines = !code;
    for (size_t i = 0; i < r->t->lines.count && !code; i++) {
        const pith_str text = text_lines_get(&r->t->lines, i);
        const char *fields[CSV_FIELDS];
        size_t count = 0;
        if (!text.size) continue;
        line.size = 0;
        bytes_add(&line, text.data, text.size);
        bytes_add(&line, "", 1);
        if (memchr(line.data, 0, text.size))
            code = fail(r->c, "%s: line %zu has a NUL byte", r->path, i + 1);
        if (!code)
            for (char *at = (char *)line.data; at && count < CSV_FIELDS; count++) {
                fields[count] = at;
                at = strchr(at, '\t');
                if (at) *at++ = 0;
            }
        if (!code) code = eval_take_record(r, fields, count, i + 1);
    }
    free(line.data);
    return code;
}

static int eval_read_pairs(eval_texts *t, const command *c, const char *path) {
    pair_reader r = { .t = t, .c = c, .path = path, .columns = { 0, 1, 2 } };
    int code = eval_ends_in(path, ".csv") ? eval_read_csv(&r) : eval_read_tsv(&r);
    t->texts = grow(NULL, (t->count + 1) * sizeof *t->texts);
    for (size_t i = 0; i < t->count; i++) {
        const size_t end = i + 1 < t->count ? r.places[i + 1] : t->kept.size;
        t->texts[i] = bytes_text(&t->kept, r.places[i], end);
    }
    free(r.places);
    return code;
}

int eval_texts_read(eval_texts *t, const command *c, const char *path) {
    const bool pairs = eval_ends_in(path, ".csv") || eval_ends_in(path, ".tsv");
    int code = pairs ? eval_read_pairs(t, c, path) : eval_read_lines(t, c, path);
    if (!code && !t->count) code = fail(c, "%s: there is no text to evaluate with", path);
    return code;
}

void eval_texts_free(eval_texts *t) {
    if (t->of_lines) text_lines_close(&t->lines);
    if (t->of_csv) csv_in_close(&t->csv);
    free(t->kept.data);
    free(t->texts);
    free(t->scores);
    free(t->vectors);
}
