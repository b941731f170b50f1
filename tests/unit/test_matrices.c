/* Products by matrices without hardware: schedules of small graphs in f16 that multiply by the matrices of a target are
 * lowered, verified, and run by the interpreter in both modes, whatever the layout of the target's fragments is. Sides
 * of the sizes are no multiples of any matrix. How many schedules get a program is asserted, so that a lowering that
 * refuses them fails here. Programs written by hand are in test_matrix_texts.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "precision/precision.h"
#include "support/check_plan.h"
#include "support/kernel_bench.h"

enum {
    AT_MOST = 12 /* schedules of a graph and target that are run */,
    RINGS_EACH = 20 /* and of those with rings */,
    STREAMS_EACH = 4 /* and of those that read factors from memory */
};

static const char *const graphs[] = {
    "attention",       "attention_causal", "attention_lengths", "gru",          "linear_gelu",         "lstm", "mlp",
    "prepared_weight", "rmsnorm_gemm",     "rotary_projection", "softmax_gemm", "sum_of_deep_products"};
typedef enum hidden { NOTHING, SUMS, ALL } hidden;
/* Their layouts differ: rows over registers and lanes, over registers alone, over the upper lanes. Of some nobody knows
 * where sums are, or anything; in bf16 types and rounding are others, not programs. So of these not every graph. */
static const struct {
    const char *name;
    smg_type factors;
    hidden opaque;
    size_t first, each; /* graphs */
} targets[] = {{"h200", SMG_TYPE_F16, NOTHING, 0, 1},   {"lavapipe", SMG_TYPE_F16, NOTHING, 0, 1},
               {"navi31", SMG_TYPE_F16, NOTHING, 0, 1}, {"dg2", SMG_TYPE_F16, NOTHING, 0, 1},
               {"lavapipe", SMG_TYPE_F16, ALL, 0, 8},   {"navi31", SMG_TYPE_F16, SUMS, 4, 8},
               {"h200", SMG_TYPE_BF16, NOTHING, 4, 12}, {"gfx1201", SMG_TYPE_BF16, NOTHING, 2, 12},
               {"bmg", SMG_TYPE_F16, NOTHING, 1, 3}};

typedef struct tally {
    int schedules, lowered, run, rings;
    int masked;  /* programs that mask their sums once, in units of exponents */
    int units;   /* programs whose exponentials are all in those units */
    int columns; /* programs that compute what no row changes once for all rows of a lane */
    int shared;  /* of those run: subgroups share out a contraction */
    int whole;   /* programs that load or store a matrix as one */
    int streams; /* of those run: factors are read from memory by the lanes that have them */
    int beside;  /* of those run: right factors are, left ones come through shared memory */
    int crossed; /* of those run: both are, and subgroups share out k and rows or columns */
    int narrow;  /* of those run: matrices have 8 columns */
} tally;

static bool is_crossed(const smg_schedule *s) {
    return s->streams && s->rings < 2 && s->lane_depth > 1 && s->matrix_rows * s->matrix_cols > 1;
}

static void count_texts(smg_context *ctx, const smg_kernel *k, tally *t) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_kernel_print(k, &text);
    const char *told = smg_text_cstr(&text);
    bool in_units = strstr(told, "exp2(") != NULL;
    t->masked += in_units && strstr(told, "# masked once") != NULL;
    t->units += in_units && strstr(told, "exp(") == NULL;
    t->columns += strstr(told, "# once for all rows") != NULL;
    smg_text_free(&text);
}

static bool moves_whole(const smg_kernel *k) {
    bool whole = false;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        whole = whole || ((in->kind == SMG_I_SET || in->kind == SMG_I_STORE) && in->matrices);
    }
    return whole;
}

static void try_schedule(const smg_graph *g, const smg_schedule *s, const smg_target *target, const check_options *o,
                         check_arrays *a, bool runs, tally *t) {
    smg_kernel *kernel;
    const char *refused;
    smg_arena *arena;
    t->schedules++;
    if (!runs && t->schedules % CHECK_ONE_IN != 0) return;
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    const smg_lower_options options = {.name = "matrices", .target = target, .verify = true};
    if (smg_kernel_lower(s, &options, arena, &kernel, &refused) != SMG_OK)
        fail_msg("%s on %s: %s", g->name, o->target, smg_context_error(g->ctx));
    if (kernel != NULL) {
        t->lowered++;
        t->run += runs;
        count_texts(g->ctx, kernel, t);
        t->whole += moves_whole(kernel);
        t->shared += runs && s->lane_depth > 1;
        t->rings += runs && s->rings > 1;
        t->streams += runs && s->streams;
        t->beside += runs && s->streams && s->rings > 1;
        t->crossed += runs && is_crossed(s);
        t->narrow += runs && s->matrix->n == 8;
        if (runs) check_kernel_is_right(g, s, kernel, o, t->run % CHECK_ONE_IN == 0, a);
    }
    smg_arena_destroy(arena);
}

