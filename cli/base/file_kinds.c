/* file_kinds.c - see file_kinds.h. */
#include "cli/base/file_kinds.h"

#include <string.h>
#include <strings.h>

/* Files that are only known to be files have a row too: an argument with such a name that is not
 * there is a mistake and no text. */
static const file_kind kinds[] = {
    { ".csv", TEXT_CSV, "csv" },
    { ".tsv", TEXT_TSV, "tsv" },
    { ".jsonl", TEXT_OBJECTS, "jsonl|json" },
    { ".ndjson", TEXT_OBJECTS, "jsonl|json" },
    { ".json", TEXT_OBJECTS, "json|jsonl" },
    { ".parquet", TEXT_PARQUET, "" },
    { ".npy", TEXT_LINES, "npy" },
    { ".f32", TEXT_LINES, "f32" },
    { ".bin", TEXT_LINES, "f32" },
    { ".npz", TEXT_LINES, "" },
    { ".xlsx", TEXT_LINES, "" },
    { ".txt", TEXT_LINES, NULL },
    { ".text", TEXT_LINES, NULL },
    { ".md", TEXT_LINES, NULL },
    { ".rst", TEXT_LINES, NULL },
    { ".log", TEXT_LINES, NULL },
    { ".html", TEXT_LINES, NULL },
    { ".xml", TEXT_LINES, NULL },
    { ".pdf", TEXT_LINES, NULL },
    { ".doc", TEXT_LINES, NULL },
    { ".docx", TEXT_LINES, NULL },
    { ".xls", TEXT_LINES, NULL },
    { ".gz", TEXT_LINES, NULL },
    { ".zst", TEXT_LINES, NULL },
    { ".zip", TEXT_LINES, NULL },
    { ".onnx", TEXT_LINES, NULL },
    { ".pith", TEXT_LINES, NULL },
};

const file_kind *file_kind_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
               *dot = strrchr(name, '.');
    if (!dot || dot == name) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(dot, kinds[i].suffix)) return &kinds[i];
    return NULL;
}
