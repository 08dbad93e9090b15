/* bench_kernels.c - every inner loop at real shapes, as a fraction of what the core can do at that
 * moment.
 *
 * The machine may be shared, so CPU time is taken, each timing of a kernel stands between two of a
 * loop that only multiplies and adds in registers (same level, same core) and one that only reads
 * as many bytes as the kernel's operands take, and what counts is the median of the ratios: "of
 * peak" of the first loop's rate, "of reading" of the second's. A kernel that reaches one of them
 * is at the machine's limit. Usage: bench_kernels [filter [level]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/seconds.h"
#include "cli/measure/cpu_peak.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/gemm_half.h"
#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/unary.h"

enum { ROUNDS = 15 };

static const char *filter = "";

static double now(void) { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static volatile uint64_t sink;

/* Seconds that one reading of the bytes takes, from memory of their own. */
static double reading(double bytes) {
    enum { LINE = 8, AHEAD = 64 }; /* words of a cache line; lines */
    static uint64_t *memory;
    static const size_t most = (size_t)64 << 20;
    if (!memory && (memory = aligned_alloc(64, most + 64 * AHEAD))) memset(memory, 1, most);
    if (!memory) exit(1);
    size_t lines = bytes < (double)most ? (size_t)bytes / 64 + 1 : most / 64,
           repeat = ((size_t)1 << 14) / lines + 1;
    double start = now();
    for (size_t r = 0; r < repeat; r++) {
        uint64_t sum[LINE] = { 0 };
        for (size_t i = 0; i < lines; i++) {
            __builtin_prefetch(memory + (i + AHEAD) * LINE);
            for (size_t w = 0; w < LINE; w++) sum[w] += memory[i * LINE + w];
        }
        for (size_t w = 0; w < LINE; w++) sink += sum[w];
    }
    return (now() - start) / (double)repeat * bytes / ((double)lines * 64);
}

static double median(double *x) {
    qsort(x, ROUNDS, sizeof *x, ascending);
    return x[ROUNDS / 2];
}

/* Operations a second of the loop that only multiplies and adds. Its first turns go untimed: a core
 * that only read for a while takes some microseconds to run wide registers at their speed. */
static double peak(pith__isa isa) {
    cpu_peak_burst *burst = cpu_peak_burst_of(pith__isa_name(isa));
    double work = 0, start = now(), end;
    while (now() - start < 1e-4) burst();
    start = now();
    do {
        work += burst();
        end = now();
    } while (end - start < 5e-4);
    return work / (end - start);
}

/* Calls run(arguments) often enough for about 2 ms a timing, interleaved with the two loops. */
static void measure(const char *name, pith__isa isa, void (*run)(const void *),
                    const void *arguments, double flop, double bytes) {
    double share[ROUNDS], memory[ROUNDS], seconds[ROUNDS], start;
    char text[80];
    snprintf(text, sizeof text, "%s %s", pith__isa_name(isa), name);
    if (!strstr(text, filter)) return;
    peak(isa); /* the clock settles for this level's registers */
    start = now();
    run(arguments);
    double once = now() - start;
    int calls = once < 2e-3 ? (int)(2e-3 / (once + 1e-9)) + 1 : 1;
    for (int r = 0; r < ROUNDS; r++) {
        double read = reading(bytes), before = peak(isa), began = now();
        for (int i = 0; i < calls; i++) run(arguments);
        seconds[r] = (now() - began) / calls;
        share[r] = flop / seconds[r] / ((before + peak(isa)) / 2);
        memory[r] = read / seconds[r];
    }
    double per_call = median(seconds), of_peak = median(share);
    printf("%-44s %10.1f us %8.2f GFLOP/s %7.2f GB/s", text, per_call * 1e6, flop / per_call * 1e-9,
           bytes / per_call * 1e-9);
    printf("   %5.1f %% of peak (%.1f to %.1f), %5.1f %% of reading\n", 100 * of_peak,
           100 * share[1], 100 * share[ROUNDS - 2], 100 * median(memory));
    fflush(stdout);
}

