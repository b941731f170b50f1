/* Loop bounds. A condition over positions (not behind a row, not too far before it, in its block) holds in a part of a
 * loop's axis only. Where it fails for a whole slice and the slice then provably changes nothing (lower_neutral.c), the
 * loop does not go there: its range is solved from the condition, for the axis's coordinate. Nothing here knows what a
 * mask is: any condition that some value hangs on is tried, where it fails and where it holds. */
#include "lower/lower_internal.h"

#define CONDITIONS 16 /* of a loop; further ones bound nothing */
#define ENDS 4        /* of one condition at either side */

/* Where along an axis a condition holds: from each of `low` on, before each of `high`. */
typedef struct span {
    smg_expr low[ENDS], high[ENDS];
    int lows, highs;
    bool exact; /* and nowhere else */
} span;

typedef struct solver {
    lowering *l;
    int axis;
} solver;

/* ---- arithmetic of bounds ------------------------------------------------------------------------------ */

static smg_expr make(const solver *v, smg_prim prim, smg_expr x, smg_expr y) {
    return smg_expr_make(v->l->k->exprs, prim, x, y, SMG_EXPR_NONE);
}

static smg_expr number(const solver *v, double value) {
    return smg_expr_const(v->l->k->exprs, SMG_KIND_INT, value);
}

static bool moves(const solver *v, smg_expr expr) {
    return (lower_expr_axes(v->l, expr) & SMG_AXIS_BIT(v->axis)) != 0;
}

static bool is_number(const solver *v, smg_expr expr, double *out_value) {
    const smg_expr_node *n = smg_expr_get(v->l->k->exprs, expr);
    *out_value = n->value;
    return n->prim == SMG_PRIM_CONST && n->kind == SMG_KIND_INT;
}

/* x + by, with one number where x has one. */
static smg_expr plus(const solver *v, smg_expr x, double by) {
    smg_expr_node n = *smg_expr_get(v->l->k->exprs, x);
    double own;
    bool sum = n.prim == SMG_PRIM_ADD || n.prim == SMG_PRIM_SUB;
    if (!sum || !is_number(v, n.arg[1], &own)) return make(v, SMG_PRIM_ADD, x, number(v, by));
    return make(v, SMG_PRIM_ADD, n.arg[0], number(v, by + (n.prim == SMG_PRIM_ADD ? own : -own)));
}

static void add_end(span *io, smg_expr bound, bool upper) {
    int *count = upper ? &io->highs : &io->lows;
    if (*count == ENDS || bound == SMG_EXPR_NONE) {
        io->exact = false;
        return;
    }
    (upper ? io->high : io->low)[(*count)++] = bound;
}

/* ---- conditions solved for the axis -------------------------------------------------------------------- */

static void isolate(solver *v, smg_expr expr, smg_expr bound, bool upper, span *io);

/* rest - u < bound is u >= rest - bound + 1, and the other way round. */
static void isolate_negated(solver *v, smg_expr u, smg_expr rest, smg_expr bound, bool upper, span *io) {
    isolate(v, u, plus(v, make(v, SMG_PRIM_SUB, rest, bound), 1), !upper, io);
}

/* The rest of a sum of coordinates, without the axis. */
static smg_expr rest_of(solver *v, const smg_access *sum, int without) {
    lowering *l = v->l;
    smg_access *rest = SMG_ARRAY_PUSH(l->arena, &l->k->accesses);
    if (rest == NULL) return SMG_EXPR_NONE;
    *rest = *sum;
    rest->axis_count--;
    for (int i = without; i < rest->axis_count; i++) {
        rest->axis[i] = rest->axis[i + 1];
        rest->stride[i] = rest->stride[i + 1];
    }
    int id = lower_leaf_of_last(l, (smg_kleaf){.what = SMG_KLEAF_IOTA, .kind = SMG_KIND_INT});
    return id >= 0 ? smg_expr_leaf(l->k->exprs, SMG_KIND_INT, id) : SMG_EXPR_NONE;
}

