/* text_input.h - texts from files and pipes, one a line, in bounded memory. */
#ifndef PITH_CLI_BASE_TEXT_INPUT_H
#define PITH_CLI_BASE_TEXT_INPUT_H

#include "cli/base/cli.h"

typedef struct text_input {
    const char *const *paths; /* "-" is stdin */
    size_t path_count, path_at;
    char separator; /* '\n', or NUL with -0 */
    size_t limit;   /* bytes kept of a line, the rest is passed over; 0: all */
    bool replace;   /* invalid UTF-8 becomes U+FFFD; else it is an error */
    int fd;         /* -1: none open */
    bool ended;     /* read to its end */
    bool bad;       /* the last failure is one line's: the next call goes on behind it */
    uint64_t line;  /* of the current file, from 1: the one read last */
    char *buffer;
    size_t begin, end;
    char message[512]; /* after a failure */
} text_input;

/* A growing run of bytes. */
typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

void bytes_reserve(bytes *b, size_t more);
void bytes_add(bytes *b, const void *data, size_t size);
/* Those at `begin` to before `end`; where there are none yet, the text is "", not NULL. */
pith_str bytes_text(const bytes *b, size_t begin, size_t end);
/* Puts U+FFFD in the place of what is not UTF-8 behind `from`, one for each maximal part of a
 * character. */
void bytes_replace_invalid(bytes *b, size_t from);
/* Adds to b what the library writes; b must outlive the writer. */
pith_writer bytes_writer(bytes *b);
void bytes_print(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* paths: none means stdin. */
void text_input_open(text_input *in, const string_list *paths);
void text_input_close(text_input *in);

/* Appends the next line, without its end and a CR before it, to out. 1: done; 0: there is none; -1:
 * message says why. *cut (may be NULL) tells whether bytes beyond the limit were passed over. A
 * line is cut between characters. */
int text_input_next(text_input *in, bytes *out, bool *cut);
/* Whether a whole line, or the end, can be had without waiting for a program that writes it. Reads
 * what is there. */
bool text_input_ready(text_input *in);
/* "file:12" or "line 12" for messages; valid until the next call. */
const char *text_input_place(const text_input *in);
/* The file of the line read last; NULL: standard input. */
const char *text_input_path(const text_input *in);

#endif
