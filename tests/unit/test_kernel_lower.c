/* kernel: what lowering does to a whole program: barriers that order nothing are gone, those that are left are all
 * needed; right operands lie in shared memory as their readers take them. Every candidate schedule of a few graphs is
 * looked at; that the programs compute the reference's values is test_every_schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "support/check_plan.h"

#define NODES 32

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_target target;
    smg_schedules schedules;
} fixture;

/* All candidates of the graph as one kernel, sizes nominal. */
static void start(fixture *f, const char *path, const char *text, const char *target_name) {
    smg_node_id nodes[NODES];
    int64_t nominal[SMG_SPACE_AXES], symbols[8] = {2, 4, 256, 512, 1, 1, 1, 1};
    smg_space *space;
    int count = 0;
    *f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    smg_status status =
        path != NULL ? check_load(f->ctx, path, &f->g) : smg_graph_parse(f->ctx, text, strlen(text), "text", &f->g);
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    bool *needed = SMG_ARENA_ARRAY(f->arena, bool, (size_t)f->g->nodes.count + 1);
    assert_non_null(needed);
    for (smg_node_id i = 0; i < f->g->nodes.count; i++)
        if (smg_node_computes(smg_graph_node(f->g, i)) && count < NODES) nodes[count++] = i;
    for (int o = 0; o < f->g->outputs.count; o++) needed[smg_space_source(f->g, f->g->outputs.items[o].node)] = true;
    assert_int_equal(check_target(f->ctx, target_name, &f->target), SMG_OK);
    assert_int_equal(smg_space_build(f->g, f->arena, nodes, count, needed, &space), SMG_OK);
    assert_null(space->refused);
    for (int i = 0; i < space->axes.count; i++)
        assert_true(smg_size_eval(f->g->sizes, space->axes.items[i].extent, symbols, &nominal[i]));
    smg_sched_room any = {0};
    assert_int_equal(smg_sched_candidates(space, &f->target, nominal, any, f->arena, &f->schedules), SMG_OK);
    assert_true(f->schedules.items.count > 0);
}

static void finish(fixture *f) {
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

/* NULL: refused. */
static smg_kernel *lower_as(const fixture *f, const smg_schedule *schedule) {
    smg_kernel *k;
    const char *refused;
    const smg_lower_options options = {.name = "k", .target = &f->target, .verify = true};
    smg_status status = smg_kernel_lower(schedule, &options, f->arena, &k, &refused);
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return k;
}

static smg_kernel *lower(const fixture *f, int schedule) {
    return lower_as(f, &f->schedules.items.items[schedule]);
}

static int count_kind(const smg_kernel *k, int from, int to, smg_instr_kind kind) {
    int count = 0;
    for (int i = from; i < to; i++) count += k->code.items[i].kind == kind;
    return count;
}

/* ---- barriers -------------------------------------------------------------------------------------- */

static void assert_hazard(const fixture *f, const smg_kernel *k) {
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f->ctx), "barrier after instruction"));
    smg_context_clear_error(f->ctx);
}

/* None can go, none be of a smaller scope; one subgroup alone needs none of the workgroup. */
static void every_barrier_is_needed(const fixture *f, smg_kernel *k) {
    if (smg_kernel_verify(f->ctx, k) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    int count = k->code.count;
    for (int i = 0; i < count; i++) {
        smg_instr barrier = k->code.items[i];
        if (barrier.kind != SMG_I_BARRIER) continue;
        if (barrier.scope == SMG_SCOPE_WORKGROUP && k->subgroup > 1) {
            assert_true(k->lanes > k->subgroup);
            k->code.items[i].scope = SMG_SCOPE_SUBGROUP;
            assert_hazard(f, k);
        }
        size_t behind = (size_t)(count - 1 - i) * sizeof barrier;
        memmove(&k->code.items[i], &k->code.items[i + 1], behind);
        k->code.count = count - 1;
        assert_hazard(f, k);
        memmove(&k->code.items[i + 1], &k->code.items[i], behind);
        k->code.items[i] = barrier;
        k->code.count = count;
    }
}

/* Barriers in the first loop that has `products` products and no loop in it; -1: there is no such loop. */
static int barriers_in_loop(const smg_kernel *k, int products) {
    for (int i = 0; i < k->code.count; i++) {
        if (k->code.items[i].kind != SMG_I_LOOP) continue;
        int end = i + 1;
        while (k->code.items[end].kind != SMG_I_END && k->code.items[end].kind != SMG_I_LOOP) end++;
        if (k->code.items[end].kind == SMG_I_LOOP || count_kind(k, i, end, SMG_I_MMA) != products) continue;
        if (count_kind(k, i, end, SMG_I_LEAVE) > 0) continue; /* lanes exchange between barriers of their own */
        return count_kind(k, i, end, SMG_I_BARRIER);
    }
    return -1;
}

static const char *const targets[] = {"h200", "lavapipe"};

/* Two barriers a step: for one product, and for two of which the second reads what the first one left. Where tiles
 * take turns on one memory each turn waits for the last. */
static void check_loops(const char *path, int products) {
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        fixture f;
        int loops = 0;
        start(&f, path, NULL, targets[t]);
        for (int s = 0; s < f.schedules.items.count; s++) {
            smg_kernel *k = lower(&f, s);
            if (k == NULL) continue;
            every_barrier_is_needed(&f, k);
            int barriers = barriers_in_loop(k, products);
            if (barriers < 0) continue;
            if (f.schedules.items.items[s].alone)
                assert_int_equal(barriers, 0);
            else if (f.schedules.items.items[s].reuse)
                assert_in_range(barriers, 2, 2 * products);
            else
                assert_int_equal(barriers, 2);
            loops++;
        }
        assert_true(loops > 0);
        finish(&f);
    }
}

