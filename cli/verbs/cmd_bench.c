/* cmd_bench.c - pith bench: how fast a model embeds text on this machine.
 *
 * Workloads are made up (the same on every machine) or read from a file. Each round runs all
 * workloads, with a measurement of the peak-FMA loop before each one. So a machine whose speed
 * drifts changes all of them alike. Medians are shown. FLOP are counted by the steps of a profiled
 * run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/compare/bench_runtimes.h"
#include "cli/input/synthetic_texts.h"
#include "cli/measure/cpu_peak.h"
#include "cli/measure/step_times.h"
#include "cli/options/work_options.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"
#include "cli/output/profile_file.h"

/* How long the peak-FMA loop runs before each workload. Longer steadies the peak; shorter leaves
 * less time for the clock to change between the loop and the workload. */
#define PEAK_SECONDS 0.01

/* The most numbers of threads, of texts at a time and of workloads that can be asked for; how often
 * the model is opened to time opening. */
enum { THREAD_COUNTS = 8, CHUNKS = 8, WORKLOADS = 6, OPENS = 5 };

typedef struct workload {
    const char *name;
    bytes text;
    size_t *ends; /* of the texts, in text */
    pith_str *texts;
    size_t count;
    uint64_t tokens;
    double flop;
} workload;

/* One workload with one number of threads and of texts at a time. */
typedef struct series {
    const workload *load;
    int32_t threads;
    int32_t chunk;
    char name[32];                       /* the workload, and the chunk where one was asked for */
    double *seconds, *processor, *peaks; /* by round; a query's by call, peaks always by round */
    size_t calls, rounds;
} series;

typedef struct memory {
    int64_t resident, anonymous, peak;
} memory;

typedef struct bench {
    const command *command;
    const char *path;
    pith_cpu_info cpu;
    pith_open_options open;
    pith_embed_options embed;
    pith_model *model;
    float *vectors;
    workload loads[WORKLOADS];
    size_t load_count;
    int32_t threads[THREAD_COUNTS];
    size_t thread_counts;
    int32_t chunks[CHUNKS]; /* INT32_MAX: all texts */
    size_t chunk_counts;
    int32_t rounds, tokens, count; /* count: texts of a workload; 0: as many as have the tokens */
    series *series;
    size_t series_count;
    double open_seconds[OPENS], first_seconds;
    memory opened, worked; /* anonymous: the most seen between workloads */
    double bandwidth;
} bench;

/* ---- texts ---- */

static void end_text(workload *w) {
    w->ends = grow_for(w->ends, w->count, sizeof *w->ends);
    w->ends[w->count++] = w->text.size;
}

/* words: of each text; 0 mixed, -1 short. count: of texts; 0: as many as have about so many tokens.
 */
static void make_texts(workload *w, const char *name, int words, int32_t tokens, int32_t count) {
    uint64_t seed = 7;
    w->name = name;
    for (int made = 0; count ? w->count < (size_t)count : !made || made < tokens;) {
        int length = 10;
        if (words > 0)
            length = words;
        else if (words == 0)
            length = synthetic_length(&seed);
        if (words < 0)
            bytes_print(&w->text, "user_id of customers variant_%zu", w->count);
        else
            synthetic_words(&w->text, length, &seed);
        end_text(w);
        made += length + 2;
    }
}

static int read_texts(bench *b, workload *w, const char *path) {
    text_input in;
    string_list paths = { &path, 1 };
    int state;
    w->name = "texts";
    text_input_open(&in, &paths);
    while ((state = text_input_next(&in, &w->text, NULL)) > 0) end_text(w);
    text_input_close(&in);
    if (state < 0) return fail(b->command, "%s", in.message);
    return w->count ? EXIT_DONE : fail(b->command, "%s: the file has no text", path);
}

static const struct {
    const char *name;
    int words;
} kinds[] = {
    { "short", -1 }, { "mixed", 0 }, { "words110", 110 }, { "tokens512", 510 }, { "query", 10 }
};
#define KINDS (sizeof kinds / sizeof *kinds)

