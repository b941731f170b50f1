/* The public functions beside opening and running, as an application uses them: what a model is, arrays for it,
 * compilations, bundles, measures, embeddings. Each refuses what makes no sense with a sentence of its own, and what
 * it was called on goes on as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "smg/smg.h"
#include "support/device.h"
#include "support/driver_leaks.h"
#include "support/output.h"
#include "support/witness.h"

static const char rows_text[] = "graph rows\n"
                                "dim n max 64\n"
                                "x = input f32[n, 16]\n"
                                "ids = input i64[n]\n"
                                "h = input f32[n, 16]\n"
                                "t = constant f32[6, 16] random seed=1\n"
                                "g = gather(t, ids)\n"
                                "a = add(x, g)\n"
                                "s = add(a, h)\n"
                                "e = exp(a)\n"
                                "y = sum(e) axis=1\n"
                                "output y = y\n"
                                "output s = s\n"
                                "state h = s\n";
static const smg_model_desc quick = {.no_calibrate = true};

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_graph *graph;
    smg_source *source;
    smg_arrays *arrays;
    const smg_signature *signature;
} fixture;

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect_refused(const fixture *f, smg_status status, smg_status want, const char *part) {
    const char *said = smg_context_error(f->ctx);
    if (status != want || strstr(said, part) == NULL)
        fail_msg("status %d, wanted %d: '%s' lacks '%s'", (int)status, (int)want, said, part);
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof(f));
    const smg_context_desc desc = witness_desc(&f.seen);
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    expect_ok(&f, smg_graph_parse(f.ctx, rows_text, strlen(rows_text), "rows", &f.graph));
    expect_ok(&f, smg_source_of_graph(f.ctx, f.graph, &f.source));
    f.signature = smg_source_get_facts(f.source)->signature;
    expect_ok(&f, smg_arrays_create(f.ctx, f.signature, &f.arrays));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arrays_destroy(f->arrays);
    smg_source_unload(f->source);
    smg_graph_destroy(f->graph);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
    return 0;
}

/* Text that a call writes, as a string. */
typedef struct page {
    char text[1 << 16];
    size_t length;
} page;

static void write_page(void *user, const char *text, size_t bytes) {
    page *p = user;
    assert_true(p->length + bytes < sizeof(p->text));
    memcpy(p->text + p->length, text, bytes);
    p->length += bytes;
    p->text[p->length] = '\0';
}

static smg_sink sink_of(page *p) {
    p->length = 0;
    p->text[0] = '\0';
    return (smg_sink){.write = write_page, .user = p};
}

static void fill_all(fixture *f, int64_t n, uint64_t seed) {
    const smg_dim dims[] = {{"n", n}};
    int count = 0;
    expect_ok(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.dims = dims, .dim_count = 1}));
    const smg_tensor *inputs = smg_arrays_inputs(f->arrays, &count);
    assert_int_equal(count, 3);
    for (int i = 0; i < count; i++) expect_ok(f, smg_arrays_fill(f->arrays, inputs[i].name, SMG_FILL_RANDOM, seed));
}

/* ---- what a model is ---------------------------------------------------------------------------------- */

static void test_source(void **state) {
    fixture *f = *state;
    const smg_source_facts *facts = smg_source_get_facts(f->source);
    const smg_signature *s = facts->signature;
    smg_source *other = NULL;
    assert_string_equal(facts->name, "rows");
    assert_int_equal(facts->parameters, 96);
    assert_int_equal(facts->unsupported_count, 0);
    assert_true(s->input_count == 3 && s->output_count == 2 && s->size_count == 1);
    assert_true(strcmp(s->inputs[0].dims[0], "n") == 0 && s->inputs[0].fixed[0] == -1 && s->inputs[0].fixed[1] == 16);
    assert_true(strcmp(s->inputs[1].type, "i64") == 0 && s->inputs[1].state == NULL);
    assert_string_equal(s->inputs[2].state, "s");
    assert_true(strcmp(s->sizes[0].name, "n") == 0 && s->sizes[0].max == 64 && s->sizes[0].usual > 0);
    expect_ok(f, smg_source_load(f->ctx, "tests/models/hf-bert-tiny", NULL, &other));
    assert_true(smg_source_get_facts(other)->parameters > 90000);
    const smg_signature *bert = smg_source_get_facts(other)->signature;
    for (int i = 0; i < bert->input_count; i++)
        assert_int_equal(bert->inputs[i].optional, strcmp(bert->inputs[i].name, "input_ids") != 0);
    smg_source_unload(other);
    expect_refused(f, smg_source_load(f->ctx, "no/such", NULL, &other), SMG_NOT_FOUND, "no/such");
    assert_null(other);
    expect_refused(f, smg_source_load(f->ctx, NULL, NULL, &other), SMG_INVALID, "path is NULL");
    expect_refused(f, smg_source_of_graph(f->ctx, NULL, &other), SMG_INVALID, "graph is NULL");
    expect_refused(f, smg_model_desc_check(f->ctx, &(smg_model_desc){.precision = "f8"}), SMG_INVALID, "f8");
    expect_ok(f, smg_model_desc_check(f->ctx, NULL));
    assert_string_equal(smg_context_error(f->ctx), "");
}