static void a_product_has_two_barriers(void **state) {
    (void)state;
    check_loops("tests/graphs/linear_gelu.smg", 1);
}

static void a_chain_has_two_barriers(void **state) {
    (void)state;
    check_loops("tests/graphs/attention.smg", 2);
}

/* One barrier a step, whether the loop has one product or two; the memory of what is staged and spilled in it twice. */
static void check_rings(const char *path, int products) {
    fixture f;
    int loops = 0;
    start(&f, path, NULL, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        smg_schedule ring = f.schedules.items.items[s];
        if (ring.ahead == 0 || ring.reuse) continue;
        ring.slots = 2;
        smg_kernel *one = lower(&f, s), *two = lower_as(&f, &ring);
        if (one == NULL || two == NULL || barriers_in_loop(one, products) < 0) continue;
        every_barrier_is_needed(&f, two);
        assert_int_equal(barriers_in_loop(two, products), 1);
        int64_t bytes = smg_kernel_shared_bytes(one);
        assert_in_range(smg_kernel_shared_bytes(two), bytes + 1, 2 * bytes);
        loops++;
    }
    assert_true(loops > 0);
    finish(&f);
}

static void slots_save_a_barrier(void **state) {
    (void)state;
    check_rings("tests/graphs/linear_gelu.smg", 1);
    check_rings("tests/graphs/attention.smg", 2);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

/* In a subgroup, or across them from the first register on. */
static int times_joined(const smg_kernel *k, int tile) {
    int joins = 0, gathers = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        joins += in->kind == SMG_I_JOIN && in->dst == tile;
        gathers += in->kind == SMG_I_GATHER && in->dst == tile && in->first == 0;
    }
    return joins > gathers ? joins : gathers;
}

/* Two products that are only added to each other have one tile of sums, joined once where lanes share out the
 * contraction. */
static void a_sum_of_products_has_one_tile(void **state) {
    (void)state;
    int deep = 0;
    fixture f;
    start(&f, "tests/graphs/sum_of_products.smg", NULL, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        smg_kernel *k = lower(&f, s);
        if (k == NULL) continue;
        int sums = -1, products = 0;
        for (int i = 0; i < k->code.count; i++) {
            const smg_instr *in = &k->code.items[i];
            if (in->kind != SMG_I_MMA) continue;
            if (products++ > 0) assert_int_equal(in->dst, sums);
            sums = in->dst;
        }
        assert_int_equal(products, 2);
        bool depth = f.schedules.items.items[s].lane_depth > 1;
        assert_int_equal(times_joined(k, sums), depth);
        deep += depth;
    }
    assert_true(deep > 0);
    finish(&f);
}

/* ---- what products and results have in common --------------------------------------------------------- */

/* Two products of a norm's rows, each turned by what all of its heads share. */
static const char of_heads[] = "graph g\ndim rows max 4096\nx = input f32[rows, 64]\nt = input f32[rows, 8]\n"
                               "wq = constant f32[64, 32] random seed=1\nwk = constant f32[64, 16] random seed=2\n"
                               "x2 = square(x)\ntotal = sum(x2) axis=1 keep\nroot = rsqrt(total)\nn = mul(x, root)\n"
                               "q0 = contract(n, wq) \"ri,io->ro\"\nq1 = reshape(q0) : f32[rows, 4, 8]\n"
                               "k0 = contract(n, wk) \"ri,io->ro\"\nk1 = reshape(k0) : f32[rows, 2, 8]\n"
                               "c0 = cos(t)\nc = reshape(c0) : f32[rows, 1, 8]\nq = mul(q1, c)\nk = mul(k1, c)\n"
                               "output q = q\noutput k = k\n";

