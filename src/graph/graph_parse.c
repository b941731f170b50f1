/* Reads the text form of a graph. Every line is one statement:
 *
 *     graph NAME                      dim NAME [max N]                 output NAME = VALUE
 *     state INPUT = OUTPUT
 *     NAME = input TYPE               NAME = constant TYPE [data=[...] | random seed=N scale=X]
 *     NAME = fill NUMBER : TYPE       NAME = size SIZE                 NAME = iota axis=N : TYPE
 *     NAME = OP(VALUE, ...) ATTRIBUTES [: TYPE]
 *
 * A value is defined before it is used, so there are no cycles; a result's type may be left out where it
 * follows from the operands (not for cast, reshape and broadcast). '#' starts a comment. */
#include "graph/graph_private.h"

#define MAX_RANDOM (1 << 28)

typedef struct graph_parser {
    smg_graph *g;
    smg_arena *arena; /* lines and names, for the time of parsing */
    smg_map *names;   /* text of the value -> node id + 1 as pointer into `ids` */
    const char *where;
    int line;
    const char *at;
} graph_parser;

/* One definition while it is read. */
typedef struct statement {
    smg_node node;
    smg_node given; /* type, rank and dims after ':' */
    bool has_type, has_count, random;
    int64_t seed;
    double scale;
    SMG_ARRAY(double) data;
    bool has_data;
} statement;

static smg_status malformed(graph_parser *p, const char *wanted) {
    return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: expects %s before \"%.24s\"", p->where, p->line, wanted, p->at);
}

static smg_status at_line(graph_parser *p, smg_status status) {
    if (status == SMG_OK) return status;
    return smg_fail_within(p->g->ctx, status, "%s:%d", p->where, p->line);
}

static bool at_end(graph_parser *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') p->at++;
    return *p->at == '\0';
}

/* ---- values and types ----------------------------------------------------------------------- */

static smg_status read_value(graph_parser *p, smg_node_id *out_id) {
    const char *name;
    size_t length;
    void *known;
    if (!smg_lex_name(&p->at, &name, &length)) return malformed(p, "the name of a value");
    if (!smg_map_get(p->names, name, length, &known))
        return smg_fail(p->g->ctx, SMG_FORMAT,
                        "%s:%d: %.*s is not defined above this line (operands come before their users, a graph "
                        "has no cycles)",
                        p->where, p->line, (int)length, name);
    *out_id = *(const smg_node_id *)known;
    return SMG_OK;
}

static smg_status read_type(graph_parser *p, smg_node *out) {
    const char *word;
    size_t length;
    if (!smg_lex_name(&p->at, &word, &length)) return malformed(p, "an element type");
    char *copy = smg_arena_string_n(p->arena, word, length);
    if (!copy) return SMG_MEMORY;
    if (!smg_type_find(copy, &out->type))
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: element type %s does not exist (f32 f16 bf16 i32 i64 bool do)",
                        p->where, p->line, copy);
    if (!smg_lex_char(&p->at, '[')) return malformed(p, "'[' and the dims");
    SMG_TRY(at_line(p, smg_dims_parse(p->g, &p->at, ']', out->dims, &out->rank)));
    return smg_lex_char(&p->at, ']') ? SMG_OK : malformed(p, "']'");
}

/* ---- attributes ----------------------------------------------------------------------------- */

static smg_status read_int(graph_parser *p, int64_t *out_value) {
    return smg_lex_int(&p->at, out_value) ? SMG_OK : malformed(p, "a whole number");
}

static smg_status read_axis(graph_parser *p, statement *s) {
    int64_t value;
    SMG_TRY(read_int(p, &value));
    if (value < -SMG_MAX_RANK || value >= SMG_MAX_RANK)
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: axis %lld does not exist", p->where, p->line, (long long)value);
    s->node.axis = (int)value;
    return SMG_OK;
}

static smg_status read_keep(graph_parser *p, statement *s) {
    (void)p;
    s->node.keep = true;
    return SMG_OK;
}

static smg_status read_perm(graph_parser *p, statement *s) {
    if (!smg_lex_char(&p->at, '[')) return malformed(p, "'['");
    for (int i = 0; !smg_lex_char(&p->at, ']'); i++) {
        int64_t value;
        if (i == SMG_MAX_RANK || (i > 0 && !smg_lex_char(&p->at, ','))) return malformed(p, "']'");
        SMG_TRY(read_int(p, &value));
        s->node.perm[i] = value < 0 || value >= SMG_MAX_RANK ? -1 : (int)value;
    }
    return SMG_OK;
}

