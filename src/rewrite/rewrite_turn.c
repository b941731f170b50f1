/* Values laid out as they are read. A value that a kernel makes with one axis innermost in memory, and that maps read
 * with another one innermost, costs each of them a stretch of memory for every element. Where they read it several
 * times over (one bias for each row of a batch, or for each layer), it is read through a copy in their order. The
 * copy takes a read and a write of it; whether it gets a kernel is for the planner to say, by price. */
#include "rewrite/rewrite_internal.h"

#define TIMES_READ 4 /* what maps read, in elements of the value */

typedef struct turner {
    smg_graph *g;
    const smg_node *old;
    int count;
    const int64_t *nominal;
    double *read;     /* per old node, a transposed value: elements that maps read of it */
    smg_node_id *now; /* old id -> new id */
} turner;

/* Of what is computed, with another axis innermost. */
static bool is_turned(const turner *t, smg_node_id id) {
    const smg_node *n = &t->old[id];
    if (smg_op_view(n->op) != SMG_VIEW_TRANSPOSE || !smg_node_computes(&t->old[n->operand[0]])) return false;
    int inner = smg_rewrite_last_axis(t->g, n);
    return inner >= 0 && n->perm[inner] != smg_rewrite_last_axis(t->g, &t->old[n->operand[0]]);
}

/* The transposed value that a map's operand shows, whole; -1: none. */
static smg_node_id turned_of(const turner *t, smg_node_id id) {
    for (; smg_node_class(&t->old[id]) == SMG_CLASS_VIEW; id = t->old[id].operand[0]) {
        if (is_turned(t, id)) return id;
        smg_view_kind kind = smg_op_view(t->old[id].op);
        if (kind != SMG_VIEW_RESHAPE && kind != SMG_VIEW_BROADCAST) return -1;
    }
    return -1;
}

static void count_reads(turner *t) {
    for (int i = 0; i < t->count; i++) {
        const smg_node *n = &t->old[i];
        for (int k = 0; k < n->operand_count && smg_node_class(n) == SMG_CLASS_MAP; k++) {
            smg_node_id turned = turned_of(t, n->operand[k]);
            int64_t elements = smg_rewrite_elements_at(t->g->sizes, n, t->nominal);
            if (turned >= 0 && elements > 0) t->read[turned] += (double)elements;
        }
    }
}

static bool is_worth(const turner *t, smg_node_id id) {
    int64_t elements = smg_rewrite_elements_at(t->g->sizes, &t->old[id], t->nominal);
    return elements > 0 && t->read[id] >= TIMES_READ * (double)elements;
}

static smg_status rebuild(turner *t, int *io_laid) {
    for (int i = 0; i < t->count; i++) {
        smg_node node = t->old[i];
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = t->now[node.operand[k]];
        smg_node *slot = SMG_ARRAY_PUSH(t->g->arena, &t->g->nodes);
        if (slot == NULL) return SMG_MEMORY;
        *slot = node;
        t->now[i] = t->g->nodes.count - 1;
        if (!is_worth(t, i)) continue;
        smg_node copy = {.op = SMG_OP_COPY, .operand_count = 1, .operand = {t->now[i]}, .name = ""};
        t->now[i] = smg_graph_push(t->g, &copy);
        if (t->now[i] < 0) return t->g->status;
        *io_laid += 1;
    }
    for (int o = 0; o < t->g->outputs.count; o++) t->g->outputs.items[o].node = t->now[t->g->outputs.items[o].node];
    return SMG_OK;
}

smg_status smg_rewrite_turn_values(smg_graph *g, const int64_t *nominal, int *out_laid) {
    size_t count = (size_t)g->nodes.count + 1;
    turner t = {.g = g, .old = g->nodes.items, .count = g->nodes.count, .nominal = nominal};
    *out_laid = 0;
    t.read = SMG_ARENA_ARRAY(g->arena, double, count);
    t.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    if (!t.read || !t.now) return SMG_MEMORY;
    count_reads(&t);
    bool finished = g->finished, any = false;
    for (int i = 0; i < t.count && !any; i++) any = is_worth(&t, i);
    if (!any) return SMG_OK;
    g->finished = false;
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    SMG_TRY(rebuild(&t, out_laid));
    g->finished = finished;
    return smg_context_status(g->ctx);
}
