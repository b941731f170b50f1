/* Equal bodies one behind the other as one kernel: which nodes of a graph are such a repetition; every schedule of one on
 * several targets, in the interpreter and its per-lane mode, against the reference; and the constants of the bodies one
 * behind the other in the memory of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "lower/lower.h"
#include "precision/precision.h"
#include "support/check_plan.h"

enum {
    BODIES = 8 /* more products than a kernel has that are written out */,
    EACH = 31 /* one schedule in so many is run */,
    ON_ALL_TARGETS = 2 /* cases; others on the first */,
    TEXT = 8192
};

/* Lines in front of the bodies, of each body, and behind them: # is the body's number, ^ the next one's. */
typedef struct stack_case {
    const char *what, *head, *body, *foot;
    int bodies; /* that are repeated; 0: none */
} stack_case;

#define INPUT "graph stack\ndim rows max 4096\nx0 = input f32[rows, 24]\n"
#define WEIGHT "w# = constant f32[24, 24] random seed=# scale=0.4\n"
#define BIAS "b# = constant f32[24] random seed=1# scale=0.1\n"
#define LAYER WEIGHT "p# = contract(x#, w#) \"ri,io->ro\"\n"

static const stack_case cases[] = {
    {"layers", INPUT, LAYER "x^ = relu(p#)\n", "", BODIES},
    {"biases", INPUT, LAYER BIAS "q# = add(p#, b#)\nx^ = relu(q#)\n", "", BODIES},
    {"residuals", INPUT, LAYER BIAS "q# = add(p#, b#)\nr# = relu(q#)\nx^ = add(x#, r#)\n", "", BODIES},
    {"weights along k", INPUT,
     "w# = constant f32[24, 24] random seed=# scale=0.4\n"
     "p# = contract(x#, w#) \"ri,oi->ro\"\nx^ = relu(p#)\n",
     "", BODIES},
    {"one weight for all", INPUT "w = constant f32[24, 24] random seed=1 scale=0.4\n",
     "p# = contract(x#, w) \"ri,io->ro\"\nx^ = relu(p#)\n", "", BODIES},
    {"a value that is the same for all", INPUT "h = input f32[rows, 24]\n", LAYER "q# = add(p#, h)\nx^ = relu(q#)\n",
     "", BODIES},
    {"two products a body", INPUT,
     LAYER "g# = constant f32[24, 24] random seed=3# scale=0.4\nu# = contract(x#, g#) \"ri,io->ro\"\n"
           "a# = tanh(p#)\nx^ = mul(a#, u#)\n",
     "", BODIES},
    {"what the first body leaves is an output", INPUT, LAYER "x^ = relu(p#)\n", "output inner = x1\n", BODIES - 1},
    {"what is inside of a body is an output", INPUT, LAYER "x^ = relu(p#)\n", "output inner = p6\n", 0},
    {"weights that two bodies read", INPUT "w0 = constant f32[24, 24] random seed=9 scale=0.4\n",
     "w^ = constant f32[24, 24] random seed=# scale=0.4\np# = contract(x#, w#) \"ri,io->ro\"\n"
     "u# = contract(x#, w^) \"ri,io->ro\"\nx^ = mul(p#, u#)\n",
     "", 0},
};

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_precision_plan precision;
} fixture;

static void make_graph(fixture *f, const stack_case *c, smg_type type) {
    char text[TEXT];
    int at = snprintf(text, sizeof text, "%s", c->head);
    for (int b = 0; b < BODIES; b++)
        for (const char *from = c->body; *from != '\0'; from++) {
            bool number = *from == '#' || *from == '^';
            at += number ? snprintf(text + at, sizeof text - (size_t)at, "%d", b + (*from == '^'))
                         : snprintf(text + at, sizeof text - (size_t)at, "%c", *from);
        }
    at += snprintf(text + at, sizeof text - (size_t)at, "%soutput y = x%d\n", c->foot, BODIES);
    if (smg_graph_parse(f->ctx, text, (size_t)at, c->what, &f->g) != SMG_OK)
        fail_msg("%s: %s", c->what, smg_context_error(f->ctx));
    if (type == SMG_TYPE_F32) return;
    assert_int_equal(smg_precision_make(f->g, type, NULL, f->arena, &f->precision), SMG_OK);
}

/* The step that repeats; NULL. */
static const smg_pstep *plan_as(fixture *f, const char *target_name, smg_target *target,
                                const smg_plan_options *options) {
    smg_plan *plan;
    const smg_pstep *found = NULL;
    assert_int_equal(check_target(f->ctx, target_name, target), SMG_OK);
    if (smg_plan_make(f->g, target, options, f->arena, &plan) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (int i = 0; i < plan->steps.count; i++)
        if (plan->steps.items[i].space->repeat.count > 0) found = &plan->steps.items[i];
    return found;
}

static const smg_pstep *plan(fixture *f, const char *target_name, smg_target *target) {
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .lowered = 1};
    return plan_as(f, target_name, target, &options);
}

