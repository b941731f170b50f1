/* What the ranges of integers decide. Indices, sizes and sums of them lie between two sizes; a comparison
 * that holds, or fails, for all of them is a number, and a bound that all of them keep is none. That clears away what
 * exporters and compositions write around indices (is it negative, is it inside), whatever its form.
 *
 * A map is understood through its expression, primitive by primitive; no operation is named. The truth of a bool is a
 * range too: 0 to 1, or one of the two. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

#define MAX_ELEMENTS 4096 /* of a constant that is looked at; not more than SMG_HOST_ELEMENTS */
#define MAX_WEIGHT 16     /* sums in a bound; longer ones are not followed */

static const int_range unknown = {SMG_SIZE_NONE, SMG_SIZE_NONE, 0};

static smg_size number_size(rewriter *r, double value) {
    bool small = value >= -2147483648.0 && value <= 2147483647.0 && value <= floor(value);
    return small ? smg_size_const(r->g->sizes, (int64_t)value) : SMG_SIZE_NONE;
}

bool smg_rewriter_at_most(const rewriter *r, smg_size a, smg_size b, int64_t margin) {
    int64_t high;
    if (a < 0 || b < 0) return false;
    smg_size difference = smg_size_sub(r->g->sizes, a, b);
    if (difference < 0) return false;
    smg_size_bounds(r->g->sizes, difference, NULL, &high);
    return high <= -margin;
}

smg_size smg_rewriter_lesser(const rewriter *r, smg_size a, smg_size b) {
    if (smg_rewriter_at_most(r, a, b, 0)) return a;
    return smg_rewriter_at_most(r, b, a, 0) ? b : SMG_SIZE_NONE;
}

smg_size smg_rewriter_greater(const rewriter *r, smg_size a, smg_size b) {
    smg_size low = smg_rewriter_lesser(r, a, b);
    if (low < 0) return SMG_SIZE_NONE;
    return low == a ? b : a;
}

static int_range united(const rewriter *r, int_range a, int_range b) {
    return (int_range){smg_rewriter_lesser(r, a.low, b.low), smg_rewriter_greater(r, a.high, b.high),
                       a.weight > b.weight ? a.weight : b.weight};
}

static bool negative_free(const rewriter *r, int_range a) {
    int64_t low;
    if (a.low < 0) return false;
    smg_size_bounds(r->g->sizes, a.low, &low, NULL);
    return low >= 0;
}

/* ---- arithmetic of ranges --------------------------------------------------------------------- */

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
        if (!smg_size_is_const(r->g->sizes, node->dims[i], &extent) || !smg_mul_i64(count, extent, &count) ||
            count > MAX_ELEMENTS)
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
    case SMG_LEAF_NUMBER: number = number_size(r, node->value); return (int_range){number, number, 1};
    case SMG_LEAF_SIZE: return (int_range){node->size, node->size, 1};
    case SMG_LEAF_INDEX:
        number = smg_size_sub(s, node->dims[node->axis], smg_size_const(s, 1));
        return (int_range){smg_size_const(s, 0), number, 1};
    case SMG_LEAF_TENSOR: return smg_op_is_constant(node->op) ? of_constant(r, node) : unknown;
    case SMG_LEAF_NONE: break;
    }
    return unknown;
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* What is known of an expression's value: where it lies, and which operand of the row it always equals (-1: none). */
typedef struct known {
    int_range range;
    int operand;
} known;

static known somewhere(int_range range) {
    return (known){range, -1};
}

static known truth(const rewriter *r, bool may_fail, bool may_hold) {
    smg_size zero = smg_size_const(r->g->sizes, 0), one = smg_size_const(r->g->sizes, 1);
    return somewhere((int_range){may_fail ? zero : one, may_hold ? one : zero, 1});
}

/* 1 holds, 0 fails, -1 depends. */
static int truth_of(const rewriter *r, int_range a) {
    int64_t low = INT64_MIN, high = INT64_MAX;
    if (a.low >= 0) smg_size_bounds(r->g->sizes, a.low, &low, NULL);
    if (a.high >= 0) smg_size_bounds(r->g->sizes, a.high, NULL, &high);
    if (low > 0 || high < 0) return 1;
    return low == 0 && high == 0 ? 0 : -1;
}

/* a + margin <= b. */
static known comparison(const rewriter *r, int_range a, int_range b, int64_t margin) {
    bool always = smg_rewriter_at_most(r, a.high, b.low, margin);
    bool never = smg_rewriter_at_most(r, b.high, a.low, 1 - margin);
    return truth(r, !always, !never);
}

static known equality(const rewriter *r, int_range a, int_range b) {
    bool apart = smg_rewriter_at_most(r, a.high, b.low, 1) || smg_rewriter_at_most(r, b.high, a.low, 1);
    bool same = a.low >= 0 && a.low == a.high && b.low == a.low && b.high == a.low;
    return truth(r, !same, !apart);
}

