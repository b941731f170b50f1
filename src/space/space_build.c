/* From nodes to a space: give every node fresh atoms for its dimensions, connect its operands, and number what
 * remains. The order matters in one way only: a failure names the edge. */
#include "space/space_internal.h"

/* A dimension of extent 1 has no atom: nothing moves along it. */
static bool fresh(smg_space_builder *b, smg_size extent, smg_atom_list *out) {
    *out = (smg_atom_list){0};
    if (smg_space_is_one(b, extent)) return true;
    int atom = smg_atom_new(&b->atoms, extent);
    if (atom < 0) return false;
    out->count = 1;
    out->atom[0] = atom;
    return true;
}

static smg_status make_dims(smg_space_builder *b, int i) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    b->reduced[i] = -1;
    for (int l = 0; l < 52; l++) b->labels[i][l] = -1;
    for (int d = 0; d < n->rank; d++) {
        if (!fresh(b, n->dims[d], &b->out[i][d])) return SMG_MEMORY;
        if (smg_node_class(n) == SMG_CLASS_CONTRACT && b->out[i][d].count == 1) {
            b->labels[i][smg_space_letter(n->label[2][d])] = b->out[i][d].atom[0];
        }
    }
    if (smg_node_class(n) == SMG_CLASS_REDUCE) {
        const smg_node *a = smg_graph_node(b->g, n->operand[0]);
        smg_atom_list list;
        if (!fresh(b, a->dims[n->axis], &list)) return SMG_MEMORY;
        if (list.count == 1) b->reduced[i] = list.atom[0];
    }
    return SMG_OK;
}

static smg_status build(smg_space_builder *b, const bool *needed) {
    smg_space *space = b->space;
    for (int i = 0; i < b->count; i++) {
        const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
        smg_snode *node = SMG_ARRAY_PUSH(b->arena, &space->nodes);
        if (node == NULL) return SMG_MEMORY;
        *node = (smg_snode){.node = b->nodes[i],
                            .op = n->op,
                            .class_ = smg_node_class(n),
                            .type = n->type,
                            .operand_count = n->operand_count,
                            .output = needed[b->nodes[i]],
                            .store = -1};
        SMG_TRY(make_dims(b, i));
        SMG_TRY(smg_space_connect(b, i));
        if (space->refused != NULL) return SMG_OK;
    }
    smg_space_mark_idle(b);
    if (!smg_space_distinct(b, 0, b->count)) {
        return smg_space_refuse(b, "one axis would index a value twice", b->nodes[b->count - 1]);
    }
    SMG_TRY(smg_space_align(b));
    SMG_TRY(smg_space_number(b)); /* only now: a later edge may still have split atoms */
    if (space->refused != NULL) return SMG_OK;
    smg_space_join_reductions(space);
    smg_space_coalesce(space);
    return SMG_OK;
}

smg_status smg_space_build(const smg_graph *g, smg_arena *arena, const smg_node_id *nodes, int count,
                           const bool *needed, smg_space **out_space) {
    smg_space_builder b = {.g = g, .sizes = g->sizes, .arena = arena, .nodes = nodes, .count = count};
    b.atoms = (smg_atoms){.sizes = g->sizes, .arena = arena};
    b.one = smg_size_const(g->sizes, 1);
    b.space = SMG_ARENA_NEW(arena, smg_space);
    b.out = smg_arena_alloc(arena, (size_t)count + 1, sizeof(*b.out));
    b.reduced = SMG_ARENA_ARRAY(arena, int, (size_t)count + 1);
    b.labels = smg_arena_alloc(arena, (size_t)count + 1, sizeof(*b.labels));
    b.maps = smg_arena_alloc(arena, (size_t)count + SMG_MOST_COPIES, sizeof(*b.maps));
    if (b.space == NULL || b.out == NULL || b.reduced == NULL || b.labels == NULL || b.maps == NULL) return SMG_MEMORY;
    b.space->graph = g;
    b.space->arena = arena;
    SMG_TRY(build(&b, needed));
    *out_space = b.space;
    return smg_context_status(g->ctx);
}

smg_status smg_space_build_repeated(const smg_graph *g, smg_arena *arena, const smg_node_id *nodes, int count,
                                    const bool *needed, const smg_srepeat *repeat, smg_space **out_space) {
    SMG_TRY(smg_space_build(g, arena, nodes, count, needed, out_space));
    if ((*out_space)->refused != NULL || repeat->count == 0) return SMG_OK;
    return smg_space_repeat(*out_space, repeat);
}
