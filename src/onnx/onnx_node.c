/* Outputs of a node: how a converter hands its results on, and calls of the functions of the table. */
#include "onnx/onnx_private.h"

static smg_onnx_value *wanted(const smg_onnx_node *n, int output) {
    return output >= 0 && output < n->output_count ? n->outputs[output] : NULL;
}

/* Graph values are f32, i32 or bool: what a converter made of another type is cast. */
static smg_value normalise(smg_onnx_build *b, smg_value value) {
    const smg_node *node = smg_graph_node_of(b->graph, value);
    if (!node) return value;
    if (node->type == SMG_TYPE_I64) return smg_graph_cast(b->graph, value, "i32");
    if (node->type == SMG_TYPE_F16 || node->type == SMG_TYPE_BF16) return smg_graph_cast(b->graph, value, "f32");
    return value;
}

/* The value's name, where the graph would otherwise show a number. */
static void name_node(smg_onnx_build *b, smg_value value, const char *name) {
    const smg_node *node = smg_graph_node_of(b->graph, value);
    bool leaf = node && smg_node_class(node) == SMG_CLASS_LEAF;
    if (node && !leaf && !node->name[0] && name[0]) smg_graph_name(b->graph, value, name);
}

smg_status smg_onnx_set_typed(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_import_dtype dtype,
                              smg_value value) {
    if (b->failed) return smg_onnx_failed(b, n);
    value = normalise(b, value);
    const smg_node *node = smg_graph_node_of(b->graph, value);
    if (!node) return smg_onnx_failed(b, n);
    if (smg_onnx_graph_type(dtype) != node->type)
        return smg_onnx_fail(b, n, SMG_INTERNAL, "output %d is %s in the graph, %s in the file", output,
                             smg_type_word(node->type), smg_import_dtype_word(dtype));
    smg_onnx_value *v = wanted(n, output);
    if (!v) return SMG_OK;
    v->dtype = dtype;
    v->rank = node->rank;
    for (int i = 0; i < node->rank; i++) v->dims[i] = node->dims[i];
    v->graph = value;
    name_node(b, value, v->name);
    return SMG_OK;
}

smg_status smg_onnx_set(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_value value) {
    const smg_node *node = smg_graph_node_of(b->graph, value);
    if (!node) return smg_onnx_failed(b, n);
    smg_import_dtype dtype = SMG_IMPORT_F32;
    if (smg_type_kind(node->type) == SMG_KIND_INT) dtype = SMG_IMPORT_I64;
    if (node->type == SMG_TYPE_BOOL) dtype = SMG_IMPORT_BOOL;
    return smg_onnx_set_typed(b, n, output, dtype, value);
}

smg_status smg_onnx_set_known(smg_onnx_build *b, const smg_onnx_node *n, int output, smg_import_dtype dtype, int rank,
                              const smg_size *dims, const smg_size *sizes) {
    int64_t count = 1;
    smg_onnx_value *v = wanted(n, output);
    if (b->failed) return smg_onnx_failed(b, n);
    if (!v) return SMG_OK;
    v->dtype = dtype;
    v->rank = rank;
    for (int i = 0; i < rank; i++) {
        v->dims[i] = dims[i];
        if (smg_onnx_is_const(b, dims[i], 0)) count = 0;
    }
    for (int i = 0; i < rank && count > 0; i++) {
        int64_t extent = 0;
        if (!smg_size_is_const(b->sizes, dims[i], &extent) || extent < 0 || !smg_mul_i64(count, extent, &count) ||
            count > SMG_ONNX_KNOWN_MAX)
            return smg_onnx_fail(b, n, SMG_INTERNAL, "known value of %d axes is too large", rank);
    }
    for (int64_t i = 0; i < count; i++)
        if (sizes[i] < 0) return smg_onnx_failed(b, n);
    v->known = sizes;
    v->known_count = (int)count;
    return SMG_OK;
}

smg_status smg_onnx_set_same(smg_onnx_build *b, const smg_onnx_node *n, int output, const smg_onnx_value *value) {
    smg_onnx_value *v = wanted(n, output);
    if (b->failed) return smg_onnx_failed(b, n);
    if (!v) return SMG_OK;
    const char *name = v->name;
    *v = *value;
    v->name = name;
    return SMG_OK;
}

smg_status smg_onnx_at_node(smg_onnx_build *b, const smg_onnx_node *n, smg_status status) {
    const char *dot = n->domain[0] ? "." : "";
    return smg_fail_within(b->ctx, status, "'%s': node '%s' (%s%s%s, opset %lld)", b->model->label, n->name, n->domain,
                           dot, n->op, (long long)n->opset);
}

/* ---- operators of the table --------------------------------------------------------------------- */

static smg_status check_inputs(smg_onnx_build *b, const smg_onnx_node *n, const smg_onnx_op *op) {
    if (n->input_count < op->min_inputs || (op->max_inputs >= 0 && n->input_count > op->max_inputs))
        return smg_onnx_fail(b, n, SMG_FORMAT, "it has %d inputs, must have %d to %d", n->input_count, op->min_inputs,
                             op->max_inputs < 0 ? 999 : op->max_inputs);
    int needed = op->max_inputs < 0 ? n->input_count : op->min_inputs; /* a list has no holes */
    static const char *const of_sequences[] = {"SequenceAt", "SequenceLength", "ConcatFromSequence", "Identity"};
    bool sequences = false;
    for (size_t i = 0; i < SMG_COUNT_OF(of_sequences); i++)
        sequences = sequences || strcmp(n->op, of_sequences[i]) == 0;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i]->items && (!sequences || i > 0))
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "input %d ('%s') is a sequence", i, n->inputs[i]->name);
    for (int i = 0; i < needed; i++)
        if (!n->inputs[i]) return smg_onnx_fail(b, n, SMG_FORMAT, "input %d is missing", i);
    return SMG_OK;
}

static smg_status check_outputs(smg_onnx_build *b, const smg_onnx_node *n) {
    for (int i = 0; i < n->output_count; i++) {
        const smg_onnx_value *v = n->outputs[i];
        if (v && v->graph.id == 0 && !v->known && !v->constant && !v->items)
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "its output %d is not supported", i);
    }
    return SMG_OK;
}

static smg_status run(smg_onnx_build *b, const smg_onnx_node *n) {
    const smg_onnx_op *op = smg_onnx_find_op(n->domain, n->op);
    bool done = false;
    if (!op) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "smg does not know this operator");
    SMG_TRY(check_inputs(b, n, op));
    SMG_TRY(op->evaluate(b, n, &done));
    if (b->failed) return smg_onnx_failed(b, n);
    if (!done) SMG_TRY(op->convert(b, n));
    if (b->failed) return smg_onnx_failed(b, n);
    return check_outputs(b, n);
}

smg_status smg_onnx_call(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_status status = run(b, n);
    return status == SMG_OK ? SMG_OK : smg_onnx_at_node(b, n, status);
}
