/* labels.c - see labels.h.
 *
 * The activation of a reranker stands in config_sentence_transformers.json, which counts if
 * modules.json is beside it and its model_type is CrossEncoder, in config.json's
 * "sentence_transformers", or in its older key; the first that is there counts. A class that is not
 * torch's is not imported: it counts as none. Sources: transformers, configuration_utils.py
 * (id2label, num_labels, problem_type) and pipelines/text_classification.py; sentence-transformers
 * 5.7 and 6.2, cross_encoder/model.py (get_default_activation_fn, _parse_model_config) and
 * base/model.py (_load_modules). */
#include "models/tasks/labels.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "formats/weights/adapter.h"

/* More labels than any classifier has; it bounds the table that a file can ask for. */
#define LABELS_MAX 100000

typedef struct labels_file {
    pith__hf_labels *labels;
    pith__arena *arena;
    pith_str problem;
    pith_str activation; /* a class path, … */
    const char *in;      /* … and the file that has it, for messages */
    pith_str model_type; /* of config_sentence_transformers.json */
    pith_str *names;
    size_t room;
    int64_t stated; /* num_labels; 0: not given */
} labels_file;

static int64_t labels_number(pith_str digits) {
    int64_t n = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9' || n > LABELS_MAX) return -1;
        n = 10 * n + (digits.data[i] - '0');
    }
    return digits.size && n < LABELS_MAX ? n : -1;
}

/* {"0": "negative", "1": "positive"} */
static void labels_read_names(pith__json *j, labels_file *f) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        int64_t id = labels_number(key);
        if (id < 0) {
            pith__json_fail(j, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is not the number of a label",
                            PITH_STR_ARG(key));
            return;
        }
        while ((size_t)id >= f->room) {
            size_t before = f->room;
            void *grown = f->names;
            if (!pith__arena_grow(f->arena, &grown, f->room, &f->room, sizeof *f->names)) {
                pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
                return;
            }
            f->names = grown;
            memset(f->names + before, 0, (f->room - before) * sizeof *f->names);
        }
        if (pith__json_peek(j) == PITH_JSON_STRING)
            f->names[id] = pith__json_copy(j, f->arena, pith__json_string(j));
        else
            f->names[id] = pith__json_copy(j, f->arena, pith__json_raw(j));
        if ((size_t)id >= f->labels->count) f->labels->count = (size_t)id + 1;
    }
}

/* A string, or null for none. It outlives the file. */
static pith_str labels_read_text(pith__json *j, labels_file *f) {
    return pith__json_null(j) ? PITH_STR("") : pith__json_copy(j, f->arena, pith__json_string(j));
}

static bool labels_ends_in(pith_str name, const char *suffix) {
    pith_str end = pith__str_of(suffix);
    return name.size >= end.size && !memcmp(name.data + name.size - end.size, end.data, end.size);
}

static void labels_read_architectures(pith__json *j, labels_file *f) {
    for (pith__json_array(j); pith__json_next_item(j);) {
        pith_str name = pith__json_string(j);
        f->labels->classifier |= labels_ends_in(name, "ForSequenceClassification");
        f->labels->causal |= labels_ends_in(name, "ForCausalLM");
    }
}

/* {"activation_fn": "torch.nn.modules.activation.Sigmoid"}; *there: the key is there, maybe with
 * null. */
static void labels_read_activation(pith__json *j, labels_file *f, bool *there) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "activation_fn")) {
            f->activation = labels_read_text(j, f);
            *there = true;
        } else if (pith__str_is(key, "model_type") && pith__json_peek(j) == PITH_JSON_STRING) {
            f->model_type = labels_read_text(j, f);
        } else {
            pith__json_skip(j);
        }
    }
}

static void labels_read_saved(pith__json *j, labels_file *f) {
    bool there;
    labels_read_activation(j, f, &there);
    if (!pith__str_is(f->model_type, "CrossEncoder")) f->activation = PITH_STR("");
}

static void labels_read_config(pith__json *j, labels_file *f) {
    pith_str key, older = PITH_STR("");
    bool there = false;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "id2label") && pith__json_peek(j) == PITH_JSON_OBJECT)
            labels_read_names(j, f);
        else if (pith__str_is(key, "num_labels") && pith__json_peek(j) == PITH_JSON_NUMBER)
            f->stated = pith__json_int(j);
        else if (pith__str_is(key, "architectures") && pith__json_peek(j) == PITH_JSON_ARRAY)
            labels_read_architectures(j, f);
        else if (pith__str_is(key, "problem_type"))
            f->problem = labels_read_text(j, f);
        else if (pith__str_is(key, "sbert_ce_default_activation_function"))
            older = labels_read_text(j, f);
        else if (pith__str_is(key, "sentence_transformers") &&
                 pith__json_peek(j) == PITH_JSON_OBJECT)
            labels_read_activation(j, f, &there);
        else
            pith__json_skip(j);
    }
    if (!there) f->activation = older;
}