/* The sentence is the parser's, also where a file is opened. */
static void test_sentence_of_file(void **state) {
    fixture *f = *state;
    char room[512];
    const char *path = test_output(room, sizeof(room), "public-broken.smg");
    smg_model *m = NULL;
    smg_source *source = NULL;
    expect_ok(f, smg_command_write_file(f->ctx, path, "graph g\nwhat\n", 13));
    expect_refused(f, smg_source_load(f->ctx, path, NULL, &source), SMG_FORMAT, "public-broken.smg:2");
    if (SMG_VULKAN) expect_refused(f, smg_model_open(f->ctx, path, &quick, &m), SMG_FORMAT, "public-broken.smg:2");
    expect_refused(f, smg_command_write_file(f->ctx, NULL, "x", 1), SMG_INVALID, "path is NULL");
    assert_true(smg_command_path_exists(path) && smg_command_path_exists("tests"));
    assert_false(smg_command_path_exists("no/such") || smg_command_path_exists(NULL));
}

static void test_operations(void **state) {
    (void)state;
    const char *word = NULL, *doc = NULL;
    int count = 0;
    while (smg_graph_operation(count, &word, &doc)) count++;
    assert_true(count > 30 && doc[0] != '\0');
    assert_false(smg_graph_operation(-1, &word, &doc) || smg_graph_operation(0, NULL, &doc));
}

/* ---- arrays ------------------------------------------------------------------------------------------- */

static void test_arrays(void **state) {
    fixture *f = *state;
    int count = 0, index = 0;
    assert_null(smg_arrays_sizes(f->arrays, &count));
    expect_refused(f, smg_arrays_fill(f->arrays, "x", SMG_FILL_ZEROS, 0), SMG_INVALID, "settled");
    fill_all(f, 5, 7);
    const smg_dim *sizes = smg_arrays_sizes(f->arrays, &count);
    assert_true(count == 1 && sizes[0].value == 5);
    const smg_tensor *inputs = smg_arrays_inputs(f->arrays, NULL);
    for (int64_t i = 0; i < 5; i++) /* rows of the table */
        assert_true(smg_tensor_get(&inputs[1], i) >= 0 && smg_tensor_get(&inputs[1], i) < 6);
    float first = ((const float *)inputs[0].data)[0];
    expect_ok(f, smg_arrays_fill(f->arrays, "x", SMG_FILL_RANDOM, 8));
    assert_true(((const float *)inputs[0].data)[0] != first);
    expect_ok(f, smg_arrays_fill(f->arrays, "x", SMG_FILL_RANDOM, 7));
    assert_true(((const float *)inputs[0].data)[0] == first);
    expect_ok(f, smg_arrays_fill_lengths(f->arrays, "ids", (int64_t[]){0, 1, 2, 3, 4}, 5));
    assert_true(smg_tensor_get(&inputs[1], 3) == 3);
    expect_refused(f, smg_arrays_fill_lengths(f->arrays, "ids", (int64_t[]){1}, 1), SMG_INVALID, "'ids'");
    expect_refused(f, smg_arrays_fill_lengths(f->arrays, "x", (int64_t[]){1}, 1), SMG_UNSUPPORTED, "'x'");
    expect_refused(f, smg_arrays_fill_lengths(f->arrays, "ids", NULL, 3), SMG_INVALID, "3 lengths");
    assert_true(smg_tensor_get(&inputs[1], 3) == 3); /* what there was */
    expect_refused(f, smg_arrays_find(f->arrays, "z", &index), SMG_NOT_FOUND, "'z'");
    expect_refused(f, smg_arrays_fill(f->arrays, "x", (smg_fill)9, 0), SMG_INVALID, "way 9");
    const smg_dim wrong[] = {{"n", 65}}, nameless[] = {{NULL, 1}}, unknown[] = {{"m", 1}};
    expect_refused(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.dims = wrong, .dim_count = 1}), SMG_INVALID,
                   "65");
    expect_refused(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.dims = nameless, .dim_count = 1}), SMG_INVALID,
                   "dims[0]");
    expect_refused(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.max_dims = unknown, .max_dim_count = 1}),
                   SMG_NOT_FOUND, "'m'");
    expect_refused(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.dim_count = -1}), SMG_INVALID, "less than none");
    assert_true(smg_arrays_sizes(f->arrays, &count)[0].value == 5 && inputs[0].data != NULL);
    const smg_dim most[] = {{"n", 3}};
    expect_ok(f, smg_arrays_settle(f->arrays, &(smg_sizes_desc){.max_dims = most, .max_dim_count = 1}));
    assert_true(smg_arrays_sizes(f->arrays, &count)[0].value == 3 && inputs[0].data == NULL);
}

