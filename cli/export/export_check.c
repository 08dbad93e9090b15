/* export_check.c - see export_check.h. Texts go one by one: the file has no tokenizer, so the
 * model's ids are fed. */
#include "cli/export/export_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const check_texts[] = {
    "A cat sat on the mat.",
    "Interest rates rose again this spring, and the price of bread with them.",
    "hello",
};
enum { CHECK_TEXTS = sizeof check_texts / sizeof *check_texts };

typedef struct checked {
    const command *c;
    const pith_source_options *from;
    const pith_export_options *options;
    pith_model *source, *made;
    pith_session *source_session, *made_session;
    double worst;
    pith_error err;
} checked;

/* An input of the file for one text, from malloc; false if the input is not one that texts have. */
static bool check_fill(pith_tensor *t, const pith_port *port, const pith_tokens *tokens) {
    const bool ids = !strcmp(port->name, "input_ids"), mask = !strcmp(port->name, "attention_mask"),
               types = !strcmp(port->name, "token_type_ids"),
               places = !strcmp(port->name, "position_ids");
    if (!ids && !mask && !types && !places) return false;
    if (port->dtype != PITH_I64 && port->dtype != PITH_I32) return false;
    const size_t n = tokens->count, bytes = port->dtype == PITH_I64 ? 8 : 4;
    *t = (pith_tensor){
        .dtype = port->dtype, .rank = 2, .dims = { 1, (int64_t)n }, .bytes = n * bytes
    };
    t->data = grow(NULL, n * bytes + 1);
    for (size_t i = 0; i < n; i++) {
        int64_t number = (int64_t)i;
        if (ids)
            number = tokens->ids[i];
        else if (mask)
            number = 1;
        else if (types)
            number = tokens->type_ids[i];
        if (bytes == 8)
            ((int64_t *)t->data)[i] = number;
        else
            ((int32_t *)t->data)[i] = (int32_t)number;
    }
    return true;
}

/* Runs the tokens of one text through a session; false if its inputs are not those of texts.
 * outputs is from malloc. */
static bool check_run(checked *k, pith_tensor **outputs, const pith_model *model,
                      pith_session *session, const pith_tokens *tokens, pith_status *status) {
    const size_t count = pith_model_input_count(model);
    pith_tensor *inputs = calloc(count + 1, sizeof *inputs);
    const char **names = calloc(count + 1, sizeof *names);
    bool fits = inputs && names;
    for (size_t i = 0; i < count && fits; i++) {
        const pith_port *port = pith_model_input(model, i);
        names[i] = port->name;
        fits = check_fill(&inputs[i], port, tokens);
    }
    *outputs = NULL;
    if (fits) {
        *outputs = grow(NULL, (pith_model_output_count(model) + 1) * sizeof **outputs);
        *status = pith_session_run(session, *outputs, names, inputs, count, NULL, &k->err);
    }
    if (inputs)
        for (size_t i = 0; i < count; i++) free(inputs[i].data);
    free(inputs);
    free(names);
    return fits;
}

static int check_differ(checked *k, const float *got, const float *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - (double)wanted[i]);
        if (!isfinite(got[i]) && isfinite(wanted[i]))
            return fail(
                k->c,
                "the exported network gives numbers that are not finite; give it another --dtype");
        if (d > k->worst) k->worst = d;
    }
    return EXIT_DONE;
}

/* Outputs of the same name are compared. */
static int check_outputs(checked *k, const pith_tensor *got, const pith_tensor *wanted) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < pith_model_output_count(k->made) && !code; i++)
        for (size_t s = 0; s < pith_model_output_count(k->source) && !code; s++) {
            bool same =
                !strcmp(pith_model_output(k->made, i)->name, pith_model_output(k->source, s)->name);
            if (!same || got[i].dtype != PITH_F32 || wanted[s].dtype != PITH_F32) continue;
            if (got[i].bytes != wanted[s].bytes)
                code = fail(
                    k->c, "output '%s' of the exported network has another shape than the model's",
                    pith_model_output(k->made, i)->name);
            else
                code = check_differ(k, got[i].data, wanted[s].data, got[i].bytes / sizeof(float));
        }
    return code;
}

