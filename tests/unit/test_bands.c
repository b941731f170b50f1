/* kernel, glsl: workgroups that go over the last axis of the grid in bands. Every block has one workgroup, whatever the
 * numbers of blocks are, and the device goes over them as the interpreter does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/glsl_case.h"

/* y = x, by blocks; %s: what the axes and the grid are. */
static const char format[] = "kernel copy\n"
                             "lanes 8 subgroup 8\n"
                             "axis b = 3 tile 1 grid%s\n"
                             "axis i = 21 tile 2 grid%s\n"
                             "axis j = 26 tile 8 grid%s\n"
                             "grid b, j, i%s\n"
                             "layout 0 = [b, i, j] registers i*2 lanes j*8\n"
                             "buffer x f32 [1638] value 0\n"
                             "buffer y f32 [1638] value 1 written\n"
                             "access 0 = x at [0] b*[546] i*[26] j*[1]\n"
                             "access 1 = y at [0] b*[546] i*[26] j*[1]\n"
                             "code\n"
                             "  store 1 over [b, i, j] layout 0 = load(0)\n";

static const struct {
    const char *b, *i, *j, *bands;
} cases[] = {{"", "", "", ""},
             {"", "", "", " bands 4"},
             {"", "", "", " bands 1"},
             {"", "", "", " bands 11"},
             {"", "", "", " bands 1000"},
             {" back", " back", "", " bands 3"},
             {"", "", " back", " bands 2"}};

static smg_kernel *parse(glsl_fixture *f, smg_arena *arena, size_t at) {
    char text[sizeof format + 64];
    (void)snprintf(text, sizeof text, format, cases[at].b, cases[at].i, cases[at].j, cases[at].bands);
    return glsl_parse(f, arena, text);
}

enum { B = 3, J = 4, I = 11 }; /* blocks along them */

static void test_each_block_once(void **state) {
    static const int64_t blocks[] = {B, J, I};
    glsl_fixture *f = *state;
    smg_arena *arena;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    for (size_t at = 0; at < SMG_COUNT_OF(cases); at++) {
        const smg_kernel *k = parse(f, arena, at);
        int seen[B][J][I] = {{{0}}};
        for (int64_t group = 0; group < (int64_t)B * J * I; group++) {
            int64_t block[3] = {-1, -1, -1};
            smg_kernel_place_group(k, blocks, group, block);
            for (int g = 0; g < 3; g++) assert_in_range(block[g], 0, blocks[g] - 1);
            assert_int_equal(seen[block[0]][block[1]][block[2]]++, 0);
        }
    }
    smg_arena_destroy(arena);
}

/* Three blocks of i, then the next of j, and all of j before the next three of i. */
static void test_order(void **state) {
    static const int64_t blocks[] = {1, 2, 5};
    static const int64_t i[] = {0, 1, 2, 0, 1, 2, 3, 4, 3, 4}, j[] = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1};
    glsl_fixture *f = *state;
    smg_arena *arena;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_kernel *k = parse(f, arena, 1);
    k->band = 3;
    for (int group = 0; group < 10; group++) {
        int64_t block[3];
        smg_kernel_place_group(k, blocks, group, block);
        assert_int_equal(block[2], i[group]);
        assert_int_equal(block[1], j[group]);
    }
    smg_arena_destroy(arena);
}

static void test_device(void **state) {
    glsl_fixture *f = *state;
    smg_arena *arena;
    if (!f->device) skip();
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    for (size_t at = 0; at < SMG_COUNT_OF(cases); at++) glsl_check_here(f, arena, parse(f, arena, at));
    smg_arena_destroy(arena);
}

/* A band is of one axis, for another. */
static void test_one_axis(void **state) {
    static const char text[] =
        "kernel one\nlanes 1 subgroup 1\naxis i = 8 tile 1 grid\ngrid i bands 2\nlayout 0 = [i] lanes *1\n"
        "buffer y f32 [8] value 0 written\naccess 0 = y at [0] i*[1]\ncode\n"
        "  store 0 over [i] layout 0 = 1\n";
    glsl_fixture *f = *state;
    smg_arena *arena;
    smg_sizes *sizes;
    smg_kernel *k;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    assert_int_equal(smg_sizes_create(arena, &sizes), SMG_OK);
    assert_int_equal(smg_kernel_parse(arena, sizes, text, &k), SMG_OK);
    assert_int_equal(smg_kernel_verify(f->ctx, k), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f->ctx), "bands of 2 blocks, of 1 grid axes"));
    smg_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_block_once), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_device), cmocka_unit_test(test_one_axis)};
    return cmocka_run_group_tests(tests, glsl_set_up, glsl_tear_down);
}
