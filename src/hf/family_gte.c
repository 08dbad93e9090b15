/* family_gte.c - the same network under the name that arctic-embed-m v2 gives it. */
#include "hf/hf_gte.h"

const pith_hf_family pith_hf_family_gte = { .model_type = "gte", .build = pith_hf_gte_build };