static bool is_wanted(const string_list *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->items[i], name)) return true;
    return !names->count;
}

static int make_loads(bench *b, const string_list *names, const char *path) {
    for (size_t i = 0; i < names->count; i++) {
        size_t k = 0;
        while (k < KINDS && strcmp(kinds[k].name, names->items[i])) k++;
        if (k == KINDS)
            return usage(
                b->command,
                "unknown workload '%s'; known are short, mixed, words110, tokens512 and query",
                names->items[i]);
    }
    if (!path)
        for (size_t k = 0; k < KINDS; k++) {
            bool one = !strcmp(kinds[k].name, "query");
            if (is_wanted(names, kinds[k].name))
                make_texts(&b->loads[b->load_count++], kinds[k].name, kinds[k].words, b->tokens,
                           one ? 1 : b->count);
        }
    int code = path ? read_texts(b, &b->loads[b->load_count++], path) : EXIT_DONE;
    for (size_t i = 0; i < b->load_count; i++) {
        workload *w = &b->loads[i];
        w->texts = grow(NULL, w->count * sizeof *w->texts);
        for (size_t t = 0; t < w->count; t++) {
            size_t begin = t ? w->ends[t - 1] : 0;
            w->texts[t] = bytes_text(&w->text, begin, w->ends[t]);
        }
    }
    return code;
}

/* ---- measuring ---- */

static double processor_seconds(void) { return seconds_on(CLOCK_PROCESS_CPUTIME_ID); }

/* Linux: what the kernel counts for this process; zeros elsewhere. */
static memory read_memory(void) {
    memory m = { 0, 0, 0 };
    char line[200];
    long long kb;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmRSS: %lld", &kb) == 1) m.resident = kb * 1024;
        if (sscanf(line, "RssAnon: %lld", &kb) == 1) m.anonymous = kb * 1024;
        if (sscanf(line, "VmHWM: %lld", &kb) == 1) m.peak = kb * 1024;
    }
    if (file) fclose(file);
    return m;
}

/* Embeds the texts of a workload, `chunk` of them with each call. */
static pith_status bench_embed(bench *b, const workload *w, int32_t chunk, int32_t threads,
                               pith_profile *profile, pith_embed_stats *stats, pith_error *err) {
    pith_embed_options options = b->embed;
    pith_status status = PITH_OK;
    options.call.threads = threads;
    options.call.profile = profile;
    options.stats = stats;
    for (size_t begin = 0, n; begin < w->count && !status; begin += n) {
        n = w->count - begin < (size_t)chunk ? w->count - begin : (size_t)chunk;
        status = pith_embed(b->vectors, b->model, w->texts + begin, n, &options, err);
    }
    return status;
}

/* Tokens and FLOP of a workload; the run also warms everything up. */
static pith_status count_work(bench *b, workload *w, pith_error *err) {
    pith_profile *profile;
    pith_embed_stats stats = { 0 };
    pith_status status = pith_profile_create(&profile, NULL, err);
    if (status) return status;
    status = bench_embed(b, w, INT32_MAX, 1, profile, &stats, err);
    w->tokens = stats.tokens;
    w->flop = profile_flop(profile);
    pith_profile_destroy(profile);
    return status;
}

/* So many calls a round that one text is measured often and a batch once. */
static size_t calls_of(const workload *w) { return w->count == 1 ? 40 : 1; }

static pith_status run_series(bench *b, series *s, pith_error *err) {
    s->peaks[s->rounds++] = cpu_peak_flops(s->threads, PEAK_SECONDS);
    for (size_t i = 0; i < calls_of(s->load); i++) {
        double processor = processor_seconds(), begin = now_seconds();
        pith_status status = bench_embed(b, s->load, s->chunk, s->threads, NULL, NULL, err);
        if (status) return status;
        s->seconds[s->calls] = now_seconds() - begin;
        s->processor[s->calls++] = processor_seconds() - processor;
    }
    memory m = read_memory();
    if (m.anonymous > b->worked.anonymous) b->worked.anonymous = m.anonymous;
    return PITH_OK;
}

