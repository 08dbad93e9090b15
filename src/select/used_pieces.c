/* used_pieces.c - see used_pieces.h. Every list of this build once more, with the names of its
 * entries.
 *
 * Nothing but pith/select.h refers to this file, so other programs do not link it. What was heard
 * is kept in static memory: a byte per piece, and the facts of each operator. Any thread may write
 * them. */
#include "select/used_pieces.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/optional_part.h"
#include "base/piece_listener.h"
#include "base/text_out.h"
#include "engine/backend/backend.h"
#include "engine/kernels/kernel.h"
#include "engine/ops/custom/custom.h"
#include "engine/opt/pass.h"
#include "engine/ragged/rule.h"
#include "engine/runtime/runtime.h"
#include "models/architectures/family.h"
#include "models/heads/head.h"
#include "models/modules/module_class.h"
#include "models/open/reader.h"
#include "models/tasks/task.h"
#include "text/pipeline.h"

#define OP(symbol) extern const pith__op pith__op_##symbol;
#define PASS(name) extern const pith__pass pith__pass_##name;
#define NORMALIZER(symbol) extern const pith__normalizer_desc pith__normalizer_##symbol;
#define PRE_TOKENIZER(symbol) extern const pith__pretokenizer_desc pith__pretokenizer_##symbol;
#define MODEL(symbol) extern const pith__model_desc pith__model_##symbol;
#define DECODER(symbol) extern const pith__decoder_desc pith__decoder_##symbol;
#define SOURCE(symbol) extern const pith__tokenizer_source pith__source_##symbol;
#define HEAD(name) extern const pith__head pith__head_##name;
#define READER(name) extern const pith__reader pith__reader_##name;
#define RAGGED(name) extern const pith__ragged_rule pith__ragged_rule_##name;
#define FAMILY(name) extern const pith__hf_family pith__hf_family_##name;
#define TASK(name) extern const pith__hf_task pith__hf_task_##name;
#define MODULE(name) extern const pith__module_class pith__module_class_##name;
#define RUNTIME(name) extern const pith__runtime pith__runtime_##name;
#define PART(name) extern const pith__part pith__part_##name;
#define REFUSED(symbol, name, reason)
#include "select/families.def"
#include "select/heads.def"
#include "select/modules.def"
#include "select/ops.def"
#include "select/parts.def"
#include "select/passes.def"
#include "select/ragged.def"
#include "select/readers.def"
#include "select/runtimes.def"
#include "select/tasks.def"
#include "select/tokenizers.def"
#undef OP
#undef PASS
#undef HEAD
#undef READER
#undef RAGGED
#undef FAMILY
#undef TASK
#undef MODULE
#undef RUNTIME
#undef PART
#undef REFUSED

typedef struct piece_row {
    const char *name;
    const void *piece;
} piece_row;

#define ROW(kind, name) { #name, &pith__##kind##_##name },

static const piece_row normalizers[] = {
#define NORMALIZER(symbol) ROW(normalizer, symbol)
#include "select/tokenizers.def"
    { NULL, NULL }
};
static const piece_row pre_tokenizers[] = {
#define PRE_TOKENIZER(symbol) ROW(pretokenizer, symbol)
#include "select/tokenizers.def"
    { NULL, NULL }
};
static const piece_row tokenizer_models[] = {
#define MODEL(symbol) ROW(model, symbol)
#include "select/tokenizers.def"
    { NULL, NULL }
};
static const piece_row decoders[] = {
#define DECODER(symbol) ROW(decoder, symbol)
#include "select/tokenizers.def"
    { NULL, NULL }
};
static const piece_row tokenizer_sources[] = {
#define SOURCE(symbol) ROW(source, symbol)
#include "select/tokenizers.def"
    { NULL, NULL }
};
static const piece_row operators[] = {
#define OP(symbol) ROW(op, symbol)
#include "select/ops.def"
    { NULL, NULL }
};
static const piece_row passes[] = {
#define PASS(name) ROW(pass, name)
#include "select/passes.def"
    { NULL, NULL }
};
static const piece_row ragged[] = {
#define RAGGED(name) ROW(ragged_rule, name)
#include "select/ragged.def"
    { NULL, NULL }
};
static const piece_row readers[] = {
#define READER(name) ROW(reader, name)
#include "select/readers.def"
    { NULL, NULL }
};
static const piece_row families[] = {
#define FAMILY(name) ROW(hf_family, name)
#include "select/families.def"
    { NULL, NULL }
};
static const piece_row tasks[] = {
#define TASK(name) ROW(hf_task, name)
#include "select/tasks.def"
    { NULL, NULL }
};
static const piece_row modules[] = {
#define MODULE(name) ROW(module_class, name)
#define REFUSED(symbol, name, reason)
#include "select/modules.def"
    { NULL, NULL }
};
static const piece_row heads[] = {
#define HEAD(name) ROW(head, name)
#include "select/heads.def"
    { NULL, NULL }
};
static const piece_row runtimes[] = {
#define RUNTIME(name) ROW(runtime, name)
#include "select/runtimes.def"
    { NULL, NULL }
};
static const piece_row parts[] = {
#define PART(name) ROW(part, name)
#include "select/parts.def"
    { NULL, NULL }
};
static const char *const kernels[] = {
#define KERNEL(family, suffix) #family " " #suffix,
#define PLAIN(family, suffix) #family " " #suffix,
#include "select/kernels.def"
    NULL
};