/* Of min and max: one of the two where that is always it; else on one side the bound of either operand holds. */
static known extreme(const rewriter *r, const known *a, bool least) {
    if (smg_rewriter_at_most(r, a[0].range.high, a[1].range.low, 0)) return least ? a[0] : a[1];
    if (smg_rewriter_at_most(r, a[1].range.high, a[0].range.low, 0)) return least ? a[1] : a[0];
    int_range all = united(r, a[0].range, a[1].range);
    smg_size p = least ? a[0].range.high : a[0].range.low, q = least ? a[1].range.high : a[1].range.low;
    smg_size *tight = least ? &all.high : &all.low;
    *tight = p < 0 ? q : p;
    if (p >= 0 && q >= 0 && smg_rewriter_at_most(r, p, q, 0) != least) *tight = q;
    return somewhere(all);
}

static known product(const rewriter *r, const known *a) {
    int_range by_second = scaled(r, a[0].range, a[1].range);
    if (by_second.low >= 0 || by_second.high >= 0) return somewhere(by_second);
    return somewhere(scaled(r, a[1].range, a[0].range));
}

static known remainder_of(const rewriter *r, const known *a) {
    if (!negative_free(r, a[1].range) || a[1].range.high < 0) return somewhere(unknown);
    if (negative_free(r, a[0].range) && smg_rewriter_at_most(r, a[0].range.high, a[1].range.low, 1)) return a[0];
    smg_size most = smg_size_sub(r->g->sizes, a[1].range.high, smg_size_const(r->g->sizes, 1));
    return somewhere((int_range){smg_size_const(r->g->sizes, 0), most, a[1].range.weight});
}

static known choice(const rewriter *r, const known *a) {
    int chosen = truth_of(r, a[0].range);
    if (chosen >= 0) return a[chosen ? 1 : 2];
    return somewhere(united(r, a[1].range, a[2].range));
}

static known connective(const rewriter *r, const known *a, bool all) {
    int p = truth_of(r, a[0].range), q = truth_of(r, a[1].range);
    if (p == (int)all) return a[1];
    if (q == (int)all) return a[0];
    return p < 0 && q < 0 ? truth(r, true, true) : truth(r, all, !all);
}

static known of_prim(const rewriter *r, smg_prim prim, const known *a) {
    int held;
    switch (prim) {
    case SMG_PRIM_ADD: return somewhere(added(r, a[0].range, a[1].range));
    case SMG_PRIM_SUB: return somewhere(added(r, a[0].range, negated(r, a[1].range)));
    case SMG_PRIM_NEG: return somewhere(negated(r, a[0].range));
    case SMG_PRIM_MUL: return product(r, a);
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX: return extreme(r, a, prim == SMG_PRIM_MIN);
    case SMG_PRIM_MOD: return remainder_of(r, a);
    case SMG_PRIM_ABS:
        if (negative_free(r, a[0].range)) return a[0];
        return somewhere((int_range){smg_size_const(r->g->sizes, 0), SMG_SIZE_NONE, 1});
    case SMG_PRIM_LT: return comparison(r, a[0].range, a[1].range, 1);
    case SMG_PRIM_LE: return comparison(r, a[0].range, a[1].range, 0);
    case SMG_PRIM_EQ: return equality(r, a[0].range, a[1].range);
    case SMG_PRIM_SELECT: return choice(r, a);
    case SMG_PRIM_AND:
    case SMG_PRIM_OR: return connective(r, a, prim == SMG_PRIM_AND);
    case SMG_PRIM_NOT:
    case SMG_PRIM_TO_BOOL:
        held = truth_of(r, a[0].range);
        if (held < 0) return truth(r, true, true);
        return truth(r, (held == 1) == (prim == SMG_PRIM_NOT), (held == 1) != (prim == SMG_PRIM_NOT));
    case SMG_PRIM_TO_INT: return somewhere(a[0].range); /* of a float nothing is known */
    default: return somewhere(unknown);
    }
}

/* `operand`: the ranges of what the leaves stand for. Rows are short: no walk is deep. */
static known of_expression(rewriter *r, smg_expr expr, const int_range *operand) {
    smg_expr_node e = *smg_expr_get(r->exprs, expr);
    known a[3] = {{unknown, -1}, {unknown, -1}, {unknown, -1}}, result = {unknown, -1};
    for (int i = 0; i < smg_prim_arity(e.prim); i++) a[i] = of_expression(r, e.arg[i], operand);
    if (e.prim == SMG_PRIM_LEAF)
        result = (known){operand[e.leaf], e.leaf};
    else if (e.prim == SMG_PRIM_CONST)
        result.range = (int_range){number_size(r, e.value), number_size(r, e.value), 1};
    else
        result = of_prim(r, e.prim, a);
    if (e.kind == SMG_KIND_FLOAT) result.range = unknown;
    if (e.kind == SMG_KIND_BOOL && truth_of(r, result.range) < 0) result.range = truth(r, true, true).range;
    return result;
}

