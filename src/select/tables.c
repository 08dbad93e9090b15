/* tables.c - what this build contains, made from the lists next to it.
 *
 * This is the only file that reads the .def lists, but for used_pieces.c, which names their entries. A selective build
 * compiles it with shorter lists and links it before the library. Whatever no list names is then never pulled from the
 * archive, or drops out at link time. */
#include "engine/backend/backend.h"
#include "base/left_out_pieces.h"
#include "base/optional_part.h"
#include "models/heads/head.h"
#include "models/architectures/family.h"
#include "models/modules/module_class.h"
#include "models/tasks/task.h"
#include "engine/kernels/kernel.h"
#include "models/open/model_runtime.h"
#include "models/open/reader.h"
#include "engine/ops/custom/custom.h"
#include "engine/opt/pass.h"
#include "engine/ragged/rule.h"
#include "tables/sources/source.h"
#include "engine/runtime/runtime.h"
#include "text/pipeline.h"

#define OP(symbol) extern const pith_op pith_op_##symbol;
#include "select/ops.def"
#undef OP

const pith_op *const pith_op_table[] = {
#define OP(symbol) &pith_op_##symbol,
#include "select/ops.def"
#undef OP
    NULL
};
const size_t pith_op_table_count = sizeof pith_op_table / sizeof pith_op_table[0] - 1;
const pith_op_checks *const pith_op_checks_used =
    sizeof pith_op_table > sizeof pith_op_table[0] ? &pith_op_checks_all : NULL;

/* The operators of PITH_EXTRA_OPS, which CMake puts into the list of the build folder. */
#define EXTRA_OP(symbol, name) extern const pith_operator pith_operator_##symbol;
#include "select/extra_ops.def"
#undef EXTRA_OP

const pith_extra_op pith_extra_op_table[] = {
#define EXTRA_OP(symbol, name) { &pith_operator_##symbol, #name, pith_custom_take },
#include "select/extra_ops.def"
#undef EXTRA_OP
    { NULL, NULL, NULL }
};

#define PASS(name) extern const pith_pass pith_pass_##name;
#include "select/passes.def"
#undef PASS

const pith_pass *const pith_pass_table[] = {
#define PASS(name) &pith_pass_##name,
#include "select/passes.def"
#undef PASS
    NULL
};
const size_t pith_pass_table_count = sizeof pith_pass_table / sizeof pith_pass_table[0] - 1;

#define LEVEL_FN(isa, family, suffix) [PITH_ISA_##isa] = (pith_kernel_fn *)pith_k_##family##_##suffix##_##isa,
#define LEVEL_DECLARE(isa, family, suffix) void pith_k_##family##_##suffix##_##isa(void);
#define KERNEL(family, suffix) PITH_ISAS(LEVEL_DECLARE, family, suffix)
#define PLAIN(family, suffix) void pith_k_##family##_##suffix(void);
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN

const pith_kernel_row pith_kernel_table[] = {
#define KERNEL(family, suffix) { #family, PITH_SUFFIX_##suffix, { PITH_ISAS(LEVEL_FN, family, suffix) } },
#define PLAIN(family, suffix) { #family, PITH_SUFFIX_##suffix, { (pith_kernel_fn *)pith_k_##family##_##suffix } },
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN
    { NULL, 0, { NULL } }
};
const size_t pith_kernel_table_count = sizeof pith_kernel_table / sizeof pith_kernel_table[0] - 1;

#define NORMALIZER(symbol) extern const pith_normalizer_desc pith_normalizer_##symbol;
#define PRE_TOKENIZER(symbol) extern const pith_pretokenizer_desc pith_pretokenizer_##symbol;
#define MODEL(symbol) extern const pith_model_desc pith_model_##symbol;
#define DECODER(symbol) extern const pith_decoder_desc pith_decoder_##symbol;
#define SOURCE(symbol) extern const pith_tokenizer_source pith_source_##symbol;
#include "select/tokenizers.def"

const pith_normalizer_desc *const pith_normalizer_table[] = {
#define NORMALIZER(symbol) &pith_normalizer_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith_pretokenizer_desc *const pith_pretokenizer_table[] = {
#define PRE_TOKENIZER(symbol) &pith_pretokenizer_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith_model_desc *const pith_model_table[] = {
#define MODEL(symbol) &pith_model_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith_decoder_desc *const pith_decoder_table[] = {
#define DECODER(symbol) &pith_decoder_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith_tokenizer_source *const pith_tokenizer_sources[] = {
#define SOURCE(symbol) &pith_source_##symbol,
#include "select/tokenizers.def"
    NULL
};

#define HEAD(name) extern const pith_head pith_head_##name;
#include "select/heads.def"
#undef HEAD

const pith_head *const pith_head_table[] = {
#define HEAD(name) &pith_head_##name,
#include "select/heads.def"
#undef HEAD
    NULL
};
const size_t pith_head_table_count = sizeof pith_head_table / sizeof pith_head_table[0] - 1;