static smg_status read_blocks(graph_parser *p, statement *s) {
    if (!smg_lex_char(&p->at, '[')) return malformed(p, "'['");
    for (int i = 0; i < 2; i++) {
        int64_t value;
        if (i > 0 && !smg_lex_char(&p->at, ',')) return malformed(p, "','");
        SMG_TRY(read_int(p, &value));
        s->node.block[i] = value < 0 || value > INT32_MAX ? -1 : (int)value;
    }
    return smg_lex_char(&p->at, ']') ? SMG_OK : malformed(p, "']'");
}

static smg_status read_begin(graph_parser *p, statement *s) {
    return at_line(p, smg_size_parse(p->g->sizes, &p->at, &s->node.begin));
}

static smg_status read_count(graph_parser *p, statement *s) {
    s->has_count = true;
    return at_line(p, smg_size_parse(p->g->sizes, &p->at, &s->node.size));
}

static smg_status read_step(graph_parser *p, statement *s) {
    return read_int(p, &s->node.step);
}

static smg_status read_dilation(graph_parser *p, statement *s) {
    return read_int(p, &s->node.dilation);
}

static smg_status read_fill(graph_parser *p, statement *s) {
    return smg_lex_number(&p->at, &s->node.value) ? SMG_OK : malformed(p, "a number");
}

static smg_status read_given_name(graph_parser *p, statement *s) {
    char *name;
    if (!smg_lex_string(p->g->arena, &p->at, &name)) return malformed(p, "a string");
    s->node.name = name;
    return name ? SMG_OK : SMG_MEMORY;
}

static smg_status read_data(graph_parser *p, statement *s) {
    s->has_data = true;
    if (!smg_lex_char(&p->at, '[')) return malformed(p, "'['");
    while (!smg_lex_char(&p->at, ']')) {
        if (s->data.count > 0 && !smg_lex_char(&p->at, ',')) return malformed(p, "',' or ']'");
        double *value = SMG_ARRAY_PUSH(p->arena, &s->data);
        if (!value) return SMG_MEMORY;
        if (!smg_lex_number(&p->at, value)) return malformed(p, "a number");
    }
    return SMG_OK;
}

static smg_status read_random(graph_parser *p, statement *s) {
    (void)p;
    s->random = true;
    return SMG_OK;
}

static smg_status read_seed(graph_parser *p, statement *s) {
    return read_int(p, &s->seed);
}

static smg_status read_scale(graph_parser *p, statement *s) {
    return smg_lex_number(&p->at, &s->scale) ? SMG_OK : malformed(p, "a number");
}

static bool has_axis(smg_op op) {
    return smg_op_get(op)->class_ == SMG_CLASS_REDUCE || smg_op_leaf(op) == SMG_LEAF_INDEX ||
           smg_op_view(op) == SMG_VIEW_SLICE || smg_op_view(op) == SMG_VIEW_WINDOW;
}
static bool is_reduce(smg_op op) {
    return smg_op_get(op)->class_ == SMG_CLASS_REDUCE;
}
static bool is_transpose(smg_op op) {
    return smg_op_view(op) == SMG_VIEW_TRANSPOSE;
}
static bool is_slice(smg_op op) {
    return smg_op_view(op) == SMG_VIEW_SLICE;
}
static bool is_window(smg_op op) {
    return smg_op_view(op) == SMG_VIEW_WINDOW;
}
static bool is_shifting(smg_op op) {
    return is_slice(op) || is_window(op);
}
static bool is_any(smg_op op) {
    return op < SMG_OP_COUNT;
}

static const struct attribute {
    const char *key;
    bool takes_value;
    bool (*fits)(smg_op op);
    smg_status (*read)(graph_parser *p, statement *s);
} attributes[] = {
    {"axis", true, has_axis, read_axis},           {"keep", false, is_reduce, read_keep},
    {"perm", true, is_transpose, read_perm},       {"begin", true, is_shifting, read_begin},
    {"count", true, is_slice, read_count},         {"step", true, is_shifting, read_step},
    {"fill", true, is_window, read_fill},          {"dilation", true, is_window, read_dilation},
    {"data", true, smg_op_is_constant, read_data}, {"random", false, smg_op_is_constant, read_random},
    {"seed", true, smg_op_is_constant, read_seed}, {"scale", true, smg_op_is_constant, read_scale},
    {"name", true, is_any, read_given_name},       {"blocks", true, smg_op_copies, read_blocks},
};

