/* symbolic_dim.c - interned size expressions in one normal form.
 *
 * An expression is a polynomial with integer coefficients over atoms: symbols, and quotients,
 * minima and maxima that did not simplify. Terms are sorted, and so are the factors of a term. So
 * equal polynomials are equal bytes and get one handle. Symbols are sizes: never negative, and
 * never zero where one is divided by.
 *
 * Degree, number of terms and total size of an expression are bounded, so that a hostile file makes
 * "unknown" instead of work; evaluation is then bounded too. The table is written at load by one
 * thread and only read afterwards. */
#include "engine/graph/symbolic_dim.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/text_out.h"

/* Bounds of one expression (degree, terms, total size with the atoms in it) and of the table. What
 * exceeds them becomes "unknown". Larger bounds keep more shapes symbolic; smaller ones bound the
 * work of a hostile file better. These are generous for the shape arithmetic of exporters.
 * MAX_DEGREE also fills a term without padding. */
enum { MAX_DEGREE = 7, MAX_TERMS = 16, MAX_SIZE = 256, MAX_EXPRS = 1 << 22 };

/* No padding: arrays of terms are keys of the table. Unused factors are zero. */
typedef struct term {
    int64_t coef; /* never 0 */
    uint32_t count;
    uint32_t factors[MAX_DEGREE]; /* atoms, ascending */
} term;
_Static_assert(sizeof(term) == 8 + 4 * (1 + MAX_DEGREE), "terms are compared as bytes");

typedef struct poly {
    uint32_t count;
    term terms[MAX_TERMS];
} poly;

typedef struct expr {
    const term *terms;
    uint32_t count, size;
} expr;

typedef struct atom_key {
    int64_t op, a, b;
} atom_key;

typedef struct atom {
    int32_t symbol; /* index, or -1: key says what it is */
    pith_str name;
    const atom_key *key;
    uint32_t size;
    bool negative; /* may be */
} atom;

struct pith__dims {
    pith__arena *arena;
    atom *atoms;
    expr *exprs;
    uint32_t *symbols; /* atoms */
    size_t atom_count, atom_capacity, expr_count, expr_capacity, symbol_count, symbol_capacity;
    pith__map names, atom_map, expr_map;
};

pith_status pith__dims_create(pith__dims **dims, pith__arena *arena) {
    pith__dims *d = pith__arena_array(arena, 1, sizeof *d);
    if (!d) return PITH_ERR_MEMORY;
    d->arena = arena;
    PITH_TRY(pith__map_init(&d->names, arena, 16));
    PITH_TRY(pith__map_init(&d->atom_map, arena, 16));
    PITH_TRY(pith__map_init(&d->expr_map, arena, 32));
    *dims = d;
    return PITH_OK;
}

static pith__dim handle_of(size_t index) { return INT64_MIN + 1 + (int64_t)index; }

/* NULL for numbers, what is unknown, and handles of other tables. */
static const expr *expr_of(const pith__dims *dims, pith__dim d) {
    uint64_t index = (uint64_t)d - (uint64_t)INT64_MIN - 1;
    return dims && index < dims->expr_count ? &dims->exprs[index] : NULL;
}

bool pith__dim_means(const pith__dims *dims, pith__dim d) {
    return pith__dim_known(d) || expr_of(dims, d);
}

/* ---- polynomials ---- */

static void poly_of(const pith__dims *dims, pith__dim d, poly *p) {
    const expr *e = expr_of(dims, d);
    if (e) {
        p->count = e->count;
        memcpy(p->terms, e->terms, e->count * sizeof(term));
    } else {
        p->count = d != 0;
        p->terms[0] = (term){ .coef = d };
    }
}

/* Higher degree first, then by factors; a constant term is last. */
static int term_order(const term *a, const term *b) {
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->factors[i] != b->factors[i]) return a->factors[i] < b->factors[i] ? -1 : 1;
    return 0;
}