static void forget(smg_target *target, hidden opaque) {
    int kept = 0;
    for (int i = 0; i < target->fragment_count; i++)
        if (opaque == NOTHING || (opaque == SUMS && target->fragments[i].use != SMG_MATRIX_ACCUMULATOR))
            target->fragments[kept++] = target->fragments[i];
    target->fragment_count = kept;
}

static void try_graph(smg_graph *g, const check_options *o, size_t number, tally *t) {
    smg_arena *arena;
    smg_target target;
    smg_space *space;
    smg_schedules schedules;
    smg_precision_plan precision;
    check_arrays a;
    int64_t nominal[SMG_SPACE_AXES];
    assert_int_equal(smg_arena_create(g->ctx, &arena), SMG_OK);
    assert_int_equal(check_target(g->ctx, o->target, &target), SMG_OK);
    forget(&target, targets[number].opaque);
    assert_int_equal(smg_precision_make(g, targets[number].factors, NULL, arena, &precision), SMG_OK);
    assert_int_equal(check_space(g, arena, &space), SMG_OK);
    if (space->refused == NULL) {
        for (int i = 0; i < space->axes.count; i++) {
            bool known = smg_size_is_const(g->sizes, space->axes.items[i].extent, &nominal[i]);
            if (!known || nominal[i] > 8) nominal[i] = 256; /* but for what has fewer than any matrix */
        }
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
        int all = 0, rings = 0, streams = 0, crossed = 0, each;
        for (int i = 0; i < schedules.items.count; i++) all += schedules.items.items[i].matrix != NULL;
        each = (all > AT_MOST ? all / AT_MOST : 1) * CHECK_ONE_IN;
        for (int i = 0, n = 0; i < schedules.items.count; i++) {
            const smg_schedule *s = &schedules.items.items[i];
            if (s->matrix == NULL) continue;
            bool due = s->rings > 1 && rings++ % (RINGS_EACH * CHECK_ONE_IN) == 0;
            due = due || (s->streams && streams++ % (STREAMS_EACH * CHECK_ONE_IN) == 0);
            due = due || (is_crossed(s) && crossed++ % (STREAMS_EACH * CHECK_ONE_IN) == 0);
            try_schedule(g, s, &target, o, &a, n++ % each == 0 || due, t);
        }
    }
    smg_arena_destroy(arena);
}

static void test_schedules(void **state) {
    smg_context *ctx = *state;
    static const int64_t symbols[] = {2, 1, 33, 77};
    tally all[SMG_COUNT_OF(targets)] = {{0}};
    for (size_t i = 0; i < SMG_COUNT_OF(graphs); i++) {
        char path[128];
        smg_graph *g;
        (void)snprintf(path, sizeof path, "tests/graphs/%s.smg", graphs[i]);
        assert_int_equal(check_load(ctx, path, &g), SMG_OK);
        for (size_t k = 0; k < SMG_COUNT_OF(targets); k++) {
            if (i % targets[k].each != targets[k].first) continue;
            bool half = targets[k].factors == SMG_TYPE_F16;
            check_options o = {.target = targets[k].name, .tolerance = half ? 4e-3 : 3.2e-2, .symbols = symbols};
            tally before = all[k];
            try_graph(g, &o, k, &all[k]);
            printf("%s in %s on %s%s: %d schedules, %d programs, %d of them move whole matrices; %d run, in %d of them "
                   "k is "
                   "shared out, in %d are rings, in %d streams\n",
                   graphs[i], smg_type_word(targets[k].factors), targets[k].name,
                   targets[k].opaque != NOTHING ? ", opaque" : "", all[k].schedules - before.schedules,
                   all[k].lowered - before.lowered, all[k].whole - before.whole, all[k].run - before.run,
                   all[k].shared - before.shared, all[k].rings - before.rings, all[k].streams - before.streams);
        }
        smg_graph_destroy(g);
    }
    for (size_t k = 0; k < SMG_COUNT_OF(targets); k++) {
        bool known = targets[k].opaque == NOTHING, half = targets[k].factors == SMG_TYPE_F16;
        assert_true(all[k].lowered >= 1 && all[k].run >= 1);
        if (CHECK_ONE_IN == 1) assert_true(all[k].lowered >= 40 && all[k].run >= (known && half ? 20 : 12));
        assert_true(!half || (known ? 2 * all[k].whole > all[k].lowered : all[k].whole == 0));
    }
    if (CHECK_ONE_IN > 1) return; /* too few for what follows */
    assert_true(all[0].shared >= 5 && all[5].shared >= 4);
    /* These know where lanes have both factors, and wait for loads. */
    assert_true(all[0].rings >= 4 && all[2].rings >= 2);
    assert_true(all[0].streams >= 4 && all[2].streams >= 4);
    assert_true(all[5].rings >= 1 && all[5].streams >= 2); /* opaque sums alone are no hindrance */
    assert_true(all[6].rings >= 2 && all[6].streams >= 2); /* nor is bf16 */
    assert_true(all[0].beside + all[2].beside + all[3].beside >= 8);
    assert_true(all[0].crossed >= 2 && all[2].crossed >= 2);
}

