/* What a cut of one line of operations leaves out: kernels that are no neighbours in it, values that several compute
 * anew or not. Each graph is planned by its line alone and with moves, which have to be cheaper by as much as the case
 * says, and its kernels' results are compared with the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/check_plan.h"

#define TOLERANCE 2e-5

typedef struct move_case {
    const char *what, *text, *taken; /* a part of the line that explain has; NULL: nothing is taken */
    smg_objective objective;
    int64_t nominal; /* value of the symbol that prices are for */
    double saved;    /* share of the line's time, or of its kernels, at least */
} move_case;

#define X "dim s max 4096\nx = input f32[s, 256]\n"
#define TIME SMG_OBJECTIVE_TIME
#define COUNT SMG_OBJECTIVE_DISPATCHES

/* Each branch has a column's maximum between its halves, which no kernel crosses. */
#define BRANCHES                                                                                                       \
    "graph branches\n" X "wa = constant f32[256, 16] random seed=1 scale=0.2\n"                                        \
    "wb = constant f32[256, 16] random seed=2 scale=0.2\nva = constant f32[16, 2048] random seed=3 scale=0.2\n"        \
    "vb = constant f32[16, 2048] random seed=4 scale=0.2\na1 = contract(x, wa) \"si,io->so\"\n"                        \
    "ma = reduce_max(a1) axis=0 keep\na2 = sub(a1, ma)\na3 = contract(a2, va) \"si,io->so\"\n"                         \
    "b1 = contract(x, wb) \"si,io->so\"\nb2 = relu(b1)\nmb = reduce_max(b2) axis=0 keep\nb3 = sub(b2, mb)\n"           \
    "b4 = contract(b3, vb) \"si,io->so\"\noutput a = a3\noutput b = b4\n"
#define ROWS                                                                                                           \
    "graph rows\ndim s max 4096\nx = input f32[s, 4096]\ny = input f32[s, 64]\n"                                       \
    "w = constant f32[64, 1024] random seed=1 scale=0.2\na1 = reduce_max(x) axis=1 keep\n"                             \
    "p = contract(y, w) \"si,io->so\"\na2 = add(p, a1)\na3 = reduce_max(a2) axis=0 keep\na4 = sub(a2, a3)\n"           \
    "b1 = sum(x) axis=1 keep\nb2 = add(b1, a4)\nb3 = sum(b2) axis=0 keep\nb4 = mul(b2, b3)\noutput a = a4\n"           \
    "output b = b4\n"