static void make_series(bench *b) {
    const size_t each = b->thread_counts * b->chunk_counts;
    b->series = grow(NULL, b->load_count * each * sizeof *b->series);
    for (size_t i = 0; i < b->load_count * each; i++) {
        const workload *w = &b->loads[i / each];
        size_t calls = calls_of(w) * (size_t)b->rounds;
        series *s = &b->series[b->series_count++];
        *s = (series){ .load = w,
                       .threads = b->threads[i % b->thread_counts],
                       .chunk = b->chunks[i / b->thread_counts % b->chunk_counts],
                       .seconds = grow(NULL, calls * sizeof(double)),
                       .processor = grow(NULL, calls * sizeof(double)),
                       .peaks = grow(NULL, (size_t)b->rounds * sizeof(double)) };
        snprintf(s->name, sizeof s->name, s->chunk == INT32_MAX ? "%s" : "%s/%d", w->name,
                 (int)s->chunk);
    }
}

/* Opening again and again, the last time up to a first vector. The file is in the page cache by
 * now. */
static pith_status measure_opening(bench *b, pith_error *err) {
    pith_str text = { "hello", 5 };
    for (int i = 0; i < OPENS; i++) {
        pith_model *model;
        double begin = now_seconds();
        pith_status status = pith_model_open(&model, b->path, &b->open, err);
        if (status) return status;
        b->open_seconds[i] = now_seconds() - begin;
        if (i == OPENS - 1) status = pith_embed(b->vectors, model, &text, 1, NULL, err);
        b->first_seconds = now_seconds() - begin;
        pith_model_close(model);
        if (status) return status;
    }
    return PITH_OK;
}

static pith_status bench_measure(bench *b, pith_profile *profile, pith_error *err) {
    size_t most = 1;
    b->opened = read_memory();
    for (size_t i = 0; i < b->load_count; i++)
        if (b->loads[i].count > most) most = b->loads[i].count;
    size_t dim = pith_embed_dim(b->model, &b->embed);
    /* options and model alone */
    pith_status status = pith_embed(NULL, b->model, NULL, 0, &b->embed, err);
    b->vectors = grow(NULL, most * dim * sizeof *b->vectors);
    for (size_t i = 0; i < b->load_count && !status; i++) status = count_work(b, &b->loads[i], err);
    make_series(b);
    for (int32_t r = 0; r < b->rounds; r++)
        for (size_t s = 0; s < b->series_count && !status; s++)
            status = run_series(b, &b->series[s], err);
    if (profile)
        for (size_t s = 0; s < b->series_count && !status; s++) {
            uint64_t begin = pith_profile_now();
            status = bench_embed(b, b->series[s].load, b->series[s].chunk, b->series[s].threads,
                                 profile, NULL, err);
            pith_profile_phase(profile, b->series[s].name, begin);
        }
    b->worked.peak = read_memory().peak;
    if (!status) status = measure_opening(b, err);
    b->bandwidth = cpu_peak_bandwidth(b->threads[b->thread_counts - 1]);
    return status;
}

/* ---- telling ---- */

typedef struct summary {
    double seconds, least, most, p90, p99, processor, peak;
} summary;

static summary summarize(series *s) {
    summary m = { .seconds = quantile(s->seconds, s->calls, 0.5) };
    m.least = s->seconds[0];
    m.most = s->seconds[s->calls - 1];
    m.p90 = quantile(s->seconds, s->calls, 0.9);
    m.p99 = quantile(s->seconds, s->calls, 0.99);
    m.processor = quantile(s->processor, s->calls, 0.5);
    m.peak = quantile(s->peaks, s->rounds, 0.5);
    return m;
}

