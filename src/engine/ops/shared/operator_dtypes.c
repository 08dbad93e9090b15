/* operator_dtypes.c - the dtypes that operators take, one letter per set of dtypes
 * (pith__op.types). */
#include <string.h>

#include "base/dtype.h"
#include "engine/ops/custom/custom.h"

#define T(dtype) (1u << PITH_##dtype)
#define FLOATS (T(F16) | T(BF16) | T(F32) | T(F64))
#define SIGNED (T(I8) | T(I16) | T(I32) | T(I64))
#define UNSIGNED (T(U8) | T(U16) | T(U32) | T(U64))
#define NUMBERS (FLOATS | SIGNED | UNSIGNED)
#define FLOATS_8 (T(F8E4M3FN) | T(F8E4M3FNUZ) | T(F8E5M2) | T(F8E5M2FNUZ))
#define PACKED (T(U4) | T(I4) | T(F4E2M1) | T(U2) | T(I2))
#define ALL (~(T(UNDEFINED)) & ((1u << PITH_DTYPE_COUNT) - 1))

static const struct {
    char letter;
    uint32_t dtypes;
    const char *text;
} sets[] = {
    { 'a', ALL, "all types" },
    { 'b', T(BOOL), "bool" },
    { 'c', NUMBERS | T(BOOL) | T(STRING), "numbers, bool, string" },
    { 'd', T(F32) | T(F64), "f32, f64" },
    { 'e', T(F32), "f32" },
    { 'f', FLOATS, "floats" },
    { 'g', T(F32) | T(F64) | T(I32) | T(I64), "f32, f64, i32, i64" },
    { 'h', T(F32) | T(F16) | T(BF16), "f32, f16, bf16" },
    { 'i', T(I32) | T(I64), "i32, i64" },
    { 'j', FLOATS | T(I32) | T(I64), "floats, i32, i64" },
    { 'k', NUMBERS | T(STRING), "numbers, string" },
    { 'l', T(I64), "i64" },
    { 'm', ALL & ~PACKED, "all types of 8 bits and more" },
    { 'n', NUMBERS, "numbers" },
    { 'o', FLOATS | SIGNED, "floats, signed integers" },
    { 'p', ALL & ~PACKED & ~T(STRING), "all types of 8 bits and more but string" },
    { 'q', T(U8) | T(I8), "u8, i8" },
    { 'r', FLOATS | T(I32) | T(I64) | T(U32) | T(U64), "floats, integers of 32 and 64 bits" },
    { 's', T(STRING), "string" },
    { 't', T(I64) | T(I32) | T(STRING), "i32, i64, string" },
    { 'u', UNSIGNED, "unsigned integers" },
    { 'v', NUMBERS | T(BOOL), "numbers, bool" },
    { 'w', T(I32), "i32" },
    { 'x', FLOATS | FLOATS_8, "floats, f8" },
    { 'y', FLOATS | T(U8) | T(I8), "floats, u8, i8" },
    { 'z', SIGNED | UNSIGNED, "integers" },
    { 'B', T(U8), "u8" },
    { 'C', ALL & ~T(C64) & ~T(C128), "all types but complex" },
    { 'E', FLOATS | T(I32) | T(F8E8M0), "floats, i32, f8e8m0" },
    { 'G', NUMBERS | T(BOOL) | FLOATS_8, "numbers, bool, f8" },
    { 'H', T(F32) | T(F64) | T(I32) | T(I64) | T(U32) | T(U64) | T(STRING),
      "f32, f64, 32- and 64-bit integers, string" },
    { 'Q', T(U8) | T(I8) | T(U16) | T(I16) | T(I32) | PACKED | FLOATS_8,
      "integers up to 32 bits, f8, f4" },
    { 'S', NUMBERS | T(BOOL) | T(C64) | T(C128), "numbers, bool, complex" },
    { 'W', T(U8) | T(I8) | FLOATS_8, "u8, i8, f8" },
    { 'Z', NUMBERS | T(BOOL) | T(STRING) | T(C64) | T(C128), "numbers, bool, complex, string" },
};

/* The set of an input's letter; NULL if anything goes. */
static const char *dtypes_letter_of(const pith__op *op, int input) {
    size_t count = op->types ? strlen(op->types) : 0;
    size_t at = (size_t)input < count ? (size_t)input : count - 1;
    const char *letter = count ? op->types + at : NULL;
    return letter && *letter != '*' ? letter : NULL;
}

static int dtypes_custom_word(const pith__custom_op *op, int input) {
    return input < op->dtype_count ? input : op->dtype_count - 1;
}

/* An operator without a list takes everything; sequences are not dtypes of this kind and are
 * checked elsewhere. */
bool pith__op_takes_dtype(const pith__op *op, int input, int dtype) {
    if (op->flags & PITH_OP_CUSTOM) {
        const pith__custom_op *custom = pith__custom_of(op);
        if (!custom->dtype_count || dtype <= PITH_UNDEFINED || dtype >= PITH_DTYPE_COUNT)
            return true;
        return custom->dtypes[dtypes_custom_word(custom, input)] >> dtype & 1;
    }
    const char *letter = dtypes_letter_of(op, input);
    if (!letter || dtype <= PITH_UNDEFINED || dtype >= PITH_DTYPE_COUNT) return true;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (sets[i].letter == *letter) return sets[i].dtypes >> dtype & 1;
    }
    return false;
}

const char *pith__op_dtypes_text(const pith__op *op, int input) {
    if (op->flags & PITH_OP_CUSTOM) {
        const pith__custom_op *custom = pith__custom_of(op);
        return custom->dtype_count ? custom->text[dtypes_custom_word(custom, input)] : "any";
    }
    const char *letter = dtypes_letter_of(op, input);
    if (letter) {
        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
            if (sets[i].letter == *letter) return sets[i].text;
        }
    }
    return "any";
}
