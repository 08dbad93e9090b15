/* trim.c - makes the lists of a selective build: those of src/select without what the build does
 * not need.
 *
 * CMake compiles it for the building machine and runs it when it configures (cmake/select.cmake).
 * It reads the lists as text, the wanted pieces from files of `pith select` and from names, and
 * writes the trimmed lists to another folder, from which select/tables.c is compiled. A piece that
 * does not exist is an error that names those nearest to it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/select/piece_file.h"

/* Which entries of which file make up a kind of piece. */
static const struct {
    piece_kind kind;
    const char *file, *macro, *other; /* other: a second macro for the same kind, or NULL */
} sources[] = {
    { PIECE_OPERATORS, "ops", "OP", NULL },
    /* of programs: their second argument is the name */
    { PIECE_OPERATORS, "extra_ops", "EXTRA_OP", NULL },
    { PIECE_KERNELS, "kernels", "KERNEL", "PLAIN" },
    { PIECE_PASSES, "passes", "PASS", NULL },
    { PIECE_RAGGED, "ragged", "RAGGED", NULL },
    { PIECE_READERS, "readers", "READER", NULL },
    { PIECE_FAMILIES, "families", "FAMILY", NULL },
    { PIECE_TASKS, "tasks", "TASK", NULL },
    { PIECE_MODULES, "modules", "MODULE", "REFUSED" },
    { PIECE_HEADS, "heads", "HEAD", NULL },
    { PIECE_TOKENIZER_SOURCES, "tokenizers", "SOURCE", NULL },
    { PIECE_NORMALIZERS, "tokenizers", "NORMALIZER", NULL },
    { PIECE_PRE_TOKENIZERS, "tokenizers", "PRE_TOKENIZER", NULL },
    { PIECE_TOKENIZER_MODELS, "tokenizers", "MODEL", NULL },
    { PIECE_DECODERS, "tokenizers", "DECODER", NULL },
    { PIECE_RUNTIMES, "runtimes", "RUNTIME", NULL },
    { PIECE_PARTS, "parts", "PART", NULL },
};
enum {
    SOURCES = sizeof sources / sizeof *sources,
    NAME_MOST = 256,
    LINE_MOST = 1024,
    EXTRAS_MOST = 64
};

/* What a verb of the command cannot work without: any of these pieces, of one kind. */
static const struct {
    const char *verb;
    piece_kind kind;
    const char *pieces; /* NULL: any piece of the kind */
} verb_needs[] = {
    { "detect", PIECE_HEADS, "mtcnn yunet" },
    { "embed", PIECE_HEADS, "dense sparse sparse_code multi_vector tokens bm42 minicoil" },
    { "similarity", PIECE_HEADS, "dense" },
    { "search", PIECE_HEADS, "dense" },
    { "rerank", PIECE_HEADS, "scores" },
    { "classify", PIECE_HEADS, "scores" },
    { "tokenize", PIECE_TOKENIZER_MODELS, NULL },
    { "detokenize", PIECE_TOKENIZER_MODELS, NULL },
    { "compile", PIECE_READERS, "onnx safetensors" },
    { "export", PIECE_READERS, "safetensors" },
    { "verify", PIECE_READERS, "onnx" },
};

typedef struct trim {
    const char *source, *output;
    const char *extras[EXTRAS_MOST]; /* lists of operators outside the tree */
    size_t extra_count;
    piece_list asked;         /* kernels that pieces of the build may look for */
    piece_list wanted, known; /* known: symbols; of operators outside the tree, names with their
                                 domain */
    bool dtypes;
} trim;

static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void keep(piece_list *list, piece_kind kind, const char *name, uint32_t facts) {
    if (!piece_list_add(list, kind, name, strlen(name), facts)) die("out of memory");
}

/* ---- names and symbols ---- */

static void symbol_of(char *symbol, const char *name) { piece_symbol(symbol, NAME_MOST, name); }
static void name_of(char *name, const char *symbol) { piece_name(name, NAME_MOST, symbol); }

/* Insertions, deletions and changes that make one name of the other; letters count as equal in both
 * cases. */
