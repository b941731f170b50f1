/* The conversion: inputs and weights become values, nodes are converted in order, outputs are set.
 *
 * A call of one of the model's functions converts the function's body in a scope of its own, an If the
 * branch that its condition chooses, or both where that is not known, in a scope that sees the one around. When a
 * converter finds what a symbol of the inputs must be, everything starts again with that knowledge: sizes are kept
 * canonical, so an equality cannot be added later.
 */
#include "onnx/onnx_part.h"
#include "onnx/onnx_private.h"

#define MOST_NODES 100000 /* after functions are expanded */
#define MOST_STARTS 32

typedef struct driver {
    smg_onnx_build b;
    smg_onnx *m;
    int64_t converted;
    smg_onnx_value nothing; /* what an optional input that was left out is in a function */
} driver;

static smg_status convert_body(driver *d, onnx_scope *scope, const onnx_body *body);

static smg_onnx_value *new_value(driver *d, const char *name) {
    smg_onnx_value *v = SMG_ARENA_NEW(d->m->arena, smg_onnx_value);
    if (v) v->name = name;
    return v;
}

static smg_status define(driver *d, onnx_scope *scope, const char *name, smg_onnx_value *v) {
    void *known = NULL;
    if (!v) return SMG_MEMORY;
    if (smg_map_get(scope->values, name, strlen(name), &known))
        return smg_fail(d->m->ctx, SMG_FORMAT, "'%s': value '%s' exists twice", d->m->label, name);
    return smg_map_set(scope->values, name, strlen(name), v);
}

/* ---- bodies inside nodes ------------------------------------------------------------------------ */

static smg_status add_initializers(driver *d, onnx_scope *scope, const pb_graph *g) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        const pb_tensor *proto = g->initializer[i];
        const smg_import_tensor *tensor = NULL;
        smg_onnx_value *v = new_value(d, proto->name);
        SMG_TRY(define(d, scope, proto->name, v));
        if (smg_onnx_dtype(proto->data_type) == SMG_IMPORT_DTYPE_NONE) {
            v->unreadable = proto;
            continue;
        }
        SMG_TRY(smg_onnx_read_tensor(d->m, proto, "?", &tensor));
        smg_onnx_hold_constant(&d->b, v, tensor);
        if (d->b.failed) return smg_context_status(d->m->ctx);
    }
    return SMG_OK;
}

/* A tensor of strings does no harm until it is read. */
static smg_status refuse_unreadable(const driver *d, const smg_onnx_value *v) {
    const smg_import_tensor *none = NULL;
    if (v == NULL || v->unreadable == NULL) return SMG_OK;
    return smg_onnx_read_tensor(d->m, v->unreadable, v->name, &none);
}

static smg_status copy_outputs(driver *d, const onnx_scope *scope, const smg_onnx_node *n, size_t count,
                               const char *const *names) {
    if ((size_t)n->output_count > count)
        return smg_onnx_at_node(
            &d->b, n, smg_onnx_fail(&d->b, n, SMG_FORMAT, "%d outputs are taken of %zu", n->output_count, count));
    for (int i = 0; i < n->output_count; i++) {
        const smg_onnx_value *inner = smg_onnx_lookup(scope, names[i]);
        if (!n->outputs[i]) continue;
        if (!inner) return smg_onnx_failed(&d->b, n);
        const char *name = n->outputs[i]->name;
        *n->outputs[i] = *inner;
        n->outputs[i]->name = name;
    }
    return SMG_OK;
}

static smg_status call_function(driver *d, const onnx_scope *outer, const pb_function *f, const smg_onnx_node *n) {
    onnx_scope scope = {.call = n->attributes,
                        .function = f,
                        .import_count = f->n_opset_import,
                        .imports = f->opset_import,
                        .depth = outer->depth + 1};
    SMG_TRY(smg_map_create(d->m->arena, &scope.values));
    for (size_t i = 0; i < f->n_input; i++) {
        smg_onnx_value *v = smg_onnx_has(n, (int)i) ? n->inputs[i] : &d->nothing;
        SMG_TRY(define(d, &scope, f->input[i], v));
    }
    const onnx_body body = {f->n_node, f->node, f->n_output, (const char *const *)f->output};
    SMG_TRY(convert_body(d, &scope, &body));
    return copy_outputs(d, &scope, n, f->n_output, (const char *const *)f->output);
}

