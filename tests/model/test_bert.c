/* A small BERT directory through include/smg/model.h: equal to what PyTorch stored for it, on the
 * device and in the interpreter; every size from one compilation; wrong calls are statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/model_case.h"
#include "support/witness.h"

static const char folder[] = "tests/models/hf-bert-tiny";

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    smg_model *model; /* NULL: no device */
    model_case c;     /* the one in use */
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_source(fixture *f) {
    memset(f, 0, sizeof(*f));
    const smg_context_desc desc = witness_desc(&f->seen);
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    expect_ok(f, smg_arena_create(f->ctx, &f->arena));
    expect_ok(f, smg_source_open(f->ctx, folder, false, &f->source));
}

static bool open_model(fixture *f) {
    open_source(f);
    const smg_model_desc desc = {.no_calibrate = true};
    smg_status status = smg_model_open_source(f->ctx, &f->source, NULL, &desc, &f->model);
    if (device_missing(f->ctx, status)) return false;
    expect_ok(f, status);
    return true;
}

static void close_all(fixture *f) {
    smg_npy_close(&f->c.stored);
    smg_model_close(f->model);
    smg_source_close(&f->source);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
}

/* The three inputs of a stored case, as files have them (i64 becomes i32). */
static smg_tensor *load_case(fixture *f, const char *name) {
    smg_npy_close(&f->c.stored);
    expect_ok(f, model_case_load(f->ctx, f->source.graph, folder, name, "last_hidden_state", f->arena, &f->c));
    assert_int_equal(f->c.input_count, 3);
    return f->c.inputs;
}

static void expect_stored(const fixture *f, const smg_tensor *got) {
    double error = model_case_tensor_error(&f->c, got);
    print_message("error %.3g\n", error);
    assert_true(error <= MODEL_CASE_TOLERANCE);
}

static const char *const cases[] = {"b1s7", "b3s77"};

static void test_device(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f)) {
        close_all(&f);
        skip();
    }
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        smg_tensor out = {.name = "last_hidden_state"};
        smg_tensor *inputs = load_case(&f, cases[i]);
        expect_ok(&f, smg_model_run(f.model, inputs, 3, &out, 1));
        expect_stored(&f, &out);
        int calls = f.seen.calls;
        expect_ok(&f, smg_model_run(f.model, inputs, 3, &out, 1));
        assert_int_equal(f.seen.calls, calls); /* the same sizes again: no allocation */
    }
    close_all(&f);
}

static void test_interpreter(void **state) {
    (void)state;
    fixture f;
    open_source(&f);
    smg_target target;
    smg_compilation *c = NULL;
    smg_tensor out[1];
    int64_t values[8];
    expect_ok(&f, smg_target_named(f.ctx, "careful", &target));
    expect_ok(&f, smg_compile_plan(f.ctx, f.source.graph, &target, NULL, &c));
    smg_tensor *inputs = load_case(&f, cases[0]);
    expect_ok(&f, smg_tensor_sizes(f.ctx, f.source.graph, inputs, 3, NULL, values));
    expect_ok(&f, smg_compile_interpret(c, values, inputs, 3, f.arena, out));
    expect_stored(&f, &out[0]);
    smg_compilation_destroy(c);
    close_all(&f);
}

static void expect_error(fixture *f, smg_status got, smg_status want, const char *part) {
    assert_int_equal(got, want);
    if (strstr(smg_context_error(f->ctx), part) == NULL) {
        fail_msg("'%s' lacks '%s'", smg_context_error(f->ctx), part);
    }
    smg_context_clear_error(f->ctx);
}

static void test_refuses(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f)) {
        close_all(&f);
        skip();
    }
    smg_tensor out = {.name = "last_hidden_state"};
    smg_tensor *inputs = load_case(&f, cases[0]);
    smg_tensor wrong[3] = {inputs[0], inputs[1], inputs[2]};
    wrong[1].dims[1] = 6;
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID, "another input has 7");
    wrong[1] = inputs[1];
    wrong[1].rank = 1;
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID, "has 2 axes, 1 were given");
    wrong[1] = inputs[1];
    wrong[1].name = "mask";
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_NOT_FOUND, "no input 'mask'");
    wrong[1] = inputs[1];
    wrong[1].type = "f32";
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID, "f32 was given");
    expect_error(&f, smg_model_run(f.model, inputs + 1, 2, &out, 1), SMG_INVALID, "input 'input_ids' is missing");
    out.name = "logits";
    expect_error(&f, smg_model_run(f.model, inputs, 3, &out, 1), SMG_NOT_FOUND, "last_hidden_state");
    out.name = "last_hidden_state";
    int32_t good = ((int32_t *)inputs[0].data)[0];
    ((int32_t *)inputs[0].data)[0] = 30600;
    expect_error(&f, smg_model_run(f.model, inputs, 3, &out, 1), SMG_INVALID, "30600");
    ((int32_t *)inputs[0].data)[0] = good;
    expect_ok(&f, smg_model_run(f.model, inputs, 3, &out, 1));
    expect_stored(&f, &out);
    close_all(&f);
}

