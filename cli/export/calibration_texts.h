/* calibration_texts.h - texts for calibration, drawn evenly from a file of any length. */
#ifndef PITH_CLI_EXPORT_CALIBRATION_TEXTS_H
#define PITH_CLI_EXPORT_CALIBRATION_TEXTS_H

#include "cli/base/text_input.h"

/* More take longer and improve little; fewer make the result depend on which lines were drawn. */
enum { CALIBRATION_TEXTS_MAX = 1024 };

typedef struct calibration_texts {
    bytes lines[CALIBRATION_TEXTS_MAX];
    pith_str texts[CALIBRATION_TEXTS_MAX];
    size_t count;
} calibration_texts;

/* One text a line; empty lines are passed over. *drawn is zeroed before. EXIT_DONE, or another exit
 * code after a message, also for a file without texts. Free what was read in either case. */
int calibration_texts_read(calibration_texts *drawn, const command *c, const char *path);
void calibration_texts_free(calibration_texts *drawn);

#endif
