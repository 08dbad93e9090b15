/* gguf_settings.h - the settings of a GGUF file, each of which is read, known to change no vector,
 * refused, or warned of. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_SETTINGS_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_SETTINGS_H

#include "base/log.h"
#include "formats/weights/gguf/gguf_arch.h"
#include "formats/weights/gguf/gguf_header.h"

typedef struct pith__gguf_setting {
    pith__gguf_entry entry;
    bool read;
} pith__gguf_setting;

typedef struct pith__gguf_settings {
    const pith__gguf_arch *arch;
    pith__gguf_setting *items;
    size_t count, capacity;
    pith__gguf at; /* behind the last setting */
    const char *name;
    pith_error *err;
} pith__gguf_settings;

/* Reads all of them; the arena holds the list, and bytes and name must outlive it.
 * PITH_ERR_UNSUPPORTED for another architecture, PITH_ERR_FORMAT for a file that names none. */
pith_status pith__gguf_settings_read(pith__gguf_settings *settings, pith_str bytes,
                                     const char *name, pith__arena *arena, pith_error *err);

/* The setting "<architecture>.<key>", or `key` itself if it begins with "general."; it counts as
 * read. NULL: there is none of that kind. */
const pith__gguf_entry *pith__gguf_setting_find(pith__gguf_settings *s, const char *key,
                                                pith__gguf_kind kind);
/* The same as a number; the fall-back if there is none. */
uint64_t pith__gguf_setting_count(pith__gguf_settings *s, const char *key, uint64_t fallback);
double pith__gguf_setting_real(pith__gguf_settings *s, const char *key, double fallback);
/* A number from 1 to INT32_MAX that must be there. */
pith_status pith__gguf_setting_needed(int *value, pith__gguf_settings *s, const char *key);

/* After all that is read has been: refuses settings whose value would change vectors, and warns of
 * those that are not known. The lists are names with commas between, in the arena. Those of the
 * tokenizer are left to its source. */
pith_status pith__gguf_settings_check(pith_str *read, pith_str *ignored, pith_str *unknown,
                                      pith__gguf_settings *s, pith__arena *arena,
                                      const pith_log *log);

#endif