static size_t distance(const char *a, const char *b) {
    size_t row[NAME_MOST + 1], n = strlen(b);
    if (n > NAME_MOST) n = NAME_MOST;
    for (size_t k = 0; k <= n; k++) row[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            size_t change = corner + ((a[i] | 32) != (b[k] | 32)), shorter = row[k] + 1,
                   longer = row[k + 1] + 1;
            corner = row[k + 1];
            size_t least = change < shorter ? change : shorter;
            row[k + 1] = least < longer ? least : longer;
        }
    }
    return row[n];
}

/* Whether a name is a part of another. */
static size_t rate(const char *typed, const char *name) {
    return strstr(name, typed) ? 1 : distance(typed, name);
}

static void die_unknown(const trim *t, piece_kind kind, const char *typed) {
    const piece_names *known = &t->known.kinds[kind];
    char text[4 * NAME_MOST] = "", name[NAME_MOST];
    bool shown[1024] = { false };
    for (int n = 0; n < 3; n++) {
        size_t best = SIZE_MAX, at = 0;
        for (size_t i = 0; i < known->count && i < sizeof shown; i++) {
            name_of(name, known->items[i].name);
            const char *meant = kind == PIECE_OPERATORS ? name : known->items[i].name;
            size_t r = shown[i] ? SIZE_MAX : rate(typed, meant);
            if (r < best) best = r, at = i;
        }
        if (best == SIZE_MAX) break;
        shown[at] = true;
        name_of(name, known->items[at].name);
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", n ? ", " : "",
                 kind == PIECE_OPERATORS ? name : known->items[at].name);
    }
    die("%s: this Pith has no '%s'; the nearest are %s", piece_kind_names[kind], typed, text);
}

/* ---- reading the lists ---- */

static FILE *open_list(const char *folder, const char *file, const char *mode) {
    char path[LINE_MOST];
    snprintf(path, sizeof path, "%s/%s.def", folder, file);
    FILE *f = fopen(path, mode);
    if (!f) die("%s cannot be opened", path);
    return f;
}

/* The arguments of an entry "MACRO(first, second …)"; false: the line is no entry of this macro. */
static bool parse_entry(const char *line, const char *macro, char *first, char *second) {
    size_t n = strlen(macro);
    if (!macro[0] || strncmp(line, macro, n) || line[n] != '(') return false;
    return sscanf(line + n + 1, "%255[A-Za-z0-9_]%*[, ]%255[^,)]", first, second) >= 1;
}

/* The source whose entry the line is, or -1. */
static int entry_of(const char *file, const char *line, char *first, char *second) {
    for (int i = 0; i < SOURCES; i++) {
        if (strcmp(sources[i].file, file)) continue;
        second[0] = 0;
        if (parse_entry(line, sources[i].macro, first, second)) {
            if (!strcmp(file, "extra_ops")) strcpy(first, second);
            return i;
        }
        if (sources[i].other && parse_entry(line, sources[i].other, first, second)) return i;
    }
    return -1;
}

/* A line of a list outside the tree, which has nothing but entries and comments. */
static void check_extra(const trim *t, const char *path, const char *line, const char *name,
                        int source) {
    char symbol[NAME_MOST], plain[NAME_MOST];
    const size_t blanks = strspn(line, " \t\r\n");
    if (source < 0 && (!line[blanks] || strchr("/*", line[blanks]))) return;
    if (source < 0 || !name[0])
        die("EXTRA_OPS: %s: '%.*s' is no entry; write EXTRA_OP(symbol, domain::Name)", path,
            (int)strcspn(line, "\r\n"), line);
    symbol_of(symbol, name);
    name_of(plain, symbol);
    if (piece_list_find(&t->known, PIECE_OPERATORS, symbol) && !strcmp(plain, name))
        die("EXTRA_OPS: %s: Pith has an operator '%s'; choose another domain or name", path, name);
    if (piece_list_find(&t->known, PIECE_OPERATORS, name))
        die("EXTRA_OPS: %s: '%s' is listed twice", path, name);
}

/* List n of a file; lists outside the tree stand behind the tree's own. NULL: there is none. */
static FILE *open_part(const trim *t, const char *file, size_t n) {
    if (!n) return open_list(t->source, file, "r");
    if (strcmp(file, "extra_ops") || n > t->extra_count) return NULL;
    FILE *f = fopen(t->extras[n - 1], "r");
    if (!f) die("EXTRA_OPS: %s cannot be opened", t->extras[n - 1]);
    return f;
}

