/* States: what a run leaves for the next one. N steps of a recurrent layer and of a cache of keys are the bits of N runs
 * between which the host carries the states, of a model, of a bundle's file and of shared ones, each by itself; with
 * ranges, tickets, budgets and an application's command buffers. Runs that fail or are taken back leave states as they
 * were; reset, given, lost and of the wrong sizes they are what the header says. All of it where the host sees the
 * device's memory, and where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/output.h"

#if SMG_VULKAN
#include "compile/compile.h"
#include "smg/vulkan.h"
#include "vulkan/vulkan_private.h"

/* Rows of a table go through a recurrent layer. */
static const char cell_text[] =
    "graph cell\ndim rows max 16\nids = input i64[rows]\nh = input f32[rows, 40]\nc = input f32[rows, 40]\n"
    "table = constant f32[6, 24] random seed=4\nx = gather(table, ids) : f32[rows, 24]\n"
    "wx = constant f32[160, 24] random seed=1 scale=0.3\nwh = constant f32[160, 40] random seed=2 scale=0.3\n"
    "gx = contract(x, wx) \"ri,gi->rg\"\ngh = contract(h, wh) \"ri,gi->rg\"\ngates = add(gx, gh)\n"
    "gi = slice(gates) axis=1 begin=0 : f32[rows, 40]\ngf = slice(gates) axis=1 begin=40 : f32[rows, 40]\n"
    "gg = slice(gates) axis=1 begin=80 : f32[rows, 40]\ngo = slice(gates) axis=1 begin=120 : f32[rows, 40]\n"
    "i = sigmoid(gi)\nf = sigmoid(gf)\nu = tanh(gg)\no = sigmoid(go)\nkept = mul(f, c)\nnew = mul(i, u)\n"
    "c_next = add(kept, new)\nct = tanh(c_next)\nh_next = mul(o, ct)\n"
    "output y = h_next\noutput h_next = h_next\noutput c_next = c_next\nstate h = h_next\nstate c = c_next\n";

/* A row is put into a cache, and looks at what is there so far. */
static const char cache_text[] =
    "graph cache\nx = input f32[1, 8]\nat = input i32[]\nkeys = input f32[16, 8]\n"
    "place = iota axis=0 : i32[16, 1]\nhere = eq(place, at)\nkeys_next = select(here, x, keys)\n"
    "s = contract(x, keys_next) \"ni,ti->nt\"\ncolumn = iota axis=1 : i32[1, 16]\nlater = gt(column, at)\n"
    "low = fill -1e30 : f32[]\nm = select(later, low, s)\ntop = reduce_max(m) axis=1 keep\nd = sub(m, top)\n"
    "e = exp(d)\nz = sum(e) axis=1 keep\np = div(e, z)\ny = contract(p, keys_next) \"nt,ti->ni\"\n"
    "output y = y\noutput keys_next = keys_next\nstate keys = keys_next\n";

enum { MOST = 16, WIDTH = 40, ALL = MOST * WIDTH, STEPS = 7 };

typedef struct fixture {
    smg_context *ctx;
    smg_device *device;
    smg_graph *cell, *cache;
    smg_model *model, *carrier; /* of the cell */
    bool missing;
    int allocations;
    char path[512]; /* of the cell's bundle */
} fixture;

static unsigned flags; /* of the device */

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void expect_refused(const fixture *f, smg_status status, smg_status want, const char *sentence) {
    assert_int_equal(status, want);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
}

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
    fixture *f = user;
    (void)old_size;
    f->allocations += new_size > 0;
    if (new_size > 0) return realloc(pointer, new_size);
    free(pointer);
    return NULL;
}

static smg_status open_graph(const fixture *f, smg_graph *graph, const char *precision, smg_model **out_model) {
    const smg_model_desc desc = {.no_calibrate = true, .on = f->device, .precision = precision};
    return smg_model_open_graph(f->ctx, graph, &desc, out_model);
}

