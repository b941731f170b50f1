/* What the ranges of integers decide. Indices, sizes and sums of them lie between two sizes; a comparison
 * that holds, or fails, for all of them is a number. That clears away what exporters and compositions write
 * around indices (is it negative, is it inside), whatever its form. */
#include "graph/graph_rewrite.h"

#include <math.h>

#define MAX_ELEMENTS 4096 /* of a constant that is looked at */
#define MAX_WEIGHT 16     /* sums in a bound; longer ones are not followed */

static const int_range unknown = {SMG_SIZE_NONE, SMG_SIZE_NONE, 0};

static smg_size number_size(rewriter *r, double value) {
    bool small = value >= -2147483648.0 && value <= 2147483647.0 && value <= floor(value);
    return small ? smg_size_const(r->g->sizes, (int64_t)value) : SMG_SIZE_NONE;
}

/* a + margin <= b whatever the symbols are; false when that is not known. */
static bool at_most(const rewriter *r, smg_size a, smg_size b, int64_t margin) {
    int64_t high;
    if (a < 0 || b < 0) return false;
    smg_size difference = smg_size_sub(r->g->sizes, a, b);
    if (difference < 0) return false;
    smg_size_bounds(r->g->sizes, difference, NULL, &high);
    return high <= -margin;
}

/* The one that is never above (below) the other; NONE when that depends. */
static smg_size lesser(const rewriter *r, smg_size a, smg_size b) {
    if (at_most(r, a, b, 0)) return a;
    return at_most(r, b, a, 0) ? b : SMG_SIZE_NONE;
}

static smg_size greater(const rewriter *r, smg_size a, smg_size b) {
    smg_size low = lesser(r, a, b);
    if (low < 0) return SMG_SIZE_NONE;
    return low == a ? b : a;
}

static int_range united(const rewriter *r, int_range a, int_range b) {
    return (int_range){lesser(r, a.low, b.low), greater(r, a.high, b.high),
                       a.weight > b.weight ? a.weight : b.weight};
}

static bool negative_free(const rewriter *r, int_range a) {
    int64_t low;
    if (a.low < 0) return false;
    smg_size_bounds(r->g->sizes, a.low, &low, NULL);
    return low >= 0;
}

/* ---- ranges of operations ------------------------------------------------------------------- */

static smg_size sum(const rewriter *r, smg_size a, smg_size b) {
    return a < 0 || b < 0 ? SMG_SIZE_NONE : smg_size_add(r->g->sizes, a, b);
}

static smg_size minus(const rewriter *r, smg_size a) {
    return a < 0 ? SMG_SIZE_NONE : smg_size_sub(r->g->sizes, smg_size_const(r->g->sizes, 0), a);
}

static int_range added(const rewriter *r, int_range a, int_range b) {
    int weight = a.weight + b.weight;
    if (weight > MAX_WEIGHT) return unknown;
    return (int_range){sum(r, a.low, b.low), sum(r, a.high, b.high), weight};
}

static int_range negated(const rewriter *r, int_range a) {
    return (int_range){minus(r, a.high), minus(r, a.low), a.weight};
}

/* By a number that both bounds of b are. */
static int_range scaled(const rewriter *r, int_range a, int_range b) {
    int64_t factor;
    smg_sizes *s = r->g->sizes;
    if (b.low < 0 || b.low != b.high || !smg_size_is_const(s, b.low, &factor)) return unknown;
    if (factor < -65536 || factor > 65536) return unknown;
    smg_size low = a.low < 0 ? a.low : smg_size_mul(s, a.low, b.low);
    smg_size high = a.high < 0 ? a.high : smg_size_mul(s, a.high, b.low);
    return factor < 0 ? (int_range){high, low, a.weight} : (int_range){low, high, a.weight};
}