static void read_known(trim *t) {
    char line[LINE_MOST], first[NAME_MOST], second[NAME_MOST];
    for (int i = 0; i < SOURCES; i++) {
        t->known.kinds[sources[i].kind].listed = true;
        FILE *f;
        for (size_t n = 0; (f = open_part(t, sources[i].file, n)); n++, fclose(f)) {
            while (fgets(line, sizeof line, f)) {
                const int source = entry_of(sources[i].file, line, first, second);
                if (n) check_extra(t, t->extras[n - 1], line, second, source);
                if (source != i || !strncmp(line, "REFUSED", 7)) continue;
                int dtype =
                    sources[i].kind == PIECE_KERNELS ? piece_dtype_find(second, strlen(second)) : 0;
                if (dtype < 0) die("%s.def: dtype '%s' is unknown", sources[i].file, second);
                keep(&t->known, sources[i].kind, first, 1u << dtype);
            }
        }
    }
}

/* The key of an operator among those that are known. */
static void key_of(const trim *t, char *key, const char *name) {
    if (strstr(name, "::") && piece_list_find(&t->known, PIECE_OPERATORS, name))
        snprintf(key, NAME_MOST, "%s", name);
    else
        symbol_of(key, name);
}

/* Operators go by their symbols from here on. */
static void check_wanted(trim *t) {
    for (int k = 0; k < PIECE_KINDS; k++) {
        piece_names *names = &t->wanted.kinds[k];
        if (k == PIECE_ISAS) continue;
        for (size_t i = 0; i < names->count; i++) {
            char symbol[NAME_MOST];
            snprintf(symbol, sizeof symbol, "%s", names->items[i].name);
            if (k == PIECE_OPERATORS) key_of(t, symbol, names->items[i].name);
            if (!piece_list_find(&t->known, (piece_kind)k, symbol))
                die_unknown(t, (piece_kind)k, names->items[i].name);
        }
    }
    piece_names given = t->wanted.kinds[PIECE_OPERATORS];
    t->wanted.kinds[PIECE_OPERATORS] = (piece_names){ .listed = given.listed };
    for (size_t i = 0; i < given.count; i++) {
        char symbol[NAME_MOST];
        key_of(t, symbol, given.items[i].name);
        keep(&t->wanted, PIECE_OPERATORS, symbol, given.items[i].facts);
    }
}

/* ---- what follows from the lists ---- */

static bool wants(const trim *t, piece_kind kind, const char *name) {
    return !t->wanted.kinds[kind].listed || piece_list_find(&t->wanted, kind, name);
}

/* The rows of a family that work on the dtypes: their own; those of f32 for the halves, which it
 * computes; all, if there is none, because the family then computes in another dtype. */
static void keep_family(trim *t, const char *family, uint32_t dtypes) {
    const piece_item *known = piece_list_find(&t->known, PIECE_KERNELS, family);
    if (!known) die("needs.def: there is no kernel family '%s'", family);
    const uint32_t halves = 1u << piece_dtype_find("f16", 3) | 1u << piece_dtype_find("bf16", 4);
    if (dtypes & halves)
        dtypes = (dtypes & ~halves) | 1u << piece_dtype_find("f32", 3) |
                 (dtypes & halves & known->facts);
    const piece_item *quick =
        strncmp(family, "map_", 4) ? NULL : piece_list_find(&t->known, PIECE_KERNELS, family + 4);
    /* map_add is asked for where add has no row */
    if (dtypes && quick && !(dtypes & ~quick->facts)) return;
    keep(&t->wanted, PIECE_KERNELS, family,
         dtypes & known->facts ? dtypes & known->facts : known->facts);
}