/* Coefficients stay so far from the ends of int64 that an expression over sizes of tensors that fit
 * into memory can be evaluated: what is computed with larger ones is left to the run, which wraps
 * around as the operators do. */
static bool coef_fits(int64_t coef) { return coef >= -INT32_MAX && coef <= INT32_MAX; }

static bool number_fits(pith__dim d) { return !pith__dim_known(d) || coef_fits(d); }

/* p += t; false if a bound is hit. */
static bool poly_add_term(poly *p, const term *t) {
    uint32_t i = 0;
    while (i < p->count && term_order(&p->terms[i], t) < 0) i++;
    if (i < p->count && term_order(&p->terms[i], t) == 0) {
        if (pith__add_overflows(p->terms[i].coef, t->coef, &p->terms[i].coef) ||
            !coef_fits(p->terms[i].coef)) {
            return false;
        }
        if (p->terms[i].coef == 0)
            memmove(&p->terms[i], &p->terms[i + 1], (--p->count - i) * sizeof(term));
        return true;
    }
    if (p->count == MAX_TERMS) return false;
    memmove(&p->terms[i + 1], &p->terms[i], (p->count++ - i) * sizeof(term));
    p->terms[i] = *t;
    return true;
}

static bool term_mul(const term *a, const term *b, term *out) {
    term r = { 0 };
    if (a->count + b->count > MAX_DEGREE || pith__mul_overflows(a->coef, b->coef, &r.coef))
        return false;
    if (!coef_fits(r.coef)) return false;
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        bool first = j == b->count || (i < a->count && a->factors[i] <= b->factors[j]);
        r.factors[r.count++] = first ? a->factors[i++] : b->factors[j++];
    }
    *out = r;
    return true;
}

/* a / b if it leaves nothing. */
static bool term_div(const term *a, const term *b, term *out) {
    term r = { 0 };
    if (a->coef % b->coef) return false;
    r.coef = a->coef / b->coef;
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        if (j < b->count && a->factors[i] == b->factors[j])
            j++;
        else
            r.factors[r.count++] = a->factors[i];
    }
    if (j < b->count) return false;
    *out = r;
    return true;
}

/* p += scale * q. */
static bool poly_add(poly *p, const poly *q, const term *scale) {
    for (uint32_t i = 0; i < q->count; i++) {
        term t;
        if (!term_mul(&q->terms[i], scale, &t) || !poly_add_term(p, &t)) return false;
    }
    return true;
}

/* quotient = a / b if it leaves nothing. */
static bool poly_div(const poly *a, const poly *b, poly *quotient) {
    poly rest = *a;
    quotient->count = 0;
    for (int steps = 0; rest.count; steps++) {
        term t;
        if (steps == MAX_TERMS || !term_div(&rest.terms[0], &b->terms[0], &t) ||
            !poly_add_term(quotient, &t)) {
            return false;
        }
        t.coef = -t.coef;
        if (!poly_add(&rest, b, &t)) return false;
    }
    return true;
}

/* The handle of a polynomial, or its number. */
static pith__dim intern(pith__dims *dims, const poly *p) {
    if (p->count == 0) return 0;
    if (p->count == 1 && p->terms[0].count == 0) {
        return p->terms[0].coef > PITH_DIM_LIMIT ? p->terms[0].coef : PITH_DIM_UNKNOWN;
    }
    pith_str key = { (const char *)p->terms, p->count * sizeof(term) };
    uint32_t found = pith__map_get(&dims->expr_map, key);
    if (found != UINT32_MAX) return handle_of(found);
    uint32_t size = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        size++;
        for (uint32_t f = 0; f < p->terms[i].count; f++)
            size += dims->atoms[p->terms[i].factors[f]].size;
    }
    if (size > MAX_SIZE || dims->expr_count >= MAX_EXPRS) return PITH_DIM_UNKNOWN;
    term *terms = pith__arena_alloc(dims->arena, key.size);
    if (!terms || !pith__arena_grow(dims->arena, (void **)&dims->exprs, dims->expr_count,
                                    &dims->expr_capacity, sizeof(expr))) {
        return PITH_DIM_UNKNOWN;
    }
    memcpy(terms, p->terms, key.size);
    key.data = (const char *)terms;
    if (!pith__map_put(&dims->expr_map, key, (uint32_t)dims->expr_count, NULL))
        return PITH_DIM_UNKNOWN;
    dims->exprs[dims->expr_count] = (expr){ terms, p->count, size };
    return handle_of(dims->expr_count++);
}

