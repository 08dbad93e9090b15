/* cpu_peak.h - measures the processor's current peaks: multiply-adds from registers, and bytes read
 * from memory.
 *
 * `pith bench`, `pith inspect --time` and bench/ compare runs with these peaks; bench/ loads the
 * last two functions from a module. Measure between the runs, since clocks and the load of the
 * machine change. The loops use the best instruction set that Pith uses (PITH_ISA limits it). */
#ifndef PITH_CLI_MEASURE_CPU_PEAK_H
#define PITH_CLI_MEASURE_CPU_PEAK_H

#include <pith/pith.h>

/* One burst of f32 multiply-adds in the calling thread, about 0.1 ms; returns its FLOP. */
typedef double cpu_peak_burst(void);

/* Returns the burst of an instruction set (the name is that of pith_cpu_info), or NULL if this
 * machine's kind of processor has no such set. */
cpu_peak_burst *cpu_peak_burst_of(const char *isa);

/* Returns the FLOP per second of `threads` threads together. Each runs for `seconds` of its own CPU
 * time. */
PITH_API double cpu_peak_flops(int threads, double seconds);

/* Returns the bytes per second that `threads` threads together read from memory far larger than the
 * caches, or 0 if such memory cannot be allocated. */
PITH_API double cpu_peak_bandwidth(int threads);

#endif
