/* Text put together in a buffer: pieces follow each other; what does not fit is cut between
 * characters and marked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text_out.h"
#include "base/unicode/utf8.h"

static void pieces_follow_each_other(void **state) {
    (void)state;
    char buffer[16];
    pith__text_out out = pith__text_begin(buffer, sizeof buffer);
    assert_string_equal(buffer, "");
    for (int i = 0; i < 4; i++) pith__text_put(&out, "%s%d", i ? ", " : "", i);
    assert_string_equal(buffer, "0, 1, 2, 3");
    assert_int_equal(out.used, 10);
    pith__text_put(&out, "%s", "45678"); /* the last byte but the NUL */
    assert_string_equal(buffer, "0, 1, 2, 345678");
    assert_false(out.full);
}

static size_t format(char *buffer, size_t size, const char *how, ...) {
    va_list args;
    va_start(args, how);
    const size_t used = pith__text_format(buffer, size, how, args);
    va_end(args);
    return used;
}

static void one_format(void **state) {
    (void)state;
    char buffer[10];
    assert_int_equal(format(buffer, sizeof buffer, "%s", "123456789"), 9);
    assert_string_equal(buffer, "123456789");
    assert_int_equal(format(buffer, sizeof buffer, "%s", "12345€78"), 8);
    assert_string_equal(buffer, "12345…");
    const pith_str euros = { "a€€", 7 };
    for (int most = 0; most < 9; most++) {
        static const char *const cut[] = {
            "…", "a…", "a…", "a…", "a€…", "a€…", "a€…", "a€€", "a€€"
        };
        char text[20];
        snprintf(text, sizeof text, PITH_CUT_FMT, PITH_CUT(euros, (size_t)most));
        assert_string_equal(text, cut[most]);
    }
}

/* Every size, with characters of one to four bytes wherever the end falls. */
static void long_text_is_cut_and_marked(void **state) {
    static const char text[] = "aé€\U0001F600b\U0001F600€éc";
    (void)state;
    for (size_t size = 1; size <= sizeof text + 1; size++) {
        char buffer[64];
        memset(buffer, '#', sizeof buffer);
        pith__text_out out = pith__text_begin(buffer, size);
        for (const char *p = text; *p;) { /* a character at a time */
            const char *next = p;
            pith__utf8_next(&next);
            pith__text_put(&out, "%.*s", (int)(next - p), p);
            p = next;
        }
        pith__text_put(&out, "%s", "");
        assert_int_equal(strlen(buffer), out.used);
        assert_true(out.used < size && buffer[size] == '#');
        assert_int_equal(pith__utf8_valid_prefix(buffer, out.used), out.used);
        assert_int_equal(out.full, size < sizeof text);
        if (!out.full) {
            assert_string_equal(buffer, text);
            continue;
        }
        size_t kept = out.used;
        if (size >= sizeof "…") {
            kept -= sizeof "…" - 1;
            assert_string_equal(buffer + kept, "…");
            /* no more than a character less than would fit */
            assert_true(kept + 4 + sizeof "…" > size);
        }
        assert_memory_equal(buffer, text, kept);
        pith__text_put(&out, "more");
        assert_int_equal(strlen(buffer), out.used);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(one_format),
        cmocka_unit_test(long_text_is_cut_and_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
