/* detector.c - which network a graph is. See detector.h. */
#include "models/faces/detector.h"

#include "base/str.h"

static bool network_is_last(const pith__detector_output *o) { return !o->name && !o->rank; }

int pith__detector_count(const pith__detector *d) {
    int count = 0;
    while (count < PITH_DETECTOR_NETWORKS && !network_is_last(&d->networks[count].outputs[0]))
        count++;
    return count;
}

/* What was inferred, else what the file declares. */
static bool network_is_f32(const pith__value *v) {
    return (v->type.dtype != PITH_UNDEFINED || !v->hint ? &v->type : v->hint)->dtype == PITH_F32;
}

static bool network_takes_input(const pith__detector_network *n, const pith__graph *graph) {
    if (graph->input_count != 1) return false;
    const pith__value *v = graph->inputs[0];
    /* inferred types have symbols for declared sizes */
    const pith__type *t = v->hint ? v->hint : &v->type;
    if (!network_is_f32(v) || t->rank != 4) return false;
    for (int i = 0; i < 4; i++)
        if (n->input[i] && t->dims[i] != n->input[i]) return false;
    return true;
}

static bool network_has_form(const pith__type *t, const pith__detector_output *o) {
    return t->rank == o->rank && t->rank > 0 && t->dims[t->rank - 1] == o->width;
}

/* The place of an output that is not in places[0 .. found] yet; -1 if there is none. */
static int network_place(const int *places, int found, const pith__detector_output *o,
                         const pith__graph *graph) {
    if (o->name) {
        int place = pith__graph_find_output(graph, o->name);
        return place >= 0 && network_is_f32(graph->outputs[place]) ? place : -1;
    }
    for (int i = 0; i < (int)graph->output_count; i++) {
        bool is_free = true;
        for (int k = 0; k < found; k++) is_free = is_free && places[k] != i;
        const pith__value *v = graph->outputs[i];
        if (is_free && network_is_f32(v) &&
            (network_has_form(&v->type, o) || (v->hint && network_has_form(v->hint, o))))
            return i;
    }
    return -1;
}

bool pith__detector_takes(int places[PITH_DETECTOR_OUTPUTS], const pith__detector_network *n,
                          const pith__graph *graph) {
    if (!network_takes_input(n, graph)) return false;
    for (int i = 0; i < PITH_DETECTOR_OUTPUTS && !network_is_last(&n->outputs[i]); i++) {
        places[i] = network_place(places, i, &n->outputs[i], graph);
        if (places[i] < 0) return false;
    }
    return true;
}
