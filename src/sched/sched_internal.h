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
/* May all of these axes be cut temporally together? Each reduction goes over all of them or has none of them, and so
 * does each result; products hold what they contract. */
bool smg_sched_serial(const smg_space *space, smg_axis_set axes);
/* The axis of `among` along which the last result that is stored lies next to each other in memory. */
int smg_sched_unit_axis(const smg_space *space, smg_axis_set among);
/* The axis along which the largest tensor that something here reduces lies next to each other in memory. */
int smg_sched_run_axis(const smg_space *space, const smg_roles *roles, const int64_t *nominal);
/* By nominal extents; ties go to the lower number. */
int smg_sched_largest(smg_axis_set among, const int64_t *nominal);

/* Hashes of schedules. */
typedef struct sched_seen {
    uint64_t *hash; /* by place; 0: free */
    int room, count;
} sched_seen;

/* sched_hash.c: is it none that was asked about before? */
uint64_t sched_shape_hash(const smg_schedule *s);
/* shape: of the schedule. */
smg_status sched_is_new(sched_seen *seen, uint64_t shape, const smg_schedule *s, smg_arena *arena, bool *out_is);

typedef struct enumerator {
    const smg_space *space;
    const smg_target *target;
    const int64_t *nominal;
    smg_sched_room room;
    smg_arena *arena;
    smg_schedules *out;
    sched_seen seen; /* what is listed */
    smg_roles roles;
    smg_axis_set anew;
    smg_axis_set sums[SMG_SPACE_NODES]; /* of each product what it contracts */
    int products;                       /* of two factors first, then sums that are products with 1 */
    int factored;                       /* of these the ones of two factors */
    int beside;                         /* the most products that sum over one axis */
    int run_axis;                       /* along which what is reduced lies side by side; -1 */
    bool by_fours;                      /* in whole runs of four: one load each */
    bool crowded;                       /* the shape that was added last had no room: longer slices have none either */
    bool pairs;                         /* products of f16 sum up in pairs */
} enumerator;

typedef struct lane_shape {
    int rows, cols; /* lanes */
    int row_registers, col_registers;
    int inner; /* slice of a contraction, or of what one lane reduces across columns */
    int depth; /* lanes that share out the contraction */
} lane_shape;

#define SCHED_LOAD 4      /* elements of 32 bits that one load takes */
#define SCHED_FEW_ROWS 16 /* products of no more use each element of a factor for few results */

/* sched_tiles.c: the number, where the axis's extent is one. */
bool sched_constant(const enumerator *e, int axis, int64_t *out);
/* Do elements of a product's operand that lie side by side in memory run along the axis? bytes: of one; 0: any. */
bool sched_runs_along(const enumerator *e, int axis, int64_t bytes);
/* Does a product by matrices contract as much as is whole where it has room, and comes in slices where it has none? */
bool sched_whole_or_sliced(const enumerator *e, const smg_schedule *s);
/* Axes of which staged operands have slices: of each product the longest that it sums over; where two have one in
 * common, that one is both's. */
smg_axis_set sched_sliced_axes(const enumerator *e, const smg_schedule *s);
/* Sizes of every axis for one lane shape. `whole`: a short contraction that only staged operands have is one slice, so
 * that a left operand is staged once for all slices of the temporal axis. */
void sched_set_tiles(const enumerator *e, const lane_shape *shape, bool whole, smg_schedule *s);
/* What a repetition carries has room for whole slices of it. */
void sched_fill_slices(smg_schedule *s);

/* sched_add.c: lanes of a subgroup that may tell each other values; 1: there are none. */
int sched_subgroup(const smg_target *t);
bool sched_has_room(const enumerator *e, const smg_schedule *s);
/* Is there room for what blocks of all shapes have: one element of each axis that a shape cuts, and all of the others?
 * Where long axes are held most grids have none. */
bool sched_least_has_room(const enumerator *e, smg_schedule s);
/* May lanes share out a contraction? A running sum is corrected in between: its parts would have to be joined in every
 * slice, or body. */
bool sched_shares_depth(const enumerator *e, const smg_schedule *s);
bool sched_takes_turns(const enumerator *e, const smg_schedule *s); /* may shared tiles lie on the same memory? */
/* Is a slice summed up in pairs of f16? Its elements are half as large then. */
bool sched_in_pairs(const enumerator *e, const lane_shape *shape);
/* Lists the schedule, where it is not listed yet: short extents make one slice of several lengths. */
smg_status sched_list(enumerator *e, const smg_schedule *s);
/* The schedule; and with the target's slots, where a slice that is fetched ahead may go into one of its own and tiles
 * take no turns on their memory. */
smg_status sched_push(enumerator *e, smg_schedule s);
/* All schedules with lanes of that shape: wide and narrow runs, slices that are fetched ahead or not, tiles that take
 * turns or not. e->crowded says afterwards whether there is no room for any. */
smg_status sched_add(enumerator *e, const lane_shape *shape, bool whole, smg_schedule base);

/* sched_staged.c: products whose factors are staged. */
smg_status sched_add_staged(enumerator *e, const smg_schedule *base);
/* A side of a block is no more than twice as long as its axis, or the least. */
bool sched_side_fits(int64_t side, int64_t extent, int64_t least);
/* sched_unstaged.c: products that read factors where they lie, lanes having elements or rows; and, of few rows, with
 * lanes that share out the contraction. */
smg_status sched_add_unstaged(enumerator *e, const smg_schedule *base);
smg_status sched_add_streamed(enumerator *e, const smg_schedule *base);
/* sched_matrices.c: schedules whose products are made by the target's matrices. */
smg_status sched_add_matrices(enumerator *e, const smg_schedule *base);

#endif
