/* cmd_preprocess.c - pith preprocess: the tables of a source as one database file, or a draft of
 * their schema. */
#include "cli/base/cli.h"
#include "cli/output/output.h"
#include "cli/tables/database_source.h"

typedef struct preprocess_settings {
    const char *schema, *embedder, *output, *python;
    bool draft, quiet;
    int32_t threads;
} preprocess_settings;

static int preprocess_run(int argc, char **argv) {
    const command *c = &command_preprocess;
    preprocess_settings s = { 0 };
    string_list rest = { NULL, 0 };
    output out;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1)
        return usage(c, "give one directory or zip archive of .csv and .tsv files, an SQLite file, "
                        "or a postgresql:// address");
    if (!s.draft && !s.output)
        return usage(c, "give the name of the database file with -o, or --draft for a schema");
    code = output_open(&out, c, s.output, NULL);
    if (code) return code;
    code = database_source_make(c, &(database_making){ s.schema, s.embedder, s.python, s.threads },
                                rest.items[0], s.draft, &out);
    return output_close(&out, c, code == EXIT_DONE, code);
}

#define AT(id, member) OPTION_PLACE(id, preprocess_settings, member)

static const option options[] = {
    AT(schema, schema), AT(draft, draft),   AT(embedder, embedder), AT(threads, threads),
    AT(output, output), AT(python, python), OPTION_SOURCES,         OPTION_END,
};

static const example examples[] = {
    { "pith preprocess shop --draft -o shop/schema.json", "a schema to check and edit" },
    { "pith preprocess shop -o shop.rdb", "then: pith train shop.rdb --task returned -o run" },
    { "pith preprocess postgresql://me@host/shop --draft", "from what the database declares" },
    { "pith preprocess shop.sqlite --schema schema.json -o shop.rdb",
      "the tables of an SQLite file" },
    { NULL, NULL },
};

const command command_preprocess = {
    .name = "preprocess",
    .summary = "make a database file of tables",
    .forms = "SOURCE [--schema FILE] [--embedder MODEL] -o FILE\nSOURCE --draft [-o FILE]",
    .takes = "FILE",
    .reads = "csv|tsv|json",
    .description = "Reads the .csv and .tsv files of a directory or zip archive, plain or as .gz "
                   "or .zst, or the "
                   "tables of an SQLite "
                   "file or a PostgreSQL database, resolves their keys, and writes one file that "
                   "`pith train` maps. "
                   "The file has the "
                   "same bytes whatever the number of threads.",
    .examples = examples,
    .options = options,
    .run = preprocess_run,
};