static int_range of_constant(rewriter *r, const smg_node *node) {
    int64_t count = 1, extent;
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < node->rank; i++)
        if (!smg_size_is_const(r->g->sizes, node->dims[i], &extent) ||
            !smg_mul_i64(count, extent, &count) || count > MAX_ELEMENTS)
            return unknown;
    if (!node->data) return unknown;
    for (int64_t i = 0; i < count; i++) {
        double value = smg_host_get(node->type, node->data, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return (int_range){number_size(r, low), number_size(r, high), 1};
}

static int_range of_leaf(rewriter *r, const smg_node *node) {
    smg_sizes *s = r->g->sizes;
    smg_size number;
    switch (smg_op_leaf(node->op)) {
    case SMG_LEAF_NUMBER:
        number = number_size(r, node->value);
        return (int_range){number, number, 1};
    case SMG_LEAF_SIZE: return (int_range){node->size, node->size, 1};
    case SMG_LEAF_INDEX:
        number = smg_size_sub(s, node->dims[node->axis], smg_size_const(s, 1));
        return (int_range){smg_size_const(s, 0), number, 1};
    case SMG_LEAF_TENSOR: return smg_op_is_constant(node->op) ? of_constant(r, node) : unknown;
    case SMG_LEAF_NONE: break;
    }
    return unknown;
}

/* Of min and max: on one side the bound of either operand holds. */
static int_range of_extreme(const rewriter *r, const int_range *a, bool least) {
    int_range all = united(r, a[0], a[1]);
    smg_size *tight = least ? &all.high : &all.low;
    smg_size p = least ? a[0].high : a[0].low, q = least ? a[1].high : a[1].low;
    *tight = p < 0 ? q : p;
    if (p >= 0 && q >= 0 && at_most(r, p, q, 0) != least) *tight = q;
    return all;
}

static int_range of_map(rewriter *r, const smg_node *node, const int_range *a) {
    smg_op op = node->op;
    smg_size zero = smg_size_const(r->g->sizes, 0), one = smg_size_const(r->g->sizes, 1);
    if (smg_op_converts(op)) {
        smg_kind from = smg_type_kind(smg_rewriter_operand(r, node, 0)->type);
        if (from == SMG_KIND_BOOL) return (int_range){zero, one, 1};
        return from == SMG_KIND_INT ? a[0] : unknown;
    }
    if (op == SMG_OP_ADD) return added(r, a[0], a[1]);
    if (op == SMG_OP_SUB) return added(r, a[0], negated(r, a[1]));
    if (op == SMG_OP_NEG) return negated(r, a[0]);
    if (op == SMG_OP_SELECT) return united(r, a[1], a[2]);
    if (op == SMG_OP_MUL) {
        int_range product = scaled(r, a[0], a[1]);
        return product.low >= 0 || product.high >= 0 ? product : scaled(r, a[1], a[0]);
    }
    if (op == SMG_OP_MIN || op == SMG_OP_MAX) return of_extreme(r, a, op == SMG_OP_MIN);
    if (op == SMG_OP_MOD && negative_free(r, a[1]) && a[1].high >= 0)
        return (int_range){zero, smg_size_sub(r->g->sizes, a[1].high, one), a[1].weight};
    if (op == SMG_OP_ABS && negative_free(r, a[0])) return a[0];
    if (op == SMG_OP_ABS) return (int_range){zero, SMG_SIZE_NONE, 1};
    return unknown;
}

static int_range of_reduce(rewriter *r, const smg_node *node, int_range a) {
    smg_combine combine = smg_op_combine(node->op);
    if (combine == SMG_COMBINE_MAX || combine == SMG_COMBINE_MIN) return a;
    if (combine != SMG_COMBINE_ADD || !negative_free(r, a)) return unknown;
    int64_t most;
    smg_size count = smg_rewriter_operand(r, node, 0)->dims[node->axis], high = SMG_SIZE_NONE;
    if (a.high >= 0 && smg_size_is_const(r->g->sizes, a.high, &most) && most < 65536)
        high = smg_size_mul(r->g->sizes, count, a.high);
    return (int_range){smg_size_const(r->g->sizes, 0), high, 1};
}

static int_range range_of(rewriter *r, const smg_node *node) {
    int_range a[SMG_MAX_OPERANDS] = {unknown, unknown, unknown}, filled;
    if (smg_type_kind(node->type) != SMG_KIND_INT) return unknown;
    for (int k = 0; k < node->operand_count; k++) a[k] = r->ranges.items[node->operand[k]];
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: return of_leaf(r, node);
    case SMG_CLASS_MAP: return of_map(r, node, a);
    case SMG_CLASS_REDUCE: return of_reduce(r, node, a[0]);
    case SMG_CLASS_GATHER: return a[0];
    case SMG_CLASS_CONTRACT: return unknown;
    case SMG_CLASS_VIEW: break;
    }
    if (smg_op_view(node->op) != SMG_VIEW_WINDOW) return a[0];
    filled.low = filled.high = number_size(r, node->value);
    filled.weight = 1;
    return united(r, a[0], filled);
}