static void test_files(void **state) {
    fixture *f = *state;
    char room[512];
    const char *path = test_output(room, sizeof(room), "public-x.npy");
    int count = 0;
    fill_all(f, 9, 1);
    smg_tensor *inputs = smg_arrays_inputs(f->arrays, &count);
    float x[9 * 16];
    memcpy(x, inputs[0].data, sizeof(x));
    expect_ok(f, smg_tensor_save(f->ctx, path, &inputs[0]));
    expect_ok(f, smg_arrays_load(f->arrays, "x", path));
    assert_null(smg_arrays_sizes(f->arrays, NULL));
    expect_ok(f, smg_arrays_settle(f->arrays, NULL));
    assert_true(smg_arrays_sizes(f->arrays, &count)[0].value == 9);
    assert_memory_equal(inputs[0].data, x, sizeof(x));
    expect_refused(f, smg_arrays_load(f->arrays, "ids", path), SMG_INVALID, "'ids'");
    expect_refused(f, smg_arrays_load(f->arrays, "x", "no/such.npy"), SMG_NOT_FOUND, "no/such.npy");
    expect_refused(f, smg_arrays_load(f->arrays, "x", NULL), SMG_INVALID, "path is NULL");
    assert_memory_equal(inputs[0].data, x, sizeof(x));
    int32_t few[9] = {5, 4, 3, 2, 1, 0, 1, 2, 3};
    smg_tensor ids = {.name = "ids", .type = "i32", .rank = 1, .dims = {9}, .data = few, .bytes = sizeof(few)};
    expect_ok(f, smg_arrays_give(f->arrays, &ids));
    assert_true(strcmp(inputs[1].type, "i64") == 0 && ((const int64_t *)inputs[1].data)[8] == 3);
    ids.type = "f32";
    expect_refused(f, smg_arrays_give(f->arrays, &ids), SMG_INVALID, "i64");
    ids.type = "i32";
    ids.bytes = 8;
    expect_refused(f, smg_arrays_give(f->arrays, &ids), SMG_INVALID, "8 bytes");
    ids.bytes = 0;
    ids.dims[0] = 8;
    expect_ok(f, smg_arrays_give(f->arrays, &ids));
    expect_refused(f, smg_arrays_settle(f->arrays, NULL), SMG_INVALID, "n");
    expect_refused(f, smg_arrays_give(f->arrays, NULL), SMG_INVALID, "NULL");
    expect_refused(f, smg_tensor_save(f->ctx, path, NULL), SMG_INVALID, "smg_tensor_save");
    expect_refused(f, smg_tensor_save(f->ctx, "no/such/folder.npy", &inputs[0]), SMG_NOT_FOUND, "no/such/folder.npy");
}

/* ---- compilations -------------------------------------------------------------------------------------- */

static void test_explain(void **state) {
    fixture *f = *state;
    static page p;
    smg_compilation *c = NULL;
    smg_compilation_facts facts;
    const smg_compile_desc careful = {.target = "careful"};
    expect_refused(f, smg_source_compile(f->source, &(smg_compile_desc){.target = "frob"}, &c), SMG_NOT_FOUND, "frob");
    expect_refused(f, smg_source_compile(f->source, &(smg_compile_desc){.model = &(smg_model_desc){.rank = -1}}, &c),
                   SMG_INVALID, "rank");
    expect_ok(f, smg_source_compile(f->source, &careful, &c));
    expect_ok(f, smg_compilation_get_facts(c, &facts));
    assert_true(facts.kernels > 0 && facts.estimate > 0 && facts.modules == -1 && strcmp(facts.target, "careful") == 0);
    expect_ok(f, smg_compilation_explain(c, NULL, sink_of(&p)));
    assert_non_null(strstr(p.text, "k1"));
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.phase = "glsl", .kernel = "k1"}, sink_of(&p)));
    assert_non_null(strstr(p.text, "#version"));
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.form = SMG_EXPLAIN_JSON}, sink_of(&p)));
    assert_true(p.text[0] == '{');
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.form = SMG_EXPLAIN_DOT}, sink_of(&p)));
    const struct {
        smg_explain_desc desc;
        smg_status status;
        const char *part;
    } bad[] = {
        {{.phase = "frob"}, SMG_NOT_FOUND, "'frob'"},
        {{.kernel = "k99"}, SMG_NOT_FOUND, "'k99'"},
        {{.phase = "search"}, SMG_INVALID, "smg_compile_desc.search"},
        {{.phase = "lower"}, SMG_INVALID, "smg_compile_desc.passes"},
        {{.form = SMG_EXPLAIN_REPORT}, SMG_INVALID, "smg_compile_desc.report"},
        {{.form = (smg_explain_form)7}, SMG_INVALID, "form 7"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        expect_refused(f, smg_compilation_explain(c, &bad[i].desc, sink_of(&p)), bad[i].status, bad[i].part);
        assert_true(p.length == 0);
        expect_ok(f, smg_compilation_explain(c, NULL, sink_of(&p)));
    }
    expect_refused(f, smg_compilation_explain(c, NULL, (smg_sink){0}), SMG_INVALID, "no function");
    smg_compilation_destroy(c);
    const smg_compile_desc all = {.target = "careful", .passes = true, .search = true, .report = true};
    expect_ok(f, smg_source_compile(f->source, &all, &c));
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.form = SMG_EXPLAIN_REPORT}, sink_of(&p)));
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.phase = "search"}, sink_of(&p)));
    expect_ok(f, smg_compilation_explain(c, &(smg_explain_desc){.phase = "lower", .kernel = "k1"}, sink_of(&p)));
    smg_compilation_destroy(c);
}

