/* Roles of axes. Rows are a spatial axis that exactly one operand of every contraction has: that operand
 * is read by rows, the other by columns, and every tile of the block shares one distribution of rows over
 * lanes, so that a per-row value multiplies an accumulator without moving. */
#include "sched/sched_internal.h"

static smg_axis_set contracted(const smg_snode *n) {
    return n->iterates & ~n->result;
}

void smg_sched_classify(const smg_space *space, smg_roles *out) {
    *out = (smg_roles){.spatial = smg_slice_spatial(space, NULL)};
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->streamed) continue;
        out->columns |= n->result & ~out->spatial;
        if (n->class_ == SMG_CLASS_REDUCE) {
            out->columns |= contracted(n);
            out->reductions++;
        }
        if (n->class_ == SMG_CLASS_CONTRACT) {
            out->contracted |= contracted(n);
            out->contractions++;
        }
    }
    out->inner = out->contracted & ~out->columns;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->output && n->streamed) out->loose |= n->result & ~out->spatial;
    }
}

/* The operand with the rows, or -1 when `row`, `col` do not suit this contraction. */
static int left_operand(const smg_space *space, const smg_roles *roles, const smg_snode *n, int row, int col) {
    smg_axis_set k = contracted(n), row_set = row >= 0 ? SMG_AXIS_BIT(row) : 0;
    smg_axis_set col_set = col >= 0 ? SMG_AXIS_BIT(col) : 0;
    smg_axis_set alone = roles->spatial & ~row_set & ~col_set;
    for (int side = 0; side < 2; side++) {
        const smg_soperand *left = &n->operand[side], *right = &n->operand[1 - side];
        smg_axis_set la = smg_space_operand_axes(space, left), ra = smg_space_operand_axes(space, right);
        bool right_in_block = right->producer >= 0 && !space->nodes.items[right->producer].streamed;
        if (right_in_block || (ra & row_set) || (la & ~(row_set | alone | k))) continue;
        if ((n->result & row_set) && !(la & row_set)) continue;
        return side;
    }
    return -1;
}

bool smg_sched_sides(const smg_space *space, const smg_roles *roles, int row, int col, int8_t *out_left) {
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ != SMG_CLASS_CONTRACT) continue;
        int side = left_operand(space, roles, n, row, col);
        if (side < 0) return false;
        out_left[i] = (int8_t)side;
    }
    return true;
}

/* Neighbouring lanes should write neighbouring words. */
int smg_sched_unit_axis(const smg_space *space, smg_axis_set among) {
    smg_size unit = smg_size_const(space->graph->sizes, 1);
    for (int i = space->nodes.count - 1; i >= 0; i--) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->store < 0) continue;
        const smg_sview *view = &space->views.items[n->store];
        for (int a = 0; a < view->axis_count; a++) {
            if (view->stride[a] == unit && (among & SMG_AXIS_BIT(view->axis[a]))) return view->axis[a];
        }
    }
    return -1;
}

int smg_sched_largest(smg_axis_set among, const int64_t *nominal) {
    int best = -1;
    for (int a = 0; a < SMG_SPACE_AXES; a++) {
        if ((among & SMG_AXIS_BIT(a)) && (best < 0 || nominal[a] > nominal[best])) best = a;
    }
    return best;
}
