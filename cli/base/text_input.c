/* text_input.c - lines of any length from files and pipes.
 *
 * One buffer is filled by read(2), and a line is copied out of it piece by piece. So memory is
 * bounded by the limit, whatever the length of the line. Only the part that is kept is checked to
 * be UTF-8. */
#include "cli/base/text_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/message.h"
#include "cli/base/parquet_rows.h"

/* Bytes per read(2). Larger saves system calls, which are few already; smaller stays in the L2
 * cache. */
#define BUFFER_BYTES ((size_t)256 << 10)

void text_input_open(text_input *in, const string_list *paths) {
    static const char *const standard[] = { "-" };
    *in = (text_input){ .paths = paths->count ? paths->items : standard,
                        .path_count = paths->count ? paths->count : 1,
                        .separator = '\n',
                        .fd = -1 };
    csv_records_open(&in->rows, ',');
    in->buffer = grow(NULL, BUFFER_BYTES);
}

/* Ends what is read; false: a program that wrote it has failed. */
static bool close_file(text_input *in) {
    const pid_t child = in->child;
    const int fd = in->fd;
    in->child = 0;
    in->fd = -1;
    in->ended = false;
    if (child) return parquet_rows_close(child, fd);
    if (fd > 0) close(fd);
    return true;
}

void text_input_close(text_input *in) {
    close_file(in);
    csv_records_close(&in->rows);
    free(in->buffer);
}

static const char *path_of(const text_input *in) { return in->paths[in->path_at]; }

static bool is_itself(const text_input *in, const char *path) {
    return in->arguments && *path == TEXT_MARK;
}

/* How the texts of an item stand in it. */
static text_form form_of(const text_input *in) {
    const char *path = path_of(in);
    if (is_itself(in, path)) return TEXT_ITSELF;
    const file_kind *kind = in->tables && strcmp(path, "-") ? file_kind_of(path) : NULL;
    return kind ? kind->form : TEXT_LINES;
}

static bool is_table(text_form form) {
    return form == TEXT_CSV || form == TEXT_TSV || form == TEXT_PARQUET;
}

const char *text_input_path(const text_input *in) {
    const char *path = path_of(in);
    return strcmp(path, "-") && !is_itself(in, path) ? path : NULL;
}

uint64_t text_input_row(const text_input *in) { return is_table(form_of(in)) ? in->rows.row : 0; }

const char *text_input_place(const text_input *in) {
    static char place[320];
    const text_form form = form_of(in);
    const pith_str path = pith__str_of(path_of(in));
    const unsigned long long line = in->line, row = in->rows.row;
    pith_str shown = { path.data + 1,
                       path.size ? path.size - 1 : 0 }; /* of a text: what is UTF-8 */
    shown.size = form == TEXT_ITSELF ? pith_text_valid(shown) : 0;
    if (form == TEXT_ITSELF)
        snprintf(place, sizeof place, "the text '" PITH_CUT_FMT "'", PITH_CUT(shown, 60));
    else if (form == TEXT_PARQUET)
        snprintf(place, sizeof place, PITH_CUT_FMT ", row %llu", PITH_CUT(path, 250), row);
    else if (is_table(form))
        snprintf(place, sizeof place, PITH_CUT_FMT ", row %llu (line %llu)", PITH_CUT(path, 250),
                 row, line);
    else if (!strcmp(path.data, "-"))
        snprintf(place, sizeof place, "line %llu", line);
    else
        snprintf(place, sizeof place, PITH_CUT_FMT ":%llu", PITH_CUT(path, 250), line);
    return place;
}

bool text_column_usual(pith_str name) {
    static const char *const usual[] = { "text", "content", "body", "document", "sentence" };
    bool found = false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        found |= name.size == strlen(usual[i]) && !strncasecmp(name.data, usual[i], name.size);
    return found;
}

/* Opens the file whose turn it is; false: message. */
static bool open_file(text_input *in) {
    if (in->fd >= 0) return true;
    const text_form form = form_of(in);
    in->line = 0;
    csv_records_close(&in->rows);
    csv_records_open(&in->rows, form == TEXT_TSV ? '\t' : ',');
    if (form == TEXT_PARQUET && !access(path_of(in), R_OK)) {
        in->fd = parquet_rows_open(&in->child, path_of(in), in->python ? in->python : "python3",
                                   in->message, sizeof in->message);
        return in->fd >= 0;
    }
    in->fd = strcmp(path_of(in), "-") ? open(path_of(in), O_RDONLY | O_CLOEXEC) : 0;
    if (!in->fd && !in->quiet && isatty(STDIN_FILENO) == 1)
        note("reading lines from the terminal; Ctrl-D ends them");
    if (in->fd < 0)
        pith__text_print(in->message, sizeof in->message, PITH_CUT_FMT ": %s%s",
                         PITH_CUT(pith__str_of(path_of(in)), 400), strerror(errno),
                         in->arguments && errno == ENOENT
                             ? "; a text, rather than a file, is given with --text"
                             : "");
    return in->fd >= 0;
}

