/* cpu.c - instruction sets, detected once; caches and usable CPUs are known where the library has
 * threads (machine.c).
 *
 * An instruction set counts only if the operating system saves its registers as well. Sources:
 * Intel SDM volume 2 (CPUID, XGETBV), Linux Documentation/arch/x86/xstate (permission for AMX
 * tiles), arch/arm64/elf_hwcaps. */
#include "base/os/cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/optional_part.h"
#include "base/os/threads.h"
#include "base/piece_listener.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* Cache sizes if neither the C library nor sysfs tells them. They decide how long chunks and blocks
 * are. Too small costs some speed; too large costs more, since data then falls out of the cache. So
 * these are sizes of small current CPUs. */
#define L1D_FALLBACK ((size_t)32 << 10)
#define L2_FALLBACK ((size_t)512 << 10)
#define L3_FALLBACK ((size_t)4 << 20)

static const char *const isa_names[PITH_ISA_COUNT] = { "scalar", "avx2", "avx512", "neon" };

const char *pith__isa_name(pith__isa isa) {
    return (unsigned)isa < PITH_ISA_COUNT ? isa_names[isa] : "unknown";
}

#if defined(__x86_64__)
#define ISA_BEST PITH_ISA_avx512

/* The kernel saves tiles only for processes that asked; it refuses where a signal stack is too
 * small for them. */
static bool tiles_granted(unsigned xcr0) {
    enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return (xcr0 >> 17 & 3) == 3 && syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
}

/* VDPBF16PS has the rate of an f32 multiply-add since Zen 4; Intel's cores issue half as many,
 * which gains nothing over f32 (uops.info). */
static bool is_amd(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
           d == signature_AMD_edx;
}

/* What CPUID says counts only if XCR0 says that the system saves the registers: 0x06 for AVX, 0xE6
 * with the masks and the 512-bit registers. Each level asks for all extensions that its code is
 * compiled for. AMX also needs a permission from the kernel. */
static void detect(pith__cpu *cpu) {
    unsigned a, b, c, d, b7, c7, d7, a71 = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    const unsigned fma_f16c_osxsave_avx = 1u << 12 | 1u << 29 | 1u << 27 | 1u << 28;
    if ((c & fma_f16c_osxsave_avx) != fma_f16c_osxsave_avx) return;
    unsigned xcr0, high;
    __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
    if ((xcr0 & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return;
    if (a >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
    const unsigned bmi1_avx2_bmi2 = 1u << 3 | 1u << 5 | 1u << 8;
    if ((b7 & bmi1_avx2_bmi2) != bmi1_avx2_bmi2) return;
    cpu->supported |= 1u << PITH_ISA_avx2;
    if (a71 >> 4 & 1) cpu->features |= PITH_CPU_AVX_VNNI;
    const unsigned f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    if ((xcr0 & 0xE6) != 0xE6 || (b7 & f_dq_bw_vl) != f_dq_bw_vl) return;
    cpu->supported |= 1u << PITH_ISA_avx512;
    if (c7 >> 11 & 1) cpu->features |= PITH_CPU_AVX512_VNNI;
    if (c7 >> 1 & 1) cpu->features |= PITH_CPU_AVX512_VBMI;
    if (a71 >> 5 & 1) cpu->features |= PITH_CPU_AVX512_BF16 | (is_amd() ? PITH_CPU_FAST_BF16 : 0);
    if (!(d7 >> 24 & 1) || !tiles_granted(xcr0)) return;
    if (d7 >> 25 & 1) cpu->features |= PITH_CPU_AMX_INT8;
    if (d7 >> 22 & 1) cpu->features |= PITH_CPU_AMX_BF16;
}

/* The control word of the x87 unit, which glibc asks for the rounding of numbers it reads and
 * writes. */
enum { X87_NEAREST = 0x037F };

static void set_x87(uint16_t word) {
    uint16_t now;
    __asm__ volatile("fnstcw %0" : "=m"(now));
    if (now != word) __asm__ volatile("fldcw %0" : : "m"(word));
}

pith__fpmode pith__fpmode_enter(void) {
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    pith__fpmode mode = { _mm_getcsr() | (uint64_t)x87 << 32 };
    _mm_setcsr(0x1F80);
    set_x87(X87_NEAREST);
    return mode;
}

void pith__fpmode_leave(pith__fpmode mode) {
    _mm_setcsr((unsigned)mode.saved);
    set_x87((uint16_t)(mode.saved >> 32));
}

#elif defined(__aarch64__)
#define ISA_BEST PITH_ISA_neon

static void detect(pith__cpu *cpu) {
    cpu->supported |= 1u << PITH_ISA_neon;
    if (getauxval(AT_HWCAP) >> 20 & 1) cpu->features |= PITH_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) >> 13 & 1) cpu->features |= PITH_CPU_I8MM;
}

pith__fpmode pith__fpmode_enter(void) {
    pith__fpmode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode.saved));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return mode;
}

