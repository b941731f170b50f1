/* Spaces of small graphs: common axes, what may be cut and the reasons why not, views as relabelings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/sched.h"
#include "slice/slice.h"
#include "space/space.h"
#include "support/check_plan.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_space *space;
    smg_text why;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    smg_text_init(&f.why, f.ctx);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_text_free(&f->why);
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void build(fixture *f) {
    assert_int_equal(check_space(f->g, f->arena, &f->space), SMG_OK);
}

static void parse(fixture *f, const char *text) {
    if (smg_graph_parse(f->ctx, text, strlen(text), "test", &f->g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    build(f);
}

static void load(fixture *f, const char *path) {
    assert_int_equal(check_load(f->ctx, path, &f->g), SMG_OK);
    build(f);
    assert_null(f->space->refused);
}

/* Extents of axes, in their order: "b*s 128". */
static const char *extents(fixture *f, smg_axis_set set) {
    smg_text text;
    smg_text_init(&text, f->ctx);
    for (int a = 0; a < f->space->axes.count; a++) {
        if (!(set & SMG_AXIS_BIT(a))) continue;
        if (text.length > 0) smg_text_add(&text, " ");
        smg_size_print(f->g->sizes, f->space->axes.items[a].extent, &text);
    }
    const char *result = smg_arena_string(f->arena, smg_text_cstr(&text));
    smg_text_free(&text);
    return result;
}

static const char *spatial(fixture *f) {
    return extents(f, smg_slice_spatial(f->space, &f->why));
}

static bool says(const fixture *f, const char *part) {
    return strstr(smg_text_cstr(&f->why), part) != NULL;
}

static void product_cuts_rows_and_columns(void **state) {
    fixture *f = *state;
    parse(f, "graph p\ndim m\na = input f32[m, 40]\nb = input f32[40, 24]\n"
             "y = contract(a, b) \"mk,kn->mn\"\noutput y = y\n");
    assert_null(f->space->refused);
    assert_int_equal(f->space->axes.count, 3);
    assert_string_equal(spatial(f), "m 24");
    assert_true(says(f, "y is all-to-one along it"));
}

static void row_reduction_cuts_rows(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/softmax.smg");
    assert_int_equal(f->space->axes.count, 2);
    assert_string_equal(spatial(f), "rows");
    assert_true(says(f, "all-to-one"));
}

static void centred_rows_cut_rows(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/layernorm.smg");
    assert_int_equal(f->space->axes.count, 2);
    assert_string_equal(spatial(f), "rows");
}

static void columns_are_cut_where_blocks_compute_rows_anew(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/rmsnorm_gemm.smg");
    assert_string_equal(spatial(f), "rows");
    assert_string_equal(extents(f, smg_slice_anew(f->space)), "48");
    smg_graph_destroy(f->g);
    load(f, "tests/graphs/attention.smg"); /* not products */
    assert_int_equal(smg_slice_anew(f->space), 0);
    smg_graph_destroy(f->g);
    load(f, "tests/graphs/softmax.smg");
    assert_int_equal(smg_slice_anew(f->space), 0);
}

static void heads_cut_batch_head_and_queries(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/attention.smg");
    assert_string_equal(spatial(f), "b h s");
    assert_true(says(f, "all-to-one"));
    assert_true(says(f, "needed over the whole of it"));
}

static void views_are_relabelings(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/attention_views.smg");
    assert_string_equal(spatial(f), "b 3 s");
}

static void neighbours_that_are_one_run_merge(void **state) {
    fixture *f = *state;
    parse(f, "graph c\ndim b\ndim s\nx = input f32[b, s, 16]\nw = input f32[16, 8]\n"
             "y = contract(x, w) \"bsk,kn->bsn\"\nz = tanh(y)\noutput z = z\n");
    assert_int_equal(f->space->axes.count, 3);
    assert_string_equal(spatial(f), "b*s 8");
}

static void slices_of_split_axes_are_shifts(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 24]\nv = reshape(x) : f32[n, 2, 12]\n"
             "h = slice(v) axis=1 begin=1 count=1 step=1 : f32[n, 1, 12]\ny = neg(h)\noutput y = y\n");
    assert_null(f->space->refused);
    const smg_sview *view = &f->space->views.items[f->space->nodes.items[0].operand[0].view];
    assert_int_equal(view->offset, smg_size_const(f->g->sizes, 12));
}

