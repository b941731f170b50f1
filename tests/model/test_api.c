/* include/smg/ as an application sees it: the five-line path, what it refuses and with which sentence,
 * that a model is as good as before after a refusal, that runs of sizes seen lately allocate nothing,
 * and that objects share nothing. Only public headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/witness.h"

static const char folder[] = "tests/models/hf-bert-tiny";
enum { HIDDEN = 64, MOST = 64 };

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_model *model;
    int32_t ids[MOST], ones[MOST], zeros[MOST];
    smg_tensor in[3];
    smg_tensor out;
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect(fixture *f, smg_status got, smg_status want, const char *part) {
    if (got != want || strstr(smg_context_error(f->ctx), part) == NULL) {
        fail_msg("status %d, wanted %d: '%s' lacks '%s'", (int)got, (int)want, smg_context_error(f->ctx), part);
    }
    smg_context_clear_error(f->ctx);
    assert_string_equal(smg_context_error(f->ctx), "");
}

static void set_size(fixture *f, int64_t batch, int64_t sequence) {
    assert_true(batch * sequence <= MOST);
    for (int i = 0; i < 3; i++) {
        f->in[i].dims[0] = batch;
        f->in[i].dims[1] = sequence;
    }
}

static void open_context(fixture *f) {
    memset(f, 0, sizeof(*f));
    const smg_context_desc desc = witness_desc(&f->seen);
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    for (int i = 0; i < MOST; i++) {
        f->ids[i] = 7 * i % 97;
        f->ones[i] = 1;
    }
    f->in[0] = (smg_tensor){.name = "input_ids", .type = "i32", .rank = 2, .data = f->ids};
    f->in[1] = (smg_tensor){.name = "attention_mask", .type = "i32", .rank = 2, .data = f->ones};
    f->in[2] = (smg_tensor){.name = "token_type_ids", .type = "i32", .rank = 2, .data = f->zeros};
    f->out = (smg_tensor){.name = "last_hidden_state"};
    set_size(f, 2, 5);
}

static void open_model(fixture *f) {
    const smg_model_desc desc = {.no_calibrate = true};
    open_context(f);
    expect_ok(f, smg_model_open(f->ctx, folder, &desc, &f->model));
}

static void close_all(fixture *f) {
    smg_model_close(f->model);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
    assert_int_equal(f->seen.warnings, 0);
}

static smg_status run(fixture *f) {
    return smg_model_run(f->model, f->in, 3, &f->out, 1);
}

static void test_describes(void **state) {
    (void)state;
    fixture f;
    smg_tensor t;
    open_model(&f);
    assert_int_equal(smg_model_input_count(f.model), 3);
    assert_int_equal(smg_model_output_count(f.model), 1);
    assert_true(smg_model_input(f.model, 0, &t));
    assert_int_equal(t.rank, 2);
    assert_true(t.dims[0] == -1 && t.dims[1] == -1);
    assert_true(smg_model_output(f.model, 0, &t));
    assert_string_equal(t.name, "last_hidden_state");
    assert_string_equal(t.type, "f32");
    assert_int_equal(t.rank, 3);
    assert_int_equal(t.dims[2], HIDDEN);
    assert_false(smg_model_input(f.model, 3, &t));
    assert_false(smg_model_input(f.model, -1, &t));
    assert_false(smg_model_output(f.model, 1, &t));
    close_all(&f);
}

static void test_refuses(void **state) {
    (void)state;
    fixture f;
    float first[10 * HIDDEN];
    open_model(&f);
    expect_ok(&f, run(&f));
    memcpy(first, f.out.data, sizeof(first));
    const smg_tensor good = f.in[1];
#define REFUSED(change, code, part)                                                                                    \
    do {                                                                                                               \
        f.in[1] = good;                                                                                                \
        f.in[1].change;                                                                                                \
        expect(&f, run(&f), code, part);                                                                               \
    } while (0)
    REFUSED(name = "mask", SMG_NOT_FOUND, "no input 'mask'; it has: ");
    REFUSED(name = NULL, SMG_NOT_FOUND, "no input ''");
    REFUSED(type = "f32", SMG_INVALID, "f32 was given");
    REFUSED(type = "f33", SMG_INVALID, "'f33'");
    REFUSED(rank = 1, SMG_INVALID, "2 axes, 1 were given");
    REFUSED(rank = -1, SMG_INVALID, "-1 axes");
    REFUSED(rank = 9, SMG_INVALID, "9 axes");
    REFUSED(dims[1] = 6, SMG_INVALID, "(sequence)");
    REFUSED(dims[0] = 0, SMG_INVALID, "0");
    REFUSED(dims[1] = -5, SMG_INVALID, "-5");
    REFUSED(dims[0] = INT64_MAX, SMG_INVALID, "9223372036854775807");
    REFUSED(data = NULL, SMG_INVALID, "has no data");
    REFUSED(bytes = 36, SMG_INVALID, "'attention_mask': 10 elements of i32, its memory has 36 bytes");
    REFUSED(name = "input_ids", SMG_INVALID, "'input_ids' is given twice");
#undef REFUSED
    f.in[1] = good;
    f.ids[3] = 30522;
    expect(&f, run(&f), SMG_INVALID, "30522");
    f.ids[3] = -30522;
    expect(&f, run(&f), SMG_INVALID, "outside");
    f.ids[3] = 21;
    set_size(&f, 1, MOST);
    for (int i = 0; i < 3; i++) f.in[i].dims[1] = 100000; /* nothing is read before sizes are checked */
    expect(&f, run(&f), SMG_INVALID, "100000");
    set_size(&f, 2, 5);
    /* Token types and masks that nobody gives have values; token ids have none. */
    assert_int_equal(smg_model_run(f.model, f.in, 2, &f.out, 1), SMG_OK);
    expect(&f, smg_model_run(f.model, f.in, 0, &f.out, 1), SMG_INVALID, "is missing");
    smg_tensor out = {.name = "logits"};
    expect(&f, smg_model_run(f.model, f.in, 3, &out, 1), SMG_NOT_FOUND, "last_hidden_state");
    float small[4];
    out = (smg_tensor){.name = "last_hidden_state", .data = small, .bytes = sizeof(small)};
    expect(&f, smg_model_run(f.model, f.in, 3, &out, 1), SMG_INVALID, "takes 2560 bytes");
    expect_ok(&f, run(&f));
    assert_memory_equal(first, f.out.data, sizeof(first));
    close_all(&f);
}

