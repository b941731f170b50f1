/* plan_guesses.h: the schedules of a space in the order of their guesses (plan_rank.c). Most are never guessed:
 * schedules of one shape differ little, so what the first of them takes tells which others may be of use. */
#ifndef SMG_PLAN_GUESSES_H
#define SMG_PLAN_GUESSES_H

#include "plan/plan_internal.h"

/* How long the loops over an axis are under these tiles. */
typedef struct plan_loops {
    uint64_t tiles; /* a hash of them, the axis and the form; 0: none */
    double share;   /* of all steps, in the mean */
    plan_uneven uneven;
} plan_loops;

#define PLAN_LOOPS 64 /* that are remembered */

typedef struct plan_guesses {
    const planner *p;
    const plan_found *found;
    smg_kernel *const *loops;     /* by temporal axis: a program whose loops leave steps out; NULL */
    plan_loops known[PLAN_LOOPS]; /* at the place of the hash: many schedules have the same tiles */
    double *seconds;              /* per schedule: its guess; infinite where it has no room or was taken */
    bool *open;                   /* per schedule: these seconds are a bound, its guess is not known yet */
    int *heap, count;             /* schedules that are left, the least seconds on top */
} plan_guesses;

/* Guesses the first schedule of each shape; all of them where somebody asks how schedules were found. `found` and
 * loops[SMG_SPACE_AXES] outlive it. */
smg_status plan_guesses_make(const planner *p, const plan_found *found, smg_kernel *const loops[], smg_arena *arena,
                             plan_guesses *out);
/* Seconds that no price of them is below; 0 where none has a guess. */
double plan_guesses_least(plan_guesses *g);
/* Takes out the schedule with the lowest guess, of several that are equal the first; -1: none is left, or it is above
 * `most`. */
int plan_guesses_next(plan_guesses *g, double most, double *out_guess);

#endif
