/* info_read.c - see info_read.h. Opening a model walks the same fields, but for the entries of
 * the metadata. */
#include "formats/onnx/info_read.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "formats/onnx/wire.h"

enum {
    INFO_IR = PITH_WIRE_VARINT(1),
    INFO_PRODUCER = PITH_WIRE_BYTES(2),
    INFO_PRODUCER_VERSION = PITH_WIRE_BYTES(3),
    INFO_DOMAIN = PITH_WIRE_BYTES(4),
    INFO_VERSION = PITH_WIRE_VARINT(5),
    INFO_DOC = PITH_WIRE_BYTES(6),
    INFO_OPSET = PITH_WIRE_BYTES(8),
    INFO_METADATA = PITH_WIRE_BYTES(14)
};

static pith_status info_text(const char **to, pith_str text, pith__arena *arena, pith_error *err) {
    *to = pith__arena_str(arena, text).data;
    return *to ? PITH_OK : pith__fail_memory(err, text.size);
}

/* An entry of the metadata: key 1, value 2. */
static pith_status info_entry(pith_metadata *entry, pith_str bytes, const void *base,
                              pith__arena *arena, pith_error *err) {
    pith__wire w;
    pith__wire_field f;
    pith_str key = { "", 0 }, value = { "", 0 };
    pith__wire_init(&w, bytes, base, err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) key = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(2)) value = f.bytes;
    }
    if (w.failed) return pith__fail_at(err, PITH_ERR_FORMAT, "metadata: ");
    PITH_TRY(info_text(&entry->key, key, arena, err));
    return info_text(&entry->value, value, arena, err);
}

/* The version of ai.onnx; -1: the entry is of another domain. */
static int64_t info_opset(pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    int64_t version = 0;
    pith__wire_init(&w, bytes, bytes.data, NULL);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1) && f.bytes.size && !pith__str_is(f.bytes, "ai.onnx"))
            return -1;
        if (f.tag == PITH_WIRE_VARINT(2)) version = (int64_t)f.value;
    }
    return version;
}

pith_status pith__onnx_info_read(pith_model_info *info, pith_str bytes, pith__arena *arena,
                                 pith_error *err) {
    pith__wire w;
    pith__wire_field f;
    pith_str texts[4] = { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 } };
    const char **const places[] = { &info->producer, &info->producer_version, &info->domain,
                                    &info->doc };
    size_t count = 0;
    pith__wire_init(&w, bytes, bytes.data, err);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case INFO_IR: info->ir_version = (int64_t)f.value; break;
        case INFO_PRODUCER: texts[0] = f.bytes; break;
        case INFO_PRODUCER_VERSION: texts[1] = f.bytes; break;
        case INFO_DOMAIN: texts[2] = f.bytes; break;
        case INFO_VERSION: info->version = (int64_t)f.value; break;
        case INFO_DOC: texts[3] = f.bytes; break;
        case INFO_OPSET:
            if (info_opset(f.bytes) >= 0) info->opset = info_opset(f.bytes);
            break;
        case INFO_METADATA: count++; break;
        default: break;
        }
    }
    if (w.failed) return PITH_ERR_FORMAT;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        PITH_TRY(info_text(places[i], texts[i], arena, err));
    pith_metadata *metadata = pith__arena_array(arena, count, sizeof *metadata);
    if (!metadata) return pith__fail_memory(err, count * sizeof *metadata);
    info->metadata = metadata;
    pith__wire_init(&w, bytes, bytes.data, err);
    while (pith__wire_next(&w, &f))
        if (f.tag == INFO_METADATA)
            PITH_TRY(
                info_entry(&metadata[info->metadata_count++], f.bytes, bytes.data, arena, err));
    return PITH_OK;
}

static bool info_has(uint32_t tag) {
    return tag == INFO_IR || tag == INFO_PRODUCER || tag == INFO_PRODUCER_VERSION ||
           tag == INFO_DOMAIN || tag == INFO_VERSION || tag == INFO_DOC || tag == INFO_OPSET ||
           tag == INFO_METADATA;
}

/* Copies the bytes of the fields, or counts them if to is NULL. */
static size_t info_copy(char *to, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    size_t size = 0;
    pith__wire_init(&w, bytes, bytes.data, NULL);
    for (const uint8_t *from = w.at; pith__wire_next(&w, &f); from = w.at) {
        if (!info_has(f.tag)) continue;
        if (to) memcpy(to + size, from, (size_t)(w.at - from));
        size += (size_t)(w.at - from);
    }
    return size;
}

pith_status pith__onnx_info_extract(pith_str *info, pith_str bytes, pith__arena *arena,
                                    pith_error *err) {
    const size_t size = info_copy(NULL, bytes);
    char *data = pith__arena_array(arena, size, 1);
    if (!data) return pith__fail_memory(err, size);
    info_copy(data, bytes);
    *info = (pith_str){ data, size };
    return PITH_OK;
}
