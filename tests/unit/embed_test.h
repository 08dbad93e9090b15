/* embed_test.h - the golden texts and the default model, for the tests of the embedder. */
#ifndef EMBED_TEST_H
#define EMBED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "pith/pith.h"

enum { GOLDEN = 300, DIM = 384 };

typedef struct golden {
    pith_arena arena;
    pith_file file;
    pith_str texts[GOLDEN];
    int tokens[GOLDEN];
    float vectors[GOLDEN][DIM];
} golden;

static inline void golden_open(golden *g) {
    pith_error err = PITH_ERROR_INIT;
    memset(g, 0, sizeof *g);
    pith_arena_init(&g->arena, &pith_allocator_default);
    assert_int_equal(pith_file_open(&g->file, PITH_TEST_DATA "/minilm/golden.jsonl", false, NULL, &err), PITH_OK);
    const char *p = (const char *)g->file.data, *end = p + g->file.size;
    for (int i = 0; i < GOLDEN; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(stop);
        pith_json j;
        pith_str key;
        pith_json_init(&j, (pith_str){ p, (size_t)(stop - p) }, "golden.jsonl", &g->arena, &err);
        pith_json_object(&j);
        while (pith_json_next_key(&j, &key)) {
            if (pith_str_is(key, "text")) {
                g->texts[i] = pith_json_string(&j);
            } else if (pith_str_is(key, "ids")) {
                for (pith_json_array(&j); pith_json_next_item(&j); pith_json_skip(&j)) g->tokens[i]++;
            } else if (pith_str_is(key, "embedding")) {
                int d = 0;
                for (pith_json_array(&j); pith_json_next_item(&j); d++) g->vectors[i][d] = (float)pith_json_double(&j);
                assert_int_equal(d, DIM);
            } else {
                pith_json_skip(&j);
            }
        }
        if (j.failed) fail_msg("%s", err.message);
        p = stop + 1;
    }
}

static inline void golden_close(golden *g) {
    pith_arena_free(&g->arena);
    pith_file_close(&g->file);
}

static inline pith_model *open_model(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_embed_dim(model, NULL), DIM);
    return model;
}

static inline void embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                         const pith_embed_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_embed(vectors, model, texts, count, options, &err)) fail_msg("%s", err.message);
}

#endif
