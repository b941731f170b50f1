/* The linear order that segments are cut from: by number of products on the longest path to a node,
 * then by id. Siblings (three projections of one input) come before what joins them, so that a join
 * and everything elementwise or reducing behind it stand together. Any contiguous cut of a topological order is
 * free of cycles. */
#include <stdlib.h>

#include "plan/plan_internal.h"

typedef struct keyed {
    int level;
    smg_node_id id;
} keyed;

static int by_level(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool computes(const smg_node *n) {
    smg_op_class c = smg_node_class(n);
    return c != SMG_CLASS_LEAF && c != SMG_CLASS_VIEW;
}

/* What no output needs is not in the order. */
static void mark_live(const smg_graph *g, bool *live) {
    for (int o = 0; o < g->outputs.count; o++) live[g->outputs.items[o].node] = true;
    for (smg_node_id i = g->nodes.count - 1; i >= 0; i--) {
        const smg_node *n = smg_graph_node(g, i);
        for (int k = 0; live[i] && k < n->operand_count; k++) live[n->operand[k]] = true;
    }
}

/* What the run list reads of the prepare list stays for ever. */
static void mark_uses(planner *p, const bool *live) {
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(p->g, id);
        if (!live[id] || !computes(n)) continue;
        int use = p->prepared[id] == p->preparing ? p->place[id] : INT32_MAX;
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (p->last_use[source] < use) p->last_use[source] = use;
        }
    }
    for (int o = 0; o < p->g->outputs.count; o++) {
        p->last_use[smg_space_source(p->g, p->g->outputs.items[o].node)] = INT32_MAX;
    }
}

/* What is made of indices and sizes only (a mask) belongs to its first reader, not to the beginning. */
static smg_status place_masks(const planner *p, int *level) {
    int nodes = p->g->nodes.count;
    bool *tensor = SMG_ARENA_ARRAY(p->arena, bool, (size_t)nodes + 1);
    int *reader = SMG_ARENA_ARRAY(p->arena, int, (size_t)nodes + 1);
    if (tensor == NULL || reader == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < nodes; i++) {
        const smg_node *n = smg_graph_node(p->g, i);
        tensor[i] = smg_op_leaf(n->op) == SMG_LEAF_TENSOR;
        reader[i] = INT32_MAX;
        for (int k = 0; k < n->operand_count; k++) tensor[i] = tensor[i] || tensor[n->operand[k]];
    }
    for (smg_node_id i = nodes - 1; i >= 0; i--) {
        const smg_node *n = smg_graph_node(p->g, i);
        if (!tensor[i] && reader[i] < INT32_MAX && reader[i] > level[i]) level[i] = reader[i];
        int own = computes(n) ? level[i] : reader[i];
        for (int k = 0; k < n->operand_count; k++) {
            if (own < reader[n->operand[k]]) reader[n->operand[k]] = own;
        }
    }
    return SMG_OK;
}

smg_status plan_order(planner *p) {
    int nodes = p->g->nodes.count;
    int *level = SMG_ARENA_ARRAY(p->arena, int, (size_t)nodes + 1);
    keyed *keys = SMG_ARENA_ARRAY(p->arena, keyed, (size_t)nodes + 1);
    p->order = SMG_ARENA_ARRAY(p->arena, smg_node_id, (size_t)nodes + 1);
    p->place = SMG_ARENA_ARRAY(p->arena, int, (size_t)nodes + 1);
    p->last_use = SMG_ARENA_ARRAY(p->arena, int, (size_t)nodes + 1);
    p->needed = SMG_ARENA_ARRAY(p->arena, bool, (size_t)nodes + 1);
    bool *live = SMG_ARENA_ARRAY(p->arena, bool, (size_t)nodes + 1);
    if (level == NULL || keys == NULL || p->order == NULL || p->place == NULL || p->last_use == NULL ||
        p->needed == NULL || live == NULL) {
        return SMG_MEMORY;
    }
    p->count = 0;
    mark_live(p->g, live);
    for (smg_node_id i = 0; i < nodes; i++) {
        const smg_node *n = smg_graph_node(p->g, i);
        for (int k = 0; k < n->operand_count; k++) {
            if (level[n->operand[k]] > level[i]) level[i] = level[n->operand[k]];
        }
        level[i] += smg_node_class(n) == SMG_CLASS_CONTRACT;
    }
    SMG_TRY(place_masks(p, level));
    for (smg_node_id i = 0; i < nodes; i++) {
        const smg_node *n = smg_graph_node(p->g, i);
        p->place[i] = -1;
        p->last_use[i] = -1;
        bool listed = computes(n) && live[i] && p->prepared[i] == p->preparing && !p->inlined[i];
        if (listed) keys[p->count++] = (keyed){ .level = level[i], .id = i };
    }
    qsort(keys, (size_t)p->count, sizeof(keyed), by_level);
    for (int i = 0; i < p->count; i++) {
        p->order[i] = keys[i].id;
        p->place[keys[i].id] = i;
    }
    mark_uses(p, live);
    return SMG_OK;
}

static int by_id(const void *a, const void *b) {
    smg_node_id x = *(const smg_node_id *)a, y = *(const smg_node_id *)b;
    return x < y ? -1 : x > y;
}

int plan_members(planner *p, int from, int to, smg_node_id *out_nodes) {
    for (int i = from; i < to; i++) {
        out_nodes[i - from] = p->order[i];
        p->needed[p->order[i]] = p->last_use[p->order[i]] >= to;
    }
    int count = plan_add_inlined(p, out_nodes, to - from);
    if (count > 0) qsort(out_nodes, (size_t)count, sizeof(smg_node_id), by_id);
    return count;
}
