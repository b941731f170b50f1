/* program: a bundle made by hand (y[i] = 2 x[i] + w[ids[i]] in two kernels) runs on whatever device
 * there is; a second run of the same sizes allocates nothing; bad calls and bad indices are statuses
 * and the program goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/base.h"

#if SMG_VULKAN
#include "program/program.h"
#include "spirv/spirv.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/witness.h"

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *dev;
    smg_bundle bundle;
    smg_program *program;
    int made;
    bool break_second;
} fixture;

/* Its even form (test_forms) gives 4 a. */
static const char double_text[] = "#version 450\n"
                                  "layout(local_size_x = 32) in;\n"
                                  "layout(constant_id = 0) const bool even = false;\n"
                                  "layout(push_constant) uniform P { int n; };\n"
                                  "layout(std430, binding = 0) readonly buffer A { float a[]; };\n"
                                  "layout(std430, binding = 1) buffer C { float c[]; };\n"
                                  "void main() {\n"
                                  "    uint i = gl_GlobalInvocationID.x;\n"
                                  "    if (i < uint(n)) c[i] = (even ? 4.0 : 2.0) * a[i];\n"
                                  "}\n";
static const char gather_text[] =
    "#version 450\n"
    "layout(local_size_x = 32) in;\n"
    "layout(push_constant) uniform P { int n; };\n"
    "layout(std430, binding = 0) readonly buffer A { float a[]; };\n"
    "layout(std430, binding = 1) readonly buffer I { int ids[]; };\n"
    "layout(std430, binding = 2) readonly buffer W { float w[]; };\n"
    "layout(std430, binding = 3) readonly buffer M { uint m[]; };\n"
    "layout(std430, binding = 4) buffer C { float c[]; };\n"
    "layout(std430, binding = 5) buffer D { uint bad; int index; int limit; uint pad; };\n"
    "void main() {\n"
    "    uint i = gl_GlobalInvocationID.x;\n"
    "    if (i >= uint(n)) return;\n"
    "    int k = ids[i];\n"
    "    if (k < 0 || k >= 4) {\n"
    "        if (atomicCompSwap(bad, 0u, 1u) == 0u) { index = k; limit = 4; }\n"
    "        k = 0;\n"
    "    }\n"
    "    c[i] = a[i] + (m[i] != 0u ? w[k] : 0.0);\n"
    "}\n";

/* Four elements, no sizes: for the prepare list. */
static const char four_text[] = "#version 450\n"
                                "layout(local_size_x = 32) in;\n"
                                "layout(std430, binding = 0) readonly buffer A { float a[]; };\n"
                                "layout(std430, binding = 1) buffer C { float c[]; };\n"
                                "void main() {\n"
                                "    uint i = gl_GlobalInvocationID.x;\n"
                                "    if (i < 4u) c[i] = 2.0 * a[i];\n"
                                "}\n";

static const float weights[4] = {10, 20, 30, 40};
static const float quarters[4] = {2.5f, 5, 7.5f, 10};
enum { X, IDS, MASK, W, T, Y, QUARTERS, HALVES };

static void add_buffer(fixture *f, const char *name, smg_buffer_kind kind, smg_storage storage, smg_size elements) {
    smg_bbuffer *b = SMG_ARRAY_PUSH(f->arena, &f->bundle.buffers);
    assert_non_null(b);
    b->name = name;
    b->kind = kind;
    b->storage = storage;
    b->rank = 1;
    b->dims[0] = b->elements = elements;
    b->data = kind == SMG_BUFFER_CONSTANT ? weights : NULL;
    b->last = kind == SMG_BUFFER_TEMPORARY;
}

static void add_module(fixture *f, smg_spirv_compiler *compiler, const char *name, const char *text) {
    smg_spirv_module words = {0};
    assert_int_equal(smg_spirv_compile(compiler, f->arena, name, text, NULL, &words), SMG_OK);
    smg_bmodule *m = SMG_ARRAY_PUSH(f->arena, &f->bundle.modules);
    assert_non_null(m);
    *m = (smg_bmodule){
        .name = name, .words = words.words, .word_count = words.word_count, .local_size = 32, .subgroup = 1};
}

