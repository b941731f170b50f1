/* The precision plan: which values are narrowed, which are not and why; what it makes of buffers, kernels and bundles;
 * results in the interpreter; requests that are refused. No device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "compile/compile.h"
#include "support/check_plan.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_precision_plan plan;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void read_graph(fixture *f, const char *text) {
    smg_graph_destroy(f->g);
    f->g = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &f->g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void plan(fixture *f, const char *text, smg_type type) {
    read_graph(f, text);
    assert_int_equal(smg_precision_make(f->g, type, NULL, f->arena, &f->plan), SMG_OK);
}

static smg_node_id find(const fixture *f, const char *name) {
    for (smg_node_id id = 0; id < f->g->nodes.count; id++)
        if (strcmp(smg_graph_node(f->g, id)->name, name) == 0) return id;
    fail_msg("no node '%s'", name);
    return -1;
}

/* why: part of the sentence; NULL: it is narrowed. */
static void expect(const fixture *f, const char *name, const char *why) {
    smg_node_id id = find(f, name);
    const char *told = f->plan.why[id];
    smg_type type = smg_graph_storage(f->g, id);
    if (why == NULL && (told != NULL || type != f->plan.asked)) fail_msg("%s stays f32: %s", name, told ? told : "");
    if (why != NULL && (told == NULL || type != SMG_TYPE_F32)) fail_msg("%s is narrowed", name);
    if (why != NULL && strstr(told, why) == NULL) fail_msg("%s: \"%s\", wanted \"%s\"", name, told, why);
}

static void nothing_is_planned_for_f32(void **state) {
    fixture *f = *state;
    plan(f, "graph g\nx = input f32[4]\ny = exp(x)\noutput y = y\n", SMG_TYPE_F32);
    assert_null(f->g->storage);
    assert_int_equal(smg_graph_storage(f->g, 0), SMG_TYPE_F32);
}

/* A mask stays in what it is added to, until an exponential takes it out. */
static void masks(void **state) {
    fixture *f = *state;
    static const char text[] = "graph g\ndim b\n"
                               "x = input f32[b, 8]\nm = input bool[b, 8]\n"
                               "low = fill %s : f32[]\nzero = fill 0 : f32[]\n"
                               "mask = select(m, zero, low)\n"
                               "masked = add(x, mask)\n"
                               "max = reduce_max(masked) axis=1 keep\n"
                               "moved = sub(masked, max)\n"
                               "e = exp(moved)\n"
                               "t = sum(e) axis=1 keep\n"
                               "p = div(e, t)\n"
                               "output p = p\n";
    char made[1024];
    snprintf(made, sizeof(made), text, "-3.4e38");
    plan(f, made, SMG_TYPE_F16);
    expect(f, "x", NULL);
    expect(f, "mask", "3.4e+38");
    expect(f, "masked", "3.4e+38 comes into it");
    expect(f, "moved", "comes into it");
    expect(f, "max", "comes into it");
    expect(f, "e", NULL);
    expect(f, "t", "statistic");
    expect(f, "p", NULL);
    plan(f, made, SMG_TYPE_BF16); /* rounds to infinity there too */
    expect(f, "masked", "comes into it");
    snprintf(made, sizeof(made), text, "-10000");
    plan(f, made, SMG_TYPE_F16);
    expect(f, "masked", NULL);
    expect(f, "moved", NULL);
    snprintf(made, sizeof(made), text, "-1e30");
    plan(f, made, SMG_TYPE_BF16);
    expect(f, "masked", NULL);
    snprintf(made, sizeof(made), text, "-inf");
    plan(f, made, SMG_TYPE_F16);
    expect(f, "masked", NULL);
}

/* As exporters write 16-bit models: bounds that are lower where a value has overflowed. How many have is a count of
 * truths, which takes no exact values; and the bounds are numbers, not masks. */
static void bounds_of_what_overflows(void **state) {
    fixture *f = *state;
    plan(f,
         "graph g\ndim b\nids = input i32[b, 8]\ntable = constant f32[50, 64] random seed=1\n"
         "w = constant f32[64, 64] random seed=2 scale=0.1\nx = gather(table, ids)\n"
         "p = contract(x, w) \"bsi,io->bso\"\nh = add(p, x)\nsize = abs(h)\nend = fill inf : f32[]\n"
         "beyond = eq(size, end)\none = cast(beyond) : i32[b, 8, 64]\nflat = reshape(one) : i32[512*b]\n"
         "count = sum(flat) axis=0 keep\nzero = fill 0 : i32[]\nany = lt(zero, count)\n"
         "less = fill 64504 : f32[]\nmost = fill 65504 : f32[]\nhigh = select(any, less, most)\nlow = neg(high)\n"
         "raised = max(h, low)\nkept = min(raised, high)\nsquares = square(kept)\n"
         "total = sum(squares) axis=2 keep\nshare = fill 0.015625 : f32[]\nmean = mul(total, share)\n"
         "r = rsqrt(mean)\nn = mul(kept, r)\nv = constant f32[64, 64] random seed=3 scale=0.1\n"
         "y = contract(n, v) \"bsi,io->bso\"\noutput y = y\n",
         SMG_TYPE_F16);
    static const char *const narrow[] = {"table", "w", "x", "p", "h", "kept", "n", "v", "y"};
    for (size_t i = 0; i < SMG_COUNT_OF(narrow); i++) expect(f, narrow[i], NULL);
}

