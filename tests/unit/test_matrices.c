/* Products by matrices without hardware: schedules of small graphs in f16 that multiply by the matrices of a target are
 * lowered, verified, and run by the interpreter in both modes, whatever the layout of the target's fragments is. Sides
 * of the sizes are no multiples of any matrix. How many schedules get a program is asserted, so that a lowering that
 * refuses them fails here. */
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
    NODES = 128,
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
               {"h200", SMG_TYPE_BF16, NOTHING, 4, 12}, {"gfx1201", SMG_TYPE_BF16, NOTHING, 2, 12}};

typedef struct tally {
    int schedules, lowered, run, rings;
    int masked;  /* programs that mask their sums once, in units of exponents */
    int units;   /* programs whose exponentials are all in those units */
    int shared;  /* of those run: subgroups share out a contraction */
    int whole;   /* programs that load or store a matrix as one */
    int streams; /* of those run: factors are read from memory by the lanes that have them */
    int beside;  /* of those run: right factors are, left ones come through shared memory */
} tally;

static smg_status space_of(const smg_graph *g, smg_arena *arena, smg_space **out_space) {
    smg_node_id nodes[NODES];
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    int count = 0;
    if (needed == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < g->nodes.count && count < NODES; i++)
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    for (int o = 0; o < g->outputs.count; o++) needed[smg_space_source(g, g->outputs.items[o].node)] = true;
    return smg_space_build(g, arena, nodes, count, needed, out_space);
}

static void run(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o, bool by_lane,
                check_arrays *a) {
    check_options options = *o;
    check_result r = {0};
    options.by_lane = by_lane;
    check_arrays_reset(g, a);
    smg_status status = check_kernel(g->ctx, k, &options, a);
    if (status == SMG_OK) check_compare(g, o, a, &r);
    if (status == SMG_OK && r.pass) return;
    smg_text text;
    smg_text_init(&text, g->ctx);
    smg_sched_print(s, &text);
    smg_kernel_print(k, &text);
    fail_msg("%s on %s, %s: %s\n%s", g->name, o->target, by_lane ? "by lane" : "as a whole",
             status != SMG_OK ? smg_context_error(g->ctx) : "differs from the reference", smg_text_cstr(&text));
}

static bool masks_once(smg_context *ctx, const smg_kernel *k) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_kernel_print(k, &text);
    bool once = strstr(smg_text_cstr(&text), "# masked once") != NULL && strstr(smg_text_cstr(&text), "exp2(") != NULL;
    smg_text_free(&text);
    return once;
}

