/* space_internal.h: atoms, the unknowns that refinement solves for, and index maps over them.
 *
 * While a space is built every dimension of a result is a list of atoms, and every dimension of an operand is an
 * affine form over atoms (plus indices that are no such form). Where an operand is computed in the
 * set, its form must be a plain list, which is made equal to the producer's by uniting atoms, and by splitting
 * the longer one in two when one extent divides the other. Where it lies in memory any form will do.
 */
#ifndef SMG_SPACE_INTERNAL_H
#define SMG_SPACE_INTERNAL_H

#include "affine/affine.h"
#include "space/space.h"

#define SMG_ATOM_LIST 12
#define SMG_MOST_COPIES 64

typedef struct smg_atom {
    smg_size extent;
    int parent;       /* union-find; itself when root */
    int outer, inner; /* of a split root; -1 */
    int axis;         /* final axis, -1 before numbering */
    bool held;        /* somebody reads other elements along it than its own */
} smg_atom;

typedef struct smg_atom_list {
    int count;
    int atom[SMG_ATOM_LIST];
} smg_atom_list;

typedef struct smg_atoms {
    smg_sizes *sizes;
    smg_arena *arena;
    SMG_ARRAY(smg_atom) pool;
} smg_atoms;

int smg_atom_new(smg_atoms *atoms, smg_size extent); /* -1 when memory is out */
int smg_atom_root(const smg_atoms *atoms, int atom);
/* Expands split atoms into roots. false when the list is too long. */
bool smg_atom_resolve(const smg_atoms *atoms, const smg_atom_list *list, smg_atom_list *out_list);
/* Makes two lists of the same total extent the same; false when their boundaries do not nest. */
bool smg_atom_unify(smg_atoms *atoms, const smg_atom_list *a, const smg_atom_list *b);
/* Takes atoms of product `extent` from the front of the resolved `list`, splitting the last if needed. */
bool smg_atom_take(smg_atoms *atoms, smg_atom_list *list, smg_size extent, smg_atom_list *out_taken);
/* Splits a root into outer x inner. */
bool smg_atom_split(smg_atoms *atoms, int root, smg_size outer_extent, smg_size inner_extent);

/* ---- index maps ---------------------------------------------------------------------------------- */

/* In a form, a number from 0 on is an atom, one below 0 is an index of the map. */
#define SMG_DIM_INDEX(i) (-1 - (i))

/* A form that the layers bound: they fail where it is not in [0, extent). */
typedef struct smg_bounded {
    smg_affine at;
    smg_size extent;
} smg_bounded;

/* How an operand is indexed, dimension by dimension of `source`: a form per dimension. */
typedef struct smg_operand_map {
    smg_node_id source;
    int rank;
    smg_affine dim[SMG_MAX_RANK];
    int index_count;
    smg_sindex index[SMG_VIEW_INDICES];
    int layer_count;
    smg_slayer layer[SMG_VIEW_LAYERS];
    int window_count; /* the innermost last; some may be missing */
    smg_bounded window[SMG_VIEW_LAYERS];
} smg_operand_map;

typedef struct smg_space_builder {
    const smg_graph *g;
    smg_sizes *sizes;
    smg_arena *arena;
    smg_atoms atoms;
    smg_space *space;
    smg_size one;
    const smg_node_id *nodes;
    int count;
    smg_atom_list (*out)[SMG_MAX_RANK];               /* per set node, per result dimension */
    int *reduced;                                     /* per set node: atom of the reduced axis, -1 */
    int (*labels)[52];                                /* CONTRACT: atom per letter, -1 */
    const smg_operand_map *(*maps)[SMG_MAX_OPERANDS]; /* per node, copies included: NULL behind a producer */
    SMG_ARRAY(smg_snode) copies;                      /* become nodes count, count + 1, ... */
    smg_atom *kept_atoms;                             /* scratch of smg_space_connect */
    int kept_room;
} smg_space_builder;

smg_status smg_space_refuse(smg_space_builder *b, const char *why, smg_node_id id);
int smg_space_position(const smg_space_builder *b, smg_node_id id); /* in the set; -1 */
bool smg_space_is_one(const smg_space_builder *b, smg_size size);
int smg_space_letter(char letter);

