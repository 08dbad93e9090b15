/* torch_file.c - finds the pickle and the storages of a file, and puts the pickle's tensors on the
 * storages. */
#include "base/optional_part.h"
#include "formats/weights/torch/torch_file.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"
#include "engine/graph/graph.h"
#include "formats/weights/torch/torch_members.h"
#include "formats/weights/torch/torch_pickle.h"

/* The first pickle of a file from before PyTorch 1.6 is this number. Source:
 * torch/serialization.py, MAGIC_NUMBER. */
static const uint8_t magic[] = { 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };

typedef struct torch_storage {
    int dtype;
    pith_str bytes;
} torch_storage;

typedef struct torch_file {
    pith__weights *weights;
    pith_str bytes;
    pith__torch_members members; /* of a new file */
    pith_str prefix;             /* of its members: "archive" */
    bool old;
    pith__map keys; /* of an old file: the storage's key to its index in named */
    torch_storage *named;
    size_t named_count, named_capacity;
    size_t copied; /* bytes of tensors that are no spans of the file */
    /* Storages that do not lie where their type may, by key: each is copied once, for all of its
     * tensors. */
    pith__map moved;
    char **moves;
    size_t move_count, move_room, move_bytes;
    pith_error *err;
} torch_file;

/* The archive's member "prefix + middle + end"; *member has no data if there is none. */
static pith_status torch_member(pith_str *member, torch_file *f, const char *middle, pith_str end) {
    const size_t between = strlen(middle), size = f->prefix.size + between + end.size;
    char *name = pith__arena_alloc(f->weights->arena, size);
    if (!name) return pith__fail_memory(f->err, size);
    memcpy(name, f->prefix.data, f->prefix.size);
    memcpy(name + f->prefix.size, middle, between);
    if (end.size) memcpy(name + f->prefix.size + between, end.data, end.size);
    *member = pith__torch_members_find(&f->members, (pith_str){ name, size });
    return PITH_OK;
}

/* ---- storages ---- */

static pith_status torch_find_storage(pith_str *span, torch_file *f, const pith__torch_tensor *t) {
    *span = (pith_str){ NULL, 0 };
    if (f->old) {
        uint32_t at = pith__map_get(&f->keys, t->key);
        if (at != UINT32_MAX) *span = f->named[at].bytes;
    } else {
        PITH_TRY(torch_member(span, f, "/data/", t->key));
    }
    if (span->data) return PITH_OK;
    return pith__fail(f->err, PITH_ERR_FORMAT, "storage '" PITH_STR_FMT "' is not in the file",
                      PITH_STR_ARG(t->key));
}

/* Fails unless the tensor lies within the storage: offset, sizes and strides are the file's and may
 * be anything, so every product and sum is checked. The last element decides, since strides are not
 * negative. *dense: its elements lie one after the other. */
static pith_status torch_check(bool *dense, pith_tensor *tensor, const torch_file *f,
                               const pith__torch_tensor *t, pith_str span) {
    int64_t last = t->offset, expected = 1, size = pith__dtype_bits(t->dtype) / 8, count = 1;
    *tensor = (pith_tensor){ .dtype = t->dtype, .rank = t->rank };
    *dense = true;
    bool empty = false;
    for (int d = t->rank - 1; d >= 0; d--) {
        int64_t reach;
        tensor->dims[d] = t->dims[d];
        empty = empty || !t->dims[d];
        if (t->dims[d] != 1 && t->strides[d] != expected) *dense = false;
        if (pith__mul_overflows(count, t->dims[d], &count) ||
            pith__mul_overflows(expected, t->dims[d], &expected) ||
            (t->dims[d] && (pith__mul_overflows(t->dims[d] - 1, t->strides[d], &reach) ||
                            pith__add_overflows(last, reach, &last))))
            return pith__fail(f->err, PITH_ERR_FORMAT, "its shape is too large");
    }
    if (size < 1) return pith__fail(f->err, PITH_ERR_UNSUPPORTED, "its dtype is not known");
    int64_t elements = (int64_t)(span.size / (size_t)size);
    if (t->offset > elements || (!empty && last >= elements) || count > elements)
        return pith__fail(f->err, PITH_ERR_FORMAT, "it reaches beyond its storage of %zu bytes",
                          span.size);
    if (!pith__dtype_bytes(t->dtype, count, &tensor->bytes))
        return pith__fail(f->err, PITH_ERR_FORMAT, "its shape is too large");
    return PITH_OK;
}

