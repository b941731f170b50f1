/* The reference: a graph's value in double. This file walks the graph, frees what is dead and evaluates
 * leaves, maps, reductions, gathers and views; contractions are in graph_contract.c. A value of type f32
 * or f16 is not rounded between operations: the result is what exact arithmetic would come close to. Only
 * where a function jumps is its operand rounded to f32 first, as any f32 implementation would do. */
#include "graph/graph_private.h"

#include <math.h>

#define GRAIN 4096

int64_t smg_array_elements(const smg_array *array) {
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        if (!smg_mul_i64(count, array->dims[i], &count)) return -1;
    return count;
}

smg_status smg_array_reserve(smg_context *ctx, smg_array *array) {
    int64_t count = smg_array_elements(array);
    if (count < 0) return smg_fail(ctx, SMG_INVALID, "a tensor's elements do not fit 64 bits");
    array->data = smg_alloc(ctx, (size_t)count, sizeof *array->data);
    return array->data ? SMG_OK : SMG_MEMORY;
}

void smg_array_release(smg_context *ctx, smg_array *array) {
    if (array->data) smg_free(ctx, array->data, (size_t)smg_array_elements(array) * sizeof *array->data);
    array->data = NULL;
}

void smg_array_strides(const smg_array *array, int64_t *strides) {
    int64_t stride = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= array->dims[i];
    }
}

/* ---- walking several operands by strides ---------------------------------------------------- */

typedef struct walk {
    int rank;
    int64_t dims[SMG_MAX_RANK];
    int64_t stride[SMG_MAX_OPERANDS][SMG_MAX_RANK];
    int operands;
    int64_t index[SMG_MAX_RANK];
    int64_t at[SMG_MAX_OPERANDS];
} walk;

static void walk_to(walk *w, int64_t position) {
    for (int k = 0; k < w->operands; k++) w->at[k] = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        w->index[i] = position % w->dims[i];
        position /= w->dims[i];
        for (int k = 0; k < w->operands; k++) w->at[k] += w->index[i] * w->stride[k][i];
    }
}

static void walk_next(walk *w) {
    for (int i = w->rank - 1; i >= 0; i--) {
        for (int k = 0; k < w->operands; k++) w->at[k] += w->stride[k][i];
        if (++w->index[i] < w->dims[i]) return;
        for (int k = 0; k < w->operands; k++) w->at[k] -= w->stride[k][i] * w->dims[i];
        w->index[i] = 0;
    }
}

typedef struct strided_copy {
    walk walk;
    const double *base;
    double *out;
} strided_copy;

static void copy_part(void *user, int64_t begin, int64_t end) {
    const strided_copy *job = user;
    walk w = job->walk;
    walk_to(&w, begin);
    for (int64_t i = begin; i < end; i++, walk_next(&w)) job->out[i] = job->base[w.at[0]];
}

void smg_array_copy_strided(const double *base, int rank, const int64_t *dims, const int64_t *strides, double *out) {
    strided_copy job = {.walk = {.rank = rank, .operands = 1}, .base = base, .out = out};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        job.walk.dims[i] = dims[i];
        job.walk.stride[0][i] = strides[i];
        count *= dims[i];
    }
    smg_parallel_for(count, GRAIN, copy_part, &job);
}

/* ---- maps ----------------------------------------------------------------------------------- */

typedef struct map_job {
    walk walk;
    const double *base[SMG_MAX_OPERANDS];
    double *out;
    const smg_exprs *exprs;
    smg_expr expr;
    const smg_expr_node *single; /* the expression when it is one primitive over a, b, c in order */
    bool step;                   /* of a float: log(16) / log(2) is 4 in f32 and 3.999.. in double */
    bool wraps;                  /* an i32: two's complement, as in kernels; an i64 is not, and differs from theirs */
} map_job;

static void map_part(void *user, int64_t begin, int64_t end) {
    const map_job *job = user;
    walk w = job->walk;
    walk_to(&w, begin);
    for (int64_t i = begin; i < end; i++, walk_next(&w)) {
        double leaf[SMG_MAX_OPERANDS] = {0.0, 0.0, 0.0};
        for (int k = 0; k < w.operands; k++) leaf[k] = job->base[k][w.at[k]];
        if (job->step) leaf[0] = (double)(float)leaf[0];
        job->out[i] = job->single ? smg_prim_eval(job->single->prim, job->single->kind, leaf[0], leaf[1], leaf[2])
                                  : smg_expr_eval(job->exprs, job->expr, leaf);
        if (job->wraps) job->out[i] = smg_wrap_i32(job->out[i]);
    }
}

