/* How much larger roundings are when they reach an output. The rounding of a value by a part e of it is one of about
 * gain * e of an output: a sum passes on its share, an average makes it smaller, and the exponential of scores of 30
 * makes it thirty times as large, in each layer anew.
 *
 * Forwards, how large values typically are: mean and root mean square, as if elements were independent, inputs about 1
 * and constants what they are. Backwards, the derivatives of maps and sums there; ways that meet add up by squares. No
 * bound and no measurement: it tells which roundings are enlarged, and about how far. */
#include "precision/precision_internal.h"

#include <math.h>

#define BEYOND 8192.0 /* what is larger is there to leave others out (a mask), and no typical value */
#define BOUND 1e38    /* and what is larger still no number to reckon with */
#define SETTLED 0.1   /* of its mean, at most, a number is off */
#define EXTENT 128.0  /* of axes that a run decides */
#define STEP 1e-3     /* of differences, as a part of the operand */
#define MOST_PLACES 32

static const int places_of[SMG_MAX_OPERANDS + 1] = {1, MOST_PLACES, 6, 4};

typedef struct typical {
    double mean, size; /* size: root mean square; NAN: of a constant of which nothing is known */
} typical;

typedef struct gains {
    smg_graph *g;
    smg_exprs *exprs;
    double place[SMG_MAX_OPERANDS + 1][MOST_PLACES]; /* by operands: of a normal distribution, equally likely */
    typical *at;
    double (*slope)[SMG_MAX_OPERANDS]; /* of maps: root mean squares of derivatives */
    bool *shared;                      /* a sum reads it: it may be divided by that */
    double *terms;                     /* of that sum, where nobody reads it or the sum but such shares; else 0 */
    double *gain;                      /* squares, until the end */
} gains;

static const smg_node *operand(const gains *s, const smg_node *n, int k) {
    return smg_graph_node(s->g, n->operand[k]);
}

static bool is_real(const smg_node *n) {
    return smg_type_kind(n->type) == SMG_KIND_FLOAT;
}

static double extent_of(const gains *s, smg_size size) {
    int64_t low = 0, high = 0;
    smg_size_bounds(s->g->sizes, size, &low, &high);
    return fmax((double)low, fmin((double)high, EXTENT));
}

static double spread_of(typical t) {
    return sqrt(fmax(0, t.size * t.size - t.mean * t.mean));
}

/* Of many independent terms together. */
static typical sum_of(double count, typical t) {
    double spread = spread_of(t);
    return (typical){count * t.mean, sqrt(count * spread * spread + count * count * t.mean * t.mean)};
}

/* ---- leaves ------------------------------------------------------------------------------------- */

static typical of_elements(const smg_node *n, int64_t count) {
    double sum = 0, squares = 0;
    int64_t seen = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = smg_host_get(n->type, n->data, i);
        if (!(fabs(value) < BEYOND)) continue;
        sum += value;
        squares += value * value;
        seen++;
    }
    return seen > 0 ? (typical){sum / (double)seen, sqrt(squares / (double)seen)} : (typical){0, 0};
}

static typical of_constant(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    int64_t count = 0;
    if (n->data == NULL || !smg_size_is_const(s->g->sizes, smg_node_elements(s->g, id), &count))
        return (typical){0, (double)NAN};
    if (count <= SMG_HOST_ELEMENTS) return of_elements(n, count);
    return (typical){0, smg_content_size(smg_graph_content(s->g, SMG_CONTENT_SIZE, n->type, n->data, count))};
}

static typical of_leaf(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    double extent;
    switch (smg_op_leaf(n->op)) {
    case SMG_LEAF_NUMBER: return (typical){n->value, fabs(n->value)};
    case SMG_LEAF_SIZE: extent = extent_of(s, n->size); return (typical){extent, extent};
    case SMG_LEAF_INDEX: extent = extent_of(s, n->dims[n->axis]); return (typical){extent / 2, extent / sqrt(3)};
    case SMG_LEAF_TENSOR:
    case SMG_LEAF_NONE: break;
    }
    if (!is_real(n)) return (typical){0.5, sqrt(0.5)}; /* as masks are */
    return smg_op_is_constant(n->op) ? of_constant(s, id) : (typical){0, 1};
}

