/* Roles of axes. Rows are an axis that exactly one operand of a product has: that operand is read by rows, the other by
 * columns. One axis is the rows of all products that have it, so that a per-row value multiplies an accumulator without
 * moving; products that lack it have rows of their own. */
#include "sched/sched_internal.h"

static smg_axis_set contracted(const smg_snode *n) {
    return n->iterates & ~n->result;
}

void smg_sched_classify(const smg_space *space, smg_axis_set cut, smg_roles *out) {
    *out = (smg_roles){.spatial = cut};
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->streamed && !n->output) continue;
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
    for (int a = 0; a < space->axes.count; a++)
        if (space->axes.items[a].held) out->held |= SMG_AXIS_BIT(a);
    out->columns &= ~out->held;
    out->inner = out->contracted & ~out->columns & ~out->held;
}

static smg_axis_set bit_of(int axis) {
    return axis >= 0 ? SMG_AXIS_BIT(axis) : 0;
}

/* Axes of an operand that its tile has beside k. */
static smg_axis_set beside(const smg_schedule *s, const smg_snode *n, int side) {
    smg_axis_set alone = s->grid & ~bit_of(s->row_axis) & ~bit_of(s->col_axis);
    if (s->one_by_one) alone |= bit_of(s->temporal);
    return smg_space_operand_axes(s->space, &n->operand[side]) & ~contracted(n) & ~alone;
}

/* The operand with the rows, or -1; *out_row: the axis of them, none where the operand is one row. Products that have
 * the row axis are dealt out by it; where none does, an operand without rows is the left one. */
static int left_operand(const smg_schedule *s, const smg_snode *n, smg_axis_set *out_row) {
    smg_axis_set row = bit_of(s->row_axis) & n->result;
    for (int pass = row != 0 || s->row_axis < 0 ? 1 : 0; pass < 2; pass++) {
        for (int side = 0; side < 2; side++) {
            smg_axis_set left = beside(s, n, side), right = beside(s, n, 1 - side);
            bool one = left != 0 && (left & (left - 1)) == 0;
            if ((left & right) || (pass == 0 ? !one : left != row)) continue;
            *out_row = left;
            return side;
        }
    }
    return -1;
}

bool smg_sched_one_by_one(const smg_schedule *s) {
    smg_axis_set slices = bit_of(s->temporal);
    for (int i = 0; i < s->space->nodes.count; i++) {
        const smg_snode *n = &s->space->nodes.items[i];
        if (n->class_ != SMG_CLASS_CONTRACT) continue;
        smg_axis_set k = contracted(n), both = smg_space_operand_axes(s->space, &n->operand[0]) &
                                               smg_space_operand_axes(s->space, &n->operand[1]) & n->result;
        if ((both & slices) || ((k & slices) && (k & s->columns & ~slices))) return true;
    }
    return false;
}

bool smg_sched_serial(const smg_space *space, smg_axis_set axes) {
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        smg_axis_set kept = n->result & axes, gone = contracted(n) & axes;
        if (n->output && kept != 0 && kept != axes) return false;
        if (n->streamed) continue;
        if (n->class_ == SMG_CLASS_CONTRACT) return false;
        if (n->class_ == SMG_CLASS_REDUCE && (kept != 0 || (gone != 0 && gone != axes))) return false;
    }
    return true;
}

bool smg_sched_sides(smg_schedule *s) {
    smg_axis_set rows = bit_of(s->row_axis);
    int more = 0;
    for (int i = 0; i < SMG_MORE_ROWS; i++) s->more_rows[i] = -1;
    for (int i = 0; i < s->space->nodes.count; i++) {
        const smg_snode *n = &s->space->nodes.items[i];
        smg_axis_set row = 0;
        if (n->class_ != SMG_CLASS_CONTRACT) continue;
        int side = left_operand(s, n, &row);
        if (side < 0 || (row & s->held)) return false; /* rows are in lanes of their own */
        s->left[i] = (int8_t)side;
        if (row == 0 || (n->result & rows)) continue;
        if (more + 1 == SMG_MORE_ROWS) return false;
        while (row != bit_of(s->more_rows[more])) s->more_rows[more]++;
        rows |= row;
        more++;
    }
    return true;
}

static bool is_half(const smg_space *space, int view) {
    const smg_sview *v = &space->views.items[view];
    return v->source >= 0 && v->layer_count == 0 && v->index_count == 0 &&
           smg_graph_storage(space->graph, v->source) == SMG_TYPE_F16;
}

bool smg_sched_pairs(const smg_space *space, const smg_target *target) {
    bool products = false;
    if (!smg_target_pairs(target)) return false;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        bool contracts = n->class_ == SMG_CLASS_CONTRACT;
        if (n->class_ == SMG_CLASS_REDUCE) return false;
        if (n->output && smg_graph_storage(space->graph, n->node) != SMG_TYPE_F16) return false;
        for (int k = 0; contracts && k < n->operand_count; k++)
            if (n->operand[k].producer >= 0 || !is_half(space, n->operand[k].view)) return false;
        products = products || contracts;
    }
    return products;
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

static bool stored(const smg_space *space, int view) {
    for (int i = 0; i < space->nodes.count; i++)
        if (space->nodes.items[i].store == view) return true;
    return false;
}

int smg_sched_run_axis(const smg_space *space, const smg_roles *roles, const int64_t *nominal) {
    smg_size one = smg_size_const(space->graph->sizes, 1);
    double largest = 0;
    int best = -1;
    for (int v = 0; v < space->views.count; v++) {
        const smg_sview *view = &space->views.items[v];
        double elements = 1;
        bool reduced = false;
        int unit = -1;
        for (int i = 0; i < view->axis_count; i++) {
            elements *= (double)nominal[view->axis[i]];
            reduced = reduced || (roles->columns & SMG_AXIS_BIT(view->axis[i]));
            if (view->stride[i] == one) unit = view->axis[i];
        }
        if (view->source < 0 || !reduced || elements <= largest || stored(space, v)) continue;
        largest = elements;
        best = unit;
    }
    return best;
}

int smg_sched_largest(smg_axis_set among, const int64_t *nominal) {
    int best = -1;
    for (int a = 0; a < SMG_SPACE_AXES && among >> a != 0; a++) {
        if ((among & SMG_AXIS_BIT(a)) && (best < 0 || nominal[a] > nominal[best])) best = a;
    }
    return best;
}
