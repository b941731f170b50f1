/* lower_internal.h: the state of one lowering, shared by lower_*.c. */
#ifndef SMG_LOWER_INTERNAL_H
#define SMG_LOWER_INTERNAL_H

#include "affine/affine.h"
#include "lower/lower.h"

#define LOWER_NEVER (-2)  /* pass of something not computed yet */
#define LOWER_BEFORE (-1) /* available before the first pass */

/* What lowering knows of one node of the space. */
typedef struct lnode {
    smg_expr value;  /* over kernel leaves; SMG_EXPR_NONE until asked */
    int tile;        /* result of a REDUCE or CONTRACT; -1 */
    int leaf;        /* its leaf; -1 */
    int old_leaf;    /* previous value, for others' updates; -1 */
    int pass;        /* pass whose loop computes it, or after which it is final */
    bool varies;     /* along the temporal axis */
    bool running;    /* reduced over the temporal axis */
    bool apart;      /* in the loop each lane folds what it has itself; they are joined behind it */
    bool stabiliser; /* some update depends on it: starts finite */
    bool goes_on;    /* a product that adds to the sums of an earlier one */
    smg_expr core;   /* what is folded: summand, or left operand of a product */
    smg_expr right;  /* right operand of a product */
    smg_expr update; /* of the running value before a slice is added; SMG_EXPR_NONE */
    int count;       /* what the update counts: a tile; -1 */
    smg_expr counted;
    /* Where the value is made of several running sums (lower_terms.c): those beside `core`, which `tile` has. */
    smg_expr more[SMG_TERMS];
    int more_tile[SMG_TERMS];
    int more_count;
    int pivot; /* what elements are taken at: a tile that is set before the loop; -1 */
    smg_expr pivot_of;
} lnode;

/* The second half of lowering: a program that gets the tile sizes, lanes and memory of one schedule. */
typedef struct lower_sized {
    smg_context *ctx;
    smg_arena *arena;
    smg_kernel *k;
    const smg_schedule *s;
    const smg_target *target;
    const char *refused;
    bool placed; /* layouts and the order of operands are the schedule's already */
} lower_sized;

typedef struct lowering {
    const smg_schedule *s;
    const smg_space *space;
    const smg_graph *g;
    const smg_target *target; /* NULL: nothing is known of it */
    smg_context *ctx;
    smg_arena *arena;
    smg_kernel *k;
    smg_text *why;
    smg_map *asked;
    const char *refused;
    lnode node[SMG_SPACE_NODES];
    smg_expr *view_value; /* per view of the space; SMG_EXPR_NONE until asked */
    smg_expr *space_leaf; /* per leaf of the space; SMG_EXPR_NONE until asked */
    int tile_node_count;
    SMG_ARRAY(int) leaf_node; /* per kernel leaf: node of a TILE leaf, -1 */
    int passes;
    bool reduces; /* nothing but reductions: what one reads of another is apart as well */
    int head;     /* instructions at the program's begin that stage once, before everything */
    /* Of a repetition (lower_repeat.c): what is carried, in registers, all of it in shared memory, slices of that. */
    int carried, carried_whole, carried_slice[SMG_SPACE_SLICES];
} lowering;

/* lower_value.c */
smg_status lower_value(lowering *l, int node, smg_expr *out_value);
smg_status lower_operand(lowering *l, const smg_snode *n, int k, smg_expr *out_value);
smg_status lower_load(lowering *l, const smg_sview *view, smg_expr *out_value); /* of memory, without layers */
int lower_new_leaf(lowering *l, smg_kleaf leaf, int node);                      /* -1 when memory is out */
/* The leaf of the access made last, or of an older one that reads the same; -1 when memory is out. */
int lower_leaf_of_last(lowering *l, smg_kleaf leaf);
/* What stands outside, around the value. Zeros around a load need no choice: what is absent reads as 0. */
smg_status lower_within(lowering *l, const smg_slayer *layer, int count, bool absent_is_zero, smg_expr *io_value);
int lower_new_tile(lowering *l, const char *name, smg_kind kind, smg_residence where, const int *axes, int axis_count,
                   int pad);
