/* What an application may call of models on its device, in a random order: runs on arrays and tensors that wait and do
 * not, budgets, ranges, states, inputs set ahead, runs taken back and in command buffers, tensors and models that go
 * while they are used, shares, recovery. Every result is that of the model by itself, each state is the sum of the runs
 * that were, and the validation layer says nothing. SMG_SEED is another order, SMG_STEPS more of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/output.h"

#if SMG_VULKAN
#include "support/app.h"
#include "vulkan/vulkan_private.h"

static const char text[] =
    "graph small\ndim n max 64\nids = input i64[n]\nx = input f32[n, 96]\nmask = input bool[n, 96]\n"
    "table = constant f32[6, 96] random seed=1\nw = constant f32[96, 96] random seed=2 scale=0.1\n"
    "zero = fill 0 : f32[]\nrows = gather(table, ids) : f32[n, 96]\nsum = add(rows, x)\n"
    "kept = select(mask, sum, zero)\np = contract(kept, w) \"ni,io->no\"\ny = relu(p)\noutput y = y\n"
    "h = input f32[n, 96]\nmore = add(h, y)\noutput h_next = more\nstate h = h_next\n";

enum { ROWS = 24, WIDTH = 96, ALL = ROWS * WIDTH, MODELS = 4, TENSORS = 6, STEPS = 1500 };

typedef struct tensor {
    smg_device_tensor *on; /* NULL: there is none */
    int rows;              /* of y that it has; 0: anything */
    int users;             /* runs in flight */
} tensor;

typedef struct slot {
    smg_model *model; /* NULL: there is none */
    bool owns;        /* it was not shared */
    bool up, recorded, cancelled, on_host, wants_state;
    int rows, executed;
    tensor *to; /* where y goes; NULL: to the host */
    smg_ticket ticket;
    VkCommandBuffer commands;
    int low, high; /* the range; 0: none */
    int had;       /* rows of the state; 0: it has not begun */
    float y[ALL], h[ALL], state[ALL];
} slot;

typedef struct fixture {
    smg_context *ctx;
    app app;
    smg_vulkan_wishes *wishes;
    VkCommandPool pool;
    smg_device *device;
    smg_model *base;
    char path[512];
    bool missing;
    uint64_t seed;
    int64_t ids[ROWS];
    float x[ALL], want[ROWS + 1][ALL]; /* by rows */
    uint8_t mask[ALL];
    slot slots[MODELS];
    tensor tensors[TENSORS];
} fixture;

static int draw(fixture *f, int below) {
    f->seed = f->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((f->seed >> 33) % (uint64_t)below);
}

