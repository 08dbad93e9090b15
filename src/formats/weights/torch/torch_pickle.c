/* torch_pickle.c - a stack machine for the opcodes of plain tensors.
 *
 * Values are small structs. Containers are shared by pointer, as in Python, so that a pickle of n
 * bytes holds at most n values, whatever it memoizes. */
#include "formats/weights/torch/torch_pickle.h"

#include <string.h>

#include "base/error.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"

/* The longest pickle, in bytes. That of a model with 10,000 tensors has about 2 MB. What it makes
 * takes at most about 150 times as much memory. */
#define PICKLE_MAX ((size_t)4 << 20)
/* The most values on the stack. torch.save puts at most 2,000 there between two SETITEMS. */
#define STACK_MAX ((size_t)1 << 18)

typedef enum global_kind {
    ORDERED_DICT,
    REBUILD_V1,
    REBUILD_V2,
    REBUILD_V3,
    REBUILD_PARAMETER,
    SIZE,
    STORAGE,
    DTYPE
} global_kind;

static const struct {
    const char *module, *name;
    global_kind kind;
    int dtype;
} globals[] = {
    { "collections", "OrderedDict", ORDERED_DICT, 0 },
    { "torch._utils", "_rebuild_tensor", REBUILD_V1, 0 },
    { "torch._utils", "_rebuild_tensor_v2", REBUILD_V2, 0 },
    { "torch._utils", "_rebuild_tensor_v3", REBUILD_V3, 0 },
    { "torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, 0 },
    { "torch", "Size", SIZE, 0 },
    { "torch", "FloatStorage", STORAGE, PITH_F32 },
    { "torch", "DoubleStorage", STORAGE, PITH_F64 },
    { "torch", "HalfStorage", STORAGE, PITH_F16 },
    { "torch", "BFloat16Storage", STORAGE, PITH_BF16 },
    { "torch", "LongStorage", STORAGE, PITH_I64 },
    { "torch", "IntStorage", STORAGE, PITH_I32 },
    { "torch", "ShortStorage", STORAGE, PITH_I16 },
    { "torch", "CharStorage", STORAGE, PITH_I8 },
    { "torch", "ByteStorage", STORAGE, PITH_U8 },
    { "torch", "BoolStorage", STORAGE, PITH_BOOL },
    { "torch", "ComplexFloatStorage", STORAGE, PITH_C64 },
    { "torch", "ComplexDoubleStorage", STORAGE, PITH_C128 },
    { "torch.storage", "UntypedStorage", STORAGE, PITH_UNDEFINED },
    { "torch", "float32", DTYPE, PITH_F32 },
    { "torch", "float64", DTYPE, PITH_F64 },
    { "torch", "float16", DTYPE, PITH_F16 },
    { "torch", "bfloat16", DTYPE, PITH_BF16 },
    { "torch", "float8_e4m3fn", DTYPE, PITH_F8E4M3FN },
    { "torch", "float8_e4m3fnuz", DTYPE, PITH_F8E4M3FNUZ },
    { "torch", "float8_e5m2", DTYPE, PITH_F8E5M2 },
    { "torch", "float8_e5m2fnuz", DTYPE, PITH_F8E5M2FNUZ },
    { "torch", "int64", DTYPE, PITH_I64 },
    { "torch", "int32", DTYPE, PITH_I32 },
    { "torch", "int16", DTYPE, PITH_I16 },
    { "torch", "int8", DTYPE, PITH_I8 },
    { "torch", "uint8", DTYPE, PITH_U8 },
    { "torch", "uint16", DTYPE, PITH_U16 },
    { "torch", "uint32", DTYPE, PITH_U32 },
    { "torch", "uint64", DTYPE, PITH_U64 },
    { "torch", "bool", DTYPE, PITH_BOOL },
    { "torch", "complex64", DTYPE, PITH_C64 },
    { "torch", "complex128", DTYPE, PITH_C128 },
};

typedef pith__pickle_value value;

typedef struct pickle {
    pith_str bytes;
    size_t at, op_at; /* of the next byte, and of the opcode being run */
    pith__arena *arena;
    pith_error *err;
    value *stack;
    size_t count, capacity;
    value *memo;
    size_t memo_count, memo_capacity;
    bool stopped;
} pickle;

/* The opcodes that files of torch.save have, by their names in Python's pickletools. */
enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_NONE = 'N',
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_TUPLE = ')',
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_TUPLE = 't',
    OP_LIST = 'l',
    OP_APPENDS = 'e',
    OP_SETITEMS = 'u',
    OP_APPEND = 'a',
    OP_SETITEM = 's',
    OP_BINPERSID = 'Q',
    OP_REDUCE = 'R',
    OP_BUILD = 'b',
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_PROTO = 0x80,
    OP_FRAME = 0x95,
    OP_GLOBAL = 'c',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BININT = 'J',
    OP_BINFLOAT = 'G',
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_SHORT_BINSTRING = 'U',
    OP_BINSTRING = 'T',
    OP_BINUNICODE = 'X',
    OP_BINUNICODE8 = 0x8d,
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r'
};

