/* sched_internal.h: shared by the files of sched/. */
#ifndef SMG_SCHED_INTERNAL_H
#define SMG_SCHED_INTERNAL_H

#include "sched/sched.h"

typedef struct smg_roles {
    smg_axis_set spatial;    /* cut over workgroups */
    smg_axis_set columns;    /* held whole or cut temporally */
    smg_axis_set held;       /* read at other elements than the reader's: whole in each lane */
    smg_axis_set contracted; /* summed by some product */
    smg_axis_set inner;      /* contracted and nowhere held: staged in slices */
    smg_axis_set loose;      /* of streamed results that lack a spatial axis: not handled */
    int reductions, contractions;
} smg_roles;

/* sched_roles.c. All answer from mappings alone; -1 is no axis. `cut`: the axes of the grid. */
void smg_sched_classify(const smg_space *space, smg_axis_set cut, smg_roles *out_roles);
/* Which operand of every contraction has the rows, with the schedule's grid, row axis and column axis, and which other
 * axes are rows of those that lack the row axis; false where one contraction cannot. */
bool smg_sched_sides(smg_schedule *schedule);
/* Must slices of the temporal axis be of one element? Where a product contracts it beside another held axis, or has it
 * in both factors: of two contracted axes it walks one, and the columns of its factors are apart. */
bool smg_sched_one_by_one(const smg_schedule *schedule);
/* The axis of `among` along which the last result that is stored lies next to each other in memory. */
int smg_sched_unit_axis(const smg_space *space, smg_axis_set among);
/* The axis along which the largest tensor that something here reduces lies next to each other in memory. */
int smg_sched_run_axis(const smg_space *space, const smg_roles *roles, const int64_t *nominal);
/* By nominal extents; ties go to the lower number. */
int smg_sched_largest(smg_axis_set among, const int64_t *nominal);

#endif
