/* Reductions: sums, extremes, norms and logarithms over given axes; places of extremes; running sums. */
#include <float.h>

#include "onnx/onnx_part.h"

/* ---- Reduce* -------------------------------------------------------------------------------- */

static smg_value reduce_bool(smg_onnx_build *b, const char *op, smg_value x, const bool *over) {
    smg_value numbers = smg_onnx_to(b, x, SMG_TYPE_I32);
    return smg_onnx_to(b, smg_onnx_reduce(b, op, numbers, over), SMG_TYPE_BOOL);
}

/* m + log(sum e^(x-m)); m is kept finite so that rows of infinities give infinities. */
static smg_value log_sum_exp(smg_onnx_build *b, smg_value x, const bool *over) {
    smg_value largest = smg_onnx_reduce(b, "reduce_max", x, over);
    smg_value low = smg_onnx_with(b, "max", largest, -(double)FLT_MAX);
    smg_value m = smg_onnx_with(b, "min", low, (double)FLT_MAX);
    smg_value e = smg_onnx_map1(b, "exp", smg_onnx_map2(b, "sub", x, m));
    smg_value sum = smg_onnx_reduce(b, "sum", e, over);
    return smg_onnx_map2(b, "add", smg_onnx_map1(b, "log", sum), m);
}

static smg_value reduced(smg_onnx_build *b, const char *kind, smg_value x, const bool *over) {
    static const struct {
        const char *kind, *before, *op, *after;
    } rows[] = {
        {"Sum", NULL, "sum", NULL},           {"Max", NULL, "reduce_max", NULL}, {"Min", NULL, "reduce_min", NULL},
        {"Prod", NULL, "reduce_prod", NULL},  {"L1", "abs", "sum", NULL},        {"L2", "square", "sum", "sqrt"},
        {"SumSquare", "square", "sum", NULL}, {"LogSum", NULL, "sum", "log"},
    };
    const smg_node *node = smg_graph_node_of(b->graph, x);
    if (strcmp(kind, "Mean") == 0) return smg_onnx_mean(b, x, over);
    if (strcmp(kind, "LogSumExp") == 0) return log_sum_exp(b, x, over);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].kind, kind) != 0) continue;
        if (node && node->type == SMG_TYPE_BOOL) return reduce_bool(b, rows[i].op, x, over);
        if (rows[i].before) x = smg_onnx_map1(b, rows[i].before, x);
        x = smg_onnx_reduce(b, rows[i].op, x, over);
        return rows[i].after ? smg_onnx_map1(b, rows[i].after, x) : x;
    }
    return (smg_value){0};
}

smg_status smg_onnx_convert_reduce(smg_onnx_build *b, const smg_onnx_node *n) {
    int rank = n->inputs[0]->rank, axes[SMG_MAX_RANK], count;
    bool over[SMG_MAX_RANK] = {false};
    SMG_TRY(smg_onnx_axes(b, n, 1, rank, axes, &count));
    bool keep = smg_onnx_attr_int(b, n, "keepdims", 1) != 0;
    bool nothing = smg_onnx_attr_int(b, n, "noop_with_empty_axes", 0) != 0;
    for (int i = 0; i < rank; i++) over[i] = count <= 0 && !nothing;
    for (int i = 0; i < count; i++) over[axes[i]] = true;
    smg_value y = reduced(b, n->op + strlen("Reduce"), smg_onnx_in(b, n, 0), over);
    if (!keep) y = smg_onnx_drop_axes(b, y, over);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

/* ---- places and running sums ---------------------------------------------------------------- */

smg_status smg_onnx_convert_arg(smg_onnx_build *b, const smg_onnx_node *n) {
    int axis;
    SMG_TRY(smg_onnx_axis(b, n, smg_onnx_attr_int(b, n, "axis", 0), n->inputs[0]->rank, &axis));
    bool keep = smg_onnx_attr_int(b, n, "keepdims", 1) != 0;
    bool last = smg_onnx_attr_int(b, n, "select_last_index", 0) != 0;
    const char *op = strcmp(n->op, "ArgMax") == 0 ? "reduce_max" : "reduce_min";
    smg_value x = smg_onnx_in(b, n, 0);
    if (!x.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_typed(b, n, 0, SMG_IMPORT_I64, smg_graph_argreduce(b->graph, op, x, axis, keep, last));
}

smg_status smg_onnx_convert_cumsum(smg_onnx_build *b, const smg_onnx_node *n) {
    int axis;
    SMG_TRY(smg_onnx_axis_in(b, n, 1, 0, n->inputs[0]->rank, &axis));
    bool exclusive = smg_onnx_attr_int(b, n, "exclusive", 0) != 0;
    bool reverse = smg_onnx_attr_int(b, n, "reverse", 0) != 0;
    smg_value x = smg_onnx_in(b, n, 0);
    if (!x.id) return smg_onnx_failed(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_graph_cumsum(b->graph, x, axis, exclusive, reverse));
}
