/* Tables that no gather reads as they are. Behind an index that is data each reshape that does not keep it whole takes
 * indices of its own, of which an access has a few. Such a table gets a kernel: a copy, laid as the view says. */
#include "compile/compile.h"
#include "space/space.h"

typedef struct table_copies {
    smg_graph *g;
    const smg_node *old;
    int count;
    smg_node_id *now;  /* old id -> new id */
    smg_node_id *made; /* old id -> its copy; -1: none */
} table_copies;

/* Has the gather by itself no common space with its table? */
static smg_status is_refused(const smg_graph *g, smg_arena *scratch, const bool *needed, smg_node_id id,
                             bool *out_refused) {
    const smg_node *n = smg_graph_node(g, id);
    smg_space *space = NULL;
    *out_refused = false;
    if (smg_node_class(n) != SMG_CLASS_GATHER) return SMG_OK;
    if (smg_node_class(smg_graph_node(g, n->operand[0])) != SMG_CLASS_VIEW) return SMG_OK;
    SMG_TRY(smg_space_build(g, scratch, &id, 1, needed, &space));
    *out_refused = space->refused != NULL;
    return SMG_OK;
}

static smg_status find_refused(const smg_graph *g, bool *out_refused, int *out_count) {
    smg_arena *scratch = NULL;
    SMG_TRY(smg_arena_create(g->ctx, &scratch));
    bool *needed = SMG_ARENA_ARRAY(scratch, bool, (size_t)g->nodes.count + 1);
    smg_status status = needed != NULL ? SMG_OK : SMG_MEMORY;
    *out_count = 0;
    for (smg_node_id id = 0; status == SMG_OK && id < g->nodes.count; id++) needed[id] = true;
    for (smg_node_id id = 0; status == SMG_OK && id < g->nodes.count; id++) {
        status = is_refused(g, scratch, needed, id, &out_refused[id]);
        *out_count += out_refused[id];
    }
    smg_arena_destroy(scratch);
    return status;
}

static smg_node_id push(table_copies *t, const smg_node *node) {
    smg_node *slot = SMG_ARRAY_PUSH(t->g->arena, &t->g->nodes);
    if (slot == NULL) return -1;
    *slot = *node;
    return t->g->nodes.count - 1;
}

static smg_node_id copy_of(table_copies *t, smg_node_id id) {
    const smg_node *from = &t->old[id];
    smg_node copy = {.op = SMG_OP_COPY,
                     .type = from->type,
                     .rank = from->rank,
                     .operand_count = 1,
                     .operand = {t->now[id]},
                     .name = ""};
    memcpy(copy.dims, from->dims, sizeof(copy.dims));
    if (t->made[id] < 0) t->made[id] = push(t, &copy);
    return t->made[id];
}

static smg_status rebuild(table_copies *t, const bool *refused) {
    for (smg_node_id id = 0; id < t->count; id++) {
        smg_node node = t->old[id];
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = t->now[node.operand[k]];
        if (refused[id]) node.operand[0] = copy_of(t, t->old[id].operand[0]);
        t->now[id] = node.operand_count > 0 && node.operand[0] < 0 ? -1 : push(t, &node);
        if (t->now[id] < 0) return SMG_MEMORY;
    }
    for (int i = 0; i < t->g->outputs.count; i++) t->g->outputs.items[i].node = t->now[t->g->outputs.items[i].node];
    return SMG_OK;
}

smg_status smg_compile_copy_tables(smg_graph *g, int *out_copied) {
    size_t count = (size_t)g->nodes.count + 1;
    table_copies t = {.g = g, .old = g->nodes.items, .count = g->nodes.count};
    bool *refused = SMG_ARENA_ARRAY(g->arena, bool, count);
    t.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    t.made = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    *out_copied = 0;
    if (!refused || !t.now || !t.made) return SMG_MEMORY;
    SMG_TRY(find_refused(g, refused, out_copied));
    if (*out_copied == 0) return SMG_OK;
    for (size_t i = 0; i < count; i++) t.made[i] = -1;
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    return rebuild(&t, refused);
}
