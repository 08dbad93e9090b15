/* window_pace.h - how many texts a window takes, so that most windows end within a given time.
 *
 * A window's time is taken to grow with its bytes of text and its number of texts. The cost of a
 * unit is the 90th percentile of the costs of the last windows, so about nine windows of ten end in
 * time. Not thread-safe. */
#ifndef PITH_MODELS_ENCODE_WINDOW_PACE_H
#define PITH_MODELS_ENCODE_WINDOW_PACE_H

#include <stdbool.h>
#include <stddef.h>

enum { PITH_WINDOW_PACE_KEPT = 20 };

typedef struct pith__window_pace {
    double target; /* seconds; 0: windows are not steered */
    size_t least, most;
    double costs[PITH_WINDOW_PACE_KEPT]; /* seconds per unit, of the last windows */
    size_t count;                        /* windows noted so far */
    size_t last;                         /* texts of the last window */
} pith__window_pace;

/* least and most: texts of a window; 1 <= least <= most. */
void pith__window_pace_begin(pith__window_pace *pace, double target, size_t least, size_t most);
/* Returns whether a window that holds so many texts, with so many bytes, may take another text. */
bool pith__window_pace_admits(const pith__window_pace *pace, size_t texts, size_t bytes);
/* Notes the time of a window. */
void pith__window_pace_note(pith__window_pace *pace, size_t texts, size_t bytes, double seconds);

#endif