/* The range of an operand: those of all nodes so far are made in order, once a pass. */
static bool ranges_of(rewriter *r, const smg_node *node, int_range *out) {
    while (r->ranges.count < r->g->nodes.count) {
        int_range made = range_of(r, &r->g->nodes.items[r->ranges.count]);
        int_range *stored = SMG_ARRAY_PUSH(r->g->arena, &r->ranges);
        if (!stored) return false;
        *stored = made;
    }
    for (int k = 0; k < node->operand_count; k++) out[k] = r->ranges.items[node->operand[k]];
    return true;
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* +1 always, -1 never, 0 it depends. */
static int decision(const rewriter *r, smg_op op, int_range a, int_range b) {
    if (op == SMG_OP_LT) {
        if (at_most(r, a.high, b.low, 1)) return 1;
        return at_most(r, b.high, a.low, 0) ? -1 : 0;
    }
    if (op == SMG_OP_LE) {
        if (at_most(r, a.high, b.low, 0)) return 1;
        return at_most(r, b.high, a.low, 1) ? -1 : 0;
    }
    bool apart = at_most(r, a.high, b.low, 1) || at_most(r, b.high, a.low, 1);
    bool same = a.low >= 0 && a.low == a.high && b.low == a.low && b.high == a.low;
    if (op == SMG_OP_EQ) return apart ? -1 : same;
    if (op == SMG_OP_NE) return apart ? 1 : -(int)same;
    return 0;
}

static bool decided_comparison(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int_range a[SMG_MAX_OPERANDS];
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_MAP || node->operand_count != 2 ||
        node->type != SMG_TYPE_BOOL ||
        smg_type_kind(smg_rewriter_operand(r, node, 0)->type) != SMG_KIND_INT)
        return false;
    if (!ranges_of(r, node, a)) return false;
    int known = decision(r, node->op, a[0], a[1]);
    if (known == 0) return false;
    smg_rewriter_become_number(node, known > 0 ? 1.0 : 0.0);
    return true;
}

/* x stays when it is inside anyway: max(x, 0), min(x, n - 1), mod(x, n), |x|. */
static bool idle_bound(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int_range a[SMG_MAX_OPERANDS];
    int keep = -1;
    if (smg_node_class(node) != SMG_CLASS_MAP || smg_type_kind(node->type) != SMG_KIND_INT)
        return false;
    bool either = node->op == SMG_OP_MIN || node->op == SMG_OP_MAX;
    if (!either && node->op != SMG_OP_MOD && node->op != SMG_OP_ABS) return false;
    if (!ranges_of(r, node, a)) return false;
    if (either) {
        int low = at_most(r, a[0].high, a[1].low, 0) ? 0 : -1;
        if (at_most(r, a[1].high, a[0].low, 0)) low = 1;
        if (low >= 0) keep = node->op == SMG_OP_MIN ? low : 1 - low;
    } else if (negative_free(r, a[0])) {
        keep = node->op == SMG_OP_ABS || at_most(r, a[0].high, a[1].low, 1) ? 0 : -1;
    }
    if (keep < 0) return false;
    const smg_node *kept = smg_rewriter_operand(r, node, keep);
    if (kept->type != node->type || !smg_same_dims(kept, node)) return false;
    *out_same = node->operand[keep];
    return true;
}

