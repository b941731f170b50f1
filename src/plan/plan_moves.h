/* plan_moves.h: what is tried on a cut list beside the cuts of its line: plan_moves.c, plan_anew.c. */
#ifndef SMG_PLAN_MOVES_H
#define SMG_PLAN_MOVES_H

#include "plan/plan_internal.h"

/* Places [from, to) of an order. */
typedef struct span {
    int from, to;
} span;

/* The groups of a cut, in an order that moves may change; one that is tried goes into another planner's order. */
typedef struct mover {
    planner *p; /* of the order at hand */
    plan_budget budget;
    planner trial; /* of an order that a move makes */
    smg_arena *arena;
    bool *live;
    /* sources[first[id]] .. sources[first[id + 1]]: tensors and nodes of the order that `id` reads, through what it
     * computes anew. */
    int *first;
    SMG_ARRAY(smg_node_id) sources;
    int *ends, *trial_ends; /* of each group */
    const segment **made, **trial_made;
    int count, trial_count;
    smg_moves *moves;
} mover;

static inline span moves_group(const mover *m, int group) {
    return (span){group > 0 ? m->ends[group - 1] : 0, m->ends[group]};
}

static inline bool moves_is_in(span s, int place) {
    return place >= s.from && place < s.to;
}

smg_status moves_find_sources(mover *m);
/* Begins the order of the trial, and adds these nodes to it as a group; none when there are none. */
void moves_begin(mover *m);
void moves_append(mover *m, const smg_node_id *nodes, int count, const segment *s);
/* All of them are there. */
void moves_end(mover *m);
/* The trial is the order at hand from now on. */
smg_status moves_take(mover *m);
/* May another segment get a price? If not, a move less is tried. */
bool moves_may_price(mover *m);
/* Is a move taken that changes the cost, and the seconds, by so much? Time alone is not to grow for what is kept in
 * memory, which a cost counts more than once. */
bool moves_is_cheaper(const mover *m, double cost, double seconds);
/* Is the segment possible, and does it gain what the options ask for? */
smg_status moves_is_allowed(mover *m, planner *p, span nodes, const segment *s, bool *out_allowed);
/* Keeps for explain what was taken. */
smg_status moves_note(mover *m, const char *what, double seconds, double apart);

/* plan_join.c: groups that are no neighbours in the order, or parts of them, as one. */
smg_status moves_join(mover *m);

/* plan_anew.c: values that several groups read, computed anew by each of them. */
smg_status moves_compute_anew(mover *m);

#endif
