/* test_compiled_views.c - every small directory of tests/data, compiled: whatever the directory
 * makes of texts, pairs of texts and pictures, by every head, role, prompt and route, the file
 * makes too, bit by bit. What the directory refuses, the file refuses with the same code. */
#include <dirent.h>

#include "formats/compiled/compiled.h"
#include "support/embed_test.h"
#include "support/failing_alloc.h"
#include "pith/encode.h"
#include "pith/image.h"
#include "pith/score.h"
#include "pith/tokens.h"

enum { TEXTS = 6, PICTURES = 3, KINDS = 4, NAME = 200, ROUTES_MAX = 8 };

static const char *const words[TEXTS] = { "a b c", "w20 w21 , w30 .",
                                          "",      "The cat sat on the mats, and cats sleep.",
                                          "d",     "dogs run w40 w11 w12 !" };
static const char *const prompts[] = { NULL, "", "query", "document", "passage" };
static const char *const routes[] = { NULL, "query", "document", "doc", "passage" };
static pith_str texts[TEXTS];
static size_t differences;
static int32_t level = 3, precision = PITH_PRECISION_AUTO; /* of directories that are opened */

typedef struct bytes {
    char *data; /* 64-byte aligned, if save() made it */
    size_t size, capacity;
} bytes;

/* ---- what a model makes, one line per result ---- */

static void tell(bytes *to, const void *data, size_t size) {
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size);
        to->data = realloc(to->data, to->capacity);
        assert_non_null(to->data);
    }
    if (size) memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void tell_line(bytes *to, const char *what, int which, const void *data, size_t size) {
    char head[NAME];
    int length = snprintf(head, sizeof head, "\n%s %d: ", what, which);
    tell(to, head, (size_t)length);
    for (size_t i = 0; i < size; i++) {
        length = snprintf(head, sizeof head, "%02x", ((const unsigned char *)data)[i]);
        tell(to, head, (size_t)length);
    }
}

static void tell_status(bytes *to, const char *what, int which, pith_status status) {
    tell_line(to, what, which, &status, sizeof status);
}

static void tell_name(bytes *to, const char *what, int which, const char *name) {
    tell_line(to, what, which, name, strlen(name));
}

static void tell_ports(bytes *to, const pith_model *m) {
    for (size_t i = 0; i < pith_model_input_count(m); i++) {
        const pith_port *port = pith_model_input(m, i);
        tell_name(to, port->name, port->dtype, port->shape);
    }
    for (size_t i = 0; i < pith_model_output_count(m); i++) {
        const pith_port *port = pith_model_output(m, i);
        tell_name(to, port->name, port->dtype, port->shape);
    }
    tell_name(to, "route", 0, pith_model_route(m));
    for (size_t i = 0; i < pith_model_route_count(m); i++)
        tell_name(to, "route name", 1, pith_model_route_name(m, i));
}

static void tell_tokens(bytes *to, const pith_model *m) {
    const pith_tokenizer *t = pith_model_tokenizer(m);
    if (!t) tell_status(to, "no tokenizer", 0, PITH_OK);
    for (int i = 0; t && i < TEXTS; i++) {
        pith_tokens tokens = PITH_TOKENS_INIT;
        tell_status(to, "tokenize", i, pith_tokenize(&tokens, t, texts[i], NULL, NULL, NULL));
        tell_line(to, "ids", i, tokens.ids, tokens.count * sizeof *tokens.ids);
        pith_tokens_free(&tokens);
    }
}

static void tell_dense(bytes *to, const pith_model *m) {
    for (size_t p = 0; p < sizeof prompts / sizeof *prompts; p++)
        for (int pooling = 0; pooling < 5; pooling++) {
            pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
            options.prompt_name = prompts[p];
            options.pooling = pooling;
            size_t numbers[2] = { pith_embed_dim(m, &options), pith_embed_max_length(m, &options) };
            float *vectors = calloc(TEXTS * numbers[0] + 1, sizeof *vectors);
            tell_line(to, "dim and length", pooling, numbers, sizeof numbers);
            tell_status(to, "embed", pooling, pith_embed(vectors, m, texts, TEXTS, &options, NULL));
            tell_line(to, prompts[p] ? prompts[p] : "default", pooling, vectors,
                      TEXTS * numbers[0] * sizeof *vectors);
            free(vectors);
        }
}

