/* verify_fusions.c - compares the optimised forms of models with the models as written, on made-up
 * inputs. */
#include "cli/compare/verify_fusions.h"

#include <math.h>
#include <stdio.h>

#include "cli/base/message.h"
#include "cli/base/progress_line.h"
#include "cli/options/field_flags.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

typedef struct fusion_report {
    const char *model;
    bool as_json;
    json_t *findings, *errors;
    progress_line line;
} fusion_report;

static void fusion_found(void *user, const pith_check_finding *f) {
    fusion_report *r = user;
    if (r->as_json) {
        json_t *finding =
            json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:f}", "model", r->model, "level",
                      (int)f->level, "pass", f->pass, "node", f->node, "output", f->output,
                      "inputs", f->inputs, "allowed", f->allowed);
        json_t *difference = isfinite(f->difference) ? json_real(f->difference) : json_null();
        if (finding) json_object_set_new(finding, "difference", difference);
        json_array_append_new(r->findings, finding ? finding : json_null());
        return;
    }
    if (r->line.any) note_line_end();
    printf("%s: level %d, pass %s, %s: output '%s' ", r->model, (int)f->level, f->pass, f->node,
           f->output);
    if (isfinite(f->difference))
        printf("differs by %.3g of its largest number (%.3g is allowed)", f->difference,
               f->allowed);
    else
        printf("has another shape, or other elements that are not finite");
    printf("; inputs: %s\n", f->inputs);
}

/* With --json there is one object for all models, and the errors are in it. */
static int fusion_refused(fusion_report *r, const command *c, const pith_error *err) {
    if (!r->as_json) return fail_model(c, err, r->model);
    pith_error told = *err;
    name_flags(c, told.message);
    note("pith %s: %s: %s", c->name, r->model, told.message);
    json_array_append_new(
        r->errors, json_pack("{s:s, s:o}", "model", r->model, "error", json_text(told.message)));
    return EXIT_FAILED;
}

int verify_fusions(const command *c, const string_list *models, const fusion_check *check) {
    int code = EXIT_DONE;
    size_t passed = 0, failed = 0;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.optimization = check->level;
    open.loop_limit = check->loop_limit;
    fusion_report report = { NULL, check->as_json, json_array(), json_array(), { .on = false } };
    progress_line_begin(&report.line, "runs", false, false, "");
    pith_check_options options = PITH_CHECK_OPTIONS_INIT;
    options.open = &open;
    options.seed = (uint64_t)check->seed;
    options.runs = check->runs;
    options.finding = fusion_found;
    options.user = &report;
    options.call.progress = progress_line_hear;
    options.call.user = &report.line;
    for (size_t i = 0; i < models->count; i++) {
        pith_error err = PITH_ERROR_INIT;
        size_t findings = 0;
        report.model = models->items[i];
        pith_source *source = NULL;
        pith_status status = pith_source_open(&source, report.model, NULL, &err);
        if (!status) status = pith_source_check_fusions(&findings, source, &options, &err);
        pith_source_close(source);
        if (status) {
            code = fusion_refused(&report, c, &err);
            failed++;
        } else if (findings) {
            code = EXIT_FAILED;
            failed++;
        } else {
            passed++;
        }
    }
    if (report.line.any) note_line_end();
    if (check->as_json)
        json_print(json_pack("{s:I, s:I, s:o, s:o}", "passed", (json_int_t)passed, "failed",
                             (json_int_t)failed, "findings", report.findings, "errors",
                             report.errors));
    else {
        json_decref(report.findings);
        json_decref(report.errors);
    }
    if (!check->as_json) printf("%zu passed, %zu failed\n", passed, failed);
    return output_close_standard(c, code);
}
