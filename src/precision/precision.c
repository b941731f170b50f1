/* Facts of values, node by node, and what they decide. Three things are known without running anything.
 *
 * What literals and constants put in: a mask of -3.4e38 stays in what it is added to, until something (an exponential,
 * a quotient) brings it back. Each map is evaluated at the corners of what goes in, where anything of which nothing is
 * known is -1, 0 or 1: no bound, but what surely may occur.
 *
 * Values that indices, sizes and integers alone make: positions, counts, angles. They have bounds, and they are exact,
 * which is more than being near: a position of 2049 is none in f16, and an angle's error grows with its size.
 *
 * How much larger what is rounded off becomes on its way to an output (precision_gain.c). */
#include "precision/precision_internal.h"

#include <math.h>
#include <stdlib.h>

#define LARGEST_INTEGER 2147483648.0

typedef struct fact {
    double put;     /* the largest size that literals and constants put in; 1: nothing that is known to be larger */
    double literal; /* of a number: it; else NaN */
    bool counted;   /* indices, sizes, integers and literals alone make it */
    bool whole;
    double most; /* counted: the largest size */
    bool statistic;
    bool misfit;      /* a constant that the type does not hold well, or a copy of one */
    bool run;         /* a float input has a part in it */
    const char *hung; /* the word of a reader that needs it exactly: of a periodic function, or of one that jumps */
    bool compared;    /* it, or what maps make of it, with another value that runs bring */
    int readers;
    bool factor; /* of a product, or its table's rows are gathered */
} fact;

typedef struct precision {
    smg_graph *g;
    smg_type asked;
    const smg_peak *measured; /* NULL: nothing was */
    smg_arena *arena;
    smg_exprs *exprs;
    fact *facts;
    smg_precision_plan *plan;
} precision;

/* ---- leaves ------------------------------------------------------------------------------------- */

static bool elements_of(const smg_graph *g, smg_node_id id, int64_t *out_count) {
    return smg_size_is_const(g->sizes, smg_node_elements(g, id), out_count);
}

/* Constants of whole numbers are tables of positions and such, where the type cannot tell all of them apart. */
static bool is_table(const precision *p, const smg_node *n, int64_t count, double largest) {
    if (!(largest * smg_type_epsilon(p->asked) > 1) || count > SMG_HOST_ELEMENTS) return false;
    for (int64_t i = 0; i < count; i++) {
        double value = smg_host_get(n->type, n->data, i);
        if (value < floor(value) || value > floor(value)) return false;
    }
    return true;
}

static fact of_constant(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    fact f = {.put = 1, .literal = (double)NAN};
    int64_t count = 0;
    if (n->data == NULL || n->type == p->asked || !elements_of(p->g, id, &count)) return f;
    smg_content question = p->asked == SMG_TYPE_F16 ? SMG_CONTENT_F16 : SMG_CONTENT_BF16;
    if (count > SMG_HOST_ELEMENTS) { /* no more is known of it than the answer */
        f.misfit = !smg_graph_content(p->g, question, n->type, n->data, count);
        if (f.misfit) f.put = smg_type_limit(SMG_TYPE_F32);
        return f;
    }
    f.most = smg_content_largest(n->type, n->data, count);
    f.misfit = !smg_content_fits(p->asked, f.most);
    if (f.misfit) f.put = fmax(1, f.most);
    f.counted = f.whole = is_table(p, n, count, f.most);
    return f;
}

static fact of_integers(const smg_node *n) {
    bool truth = smg_type_kind(n->type) == SMG_KIND_BOOL;
    return (fact){
        .put = 1, .literal = (double)NAN, .counted = true, .whole = true, .most = truth ? 1 : LARGEST_INTEGER};
}

static double upper(const smg_graph *g, smg_size size) {
    int64_t low = 0, high = 0;
    smg_size_bounds(g->sizes, size, &low, &high);
    return fmin((double)high, LARGEST_INTEGER);
}

