/* Contractions in double, and the count of a graph's operations. The operands are copied to
 * [batch, m, k] and [batch, k, n], multiplied four rows at a time over all cores so that a row of the
 * second operand is read once for four rows of the result, and the result is copied to its layout. */
#include "graph/graph_private.h"

#define ROWS 4

typedef struct letters {
    char order[2 * SMG_MAX_RANK + 1]; /* batch, m, n, k */
    int batch, m, n, k;
    int64_t extent[128];
} letters;

static void classify(const smg_node *node, letters *l) {
    const char *a = node->label[0], *b = node->label[1], *result = node->label[2];
    int used = 0;
    for (const char *c = result; *c; c++)
        if (strchr(a, *c) && strchr(b, *c)) l->order[used++] = *c, l->batch++;
    for (const char *c = result; *c; c++)
        if (!strchr(b, *c)) l->order[used++] = *c, l->m++;
    for (const char *c = result; *c; c++)
        if (!strchr(a, *c)) l->order[used++] = *c, l->n++;
    for (const char *c = a; *c; c++)
        if (!strchr(result, *c)) l->order[used++] = *c, l->k++;
}

static int64_t product(const letters *l, int begin, int count) {
    int64_t value = 1;
    for (int i = begin; i < begin + count; i++) value *= l->extent[(int)l->order[i]];
    return value;
}

/* Copies `source` with axes labelled `labels` into the order of the `count` letters of `order`. */
static double *arrange(smg_context *ctx, const smg_array *source, const char *labels, const char *order, int count) {
    int64_t strides[SMG_MAX_RANK], moved[SMG_MAX_RANK];
    smg_array to = {.rank = count};
    smg_array_strides(source, strides);
    for (int i = 0; i < count; i++) {
        int axis = (int)(strchr(labels, order[i]) - labels);
        to.dims[i] = source->dims[axis];
        moved[i] = strides[axis];
    }
    if (smg_array_reserve(ctx, &to) != SMG_OK) return NULL;
    smg_array_copy_strided(source->data, count, to.dims, moved, to.data);
    return to.data;
}

typedef struct multiply_job {
    const double *a, *b;
    double *out;
    int64_t m, n, k;
    int64_t blocks; /* of ROWS rows in m */
} multiply_job;

static void multiply_row(const multiply_job *job, const double *a, const double *b, double *out) {
    for (int64_t j = 0; j < job->n; j++) out[j] = 0.0;
    for (int64_t k = 0; k < job->k; k++) {
        double x = a[k];
        const double *row = b + k * job->n;
        for (int64_t j = 0; j < job->n; j++) out[j] += x * row[j];
    }
}

static void multiply_rows(const multiply_job *job, const double *a, const double *b, double *out) {
    int64_t n = job->n, depth = job->k;
    double *o0 = out, *o1 = out + n, *o2 = out + 2 * n, *o3 = out + 3 * n;
    memset(out, 0, (size_t)(ROWS * n) * sizeof *out);
    for (int64_t k = 0; k < depth; k++) {
        double x0 = a[k], x1 = a[k + depth], x2 = a[k + 2 * depth], x3 = a[k + 3 * depth];
        const double *row = b + k * n;
        for (int64_t j = 0; j < n; j++) {
            double y = row[j];
            o0[j] += x0 * y;
            o1[j] += x1 * y;
            o2[j] += x2 * y;
            o3[j] += x3 * y;
        }
    }
}

static void multiply_part(void *user, int64_t begin, int64_t end) {
    const multiply_job *job = user;
    for (int64_t i = begin; i < end; i++) {
        int64_t batch = i / job->blocks, row = i % job->blocks * ROWS;
        const double *a = job->a + (batch * job->m + row) * job->k;
        const double *b = job->b + batch * job->k * job->n;
        double *out = job->out + (batch * job->m + row) * job->n;
        if (row + ROWS <= job->m) {
            multiply_rows(job, a, b, out);
            continue;
        }
        for (int64_t r = 0; row + r < job->m; r++) multiply_row(job, a + r * job->k, b, out + r * job->n);
    }
}

/* Strides that bring [batch, m, n] to the order of the result's letters. */
static void place_result(const letters *l, const smg_node *node, const double *from, smg_array *out) {
    int64_t stride[128] = {0}, moved[SMG_MAX_RANK], next = 1;
    for (int i = l->batch + l->m + l->n - 1; i >= 0; i--) {
        stride[(int)l->order[i]] = next;
        next *= l->extent[(int)l->order[i]];
    }
    for (int i = 0; i < out->rank; i++) moved[i] = stride[(int)node->label[2][i]];
    smg_array_copy_strided(from, out->rank, out->dims, moved, out->data);
}

