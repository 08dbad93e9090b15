/* test_sources.c - tokenizers without tokenizer.json: what the class makes of the files, classes
 * that are refused by name, and tokens that are listed beside the vocabulary.
 * tests/comparisons/compare_sources.py compares with transformers. */
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/loader_test.h"
#include "text/tokenizer.h"

static pith_error err;

/* ---- a SentencePiece model ---- */

typedef struct piece {
    const char *text;
    float score;
    char type; /* 1 normal, 2 unknown, 3 control */
} piece;

static const piece pieces[] = {
    { "<unk>", 0, 2 },
    { "<s>", 0, 3 },
    { "</s>", 0, 3 },
    { "\xE2\x96\x81"
      "a",
      -1, 1 },
    { "\xE2\x96\x81"
      "b",
      -2, 1 },
    { "c", -3, 1 },
    { "\xE2\x96\x81", -4, 1 },
    { "[CLS]", 0, 3 },
    { "[SEP]", 0, 3 },
    { "<sep>", 0, 3 },
    { "<cls>", 0, 3 },
};

static void put_model(const char *name) {
    char bytes[1024];
    size_t size = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t n = strlen(pieces[i].text);
        bytes[size++] = 0x0A; /* field 1 of the model: a piece */
        bytes[size++] = (char)(n + 9);
        bytes[size++] = 0x0A; /* its text */
        bytes[size++] = (char)n;
        memcpy(bytes + size, pieces[i].text, n);
        size += n;
        bytes[size++] = 0x15; /* its score */
        memcpy(bytes + size, &pieces[i].score, 4);
        size += 4;
        bytes[size++] = 0x18; /* its type */
        bytes[size++] = pieces[i].type;
    }
    put_file(name, bytes, size);
}

static void put_text(const char *name, const char *text) { put_file(name, text, strlen(text)); }

static void forget(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

static void name_class(const char *name) {
    char text[256];
    snprintf(text, sizeof text, "{\"tokenizer_class\": \"%s\"}", name);
    put_text("tokenizer_config.json", text);
}

/* The ids of a text in the directory's tokenizer; ends with -1. */
static void expect_ids(const char *text, const int *ids) {
    pith_tokenizer *t;
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith__arena own;
    pith__arena_init(&own, NULL);
    if (pith__tokenizer_load(&t, dir, NULL, &own, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_tokenize(&tokens, t, (pith_str){ text, strlen(text) }, NULL, NULL, &err),
                     PITH_OK);
    for (size_t i = 0; i < tokens.count || ids[i] >= 0; i++)
        if (i == tokens.count || tokens.ids[i] != ids[i])
            fail_msg("'%s': token %zu is %d, not %d", text, i,
                     i < tokens.count ? tokens.ids[i] : -1, ids[i]);
    pith_tokens_free(&tokens);
    pith__tokenizer_unload(t);
    pith__arena_free(&own);
}

static void expect_refusal(pith_status status, const char *says) {
    pith_tokenizer *t;
    pith__arena own;
    pith__arena_init(&own, NULL);
    pith_status got = pith__tokenizer_load(&t, dir, NULL, &own, &err);
    if (got != status || !strstr(err.message, says))
        fail_msg("%d '%s', not %d '%s'", got, err.message, status, says);
    pith__arena_free(&own);
}

static void sentencepiece_classes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int ids[10];
    } cases[] = {
        { "CamembertTokenizer", { 5, 7, 8, 9, 6, -1 } },
        { "XLMRobertaTokenizer", { 0, 4, 5, 6, 2, -1 } },
        { "XLMRobertaTokenizerFast", { 0, 4, 5, 6, 2, -1 } },
        { "MBartTokenizer", { 4, 5, 6, 2, 15, -1 } },
        { "MBart50Tokenizer", { 15, 4, 5, 6, 2, -1 } },
        { "XGLMTokenizer", { 2, 4, 5, 6, -1 } },
        { "T5Tokenizer", { 3, 4, 5, 2, -1 } },
        { "XLNetTokenizer", { 3, 4, 5, 9, 10, -1 } },
        { "RemBertTokenizer", { 7, 3, 4, 5, 8, -1 } },
        { "BigBirdTokenizer", { 7, 3, 4, 5, 8, -1 } },
        { "AlbertTokenizer", { 7, 3, 4, 5, 8, -1 } },
        { "PreTrainedTokenizerFast", { 3, 4, 5, -1 } },
    };
    put_model("sentencepiece.bpe.model");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        name_class(cases[i].name);
        expect_ids("a bc", cases[i].ids);
    }
    static const char *const refused[] = { "NllbTokenizer", "M2M100Tokenizer", "BertTokenizer" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        name_class(refused[i]);
        expect_refusal(PITH_ERR_UNSUPPORTED, refused[i]);
    }
    name_class("LlamaTokenizer");
    expect_refusal(PITH_ERR_UNSUPPORTED, "a unigram model");

    /* Without a class config.json is asked, and then the file's name. */
    forget("tokenizer_config.json");
    expect_ids("a bc", (const int[]){ 0, 4, 5, 6, 2, -1 });
    put_text("config.json", "{\"model_type\": \"camembert\"}");
    expect_ids("a bc", (const int[]){ 5, 7, 8, 9, 6, -1 });
    put_text("config.json",
             "{\"model_type\": \"bert\", \"tokenizer_class\": \"CamembertTokenizer\"}");
    expect_ids("a bc", (const int[]){ 5, 7, 8, 9, 6, -1 });
    put_text("config.json", "{\"model_type\": \"m2m_100\"}");
    expect_refusal(PITH_ERR_UNSUPPORTED, "m2m_100 (model_type)");
    forget("config.json");
    forget("sentencepiece.bpe.model");
}

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##c\n";