/* A graph of the repository with some text of it changed, on two targets. */
static tally try_changed(smg_context *ctx, const char *path, const char *from, const char *to, check_options o) {
    static const int64_t symbols[] = {2, 1, 33, 77};
    char *text;
    size_t size;
    smg_graph *g;
    tally all = {0};
    assert_int_equal(smg_file_read(ctx, path, &text, &size), SMG_OK);
    char *after = bench_changed(text, from, to);
    assert_int_equal(smg_graph_parse(ctx, after, strlen(after), "after", &g), SMG_OK);
    o.tolerance = 4e-3;
    o.symbols = symbols;
    for (size_t k = 0; k < 2; k++) {
        o.target = targets[k].name;
        try_graph(g, &o, targets[k].opaque, &all);
    }
    smg_graph_destroy(g);
    free(after);
    smg_free(ctx, text, size + 1);
    return all;
}

/* Rows whose first slices are masked whole: their distances to a maximum far below all sums are 0, not the rounding of
 * a product; the last row has nothing else. */
static void test_masked(void **state) {
    tally all = try_changed(*state, "tests/graphs/attention_causal.smg", "le(column, row)", "lt(row, column)",
                            (check_options){.seed = 0});
    assert_true(all.run * CHECK_ONE_IN >= 20 && all.masked * CHECK_ONE_IN >= 20);
}

/* The mask's numbers of keys: the second batch keeps none, the first all but every third. */
static void fill_kept(void *user, const smg_node *n, const int64_t *dims, double *data) {
    (void)user;
    if (strcmp(n->name, "kept") != 0) return;
    int64_t keys = dims[n->rank - 1];
    for (int64_t i = 0; i < dims[0] * keys; i++) data[i] = i < keys && i % 3 != 0;
}

/* What a mask adds to each key is far beyond all numbers in units of exponents, and stays itself there: a row that
 * keeps nothing has equal shares. No row changes it. */
static void test_added_mask(void **state) {
    tally all = try_changed(*state, "tests/graphs/attention.smg", "mask = input f32[b, 1, s, t]\n",
                            "kept = input i32[b, 1, 1, t]\nnumber = cast(kept) : f32[b, 1, 1, t]\n"
                            "one = fill 1 : f32[]\nleft = sub(one, number)\n"
                            "lowest = fill -3.4028234663852886e38 : f32[]\nmask = mul(left, lowest)\n",
                            (check_options){.fill = fill_kept});
    assert_true(all.run * CHECK_ONE_IN >= 20 && all.units * CHECK_ONE_IN >= 20 && all.columns * CHECK_ONE_IN >= 20);
}

/* On all targets that know where lanes have f16 factors, which are so many. */
static tally try_text(smg_context *ctx, const char *text) {
    static const int64_t symbols[] = {2};
    tally all = {0};
    smg_graph *g;
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "text", &g), SMG_OK);
    for (size_t k = 0; k < SMG_COUNT_OF(targets); k++) {
        bool known = targets[k].opaque == NOTHING && targets[k].factors == SMG_TYPE_F16;
        check_options o = {.target = targets[k].name, .tolerance = 4e-3, .symbols = symbols};
        int before = all.run;
        if (known) try_graph(g, &o, k, &all);
        assert_true(!known || all.run > before);
    }
    smg_graph_destroy(g);
    return all;
}