static smg_status output_names(driver *d, const pb_graph *g, const char *const **out_names) {
    const char **names = SMG_ARENA_ARRAY(d->m->arena, const char *, g->n_output + 1);
    if (!names) return SMG_MEMORY;
    for (size_t i = 0; i < g->n_output; i++) names[i] = g->output[i]->name;
    *out_names = names;
    return SMG_OK;
}

/* One branch of an If, converted in a scope of its own. */
typedef struct branch {
    onnx_scope scope;
    const pb_graph *graph;
    const char *const *names; /* of its outputs */
} branch;

static smg_status convert_branch(driver *d, const onnx_scope *outer, const smg_onnx_node *n, const char *word,
                                 branch *out) {
    const pb_attribute *attribute = smg_onnx_find_attribute(n->attributes, word);
    if (!attribute || !attribute->g) return smg_onnx_fail(&d->b, n, SMG_FORMAT, "it has no %s", word);
    const pb_graph *g = out->graph = attribute->g;
    out->scope = *outer;
    out->scope.outer = outer;
    out->scope.depth++;
    SMG_TRY(smg_map_create(d->m->arena, &out->scope.values));
    SMG_TRY(add_initializers(d, &out->scope, g));
    SMG_TRY(output_names(d, g, &out->names));
    const onnx_body body = {g->n_node, g->node, g->n_output, out->names};
    return convert_body(d, &out->scope, &body);
}

/* Output `output` of a condition that comes at run time: both are computed, one is taken. */
static smg_status choose(driver *d, const smg_onnx_node *n, int output, smg_onnx_value *yes, smg_onnx_value *no) {
    smg_onnx_build *b = &d->b;
    smg_onnx_value *condition = n->inputs[0];
    bool alike = !yes->items && !no->items && yes->rank == no->rank &&
                 smg_onnx_graph_type(yes->dtype) == smg_onnx_graph_type(no->dtype);
    for (int i = 0; i < yes->rank && alike; i++) alike = yes->dims[i] == no->dims[i];
    if (!alike || smg_onnx_graph_type(condition->dtype) != SMG_TYPE_BOOL ||
        !smg_onnx_is_const(b, smg_onnx_product(b, condition->rank, condition->dims), 1))
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED,
                             "its condition '%s' is not known before the run, and output %d is %s after one branch, "
                             "%s after the other",
                             condition->name, output, smg_onnx_shape_text(b, yes), smg_onnx_shape_text(b, no));
    smg_value holds = smg_onnx_reshape(b, smg_onnx_value_in(b, condition), 0, NULL);
    smg_value value = smg_onnx_select(b, holds, smg_onnx_value_in(b, yes), smg_onnx_value_in(b, no));
    return smg_onnx_set_typed(b, n, output, yes->dtype, value);
}

static smg_status take_both(driver *d, const onnx_scope *outer, const smg_onnx_node *n) {
    branch yes, no;
    SMG_TRY(convert_branch(d, outer, n, "then_branch", &yes));
    SMG_TRY(convert_branch(d, outer, n, "else_branch", &no));
    for (int i = 0; i < n->output_count; i++) {
        if (!n->outputs[i]) continue;
        if ((size_t)i >= yes.graph->n_output || (size_t)i >= no.graph->n_output)
            return smg_onnx_fail(&d->b, n, SMG_FORMAT, "output %d is not one of both branches", i);
        smg_onnx_value *a = smg_onnx_lookup(&yes.scope, yes.names[i]), *b = smg_onnx_lookup(&no.scope, no.names[i]);
        if (!a || !b) return smg_onnx_failed(&d->b, n);
        SMG_TRY(choose(d, n, i, a, b));
    }
    return SMG_OK;
}

static smg_status take_branch(driver *d, const onnx_scope *outer, const smg_onnx_node *n) {
    double condition = 0;
    branch taken;
    if (!smg_onnx_has(n, 0)) return smg_onnx_fail(&d->b, n, SMG_FORMAT, "it has no condition");
    if (!smg_onnx_is_number(&d->b, n->inputs[0], &condition)) return take_both(d, outer, n);
    SMG_TRY(convert_branch(d, outer, n, condition != 0 ? "then_branch" : "else_branch", &taken));
    return copy_outputs(d, &taken.scope, n, taken.graph->n_output, taken.names);
}