/* Products in turn read one tile, which is filled once a step, by whatever way. */
static void what_products_share_is_staged_once(void **state) {
    (void)state;
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        fixture f;
        int pairs = 0;
        start(&f, NULL, of_heads, targets[t]);
        for (int s = 0; s < f.schedules.items.count; s++) {
            smg_kernel *k = lower(&f, s);
            for (int i = 0, last = -1; k != NULL && i < k->code.count; i++) {
                const smg_instr *in = &k->code.items[i];
                bool staged = in->kind == SMG_I_MMA && k->tiles.items[in->a].residence == SMG_SHARED;
                if (!staged || smg_kernel_loop_around(k, i) < 0) continue;
                bool beside = last >= 0 && smg_kernel_loop_around(k, last) == smg_kernel_loop_around(k, i);
                if (beside) assert_int_equal(k->code.items[last].a, in->a);
                pairs += beside;
                last = i;
            }
        }
        assert_true(pairs > 0);
        finish(&f);
    }
}

static bool has_prim(const smg_exprs *pool, smg_expr expr, smg_prim prim) {
    if (expr == SMG_EXPR_NONE) return false;
    smg_expr_node n = *smg_expr_get(pool, expr);
    bool found = n.prim == prim;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) found = found || has_prim(pool, n.arg[i], prim);
    return found;
}

/* The angles of all heads are no heads' own: a tile without their axes has them, once for each stretch of the program. */
static void what_heads_share_is_computed_once(void **state) {
    (void)state;
    fixture f;
    int kernels = 0;
    start(&f, NULL, of_heads, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        smg_kernel *k = lower(&f, s);
        int angles = 0;
        for (int i = 0; k != NULL && i < k->code.count; i++) {
            const smg_instr *in = &k->code.items[i];
            if (!has_prim(k->exprs, in->expr, SMG_PRIM_COS)) continue;
            assert_int_equal(in->kind, SMG_I_SET);
            const smg_tile *t = &k->tiles.items[in->dst];
            for (int n = 0; n < t->axis_count; n++) {
                int64_t extent = 0;
                bool fixed = smg_size_is_const(k->sizes, k->axes.items[t->axis[n]].extent, &extent);
                assert_true(!fixed || extent == 8);
            }
            angles++;
        }
        assert_in_range(angles, k != NULL, 2);
        kernels += angles == 1;
    }
    assert_true(kernels > 0);
    finish(&f);
}

/* ---- loads ----------------------------------------------------------------------------------------- */

/* The first SET that is a load of the access's buffer, in front of the instruction; -1. */
static int load_of(const smg_kernel *k, const char *buffer) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        int access = in->kind == SMG_I_SET ? smg_kernel_plain_load(k, in->expr) : -1;
        if (access >= 0 && strcmp(k->buffers.items[k->accesses.items[access].buffer].name, buffer) == 0) return i;
    }
    return -1;
}

/* Kernels in which what is added is loaded in front of the product's loop, right behind it, or further behind. */
typedef struct loads {
    int ahead, between, behind;
} loads;

/* In front of the loop where lanes have half of their registers left then, where a core has other lanes to run
 * meanwhile; right behind it, before lanes join their sums, where the factors themselves come straight from memory. */
static loads count_loads(const char *rows, const char *target) {
    char text[400];
    fixture f;
    loads l = {0};
    snprintf(text, sizeof text,
             "graph g\nx = input f32[%s, 2048]\nw = constant f32[2048, 4096] random seed=1\n"
             "r = input f32[%s, 4096]\np = contract(x, w) \"sk,ko->so\"\ny = add(p, r)\noutput y = y\n",
             rows, rows);
    start(&f, NULL, text, target);
    for (int s = 0; s < f.schedules.items.count; s++) {
        smg_kernel *k = f.schedules.items.items[s].matrix == NULL ? lower(&f, s) : NULL;
        if (k == NULL) continue;
        int load = load_of(k, "r"), loop = 0;
        while (loop < k->code.count && k->code.items[loop].kind != SMG_I_LOOP) loop++;
        if (load < 0 || loop == k->code.count) continue;
        int end = smg_kernel_loop_end(k, loop);
        if (load < loop) assert_true(2 * smg_kernel_registers(k) <= f.target.registers_lane);
        assert_false(load < loop && f.schedules.items.items[s].direct);
        l.ahead += load < loop;
        l.between += load == end + 1 && count_kind(k, load, k->code.count, SMG_I_JOIN) > 0;
        l.behind += load > loop;
    }
    finish(&f);
    return l;
}

