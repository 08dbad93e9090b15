/* relational_plots.c - see relational_plots.h. */
#include "cli/tables/relational_plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_out.h"
#include "cli/drawing/drawing.h"
#include "cli/output/output.h"

enum { CALIBRATION_PARTS = 10, IMPORTANCE_BARS = 24, NAME_BYTES = 20 };
#define ROC_LEAST 0.001 /* points of the curve that are nearer than this are left out */

/* Opens RUN/name for a chart. */
static int plot_open(output *out, svg_chart *chart, char **path, const relational_run *run,
                     const command *c, const char *name) {
    *path = run_file(run->path, name);
    const int code = output_open(out, c, *path, NULL);
    chart->text = code ? NULL : out->file;
    if (code) free(*path);
    return code;
}

static int plot_close(output *out, char *path, const command *c) {
    const int code = output_close(out, c, true, EXIT_DONE);
    free(path);
    return code;
}

/* ---- the loss ---- */

/* Points x, y, x, y, … */
typedef struct plot_points {
    double *xy;
    size_t count;
} plot_points;

static void plot_add(plot_points *points, double x, double y) {
    points->xy = grow_for(points->xy, points->count, 2 * sizeof *points->xy);
    points->xy[2 * points->count] = x;
    points->xy[2 * points->count++ + 1] = y;
}

/* The losses of the log. A run that went on after a kill may have lines of the same step twice: the
 * later one counts. */
static void plot_read_log(plot_points *training, plot_points *validation, const char *path) {
    FILE *f = fopen(path, "r");
    json_t *line;
    while (f && (line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL))) {
        const double step = json_number_value(json_object_get(line, "step"));
        const json_t *loss = json_object_get(line, "loss"),
                     *other = json_object_get(json_object_get(line, "validation"), "logloss");
        while (training->count && training->xy[2 * training->count - 2] >= step) training->count--;
        while (validation->count && validation->xy[2 * validation->count - 2] >= step)
            validation->count--;
        if (loss) plot_add(training, step, json_number_value(loss));
        if (other) plot_add(validation, step, json_number_value(other));
        json_decref(line);
    }
    if (f) fclose(f);
}

static void plot_range(svg_chart *chart, const plot_points *points) {
    for (size_t i = 0; i < points->count; i++) {
        chart->x1 = fmax(chart->x1, points->xy[2 * i]);
        chart->y0 = fmin(chart->y0, points->xy[2 * i + 1]);
        chart->y1 = fmax(chart->y1, points->xy[2 * i + 1]);
    }
}

static void plot_series(svg_chart *chart, svg_series series, const plot_points *points, int place,
                        const char *name) {
    char says[80];
    if (!points->count) return;
    svg_chart_line(chart, series, points->xy, points->count);
    for (size_t i = 0; i < points->count; i++) {
        snprintf(says, sizeof says, "step %.0f: %.6g", points->xy[2 * i], points->xy[2 * i + 1]);
        svg_chart_point(chart, series, points->xy[2 * i], points->xy[2 * i + 1], says);
    }
    svg_chart_legend(chart, series, place, 0, name);
}

int plot_loss(const relational_run *run, const command *c) {
    plot_points training = { NULL, 0 }, validation = { NULL, 0 };
    svg_chart chart = { .x0 = 0, .x1 = 1, .y0 = INFINITY, .y1 = -INFINITY };
    char *path = run_file(run->path, "log.jsonl");
    output out;
    int code = EXIT_DONE;
    plot_read_log(&training, &validation, path);
    free(path);
    plot_range(&chart, &training);
    plot_range(&chart, &validation);
    if (chart.y0 <= chart.y1 && !(code = plot_open(&out, &chart, &path, run, c, "loss.svg"))) {
        const double margin = fmax(0.05 * (chart.y1 - chart.y0), 1e-3);
        chart.y0 -= margin;
        chart.y1 += margin;
        svg_chart_begin(&chart, "Loss", "step", "loss");
        plot_series(&chart, SVG_FIRST, &training, 0, "training");
        plot_series(&chart, SVG_SECOND, &validation, 1, "validation");
        svg_chart_end(&chart);
        code = plot_close(&out, path, c);
    }
    free(training.xy);
    free(validation.xy);
    return code;
}