static void shifted_intermediate_is_refused(void **state) {
    fixture *f = *state;
    parse(f, "graph s\nx = input f32[24, 3]\ne = sum(x) axis=1\nh = slice(e) axis=0 begin=2 count=5 step=1 : f32[5]\n"
             "y = neg(h)\noutput y = y\n");
    assert_non_null(f->space->refused);
    assert_non_null(strstr(f->space->refused, "shifted"));
}

static const smg_snode *node_of(const fixture *f, const char *name) {
    for (int i = 0; i < f->space->nodes.count; i++)
        if (strcmp(smg_graph_describe(f->g, f->space->nodes.items[i].node), name) == 0)
            return &f->space->nodes.items[i];
    fail_msg("no node %s", name);
    return NULL;
}

/* The one pick of operand k of the node: along an axis of `extent`, which is held. */
static const smg_spick *pick_of(const fixture *f, const char *name, int k, int64_t extent) {
    const smg_sread *read = node_of(f, name)->operand[k].read;
    assert_non_null(read);
    assert_int_equal(read->pick_count, 1);
    const smg_saxis *axis = &f->space->axes.items[read->pick[0].axis];
    assert_true(axis->held);
    assert_int_equal(axis->extent, smg_size_const(f->g->sizes, extent));
    return &read->pick[0];
}

static void equal_parts_are_picked(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 5]\nw = input f32[36, 5]\ng = contract(x, w) \"ri,oi->ro\"\n"
             "a = slice(g) axis=1 begin=12 : f32[n, 12]\nb = slice(g) axis=1 begin=24 : f32[n, 12]\n"
             "y = mul(a, b)\noutput y = y\n");
    assert_null(f->space->refused);
    assert_string_equal(spatial(f), "n 12");
    assert_int_equal(pick_of(f, "y", 0, 3)->at, 1);
    assert_int_equal(pick_of(f, "y", 1, 3)->at, 2);
    /* An axis that is held does not merge with its neighbour, and the reader does not have it. */
    assert_int_equal(f->space->axes.count, 4);
    assert_int_equal(node_of(f, "y")->iterates & SMG_AXIS_BIT(pick_of(f, "y", 0, 3)->axis), 0);
}

static void strided_parts_are_picked(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 5]\nw = input f32[36, 5]\ng = contract(x, w) \"ri,oi->ro\"\n"
             "a = slice(g) axis=1 begin=0 step=3 : f32[n, 12]\nb = slice(g) axis=1 begin=2 step=3 : f32[n, 12]\n"
             "y = mul(a, b)\noutput y = y\n");
    assert_null(f->space->refused);
    assert_int_equal(pick_of(f, "y", 0, 3)->at, 0);
    assert_int_equal(pick_of(f, "y", 1, 3)->at, 2);
}

static void halves_change_over(void **state) {
    fixture *f = *state;
    load(f, "tests/graphs/rotary_projection.smg");
    assert_null(f->space->refused);
    assert_int_equal(pick_of(f, "minus", 0, 2)->at, 1);
    const smg_spick *p = pick_of(f, "over", 2, 2);
    assert_int_equal(p->at, 0);
    assert_int_equal(node_of(f, "over")->operand[2].read->layer_count, 1);
    /* What is picked from is an axis of the reader, too, which no workgroup cuts. */
    assert_true(node_of(f, "over")->iterates & SMG_AXIS_BIT(p->axis));
    assert_string_equal(spatial(f), "batch sequence 4 8");
}

static void short_axes_turn(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 3, 5]\nw = input f32[3, 5]\ng = contract(x, w) \"rgi,gi->rg\"\n"
             "b = slice(g) axis=1 begin=2 step=-1 : f32[n, 3]\ny = mul(g, b)\noutput y = y\n");
    assert_null(f->space->refused);
    const smg_spick *p = pick_of(f, "y", 1, 3);
    assert_int_equal(p->from, p->axis);
    assert_null(node_of(f, "y")->operand[0].read);
}