/* space_forms.c */
void smg_dim_of_list(smg_space_builder *b, const smg_atom_list *list, smg_affine *out);
/* The form as one run of atoms at a stride; false when it is none. begin is left aside. */
bool smg_dim_run(smg_space_builder *b, const smg_affine *dim, smg_atom_list *out_list, smg_size *out_unit);
bool smg_dim_plain(smg_space_builder *b, const smg_affine *dim, smg_atom_list *out_list);
/* Terms over roots: an atom that was split is its two parts at the right strides. */
bool smg_dim_resolve(smg_space_builder *b, smg_affine *dim);
/* How far atoms and the indices of a map run; what a division crosses splits. Of `where`, which must stay. */
typedef struct smg_dim_where {
    smg_space_builder *b;
    const smg_operand_map *map;
} smg_dim_where;
smg_affine_scope smg_dim_scope(const smg_dim_where *where);
/* dim = quotient * by + rest with 0 <= rest < by; adds indices to the map where no affine form is proved. */
bool smg_dim_divide(smg_space_builder *b, smg_operand_map *map, const smg_affine *dim, smg_size by,
                    smg_affine *out_quotient, smg_affine *out_rest);
/* The value as an expression of the space; SMG_EXPR_NONE when memory is out. */
smg_expr smg_dim_value(smg_space_builder *b, const smg_operand_map *map, const smg_affine *dim);
smg_expr smg_space_size_expr(smg_space_builder *b, smg_size size);
smg_expr smg_space_make(smg_space_builder *b, smg_prim prim, smg_expr x, smg_expr y);
smg_expr smg_space_leaf(smg_space_builder *b, smg_sleaf leaf, smg_kind kind);
/* A map is large and mostly empty: these leave unset, and do not copy, what is behind its counts. */
void smg_map_begin(smg_node_id source, int rank, smg_operand_map *out);
void smg_map_copy(const smg_operand_map *map, smg_operand_map *out);
/* Adds an index; false when there are too many. *out_index is its number. */
bool smg_map_add_index(smg_operand_map *map, smg_sindex index, int *out_index);

/* space_views.c: from indexing the view `source` to indexing what the view looks at; false when there is no room. */
bool smg_space_through_view(smg_space_builder *b, smg_operand_map *map);

/* space_affine.c: is the integer `id`, read through `map` (its source is id), an affine form of axes and sizes? */
bool smg_space_affine(smg_space_builder *b, smg_node_id id, const smg_operand_map *map, smg_affine *out);

/* space_connect.c */
/* The index map of operand k of a node whose result is indexed by `frame`; `i` is its number, copies included. */
smg_status smg_space_own_map(smg_space_builder *b, int i, const smg_node *n, const smg_operand_map *frame, int k,
                             smg_operand_map *out);
smg_status smg_space_connect(smg_space_builder *b, int i);
/* Does every iteration space of the first `count` nodes have each atom once? */
bool smg_space_distinct(const smg_space_builder *b, int first, int last);
void smg_space_mark_idle(smg_space_builder *b);

/* space_reads.c */
/* Makes the reader's atoms the producer's where `map` leads; *out_why is NULL where that could be done, and *out_read
 * what is left (NULL: nothing). `plain`: only where nothing is. */
smg_status smg_space_share(smg_space_builder *b, int producer, const smg_operand_map *map, bool plain,
                           smg_sread **out_read, const char **out_why);
smg_status smg_space_number_reads(smg_space_builder *b);

/* space_align.c: reads of one tensor, and sibling products, share axes. */
smg_status smg_space_align(smg_space_builder *b);

/* space_number.c: axes, views, stores. */
smg_status smg_space_number(smg_space_builder *b);

/* space_repeat.c: the space, whose axes are final, is one of equal bodies. */
smg_status smg_space_repeat(smg_space *space, const smg_srepeat *repeat);

/* space_join.c: a reduction of a reduction becomes one over the axes of both. */
void smg_space_join_reductions(smg_space *space);
/* Merges neighbouring axes that are one run in every view (space_coalesce.c). */
void smg_space_coalesce(smg_space *space);

#endif
