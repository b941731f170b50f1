/* A small BERT directory through include/smg/model.h: equal to what PyTorch stored for it, on the
 * device and in the interpreter; every size from one compilation; wrong calls are statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif

static const char folder[] = "tests/models/hf-bert-tiny";
static const double tolerance = 1e-4;

typedef struct witness {
    size_t live_bytes;
    int calls;
} witness;

static void *hook(void *user, void *pointer, size_t old_size, size_t new_size) {
    witness *seen = user;
    seen->calls++;
    void *moved = new_size ? realloc(pointer, new_size) : NULL;
    if (new_size && !moved) return NULL;
    if (!new_size) free(pointer);
    seen->live_bytes += new_size - old_size;
    return moved;
}

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    smg_model *model; /* NULL: no device */
} fixture;

static void expect_ok(fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_source(fixture *f) {
    memset(f, 0, sizeof(*f));
    const smg_context_desc desc = {.reallocate = hook, .user = &f->seen};
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    expect_ok(f, smg_arena_create(f->ctx, &f->arena));
    expect_ok(f, smg_source_open(f->ctx, folder, false, &f->source));
}

static bool open_model(fixture *f) {
    open_source(f);
    const smg_model_desc desc = {.no_calibrate = true};
    smg_status status = smg_model_open_source(f->ctx, &f->source, NULL, &desc, &f->model);
    if (status == SMG_NOT_FOUND || status == SMG_UNSUPPORTED) {
        print_message("no device: %s\n", smg_context_error(f->ctx));
        return false;
    }
    expect_ok(f, status);
    return true;
}

static void close_all(fixture *f) {
    smg_model_close(f->model);
    smg_source_close(&f->source);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
}

/* The three inputs of a stored case, as files have them (i64 becomes i32). */
static void load_case(fixture *f, const char *name, smg_tensor inputs[3]) {
    smg_node_id nodes[3];
    assert_int_equal(smg_graph_input_nodes(f->source.graph, nodes, 3), 3);
    int64_t values[8] = {1, 1};
    for (int i = 0; i < 3; i++) {
        const char *input = smg_graph_node(f->source.graph, nodes[i])->name;
        const char *path = smg_arena_format(f->arena, "%s/%s/in.%s.npy", folder, name, input);
        if (smg_file_exists(path)) {
            expect_ok(
                f, smg_tensor_load(f->ctx, f->source.graph, nodes[i], path, f->arena, &inputs[i]));
        }
    }
    expect_ok(f, smg_tensor_sizes(f->ctx, f->source.graph, inputs, 3, NULL, values));
    for (int i = 0; i < 3; i++) {
        if (inputs[i].data != NULL) continue;
        expect_ok(f, smg_tensor_fill(f->ctx, f->source.graph, nodes[i], values, SMG_FILL_ZEROS, 0,
                                     f->arena, &inputs[i]));
    }
}

static void expect_stored(fixture *f, const char *name, const smg_tensor *got) {
    smg_npy npy = {0};
    const char *path = smg_arena_format(f->arena, "%s/%s/out.last_hidden_state.npy", folder, name);
    expect_ok(f, smg_npy_open(f->ctx, path, &npy));
    assert_int_equal(npy.count, smg_tensor_elements(got));
    float *want = SMG_ARENA_ARRAY(f->arena, float, (size_t)npy.count);
    assert_non_null(want);
    expect_ok(f, smg_import_to_f32(f->ctx, npy.dtype, npy.data, npy.count, want));
    double worst = 0;
    for (int64_t i = 0; i < npy.count; i++) {
        double error = fabs(smg_tensor_get(got, i) - (double)want[i]);
        if (!(error <= worst)) worst = error;
    }
    print_message("%s: max abs error %.3g\n", name, worst);
    assert_true(worst <= tolerance);
    smg_npy_close(&npy);
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
        smg_tensor inputs[3] = {0};
        smg_tensor out = {.name = "last_hidden_state"};
        load_case(&f, cases[i], inputs);
        expect_ok(&f, smg_model_run(f.model, inputs, 3, &out, 1));
        expect_stored(&f, cases[i], &out);
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
    smg_tensor inputs[3] = {0};
    smg_tensor out[1];
    int64_t values[8];
    expect_ok(&f, smg_target_named(f.ctx, "careful", &target));
    expect_ok(&f, smg_compile_plan(f.ctx, f.source.graph, &target, NULL, &c));
    load_case(&f, cases[0], inputs);
    expect_ok(&f, smg_tensor_sizes(f.ctx, f.source.graph, inputs, 3, NULL, values));
    expect_ok(&f, smg_compile_interpret(c, values, inputs, 3, f.arena, out));
    expect_stored(&f, cases[0], &out[0]);
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
    smg_tensor inputs[3] = {0};
    smg_tensor out = {.name = "last_hidden_state"};
    load_case(&f, cases[0], inputs);
    smg_tensor wrong[3] = {inputs[0], inputs[1], inputs[2]};
    wrong[1].dims[1] = 6;
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID, "another input has 7");
    wrong[1] = inputs[1];
    wrong[1].rank = 1;
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID,
                 "has 2 axes, 1 were given");
    wrong[1] = inputs[1];
    wrong[1].name = "mask";
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_NOT_FOUND, "no input 'mask'");
    wrong[1] = inputs[1];
    wrong[1].type = "f32";
    expect_error(&f, smg_model_run(f.model, wrong, 3, &out, 1), SMG_INVALID, "f32 was given");
    expect_error(&f, smg_model_run(f.model, inputs + 1, 2, &out, 1), SMG_INVALID,
                 "input 'input_ids' is missing");
    out.name = "logits";
    expect_error(&f, smg_model_run(f.model, inputs, 3, &out, 1), SMG_NOT_FOUND,
                 "last_hidden_state");
    out.name = "last_hidden_state";
    int32_t good = ((int32_t *)inputs[0].data)[0];
    ((int32_t *)inputs[0].data)[0] = 30600;
    expect_error(&f, smg_model_run(f.model, inputs, 3, &out, 1), SMG_INVALID, "30600");
    ((int32_t *)inputs[0].data)[0] = good;
    expect_ok(&f, smg_model_run(f.model, inputs, 3, &out, 1));
    expect_stored(&f, cases[0], &out);
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
    smg_tensor inputs[3] = {0};
    smg_tensor out = {.name = "last_hidden_state"};
    load_case(&f, cases[0], inputs);
    int64_t wide[64];
    int64_t count = smg_tensor_elements(&inputs[0]);
    assert_true(count <= 64);
    for (int64_t i = 0; i < count; i++) wide[i] = ((int32_t *)inputs[0].data)[i];
    inputs[0].data = wide;
    inputs[0].type = "i64";
    expect_ok(&f, smg_model_set_input(f.model, &inputs[1]));
    expect_ok(&f, smg_model_set_input(f.model, &inputs[2]));
    memset(inputs[1].data, 0, inputs[1].bytes); /* it was copied */
    expect_ok(&f, smg_model_run(f.model, inputs, 1, &out, 1));
    expect_stored(&f, cases[0], &out);
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
    smg_tensor inputs[3] = {0};
    smg_tensor out = {.name = "last_hidden_state"};
    load_case(&f, cases[0], inputs); /* one row, all valid */
    expect_ok(&f, smg_model_run(f.model, inputs, 1, &out, 1));
    expect_stored(&f, cases[0], &out);
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
        expect_ok(&f, smg_tensor_fill(f.ctx, f.source.graph, nodes[i], values, SMG_FILL_RANDOM, 3,
                                      f.arena, &inputs[i]));
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
            &f, smg_compile_check(f.ctx, f.source.graph, values, inputs, 3, out, f.arena, &check));
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
    smg_graph_output(
        g, "y",
        smg_graph_map(g, "sub", 2, (smg_value[]){x, smg_graph_reduce(g, "sum", x, 0, true)}));
    expect_ok(&f, smg_graph_finish(g));
    assert_int_equal(smg_compile_batch_symbol(g, f.arena), -1);
    smg_graph_destroy(g);
    close_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),   cmocka_unit_test(test_interpreter),
        cmocka_unit_test(test_refuses),  cmocka_unit_test(test_kept_input),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_plans_agree),
        cmocka_unit_test(test_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
