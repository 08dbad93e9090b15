/* vector_layout.c - see vector_layout.h. */
#include "cli/arrays/vector_layout.h"

#include <stdlib.h>
#include <string.h>

#include "cli/arrays/vector_file.h"

static bool layout_is_bytes8(const layout_settings *s) {
    return s->type == PITH_VECTOR_INT8 || s->type == PITH_VECTOR_UINT8;
}

int vector_layout_check(const command *c, const layout_settings *s) {
    if (s->ranges && !layout_is_bytes8(s))
        return usage(c, "--ranges goes with --dtype int8 or uint8");
    if (s->type != PITH_VECTOR_F32 && s->format == FORMAT_F32)
        return usage(
            c,
            "--format f32 holds 32-bit floats; use --format npy, jsonl, csv or tsv with --dtype");
    return EXIT_DONE;
}

/* Two rows are the minima and the maxima; more are vectors that they are taken from. */
static int layout_ranges(float **ranges, const command *c, const char *path, size_t dim) {
    vector_file file;
    pith_error err = PITH_ERROR_INIT;
    const vector_reading how = { .dim = dim, .field = "embedding" };
    int code = vector_file_open(&file, c, path, &how);
    if (code) return code;
    if (file.count < 2)
        code = fail(c,
                    "%s: one vector gives no ranges; give the minima and the maxima, or three "
                    "vectors or more",
                    path);
    if (!code && file.dim != dim)
        code = fail(c, "%s: its rows have %zu components and vectors here have %zu", path, file.dim,
                    dim);
    float *rows = code ? NULL : vector_file_floats(&file);
    if (!code) *ranges = grow(NULL, 2 * dim * sizeof **ranges);
    if (!code && file.count == 2)
        memcpy(*ranges, rows, 2 * dim * sizeof **ranges);
    else if (!code && pith_quantize_ranges(*ranges, rows, file.count, dim, NULL, &err))
        code = fail(c, "%s: %s", path, err.message);
    free(rows);
    vector_file_close(&file);
    return code;
}

int vector_layout_make(vector_layout *layout, const command *c, const layout_settings *s,
                       size_t dim) {
    pith_error err = PITH_ERROR_INIT;
    float *ranges = NULL;
    *layout = (vector_layout){ .format = (vector_format)s->format,
                               .dim = dim,
                               .as = PITH_QUANTIZE_OPTIONS_INIT,
                               .ids = s->ids };
    layout->as.type = s->type;
    int code = s->ranges ? layout_ranges(&ranges, c, s->ranges, dim) : EXIT_DONE;
    layout->as.ranges = ranges;
    if (!code && pith_quantize_vectors(NULL, NULL, 0, dim, &layout->as, &err))
        code = fail(c, "%s: %s", s->ranges ? s->ranges : "--dtype", err.message);
    if (code) vector_layout_free(layout);
    return code;
}

void vector_layout_free(vector_layout *layout) {
    free((void *)(uintptr_t)layout->as.ranges);
    layout->as.ranges = NULL;
}
