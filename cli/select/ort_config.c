/* ort_config.c - see ort_config.h.
 *
 * A configuration is a JSON object: {domain: {opset: {operator: true}}}. */
#include "cli/select/ort_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/text_input.h"

/* The most bytes of a file, and of a name in it. */
enum { ORT_FILE_MOST = 16 << 20, ORT_NAME_MOST = 200 };

bool ort_config_is(const char *path) {
    size_t n = strlen(path);
    return n > 7 && !strcmp(path + n - 7, ".config");
}

/* ---- reading ---- */

/* ONNX Runtime's names of types, which are those of C++, and Pith's. */
static const struct {
    const char *type, *dtype;
} ort_types[] = {
    { "float", "f32" },
    { "double", "f64" },
    { "int8_t", "i8" },
    { "int16_t", "i16" },
    { "int32_t", "i32" },
    { "int64_t", "i64" },
    { "uint8_t", "u8" },
    { "uint16_t", "u16" },
    { "uint32_t", "u32" },
    { "uint64_t", "u64" },
    { "bool", "bool" },
    { "std::string", "string" },
    { "string", "string" },
    { "MLFloat16", "f16" },
    { "BFloat16", "bf16" },
    { "Float8E4M3FN", "float8_e4m3fn" },
    { "Float8E4M3FNUZ", "float8_e4m3fnuz" },
    { "Float8E5M2", "float8_e5m2" },
    { "Float8E5M2FNUZ", "float8_e5m2fnuz" },
    { "UInt4x2", "uint4" },
    { "Int4x2", "int4" },
};

typedef struct ort_reader {
    const command *c;
    const char *path;
    size_t line;
    piece_list known; /* the operators of this build */
    piece_list *list;
    uint32_t everywhere; /* the types that every operator may have; 0: those of its line */
    bool unread;         /* there were messages */
} ort_reader;

static void ort_config_fault(ort_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void ort_config_fault(ort_reader *r, const char *format, ...) {
    char text[2 * ORT_NAME_MOST];
    va_list args;
    va_start(args, format);
    pith__text_format(text, sizeof text, format, args);
    va_end(args);
    fail(r->c, "%s:%zu: %s", r->path, r->line, text);
    r->unread = true;
}

static char *ort_config_trim(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--) text[n - 1] = 0;
    return text;
}

static void ort_config_add_type(ort_reader *r, const char *type, uint32_t *facts) {
    for (size_t i = 0; i < sizeof ort_types / sizeof *ort_types; i++)
        if (!strcmp(ort_types[i].type, type)) {
            *facts |= 1u << piece_dtype_find(ort_types[i].dtype, strlen(ort_types[i].dtype));
            return;
        }
    ort_config_fault(
        r, "the type '" PITH_CUT_FMT "' is not known; types are float, int64_t, bool and so on",
        PITH_CUT(pith__str_of(type), ORT_NAME_MOST));
}

/* Every string below the value is a type; the keys are "inputs", "outputs", "custom" and numbers.
 */
static void ort_config_add_types(ort_reader *r, const json_t *value, uint32_t *facts) {
    const char *key;
    json_t *inner;
    size_t i;
    if (json_is_string(value)) ort_config_add_type(r, json_string_value(value), facts);
    json_object_foreach((json_t *)value, key, inner) ort_config_add_types(r, inner, facts);
    json_array_foreach(value, i, inner) ort_config_add_types(r, inner, facts);
}

static void ort_config_read_operator(ort_reader *r, const char *domain, const char *op,
                                     uint32_t facts) {
    char name[2 * ORT_NAME_MOST + 3];
    const bool plain = !*domain || !strcmp(domain, "ai.onnx");
    snprintf(name, sizeof name, "%.*s%s%.*s", ORT_NAME_MOST, plain ? "" : domain,
             plain ? "" : "::", ORT_NAME_MOST, op);
    if (!piece_list_find(&r->known, PIECE_OPERATORS, name))
        ort_config_fault(r, "this Pith has no operator '%s'", name);
    else if (!piece_list_add(r->list, PIECE_OPERATORS, name, strlen(name), facts))
        ort_config_fault(r, "out of memory");
}

