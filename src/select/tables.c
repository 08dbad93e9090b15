/* tables.c - what this build contains, made from the lists next to it.
 *
 * This is the only file that reads the .def lists, but for used_pieces.c, which names their
 * entries. A selective build compiles it with shorter lists and links it before the library.
 * Whatever no list names is then never pulled from the archive, or drops out at link time. */
#include "base/left_out_pieces.h"
#include "base/optional_part.h"
#include "engine/backend/backend.h"
#include "engine/kernels/kernel.h"
#include "engine/ops/custom/custom.h"
#include "engine/opt/pass.h"
#include "engine/ragged/rule.h"
#include "engine/runtime/runtime.h"
#include "models/architectures/family.h"
#include "models/heads/head.h"
#include "models/modules/module_class.h"
#include "models/open/chosen_runtime.h"
#include "models/open/reader.h"
#include "models/tasks/task.h"
#include "text/pipeline.h"

#define OP(symbol) extern const pith__op pith__op_##symbol;
#include "select/ops.def"
#undef OP

const pith__op *const pith__op_table[] = {
#define OP(symbol) &pith__op_##symbol,
#include "select/ops.def"
#undef OP
    NULL
};
const size_t pith__op_table_count = sizeof pith__op_table / sizeof pith__op_table[0] - 1;
const pith__op_checks *const pith__op_checks_used =
    sizeof pith__op_table > sizeof pith__op_table[0] ? &pith__op_checks_all : NULL;

/* The operators of PITH_EXTRA_OPS, which CMake puts into the list of the build folder. */
#define EXTRA_OP(symbol, name) extern const pith_operator pith_operator_##symbol;
#include "select/extra_ops.def"
#undef EXTRA_OP

const pith__extra_op pith__extra_op_table[] = {
#define EXTRA_OP(symbol, name) { &pith_operator_##symbol, #name, pith__custom_take },
#include "select/extra_ops.def"
#undef EXTRA_OP
    { NULL, NULL, NULL }
};

#define PASS(name) extern const pith__pass pith__pass_##name;
#include "select/passes.def"
#undef PASS

const pith__pass *const pith__pass_table[] = {
#define PASS(name) &pith__pass_##name,
#include "select/passes.def"
#undef PASS
    NULL
};
const size_t pith__pass_table_count = sizeof pith__pass_table / sizeof pith__pass_table[0] - 1;

