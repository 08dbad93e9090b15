/* compiled.h - the file of `pith compile` (.pith): a header, a table of sections, the sections.
 *
 * The layout is that of base/formats/section_file.h; a part is a route. The magic is
 * "\x89PITH\r\n\x1a".
 *
 * A model with a Router has several routes, which are numbered from 0, the default. Each has
 * sections of its own; the weights and the names of the routes are those of route 0. A detector of
 * several networks has them as routes, without names, in the order of its networks. Any other model
 * has route 0 only.
 *
 * Offsets are multiples of 64, those of weights of 4096. Sections do not
 * overlap, and each kind occurs once per route. The contents do not depend on the offset, the
 * processor or paths of the machine: the same model gives the same bytes. Opening reads the header
 * and the table only, so its cost does not depend on the size. Only pith__compiled_verify compares
 * the hashes of the contents, so readers of a section treat it as hostile. Sections of an unknown
 * kind are skipped. */
#ifndef PITH_FORMATS_COMPILED_COMPILED_H
#define PITH_FORMATS_COMPILED_COMPILED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/writer.h"

#define PITH_COMPILED_MAGIC "\x89PITH\r\n\x1a"
#define PITH_COMPILED_VERSION 4u
#define PITH_COMPILED_ALIGNMENT 64u
#define PITH_COMPILED_PAGE 4096u
/* Routes of a file. More would need a longer section table; models have two. */
#define PITH_COMPILED_ROUTES 8u

typedef enum pith__section {
    PITH_SECTION_MODEL = 1,     /* settings: ports, how it embeds, what was fused */
    PITH_SECTION_GRAPH = 2,     /* the optimised graph (graph_bytes.h) */
    PITH_SECTION_TEXT = 3,      /* the graph for packed texts, if the model has one */
    PITH_SECTION_WEIGHTS = 4,   /* constants and packed constants of both graphs */
    PITH_SECTION_TOKENIZER = 5, /* a frozen tokenizer (text/frozen_tokenizer.h) */
    PITH_SECTION_HEADS = 6,     /* the graph for packed texts with every output that a head reads,
                                   if that is more than the output of dense vectors: u32 count, u32
                                   numbers of the outputs, the graph */
    PITH_SECTION_WORDS = 7,     /* words of BM42 or miniCOIL */
    PITH_SECTION_PICTURES = 8,  /* what is done to pictures before a model of pixels */
    PITH_SECTION_ROUTES = 9,    /* names of routes: u32 count, each a string and its u32 number */
    PITH_SECTION_NETWORKS = 10, /* of route 0: the name of the detector whose networks are the
                                   routes */
    PITH_SECTION_INFO = 11,     /* a ModelProto without a graph: what the ONNX file said of itself;
                                   formats/onnx/info_read.h */
    PITH_SECTION_COUNT
} pith__section;

/* Returns the name of a section, such as "weights", for messages. */
const char *pith__section_name(pith__section kind);

/* An open file. The data of a section that the file lacks is NULL. */
typedef struct pith__compiled {
    pith_str sections[PITH_SECTION_COUNT]; /* by kind, of the route that was chosen; 0 at first */
    pith_str file;
    size_t size;        /* of the file */
    const char *writer; /* in the file, at most 15 characters and a NUL */
} pith__compiled;

/* True if the bytes begin like a compiled file. */
bool pith__compiled_is(pith_str file);
/* file must be aligned to 64 bytes and outlive everything that is read from it. */
pith_status pith__compiled_open(pith__compiled *compiled, pith_str file, pith_error *err);
/* Chooses a route by one of the names that the model's directory knows it by. NULL stays at the
 * default, and so does any name in a file without routes. PITH_ERR_ARGUMENT lists the names of the
 * file. */
pith_status pith__compiled_choose(pith__compiled *compiled, const char *route, pith_error *err);
/* Chooses a route by its number. One that the file does not have leaves sections without data. */
pith_status pith__compiled_take(pith__compiled *compiled, uint32_t route, pith_error *err);
/* Reads the whole file and compares the hashes. Returns PITH_ERR_FORMAT that names the first
 * damaged section. */
pith_status pith__compiled_verify(pith_str file, pith__stop *stop, pith__progress *told,
                                  pith_error *err);

/* ---- writing ---- */

/* Bytes at an offset of a section; gaps are zeros. */
typedef struct pith__piece_out {
    const void *data;
    size_t size;
    uint64_t offset;
} pith__piece_out;

typedef struct pith__section_out {
    pith__section kind;
    uint32_t route;
    uint64_t size;
    const pith__piece_out *pieces; /* by offset */
    size_t count;
} pith__section_out;

/* The writer, which has been checked, is told the size of the file before its first byte. told
 * hears of the "bytes" that are written. */
pith_status pith__compiled_write(const pith__section_out *sections, size_t count,
                                 const pith_writer *writer, pith__stop *stop, pith__progress *told,
                                 pith_error *err);

#endif