smg_axis_set lower_leaf_axes(const lowering *l, int leaf);
smg_axis_set lower_expr_axes(const lowering *l, smg_expr expr);
/* Axes of a block value: rows first, then columns, the unit axis last. Grid axes of tile 1 are left out. false when
 * they are more than `room`. */
bool lower_tile_axes(const lowering *l, smg_axis_set set, int room, int *out_axes, int *out_count);
smg_status lower_refuse_axes(lowering *l);
smg_axis_set lower_columns(const lowering *l, smg_axis_set set);
int lower_buffer(lowering *l, smg_node_id source, bool written); /* -1 when memory is out */
smg_status lower_refuse(lowering *l, const char *why);

/* lower_repeat.c: bodies one behind the other as a loop. */
smg_status lower_make_carried(lowering *l);
/* What a view of the value that is carried reads, at the elements that were made. */
smg_status lower_carried(lowering *l, const smg_sview *view, smg_expr *out_value);
/* The tile of the left factor where a product reads it along another axis; -1 where it does not. */
int lower_carried_slice(const lowering *l, const smg_snode *product, int side);
smg_status lower_slice_value(lowering *l, int slice, smg_expr *out_value);
smg_status lower_emit_bodies(lowering *l);
bool lower_is_repeat(const lowering *l, const smg_instr *instr); /* the loop over the bodies */

/* lower_read.c */
/* *io_value, of the reader's elements, becomes the value of those that are read. */
smg_status lower_read(lowering *l, const smg_sread *read, smg_expr *io_value);
/* The leaf of a tile, new or as before; -1 when memory is out. */
int lower_tile_leaf(lowering *l, smg_kleaf leaf, int node);

/* lower_temporal.c: which pass over the temporal axis computes what, and by which updates. */
smg_status lower_plan_passes(lowering *l);

/* lower_terms.c: the node's value becomes one of running sums of its own, where its summand is a sum of separable
 * terms. */
smg_status lower_take_terms(lowering *l, int node, const smg_slice_roles *roles, bool *out_taken);

/* The axes that are cut into serial slices. */
smg_axis_set lower_cut(const lowering *l);

/* lower_structure.c: the program in order, over tiles without layouts. */
smg_status lower_structure(lowering *l);

/* lower_sums.c: a product that was just planned and is only added to an earlier one adds to its sums. */
void lower_go_on(lowering *l, int product);

/* lower_emit.c */
smg_instr lower_blank(smg_instr_kind kind);
smg_instr *lower_emit(lowering *l, smg_instr_kind kind);         /* NULL when memory is out */
smg_status lower_insert(smg_kernel *k, int at, smg_instr instr); /* in front of code[at] */
/* The first instruction of code[from .. to) of the kind, with that dst where it is not negative; -1. */
int lower_find(const smg_kernel *k, int from, int to, smg_instr_kind kind, int dst);
/* A leaf that belongs to no node; SMG_EXPR_NONE: memory is out. An element of the tile, or a size as INT, is one. */
smg_expr lower_leaf_of(smg_kernel *k, smg_kleaf leaf);
smg_expr lower_tile_element(smg_kernel *k, int tile);
smg_expr lower_size(smg_kernel *k, smg_size size);
smg_status lower_emit_set(lowering *l, int tile, smg_expr expr, const char *note);
smg_status lower_emit_init(lowering *l, int node);
smg_status lower_emit_fold(lowering *l, int node, bool accumulate);
/* Behind the loop: what each lane has folded becomes one, by the same updates as from slice to slice. */
smg_status lower_emit_join(lowering *l, int node);
smg_status lower_emit_store(lowering *l, int node);
smg_axis_set lower_axes_of(const smg_tile *tile);
/* Does it read anything of the workgroup, also through the indices of its loads? */
bool lower_reads_tiles(const smg_kernel *k, smg_expr expr);
smg_status lower_emit_product(lowering *l, int node, bool accumulate);

/* lower_view.c: the accesses of a product's operands where both can be read where they lie; `unit_axis` is the last of
 * the result's axes, `k` the contracted one. */
