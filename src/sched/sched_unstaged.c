/* Products that read their factors where these lie in memory, on the scalar tier: no slice is staged. */
#include "sched/sched_internal.h"

/* A subgroup for a row lane, its lanes neighbouring columns (cols is 0 here). */
static const lane_shape direct_shapes[] = {
    {1, 0, 8, 2, 16, 1}, {1, 0, 16, 1, 16, 1}, {1, 0, 4, 4, 16, 1}, {1, 0, 8, 2, 8, 1},
    {1, 0, 16, 1, 8, 1}, {1, 0, 4, 4, 8, 1},   {1, 0, 8, 1, 16, 1}, {1, 0, 4, 2, 16, 1},
    {1, 0, 2, 4, 16, 1}, {1, 0, 1, 8, 16, 1},  {1, 0, 1, 4, 16, 1},
};

#define PANEL 16 /* elements: 64 bytes of f32, as much as caches move at once */

/* Cores whose lanes are the elements of one vector register. */
static bool reads_in_place(const smg_target *t) {
    return !smg_target_switches_lanes(t) && t->buffer_addresses && t->subgroup_selectable && t->subgroup_size >= 2;
}

int smg_sched_panel(const smg_target *t) {
    if (!reads_in_place(t)) return 0;
    return t->subgroup_size > PANEL ? (int)t->subgroup_size : PANEL;
}

static smg_status add_direct(enumerator *e, smg_schedule base) {
    const smg_target *t = e->target;
    if (e->roles.contractions == 0 || base.temporal >= 0 || !reads_in_place(t)) return SMG_OK;
    if (e->space->repeat.count > 0) return SMG_OK; /* what a body leaves lies in no memory */
    base.direct = true;
    for (size_t i = 0; i < SMG_COUNT_OF(direct_shapes); i++) {
        lane_shape shape = direct_shapes[i];
        shape.cols = (int)t->subgroup_size;
        if (base.row_axis < 0 && shape.row_registers > 1) continue;
        SMG_TRY(sched_add(e, &shape, false, base));
    }
    return SMG_OK;
}

/* Products with something between them, on the same cores: lanes are rows. The others of the workgroup have nothing
 * that a lane needs, so it is one subgroup. */
static const int alone_slices[] = {16, 8, 4};

static smg_status add_alone(enumerator *e, smg_schedule base) {
    const smg_target *t = e->target;
    bool chain = e->roles.contractions > 1 && base.temporal >= 0 && base.held == 0 && base.col_axis < 0;
    if (!chain || base.row_axis < 0 || !(base.grid & SMG_AXIS_BIT(base.row_axis)) || base.more_rows[0] >= 0)
        return SMG_OK;
    if (!reads_in_place(t)) return SMG_OK;
    base.alone = true;
    base.lane_rows = base.subgroup = (int)t->subgroup_size;
    base.lane_cols = base.lane_depth = base.vec = base.row_run = 1;
    for (size_t i = 0; i < SMG_COUNT_OF(alone_slices); i++) {
        lane_shape shape = {base.lane_rows, 1, 1, alone_slices[i], 16, 1};
        sched_set_tiles(e, &shape, true, &base);
        if (sched_has_room(e, &base)) SMG_TRY(sched_list(e, &base));
    }
    return SMG_OK;
}

smg_status sched_add_unstaged(enumerator *e, const smg_schedule *base) {
    SMG_TRY(add_direct(e, *base));
    return add_alone(e, *base);
}

/* Products that read each element of a factor for few results, on cores that hide loads: factors come from where they
 * lie, and many lanes share out the contraction, so that loads are under way everywhere. Neighbouring lanes have
 * neighbouring columns, in runs, or neighbouring elements of the contraction, whichever are neighbours in memory. */
#define STREAM_AHEAD 16     /* k of a lane that one slice has */
#define STREAM_SUBGROUPS 16 /* of a core */
#define STREAM_LOADS 8   /* of a lane that one slice has of each column, where it goes by groups of 16-bit elements */
#define STREAM_NARROW 32 /* columns of the narrowest block by runs */

