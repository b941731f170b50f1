/* Bundles whose hashes are right and whose SPIR-V is not: looked at by SPIRV-Tools, they are told with the kernel's name,
 * and no driver gets them. What the tools have nothing against is told and run as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/output.h"
#include "support/witness.h"

static const char text[] = "graph small\ndim n max 8\nx = input f32[n, 5]\nw = constant f32[5, 7] random seed=2\n"
                           "p = contract(x, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n";
enum { HEADER_WORDS = 5, OP_STORE = 62, OP_TYPE_FLOAT = 22, OP_DECORATE = 71, BINDING = 33, DESCRIPTOR_SET = 34 };
enum { ROWS = 3, FROM = 5, TO = 7 };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    witness seen;
    smg_bfile *file;
    smg_bundle *bundle;
    smg_target target;
    smg_mapped_file mapping;
    char path[512], changed[512];
} fixture;

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* Without a device, and in the memory of what is read. */
static int setup(void **state) {
    static fixture f;
    char room[512];
    smg_source source = {0};
    f = (fixture){0};
    const smg_context_desc desc = witness_desc(&f.seen);
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    expect_ok(&f, smg_arena_create(f.ctx, &f.arena));
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "kernels.smgb"));
    snprintf(f.changed, sizeof(f.changed), "%s", test_output(room, sizeof(room), "kernels-changed.smgb"));
    source = (smg_source){.ctx = f.ctx, .owns_graph = true};
    expect_ok(&f, smg_graph_parse(f.ctx, text, strlen(text), "text", &source.graph));
    expect_ok(&f, smg_target_named(f.ctx, "careful", &f.target));
    const smg_ahead_target target = {.name = "careful", .match = "", .target = f.target};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    expect_ok(&f, smg_compile_ahead(f.ctx, &source, &target, 1, &options, f.path));
    smg_source_close(&source);
    expect_ok(&f, smg_file_map(f.ctx, f.path, &f.mapping));
    const smg_bfile_source bytes = {.bytes = (int64_t)f.mapping.size, .data = f.mapping.data};
    expect_ok(&f, smg_bfile_read(f.arena, &bytes, f.path, &f.file));
    expect_ok(&f, smg_bfile_read_class(f.file, 0, f.arena, &f.bundle));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_file_unmap(&f->mapping);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
    return 0;
}

/* The file with one word of the first kernel changed, and hashes that are right. false: what is written or read looks at
 * that word itself. */
static bool write_changed(fixture *f, size_t at, uint32_t word) {
    smg_bmodule *m = &f->bundle->modules.items[0];
    uint32_t *words = (uint32_t *)(uintptr_t)m->words, before = words[at];
    const smg_bfile_class_desc class = {.name = "careful", .match = "", .bundle = f->bundle, .target = &f->target};
    const smg_bfile_desc desc = {.model = "small",
                                 .precision = "f32",
                                 .maker = "a test",
                                 .interface = f->file->interface,
                                 .classes = &class,
                                 .class_count = 1};
    words[at] = word;
    smg_status status = smg_bfile_write(f->ctx, &desc, f->changed);
    words[at] = before;
    smg_context_clear_error(f->ctx);
    return status == SMG_OK;
}

/* The words of the `number`-th instruction with this opcode. */
static size_t find(const fixture *f, uint32_t opcode, int number) {
    const smg_bmodule *m = &f->bundle->modules.items[0];
    for (size_t at = HEADER_WORDS; at < m->word_count; at += m->words[at] >> 16)
        if ((m->words[at] & 0xffffu) == opcode && number-- == 0) return at;
    fail_msg("no instruction %u", (unsigned)opcode);
    return 0;
}

/* The value of a decoration. */
static size_t find_decoration(const fixture *f, uint32_t decoration) {
    const uint32_t *words = f->bundle->modules.items[0].words;
    int number = 0;
    while (words[find(f, OP_DECORATE, number) + 2] != decoration) number++;
    return find(f, OP_DECORATE, number) + 3;
}

static smg_status check_changed(fixture *f, bool validated) {
    smg_bundle_file *file = NULL;
    smg_status status = smg_bundle_file_open(f->ctx, f->changed, &file);
    if (status == SMG_OK && validated) status = smg_bundle_file_validate(file);
    if (status == SMG_OK) status = smg_bundle_file_check(file);
    smg_bundle_file_close(file);
    return status;
}

static void expect_named(const fixture *f, const char *kernel) {
    const char *said = smg_context_error(f->ctx);
    if (strstr(said, "kernels-changed.smgb': class 'careful': kernel '") == NULL || strstr(said, kernel) == NULL ||
        strstr(said, "invalid SPIR-V: ") == NULL)
        fail_msg("'%s'", said);
}