static float *numbers(size_t n) {
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    if (!x) exit(1);
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return x;
}

typedef struct gemm_case {
    pith__gemm_f32_fn *fn;
    pith__gemm g;
} gemm_case;
static void run_gemm(const void *arguments) {
    const gemm_case *c = arguments;
    c->fn(&c->g, 0, c->g.m, 0, c->g.n);
}

/* The products of a network of MiniLM's shape, one after the other: no weight is in a near cache
 * when its turn comes. */
enum { LAYERS = 6, PRODUCTS = 4 };
static void run_network(const void *arguments) {
    const gemm_case *c = arguments;
    for (int i = 0; i < LAYERS * PRODUCTS; i++) run_gemm(&c[i]);
}

static void bench_network(pith__isa isa) {
    static const int64_t rows[] = { 1, 7, 12, 32, 112, 128, 256, 512 };
    static const int64_t shapes[PRODUCTS][2] = {
        { 384, 1152 }, { 384, 384 }, { 384, 1536 }, { 1536, 384 }
    };
    enum { FLOATS = 384 * (1152 + 384 + 1536 + 1536) };
    gemm_case c[LAYERS * PRODUCTS];
    float *x = numbers(512 * 384), *wide = numbers(512 * 1536), *bias = numbers(1536);
    float *weights = numbers((size_t)LAYERS * FLOATS), *w = weights;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        w = weights;
        for (int i = 0; i < LAYERS * PRODUCTS; i++) {
            int64_t k = shapes[i % PRODUCTS][0], n = shapes[i % PRODUCTS][1];
            bool narrow = n == 384;
            c[i].fn = PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, isa);
            c[i].g = (pith__gemm){ .a = narrow ? wide : x,
                                   .b = w,
                                   .c = narrow ? x : wide,
                                   .bias = bias,
                                   .m = rows[r],
                                   .n = n,
                                   .k = k,
                                   .lda = k,
                                   .ldc = n };
            w += k * n;
        }
        char name[64];
        snprintf(name, sizeof name, "gemm network m=%d", (int)rows[r]);
        measure(name, isa, run_network, c, 2.0 * (double)rows[r] * LAYERS * FLOATS,
                4.0 * LAYERS * FLOATS);
    }
    free(x), free(wide), free(bias), free(weights);
}

/* The feed-forward half of the same network on 512 rows, `block` of them through both products at a
 * time: a small block's [block, 1536] between the products stays in L2, a large one's weights are
 * read less often. */
typedef struct feed_forward {
    gemm_case up[LAYERS], down[LAYERS];
    int64_t rows, block;
} feed_forward;

static void run_feed_forward(const void *arguments) {
    const feed_forward *f = arguments;
    for (int i = 0; i < LAYERS; i++) {
        for (int64_t row = 0; row < f->rows; row += f->block) {
            pith__gemm up = f->up[i].g, down = f->down[i].g;
            up.a += row * up.lda;
            down.c += row * down.ldc;
            f->up[i].fn(&up, 0, f->block, 0, up.n);
            f->down[i].fn(&down, 0, f->block, 0, down.n);
        }
    }
}

static void bench_feed_forward(pith__isa isa) {
    enum { M = 512, D = 384, N = 1536 };
    feed_forward f = { .rows = M };
    float *x = numbers(M * D), *wide = numbers(M * N), *bias = numbers(N),
          *weights = numbers((size_t)LAYERS * 2 * D * N);
    for (int i = 0; i < LAYERS; i++) {
        float *w = weights + (size_t)i * 2 * D * N;
        pith__gemm_f32_fn *fn = PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, isa);
        f.up[i] = f.down[i] = (gemm_case){ .fn = fn };
        f.up[i].g = (pith__gemm){
            .a = x, .b = w, .c = wide, .bias = bias, .n = N, .k = D, .lda = D, .ldc = N
        };
        f.up[i].g.activation = PITH_ACT_GELU_ERF;
        f.down[i].g =
            (pith__gemm){ .a = wide, .b = w + D * N, .c = x, .bias = bias, .n = D, .k = N };
        f.down[i].g.lda = N, f.down[i].g.ldc = D;
    }
    for (f.block = 32; f.block <= M; f.block *= 2) {
        char name[64];
        for (int i = 0; i < LAYERS; i++) f.up[i].g.m = f.down[i].g.m = f.block;
        snprintf(name, sizeof name, "feed-forward m=512 by %d", (int)f.block);
        measure(name, isa, run_feed_forward, &f, 4.0 * LAYERS * M * D * N, 8.0 * LAYERS * D * N);
    }
    free(x), free(wide), free(bias), free(weights);
}

