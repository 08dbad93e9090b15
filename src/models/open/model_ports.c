/* model_ports.c - the inputs and outputs of a model as callers see them, and its messages as files
 * keep them. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/model.h"

pith_str pith__model_reason(const pith_model *m, const char *message) {
    const size_t n = m->dir.data ? m->dir.size : 0;
    const bool within = n && !strncmp(message, m->dir.data, n);
    if (within && message[n] == '/') return pith__str_of(message + n + 1);
    return pith__str_of(within && !strncmp(message + n, ": ", 2) ? message + n + 2 : message);
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
    }
    return PITH_OK;
}
