/* drawn_texts.h - texts for calibration, drawn evenly from a file of any length. */
#ifndef PITH_CLI_EXPORT_DRAWN_TEXTS_H
#define PITH_CLI_EXPORT_DRAWN_TEXTS_H

#include "cli/base/text_input.h"

/* More take longer and improve little; fewer make the result depend on which lines were drawn. */
enum { DRAWN_MAX = 1024 };

typedef struct drawn_texts {
    bytes lines[DRAWN_MAX];
    pith_str texts[DRAWN_MAX];
    size_t count;
} drawn_texts;

/* One text a line; empty lines are passed over. *drawn is zeroed before. EXIT_DONE, or another exit
 * code after a message, also for a file without texts. Free what was read in either case. */
int drawn_texts_read(drawn_texts *drawn, const command *c, const char *path);
void drawn_texts_free(drawn_texts *drawn);

#endif