/* What is given once stays while runs leave it out; integer types convert. */
static void test_kept_input(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f)) {
        close_all(&f);
        skip();
    }
    smg_tensor out = {.name = "last_hidden_state"};
    smg_tensor *inputs = load_case(&f, cases[0]);
    int64_t wide[64];
    int64_t count = smg_tensor_elements(&inputs[0]);
    assert_true(count <= 64);
    for (int64_t i = 0; i < count; i++) wide[i] = ((int32_t *)inputs[0].data)[i];
    inputs[0].data = wide;
    inputs[0].type = "i64";
    inputs[0].bytes = sizeof(wide);
    expect_ok(&f, smg_model_set_input(f.model, &inputs[1]));
    expect_ok(&f, smg_model_set_input(f.model, &inputs[2]));
    memset(inputs[1].data, 0, inputs[1].bytes); /* it was copied */
    expect_ok(&f, smg_model_run(f.model, inputs, 1, &out, 1));
    expect_stored(&f, &out);
    close_all(&f);
}

/* Without them nothing is padding and every token has type 0. */
static void test_defaults(void **state) {
    (void)state;
    fixture f;
    if (!open_model(&f)) {
        close_all(&f);
        skip();
    }
    smg_tensor out = {.name = "last_hidden_state"};
    smg_tensor *inputs = load_case(&f, cases[0]); /* one row, all valid */
    expect_ok(&f, smg_model_run(f.model, inputs, 1, &out, 1));
    expect_stored(&f, &out);
    int calls = f.seen.calls;
    expect_ok(&f, smg_model_run(f.model, inputs, 1, &out, 1));
    assert_int_equal(f.seen.calls, calls);
    close_all(&f);
}

/* The objective and the yardstick change kernels, never results. */
static void test_plans_agree(void **state) {
    (void)state;
    fixture f;
    open_source(&f);
    int64_t values[8] = {0};
    smg_node_id nodes[3];
    smg_tensor inputs[3];
    smg_target target;
    const smg_dim dims[] = {{"batch", 2}, {"sequence", 5}};
    expect_ok(&f, smg_target_named(f.ctx, "careful", &target));
    expect_ok(&f, smg_sizes_choose(f.ctx, f.source.graph, dims, 2, values));
    smg_graph_input_nodes(f.source.graph, nodes, 3);
    for (int i = 0; i < 3; i++) {
        expect_ok(&f,
                  smg_tensor_fill(f.ctx, f.source.graph, nodes[i], values, SMG_FILL_RANDOM, 3, f.arena, &inputs[i]));
    }
    int last = INT32_MAX;
    for (int plan = 0; plan < 3; plan++) {
        const smg_compile_options options = {
            .unfused = plan == 0,
            .objective = plan == 2 ? SMG_OBJECTIVE_DISPATCHES : SMG_OBJECTIVE_TIME,
            .dims = dims,
            .dim_count = 2,
        };
        smg_compilation *c = NULL;
        smg_tensor out[1];
        smg_check check;
        expect_ok(&f, smg_compile_plan(f.ctx, f.source.graph, &target, &options, &c));
        expect_ok(&f, smg_compile_interpret(c, values, inputs, 3, f.arena, out));
        expect_ok(
            &f, smg_compile_check(f.ctx, f.source.graph, (smg_roundings){0}, values, inputs, 3, out, f.arena, &check));
        assert_true(check.pass);
        assert_true(c->plan->steps.count <= last);
        last = c->plan->steps.count;
        smg_compilation_destroy(c);
    }
    close_all(&f);
}

/* The check samples rows only where rows do not mix. */
static void test_batch(void **state) {
    (void)state;
    fixture f;
    open_source(&f);
    int symbol = smg_compile_batch_symbol(f.source.graph, f.arena);
    assert_int_equal(symbol, smg_size_symbol_find(f.source.graph->sizes, "batch"));
    smg_graph *g = NULL;
    expect_ok(&f, smg_graph_create(f.ctx, "mixes", &g));
    smg_value x = smg_graph_input(g, "x", "f32", "rows, 8");
    smg_graph_output(g, "y", smg_graph_map(g, "sub", 2, (smg_value[]){x, smg_graph_reduce(g, "sum", x, 0, true)}));
    expect_ok(&f, smg_graph_finish(g));
    assert_int_equal(smg_compile_batch_symbol(g, f.arena), -1);
    smg_graph_destroy(g);
    close_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),     cmocka_unit_test(test_interpreter), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_kept_input), cmocka_unit_test(test_defaults),    cmocka_unit_test(test_plans_agree),
        cmocka_unit_test(test_batch),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