static smg_status make_expr(eval_scope *scope, const smg_node *node, smg_expr *out_expr) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < node->operand_count; k++) {
        smg_type type = smg_graph_node(scope->g, node->operand[k])->type;
        leaf[k] = smg_expr_leaf(scope->exprs, smg_type_kind(type), k);
    }
    *out_expr = smg_op_expr(scope->exprs, node->op, node->type, leaf);
    if (*out_expr != SMG_EXPR_NONE) return SMG_OK;
    return smg_fail(scope->ctx, SMG_INTERNAL, "%s has no expression", smg_op_get(node->op)->word);
}

static const smg_expr_node *single_primitive(const smg_exprs *exprs, smg_expr expr) {
    const smg_expr_node *n = smg_expr_get(exprs, expr);
    int arity = smg_prim_arity(n->prim);
    for (int i = 0; i < arity; i++) {
        const smg_expr_node *a = smg_expr_get(exprs, n->arg[i]);
        if (a->prim != SMG_PRIM_LEAF || a->leaf != i) return NULL;
    }
    return arity > 0 ? n : NULL;
}

static smg_status eval_map(eval_scope *scope, const smg_node *node, const smg_array *const *operand, smg_array *out) {
    map_job job = {.out = out->data, .exprs = scope->exprs, .wraps = node->type == SMG_TYPE_I32};
    SMG_TRY(make_expr(scope, node, &job.expr));
    job.single = single_primitive(scope->exprs, job.expr);
    job.step = job.single && smg_prim_is_step(job.single->prim) && smg_type_kind(operand[0]->type) == SMG_KIND_FLOAT;
    job.walk.rank = out->rank;
    job.walk.operands = node->operand_count;
    memcpy(job.walk.dims, out->dims, sizeof job.walk.dims);
    for (int k = 0; k < node->operand_count; k++) {
        int64_t strides[SMG_MAX_RANK];
        smg_array_strides(operand[k], strides);
        int shift = out->rank - operand[k]->rank;
        for (int i = shift; i < out->rank; i++)
            job.walk.stride[k][i] = operand[k]->dims[i - shift] == 1 ? 0 : strides[i - shift];
        job.base[k] = operand[k]->data;
    }
    smg_parallel_for(smg_array_elements(out), GRAIN, map_part, &job);
    return SMG_OK;
}

/* ---- reductions ----------------------------------------------------------------------------- */

typedef struct reduce_job {
    const double *a;
    double *out;
    int64_t extent, inner;
    smg_prim prim;
    smg_kind kind;
    double identity;
    bool wraps;
} reduce_job;

static double wrapped(const reduce_job *job, double value) {
    return job->wraps ? smg_wrap_i32(value) : value;
}

static void reduce_part(void *user, int64_t begin, int64_t end) {
    const reduce_job *job = user;
    for (int64_t i = begin; i < end; i++) {
        const double *row = job->a + (i / job->inner) * job->extent * job->inner + i % job->inner;
        double value = job->identity;
        for (int64_t k = 0; k < job->extent; k++)
            value = wrapped(job, smg_prim_eval(job->prim, job->kind, value, row[k * job->inner], 0.0));
        job->out[i] = value;
    }
}

static void eval_reduce(const smg_node *node, const smg_array *a, smg_array *out) {
    smg_combine combine = smg_op_combine(node->op);
    reduce_job job = {.a = a->data, .out = out->data, .extent = a->dims[node->axis], .inner = 1};
    job.prim = smg_combine_prim(combine);
    job.kind = smg_type_kind(node->type);
    job.wraps = node->type == SMG_TYPE_I32;
    job.identity = smg_combine_identity(combine);
    for (int i = node->axis + 1; i < a->rank; i++) job.inner *= a->dims[i];
    smg_parallel_for(smg_array_elements(out), 64, reduce_part, &job);
}

/* ---- leaves, gathers, views ----------------------------------------------------------------- */