static smg_status read_attribute(graph_parser *p, statement *s) {
    for (size_t i = 0; i < SMG_COUNT_OF(attributes); i++) {
        if (!attributes[i].fits(s->node.op) || !smg_lex_word(&p->at, attributes[i].key)) continue;
        if (attributes[i].takes_value && !smg_lex_char(&p->at, '=')) return malformed(p, "'='");
        return attributes[i].read(p, s);
    }
    return malformed(p, "an attribute of this operation, ':' or the end of the line");
}

/* ---- definitions ---------------------------------------------------------------------------- */

static smg_status read_labels(graph_parser *p, statement *s) {
    char *labels;
    if (!smg_lex_string(p->arena, &p->at, &labels)) return malformed(p, "labels such as \"ab,bc->ac\"");
    return labels ? at_line(p, smg_labels_parse(p->g, labels, &s->node)) : SMG_MEMORY;
}

static smg_status read_operands(graph_parser *p, statement *s) {
    if (!smg_lex_char(&p->at, '(')) return malformed(p, "'(' and operands");
    while (!smg_lex_char(&p->at, ')')) {
        int *count = &s->node.operand_count;
        if (*count == SMG_MAX_OPERANDS || (*count > 0 && !smg_lex_char(&p->at, ','))) return malformed(p, "')'");
        SMG_TRY(read_value(p, &s->node.operand[(*count)++]));
    }
    if (smg_op_get(s->node.op)->class_ == SMG_CLASS_CONTRACT) return read_labels(p, s);
    return SMG_OK;
}

static smg_status read_leaf(graph_parser *p, statement *s) {
    switch (smg_op_leaf(s->node.op)) {
    case SMG_LEAF_NUMBER: return smg_lex_number(&p->at, &s->node.value) ? SMG_OK : malformed(p, "a number");
    case SMG_LEAF_SIZE: return at_line(p, smg_size_parse(p->g->sizes, &p->at, &s->node.size));
    case SMG_LEAF_TENSOR: s->has_type = true; return read_type(p, &s->given);
    case SMG_LEAF_INDEX:
    case SMG_LEAF_NONE: break;
    }
    return SMG_OK;
}

static smg_status apply_window_type(graph_parser *p, statement *s) {
    int axis = s->node.axis;
    if (!s->has_type) return malformed(p, "': TYPE'");
    for (int i = axis; i >= 0 && i < axis + 2 && i < s->given.rank; i++) s->node.dims[i] = s->given.dims[i];
    return SMG_OK;
}

/* What the caller of a builder would say by the result's type. */
static smg_status apply_type(graph_parser *p, statement *s) {
    smg_view_kind view = smg_op_view(s->node.op);
    bool leaf = smg_op_get(s->node.op)->class_ == SMG_CLASS_LEAF && smg_op_leaf(s->node.op) != SMG_LEAF_SIZE;
    bool shaped = leaf || view == SMG_VIEW_RESHAPE || view == SMG_VIEW_BROADCAST;
    if (!s->has_type && (shaped || smg_op_converts(s->node.op))) return malformed(p, "': TYPE'");
    s->node.type = s->given.type;
    if (shaped) {
        s->node.rank = s->given.rank;
        memcpy(s->node.dims, s->given.dims, sizeof s->node.dims);
    }
    int rank = s->node.operand_count > 0 ? p->g->nodes.items[s->node.operand[0]].rank : s->node.rank;
    if (s->node.axis < 0) s->node.axis += rank;
    if (view == SMG_VIEW_WINDOW) return apply_window_type(p, s);
    if (view != SMG_VIEW_SLICE) {
        s->node.begin = 0;
        s->node.step = 0;
        return SMG_OK;
    }
    bool in_given = s->has_type && s->node.axis >= 0 && s->node.axis < s->given.rank;
    if (!s->has_count && !in_given) return malformed(p, "count=SIZE or ': TYPE'");
    if (s->node.axis >= 0 && s->node.axis < SMG_MAX_RANK)
        s->node.dims[s->node.axis] = s->has_count ? s->node.size : s->given.dims[s->node.axis];
    s->node.size = 0;
    return SMG_OK;
}

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Floats in [-scale, scale), integers in [0, 8), bools. */
static double random_element(smg_type type, double scale, uint64_t *state) {
    uint64_t bits = splitmix(state);
    if (smg_type_kind(type) == SMG_KIND_BOOL) return (double)(bits & 1u);
    if (smg_type_kind(type) == SMG_KIND_INT) return (double)(bits & 7u);
    return scale * ((double)(bits >> 11) / 4503599627370496.0 - 1.0);
}

