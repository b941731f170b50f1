/* target: careful values, the text form both ways, refusals with their line and numbers, built-in
 * devices, the files of tests/targets, tables, and the hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "target/target.h"

static smg_context *new_context(void) {
    const smg_context_desc desc = {.cache_dir = ""};
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
    return ctx;
}

static void must(smg_context *ctx, smg_status status) {
    if (status != SMG_OK) fail_msg("failed: %s", smg_context_error(ctx));
}

static void refuse(smg_context *ctx, const char *text, const char *part) {
    smg_target target;
    smg_target_init(&target);
    const smg_target before = target;
    assert_int_equal(smg_target_parse(ctx, text, "file", &target), SMG_FORMAT);
    if (!strstr(smg_context_error(ctx), part)) fail_msg("'%s' does not say '%s'", smg_context_error(ctx), part);
    assert_memory_equal(&before, &target, sizeof target);
    smg_context_clear_error(ctx);
}

static void round_trip(smg_context *ctx, const smg_target *target) {
    smg_text text, again;
    smg_text_init(&text, ctx);
    smg_text_init(&again, ctx);
    smg_target_print(target, &text);
    smg_target parsed;
    must(ctx, smg_target_parse(ctx, smg_text_cstr(&text), "printed", &parsed));
    smg_target_print(&parsed, &again);
    assert_string_equal(smg_text_cstr(&text), smg_text_cstr(&again));
    assert_true(smg_target_hash(target) == smg_target_hash(&parsed));
    smg_text_free(&text);
    smg_text_free(&again);
}

static void test_careful(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_target careful, parsed;
    smg_target_init(&careful);
    assert_int_equal(careful.shared_bytes, 16384);
    assert_int_equal(careful.shared_bytes_from, SMG_FACT_ASSUMED);
    must(ctx, smg_target_verify(ctx, &careful));
    must(ctx, smg_target_named(ctx, "careful", &parsed));
    assert_true(smg_target_hash(&careful) == smg_target_hash(&parsed));
    assert_string_equal(parsed.name, "careful");
    smg_context_destroy(ctx);
}

static void test_parse(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_target target;
    must(ctx, smg_target_parse(ctx,
                               "# a comment\r\n\n  name = my device \ntype=discrete\n"
                               "shared_bytes = 49152  # queried\nbandwidth = 4.2e12 # measured\n"
                               "cores = 132 # by hand\nmax_invocations = 1024\n"
                               "uuid = 000102030405060708090a0b0c0d0e0f\n"
                               "matrix = 16x8x16 f16 f16 f32 f32\nmatrix = 8x8x32 i8 i8 i32 i32 2.5e14\n"
                               "subgroup_size = 32\n"
                               "fragment = a 16x16 f16 registers column*16  lanes row*16 *2 # measured\n"
                               "fragment = accumulator 16x8 f32 registers row*4:4 lanes column*8 row*4",
                               "file", &target));
    assert_string_equal(target.name, "my device");
    assert_int_equal(target.type, SMG_DEVICE_DISCRETE);
    assert_int_equal(target.shared_bytes, 49152);
    assert_int_equal(target.shared_bytes_from, SMG_FACT_QUERIED);
    assert_int_equal(target.shared_core, 98304); /* follows, because it was not given */
    assert_true(fabs(target.bandwidth - 4.2e12) < 1);
    assert_int_equal(target.bandwidth_from, SMG_FACT_MEASURED);
    assert_int_equal(target.cores_from, SMG_FACT_TABLE);
    assert_int_equal(target.uuid[15], 15);
    assert_int_equal(target.matrix_count, 2);
    assert_int_equal(target.matrix[0].n, 8);
    assert_string_equal(target.matrix[1].result, "i32");
    assert_true(fabs(target.matrix[1].rate - 2.5e14) < 1 && target.matrix[0].rate < 1);
    assert_int_equal(target.fragments[0].from, SMG_FACT_MEASURED);
    assert_int_equal(target.fragments[1].from, SMG_FACT_TABLE);
    assert_ptr_equal(smg_target_fragment(&target, &target.matrix[0], SMG_MATRIX_A), &target.fragments[0].layout);
    assert_null(smg_target_fragment(&target, &target.matrix[0], SMG_MATRIX_B));
    assert_null(smg_target_fragment(&target, &target.matrix[1], SMG_MATRIX_A));
    assert_ptr_equal(smg_target_fragment(&target, &target.matrix[0], SMG_MATRIX_ACCUMULATOR),
                     &target.fragments[1].layout);
    round_trip(ctx, &target);
    target.subgroup_size = 64; /* whose registers are not known */
    assert_null(smg_target_fragment(&target, &target.matrix[0], SMG_MATRIX_A));
    smg_context_destroy(ctx);
}