static void expect_ok(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* ---- one run ------------------------------------------------------------------------------------------ */

typedef struct arrays {
    smg_tensor in[3], out[2];
    int outputs;
} arrays;

static int rows_of(fixture *f, const slot *s) {
    if (s->had > 0) return s->had;
    return s->low > 0 ? s->low + draw(f, s->high - s->low + 1) : 1 + draw(f, ROWS);
}

static arrays begin(fixture *f, slot *s) {
    const int rows = rows_of(f, s), where = draw(f, 2 * TENSORS);
    arrays a = {.in = {{.name = "ids", .rank = 1, .dims = {rows}, .data = f->ids},
                       {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = f->x},
                       {.name = "mask", .rank = 2, .dims = {rows, WIDTH}, .data = f->mask}},
                .out = {{.name = "y", .data = s->y, .bytes = sizeof(s->y)},
                        {.name = "h_next", .data = s->h, .bytes = sizeof(s->h)}}};
    s->rows = rows;
    s->recorded = s->cancelled = false;
    s->executed = 0;
    s->wants_state = draw(f, 2) != 0;
    a.outputs = s->wants_state ? 2 : 1;
    memset(s->y, 0, sizeof(s->y));
    s->to = where < TENSORS && f->tensors[where].on != NULL && f->tensors[where].users == 0 ? &f->tensors[where] : NULL;
    s->on_host = s->to == NULL;
    if (!s->on_host) {
        a.out[0] = (smg_tensor){.name = "y", .on = s->to->on};
        s->to->users++;
        s->to->rows = 0;
    }
    return a;
}

static void leave_tensor(slot *s, int rows) {
    if (s->to != NULL) {
        s->to->users--;
        s->to->rows = rows;
    }
    s->to = NULL;
}

static void add_to_state(const fixture *f, slot *s) {
    for (int i = 0; i < s->rows * WIDTH; i++) s->state[i] = (s->had > 0 ? s->state[i] : 0) + f->want[s->rows][i];
    s->had = s->rows;
}

/* The run is over. */
static void land(const fixture *f, slot *s, smg_status status) {
    const size_t bytes = sizeof(float) * WIDTH * (size_t)s->rows;
    const int times = s->recorded ? s->executed : 1;
    s->up = false;
    if (status == SMG_CANCELLED) assert_true(s->cancelled);
    if (status != SMG_CANCELLED) expect_ok(f, status);
    if (status == SMG_CANCELLED || times == 0) {
        leave_tensor(s, 0);
        return;
    }
    if (s->on_host) assert_memory_equal(s->y, f->want[s->rows], bytes);
    leave_tensor(s, s->rows);
    for (int i = 0; i < times; i++) add_to_state(f, s);
    if (s->wants_state) assert_memory_equal(s->h, s->state, bytes);
}

/* ---- what may be done -------------------------------------------------------------------------------- */

static void run(fixture *f, slot *s) {
    if (s->up) return;
    arrays a = begin(f, s);
    land(f, s, smg_model_run(s->model, a.in, 3, a.out, a.outputs));
}

static void submit(fixture *f, slot *s) {
    if (s->up) return;
    arrays a = begin(f, s);
    expect_ok(f, smg_model_submit(s->model, a.in, 3, a.out, a.outputs, &s->ticket));
    s->up = true;
}

static void look(fixture *f, slot *s) {
    bool done = false;
    if (!s->up || s->recorded) return;
    smg_status status = smg_ticket_wait(s->ticket, draw(f, 3) * 1e-4, &done);
    if (done)
        land(f, s, status);
    else
        expect_ok(f, status);
}

static void wait(fixture *f, slot *s) {
    bool done = false;
    if (!s->up || s->recorded) return;
    smg_status status = smg_ticket_wait(s->ticket, -1, &done);
    assert_true(done);
    land(f, s, status);
}

static void cancel(fixture *f, slot *s) {
    bool cancelled = false;
    if (!s->up || s->recorded) return;
    expect_ok(f, smg_ticket_cancel(s->ticket, &cancelled));
    s->cancelled = s->cancelled || cancelled;
}

static void set_budget(fixture *f, slot *s) {
    static const double seconds[] = {0, 1e-9, 1e-5, 1};
    if (!s->up) expect_ok(f, smg_model_set_budget(s->model, seconds[draw(f, 4)], seconds[draw(f, 4)]));
}

static void reset_state(fixture *f, slot *s) {
    if (s->up) return;
    expect_ok(f, smg_model_reset_state(s->model, draw(f, 2) ? "h" : NULL));
    s->had = 0;
}

static void set_range(fixture *f, slot *s) {
    if (s->up) return;
    int low = 1 + draw(f, ROWS), high = low + draw(f, ROWS - low + 1);
    if (draw(f, 3) == 0) low = high = 0;
    if (s->had > 0 && low > 0 && (s->had < low || s->had > high)) reset_state(f, s);
    expect_ok(f, smg_model_set_range(s->model, "n", low, high));
    s->low = low;
    s->high = high;
}

/* Made, or destroyed, also while a run writes it. */
static void change_tensor(fixture *f, slot *s) {
    tensor *t = &f->tensors[draw(f, TENSORS)];
    if (t->on == NULL) {
        expect_ok(f, smg_model_create_tensor(s->model, "y", ALL, &t->on));
        return;
    }
    if (t->users > 0 && draw(f, 3) > 0) return;
    smg_tensor_destroy(t->on);
    for (int i = 0; i < MODELS; i++)
        if (f->slots[i].to == t) f->slots[i].to = NULL;
    *t = (tensor){0};
}

static void read_tensor(fixture *f, slot *s) {
    static float got[ALL];
    const tensor *t = &f->tensors[draw(f, TENSORS)];
    (void)s;
    if (t->on == NULL) return;
    smg_status status = smg_tensor_download(t->on, 0, got, (int64_t)t->rows * WIDTH);
    if (t->users > 0) assert_int_equal(status, SMG_INVALID);
    if (t->users > 0) return;
    expect_ok(f, status);
    assert_memory_equal(got, f->want[t->rows], sizeof(float) * WIDTH * (size_t)t->rows);
}

static void drop_commands(const fixture *f, slot *s) {
    f->app.FreeCommandBuffers(f->app.device, f->pool, 1, &s->commands);
    s->commands = NULL;
}

static void record(fixture *f, slot *s) {
    const app *a = &f->app;
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = f->pool, .commandBufferCount = 1};
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    if (s->up) return;
    assert_int_equal(a->AllocateCommandBuffers(a->device, &allocate, &s->commands), VK_SUCCESS);
    assert_int_equal(a->BeginCommandBuffer(s->commands, &info), VK_SUCCESS);
    arrays given = begin(f, s);
    expect_ok(f, smg_vk_model_record(s->model, given.in, 3, given.out, given.outputs, s->commands, &s->ticket));
    assert_int_equal(a->EndCommandBuffer(s->commands), VK_SUCCESS);
    s->up = s->recorded = true;
}

