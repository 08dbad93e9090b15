/* docs/operators.md is what the tables of this build say, and nothing is in them that cannot be
 * used. With PITH_WRITE_DOCS in the environment the page is written instead of compared.
 *
 * Dtypes come from the descriptors. Which inner loops an operator takes is found by preparing it
 * for each dtype and watching what it asks of the kernel table: the linker gives pith__kernel_find
 * to this file (--wrap). */
#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "engine/kernels/kernel.h"
#include "engine/ops/shared/attrs.h"

#define PAGE PITH_SOURCE_DIR "/docs/operators.md"

/* ---- what an operator asks of the kernel table ---- */

typedef struct asked {
    uint32_t tuned, plain; /* dtypes of loops with a form for each level, and with one form */
} asked;

static asked *watcher;

pith__kernel_fn *__real_pith__kernel_find(const char *family, int dtype, pith__isa isa);
pith__kernel_fn *__wrap_pith__kernel_find(const char *family, int dtype, pith__isa isa);

pith__kernel_fn *__wrap_pith__kernel_find(const char *family, int dtype, pith__isa isa) {
    for (size_t i = 0; watcher && i < pith__kernel_table_count; i++) {
        const pith__kernel_row *row = &pith__kernel_table[i];
        if (row->dtype != dtype || strcmp(row->family, family)) continue;
        int levels = 0;
        for (int level = 0; level < PITH_ISA_COUNT; level++) levels += row->fn[level] != NULL;
        *(levels > 1 ? &watcher->tuned : &watcher->plain) |= 1u << dtype;
    }
    return __real_pith__kernel_find(family, dtype, isa);
}

/* Prepares the operator as if its first input had each of the dtypes it takes. */
static asked watch(const pith__op *op) {
    asked found = { 0, 0 };
    for (int dtype = 1; op->prepare && dtype < PITH_DTYPE_COUNT; dtype++) {
        if (!pith__op_takes(op, 0, dtype)) continue;
        pith__arena arena;
        pith_error err = PITH_ERROR_INIT;
        pith__graph *graph;
        pith__value *values[32];
        const pith__type *in[32] = { NULL };
        pith__type out[8];
        int inputs = op->max_inputs;
        if (inputs < 0 || inputs > 16) inputs = op->min_inputs > 2 ? op->min_inputs : 2;
        pith__arena_init(&arena, &pith__allocator_default);
        assert_int_equal(pith__graph_create(&graph, &arena, NULL, &err), PITH_OK);
        for (int i = 0; i < inputs; i++) {
            int own = dtype;
            while (!pith__op_takes(op, i, own)) own = own % (PITH_DTYPE_COUNT - 1) + 1;
            values[i] = pith__graph_add_value(graph, PITH_STR("x"), PITH_VALUE_INPUT);
            assert_non_null(values[i]);
            pith__type_set(&values[i]->type, own, 4, (pith__dim[]){ 2, 4, 8, 8 });
            in[i] = &values[i]->type;
        }
        for (int i = 0; i < 8; i++) pith__type_set(&out[i], dtype, 4, (pith__dim[]){ 2, 4, 8, 8 });
        pith__node *node =
            pith__graph_add_node(graph, NULL, op->domain, op->name, values, inputs, NULL, 1);
        assert_non_null(node);
        node->op = op;
        pith__prepare c = {
            .node = node, .in = in, .out = out, .in_count = inputs, .out_count = 1
        };
        c.isa = PITH_ISA_scalar;
        c.arena = &arena;
        c.err = &err;
        watcher = &found;
        if (inputs) op->prepare(&c); /* what it says does not matter: the attributes are missing */
        watcher = NULL;
        pith__arena_free(&arena);
    }
    return found;
}

/* ---- where an operator is defined ---- */

#define OPERATORS PITH_SOURCE_DIR "/src/engine/ops/"

/* Files that hold a family of operators. Every other file has the name of each operator that it
 * defines, in snake case. */