static void add_step(fixture *f, int module, const smg_bbinding *bindings, int count, smg_size n) {
    smg_bvariant *list = &f->bundle.variants.items[f->bundle.variants.count - 1];
    smg_bstep *s = SMG_ARRAY_PUSH(f->arena, &list->run);
    assert_non_null(s);
    s->name = f->bundle.modules.items[module].name;
    s->module = module;
    s->binding_count = count;
    s->bindings = SMG_ARENA_ARRAY(f->arena, smg_bbinding, (size_t)count);
    s->push_symbols = SMG_ARENA_ARRAY(f->arena, int, 1);
    s->grid_extent = SMG_ARENA_ARRAY(f->arena, smg_size, 1);
    s->grid_tile = SMG_ARENA_ARRAY(f->arena, int64_t, 1);
    assert_true(s->bindings && s->push_symbols && s->grid_extent && s->grid_tile);
    memcpy(s->bindings, bindings, (size_t)count * sizeof(*bindings));
    s->diagnostics = module == 1;
    s->push_count = s->grid_count = 1;
    s->grid_extent[0] = n;
    s->grid_tile[0] = 32;
    s->bytes = s->flops = n;
}

static void make_bundle(fixture *f) {
    f->bundle.arena = f->arena;
    assert_int_equal(smg_sizes_create(f->arena, &f->bundle.sizes), SMG_OK);
    smg_size n = smg_size_symbol(f->bundle.sizes, "n");
    smg_size_symbol_set_max(f->bundle.sizes, 0, 100000);
    smg_bvariant *list = SMG_ARRAY_PUSH(f->arena, &f->bundle.variants);
    assert_non_null(list);
    *list = (smg_bvariant){.measure = n, .low = 0, .high = INT64_MAX, .made = true};
    add_buffer(f, "x", SMG_BUFFER_INPUT, SMG_STORE_F32, n);
    add_buffer(f, "ids", SMG_BUFFER_INPUT, SMG_STORE_I64_AS_I32, n);
    add_buffer(f, "mask", SMG_BUFFER_INPUT, SMG_STORE_BOOL_AS_U32, n);
    add_buffer(f, "w", SMG_BUFFER_CONSTANT, SMG_STORE_F32, smg_size_const(f->bundle.sizes, 4));
    add_buffer(f, "t", SMG_BUFFER_TEMPORARY, SMG_STORE_F32, n);
    add_buffer(f, "y", SMG_BUFFER_OUTPUT, SMG_STORE_F32, n);
    smg_spirv_compiler *compiler = NULL;
    assert_int_equal(smg_spirv_compiler_create(f->ctx, &compiler), SMG_OK);
    add_module(f, compiler, "double", double_text);
    add_module(f, compiler, "gather", gather_text);
    smg_spirv_compiler_destroy(compiler);
    const smg_bbinding first[] = {{X, false}, {T, true}};
    const smg_bbinding second[] = {{T, false}, {IDS, false}, {W, false}, {MASK, false}, {Y, true}};
    add_step(f, 0, first, 2, n);
    add_step(f, 1, second, 5, n);
}

static void add_prepare(fixture *f, int from, int to) {
    smg_bstep *s = SMG_ARRAY_PUSH(f->arena, &f->bundle.prepare);
    assert_non_null(s);
    *s = (smg_bstep){.name = "four", .module = 2, .binding_count = 2, .grid_count = 1};
    s->bindings = SMG_ARENA_ARRAY(f->arena, smg_bbinding, 2);
    s->grid_extent = SMG_ARENA_ARRAY(f->arena, smg_size, 1);
    s->grid_tile = SMG_ARENA_ARRAY(f->arena, int64_t, 1);
    assert_true(s->bindings && s->grid_extent && s->grid_tile);
    s->bindings[0] = (smg_bbinding){.buffer = from};
    s->bindings[1] = (smg_bbinding){.buffer = to, .written = true};
    s->grid_extent[0] = smg_size_const(f->bundle.sizes, 4);
    s->grid_tile[0] = 32;
    s->bytes = s->flops = s->grid_extent[0];
}

/* The same bundle, its table derived in two steps: w = 2 (2 quarters). */
static void derive_table(fixture *f) {
    smg_size four = smg_size_const(f->bundle.sizes, 4);
    smg_spirv_compiler *compiler = NULL;
    f->bundle.buffers.items[W].kind = SMG_BUFFER_DERIVED;
    f->bundle.buffers.items[W].data = NULL;
    add_buffer(f, "quarters", SMG_BUFFER_CONSTANT, SMG_STORE_F32, four);
    f->bundle.buffers.items[QUARTERS].data = quarters;
    add_buffer(f, "halves", SMG_BUFFER_DERIVED, SMG_STORE_F32, four);
    assert_int_equal(smg_spirv_compiler_create(f->ctx, &compiler), SMG_OK);
    add_module(f, compiler, "four", four_text);
    smg_spirv_compiler_destroy(compiler);
    add_prepare(f, QUARTERS, HALVES);
    add_prepare(f, HALVES, W);
}