/* ---- maps --------------------------------------------------------------------------------------- */

/* Where the distribution has so much below it. */
static double place_at(double below) {
    double low = -6, high = 6;
    for (int k = 0; k < 40; k++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < below)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Few places lack what is far out; together they are as large as the distribution. */
static void choose_places(gains *s) {
    for (int operands = 1; operands <= SMG_MAX_OPERANDS; operands++) {
        double *place = s->place[operands], squares = 0;
        int count = places_of[operands];
        for (int i = 0; i < count; i++) {
            place[i] = place_at((i + 0.5) / count);
            squares += place[i] * place[i] / count;
        }
        for (int i = 0; i < count; i++) place[i] /= sqrt(squares);
    }
}

/* Combination i of the operands' places. */
static void put_operands(const gains *s, const smg_node *n, int i, double *at) {
    int each = places_of[n->operand_count];
    for (int k = 0; k < n->operand_count; k++, i /= each) {
        typical t = s->at[n->operand[k]];
        bool truth = smg_type_kind(operand(s, n, k)->type) == SMG_KIND_BOOL;
        at[k] = truth ? i % each % 2 : t.mean + spread_of(t) * s->place[n->operand_count][i % each];
    }
}

static double slope_at(const gains *s, smg_expr expr, double *at, int k, double step) {
    double here = at[k];
    at[k] = here + step;
    double above = smg_expr_eval(s->exprs, expr, at);
    at[k] = here - step;
    double below = smg_expr_eval(s->exprs, expr, at);
    at[k] = here;
    double slope = step > 0 ? (above - below) / (2 * step) : 0;
    return isfinite(slope) ? slope : 0;
}

/* The sum of some values, and of their squares. */
typedef struct values {
    int count;
    double sum, squares;
} values;

static void add_value(values *io, double value) {
    io->count++;
    io->sum += value;
    io->squares += value * value;
}

static typical typical_of(const values *v) {
    return v->count > 0 ? (typical){v->sum / v->count, sqrt(v->squares / v->count)} : (typical){0, 0};
}

/* Are all that the map reads numbers, more or less? */
static bool reads_numbers(const gains *s, const smg_node *n) {
    bool all = true;
    for (int k = 0; k < n->operand_count && all; k++) {
        typical t = s->at[n->operand[k]];
        all = !is_real(operand(s, n, k)) || spread_of(t) <= SETTLED * fabs(t.mean);
    }
    return all;
}

/* What is beyond all typical values is there to leave others out, but for numbers: these are bounds of others. */
static typical of_map(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    double *slope = s->slope[id], at[SMG_MAX_OPERANDS] = {0};
    values near = {0}, far = {0};
    int combinations = 1;
    for (int k = 0; k < n->operand_count; k++) {
        leaf[k] = smg_expr_leaf(s->exprs, smg_type_kind(operand(s, n, k)->type), k);
        combinations *= places_of[n->operand_count];
    }
    smg_expr expr = smg_op_expr(s->exprs, n->op, n->type, leaf);
    for (int i = 0; i < combinations && expr != SMG_EXPR_NONE; i++) {
        put_operands(s, n, i, at);
        double value = smg_expr_eval(s->exprs, expr, at);
        if (!(fabs(value) < BEYOND)) {
            if (fabs(value) < BOUND) add_value(&far, value);
            continue;
        }
        add_value(&near, value);
        for (int k = 0; k < n->operand_count; k++) {
            double by = is_real(operand(s, n, k)) ? slope_at(s, expr, at, k, STEP * s->at[n->operand[k]].size) : 0;
            slope[k] += by * by;
        }
    }
    for (int k = 0; k < n->operand_count && near.count > 0; k++) slope[k] = sqrt(slope[k] / near.count);
    return typical_of(near.count == 0 && reads_numbers(s, n) ? &far : &near);
}

/* ---- the others --------------------------------------------------------------------------------- */

static double terms_of(const gains *s, const smg_node *n) {
    const smg_node *a = operand(s, n, 0);
    double count = 1;
    if (smg_node_class(n) == SMG_CLASS_REDUCE) return extent_of(s, a->dims[n->axis]);
    for (int d = 0; d < a->rank; d++)
        if (strchr(n->label[2], n->label[0][d]) == NULL) count *= extent_of(s, a->dims[d]);
    return count;
}

static typical of_reduce(const gains *s, const smg_node *n) {
    typical a = s->at[n->operand[0]];
    double count = terms_of(s, n), spread = spread_of(a);
    smg_combine combine = smg_op_combine(n->op);
    if (combine == SMG_COMBINE_ADD) return sum_of(count, a);
    if (combine == SMG_COMBINE_MUL || count < 2) return a;
    double far = sqrt(2 * log(count)), mean = a.mean + (combine == SMG_COMBINE_MAX ? far : -far) * spread;
    return (typical){mean, sqrt(mean * mean + spread * spread / (far * far))};
}

/* A factor of which nothing is known is counted as one that keeps sizes. */
static typical of_contract(const gains *s, const smg_node *n) {
    typical a = s->at[n->operand[0]], b = s->at[n->operand[1]];
    if (isnan(a.size)) return (typical){0, isnan(b.size) ? 1 : b.size};
    if (isnan(b.size)) return (typical){0, a.size};
    return sum_of(terms_of(s, n), (typical){a.mean * b.mean, a.size * b.size});
}

static typical of_node(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    switch (smg_node_class(n)) {
    case SMG_CLASS_LEAF: return of_leaf(s, id);
    case SMG_CLASS_CONTRACT: return of_contract(s, n);
    case SMG_CLASS_REDUCE: return of_reduce(s, n);
    case SMG_CLASS_MAP: return of_map(s, id);
    case SMG_CLASS_GATHER:
    case SMG_CLASS_VIEW: break;
    }
    return s->at[n->operand[0]];
}

/* ---- shares -------------------------------------------------------------------------------------- */

static smg_node_id source_of(const gains *s, smg_node_id id) {
    while (smg_node_class(smg_graph_node(s->g, id)) == SMG_CLASS_VIEW) id = smg_graph_node(s->g, id)->operand[0];
    return id;
}

static bool adds_up(const smg_node *n) {
    return smg_node_class(n) == SMG_CLASS_REDUCE && smg_op_combine(n->op) == SMG_COMBINE_ADD;
}

/* Is the map a term divided by the sum of all? Then twice as much of both changes nothing. */
static bool is_share(gains *s, const smg_node *n, smg_node_id term, smg_node_id sum) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    bool once[2] = {false, false};
    if (smg_node_class(n) != SMG_CLASS_MAP || n->operand_count != 2) return false;
    for (int k = 0; k < 2; k++) {
        smg_node_id from = source_of(s, n->operand[k]);
        once[0] = once[0] || from == term;
        once[1] = once[1] || from == sum;
        leaf[k] = smg_expr_leaf(s->exprs, SMG_KIND_FLOAT, k);
    }
    smg_expr expr = smg_op_expr(s->exprs, n->op, n->type, leaf);
    if (!once[0] || !once[1] || expr == SMG_EXPR_NONE) return false;
    double at[SMG_MAX_OPERANDS] = {0.75, 2.5}, twice[SMG_MAX_OPERANDS] = {1.5, 5};
    return smg_expr_eval(s->exprs, expr, at) == smg_expr_eval(s->exprs, expr, twice);
}