/* Once more, or it is over. */
static void execute(fixture *f, slot *s) {
    const app *a = &f->app;
    const VkFenceCreateInfo made = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &s->commands};
    VkFence fence = VK_NULL_HANDLE;
    if (!s->up || !s->recorded) return;
    if (draw(f, 2)) {
        land(f, s, smg_vk_ticket_over(s->ticket, s->executed > 0));
        drop_commands(f, s);
        return;
    }
    assert_int_equal(a->CreateFence(a->device, &made, NULL, &fence), VK_SUCCESS);
    assert_int_equal(a->QueueSubmit(a->queue, 1, &info, fence), VK_SUCCESS);
    assert_int_equal(a->WaitForFences(a->device, 1, &fence, VK_TRUE, UINT64_MAX), VK_SUCCESS);
    a->DestroyFence(a->device, fence, NULL);
    s->executed++;
}

static void close_model(fixture *f, slot *s) {
    smg_model_close(s->model);
    leave_tensor(s, 0);
    if (s->commands != NULL) drop_commands(f, s);
    *s = (slot){0};
}

static void close_some(fixture *f, slot *s) {
    if (draw(f, 6) == 0) close_model(f, s);
}

static void recover(fixture *f, slot *s) {
    if (s->up || !s->owns || draw(f, 6) > 0) return;
    expect_ok(f, smg_model_recover(s->model, f->device));
    reset_state(f, s);
}

static void open_model(fixture *f, slot *s) {
    const smg_bundle_desc desc = {.on = f->device, .recoverable = true};
    s->owns = draw(f, 2) != 0;
    if (s->owns)
        expect_ok(f, smg_model_open_bundle(f->ctx, f->path, &desc, &s->model));
    else
        expect_ok(f, smg_model_share(f->base, f->ctx, &s->model));
}

static void in_any_order(void **state) {
    static void (*const deeds[])(fixture *f, slot *s) = {
        run,     run,     submit,    submit,        look,        wait,    cancel,      set_budget, record,
        execute, execute, set_range, change_tensor, read_tensor, recover, reset_state, close_some};
    fixture *f = *state;
    const char *asked = getenv("SMG_STEPS"), *seed = getenv("SMG_SEED");
    if (f->missing) skip();
    f->seed = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    for (long step = asked != NULL ? atol(asked) : STEPS; step > 0; step--) {
        slot *s = &f->slots[draw(f, MODELS)];
        if (s->model == NULL)
            open_model(f, s);
        else
            deeds[draw(f, SMG_COUNT_OF(deeds))](f, s);
    }
    for (int i = 0; i < MODELS; i++) close_model(f, &f->slots[i]);
    for (int i = 0; i < TENSORS; i++) smg_tensor_destroy(f->tensors[i].on);
    memset(f->tensors, 0, sizeof(f->tensors));
}