/* ---- one node ----------------------------------------------------------------------------------- */

static smg_status find_inputs(driver *d, const onnx_scope *scope, const pb_node *node, smg_onnx_node *out) {
    smg_onnx_value **inputs = SMG_ARENA_ARRAY(d->m->arena, smg_onnx_value *, node->n_input + 1);
    if (!inputs) return SMG_MEMORY;
    for (size_t i = 0; i < node->n_input; i++) {
        if (!node->input[i][0]) continue;
        inputs[i] = smg_onnx_lookup(scope, node->input[i]);
        if (inputs[i] == &d->nothing) inputs[i] = NULL;
        SMG_TRY(refuse_unreadable(d, inputs[i]));
    }
    out->inputs = inputs;
    out->input_count = (int)node->n_input;
    return SMG_OK;
}

static smg_status make_outputs(driver *d, onnx_scope *scope, const onnx_order *order, const pb_node *node,
                               smg_onnx_node *out) {
    smg_onnx_value **outputs = SMG_ARENA_ARRAY(d->m->arena, smg_onnx_value *, node->n_output + 1);
    if (!outputs) return SMG_MEMORY;
    for (size_t i = 0; i < node->n_output; i++) {
        const char *name = node->output[i];
        void *wanted = NULL;
        if (!name[0] || !smg_map_get(order->wanted, name, strlen(name), &wanted)) continue;
        outputs[i] = new_value(d, name);
        SMG_TRY(define(d, scope, name, outputs[i]));
    }
    out->outputs = outputs;
    out->output_count = (int)node->n_output;
    return SMG_OK;
}

static smg_status dispatch(driver *d, const onnx_scope *scope, const pb_node *node, const smg_onnx_node *n) {
    const pb_function *f = smg_onnx_find_function(d->m, node);
    bool own = n->domain[0] == '\0', branches = own && strcmp(n->op, "If") == 0;
    smg_status status = SMG_OK;
    if (!f && !branches && !(own && strcmp(n->op, "Constant") == 0)) return smg_onnx_call(&d->b, n);
    if ((f || branches) && scope->depth >= SMG_ONNX_DEEPEST) {
        status = smg_onnx_fail(&d->b, n, SMG_UNSUPPORTED,
                               "functions and branches are nested more "
                               "than %d deep",
                               SMG_ONNX_DEEPEST);
        return smg_onnx_at_node(&d->b, n, status);
    }
    if (f) return call_function(d, scope, f, n);
    status = branches ? take_branch(d, scope, n) : smg_onnx_convert_constant(&d->b, n);
    /* A failure inside a branch has its own node's name already. */
    bool named = branches && strncmp(smg_context_error(d->m->ctx), "'", 1) == 0;
    return status == SMG_OK || named ? status : smg_onnx_at_node(&d->b, n, status);
}

static smg_status convert_node(driver *d, onnx_scope *scope, const onnx_order *order, const pb_node *node) {
    if (++d->converted > MOST_NODES)
        return smg_fail(d->m->ctx, SMG_UNSUPPORTED, "'%s' has more than %d nodes when its functions are expanded",
                        d->m->label, MOST_NODES);
    onnx_attributes *attributes = SMG_ARENA_NEW(d->m->arena, onnx_attributes);
    if (!attributes) return SMG_MEMORY;
    *attributes = (onnx_attributes){.model = d->m,
                                    .count = node->n_attribute,
                                    .items = node->attribute,
                                    .call = scope->call,
                                    .function = scope->function};
    const char *domain = smg_onnx_domain(node->domain);
    smg_onnx_node n = {
        .name = smg_onnx_node_name(node),
        .op = node->op_type,
        .domain = domain,
        .opset = smg_onnx_opset_of(scope->import_count, scope->imports, domain),
        .attributes = attributes,
    };
    if (node->n_input > INT16_MAX || node->n_output > INT16_MAX)
        return smg_onnx_at_node(&d->b, &n,
                                smg_onnx_fail(&d->b, &n, SMG_UNSUPPORTED, "it has %zu inputs and %zu outputs",
                                              node->n_input, node->n_output));
    SMG_TRY(find_inputs(d, scope, node, &n));
    SMG_TRY(make_outputs(d, scope, order, node, &n));
    return dispatch(d, scope, node, &n);
}

