/* sched: the ways to cut one space for one target.
 *
 * Takes:    a space, a target, nominal sizes (for preferences only, never for legality).
 * Gives:    schedules: which axis goes to the grid, which is tiled over row lanes and column lanes, which
 *           is cut temporally, which contraction axes are staged, and all tile sizes.
 * Promises: deterministic order, none twice; every schedule is legal by the slicers; those that the caller knows to
 *           break the target's limits are left out, of the others that is decided after lowering, when registers and
 *           shared bytes are known.
 * Does not: emit code or price it.
 */
#ifndef SMG_SCHED_H
#define SMG_SCHED_H

#include "slice/slice.h"
#include "space/space.h"
#include "target/target.h"

#define SMG_SPACE_NODES 96
#define SMG_MORE_ROWS 4

typedef struct smg_schedule {
    const smg_space *space;
    smg_axis_set grid;    /* spatial axes: workgroups */
    smg_axis_set anew;    /* of the grid: not spatial, what lacks them is computed anew in each block */
    int row_axis;         /* the axis over row lanes, spatial where one serves; -1 */
    int col_axis;         /* a spatial axis tiled over column lanes; -1 */
    int temporal;         /* the axis cut into serial slices; -1 */
    smg_axis_set serial;  /* more of them, an element at a time: loops around the one over its slices */
    smg_space_form form;  /* of the space */
    bool one_by_one;      /* slices of one element, for products that have another axis to contract */
    smg_axis_set inner;   /* contraction axes that only staged operands have */
    smg_axis_set columns; /* axes of values held in the block that are not spatial */
    /* Over row lanes in what lacks row_axis and those before it; -1 behind the last. */
    int8_t more_rows[SMG_MORE_ROWS];
    smg_axis_set held; /* short ones of them: each lane has all of it */
    int64_t tile[SMG_SPACE_AXES];
    int8_t left[SMG_SPACE_NODES]; /* CONTRACT: the operand with the rows */
    int lane_rows, lane_cols, lane_depth, subgroup;
    int vec;         /* neighbouring columns of a lane */
    int row_run;     /* neighbouring rows of a lane; 0 or 1: its rows lie as far apart as there are row lanes */
    bool depth_near; /* lanes that share out a contraction are neighbours, and so are the elements they read */
    int ahead;       /* slices are fetched before they are needed: 0, 1, or 2: all of a step's products' at once */
    int slots;       /* of what is staged in the loop over slices, where they are fetched ahead; 1: they wait */
    bool guarded;    /* direct: what is behind the ends is checked for, so that tiles need not come out even */
    bool direct;     /* products read both operands where they lie in memory, without shared memory */
    bool alone;  /* each lane has its rows alone: of products it holds left factors, and reads right ones in memory */
    bool across; /* what is reduced lies apart, and col_axis side by side: that takes runs and column lanes first */
    bool groups; /* what is reduced is loaded in runs of `vec` first, by as many elements at a time */
    const smg_matrix_shape *matrix; /* of the target: products are made by it; NULL: on the scalar tier */
    const smg_layout *matrix_sums;  /* then: where a subgroup has what it adds up, of the target too; NULL: opaque */
    const smg_layout *matrix_left;  /* and a left factor; NULL: nobody knows */
    const smg_layout *matrix_right; /* and a right one */
    int rings;                      /* slots of all that is on its way to a product; 0: factors wait where it is */
    bool streams;                   /* factors are read from memory by the lanes whose matrices they are; with rings
                                       right ones, a step ahead */
    int matrix_rows, matrix_cols;   /* and subgroups along rows and columns */
    bool rows_next;                 /* the next block has other rows and the same columns */
    int64_t band;                   /* then: up to so many blocks of rows, before other columns of these; 0: all */
    bool reuse;                     /* shared tiles that are never needed together lie on the same memory */
    uint64_t shape;                 /* hash, within one list, of all but vec, row_run, ahead, slots and reuse */
} smg_schedule;

typedef struct smg_schedules {
    SMG_ARRAY(smg_schedule) items;
    const char *refused; /* why there is none */
} smg_schedules;

/* Asked of each shape of blocks, for its schedule that needs least; NULL: all have room. */
typedef struct smg_sched_room {
    bool (*has)(void *user, const smg_schedule *schedule);
    void *user;
    bool by_matrices; /* schedules without have none */
} smg_sched_room;

/* nominal[axis of space]: the extent to prefer for; at least 1. */
smg_status smg_sched_candidates(const smg_space *space, const smg_target *target, const int64_t *nominal,
                                smg_sched_room room, smg_arena *arena, smg_schedules *out_schedules);
/* Of a schedule with a matrix: where a subgroup has its sums, opaque ones once they have been in shared memory. *room
 * is for the layout of these. */
const smg_layout *smg_sched_sums(const smg_schedule *schedule, smg_layout *room);
/* Are its factors of the type, and its sums f32? Others serve no product. */
bool smg_sched_matrix_is_of(const smg_matrix_shape *shape, smg_type factor);
/* May products sum up in pairs of f16? Their factors and results are f16 in memory, and nothing is reduced. */
bool smg_sched_pairs(const smg_space *space, const smg_target *target);
/* Products of 16-bit factors of one type that read a constant one best where it lies along what is contracted. */
typedef struct smg_along {
    int64_t results; /* those of at most so many results; 0: none */
    /* Where they have so many rows, in blocks of so many of its rows and so much of what is contracted: a subgroup's
     * lanes load one block together. 0: as it is. */
    int64_t rows;
    int block_rows, block_cols;
    int64_t streamed; /* results of a product that is one block for each core at most, read straight from memory */
} smg_along;
smg_along smg_sched_along(const smg_target *target, smg_type factor);
/* Columns side by side of a weight that products read where it lies, all rows of these columns one behind the other.
 * 0: none do. (Panels of a packed factor: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
 * 2008, section 5.) */
int smg_sched_panel(const smg_target *target);
/* Tells schedules of one space apart; equal ones have equal hashes, in every run and on every machine. */
uint64_t smg_schedule_hash(uint64_t seed, const smg_schedule *schedule);
void smg_sched_print(const smg_schedule *schedule, smg_text *text);

#endif