/* ---- atoms ---- */

static bool add_atom(pith__dims *dims, const atom *a, uint32_t *index) {
    if (dims->atom_count >= MAX_EXPRS) return false;
    if (!pith__arena_grow(dims->arena, (void **)&dims->atoms, dims->atom_count,
                          &dims->atom_capacity, sizeof(atom))) {
        return false;
    }
    dims->atoms[dims->atom_count] = *a;
    *index = (uint32_t)dims->atom_count++;
    return true;
}

static pith__dim atom_dim(pith__dims *dims, uint32_t index) {
    poly p = { 1, { { .coef = 1, .count = 1, .factors = { index } } } };
    return intern(dims, &p);
}

pith__dim pith__dim_symbol(pith__dims *dims, pith_str name) {
    uint32_t index = pith__map_get(&dims->names, name);
    if (index == UINT32_MAX) {
        atom a = { .symbol = (int32_t)dims->symbol_count,
                   .name = pith__arena_str(dims->arena, name),
                   .size = 1 };
        if (!a.name.data ||
            !pith__arena_grow(dims->arena, (void **)&dims->symbols, dims->symbol_count,
                              &dims->symbol_capacity, sizeof(uint32_t))) {
            return PITH_DIM_UNKNOWN;
        }
        if (!add_atom(dims, &a, &index) || !pith__map_put(&dims->names, a.name, index, NULL))
            return PITH_DIM_UNKNOWN;
        dims->symbols[dims->symbol_count++] = index;
    }
    return atom_dim(dims, index);
}

/* What the polynomial is at least, if that can be said: its constant when nothing else can be
 * negative. */
static bool poly_lower_bound(const pith__dims *dims, const poly *p, int64_t *bound) {
    *bound = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const term *t = &p->terms[i];
        if (t->count == 0)
            *bound = t->coef;
        else if (t->coef < 0)
            return false;
        for (uint32_t f = 0; f < t->count; f++)
            if (dims->atoms[t->factors[f]].negative) return false;
    }
    return true;
}

static bool never_negative(const pith__dims *dims, pith__dim d) {
    poly p;
    int64_t bound;
    poly_of(dims, d, &p);
    return poly_lower_bound(dims, &p, &bound) && bound >= 0;
}

static uint32_t size_of(const pith__dims *dims, pith__dim d) {
    const expr *e = expr_of(dims, d);
    return e ? e->size : 1;
}

static pith__dim make_atom(pith__dims *dims, pith__dim_op op, pith__dim a, pith__dim b) {
    if (!number_fits(a) || !number_fits(b)) return PITH_DIM_UNKNOWN;
    atom_key key = { op, a, b };
    pith_str bytes = { (const char *)&key, sizeof key };
    uint32_t index = pith__map_get(&dims->atom_map, bytes);
    if (index == UINT32_MAX) {
        atom made = { .symbol = -1, .size = 1 + size_of(dims, a) + size_of(dims, b) };
        bool low_a = !never_negative(dims, a), low_b = !never_negative(dims, b);
        made.negative = op == PITH_DIM_MAX ? low_a && low_b : low_a || low_b;
        atom_key *stored = pith__arena_alloc(dims->arena, sizeof key);
        if (!stored || made.size > MAX_SIZE) return PITH_DIM_UNKNOWN;
        *stored = key;
        made.key = stored;
        bytes.data = (const char *)stored;
        if (!add_atom(dims, &made, &index) || !pith__map_put(&dims->atom_map, bytes, index, NULL)) {
            return PITH_DIM_UNKNOWN;
        }
    }
    return atom_dim(dims, index);
}