static void what_is_added_is_loaded_ahead(void **state) {
    (void)state;
    loads many = count_loads("4096", "h200"), one = count_loads("1", "h200"), cpu = count_loads("4096", "lavapipe");
    assert_true(many.ahead > 0 && many.behind > 0);
    assert_true(one.between > 0);
    assert_true(cpu.ahead == 0 && cpu.behind > 0);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

/* The same schedule that does not reuse memory; it stands behind the ones that do. */
static const smg_schedule *without_reuse(const fixture *f, int s) {
    const smg_schedule *all = f->schedules.items.items;
    int behind = s + 1;
    while (all[behind].reuse || all[behind].ahead != all[s].ahead) behind++;
    assert_memory_equal(all[behind].tile, all[s].tile, sizeof all[s].tile);
    return &all[behind];
}

/* Tiles of a chain's products take turns: less memory, and no memory holds two that are needed together (the
 * verifier's word; the interpreter's results are test_every_schedule's). */
static void a_chain_reuses_memory(void **state) {
    (void)state;
    fixture f;
    int reused = 0;
    start(&f, "tests/graphs/attention.smg", NULL, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        if (!f.schedules.items.items[s].reuse) continue;
        const smg_schedule *plain = without_reuse(&f, s);
        smg_kernel *k = lower(&f, s), *other = lower(&f, (int)(plain - f.schedules.items.items));
        assert_int_equal(k != NULL, other != NULL);
        if (k == NULL) continue;
        if (smg_kernel_verify(f.ctx, k) != SMG_OK) fail_msg("%s", smg_context_error(f.ctx));
        if (count_kind(k, 0, k->code.count, SMG_I_MMA) < 2) continue;
        assert_true(smg_kernel_shared_bytes(k) < smg_kernel_shared_bytes(other));
        reused++;
    }
    assert_true(reused > 0);
    finish(&f);
}

/* ---- layout ---------------------------------------------------------------------------------------- */

/* Both operands' runs go along k, whichever is on the right. */
static const char along_k[] = "graph along_k\n"
                              "x = input f32[256, 128]\n"
                              "w = input f32[192, 128]\n"
                              "y = contract(x, w) \"ri,oi->ro\" : f32[256, 192]\n"
                              "output y = y\n";
static const char along_columns[] = "graph along_columns\n"
                                    "x = input f32[128, 256]\n"
                                    "w = input f32[128, 192]\n"
                                    "y = contract(x, w) \"ir,io->ro\" : f32[256, 192]\n"
                                    "output y = y\n";

static const char large[] = "graph large\n"
                            "x = input f32[2048, 512]\n"
                            "w = input f32[1024, 512]\n"
                            "y = contract(x, w) \"ri,oi->ro\" : f32[2048, 1024]\n"
                            "output y = y\n";

/* The last axis of the right operand in shared memory: -1 refused or no such thing. */
static int last_axis(const smg_kernel *k, int *out_along) {
    for (int i = 0; k != NULL && i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        const smg_tile *b = &k->tiles.items[in->b];
        assert_int_equal(in->axis_count, 1);
        *out_along = in->axes[0];
        return b->axis[b->axis_count - 1];
    }
    return -1;
}

static void check_layout(const char *text, bool turned) {
    int by_vec[5] = {0};
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        fixture f;
        start(&f, NULL, text, targets[t]);
        for (int s = 0; s < f.schedules.items.count; s++) {
            smg_kernel *k = lower(&f, s);
            int along = -1, last = last_axis(k, &along);
            if (last < 0) continue;
            const smg_schedule *schedule = &f.schedules.items.items[s];
            bool columns_last = schedule->vec > 1 || !turned;
            assert_int_equal(last != along, columns_last);
            assert_int_not_equal(last, schedule->row_axis);
            by_vec[schedule->vec]++;
        }
        finish(&f);
    }
    assert_true(by_vec[1] > 0 && by_vec[4] > 0);
}

static void columns_lie_last_for_runs_of_columns(void **state) {
    (void)state;
    check_layout(along_k, true);
    check_layout(along_columns, false);
}