static void bench_gemm(pith__isa isa) {
    static const int64_t rows[] = { 512, 112, 12, 1 };
    static const int64_t shapes[][2] = {
        { 384, 384 }, { 384, 1152 }, { 384, 1536 }, { 1536, 384 }
    };
    pith__gemm_pack_f32_fn *pack =
        PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, isa);
    gemm_case c = { .fn = PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, isa) };
    float *a = numbers(512 * 1536), *b = numbers(1536 * 1536), *out = numbers(512 * 1536),
          *bias = numbers(1536);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            char name[64];
            int64_t m = rows[r], k = shapes[s][0], n = shapes[s][1];
            float *packed = numbers((size_t)pith__gemm_f32_packed_size(k, n));
            pack(packed, b, n, 1, k, n, 0, n);
            c.g = (pith__gemm){ .a = a,
                                .b = packed,
                                .c = out,
                                .bias = bias,
                                .m = m,
                                .n = n,
                                .k = k,
                                .lda = k,
                                .ldc = n };
            snprintf(name, sizeof name, "gemm m=%d k=%d n=%d", (int)m, (int)k, (int)n);
            double bytes = 4.0 * (double)(m * k + k * n + m * n);
            measure(name, isa, run_gemm, &c, 2.0 * (double)(m * n * k), bytes);
            if (n == 1536) {
                c.g.activation = PITH_ACT_GELU_ERF;
                snprintf(name, sizeof name, "gemm+gelu m=%d k=%d n=%d", (int)m, (int)k, (int)n);
                measure(name, isa, run_gemm, &c, 2.0 * (double)(m * n * k), bytes);
            }
            free(packed);
        }
    }
    free(a), free(b), free(out), free(bias);
}

typedef struct unary_case {
    pith__unary_f32_fn *fn;
    float *x, *y;
    size_t n;
} unary_case;
static void run_unary(const void *arguments) {
    const unary_case *c = arguments;
    c->fn(c->x, c->y, c->n);
}

static void bench_unary(pith__isa isa) {
    static const char *const names[] = { "abs",       "cos",  "erf",        "exp",        "gelu",
                                         "gelu_tanh", "log",  "quick_gelu", "reciprocal", "relu",
                                         "sigmoid",   "silu", "sin",        "sqrt",       "tanh" };
    enum { N = 4096 };
    unary_case c = { NULL, numbers(N), numbers(N), N };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        c.fn = PITH_KERNEL_FIND(pith__unary_f32_fn, names[i], PITH_F32, isa);
        snprintf(name, sizeof name, "%s n=%d (1 FLOP each)", names[i], N);
        measure(name, isa, run_unary, &c, N, 8.0 * N);
    }
    free(c.x), free(c.y);
}

/* Rows, and k and n, of the products in 8 and 16 bits. */
static const int64_t small_rows[] = { 112, 12 };
static const int64_t small_shapes[][2] = { { 384, 1536 }, { 1536, 384 } };

typedef struct int8_case {
    pith__gemm_i8_fn *fn;
    pith__gemm_int8 g;
} int8_case;
static void run_int8(const void *arguments) {
    const int8_case *c = arguments;
    c->fn(&c->g, 0, c->g.m, 0, c->g.n);
}

/* Two operations a product, so the fraction is of the f32 peak: what int8 gains over the best f32.
 */