static void test_interpret(void **state) {
    fixture *f = *state;
    smg_compilation *c = NULL;
    smg_check *check = NULL;
    smg_source *other = NULL;
    smg_overflow_info overflow;
    expect_ok(f, smg_source_compile(f->source, &(smg_compile_desc){.target = "careful"}, &c));
    expect_refused(f, smg_compilation_interpret(c, f->arrays), SMG_INVALID, "not settled");
    fill_all(f, 6, 3);
    expect_refused(f, smg_compilation_check(c, f->arrays, &check), SMG_INVALID, "there was no run");
    expect_ok(f, smg_compilation_interpret(c, f->arrays));
    expect_ok(f, smg_compilation_check(c, f->arrays, &check));
    assert_true(check->pass && check->count == 2 && check->sampled == check->total);
    smg_check_destroy(check);
    expect_ok(f, smg_compilation_find_overflow(c, f->arrays, &overflow));
    assert_null(overflow.value);
    smg_tensor *outputs = smg_arrays_outputs(f->arrays, NULL);
    ((float *)outputs[0].data)[4] += 1;
    expect_ok(f, smg_compilation_check(c, f->arrays, &check));
    assert_true(!check->pass && !check->rows[0].pass && check->rows[0].worst == 4 && check->rows[1].pass);
    smg_check_destroy(check);
    expect_ok(f, smg_compilation_interpret(c, f->arrays));
    expect_refused(f, smg_compilation_interpret(c, NULL), SMG_INVALID, "NULL");
    smg_compilation_destroy(c);
    expect_ok(f, smg_source_load(f->ctx, "tests/graphs/softmax.smg", NULL, &other));
    expect_ok(f, smg_source_compile(other, &(smg_compile_desc){.target = "careful"}, &c));
    expect_refused(f, smg_compilation_interpret(c, f->arrays), SMG_INVALID, "another model");
    smg_compilation_destroy(c);
    smg_source_unload(other);
}

/* Arrays of a description are checked before they are read. */
static void test_samples(void **state) {
    fixture *f = *state;
    smg_compilation *c = NULL;
    fill_all(f, 4, 1);
    const smg_tensor *inputs = smg_arrays_inputs(f->arrays, NULL);
    smg_tensor samples[3] = {inputs[0], inputs[1], inputs[2]};
    smg_model_desc model = {.precision = "f16", .samples = samples, .sample_count = 3};
    const smg_compile_desc desc = {.model = &model, .target = "h200"};
    expect_ok(f, smg_source_compile(f->source, &desc, &c));
    smg_compilation_destroy(c);
    samples[0].bytes = 4;
    expect_refused(f, smg_source_compile(f->source, &desc, &c), SMG_INVALID, "4 bytes");
    samples[0] = inputs[0];
    samples[1].name = NULL;
    expect_refused(f, smg_source_compile(f->source, &desc, &c), SMG_INVALID, "NULL");
    samples[1] = inputs[1];
    model.sample_count = 1;
    expect_refused(f, smg_source_compile(f->source, &desc, &c), SMG_INVALID, "'ids' is missing");
    model.sample_count = 2; /* the state is zeros */
    expect_ok(f, smg_source_compile(f->source, &desc, &c));
    smg_compilation_destroy(c);
}

/* ---- bundles ------------------------------------------------------------------------------------------- */

static void test_bundle(void **state) {
    fixture *f = *state;
    static page p;
    char room[512];
    const char *path = test_output(room, sizeof(room), "public.smgb");
    static const char *const names[] = {"h200", "careful"}, *const twice[] = {"h200", "h200"};
    smg_bundle_file *file = NULL;
    smg_bundle_class c;
    const smg_bundle_writing both = {.targets = names, .target_count = 2};
    expect_refused(f,
                   smg_source_write_bundle(f->source, &(smg_bundle_writing){.targets = twice, .target_count = 2}, path),
                   SMG_INVALID, "given twice");
    expect_refused(f, smg_source_write_bundle(f->source, &both, NULL), SMG_INVALID, "path is NULL");
    expect_refused(f, smg_source_write_bundle(f->source, &(smg_bundle_writing){.target_count = 1}, path), SMG_INVALID,
                   "at NULL");
    expect_ok(f, smg_source_write_bundle(f->source, &both, path));
    assert_true(smg_bundle_file_is_at(f->ctx, path));
    assert_false(smg_bundle_file_is_at(f->ctx, "tests/costs") || smg_bundle_file_is_at(f->ctx, "no/such"));
    expect_refused(f, smg_bundle_file_open(f->ctx, "tests/costs", &file), SMG_FORMAT, "tests/costs");
    expect_refused(f, smg_bundle_file_open(f->ctx, NULL, &file), SMG_INVALID, "path is NULL");
    expect_ok(f, smg_bundle_file_open(f->ctx, path, &file));
    const smg_bundle_facts *facts = smg_bundle_file_facts(file);
    assert_true(strcmp(facts->model, "rows") == 0 && facts->class_count == 2 && facts->weights_bytes == 6 * 16 * 4);
    assert_true(facts->signature->input_count == 3 && strcmp(facts->signature->inputs[2].state, "s") == 0);
    for (int i = 0; i < 2; i++) {
        expect_ok(f, smg_bundle_file_class(file, i, &c));
        assert_true(strcmp(c.name, names[i]) == 0 && c.bytes > 0 && c.needs[0] != '\0');
    }
    expect_refused(f, smg_bundle_file_class(file, 2, &c), SMG_INVALID, "class 2 of 2");
    expect_ok(f, smg_bundle_file_check(file));
    expect_ok(f, smg_bundle_file_write_json(file, sink_of(&p)));
    assert_true(p.text[0] == '{' && strstr(p.text, "\"careful\"") != NULL);
    smg_bundle_file_close(file);
}

/* ---- on the device ------------------------------------------------------------------------------------- */

static smg_status run(fixture *f, smg_model *m) {
    int inputs = 0, outputs = 0;
    const smg_tensor *in = smg_arrays_inputs(f->arrays, &inputs);
    smg_tensor *out = smg_arrays_outputs(f->arrays, &outputs);
    return smg_model_run(m, in, inputs, out, outputs);
}