#define LEVEL_FN(isa, family, suffix)                                                              \
    [PITH_ISA_##isa] = (pith__kernel_fn *)pith__k_##family##_##suffix##_##isa,
#define LEVEL_DECLARE(isa, family, suffix) void pith__k_##family##_##suffix##_##isa(void);
#define KERNEL(family, suffix) PITH_ISAS(LEVEL_DECLARE, family, suffix)
#define PLAIN(family, suffix) void pith__k_##family##_##suffix(void);
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN

const pith__kernel_row pith__kernel_table[] = {
#define KERNEL(family, suffix)                                                                     \
    { #family, PITH_SUFFIX_##suffix, { PITH_ISAS(LEVEL_FN, family, suffix) } },
#define PLAIN(family, suffix)                                                                      \
    { #family, PITH_SUFFIX_##suffix, { (pith__kernel_fn *)pith__k_##family##_##suffix } },
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN
    { NULL, 0, { NULL } }
};
const size_t pith__kernel_table_count =
    sizeof pith__kernel_table / sizeof pith__kernel_table[0] - 1;

#define NORMALIZER(symbol) extern const pith__normalizer_desc pith__normalizer_##symbol;
#define PRE_TOKENIZER(symbol) extern const pith__pretokenizer_desc pith__pretokenizer_##symbol;
#define MODEL(symbol) extern const pith__model_desc pith__model_##symbol;
#define DECODER(symbol) extern const pith__decoder_desc pith__decoder_##symbol;
#define SOURCE(symbol) extern const pith__tokenizer_source pith__source_##symbol;
#include "select/tokenizers.def"

const pith__normalizer_desc *const pith__normalizer_table[] = {
#define NORMALIZER(symbol) &pith__normalizer_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith__pretokenizer_desc *const pith__pretokenizer_table[] = {
#define PRE_TOKENIZER(symbol) &pith__pretokenizer_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith__model_desc *const pith__model_table[] = {
#define MODEL(symbol) &pith__model_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith__decoder_desc *const pith__decoder_table[] = {
#define DECODER(symbol) &pith__decoder_##symbol,
#include "select/tokenizers.def"
    NULL
};
const pith__tokenizer_source *const pith__tokenizer_sources[] = {
#define SOURCE(symbol) &pith__source_##symbol,
#include "select/tokenizers.def"
    NULL
};

#define HEAD(name) extern const pith__head pith__head_##name;
#include "select/heads.def"
#undef HEAD

const pith__head *const pith__head_table[] = {
#define HEAD(name) &pith__head_##name,
#include "select/heads.def"
#undef HEAD
    NULL
};
const size_t pith__head_table_count = sizeof pith__head_table / sizeof pith__head_table[0] - 1;

#define READER(name) extern const pith__reader pith__reader_##name;
#include "select/readers.def"
#undef READER

const pith__reader *const pith__reader_table[] = {
#define READER(name) &pith__reader_##name,
#include "select/readers.def"
#undef READER
    NULL
};
const size_t pith__reader_table_count =
    sizeof pith__reader_table / sizeof pith__reader_table[0] - 1;

#define RAGGED(name) extern const pith__ragged_rule pith__ragged_rule_##name;
#include "select/ragged.def"
#undef RAGGED

const pith__ragged_rule *const pith__ragged_rule_table[] = {
#define RAGGED(name) &pith__ragged_rule_##name,
#include "select/ragged.def"
#undef RAGGED
    NULL
};
const size_t pith__ragged_rule_table_count =
    sizeof pith__ragged_rule_table / sizeof pith__ragged_rule_table[0] - 1;

#define FAMILY(name) extern const pith__hf_family pith__hf_family_##name;
#include "select/families.def"
#undef FAMILY

const pith__hf_family *const pith__hf_family_table[] = {
#define FAMILY(name) &pith__hf_family_##name,
#include "select/families.def"
#undef FAMILY
    NULL
};
const size_t pith__hf_family_count =
    sizeof pith__hf_family_table / sizeof pith__hf_family_table[0] - 1;

#define TASK(name) extern const pith__hf_task pith__hf_task_##name;
#include "select/tasks.def"
#undef TASK

const pith__hf_task *const pith__hf_task_table[] = {
#define TASK(name) &pith__hf_task_##name,
#include "select/tasks.def"
#undef TASK
    NULL
};
const size_t pith__hf_task_count = sizeof pith__hf_task_table / sizeof pith__hf_task_table[0] - 1;

#define RUNTIME(name) extern const pith__runtime pith__runtime_##name;
#include "select/runtimes.def"
#undef RUNTIME

const pith__runtime *const pith__runtime_table[] = {
#define RUNTIME(name) &pith__runtime_##name,
#include "select/runtimes.def"
#undef RUNTIME
    NULL
};
const size_t pith__runtime_table_count =
    sizeof pith__runtime_table / sizeof pith__runtime_table[0] - 1;
const pith__chosen_runtime_functions *const pith__chosen_runtime_used =
    sizeof pith__runtime_table > 2 * sizeof pith__runtime_table[0] ? &pith__chosen_runtime_all
                                                                   : NULL;

#define MODULE(name) extern const pith__module_class pith__module_class_##name;
#define REFUSED(symbol, class_name, reason)                                                        \
    static const pith__module_class refused_##symbol = { .name = class_name, .refused = reason };
#include "select/modules.def"
#undef MODULE
#undef REFUSED

const pith__module_class *const pith__module_class_table[] = {
#define MODULE(name) &pith__module_class_##name,
#define REFUSED(symbol, class_name, reason) &refused_##symbol,
#include "select/modules.def"
#undef MODULE
#undef REFUSED
    NULL
};
const size_t pith__module_class_count =
    sizeof pith__module_class_table / sizeof pith__module_class_table[0] - 1;

#define PART(name) extern const pith__part pith__part_##name;
#include "select/parts.def"
#undef PART

const pith__part *const pith__part_table[] = {
#define PART(name) &pith__part_##name,
#include "select/parts.def"
#undef PART
    NULL
};

#define BACKEND(name) extern const pith__backend pith__backend_##name;
#include "select/backends.def"
#undef BACKEND

const pith__backend *const pith__backend_table[] = {
#define BACKEND(name) &pith__backend_##name,
#include "select/backends.def"
#undef BACKEND
    NULL
};
const size_t pith__backend_table_count =
    sizeof pith__backend_table / sizeof pith__backend_table[0] - 1;
#define DEVICES(functions)                                                                         \
    (sizeof pith__backend_table > 2 * sizeof pith__backend_table[0] ? &(functions) : NULL)
const bool pith__backends_differ = sizeof pith__backend_table > 2 * sizeof pith__backend_table[0];
const pith__device_functions *const pith__device_functions_used =
    DEVICES(pith__device_functions_all);
const pith__plan_devices *const pith__plan_devices_used = DEVICES(pith__plan_devices_all);
const pith__run_devices *const pith__run_devices_used = DEVICES(pith__run_devices_all);

const uint32_t pith__dropped_table[] = {
#define DROPPED(hash) hash,
#define DROPPED_NAME(name)
#define DROPPED_SPEED(name)
#include "select/dropped.def"
#undef DROPPED
    0
};
const size_t pith__dropped_count = sizeof pith__dropped_table / sizeof pith__dropped_table[0] - 1;

const char pith__dropped_names[] =
#undef DROPPED_NAME
#define DROPPED(hash)
#define DROPPED_NAME(name) name "\0"
#include "select/dropped.def"
#undef DROPPED_NAME
#undef DROPPED_SPEED
    "";

const char pith__dropped_speed[] =
#define DROPPED_NAME(name)
#define DROPPED_SPEED(name) name "\0"
#include "select/dropped.def"
#undef DROPPED
#undef DROPPED_NAME
#undef DROPPED_SPEED
    "";