/* Parts that do not divide the axis, and single elements of a long one. */
static void uneven_parts_are_refused(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 5]\nw = input f32[36, 5]\ng = contract(x, w) \"ri,oi->ro\"\n"
             "a = slice(g) axis=1 begin=4 : f32[n, 10]\ny = neg(a)\noutput y = y\n");
    assert_non_null(f->space->refused);
    smg_graph_destroy(f->g);
    parse(f, "graph s\ndim n\nx = input f32[n, 5]\nw = input f32[36, 5]\ng = contract(x, w) \"ri,oi->ro\"\n"
             "a = slice(g) axis=1 begin=35 : f32[n, 1]\ny = neg(a)\noutput y = y\n");
    assert_non_null(f->space->refused);
    assert_non_null(strstr(f->space->refused, "shifted"));
}

static void diagonal_is_refused(void **state) {
    fixture *f = *state;
    parse(f, "graph d\nx = input f32[8, 8, 3]\ne = sum(x) axis=2\n"
             "y = contract(e, e) \"ab,ba->a\"\noutput y = y\n");
    assert_non_null(f->space->refused);
}

/* What is made of inputs is written down again where its axes do not fit. */
static void shifted_map_of_inputs_is_copied(void **state) {
    fixture *f = *state;
    parse(f, "graph s\nx = input f32[24]\ne = exp(x)\nh = slice(e) axis=0 begin=2 count=5 step=1 : f32[5]\n"
             "y = neg(h)\noutput y = y\n");
    assert_null(f->space->refused);
    assert_int_equal(f->space->axes.count, 1);
    assert_int_equal(f->space->nodes.count, 3);
    assert_true(f->space->nodes.items[0].idle && f->space->nodes.items[2].copy);
    const smg_sview *view = &f->space->views.items[f->space->nodes.items[2].operand[0].view];
    assert_int_equal(view->offset, smg_size_const(f->g->sizes, 2));
}

/* So is a map of sums that have no place along the axis, and what is made of it is no input. */
static void shifted_map_of_sums_is_copied(void **state) {
    fixture *f = *state;
    parse(f, "graph s\ndim n\nx = input f32[n, 64]\nm = reduce_max(x) axis=1 keep\ne = sub(x, m)\n"
             "back = slice(e) axis=1 begin=63 count=64 step=-1\ny = mul(e, back)\noutput y = y\n");
    assert_null(f->space->refused);
    assert_int_equal(f->space->axes.count, 2);
    assert_int_equal(f->space->nodes.count, 4);
    const smg_snode *copy = &f->space->nodes.items[3];
    assert_true(copy->copy && !copy->streamed && !copy->idle && copy->op == SMG_OP_SUB);
    assert_int_equal(copy->operand[1].producer, 0);
    assert_false(f->space->nodes.items[1].idle || f->space->nodes.items[2].streamed);
    for (int a = 0; a < f->space->axes.count; a++) assert_false(f->space->axes.items[a].held);
    smg_graph_destroy(f->g);
    /* a sum along the axis is in lanes that others do not read */
    parse(f, "graph s\ndim n\nx = input f32[n, 64, 3]\nm = sum(x) axis=2\ne = exp(m)\n"
             "back = slice(e) axis=1 begin=63 count=64 step=-1\ny = mul(e, back)\noutput y = y\n");
    assert_non_null(f->space->refused);
    assert_non_null(strstr(f->space->refused, "shifted"));
}

/* One value of inputs at two axes of one product, behind a view that cuts a third: each side has a copy. */
static void product_of_a_map_with_itself(void **state) {
    fixture *f = *state;
    parse(f, "graph p\ndim n\nx = input f32[2, 2, n, 8]\ne = exp(x)\nr = reshape(e) : f32[4, n, 8]\n"
             "y = contract(r, r) \"hsd,htd->hst\"\noutput y = y\n");
    assert_null(f->space->refused);
    assert_int_equal(f->space->axes.count, 4); /* heads merged again, two positions, the contracted one */
    assert_int_equal(f->space->nodes.count, 4);
}

static const smg_sview *view_of(const fixture *f, int node, int k) {
    return &f->space->views.items[f->space->nodes.items[node].operand[k].view];
}

