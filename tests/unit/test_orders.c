/* In which order a weight is stored, by price: of one product for some rows, and for the rows of all run lists. And what
 * price a slice has that some of the lanes do not fetch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "plan/plan_internal.h"
#include "support/check_plan.h"

typedef struct orders {
    int across, along;
    double seconds; /* of the run list for the sizes given */
} orders;

/* The product of so many rows by 768 with a weight of 768 by 2304, for the built-in target in f16. */
static const char product[] = "graph product\ndim rows max 65536\nx = input f32[rows, 768]\n"
                              "w = constant f32[2304, 768] random seed=1\ny = contract(x, w) \"ri,oi->ro\"\n"
                              "output y = y\n";

static int applied(const smg_compilation *c, const char *rule) {
    for (int i = 0; i < c->report.rules.count; i++)
        if (strcmp(c->report.rules.items[i].rule, rule) == 0) return c->report.rules.items[i].applied;
    fail_msg("no rule '%s'", rule);
    return -1;
}

static orders orders_of(const char *named, const char *text, int64_t rows, smg_type precision) {
    smg_context *ctx;
    smg_graph *g;
    smg_target target;
    smg_compilation *c;
    const smg_dim dims[] = {{"rows", rows}};
    const smg_compile_options options = {.precision = precision, .dims = dims, .dim_count = 1, .tuning = ""};
    orders o = {0};
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(check_target(ctx, named, &target), SMG_OK);
    if (smg_graph_parse(ctx, text, strlen(text), "text", &g) != SMG_OK ||
        smg_compile_plan(ctx, g, &target, &options, &c) != SMG_OK)
        fail_msg("%s", smg_context_error(ctx));
    o.across = applied(c, "weight stored along the result's axis");
    o.along = applied(c, "weight stored along the contracted axis");
    for (int i = 0; i < c->plan->steps.count; i++) o.seconds += c->plan->steps.items[i].price.seconds;
    smg_compilation_destroy(c);
    smg_graph_destroy(g);
    smg_context_destroy(ctx);
    return o;
}

static void rows_decide(void **state) {
    (void)state;
    const orders few = orders_of("h200", product, 128, SMG_TYPE_F16),
                 many = orders_of("h200", product, 16384, SMG_TYPE_F16);
    const orders wide = orders_of("h200", product, 4096, SMG_TYPE_F32);
    assert_true(few.along == 1 && few.across == 0);
    assert_true(many.along == 1 && many.across == 0);
    assert_true(wide.along == 0 && wide.across == 1); /* no matrix has such factors */
}

/* Tables that are gathered from and multiplied with, 72 MB and others: copies stand beside their originals. */
#define TABLES(others)                                                                                                 \
    "graph tables\ndim rows max 4096\ni = input i32[rows]\nt = constant f32[70000, 256] random seed=1\n"               \
    "v = constant f32[" others ", 256] random seed=2\nx = gather(t, i)\nu = gather(v, i)\na = add(x, u)\n"             \
    "y = contract(a, t) \"ri,oi->ro\"\noutput y = y\n"

/* A CPU's product is ten times as slow without: a third of all constants may stand twice. */
static void a_share_stands_twice(void **state) {
    (void)state;
    assert_int_equal(orders_of("lavapipe", TABLES("150000"), 8, SMG_TYPE_F32).across, 1);
    assert_int_equal(orders_of("lavapipe", TABLES("100000"), 8, SMG_TYPE_F32).across, 0);
    assert_int_equal(orders_of("h200", TABLES("150000"), 8, SMG_TYPE_F32).across, 0);
}

typedef struct weight_case {
    const char *head, *shape, *tail; /* in front of the weight w, behind it */
} weight_case;

static const weight_case weight_cases[] = {
    /* parts of one weight, along what is contracted */
    {"graph joined\ndim rows max 4096\nx = input f32[rows, 768]\n", "[768, 1536]",
     "v = slice(w) axis=1 begin=0 : f32[768, 768]\nu = slice(w) axis=1 begin=768 : f32[768, 768]\n"
     "y = contract(x, v) \"ri,io->ro\"\nz = contract(x, u) \"ri,io->ro\"\noutput y = y\noutput z = z\n"},
    /* a sum that workgroups share out */
    {"graph long\ndim rows max 4096\nx = input f32[rows, 3072]\n", "[768, 3072]",
     "y = contract(x, w) \"ri,oi->ro\"\noutput y = y\n"},
};

/* What type a file stores its weights in decides neither their order nor the plan in f16. */
static void files_of_all_types_are_planned_alike(void **state) {
    (void)state;
    static const char *const narrow[] = {"f16", "bf16"};
    for (size_t i = 0; i < SMG_COUNT_OF(weight_cases); i++) {
        const weight_case *c = &weight_cases[i];
        char text[1024];
        (void)snprintf(text, sizeof text, "%sw = constant f32%s random seed=1\n%s", c->head, c->shape, c->tail);
        const orders wide = orders_of("h200", text, 512, SMG_TYPE_F16);
        assert_true(wide.along > 0);
        for (size_t t = 0; t < SMG_COUNT_OF(narrow); t++) {
            (void)snprintf(text, sizeof text, "%sc = constant %s%s random seed=1\nw = cast(c) : f32%s\n%s", c->head,
                           narrow[t], c->shape, c->shape, c->tail);
            const orders o = orders_of("h200", text, 512, SMG_TYPE_F16);
            assert_int_equal(o.along, wide.along);
            assert_true(o.seconds >= wide.seconds && o.seconds <= wide.seconds);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_decide),
        cmocka_unit_test(a_share_stands_twice),
        cmocka_unit_test(files_of_all_types_are_planned_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
