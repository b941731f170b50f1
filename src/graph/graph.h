/* graph: tensors and operations before any decision.
 *
 * Takes:    builder calls (include/smg/graph.h) or text.
 * Gives:    a verified graph in topological order; its value in double.
 * Promises: one result per node; operands come before their users; shapes and types are inferred and
 *           checked; after smg_graph_finish a graph is immutable and rewrites (rewrite/) make a new one.
 * Does not: change a graph, or know devices, tiles or kernels.
 */
#ifndef SMG_GRAPH_H
#define SMG_GRAPH_H

#include "base/base.h"
#include "base/size.h"
#include "op/op.h"
#include "smg/graph.h"

#define SMG_MAX_RANK 8
#define SMG_MAX_OPERANDS 3

typedef int32_t smg_node_id; /* index into graph->nodes; an smg_value's id is this + 1 */

typedef struct smg_node {
    smg_op op;
    smg_type type;
    int rank;
    smg_size dims[SMG_MAX_RANK];
    int operand_count;
    smg_node_id operand[SMG_MAX_OPERANDS];
    const char *name; /* "" when nobody gave one */
    /* attributes; which are used depends on the row's class */
    int axis;               /* IOTA, SLICE, WINDOW; reduced axis of a REDUCE */
    bool keep;              /* REDUCE: the reduced axis stays with extent 1 */
    int perm[SMG_MAX_RANK]; /* TRANSPOSE */
    /* COPY: in memory it is blocks of so many elements of its last two axes, each behind the other, row by row within
     * them and among them; both 0: one row behind the other. What its elements are does not depend on that. */
    int block[2];
    smg_size begin;   /* SLICE, WINDOW (may be negative) */
    int64_t step;     /* SLICE, WINDOW, not 0 */
    int64_t dilation; /* WINDOW, not 0 */
    smg_size size;    /* SIZE */
    double value;     /* FILL; WINDOW: what stands outside */
    bool spare;       /* SELECT: readers come to the same with its operand 1 (rewrite_ends.c) */
    /* CONTRACT: a letter per axis of a, of b and of the result. A letter of the result is in a, in b
     * or in both (batch); a letter of a and b that the result lacks is contracted. */
    char label[3][SMG_MAX_RANK + 1];
    const void *data; /* CONSTANT: borrowed, host bytes; NULL: shape only */
} smg_node;

typedef struct smg_graph_output_row {
    const char *name;
    smg_node_id node;
    const char *state; /* the input that is this in the next run; NULL: none, and rewriting may have dropped it */
} smg_graph_output_row;

/* Phases read the elements of constants of at most so many; of larger ones they ask the questions below, no more. */
#define SMG_HOST_ELEMENTS 65536

/* What is asked of the contents of a constant of floats. */
typedef enum smg_content {
    SMG_CONTENT_IN_RANGE, /* are all elements finite and far from the ends of the exponents? */
    SMG_CONTENT_NO_ZERO,  /* and not 0? */
    SMG_CONTENT_F16,      /* does the largest finite one lie where the type is precise? smg_content_fits */
    SMG_CONTENT_BF16,
    SMG_CONTENT_SIZE, /* how large is one typically? as a number: smg_content_size */
    SMG_CONTENT_COUNT
} smg_content;
/* A question about a larger constant, and the answer. What was made of the graph is right only for constants of which
 * the answer is the same. */
typedef struct smg_content_fact {
    smg_type type;
    const void *data;
    int64_t elements;
    smg_content question;
    int answer; /* 1 and 0 are yes and no */
} smg_content_fact;

struct smg_graph {
    smg_context *ctx;
    smg_arena *arena;
    smg_sizes *sizes;
    const char *name;
    SMG_ARRAY(smg_node) nodes;
    SMG_ARRAY(smg_graph_output_row) outputs;
    SMG_ARRAY(smg_content_fact) facts; /* of a rewritten graph */
    const smg_type *storage; /* per node: of its elements in device memory (precision/); NULL: each its own type */
    smg_status status;       /* of the builders */
    const char *error;       /* their sentence; NULL: no memory for it */
    bool finished;
};

