/* svg_chart.h - charts as SVG without scripts: lines and points between two axes, or bars. Colours
 * follow the reader's light or dark setting. */
#ifndef PITH_CLI_DRAWING_SVG_CHART_H
#define PITH_CLI_DRAWING_SVG_CHART_H

#include <stdio.h>

/* What is drawn lies in [x0, x1] and [y0, y1]. */
typedef struct svg_chart {
    FILE *text; /* where it goes */
    double x0, x1, y0, y1;
} svg_chart;

/* The first and the second series, and what they are to be compared with. */
typedef enum svg_series { SVG_FIRST, SVG_SECOND, SVG_REFERENCE } svg_series;

/* Writes text between tags; control characters are left out. */
void svg_escape(FILE *out, const char *text);

/* Opens a chart with axes; ticks stand at round numbers. The ranges must not be empty. */
void svg_chart_begin(svg_chart *chart, const char *title, const char *x_label, const char *y_label);
/* A line through count points x, y, x, y, … */
void svg_chart_line(svg_chart *chart, svg_series series, const double *points, size_t count);
/* A point that says something where a reader points at it. */
void svg_chart_point(svg_chart *chart, svg_series series, double x, double y, const char *says);
/* What a series is, in the upper right corner or, with below, in the lower one. */
void svg_chart_legend(svg_chart *chart, svg_series series, int place, int below, const char *name);
/* Horizontal bars, each with its name and number; those of the second series stand out. */
void svg_bars_begin(svg_chart *chart, const char *title, size_t count, double low, double high);
void svg_bars_add(svg_chart *chart, svg_series series, size_t place, const char *name,
                  double value);
/* Ends either. */
void svg_chart_end(svg_chart *chart);

#endif
