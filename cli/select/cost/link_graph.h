/* link_graph.h - what a static library's sections refer to, so that it can be told what a program
 * links and why.
 *
 * A linker that is told to leave out what nothing needs (--gc-sections) keeps the sections that are
 * reached from those it begins with. This does the same with the objects of an archive: ELF of 64
 * bits, little-endian, any processor. Bytes are those of sections that a program keeps in its file:
 * text, constants, initialised data, and the unwind entries of functions. Each is rounded up to its
 * alignment. Left out: what the C library adds, relocations for the loader, and what the linker
 * saves when it merges equal constants. */
#ifndef PITH_CLI_SELECT_COST_LINK_GRAPH_H
#define PITH_CLI_SELECT_COST_LINK_GRAPH_H

#include "cli/base/cli.h"

typedef struct link_graph link_graph;

enum { LINK_NONE = -1 };

/* EXIT_DONE, or another exit code after a message that names the file and what is wrong in it. */
int link_graph_open(link_graph **out, const command *c, const char *path);
void link_graph_close(link_graph *g); /* NULL is fine */

/* The section in which a symbol is defined for other objects; LINK_NONE: it is not. */
int64_t link_graph_find(const link_graph *g, const char *symbol);
size_t link_graph_count(const link_graph *g);
/* "pass_gelu.c.o .text.gelu_run" */
void link_graph_name(char *text, size_t size, const link_graph *g, size_t section);

/* The object that defines the symbol holds tables of pieces. False: there is no such symbol. */
bool link_graph_set_table(link_graph *g, const char *symbol);

/* A section that tables have an entry for. */
void link_graph_set_piece(link_graph *g, size_t section);

/* Follows all references from a section. seen: a byte per section, 1 for those reached; these are
 * not followed again. shut: a byte per section, 1 for a piece that tables do not have: references
 * to it are not followed, and a table weighs as much less. from: NULL, or per section which one it
 * was first reached from. Returns the bytes of the sections that are reached now. */
uint64_t link_graph_reach(const link_graph *g, size_t section, const unsigned char *shut,
                          unsigned char *seen, uint32_t *from);

#endif