/* Cores without a workgroup read nothing: wide blocks only where each core has two of them. Subgroups that go along the
 * contraction wait for each of their slices: of one column each where a core has too few of them otherwise. */
static bool leaves_cores_idle(const enumerator *e, const smg_schedule *s) {
    int64_t lanes = (int64_t)s->lane_cols * s->lane_depth, subgroups = lanes / e->target->subgroup_size;
    double groups = 1, least = s->depth_near ? STREAM_SUBGROUPS / (double)subgroups : 2;
    if (s->depth_near ? s->tile[s->col_axis] <= s->lane_cols : s->tile[s->col_axis] <= STREAM_NARROW) return false;
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t blocks = (e->nominal[a] + s->tile[a] - 1) / s->tile[a];
        if (s->grid & SMG_AXIS_BIT(a)) groups *= (double)blocks;
    }
    return groups < least * (double)e->target->cores;
}

static smg_status push_streamed(enumerator *e, const lane_shape *shape, smg_schedule s) {
    int64_t lanes = (int64_t)shape->cols * shape->depth;
    if (lanes < e->target->subgroup_size || lanes > e->target->max_invocations || lanes > e->target->max_size_x)
        return SMG_OK;
    s.lane_cols = shape->cols;
    s.lane_depth = shape->depth;
    sched_set_tiles(e, shape, false, &s);
    if (leaves_cores_idle(e, &s) || !sched_has_room(e, &s)) return SMG_OK;
    return sched_push(e, s);
}

/* Neighbouring lanes have neighbouring elements of the contraction, in groups of 16 bytes. */
static smg_status add_streamed_along(enumerator *e, smg_schedule base, int rows) {
    int along = smg_sched_largest(e->sums[0], e->nominal), depth = base.subgroup;
    if (along < 0) return SMG_OK; /* products that sum nothing up */
    bool halves = sched_runs_along(e, along, 2);
    int group = halves ? 2 * SCHED_LOAD : SCHED_LOAD, most = halves ? group * STREAM_LOADS : 2 * SCHED_LOAD;
    base.depth_near = true;
    base.vec = 1;
    while (depth > 1 && (int64_t)depth * group > e->nominal[along]) depth /= 2;
    for (int cols = 1; depth > 1 && cols <= 8; cols *= 2)
        for (int registers = 1; registers <= 8; registers *= 2)
            for (int k = 2 * SCHED_LOAD; k <= most && k * registers <= STREAM_AHEAD * group; k *= 2) {
                lane_shape shape = {1, cols, rows, registers, depth * k, depth};
                SMG_TRY(push_streamed(e, &shape, base));
            }
    return SMG_OK;
}

smg_status sched_add_streamed(enumerator *e, const smg_schedule *of) {
    const smg_target *t = e->target;
    smg_schedule base = *of;
    int64_t rows = base.row_axis < 0 ? 1 : e->nominal[base.row_axis], row_registers = 1;
    bool alone = e->roles.contractions > 0 && base.temporal < 0 && base.columns == 0 && base.col_axis >= 0;
    if (!alone || !smg_target_switches_lanes(t) || !smg_target_hides_loads(t) || rows > SCHED_FEW_ROWS) return SMG_OK;
    while (row_registers < rows) row_registers *= 2;
    base.direct = base.guarded = true;
    base.lane_rows = 1;
    base.vec = sched_runs_along(e, base.col_axis, 2) && t->storage16 ? 2 * SCHED_LOAD : SCHED_LOAD;
    base.subgroup = sched_subgroup(t);
    for (int cols = 32 / base.vec; cols <= 128 / base.vec; cols *= 2)
        for (int depth = 4; cols * depth <= 512; depth *= 2) {
            lane_shape shape = {1, cols, (int)row_registers, base.vec, depth * STREAM_AHEAD, depth};
            SMG_TRY(push_streamed(e, &shape, base));
        }
    return add_streamed_along(e, base, (int)row_registers);
}