static void constants(void **state) {
    fixture *f = *state;
    static const char text[] = "graph g\nx = input f32[4]\n"
                               "fits = constant f32[4] data=[0.5, -65519, 0, inf]\n"
                               "large = constant f32[4] data=[1, 65520, 0, 2.5]\n"
                               "small = constant f32[4] data=[1e-6, 2e-6, 0, 3e-6]\n"
                               "table = constant f32[4] data=[1, 2, 3, 4097]\n"
                               "a = mul(x, fits)\nb = mul(x, large)\nc = mul(x, small)\nd = mul(x, table)\n"
                               "s = add(a, b)\nt = add(c, d)\nu = add(s, t)\n"
                               "w = tanh(b)\n"
                               "output u = u\noutput w = w\n";
    plan(f, text, SMG_TYPE_F16);
    expect(f, "fits", NULL);
    expect(f, "large", "largest element is 65520");
    expect(f, "small", "largest element is 3e-06");
    expect(f, "table", "counts up to 4097, and f16 counts to 2048");
    expect(f, "a", NULL);
    expect(f, "b", "65520 comes into it, and f16 ends at 65520");
    expect(f, "c", NULL);
    expect(f, "d", NULL);
    expect(f, "u", "comes into it");
    expect(f, "w", NULL);
    plan(f, text, SMG_TYPE_BF16);
    expect(f, "large", NULL);
    expect(f, "small", NULL);
    expect(f, "b", NULL);
    expect(f, "table", "bf16 counts to 256");
}

/* What indices make is exact, and an angle is read by what hangs on its last bits. */
static void positions(void **state) {
    fixture *f = *state;
    plan(f,
         "graph g\ndim s max 4096\nx = input f32[s, 8]\nfreq = constant f32[8] random seed=1\n"
         "i = iota axis=0 : i32[s, 1]\nat = cast(i) : f32[s, 1]\n"
         "angle = mul(at, freq)\nturn = cos(angle)\ny = mul(x, turn)\n"
         "third = fill 0.333 : f32[]\npart = mul(at, third)\nbound = sin(part)\n"
         "k = iota axis=0 : i32[8]\nfew = cast(k) : f32[8]\nz = add(y, few)\nr = add(z, part)\nq = add(r, bound)\n"
         "floored = floor(z)\noutput q = q\noutput fl = floored\n",
         SMG_TYPE_F16);
    expect(f, "at", "counts up to 4096");
    expect(f, "angle", "cos needs it exactly");
    expect(f, "turn", NULL);
    expect(f, "y", NULL);
    expect(f, "part", "positions alone");
    expect(f, "bound", NULL);
    expect(f, "few", NULL);
    expect(f, "z", "floor needs it exactly");
    expect(f, "q", NULL);
}

/* What makes an angle is needed as exactly as the angle is, through views, products and sums, unless a run brings it: of
 * jumps of activations (expert choices, quantised values) only the operand itself stays. */
static void makers_of_angles(void **state) {
    fixture *f = *state;
    plan(f,
         "graph g\ndim s max 512\nx = input f32[s, 8]\nat = input i32[s]\n"
         "freq = constant f32[4] random seed=1\nscale = constant f32[4] random seed=2\n"
         "w = constant f32[8, 8] random seed=3\nbias = constant f32[8] random seed=4\n"
         "slow = mul(freq, scale)\nrow = reshape(slow) : f32[1, 4]\n"
         "place = cast(at) : f32[s]\ncolumn = reshape(place) : f32[s, 1]\n"
         "angle = contract(column, row) \"si,if->sf\"\nturn = sin(angle)\n"
         "p = contract(x, w) \"si,oi->so\"\nz = add(p, bias)\nsteps = floor(z)\n"
         "output turn = turn\noutput steps = steps\n",
         SMG_TYPE_F16);
    expect(f, "angle", "sin needs it exactly");
    expect(f, "slow", "sin needs it exactly");
    expect(f, "freq", "sin needs it exactly");
    expect(f, "scale", "sin needs it exactly");
    expect(f, "turn", NULL);
    expect(f, "z", "floor needs it exactly");
    expect(f, "p", NULL);
    expect(f, "w", NULL);
    expect(f, "bias", NULL);
}

/* Views go with what they are of; other types and outputs that are statistics as they are. */
static void types_and_outputs(void **state) {
    fixture *f = *state;
    plan(f,
         "graph g\ndim b\nx = input f32[b, 8]\nh = input f16[b, 8]\ni = input i32[b, 8]\n"
         "w = cast(h) : f32[b, 8]\nv = cast(i) : f32[b, 8]\n"
         "n = add(x, w)\nu = tanh(v)\nm = add(n, u)\n"
         "t = transpose(m) perm=[1, 0]\nmean = sum(t) axis=0\ny = tanh(mean)\n"
         "output y = y\noutput mean = mean\n",
         SMG_TYPE_BF16);
    assert_int_equal(smg_graph_storage(f->g, find(f, "h")), SMG_TYPE_F16);
    assert_int_equal(smg_graph_storage(f->g, find(f, "i")), SMG_TYPE_I32);
    assert_int_equal(smg_graph_storage(f->g, find(f, "t")), SMG_TYPE_BF16);
    expect(f, "v", "counts up to 2147483648");
    expect(f, "u", NULL);
    expect(f, "mean", NULL);
    expect(f, "y", NULL);
}