/* A convolution is a product of three contracted axes, channels lying side by side: of the taps one element a step. */
static void test_convolution(void **state) {
    tally all =
        try_text(*state, "graph convolution\ndim b max 64\nx = input f32[b, 9, 8, 20]\n"
                         "w = constant f32[12, 20, 3, 3] random seed=1 scale=0.1\n"
                         "c = constant f32[12] random seed=2\n"
                         "rows = window(x) axis=1 begin=-1 step=1 dilation=1 fill=0 : f32[b, 9, 3, 8, 20]\n"
                         "taps = window(rows) axis=3 begin=0 step=1 dilation=1 fill=0 : f32[b, 9, 3, 6, 3, 20]\n"
                         "p = contract(taps, w) \"bhiwjc,ocij->bhwo\" : f32[b, 9, 6, 12]\n"
                         "q = add(p, c)\ny = relu(q)\noutput y = y\n");
    assert_true(all.run * CHECK_ONE_IN >= 30);
}

/* Patches of an image: whole rows of one are contracted by matrices, in loops over its channels and its rows. */
static void test_patches(void **state) {
    tally all = try_text(*state, "graph patches\ndim b max 64\nx = input f32[b, 3, 2, 8, 2, 16]\n"
                                 "w = constant f32[40, 3, 8, 16] random seed=1 scale=0.1\n"
                                 "c = constant f32[40] random seed=2\n"
                                 "p = contract(x, w) \"bchiwj,ocij->bhwo\" : f32[b, 2, 2, 40]\n"
                                 "y = add(p, c)\noutput y = y\n");
    assert_true(all.run * CHECK_ONE_IN >= 30);
}

static int open_context(void **state) {
    smg_context *ctx;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return -1;
    *state = ctx;
    return 0;
}

static int close_context(void **state) {
    smg_context_destroy(*state);
    return 0;
}

/* Where a product has no more columns than a smaller shape of the device, that one has schedules, too, and the lower
 * price. */
static void test_few_columns(void **state) {
    static const char format[] = "graph few\ndim n max 4096\nx = input f32[n, 96]\n"
                                 "w = constant f32[96, %d] random seed=1 scale=0.1\n"
                                 "c = constant f32[%d] random seed=2\np = contract(x, w) \"ni,io->no\"\n"
                                 "y = add(p, c)\noutput y = y\n";
    static const int64_t symbols[] = {77}, nominal[] = {4096};
    smg_context *ctx = *state;
    for (int columns = 7; columns <= 9; columns++) {
        char text[sizeof format + 32];
        tally all = {0};
        smg_graph *g;
        smg_arena *arena;
        smg_target target;
        smg_plan *plan;
        smg_precision_plan precision;
        const check_options o = {.target = "h200", .tolerance = 4e-3, .symbols = symbols};
        const smg_plan_options options = {.nominal = nominal};
        (void)snprintf(text, sizeof text, format, columns, columns);
        assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "few", &g), SMG_OK);
        try_graph(g, &o, 0, &all);
        assert_int_equal(all.narrow * CHECK_ONE_IN >= 5, columns <= 8);
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(check_target(ctx, "h200", &target), SMG_OK);
        assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
        assert_int_equal(smg_plan_make(g, &target, &options, arena, &plan), SMG_OK);
        assert_int_equal(plan->steps.count, 1);
        assert_int_equal(plan->steps.items[0].kernel->matrix.cols, columns <= 8 ? 8 : 16);
        smg_arena_destroy(arena);
        smg_graph_destroy(g);
    }
}

/* Where the cache does not keep the right factor, blocks that follow each other have the same columns of it; where it
 * does not keep the left one either, as many of them as make what runs at a time about square. */
