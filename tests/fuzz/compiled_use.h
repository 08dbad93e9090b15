/* compiled_use.h - what is done with the bytes of a compiled model that may be broken. */
#ifndef PITH_TEST_COMPILED_USE_H
#define PITH_TEST_COMPILED_USE_H

#include "base/checksum.h"
#include "pith/image.h"
#include "run_ones.h"

enum { HEADER = 48, ENTRY = 32, SECTIONS_MAX = 64 };

typedef struct saved {
    char *bytes;
    size_t size;
    uint64_t total;
} saved;

static int32_t save_begin(void *user, uint64_t total) {
    saved *s = user;
    s->total = total;
    if (total <= MEMORY_LIMIT) s->bytes = aligned_alloc(64, ((size_t)total + 64) & ~(size_t)63);
    return !s->bytes;
}

static int32_t save_piece(void *user, const void *data, size_t size) {
    saved *s = user;
    if (size > s->total - s->size) return 1;
    memcpy(s->bytes + s->size, data, size);
    s->size += size;
    return 0;
}

/* What is saved opens again. */
static void save_again(const pith_model *model) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_model *again = NULL;
    saved s = { 0 };
    const pith_writer writer = { .write = save_piece, .begin = save_begin, .user = &s };
    pith_status status = pith_model_save(model, NULL, &writer, &err);
    if (!status) status = pith_model_open_memory(&again, s.bytes, s.size, &options, &err);
    /* Two models at once may need more memory than there is. */
    if (status && status != PITH_ERR_MEMORY && s.bytes) {
        fprintf(stderr, "saved, it does not open: %s\n", err.message);
        abort();
    }
    pith_model_close(again);
    free(s.bytes);
}

/* Every head, on two texts and a picture. */
static void use_heads(const pith_model *model) {
    static float numbers[2 * WIDTH_MAX];
    static uint8_t pixels[5 * 4 * 3];
    const pith_str texts[2] = { { "a b", 3 }, { "the cats sleep", 14 } };
    const pith_image image = { pixels, 5, 4, 3, NULL };
    pith_error err = PITH_ERROR_INIT;
    for (int role = PITH_ROLE_DOCUMENT; role <= PITH_ROLE_QUERY; role++)
        for (uint32_t what = 1; what < 1u << 4; what++) {
            pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
            pith_encoded *encoded = NULL;
            options.what = what;
            options.role = role;
            if (pith_encode(&encoded, model, texts, 2, &options, &err) && !err.message[0]) abort();
            pith_encoded_free(encoded);
        }
    const size_t labels = pith_label_count(model);
    for (size_t i = 0; i < labels && i < 4; i++) (void)pith_label_name(model, i);
    if (labels && labels <= WIDTH_MAX &&
        pith_classify(numbers, model, texts, texts, 2, NULL, &err) && !err.message[0])
        abort();
    if (pith_rerank(numbers, model, texts[0], texts, 2, NULL, &err) && !err.message[0]) abort();
    size_t dim;
    if (!pith_embed_images_dim(&dim, model, NULL, &err) && dim <= WIDTH_MAX &&
        pith_embed_images(numbers, model, &image, 1, NULL, &err) && !err.message[0])
        abort();
}

/* The other routes of a Router. */
static void use_routes(const pith_model *model, const void *data, size_t size) {
    const size_t count = pith_model_route_count(model);
    for (size_t i = 0; i < count && i < 4; i++) {
        pith_open_options options = limited_options(3);
        pith_error err = PITH_ERROR_INIT;
        pith_model *other = NULL;
        options.route = pith_model_route_name(model, i);
        if (pith_model_open_memory(&other, data, size, &options, &err)) {
            if (!err.message[0]) abort();
            continue;
        }
        embed_two(other);
        pith_model_close(other);
    }
}

static void put_u64(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++, x >>= 8) p[i] = (uint8_t)x;
}

/* Makes the header's size and hash those of the file. */
static void put_header_right(uint8_t *file, size_t size) {
    size_t sections = size > HEADER ? file[12] : SECTIONS_MAX, end = HEADER + sections * ENTRY;
    if (size < end || sections >= SECTIONS_MAX) return;
    put_u64(file + 16, size);
    put_u64(file + 24, pith__hash_of(file + 32, end - 32));
}

static void use_compiled(const void *data, size_t size, run_counts *c) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    void *copy; /* of just this size: reading past the end shows under the address sanitizer */
    if (posix_memalign(&copy, 64, size ? size : 1)) return;
    memcpy(copy, data, size);
    put_header_right(copy, size);
    if (!pith_model_open_memory(&model, copy, size, &options, &err)) {
        c->opened++;
        describe_model(model);
        run_model(model, c);
        embed_two(model);
        use_heads(model);
        use_routes(model, copy, size);
        save_again(model);
        pith_model_close(model);
    } else if (!err.message[0]) {
        abort();
    }
    free(copy);
}

#endif