/* The sum of its terms that a map's readers divide by; -1: it has none, or other readers. */
static smg_node_id sum_of_shares(gains *s, smg_node_id term) {
    smg_node_id sum = -1;
    for (smg_node_id id = term + 1; id < s->g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(s->g, id);
        for (int k = 0; k < n->operand_count && smg_node_class(n) != SMG_CLASS_VIEW; k++) {
            smg_node_id from = source_of(s, n->operand[k]);
            if (from != term && (sum < 0 || from != sum)) continue;
            if (sum < 0 && adds_up(n))
                sum = id;
            else if (sum < 0 || !is_share(s, n, term, sum))
                return -1;
        }
    }
    for (int i = 0; i < s->g->outputs.count; i++) {
        smg_node_id from = source_of(s, s->g->outputs.items[i].node);
        if (from == term || from == sum) return -1;
    }
    return sum;
}

static void find_shares(gains *s) {
    for (smg_node_id id = 0; id < s->g->nodes.count; id++) {
        smg_node_id sum = s->shared[id] ? sum_of_shares(s, id) : -1;
        if (sum >= 0) s->terms[id] = terms_of(s, smg_graph_node(s->g, sum));
    }
}

/* ---- backwards ---------------------------------------------------------------------------------- */

/* Operand k of node `from`, of whose elements `count` independent ones change the result by `slope` each. Shares of a
 * sum move only where two of the largest are near, the more rarely the further exponents are apart: of exponents of
 * spread S by sqrt(S). What all terms of the sum have in common moves none of them: of n terms a share has 1 - 1/n, a
 * single one is 1 whatever it is. */