static smg_status make_data(graph_parser *p, statement *s) {
    if (!s->random && !s->has_data) return SMG_OK;
    int64_t count;
    smg_size product;
    SMG_TRY(at_line(p, smg_product(p->g, s->node.dims, s->node.rank, &product)));
    if (!smg_size_is_const(p->g->sizes, product, &count) || count < 0)
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: a constant with symbolic dims cannot have data", p->where,
                        p->line);
    if (s->has_data && count != s->data.count)
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: %d numbers are given for %lld elements", p->where, p->line,
                        s->data.count, (long long)count);
    if (count > MAX_RANDOM)
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: %lld random elements are too many, %d is the most", p->where,
                        p->line, (long long)count, MAX_RANDOM);
    void *data = smg_arena_alloc(p->g->arena, (size_t)count, (size_t)smg_type_host_bytes(s->node.type));
    if (!data) return SMG_MEMORY;
    uint64_t state = (uint64_t)s->seed;
    for (int64_t i = 0; i < count; i++)
        smg_host_set(s->node.type, data, i,
                     s->has_data ? s->data.items[i] : random_element(s->node.type, s->scale, &state));
    s->node.data = data;
    return SMG_OK;
}

static smg_status check_given(graph_parser *p, const statement *s) {
    bool same = !s->has_type || (s->given.type == s->node.type && s->given.rank == s->node.rank);
    for (int i = 0; same && s->has_type && i < s->node.rank; i++) same = s->given.dims[i] == s->node.dims[i];
    if (same) return SMG_OK;
    smg_text is, says;
    smg_text_init(&is, p->g->ctx);
    smg_text_init(&says, p->g->ctx);
    smg_node_print_type(p->g, &s->node, &is);
    smg_node_print_type(p->g, &s->given, &says);
    smg_status status = smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: the result is %s, the text says %s", p->where, p->line,
                                 smg_text_cstr(&is), smg_text_cstr(&says));
    smg_text_free(&is);
    smg_text_free(&says);
    return status;
}

static smg_status define(graph_parser *p, const char *name, size_t length, statement *s) {
    void *known;
    if (smg_map_get(p->names, name, length, &known))
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: %.*s is defined twice", p->where, p->line, (int)length, name);
    if (!s->node.name && name[0] != '%') {
        s->node.name = smg_arena_string_n(p->g->arena, name, length);
        if (!s->node.name) return SMG_MEMORY;
    }
    smg_node_id id = smg_graph_push(p->g, &s->node);
    if (id < 0) return at_line(p, p->g->status);
    SMG_TRY(check_given(p, s));
    smg_node_id *stored = SMG_ARENA_NEW(p->arena, smg_node_id);
    if (!stored) return SMG_MEMORY;
    *stored = id;
    return smg_map_set(p->names, name, length, stored);
}

