/* kernel: how much code a program is, and what lowering writes out within a driver's budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernel/kernel_live.h"
#include "lower/lower.h"
#include "support/kernel_bench.h"
#include "target/target.h"

/* Four elements a lane of a table, which lie as the text says. */
static const char *rows_of_table(const char *place) {
    static char text[640];
    snprintf(text, sizeof text,
             "kernel table\n"
             "lanes 8 subgroup 8\n"
             "axis i = 8 tile 8 grid\n"
             "axis k = 4 tile 4\n"
             "grid i\n"
             "layout 0 = [i, k] registers k*4 lanes i*8\n"
             "buffer table f32 [64] value 0\n"
             "buffer ids i64 [8] value 1\n"
             "buffer y f32 [32] value 2 written\n"
             "access 0 = table at [0] %s\n"
             "access 1 = y at [0] i*[4] k*[1]\n"
             "access 2 = ids at [0] i*[1]\n"
             "code\n"
             "  store 1 over [i, k] layout 0 = load(0)\n",
             place);
    return text;
}

/* A product of 16 rows and 8 columns a lane, over 64 of k in slices of 16. */
static const char product[] = "kernel product\n"
                              "lanes 32 subgroup 8 numbered\n"
                              "axis i = 64 tile 64 grid\n"
                              "axis j = 64 tile 64 grid\n"
                              "axis k = 64 tile 16\n"
                              "grid i, j\n"
                              "layout 0 = [i, j] registers j*8:8 i*16:4 lanes j*8 subgroups i*4\n"
                              "layout 1 = [i, j, k] registers j*8:8 i*16:4 k*16 lanes j*8 subgroups i*4\n"
                              "buffer a f32 [4096] value 0\n"
                              "buffer b f32 [4096] value 1\n"
                              "buffer y f32 [4096] value 2 written\n"
                              "tile acc float register [i, j] layout 0\n"
                              "tile va float view [i, k] of 0\n"
                              "tile vb float view [k, j] of 1\n"
                              "access 0 = a at [0] i*[64] k*[1]\n"
                              "access 1 = b at [0] k*[64] j*[1]\n"
                              "access 2 = y at [0] i*[64] j*[1]\n"
                              "code\n"
                              "  set acc = 0\n"
                              "  loop k\n"
                              "    mma acc += va * vb over [k] layout 1\n"
                              "  end\n"
                              "  store 2 over [i, j] layout 0 = acc\n";

/* A product of 8 rows and 8 columns by matrices of 4 a side, over 16 of k: its right factor lies as the text says. */
static const char *by_matrices(const char *matrix, const char *right) {
    static char text[1024];
    snprintf(text, sizeof text,
             "kernel matrices\n"
             "lanes 8 subgroup 8 numbered\n"
             "axis i = 8 tile 8 grid\n"
             "axis j = 8 tile 8 grid\n"
             "axis k = 16 tile 16\n"
             "grid i, j\n"
             "matrix 4 4 4 f16 %s\n"
             "layout 0 = [i, j] registers j*2 i*2:4 j*2:4 lanes j*2:2 i*4\n"
             "layout 1 = [i, j, k] registers j*2 i*2:4 j*2:4 k*16 lanes j*2:2 i*4\n"
             "buffer a f16 [128] value 0\n"
             "buffer b f16 [128] value 1\n"
             "tile acc float register [i, j] layout 0 fragments\n"
             "tile sa f16 shared [i, k] pad 8\n"
             "tile sb f16 shared %s pad 8\n"
             "access 0 = a at [0] i*[16] k*[1]\n"
             "access 1 = b at [0] k*[8] j*[1]\n"
             "code\n"
             "  set acc = 0\n"
             "  stage sa walk [i, k] = load(0)\n"
             "  stage sb walk %s = load(1)\n"
             "  barrier\n"
             "  mma acc += sa * sb over [k] layout 1\n",
             matrix, right, right);
    return text;
}

