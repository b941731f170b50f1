/* Shape arithmetic, part 3: elementwise operators on known tensors, with broadcasting, and reductions
 * of them. The tables say which rule of part 2 an operator is. */
#include "onnx/onnx_private.h"

/* ---- broadcasting ------------------------------------------------------------------------------- */

/* The shape of both together; false when they do not fit (the graph will say so). */
static bool join(const onnx_known *a, const onnx_known *c, int *out_rank, int64_t *out_dims) {
    int rank = a->rank > c->rank ? a->rank : c->rank;
    for (int i = 0; i < rank; i++) {
        int in_a = i - (rank - a->rank), in_c = i - (rank - c->rank);
        int64_t x = in_a >= 0 ? a->dims[in_a] : 1, y = in_c >= 0 ? c->dims[in_c] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out_dims[i] = x == 1 ? y : x;
    }
    *out_rank = rank;
    return true;
}

/* Where element `index` of a tensor of these dims comes from. */
static int source_of(const onnx_known *a, int rank, const int64_t *dims, int index) {
    int64_t rest = index, stride = 1, at = 0;
    for (int i = rank - 1; i >= 0; i--) {
        int64_t coordinate = rest % dims[i];
        int axis = i - (rank - a->rank);
        rest /= dims[i];
        if (axis < 0) break;
        if (a->dims[axis] != 1) at += coordinate * stride;
        stride *= a->dims[axis];
    }
    return (int)at;
}

static bool apply(smg_onnx_build *b, onnx_arith op, smg_import_dtype dtype, const onnx_known *a, const onnx_known *c,
                  onnx_known *out) {
    int64_t dims[SMG_MAX_RANK];
    int rank = 0;
    bool integer = smg_onnx_graph_type(a->dtype) != SMG_TYPE_F32;
    if (!smg_onnx_known_alike(a, c) || !join(a, c, &rank, dims)) return false;
    if (!smg_onnx_known_make(b, dtype, rank, dims, out)) return false;
    for (int i = 0; i < out->count; i++)
        if (!smg_onnx_arith(b, op, integer, a->items[source_of(a, rank, dims, i)],
                            c->items[source_of(c, rank, dims, i)], &out->items[i]))
            return false;
    return true;
}

/* ---- two operands ------------------------------------------------------------------------------- */

static const struct binary_row {
    const char *word;
    onnx_arith op;
    bool swap, negate, truth; /* operands, result, bool result */
} binary_rows[] = {
    {"Add", ONNX_ADD, false, false, false},  {"Sub", ONNX_SUB, false, false, false},
    {"Mul", ONNX_MUL, false, false, false},  {"Div", ONNX_DIV, false, false, false},
    {"Mod", ONNX_MOD, false, false, false},  {"Pow", ONNX_POW, false, false, false},
    {"Min", ONNX_MIN, false, false, false},  {"Max", ONNX_MAX, false, false, false},
    {"Sum", ONNX_ADD, false, false, false},  {"Equal", ONNX_EQ, false, false, true},
    {"Less", ONNX_LT, false, false, true},   {"LessOrEqual", ONNX_LE, false, false, true},
    {"Greater", ONNX_LT, true, false, true}, {"GreaterOrEqual", ONNX_LE, true, false, true},
    {"And", ONNX_AND, false, false, true},   {"Or", ONNX_OR, false, false, true},
    {"Xor", ONNX_XOR, false, false, true},
};

/* Any number of operands, from the left: Min, Max and Sum have more than two. */
smg_status smg_onnx_sizes_binary(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    const struct binary_row *row = NULL;
    onnx_known result, next, joined;
    for (size_t i = 0; i < SMG_COUNT_OF(binary_rows); i++)
        if (strcmp(binary_rows[i].word, n->op) == 0) row = &binary_rows[i];
    if (!row || !smg_onnx_known_in(b, n, 0, &result)) return SMG_OK;
    onnx_arith op = row->op;
    if (op == ONNX_MOD && smg_onnx_attr_int(b, n, "fmod", 0) != 0) op = ONNX_FMOD;
    for (int i = 1; i < n->input_count; i++) {
        if (!smg_onnx_known_in(b, n, i, &next)) return SMG_OK;
        smg_import_dtype dtype = row->truth ? SMG_IMPORT_BOOL : result.dtype;
        const onnx_known *x = row->swap ? &next : &result, *y = row->swap ? &result : &next;
        if (!apply(b, op, dtype, x, y, &joined)) return SMG_OK;
        result = joined;
    }
    return smg_onnx_known_out(b, n, 0, &result, out_done);
}