/* Of a large constant the answer is kept with the graph. */
static void large_constants_are_asked_once(void **state) {
    fixture *f = *state;
    plan(f,
         "graph g\nx = input f32[300]\nw = constant f32[300, 300] random seed=1\n"
         "y = contract(x, w) \"i,oi->o\"\noutput y = y\n",
         SMG_TYPE_F16);
    expect(f, "w", NULL);
    assert_int_equal(f->g->facts.count, 2);
    assert_int_equal(f->g->facts.items[0].question, SMG_CONTENT_F16);
    assert_int_equal(f->g->facts.items[0].answer, 1);
    assert_int_equal(f->g->facts.items[1].question, SMG_CONTENT_SIZE);
    double size = smg_content_size(f->g->facts.items[1].answer); /* evenly from -1 to 1 */
    assert_true(size > 0.47 && size < 0.71);
    float *data = SMG_ARENA_ARRAY(f->arena, float, 90000);
    data[77] = 7e4f;
    f->g->nodes.items[find(f, "w")].data = data;
    assert_int_equal(smg_precision_make(f->g, SMG_TYPE_F16, NULL, f->arena, &f->plan), SMG_OK);
    expect(f, "w", "its largest element is none that f16 holds well");
    expect(f, "y", "comes into it");
    assert_int_equal(f->g->facts.count, 4);
}

/* What a file has in bf16 may be too large for f16, or too small: what it is converted to, and copies of that, stay f32. */
static void other_types_of_16_bits_are_asked(void **state) {
    static const char text[] = "graph g\nx = input f32[300]\nh = constant bf16[300, 300]\nw = cast(h) : f32[300, 300]\n"
                               "t = transpose(w) perm=[1, 0]\ns = copy(t)\n"
                               "y = contract(x, s) \"i,io->o\"\noutput y = y\n";
    static const struct {
        uint16_t element; /* of bf16 */
        smg_type asked;
        bool fits;
    } rows[] = {{0x4789, SMG_TYPE_F16, false},
                {0x3f80, SMG_TYPE_F16, true},
                {0x2edc, SMG_TYPE_F16, false},
                {0x4789, SMG_TYPE_BF16, true}};
    fixture *f = *state;
    plan(f, text, SMG_TYPE_F16);
    uint16_t *data = SMG_ARENA_ARRAY(f->arena, uint16_t, 90000);
    f->g->nodes.items[find(f, "h")].data = data;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        data[77] = rows[i].element;
        data[78] = 0x7f80; /* an infinity is none of those that count */
        f->g->facts.count = 0;
        assert_int_equal(smg_precision_make(f->g, rows[i].asked, NULL, f->arena, &f->plan), SMG_OK);
        assert_int_equal(smg_graph_storage(f->g, find(f, "h")), SMG_TYPE_BF16);
        expect(f, "w", rows[i].fits ? NULL : "its largest element is none that f16 holds well");
        expect(f, "s", rows[i].fits ? NULL : "its largest element is none that f16 holds well");
        assert_int_equal(f->g->facts.count, 1 + (rows[i].asked == SMG_TYPE_F16)); /* its size; whether it fits */
    }
}

/* Scores that nothing scales are 8 times as large: what is rounded off that makes them is so in the result. Weights that
 * are an eighth as large make up for it, and so do constants of which nothing is known. A single key's share is 1 whatever its
 * score is, where nobody reads the exponential itself. */
static void enlarged_roundings(void **state) {
    static const char text[] = "graph g\ndim s max %s\nx = input f32[s, 256]\n"
                               "wq = constant f32[300, 256] random seed=1 scale=%s\n"
                               "wk = constant f32[300, 256] random seed=2 scale=%s\n"
                               "wv = constant f32[300, 256] random seed=3 scale=%s\n"
                               "q = contract(x, wq) \"si,oi->so\"\nk = contract(x, wk) \"si,oi->so\"\n"
                               "v = contract(x, wv) \"si,oi->so\"\n"
                               "scores = contract(q, k) \"so,to->st\"\n"
                               "top = reduce_max(scores) axis=1 keep\nshifted = sub(scores, top)\ne = exp(shifted)\n"
                               "total = sum(e) axis=1 keep\np = div(e, total)\n"
                               "o = contract(p, v) \"st,to->so\"\noutput o = o\n%s";
    static const struct {
        const char *most, *scale, *more;
        bool kept;
    } rows[] = {{"512", "0.11", "", true},
                {"512", "0.02", "", false},
                {"1", "0.11", "", false},
                {"1", "0.11", "output total = total\n", true},
                {"1", "0.11", "r = sqrt(e)\noutput r = r\n", true}};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        fixture *f = *state;
        char graph[sizeof text + 64];
        const char *scale = rows[i].scale;
        (void)snprintf(graph, sizeof graph, text, rows[i].most, scale, scale, scale, rows[i].more);
        plan(f, graph, SMG_TYPE_BF16);
        const char *why = rows[i].kept ? "times as large in an output" : NULL;
        expect(f, "wq", why);
        expect(f, "q", why);
        expect(f, "k", why);
        expect(f, "x", why);
        expect(f, "wv", NULL);
        expect(f, "v", NULL);
        expect(f, "o", NULL);
        assert_true(f->plan.likely > 0 && f->plan.likely < 1.6e-2);
    }
}

