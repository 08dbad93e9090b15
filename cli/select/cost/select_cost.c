/* select_cost.c - see select_cost.h.
 *
 * A program links what is reached from the functions it calls, and tables lead to its pieces
 * (link_graph.h). So the bytes of a piece are those that are reached if the tables have it, and not
 * if they lack it. */
#include "cli/select/cost/select_cost.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/select/cost/link_graph.h"
#include "cli/select/select_uses.h"

/* What is put in front of the name of a piece to get its symbol. */
static const char *const cost_prefixes[PIECE_KINDS] = {
    [PIECE_OPERATORS] = "pith__op_",
    [PIECE_KERNELS] = "pith__k_",
    [PIECE_PASSES] = "pith__pass_",
    [PIECE_RAGGED] = "pith__ragged_rule_",
    [PIECE_READERS] = "pith__reader_",
    [PIECE_FAMILIES] = "pith__hf_family_",
    [PIECE_TASKS] = "pith__hf_task_",
    [PIECE_MODULES] = "pith__module_class_",
    [PIECE_HEADS] = "pith__head_",
    [PIECE_TOKENIZER_SOURCES] = "pith__source_",
    [PIECE_NORMALIZERS] = "pith__normalizer_",
    [PIECE_PRE_TOKENIZERS] = "pith__pretokenizer_",
    [PIECE_TOKENIZER_MODELS] = "pith__model_",
    [PIECE_DECODERS] = "pith__decoder_",
    [PIECE_RUNTIMES] = "pith__runtime_",
    [PIECE_PARTS] = "pith__part_",
};
static const char *const cost_isas[] = { "scalar", "avx2", "avx512", "neon" };
enum { COST_ISAS = sizeof cost_isas / sizeof *cost_isas, COST_PLAIN = COST_ISAS };

typedef struct cost_piece {
    piece_kind kind;
    char name[128];                  /* "gemm f32" for a kernel */
    int64_t sections[COST_ISAS + 1]; /* per instruction set, and that of a kernel without;
                                        LINK_NONE: none */
    uint64_t adds, with;
} cost_piece;

typedef struct cost {
    const piece_list *list; /* NULL: everything */
    const command *c;
    const char *archive;
    link_graph *graph;
    cost_piece *pieces;
    size_t count;
    /* Per section: pieces that tables do not lead to, of all that there are and of the program;
     * reached by the program without pieces; scratch. */
    unsigned char *none, *shut, *core, *seen;
    uint64_t core_bytes, all_bytes;
    unsigned uses;
} cost;

bool select_cost_find(char *path, size_t size, const command *c) {
    static const char *const places[] = { "libpith.a", "../lib/libpith.a", "../lib64/libpith.a",
                                          "../lib/*/libpith.a" };
    char own[2048];
    const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        glob_t found;
        snprintf(path, size, "%s/%s", own, places[i]);
        if (!glob(path, 0, NULL, &found)) {
            snprintf(path, size, "%s", found.gl_pathv[0]);
            globfree(&found);
            return true;
        }
    }
    fail(c, "no libpith.a next to this command or in its lib folder; name one, as --cost=FILE");
    return false;
}

/* ---- pieces ---- */

static bool cost_isa_is_listed(const cost *k, size_t isa) {
    return isa == COST_PLAIN || !k->list || !k->list->kinds[PIECE_ISAS].listed ||
           piece_list_find(k->list, PIECE_ISAS, cost_isas[isa]);
}

/* Whether the list has the piece, with the dtype behind a kernel's name. */
static bool cost_is_listed(const cost *k, piece_kind kind, const char *name) {
    if (!k->list || !k->list->kinds[kind].listed) return true;
    char plain[128];
    const size_t n = strcspn(name, " ");
    snprintf(plain, sizeof plain, "%.*s", (int)n, name);
    const piece_item *item = piece_list_find(k->list, kind, plain);
    const int dtype = name[n] ? piece_dtype_find(name + n + 1, strlen(name + n + 1)) : -1;
    const uint32_t dtypes = item ? item->facts & ~PIECE_UPGRADED : 0;
    return item && (dtype < 0 || !dtypes || dtypes >> dtype & 1);
}