static void bench_print_text(bench *b) {
    printf("model      %s\n", b->path);
    printf("processor  %s, %d threads usable; reads %.1f GB/s\n", b->cpu.isa, (int)b->cpu.threads,
           b->bandwidth * 1e-9);
    printf("opening    %.1f ms, to the first vector %.1f ms\n",
           quantile(b->open_seconds, OPENS, 0.5) * 1e3, b->first_seconds * 1e3);
    printf("memory     %.1f MB resident at most, %.1f MB of it private; %.1f and %.1f MB when "
           "opened\n",
           (double)b->worked.peak / 1e6, (double)b->worked.anonymous / 1e6,
           (double)b->opened.resident / 1e6, (double)b->opened.anonymous / 1e6);
    printf("\n%-12s %7s %6s %9s %10s %10s %11s %9s %8s %8s\n", "workload", "threads", "texts",
           "texts/s", "tokens/s", "ms per call", "spread", "GFLOP/s", "% peak", "cpu/wall");
    for (size_t i = 0; i < b->series_count; i++) {
        series *s = &b->series[i];
        summary m = summarize(s);
        printf("%-12s %7d %6zu %9.1f %10.0f %10.3f %5.2f..%4.2f %9.1f %8.1f %8.2f\n", s->name,
               s->threads, s->load->count, (double)s->load->count / m.seconds,
               (double)s->load->tokens / m.seconds, m.seconds * 1e3, m.least / m.seconds,
               m.most / m.seconds, s->load->flop / m.seconds * 1e-9,
               100 * s->load->flop / m.seconds / m.peak, m.processor / m.seconds);
    }
    for (size_t i = 0; i < b->series_count; i++) {
        series *s = &b->series[i];
        if (s->load->count > 1) continue;
        summary m = summarize(s);
        printf("\none text of %d tokens, %d thread%s: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms of %zu "
               "calls",
               (int)s->load->tokens, s->threads, s->threads > 1 ? "s" : "", m.seconds * 1e3,
               m.p90 * 1e3, m.p99 * 1e3, s->calls);
    }
    putchar('\n');
}

static json_t *series_json(series *s) {
    summary m = summarize(s);
    return json_pack(
        "{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "workload", s->load->name, "threads", (int)s->threads, "chunk",
        (json_int_t)((size_t)s->chunk < s->load->count ? (size_t)s->chunk : s->load->count),
        "texts", (json_int_t)s->load->count, "tokens", (json_int_t)s->load->tokens, "flop",
        (json_int_t)s->load->flop, "calls", (json_int_t)s->calls, "seconds", m.seconds,
        "seconds_min", m.least, "seconds_max", m.most, "seconds_p90", m.p90, "seconds_p99", m.p99,
        "cpu_seconds", m.processor, "tokens_per_second", (double)s->load->tokens / m.seconds,
        "peak_flop_per_second", m.peak, "peak_fraction", s->load->flop / m.seconds / m.peak);
}

static void bench_print_json(bench *b) {
    json_t *results = json_array();
    for (size_t i = 0; i < b->series_count; i++)
        json_array_append_new(results, series_json(&b->series[i]));
    json_t *json = json_pack(
        "{s:s, s:o, s:s, s:i, s:f, s:f, s:f, s:{s:I, s:I, s:I, s:I}, s:o}", "version",
        pith_version(), "model", json_text(b->path), "isa", b->cpu.isa, "threads",
        (int)b->cpu.threads, "read_bytes_per_second", b->bandwidth, "open_seconds",
        quantile(b->open_seconds, OPENS, 0.5), "first_vector_seconds", b->first_seconds, "memory",
        "opened_bytes", (json_int_t)b->opened.resident, "opened_anonymous_bytes",
        (json_int_t)b->opened.anonymous, "peak_bytes", (json_int_t)b->worked.peak,
        "anonymous_bytes", (json_int_t)b->worked.anonymous, "results", results);
    json_print(json);
}

/* The numbers of a list, from 1 to most. */
static int take_numbers(int32_t *numbers, size_t *count, size_t room, const bench *b,
                        const char *flag, const string_list *given, int32_t most) {
    if (given->count > room)
        return usage(b->command, "%s may be given %zu times at most", flag, room);
    for (size_t i = 0; i < given->count; i++) {
        char *end;
        long n = strtol(given->items[i], &end, 10);
        if (*end || n < 1 || n > most)
            return usage(b->command, "%s must be a number from 1 to %d, not '%s'", flag, (int)most,
                         given->items[i]);
        numbers[(*count)++] = (int32_t)n;
    }
    return EXIT_DONE;
}

