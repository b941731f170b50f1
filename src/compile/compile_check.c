/* compile_check.c: outputs against the graph's meaning in double.
 *
 * The reference evaluates the graph as it was given, before any rewrite, so that a check covers every
 * phase. The tolerance is no constant: it is the rounding that the longest chain of operations can
 * gather, a reduction over n elements counting sqrt(n). Errors are measured against the element plus
 * the root mean square of its output, because a sum of large terms may well be near zero. Near zero the
 * last digit that a 16-bit value has is no error, however small the output is. */
#include <math.h>

#include "compile/compile.h"

#define BLOCK 512 /* elements that are read at a time */

static double reduced_extent(const smg_graph *g, const smg_node *node, const int64_t *symbols) {
    double product = 1;
    const smg_node *operand = smg_graph_node(g, node->operand[0]);
    for (int d = 0; d < operand->rank; d++) {
        int64_t extent = 1;
        bool reduced = smg_node_class(node) == SMG_CLASS_REDUCE ? d == node->axis
                                                                : strchr(node->label[2], node->label[0][d]) == NULL;
        if (reduced && smg_size_eval(g->sizes, operand->dims[d], symbols, &extent)) {
            product *= (double)extent;
        }
    }
    return product;
}

static double own_roundings(const smg_graph *g, const smg_node *node, const int64_t *symbols) {
    bool real = smg_type_kind(node->type) == SMG_KIND_FLOAT;
    double half = real ? smg_type_epsilon(node->type) * 0x1p24 : 1; /* in units of f32's */
    switch (smg_node_class(node)) {
    case SMG_CLASS_MAP: return half * 2;
    case SMG_CLASS_REDUCE:
    case SMG_CLASS_CONTRACT: return half * (2 + sqrt(reduced_extent(g, node, symbols)));
    case SMG_CLASS_LEAF:
    case SMG_CLASS_GATHER:
    case SMG_CLASS_VIEW: break;
    }
    return 0;
}

/* Bound on the relative error of f32 that the graph's depth and reductions explain. */
static smg_status f32_bound(const smg_graph *g, const int64_t *symbols, smg_arena *scratch, double *out_bound) {
    double *depth = SMG_ARENA_ARRAY(scratch, double, (size_t)g->nodes.count + 1);
    double longest = 0;
    if (depth == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        for (int k = 0; k < node->operand_count; k++) {
            if (depth[node->operand[k]] > depth[id]) depth[id] = depth[node->operand[k]];
        }
        depth[id] += own_roundings(g, node, symbols);
        if (depth[id] > longest) longest = depth[id];
    }
    *out_bound = ldexp(8 * (longest + 1), -24);
    return SMG_OK;
}

smg_roundings smg_compile_roundings(const smg_compilation *c) {
    return (smg_roundings){.stored = c->options.precision, .partial = smg_target_pairs(&c->target)};
}

/* What the type can tell apart from 0 is no error: devices may flush such numbers, and near it that is the last digit
 * which results have, however small they are. */
static double least_of(smg_type type) {
    if (smg_type_kind(type) != SMG_KIND_FLOAT) return 0;
    return type == SMG_TYPE_F16 ? 0x1p-24 : 0x1p-126;
}

smg_status smg_compile_allow(const smg_graph *g, smg_roundings roundings, const int64_t *symbols, smg_arena *scratch,
                             smg_allowance *out_allowance) {
    double f32 = 0, stores = 0;
    SMG_TRY(f32_bound(g, symbols, scratch, &f32));
    SMG_TRY(smg_precision_bound(g, roundings, scratch, &stores));
    *out_allowance = (smg_allowance){.relative = f32 + stores, .least = least_of(roundings.stored)};
    return SMG_OK;
}

/* What an output should be: the reference's array, or another run's output, which is read a block at a time. */
typedef struct wanted {
    smg_type type;
    int64_t count;
    const double *data; /* NULL: the tensor has it */
    const smg_tensor *tensor;
} wanted;

/* Elements [from, from + count), a block at most, as floats of the type: what is too large for it is infinite. */
static void read_wanted(const wanted *w, int64_t from, int64_t count, double *out) {
    double limit = smg_type_kind(w->type) == SMG_KIND_FLOAT ? smg_type_limit(w->type) : INFINITY;
    if (w->data != NULL) memcpy(out, w->data + from, (size_t)count * sizeof *out);
    if (w->data == NULL) smg_tensor_read(w->tensor, from, count, out);
    for (int64_t i = 0; i < count; i++)
        if (fabs(out[i]) >= limit) out[i] = copysign(INFINITY, out[i]);
}

static double root_mean_square(const wanted *w) {
    double block[BLOCK], sum = 0;
    int64_t finite = 0;
    for (int64_t from = 0, n; from < w->count; from += n) {
        n = w->count - from < BLOCK ? w->count - from : BLOCK;
        read_wanted(w, from, n, block);
        for (int64_t i = 0; i < n; i++) {
            if (!isfinite(block[i])) continue;
            sum += block[i] * block[i];
            finite++;
        }
    }
    return finite > 0 ? sqrt(sum / (double)finite) : 0;
}