static void isolate_sum(solver *v, const smg_kleaf *leaf, smg_expr bound, bool upper, span *io) {
    smg_access sum = v->l->k->accesses.items[leaf->what == SMG_KLEAF_IOTA ? leaf->index : 0];
    int64_t by = 0;
    int at = 0;
    while (at < sum.axis_count && sum.axis[at] != v->axis) at++;
    bool known = leaf->what == SMG_KLEAF_IOTA && at < sum.axis_count &&
                 smg_size_is_const(v->l->g->sizes, sum.stride[at], &by) && (by == 1 || by == -1);
    if (!known) {
        io->exact = false;
        return;
    }
    bool alone = sum.axis_count == 1 && sum.offset == SMG_SIZE_ZERO;
    smg_expr rest = alone ? number(v, 0) : rest_of(v, &sum, at);
    if (by < 0)
        add_end(io, plus(v, make(v, SMG_PRIM_SUB, rest, bound), 1), !upper);
    else
        add_end(io, alone ? bound : make(v, SMG_PRIM_SUB, bound, rest), upper);
}

/* A sum of coordinates none of which counts down. */
static bool no_negative(const solver *v, smg_expr expr) {
    const smg_kernel *k = v->l->k;
    const smg_expr_node *n = smg_expr_get(k->exprs, expr);
    const smg_kleaf *leaf = n->prim == SMG_PRIM_LEAF ? &k->leaves.items[n->leaf] : NULL;
    if (leaf == NULL || leaf->what != SMG_KLEAF_IOTA) return false;
    const smg_access *sum = &k->accesses.items[leaf->index];
    bool none = smg_kernel_stride_sign(k, sum->offset) > 0;
    for (int i = 0; i < sum->axis_count; i++) none = none && smg_kernel_stride_sign(k, sum->stride[i]) > 0;
    return none;
}

/* u * by; u / by with the quotient cut off. Of what does not come out even a place too many is kept. */
static void isolate_scaled(solver *v, const smg_expr_node *n, smg_expr bound, bool upper, span *io) {
    double by;
    if (!is_number(v, n->arg[1], &by) || by < 1) {
        io->exact = false;
    } else if (n->prim == SMG_PRIM_MUL) {
        smg_expr part = make(v, SMG_PRIM_DIV, bound, n->arg[1]);
        io->exact = false;
        isolate(v, n->arg[0], upper ? plus(v, part, 1) : part, upper, io);
    } else if (no_negative(v, n->arg[0])) {
        isolate(v, n->arg[0], make(v, SMG_PRIM_MUL, bound, n->arg[1]), upper, io);
    } else {
        io->exact = false;
    }
}

/* expr < bound (upper), or expr >= bound, where the expression moves along the axis and the bound does not. */
static void isolate(solver *v, smg_expr expr, smg_expr bound, bool upper, span *io) {
    smg_expr_node n = *smg_expr_get(v->l->k->exprs, expr);
    bool first = smg_prim_arity(n.prim) > 0 && moves(v, n.arg[0]);
    bool second = smg_prim_arity(n.prim) > 1 && moves(v, n.arg[1]);
    smg_prim prim = first && second ? SMG_PRIM_CONST : n.prim; /* on both sides: not solved */
    switch (prim) {
    case SMG_PRIM_LEAF: isolate_sum(v, &v->l->k->leaves.items[n.leaf], bound, upper, io); return;
    case SMG_PRIM_ADD: isolate(v, n.arg[second], make(v, SMG_PRIM_SUB, bound, n.arg[!second]), upper, io); return;
    case SMG_PRIM_SUB:
        if (second)
            isolate_negated(v, n.arg[1], n.arg[0], bound, upper, io);
        else
            isolate(v, n.arg[0], make(v, SMG_PRIM_ADD, bound, n.arg[1]), upper, io);
        return;
    case SMG_PRIM_NEG: isolate_negated(v, n.arg[0], number(v, 0), bound, upper, io); return;
    case SMG_PRIM_MUL:
    case SMG_PRIM_DIV:
        if (!second) {
            isolate_scaled(v, &n, bound, upper, io);
            return;
        }
        break;
    default: break;
    }
    io->exact = false;
}