/* Calls act for each word of the rest of an entry "MACRO(kind, piece, words …)". */
static bool for_needs(const trim *t, const char *macro,
                      bool (*act)(void *user, const char *kind, const char *piece,
                                  const char *word),
                      void *user) {
    char line[LINE_MOST];
    FILE *f = open_list(t->source, "needs", "r");
    bool good = true;
    while (fgets(line, sizeof line, f)) {
        char *close = strrchr(line, ')');
        if (strncmp(line, macro, strlen(macro)) || !close) continue;
        *close = 0;
        char *kind = strtok(line + strlen(macro) + 1, ", "), *piece = strtok(NULL, ", ");
        if (!kind || !piece) continue;
        for (char *word; (word = strtok(NULL, " "));) good &= act(user, kind, piece, word);
    }
    fclose(f);
    return good;
}

/* Whether the line of needs.def speaks of no piece, but of code that is always there, or of what a
 * verb takes. */
static bool is_library(const char *kind) {
    return !strcmp(kind, "library") || !strcmp(kind, "vectors");
}

static bool add_kernels(void *user, const char *kind, const char *piece, const char *family) {
    trim *t = user;
    const bool library = is_library(kind);
    const piece_names *heads = &t->wanted.kinds[PIECE_HEADS];
    if (!strcmp(kind, "verbs") || (!strcmp(kind, "vectors") && heads->listed && !heads->count))
        return true;
    const piece_kind k = library ? PIECE_KINDS : piece_kind_find(kind, strlen(kind));
    if (!library && !wants(t, k, piece)) return true;
    const piece_item *item = library ? NULL : piece_list_find(&t->wanted, k, piece);
    keep_family(t, family, item ? item->facts & ~PIECE_UPGRADED : 0);
    return true;
}

/* With operators but no kernels in the list, the operators say which kernels they need. */
static void derive_kernels(trim *t) {
    if (!t->wanted.kinds[PIECE_OPERATORS].listed || t->wanted.kinds[PIECE_KERNELS].listed) return;
    t->wanted.kinds[PIECE_KERNELS].listed = true;
    for_needs(t, "KERNELS", add_kernels, t);
}

typedef struct lack {
    const trim *t;
    piece_kind kind;
    const char *piece;
} lack;

/* False if the piece makes an operator that is not there. */
static bool has_made(void *user, const char *kind, const char *piece, const char *symbol) {
    const lack *l = user;
    if (piece_kind_find(kind, strlen(kind)) != l->kind || strcmp(piece, l->piece)) return true;
    return wants(l->t, PIECE_OPERATORS, symbol);
}

/* With operators but no passes in the list, those passes stay whose operators are there. The same
 * holds for rules. */
static void derive_makers(trim *t, piece_kind kind) {
    if (!t->wanted.kinds[PIECE_OPERATORS].listed || t->wanted.kinds[kind].listed) return;
    for (size_t i = 0; i < t->known.kinds[kind].count; i++) {
        lack l = { t, kind, t->known.kinds[kind].items[i].name };
        if (for_needs(t, "MAKES", has_made, &l)) keep(&t->wanted, kind, l.piece, 0);
    }
    t->wanted.kinds[kind].listed = true;
}

/* ---- writing ---- */

static bool keeps_entry(const trim *t, int source, const char *first, const char *second,
                        const char *line) {
    piece_kind kind = sources[source].kind;
    if (!strncmp(line, "REFUSED", 7)) return !t->wanted.kinds[kind].listed;
    if (!wants(t, kind, first)) return false;
    const piece_item *item =
        kind == PIECE_KERNELS && t->dtypes ? piece_list_find(&t->wanted, kind, first) : NULL;
    uint32_t dtypes = item ? item->facts & ~PIECE_UPGRADED : 0;
    return !dtypes || dtypes >> piece_dtype_find(second, strlen(second)) & 1;
}

/* The file without what is not wanted. What is no entry stays. */
static void write_list(const trim *t, const char *file) {
    char line[LINE_MOST], first[NAME_MOST], second[NAME_MOST];
    FILE *from, *to = open_list(t->output, file, "w");
    for (size_t n = 0; (from = open_part(t, file, n)); n++, fclose(from)) {
        while (fgets(line, sizeof line, from)) {
            int source = entry_of(file, line, first, second);
            if (source < 0 || keeps_entry(t, source, first, second, line)) fputs(line, to);
        }
        if (n) fputc('\n', to);
    }
    if (fclose(to)) die("%s/%s.def cannot be written", t->output, file);
}

