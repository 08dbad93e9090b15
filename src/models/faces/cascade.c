/* cascade.c - see cascade.h. */
#include "models/faces/cascade.h"

#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/str.h"
#include "formats/onnx/model_read.h"
#include "models/faces/detector.h"
#include "models/open/open_model.h"
#include "models/open/reader.h"

/* The most .onnx files of a directory that are looked at. A directory with more is none of a
 * cascade. */
enum { CASCADE_FILES = 8 };

typedef struct cascade_files {
    pith_str paths[CASCADE_FILES];
    const pith__graph *graphs[CASCADE_FILES]; /* NULL: the file cannot be read */
    size_t count;
} cascade_files;

static bool cascade_is_onnx(pith_str name) {
    return name.size > 5 && !memcmp(name.data + name.size - 5, ".onnx", 5);
}

/* The fewest networks that a detector with several has; 0: this build has no such detector. */
static size_t cascade_least(void) {
    size_t least = 0;
    for (size_t i = 0; i < pith__head_table_count; i++) {
        const pith__detector *d = pith__head_table[i]->detector;
        if (d && d->find && (!least || (size_t)pith__detector_count(d) < least))
            least = (size_t)pith__detector_count(d);
    }
    return least;
}

/* A directory with many ONNX files is something else; none of them is read then. */
static pith_status cascade_list(cascade_files *f, const char *dir, pith__arena *arena,
                                pith_error *err) {
    pith_str *names;
    size_t count;
    PITH_TRY(pith__dir_names(&names, &count, dir, arena, err));
    for (size_t i = 0; i < count; i++) {
        if (!cascade_is_onnx(names[i])) continue;
        if (f->count == CASCADE_FILES) {
            f->count = 0;
            return PITH_OK;
        }
        PITH_TRY(pith__path_join(&f->paths[f->count++], arena, dir, names[i], err));
    }
    return PITH_OK;
}

/* Only names, sizes and nodes are read; weights stay where they are. */
static pith_status cascade_read(cascade_files *f, pith__files *files, const char *dir,
                                pith__arena *arena, pith_error *err) {
    for (size_t i = 0; i < f->count; i++) {
        pith__graph *graph;
        pith_str bytes;
        pith_error fault = PITH_ERROR_INIT;
        pith_status status = pith__files_open(&bytes, files, f->paths[i].data, &fault);
        if (!status) status = pith__onnx_read(&graph, bytes, dir, files, arena, NULL, &fault);
        if (status == PITH_ERR_MEMORY) return pith__fail(err, status, "%s", fault.message);
        if (!status) f->graphs[i] = graph;
    }
    return PITH_OK;
}

/* Each network takes the first file, by name, that fits it and is not another's. */
static bool cascade_fits(size_t *chosen, const pith__detector *d, const cascade_files *f) {
    const int count = pith__detector_count(d);
    for (int n = 0; n < count; n++) {
        chosen[n] = CASCADE_FILES;
        for (size_t i = 0; i < f->count && chosen[n] == CASCADE_FILES; i++) {
            int places[PITH_DETECTOR_OUTPUTS];
            bool is_free =
                f->graphs[i] && pith__detector_takes(places, &d->networks[n], f->graphs[i]);
            for (int k = 0; k < n; k++) is_free = is_free && chosen[k] != i;
            if (is_free) chosen[n] = i;
        }
        if (chosen[n] == CASCADE_FILES) return false;
    }
    return true;
}

/* Paths in the order of the networks, so that the first is the one that is opened as the model. */
static pith_status cascade_keep(pith_model *m, const pith__head *head, const size_t *chosen,
                                const cascade_files *f, pith_error *err) {
    const size_t count = (size_t)pith__detector_count(head->detector);
    m->cascade_files = pith__arena_array(&m->arena, count, sizeof *m->cascade_files);
    if (!m->cascade_files) return pith__fail_memory(err, count * sizeof *m->cascade_files);
    for (size_t i = 0; i < count; i++) {
        m->cascade_files[i] = pith__arena_str(&m->arena, f->paths[chosen[i]]);
        if (!m->cascade_files[i].data) return pith__fail_memory(err, f->paths[chosen[i]].size);
    }
    m->cascade = head;
    return PITH_OK;
}

