/* Every tensor that crosses kernels is one array of doubles by node id; steps run in order. */
#include "check_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

smg_status check_space(const smg_graph *g, smg_arena *arena, smg_space **out_space) {
    smg_node_id *nodes = SMG_ARENA_ARRAY(arena, smg_node_id, (size_t)g->nodes.count + 1);
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    int count = 0;
    if (nodes == NULL || needed == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < g->nodes.count; i++)
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    for (int o = 0; o < g->outputs.count; o++) needed[smg_space_source(g, g->outputs.items[o].node)] = true;
    return smg_space_build(g, arena, nodes, count, needed, out_space);
}

static double draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

static void fill(const smg_node *n, double *data, int64_t count, const check_options *o, uint64_t *state) {
    int64_t limit = o->int_limit > 0 ? o->int_limit : 2;
    for (int64_t i = 0; i < count; i++) {
        double u = draw(state);
        if (n->type == SMG_TYPE_F32 || n->type == SMG_TYPE_F16)
            data[i] = (double)(float)(2.0 * u - 1.0);
        else if (n->type == SMG_TYPE_BOOL)
            data[i] = u < 0.5;
        else
            data[i] = floor(u * (double)limit);
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

static bool is_leaf(const smg_node *n) {
    return smg_node_class(n) == SMG_CLASS_LEAF;
}

void check_arrays_reset(const smg_graph *g, check_arrays *a) {
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        if (is_leaf(smg_graph_node(g, id))) continue;
        for (int64_t i = 0; i < a->count[id]; i++) a->data[id][i] = NAN;
    }
}

static void fill_input(const smg_graph *g, smg_node_id id, const check_options *o, uint64_t *state, check_arrays *a,
                       smg_array *in) {
    const smg_node *n = smg_graph_node(g, id);
    *in = (smg_array){.type = n->type, .rank = n->rank, .data = a->data[id]};
    for (int d = 0; d < n->rank; d++) smg_size_eval(g->sizes, n->dims[d], o->symbols, &in->dims[d]);
    fill(n, a->data[id], a->count[id], o, state);
    if (o->fill != NULL) o->fill(o->user, n, in->dims, a->data[id]);
}

smg_status check_arrays_make(const smg_graph *g, const check_options *o, smg_arena *arena, check_arrays *out) {
    uint64_t state = o->seed + SMG_HASH_SEED;
    int next = 0;
    out->data = SMG_ARENA_ARRAY(arena, double *, (size_t)g->nodes.count);
    out->count = SMG_ARENA_ARRAY(arena, int64_t, (size_t)g->nodes.count);
    if (out->data == NULL || out->count == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        int64_t count = 1;
        if (!smg_size_eval(g->sizes, smg_node_elements(g, id), o->symbols, &count)) return SMG_INVALID;
        out->count[id] = count;
        out->data[id] = SMG_ARENA_ARRAY(arena, double, (size_t)count + 1);
        if (out->data[id] == NULL || next == CHECK_TENSORS) return SMG_MEMORY;
        if (strcmp(smg_op_get(n->op)->word, "input") == 0) {
            fill_input(g, id, o, &state, out, &out->inputs[next++]);
        } else if (n->data != NULL) {
            for (int64_t i = 0; i < count; i++) out->data[id][i] = host_value(n, i);
        }
    }
    check_arrays_reset(g, out);
    return smg_graph_eval(g, o->symbols, out->inputs, arena, out->expected);
}

/* What a device has of inputs and constants. The reference is made of them as they are given. */
static void store_leaves(const smg_graph *g, check_arrays *a) {
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        smg_type stored = smg_graph_storage(g, id);
        if (!is_leaf(n) || stored == n->type) continue;
        for (int64_t i = 0; i < a->count[id]; i++) a->data[id][i] = smg_type_stored(stored, a->data[id][i]);
    }
}

enum { CHECK_STACKED = 64 }; /* constants one behind the other */

