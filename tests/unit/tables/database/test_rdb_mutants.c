/* test_rdb_mutants.c - a small database file, broken in thousands of ways with its checksum made
 * right again: each gives an error or answers, in bounded memory, and nothing is read outside the
 * file. */
#include "support/relational_test.h"

#include "fuzz/rdb_use.h"

enum { MUTANTS = 1500, FILE_MOST = 1 << 17 };

static uint64_t state = 7;

static uint64_t draw(uint64_t n) { return (pith__random_next(&state) >> 32) * n >> 32; }

static size_t source(uint8_t *bytes) {
    FILE *f = fopen(PITH_SOURCE_DIR "/tests/fuzz/corpus/rdb/tables.rdb", "rb");
    assert_non_null(f);
    const size_t size = fread(bytes, 1, FILE_MOST, f);
    fclose(f);
    return size;
}

static void break_one(uint8_t *bytes, size_t *size, const uint8_t *original) {
    static const uint64_t odd[] = { 0,
                                    1,
                                    2,
                                    63,
                                    64,
                                    0x7FFFFFFF,
                                    0x80000000,
                                    0xFFFFFFFF,
                                    0xFFFFFFFE,
                                    1ull << 40,
                                    1ull << 62,
                                    ~0ull,
                                    0x7FF0000000000000,
                                    0x7FF8000000000000,
                                    1000,
                                    1ull << 32 };
    pith__rdb_header h;
    memcpy(&h, original, sizeof h);
    const size_t table = sizeof h + h.sections * sizeof(pith__rdb_section);
    const uint64_t value = draw(3) ? odd[draw(sizeof odd / sizeof *odd)] : draw(300);
    pith__rdb_section first;
    memcpy(&first, original + sizeof h, sizeof first);
    switch (draw(7)) {
    case 0: bytes[draw(*size)] = (uint8_t)draw(256); break;
    case 1: memcpy(bytes + sizeof h + draw((table - sizeof h) / 8) * 8, &value, 8); break;
    case 2: memcpy(bytes + sizeof h + draw((table - sizeof h) / 4) * 4, &value, 4); break;
    case 3:
        memcpy(bytes + first.offset + first.bytes +
                   draw((*size - first.offset - first.bytes) / 8) * 8,
               &value, 8);
        break;
    case 4:
        memcpy(bytes + first.offset + first.bytes +
                   draw((*size - first.offset - first.bytes) / 4) * 4,
               &value, 4);
        break;
    case 5: {
        /* A digit of the JSON, or any character. */
        uint8_t *c = bytes + first.offset + draw(first.bytes);
        for (int i = 0;
             i < 40 && (*c < '0' || *c > '9') && c + 1 < bytes + first.offset + first.bytes; i++)
            c++;
        *c = *c >= '0' && *c <= '9' ? (uint8_t)('0' + draw(10)) : (uint8_t)draw(128);
        break;
    }
    default: *size = draw(*size); break;
    }
}

static void mutants(void **unused) {
    (void)unused;
    static uint8_t original[FILE_MOST];
    const size_t size = source(original);
    uint8_t *bytes = malloc(size);
    int good = 0;
    memcpy(bytes, original, size);
    assert_true(rdb_use(bytes, size));
    assert_memory_equal(bytes, original, size);
    for (int i = 0; i < MUTANTS; i++) {
        size_t now = size;
        memcpy(bytes, original, size);
        for (uint64_t k = 1 + draw(2); k-- > 0 && now == size;) break_one(bytes, &now, original);
        good += rdb_use(bytes, now);
    }
    print_message("%d of %d are still databases\n", good, MUTANTS);
    assert_true(good > MUTANTS / 10 && good < MUTANTS * 9 / 10);
    free(bytes);
}

/* The database of the corpus is what its tables give today. */
static void same_bytes(void **unused) {
    (void)unused;
    static uint8_t original[FILE_MOST], made[FILE_MOST];
    const size_t size = source(original);
    pith_error err = PITH_ERROR_INIT;
    char path[400];
    snprintf(path, sizeof path, "%s/tables.rdb", test_directory());
    if (test_make(PITH_SOURCE_DIR "/tests/fuzz/bases/tables", path, &err))
        fail_msg("%s", err.message);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(made, 1, FILE_MOST, f), size);
    fclose(f);
    assert_memory_equal(made, original, size);
    test_clean();
    rmdir(test_directory());
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bytes), cmocka_unit_test(mutants) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
