/* encode_test.h - what the tests of pith/encode.h share: directories with a small network and a
 * tokenizer of as many words as the network knows, and runs of the same ids in a session. */
#ifndef ENCODE_TEST_H
#define ENCODE_TEST_H

#include "embed_test.h"

/* VOCABULARY: of the networks in tests/data/families and of encode/logits. */
enum { VOCABULARY = 96, IDS_MAX = 64, ROWS_MAX = IDS_MAX * VOCABULARY };
enum { BERT_WORDS, ROBERTA_WORDS };

/* Ids of BERT_WORDS; further words are w10 to w95. */
enum { ID_PAD, ID_UNK, ID_CLS, ID_SEP, ID_MASK, ID_QUERY, ID_DOCUMENT, ID_COMMA, ID_DOT, ID_BANG };

/* Texts for both kinds of words, of at most 19 tokens with everything that is added to them. */
static const char *const encode_words[] = {
    "w20 w21 , w30 .",
    "w11",
    "",
    "w40 w40 nothing w40 w12",
    "w50 w51 w52 w53 w54 w55 w56 w57 w58 w59 w60 w61 w62 w63 w64",
    ", . !",
    "w95 w10",
    "w70 w71 w72 , w73 w74 w75 ! w76"
};
enum { ENCODE_TEXTS = sizeof encode_words / sizeof *encode_words };

static inline void encode_texts(pith_str *texts) {
    for (size_t i = 0; i < ENCODE_TEXTS; i++) texts[i] = pith__str_of(encode_words[i]);
}

static inline void encode_put(const char *dir, const char *name, const char *data) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!data) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(data, f);
    assert_int_equal(fclose(f), 0);
}

/* A directory with tests/data/<network>/model.onnx and a tokenizer; files of late interaction are
 * removed. */
static inline void encode_directory(const char *dir, const char *network, int words) {
    static const char *const marks[][10] = {
        { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]", ",", ".", "!" },
        { "<s>", "<pad>", "</s>", "<unk>", "<mask>", "w5", "w6", ",", ".", "!" },
    };
    const int begin = words == BERT_WORDS ? 2 : 0, end = words == BERT_WORDS ? 3 : 2;
    const char *unknown = marks[words][words == BERT_WORDS ? 1 : 3];
    char path[700], target[700];
    mkdir(dir, 0777);
    encode_put(dir, "artifact.metadata", NULL);
    encode_put(dir, "config_sentence_transformers.json", NULL);
    encode_put(dir, "config.json", NULL);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
            "\"WhitespaceSplit\"},"
            " \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"%s\", %d], \"cls\": "
            "[\"%s\", %d]},"
            " \"decoder\": null, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"%s\", "
            "\"vocab\": {",
            marks[words][end], end, marks[words][begin], begin, unknown);
    for (int id = 0; id < VOCABULARY; id++) {
        if (id < 10)
            fprintf(f, "\"%s\": %d, ", marks[words][id], id);
        else
            fprintf(f, "\"w%d\": %d%s", id, id, id + 1 < VOCABULARY ? ", " : "}}}");
    }
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    snprintf(target, sizeof target, PITH_TEST_DATA "/%s/model.onnx", network);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static inline pith_model *encode_open(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, NULL, &err)) fail_msg("%s: %s", path, err.message);
    return model;
}

static inline pith_encoded *encode_all(const pith_model *model, const pith_str *texts, size_t count,
                                       uint32_t what, int role, const pith_embed_options *embed) {
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_encoded *encoded = NULL;
    options.what = what;
    options.role = role;
    options.embed = embed;
    if (embed) options.call.threads = embed->call.threads;
    if (pith_encode(&encoded, model, texts, count, &options, &err)) fail_msg("%s", err.message);
    assert_int_equal(encoded->texts, count);
    return encoded;
}

/* Expects this status and a message with this in it. */
static inline void encode_refuses(const pith_model *model, uint32_t what, int role,
                                  pith_status status, const char *message) {
    static const pith_str text = { "w20 w21", 7 };
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_encoded *encoded = NULL;
    options.what = what;
    options.role = role;
    assert_int_equal(pith_encode(&encoded, model, &text, 1, &options, &err), status);
    assert_null(encoded);
    if (!strstr(err.message, message)) fail_msg("'%s' is not in '%s'", message, err.message);
}