static pith_status pickle_fail(pickle *p, const char *what) {
    return pith__fail(p->err, PITH_ERR_FORMAT, "the pickle is damaged at byte %zu: %s", p->op_at,
                      what);
}

static pith_status pickle_memory(pickle *p) {
    return pith__fail_memory(p->err, p->count * sizeof(value));
}

/* ---- the stack ---- */

static pith_status push(pickle *p, value v) {
    if (p->count == STACK_MAX) return pickle_fail(p, "too many values on the stack");
    void *stack = p->stack;
    if (!pith__arena_grow(p->arena, &stack, p->count, &p->capacity, sizeof v))
        return pickle_memory(p);
    p->stack = stack;
    p->stack[p->count++] = v;
    return PITH_OK;
}

static pith_status pop(value *v, pickle *p) {
    if (!p->count || p->stack[p->count - 1].kind == PITH_PICKLE_MARK)
        return pickle_fail(p, "a value is missing");
    *v = p->stack[--p->count];
    return PITH_OK;
}

/* The values above the last mark, which is removed with them. They stay valid until the next push.
 */
static pith_status pop_mark(value **first, size_t *n, pickle *p) {
    size_t i = p->count;
    while (i && p->stack[i - 1].kind != PITH_PICKLE_MARK) i--;
    if (!i) return pickle_fail(p, "a mark is missing");
    *first = p->stack + i;
    *n = p->count - i;
    p->count = i - 1;
    return PITH_OK;
}

static pith_status pickle_add(pickle *p, pith__pickle_items *items, const value *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        void *at = items->at;
        if (!pith__arena_grow(p->arena, &at, items->count, &items->capacity, sizeof *v))
            return pickle_memory(p);
        items->at = at;
        items->at[items->count++] = v[i];
    }
    return PITH_OK;
}

static pith_status push_items(pickle *p, pith__pickle_kind kind, const value *v, size_t n) {
    pith__pickle_items *items = pith__arena_array(p->arena, 1, sizeof *items);
    value *at = pith__arena_array(p->arena, n, sizeof *at);
    if (!items || !at) return pickle_memory(p);
    if (n) memcpy(at, v, n * sizeof *at);
    *items = (pith__pickle_items){ at, n, n };
    return push(p, (value){ .kind = kind, .as.items = items });
}

static pith_status push_tuple(pickle *p, size_t n) {
    if (p->count < n) return pickle_fail(p, "a value is missing");
    for (size_t i = 0; i < n; i++)
        if (p->stack[p->count - 1 - i].kind == PITH_PICKLE_MARK)
            return pickle_fail(p, "a value is missing");
    p->count -= n;
    value v[3];
    memcpy(v, p->stack + p->count, n * sizeof *v);
    return push_items(p, PITH_PICKLE_TUPLE, v, n);
}

