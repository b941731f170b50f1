/* Kernels of one operation on a CPU: what a price says wrongly of maps and rows shows nowhere else, because every layout
 * computes the right result. No numbers of the price are in here, but what a good layout has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/check_plan.h"

#define LAYER "tests/vendor/minilm_layer.smg"
#define MANY 16384 /* elements of which every core has several subgroups with several registers */
#define SEVERAL 4

typedef struct seen {
    const smg_kernel *k;
    const smg_instr *in;
    const int64_t *symbols;
    int maps, rows, wrong;
} seen;

static int64_t extent_of(const seen *s, int axis) {
    int64_t extent = 0;
    assert_true(smg_size_eval(s->k->sizes, s->k->axes.items[axis].extent, s->symbols, &extent));
    return extent;
}

static void expect(seen *s, bool holds, const char *what) {
    if (holds) return;
    printf("%s of lavapipe: %s\n", s->k->buffers.items[s->k->buffers.count - 1].name, what);
    s->wrong++;
}

static int64_t elements_of(const seen *s) {
    int64_t elements = 1;
    for (int a = 0; a < s->k->axes.count; a++) elements *= extent_of(s, a);
    return elements;
}

/* Places for elements: registers of all lanes, in all steps of loops. */
static int64_t places_of(const seen *s) {
    int64_t places = 0;
    assert_true(smg_kernel_grid(s->k, s->symbols, &places));
    places *= s->k->lanes * smg_layout_registers(smg_kernel_layout(s->k, s->in));
    for (int i = 0; i < s->k->code.count; i++) {
        const smg_instr *loop = &s->k->code.items[i];
        if (loop->kind != SMG_I_LOOP) continue;
        int64_t tile = s->k->axes.items[loop->axes[0]].tile;
        places *= (extent_of(s, loop->axes[0]) + tile - 1) / tile;
    }
    return places;
}

/* Lanes of a subgroup side by side where memory is: all of them in a map, at least half along rows that are reduced.
 * What is less than all elements, a row's norm or a bias, is a small part of what passes. */
static void check_access(seen *s, const smg_access *access) {
    const smg_layout *layout = smg_kernel_layout(s->k, s->in);
    smg_size one = smg_size_const(s->k->sizes, 1);
    int64_t least = s->in->kind == SMG_I_STORE ? s->k->subgroup : s->k->subgroup / 2;
    int64_t elements = 1;
    for (int i = 0; i < access->axis_count; i++) elements *= extent_of(s, access->axis[i]);
    for (int i = 0; i < access->axis_count && elements == elements_of(s); i++) {
        if (access->stride[i] != one || extent_of(s, access->axis[i]) < least) continue;
        expect(s, smg_layout_neighbours(layout, access->axis[i]) >= least, "lanes do not lie along memory");
    }
}

static void check_leaf(void *user, int leaf) {
    seen *s = user;
    const smg_kleaf *f = &s->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_LOAD) check_access(s, &s->k->accesses.items[f->index]);
}

/* in: what goes over all elements. */
static void check_layout(seen *s) {
    int64_t elements = elements_of(s), registers = smg_layout_registers(smg_kernel_layout(s->k, s->in));
    expect(s, 4 * elements >= 3 * places_of(s), "more than a quarter of the registers has no element");
    expect(s, elements < MANY || registers >= SEVERAL, "a lane has few elements");
    smg_expr_leaves(s->k->exprs, s->in->expr, check_leaf, s);
    if (s->in->kind == SMG_I_STORE) check_access(s, &s->k->accesses.items[s->in->a]);
}

static void look_at(seen *s) {
    const smg_instr *store = NULL, *reduce = NULL;
    for (int i = 0; i < s->k->code.count; i++) {
        const smg_instr *in = &s->k->code.items[i];
        if (in->kind == SMG_I_MMA) return;
        if (in->kind == SMG_I_REDUCE) reduce = in;
        if (in->kind == SMG_I_STORE) store = in;
    }
    s->in = reduce != NULL ? reduce : store;
    s->rows += reduce != NULL;
    s->maps += reduce == NULL;
    check_layout(s);
}

static void maps_and_rows_lie_along_memory(void **state) {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_target target;
    smg_plan *plan;
    static const int64_t sizes[][2] = {{1, 128}, {8, 512}};
    (void)state;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_load(ctx, LAYER, &g), SMG_OK);
    assert_int_equal(check_target(ctx, "lavapipe", &target), SMG_OK);
    for (size_t n = 0; n < SMG_COUNT_OF(sizes); n++) {
        const smg_plan_options options = {.unfused = true, .nominal = sizes[n]};
        seen s = {.symbols = sizes[n]};
        assert_int_equal(smg_plan_make(g, &target, &options, arena, &plan), SMG_OK);
        for (int i = 0; i < plan->steps.count; i++) {
            s.k = plan->steps.items[i].kernel;
            look_at(&s);
        }
        assert_in_range(s.maps, 20, 100);
        assert_in_range(s.rows, 4, 100);
        assert_int_equal(s.wrong, 0);
    }
    smg_graph_destroy(g);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_and_rows_lie_along_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
