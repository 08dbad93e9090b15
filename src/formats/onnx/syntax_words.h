/* syntax_words.h - the words of ONNX's text syntax. Source: onnx/defs/parser.h of onnx 1.23.2. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_WORDS_H
#define PITH_FORMATS_ONNX_SYNTAX_WORDS_H

#include <stdbool.h>

#include "base/str.h"

/* AttributeProto.AttributeType. */
typedef enum pith__syntax_attr {
    PITH_SYNTAX_NONE = 0,
    PITH_SYNTAX_FLOAT = 1,
    PITH_SYNTAX_INT = 2,
    PITH_SYNTAX_STRING = 3,
    PITH_SYNTAX_TENSOR = 4,
    PITH_SYNTAX_GRAPH = 5,
    PITH_SYNTAX_FLOATS = 6,
    PITH_SYNTAX_INTS = 7,
    PITH_SYNTAX_STRINGS = 8,
    PITH_SYNTAX_TENSORS = 9,
    PITH_SYNTAX_GRAPHS = 10,
    PITH_SYNTAX_SPARSE = 11,
    PITH_SYNTAX_SPARSES = 12,
    PITH_SYNTAX_TYPE = 13,
    PITH_SYNTAX_TYPES = 14,
    PITH_SYNTAX_ATTRS = 15
} pith__syntax_attr;

const char *pith__syntax_attr_name(pith__syntax_attr type); /* NULL if it has none */
pith__syntax_attr pith__syntax_attr_find(pith_str word);    /* PITH_SYNTAX_NONE if it is none */
/* The list of such values, or the one of a list; the type itself if there is none. */
pith__syntax_attr pith__syntax_attr_list(pith__syntax_attr type);
pith__syntax_attr pith__syntax_attr_single(pith__syntax_attr type);

const char *pith__syntax_dtype_name(int64_t dtype); /* "float" for PITH_F32; NULL if it has none */
int pith__syntax_dtype_find(pith_str word);         /* PITH_UNDEFINED if it is none */

/* How the elements of a tensor are written: integers of some bytes, or floats. Complex numbers are
 * two of them, and of elements below 8 bits the packed bytes are written. */
enum {
    PITH_SYNTAX_ELEMENT_INT = 1,
    PITH_SYNTAX_ELEMENT_UINT,
    PITH_SYNTAX_ELEMENT_FLOAT,
    PITH_SYNTAX_ELEMENT_STRING
};
typedef struct pith__syntax_element {
    unsigned char kind; /* PITH_SYNTAX_ELEMENT_* */
    unsigned char bytes;
} pith__syntax_element;
pith__syntax_element pith__syntax_element_of(int dtype);

bool pith__syntax_is_identifier(pith_str s);
/* seq, map, optional, sparse_tensor, opaque, or an element type. */
bool pith__syntax_is_type(pith_str word);
/* Begins with nan, inf or infinity in any case, and no digit behind it: onnx's parser reads a
 * number then. */
bool pith__syntax_is_float(pith_str word);

#endif