static smg_status convert_body(driver *d, onnx_scope *scope, const onnx_body *body) {
    onnx_order order;
    SMG_TRY(smg_onnx_sort(&d->b, scope, body, &order));
    for (int i = 0; i < order.count; i++) SMG_TRY(convert_node(d, scope, &order, body->nodes[order.nodes[i]]));
    return SMG_OK;
}

/* ---- the model ---------------------------------------------------------------------------------- */

/* The type that a caller gives: there is no double and no byte among them. */
static smg_type input_type(smg_import_dtype dtype) {
    if (dtype == SMG_IMPORT_F16) return SMG_TYPE_F16;
    if (dtype == SMG_IMPORT_I64) return SMG_TYPE_I64;
    return smg_onnx_graph_type(dtype);
}

static smg_status add_input(driver *d, onnx_scope *scope, const pb_value_info *input) {
    int64_t type = input->type->tensor_type->elem_type;
    smg_onnx_value *v = new_value(d, input->name);
    SMG_TRY(define(d, scope, input->name, v));
    v->dtype = smg_onnx_dtype(type);
    if (v->dtype == SMG_IMPORT_DTYPE_NONE)
        return smg_fail(d->m->ctx, SMG_UNSUPPORTED, "'%s': input '%s' holds %s (type %lld)", d->m->label, input->name,
                        smg_onnx_type_word(type), (long long)type);
    SMG_TRY(smg_onnx_input_dims(&d->b, input, &v->rank, v->dims));
    smg_type given = input_type(v->dtype), wanted = smg_onnx_graph_type(v->dtype);
    v->graph = smg_graph_input_of(d->b.graph, input->name, given, v->rank, v->dims);
    if (given != wanted) v->graph = smg_graph_cast(d->b.graph, v->graph, smg_type_word(wanted));
    return v->graph.id != 0 ? SMG_OK : smg_context_status(d->m->ctx);
}

/* Initialisers that are inputs too (as in old files) are constants. */
static smg_status add_inputs(driver *d, onnx_scope *scope, const pb_graph *g) {
    void *known = NULL;
    bool *skip = SMG_ARENA_ARRAY(d->m->arena, bool, g->n_input + 1);
    if (!skip) return SMG_MEMORY;
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = g->input[i]->name;
        skip[i] = smg_map_get(scope->values, name, strlen(name), &known);
        if (!skip[i]) SMG_TRY(smg_onnx_name_dims(&d->b, g->input[i]));
    }
    for (size_t i = 0; i < g->n_input; i++)
        if (!skip[i]) SMG_TRY(add_input(d, scope, g->input[i]));
    return SMG_OK;
}

/* What the file says about an output must not contradict what was found. */
static smg_status check_output(driver *d, const pb_value_info *output, const smg_onnx_value *v) {
    if (!output->type || !output->type->tensor_type || !output->type->tensor_type->shape) return SMG_OK;
    const Smg__Pb__Shape *shape = output->type->tensor_type->shape;
    if (shape->n_dim != (size_t)v->rank)
        return smg_fail(d->m->ctx, SMG_FORMAT, "'%s': output '%s' is declared with %zu axes but has %d", d->m->label,
                        output->name, shape->n_dim, v->rank);
    for (int i = 0; i < v->rank; i++) {
        int64_t value = 0;
        const pb_dimension *dim = shape->dim[i];
        bool declared = dim->value_case == SMG__PB__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0;
        if (declared && smg_size_is_const(d->b.sizes, v->dims[i], &value) && value != dim->dim_value)
            return smg_fail(d->m->ctx, SMG_FORMAT, "'%s': axis %d of output '%s' is declared as %lld but is %lld",
                            d->m->label, i, output->name, (long long)dim->dim_value, (long long)value);
    }
    return SMG_OK;
}

