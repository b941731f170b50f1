/* Kernels of which one reads nothing of the other run at a time: what that saves counts where it may, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "support/check_plan.h"

#define PRODUCTS                                                                                                       \
    "graph products\ndim rows max 65536\nx = input f32[rows, 1024]\nwg = constant f32[2816, 1024] random seed=1\n"     \
    "wu = constant f32[2816, 1024] random seed=2\nwd = constant f32[2816, 2816] random seed=3\n"
#define FIRST "g = contract(x, wg) \"ri,oi->ro\"\n"
#define BESIDE "u = contract(x, wu) \"ri,oi->ro\"\n"
#define BEHIND "d = contract(g, wd) \"ri,oi->ro\" : f32[rows, 2816]\n"

/* A product of 64 x 128 sums for each workgroup, as many as cores hold, and one of 64 x 64, of which they hold more. */
#define SMALL "graph two\ndim rows max 65536\nz = input f32[rows, 384]\nwz = constant f32[384, 384] random seed=4\n"
#define LARGE "x = input f32[rows, 768]\nwx = constant f32[768, 768] random seed=5\n"
#define OF_SMALL "s = contract(z, wz) \"ri,io->ro\"\n"
#define OF_LARGE "l = contract(x, wx) \"ri,io->ro\"\n"

#define CLOSE 1e-12 /* seconds, of rounding */

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

/* The graph lives as long as the plan. */
static smg_plan *plan_for(fixture *f, const char *text, const char *name, int64_t rows, smg_graph **out_graph) {
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_TIME, .nominal = &rows};
    smg_target target;
    smg_plan *made;
    assert_int_equal(check_target(f->ctx, name, &target), SMG_OK);
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", out_graph) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_plan_make(*out_graph, &target, &options, f->arena, &made), SMG_OK);
    return made;
}

static smg_plan *plan(fixture *f, const char *text, const char *name, smg_graph **out_graph) {
    return plan_for(f, text, name, 1024, out_graph);
}

static bool makes(const smg_plan *p, int step, const char *name) {
    const smg_pstep *s = &p->steps.items[step];
    bool found = false;
    for (int i = 0; i < s->node_count; i++) {
        const char *of = smg_graph_node(p->graph, s->nodes[i])->name;
        found = found || (of != NULL && strcmp(of, name) == 0);
    }
    return found;
}

static void independent_products(void **state) {
    smg_graph *g;
    const smg_plan *p = plan(*state, PRODUCTS FIRST BESIDE "output g = g\noutput u = u\n", "h200", &g);
    assert_int_equal(p->steps.count, 2);
    double idle = p->steps.items[0].price.idle;
    assert_true(idle > 0 && idle < 0.5 * p->steps.items[0].price.seconds);
    assert_true(p->steps.items[0].beside == 0);
    assert_true(fabs(p->steps.items[1].beside - idle) < CLOSE);
    smg_graph_destroy(g);
}

static void one_reads_the_other(void **state) {
    smg_graph *g;
    const smg_plan *p = plan(*state, PRODUCTS FIRST BEHIND "output d = d\n", "h200", &g);
    assert_int_equal(p->steps.count, 2);
    assert_true(p->steps.items[0].price.idle > 0);
    assert_true(fabs(p->steps.items[1].beside) < CLOSE);
    smg_graph_destroy(g);
}

/* d waits for g, and so for u as well, which runs at a time with g. */
static void behind_a_barrier(void **state) {
    smg_graph *g;
    const smg_plan *p = plan(*state, PRODUCTS FIRST BESIDE BEHIND "output d = d\noutput u = u\n", "h200", &g);
    assert_int_equal(p->steps.count, 3);
    assert_true(makes(p, 0, "g") && makes(p, 1, "u") && makes(p, 2, "d"));
    assert_true(p->steps.items[1].beside > CLOSE && p->steps.items[1].price.idle > CLOSE);
    assert_true(fabs(p->steps.items[2].beside) < CLOSE);
    smg_graph_destroy(g);
}

