/* fft.h - complex discrete Fourier transforms of any length, in f32 or f64. */
#ifndef PITH_ENGINE_KERNELS_FFT_H
#define PITH_ENGINE_KERNELS_FFT_H

#include "base/stop.h"
#include "engine/kernels/kernel.h"

/* Fills roots with exp(2 pi i k / n), k < n: n pairs of the kernel's type. If the call must end,
 * which stop (NULL: it never must) then goes on to say, the results are anything. */
typedef void pith__fft_roots_fn(void *roots, int64_t n, pith__stop *stop);
/* y[k] = sum over j of x[j] exp(± 2 pi i j k / n), + if inverse, not divided by n. x and y are
 * arrays of n pairs of the kernel's type and do not overlap; x is destroyed. rest: n pairs. Time is
 * n times the sum of n's prime factors. stop: as above. */
typedef void pith__fft_fn(void *y, void *x, void *rest, const void *roots, int64_t n, bool inverse,
                          pith__stop *stop);

pith__fft_roots_fn pith__k_fft_roots_f32, pith__k_fft_roots_f64;
pith__fft_fn pith__k_fft_f32, pith__k_fft_f64;

#endif