static void expect_steps(const fixture *f, const smg_model *m) {
    smg_step_info step;
    smg_kernel_info kernel;
    double seconds = 0;
    assert_true(smg_model_step_count(m) > 0 && smg_model_kernel_count(m) > 0);
    for (int i = 0; i < smg_model_step_count(m); i++) {
        assert_true(smg_model_step(m, i, &step) && step.bytes > 0 && step.estimate > 0 && step.name[0] != '\0');
        assert_true(smg_model_kernel(m, step.kernel, &kernel) && kernel.name[0] != '\0');
        seconds += step.seconds;
    }
    assert_true(seconds > 0 && seconds < smg_model_seconds(m) * 1.5);
    assert_false(smg_model_step(m, smg_model_step_count(m), &step) || smg_model_step(m, -1, &step));
    assert_false(smg_model_kernel(m, smg_model_kernel_count(m), &kernel) || smg_model_step(m, 0, NULL));
    (void)f;
}

/* Several runs in one submission leave what one of them does. */
static void expect_runs_in_row(fixture *f, smg_model *m) {
    smg_memory_info once, memory;
    smg_check *check;
    int runs = 0;
    expect_ok(f, smg_model_get_memory(m, &once));
    expect_refused(f, smg_model_set_runs(m, -1, &runs), SMG_INVALID, "-1 runs");
    expect_ok(f, smg_model_set_runs(m, 3, &runs));
    assert_int_equal(runs, 3);
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "");
    expect_ok(f, run(f, m));
    expect_ok(f, smg_model_repeat(m));
    expect_ok(f, smg_compilation_check(smg_model_compilation(m), f->arrays, &check));
    assert_true(check->pass);
    smg_check_destroy(check);
    expect_ok(f, smg_model_get_memory(m, &memory));
    assert_int_equal(memory.barriers, once.barriers);
    expect_ok(f, smg_model_set_runs(m, 0, &runs));
    assert_in_range(runs, 1, 100);
    expect_ok(f, smg_model_set_runs(m, 1, NULL));
    expect_ok(f, run(f, m));
}

static void test_measure(void **state) {
    fixture *f = *state;
    static page p;
    smg_device *device = NULL;
    smg_device_facts facts;
    smg_device_verdict verdict;
    smg_model *m = NULL, *shared = NULL;
    smg_memory_info memory;
    smg_check *check = NULL;
    smg_compilation_facts made;
    if (device_missing(f->ctx, smg_device_open(f->ctx, NULL, &device))) skip();
    expect_ok(f, smg_device_get_facts(device, &facts));
    assert_true(strcmp(facts.name, smg_device_name(device)) == 0 && facts.bandwidth > 0 && facts.arithmetic > 0);
    expect_ok(f, smg_device_write_target(device, sink_of(&p)));
    assert_non_null(strstr(p.text, "subgroup_size = "));
    assert_false(smg_device_get_verdict(device, smg_device_verdict_count(device), &verdict));
    expect_ok(f, smg_source_open_model(f->source, &(smg_model_desc){.on = device, .no_calibrate = true}, &m));
    assert_ptr_equal(smg_model_device(m), device);
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "there was no run");
    const smg_dim dims[] = {{"n", 12}}, unknown[] = {{"m", 1}};
    expect_refused(f, smg_model_prepare(m, unknown, 1), SMG_NOT_FOUND, "'m'");
    expect_refused(f, smg_model_prepare(m, NULL, 1), SMG_INVALID, "at NULL");
    expect_ok(f, smg_model_prepare(m, dims, 1));
    fill_all(f, 12, 1);
    int calls = f->seen.calls;
    expect_ok(f, smg_model_prepare(m, dims, 1));
    assert_int_equal(f->seen.calls, calls);
    expect_ok(f, run(f, m));
    expect_ok(f, smg_model_repeat(m));
    assert_true(smg_model_seconds(m) > 0);
    expect_runs_in_row(f, m);
    expect_ok(f, smg_model_set_profile(m, true));
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "");
    expect_ok(f, run(f, m));
    expect_steps(f, m);
    expect_ok(f, smg_model_set_runs(m, 3, NULL)); /* the last one's steps */
    expect_ok(f, run(f, m));
    expect_steps(f, m);
    expect_ok(f, smg_model_set_runs(m, 1, NULL));
    expect_ok(f, run(f, m));
    expect_ok(f, smg_model_get_memory(m, &memory));
    assert_true(memory.weights + memory.derived > 0 && memory.peak > 0 && memory.states > 0);
    expect_ok(f, smg_compilation_check(smg_model_compilation(m), f->arrays, &check));
    smg_check_destroy(check);
    expect_ok(f, smg_compilation_get_facts(smg_model_compilation(m), &made));
    assert_true(made.modules > 0 && made.kernels == smg_model_step_count(m));
    expect_ok(f, smg_model_share(m, f->ctx, &shared));
    assert_null(smg_model_compilation(shared));
    smg_model_close(shared);
    smg_model_close(m);
    smg_device_close(device);
}