/* x < y, or x <= y. */
static void solve_order(solver *v, smg_expr x, smg_expr y, bool less, span *io) {
    bool left = moves(v, x), right = moves(v, y);
    if (left == right || smg_expr_get(v->l->k->exprs, x)->kind != SMG_KIND_INT)
        io->exact = false;
    else if (left)
        isolate(v, x, less ? y : plus(v, y, 1), true, io);
    else
        isolate(v, y, less ? plus(v, x, 1) : x, false, io);
}

static smg_expr folded(const solver *v, const smg_expr *ends, int count, smg_prim prim) {
    smg_expr all = count > 0 ? ends[0] : SMG_EXPR_NONE;
    for (int i = 1; i < count; i++) all = make(v, prim, all, ends[i]);
    return all;
}

static void solve(solver *v, smg_expr condition, bool want, span *io);

/* Either of two conditions: from the lesser begin to the greater end. */
static void solve_either(solver *v, const smg_expr_node *n, bool want, span *io) {
    span s[2] = {{.exact = true}, {.exact = true}};
    io->exact = false;
    for (int i = 0; i < 2; i++) solve(v, n->arg[i], want, &s[i]);
    if (s[0].lows > 0 && s[1].lows > 0)
        add_end(io,
                make(v, SMG_PRIM_MIN, folded(v, s[0].low, s[0].lows, SMG_PRIM_MAX),
                     folded(v, s[1].low, s[1].lows, SMG_PRIM_MAX)),
                false);
    if (s[0].highs > 0 && s[1].highs > 0)
        add_end(io,
                make(v, SMG_PRIM_MAX, folded(v, s[0].high, s[0].highs, SMG_PRIM_MIN),
                     folded(v, s[1].high, s[1].highs, SMG_PRIM_MIN)),
                true);
}

/* Narrows the span to where the condition is `want`. */
static void solve(solver *v, smg_expr condition, bool want, span *io) {
    smg_expr_node n = *smg_expr_get(v->l->k->exprs, condition);
    switch (n.prim) {
    case SMG_PRIM_NOT: solve(v, n.arg[0], !want, io); return;
    case SMG_PRIM_AND:
    case SMG_PRIM_OR:
        if ((n.prim == SMG_PRIM_AND) != want) {
            solve_either(v, &n, want, io);
            return;
        }
        solve(v, n.arg[0], want, io);
        solve(v, n.arg[1], want, io);
        return;
    case SMG_PRIM_LT:
    case SMG_PRIM_LE:
        if (want)
            solve_order(v, n.arg[0], n.arg[1], n.prim == SMG_PRIM_LT, io);
        else
            solve_order(v, n.arg[1], n.arg[0], n.prim == SMG_PRIM_LE, io);
        return;
    case SMG_PRIM_EQ:
        io->exact = io->exact && want;
        if (!want) return;
        solve_order(v, n.arg[0], n.arg[1], false, io);
        solve_order(v, n.arg[1], n.arg[0], false, io);
        return;
    default: io->exact = false; return;
    }
}

/* ---- does each row have an element where the condition holds? ------------------------------------------- */

/* x < y for all rows? */
static bool always_less(const solver *v, smg_expr x, smg_expr y) {
    const smg_affine_scope scope = lower_scope(v->l->k);
    smg_expr less = make(v, SMG_PRIM_LT, x, y);
    if (less == SMG_EXPR_NONE) return false;
    smg_affine_value truth = lower_known(v->l->k, less);
    return smg_affine_decision(&scope, &truth) > 0 && truth.cut_count == 0;
}

