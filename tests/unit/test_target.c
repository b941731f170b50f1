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
                               "matrix = 16x8x16 f16 f16 f32 f32\nmatrix = 8x8x32 i8 i8 i32 i32",
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
    round_trip(ctx, &target);
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

static void test_named(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    static const char *const names[] = {"careful", "lavapipe",  "h200", "navi31", "dg2",
                                        "bmg",     "adreno740", "m1",   "ampere"};
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
    smg_target unknown;
    smg_target_init(&unknown);
    snprintf(unknown.name, sizeof unknown.name, "a device of tomorrow");
    must(ctx, smg_target_apply_tables(ctx, &unknown));
    assert_int_equal(unknown.registers_lane_from, SMG_FACT_ASSUMED);
    smg_context_destroy(ctx);
}

/* What a type says holds only where no fact does. */
static void test_settled(void **state) {
    (void)state;
    smg_context *ctx = new_context();
    smg_target gpu, cpu, told;
    must(ctx, smg_target_parse(ctx, "type = discrete\nsubgroup_size = 32\n", "gpu", &gpu));
    assert_true(smg_target_switches_lanes(&gpu) && smg_target_hides_loads(&gpu));
    must(ctx, smg_target_parse(ctx, "type = cpu\nsubgroup_max = 4\n", "cpu", &cpu));
    assert_int_equal(cpu.core_lanes, 4);
    assert_int_equal(cpu.core_lanes_from, SMG_FACT_ASSUMED);
    assert_false(smg_target_switches_lanes(&cpu) || smg_target_hides_loads(&cpu));
    must(ctx, smg_target_parse(ctx, "type = cpu\ncore_lanes = 1024\nload_latency = 4e-7\n", "told", &told));
    assert_true(smg_target_switches_lanes(&told) && smg_target_hides_loads(&told));
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
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_careful),  cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_too_many_matrices),
        cmocka_unit_test(test_named),    cmocka_unit_test(test_files),
        cmocka_unit_test(test_tables),   cmocka_unit_test(test_settled),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
