/* port.h - what the board gives a program: a line to print on, and memory. */
#ifndef PORT_H
#define PORT_H

#include <stddef.h>

/* %s %d %u %x %c %p with widths, as far as port/print.c has them. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the emulator with this code. */
void port_exit(int code);
void port_put(char c);

/* A pith_allocator of the static arena. */
void *arena_alloc(void *user, size_t bytes);
void arena_free(void *user, void *memory);
size_t arena_most(void); /* the highest byte that was ever in use */
size_t arena_used(void);

#endif