/* ---- what is left out ---- */

/* Kinds whose pieces models name in other words, see base/left_out_pieces.h. */
static bool is_small(piece_kind kind) {
    return kind == PIECE_READERS || kind == PIECE_FAMILIES || kind == PIECE_TASKS ||
           kind == PIECE_MODULES || kind == PIECE_HEADS || kind == PIECE_TOKENIZER_SOURCES ||
           kind == PIECE_RUNTIMES || kind == PIECE_PARTS;
}

/* FNV-1a, as base/left_out_pieces.c has it. */
static void write_hash(FILE *to, const char *kind, const char *name, const char *dtype) {
    char text[3 * NAME_MOST];
    uint32_t hash = 2166136261u;
    snprintf(text, sizeof text, "%s %s%s%s", kind, name, dtype[0] ? " " : "", dtype);
    for (const char *at = text; *at; at++) hash = (hash ^ (uint8_t)*at) * 16777619u;
    fprintf(to, "DROPPED(0x%08xu) /* %s */\n", (unsigned)hash, text);
}

/* levels: those of the target, with blanks between them. */
static void write_dropped_levels(FILE *to, const trim *t, const char *levels) {
    char level[NAME_MOST];
    int size;
    for (const char *at = levels; sscanf(at, "%255s%n", level, &size) == 1; at += size)
        if (!wants(t, PIECE_ISAS, level)) fprintf(to, "DROPPED_SPEED(\"isas %s\")\n", level);
}

/* Notes a family that a piece of the build asks for. */
static bool note_asked(void *user, const char *kind, const char *piece, const char *family) {
    trim *t = user;
    const bool other = is_library(kind) || !strcmp(kind, "verbs");
    if (other || wants(t, piece_kind_find(kind, strlen(kind)), piece))
        keep(&t->asked, PIECE_KERNELS, family, 0);
    return true;
}

/* Whether nothing that is left can ask for a piece of this kind. */
static bool is_unasked(const trim *t, piece_kind kind, const char *name) {
    const bool texts = wants(t, PIECE_PARTS, "texts");
    const piece_names *models = &t->wanted.kinds[PIECE_TOKENIZER_MODELS];
    switch (kind) {
    case PIECE_KERNELS:
        return t->wanted.kinds[PIECE_OPERATORS].listed && !piece_list_find(&t->asked, kind, name) &&
               !(!strncmp(name, "map_", 4) && piece_list_find(&t->asked, kind, name + 4));
    case PIECE_FAMILIES:
    case PIECE_TASKS: return !wants(t, PIECE_READERS, "safetensors");
    case PIECE_MODULES: return !texts;
    case PIECE_TOKENIZER_SOURCES:
    case PIECE_NORMALIZERS:
    case PIECE_PRE_TOKENIZERS:
    case PIECE_TOKENIZER_MODELS:
    case PIECE_DECODERS: return !texts && models->listed && !models->count;
    default: return false;
    }
}

static void write_dropped(trim *t, const char *levels) {
    for_needs(t, "KERNELS", note_asked, t);
    FILE *to = open_list(t->output, "dropped", "w");
    char name[NAME_MOST];
    for (int k = 0; k < PIECE_KINDS; k++) {
        const piece_names *known = &t->known.kinds[k];
        for (size_t i = 0; i < known->count; i++) {
            if (is_unasked(t, (piece_kind)k, known->items[i].name)) continue;
            const piece_item *item =
                piece_list_find(&t->wanted, (piece_kind)k, known->items[i].name);
            const bool kept = wants(t, (piece_kind)k, known->items[i].name);
            uint32_t left = item && t->dtypes ? item->facts & ~PIECE_UPGRADED : 0;
            if (!kept)
                left = known->items[i].facts;
            else if (left)
                left = known->items[i].facts & ~left;
            if (k == PIECE_KERNELS) {
                for (int d = 0; d < PIECE_DTYPES; d++)
                    if (left >> d & 1)
                        write_hash(to, piece_kind_names[k], known->items[i].name, piece_dtypes[d]);
            }
            if (kept || k == PIECE_KERNELS) continue;
            name_of(name, known->items[i].name);
            /* for options that ask for one */
            if (k == PIECE_PASSES) write_hash(to, "passes", name, "");
            if (k == PIECE_PASSES || k == PIECE_RAGGED)
                fprintf(to, "DROPPED_SPEED(\"%s %s\")\n", piece_kind_names[k],
                        known->items[i].name);
            else if (is_small((piece_kind)k))
                fprintf(to, "DROPPED_NAME(\"%s %s\")\n", piece_kind_names[k], known->items[i].name);
            else
                write_hash(to, piece_kind_names[k],
                           k == PIECE_OPERATORS ? name : known->items[i].name, "");
        }
    }
    if (t->wanted.kinds[PIECE_ISAS].listed && !wants(t, PIECE_ISAS, "scalar"))
        write_hash(to, "isas", "scalar", "");
    write_dropped_levels(to, t, levels);
    if (fclose(to)) die("%s/dropped.def cannot be written", t->output);
}