static smg_status eval_leaf(eval_scope *scope, const smg_node *node, smg_array *out) {
    int64_t count = smg_array_elements(out), inner = 1, size;
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_TENSOR:
        if (!node->data)
            return smg_fail(scope->ctx, SMG_INVALID, "constant %s has a shape but no data to evaluate", node->name);
        for (int64_t i = 0; i < count; i++) out->data[i] = smg_host_get(node->type, node->data, i);
        return SMG_OK;
    case SMG_LEAF_NUMBER:
        for (int64_t i = 0; i < count; i++) out->data[i] = node->value;
        return SMG_OK;
    case SMG_LEAF_SIZE:
        if (!smg_size_eval(scope->g->sizes, node->size, scope->symbols, &size))
            return smg_fail(scope->ctx, SMG_INVALID, "size: has no value for these symbols");
        out->data[0] = (double)size;
        return SMG_OK;
    case SMG_LEAF_INDEX:
        for (int i = node->axis + 1; i < out->rank; i++) inner *= out->dims[i];
        for (int64_t i = 0; i < count; i++) out->data[i] = (double)(i / inner % out->dims[node->axis]);
        return SMG_OK;
    case SMG_LEAF_NONE: break;
    }
    return SMG_INTERNAL;
}

static smg_status eval_gather(eval_scope *scope, const smg_node *node, const smg_array *table, const smg_array *index,
                              smg_array *out) {
    int64_t rows = table->dims[0], row = smg_array_elements(table) / rows, count = smg_array_elements(index);
    for (int64_t i = 0; i < count; i++) {
        double at = index->data[i] < 0.0 ? index->data[i] + (double)rows : index->data[i];
        if (!(at >= 0.0 && at < (double)rows))
            return smg_fail(scope->ctx, SMG_INVALID, "gather: index %.0f at position %lld of %s is outside [0, %lld)",
                            index->data[i], (long long)i, smg_graph_describe(scope->g, node->operand[1]),
                            (long long)rows);
        memcpy(out->data + i * row, table->data + (int64_t)at * row, (size_t)row * sizeof(double));
    }
    return SMG_OK;
}

static smg_status eval_slice(eval_scope *scope, const smg_node *node, const smg_array *a, int64_t *strides,
                             smg_array *out) {
    int64_t begin, extent = a->dims[node->axis];
    if (!smg_size_eval(scope->g->sizes, node->begin, scope->symbols, &begin))
        return smg_fail(scope->ctx, SMG_INVALID, "slice: begin has no value for these symbols");
    int64_t last = begin + node->step * (out->dims[node->axis] - 1);
    if (begin < 0 || begin >= extent || last < 0 || last >= extent)
        return smg_fail(scope->ctx, SMG_INVALID, "slice: elements %lld to %lld of axis %d are outside [0, %lld) of %s",
                        (long long)begin, (long long)last, node->axis, (long long)extent,
                        smg_graph_describe(scope->g, node->operand[0]));
    const double *base = a->data + begin * strides[node->axis];
    strides[node->axis] *= node->step;
    smg_array_copy_strided(base, out->rank, out->dims, strides, out->data);
    return SMG_OK;
}

static smg_status eval_window(eval_scope *scope, const smg_node *node, const smg_array *a, smg_array *out) {
    int64_t begin, inner = 1, extent = a->dims[node->axis];
    int64_t count = out->dims[node->axis], taps = out->dims[node->axis + 1];
    if (!smg_size_eval(scope->g->sizes, node->begin, scope->symbols, &begin))
        return smg_fail(scope->ctx, SMG_INVALID, "window: begin has no value for these symbols");
    for (int i = node->axis + 1; i < a->rank; i++) inner *= a->dims[i];
    int64_t windows = smg_array_elements(out) / inner;
    for (int64_t w = 0; w < windows; w++) {
        int64_t outer = w / (count * taps);
        int64_t at = begin + node->step * (w / taps % count) + node->dilation * (w % taps);
        bool inside = at >= 0 && at < extent;
        for (int64_t i = 0; i < inner; i++)
            out->data[w * inner + i] = inside ? a->data[(outer * extent + at) * inner + i] : node->value;
    }
    return SMG_OK;
}

static smg_status eval_view(eval_scope *scope, const smg_node *node, const smg_array *a, smg_array *out) {
    int64_t strides[SMG_MAX_RANK] = {0}, moved[SMG_MAX_RANK] = {0};
    int shift = out->rank - a->rank;
    smg_array_strides(a, strides);
    switch (smg_op_view(node->op)) {
    case SMG_VIEW_RESHAPE: memcpy(out->data, a->data, (size_t)smg_array_elements(out) * sizeof(double)); return SMG_OK;
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < out->rank; i++) moved[i] = strides[node->perm[i]];
        break;
    case SMG_VIEW_BROADCAST:
        for (int i = shift; i < out->rank; i++) moved[i] = a->dims[i - shift] == 1 ? 0 : strides[i - shift];
        break;
    case SMG_VIEW_SLICE: return eval_slice(scope, node, a, strides, out);
    case SMG_VIEW_WINDOW: return eval_window(scope, node, a, out);
    case SMG_VIEW_NONE: return SMG_INTERNAL;
    }
    smg_array_copy_strided(a->data, out->rank, out->dims, moved, out->data);
    return SMG_OK;
}

