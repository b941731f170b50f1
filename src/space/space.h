/* space: a set of graph nodes as one Space-Mapping Graph (SpaceFusion, EuroSys '25, section 3).
 *
 * Takes:    a graph and some of its nodes (views are never listed: they are index maps).
 * Gives:    smg_space: the common axes of all the nodes, after refinement (reshapes split axes) and
 *           coalescing (neighbours that are one run of memory in every operand merge); for each node its
 *           iteration axes; for each operand either the producing node in the set or a global view.
 * Promises: mappings are derived from index maps only: an operand that lacks an iteration axis is
 *           One-to-All along it; an iteration axis that the result lacks is All-to-One along it. A read of what
 *           lies in memory always has an index map: affine, shifted, with a border, divided or indirect; one of what is
 *           computed in the set is at the reader's own elements, or picks some of a short axis, or reads a copy: a map
 *           of sums that are at the reader's own elements, once more.
 * Does not: choose tile sizes or decide what is cut.
 */
#ifndef SMG_SPACE_H
#define SMG_SPACE_H

#include "graph/graph.h"

#define SMG_SPACE_AXES 32
typedef uint32_t smg_axis_set; /* bit i: axis i */
#define SMG_AXIS_BIT(i) ((smg_axis_set)1u << (i))

typedef struct smg_saxis {
    const char *name;
    smg_size extent;
    bool held; /* values are read at other elements along it than the reader's own: all of it stays together */
} smg_saxis;

#define SMG_VIEW_INDICES 6
#define SMG_VIEW_LAYERS 4

/* An index that no sum of axes gives: data, or a quotient. An INT expression over leaves of the space. */
typedef struct smg_sindex {
    smg_expr expr;
    smg_size range; /* values are in [0, range); SMG_SIZE_NONE: unknown, and not to be checked */
    bool checked;   /* comes from data: a value outside of the range is an error at run time */
} smg_sindex;
/* Around a value: `fill` where the guard (BOOL) does not hold. */
typedef struct smg_slayer {
    smg_expr guard;
    double fill;
} smg_slayer;

/* address = offset + sum(index(axis) * stride) + sum(index[i] * index_stride[i]), in elements of `source`
 * (row-major), where all guards hold; the fill of the first (outermost) that does not, elsewhere. For an
 * IOTA source the sum itself is the value; FILL and SIZE sources have no axes. A view without source (-1) is a
 * form: its sum is the value of leaves. */
typedef struct smg_sview {
    smg_node_id source;
    smg_size offset;
    int axis_count;
    int axis[SMG_MAX_RANK * 2];
    smg_size stride[SMG_MAX_RANK * 2];
    int index_count;
    smg_sindex index[SMG_VIEW_INDICES];
    smg_size index_stride[SMG_VIEW_INDICES];
    int layer_count;
    smg_slayer layer[SMG_VIEW_LAYERS];
} smg_sview;

/* Along an axis of a value another element than the reader's own: element `at`, or with `from` the one as far from the
 * last as the reader is, along its axis `from`, from the first. */
typedef struct smg_spick {
    int axis, from; /* from -1: none */
    int64_t at;
} smg_spick;
#define SMG_READ_PICKS 3
/* A read of a value of the space elsewhere: what is picked, within the layers. */
typedef struct smg_sread {
    int pick_count;
    smg_spick pick[SMG_READ_PICKS];
    int layer_count;
    smg_slayer layer[SMG_VIEW_LAYERS];
} smg_sread;

typedef struct smg_soperand {
    int producer;    /* index in space->nodes, or -1 */
    int view;        /* index in space->views when producer is -1; -1, too: the number 1 */
    smg_sread *read; /* of a producer: where; NULL: at the reader's own elements */
} smg_soperand;

typedef enum smg_sleaf_kind {
    SMG_SLEAF_FORM, /* the sum of a view without source */
    SMG_SLEAF_SIZE,
    SMG_SLEAF_VALUE /* operand 1 of a node: the index of a gather */
} smg_sleaf_kind;
typedef struct smg_sleaf {
    smg_sleaf_kind what;
    int index; /* view or node */
    smg_size size;
} smg_sleaf;

typedef struct smg_snode {
    smg_node_id node;
    smg_op op;
    smg_op_class class_;
    smg_type type;
    smg_axis_set iterates; /* axes of the iteration space */
    smg_axis_set result;   /* axes of the value; iterates minus result is All-to-One */
    smg_soperand operand[SMG_MAX_OPERANDS];
    int operand_count;
    /* Made of maps and gathers over inputs only: recomputing it costs a few operations per element, so it
     * counts as an input of the space and never restricts a cut. */
    bool streamed;
    bool copy;       /* a map or gather once more, at other coordinates of the node that reads it */
    bool idle;       /* every reader has a copy of its own */
    bool output;     /* read outside the set, or a graph output */
    int store;       /* view for the result when output; else -1 */
    int layer_count; /* of a copy: around its value */
    smg_slayer layer[SMG_VIEW_LAYERS];
} smg_snode;

