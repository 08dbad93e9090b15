/* fuse_operators.c - see fuse_operators.h. */
#include "formats/export/fuse_operators.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text_out.h"
#include "models/open/open_model.h"

/* Passes that do not run, up to a kind: those whose results are for Pith's own kernels run for
 * none. ONNX Runtime's SkipLayerNormalization for CPUs is slower than the sum and the norm, and
 * RotaryEmbedding and EmbedLayerNormalization gain nothing there. */
static const struct {
    const char *pass;
    pith__fuse_kind until; /* the first kind that has it; PITH_FUSE_ALL + 1: none */
} fuse_passes[] = {
    { "widen", PITH_FUSE_ALL + 1 },
    { "gated", PITH_FUSE_ALL + 1 },
    { "precision", PITH_FUSE_ALL + 1 },
    { "repeats", PITH_FUSE_ALL + 1 },
    { "rotary", PITH_FUSE_ALL },
    { "embed_norm", PITH_FUSE_ALL },
    { "skip_norm", PITH_FUSE_GPU },
    { "linear", PITH_FUSE_FAST },
    { "attention", PITH_FUSE_FAST },
    { "qkv", PITH_FUSE_FAST },
    { "channels_last", PITH_FUSE_ALL + 1 },
};
enum { FUSE_PASSES = sizeof fuse_passes / sizeof *fuse_passes };

/* Passes without which an operator is not made; the first is the name that is told. */
static const struct {
    const char *op, *passes[2];
} fuse_makers[] = { { "Attention", { "attention", "qkv" } },
                    { "Linear", { "linear", "qkv" } },
                    { "Rotary", { "rotary", NULL } } };
enum { FUSE_MAKERS = sizeof fuse_makers / sizeof *fuse_makers };

static pith__replace_form fuse_form(const pith__fuse_state *f, int32_t opset) {
    return (pith__replace_form){ .standard = f->kind == PITH_FUSE_STANDARD,
                                 .all = f->kind == PITH_FUSE_ALL,
                                 .opset = opset };
}

/* A failed maker takes its helpers with it, such as "qkv" with "attention". */
static bool fuse_is_out(const pith__fuse_state *f, const char *pass) {
    for (int i = 0; i < f->failures; i++)
        for (int m = 0; m < FUSE_MAKERS; m++)
            for (int k = 0; k < 2 && fuse_makers[m].passes[k]; k++)
                if (f->failed[i] == fuse_makers[m].passes[0] &&
                    !strcmp(fuse_makers[m].passes[k], pass))
                    return true;
    return false;
}

/* Which pass made a node that has no form; NULL: none that can be left out. */
static const char *fuse_maker_of(const pith__fuse_state *f, const pith__node *node) {
    if (!node) return NULL;
    for (int m = 0; m < FUSE_MAKERS; m++)
        if (pith__str_is(node->domain, "pith") && pith__str_is(node->op_type, fuse_makers[m].op) &&
            !fuse_is_out(f, fuse_makers[m].passes[0]))
            return fuse_makers[m].passes[0];
    return NULL;
}

/* Passes that this build was made without would have fused more. without: those that do not run
 * anyway. */
static void fuse_tell_left_out(const pith_model *m, const char *const *without, size_t count) {
    static const char kind[] = "passes ";
    char names[500];
    pith__text_out out = pith__text_begin(names, sizeof names);
    bool any = false;
    for (const char *at = pith__dropped_speed; *at; at += strlen(at) + 1) {
        const char *name = at + sizeof kind - 1;
        size_t i = 0;
        if (strncmp(at, kind, sizeof kind - 1) != 0) continue;
        while (i < count && strcmp(without[i], name) != 0) i++;
        if (i < count) continue;
        pith__text_put(&out, "%s'- %s'", any ? ", " : "", name);
        any = true;
    }
    if (any)
        pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                        "this selective build lacks passes, so fewer operators are fused; add to "
                        "its list, and build "
                        "again: %s under 'passes:'",
                        names);
}

/* Passes make operators of Pith's own, and some of these have no form in other engines, which only
 * shows in the finished graph. The check runs here; the pass that made the operator is noted, and
 * the caller opens the model again and comes back, PITH_FUSE_TRIES times at most. */
pith_status pith__fuse_operators(pith__fuse_state *f, pith_model *model, bool *again,
                                 pith_error *err) {
    const char *without[FUSE_PASSES];
    size_t count = 0;
    pith_error why = PITH_ERROR_INIT;
    const pith__node *node = NULL;
    const pith__replace_form form = fuse_form(f, 0);
    for (int i = 0; i < FUSE_PASSES; i++)
        if (f->kind < fuse_passes[i].until || fuse_is_out(f, fuse_passes[i].pass))
            without[count++] = fuse_passes[i].pass;
    pith__opt opt = pith__model_optimizer(model, model->graph, err);
    const pith__opt_limits limits = {
        .runs = SIZE_MAX, .without = without, .without_count = count, .to_write = true
    };
    if (!f->failures) fuse_tell_left_out(model, without, count);
    f->lines = (pith__report){ .arena = &model->arena };
    opt.level = f->level;
    opt.limits = &limits;
    opt.report = &f->lines;
    *again = false;
    PITH_TRY(pith__opt_run(&opt, NULL));
    if (!pith__replace_check(model->graph, &form, &node, &why)) return PITH_OK;
    const char *maker = fuse_maker_of(f, node);
    if (!maker || f->failures == PITH_FUSE_TRIES || f->level < 2)
        return PITH_OK; /* the model's own; writing it fails */
    f->failed[f->failures] = maker;
    snprintf(f->why[f->failures++], sizeof *f->why, "%s", why.message);
    *again = true;
    return PITH_OK;
}

pith_status pith__fuse_write_back(const pith__fuse_state *f, pith__graph *graph, int32_t opset,
                                  pith_error *err) {
    const pith__replace_form form = fuse_form(f, opset);
    return pith__replace_pith_ops(graph, &form, err);
}

/* Lines of the report, and passes that were left out with the reason why their operator could not
 * be written. */
uint64_t pith__fuse_tell(const pith__fuse_state *f,
                         void (*tell)(void *user, int32_t done, const char *what, const char *text),
                         void *user) {
    uint64_t fusions = 0;
    for (size_t i = 0; i < f->lines.count; i++) {
        const pith__report_line *line = &f->lines.lines[i];
        fusions += line->done;
        if (tell) tell(user, line->done, line->what, line->text.data);
    }
    if (tell)
        for (int i = 0; i < f->failures; i++) tell(user, 0, f->failed[i], f->why[i]);
    return fusions;
}
