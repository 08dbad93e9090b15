/* fuse_operators.c - see fuse_operators.h. */
#include "formats/export/fuse_operators.h"

#include <stdio.h>
#include <string.h>

#include "base/left_out_pieces.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text_out.h"
#include "models/open/open.h"

/* Passes that do not run, up to a kind: those whose results are for Pith's own kernels run for none. ONNX Runtime's
 * SkipLayerNormalization for CPUs is slower than the sum and the norm, and RotaryEmbedding and EmbedLayerNormalization
 * gain nothing there. */
static const struct {
    const char *pass;
    pith_fused_kind until; /* the first kind that has it; PITH_FUSED_ALL + 1: none */
} fused_passes[] = {
    { "widen", PITH_FUSED_ALL + 1 },
    { "gated", PITH_FUSED_ALL + 1 },
    { "precision", PITH_FUSED_ALL + 1 },
    { "repeats", PITH_FUSED_ALL + 1 },
    { "rotary", PITH_FUSED_ALL },
    { "embed_norm", PITH_FUSED_ALL },
    { "skip_norm", PITH_FUSED_GPU },
    { "linear", PITH_FUSED_FAST },
    { "attention", PITH_FUSED_FAST },
    { "qkv", PITH_FUSED_FAST },
    { "channels_last", PITH_FUSED_ALL + 1 },
};
enum { FUSED_PASSES = sizeof fused_passes / sizeof *fused_passes };

/* Passes without which an operator is not made; the first is the name that is told. */
static const struct {
    const char *op, *passes[2];
} fused_makers[] = { { "Attention", { "attention", "qkv" } },
                     { "Linear", { "linear", "qkv" } },
                     { "Rotary", { "rotary", NULL } } };
enum { FUSED_MAKERS = sizeof fused_makers / sizeof *fused_makers };

static pith_write_back fused_form(const pith_fused *f, int32_t opset) {
    return (pith_write_back){ .standard = f->kind == PITH_FUSED_STANDARD,
                              .all = f->kind == PITH_FUSED_ALL,
                              .opset = opset };
}

static bool fused_is_out(const pith_fused *f, const char *pass) {
    for (int i = 0; i < f->failures; i++)
        for (int m = 0; m < FUSED_MAKERS; m++)
            for (int k = 0; k < 2 && fused_makers[m].passes[k]; k++)
                if (f->failed[i] == fused_makers[m].passes[0] && !strcmp(fused_makers[m].passes[k], pass)) return true;
    return false;
}

/* Which pass made a node that has no form; NULL: none that can be left out. */
static const char *fused_maker_of(const pith_fused *f, const pith_node *node) {
    for (int m = 0; m < FUSED_MAKERS && node; m++)
        if (pith_str_is(node->domain, "pith") && pith_str_is(node->op_type, fused_makers[m].op) &&
            !fused_is_out(f, fused_makers[m].passes[0]))
            return fused_makers[m].passes[0];
    return NULL;
}

/* Passes that this build was made without would have fused more. without: those that do not run anyway. */
static void fused_tell_left_out(const pith_model *m, const char *const *without, size_t count) {
    static const char kind[] = "passes ";
    char names[500];
    pith_text_out out = pith_text_begin(names, sizeof names);
    bool any = false;
    for (const char *at = pith_dropped_speed; *at; at += strlen(at) + 1) {
        const char *name = at + sizeof kind - 1;
        size_t i = 0;
        if (strncmp(at, kind, sizeof kind - 1) != 0) continue;
        while (i < count && strcmp(without[i], name) != 0) i++;
        if (i < count) continue;
        pith_text_put(&out, "%s'- %s'", any ? ", " : "", name);
        any = true;
    }
    if (any)
        pith_log_write(m->options.log, PITH_LOG_WARNING,
                       "this selective build lacks passes, so fewer operators are fused; add to its list, and build "
                       "again: %s under 'passes:'",
                       names);
}

pith_status pith_fused_run(pith_fused *f, pith_model *model, bool *again, pith_error *err) {
    const char *without[FUSED_PASSES];
    size_t count = 0;
    pith_error why = PITH_ERROR_INIT;
    const pith_node *node = NULL;
    const pith_write_back form = fused_form(f, 0);
    for (int i = 0; i < FUSED_PASSES; i++)
        if (f->kind < fused_passes[i].until || fused_is_out(f, fused_passes[i].pass))
            without[count++] = fused_passes[i].pass;
    pith_opt opt = pith_model_optimizer(model, model->graph, err);
    const pith_opt_limits limits = { .runs = SIZE_MAX, .without = without, .without_count = count, .to_write = true };
    if (!f->failures) fused_tell_left_out(model, without, count);
    f->lines = (pith_report){ .arena = &model->arena };
    opt.level = f->level;
    opt.limits = &limits;
    opt.report = &f->lines;
    *again = false;
    PITH_TRY(pith_opt_run(&opt, NULL));
    if (!pith_export_check_write_back(model->graph, &form, &node, &why)) return PITH_OK;
    const char *maker = fused_maker_of(f, node);
    if (!maker || f->failures == PITH_FUSED_TRIES || f->level < 2)
        return PITH_OK; /* the model's own; writing it fails */
    f->failed[f->failures] = maker;
    snprintf(f->why[f->failures++], sizeof *f->why, "%s", why.message);
    *again = true;
    return PITH_OK;
}

pith_status pith_fused_write_back(const pith_fused *f, pith_graph *graph, int32_t opset, pith_error *err) {
    const pith_write_back form = fused_form(f, opset);
    return pith_export_write_back(graph, &form, err);
}

uint64_t pith_fused_tell(const pith_fused *f,
                         void (*tell)(void *user, int32_t done, const char *what, const char *text), void *user) {
    uint64_t fusions = 0;
    for (size_t i = 0; i < f->lines.count; i++) {
        const pith_report_line *line = &f->lines.lines[i];
        fusions += line->done;
        if (tell) tell(user, line->done, line->what, line->text.data);
    }
    for (int i = 0; i < f->failures && tell; i++) tell(user, 0, f->failed[i], f->why[i]);
    return fusions;
}
