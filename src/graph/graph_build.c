/* The public builders. Each fills a node from its arguments and hands it to smg_graph_push, which
 * checks and appends it. They are sticky: the first failure stays in the graph and everything after it
 * does nothing. */
#include "graph/graph_private.h"

static const smg_value no_value = {0};

smg_status smg_build_stick(smg_graph *g, smg_status status) {
    if (g->status != SMG_OK || status == SMG_OK) return status;
    g->status = status;
    g->error = smg_arena_string(g->arena, smg_context_error(g->ctx));
    smg_context_keep_failure(g->ctx, g);
    return status;
}

/* A graph without a failure does not mind that of another one. */
static void leave_others(smg_context *ctx) {
    if (smg_context_keeper(ctx)) smg_context_clear_error(ctx);
}

/* Misuse of the graph itself: false and a status, never a crash. */
bool smg_build_open(smg_graph *g, const char *what) {
    if (!g || g->status != SMG_OK) return false;
    leave_others(g->ctx);
    if (!g->finished) return true;
    smg_context_told(g->ctx, smg_fail(g->ctx, SMG_INVALID, "%s: graph %s is finished", what, g->name));
    return false;
}

smg_status smg_graph_create(smg_context *ctx, const char *name, smg_graph **out_graph) {
    if (!out_graph) return SMG_INVALID;
    *out_graph = NULL;
    if (!ctx) return SMG_INVALID;
    leave_others(ctx);
    return smg_context_told(ctx, smg_graph_make(ctx, name, out_graph));
}

smg_status smg_graph_make(smg_context *ctx, const char *name, smg_graph **out_graph) {
    *out_graph = NULL;
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_graph *g = SMG_ARENA_NEW(arena, smg_graph);
    smg_sizes *sizes = NULL;
    const char *copy = smg_arena_string(arena, name ? name : "");
    smg_status status = g && copy ? smg_sizes_create(arena, &sizes) : SMG_MEMORY;
    if (status != SMG_OK) {
        smg_arena_destroy(arena);
        return status;
    }
    *g = (smg_graph){.ctx = ctx, .arena = arena, .sizes = sizes, .name = copy};
    *out_graph = g;
    return SMG_OK;
}

smg_status smg_graph_create_like(const smg_graph *like, smg_graph **out_graph) {
    SMG_TRY(smg_graph_make(like->ctx, like->name, out_graph));
    smg_sizes *s = (*out_graph)->sizes;
    for (int i = 0; i < smg_size_symbol_count(like->sizes); i++) {
        if (smg_size_symbol(s, smg_size_symbol_name(like->sizes, i)) < 0) {
            smg_graph_destroy(*out_graph);
            *out_graph = NULL;
            return SMG_MEMORY;
        }
        smg_size_symbol_set_max(s, i, smg_size_symbol_max(like->sizes, i));
    }
    return SMG_OK;
}

smg_status smg_node_import(smg_graph *to, const smg_graph *from, smg_node *node) {
    node->name = smg_arena_string(to->arena, node->name);
    if (!node->name) return SMG_MEMORY;
    for (int k = 0; k < node->rank; k++) {
        node->dims[k] = smg_size_import(to->sizes, from->sizes, node->dims[k]);
        if (node->dims[k] < 0) return SMG_MEMORY;
    }
    if (smg_op_view(node->op) == SMG_VIEW_SLICE || smg_op_view(node->op) == SMG_VIEW_WINDOW)
        node->begin = smg_size_import(to->sizes, from->sizes, node->begin);
    if (smg_op_leaf(node->op) == SMG_LEAF_SIZE) node->size = smg_size_import(to->sizes, from->sizes, node->size);
    return node->begin < 0 || node->size < 0 ? SMG_MEMORY : SMG_OK;
}

void smg_graph_destroy(smg_graph *graph) {
    if (graph) smg_arena_destroy(graph->arena);
}

/* What failed in between, or was told, does not take the place of the graph's own sentence. */
static smg_status repeat_failure(const smg_graph *g) {
    if (smg_context_keeper(g->ctx) == g) return g->status;
    smg_context_clear_error(g->ctx);
    smg_fail(g->ctx, g->status, "%s", g->error ? g->error : smg_status_word(g->status));
    smg_context_keep_failure(g->ctx, g);
    return g->status;
}

