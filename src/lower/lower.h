/* lower: from a schedule to a tile program.
 *
 * Takes:    one schedule of a space.
 * Gives:    a tile program (kernel/), or the reason why the schedule has none.
 * Promises: what the temporal slicer derives (passes, running aggregates, updates, postponed factors) comes from the
 *           algebra in slice/ and is noted on the instructions, so that explain only prints what the program carries.
 * Does not: choose schedules; price programs.
 */
#ifndef SMG_LOWER_H
#define SMG_LOWER_H

#include "kernel/kernel.h"
#include "sched/sched.h"

/* Words behind each run of a shared operand: one 16-byte group keeps runs whole groups and spreads neighbouring ones
 * over the banks. */
#define SMG_OPERAND_PAD 4
#define SMG_MATRIX_PAD 8 /* the same of 16-bit elements */
/* Of shared memory that lanes exchange through at a time; more registers take turns. */
#define SMG_EXCHANGE_BYTES 16384
/* The same of opaque sums, unless one matrix of each subgroup is more. */
#define SMG_OPAQUE_BYTES 8192

/* Registers of a turn of lanes' exchange, of `all`, each so many words of shared memory. Where each part may have a
 * share of them, one for each at least, if twice as many bytes hold these; parts is 1 where none may. */
int64_t smg_exchange_turn(int64_t words, int64_t parts, int64_t all);

/* One pass of lowering: its name, and in a line what it does. */
typedef struct smg_lower_pass {
    const char *name, *what;
} smg_lower_pass;
int smg_lower_pass_count(void);
const smg_lower_pass *smg_lower_pass_get(int number); /* in their order */

typedef struct smg_lower_options {
    const char *name;         /* of the kernel; kept as it is */
    const smg_target *target; /* whose lanes run it and whose driver builds it */
    smg_text *why;  /* collects lines about passes over the temporal axis, updates and postponed factors; NULL */
    bool verify;    /* after each pass; INTERNAL names it */
    smg_map *asked; /* smg_slice_roles.asked: structures of one space ask the same; may be NULL */
    /* Called with the program after each pass; NULL. A failure ends lowering. */
    smg_status (*after)(void *user, int pass, const smg_kernel *k);
    void *user;
} smg_lower_options;

/* *out_refused (static or arena text) says why this schedule has no program; *out_kernel is then NULL. */
smg_status smg_kernel_lower(const smg_schedule *schedule, const smg_lower_options *options, smg_arena *arena,
                            smg_kernel **out_kernel, const char **out_refused);
/* The same in two halves, but for the last passes, on which no price depends. The structure depends on which axes are
 * cut and which tiles cover theirs, not on lanes and sizes: one serves all schedules that agree in that. Fitting copies
 * it, and gives the copy lanes, tile sizes, layouts and memory of one schedule. */
smg_status smg_kernel_structure(const smg_schedule *schedule, const smg_lower_options *options, smg_arena *arena,
                                smg_kernel **out_kernel, const char **out_refused);
smg_status smg_kernel_fit(const smg_kernel *structure, const smg_schedule *schedule, const smg_lower_options *options,
                          smg_arena *arena, smg_kernel **out_kernel, const char **out_refused);

/* A copy of the structure, to see what schedules make of its tiles. */
smg_status smg_kernel_probe(const smg_kernel *structure, smg_arena *arena, smg_kernel **out_probe);
/* The probe gets layouts and the order of operands, as often as one likes. Enough to see whether its registers and
 * shared memory are there; what lanes exchange comes on top. Not of schedules by matrices. */
smg_status smg_kernel_retile(const smg_kernel *structure, const smg_schedule *schedule, smg_kernel *probe);
/* As smg_kernel_fit, from a probe that has them for this schedule. */
smg_status smg_kernel_fit_probe(const smg_kernel *probe, const smg_schedule *schedule, const smg_lower_options *options,
                                smg_arena *arena, smg_kernel **out_kernel, const char **out_refused);

/* How the lanes of a workgroup are dealt out: lane = (depth * rows + row) * cols + column, or woven in products. */
typedef struct smg_lane_grid {
    int rows, cols; /* lanes */
    int depth;      /* lanes that share out the contraction of products; for everything else they are copies */
    int depth_run;  /* neighbours along it that one of them takes in turn, at least */
    int vec;        /* neighbouring columns a lane owns */
    int row_run;    /* and rows; 0: single ones */
    int row_axis;   /* distributed over row lanes; -1 */
    /* Over row lanes in what does not meet row_axis or those before it; -1 behind the last. May be NULL. */
    const int8_t *more_rows;
    int col_axis; /* takes runs and column lanes before all others; -1: the last axis of a tile does */
    int subgroup;
    bool depth_near; /* depth lanes are neighbours: lane = (row * cols + column) * depth + depth lane */
    bool numbered;   /* lanes are known by their subgroup: a subgroup is one row lane */
    /* By kernel->matrix, where it has one: subgroups along rows and columns; lanes lie as the matrix says. */
    int matrix_rows, matrix_cols;
    uint64_t held; /* axes beside them: a lane has matrices for each of their elements */
} smg_lane_grid;
/* Gives register tiles and instructions their layouts (lower_distribute.c). All lane counts are powers of two. */
smg_status smg_kernel_distribute(smg_kernel *k, const smg_lane_grid *grid);

/* Which neighbours are loaded, stored and multiplied at once, and what is read by address (lower_wide.c), once layouts
 * and memory are chosen. */
void smg_kernel_widen(smg_kernel *k, const smg_target *target);

/* What the sizes of a run must be multiples of for a form without checks (lower_even.c), once tiles and `wide` are
 * chosen. */
smg_status smg_kernel_find_evens(smg_kernel *k, const smg_target *target);

/* A loop of at most so many steps is written out where lanes read factors from memory: all loads are on their way
 * together then. ONCE: one that no other loop repeats. */
#define SMG_STREAM_STEPS 16
#define SMG_STREAM_STEPS_ONCE 4
/* Decides what is written out and what stays a loop (lower_unroll.c), within the target's budget of code where that is
 * possible: smg_kernel_operations tells. The last pass; hand-written programs ask for it themselves. */
void smg_kernel_unroll(smg_kernel *k, const smg_target *target);

/* What lanes tell each other as instructions, for hand-written programs (lower_exchange.c); INVALID where the target
 * has no operations for it. */
smg_status smg_kernel_exchange_lanes(smg_kernel *k, const smg_target *target);

#endif