/* Left operands lie by rows where lanes own runs of rows, else by k; a tile is clamped along all axes but k. */
static void rows_lie_last_for_runs_of_rows(void **state) {
    (void)state;
    int runs[5] = {0};
    fixture f;
    start(&f, NULL, large, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        const smg_schedule *schedule = &f.schedules.items.items[s];
        smg_kernel *k = schedule->direct || schedule->row_axis < 0 ? NULL : lower(&f, s);
        for (int i = 0; k != NULL && i < k->code.count; i++) {
            const smg_instr *in = &k->code.items[i];
            if (in->kind != SMG_I_MMA) continue;
            const smg_tile *a = &k->tiles.items[in->a];
            int run = schedule->row_run > 1 ? schedule->row_axis : in->axes[0];
            assert_int_equal(a->axis[a->axis_count - 1], run);
            assert_false(smg_tile_clamps(a, in->axes[0]));
            assert_true(smg_tile_clamps(a, schedule->row_axis));
            runs[schedule->row_run]++;
        }
    }
    assert_true(runs[1] > 0 && runs[4] > 0);
    finish(&f);
}

/* The same program with other lanes is laid out anew. */
static void retiling_lays_out_anew(void **state) {
    (void)state;
    fixture f;
    int one = -1, four = -1, along = -1;
    start(&f, NULL, along_k, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        if (last_axis(lower(&f, s), &along) < 0) continue;
        const smg_schedule *schedule = &f.schedules.items.items[s];
        if (schedule->vec == 1 && one < 0) one = s;
        if (one >= 0 && schedule->vec == 4 && schedule->row_axis == f.schedules.items.items[one].row_axis &&
            schedule->ahead == f.schedules.items.items[one].ahead &&
            (schedule->lane_depth > 1) == (f.schedules.items.items[one].lane_depth > 1))
            four = s;
    }
    assert_true(one >= 0 && four >= 0);
    const smg_lower_options options = {.name = "k", .target = &f.target, .verify = true};
    const smg_schedule *all = f.schedules.items.items;
    smg_kernel *structure, *k;
    const char *refused;
    assert_int_equal(smg_kernel_structure(&all[one], &options, f.arena, &structure, &refused), SMG_OK);
    for (int i = 0; i < 3; i++) {
        if (smg_kernel_fit(structure, &all[i == 1 ? four : one], &options, f.arena, &k, &refused) != SMG_OK)
            fail_msg("%s", smg_context_error(f.ctx));
        assert_int_equal(last_axis(k, &along) == along, i != 1);
    }
    assert_false(smg_kernel_laid_out(structure));
    finish(&f);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static bool spilled(const smg_kernel *k, int tile) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_SPILL && k->code.items[i].dst == tile) return true;
    return false;
}

static bool over_lanes(const smg_kernel *k, const smg_instr *product, int axis) {
    return smg_layout_local_mask(&k->layouts.items[product->layout], &axis, 1) != 0;
}

/* The last of three products has both factors from the two before; rows of one are not those of the other, and both
 * are shared out by lanes. */
static void products_have_rows_of_their_own(void **state) {
    (void)state;
    int own = 0;
    fixture f;
    start(&f, "tests/graphs/computed_factors.smg", NULL, "h200");
    for (int s = 0; s < f.schedules.items.count; s += 7) {
        const smg_schedule *schedule = &f.schedules.items.items[s];
        smg_kernel *k = lower(&f, s);
        const smg_instr *product[3];
        int count = 0;
        for (int i = 0; k != NULL && i < k->code.count; i++)
            if (k->code.items[i].kind == SMG_I_MMA && count < 3) product[count++] = &k->code.items[i];
        if (k == NULL) continue;
        assert_int_equal(count, 3);
        assert_true(spilled(k, product[2]->a) && spilled(k, product[2]->b));
        if (schedule->lane_rows < 2 || schedule->more_rows[0] < 0) continue;
        int rows = schedule->row_axis, more = schedule->more_rows[0];
        const smg_layout *first = &k->layouts.items[product[0]->layout];
        int lacks = smg_layout_span(first, rows) > 1 ? 1 : 0;
        own += over_lanes(k, product[1 - lacks], rows) && over_lanes(k, product[lacks], more);
        assert_int_equal(smg_layout_span(&k->layouts.items[product[lacks]->layout], rows), 1);
    }
    assert_true(own > 0);
    finish(&f);
}

/* ---- passes ------------------------------------------------------------------------------------------ */

typedef struct pass_log {
    fixture *f;
    int count;
    bool laid; /* the program has layouts */
} pass_log;

