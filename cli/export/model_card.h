/* model_card.h - what was written and how near it is to its source, as Markdown beside the file:
 * FILE.md. */
#ifndef PITH_CLI_EXPORT_MODEL_CARD_H
#define PITH_CLI_EXPORT_MODEL_CARD_H

#include "cli/export/model_out.h"

enum { CARD_FACTS = 16 };

/* Rows of the card's first table. */
typedef struct model_card {
    bool wanted;
    size_t count;
    struct {
        const char *what;
        char value[400];
    } facts[CARD_FACTS];
} model_card;

/* A fact; none is added beyond the room, or unless the card is wanted. */
void model_card_add(model_card *card, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails if there is a card already, unless force is set. Call it before anything is written.
 * EXIT_DONE, or another exit code after a message; so do the others. */
int model_card_place(const model_card *card, const model_out *out, bool force);
/* Sizes and SHA-256 of the files that were written, and of the small ones in a directory, with the
 * facts. */
int model_card_write(const model_card *card, const model_out *out);
/* Runs a few texts through what was written and through the model, and adds the largest difference
 * as a fact. how: the pooling that is in the network; NULL: there is none. */
int model_card_compare(model_card *card, const model_out *out, const char *model,
                       const pith_source_options *from, const pith_export_options *how);

#endif
