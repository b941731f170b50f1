/* plan_parts.h: sums over one axis in parts. The axis of a group of nodes becomes two, which part and where in it;
 * every sum along it becomes a sum of each part and one over the parts. */
#ifndef SMG_PLAN_PARTS_H
#define SMG_PLAN_PARTS_H

#include "plan/plan_internal.h"
#include "slice/slice.h"

/* What is to be split. */
typedef struct plan_split {
    const bool *run;  /* per node: belongs to the kernels that are to be in parts */
    smg_node_id node; /* a value of the group, or one that it reads, which has the axis */
    int axis;         /* of its dims */
    int64_t chunk;    /* elements of a part */
} plan_split;

/* An expression in parts, or what stands behind a part's end. */
typedef struct parts_made {
    int32_t key;
    int behind;
    double outside;
    smg_node_id node;
} parts_made;

typedef enum parts_leaf_kind { PARTS_VALUE, PARTS_OLD, PARTS_RUNNING } parts_leaf_kind;
typedef struct parts_leaf {
    parts_leaf_kind what;
    smg_node_id node; /* of the graph that is split */
} parts_leaf;

/* The value of a node, as an expression. */
typedef struct parts_expr {
    smg_expr expr;
    smg_node_id node; /* of the graph that is split */
} parts_expr;

typedef struct parts {
    const planner *before;
    planner *p; /* of the graph in the making */
    const smg_graph *g;
    smg_graph *to; /* the graph in the making */
    smg_arena *arena;
    plan_split split;
    const bool *own;        /* per node: belongs to the group: sums of these kernels, and what they are made of there */
    smg_size extent, count; /* of the axis; its parts */
    bool even;              /* no part is cut off */
    int around_count;
    smg_node_id *around; /* the group, views and what it reads, ascending */
    int *axis;           /* per node: the dim that is the axis, -1 */
    bool *depends;       /* per node: on a sum over it */
    bool clash;          /* some value has the axis twice, or of another extent */
    bool bare;           /* the group is sums alone: what they are made of comes whole */
    SMG_ARRAY(smg_node_id) waiting;
    smg_node_id *now;                 /* per node: the node of `to` that has its value */
    smg_node_id *whole, *part;        /* per sum: over all, and of parts, the axis kept with extent 1; -1 */
    SMG_ARRAY(parts_made) values;     /* nodes in parts, by their id */
    SMG_ARRAY(parts_made) exprs_made; /* expressions in parts */
    SMG_ARRAY(parts_made) masked;     /* nodes of `to` with `outside` behind the end */
    int valid[SMG_MAX_RANK + 1]; /* by what is behind: node of `to`, + 1, of the truth that an element is before it */
    smg_exprs *exprs;
    SMG_ARRAY(parts_leaf) leaves;
    SMG_ARRAY(parts_expr) known;
    SMG_ARRAY(smg_type) storage;     /* of the nodes of `to` */
    SMG_ARRAY(smg_node_id) from;     /* of them: the node whose value it has; -1: none */
    SMG_ARRAY(int) together, merges; /* of them: as the planner's */
    int sums;
} parts;

/* ---- plan_parts.c: which values have the axis, and what they are in parts ------------------------------------ */

/* Finds the axis in all values of the group; false: it is no axis there. */
smg_status parts_find(parts *s, bool *out_found);
bool parts_is_inside(const parts *s, smg_node_id id);
/* Does the node fold the axis? */
bool parts_folds(const parts *s, smg_node_id id);
/* The letter of the axis in a product, 0: it has none. */
char parts_letter(const parts *s, const smg_node *n);
/* Dims behind the axis. */
int parts_behind(const parts *s, smg_node_id id);
/* All of these give -1 where it is not to be had. The value in parts: anything behind the end, 0 where it is no value
 * of the group; then a node of that kind with `outside` there. */
smg_node_id parts_value(parts *s, smg_node_id id);
smg_node_id parts_mask(parts *s, smg_node_id node, int behind, double outside);
/* A node of `to` without the axis beside values in parts. */
smg_node_id parts_beside(parts *s, smg_node_id node, int behind);
smg_node_id parts_push(parts *s, smg_node node);
smg_node_id parts_number(parts *s, smg_type type, double value);
smg_node_id parts_map(parts *s, smg_op op, int count, smg_node_id a, smg_node_id b, smg_node_id c);
smg_node_id parts_reshape(parts *s, smg_node_id node, int rank, const smg_size *dims);
/* Replaces dim `axis` by the two. */
bool parts_split_dims(const parts *s, smg_node *io, int axis);

/* ---- plan_parts_sums.c --------------------------------------------------------------------------------------- */

/* The sum `id` by its parts: the node of its value; -1: not to be had. */
smg_status parts_sum(parts *s, smg_node_id id, smg_node_id *out_node);

/* ---- plan_parts_graph.c -------------------------------------------------------------------------------------- */

/* The sums of the group along the axis, in `arena`, which parts_folds tells; NULL where it is no axis there. */
smg_status parts_seek(const planner *p, const plan_split *split, smg_arena *arena, parts **out);
/* A planner of the graph in which they are in parts; NULL where they have none. */
smg_status parts_plan(parts *s, planner **out);

#endif
