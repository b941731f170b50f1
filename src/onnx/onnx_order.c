/* The order in which the nodes of one body are converted.
 *
 * ONNX asks that nodes be sorted; files are not trusted to be. A depth-first walk with its own stack
 * gives producers before consumers, finds cycles, and from the outputs tells which nodes matter. A
 * node with branches also reads what they take from outside.
 */
#include "onnx/onnx_private.h"

smg_onnx_value *smg_onnx_lookup(const onnx_scope *scope, const char *name) {
    void *found = NULL;
    for (; scope; scope = scope->outer)
        if (smg_map_get(scope->values, name, strlen(name), &found)) return found;
    return NULL;
}

typedef struct sorter {
    smg_onnx_build *b;
    const onnx_scope *scope;
    const onnx_body *body;
    smg_map *producers; /* value to &index of its node */
    int *index;         /* 0, 1, 2 ... */
    int *first;         /* per node: where its producers begin in edges; one more at the end */
    SMG_ARRAY(int) edges;
    char *state; /* 0 new, 1 being walked, 2 done */
    int *stack, *next;
} sorter;

static smg_status add_producers(sorter *s) {
    SMG_TRY(smg_map_create(s->b->arena, &s->producers));
    for (size_t i = 0; i < s->body->node_count; i++) {
        const pb_node *node = s->body->nodes[i];
        s->index[i] = (int)i;
        for (size_t k = 0; k < node->n_output; k++) {
            const char *name = node->output[k];
            void *known = NULL;
            if (!name[0]) continue;
            if (smg_map_get(s->producers, name, strlen(name), &known) ||
                smg_map_get(s->scope->values, name, strlen(name), &known))
                return smg_fail(s->b->ctx, SMG_FORMAT,
                                "'%s': value '%s' is made twice, again by "
                                "node '%s' (%s)",
                                s->b->model->label, name, smg_onnx_node_name(node), node->op_type);
            SMG_TRY(smg_map_set(s->producers, name, strlen(name), &s->index[i]));
        }
    }
    return SMG_OK;
}

static smg_status add_edge(sorter *s, const char *name, bool *out_known) {
    void *producer = NULL;
    *out_known = smg_map_get(s->producers, name, strlen(name), &producer);
    if (!*out_known) return SMG_OK;
    int *edge = SMG_ARRAY_PUSH(s->b->arena, &s->edges);
    if (!edge) return SMG_MEMORY;
    *edge = *(int *)producer;
    return SMG_OK;
}

/* Names that a branch reads, its own among them: those that this body makes are edges. */
static smg_status add_captures(sorter *s, const pb_node *node) {
    bool known;
    for (size_t a = 0; a < node->n_attribute; a++) {
        const pb_graph *g = node->attribute[a]->g;
        if (!g) continue;
        for (size_t i = 0; i < g->n_node; i++) {
            for (size_t k = 0; k < g->node[i]->n_input; k++) SMG_TRY(add_edge(s, g->node[i]->input[k], &known));
            SMG_TRY(add_captures(s, g->node[i]));
        }
        for (size_t i = 0; i < g->n_output; i++) SMG_TRY(add_edge(s, g->output[i]->name, &known));
    }
    return SMG_OK;
}

static smg_status add_edges(sorter *s) {
    for (size_t i = 0; i < s->body->node_count; i++) {
        const pb_node *node = s->body->nodes[i];
        s->first[i] = s->edges.count;
        for (size_t k = 0; k < node->n_input; k++) {
            const char *name = node->input[k];
            bool known = false;
            if (!name[0]) continue;
            SMG_TRY(add_edge(s, name, &known));
            if (!known && !smg_onnx_lookup(s->scope, name))
                return smg_fail(s->b->ctx, SMG_FORMAT,
                                "'%s': node '%s' (%s) reads '%s', which "
                                "nothing makes",
                                s->b->model->label, smg_onnx_node_name(node), node->op_type, name);
        }
        SMG_TRY(add_captures(s, node));
    }
    s->first[s->body->node_count] = s->edges.count;
    return SMG_OK;
}

