/* test_torch.c - files of torch.save: those of PyTorch against the same weights in safetensors, and
 * made-up ones, most of them broken. */
#include <string.h>

#include "base/str.h"
#include "formats/weights/safetensors/safetensors.h"
#include "formats/weights/torch/torch_file.h"
#include "support/loader_test.h"

static pith_error err;

/* ---- files that PyTorch wrote ---- */

static void read_file(pith__weights *w, const char *name, bool torch) {
    char path[300];
    pith_str bytes;
    snprintf(path, sizeof path, PITH_TEST_DATA "/modules/%s", name);
    if (pith__files_open(&bytes, &files, path, &err)) fail_msg("%s", err.message);
    if ((torch ? pith__torch_read : pith__safetensors_read)(w, bytes, name, &err))
        fail_msg("%s", err.message);
}

/* A zip archive in two shards with parameters, transposed views and views of one storage; the
 * format of before 1.6. */
static void equal_to_safetensors(void **state) {
    (void)state;
    static const char *const names[][2] = {
        { "torch-shards/pytorch_model-00001-of-00002.bin",
          "torch-shards/pytorch_model-00002-of-00002.bin" },
        { "old-layout/0_BERT/pytorch_model.bin", NULL },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pith__weights got, want;
        assert_int_equal(pith__weights_init(&got, &arena, &err), PITH_OK);
        assert_int_equal(pith__weights_init(&want, &arena, &err), PITH_OK);
        for (int k = 0; k < 2 && names[i][k]; k++) read_file(&got, names[i][k], true);
        read_file(&want, "dense/model.safetensors", false);
        assert_int_equal(got.count, want.count);
        for (size_t t = 0; t < want.count; t++) {
            const pith_tensor *a = pith__weights_find(&got, want.keys[t]), *b = &want.items[t];
            assert_non_null(a);
            assert_true(a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes);
            assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
            assert_memory_equal(a->data, b->data, a->bytes);
        }
    }
}

/* ---- archives made here ---- */

enum { FILE_MAX = 4096, LOCAL = 30, CENTRAL = 46, END = 22 };

typedef struct archive {
    unsigned char bytes[FILE_MAX], central[FILE_MAX];
    size_t size, central_size, members;
    bool wide; /* sizes and offsets stand in zip64 fields */
} archive;

static void put_number(unsigned char *at, uint64_t n, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(n >> (8 * i));
}

static void add_member(archive *a, const char *name, const void *data, size_t size) {
    const size_t length = strlen(name), at = a->size, extra = a->wide ? 28 : 0;
    unsigned char *local = a->bytes + at, *c = a->central + a->central_size;
    put_number(local, 0x04034b50, 4);
    put_number(local + 26, length, 2);
    memcpy(local + LOCAL, name, length);
    memcpy(local + LOCAL + length, data, size);
    a->size += LOCAL + length + size;
    put_number(c, 0x02014b50, 4);
    put_number(c + 20, a->wide ? UINT32_MAX : size, 4);
    put_number(c + 24, a->wide ? UINT32_MAX : size, 4);
    put_number(c + 28, length, 2);
    put_number(c + 30, extra, 2);
    put_number(c + 42, a->wide ? UINT32_MAX : at, 4);
    memcpy(c + CENTRAL, name, length);
    if (a->wide) {
        unsigned char *e = c + CENTRAL + length;
        put_number(e, 1, 2);
        put_number(e + 2, 24, 2);
        put_number(e + 4, size, 8);
        put_number(e + 12, size, 8);
        put_number(e + 20, at, 8);
    }
    a->central_size += CENTRAL + length + extra;
    a->members++;
}

static void end_archive(archive *a) {
    const size_t at = a->size;
    memcpy(a->bytes + at, a->central, a->central_size);
    a->size += a->central_size;
    if (a->wide) {
        unsigned char *e = a->bytes + a->size;
        put_number(e, 0x06064b50, 4);
        put_number(e + 32, a->members, 8);
        put_number(e + 40, a->central_size, 8);
        put_number(e + 48, at, 8);
        put_number(e + 56, 0x07064b50, 4);
        put_number(e + 64, a->size, 8);
        a->size += 76;
    }
    unsigned char *e = a->bytes + a->size;
    put_number(e, 0x06054b50, 4);
    put_number(e + 10, a->wide ? UINT16_MAX : a->members, 2);
    put_number(e + 12, a->wide ? UINT32_MAX : a->central_size, 4);
    put_number(e + 16, a->wide ? UINT32_MAX : at, 4);
    a->size += END;
}