smg_status smg_graph_finish(smg_graph *graph) {
    if (!graph) return SMG_INVALID;
    if (graph->status != SMG_OK) return repeat_failure(graph);
    if (graph->finished) return SMG_OK;
    leave_others(graph->ctx);
    smg_build_stick(graph, smg_graph_verify(graph));
    graph->finished = graph->status == SMG_OK;
    return graph->status;
}

smg_node_id smg_graph_push(smg_graph *g, smg_node *node) {
    if (g->status != SMG_OK) return -1;
    if (!node->name) node->name = "";
    if (smg_build_stick(g, smg_node_infer(g, node)) != SMG_OK) return -1;
    smg_node *stored = SMG_ARRAY_PUSH(g->arena, &g->nodes);
    if (!stored) {
        smg_build_stick(g, SMG_MEMORY);
        return -1;
    }
    *stored = *node;
    return g->nodes.count - 1;
}

static smg_value push(smg_graph *g, smg_node *node) {
    return (smg_value){smg_graph_push(g, node) + 1};
}

/* ---- arguments ------------------------------------------------------------------------------ */

smg_status smg_dims_parse(smg_graph *g, const char **cursor, char end, smg_size *dims, int *out_rank) {
    *out_rank = 0;
    while (**cursor == ' ') ++*cursor;
    while (**cursor != end) {
        if (*out_rank == SMG_MAX_RANK)
            return smg_fail(g->ctx, SMG_INVALID, "a shape has more than %d axes", SMG_MAX_RANK);
        SMG_TRY(smg_size_parse(g->sizes, cursor, &dims[(*out_rank)++]));
        while (**cursor == ' ') ++*cursor;
        if (**cursor == end) break;
        if (**cursor != ',') return smg_fail(g->ctx, SMG_FORMAT, "a shape expects ',' before \"%.16s\"", *cursor);
        ++*cursor;
    }
    return SMG_OK;
}

static bool read_dims(smg_graph *g, const char *what, const char *dims, int *out_rank, smg_size *out_dims) {
    const char *cursor = dims ? dims : "";
    smg_status status = smg_dims_parse(g, &cursor, '\0', out_dims, out_rank);
    if (status != SMG_OK)
        smg_build_stick(g, smg_fail_within(g->ctx, status, "%s: dims \"%s\"", what, dims ? dims : ""));
    return status == SMG_OK;
}

static bool set_dims(smg_graph *g, const char *what, int rank, const smg_size *dims, smg_node *node) {
    if (rank < 0 || rank > SMG_MAX_RANK) {
        smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "%s: rank %d is outside [0, %d]", what, rank, SMG_MAX_RANK));
        return false;
    }
    node->rank = rank;
    for (int i = 0; i < rank; i++) node->dims[i] = dims[i];
    return true;
}

bool smg_build_size(smg_graph *g, const char *what, const char *text, smg_size *out_size) {
    const char *cursor = text ? text : "";
    smg_status status = smg_size_parse(g->sizes, &cursor, out_size);
    if (status == SMG_OK && *cursor) status = smg_fail(g->ctx, SMG_FORMAT, "unexpected \"%.16s\" after it", cursor);
    if (status != SMG_OK)
        smg_build_stick(g, smg_fail_within(g->ctx, status, "%s: size \"%s\"", what, text ? text : ""));
    return status == SMG_OK;
}

static bool read_type(smg_graph *g, const char *what, const char *type, smg_type *out_type) {
    if (smg_type_find(type, out_type)) return true;
    smg_build_stick(g,
                    smg_fail(g->ctx, SMG_INVALID, "%s: element type %s does not exist (f32 f16 bf16 i32 i64 bool do)",
                             what, type ? type : "NULL"));
    return false;
}

static bool read_name(smg_graph *g, const char *name, smg_node *node) {
    node->name = smg_arena_string(g->arena, name ? name : "");
    if (!node->name) smg_build_stick(g, SMG_MEMORY);
    return node->name != NULL;
}

static bool read_op(smg_graph *g, const char *word, smg_op_class class_, const char *kind, smg_node *node) {
    if (smg_op_find(word, &node->op) && smg_op_get(node->op)->class_ == class_) return true;
    smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "%s is not the word of %s operation", word ? word : "NULL", kind));
    return false;
}

/* A valid operand's node or NULL with the failure recorded. */
const smg_node *smg_build_node(smg_graph *g, const char *what, smg_value value) {
    if (value.id >= 1 && value.id <= g->nodes.count) return &g->nodes.items[value.id - 1];
    smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "%s: value %d is not of graph %s", what, value.id, g->name));
    return NULL;
}

