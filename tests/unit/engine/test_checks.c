/* test_checks.c - the checks that builds with assertions make: each passes what is right, and finds
 * what is broken here by hand. */
#include "support/graph_test.h"

#include <string.h>

#include "engine/exec/binding.h"
#include "text/added_tokens.h"
#include "text/tokenizer.h"

enum { ROWS = 8, COLUMNS = 64 };

/* softmax(relu(x) * x) and its view: steps that need each other's results, in place, and one view.
 */
static void build(fixture *f) {
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    pith__value *relu = graph_apply(f->graph, "Relu", x, NULL);
    pith__value *exp = graph_apply(f->graph, "Softmax", relu, NULL);
    pith__value *sum = graph_apply(f->graph, "Add", relu, exp);
    pith__value *same = graph_apply(f->graph, "Identity", sum, NULL);
    pith__value *out = graph_apply(f->graph, "Softmax", same, NULL);
    for (pith__node *node = f->graph->first; node; node = node->next) node->opset = 17;
    graph_output(f->graph, out);
    if (pith__graph_check(f->graph, &f->err) || pith__ops_bind(f->graph, &f->err) ||
        pith__ops_infer(f->graph, false, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
}

static void check_fails(pith_status status, const pith_error *err, const char *why) {
    assert_int_equal(status, PITH_ERR_FORMAT);
    if (!strstr(err->message, why)) fail_msg("'%s' is not '%s'", err->message, why);
}

static void plan_that_is_broken(void **state) {
    fixture *f = *state;
    build(f);
    pith__plan *plan = f->plan;
    assert_int_equal(pith__plan_check(plan, &f->err), PITH_OK);

    const pith__step first = plan->steps[0];
    plan->steps[0] = plan->steps[1];
    plan->steps[1] = first;
    check_fails(pith__plan_check(plan, &f->err), &f->err, "read before it is made");
    plan->steps[1] = plan->steps[0];
    plan->steps[0] = first;

    plan->steps[1].run = NULL;
    check_fails(pith__plan_check(plan, &f->err), &f->err, "no kernel");
    plan->steps[1].run = first.run;

    uint32_t *last_use = (uint32_t *)(uintptr_t)plan->last_use;
    last_use[plan->steps[0].out[0]->id]--;
    check_fails(pith__plan_check(plan, &f->err), &f->err, "the last step that reads it");
    last_use[plan->steps[0].out[0]->id]++;

    plan->steps[0].memory = 1;
    check_fails(pith__plan_check(plan, &f->err), &f->err, "memory");
    plan->steps[0].memory = 0;
    plan->widest_in = 0;
    check_fails(pith__plan_check(plan, &f->err), &f->err, "widest");
}

static void plan_with_a_broken_constant(void **state) {
    fixture *f = *state;
    static float numbers[COLUMNS];
    static pith_tensor t = {
        .data = numbers, .bytes = sizeof numbers, .dtype = PITH_F32, .rank = 1, .dims = { COLUMNS }
    };
    pith__value *x = graph_input_of(f->graph, "x", PITH_F32, "A");
    pith__value *c = pith__graph_add_value(f->graph, PITH_STR("c"), PITH_VALUE_CONST);
    c->type.data = &t;
    pith__type_of_tensor(&c->type, &t);
    pith__value *out = graph_apply(f->graph, "Add", x, c);
    out->producer->opset = 17;
    graph_output(f->graph, out);
    if (pith__ops_bind(f->graph, &f->err) || pith__ops_infer(f->graph, false, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
    assert_int_equal(pith__plan_check(f->plan, &f->err), PITH_OK);
    t.bytes--;
    check_fails(pith__plan_check(f->plan, &f->err), &f->err, "constant 'c'");
    t.bytes++;
    t.data = NULL;
    check_fails(pith__plan_check(f->plan, &f->err), &f->err, "constant 'c'");
    t.data = numbers;
}

static void binding_that_is_broken(void **state) {
    fixture *f = *state;
    static float numbers[ROWS * COLUMNS];
    build(f);
    pith__arena scratch;
    pith__binding b = { 0 };
    const pith_tensor in = { .data = numbers,
                             .bytes = sizeof numbers,
                             .dtype = PITH_F32,
                             .rank = 2,
                             .dims = { ROWS, COLUMNS } };
    pith__arena_init(&scratch, &f->allocator);
    pith__arena_init(&b.arena, &f->allocator);
    const pith__bind how = {
        .plan = f->plan, .ports = &in, .threads = 1, .scratch = &scratch, .err = &f->err
    };
    assert_int_equal(pith__binding_make(&b, &how), PITH_OK);
    assert_int_equal(pith__binding_check(&b, f->plan, &f->err), PITH_OK);
    assert_true(b.placed_count >= 3);

    size_t relu = SIZE_MAX, softmax = SIZE_MAX, view = SIZE_MAX;
    for (size_t i = 0; i < b.placed_count; i++) {
        const size_t id = (size_t)(b.placed[i].tensor - b.tensors);
        if (id == f->plan->steps[0].out[0]->id) relu = i;
        if (id == f->plan->steps[1].out[0]->id) softmax = i;
        if (id == f->plan->steps[3].out[0]->id) view = i;
    }
    assert_true(relu != SIZE_MAX && softmax != SIZE_MAX && view != SIZE_MAX);
    const size_t offset = b.placed[softmax].offset;
    b.placed[softmax].offset = b.placed[relu].offset;
    check_fails(pith__binding_check(&b, f->plan, &f->err), &f->err, "still needed");
    b.placed[softmax].offset = offset;

    b.placed[relu].offset += b.memories[0].bytes;
    check_fails(pith__binding_check(&b, f->plan, &f->err), &f->err, "outside of the buffer");
    b.placed[relu].offset -= b.memories[0].bytes;

    b.placed[view].tensor->bytes += 4;
    check_fails(pith__binding_check(&b, f->plan, &f->err), &f->err, "");
    b.placed[view].tensor->bytes -= 4;
    assert_int_equal(pith__binding_check(&b, f->plan, &f->err), PITH_OK);
    pith__arena_free(&b.arena);
    pith__arena_free(&scratch);
}

/* The second and third word of a chunk are its size and how much of it is used (memory.c). */
static void arena_that_is_broken(void **state) {
    (void)state;
    pith__arena arena;
    pith__arena_init(&arena, NULL);
    assert_true(pith__arena_check(&arena));
    assert_non_null(pith__arena_alloc(&arena, 100));
    assert_non_null(pith__arena_alloc(&arena, 1 << 20));
    assert_true(pith__arena_check(&arena));
    size_t *chunk = (size_t *)(void *)arena.chunks;
    const size_t used = chunk[2];
    chunk[2] = chunk[1] + 1;
    assert_false(pith__arena_check(&arena));
    chunk[2] = used;
    arena.total++;
    assert_false(pith__arena_check(&arena));
    arena.total--;
    struct pith__arena_chunk *next;
    memcpy(&next, arena.chunks, sizeof next);
    memcpy(arena.chunks, &arena.chunks, sizeof next); /* a circle */
    assert_false(pith__arena_check(&arena));
    memcpy(arena.chunks, &next, sizeof next);
    assert_true(pith__arena_check(&arena));
    pith__arena_free(&arena);
}

static const char tokenizer_json[] =
    "{\"added_tokens\":[{\"id\":3,\"content\":\"<a>\",\"special\":true},"
    "{\"id\":4,\"content\":\"<b>\",\"special\":true},{\"id\":5,\"content\":\"[c]\"}],"
    "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"one\":0,\"two\":1,\"?\":2},"
    "\"unk_token\":\"?\"}}";

static void tokenizer_that_is_broken(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith__arena arena;
    pith_tokenizer *t;
    pith__arena_init(&arena, NULL);
    const pith_str bytes = { tokenizer_json, sizeof tokenizer_json - 1 };
    if (pith__tokenizer_load_bytes(&t, bytes, NULL, &arena, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith__tokenizer_check(t, &err), PITH_OK);
    pith__added_tokens *added = t->added_tokens;
    assert_int_equal(added->raw.count, 3);

    added->tokens[1].id = -5;
    check_fails(pith__tokenizer_check(t, &err), &err, "out of range");
    added->tokens[1].id = 4;

    uint32_t *order = added->raw.order;
    order[0] ^= order[1];
    order[1] ^= order[0];
    order[0] ^= order[1];
    check_fails(pith__tokenizer_check(t, &err), &err, "not sorted");
    order[0] ^= order[1];
    order[1] ^= order[0];
    order[0] ^= order[1];

    added->raw.first['<']++;
    check_fails(pith__tokenizer_check(t, &err), &err, "");
    added->raw.first['<']--;

    const uint32_t by_id = added->by_id[2];
    added->by_id[2] = 77;
    check_fails(pith__tokenizer_check(t, &err), &err, "not there");
    added->by_id[2] = by_id;

    t->unknown_id = -7;
    check_fails(pith__tokenizer_check(t, &err), &err, "unknown");
    t->unknown_id = -1;
    assert_int_equal(pith__tokenizer_check(t, &err), PITH_OK);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plan_that_is_broken, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(plan_with_a_broken_constant, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(binding_that_is_broken, fixture_setup, fixture_teardown),
        cmocka_unit_test(arena_that_is_broken),
        cmocka_unit_test(tokenizer_that_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
