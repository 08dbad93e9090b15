/* half.h - small floating point formats to and from f32, one element at a time, IEEE round to
 * nearest even. Sources: IEEE 754 (f16), ONNX "Float stored in 8 bits" and "float4" pages (f8, f4,
 * e8m0). */
#ifndef PITH_BASE_HALF_H
#define PITH_BASE_HALF_H

#include <stdbool.h>
#include <stdint.h>

float pith__f32_of_f16(uint16_t bits);
uint16_t pith__f16_of_f32(float x);
uint16_t pith__f16_of_f64(double x);
float pith__f32_of_bf16(uint16_t bits);
uint16_t pith__bf16_of_f32(float x);

/* dtype is one of PITH_F8* or PITH_F4E2M1. With saturate, overflow and infinity give the largest
 * finite value; without it they give NaN or infinity, whichever the format has. E8M0 drops the sign
 * and rounds up, as Cast does by default. */
float pith__f32_of_f8(uint8_t bits, int dtype);
uint8_t pith__f8_of_f32(float x, int dtype, bool saturate);

#endif
