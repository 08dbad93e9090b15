/* writer.c - see writer.h. */
#include "base/writer.h"

#include "base/error.h"
#include "base/progress.h"

pith_status pith__writer_check(const pith_writer *writer, pith_error *err) {
    if (writer && writer->write) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "the writer has no function that writes");
}

void pith__out_begin(pith__out *out, uint64_t total) {
    if (!out->failed && out->writer->begin)
        out->failed = out->writer->begin(out->writer->user, total) != 0;
}

void pith__out_put(pith__out *out, const void *data, size_t size) {
    enum { PIECE = 4 << 20 };
    for (const char *at = data; size && !out->failed;) {
        const size_t n = (out->stop || out->told) && size > PIECE ? PIECE : size;
        out->failed =
            pith__stop_asked(out->stop) || out->writer->write(out->writer->user, at, n) != 0;
        at += n;
        size -= n;
        out->done += n;
        if (!out->failed) pith__progress_tell(out->told, "bytes", out->done, out->total);
    }
}

pith_status pith__out_status(const pith__out *out, const char *what, pith_error *err) {
    if (!out->failed) return PITH_OK;
    PITH_TRY(pith__stop_check(out->stop, err));
    return pith__fail(err, PITH_ERR_IO, "%s could not be written", what);
}
