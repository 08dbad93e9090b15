/* embed_settings.c - see embed_settings.h. */
#include "cli/embed/embed_settings.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output/format_choice.h"

uint32_t embed_settings_what(const embed_settings *s) {
    if (s->bm25.language && !s->dense && !s->multi_vector && !s->tokens) return PITH_ENCODE_SPARSE;
    uint32_t what = (s->dense ? PITH_ENCODE_DENSE : 0) | (s->sparse ? PITH_ENCODE_SPARSE : 0) |
                    (s->multi_vector ? PITH_ENCODE_MULTI_VECTOR : 0) |
                    (s->tokens ? PITH_ENCODE_TOKENS : 0);
    return what ? what : PITH_ENCODE_DENSE;
}

void embed_settings_text(bytes *text, const embed_settings *s) {
    char *columns = row_options_columns(&s->rows);
    const struct {
        const char *name, *value;
    } words[] = { { "model", s->model },          { "model-file", s->open.model_file },
                  { "route", s->open.route },     { "prompt-name", s->embed.prompt_name },
                  { "ranges", s->layout.ranges }, { "column", columns },
                  { "id", s->rows.id },           { "keep", s->keep } };
    const struct {
        const char *name;
        int value;
    } numbers[] = { { "pooling", s->embed.pooling },
                    { "normalize", s->embed.normalize == PITH_CHOICE_YES },
                    { "no-normalize", s->embed.normalize == PITH_CHOICE_NO },
                    { "dim", s->embed.dim },
                    { "max-length", s->embed.max_length },
                    { "precision", s->open.precision },
                    { "runtime", s->runtime.name },
                    { "format", s->layout.format },
                    { "dtype", s->layout.type },
                    { "rows-per-file", s->rows_per_file },
                    { "jsonl", s->rows.objects },
                    { "null", s->rows.null },
                    { "invalid", s->rows.invalid } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        bytes_print(text, "--%s %s\n", words[i].name,
                    words[i].value ? words[i].value : "(not given)");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value)
            bytes_print(text, "--%s %d\n", numbers[i].name, numbers[i].value);
        else
            bytes_print(text, "--%s (not given)\n", numbers[i].name);
    free(columns);
}

/* Members are kept, and chunks have rows, in lines of JSON. */
static int check_long(const command *c, const embed_settings *s) {
    const bool rows = s->longs.result == CHUNKS_ROWS;
    if (s->keep && !(s->rows.objects && s->layout.format == FORMAT_JSONL))
        return usage(c, "--keep goes with --jsonl and --format jsonl, and with files that have "
                        "columns");
    int code = long_texts_check(c, &s->longs, option_by_flag(&s->embed.max_length));
    if (code || s->longs.action != LONG_CHUNK) return code;
    if (embed_settings_what(s) != PITH_ENCODE_DENSE)
        return usage(c, "--long chunk goes with dense vectors alone");
    if (s->resume && rows) return usage(c, "--resume and --chunks rows do not go together");
    if (rows && s->layout.format != FORMAT_JSONL)
        return usage(c, "--chunks rows goes with --format jsonl, whose rows say where a chunk is");
    return EXIT_DONE;
}

/* Numbers of one kind of vectors, where another is made. */
static int check_numbers(const command *c, const embed_settings *s) {
    const bool dense = embed_settings_what(s) & PITH_ENCODE_DENSE,
               words = s->bm25.language || s->sparse;
    const struct {
        const char *flag, *goes;
        const void *place;
        bool fits;
    } flags[] = {
        { "pooling", "dense vectors", &s->embed.pooling, dense },
        { "normalize", "dense vectors", &s->embed.normalize, dense },
        { "dim", "dense vectors", &s->embed.dim, dense },
        { "bm25-k", "--bm25, and with --sparse of miniCOIL", &s->bm25.k, words },
        { "bm25-b", "--bm25, and with --sparse of miniCOIL", &s->bm25.b, words },
        { "bm25-avg-len", "--bm25, and with --sparse of miniCOIL", &s->bm25.avg_len, words },
        { "bm42-alpha", "--sparse of BM42", &s->bm25.alpha, s->sparse && !s->bm25.language },
        { "bm25-max-word", "--bm25", &s->bm25.token_max_length, s->bm25.language != NULL },
        { "no-stemming", "--bm25", &s->bm25.no_stemming, s->bm25.language != NULL }
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!flags[i].fits && option_by_flag(flags[i].place))
            return usage(c, "--%s goes with %s", flags[i].flag, flags[i].goes);
    return EXIT_DONE;
}