static void tell_token_rows(bytes *to, const char *what, int which, const pith_token_rows *rows) {
    if (!rows->offsets) return;
    const size_t count = (size_t)rows->offsets[TEXTS];
    tell_line(to, what, which, rows->offsets, (TEXTS + 1) * sizeof *rows->offsets);
    tell_line(to, what, which, rows->ids, count * sizeof *rows->ids);
    tell_line(to, what, which, rows->vectors, count * rows->dim * sizeof *rows->vectors);
}

/* All kinds that the model has together, each alone, and each pair. */
static void tell_encoded(bytes *to, const pith_model *m, int role) {
    const uint32_t can = pith_encode_can(m);
    tell_line(to, "can", role, &can, sizeof can);
    for (uint32_t what = 1; what < 1u << KINDS; what++) {
        pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
        pith_encoded *e = NULL;
        options.what = what;
        options.role = role;
        tell_status(to, "encode", (int)what, pith_encode(&e, m, texts, TEXTS, &options, NULL));
        if (!e) continue;
        if (e->dense)
            tell_line(to, "dense", (int)what, e->dense, TEXTS * e->dim * sizeof *e->dense);
        if (e->sparse.offsets) {
            const size_t count = (size_t)e->sparse.offsets[TEXTS];
            tell_line(to, "sparse", (int)what, e->sparse.offsets,
                      (TEXTS + 1) * sizeof *e->sparse.offsets);
            tell_line(to, "indices", (int)what, e->sparse.indices,
                      count * sizeof *e->sparse.indices);
            tell_line(to, "values", (int)what, e->sparse.values, count * sizeof *e->sparse.values);
        }
        tell_token_rows(to, "multi", (int)what, &e->multi_vector);
        tell_token_rows(to, "tokens", (int)what, &e->tokens);
        pith_encoded_free(e);
    }
}

static void tell_scores(bytes *to, const pith_model *m) {
    const size_t labels = pith_label_count(m);
    float *scores = calloc(TEXTS * labels + TEXTS, sizeof *scores);
    pith_score_options options = PITH_SCORE_OPTIONS_INIT;
    tell_line(to, "labels", 0, &labels, sizeof labels);
    for (size_t i = 0; i < labels; i++) tell_name(to, "label", (int)i, pith_label_name(m, i));
    for (int paired = 0; paired < 2; paired++) {
        pith_status status =
            pith_classify(scores, m, texts, paired ? texts + 1 : NULL, TEXTS - 1, &options, NULL);
        tell_status(to, "classify", paired, status);
        tell_line(to, "scores", paired, scores, (TEXTS - 1) * labels * sizeof *scores);
    }
    for (int instructed = 0; instructed < 2; instructed++) {
        options.instruction = instructed ? "Find cats" : NULL;
        tell_status(to, "rerank", instructed,
                    pith_rerank(scores, m, texts[3], texts, TEXTS, &options, NULL));
        tell_line(to, "ranks", instructed, scores, TEXTS * sizeof *scores);
    }
    free(scores);
}

