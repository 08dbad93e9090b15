/* tensor_file.c - tensors from and to files. */
#include "cli/arrays/tensor_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/text_out.h"
#include "cli/arrays/npy_tensor.h"
#include "cli/output/output.h"

static bool read_npy(pith_tensor *tensor, const char *path, char *message, size_t message_size) {
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    char text[200];
    if (pith__file_open(&file, path, false, NULL, &err)) {
        pith__text_print(message, message_size, "%s", err.message);
        return false;
    }
    const bool good = npy_parse(tensor, file.data, file.size, text, sizeof text);
    if (!good) pith__text_print(message, message_size, "%s: %s", path, text);
    pith__file_close(&file);
    return good;
}

int32_t tensor_file_kind_of(const pith_port *port) {
    const bool maps = port->item_dtype == PITH_MAP_I64 || port->item_dtype == PITH_MAP_STRING;
    if (maps && port->rank == 1 && port->dims[0] == 2) return port->item_dtype;
    return port->dtype == PITH_UNDEFINED ? PITH_F32 : port->dtype;
}

bool tensor_file_open(tensor_file *file, const char *path, int32_t kind, char *message,
                      size_t size) {
    size_t n = strlen(path);
    pith_error err = PITH_ERROR_INIT;
    *file = (tensor_file){ .value = NULL };
    if (n < 3 || strcmp(path + n - 3, ".pb")) return read_npy(&file->tensor, path, message, size);
    if (!pith_value_open(&file->value, &file->tensor, NULL, path, kind, NULL, &err)) return true;
    pith__text_print(message, size, "%s", err.message);
    return false;
}

void tensor_file_reinterpret(tensor_file *file, int32_t wanted) {
    pith_tensor *t = &file->tensor;
    int bits = pith_element_bits(wanted);
    bool unsigned_raw = t->dtype == PITH_U8 || t->dtype == PITH_U16,
         raw = unsigned_raw || t->dtype == PITH_I8;
    bool lacking = wanted == PITH_BF16 || (wanted >= PITH_F8E4M3FN && wanted <= PITH_F8E5M2FNUZ) ||
                   wanted == PITH_F8E8M0;
    if (file->value || !raw) return;
    if (lacking && unsigned_raw && bits == pith_element_bits(t->dtype)) t->dtype = wanted;
    if ((bits != 2 && bits != 4) || t->dtype == PITH_U16) return;
    unsigned char *packed = t->data; /* packed in place: the first element in the low bits */
    int64_t count = pith_shape_count(t->dims, t->rank);
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

static int tensor_file_write_bytes(const tensor_sink *sink, const char *path,
                                   const bytes *contents) {
    output out;
    int code = output_open(&out, sink->command, path, sink->inputs);
    if (code) return code;
    output_write(&out, contents->data, contents->size);
    return output_close(&out, sink->command, true, EXIT_DONE);
}

int tensor_file_write(const tensor_sink *sink, const pith_tensor *t, const char *path, bool *raw) {
    char name[4096];
    int code = EXIT_DONE;
    if (t->dtype == PITH_NONE) return EXIT_DONE;
    if (t->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = t->data;
        for (int64_t i = 0; i < t->dims[0] && !code; i++) {
            snprintf(name, sizeof name, "%s_%lld", path, (long long)i);
            code = tensor_file_write(sink, &items[i], name, raw);
        }
        return code;
    }
    bytes contents = { NULL, 0, 0 };
    bool here = false;
    if (!npy_write(&contents, t, &here))
        code = fail(sink->command, "%s cannot be written as .npy; use --pb",
                    pith_element_name(t->dtype));
    *raw |= here;
    snprintf(name, sizeof name, "%s.npy", path);
    if (!code) code = tensor_file_write_bytes(sink, name, &contents);
    free(contents.data);
    return code;
}

/* What the file holds: a map is a sequence of tensors whose port has maps as items. */
static int32_t tensor_file_kind(const pith_tensor *t, const pith_port *port) {
    const pith_tensor *items = t->data;
    const bool maps = port->item_dtype == PITH_MAP_I64 || port->item_dtype == PITH_MAP_STRING;
    if (port->dtype == PITH_NONE || t->dtype == PITH_NONE) return PITH_NONE;
    if (maps && t->dtype == PITH_SEQUENCE && t->dims[0] == 2 && items[0].dtype != PITH_SEQUENCE)
        return port->item_dtype;
    return t->dtype;
}

int tensor_file_write_pb(const tensor_sink *sink, const pith_tensor *tensor, const char *path,
                         const pith_port *port) {
    char file[4096];
    bytes contents = { NULL, 0, 0 };
    snprintf(file, sizeof file, "%s.pb", path);
    pith_error err = PITH_ERROR_INIT;
    const pith_writer writer = bytes_writer(&contents);
    pith_status status =
        pith_value_write(tensor, port->name, tensor_file_kind(tensor, port), NULL, &writer, &err);
    int code = status ? fail(sink->command, "%s: %s", file, err.message)
                      : tensor_file_write_bytes(sink, file, &contents);
    free(contents.data);
    return code;
}

const char *tensor_text(const pith_tensor *t, char *buffer, size_t size) {
    char shape[200];
    if (t->dtype == PITH_NONE)
        snprintf(buffer, size, "none");
    else if (t->dtype == PITH_SEQUENCE)
        snprintf(buffer, size, "sequence of %lld", (long long)t->dims[0]);
    else
        snprintf(buffer, size, "%s %s", pith_element_name(t->dtype),
                 pith_shape_format(shape, sizeof shape, t->dims, t->rank));
    return buffer;
}
