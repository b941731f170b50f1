/* Builders and checks: shapes and types that are inferred, calls that are refused with a sentence, sticky
 * failures, and that every allocation may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "rewrite/rewrite.h"

static int setup(void **state) {
    static smg_context *ctx;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

static smg_graph *create(smg_context *ctx) {
    smg_graph *g = NULL;
    assert_int_equal(smg_graph_create(ctx, "g", &g), SMG_OK);
    return g;
}

static void assert_dims(const smg_graph *g, smg_value value, smg_type type, const char *dims) {
    const smg_node *node = smg_graph_node(g, value.id - 1);
    assert_non_null(node);
    assert_int_equal(node->type, type);
    smg_text text;
    smg_text_init(&text, g->ctx);
    for (int i = 0; i < node->rank; i++) {
        if (i > 0) smg_text_add(&text, ", ");
        smg_size_print(g->sizes, node->dims[i], &text);
    }
    assert_string_equal(smg_text_cstr(&text), dims);
    smg_text_free(&text);
}

static void shapes_are_inferred(void **state) {
    smg_graph *g = create(*state);
    smg_value x = smg_graph_input(g, "x", "f32", "b, s, 8"), v = smg_graph_constant(g, "v", "f32", "8", NULL);
    smg_value m = smg_graph_reduce(g, "sum", x, -1, true);
    assert_dims(g, smg_graph_map(g, "add", 2, (smg_value[]){x, v}), SMG_TYPE_F32, "b, s, 8");
    assert_dims(g, m, SMG_TYPE_F32, "b, s, 1");
    assert_dims(g, smg_graph_reduce(g, "reduce_max", x, 0, false), SMG_TYPE_F32, "s, 8");
    assert_dims(g, smg_graph_map(g, "gt", 2, (smg_value[]){m, v}), SMG_TYPE_BOOL, "b, s, 8");
    assert_dims(g, smg_graph_reshape(g, x, "b*s, 2, 4"), SMG_TYPE_F32, "b*s, 2, 4");
    assert_dims(g, smg_graph_transpose(g, x, 3, (int[]){2, 0, 1}), SMG_TYPE_F32, "8, b, s");
    assert_dims(g, smg_graph_slice(g, x, 1, "s-1", "1", 1), SMG_TYPE_F32, "b, 1, 8");
    assert_dims(g, smg_graph_broadcast(g, v, "b, 8"), SMG_TYPE_F32, "b, 8");
    smg_value i = smg_graph_iota(g, "b, 3", 0);
    assert_dims(g, i, SMG_TYPE_I32, "b, 3");
    assert_dims(g, smg_graph_gather(g, x, i), SMG_TYPE_F32, "b, 3, s, 8");
    assert_dims(g, smg_graph_contract(g, "bsd,btd->bst", x, x), SMG_TYPE_F32, "b, s, s");
    assert_dims(g, smg_graph_cast(g, x, "f16"), SMG_TYPE_F16, "b, s, 8");
    assert_dims(g, smg_graph_size(g, "2*s"), SMG_TYPE_F32, "");
    assert_dims(g, smg_graph_number(g, "i32", 3), SMG_TYPE_I32, "");
    smg_value y = smg_graph_map(g, "mul", 2, (smg_value[]){x, m});
    smg_graph_name(g, y, "product");
    assert_string_equal(smg_graph_describe(g, y.id - 1), "product");
    assert_string_equal(smg_graph_describe(g, m.id - 1), "%2 (sum)");
    assert_int_equal(smg_graph_output(g, "y", y), SMG_OK);
    assert_int_equal(smg_graph_finish(g), SMG_OK);
    assert_int_equal(smg_graph_map(g, "exp", 1, &y).id, 0); /* finished */
    smg_graph_destroy(g);
}

typedef smg_value (*refused)(smg_graph *g, smg_value x, smg_value i);

static smg_value bad_op(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_map(g, "softmax", 1, &x);
}
static smg_value bad_count(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_map(g, "add", 1, &x);
}
static smg_value bad_types(smg_graph *g, smg_value x, smg_value i) {
    return smg_graph_map(g, "add", 2, (smg_value[]){x, i});
}
static smg_value bad_broadcast(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_map(g, "add", 2, (smg_value[]){x, smg_graph_input(g, "o", "f32", "t, 8")});
}
static smg_value bad_axis(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_reduce(g, "sum", x, 2, false);
}
static smg_value bad_labels(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_contract(g, "ab,ac", x, x);
}
static smg_value bad_rank(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_contract(g, "abc,ab->c", x, x);
}
static smg_value bad_extent(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_contract(g, "ab,bc->ac", x, x);
}
static smg_value bad_lonely(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_contract(g, "ab,ac->c", x, x);
}
static smg_value bad_indices(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_gather(g, x, x);
}
static smg_value bad_reshape(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_reshape(g, x, "s, 9");
}
static smg_value bad_perm(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_transpose(g, x, 2, (int[]){1, 1});
}
static smg_value bad_slice(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_slice(g, x, 1, "4", "5", 1);
}
static smg_value bad_step(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_slice(g, x, 1, "0", "4", 0);
}
static smg_value bad_type(smg_graph *g, smg_value x, smg_value i) {
    (void)i;
    return smg_graph_cast(g, x, "f64");
}
static smg_value bad_value(smg_graph *g, smg_value x, smg_value i) {
    (void)x;
    (void)i;
    return smg_graph_cast(g, (smg_value){77}, "f32");
}
static smg_value bad_dims(smg_graph *g, smg_value x, smg_value i) {
    (void)x;
    (void)i;
    return smg_graph_input(g, "n", "f32", "4, 0");
}
static smg_value bad_overflow(smg_graph *g, smg_value x, smg_value i) {
    (void)x;
    (void)i;
    return smg_graph_input(g, "n", "f32", "4294967296, 4294967296");
}
static smg_value bad_twice(smg_graph *g, smg_value x, smg_value i) {
    (void)x;
    (void)i;
    return smg_graph_input(g, "x", "f32", "4");
}

