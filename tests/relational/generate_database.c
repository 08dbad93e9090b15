/* generate_database.c - a database that nobody has seen before: CSV files and a schema, all decided
 * by a seed.
 *
 *     generate_database SEED DIRECTORY [LABELS]
 *
 * A graph of tables is drawn first: entities, some with parents among earlier ones, and tables of
 * events, which have times and one to three parents. Links follow blocks (rows of a block prefer
 * parents of theirs) and popularity. Each table then has a structural causal model: a row has
 * hidden components, which come from those of its parents and noise; each column is a function of a
 * few of them and of earlier columns, seen as a number, a category, a boolean or a text. The last
 * table has the boolean `target`: the logit is a function of the hidden components of the row's
 * parents, of a time trend and of columns. With LABELS only so many training rows keep their label.
 * The idea of graph, links and causal models is PluRel's (arXiv 2602.04029); nothing else is. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLES = 6,
    COLUMNS = 6,
    PARENTS = 3,
    HIDDEN = 3,
    BLOCKS = 4,
    ROWS = 3000,
    CATEGORIES = 6,
    DAYS = 720
};
#define TRAIN_SHARE 0.7
#define VALIDATION_SHARE 0.85

typedef enum kind { KIND_NUMBER, KIND_CATEGORY, KIND_BOOLEAN, KIND_TEXT, KIND_COUNT } kind;

typedef struct column {
    const char *name;
    kind kind;
    double hidden[HIDDEN], earlier, bend, noise, scale, shift, nulls;
    bool exponent;
    int values;
    const char *words[CATEGORIES];
} column;

typedef struct table {
    char name[40];
    bool events;
    int rows, parent_count, column_count;
    int parents[PARENTS];
    double inherit[PARENTS];
    column columns[COLUMNS];
    int block[ROWS], up[PARENTS][ROWS];
    double hidden[ROWS][HIDDEN], seen[ROWS][COLUMNS], popularity[ROWS];
    long second[ROWS];
} table;

typedef struct database {
    uint64_t state;
    table tables[TABLES];
    int table_count;
    double label[ROWS]; /* of the last table: 0 or 1, -1: none */
} database;

static const char *const nouns[] = { "city",  "shop",    "team",    "device",  "course", "ward",
                                     "route", "project", "farm",    "station", "club",   "author",
                                     "brand", "branch",  "vessel",  "parcel",  "studio", "clinic",
                                     "visit", "ticket",  "reading", "match",   "loan",   "trip",
                                     "order", "review",  "call" };
static const char *const things[] = { "size",  "level",  "rate",   "age",     "score",  "weight",
                                      "price", "grade",  "length", "amount",  "status", "kind",
                                      "class", "colour", "region", "segment", "note",   "comment",
                                      "title", "label",  "active", "valid",   "urgent", "premium" };
