/* Products with vectors: as one kernel with what stands between them, and in parts where they are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "slice/slice.h"
#include "support/check_plan.h"

#define TOLERANCE 1e-4
#define GRAPH "tests/graphs/one_query.smg"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
} fixture;

static int setup(void **state) {
    static fixture f;
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* The space of all of a graph, its products multiplied and summed; NULL where they are not. */
static smg_space *multiplied(fixture *f, const smg_graph *g) {
    smg_space *space, *made;
    assert_int_equal(check_space(g, f->arena, &space), SMG_OK);
    assert_null(space->refused);
    assert_int_equal(smg_slice_multiplied(space, f->arena, &made), SMG_OK);
    assert_true(made == NULL || (made->form == SMG_SPACE_MULTIPLIED && space->form == SMG_SPACE_AS_IS));
    return made;
}

static int count_class(const smg_space *space, smg_op_class class_) {
    int count = 0;
    for (int i = 0; i < space->nodes.count; i++) count += space->nodes.items[i].class_ == class_;
    return count;
}

/* Each product is a map and a sum, which reads it; the first one's factors are inputs, so that it is streamed. */
static void products_become_sums(void **state) {
    fixture *f = *state;
    smg_graph *g;
    int streamed = 0, products = 0;
    assert_int_equal(check_load(f->ctx, GRAPH, &g), SMG_OK);
    const smg_space *space = multiplied(f, g);
    assert_non_null(space);
    assert_int_equal(count_class(space, SMG_CLASS_CONTRACT), 0);
    assert_int_equal(count_class(space, SMG_CLASS_REDUCE), 4);
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        for (int k = 0; k < n->operand_count; k++) assert_true(n->operand[k].producer < i);
        if (n->class_ != SMG_CLASS_REDUCE) continue;
        const smg_snode *of = &space->nodes.items[n->operand[0].producer];
        if (of->node != n->node) continue;
        assert_true(of->op == SMG_OP_MUL && of->result == n->iterates && !of->output);
        products++;
        streamed += of->streamed;
    }
    assert_int_equal(products, 2);
    assert_int_equal(streamed, 1);
    smg_graph_destroy(g);
}

/* Several queries use each key several times; a product alone has schedules of its own; so has one of two factors of
 * which none has all axes. */
static void others_stay_products(void **state) {
    static const char *const texts[] = {
        "graph a\ndim t max 64\nx = input f32[16]\nk = input f32[t, 16]\ny = contract(x, k) \"d,td->t\"\noutput y = "
        "y\n",
        "graph b\ndim t max 64\nx = input f32[4, 16]\nk = input f32[t, 16]\ns = contract(x, k) \"gd,td->gt\"\n"
        "m = reduce_max(s) axis=1 keep\ny = sub(s, m)\noutput y = y\n"};
    fixture *f = *state;
    smg_graph *g;
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        assert_int_equal(smg_graph_parse(f->ctx, texts[i], strlen(texts[i]), "other", &g), SMG_OK);
        assert_null(multiplied(f, g));
        smg_graph_destroy(g);
    }
    assert_int_equal(check_load(f->ctx, "tests/graphs/attention.smg", &g), SMG_OK);
    assert_null(multiplied(f, g));
    smg_graph_destroy(g);
}