static void test_rows_next(void **state) {
    static const struct {
        int64_t cache, rows;
        bool next, bands;
    } cases[] = {
        {INT64_C(1) << 24, 4096, false, false}, {2 * 256 * 256, 128, true, false}, {2 * 256 * 256, 4096, true, true}};
    static const int64_t symbols[] = {333};
    const check_options o = {.target = "h200", .tolerance = 4e-3, .symbols = symbols};
    smg_context *ctx = *state;
    smg_precision_plan precision;
    smg_graph *g;
    assert_int_equal(check_load(ctx, "tests/graphs/linear_gelu.smg", &g), SMG_OK);
    for (size_t n = 0; n < SMG_COUNT_OF(cases); n++) {
        smg_arena *arena;
        smg_target target;
        smg_space *space;
        smg_schedules schedules;
        smg_kernel *kernel;
        const char *refused;
        int64_t nominal[SMG_SPACE_AXES];
        check_arrays a;
        int i = 0;
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(check_target(ctx, o.target, &target), SMG_OK);
        assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
        assert_int_equal(check_space(g, arena, &space), SMG_OK);
        assert_int_equal(check_arrays_make(g, &o, arena, &a), SMG_OK);
        target.cache_bytes = cases[n].cache;
        target.cores = 16;
        for (int axis = 0; axis < space->axes.count; axis++)
            if (!smg_size_is_const(g->sizes, space->axes.items[axis].extent, &nominal[axis]))
                nominal[axis] = cases[n].rows;
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        const smg_schedule *all = schedules.items.items; /* what streams has other rows next in any case */
        while (i < schedules.items.count && (all[i].matrix == NULL || all[i].streams)) i++;
        assert_true(i < schedules.items.count);
        const smg_schedule *s = &all[i];
        const smg_lower_options options = {.name = "rows", .target = &target, .verify = true};
        assert_int_equal(smg_kernel_lower(s, &options, arena, &kernel, &refused), SMG_OK);
        assert_int_equal(kernel->grid.count, 2);
        assert_int_equal(kernel->grid.items[1] == s->row_axis, cases[n].next);
        assert_int_equal(kernel->band > 0, cases[n].bands);
        if (cases[n].bands) {
            int64_t high = kernel->band * s->tile[s->row_axis];
            int64_t wide = 2 * target.cores / kernel->band * s->tile[s->col_axis];
            assert_true(high <= wide && wide <= 4 * high);
        }
        check_kernel_is_right(g, s, kernel, &o, true, &a);
        smg_arena_destroy(arena);
    }
    smg_graph_destroy(g);
}

/* Do sixteen subgroups share out k, of as many sums of a lane at least? */
static bool has_sixteen(const smg_schedule *s) {
    return s->lane_depth == 16 && s->tile[s->row_axis] * s->tile[s->col_axis] >= INT64_C(16) * s->subgroup;
}

/* Such subgroups leave parts of sixteen sums at once, and each has its share of them. */
static void test_sixteen(void **state) {
    static const char text[] = "graph deep\ndim rows max 256\nx = input f32[rows, 1024]\n"
                               "w = constant f32[32, 1024] random seed=1 scale=0.1\n"
                               "p = contract(x, w) \"ri,oi->ro\" : f32[rows, 32]\ny = relu(p)\noutput y = y\n";
    static const int64_t symbols[] = {33};
    static const char *const names[] = {"h200", "navi31"};
    smg_context *ctx = *state;
    for (size_t n = 0; n < SMG_COUNT_OF(names); n++) {
        check_options o = {.target = names[n], .tolerance = 4e-3, .symbols = symbols};
        smg_precision_plan precision;
        smg_graph *g;
        smg_arena *arena;
        smg_target target;
        smg_space *space;
        smg_schedules schedules;
        smg_kernel *kernel;
        check_arrays a;
        const char *refused;
        int64_t nominal[SMG_SPACE_AXES];
        int i = 0, shared = 0;
        assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "deep", &g), SMG_OK);
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(check_target(ctx, names[n], &target), SMG_OK);
        assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
        assert_int_equal(check_space(g, arena, &space), SMG_OK);
        for (int axis = 0; axis < space->axes.count; axis++)
            if (!smg_size_is_const(g->sizes, space->axes.items[axis].extent, &nominal[axis])) nominal[axis] = 33;
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        assert_int_equal(check_arrays_make(g, &o, arena, &a), SMG_OK);
        while (i < schedules.items.count && !has_sixteen(&schedules.items.items[i])) i++;
        assert_true(i < schedules.items.count);
        const smg_schedule *s = &schedules.items.items[i];
        const smg_lower_options options = {.name = "sixteen", .target = &target, .verify = true};
        assert_int_equal(smg_kernel_lower(s, &options, arena, &kernel, &refused), SMG_OK);
        assert_non_null(kernel);
        for (int t = 0; t < kernel->tiles.count; t++) shared += strncmp(kernel->tiles.items[t].name, "own", 3) == 0;
        assert_int_equal(shared, 1);
        check_kernel_is_right(g, s, kernel, &o, true, &a);
        smg_arena_destroy(arena);
        smg_graph_destroy(g);
    }
}