static const char *const words[] = { "red",    "north",  "small", "early",  "metal",  "quiet",
                                     "fresh",  "round",  "light", "rough",  "sweet",  "urban",
                                     "blue",   "south",  "large", "late",   "wooden", "loud",
                                     "frozen", "square", "heavy", "smooth", "sour",   "rural" };
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* SplitMix64, Steele, Lea and Flood, OOPSLA 2014. */
static uint64_t draw(database *d) {
    uint64_t z = (d->state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static double uniform(database *d) { return (double)(draw(d) >> 11) * 0x1p-53; }
static int below(database *d, int n) { return (int)(uniform(d) * n); }
static double normal(database *d) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform(d);
    return sum;
}

/* ---- the schema ---- */

static void draw_column(database *d, column *c) {
    const int first = below(d, COUNT(words));
    *c = (column){ .name = things[below(d, COUNT(things))], .kind = (kind)below(d, KIND_COUNT) };
    for (int i = 0; i < HIDDEN; i++) c->hidden[i] = uniform(d) < 0.6 ? normal(d) : 0;
    c->earlier = uniform(d) < 0.4 ? normal(d) : 0;
    c->bend = uniform(d) < 0.3 ? 1 : 0;
    c->noise = 0.2 + uniform(d);
    c->scale = exp(2 * normal(d));
    c->shift = normal(d) * 3;
    c->exponent = uniform(d) < 0.3;
    c->nulls = uniform(d) < 0.2 ? 0.1 : 0;
    c->values = 2 + below(d, CATEGORIES - 1);
    for (int i = 0; i < CATEGORIES; i++) c->words[i] = words[(first + i * 5) % COUNT(words)];
}

static void draw_table(database *d, int index, int entities) {
    table *t = &d->tables[index];
    t->events = index >= entities;
    snprintf(t->name, sizeof t->name, "%s_%d", nouns[below(d, COUNT(nouns))], index + 1);
    t->rows = t->events ? ROWS / 2 + below(d, ROWS / 2) : 20 + (int)(380 * uniform(d) * uniform(d));
    const int most = t->events ? PARENTS : 1;
    const int wanted = t->events ? 1 + below(d, most) : below(d, 2);
    for (int p = 0; p < (index < entities ? index : entities) && t->parent_count < wanted; p++) {
        const int left = (index < entities ? index : entities) - p;
        if (uniform(d) * left >= wanted - t->parent_count) continue;
        t->inherit[t->parent_count] = 0.3 + uniform(d);
        t->parents[t->parent_count++] = p;
    }
    t->column_count = (t->events ? 0 : 1) + 1 + below(d, COLUMNS - 2);
    for (int c = 0; c < t->column_count; c++) {
        bool taken = true;
        while (taken) {
            draw_column(d, &t->columns[c]);
            taken = false;
            for (int o = 0; o < c; o++) taken |= t->columns[o].name == t->columns[c].name;
        }
    }
}

/* ---- the rows ---- */

/* A parent of the row's block with 7 chances of 10, by popularity. */
static int draw_parent(database *d, const table *parent, int block) {
    const bool own = uniform(d) < 0.7;
    double sum = 0, at;
    for (int i = 0; i < parent->rows; i++)
        if (!own || parent->block[i] == block) sum += parent->popularity[i];
    at = uniform(d) * sum;
    for (int i = 0; i < parent->rows; i++)
        if ((!own || parent->block[i] == block) && (at -= parent->popularity[i]) < 0) return i;
    return below(d, parent->rows);
}

static void draw_rows(database *d, table *t) {
    for (int r = 0; r < t->rows; r++) {
        t->block[r] = below(d, BLOCKS);
        t->popularity[r] = exp(0.7 * normal(d));
        t->second[r] = (long)(86400.0 * DAYS * ((r + uniform(d)) / t->rows));
        for (int i = 0; i < HIDDEN; i++) t->hidden[r][i] = normal(d) * (t->events ? 0.5 : 1);
        for (int p = 0; p < t->parent_count; p++) {
            const table *parent = &d->tables[t->parents[p]];
            t->up[p][r] = draw_parent(d, parent, t->block[r]);
            for (int i = 0; i < HIDDEN; i++)
                t->hidden[r][i] += t->inherit[p] * parent->hidden[t->up[p][r]][i];
        }
        for (int c = 0; c < t->column_count; c++) {
            const column *from = &t->columns[c];
            double x = from->noise * normal(d);
            for (int i = 0; i < HIDDEN; i++) x += from->hidden[i] * t->hidden[r][i];
            if (c) x += from->earlier * t->seen[r][c - 1];
            t->seen[r][c] = from->bend > 0 ? 2 * tanh(x) : x;
        }
    }
}

/* Labels of the last table: hidden components of parents, a trend, own and parents' columns. */
static void draw_labels(database *d, int labels) {
    table *t = &d->tables[d->table_count - 1];
    double hidden[PARENTS][HIDDEN], own[COLUMNS], above[PARENTS][COLUMNS], x[ROWS], mean = 0,
                                                                                    square = 0;
    for (int p = 0; p < PARENTS; p++) {
        for (int i = 0; i < HIDDEN; i++) hidden[p][i] = normal(d);
        for (int c = 0; c < COLUMNS; c++) above[p][c] = uniform(d) < 0.4 ? 0.7 * normal(d) : 0;
    }
    for (int c = 0; c < COLUMNS; c++) own[c] = uniform(d) < 0.5 ? 0.7 * normal(d) : 0;
    const double trend = uniform(d) < 0.3 ? normal(d) : 0;
    for (int r = 0; r < t->rows; r++) {
        x[r] = trend * r / t->rows;
        for (int c = 0; c < t->column_count; c++) x[r] += own[c] * t->seen[r][c];
        for (int p = 0; p < t->parent_count; p++) {
            const table *parent = &d->tables[t->parents[p]];
            const int up = t->up[p][r];
            for (int i = 0; i < HIDDEN; i++) x[r] += hidden[p][i] * parent->hidden[up][i];
            for (int c = 0; c < parent->column_count; c++)
                x[r] += above[p][c] * parent->seen[up][c];
        }
        mean += x[r] / t->rows;
        square += x[r] * x[r] / t->rows;
    }
    const double strength = 1 + uniform(d), shift = normal(d) * 0.7,
                 deviation = sqrt(square - mean * mean) + 1e-9;
    for (int r = 0; r < t->rows; r++) {
        const double z = strength * (x[r] - mean) / deviation + shift;
        d->label[r] = uniform(d) < 1 / (1 + exp(-z));
    }
    const int trained = (int)(t->rows * TRAIN_SHARE);
    for (int r = 0, left = labels; labels && r < trained; r++) {
        if (uniform(d) * (trained - r) < left)
            left--;
        else
            d->label[r] = -1;
    }
}

/* ---- files ---- */

static FILE *open_file(const char *directory, const char *name, const char *end) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", directory, name, end);
    FILE *f = fopen(path, "w");
    if (!f) perror(path), exit(1);
    return f;
}

static void print_time(FILE *f, long second) {
    /* months of 30 days: every date is one */
    const long day = second / 86400, of_day = second % 86400;
    fprintf(f, "%04ld-%02ld-%02ldT%02ld:%02ld:%02ld", 2021 + day / 336, 1 + day % 336 / 28,
            1 + day % 28, of_day / 3600, of_day / 60 % 60, of_day % 60);
}