/* Sums of rows, 64 elements in slices of 16. */
static const char rows[] = "kernel rows\n"
                           "lanes 32 subgroup 8\n"
                           "axis i = 16 tile 16 grid\n"
                           "axis k = 64 tile 16\n"
                           "grid i\n"
                           "layout 0 = [i, k] registers k*2:8 i*4:4 lanes k*8 subgroups i*4\n"
                           "layout 1 = [i] registers i*4:4 lanes *8 subgroups i*4\n"
                           "buffer a f32 [1024] value 0\n"
                           "buffer y f32 [16] value 1 written\n"
                           "tile p float register [i, k] layout 0\n"
                           "tile r float register [i] layout 1\n"
                           "access 0 = a at [0] i*[64] k*[1]\n"
                           "access 1 = y at [0] i*[1]\n"
                           "code\n"
                           "  set r = 0\n"
                           "  loop k\n"
                           "    set p = load(0)\n"
                           "    accumulate r = add over [k] layout 0 of p\n"
                           "  end\n"
                           "  store 1 over [i] layout 1 = r\n";

static smg_instr *first(const smg_kernel *k, smg_instr_kind kind) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == kind) return &k->code.items[i];
    fail_msg("no instruction of kind %d", (int)kind);
    return NULL;
}

/* Sums and elements come from the tiles: 16 rows and 8 columns a lane. A k takes 128 multiply-adds, 16 rows and 8
 * columns, of which each is read by 8 lanes. */
static void test_count(void **state) {
    (void)state;
    bench f;
    bench_open(&f, product);
    const int64_t k = 128 + 16 + 8 * 2 * 8;
    int64_t before = smg_kernel_operations(f.k);
    first(f.k, SMG_I_MMA)->unroll = 8;
    assert_int_equal(smg_kernel_operations(f.k) - before, 7 * k);
    first(f.k, SMG_I_LOOP)->unroll = 1; /* four steps: the product, and the end of each */
    assert_int_equal(smg_kernel_operations(f.k) - before, 7 * k + 3 * (8 * k + 1));
    first(f.k, SMG_I_LOOP)->unroll = -1;
    assert_int_equal(smg_kernel_operations(f.k) - before, 7 * k);
    bench_close(&f);
}

/* A load by an index is that of the index, its sum and what keeps it inside the table, for each element. */
static void test_index(void **state) {
    (void)state;
    bench near, far;
    bench_open(&near, rows_of_table("i*[4] k*[1]"));
    bench_open(&far, rows_of_table("k*[1] : index*[4] below [16] of add(load(2), 1i)"));
    int64_t more = smg_kernel_operations(far.k) - smg_kernel_operations(near.k);
    assert_true(more >= 4 * (3 + 1 + 2) && more <= 4 * 24); /* four elements a lane */
    bench_close(&near);
    bench_close(&far);
}

static void test_loop_budget(void **state) {
    (void)state;
    bench f;
    smg_target target;
    bench_open(&f, rows);
    assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
    target.code_budget = INT64_MAX;
    smg_kernel_unroll(f.k, &target);
    assert_int_equal(first(f.k, SMG_I_LOOP)->unroll, 1);
    int64_t all = smg_kernel_operations(f.k);
    for (int less = 0; less < 2; less++) { /* just enough, one too little */
        target.code_budget = all - less;
        smg_kernel_unroll(f.k, &target);
        assert_int_equal(first(f.k, SMG_I_LOOP)->unroll, less ? -1 : 1);
        assert_true(smg_kernel_operations(f.k) <= target.code_budget);
    }
    bench_close(&f);
}

static void test_product_budget(void **state) {
    (void)state;
    bench f;
    smg_target target;
    bench_open(&f, product);
    assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
    target.code_budget = INT64_MAX;
    smg_kernel_unroll(f.k, &target);
    assert_int_equal(first(f.k, SMG_I_MMA)->unroll, 4); /* its sums are many already */
    assert_int_equal(first(f.k, SMG_I_LOOP)->unroll, -1);
    f.k->axes.items[0].tile = f.k->axes.items[1].tile = 16;
    smg_lane_grid grid = {
        .rows = 4, .cols = 8, .depth = 1, .vec = 1, .row_axis = 0, .col_axis = -1, .subgroup = 8, .numbered = true};
    assert_int_equal(smg_kernel_distribute(f.k, &grid), SMG_OK);
    int last = 16; /* fewer sums: all of k; then less of it, and never nothing */
    for (int64_t budget = 2000; budget > 0; budget -= 50) {
        target.code_budget = budget;
        smg_kernel_unroll(f.k, &target);
        const smg_instr *mma = first(f.k, SMG_I_MMA);
        if (budget == 2000) assert_int_equal(mma->unroll, 16);
        assert_true(mma->unroll <= last && mma->unroll >= 1 && 16 % mma->unroll == 0);
        assert_true(mma->unroll == 1 || smg_kernel_operations(f.k) <= budget);
        last = mma->unroll;
    }
    assert_int_equal(last, 1);
    bench_close(&f);
}