/* levels: those of the target, worst first, with blanks between them. */
static void write_isas(const trim *t, const char *levels) {
    char level[NAME_MOST], all[NAME_MOST];
    FILE *to = open_list(t->output, "isas", "w");
    size_t count = 0;
    for (size_t i = 0; i < t->wanted.kinds[PIECE_ISAS].count; i++) {
        const char *isa = t->wanted.kinds[PIECE_ISAS].items[i].name;
        snprintf(all, sizeof all, " %s ", levels);
        snprintf(level, sizeof level, " %s ", isa);
        if (!strstr(all, level)) die("isas: this target has no '%s'; it has %s", isa, levels);
    }
    fprintf(
        to,
        "/* The instruction set levels of this build, worst first. */\n#define PITH_ISAS(X, ...)");
    for (const char *at = levels; sscanf(at, "%255s", level) == 1; at += strlen(level) + 1) {
        if (wants(t, PIECE_ISAS, level)) {
            fprintf(to, " X(%s, __VA_ARGS__)", level);
            printf("%s%s", count++ ? " " : "", level);
        }
        if (strlen(at) <= strlen(level)) break;
    }
    fputc('\n', to);
    if (fclose(to)) die("%s/isas.def cannot be written", t->output);
    if (!count) die("isas: none of the target's is left; it has %s", levels);
}

typedef struct verb_lacks {
    const trim *t;
    const char *verb;
    char text[LINE_MOST]; /* lines to add to the list, as messages of the library have them; "": the
                             verb works */
} verb_lacks;

static void verb_note(verb_lacks *v, const char *before, const char *piece, const char *kind) {
    const size_t used = strlen(v->text);
    snprintf(v->text + used, sizeof v->text - used, "%s'- %s' under '%s:'", used ? before : "",
             piece, kind);
}

/* Notes a family that the verb cannot work without and that is not there. */
static bool verb_has(void *user, const char *kind, const char *piece, const char *family) {
    verb_lacks *v = user;
    if (!strcmp(kind, "verbs") && !strcmp(piece, v->verb) && !wants(v->t, PIECE_KERNELS, family))
        verb_note(v, ", ", family, "kernels");
    return true;
}

/* Notes the pieces that would do, if none of them is there. */
static void verb_check(verb_lacks *v, piece_kind kind, const char *pieces) {
    const piece_names *names = &v->t->wanted.kinds[kind];
    char piece[NAME_MOST];
    if (!names->listed || (!pieces && names->count)) return;
    for (const char *at = pieces; at && sscanf(at, "%255s", piece) == 1; at = strchr(at + 1, ' '))
        if (piece_list_find(&v->t->wanted, kind, piece)) return;
    if (!pieces) verb_note(v, ", ", "NAME", piece_kind_names[kind]);
    for (const char *at = pieces; at && sscanf(at, "%255s", piece) == 1; at = strchr(at + 1, ' '))
        verb_note(v, at > pieces ? " or " : ", ", piece, piece_kind_names[kind]);
}