bool lower_view_operands(lowering *l, smg_expr left, smg_expr right, int unit_axis, int k, int *out_left,
                         int *out_right);

/* The access of an operand that is a load of floats, which lie as they are or in panels, and nothing else; -1. */
int lower_plain_load(const lowering *l, smg_expr operand);
/* Refused where a tile of columns is no whole panels. */
void lower_panels(lower_sized *l);

/* Straight stretches: what lies between loops over the temporal axis, and what lies in one. A pass that inserts or
 * deletes instructions of one moves its end. */
typedef struct lower_stretch {
    int from, to; /* instructions [from, to) */
} lower_stretch;
#define LOWER_NO_STRETCH ((lower_stretch){.from = -1, .to = -1})
/* The stretch behind this one; false behind the last. */
bool lower_next_stretch(const lowering *l, lower_stretch *io_stretch);

/* lower_merge.c: neighbouring loops of products over one axis become one. */
smg_status lower_merge(lowering *l);

/* lower_bounds.c: loops leave out the slices that change nothing. */
smg_status lower_bounds(lowering *l);

/* lower_neutral.c: a slice of the loop code[begin] to code[end] in which the condition is `value` everywhere. keeps:
 * each row has an element elsewhere in the loop, for which it is not. */
typedef struct lower_slice {
    int begin, end;
    smg_expr condition;
    bool value, keeps;
} lower_slice;
/* *out_why: what it may change; NULL: nothing. */
smg_status lower_neutral(lowering *l, const lower_slice *slice, const char **out_why);

/* lower_bounds.c: can the bound be told in front of the loop? */
bool lower_tellable(const lowering *l, int loop, smg_expr bound);
/* lower_needed.c: narrows *io_end, of the loop, to no step where one of the conditions has one value for the whole
 * workgroup, and nothing that the loop leaves behind is read then. */
smg_status lower_needed(lowering *l, int loop, const smg_expr *conditions, int count, smg_expr *io_end);
/* lower_bounds.c: tells that the loop runs where the condition is not `value` somewhere. */
void lower_tell_needed(const lowering *l, int loop, smg_expr condition, bool value);

/* lower_join.c: partial sums of depth lanes are added up behind the loops that make them. */
smg_status lower_join(lowering *l);

/* lower_pipeline.c: slices are fetched one step ahead. */
smg_status lower_pipeline(lowering *l);

/* lower_distribute.c by the schedule's lanes; lower_operands.c: the order of axes of what products read by them. */
smg_status lower_layouts(lower_sized *l);
smg_status lower_operands(lower_sized *l);
/* lower_parts.c: what corrects sums that other lanes share out is made whole in each step. */
void lower_correct(lower_sized *l);

/* lower_fragments.c: the layout of matrices of that use over these axes of the kernel (-1: none of that side) and the
 * `held` ones, beside sums of kernel->matrix. */
smg_layout lower_fragments(const smg_kernel *k, const smg_lane_grid *grid, smg_fragments use, int row, int col,
                           uint64_t held);
/* The schedule's matrix becomes the kernel's, its products are made by it; or it is refused. */
void lower_take_matrices(lower_sized *l);

/* lower_affine.c: over the kernel's axes, by number; what is known of an integer or a condition there. */
smg_affine_scope lower_scope(const smg_kernel *k);
smg_affine_value lower_known(const smg_kernel *k, smg_expr expr);

/* lower_forward.c: left factors that lanes hold as matrices want them stay in registers. */
smg_status lower_forward(lower_sized *l);
/* The one SET of a tile that nobody but the spill at `spill` reads; -1. */
int lower_set_for(const smg_kernel *k, int spill);
/* The value, 0 behind the end of the axis, which a product contracts; SMG_EXPR_NONE when memory is out. */
smg_expr lower_until_end(smg_kernel *k, int axis, smg_expr value);

/* lower_rings.c: factors of matrices are on their way several steps before they are needed. */
smg_status lower_rings(lower_sized *l);