/* 4 rows and 2 columns a lane: 16 k have 96 words of factors. */
static void test_loaded_in_front(void **state) {
    (void)state;
    bench f;
    smg_target target;
    bench_open(&f, product);
    assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
    f.k->axes.items[0].tile = f.k->axes.items[1].tile = 16;
    smg_lane_grid grid = {
        .rows = 4, .cols = 8, .depth = 1, .vec = 1, .row_axis = 0, .col_axis = -1, .subgroup = 8, .numbered = true};
    assert_int_equal(smg_kernel_distribute(f.k, &grid), SMG_OK);
    assert_int_equal(kernel_live_keep(f.k), SMG_OK);
    int64_t around = smg_kernel_registers_around(f.k, (int)(first(f.k, SMG_I_MMA) - f.k->code.items));
    assert_in_range(around, 8, smg_kernel_registers(f.k)); /* the sums at least */
    target.registers_ahead = around + 96;
    smg_kernel_unroll(f.k, &target);
    assert_int_equal(first(f.k, SMG_I_MMA)->unroll, 16);
    target.registers_ahead--;
    smg_kernel_unroll(f.k, &target);
    assert_int_equal(first(f.k, SMG_I_MMA)->unroll, 8);
    bench_close(&f);
}

/* Of opaque matrices whose elements along k are no neighbours each is loaded to a register of its own. A step of k has
 * two matrices of either side. */
static void test_opaque_in_front(void **state) {
    (void)state;
    static const char sums[] = "registers column*2 lanes column*2:2 row*4";
    static const struct {
        const char *opaque, *right;
        int words; /* of a lane and step */
    } all[] = {{"", "[k, j]", 4}, {"", "[j, k]", 4}, {"opaque ", "[j, k]", 4}, {"opaque ", "[k, j]", 6}};
    for (size_t i = 0; i < SMG_COUNT_OF(all); i++) {
        bench f;
        smg_target target;
        char matrix[64];
        snprintf(matrix, sizeof matrix, "%s%s", all[i].opaque, sums);
        bench_open(&f, by_matrices(matrix, all[i].right));
        assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
        assert_int_equal(kernel_live_keep(f.k), SMG_OK);
        int64_t around = smg_kernel_registers_around(f.k, (int)(first(f.k, SMG_I_MMA) - f.k->code.items));
        target.registers_ahead = around + 4 * all[i].words;
        smg_kernel_unroll(f.k, &target);
        assert_int_equal(first(f.k, SMG_I_MMA)->unroll, 16);
        target.registers_ahead--;
        smg_kernel_unroll(f.k, &target);
        assert_int_equal(first(f.k, SMG_I_MMA)->unroll, 8);
        bench_close(&f);
    }
}

/* Printed, it has the line; read and printed again, it is the same text and as much code. */
static void check_text(const char *kernel, int64_t budget, const char *line) {
    bench f;
    smg_text once, twice;
    smg_kernel *again;
    smg_target target;
    bench_open(&f, kernel);
    smg_text_init(&once, f.ctx);
    smg_text_init(&twice, f.ctx);
    assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
    target.code_budget = budget;
    smg_kernel_unroll(f.k, &target);
    smg_kernel_print(f.k, &once);
    assert_non_null(strstr(smg_text_cstr(&once), line));
    assert_int_equal(smg_kernel_parse(f.k->arena, f.sizes, smg_text_cstr(&once), &again), SMG_OK);
    assert_int_equal(smg_kernel_operations(again), smg_kernel_operations(f.k));
    smg_kernel_print(again, &twice);
    assert_string_equal(smg_text_cstr(&once), smg_text_cstr(&twice));
    smg_text_free(&once);
    smg_text_free(&twice);
    bench_close(&f);
}