static smg_status add_output(driver *d, const onnx_scope *scope, const pb_value_info *output) {
    smg_onnx_value *v = smg_onnx_lookup(scope, output->name);
    bool typed = output->type && output->type->tensor_type;
    int32_t declared = typed ? output->type->tensor_type->elem_type : 0;
    smg_import_dtype dtype = declared != 0 ? smg_onnx_dtype(declared) : v->dtype;
    SMG_TRY(refuse_unreadable(d, v));
    SMG_TRY(check_output(d, output, v));
    if (dtype == SMG_IMPORT_DTYPE_NONE || smg_onnx_graph_type(dtype) != smg_onnx_graph_type(v->dtype))
        return smg_fail(d->m->ctx, SMG_FORMAT, "'%s': output '%s' is declared as %s but is %s", d->m->label,
                        output->name, smg_onnx_type_word(declared), smg_import_dtype_word(v->dtype));
    smg_value value = smg_onnx_value_in(&d->b, v);
    smg_type type = input_type(dtype);
    if (type != smg_onnx_graph_type(dtype)) value = smg_graph_cast(d->b.graph, value, smg_type_word(type));
    smg_status status = smg_graph_node_of(d->b.graph, value) ? smg_graph_output(d->b.graph, output->name, value)
                                                             : smg_context_status(d->m->ctx);
    if (status == SMG_OK) return SMG_OK;
    return smg_fail_within(d->m->ctx, status, "'%s': output '%s'", d->m->label, output->name);
}

static smg_status convert_model(driver *d) {
    const pb_model *proto = d->m->proto;
    const pb_graph *g = proto->graph;
    onnx_scope scope = {.import_count = proto->n_opset_import, .imports = proto->opset_import};
    const char *const *names = NULL;
    if (g->n_output == 0) return smg_fail(d->m->ctx, SMG_FORMAT, "'%s': the graph has no outputs", d->m->label);
    SMG_TRY(smg_map_create(d->m->arena, &scope.values));
    SMG_TRY(add_initializers(d, &scope, g));
    SMG_TRY(add_inputs(d, &scope, g));
    SMG_TRY(output_names(d, g, &names));
    const onnx_body body = {g->n_node, g->node, g->n_output, names};
    SMG_TRY(convert_body(d, &scope, &body));
    for (size_t i = 0; i < g->n_output; i++) SMG_TRY(add_output(d, &scope, g->output[i]));
    return smg_graph_finish(d->b.graph);
}

static smg_status refuse(const smg_onnx *m) {
    const smg_onnx_missing *first = &m->missing.items[0];
    const char *dot = first->domain[0] ? "." : "";
    if (m->missing.count == 1)
        return smg_fail(m->ctx, SMG_UNSUPPORTED, "'%s': node '%s' (%s%s%s, opset %lld): %s", m->label, first->node,
                        first->domain, dot, first->op, (long long)first->opset, first->reason);
    return smg_fail(m->ctx, SMG_UNSUPPORTED,
                    "'%s': node '%s' (%s%s%s, opset %lld): %s; %d nodes "
                    "are not supported",
                    m->label, first->node, first->domain, dot, first->op, (long long)first->opset, first->reason,
                    m->missing.count);
}

smg_status smg_onnx_make_graph(smg_onnx *model, smg_graph **out_graph) {
    driver d = {.m = model, .nothing = {.name = ""}};
    *out_graph = NULL;
    if (model->missing.count > 0) return refuse(model);
    d.b = (smg_onnx_build){.ctx = model->ctx, .model = model, .arena = model->arena};
    for (int start = 0;; start++) {
        const char *name = model->proto->graph->name;
        SMG_TRY(smg_graph_make(model->ctx, name[0] ? name : "onnx", &d.b.graph));
        d.b.sizes = d.b.graph->sizes;
        d.b.failed = d.b.restart = false;
        d.b.extents.count = d.b.looked_at = 0;
        d.converted = 0;
        smg_status status = smg_onnx_define_aliases(&d.b);
        if (status == SMG_OK) status = convert_model(&d);
        if (status == SMG_OK) break;
        smg_graph_destroy(d.b.graph);
        if (!d.b.restart || start == MOST_STARTS) return status;
        smg_context_clear_error(model->ctx); /* it told of the equality that is known now */
    }
    *out_graph = d.b.graph;
    return SMG_OK;
}