static bool is_in_units(smg_context *ctx, const smg_kernel *k) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_kernel_print(k, &text);
    bool all = strstr(smg_text_cstr(&text), "exp2(") != NULL && strstr(smg_text_cstr(&text), "exp(") == NULL;
    smg_text_free(&text);
    return all;
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
        t->masked += masks_once(g->ctx, kernel);
        t->units += is_in_units(g->ctx, kernel);
        t->whole += moves_whole(kernel);
        t->shared += runs && s->lane_depth > 1;
        t->rings += runs && s->rings > 1;
        t->streams += runs && s->streams;
        t->beside += runs && s->streams && s->rings > 1;
        if (runs) run(g, s, kernel, o, false, a);
        if (runs && t->run % CHECK_ONE_IN == 0) run(g, s, kernel, o, true, a);
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
    assert_int_equal(space_of(g, arena, &space), SMG_OK);
    if (space->refused == NULL) {
        for (int i = 0; i < space->axes.count; i++) nominal[i] = 256;
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
        int all = 0, rings = 0, streams = 0, each;
        for (int i = 0; i < schedules.items.count; i++) all += schedules.items.items[i].matrix != NULL;
        each = all > AT_MOST ? all / AT_MOST : 1;
        for (int i = 0, n = 0; i < schedules.items.count; i++) {
            const smg_schedule *s = &schedules.items.items[i];
            if (s->matrix == NULL) continue;
            bool due = s->rings > 1 && rings++ % RINGS_EACH == 0;
            due = due || (s->streams && streams++ % STREAMS_EACH == 0);
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
        assert_true(all[k].lowered >= 40 && all[k].run >= (known && half ? 20 : 12));
        assert_true(!half || (known ? 2 * all[k].whole > all[k].lowered : all[k].whole == 0));
    }
    assert_true(all[0].shared >= 5 && all[5].shared >= 4);
    /* These know where lanes have both factors, and wait for loads. */
    assert_true(all[0].rings >= 4 && all[2].rings >= 2);
    assert_true(all[0].streams >= 4 && all[2].streams >= 4);
    assert_true(all[5].rings >= 1 && all[5].streams >= 2); /* opaque sums alone are no hindrance */
    assert_true(all[6].rings >= 2 && all[6].streams >= 2); /* nor is bf16 */
    assert_true(all[0].beside + all[2].beside + all[3].beside >= 8);
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* y = exp(a b) c by matrices of 4 x 4 x 4, whose left factors lie as their sums do: the first product's sums become the
 * left factor of the second. */
static const char chain[] = "kernel chain\n"
                            "lanes 16 subgroup 8 numbered\n"
                            "axis i = 16 tile 8 grid\n"
                            "axis j = 8 tile 8\n"
                            "axis k = 8 tile 4\n"
                            "axis n = 4 tile 4\n"
                            "grid i\n"
                            "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
                            "left registers column*2 lanes column*2:2 row*4\n"
                            "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
                            "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
                            "layout 2 = [i, n] registers n*2 lanes n*2:2 i*4 subgroups i*2:4\n"
                            "layout 3 = [i, n, j] registers n*2 j*8 lanes n*2:2 i*4 subgroups i*2:4\n"
                            "buffer a f16 [128] value 0\n"
                            "buffer b f16 [64] value 1\n"
                            "buffer c f16 [32] value 2\n"
                            "buffer y f32 [64] value 3 written\n"
                            "tile s float register [i, j] layout 0 fragments\n"
                            "tile p f16 register [i, j] layout 0 left fragments\n"
                            "tile o float register [i, n] layout 2 fragments\n"
                            "tile sa f16 shared [i, k] pad 8\n"
                            "tile sb f16 shared [k, j] pad 8\n"
                            "tile sc f16 shared [j, n] pad 8\n"
                            "access 0 = a at [0] i*[8] k*[1]\n"
                            "access 1 = b at [0] k*[8] j*[1]\n"
                            "access 2 = c at [0] j*[4] n*[1]\n"
                            "access 3 = y at [0] i*[4] n*[1]\n"
                            "code\n"
                            "  set s = 0\n"
                            "  set o = 0\n"
                            "  stage sc walk [j, n] = load(2)\n"
                            "  loop k\n"
                            "    stage sa walk [i, k] = load(0)\n"
                            "    stage sb walk [k, j] = load(1)\n"
                            "    barrier\n"
                            "    mma s += sa * sb over [k] layout 1\n"
                            "    barrier\n"
                            "  end\n"
                            "  set p = exp(s)\n"
                            "  mma o += p * sc over [j] layout 3\n"
                            "  store 3 over [i, n] layout 2 = o\n";

/* The text with one place changed, and the sentence that refuses it; "": it stays right. */
typedef struct change {
    const char *from, *to, *sentence;
} change;
static const change changes[] = {
    {"matrix", "matrix", ""},
    {"matrix 4 4 4 f16", "matrix 4 4 4 bf16", ""},
    {"matrix 4 4 4", "matrix 4 4 3", "matrices of 4 x 4 x 3: sides must be powers of two"},
    {"matrix 4 4 4 f16", "matrix 4 4 4 f32", "matrices of f32: factors are f16 or bf16"},
    {"f16 registers column*2 lanes", "f16 registers column*4 lanes",
     "the layout of a matrix's sums: two bits of a layout set the same"},
    {"left registers column*2 lanes", "left registers column*4 lanes", "two bits of a layout set the same"},
    {"matrix 4 4 4", "matrix 4 4 8", "the layout of a matrix's left factor is not one of 4 x 8"},
    {"lanes 16 subgroup 8", "lanes 16 subgroup 4", "subgroups of"},
    {"matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n", "", "is of fragments, and there is no matrix"},
    {"registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\nlayout 1",
     "registers j*2:4 j*2 lanes j*2:2 i*4 subgroups i*2:4\nlayout 1", "is not one of whole matrices of 4 x 4"},
    {"tile s float register [i, j] layout 0 fragments", "tile s float register [i, j] layout 0", ""},
    {"tile p f16 register [i, j] layout 0 left fragments", "tile p float register [i, j] layout 0",
     "the left factor 'p' must be a shared tile"},
    {"left registers column*2 lanes column*2:2 row*4", "left registers row*2 lanes column*4 row*2:2",
     "the left factor 'p' does not lie as whole matrices"},
    {"left registers column*2 lanes column*2:2 row*4\n", "", "the left factor 'p' does not lie as whole matrices"},
    {"axis k = 8 tile 4", "axis k = 8 tile 2", "no multiples of the matrix's"},
    {"store 3 over", "store 3 by 4 n matrices over", ""},
    {"store 3 over", "store 3 by 8 n matrices over", "whole matrices at once of what does not lie so"},
    {"store 3 over", "store 3 by 4 i matrices over", "whole matrices at once of what does not lie so"},
    {"set p = exp(s)", "set p by 8 j matrices = exp(s)", "whole matrices at once of what does not lie so"},
};

/* y = a b, of slices that are on their way for four steps: fetched, put, taken, multiplied. */
#define SLICES(ahead, last)                                                                                            \
    "    fetch na walk [i, k] along k ahead " ahead last " = load(0)\n"                                                \
    "    fetch nb walk [k, j] along k ahead " ahead last " = load(1)\n"
static const char ring[] =
    "kernel ring\n"
    "lanes 16 subgroup 8 numbered\n"
    "axis i = 16 tile 8 grid\n"
    "axis j = 8 tile 8\n"
    "axis k = 24 tile 4\n"
    "grid i\n"
    "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
    "left registers column*2 lanes column*2:2 row*4\n"
    "right registers row*2 lanes row*2:2 column*4\n"
    "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
    "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
    "layout 2 = [i, k] registers k*2 lanes k*2:2 i*4 subgroups i*2:4\n"
    "layout 3 = [k, j] registers k*2 j*2:4 lanes k*2:2 j*4 subgroups *2\n"
    "buffer a f16 [384] value 0\n"
    "buffer b f16 [192] value 1\n"
    "buffer y f32 [128] value 2 written\n"
    "tile s float register [i, j] layout 0 fragments\n"
    "tile fa f16 register [i, k] layout 2 left fragments slots 2 along k\n"
    "tile fb f16 register [k, j] layout 3 right fragments slots 2 along k\n"
    "tile sa f16 shared [i, k] pad 8 slots 2 along k\n"
    "tile sb f16 shared [k, j] pad 8 slots 2 along k\n"
    "tile na f16 staging [i, k] slots 2 along k\n"
    "tile nb f16 staging [k, j] slots 2 along k\n"
    "access 0 = a at [0] i*[24] k*[1]\n"
    "access 1 = b at [0] k*[8] j*[1]\n"
    "access 2 = y at [0] i*[8] j*[1]\n"
    "code\n"
    "  set s = 0\n" SLICES("0", "")
        SLICES("1", "") "  put sa walk [i, k] ahead 0 = na\n"
                        "  put sb walk [k, j] ahead 0 = nb\n" SLICES(
                            "2", "") "  barrier\n"
                                     "  take fa ahead 0 = sa\n"
                                     "  take fb ahead 0 = sb\n"
                                     "  loop k rolled by 2\n"
                                     "    put sa walk [i, k] ahead 1 = na\n"
                                     "    put sb walk [k, j] ahead 1 = nb\n" SLICES(
                                         "3", " or last") "    barrier # of a step\n"
                                                          "    take fa ahead 1 = sa\n"
                                                          "    take fb ahead 1 = sb\n"
                                                          "    mma s += fa * fb over [k] layout 1\n"
                                                          "  end\n"
                                                          "  store 2 over [i, j] layout 0 = s\n";

static const change ring_changes[] = {
    {"rolled by 2", "rolled by 2", ""},
    {"rolled by 2", "rolled",
     "instruction 20 reads one of the 2 slots that tile 'fa' has in registers, by the step of the loop over 'k' of "
     "instruction 12, which is not written out by so many"},
    {"rolled by 2", "rolled by 3", "by the step of the loop over 'k' of instruction 12, which is not written out by"},
    {"rolled by 2", "rolled by 4", "has 6 steps, and is written out by 4"},
    {"  take fa ahead 0 = sa\n", "", "slot 0 of tile 'fa' is read before instruction 17 writes it"},
    {"    take fa ahead 1 = sa\n", "", "slot 1 of tile 'fa' is read before instruction 10 writes it"},
    {"    take fa ahead 1", "    take fa ahead 0", "shared tile 'sa' is written without a workgroup barrier after"},
    {"ahead 3 or last = load(0)", "ahead 5 or last = load(0)",
     "'na' is put for step 3, and instruction 15 has fetched"},
    {"along k ahead 2 = load(1)", "along k ahead 1 = load(1)", "'nb' is put for step"},
    {"    barrier # of a step\n", "", "shared tile 'sa' is read without a workgroup barrier after instruction 13"},
    {"take fb ahead 1 = sb", "take fb ahead 1 = sa", "'fb' and 'sa' differ in type or axes"},
    {"layout 3 right fragments", "layout 3 left fragments", "the right factor 'fb' must be a shared tile"},
    {"right registers row*2 lanes row*2:2 column*4\n", "", "'fb' does not lie as whole matrices"},
    {"registers k*2 j*2:4 lanes", "registers j*2:4 k*2 lanes", "'fb' does not lie as whole matrices"},
};

/* y = a b, both read from memory by the lanes that multiply them, eight along k at a time. */
static const char stream[] = "kernel stream\n"
                             "lanes 16 subgroup 8 numbered\n"
                             "axis i = 16 tile 8 grid\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 32 tile 16\n"
                             "grid i\n"
                             "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
                             "left registers column*2 lanes column*2:2 row*4\n"
                             "right registers row*2 lanes row*2:2 column*4\n"
                             "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 1 = [i, j, k] registers j*2 j*2:4 k*16 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 2 = [i, k] registers k*8 lanes k*2:8 i*4 subgroups i*2:4\n"
                             "layout 3 = [j, k] registers k*8 j*2:4 lanes k*2:8 j*4 subgroups *2\n"
                             "buffer a f16 [512] value 0\n"
                             "buffer b f16 [256] value 1\n"
                             "buffer y f32 [128] value 2 written\n"
                             "tile s float register [i, j] layout 0 fragments\n"
                             "tile fa f16 register [i, k] layout 2 left fragments\n"
                             "tile fb f16 register [j, k] layout 3 right fragments\n"
                             "access 0 = a at [0] i*[32] k*[1]\n"
                             "access 1 = b at [0] j*[32] k*[1]\n"
                             "access 2 = y at [0] i*[8] j*[1]\n"
                             "code\n"
                             "  set s = 0\n"
                             "  loop k\n"
                             "    set fa by 8 k = load(0)\n"
                             "    set fb by 8 k = load(1)\n"
                             "    mma s += fa * fb over [k] layout 1\n"
                             "  end\n"
                             "  store 2 over [i, j] layout 0 = s\n";

static const change stream_changes[] = {
    {"by 8 k = load(1)", "= load(1)", ""},
    {"registers k*8 j*2:4 lanes k*2:8", "registers k*2 j*2:4 k*4:4 lanes k*2:2", "no lane owns runs of 8"},
    {"registers k*8 j*2:4", "registers k*2:2 j*2:4 k*2 k*2:4", "'fa' does not lie as whole matrices"},
    {"k*8 lanes k*2:8 i*4 subgroups i*2:4", "k*8 lanes k*2:8 i*4 subgroups *2", "spans 4 of the 8 elements"},
    {"by 8 k = load(1)", "by 8 j = load(1)", "no lane owns runs of 8 along axis 'j'"},
    {"buffer b f16", "buffer b f32", "has no aligned groups of 8"},
    {"access 1 = b at [0] j*[32]", "access 1 = b at [4] j*[28]", "has no aligned groups of 8"},
};

/* y = a b, of which two subgroups share out k; each makes the sums of half of the columns whole. */
static const char shares[] = "kernel shares\n"
                             "lanes 16 subgroup 8 numbered\n"
                             "axis i = 16 tile 4 grid\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 64 tile 32\n"
                             "grid i\n"
                             "matrix 4 4 4 f16 registers column*2 lanes column*2:2 row*4\n"
                             "left registers column*2 lanes column*2:2 row*4\n"
                             "right registers row*2 lanes row*2:2 column*4\n"
                             "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups *2\n"
                             "layout 1 = [i, j, k] registers j*2 j*2:4 k*16 lanes j*2:2 i*4 subgroups k*2:16\n"
                             "layout 2 = [i, k] registers k*8 lanes k*2:8 i*4 subgroups k*2:16\n"
                             "layout 3 = [j, k] registers k*8 j*2:4 lanes k*2:8 j*4 subgroups k*2:16\n"
                             "layout 4 = [i, j] registers j*2 lanes j*2:2 i*4 subgroups j*2:4\n"
                             "buffer a f16 [1024] value 0\n"
                             "buffer b f16 [512] value 1\n"
                             "buffer y f32 [128] value 2 written\n"
                             "tile s float register [i, j] layout 0 fragments\n"
                             "tile fa f16 register [i, k] layout 2 left fragments\n"
                             "tile fb f16 register [j, k] layout 3 right fragments\n"
                             "tile x float exchange [] words 64\n"
                             "tile own float register [i, j] layout 4 fragments\n"
                             "access 0 = a at [0] i*[64] k*[1]\n"
                             "access 1 = b at [0] j*[64] k*[1]\n"
                             "access 2 = y at [0] i*[8] j*[1]\n"
                             "code\n"
                             "  set s = 0\n"
                             "  loop k\n"
                             "    set fa by 8 k = load(0)\n"
                             "    set fb by 8 k = load(1)\n"
                             "    mma s += fa * fb over [k] layout 1\n"
                             "  end\n"
                             "  leave x = s over [k] layout 1 registers 0 to 3\n"
                             "  barrier\n"
                             "  gather own = add of x shares of s over [k] layout 1 registers 0 to 1\n"
                             "  store 2 over [i, j] layout 4 = own\n";

static const change share_changes[] = {
    {"layout 4 fragments", "layout 4", ""},
    {"registers j*2 lanes j*2:2 i*4 subgroups j*2:4", "registers j*2:4 lanes j*2:2 i*4 subgroups j*2",
     "register 0 of 'own' is no share of 's'"},
    {"of s over [k] layout 1 registers 0 to 1", "of s over [k] layout 1 registers 0 to 3",
     "'own' takes shares of what 's' has not left so"},
    {"of s over [k] layout 1 registers 0 to 1", "of s over [k] layout 1 registers 0 to 0",
     "'own' takes shares of what 's' has not left so"},
    {"layout 1 registers 0 to 3\n  barrier", "layout 1 registers 0 to 1\n  barrier",
     "'own' takes shares of what 's' has not left so"},
};

/* The chain where nobody knows which lane has which sum: `q` and `r` are left matrix by matrix, `s` and `o` take that. */
static const char opaque[] = "kernel opaque\n"
                             "lanes 16 subgroup 8 numbered\n"
                             "axis i = 16 tile 8 grid\n"
                             "axis j = 8 tile 8\n"
                             "axis k = 8 tile 4\n"
                             "axis n = 4 tile 4\n"
                             "grid i\n"
                             "matrix 4 4 4 f16 opaque registers column*2 lanes column*2:2 row*4\n"
                             "layout 0 = [i, j] registers j*2 j*2:4 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 1 = [i, j, k] registers j*2 j*2:4 k*4 lanes j*2:2 i*4 subgroups i*2:4\n"
                             "layout 2 = [i, n] registers n*2 lanes n*2:2 i*4 subgroups i*2:4\n"
                             "layout 3 = [i, n, j] registers n*2 j*8 lanes n*2:2 i*4 subgroups i*2:4\n"
                             "buffer a f16 [128] value 0\n"
                             "buffer b f16 [64] value 1\n"
                             "buffer c f16 [32] value 2\n"
                             "buffer y f32 [64] value 3 written\n"
                             "tile q float register [i, j] layout 0 fragments\n"
                             "tile s float register [i, j] layout 0\n"
                             "tile r float register [i, n] layout 2 fragments\n"
                             "tile o float register [i, n] layout 2\n"
                             "tile x float exchange [] words 32\n"
                             "tile sa f16 shared [i, k] pad 8\n"
                             "tile sb f16 shared [k, j] pad 8\n"
                             "tile sc f16 shared [j, n] pad 8\n"
                             "tile p float register [i, j] layout 0\n"
                             "tile sp f16 shared [i, j] pad 8\n"
                             "access 0 = a at [0] i*[8] k*[1]\n"
                             "access 1 = b at [0] k*[8] j*[1]\n"
                             "access 2 = c at [0] j*[4] n*[1]\n"
                             "access 3 = y at [0] i*[4] n*[1]\n"
                             "code\n"
                             "  set q = 0\n"
                             "  stage sc walk [j, n] = load(2)\n"
                             "  loop k\n"
                             "    stage sa walk [i, k] = load(0)\n"
                             "    stage sb walk [k, j] = load(1)\n"
                             "    barrier\n"
                             "    mma q += sa * sb over [k] layout 1\n"
                             "    barrier\n"
                             "  end\n"
                             "  leave x matrices = q registers 0 to 1\n"
                             "  barrier subgroup # between\n"
                             "  gather s matrices = x of q registers 0 to 1\n"
                             "  barrier subgroup # behind\n"
                             "  leave x matrices = q registers 2 to 3\n"
                             "  barrier subgroup\n"
                             "  gather s matrices = x of q registers 2 to 3\n"
                             "  set p = exp(s)\n"
                             "  spill sp = p\n"
                             "  set r = 0\n"
                             "  set o = 0\n"
                             "  barrier subgroup\n"
                             "  mma r += sp * sc over [j] layout 3\n"
                             "  leave x matrices = r registers 0 to 1\n"
                             "  barrier subgroup\n"
                             "  gather o matrices += x of r registers 0 to 1\n"
                             "  store 3 over [i, n] layout 2 = o\n";

static const change opaque_changes[] = {
    {"opaque registers", "opaque registers", ""},
    {"set p = exp(s)", "set p = exp(q)",
     "kernel 'opaque', instruction 16: it takes elements of 'q', which instruction 6 sums up in opaque matrices"},
    {"spill sp = p", "spill sp = q", "instruction 17: it takes elements of 'q', which instruction 6 sums up"},
    {"layout 2 = o\n", "layout 2 = r\n", "instruction 25: it takes elements of 'r', which instruction 21 sums up"},
    {"set q = 0", "set q = load(0)", "instruction 0: it takes elements of 'q', which instruction 6 sums up"},
    {"set q = 0", "set q = 1.5", ""},
    {"store 3 over", "store 3 by 4 n matrices over", "whole matrices at once of what does not lie so"},
    {"leave x matrices = q registers 0 to 1", "leave x = q over [k] layout 1 registers 0 to 1",
     "instruction 9: it takes elements of 'q', which instruction 6 sums up"},
    {"leave x matrices = q", "leave x matrices = s", "'s' is no tile of whole opaque matrices, and is left as such"},
    {"q registers 0 to 1", "q registers 0 to 2", "registers 0 to 2 of the 4 of 'q' are no whole matrices"},
    {"words 32", "words 16", "or do not fit the 16 words of 'x'"},
    {"x of q registers 2 to 3", "x of q registers 0 to 1",
     "'s' takes registers 0 to 1 of 'q', which instruction 13 has not left"},
    {"gather s matrices = x of q registers 2 to 3", "barrier", "tile 's' is read before it is written"},
    {"gather s matrices = x of q registers 2", "gather p matrices = x of q registers 2",
     "register 2 of 'p' is gathered, and of those before it only 0"},
    {"gather o matrices += x", "gather s matrices += x", "'s' and 'r' differ in type, axes or layout"},
    {"  set o = 0\n", "", "sums are added to 'o', which nothing has written"},
    {"barrier subgroup # between", "set o = 0",
     "shared tile 'x' is read without a subgroup barrier after instruction 9"},
    {"barrier subgroup # behind", "set o = 0", "shared tile 'x' is written without a subgroup barrier after"},
};

static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    size_t room = strlen(text) + strlen(to) + 1;
    char *out = malloc(room);
    assert_non_null(at);
    assert_non_null(out);
    (void)snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void check_changes(const char *whole, const change *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bench b;
        char *text = changed(whole, all[i].from, all[i].to);
        bench_open(&b, text);
        smg_status status = smg_kernel_verify(b.ctx, b.k);
        bool right = all[i].sentence[0] == 0;
        if (right != (status == SMG_OK) || !strstr(smg_context_error(b.ctx), all[i].sentence))
            fail_msg("%s: \"%s\", wanted \"%s\"", all[i].to, smg_context_error(b.ctx), all[i].sentence);
        bench_close(&b);
        free(text);
    }
}