/* A file's own 16 bits say as much about sizes as f32: large scores enlarge roundings, small ones do not. */
static void narrow_weights_have_a_size(void **state) {
    static const char text[] = "graph g\nx = input f32[512, 256]\n"
                               "cq = constant f16[300, 256] random seed=1 scale=%s\nwq = cast(cq) : f32[300, 256]\n"
                               "ck = constant f16[300, 256] random seed=2 scale=%s\nwk = cast(ck) : f32[300, 256]\n"
                               "q = contract(x, wq) \"si,oi->so\"\nk = contract(x, wk) \"si,oi->so\"\n"
                               "scores = contract(q, k) \"so,to->st\"\n"
                               "top = reduce_max(scores) axis=1 keep\nshifted = sub(scores, top)\ne = exp(shifted)\n"
                               "total = sum(e) axis=1 keep\np = div(e, total)\n"
                               "o = contract(p, x) \"st,to->so\"\noutput o = o\n";
    static const char *const scales[] = {"0.11", "0.02"};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(scales); i++) {
        char graph[sizeof text + 16];
        const char *why = i == 0 ? "times as large in an output" : NULL;
        (void)snprintf(graph, sizeof graph, text, scales[i], scales[i]);
        plan(f, graph, SMG_TYPE_BF16);
        expect(f, "q", why);
        expect(f, "k", why);
        expect(f, "o", NULL);
    }
}

/* ---- compilations ------------------------------------------------------------------------------------ */

static const char layer[] = "graph layer\ndim b\ndim s max 512\n"
                            "x = input f32[b, s, 48]\nm = input bool[b, s, 1]\n"
                            "w = constant f32[40, 48] random seed=1\nv = constant f32[48, 40] random seed=2\n"
                            "p = contract(x, w) \"bsi,oi->bso\"\n"
                            "r = tanh(p)\n"
                            "low = fill -1e30 : f32[]\nmasked = select(m, r, low)\n"
                            "max = reduce_max(masked) axis=1 keep\nc = sub(masked, max)\ne = exp(c)\n"
                            "q = contract(e, v) \"bsi,oi->bso\"\n"
                            "y = add(q, x)\n"
                            "output y = y\n";

static smg_status compile(fixture *f, const char *target_name, smg_type type, bool unfused, smg_compilation **out_c) {
    smg_target target;
    const smg_compile_options options = {.precision = type, .unfused = unfused};
    assert_int_equal(check_target(f->ctx, target_name, &target), SMG_OK);
    return smg_compile_plan(f->ctx, f->g, &target, &options, out_c);
}

static void kernels_store_what_the_plan_says(void **state) {
    fixture *f = *state;
    smg_compilation *c = NULL;
    smg_text text;
    read_graph(f, layer);
    assert_int_equal(compile(f, "h200", SMG_TYPE_F16, true, &c), SMG_OK);
    int narrow = 0, wide = 0;
    for (int s = 0; s < c->plan->steps.count; s++) {
        const smg_kernel *k = c->plan->steps.items[s].kernel;
        assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_OK);
        for (int b = 0; b < k->buffers.count; b++) {
            smg_node_id id = k->buffers.items[b].value;
            assert_int_equal(k->buffers.items[b].type, smg_graph_storage(c->graph, id));
            narrow += k->buffers.items[b].type == SMG_TYPE_F16;
            wide += k->buffers.items[b].type == SMG_TYPE_F32;
        }
    }
    assert_true(narrow > 8 && wide > 2); /* what the mask is in, and the maximum */
    smg_text_init(&text, f->ctx);
    assert_int_equal(smg_compile_explain(c, &(smg_explain_options){0}, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "values are f16 in memory"));
    assert_non_null(strstr(smg_text_cstr(&text), "\n  f32 masked: 1e+30 comes into it, and f16 ends at 65520\n"));
    assert_null(strstr(smg_text_cstr(&text), "f32 q:"));
    smg_text_free(&text);
    smg_text_init(&text, f->ctx);
    assert_int_equal(smg_compile_explain(c, &(smg_explain_options){.phase = "precision"}, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "  f16 q\n"));
    smg_text_free(&text);
    smg_compilation_destroy(c);
}

/* Products of f16 whose results are stored sum up in pairs; where something is reduced, or the target has no pairs,
 * they do not, and the bound says so. */
static void products_sum_up_in_pairs(void **state) {
    fixture *f = *state;
    static const char gemm[] = "graph gemm\nx = input f32[1024, 1024]\n"
                               "w = constant f32[1024, 1024] random seed=1\nbias = constant f32[1024] random seed=2\n"
                               "p = contract(x, w) \"ri,oi->ro\"\nz = add(p, bias)\ny = tanh(z)\noutput y = y\n";
    static const char attention[] = "graph attention\nq = input f32[16, 256, 64]\nk = input f32[16, 256, 64]\n"
                                    "v = input f32[16, 256, 64]\ns = contract(q, k) \"hsd,htd->hst\"\n"
                                    "m = reduce_max(s) axis=2 keep\nc = sub(s, m)\ne = exp(c)\n"
                                    "sum = sum(e) axis=2 keep\np = div(e, sum)\n"
                                    "y = contract(p, v) \"hst,htd->hsd\"\noutput y = y\n";
    static const struct {
        const char *graph, *target;
        smg_type type;
        int terms;
    } cases[] = {{gemm, "h200", SMG_TYPE_F16, 32},
                 {gemm, "h200", SMG_TYPE_F32, 0},
                 {gemm, "h200", SMG_TYPE_BF16, 0},
                 {gemm, "m1", SMG_TYPE_F16, 0},
                 {attention, "h200", SMG_TYPE_F16, 0}};
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        smg_compilation *c = NULL;
        smg_target target;
        const smg_compile_options options = {.precision = cases[i].type, .no_matrices = true};
        int terms = 0;
        read_graph(f, cases[i].graph);
        assert_int_equal(check_target(f->ctx, cases[i].target, &target), SMG_OK);
        assert_int_equal(smg_compile_plan(f->ctx, f->g, &target, &options, &c), SMG_OK);
        assert_int_equal(smg_compile_roundings(c).partial, strcmp(cases[i].target, "h200") == 0);
        for (int s = 0; s < c->plan->steps.count; s++) {
            const smg_kernel *k = c->plan->steps.items[s].kernel;
            assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_OK);
            for (int n = 0; n < k->code.count; n++) {
                const smg_instr *in = &k->code.items[n];
                if (in->kind != SMG_I_MMA) continue;
                if (in->terms > terms) terms = in->terms;
                assert_int_equal(k->tiles.items[in->a].type == SMG_TYPE_F16, in->terms > 0);
            }
        }
        if (terms != cases[i].terms) fail_msg("case %zu: partial sums of %d", i, terms);
        smg_compilation_destroy(c);
    }
}