static int check_vector(checked *k, const pith_tensor *got, pith_str text) {
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.pooling = k->options->pooling;
    o.normalize = k->options->normalize;
    o.dim = k->options->dim;
    o.prompt_name = "";
    const size_t dim = pith_embed_dim(k->source, &o);
    float *wanted = grow(NULL, (dim + 1) * sizeof *wanted);
    int code = EXIT_DONE;
    if (got->bytes != dim * sizeof(float))
        code = fail(k->c, "the exported network gives %zu numbers, the model %zu",
                    got->bytes / sizeof(float), dim);
    else if (pith_embed(wanted, k->source, &text, 1, &o, &k->err))
        code = fail(k->c, "%s", k->err.message);
    else
        code = check_differ(k, got->data, wanted, dim);
    free(wanted);
    return code;
}

/* The ids that the model's encoder is fed. Those of the tokenizer alone may have others, such as
 * special tokens for a static model; they serve where the encoder does not tell. */
static pith_status check_tokenize(checked *k, pith_tokens *tokens, pith_str text) {
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options plain = PITH_EMBED_OPTIONS_INIT;
    pith_tokenize_options t = PITH_TOKENIZE_OPTIONS_INIT;
    pith_encoded *encoded = NULL;
    pith_error ignored = PITH_ERROR_INIT;
    plain.prompt_name = "";
    o.what = PITH_ENCODE_TOKENS;
    o.embed = &plain;
    pith_status status =
        pith_tokenize(tokens, pith_model_tokenizer(k->source), text, NULL, &t, &k->err);
    if (status) return status;
    if (pith_encode(&encoded, k->source, &text, 1, &o, &ignored)) return PITH_OK;
    const size_t count = (size_t)encoded->tokens.offsets[1];
    if (count <= tokens->count) {
        memcpy(tokens->ids, encoded->tokens.ids, count * sizeof *tokens->ids);
        tokens->count = count;
    }
    pith_encoded_free(encoded);
    return PITH_OK;
}

/* -1: the model is not run on texts */
static int check_text(checked *k, const char *line) {
    const pith_str text = { line, strlen(line) };
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tensor *got = NULL, *wanted = NULL;
    pith_status status = PITH_OK;
    int code = -1;
    if (check_tokenize(k, &tokens, text)) {
        code = fail(k->c, "%s", k->err.message);
    } else if (check_run(k, &got, k->made, k->made_session, &tokens, &status)) {
        bool both = !status && !k->options->pool &&
                    check_run(k, &wanted, k->source, k->source_session, &tokens, &status);
        if (status)
            code = fail(k->c, "the exported network cannot be run: %s", k->err.message);
        else if (k->options->pool)
            code = check_vector(k, got, text);
        else if (both)
            code = check_outputs(k, got, wanted);
    }
    free(got);
    free(wanted);
    pith_tokens_free(&tokens);
    return code;
}

static int check_open(checked *k, const char *path, const char *model) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.model_file = k->from->model_file;
    o.route = k->from->route;
    if (pith_model_open(&k->source, model, &o, &k->err) ||
        pith_model_open(&k->made, path, NULL, &k->err) ||
        pith_session_create(&k->source_session, k->source, &k->err) ||
        pith_session_create(&k->made_session, k->made, &k->err))
        return fail(k->c, "%s was written but cannot be compared: %s", path, k->err.message);
    return EXIT_DONE;
}

int export_check(const command *c, double *worst, const char *path, const char *model,
                 const pith_source_options *from, const pith_export_options *options) {
    checked k = { .c = c, .from = from, .options = options, .err = PITH_ERROR_INIT };
    int code = check_open(&k, path, model);
    if (!code && !pith_model_tokenizer(k.source)) code = -1;
    for (size_t i = 0; i < CHECK_TEXTS && !code; i++) code = check_text(&k, check_texts[i]);
    pith_session_destroy(k.made_session);
    pith_session_destroy(k.source_session);
    if (k.made) pith_model_close(k.made);
    if (k.source) pith_model_close(k.source);
    *worst = code < 0 ? -1 : k.worst;
    return code < 0 ? EXIT_DONE : code;
}