static void tell_pictures(bytes *to, const pith_model *m) {
    static const int32_t sizes[PICTURES][3] = { { 40, 30, 3 }, { 17, 64, 1 }, { 32, 32, 4 } };
    pith_image images[PICTURES];
    for (int i = 0; i < PICTURES; i++) {
        const size_t count = (size_t)sizes[i][0] * (size_t)sizes[i][1] * (size_t)sizes[i][2];
        images[i] = (pith_image){ malloc(count), sizes[i][0], sizes[i][1], sizes[i][2], NULL };
        for (size_t k = 0; k < count; k++) images[i].pixels[k] = (uint8_t)(k * k / 7 + 31 * k);
    }
    for (int pooling = 0; pooling < 5; pooling++) {
        pith_embed_images_options options = PITH_EMBED_IMAGES_OPTIONS_INIT;
        size_t dim = 0;
        options.pooling = pooling;
        tell_status(to, "picture dim", pooling, pith_embed_images_dim(&dim, m, &options, NULL));
        float *vectors = calloc(PICTURES * dim + 1, sizeof *vectors);
        tell_status(to, "pictures", pooling,
                    pith_embed_images(vectors, m, images, PICTURES, &options, NULL));
        tell_line(to, "picture vectors", pooling, vectors, PICTURES * dim * sizeof *vectors);
        free(vectors);
    }
    for (int i = 0; i < PICTURES; i++) free(images[i].pixels);
}

static bytes everything(const pith_model *m) {
    bytes b = { NULL, 0, 0 };
    tell_ports(&b, m);
    tell_tokens(&b, m);
    tell_dense(&b, m);
    tell_encoded(&b, m, PITH_ROLE_DOCUMENT);
    tell_encoded(&b, m, PITH_ROLE_QUERY);
    tell_scores(&b, m);
    tell_pictures(&b, m);
    return b;
}

/* ---- comparing ---- */

static int32_t make_room(void *user, uint64_t total) {
    bytes *b = user;
    b->data = aligned_alloc(64, (total + 63) & ~(uint64_t)63);
    return !b->data;
}

static int32_t append(void *user, const void *data, size_t size) {
    bytes *b = user;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

/* The model and the other routes of its Router, which open() opens, as one file. */
static bytes save(const pith_model *model, const void *from,
                  pith_model *(*open)(const void *from, const char *route)) {
    pith_model *models[ROUTES_MAX] = { (pith_model *)(uintptr_t)model };
    pith_error err = PITH_ERROR_INIT;
    bytes b = { NULL, 0, 0 };
    size_t count = 1;
    for (size_t i = 0; i < pith_model_route_count(model); i++) {
        pith_model *other = open(from, pith_model_route_name(model, i));
        size_t k = 0;
        assert_non_null(other);
        while (k < count && strcmp(pith_model_route(models[k]), pith_model_route(other)) != 0) k++;
        assert_true(k < ROUTES_MAX);
        if (k < count)
            pith_model_close(other);
        else
            models[count++] = other;
    }
    const pith_model *const *all = (const pith_model *const *)models;
    if (pith_model_save_routes(all, count, NULL, &(pith_writer){ append, make_room, &b }, &err))
        fail_msg("%s", err.message);
    while (count > 1) pith_model_close(models[--count]);
    return b;
}

static pith_model *open_bytes(const void *from, const char *route) {
    const bytes *b = from;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    options.route = route;
    if (pith_model_open_memory(&model, b->data, b->size, &options, &err))
        print_error("%s\n", err.message);
    return model;
}

/* Tells the line in which they differ, cut short. */
static void compare(const char *name, const char *route, const bytes *wanted, const bytes *got) {
    size_t at = 0, line = 0;
    while (at < wanted->size && at < got->size && wanted->data[at] == got->data[at]) {
        if (wanted->data[at] == '\n') line = at;
        at++;
    }
    if (at == wanted->size && at == got->size) return;
    print_error("%s, route %s: at byte %zu: '%.80s' became '%.80s'\n", name, route ? route : "none",
                at, wanted->data + line, got->data + line);
    differences++;
}

static pith_model *open_directory(const void *path, const char *route) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model = NULL;
    options.route = route;
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    options.precision = precision;
    return pith_model_open(&model, path, &options, NULL) ? NULL : model;
}

