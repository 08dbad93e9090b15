/* model_directory.c - which file of a model directory is opened.
 *
 * The folder of the network is the directory itself, or the folder of the module Transformer
 * ("0_Transformer"), whose ONNX files may also lie in the directory. docs/cli.md states the
 * order. */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/log.h"
#include "base/str.h"
#include "models/faces/cascade.h"
#include "models/faces/detector.h"
#include "models/open/reader.h"

/* How exact the numbers in an ONNX file are, told by its name. */
typedef enum directory_class {
    DIRECTORY_FULL,
    DIRECTORY_HALF,
    DIRECTORY_SMALL,
    DIRECTORY_PART,
    DIRECTORY_NONE
} directory_class;

static bool name_has(pith_str name, const char *part) {
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= name.size; i++)
        if (!memcmp(name.data + i, part, n)) return true;
    return false;
}

/* How exact the numbers are, by the words that exporters put into names. A decoder or another part
 * of a model is taken last of all. */
static directory_class classify(pith_str name) {
    static const struct {
        const char *part;
        directory_class class;
    } parts[] = {
        { "decoder", DIRECTORY_PART }, { "quant", DIRECTORY_SMALL }, { "int8", DIRECTORY_SMALL },
        { "int4", DIRECTORY_SMALL },   { "q4", DIRECTORY_SMALL },    { "q8", DIRECTORY_SMALL },
        { "bnb4", DIRECTORY_SMALL },   { "fp16", DIRECTORY_HALF },   { "float16", DIRECTORY_HALF },
        { "bf16", DIRECTORY_HALF },    { "half", DIRECTORY_HALF },   { "_O4", DIRECTORY_HALF },
    };
    if (name.size < 6 || memcmp(name.data + name.size - 5, ".onnx", 5)) return DIRECTORY_NONE;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (name_has(name, parts[i].part)) return parts[i].class;
    return DIRECTORY_FULL;
}

/* The best .onnx file in dir or its folder onnx; *path has no data if there is none. Of equals in
 * one folder the shortest name wins, then the first in the alphabet. */
static pith_status find_other(pith_str *path, directory_class *class, pith_model *m,
                              const char *dir, pith_error *err) {
    *path = (pith_str){ NULL, 0 };
    *class = DIRECTORY_NONE;
    for (int folder = 0; folder < 2; folder++) {
        pith_str *names, within = pith__arena_printf(&m->arena, "%s%s", dir, folder ? "/onnx" : "");
        size_t count, best = 0;
        if (!within.data) return pith__fail_memory(err, 0);
        if (!pith__dir_there(within.data, m->arena.allocator)) continue;
        PITH_TRY(pith__dir_names(&names, &count, within.data, &m->arena, err));
        directory_class found = DIRECTORY_NONE;
        for (size_t i = 0; i < count; i++) {
            directory_class c = classify(names[i]);
            if (c > found || (c == found && names[i].size >= names[best].size)) continue;
            found = c;
            best = i;
        }
        if (found >= *class) continue;
        *class = found;
        PITH_TRY(pith__path_join(path, &m->arena, within.data, names[best], err));
    }
    return PITH_OK;
}

/* "model.onnx, onnx/model.onnx, model.safetensors with config.json, …" */
static pith_status not_there(pith_model *m, const char *dir, pith_error *err) {
    pith_str list = PITH_STR("");
    for (const pith__reader *r = pith__reader_after(INT_MIN); r; r = pith__reader_after(r->rank))
        for (int i = 0; i < PITH_READER_FILES && r->files[i]; i++) {
            list = pith__arena_printf(&m->arena, "%s%s%s%s%s", list.data, list.size ? ", " : "",
                                      r->files[i], r->beside ? " with " : "",
                                      r->beside ? r->beside : "");
            if (!list.data) return pith__fail_memory(err, 0);
        }
    pith_error lacks = PITH_ERROR_INIT;
    if (pith__piece_check_any("readers", &lacks))
        list =
            pith__arena_printf(&m->arena, "%s; %s", list.size ? list.data : "none", lacks.message);
    if (!list.data) return pith__fail_memory(err, 0);
    if (m->no_text.code) return pith__fail(err, m->no_text.code, "%s", m->no_text.message);
    if (m->modules.folder.size)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s: modules.json names the folder '" PITH_STR_FMT
                          "', but no model is there; looked for %s",
                          m->dir.data, PITH_STR_ARG(m->modules.folder), list.data);
    return pith__fail(err, PITH_ERR_NOT_FOUND, "%s: no model in this directory; looked for %s", dir,
                      list.data);
}