static int check_kinds(const command *c, const embed_settings *s) {
    const uint32_t what = embed_settings_what(s);
    if (s->role && !s->multi_vector && !s->sparse && !s->bm25.language)
        return usage(c, "--role goes with --multi-vector, --sparse and --bm25");
    if (s->bm25.language && (what != PITH_ENCODE_SPARSE || s->images || s->longs.action))
        return usage(c, "--bm25 makes sparse vectors of whole texts; it does not go with other "
                        "results, --images or "
                        "--long");
    if (what == PITH_ENCODE_DENSE) return EXIT_DONE;
    if (s->layout.type) return usage(c, "--dtype goes with dense vectors alone");
    if (s->resume) return usage(c, "--resume goes with dense vectors alone");
    if (s->layout.format != FORMAT_JSONL && s->layout.format != FORMAT_NPY)
        return usage(c, "--format f32, csv and tsv go with dense vectors alone, and names of -o "
                        "that end so");
    if (s->layout.format != FORMAT_NPY) return EXIT_DONE;
    if (what & (what - 1)) return usage(c, "--format npy goes with one kind of result");
    if (!s->output || !strcmp(s->output, "-"))
        return usage(c, "--format npy needs -o FILE here: the result is more than one array");
    return EXIT_DONE;
}

/* Objects among the results need lines of JSON, and rows that are not counted by files of earlier
 * calls. */
static int check_errors(const command *c, const embed_settings *s) {
    if (s->rows.errors == ERRORS_SKIP && s->resume)
        return usage(c, "--errors skip does not go with --resume, which counts rows");
    if (s->rows.errors != ERRORS_REPORT) return EXIT_DONE;
    if (s->layout.format != FORMAT_JSONL)
        return usage(c, "--errors report goes with --format jsonl");
    if (s->resume || s->rows_per_file)
        return usage(
            c, "--errors report does not go with --resume and --rows-per-file, which count rows");
    return EXIT_DONE;
}

/* Pictures have dense vectors, and no tokens. */
static int check_images(const command *c, const embed_settings *s) {
    if (s->max_pixels && !s->images) return usage(c, "--max-pixels goes with --images");
    if (!s->images) return EXIT_DONE;
    if (s->rows.jsonl && s->rows.null) return usage(c, "--jsonl and -0 do not go together");
    if (s->rows.jsonl && (s->layout.format == FORMAT_CSV || s->layout.format == FORMAT_TSV))
        return usage(c, "--jsonl and --format csv do not go together with --images");
    if (!s->rows.jsonl && s->rows.columns.count) return usage(c, "--column goes with --jsonl here");
    if (s->rows.columns.count > 1) return usage(c, "--images reads paths from one --column");
    if (s->rows.texts.count || s->rows.id)
        return usage(c, "--text and --id are for texts, not for --images");
    if (embed_settings_what(s) != PITH_ENCODE_DENSE)
        return usage(c, "--images makes dense vectors only");
    if (s->longs.action || option_by_flag(&s->embed.max_length) ||
        option_by_flag(&s->embed.prompt_name) || s->keep)
        return usage(
            c, "--long, --max-length, --prompt-name and --keep are for texts, not for --images");
    return EXIT_DONE;
}

int embed_settings_check(const command *c, embed_settings *s, const string_list *arguments) {
    int code = format_choose(c, &s->layout.format, s->output);
    if (code) return code;
    if (s->images)
        row_options_files(&s->rows, arguments);
    else
        code = row_options_take(c, &s->rows, arguments);
    if (code) return code;
    s->layout.ids = s->rows.objects && !s->images &&
                    (s->layout.format == FORMAT_CSV || s->layout.format == FORMAT_TSV);
    if (s->resume && (!s->output || !strcmp(s->output, "-")))
        return usage(c, "--resume needs -o FILE");
    if (s->rows_per_file && (!s->output || !strcmp(s->output, "-")))
        return usage(c, "--rows-per-file needs -o FILE");
    if (s->rows_per_file &&
        (s->images || embed_settings_what(s) != PITH_ENCODE_DENSE || s->longs.action == LONG_CHUNK))
        return usage(c, "--rows-per-file goes with one dense vector per text");
    code = vector_layout_check(c, &s->layout);
    if (!code) code = check_long(c, s);
    if (!code) code = check_numbers(c, s);
    if (!code) code = check_kinds(c, s);
    if (!code) code = check_errors(c, s);
    return code ? code : check_images(c, s);
}
