/* compile_interpret.c: a plan's kernels on the CPU, one after the other, in the kernel interpreter.
 *
 * Every node whose value crosses kernels has one array of doubles, filled with NaN before the first
 * write, so that a value read too early shows. No device, no shader compiler: what it proves is space,
 * slice, sched and kernel. */
#include <math.h>

#include "compile/compile.h"

typedef struct interpreter {
    smg_compilation *c;
    const int64_t *symbols;
    smg_arena *arena;
    smg_karray *values; /* per node */
    smg_karray *own;    /* per node of the run list's graph that no other has */
} interpreter;

static smg_status reserve(interpreter *in, const smg_graph *g, smg_node_id id, smg_karray *value) {
    if (value->data != NULL) return SMG_OK;
    if (!smg_size_eval(g->sizes, smg_node_elements(g, id), in->symbols, &value->elements)) {
        return smg_fail(in->c->ctx, SMG_INVALID, "'%s' has too many elements at these sizes",
                        smg_graph_describe(g, id));
    }
    value->data = SMG_ARENA_ARRAY(in->arena, double, (size_t)value->elements + 1);
    if (value->data == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < value->elements; i++) value->data[i] = (double)NAN;
    return SMG_OK;
}

static smg_status load_leaf(interpreter *in, smg_node_id id, const smg_tensor *inputs, int count) {
    const smg_node *node = smg_graph_node(in->c->graph, id);
    smg_tensor from = {.name = node->name, .type = smg_type_word(node->type)};
    if (smg_node_is_input(node)) {
        for (int i = 0; i < count; i++) {
            if (strcmp(inputs[i].name, node->name) == 0) from = inputs[i];
        }
        if (from.data == NULL) {
            return smg_fail(in->c->ctx, SMG_INVALID, "input '%s' is missing", node->name);
        }
    } else if (node->data != NULL) {
        memcpy(&from.data, &node->data, sizeof(from.data)); /* read only */
    } else {
        return smg_fail(in->c->ctx, SMG_INVALID, "constant '%s' has no data: the graph gives its shape only",
                        node->name);
    }
    SMG_TRY(reserve(in, in->c->graph, id, &in->values[id]));
    smg_type stored = smg_graph_storage(in->c->graph, id);
    for (int64_t i = 0; i < in->values[id].elements; i++) {
        double given = smg_tensor_get(&from, i), *value = &in->values[id].data[i];
        *value = stored == node->type ? given : smg_type_stored(stored, given);
        if (!isinf(*value) || isinf(given)) continue;
        return smg_fail(in->c->ctx, SMG_INVALID, "'%s': element %lld is %g, more than %s holds", node->name,
                        (long long)i, given, smg_type_word(stored));
    }
    return SMG_OK;
}

static smg_status value_of(interpreter *in, const smg_plan *plan, smg_node_id id, const smg_tensor *inputs, int count,
                           smg_karray *out) {
    smg_node_id home = plan != NULL ? smg_plan_origin(plan, id) : id;
    const smg_graph *g = plan != NULL ? plan->graph : in->c->graph;
    smg_karray *value = home >= 0 ? &in->values[home] : &in->own[id];
    if (value->data == NULL) {
        bool leaf = smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_LEAF;
        SMG_TRY(leaf ? load_leaf(in, home, inputs, count) : reserve(in, g, id, value));
    }
    *out = *value;
    return SMG_OK;
}

static smg_status stack_of(interpreter *in, const smg_plan *plan, const smg_kbuffer *buffer, smg_karray *out) {
    smg_karray *each = SMG_ARENA_ARRAY(in->arena, smg_karray, (size_t)buffer->each_count);
    if (each == NULL) return SMG_MEMORY;
    for (int i = 0; i < buffer->each_count; i++)
        SMG_TRY(value_of(in, plan, buffer->each[i], NULL, 0, &each[i])); /* constants, no inputs */
    return smg_karray_stack(buffer, each, in->arena, out);
}

static smg_status run_step(interpreter *in, const smg_plan *plan, const smg_pstep *step, const smg_tensor *inputs,
                           int count) {
    const smg_kernel *k = step->kernel;
    smg_karray *buffers = SMG_ARENA_ARRAY(in->arena, smg_karray, (size_t)k->buffers.count + 1);
    if (buffers == NULL) return SMG_MEMORY;
    for (int b = 0; b < k->buffers.count; b++) {
        const smg_kbuffer *buffer = &k->buffers.items[b];
        SMG_TRY(buffer->each != NULL ? stack_of(in, plan, buffer, &buffers[b])
                                     : value_of(in, plan, buffer->value, inputs, count, &buffers[b]));
    }
    smg_status status = smg_kernel_interpret(in->c->ctx, k, in->symbols, buffers, true);
    return status != SMG_OK ? smg_fail_within(in->c->ctx, status, "step %s", step->name) : SMG_OK;
}

static smg_status give_outputs(interpreter *in, smg_arena *arena, smg_tensor *outputs) {
    const smg_graph *g = in->c->graph;
    for (int i = 0; i < g->outputs.count; i++) {
        smg_node_id id = g->outputs.items[i].node;
        SMG_TRY(smg_tensor_make(in->c->ctx, g, id, in->symbols, arena, &outputs[i]));
        outputs[i].name = g->outputs.items[i].name;
        while (smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_VIEW) {
            id = smg_graph_node(g, id)->operand[0];
        }
        if (in->values[id].data == NULL) {
            return smg_fail(in->c->ctx, SMG_INTERNAL, "no kernel writes output '%s'", outputs[i].name);
        }
        for (int64_t e = 0; e < in->values[id].elements; e++) {
            smg_tensor_set(&outputs[i], e, in->values[id].data[e]);
        }
    }
    return SMG_OK;
}

static smg_status interpret(interpreter *in, const smg_tensor *inputs, int count, smg_arena *arena,
                            smg_tensor *outputs) {
    int variant = smg_compile_choose(in->c, in->symbols);
    SMG_TRY(smg_compile_variant(in->c, variant));
    const smg_plan *once = in->c->plan;
    const smg_plan *plan = in->c->variants[variant].plan;
    int prepare = once->prepare.count;
    int steps = prepare + plan->steps.count;
    in->values = SMG_ARENA_ARRAY(in->arena, smg_karray, (size_t)in->c->graph->nodes.count + 1);
    in->own = SMG_ARENA_ARRAY(in->arena, smg_karray, (size_t)plan->graph->nodes.count + 1);
    if (in->values == NULL || in->own == NULL) return SMG_MEMORY;
    for (int s = 0; s < steps; s++) {
        const smg_pstep *step = s < prepare ? &once->prepare.items[s] : &plan->steps.items[s - prepare];
        smg_progress(in->c->ctx, "interpret", (size_t)s, (size_t)steps, step->name);
        SMG_TRY(smg_kernel_verify(in->c->ctx, step->kernel));
        SMG_TRY(run_step(in, s < prepare ? NULL : plan, step, inputs, count));
    }
    smg_progress(in->c->ctx, "interpret", (size_t)steps, (size_t)steps, "");
    return give_outputs(in, arena, outputs);
}

smg_status smg_compile_interpret(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs, int input_count,
                                 smg_arena *arena, smg_tensor *out_outputs) {
    interpreter in = {.c = c, .symbols = symbols};
    SMG_TRY(smg_arena_create(c->ctx, &in.arena));
    smg_status status = interpret(&in, inputs, input_count, arena, out_outputs);
    smg_arena_destroy(in.arena);
    return status;
}