static smg_status read_definition(graph_parser *p, const char *name, size_t length) {
    statement s = {.node = {.step = 1}, .scale = 1.0};
    const char *word;
    size_t word_length;
    s.node.begin = smg_size_const(p->g->sizes, 0);
    if (!smg_lex_name(&p->at, &word, &word_length)) return malformed(p, "an operation");
    char *copy = smg_arena_string_n(p->arena, word, word_length);
    if (!copy) return SMG_MEMORY;
    if (!smg_op_find(copy, &s.node.op))
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: operation %s does not exist", p->where, p->line, copy);
    bool leaf = smg_op_get(s.node.op)->class_ == SMG_CLASS_LEAF;
    SMG_TRY(leaf ? read_leaf(p, &s) : read_operands(p, &s));
    while (!at_end(p)) {
        if (!s.has_type && smg_lex_char(&p->at, ':')) {
            s.has_type = true;
            SMG_TRY(read_type(p, &s.given));
        } else {
            SMG_TRY(read_attribute(p, &s));
        }
    }
    SMG_TRY(apply_type(p, &s));
    SMG_TRY(make_data(p, &s));
    return define(p, name, length, &s);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static smg_status read_title(graph_parser *p, char **out_title) {
    const char *name;
    size_t length;
    if (smg_lex_string(p->g->arena, &p->at, out_title)) return *out_title ? SMG_OK : SMG_MEMORY;
    if (!smg_lex_name(&p->at, &name, &length)) return malformed(p, "a name");
    *out_title = smg_arena_string_n(p->g->arena, name, length);
    return *out_title ? SMG_OK : SMG_MEMORY;
}

static smg_status read_dim(graph_parser *p) {
    smg_size size;
    int64_t max;
    const char *name = p->at;
    SMG_TRY(at_line(p, smg_size_parse(p->g->sizes, &p->at, &size)));
    while (*name == ' ') name++;
    char *symbol = smg_arena_string_n(p->arena, name, (size_t)(p->at - name));
    if (!symbol) return SMG_MEMORY;
    if (smg_size_symbol_find(p->g->sizes, symbol) < 0)
        return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: dim %s is not a name", p->where, p->line, symbol);
    if (!smg_lex_word(&p->at, "max")) return SMG_OK;
    SMG_TRY(read_int(p, &max));
    return at_line(p, smg_graph_set_max(p->g, symbol, max));
}

static smg_status read_line(graph_parser *p) {
    const char *name, *after = p->at;
    size_t length;
    char *title;
    if (!smg_lex_name(&after, &name, &length)) return malformed(p, "a statement");
    const char *equals = after;
    if (smg_lex_char(&equals, '=')) {
        p->at = equals;
        return read_definition(p, name, length);
    }
    if (smg_lex_word(&p->at, "graph")) {
        SMG_TRY(read_title(p, &title));
        p->g->name = title;
    } else if (smg_lex_word(&p->at, "dim")) {
        SMG_TRY(read_dim(p));
    } else if (smg_lex_word(&p->at, "output")) {
        smg_node_id id;
        SMG_TRY(read_title(p, &title));
        if (!smg_lex_char(&p->at, '=')) return malformed(p, "'='");
        SMG_TRY(read_value(p, &id));
        SMG_TRY(at_line(p, smg_graph_output(p->g, title, (smg_value){id + 1})));
    } else if (smg_lex_word(&p->at, "state")) {
        char *next;
        SMG_TRY(read_title(p, &title));
        if (!smg_lex_char(&p->at, '=')) return malformed(p, "'='");
        SMG_TRY(read_title(p, &next));
        SMG_TRY(at_line(p, smg_graph_state(p->g, title, next)));
    } else {
        return malformed(p, "'NAME = ...', graph, dim, output or state");
    }
    return at_end(p) ? SMG_OK : malformed(p, "the end of the line");
}

static smg_status read_lines(graph_parser *p, const char *text, size_t length) {
    for (size_t begin = 0; begin < length;) {
        size_t end = begin;
        bool quoted = false, comment = false;
        size_t stop = 0;
        for (; end < length && text[end] != '\n'; end++) {
            if (text[end] == '\0')
                return smg_fail(p->g->ctx, SMG_FORMAT, "%s:%d: byte 0 in the text", p->where, p->line + 1);
            if (text[end] == '"' && (end == begin || text[end - 1] != '\\')) quoted = !quoted;
            if (text[end] == '#' && !quoted && !comment) {
                comment = true;
                stop = end;
            }
        }
        p->line++;
        char *line = smg_arena_string_n(p->arena, text + begin, (comment ? stop : end) - begin);
        if (!line) return SMG_MEMORY;
        p->at = line;
        if (!at_end(p)) SMG_TRY(read_line(p));
        begin = end + 1;
    }
    return SMG_OK;
}

static smg_status parse(smg_context *ctx, const char *text, size_t length, const char *where, smg_graph **out_graph) {
    if (!text && length > 0) return smg_fail(ctx, SMG_INVALID, "the text of a graph is NULL");
    graph_parser p = {.where = where && where[0] ? where : "graph"};
    SMG_TRY(smg_graph_make(ctx, "", &p.g));
    smg_status status = smg_arena_create(ctx, &p.arena);
    if (status == SMG_OK) status = smg_map_create(p.arena, &p.names);
    if (status == SMG_OK) status = read_lines(&p, text, length);
    if (status == SMG_OK) {
        status = smg_graph_finish(p.g);
        if (status != SMG_OK) smg_fail_within(ctx, status, "%s", p.where);
    }
    smg_arena_destroy(p.arena);
    if (status == SMG_OK)
        *out_graph = p.g;
    else
        smg_graph_destroy(p.g);
    return status;
}

smg_status smg_graph_parse(smg_context *ctx, const char *text, size_t length, const char *where,
                           smg_graph **out_graph) {
    if (!out_graph) return SMG_INVALID;
    *out_graph = NULL;
    if (!ctx) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, parse(ctx, text, length, where, out_graph));
}