/* Every pass leaves a program that prints and reads again; layouts come once and stay. */
static smg_status look(void *user, int pass, const smg_kernel *k) {
    pass_log *log = user;
    smg_kernel *again;
    smg_text text, second;
    assert_int_equal(pass, log->count++);
    smg_text_init(&text, log->f->ctx);
    smg_text_init(&second, log->f->ctx);
    smg_kernel_print(k, &text);
    if (smg_kernel_parse(log->f->arena, log->f->g->sizes, smg_text_cstr(&text), &again) != SMG_OK)
        fail_msg("%s", smg_context_error(log->f->ctx));
    smg_kernel_print(again, &second);
    assert_string_equal(smg_text_cstr(&text), smg_text_cstr(&second));
    smg_text_free(&text);
    smg_text_free(&second);
    bool laid = smg_kernel_laid_out(k);
    assert_true(laid || !log->laid);
    log->laid = laid;
    return SMG_OK;
}

static smg_status stop(void *user, int pass, const smg_kernel *k) {
    const pass_log *log = user;
    (void)k;
    return pass < 2 ? SMG_OK : smg_fail(log->f->ctx, SMG_INVALID, "seen enough");
}

static void every_pass_leaves_a_program(void **state) {
    (void)state;
    fixture f;
    smg_kernel *k;
    const char *refused;
    start(&f, "docs/attention.smg", NULL, "h200");
    pass_log log = {.f = &f};
    smg_lower_options options = {.name = "k", .target = &f.target, .verify = true, .after = look, .user = &log};
    int lowered = 0;
    for (int s = 0; s < f.schedules.items.count; s += 97) {
        log.count = 0;
        log.laid = false;
        assert_int_equal(smg_kernel_lower(&f.schedules.items.items[s], &options, f.arena, &k, &refused), SMG_OK);
        if (k == NULL) continue;
        assert_int_equal(log.count, smg_lower_pass_count());
        assert_true(log.laid);
        lowered++;
    }
    assert_true(lowered > 0);
    options.after = stop;
    assert_int_equal(smg_kernel_lower(&f.schedules.items.items[0], &options, f.arena, &k, &refused), SMG_INVALID);
    assert_string_equal(smg_context_error(f.ctx), "seen enough");
    finish(&f);
}

/* ---- limits ------------------------------------------------------------------------------------------ */

/* One operand lies turned, so that no two of its eight axes are one: a maximum over seven of them at once. */
static const char seven_axes[] = "graph axes\n"
                                 "x = input f32[2, 2, 2, 2, 2, 2, 2, 3]\n"
                                 "y = input f32[3, 2, 2, 2, 2, 2, 2, 2]\n"
                                 "t = transpose(y) perm=[7, 6, 5, 4, 3, 2, 1, 0] : f32[2, 2, 2, 2, 2, 2, 2, 3]\n"
                                 "z = mul(x, t)\n"
                                 "r = reshape(z) : f32[2, 192]\n"
                                 "m = reduce_max(r) axis=1\n"
                                 "output m = m\n";

/* Runs the plan of fewest kernels; how many it has. */
static int steps_of(fixture *f, int64_t size) {
    const int64_t symbols[8] = {size};
    check_options o = {.target = "h200",
                       .symbols = symbols,
                       .int_limit = 6,
                       .tolerance = 1e-5,
                       .plan.objective = SMG_OBJECTIVE_DISPATCHES};
    check_result result;
    if (check_plan(f->ctx, f->g, &o, &result) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(result.pass);
    return result.steps;
}

static void too_many_axes_are_refused(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, seven_axes, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        smg_kernel *k;
        const char *refused;
        smg_schedule *schedule = &f.schedules.items.items[s];
        const smg_lower_options options = {.name = "k", .target = &f.target};
        assert_int_equal(smg_kernel_lower(schedule, &options, f.arena, &k, &refused), SMG_OK);
        assert_null(k);
        assert_string_equal(refused, "a tile has too many axes");
    }
    assert_int_equal(steps_of(&f, 0), 2);
    finish(&f);
}

/* The same where one of the two is cheap enough to be computed where it is read: then it is not. */
static const char cheap_axes[] = "graph axes\n"
                                 "x = input f32[2, 2, 2, 2, 2, 2, 2, 3]\n"
                                 "y = input f32[3, 2, 2, 2, 2, 2, 2, 2]\n"
                                 "t = transpose(y) perm=[7, 6, 5, 4, 3, 2, 1, 0] : f32[2, 2, 2, 2, 2, 2, 2, 3]\n"
                                 "z = relu(t)\n"
                                 "m = contract(x, z) \"abcdefgh,abcdefgh->a\" : f32[2]\n"
                                 "output m = m\n";

static void crowded_operands_get_kernels(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, cheap_axes, "h200");
    assert_int_equal(steps_of(&f, 0), 2);
    finish(&f);
}

/* ---- reads ------------------------------------------------------------------------------------------- */

