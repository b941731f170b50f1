/* plan_outline.h: what a space makes its schedules do, without their sizes: which folds, factors and results there are,
 * what each loads and evaluates, which are needed at the same time, and in which pass over an axis each runs. */
#ifndef SMG_PLAN_OUTLINE_H
#define SMG_PLAN_OUTLINE_H

#include "plan/plan_internal.h"

/* What some expression loads, or a result that is stored. */
typedef struct outline_access {
    smg_node_id source;
    smg_axis_set axes;
    int unit;     /* the axis along which it lies side by side; -1 */
    double size;  /* bytes of an element */
    double whole; /* bytes of as many elements as the axes have, at most all of the source */
    bool kept;    /* in registers */
    bool again;   /* an earlier value keeps it, too */
} outline_access;

/* What a fold, a factor or a result evaluates for each of its elements. */
typedef struct outline_value {
    smg_axis_set axes; /* that it varies along */
    double cost;       /* multiply-adds */
    double index_cost; /* of these, where it loads: one for each step of a walk by all lanes, whose price has it */
    int first, loads;  /* in outline->accesses */
    double new_cost;   /* of these what no earlier one computes, too: registers keep it */
    int store;         /* of a result, there, too */
    uint64_t folds;    /* that it reads */
} outline_value;

/* A reduction or a product. */
typedef struct outline_fold {
    bool product;
    int node;
    smg_axis_set result, folded;
    outline_value value[2]; /* of a product both factors, as operands stand */
    uint64_t live;          /* folds that are needed while this one runs, itself among them */
    int alike;              /* the first one with this result */
    int sum;                /* the node that only adds this product to an earlier one, whose sums go on; -1 */
} outline_fold;

#define OUTLINE_FOLDS 64 /* further ones, and further results, count nothing */
#define OUTLINE_PASSES 4 /* further ones count as the last */

/* What the passes over a temporal axis have: folds and results, by number. */
typedef struct outline_passes {
    int count;
    uint64_t folds[OUTLINE_PASSES], stores[OUTLINE_PASSES];
    uint64_t running; /* folds over the axis: held from before the loop */
} outline_passes;

struct plan_outline {
    const smg_space *space;
    const smg_target *target;
    bool switches, hides, pairs;
    bool joins; /* there are products: what lanes fold over slices they join in each of them, else behind the loop */
    int axes;
    int64_t extent[SMG_SPACE_AXES];
    int64_t most[SMG_SPACE_AXES]; /* that an extent can be */
    double share[SMG_SPACE_AXES]; /* of a temporal axis: of its slices, that loops go to */
    plan_uneven uneven;           /* of the schedule at hand */
    SMG_ARRAY(outline_access) accesses;
    int buffers; /* of them, at least */
    SMG_ARRAY(outline_value) stores;
    int fold_count;
    outline_fold *fold;
    int fold_of[SMG_SPACE_NODES]; /* by node; -1 */
    outline_passes straight;      /* no temporal axis */
    outline_passes *along;        /* by temporal axis */
};

static inline uint64_t bit_of(int i) {
    return UINT64_C(1) << i;
}

/* Takes the lowest axis out of the set: its bit times a de Bruijn sequence has another number on top for each. */
static inline int next_axis(smg_axis_set *io_set) {
    static const int8_t axis_of[32] = {0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
                                       31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};
    smg_axis_set lowest = *io_set & (~*io_set + 1);
    *io_set ^= lowest;
    return axis_of[(lowest * UINT32_C(0x077CB531)) >> 27];
}

/* Do both read the same elements in the same order? */
static inline bool same_access(const outline_access *a, const outline_access *b) {
    return a->source == b->source && a->axes == b->axes && a->unit == b->unit;
}

#endif