static void fill(fixture *f, const int64_t *symbols, smg_tensor *inputs) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(smg_tensor_fill(f->ctx, f->g, i, symbols, SMG_FILL_RANDOM, 3, f->arena, &inputs[i]), SMG_OK);
}

/* Within the bound of the precision, and off by more than f32 is. */
static void results_are_near(void **state) {
    fixture *f = *state;
    static const int64_t sizes[][2] = {{1, 7}, {3, 33}};
    static const smg_type types[] = {SMG_TYPE_F16, SMG_TYPE_BF16};
    for (int i = 0; i < 16; i++) {
        smg_compilation *c = NULL;
        smg_tensor inputs[2], y = {0};
        smg_check check;
        smg_type type = types[i % 2];
        read_graph(f, layer);
        if (compile(f, i & 2 ? "h200" : "lavapipe", type, (i & 4) != 0, &c) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        fill(f, sizes[i / 8], inputs);
        if (smg_compile_interpret(c, sizes[i / 8], inputs, 2, f->arena, &y) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        assert_int_equal(smg_compile_check(f->ctx, f->g, (smg_roundings){.stored = type}, sizes[i / 8], inputs, 2, &y,
                                           f->arena, &check),
                         SMG_OK);
        double error = check.rows[0].max_rel, epsilon = smg_type_epsilon(type);
        if (!check.pass || error < epsilon / 4) fail_msg("%s: error %g", smg_type_word(type), error);
        assert_true(check.rows[0].tolerance > 4 * epsilon && check.rows[0].tolerance < 40 * epsilon);
        smg_compilation_destroy(c);
    }
}

/* The second largest of a row, as exporters' top-k comes out: what is equal to the maximum is left out. */
static const char second[] = "graph second\ndim b\n"
                             "x = input f32[b, 24]\nw = constant f32[40, 24] random seed=1\n"
                             "h = contract(x, w) \"bi,oi->bo\"\n"
                             "s = mul(h, h)\n"
                             "m = reduce_max(s) axis=1 keep\n"
                             "top = eq(s, m)\n"
                             "low = fill -1 : f32[]\n"
                             "rest = select(top, low, s)\n"
                             "n = reduce_max(rest) axis=1\n"
                             "output n = n\n";

static void what_is_compared_stays_as_it_was(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {9};
    static const char *const targets[] = {"h200", "lavapipe"};
    plan(f, second, SMG_TYPE_F16);
    expect(f, "h", "comparison");
    expect(f, "s", "comparison");
    expect(f, "m", "comparison");
    expect(f, "x", NULL);
    expect(f, "w", NULL);
    for (int i = 0; i < 12; i++) { /* kernels are cut at another place each time */
        smg_compilation *c = NULL;
        smg_target target;
        smg_tensor x, n = {0};
        smg_check check;
        const smg_compile_options options = {.precision = SMG_TYPE_F16, .max_nodes = 1 + i / 2};
        read_graph(f, second);
        assert_int_equal(check_target(f->ctx, targets[i % 2], &target), SMG_OK);
        assert_int_equal(smg_compile_plan(f->ctx, f->g, &target, &options, &c), SMG_OK);
        assert_int_equal(smg_tensor_fill(f->ctx, f->g, 0, sizes, SMG_FILL_RANDOM, 3, f->arena, &x), SMG_OK);
        assert_int_equal(smg_compile_interpret(c, sizes, &x, 1, f->arena, &n), SMG_OK);
        assert_int_equal(smg_compile_check(f->ctx, f->g, (smg_roundings){.stored = SMG_TYPE_F16}, sizes, &x, 1, &n,
                                           f->arena, &check),
                         SMG_OK);
        if (!check.pass) fail_msg("%d operations a kernel: error %g", 1 + i / 2, check.rows[0].max_rel);
        smg_compilation_destroy(c);
    }
}

static void too_large_inputs_are_named(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {1, 4};
    smg_compilation *c = NULL;
    smg_tensor inputs[2], y = {0};
    read_graph(f, layer);
    assert_int_equal(compile(f, "h200", SMG_TYPE_F16, false, &c), SMG_OK);
    fill(f, sizes, inputs);
    smg_tensor_set(&inputs[0], 5, -(double)INFINITY);
    assert_int_equal(smg_compile_interpret(c, sizes, inputs, 2, f->arena, &y), SMG_OK);
    smg_tensor_set(&inputs[0], 9, 65520);
    assert_int_equal(smg_compile_interpret(c, sizes, inputs, 2, f->arena, &y), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "'x': element 9 is 65520, more than f16 holds"));
    smg_context_clear_error(f->ctx);
    smg_compilation_destroy(c);
}

/* ---- what runs show ---------------------------------------------------------------------------------- */

/* x*x*x reaches 8e6 for an x of 200 and is saturated again: in f16 it becomes infinite, unless it stays f32. */
static const char cube[] = "graph cube\ndim b\n"
                           "x = input f32[b, 70]\nw = constant f32[70, 70] random seed=1\n"
                           "square = mul(x, x)\ncube = mul(square, x)\n"
                           "mixed = contract(cube, w) \"bi,oi->bo\"\n"
                           "c = fill 1e-6 : f32[]\nsmall = mul(mixed, c)\n"
                           "y = sub(small, x)\noutput y = y\n";

static smg_status compile_cube(fixture *f, const smg_tensor *sample, smg_compilation **out_c) {
    smg_target target;
    const smg_compile_options options = {
        .precision = SMG_TYPE_F16, .unfused = true, .samples = sample, .sample_count = sample != NULL};
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    return smg_compile_plan(f->ctx, f->g, &target, &options, out_c);
}

static const char *why_of(const smg_compilation *c, const char *name) {
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++)
        if (strcmp(smg_graph_node(c->graph, id)->name, name) == 0)
            return c->precision.why[id] != NULL ? c->precision.why[id] : "narrow";
    return "not there";
}