/* A line LEFT_OUT for what verbs.def has of a verb that lacks something. */
static bool verb_works(verb_lacks *v) {
    v->text[0] = 0;
    for_needs(v->t, "KERNELS", verb_has, v);
    for (size_t i = 0; i < sizeof verb_needs / sizeof *verb_needs; i++)
        if (!strcmp(verb_needs[i].verb, v->verb))
            verb_check(v, verb_needs[i].kind, verb_needs[i].pieces);
    /* it would miss what is left out */
    if (!strcmp(v->verb, "select") && v->t->wanted.kinds[PIECE_OPERATORS].listed)
        snprintf(v->text, sizeof v->text,
                 "all pieces, because it lists which of them a model uses");
    return !v->text[0];
}

static void write_verbs(const trim *t, const char *from_folder, const char *to_folder) {
    char line[LINE_MOST], verb[NAME_MOST];
    FILE *from = open_list(from_folder, "verbs", "r"), *to = open_list(to_folder, "verbs", "w");
    while (fgets(line, sizeof line, from)) {
        verb_lacks v = { .t = t, .verb = verb };
        if (sscanf(line, "VERB(%255[a-z])", verb) != 1 || verb_works(&v))
            fputs(line, to);
        else
            fprintf(to, "LEFT_OUT(%s, \"%s\")\n", verb, v.text);
    }
    fclose(from);
    if (fclose(to)) die("%s/verbs.def cannot be written", to_folder);
}

/* ---- the call ---- */

static void take_file(trim *t, const char *path, bool first) {
    char message[LINE_MOST];
    piece_list next = { 0 };
    piece_list *read = first ? &t->wanted : &next;
    if (!piece_file_read(read, path, message, sizeof message)) die("%s", message);
    bool limits = false;
    for (int k = 0; k < PIECE_KINDS; k++) limits = limits || read->kinds[k].listed;
    if (!limits)
        die("%s: the list names no kind of piece, so it would leave nothing out; write what it "
            "limits",
            path);
    if (!first && !piece_list_unite(&t->wanted, &next)) die("out of memory");
    piece_list_free(&next);
}

/* Cuts "/f32/i64" off the name. 0: it has no such end. */
static uint32_t take_dtypes(char *name) {
    uint32_t facts = 0;
    char *at = strchr(name, '/');
    while (at) {
        char *next = strchr(at + 1, '/');
        *at++ = 0;
        if (next) *next = 0;
        const int dtype = piece_dtype_find(at, strlen(at));
        if (dtype < 0)
            die("operators: '%s' behind %s is no dtype; write names such as f32, i64 and bool", at,
                name);
        facts |= 1u << dtype;
        at = next;
    }
    return facts;
}

/* A name of OPS_LIST: an operator, or a piece of another kind with the kind before it, such as
 * parts:branches. */
static void take_name(piece_list *own, char *name) {
    const size_t size = strcspn(name, ":");
    piece_kind kind = PIECE_OPERATORS;
    if (name[size] == ':' && name[size + 1] != ':') {
        kind = piece_kind_find(name, size);
        if (kind == PIECE_KINDS || kind == PIECE_ISAS)
            die("'%s': '%.*s' is no kind of piece; write an operator, or a kind and a piece such "
                "as parts:branches",
                name, (int)size, name);
        name += size + 1;
    }
    if (!strncmp(name, "ai.onnx::", 9)) name += 9;
    keep(own, kind, name, kind == PIECE_OPERATORS || kind == PIECE_KERNELS ? take_dtypes(name) : 0);
}

/* What a build for operators alone holds beside them and what needs.def says of them: it runs ONNX
 * files and compiled ones. */
static void limit_to_runs(trim *t) {
    static const struct {
        piece_kind kind;
        const char *name;
    } held[] = { { PIECE_READERS, "compiled" },
                 { PIECE_READERS, "onnx" },
                 { PIECE_RUNTIMES, "builtin" },
                 { PIECE_PARTS, "tails" },
                 { PIECE_PARTS, "threads" } };
    for (int k = 0; k < PIECE_KINDS; k++) {
        const bool derived = k == PIECE_KERNELS || k == PIECE_PASSES;
        t->wanted.kinds[k].listed = !derived && k != PIECE_ISAS;
    }
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        keep(&t->wanted, held[i].kind, held[i].name, 0);
}

static bool add_own_kernels(void *user, const char *kind, const char *piece, const char *family) {
    return strcmp(kind, "operators") != 0 || add_kernels(user, kind, piece, family);
}