static void bench_int8(pith__isa isa) {
    uint8_t *a = calloc(512, 1536);
    int8_t *b = calloc(1536, 1536);
    float *scale = numbers(1536), *out = numbers(512 * 1536);
    if (!a || !b) exit(1);
    for (size_t i = 0; i < 1536 * 1536; i++)
        b[i] = (int8_t)(i % 127 - 63), a[i % (512 * 1536)] = (uint8_t)i;
    for (size_t r = 0; r < 2; r++) {
        for (size_t s = 0; s < 2; s++) {
            for (int way = 0; way < 3; way++) {
                static const char *const names[] = { "best", "narrow", "wide" };
                int64_t m = small_rows[r], k = small_shapes[s][0], n = small_shapes[s][1];
                void *packed = numbers((size_t)pith__gemm_int8_packed_size(k, n) / 4);
                char name[64];
                PITH_KERNEL_FIND(pith__gemm_pack_i8_fn, "gemm_pack", PITH_I8, isa)
                (packed, b, n, 1, k, n, 0, n);
                int8_case c = { way ? PITH_KERNEL_FIND(pith__gemm_i8_fn, "gemm", PITH_I8, isa)
                                    : pith__gemm_i8_find(NULL, k, isa),
                                { .a = a,
                                  .b = packed,
                                  .out = out,
                                  .a_scale = scale,
                                  .b_scale = scale,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .lda = k,
                                  .ldc = n,
                                  .narrow = way == 1 } };
                snprintf(name, sizeof name, "gemm i8 %s m=%d k=%d n=%d", names[way], (int)m, (int)k,
                         (int)n);
                measure(name, isa, run_int8, &c, 2.0 * (double)(m * n * k),
                        (double)(m * k + k * n + 4 * m * n));
                free(packed);
            }
        }
    }
    free(a), free(b), free(scale), free(out);
}

typedef struct half_case {
    pith__gemm_half_fn *fn;
    pith__gemm_half g;
} half_case;
static void run_half(const void *arguments) {
    const half_case *c = arguments;
    c->fn(&c->g, 0, c->g.m, 0, c->g.n);
}

/* The product of the precision bf16, with zeros; the fraction is of the f32 peak. */
static void bench_bf16(pith__isa isa) {
    for (size_t r = 0; r < 2; r++) {
        for (size_t s = 0; s < 2; s++) {
            int64_t m = small_rows[r], k = small_shapes[s][0], n = small_shapes[s][1];
            float *a = calloc((size_t)(m * k), sizeof *a), *c = numbers((size_t)(m * n));
            void *b = calloc(1, (size_t)pith__gemm_half_packed_size(k, n));
            int wide;
            half_case bf16 = {
                PITH_KERNEL_FIND(pith__gemm_half_fn, pith__gemm_bf16_family(&wide, isa), PITH_BF16,
                                 isa),
                { .a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .lda = k, .ldc = n }
            };
            if (!a || !b) exit(1);
            char name[64];
            snprintf(name, sizeof name, "gemm bf16 m=%d k=%d n=%d", (int)m, (int)k, (int)n);
            measure(name, isa, run_half, &bf16, 2.0 * (double)(m * n * k),
                    (double)(2 * m * k + 2 * k * n + 4 * m * n));
            free(a), free(b), free(c);
        }
    }
}

typedef struct attention_case {
    pith__attention_f32_fn *fn;
    pith__attention a;
    float *scratch;
} attention_case;
static void run_attention(const void *arguments) {
    const attention_case *c = arguments;
    c->fn(&c->a, c->scratch);
}

/* One head of MiniLM's shape inside a [tokens, 3 * 384] product. */
static void bench_attention(pith__isa isa, pith__attention_f32_fn *fn, const char *what) {
    static const int64_t tokens[] = { 10, 112, 512, 8192 };
    enum { D = 32, ROW = 1152 };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        int64_t n = tokens[i];
        float *qkv = numbers((size_t)(n * ROW)), *out = numbers((size_t)(n * 384));
        char name[64];
        attention_case c = { fn,
                             { .q = qkv,
                               .k = qkv + 384,
                               .v = qkv + 768,
                               .o = out,
                               .q_stride = ROW,
                               .k_stride = ROW,
                               .v_stride = ROW,
                               .o_stride = 384,
                               .queries = n,
                               .keys = n,
                               .d = D,
                               .dv = D,
                               .scale = 0.17f,
                               .causal_offset = INT64_MAX,
                               .window_left = -1,
                               .window_right = -1 },
                             numbers((size_t)pith__attention_f32_scratch(n, D, D)) };
        snprintf(name, sizeof name, "%s tokens=%d d=%d", what, (int)n, D);
        measure(name, isa, run_attention, &c, 4.0 * (double)(n * n * D), 16.0 * (double)(n * D));
        free(qkv), free(out), free(c.scratch);
    }
}