static smg_status compile_cell(fixture *f) {
    char room[512];
    smg_source source = {.ctx = f->ctx, .graph = f->cell};
    const smg_ahead_target here = {.name = "here", .match = "", .target = *smg_vk_target(f->device)};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    snprintf(f->path, sizeof(f->path), "%s", test_output(room, sizeof(room), "state.smgb"));
    return smg_compile_ahead(f->ctx, &source, &here, 1, &options, f->path);
}

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    const smg_context_desc desc = {.reallocate = counted, .user = &f};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    smg_status status = smg_vk_open(f.ctx, NULL, flags, &f.device);
    f.missing = device_missing(f.ctx, status);
    *state = &f;
    if (f.missing) return 0;
    expect_ok(&f, status);
    expect_ok(&f, smg_graph_parse(f.ctx, cell_text, strlen(cell_text), "cell", &f.cell));
    expect_ok(&f, smg_graph_parse(f.ctx, cache_text, strlen(cache_text), "cache", &f.cache));
    expect_ok(&f, open_graph(&f, f.cell, NULL, &f.model));
    expect_ok(&f, open_graph(&f, f.cell, NULL, &f.carrier));
    expect_ok(&f, compile_cell(&f));
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->model);
    smg_model_close(f->carrier);
    smg_graph_destroy(f->cell);
    smg_graph_destroy(f->cache);
    smg_device_close(f->device);
    smg_context_destroy(f->ctx);
    return 0;
}

/* ---- a sequence, whose states the host carries --------------------------------------------------------- */

typedef struct sequence {
    int64_t rows;
    int seed, step;
    int64_t ids[MOST];
    float y[ALL], h[ALL], c[ALL];
} sequence;

static sequence begin(int64_t rows, int seed) {
    return (sequence){.rows = rows, .seed = seed};
}

/* The next step by the model that is given everything. */
static void carry(const fixture *f, sequence *s) {
    static float h[ALL], c[ALL];
    memcpy(h, s->h, sizeof(h));
    memcpy(c, s->c, sizeof(c));
    for (int i = 0; i < s->rows; i++) s->ids[i] = (s->seed + 5 * s->step + i) % 6;
    s->step++;
    const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {s->rows}, .data = s->ids},
                             {.name = "h", .rank = 2, .dims = {s->rows, WIDTH}, .data = h},
                             {.name = "c", .rank = 2, .dims = {s->rows, WIDTH}, .data = c}};
    smg_tensor out[] = {{.name = "y", .data = s->y, .bytes = sizeof(s->y)},
                        {.name = "h_next", .data = s->h, .bytes = sizeof(s->h)},
                        {.name = "c_next", .data = s->c, .bytes = sizeof(s->c)}};
    expect_ok(f, smg_model_run(f->carrier, in, 3, out, 3));
}

static float got[ALL];

static smg_status step(smg_model *m, const sequence *s) {
    const smg_tensor in = {.name = "ids", .rank = 1, .dims = {s->rows}, .data = (void *)(uintptr_t)s->ids};
    smg_tensor out = {.name = "y", .data = got, .bytes = sizeof(got)};
    memset(got, 0, sizeof(got));
    return smg_model_run(m, &in, 1, &out, 1);
}

static void expect_step(const fixture *f, smg_model *m, sequence *s) {
    carry(f, s);
    expect_ok(f, step(m, s));
    assert_memory_equal(got, s->y, sizeof(float) * WIDTH * (size_t)s->rows);
}

