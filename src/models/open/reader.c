/* reader.c - chooses the reader that opens a file; model_directory.c does that for directories. */
#include "models/open/reader.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "formats/compiled/compiled.h"
#include "formats/weights/gguf/gguf_header.h"

const pith__reader *pith__reader_after(int rank) {
    const pith__reader *next = NULL;
    for (size_t i = 0; i < pith__reader_table_count; i++) {
        const pith__reader *r = pith__reader_table[i];
        if (r->rank > rank && (!next || r->rank < next->rank)) next = r;
    }
    return next;
}

/* The ONNX reader takes what no other one does, so a build that was made without the reader of
 * another format would take such a file for a broken model. The first bytes tell. */
static pith_status reader_check_left_out(pith_str bytes, pith_error *err) {
    static const struct {
        const char *reader;
        pith_str begins;
    } formats[] = { { "compiled", { PITH_COMPILED_MAGIC, sizeof PITH_COMPILED_MAGIC - 1 } },
                    { "gguf", { PITH_GGUF_MAGIC, sizeof PITH_GGUF_MAGIC - 1 } } };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const pith_str begins = formats[i].begins;
        if (bytes.size >= begins.size && !memcmp(bytes.data, begins.data, begins.size))
            PITH_TRY(pith__piece_check("readers", pith__str_of(formats[i].reader), err));
    }
    return PITH_OK;
}

/* Readers in the order of their rank; the ONNX reader takes everything, so it must be asked after
 * the others. */
static pith_status reader_for(const pith__reader **reader, pith_str bytes, pith_error *err) {
    PITH_TRY(reader_check_left_out(bytes, err));
    for (const pith__reader *r = pith__reader_after(INT_MIN); r; r = pith__reader_after(r->rank)) {
        if (!r->takes || !r->takes(bytes)) continue;
        *reader = r;
        return PITH_OK;
    }
    PITH_TRY(pith__piece_check("readers", PITH_STR("onnx"), err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "this build has no reader for the file's format");
}

pith_status pith__reader_open(pith_model *m, const pith__reader *reader, pith__source source,
                              pith_error *err) {
    pith__piece_used(reader);
    m->reader = reader;
    m->source_bytes = source.bytes;
    m->source_folder = source.folder;
    if (m->identify) return m->identify(m, &source, err);
    PITH_TRY(reader->read(m, &source, err));
    m->graph->making = &m->making;
    m->graph->operators = m->options.operators;
    return pith__stop_check(m->making.stop, err);
}

/* Also a tokenizer.json that cannot be read: opening the tokenizer says why. */
static bool reader_has_tokenizer(pith_model *m, pith_str dir) {
    pith_str path;
    bool there;
    return dir.data &&
           (pith__file_find(&there, &path, &m->arena, dir.data, "tokenizer.json", NULL) || there);
}

/* A file next to a tokenizer, or in onnx/ below one, has that directory. */
static void reader_find_directory(pith_model *m, pith_str folder) {
    pith_str above = pith__arena_printf(&m->arena, "%s/..", folder.data);
    if (reader_has_tokenizer(m, folder))
        m->dir = folder;
    else if (pith__str_is(pith__path_name(folder), "onnx") && reader_has_tokenizer(m, above))
        m->dir = above;
}

/* A file beside a tokenizer.json belongs to that directory, so that its settings count as if the
 * directory had been opened. */
pith_status pith__readers_file(pith_model *m, pith_str path, pith_error *err) {
    const pith__reader *reader;
    pith_str bytes, folder = pith__path_parent(&m->arena, path);
    if (!folder.data) return pith__fail_memory(err, path.size);
    PITH_TRY(pith__files_open(&bytes, &m->files, path.data, err));
    pith_status status = reader_for(&reader, bytes, err);
    if (!status) {
        if (!m->dir.data && !reader->complete) reader_find_directory(m, folder);
        status = pith__reader_open(m, reader, (pith__source){ bytes, folder.data, path.data }, err);
    }
    return status ? pith__fail_at(err, status, "%s: ", path.data) : PITH_OK;
}

pith_status pith__readers_memory(pith_model *m, pith_str bytes, pith_error *err) {
    const pith__reader *reader;
    PITH_TRY(reader_for(&reader, bytes, err));
    return pith__reader_open(m, reader, (pith__source){ bytes, NULL, NULL }, err);
}