/* ---- answers ---- */

typedef struct plot_answer {
    double answer, truth;
} plot_answer;

static int plot_compare(const void *a, const void *b) {
    const plot_answer *x = a, *y = b;
    return (x->answer > y->answer) - (x->answer < y->answer);
}

/* The answers of a part in ascending order, from malloc. */
static int plot_ask(plot_answer **answers, size_t *count, const relational_run *run,
                    const command *c, int32_t split, const pith_call *call) {
    pith_error err = PITH_ERROR_INIT;
    *answers = NULL;
    pith_status status = pith_relational_part(NULL, NULL, count, run->model, split, NULL, &err);
    uint32_t *rows = grow(NULL, *count * sizeof *rows);
    double *labels = grow(NULL, *count * sizeof *labels);
    float *said = grow(NULL, *count * sizeof *said);
    if (!status) status = pith_relational_part(rows, labels, count, run->model, split, NULL, &err);
    if (!status) status = pith_relational_predict(said, run->model, rows, *count, call, &err);
    if (!status) {
        *answers = grow(NULL, *count * sizeof **answers);
        for (size_t i = 0; i < *count; i++) (*answers)[i] = (plot_answer){ said[i], labels[i] };
        qsort(*answers, *count, sizeof **answers, plot_compare);
    }
    free(rows);
    free(labels);
    free(said);
    return status ? fail(c, "%s", err.message) : EXIT_DONE;
}

static int plot_roc(const relational_run *run, const command *c, const plot_answer *a,
                    size_t count) {
    svg_chart chart = { .x0 = 0, .x1 = 1, .y0 = 0, .y1 = 1 };
    const double equal[] = { 0, 0, 1, 1 };
    plot_points curve = { NULL, 0 };
    double yes = 0, true_positives = 0, false_positives = 0;
    char *path, title[60];
    output out;
    for (size_t i = 0; i < count; i++) yes += a[i].truth > 0;
    const double no = (double)count - yes;
    if (!(yes > 0 && no > 0)) return EXIT_DONE;
    const int code = plot_open(&out, &chart, &path, run, c, "roc.svg");
    if (code) return code;
    double area = 0, last_x = 0, last_y = 0;
    plot_add(&curve, 0, 0);
    for (size_t i = count; i-- > 0;) {
        *(a[i].truth > 0 ? &true_positives : &false_positives) += 1;
        if (i && a[i - 1].answer == a[i].answer) continue;
        const double x = false_positives / no, y = true_positives / yes;
        const double *drawn = curve.xy + 2 * curve.count - 2;
        area += (x - last_x) * (y + last_y) / 2;
        last_x = x;
        last_y = y;
        if (!i || fabs(x - drawn[0]) + fabs(y - drawn[1]) >= ROC_LEAST) plot_add(&curve, x, y);
    }
    snprintf(title, sizeof title, "ROC, area %.4f", area);
    svg_chart_begin(&chart, title, "share of the no predicted as yes",
                    "share of the yes that are found");
    svg_chart_line(&chart, SVG_REFERENCE, equal, 2);
    svg_chart_line(&chart, SVG_FIRST, curve.xy, curve.count);
    svg_chart_legend(&chart, SVG_FIRST, 1, 1, "model");
    svg_chart_legend(&chart, SVG_REFERENCE, 0, 1, "chance");
    svg_chart_end(&chart);
    free(curve.xy);
    return plot_close(&out, path, c);
}