static void test_verdicts(void **state) {
    (void)state;
    check_changes(chain, changes, SMG_COUNT_OF(changes));
    check_changes(ring, ring_changes, SMG_COUNT_OF(ring_changes));
    check_changes(stream, stream_changes, SMG_COUNT_OF(stream_changes));
    check_changes(shares, share_changes, SMG_COUNT_OF(share_changes));
    check_changes(opaque, opaque_changes, SMG_COUNT_OF(opaque_changes));
}

/* Subgroups that share out a contraction have not all of a left factor in registers. */
static void test_shared_out(void **state) {
    static const char *const step[][2] = {
        {"lanes 16 subgroup 8", "lanes 32 subgroup 8"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"subgroups i*2:4\n", "subgroups i*2:4 *2\n"},
        {"j*8 lanes n*2:2 i*4 subgroups i*2:4\n", "j*4 lanes n*2:2 i*4 subgroups i*2:4 j*2:4\n"}};
    char *text = changed(chain, "", "");
    bench b;
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(step); i++) {
        char *next = changed(text, step[i][0], step[i][1]);
        free(text);
        text = next;
    }
    bench_open(&b, text);
    assert_int_equal(smg_kernel_verify(b.ctx, b.k), SMG_INTERNAL);
    if (!strstr(smg_context_error(b.ctx), "the left factor 'p' does not lie as whole matrices"))
        fail_msg("%s", smg_context_error(b.ctx));
    bench_close(&b);
    free(text);
}