enum {
    OPERATOR_COUNT = sizeof operators / sizeof *operators,
    KERNEL_COUNT = sizeof kernels / sizeof *kernels,
};

/* What belongs to one list. The kernels, whose rows are no descriptors, have one of their own. */
#define LIST(rows)                                                                                 \
    {                                                                                              \
#rows, rows, (atomic_uchar[sizeof rows / sizeof *rows]) { 0 }                              \
    }
static const struct {
    const char *name;
    const piece_row *rows;
    atomic_uchar *heard;
} lists[] = {
    LIST(passes),
    LIST(ragged),
    LIST(readers),
    LIST(families),
    LIST(tasks),
    LIST(modules),
    LIST(heads),
    LIST(tokenizer_sources),
    LIST(normalizers),
    LIST(pre_tokenizers),
    LIST(tokenizer_models),
    LIST(decoders),
    LIST(runtimes),
    LIST(parts),
};
static atomic_uchar kernels_heard[KERNEL_COUNT];
static atomic_uchar operators_heard[OPERATOR_COUNT];
static _Atomic uint32_t operator_facts[OPERATOR_COUNT];

static void pieces_hear(const void *piece, uint32_t facts) {
    uintptr_t first = (uintptr_t)pith__kernel_table, at = (uintptr_t)piece;
    if (at >= first && at < (uintptr_t)(pith__kernel_table + pith__kernel_table_count)) {
        atomic_store(&kernels_heard[(at - first) / sizeof *pith__kernel_table], 1);
        return;
    }
    for (size_t i = 0; operators[i].name; i++) {
        if (operators[i].piece != piece) continue;
        atomic_store(&operators_heard[i], 1);
        atomic_fetch_or(&operator_facts[i], facts);
        return;
    }
    for (pith__custom_op *custom = pith__custom_first(); custom; custom = custom->next) {
        if (&custom->op != piece) continue;
        atomic_store(&custom->heard, 1);
        atomic_fetch_or(&custom->facts, facts);
        return;
    }
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; lists[l].rows[i].name; i++)
            if (lists[l].rows[i].piece == piece) atomic_store(&lists[l].heard[i], 1);
}

pith_status pith__pieces_begin(pith_error *err) {
    pith__piece_fn *nobody = NULL;
    if (!atomic_compare_exchange_strong(&pith__piece_listener, &nobody, pieces_hear))
        return pith__fail(err, PITH_ERR_ARGUMENT, "the pieces in use are being recorded already");
    return PITH_OK;
}

typedef void piece_teller(void *user, const pith_build_piece *piece);

static void pieces_tell_operator(const pith__op *op, uint32_t facts, piece_teller *tell,
                                 void *user) {
    char name[128], dtypes[256];
    pith__text_out out = pith__text_begin(name, sizeof name);
    pith__text_put(&out, "%s%s%s", op->domain, op->domain[0] ? "::" : "", op->name);
    out = pith__text_begin(dtypes, sizeof dtypes);
    for (int d = 1; d < PITH_DTYPE_COUNT; d++)
        if (facts >> d & 1)
            pith__text_put(&out, "%s%s", dtypes[0] ? " " : "", pith__dtype_short_name(d));
    tell(user,
         &(pith_build_piece){ "operators", name, dtypes, (facts & PITH_PIECE_UPGRADED) != 0 });
}

static void pieces_tell_operators(piece_teller *tell, void *user) {
    for (size_t i = 0; operators[i].name; i++) {
        uint32_t facts = atomic_exchange(&operator_facts[i], 0);
        if (atomic_exchange(&operators_heard[i], 0))
            pieces_tell_operator(operators[i].piece, facts, tell, user);
    }
    for (pith__custom_op *custom = pith__custom_first(); custom; custom = custom->next) {
        uint32_t facts = atomic_exchange(&custom->facts, 0);
        if (atomic_exchange(&custom->heard, 0))
            pieces_tell_operator(&custom->op, facts, tell, user);
    }
}

pith_status pith__pieces_end(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err) {
    pith__piece_fn *own = pieces_hear;
    if (!atomic_compare_exchange_strong(&pith__piece_listener, &own, NULL))
        return pith__fail(err, PITH_ERR_ARGUMENT, "the pieces in use are not being recorded");
    pieces_tell_operators(piece, user);
    for (size_t i = 0; kernels[i]; i++)
        if (atomic_exchange(&kernels_heard[i], 0))
            piece(user, &(pith_build_piece){ "kernels", kernels[i], "", 0 });
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; lists[l].rows[i].name; i++)
            if (atomic_exchange(&lists[l].heard[i], 0))
                piece(user, &(pith_build_piece){ lists[l].name, lists[l].rows[i].name, "", 0 });
    return PITH_OK;
}

pith_status pith__pieces_all(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err) {
    if (!piece)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no function to call for each piece");
    for (size_t i = 0; operators[i].name; i++)
        pieces_tell_operator(operators[i].piece, 0, piece, user);
    for (pith__custom_op *custom = pith__custom_first(); custom; custom = custom->next)
        pieces_tell_operator(&custom->op, 0, piece, user);
    for (size_t i = 0; kernels[i]; i++)
        piece(user, &(pith_build_piece){ "kernels", kernels[i], "", 0 });
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; lists[l].rows[i].name; i++)
            piece(user, &(pith_build_piece){ lists[l].name, lists[l].rows[i].name, "", 0 });
    return PITH_OK;
}
