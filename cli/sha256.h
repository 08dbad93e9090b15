/* sha256.h - SHA-256 (FIPS 180-4) of bytes that come in pieces. */
#ifndef PITH_CLI_SHA256_H
#define PITH_CLI_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[64];
} sha256;

void sha256_begin(sha256 *h);
void sha256_add(sha256 *h, const void *data, size_t size);
/* Writes 64 lower-case hexadecimal digits and a NUL; *h must be begun again before another use. */
void sha256_end(sha256 *h, char hex[65]);

#endif
