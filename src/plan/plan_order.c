/* The linear order that segments are cut from: depth first from the outputs, the operand that hangs on the fewest
 * products first, so that a chain (scores, their softmax, what they weigh) is not interrupted by the side branches that
 * it reads, and a branch is finished before the next begins. A product pulls in its siblings (three projections of one
 * input), each with the maps that take its place, so that it may share a kernel with these or with all of them; then,
 * one chain after the other, the maps and reductions that can follow at once. Any contiguous cut of a topological order
 * is free of cycles. */

#include "plan/plan_internal.h"

/* Readers of every source, through views: readers[first[s]] .. readers[first[s + 1]]. */
typedef struct ordering {
    planner *p;
    int *level; /* products on the longest path */
    int *first;
    smg_node_id *readers;
    bool *listed;               /* belongs to the order at hand */
    bool *streamed;             /* made of maps and gathers of what lies in memory: no need to come early */
    smg_node_id *stack, *chain; /* of the walk; of what follows a product */
    int depth, chained;
} ordering;

/* What the run list reads of the prepare list stays for ever. What is computed anew is used where its readers are:
 * those come first here. */
static void mark_uses(planner *p, const bool *live) {
    for (smg_node_id id = p->g->nodes.count - 1; id >= 0; id--) {
        const smg_node *n = smg_graph_node(p->g, id);
        if (!live[id] || !smg_node_computes(n)) continue;
        int use = p->prepared[id] == p->preparing ? p->place[id] : INT32_MAX;
        if (p->inlined[id] && !p->preparing)
            use = p->last_use[id];
        else if (use < 0) /* it is in no order at hand */
            use = INT32_MAX;
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (p->last_use[source] < use) p->last_use[source] = use;
        }
    }
    for (int o = 0; o < p->g->outputs.count; o++) {
        p->last_use[smg_space_source(p->g, p->g->outputs.items[o].node)] = INT32_MAX;
    }
}

void plan_mark_places(planner *p, const bool *live) {
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) p->place[id] = p->last_use[id] = -1;
    for (int i = 0; i < p->count; i++) p->place[p->order[i]] = i;
    mark_uses(p, live);
}

/* ---- the walk --------------------------------------------------------------------------------------- */

static smg_node_id source_of(const ordering *o, smg_node_id id, int k) {
    return smg_space_source(o->p->g, smg_graph_node(o->p->g, id)->operand[k]);
}

static bool waits(const ordering *o, smg_node_id id) {
    return o->listed[id] && o->p->place[id] < 0;
}

static bool ready(const ordering *o, smg_node_id id) {
    for (int k = 0; k < smg_graph_node(o->p->g, id)->operand_count; k++) {
        if (waits(o, source_of(o, id, k))) return false;
    }
    return waits(o, id);
}

/* What is computed anew has a place, but is no step. */
static void put(ordering *o, smg_node_id id) {
    o->p->place[id] = o->p->count;
    if (!o->p->inlined[id]) o->p->order[o->p->count++] = id;
}

static bool is_class(const ordering *o, smg_node_id id, smg_op_class class_) {
    return smg_node_class(smg_graph_node(o->p->g, id)) == class_;
}

/* Does `reader` read `id` element by element? A shifted read, or a part, is another kernel's in any case. */
static bool reads_in_place(const ordering *o, smg_node_id reader, smg_node_id id) {
    const smg_node *n = smg_graph_node(o->p->g, reader);
    for (int k = 0; k < n->operand_count; k++) {
        if (source_of(o, reader, k) != id) continue;
        for (smg_node_id at = n->operand[k]; at != id; at = smg_graph_node(o->p->g, at)->operand[0]) {
            smg_view_kind view = smg_op_view(smg_graph_node(o->p->g, at)->op);
            if (view == SMG_VIEW_SLICE || view == SMG_VIEW_WINDOW) return false;
        }
    }
    return true;
}

static void push_readers(ordering *o, smg_node_id id) {
    for (int r = o->first[id + 1] - 1; r >= o->first[id]; r--) {
        smg_node_id reader = o->readers[r];
        if (is_class(o, reader, SMG_CLASS_CONTRACT) || !reads_in_place(o, reader, id)) continue;
        if (ready(o, reader)) o->chain[o->chained++] = reader;
    }
}

/* Maps and reductions that everything is there for, behind the nodes placed from `at` on, a chain after the other.
 * They come so early to share a kernel with what they read. Behind a reduction the walk goes on by itself; of several
 * products each has its chain to the end, so that two do not alternate. */
