/* glsl: products by matrices whose left factors lie in shared memory in the order in which lanes have right ones by runs
 * of memory. By words, as text; element by element on a device whose lanes have them so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/glsl_case.h"
#include "support/kernel_bench.h"

/* y = a b by matrices of 8 x 8 x 8, as lavapipe has them: along k lanes have neighbours of both factors, which are eight
 * matrices. */
static const char elements[] =
    "kernel runs\n"
    "lanes 16 subgroup 8 numbered\n"
    "axis i = 32 tile 16 grid\n"
    "axis j = 16 tile 16\n"
    "axis k = 128 tile 64\n"
    "grid i\n"
    "matrix 8 8 8 f16 registers row*8 lanes column*8\n"
    "left registers row*8 lanes column*8\n"
    "right registers column*8 lanes row*8\n"
    "layout 0 = [i, j] registers i*8 j*2:8 lanes j*8 subgroups i*2:8\n"
    "layout 1 = [i, j, k] registers i*8 j*2:8 k*64 lanes j*8 subgroups i*2:8\n"
    "layout 2 = [i, k] registers i*8 k*8 lanes k*8:8 subgroups i*2:8\n"
    "layout 3 = [j, k] registers j*8 k*8 j*2:8 lanes k*8:8 subgroups *2\n"
    "buffer a f16 [4096] value 0\n"
    "buffer b f16 [2048] value 1\n"
    "buffer y f32 [512] value 2 written\n" BENCH_RUNS_TILES "access 0 = a at [0] i*[128] k*[1]\n"
    "access 1 = b at [0] j*[128] k*[1]\n"
    "access 2 = y at [0] i*[16] j*[1]\n" BENCH_RUNS_CODE;

/* The same of 16 x 16 x 16, whose lanes have pairs of neighbours along k. */
static const char words[] = "kernel runs\n"
                            "lanes 32 subgroup 32 numbered\n"
                            "axis i = 32 tile 16 grid\n"
                            "axis j = 16 tile 16\n"
                            "axis k = 64 tile 32\n"
                            "grid i\n"
                            "matrix 16 16 16 f16 registers column*2 column*2:8 row*2:8 lanes column*4:2 row*8\n"
                            "left registers column*2 column*2:8 row*2:8 lanes column*4:2 row*8\n"
                            "right registers row*2 row*2:8 column*2:8 lanes row*4:2 column*8\n"
                            "layout 0 = [i, j] registers j*2 j*2:8 i*2:8 lanes j*4:2 i*8\n"
                            "layout 1 = [i, j, k] registers j*2 j*2:8 i*2:8 k*32 lanes j*4:2 i*8\n"
                            "layout 2 = [i, k] registers k*4 i*2:8 k*2:4 lanes k*4:8 i*8\n"
                            "layout 3 = [j, k] registers k*4 j*2:8 k*2:4 lanes k*4:8 j*8\n"
                            "buffer a f16 [2048] value 0\n"
                            "buffer b f16 [1024] value 1\n"
                            "buffer y f32 [512] value 2 written\n" BENCH_RUNS_TILES "access 0 = a at [0] i*[64] k*[1]\n"
                            "access 1 = b at [0] j*[64] k*[1]\n"
                            "access 2 = y at [0] i*[16] j*[1]\n" BENCH_RUNS_CODE;

static void by_elements(void **state) {
    glsl_fixture *f = *state;
    smg_arena *arena;
    if (!f->device || f->target.subgroup_size != 8 || f->target.matrix_count == 0) skip();
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_check_here(f, arena, glsl_parse(f, arena, elements));
    smg_arena_destroy(arena);
}

static void by_words(void **state) {
    static const char *const parts[] = {"shared uint t_sa[320];",
                                        "((c_k) >> 5 << 5 | ((c_k) & 1) | ((c_k) & 6) << 2 | ((c_k) & 24) >> 2)",
                                        "t_sa[p1 + 4] = o1[1];",
                                        "t_sa[p1 + 12] = o1[3];",
                                        "coopMatLoad(t_fa[1], t_sa, (16) / 2, 20, gl_CooperativeMatrixLayoutRowMajor);",
                                        NULL};
    glsl_fixture *f = *state;
    smg_arena *arena;
    const smg_target target = glsl_full_target(32, false);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    glsl_expect_parts(f, glsl_parse(f, arena, words), &target, parts);
    smg_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_elements), cmocka_unit_test(by_words)};
    return cmocka_run_group_tests(tests, glsl_set_up, glsl_tear_down);
}