static void test_refusals(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    refuse(ctx, "\nspeed = 3\n", "file:2: 'speed' is not a fact");
    refuse(ctx, "cores\n", "key = value");
    refuse(ctx, "cores = 1\ncores = 2\n", "file:2: 'cores' is given twice");
    refuse(ctx, "cores = many", "'many' is not an integer");
    refuse(ctx, "cores = 1.5", "'1.5' is not an integer");
    refuse(ctx, "cores = ", "not an integer");
    refuse(ctx, "cores = 99999999999999999999", "not an integer");
    refuse(ctx, "cores = 0", "cores is 0, must be positive");
    refuse(ctx, "slots = 9", "slots is 9, at most 8");
    refuse(ctx, "cores = -4", "cores is -4");
    refuse(ctx, "fp16 = 2", "fp16 is 2, must be 0 or 1");
    refuse(ctx, "bandwidth = fast", "'fast' is not a number");
    refuse(ctx, "bandwidth = 0", "bandwidth is 0");
    refuse(ctx, "bandwidth = 1e999", "bandwidth is inf");
    refuse(ctx, "bandwidth = nan", "not a number");
    refuse(ctx, "subgroup_min = 64\nsubgroup_max = 32\n", "subgroup_min 64 is above subgroup_max 32");
    refuse(ctx, "subgroup_min = 32\nsubgroup_size = 16\n", "subgroup_size 16 is outside");
    refuse(ctx, "subgroup_max = 64\nsubgroup_size = 128\n", "subgroup_size 128");
    refuse(ctx, "subgroup_size = 24\n", "must be a power of two");
    refuse(ctx, "shared_bytes = 49152\nshared_core = 32768\n", "shared_core 32768");
    refuse(ctx, "buffer_alignment = 48\n", "buffer_alignment is 48");
    refuse(ctx, "type = abacus\n", "'abacus'");
    refuse(ctx, "name = \n", "name has 0 bytes");
    refuse(ctx, "uuid = 12\n", "32 hexadecimal digits");
    refuse(ctx, "matrix = 16x16 f16 f16 f32 f32\n", "16x16 f16");
    refuse(ctx, "matrix = 16x16x16 f16 f16 f32\n", "form");
    refuse(ctx, "matrix = 16x16x16 f16 f16 f32 f33\n", "form");
    refuse(ctx, "matrix = 16x16x16 f16 f16 f32 f32 f32\n", "form");
    refuse(ctx, "matrix = 0x16x16 f16 f16 f32 f32\n", "0x16x16");
    refuse(ctx, "matrix = 16x16x16 f16 f16 f32 f32 -1\n", "rate of matrix shape 0 is -1");
    refuse(ctx, "matrix = 16x16x16 f16 f16 f32 f32 1e9 2\n", "form");
    refuse(ctx, "fragment = d 8x8 f16 registers row*8 lanes column*8\n", "form");
    refuse(ctx, "fragment = a 8x8x8 f16 registers row*8 lanes column*8\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 row*8 lanes column*8\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 lanes column*8 registers row*8\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 registers row*7 lanes column*8\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 registers depth*8 lanes column*8\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 registers row*8 lanes column*4:2\n", "form");
    refuse(ctx, "fragment = a 8x8 f16 registers row*8 lanes row*8\n", "form");
    refuse(ctx, "fragment = a 16x8 f16 registers row*8 lanes column*8\n", "fragment a 16x8 f16 is of 8x8");
    refuse(ctx, "fragment = b 8x8 f16 registers row*8 subgroups column*8\n", "over several subgroups");
    refuse(ctx,
           "fragment = b 8x8 f16 registers row*8 lanes column*8\nfragment = b 8x8 f16 registers column*8 lanes row*8\n",
           "fragment b 8x8 f16 of 8 lanes is given twice");
    smg_context_destroy(ctx);
}

