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

#define MODEL_NAME(name, full, file, sha256) name "\t" full "\t" file "\t" sha256 "\n"
static const char short_text[] =
#include "models/hub/model_names.def"
    ;
#undef MODEL_NAME

/* Copies the row at `line` to text[size] and splits it into its fields. The row that follows; NULL:
 * there is none at `line`. */
static const char *known_split(const char **fields, int count, char *text, size_t size,
                               const char *line) {
    const size_t n = strcspn(line, "\n");
    if (!n || n >= size) return NULL;
    memcpy(text, line, n);
    text[n] = 0;
    char *field = text;
    for (int i = 0; i < count; i++) {
        const size_t length = strcspn(field, "\t");
        const bool last = !field[length];
        field[length] = 0;
        fields[i] = field;
        field += length + !last;
    }
    return line + n + 1;
}

bool known_next(known_model *m, const char **at) {
    const char *next =
        known_split(m->field, KNOWN_FIELDS, m->text, sizeof m->text, *at ? *at : known_text);
    if (next) *at = next;
    return next != NULL;
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

bool short_next(short_name *s, const char **at) {
    const char *fields[4];
    const char *next = known_split(fields, 4, s->text, sizeof s->text, *at ? *at : short_text);
    if (!next) return false;
    s->name = fields[0];
    s->full = fields[1];
    s->file = fields[2];
    s->sha256 = fields[3];
    *at = next;
    return true;
}

bool short_find(short_name *s, const char *name) {
    for (int by_full = 0; by_full < 2; by_full++) {
        const char *at = NULL;
        while (short_next(s, &at)) {
            const char *end = strchr(s->full, '/') + 1;
            if (!by_full && !strcasecmp(name, s->name)) return true;
            if (by_full && (!strcasecmp(name, s->full) || !strcasecmp(name, end))) return true;
        }
    }
    return false;
}