/* ---- the walk over the graph ---------------------------------------------------------------- */

static smg_status bind_dims(const eval_scope *scope, const smg_node *node, smg_array *out) {
    *out = (smg_array){.type = node->type, .rank = node->rank};
    for (int i = 0; i < node->rank; i++) {
        bool bound = smg_size_eval(scope->g->sizes, node->dims[i], scope->symbols, &out->dims[i]);
        if (!bound || out->dims[i] < 1)
            return smg_fail(scope->ctx, SMG_INVALID, "%s: extent %d is %lld for these symbols, must be at least 1",
                            node->name[0] ? node->name : smg_op_get(node->op)->word, i,
                            bound ? (long long)out->dims[i] : -1LL);
    }
    return SMG_OK;
}

smg_status smg_eval_node(eval_scope *scope, const smg_node *node, const smg_array *const *operand, smg_array *out) {
    SMG_TRY(bind_dims(scope, node, out));
    SMG_TRY(smg_array_reserve(scope->ctx, out));
    smg_status status = SMG_OK;
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: status = eval_leaf(scope, node, out); break;
    case SMG_CLASS_MAP: status = eval_map(scope, node, operand, out); break;
    case SMG_CLASS_REDUCE: eval_reduce(node, operand[0], out); break;
    case SMG_CLASS_CONTRACT: status = smg_eval_contract(scope, node, operand[0], operand[1], out); break;
    case SMG_CLASS_GATHER: status = eval_gather(scope, node, operand[0], operand[1], out); break;
    case SMG_CLASS_VIEW: status = eval_view(scope, node, operand[0], out); break;
    }
    if (status != SMG_OK) smg_array_release(scope->ctx, out);
    return status;
}

smg_status smg_graph_eval_over_leaves(const smg_graph *g, smg_exprs *exprs, const smg_node *node, smg_array *out) {
    eval_scope scope = {.ctx = g->ctx, .g = g, .exprs = exprs};
    smg_array value[SMG_MAX_OPERANDS] = {{.rank = 0}};
    const smg_array *operand[SMG_MAX_OPERANDS] = {&value[0], &value[1], &value[2]};
    smg_status status = SMG_OK;
    for (int k = 0; k < node->operand_count && status == SMG_OK; k++)
        status = smg_eval_node(&scope, smg_graph_node(g, node->operand[k]), NULL, &value[k]);
    if (status == SMG_OK) status = smg_eval_node(&scope, node, operand, out);
    for (int k = 0; k < SMG_MAX_OPERANDS; k++) smg_array_release(g->ctx, &value[k]);
    return status;
}

typedef struct eval_run {
    eval_scope scope;
    smg_array *value; /* per node */
    int *last_use;    /* per node: its last user, node count for outputs */
    const smg_array *inputs;
    int next_input;
    smg_peak *peaks; /* per node; NULL: nobody asks */
} eval_run;

static smg_status check_input(const eval_run *run, const smg_node *node, const smg_array *given) {
    smg_array wanted;
    SMG_TRY(bind_dims(&run->scope, node, &wanted));
    bool same = wanted.rank == given->rank && given->data != NULL;
    for (int i = 0; same && i < wanted.rank; i++) {
        if (wanted.dims[i] == given->dims[i]) continue;
        return smg_fail(run->scope.ctx, SMG_INVALID, "input %s: extent %d is %lld, the graph says %lld", node->name, i,
                        (long long)given->dims[i], (long long)wanted.dims[i]);
    }
    if (same) return SMG_OK;
    return smg_fail(run->scope.ctx, SMG_INVALID, "input %s: has rank %d, the graph says %d", node->name, given->rank,
                    wanted.rank);
}

static void find_last_uses(const smg_graph *g, int *last_use) {
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.items[i].operand_count; k++) last_use[g->nodes.items[i].operand[k]] = i;
    for (int i = 0; i < g->outputs.count; i++) last_use[g->outputs.items[i].node] = g->nodes.count;
}