static pith_status note_file(pith_model *m, pith_str path, pith_error *err) {
    const size_t skip = m->dir.size + 1;
    if (path.size > skip) path = (pith_str){ path.data + skip, path.size - skip };
    return pith__modules_note(&m->modules, "model file", path, PITH_STR(""), &m->arena, err);
}

/* A directory that its reader cannot build, such as one of an unknown architecture, may have an
 * ONNX file that can be chosen. */
static pith_status suggest(pith_model *m, const char *dir, pith_status status, pith_error *err) {
    pith_str path;
    directory_class class;
    pith_error copy = PITH_ERROR_INIT;
    if (status != PITH_ERR_UNSUPPORTED || !err) return status;
    copy = *err;
    if (find_other(&path, &class, m, dir, NULL) || !path.data) return status;
    return pith__fail(
        err, status, "%s; the directory also has %s, which pith_open_options.model_file can choose",
        copy.message, path.data);
}

/* The first file that the reader names and the directory has, together with the file that must
 * stand beside it; NULL: there is none, or memory was out. */
static pith_status find_named(const char **file, pith_model *m, const char *dir,
                              const pith__reader *reader, pith_error *err) {
    pith_str path;
    bool there = true;
    *file = NULL;
    if (reader->beside)
        PITH_TRY(pith__file_find(&there, &path, &m->arena, dir, reader->beside, err));
    if (!there) return PITH_OK;
    for (int i = 0; i < PITH_READER_FILES && reader->files[i]; i++) {
        bool found;
        PITH_TRY(pith__file_find(&found, &path, &m->arena, dir, reader->files[i], err));
        if (!found) continue;
        *file = reader->files[i];
        break;
    }
    return PITH_OK;
}

/* Files of readers that this build was made without, of a rank below that of the one that was
 * found: another file may hold other numbers. */
static pith_status check_left_out(pith_model *m, const char *dir, bool files_only, int rank,
                                  pith_error *err) {
    static const pith__reader readers[] = { { .name = "onnx", PITH_READER_ONNX },
                                            { .name = "safetensors", PITH_READER_SAFETENSORS } };
    if (!pith__dropped_names[0]) return PITH_OK;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        const pith__reader *r = &readers[i];
        const char *file;
        if (r->rank >= rank || (files_only && r->beside)) continue;
        PITH_TRY(find_named(&file, m, dir, r, err));
        if (file) PITH_TRY(pith__piece_check_for("readers", pith__str_of(r->name), file, err));
    }
    return PITH_OK;
}

/* The files that readers name, in one directory. *done: one was there. */
static pith_status open_named(bool *done, pith_model *m, const char *dir, bool files_only,
                              pith_error *err) {
    for (const pith__reader *r = pith__reader_after(INT_MIN); r; r = pith__reader_after(r->rank)) {
        pith_str path;
        bool there = !files_only || r->takes;
        if (there && r->files[0] && r->beside)
            PITH_TRY(pith__file_find(&there, &path, &m->arena, dir, r->beside, err));
        if (!there) continue;
        for (int i = 0; i < PITH_READER_FILES && r->files[i]; i++) {
            PITH_TRY(pith__file_find(done, &path, &m->arena, dir, r->files[i], err));
            if (!*done) continue;
            PITH_TRY(check_left_out(m, dir, files_only, r->rank, err));
            PITH_TRY(note_file(m, path, err));
            if (r->takes) return pith__readers_file(m, path, err);
            m->weights_file = r->files[i];
            return suggest(m, dir,
                           pith__reader_open(m, r, (pith__source){ { NULL, 0 }, dir, NULL }, err),
                           err);
        }
    }
    return check_left_out(m, dir, files_only, INT_MAX, err);
}

static const pith__reader *directory_reader(void) {
    const pith__reader *r = pith__reader_after(INT_MIN);
    while (r && r->takes) r = pith__reader_after(r->rank);
    return r;
}

/* Directories are read by the reader that takes no file. */
static pith_status open_directory(pith_model *m, const char *dir, const char *weights,
                                  pith_error *err) {
    const pith__reader *r = directory_reader();
    if (!r) PITH_TRY(pith__piece_check("readers", PITH_STR("safetensors"), err));
    if (!r)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "this build has no reader for directories");
    m->weights_file = weights;
    return pith__reader_open(m, r, (pith__source){ { NULL, 0 }, dir, NULL }, err);
}