/* Values of one shape and type, of which body b of a repetition reads the b-th. In memory they lie one behind the
 * other. */
typedef struct smg_sstack {
    const smg_node_id *each; /* [0]: what the space's own nodes read */
    int64_t stride;          /* elements from one to the next */
} smg_sstack;
#define SMG_SPACE_STACKS 8
#define SMG_SPACE_SLICES 4

/* Equal bodies, one behind the other: the space has the nodes of the first. Each of the others reads what the one
 * before it has made where the first reads `carried`, and constants of its own. */
typedef struct smg_srepeat {
    int count;           /* of bodies; 0: the space has no repetition */
    smg_node_id carried; /* what the first body begins with */
    smg_node_id made;    /* by the first body, for the second */
    smg_node_id last;    /* the same of the last body: it alone is read outside */
    int stack_count;
    smg_sstack stack[SMG_SPACE_STACKS];
    /* Filled in by smg_space_build: */
    int axis; /* the number of the body */
    int next; /* node that has made it */
    /* What is carried is read along axis `by` where it was made along axis `whole`: a body needs all of that of the one
     * before. */
    int slice_count;
    struct {
        int by, whole;
    } slice[SMG_SPACE_SLICES];
} smg_srepeat;

/* What slice/ has made of the nodes that the set has in the graph. */
typedef enum smg_space_form {
    SMG_SPACE_AS_IS,
    SMG_SPACE_LINEAR,     /* smg_slice_linear */
    SMG_SPACE_MULTIPLIED, /* smg_slice_multiplied */
    SMG_SPACE_FORMS
} smg_space_form;

typedef struct smg_space {
    const smg_graph *graph;
    smg_arena *arena;
    SMG_ARRAY(smg_saxis) axes;
    SMG_ARRAY(smg_snode) nodes; /* topological; copies at the end */
    SMG_ARRAY(smg_sview) views;
    smg_exprs *exprs; /* of guards and indices; NULL when there are none */
    SMG_ARRAY(smg_sleaf) leaves;
    smg_srepeat repeat;
    smg_space_form form;
    const char *refused;    /* why no common space exists; NULL when it does */
    smg_node_id refused_at; /* the node that it tells of */
} smg_space;

/* Builds the space of nodes[0..count) (ascending ids). needed[id] tells whether a node's value is read
 * outside. A set that has no common space is not an error: out_space->refused says why. */
smg_status smg_space_build(const smg_graph *g, smg_arena *arena, const smg_node_id *nodes, int count,
                           const bool *needed, smg_space **out_space);
/* The same of equal bodies, of which the nodes are the first. needed: of the value that it makes for the next one. */
smg_status smg_space_build_repeated(const smg_graph *g, smg_arena *arena, const smg_node_id *nodes, int count,
                                    const bool *needed, const smg_srepeat *repeat, smg_space **out_space);
/* Does the view read what is carried from body to body? */
bool smg_space_reads_carried(const smg_space *space, const smg_sview *view);
/* The axis along which that was made, where the view reads it along another one, *out_by; -1: it reads all elements
 * where they were made. */
int smg_space_carried_whole(const smg_space *space, const smg_sview *view, int *out_by);
/* The number of the stack that has the node; -1. */
int smg_space_stack(const smg_space *space, smg_node_id first);

/* Axes of an operand: of the producer's result, or of the view with its indices and guards. */
smg_axis_set smg_space_operand_axes(const smg_space *space, const smg_soperand *operand);
smg_axis_set smg_space_view_axes(const smg_space *space, const smg_sview *view);
/* The first non-view node behind `id` (its data is what a view of it reads). */
smg_node_id smg_space_source(const smg_graph *g, smg_node_id id);
/* The only node that reads the value of `node`, at its own elements; -1 where others do, or what is outside. */
int smg_space_only_reader(const smg_space *space, int node);
/* Are there products, but for what counts as an input? */
bool smg_space_has_products(const smg_space *space);
/* Sums along axes that products contract become products as well, whose second operand is the number 1 (operand_count
 * stays 1): what goes by in slices for one goes by for the other. How many there are. */
int smg_space_multiply_sums(smg_space *space);
/* Axes, nodes with their mappings by type, views. */
void smg_space_print(const smg_space *space, smg_text *text);
/* The same as statements of a digraph in Graphviz's language: a cluster of this name and label. stored: per node of the
 * graph, its value comes from another space. */
void smg_space_print_dot(const smg_space *space, const char *name, const char *label, const bool *stored,
                         smg_text *text);

#endif
