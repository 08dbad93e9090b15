/* cpu_peak.c - the peak-FMA loop (multiply-adds in registers only), and a loop that only reads
 * memory. */
#include "cli/measure/cpu_peak.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/seconds.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { THREADS_MAX = 64 };

/* SUMS independent sums hide the latency of a multiply-add: at least 4 cycles × 2 per cycle, and
 * few enough that all fit in the 16 registers of AVX2. STEPS multiply-adds per sum make one burst,
 * between two looks at the clock. */
#define STEPS 20000
#define SUMS 12
#define BURST(V, set1, fma, first, width)                                                          \
    V a = set1(1.0f), b = set1(1e-9f), c[SUMS];                                                    \
    for (int i = 0; i < SUMS; i++) c[i] = set1((float)i);                                          \
    for (int s = 0; s < STEPS; s++) {                                                              \
        _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) c[i] = fma(a, c[i], b);            \
    }                                                                                              \
    for (int i = 1; i < SUMS; i++) c[0] = fma(a, c[0], c[i]);                                      \
    kept = first(c[0]);                                                                            \
    return 2.0 * (width)*SUMS * STEPS;

/* Results go here, so that no loop is left out; each thread has its own. */
static _Thread_local volatile float kept;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double burst_avx512(void) {
    BURST(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32, 16)
}
__attribute__((target("avx2,fma"))) static double burst_avx2(void) {
    BURST(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32, 8)
}
#elif defined(__aarch64__)
static float32x4_t fma4(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
static float first4(float32x4_t a) { return vgetq_lane_f32(a, 0); }
static double burst_neon(void) { BURST(float32x4_t, vdupq_n_f32, fma4, first4, 4) }
#endif
static float fma1(float a, float b, float c) { return a * b + c; }
static double burst_scalar(void){ BURST(float, , fma1, , 1) }

cpu_peak_burst *cpu_peak_burst_of(const char *isa) {
    static const struct {
        const char *isa;
        cpu_peak_burst *burst;
    } bursts[] = {
        { "scalar", burst_scalar },
#if defined(__x86_64__)
        { "avx2", burst_avx2 },
        { "avx512", burst_avx512 },
#elif defined(__aarch64__)
        { "neon", burst_neon },
#endif
    };
    for (size_t i = 0; i < sizeof bursts / sizeof *bursts; i++)
        if (!strcmp(bursts[i].isa, isa)) return bursts[i].burst;
    return NULL;
}

/* The thread's own time: what other processes take is not the processor's weakness. */
static double now(void) { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }

/* ---- several threads at once ---- */

typedef struct crew {
    cpu_peak_burst *burst; /* multiply-adds: of what, and how long */
    double until_seconds;
    const uint64_t *memory; /* reading: NULL for multiply-adds */
    size_t words, share;
} crew;

typedef struct member {
    crew *crew;
    pthread_t thread;
    int number;
    double rate;
} member;

/* Sums of all words of a part of the memory, eight at a time. */
static uint64_t read_all(const uint64_t *p, size_t words) {
    uint64_t sum[8] = { 0 };
    for (size_t i = 0; i + 8 <= words; i += 8)
        for (int k = 0; k < 8; k++) sum[k] += p[i + (size_t)k];
    for (int k = 1; k < 8; k++) sum[0] += sum[k];
    return sum[0];
}

static void *work(void *context) {
    member *m = context;
    crew *c = m->crew;
    double begin = now(), done = 0, end;
    if (c->memory) {
        kept = (float)read_all(c->memory + (size_t)m->number * c->share, c->share);
        done = (double)(c->share * sizeof *c->memory);
    } else {
        do done += c->burst();
        while (now() - begin < c->until_seconds);
    }
    end = now();
    m->rate = done / (end - begin);
    return NULL;
}

/* The sum of the members' rates; threads that cannot be made do nothing. */
static double run_crew(crew *c, int threads) {
    member members[THREADS_MAX];
    double rate = 0;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    c->share = threads > 0 ? c->words / (size_t)threads : 0;
    for (int i = 0; i < threads; i++) members[i] = (member){ .crew = c, .number = i };
    int made = 1;
    while (made < threads && !pthread_create(&members[made].thread, NULL, work, &members[made]))
        made++;
    work(&members[0]);
    for (int i = 1; i < made; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < made; i++) rate += members[i].rate;
    return rate;
}

double cpu_peak_flops(int threads, double seconds) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    crew c = { .burst = cpu_peak_burst_of(cpu.isa), .until_seconds = seconds };
    return run_crew(&c, threads);
}

double cpu_peak_bandwidth(int threads) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    size_t least = (size_t)128 << 20, bytes = cpu.l3_bytes * 2 > least ? cpu.l3_bytes * 2 : least;
    uint64_t *memory = malloc(bytes);
    if (!memory) return 0;
    memset(memory, 1, bytes);
    double best = 0;
    for (int i = 0; i < 3; i++) {
        crew c = { .memory = memory, .words = bytes / sizeof *memory };
        double rate = run_crew(&c, threads);
        if (rate > best) best = rate;
    }
    free(memory);
    return best;
}