/* Adds n values to the list or dictionary on top of the stack. */
static pith_status pickle_extend(pickle *p, pith__pickle_kind kind, const value *v, size_t n) {
    if (!p->count || p->stack[p->count - 1].kind != kind)
        return pickle_fail(p, kind == PITH_PICKLE_DICT ? "items without a dictionary"
                                                       : "items without a list");
    if (kind == PITH_PICKLE_DICT && n % 2) return pickle_fail(p, "a key without a value");
    return pickle_add(p, p->stack[p->count - 1].as.items, v, n);
}

/* ---- arguments ---- */

static pith_status take(pith_str *span, pickle *p, uint64_t n) {
    if (n > p->bytes.size - p->at) return pickle_fail(p, "it ends within an argument");
    *span = (pith_str){ p->bytes.data + p->at, (size_t)n };
    p->at += n;
    return PITH_OK;
}

static pith_status take_number(uint64_t *n, pickle *p, int bytes) {
    pith_str span = { NULL, 0 };
    *n = 0;
    PITH_TRY(take(&span, p, (uint64_t)bytes));
    for (int i = 0; i < bytes; i++) *n |= (uint64_t)(uint8_t)span.data[i] << (8 * i);
    return PITH_OK;
}

static pith_status take_line(pith_str *line, pickle *p) {
    const char *begin = p->bytes.data + p->at, *end = memchr(begin, '\n', p->bytes.size - p->at);
    if (!end) return pickle_fail(p, "it ends within a name");
    *line = (pith_str){ begin, (size_t)(end - begin) };
    p->at += line->size + 1;
    return PITH_OK;
}

/* ---- opcodes with arguments ---- */

static pith_status push_number(pickle *p, int bytes, bool is_signed) {
    uint64_t n;
    PITH_TRY(take_number(&n, p, bytes));
    return push(p, (value){ .kind = PITH_PICKLE_INT,
                            .as.number = is_signed ? (int32_t)(uint32_t)n : (int64_t)n });
}

static pith_status push_long(pickle *p, int length_bytes) {
    uint64_t n;
    pith_str span = { NULL, 0 };
    int64_t number = 0;
    PITH_TRY(take_number(&n, p, length_bytes));
    PITH_TRY(take(&span, p, n));
    if (n > 8) return push(p, (value){ .kind = PITH_PICKLE_BIG, .as.text = span });
    for (size_t i = 0; i < n; i++) number |= (int64_t)((uint64_t)(uint8_t)span.data[i] << (8 * i));
    if (n && n < 8 && (span.data[n - 1] & 0x80)) number -= (int64_t)1 << (8 * n);
    return push(p, (value){ .kind = PITH_PICKLE_INT, .as.number = number });
}

static pith_status push_text(pickle *p, int length_bytes) {
    uint64_t n;
    pith_str span = { NULL, 0 };
    PITH_TRY(take_number(&n, p, length_bytes));
    PITH_TRY(take(&span, p, n));
    return push(p, (value){ .kind = PITH_PICKLE_TEXT, .as.text = span });
}

static pith_status push_global(pickle *p, pith_str module, pith_str name) {
    size_t i = 0, n = sizeof globals / sizeof *globals;
    while (i < n &&
           !(pith__str_is(module, globals[i].module) && pith__str_is(name, globals[i].name)))
        i++;
    if (i < n) return push(p, (value){ .kind = PITH_PICKLE_GLOBAL, .global = (int)i });
    return pith__fail(
        p->err, PITH_ERR_UNSUPPORTED,
        "the pickle asks for '" PITH_STR_FMT "." PITH_STR_FMT
        "' at byte %zu; only plain tensors are read, and nothing is executed. Convert the file to "
        "safetensors",
        PITH_STR_ARG(module), PITH_STR_ARG(name), p->op_at);
}

static pith_status pickle_put(pickle *p, uint64_t index) {
    if (!p->count || p->stack[p->count - 1].kind == PITH_PICKLE_MARK)
        return pickle_fail(p, "nothing to memoize");
    if (index > p->memo_count) return pickle_fail(p, "a memo out of order");
    void *memo = p->memo;
    if (!pith__arena_grow(p->arena, &memo, p->memo_count, &p->memo_capacity, sizeof *p->memo))
        return pickle_memory(p);
    p->memo = memo;
    p->memo[index] = p->stack[p->count - 1];
    if (index == p->memo_count) p->memo_count++;
    return PITH_OK;
}

