#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "lower/lower.h"
#include "support/all_cases.h"
#include "support/glsl_case.h"

/* ---- compiling and running ------------------------------------------------------------------------ */

void glsl_compile(glsl_fixture *f, smg_arena *arena, smg_kernel *k, const smg_target *target,
                  smg_spirv_module *out_module) {
    smg_text text;
    smg_text_init(&text, f->ctx);
    assert_int_equal(smg_kernel_exchange_lanes(k, target), SMG_OK);
    smg_kernel_widen(k, target);
    assert_int_equal(smg_kernel_find_evens(k, target), SMG_OK);
    smg_status status = smg_glsl_write(f->ctx, k, target, &text);
    if (status == SMG_OK)
        status = smg_spirv_compile(f->compiler, arena, k->name, smg_text_cstr(&text), NULL, out_module);
    if (status != SMG_OK || getenv("SMG_TEST_SHOW") != NULL)
        print_message("%s\n%s\n", smg_context_error(f->ctx), smg_text_cstr(&text));
    smg_text_free(&text);
    assert_int_equal(status, SMG_OK);
}

void glsl_write_text(glsl_fixture *f, smg_kernel *k, const smg_target *target, smg_text *out_text) {
    smg_text_init(out_text, f->ctx);
    smg_kernel_widen(k, target);
    assert_int_equal(smg_kernel_find_evens(k, target), SMG_OK);
    assert_int_equal(smg_glsl_write(f->ctx, k, target, out_text), SMG_OK);
}

void glsl_expect_parts(glsl_fixture *f, smg_kernel *k, const smg_target *target, const char *const *parts) {
    smg_text text;
    glsl_write_text(f, k, target, &text);
    for (; *parts != NULL; parts++)
        if (strstr(smg_text_cstr(&text), *parts) == NULL)
            fail_msg("%s: no '%s' in\n%s", k->name, *parts, smg_text_cstr(&text));
    smg_text_free(&text);
}

