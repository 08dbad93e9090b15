/* operators.c - prints docs/operators.md from the tables of this build (`make docs`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "ops/op.h"

static int by_domain(const void *a, const void *b) {
    const pith_op *x = *(const pith_op *const *)a, *y = *(const pith_op *const *)b;
    int domains = strcmp(x->domain, y->domain);
    return domains ? domains : strcmp(x->name, y->name);
}

static void count_text(int least, int most, char *buffer, size_t size) {
    if (most < 0) snprintf(buffer, size, "%d or more", least);
    else if (most == least) snprintf(buffer, size, "%d", least);
    else snprintf(buffer, size, "%d to %d", least, most);
}

static void print_operators(void) {
    const pith_op **ops = malloc((pith_op_table_count + 1) * sizeof *ops);
    if (!ops) exit(1);
    memcpy(ops, pith_op_table, pith_op_table_count * sizeof *ops);
    qsort(ops, pith_op_table_count, sizeof *ops, by_domain);
    const char *domain = NULL;
    for (size_t i = 0; i < pith_op_table_count; i++) {
        const pith_op *op = ops[i];
        if (!domain || strcmp(domain, op->domain) != 0) {
            domain = op->domain;
            printf("\n## %s\n\n| operator | form of opset | inputs | notes |\n|---|---|---|---|\n", *domain ? domain : "ai.onnx");
        }
        char inputs[32], since[32];
        count_text(op->min_inputs, op->max_inputs, inputs, sizeof inputs);
        snprintf(since, sizeof since, op->since == INT32_MAX ? "-" : "%d", op->since);
        printf("| %s | %s | %s | %s |\n", op->name, since, inputs, op->note ? op->note : "");
    }
    free(ops);
}

static void print_kernels(void) {
    printf("\n## Kernels\n\nInner loops by family and dtype, with the instruction set levels they are built for. Other element types are\n"
           "converted in blocks, or moved as bytes.\n\n| family | dtypes | levels |\n|---|---|---|\n");
    for (size_t i = 0; i < pith_kernel_table_count;) {
        const pith_kernel_row *first = &pith_kernel_table[i];
        printf("| %s |", first->family);
        for (; i < pith_kernel_table_count && strcmp(pith_kernel_table[i].family, first->family) == 0; i++)
            printf(" %s", pith_dtype_name(pith_kernel_table[i].dtype));
        printf(" |");
        for (int level = 0; level < PITH_ISA_COUNT; level++)
            if (first->fn[level]) printf(" %s", pith_isa_name((pith_isa)level));
        printf(" |\n");
    }
}

int main(void) {
    printf("# Operators\n\nMade from the tables of the build by `make docs`. Older opsets are brought to the form named here at load, so every\n"
           "opset from 1 on is accepted. The domain `pith` holds what fusion makes; it does not occur in files.\n");
    print_operators();
    print_kernels();
    return 0;
}
