/* family_new.c - GTE v1.5 and GTE multilingual. */
#include "hf/hf_gte.h"

const pith_hf_family pith_hf_family_new = { .model_type = "new", .build = pith_hf_gte_build };