/* Reads more after what the buffer holds: 1 there is some, 0 the file ends, -1 message. */
static int fill(text_input *in) {
    if (in->begin == in->end) in->begin = in->end = 0;
    if (!open_file(in)) return -1;
    while (!in->ended) {
        ssize_t got = read(in->fd, in->buffer + in->end, BUFFER_BYTES - in->end);
        if (got > 0) in->end += (size_t)got;
        in->ended = got == 0; /* a terminal would go on */
        if (got >= 0) return got > 0;
        if (errno == EINTR) continue;
        bool standard = !strcmp(path_of(in), "-");
        pith__text_print(in->message, sizeof in->message, PITH_CUT_FMT ": %s%s",
                         PITH_CUT(pith__str_of(standard ? "standard input" : path_of(in)), 400),
                         standard && errno == EBADF ? "it is closed" : strerror(errno),
                         errno == EISDIR ? "; name its files, or if they are pictures, use "
                                           "'pith embed --images'"
                                         : "");
        return -1;
    }
    return 0;
}

/* Whether the file whose turn comes next is one that is read without waiting. */
static bool is_plain(const text_input *in, const char *path) {
    struct stat st;
    return is_itself(in, path) || (strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode)));
}

bool text_input_ready(text_input *in) {
    if (!in->path_count || csv_records_waiting(&in->rows)) return true;
    for (size_t seen = in->begin;;) {
        if (memchr(in->buffer + seen, in->separator, in->end - seen)) return true;
        if (in->fd < 0) return is_plain(in, path_of(in));
        struct pollfd p = { .fd = in->fd, .events = POLLIN };
        if (!in->ended && !poll(&p, 1, 0)) return false;
        if (in->begin && (in->begin == in->end || in->end == BUFFER_BYTES)) {
            in->end -= in->begin;
            memmove(in->buffer, in->buffer + in->begin, in->end);
            in->begin = 0;
        }
        if (in->end == BUFFER_BYTES)
            return false; /* a line longer than the buffer, which may not
                                                      be there in full */
        seen = in->end;
        int state = fill(in);
        bool last = in->path_at + 1 == in->path_count;
        /* the next call tells */
        if (state < 0 || (!state && (last || in->begin < in->end))) return true;
        if (!state) return is_plain(in, in->paths[in->path_at + 1]);
    }
}

/* Takes off the bytes of a character that does not fit whole. */
static void cut_to_character(bytes *b, size_t from) {
    size_t back = 0;
    while (back < 3 && b->size - back > from &&
           ((unsigned char)b->data[b->size - back - 1] & 0xC0) == 0x80)
        back++;
    if (b->size - back == from) return;
    unsigned char lead = (unsigned char)b->data[b->size - back - 1];
    size_t wanted = 0;
    if (lead >= 0xF0)
        wanted = 3;
    else if (lead >= 0xE0)
        wanted = 2;
    else if (lead >= 0xC0)
        wanted = 1;
    if (wanted > back) b->size -= back + 1;
}

/* The raw bytes of a line of the file into out; 1, -1 as text_input_next; 0: the file ends. */
static int copy_line(text_input *in, bytes *out, size_t from, size_t limit, bool *over) {
    bool any = false;
    for (;;) {
        if (in->begin == in->end) {
            int state = fill(in);
            if (state < 0) return -1;
            if (state == 0) return any; /* the last line may lack its end */
        }
        if (!any) in->line++;
        any = true;
        const char *p = in->buffer + in->begin;
        const char *stop = memchr(p, in->separator, in->end - in->begin);
        size_t n = stop ? (size_t)(stop - p) : in->end - in->begin;
        size_t room = n;
        if (limit) room = out->size - from < limit ? limit - (out->size - from) : 0;
        if (n > room) *over = true;
        bytes_add(out, p, n < room ? n : room);
        in->begin += n + (stop != NULL);
        if (stop) return 1;
    }
}

/* JPEG, PNG and GIF, by their first bytes. */
static bool is_picture(const char *line, size_t size) {
    return size > 3 && (!memcmp(line, "\xff\xd8\xff", 3) || !memcmp(line, "\x89PNG", 4) ||
                        !memcmp(line, "GIF8", 4));
}