#define READER(name) extern const pith_reader pith_reader_##name;
#include "select/readers.def"
#undef READER

const pith_reader *const pith_reader_table[] = {
#define READER(name) &pith_reader_##name,
#include "select/readers.def"
#undef READER
    NULL
};
const size_t pith_reader_table_count = sizeof pith_reader_table / sizeof pith_reader_table[0] - 1;

#define RAGGED(name) extern const pith_ragged_rule pith_ragged_rule_##name;
#include "select/ragged.def"
#undef RAGGED

const pith_ragged_rule *const pith_ragged_rule_table[] = {
#define RAGGED(name) &pith_ragged_rule_##name,
#include "select/ragged.def"
#undef RAGGED
    NULL
};
const size_t pith_ragged_rule_table_count = sizeof pith_ragged_rule_table / sizeof pith_ragged_rule_table[0] - 1;

#define FAMILY(name) extern const pith_hf_family pith_hf_family_##name;
#include "select/families.def"
#undef FAMILY

const pith_hf_family *const pith_hf_family_table[] = {
#define FAMILY(name) &pith_hf_family_##name,
#include "select/families.def"
#undef FAMILY
    NULL
};
const size_t pith_hf_family_count = sizeof pith_hf_family_table / sizeof pith_hf_family_table[0] - 1;

#define TASK(name) extern const pith_hf_task pith_hf_task_##name;
#include "select/tasks.def"
#undef TASK

const pith_hf_task *const pith_hf_task_table[] = {
#define TASK(name) &pith_hf_task_##name,
#include "select/tasks.def"
#undef TASK
    NULL
};
const size_t pith_hf_task_count = sizeof pith_hf_task_table / sizeof pith_hf_task_table[0] - 1;

#define RUNTIME(name) extern const pith_runtime pith_runtime_##name;
#include "select/runtimes.def"
#undef RUNTIME

const pith_runtime *const pith_runtime_table[] = {
#define RUNTIME(name) &pith_runtime_##name,
#include "select/runtimes.def"
#undef RUNTIME
    NULL
};
const size_t pith_runtime_table_count = sizeof pith_runtime_table / sizeof pith_runtime_table[0] - 1;
const pith_engine_functions *const pith_engine_used =
    sizeof pith_runtime_table > 2 * sizeof pith_runtime_table[0] ? &pith_engine_all : NULL;

#define MODULE(name) extern const pith_module_class pith_module_class_##name;
#define REFUSED(symbol, class_name, reason)                                                                            \
    static const pith_module_class refused_##symbol = { .name = class_name, .refused = reason };
#include "select/modules.def"
#undef MODULE
#undef REFUSED

const pith_module_class *const pith_module_class_table[] = {
#define MODULE(name) &pith_module_class_##name,
#define REFUSED(symbol, class_name, reason) &refused_##symbol,
#include "select/modules.def"
#undef MODULE
#undef REFUSED
    NULL
};
const size_t pith_module_class_count = sizeof pith_module_class_table / sizeof pith_module_class_table[0] - 1;

#define PART(name) extern const pith_part pith_part_##name;
#include "select/parts.def"
#undef PART

const pith_part *const pith_part_table[] = {
#define PART(name) &pith_part_##name,
#include "select/parts.def"
#undef PART
    NULL
};

#define BACKEND(name) extern const pith_backend pith_backend_##name;
#include "select/backends.def"
#undef BACKEND

const pith_backend *const pith_backend_table[] = {
#define BACKEND(name) &pith_backend_##name,
#include "select/backends.def"
#undef BACKEND
    NULL
};
const size_t pith_backend_table_count = sizeof pith_backend_table / sizeof pith_backend_table[0] - 1;
const bool pith_backends_differ = sizeof pith_backend_table > 2 * sizeof pith_backend_table[0];

const uint32_t pith_dropped_table[] = {
#define DROPPED(hash) hash,
#define DROPPED_NAME(name)
#define DROPPED_SPEED(name)
#include "select/dropped.def"
#undef DROPPED
    0
};
const size_t pith_dropped_count = sizeof pith_dropped_table / sizeof pith_dropped_table[0] - 1;

const char pith_dropped_names[] =
#undef DROPPED_NAME
#define DROPPED(hash)
#define DROPPED_NAME(name) name "\0"
#include "select/dropped.def"
#undef DROPPED_NAME
#undef DROPPED_SPEED
    "";

const char pith_dropped_speed[] =
#define DROPPED_NAME(name)
#define DROPPED_SPEED(name) name "\0"
#include "select/dropped.def"
#undef DROPPED
#undef DROPPED_NAME
#undef DROPPED_SPEED
    "";

#define TABLE_SOURCE(name) extern const pith_source_kind pith_source_kind_##name;
#include "select/table_sources.def"
#undef TABLE_SOURCE

const pith_source_kind *const pith_source_kind_table[] = {
#define TABLE_SOURCE(name) &pith_source_kind_##name,
#include "select/table_sources.def"
#undef TABLE_SOURCE
    NULL
};