smg_status smg_eval_contract(eval_scope *scope, const smg_node *node, const smg_array *a, const smg_array *b,
                             smg_array *out) {
    letters l = {.batch = 0};
    classify(node, &l);
    for (int i = 0; i < a->rank; i++) l.extent[(int)node->label[0][i]] = a->dims[i];
    for (int i = 0; i < b->rank; i++) l.extent[(int)node->label[1][i]] = b->dims[i];
    char order[2 * SMG_MAX_RANK + 1];
    int n_at = l.batch + l.m, k_at = n_at + l.n;
    memcpy(order, l.order, (size_t)n_at);
    memcpy(order + n_at, l.order + k_at, (size_t)l.k);
    int64_t batch = product(&l, 0, l.batch);
    multiply_job job = {.m = product(&l, l.batch, l.m), .n = product(&l, n_at, l.n), .k = product(&l, k_at, l.k)};
    job.blocks = (job.m + ROWS - 1) / ROWS;
    double *left = arrange(scope->ctx, a, node->label[0], order, n_at + l.k), *right = NULL, *result = NULL;
    memcpy(order, l.order, (size_t)l.batch);
    memcpy(order + l.batch, l.order + k_at, (size_t)l.k);
    memcpy(order + l.batch + l.k, l.order + n_at, (size_t)l.n);
    if (left) right = arrange(scope->ctx, b, node->label[1], order, l.batch + l.k + l.n);
    if (right) result = smg_alloc(scope->ctx, (size_t)(batch * job.m * job.n), sizeof *result);
    if (result) {
        job.a = left;
        job.b = right;
        job.out = result;
        smg_parallel_for(batch * job.blocks, 1, multiply_part, &job);
        place_result(&l, node, result, out);
        smg_free(scope->ctx, result, (size_t)(batch * job.m * job.n) * sizeof *result);
    }
    if (right) smg_free(scope->ctx, right, (size_t)(batch * job.k * job.n) * sizeof *right);
    if (left) smg_free(scope->ctx, left, (size_t)(batch * job.m * job.k) * sizeof *left);
    return result ? SMG_OK : SMG_MEMORY;
}

/* ---- operations of a graph ------------------------------------------------------------------ */

static double elements_of(const smg_graph *g, const smg_node *node, const int64_t *symbols) {
    double count = 1.0;
    for (int i = 0; i < node->rank; i++) {
        int64_t extent;
        if (!smg_size_eval(g->sizes, node->dims[i], symbols, &extent)) return 0.0;
        count *= (double)extent;
    }
    return count;
}

static double contracted(const smg_graph *g, const smg_node *node, const int64_t *symbols) {
    const smg_node *a = smg_graph_node(g, node->operand[0]);
    double count = 1.0;
    for (int i = 0; i < a->rank; i++) {
        int64_t extent;
        if (strchr(node->label[2], node->label[0][i])) continue;
        if (!smg_size_eval(g->sizes, a->dims[i], symbols, &extent)) return 0.0;
        count *= (double)extent;
    }
    return count;
}

static double multiply_adds(const smg_graph *g, smg_exprs *exprs, const smg_node *node, const int64_t *symbols) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    switch (smg_node_class(node)) {
    case SMG_CLASS_CONTRACT: return elements_of(g, node, symbols) * contracted(g, node, symbols);
    case SMG_CLASS_REDUCE: return elements_of(g, smg_graph_node(g, node->operand[0]), symbols);
    case SMG_CLASS_MAP:
        for (int k = 0; k < node->operand_count; k++)
            leaf[k] = smg_expr_leaf(exprs, smg_type_kind(smg_graph_node(g, node->operand[k])->type), k);
        return elements_of(g, node, symbols) * smg_expr_cost(exprs, smg_op_expr(exprs, node->op, node->type, leaf));
    case SMG_CLASS_LEAF:
    case SMG_CLASS_GATHER:
    case SMG_CLASS_VIEW: break;
    }
    return 0.0;
}

double smg_graph_flops(const smg_graph *g, const int64_t *symbols) {
    smg_arena *arena = NULL;
    smg_exprs *exprs = NULL;
    double total = 0.0;
    if (smg_arena_create(g->ctx, &arena) == SMG_OK && smg_exprs_create(arena, &exprs) == SMG_OK)
        for (int i = 0; i < g->nodes.count; i++) total += multiply_adds(g, exprs, &g->nodes.items[i], symbols);
    smg_arena_destroy(arena);
    return 2.0 * total;
}