/* A run that failed is none to repeat; what is repeated is what ran. */
/* A model of a file that is open gives what one of its path does. */
static void test_bundle_model(void **state) {
    fixture *f = *state;
    char room[512];
    const char *path = test_output(room, sizeof(room), "public-model.smgb");
    static const char *const careful[] = {"careful"};
    smg_device *device = NULL;
    smg_bundle_file *file = NULL;
    smg_model *m = NULL;
    float want[12 * 16]; /* of any output */
    if (device_missing(f->ctx, smg_device_open(f->ctx, NULL, &device))) skip();
    const smg_bundle_desc desc = {.on = device};
    expect_ok(f,
              smg_source_write_bundle(f->source, &(smg_bundle_writing){.targets = careful, .target_count = 1}, path));
    fill_all(f, 12, 1);
    for (int open = 0; open < 2; open++) {
        int count = 0;
        if (open) expect_ok(f, smg_bundle_file_open(f->ctx, path, &file));
        if (open) assert_int_equal(smg_bundle_file_open_model(file, NULL, NULL), SMG_INVALID);
        expect_ok(f,
                  open ? smg_bundle_file_open_model(file, &desc, &m) : smg_model_open_bundle(f->ctx, path, &desc, &m));
        assert_string_equal(smg_model_class(m), "careful");
        expect_ok(f, run(f, m));
        smg_tensor *out = smg_arrays_outputs(f->arrays, &count);
        size_t bytes = (size_t)smg_tensor_elements(&out[0]) * sizeof(*want);
        assert_true(out[0].data != NULL && bytes >= 12 * sizeof(*want) && bytes <= sizeof(want));
        if (!open) memcpy(want, out[0].data, bytes);
        assert_memory_equal(out[0].data, want, bytes);
        for (int i = 0; i < count; i++) out[i].data = NULL;
        smg_model_close(m);
    }
    smg_bundle_file_close(file);
    smg_device_close(device);
}

static void test_repeat(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    if (device_missing(f->ctx, smg_source_open_model(f->source, &quick, &m))) skip();
    fill_all(f, 4, 1);
    expect_ok(f, run(f, m));
    expect_refused(f, smg_model_run(m, NULL, -1, NULL, 0), SMG_INVALID, "less than none");
    expect_ok(f, smg_model_repeat(m));
    smg_tensor *in = smg_arrays_inputs(f->arrays, NULL);
    smg_tensor wrong = in[0];
    wrong.dims[1] = 15;
    expect_refused(f, smg_model_run(m, &wrong, 1, NULL, 0), SMG_INVALID, "'ids' is missing");
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "it failed");
    smg_ticket ticket;
    expect_ok(f, smg_model_submit(m, in, 3, NULL, 0, &ticket));
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "in flight");
    expect_refused(f, smg_model_prepare(m, NULL, 0), SMG_INVALID, "in flight");
    expect_refused(f, smg_model_set_profile(m, true), SMG_INVALID, "in flight");
    expect_refused(f, smg_model_set_runs(m, 2, NULL), SMG_INVALID, "in flight");
    expect_ok(f, smg_ticket_wait(ticket, -1, NULL));
    expect_ok(f, smg_model_repeat(m));
    smg_device_tensor *x = NULL;
    expect_ok(f, smg_model_create_tensor(m, "x", 64, &x));
    smg_tensor on[3] = {in[0], in[1], in[2]};
    on[0].data = NULL;
    on[0].on = x;
    expect_ok(f, smg_tensor_upload(x, 0, in[0].data, 64));
    expect_ok(f, smg_model_run(m, on, 3, NULL, 0));
    smg_tensor_destroy(x);
    expect_refused(f, smg_model_repeat(m), SMG_INVALID, "used tensors");
    expect_ok(f, run(f, m));
    expect_ok(f, smg_model_repeat(m));
    smg_model_close(m);
}

/* ---- embeddings ---------------------------------------------------------------------------------------- */

static void copy_file(fixture *f, const char *from, const char *folder, const char *name) {
    char to[600], *data = NULL;
    size_t bytes = 0;
    snprintf(to, sizeof(to), "%s/%s", folder, name);
    expect_ok(f, smg_file_read(f->ctx, from, &data, &bytes));
    expect_ok(f, smg_command_write_file(f->ctx, to, data, bytes));
    smg_free(f->ctx, data, bytes + 1);
}

/* hf-bert-tiny's weights with a vocabulary of its 320 pieces. */
static void make_encoder(fixture *f, const char *folder) {
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n";
    static char vocab[8192];
    char path[600];
    int length = snprintf(vocab, sizeof(vocab), "%s", words);
    for (int i = 8; i < 320; i++) length += snprintf(vocab + length, sizeof(vocab) - (size_t)length, "[unused%d]\n", i);
    snprintf(path, sizeof(path), "%s/1_Pooling", folder);
    expect_ok(f, smg_path_make_dirs(f->ctx, path));
    copy_file(f, "tests/models/hf-bert-tiny/config.json", folder, "config.json");
    copy_file(f, "tests/models/hf-bert-tiny/model.safetensors", folder, "model.safetensors");
    copy_file(f, "tests/models/minilm/modules.json", folder, "modules.json");
    copy_file(f, "tests/models/minilm/1_Pooling/config.json", folder, "1_Pooling/config.json");
    copy_file(f, "tests/models/minilm/tokenizer_config.json", folder, "tokenizer_config.json");
    snprintf(path, sizeof(path), "%s/vocab.txt", folder);
    expect_ok(f, smg_command_write_file(f->ctx, path, vocab, (size_t)length));
}

