/* What one formula for the lanes of a whole kernel could not say, and layouts can: small graphs, each one kernel with the
 * fewest dispatches on a large GPU and on a CPU's vector registers, against the reference in the interpreter's per-lane
 * mode, at sizes that fill no tile. What still ends a kernel is here too, with its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/check_plan.h"

typedef struct one_case {
    const char *what, *text;
    const char *because; /* a line of the plan for h200 that must be there; NULL: any plan of one kernel will do */
} one_case;

#define WEIGHT(name, dims, seed) name " = constant f32[" dims "] random seed=" seed " scale=0.2\n"

static const one_case cases[] = {
    {"reductions that leave columns",
     "graph g\ndim n max 65536\nx = input f32[n, 50]\nm = reduce_max(x) axis=0 keep\nd = sub(x, m)\ne = exp(d)\n"
     "s = sum(e) axis=0\noutput s = s\n",
     "update-then-aggregate"},
    {"a right factor that is computed",
     "graph g\ndim n max 512\nx = input f32[n, 40]\nz = input f32[23, 40]\nq = square(z)\nt = sum(q) axis=1 keep\n"
     "r = rsqrt(t)\nw = mul(z, r)\ny = contract(x, w) \"mk,nk->mn\"\noutput y = y\n",
     NULL},
    {"products whose rows lie on different axes",
     "graph g\ndim n max 64\nx = input f32[n, 24]\nz = input f32[19, 24]\n" WEIGHT("w", "16, 24", "1")
         WEIGHT("u", "16, 24", "2") "q = contract(x, w) \"si,di->sd\"\nk = contract(z, u) \"ti,di->td\"\n"
                                    "y = contract(q, k) \"sd,td->st\"\noutput y = y\n",
     NULL},
    {"two wide contraction axes that are no run of memory",
     "graph g\ndim n max 64\nx = input f32[33, n, 40]\nw = input f32[40, 20, 33]\nv = relu(x)\n"
     "y = contract(v, w) \"inj,joi->no\"\noutput y = y\n",
     "contraction, staged, tile 1"},
    {"two wide contraction axes behind a product that leaves both",
     "graph g\ndim n max 64\nx = input f32[n, 40]\n" WEIGHT("w", "3, 20, 40", "1") WEIGHT(
         "u", "20, 3, 36",
         "2") "q = contract(x, w) \"si,hdi->hsd\"\nt = relu(q)\ny = contract(t, u) \"hsd,dho->so\"\noutput y = y\n",
     "temporal, tile 1"},
    {"a norm before a product whose columns are cut",
     "graph g\ndim n max 4096\nx = input f32[n, 48]\n" WEIGHT(
         "w", "130, 48",
         "1") "t = sum(x) axis=1 keep\ncount = fill 0.020833333333333332 : f32[]\nmean = mul(t, count)\nc = sub(x, "
              "mean)\n"
              "q = square(c)\ne = sum(q) axis=1 keep\nr = rsqrt(e)\nh = mul(c, r)\ny = contract(h, w) \"ri,oi->ro\"\n"
              "output y = y\n",
     "spatial, columns, tile"},
    {"a value along some of the held columns",
     "graph g\ndim n max 4096\nx = input f32[n, 6, 20]\nm = reduce_max(x) axis=2 keep\nd = sub(x, m)\ne = exp(d)\n"
     "s = sum(e) axis=2 keep\np = div(e, s)\nt = reduce_max(p) axis=1 keep\ny = mul(p, t)\noutput y = y\n",
     NULL},
    {"gates that are slices of one product",
     "graph g\ndim n max 512\nx = input f32[n, 24]\nc = input f32[n, 20]\n" WEIGHT(
         "w", "60, 24",
         "1") "g = contract(x, w) \"ri,oi->ro\"\na = slice(g) axis=1 begin=0 : f32[n, 20]\n"
              "b = slice(g) axis=1 begin=20 : f32[n, 20]\no = slice(g) axis=1 begin=40 : f32[n, 20]\ns = sigmoid(a)\n"
              "t = tanh(b)\nu = mul(s, t)\nk = add(u, c)\nr = sigmoid(o)\ny = mul(k, r)\noutput y = y\n",
     NULL},
    {"halves that change places",
     "graph g\ndim n max 512\nx = input f32[n, 24]\n" WEIGHT(
         "w", "32, 24",
         "1") "p = contract(x, w) \"ri,oi->ro\"\nh = reshape(p) : f32[n, 2, 16]\n"
              "f = slice(h) axis=1 begin=1 step=-1 : f32[n, 2, 16]\ns = sin(f)\ny = mul(h, s)\noutput y = y\n",
     NULL},
};

/* Parts that no lane has together: the kernel ends, with the reason (decision 0020). */
static const one_case ended[] = {
    {"a long axis backwards",
     "graph g\ndim n max 512\nx = input f32[n, 24]\n" WEIGHT(
         "w", "64, 24",
         "1") "p = contract(x, w) \"ri,oi->ro\"\nf = slice(p) axis=1 begin=63 step=-1 : f32[n, 64]\ns = sigmoid(f)\n"
              "y = mul(p, s)\noutput y = y\n",
     "together impossible: a shifted read of an intermediate"},
};

static const char *const targets[] = {"h200", "lavapipe"};

static smg_graph *parse(smg_context *ctx, const one_case *c) {
    smg_graph *g;
    if (smg_graph_parse(ctx, c->text, strlen(c->text), c->what, &g) != SMG_OK)
        fail_msg("%s: %s", c->what, smg_context_error(ctx));
    return g;
}

static bool says(smg_context *ctx, const smg_graph *g, const char *what) {
    static const int64_t nominal[] = {100};
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .nominal = nominal};
    smg_target target;
    smg_arena *arena;
    smg_plan *plan;
    bool found = false;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_target(ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_plan_make(g, &target, &options, arena, &plan), SMG_OK);
    for (int i = 0; i < plan->steps.count; i++) found = found || strstr(plan->steps.items[i].because, what) != NULL;
    smg_arena_destroy(arena);
    return found;
}

static void check(smg_context *ctx, const one_case *c, int kernels) {
    static const int64_t sizes[][1] = {{21}, {1}};
    smg_graph *g = parse(ctx, c);
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
            check_result r;
            const check_options o = {.target = targets[t],
                                     .symbols = sizes[s],
                                     .tolerance = 2e-5,
                                     .by_lane = true,
                                     .plan = {.objective = SMG_OBJECTIVE_DISPATCHES}};
            smg_status status = check_plan(ctx, g, &o, &r);
            if (status != SMG_OK || !r.pass)
                fail_msg("%s on %s: %s, error %g", c->what, targets[t],
                         status != SMG_OK ? smg_context_error(ctx) : "differs", r.max_error);
            if (r.steps != kernels) fail_msg("%s on %s: %d kernels, not %d", c->what, targets[t], r.steps, kernels);
        }
    }
    if (c->because != NULL && !says(ctx, g, c->because)) fail_msg("%s: no line '%s'", c->what, c->because);
    smg_graph_destroy(g);
}

static void one_kernel(void **state) {
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) check(*state, &cases[i], 1);
}

static void two_kernels(void **state) {
    for (size_t i = 0; i < SMG_COUNT_OF(ended); i++) check(*state, &ended[i], 2);
}

static int setup(void **state) {
    smg_context *ctx;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return -1;
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_kernel), cmocka_unit_test(two_kernels)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