/* Whole rows of a left factor of 256 stay in registers while the columns go by. */
static void test_long_rows(void **state) {
    static const char text[] =
        "graph long_rows\ndim s max 4096\nq = input f32[16, s, 256]\nk = input f32[16, s, 256]\n"
        "v = input f32[16, s, 256]\nrow = iota axis=0 : i32[s, 1]\ncolumn = iota axis=1 : i32[1, s]\n"
        "kept = le(column, row)\nscores = contract(q, k) \"bsd,btd->bst\"\nscale = fill 0.0625 : f32[]\n"
        "scaled = mul(scores, scale)\nnone = fill -1e30 : f32[]\nmasked = select(kept, scaled, none)\n"
        "top = reduce_max(masked) axis=2 keep\nshifted = sub(masked, top)\ne = exp(shifted)\n"
        "total = sum(e) axis=2 keep\np = div(e, total)\no = contract(p, v) \"bst,btd->bsd\"\noutput o = o\n";
    static const int64_t symbols[] = {37}, nominal[] = {2000};
    const check_options o = {.target = "h200", .tolerance = 4e-3, .symbols = symbols};
    const smg_plan_options options = {.nominal = nominal};
    smg_context *ctx = *state;
    smg_precision_plan precision;
    smg_graph *g;
    smg_arena *arena;
    smg_target target;
    smg_plan *plan;
    check_arrays a;
    int rows = 0;
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "long_rows", &g), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_target(ctx, o.target, &target), SMG_OK);
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
    assert_int_equal(smg_plan_make(g, &target, &options, arena, &plan), SMG_OK);
    assert_int_equal(plan->steps.count, 1);
    const smg_kernel *kernel = plan->steps.items[0].kernel;
    assert_true(kernel->matrix.rows > 0);
    for (int axis = 0; axis < kernel->axes.count; axis++) rows += kernel->axes.items[axis].tile == 256;
    assert_int_equal(rows, 2); /* what the scores contract, and what the results have */
    assert_int_equal(check_arrays_make(g, &o, arena, &a), SMG_OK);
    check_kernel_is_right(g, NULL, kernel, &o, false, &a);
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
}

static void count_matrices(void *user, const smg_plan *plan, const smg_pstep *step, const smg_target *target,
                           check_arrays *arrays) {
    int *products = user;
    (void)target;
    (void)arrays;
    for (int i = 0; step->kernel->matrix.rows > 0 && i < step->node_count; i++)
        *products += smg_node_class(smg_graph_node(plan->graph, step->nodes[i])) == SMG_CLASS_CONTRACT;
}

/* What workgroups share out multiplies by matrices as the whole does: of few rows and many keys, the last part's not
 * all there, both products. */
static void test_parts(void **state) {
    static const char text[] =
        "graph few_rows\ndim t max 4096\nq = input f32[2, 32, 64]\nk = input f32[2, t, 64]\nv = input f32[2, t, 64]\n"
        "scores = contract(q, k) \"bsd,btd->bst\"\nscale = fill 0.125 : f32[]\nscaled = mul(scores, scale)\n"
        "top = reduce_max(scaled) axis=2 keep\nshifted = sub(scaled, top)\ne = exp(shifted)\n"
        "total = sum(e) axis=2 keep\np = div(e, total)\no = contract(p, v) \"bst,btd->bsd\"\noutput o = o\n";
    static const int64_t symbols[] = {501}, nominal[] = {512};
    const check_options o = {
        .target = "h200", .tolerance = 4e-3, .symbols = symbols, .plan = {.nominal = nominal, .parts = 4}};
    smg_context *ctx = *state;
    smg_precision_plan precision;
    smg_graph *g;
    smg_arena *arena;
    check_result r;
    int products = 0;
    assert_int_equal(smg_graph_parse(ctx, text, strlen(text), "few_rows", &g), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
    assert_int_equal(check_each_step(ctx, g, &o, count_matrices, &products, &r), SMG_OK);
    assert_true(r.pass && r.in_parts);
    assert_int_equal(products, 2);
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts),       cmocka_unit_test(test_rows_next),
                                       cmocka_unit_test(test_masked),      cmocka_unit_test(test_added_mask),
                                       cmocka_unit_test(test_few_columns), cmocka_unit_test(test_convolution),
                                       cmocka_unit_test(test_patches),     cmocka_unit_test(test_sixteen),
                                       cmocka_unit_test(test_long_rows),   cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