static pith_status pickle_get(pickle *p, int bytes) {
    uint64_t index;
    PITH_TRY(take_number(&index, p, bytes));
    if (index >= p->memo_count) return pickle_fail(p, "an unknown memo");
    return push(p, p->memo[index]);
}

static pith_status pickle_put_at(pickle *p, int bytes) {
    uint64_t index;
    PITH_TRY(take_number(&index, p, bytes));
    return pickle_put(p, index);
}

/* ---- tensors ---- */

static bool pickle_is_global(const value *v, global_kind kind) {
    return v->kind == PITH_PICKLE_GLOBAL && globals[v->global].kind == kind;
}

/* ('storage', torch.FloatStorage, key, location, elements); older files have a view of another
 * storage after that. */
static pith_status push_storage(pickle *p) {
    value id;
    PITH_TRY(pop(&id, p));
    const pith__pickle_items *t = id.kind == PITH_PICKLE_TUPLE ? id.as.items : NULL;
    bool good = t && t->count >= 5 && t->at[0].kind == PITH_PICKLE_TEXT &&
                pith__str_is(t->at[0].as.text, "storage") && pickle_is_global(&t->at[1], STORAGE) &&
                t->at[2].kind == PITH_PICKLE_TEXT && t->at[4].kind == PITH_PICKLE_INT &&
                t->at[4].as.number >= 0;
    if (!good) return pickle_fail(p, "a persistent object that is not a storage");
    if (t->count > 5 && t->at[5].kind != PITH_PICKLE_NONE)
        return pith__fail(p->err, PITH_ERR_UNSUPPORTED,
                          "a storage that is a view of another, at byte %zu", p->op_at);
    pith__torch_tensor *s = pith__arena_array(p->arena, 1, sizeof *s);
    if (!s) return pickle_memory(p);
    s->key = t->at[2].as.text;
    s->dtype = globals[t->at[1].global].dtype;
    s->numel = t->at[4].as.number;
    return push(p, (value){ .kind = PITH_PICKLE_STORAGE, .as.tensor = s });
}

static bool pickle_numbers(int64_t *out, const value *v, size_t *n) {
    if (v->kind != PITH_PICKLE_TUPLE && v->kind != PITH_PICKLE_LIST) return false;
    if (v->as.items->count > PITH_MAX_RANK) return false;
    *n = v->as.items->count;
    for (size_t i = 0; i < *n; i++) {
        if (v->as.items->at[i].kind != PITH_PICKLE_INT || v->as.items->at[i].as.number < 0)
            return false;
        out[i] = v->as.items->at[i].as.number;
    }
    return true;
}

/* Makes a tensor of the arguments of torch._utils._rebuild_tensor: (storage, offset, size, stride,
 * …). v3 has the dtype as its seventh. */
static pith_status push_tensor(pickle *p, global_kind how, const pith__pickle_items *a) {
    size_t rank, strides, least = how == REBUILD_V3 ? 7 : 4;
    if (a->count < least || a->at[0].kind != PITH_PICKLE_STORAGE ||
        a->at[1].kind != PITH_PICKLE_INT)
        return pickle_fail(p, "a tensor without a storage");
    pith__torch_tensor *t = pith__arena_array(p->arena, 1, sizeof *t);
    if (!t) return pickle_memory(p);
    *t = *a->at[0].as.tensor;
    t->offset = a->at[1].as.number;
    if (t->offset < 0 || !pickle_numbers(t->dims, &a->at[2], &rank) ||
        !pickle_numbers(t->strides, &a->at[3], &strides) || rank != strides)
        return pickle_fail(p, "a tensor whose sizes or strides are not small lists of numbers");
    t->rank = (int)rank;
    if (how == REBUILD_V3 && !pickle_is_global(&a->at[6], DTYPE))
        return pickle_fail(p, "a tensor without a dtype");
    if (how == REBUILD_V3) t->dtype = globals[a->at[6].global].dtype;
    return push(p, (value){ .kind = PITH_PICKLE_TENSOR, .as.tensor = t });
}

