/* test_operators_doc.c - docs/operators.md is what the tables of this build say. With PITH_WRITE_DOCS set in the
 * environment the page is written instead of compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernel.h"
#include "ops/op.h"

#define PAGE PITH_SOURCE_DIR "/docs/operators.md"

static void put(char **text, size_t *size, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    assert_true(n >= 0 && (size_t)n < sizeof line);
    *text = realloc(*text, *size + (size_t)n + 1);
    assert_non_null(*text);
    memcpy(*text + *size, line, (size_t)n + 1);
    *size += (size_t)n;
}

static int by_name(const void *a, const void *b) {
    const pith_op *x = *(const pith_op *const *)a, *y = *(const pith_op *const *)b;
    return strcmp(x->name, y->name);
}

static void put_operators(char **text, size_t *size, const char *domain, const char *title) {
    size_t count = 0;
    const pith_op **ops = malloc(pith_op_table_count * sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < pith_op_table_count; i++) {
        if (!strcmp(pith_op_table[i]->domain, domain)) ops[count++] = pith_op_table[i];
    }
    qsort(ops, count, sizeof *ops, by_name);
    put(text, size, "\n## %s: %zu operators\n\n| operator | form of opset | note |\n|---|---|---|\n", title, count);
    for (size_t i = 0; i < count; i++) {
        const pith_op *op = ops[i];
        bool rewritten = op->since == INT32_MAX;
        put(text, size, "| %s | ", op->name);
        if (rewritten)
            put(text, size, "written out | ");
        else
            put(text, size, "%d | ", op->since);
        put(text, size, "%s |\n", op->note ? op->note : "");
    }
    free(ops);
}

static void put_kernels(char **text, size_t *size) {
    put(text, size, "\n## Inner loops: %zu\n\n| family | tuned for every level | plain C |\n|---|---|---|\n",
        pith_kernel_table_count);
    for (size_t i = 0; i < pith_kernel_table_count;) {
        const char *family = pith_kernel_table[i].family;
        char types[2][512] = { "", "" };
        for (; i < pith_kernel_table_count && !strcmp(pith_kernel_table[i].family, family); i++) {
            int levels = 0;
            for (int level = 0; level < PITH_ISA_COUNT; level++) levels += pith_kernel_table[i].fn[level] != NULL;
            char *own = types[levels > 1 ? 0 : 1];
            if (*own) strcat(own, ", ");
            strcat(own, pith_dtype_name(pith_kernel_table[i].dtype));
        }
        put(text, size, "| %s | %s | %s |\n", family, types[0], types[1]);
    }
}

static char *make_page(void) {
    char *text = NULL;
    size_t size = 0;
    put(&text, &size,
        "# Operators\n\n"
        "What this build runs; the page is written from its tables (`PITH_WRITE_DOCS=1 test_operators_doc`).\n\n"
        "Every opset is brought to one form when a model is opened; the second column is the first opset of that "
        "form,\n"
        "older spellings are upgraded. Operators that are written out become plain ones at load. Element types are "
        "those\n"
        "for which the operator's inner loop exists, see the last table; float16 and bfloat16 are computed in "
        "float32,\n"
        "and operators that only move elements take every type of whole bytes.\n");
    put_operators(&text, &size, "", "ai.onnx");
    put_operators(&text, &size, "ai.onnx.ml", "ai.onnx.ml");
    put_operators(&text, &size, "ai.onnx.preview", "ai.onnx.preview");
    put_operators(&text, &size, "ai.onnx.preview.training", "ai.onnx.preview.training");
    put_operators(&text, &size, "com.microsoft", "com.microsoft");
    put_operators(&text, &size, "pith", "pith, made by fusion");
    put_kernels(&text, &size);
    return text;
}

static void page_is_current(void **state) {
    (void)state;
    char *page = make_page();
    FILE *file = fopen(PAGE, getenv("PITH_WRITE_DOCS") ? "w" : "r");
    assert_non_null(file);
    if (getenv("PITH_WRITE_DOCS")) {
        assert_true(fputs(page, file) >= 0);
        assert_int_equal(fclose(file), 0);
        free(page);
        return;
    }
    size_t size = strlen(page);
    char *stored = malloc(size + 2);
    assert_non_null(stored);
    size_t got = fread(stored, 1, size + 1, file);
    stored[got] = '\0';
    fclose(file);
    assert_string_equal(stored, page);
    free(stored);
    free(page);
}

static void tables_are_sorted(void **state) {
    (void)state;
    for (size_t i = 1; i < pith_kernel_table_count; i++) {
        const pith_kernel_row *a = &pith_kernel_table[i - 1], *b = &pith_kernel_table[i];
        int order = strcmp(a->family, b->family);
        assert_true(order < 0 || (order == 0 && a->dtype < b->dtype));
        assert_ptr_equal(pith_kernel_find(b->family, b->dtype, PITH_ISA_scalar), b->fn[PITH_ISA_scalar]);
    }
}

static void every_operator_is_complete(void **state) {
    (void)state;
    for (size_t i = 0; i < pith_op_table_count; i++) {
        const pith_op *op = pith_op_table[i];
        assert_non_null(op->infer);
        assert_true(op->run || op->flags & PITH_OP_VIEW || op->since == INT32_MAX);
        assert_true(op->max_inputs < 0 || op->min_inputs <= op->max_inputs);
        assert_ptr_equal(pith_op_find(pith_str_of(op->domain), pith_str_of(op->name)), op);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_is_current),
        cmocka_unit_test(tables_are_sorted),
        cmocka_unit_test(every_operator_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