static const move_case cases[] = {
    {"two reductions of one input, far apart", ROWS, "1 + 1 operations, from a1 and b1 on", TIME, 4096, 0.2},
    {"branches of one input", BRANCHES, "1 + 1 operations, from b3 and b4 on", TIME, 1024, 0.03},
    {"products of one input on different levels",
     "graph levels\ndim s max 4096\nx = input f32[s, 4096]\ny = input f32[8, 16]\n"
     "wa = constant f32[4096, 16] random seed=1 scale=0.05\nu = constant f32[4096, 8] random seed=2 scale=0.2\n"
     "a1 = contract(x, wa) \"si,io->so\"\nma = reduce_max(a1) axis=0 keep\na2 = sub(a1, ma)\n"
     "w = contract(u, y) \"ik,ko->io\"\nb = contract(x, w) \"si,io->so\"\noutput a = a2\noutput b = b\n",
     "1 + 1 operations, from", TIME, 1024, 0.05},
    {"heads in groups, each with maps of its own",
     "graph heads\ndim s max 4096\nx = input f32[s, 512]\nwq = constant f32[512, 512] random seed=1 scale=0.05\n"
     "wk = constant f32[512, 64] random seed=2 scale=0.05\nwv = constant f32[512, 64] random seed=3 scale=0.05\n"
     "q = contract(x, wq) \"si,io->so\"\nk = contract(x, wk) \"si,io->so\"\nv = contract(x, wv) \"si,io->so\"\n"
     "qh = reshape(q) : f32[s, 8, 64]\nkh = reshape(k) : f32[s, 1, 64]\nvh = reshape(v) : f32[s, 1, 64]\n"
     "qq = square(qh)\nqs = sum(qq) axis=2 keep\nqe = rsqrt(qs)\nqn = mul(qh, qe)\nkq = square(kh)\n"
     "ks = sum(kq) axis=2 keep\nke = rsqrt(ks)\nkn = mul(kh, ke)\nkc = reduce_max(kn) axis=0 keep\nkd = sub(kn, kc)\n"
     "output q = qn\noutput k = kd\noutput v = vh\n",
     "1 + 4 operations, from q and qq on", TIME, 1024, 0.05},
    {"a value that is an output, and read behind another kernel",
     "graph value\n" X "g = input f32[s, 8]\nwg = constant f32[8, 256] random seed=5 scale=0.2\n"
     "w = constant f32[256, 64] random seed=1 scale=0.05\nm = reduce_max(x) axis=1 keep\nd = sub(x, m)\ne = exp(d)\n"
     "t = sum(e) axis=1 keep\nh = div(e, t)\ny = contract(h, w) \"si,io->so\"\nn = reduce_max(y) axis=0 keep\n"
     "z = sub(y, n)\ngw = contract(g, wg) \"si,io->so\"\ngn = reduce_max(gw) axis=0 keep\nq = mul(h, gn)\n"
     "output h = h\noutput z = z\noutput q = q\n",
     "5 + 1 operations, from m and q on", TIME, 1024, 0.05},
    {"the same in fewest kernels", BRANCHES, NULL, COUNT, 1024, 0},
    {"what a kernel makes and two others read",
     "graph anew\ndim s max 4096\nx = input f32[s, 64]\nw = constant f32[64, 512] random seed=1 scale=0.05\n"
     "v = constant f32[512, 512] random seed=2 scale=0.05\ny = contract(x, w) \"si,io->so\"\n"
     "m = reduce_max(y) axis=0 keep\nd = sub(y, m)\na = contract(d, v) \"si,io->so\"\ng = reduce_max(a) axis=0 keep\n"
     "e = contract(d, x) \"si,sk->ik\"\noutput g = g\noutput e = e\n",
     "d computed anew by 2 kernels", TIME, 1024, 0.02},
    {"what products of many columns compute anew",
     "graph given\ndim s max 256\nx = input f32[s, 128]\nw = constant f32[128, 4096] random seed=1 scale=0.05\n"
     "u = constant f32[128, 2048] random seed=2 scale=0.05\nc = tanh(x)\ng = exp(c)\nf = tanh(g)\n"
     "a = contract(f, w) \"si,io->so\"\nam = reduce_max(a) axis=0 keep\nb = contract(f, u) \"si,io->so\"\n"
     "bm = sum(b) axis=0 keep\nbs = sub(b, bm)\noutput bs = bs\noutput am = am\n",
     "f as a kernel, not computed anew by 2", TIME, 256, 0.2},
    {"a chain with a residual, where nothing is to be had",
     "graph chain\n" X "w = constant f32[256, 256] random seed=1 scale=0.05\nv = constant f32[256, 256] random seed=2 "
     "scale=0.05\na = contract(x, w) \"si,io->so\"\nm = reduce_max(a) axis=0 keep\nb = sub(a, m)\n"
     "c = contract(b, v) \"si,io->so\"\nn = reduce_max(c) axis=0 keep\nd = sub(c, n)\ne = add(d, a)\noutput e = e\n",
     NULL, TIME, 1024, 0},
};

typedef struct heard {
    int bounded; /* log lines that say so */
} heard;

