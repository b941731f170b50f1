/* What the ranges of integers decide (rewrite_known.c). Indices, sizes and sums of them lie between two sizes; a
 * comparison that holds, or fails, for all of them is a number, and a bound that all of them keep is none. That clears
 * away what exporters and compositions write around indices (is it negative, is it inside), whatever its form. */
#include "rewrite/rewrite_internal.h"

static bool decided_by_ranges(rewriter *r, smg_node *node, smg_node_id *out_same) {
    smg_affine_value v;
    int64_t value;
    if (smg_node_class(node) != SMG_CLASS_MAP || smg_type_kind(node->type) == SMG_KIND_FLOAT) return false;
    if (!smg_rewriter_known(r, node, &v)) return false;
    if (v.range.low == v.range.high && smg_size_is_const(r->g->sizes, v.range.low, &value)) {
        smg_rewriter_become_number(node, (double)value);
        return true;
    }
    if (v.leaf < 0) return false;
    const smg_node *kept = smg_rewriter_operand(r, node, v.leaf);
    if (kept->type != node->type || !smg_same_dims(kept, node)) return false;
    *out_same = node->operand[v.leaf];
    return true;
}

/* Where a slice lies along its axis. */
static smg_affine_range places_of(const rewriter *r, const smg_node *slice) {
    smg_sizes *s = r->g->sizes;
    smg_size count = smg_size_sub(s, slice->dims[slice->axis], smg_size_const(s, 1));
    smg_size last = smg_size_add(s, slice->begin, smg_size_mul(s, count, smg_size_const(s, slice->step)));
    if (slice->step > 0) return (smg_affine_range){slice->begin, last, 1};
    return (smg_affine_range){last, slice->begin, 1};
}

/* A comparison, of which one side is an index that lies there: +1 holds, -1 fails, 0 depends. */
static int decision_within(rewriter *r, const smg_node *test, int side, smg_affine_range there) {
    smg_affine_value x[SMG_MAX_OPERANDS] = {smg_affine_unknown, smg_affine_unknown, smg_affine_unknown}, v;
    if (!smg_rewriter_known(r, test, &v)) return 0;
    for (int k = 0; k < test->operand_count; k++) x[k].range = smg_known_operand(r, test, k)->range;
    x[side].range = there;
    v = smg_known_map(r, test, x);
    smg_affine_scope scope = smg_known_scope(r, test);
    return smg_affine_decision(&scope, &v);
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
        if (smg_op_leaf(index->op) != SMG_LEAF_INDEX) continue;
        if (index->rank - index->axis != join->rank - node->axis) continue;
        if (index->dims[index->axis] != join->dims[node->axis]) continue;
        int held = decision_within(r, test, side, places_of(r, node));
        if (held == 0) continue;
        int keep = held > 0 ? 1 : 2;
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
