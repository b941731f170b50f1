/* vulkan: on whatever device there is (lavapipe where its driver file is installed): adding two
 * buffers, transfers, replay, timestamps, refusals, the pipeline cache on disk, and that the
 * validation layer has nothing to say. Skips with the reason when there is no device. */
#define _DEFAULT_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#if SMG_VULKAN
#include "spirv/spirv.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/witness.h"
#include "vulkan/vulkan_measure.h"
#include "vulkan/vulkan_private.h" /* test_adopted is an application with a VkDevice of its own */

#include "smg/vulkan.h"

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *dev;
} fixture;

static const char add_text[] = "#version 450\n"
                               "layout(local_size_x_id = 0) in;\n"
                               "layout(push_constant) uniform P { uint count; float scale; };\n"
                               "layout(std430, binding = 0) readonly buffer A { float a[]; };\n"
                               "layout(std430, binding = 1) readonly buffer B { float b[]; };\n"
                               "layout(std430, binding = 2) buffer C { float c[]; };\n"
                               "void main() {\n"
                               "    uint i = gl_GlobalInvocationID.x;\n"
                               "    if (i < count) c[i] = a[i] + scale * b[i];\n"
                               "}\n";

typedef struct add_push {
    uint32_t count;
    float scale;
} add_push;

static void open_device_with(fixture *f, unsigned flags) {
    memset(f, 0, sizeof *f);
    const smg_context_desc desc = witness_desc(&f->seen);
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    if (smg_vk_open(f->ctx, NULL, flags, &f->dev) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_device(fixture *f) {
    open_device_with(f, 0);
}

static void close_device(fixture *f) {
    assert_int_equal(smg_vk_validation_errors(f->dev), 0);
    smg_vk_close(f->dev);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
    assert_int_equal(f->seen.warnings, 0);
}

static void must(fixture *f, smg_status status) {
    if (status != SMG_OK) print_message("failed: %s\n", smg_context_error(f->ctx));
    assert_int_equal(status, SMG_OK);
}

static void must_fail(fixture *f, smg_status status, smg_status expected, const char *part) {
    assert_int_equal(status, expected);
    if (!strstr(smg_context_error(f->ctx), part)) fail_msg("'%s' does not say '%s'", smg_context_error(f->ctx), part);
    smg_context_clear_error(f->ctx);
}

static smg_vk_pipeline_desc add_desc(fixture *f, const uint32_t *local_size) {
    smg_spirv_compiler *compiler = NULL;
    smg_spirv_module module;
    must(f, smg_spirv_compiler_create(f->ctx, &compiler));
    must(f, smg_spirv_compile(compiler, f->arena, "add", add_text, NULL, &module));
    smg_spirv_compiler_destroy(compiler);
    return (smg_vk_pipeline_desc){
        .name = "add",
        .words = module.words,
        .word_count = module.word_count,
        .local_size = {(int)*local_size, 1, 1},
        .binding_count = 3,
        .push_bytes = sizeof(add_push),
        .constants = local_size,
        .constant_count = 1,
    };
}

static smg_vk_pipeline *add_pipeline(fixture *f, uint32_t local_size) {
    const smg_vk_pipeline_desc desc = add_desc(f, &local_size);
    smg_vk_pipeline *pipeline = NULL;
    must(f, smg_vk_pipeline_create(f->dev, &desc, &pipeline));
    return pipeline;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_devices(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    smg_vk_device_info *list = NULL;
    int count = 0;
    must(&f, smg_vk_devices(f.ctx, f.arena, &list, &count));
    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        print_message("device %d: '%s' (%s), driver %s, Vulkan %d.%d.%d, %lld MiB\n", list[i].index, list[i].name,
                      smg_device_type_word(list[i].type), list[i].driver, list[i].api_major, list[i].api_minor,
                      list[i].api_patch, (long long)(list[i].local_bytes >> 20));
        assert_int_equal(list[i].index, i);
    }
    smg_vk_device *other = NULL;
    must_fail(&f, smg_vk_open(f.ctx, "no such device", 0, &other), SMG_NOT_FOUND, "no such device");
    must_fail(&f, smg_vk_open(f.ctx, "99", 0, &other), SMG_NOT_FOUND, "99");
    must(&f, smg_vk_open(f.ctx, "0", SMG_VK_NO_OPTIONAL, &other));
    assert_int_equal(smg_vk_target(other)->fp16, 0);
    assert_int_equal(smg_vk_target(other)->matrix_count, 0);
    smg_vk_close(other);
    smg_text text;
    smg_text_init(&text, f.ctx);
    smg_target_print(smg_vk_target(f.dev), &text);
    print_message("%s", smg_text_cstr(&text));
    smg_text_free(&text);
    must(&f, smg_target_verify(f.ctx, smg_vk_target(f.dev)));
    assert_true(smg_vk_memory_available(f.dev) > 0);
    close_device(&f);
}

enum { COUNT = 5000, REPLAYS = 5 };

typedef struct vectors {
    smg_vk_buffer *a, *b, *c;
    float values[COUNT];
} vectors;

static void make_vectors(fixture *f, smg_vk_buffer_kind kind, vectors *v) {
    must(f, smg_vk_buffer_create(f->dev, "a", COUNT * 4, kind, &v->a));
    must(f, smg_vk_buffer_create(f->dev, "b", COUNT * 4, kind, &v->b));
    must(f, smg_vk_buffer_create(f->dev, "c", COUNT * 4, kind, &v->c));
    for (int i = 0; i < COUNT; i++) v->values[i] = (float)i;
    must(f, smg_vk_upload(v->a, 0, v->values, COUNT * 4));
    must(f, smg_vk_upload(v->b, 0, v->values, COUNT * 4));
    must(f, smg_vk_fill(v->c, 0, COUNT * 4, 0xffffffffu));
}

static void free_vectors(vectors *v) {
    smg_vk_buffer_destroy(v->a);
    smg_vk_buffer_destroy(v->b);
    smg_vk_buffer_destroy(v->c);
}

/* c = a + 2 b, then a = c, in one recording: each replay multiplies. */
static void run_add(fixture *f, smg_vk_buffer_kind kind) {
    static vectors v;
    make_vectors(f, kind, &v);
    smg_vk_pipeline *pipeline = add_pipeline(f, 64);
    const smg_vk_binding bindings[] = {{v.a, 0, 0}, {v.b, 0, COUNT * 4}, {v.c, 0, 0}};
    const add_push push = {COUNT, 2.0f};
    smg_vk_recording *rec = NULL;
    must(f, smg_vk_recording_begin(f->dev, 3, &rec));
    smg_vk_record_timestamp(rec, 0);
    smg_vk_record_dispatch(rec, pipeline, bindings, 3, &push, sizeof push, (COUNT + 63) / 64, 1, 1);
    smg_vk_record_barrier(rec);
    smg_vk_record_timestamp(rec, 1);
    smg_vk_record_copy(rec, v.c, 0, v.a, 0, COUNT * 4);
    smg_vk_record_timestamp(rec, 2);
    must(f, smg_vk_recording_end(rec));
    for (int run = 1; run <= REPLAYS; run++) {
        must(f, smg_vk_submit(rec));
        must(f, smg_vk_wait(rec, run % 2 ? 1e-4 : 0));
        double times[3] = {0};
        must(f, smg_vk_timestamps(rec, times, 3));
        assert_true(times[0] == 0 && times[1] > 0 && times[2] >= times[1] && times[2] < 10);
        must(f, smg_vk_download(v.c, 0, v.values, COUNT * 4));
        for (int i = 0; i < COUNT; i++) assert_true(v.values[i] == (float)i * (float)(1 + 2 * run));
    }
    smg_vk_recording_destroy(rec);
    smg_vk_pipeline_destroy(pipeline);
    free_vectors(&v);
}

static void test_add(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    run_add(&f, SMG_VK_DEVICE);
    run_add(&f, SMG_VK_UPLOAD);
    run_add(&f, SMG_VK_READBACK);
    if (getenv("SMG_VALIDATION") && !smg_vk_validation_on(f.dev))
        print_message("the validation layer is not installed\n");
    close_device(&f);
}

static void test_adopted(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    smg_vk_device *owner = f.dev;
    smg_vulkan_desc desc = {
        .instance = owner->instance->handle,
        .physical_device = owner->physical,
        .device = owner->handle,
        .queue = owner->queue,
        .queue_family = owner->family,
        .get_instance_proc_addr = vkGetInstanceProcAddr,
        .api_version = owner->api_version,
        .enabled = &owner->features.core,
        .extensions = owner->features.extensions,
        .extension_count = owner->features.extension_count,
    };
    must(&f, smg_vk_adopt(f.ctx, &desc, &f.dev));
    assert_true(smg_target_hash(smg_vk_target(f.dev)) == smg_target_hash(smg_vk_target(owner)));
    run_add(&f, SMG_VK_DEVICE);
    smg_device_close(f.dev);
    desc.enabled = NULL; /* nothing optional may be relied on */
    must(&f, smg_vk_adopt(f.ctx, &desc, &f.dev));
    assert_int_equal(smg_vk_target(f.dev)->fp16, 0);
    assert_int_equal(smg_vk_target(f.dev)->subgroup_selectable, 0);
    assert_int_equal(smg_vk_target(f.dev)->matrix_count, 0);
    run_add(&f, SMG_VK_DEVICE);
    smg_device_close(f.dev);
    smg_device_close(NULL);
    desc.queue = NULL;
    must_fail(&f, smg_vk_adopt(f.ctx, &desc, &f.dev), SMG_INVALID, "null");
    must_fail(&f, smg_vk_adopt(f.ctx, NULL, &f.dev), SMG_INVALID, "null");
    assert_int_equal(smg_vk_adopt(NULL, &desc, NULL), SMG_INVALID);
    f.dev = owner;
    close_device(&f);
}

/* More dispatches than one descriptor pool holds. */
static void test_many(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    static vectors v;
    make_vectors(&f, SMG_VK_DEVICE, &v);
    must(&f, smg_vk_fill(v.c, 0, COUNT * 4, 0));
    smg_vk_pipeline *pipeline = add_pipeline(&f, 32);
    const smg_vk_binding bindings[] = {{v.c, 0, 0}, {v.b, 0, 0}, {v.c, 0, 0}};
    const add_push push = {COUNT, 1.0f};
    smg_vk_recording *rec = NULL;
    must(&f, smg_vk_recording_begin(f.dev, 0, &rec));
    for (int i = 0; i < 300; i++) {
        smg_vk_record_dispatch(rec, pipeline, bindings, 3, &push, sizeof push, (COUNT + 31) / 32, 1, 1);
        smg_vk_record_barrier(rec);
    }
    must(&f, smg_vk_recording_end(rec));
    must(&f, smg_vk_run(rec));
    must(&f, smg_vk_download(v.c, 0, v.values, COUNT * 4));
    for (int i = 0; i < COUNT; i++) assert_true(v.values[i] == 300.0f * (float)i);
    double time = 0;
    must_fail(&f, smg_vk_timestamps(rec, &time, 1), SMG_UNSUPPORTED, "timestamps");
    smg_vk_recording_destroy(rec);
    smg_vk_pipeline_destroy(pipeline);
    free_vectors(&v);
    close_device(&f);
}

static void put_parameters(smg_vk_buffer *buffer, uint32_t groups, add_push push) {
    uint8_t *words = smg_vk_buffer_map(buffer);
    const uint32_t counts[3] = {groups, 1, 1};
    assert_non_null(words);
    memcpy(words + 4, counts, sizeof counts);
    memcpy(words + SMG_VK_PARAMETERS_ALIGNMENT, &push, sizeof push);
}

/* One recording, other workgroups and other push constants at every run. */
static void test_from_memory(void **state) {
    (void)state;
    static const uint32_t local_size = 32;
    static vectors v;
    fixture f;
    smg_vk_pipeline *pipelines[2] = {NULL, NULL};
    smg_vk_buffer *memory = NULL;
    smg_vk_recording *rec = NULL;
    open_device(&f);
    make_vectors(&f, SMG_VK_DEVICE, &v);
    smg_vk_pipeline_desc desc = add_desc(&f, &local_size);
    desc.from_memory = true;
    must(&f, smg_vk_pipeline_create(f.dev, &desc, &pipelines[0]));
    must(&f, smg_vk_pipelines_create(f.dev, &desc, 1, &pipelines[1])); /* used once, with nothing */
    must(&f, smg_vk_buffer_create(f.dev, "memory", 2 * SMG_VK_PARAMETERS_ALIGNMENT, SMG_VK_PARAMETERS, &memory));
    const smg_vk_binding bindings[] = {{v.a, 0, 0}, {v.b, 0, 0}, {v.c, 0, 0}};
    const smg_vk_parameters parameters = {memory, 4, SMG_VK_PARAMETERS_ALIGNMENT};
    for (int i = 0; i < 2; i++) {
        must(&f, smg_vk_recording_begin(f.dev, 0, &rec));
        smg_vk_record_dispatch_from(rec, pipelines[i], bindings, 3, &parameters);
        must(&f, smg_vk_recording_end(rec));
        for (uint32_t count = 0; count <= COUNT; count += 1000) {
            must(&f, smg_vk_fill(v.c, 0, COUNT * 4, 0));
            put_parameters(memory, (count + 31) / 32, (add_push){count, (float)count});
            must(&f, smg_vk_run(rec));
            must(&f, smg_vk_download(v.c, 0, v.values, COUNT * 4));
            for (uint32_t k = 0; k < COUNT; k++) {
                float want = k < count ? (float)k + (float)count * (float)k : 0;
                assert_true(v.values[k] == want);
            }
        }
        smg_vk_recording_destroy(rec);
        smg_vk_pipeline_destroy(pipelines[i]);
    }
    smg_vk_buffer_destroy(memory);
    free_vectors(&v);
    close_device(&f);
}

static void refuse_dispatch(fixture *f, const smg_vk_pipeline *pipeline, smg_vk_parameters parameters,
                            const char *part) {
    smg_vk_recording *rec = NULL;
    const smg_vk_binding bindings[] = {{parameters.buffer, 0, 0}, {parameters.buffer, 0, 0}, {parameters.buffer, 0, 0}};
    must(f, smg_vk_recording_begin(f->dev, 0, &rec));
    smg_vk_record_dispatch_from(rec, pipeline, bindings, 3, &parameters);
    must_fail(f, smg_vk_recording_end(rec), SMG_INVALID, part);
    smg_vk_recording_destroy(rec);
}

static void refuse_words(fixture *f, const smg_vk_pipeline_desc *good, const uint32_t *words, size_t count) {
    smg_vk_pipeline_desc desc = *good;
    smg_vk_pipeline *pipeline = NULL;
    desc.words = words;
    desc.word_count = count;
    must_fail(f, smg_vk_pipeline_create(f->dev, &desc, &pipeline), SMG_INVALID, "not one block of push constants");
    assert_null(pipeline);
}

static void test_from_memory_refusals(void **state) {
    (void)state;
    static const uint32_t local_size = 32;
    fixture f;
    smg_vk_buffer *memory = NULL, *other = NULL;
    smg_vk_pipeline *pipeline = NULL;
    smg_vk_recording *rec = NULL;
    open_device(&f);
    smg_vk_pipeline_desc desc = add_desc(&f, &local_size);
    smg_vk_pipeline *pushed = add_pipeline(&f, local_size);
    desc.from_memory = true;
    must(&f, smg_vk_pipeline_create(f.dev, &desc, &pipeline));
    must(&f, smg_vk_buffer_create(f.dev, "memory", 2 * SMG_VK_PARAMETERS_ALIGNMENT, SMG_VK_PARAMETERS, &memory));
    must(&f, smg_vk_buffer_create(f.dev, "other", 2 * SMG_VK_PARAMETERS_ALIGNMENT, SMG_VK_DEVICE, &other));
    refuse_dispatch(&f, pipeline, (smg_vk_parameters){memory, 2, 0}, "no counts of workgroups at 2");
    refuse_dispatch(&f, pipeline, (smg_vk_parameters){memory, 504, 0}, "no counts of workgroups at 504");
    refuse_dispatch(&f, pipeline, (smg_vk_parameters){other, 0, 0}, "no counts of workgroups");
    refuse_dispatch(&f, pipeline, (smg_vk_parameters){memory, 0, 16}, "reads 8 bytes from memory, at 16");
    refuse_dispatch(&f, pipeline, (smg_vk_parameters){memory, 0, 512}, "reads 8 bytes from memory, at 512");
    refuse_dispatch(&f, pushed, (smg_vk_parameters){memory, 0, 0}, "has 8 push bytes, was given 0");
    const add_push push = {1, 1};
    const smg_vk_binding bindings[] = {{other, 0, 0}, {other, 0, 0}, {other, 0, 0}};
    must(&f, smg_vk_recording_begin(f.dev, 0, &rec));
    smg_vk_record_dispatch(rec, pipeline, bindings, 3, &push, sizeof push, 1, 1, 1);
    must_fail(&f, smg_vk_recording_end(rec), SMG_INVALID, "at -1 there are none");
    smg_vk_recording_destroy(rec);
    uint32_t *words = SMG_ARENA_ARRAY(f.arena, uint32_t, desc.word_count);
    memcpy(words, desc.words, desc.word_count * sizeof *words);
    refuse_words(&f, &desc, words, 6);
    words[5] = 0; /* an instruction of no length */
    refuse_words(&f, &desc, words, desc.word_count);
    words[5] = 0xffff0000u; /* behind the end */
    refuse_words(&f, &desc, words, desc.word_count);
    smg_vk_pipeline_desc none = desc;
    smg_vk_pipeline *unmade = NULL;
    none.push_bytes = 0;
    must_fail(&f, smg_vk_pipeline_create(f.dev, &none, &unmade), SMG_INVALID, "has no push constants");
    smg_vk_pipeline_destroy(pushed);
    smg_vk_pipeline_destroy(pipeline);
    smg_vk_buffer_destroy(other);
    smg_vk_buffer_destroy(memory);
    close_device(&f);
}

/* Larger than the staging buffer, odd offsets; what is hashed meanwhile is what the blocks have. */
static void transfer(unsigned flags) {
    fixture f;
    open_device_with(&f, flags);
    const size_t bytes = (size_t)50 * 1024 * 1024 + 12;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    assert_non_null(out);
    assert_non_null(in);
    for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)(i * 2654435761u >> 13);
    smg_vk_buffer *buffer = NULL;
    must(&f, smg_vk_buffer_create(f.dev, "big", (int64_t)bytes + 64, SMG_VK_DEVICE, &buffer));
    uint64_t hash = 5;
    must(&f, smg_vk_upload_hashed(buffer, 3, out, (int64_t)bytes, 9, &hash));
    assert_true(hash == 5 + smg_hash_blocks(9, out, bytes));
    must(&f, smg_vk_download(buffer, 3, in, (int64_t)bytes));
    assert_memory_equal(out, in, bytes);
    must_fail(&f, smg_vk_upload(buffer, 100, out, (int64_t)bytes), SMG_INVALID, "'big'");
    must_fail(&f, smg_vk_fill(buffer, 2, 8, 0), SMG_INVALID, "multiples of 4");
    smg_vk_buffer_destroy(buffer);
    free(out);
    free(in);
    close_device(&f);
}

static void test_transfers(void **state) {
    (void)state;
    transfer(0);
    transfer(SMG_VK_UNSEEN_MEMORY);
}

static void refuse_recordings(fixture *f, smg_vk_pipeline *pipeline, smg_vk_buffer *buffer) {
    const add_push push = {1, 1.0f};
    const smg_vk_binding good[] = {{buffer, 0, 0}, {buffer, 0, 0}, {buffer, 0, 0}};
    const smg_vk_binding long_range[] = {{buffer, 0, 0}, {buffer, 0, 1 << 20}, {buffer, 0, 0}};
    const smg_vk_binding crooked[] = {{buffer, 0, 0}, {buffer, 1, 0}, {buffer, 0, 0}};
    smg_vk_recording *rec = NULL;
    must(f, smg_vk_recording_begin(f->dev, 1, &rec));
    smg_vk_record_dispatch(rec, pipeline, good, 2, &push, sizeof push, 1, 1, 1);
    smg_vk_record_barrier(rec);
    must_fail(f, smg_vk_recording_end(rec), SMG_INVALID, "3 bindings");
    must_fail(f, smg_fail(f->ctx, smg_vk_submit(rec), "sticky"), SMG_INVALID, "sticky");
    smg_vk_recording_destroy(rec);
    must(f, smg_vk_recording_begin(f->dev, 1, &rec));
    smg_vk_record_dispatch(rec, pipeline, long_range, 3, &push, sizeof push, 1, 1, 1);
    must_fail(f, smg_vk_recording_end(rec), SMG_INVALID, "binding 1");
    smg_vk_recording_destroy(rec);
    if (smg_vk_target(f->dev)->buffer_alignment > 1) {
        must(f, smg_vk_recording_begin(f->dev, 1, &rec));
        smg_vk_record_dispatch(rec, pipeline, crooked, 3, &push, sizeof push, 1, 1, 1);
        must_fail(f, smg_vk_recording_end(rec), SMG_INVALID, "multiple of");
        smg_vk_recording_destroy(rec);
    }
    must(f, smg_vk_recording_begin(f->dev, 1, &rec));
    smg_vk_record_dispatch(rec, pipeline, good, 3, &push, sizeof push, INT64_C(1) << 40, 1, 1);
    must_fail(f, smg_vk_recording_end(rec), SMG_NO_FIT, "1099511627776");
    smg_vk_recording_destroy(rec);
    must(f, smg_vk_recording_begin(f->dev, 1, &rec));
    must_fail(f, smg_vk_submit(rec), SMG_INVALID, "not ended");
    must(f, smg_vk_recording_end(rec));
    must(f, smg_vk_run(rec));
    smg_vk_recording_destroy(rec);
}

static void test_refusals(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    smg_vk_buffer *buffer = NULL;
    must_fail(&f, smg_vk_buffer_create(f.dev, "empty", 0, SMG_VK_DEVICE, &buffer), SMG_INVALID, "'empty'");
    must_fail(&f, smg_vk_buffer_create(f.dev, "huge", INT64_MAX, SMG_VK_DEVICE, &buffer), SMG_DEVICE_MEMORY,
              "9223372036854775807");
    must(&f, smg_vk_buffer_create(f.dev, "small", 1024, SMG_VK_DEVICE, &buffer));
    smg_vk_pipeline *pipeline = add_pipeline(&f, 32);
    refuse_recordings(&f, pipeline, buffer);
    smg_vk_pipeline_destroy(pipeline);
    static const uint32_t nonsense[8] = {1, 2, 3};
    smg_vk_pipeline_desc desc = {.name = "nonsense", .words = nonsense, .word_count = 8};
    must_fail(&f, smg_vk_pipeline_create(f.dev, &desc, &pipeline), SMG_INVALID, "'nonsense'");
    assert_null(pipeline);
    smg_vk_buffer_destroy(buffer);
    close_device(&f);
}

static void test_statistics(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    smg_vk_keep_stats(f.dev, true);
    smg_vk_pipeline *pipeline = add_pipeline(&f, 64);
    smg_vk_stat *stats = NULL;
    int count = 0;
    must(&f, smg_vk_pipeline_stats(pipeline, f.arena, &stats, &count));
    for (int i = 0; i < count; i++) print_message("  %s = %g\n", stats[i].name, stats[i].value);
    smg_vk_pipeline_destroy(pipeline);
    close_device(&f);
}

/* At least one runs, and on a CPU no more at a time than threads work on them; counts do not add up over runs. */
static void test_resident(void **state) {
    (void)state;
    fixture f;
    smg_vk_bench bench;
    open_device(&f);
    bool cpu = smg_vk_target(f.dev)->type == SMG_DEVICE_CPU;
    assert_int_equal(smg_vk_bench_create(f.dev, &bench), SMG_OK);
    bench.cores = 1;
    for (int64_t shared = 0; shared <= smg_vk_target(f.dev)->shared_bytes; shared += 16384) {
        int64_t groups = 0;
        assert_int_equal(smg_vk_bench_resident(&bench, 32, shared, &groups), SMG_OK);
        assert_in_range(groups, 1, cpu && smg_cpu_cores() < 40 ? smg_cpu_cores() : 40);
    }
    for (int all = 0; all < 2; all++) { /* of lanes with many values, or with more than any has registers for */
        int64_t groups = 0, registers = -1;
        assert_int_equal(smg_vk_bench_registers(&bench, all == 1, 32, &groups, &registers), SMG_OK);
        assert_in_range(groups, 1, cpu && smg_cpu_cores() < 40 ? smg_cpu_cores() : 40);
        assert_in_range(registers, 0, 4096);
    }
    smg_vk_bench_destroy(&bench);
    close_device(&f);
}

/* What a device does that no table knows: any that runs here reads shared memory faster than a disk, and waits for a load
 * less than a millisecond. */
static void test_loads(void **state) {
    (void)state;
    fixture f;
    smg_vk_bench bench;
    double near = 0, latency = 0, again = 0;
    open_device(&f);
    must(&f, smg_vk_bench_create(f.dev, &bench));
    must(&f, smg_vk_bench_fill(&bench));
    must(&f, smg_vk_bench_near(&bench, &near));
    must(&f, smg_vk_bench_latency(&bench, 1 << 20, &latency));
    must(&f, smg_vk_bench_latency(&bench, 1 << 14, &again));
    print_message("  shared memory %.3g B/s, a load %.3g s, of few bytes %.3g s\n", near, latency, again);
    assert_true(near > 1e9 && near < 1e16);
    assert_true(latency > 1e-10 && latency < 1e-3 && again > 1e-10 && again < 1e-3);
    smg_vk_bench_destroy(&bench);
    close_device(&f);
}

/* Measured once, then read from the cache folder; a damaged file is measured again. */
static void test_calibration(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    must(&f, smg_vk_calibrate(f.dev));
    const smg_target *target = smg_vk_target(f.dev);
    must(&f, smg_target_verify(f.ctx, target));
    /* A busy device keeps what the table says. */
    assert_true(target->bandwidth_from == SMG_FACT_MEASURED || target->bandwidth_from == SMG_FACT_TABLE);
    assert_true(target->fma_rate_from == SMG_FACT_MEASURED || target->fma_rate_from == SMG_FACT_TABLE);
    assert_true(target->bandwidth > 1e8 && target->bandwidth < 1e14);
    assert_true(target->fma_rate > 1e8 && target->fma_rate < 1e16);
    assert_true(target->dispatch_cost < 1e-2 && target->barrier_cost < 1e-3);
    assert_true(target->cores >= 1);
    const double bandwidth = target->bandwidth;
    bool settled = target->bandwidth_from == SMG_FACT_MEASURED && target->fma_rate_from == SMG_FACT_MEASURED &&
                   target->cache_bandwidth_from == SMG_FACT_MEASURED;
    if (settled && smg_context_cache_dir(f.ctx)[0]) {
        smg_vk_device *again = NULL;
        must(&f, smg_vk_open(f.ctx, NULL, 0, &again));
        double began = smg_clock_seconds();
        must(&f, smg_vk_calibrate(again));
        assert_true(smg_clock_seconds() - began < 0.1);
        assert_true(smg_vk_target(again)->bandwidth == bandwidth);
        assert_true(smg_target_hash(smg_vk_target(again)) == smg_target_hash(target));
        smg_vk_close(again);
    }
    close_device(&f);
}

/* The layer is not only silent, it is awake: a kernel reads what the one before it writes, and nothing
 * is between them. (It overlooks on purpose that two kernels write the same place.) */
static void test_missing_barrier(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    if (!smg_vk_validation_on(f.dev)) {
        print_message("the validation layer is not installed or not wanted\n");
        close_device(&f);
        skip();
    }
    static vectors v;
    make_vectors(&f, SMG_VK_DEVICE, &v);
    smg_vk_pipeline *pipeline = add_pipeline(&f, 64);
    const smg_vk_binding write_c[] = {{v.a, 0, 0}, {v.b, 0, 0}, {v.c, 0, 0}};
    const smg_vk_binding read_c[] = {{v.c, 0, 0}, {v.b, 0, 0}, {v.a, 0, 0}};
    const add_push push = {COUNT, 1.0f};
    smg_vk_recording *rec = NULL;
    must(&f, smg_vk_recording_begin(f.dev, 0, &rec));
    smg_vk_record_dispatch(rec, pipeline, write_c, 3, &push, sizeof push, 1, 1, 1);
    smg_vk_record_dispatch(rec, pipeline, read_c, 3, &push, sizeof push, 1, 1, 1);
    must(&f, smg_vk_recording_end(rec));
    assert_true(smg_vk_validation_errors(f.dev) > 0);
    assert_true(f.seen.warnings > 0);
    smg_vk_recording_destroy(rec);
    smg_vk_pipeline_destroy(pipeline);
    free_vectors(&v);
    smg_vk_close(f.dev);
    smg_arena_destroy(f.arena);
    smg_context_destroy(f.ctx);
    assert_int_equal(f.seen.live_bytes, 0);
}

/* Opens, makes one of everything and runs it. */
static smg_status whole_life(smg_context *ctx, const smg_spirv_module *module) {
    smg_vk_device *dev = NULL;
    smg_vk_buffer *buffer = NULL;
    smg_vk_pipeline *pipeline = NULL;
    smg_vk_recording *rec = NULL;
    const uint32_t size = 32;
    const smg_vk_pipeline_desc desc = {
        .name = "add",
        .words = module->words,
        .word_count = module->word_count,
        .local_size = {32, 1, 1},
        .binding_count = 3,
        .push_bytes = sizeof(add_push),
        .constants = &size,
        .constant_count = 1,
    };
    const add_push push = {8, 1.0f};
    smg_status status = smg_vk_open(ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &dev);
    if (status == SMG_OK) status = smg_vk_buffer_create(dev, "b", 64, SMG_VK_DEVICE, &buffer);
    if (status == SMG_OK) status = smg_vk_fill(buffer, 0, 64, 0);
    if (status == SMG_OK) status = smg_vk_pipeline_create(dev, &desc, &pipeline);
    if (status == SMG_OK) status = smg_vk_recording_begin(dev, 2, &rec);
    if (status == SMG_OK) {
        const smg_vk_binding bindings[] = {{buffer, 0, 0}, {buffer, 0, 0}, {buffer, 0, 0}};
        smg_vk_record_dispatch(rec, pipeline, bindings, 3, &push, sizeof push, 1, 1, 1);
        status = smg_vk_recording_end(rec);
    }
    if (status == SMG_OK) status = smg_vk_run(rec);
    smg_vk_recording_destroy(rec);
    smg_vk_pipeline_destroy(pipeline);
    smg_vk_buffer_destroy(buffer);
    smg_vk_close(dev);
    return status;
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    fixture f;
    open_device(&f);
    smg_spirv_compiler *compiler = NULL;
    smg_spirv_module module;
    must(&f, smg_spirv_compiler_create(f.ctx, &compiler));
    must(&f, smg_spirv_compile(compiler, f.arena, "add", add_text, NULL, &module));
    smg_spirv_compiler_destroy(compiler);
    setenv("SMG_VALIDATION", "0", 1);
    bool done = false;
    int step = 1;
    for (; !done && step < 1000; step++) {
        witness seen;
        smg_context_desc desc = witness_desc(&seen);
        desc.log = NULL; /* caches that cannot be written are told */
        desc.cache_dir = "";
        seen.fail_at = step;
        smg_context *ctx = NULL;
        smg_status status = smg_context_create(&desc, &ctx);
        if (status == SMG_OK) {
            status = whole_life(ctx, &module);
            if (status != SMG_OK && status != SMG_MEMORY) fail_msg("%s", smg_context_error(ctx));
        }
        done = status == SMG_OK && seen.calls < step;
        smg_context_destroy(ctx);
        assert_int_equal(seen.live_bytes, 0);
    }
    print_message("%d allocations failed, one at a time\n", step - 2);
    assert_true(done);
    setenv("SMG_VALIDATION", "1", 1);
    close_device(&f);
}

/* 0: there is a device. 77, the code of a skipped test: there is none, and the output says why. */
static int find_device(void) {
    static const char lavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.json";
    if (!getenv("VK_DRIVER_FILES") && !getenv("SMG_DEVICE") && smg_file_exists(lavapipe))
        setenv("VK_DRIVER_FILES", lavapipe, 1);
    setenv("SMG_VALIDATION", "1", 0);
    smg_context *ctx = NULL;
    smg_vk_device *dev = NULL;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 1;
    smg_status status = smg_vk_open(ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &dev);
    bool missing = device_missing(ctx, status);
    smg_vk_close(dev);
    smg_context_destroy(ctx);
    return missing ? device_result(0) : status != SMG_OK;
}

int main(void) {
    int found = find_device();
    if (found != 0) return found;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_from_memory),
        cmocka_unit_test(test_from_memory_refusals),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_missing_barrier),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests_name("vulkan", tests, NULL, NULL);
}
#else
int main(void) {
    print_message("skipped: built without Vulkan\n");
    return 77;
}
#endif
