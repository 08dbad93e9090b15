/* module_normalize.c - Normalize: vectors of length 1, of texts or of tokens. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

static void normalize_read_config(pith_json *j, pith_module_reader *r, void *to) {
    pith_module_places *places = to;
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key))
        if (!pith_module_place(j, r, key, places)) pith_json_skip(j);
}

/* Divides by max(length, 1e-12), as torch.nn.functional.normalize does. */
static pith_value *normalize_append(pith_graph *graph, pith_value *rows, const void *module, pith_error *err) {
    static const float least = 1e-12f;
    const pith_str place = PITH_STR("Normalize");
    (void)module;
    (void)err;
    pith_value *axes = pith_graph_add_i64s(graph, PITH_STR(""), (const int64_t[]){ -1 }, 1);
    pith_value *length = pith_row_node(graph, place, "ReduceL2", (pith_value *[]){ rows, axes }, 2);
    pith_value *floor = pith_graph_add_f32(graph, PITH_STR(""), least);
    length = pith_row_node(graph, place, "Max", (pith_value *[]){ length, floor }, 2);
    return pith_row_node(graph, place, "Div", (pith_value *[]){ rows, length }, 2);
}

static pith_status module_normalize_read(pith_module_reader *r, pith_str folder) {
    pith_module_places places = PITH_MODULE_PLACES_INIT;
    bool there = false;
    if (folder.size) PITH_TRY(pith_module_json(&there, r, folder, "config.json", normalize_read_config, &places));
    PITH_TRY(pith_module_check_places(r, folder, &places));
    if (places.rows) {
        pith_row_step step = { .append = normalize_append, .place = PITH_STR("Normalize") };
        PITH_TRY(pith_module_add_rows(r, &step));
    } else {
        PITH_TRY(pith_module_add_step(r, &(pith_vector_step){ .kind = PITH_STEP_NORMALIZE }));
    }
    return pith_module_decide(r, places.rows ? "module" : "normalize", PITH_STR(""), "modules.json", "%s",
                              places.rows ? "Normalize of tokens" : "yes");
}

static const pith_module_keys normalize_keys = { .file = "config.json",
                                                 .reads = "module_input_name module_output_name" };
const pith_module_class pith_module_class_normalize = { .name = "Normalize",
                                                        .read = module_normalize_read,
                                                        .keys = &normalize_keys };