static void test_tokenizer(void **state) {
    fixture *f = *state;
    char room[512];
    const char *folder = test_output(room, sizeof(room), "public-encoder");
    smg_tokenizer *t = NULL;
    int32_t ids[8];
    int count = 0;
    make_encoder(f, folder);
    expect_refused(f, smg_tokenizer_load(f->ctx, "tests/models/hf-bert-tiny", &t), SMG_NOT_FOUND, "vocab.txt");
    expect_refused(f, smg_tokenizer_load(f->ctx, NULL, &t), SMG_INVALID, "path is NULL");
    expect_ok(f, smg_tokenizer_load(f->ctx, folder, &t));
    assert_true(smg_tokenizer_vocab_size(t) == 320 && smg_tokenizer_pad_id(t) == 0 && smg_tokenizer_max_length(t) > 8);
    expect_ok(f, smg_tokenizer_tokens(t, "Hello worlds", 12, ids, 8, &count));
    const int32_t want[] = {2, 5, 6, 7, 3};
    assert_int_equal(count, 5);
    assert_memory_equal(ids, want, sizeof(want));
    expect_refused(f, smg_tokenizer_tokens(t, "a\xff", 2, ids, 8, &count), SMG_FORMAT, "");
    expect_refused(f, smg_tokenizer_tokens(t, "a", 1, ids, 1, &count), SMG_INVALID, "");
    expect_refused(f, smg_tokenizer_tokens(t, NULL, 1, ids, 8, &count), SMG_INVALID, "is NULL");
    expect_ok(f, smg_tokenizer_tokens(t, "hello hello hello", 17, ids, 3, &count));
    assert_true(count == 3 && ids[2] == 3); /* cut */
    smg_tokenizer_unload(t);
}

static void test_embedder(void **state) {
    fixture *f = *state;
    char room[512];
    const char *folder = test_output(room, sizeof(room), "public-encoder");
    const char *const texts[] = {"hello", "world hello world", "hello"}, *const bad[] = {"hello", "\xff"};
    smg_embedder *e = NULL;
    float rows[3 * 64];
    make_encoder(f, folder);
    if (device_missing(f->ctx, smg_embedder_open(f->ctx, folder, &quick, &e))) skip();
    assert_int_equal(smg_embedder_width(e), 64);
    expect_ok(f, smg_embedder_embed(e, texts, NULL, 3, rows));
    double same = 0, other = 0, length = 0;
    for (int i = 0; i < 64; i++) {
        same += fabs((double)rows[i] - (double)rows[128 + i]);
        other += fabs((double)rows[i] - (double)rows[64 + i]);
        length += (double)rows[i] * (double)rows[i];
    }
    assert_true(same < 1e-5 && other > 1e-3 && fabs(length - 1) < 1e-5);
    expect_refused(f, smg_embedder_embed(e, bad, NULL, 2, rows), SMG_FORMAT, "text 5");
    expect_refused(f, smg_embedder_embed(e, texts, NULL, -1, rows), SMG_INVALID, "-1 texts");
    expect_refused(f, smg_embedder_embed(e, NULL, NULL, 1, rows), SMG_INVALID, "at NULL");
    expect_ok(f, smg_embedder_embed(e, texts, (size_t[]){5}, 1, rows));
    expect_ok(f, smg_embedder_embed(e, NULL, NULL, 0, NULL));
    smg_embedder_close(e);
    expect_refused(f, smg_embedder_open(f->ctx, "tests/models/hf-bert-tiny", &quick, &e), SMG_UNSUPPORTED, "");
    expect_refused(f, smg_embedder_open(f->ctx, NULL, &quick, &e), SMG_INVALID, "path is NULL");
    assert_null(e);
}

/* ---- nothing where something is needed ----------------------------------------------------------------- */

