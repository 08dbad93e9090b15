/* npy.h - the header of NumPy's .npy files: what it says, and NumPy's names of element types.
 * Format: numpy.lib.format, versions 1 to 3. */
#ifndef PITH_BASE_FORMATS_NPY_H
#define PITH_BASE_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pith/types.h"

typedef enum pith__npy_fault {
    PITH_NPY_OK,
    PITH_NPY_NONE,   /* no .npy file */
    PITH_NPY_CUT,    /* the header is cut off, or longer than any of NumPy's */
    PITH_NPY_BROKEN, /* the header is none, or that of a structured type, or has too many axes */
} pith__npy_fault;

typedef struct pith__npy {
    int version;   /* of the format */
    char type[16]; /* NumPy's name of the element type, such as "<f4", cut to 15 bytes */
    bool fortran;  /* the first axis is the fastest */
    int rank;
    int64_t dims[PITH_MAX_RANK]; /* 0 or more; a size beyond int64 is INT64_MAX */
    pith_str contents;           /* all that follows the header */
} pith__npy;

bool pith__npy_is(pith_str file); /* by its first bytes */
/* Reads the header. Sizes are not compared with the contents. */
pith__npy_fault pith__npy_read(pith__npy *npy, pith_str file);

/* The dtype of numbers of NumPy's type, or PITH_UNDEFINED. */
int pith__npy_dtype(const char *type);
/* NumPy's type for elements of a dtype, or NULL. 4-bit and 2-bit integers take a byte each. *raw:
 * NumPy has no such type, and the bits are those of unsigned integers. */
const char *pith__npy_type(int dtype, bool *raw);

#endif
