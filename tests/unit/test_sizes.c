/* Symbols from the dims that a caller gives: plain ones first, then what follows from 2*s or s + 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/compile.h"

static void sizes_follow_from_dims(void **state) {
    static const char text[] = "dim n max 50\ndim m\nx = input f32[n, 6*m+2]\ny = input f32[m, n]\n"
                               "z = input f32[2*n]\ne = exp(x)\noutput e = e\n";
    static const struct {
        int64_t columns, symbols[2];
        smg_status status;
    } rows[] = {{8, {7, 1}, SMG_OK}, {62, {7, 10}, SMG_OK}, {9, {0, 0}, SMG_INVALID}, {2, {0, 0}, SMG_INVALID}};
    smg_context *ctx;
    smg_graph *g;
    (void)state;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_graph_parse(ctx, text, sizeof(text) - 1, "text", &g), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        int64_t values[2] = {0};
        smg_tensor in = {.name = "x", .rank = 2, .dims = {7, rows[i].columns}};
        assert_int_equal(smg_tensor_sizes(ctx, g, &in, 1, NULL, values), rows[i].status);
        for (int s = 0; s < 2 && rows[i].status == SMG_OK; s++) assert_int_equal(values[s], rows[i].symbols[s]);
        smg_context_clear_error(ctx);
    }
    int64_t values[2] = {0};
    smg_tensor doubled = {.name = "z", .rank = 1, .dims = {34}};
    assert_int_equal(smg_tensor_sizes(ctx, g, &doubled, 1, NULL, values), SMG_OK);
    assert_int_equal(values[0], 17);
    doubled.dims[0] = 102; /* n would be 51 */
    assert_int_equal(smg_tensor_sizes(ctx, g, &doubled, 1, NULL, values), SMG_INVALID);
    smg_context_clear_error(ctx);
    smg_graph_destroy(g);
    smg_context_destroy(ctx);
}

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)old_size;
    ++*(int *)user;
    if (new_size > 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

/* It stands on the way of every run. */
static void nothing_is_allocated(void **state) {
    static const char text[] = "dim n max 50\ndim unused\nz = input f32[2*n]\ne = exp(z)\noutput e = e\n";
    int calls = 0;
    smg_context *ctx;
    smg_graph *g;
    (void)state;
    const smg_context_desc desc = {.reallocate = counted, .user = &calls};
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    assert_int_equal(smg_graph_parse(ctx, text, sizeof(text) - 1, "text", &g), SMG_OK);
    smg_arena *arena = NULL;
    smg_interface *interface = NULL;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    assert_int_equal(smg_compile_interface(arena, g, NULL, &interface), SMG_OK);
    int64_t values[2] = {0};
    smg_tensor in = {.name = "z", .rank = 1, .dims = {34}};
    int before = calls;
    assert_true(before > 0);
    assert_int_equal(smg_interface_sizes(ctx, interface, &in, 1, NULL, values), SMG_OK);
    assert_int_equal(calls, before);
    assert_int_equal(values[0], 17);
    assert_int_equal(values[1], 1);
    smg_arena_destroy(arena);
    smg_graph_destroy(g);
    smg_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_follow_from_dims),
                                       cmocka_unit_test(nothing_is_allocated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