/* True if there is a model there. */
static bool check_directory(const char *path) {
    pith_model *model = open_directory(path, NULL);
    if (!model) return false;
    bytes file = save(model, path, open_directory);
    pith_model_close(model);
    for (size_t r = 0; r < sizeof routes / sizeof *routes; r++) {
        model = open_directory(path, routes[r]);
        if (!model) continue;
        bytes wanted = everything(model), got = { NULL, 0, 0 };
        pith_model_close(model);
        model = open_bytes(&file, routes[r]);
        if (model) got = everything(model);
        compare(path, routes[r], &wanted, &got);
        if (model && !routes[r]) {
            bytes again = save(model, &file, open_bytes);
            if (again.size != file.size || memcmp(again.data, file.data, file.size))
                print_error("%s: saved again, the file differs\n", path), differences++;
            free(again.data);
        }
        pith_model_close(model);
        free(wanted.data);
        free(got.data);
    }
    free(file.data);
    return true;
}

static void check_folder(const char *folder, size_t least) {
    char path[700];
    struct dirent *entry;
    size_t checked = 0;
    differences = 0;
    snprintf(path, sizeof path, PITH_TEST_DATA "/%s", folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, PITH_TEST_DATA "/%s/%s", folder, entry->d_name);
        checked += check_directory(path);
    }
    closedir(dir);
    assert_int_equal(differences, 0);
    if (checked < least)
        fail_msg("%s: %zu directories were compared, not %zu", folder, checked, least);
}

static void test_networks(void **state) {
    (void)state;
    check_folder("hf", 32);
}

static void test_kinds(void **state) {
    (void)state;
    check_folder("encode", 8);
    check_folder("hybrid", 2);
}

static void test_modules(void **state) {
    (void)state;
    check_folder("modules", 22);
}

static void test_tasks(void **state) {
    (void)state;
    check_folder("tasks", 32);
}

static void test_pictures(void **state) {
    (void)state;
    check_folder("vision", 9);
}

static const char *const kinds[] = {
    "encode/bge-m3",     "encode/splade-max", "encode/colbert-hidden", "tasks/labels-bert",
    "tasks/judge-qwen3", "hybrid/bm42",       "hybrid/minicoil",       "modules/router-first",
    "vision/clip",       "vision/siglip",     "vision/resnet"
};

static void check_kinds(void) {
    differences = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char path[700];
        snprintf(path, sizeof path, PITH_TEST_DATA "/%s", kinds[i]);
        assert_true(check_directory(path));
    }
    assert_int_equal(differences, 0);
}

static void test_levels(void **state) {
    (void)state;
    for (level = 0; level < 3; level++) check_kinds();
}

static void test_precisions(void **state) {
    (void)state;
    for (precision = PITH_PRECISION_INT8; precision <= PITH_PRECISION_BF16; precision++)
        check_kinds();
    precision = PITH_PRECISION_AUTO;
}

/* An ONNX file of pixels beside what is done to pictures. */
static void test_onnx_pictures(void **state) {
    (void)state;
    static const char dir[] = PITH_BINARY_DIR "/compiled-pictures",
                      network[] = "families/clip-vision-script14";
    network_directory(dir, network, "null");
    unlink(PITH_BINARY_DIR "/compiled-pictures/tokenizer.json");
    FILE *f = fopen(PITH_BINARY_DIR "/compiled-pictures/preprocessor_config.json", "w");
    assert_non_null(f);
    fputs("{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 32, \"width\": "
          "32}}",
          f);
    fclose(f);
    differences = 0;
    assert_true(check_directory(dir));
    assert_int_equal(differences, 0);
    bytes made = { NULL, 0, 0 };
    pith_model *model = open_directory(dir, NULL);
    tell_pictures(&made, model);
    assert_non_null(memmem(made.data, made.size, "pictures 0: 00000000", 20)); /* PITH_OK */
    pith_model_close(model);
    free(made.data);
}

/* Where a directory runs packed texts, its file does: it has a graph for the outputs of all heads.
 * Equal bits cannot show that, since a text has the same bits alone. */
