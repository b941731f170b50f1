/* Constants larger than one binding: parts give the value of the whole, in the reference, in the interpreter for
 * a target of 64 KiB a binding, and on the device when it is told to allow no more; what cannot be split is a
 * status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/device.h"

#define LIMIT 65536
#define HEAD "graph g\ndim n max 100\nids = input i64[n]\nx = input f32[n, 48]\n"
#define TABLE "t = constant f32[700, 48] random seed=1\n"

static const char *const texts[] = {
    /* rows of a table */
    HEAD TABLE "y = gather(t, ids)\noutput y = y\n",
    /* a weight along the axis of the result, files' order and transposed */
    HEAD TABLE "y = contract(x, t) \"ni,oi->no\"\noutput y = y\n",
    HEAD TABLE "w = transpose(t) perm=[1, 0]\ny = contract(x, w) \"ni,io->no\"\noutput y = y\n",
    /* along the contracted axis */
    HEAD "w = constant f32[700, 40] random seed=1\nv = constant f32[48, 700] random seed=2 scale=0.1\n"
         "h = contract(x, v) \"ni,io->no\"\ny = contract(h, w) \"no,oj->nj\"\noutput y = y\n",
    /* along an axis of both operands and the result; heads of a projection */
    HEAD "w = constant f32[12, 48, 60] random seed=1\nr = reshape(x) : f32[n, 12, 4]\n"
         "b = constant f32[12, 4, 48] random seed=2\nh = contract(r, b) \"nhk,hki->nhi\"\n"
         "y = contract(h, w) \"nhi,hij->nhj\"\noutput y = y\n",
    HEAD TABLE "h = reshape(t) : f32[700, 2, 24]\nz = reshape(x) : f32[n, 2, 24]\n"
               "y = contract(z, h) \"nki,oki->no\"\noutput y = y\n",
    /* both at once, as tied weights are */
    HEAD TABLE "e = gather(t, ids)\nh = add(e, x)\ny = contract(h, t) \"ni,oi->no\"\noutput y = y\n",
    /* maps on the way, with an operand along the axis, one across it and a number */
    HEAD TABLE "a = constant f32[700, 1] random seed=5\nb = constant f32[48] random seed=6\nc = fill 0.5 : f32[]\n"
               "t1 = mul(t, a)\nt2 = add(t1, b)\nt3 = mul(t2, c)\ny = contract(x, t3) \"ni,oi->no\"\noutput y = y\n",
};

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static smg_graph *parse(fixture *f, const char *text) {
    smg_graph *g = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return g;
}

/* Indices of both ends and of every part. */
static void make_inputs(fixture *f, const smg_graph *g, const int64_t *n, smg_tensor *out) {
    assert_int_equal(smg_tensor_fill(f->ctx, g, 1, n, SMG_FILL_RANDOM, 3, f->arena, &out[1]), SMG_OK);
    assert_int_equal(smg_tensor_make(f->ctx, g, 0, n, f->arena, &out[0]), SMG_OK);
    out[0].name = "ids";
    for (int64_t i = 0; i < *n; i++)
        smg_tensor_set(&out[0], i, (double)(i == 0 ? 699 : i == 1 ? 0 : i % 5 == 2 ? -i : i * 41 % 700));
}

static const int64_t rows[] = {20};

static void parts_keep_the_value(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        smg_graph *g = parse(f, texts[i]), *split = NULL;
        smg_tensor inputs[2];
        smg_array in[2], was[1], is[1];
        int constants = 0;
        make_inputs(f, g, rows, inputs);
        for (int k = 0; k < 2; k++) assert_int_equal(smg_tensor_to_array(&inputs[k], f->arena, &in[k]), SMG_OK);
        assert_int_equal(smg_rewrite_split_constants(g, LIMIT, &split, &constants), SMG_OK);
        assert_non_null(split);
        assert_true(constants >= 1);
        assert_int_equal(smg_graph_eval(g, rows, in, f->arena, was), SMG_OK);
        assert_int_equal(smg_graph_eval(split, rows, in, f->arena, is), SMG_OK);
        assert_int_equal(smg_array_elements(was), smg_array_elements(is));
        for (int64_t e = 0; e < smg_array_elements(was); e++) {
            assert_true(fabs(was[0].data[e] - is[0].data[e]) <= 1e-9 * (1 + fabs(was[0].data[e])));
        }
        smg_graph_destroy(split);
        assert_int_equal(smg_rewrite_split_constants(g, 1 << 20, &split, &constants), SMG_OK);
        assert_null(split);
        smg_graph_destroy(g);
    }
}

static void expect_right(fixture *f, const smg_graph *g, const smg_tensor *inputs, const smg_tensor *y) {
    smg_check check;
    assert_int_equal(smg_compile_check(f->ctx, g, (smg_roundings){0}, rows, inputs, 2, y, f->arena, &check), SMG_OK);
    assert_true(check.pass);
}

/* No kernel reads a constant that is larger than a binding. */
static void expect_small(const smg_plan *plan) {
    for (int list = 0; list < 2; list++) {
        int count = list == 0 ? plan->prepare.count : plan->steps.count;
        for (int s = 0; s < count; s++) {
            const smg_kernel *k = (list == 0 ? plan->prepare.items : plan->steps.items)[s].kernel;
            for (int b = 0; b < k->buffers.count; b++) {
                int64_t elements = 0;
                assert_true(smg_size_eval(k->sizes, k->buffers.items[b].elements, rows, &elements));
                assert_true(elements * smg_type_device_bytes(k->buffers.items[b].type) <= 2 * LIMIT);
                smg_node_id id = k->buffers.items[b].value;
                if (smg_graph_node(plan->graph, id)->op != SMG_OP_CONSTANT) continue;
                assert_true(elements * smg_type_device_bytes(k->buffers.items[b].type) <= LIMIT);
            }
        }
    }
}