/* What a map behind two products takes is less than what the second one's workgroups save beside the first. */
static void a_map_stays_alone(void **state) {
    smg_graph *g;
    static const char text[] = PRODUCTS FIRST BESIDE "s = sigmoid(g)\na = mul(g, s)\nh = mul(a, u)\noutput h = h\n";
    const smg_plan *p = plan(*state, text, "h200", &g);
    assert_int_equal(p->steps.count, 3);
    assert_true(makes(p, 0, "g") && makes(p, 1, "u") && makes(p, 2, "h"));
    assert_int_equal(p->steps.items[2].node_count, 3);
    smg_graph_destroy(g);
}

/* Behind workgroups that fill all cores few others pile up on the cores that are done first. */
static void few_behind_a_full_device(void **state) {
    smg_graph *g;
    const smg_plan *p =
        plan_for(*state, SMALL LARGE OF_LARGE OF_SMALL "output l = l\noutput s = s\n", "h200", 4096, &g);
    assert_int_equal(p->steps.count, 2);
    const smg_price *full = &p->steps.items[0].price, *few = &p->steps.items[1].price;
    assert_true(makes(p, 0, "l") && makes(p, 1, "s"));
    assert_true(few->heaped > full->idle && few->heaped < few->seconds);
    assert_true(fabs(p->steps.items[1].beside - (full->idle - few->heaped)) < CLOSE);
    smg_graph_destroy(g);
}

/* The other way round there is room from the beginning. */
static void a_full_device_behind_few(void **state) {
    smg_graph *g;
    const smg_plan *p =
        plan_for(*state, SMALL LARGE OF_SMALL OF_LARGE "output s = s\noutput l = l\n", "h200", 4096, &g);
    assert_int_equal(p->steps.count, 2);
    assert_true(makes(p, 0, "s") && makes(p, 1, "l"));
    assert_true(p->steps.items[1].price.heaped == 0);
    assert_true(fabs(p->steps.items[1].beside - p->steps.items[0].price.idle) < CLOSE);
    smg_graph_destroy(g);
}

/* Three products of one factor: the one that stands alone comes first, where it meets no full device. */
static void three_products(void **state) {
    smg_graph *g;
    static const char text[] = "graph three\ndim rows max 65536\nx = input f32[rows, 384]\n"
                               "wa = constant f32[384, 384] random seed=1\nwb = constant f32[384, 384] random seed=2\n"
                               "wc = constant f32[384, 384] random seed=3\na = contract(x, wa) \"ri,io->ro\"\n"
                               "b = contract(x, wb) \"ri,io->ro\"\nc = contract(x, wc) \"ri,io->ro\"\n"
                               "output a = a\noutput b = b\noutput c = c\n";
    const smg_plan *p = plan_for(*state, text, "h200", 4096, &g);
    assert_int_equal(p->steps.count, 2);
    assert_int_equal(p->steps.items[0].node_count, 1);
    assert_int_equal(p->steps.items[1].node_count, 2);
    assert_true(p->steps.items[1].beside > 0 && p->steps.items[0].price.heaped > 0);
    smg_graph_destroy(g);
}

/* A core that runs one subgroup after the other has nothing of the next kernel before this one ends. */
static void not_on_a_cpu(void **state) {
    smg_graph *g;
    const smg_plan *p = plan(*state, PRODUCTS FIRST BESIDE "output g = g\noutput u = u\n", "lavapipe", &g);
    for (int i = 0; i < p->steps.count; i++) {
        const smg_price *price = &p->steps.items[i].price;
        assert_true(price->idle == 0 && price->heaped == 0);
    }
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(independent_products, setup, teardown),
        cmocka_unit_test_setup_teardown(one_reads_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(behind_a_barrier, setup, teardown),
        cmocka_unit_test_setup_teardown(a_map_stays_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(few_behind_a_full_device, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_device_behind_few, setup, teardown),
        cmocka_unit_test_setup_teardown(three_products, setup, teardown),
        cmocka_unit_test_setup_teardown(not_on_a_cpu, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
