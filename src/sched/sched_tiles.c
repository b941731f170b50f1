/* Tile sizes: what a block has of each axis, for one shape of its lanes. */
#include "sched/sched_internal.h"

bool sched_constant(const enumerator *e, int axis, int64_t *out) {
    return smg_size_is_const(e->space->graph->sizes, e->space->axes.items[axis].extent, out);
}

#define MOST_WHOLE 64           /* k of a slice that is staged once for all others */
#define MOST_WHOLE_MATRICES 256 /* of halves, which a subgroup's registers hold */
#define ALWAYS_WHOLE 128        /* of them: in slices these were in no plan */

bool sched_runs_along(const enumerator *e, int axis, int64_t bytes) {
    const smg_graph *g = e->space->graph;
    for (int i = 0; i < e->space->nodes.count; i++) {
        const smg_snode *n = &e->space->nodes.items[i];
        for (int k = 0; n->class_ == SMG_CLASS_CONTRACT && k < n->operand_count; k++) {
            if (n->operand[k].producer >= 0) continue;
            const smg_sview *view = &e->space->views.items[n->operand[k].view];
            if (view->source < 0) continue;
            if (bytes > 0 && smg_type_device_bytes(smg_graph_storage(g, view->source)) != bytes) continue;
            for (int a = 0; a < view->axis_count; a++)
                if (view->axis[a] == axis && smg_size_is_one(g->sizes, view->stride[a])) return true;
        }
    }
    return false;
}

/* The longest of these axes; of several, one along which an operand lies side by side: a slice along another would
 * gather it element by element. */
static int longest_of(const enumerator *e, smg_axis_set among) {
    int longest = smg_sched_largest(among, e->nominal);
    for (int a = longest + 1; longest >= 0 && a < e->space->axes.count; a++) {
        bool as_long = (among & SMG_AXIS_BIT(a)) && e->nominal[a] == e->nominal[longest];
        if (as_long && sched_runs_along(e, a, 0) && !sched_runs_along(e, longest, 0)) longest = a;
    }
    return longest;
}

/* Of the axes that a product contracts only one has slices of several elements: what it holds, else the longest. */
static void stage_slices(const enumerator *e, smg_axis_set k, const lane_shape *shape, bool whole, smg_schedule *s) {
    int64_t extent, tile = shape->inner, most = s->matrix != NULL ? MOST_WHOLE_MATRICES : MOST_WHOLE;
    for (int a = 0; a < e->space->axes.count; a++)
        if ((k & SMG_AXIS_BIT(a)) && s->tile[a] > 1) return;
    int axis = longest_of(e, k & s->inner);
    if (axis < 0) return;
    if (sched_constant(e, axis, &extent) && (extent < tile || (whole && extent <= most))) tile = extent;
    s->tile[axis] = tile;
}

bool sched_whole_or_sliced(const enumerator *e, const smg_schedule *s) {
    bool either = false;
    for (int i = 0; i < e->products; i++) {
        int64_t extent, axis = longest_of(e, e->sums[i] & s->inner);
        bool known = axis >= 0 && sched_constant(e, (int)axis, &extent);
        either = either || (known && extent > ALWAYS_WHOLE && extent <= MOST_WHOLE_MATRICES);
    }
    return either;
}

smg_axis_set sched_sliced_axes(const enumerator *e, const smg_schedule *s) {
    smg_axis_set sliced = 0;
    for (int i = 0; i < e->products; i++) {
        smg_axis_set summed = e->sums[i] & s->inner;
        int longest = longest_of(e, summed);
        if (longest >= 0 && (summed & sliced) == 0) sliced |= SMG_AXIS_BIT(longest);
    }
    return sliced;
}

/* Elements of a slice that lie over column lanes, in runs: no more than there are. */
static int64_t slice_of(const enumerator *e, int axis, const lane_shape *shape) {
    int64_t tile = shape->col_registers, most = (int64_t)shape->cols * shape->col_registers;
    while (tile < most && tile < e->nominal[axis]) tile *= 2;
    return e->roles.contractions > 0 && smg_target_switches_lanes(e->target) ? tile : most;
}

/* Is a slice of the temporal axis of as many elements as the shape says, and no lanes lie along it? */
static bool takes_inner(const enumerator *e, const lane_shape *shape, const smg_schedule *s) {
    return s->col_axis >= 0 || (e->roles.contractions == 0 && shape->inner > 1);
}

void sched_set_tiles(const enumerator *e, const lane_shape *shape, bool whole, smg_schedule *s) {
    smg_axis_set whole_axes = (s->columns | s->held) & ~s->serial;
    for (int a = 0, count = e->space->axes.count; a < count; a++) {
        smg_axis_set bit = SMG_AXIS_BIT(a);
        int64_t extent;
        s->tile[a] = 1;
        if (a == s->row_axis && ((s->grid & bit) || a == s->temporal))
            s->tile[a] = (int64_t)shape->rows * shape->row_registers;
        else if (a == s->col_axis)
            s->tile[a] = (int64_t)shape->cols * shape->col_registers;
        else if (a == s->temporal)
            s->tile[a] = s->one_by_one ? 1 : takes_inner(e, shape, s) ? shape->inner : slice_of(e, a, shape);
        else if ((whole_axes & bit) && sched_constant(e, a, &extent))
            s->tile[a] = extent;
    }
    for (int i = 0; i < e->products; i++) stage_slices(e, e->sums[i], shape, whole, s);
    sched_fill_slices(s);
}

void sched_fill_slices(smg_schedule *s) {
    const smg_srepeat *r = &s->space->repeat;
    for (int i = 0; i < r->slice_count; i++) {
        int64_t by = s->tile[r->slice[i].by], *whole = &s->tile[r->slice[i].whole];
        *whole = (*whole + by - 1) / by * by;
    }
}
