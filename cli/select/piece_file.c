/* piece_file.c - see piece_file.h. */
#include "base/text_out.h"
#include "cli/select/piece_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of a file, which has about 30 a piece. */
enum { FILE_MOST = 16 << 20, NAME_MOST = 200 };

typedef struct piece_reader {
    piece_list *list;
    const char *path;
    size_t line;
    bool versioned;
    piece_kind kind; /* PIECE_KINDS: none is open */
    bool closed;     /* it was written as [] */
    bool seen[PIECE_KINDS];
    char *message;
    size_t size;
} piece_reader;

static bool piece_fail(const piece_reader *r, const char *format, ...) {
    int n = snprintf(r->message, r->size, "%s:%zu: ", r->path, r->line);
    va_list args;
    va_start(args, format);
    if (n >= 0 && (size_t)n < r->size)
        pith__text_format(r->message + n, r->size - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* The words of a dtype list, behind the name. */
static bool piece_read_facts(piece_reader *r, const char *at, const char *end, uint32_t *facts) {
    while (at < end) {
        size_t size = 0;
        while (at + size < end && at[size] != ' ') size++;
        int dtype = piece_dtype_find(at, size);
        if (dtype >= 0)
            *facts |= 1u << dtype;
        else if (r->kind == PIECE_OPERATORS && size == 8 && !memcmp(at, "upgraded", 8))
            *facts |= PIECE_UPGRADED;
        else
            return piece_fail(
                r, "'%.*s' is no dtype; write names such as f32, i64 and bool behind the piece",
                (int)(size < NAME_MOST ? size : NAME_MOST), at);
        for (at += size; at < end && *at == ' ';) at++;
    }
    return true;
}

static bool piece_is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.:-", c));
}

/* "- Add f32 i64", from behind the dash. */
static bool piece_read_item(piece_reader *r, const char *at, const char *end) {
    if (r->kind == PIECE_KINDS)
        return piece_fail(r, "a piece without a kind; write a line such as 'operators:' before it");
    if (r->closed)
        return piece_fail(r, "'%s' was said to be empty; write '%s:' without []",
                          piece_kind_names[r->kind], piece_kind_names[r->kind]);
    if (at == end || *at != ' ') return piece_fail(r, "write a blank and a name behind '-'");
    while (at < end && *at == ' ') at++;
    size_t size = 0;
    while (at + size < end && at[size] != ' ') {
        if (!piece_is_plain(at[size]))
            return piece_fail(r, "names have letters, digits and _ . : - only; write '- Add' or '- "
                                 "com.microsoft::Gelu'");
        size++;
    }
    if (!size || size > NAME_MOST) return piece_fail(r, "a name has 1 to %d characters", NAME_MOST);
    const char *rest = at + size;
    while (rest < end && *rest == ' ') rest++;
    uint32_t facts = 0;
    bool typed = r->kind == PIECE_OPERATORS || r->kind == PIECE_KERNELS;
    if (rest < end && !typed)
        return piece_fail(r, "%s have no dtypes; write one name per line",
                          piece_kind_names[r->kind]);
    if (!piece_read_facts(r, rest, end, &facts)) return false;
    if (size > 9 && !memcmp(at, "ai.onnx::", 9)) at += 9, size -= 9;
    return piece_list_add(r->list, r->kind, at, size, facts) || piece_fail(r, "out of memory");
}

static void piece_kinds_text(char *text, size_t size) {
    text[0] = 0;
    for (int k = 0; k < PIECE_KINDS; k++) {
        size_t n = strlen(text);
        snprintf(text + n, size - n, "%s%s", k ? ", " : "", piece_kind_names[k]);
    }
}

/* "operators:", "passes: []" or "pith: 1". */
static bool piece_read_key(piece_reader *r, const char *at, const char *end) {
    const char *colon = memchr(at, ':', (size_t)(end - at));
    if (!colon)
        return piece_fail(
            r, "neither 'kind:' nor '- piece'; docs/selective-build.md shows the format");
    const char *value = colon + 1;
    while (value < end && *value == ' ') value++;
    size_t size = (size_t)(colon - at), rest = (size_t)(end - value);
    if (size == 4 && !memcmp(at, "pith", 4)) {
        if (r->versioned) return piece_fail(r, "'pith:' is here a second time; remove this line");
        r->versioned = true;
        return (rest == 1 && *value == '1') ||
               piece_fail(
                   r, "version '%.*s' of the format is not known to this Pith; it reads version 1",
                   (int)(rest < NAME_MOST ? rest : NAME_MOST), value);
    }
    if (!r->versioned) return piece_fail(r, "the first line must be 'pith: 1'");
    r->kind = piece_kind_find(at, size);
    if (r->kind == PIECE_KINDS) {
        char known[400];
        piece_kinds_text(known, sizeof known);
        return piece_fail(r, "'%.*s' is no kind of piece; kinds are %s",
                          (int)(size < NAME_MOST ? size : NAME_MOST), at, known);
    }
    if (r->seen[r->kind])
        return piece_fail(r, "'%s:' is here a second time; put its pieces in one place",
                          piece_kind_names[r->kind]);
    r->seen[r->kind] = r->list->kinds[r->kind].listed = true;
    r->closed = rest == 2 && !memcmp(value, "[]", 2);
    return !rest || r->closed ||
           piece_fail(
               r, "write the pieces on lines of their own, as '  - name', or [] if there are none");
}

static bool piece_read_line(piece_reader *r, const char *at, const char *end) {
    r->line++;
    if (end > at && end[-1] == '\r') end--;
    for (const char *c = at; c < end; c++) {
        if (*c == '\t') return piece_fail(r, "a tab; indent with blanks");
        if (*c == '#' && (c == at || c[-1] == ' ')) end = c;
    }
    bool indented = at < end && *at == ' ';
    while (at < end && *at == ' ') at++;
    while (end > at && end[-1] == ' ') end--;
    if (at == end) return true;
    if (*at == '-') return piece_read_item(r, at + 1, end);
    return indented
               ? piece_fail(r, "a kind begins at the beginning of its line, and a piece with '- '")
               : piece_read_key(r, at, end);
}

bool piece_file_parse(piece_list *list, const char *text, size_t length, const char *path,
                      char *message, size_t size) {
    piece_reader r = {
        .list = list, .path = path, .kind = PIECE_KINDS, .message = message, .size = size
    };
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - (text + at)) : length - at;
        if (!piece_read_line(&r, text + at, text + at + n)) return false;
        at += n + 1;
    }
    r.line += !r.line;
    return r.versioned || piece_fail(&r, "no piece list: it begins with the line 'pith: 1'");
}

