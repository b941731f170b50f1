/* The text form of a graph: one line per symbol, node and output, readable and parsed by graph_parse.c.
 * A node is called by its name when that is a plain word which no earlier node has, else by %id with
 * the name as an attribute. Constants of up to 16 elements carry their data; larger ones are printed as
 * shapes, because the text shows structure. */
#include "graph/graph_private.h"

#define INLINE_ELEMENTS 16

typedef struct graph_printer {
    const smg_graph *g;
    smg_text *text;
    smg_map *first; /* name -> first node with it, as id + 1 */
} graph_printer;

static bool goes_by_name(const graph_printer *p, smg_node_id id) {
    const char *name = p->g->nodes.items[id].name;
    void *first = NULL;
    if (!p->first || !smg_name_is_plain(name)) return false;
    return smg_map_get(p->first, name, strlen(name), &first) && first == &p->g->nodes.items[id];
}

static void print_reference(const graph_printer *p, smg_node_id id) {
    if (goes_by_name(p, id))
        smg_text_add(p->text, p->g->nodes.items[id].name);
    else
        smg_text_addf(p->text, "%%%d", (int)id);
}

static void print_name(smg_text *text, const char *name) {
    if (smg_name_is_plain(name))
        smg_text_add(text, name);
    else
        smg_text_add_json(text, name);
}

static void print_element(smg_text *text, smg_type type, double value) {
    if (smg_type_kind(type) == SMG_KIND_FLOAT)
        smg_text_add_f32(text, (float)value);
    else
        smg_text_addf(text, "%.0f", value);
}

static void print_data(const graph_printer *p, const smg_node *node, smg_node_id id) {
    int64_t count;
    if (!node->data) return;
    if (!smg_size_is_const(p->g->sizes, smg_node_elements(p->g, id), &count) || count > INLINE_ELEMENTS) return;
    smg_text_add(p->text, " data=[");
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) smg_text_add(p->text, ", ");
        print_element(p->text, node->type, smg_host_get(node->type, node->data, i));
    }
    smg_text_add(p->text, "]");
}

static void print_view(const graph_printer *p, const smg_node *node) {
    smg_view_kind kind = smg_op_view(node->op);
    if (kind == SMG_VIEW_TRANSPOSE) {
        smg_text_add(p->text, " perm=[");
        for (int i = 0; i < node->rank; i++) smg_text_addf(p->text, "%s%d", i > 0 ? ", " : "", node->perm[i]);
        smg_text_add(p->text, "]");
    }
    if (kind == SMG_VIEW_SLICE) {
        smg_text_addf(p->text, " axis=%d begin=", node->axis);
        smg_size_print(p->g->sizes, node->begin, p->text);
        smg_text_addf(p->text, " step=%lld", (long long)node->step);
    }
    if (kind == SMG_VIEW_WINDOW) {
        smg_text_addf(p->text, " axis=%d begin=", node->axis);
        smg_size_print(p->g->sizes, node->begin, p->text);
        smg_text_addf(p->text, " step=%lld dilation=%lld fill=", (long long)node->step, (long long)node->dilation);
        smg_text_add_f64(p->text, node->value);
    }
}

static void print_leaf(const graph_printer *p, const smg_node *node) {
    smg_leaf_kind kind = smg_op_leaf(node->op);
    smg_text_add(p->text, " ");
    if (kind == SMG_LEAF_NUMBER) smg_text_add_f64(p->text, node->value);
    if (kind == SMG_LEAF_SIZE) smg_size_print(p->g->sizes, node->size, p->text);
    if (kind == SMG_LEAF_INDEX) smg_text_addf(p->text, "axis=%d", node->axis);
    if (kind != SMG_LEAF_TENSOR) smg_text_add(p->text, " : ");
}

static void print_node(const graph_printer *p, smg_node_id id) {
    const smg_node *node = &p->g->nodes.items[id];
    smg_op_class class_ = smg_node_class(node);
    print_reference(p, id);
    smg_text_addf(p->text, " = %s", smg_op_get(node->op)->word);
    if (class_ == SMG_CLASS_LEAF) {
        print_leaf(p, node);
    } else {
        smg_text_add(p->text, "(");
        for (int k = 0; k < node->operand_count; k++) {
            if (k > 0) smg_text_add(p->text, ", ");
            print_reference(p, node->operand[k]);
        }
        smg_text_add(p->text, ")");
        if (class_ == SMG_CLASS_REDUCE) smg_text_addf(p->text, " axis=%d%s", node->axis, node->keep ? " keep" : "");
        if (smg_node_is_blocked(node)) smg_text_addf(p->text, " blocks=[%d, %d]", node->block[0], node->block[1]);
        if (class_ == SMG_CLASS_CONTRACT)
            smg_text_addf(p->text, " \"%s,%s->%s\"", node->label[0], node->label[1], node->label[2]);
        print_view(p, node);
        smg_text_add(p->text, " : ");
    }
    smg_node_print_type(p->g, node, p->text);
    if (smg_op_is_constant(node->op)) print_data(p, node, id);
    if (node->name[0] && !goes_by_name(p, id)) {
        smg_text_add(p->text, " name=");
        smg_text_add_json(p->text, node->name);
    }
    smg_text_add(p->text, "\n");
}

/* Names to the first node that has them; without memory every node goes by its id. */
static smg_map *first_names(const smg_graph *g, smg_arena *arena) {
    smg_map *map = NULL;
    if (!arena || smg_map_create(arena, &map) != SMG_OK) return NULL;
    for (int i = 0; i < g->nodes.count; i++) {
        const char *name = g->nodes.items[i].name;
        void *known;
        if (!name[0] || smg_map_get(map, name, strlen(name), &known)) continue;
        if (smg_map_set(map, name, strlen(name), &g->nodes.items[i]) != SMG_OK) return NULL;
    }
    return map;
}

/* Of an input that rewriting has dropped nothing is left to say. */
static void print_states(const smg_graph *g, smg_text *text) {
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *node = &g->nodes.items[i];
        int next = smg_node_is_input(node) ? smg_graph_next_of(g, node->name) : -1;
        if (next < 0) continue;
        smg_text_add(text, "state ");
        print_name(text, node->name);
        smg_text_add(text, " = ");
        print_name(text, g->outputs.items[next].name);
        smg_text_add(text, "\n");
    }
}

void smg_graph_print(const smg_graph *g, smg_text *text) {
    smg_arena *arena = NULL;
    graph_printer p = {g, text, NULL};
    if (smg_arena_create(g->ctx, &arena) == SMG_OK) p.first = first_names(g, arena);
    if (!p.first) text->failed = true;
    smg_text_add(text, "graph ");
    print_name(text, g->name);
    smg_text_add(text, "\n");
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        smg_text_addf(text, "dim %s", smg_size_symbol_name(g->sizes, i));
        int64_t max = smg_size_symbol_max(g->sizes, i);
        if (max != SMG_SIZE_UNBOUNDED) smg_text_addf(text, " max %lld", (long long)max);
        smg_text_add(text, "\n");
    }
    for (int i = 0; i < g->nodes.count; i++) print_node(&p, i);
    for (int i = 0; i < g->outputs.count; i++) {
        smg_text_add(text, "output ");
        print_name(text, g->outputs.items[i].name);
        smg_text_add(text, " = ");
        print_reference(&p, g->outputs.items[i].node);
        smg_text_add(text, "\n");
    }
    print_states(g, text);
    smg_arena_destroy(arena);
}