static bool directory_name_ends(pith_str name, const char *end) {
    const size_t n = strlen(end);
    return name.size > n && !memcmp(name.data + name.size - n, end, n);
}

/* *whole: the file is a model by itself. Weights go with the config.json of their folder; GGUF does
 * without. */
static pith_status is_whole(bool *whole, pith_model *m, pith_str name, const char *dir,
                            pith_error *err) {
    static const char *const ends[] = { ".safetensors", ".bin",  ".pt",
                                        ".pth",         ".gguf", ".index.json" };
    pith_str path;
    bool weights = false, config = true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        weights = weights || directory_name_ends(name, ends[i]);
    if (directory_name_ends(name, ".gguf"))
        PITH_TRY(pith__file_find(&config, &path, &m->arena, dir, "config.json", err));
    *whole = !weights || !config;
    return PITH_OK;
}

/* The file that the caller named: in the network's folder, in its folder onnx, or in the directory.
 */
static pith_status open_wanted(pith_model *m, const char *dir, pith_error *err) {
    const char *wanted = m->options.model_file;
    const pith_str onnx = pith__arena_printf(&m->arena, "%s/onnx", dir);
    if (!onnx.data) return pith__fail_memory(err, 0);
    const char *const places[] = { dir, onnx.data, m->dir.data };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        pith_str path;
        bool there, whole;
        PITH_TRY(pith__file_find(&there, &path, &m->arena, places[i], wanted, err));
        if (!there) continue;
        PITH_TRY(note_file(m, path, err));
        PITH_TRY(is_whole(&whole, m, path, places[i], err));
        if (whole) return pith__readers_file(m, path, err);
        pith_str kept = pith__arena_str(&m->arena, pith__str_of(wanted));
        if (!kept.data) return pith__fail_memory(err, strlen(wanted));
        return open_directory(m, places[i], kept.data, err);
    }
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "%s: pith_open_options.model_file: there is no file '%s', nor in its folder "
                      "onnx",
                      dir, wanted);
}

/* A build with a detector of several networks needs the part that finds them. */
static pith_status directory_check_cascades(pith_error *err) {
    for (size_t i = 0; i < pith__head_table_count; i++)
        if (pith__head_table[i]->detector && pith__head_table[i]->detector->find)
            return pith__piece_check("parts", PITH_STR("cascades"), err);
    return PITH_OK;
}

/* docs/cli.md states the order: the file that was asked for; what the modules build; the files that
 * readers name; an adapter; a detector's networks; any other .onnx file. Each step notes the file
 * it took, so that inspect can tell. */
pith_status pith__readers_directory(pith_model *m, pith_error *err) {
    pith_str dir = m->dir, path;
    directory_class class;
    bool done = false;
    if (m->modules.folder.size)
        PITH_TRY(pith__path_join(&dir, &m->arena, m->dir.data, m->modules.folder, err));
    if (m->options.model_file) return open_wanted(m, dir.data, err);
    if (m->modules.input.build) return open_directory(m, dir.data, NULL, err);
    PITH_TRY(open_named(&done, m, dir.data, false, err));
    if (!done && m->modules.folder.size) PITH_TRY(open_named(&done, m, m->dir.data, true, err));
    if (done) return PITH_OK;
    PITH_TRY(pith__file_find(&done, &path, &m->arena, dir.data, "adapter_config.json", err));
    if (done) PITH_TRY(note_file(m, path, err));
    if (done) return open_directory(m, dir.data, NULL, err);
    const pith__cascade_part *cascades = pith__part_find("cascades");
    PITH_TRY(cascades ? cascades->find(m, dir.data, err) : directory_check_cascades(err));
    if (m->cascade) {
        pith__part_used("cascades");
        PITH_TRY(note_file(m, m->cascade_files[0], err));
        return pith__readers_file(m, m->cascade_files[0], err);
    }
    PITH_TRY(find_other(&path, &class, m, dir.data, err));
    if (!path.data && m->modules.folder.size)
        PITH_TRY(find_other(&path, &class, m, m->dir.data, err));
    if (!path.data) return not_there(m, dir.data, err);
    if (class != DIRECTORY_FULL)
        pith__log_write(
            m->options.call.log, PITH_LOG_WARNING,
            "%s: opened %s, since there is no file whose name says that its numbers have 32 bits",
            m->dir.data, path.data);
    PITH_TRY(note_file(m, path, err));
    return pith__readers_file(m, path, err);
}