static void expect_steps(const fixture *f, smg_model *m, sequence *s, int count) {
    for (int i = 0; i < count; i++) expect_step(f, m, s);
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

static void a_model(void **state) {
    fixture *f = *state;
    const char *input = NULL, *output = NULL;
    if (f->missing) skip();
    sequence s = begin(5, 1);
    expect_steps(f, f->model, &s, STEPS);
    int before = f->allocations;
    for (int i = 0; i < STEPS; i++) expect_ok(f, step(f->model, &s));
    assert_int_equal(f->allocations, before);
    /* What is measured is the same run again. */
    s = begin(5, 3);
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    expect_steps(f, f->model, &s, 2);
    for (int i = 0; i < 3; i++) expect_ok(f, smg_program_run(smg_model_program(f->model)));
    expect_steps(f, f->model, &s, 2);
    /* Both are outputs, too, and the state goes on. */
    smg_tensor out[] = {{.name = "c_next"}, {.name = "h_next"}};
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    s = begin(5, 2);
    carry(f, &s);
    const smg_tensor in = {.name = "ids", .rank = 1, .dims = {5}, .data = s.ids};
    expect_ok(f, smg_model_run(f->model, &in, 1, out, 2));
    assert_memory_equal(out[0].data, s.c, sizeof(float) * WIDTH * 5);
    assert_memory_equal(out[1].data, s.h, sizeof(float) * WIDTH * 5);
    expect_steps(f, f->model, &s, 2);
    assert_int_equal(smg_model_state_count(f->model), 2);
    assert_true(smg_model_state(f->model, 1, &input, &output) && strcmp(input, "c") == 0);
    assert_string_equal(output, "c_next");
    assert_false(smg_model_state(f->model, 2, &input, &output));
    assert_int_equal(smg_vk_validation_errors(f->device), 0);
}

static void a_bundle_and_what_is_shared(void **state) {
    fixture *f = *state;
    smg_model *m = NULL, *other = NULL;
    if (f->missing) skip();
    const smg_bundle_desc desc = {.on = f->device};
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    assert_int_equal(smg_model_state_count(m), 2);
    sequence a = begin(3, 1), b = begin(9, 4);
    expect_steps(f, m, &a, 3);
    expect_ok(f, smg_model_share(m, f->ctx, &other));
    for (int i = 0; i < STEPS; i++) { /* each has its own */
        expect_step(f, other, &b);
        expect_step(f, m, &a);
    }
    expect_ok(f, smg_model_reset_state(other, NULL));
    b = begin(2, 3);
    expect_step(f, other, &b);
    expect_step(f, m, &a);
    smg_model_close(other);
    expect_step(f, m, &a);
    smg_model_close(m);
}

static void a_cache_of_keys(void **state) {
    fixture *f = *state;
    smg_model *m = NULL, *carrier = NULL;
    float x[8], keys[16 * 8] = {0}, want[8], y[8];
    if (f->missing) skip();
    expect_ok(f, open_graph(f, f->cache, NULL, &m));
    expect_ok(f, open_graph(f, f->cache, NULL, &carrier));
    for (int32_t at = 0; at < 16; at++) {
        for (int i = 0; i < 8; i++) x[i] = (float)((at * 8 + i) * 37 % 101) / 50 - 1;
        const smg_tensor in[] = {{.name = "x", .rank = 2, .dims = {1, 8}, .data = x},
                                 {.name = "at", .data = &at},
                                 {.name = "keys", .rank = 2, .dims = {16, 8}, .data = keys}};
        smg_tensor out[] = {{.name = "y", .data = want, .bytes = sizeof(want)},
                            {.name = "keys_next", .data = keys, .bytes = sizeof(keys)}};
        expect_ok(f, smg_model_run(carrier, in, 3, out, 2));
        assert_memory_equal(keys + 8 * at, x, sizeof(x));
        out[0].data = y;
        expect_ok(f, smg_model_run(m, in, 2, out, 1));
        assert_memory_equal(y, want, sizeof(want));
    }
    smg_model_close(m);
    smg_model_close(carrier);
}

static void reset_and_given(void **state) {
    fixture *f = *state;
    smg_device_tensor *h = NULL, *next = NULL;
    if (f->missing) skip();
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    sequence s = begin(4, 2), t;
    expect_steps(f, f->model, &s, 3);
    /* One of two. */
    memset(s.c, 0, sizeof(s.c));
    expect_ok(f, smg_model_reset_state(f->model, "c"));
    expect_steps(f, f->model, &s, 2);
    /* Given as an array and as a tensor, with one run; sizes are those of what is given. */
    expect_ok(f, smg_model_create_tensor(f->model, "h", ALL, &h));
    for (int way = 0; way < 2; way++) {
        s = begin(way ? 6 : 2, 5);
        for (int i = 0; i < ALL; i++) s.h[i] = (float)(i % 7) / 9, s.c[i] = (float)(i % 5) / 7;
        t = s;
        expect_ok(f, smg_tensor_upload(h, 0, s.h, ALL));
        carry(f, &s);
        const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {s.rows}, .data = s.ids},
                                 {.name = "h", .rank = 2, .dims = {s.rows, WIDTH}, .data = t.h, .on = way ? h : NULL},
                                 {.name = "c", .rank = 2, .dims = {s.rows, WIDTH}, .data = t.c}};
        smg_tensor out = {.name = "y", .data = got, .bytes = sizeof(got)};
        expect_ok(f, smg_model_run(f->model, in, 3, &out, 1));
        assert_memory_equal(got, s.y, sizeof(float) * WIDTH * (size_t)s.rows);
        expect_steps(f, f->model, &s, 3);
    }
    expect_ok(f, smg_tensor_download(h, 0, got, ALL));
    assert_memory_equal(got, t.h, sizeof(got));
    /* What is refused, and changes nothing. */
    expect_refused(f, smg_model_reset_state(f->model, "ids"), SMG_NOT_FOUND, "no state 'ids'; it has: h, c");
    const smg_tensor kept = {.name = "h", .rank = 2, .dims = {6, WIDTH}, .data = t.h};
    expect_refused(f, smg_model_set_input(f->model, &kept), SMG_INVALID, "'h' is a state");
    expect_ok(f, smg_model_create_tensor(f->model, "h_next", ALL, &next));
    const smg_tensor in = {.name = "ids", .rank = 1, .dims = {6}, .data = s.ids};
    smg_tensor out = {.name = "h_next", .on = next};
    expect_refused(f, smg_model_run(f->model, &in, 1, &out, 1), SMG_INVALID, "output 'h_next' is state 'h'");
    expect_steps(f, f->model, &s, 2);
    smg_tensor_destroy(h);
    smg_tensor_destroy(next);
}