/* ---- fixture ------------------------------------------------------------------------------------------ */

static unsigned flags; /* of the device */

static smg_status compile_here(fixture *f) {
    smg_ahead_target target = {.name = "careful", .match = ""};
    const smg_compile_options options = {.precision = SMG_TYPE_F32};
    smg_source source = {.ctx = f->ctx, .owns_graph = true};
    SMG_TRY(smg_graph_parse(f->ctx, text, strlen(text), "text", &source.graph));
    smg_status status = smg_target_named(f->ctx, "careful", &target.target);
    if (status == SMG_OK) status = smg_compile_ahead(f->ctx, &source, &target, 1, &options, f->path);
    smg_source_close(&source);
    return status;
}

static void adopt(fixture *f) {
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = f->app.family};
    smg_vulkan_desc desc = app_desc(&f->app);
    expect_ok(f, smg_vk_wish(f->ctx, &desc, NULL, &f->wishes));
    app_make_device(&f->app, f->wishes->enabled, f->wishes->extensions, f->wishes->extension_count);
    desc = app_desc(&f->app);
    desc.enabled = f->wishes->enabled;
    desc.extensions = f->wishes->extensions;
    desc.extension_count = f->wishes->extension_count;
    expect_ok(f, smg_vk_adopt(f->ctx, &desc, &f->device));
    f->device->flags |= flags;
    assert_int_equal(f->app.CreateCommandPool(f->app.device, &pool, NULL, &f->pool), VK_SUCCESS);
}

static int setup(void **state) {
    static fixture f;
    char room[512];
    smg_device *any = NULL;
    f = (fixture){0};
    *state = &f;
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    f.missing = device_missing(f.ctx, smg_device_open(f.ctx, NULL, &any)) || !app_begin(&f.app);
    smg_device_close(any);
    if (f.missing) return 0;
    for (int i = 0; i < ROWS; i++) f.ids[i] = i % 6;
    for (int i = 0; i < ALL; i++) {
        f.x[i] = (float)(i * 7919 % 1000) / 500 - 1;
        f.mask[i] = i % 3 != 0;
    }
    snprintf(f.path, sizeof(f.path), "%s", test_output(room, sizeof(room), "random-runs.smgb"));
    expect_ok(&f, compile_here(&f));
    adopt(&f);
    const smg_bundle_desc desc = {.on = f.device};
    expect_ok(&f, smg_model_open_bundle(f.ctx, f.path, &desc, &f.base));
    for (int rows = 1; rows <= ROWS; rows++) {
        const smg_tensor in[] = {{.name = "ids", .rank = 1, .dims = {rows}, .data = f.ids},
                                 {.name = "x", .rank = 2, .dims = {rows, WIDTH}, .data = f.x},
                                 {.name = "mask", .rank = 2, .dims = {rows, WIDTH}, .data = f.mask}};
        smg_tensor out = {.name = "y", .data = f.want[rows], .bytes = sizeof(f.want[rows])};
        expect_ok(&f, smg_model_reset_state(f.base, NULL));
        expect_ok(&f, smg_model_run(f.base, in, 3, &out, 1));
    }
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_model_close(f->base);
    smg_device_close(f->device);
    smg_vk_wishes_free(f->wishes);
    if (f->pool != VK_NULL_HANDLE) f->app.DestroyCommandPool(f->app.device, f->pool, NULL);
    app_end(&f->app);
    smg_context_destroy(f->ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_any_order)};
    device_compiles_plainly();
    int failed = cmocka_run_group_tests_name("random runs, seen memory", tests, setup, teardown);
    flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("random runs, unseen memory", tests, setup, teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
