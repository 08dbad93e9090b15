/* svg_chart.c - see svg_chart.h. */
#include "cli/drawing/svg_chart.h"

#include <math.h>
#include <stdbool.h>

enum {
    CHART_WIDTH = 640,
    CHART_HEIGHT = 400,
    CHART_LEFT = 64,
    CHART_RIGHT = 20,
    CHART_TOP = 44,
    CHART_BOTTOM = 52
};
enum { BAR_LEFT = 250, BAR_RIGHT = 80, BAR_STEP = 22, BAR_HEIGHT = 14 };

/* Colours that people with colour blindness tell apart, on white and on black. */
static const char chart_style[] =
    ":root{color-scheme:light dark}"
    ".back{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}"
    ".first{stroke:#0969da}.second{stroke:#bc4c00}.reference{stroke:#818b98}"
    ".first-fill{fill:#0969da}.second-fill{fill:#bc4c00}.reference-fill{fill:#818b98}"
    "@media (prefers-color-scheme:dark){"
    ".back{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#3d444d}"
    ".first{stroke:#4493f8}.second{stroke:#f0883e}"
    ".first-fill{fill:#4493f8}.second-fill{fill:#f0883e}}"
    "text{font-family:system-ui,sans-serif;font-size:12px}"
    ".title{font-size:15px;font-weight:600}"
    "polyline{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".reference{stroke-dasharray:4 4;stroke-width:1.5}";

static const char *series_name(svg_series series) {
    static const char *const names[] = { "first", "second", "reference" };
    return names[series];
}

void svg_escape(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, f);
    }
}

static void chart_text(const svg_chart *c, double x, double y, const char *class,
                       const char *anchor, const char *text) {
    fprintf(c->text, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
            anchor);
    svg_escape(c->text, text);
    fputs("</text>\n", c->text);
}

static void chart_open(svg_chart *c, const char *title, double height) {
    fprintf(c->text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\" "
            "role=\"img\">\n<title>",
            CHART_WIDTH, height, CHART_WIDTH, height);
    svg_escape(c->text, title);
    fprintf(c->text,
            "</title>\n<style>%s</style>\n<rect class=\"back\" width=\"%d\" height=\"%.0f\"/>\n",
            chart_style, CHART_WIDTH, height);
    chart_text(c, 16, 26, "ink title", "start", title);
}

static double chart_x(const svg_chart *c, double x) {
    return CHART_LEFT + (x - c->x0) / (c->x1 - c->x0) * (CHART_WIDTH - CHART_LEFT - CHART_RIGHT);
}

static double chart_y(const svg_chart *c, double y) {
    return CHART_HEIGHT - CHART_BOTTOM -
           (y - c->y0) / (c->y1 - c->y0) * (CHART_HEIGHT - CHART_TOP - CHART_BOTTOM);
}

/* A distance of ticks that is 1, 2 or 5 times a power of ten and gives at most so many. */
static double chart_step(double range, int most) {
    const double least = range / most, power = pow(10, floor(log10(least)));
    const double times = least / power;
    if (times <= 1) return power;
    if (times <= 2) return power * 2;
    return power * (times <= 5 ? 5 : 10);
}

static void chart_ticks(const svg_chart *c, bool across) {
    const double low = across ? c->x0 : c->y0, high = across ? c->x1 : c->y1,
                 step = chart_step(high - low, 7);
    char number[32];
    for (double i = ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
        const double at = i * step, x = across ? chart_x(c, at) : CHART_LEFT,
                     y = across ? 0 : chart_y(c, at);
        snprintf(number, sizeof number, "%.6g", fabs(at) < step / 2 ? 0 : at);
        if (across)
            fprintf(c->text, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n",
                    x, x, CHART_TOP, CHART_HEIGHT - CHART_BOTTOM);
        else
            fprintf(c->text, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                    CHART_LEFT, CHART_WIDTH - CHART_RIGHT, y, y);
        chart_text(c, across ? x : CHART_LEFT - 8,
                   across ? CHART_HEIGHT - CHART_BOTTOM + 18 : y + 4, "faint",
                   across ? "middle" : "end", number);
    }
}

void svg_chart_begin(svg_chart *c, const char *title, const char *x_label, const char *y_label) {
    chart_open(c, title, CHART_HEIGHT);
    chart_ticks(c, true);
    chart_ticks(c, false);
    chart_text(c, (CHART_LEFT + CHART_WIDTH - CHART_RIGHT) / 2.0, CHART_HEIGHT - 12, "faint",
               "middle", x_label);
    fprintf(
        c->text,
        "<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(16 %d) rotate(-90)\">",
        (CHART_TOP + CHART_HEIGHT - CHART_BOTTOM) / 2);
    svg_escape(c->text, y_label);
    fputs("</text>\n", c->text);
}

void svg_chart_line(svg_chart *c, svg_series series, const double *points, size_t count) {
    fprintf(c->text, "<polyline class=\"%s\" points=\"", series_name(series));
    for (size_t i = 0; i < count; i++)
        fprintf(c->text, "%s%.2f,%.2f", i ? " " : "", chart_x(c, points[2 * i]),
                chart_y(c, points[2 * i + 1]));
    fputs("\"/>\n", c->text);
}

void svg_chart_point(svg_chart *c, svg_series series, double x, double y, const char *says) {
    fprintf(c->text, "<circle class=\"%s-fill\" cx=\"%.2f\" cy=\"%.2f\" r=\"3.5\"><title>",
            series_name(series), chart_x(c, x), chart_y(c, y));
    svg_escape(c->text, says);
    fputs("</title></circle>\n", c->text);
}

void svg_chart_legend(svg_chart *c, svg_series series, int place, int below, const char *name) {
    const double y =
        below ? CHART_HEIGHT - CHART_BOTTOM - 14 - 18 * place : CHART_TOP + 16 + 18 * place;
    const double x = CHART_WIDTH - CHART_RIGHT - 12;
    fprintf(c->text,
            "<rect class=\"%s-fill\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" rx=\"2\"/>\n",
            series_name(series), x - 10, y - 9);
    chart_text(c, x - 16, y, "ink", "end", name);
}

void svg_bars_begin(svg_chart *c, const char *title, size_t count, double low, double high) {
    c->x0 = low < 0 ? low : 0;
    c->x1 = high > c->x0 ? high : c->x0 + 1;
    chart_open(c, title, CHART_TOP + BAR_STEP * (double)count + 12);
}

void svg_bars_add(svg_chart *c, svg_series series, size_t place, const char *name, double value) {
    const double unit = (CHART_WIDTH - BAR_LEFT - BAR_RIGHT) / (c->x1 - c->x0),
                 zero = BAR_LEFT - c->x0 * unit;
    const double y = CHART_TOP + BAR_STEP * (double)place, width = fabs(value) * unit;
    char number[32];
    snprintf(number, sizeof number, "%.4f", value);
    chart_text(c, BAR_LEFT - 8, y + 11, "ink", "end", name);
    fprintf(
        c->text,
        "<rect class=\"%s-fill\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" rx=\"2\"/>\n",
        series_name(series), value < 0 ? zero - width : zero, y, width, BAR_HEIGHT);
    chart_text(c, zero + (value > 0 ? width : 0) + 6, y + 11, "faint", "start", number);
}

void svg_chart_end(svg_chart *c) { fputs("</svg>\n", c->text); }
