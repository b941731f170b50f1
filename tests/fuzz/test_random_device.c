/* Random graphs on whatever device there is, through the public interface, every fourth in 16 bits: what the interpreter
 * cannot see (the text of shaders, borders and guards in it, bindings, copies) against the reference. SMG_SEED and
 * SMG_GRAPHS as for the interpreter's test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "smg/model.h"
#include "support/check_plan.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/random_graph.h"

#define GRAPHS 24

/* Host bytes of an array of doubles. */
static void *host_data(smg_arena *arena, const smg_node *n, const double *data, int64_t count) {
    int32_t *ints = SMG_ARENA_ARRAY(arena, int32_t, (size_t)count + 1);
    for (int64_t i = 0; ints != NULL && i < count; i++) {
        if (n->type == SMG_TYPE_F32)
            ((float *)(void *)ints)[i] = (float)data[i];
        else if (n->type == SMG_TYPE_BOOL)
            ((uint8_t *)ints)[i] = data[i] != 0;
        else
            ints[i] = (int32_t)data[i];
    }
    return ints;
}

static int make_inputs(const smg_graph *g, smg_arena *arena, const check_arrays *a, smg_tensor *out) {
    int count = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        if (strcmp(smg_op_get(n->op)->word, "input") != 0) continue;
        smg_tensor *t = &out[count];
        *t = (smg_tensor){.name = n->name, .rank = n->rank};
        for (int d = 0; d < n->rank; d++) t->dims[d] = a->inputs[count].dims[d];
        t->data = host_data(arena, n, a->data[id], a->count[id]);
        assert_non_null(t->data);
        count++;
    }
    return count;
}

static double worst(const smg_tensor *out, const smg_array *want) {
    double error = 0;
    for (int64_t i = 0; i < smg_array_elements(want); i++) {
        double got = (double)((const float *)out->data)[i], wanted = want->data[i];
        if ((isnan(got) && isnan(wanted)) || (isinf(wanted) && got == wanted)) continue;
        double e = fabs(got - wanted) / (1 + fabs(wanted));
        if (!(e <= error)) error = e;
    }
    return error;
}

static void compare(smg_context *ctx, const smg_graph *g, smg_model *model, const check_options *o) {
    smg_tensor inputs[CHECK_TENSORS], outputs[CHECK_TENSORS] = {{0}};
    smg_arena *arena;
    check_arrays a;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(check_arrays_make(g, o, arena, &a), SMG_OK);
    int count = make_inputs(g, arena, &a, inputs);
    for (int i = 0; i < g->outputs.count; i++) outputs[i].name = g->outputs.items[i].name;
    if (smg_model_run(model, inputs, count, outputs, g->outputs.count) != SMG_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)o->seed, smg_context_error(ctx));
    }
    for (int i = 0; i < g->outputs.count; i++) {
        double error = worst(&outputs[i], &a.expected[i]);
        if (!(error <= o->tolerance)) {
            fail_msg("seed %llu, %s: error %g", (unsigned long long)o->seed, outputs[i].name, error);
        }
    }
    smg_arena_destroy(arena);
}

/* false: there is no device */
static bool check_seed(smg_context *ctx, uint64_t seed) {
    static const int64_t extent[] = {1, 2, 3, 5, 7, 16, 17, 31, 33, 64};
    random_options r = {.seed = seed,
                        .operations = 4 + (int)(seed % 13),
                        .symbolic = seed % 3 != 0,
                        .s = extent[seed % 10],
                        .t = extent[seed / 10 % 10],
                        .max_elements = 6000};
    int64_t symbols[8] = {0};
    smg_graph *g;
    smg_model *model = NULL;
    smg_type type = seed % 4 != 0 ? SMG_TYPE_F32 : seed % 8 != 0 ? SMG_TYPE_F16 : SMG_TYPE_BF16;
    if (type != SMG_TYPE_F32) r = random_narrow(r, type);
    assert_int_equal(random_graph(ctx, &r, &g), SMG_OK);
    random_symbols(g, &r, symbols);
    const smg_model_desc desc = {
        .no_calibrate = true, .goal = seed % 3 ? SMG_GOAL_DISPATCHES : SMG_GOAL_TIME, .precision = smg_type_word(type)};
    smg_status status = smg_model_open_graph(ctx, g, &desc, &model);
    bool there = !device_missing(ctx, status);
    if (there && status != SMG_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, smg_context_error(ctx));
    check_options o = {.symbols = symbols,
                       .seed = seed,
                       .tolerance = type == SMG_TYPE_F32 ? RANDOM_TOLERANCE : RANDOM_TOLERANCE_NARROW};
    if (there) compare(ctx, g, model, &o);
    smg_model_close(model);
    smg_graph_destroy(g);
    return there;
}

static void device_is_reference(void **state) {
    (void)state;
    const char *given = getenv("SMG_SEED"), *number = getenv("SMG_GRAPHS");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    int count = number != NULL ? atoi(number) : given != NULL ? 1 : GRAPHS;
    smg_context *ctx;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    printf("seeds %llu.. (SMG_SEED, SMG_GRAPHS)\n", (unsigned long long)first);
    for (int i = 0; i < count; i++) {
        if (!check_seed(ctx, first + (uint64_t)i)) skip();
    }
    smg_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(device_is_reference)};
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
