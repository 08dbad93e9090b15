/* op_regex_full_match.c - RegexFullMatch: which strings a regular expression matches as a whole.
 *
 * PCRE2 with UTF, anchored at both ends, within a step limit. The standard names RE2, whose syntax
 * is nearly a subset. Source: ONNX RegexFullMatch (opset 20). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/ops/op.h"

/* Steps of one match before it is an error, so that an expression cannot run without end. */
enum { STEP_LIMIT = 1000000 };

static pith_status regex_infer(pith__infer *c) {
    if (!pith__node_attr(c->node, "pattern"))
        return pith__op_fail(c, "attribute 'pattern' is missing");
    pith__type_set(&c->out[0], PITH_BOOL, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* An error of a match (the step limit, invalid UTF-8) is one of the run, not a mismatch. */
static pith_status regex_match_all(pith__run *r, pcre2_code *code, pcre2_match_data *match,
                                   pcre2_match_context *limits) {
    const pith_str *texts = r->in[0]->data;
    uint8_t *y = r->out[0]->data;
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_look(r));
        int found = pcre2_match(code, (PCRE2_SPTR)(texts[i].data ? texts[i].data : ""),
                                texts[i].size, 0, 0, match, limits);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
            char message[128] = "";
            pcre2_get_error_message(found, (PCRE2_UCHAR *)message, sizeof message);
            return pith__fail(r->err, PITH_ERR_RUN, "string %lld: %s", (long long)i, message);
        }
        y[i] = found >= 0;
    }
    return PITH_OK;
}

/* PCRE2's objects are its own memory: they are freed on every way out. */
static pith_status regex_run(pith__run *r) {
    pith_str pattern = pith__node_str(r->node, "pattern", "");
    int error;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size,
                      PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at, NULL);
    if (!code) {
        char message[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        return pith__fail(r->err, PITH_ERR_FORMAT, "pattern: %s at byte %zu", message, (size_t)at);
    }
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pith_status status = PITH_OK;
    if (!match || !limits) {
        status = pith__fail_memory(r->err, pattern.size);
    } else {
        pcre2_set_match_limit(limits, STEP_LIMIT);
        pcre2_set_depth_limit(limits, STEP_LIMIT);
        status = regex_match_all(r, code, match, limits);
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return status;
}

const pith__op pith__op_RegexFullMatch = {
    .domain = "",
    .name = "RegexFullMatch",
    .since = 20,
    .newest = 20,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "s",
    .attrs = "pattern string",
    .infer = regex_infer,
    .run = regex_run,
    .note = "PCRE2 syntax",
};
