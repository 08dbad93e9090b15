/* message.h - text for people, in which no name can steer the terminal: control characters are
 * written as \x1b, those of Latin-1 (U+0080 to U+009F) and newlines too. */
#ifndef PITH_CLI_BASE_MESSAGE_H
#define PITH_CLI_BASE_MESSAGE_H

#include <stddef.h>

/* Copies the text without control characters; what has no room is cut between characters and
 * marked. Returns out. */
char *printable(char *out, size_t size, const char *text);
/* The text itself, or a copy without control characters, which stays for 15 calls more. Of one
 * thread only. */
const char *shown(const char *text);
/* Puts stars for the passwords of addresses in the text: what stands between a user's name and its
 * @, and the values of parameters with "password" in their name. Whoever gives an address where a
 * file is wanted sees it in a message. */
void hide_passwords(char *text);
/* A line without its end stands on the terminal, such as one that shows progress: the next note
 * takes its place. Any thread may say so. */
void note_over_line(void);
/* Ends that line, if it stands there yet. */
void note_line_end(void);
/* One line on standard error, without passwords. The format has no newline. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
