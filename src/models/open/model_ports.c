/* model_ports.c - the inputs and outputs of a model as callers see them, and its messages as files
 * keep them. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/open/reader.h"

pith_str pith__model_reason(const pith_model *m, const char *message) {
    const size_t n = m->dir.data ? m->dir.size : 0;
    const bool within = n && !strncmp(message, m->dir.data, n);
    if (within && message[n] == '/') return pith__str_of(message + n + 1);
    return pith__str_of(within && !strncmp(message + n, ": ", 2) ? message + n + 2 : message);
}

pith_str pith__model_about(const pith_model *m) {
    const pith_str section = m->compiled.sections[PITH_SECTION_INFO];
    if (m->compiled.writer) return section.data ? section : PITH_STR("");
    return !strcmp(m->reader->name, "onnx") ? m->source_bytes : PITH_STR("");
}

pith_status pith__model_name_dims(pith_port *port, pith_model *m, const pith__type *declared,
                                  pith_error *err) {
    const size_t count = port->rank > 0 ? (size_t)port->rank : 0;
    const char **names = pith__arena_array(&m->arena, count, sizeof *names);
    if (!names) return pith__fail_memory(err, count * sizeof *names);
    for (size_t d = 0; d < count; d++) {
        const int32_t symbol = (size_t)declared->rank == count
                                   ? pith__dim_symbol_index(m->graph->dims, declared->dims[d])
                                   : -1;
        const pith_str name =
            symbol < 0 ? PITH_STR("") : pith__dims_symbol_name(m->graph->dims, symbol);
        /* such as "ids[1]" and "3@1": names that inference made */
        const bool made = memchr(name.data, '[', name.size) || memchr(name.data, '@', name.size);
        names[d] = made ? "" : pith__arena_str(&m->arena, name).data;
        if (!names[d]) return pith__fail_memory(err, 1);
    }
    port->dim_names = names;
    return PITH_OK;
}

pith_status pith__model_make_ports(pith_port **ports, pith_model *m, pith__value *const *values,
                                   size_t count, pith_error *err) {
    *ports = pith__arena_array(&m->arena, count, sizeof **ports);
    if (!*ports) return pith__fail_memory(err, count * sizeof **ports);
    for (size_t i = 0; i < count; i++) {
        const pith__value *v = values[i];
        const pith__type *type = v->type.rank < 0 && v->hint ? v->hint : &v->type,
                         *declared = v->hint ? v->hint : &v->type;
        bool is_optional =
            declared->dtype == PITH_UNDEFINED && declared->item_dtype != PITH_UNDEFINED;
        pith_port *port = &(*ports)[i];
        char shape[512] = "?";
        pith__dim sizes[PITH_MAX_RANK];
        for (int d = 0; d < type->rank; d++) {
            pith__dim size = v->kind == PITH_VALUE_INPUT && declared->rank == type->rank
                                 ? declared->dims[d]
                                 : type->dims[d];
            if (size == PITH_DIM_UNKNOWN) size = type->dims[d];
            port->dims[d] = pith__dim_known(size) ? size : -1;
            sizes[d] = size;
        }
        if (type->rank >= 0)
            pith__shape_text(m->graph->dims, sizes, type->rank, shape, sizeof shape);
        port->size = sizeof *port;
        port->name = pith__arena_str(&m->arena, v->name).data;
        port->shape = pith__arena_str(&m->arena, pith__str_of(shape)).data;
        port->dtype = v->type.dtype ? v->type.dtype : declared->dtype;
        if (is_optional) port->dtype = PITH_NONE;
        port->rank = type->rank;
        port->item_dtype = declared->item_dtype;
        port->optional = v->kind == PITH_VALUE_INPUT && v->type.data;
        if (!port->name || !port->shape) return pith__fail_memory(err, v->name.size);
        PITH_TRY(pith__model_name_dims(port, m, declared, err));
    }
    return PITH_OK;
}
