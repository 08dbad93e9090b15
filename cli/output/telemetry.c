/* telemetry.c - see telemetry.h. Phases have names of their own in the library; here they are put
 * into seven stages. */
#include "cli/output/telemetry.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/json_out.h"

enum { OFF, TEXT, JSON };
enum { WAITING_MOST = 32 };

/* Stages by phase; phases that are parts of another one are not told. */
static const struct {
    const char *phase, *stage;
} stages[] = {
    { "open", "open" },          { "read inputs", "decode" }, { "decode", "decode" },
    { "picture", "preprocess" }, { "tokenise", "tokenize" },  { "run", "infer" },
    { "faces", "postprocess" },  { "pool", "postprocess" },   { "scores", "postprocess" },
    { "sparse", "postprocess" }, { "crop", "postprocess" },   { "write", "write" },
};

typedef struct line {
    const char *stage;
    double milliseconds;
    int64_t items;
} line;

static struct {
    pthread_mutex_t lock; /* of all below */
    const command *c;
    int format;
    int32_t threads;
    bool known; /* what runs the model */
    bool own;   /* the profile is this file's */
    pith_runtime_report report;
    line waiting[WAITING_MOST];
    size_t count;
} telemetry = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A word, or a text in quotes. */
static void put_value(bytes *out, const char *value) {
    if (*value && !strpbrk(value, " \"=\t"))
        bytes_print(out, "%s", value);
    else
        json_quote(out, (pith_str){ value, strlen(value) });
}

static void put_pair(bytes *out, const char *key, const char *value) {
    if (telemetry.format == TEXT) {
        bytes_print(out, "%s%s=", out->size ? " " : "", key);
        put_value(out, value);
    } else {
        bytes_print(out, "%s\"%s\": ", out->size ? ", " : "{", key);
        json_quote(out, (pith_str){ value, strlen(value) });
    }
}

static void put_number(bytes *out, const char *key, const char *format, double value) {
    bytes_print(out, telemetry.format == TEXT ? " %s=" : ", \"%s\": ", key);
    bytes_print(out, format, value);
}

/* The lock is held. */
static void tell_line(const line *l) {
    const pith_runtime_report *r = &telemetry.report;
    bytes out = { NULL, 0, 0 };
    put_pair(&out, "stage", l->stage);
    put_pair(&out, "command", telemetry.c->name);
    if (telemetry.known) {
        put_pair(&out, "runtime", r->name);
        put_pair(&out, "requested", r->requested);
        put_number(&out, "fallback", "%.0f", r->fallback);
        if (*r->reason) put_pair(&out, "reason", r->reason);
        put_pair(&out, "ep", *r->providers ? r->providers : "cpu");
    }
    put_number(&out, "threads", "%.0f", telemetry.threads);
    if (l->items >= 0) put_number(&out, "items", "%.0f", (double)l->items);
    put_number(&out, "ms", "%.3f", l->milliseconds);
    bytes_print(&out, telemetry.format == TEXT ? "\n" : "}\n");
    fwrite(out.data, 1, out.size, stderr);
    free(out.data);
}

static void tell_waiting(void) {
    for (size_t i = 0; i < telemetry.count; i++) tell_line(&telemetry.waiting[i]);
    telemetry.count = 0;
}

static void hear_phase(void *user, const pith_phase *phase) {
    (void)user;
    size_t i = 0, known = sizeof stages / sizeof *stages;
    while (i < known && strcmp(stages[i].phase, phase->name)) i++;
    if (i == known) return;
    const line l = { stages[i].stage, (double)(phase->end_ns - phase->begin_ns) * 1e-6,
                     phase->items };
    pthread_mutex_lock(&telemetry.lock);
    if (telemetry.known || telemetry.count == WAITING_MOST)
        tell_line(&l);
    else
        telemetry.waiting[telemetry.count++] = l;
    pthread_mutex_unlock(&telemetry.lock);
}

int telemetry_begin(pith_profile **profile, const command *c, int format, int32_t threads) {
    pith_error err = PITH_ERROR_INIT;
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    telemetry.format = format;
    if (format == OFF) return EXIT_DONE;
    telemetry.own = !*profile;
    if (telemetry.own && pith_profile_create(profile, NULL, &err))
        return fail(c, "%s", err.message);
    pith_cpu_report(&cpu, NULL);
    telemetry.c = c;
    telemetry.threads = threads ? threads : cpu.threads;
    pith_profile_tell(*profile, hear_phase, NULL, telemetry.own);
    return EXIT_DONE;
}

void telemetry_model(const pith_model *model) {
    if (telemetry.format == OFF) return;
    pthread_mutex_lock(&telemetry.lock);
    telemetry.report = (pith_runtime_report)PITH_RUNTIME_REPORT_INIT;
    telemetry.known = !pith_model_runtime(&telemetry.report, model, NULL);
    tell_waiting();
    pthread_mutex_unlock(&telemetry.lock);
}

void telemetry_end(pith_profile **profile) {
    if (telemetry.format == OFF) return;
    pthread_mutex_lock(&telemetry.lock);
    telemetry.known = false; /* the model may be closed */
    tell_waiting();
    pthread_mutex_unlock(&telemetry.lock);
    if (telemetry.own) {
        pith_profile_destroy(*profile);
        *profile = NULL;
    }
}