static void test_packed(void **state) {
    (void)state;
    static const char *const names[] = { "encode/bge-m3", "encode/splade-max", "tasks/cross-bert",
                                         "hybrid/minicoil", "tasks/labels-bert" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[700];
        pith__compiled c;
        snprintf(path, sizeof path, PITH_TEST_DATA "/%s", names[i]);
        pith_model *model = open_directory(path, NULL);
        assert_non_null(model);
        bytes file = save(model, path, open_directory);
        pith_model_close(model);
        assert_int_equal(pith__compiled_open(&c, (pith_str){ file.data, file.size }, NULL),
                         PITH_OK);
        bool one = strstr(names[i], "minicoil"); /* its head reads the rows that dense vectors are
                                                    made of */
        if (!c.sections[one ? PITH_SECTION_TEXT : PITH_SECTION_HEADS].data)
            fail_msg("%s runs text by text", path);
        free(file.data);
    }
}

/* Opens the file and asks each head for something; got: what they made, if nothing failed. */
static pith_status work(bytes *got, counter *c, const bytes *file, pith_error *err) {
    const pith_allocator allocator = { count_alloc, count_free, c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_encode_options encode = PITH_ENCODE_OPTIONS_INIT;
    uint8_t pixels[5 * 4 * 3] = { 1, 2, 3 };
    const pith_image image = { pixels, 5, 4, 3, NULL };
    pith_encoded *e = NULL;
    pith_model *m;
    float numbers[256] = { 0 };
    size_t dim = 0;
    options.call.allocator = &allocator;
    pith_status status = pith_model_open_memory(&m, file->data, file->size, &options, err);
    if (status) return status;
    const bool pictures = strstr(pith_model_input(m, pith_model_input_count(m) - 1)->name, "pixel");
    /* CLIP makes one kind at a time */
    encode.what = pictures ? PITH_ENCODE_DENSE : pith_encode_can(m);
    if (encode.what) status = pith_encode(&e, m, texts, 1, &encode, err);
    if (e && e->sparse.offsets)
        tell_line(got, "sparse", 0, e->sparse.values, (size_t)e->sparse.offsets[1] * sizeof(float));
    pith_encoded_free(e);
    if (!status && pith_label_count(m))
        status = pith_classify(numbers, m, texts, NULL, 1, NULL, err);
    if (!status && pictures) {
        status = pith_embed_images_dim(&dim, m, NULL, err);
        assert_true(dim < 256);
        if (!status) status = pith_embed_images(numbers, m, &image, 1, NULL, err);
    }
    tell_line(got, "numbers", 0, numbers, sizeof numbers);
    pith_model_close(m);
    return status;
}

static bytes file_of(const char *name) {
    char path[700];
    snprintf(path, sizeof path, PITH_TEST_DATA "/%s", name);
    pith_model *model = open_directory(path, NULL);
    assert_non_null(model);
    bytes file = save(model, path, open_directory);
    pith_model_close(model);
    return file;
}

/* True if it opens. */
static bool open_route(const bytes *file, const char *route) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    options.route = route;
    if (pith_model_open_memory(&model, file->data, file->size, &options, &err))
        assert_true(err.message[0] != 0);
    pith_model_close(model);
    return !err.code;
}

