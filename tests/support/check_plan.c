/* Every tensor that crosses kernels is one array of doubles by node id; steps run in order. */
#include "check_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

static void fill(const smg_node *n, double *data, int64_t count, const check_options *o, uint64_t *state) {
    int64_t limit = o->int_limit > 0 ? o->int_limit : 2;
    for (int64_t i = 0; i < count; i++) {
        double u = draw(state);
        if (n->type == SMG_TYPE_F32 || n->type == SMG_TYPE_F16) data[i] = (double)(float)(2.0 * u - 1.0);
        else if (n->type == SMG_TYPE_BOOL) data[i] = u < 0.5;
        else data[i] = floor(u * (double)limit);
    }
}

static double host_value(const smg_node *n, int64_t i) {
    switch (n->type) {
    case SMG_TYPE_F32: return (double)((const float *)n->data)[i];
    case SMG_TYPE_I32: return (double)((const int32_t *)n->data)[i];
    case SMG_TYPE_I64: return (double)((const int64_t *)n->data)[i];
    case SMG_TYPE_BOOL: return (double)((const uint8_t *)n->data)[i];
    default: return 0;
    }
}

typedef struct arrays {
    double **data;
    int64_t *count;
} arrays;

static smg_status load_leaves(const smg_graph *g, const check_options *o, smg_arena *arena, arrays *a,
                              smg_array *inputs) {
    uint64_t state = o->seed + SMG_HASH_SEED;
    int next = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        int64_t count = 1;
        if (!smg_size_eval(g->sizes, smg_node_elements(g, id), o->symbols, &count)) return SMG_INVALID;
        a->count[id] = count;
        a->data[id] = SMG_ARENA_ARRAY(arena, double, (size_t)count + 1);
        if (a->data[id] == NULL) return SMG_MEMORY;
        for (int64_t i = 0; i < count; i++) a->data[id][i] = NAN;
        if (strcmp(smg_op_get(n->op)->word, "input") == 0) {
            fill(n, a->data[id], count, o, &state);
            smg_array *in = &inputs[next++];
            *in = (smg_array){ .type = n->type, .rank = n->rank, .data = a->data[id] };
            for (int d = 0; d < n->rank; d++) smg_size_eval(g->sizes, n->dims[d], o->symbols, &in->dims[d]);
        } else if (n->data != NULL) {
            for (int64_t i = 0; i < count; i++) a->data[id][i] = host_value(n, i);
        }
    }
    return SMG_OK;
}

static smg_status run_steps(smg_context *ctx, const smg_plan *plan, const check_options *o, arrays *a) {
    for (int s = 0; s < plan->steps.count; s++) {
        const smg_kernel *k = plan->steps.items[s].kernel;
        smg_karray buffers[64];
        for (int b = 0; b < k->buffers.count; b++) {
            int value = k->buffers.items[b].value;
            buffers[b] = (smg_karray){ .data = a->data[value], .elements = a->count[value] };
        }
        SMG_TRY(smg_kernel_interpret(ctx, k, o->symbols, buffers, true));
    }
    return SMG_OK;
}

static smg_status compare(const smg_graph *g, const check_options *o, const arrays *a, const smg_array *expected,
                          check_result *out) {
    out->pass = true;
    for (int i = 0; i < g->outputs.count; i++) {
        smg_node_id node = g->outputs.items[i].node;
        while (smg_node_class(smg_graph_node(g, node)) == SMG_CLASS_VIEW) node = smg_graph_node(g, node)->operand[0];
        int64_t count = smg_array_elements(&expected[i]);
        for (int64_t e = 0; e < count; e++) {
            double got = a->data[node][e], want = expected[i].data[e];
            if (isnan(want) && isnan(got)) continue;
            if (isinf(want) && want == got) continue;
            double error = fabs(got - want) / (1.0 + fabs(want));
            if (!(error <= out->max_error)) out->max_error = error;
            if (!(error <= o->tolerance)) out->pass = false;
        }
    }
    return SMG_OK;
}

static smg_status check(smg_context *ctx, const smg_graph *g, const check_options *o, smg_arena *arena,
                        check_result *out) {
    smg_target target;
    smg_plan *plan;
    smg_array inputs[16], expected[16];
    arrays a = { .data = SMG_ARENA_ARRAY(arena, double *, (size_t)g->nodes.count),
                 .count = SMG_ARENA_ARRAY(arena, int64_t, (size_t)g->nodes.count) };
    if (a.data == NULL || a.count == NULL) return SMG_MEMORY;
    SMG_TRY(smg_target_named(ctx, o->target, &target));
    SMG_TRY(smg_plan_make(g, &target, &o->plan, arena, &plan));
    if (o->show) {
        smg_text text;
        smg_text_init(&text, ctx);
        smg_plan_print(plan, &text);
        for (int i = 0; i < plan->steps.count; i++) smg_kernel_print(plan->steps.items[i].kernel, &text);
        printf("%s\n", smg_text_cstr(&text));
        smg_text_free(&text);
    }
    SMG_TRY(load_leaves(g, o, arena, &a, inputs));
    SMG_TRY(run_steps(ctx, plan, o, &a));
    SMG_TRY(smg_graph_eval(g, o->symbols, inputs, arena, expected));
    out->steps = plan->steps.count;
    return compare(g, o, &a, expected, out);
}

smg_status check_plan(smg_context *ctx, const smg_graph *g, const check_options *options, check_result *out) {
    smg_arena *arena;
    *out = (check_result){ 0 };
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = check(ctx, g, options, arena, out);
    smg_arena_destroy(arena);
    return status;
}

smg_status check_load(smg_context *ctx, const char *path, smg_graph **out_graph) {
    char *text;
    size_t size;
    SMG_TRY(smg_file_read(ctx, path, &text, &size));
    smg_status status = smg_graph_parse(ctx, text, size, path, out_graph);
    smg_free(ctx, text, size + 1);
    return status;
}