static void put_chains(ordering *o, int at, bool several) {
    int end = o->p->count;
    for (int i = at; i < end; i++) {
        o->chained = 0;
        push_readers(o, o->p->order[i]);
        while (o->chained > 0) {
            smg_node_id id = o->chain[--o->chained];
            if (!ready(o, id)) continue; /* placed since */
            put(o, id);
            if (several || !is_class(o, id, SMG_CLASS_REDUCE)) push_readers(o, id);
        }
    }
}

/* With the maps that take its place: each is the only reader of the one before. */
static void put_product(ordering *o, smg_node_id id) {
    put(o, id);
    while (o->first[id + 1] - o->first[id] == 1) {
        smg_node_id reader = o->readers[o->first[id]];
        if (!is_class(o, reader, SMG_CLASS_MAP) || o->p->inlined[reader]) return;
        if (!reads_in_place(o, reader, id) || !ready(o, reader)) return;
        put(o, reader);
        id = reader;
    }
}

static void put_with_siblings(ordering *o, smg_node_id id) {
    int at = o->p->count, products = 1;
    if (!is_class(o, id, SMG_CLASS_CONTRACT)) {
        put(o, id);
        return;
    }
    put_product(o, id);
    for (int k = 0; k < 2; k++) {
        smg_node_id source = source_of(o, id, k);
        for (int r = o->first[source]; r < o->first[source + 1]; r++) {
            smg_node_id other = o->readers[r];
            if (!is_class(o, other, SMG_CLASS_CONTRACT) || o->level[other] != o->level[id]) continue;
            if (!ready(o, other)) continue;
            put_product(o, other);
            products++;
        }
    }
    put_chains(o, at, products > 1);
}

static bool comes_before(const ordering *o, smg_node_id a, smg_node_id b) {
    if (o->level[a] != o->level[b]) return o->level[a] < o->level[b];
    return o->streamed[b] && !o->streamed[a];
}

/* The operand to be finished next: on the fewest products, of those what is not streamed, the first of equal ones; -1
 * when all are. */
static smg_node_id next_operand(const ordering *o, smg_node_id id) {
    smg_node_id best = -1;
    for (int k = 0; k < smg_graph_node(o->p->g, id)->operand_count; k++) {
        smg_node_id source = source_of(o, id, k);
        if (waits(o, source) && (best < 0 || comes_before(o, source, best))) best = source;
    }
    return best;
}

static void finish(ordering *o, smg_node_id id) {
    o->depth = 0;
    if (waits(o, id)) o->stack[o->depth++] = id;
    while (o->depth > 0) {
        smg_node_id top = o->stack[o->depth - 1], next = waits(o, top) ? next_operand(o, top) : -1;
        if (next >= 0) {
            o->stack[o->depth++] = next;
            continue;
        }
        if (waits(o, top)) put_with_siblings(o, top);
        o->depth--;
    }
}

/* Sums in parts, all of one axis before what these make. */
static void finish_groups(ordering *o) {
    const int *group = o->p->together;
    int nodes = o->p->g->nodes.count;
    for (smg_node_id id = 0; group != NULL && id < nodes; id++) {
        if (group[id] <= 0 || !waits(o, id)) continue;
        for (smg_node_id part = id; part < nodes; part++)
            if (group[part] == group[id]) finish(o, part);
        for (smg_node_id all = id; all < nodes; all++)
            if (group[all] == -group[id]) finish(o, all);
    }
}

/* ---- what it needs ----------------------------------------------------------------------------------- */

static smg_status find_readers(ordering *o) {
    int nodes = o->p->g->nodes.count, total = 0;
    o->first = SMG_ARENA_ARRAY(o->p->arena, int, (size_t)nodes + 2);
    o->readers = SMG_ARENA_ARRAY(o->p->arena, smg_node_id, (size_t)nodes * SMG_MAX_OPERANDS + 1);
    if (o->first == NULL || o->readers == NULL) return SMG_MEMORY;
    for (smg_node_id i = 0; i < nodes; i++) {
        for (int k = 0; o->listed[i] && k < smg_graph_node(o->p->g, i)->operand_count; k++)
            o->first[source_of(o, i, k) + 1]++;
    }
    for (int i = 0; i <= nodes; i++) {
        total += o->first[i];
        o->first[i] = total;
    }
    for (smg_node_id i = nodes - 1; i >= 0; i--) { /* first[s + 1] goes down to where the readers of s begin */
        for (int k = 0; o->listed[i] && k < smg_graph_node(o->p->g, i)->operand_count; k++) {
            o->readers[--o->first[source_of(o, i, k) + 1]] = i;
        }
    }
    for (int i = 0; i < nodes; i++) o->first[i] = o->first[i + 1];
    o->first[nodes] = total;
    return SMG_OK;
}

