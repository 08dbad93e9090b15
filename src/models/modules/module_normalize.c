/* module_normalize.c - Normalize: vectors of length 1, of texts or of tokens. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

static void normalize_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith__module_places *places = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key))
        if (!pith__module_place(j, r, key, places)) pith__json_skip(j);
}

/* Divides by max(length, 1e-12), as torch.nn.functional.normalize does. */
static pith__value *normalize_append(pith__graph *graph, pith__value *rows, const void *module,
                                     pith_error *err) {
    static const float least = 1e-12f;
    const pith_str place = PITH_STR("Normalize");
    (void)module;
    (void)err;
    pith__value *axes = pith__graph_add_i64s(graph, PITH_STR(""), (const int64_t[]){ -1 }, 1);
    pith__value *length =
        pith__row_node(graph, place, "ReduceL2", (pith__value *[]){ rows, axes }, 2);
    pith__value *floor = pith__graph_add_f32(graph, PITH_STR(""), least);
    length = pith__row_node(graph, place, "Max", (pith__value *[]){ length, floor }, 2);
    return pith__row_node(graph, place, "Div", (pith__value *[]){ rows, length }, 2);
}

static pith_status module_normalize_read(pith__module_reader *r, pith_str folder) {
    pith__module_places places = PITH_MODULE_PLACES_INIT;
    bool there = false;
    if (folder.size)
        PITH_TRY(
            pith__module_json(&there, r, folder, "config.json", normalize_read_config, &places));
    PITH_TRY(pith__module_check_places(r, folder, &places));
    if (places.rows) {
        pith__row_step step = { .append = normalize_append, .place = PITH_STR("Normalize") };
        PITH_TRY(pith__module_add_rows(r, &step));
    } else {
        PITH_TRY(pith__module_add_step(r, &(pith__vector_step){ .kind = PITH_STEP_NORMALIZE }));
    }
    return pith__module_decide(r, places.rows ? "module" : "normalize", PITH_STR(""),
                               "modules.json", "%s", places.rows ? "Normalize of tokens" : "yes");
}

static const pith__module_keys normalize_keys = { .file = "config.json",
                                                  .reads = "module_input_name module_output_name" };
const pith__module_class pith__module_class_normalize = { .name = "Normalize",
                                                          .read = module_normalize_read,
                                                          .keys = &normalize_keys };
