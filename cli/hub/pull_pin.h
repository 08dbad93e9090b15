/* pull_pin.h - what was pulled: .pith-pull.json in the model's directory, with the commit and every
 * file's SHA-256. */
#ifndef PITH_CLI_HUB_PULL_PIN_H
#define PITH_CLI_HUB_PULL_PIN_H

#include <jansson.h>

#include "cli/base/cli.h"

#define PULL_PIN_NAME ".pith-pull.json"

typedef struct pull_pin {
    json_t *json; /* NULL: there is none */
    json_t *files;
} pull_pin;

/* EXIT_DONE, also if there is no such file; else another exit code after a message. */
int pull_pin_read(pull_pin *p, const command *c, const char *directory);
void pull_pin_begin(pull_pin *p, const char *endpoint, const char *repository, const char *revision,
                    const char *commit);
void pull_pin_free(pull_pin *p);

/* "" if it is not told. */
const char *pull_pin_text(const pull_pin *p, const char *key);
/* The SHA-256 and size of a file; NULL if it is not pinned. */
const char *pull_pin_file(const pull_pin *p, const char *name, int64_t *size);
void pull_pin_add(pull_pin *p, const char *name, int64_t size, const char *hash);
/* Written under another name, then renamed. */
int pull_pin_write(const pull_pin *p, const command *c, const char *directory);

#endif
