/* syntax_words.c - see syntax_words.h. */
#include "formats/onnx/syntax_words.h"

static const char *const attr_words[] = {
    [PITH_SYNTAX_FLOAT] = "float",
    [PITH_SYNTAX_INT] = "int",
    [PITH_SYNTAX_STRING] = "string",
    [PITH_SYNTAX_TENSOR] = "tensor",
    [PITH_SYNTAX_GRAPH] = "graph",
    [PITH_SYNTAX_SPARSE] = "sparse_tensor",
    [PITH_SYNTAX_TYPE] = "type_proto",
    [PITH_SYNTAX_FLOATS] = "floats",
    [PITH_SYNTAX_INTS] = "ints",
    [PITH_SYNTAX_STRINGS] = "strings",
    [PITH_SYNTAX_TENSORS] = "tensors",
    [PITH_SYNTAX_GRAPHS] = "graphs",
    [PITH_SYNTAX_SPARSES] = "sparse_tensors",
    [PITH_SYNTAX_TYPES] = "type_protos",
};

static const struct {
    const char *name;
    pith__syntax_element element;
} dtype_words[PITH_DTYPE_COUNT] = {
    [PITH_F32] = { "float", { PITH_SYNTAX_ELEMENT_FLOAT, 4 } },
    [PITH_U8] = { "uint8", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_I8] = { "int8", { PITH_SYNTAX_ELEMENT_INT, 1 } },
    [PITH_U16] = { "uint16", { PITH_SYNTAX_ELEMENT_UINT, 2 } },
    [PITH_I16] = { "int16", { PITH_SYNTAX_ELEMENT_INT, 2 } },
    [PITH_I32] = { "int32", { PITH_SYNTAX_ELEMENT_INT, 4 } },
    [PITH_I64] = { "int64", { PITH_SYNTAX_ELEMENT_INT, 8 } },
    [PITH_STRING] = { "string", { PITH_SYNTAX_ELEMENT_STRING, sizeof(pith_str) } },
    [PITH_BOOL] = { "bool", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F16] = { "float16", { PITH_SYNTAX_ELEMENT_UINT, 2 } },
    [PITH_F64] = { "double", { PITH_SYNTAX_ELEMENT_FLOAT, 8 } },
    [PITH_U32] = { "uint32", { PITH_SYNTAX_ELEMENT_UINT, 4 } },
    [PITH_U64] = { "uint64", { PITH_SYNTAX_ELEMENT_UINT, 8 } },
    [PITH_C64] = { "complex64", { PITH_SYNTAX_ELEMENT_FLOAT, 4 } },
    [PITH_C128] = { "complex128", { PITH_SYNTAX_ELEMENT_FLOAT, 8 } },
    [PITH_BF16] = { "bfloat16", { PITH_SYNTAX_ELEMENT_UINT, 2 } },
    [PITH_F8E4M3FN] = { "float8e4m3fn", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F8E4M3FNUZ] = { "float8e4m3fnuz", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F8E5M2] = { "float8e5m2", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F8E5M2FNUZ] = { "float8e5m2fnuz", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_U4] = { "uint4", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_I4] = { "int4", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F4E2M1] = { "float4e2m1", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_F8E8M0] = { "float8e8m0", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_U2] = { "uint2", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
    [PITH_I2] = { "int2", { PITH_SYNTAX_ELEMENT_UINT, 1 } },
};

const char *pith__syntax_attr_name(pith__syntax_attr type) {
    return type < sizeof attr_words / sizeof *attr_words ? attr_words[type] : NULL;
}

pith__syntax_attr pith__syntax_attr_find(pith_str word) {
    for (unsigned i = 1; i < sizeof attr_words / sizeof *attr_words; i++)
        if (attr_words[i] && pith__str_is(word, attr_words[i])) return (pith__syntax_attr)i;
    return PITH_SYNTAX_NONE;
}

static const pith__syntax_attr attr_lists[][2] = {
    { PITH_SYNTAX_FLOAT, PITH_SYNTAX_FLOATS },   { PITH_SYNTAX_INT, PITH_SYNTAX_INTS },
    { PITH_SYNTAX_STRING, PITH_SYNTAX_STRINGS }, { PITH_SYNTAX_TENSOR, PITH_SYNTAX_TENSORS },
    { PITH_SYNTAX_GRAPH, PITH_SYNTAX_GRAPHS },   { PITH_SYNTAX_TYPE, PITH_SYNTAX_TYPES }
};
enum { ATTR_LISTS = sizeof attr_lists / sizeof *attr_lists };

pith__syntax_attr pith__syntax_attr_list(pith__syntax_attr type) {
    for (int i = 0; i < ATTR_LISTS; i++)
        if (attr_lists[i][0] == type) return attr_lists[i][1];
    return type;
}

pith__syntax_attr pith__syntax_attr_single(pith__syntax_attr type) {
    for (int i = 0; i < ATTR_LISTS; i++)
        if (attr_lists[i][1] == type) return attr_lists[i][0];
    return type;
}

const char *pith__syntax_dtype_name(int64_t dtype) {
    return dtype > 0 && dtype < PITH_DTYPE_COUNT ? dtype_words[dtype].name : NULL;
}

int pith__syntax_dtype_find(pith_str word) {
    for (int i = 1; i < PITH_DTYPE_COUNT; i++)
        if (pith__str_is(word, dtype_words[i].name)) return i;
    return PITH_UNDEFINED;
}

pith__syntax_element pith__syntax_element_of(int dtype) { return dtype_words[dtype].element; }

static bool words_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool pith__syntax_is_identifier(pith_str s) {
    if (!s.size || !(words_letter(s.data[0]) || s.data[0] == '_')) return false;
    for (size_t i = 1; i < s.size; i++)
        if (!(words_letter(s.data[i]) || s.data[i] == '_' ||
              (s.data[i] >= '0' && s.data[i] <= '9')))
            return false;
    return true;
}

bool pith__syntax_is_type(pith_str word) {
    static const char *const others[] = { "seq", "map", "optional", "sparse_tensor", "opaque" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (pith__str_is(word, others[i])) return true;
    return pith__syntax_dtype_find(word) != PITH_UNDEFINED;
}

bool pith__syntax_is_float(pith_str word) {
    static const char *const floats[] = { "nan", "inf", "infinity" };
    size_t letters = 0;
    while (letters < word.size && words_letter(word.data[letters])) letters++;
    if (letters < word.size && word.data[letters] >= '0' && word.data[letters] <= '9') return false;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        size_t n = 0;
        while (n < letters && floats[i][n] == (char)(word.data[n] | 32)) n++;
        if (n == letters && !floats[i][n]) return true;
    }
    return false;
}