/* A graph of the repository with some text of it changed, on two targets. */
static tally try_changed(smg_context *ctx, const char *path, const char *from, const char *to, check_options o) {
    static const int64_t symbols[] = {2, 1, 33, 77};
    char *text;
    size_t size;
    smg_graph *g;
    tally all = {0};
    assert_int_equal(smg_file_read(ctx, path, &text, &size), SMG_OK);
    char *after = changed(text, from, to);
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
    assert_true(all.run >= 20 && all.masked >= 20);
}

/* The mask's numbers of keys: the second batch keeps none, the first all but every third. */
static void fill_kept(void *user, const smg_node *n, const int64_t *dims, double *data) {
    (void)user;
    if (strcmp(n->name, "kept") != 0) return;
    int64_t keys = dims[n->rank - 1];
    for (int64_t i = 0; i < dims[0] * keys; i++) data[i] = i < keys && i % 3 != 0;
}

/* What a mask adds to each key is far beyond all numbers in units of exponents, and stays itself there: a row that keeps
 * nothing has equal shares. */
static void test_added_mask(void **state) {
    tally all = try_changed(*state, "tests/graphs/attention.smg", "mask = input f32[b, 1, s, t]\n",
                            "kept = input i32[b, 1, 1, t]\nnumber = cast(kept) : f32[b, 1, 1, t]\n"
                            "one = fill 1 : f32[]\nleft = sub(one, number)\n"
                            "lowest = fill -3.4028234663852886e38 : f32[]\nmask = mul(left, lowest)\n",
                            (check_options){.fill = fill_kept});
    assert_true(all.run >= 20 && all.units >= 20);
}