/* Element by element, the last axis fastest. */
static pith_status torch_gather(torch_file *f, char *to, const char *from,
                                const pith__torch_tensor *t, size_t size) {
    enum { LOOK = 1 << 17 };
    int64_t index[PITH_MAX_RANK] = { 0 }, at = 0;
    pith__stop *stop = pith__account_stop(f->weights->arena->allocator);
    for (size_t i = 0;; i++) {
        if (i % LOOK == 0) PITH_TRY(pith__stop_check(stop, f->err));
        memcpy(to, from + (size_t)at * size, size);
        to += size;
        int d = t->rank - 1;
        for (; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->dims[d]) break;
            at -= t->strides[d] * t->dims[d];
            index[d] = 0;
        }
        if (d < 0) return PITH_OK;
    }
}

/* The storage, or its aligned copy. In the file no two storages of a zip archive lie over each
 * other, so all copies together are no larger than the file; those of an old file, whose storages
 * may have several names, are counted. */
static pith_status torch_align(pith_str *span, torch_file *f, const pith__torch_tensor *t,
                               size_t size) {
    const size_t alignment = size < 8 ? size : 8;
    const pith_tensor kind = { .dtype = t->dtype };
    if (pith__constant_lies_anywhere(&kind) || (uintptr_t)span->data % alignment == 0)
        return PITH_OK;
    pith__arena *arena = f->weights->arena;
    if (!f->moves && pith__map_init(&f->moved, arena, 16)) return pith__fail_memory(f->err, 0);
    uint32_t at = f->moves ? pith__map_get(&f->moved, t->key) : UINT32_MAX;
    if (at == UINT32_MAX) {
        void *moves = f->moves;
        at = (uint32_t)f->move_count;
        if (span->size > f->bytes.size - f->move_bytes)
            return pith__fail(f->err, PITH_ERR_UNSUPPORTED,
                              "the storages that must be copied are larger than the file");
        char *copy = pith__arena_alloc64(arena, span->size);
        if (!copy || !pith__arena_grow(arena, &moves, at, &f->move_room, sizeof *f->moves) ||
            !pith__map_put(&f->moved, t->key, at, NULL))
            return pith__fail_memory(f->err, span->size);
        PITH_TRY(pith__copy_until(pith__account_stop(arena->allocator), copy, span->data,
                                  span->size, f->err));
        f->moves = moves;
        f->moves[f->move_count++] = copy;
        f->move_bytes += span->size;
    }
    span->data = f->moves[at];
    return PITH_OK;
}

/* Puts a tensor on its storage. A dense one stays where it lies in the file. One with strides is
 * gathered, and all gathered ones together may not be larger than the file: a stride of 0 could
 * make a huge tensor of one element. */
static pith_status torch_place(torch_file *f, pith_str name, const pith__torch_tensor *t) {
    pith_str span;
    pith_tensor tensor;
    bool dense;
    PITH_TRY(torch_find_storage(&span, f, t));
    PITH_TRY(torch_check(&dense, &tensor, f, t, span));
    const size_t size = (size_t)pith__dtype_bits(t->dtype) / 8;
    if (dense || !tensor.bytes) {
        PITH_TRY(torch_align(&span, f, t, size));
        tensor.data = (void *)(uintptr_t)(span.data + (size_t)t->offset * size);
    } else {
        f->copied += tensor.bytes; /* no more than the storage, for each tensor */
        if (f->copied > f->bytes.size)
            return pith__fail(f->err, PITH_ERR_UNSUPPORTED,
                              "the tensors with strides are larger than the file");
        tensor.data = pith__arena_alloc64(f->weights->arena, tensor.bytes);
        if (!tensor.data) return pith__fail_memory(f->err, tensor.bytes);
        PITH_TRY(torch_gather(f, tensor.data, span.data + (size_t)t->offset * size, t, size));
    }
    return pith__weights_put(f->weights, name, &tensor, f->err);
}