smg_status smg_onnx_sizes_where(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    onnx_known condition, yes, no, pair, shape;
    int64_t dims[SMG_MAX_RANK];
    int rank = 0;
    if (!smg_onnx_known_in(b, n, 0, &condition) || !smg_onnx_known_in(b, n, 1, &yes) ||
        !smg_onnx_known_in(b, n, 2, &no) || !smg_onnx_known_alike(&yes, &no))
        return SMG_OK;
    if (!join(&yes, &no, &rank, dims) || !smg_onnx_known_make(b, yes.dtype, rank, dims, &pair)) return SMG_OK;
    if (!join(&condition, &pair, &rank, dims) || !smg_onnx_known_make(b, yes.dtype, rank, dims, &shape)) return SMG_OK;
    for (int i = 0; i < shape.count; i++) {
        int64_t chosen = 1;
        onnx_number first = yes.items[source_of(&yes, rank, dims, i)];
        onnx_number second = no.items[source_of(&no, rank, dims, i)];
        bool same = first.num == second.num && first.den == second.den;
        if (!same && !smg_onnx_number_is(b, condition.items[source_of(&condition, rank, dims, i)], &chosen))
            return SMG_OK;
        shape.items[i] = chosen != 0 ? first : second;
    }
    return smg_onnx_known_out(b, n, 0, &shape, out_done);
}

/* ---- one operand -------------------------------------------------------------------------------- */

static const struct unary_row {
    const char *word;
    onnx_rounding op;
} unary_rows[] = {
    {"Floor", ONNX_FLOOR}, {"Ceil", ONNX_CEIL}, {"Round", ONNX_NEAREST}, {"Neg", ONNX_NEG},
    {"Abs", ONNX_ABS},     {"Sign", ONNX_SIGN}, {"Sqrt", ONNX_SQRT},     {"Not", ONNX_NOT},
};