static void begin(fixture *f, const stack_case *c, smg_type type) {
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    make_graph(f, c, type);
}

static void end(fixture *f) {
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
}

static void test_which_are_repeated(void **state) {
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        fixture f = {.ctx = *state};
        smg_target target;
        begin(&f, &cases[i], SMG_TYPE_F32);
        const smg_pstep *step = plan(&f, "h200", &target);
        int bodies = step != NULL ? step->space->repeat.count : 0;
        if (bodies != cases[i].bodies) fail_msg("%s: %d bodies, not %d", cases[i].what, bodies, cases[i].bodies);
        end(&f);
    }
}

/* A further run list of a bundle has the stacks that the first one made. */
static void test_stacks_that_are_given(void **state) {
    fixture f = {.ctx = *state};
    smg_target target;
    smg_node_id each[BODIES];
    begin(&f, &cases[0], SMG_TYPE_F32);
    const smg_sstack *made = &plan(&f, "h200", &target)->space->repeat.stack[0];
    memcpy(each, made->each, sizeof each);
    smg_stack given = {.each = each, .count = BODIES, .stride = made->stride};
    smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .stacks = &given, .stack_count = 1};
    assert_non_null(plan_as(&f, "h200", &target, &options));
    each[1] = each[2];
    assert_null(plan_as(&f, "h200", &target, &options));
    options.stack_count = 0;
    assert_null(plan_as(&f, "h200", &target, &options));
    end(&f);
}

static void test_limits(void **state) {
    fixture f = {.ctx = *state};
    smg_target target;
    begin(&f, &cases[0], SMG_TYPE_F32);
    smg_plan_options options = {.objective = SMG_OBJECTIVE_DISPATCHES, .max_nodes = 2 * BODIES};
    assert_non_null(plan_as(&f, "h200", &target, &options));
    options.max_nodes--;
    assert_null(plan_as(&f, "h200", &target, &options));
    options = (smg_plan_options){.objective = SMG_OBJECTIVE_DISPATCHES, .min_gain = 0.999};
    assert_null(plan_as(&f, "h200", &target, &options));
    end(&f);
}

/* ---- every schedule ------------------------------------------------------------------------------------- */

typedef struct tally {
    int lowered, matrices, run;
} tally;

static void expect_text(const fixture *f, const smg_kernel *k) {
    smg_text text, again;
    smg_kernel *read;
    smg_text_init(&text, f->ctx);
    smg_text_init(&again, f->ctx);
    smg_kernel_print(k, &text);
    if (smg_kernel_parse(f->arena, k->sizes, smg_text_cstr(&text), &read) != SMG_OK)
        fail_msg("%s\n%s", smg_context_error(f->ctx), smg_text_cstr(&text));
    smg_kernel_print(read, &again);
    assert_string_equal(smg_text_cstr(&text), smg_text_cstr(&again));
    smg_text_free(&text);
    smg_text_free(&again);
}

static void try_schedules(const fixture *f, const smg_pstep *step, const smg_target *target, const check_options *o,
                          int one_in, tally *t) {
    smg_schedules schedules;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    for (int i = 0; i < SMG_SPACE_AXES; i++) nominal[i] = 64;
    assert_int_equal(smg_sched_candidates(step->space, target, nominal, (smg_sched_room){0}, f->arena, &schedules),
                     SMG_OK);
    assert_int_equal(check_arrays_make(f->g, o, f->arena, &a), SMG_OK);
    for (int i = 0; i < schedules.items.count; i += one_in) {
        const smg_schedule *s = &schedules.items.items[i];
        const smg_lower_options options = {.name = "every", .target = target, .verify = true};
        const char *refused;
        smg_kernel *k;
        if (smg_kernel_lower(s, &options, f->arena, &k, &refused) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        if (k == NULL) continue;
        t->lowered++;
        t->matrices += k->matrix.rows > 0;
        if (t->run++ == 0) expect_text(f, k);
        check_kernel_is_right(f->g, s, k, o, true, &a);
    }
}

static void test_schedules(void **state) {
    static const char *const targets[] = {"h200", "lavapipe", "navi31", "tests/targets/subgroup4.target"};
    static const int64_t rows[] = {21};
    int matrices = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        tally t = {0};
        size_t count = i < ON_ALL_TARGETS ? SMG_COUNT_OF(targets) : 1;
        for (size_t k = 0; k < 2 * count && cases[i].bodies == BODIES; k++) {
            fixture f = {.ctx = *state};
            smg_target target;
            bool half = k % 2 == 1;
            check_options o = {.target = targets[k / 2], .symbols = rows, .tolerance = half ? 1e-2 : 1e-4};
            begin(&f, &cases[i], half ? SMG_TYPE_F16 : SMG_TYPE_F32);
            const smg_pstep *step = plan(&f, o.target, &target);
            if (step == NULL) fail_msg("%s on %s: no repetition", cases[i].what, o.target);
            if (step->space->repeat.count == BODIES) /* else other kernels are in front of it */
                try_schedules(&f, step, &target, &o, CHECK_ONE_IN * EACH, &t);
            end(&f);
        }
        if (cases[i].bodies != BODIES) continue;
        printf("%s: %d programs, %d of them by matrices\n", cases[i].what, t.lowered, t.matrices);
        assert_true(t.lowered * CHECK_ONE_IN >= 3);
        matrices += t.matrices;
    }
    assert_true(matrices * CHECK_ONE_IN >= 24);
}