static void plans_of_parts_give_the_value(void **state) {
    fixture *f = *state;
    smg_target target;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(smg_file_read(f->ctx, "tests/targets/range64k.target", &text, &size), SMG_OK);
    assert_int_equal(smg_target_parse(f->ctx, text, "range64k", &target), SMG_OK);
    smg_free(f->ctx, text, size + 1);
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        for (int unfused = 0; unfused <= 1; unfused++) {
            smg_graph *g = parse(f, texts[i]);
            smg_compilation *c = NULL;
            smg_tensor inputs[2], y = {0};
            const smg_compile_options options = {.unfused = unfused};
            make_inputs(f, g, rows, inputs);
            if (smg_compile_plan(f->ctx, g, &target, &options, &c) != SMG_OK)
                fail_msg("%zu: %s", i, smg_context_error(f->ctx));
            expect_small(c->plan);
            if (smg_compile_interpret(c, rows, inputs, 2, f->arena, &y) != SMG_OK)
                fail_msg("%s", smg_context_error(f->ctx));
            expect_right(f, g, inputs, &y);
            smg_compilation_destroy(c);
            smg_graph_destroy(g);
        }
    }
}

#if SMG_VULKAN
static smg_vk_device *open_small_device(fixture *f) {
    smg_vk_device *device = NULL;
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &device);
    if (device_missing(f->ctx, status)) return NULL;
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    /* The device's own limit stays above this one; all that smg asks for is the target's. */
    smg_target *target = (smg_target *)smg_vk_target(device);
    target->max_buffer_range = LIMIT;
    return device;
}

static void devices_run_parts(void **state) {
    fixture *f = *state;
    smg_vk_device *device = open_small_device(f);
    if (device == NULL) skip();
    /* One of each way to work by parts: each costs the shader compilers' time. */
    static const size_t chosen[] = {0, 3, 4, 6};
    for (size_t at = 0; at < SMG_COUNT_OF(chosen); at++) {
        size_t i = chosen[at];
        smg_source source = {.ctx = f->ctx, .graph = parse(f, texts[i]), .owns_graph = true};
        const smg_model_desc desc = {.no_calibrate = true};
        smg_model *model = NULL;
        smg_tensor inputs[2], y = {.name = "y"};
        make_inputs(f, source.graph, rows, inputs);
        if (smg_model_open_source(f->ctx, &source, device, &desc, &model) != SMG_OK)
            fail_msg("%zu: %s", i, smg_context_error(f->ctx));
        if (smg_model_run(model, inputs, 2, &y, 1) != SMG_OK) fail_msg("%zu: %s", i, smg_context_error(f->ctx));
        expect_right(f, source.graph, inputs, &y);
        if (i == 0) { /* indices outside the whole table are told as they are */
            static const double bad[] = {700, -701, 123456};
            static const char *const said[] = {"index 700 outside", "index -1 outside", "index 123456 outside"};
            for (int b = 0; b < 3; b++) {
                smg_tensor_set(&inputs[0], 5, bad[b]);
                assert_int_equal(smg_model_run(model, inputs, 2, &y, 1), SMG_INVALID);
                assert_non_null(strstr(smg_context_error(f->ctx), said[b]));
                smg_context_clear_error(f->ctx);
            }
        }
        smg_model_close(model);
        smg_source_close(&source);
    }
    assert_int_equal(smg_vk_validation_errors(device), 0);
    smg_vk_close(device);
}

static void what_cannot_be_split_is_told(void **state) {
    fixture *f = *state;
    static const char *const whole[] = {
        /* one row is too long; a value of every run is */
        "graph g\nx = input f32[3]\nw = constant f32[3, 20000] random seed=1\n"
        "y = contract(x, w) \"i,io->o\"\noutput y = y\n",
        "graph g\nx = input f32[30000]\ny = exp(x)\noutput y = y\n",
    };
    static const char *const said[] = {"takes 80000 bytes", "takes 120000 bytes"};
    smg_vk_device *device = open_small_device(f);
    if (device == NULL) skip();
    for (size_t i = 0; i < SMG_COUNT_OF(whole); i++) {
        smg_source source = {.ctx = f->ctx, .graph = parse(f, whole[i]), .owns_graph = true};
        const smg_model_desc desc = {.no_calibrate = true};
        smg_model *model = NULL;
        smg_tensor x, y = {.name = "y"};
        smg_status status = smg_model_open_source(f->ctx, &source, device, &desc, &model);
        if (status == SMG_OK) {
            assert_int_equal(smg_tensor_fill(f->ctx, source.graph, 0, NULL, SMG_FILL_RANDOM, 1, f->arena, &x), SMG_OK);
            status = smg_model_run(model, &x, 1, &y, 1);
        }
        assert_int_equal(status, SMG_NO_FIT);
        if (i > 0 && strstr(smg_context_error(f->ctx), said[i]) == NULL) fail_msg("%s", smg_context_error(f->ctx));
        assert_non_null(strstr(smg_context_error(f->ctx), "binds at most 65536"));
        smg_context_clear_error(f->ctx);
        smg_model_close(model);
        smg_source_close(&source);
    }
    smg_vk_close(device);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_keep_the_value),
        cmocka_unit_test(plans_of_parts_give_the_value),
#if SMG_VULKAN
        cmocka_unit_test(devices_run_parts),
        cmocka_unit_test(what_cannot_be_split_is_told),
#endif
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests_name("split", tests, setup, teardown));
}