smg_kernel *glsl_parse(glsl_fixture *f, smg_arena *arena, const char *text) {
    smg_sizes *sizes;
    smg_kernel *k;
    assert_int_equal(smg_sizes_create(arena, &sizes), SMG_OK);
    if (smg_kernel_parse(arena, sizes, text, &k) != SMG_OK || smg_kernel_verify(f->ctx, k) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    return k;
}

smg_target glsl_full_target(int subgroup, bool shuffle_only) {
    smg_target t;
    smg_target_init(&t);
    t.max_invocations = t.max_size_x = 1024;
    t.shared_bytes = 49152;
    t.max_bindings = 8;
    t.subgroup_size = subgroup;
    t.subgroup_shuffle = 1;
    t.subgroup_arithmetic = t.subgroup_clustered = shuffle_only ? 0 : 1;
    t.storage16 = t.fp16 = t.nan_preserve = shuffle_only ? 0 : 1;
    return t;
}

#if SMG_VULKAN
void glsl_fill(const smg_kernel *k, const int64_t *symbols, glsl_values *v) {
    uint64_t seed = 7;
    for (int b = 0; b < k->buffers.count; b++) {
        const smg_kbuffer *at = &k->buffers.items[b];
        assert_true(smg_size_eval(k->sizes, at->elements, symbols, &v->count[b]));
        v->data[b] = calloc((size_t)v->count[b], sizeof(double));
        assert_non_null(v->data[b]);
        for (int64_t i = 0; i < v->count[b] && !at->written; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            double x = (double)(seed >> 40) / (double)(1 << 24) * 6.0 - 3.0;
            v->data[b][i] = smg_type_kind(at->type) == SMG_KIND_INT ? floor((x + 3.0) / 1.21)
                                                                    : (double)(float)(round(x * 64.0) / 64.0);
        }
    }
}

static void upload(glsl_fixture *f, smg_type type, const double *data, int64_t count, smg_vk_buffer **out_buffer) {
    int64_t size = smg_type_device_bytes(type);
    int64_t bytes = (count * size + 3) / 4 * 4;
    uint8_t *raw = calloc((size_t)bytes, 1);
    for (int64_t i = 0; i < count; i++) {
        float real = (float)data[i];
        int32_t whole = smg_type_kind(type) == SMG_KIND_INT ? (int32_t)data[i] : 0;
        uint16_t half = type == SMG_TYPE_BF16 ? smg_bf16_of(data[i]) : smg_half_of(data[i]);
        const void *from = type == SMG_TYPE_F32 ? (const void *)&real : (const void *)&whole;
        if (size == sizeof half) from = &half;
        memcpy(raw + i * size, from, (size_t)size);
    }
    assert_int_equal(smg_vk_buffer_create(f->dev, "test", bytes, SMG_VK_DEVICE, out_buffer), SMG_OK);
    assert_int_equal(smg_vk_upload(*out_buffer, 0, raw, bytes), SMG_OK);
    free(raw);
}

static void download(smg_vk_buffer *buffer, smg_type type, int64_t count, double *data) {
    int64_t bytes = (count * smg_type_device_bytes(type) + 3) / 4 * 4;
    float *raw = calloc((size_t)bytes, 1);
    const uint16_t *half = (const uint16_t *)raw;
    assert_int_equal(smg_vk_download(buffer, 0, raw, bytes), SMG_OK);
    for (int64_t i = 0; i < count; i++)
        data[i] = type == SMG_TYPE_F16    ? smg_half_value(half[i])
                  : type == SMG_TYPE_BF16 ? smg_bf16_value(half[i])
                                          : (double)raw[i];
    free(raw);
}

glsl_built glsl_build(glsl_fixture *f, const smg_kernel *k, const smg_target *target, const smg_spirv_module *module) {
    glsl_built made = {0};
    assert_int_equal(smg_glsl_describe(f->ctx, k, target, &made.face), SMG_OK);
    smg_glsl_interface face = made.face;
    smg_vk_pipeline_desc desc = {.name = k->name, .words = module->words, .word_count = module->word_count};
    desc.local_size[0] = face.local_size;
    desc.binding_count = face.binding_count;
    desc.push_bytes = 8 * face.address_count + 4 * face.push_count;
    desc.subgroup_size = face.subgroup_size;
    desc.full_subgroups = face.subgroup_size > 0;
    smg_status status = smg_vk_pipeline_create(f->dev, &desc, &made.pipeline);
    if (status != SMG_OK) print_message("%s: %s\n", k->name, smg_context_error(f->ctx));
    assert_int_equal(status, SMG_OK);
    return made;
}

void glsl_run_device(glsl_fixture *f, const smg_kernel *k, const glsl_built *made, const int64_t *symbols,
                     glsl_values *v, uint32_t out_bad[4]) {
    const smg_glsl_interface face = made->face;
    smg_vk_binding bindings[GLSL_CASE_BUFFERS + 1] = {{0}};
    for (int b = 0; b < k->buffers.count; b++)
        upload(f, k->buffers.items[b].type, v->data[b], v->count[b], &bindings[b].buffer);
    if (face.diagnostics >= 0) upload(f, SMG_TYPE_I32, (double[4]){0}, 4, &bindings[face.diagnostics].buffer);
    int32_t push[3 * SMG_GLSL_MAX_PUSH];
    for (int i = 0; i < face.address_count; i++) {
        uint64_t address = smg_vk_buffer_address(bindings[face.address_bindings[i]].buffer);
        memcpy(push + 2 * i, &address, sizeof address);
    }
    for (int i = 0; i < face.push_count; i++) push[2 * face.address_count + i] = (int32_t)symbols[face.push_symbols[i]];
    int64_t groups;
    assert_true(smg_kernel_grid(k, symbols, &groups));
    int64_t gy = 2, gx = (groups + 1) / 2 + 1; /* some too many */
    smg_vk_recording *rec;
    assert_int_equal(smg_vk_recording_begin(f->dev, 0, &rec), SMG_OK);
    int push_bytes = 8 * face.address_count + 4 * face.push_count;
    smg_vk_record_dispatch(rec, made->pipeline, bindings, face.binding_count, push, push_bytes, gx, gy, 1);
    assert_int_equal(smg_vk_recording_end(rec), SMG_OK);
    assert_int_equal(smg_vk_run(rec), SMG_OK);
    for (int b = 0; b < k->buffers.count; b++) {
        if (!k->buffers.items[b].written) continue;
        download(bindings[b].buffer, k->buffers.items[b].type, v->count[b], v->data[b]);
    }
    if (face.diagnostics >= 0)
        assert_int_equal(smg_vk_download(bindings[face.diagnostics].buffer, 0, out_bad, 16), SMG_OK);
    smg_vk_recording_destroy(rec);
    for (int b = 0; b < face.binding_count; b++) smg_vk_buffer_destroy(bindings[b].buffer);
}
/* Drivers round sums of f16 once or twice a product. */
static double slack_of(const smg_kernel *k) {
    double slack = 2e-5;
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].terms > 0) slack = 0.1;
    return slack;
}