/* ---- arithmetic ---- */

static pith__dim floor_div_numbers(pith__dim a, pith__dim b) {
    if (b == 0) return PITH_DIM_UNKNOWN;
    pith__dim q = a / b; /* both lie above PITH_DIM_LIMIT: no overflow */
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static pith__dim apply_numbers(pith__dim_op op, pith__dim a, pith__dim b) {
    pith__dim r = PITH_DIM_UNKNOWN;
    switch (op) {
    case PITH_DIM_ADD:
        if (pith__add_overflows(a, b, &r)) return PITH_DIM_UNKNOWN;
        break;
    case PITH_DIM_SUB:
        if (__builtin_sub_overflow(a, b, &r)) return PITH_DIM_UNKNOWN;
        break;
    case PITH_DIM_MUL:
        if (pith__mul_overflows(a, b, &r)) return PITH_DIM_UNKNOWN;
        break;
    case PITH_DIM_FLOOR_DIV: r = floor_div_numbers(a, b); break;
    case PITH_DIM_CEIL_DIV:
        r = floor_div_numbers(a, b);
        if (r != PITH_DIM_UNKNOWN && a % b != 0) r++;
        break;
    case PITH_DIM_MIN: r = a < b ? a : b; break;
    case PITH_DIM_MAX: r = a > b ? a : b; break;
    }
    return pith__dim_known(r) ? r : PITH_DIM_UNKNOWN;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a < 0 ? -a : a;
}

/* floor(p / n) for a number n > 0: what divides goes out, the greatest common divisor is cancelled.
 */
static pith__dim floor_div_by_number(pith__dims *dims, const poly *p, int64_t n) {
    poly out = { 0 }, rest = { 0 };
    int64_t common = n;
    for (uint32_t i = 0; i < p->count; i++) {
        term t = p->terms[i], whole = t;
        if (t.count)
            whole.coef = t.coef % n ? 0 : t.coef / n;
        else
            whole.coef = floor_div_numbers(t.coef, n);
        t.coef -= whole.coef * n;
        if (whole.coef && !poly_add_term(&out, &whole)) return PITH_DIM_UNKNOWN;
        if (!t.coef) continue;
        if (!poly_add_term(&rest, &t)) return PITH_DIM_UNKNOWN;
        if (t.count) common = gcd(common, t.coef);
    }
    if (rest.count == 0 || (rest.count == 1 && rest.terms[0].count == 0)) return intern(dims, &out);
    /* floor((g x + k) / (g m)) = floor((x + floor(k / g)) / m) */
    poly reduced = { 0 };
    for (uint32_t i = 0; i < rest.count; i++) {
        rest.terms[i].coef = floor_div_numbers(rest.terms[i].coef, common);
        if (rest.terms[i].coef) reduced.terms[reduced.count++] = rest.terms[i];
    }
    pith__dim quotient = intern(dims, &reduced);
    if (common != n && quotient != PITH_DIM_UNKNOWN) {
        quotient = make_atom(dims, PITH_DIM_FLOOR_DIV, quotient, n / common);
    }
    return pith__dim_apply(dims, PITH_DIM_ADD, intern(dims, &out), quotient);
}

static pith__dim dim_divide(pith__dims *dims, pith__dim_op op, pith__dim a, pith__dim b) {
    poly p, q, quotient;
    if (b == 0 || !number_fits(b)) return PITH_DIM_UNKNOWN;
    poly_of(dims, a, &p);
    poly_of(dims, b, &q);
    if (poly_div(&p, &q, &quotient)) return intern(dims, &quotient);
    if (pith__dim_known(b) && b > 0) {
        term rounding = { .coef = b - 1 };
        if (op == PITH_DIM_CEIL_DIV && b > 1 && !poly_add_term(&p, &rounding))
            return PITH_DIM_UNKNOWN;
        return floor_div_by_number(dims, &p, b);
    }
    return make_atom(dims, op, a, b);
}

/* Slices to "the end" say it with a huge number; a plain size is below it. */
static bool far_above(const pith__dims *dims, pith__dim number, pith__dim d) {
    return pith__dim_known(number) && number >= INT32_MAX && pith__dim_symbol_index(dims, d) >= 0;
}

static pith__dim dim_choose(pith__dims *dims, pith__dim_op op, pith__dim a, pith__dim b) {
    poly p, q, difference;
    int64_t bound;
    poly_of(dims, a, &p);
    poly_of(dims, b, &q);
    difference = p;
    if (far_above(dims, a, b) || (poly_add(&difference, &q, &(term){ .coef = -1 }) &&
                                  poly_lower_bound(dims, &difference, &bound) && bound >= 0)) {
        return op == PITH_DIM_MAX ? a : b;
    }
    difference = q;
    if (far_above(dims, b, a) || (poly_add(&difference, &p, &(term){ .coef = -1 }) &&
                                  poly_lower_bound(dims, &difference, &bound) && bound >= 0)) {
        return op == PITH_DIM_MAX ? b : a;
    }
    return a < b ? make_atom(dims, op, a, b) : make_atom(dims, op, b, a);
}

pith__dim pith__dim_apply(pith__dims *dims, pith__dim_op op, pith__dim a, pith__dim b) {
    if (pith__dim_known(a) && pith__dim_known(b)) return apply_numbers(op, a, b);
    if (!pith__dim_means(dims, a) || !pith__dim_means(dims, b)) return PITH_DIM_UNKNOWN;
    if (op == PITH_DIM_FLOOR_DIV || op == PITH_DIM_CEIL_DIV) return dim_divide(dims, op, a, b);
    if (op == PITH_DIM_MIN || op == PITH_DIM_MAX) return dim_choose(dims, op, a, b);
    if (!number_fits(a) || !number_fits(b)) return PITH_DIM_UNKNOWN;
    poly p, q, r = { 0 };
    poly_of(dims, a, &p);
    poly_of(dims, b, &q);
    bool good = true;
    if (op == PITH_DIM_MUL) {
        for (uint32_t i = 0; i < p.count && good; i++) good = poly_add(&r, &q, &p.terms[i]);
    } else {
        r = p;
        good = poly_add(&r, &q, &(term){ .coef = op == PITH_DIM_ADD ? 1 : -1 });
    }
    return good ? intern(dims, &r) : PITH_DIM_UNKNOWN;
}

pith__dim pith__dim_product(pith__dims *dims, const pith__dim *items, int count) {
    pith__dim product = 1;
    for (int i = 0; i < count; i++)
        if (items[i] == 0) return 0;
    for (int i = 0; i < count; i++)
        product = pith__dim_apply(dims, PITH_DIM_MUL, product, items[i]);
    return product;
}

/* ---- symbols and values ---- */

size_t pith__dims_symbol_count(const pith__dims *dims) { return dims->symbol_count; }

pith_str pith__dims_symbol_name(const pith__dims *dims, int32_t index) {
    return dims->atoms[dims->symbols[index]].name;
}

int32_t pith__dim_symbol_index(const pith__dims *dims, pith__dim d) {
    const expr *e = expr_of(dims, d);
    if (!e || e->count != 1 || e->terms[0].coef != 1 || e->terms[0].count != 1) return -1;
    return dims->atoms[e->terms[0].factors[0]].symbol;
}

bool pith__dim_solve(const pith__dims *dims, pith__dim d, int64_t value, int32_t *symbol,
                     int64_t *size) {
    const expr *e = expr_of(dims, d);
    if (!e) return false;
    const term *t = &e->terms[0];
    if (t->count != 1 || e->count > 2 || (e->count == 2 && e->terms[1].count)) return false;
    *symbol = dims->atoms[t->factors[0]].symbol;
    int64_t constant = e->count == 2 ? e->terms[1].coef : 0, rest;
    if (*symbol < 0 || __builtin_sub_overflow(value, constant, &rest) || rest <= PITH_DIM_LIMIT ||
        rest % t->coef) {
        return false;
    }
    *size = rest / t->coef;
    return *size >= 0;
}

static pith__dim eval_atom(const pith__dims *dims, const atom *a, const pith__dim *values) {
    if (a->symbol >= 0) return values[a->symbol];
    pith__dim x = pith__dim_eval(dims, a->key->a, values),
              y = pith__dim_eval(dims, a->key->b, values);
    return pith__dim_known(x) && pith__dim_known(y) ? apply_numbers((pith__dim_op)a->key->op, x, y)
                                                    : PITH_DIM_UNKNOWN;
}

pith__dim pith__dim_eval(const pith__dims *dims, pith__dim d, const pith__dim *values) {
    const expr *e = expr_of(dims, d);
    if (!e) return pith__dim_of(d);
    pith__dim sum = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        pith__dim product = e->terms[i].coef;
        for (uint32_t f = 0; f < e->terms[i].count; f++) {
            pith__dim factor = eval_atom(dims, &dims->atoms[e->terms[i].factors[f]], values);
            if (!pith__dim_known(factor) || pith__mul_overflows(product, factor, &product))
                return PITH_DIM_UNKNOWN;
        }
        if (pith__add_overflows(sum, product, &sum)) return PITH_DIM_UNKNOWN;
    }
    return pith__dim_known(sum) ? sum : PITH_DIM_UNKNOWN;
}

