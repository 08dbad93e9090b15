/* Any bytes as a model in text: an error with its place, or a model; a model can be written as text
 * again, but for what the syntax has no form for, and that text gives the same model. Any bytes as
 * a model to write as text: an error or text that is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx_text.h"
#include "pith/pith.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct gathered {
    char *text;
    size_t size;
} gathered;

static int32_t gather(void *user, const void *data, size_t size) {
    gathered *g = user;
    char *text = realloc(g->text, g->size + size);
    if (!text) abort();
    memcpy(text + g->size, data, size);
    g->text = text;
    g->size += size;
    return 0;
}

static pith_status parse(pith__wire_build *model, const char *text, size_t size, pith_error *err) {
    pith__arena scratch;
    *model = (pith__wire_build){ .allocator = &pith__allocator_default };
    pith__arena_init(&scratch, &pith__allocator_default);
    pith_status status = pith__onnx_parse(model, (pith_str){ text, size }, NULL, &scratch, err);
    pith__arena_free(&scratch);
    return status;
}

static pith_status print(gathered *g, const char *model, size_t size, pith_error *err) {
    pith__arena scratch;
    const pith_writer writer = { .write = gather, .user = g };
    pith__syntax_sink sink = { .out = { &writer, false } };
    pith__arena_init(&scratch, &pith__allocator_default);
    pith_status status = pith__onnx_print(&sink, (pith_str){ model, size }, &scratch, err);
    pith__arena_free(&scratch);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_error err = PITH_ERROR_INIT;
    pith__wire_build model, again;
    gathered text = { NULL, 0 }, of_bytes = { NULL, 0 };
    pith_status status = parse(&model, (const char *)data, size, &err);
    if ((status != PITH_OK) != (err.code != PITH_OK)) abort();
    if (status && (!strstr(err.message, "line ") || model.failed)) abort();
    if (!status && !print(&text, model.bytes, model.size, &err)) {
        gathered second = { NULL, 0 };
        if (parse(&again, text.text, text.size, &err)) abort();
        if (print(&second, again.bytes, again.size, &err)) abort();
        if (second.size != text.size || memcmp(second.text, text.text, text.size)) abort();
        pith__wire_build_free(&again);
        free(second.text);
    }
    pith__wire_build_free(&model);
    if (!print(&of_bytes, (const char *)data, size, &err)) {
        if (parse(&again, of_bytes.text, of_bytes.size, &err)) abort();
        pith__wire_build_free(&again);
    }
    free(text.text);
    free(of_bytes.text);
    return 0;
}
