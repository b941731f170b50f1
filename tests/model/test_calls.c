/* Calls of one context do not remember each other's failures: after every failing call of the public API
 * every good one is all right, and every failing one says its own sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/witness.h"

static const char text[] = "graph text\nx = input f32[n, 4]\ny = neg(x)\noutput y = y\n";
static const smg_model_desc quick = {.no_calibrate = true};

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_graph *graph; /* good, of `model` */
    smg_model *model;
    float x[8];
    smg_tensor in;
} fixture;

static void good_graph(smg_context *ctx, smg_graph **out) {
    assert_int_equal(smg_graph_create(ctx, "good", out), SMG_OK);
    smg_value x = smg_graph_input(*out, "x", "f32", "n, 4");
    smg_graph_output(*out, "y", smg_graph_map(*out, "exp", 1, &x));
}

/* ---- calls that fail: each returns its status ------------------------------------------------------ */

static smg_status run_wrong_name(fixture *f) {
    smg_tensor in = f->in;
    in.name = "z";
    return smg_model_run(f->model, &in, 1, NULL, 0);
}

static smg_status run_wrong_output(fixture *f) {
    smg_tensor out = {.name = "logits"};
    return smg_model_run(f->model, &f->in, 1, &out, 1);
}

static smg_status run_wrong_size(fixture *f) {
    smg_tensor in = f->in;
    in.dims[1] = 5;
    return smg_model_run(f->model, &in, 1, NULL, 0);
}

static smg_status set_nothing(fixture *f) {
    return smg_model_set_input(f->model, NULL);
}

static smg_status open_no_file(fixture *f) {
    smg_model *m = NULL;
    return smg_model_open(f->ctx, "no/such/model", &quick, &m);
}

static smg_status open_no_model(fixture *f) {
    smg_model *m = NULL;
    return smg_model_open(f->ctx, "tests/models/hf-bert-tiny/config.json", &quick, &m);
}

static smg_status open_no_device(fixture *f) {
    const smg_model_desc desc = {.device = "no such device"};
    smg_model *m = NULL;
    return smg_model_open_graph(f->ctx, f->graph, &desc, &m);
}

static smg_status open_no_graph(fixture *f) {
    smg_model *m = NULL;
    return smg_model_open_graph(f->ctx, NULL, &quick, &m);
}

static smg_status parse_wrong(fixture *f) {
    smg_graph *g = NULL;
    return smg_graph_parse(f->ctx, "graph t\nwhat\n", 13, "a text", &g);
}

static smg_status finish_wrong(fixture *f) {
    smg_graph *g = NULL;
    assert_int_equal(smg_graph_create(f->ctx, "bad", &g), SMG_OK);
    smg_value x = smg_graph_input(g, "x", "f99", "n");
    smg_graph_output(g, "y", smg_graph_map(g, "exp", 1, &x)); /* says nothing more */
    smg_status status = smg_graph_finish(g);
    smg_graph_destroy(g);
    return status;
}

/* The failure is told when the graph is opened; another graph fails in between. */
static smg_status open_failed_graph(fixture *f) {
    smg_graph *g[2];
    smg_model *m = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(smg_graph_create(f->ctx, "bad", &g[i]), SMG_OK);
        assert_int_equal(smg_graph_input(g[i], "x", "f32", i == 0 ? "2, ?" : "3, !").id, 0);
    }
    assert_non_null(strstr(smg_context_error(f->ctx), "3, !"));
    run_wrong_name(f);
    smg_status status = smg_model_open_graph(f->ctx, g[0], &quick, &m);
    for (int i = 0; i < 2; i++) smg_graph_destroy(g[i]);
    return status;
}

/* Nobody asks what became of it. */
static smg_status abandon_graph(fixture *f) {
    smg_graph *g = NULL;
    assert_int_equal(smg_graph_create(f->ctx, "bad", &g), SMG_OK);
    smg_status status = smg_graph_output(g, "y", (smg_value){77});
    smg_graph_destroy(g);
    return status;
}

static smg_status build_on_finished(fixture *f) {
    return smg_graph_output(f->graph, "z", (smg_value){1});
}

static smg_status no_memory(fixture *f) {
    smg_model *m = NULL;
    f->seen.fail_at = f->seen.calls + 3;
    smg_status status = smg_model_open(f->ctx, "tests/models/hf-bert-tiny", &quick, &m);
    f->seen.fail_at = 0;
    return status;
}

static smg_status no_memory_for_graph(fixture *f) {
    smg_graph *g = NULL;
    f->seen.fail_at = f->seen.calls + 1;
    smg_status status = smg_graph_create(f->ctx, "none", &g);
    f->seen.fail_at = 0;
    return status;
}

static const struct {
    smg_status (*call)(fixture *f);
    smg_status status;
    const char *part;
} bad[] = {
    {run_wrong_name, SMG_NOT_FOUND, "no input 'z'"},
    {run_wrong_output, SMG_NOT_FOUND, "'logits'"},
    {run_wrong_size, SMG_INVALID, "5"},
    {set_nothing, SMG_INVALID, "the tensor is NULL"},
    {open_no_file, SMG_NOT_FOUND, "no/such/model"},
    {open_no_model, SMG_INVALID, "is no model by itself"},
    {open_no_device, SMG_NOT_FOUND, "no such device"},
    {open_no_graph, SMG_INVALID, "the graph is NULL"},
    {parse_wrong, SMG_FORMAT, "a text:2"},
    {finish_wrong, SMG_INVALID, "f99"},
    {open_failed_graph, SMG_FORMAT, "2, ?"},
    {abandon_graph, SMG_INVALID, "value 77"},
    {build_on_finished, SMG_INVALID, "good is finished"},
    {no_memory, SMG_MEMORY, "memory"},
    {no_memory_for_graph, SMG_MEMORY, "memory"},
};
enum { BAD = sizeof bad / sizeof *bad };