static known of_map(rewriter *r, const smg_node *node, const int_range *operand) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < node->operand_count; k++)
        leaf[k] = smg_expr_leaf(r->exprs, smg_type_kind(smg_rewriter_operand(r, node, k)->type), k);
    smg_expr expr = smg_op_expr(r->exprs, node->op, node->type, leaf);
    known result = of_expression(r, expr, operand);
    if (expr == leaf[0]) result.operand = -1; /* a copy: a tensor of its own */
    return result;
}

/* ---- ranges of nodes ------------------------------------------------------------------------- */

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
    if (smg_type_kind(node->type) == SMG_KIND_FLOAT) return unknown;
    for (int k = 0; k < node->operand_count; k++) a[k] = r->ranges.items[node->operand[k]];
    switch (smg_node_class(node)) {
    case SMG_CLASS_LEAF: return of_leaf(r, node);
    case SMG_CLASS_MAP: return of_map(r, node, a).range;
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

static bool decided_by_ranges(rewriter *r, smg_node *node, smg_node_id *out_same) {
    int_range a[SMG_MAX_OPERANDS];
    int64_t value;
    if (smg_node_class(node) != SMG_CLASS_MAP || smg_type_kind(node->type) == SMG_KIND_FLOAT) return false;
    if (!ranges_of(r, node, a)) return false;
    known result = of_map(r, node, a);
    if (result.range.low >= 0 && result.range.low == result.range.high &&
        smg_size_is_const(r->g->sizes, result.range.low, &value)) {
        smg_rewriter_become_number(node, (double)value);
        return true;
    }
    if (result.operand < 0) return false;
    const smg_node *kept = smg_rewriter_operand(r, node, result.operand);
    if (kept->type != node->type || !smg_same_dims(kept, node)) return false;
    *out_same = node->operand[result.operand];
    return true;
}

/* Where a slice lies along its axis. */
static int_range places_of(const rewriter *r, const smg_node *slice) {
    smg_sizes *s = r->g->sizes;
    smg_size count = smg_size_sub(s, slice->dims[slice->axis], smg_size_const(s, 1));
    smg_size last = smg_size_add(s, slice->begin, smg_size_mul(s, count, smg_size_const(s, slice->step)));
    if (slice->step > 0) return (int_range){slice->begin, last, 1};
    return (int_range){last, slice->begin, 1};
}

/* A slice of what was joined by position, all on one side of the seam: a slice of that side. */
static bool slice_of_choice(rewriter *r, smg_node *node, smg_node_id *out_same) {
    (void)out_same;
    if (smg_op_view(node->op) != SMG_VIEW_SLICE) return false;
    const smg_node *join = smg_rewriter_operand(r, node, 0);
    if (join->op != SMG_OP_SELECT) return false;
    const smg_node *test = smg_rewriter_operand(r, join, 0);
    if (smg_node_class(test) != SMG_CLASS_MAP || test->operand_count != 2) return false;
    for (int side = 0; side < 2; side++) {
        const smg_node *index = smg_rewriter_operand(r, test, side);
        int_range a[SMG_MAX_OPERANDS];
        if (smg_op_leaf(index->op) != SMG_LEAF_INDEX) continue;
        if (index->rank - index->axis != join->rank - node->axis) continue;
        if (index->dims[index->axis] != join->dims[node->axis]) continue;
        if (!ranges_of(r, test, a)) return false;
        a[side] = places_of(r, node);
        int held = truth_of(r, of_map(r, test, a).range);
        if (held < 0) continue;
        int keep = held ? 1 : 2;
        const smg_node *kept = smg_rewriter_operand(r, join, keep);
        if (kept->type != join->type || !smg_same_dims(kept, join)) continue;
        node->operand[0] = join->operand[keep];
        return true;
    }
    return false;
}

static bool gather_of_number(rewriter *r, smg_node *node, smg_node_id *out_same) {
    double value;
    (void)out_same;
    if (smg_node_class(node) != SMG_CLASS_GATHER || !smg_rewriter_is_number(r, node, 0, &value)) return false;
    smg_rewriter_become_number(node, value);
    return true;
}

const rewrite_rule smg_range_rules[] = {
    {"decided by ranges", decided_by_ranges},
    {"gather of a number", gather_of_number},
    {"slice of one side of a join", slice_of_choice},
};
const int smg_range_rule_count = (int)SMG_COUNT_OF(smg_range_rules);