/* A call, which in Python may run anything. Here only the few functions that make tensors of plain
 * arguments are known (globals), and no code is ever run. */
static pith_status pickle_reduce(pickle *p) {
    value arguments, callee;
    PITH_TRY(pop(&arguments, p));
    PITH_TRY(pop(&callee, p));
    if (callee.kind != PITH_PICKLE_GLOBAL || arguments.kind != PITH_PICKLE_TUPLE)
        return pickle_fail(p, "a call of something that is not a function");
    const pith__pickle_items *a = arguments.as.items;
    global_kind kind = globals[callee.global].kind;
    if (kind == ORDERED_DICT) {
        if (a->count) return pickle_fail(p, "an OrderedDict made from arguments");
        return push_items(p, PITH_PICKLE_DICT, NULL, 0);
    }
    if (kind == REBUILD_V1 || kind == REBUILD_V2 || kind == REBUILD_V3)
        return push_tensor(p, kind, a);
    bool passes = (kind == REBUILD_PARAMETER && a->count && a->at[0].kind == PITH_PICKLE_TENSOR) ||
                  (kind == SIZE && a->count == 1);
    return passes ? push(p, a->at[0]) : pickle_fail(p, "a call that makes no tensor");
}

/* The attributes of a dictionary, which torch.save fills with _metadata. They are not needed. */
static pith_status pickle_build(pickle *p) {
    value state;
    PITH_TRY(pop(&state, p));
    if (!p->count || p->stack[p->count - 1].kind != PITH_PICKLE_DICT)
        return pickle_fail(p, "attributes of something that is not a dictionary");
    return PITH_OK;
}

/* ---- the machine ---- */

static pith_status pickle_stack_global(pickle *p) {
    value module, name;
    PITH_TRY(pop(&name, p));
    PITH_TRY(pop(&module, p));
    if (module.kind != PITH_PICKLE_TEXT || name.kind != PITH_PICKLE_TEXT)
        return pickle_fail(p, "a global without a name");
    return push_global(p, module.as.text, name.as.text);
}

static pith_status pickle_global(pickle *p) {
    pith_str module, name;
    PITH_TRY(take_line(&module, p));
    PITH_TRY(take_line(&name, p));
    return push_global(p, module, name);
}

static pith_status pickle_marked(pickle *p, uint8_t op) {
    value *first = NULL;
    size_t n = 0;
    PITH_TRY(pop_mark(&first, &n, p));
    if (op == OP_APPENDS) return pickle_extend(p, PITH_PICKLE_LIST, first, n);
    if (op == OP_SETITEMS) return pickle_extend(p, PITH_PICKLE_DICT, first, n);
    return push_items(p, op == OP_TUPLE ? PITH_PICKLE_TUPLE : PITH_PICKLE_LIST, first, n);
}

static pith_status pickle_set(pickle *p, uint8_t op) {
    value v[2];
    PITH_TRY(pop(&v[1], p));
    if (op == OP_APPEND) return pickle_extend(p, PITH_PICKLE_LIST, &v[1], 1);
    PITH_TRY(pop(&v[0], p));
    return pickle_extend(p, PITH_PICKLE_DICT, v, 2);
}

static pith_status pickle_skip(pickle *p, int bytes) {
    pith_str span = { NULL, 0 };
    return take(&span, p, (uint64_t)bytes);
}

static pith_status pickle_float(pickle *p) {
    PITH_TRY(pickle_skip(p, 8));
    return push(p, (value){ .kind = PITH_PICKLE_FLOAT });
}

static pith_status pickle_protocol(pickle *p) {
    uint64_t version;
    PITH_TRY(take_number(&version, p, 1));
    return version <= 5 ? PITH_OK
                        : pith__fail(p->err, PITH_ERR_UNSUPPORTED,
                                     "pickle protocol %d is not known", (int)version);
}