static void test_too_many_matrices(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_text text;
    smg_text_init(&text, ctx);
    for (int i = 0; i <= SMG_MAX_MATRIX_SHAPES; i++) smg_text_add(&text, "matrix = 8x8x8 f16 f16 f32 f32\n");
    refuse(ctx, smg_text_cstr(&text), "more than 64");
    smg_text_free(&text);
    smg_context_destroy(ctx);
}

/* ---- layouts of fragments, as formulas of the element e and the lane l ------------------------------ */

typedef void (*place_formula)(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column);

static void place_h200(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    (void)lanes;
    bool b = use == SMG_MATRIX_B;
    int along = b ? f->rows : f->columns; /* two rows of eight, or one, lie behind each other in a lane */
    int near = 2 * (l & 3) + (e & 1), far = l / 4, rest = e >> 1;
    if (along == 16) near += 8 * (rest & 1), rest >>= 1;
    far += 8 * rest;
    *out_row = b ? near : far;
    *out_column = b ? far : near;
}

static void place_ampere(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    (void)lanes;
    bool b = use == SMG_MATRIX_B;
    int along = b ? f->rows : f->columns, across = b ? f->columns : f->rows, rest = e >> 1;
    int near = 2 * (l & 3) + (e & 1), far = l / 4;
    if (b && along == 16) near += 8 * (rest & 1), rest >>= 1;
    if (across == 16) far += 8 * (rest & 1), rest >>= 1;
    if (!b && along == 16) near += 8 * (rest & 1);
    *out_row = b ? near : far;
    *out_column = b ? far : near;
}

static void place_navi31(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    (void)f;
    *out_row = use == SMG_MATRIX_A ? l & 15 : use == SMG_MATRIX_B ? e : (l >> 4) + e * (lanes / 16);
    *out_column = use == SMG_MATRIX_A ? e : l & 15;
}

static void place_gfx1201(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    (void)f;
    int far = lanes == 32 ? e + 8 * (l >> 4) : e + 8 * (l >> 4 & 1) + 4 * (l >> 5);
    *out_row = use == SMG_MATRIX_A ? l & 15 : far;
    *out_column = use == SMG_MATRIX_A ? far : l & 15;
}

static void place_intel(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    int p = strcmp(f->type, "f32") == 0 ? 1 : 2;
    int c = use == SMG_MATRIX_B ? f->columns : f->columns / p, row = l / c + e / p * (lanes / c);
    *out_row = use == SMG_MATRIX_B ? row * p + e % p : row;
    *out_column = use == SMG_MATRIX_B ? l % c : l % c * p + e % p;
}

static void place_lavapipe(int use, const smg_fragment *f, int lanes, int e, int l, int *out_row, int *out_column) {
    (void)f, (void)lanes;
    *out_row = use == SMG_MATRIX_B ? l : e;
    *out_column = use == SMG_MATRIX_B ? e : l;
}

static void check_fragment(const smg_fragment *f, place_formula place) {
    int lanes = (int)smg_layout_numbers(&f->layout, SMG_LAYOUT_LANE);
    for (int e = 0; e < (int)smg_layout_registers(&f->layout); e++) {
        for (int l = 0; l < lanes; l++) {
            int row = -1, column = -1;
            place((int)f->use, f, lanes, e, l, &row, &column);
            assert_int_equal(smg_layout_coordinate(&f->layout, SMG_FRAGMENT_ROW, e, l, 0), row);
            assert_int_equal(smg_layout_coordinate(&f->layout, SMG_FRAGMENT_COLUMN, e, l, 0), column);
        }
    }
}

static void test_fragments(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    static const struct {
        const char *name;
        place_formula place;
    } rows[] = {{"lavapipe", place_lavapipe}, {"h200", place_h200}, {"ampere", place_ampere}, {"navi31", place_navi31},
                {"gfx1201", place_gfx1201},   {"dg2", place_intel}, {"bmg", place_intel}};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_target target;
        must(ctx, smg_target_named(ctx, rows[i].name, &target));
        for (int j = 0; j < target.fragment_count; j++) check_fragment(&target.fragments[j], rows[i].place);
        int known = 0;
        for (int j = 0; j < target.matrix_count; j++) { /* every product of floats has layouts */
            if (strcmp(target.matrix[j].a, "f16") != 0 && strcmp(target.matrix[j].a, "bf16") != 0) continue;
            for (int use = 0; use < SMG_MATRIX_USES; use++, known++)
                assert_non_null(smg_target_fragment(&target, &target.matrix[j], (smg_matrix_use)use));
        }
        assert_true(known > 0);
    }
    smg_context_destroy(ctx);
}