/* Means of tenths of the rows, by their answers. */
static int plot_calibration(const relational_run *run, const command *c, const plot_answer *a,
                            size_t count, bool yes) {
    svg_chart chart = { .x0 = 0, .x1 = 1, .y0 = 0, .y1 = 1 };
    double points[2 * CALIBRATION_PARTS], low = INFINITY, high = -INFINITY;
    size_t parts = count < CALIBRATION_PARTS ? count : CALIBRATION_PARTS;
    char *path, says[120];
    output out;
    for (size_t p = 0; p < parts; p++) {
        const size_t from = p * count / parts, to = (p + 1) * count / parts;
        double *mean = points + 2 * p;
        mean[0] = mean[1] = 0;
        for (size_t i = from; i < to; i++) {
            mean[0] += a[i].answer / (double)(to - from);
            mean[1] += a[i].truth / (double)(to - from);
        }
        low = fmin(low, fmin(mean[0], mean[1]));
        high = fmax(high, fmax(mean[0], mean[1]));
    }
    const int code = plot_open(&out, &chart, &path, run, c, "calibration.svg");
    if (code) return code;
    const double margin = fmax((high - low) * 0.05, 1e-3),
                 equal[] = { low - margin, low - margin, high + margin, high + margin };
    chart.x0 = chart.y0 = equal[0];
    chart.x1 = chart.y1 = equal[2];
    svg_chart_begin(&chart, "Calibration, by tenths of the rows",
                    yes ? "mean probability" : "mean answer", yes ? "share of yes" : "mean label");
    svg_chart_line(&chart, SVG_REFERENCE, equal, 2);
    svg_chart_line(&chart, SVG_FIRST, points, parts);
    for (size_t p = 0; p < parts; p++) {
        snprintf(says, sizeof says, "said %.6g, true %.6g, %zu rows", points[2 * p],
                 points[2 * p + 1], (p + 1) * count / parts - p * count / parts);
        svg_chart_point(&chart, SVG_FIRST, points[2 * p], points[2 * p + 1], says);
    }
    svg_chart_legend(&chart, SVG_FIRST, 1, 1, "model");
    svg_chart_legend(&chart, SVG_REFERENCE, 0, 1, "said = true");
    svg_chart_end(&chart);
    return plot_close(&out, path, c);
}

int plot_answers(const relational_run *run, const command *c, int32_t split,
                 const pith_call *call) {
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    plot_answer *answers;
    size_t count;
    pith_relational_get_state(&state, run->model);
    if (state.outputs != 1) return EXIT_DONE;
    int code = plot_ask(&answers, &count, run, c, split, call);
    const bool yes = state.target == PITH_TARGET_BOOLEAN;
    if (!code && count && yes) code = plot_roc(run, c, answers, count);
    if (!code && count) code = plot_calibration(run, c, answers, count, yes);
    free(answers);
    return code;
}

/* ---- importance ---- */

/* Bytes of a name that has room, and whole characters. */
static int plot_cut(const char *name) { return pith__text_most(name, strlen(name), NAME_BYTES); }

int plot_importance(const relational_run *run, const command *c, const json_t *rises) {
    const size_t all = json_array_size(rises),
                 count = all < IMPORTANCE_BARS ? all : IMPORTANCE_BARS;
    svg_chart chart;
    char *path, name[64];
    output out;
    double low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        const double rise = json_real_value(json_object_get(json_array_get(rises, i), "loss_rise"));
        low = fmin(low, rise);
        high = fmax(high, rise);
    }
    const int code = count ? plot_open(&out, &chart, &path, run, c, "importance.svg") : EXIT_DONE;
    if (code || !count) return code;
    svg_bars_begin(&chart, "Rise of the loss where a column or a whole table is hidden", count, low,
                   high);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(rises, i), *column = json_object_get(one, "column");
        const char *table = json_string_value(json_object_get(one, "table"));
        if (column)
            snprintf(name, sizeof name, "%.*s.%.*s", plot_cut(table), table,
                     plot_cut(json_string_value(column)), json_string_value(column));
        else
            snprintf(name, sizeof name, "all of %.*s", plot_cut(table), table);
        svg_bars_add(&chart, column ? SVG_FIRST : SVG_SECOND, i, name,
                     json_real_value(json_object_get(one, "loss_rise")));
    }
    svg_chart_end(&chart);
    return plot_close(&out, path, c);
}