static fact of_leaf(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    fact f = {.put = 1, .literal = (double)NAN, .counted = true, .whole = true};
    switch (smg_op_leaf(n->op)) {
    case SMG_LEAF_NUMBER:
        f.literal = n->value;
        f.most = isfinite(n->value) ? fabs(n->value) : 0;
        f.put = fmax(1, f.most);
        f.whole = !isfinite(n->value) || !(n->value < floor(n->value) || n->value > floor(n->value));
        return f;
    case SMG_LEAF_SIZE: return f.most = upper(p->g, n->size), f;
    case SMG_LEAF_INDEX: return f.most = upper(p->g, n->dims[n->axis]), f;
    case SMG_LEAF_TENSOR:
    case SMG_LEAF_NONE: break;
    }
    if (smg_type_kind(n->type) != SMG_KIND_FLOAT) return of_integers(n);
    return smg_op_is_constant(n->op) ? of_constant(p, id) : (fact){.put = 1, .literal = (double)NAN};
}

/* ---- maps --------------------------------------------------------------------------------------- */

typedef struct corners {
    double value[SMG_MAX_OPERANDS][3];
    int count[SMG_MAX_OPERANDS];
} corners;

static void put_corner(corners *c, int k, const fact *f, double size) {
    c->count[k] = isnan(f->literal) ? 3 : 1;
    c->value[k][0] = isnan(f->literal) ? 0 : f->literal;
    c->value[k][1] = size;
    c->value[k][2] = -size;
}

/* The largest finite size of the expression over the corners. */
static double largest_of(const precision *p, smg_expr expr, int operands, const corners *c) {
    double largest = 0, at[SMG_MAX_OPERANDS] = {0};
    int combinations = 1;
    for (int k = 0; k < operands; k++) combinations *= c->count[k];
    for (int i = 0; i < combinations; i++) {
        for (int k = 0, rest = i; k < operands; k++) {
            at[k] = c->value[k][rest % c->count[k]];
            rest /= c->count[k];
        }
        double size = fabs(smg_expr_eval(p->exprs, expr, at));
        if (isfinite(size) && size > largest) largest = size;
    }
    return largest;
}

/* Whole numbers in, whole numbers out? Asked at two places. */
static bool keeps_whole(const precision *p, smg_expr expr, int operands, const fact *const *f) {
    static const double places[2][SMG_MAX_OPERANDS] = {{3, 5, 7}, {10, 6, 4}};
    for (int i = 0; i < 2; i++) {
        double at[SMG_MAX_OPERANDS] = {0};
        for (int k = 0; k < operands; k++)
            at[k] = isnan(f[k]->literal) ? fmin(places[i][k], f[k]->most) : f[k]->literal;
        double value = smg_expr_eval(p->exprs, expr, at);
        if (isfinite(value) && (value < floor(value) || value > floor(value))) return false;
    }
    return true;
}

/* A map of statistics and numbers is one. */
static bool only_statistics(const fact *const *f, int operands) {
    bool any = false;
    for (int k = 0; k < operands; k++) {
        if (!f[k]->statistic && isnan(f[k]->literal)) return false;
        any = any || f[k]->statistic;
    }
    return any;
}

static fact of_map(precision *p, const smg_node *n, const fact *const *f) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    fact made = {.put = 1, .literal = (double)NAN, .counted = true, .whole = true};
    corners put, most;
    int operands = n->operand_count;
    for (int k = 0; k < operands; k++) {
        leaf[k] = smg_expr_leaf(p->exprs, smg_type_kind(smg_graph_node(p->g, n->operand[k])->type), k);
        put_corner(&put, k, f[k], f[k]->put);
        put_corner(&most, k, f[k], f[k]->most);
        made.counted = made.counted && f[k]->counted;
        made.whole = made.whole && f[k]->whole;
    }
    smg_expr expr = smg_op_expr(p->exprs, n->op, n->type, leaf);
    if (expr == SMG_EXPR_NONE) return made;
    double size = largest_of(p, expr, operands, &put);
    if (size >= smg_type_limit(p->asked)) made.put = size;
    if (made.counted) made.most = largest_of(p, expr, operands, &most);
    made.whole = made.counted && made.whole && keeps_whole(p, expr, operands, f);
    made.statistic = only_statistics(f, operands);
    made.misfit = smg_expr_get(p->exprs, expr)->prim == SMG_PRIM_LEAF && f[0]->misfit; /* the same numbers */
    if (made.misfit) made.most = f[0]->most;
    return made;
}

/* ---- the others --------------------------------------------------------------------------------- */

static fact of_sum(const smg_node *n, const fact *a) {
    fact f = *a;
    bool adds = smg_op_combine(n->op) == SMG_COMBINE_ADD || smg_op_combine(n->op) == SMG_COMBINE_MUL;
    f.literal = (double)NAN;
    f.misfit = false;
    if (f.counted && adds) f.most = LARGEST_INTEGER;
    f.statistic = true;
    return f;
}