static bool start(fixture *f) {
    memset(f, 0, sizeof *f);
    const smg_context_desc desc = witness_desc(&f->seen);
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    if (device_missing(f->ctx, smg_vk_open(f->ctx, NULL, 0, &f->dev))) return false;
    assert_non_null(f->dev);
    make_bundle(f);
    assert_int_equal(smg_program_create(f->ctx, &f->bundle, f->dev, NULL, &f->program), SMG_OK);
    return true;
}

static void finish(fixture *f) {
    smg_program_destroy(f->program);
    if (f->dev) assert_int_equal(smg_vk_validation_errors(f->dev), 0);
    smg_vk_close(f->dev);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
}

enum { MOST = 5000 };
static float x[MOST], y[MOST];
static int64_t ids[MOST];
static uint8_t mask[MOST];

static void fill(int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 97) * 0.5f;
        ids[i] = i * 7 % 4;
        mask[i] = i % 3 != 0;
        y[i] = -1;
    }
}

static smg_status run_once(fixture *f, int64_t n) {
    SMG_TRY(smg_program_bind_sizes(f->program, &n));
    SMG_TRY(smg_program_write_input(f->program, "x", x, 1, &n));
    SMG_TRY(smg_program_write_input(f->program, "ids", ids, 1, &n));
    SMG_TRY(smg_program_write_input(f->program, "mask", mask, 1, &n));
    SMG_TRY(smg_program_run(f->program));
    return smg_program_read_output(f->program, "y", y, n * 4);
}

static void expect_right(int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float want = 2 * x[i] + (mask[i] ? weights[ids[i]] : 0);
        assert_true(y[i] == want);
    }
}

static void test_runs(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    const int64_t sizes[] = {1, 31, 33, 1000, 5, 4999, 1000};
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        fill(sizes[i]);
        assert_int_equal(run_once(&f, sizes[i]), SMG_OK);
        expect_right(sizes[i]);
    }
    int calls = f.seen.calls;
    fill(1000);
    assert_int_equal(run_once(&f, 1000), SMG_OK);
    expect_right(1000);
    assert_int_equal(f.seen.calls, calls);
    smg_program_memory used;
    smg_program_memory_used(f.program, &used);
    assert_int_equal(used.barriers, 1);
    assert_int_equal(used.pipelines, 2);
    assert_int_equal(used.constant_bytes, 16);
    finish(&f);
}

static void expect_error(fixture *f, smg_status got, smg_status want, const char *part) {
    assert_int_equal(got, want);
    if (strstr(smg_context_error(f->ctx), part) == NULL) {
        fail_msg("'%s' lacks '%s'", smg_context_error(f->ctx), part);
    }
    smg_context_clear_error(f->ctx);
}

/* Adds what variant 1 lacks: the same two steps with a temporary of its own. */
static smg_status make_second(void *user, int variant) {
    fixture *f = user;
    assert_int_equal(variant, 1);
    f->made++;
    int own = f->bundle.buffers.count;
    smg_bvariant *list = &f->bundle.variants.items[1];
    const smg_bvariant *first = &f->bundle.variants.items[0];
    smg_size n = f->bundle.buffers.items[X].elements;
    add_buffer(f, "t of the second", SMG_BUFFER_TEMPORARY, SMG_STORE_F32, n);
    f->bundle.buffers.items[own].variant = 1;
    for (int i = 0; i < 2; i++) {
        smg_bstep *s = SMG_ARRAY_PUSH(f->arena, &list->run);
        assert_non_null(s);
        *s = first->run.items[i];
        s->bindings = SMG_ARENA_ARRAY(f->arena, smg_bbinding, 5);
        assert_non_null(s->bindings);
        for (int b = 0; b < s->binding_count; b++) {
            s->bindings[b] = first->run.items[i].bindings[b];
            if (s->bindings[b].buffer == T) s->bindings[b].buffer = own;
        }
    }
    if (f->break_second) list->run.items[0].module = 99;
    list->made = true;
    return SMG_OK;
}

