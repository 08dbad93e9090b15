/* select_cost.h - what the pieces of a list weigh in a program, and what leads to a piece: answers
 * from the static library that programs link.
 *
 * This folder serves `pith select --cost`, alone or with --why, and nothing else. link_graph.h
 * reads the library's ELF objects. */
#ifndef PITH_CLI_SELECT_COST_SELECT_COST_H
#define PITH_CLI_SELECT_COST_SELECT_COST_H

#include <stdio.h>

#include "cli/base/cli.h"
#include "cli/select/piece_list.h"

/* The library beside the command, or where it is installed, in path[size]. False after a message:
 * there is none. */
bool select_cost_find(char *path, size_t size, const command *c);

/* Prints what the program of these uses (select_uses.h; 0: all) links of the archive: all of it,
 * what it links without any piece, and per instruction set, kind and piece two figures. adds: the
 * bytes that go if this is left out alone. with: the bytes that it needs beside a program without
 * pieces; others may need a part of them too. Kernels count for the list's dtypes and instruction
 * sets. EXIT_DONE, or another exit code after a message. */
int select_cost(FILE *out, const piece_list *list, const char *archive, unsigned uses,
                const command *c);

/* Prints how a program of these uses comes to link a piece, such as MatMul or com.microsoft::Gelu,
 * or a function of the archive: each line is a section that refers to the next one. EXIT_DONE, also
 * if it does not. */
int select_cost_path(FILE *out, const char *name, const char *archive, unsigned uses,
                     const command *c);

#endif