/* The ids of a text as the model's tokenizer makes them. */
static inline size_t encode_ids(int32_t *ids, const pith_model *model, pith_str text) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    assert_int_equal(pith_tokenize(&tokens, pith_model_tokenizer(model), text, NULL, NULL, NULL),
                     PITH_OK);
    size_t count = tokens.count;
    assert_true(count <= IDS_MAX);
    memcpy(ids, tokens.ids, count * sizeof *ids);
    pith_tokens_free(&tokens);
    return count;
}

/* An output of a session on these ids, of which the last `hidden` are masked. Returns the numbers;
 * *width: of a row. */
static inline size_t encode_reference(float *to, int64_t *width, const pith_model *model,
                                      const int32_t *ids, size_t count, size_t hidden,
                                      size_t output) {
    int64_t wide[IDS_MAX], mask[IDS_MAX];
    const char *names[] = { "input_ids", "attention_mask" };
    pith_tensor inputs[2], outputs[4];
    pith_session *session = NULL;
    pith_error err = PITH_ERROR_INIT;
    size_t ports = pith_model_input_count(model);
    assert_true(ports <= 2 && pith_model_output_count(model) <= 4);
    for (size_t i = 0; i < count; i++) wide[i] = ids[i], mask[i] = i < count - hidden;
    for (size_t i = 0; i < 2; i++)
        inputs[i] = (pith_tensor){ .data = i ? mask : wide,
                                   .bytes = count * sizeof *wide,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { 1, (int64_t)count } };
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    if (pith_session_run(session, outputs, names, inputs, ports, NULL, &err))
        fail_msg("%s", err.message);
    const pith_tensor *t = &outputs[output];
    assert_int_equal(t->dtype, PITH_F32);
    assert_true(t->bytes <= ROWS_MAX * sizeof *to);
    memcpy(to, t->data, t->bytes);
    *width = t->dims[t->rank - 1];
    size_t numbers = t->bytes / sizeof *to;
    pith_session_destroy(session);
    return numbers;
}

/* Rows of text i of CSR, written out; checks that indices ascend and that no value is 0. */
static inline void encode_spread(float *row, const pith_sparse_rows *rows, size_t i) {
    memset(row, 0, VOCABULARY * sizeof *row);
    assert_int_equal(rows->offsets[0], 0);
    assert_true(rows->offsets[i + 1] >= rows->offsets[i]);
    for (int64_t k = rows->offsets[i]; k < rows->offsets[i + 1]; k++) {
        assert_in_range(rows->indices[k], 0, VOCABULARY - 1);
        if (k > rows->offsets[i]) assert_true(rows->indices[k] > rows->indices[k - 1]);
        assert_true(rows->values[k] > 0);
        row[rows->indices[k]] = rows->values[k];
    }
}

static inline void encode_same_sparse(const pith_sparse_rows *a, const pith_sparse_rows *b,
                                      size_t texts) {
    const size_t items = (size_t)a->offsets[texts];
    assert_memory_equal(a->offsets, b->offsets, (texts + 1) * sizeof *a->offsets);
    assert_memory_equal(a->indices, b->indices, items * sizeof *a->indices);
    assert_memory_equal(a->values, b->values, items * sizeof *a->values);
}

static inline void encode_same_rows(const pith_token_rows *a, const pith_token_rows *b,
                                    size_t texts) {
    const size_t items = (size_t)a->offsets[texts];
    assert_int_equal(a->dim, b->dim);
    assert_memory_equal(a->offsets, b->offsets, (texts + 1) * sizeof *a->offsets);
    assert_memory_equal(a->ids, b->ids, items * sizeof *a->ids);
    assert_memory_equal(a->vectors, b->vectors, items * a->dim * sizeof *a->vectors);
}

/* What two calls gave is the same, bit for bit. */
static inline void encode_same(const pith_encoded *a, const pith_encoded *b) {
    assert_int_equal(a->texts, b->texts);
    assert_int_equal(a->dim, b->dim);
    assert_int_equal(!a->dense, !b->dense);
    assert_int_equal(!a->sparse.offsets, !b->sparse.offsets);
    assert_int_equal(!a->multi_vector.offsets, !b->multi_vector.offsets);
    assert_int_equal(!a->tokens.offsets, !b->tokens.offsets);
    if (a->dense) assert_memory_equal(a->dense, b->dense, a->texts * a->dim * sizeof *a->dense);
    if (a->sparse.offsets) encode_same_sparse(&a->sparse, &b->sparse, a->texts);
    if (a->multi_vector.offsets) encode_same_rows(&a->multi_vector, &b->multi_vector, a->texts);
    if (a->tokens.offsets) encode_same_rows(&a->tokens, &b->tokens, a->texts);
}

#endif