static void test_named(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    static const char *const names[] = {"careful", "lavapipe",  "h200", "navi31", "gfx1201", "dg2",
                                        "bmg",     "adreno740", "m1",   "ampere", "mtl"};
    uint64_t hashes[SMG_COUNT_OF(names)];
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        smg_target target;
        must(ctx, smg_target_named(ctx, names[i], &target));
        assert_string_equal(target.name, names[i]);
        round_trip(ctx, &target);
        hashes[i] = smg_target_hash(&target);
        for (size_t j = 0; j < i; j++) assert_true(hashes[i] != hashes[j]);
    }
    smg_target target;
    assert_int_equal(smg_target_named(ctx, "cray1", &target), SMG_NOT_FOUND);
    assert_non_null(strstr(smg_context_error(ctx), "careful, lavapipe, h200"));
    smg_context_destroy(ctx);
}

static void test_files(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    static const char *const names[] = {"shared16k_inv128", "subgroup4", "subgroup128", "shared48k_inv1024", "nofp16"};
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/targets/%s.target", names[i]);
        char *text = NULL;
        size_t size = 0;
        must(ctx, smg_file_read(ctx, path, &text, &size));
        smg_target target;
        must(ctx, smg_target_parse(ctx, text, path, &target));
        assert_string_equal(target.name, names[i]);
        round_trip(ctx, &target);
        smg_free(ctx, text, size + 1);
    }
    smg_context_destroy(ctx);
}

static void test_tables(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_target target;
    smg_target_init(&target);
    snprintf(target.name, sizeof target.name, "NVIDIA H200");
    target.shared_bytes = 49152;
    target.shared_bytes_from = SMG_FACT_QUERIED;
    must(ctx, smg_target_apply_tables(ctx, &target));
    assert_int_equal(target.registers_lane, 255);
    assert_int_equal(target.registers_lane_from, SMG_FACT_TABLE);
    assert_int_equal(target.shared_bytes_from, SMG_FACT_QUERIED);
    assert_int_equal(target.matrix_count + target.fragment_count, 0); /* matrices are the driver's to tell */
    target.matrix[target.matrix_count++] = (smg_matrix_shape){16, 8, 16, "f16", "f16", "f32", "f32", 0};
    must(ctx, smg_target_apply_tables(ctx, &target));
    assert_true(target.matrix[0].rate > 6e14);
    assert_int_equal(target.fragment_count, 3);
    target.subgroup_size = 32;
    for (int use = 0; use < SMG_MATRIX_USES; use++)
        assert_non_null(smg_target_fragment(&target, &target.matrix[0], (smg_matrix_use)use));
    smg_target unknown;
    smg_target_init(&unknown);
    snprintf(unknown.name, sizeof unknown.name, "a device of tomorrow");
    must(ctx, smg_target_apply_tables(ctx, &unknown));
    assert_int_equal(unknown.registers_lane_from, SMG_FACT_ASSUMED);
    smg_context_destroy(ctx);
}