/* The types behind an operator's name. What follows them, or NULL after a message. */
static char *ort_config_read_types(ort_reader *r, char *at, uint32_t *facts) {
    json_error_t error;
    json_t *types = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
    if (types)
        ort_config_add_types(r, types, facts);
    else
        ort_config_fault(r, "the types of an operator are no JSON: %s", error.text);
    json_decref(types);
    return types ? at + error.position : NULL;
}

/* "Add,Gather{…},Mul" */
static void ort_config_read_operators(ort_reader *r, const char *domain, char *at) {
    while (*at) {
        char *end = at + strcspn(at, ",{");
        uint32_t facts = 0;
        const char mark = *end;
        *end = 0;
        char *op = ort_config_trim(at);
        at = end + (mark != 0);
        if (mark == '{') {
            *end = '{';
            char name[ORT_NAME_MOST];
            snprintf(name, sizeof name, "%.*s",
                     (int)(end - op < ORT_NAME_MOST ? end - op : ORT_NAME_MOST - 1), op);
            at = ort_config_read_types(r, end, &facts);
            if (!at) return;
            at += strspn(at, " \t,");
            ort_config_read_operator(r, domain, ort_config_trim(name), facts);
        } else if (*op) {
            ort_config_read_operator(r, domain, op, 0);
        }
    }
}

static bool ort_config_are_opsets(char *text) {
    const size_t n = strlen(text);
    return n && strspn(text, "0123456789, ") == n && strpbrk(text, "0123456789");
}

static void ort_config_read_line(ort_reader *r, char *line) {
    static const char allowed[] = "!globally_allowed_types;";
    line = ort_config_trim(line);
    if (!*line || *line == '#' || !strcmp(line, "!no_ops_specified_means_all_ops_are_required"))
        return;
    if (!strncmp(line, allowed, sizeof allowed - 1)) {
        for (char *type = strtok(line + sizeof allowed - 1, ","); type; type = strtok(NULL, ","))
            ort_config_add_type(r, ort_config_trim(type), &r->everywhere);
        return;
    }
    char *opsets = strchr(line, ';'), *operators = opsets ? strchr(opsets + 1, ';') : NULL;
    if (operators) *opsets = *operators = 0;
    if (!operators || !ort_config_are_opsets(ort_config_trim(opsets + 1)))
        ort_config_fault(r, "neither 'domain;opset;operators', such as 'ai.onnx;14;Add,MatMul', "
                            "nor '!' and a setting");
    else
        ort_config_read_operators(r, ort_config_trim(line), operators + 1);
}

/* ONNX Runtime keeps i32 and i64 for the operators that work on shapes and positions; conditions
 * are of bool. */
static void ort_config_allow(ort_reader *r) {
    static const char *const more[] = { "i32", "i64", "bool" };
    piece_names *names = &r->list->kinds[PIECE_OPERATORS];
    if (!r->everywhere) return;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        r->everywhere |= 1u << piece_dtype_find(more[i], strlen(more[i]));
    for (size_t i = 0; i < names->count; i++) names->items[i].facts |= r->everywhere;
}

/* What passes, ragged rules and the reading of texts put into a graph beside operators of the
 * domain "pith". */
static const char *const ort_config_made[] = {
    "Add",       "Cast",  "Concat",      "Expand",
    "Gather",    "Gelu",  "HardSwish",   "LayerNormalization",
    "MatMul",    "Mish",  "QLinearConv", "RMSNormalization",
    "Reshape",   "Shape", "Slice",       "Swish",
    "Transpose",
};