/* Takes the activation of a class path such as "torch.nn.modules.linear.Identity". */
static pith_status labels_take_activation(labels_file *f, const pith_log *log, pith_error *err) {
    static const struct {
        const char *class;
        pith_activation activation;
    } known[] = { { "Identity", PITH_ACTIVATION_NONE },
                  { "Sigmoid", PITH_ACTIVATION_SIGMOID },
                  { "Softmax", PITH_ACTIVATION_SOFTMAX } };
    static const char package[] = "torch.";
    const pith_str path = f->activation;
    size_t dot = path.size;
    if (!path.size) return PITH_OK;
    if (path.size < sizeof package || memcmp(path.data, package, sizeof package - 1)) {
        pith__log_write(log, PITH_LOG_WARNING,
                        "%s: the activation '" PITH_STR_FMT
                        "' is code that is not of torch, which is not run; scores "
                        "are those without it, as sentence-transformers gives them",
                        f->in, PITH_STR_ARG(path));
        return PITH_OK;
    }
    while (path.data[dot - 1] != '.') dot--;
    pith_str class = { path.data + dot, path.size - dot };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!pith__str_is(class, known[i].class)) continue;
        f->labels->rerank = known[i].activation;
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "%s: the activation '" PITH_STR_FMT
                      "' is not known; Identity, Sigmoid and Softmax are",
                      f->in, PITH_STR_ARG(path));
}

/* num_labels goes before the number of names; names that do not fit it are those of transformers,
 * LABEL_0 and so on. */
static pith_status labels_count(labels_file *f, pith_error *err) {
    pith__hf_labels *l = f->labels;
    if (f->stated < 1 || f->stated > LABELS_MAX || !l->count || (size_t)f->stated == l->count)
        return PITH_OK;
    l->count = (size_t)f->stated;
    f->names = pith__arena_array(f->arena, l->count, sizeof *f->names);
    if (!f->names) return pith__fail_memory(err, l->count * sizeof *f->names);
    for (size_t i = 0; i < l->count; i++) {
        f->names[i] = pith__arena_printf(f->arena, "LABEL_%zu", i);
        if (!f->names[i].data) return pith__fail_memory(err, sizeof *f->names);
    }
    return PITH_OK;
}

static pith_status labels_decide(labels_file *f, pith_error *err) {
    pith__hf_labels *l = f->labels;
    PITH_TRY(labels_count(f, err));
    l->names = f->names;
    if (pith__str_is(f->problem, "multi_label_classification") || l->count == 1)
        l->classify = PITH_ACTIVATION_SIGMOID;
    if (pith__str_is(f->problem, "regression")) l->classify = PITH_ACTIVATION_NONE;
    if (l->count > 1) l->rerank = PITH_ACTIVATION_NONE;
    return PITH_OK;
}

/* Reads one file of the directory, if it is there. */
static pith_status labels_read_file(labels_file *f, pith_str dir, const char *name,
                                    void (*read)(pith__json *j, labels_file *f),
                                    const pith_allocator *allocator, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT; /* of the scanner, which needs one: err may be NULL */
    pith_str path;
    pith__file file;
    pith__json j;
    bool there;
    f->activation = PITH_STR("");
    PITH_TRY(pith__file_find(&there, &path, f->arena, dir.data, name, err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__file_open(&file, path.data, false, allocator, err));
    pith__json_init(&j, (pith_str){ (const char *)file.data, file.size }, path.data, f->arena,
                    &fault);
    j.python = true;
    read(&j, f);
    pith__json_finish(&j);
    pith__file_close(&file);
    f->in = path.data;
    return j.failed ? pith__fail(err, fault.code, "%s", fault.message) : PITH_OK;
}

/* A score that is the logit of an answer is one, whatever the labels of config.json are. */
static void labels_of_answer(pith__hf_labels *labels) {
    labels->names = NULL;
    labels->count = 0;
    labels->rerank = PITH_ACTIVATION_SIGMOID;
}

pith_status pith__hf_labels_read(pith__hf_labels *labels, const pith__hf_labels_source *source,
                                 const pith_allocator *allocator, pith__arena *arena,
                                 pith_error *err) {
    *labels =
        (pith__hf_labels){ .classify = PITH_ACTIVATION_SOFTMAX, .rerank = PITH_ACTIVATION_SIGMOID };
    labels_file f = { .labels = labels, .arena = arena, .model_type = PITH_STR("") };
    pith_str network, path;
    bool there;
    PITH_TRY(pith__adapter_base(&network, &there, source->network.data, arena, err));
    PITH_TRY(labels_read_file(&f, network, "config.json", labels_read_config, allocator, err));
    PITH_TRY(labels_decide(&f, err));
    if (source->answers) labels_of_answer(labels);
    PITH_TRY(labels_take_activation(&f, source->log, err));
    PITH_TRY(pith__file_find(&there, &path, arena, source->dir.data, "modules.json", err));
    if (!there) return PITH_OK;
    PITH_TRY(labels_read_file(&f, source->dir, "config_sentence_transformers.json",
                              labels_read_saved, allocator, err));
    return labels_take_activation(&f, source->log, err);
}
