/* Repetition. Equal bodies one behind the other are the space of the first, run as often as there are bodies. The
 * number of the body is one axis more: constants that each body has for itself lie along it, and no node iterates over
 * it. What one body makes is what the next one reads: where both do so along the same axis, a block needs no more of it
 * than it makes, and cuts the axis; along any other axis it needs the whole. */
#include "space/space_internal.h"

static smg_status refuse(smg_space *space, const char *why, smg_node_id id) {
    space->refused = smg_arena_format(space->arena, "%s (%s)", why, smg_graph_describe(space->graph, id));
    space->refused_at = id;
    return space->refused != NULL ? SMG_OK : SMG_MEMORY;
}

bool smg_space_reads_carried(const smg_space *space, const smg_sview *view) {
    return space->repeat.count > 0 && view->source == space->repeat.carried;
}

int smg_space_stack(const smg_space *space, smg_node_id first) {
    for (int i = 0; i < space->repeat.stack_count; i++)
        if (space->repeat.stack[i].each[0] == first) return i;
    return -1;
}

static const smg_sview *made_by(const smg_space *space) {
    return &space->views.items[space->nodes.items[space->repeat.next].store];
}

/* The axis with this stride; -1. */
static int axis_of_stride(const smg_sview *view, smg_size stride) {
    for (int i = 0; i < view->axis_count; i++)
        if (view->stride[i] == stride) return view->axis[i];
    return -1;
}

int smg_space_carried_whole(const smg_space *space, const smg_sview *view, int *out_by) {
    const smg_sview *made = made_by(space);
    for (int i = 0; i < view->axis_count; i++) {
        int whole = axis_of_stride(made, view->stride[i]);
        *out_by = view->axis[i];
        if (whole != view->axis[i]) return whole;
    }
    return -1;
}

/* Does the view read each element of what is carried, along axes of the same extents, all but one of them the same? */
static bool reads_all(const smg_space *space, const smg_sview *view) {
    const smg_sview *made = made_by(space);
    int others = 0;
    bool all = view->layer_count == 0 && view->index_count == 0 && view->offset == SMG_SIZE_ZERO &&
               view->axis_count == made->axis_count;
    for (int i = 0; all && i < view->axis_count; i++) {
        int axis = axis_of_stride(made, view->stride[i]);
        all = axis >= 0 && space->axes.items[axis].extent == space->axes.items[view->axis[i]].extent;
        others += axis != view->axis[i];
    }
    return all && others <= 1;
}

static smg_status add_slice(smg_space *space, const smg_sview *view) {
    smg_srepeat *r = &space->repeat;
    int by, whole = smg_space_carried_whole(space, view, &by);
    if (whole < 0) return SMG_OK;
    for (int i = 0; i < r->slice_count; i++)
        if (r->slice[i].by == by) return SMG_OK;
    if (r->slice_count == SMG_SPACE_SLICES) return refuse(space, "a body reads the one before it too often", r->made);
    r->slice[r->slice_count].by = by;
    r->slice[r->slice_count++].whole = whole;
    return SMG_OK;
}

static smg_status add_axis(smg_space *space) {
    if (space->axes.count == SMG_SPACE_AXES) return refuse(space, "too many axes", space->repeat.made);
    smg_saxis *axis = SMG_ARRAY_PUSH(space->arena, &space->axes);
    if (axis == NULL) return SMG_MEMORY;
    space->repeat.axis = space->axes.count - 1;
    axis->extent = smg_size_const(space->graph->sizes, space->repeat.count);
    axis->name = smg_arena_format(space->arena, "i%d", space->repeat.axis);
    return axis->name != NULL ? SMG_OK : SMG_MEMORY;
}

static smg_status repeat_view(smg_space *space, smg_sview *view) {
    int stack = view->source >= 0 ? smg_space_stack(space, view->source) : -1;
    if (stack >= 0) {
        if (view->axis_count == SMG_MAX_RANK * 2) return refuse(space, "too many axes", view->source);
        view->axis[view->axis_count] = space->repeat.axis;
        view->stride[view->axis_count++] = smg_size_const(space->graph->sizes, space->repeat.stack[stack].stride);
    }
    if (!smg_space_reads_carried(space, view)) return SMG_OK;
    if (!reads_all(space, view)) return refuse(space, "a body reads the one before it elsewhere", space->repeat.made);
    return add_slice(space, view);
}

smg_status smg_space_repeat(smg_space *space, const smg_srepeat *repeat) {
    space->repeat = *repeat;
    space->repeat.slice_count = 0;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->node == repeat->made && !n->copy) space->repeat.next = i;
        if (n->output && n->node != repeat->made) return refuse(space, "a body leaves several values", n->node);
    }
    if (!space->nodes.items[space->repeat.next].output)
        return refuse(space, "a body leaves no value of its own", repeat->made);
    SMG_TRY(add_axis(space));
    for (int v = 0; v < space->views.count && space->refused == NULL; v++)
        SMG_TRY(repeat_view(space, &space->views.items[v]));
    return SMG_OK;
}
