/* reopen_compiled.c - see reopen_compiled.h. */
#include "cli/compare/reopen_compiled.h"

#include <string.h>

typedef struct saved {
    char *data;
    size_t size;
} saved;

static int32_t saved_begin(void *user, uint64_t total) {
    saved *s = user;
    s->data = grow(NULL, (size_t)total);
    return 0;
}

static int32_t saved_write(void *user, const void *data, size_t size) {
    saved *s = user;
    memcpy(s->data + s->size, data, size);
    s->size += size;
    return 0;
}

pith_status reopen_compiled(pith_model **model, void **file, const pith_open_options *options,
                            pith_error *err) {
    saved s = { NULL, 0 };
    const pith_writer writer = { .write = saved_write, .begin = saved_begin, .user = &s };
    pith_status status = pith_model_save(*model, NULL, &writer, err);
    pith_model_close(*model);
    *model = NULL;
    *file = s.data;
    return status ? status : pith_model_open_memory(model, s.data, s.size, options, err);
}
