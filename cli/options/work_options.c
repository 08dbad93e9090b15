/* work_options.c - see work_options.h. */
#include "cli/options/work_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/message.h"
#include "cli/output/output.h"
#include "cli/output/profile_file.h"

int work_begin(const command *c, const work_settings *w, pith_open_options *open) {
    const pith_batching *b = &w->batching;
    if (w->deterministic && open->precision == PITH_PRECISION_BF16)
        return usage(c, "--deterministic and --precision bf16 do not go together: in bf16, vectors "
                        "depend on the "
                        "processor");
    if (b->least && b->most && b->least > b->most)
        return usage(c, "--min-batch-size %d is above --max-batch-size %d", (int)b->least,
                     (int)b->most);
    open->call.log = &warnings;
    if (w->check) open->flags |= PITH_OPEN_CHECK;
    if (w->strict) open->flags |= PITH_OPEN_STRICT_SHAPES;
    if (!w->prediction) open->flags |= PITH_OPEN_NO_PREDICTION;
    if (!w->arena) open->flags |= PITH_OPEN_NO_ARENA;
    if (!w->plan_reuse) open->flags |= PITH_OPEN_NO_PLAN_REUSE;
    return EXIT_DONE;
}

/* The members of the object as the table of the library has its numbers. */
static void add_lines(bytes *text, json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (json_is_integer(value))
            bytes_print(text, "%-28s %lld\n", key, (long long)json_integer_value(value));
        if (json_is_real(value)) bytes_print(text, "%-28s %.6g\n", key, json_real_value(value));
    }
}

void work_numbers(bytes *text, const pith_model *model, pith_statistics_form form) {
    pith_statistics numbers = PITH_STATISTICS_INIT;
    const pith_writer writer = bytes_writer(text);
    if (!pith_model_statistics(&numbers, model, NULL))
        pith_statistics_write(&numbers, form, &writer, NULL);
}

/* What is to be told, with a newline at its end. */
static void tell_stats(bytes *text, const work_settings *w, json_t *first,
                       const pith_model *model) {
    const bool table = w->stats == STATS_TEXT;
    bytes told = { NULL, 0, 0 };
    if (model) work_numbers(&told, model, table ? PITH_STATISTICS_TEXT : PITH_STATISTICS_JSON);
    if (table) {
        add_lines(text, first);
        bytes_add(text, told.data, told.size);
    } else {
        json_t *all = told.size ? json_loadb(told.data, told.size, 0, NULL) : NULL;
        if (all) json_object_set_new(first, "statistics", all);
        char *line = json_dumps(first, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        if (line) bytes_print(text, "%s\n", line);
        free(line);
    }
    free(told.data);
}

int work_stats(const command *c, const work_settings *w, json_t *first, const pith_model *model,
               const string_list *inputs, int code) {
    bytes text = { NULL, 0, 0 };
    output out;
    if (first && (w->stats != STATS_NONE || w->stats_file)) tell_stats(&text, w, first, model);
    json_decref(first);
    if (text.size && !w->stats_file) fwrite(text.data, 1, text.size, stderr);
    if (text.size && w->stats_file) {
        int opened = output_open(&out, c, w->stats_file, inputs);
        if (!opened) {
            output_write(&out, text.data, text.size);
            opened = output_close(&out, c, true, EXIT_DONE);
        }
        if (!code) code = opened;
    }
    free(text.data);
    return code;
}

int work_open(work_model *w) {
    pith_error err = PITH_ERROR_INIT;
    int code = runtime_choice_check(w->c, w->runtime);
    if (!code) code = work_begin(w->c, w->work, w->open);
    if (!code) code = profile_open(w->profile, w->c, w->work->profile, w->inputs);
    if (!code) code = telemetry_begin(w->profile, w->c, w->runtime->telemetry, w->threads);
    if (code) return code;
    w->open->call.profile = *w->profile;
    runtime_choice_apply(w->open, w->runtime, w->threads);
    if (pith_model_open(&w->model, w->path, w->open, &err)) {
        pith_profile_destroy(*w->profile);
        runtime_choice_free(w->runtime);
        return fail_model(w->c, &err, w->path);
    }
    telemetry_model(w->model);
    w->began = now_seconds();
    return EXIT_DONE;
}

void work_tell_max_length(const pith_model *model, const int32_t *max_length) {
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    if (!option_by_flag(max_length)) return;
    options.max_length = *max_length;
    const size_t most = pith_embed_max_length(model, &options);
    if (most && most < (size_t)*max_length)
        note("warning: --max-length %d is above what the model takes; texts are cut at %zu tokens",
             (int)*max_length, most);
}

int work_tell(const work_model *w, int code) {
    return work_stats(w->c, w->work, json_pack("{s:f}", "seconds", now_seconds() - w->began),
                      w->model, w->inputs, code);
}

int work_close(work_model *w, int code) {
    pith_model_close(w->model);
    runtime_choice_free(w->runtime);
    telemetry_end(w->profile);
    return profile_close(*w->profile, w->c, code);
}