static double error_of(double got, double want, double scale, double least) {
    if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= least) return 0;
    if (!isfinite(got) || !isfinite(want)) return INFINITY;
    double size = fabs(want) + scale;
    return size > 0 ? (fabs(got - want) - least) / size : INFINITY;
}

/* Element `at` of the output. scale, least: as error_of has them. */
static void compare_element(double value, double want, double scale, double least, int64_t at, smg_check_row *io) {
    double relative = error_of(value, want, scale, least);
    double absolute = relative > 0 ? fabs(value - want) : 0;
    if (!(absolute <= io->max_abs)) io->max_abs = absolute;
    if (relative <= io->max_rel) return;
    io->max_rel = relative;
    io->worst = at;
    io->worst_got = value;
    io->worst_want = want;
}

/* width: elements of a row; row_of: which row of `got` row i of the reference is; NULL: the same one. */
static void compare(const wanted *want, const smg_tensor *got, int64_t width, const int64_t *row_of,
                    smg_allowance allowed, smg_check_row *row) {
    double wants[BLOCK], values[BLOCK];
    bool exact = smg_type_kind(want->type) != SMG_KIND_FLOAT;
    double scale = exact ? 0 : root_mean_square(want), least = least_of(want->type);
    if (!exact && allowed.least > least) least = allowed.least;
    row->elements = want->count;
    row->tolerance = exact ? 0 : allowed.relative;
    for (int64_t i = 0, n; i < want->count; i += n) {
        int64_t left = width - i % width, at = row_of != NULL ? row_of[i / width] * width + i % width : i;
        n = left < BLOCK ? left : BLOCK;
        read_wanted(want, i, n, wants);
        smg_tensor_read(got, at, n, values);
        for (int64_t k = 0; k < n; k++) compare_element(values[k], wants[k], scale, least, at + k, row);
    }
    row->pass = row->max_rel <= row->tolerance;
}

static smg_status choose_rows(const smg_graph *g, int64_t *symbols, double most, smg_arena *arena, smg_rows *out) {
    double flops = smg_graph_flops(g, symbols);
    SMG_TRY(smg_context_status(g->ctx));
    *out = (smg_rows){.symbol = -1, .count = 1, .total = 1};
    if (flops <= most) return SMG_OK;
    out->symbol = smg_compile_batch_symbol(g, arena);
    if (out->symbol < 0) return SMG_OK;
    int64_t total = symbols[out->symbol];
    int64_t rows = (int64_t)((double)total * most / flops);
    if (rows < 1) rows = 1;
    out->count = rows;
    out->total = total;
    out->row_of = SMG_ARENA_ARRAY(arena, int64_t, (size_t)rows);
    if (out->row_of == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < rows; i++) {
        out->row_of[i] = rows > 1 ? i * (total - 1) / (rows - 1) : total / 2;
    }
    symbols[out->symbol] = rows;
    return SMG_OK;
}

/* Keeps the sampled rows of an input whose axis 0 is the batch. */
static void keep_rows(const smg_graph *g, const smg_node *node, const smg_rows *s, smg_array *array) {
    if (s->row_of == NULL || node->rank == 0) return;
    const char *name = smg_size_symbol_name(g->sizes, s->symbol);
    if (node->dims[0] != smg_size_symbol(g->sizes, name) || array->dims[0] == 0) return;
    int64_t width = smg_array_elements(array) / array->dims[0];
    for (int64_t i = 0; i < s->count; i++) { /* ascending and row_of[i] >= i: in place is safe */
        memmove(array->data + i * width, array->data + s->row_of[i] * width, (size_t)width * sizeof(double));
    }
    array->dims[0] = s->count;
}

static smg_status gather_inputs(smg_context *ctx, const smg_graph *g, const smg_tensor *inputs, int input_count,
                                const smg_rows *s, smg_arena *arena, smg_array *arrays) {
    int next = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (!smg_node_is_input(node)) continue;
        const smg_tensor *found = NULL;
        for (int i = 0; i < input_count; i++) {
            if (strcmp(inputs[i].name, node->name) == 0) found = &inputs[i];
        }
        if (found == NULL) return smg_fail(ctx, SMG_INVALID, "input '%s' is missing", node->name);
        SMG_TRY(smg_tensor_to_array(found, arena, &arrays[next]));
        arrays[next].type = node->type;
        keep_rows(g, node, s, &arrays[next]);
        next++;
    }
    return SMG_OK;
}