static void compare(const smg_kernel *k, hand_lanes l, const glsl_values *want, const glsl_values *got) {
    double slack = slack_of(k);
    for (int b = 0; b < k->buffers.count; b++) {
        if (!k->buffers.items[b].written) continue;
        for (int64_t i = 0; i < want->count[b]; i++) {
            double x = want->data[b][i], y = got->data[b][i];
            if (fabs(x - y) <= slack * (1.0 + fabs(x))) continue;
            print_message("%s %dx%d vec %d subgroup %d: %s[%lld] is %.9g, must be %.9g\n", k->name, l.rows, l.cols,
                          l.vec, l.subgroup, k->buffers.items[b].name, (long long)i, y, x);
            fail();
        }
    }
}

#endif

/* `poor`: as if the device had shuffles alone and no 16-bit storage. */
static void run_and_compare(glsl_fixture *f, smg_arena *arena, smg_kernel *k, hand_lanes l, bool poor) {
#if SMG_VULKAN
    static const int64_t sizes[] = {21, 64};
    smg_target target = f->target;
    if (poor) target.subgroup_arithmetic = target.subgroup_clustered = target.storage16 = 0;
    if (l.rows * l.cols > f->target.max_invocations) return;
    assert_int_equal(smg_kernel_exchange_lanes(k, &target), SMG_OK);
    smg_kernel_widen(k, &target);
    assert_int_equal(smg_kernel_find_evens(k, &target), SMG_OK);
    if (smg_kernel_shared_bytes(k) > f->target.shared_bytes) return;
    f->ran++;
    smg_spirv_module module;
    glsl_compile(f, arena, k, &target, &module);
    glsl_built made = glsl_build(f, k, &target, &module);
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        uint32_t bad[4] = {0};
        glsl_values want, got;
        glsl_fill(k, &sizes[i], &want);
        glsl_fill(k, &sizes[i], &got);
        smg_karray arrays[GLSL_CASE_BUFFERS];
        for (int b = 0; b < k->buffers.count; b++) arrays[b] = (smg_karray){want.data[b], want.count[b]};
        smg_status status = smg_kernel_interpret(f->ctx, k, &sizes[i], arrays, false);
        if (status != SMG_OK) print_message("%s\n", smg_context_error(f->ctx));
        assert_int_equal(status, SMG_OK);
        glsl_run_device(f, k, &made, &sizes[i], &got, bad);
        assert_int_equal(bad[0], 0);
        compare(k, l, &want, &got);
        for (int b = 0; b < k->buffers.count; b++) {
            free(want.data[b]);
            free(got.data[b]);
        }
    }
    smg_vk_pipeline_destroy(made.pipeline);
#else
    (void)f, (void)arena, (void)k, (void)l, (void)poor;