static const char *const families[] = {
    "onnx/op_arg_max.c",             /* ArgMin */
    "onnx/op_binary.c",              /* two operands, and Max, Mean, Min and Sum of any number */
    "onnx/op_cast.c",                /* CastLike */
    "onnx/op_conv.c",                /* all convolutions */
    "onnx/op_cum_sum.c",             /* CumProd */
    "onnx/op_depth_to_space.c",      /* SpaceToDepth */
    "onnx/op_gather.c",              /* Gather… */
    "onnx/op_group_normalization.c", /* InstanceNormalization: groups of one channel */
    "onnx/op_layer_normalization.c", /* RMSNormalization and its older name */
    "onnx/op_losses.c",
    "onnx/op_matmul.c",              /* FusedMatMul and its older name */
    "onnx/op_matmul_integer.c",      /* all matmuls of 8-bit matrices */
    "onnx/op_optional.c",            /* Optional… */
    "onnx/op_pad.c",                 /* CenterCropPad */
    "onnx/op_pool.c",                /* …Pool */
    "onnx/op_quantize_linear.c",     /* DequantizeLinear */
    "onnx/op_random.c",              /* random numbers */
    "onnx/op_recurrent.c",           /* RNN, GRU, LSTM */
    "onnx/op_reduce.c",              /* Reduce… */
    "onnx/op_scatter.c",             /* Scatter…, TensorScatter */
    "onnx/op_sequence.c",            /* sequences of tensors */
    "onnx/op_softmax.c",             /* LogSoftmax, Hardmax */
    "onnx/op_squeeze.c",             /* Unsqueeze */
    "onnx/op_string.c",              /* String… */
    "onnx/op_training_optimisers.c", /* Adagrad, Adam, Momentum */
    "onnx/op_transpose.c",           /* pith.MoveAxis */
    "onnx/op_unary.c",               /* one operand */
    "onnx/op_window_functions.c",    /* …Window */
    "ml/op_ml_label_encoder.c",      /* CategoryMapper */
    "ml/op_ml_linear_svm.c",         /* linear models, support vector machines */
    "ml/op_ml_map.c",                /* rows to maps, maps to rows */
    "ml/op_ml_preprocessing.c",      /* element- and column-wise */
    "ml/op_ml_tree_ensemble.c",      /* TreeEnsemble… */
    "microsoft/op_ms_attention.c",   /* …Attention */
    "microsoft/op_ms_causal_conv_with_state.c",
    "microsoft/op_ms_dynamic_quantize_lstm.c", /* pith.QuantizedLSTM, which it becomes */
    "microsoft/op_ms_fused.c",                 /* FusedConv, FusedGemm */
    "microsoft/op_ms_gates.c",
    "microsoft/op_ms_gelu.c", /* BiasGelu, FastGelu */
    "microsoft/op_ms_hyper_connection.c",
    "microsoft/op_ms_matmul_nbits.c", /* MatMulBnb4 */
    "microsoft/op_ms_moe.c",          /* QMoE */
    "microsoft/op_ms_nchwc.c",        /* the domain com.microsoft.nchwc */
    "microsoft/op_ms_ngram_hash_mapping.c",
    "microsoft/op_ms_padding.c",   /* RemovePadding, RestorePadding */
    "microsoft/op_ms_quantized.c", /* Q… */
    "microsoft/op_ms_same_as_standard.c",
    "microsoft/op_ms_skip_layer_normalization.c",
    "pith/op_pith_segment.c", /* along the sequences of packed texts */
};

/* The operators' files and texts, of which each is read once. */
typedef struct source {
    char path[300], *text;
} source;
static source sources[256];
static size_t source_count;