/* lower_streams.c: factors of matrices are read from memory by the lanes that have them. */
smg_status lower_streams(lower_sized *l);
/* Is what is staged (or fetched) memory as it is, by groups along the axis? */
bool lower_lies_along(const smg_kernel *k, const smg_instr *stage, int axis);
/* Where a streamed factor lies whose own axis is `own`: subgroups have the part of it that the product's sums have. */
smg_layout lower_stream_layout(const smg_kernel *k, const smg_instr *product, bool left, int own);
/* A tile for the left factor's matrices, to be taken from where the product has it in shared memory, whose rows lie so
 * that lanes find their runs in different banks; -1 when memory is out. */
int lower_add_taken(smg_kernel *k, const smg_instr *product, int row);
/* The TAKE that fills it. */
smg_instr lower_take_runs(const smg_instr *product, int left);
smg_status lower_beside(lower_sized *l);

/* lower_along.c: sums beside a product by matrices fold what lanes hold of its left factor. */
smg_status lower_along(lower_sized *l);

/* lower_starts.c: sums of matrices start with what is added to them once they are complete. */
smg_status lower_starts(lower_sized *l);
/* lower_opaque.c: sums of opaque matrices are left in shared memory, and taken from there where lanes have them. */
smg_status lower_opaque(lower_sized *l);

/* lower_exchange.c: what lanes tell each other becomes instructions. */
smg_status lower_exchange(lower_sized *l);

/* lower_deal.c: the subgroups whose parts the JOIN at instruction `at` makes whole, in turns of so many registers,
 * take a share each. *out_share: the tile of the shares, which all that is behind reads; -1 where they do not. */
smg_status lower_deal(lower_sized *l, int at, int turn, int *out_share);

/* lower_memory.c: shared tiles that are never needed together lie on the same memory. */
smg_status lower_memory(lower_sized *l);

/* lower_early.c: loads of stores, and of maps by neighbours, as instructions of their own. */
smg_status lower_early(lower_sized *l);

/* lower_peel.c: the step of a loop that is not whole becomes a loop of its own. */
smg_status lower_peel(lower_sized *l);

/* lower_barriers.c: barriers that order nothing go. */
smg_status lower_barriers(lower_sized *l);

/* lower_share.c: subexpressions used by several instructions of a stretch become tiles. */
smg_status lower_share(lowering *l);
/* Axes of all that the instruction evaluates its expression for. */
smg_axis_set lower_instr_axes(const lowering *l, const smg_instr *instr);
/* The expression as a register tile, set in front of code[at]; *out_element reads it. Refused where its axes are too
 * many. */
smg_status lower_set_apart(lowering *l, int at, smg_expr expr, const char *note, smg_expr *out_element);
/* lower_units.c: maxima of sums by matrices are kept in the units of exponents, what is masked is so once. */
smg_status lower_units(lowering *l);
/* lower_columns.c: what has no rows, computed once for all that a lane has. */
smg_status lower_columns_once(lowering *l);
/* lower_drop.c: tiles that nothing writes go. */
smg_status lower_drop(lowering *l);
smg_status lower_drop_tiles(smg_kernel *k);
/* lower_alone.c: lanes that have their rows alone hold left factors, and read right ones where they lie. */
smg_status lower_alone(lowering *l);
/* lower_clamp.c: which axes of what is staged repeat their end. */
smg_status lower_clamp(lowering *l);
/* lower_types.c: element types of tiles. */
smg_status lower_types(lowering *l);
/* What is fetched from buffers of the type, of 16 bits, and nothing else stays of it on its way, where the target
 * (NULL: not known) has such. */
void lower_type_staging(smg_kernel *k, const smg_target *target, smg_type type);
/* The factors of a product, in shared memory, have its type and rows as far apart as it reads them best. */
void lower_type_factors(smg_kernel *k, const smg_instr *product);
/* Products whose tiles do not allow partial sums have none. */
smg_status lower_pairs(lower_sized *l);
/* `in` with every `what` in it replaced; SMG_EXPR_NONE when memory is out. */
smg_expr lower_replace(smg_exprs *pool, smg_expr in, smg_expr what, smg_expr with);

#endif