static smg_expr extent_value(solver *v) {
    smg_size extent = v->l->k->axes.items[v->axis].extent;
    int64_t value;
    if (smg_size_is_const(v->l->g->sizes, extent, &value)) return number(v, (double)value);
    int id = lower_new_leaf(v->l, (smg_kleaf){.what = SMG_KLEAF_SIZE, .kind = SMG_KIND_INT, .size = extent}, -1);
    return id >= 0 ? smg_expr_leaf(v->l->k->exprs, SMG_KIND_INT, id) : SMG_EXPR_NONE;
}

static smg_expr lesser(const solver *v, smg_expr x, smg_expr y) {
    return x == SMG_EXPR_NONE ? y : make(v, SMG_PRIM_MIN, x, y);
}

/* A begin before each end leaves an element, as all of them are whole numbers. *out_spare: where that is not known, an
 * expression that is above 0 in rows that keep one; else SMG_EXPR_NONE. */
static bool keeps(solver *v, smg_expr condition, bool want, smg_expr *out_spare) {
    smg_expr_node n = *smg_expr_get(v->l->k->exprs, condition);
    *out_spare = SMG_EXPR_NONE;
    if (n.prim == SMG_PRIM_NOT) return keeps(v, n.arg[0], !want, out_spare);
    if (n.prim == (want ? SMG_PRIM_OR : SMG_PRIM_AND)) {
        smg_expr spare[2];
        bool kept[2] = {keeps(v, n.arg[0], want, &spare[0]), keeps(v, n.arg[1], want, &spare[1])};
        bool second = !kept[0] || (kept[1] && spare[1] == SMG_EXPR_NONE);
        *out_spare = spare[second];
        return kept[second];
    }
    span s = {.exact = true};
    solve(v, condition, want, &s);
    add_end(&s, number(v, 0), false);
    add_end(&s, extent_value(v), true);
    for (int i = 0; i < s.lows && s.exact; i++)
        for (int j = 0; j < s.highs; j++)
            if (!always_less(v, s.low[i], s.high[j]))
                *out_spare = lesser(v, *out_spare, make(v, SMG_PRIM_SUB, s.high[j], s.low[i]));
    return s.exact;
}

/* ---- loops ------------------------------------------------------------------------------------------------ */

typedef struct conditions {
    const lowering *l;
    int count;
    smg_expr items[CONDITIONS];
    bool *seen; /* by expression */
} conditions;

/* Truths that something else than a truth is made of. */
static void collect(conditions *c, smg_expr expr, bool within) {
    smg_expr_node n = *smg_expr_get(c->l->k->exprs, expr);
    bool truth = n.kind == SMG_KIND_BOOL;
    if (truth && !within && n.prim != SMG_PRIM_CONST && n.prim != SMG_PRIM_LEAF && c->count < CONDITIONS) {
        bool known = false;
        for (int i = 0; i < c->count; i++) known = known || c->items[i] == expr;
        if (!known) c->items[c->count++] = expr;
    }
    if (c->seen[expr]) return;
    c->seen[expr] = true;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) collect(c, n.arg[i], truth);
}

/* Axes whose place is known in front of the loop. */
static smg_axis_set placed(const lowering *l, int loop) {
    const smg_kernel *k = l->k;
    smg_axis_set set = 0;
    for (int a = 0; a < k->axes.count; a++) {
        int64_t low, high;
        smg_size_bounds(k->sizes, k->axes.items[a].extent, &low, &high);
        if (k->axes.items[a].grid || high <= k->axes.items[a].tile) set |= SMG_AXIS_BIT(a);
    }
    for (int i = 0; i < loop; i++)
        if (k->code.items[i].kind == SMG_I_LOOP && smg_kernel_loop_end(k, i) > loop)
            set |= SMG_AXIS_BIT(k->code.items[i].axes[0]);
    return set & ~SMG_AXIS_BIT(k->code.items[loop].axes[0]);
}

/* How often memory is read. */
static int loads_in(const lowering *l, smg_expr expr) {
    smg_expr_node n = *smg_expr_get(l->k->exprs, expr);
    int count = n.prim == SMG_PRIM_LEAF && l->k->leaves.items[n.leaf].what == SMG_KLEAF_LOAD;
    for (int i = 0; i < smg_prim_arity(n.prim); i++) count += loads_in(l, n.arg[i]);
    return count;
}

