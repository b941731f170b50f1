/* See the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/device_graph.h"

enum { TENSORS = 8 };

bool device_graph_open(device_graph *f) {
    *f = (device_graph){0};
    assert_int_equal(smg_context_create(NULL, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &f->dev);
    if (device_missing(f->ctx, status)) return false;
    device_graph_expect_ok(f, status);
    return true;
}

void device_graph_drop(device_graph *f) {
    smg_program_destroy(f->program);
    smg_compilation_destroy(f->c);
    smg_graph_destroy(f->g);
    f->program = NULL;
    f->c = NULL;
    f->g = NULL;
}

void device_graph_close(device_graph *f) {
    device_graph_drop(f);
    if (f->dev != NULL) assert_int_equal(smg_vk_validation_errors(f->dev), 0);
    smg_vk_close(f->dev);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

void device_graph_expect_ok(const device_graph *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

smg_target device_graph_gpu(const device_graph *f) {
    smg_target target = *smg_vk_target(f->dev);
    target.load_latency = 5e-7;
    target.core_lanes = 8 * target.subgroup_max;
    for (int i = 0; i < target.matrix_count; i++) target.matrix[i].rate = 1e14;
    return target;
}

void device_graph_parse(device_graph *f, const char *text) {
    device_graph_expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &f->g));
}

void device_graph_compile(device_graph *f, const smg_target *target, const smg_compile_options *options) {
    device_graph_expect_ok(f, smg_compile_plan(f->ctx, f->g, target, options, &f->c));
    device_graph_expect_ok(f, smg_compile_modules(f->c));
}

static int write_inputs(device_graph *f, const int64_t *sizes, uint64_t seed, smg_tensor *out_inputs) {
    smg_node_id nodes[TENSORS];
    int count = smg_graph_input_nodes(f->g, nodes, TENSORS);
    assert_in_range(count, 1, TENSORS);
    for (int i = 0; i < count; i++) {
        smg_tensor *x = &out_inputs[i];
        device_graph_expect_ok(
            f, smg_tensor_fill(f->ctx, f->g, nodes[i], sizes, SMG_FILL_RANDOM, seed + (uint64_t)i, f->arena, x));
        device_graph_expect_ok(f, smg_program_write_input(f->program, x->name, x->data, x->rank, x->dims));
    }
    return count;
}

static void read_outputs(device_graph *f, const int64_t *sizes, smg_tensor *out_outputs) {
    assert_in_range(f->g->outputs.count, 1, TENSORS);
    for (int i = 0; i < f->g->outputs.count; i++) {
        smg_tensor *y = &out_outputs[i];
        int64_t elements = 1;
        device_graph_expect_ok(f, smg_tensor_make(f->ctx, f->g, f->g->outputs.items[i].node, sizes, f->arena, y));
        y->name = f->g->outputs.items[i].name;
        for (int d = 0; d < y->rank; d++) elements *= y->dims[d];
        device_graph_expect_ok(f, smg_program_read_output(f->program, y->name, y->data, elements * 4));
    }
}

void device_graph_check(device_graph *f, const char *what, const int64_t *sizes, uint64_t seed) {
    smg_tensor inputs[TENSORS], outputs[TENSORS];
    smg_check check;
    device_graph_expect_ok(f, smg_program_bind_sizes(f->program, sizes));
    int count = write_inputs(f, sizes, seed, inputs);
    device_graph_expect_ok(f, smg_program_run(f->program));
    read_outputs(f, sizes, outputs);
    device_graph_expect_ok(f, smg_compile_check(f->ctx, f->g, smg_compile_roundings(f->c), sizes, inputs, count,
                                                outputs, f->arena, &check));
    assert_int_equal(check.count, f->g->outputs.count);
    for (int i = 0; i < check.count; i++) {
        if (check.rows[i].pass) continue;
        fail_msg("%s at %lld ..: %s is %g, must be %g", what, (long long)sizes[0], outputs[i].name,
                 check.rows[i].worst_got, check.rows[i].worst_want);
    }
}
#endif