/* smg_graph_create inside of another call, whose failure it leaves recorded. */
smg_status smg_graph_make(smg_context *ctx, const char *name, smg_graph **out_graph);
/* The graph fails: with this code and the recorded sentence, of which it keeps a copy. The first of these wins. */
smg_status smg_build_stick(smg_graph *g, smg_status status);
static inline const smg_node *smg_graph_node(const smg_graph *g, smg_node_id id) {
    return id >= 0 && id < g->nodes.count ? &g->nodes.items[id] : NULL;
}
static inline smg_op_class smg_node_class(const smg_node *node) {
    return smg_op_get(node->op)->class_;
}
smg_type smg_graph_storage(const smg_graph *g, smg_node_id id);
bool smg_node_computes(const smg_node *node); /* neither a leaf nor a view: takes a kernel */
bool smg_node_is_input(const smg_node *node);
bool smg_same_dims(const smg_node *a, const smg_node *b);
bool smg_node_is_blocked(const smg_node *node);
/* The INPUT nodes in node order; their number, of which at most `capacity` are given. */
int smg_graph_input_nodes(const smg_graph *g, smg_node_id *out_nodes, int capacity);
/* The output that this input is in the next run, by its row; -1: it is no state (graph_state.c). */
int smg_graph_next_of(const smg_graph *g, const char *input);
/* Per node: some output depends on it. */
void smg_graph_mark_live(const smg_graph *g, bool *out_live);
/* What a node does: row, type, dims and attributes; neither operands nor name. Sizes are what they are called; where
 * symbols have values, what they are: then it is the same in graphs that call them otherwise. */
uint64_t smg_node_hash(const smg_graph *g, uint64_t seed, const smg_node *node, const int64_t *symbols);
/* "name" or "%12 (add)": for sentences. In the arena of the graph. */
const char *smg_graph_describe(const smg_graph *g, smg_node_id id);
smg_size smg_node_elements(const smg_graph *g, smg_node_id id);

/* ---- builders over sizes of g->sizes ------------------------------------------------------------- */

/* As the builders of include/smg/graph.h, which parse text and call these; for folders that compute
 * sizes. Dims are copied; a size that is SMG_SIZE_NONE is a failure. */
smg_value smg_graph_input_of(smg_graph *g, const char *name, smg_type type, int rank, const smg_size *dims);
smg_value smg_graph_constant_of(smg_graph *g, const char *name, smg_type type, int rank, const smg_size *dims,
                                const void *data);
smg_value smg_graph_size_typed(smg_graph *g, smg_type type, smg_size size); /* f32 i32 i64 */
smg_value smg_graph_iota_of(smg_graph *g, int rank, const smg_size *dims, int axis);
smg_value smg_graph_reshape_to(smg_graph *g, smg_value a, int rank, const smg_size *dims);
smg_value smg_graph_broadcast_to(smg_graph *g, smg_value a, int rank, const smg_size *dims);
smg_value smg_graph_slice_of(smg_graph *g, smg_value a, int axis, smg_size begin, smg_size count, int64_t step);
/* The node behind a value of this graph; NULL when it is not one. */
const smg_node *smg_graph_node_of(const smg_graph *g, smg_value value);

/* Nodes of one's own, for what makes a graph of another: infers type and dims (those given for leaves, reshape and
 * broadcast are checked), appends; -1 after a failure, which the graph keeps. */
smg_node_id smg_graph_push(smg_graph *g, smg_node *node);
/* An empty graph whose sizes hold the symbols of `like` in the same order. */
smg_status smg_graph_create_like(const smg_graph *like, smg_graph **out_graph);
/* Name and sizes of a node of `from` as those of `to`; operands stay. */
smg_status smg_node_import(smg_graph *to, const smg_graph *from, smg_node *node);