static bool is_told(const lowering *l, int loop, smg_expr bound) {
    return smg_kernel_bound_wrong(l->k, bound) == NULL && !(lower_expr_axes(l, bound) & ~placed(l, loop));
}

/* What memory says counts as a number that no coordinate reaches where it is none: true of one such number, not of the
 * sum of two. */
bool lower_tellable(const lowering *l, int loop, smg_expr bound) {
    return is_told(l, loop, bound) && loads_in(l, bound) <= 1;
}

static int keep_some(const lowering *l, int loop, smg_expr *io_ends, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (lower_tellable(l, loop, io_ends[i])) io_ends[kept++] = io_ends[i];
    return kept;
}

/* Drops the bounds that cannot be told; false: none is left. */
static bool keep_tellable(const lowering *l, int loop, span *io) {
    io->lows = keep_some(l, loop, io->low, io->lows);
    io->highs = keep_some(l, loop, io->high, io->highs);
    return io->lows + io->highs > 0;
}

/* Coordinates by the names of their axes. */
static void name_leaf(void *user, int leaf, smg_text *text) {
    const lowering *l = user;
    const smg_kleaf *f = &l->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_SIZE) smg_size_print(l->k->sizes, f->size, text);
    if (f->what == SMG_KLEAF_LOAD) smg_text_add(text, l->k->buffers.items[l->k->accesses.items[f->index].buffer].name);
    if (f->what != SMG_KLEAF_IOTA) return;
    const smg_access *sum = &l->k->accesses.items[f->index];
    for (int i = 0; i < sum->axis_count; i++) {
        if (i > 0) smg_text_add(text, " + ");
        if (!smg_size_is_one(l->k->sizes, sum->stride[i])) {
            smg_size_print(l->k->sizes, sum->stride[i], text);
            smg_text_add(text, "*");
        }
        smg_text_add(text, l->k->axes.items[sum->axis[i]].name);
    }
    if (sum->offset == SMG_SIZE_ZERO) return;
    smg_text_add(text, " + ");
    smg_size_print(l->k->sizes, sum->offset, text);
}

/* asks: all of the axis is run where a row keeps nothing. */
static void tell_bounds(const lowering *l, int axis, const smg_krange *range, bool asks, const char *why) {
    const smg_expr bound[] = {range->from, range->to};
    static const char *const words[] = {" from ", " to "};
    if (l->why == NULL) return;
    smg_text_addf(l->why, "%s: %s", l->k->axes.items[axis].name, why == NULL ? "only" : "not only");
    for (size_t i = 0; i < SMG_COUNT_OF(bound); i++) {
        if (bound[i] == SMG_EXPR_NONE) continue;
        smg_text_add(l->why, words[i]);
        smg_expr_print(l->k->exprs, bound[i], l->why, name_leaf, (void *)(uintptr_t)l);
    }
    if (why != NULL) smg_text_addf(l->why, ", because %s\n", why);
    if (why == NULL)
        smg_text_addf(l->why, ", elsewhere nothing changes%s\n", asks ? " unless a row keeps nothing" : "");
}

void lower_tell_needed(const lowering *l, int loop, smg_expr condition, bool value) {
    if (l->why == NULL) return;
    smg_text_addf(l->why, "%s: not at all in blocks where ", l->k->axes.items[l->k->code.items[loop].axes[0]].name);
    smg_expr_print(l->k->exprs, condition, l->why, name_leaf, (void *)(uintptr_t)l);
    smg_text_addf(l->why, " %s, nothing reads it there\n", value ? "holds" : "fails");
}

static void narrow(const solver *v, smg_expr *io, smg_expr bound, smg_prim prim) {
    if (bound != SMG_EXPR_NONE) *io = *io == SMG_EXPR_NONE || *io == bound ? bound : make(v, prim, *io, bound);
}