static fact of_product(const precision *p, const fact *a, const fact *b) {
    fact f = {.put = a->put * b->put, .literal = (double)NAN, .most = LARGEST_INTEGER};
    if (f.put < smg_type_limit(p->asked)) f.put = 1;
    f.counted = a->counted && b->counted;
    f.whole = a->whole && b->whole;
    return f;
}

/* A gather is its table's rows. */
static fact of_view(const precision *p, const smg_node *n, const fact *a) {
    fact f = *a;
    f.misfit = f.misfit && smg_node_class(n) == SMG_CLASS_VIEW;
    if (smg_op_view(n->op) != SMG_VIEW_WINDOW) return f;
    double size = isfinite(n->value) ? fabs(n->value) : 0;
    f.literal = (double)NAN;
    f.put = size >= smg_type_limit(p->asked) ? fmax(f.put, size) : f.put;
    f.most = fmax(f.most, size);
    return f;
}

static fact of_class(precision *p, smg_node_id id, const fact *const *f) {
    const smg_node *n = smg_graph_node(p->g, id);
    switch (smg_node_class(n)) {
    case SMG_CLASS_LEAF: return of_leaf(p, id);
    case SMG_CLASS_REDUCE: return of_sum(n, f[0]);
    case SMG_CLASS_CONTRACT: return of_product(p, f[0], f[1]);
    case SMG_CLASS_GATHER:
    case SMG_CLASS_VIEW: return of_view(p, n, f[0]);
    case SMG_CLASS_MAP: break;
    }
    return of_map(p, n, f);
}

static fact of_node(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    const fact *f[SMG_MAX_OPERANDS] = {NULL};
    for (int k = 0; k < n->operand_count; k++) f[k] = &p->facts[n->operand[k]];
    fact made = of_class(p, id, f);
    made.run = smg_op_is_input(n->op) && smg_type_kind(n->type) == SMG_KIND_FLOAT;
    for (int k = 0; k < n->operand_count; k++) made.run = made.run || f[k]->run;
    return made;
}

/* ---- readers ------------------------------------------------------------------------------------ */

/* The result hangs on the error of the operand, however large the operand is. */
static bool is_exact(smg_prim prim) {
    return smg_prim_is_step(prim) || prim == SMG_PRIM_SIN || prim == SMG_PRIM_COS || prim == SMG_PRIM_MOD;
}

/* A truth holds or does not; what it hangs on is a comparison's business (`compared`). */
static bool may_hang(const precision *p, smg_node_id id) {
    return smg_type_kind(smg_graph_node(p->g, id)->type) != SMG_KIND_BOOL;
}

/* Operands of the map below a primitive that needs them exactly. */
static void hang_leaves(precision *p, const smg_node *n, smg_expr expr, const char *reader) {
    smg_expr_node e = *smg_expr_get(p->exprs, expr);
    if (e.prim == SMG_PRIM_LEAF) {
        smg_node_id id = n->operand[e.leaf];
        while (smg_node_class(smg_graph_node(p->g, id)) == SMG_CLASS_VIEW) id = smg_graph_node(p->g, id)->operand[0];
        if (reader != NULL && may_hang(p, id)) p->facts[id].hung = reader;
        return;
    }
    if (is_exact(e.prim)) reader = smg_prim_word(e.prim);
    for (int i = 0; i < smg_prim_arity(e.prim); i++) hang_leaves(p, n, e.arg[i], reader);
}

/* Are both sides floats that runs bring? A value and its own maximum come out equal only where both are as they were:
 * one may be in memory, and rounded there, when the other never left the registers. */
static bool compares_runs(const precision *p, const smg_node *n, smg_expr expr) {
    if (!smg_prim_compares(smg_expr_get(p->exprs, expr)->prim)) return false;
    for (int k = 0; k < n->operand_count; k++) {
        const smg_node *operand = smg_graph_node(p->g, n->operand[k]);
        if (smg_type_kind(operand->type) != SMG_KIND_FLOAT || !p->facts[n->operand[k]].run) return false;
    }
    return true;
}

