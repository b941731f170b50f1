/* space_internal.h: atoms, the unknowns that refinement solves for.
 *
 * While a space is built every tensor dimension is a list of atoms. Two index maps that meet are made
 * equal by uniting atoms, and by splitting the longer one in two when one extent divides the other.
 */
#ifndef SMG_SPACE_INTERNAL_H
#define SMG_SPACE_INTERNAL_H

#include "space/space.h"

#define SMG_ATOM_LIST 12

typedef struct smg_atom {
    smg_size extent;
    int parent;       /* union-find; itself when root */
    int outer, inner; /* of a split root; -1 */
    int axis;         /* final axis, -1 before numbering */
} smg_atom;

typedef struct smg_atom_list {
    int count;
    int atom[SMG_ATOM_LIST];
} smg_atom_list;

/* How one dimension of an operand is indexed: begin + step * linear(list). */
typedef struct smg_dim_map {
    smg_atom_list list;
    smg_size begin;
    int64_t step;
} smg_dim_map;

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

/* Merges neighbouring axes that are one run in every view (space_coalesce.c). */
void smg_space_coalesce(smg_space *space);

/* The index map of one operand, dimension by dimension of `source`. */
typedef struct smg_operand_map {
    smg_node_id source;
    int rank;
    smg_dim_map dim[SMG_MAX_RANK];
} smg_operand_map;

bool smg_dim_plain(const smg_graph *g, const smg_dim_map *dim);
/* Rewrites the map from indexing the view `source` to indexing what the view looks at; false when axes do not
 * refine through it. */
bool smg_space_through_view(const smg_graph *g, smg_atoms *atoms, smg_operand_map *map);

#endif
