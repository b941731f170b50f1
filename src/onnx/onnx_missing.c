/* Everything that smg does not support, found without converting: a walk over all nodes of the graph,
 * of branches and of the model's functions that are called. */
#include "onnx/onnx_private.h"

typedef struct scan {
    smg_onnx *model;
    size_t import_count;
    pb_opset *const *imports; /* of the model or of the function being walked */
    smg_map *done;            /* functions that were walked, by address */
    int depth;
} scan;

static smg_status scan_nodes(scan *s, size_t count, pb_node *const *nodes);

static smg_status add(scan *s, const pb_node *node, int64_t opset, const char *reason) {
    smg_onnx_missing *row = SMG_ARRAY_PUSH(s->model->arena, &s->model->missing);
    if (!row) return SMG_MEMORY;
    *row = (smg_onnx_missing){smg_onnx_node_name(node), node->op_type, smg_onnx_domain(node->domain), opset, reason};
    return SMG_OK;
}

static smg_status scan_function(scan *s, const pb_node *node, const pb_function *f) {
    void *known = NULL;
    if (smg_map_get(s->done, &f, sizeof f, &known)) return SMG_OK;
    if (s->depth == SMG_ONNX_DEEPEST) return add(s, node, 0, "functions call each other too deeply");
    SMG_TRY(smg_map_set(s->done, &f, sizeof f, s));
    scan inner = *s;
    inner.import_count = f->n_opset_import;
    inner.imports = f->opset_import;
    inner.depth++;
    return scan_nodes(&inner, f->n_node, f->node);
}

static smg_status scan_node(scan *s, const pb_node *node) {
    const char *domain = smg_onnx_domain(node->domain);
    int64_t opset = smg_onnx_opset_of(s->import_count, s->imports, domain);
    const pb_function *f = smg_onnx_find_function(s->model, node);
    if (f) return scan_function(s, node, f);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const pb_graph *g = node->attribute[i]->g;
        if (g) SMG_TRY(scan_nodes(s, g->n_node, g->node));
    }
    if (opset == 0) return add(s, node, 0, "the model does not import this domain");
    bool own = domain[0] == '\0';
    if (own && (opset < SMG_ONNX_OPSET_MIN || opset > SMG_ONNX_OPSET_MAX))
        return add(s, node, opset, "smg reads opsets 11 to 23");
    if (own && (strcmp(node->op_type, "If") == 0 || strcmp(node->op_type, "Constant") == 0)) return SMG_OK;
    const smg_onnx_op *op = smg_onnx_find_op(domain, node->op_type);
    if (!op) return add(s, node, opset, "smg does not know this operator");
    return SMG_OK;
}

/* Nesting is bounded by the diet, calls by `done`. */
static smg_status scan_nodes(scan *s, size_t count, pb_node *const *nodes) {
    for (size_t i = 0; i < count; i++) SMG_TRY(scan_node(s, nodes[i]));
    return SMG_OK;
}

smg_status smg_onnx_find_missing(smg_onnx *model) {
    const pb_model *proto = model->proto;
    scan s = {.model = model, .import_count = proto->n_opset_import, .imports = proto->opset_import};
    SMG_TRY(smg_map_create(model->arena, &s.done));
    return scan_nodes(&s, proto->graph->n_node, proto->graph->node);
}