#endif
}

/* Lanes as schedules of this device have them: its own subgroups, and none where they would not be full. */
static hand_lanes lanes_here(const glsl_fixture *f, hand_lanes l) {
    bool has = f->target.subgroup_arithmetic && f->target.subgroup_shuffle;
    if (l.subgroup > 1) l.subgroup = has ? (int)f->target.subgroup_size : 1;
    if (l.rows * l.cols % l.subgroup != 0) l.subgroup = 1;
    return l;
}

void glsl_check_shapes(void **state, hand_maker *make, size_t first, size_t step) {
    static const hand_lanes shapes[] = {{1, 1, 1, 1},   {4, 8, 1, 8},   {2, 4, 2, 8},   {2, 32, 1, 8},  {1, 64, 4, 8},
                                        {4, 16, 1, 1},  {1, 8, 1, 1},   {16, 1, 1, 8},  {8, 4, 4, 4},   {2, 8, 1, 4},
                                        {1, 16, 1, 32}, {2, 64, 2, 32}, {8, 16, 1, 32}, {4, 32, 1, 32}, {4, 16, 1, 16},
                                        {8, 8, 4, 16},  {4, 4, 1, 16}};
    glsl_fixture *f = *state;
    /* Each shape with shuffles or without; the other one in the run with wider subgroups (unit.*_wide). */
    int ran = f->ran, wide = f->device && f->target.subgroup_size > 8;
    for (size_t i = first; i < SMG_COUNT_OF(shapes); i += step) {
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            if (!all_cases() && ((int)i + wide + shuffle) % 2 != 0) continue;
            smg_arena *arena;
            smg_spirv_module module;
            assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
            smg_target target = glsl_full_target(shapes[i].subgroup, shuffle != 0);
            glsl_compile(f, arena, make(arena, shapes[i]), &target, &module);
            if (f->device) {
                hand_lanes l = lanes_here(f, shapes[i]);
                run_and_compare(f, arena, make(arena, l), l, shuffle != 0);
            }
            smg_arena_destroy(arena);
        }
    }
    if (f->device && f->ran == ran) fail_msg("no kernel ran on %s", f->target.name);
}

void glsl_check_here(glsl_fixture *f, smg_arena *arena, smg_kernel *k) {
    const hand_lanes l = {.rows = 1, .cols = k->lanes, .vec = 1, .subgroup = k->subgroup};
    if (f->device) run_and_compare(f, arena, k, l, false);
}

void glsl_check(void **state, hand_maker *make) {
    glsl_check_shapes(state, make, 0, 1);
}

void glsl_check_kinds(void **state, hand_maker *const *kinds, size_t count) {
    const size_t apart = all_cases() ? 1 : 4;
    for (size_t i = 0; i < count; i++) glsl_check_shapes(state, kinds[i], i % apart, apart);
}
/* ---- set up --------------------------------------------------------------------------------------- */

int glsl_set_up(void **state) {
    glsl_fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || smg_context_create(NULL, &f->ctx) != SMG_OK) return -1;
    if (smg_spirv_compiler_create(f->ctx, &f->compiler) != SMG_OK) return -1;
#if SMG_VULKAN
    if (smg_vk_open(f->ctx, NULL, 0, &f->dev) == SMG_OK) {
        f->device = true;
        f->target = *smg_vk_target(f->dev);
        print_message("device %s, subgroup %lld\n", f->target.name, (long long)f->target.subgroup_size);
    } else {
        print_message("texts are compiled, not run: %s\n", smg_context_error(f->ctx));
        smg_context_clear_error(f->ctx);
    }
#endif
    return 0;
}

int glsl_tear_down(void **state) {
    glsl_fixture *f = *state;
#if SMG_VULKAN
    smg_vk_close(f->dev);
#endif
    smg_spirv_compiler_destroy(f->compiler);
    smg_context_destroy(f->ctx);
    free(f);
    return 0;
}
