/* step_times.c - reads a profile back as times of steps. */
#include "cli/measure/step_times.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/text_input.h"

static json_t *load(const pith_profile *profile) {
    bytes text = { NULL, 0, 0 };
    json_t *json = NULL;
    const pith_writer writer = bytes_writer(&text);
    if (!pith_profile_write(profile, NULL, &writer, NULL))
        json = json_loadb(text.data, text.size, 0, NULL);
    free(text.data);
    return json;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static bool is_main_step(const json_t *event) {
    return !strcmp(text_of(event, "cat"), "step") &&
           number_of(json_object_get(event, "args"), "depth") == 0;
}

/* The step of an event; a new one has room for so many runs. */
static step_time *find(step_times *times, const json_t *event, size_t runs) {
    const json_t *args = json_object_get(event, "args");
    int64_t step = (int64_t)number_of(args, "step");
    for (size_t i = 0; i < times->count; i++)
        if (times->steps[i].step == step) return &times->steps[i];
    times->steps = grow_for(times->steps, times->count, sizeof *times->steps);
    step_time *s = &times->steps[times->count++];
    *s = (step_time){ .step = step,
                      .op = strdup(text_of(event, "name")),
                      .node = strdup(text_of(args, "node")),
                      .shapes = strdup(text_of(args, "shapes")),
                      .kernel = strdup(text_of(args, "kernel")),
                      .seconds = calloc(runs, sizeof *s->seconds),
                      .fraction = calloc(runs, sizeof *s->fraction) };
    if (!s->op || !s->node || !s->shapes || !s->kernel || !s->seconds || !s->fraction)
        grow(NULL, SIZE_MAX);
    return s;
}

bool step_times_add(step_times *times, const pith_profile *profile, double peak, size_t runs) {
    size_t i;
    json_t *event, *json = load(profile);
    if (!json) return false;
    for (size_t s = 0; s < times->count; s++) times->steps[s].flop = times->steps[s].bytes = 0;
    json_array_foreach(json_object_get(json, "traceEvents"), i, event) {
        if (!is_main_step(event)) continue;
        const json_t *args = json_object_get(event, "args");
        step_time *s = find(times, event, runs);
        if (s->runs < runs) s->seconds[s->runs] += number_of(event, "dur") * 1e-6;
        s->flop += number_of(args, "flop");
        s->bytes += number_of(args, "bytes");
    }
    json_decref(json);
    for (size_t k = 0; k < times->count; k++) {
        step_time *s = &times->steps[k];
        if (s->runs == runs) continue;
        if (s->seconds[s->runs] > 0 && peak > 0)
            s->fraction[s->runs] = s->flop / s->seconds[s->runs] / peak;
        s->runs++;
    }
    return true;
}

void step_times_free(step_times *times) {
    for (size_t i = 0; i < times->count; i++) {
        step_time *s = &times->steps[i];
        free(s->op);
        free(s->node);
        free(s->shapes);
        free(s->kernel);
        free(s->seconds);
        free(s->fraction);
    }
    free(times->steps);
}

double profile_flop(const pith_profile *profile) {
    size_t i;
    double flop = 0;
    json_t *event, *json = load(profile);
    if (!json) return -1;
    json_array_foreach(json_object_get(json, "traceEvents"), i, event) if (is_main_step(event))
        flop += number_of(json_object_get(event, "args"), "flop");
    json_decref(json);
    return flop;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *numbers, size_t count, double share) {
    if (!count) return 0;
    qsort(numbers, count, sizeof *numbers, ascending);
    double at = share * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return numbers[below] + (numbers[above] - numbers[below]) * (at - (double)below);
}
