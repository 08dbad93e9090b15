/* peak.h - what the processor can do at this moment: multiply-adds in registers, bytes from memory.
 *
 * The yardstick of `pith bench`, `pith inspect --time` and bench/ (which loads the last two functions from a module):
 * measured between the runs it is set against, since clocks and neighbours change. The loops use the best instruction
 * set level that Pith uses (PITH_ISA limits it). */
#ifndef PITH_CLI_PEAK_H
#define PITH_CLI_PEAK_H

#include <pith/pith.h>

#include "base/cpu.h"

/* One burst of f32 multiply-adds of this level in the calling thread, about 0.1 ms; returns its FLOP. */
double peak_burst(pith_isa isa);

/* FLOP per second of so many threads together, each working for so many seconds of its own processor time. */
PITH_API double peak_flops(int threads, double seconds);

/* Bytes per second that so many threads together read from memory far larger than caches; 0 if there is none to be
 * had. */
PITH_API double peak_bandwidth(int threads);

#endif