static void mark_hung(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (smg_node_class(n) != SMG_CLASS_MAP) return;
    for (int k = 0; k < n->operand_count; k++)
        leaf[k] = smg_expr_leaf(p->exprs, smg_type_kind(smg_graph_node(p->g, n->operand[k])->type), k);
    smg_expr expr = smg_op_expr(p->exprs, n->op, n->type, leaf);
    if (expr == SMG_EXPR_NONE) return;
    hang_leaves(p, n, expr, NULL);
    if (!compares_runs(p, n, expr)) return;
    for (int k = 0; k < n->operand_count; k++) p->facts[n->operand[k]].compared = true;
}

/* A kernel may make a map anew of what another one has stored, so that has to be exact as well. */
static void compare_operands(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    smg_op_class class_ = smg_node_class(n);
    if (!p->facts[id].compared || (class_ != SMG_CLASS_MAP && class_ != SMG_CLASS_VIEW)) return;
    for (int k = 0; k < n->operand_count; k++) p->facts[n->operand[k]].compared = true;
}

/* An angle is as exact as the positions and frequencies that make it. Not so what runs bring: where all that it comes
 * from had to be exact, little would be left to narrow. */
static void hang_operands(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    const fact *f = &p->facts[id];
    for (int k = 0; k < n->operand_count && f->hung != NULL && !f->run; k++)
        if (p->facts[n->operand[k]].hung == NULL && may_hang(p, n->operand[k])) p->facts[n->operand[k]].hung = f->hung;
}

/* ---- decisions ---------------------------------------------------------------------------------- */

static smg_node_id behind_views(const smg_graph *g, smg_node_id id) {
    while (smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_VIEW) id = smg_graph_node(g, id)->operand[0];
    return id;
}

static bool is_output(const smg_graph *g, smg_node_id id) {
    for (int i = 0; i < g->outputs.count; i++)
        if (behind_views(g, g->outputs.items[i].node) == id) return true;
    return false;
}

/* Other runs may go further than the one that was measured. */
#define MEASURED_ROOM 2.0

static const char *measured_objection(const precision *p, smg_node_id id) {
    const char *word = smg_type_word(p->asked);
    double most = p->measured != NULL && p->measured[id].at >= 0 ? p->measured[id].size : 0;
    if (smg_content_fits(p->asked, most) && smg_content_fits(p->asked, MEASURED_ROOM * most)) return NULL;
    const char *why = most < 1 ? smg_arena_format(p->arena, "measured: at most %g, where %s is coarse", most, word)
                               : smg_arena_format(p->arena, "measured: %g comes into it, and %s ends at %g", most, word,
                                                  smg_type_limit(p->asked));
    return why != NULL ? why : "";
}

/* Why the value cannot be of the type, NULL where it can; "" when memory is out. */
static const char *objection(const precision *p, smg_node_id id) {
    const fact *f = &p->facts[id];
    const char *word = smg_type_word(p->asked), *why = NULL;
    if (f->misfit && f->most > 0)
        why = smg_arena_format(p->arena, "its largest element is %g, which %s does not hold well", f->most, word);
    else if (f->misfit)
        why = smg_arena_format(p->arena, "its largest element is none that %s holds well", word);
    else if (f->put >= smg_type_limit(p->asked))
        why = smg_arena_format(p->arena, "%g comes into it, and %s ends at %g", f->put, word, smg_type_limit(p->asked));
    else if (f->counted && f->whole && f->most * smg_type_epsilon(p->asked) > 1)
        why = smg_arena_format(p->arena, "it counts up to %.0f, and %s counts to %.0f", f->most, word,
                               1 / smg_type_epsilon(p->asked));
    else if (f->counted && !f->whole && f->most > 1)
        why = smg_arena_format(p->arena, "positions alone make it, up to %g", f->most);
    else if (f->hung != NULL)
        why = smg_arena_format(p->arena, "%s needs it exactly", f->hung);
    else if (f->compared)
        return "a comparison needs it as it was";
    else if (f->statistic && !is_output(p->g, id))
        return "it is a statistic";
    else
        return measured_objection(p, id);
    return why != NULL ? why : "";
}

static void decide(precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    smg_precision_plan *plan = p->plan;
    plan->storage[id] = n->type;
    if (smg_node_class(n) == SMG_CLASS_VIEW) {
        plan->storage[id] = plan->storage[n->operand[0]];
        plan->why[id] = plan->why[n->operand[0]];
    } else if (n->type == SMG_TYPE_F32) {
        plan->why[id] = objection(p, id);
        if (plan->why[id] == NULL) plan->storage[id] = p->asked;
    }
}