static char *text_of(const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    text[fread(text, 1, (size_t)size, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

static void read_sources(void) {
    static const char *const folders[] = { "microsoft", "ml", "onnx", "pith" };
    if (source_count) return;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, OPERATORS "%s", folders[i]);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        for (const struct dirent *entry; (entry = readdir(folder));) {
            if (strncmp(entry->d_name, "op_", 3)) continue;
            assert_true(source_count < sizeof sources / sizeof sources[0]);
            source *s = &sources[source_count++];
            snprintf(s->path, sizeof s->path, "%s/%s", folders[i], entry->d_name);
            snprintf(path, sizeof path, OPERATORS "%s", s->path);
            s->text = text_of(path);
        }
        closedir(folder);
    }
}

/* Whether a line of the text is a descriptor of this symbol, written out or by a macro. */
static bool defines(const char *text, const char *symbol) {
    size_t size = strlen(symbol);
    for (const char *at = text; (at = strstr(at, symbol)); at += size) {
        if (isalnum((unsigned char)at[size]) || at[size] == '_') continue;
        const char *line = at;
        while (line > text && line[-1] != '\n') line--;
        /* the first argument of a macro may stand on the next line */
        if (line < at && strspn(line, " ") == (size_t)(at - line) && line > text + 1)
            for (line--; line > text && line[-1] != '\n';) line--;
        static const char plain[] = "const pith__op pith__op_";
        if (!strncmp(line, plain, sizeof plain - 1) && line + sizeof plain - 1 == at) return true;
        const char *after = line + strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (after > line && *after == '(' && after + 1 + strspn(after + 1, " \n") == at)
            return true;
    }
    return false;
}

/* The symbols of ops.def, in the order of the operator table. */
static char **symbols(void) {
    static char **list;
    if (list) return list;
    char *text = text_of(PITH_SOURCE_DIR "/src/select/ops.def");
    list = calloc(pith__op_table_count, sizeof *list);
    assert_non_null(list);
    size_t count = 0;
    for (char *at = text; (at = strstr(at, "\nOP(")); count++) {
        assert_true(count < pith__op_table_count);
        list[count] = at + 4;
        at = strchr(at, ')');
        *at++ = '\0';
    }
    assert_int_equal(count, pith__op_table_count);
    return list;
}

static const char *file_of(const pith__op *op) {
    size_t i = 0;
    read_sources();
    while (pith__op_table[i] != op) i++;
    for (size_t k = 0; k < source_count; k++)
        if (defines(sources[k].text, symbols()[i])) return sources[k].path;
    fail_msg("%s is in no file below src/engine/ops", symbols()[i]);
    return NULL;
}

/* Whether a file's name is the operator's, but for capitals and underscores. */
static bool has_name(const char *path, const char *name) {
    const char *at = strrchr(path, '/') + 1 + strlen("op_");
    static const char *const prefixes[] = { "ml_", "ms_", "pith_" };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t size = strlen(prefixes[i]);
        if (!strncmp(at, prefixes[i], size)) at += size;
    }
    for (; *at && *at != '.'; at++) {
        if (*at == '_') continue;
        if (tolower((unsigned char)*name) != *at) return false;
        name++;
    }
    return !*name;
}

static void operators_stand_in_their_files(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__op_table_count; i++) {
        const char *file = file_of(pith__op_table[i]);
        bool found = has_name(file, pith__op_table[i]->name);
        for (size_t k = 0; k < sizeof families / sizeof families[0]; k++)
            found |= !strcmp(file, families[k]);
        if (!found)
            fail_msg("%s is in %s: give it a file of its name, or name that file a family here",
                     pith__op_table[i]->name, file);
    }
}

/* ---- the page ---- */

typedef struct page {
    char *text;
    size_t size;
} page;

static void put(page *p, const char *format, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    assert_true(n >= 0 && (size_t)n < sizeof line);
    p->text = realloc(p->text, p->size + (size_t)n + 1);
    assert_non_null(p->text);
    memcpy(p->text + p->size, line, (size_t)n + 1);
    p->size += (size_t)n;
}

static void put_dtypes(page *p, uint32_t dtypes) {
    const char *comma = "";
    for (int i = 0; i < PITH_DTYPE_COUNT; i++) {
        if (!(dtypes >> i & 1)) continue;
        put(p, "%s%s", comma, pith__dtype_name(i));
        comma = ", ";
    }
}