static void test_nulls(void **state) {
    fixture *f = *state;
    smg_source *source = NULL;
    smg_arrays *arrays = NULL;
    smg_compilation *c = NULL;
    smg_bundle_file *file = NULL;
    smg_embedder *e = NULL;
    smg_tokenizer *t = NULL;
    smg_check *check = NULL;
    smg_model *m = NULL;
    int count = 7;
    const smg_status invalid[] = {
        smg_source_load(NULL, "x", NULL, &source),
        smg_source_load(f->ctx, "x", NULL, NULL),
        smg_source_of_graph(NULL, f->graph, &source),
        smg_source_open_model(NULL, NULL, &m),
        smg_source_open_model(f->source, NULL, NULL),
        smg_source_tune(NULL, NULL, NULL, NULL),
        smg_source_write_bundle(NULL, NULL, "x"),
        smg_source_compile(NULL, NULL, &c),
        smg_source_compile(f->source, NULL, NULL),
        smg_model_desc_check(NULL, NULL),
        smg_compilation_get_facts(NULL, NULL),
        smg_compilation_explain(NULL, NULL, (smg_sink){0}),
        smg_compilation_interpret(NULL, f->arrays),
        smg_compilation_check(NULL, f->arrays, &check),
        smg_compilation_find_overflow(NULL, f->arrays, NULL),
        smg_arrays_create(f->ctx, NULL, &arrays),
        smg_arrays_create(NULL, f->signature, &arrays),
        smg_arrays_create(f->ctx, f->signature, NULL),
        smg_arrays_settle(NULL, NULL),
        smg_arrays_find(NULL, "x", NULL),
        smg_arrays_find(f->arrays, NULL, NULL),
        smg_arrays_load(NULL, "x", "y"),
        smg_arrays_give(NULL, NULL),
        smg_arrays_fill(NULL, "x", SMG_FILL_ZEROS, 0),
        smg_arrays_fill_lengths(NULL, "x", NULL, 0),
        smg_tensor_save(NULL, "x", NULL),
        smg_bundle_file_open(NULL, "x", &file),
        smg_bundle_file_open(f->ctx, "x", NULL),
        smg_bundle_file_class(NULL, 0, NULL),
        smg_bundle_file_check(NULL),
        smg_bundle_file_write_json(NULL, (smg_sink){0}),
        smg_bundle_file_open_model(NULL, NULL, &m),
        smg_embedder_open(NULL, "x", NULL, &e),
        smg_embedder_open(f->ctx, "x", NULL, NULL),
        smg_embedder_embed(NULL, NULL, NULL, 0, NULL),
        smg_tokenizer_load(NULL, "x", &t),
        smg_tokenizer_load(f->ctx, "x", NULL),
        smg_tokenizer_tokens(NULL, "x", 1, NULL, 0, NULL),
        smg_command_write_file(NULL, "x", "y", 1),
    };
    for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
        if (invalid[i] != SMG_INVALID) fail_msg("call %zu: status %d", i, (int)invalid[i]);
    smg_step_info step;
    smg_kernel_info kernel;
    smg_device_verdict verdict;
    assert_false(smg_model_step(NULL, 0, &step) || smg_model_kernel(NULL, 0, &kernel));
    assert_false(smg_device_get_verdict(NULL, 0, &verdict));
    assert_null(smg_model_device(NULL));
    assert_null(smg_model_compilation(NULL));
    assert_null(smg_source_get_facts(NULL));
    assert_null(smg_bundle_file_facts(NULL));
    assert_true(smg_arrays_inputs(NULL, &count) == NULL && count == 0);
    assert_true(smg_embedder_width(NULL) == 0 && smg_tensor_elements(NULL) == 0);
    smg_source_unload(NULL);
    smg_arrays_destroy(NULL);
    smg_compilation_destroy(NULL);
    smg_check_destroy(NULL);
    smg_bundle_file_close(NULL);
    smg_embedder_close(NULL);
    smg_tokenizer_unload(NULL);
}

/* ---- no memory ------------------------------------------------------------------------------------------ */

static smg_status use_all(fixture *f, const char *bundle) {
    static page p;
    const smg_dim dims[] = {{"n", 2}};
    smg_source *source = NULL;
    smg_arrays *arrays = NULL;
    smg_compilation *c = NULL;
    smg_bundle_file *file = NULL;
    smg_check *check = NULL;
    smg_status status = smg_source_of_graph(f->ctx, f->graph, &source);
    if (status == SMG_OK) status = smg_arrays_create(f->ctx, smg_source_get_facts(source)->signature, &arrays);
    if (status == SMG_OK) status = smg_arrays_settle(arrays, &(smg_sizes_desc){.dims = dims, .dim_count = 1});
    const char *const names[] = {"x", "ids", "h"};
    for (int i = 0; i < 3 && status == SMG_OK; i++) status = smg_arrays_fill(arrays, names[i], SMG_FILL_OWN, 1);
    if (status == SMG_OK) status = smg_source_compile(source, &(smg_compile_desc){.target = "careful"}, &c);
    if (status == SMG_OK) status = smg_compilation_explain(c, NULL, sink_of(&p));
    if (status == SMG_OK) status = smg_compilation_interpret(c, arrays);
    if (status == SMG_OK) status = smg_compilation_check(c, arrays, &check);
    if (status == SMG_OK) status = smg_bundle_file_open(f->ctx, bundle, &file);
    if (status == SMG_OK) status = smg_bundle_file_check(file);
    if (status == SMG_OK) status = smg_bundle_file_write_json(file, sink_of(&p));
    smg_check_destroy(check);
    smg_bundle_file_close(file);
    smg_compilation_destroy(c);
    smg_arrays_destroy(arrays);
    smg_source_unload(source);
    return status;
}

static void test_no_memory(void **state) {
    fixture *f = *state;
    char room[512];
    const char *path = test_output(room, sizeof(room), "public.smgb");
    static const char *const careful[] = {"careful"};
    expect_ok(f,
              smg_source_write_bundle(f->source, &(smg_bundle_writing){.targets = careful, .target_count = 1}, path));
    int before = f->seen.calls;
    expect_ok(f, use_all(f, path));
    int calls = f->seen.calls - before;
    size_t live = f->seen.live_bytes;
    assert_true(calls > 20);
    for (int i = 1; i <= calls; i += 1 + i / 40) { /* the first ones all, then some */
        f->seen.fail_at = f->seen.calls + i;
        smg_status status = use_all(f, path);
        f->seen.fail_at = 0;
        if (status != SMG_OK) expect_refused(f, status, SMG_MEMORY, "memory"); /* some do without a cache */
        assert_int_equal(f->seen.live_bytes, live);
    }
    expect_ok(f, use_all(f, path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sentence_of_file, setup, teardown),
        cmocka_unit_test(test_operations),
        cmocka_unit_test_setup_teardown(test_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_explain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interpret, setup, teardown),
        cmocka_unit_test_setup_teardown(test_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bundle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_measure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bundle_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_repeat, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokenizer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_embedder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nulls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
    };
    return device_result(cmocka_run_group_tests_name("public", tests, NULL, NULL));
}
