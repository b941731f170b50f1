/* How an operation indexes its operands, given how its result is indexed. */
#include "space/space_internal.h"

static bool contract_dim(smg_space_builder *b, int i, char letter, smg_size extent, smg_affine *out) {
    *out = (smg_affine){0};
    if (smg_space_is_one(b, extent)) return true;
    int *atom = &b->labels[i][smg_space_letter(letter)];
    if (*atom < 0) *atom = smg_atom_new(&b->atoms, extent);
    if (*atom < 0) return false;
    smg_dim_of_list(b, &(smg_atom_list){.count = 1, .atom = {*atom}}, out);
    return true;
}

void smg_map_begin(smg_node_id source, int rank, smg_operand_map *out) {
    out->source = source;
    out->rank = rank;
    out->index_count = out->layer_count = out->window_count = 0;
}

void smg_map_copy(const smg_operand_map *map, smg_operand_map *out) {
    smg_map_begin(map->source, map->rank, out);
    out->index_count = map->index_count;
    out->layer_count = map->layer_count;
    out->window_count = map->window_count;
    memcpy(out->dim, map->dim, (size_t)map->rank * sizeof map->dim[0]);
    memcpy(out->index, map->index, (size_t)map->index_count * sizeof map->index[0]);
    memcpy(out->layer, map->layer, (size_t)map->layer_count * sizeof map->layer[0]);
    memcpy(out->window, map->window, (size_t)map->window_count * sizeof map->window[0]);
}

/* The row of a gather: an affine form where the index is one and stays within the table; else data, counted from
 * the end when negative. */
static bool row_of(smg_space_builder *b, int i, const smg_node *n, const smg_operand_map *frame, smg_operand_map *out) {
    smg_operand_map at;
    smg_size rows = smg_graph_node(b->g, n->operand[0])->dims[0];
    if (smg_space_own_map(b, i, n, frame, 1, &at) != SMG_OK) return false;
    smg_dim_where where = {b, &at};
    smg_affine_scope scope = smg_dim_scope(&where);
    if (smg_space_affine(b, n->operand[1], &at, &out->dim[0]) && smg_affine_within(&scope, &out->dim[0], NULL, rows))
        return true;
    int number;
    smg_sleaf leaf = {.what = SMG_SLEAF_VALUE, .index = i};
    smg_expr value = smg_space_leaf(b, leaf, SMG_KIND_INT), limit = smg_space_size_expr(b, rows);
    smg_expr negative = smg_space_make(b, SMG_PRIM_LT, value, smg_space_size_expr(b, SMG_SIZE_ZERO));
    smg_expr moved = smg_space_make(b, SMG_PRIM_ADD, value, limit);
    if (negative == SMG_EXPR_NONE || moved == SMG_EXPR_NONE) return false;
    smg_sindex index = {.range = rows, .checked = true};
    index.expr = smg_expr_make(b->space->exprs, SMG_PRIM_SELECT, negative, moved, value);
    if (index.expr == SMG_EXPR_NONE || !smg_map_add_index(out, index, &number)) return false;
    out->dim[0] = (smg_affine){.term = {{SMG_DIM_INDEX(number), b->one}}, .count = 1};
    return true;
}

smg_status smg_space_own_map(smg_space_builder *b, int i, const smg_node *n, const smg_operand_map *frame, int k,
                             smg_operand_map *out) {
    const smg_node *a = smg_graph_node(b->g, n->operand[k]);
    int index_rank = smg_node_class(n) == SMG_CLASS_GATHER ? smg_graph_node(b->g, n->operand[1])->rank : 0;
    smg_map_copy(frame, out);
    out->source = n->operand[k];
    out->rank = a->rank;
    for (int d = 0; d < a->rank; d++) {
        smg_affine *dim = &out->dim[d];
        switch (smg_node_class(n)) {
        case SMG_CLASS_MAP:
            *dim = smg_space_is_one(b, a->dims[d]) ? (smg_affine){0} : frame->dim[d + n->rank - a->rank];
            break;
        case SMG_CLASS_REDUCE: {
            smg_atom_list list = {.count = b->reduced[i] >= 0, .atom = {b->reduced[i]}};
            if (d == n->axis)
                smg_dim_of_list(b, &list, dim);
            else
                *dim = frame->dim[d > n->axis && !n->keep ? d - 1 : d];
            break;
        }
        case SMG_CLASS_CONTRACT:
            if (!contract_dim(b, i, n->label[k][d], a->dims[d], dim)) return SMG_MEMORY;
            break;
        case SMG_CLASS_GATHER:
            if (k == 1)
                *dim = frame->dim[d];
            else if (d > 0)
                *dim = frame->dim[index_rank + d - 1];
            else if (!row_of(b, i, n, frame, out))
                return smg_space_refuse(b, "too many indices", n->operand[0]);
            break;
        case SMG_CLASS_LEAF:
        case SMG_CLASS_VIEW:
            return smg_fail(b->g->ctx, SMG_INTERNAL, "space: %s cannot be a member of a space",
                            smg_graph_describe(b->g, b->nodes[i]));
        }
    }
    return SMG_OK;
}