static void pass_on(gains *s, smg_node_id from, int k, double slope, double count) {
    smg_node_id to = smg_graph_node(s->g, from)->operand[k];
    double part = s->at[to].size * slope / s->at[from].size;
    if (s->shared[from] && part > 1) part = sqrt(part);
    if (s->terms[from] > 0) count *= 1 - 1 / s->terms[from];
    if (is_real(smg_graph_node(s->g, to)) && isfinite(part)) s->gain[to] += part * part * count * s->gain[from];
}

static void go_back(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    smg_op_class class_ = smg_node_class(n);
    if (class_ == SMG_CLASS_CONTRACT) {
        bool known = !isnan(s->at[n->operand[0]].size) && !isnan(s->at[n->operand[1]].size);
        for (int k = 0; k < 2 && known; k++) pass_on(s, id, k, s->at[n->operand[1 - k]].size, terms_of(s, n));
        for (int k = 0; k < 2 && !known; k++) s->gain[n->operand[k]] += s->gain[id];
    } else if (class_ == SMG_CLASS_MAP) {
        for (int k = 0; k < n->operand_count; k++) pass_on(s, id, k, s->slope[id][k], 1);
    } else if (class_ == SMG_CLASS_REDUCE) {
        pass_on(s, id, 0, 1, adds_up(n) ? terms_of(s, n) : 1);
    } else if (class_ != SMG_CLASS_LEAF) {
        s->gain[n->operand[0]] += s->gain[id];
    }
}

/* What is unknown counts as 1 where it is no factor of a product. */
static void look(gains *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    for (int k = 0; k < n->operand_count && smg_node_class(n) == SMG_CLASS_MAP; k++)
        if (isnan(s->at[n->operand[k]].size)) s->at[n->operand[k]].size = 1;
    if (adds_up(n) && smg_node_class(operand(s, n, 0)) == SMG_CLASS_MAP) s->shared[n->operand[0]] = true;
    s->at[id] = of_node(s, id);
}

smg_status precision_gains(smg_graph *g, smg_exprs *exprs, smg_arena *arena, double **out_gain) {
    size_t count = (size_t)g->nodes.count + 1;
    gains s = {.g = g, .exprs = exprs};
    s.at = SMG_ARENA_ARRAY(arena, typical, count);
    s.slope = smg_arena_alloc(arena, count, sizeof(*s.slope));
    s.shared = SMG_ARENA_ARRAY(arena, bool, count);
    s.terms = SMG_ARENA_ARRAY(arena, double, count);
    s.gain = *out_gain = SMG_ARENA_ARRAY(arena, double, count);
    if (s.at == NULL || s.slope == NULL || s.shared == NULL || s.terms == NULL || s.gain == NULL) return SMG_MEMORY;
    choose_places(&s);
    for (smg_node_id id = 0; id < g->nodes.count; id++) look(&s, id);
    find_shares(&s);
    for (int i = 0; i < g->outputs.count; i++) s.gain[g->outputs.items[i].node] = 1;
    for (smg_node_id id = g->nodes.count - 1; id >= 0; id--) go_back(&s, id);
    for (smg_node_id id = 0; id < g->nodes.count; id++) s.gain[id] = sqrt(s.gain[id]);
    return smg_context_status(g->ctx);
}