static int take_counts(bench *b, const string_list *threads, const string_list *chunks) {
    const int32_t all = b->cpu.threads;
    int code =
        take_numbers(b->threads, &b->thread_counts, THREAD_COUNTS, b, "--threads", threads, 4096);
    if (!code)
        code = take_numbers(b->chunks, &b->chunk_counts, CHUNKS, b, "--chunk", chunks, INT32_MAX);
    if (!threads->count) b->threads[b->thread_counts++] = 1;
    if (!threads->count && all > 1) b->threads[b->thread_counts++] = all;
    if (!chunks->count) b->chunks[b->chunk_counts++] = INT32_MAX;
    return code;
}

static void bench_end(bench *b) {
    for (size_t i = 0; i < b->load_count; i++) {
        free(b->loads[i].text.data);
        free(b->loads[i].ends);
        free(b->loads[i].texts);
    }
    for (size_t i = 0; i < b->series_count; i++) {
        free(b->series[i].seconds);
        free(b->series[i].processor);
        free(b->series[i].peaks);
    }
    free(b->series);
    free(b->vectors);
}

static int bench_work(bench *b, bool as_json, const char *profile_path) {
    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    int code = profile_open(&profile, b->command, profile_path, NULL);
    if (code) return code;
    b->open.call.profile = profile;
    if (pith_model_open(&b->model, b->path, &b->open, &err)) {
        pith_profile_destroy(profile);
        return fail_model(b->command, &err, b->path);
    }
    b->open.call.profile = NULL;
    work_tell_max_length(b->model, &b->embed.max_length);
    if (bench_measure(b, profile, &err))
        code = fail(b->command, "%s", err.message);
    else if (as_json)
        bench_print_json(b);
    else
        bench_print_text(b);
    code = output_close_standard(b->command, code);
    pith_model_close(b->model);
    return profile_close(profile, b->command, code);
}

typedef struct bench_settings {
    bench bench;
    const char *texts, *profile;
    const char *runtimes;
    bool json, pin;
    double atol;
    string_list names, threads, chunks, shapes;
    runtime_choice runtime;
} bench_settings;

/* Splits "builtin,ort" into two names; EXIT_USAGE after a message. A single name is put into
 * s->runtime. */
static int take_runtimes(const command *c, bench_settings *s, char names[RUNTIMES][16]) {
    static const char *const known[] = { "builtin", "ort", "auto" };
    int count = s->runtimes ? sscanf(s->runtimes, "%15[^,],%15[^,]", names[0], names[1]) : 0;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < 3 && strcmp(known[k], names[i])) k++;
        if (k == 3)
            return usage(c, "unknown runtime '%s'; --runtime is builtin, ort, auto, or two of them",
                         names[i]);
        s->runtime.name = k;
    }
    if (s->runtimes && (count < 1 || strlen(s->runtimes) !=
                                         strlen(names[0]) + (count > 1 ? strlen(names[1]) + 1 : 0)))
        return usage(c, "--runtime is one runtime, or two with a comma between them, not '%s'",
                     s->runtimes);
    return EXIT_DONE;
}

static int bench_two(bench_settings *s, char names[RUNTIMES][16]) {
    bench *b = &s->bench;
    bench_texts loads[WORKLOADS];
    for (size_t i = 0; i < b->load_count; i++)
        loads[i] = (bench_texts){ b->loads[i].name, b->loads[i].texts, b->loads[i].count };
    const bench_runtimes two = { .command = b->command,
                                 .model = b->path,
                                 .names = { names[0], names[1] },
                                 .open = b->open,
                                 .embed = b->embed,
                                 .choice = &s->runtime,
                                 .threads = b->threads,
                                 .thread_count = b->thread_counts,
                                 .loads = loads,
                                 .load_count = b->load_count,
                                 .shapes = &s->shapes,
                                 .rounds = b->rounds,
                                 .atol = s->atol,
                                 .as_json = s->json };
    return bench_runtimes_run(&two);
}