static void kernels_are_looked_at(void **state) {
    fixture *f = *state;
    smg_bundle_file *file = NULL;
    smg_bundle_class told;
    const char *name = f->bundle->modules.items[0].name;
    assert_true(write_changed(f, 1, f->bundle->modules.items[0].words[1])); /* nothing */
    expect_ok(f, check_changed(f, true));
    assert_true(write_changed(f, find(f, OP_STORE, 0) + 2, 0x7fff)); /* an id that there is not */
    expect_ok(f, check_changed(f, false));
    assert_int_equal(check_changed(f, true), SMG_FORMAT);
    expect_named(f, name);
    /* What no step gives it. */
    assert_true(write_changed(f, find_decoration(f, BINDING), 9));
    assert_int_equal(check_changed(f, true), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "' has binding 9, step '"));
    assert_true(write_changed(f, find_decoration(f, DESCRIPTOR_SET), 1));
    assert_int_equal(check_changed(f, true), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "' has set 1, step '"));
    assert_true(write_changed(f, find(f, OP_STORE, 0) + 2, 0x7fff));
    /* A class that was told already is looked at again. */
    expect_ok(f, smg_bundle_file_open(f->ctx, f->changed, &file));
    expect_ok(f, smg_bundle_file_class(file, 0, &told));
    expect_ok(f, smg_bundle_file_validate(file));
    assert_int_equal(smg_bundle_file_class(file, 0, &told), SMG_FORMAT);
    expect_named(f, name);
    smg_bundle_file_close(file);
    assert_int_equal(smg_bundle_file_validate(NULL), SMG_INVALID);
}

/* Whatever word it is: a status with a sentence. */
static void any_word(void **state) {
    fixture *f = *state;
    const smg_bmodule *m = &f->bundle->modules.items[0];
    int written = 0, refused = 0;
    for (size_t at = 1; at < m->word_count; at += 1 + m->word_count / 150) {
        if (!write_changed(f, at, m->words[at] ^ (1u << at % 9))) continue;
        smg_status status = check_changed(f, true);
        assert_true(status == SMG_OK || status == SMG_FORMAT);
        assert_int_equal(status == SMG_OK, smg_context_error(f->ctx)[0] == '\0');
        refused += status == SMG_FORMAT;
        written++;
    }
    print_message("%d of %d changed kernels are refused\n", refused, written);
    assert_true(written > 100 && refused > written / 2);
}

#if SMG_VULKAN

static smg_status run_changed(fixture *f, bool validated, float *y) {
    static float x[ROWS * FROM];
    smg_bundle_file *file = NULL;
    smg_model *model = NULL;
    for (int i = 0; i < ROWS * FROM; i++) x[i] = (float)i / 8;
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {ROWS, FROM}, .data = x};
    smg_tensor out = {.name = "y", .data = y, .bytes = sizeof(*y) * ROWS * TO};
    expect_ok(f, smg_bundle_file_open(f->ctx, f->changed, &file));
    if (validated) expect_ok(f, smg_bundle_file_validate(file));
    smg_status status = smg_bundle_file_open_model(file, NULL, &model);
    assert_int_equal(status == SMG_OK, model != NULL);
    if (status == SMG_OK) status = smg_model_run(model, &in, 1, &out, 1);
    smg_model_close(model);
    smg_bundle_file_close(file);
    return status;
}

static void no_driver_gets_them(void **state) {
    fixture *f = *state;
    float want[ROWS * TO] = {0}, got[ROWS * TO] = {0};
    assert_true(write_changed(f, 1, f->bundle->modules.items[0].words[1]));
    smg_status status = run_changed(f, false, want);
    bool missing = device_missing(f->ctx, status);
    smg_context_clear_error(f->ctx);
    if (missing) skip();
    expect_ok(f, status);
    expect_ok(f, run_changed(f, true, got));
    assert_memory_equal(got, want, sizeof(want));
    const struct {
        size_t at;
        uint32_t word;
    } wrong[] = {{find(f, OP_STORE, 0) + 1, 0x7fff}, {find(f, OP_TYPE_FLOAT, 0) + 2, 33}, {1, 0x00010900}};
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        assert_true(write_changed(f, wrong[i].at, wrong[i].word));
        assert_int_equal(run_changed(f, true, got), SMG_FORMAT);
        assert_non_null(strstr(smg_context_error(f->ctx), "class 'careful': kernel '"));
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_looked_at),
        cmocka_unit_test(any_word),
#if SMG_VULKAN
        cmocka_unit_test(no_driver_gets_them),
#endif
    };
    return device_result(cmocka_run_group_tests_name("bundle kernels", tests, setup, teardown));
}
