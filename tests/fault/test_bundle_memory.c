/* Every allocation of a bundle's life fails once: compiling ahead and writing, reading all of it, opening it on a device
 * by calls, and a run. The status is MEMORY with its sentence, and nothing leaks. CI takes a share of the allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "smg/bundle.h"
#include "support/all_cases.h"
#include "support/device.h"
#include "support/fault.h"
#include "support/output.h"

static const char text[] = "graph small\ndim n max 8\nids = input i64[n]\ntable = constant f32[6, 8] random seed=1\n"
                           "w = constant f32[5, 8] random seed=2\nrows = gather(table, ids) : f32[n, 8]\n"
                           "y = contract(rows, w) \"ni,oi->no\"\noutput y = y\n"
                           "h = input f32[n, 5]\nmore = add(h, y)\noutput h_next = more\nstate h = h_next\n";
static char path[512];
static char *bytes;
static size_t size;

static smg_status write_file(smg_context *ctx, void *user) {
    const char *const *names = user;
    smg_source source = {.ctx = ctx, .owns_graph = true};
    smg_ahead_target targets[2] = {{.name = names[0], .match = ""}, {.name = names[1], .match = ""}};
    const smg_compile_options options = {.precision = SMG_TYPE_F32, .no_plan_cache = true};
    SMG_TRY(smg_graph_parse(ctx, text, strlen(text), "text", &source.graph));
    smg_status status = SMG_OK;
    for (int i = 0; i < 2 && status == SMG_OK; i++) status = smg_target_named(ctx, names[i], &targets[i].target);
    if (status == SMG_OK) status = smg_compile_ahead(ctx, &source, targets, 2, &options, path);
    smg_source_close(&source);
    return status;
}

/* And what is written is the same file. */
static smg_status write_the_same(smg_context *ctx, void *user) {
    SMG_TRY(write_file(ctx, user));
    smg_mapped_file file = {0};
    SMG_TRY(smg_file_map(ctx, path, &file));
    bool same = file.size == size && memcmp(file.data, bytes, size) == 0;
    smg_file_unmap(&file);
    return same ? SMG_OK : smg_fail(ctx, SMG_INTERNAL, "another file was written");
}

static void writing(void **state) {
    (void)state;
    static const char *names[] = {"lavapipe", "careful"};
    const char *cache = getenv("SMG_CACHE_DIR");
    const fault_sweep sweep = {.body = write_the_same, .user = names, .stride = 41, .cache_dir = cache};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

static bool read_some(void *user, int64_t offset, void *into, size_t count) {
    (void)user;
    memcpy(into, bytes + offset, count);
    return true;
}

static smg_status read_file(smg_context *ctx, void *user) {
    const smg_bfile_source source = {.bytes = (int64_t)size, .data = user, .read = read_some};
    smg_arena *arena = NULL;
    smg_bfile *file = NULL;
    smg_bundle *bundle = NULL;
    const char *head = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = smg_bfile_read(arena, &source, "test", &file);
    for (int i = 0; status == SMG_OK && i < file->class_count; i++)
        status = smg_bfile_read_class(file, i, arena, &bundle);
    if (status == SMG_OK) status = smg_bfile_check_weights(file);
    if (status == SMG_OK) status = smg_bfile_read_head(file, arena, &head);
    smg_arena_destroy(arena);
    return status;
}

static void reading(void **state) {
    (void)state;
    for (int by_calls = 0; by_calls < 2; by_calls++) {
        const fault_sweep sweep = {.body = read_file, .user = by_calls ? NULL : bytes, .stride = all_cases() ? 1 : 7};
        print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
    }
}

#if SMG_VULKAN

static smg_status open_file_and_run(smg_context *ctx, void *user) {
    (void)user;
    smg_bundle_file *file = NULL;
    smg_model *model = NULL;
    int32_t ids[3] = {1, 5, 0};
    const smg_tensor in = {"ids", "i32", 1, {3}, ids, 0, NULL};
    smg_tensor out = {.name = "y"};
    SMG_TRY(smg_bundle_file_open(ctx, path, &file));
    smg_status status = smg_bundle_file_open_model(file, NULL, &model);
    if (status == SMG_OK) status = smg_model_run(model, &in, 1, &out, 1);
    smg_model_close(model);
    smg_bundle_file_close(file);
    return status;
}

static smg_status open_and_run(smg_context *ctx, void *user) {
    (void)user;
    const smg_bundle_reader reader = {.bytes = (int64_t)size, .read = read_some};
    smg_model *model = NULL;
    int32_t ids[3] = {1, 5, 0};
    const smg_tensor in = {"ids", "i32", 1, {3}, ids, 0, NULL};
    smg_tensor out = {.name = "y"};
    SMG_TRY(smg_model_open_bundle_reader(ctx, &reader, NULL, &model));
    smg_status status = smg_model_run(model, &in, 1, &out, 1);
    smg_device_tensor *to = NULL;
    if (status == SMG_OK) status = smg_model_create_tensor(model, "y", 15, &to);
    out = (smg_tensor){.name = "y", .on = to};
    if (status == SMG_OK) status = smg_model_run(model, &in, 1, &out, 1);
    smg_model *other = NULL;
    if (status == SMG_OK) status = smg_model_share(model, ctx, &other);
    if (status == SMG_OK) status = smg_model_run(other, &in, 1, &out, 1);
    smg_model_close(other);
    smg_tensor_destroy(to);
    smg_model_close(model);
    return status;
}

static void opening(void **state) {
    (void)state;
    smg_context *ctx = NULL;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_status status = open_and_run(ctx, NULL);
    bool missing = device_missing(ctx, status);
    if (!missing && status != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    smg_context_destroy(ctx);
    if (missing) skip();
    const char *cache = getenv("SMG_CACHE_DIR");
    const fault_sweep sweep = {
        .body = open_and_run, .stride = all_cases() ? 1 : 23, .cache_dir = cache, .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
    const fault_sweep file = {
        .body = open_file_and_run, .stride = all_cases() ? 1 : 89, .cache_dir = cache, .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&file));
}

#endif

static int setup(void **state) {
    (void)state;
    static const char *names[] = {"lavapipe", "careful"};
    char room[512];
    smg_context *ctx = NULL;
    snprintf(path, sizeof(path), "%s", test_output(room, sizeof(room), "fault.smgb"));
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    if (write_file(ctx, names) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    smg_context_destroy(ctx);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(bytes);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing),
        cmocka_unit_test(reading),
#if SMG_VULKAN
        cmocka_unit_test(opening),
#endif
    };
    return device_result(cmocka_run_group_tests_name("bundle memory", tests, setup, teardown));
}