static void overflow_is_named(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {3};
    smg_compilation *c = NULL;
    smg_tensor x, y = {0};
    smg_overflow found;
    smg_check check;
    read_graph(f, cube);
    assert_int_equal(smg_tensor_fill(f->ctx, f->g, 0, sizes, SMG_FILL_RANDOM, 3, f->arena, &x), SMG_OK);
    assert_int_equal(compile_cube(f, NULL, &c), SMG_OK);
    assert_int_equal(smg_compile_find_overflow(c, sizes, &x, 1, f->arena, &found), SMG_OK);
    assert_null(found.value);
    smg_tensor_set(&x, 75, -200);
    assert_int_equal(smg_compile_find_overflow(c, sizes, &x, 1, f->arena, &found), SMG_OK);
    assert_string_equal(found.value, "cube");
    assert_int_equal(found.type, SMG_TYPE_F16);
    assert_true(found.size > 7.9e6 && found.size < 8.1e6 && found.count == 2);
    assert_int_equal(smg_compile_interpret(c, sizes, &x, 1, f->arena, &y), SMG_OK);
    assert_false(fabs(smg_tensor_get(&y, 70)) < 1e30);
    smg_compilation_destroy(c);
    /* the same run as a sample: cube and mixed stay f32, and nothing overflows */
    assert_int_equal(compile_cube(f, &x, &c), SMG_OK);
    assert_string_equal(why_of(c, "cube"), "measured: 8e+06 comes into it, and f16 ends at 65520");
    assert_non_null(strstr(why_of(c, "mixed"), "measured: "));
    assert_non_null(strstr(why_of(c, "square"), "measured: 40000 comes into it"));
    assert_string_equal(why_of(c, "x"), "narrow");
    assert_string_equal(why_of(c, "small"), "narrow");
    assert_int_equal(smg_compile_find_overflow(c, sizes, &x, 1, f->arena, &found), SMG_OK);
    assert_null(found.value);
    assert_int_equal(smg_compile_interpret(c, sizes, &x, 1, f->arena, &y), SMG_OK);
    assert_int_equal(smg_compile_check(f->ctx, f->g, smg_compile_roundings(c), sizes, &x, 1, &y, f->arena, &check),
                     SMG_OK);
    assert_true(check.pass);
    smg_compilation_destroy(c);
}

static void samples_are_checked(void **state) {
    fixture *f = *state;
    static const int64_t sizes[] = {3};
    smg_compilation *c = NULL;
    smg_tensor x;
    read_graph(f, cube);
    assert_int_equal(smg_tensor_fill(f->ctx, f->g, 0, sizes, SMG_FILL_ZEROS, 3, f->arena, &x), SMG_OK);
    x.dims[1] = 69;
    assert_int_equal(compile_cube(f, &x, &c), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "'x': axis 1 is 69"));
    smg_context_clear_error(f->ctx);
    x.name = "z";
    assert_int_equal(compile_cube(f, &x, &c), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "input 'x' is missing"));
    smg_context_clear_error(f->ctx);
    static const smg_model_desc desc = {.sample_count = 2};
    assert_int_equal(smg_desc_check(f->ctx, &desc), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "2 samples, whose array is NULL"));
    smg_context_clear_error(f->ctx);
}

static void requests_are_refused(void **state) {
    fixture *f = *state;
    smg_type type;
    smg_compilation *c = NULL;
    static const smg_model_desc desc = {.precision = "f64"};
    assert_int_equal(smg_precision_find(f->ctx, "half", &type), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "no precision 'half'; there are f32, f16 and bf16"));
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_desc_check(f->ctx, &desc), SMG_INVALID);
    smg_context_clear_error(f->ctx);
    read_graph(f, layer);
    assert_int_equal(compile(f, "tests/targets/nofp16.target", SMG_TYPE_F16, false, &c), SMG_UNSUPPORTED);
    assert_null(c);
    assert_non_null(strstr(smg_context_error(f->ctx), "nofp16 has no 16-bit storage"));
    smg_context_clear_error(f->ctx);
    assert_int_equal(compile(f, "tests/targets/nofp16.target", SMG_TYPE_F32, false, &c), SMG_OK);
    smg_compilation_destroy(c);
}