static void test_opening_refuses(void **state) {
    (void)state;
    fixture f;
    open_context(&f);
    const smg_dim over = {"sequence", 100000};
    const smg_dim unknown = {"rows", 4};
    const smg_model_desc no_device = {.device = "no such device"};
    const smg_model_desc too_long = {.max_dims = &over, .max_dim_count = 1, .no_calibrate = true};
    const smg_model_desc no_dim = {.dims = &unknown, .dim_count = 1, .no_calibrate = true};
    expect(&f, smg_model_open(f.ctx, "/no/such/model", NULL, &f.model), SMG_NOT_FOUND, "/no/such/model");
    assert_null(f.model);
    expect(&f, smg_model_open(f.ctx, "tests/models", NULL, &f.model), SMG_NOT_FOUND, "config.json");
    expect(&f, smg_model_open(f.ctx, folder, &no_device, &f.model), SMG_NOT_FOUND, "no such device");
    expect(&f, smg_model_open(f.ctx, folder, &too_long, &f.model), SMG_INVALID, "100000");
    expect(&f, smg_model_open(f.ctx, folder, &no_dim, &f.model), SMG_NOT_FOUND, "'rows'");
    const smg_dim nameless[] = {{"batch", 4}, {NULL, 4}};
    const struct {
        smg_model_desc desc;
        const char *part;
    } wrong[] = {
        {{.dims = nameless, .dim_count = 2}, "dims[1] has no name"},
        {{.max_dims = nameless + 1, .max_dim_count = 1}, "max_dims[0] has no name"},
        {{.dim_count = 1}, "1 dims, whose array is NULL"},
        {{.max_dims = &over, .max_dim_count = -2}, "-2 max_dims, less than none"},
        {{.rank = -7}, "-7"},
        {{.goal = (smg_goal)77}, "77 is no goal"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect(&f, smg_model_open(f.ctx, folder, &wrong[i].desc, &f.model), SMG_INVALID, wrong[i].part);
    assert_null(f.model);
    close_all(&f);
}

/* A NULL where something is needed is a status. */
static void test_nothing(void **state) {
    (void)state;
    fixture f;
    smg_tensor t;
    open_model(&f);
    assert_int_equal(smg_model_run(NULL, f.in, 3, &f.out, 1), SMG_INVALID);
    assert_int_equal(smg_model_set_input(NULL, &f.in[0]), SMG_INVALID);
    assert_int_equal(smg_model_open(f.ctx, folder, NULL, NULL), SMG_INVALID);
    assert_int_equal(smg_model_open_graph(f.ctx, NULL, NULL, NULL), SMG_INVALID);
    assert_int_equal(smg_model_input_count(NULL) + smg_model_output_count(NULL), 0);
    assert_false(smg_model_input(NULL, 0, &t) || smg_model_output(NULL, 0, &t) || smg_model_input(f.model, 0, NULL));
    assert_true(smg_model_seconds(NULL) <= 0);
    smg_model *none = f.model;
    assert_int_equal(smg_model_open(NULL, folder, NULL, &none), SMG_INVALID);
    assert_null(none);
    expect(&f, smg_model_open(f.ctx, NULL, NULL, &none), SMG_INVALID, "path is NULL");
    expect(&f, smg_model_open_graph(f.ctx, NULL, NULL, &none), SMG_INVALID, "graph is NULL");
    expect(&f, smg_model_set_input(f.model, NULL), SMG_INVALID, "tensor is NULL");
    expect(&f, smg_model_run(f.model, NULL, 3, &f.out, 1), SMG_INVALID, "3 inputs");
    expect(&f, smg_model_run(f.model, f.in, 3, NULL, 1), SMG_INVALID, "1 outputs");
    expect(&f, smg_model_run(f.model, f.in, -1, &f.out, 1), SMG_INVALID, "-1 inputs");
    smg_model_close(NULL);
    expect_ok(&f, run(&f));
    close_all(&f);
}

/* Three sizes in turn: the first round may make kernels for other sizes, the second records; then nothing
 * is allocated or freed any more. */
static void test_no_allocation(void **state) {
    (void)state;
    fixture f;
    open_model(&f);
    int calls = 0;
    for (int round = 0; round < 5; round++) {
        if (round == 2) calls = f.seen.calls;
        for (int64_t sequence = 9; sequence > 3; sequence -= 2) {
            set_size(&f, 3, sequence);
            expect_ok(&f, run(&f));
            assert_true(f.out.dims[0] == 3 && f.out.dims[1] == sequence && f.out.dims[2] == HIDDEN);
            assert_true(isfinite(((float *)f.out.data)[0]));
            expect_ok(&f, run(&f));
        }
    }
    assert_int_equal(f.seen.calls, calls);
    close_all(&f);
}

/* The caller's memory, kept inputs, and the same numbers either way. */
static void test_own_memory(void **state) {
    (void)state;
    fixture f;
    float mine[10 * HIDDEN + 1];
    open_model(&f);
    mine[10 * HIDDEN] = 42;
    expect_ok(&f, run(&f));
    smg_tensor out = {.name = "last_hidden_state", .data = mine, .bytes = 10 * HIDDEN * sizeof(float)};
    expect_ok(&f, smg_model_set_input(f.model, &f.in[1]));
    expect_ok(&f, smg_model_set_input(f.model, &f.in[2]));
    expect_ok(&f, smg_model_run(f.model, f.in, 1, &out, 1));
    assert_ptr_equal(out.data, mine);
    assert_memory_equal(mine, f.out.data, 10 * HIDDEN * sizeof(float));
    assert_true(mine[10 * HIDDEN] == 42);
    set_size(&f, 1, 4); /* the kept ones have other sizes */
    expect(&f, smg_model_run(f.model, f.in, 1, &out, 1), SMG_INVALID, "another input has");
    close_all(&f);
}

/* Two models of one context, one of another. */
static void test_apart(void **state) {
    (void)state;
    fixture f;
    fixture g;
    smg_model *second = NULL;
    const smg_model_desc unfused = {.no_calibrate = true, .unfused = true};
    open_model(&f);
    open_model(&g);
    expect_ok(&f, smg_model_open(f.ctx, folder, &unfused, &second));
    smg_tensor out = {.name = "last_hidden_state"};
    expect_ok(&f, smg_model_run(second, f.in, 3, &out, 1));
    expect_ok(&f, run(&f));
    expect_ok(&g, run(&g));
    assert_memory_equal(f.out.data, g.out.data, 10 * HIDDEN * sizeof(float));
    for (int i = 0; i < 10 * HIDDEN; i++) {
        assert_true(fabsf(((float *)out.data)[i] - ((float *)f.out.data)[i]) < 1e-4f);
    }
    smg_model_close(second);
    close_all(&g);
    expect_ok(&f, run(&f));
    close_all(&f);
}

int main(void) {
    fixture f;
    const smg_model_desc desc = {.no_calibrate = true};
    open_context(&f);
    smg_status status = smg_model_open(f.ctx, folder, &desc, &f.model);
    if (device_missing(f.ctx, status)) return device_result(0);
    close_all(&f);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describes),     cmocka_unit_test(test_refuses),    cmocka_unit_test(test_opening_refuses),
        cmocka_unit_test(test_no_allocation), cmocka_unit_test(test_own_memory), cmocka_unit_test(test_apart),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
