/* compare_tensors.c - comparing tensors as ONNX's own test runner does
 * (numpy.testing.assert_allclose). */
#include "cli/compare/compare_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_out.h"
#include "cli/arrays/tensor_file.h"

/* Elements that are converted at a time. */
enum { BLOCK = 256 };

/* The parts of a complex tensor (2 per element) as a tensor of real numbers; any other tensor as it
 * is. */
static pith_tensor parts_of(const pith_tensor *t, size_t count) {
    bool complex = t->dtype == PITH_C64 || t->dtype == PITH_C128;
    if (!complex) return *t;
    return (pith_tensor){ .data = t->data,
                          .bytes = t->bytes,
                          .dtype = t->dtype == PITH_C64 ? PITH_F32 : PITH_F64,
                          .rank = 2,
                          .dims = { (int64_t)count, 2 } };
}

/* Where two tensors of numbers differ most, among the elements that differ too much. */
typedef struct difference {
    size_t count, place;
    double largest, got, wanted;
} difference;

static void compare_numbers(difference *d, double a, double b, size_t place, tolerance t,
                            double *worst) {
    if (a == b || (isnan(a) && isnan(b))) return;
    double by = isnan(a) || isnan(b) || isinf(a) || isinf(b) ? INFINITY : fabs(a - b);
    if (worst && by > *worst) *worst = by;
    if (by <= t.atol + t.rtol * fabs(b)) return;
    if (++d->count > 1 && by <= d->largest) return;
    d->largest = by;
    d->place = place;
    d->got = a;
    d->wanted = b;
}

/* As doubles, as NumPy compares them too. */
static bool numbers_agree(const pith_tensor *got, const pith_tensor *wanted, size_t count,
                          tolerance t, double *worst, char *message, size_t size) {
    double a[BLOCK], b[BLOCK];
    pith_tensor x = parts_of(got, count), y = parts_of(wanted, count);
    size_t parts = x.dtype == got->dtype ? 1 : 2;
    difference d = { 0 };
    pith_error err = PITH_ERROR_INIT;
    if (got->dtype == PITH_BF16 && t.rtol < t.rtol_bf16) t.rtol = t.rtol_bf16;
    for (size_t at = 0, n; at < count * parts; at += n) {
        n = count * parts - at < BLOCK ? count * parts - at : BLOCK;
        if (pith_tensor_convert(a, PITH_F64, &x, at, n, &err) ||
            pith_tensor_convert(b, PITH_F64, &y, at, n, &err)) {
            pith__text_print(message, size, "%s", err.message);
            return false;
        }
        for (size_t i = 0; i < n; i++) compare_numbers(&d, a[i], b[i], (at + i) / parts, t, worst);
    }
    if (!d.count) return true;
    pith__text_print(
        message, size,
        "%zu of %zu elements differ, most at element %zu: %.9g instead of %.9g (by %.3g)", d.count,
        count, d.place, d.got, d.wanted, d.largest);
    return false;
}

static bool sequences_agree(const pith_tensor *got, const pith_tensor *wanted, tolerance t,
                            double *worst, char *message, size_t size) {
    const pith_tensor *x = got->data, *y = wanted->data;
    char why[300];
    for (int64_t i = 0; i < got->dims[0]; i++)
        if (!tensors_agree(&x[i], &y[i], t, worst, why, sizeof why)) {
            pith__text_print(message, size, "item %lld: %s", (long long)i, why);
            return false;
        }
    return true;
}

/* The beginning of a string, for messages. */
#define SHOWN(s) (int)((s).size < 200 ? (s).size : 200), (s).data ? (s).data : ""

static bool strings_agree(const pith_tensor *got, const pith_tensor *wanted, size_t count,
                          char *message, size_t size) {
    const pith_str *x = got->data, *y = wanted->data;
    for (size_t i = 0; i < count; i++)
        if (x[i].size != y[i].size || (x[i].size && memcmp(x[i].data, y[i].data, x[i].size))) {
            pith__text_print(message, size, "element %zu: '%.*s' instead of '%.*s'", i, SHOWN(x[i]),
                             SHOWN(y[i]));
            return false;
        }
    return true;
}

bool tensors_agree(const pith_tensor *got, const pith_tensor *wanted, tolerance t, double *worst,
                   char *message, size_t size) {
    char a[300], b[300];
    bool same_shape = got->dtype == wanted->dtype && got->rank == wanted->rank;
    for (int i = 0; same_shape && i < got->rank; i++) same_shape = got->dims[i] == wanted->dims[i];
    if (!same_shape) {
        pith__text_print(message, size, "%s instead of %s", tensor_text(got, a, sizeof a),
                         tensor_text(wanted, b, sizeof b));
        return false;
    }
    size_t count = (size_t)pith_shape_count(got->dims, got->rank);
    switch (got->dtype) {
    case PITH_NONE: return true;
    case PITH_SEQUENCE: return sequences_agree(got, wanted, t, worst, message, size);
    case PITH_STRING: return strings_agree(got, wanted, count, message, size);
    default: return numbers_agree(got, wanted, count, t, worst, message, size);
    }
}
