/* cpu_info.c - see cpu_info.h. */
#include "base/os/cpu_info.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/topology.h"

static char model[128], isas[64], features[160];
static int cores;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cpu_info_word(char *words, size_t size, const char *word) {
    size_t n = strlen(words);
    snprintf(words + n, size - n, "%s%s", n ? " " : "", word);
}

static void cpu_info_find(void) {
    static const char *const names[] = { "avx512-vnni", "avx-vnni", "avx512-bf16",
                                         "dotprod",     "i8mm",     "avx512-vbmi",
                                         "amx-int8",    "amx-bf16", "fast-bf16" };
    const pith__cpu *cpu = pith__cpu_get();
    cores = pith__topology_usable_cores();
    pith__topology_name(model, sizeof model, NULL);
    for (int i = 0; i < PITH_ISA_COUNT; i++)
        if (cpu->supported >> i & 1) cpu_info_word(isas, sizeof isas, pith__isa_name((pith__isa)i));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (cpu->features >> i & 1) cpu_info_word(features, sizeof features, names[i]);
}

pith_status pith__cpu_info_fill(pith_cpu_info *info, pith_error *err) {
    pthread_once(&once, cpu_info_find);
    const pith__cpu *cpu = pith__cpu_get();
    pith_cpu_info mine = { info->size,   pith__isa_name(cpu->isa),
                           cpu->threads, cpu->l1d,
                           cpu->l2,      cpu->l3,
                           cpu->allowed, cores,
                           cpu->quota,   model,
                           isas,         features };
    if (mine.size < sizeof mine.size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the struct has no size; initialise it with PITH_CPU_INFO_INIT");
    memcpy(info, &mine, mine.size < sizeof mine ? mine.size : sizeof mine);
    return PITH_OK;
}