static smg_status run_node(eval_run *run, int i) {
    const smg_graph *g = run->scope.g;
    const smg_node *node = &g->nodes.items[i];
    if (smg_op_is_input(node->op)) {
        const smg_array *given = &run->inputs[run->next_input++];
        SMG_TRY(check_input(run, node, given));
        SMG_TRY(bind_dims(&run->scope, node, &run->value[i]));
        SMG_TRY(smg_array_reserve(run->scope.ctx, &run->value[i]));
        memcpy(run->value[i].data, given->data, (size_t)smg_array_elements(given) * sizeof(double));
        return SMG_OK;
    }
    if (run->last_use[i] == 0) return SMG_OK; /* nobody asks; node 0 is nobody's user */
    const smg_array *operand[SMG_MAX_OPERANDS] = {NULL, NULL, NULL};
    for (int k = 0; k < node->operand_count; k++) operand[k] = &run->value[node->operand[k]];
    SMG_TRY(smg_eval_node(&run->scope, node, operand, &run->value[i]));
    for (int k = 0; k < node->operand_count; k++)
        if (run->last_use[node->operand[k]] == i) smg_array_release(run->scope.ctx, &run->value[node->operand[k]]);
    return SMG_OK;
}

static smg_peak peak_of(const smg_array *value) {
    smg_peak peak = {.size = 0, .at = -1};
    int64_t count = value->data != NULL && smg_type_kind(value->type) == SMG_KIND_FLOAT ? smg_array_elements(value) : 0;
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(value->data[i]);
        if (size < smg_type_limit(SMG_TYPE_F32) && (peak.at < 0 || size > peak.size)) peak = (smg_peak){size, i};
    }
    return peak;
}

static smg_status give_output(eval_run *run, smg_arena *arena, smg_node_id id, smg_array *out) {
    *out = run->value[id];
    int64_t count = smg_array_elements(out);
    out->data = SMG_ARENA_ARRAY(arena, double, (size_t)count);
    if (!out->data) return SMG_MEMORY;
    memcpy(out->data, run->value[id].data, (size_t)count * sizeof(double));
    return SMG_OK;
}

static smg_status run_all(eval_run *run, smg_arena *arena, smg_array *out_outputs) {
    const smg_graph *g = run->scope.g;
    find_last_uses(g, run->last_use);
    for (int i = 0; i < g->nodes.count; i++) {
        SMG_TRY(run_node(run, i));
        if (run->peaks != NULL) run->peaks[i] = peak_of(&run->value[i]);
    }
    for (int i = 0; i < g->outputs.count && out_outputs != NULL; i++)
        SMG_TRY(give_output(run, arena, g->outputs.items[i].node, &out_outputs[i]));
    return SMG_OK;
}

static smg_status eval(const smg_graph *g, const int64_t *symbols, const smg_array *inputs, smg_peak *peaks,
                       smg_arena *arena, smg_array *out_outputs) {
    if (!g->finished) return smg_fail(g->ctx, SMG_INVALID, "graph %s is not finished", g->name);
    smg_arena *scratch = NULL;
    SMG_TRY(smg_arena_create(g->ctx, &scratch));
    eval_run run = {.scope = {.ctx = g->ctx, .g = g, .symbols = symbols}, .inputs = inputs, .peaks = peaks};
    size_t count = (size_t)g->nodes.count;
    smg_status status = smg_exprs_create(scratch, &run.scope.exprs);
    run.value = SMG_ARENA_ARRAY(scratch, smg_array, count);
    run.last_use = SMG_ARENA_ARRAY(scratch, int, count);
    if (!run.value || !run.last_use) status = SMG_MEMORY;
    if (status == SMG_OK) status = run_all(&run, arena, out_outputs);
    for (size_t i = 0; run.value && i < count; i++) smg_array_release(g->ctx, &run.value[i]);
    smg_arena_destroy(scratch);
    return status;
}

smg_status smg_graph_eval(const smg_graph *g, const int64_t *symbols, const smg_array *inputs, smg_arena *arena,
                          smg_array *out_outputs) {
    return eval(g, symbols, inputs, NULL, arena, out_outputs);
}

smg_status smg_graph_peaks(const smg_graph *g, const int64_t *symbols, const smg_array *inputs, smg_peak *out_peaks) {
    return eval(g, symbols, inputs, out_peaks, NULL, NULL);
}