static void print_cell(FILE *f, database *d, const column *c, double x) {
    if (uniform(d) < c->nulls) return;
    const double within = 1 / (1 + exp(-x));
    const char *word = c->words[(int)(within * 0.999 * c->values)];
    if (c->kind == KIND_NUMBER)
        fprintf(f, "%.5g", c->exponent ? c->scale * exp(0.5 * x) : c->scale * (x + c->shift));
    else if (c->kind == KIND_CATEGORY)
        fprintf(f, "%s", word);
    else if (c->kind == KIND_BOOLEAN)
        fprintf(f, "%s", x > c->shift / 6 ? "true" : "false");
    else
        fprintf(f, "%s %s %s", words[below(d, COUNT(words))], word, words[below(d, COUNT(words))]);
}

static void write_table(database *d, const char *directory, int index) {
    const table *t = &d->tables[index];
    const bool last = index == d->table_count - 1;
    FILE *f = open_file(directory, t->name, ".csv");
    fprintf(f, "id");
    for (int p = 0; p < t->parent_count; p++) fprintf(f, ",%s_id", d->tables[t->parents[p]].name);
    if (t->events) fprintf(f, ",at");
    for (int c = 0; c < t->column_count; c++) fprintf(f, ",%s", t->columns[c].name);
    fprintf(f, "%s\n", last ? ",target" : "");
    for (int r = 0; r < t->rows; r++) {
        fprintf(f, "%d", r);
        for (int p = 0; p < t->parent_count; p++) fprintf(f, ",%d", t->up[p][r]);
        if (t->events) fprintf(f, ","), print_time(f, t->second[r]);
        for (int c = 0; c < t->column_count; c++)
            fprintf(f, ","), print_cell(f, d, &t->columns[c], t->seen[r][c]);
        if (last) fprintf(f, ",%s", d->label[r] < 0 ? "" : d->label[r] > 0 ? "true" : "false");
        fprintf(f, "\n");
    }
    if (fclose(f)) perror(t->name), exit(1);
}

static void write_column(FILE *f, const char *name, const char *stype, const char *parent) {
    fprintf(f, ", \"%s\": {\"stype\": \"%s\"", name, stype);
    if (parent) fprintf(f, ", \"foreign_key\": \"%s.id\"", parent);
    fprintf(f, "}");
}

static void write_schema(const database *d, const char *directory) {
    static const char *const stypes[KIND_COUNT] = { "numerical", "categorical", "boolean", "text" };
    const table *last = &d->tables[d->table_count - 1];
    FILE *f = open_file(directory, "schema", ".json");
    fprintf(f, "{\"name\": \"generated\", \"tables\": {");
    for (int i = 0; i < d->table_count; i++) {
        const table *t = &d->tables[i];
        fprintf(f,
                "%s\"%s\": {\"file\": \"%s.csv\", \"primary_key\": \"id\",%s \"columns\": {\"id\": "
                "{\"stype\": "
                "\"identifier\"}",
                i ? ", " : "", t->name, t->name, t->events ? " \"temporal_column\": \"at\"," : "");
        for (int p = 0; p < t->parent_count; p++) {
            char name[60];
            snprintf(name, sizeof name, "%s_id", d->tables[t->parents[p]].name);
            write_column(f, name, "identifier", d->tables[t->parents[p]].name);
        }
        if (t->events) write_column(f, "at", "timestamp", NULL);
        for (int c = 0; c < t->column_count; c++)
            write_column(f, t->columns[c].name, stypes[t->columns[c].kind], NULL);
        if (t == last) write_column(f, "target", "boolean", NULL);
        fprintf(f, "}}");
    }
    fprintf(
        f,
        "}, \"tasks\": {\"target\": {\"anchor_table\": \"%s\", \"target_column\": \"target\", "
        "\"observation_time_column\": \"at\", \"split\": {\"kind\": \"time\", \"train_until\": \"",
        last->name);
    print_time(f, last->second[(int)(last->rows * TRAIN_SHARE)]);
    fprintf(f, "\", \"validation_until\": \"");
    print_time(f, last->second[(int)(last->rows * VALIDATION_SHARE)]);
    fprintf(f, "\"}}}}\n");
    if (fclose(f)) perror("schema.json"), exit(1);
}

int main(int argc, char **argv) {
    static database d;
    if (argc < 3) return fprintf(stderr, "usage: generate_database SEED DIRECTORY [LABELS]\n"), 2;
    d.state = strtoull(argv[1], NULL, 10) * 0xD1342543DE82EF95u + 1;
    const int entities = 1 + below(&d, TABLES - 3), events = 1 + below(&d, 2);
    d.table_count = entities + events;
    for (int i = 0; i < d.table_count; i++) draw_table(&d, i, entities);
    for (int i = 0; i < d.table_count; i++) draw_rows(&d, &d.tables[i]);
    draw_labels(&d, argc > 3 ? atoi(argv[3]) : 0);
    for (int i = 0; i < d.table_count; i++) write_table(&d, argv[2], i);
    write_schema(&d, argv[2]);
    return 0;
}
