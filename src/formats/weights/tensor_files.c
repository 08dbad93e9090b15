/* tensor_files.c - finds the files with a directory's tensors and reads them, one file or the
 * shards of an index. */
#include "base/left_out_pieces.h"
#include "base/optional_part.h"
#include "formats/weights/tensor_files.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/formats/json.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"
#include "engine/graph/graph.h"
#include "formats/weights/gguf/gguf.h"
#include "formats/weights/safetensors/safetensors.h"
#include "formats/weights/torch/torch_file.h"

pith_status pith__weights_init(pith__weights *weights, pith__arena *arena, pith_error *err) {
    *weights = (pith__weights){ .arena = arena };
    return pith__map_init(&weights->names, arena, 256) ? pith__fail_memory(err, 0) : PITH_OK;
}

const pith_tensor *pith__weights_find(const pith__weights *weights, pith_str name) {
    uint32_t place = pith__map_get(&weights->names, name);
    return place == UINT32_MAX ? NULL : &weights->items[place];
}

/* A name that occurs twice is refused: shards and files beside the weights must not replace each
 * other's tensors. */
pith_status pith__weights_put(pith__weights *w, pith_str name, const pith_tensor *tensor,
                              pith_error *err) {
    uint32_t old;
    void *keys = w->keys, *items = w->items;
    if (!pith__arena_grow(w->arena, &keys, w->count, &w->key_capacity, sizeof *w->keys) ||
        !pith__arena_grow(w->arena, &items, w->count, &w->capacity, sizeof *w->items) ||
        !pith__map_put(&w->names, name, (uint32_t)w->count, &old))
        return pith__fail_memory(err, sizeof *w->items);
    if (old != UINT32_MAX) return pith__fail(err, PITH_ERR_FORMAT, "the tensor is listed twice");
    w->keys = keys;
    w->items = items;
    w->keys[w->count] = name;
    w->items[w->count++] = *tensor;
    return PITH_OK;
}

/* Tensors are used in the mapped file where their type allows the address; else they are copied.
 * Eight bytes are the strictest alignment that a type has. */
pith_status pith__weights_place(pith_tensor *tensor, const char *data, pith__arena *arena,
                                pith_error *err) {
    size_t alignment = (size_t)pith__dtype_bits(tensor->dtype) / 8;
    if (alignment > 8) alignment = 8;
    tensor->data = (void *)(uintptr_t)data;
    if (pith__constant_lies_anywhere(tensor) || (uintptr_t)data % alignment == 0) return PITH_OK;
    tensor->data = pith__arena_alloc64(arena, tensor->bytes);
    if (!tensor->data) return pith__fail_memory(err, tensor->bytes);
    return pith__copy_until(pith__account_stop(arena->allocator), tensor->data, data, tensor->bytes,
                            err);
}

static bool tensor_files_name_ends(pith_str name, const char *end) {
    size_t n = strlen(end);
    return name.size >= n && !memcmp(name.data + name.size - n, end, n);
}

static pith_status tensor_files_open_file(pith_str *bytes, pith__files *files, const char *dir,
                                          pith_str name, pith__arena *arena, pith_error *err) {
    pith_str path;
    PITH_TRY(pith__path_join(&path, arena, dir, name, err));
    return pith__files_open(bytes, files, path.data, err);
}

/* The reader goes by the name's end. Whatever is neither safetensors nor GGUF is a file of
 * torch.save, whose reader checks its first bytes. */
static pith_status tensor_files_add_file(pith__weights *weights, pith__files *files,
                                         const char *dir, pith_str name, pith_error *err) {
    pith_str bytes, text = pith__arena_str(weights->arena, name);
    if (!text.data) return pith__fail_memory(err, name.size);
    PITH_TRY(tensor_files_open_file(&bytes, files, dir, name, weights->arena, err));
    if (tensor_files_name_ends(name, ".safetensors"))
        return pith__safetensors_read(weights, bytes, text.data, err);
    if (tensor_files_name_ends(name, ".gguf"))
        return pith__gguf_read(weights, bytes, text.data, err);
    const pith__torch_part *torch = pith__part_find("torch");
    pith__part_used("torch");
    if (torch) return torch->read(weights, bytes, text.data, err);
    PITH_TRY(pith__piece_check("parts", PITH_STR("torch"), err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: this build is without files of torch.save",
                      text.data);
}

/* *.index.json: {"weight_map": {tensor: file}}. */
static pith_status tensor_files_add_shards(pith__weights *weights, pith__files *files,
                                           const char *dir, const char *index_name,
                                           pith_error *err) {
    pith_str text, key, tensor;
    pith__map shards;
    pith__json j;
    pith_error local = PITH_ERROR_INIT;
    pith__arena *arena = weights->arena;
    PITH_TRY(tensor_files_open_file(&text, files, dir, pith__str_of(index_name), arena, err));
    if (pith__map_init(&shards, arena, 16)) return pith__fail_memory(err, 0);
    pith__json_init(&j, text, index_name, arena, err ? err : &local);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (!pith__str_is(key, "weight_map")) {
            pith__json_skip(&j);
            continue;
        }
        for (pith__json_object(&j); pith__json_next_key(&j, &tensor);) {
            pith_str shard = pith__json_string(&j);
            if (j.failed || pith__map_get(&shards, shard) != UINT32_MAX) continue;
            if (!pith__map_put(&shards, shard, 0, NULL)) return pith__fail_memory(err, 0);
            PITH_TRY(tensor_files_add_file(weights, files, dir, shard, err));
        }
    }
    pith__json_finish(&j);
    return j.failed ? j.err->code : PITH_OK;
}

/* The same files in the same order as the reader of directories looks for. */
static pith_status tensor_files_find(const char **file, pith__arena *arena, const char *dir,
                                     pith_error *err) {
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "pytorch_model.bin.index.json",
                                         "model.gguf" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pith_str path;
        bool there;
        *file = names[i];
        PITH_TRY(pith__file_find(&there, &path, arena, dir, *file, err));
        if (there) return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "%s: no weights; looked for model.safetensors and pytorch_model.bin, the "
                      ".index.json of each, and model.gguf",
                      dir);
}

pith_status pith__weights_read(pith__weights *weights, const char **file, const char *dir,
                               const char *wanted, pith__files *files, pith_error *err) {
    if (!wanted) PITH_TRY(tensor_files_find(&wanted, weights->arena, dir, err));
    *file = wanted;
    if (tensor_files_name_ends(pith__str_of(wanted), ".index.json"))
        return tensor_files_add_shards(weights, files, dir, wanted, err);
    return tensor_files_add_file(weights, files, dir, pith__str_of(wanted), err);
}