/* Opcodes that make or use values without an argument. */
static pith_status pickle_plain(pickle *p, uint8_t op) {
    switch (op) {
    case OP_MARK: return push(p, (value){ .kind = PITH_PICKLE_MARK });
    case OP_STOP: p->stopped = true; return PITH_OK;
    case OP_NONE: return push(p, (value){ .kind = PITH_PICKLE_NONE });
    case OP_NEWTRUE: return push(p, (value){ .kind = PITH_PICKLE_BOOL, .as.number = 1 });
    case OP_NEWFALSE: return push(p, (value){ .kind = PITH_PICKLE_BOOL });
    case OP_EMPTY_DICT: return push_items(p, PITH_PICKLE_DICT, NULL, 0);
    case OP_EMPTY_LIST: return push_items(p, PITH_PICKLE_LIST, NULL, 0);
    case OP_EMPTY_TUPLE: return push_tuple(p, 0);
    case OP_TUPLE1: return push_tuple(p, 1);
    case OP_TUPLE2: return push_tuple(p, 2);
    case OP_TUPLE3: return push_tuple(p, 3);
    case OP_TUPLE:
    case OP_LIST:
    case OP_APPENDS:
    case OP_SETITEMS: return pickle_marked(p, op);
    case OP_APPEND:
    case OP_SETITEM: return pickle_set(p, op);
    case OP_BINPERSID: return push_storage(p);
    case OP_REDUCE: return pickle_reduce(p);
    case OP_BUILD: return pickle_build(p);
    case OP_STACK_GLOBAL: return pickle_stack_global(p);
    case OP_MEMOIZE: return pickle_put(p, p->memo_count);
    default:
        return pith__fail(
            p->err, PITH_ERR_UNSUPPORTED,
            "opcode 0x%02x at byte %zu of the pickle is not one of those of plain tensors", op,
            p->op_at);
    }
}

static pith_status pickle_step(pickle *p, uint8_t op) {
    switch (op) {
    case OP_PROTO: return pickle_protocol(p);
    case OP_FRAME: return pickle_skip(p, 8);
    case OP_GLOBAL: return pickle_global(p);
    case OP_BININT1: return push_number(p, 1, false);
    case OP_BININT2: return push_number(p, 2, false);
    case OP_BININT: return push_number(p, 4, true);
    case OP_BINFLOAT: return pickle_float(p);
    case OP_LONG1: return push_long(p, 1);
    case OP_LONG4: return push_long(p, 4);
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINSTRING: return push_text(p, 1);
    case OP_BINSTRING:
    case OP_BINUNICODE: return push_text(p, 4);
    case OP_BINUNICODE8: return push_text(p, 8);
    case OP_BINGET: return pickle_get(p, 1);
    case OP_LONG_BINGET: return pickle_get(p, 4);
    case OP_BINPUT: return pickle_put_at(p, 1);
    case OP_LONG_BINPUT: return pickle_put_at(p, 4);
    default: return pickle_plain(p, op);
    }
}

/* Opcodes between two looks whether to stop: far less than a millisecond. */
enum { PICKLE_LOOK = 4096 };

/* Runs the opcodes up to STOP; the value on top of the stack is the result. Opcodes that no file of
 * plain tensors needs are refused by number. */
pith_status pith__pickle_read(pith__pickle_value *result, size_t *used, pith_str bytes,
                              pith__arena *arena, pith_error *err) {
    pickle p = { .bytes = bytes, .arena = arena, .err = err };
    if (p.bytes.size > PICKLE_MAX) p.bytes.size = PICKLE_MAX;
    pith__stop *stop = pith__account_stop(arena->allocator);
    for (size_t i = 0; !p.stopped; i++) {
        if (i % PICKLE_LOOK == 0) PITH_TRY(pith__stop_check(stop, err));
        p.op_at = p.at;
        if (p.at == PICKLE_MAX)
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "the pickle is longer than %zu bytes",
                              PICKLE_MAX);
        if (p.at == p.bytes.size) return pickle_fail(&p, "it has no end");
        PITH_TRY(pickle_step(&p, (uint8_t)p.bytes.data[p.at++]));
    }
    PITH_TRY(pop(result, &p));
    *used = p.at;
    return PITH_OK;
}
