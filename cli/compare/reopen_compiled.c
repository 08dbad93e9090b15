/* reopen_compiled.c - see reopen_compiled.h. */
#include "cli/compare/reopen_compiled.h"

#include <string.h>

typedef struct saved {
    char *data;
    size_t size;
} saved;

static int compile_append(void *user, const void *data, size_t size, uint64_t total) {
    saved *s = user;
    if (!s->data) s->data = grow(NULL, (size_t)total);
    memcpy(s->data + s->size, data, size);
    s->size += size;
    return 0;
}

pith_status reopen_compiled(pith_model **model, void **file, const pith_open_options *options,
                            pith_error *err) {
    saved s = { NULL, 0 };
    pith_status status = pith_model_save(*model, compile_append, &s, err);
    pith_model_close(*model);
    *model = NULL;
    *file = s.data;
    return status ? status : pith_model_open_memory(model, s.data, s.size, options, err);
}