/* ---- calls that are right -------------------------------------------------------------------------- */

static smg_status run(fixture *f) {
    smg_tensor out = {.name = "y"};
    return smg_model_run(f->model, &f->in, 1, &out, 1);
}

static smg_status set(fixture *f) {
    return smg_model_set_input(f->model, &f->in);
}

static smg_status open_file(fixture *f) {
    smg_model *m = NULL;
    smg_status status = smg_model_open(f->ctx, "tests/graphs/softmax.smg", &quick, &m);
    smg_model_close(m);
    return status;
}

static smg_status open_graph(fixture *f) {
    smg_model *m = NULL;
    smg_status status = smg_model_open_graph(f->ctx, f->graph, &quick, &m);
    smg_model_close(m);
    return status;
}

static smg_status build(fixture *f) {
    smg_graph *g = NULL;
    good_graph(f->ctx, &g);
    smg_status status = smg_graph_finish(g);
    smg_graph_destroy(g);
    return status;
}

static smg_status parse(fixture *f) {
    smg_graph *g = NULL;
    smg_status status = smg_graph_parse(f->ctx, text, strlen(text), "a text", &g);
    smg_graph_destroy(g);
    return status;
}

static smg_status (*const good[])(fixture *f) = {run, set, open_file, open_graph, build, parse};
enum { GOOD = sizeof good / sizeof *good };

/* ---- pairs ----------------------------------------------------------------------------------------- */

static void open_all(fixture *f) {
    memset(f, 0, sizeof(*f));
    const smg_context_desc desc = witness_desc(&f->seen);
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    good_graph(f->ctx, &f->graph);
    f->in = (smg_tensor){.name = "x", .rank = 2, .dims = {2, 4}, .data = f->x};
}

static void close_all(fixture *f) {
    smg_model_close(f->model);
    smg_graph_destroy(f->graph);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
}

static void fail_once(fixture *f, int i) {
    smg_status status = bad[i].call(f);
    if (status != bad[i].status || strstr(smg_context_error(f->ctx), bad[i].part) == NULL)
        fail_msg("failing call %d: status %d, wanted %d: '%s' lacks '%s'", i, (int)status, (int)bad[i].status,
                 smg_context_error(f->ctx), bad[i].part);
}

static void test_failing_then_good(void **state) {
    (void)state;
    fixture f;
    open_all(&f);
    assert_int_equal(smg_model_open_graph(f.ctx, f.graph, &quick, &f.model), SMG_OK);
    for (int i = 0; i < BAD; i++) {
        for (int j = 0; j < GOOD; j++) {
            fail_once(&f, i);
            smg_status status = good[j](&f);
            if (status != SMG_OK)
                fail_msg("good call %d after failing call %d: status %d, '%s'", j, i, (int)status,
                         smg_context_error(f.ctx));
        }
        /* What opens and runs starts clean. */
        fail_once(&f, i);
        assert_int_equal(run(&f), SMG_OK);
        assert_string_equal(smg_context_error(f.ctx), "");
    }
    close_all(&f);
}

static void test_failing_then_failing(void **state) {
    (void)state;
    fixture f;
    open_all(&f);
    assert_int_equal(smg_model_open_graph(f.ctx, f.graph, &quick, &f.model), SMG_OK);
    for (int i = 0; i < BAD; i++) {
        for (int j = 0; j < BAD; j++) {
            fail_once(&f, i);
            fail_once(&f, j);
        }
    }
    close_all(&f);
}

/* Several graphs at once: each finish tells of its own graph, as often as it is asked. */
static void test_graphs(void **state) {
    (void)state;
    static const char *const dims[3] = {"2, ?", "n, 4", "3, !"};
    fixture f;
    smg_graph *g[3];
    open_all(&f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(smg_graph_create(f.ctx, "one of three", &g[i]), SMG_OK);
        smg_value x = smg_graph_input(g[i], "x", "f32", dims[i]);
        smg_graph_output(g[i], "y", smg_graph_map(g[i], "exp", 1, &x));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(smg_graph_finish(g[i]), i == 1 ? SMG_OK : SMG_FORMAT);
            if (i != 1) assert_non_null(strstr(smg_context_error(f.ctx), dims[i]));
            if (i == 2) smg_context_clear_error(f.ctx); /* forgets nothing of the graph */
        }
    }
    for (int i = 0; i < 3; i++) smg_graph_destroy(g[i]);
    close_all(&f);
}

int main(void) {
    fixture f;
    open_all(&f);
    smg_status status = smg_model_open_graph(f.ctx, f.graph, &quick, &f.model);
    if (device_missing(f.ctx, status)) return device_result(0);
    close_all(&f);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_then_good),
        cmocka_unit_test(test_failing_then_failing),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