static void put_allowed(page *p, const pith__attr_rule *rule) {
    const char *comma = " (", *bar, *at = rule->allowed.data;
    const char *end = at ? at + rule->allowed.size : NULL;
    for (; at && at <= end; at = bar + 1) {
        bar = memchr(at, '|', (size_t)(end - at));
        if (!bar) bar = end;
        put(p, "%s%.*s", comma, bar > at ? (int)(bar - at) : 2, bar > at ? at : "''");
        comma = ", ";
    }
    if (rule->allowed.size) put(p, ")");
    if (rule->allowed.size || !rule->ranged) return;
    if (rule->high == INT32_MAX)
        put(p, " (%" PRId64 " or more)", rule->low);
    else
        put(p, " (%" PRId64 " to %" PRId64 ")", rule->low, rule->high);
}

static void put_attributes(page *p, const pith__op *op) {
    const char *text = op->attrs, *between = "";
    for (pith__attr_rule rule; pith__attr_rule_next(&text, &rule);) {
        if (rule.own) continue;
        put(p, "%s`" PITH_STR_FMT "` %s", between, PITH_STR_ARG(rule.name),
            pith__attr_kind_name(rule.kind));
        put_allowed(p, &rule);
        if (rule.required) put(p, ", required");
        if (rule.fallback.size) put(p, " = " PITH_STR_FMT, PITH_STR_ARG(rule.fallback));
        if (rule.since && rule.until < INT32_MAX)
            put(p, ", opsets %" PRId32 " to %" PRId32, rule.since, rule.until);
        else if (rule.since)
            put(p, ", from opset %" PRId32, rule.since);
        else if (rule.until < INT32_MAX)
            put(p, ", up to opset %" PRId32, rule.until);
        between = "; ";
    }
}

static void put_operator(page *p, const pith__op *op) {
    bool composed = op->since == INT32_MAX;
    put(p, "| %s | `%s` | ", op->name, file_of(op));
    if (composed)
        put(p, "written out | ");
    else
        put(p, "%d | ", op->since);
    put(p, "%d | ", op->newest);
    if (op->max_inputs < 0)
        put(p, "%d or more | ", op->min_inputs);
    else if (op->max_inputs != op->min_inputs)
        put(p, "%d to %d | ", op->min_inputs, op->max_inputs);
    else
        put(p, "%d | ", op->min_inputs);
    const char *last = NULL;
    for (int i = 0; !composed && op->types && i < (int)strlen(op->types); i++) {
        const char *text = pith__op_types_text(op, i);
        if (!last || strcmp(last, text)) put(p, "%s%s", last ? "; " : "", text);
        last = text;
    }
    put(p, " | ");
    asked found = composed ? (asked){ 0, 0 } : watch(op);
    put_dtypes(p, found.tuned);
    put(p, " | ");
    put_attributes(p, op);
    put(p, " | %s |\n", op->note ? op->note : "");
}

static int by_name(const void *a, const void *b) {
    const pith__op *x = *(const pith__op *const *)a, *y = *(const pith__op *const *)b;
    return strcmp(x->name, y->name);
}

