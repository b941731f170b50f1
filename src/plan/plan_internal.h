/* plan_internal.h: segments of the linear order, their prices and the cache of repeated ones. */
#ifndef SMG_PLAN_INTERNAL_H
#define SMG_PLAN_INTERNAL_H

#include "lower/lower.h"
#include "plan/plan.h"

#define PLAN_MAX_SEGMENT 40
#define PLAN_MAX_PRODUCTS 4
#define PLAN_MAX_MEMBERS 80 /* of a segment, with what its nodes compute anew */

/* What is known of a segment once it has been tried; shared by all segments of the same structure. */
typedef struct segment {
    bool possible;
    smg_price price;
    smg_schedule schedule; /* space pointer is stale: the axes' numbers are what repeats */
    const char *refused;   /* when not possible */
    bool hopeless;         /* no common space: more nodes do not change that */
    int tried, fitted;     /* schedules */
} segment;

typedef struct planner {
    const smg_graph *g;
    const smg_target *target;
    const smg_plan_options *options;
    smg_context *ctx;
    smg_arena *arena;
    smg_map *cache;     /* structure hash -> segment */
    uint64_t *hash;     /* per node: what it does, smg_node_hash */
    int64_t *nominal;   /* per symbol */
    bool *prepared;     /* per node: computed once, by the prepare list */
    bool *inlined;      /* per node: computed anew by every reader */
    bool *bound;        /* per inlined node: it reads the result of a kernel, which has to come before its readers */
    bool preparing;     /* the order at hand is the prepare list's */
    int count;          /* nodes in the order */
    smg_node_id *order; /* compute nodes, no views or leaves */
    int *place;         /* per node: position in its order, -1 */
    int *last_use;      /* per node: position of its last reader; INT32_MAX for what leaves the list */
    bool *needed;       /* per node: scratch for one segment */
} planner;

/* plan_prepare.c: fills p->prepared. */
smg_status plan_mark_prepared(planner *p);
/* The order of the prepare list (p->preparing) or of the run list. */
smg_status plan_order(planner *p);
/* plan_inline.c: fills p->inlined. */
smg_status plan_mark_inlined(planner *p);
/* Multiply-adds that one element of a map takes; false for what is no map. */
bool plan_map_cost(const planner *p, smg_exprs *exprs, const smg_node *n, double *out_cost);
/* Adds what `count` nodes compute anew; the new count, -1 when there are too many. */
int plan_add_inlined(const planner *p, smg_node_id *io_nodes, int count);
/* Nodes [from, to) of the order and what they compute anew as a sorted list, needed[] set. The list has room for
 * PLAN_MAX_MEMBERS; the result is their number, or -1 when there are too many. */
int plan_members(planner *p, int from, int to, smg_node_id *out_nodes);
smg_status plan_segment(planner *p, int from, int to, const segment **out_segment);
/* Lowers the chosen schedule of a segment into the plan's arena. */
smg_status plan_lower(planner *p, int from, int to, const segment *s, smg_text *why, smg_pstep *out_step);

/* Price of a program at nominal sizes; false when it breaks a limit, with the reason. */
bool plan_price(const smg_kernel *k, const smg_target *t, const int64_t *symbols, smg_price *out_price,
                const char **out_refused);

#endif