static void vocab_txt(void **state) {
    (void)state;
    static const char *const refused[] = { "BertJapaneseTokenizer", "BertweetTokenizer",
                                           "PhobertTokenizer", "RoFormerTokenizer",
                                           "ProphetNetTokenizer" };
    put_text("vocab.txt", vocab);
    expect_ids("a bc", (const int[]){ 2, 5, 6, 7, 3, -1 });
    name_class("ElectraTokenizerFast");
    expect_ids("a bc", (const int[]){ 2, 5, 6, 7, 3, -1 });
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        name_class(refused[i]);
        expect_refusal(PITH_ERR_UNSUPPORTED, refused[i]);
    }
    name_class("MPNetTokenizer");
    expect_refusal(PITH_ERR_FORMAT, "no token \"<s>\"");
    forget("tokenizer_config.json");
    forget("vocab.txt");
}

static void merges(void **state) {
    (void)state;
    static const char *const refused[] = { "CTRLTokenizer", "XLMTokenizer", "FlaubertTokenizer",
                                           "BlenderbotTokenizer" };
    put_text("vocab.json",
             "{\"[CLS]\": 0, \"[SEP]\": 1, \"a\": 2, \"b\": 3, \"ab\": 4, \"<s>\": 5, \"</s>\": 6, "
             "\"<unk>\": 7, \"b</w>\": 8, \"a</w>\": 9, \"ab</w>\": 10}");
    put_text("merges.txt", "#version: 0.2\na b\na b</w>\n");
    name_class("DebertaTokenizer");
    expect_ids("ab", (const int[]){ 0, 4, 1, -1 });
    name_class("RobertaTokenizer");
    expect_ids("ab", (const int[]){ 5, 4, 6, -1 });
    name_class("HerbertTokenizer");
    expect_ids("ab a", (const int[]){ 5, 10, 9, 6, -1 });
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        name_class(refused[i]);
        expect_refusal(PITH_ERR_UNSUPPORTED, refused[i]);
    }
    forget("tokenizer_config.json");
    expect_ids("ab", (const int[]){ 5, 4, 6, -1 });
    forget("merges.txt");
    expect_refusal(PITH_ERR_NOT_FOUND, "merges.txt");
    forget("vocab.json");
}

static void listed_tokens(void **state) {
    (void)state;
    put_text("vocab.txt", vocab);
    put_text("added_tokens.json", "{\"two\": 9, \"one\": 8}");
    expect_ids("one two a", (const int[]){ 2, 8, 9, 5, 3, -1 });
    put_text("tokenizer_config.json", "{\"added_tokens_decoder\": {\"8\": {\"content\": \"two\", "
                                      "\"lstrip\": true, \"special\": true}}}");
    /* added_tokens.json does not count then */
    expect_ids("a two", (const int[]){ 2, 5, 8, 3, -1 });
    put_text("tokenizer_config.json",
             "{\"additional_special_tokens\": [\"<x>\", {\"content\": \"<y>\"}]}");
    expect_ids("<y> one <x>", (const int[]){ 2, 11, 8, 10, 3, -1 });
    put_text("tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"11\": {\"content\": \"two\"}}}");
    expect_refusal(PITH_ERR_FORMAT, "\"two\" is listed with the id 11");
    put_text("tokenizer_config.json",
             "{\"added_tokens_decoder\": {\"x\": {\"content\": \"two\"}}}");
    expect_refusal(PITH_ERR_FORMAT, "\"x\" is not a token id");
    forget("tokenizer_config.json");
    put_text("added_tokens.json", "{\"two\": -1}");
    expect_refusal(PITH_ERR_FORMAT, "added_tokens.json");
    forget("added_tokens.json");
    forget("vocab.txt");
}

/* A file that is there in some way but cannot be read is no missing file. */
static void unreadable(void **state) {
    (void)state;
    static const char *const names[] = { "tokenizer_config.json", "special_tokens_map.json",
                                         "added_tokens.json",     "config.json",
                                         "tokenizer.json",        "vocab.txt" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        put_text("vocab.txt", vocab);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
        assert_int_equal(symlink("nowhere", path), 0);
        expect_refusal(PITH_ERR_IO, names[i]);
        unlink(path);
        assert_int_equal(mkdir(path, 0777), 0);
        expect_refusal(PITH_ERR_IO, names[i]);
        rmdir(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sentencepiece_classes),
                                        cmocka_unit_test(vocab_txt), cmocka_unit_test(merges),
                                        cmocka_unit_test(listed_tokens),
                                        cmocka_unit_test(unreadable) };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
