/* tensor_file.c - tensors and files. */
#include "cli/tensor_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "cli/npy.h"
#include "cli/pb.h"

static bool read_npy(pith_tensor *tensor, const char *path, char *message, size_t size) {
    pith_file file;
    pith_error err = PITH_ERROR_INIT;
    char why[200];
    if (pith_file_open(&file, path, false, NULL, &err)) return snprintf(message, size, "%s", err.message), false;
    bool good = npy_parse(tensor, file.data, file.size, why, sizeof why);
    if (!good) snprintf(message, size, "%s: %s", path, why);
    pith_file_close(&file);
    return good;
}

bool tensor_file_open(tensor_file *file, const char *path, int32_t kind, char *message, size_t size) {
    size_t n = strlen(path);
    pith_error err = PITH_ERROR_INIT;
    *file = (tensor_file){ .value = NULL };
    if (n < 3 || strcmp(path + n - 3, ".pb")) return read_npy(&file->tensor, path, message, size);
    if (!pith_value_open(&file->value, &file->tensor, NULL, path, kind, &err)) return true;
    snprintf(message, size, "%s", err.message);
    return false;
}

void tensor_file_reinterpret(tensor_file *file, int32_t wanted) {
    pith_tensor *t = &file->tensor;
    int bits = wanted > 0 && wanted < PITH_DTYPE_COUNT ? pith_dtype_bits(wanted) : 0;
    bool unsigned_raw = t->dtype == PITH_U8 || t->dtype == PITH_U16, raw = unsigned_raw || t->dtype == PITH_I8;
    bool lacking =
        wanted == PITH_BF16 || (wanted >= PITH_F8E4M3FN && wanted <= PITH_F8E5M2FNUZ) || wanted == PITH_F8E8M0;
    if (file->value || !raw) return;
    if (lacking && unsigned_raw && bits == pith_dtype_bits(t->dtype)) t->dtype = wanted;
    if ((bits != 2 && bits != 4) || t->dtype == PITH_U16) return;
    unsigned char *packed = t->data; /* packed in place: the first element in the low bits */
    int64_t count = pith_dims_count(t->dims, t->rank);
    int per = 8 / bits;
    for (int64_t i = 0; i < count; i++) {
        unsigned value = packed[i] & ((1u << bits) - 1), shift = (unsigned)(i % per * bits);
        packed[i / per] = (unsigned char)((shift ? packed[i / per] : 0) | value << shift);
    }
    t->dtype = wanted;
    t->bytes = (size_t)((count + per - 1) / per);
}

void tensor_file_close(tensor_file *file) {
    if (file->value)
        pith_value_close(file->value);
    else
        npy_free(&file->tensor);
    *file = (tensor_file){ .value = NULL };
}

static bool write_bytes(const char *path, const bytes *contents, char *message, size_t size) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(contents->data, 1, contents->size, f) == contents->size;
    if (f && fclose(f)) good = false;
    if (!good) snprintf(message, size, "%s: %s", path, strerror(errno));
    return good;
}

bool tensor_file_write(const pith_tensor *t, const char *path, bool *raw, char *message, size_t size) {
    char name[4096];
    if (t->dtype == PITH_NONE) return true;
    if (t->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = t->data;
        for (int64_t i = 0; i < t->dims[0]; i++) {
            snprintf(name, sizeof name, "%s_%lld", path, (long long)i);
            if (!tensor_file_write(&items[i], name, raw, message, size)) return false;
        }
        return true;
    }
    bytes contents = { NULL, 0, 0 };
    bool here = false;
    bool good = npy_write(&contents, t, &here);
    *raw |= here;
    if (!good) snprintf(message, size, "%s cannot be written as .npy", pith_dtype_name(t->dtype));
    snprintf(name, sizeof name, "%s.npy", path);
    good = good && write_bytes(name, &contents, message, size);
    free(contents.data);
    return good;
}

bool tensor_file_write_pb(const pith_tensor *tensor, const char *path, const char *name, bool optional, char *message,
                          size_t size) {
    char file[4096];
    bytes contents = { NULL, 0, 0 };
    snprintf(file, sizeof file, "%s.pb", path);
    pb_write(&contents, tensor, name, optional);
    bool good = write_bytes(file, &contents, message, size);
    free(contents.data);
    return good;
}

const char *tensor_text(const pith_tensor *t, char *buffer, size_t size) {
    char shape[200];
    if (t->dtype == PITH_NONE)
        snprintf(buffer, size, "none");
    else if (t->dtype == PITH_SEQUENCE)
        snprintf(buffer, size, "sequence of %lld", (long long)t->dims[0]);
    else
        snprintf(buffer, size, "%s %s", pith_dtype_name(t->dtype),
                 pith_dims_text(t->dims, t->rank, shape, sizeof shape));
    return buffer;
}