/* Affine addresses, and guards only where a proof fails. */
static void windows_are_affine(void **state) {
    fixture *f = *state;
    parse(f, "graph w\ndim n\nx = input f32[n, 24]\n"
             "v = window(x) axis=1 begin=-1 step=2 dilation=3 fill=0 : f32[n, 12, 3]\n"
             "w = window(x) axis=1 begin=1 step=2 dilation=3 fill=0 : f32[n, 9, 3]\n"
             "y = neg(v)\nz = neg(w)\noutput y = y\noutput z = z\n");
    const smg_sview *v = view_of(f, 0, 0), *w = view_of(f, 1, 0);
    assert_int_equal(v->index_count, 0);
    assert_int_equal(v->layer_count, 1);
    assert_int_equal(v->axis_count, 3);
    assert_int_equal(w->layer_count, 0);
}

/* An index of positions and sizes is an address; what may leave the table is data. */
static void affine_indices_are_shifts(void **state) {
    fixture *f = *state;
    parse(f, "graph g\ndim n\nx = input f32[n+2, 24]\ni = iota axis=0 : i32[n]\ntwo = fill 2 : i32[]\n"
             "far = fill 3 : i32[]\nj = add(i, two)\nk = add(i, far)\n"
             "y = gather(x, j)\nz = gather(x, k)\noutput y = y\noutput z = z\n");
    const smg_sview *y = view_of(f, 2, 0), *z = view_of(f, 3, 0);
    assert_int_equal(y->index_count, 0);
    assert_int_equal(y->offset, smg_size_const(f->g->sizes, 48));
    assert_int_equal(z->index_count, 1);
    assert_true(z->index[0].checked);
}

/* A reshape that does not divide still has addresses: quotients where they are needed, none behind one run. */
static void uneven_reshapes_have_quotients(void **state) {
    fixture *f = *state;
    parse(f, "graph r\nx = input f32[6, 10]\nv = slice(x) axis=1 begin=0 count=9 step=1 : f32[6, 9]\n"
             "r = reshape(v) : f32[2, 27]\nu = reshape(x) : f32[4, 15]\ny = neg(r)\nz = neg(u)\n"
             "output y = y\noutput z = z\n");
    assert_null(f->space->refused);
    assert_int_equal(view_of(f, 0, 0)->index_count, 0);
    assert_int_equal(view_of(f, 1, 0)->index_count, 0);
    smg_graph_destroy(f->g);
    parse(f, "graph r\nx = input f32[6, 10]\nv = slice(x) axis=1 begin=0 count=9 step=1 : f32[6, 9]\n"
             "r = reshape(v) : f32[27, 2]\ny = neg(r)\noutput y = y\n");
    assert_null(f->space->refused);
    assert_true(view_of(f, 0, 0)->index_count > 0);
}

/* A reduction of a reduction goes over the axes of both, which are one where they are one run of memory; not where
 * another reads the first, or where the two combine in other ways. */
static void reductions_of_reductions_join(void **state) {
    static const struct {
        const char *second, *reduced;
    } cases[] = {{"b = sum(a) axis=0\noutput b = b\n", "60"},
                 {"b = sum(a) axis=0\noutput b = b\noutput a = a\n", "4"},
                 {"b = reduce_max(a) axis=0\noutput b = b\n", "4"}};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        smg_text text;
        smg_text_init(&text, f->ctx);
        smg_text_addf(&text, "graph r\nx = input f32[4, 15, 7]\na = sum(x) axis=1\n%s", cases[i].second);
        parse(f, smg_text_cstr(&text));
        smg_text_free(&text);
        assert_null(f->space->refused);
        const smg_snode *b = &f->space->nodes.items[1];
        assert_string_equal(extents(f, b->iterates & ~b->result), cases[i].reduced);
        assert_int_equal(f->space->nodes.items[0].idle, i == 0);
        smg_graph_destroy(f->g);
        f->g = NULL;
    }
}

/* ---- schedules ------------------------------------------------------------------------------------ */

static void candidates(fixture *f, const char *path, const char *device, smg_schedules *out, smg_target *target) {
    int64_t nominal[SMG_SPACE_AXES];
    load(f, path);
    for (int i = 0; i < SMG_SPACE_AXES; i++) nominal[i] = 128;
    assert_int_equal(check_target(f->ctx, device, target), SMG_OK);
    assert_int_equal(smg_sched_candidates(f->space, target, nominal, (smg_sched_room){0}, f->arena, out), SMG_OK);
    assert_true(out->items.count > 0);
}