/* What is printed reads back, and both modes of the interpreter give the product of the rounded factors. */
static void check_chain(const char *whole) {
    bench b;
    smg_text text;
    smg_kernel *again;
    double a[128], f[64], c[32], y[2][64];
    bench_open(&b, whole);
    assert_int_equal(smg_kernel_verify(b.ctx, b.k), SMG_OK);
    smg_text_init(&text, b.ctx);
    smg_kernel_print(b.k, &text);
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, smg_text_cstr(&text), &again), SMG_OK);
    assert_int_equal(smg_kernel_verify(b.ctx, again), SMG_OK);
    for (int i = 0; i < 128; i++) a[i] = (i * 7 % 16 - 8) / 16.0;
    for (int i = 0; i < 64; i++) f[i] = (i * 5 % 16 - 8) / 16.0;
    for (int i = 0; i < 32; i++) c[i] = (i * 3 % 16 - 8) / 16.0;
    for (int by_lane = 0; by_lane < 2; by_lane++) {
        smg_karray arrays[] = {{a, 128}, {f, 64}, {c, 32}, {y[by_lane], 64}};
        smg_status status =
            (by_lane ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, again, b.symbols, arrays, false);
        if (status != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    }
    for (int i = 0; i < 16; i++) {
        for (int n = 0; n < 4; n++) {
            double want = 0;
            for (int j = 0; j < 8; j++) {
                double sum = 0;
                for (int k = 0; k < 8; k++) sum += a[i * 8 + k] * f[k * 8 + j];
                want += smg_type_stored(SMG_TYPE_F16, exp(sum)) * c[j * 4 + n];
            }
            assert_true(fabs(y[0][i * 4 + n] - want) < 1e-12 && fabs(y[1][i * 4 + n] - want) < 1e-12);
        }
    }
    smg_text_free(&text);
    bench_close(&b);
}