typedef struct norm_case {
    pith__layer_norm_f32_fn *norm;
    pith__layer_norm a;
    pith__row_f32_fn *row;
} norm_case;
static void run_norm(const void *arguments) {
    const norm_case *c = arguments;
    if (c->norm)
        c->norm(&c->a);
    else
        c->row(c->a.x, c->a.y, c->a.rows, c->a.n);
}

static void bench_rows(pith__isa isa) {
    enum { ROWS = 112, N = 384 };
    float *x = numbers(ROWS * N), *r = numbers(ROWS * N), *y = numbers(ROWS * N), *g = numbers(N);
    norm_case c = { PITH_KERNEL_FIND(pith__layer_norm_f32_fn, "layer_norm", PITH_F32, isa),
                    { .x = x,
                      .residual = r,
                      .gamma = g,
                      .beta = g,
                      .y = y,
                      .rows = ROWS,
                      .n = N,
                      .epsilon = 1e-12f },
                    NULL };
    measure("layer_norm + residual 112 x 384", isa, run_norm, &c, ROWS * N, 12.0 * ROWS * N);
    c.norm = NULL;
    c.row = PITH_KERNEL_FIND(pith__row_f32_fn, "softmax", PITH_F32, isa);
    measure("softmax 112 x 384", isa, run_norm, &c, ROWS * N, 8.0 * ROWS * N);
    c.row = PITH_KERNEL_FIND(pith__row_f32_fn, "l2_normalize", PITH_F32, isa);
    measure("l2_normalize 112 x 384", isa, run_norm, &c, ROWS * N, 8.0 * ROWS * N);
    free(x), free(r), free(y), free(g);
}

typedef struct pack_case {
    pith__gemm_pack_f32_fn *fn;
    float *packed, *b;
    int64_t row, column, k, n;
} pack_case;
static void run_pack(const void *arguments) {
    const pack_case *c = arguments;
    c->fn(c->packed, c->b, c->row, c->column, c->k, c->n, 0, c->n);
}

static void bench_pack(pith__isa isa) {
    enum { K = 384, N = 1536 };
    pack_case c = { PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, isa),
                    numbers(K * N),
                    numbers(K * N),
                    N,
                    1,
                    K,
                    N };
    measure("gemm_pack [k, n] 384 x 1536", isa, run_pack, &c, K * N, 8.0 * K * N);
    c.row = 1, c.column = K;
    measure("gemm_pack [n, k] 384 x 1536", isa, run_pack, &c, K * N, 8.0 * K * N);
    free(c.packed), free(c.b);
}

int main(int argc, char **argv) {
    const pith__cpu *cpu = pith__cpu_get();
    if (argc > 1) filter = argv[1];
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!(cpu->supported >> level & 1) ||
            (argc > 2 && strcmp(argv[2], pith__isa_name((pith__isa)level)) != 0))
            continue;
        bench_gemm((pith__isa)level);
        bench_network((pith__isa)level);
        bench_feed_forward((pith__isa)level);
        bench_int8((pith__isa)level);
        bench_bf16((pith__isa)level);
        bench_attention(
            (pith__isa)level,
            PITH_KERNEL_FIND(pith__attention_f32_fn, "attention", PITH_F32, (pith__isa)level),
            "attention");
        bench_attention((pith__isa)level, pith__attention_i16_find((pith__isa)level),
                        "attention i16");
        bench_rows((pith__isa)level);
        bench_pack((pith__isa)level);
        bench_unary((pith__isa)level);
    }
    return 0;
}