static bool add_parts(void *user, const char *kind, const char *piece, const char *part) {
    trim *t = user;
    if (piece_list_find(&t->wanted, piece_kind_find(kind, strlen(kind)), piece))
        keep(&t->wanted, PIECE_PARTS, part, 0);
    return true;
}

/* What OPS_LIST names, added to what files list. The operators bring their kernels and parts.
 * Pieces of other kinds go to *more. alone: there are no files. */
static void take_operators(trim *t, char *names, bool alone, piece_list *more) {
    trim own = { .source = t->source, .known = t->known };
    for (char *name = strtok(names, ",; "); name; name = strtok(NULL, ",; "))
        take_name(&own.wanted, name);
    bool any = false;
    for (int k = 0; k < PIECE_KINDS; k++) any = any || own.wanted.kinds[k].count;
    if (!any || (alone && !own.wanted.kinds[PIECE_OPERATORS].count))
        die("the list of operators is empty; name some, or leave it out");
    check_wanted(&own);
    if (alone) limit_to_runs(t);
    for (size_t i = 0; i < own.wanted.kinds[PIECE_OPERATORS].count; i++) {
        const piece_item *item = &own.wanted.kinds[PIECE_OPERATORS].items[i];
        keep(&t->wanted, PIECE_OPERATORS, item->name, item->facts);
    }
    for_needs(t, "KERNELS", add_own_kernels, &own);
    for_needs(t, "PARTS", add_parts, &own);
    *more = own.wanted;
}

/* A kind that is not limited has them already. */
static void add_more(trim *t, const piece_list *more) {
    for (int k = PIECE_KERNELS; k < PIECE_KINDS; k++)
        for (size_t i = 0; i < more->kinds[k].count && t->wanted.kinds[k].listed; i++)
            keep(&t->wanted, (piece_kind)k, more->kinds[k].items[i].name,
                 more->kinds[k].items[i].facts);
}

int main(int argc, char **argv) {
    trim t = { .dtypes = false };
    const char *levels = "scalar", *verbs = NULL, *verbs_output = NULL;
    char *operators = NULL, *isas = NULL;
    bool files = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        char *value = argv[i + 1];
        if (!strcmp(argv[i], "--source"))
            t.source = value;
        else if (!strcmp(argv[i], "--output"))
            t.output = value;
        else if (!strcmp(argv[i], "--levels"))
            levels = value;
        else if (!strcmp(argv[i], "--isas"))
            isas = value;
        else if (!strcmp(argv[i], "--operators"))
            operators = value;
        else if (!strcmp(argv[i], "--dtypes"))
            t.dtypes = !strcmp(value, "ON");
        else if (!strcmp(argv[i], "--verbs"))
            verbs = value;
        else if (!strcmp(argv[i], "--verbs-output"))
            verbs_output = value;
        else if (!strcmp(argv[i], "--extra") && t.extra_count < EXTRAS_MOST)
            t.extras[t.extra_count++] = value;
        else if (!strcmp(argv[i], "--list"))
            take_file(&t, value, !files), files = true;
        else
            die("trim: option '%s' is unknown", argv[i]);
    }
    if (!t.source || !t.output) die("trim: --source and --output are needed");
    read_known(&t);
    piece_list more = { 0 };
    if (operators) take_operators(&t, operators, !files, &more);
    for (char *isa = isas ? strtok(isas, ",; ") : NULL; isa; isa = strtok(NULL, ",; "))
        keep(&t.wanted, PIECE_ISAS, isa, 0);
    check_wanted(&t);
    if (t.wanted.kinds[PIECE_RUNTIMES].listed) keep(&t.wanted, PIECE_RUNTIMES, "builtin", 0);
    derive_kernels(&t);
    derive_makers(&t, PIECE_PASSES);
    derive_makers(&t, PIECE_RAGGED);
    add_more(&t, &more);
    for (int i = 0; i < SOURCES; i++)
        if (!i || strcmp(sources[i].file, sources[i - 1].file)) write_list(&t, sources[i].file);
    write_dropped(&t, levels);
    write_isas(&t, levels);
    if (verbs) write_verbs(&t, verbs, verbs_output);
    return 0;
}