static void other_sizes(void **state) {
    fixture *f = *state;
    if (f->missing) skip();
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    sequence s = begin(3, 0), other = begin(8, 0);
    expect_steps(f, f->model, &s, 2);
    expect_refused(f, step(f->model, &other), SMG_INVALID,
                   "state 'h' is [3, 40] from the run before, and [8, 40] at these sizes");
    expect_steps(f, f->model, &s, 2);
    expect_ok(f, smg_model_reset_state(f->model, "h"));
    expect_refused(f, step(f->model, &other), SMG_INVALID, "state 'c' is [3, 40]");
    expect_ok(f, smg_model_reset_state(f->model, "c"));
    expect_steps(f, f->model, &other, 2);
    /* Of a range one recording each way serves all. */
    expect_ok(f, smg_model_set_range(f->model, "rows", 1, MOST));
    expect_steps(f, f->model, &other, 2);
    for (int64_t rows = 1; rows <= MOST; rows += 5) {
        expect_ok(f, smg_model_reset_state(f->model, NULL));
        s = begin(rows, (int)rows);
        expect_steps(f, f->model, &s, 3);
    }
    expect_ok(f, smg_model_set_range(f->model, "rows", 0, 0));
    expect_steps(f, f->model, &s, 2);
}

static void failures_leave_it_as_it_was(void **state) {
    fixture *f = *state;
    bool taken = false;
    smg_ticket ticket;
    if (f->missing) skip();
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    sequence s = begin(5, 3);
    expect_steps(f, f->model, &s, 3);
    sequence wrong = s;
    wrong.ids[2] = 6;
    expect_refused(f, step(f->model, &wrong), SMG_INVALID, "index 6 outside its table");
    expect_steps(f, f->model, &s, 2);
    /* Part by part, and taken back behind the first. */
    expect_ok(f, smg_model_set_budget(f->model, 1e-9, 1e-9));
    expect_steps(f, f->model, &s, 3);
    const smg_tensor in = {.name = "ids", .rank = 1, .dims = {5}, .data = s.ids};
    smg_tensor out = {.name = "y", .data = got, .bytes = sizeof(got)};
    expect_ok(f, smg_model_submit(f->model, &in, 1, &out, 1, &ticket));
    expect_refused(f, smg_model_reset_state(f->model, NULL), SMG_INVALID, "a run is in flight");
    expect_ok(f, smg_ticket_cancel(ticket, &taken));
    assert_true(taken);
    assert_int_equal(smg_ticket_wait(ticket, -1, NULL), SMG_CANCELLED);
    expect_steps(f, f->model, &s, 2);
    expect_ok(f, smg_model_set_budget(f->model, 0, 0));
    /* A ticket's run is a step as any. */
    carry(f, &s);
    expect_ok(f, smg_model_submit(f->model, &in, 1, &out, 1, &ticket));
    expect_ok(f, smg_ticket_wait(ticket, -1, NULL));
    assert_memory_equal(got, s.y, sizeof(float) * WIDTH * 5);
    expect_steps(f, f->model, &s, 1);
}

