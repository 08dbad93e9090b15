/* value_file.c - see value_file.h. */
#include "formats/onnx/value_file.h"

#include "base/caller_options.h"
#include "base/error.h"
#include "base/memory/memory.h"
#include "base/os/file.h"
#include "base/str.h"
#include "formats/onnx/model_read.h"

struct pith_value_file {
    pith_allocator allocator;
    pith__arena arena;
    pith__file file;
};

pith_status pith__value_file_open(pith_value_file **file, pith_tensor *tensor, const char **name,
                                  const char *path, int32_t kind, const pith_call *call,
                                  pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__stop *stop = pith__stop_begin(&own, &o);
    const pith_allocator *allocator = &pith__allocator_default;
    pith_value_file *f = pith__memory_alloc(allocator, sizeof *f, 64);
    if (!f) return pith__fail_memory(err, sizeof *f);
    *f = (pith_value_file){ .allocator = *allocator };
    pith__arena_init(&f->arena, &f->allocator);
    pith_str label = PITH_STR("");
    pith_status status = pith__stop_check(stop, err);
    if (!status) status = pith__file_open(&f->file, path, false, &f->allocator, err);
    if (!status) {
        pith_str bytes = { (const char *)f->file.data, f->file.size };
        status = pith__onnx_read_value(tensor, &label, bytes, kind, stop, &f->arena, err);
        if (status) pith__fail_at(err, status, "%s: ", path);
    }
    if (!status) {
        label = pith__arena_str(&f->arena, label);
        if (!label.data) status = pith__fail_memory(err, label.size);
    }
    if (status) {
        pith__value_file_close(f);
        return status;
    }
    if (name) *name = label.data;
    *file = f;
    return PITH_OK;
}

void pith__value_file_close(pith_value_file *file) {
    if (!file) return;
    pith__file_close(&file->file);
    pith__arena_free(&file->arena);
    pith__memory_free(&pith__allocator_default, file);
}