/* 64 elements a lane are written out where they would be registers, or are not much code. */
static void test_long_inner_loops(void **state) {
    (void)state;
    static const char *const names[] = {"lavapipe", "h200"};
    bench f;
    smg_target target;
    bench_open(&f, "kernel wide\n"
                   "lanes 8 subgroup 8\n"
                   "axis i = 8 tile 8 grid\n"
                   "axis k = 64 tile 64\n"
                   "grid i\n"
                   "layout 0 = [i, k] registers k*64 lanes i*8\n"
                   "buffer x f32 [512] value 0\n"
                   "buffer y f32 [512] value 1 written\n"
                   "access 0 = x at [0] i*[64] k*[1]\n"
                   "access 1 = y at [0] i*[64] k*[1]\n"
                   "code\n"
                   "  store 1 over [i, k] layout 0 = load(0)\n");
    for (int gpu = 0; gpu < 2; gpu++) {
        assert_int_equal(smg_target_named(f.ctx, names[gpu], &target), SMG_OK);
        target.code_budget = INT64_MAX;
        smg_kernel_unroll(f.k, &target);
        int64_t all = smg_kernel_operations(f.k);
        for (int less = 0; less < 2; less++) {
            target.code_budget = 2 * (all - less);
            smg_kernel_unroll(f.k, &target);
            assert_int_equal(smg_kernel_inner_written(f.k, 64), gpu || !less);
            assert_true(smg_kernel_inner_written(f.k, 32));
        }
    }
    bench_close(&f);
}

/* A product of 512 columns: 64 in the registers of each lane, for a row that all of them share (`own` is 0) or that is the
 * lane's own. */
static const char *of_columns(int own) {
    static char text[1024];
    snprintf(text, sizeof text,
             "kernel columns\n"
             "lanes 8 subgroup 8 numbered\n"
             "axis i = 8 tile %d grid\n"
             "axis j = 512 tile %d grid\n"
             "axis k = 64 tile 16\n"
             "grid i, j\n"
             "layout 0 = [i, j] registers %s\n"
             "layout 1 = [i, j, k] registers k*16 %s\n"
             "layout 2 = [i, k] registers k*16 lanes i*8\n"
             "buffer a f32 [512] value 0\n"
             "buffer b f32 [32768] value 1\n"
             "buffer y f32 [4096] value 2 written\n"
             "tile acc float register [i, j] layout 0\n"
             "tile va float %s\n"
             "tile vb float view [k, j] of 1\n"
             "access 0 = a at [0] i*[64] k*[1]\n"
             "access 1 = b at [0] k*[512] j*[1]\n"
             "access 2 = y at [0] i*[512] j*[1]\n"
             "code\n"
             "  set acc = 0\n"
             "  loop k\n"
             "%s"
             "    mma acc += va * vb over [k] layout 1\n"
             "  end\n"
             "  store 2 over [i, j] layout 0 = exp(acc)\n",
             own ? 8 : 1, own ? 64 : 512, own ? "j*64 lanes i*8" : "j*64:8 lanes j*8",
             own ? "j*64 lanes i*8" : "j*64:8 lanes j*8", own ? "register [i, k] layout 2" : "view [i, k] of 0",
             own ? "    set va = load(0)\n" : "");
    return text;
}

/* Of 64 sums a lane 4 k are written out where it has its row alone, else 8. Sums that the text of a product has by number
 * stay so, however much code that is. */
static void test_columns(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++) {
        bench f;
        smg_target target;
        bench_open(&f, of_columns(own));
        assert_int_equal(smg_target_named(f.ctx, "lavapipe", &target), SMG_OK);
        target.code_budget = INT64_MAX;
        smg_kernel_unroll(f.k, &target);
        assert_int_equal(first(f.k, SMG_I_MMA)->unroll, own ? 4 : 8);
        assert_true(smg_kernel_inner_written(f.k, 64));
        target.code_budget = 2 * (smg_kernel_operations(f.k) - 1);
        smg_kernel_unroll(f.k, &target);
        assert_int_equal(smg_kernel_inner_written(f.k, 64), !own);
        bench_close(&f);
    }
}

/* What is written out is part of the text. */
static void test_text(void **state) {
    (void)state;
    check_text(rows, INT64_MAX, "loop k unroll\n");
    check_text(rows, 1, "loop k rolled\n");
    check_text(product, INT64_MAX, "over [k] layout 1 unroll 4\n");
    check_text(product, 1, "over [k] layout 1 unroll 1\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_loop_budget),
        cmocka_unit_test(test_product_budget),
        cmocka_unit_test(test_loaded_in_front),
        cmocka_unit_test(test_opaque_in_front),
        cmocka_unit_test(test_long_inner_loops),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