static smg_status rounded(smg_onnx_build *b, const smg_onnx_node *n, onnx_rounding op, smg_import_dtype dtype,
                          bool *out_done) {
    onnx_known in, out;
    if (!smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    if (dtype == SMG_IMPORT_DTYPE_NONE) dtype = in.dtype;
    if (!smg_onnx_known_make(b, dtype, in.rank, in.dims, &out)) return SMG_OK;
    for (int i = 0; i < in.count; i++)
        if (!smg_onnx_round(b, op, in.items[i], &out.items[i])) return SMG_OK;
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}

smg_status smg_onnx_sizes_unary(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    for (size_t i = 0; i < SMG_COUNT_OF(unary_rows); i++)
        if (strcmp(unary_rows[i].word, n->op) == 0)
            return rounded(b, n, unary_rows[i].op, SMG_IMPORT_DTYPE_NONE, out_done);
    return SMG_OK;
}

static bool fits(smg_onnx_build *b, smg_import_dtype dtype, onnx_number x) {
    static const int bits[SMG_IMPORT_DTYPE_COUNT] = {
        [SMG_IMPORT_I32] = 31, [SMG_IMPORT_I16] = 15, [SMG_IMPORT_I8] = 7, [SMG_IMPORT_U8] = 8};
    int64_t low = 0, high = 0;
    if (bits[dtype] == 0) return true; /* I64, BOOL, floats */
    smg_size_bounds(b->sizes, x.num, &low, &high);
    int64_t most = (INT64_C(1) << bits[dtype]) - 1, least = dtype == SMG_IMPORT_U8 ? 0 : -most - 1;
    /* A size passes through i32 like any other tensor's element would; bytes would cut it. */
    return dtype == SMG_IMPORT_I32 ? true : low >= least && high <= most;
}

static smg_status cast(smg_onnx_build *b, const smg_onnx_node *n, smg_import_dtype dtype, bool *out_done) {
    onnx_known in;
    if (dtype == SMG_IMPORT_DTYPE_NONE || !smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    if (dtype == SMG_IMPORT_BOOL) return rounded(b, n, ONNX_NONZERO, dtype, out_done);
    for (int i = 0; i < in.count; i++) {
        if (smg_onnx_graph_type(dtype) == SMG_TYPE_F32) break;
        onnx_number cut = in.items[i];
        bool whole = smg_onnx_is_const(b, cut.den, 1);
        if (!whole && !smg_onnx_round(b, ONNX_TRUNC, in.items[i], &cut)) return SMG_OK;
        if (!fits(b, dtype, cut)) return SMG_OK;
        in.items[i] = cut;
    }
    in.dtype = dtype;
    return smg_onnx_known_out(b, n, 0, &in, out_done);
}

smg_status smg_onnx_sizes_cast(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    return cast(b, n, smg_onnx_dtype(smg_onnx_attr_int(b, n, "to", 0)), out_done);
}

smg_status smg_onnx_sizes_cast_like(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    return cast(b, n, n->inputs[1]->dtype, out_done);
}

/* ---- reductions --------------------------------------------------------------------------------- */

static const struct reduce_row {
    const char *word;
    onnx_arith op;
    bool mean;
} reduce_rows[] = {
    {"ReduceProd", ONNX_MUL, false}, {"ReduceSum", ONNX_ADD, false}, {"ReduceMax", ONNX_MAX, false},
    {"ReduceMin", ONNX_MIN, false},  {"ReduceMean", ONNX_ADD, true},
};

/* Folds every element into the place that its kept coordinates name. */
static bool fold(smg_onnx_build *b, onnx_arith op, const onnx_known *in, const bool *reduced, onnx_known *out) {
    bool integer = smg_onnx_graph_type(in->dtype) != SMG_TYPE_F32;
    bool *begun = SMG_ARENA_ARRAY(b->arena, bool, (size_t)out->count + 1);
    if (!begun) b->failed = true;
    for (int i = 0; begun && i < in->count; i++) {
        int64_t rest = i, stride = 1, at = 0;
        for (int axis = in->rank - 1; axis >= 0; axis--) {
            int64_t coordinate = rest % in->dims[axis];
            rest /= in->dims[axis];
            if (reduced[axis]) continue;
            at += coordinate * stride;
            stride *= in->dims[axis];
        }
        if (!begun[at]) {
            out->items[at] = in->items[i];
        } else if (!smg_onnx_arith(b, op, integer, out->items[at], in->items[i], &out->items[at])) {
            return false;
        }
        begun[at] = true;
    }
    for (int i = 0; begun && i < out->count; i++)
        if (!begun[i]) return false;
    return begun != NULL;
}

smg_status smg_onnx_sizes_reduce(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    const struct reduce_row *row = NULL;
    onnx_known in, out;
    bool reduced[SMG_MAX_RANK] = {false};
    int axes[SMG_MAX_RANK], count = 0, rank = 0;
    int64_t dims[SMG_MAX_RANK];
    for (size_t i = 0; i < SMG_COUNT_OF(reduce_rows); i++)
        if (strcmp(reduce_rows[i].word, n->op) == 0) row = &reduce_rows[i];
    if (!row || !smg_onnx_known_in(b, n, 0, &in)) return SMG_OK;
    if (smg_onnx_has(n, 1) && !smg_onnx_knows_sizes(b, n->inputs[1])) return SMG_OK;
    SMG_TRY(smg_onnx_axes(b, n, 1, in.rank, axes, &count));
    bool nothing = count == 0 && smg_onnx_attr_int(b, n, "noop_with_empty_axes", 0) != 0;
    bool keep = smg_onnx_attr_int(b, n, "keepdims", 1) != 0;
    for (int i = 0; i < in.rank; i++) reduced[i] = count <= 0 && !nothing;
    for (int i = 0; i < count; i++) reduced[axes[i]] = true;
    int64_t folded = 1;
    for (int i = 0; i < in.rank; i++) {
        if (reduced[i]) folded *= in.dims[i];
        if (!reduced[i] || keep) dims[rank++] = reduced[i] ? 1 : in.dims[i];
    }
    if (!smg_onnx_known_make(b, in.dtype, rank, dims, &out)) return SMG_OK;
    if (!fold(b, row->op, &in, reduced, &out)) return SMG_OK;
    bool integer = smg_onnx_graph_type(in.dtype) != SMG_TYPE_F32;
    for (int i = 0; row->mean && i < out.count; i++)
        if (!smg_onnx_arith(b, ONNX_DIV, integer, out.items[i], smg_onnx_number_of(b, folded), &out.items[i]))
            return SMG_OK;
    return smg_onnx_known_out(b, n, 0, &out, out_done);
}