static void schedules_are_legal(void **state) {
    fixture *f = *state;
    static const char *const device[] = {"h200", "careful", "tests/targets/subgroup4.target"};
    for (size_t d = 0; d < SMG_COUNT_OF(device); d++) {
        smg_schedules schedules;
        smg_target target;
        candidates(f, "tests/graphs/attention.smg", device[d], &schedules, &target);
        smg_axis_set anew = smg_slice_anew(f->space);
        smg_axis_set spatial = smg_slice_spatial(f->space, NULL);
        for (int i = 0; i < schedules.items.count; i++) {
            const smg_schedule *s = &schedules.items.items[i];
            smg_axis_set allowed = spatial | s->anew;
            assert_int_equal(s->grid & ~allowed, 0);
            assert_int_equal(s->anew & ~anew, 0);
            assert_true(s->row_axis < 0 || (allowed & SMG_AXIS_BIT(s->row_axis)));
            assert_true(s->temporal < 0 || !(allowed & SMG_AXIS_BIT(s->temporal)));
            assert_true(s->lane_rows * s->lane_cols <= target.max_invocations);
            assert_int_equal(s->lane_cols & (s->lane_cols - 1), 0);
            for (int a = 0; a < f->space->axes.count; a++) assert_true(s->tile[a] >= 1);
        }
        smg_graph_destroy(f->g);
        f->g = NULL;
    }
}

static void unbounded_rows_are_cut_temporally(void **state) {
    fixture *f = *state;
    smg_schedules schedules;
    smg_target target;
    candidates(f, "tests/graphs/attention.smg", "h200", &schedules, &target);
    for (int i = 0; i < schedules.items.count; i++) assert_true(schedules.items.items[i].temporal >= 0);
}

/* What nobody knows of a matrix's lanes says nothing of how its factors lie in memory; only what lanes load themselves
 * needs them. */
static void opaque_factors_lie_along(void **state) {
    fixture *f = *state;
    smg_target target;
    assert_int_equal(check_target(f->ctx, "h200", &target), SMG_OK);
    smg_along known = smg_sched_along(&target, SMG_TYPE_F16);
    target.fragment_count = 0;
    smg_along hidden = smg_sched_along(&target, SMG_TYPE_F16);
    assert_true(known.results > 0 && known.block_rows > 0);
    assert_int_equal(hidden.results, known.results);
    assert_true(hidden.streamed == 0 && hidden.block_rows == 0 && hidden.rows == 0);
    target.matrix_count = 0;
    assert_int_equal(smg_sched_along(&target, SMG_TYPE_F16).results, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(product_cuts_rows_and_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(row_reduction_cuts_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(centred_rows_cut_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(columns_are_cut_where_blocks_compute_rows_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(heads_cut_batch_head_and_queries, setup, teardown),
        cmocka_unit_test_setup_teardown(views_are_relabelings, setup, teardown),
        cmocka_unit_test_setup_teardown(neighbours_that_are_one_run_merge, setup, teardown),
        cmocka_unit_test_setup_teardown(slices_of_split_axes_are_shifts, setup, teardown),
        cmocka_unit_test_setup_teardown(shifted_intermediate_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_parts_are_picked, setup, teardown),
        cmocka_unit_test_setup_teardown(strided_parts_are_picked, setup, teardown),
        cmocka_unit_test_setup_teardown(halves_change_over, setup, teardown),
        cmocka_unit_test_setup_teardown(short_axes_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(uneven_parts_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(diagonal_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(shifted_map_of_inputs_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(shifted_map_of_sums_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(product_of_a_map_with_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_are_affine, setup, teardown),
        cmocka_unit_test_setup_teardown(affine_indices_are_shifts, setup, teardown),
        cmocka_unit_test_setup_teardown(uneven_reshapes_have_quotients, setup, teardown),
        cmocka_unit_test_setup_teardown(reductions_of_reductions_join, setup, teardown),
        cmocka_unit_test_setup_teardown(schedules_are_legal, setup, teardown),
        cmocka_unit_test_setup_teardown(unbounded_rows_are_cut_temporally, setup, teardown),
        cmocka_unit_test_setup_teardown(opaque_factors_lie_along, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