/* The range holds only where `spare` is above 0 in all rows of the workgroup: else it is the whole axis. Bounds take
 * the least or the greatest of each part by itself, so that `all` is 1 only there. */
static smg_krange guarded(const solver *v, smg_krange own, smg_expr spare) {
    smg_expr most = number(v, INT32_MAX);
    smg_expr all = make(v, SMG_PRIM_MIN, make(v, SMG_PRIM_MAX, spare, number(v, 0)), number(v, 1));
    smg_expr some = make(v, SMG_PRIM_SUB, number(v, 1), all);
    if (own.from != SMG_EXPR_NONE) own.from = make(v, SMG_PRIM_MIN, own.from, make(v, SMG_PRIM_MUL, all, most));
    if (own.to != SMG_EXPR_NONE) own.to = make(v, SMG_PRIM_MAX, own.to, make(v, SMG_PRIM_MUL, some, most));
    return own;
}

/* Does a slice change nothing where the condition is `value`? *io_spare: what has to be above 0 for that, in rows that
 * keep an element; becomes SMG_EXPR_NONE where it is not needed. */
static smg_status prove(lowering *l, lower_slice *slice, smg_expr *io_spare, const char **out_why) {
    bool kept = slice->keeps;
    slice->keeps = kept && *io_spare == SMG_EXPR_NONE;
    SMG_TRY(lower_neutral(l, slice, out_why));
    if (*out_why == NULL || !kept || slice->keeps) {
        *io_spare = SMG_EXPR_NONE;
        return SMG_OK;
    }
    slice->keeps = true;
    return lower_neutral(l, slice, out_why);
}

/* Narrows the loop to where the condition is not `value`, if nothing changes where it is. */
static smg_status try_condition(solver *v, lower_slice slice, smg_krange *io, bool *out_narrowed) {
    lowering *l = v->l;
    int accesses = l->k->accesses.count, leaves = l->k->leaves.count;
    span s = {.exact = true};
    const char *why = NULL;
    smg_expr spare;
    solve(v, slice.condition, !slice.value, &s);
    bool found = keep_tellable(l, slice.begin, &s);
    if (found) {
        slice.keeps = keeps(v, slice.condition, !slice.value, &spare);
        slice.keeps = slice.keeps && (spare == SMG_EXPR_NONE || is_told(l, slice.begin, spare));
        SMG_TRY(prove(l, &slice, &spare, &why));
        smg_krange own = {folded(v, s.low, s.lows, SMG_PRIM_MAX), folded(v, s.high, s.highs, SMG_PRIM_MIN)};
        bool asks = why == NULL && spare != SMG_EXPR_NONE;
        if (why == NULL || !slice.value) tell_bounds(l, v->axis, &own, asks, why);
        if (asks) own = guarded(v, own, spare);
        if (why == NULL) narrow(v, &io->from, own.from, SMG_PRIM_MAX);
        if (why == NULL) narrow(v, &io->to, own.to, SMG_PRIM_MIN);
    }
    *out_narrowed = found && why == NULL;
    if (!*out_narrowed) {
        l->k->accesses.count = accesses;
        l->k->leaves.count = l->leaf_node.count = leaves;
    }
    return smg_context_status(l->ctx);
}

/* No step where nobody reads what the loop leaves behind. */
static smg_status skip_blocks(const solver *v, int loop, smg_expr *io_end) {
    lowering *l = v->l;
    conditions c = {.l = l, .seen = SMG_ARENA_ARRAY(l->arena, bool, (size_t)smg_expr_count(l->k->exprs) + 1)};
    if (c.seen == NULL) return SMG_MEMORY;
    for (int i = smg_kernel_loop_end(l->k, loop); i < l->k->code.count; i++)
        if (l->k->code.items[i].expr != SMG_EXPR_NONE) collect(&c, l->k->code.items[i].expr, false);
    return lower_needed(l, loop, c.items, c.count, io_end);
}