static void cost_take_piece(void *user, const pith_build_piece *told) {
    cost *k = user;
    char symbol[256], name[128];
    cost_piece piece = { .kind = piece_kind_find(told->list, strlen(told->list)) };
    if (piece.kind == PIECE_KINDS || !cost_prefixes[piece.kind]) return;
    piece_symbol(name, sizeof name, told->name);
    for (char *at = name; (at = strchr(at, ' '));) *at = '_';
    snprintf(piece.name, sizeof piece.name, "%s", told->name);
    bool any = false;
    for (size_t i = 0; i <= COST_ISAS; i++) {
        snprintf(symbol, sizeof symbol, "%s%s%s%s", cost_prefixes[piece.kind], name,
                 i < COST_ISAS ? "_" : "", i < COST_ISAS ? cost_isas[i] : "");
        piece.sections[i] = piece.kind == PIECE_KERNELS || i == COST_PLAIN
                                ? link_graph_find(k->graph, symbol)
                                : LINK_NONE;
        any |= piece.sections[i] != LINK_NONE;
        if (piece.sections[i] != LINK_NONE) {
            k->none[piece.sections[i]] = 1;
            link_graph_set_piece(k->graph, (size_t)piece.sections[i]);
        }
        if (!cost_isa_is_listed(k, i)) piece.sections[i] = LINK_NONE;
    }
    /* another build than this command's may lack it */
    if (!any || !cost_is_listed(k, piece.kind, told->name)) return;
    k->pieces = grow_for(k->pieces, k->count, sizeof *k->pieces);
    k->pieces[k->count++] = piece;
}

/* ---- what is reached ---- */

static void cost_shut(cost *k, const cost_piece *piece, size_t isa, unsigned char shut) {
    for (size_t i = 0; i <= COST_ISAS; i++)
        if (piece->sections[i] != LINK_NONE && (isa == SIZE_MAX || i == isa))
            k->shut[piece->sections[i]] = shut;
}

typedef struct cost_program {
    const cost *k;
    const unsigned char *shut;
    unsigned char *seen;
    uint32_t *from;
    uint64_t bytes;
    const char *missing; /* a function that the archive has not */
} cost_program;

static void cost_call(void *user, const char *function) {
    cost_program *p = user;
    const int64_t section = link_graph_find(p->k->graph, function);
    if (section == LINK_NONE)
        p->missing = function;
    else
        p->bytes += link_graph_reach(p->k->graph, (size_t)section, p->shut, p->seen, p->from);
}

/* The bytes of the program whose tables lead to no piece that is shut. */
static uint64_t cost_program_bytes(const cost *k, const unsigned char *shut, unsigned char *seen) {
    cost_program p = { .k = k, .shut = shut, .seen = seen };
    memset(seen, 0, link_graph_count(k->graph));
    select_use_calls(k->uses, cost_call, &p);
    return p.bytes;
}

static int cost_open(cost *k) {
    pith_error err = PITH_ERROR_INIT;
    int code = link_graph_open(&k->graph, k->c, k->archive);
    if (code) return code;
    if (!link_graph_set_table(k->graph, "pith__op_table") ||
        !link_graph_set_table(k->graph, "pith__pieces_all"))
        return fail(k->c, "%s: no complete library of Pith: it lacks the tables of pieces",
                    k->archive);
    unsigned char **const arrays[] = { &k->none, &k->shut, &k->core, &k->seen };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = memset(grow(NULL, link_graph_count(k->graph)), 0, link_graph_count(k->graph));
    if (pith_pieces_list(cost_take_piece, k, &err)) return fail(k->c, "%s", err.message);
    memcpy(k->shut, k->none, link_graph_count(k->graph));
    for (size_t i = 0; i < k->count; i++) cost_shut(k, &k->pieces[i], SIZE_MAX, 0);
    cost_program p = { .k = k, .shut = k->none, .seen = k->core };
    select_use_calls(k->uses, cost_call, &p);
    k->core_bytes = p.bytes;
    return p.missing ? fail(k->c, "%s has no %s, which the program calls", k->archive, p.missing)
                     : EXIT_DONE;
}

static void cost_close(cost *k) {
    link_graph_close(k->graph);
    free(k->pieces);
    free(k->none);
    free(k->shut);
    free(k->core);
    free(k->seen);
}

/* ---- the table ---- */