/* Operands come first. */
static bool is_streamed(const ordering *o, smg_node_id id) {
    const smg_node *n = smg_graph_node(o->p->g, id);
    if (smg_node_class(n) == SMG_CLASS_LEAF || o->p->prepared[id]) return true;
    smg_op_class class_ = smg_node_class(n);
    if (class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_GATHER && class_ != SMG_CLASS_VIEW) return false;
    for (int k = 0; k < n->operand_count; k++) {
        if (!o->streamed[n->operand[k]]) return false;
    }
    return true;
}

static smg_status allocate(ordering *o) {
    planner *p = o->p;
    size_t nodes = (size_t)p->g->nodes.count + 1;
    o->level = SMG_ARENA_ARRAY(p->arena, int, nodes);
    o->listed = SMG_ARENA_ARRAY(p->arena, bool, nodes);
    o->streamed = SMG_ARENA_ARRAY(p->arena, bool, nodes);
    o->stack = SMG_ARENA_ARRAY(p->arena, smg_node_id, nodes);
    o->chain = SMG_ARENA_ARRAY(p->arena, smg_node_id, nodes * (SMG_MAX_OPERANDS + 1)); /* once an edge */
    p->order = SMG_ARENA_ARRAY(p->arena, smg_node_id, nodes);
    p->place = SMG_ARENA_ARRAY(p->arena, int, nodes);
    p->last_use = SMG_ARENA_ARRAY(p->arena, int, nodes);
    p->needed = SMG_ARENA_ARRAY(p->arena, bool, nodes);
    p->spots = SMG_ARENA_ARRAY(p->arena, plan_spot, nodes);
    return o->level != NULL && o->listed != NULL && o->streamed != NULL && o->stack != NULL && o->chain != NULL &&
                   p->order != NULL && p->place != NULL && p->last_use != NULL && p->needed != NULL && p->spots != NULL
               ? SMG_OK
               : SMG_MEMORY;
}

smg_status plan_order(planner *p) {
    ordering o = {.p = p};
    bool *live = SMG_ARENA_ARRAY(p->arena, bool, (size_t)p->g->nodes.count + 1);
    if (live == NULL) return SMG_MEMORY;
    SMG_TRY(allocate(&o));
    p->count = 0;
    smg_graph_mark_live(p->g, live); /* what no output needs is not in the order */
    for (smg_node_id i = 0; i < p->g->nodes.count; i++) {
        const smg_node *n = smg_graph_node(p->g, i);
        for (int k = 0; k < n->operand_count; k++) {
            if (o.level[n->operand[k]] > o.level[i]) o.level[i] = o.level[n->operand[k]];
        }
        o.level[i] += smg_node_class(n) == SMG_CLASS_CONTRACT;
        p->place[i] = -1;
        p->last_use[i] = -1;
        o.streamed[i] = is_streamed(&o, i);
        o.listed[i] =
            smg_node_computes(n) && live[i] && p->prepared[i] == p->preparing && (!p->inlined[i] || p->bound[i]);
        if (p->only != NULL) o.listed[i] = o.listed[i] && p->only[i];
    }
    SMG_TRY(find_readers(&o));
    finish_groups(&o);
    for (int i = 0; i < p->g->outputs.count; i++) finish(&o, smg_space_source(p->g, p->g->outputs.items[i].node));
    for (smg_node_id i = 0; i < p->g->nodes.count; i++) finish(&o, i); /* of the prepare list: no outputs */
    mark_uses(p, live);
    return SMG_OK;
}

/* By insertion: an order has most of its nodes in the order of the graph. */
static void sort_nodes(smg_node_id *io_nodes, int count) {
    for (int i = 1; i < count; i++) {
        smg_node_id node = io_nodes[i];
        int at = i;
        for (; at > 0 && io_nodes[at - 1] > node; at--) io_nodes[at] = io_nodes[at - 1];
        io_nodes[at] = node;
    }
}

int plan_members(planner *p, int from, int to, smg_node_id *out_nodes) {
    for (int i = from; i < to; i++) {
        out_nodes[i - from] = p->order[i];
        p->needed[p->order[i]] = p->last_use[p->order[i]] >= to;
    }
    int count = plan_add_inlined(p, out_nodes, to - from);
    for (int i = to - from; i < count; i++) p->needed[out_nodes[i]] = false; /* nobody else reads this copy */
    sort_nodes(out_nodes, count);
    return count;
}