/* Rows that begin again after every third one, from the last to the first: the quotient runs backwards. */
static const char turned_rows[] = "graph rows\n"
                                  "x = input f32[5, 3, 4]\n"
                                  "b = slice(x) axis=1 begin=2 step=-1 : f32[5, 3, 4]\n"
                                  "r = reshape(b) : f32[3, 5, 4]\n"
                                  "m = reduce_min(r) axis=2\n"
                                  "output m = m\n";

static void indices_run_backwards(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, turned_rows, "h200");
    steps_of(&f, 0);
    finish(&f);
}

/* Rows of a table that lies backwards, four places behind a border: in front of it the sum would be negative. */
static const char bordered_rows[] = "graph rows\n"
                                    "x = input f32[3, 2, 4]\n"
                                    "ids = input i32[9]\n"
                                    "b = slice(x) axis=0 begin=2 step=-1 : f32[3, 2, 4]\n"
                                    "s = add(x, b)\n"
                                    "r = reshape(s) : f32[6, 4]\n"
                                    "g = gather(r, ids) : f32[9, 4]\n"
                                    "w = window(g) axis=1 begin=-4 step=1 dilation=1 fill=2 : f32[9, 8, 1]\n"
                                    "v = reshape(w) : f32[9, 8]\n"
                                    "y = exp(v)\n"
                                    "output y = y\n";

static void indices_run_backwards_within_a_border(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, bordered_rows, "h200");
    assert_int_equal(steps_of(&f, 0), 1);
    finish(&f);
}

/* A left operand that is the same for every k, in the loop over k. */
static const char even_rows[] = "graph rows\n"
                                "dim s max 512\n"
                                "w = input f32[s, 4]\n"
                                "d = input f32[1, 1]\n"
                                "two = fill 2 : f32[1, s]\n"
                                "q = div(two, d)\n"
                                "top = reduce_max(q) axis=1 keep\n"
                                "low = min(q, top)\n"
                                "y = contract(low, w) \"ca,ad->cd\" : f32[1, 4]\n"
                                "output y = y\n";

static void operands_may_lack_k(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, even_rows, "h200");
    steps_of(&f, 300);
    finish(&f);
}

/* ---- updates ----------------------------------------------------------------------------------------- */

/* Each x has a minimum of its own, and the product sums over x: no one factor makes up for their changes. */
static const char many_minima[] = "graph minima\n"
                                  "a = input f32[17, 4, 3]\n"
                                  "w = input f32[4, 3, 2]\n"
                                  "low = reduce_min(a) axis=2 keep\n"
                                  "e = sub(a, low)\n"
                                  "f = exp(e)\n"
                                  "c = contract(f, w) \"axy,xyz->az\" : f32[17, 2]\n"
                                  "keep = input bool[1, 2]\n"
                                  "zero = fill 0 : f32[]\n"
                                  "y = select(keep, c, zero)\n"
                                  "output y = y\n";

static void updates_are_for_whole_sums(void **state) {
    (void)state;
    fixture f;
    start(&f, NULL, many_minima, "h200");
    steps_of(&f, 0);
    finish(&f);
}

/* ---- slices ----------------------------------------------------------------------------------------- */

/* An image in patches of 16 by 16 pixels: of the two axes that are as long, slices go along the one in which pixels lie
 * side by side. Along the other one every element was a read of its own, and no matrix had rows side by side. */
static void slices_run_along_memory(void **state) {
    static const char text[] = "graph patches\n"
                               "dim b\n"
                               "x = input f32[b, 3, 4, 16, 4, 16]\n"
                               "w = constant f32[64, 3, 16, 16] random seed=1\n"
                               "y = contract(x, w) \"bcgphq,ocpq->bgho\"\n"
                               "output y = y\n";
    fixture f;
    int slices = 0;
    (void)state;
    start(&f, NULL, text, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        const smg_schedule *schedule = &f.schedules.items.items[s];
        const smg_sview *x = &schedule->space->views.items[schedule->space->nodes.items[0].operand[0].view];
        for (int i = 0; i < x->axis_count; i++) {
            int64_t stride = 0;
            assert_true(smg_size_is_const(f.g->sizes, x->stride[i], &stride) || x->axis[i] == 0);
            if (stride == 64) assert_int_equal(schedule->tile[x->axis[i]], 1); /* down a patch */
            slices += stride == 1 && schedule->tile[x->axis[i]] >= 8;
        }
    }
    assert_int_equal(slices, f.schedules.items.count);
    finish(&f);
}

/* ---- steps that are not whole ------------------------------------------------------------------------ */

static int count_ranges(const smg_kernel *k, bool whole) {
    int count = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        count += in->kind == SMG_I_LOOP && in->range != NULL && smg_kernel_loop_is_whole(k, in) == whole;
    }
    return count;
}