/* A damaged bit of what heads and pictures read is an error or a result. */
static void test_flipped_bits(void **state) {
    (void)state;
    static const struct {
        const char *name;
        pith__section kind;
    } parts[] = { { "encode/bge-m3", PITH_SECTION_HEADS },
                  { "tasks/labels-bert", PITH_SECTION_HEADS },
                  { "hybrid/minicoil", PITH_SECTION_WORDS },
                  { "vision/clip", PITH_SECTION_PICTURES },
                  { "modules/asym", PITH_SECTION_ROUTES } };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t refused = 0, tried = 0;
        pith__compiled c;
        bytes file = file_of(parts[i].name);
        assert_int_equal(pith__compiled_open(&c, (pith_str){ file.data, file.size }, NULL),
                         PITH_OK);
        const pith_str section = c.sections[parts[i].kind];
        assert_non_null(section.data);
        char *begin = file.data + (section.data - file.data);
        for (size_t bit = 0; bit<section.size * 8; bit += section.size> 200 ? 37 : 1, tried++) {
            counter counted = { .limit = 64 << 20 };
            pith_error err = PITH_ERROR_INIT;
            bytes got = { NULL, 0, 0 };
            begin[bit / 8] ^= (char)(1 << bit % 8);
            assert_int_equal(
                pith__compiled_verify((pith_str){ file.data, file.size }, NULL, NULL, NULL),
                PITH_ERR_FORMAT);
            if (work(&got, &counted, &file, &err)) assert_true(++refused && err.message[0]);
            assert_int_equal(counted.live, 0);
            if (parts[i].kind == PITH_SECTION_ROUTES) refused += !open_route(&file, "doc");
            begin[bit / 8] ^= (char)(1 << bit % 8);
            free(got.data);
        }
        print_message("%s: %zu of %zu damaged files are refused\n", parts[i].name, refused, tried);
        assert_true(tried > 50 && refused > 5);
        free(file.data);
    }
}

/* A packed graph whose rows are not as wide as the model's own output says: results have the width
 * of that. */
static void test_other_width(void **state) {
    (void)state;
    pith__compiled c;
    pith_error err = PITH_ERROR_INIT;
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *e = NULL;
    uint32_t list[3], count;
    bytes file = file_of("encode/bge-m3");
    assert_int_equal(pith__compiled_open(&c, (pith_str){ file.data, file.size }, NULL), PITH_OK);
    char *heads = file.data + (c.sections[PITH_SECTION_HEADS].data - file.data);
    memcpy(&count, heads, sizeof count);
    memcpy(list, heads + sizeof count, sizeof list);
    assert_int_equal(count, 3);
    const uint32_t swapped[] = { list[0], list[2], list[1] };
    memcpy(heads + sizeof count, swapped, sizeof swapped);
    pith_model *model = open_bytes(&file, NULL);
    assert_non_null(model);
    for (options.what = PITH_ENCODE_SPARSE; options.what <= PITH_ENCODE_MULTI_VECTOR;
         options.what <<= 1) {
        assert_int_equal(pith_encode(&e, model, texts, 1, &options, &err), PITH_ERR_FORMAT);
        assert_non_null(strstr(err.message, "another width"));
    }
    pith_model_close(model);
    free(file.data);
}

/* Any allocation may fail, of opening and of making a view: it is reported, or the results are the
 * same. */
static void test_memory(void **state) {
    (void)state;
    static const char *const names[] = { "encode/bge-m3", "tasks/labels-bert", "hybrid/minicoil",
                                         "vision/clip" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = names[i];
        counter c = { .fail_at = 0 };
        pith_error err = PITH_ERROR_INIT;
        bytes wanted = { NULL, 0, 0 };
        bytes file = file_of(path);
        if (work(&wanted, &c, &file, &err)) fail_msg("%s: %s", path, err.message);
        const long calls = c.calls;
        for (long n = 1; n <= calls; n++) {
            bytes got = { NULL, 0, 0 };
            c = (counter){ .fail_at = n };
            pith_status status = work(&got, &c, &file, &err);
            if (status && status != PITH_ERR_MEMORY)
                fail_msg("%s: allocation %ld: %s", path, n, err.message);
            if (!status && (got.size != wanted.size || memcmp(got.data, wanted.data, got.size)))
                fail_msg("%s: allocation %ld changes the results", path, n);
            assert_int_equal(c.live, 0);
            free(got.data);
        }
        assert_true(calls > 50);
        free(wanted.data);
        free(file.data);
    }
}

int main(void) {
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(words[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks),     cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_modules),      cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_pictures),     cmocka_unit_test(test_packed),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_levels),
        cmocka_unit_test(test_precisions),   cmocka_unit_test(test_onnx_pictures),
        cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_other_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
