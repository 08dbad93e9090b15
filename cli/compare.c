/* compare.c - comparing tensors as ONNX's own test runner does (numpy.testing.assert_allclose). */
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "base/str.h"
#include "cli/tensor_file.h"

#define READ(type)                                                                                                     \
    do {                                                                                                               \
        type value;                                                                                                    \
        memcpy(&value, p + i * sizeof value, sizeof value);                                                            \
        return (double)value;                                                                                          \
    } while (0)

/* Element i of parts numbers (2 per complex element) as a double, as NumPy compares them too. */
static double number(const pith_tensor *t, size_t i) {
    const unsigned char *p = t->data;
    uint16_t half = 0;
    int bits = pith_dtype_bits(t->dtype);
    if (t->dtype == PITH_F16 || t->dtype == PITH_BF16) memcpy(&half, p + 2 * i, 2);
    if (bits < 8) {
        int value = p[i * (size_t)bits / 8] >> (i * (size_t)bits % 8) & ((1 << bits) - 1);
        if (t->dtype == PITH_F4E2M1) return (double)pith_f32_of_f8((uint8_t)value, t->dtype);
        bool is_signed = t->dtype == PITH_I4 || t->dtype == PITH_I2;
        return is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
    }
    switch (t->dtype) {
    case PITH_F32:
    case PITH_C64: READ(float);
    case PITH_F64:
    case PITH_C128: READ(double);
    case PITH_U8:
    case PITH_BOOL: READ(uint8_t);
    case PITH_I8: READ(int8_t);
    case PITH_U16: READ(uint16_t);
    case PITH_I16: READ(int16_t);
    case PITH_U32: READ(uint32_t);
    case PITH_I32: READ(int32_t);
    case PITH_U64: READ(uint64_t);
    case PITH_I64: READ(int64_t);
    case PITH_F16: return (double)pith_f32_of_f16(half);
    case PITH_BF16: return (double)pith_f32_of_bf16(half);
    default: return (double)pith_f32_of_f8(p[i], t->dtype);
    }
}

static bool numbers_agree(const pith_tensor *got, const pith_tensor *wanted, size_t count, tolerance t, double *worst,
                          char *message, size_t size) {
    size_t parts = got->dtype == PITH_C64 || got->dtype == PITH_C128 ? 2 : 1, bad = 0, place = 0;
    double largest = 0, a_at = 0, b_at = 0;
    if (got->dtype == PITH_BF16 && t.rtol < t.rtol_bf16) t.rtol = t.rtol_bf16;
    for (size_t i = 0; i < count * parts; i++) {
        double a = number(got, i), b = number(wanted, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        double difference = isnan(a) || isnan(b) || isinf(a) || isinf(b) ? INFINITY : fabs(a - b);
        if (worst && difference > *worst) *worst = difference;
        if (difference <= t.atol + t.rtol * fabs(b)) continue;
        bad++;
        if (bad > 1 && difference <= largest) continue;
        largest = difference;
        place = i / parts;
        a_at = a;
        b_at = b;
    }
    if (!bad) return true;
    snprintf(message, size, "%zu of %zu elements differ, most at element %zu: %.9g instead of %.9g (by %.3g)", bad,
             count, place, a_at, b_at, largest);
    return false;
}

bool tensors_agree(const pith_tensor *got, const pith_tensor *wanted, tolerance t, double *worst, char *message,
                   size_t size) {
    char a[300], b[300];
    bool same_shape = got->dtype == wanted->dtype && got->rank == wanted->rank;
    for (int i = 0; same_shape && i < got->rank; i++) same_shape = got->dims[i] == wanted->dims[i];
    if (!same_shape) {
        snprintf(message, size, "%s instead of %s", tensor_text(got, a, sizeof a), tensor_text(wanted, b, sizeof b));
        return false;
    }
    if (got->dtype == PITH_NONE) return true;
    int64_t count = pith_dims_count(got->dims, got->rank);
    if (got->dtype == PITH_SEQUENCE) {
        const pith_tensor *x = got->data, *y = wanted->data;
        for (int64_t i = 0; i < count; i++)
            if (!tensors_agree(&x[i], &y[i], t, worst, a, sizeof a)) {
                snprintf(message, size, "item %lld: %s", (long long)i, a);
                return false;
            }
        return true;
    }
    if (got->dtype == PITH_STRING) {
        const pith_str *x = got->data, *y = wanted->data;
        for (int64_t i = 0; i < count; i++)
            if (!pith_str_eq(x[i], y[i])) {
                snprintf(message, size, "element %lld: '%.*s' instead of '%.*s'", (long long)i, PITH_STR_ARG(x[i]),
                         PITH_STR_ARG(y[i]));
                return false;
            }
        return true;
    }
    return numbers_agree(got, wanted, (size_t)count, t, worst, message, size);
}