/* Loops over slices of a row, and those of them that were peeled. */
static void count_peeled(const char *columns, const char *target, int *out_loops, int *out_peeled) {
    fixture f;
    char text[256];
    snprintf(text, sizeof text,
             "graph sums\ndim rows\nx = input f32[rows, %s]\ne = exp(x)\ny = sum(e) axis=-1\noutput y = y\n", columns);
    start(&f, NULL, text, target);
    *out_loops = *out_peeled = 0;
    for (int s = 0; s < f.schedules.items.count; s++) {
        const smg_kernel *k = lower(&f, s);
        if (k == NULL) continue;
        int loops = count_kind(k, 0, k->code.count, SMG_I_LOOP), peeled = count_ranges(k, true);
        assert_int_equal(count_ranges(k, false), peeled); /* a step behind each */
        *out_loops += loops - peeled;
        *out_peeled += peeled;
    }
    finish(&f);
}

static void the_last_step_asks(void **state) {
    int loops, peeled;
    (void)state;
    count_peeled("50000", "h200", &loops, &peeled);
    assert_true(peeled > loops / 2);                /* a row may be little more than a slice */
    count_peeled("65536", "h200", &loops, &peeled); /* it comes out even */
    assert_true(loops > 0 && peeled == 0);
    count_peeled("50000", "lavapipe", &loops, &peeled); /* checks cost little, another body its building */
    assert_true(loops > 0 && peeled == 0);
}

/* ---- neighbours, where sizes allow ------------------------------------------------------------------- */

static const char biased[] = "graph biased\n"
                             "dim s max 4096\n"
                             "q = input f16[8, s, 64]\n"
                             "k = input f16[8, s, 64]\n"
                             "v = input f16[8, s, 64]\n"
                             "bias = input f16[8, s, s]\n"
                             "scores = contract(q, k) \"hid,hjd->hij\"\n"
                             "biased = add(scores, bias)\n"
                             "top = reduce_max(biased) axis=-1 keep\n"
                             "low = sub(biased, top)\n"
                             "weight = exp(low)\n"
                             "total = sum(weight) axis=-1 keep\n"
                             "share = div(weight, total)\n"
                             "y = contract(share, v) \"hij,hjd->hid\"\n"
                             "output y = y\n";

/* Rows of the bias are as long as a sequence: its loads go by pairs where that is even. As parts of an expression they
 * would go one by one. */
static void loads_go_by_pairs_where_sizes_allow(void **state) {
    fixture f;
    int made = 0;
    (void)state;
    start(&f, NULL, biased, "h200");
    for (int s = 0; s < f.schedules.items.count; s++) {
        if (f.schedules.items.items[s].matrix == NULL) continue;
        const smg_kernel *k = lower(&f, s);
        int at = k != NULL ? load_of(k, "bias") : -1;
        if (at < 0) continue;
        const smg_instr *in = &k->code.items[at];
        int access = smg_kernel_plain_load(k, in->expr);
        assert_int_equal(in->wide[0].width, SMG_PAIR);
        assert_int_equal(smg_access_aligned(k, access, in->wide[0]), SMG_ALIGNED_BY_SIZES);
        made++;
    }
    assert_true(made > 0);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_has_two_barriers),
        cmocka_unit_test(a_chain_has_two_barriers),
        cmocka_unit_test(slices_run_along_memory),
        cmocka_unit_test(slots_save_a_barrier),
        cmocka_unit_test(a_sum_of_products_has_one_tile),
        cmocka_unit_test(what_products_share_is_staged_once),
        cmocka_unit_test(what_heads_share_is_computed_once),
        cmocka_unit_test(what_is_added_is_loaded_ahead),
        cmocka_unit_test(a_chain_reuses_memory),
        cmocka_unit_test(columns_lie_last_for_runs_of_columns),
        cmocka_unit_test(rows_lie_last_for_runs_of_rows),
        cmocka_unit_test(retiling_lays_out_anew),
        cmocka_unit_test(every_pass_leaves_a_program),
        cmocka_unit_test(too_many_axes_are_refused),
        cmocka_unit_test(crowded_operands_get_kernels),
        cmocka_unit_test(indices_run_backwards),
        cmocka_unit_test(indices_run_backwards_within_a_border),
        cmocka_unit_test(operands_may_lack_k),
        cmocka_unit_test(updates_are_for_whole_sums),
        cmocka_unit_test(products_have_rows_of_their_own),
        cmocka_unit_test(the_last_step_asks),
        cmocka_unit_test(loads_go_by_pairs_where_sizes_allow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