static void test_chain(void **state) {
    (void)state;
    check_chain(chain);
    check_chain(opaque);
}

/* Lanes that read what they should not know, or too early, are found without the verifier, too. */
static void test_opaque_by_lane(void **state) {
    (void)state;
    static const change wrong[] = {
        {"set p = exp(s)", "set p = exp(q)", "an element of 'q' is read, and nobody knows which lane has it"},
        {"barrier subgroup # between", "set o = 0", "without a subgroup barrier between"},
        {"barrier subgroup # behind", "set o = 0", "without a subgroup barrier between"}};
    static double a[128], f[64], c[32], y[64];
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        bench b;
        char *text = changed(opaque, wrong[i].from, wrong[i].to);
        smg_karray arrays[] = {{a, 128}, {f, 64}, {c, 32}, {y, 64}};
        bench_open(&b, text);
        assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, arrays, false), SMG_INTERNAL);
        if (!strstr(smg_context_error(b.ctx), wrong[i].sentence)) fail_msg("%s", smg_context_error(b.ctx));
        bench_close(&b);
        free(text);
    }
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

/* What is printed reads back, and gives the product of 16 x depth elements and 8 columns, of which neighbours along k
 * and along columns lie so far apart. */
static void check_product(const char *whole, int depth, int along, int across) {
    bench b;
    smg_text text;
    smg_kernel *again;
    double a[1024], f[512], y[128];
    bench_open(&b, whole);
    smg_text_init(&text, b.ctx);
    smg_kernel_print(b.k, &text);
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, smg_text_cstr(&text), &again), SMG_OK);
    assert_int_equal(smg_kernel_verify(b.ctx, again), SMG_OK);
    for (int i = 0; i < 16 * depth; i++) a[i] = (i * 7 % 16 - 8) / 16.0;
    for (int i = 0; i < 8 * depth; i++) f[i] = (i * 5 % 16 - 8) / 16.0;
    for (int by_lane = 0; by_lane < 2; by_lane++) {
        smg_karray arrays[] = {{a, 16 * depth}, {f, 8 * depth}, {y, 128}};
        smg_status status =
            (by_lane ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, again, b.symbols, arrays, false);
        if (status != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
        for (int i = 0; i < 128; i++) {
            double want = 0;
            for (int k = 0; k < depth; k++) want += a[i / 8 * depth + k] * f[k * along + i % 8 * across];
            assert_true(fabs(y[i] - want) < 1e-9);
        }
    }
    smg_text_free(&text);
    bench_close(&b);
}