void pith__fpmode_leave(pith__fpmode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode.saved)); }

#else
#define ISA_BEST PITH_ISA_scalar

static void detect(pith__cpu *cpu) { (void)cpu; }

pith__fpmode pith__fpmode_enter(void) { return (pith__fpmode){ 0 }; }

void pith__fpmode_leave(pith__fpmode mode) { (void)mode; }
#endif

/* The level PITH_ISA allows, and the extensions it leaves. */
static pith__isa wanted_isa(uint32_t *features) {
    static const struct {
        const char *name;
        uint32_t features;
    } extensions[] = {
        { "amx", PITH_CPU_AMX_INT8 | PITH_CPU_AMX_BF16 },
        { "bf16", PITH_CPU_AMX_BF16 | PITH_CPU_AVX512_BF16 | PITH_CPU_FAST_BF16 },
        { "vnni", PITH_CPU_AVX512_VNNI | PITH_CPU_AVX_VNNI },
    };
    const char *wanted = getenv("PITH_ISA");
    pith__isa limit = ISA_BEST;
    if (!wanted) return limit;
    size_t n = strcspn(wanted, "-");
    for (int i = 0; i <= (int)ISA_BEST; i++) {
        if (strlen(isa_names[i]) == n && memcmp(wanted, isa_names[i], n) == 0) limit = (pith__isa)i;
    }
    for (const char *rest = wanted + n; *rest; rest += n) {
        n = strcspn(++rest, "-");
        for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
            if (strlen(extensions[i].name) == n && memcmp(rest, extensions[i].name, n) == 0)
                *features &= ~extensions[i].features;
        }
    }
    return limit;
}

static pith__cpu the_cpu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_out(void) {
    pith__cpu *cpu = &the_cpu;
    cpu->supported = 1u << PITH_ISA_scalar;
    detect(cpu);
    pith__isa limit = wanted_isa(&cpu->features);
    for (int i = 0; i <= (int)limit; i++)
        if (cpu->supported >> i & 1) cpu->isa = (pith__isa)i;
    if (cpu->isa == PITH_ISA_scalar) cpu->features = 0;
    if (cpu->isa == PITH_ISA_avx2) cpu->features &= PITH_CPU_AVX_VNNI;
    const pith__threads_part *threads = pith__part_find("threads");
    *cpu = (pith__cpu){ .isa = cpu->isa, .supported = cpu->supported, .features = cpu->features };
    cpu->l1d = L1D_FALLBACK;
    cpu->l2 = L2_FALLBACK;
    cpu->l3 = L3_FALLBACK;
    cpu->threads = cpu->allowed = 1;
    if (threads) threads->machine(cpu);
}

const pith__cpu *pith__cpu_get(void) {
    if (pith__piece_heard()) pith__part_used("threads");
    pthread_once(&once, find_out);
    return &the_cpu;
}

bool pith__cpu_runs(pith__isa isa) {
    const pith__cpu *cpu = pith__cpu_get();
    return cpu->isa >= isa && (cpu->supported >> isa & 1);
}