static smg_karray array_of(const check_arrays *a, int value) {
    return (smg_karray){.data = a->data[value], .elements = a->count[value]};
}

static smg_status bind(const smg_kbuffer *b, const check_arrays *a, smg_arena *arena, smg_karray *out) {
    smg_karray each[CHECK_STACKED];
    *out = array_of(a, b->value);
    for (int i = 0; i < b->each_count; i++) each[i] = array_of(a, b->each[i]);
    return b->each != NULL ? smg_karray_stack(b, each, arena, out) : SMG_OK;
}

smg_status check_kernel(smg_context *ctx, const smg_kernel *k, const check_options *o, check_arrays *a) {
    smg_karray buffers[64];
    smg_arena *arena;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = SMG_OK;
    for (int b = 0; b < k->buffers.count && status == SMG_OK; b++)
        status = bind(&k->buffers.items[b], a, arena, &buffers[b]);
    if (status == SMG_OK)
        status = (o->by_lane ? smg_kernel_interpret_lanes : smg_kernel_interpret)(ctx, k, o->symbols, buffers, true);
    smg_arena_destroy(arena);
    return status;
}

void check_compare(const smg_graph *g, const check_options *o, const check_arrays *a, check_result *out) {
    out->pass = true;
    for (int i = 0; i < g->outputs.count; i++) {
        smg_node_id node = g->outputs.items[i].node;
        while (smg_op_view(smg_graph_node(g, node)->op) == SMG_VIEW_RESHAPE) node = smg_graph_node(g, node)->operand[0];
        int64_t count = smg_array_elements(&a->expected[i]);
        for (int64_t e = 0; e < count; e++) {
            double got = a->data[node][e], want = a->expected[i].data[e];
            if (isnan(want) && isnan(got)) continue;
            if (isinf(want) && want == got) continue;
            double error = fabs(got - want) / (1.0 + fabs(want));
            if (!(error <= out->max_error)) out->max_error = error;
            if (!(error <= o->tolerance)) out->pass = false;
        }
    }
}

static void check_once(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                       check_arrays *a) {
    check_result r = {0};
    check_arrays_reset(g, a);
    smg_status status = check_kernel(g->ctx, k, o, a);
    if (status == SMG_OK) check_compare(g, o, a, &r);
    if (status == SMG_OK && r.pass) return;
    smg_text text;
    smg_text_init(&text, g->ctx);
    if (s != NULL) smg_sched_print(s, &text);
    smg_kernel_print(k, &text);
    fail_msg("%s on %s, %s: %s\n%s", g->name, o->target, o->by_lane ? "by lane" : "as a whole",
             status != SMG_OK ? smg_context_error(g->ctx) : "differs from the reference", smg_text_cstr(&text));
}

void check_kernel_is_right(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                           bool by_lane, check_arrays *a) {
    check_options options = *o;
    for (int lanes = 0; lanes <= by_lane; lanes++) {
        options.by_lane = lanes != 0;
        check_once(g, s, k, &options, a);
    }
}

smg_status check_target(smg_context *ctx, const char *name, smg_target *out_target) {
    char *text;
    size_t size;
    if (strchr(name, '/') == NULL) return smg_target_named(ctx, name, out_target);
    SMG_TRY(smg_file_read(ctx, name, &text, &size));
    smg_status status = smg_target_parse(ctx, text, name, out_target);
    smg_free(ctx, text, size + 1);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int check_list(smg_arena *arena, const char *dir, const char *ext, const char **out_paths, int limit) {
    DIR *open = opendir(dir);
    int count = 0;
    if (open == NULL) return 0;
    for (struct dirent *entry = readdir(open); entry != NULL && count < limit; entry = readdir(open)) {
        size_t length = strlen(entry->d_name), tail = strlen(ext);
        if (length <= tail || strcmp(entry->d_name + length - tail, ext) != 0) continue;
        out_paths[count++] = smg_path_join(arena, dir, entry->d_name);
    }
    closedir(open);
    qsort(out_paths, (size_t)count, sizeof(*out_paths), by_name);
    return count;
}

static void show(smg_context *ctx, const smg_plan *plan) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_plan_print(plan, &text);
    for (int i = 0; i < plan->prepare.count; i++) smg_kernel_print(plan->prepare.items[i].kernel, &text);
    for (int i = 0; i < plan->steps.count; i++) smg_kernel_print(plan->steps.items[i].kernel, &text);
    printf("%s\n", smg_text_cstr(&text));
    smg_text_free(&text);
}