static pith_status read_archive(pith__weights *w, const archive *a) {
    err = (pith_error)PITH_ERROR_INIT;
    assert_int_equal(pith__weights_init(w, &arena, &err), PITH_OK);
    return pith__torch_read(w, (pith_str){ (const char *)a->bytes, a->size }, "m.bin", &err);
}

static const float numbers[6] = { 0, 1, 2, 3, 4, 5 };

/* An archive with this pickle and the numbers as storage "0". */
static void make(archive *a, const char *pickle, size_t size) {
    add_member(a, "m/data.pkl", pickle, size);
    add_member(a, "m/byteorder", "little", 6);
    add_member(a, "m/data/0", numbers, sizeof numbers);
    end_archive(a);
}

/* A pickle in parts: {"t": a tensor of storage "0" with `tail` as its offset, size and stride}. */
#define STORAGE(type, key, numel) STORAGE_OF("torch", type, key, numel)
#define STORAGE_OF(module, type, key, numel)                                                       \
    "(X\7\0\0\0storagec" module "\n" type "\nX\1\0\0\0" key "X\3\0\0\0cpuK" numel "tQ"
#define REBUILD(storage, tail)                                                                     \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage tail "\x89"                                     \
    "ccollections\nOrderedDict\n)RtR"
#define DICT(value) "\x80\2}X\1\0\0\0t" value "s."
#define TENSOR(tail) DICT(REBUILD(STORAGE("FloatStorage", "0", "\6"), tail))

#define SEVENTEEN "K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1"

typedef struct torch_case {
    const char *pickle;
    size_t size;
    pith_status status;
    const char *says;
} torch_case;
#define CASE(pickle, status, says)                                                                 \
    { pickle, sizeof(pickle) - 1, status, says }

static void good(void **state) {
    (void)state;
    static const struct {
        torch_case c;
        float first, last;
        int64_t dims[2];
    } cases[] = {
        { CASE(TENSOR("K\0K\2K\3\x86K\3K\1\x86"), PITH_OK, NULL), 0, 5, { 2, 3 } },
        { CASE(TENSOR("K\0K\3K\2\x86K\1K\3\x86"), PITH_OK, NULL), 0, 5, { 3, 2 } }, /* transposed */
        { CASE(TENSOR("K\1K\1K\5\x86K\xc8K\1\x86"), PITH_OK, NULL), 1, 5, { 1, 5 } },
        { CASE(TENSOR("K\0K\2K\2\x86K\3K\2\x86"), PITH_OK, NULL), 0, 5, { 2, 2 } },
        { CASE(DICT("ctorch._utils\n_rebuild_parameter\n(" REBUILD(
                   STORAGE("FloatStorage", "0", "\6"),
                   "K\0K\2K\3\x86K\3K\1\x86") "\x88"
                                              "ccollections\nOrderedDict\n)RtR"),
               PITH_OK, NULL),
          0,
          5,
          { 2, 3 } },
        { CASE("\x80\2}(X\12\0\0\0state_dict}X\1\0\0\0t" REBUILD(
                   STORAGE("FloatStorage", "0", "\6"),
                   "K\0K\2K\3\x86K\3K\1\x86") "sX\5\0\0\0epochK\3u.",
               PITH_OK, NULL),
          0,
          5,
          { 2, 3 } },
        { CASE("\x80\4\x95\0\0\0\0\0\0\0\0}\x94\x8c\1t"
               "ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE_OF(
                   "torch.storage", "UntypedStorage", "0",
                   "\30") "K\0K\2K\3\x86K\3K\1\x86\x89N\x8c\5torch\x8c\7"
                          "float32\x93tRs.",
               PITH_OK, NULL),
          0,
          5,
          { 2, 3 } },
    };
    for (int wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            archive a = { .wide = wide };
            pith__weights w;
            make(&a, cases[i].c.pickle, cases[i].c.size);
            if (read_archive(&w, &a)) fail_msg("case %zu: %s", i, err.message);
            const pith_tensor *t = pith__weights_find(&w, PITH_STR("t"));
            assert_true(t && w.count == 1 && t->dtype == PITH_F32 && t->rank == 2);
            assert_memory_equal(t->dims, cases[i].dims, sizeof cases[i].dims);
            float first, last;
            memcpy(&first, t->data, sizeof first);
            memcpy(&last, (char *)t->data + t->bytes - sizeof last, sizeof last);
            assert_true(first == cases[i].first && last == cases[i].last);
        }
}