/* ---- slices of a shared tile ------------------------------------------------------------------------------ */

/* y = a b, of a that is left in shared memory and read in slices. */
static const char sliced[] = "kernel sliced\n"
                             "lanes 8 subgroup 8\n"
                             "axis i = 4 tile 4\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 8 tile 4\n"
                             "axis n = 4 tile 4\n"
                             "buffer a f32 [32] value 0\n"
                             "buffer b f32 [80] values 1 4 every 48\n"
                             "buffer y f32 [16] value 2 written\n"
                             "tile s float register [i, j]\n"
                             "tile c float register [i, n]\n"
                             "tile all float shared [i, j] pad 4\n"
                             "tile part float shared [i, k] slice along k of all along j\n"
                             "tile sb float shared [k, n] pad 4\n"
                             "access 0 = a at [0] i*[8] j*[1]\n"
                             "access 1 = b at [0] k*[4] n*[1]\n"
                             "access 2 = y at [0] i*[4] n*[1]\n"
                             "code\n"
                             "  set s = load(0)\n"
                             "  set c = 0\n"
                             "  spill all = s\n"
                             "  barrier\n"
                             "  loop k\n"
                             "    stage sb walk [k, n] = load(1)\n"
                             "    barrier subgroup\n"
                             "    mma c += part * sb over [k]\n"
                             "    barrier subgroup\n"
                             "  end\n"
                             "  store 2 over [i, n] = c\n";

/* The text with one place changed, and the sentence that refuses it; "": it stays right. */
static const struct {
    const char *from, *to, *sentence;
} changes[] = {
    {"  barrier\n", "", ""},
    {"axis k = 8 tile 4", "axis k = 8 tile 3",
     "'all' has 8 elements along axis 'j', of which slices along 'k' ask for 9"},
    {"[i, k] slice", "[k, i] slice", "differ in more than one axis"},
    {"tile all float shared [i, j] pad 4", "tile all f16 shared [i, j] pad 4", "differ in more than one axis"},
    {"along j\n", "along n\n", "differ in more than one axis"},
    {"spill all = s", "spill part = s", "the result 'part' is a slice, which products read and nothing writes"},
    {"  spill all = s\n", "", "tile 'all' is read before it is written"},
    {"  barrier\n  loop k\n    stage sb walk [k, n] = load(1)\n    barrier subgroup\n",
     "  loop k\n    stage sb walk [k, n] = load(1)\n", "without a subgroup barrier"},
    {"loop k", "loop j", "and no loop over it is open"},
};

static void test_slices(void **state) {
    smg_context *ctx = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(changes); i++) {
        char text[sizeof sliced + 64];
        smg_arena *arena;
        smg_sizes *sizes;
        smg_kernel *k;
        const char *at = strstr(sliced, changes[i].from);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sliced), sliced, changes[i].to,
                       at + strlen(changes[i].from));
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(smg_sizes_create(arena, &sizes), SMG_OK);
        if (smg_kernel_parse(arena, sizes, text, &k) != SMG_OK) fail_msg("%zu: %s", i, smg_context_error(ctx));
        bool right = smg_kernel_verify(ctx, k) == SMG_OK;
        if (right != (changes[i].sentence[0] == '\0') ||
            (!right && strstr(smg_context_error(ctx), changes[i].sentence) == NULL))
            fail_msg("%zu: %s", i, right ? "it is accepted" : smg_context_error(ctx));
        smg_context_clear_error(ctx);
        smg_arena_destroy(arena);
    }
}

static int open_context(void **state) {
    return smg_context_create(NULL, (smg_context **)state) == SMG_OK ? 0 : -1;
}

static int close_context(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which_are_repeated),
                                       cmocka_unit_test(test_stacks_that_are_given), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_slices), cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
