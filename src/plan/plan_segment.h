/* plan_segment.h: segments in three steps. Which nodes they are, and what is known of them (plan_segment.c); the
 * schedules of their space, tried (plan_trial.c); and what the one that was taken becomes (plan_step.c). */
#ifndef SMG_PLAN_SEGMENT_H
#define SMG_PLAN_SEGMENT_H

#include "plan/plan_internal.h"

/* Of a segment: of a repetition those of its first body. */
typedef struct segment_members {
    smg_node_id nodes[PLAN_MAX_MEMBERS];
    int count;
    bool alone; /* they are no smaller segment's */
    int body;   /* so many of the order are one body; 0: it is no repetition */
    smg_srepeat repeat;
} segment_members;

/* Of the nodes [from, to) of the order; of their equal bodies, where one has `body` nodes. */
smg_status plan_find_members(planner *p, int from, int to, int body, smg_arena *arena, segment_members *out);

/* A schedule whose program fits the target, and its price. */
typedef struct fitted {
    smg_price price;
    smg_schedule schedule;
} fitted;

typedef SMG_ARRAY(fitted) fitted_list;

/* What programs of these nodes plan less than: so many registers were too many for the driver, of them or of what they
 * share nodes with. INT64_MAX: nothing was. */
int64_t plan_too_many_registers(const planner *p, uint64_t key, const segment_members *of);
/* What is best for these nodes, in *io, which has its key, its structure and nothing else; where guesses say that it
 * takes far more than so many seconds io->least, instead. out_all (may be NULL): all that fit, the cheapest first. What
 * it makes beside the segment lasts until it is called again. */
smg_status plan_try_segment(planner *p, const segment_members *of, double within, segment *io, fitted_list *out_all);

#endif