/* What the elements of a transposed tensor are, and of one with a gap. */
static void strides(void **state) {
    (void)state;
    static const struct {
        const char *tail;
        float want[6];
    } cases[] = { { TENSOR("K\0K\3K\2\x86K\1K\3\x86"), { 0, 3, 1, 4, 2, 5 } },
                  { TENSOR("K\0K\2K\2\x86K\3K\2\x86"), { 0, 2, 3, 5 } } };
    const size_t sizes[] = { sizeof(TENSOR("K\0K\3K\2\x86K\1K\3\x86")) - 1,
                             sizeof(TENSOR("K\0K\2K\2\x86K\3K\2\x86")) - 1 };
    for (size_t i = 0; i < 2; i++) {
        archive a = { .wide = false };
        pith__weights w;
        make(&a, cases[i].tail, sizes[i]);
        assert_int_equal(read_archive(&w, &a), PITH_OK);
        assert_memory_equal(w.items[0].data, cases[i].want, w.items[0].bytes);
    }
}

static void refused(void **state) {
    (void)state;
    static const torch_case cases[] = {
        CASE("\x80\2cos\nsystem\nX\2\0\0\0ls\x85R.", PITH_ERR_UNSUPPORTED,
             "m.bin: the pickle asks for 'os.system' at byte 2; only plain tensors are read, and "
             "nothing is executed"),
        CASE("\x80\4\x8c\10"
             "builtins\x8c\4"
             "eval\x93.",
             PITH_ERR_UNSUPPORTED, "'builtins.eval' at byte 18"),
        CASE("\x80\2ctorch.storage\n_load_from_bytes\n.", PITH_ERR_UNSUPPORTED,
             "torch.storage._load_from_bytes"),
        CASE("\x80\2itorch\nx\n.", PITH_ERR_UNSUPPORTED, "opcode 0x69 at byte 2 of the pickle"),
        CASE("\x80\x06.", PITH_ERR_UNSUPPORTED, "pickle protocol 6"),
        CASE("\x80\2}", PITH_ERR_FORMAT, "it has no end"),
        CASE("\x80\2X\xff\xff\xff\x7f.", PITH_ERR_FORMAT, "it ends within an argument"),
        CASE("\x80\2}h\0.", PITH_ERR_FORMAT, "damaged at byte 3: an unknown memo"),
        CASE("\x80\2}r\xff\xff\xff\x7f.", PITH_ERR_FORMAT, "a memo out of order"),
        CASE("\x80\2s.", PITH_ERR_FORMAT, "a value is missing"),
        CASE("\x80\2(.", PITH_ERR_FORMAT, "a value is missing"),
        CASE("\x80\2}u.", PITH_ERR_FORMAT, "a mark is missing"),
        CASE("\x80\2}(NNNu.", PITH_ERR_FORMAT, "a key without a value"),
        CASE("\x80\2NNs.", PITH_ERR_FORMAT, "items without a dictionary"),
        CASE("\x80\2NK\1K\1s.", PITH_ERR_FORMAT, "items without a dictionary"),
        CASE("\x80\2NK\1a.", PITH_ERR_FORMAT, "items without a list"),
        CASE("\x80\2NN\x85Rs.", PITH_ERR_FORMAT, "not a function"),
        CASE("\x80\2ccollections\nOrderedDict\nN\x85R.", PITH_ERR_FORMAT,
             "an OrderedDict made from arguments"),
        CASE("\x80\2ctorch\nFloatStorage\n)R.", PITH_ERR_FORMAT, "a call that makes no tensor"),
        CASE("\x80\2NNb.", PITH_ERR_FORMAT, "not a dictionary"),
        CASE("\x80\2NQ.", PITH_ERR_FORMAT, "not a storage"),
        CASE("\x80\2K\1.", PITH_ERR_UNSUPPORTED, "no dictionary of tensors"),
        CASE("\x80\2}.", PITH_ERR_UNSUPPORTED, "no dictionary of tensors"),
        CASE(TENSOR("K\1K\2K\3\x86K\3K\1\x86"), PITH_ERR_FORMAT,
             "tensor 't': it reaches beyond its storage of 24 bytes"),
        CASE(TENSOR("K\0K\2K\3\x86K\4K\1\x86"), PITH_ERR_FORMAT, "beyond its storage"),
        /* more elements than it has */
        CASE(TENSOR("K\0K\2K\7\x86K\0K\0\x86"), PITH_ERR_FORMAT, "beyond its storage"),
        CASE(TENSOR("K\7K\0\x85K\1\x85"), PITH_ERR_FORMAT, "beyond its storage"),
        CASE(TENSOR("J\xff\xff\xff\xffK\2\x85K\1\x85"), PITH_ERR_FORMAT, "sizes or strides"),
        CASE(TENSOR("K\0J\xff\xff\xff\xff\x85K\1\x85"), PITH_ERR_FORMAT, "sizes or strides"),
        CASE(TENSOR("K\0\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\10\xff\xff\xff\xff\xff\xff\xff"
                    "\x7f\x86K\1K\1\x86"),
             PITH_ERR_FORMAT, "its shape is too large"),
        CASE(TENSOR("K\0(" SEVENTEEN "t(" SEVENTEEN "t"), PITH_ERR_FORMAT, "sizes or strides"),
        CASE(DICT(REBUILD(STORAGE("FloatStorage", "1", "\6"), "K\0K\2\x85K\1\x85")),
             PITH_ERR_FORMAT, "storage '1' is not in"),
        CASE(DICT(REBUILD(STORAGE("DoubleStorage", "0", "\6"), "K\0K\6\x85K\1\x85")),
             PITH_ERR_FORMAT, "beyond its storage"),
        CASE(DICT(REBUILD(STORAGE_OF("torch.storage", "UntypedStorage", "0", "\6"),
                          "K\0K\6\x85K\1\x85")),
             PITH_ERR_UNSUPPORTED, "dtype is not known"),
        CASE("\x80\2}(X\1\0\0\0t" REBUILD(
                 STORAGE("FloatStorage", "0", "\6"),
                 "K\0K\2\x85K\1\x85") "X\1\0\0\0t" REBUILD(STORAGE("FloatStorage", "0", "\6"),
                                                           "K\0K\2\x85K\1\x85") "u.",
             PITH_ERR_FORMAT, "listed twice"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        archive a = { .wide = false };
        pith__weights w;
        make(&a, cases[i].pickle, cases[i].size);
        pith_status status = read_archive(&w, &a);
        if (status != cases[i].status || !strstr(err.message, cases[i].says))
            fail_msg("case %zu: %d '%s', not '%s'", i, status, err.message, cases[i].says);
    }
}

/* ---- broken archives ---- */

static void expect_broken(archive *a, pith_status status, const char *says) {
    pith__weights w;
    pith_status got = read_archive(&w, a);
    if (got != status || !strstr(err.message, says))
        fail_msg("%d '%s', not '%s'", got, err.message, says);
}

#define WHOLE TENSOR("K\0K\2K\3\x86K\3K\1\x86")

static archive whole(bool wide) {
    archive a = { .wide = wide };
    make(&a, WHOLE, sizeof WHOLE - 1);
    return a;
}

static void archives(void **state) {
    (void)state;
    const size_t first = LOCAL + 10 + sizeof WHOLE - 1; /* where the second member is */
    archive a = whole(false);
    const size_t central = a.size - END - a.central_size;
    a.bytes[central + 10] = 8;
    expect_broken(&a, PITH_ERR_UNSUPPORTED, "member 'm/data.pkl' is compressed");
    a = whole(false);
    a.bytes[central + 8] = 1;
    expect_broken(&a, PITH_ERR_UNSUPPORTED, "is encrypted");
    a = whole(false);
    put_number(a.bytes + central + 20, 1 << 20, 4);
    put_number(a.bytes + central + 24, 1 << 20, 4);
    expect_broken(&a, PITH_ERR_FORMAT, "member 'm/data.pkl' reaches beyond the file");
    a = whole(false);
    put_number(a.bytes + central + 20, first + 10, 4);
    put_number(a.bytes + central + 24, first + 10, 4);
    expect_broken(&a, PITH_ERR_FORMAT,
                  "members 'm/data.pkl' and 'm/byteorder' of the zip archive overlap");
    a = whole(false);
    put_number(a.bytes + central + 42, 1, 4);
    expect_broken(&a, PITH_ERR_FORMAT, "is not where the zip directory says");
    a = whole(false);
    put_number(a.bytes + a.size - 6, a.size, 4);
    expect_broken(&a, PITH_ERR_FORMAT, "directory reaches beyond the file");
    a = whole(false);
    put_number(a.bytes + a.size - 12, 2000, 2);
    expect_broken(&a, PITH_ERR_FORMAT, "directory reaches beyond the file");
    a = whole(false);
    a.size = first;
    expect_broken(&a, PITH_ERR_FORMAT, "the zip archive has no directory; it may be cut short");
    a.size = 5;
    expect_broken(&a, PITH_ERR_FORMAT, "cut short");
    a = whole(true);
    put_number(a.bytes + a.size - END - 12, UINT64_MAX, 8);
    expect_broken(&a, PITH_ERR_FORMAT, "zip64 end is not there");
    a = (archive){ .wide = false };
    add_member(&a, "m/data.pkl", WHOLE, sizeof WHOLE - 1);
    add_member(&a, "m/byteorder", "big", 3);
    end_archive(&a);
    expect_broken(&a, PITH_ERR_UNSUPPORTED, "byte order 'big'");
    a = (archive){ .wide = false };
    add_member(&a, "x", "y", 1);
    add_member(&a, "x", "z", 1);
    end_archive(&a);
    expect_broken(&a, PITH_ERR_FORMAT, "member 'x' is twice in the zip archive");
    a = (archive){ .wide = false };
    add_member(&a, "x", "y", 1);
    end_archive(&a);
    expect_broken(&a, PITH_ERR_FORMAT, "has no data.pkl");
    memcpy(a.bytes, "PY", 2);
    expect_broken(&a, PITH_ERR_FORMAT, "this is not a file of torch.save");
    memcpy(a.bytes, "\x80\2\x8a\1\0.", 6);
    expect_broken(&a, PITH_ERR_FORMAT, "this is not a file of torch.save");
}

/* Every byte of every file that PyTorch wrote is changed: an error with a message, or tensors that
 * can be read. */
static void each_byte(void **state) {
    (void)state;
    static const char *const names[] = { "torch-shards/pytorch_model-00001-of-00002.bin",
                                         "old-layout/0_BERT/pytorch_model.bin" };
    static char copy[1 << 15];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[300];
        snprintf(path, sizeof path, PITH_TEST_DATA "/modules/%s", names[n]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        const size_t size = fread(copy, 1, sizeof copy, f);
        fclose(f);
        assert_true(size && size < sizeof copy);
        for (size_t i = 0; i < size; i++) {
            const char old = copy[i];
            pith__arena own;
            pith__weights w;
            pith__arena_init(&own, NULL);
            copy[i] = (char)(old ^ (1 << (i % 8)));
            err = (pith_error)PITH_ERROR_INIT;
            assert_int_equal(pith__weights_init(&w, &own, &err), PITH_OK);
            if (pith__torch_read(&w, (pith_str){ copy, size }, "m.bin", &err))
                assert_true(err.message[0]);
            volatile char seen = 0;
            for (size_t t = 0; !err.code && t < w.count; t++)
                for (size_t k = 0; k < w.items[t].bytes; k++)
                    seen ^= ((const char *)w.items[t].data)[k];
            copy[i] = old;
            pith__arena_free(&own);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_safetensors),
        cmocka_unit_test(good),
        cmocka_unit_test(strides),
        cmocka_unit_test(refused),
        cmocka_unit_test(archives),
        cmocka_unit_test(each_byte),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