static void ort_config_know(void *user, const pith_build_piece *piece) {
    ort_reader *r = user;
    const size_t n = strlen(piece->name);
    if (strcmp(piece->list, "operators")) return;
    bool good = piece_list_add(&r->known, PIECE_OPERATORS, piece->name, n, 0),
         own = !strncmp(piece->name, "pith::", 6);
    for (size_t i = 0; i < sizeof ort_config_made / sizeof *ort_config_made; i++)
        own |= !strcmp(piece->name, ort_config_made[i]);
    if (good && own) good = piece_list_add(r->list, PIECE_OPERATORS, piece->name, n, 0);
    if (!good) ort_config_fault(r, "out of memory");
}

int ort_config_read(piece_list *list, const char *path, const command *c, int *unread) {
    int code = EXIT_DONE;
    ort_reader r = { .c = c, .path = path, .list = list };
    pith_error err = PITH_ERROR_INIT;
    FILE *file = fopen(path, "rb");
    if (!file) return fail(c, "%s: %s", path, strerror(errno));
    char *text = grow(NULL, ORT_FILE_MOST + 1);
    const size_t size = fread(text, 1, ORT_FILE_MOST, file);
    text[size] = 0;
    if (ferror(file) || size == ORT_FILE_MOST)
        code = fail(c, "%s: cannot be read, or has more than %d bytes", path, ORT_FILE_MOST - 1);
    else if (memchr(text, 0, size))
        code = fail(c, "%s: no text: byte %zu is 0", path, strlen(text));
    else if (pith_pieces_list(ort_config_know, &r, &err))
        code = fail(c, "%s", err.message);
    for (char *at = code ? NULL : text, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = 0;
        r.line++;
        ort_config_read_line(&r, at);
    }
    ort_config_allow(&r);
    piece_list_free(&r.known);
    free(text);
    fclose(file);
    if (r.unread) *unread = EXIT_FAILED;
    return code;
}

/* ---- writing ---- */

static const struct {
    const char *from, *made;
} ort_fusions[] = {
#define ORT_FUSION(from, made) { from, made },
#include "cli/select/ort_fusions.def"
#undef ORT_FUSION
};

/* The next word of a text in which blanks, or these signs, separate them. */
static bool ort_config_word(char *word, size_t size, const char **at, const char *signs) {
    *at += strspn(*at, signs);
    const size_t n = strcspn(*at, signs);
    snprintf(word, size, "%.*s", (int)n, *at);
    *at += n;
    return n > 0;
}

static bool ort_config_has_from(const json_t *names, const char *from) {
    char word[1024], name[ORT_NAME_MOST];
    while (ort_config_word(word, sizeof word, &from, " ")) {
        bool any = false;
        for (const char *at = word; ort_config_word(name, sizeof name, &at, "|");)
            any |= json_object_get(names, name) != NULL;
        if (!any) return false;
    }
    return true;
}

/* Adds what may be made of the operators, and of what is made. */
static void ort_config_fuse(json_t *names) {
    char name[ORT_NAME_MOST];
    for (size_t before = SIZE_MAX; before != json_object_size(names);) {
        before = json_object_size(names);
        for (size_t i = 0; i < sizeof ort_fusions / sizeof *ort_fusions; i++) {
            if (!ort_config_has_from(names, ort_fusions[i].from)) continue;
            for (const char *at = ort_fusions[i].made;
                 ort_config_word(name, sizeof name, &at, " ");)
                json_object_set_new(names, name, json_true());
        }
    }
}

static json_t *ort_config_inner(json_t *object, const char *key) {
    json_t *inner = json_object_get(object, key);
    if (!inner) json_object_set_new(object, key, inner = json_object());
    return inner;
}