static void hear(void *user, smg_log_level level, const char *line) {
    heard *h = user;
    (void)level;
    h->bounded += strstr(line, "beside the line") != NULL;
}

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_target target;
    heard heard;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    const smg_context_desc desc = {.log = hear, .user = &f.heard};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(check_target(f.ctx, "h200", &f.target), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_graph *parse(fixture *f, const move_case *c) {
    smg_graph *g;
    if (smg_graph_parse(f->ctx, c->text, strlen(c->text), c->what, &g) != SMG_OK)
        fail_msg("%s: %s", c->what, smg_context_error(f->ctx));
    return g;
}

static smg_plan_options options_of(const move_case *c, int moves) {
    return (smg_plan_options){.objective = c->objective, .nominal = &c->nominal, .moves = moves};
}

static const smg_plan *plan(fixture *f, const smg_graph *g, const smg_plan_options *options) {
    smg_plan *made;
    if (smg_plan_make(g, &f->target, options, f->arena, &made) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return made;
}

static double seconds_of(const smg_plan *p) {
    double seconds = 0;
    for (int i = 0; i < p->steps.count; i++) seconds += p->steps.items[i].price.seconds;
    return seconds;
}

static bool has_taken(const smg_plan *p, const char *what) {
    for (int i = 0; i < p->moves.taken.count; i++)
        if (strstr(p->moves.taken.items[i].what, what) != NULL) return true;
    return false;
}

static void check_results(fixture *f, const smg_graph *g, const move_case *c, int moves) {
    const int64_t rows[] = {13};
    check_result r;
    const check_options o = {.target = "h200", .symbols = rows, .tolerance = TOLERANCE, .plan = options_of(c, moves)};
    smg_status status = check_plan(f->ctx, g, &o, &r);
    if (status != SMG_OK || !r.pass)
        fail_msg("%s: %s, error %g", c->what, status != SMG_OK ? smg_context_error(f->ctx) : "differs", r.max_error);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void test_moves_pay(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        const move_case *c = &cases[i];
        const smg_plan_options line = options_of(c, -1), moved = options_of(c, 0);
        smg_graph *g = parse(f, c);
        const smg_plan *before = plan(f, g, &line), *after = plan(f, g, &moved);
        double least = seconds_of(before), found = seconds_of(after);
        printf("%s: %d kernels, %.2f us; by the line %d, %.2f us; %d segments\n", c->what, after->steps.count,
               found * 1e6, before->steps.count, least * 1e6, after->moves.segments);
        assert_false(before->moves.searched);
        assert_int_equal(before->moves.taken.count, 0);
        if (c->taken != NULL && !has_taken(after, c->taken)) fail_msg("%s: '%s' is not taken", c->what, c->taken);
        if (c->taken == NULL && c->objective == SMG_OBJECTIVE_TIME) assert_int_equal(after->moves.taken.count, 0);
        assert_true(after->steps.count <= before->steps.count || c->objective == SMG_OBJECTIVE_TIME);
        assert_true(c->objective != SMG_OBJECTIVE_TIME || found <= (1 - c->saved) * least);
        check_results(f, g, c, 0);
        smg_graph_destroy(g);
    }
}

/* The same plan each time, whatever was planned before. */
static void test_deterministic(void **state) {
    fixture *f = *state;
    smg_text text[2];
    smg_graph *g = parse(f, &cases[1]);
    const smg_plan_options options = options_of(&cases[1], 0);
    for (int i = 0; i < 2; i++) {
        smg_text_init(&text[i], f->ctx);
        smg_plan_print(plan(f, g, &options), &text[i]);
    }
    assert_string_equal(smg_text_cstr(&text[0]), smg_text_cstr(&text[1]));
    smg_text_free(&text[0]);
    smg_text_free(&text[1]);
    smg_graph_destroy(g);
}

/* With a price for so many segments only: what has none is counted, and a log line says it. */
static void test_bounded(void **state) {
    fixture *f = *state;
    for (int most = 1; most <= 16; most += 5) {
        for (size_t i = 0; i < 3; i++) {
            smg_graph *g = parse(f, &cases[i]);
            const smg_plan_options line = options_of(&cases[i], -1), few = options_of(&cases[i], most);
            f->heard.bounded = 0;
            const smg_plan *before = plan(f, g, &line), *after = plan(f, g, &few);
            int left = after->moves.left + after->moves.uncut;
            assert_true(most > 1 || left > 0);
            assert_int_equal(f->heard.bounded, left > 0);
            assert_true(seconds_of(after) <= seconds_of(before));
            check_results(f, g, &cases[i], most);
            smg_graph_destroy(g);
        }
    }
}

/* What saves less than is asked for is not taken; nor anything where memory is the objective. */
static void test_limits(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, &cases[0]);
    smg_plan_options options = options_of(&cases[0], 0);
    options.min_gain = 0.9;
    assert_int_equal(plan(f, g, &options)->moves.taken.count, 0);
    options = (smg_plan_options){.objective = SMG_OBJECTIVE_MEMORY, .nominal = &cases[0].nominal};
    assert_false(plan(f, g, &options)->moves.searched);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_pay),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