/* From 100 elements on another run list serves; it is made when such sizes are first bound, and once. */
static void test_variants(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    smg_bvariant *second = SMG_ARRAY_PUSH(f.arena, &f.bundle.variants);
    assert_non_null(second);
    *second = f.bundle.variants.items[0];
    *second = (smg_bvariant){.measure = second->measure, .low = 100, .high = INT64_MAX};
    f.bundle.variants.items[0].high = 99;
    const smg_program_options options = {.make_variant = make_second, .variant_user = &f};
    const int64_t sizes[] = {7, 100, 99, 4999, 7, 1000};
    for (int lazy = 1; lazy >= 0; lazy--) { /* then without anybody to ask: the first list serves all */
        smg_program_destroy(f.program);
        assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, lazy ? &options : NULL, &f.program), SMG_OK);
        for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
            fill(sizes[i]);
            assert_int_equal(run_once(&f, sizes[i]), SMG_OK);
            expect_right(sizes[i]);
            assert_int_equal(smg_program_variant(f.program), lazy && sizes[i] >= 100);
            assert_int_equal(f.made, i > 0 || !lazy);
        }
        int calls = f.seen.calls;
        assert_int_equal(run_once(&f, 1000), SMG_OK);
        assert_int_equal(f.seen.calls, calls);
        f.bundle.variants.items[1].made = false;
        f.bundle.variants.items[1].run.count = 0;
        f.bundle.buffers.count = Y + 1;
    }
    f.break_second = true;
    smg_program_destroy(f.program);
    assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, &options, &f.program), SMG_OK);
    fill(100);
    expect_error(&f, run_once(&f, 100), SMG_INTERNAL, "module 99");
    f.bundle.variants.items[1].run.items[0].module = 0; /* a bind that failed may be tried again */
    assert_int_equal(run_once(&f, 100), SMG_OK);
    expect_right(100);
    assert_int_equal(smg_program_variant(f.program), 1);
    finish(&f);
}

/* A step with an even form runs in it where its size is a multiple; the form is built when first asked for. */
static void test_forms(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    static int64_t by[1] = {8};
    static const int64_t sizes[] = {7, 8, 1000, 1001, 8, 12};
    smg_bstep *first = &f.bundle.variants.items[0].run.items[0];
    first->even_size = &f.bundle.buffers.items[X].elements;
    first->even_by = by;
    first->even_count = 1;
    for (int expected = 0; expected < 2; expected++) {
        const smg_program_options options = {.expected = expected ? &sizes[1] : NULL};
        smg_program_memory used;
        int plain = !expected, even = expected;
        smg_program_destroy(f.program);
        assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, &options, &f.program), SMG_OK);
        smg_program_memory_used(f.program, &used);
        assert_int_equal(used.pipelines, 2); /* one form of the first step, and the second step's only one */
        for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
            int64_t n = sizes[s];
            *(n % 8 == 0 ? &even : &plain) = 1;
            fill(n);
            assert_int_equal(run_once(&f, n), SMG_OK);
            for (int64_t i = 0; i < n; i++)
                assert_true(y[i] == (n % 8 == 0 ? 4 : 2) * x[i] + (mask[i] ? weights[ids[i]] : 0));
            smg_program_memory_used(f.program, &used);
            assert_int_equal(used.pipelines, 1 + plain + even);
        }
    }
    by[0] = 0;
    expect_error(&f, smg_bundle_verify(f.ctx, &f.bundle), SMG_INTERNAL, "step 'double' is even by 0 in size 0");
    finish(&f);
}

static void on_uploaded(void *user, const void *data, size_t bytes) {
    if (data == quarters && bytes == sizeof quarters) ++*(int *)user;
}

/* The table comes from the prepare list, and what only that list reads is gone afterwards. */
static void test_prepares(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    derive_table(&f);
    for (int64_t limit = 0; limit <= 1; limit++) { /* all at once; as little as possible at a time */
        int uploads = 0;
        const smg_program_options options = {.uploaded = on_uploaded, .user = &uploads, .prepare_bytes = limit};
        smg_program_destroy(f.program);
        assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, &options, &f.program), SMG_OK);
        assert_int_equal(uploads, 1);
        fill(77);
        assert_int_equal(run_once(&f, 77), SMG_OK);
        expect_right(77);
        smg_program_memory used;
        smg_program_memory_used(f.program, &used);
        assert_int_equal(used.constant_bytes, 0);
        assert_int_equal(used.derived_bytes, 16);
        assert_true(used.prepare_bytes >= 32);
        assert_int_equal(used.pipelines, 3);
    }
    smg_program *none = NULL;
    f.bundle.prepare.count = 1; /* nothing writes w */
    assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, NULL, &none), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f.ctx), "no prepare step writes 'w'"));
    smg_context_clear_error(f.ctx);
    finish(&f);
}