static void put_operators(page *p, const char *domain, const char *title) {
    size_t count = 0;
    const pith__op **ops = malloc(pith__op_table_count * sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < pith__op_table_count; i++) {
        if (!strcmp(pith__op_table[i]->domain, domain)) ops[count++] = pith__op_table[i];
    }
    qsort(ops, count, sizeof *ops, by_name);
    put(p,
        "\n## %s\n\n| operator | file | form of opset | follows version | inputs | dtypes | tuned "
        "for "
        "each instruction set | "
        "attributes | notes |\n",
        title);
    put(p, "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) put_operator(p, ops[i]);
    free(ops);
}

static void put_kernels(page *p) {
    put(p, "\n## Inner loops\n\n| family | tuned for each instruction set | one form for all "
           "|\n|---|---|---|\n");
    for (size_t i = 0; i < pith__kernel_table_count;) {
        const char *family = pith__kernel_table[i].family;
        uint32_t tuned = 0, plain = 0;
        for (; i < pith__kernel_table_count && !strcmp(pith__kernel_table[i].family, family); i++) {
            int levels = 0;
            for (int level = 0; level < PITH_ISA_COUNT; level++)
                levels += pith__kernel_table[i].fn[level] != NULL;
            *(levels > 1 ? &tuned : &plain) |= 1u << pith__kernel_table[i].dtype;
        }
        put(p, "| %s | ", family);
        put_dtypes(p, tuned);
        put(p, " | ");
        put_dtypes(p, plain);
        put(p, " |\n");
    }
}

static page make_page(void) {
    page p = { NULL, 0 };
    put(&p, "# Operators\n"
            "\n"
            "Look up here whether Pith runs an ONNX operator, in which opsets and with which "
            "types. `make docs` makes this page from the tables\n"
            "of the build.\n"
            "\n"
            "- **Files** are below `src/engine/ops`. An operator is in the file of its name, or "
            "in one of its family.\n"
            "- **Opsets.** Every opset from 1 on is accepted: older ones are upgraded at load to "
            "the form named here. An "
            "operator follows the\n"
            "  standard up to the version named here. An opset that may have a later version of it "
            "is refused by name.\n"
            "- **Dtypes** are those of the inputs in their order; the last ones hold for all that "
            "follow. A dtype that is "
            "not listed is refused\n"
            "  by name. An operator that is written out becomes other operators at load and has "
            "their dtypes.\n"
            "- **Attributes** have a type, allowed values, a default, and opsets if they are not "
            "in all of them. An "
            "attribute that is not listed\n"
            "  for the opset of the node, or a value of another type or range, is an error that "
            "names both. If the "
            "attribute belongs to another\n"
            "  opset and has its default value, a warning says that it is ignored. An integer "
            "without a range has 32 bits, "
            "unless it is a label or\n"
            "  a position (64 bits).\n"
            "- **Tuned** loops have a form for each instruction set (scalar, AVX2, AVX-512, NEON), "
            "all with the same bits. "
            "float16 and bfloat16\n"
            "  are computed in float32.\n"
            "- The domain **`pith`** holds the operators that fusion makes. It does not occur in "
            "files.\n"
            "\n"
            "numbers: floats and integers of 8 to 64 bits. floats: float16, bfloat16, float32, "
            "float64. f8: the four kinds "
            "with 4 or 5 exponent\n"
            "bits.\n");
    put_operators(&p, "", "ai.onnx");
    put_operators(&p, "ai.onnx.ml", "ai.onnx.ml");
    put_operators(&p, "ai.onnx.preview", "ai.onnx.preview");
    put_operators(&p, "ai.onnx.preview.training", "ai.onnx.preview.training");
    put_operators(&p, "com.microsoft", "com.microsoft");
    put_operators(&p, "com.microsoft.nchwc", "com.microsoft.nchwc");
    put_operators(&p, "pith", "pith");
    put_kernels(&p);
    return p;
}

static void page_is_current(void **state) {
    (void)state;
    page p = make_page();
    bool write = getenv("PITH_WRITE_DOCS") != NULL;
    FILE *file = fopen(PAGE, write ? "w" : "r");
    assert_non_null(file);
    if (write) {
        assert_true(fputs(p.text, file) >= 0);
    } else {
        char *stored = malloc(p.size + 2);
        assert_non_null(stored);
        stored[fread(stored, 1, p.size + 1, file)] = '\0';
        if (strcmp(stored, p.text))
            fail_msg("docs/operators.md is not what the tables say: make docs");
        free(stored);
    }
    assert_int_equal(fclose(file), 0);
    free(p.text);
}

/* Every letter is one that operator_dtypes.c knows: something is taken by each input. */
static void every_dtype_letter_is_known(void **state) {
    (void)state;
    for (size_t i = 0; i < pith__op_table_count; i++) {
        const pith__op *op = pith__op_table[i];
        for (int input = 0; op->types && input < (int)strlen(op->types); input++) {
            bool any = false;
            for (int dtype = 1; dtype < PITH_DTYPE_COUNT; dtype++)
                any |= pith__op_takes(op, input, dtype);
            if (!any) fail_msg("%s: input %d takes nothing", op->name, input);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(page_is_current),
                                        cmocka_unit_test(operators_stand_in_their_files),
                                        cmocka_unit_test(every_dtype_letter_is_known) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