static void assert_right(fixture *f, const smg_graph *g, const smg_plan_options *plan, int64_t t) {
    const int64_t symbols[4] = {2, t};
    check_result r;
    check_options o = {.target = "h200", .symbols = symbols, .tolerance = TOLERANCE, .by_lane = true, .plan = *plan};
    if (check_plan(f->ctx, g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(r.pass);
}

/* One kernel whatever the length is, where kernels are to be few. */
static void one_kernel(void **state) {
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    const smg_plan_options fewest = {.objective = SMG_OBJECTIVE_DISPATCHES};
    assert_int_equal(check_load(f->ctx, GRAPH, &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    assert_int_equal(smg_plan_make(g, &h200, &fewest, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    for (int64_t t = 1; t <= 64; t += 21) assert_right(f, g, &fewest, t);
    smg_graph_destroy(g);
}

static const char long_keys[] = "graph keys\ndim b\ndim t max 65536\nq = input f32[b, 32, 128]\n"
                                "k = input f32[b, 32, t, 128]\nv = input f32[b, 32, t, 128]\n"
                                "s = contract(q, k) \"bhd,bhtd->bht\"\nm = reduce_max(s) axis=2 keep\n"
                                "d = sub(s, m)\ne = exp(d)\nsum = sum(e) axis=2 keep\np = div(e, sum)\n"
                                "o = contract(p, v) \"bht,bhtd->bhd\"\noutput o = o\n";

/* Of many keys and few heads each part makes its own scores: a kernel for all parts, and one that corrects and adds
 * what they leave. Where the size is a multiple of a part no element is asked for. */
static void parts_make_what_they_sum_up(void **state) {
    static const int64_t many[4] = {1, 8192};
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    smg_text text;
    const smg_plan_options options = {.nominal = many};
    assert_int_equal(smg_graph_parse(f->ctx, long_keys, strlen(long_keys), "keys", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    assert_int_equal(smg_plan_make(g, &h200, &options, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 2);
    assert_non_null(strstr(plan->steps.items[0].because, "in parts of"));
    assert_non_null(strstr(plan->steps.items[0].because, "products with vectors are multiplied and summed"));
    smg_text_init(&text, f->ctx);
    smg_kernel_print(plan->steps.items[0].kernel, &text);
    assert_non_null(strstr(smg_text_cstr(&text), "even [t] by"));
    assert_non_null(strstr(smg_text_cstr(&text), "sure l"));
    smg_kernel *again;
    smg_text other;
    smg_text_init(&other, f->ctx);
    if (smg_kernel_parse(f->arena, plan->steps.items[0].kernel->sizes, smg_text_cstr(&text), &again) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    smg_kernel_print(again, &other);
    assert_string_equal(smg_text_cstr(&text), smg_text_cstr(&other));
    smg_text_free(&text);
    smg_text_free(&other);
    assert_right(f, g, &options, 128);
    assert_right(f, g, &options, 77);
    smg_graph_destroy(g);
}

/* Each row has a minimum of its own, and one sum goes over rows, too: a factor of its rows is none of the sum. */
static void factors_of_rows_are_none_of_sums(void **state) {
    static const char text[] = "graph rows\nx = input f32[33, 4]\nw = input f32[33, 4, 8]\n"
                               "low = reduce_min(x) axis=1 keep\nt = mul(x, low)\nd = sub(x, low)\n"
                               "y = contract(t, w) \"xy,xyz->z\"\noutput y = y\noutput d = d\n";
    static const int64_t none[4] = {0};
    fixture *f = *state;
    smg_graph *g;
    check_result r;
    assert_int_equal(smg_graph_parse(f->ctx, text, sizeof(text) - 1, "rows", &g), SMG_OK);
    for (int fewest = 0; fewest < 2; fewest++) {
        check_options o = {
            .target = "tests/targets/slots.target", .symbols = none, .tolerance = TOLERANCE, .by_lane = true};
        o.plan.objective = fewest ? SMG_OBJECTIVE_DISPATCHES : SMG_OBJECTIVE_TIME;
        if (check_plan(f->ctx, g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        assert_true(r.pass);
    }
    smg_graph_destroy(g);
}

/* What is looked for in a program is looked for once in each part that its expressions share: 2^32 ways lead to x. */
static void shared_parts_are_met_once(void **state) {
    fixture *f = *state;
    smg_graph *g;
    smg_plan *plan;
    smg_target h200;
    const char *text = "graph squares\ndim n max 64\nx0 = input f32[n]\n";
    for (int i = 0; i < 32; i++) text = smg_arena_format(f->arena, "%sx%d = mul(x%d, x%d)\n", text, i + 1, i, i);
    text = smg_arena_format(f->arena, "%soutput y = x32\n", text);
    assert_int_equal(smg_graph_parse(f->ctx, text, strlen(text), "squares", &g), SMG_OK);
    assert_int_equal(check_target(f->ctx, "h200", &h200), SMG_OK);
    assert_int_equal(smg_plan_make(g, &h200, NULL, f->arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_become_sums),
                                       cmocka_unit_test(others_stay_products),
                                       cmocka_unit_test(one_kernel),
                                       cmocka_unit_test(parts_make_what_they_sum_up),
                                       cmocka_unit_test(factors_of_rows_are_none_of_sums),
                                       cmocka_unit_test(shared_parts_are_met_once)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