/* Looking costs as much as reading a few small graphs, which is why it comes only after all names
 * that say more. */
static pith_status cascade_look(pith_model *m, const char *dir, pith__files *files,
                                pith_error *err) {
    cascade_files f = { .count = 0 };
    size_t chosen[PITH_DETECTOR_NETWORKS];
    PITH_TRY(cascade_list(&f, dir, files->arena, err));
    if (f.count < cascade_least()) return PITH_OK;
    PITH_TRY(cascade_read(&f, files, dir, files->arena, err));
    for (size_t i = 0; i < pith__head_table_count; i++) {
        const pith__detector *d = pith__head_table[i]->detector;
        if (d && d->find && cascade_fits(chosen, d, &f))
            return cascade_keep(m, pith__head_table[i], chosen, &f, err);
    }
    return PITH_OK;
}

/* Graphs and files are only looked at here, and given back; opening reads the chosen ones again. */
pith_status pith__cascade_find(pith_model *m, const char *dir, pith_error *err) {
    pith__arena arena;
    if (!cascade_least() || !pith__dir_there(dir, m->options.call.allocator)) return PITH_OK;
    pith__arena_init(&arena, m->options.call.allocator);
    pith__files files = { .arena = &arena, .copy = m->options.flags & PITH_OPEN_COPY };
    pith_status status = cascade_look(m, dir, &files, err);
    pith__files_close(&files);
    pith__arena_free(&arena);
    return status;
}

/* ---- opening ---- */

static pith_status cascade_open_route(pith_model *m, const pith__origin *origin, pith_error *err) {
    m->network = origin->network;
    return pith__readers_memory(m, origin->bytes, err);
}

/* The parts are models of their own, in the memory of the first: its limit counts for all. */
pith_status pith__cascade_open(pith_model **parts, const pith_model *m, pith__stop *stop,
                               pith_error *err) {
    pith_open_options o = m->options;
    const int count = pith__detector_count(m->cascade->detector);
    o.runtime = m->chosen_runtime.requested;
    o.runtime_options = &m->chosen_runtime.options;
    o.flags &= ~(uint32_t)PITH_OPEN_DESCRIBE;
    o.pool_blocks = -1; /* the model's own pool is below them */
    o.pressure_percent = -1;
    for (int i = 1; i < count; i++) {
        const pith__origin route = { .open = cascade_open_route,
                                     .bytes = m->compiled.file,
                                     .network = (uint32_t)i };
        const pith__origin origin =
            m->cascade_files ? pith__origin_path(m->cascade_files[i].data) : route;
        PITH_TRY(pith__model_open_stoppable(&parts[i], &origin, &o, NULL, stop, err));
    }
    return PITH_OK;
}

/* The section holds the name of the head. */
pith_status pith__cascade_load(pith_model *m, pith_error *err) {
    const pith_str name = m->compiled.sections[PITH_SECTION_NETWORKS];
    for (size_t i = 0; i < pith__head_table_count; i++) {
        const pith__head *head = pith__head_table[i];
        if (!head->detector || !head->detector->find || !pith__str_is(name, head->name)) continue;
        m->cascade = head;
        return PITH_OK;
    }
    PITH_TRY(pith__piece_check("heads", name, err));
    return pith__fail(err, PITH_ERR_FORMAT,
                      "networks: there is no detector of several networks '" PITH_STR_FMT "'",
                      PITH_STR_ARG(name));
}

const pith__part pith__part_cascades = { "cascades", &(const pith__cascade_part){
                                                         pith__cascade_find, pith__cascade_open,
                                                         pith__cascade_load } };
