/* text_input.c - lines of any length from files and pipes.
 *
 * One buffer is filled by read(2), and a line is copied out of it piece by piece. So memory is
 * bounded by the limit, whatever the length of the line. Only the part that is kept is checked to
 * be UTF-8. */
#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/text_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes per read(2). Larger saves system calls, which are few already; smaller stays in the L2
 * cache. */
#define BUFFER_BYTES ((size_t)256 << 10)

void bytes_reserve(bytes *b, size_t more) {
    if (b->capacity - b->size >= more) return;
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity - b->size < more) capacity *= 2;
    b->data = grow(b->data, capacity);
    b->capacity = capacity;
}

void bytes_add(bytes *b, const void *data, size_t size) {
    bytes_reserve(b, size);
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static int32_t bytes_take(void *user, const void *data, size_t size) {
    bytes_add(user, data, size);
    return 0;
}

pith_writer bytes_writer(bytes *b) { return (pith_writer){ .write = bytes_take, .user = b }; }

pith_str bytes_text(const bytes *b, size_t begin, size_t end) {
    return (pith_str){ b->data ? b->data + begin : "", end - begin };
}

void bytes_print(bytes *b, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bytes_reserve(b, 512);
    int n = vsnprintf(b->data + b->size, b->capacity - b->size, format, list);
    va_end(list);
    if (n > 0) b->size += (size_t)n < b->capacity - b->size ? (size_t)n : b->capacity - b->size - 1;
}

void text_input_open(text_input *in, const string_list *paths) {
    static const char *const standard[] = { "-" };
    *in = (text_input){ .paths = paths->count ? paths->items : standard,
                        .path_count = paths->count ? paths->count : 1,
                        .separator = '\n',
                        .fd = -1 };
    in->buffer = grow(NULL, BUFFER_BYTES);
}

void text_input_close(text_input *in) {
    if (in->fd > 0) close(in->fd);
    free(in->buffer);
}

static const char *path_of(const text_input *in) { return in->paths[in->path_at]; }

const char *text_input_path(const text_input *in) {
    return strcmp(path_of(in), "-") ? path_of(in) : NULL;
}

const char *text_input_place(const text_input *in) {
    static char place[300];
    if (!strcmp(path_of(in), "-"))
        snprintf(place, sizeof place, "line %llu", (unsigned long long)in->line);
    else
        snprintf(place, sizeof place, PITH_CUT_FMT ":%llu",
                 PITH_CUT(pith__str_of(path_of(in)), 250), (unsigned long long)in->line);
    return place;
}

/* Opens the file whose turn it is; false: message. */
static bool open_file(text_input *in) {
    if (in->fd >= 0) return true;
    in->line = 0;
    in->fd = strcmp(path_of(in), "-") ? open(path_of(in), O_RDONLY | O_CLOEXEC) : 0;
    if (in->fd < 0)
        pith__text_print(in->message, sizeof in->message, PITH_CUT_FMT ": %s",
                         PITH_CUT(pith__str_of(path_of(in)), 400), strerror(errno));
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
        pith__text_print(in->message, sizeof in->message, PITH_CUT_FMT ": %s",
                         PITH_CUT(pith__str_of(standard ? "standard input" : path_of(in)), 400),
                         standard && errno == EBADF ? "it is closed" : strerror(errno));
        return -1;
    }
    return 0;
}

static void next_file(text_input *in) {
    if (in->fd > 0) close(in->fd);
    in->ended = false;
    in->fd = -1;
    in->path_at++;
}

/* Whether the file whose turn comes next is one that is read without waiting. */
static bool is_plain(const char *path) {
    struct stat st;
    return strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode));
}

bool text_input_ready(text_input *in) {
    if (!in->path_count) return true;
    for (size_t seen = in->begin;;) {
        if (memchr(in->buffer + seen, in->separator, in->end - seen)) return true;
        if (in->fd < 0) return is_plain(path_of(in));
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
        if (!state) return is_plain(in->paths[in->path_at + 1]);
    }
}

/* Bytes of the invalid sequence at s: the longest prefix of a valid one, or 1 (Unicode, section
 * 3.9, U+FFFD). */
static size_t invalid_length(const unsigned char *s, size_t size) {
    size_t wanted = 1;
    if (s[0] >= 0xF0 && s[0] <= 0xF4)
        wanted = 4;
    else if (s[0] >= 0xE0 && s[0] < 0xF0)
        wanted = 3;
    else if (s[0] >= 0xC2 && s[0] < 0xE0)
        wanted = 2;
    unsigned low = 0x80, high = 0xBF;
    if (s[0] == 0xE0) low = 0xA0;
    if (s[0] == 0xF0) low = 0x90;
    if (s[0] == 0xED) high = 0x9F;
    if (s[0] == 0xF4) high = 0x8F;
    size_t n = 1;
    while (n < wanted && n < size && s[n] >= low && s[n] <= high) {
        n++;
        low = 0x80;
        high = 0xBF;
    }
    return n;
}

void bytes_replace_invalid(bytes *b, size_t from) {
    bytes good = { NULL, 0, 0 };
    const char *p = bytes_text(b, from, from).data;
    size_t left = b->size - from;
    while (left) {
        size_t n = pith_text_valid((pith_str){ p, left });
        bytes_add(&good, p, n);
        p += n;
        left -= n;
        if (!left) break;
        n = invalid_length((const unsigned char *)p, left);
        bytes_add(&good, "\xEF\xBF\xBD", 3);
        p += n;
        left -= n;
    }
    b->size = from;
    bytes_add(b, good.data, good.size);
    free(good.data);
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

/* The line's raw bytes into out; 1, 0 or -1 as text_input_next. */
static int copy_line(text_input *in, bytes *out, size_t from, bool *over) {
    bool any = false;
    for (;;) {
        if (in->begin == in->end) {
            int state = fill(in);
            if (state < 0) return -1;
            if (state == 0 && any)
                return 1; /* the last line lacks its end; the file is closed by
                                                the next call */
            if (state == 0) {
                next_file(in);
                if (in->path_at == in->path_count) {
                    in->path_at--; /* messages may still name it */
                    in->path_count = 0;
                    return 0;
                }
                continue;
            }
        }
        if (!any) in->line++;
        any = true;
        const char *p = in->buffer + in->begin;
        const char *stop = memchr(p, in->separator, in->end - in->begin);
        size_t n = stop ? (size_t)(stop - p) : in->end - in->begin;
        size_t room = n;
        if (in->limit) room = out->size - from < in->limit ? in->limit - (out->size - from) : 0;
        if (n > room) *over = true;
        bytes_add(out, p, n < room ? n : room);
        in->begin += n + (stop != NULL);
        if (stop) return 1;
    }
}

int text_input_next(text_input *in, bytes *out, bool *cut) {
    size_t from = out->size;
    bool over = false;
    in->bad = false;
    if (!in->path_count) return 0;
    int state = copy_line(in, out, from, &over);
    if (state <= 0) return state;
    if (over)
        cut_to_character(out, from);
    else if (in->separator == '\n' && out->size > from && out->data[out->size - 1] == '\r')
        out->size--;
    if (cut) *cut = over;
    size_t valid = pith_text_valid(bytes_text(out, from, out->size));
    if (valid == out->size - from) return 1;
    if (in->replace) {
        bytes_replace_invalid(out, from);
        return 1;
    }
    pith__text_print(in->message, sizeof in->message,
                     "%s: not UTF-8 at byte %zu (--invalid replace puts U+FFFD in its place)",
                     text_input_place(in), valid + 1);
    out->size = from;
    in->bad = true;
    return -1;
}