/* names: "Add" and "com.microsoft::Gelu". opsets: those of the model. */
static void ort_config_take(json_t *config, json_t *names, const json_t *opsets) {
    const char *key;
    json_t *value;
    json_object_foreach(names, key, value) {
        const char *colons = strstr(key, "::");
        char domain[ORT_NAME_MOST], opset[24];
        snprintf(domain, sizeof domain, "%.*s", colons ? (int)(colons - key) : 7,
                 colons ? key : "ai.onnx");
        const json_t *given = json_object_get(opsets, domain);
        snprintf(opset, sizeof opset, "%lld", given ? (long long)json_integer_value(given) : 1);
        json_object_set_new(ort_config_inner(ort_config_inner(config, domain), opset),
                            colons ? colons + 2 : key, json_true());
    }
}

int ort_config_add_model(json_t *config, const char *path, const pith_open_options *open,
                         const command *c) {
    pith_open_options options = *open;
    pith_error err = PITH_ERROR_INIT;
    bytes text = { NULL, 0, 0 };
    pith_model *model;
    options.flags |= PITH_OPEN_DESCRIBE;
    if (pith_model_open(&model, path, &options, &err)) return fail_model(c, &err, path);
    const pith_writer writer = bytes_writer(&text);
    pith_status status = pith_model_describe(model, PITH_DESCRIBE_JSON, NULL, &writer, &err);
    pith_model_close(model);
    json_t *description = status ? NULL : json_loadb(text.data, text.size, 0, NULL),
           *names = json_object(), *op;
    const json_t *opsets = json_object_get(description, "opsets");
    int code = EXIT_DONE;
    size_t i;
    if (!description)
        code = fail(c, "%s: %s", path, status ? err.message : "the description cannot be read");
    else if (!json_object_size(opsets))
        code =
            fail(c, "%s: ONNX Runtime reads ONNX files only; write one with 'pith export'", path);
    json_array_foreach(json_object_get(description, "ops"), i, op) {
        const char *domain = json_string_value(json_object_get(op, "domain"));
        char name[ORT_NAME_MOST];
        const bool plain = !strcmp(domain, "ai.onnx");
        snprintf(name, sizeof name, "%s%s%s", plain ? "" : domain,
                 plain ? "" : "::", json_string_value(json_object_get(op, "op")));
        json_object_set_new(names, name, json_true());
    }
    ort_config_fuse(names);
    if (!code) ort_config_take(config, names, opsets);
    json_decref(names);
    json_decref(description);
    free(text.data);
    return code;
}

static int ort_config_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int ort_config_compare_numbers(const void *a, const void *b) {
    const long long x = atoll(*(char *const *)a), y = atoll(*(char *const *)b);
    return x < y ? -1 : x > y;
}

/* The keys in order, which the caller frees; they live as long as the object. */
static const char **ort_config_keys(const json_t *object,
                                    int (*order)(const void *, const void *)) {
    const char **keys = grow(NULL, (json_object_size(object) + 1) * sizeof *keys), *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)object, key, value) keys[n++] = key;
    qsort(keys, n, sizeof *keys, order);
    keys[n] = NULL;
    return keys;
}

void ort_config_write(FILE *file, const json_t *config) {
    fputs("# Operators that models need, and those that ONNX Runtime's optimiser may put in their "
          "place.\n"
          "# Written by pith select --ort-operators, for build.sh --include_ops_by_config of ONNX "
          "Runtime.\n",
          file);
    const char **domains = ort_config_keys(config, ort_config_compare);
    for (size_t d = 0; domains[d]; d++) {
        const json_t *domain = json_object_get(config, domains[d]);
        const char **opsets = ort_config_keys(domain, ort_config_compare_numbers);
        for (size_t o = 0; opsets[o]; o++) {
            const char **names =
                ort_config_keys(json_object_get(domain, opsets[o]), ort_config_compare);
            fprintf(file, "%s;%s;", domains[d], opsets[o]);
            for (size_t i = 0; names[i]; i++) fprintf(file, "%s%s", i ? "," : "", names[i]);
            fputc('\n', file);
            free(names);
        }
        free(opsets);
    }
    free(domains);
}