/* ---- enlarged roundings ------------------------------------------------------------------------- */

/* What roundings may come to in an output, all together, as root mean squares. The element that is furthest off is so
 * by up to twice as much, in parts of the largest. In deep graphs it is a part of what a check allows: a smaller one
 * for bf16, where two layers of a Llama came to 2.1e-2 by the share that f16 has. */
#define NEAR_F16 4.6e-3
#define NEAR_BF16 9e-3
#define NEAR_CHECK_F16 0.075
#define NEAR_CHECK_BF16 0.06
#define MEAN_ROUNDING 0.43 /* root mean square of roundings, in parts of the largest one */
#define ENLARGED 1.2       /* smaller gains are those of any sum of a few terms */

static void count_readers(precision *p) {
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(p->g, id);
        smg_op_class class_ = smg_node_class(n);
        for (int k = 0; k < n->operand_count && class_ != SMG_CLASS_VIEW; k++) {
            fact *f = &p->facts[behind_views(p->g, n->operand[k])];
            f->readers++;
            f->factor = f->factor || class_ == SMG_CLASS_CONTRACT || class_ == SMG_CLASS_GATHER;
        }
    }
}

/* Is the value likely in memory, and rounded there? Kernels end at products and where several read a value. */
static bool is_rounded(const precision *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    const fact *f = &p->facts[id];
    if (n->type != SMG_TYPE_F32 || p->plan->why[id] != NULL) return false;
    if (smg_op_leaf(n->op) == SMG_LEAF_TENSOR) return true;
    return smg_node_computes(n) && (f->readers > 1 || f->factor || is_output(p->g, id));
}

/* Views lie where their operand does. */
static void keep(precision *p, smg_node_id id, double gain, double least) {
    const smg_node *n = smg_graph_node(p->g, id);
    smg_precision_plan *plan = p->plan;
    if (smg_node_class(n) == SMG_CLASS_VIEW) {
        plan->storage[id] = plan->storage[n->operand[0]];
        plan->why[id] = plan->why[n->operand[0]];
    } else if (n->type == SMG_TYPE_F32 && plan->why[id] == NULL && gain >= least) {
        const char *why =
            smg_arena_format(p->arena, "what is rounded off it is %.2g times as large in an output", gain);
        plan->storage[id] = SMG_TYPE_F32;
        plan->why[id] = why != NULL ? why : "";
    }
}

static int by_gain(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Where all that would be rounded comes to more than an output may be off, values of which the roundings grow most stay
 * f32: as many as that takes. Others with the same gain are on the same way. */
static smg_status keep_enlarged(precision *p) {
    double *gain = NULL, unit = MEAN_ROUNDING * smg_type_epsilon(p->asked), bound, sum = 0, least = HUGE_VAL;
    double *rounded = SMG_ARENA_ARRAY(p->arena, double, (size_t)p->g->nodes.count + 1);
    int count = 0;
    if (rounded == NULL) return SMG_MEMORY;
    SMG_TRY(precision_gains(p->g, p->exprs, p->arena, &gain));
    SMG_TRY(smg_precision_bound(p->g, (smg_roundings){.stored = p->asked}, p->arena, &bound));
    bool half = p->asked == SMG_TYPE_F16;
    double share = half ? NEAR_CHECK_F16 : NEAR_CHECK_BF16,
           limit = fmax(half ? NEAR_F16 : NEAR_BF16, share * bound) / unit;
    count_readers(p);
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        if (!is_rounded(p, id)) continue;
        sum += gain[id] * gain[id];
        rounded[count++] = gain[id];
    }
    qsort(rounded, (size_t)count, sizeof(*rounded), by_gain);
    for (int i = 0; i < count && sum > limit * limit && rounded[i] > ENLARGED; i++) {
        least = rounded[i];
        sum -= least * least;
    }
    p->plan->likely = unit * sqrt(fmax(0, sum));
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) keep(p, id, gain[id], least);
    return smg_context_status(p->g->ctx);
}

/* ---- states ------------------------------------------------------------------------------------- */

static void keep_state(precision *p, smg_node_id id, const char *other) {
    smg_precision_plan *plan = p->plan;
    if (plan->storage[id] == SMG_TYPE_F32) return;
    const char *why = smg_arena_format(p->arena, "as a state it lies as '%s' does", other);
    plan->storage[id] = SMG_TYPE_F32;
    plan->why[id] = why != NULL ? why : "";
}

