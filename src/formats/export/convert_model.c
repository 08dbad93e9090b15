/* convert_model.c - see convert_model.h. The file is taken for what its first bytes say. */
#include "formats/export/convert_model.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/onnx/onnx_text.h"
#include "models/open/source.h"

typedef struct converted {
    pith_convert_options o;
    pith_convert_report report;
    const pith_writer *writer;
    pith__stop *stop;
    pith__arena scratch;
    pith_error *err;
} converted;

static pith_status convert_print(converted *x, pith_str model) {
    pith__syntax_sink sink = { .out = { .writer = x->writer }, .stop = x->stop };
    PITH_TRY(pith__onnx_print(&sink, model, &x->scratch, x->err));
    x->report.bytes = sink.size;
    for (int i = 0; i < PITH_OMISSIONS; i++) {
        if (!sink.omitted[i]) continue;
        x->report.left_out += sink.omitted[i];
        pith__log_write(x->o.call.log, PITH_LOG_WARNING,
                        "left out, since text has no place for it: %s (%llu)",
                        pith__syntax_omission_names[i], (unsigned long long)sink.omitted[i]);
    }
    return PITH_OK;
}

static pith_status convert_parse(converted *x, pith_str text) {
    pith__wire_build model = { .allocator = x->scratch.allocator };
    pith__out out = { .writer = x->writer, .stop = x->stop };
    pith_status status = pith__onnx_parse(&model, text, x->stop, &x->scratch, x->err);
    if (!status) {
        pith__out_begin(&out, model.size);
        pith__out_put(&out, model.bytes, model.size);
        status = pith__out_status(&out, "the model", x->err);
    }
    x->report.bytes = model.size;
    pith__wire_build_free(&model);
    return status;
}

static pith_status convert_bytes(converted *x, pith_str bytes) {
    const int32_t from = pith__onnx_is_text(bytes) ? PITH_CONVERT_TEXT : PITH_CONVERT_ONNX;
    x->report.from = from;
    x->report.to = from == PITH_CONVERT_TEXT ? PITH_CONVERT_ONNX : PITH_CONVERT_TEXT;
    if (x->o.to == from)
        return pith__fail(x->err, PITH_ERR_ARGUMENT,
                          "pith_convert_options.to: the file is %s already",
                          from == PITH_CONVERT_TEXT ? "text" : "ONNX, not text,");
    return from == PITH_CONVERT_TEXT ? convert_parse(x, bytes) : convert_print(x, bytes);
}

pith_status pith__model_write_converted(const pith_source *source,
                                        const pith_convert_options *options,
                                        const pith_writer *writer, pith_convert_report *report,
                                        pith_error *err) {
    converted x = { .o = PITH_CONVERT_OPTIONS_INIT,
                    .report = PITH_CONVERT_REPORT_INIT,
                    .err = err };
    pith__account account;
    pith_str bytes;
    PITH_TAKE_OPTIONS(x.o, options, err);
    if (report && report->size < sizeof report->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with PITH_CONVERT_REPORT_INIT");
    if (x.o.to < PITH_CONVERT_OTHER || x.o.to > PITH_CONVERT_TEXT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "to is %d, which is not a PITH_CONVERT_* value",
                          x.o.to);
    PITH_TRY(pith__writer_check(writer, err));
    pith__stop own;
    x.writer = writer;
    x.stop = pith__stop_begin(&own, &x.o.call);
    const pith_allocator *allocator =
        x.o.call.allocator ? x.o.call.allocator : &pith__allocator_default;
    PITH_TRY(pith__model_source_bytes(&bytes, source, x.stop, err));
    pith__account_init(&account, allocator, source->memory_limit, 0);
    pith__arena_init(&x.scratch, &account.allocator);
    pith_status status = convert_bytes(&x, bytes);
    pith__arena_free(&x.scratch);
    status = pith__account_explain(&account, status, err);
    pith__account_end(&account);
    if (status || !report) return status;
    x.report.size = report->size;
    memcpy(report, &x.report, report->size < sizeof x.report ? report->size : sizeof x.report);
    return PITH_OK;
}