bool piece_file_read(piece_list *list, const char *path, char *message, size_t size) {
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(FILE_MOST) : NULL;
    size_t length = text ? fread(text, 1, FILE_MOST, file) : 0;
    bool good = false;
    if (!file || (text && ferror(file)))
        pith__text_print(message, size, "%s: %s", path, strerror(errno));
    else if (!text)
        pith__text_print(message, size, "%s: out of memory", path);
    else if (length == FILE_MOST)
        pith__text_print(message, size, "%s: no piece list: it has more than %d bytes", path,
                         FILE_MOST - 1);
    else
        good = piece_file_parse(list, text, length, path, message, size);
    free(text);
    if (file) fclose(file);
    return good;
}

void piece_file_write(FILE *file, const piece_list *list, const char *title) {
    fprintf(file, "%spith: 1\n", title);
    for (int k = 0; k < PIECE_KINDS; k++) {
        const piece_names *names = &list->kinds[k];
        if (!names->listed) continue;
        fprintf(file, "%s:%s\n", piece_kind_names[k], names->count ? "" : " []");
        for (size_t i = 0; i < names->count; i++) {
            fprintf(file, "  - %s", names->items[i].name);
            for (int d = 0; d < PIECE_DTYPES; d++)
                if (names->items[i].facts >> d & 1) fprintf(file, " %s", piece_dtypes[d]);
            fprintf(file, "%s\n", names->items[i].facts & PIECE_UPGRADED ? " upgraded" : "");
        }
    }
}