/* Checks the line behind `from`: 1, or -1 and a message. */
static int check_line(text_input *in, bytes *out, size_t from) {
    size_t valid = pith_text_valid(bytes_text(out, from, out->size));
    if (valid == out->size - from) return 1;
    if (in->replace) {
        bytes_replace_invalid(out, from);
        return 1;
    }
    if (in->line == 1 && is_picture(out->data + from, out->size - from))
        pith__text_print(in->message, sizeof in->message,
                         "%s: this is a picture and no text; 'pith embed --images' reads pictures",
                         text_input_place(in));
    else
        pith__text_print(in->message, sizeof in->message,
                         "%s: not UTF-8 at byte %zu (--invalid replace puts U+FFFD in its place)",
                         text_input_place(in), valid + 1);
    out->size = from;
    in->bad = true;
    return -1;
}

/* Appends a line of a file that is no table; 0: the file ends. */
static int take_line(text_input *in, bytes *out, bool *cut) {
    const size_t from = out->size;
    int state = copy_line(in, out, from, in->limit, cut);
    if (state <= 0) return state;
    if (*cut)
        cut_to_character(out, from);
    else if (in->separator == '\n' && out->size > from && out->data[out->size - 1] == '\r')
        out->size--;
    return check_line(in, out, from);
}

/* Appends the text that the item is, once. */
static int take_itself(text_input *in, bytes *out, bool *cut) {
    const pith_str text = pith__str_of(path_of(in) + 1);
    const size_t from = out->size,
                 size = in->limit && text.size > in->limit ? in->limit : text.size;
    if (in->ended) return 0;
    in->ended = true;
    in->line = 1;
    *cut = size < text.size;
    bytes_add(out, text.data, size);
    if (*cut) cut_to_character(out, from);
    return check_line(in, out, from);
}

/* Without a header, the first text of a file would be taken for the name of its column. */
static void warn_of_header(const text_input *in) {
    char name[120];
    const pith_str only = bytes_text(&in->rows.names, 1, in->rows.names.size - 1);
    if (!in->guesses || in->rows.columns != 1 || in->rows.row || text_column_usual(only)) return;
    pith__text_print(name, sizeof name, PITH_CUT_FMT, PITH_CUT(only, 80));
    note("warning: %s: the first row is used as the name of the column, '%s'", path_of(in), name);
}

/* The next row's lines into in->rows. 1: a row is there; 0: the file ends; -1: message. */
static int read_row(text_input *in) {
    csv_records *r = &in->rows;
    const size_t begin = r->at;
    for (bool any = false;; any = true) {
        const size_t from = r->text.size;
        const int state = copy_line(in, &r->text, begin, CSV_ROW_BYTES, &r->too_long);
        if (state < 0) return -1;
        if (!state) return any; /* within quotation marks, which the scanner finds too */
        if (csv_records_line(r, from)) return 1;
    }
}

/* The end of a table, which has at least a header. */
static int end_table(text_input *in) {
    if (in->child && !close_file(in)) {
        pith__text_print(in->message, sizeof in->message, "%s could not be read", path_of(in));
        return -1;
    }
    if (in->rows.headed) return 0;
    pith__text_print(in->message, sizeof in->message,
                     "%s is empty; its first line names the columns", path_of(in));
    return -1;
}

/* Appends a row of a table; 0: the file ends. */
static int take_row(text_input *in, bytes *out) {
    char why[1000];
    for (;;) {
        if (!csv_records_waiting(&in->rows)) {
            const int state = read_row(in);
            if (state < 0) return -1;
            if (!state) return end_table(in);
        }
        const csv_found found = csv_records_next(&in->rows, out, in->replace, why, sizeof why);
        if (in->rows.headed) warn_of_header(in);
        if (found == CSV_NONE) continue;
        in->line = in->rows.line;
        if (found == CSV_ROW) return 1;
        in->bad = found == CSV_BAD;
        if (in->bad)
            pith__text_print(in->message, sizeof in->message, "%s: %s", text_input_place(in), why);
        else
            pith__text_print(in->message, sizeof in->message, "%s: %s", path_of(in), why);
        return -1;
    }
}

int text_input_next(text_input *in, bytes *out, bool *cut) {
    bool over = false;
    in->bad = false;
    while (in->path_count) {
        const text_form form = form_of(in);
        int state;
        over = false;
        if (form == TEXT_ITSELF)
            state = take_itself(in, out, &over);
        else if (is_table(form))
            state = take_row(in, out);
        else
            state = take_line(in, out, &over);
        if (cut) *cut = over;
        if (state) return state;
        close_file(in);
        if (in->path_at + 1 == in->path_count)
            in->path_count = 0; /* messages may still name the last one */
        else
            in->path_at++;
    }
    return 0;
}