static smg_status bound_loop(lowering *l, int loop) {
    solver v = {.l = l, .axis = l->k->code.items[loop].axes[0]};
    int end = smg_kernel_loop_end(l->k, loop);
    smg_krange range = {SMG_EXPR_NONE, SMG_EXPR_NONE};
    conditions c = {.l = l, .seen = SMG_ARENA_ARRAY(l->arena, bool, (size_t)smg_expr_count(l->k->exprs) + 1)};
    if (c.seen == NULL) return SMG_MEMORY;
    for (int i = loop; i < end; i++)
        if (l->k->code.items[i].expr != SMG_EXPR_NONE) collect(&c, l->k->code.items[i].expr, false);
    for (int i = 0; i < c.count; i++) {
        lower_slice slice = {.begin = loop, .end = end, .condition = c.items[i]};
        bool narrowed = !moves(&v, slice.condition);
        for (int value = 0; value < 2 && !narrowed; value++) {
            slice.value = value != 0;
            SMG_TRY(try_condition(&v, slice, &range, &narrowed));
        }
    }
    SMG_TRY(skip_blocks(&v, loop, &range.to));
    if (range.from == SMG_EXPR_NONE && range.to == SMG_EXPR_NONE) return SMG_OK;
    smg_krange *kept = SMG_ARENA_NEW(l->arena, smg_krange);
    if (kept == NULL) return SMG_MEMORY;
    *kept = range;
    l->k->code.items[loop].range = kept;
    return SMG_OK;
}

/* Does the bound rise with the axis (1), or fall (-1)? 0: neither, or both. */
static int rises_with(const smg_kernel *k, smg_expr bound, int axis) {
    smg_expr_node n = *smg_expr_get(k->exprs, bound);
    int sign = 0;
    if (n.prim == SMG_PRIM_LEAF && k->leaves.items[n.leaf].what == SMG_KLEAF_IOTA) {
        const smg_access *sum = &k->accesses.items[k->leaves.items[n.leaf].index];
        for (int i = 0; i < sum->axis_count; i++)
            if (sum->axis[i] == axis) sign = smg_kernel_stride_sign(k, sum->stride[i]);
        return sign;
    }
    for (int i = 0; i < smg_prim_arity(n.prim); i++) {
        int of = rises_with(k, n.arg[i], axis);
        if (smg_kernel_bound_falls(k, &n, i)) of = -of;
        if (sign != 0 && of != 0 && of != sign) return 0;
        if (of != 0) sign = of;
    }
    return sign;
}

/* The longest blocks of all heads before the next ones of any. On cores that switch between lanes it is worth more than
 * what neighbours find in the caches: masks of 12 heads and 1024 rows 140 us to 104, of 128 heads 639 to 595
 * (bench/NOTES.md). */
static void put_slowest(smg_kernel *k, int at) {
    int axis = k->grid.items[at];
    memmove(&k->grid.items[1], &k->grid.items[0], (size_t)at * sizeof axis);
    k->grid.items[0] = axis;
}

/* Blocks whose loops are long come first, and short ones fill up the cores at the end: where a loop's end rises along
 * the grid, and its begin does not, the grid starts from its end. */
static void order_grid(lowering *l, const smg_krange *range) {
    for (int g = 0; g < l->k->grid.count; g++) {
        int axis = l->k->grid.items[g];
        bool begins = range->from != SMG_EXPR_NONE && (lower_expr_axes(l, range->from) & SMG_AXIS_BIT(axis)) != 0;
        if (range->to == SMG_EXPR_NONE || begins || rises_with(l->k, range->to, axis) <= 0) continue;
        l->k->axes.items[axis].back = true;
        if (l->target != NULL && smg_target_switches_lanes(l->target)) put_slowest(l->k, g);
    }
}

smg_status lower_bounds(lowering *l) {
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind != SMG_I_LOOP) continue;
        SMG_TRY(bound_loop(l, i));
        if (in->range != NULL) order_grid(l, in->range);
    }
    return SMG_OK;
}