/* Slices that are on their way for several steps arrive where they are multiplied. */
static void test_ring(void **state) {
    (void)state;
    check_product(ring, 24, 8, 1);
}

/* So do factors whose elements along k lanes have in another order than matrices number them. */
static void test_stream(void **state) {
    (void)state;
    check_product(stream, 32, 1, 32);
}

/* So do sums that subgroups make whole a share each. */
static void test_shares(void **state) {
    (void)state;
    check_product(shares, 64, 1, 64);
}

/* Where the cache does not keep the right factor, blocks that follow each other have the same columns of it. */
static void test_rows_next(void **state) {
    smg_context *ctx = *state;
    smg_precision_plan precision;
    smg_graph *g;
    assert_int_equal(check_load(ctx, "tests/graphs/linear_gelu.smg", &g), SMG_OK);
    for (int small = 0; small < 2; small++) {
        smg_arena *arena;
        smg_target target;
        smg_space *space;
        smg_schedules schedules;
        smg_kernel *kernel;
        const char *refused;
        int64_t nominal[SMG_SPACE_AXES];
        int i = 0;
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        assert_int_equal(check_target(ctx, "h200", &target), SMG_OK);
        assert_int_equal(smg_precision_make(g, SMG_TYPE_F16, NULL, arena, &precision), SMG_OK);
        assert_int_equal(space_of(g, arena, &space), SMG_OK);
        if (small) target.cache_bytes = 2 * 256 * 256; /* the factor is as large */
        for (int a = 0; a < space->axes.count; a++) nominal[a] = 256;
        assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
        while (i < schedules.items.count && schedules.items.items[i].matrix == NULL) i++;
        assert_true(i < schedules.items.count);
        const smg_schedule *s = &schedules.items.items[i];
        const smg_lower_options options = {.name = "rows", .target = &target};
        assert_int_equal(smg_kernel_lower(s, &options, arena, &kernel, &refused), SMG_OK);
        assert_int_equal(kernel->grid.count, 2);
        assert_int_equal(kernel->grid.items[1] == s->row_axis, small);
        smg_arena_destroy(arena);
    }
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),       cmocka_unit_test(test_shared_out), cmocka_unit_test(test_rows_next),
        cmocka_unit_test(test_chain),          cmocka_unit_test(test_ring),       cmocka_unit_test(test_stream),
        cmocka_unit_test(test_shares),         cmocka_unit_test(test_masked),     cmocka_unit_test(test_added_mask),
        cmocka_unit_test(test_opaque_by_lane), cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