static void refused_calls_say_why(void **state) {
    smg_context *ctx = *state;
    static const struct {
        refused call;
        const char *part;
    } rows[] = {
        {bad_op, "softmax is not the word of an elementwise operation"},
        {bad_count, "add: takes 2 operands, got 1"},
        {bad_types, "add: cannot take operands of type f32, i32"},
        {bad_broadcast, "operand o has extent t where another has s"},
        {bad_axis, "sum: axis 2 is outside [0, 2) of x"},
        {bad_labels, "labels \"ab,ac\" are not of the form"},
        {bad_rank, "x has rank 2 but letters \"abc\""},
        {bad_extent, "letter b is 8 in x but s in x"},
        {bad_lonely, "letter b is only in the first operand"},
        {bad_indices, "indices x are f32"},
        {bad_reshape, "f32[s, 8] has 8*s elements, f32[s, 9] has 9*s"},
        {bad_perm, "entry 1 of perm is 1"},
        {bad_slice, "slice: element 8 of axis 1 is outside [0, 8) of x"},
        {bad_step, "step is 0"},
        {bad_type, "element type f64 does not exist"},
        {bad_value, "value 77 is not of graph g"},
        {bad_dims, "extent 1 of n is 0"},
        {bad_overflow, "64 bits"},
        {bad_twice, "x exists already"},
    };
    for (size_t k = 0; k < SMG_COUNT_OF(rows); k++) {
        smg_graph *g = create(ctx);
        smg_value x = smg_graph_input(g, "x", "f32", "s, 8"), i = smg_graph_input(g, "i", "i32", "s, 8");
        assert_int_equal(rows[k].call(g, x, i).id, 0);
        assert_int_equal(smg_graph_map(g, "exp", 1, &x).id, 0); /* sticky */
        assert_int_not_equal(smg_graph_finish(g), SMG_OK);
        if (!strstr(smg_context_error(ctx), rows[k].part))
            fail_msg("\"%s\" does not say \"%s\"", smg_context_error(ctx), rows[k].part);
        smg_context_clear_error(ctx);
        smg_graph_destroy(g);
    }
}

static void misuse_is_a_status(void **state) {
    smg_graph *g = create(*state);
    assert_int_equal(smg_graph_finish(NULL), SMG_INVALID);
    assert_int_equal(smg_graph_input(NULL, "x", "f32", "4").id, 0);
    assert_int_equal(smg_graph_output(NULL, "x", (smg_value){1}), SMG_INVALID);
    assert_int_equal(smg_graph_finish(g), SMG_INVALID); /* no output */
    smg_graph_destroy(g);
    smg_graph_destroy(NULL);
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct fault {
    int left; /* calls until the first failure; all later ones fail too */
} fault;

static void *failing(void *user, void *pointer, size_t old_size, size_t new_size) {
    fault *f = user;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    return f->left-- > 0 ? realloc(pointer, new_size) : NULL;
}

static smg_status whole_way(smg_context *ctx, const char *text) {
    smg_graph *g = NULL, *h = NULL;
    smg_arena *arena = NULL;
    double data[6] = {1, 2, 3, 4, 5, 6};
    int64_t symbols[1] = {2};
    smg_array input = {SMG_TYPE_F32, 2, {2, 3}, data}, output;
    smg_rewrite_report report;
    smg_status status = smg_graph_parse(ctx, text, strlen(text), "t", &g);
    if (status == SMG_OK) status = smg_rewrite_graph(g, &h, &report);
    if (status == SMG_OK) status = smg_arena_create(ctx, &arena);
    if (status == SMG_OK) status = smg_graph_eval(h, symbols, &input, arena, &output);
    if (status == SMG_OK) {
        smg_text printed;
        smg_text_init(&printed, ctx);
        smg_graph_print(h, &printed);
        status = smg_text_status(&printed);
        smg_text_free(&printed);
    }
    smg_arena_destroy(arena);
    smg_graph_destroy(h);
    smg_graph_destroy(g);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char text[] = "graph f\nx = input f32[r, 3]\nw = constant f32[3, 3] random seed=1\n"
                               "t = transpose(w) perm=[1, 0]\none = fill 1 : f32[r, 3]\na = mul(x, one)\n"
                               "y = contract(a, t) \"ab,bc->ac\"\ni = iota axis=0 : i32[r]\nz = gather(y, i)\n"
                               "m = reduce_max(z) axis=1 keep\nd = sub(z, m)\ne = sigmoid(d)\n"
                               "v = reshape(e) : f32[3*r]\noutput v = v\n";
    bool done = false;
    int failures = 0;
    for (int count = 0; !done; count++) {
        fault f = {count};
        smg_context *ctx = NULL;
        smg_context_desc desc = {.reallocate = failing, .user = &f};
        if (smg_context_create(&desc, &ctx) != SMG_OK) continue;
        smg_status status = whole_way(ctx, text);
        done = status == SMG_OK;
        if (!done && status != SMG_MEMORY) fail_msg("failure %d: %d %s", count, status, smg_context_error(ctx));
        failures += !done;
        smg_context_destroy(ctx);
    }
    assert_true(failures > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shapes_are_inferred, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_calls_say_why, setup, teardown),
        cmocka_unit_test_setup_teardown(misuse_is_a_status, setup, teardown),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
