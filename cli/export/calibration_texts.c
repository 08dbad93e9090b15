/* calibration_texts.c - see calibration_texts.h. */
#include "cli/export/calibration_texts.h"

#include <stdlib.h>

/* Lines are cut at LINE_MAX_BYTES, which is more text than models see. */
enum { LINE_MAX_BYTES = 1 << 14 };

/* Each line that was read is kept with the same probability (Vitter's algorithm R), the same ones
 * every time. */
int calibration_texts_read(calibration_texts *d, const command *c, const char *path) {
    text_input in;
    string_list paths = { &path, 1 };
    bytes line = { NULL, 0, 0 };
    uint64_t random = 1, seen = 0;
    int state;
    d->count = 0;
    text_input_open(&in, &paths);
    in.limit = LINE_MAX_BYTES;
    for (; (state = text_input_next(&in, &line, NULL)) > 0; line.size = 0) {
        size_t place = d->count;
        if (!line.size) continue;
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (seen++ >= CALIBRATION_TEXTS_MAX) place = (size_t)((random >> 32) * seen >> 32);
        if (place >= CALIBRATION_TEXTS_MAX) continue;
        if (place == d->count) d->count++;
        d->lines[place].size = 0;
        bytes_add(&d->lines[place], line.data, line.size);
    }
    free(line.data);
    text_input_close(&in);
    for (size_t i = 0; i < d->count; i++)
        d->texts[i] = (pith_str){ d->lines[i].data, d->lines[i].size };
    if (state < 0) return fail(c, "%s", in.message);
    return d->count ? EXIT_DONE : fail(c, "%s: no text in it", path);
}

void calibration_texts_free(calibration_texts *d) {
    for (size_t i = 0; i < CALIBRATION_TEXTS_MAX; i++) free(d->lines[i].data);
}