static smg_node unary(smg_op op, smg_value a) {
    return (smg_node){.op = op, .operand_count = 1, .operand = {a.id - 1}};
}

/* ---- leaves --------------------------------------------------------------------------------- */

smg_value smg_graph_input_of(smg_graph *g, const char *name, smg_type type, int rank, const smg_size *dims) {
    smg_node node = {.op = SMG_OP_INPUT, .type = type};
    if (!smg_build_open(g, "input") || !read_name(g, name, &node)) return no_value;
    if (!set_dims(g, "input", rank, dims, &node)) return no_value;
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *other = &g->nodes.items[i];
        if (!smg_op_is_input(other->op) || strcmp(other->name, node.name) != 0) continue;
        smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "input: %s exists already", node.name));
        return no_value;
    }
    return push(g, &node);
}

smg_value smg_graph_input(smg_graph *g, const char *name, const char *type, const char *dims) {
    smg_type parsed;
    smg_size sizes[SMG_MAX_RANK];
    int rank;
    if (!smg_build_open(g, "input") || !read_type(g, "input", type, &parsed)) return no_value;
    if (!read_dims(g, "input", dims, &rank, sizes)) return no_value;
    return smg_graph_input_of(g, name, parsed, rank, sizes);
}

smg_value smg_graph_constant_of(smg_graph *g, const char *name, smg_type type, int rank, const smg_size *dims,
                                const void *data) {
    smg_node node = {.op = SMG_OP_CONSTANT, .type = type, .data = data};
    if (!smg_build_open(g, "constant") || !read_name(g, name, &node)) return no_value;
    return set_dims(g, "constant", rank, dims, &node) ? push(g, &node) : no_value;
}

smg_value smg_graph_constant(smg_graph *g, const char *name, const char *type, const char *dims, const void *data) {
    smg_type parsed;
    smg_size sizes[SMG_MAX_RANK];
    int rank;
    if (!smg_build_open(g, "constant") || !read_type(g, "constant", type, &parsed)) return no_value;
    if (!read_dims(g, "constant", dims, &rank, sizes)) return no_value;
    return smg_graph_constant_of(g, name, parsed, rank, sizes, data);
}

smg_value smg_graph_number(smg_graph *g, const char *type, double value) {
    smg_node node = {.op = SMG_OP_FILL, .value = value};
    if (!smg_build_open(g, "number") || !read_type(g, "number", type, &node.type)) return no_value;
    return push(g, &node);
}

smg_value smg_graph_size_typed(smg_graph *g, smg_type type, smg_size size) {
    smg_node node = {.op = SMG_OP_SIZE, .type = type, .size = size};
    if (!smg_build_open(g, "size")) return no_value;
    if (type == SMG_TYPE_F32 || type == SMG_TYPE_I32 || type == SMG_TYPE_I64) return push(g, &node);
    smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "size: is f32, i32 or i64, not %s", smg_type_word(type)));
    return no_value;
}

smg_value smg_graph_size_as(smg_graph *g, const char *type, const char *size) {
    smg_type parsed;
    smg_size value;
    if (!smg_build_open(g, "size") || !read_type(g, "size", type, &parsed)) return no_value;
    if (!smg_build_size(g, "size", size, &value)) return no_value;
    return smg_graph_size_typed(g, parsed, value);
}

smg_value smg_graph_size(smg_graph *g, const char *size) {
    return smg_graph_size_as(g, "f32", size);
}

smg_value smg_graph_iota_of(smg_graph *g, int rank, const smg_size *dims, int axis) {
    smg_node node = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32};
    if (!smg_build_open(g, "iota") || !set_dims(g, "iota", rank, dims, &node)) return no_value;
    node.axis = axis < 0 ? axis + node.rank : axis;
    return push(g, &node);
}

smg_value smg_graph_iota(smg_graph *g, const char *dims, int axis) {
    smg_size sizes[SMG_MAX_RANK];
    int rank;
    if (!smg_build_open(g, "iota") || !read_dims(g, "iota", dims, &rank, sizes)) return no_value;
    return smg_graph_iota_of(g, rank, sizes, axis);
}

/* ---- operations ----------------------------------------------------------------------------- */