/* Host bytes stay, device bytes are half. */
static void bundles_store_what_the_plan_says(void **state) {
    fixture *f = *state;
    smg_compilation *c = NULL;
    read_graph(f, layer);
    assert_int_equal(compile(f, "h200", SMG_TYPE_BF16, false, &c), SMG_OK);
    if (smg_compile_modules(c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    int narrow = 0;
    for (int i = 0; i < c->bundle->buffers.count; i++) {
        const smg_bbuffer *b = &c->bundle->buffers.items[i];
        if (b->storage == SMG_STORE_BOOL_AS_U32) continue;
        narrow += b->storage == SMG_STORE_F32_AS_BF16;
        if (b->kind == SMG_BUFFER_TEMPORARY && b->storage == SMG_STORE_F32) continue; /* a statistic */
        assert_int_equal(b->storage, SMG_STORE_F32_AS_BF16);
        assert_int_equal(smg_storage_host_bytes(b->storage), 4);
        assert_int_equal(smg_storage_device_bytes(b->storage), 2);
        assert_string_equal(smg_storage_word(b->storage), "f32");
    }
    assert_true(narrow >= 4);
    smg_compilation_destroy(c);
}

static void leave_out_bf16(smg_target *target) {
    int kept = 0;
    for (int i = 0; i < target->matrix_count; i++)
        if (strcmp(target->matrix[i].a, "bf16") != 0) target->matrix[kept++] = target->matrix[i];
    target->matrix_count = kept;
    smg_target_keep_operands(target);
}

static int made_by_bf16(const smg_compilation *c) {
    int made = 0;
    for (int s = 0; s < c->plan->steps.count; s++)
        made += c->plan->steps.items[s].kernel->matrix.rows > 0 &&
                c->plan->steps.items[s].kernel->matrix.type == SMG_TYPE_BF16;
    return made;
}

/* Products are, where the target has matrices of bf16, and what is compiled then says that it needs them. */
static void bf16_is_multiplied_by_matrices(void **state) {
    fixture *f = *state;
    static const char *const graphs[] = {"tests/graphs/attention.smg", "tests/graphs/linear_gelu.smg"};
    const smg_compile_options options = {.precision = SMG_TYPE_BF16};
    for (size_t i = 0; i < SMG_COUNT_OF(graphs); i++) {
        smg_target target, without, needs;
        smg_compilation *c = NULL;
        smg_text missing;
        smg_graph_destroy(f->g);
        f->g = NULL;
        assert_int_equal(check_load(f->ctx, graphs[i], &f->g), SMG_OK);
        assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
        without = target;
        leave_out_bf16(&without);
        assert_int_equal(smg_compile_plan(f->ctx, f->g, &without, &options, &c), SMG_OK);
        assert_int_equal(made_by_bf16(c), 0);
        smg_compilation_destroy(c);
        assert_int_equal(smg_compile_plan(f->ctx, f->g, &target, &options, &c), SMG_OK);
        assert_int_equal(made_by_bf16(c), 1);
        if (smg_compile_modules(c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        assert_int_equal(smg_bundle_needs(f->ctx, c->bundle, &c->target, &needs), SMG_OK);
        assert_int_equal(needs.matrix_count, 1);
        assert_int_equal(needs.fragment_count, 3);
        smg_text_init(&missing, f->ctx);
        assert_true(smg_target_meets(&target, &needs, NULL));
        assert_false(smg_target_meets(&without, &needs, &missing));
        assert_non_null(strstr(smg_text_cstr(&missing), "matrices 16x16x16 bf16 bf16 f32 f32"));
        assert_non_null(strstr(smg_text_cstr(&missing), "the layout of fragment a 16x16 bf16"));
        smg_text_free(&missing);
        smg_compilation_destroy(c);
    }
}

/* Weights of 16 bits take 16 bits on the device in every precision, as they are and in every order that is stored of
 * them, for few rows, many, and as a table. */
static void narrow_weights_stay_narrow(void **state) {
    fixture *f = *state;
    static const char text[] = "graph g\ndim s max 4096\nx = input f32[s, 192]\nids = input i32[s]\n"
                               "w = constant %s[192, 192] random seed=1\nv = constant %s[192, 192] random seed=2\n"
                               "table = constant %s[300, 192] random seed=3\n"
                               "wide = cast(w) : f32[192, 192]\nother = cast(v) : f32[192, 192]\n"
                               "rows = cast(table) : f32[300, 192]\nfirst = gather(rows, ids)\n"
                               "sum = add(x, first)\np = contract(sum, wide) \"si,oi->so\"\nt = tanh(p)\n"
                               "y = contract(t, other) \"si,io->so\"\noutput y = y\n";
    static const char *const types[] = {"f16", "bf16"}, *const names[] = {"h200", "lavapipe", "m1"};
    static const smg_type precisions[] = {SMG_TYPE_F32, SMG_TYPE_F16, SMG_TYPE_BF16};
    for (int i = 0; i < 18; i++) {
        char made[1024];
        const char *type = types[i % 2];
        smg_compilation *c = NULL;
        int found = 0;
        snprintf(made, sizeof(made), text, type, type, type);
        read_graph(f, made);
        assert_int_equal(compile(f, names[i / 2 % 3], precisions[i / 6], i % 4 == 3, &c), SMG_OK);
        if (smg_compile_modules(c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        for (int b = 0; b < c->bundle->buffers.count; b++) {
            const smg_bbuffer *buffer = &c->bundle->buffers.items[b];
            int64_t elements = 0;
            bool weight = buffer->kind == SMG_BUFFER_CONSTANT || buffer->kind == SMG_BUFFER_DERIVED;
            if (!weight || !smg_size_is_const(c->bundle->sizes, buffer->elements, &elements) || elements < 192 * 192)
                continue;
            if (smg_storage_device_bytes(buffer->storage) != 2)
                fail_msg("%s of %s on %s in %s takes 4 bytes", buffer->name, type, names[i / 2 % 3],
                         smg_type_word(precisions[i / 6]));
            found++;
        }
        assert_true(found >= 3);
        smg_compilation_destroy(c);
    }
}

/* Halves near 0 have few digits: the last of them is no error, of large ones it is as much as they have. */
static void the_last_digit_near_zero_is_no_error(void **state) {
    static const struct {
        uint16_t want, got;
        bool pass;
    } rows[] = {{16, 16, true}, {16, 17, true}, {16, 18, false}, {1, 0, true}, {2, 0, false}, {0x3c00, 0x3c02, false}};
    const smg_allowance allowed = {.relative = 1e-4};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        uint16_t want = rows[i].want, got = rows[i].got;
        smg_tensor one = {.name = "y", .type = "f16", .rank = 1, .dims = {1}, .data = &want, .bytes = sizeof(want)};
        smg_tensor other = one;
        smg_check_row row;
        other.data = &got;
        smg_compile_compare(&one, &other, allowed, &row);
        assert_int_equal(row.pass, rows[i].pass);
    }
}

/* Elements are read some at a time: the one that is off is named wherever it is. */
static void the_worst_element_is_named(void **state) {
    static const int at[] = {0, 511, 512, 777, 1099};
    static float want[1100], got[1100];
    const smg_allowance allowed = {.relative = 1e-4};
    const smg_tensor one = {.name = "y", .rank = 1, .dims = {1100}, .data = want, .bytes = sizeof want};
    smg_tensor other = one;
    (void)state;
    other.data = got;
    for (int i = 0; i < 1100; i++) want[i] = got[i] = (float)(i % 7 - 3);
    for (size_t i = 0; i < SMG_COUNT_OF(at); i++) {
        smg_check_row row;
        got[at[i]] = want[at[i]] + 1;
        smg_compile_compare(&one, &other, allowed, &row);
        assert_false(row.pass);
        assert_int_equal(row.elements, 1100);
        assert_int_equal(row.worst, at[i]);
        assert_true(fabs(row.max_abs - 1) < 1e-6);
        got[at[i]] = want[at[i]];
        smg_compile_compare(&one, &other, allowed, &row);
        assert_true(row.pass);
    }
}

/* An output that is f32 has as few digits where the plan keeps it, or what it is made of, in f16. */
static void the_last_digit_is_that_of_what_is_stored(void **state) {
    static const struct {
        smg_type stored;
        bool pass;
    } rows[] = {{SMG_TYPE_F32, false}, {SMG_TYPE_F16, true}, {SMG_TYPE_BF16, false}};
    fixture *f = *state;
    float want = 3e-8F, got = 0;
    smg_tensor one = {.name = "y", .type = "f32", .rank = 1, .dims = {1}, .data = &want, .bytes = sizeof(want)};
    smg_tensor other = one;
    other.data = &got;
    read_graph(f, "graph g\nx = input f32[8]\ny = neg(x)\noutput y = y\n");
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_allowance allowed;
        smg_check_row row;
        assert_int_equal(smg_compile_allow(f->g, (smg_roundings){.stored = rows[i].stored}, NULL, f->arena, &allowed),
                         SMG_OK);
        smg_compile_compare(&one, &other, allowed, &row);
        assert_int_equal(row.pass, rows[i].pass);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_planned_for_f32),
        cmocka_unit_test(the_worst_element_is_named),
        cmocka_unit_test(bf16_is_multiplied_by_matrices),
        cmocka_unit_test(masks),
        cmocka_unit_test(bounds_of_what_overflows),
        cmocka_unit_test(constants),
        cmocka_unit_test(positions),
        cmocka_unit_test(makers_of_angles),
        cmocka_unit_test(types_and_outputs),
        cmocka_unit_test(large_constants_are_asked_once),
        cmocka_unit_test(other_types_of_16_bits_are_asked),
        cmocka_unit_test(enlarged_roundings),
        cmocka_unit_test(narrow_weights_have_a_size),
        cmocka_unit_test(kernels_store_what_the_plan_says),
        cmocka_unit_test(products_sum_up_in_pairs),
        cmocka_unit_test(results_are_near),
        cmocka_unit_test(what_is_compared_stays_as_it_was),
        cmocka_unit_test(too_large_inputs_are_named),
        cmocka_unit_test(overflow_is_named),
        cmocka_unit_test(samples_are_checked),
        cmocka_unit_test(the_last_digit_near_zero_is_no_error),
        cmocka_unit_test(the_last_digit_is_that_of_what_is_stored),
        cmocka_unit_test(requests_are_refused),
        cmocka_unit_test(bundles_store_what_the_plan_says),
        cmocka_unit_test(narrow_weights_stay_narrow),
    };
    return cmocka_run_group_tests_name("precision", tests, setup, teardown);
}