/* ---- text ---- */

static void put_dim(pith__text_out *w, const pith__dims *dims, pith__dim d);

static void put_atom(pith__text_out *w, const pith__dims *dims, const atom *a) {
    static const char *const names[] = { [PITH_DIM_FLOOR_DIV] = "floor_div",
                                         [PITH_DIM_CEIL_DIV] = "ceil_div",
                                         [PITH_DIM_MIN] = "min",
                                         [PITH_DIM_MAX] = "max" };
    if (a->symbol >= 0) {
        pith__text_put(w, PITH_STR_FMT, PITH_STR_ARG(a->name));
        return;
    }
    pith__text_put(w, "%s(", names[a->key->op]);
    put_dim(w, dims, a->key->a);
    pith__text_put(w, ", ");
    put_dim(w, dims, a->key->b);
    pith__text_put(w, ")");
}

static void put_dim(pith__text_out *w, const pith__dims *dims, pith__dim d) {
    const expr *e = expr_of(dims, d);
    if (pith__dim_known(d))
        pith__text_put(w, "%" PRId64, d);
    else if (!e)
        pith__text_put(w, "?");
    if (!e) return;
    for (uint32_t i = 0; i < e->count; i++) {
        if (w->full) return;
        const term *t = &e->terms[i];
        int64_t coef = t->coef;
        if (i > 0) {
            pith__text_put(w, coef < 0 ? " - " : " + ");
            if (coef < 0) coef = -coef;
        }
        if (t->count == 0 || (coef != 1 && coef != -1))
            pith__text_put(w, "%" PRId64 "%s", coef, t->count ? "*" : "");
        else if (coef == -1)
            pith__text_put(w, "-");
        for (uint32_t f = 0; f < t->count; f++) {
            if (f) pith__text_put(w, "*");
            put_atom(w, dims, &dims->atoms[t->factors[f]]);
        }
    }
}

const char *pith__dim_text(const pith__dims *dims, pith__dim d, char *buffer, size_t size) {
    pith__text_out w = pith__text_begin(buffer, size);
    put_dim(&w, dims, d);
    return buffer;
}

const char *pith__shape_text(const pith__dims *dims, const pith__dim *sizes, int rank, char *buffer,
                             size_t size) {
    pith__text_out w = pith__text_begin(buffer, size);
    pith__text_put(&w, "[");
    for (int i = 0; i < rank; i++) {
        if (i) pith__text_put(&w, ", ");
        put_dim(&w, dims, sizes[i]);
    }
    pith__text_put(&w, "]");
    return buffer;
}