static smg_status take_rows(smg_context *ctx, const smg_graph *g, double most, int64_t *io_symbols,
                            const smg_tensor *inputs, int input_count, smg_arena *arena, smg_array **out_inputs,
                            smg_rows *out_rows) {
    *out_inputs = SMG_ARENA_ARRAY(arena, smg_array, (size_t)smg_graph_input_nodes(g, NULL, 0) + 1);
    if (*out_inputs == NULL) return SMG_MEMORY;
    SMG_TRY(choose_rows(g, io_symbols, most, arena, out_rows));
    return gather_inputs(ctx, g, inputs, input_count, out_rows, arena, *out_inputs);
}

smg_status smg_compile_take_rows(smg_context *ctx, const smg_graph *g, int64_t *io_symbols, const smg_tensor *inputs,
                                 int input_count, smg_arena *arena, smg_array **out_inputs, smg_rows *out_rows) {
    return take_rows(ctx, g, SMG_CHECK_FLOPS, io_symbols, inputs, input_count, arena, out_inputs, out_rows);
}

typedef struct checked_run {
    const smg_graph *g;
    smg_roundings roundings;
    const int64_t *symbols;
    const smg_tensor *inputs, *outputs;
    int input_count;
    double most; /* operations of the reference, where the batch has rows to leave out */
    bool always; /* also where one row is more */
} checked_run;

static smg_status check_in(smg_context *ctx, const checked_run *r, smg_arena *scratch, smg_check *check) {
    const smg_graph *g = r->g;
    int count = smg_size_symbol_count(g->sizes);
    int64_t *values = SMG_ARENA_ARRAY(scratch, int64_t, (size_t)count + 1);
    smg_array *in = NULL, *out = SMG_ARENA_ARRAY(scratch, smg_array, (size_t)g->outputs.count + 1);
    smg_rows rows;
    if (values == NULL || out == NULL) return SMG_MEMORY;
    memcpy(values, r->symbols, (size_t)count * sizeof(*values));
    SMG_TRY(take_rows(ctx, g, r->most, values, r->inputs, r->input_count, scratch, &in, &rows));
    check->sampled = rows.count;
    check->total = rows.total;
    if (!r->always && smg_graph_flops(g, values) > r->most) {
        check->sampled = 0;
        return SMG_OK;
    }
    double start = smg_clock_seconds();
    SMG_TRY(smg_graph_eval(g, values, in, scratch, out));
    check->seconds = smg_clock_seconds() - start;
    smg_allowance allowed;
    SMG_TRY(smg_compile_allow(g, r->roundings, values, scratch, &allowed));
    check->pass = true;
    for (int i = 0; i < g->outputs.count; i++) {
        check->rows[i].output = g->outputs.items[i].name;
        const wanted want = {out[i].type, smg_array_elements(&out[i]), out[i].data, NULL};
        int64_t width = rows.row_of != NULL && out[i].dims[0] > 0 ? want.count / out[i].dims[0] : want.count;
        compare(&want, &r->outputs[i], width, rows.row_of, allowed, &check->rows[i]);
        check->pass = check->pass && check->rows[i].pass;
    }
    return SMG_OK;
}

static smg_status check_run(smg_context *ctx, const checked_run *r, smg_arena *arena, smg_check *out_check) {
    *out_check = (smg_check){.count = r->g->outputs.count};
    out_check->rows = SMG_ARENA_ARRAY(arena, smg_check_row, (size_t)r->g->outputs.count + 1);
    if (out_check->rows == NULL) return SMG_MEMORY;
    smg_arena *scratch = NULL;
    SMG_TRY(smg_arena_create(ctx, &scratch));
    smg_status status = check_in(ctx, r, scratch, out_check);
    smg_arena_destroy(scratch);
    return status;
}

smg_status smg_compile_check(smg_context *ctx, const smg_graph *g, smg_roundings roundings, const int64_t *symbols,
                             const smg_tensor *inputs, int input_count, const smg_tensor *outputs, smg_arena *arena,
                             smg_check *out_check) {
    const checked_run r = {g, roundings, symbols, inputs, outputs, input_count, SMG_CHECK_FLOPS, true};
    return check_run(ctx, &r, arena, out_check);
}

smg_status smg_compile_check_some(smg_context *ctx, const smg_graph *g, smg_roundings roundings, const int64_t *symbols,
                                  const smg_tensor *inputs, int input_count, const smg_tensor *outputs, double most,
                                  smg_arena *arena, smg_check *out_check) {
    const checked_run r = {g, roundings, symbols, inputs, outputs, input_count, most, false};
    return check_run(ctx, &r, arena, out_check);
}

void smg_compile_compare(const smg_tensor *want, const smg_tensor *got, smg_allowance allowed, smg_check_row *out_row) {
    wanted all = {SMG_TYPE_F32, smg_tensor_elements(want), NULL, want};
    smg_type_find(want->type, &all.type); /* none is f32 */
    *out_row = (smg_check_row){.output = want->name};
    compare(&all, got, all.count, NULL, allowed, out_row);
}