smg_value smg_graph_map(smg_graph *g, const char *op, int count, const smg_value *operands) {
    smg_node node = {.operand_count = count};
    if (!smg_build_open(g, "map") || !read_op(g, op, SMG_CLASS_MAP, "an elementwise", &node)) return no_value;
    if (smg_op_converts(node.op) || count < 0 || count > SMG_MAX_OPERANDS || (count > 0 && !operands)) {
        smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "map: %s cannot be made with %d operands here", op, count));
        return no_value;
    }
    for (int k = 0; k < count; k++) {
        if (!smg_build_node(g, op, operands[k])) return no_value;
        node.operand[k] = operands[k].id - 1;
    }
    return push(g, &node);
}

smg_value smg_graph_cast(smg_graph *g, smg_value a, const char *type) {
    smg_node node = unary(SMG_OP_CAST, a);
    if (!smg_build_open(g, "cast") || !smg_build_node(g, "cast", a)) return no_value;
    return read_type(g, "cast", type, &node.type) ? push(g, &node) : no_value;
}

smg_value smg_graph_reduce(smg_graph *g, const char *op, smg_value a, int axis, bool keep) {
    smg_node node = unary(SMG_OP_SUM, a);
    if (!smg_build_open(g, "reduce") || !read_op(g, op, SMG_CLASS_REDUCE, "a reducing", &node)) return no_value;
    const smg_node *source = smg_build_node(g, op, a);
    if (!source) return no_value;
    node.axis = axis < 0 ? axis + source->rank : axis;
    node.keep = keep;
    return push(g, &node);
}

smg_status smg_labels_parse(smg_graph *g, const char *labels, smg_node *node) {
    int part = 0;
    size_t count = 0;
    for (const char *at = labels; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        bool comma = *at == ',' && part == 0, arrow = at[0] == '-' && at[1] == '>' && part == 1;
        if (*at == ' ') continue;
        if ((!letter && !comma && !arrow) || (letter && count == SMG_MAX_RANK))
            return smg_fail(g->ctx, SMG_FORMAT, "contract: labels \"%s\" are not of the form \"ab,bc->ac\"", labels);
        if (letter) {
            node->label[part][count++] = *at;
            continue;
        }
        part++;
        count = 0;
        if (arrow) at++;
    }
    if (part == 2) return SMG_OK;
    return smg_fail(g->ctx, SMG_FORMAT, "contract: labels \"%s\" are not of the form \"ab,bc->ac\"", labels);
}

smg_value smg_graph_contract(smg_graph *g, const char *labels, smg_value a, smg_value b) {
    smg_node node = {.op = SMG_OP_CONTRACT, .operand_count = 2, .operand = {a.id - 1, b.id - 1}};
    if (!smg_build_open(g, "contract") || !smg_build_node(g, "contract", a) || !smg_build_node(g, "contract", b))
        return no_value;
    if (smg_build_stick(g, smg_labels_parse(g, labels ? labels : "", &node)) != SMG_OK) return no_value;
    return push(g, &node);
}

smg_value smg_graph_gather(smg_graph *g, smg_value table, smg_value indices) {
    smg_node node = {.op = SMG_OP_GATHER, .operand_count = 2, .operand = {table.id - 1, indices.id - 1}};
    if (!smg_build_open(g, "gather") || !smg_build_node(g, "gather", table) || !smg_build_node(g, "gather", indices))
        return no_value;
    return push(g, &node);
}

/* ---- views ---------------------------------------------------------------------------------- */

static smg_value view_to(smg_graph *g, smg_op op, smg_value a, int rank, const smg_size *dims) {
    const char *word = smg_op_get(op)->word;
    smg_node node = unary(op, a);
    if (!smg_build_open(g, word) || !smg_build_node(g, word, a)) return no_value;
    return set_dims(g, word, rank, dims, &node) ? push(g, &node) : no_value;
}

static smg_value view_to_text(smg_graph *g, smg_op op, smg_value a, const char *dims) {
    smg_size sizes[SMG_MAX_RANK];
    int rank;
    const char *word = smg_op_get(op)->word;
    if (!smg_build_open(g, word) || !read_dims(g, word, dims, &rank, sizes)) return no_value;
    return view_to(g, op, a, rank, sizes);
}

smg_value smg_graph_reshape_to(smg_graph *g, smg_value a, int rank, const smg_size *dims) {
    return view_to(g, SMG_OP_RESHAPE, a, rank, dims);
}