static int cost_compare(const void *a, const void *b) {
    const cost_piece *x = a, *y = b;
    if (x->adds != y->adds) return x->adds < y->adds ? 1 : -1;
    if (x->with != y->with) return x->with < y->with ? 1 : -1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static void cost_print_line(FILE *out, uint64_t adds, uint64_t with, const char *what,
                            const char *name) {
    fprintf(out, "%9llu %9llu  %s: %s\n", (unsigned long long)adds, (unsigned long long)with, what,
            name);
}

/* A line for the pieces of a kind, or of an instruction set (else SIZE_MAX), together. */
static void cost_print_sum(FILE *out, cost *k, piece_kind kind, size_t isa, const char *what,
                           const char *name) {
    uint64_t with = 0;
    memcpy(k->seen, k->core, link_graph_count(k->graph));
    for (size_t i = 0; i < k->count; i++) {
        const cost_piece *piece = &k->pieces[i];
        if (isa == SIZE_MAX && piece->kind != kind) continue;
        cost_shut(k, piece, isa, 1);
        for (size_t s = 0; s <= COST_ISAS; s++)
            if (piece->sections[s] != LINK_NONE && (isa == SIZE_MAX || s == isa))
                with +=
                    link_graph_reach(k->graph, (size_t)piece->sections[s], k->none, k->seen, NULL);
    }
    const uint64_t left = with ? cost_program_bytes(k, k->shut, k->seen) : 0;
    for (size_t i = 0; i < k->count; i++)
        if (isa != SIZE_MAX || k->pieces[i].kind == kind) cost_shut(k, &k->pieces[i], isa, 0);
    if (with) cost_print_line(out, k->all_bytes - left, with, what, name);
}

static void cost_print(FILE *out, cost *k) {
    fprintf(out,
            "# Bytes of %s that a program links; docs/selective-build.md explains the columns.\n"
            "#    adds      with  kind: piece\n",
            k->archive);
    cost_print_line(out, k->all_bytes, k->all_bytes, "program", "all");
    cost_print_line(out, k->core_bytes, k->core_bytes, "program", "without any piece");
    for (size_t i = 0; i < COST_ISAS; i++)
        cost_print_sum(out, k, PIECE_KINDS, i, "isas", cost_isas[i]);
    for (int kind = 0; kind < PIECE_KINDS; kind++)
        cost_print_sum(out, k, (piece_kind)kind, SIZE_MAX, "kind", piece_kind_names[kind]);
    for (size_t i = 0; i < k->count; i++)
        cost_print_line(out, k->pieces[i].adds, k->pieces[i].with,
                        piece_kind_names[k->pieces[i].kind], k->pieces[i].name);
}

/* Both figures of a piece. */
static void cost_weigh(cost *k, cost_piece *piece) {
    cost_shut(k, piece, SIZE_MAX, 1);
    piece->adds = k->all_bytes - cost_program_bytes(k, k->shut, k->seen);
    cost_shut(k, piece, SIZE_MAX, 0);
    memcpy(k->seen, k->core, link_graph_count(k->graph));
    for (size_t i = 0; i <= COST_ISAS; i++)
        if (piece->sections[i] != LINK_NONE)
            piece->with +=
                link_graph_reach(k->graph, (size_t)piece->sections[i], k->none, k->seen, NULL);
}

int select_cost(FILE *out, const piece_list *list, const char *archive, unsigned uses,
                const command *c) {
    cost k = { .list = list, .c = c, .archive = archive, .uses = uses };
    const int code = cost_open(&k);
    if (!code) {
        k.all_bytes = cost_program_bytes(&k, k.shut, k.seen);
        for (size_t i = 0; i < k.count; i++) cost_weigh(&k, &k.pieces[i]);
        if (k.count) qsort(k.pieces, k.count, sizeof *k.pieces, cost_compare);
        cost_print(out, &k);
    }
    cost_close(&k);
    return code;
}

/* ---- what leads to a piece ---- */

static void cost_print_path(FILE *out, const cost *k, const uint32_t *from, size_t section) {
    size_t *chain = NULL, count = 0;
    for (size_t at = section; at != UINT32_MAX; at = from[at]) {
        chain = grow_for(chain, count, sizeof *chain);
        chain[count++] = at;
    }
    while (count) {
        char name[256];
        link_graph_name(name, sizeof name, k->graph, chain[--count]);
        fprintf(out, "  %s\n", name);
    }
    free(chain);
}

/* The section of a piece of any kind, or of a function. */
static int64_t cost_section_of(const cost *k, const char *name) {
    for (size_t i = 0; i < k->count; i++)
        for (size_t s = 0; s <= COST_ISAS; s++)
            if (!strcmp(k->pieces[i].name, name) && k->pieces[i].sections[s] != LINK_NONE)
                return k->pieces[i].sections[s];
    return link_graph_find(k->graph, name);
}

int select_cost_path(FILE *out, const char *name, const char *archive, unsigned uses,
                     const command *c) {
    cost k = { .c = c, .archive = archive, .uses = uses };
    int code = cost_open(&k);
    const int64_t section = code ? LINK_NONE : cost_section_of(&k, name);
    if (!code && section == LINK_NONE)
        code = fail(c, "%s has no piece and no function '%s'", archive, name);
    if (!code) {
        const size_t bytes = link_graph_count(k.graph) * sizeof(uint32_t);
        cost_program p = { .k = &k, .shut = k.core[section] ? k.none : k.shut, .seen = k.seen };
        p.from = memset(grow(NULL, bytes), 0xff, bytes);
        select_use_calls(uses, cost_call, &p);
        const char *linked = "no such program links it";
        if (k.seen[section]) linked = "a program with all pieces links it";
        if (k.core[section]) linked = "a program without any piece links it";
        fprintf(out, "%s: %s\n", archive, linked);
        if (k.seen[section]) cost_print_path(out, &k, p.from, (size_t)section);
        free(p.from);
    }
    cost_close(&k);
    return code;
}
