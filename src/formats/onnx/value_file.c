/* value_file.c - see value_file.h. */
#include "formats/onnx/value_file.h"

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory/memory.h"
#include "base/str.h"
#include "formats/onnx/onnx.h"

struct pith_value_file {
    pith_allocator allocator;
    pith_arena arena;
    pith_file file;
};

pith_status pith_value_file_open(pith_value_file **file, pith_tensor *tensor, const char **name, const char *path,
                                 int32_t kind, pith_error *err) {
    const pith_allocator *allocator = &pith_allocator_default;
    pith_value_file *f = pith_memory_alloc(allocator, sizeof *f, 64);
    if (!f) return pith_fail_memory(err, sizeof *f);
    *f = (pith_value_file){ .allocator = *allocator };
    pith_arena_init(&f->arena, &f->allocator);
    pith_str label = PITH_STR("");
    pith_status status = pith_file_open(&f->file, path, false, &f->allocator, err);
    if (!status) {
        pith_str bytes = { (const char *)f->file.data, f->file.size };
        status = pith_onnx_read_tensor(tensor, &label, bytes, kind, &f->arena, err);
        if (status) pith_fail_at(err, status, "%s: ", path);
    }
    if (!status) {
        label = pith_arena_str(&f->arena, label);
        if (!label.data) status = pith_fail_memory(err, label.size);
    }
    if (status) {
        pith_value_file_close(f);
        return status;
    }
    if (name) *name = label.data;
    *file = f;
    return PITH_OK;
}

void pith_value_file_close(pith_value_file *file) {
    if (!file) return;
    pith_file_close(&file->file);
    pith_arena_free(&file->arena);
    pith_memory_free(&pith_allocator_default, file);
}