/* ---- the dictionary ---- */

static bool torch_is_entry(const pith__pickle_value *v) {
    return v[0].kind == PITH_PICKLE_TEXT && v[1].kind == PITH_PICKLE_TENSOR;
}

static pith_status torch_add_all(torch_file *f, const pith__pickle_value *dict, size_t *added) {
    *added = 0;
    if (dict->kind != PITH_PICKLE_DICT) return PITH_OK;
    const pith__pickle_items *items = dict->as.items;
    for (size_t i = 0; i + 1 < items->count; i += 2) {
        if (!torch_is_entry(&items->at[i])) continue;
        pith_str name = items->at[i].as.text;
        pith_status status = torch_place(f, name, items->at[i + 1].as.tensor);
        if (status)
            return pith__fail_at(f->err, status, "tensor '" PITH_STR_FMT "': ", PITH_STR_ARG(name));
        (*added)++;
    }
    return PITH_OK;
}

/* Takes the tensors of the top dictionary; if it has none, those of an entry "state_dict" or
 * "model", as training scripts save them. */
static pith_status torch_add(torch_file *f, const pith__pickle_value *top) {
    size_t added;
    PITH_TRY(torch_add_all(f, top, &added));
    if (top->kind == PITH_PICKLE_DICT)
        for (size_t i = 0; !added && i + 1 < top->as.items->count; i += 2) {
            const pith__pickle_value *entry = &top->as.items->at[i];
            if (entry[0].kind != PITH_PICKLE_TEXT) continue;
            if (pith__str_is(entry[0].as.text, "state_dict") ||
                pith__str_is(entry[0].as.text, "model"))
                PITH_TRY(torch_add_all(f, &entry[1], &added));
        }
    if (added) return PITH_OK;
    return pith__fail(f->err, PITH_ERR_UNSUPPORTED, "the file holds no dictionary of tensors");
}

/* ---- the two formats ---- */

/* The format of torch.save since 1.6: a zip archive of stored members, <name>/data.pkl with the
 * object and <name>/data/<key> with each storage. An archive without byteorder is little-endian. */
static pith_status torch_read_zip(torch_file *f) {
    static const char pickle_name[] = "/data.pkl";
    pith_str pickle = { NULL, 0 }, order = { NULL, 0 };
    pith__pickle_value top;
    size_t used;
    PITH_TRY(pith__torch_members_read(&f->members, f->bytes, f->weights->arena, f->err));
    for (size_t i = 0; i < f->members.count && !pickle.data; i++) {
        const pith__torch_member *m = &f->members.at[i];
        const size_t tail = sizeof pickle_name - 1;
        if (m->name.size <= tail || memcmp(m->name.data + m->name.size - tail, pickle_name, tail))
            continue;
        pickle = m->bytes;
        f->prefix = (pith_str){ m->name.data, m->name.size - tail };
    }
    if (!pickle.data)
        return pith__fail(f->err, PITH_ERR_FORMAT,
                          "the zip archive has no data.pkl; this is not a file of torch.save");
    PITH_TRY(torch_member(&order, f, "/byteorder", PITH_STR("")));
    if (order.data && !pith__str_is(order, "little"))
        return pith__fail(f->err, PITH_ERR_UNSUPPORTED,
                          "byte order '" PITH_STR_FMT "' is not supported", PITH_STR_ARG(order));
    PITH_TRY(pith__pickle_read(&top, &used, pickle, f->weights->arena, f->err));
    return torch_add(f, &top);
}

