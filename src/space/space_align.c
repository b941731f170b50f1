/* Axes that need not be one but may: reads of one tensor, and products with a common operand. A row that is read for
 * its maximum and again for its result is one row; three projections of one input walk one common axis. */
#include "space/space_internal.h"

/* Unites two runs, unless some node would then iterate twice over one axis. */
static smg_status align_runs(smg_space_builder *b, const smg_atom_list *x, const smg_atom_list *y) {
    if (x->count == 0 || y->count == 0) return SMG_OK;
    if (x->count == y->count && memcmp(x->atom, y->atom, (size_t)x->count * sizeof(int)) == 0) return SMG_OK;
    int count = b->atoms.pool.count;
    smg_atom *saved = SMG_ARENA_ARRAY(b->arena, smg_atom, (size_t)count);
    if (saved == NULL) return SMG_MEMORY;
    memcpy(saved, b->atoms.pool.items, (size_t)count * sizeof(smg_atom));
    if (smg_atom_unify(&b->atoms, x, y) && smg_space_distinct(b, 0, b->count)) return SMG_OK;
    memcpy(b->atoms.pool.items, saved, (size_t)count * sizeof(smg_atom));
    b->atoms.pool.count = count;
    return SMG_OK;
}

static smg_status align_dim(smg_space_builder *b, const smg_affine *x, const smg_affine *y) {
    smg_atom_list rx, ry;
    smg_size ux, uy;
    if (x->count == 0 || y->count == 0 || x->begin != y->begin) return SMG_OK;
    if (!smg_dim_run(b, x, &rx, &ux) || !smg_dim_run(b, y, &ry, &uy) || ux != uy) return SMG_OK;
    return align_runs(b, &rx, &ry);
}

static const smg_operand_map *map_of(const smg_space_builder *b, int at) {
    int node = at / SMG_MAX_OPERANDS;
    bool idle = node < b->count ? b->space->nodes.items[node].idle : b->copies.items[node - b->count].idle;
    return idle ? NULL : b->maps[node][at % SMG_MAX_OPERANDS];
}

static smg_status align_reads(smg_space_builder *b) {
    int total = (b->count + b->copies.count) * SMG_MAX_OPERANDS, count = 0;
    const smg_operand_map **maps = SMG_ARENA_ARRAY(b->arena, const smg_operand_map *, (size_t)total + 1);
    if (maps == NULL) return SMG_MEMORY;
    for (int x = 0; x < total; x++) {
        const smg_operand_map *map = map_of(b, x);
        if (map != NULL && smg_op_leaf(smg_graph_node(b->g, map->source)->op) <= SMG_LEAF_TENSOR) maps[count++] = map;
    }
    for (int x = 0; x < count; x++)
        for (int y = x + 1; y < count; y++)
            for (int d = 0; maps[x]->source == maps[y]->source && d < maps[x]->rank; d++)
                SMG_TRY(align_dim(b, &maps[x]->dim[d], &maps[y]->dim[d]));
    return SMG_OK;
}

static smg_node_id read_by(const smg_space_builder *b, int i, int k) {
    const smg_soperand *o = &b->space->nodes.items[i].operand[k];
    if (o->producer >= b->count) return b->copies.items[o->producer - b->count].node;
    return o->producer >= 0 ? b->nodes[o->producer] : b->maps[i][k]->source;
}

/* Two products of the same tensor whose own axes nobody else aligns walk one common axis when the extents agree;
 * the tile of the shared operand then serves both (horizontal fusion). */
static smg_status align_siblings(smg_space_builder *b) {
    for (int x = 0; x < b->count; x++) {
        const smg_node *nx = smg_graph_node(b->g, b->nodes[x]);
        if (smg_node_class(nx) != SMG_CLASS_CONTRACT) continue;
        for (int y = x + 1; y < b->count; y++) {
            const smg_node *ny = smg_graph_node(b->g, b->nodes[y]);
            if (smg_node_class(ny) != SMG_CLASS_CONTRACT || ny->rank != nx->rank) continue;
            bool share = false;
            for (int k = 0; k < 4; k++) share = share || read_by(b, x, k / 2) == read_by(b, y, k % 2);
            for (int d = 0; share && d < nx->rank; d++) {
                smg_atom_list rx, ry;
                if (!smg_atom_resolve(&b->atoms, &b->out[x][d], &rx)) continue;
                if (!smg_atom_resolve(&b->atoms, &b->out[y][d], &ry)) continue;
                SMG_TRY(align_runs(b, &rx, &ry));
            }
        }
    }
    return SMG_OK;
}

smg_status smg_space_align(smg_space_builder *b) {
    SMG_TRY(align_reads(b));
    return align_siblings(b);
}