/* Appends the node and what it needs to *io_count entries of `out`. */
static smg_status visit(sorter *s, int root, int *out, int *io_count) {
    int depth = 0;
    if (s->state[root] != 0) return SMG_OK;
    s->stack[0] = root;
    s->next[0] = s->first[root];
    s->state[root] = 1;
    while (depth >= 0) {
        int node = s->stack[depth];
        if (s->next[depth] == s->first[node + 1]) {
            s->state[node] = 2;
            out[(*io_count)++] = node;
            depth--;
            continue;
        }
        int to = s->edges.items[s->next[depth]++];
        if (s->state[to] == 1)
            return smg_fail(s->b->ctx, SMG_FORMAT, "'%s': node '%s' (%s) depends on its own result", s->b->model->label,
                            smg_onnx_node_name(s->body->nodes[to]), s->body->nodes[to]->op_type);
        if (s->state[to] != 0) continue;
        depth++;
        s->stack[depth] = to;
        s->next[depth] = s->first[to];
        s->state[to] = 1;
    }
    return SMG_OK;
}

static smg_status want(onnx_order *order, const char *name) {
    return name[0] ? smg_map_set(order->wanted, name, strlen(name), order) : SMG_OK;
}

static smg_status want_captures(onnx_order *order, const pb_node *node) {
    for (size_t a = 0; a < node->n_attribute; a++) {
        const pb_graph *g = node->attribute[a]->g;
        if (!g) continue;
        for (size_t i = 0; i < g->n_node; i++) {
            for (size_t k = 0; k < g->node[i]->n_input; k++) SMG_TRY(want(order, g->node[i]->input[k]));
            SMG_TRY(want_captures(order, g->node[i]));
        }
        for (size_t i = 0; i < g->n_output; i++) SMG_TRY(want(order, g->output[i]->name));
    }
    return SMG_OK;
}

static smg_status collect_wanted(sorter *s, onnx_order *order) {
    SMG_TRY(smg_map_create(s->b->arena, &order->wanted));
    for (size_t i = 0; i < s->body->output_count; i++) SMG_TRY(want(order, s->body->outputs[i]));
    for (int i = 0; i < order->count; i++) {
        const pb_node *node = s->body->nodes[order->nodes[i]];
        for (size_t k = 0; k < node->n_input; k++) SMG_TRY(want(order, node->input[k]));
        SMG_TRY(want_captures(order, node));
    }
    return SMG_OK;
}

static smg_status walk(sorter *s, onnx_order *order) {
    int count = (int)s->body->node_count, all = 0;
    for (size_t i = 0; i < s->body->output_count; i++) {
        const char *name = s->body->outputs[i];
        void *producer = NULL;
        if (smg_map_get(s->producers, name, strlen(name), &producer)) {
            SMG_TRY(visit(s, *(int *)producer, order->nodes, &order->count));
        } else if (!smg_onnx_lookup(s->scope, name)) {
            return smg_fail(s->b->ctx, SMG_FORMAT, "'%s': nothing makes the output '%s'", s->b->model->label, name);
        }
    }
    all = order->count; /* the rest is looked at for cycles only */
    for (int i = 0; i < count; i++) SMG_TRY(visit(s, i, order->nodes, &all));
    return SMG_OK;
}

smg_status smg_onnx_sort(smg_onnx_build *b, const onnx_scope *scope, const onnx_body *body, onnx_order *out_order) {
    size_t count = body->node_count;
    *out_order = (onnx_order){0};
    if (count > INT32_MAX / 8) return smg_fail(b->ctx, SMG_UNSUPPORTED, "'%s' has %zu nodes", b->model->label, count);
    sorter s = {.b = b, .scope = scope, .body = body};
    s.index = SMG_ARENA_ARRAY(b->arena, int, count + 1);
    s.first = SMG_ARENA_ARRAY(b->arena, int, count + 1);
    s.state = SMG_ARENA_ARRAY(b->arena, char, count + 1);
    s.stack = SMG_ARENA_ARRAY(b->arena, int, count + 1);
    s.next = SMG_ARENA_ARRAY(b->arena, int, count + 1);
    out_order->nodes = SMG_ARENA_ARRAY(b->arena, int, count + 1);
    if (!s.index || !s.first || !s.state || !s.stack || !s.next || !out_order->nodes) return SMG_MEMORY;
    SMG_TRY(add_producers(&s));
    SMG_TRY(add_edges(&s));
    SMG_TRY(walk(&s, out_order));
    return collect_wanted(&s, out_order);
}