/* Notes the tensors' storages, whose types tell how long they are. */
static pith_status torch_note(torch_file *f, const pith__pickle_value *dict, bool deeper) {
    if (dict->kind != PITH_PICKLE_DICT) return PITH_OK;
    const pith__pickle_items *items = dict->as.items;
    for (size_t i = 1; i < items->count; i += 2) {
        const pith__pickle_value *v = &items->at[i];
        if (deeper) PITH_TRY(torch_note(f, v, false));
        if (v->kind != PITH_PICKLE_TENSOR) continue;
        void *named = f->named;
        if (!pith__arena_grow(f->weights->arena, &named, f->named_count, &f->named_capacity,
                              sizeof *f->named) ||
            !pith__map_put(&f->keys, v->as.tensor->key, (uint32_t)f->named_count, NULL))
            return pith__fail_memory(f->err, f->named_count);
        f->named = named;
        f->named[f->named_count++] = (torch_storage){ v->as.tensor->dtype, { NULL, 0 } };
    }
    return PITH_OK;
}

/* After the pickles: for each key a number of elements and the elements. */
static pith_status torch_read_spans(torch_file *f, const pith__pickle_value *top,
                                    const pith__pickle_value *keys, pith_str rest) {
    if (keys->kind != PITH_PICKLE_LIST)
        return pith__fail(f->err, PITH_ERR_FORMAT, "the list of storages is missing");
    const size_t n = keys->as.items->count;
    if (pith__map_init(&f->keys, f->weights->arena, n + 1)) return pith__fail_memory(f->err, n);
    PITH_TRY(torch_note(f, top, true));
    for (size_t i = 0; i < n; i++) {
        const pith__pickle_value *key = &keys->as.items->at[i];
        uint32_t at =
            key->kind == PITH_PICKLE_TEXT ? pith__map_get(&f->keys, key->as.text) : UINT32_MAX;
        size_t bytes;
        int64_t count = 0;
        if (rest.size >= sizeof count) memcpy(&count, rest.data, sizeof count);
        if (at == UINT32_MAX || rest.size < sizeof count || count < 0 ||
            !pith__dtype_bytes(f->named[at].dtype, count, &bytes) ||
            bytes > rest.size - sizeof count)
            return pith__fail(f->err, PITH_ERR_FORMAT, "storage %zu of %zu is damaged or cut short",
                              i + 1, n);
        f->named[at].bytes = (pith_str){ rest.data + sizeof count, bytes };
        rest = (pith_str){ rest.data + sizeof count + bytes, rest.size - sizeof count - bytes };
    }
    return PITH_OK;
}

/* Pickles of the magic number, the version, facts about the system, the object and the storages'
 * keys. */
static pith_status torch_read_old(torch_file *f) {
    pith__pickle_value parts[5];
    pith_str rest = f->bytes;
    f->old = true;
    for (int i = 0; i < 5; i++) {
        size_t used;
        PITH_TRY(pith__pickle_read(&parts[i], &used, rest, f->weights->arena, f->err));
        rest = (pith_str){ rest.data + used, rest.size - used };
        bool known =
            i || (parts[0].kind == PITH_PICKLE_BIG && parts[0].as.text.size == sizeof magic &&
                  !memcmp(parts[0].as.text.data, magic, sizeof magic));
        if (!known) return pith__fail(f->err, PITH_ERR_FORMAT, "this is not a file of torch.save");
    }
    PITH_TRY(torch_read_spans(f, &parts[3], &parts[4], rest));
    return torch_add(f, &parts[3]);
}

pith_status pith__torch_read(pith__weights *weights, pith_str bytes, const char *file_name,
                             pith_error *err) {
    torch_file f = { .weights = weights, .bytes = bytes, .err = err };
    pith_status status;
    if (pith__torch_is_zip(bytes))
        status = torch_read_zip(&f);
    else if (bytes.size > 2 && (uint8_t)bytes.data[0] == 0x80)
        status = torch_read_old(&f);
    else
        status = pith__fail(err, PITH_ERR_FORMAT,
                            "this is not a file of torch.save, or it is cut short");
    return status ? pith__fail_at(err, status, "%s: ", file_name) : PITH_OK;
}

const pith__part pith__part_torch = { "torch", &(const pith__torch_part){ pith__torch_read } };