static bool absorbing_element(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (node->op != SMG_OP_AND && node->op != SMG_OP_OR) return false;
    for (int k = 0; k < 2; k++) {
        if (!smg_rewriter_is_number(r, node, k, &value)) continue;
        bool truth = value < 0.0 || value > 0.0;
        if (truth != (node->op == SMG_OP_OR)) continue;
        smg_rewriter_become_number(node, truth ? 1.0 : 0.0);
        return true;
    }
    return false;
}

/* A decided choice, or a neutral element, whose operand is smaller than the result: a broadcast. */
static bool decided_and_wider(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    int keep = -1;
    (void)out_same;
    if (node->op == SMG_OP_SELECT && smg_rewriter_is_number(r, node, 0, &value))
        keep = value < 0.0 || value > 0.0 ? 1 : 2;
    for (int k = 0; k < 2 && (node->op == SMG_OP_AND || node->op == SMG_OP_OR); k++) {
        if (!smg_rewriter_is_number(r, node, k, &value)) continue;
        if ((value < 0.0 || value > 0.0) == (node->op == SMG_OP_AND)) keep = 1 - k;
    }
    if (keep < 0 || smg_same_dims(smg_rewriter_operand(r, node, keep), node)) return false;
    smg_node view = {.op = SMG_OP_BROADCAST,
                     .type = node->type,
                     .rank = node->rank,
                     .name = node->name,
                     .operand_count = 1,
                     .operand = {node->operand[keep]}};
    memcpy(view.dims, node->dims, sizeof view.dims);
    *node = view;
    return true;
}

/* Where a slice lies along its axis. */
static int_range places_of(const rewriter *r, const smg_node *slice) {
    smg_sizes *s = r->g->sizes;
    smg_size count = smg_size_sub(s, slice->dims[slice->axis], smg_size_const(s, 1));
    smg_size last =
        smg_size_add(s, slice->begin, smg_size_mul(s, count, smg_size_const(s, slice->step)));
    if (slice->step > 0) return (int_range){slice->begin, last, 1};
    return (int_range){last, slice->begin, 1};
}

/* A slice of what was joined by position, all on one side of the seam: a slice of that side. */
static bool slice_of_choice(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    if (smg_op_view(node->op) != SMG_VIEW_SLICE) return false;
    const smg_node *choice = smg_rewriter_operand(r, node, 0);
    if (choice->op != SMG_OP_SELECT) return false;
    const smg_node *test = smg_rewriter_operand(r, choice, 0);
    if (test->op != SMG_OP_LT && test->op != SMG_OP_LE) return false;
    for (int side = 0; side < 2; side++) {
        const smg_node *index = smg_rewriter_operand(r, test, side);
        int_range a[SMG_MAX_OPERANDS];
        if (smg_op_leaf(index->op) != SMG_LEAF_INDEX) continue;
        if (index->rank - index->axis != choice->rank - node->axis) continue;
        if (index->dims[index->axis] != choice->dims[node->axis]) continue;
        if (!ranges_of(r, test, a)) return false;
        a[side] = places_of(r, node);
        int known = decision(r, test->op, a[0], a[1]);
        if (known == 0) continue;
        int keep = known > 0 ? 1 : 2;
        const smg_node *kept = smg_rewriter_operand(r, choice, keep);
        if (kept->type != choice->type || !smg_same_dims(kept, choice)) continue;
        node->operand[0] = choice->operand[keep];
        return true;
    }
    return false;
}

static bool gather_of_number(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_GATHER || !smg_rewriter_is_number(r, node, 0, &value))
        return false;
    smg_rewriter_become_number(node, value);
    return true;
}

const rewrite_rule smg_range_rules[] = {
    {"comparison decided by ranges", decided_comparison},
    {"bound without effect", idle_bound},
    {"absorbing element", absorbing_element},
    {"decided, wider", decided_and_wider},
    {"gather of a number", gather_of_number},
    {"slice of one side of a join", slice_of_choice},
};
const int smg_range_rule_count = (int)SMG_COUNT_OF(smg_range_rules);
