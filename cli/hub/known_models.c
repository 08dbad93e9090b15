/* known_models.c - see known_models.h. */
#include "cli/hub/known_models.h"

#include <string.h>
#include <strings.h>

#define MODEL(name, repository, export, files, kind, dim, pooling, prompts, tokenizer, licence,    \
              size, languages, list)                                                               \
    name "\t" repository "\t" export "\t" files "\t" kind "\t" dim "\t" pooling "\t" prompts       \
                                     "\t" tokenizer "\t" licence "\t" size "\t" languages          \
                                     "\t" list "\n"
static const char known_text[] =
#include "cli/hub/known_models.def"
    ;
#undef MODEL

bool known_next(known_model *m, const char **at) {
    const char *line = *at ? *at : known_text;
    size_t n = strcspn(line, "\n");
    if (!n || n >= sizeof m->text) return false;
    memcpy(m->text, line, n);
    m->text[n] = 0;
    char *field = m->text;
    for (int i = 0; i < KNOWN_FIELDS; i++) {
        size_t length = strcspn(field, "\t");
        bool last = !field[length];
        field[length] = 0;
        m->field[i] = field;
        field += length + !last;
    }
    *at = line + n + 1;
    return true;
}

bool known_find(known_model *m, const char *name) {
    for (int by_end = 0; by_end < 2 && !(by_end && strchr(name, '/')); by_end++) {
        const char *at = NULL;
        while (known_next(m, &at)) {
            const char *listed = m->field[KNOWN_NAME], *slash = strchr(listed, '/');
            if (!strcasecmp(name, by_end && slash ? slash + 1 : listed)) return true;
        }
    }
    return false;
}
