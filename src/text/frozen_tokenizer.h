/* frozen_tokenizer.h - a loaded tokenizer as bytes that are mapped and used in place.
 *
 * A frozen tokenizer is a header, a list of sections, and the sections at multiples of 64 bytes.
 * The section "settings" is a small tokenizer.json: the steps as they were read, the added tokens
 * with their ids, the model without its vocabulary. The others are the model's tables; they hold
 * indices only. Opening reads the settings like any tokenizer.json and walks over each table once
 * to check that no look-up can leave it; nothing is built. Numbers are little-endian. A frozen
 * tokenizer of another version is refused, not converted. Frozen tokenizers are made and opened by
 * functions of tokenizer.h; these are for the loader and the models. */
#ifndef PITH_TEXT_FROZEN_TOKENIZER_H
#define PITH_TEXT_FROZEN_TOKENIZER_H

#include "text/pipeline.h"

#define PITH_FROZEN_VERSION 3u

/* Checks that the header and the list of sections are complete. */
pith_status pith__frozen_check(pith_str frozen, pith_error *err);

/* The writer keeps the first fault of the functions below and reports it at the end. */

/* Adds a table of the model. data must stay valid until the frozen tokenizer is written. name has
 * at most 15 characters. */
void pith__frozen_put(pith__frozen_writer *writer, const char *name, const void *data, size_t count,
                      size_t item_size);
/* A setting of the model under the key it has in tokenizer.json. Strings without data are left out.
 */
void pith__frozen_put_string(pith__frozen_writer *writer, const char *key, pith_str value);
void pith__frozen_put_int(pith__frozen_writer *writer, const char *key, int64_t value);
void pith__frozen_put_bool(pith__frozen_writer *writer, const char *key, bool value);

/* The table in loader->frozen, *count items of item_size; NULL with loader->err set if it is
 * missing or of an odd size. */
const void *pith__frozen_table(pith__loader *loader, const char *name, size_t item_size,
                               size_t *count);
/* Fails for a model that finds a table damaged. */
pith_status pith__frozen_damaged(pith__loader *loader, const char *name);

#endif