static void lost_with_the_device(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    if (f->missing) skip();
    const smg_bundle_desc desc = {.recoverable = true};
    expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &m));
    sequence s = begin(4, 1);
    expect_ok(f, smg_model_recover(m, NULL)); /* there was nothing to lose */
    expect_steps(f, m, &s, 3);
    expect_ok(f, smg_model_recover(m, NULL));
    expect_refused(f, step(m, &s), SMG_INVALID, "state 'h' was lost with the device");
    expect_ok(f, smg_model_recover(m, NULL));
    expect_refused(f, step(m, &s), SMG_INVALID, "state 'h' was lost with the device");
    expect_ok(f, smg_model_reset_state(m, "h"));
    expect_refused(f, step(m, &s), SMG_INVALID, "state 'c' was lost with the device");
    expect_ok(f, smg_model_reset_state(m, NULL));
    s = begin(4, 1);
    expect_steps(f, m, &s, 2);
    smg_model_close(m);
}

/* As often as the commands run, so many steps. */
static void in_an_applications_commands(void **state) {
    fixture *f = *state;
    smg_vk_device *dev = f->device;
    VkCommandBuffer commands = NULL;
    smg_ticket ticket;
    if (f->missing) skip();
    expect_ok(f, smg_model_reset_state(f->model, NULL));
    sequence s = begin(5, 0);
    for (int times = 0; times < 4; times++) {
        const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                      .commandPool = dev->pool,
                                                      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                      .commandBufferCount = 1};
        const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        const VkSubmitInfo submit = {
            .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
        const smg_tensor in = {.name = "ids", .rank = 1, .dims = {5}, .data = s.ids};
        smg_tensor out = {.name = "y", .data = got, .bytes = sizeof(got)};
        for (int i = 0; i < 5; i++) s.ids[i] = (i + times) % 6;
        sequence same = s;
        assert_int_equal(dev->fn.AllocateCommandBuffers(dev->handle, &allocate, &commands), VK_SUCCESS);
        assert_int_equal(dev->fn.BeginCommandBuffer(commands, &info), VK_SUCCESS);
        expect_ok(f, smg_vk_model_record(f->model, &in, 1, &out, 1, commands, &ticket));
        assert_int_equal(dev->fn.EndCommandBuffer(commands), VK_SUCCESS);
        for (int i = 0; i < times; i++) {
            assert_int_equal(dev->fn.QueueSubmit(dev->queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
            assert_int_equal(dev->fn.QueueWaitIdle(dev->queue), VK_SUCCESS);
            s.seed = times;
            s.step = 0; /* the same ids each time */
            carry(f, &s);
            assert_memory_equal(s.ids, same.ids, sizeof(s.ids));
        }
        expect_ok(f, smg_vk_ticket_over(ticket, times > 0));
        if (times > 0) assert_memory_equal(got, s.y, sizeof(float) * WIDTH * 5);
        dev->fn.FreeCommandBuffers(dev->handle, dev->pool, 1, &commands);
        expect_steps(f, f->model, &s, 1);
    }
    assert_int_equal(smg_vk_validation_errors(f->device), 0);
}

/* Both ends of a state lie alike, whatever the precision makes of them. */
static void in_16_bits(void **state) {
    fixture *f = *state;
    smg_model *m = NULL;
    if (f->missing || !smg_vk_target(f->device)->storage16) skip();
    expect_ok(f, open_graph(f, f->cell, "f16", &m));
    sequence s = begin(5, 1);
    for (int i = 0; i < STEPS; i++) {
        carry(f, &s);
        expect_ok(f, step(m, &s));
        for (int k = 0; k < 5 * WIDTH; k++) assert_true(got[k] - s.y[k] < 0.02F && s.y[k] - got[k] < 0.02F);
    }
    smg_model_close(m);
}

static void graphs_that_are_wrong(void **state) {
    fixture *f = *state;
    static const struct {
        const char *line, *sentence;
    } wrong[] = {
        {"state g = y", "there is no input g"},
        {"state h = g", "there is no output g"},
        {"state h = z", "input h is f32[4], and output z is f32[8]"},
        {"state h = y\nstate h = w", "in the next run input h is output y already"},
        {"state h = y\nstate x = y", "output y is input h of the next run already"},
        {"state h", "expects '='"},
    };
    static const char start[] = "graph g\nx = input f32[4]\nh = input f32[4]\nk = input f32[8]\ny = add(x, h)\n"
                                "z = neg(k)\nw = neg(h)\noutput y = y\noutput z = z\noutput w = w\n";
    char text[512];
    smg_graph *graph = NULL, *again = NULL;
    smg_text first, second;
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        int length = snprintf(text, sizeof(text), "%s%s\n", start, wrong[i].line);
        smg_status status = smg_graph_parse(f->ctx, text, (size_t)length, "text", &graph);
        assert_true(status == SMG_INVALID || status == SMG_FORMAT);
        expect_refused(f, status, status, wrong[i].sentence);
    }
    int length = snprintf(text, sizeof(text), "%sstate h = y\n", start);
    expect_ok(f, smg_graph_parse(f->ctx, text, (size_t)length, "text", &graph));
    smg_text_init(&first, f->ctx);
    smg_text_init(&second, f->ctx);
    smg_graph_print(graph, &first);
    assert_non_null(strstr(smg_text_cstr(&first), "state h = y\n"));
    expect_ok(f, smg_graph_parse(f->ctx, first.data, first.length, "printed", &again));
    smg_graph_print(again, &second);
    assert_string_equal(smg_text_cstr(&first), smg_text_cstr(&second));
    assert_true(smg_graph_hash(graph) == smg_graph_hash(again));
    smg_text_free(&first);
    smg_text_free(&second);
    smg_graph_destroy(graph);
    smg_graph_destroy(again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model),
        cmocka_unit_test(a_bundle_and_what_is_shared),
        cmocka_unit_test(a_cache_of_keys),
        cmocka_unit_test(reset_and_given),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(failures_leave_it_as_it_was),
        cmocka_unit_test(lost_with_the_device),
        cmocka_unit_test(in_an_applications_commands),
        cmocka_unit_test(in_16_bits),
        cmocka_unit_test(graphs_that_are_wrong),
    };
    int failed = cmocka_run_group_tests_name("state", tests, setup, teardown);
    flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("state, memory that the host does not see", tests, setup, teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