/* What an output leaves for the next run's input lies as that does: both narrow, or neither. */
static void match_states(precision *p) {
    const smg_graph *g = p->g;
    smg_precision_plan *plan = p->plan;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        int next = smg_node_is_input(n) ? smg_graph_next_of(g, n->name) : -1;
        if (next < 0) continue;
        smg_node_id stored = behind_views(g, g->outputs.items[next].node);
        if (plan->storage[id] == plan->storage[stored]) continue;
        keep_state(p, id, g->outputs.items[next].name);
        keep_state(p, stored, n->name);
    }
    for (smg_node_id id = 0; id < g->nodes.count; id++)
        if (smg_node_class(smg_graph_node(g, id)) == SMG_CLASS_VIEW) keep(p, id, 0, 1);
}

static smg_status make(precision *p) {
    size_t count = (size_t)p->g->nodes.count + 1;
    p->facts = SMG_ARENA_ARRAY(p->arena, fact, count);
    p->plan->storage = SMG_ARENA_ARRAY(p->g->arena, smg_type, count);
    p->plan->why = SMG_ARENA_ARRAY(p->arena, const char *, count);
    if (p->facts == NULL || p->plan->storage == NULL || p->plan->why == NULL) return SMG_MEMORY;
    SMG_TRY(smg_exprs_create(p->arena, &p->exprs));
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) p->facts[id] = of_node(p, id);
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) mark_hung(p, id);
    for (smg_node_id id = p->g->nodes.count - 1; id >= 0; id--) {
        hang_operands(p, id);
        compare_operands(p, id);
    }
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) decide(p, id);
    SMG_TRY(keep_enlarged(p));
    match_states(p);
    return smg_context_status(p->g->ctx);
}

smg_status smg_precision_make(smg_graph *g, smg_type asked, const smg_peak *measured, smg_arena *arena,
                              smg_precision_plan *out_plan) {
    precision p = {.g = g, .asked = asked, .measured = measured, .arena = arena, .plan = out_plan};
    *out_plan = (smg_precision_plan){.asked = asked};
    g->storage = NULL;
    if (asked == SMG_TYPE_F32) return SMG_OK;
    SMG_TRY(make(&p));
    g->storage = out_plan->storage;
    return SMG_OK;
}

smg_status smg_precision_find(smg_context *ctx, const char *word, smg_type *out_type) {
    static const smg_type types[] = {SMG_TYPE_F32, SMG_TYPE_F16, SMG_TYPE_BF16};
    *out_type = SMG_TYPE_F32;
    for (size_t i = 0; word != NULL && i < SMG_COUNT_OF(types); i++) {
        if (strcmp(word, smg_type_word(types[i])) != 0) continue;
        *out_type = types[i];
        return SMG_OK;
    }
    if (word == NULL) return SMG_OK;
    return smg_fail(ctx, SMG_INVALID, "there is no precision '%s'; there are f32, f16 and bf16", word);
}

/* Of a sum of 32 products each rounding is as large as what has been summed up by then: together they are as many of
 * the whole. */
#define PARTIAL_ROUNDINGS 16

smg_status smg_precision_bound(const smg_graph *g, smg_roundings roundings, smg_arena *scratch, double *out_bound) {
    smg_type type = roundings.stored;
    bool partial = roundings.partial && type == SMG_TYPE_F16;
    int *depth = SMG_ARENA_ARRAY(scratch, int, (size_t)g->nodes.count + 1), longest = 0;
    *out_bound = 0;
    if (depth == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < g->nodes.count && type != SMG_TYPE_F32; id++) {
        const smg_node *n = smg_graph_node(g, id);
        for (int k = 0; k < n->operand_count; k++)
            if (depth[n->operand[k]] > depth[id]) depth[id] = depth[n->operand[k]];
        bool stored = smg_node_computes(n) || smg_op_leaf(n->op) == SMG_LEAF_TENSOR;
        depth[id] += stored && smg_type_kind(n->type) == SMG_KIND_FLOAT;
        if (partial && smg_node_class(n) == SMG_CLASS_CONTRACT) depth[id] += PARTIAL_ROUNDINGS;
        if (depth[id] > longest) longest = depth[id];
    }
    if (longest > 0) *out_bound = 4 * smg_type_epsilon(type) * sqrt(longest);
    return SMG_OK;
}