static int bench_run(int argc, char **argv) {
    const command *c = &command_bench;
    string_list rest = { NULL, 0 };
    bench_settings s = { .bench = { .command = c,
                                    .cpu = PITH_CPU_INFO_INIT,
                                    .open = PITH_OPEN_OPTIONS_INIT,
                                    .embed = PITH_EMBED_OPTIONS_INIT } };
    char two[RUNTIMES][16] = { "", "" };
    s.bench.open.call.log = &warnings;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0 && rest.count)
        code = usage(c, "unexpected argument '%s'; give the model with -m", rest.items[0]);
    if (code < 0 && s.texts && s.names.count)
        code = usage(c, "--texts and --workload do not go together");
    if (code < 0 && take_runtimes(c, &s, two)) code = EXIT_USAGE;
    if (code < 0) {
        pith_pin_threads(s.pin);
        pith_cpu_report(&s.bench.cpu, NULL);
        code = take_counts(&s.bench, &s.threads, &s.chunks);
        if (!code) code = make_loads(&s.bench, &s.names, s.texts);
        if (!*two[1])
            runtime_choice_apply(&s.bench.open, &s.runtime,
                                 s.bench.threads[s.bench.thread_counts - 1]);
        if (!code) code = *two[1] ? bench_two(&s, two) : bench_work(&s.bench, s.json, s.profile);
        bench_end(&s.bench);
    }
    free(s.names.items);
    free(s.threads.items);
    free(s.chunks.items);
    free(s.shapes.items);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, bench_settings, member)

static const option options[] = {
    OPTION_SECTION("model"),
    AT(model, bench.path),
    AT(max_length, bench.embed.max_length),
    AT(optimization, bench.open.optimization),
    AT(precision, bench.open.precision),
    AT(model_file, bench.open.model_file),
    AT(route, bench.open.route),
    OPTION_SECTION("work"),
    AT(workload, names),
    AT(texts, texts),
    AT(tokens, bench.tokens),
    AT(count_bench, bench.count),
    AT(chunk, chunks),
    AT(rounds, bench.rounds),
    AT(threads_bench, threads),
    AT(inter_op_threads, bench.open.inter_op_threads),
    AT(pin, pin),
    AT(batch_tokens, bench.embed.batch_tokens),
    OPTION_SECTION("runtime"),
    AT(runtime_bench, runtimes),
    AT(atol_bench, atol),
    AT(input_shape, shapes),
    OPTIONS_ORT(bench_settings, runtime),
    OPTION_SOURCES,
    OPTION_SECTION("output"),
    AT(json, json),
    AT(profile_bench, profile),
    OPTION_END,
};

static const example examples[] = {
    { "pith bench", "all workloads, one thread and all" },
    { "pith bench --workload query --workload mixed", "only these workloads" },
    { "pith bench -m model --texts corpus.txt -t 4", "your own texts, four threads" },
    { "pith bench --workload short --count 8192 --chunk 512 --chunk 8192",
      "8192 names, in parts and at once" },
    { "pith bench --runtime builtin,ort -m yunet.onnx --input-shape input=1x3x320x320",
      "side by side" },
    { "pith bench --profile trace.json --rounds 1", "a trace of where the time goes" },
    { NULL, NULL },
};

const command command_bench = {
    .name = "bench",
    .summary = "measure how fast a model embeds text on this machine",
    .forms = "[-m MODEL] [options]",
    .description = "Prints texts and tokens per second, latency, the share of the multiply-add "
                   "peak, the time to open the "
                   "model, and memory. docs/cli.md lists the keys of --json.\n"
                   "The workloads are short (5 words, a counter), mixed (3 to 60 words, "
                   "log-normal), words110, tokens512 and "
                   "query (one text).",
    .examples = examples,
    .options = options,
    .run = bench_run,
};
