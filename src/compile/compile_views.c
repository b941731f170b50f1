/* Views that no kernel reads through. Each reshape that does not keep its axes whole takes an index of its own, of
 * which an access has a few, and each axis that it divides is one more; behind an index that is data a table may have
 * none. What is too much for one access gets a kernel in between: a copy, laid as the view says. */
#include "compile/compile.h"
#include "kernel/kernel.h"
#include "space/space.h"

#define ROUNDS 4    /* a copy may itself read through too many */
#define FEW_VIEWS 3 /* behind each other: of fewer no space is built to ask */

typedef struct view_copies {
    smg_graph *g;
    const smg_node *old;
    int count;
    bool *copied;     /* old id: of a view */
    smg_node_id *now; /* old id -> new id */
} view_copies;

static bool is_view(const smg_graph *g, smg_node_id id) {
    return smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_VIEW;
}

/* Views behind each other from there on. */
static int chain_length(const smg_graph *g, smg_node_id id) {
    int length = 0;
    for (; is_view(g, id); id = smg_graph_node(g, id)->operand[0]) length++;
    return length;
}

/* The operand with the longest chain. */
static smg_node_id deepest_operand(const smg_graph *g, const smg_node *n) {
    smg_node_id deepest = n->operand[0];
    for (int k = 1; k < n->operand_count; k++)
        if (chain_length(g, n->operand[k]) > chain_length(g, deepest)) deepest = n->operand[k];
    return deepest;
}

/* Does some access run over more axes than one has? */
static bool is_too_wide(const smg_space *space) {
    bool wide = false;
    for (int i = 0; i < space->views.count && !wide; i++) {
        int axes = 0;
        for (smg_axis_set set = smg_space_view_axes(space, &space->views.items[i]); set != 0; set &= set - 1) axes++;
        wide = axes > SMG_ACCESS_AXES;
    }
    return wide;
}

/* The view that the node, by itself, cannot read through, of several axes too many the one in the middle; -1: none, or
 * a copy of it could not either. */
static smg_status find_view(const smg_graph *g, smg_arena *scratch, const bool *needed, smg_node_id id,
                            smg_node_id *out_view) {
    const smg_node *n = smg_graph_node(g, id);
    smg_op_class class_ = smg_node_class(n);
    smg_space *space = NULL;
    *out_view = -1;
    if (class_ == SMG_CLASS_LEAF || class_ == SMG_CLASS_VIEW) return SMG_OK;
    smg_node_id deepest = class_ == SMG_CLASS_GATHER ? n->operand[0] : deepest_operand(g, n);
    int length = chain_length(g, deepest);
    if (length < (class_ == SMG_CLASS_GATHER ? 1 : FEW_VIEWS)) return SMG_OK;
    SMG_TRY(smg_space_build(g, scratch, &id, 1, needed, &space));
    if (space->refused == NULL && is_too_wide(space)) {
        *out_view = deepest;
        for (int i = 0; i < length / 2; i++) *out_view = smg_graph_node(g, *out_view)->operand[0];
    } else if (space->refused != NULL && class_ == SMG_CLASS_GATHER) {
        *out_view = deepest;
    } else if (space->refused != NULL && is_view(g, space->refused_at) && space->refused_at != deepest) {
        *out_view = space->refused_at;
    }
    return SMG_OK;
}

static smg_status find_views(const smg_graph *g, bool *out_copied, int *out_count) {
    smg_arena *scratch = NULL;
    SMG_TRY(smg_arena_create(g->ctx, &scratch));
    bool *needed = SMG_ARENA_ARRAY(scratch, bool, (size_t)g->nodes.count + 1);
    smg_status status = needed != NULL ? SMG_OK : SMG_MEMORY;
    *out_count = 0;
    for (smg_node_id id = 0; status == SMG_OK && id < g->nodes.count; id++) needed[id] = true;
    for (smg_node_id id = 0; status == SMG_OK && id < g->nodes.count; id++) {
        smg_node_id view;
        status = find_view(g, scratch, needed, id, &view);
        if (status != SMG_OK || view < 0 || out_copied[view]) continue;
        out_copied[view] = true;
        ++*out_count;
    }
    smg_arena_destroy(scratch);
    return status;
}

static smg_node_id push(view_copies *v, const smg_node *node) {
    smg_node *slot = SMG_ARRAY_PUSH(v->g->arena, &v->g->nodes);
    if (slot == NULL) return -1;
    *slot = *node;
    return v->g->nodes.count - 1;
}

static smg_node_id push_copy(view_copies *v, smg_node_id of) {
    const smg_node copy = smg_compile_copy_node(v->g, of, "");
    return push(v, &copy);
}

static smg_status rebuild(view_copies *v) {
    for (smg_node_id id = 0; id < v->count; id++) {
        smg_node node = v->old[id];
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = v->now[node.operand[k]];
        v->now[id] = push(v, &node);
        if (v->now[id] >= 0 && v->copied[id]) v->now[id] = push_copy(v, v->now[id]);
        if (v->now[id] < 0) return SMG_MEMORY;
    }
    for (int i = 0; i < v->g->outputs.count; i++) v->g->outputs.items[i].node = v->now[v->g->outputs.items[i].node];
    return SMG_OK;
}

static smg_status copy_once(smg_graph *g, int *out_copied) {
    size_t count = (size_t)g->nodes.count + 1;
    view_copies v = {.g = g, .old = g->nodes.items, .count = g->nodes.count};
    v.copied = SMG_ARENA_ARRAY(g->arena, bool, count);
    v.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    *out_copied = 0;
    if (v.copied == NULL || v.now == NULL) return SMG_MEMORY;
    SMG_TRY(find_views(g, v.copied, out_copied));
    if (*out_copied == 0) return SMG_OK;
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    return rebuild(&v);
}

smg_status smg_compile_copy_views(smg_graph *g, int *out_copied) {
    int copied = 1;
    *out_copied = 0;
    for (int round = 0; round < ROUNDS && copied > 0; round++) {
        SMG_TRY(copy_once(g, &copied));
        *out_copied += copied;
    }
    return SMG_OK;
}