smg_value smg_graph_reshape(smg_graph *g, smg_value a, const char *dims) {
    return view_to_text(g, SMG_OP_RESHAPE, a, dims);
}

smg_value smg_graph_transpose(smg_graph *g, smg_value a, int rank, const int *perm) {
    smg_node node = unary(SMG_OP_TRANSPOSE, a);
    if (!smg_build_open(g, "transpose")) return no_value;
    const smg_node *source = smg_build_node(g, "transpose", a);
    if (!source) return no_value;
    if (rank != source->rank || (rank > 0 && !perm)) {
        smg_build_stick(
            g, smg_fail(g->ctx, SMG_INVALID, "transpose: perm has %d entries for rank %d", rank, source->rank));
        return no_value;
    }
    for (int i = 0; i < rank; i++) node.perm[i] = perm[i] < 0 ? perm[i] + rank : perm[i];
    return push(g, &node);
}

smg_value smg_graph_broadcast_to(smg_graph *g, smg_value a, int rank, const smg_size *dims) {
    return view_to(g, SMG_OP_BROADCAST, a, rank, dims);
}

smg_value smg_graph_broadcast(smg_graph *g, smg_value a, const char *dims) {
    return view_to_text(g, SMG_OP_BROADCAST, a, dims);
}

smg_value smg_graph_slice_of(smg_graph *g, smg_value a, int axis, smg_size begin, smg_size count, int64_t step) {
    smg_node node = unary(SMG_OP_SLICE, a);
    if (!smg_build_open(g, "slice")) return no_value;
    const smg_node *source = smg_build_node(g, "slice", a);
    if (!source) return no_value;
    node.begin = begin;
    node.axis = axis < 0 ? axis + source->rank : axis;
    node.step = step;
    if (node.axis >= 0 && node.axis < source->rank) node.dims[node.axis] = count;
    return push(g, &node);
}

smg_value smg_graph_slice(smg_graph *g, smg_value a, int axis, const char *begin, const char *count, int step) {
    smg_size from, extent;
    if (!smg_build_open(g, "slice")) return no_value;
    if (!smg_build_size(g, "slice", begin, &from) || !smg_build_size(g, "slice", count, &extent)) return no_value;
    return smg_graph_slice_of(g, a, axis, from, extent, step);
}

/* ---- names and outputs ---------------------------------------------------------------------- */

smg_status smg_graph_output(smg_graph *g, const char *name, smg_value value) {
    if (!g) return SMG_INVALID;
    if (!smg_build_open(g, "output")) return g->finished ? SMG_INVALID : g->status;
    if (!smg_build_node(g, "output", value)) return g->status;
    if (!name || !name[0]) return smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "output: needs a name"));
    for (int i = 0; i < g->outputs.count; i++)
        if (strcmp(g->outputs.items[i].name, name) == 0)
            return smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "output: %s exists already", name));
    const char *copy = smg_arena_string(g->arena, name);
    smg_graph_output_row *row = copy ? SMG_ARRAY_PUSH(g->arena, &g->outputs) : NULL;
    if (!row) return smg_build_stick(g, SMG_MEMORY);
    *row = (smg_graph_output_row){.name = copy, .node = value.id - 1};
    return SMG_OK;
}

void smg_graph_name(smg_graph *g, smg_value value, const char *name) {
    if (!smg_build_open(g, "name") || !smg_build_node(g, "name", value)) return;
    smg_node *node = &g->nodes.items[value.id - 1];
    if (smg_op_is_input(node->op)) return; /* programs are bound by the names of inputs */
    read_name(g, name, node);
    if (!node->name) node->name = "";
}

smg_status smg_graph_set_max(smg_graph *g, const char *symbol, int64_t max) {
    if (!g) return SMG_INVALID;
    if (!smg_build_open(g, "set_max")) return g->finished ? SMG_INVALID : g->status;
    if (max < 1 || max > SMG_SIZE_UNBOUNDED)
        return smg_build_stick(g, smg_fail(g->ctx, SMG_INVALID, "the maximum of %s is %lld, must be in [1, %lld]",
                                           symbol ? symbol : "NULL", (long long)max, (long long)SMG_SIZE_UNBOUNDED));
    if (smg_size_symbol(g->sizes, symbol) < 0) return smg_build_stick(g, smg_context_status(g->ctx));
    smg_size_symbol_set_max(g->sizes, smg_size_symbol_find(g->sizes, symbol), max);
    return SMG_OK;
}