/* out_own: by node of the plan's graph. */
static smg_status check_steps(smg_context *ctx, const smg_plan *plan, const check_options *o, smg_arena *arena,
                              check_arrays *a, check_arrays *out_own) {
    size_t nodes = (size_t)plan->graph->nodes.count + 1;
    check_arrays own = {.data = SMG_ARENA_ARRAY(arena, double *, nodes),
                        .count = SMG_ARENA_ARRAY(arena, int64_t, nodes)};
    if (own.data == NULL || own.count == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < plan->graph->nodes.count; id++) {
        smg_node_id home = smg_plan_origin(plan, id);
        if (home >= 0) {
            own.data[id] = a->data[home];
            own.count[id] = a->count[home];
            continue;
        }
        const smg_graph *g = plan->graph;
        if (!smg_size_eval(g->sizes, smg_node_elements(g, id), o->symbols, &own.count[id])) return SMG_INVALID;
        if (!smg_node_computes(smg_graph_node(g, id))) continue;
        own.data[id] = SMG_ARENA_ARRAY(arena, double, (size_t)own.count[id] + 1);
        if (own.data[id] == NULL) return SMG_MEMORY;
        for (int64_t i = 0; i < own.count[id]; i++) own.data[id][i] = (double)NAN;
    }
    for (int s = 0; s < plan->steps.count; s++) SMG_TRY(check_kernel(ctx, plan->steps.items[s].kernel, o, &own));
    *out_own = own;
    return SMG_OK;
}

static smg_status check(smg_context *ctx, const smg_graph *g, const check_options *o, check_visit *visit, void *user,
                        smg_arena *arena, check_result *out) {
    smg_target target;
    smg_plan *plan;
    check_arrays a, own;
    SMG_TRY(check_target(ctx, o->target, &target));
    SMG_TRY(smg_plan_make(g, &target, &o->plan, arena, &plan));
    out->prepare = plan->prepare.count;
    out->steps = plan->steps.count;
    out->in_parts = plan->origin != NULL;
    if (o->show) show(ctx, plan);
    SMG_TRY(check_arrays_make(g, o, arena, &a));
    store_leaves(g, &a);
    for (int s = 0; s < plan->prepare.count; s++) SMG_TRY(check_kernel(ctx, plan->prepare.items[s].kernel, o, &a));
    SMG_TRY(check_steps(ctx, plan, o, arena, &a, &own));
    check_compare(g, o, &a, out);
    for (int s = 0; s < plan->steps.count && visit != NULL && out->pass; s++)
        visit(user, plan, &plan->steps.items[s], &target, &own);
    return SMG_OK;
}

smg_status check_each_step(smg_context *ctx, const smg_graph *g, const check_options *options, check_visit *visit,
                           void *user, check_result *out) {
    smg_arena *arena;
    *out = (check_result){0};
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = check(ctx, g, options, visit, user, arena, out);
    smg_arena_destroy(arena);
    return status;
}

smg_status check_plan(smg_context *ctx, const smg_graph *g, const check_options *options, check_result *out) {
    return check_each_step(ctx, g, options, NULL, NULL, out);
}

smg_status check_load(smg_context *ctx, const char *path, smg_graph **out_graph) {
    char *text;
    size_t size;
    SMG_TRY(smg_file_read(ctx, path, &text, &size));
    smg_status status = smg_graph_parse(ctx, text, size, path, out_graph);
    smg_free(ctx, text, size + 1);
    return status;
}