static void test_profile(void **state) {
    (void)state;
    fixture f;
    if (!start(&f) || !smg_program_has_timestamps(f.program)) {
        finish(&f);
        skip();
    }
    fill(1000);
    assert_int_equal(smg_program_set_profile(f.program, true), SMG_OK);
    assert_int_equal(run_once(&f, 1000), SMG_OK);
    expect_right(1000);
    double sum = smg_program_step_time(f.program, 0) + smg_program_step_time(f.program, 1);
    assert_true(sum > 0 && sum <= smg_program_time(f.program) * 1.001);
    finish(&f);
}

static void test_refuses(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    int64_t n = 0;
    expect_error(&f, smg_program_run(f.program), SMG_INVALID, "no sizes");
    expect_error(&f, smg_program_bind_sizes(f.program, &n), SMG_INVALID, "[1, 100000]");
    n = 100001;
    expect_error(&f, smg_program_bind_sizes(f.program, &n), SMG_INVALID, "100001");
    n = 10;
    fill(n);
    assert_int_equal(smg_program_bind_sizes(f.program, &n), SMG_OK);
    expect_error(&f, smg_program_run(f.program), SMG_INVALID, "'x'");
    expect_error(&f, smg_program_write_input(f.program, "z", x, 1, &n), SMG_NOT_FOUND, "x, ids, mask");
    expect_error(&f, smg_program_write_input(f.program, "x", x, 2, (int64_t[]){10, 1}), SMG_INVALID, "2 were given");
    n = 11;
    expect_error(&f, smg_program_write_input(f.program, "x", x, 1, &n), SMG_INVALID, "must be 10");
    n = 10;
    ids[3] = INT64_C(5000000000);
    expect_error(&f, run_once(&f, n), SMG_INVALID, "element 3 is 5000000000");
    ids[3] = 30600;
    expect_error(&f, run_once(&f, n), SMG_INVALID, "index 30600 outside its table [0, 4)");
    ids[3] = 0;
    assert_int_equal(run_once(&f, n), SMG_OK);
    expect_right(n);
    expect_error(&f, smg_program_read_output(f.program, "y", y, 39), SMG_INVALID, "takes 40 bytes");
    finish(&f);
}

/* A run list whose value in between no binding reaches is not the only one: another serves, larger sizes too; where there
 * is none the first one's failure is told. */
static void test_oversized(void **state) {
    (void)state;
    fixture f;
    if (!start(&f)) {
        finish(&f);
        skip();
    }
    /* The device's own limit stays above this one; all that a program asks for is the target's. */
    smg_target *target = (smg_target *)smg_vk_target(f.dev);
    target->max_buffer_range = 65536;
    smg_bvariant *second = SMG_ARRAY_PUSH(f.arena, &f.bundle.variants);
    assert_non_null(second);
    *second = (smg_bvariant){.measure = f.bundle.variants.items[0].measure, .low = 5000, .high = INT64_MAX};
    smg_sizes *s = f.bundle.sizes;
    smg_bbuffer *between = &f.bundle.buffers.items[T];
    between->dims[0] = between->elements = smg_size_mul(s, between->elements, smg_size_const(s, 64));
    const smg_program_options options = {.make_variant = make_second, .variant_user = &f};
    const int64_t sizes[] = {100, 1000, 2000, 256, 257, 100, 1000};
    smg_program_destroy(f.program);
    assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, &options, &f.program), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        fill(sizes[i]);
        assert_int_equal(run_once(&f, sizes[i]), SMG_OK);
        expect_right(sizes[i]);
        assert_int_equal(smg_program_variant(f.program), sizes[i] > 256);
    }
    smg_program_destroy(f.program);
    f.bundle.variants.items[1].made = false;
    f.bundle.variants.items[1].run.count = 0;
    f.bundle.buffers.count = Y + 1;
    assert_int_equal(smg_program_create(f.ctx, &f.bundle, f.dev, NULL, &f.program), SMG_OK);
    fill(1000);
    expect_error(&f, run_once(&f, 1000), SMG_NO_FIT, "'t' takes 256000 bytes");
    assert_int_equal(run_once(&f, 100), SMG_OK);
    expect_right(100);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),      cmocka_unit_test(test_prepares), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_oversized), cmocka_unit_test(test_forms),    cmocka_unit_test(test_profile),
        cmocka_unit_test(test_refuses),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
