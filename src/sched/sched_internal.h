/* sched_internal.h: shared by the files of sched/. */
#ifndef SMG_SCHED_INTERNAL_H
#define SMG_SCHED_INTERNAL_H

#include "sched/sched.h"

typedef struct smg_roles {
    smg_axis_set spatial;    /* may be cut over workgroups */
    smg_axis_set columns;    /* held whole or cut temporally */
    smg_axis_set contracted; /* summed by some product */
    smg_axis_set inner;      /* contracted and nowhere held: staged in slices */
    smg_axis_set loose;      /* of streamed results that lack a spatial axis: not handled */
    int reductions, contractions;
} smg_roles;

void smg_sched_classify(const smg_space *space, smg_roles *out_roles);
bool smg_sched_sides(const smg_space *space, const smg_roles *roles, int row, int col, int8_t *out_left);
int smg_sched_unit_axis(const smg_space *space, smg_axis_set among);
int smg_sched_largest(smg_axis_set among, const int64_t *nominal);

#endif