/* graph_compose.c */
typedef struct smg_window {
    int axis;
    smg_size begin, count, taps;
    int64_t step, dilation;
    double fill;
} smg_window;
smg_value smg_graph_window_of(smg_graph *g, smg_value a, const smg_window *window);
smg_value smg_graph_pad_of(smg_graph *g, smg_value a, int axis, smg_size before, smg_size after, double value);

/* Per node: fixed, the value is the same in every run and its dims are no symbols (outputs, which every run
 * writes, count as not fixed); stored, some of it comes from a constant tensor. */
void smg_graph_mark_fixed(const smg_graph *g, bool *out_fixed, bool *out_stored);

/* Of a host array (graph_host.c): are the elements first + sum(slope * index), whole numbers of 32 bits all of them?
 * index: per axis the one index that is looked at, or -1 for all along the axis; slopes are given for these. */
bool smg_host_plane(smg_type type, const void *data, int rank, const int64_t *extent, const int64_t *index,
                    int64_t *out_first, int64_t *out_slope);

/* Questions about contents (graph_content.c); the second keeps answers about large constants in g->facts. */
int smg_content_answer(smg_content question, smg_type type, const void *data, int64_t elements);
int smg_graph_content(smg_graph *g, smg_content question, smg_type type, const void *data, int64_t elements);
/* The root mean square that an answer to SMG_CONTENT_SIZE stands for, to a fifth: of at most SMG_HOST_ELEMENTS
 * elements, evenly spread, those that are no numbers and those beyond f16 left out. */
double smg_content_size(int answer);
double smg_content_largest(smg_type type, const void *data, int64_t elements); /* of finite ones; 0: there is none */
bool smg_content_fits(smg_type type, double largest);

void smg_graph_print(const smg_graph *g, smg_text *text);
uint64_t smg_graph_hash(const smg_graph *g); /* structure, types, sizes; not constants' contents */
/* What rewriting and planning may look at: the same, names, and contents of constants of at most SMG_HOST_ELEMENTS. */
smg_status smg_graph_key(const smg_graph *g, uint64_t seed, uint64_t *out_key);

/* ---- reference (graph_eval.c) --------------------------------------------------------------------- */

/* Row-major values in double (integers and bools exactly too). */
typedef struct smg_array {
    smg_type type;
    int rank;
    int64_t dims[SMG_MAX_RANK];
    double *data;
} smg_array;
int64_t smg_array_elements(const smg_array *array);
/* Defines what a graph means. symbols: a value per symbol of g->sizes. inputs[i] belongs to the i-th
 * INPUT node in node order; out_outputs[i] to the i-th output row, data in the arena. Intermediates are
 * freed as soon as they are dead. Contractions run on all cores. Index out of range is INVALID with the numbers. */
smg_status smg_graph_eval(const smg_graph *g, const int64_t *symbols, const smg_array *inputs, smg_arena *arena,
                          smg_array *out_outputs);
/* The largest finite element of a float value by its size, of those that f32 holds; at -1: there is none. */
typedef struct smg_peak {
    double size;
    int64_t at;
} smg_peak;
/* The same walk, for what each node's value becomes: out_peaks[id], at -1 where nothing reads the value. */
smg_status smg_graph_peaks(const smg_graph *g, const int64_t *symbols, const smg_array *inputs, smg_peak *out_peaks);
/* One node whose operands are leaves of fixed dims and contents. Release the data with smg_array_release. */
smg_status smg_graph_eval_over_leaves(const smg_graph *g, smg_exprs *exprs, const smg_node *node, smg_array *out);
void smg_array_release(smg_context *ctx, smg_array *array);
/* Multiply-adds x 2 of the whole graph at these sizes. Out of memory: too small, and the context says so. */
double smg_graph_flops(const smg_graph *g, const int64_t *symbols);

#endif