/* A chip that has no row takes what its maker's chips have in common, and neither cores nor rates. */
static void test_families(void **state) {
    (void)state;
    static const struct {
        const char *device;
        int registers, subgroup;
    } rows[] = {{"NVIDIA GeForce RTX 4090", 255, 32},
                {"NVIDIA GeForce RTX 4090 (NVK AD102)", 112, 32}, /* another compiler, which has a row */
                {"AMD Radeon RX 6800 XT (RADV NAVI21)", 160, 32},
                {"Intel(R) UHD Graphics 620 (KBL GT2)", 72, 8},
                {"Turnip Adreno (TM) 660", 112, 64},
                {"Apple M3 Max", 72, 32},
                {"a device of tomorrow", 64, 32}};
    smg_context *ctx = new_context();
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_target target;
        smg_target_init(&target);
        snprintf(target.name, sizeof target.name, "%s", rows[i].device);
        target.subgroup_size = 32;
        target.subgroup_max = 64;
        must(ctx, smg_target_apply_tables(ctx, &target));
        assert_int_equal(target.registers_lane, rows[i].registers);
        assert_int_equal(target.subgroup_size, rows[i].subgroup);
        if (rows[i].registers != 112 || rows[i].subgroup != 32) {
            assert_int_equal(target.cores_from, SMG_FACT_ASSUMED);
            assert_int_equal(target.fma_rate_from, SMG_FACT_ASSUMED);
            assert_int_equal(target.bandwidth_from, SMG_FACT_ASSUMED);
        }
    }
    smg_target named;
    assert_int_equal(smg_target_named(ctx, "NVIDIA family", &named), SMG_NOT_FOUND);
    smg_context_destroy(ctx);
}

/* What a type says holds only where no fact does. */
static void test_settled(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_target gpu, cpu, told;
    must(ctx, smg_target_parse(ctx, "type = discrete\nsubgroup_size = 32\n", "gpu", &gpu));
    assert_true(smg_target_switches_lanes(&gpu) && smg_target_hides_loads(&gpu));
    assert_int_equal(gpu.registers_core, 32 * gpu.core_lanes);
    gpu.registers_lane = 255; /* as if it had been measured */
    smg_target_settle(&gpu);
    assert_int_equal(gpu.registers_core, 256 * 255);
    assert_int_equal(gpu.spills_lane, 128);
    must(ctx, smg_target_parse(ctx, "type = cpu\nsubgroup_max = 4\n", "cpu", &cpu));
    assert_int_equal(cpu.core_lanes, 4);
    assert_int_equal(cpu.core_lanes_from, SMG_FACT_ASSUMED);
    assert_false(smg_target_switches_lanes(&cpu) || smg_target_hides_loads(&cpu));
    must(ctx, smg_target_parse(ctx, "type = cpu\ncore_lanes = 1024\nload_latency = 4e-7\n", "told", &told));
    assert_true(smg_target_switches_lanes(&told) && smg_target_hides_loads(&told));
    assert_true(fabs(gpu.subgroup_barrier_cost - gpu.barrier_cost / 8) < 1e-12);
    assert_int_equal(gpu.spills_lane, gpu.registers_lane / 2 + 1);
    must(ctx, smg_target_parse(ctx, "registers_lane = 128\nspills_lane = 1\n", "told", &told));
    assert_int_equal(told.spills_lane, 1);
    must(ctx, smg_target_parse(ctx, "barrier_cost = 1e-6\nsubgroup_barrier_cost = 9e-7\n", "told", &told));
    assert_true(told.subgroup_barrier_cost > 8.9e-7);
    round_trip(ctx, &cpu);
    smg_context_destroy(ctx);
}

static void test_hash(void **state) {
    (void)state;
    smg_target a, b;
    smg_target_init(&a);
    smg_target_init(&b);
    b.cores_from = SMG_FACT_MEASURED; /* origins do not change a plan */
    assert_true(smg_target_hash(&a) == smg_target_hash(&b));
    b.cores = 2;
    assert_true(smg_target_hash(&a) != smg_target_hash(&b));
    b = a;
    b.bandwidth = 3e10;
    assert_true(smg_target_hash(&a) != smg_target_hash(&b));
    b = a;
    b.matrix_count = 1;
    assert_true(smg_target_hash(&a) != smg_target_hash(&b));
    smg_target c = b;
    c.matrix[0].rate = 1e12;
    assert_true(smg_target_hash(&c) != smg_target_hash(&b));
    c = b;
    c.fragment_count = 1;
    assert_true(smg_target_hash(&c) != smg_target_hash(&b));
    b = c;
    smg_layout_replicate(&b.fragments[0].layout, SMG_LAYOUT_LANE, 2);
    assert_true(smg_target_hash(&c) != smg_target_hash(&b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_careful),   cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_too_many_matrices),
        cmocka_unit_test(test_fragments), cmocka_unit_test(test_named),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_tables),
        cmocka_unit_test(test_families),  cmocka_unit_test(test_settled),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
