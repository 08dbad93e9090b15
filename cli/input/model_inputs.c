/* model_inputs.c - a model's input tensors from the command line. */
#include "cli/input/model_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/text_input.h"

static void make_room(model_inputs *in) {
    in->names = grow_for(in->names, in->count, sizeof *in->names);
    in->files = grow_for(in->files, in->count, sizeof *in->files);
    in->tensors = grow_for(in->tensors, in->count, sizeof *in->tensors);
}

/* Splits NAME=VALUE at the first '='; a name is copied. */
static const char *split(const char *argument, char **name) {
    const char *equal = strchr(argument, '=');
    if (!equal) return NULL;
    *name = strndup(argument, (size_t)(equal - argument));
    return equal + 1;
}

static int find_input(const pith_model *model, const char *name) {
    for (size_t i = 0; i < pith_model_input_count(model); i++)
        if (!strcmp(pith_model_input(model, i)->name, name)) return (int)i;
    return -1;
}

/* "no input 'x'; its inputs are 'a', 'b'" */
static int no_such_input(const command *c, const pith_model *model, const char *given) {
    bytes names = { NULL, 0, 0 };
    for (size_t i = 0; i < pith_model_input_count(model); i++)
        bytes_print(&names, "%s'" PITH_CUT_FMT "'", i ? ", " : "",
                    PITH_CUT(pith__str_of(pith_model_input(model, i)->name), 200));
    int code = fail(c, "'%s': the model has no input of this name; it has %.*s", given,
                    (int)names.size, names.size ? names.data : "none");
    free(names.data);
    return code;
}

/* -i NAME=FILE, or -i FILE where the model has a single input. Files stay mapped until the inputs
 * are freed. */
int model_inputs_load(model_inputs *in, const command *c, const pith_model *model,
                      const string_list *given) {
    char message[1200];
    for (size_t i = 0; i < given->count; i++) {
        char *name = NULL;
        const char *path = split(given->items[i], &name);
        if (!path && pith_model_input_count(model) == 1) {
            path = given->items[i];
            name = strdup(pith_model_input(model, 0)->name);
        }
        if (!path) return usage(c, "-i must be NAME=FILE, not '%s'", given->items[i]);
        int index = find_input(model, name);
        if (index < 0) {
            free(name);
            return no_such_input(c, model, given->items[i]);
        }
        const pith_port *port = pith_model_input(model, (size_t)index);
        const int32_t wanted = port->dtype;
        make_room(in);
        if (!tensor_file_open(&in->files[i], path, tensor_file_kind_of(port), message,
                              sizeof message)) {
            free(name);
            return fail(c, "input '%s': %s", given->items[i], message);
        }
        list_add(&in->paths, path);
        tensor_file_reinterpret(&in->files[i], wanted);
        in->names[i] = name;
        in->tensors[i] = in->files[i].tensor;
        in->count++;
    }
    return EXIT_DONE;
}

static int not_a_shape(const command *c, const char *text) {
    return usage(c, "--input-shape must be NAME=1x3x480x640, not '%s'", text);
}

int model_inputs_shape(model_inputs *in, const command *c, const string_list *shapes) {
    for (size_t s = 0; s < shapes->count; s++) {
        char *name = NULL;
        const char *text = split(shapes->items[s], &name);
        if (!text) return not_a_shape(c, shapes->items[s]);
        size_t i = 0;
        while (i < in->count && strcmp(in->names[i], name)) i++;
        free(name);
        if (i == in->count) continue;
        pith_tensor *t = &in->tensors[i];
        int64_t before = pith_shape_count(t->dims, t->rank);
        if (pith_shape_parse(t->dims, &t->rank, text, NULL))
            return not_a_shape(c, shapes->items[s]);
        if (pith_shape_count(t->dims, t->rank) != before)
            return fail(c, "--input-shape '%s': the file has %lld elements", shapes->items[s],
                        (long long)before);
    }
    return EXIT_DONE;
}

const pith_tensor *model_inputs_find(const model_inputs *in, const char *name) {
    for (size_t i = 0; i < in->count; i++)
        if (!strcmp(in->names[i], name)) return &in->tensors[i];
    return NULL;
}

/* The name of axis d: the d-th of "[batch, sequence, 384]". */
static const char *axis_name(char name[64], const pith_port *port, int d) {
    const char *at = port->shape + (*port->shape == '[');
    for (int i = 0; i < d && at; i++) {
        at = strchr(at, ',');
        if (at) at++;
    }
    if (at) at += strspn(at, " ");
    snprintf(name, 64, "%.*s", at ? (int)strcspn(at, ",]") : 0, at ? at : "");
    return name;
}

int64_t model_inputs_size(const model_inputs *in, const pith_model *model, const pith_port *port,
                          int d,
                          int64_t (*choose)(const pith_port *port, const char *name, int d)) {
    char name[64], other[64];
    int64_t chosen = -1;
    axis_name(name, port, d);
    if (*name && *name != '?')
        for (size_t p = 0; p < pith_model_input_count(model); p++) {
            const pith_port *peer = pith_model_input(model, p);
            const pith_tensor *given = model_inputs_find(in, peer->name);
            for (int i = 0; i < peer->rank; i++) {
                if (peer->dims[i] >= 0 || strcmp(name, axis_name(other, peer, i)) != 0) continue;
                if (given && given->rank == peer->rank) return given->dims[i];
                if (chosen < 0) chosen = choose(peer, other, i);
            }
        }
    return chosen < 0 ? choose(port, name, d) : chosen;
}

void model_inputs_add(model_inputs *in, const char *name, const pith_tensor *tensor) {
    make_room(in);
    in->names[in->count] = strdup(name);
    in->files[in->count] = (tensor_file){ .tensor = *tensor };
    in->tensors[in->count++] = *tensor;
}

static int64_t size_one(const pith_port *port, const char *name, int d) {
    (void)port, (void)name, (void)d;
    return 1;
}

int model_inputs_invent(model_inputs *in, const command *c, const pith_model *model) {
    for (size_t p = 0; p < pith_model_input_count(model); p++) {
        const pith_port *port = pith_model_input(model, p);
        pith_tensor t = { .dtype = port->dtype, .rank = port->rank < 0 ? 0 : port->rank };
        if (port->optional || model_inputs_find(in, port->name)) continue;
        for (int d = 0; d < t.rank; d++)
            t.dims[d] =
                port->dims[d] < 0 ? model_inputs_size(in, model, port, d, size_one) : port->dims[d];
        if (port->dtype == PITH_STRING ||
            pith_shape_bytes(&t.bytes, port->dtype, t.dims, t.rank, NULL))
            return fail(c,
                        "input '%s' is missing; give it with -i, or its shape with --input-shape",
                        port->name);
        t.data = memset(grow(NULL, t.bytes), 0, t.bytes);
        model_inputs_add(in, port->name, &t);
    }
    return EXIT_DONE;
}

void model_inputs_free(model_inputs *in) {
    for (size_t i = 0; i < in->count; i++) {
        free((char *)(uintptr_t)in->names[i]);
        tensor_file_close(&in->files[i]);
    }
    free(in->names);
    free(in->files);
    free(in->tensors);
    free(in->paths.items);
}
