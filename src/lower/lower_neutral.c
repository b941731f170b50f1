/* Does a slice of a loop change anything where a condition has one value for all of it? The body is run over
 * expressions: each tile has its value before the slice, a number, or something new. Nothing has changed when every
 * tile has its value from before, or is not looked at behind the slice (docs/decisions/0022-slices-left-out.md).
 *
 * What is loaded and computed for the elements that are left out counts as finite, products as PRODUCT_MOST at most.
 * Where values left out are far below those that stay, and each row keeps one, the running maximum ends far above them:
 * exp of the distance is 0. What was added before the maximum rises is multiplied by 0 then; a third run, of the slice
 * in which it rises, shows that. */
#include <math.h>

#include "lower/lower_internal.h"

#define PRODUCT_MOST 0x1p64 /* above it a value's square overflows */
#define FAR 128.0           /* exp(-FAR) is 0 in f32 */
#define MOST_ELEMENTS 4096  /* of a constant that is looked at; not more than SMG_HOST_ELEMENTS */

#define LEAF_OLD (1 << 20) /* + tile: its value before the slice */
#define LEAF_NEW (1 << 21) /* + 2 * number, + 1 of a product: some value of the slice's own */
#define LEAF_LOW (1 << 30) /* the maximum, not risen yet: its start, or of what is left out */
#define LEAF_TOP (LEAF_LOW + 1)

/* One run each: the condition as in elements that stay, to see how low they get; as in those that are left out; once
 * more as in those that stay, with the maximum at its start. */
typedef enum turn { TURN_KEPT, TURN_OUT, TURN_RISE } turn;

typedef struct tile_facts {
    smg_expr now;
    bool finite;  /* counts as finite before the slice */
    bool maximum; /* is started with numbers, and then only rises */
    double start; /* the least of these numbers */
    double kept;  /* a maximum is not below that, where its row has kept an element; -inf */
    bool leans;   /* it is what it is only if the maximum has risen */
    bool must;    /* the last run has to show that what is added before is multiplied away */
    bool wiped;   /* it is */
} tile_facts;

typedef struct neutral {
    lowering *l;
    const lower_slice *slice;
    turn turn;
    tile_facts *tile;
    bool leaning; /* the value at hand */
    int top;      /* the maximum that has to rise; -1 */
    int fresh;
    smg_expr *memo;
    int known; /* expressions in memo */
    const char *why;
} neutral;

static smg_exprs *pool_of(const neutral *n) {
    return n->l->k->exprs;
}

static smg_expr number(const neutral *n, double value) {
    return smg_expr_const(pool_of(n), SMG_KIND_FLOAT, value);
}

static bool is_number(const neutral *n, smg_expr e, double *out_value) {
    const smg_expr_node *node = smg_expr_get(pool_of(n), e);
    *out_value = node->value;
    return node->prim == SMG_PRIM_CONST;
}

static bool equals(const neutral *n, smg_expr e, double value) {
    double own;
    return is_number(n, e, &own) && own >= value && own <= value;
}

static smg_expr old_of(const neutral *n, int tile) {
    return smg_expr_leaf(pool_of(n), smg_tile_kind(&n->l->k->tiles.items[tile]), LEAF_OLD + tile);
}

static bool is_product(const neutral *n, smg_expr e) {
    const smg_expr_node *node = smg_expr_get(pool_of(n), e);
    return node->prim == SMG_PRIM_LEAF && node->leaf >= LEAF_NEW && node->leaf < LEAF_LOW && (node->leaf & 1) != 0;
}

static smg_expr new_of(neutral *n, smg_kind kind, bool product) {
    return smg_expr_leaf(pool_of(n), kind, LEAF_NEW + 2 * n->fresh++ + product);
}

/* The tile whose value before the slice it is; -1. */
static int old_tile(const neutral *n, smg_expr e) {
    const smg_expr_node *node = smg_expr_get(pool_of(n), e);
    return node->prim == SMG_PRIM_LEAF && node->leaf >= LEAF_OLD && node->leaf < LEAF_NEW ? node->leaf - LEAF_OLD : -1;
}

static bool is_leaf(const neutral *n, smg_expr e, int leaf) {
    const smg_expr_node *node = smg_expr_get(pool_of(n), e);
    return node->prim == SMG_PRIM_LEAF && node->leaf == leaf;
}

/* ---- what is known of values ------------------------------------------------------------------------------ */

static bool counts_finite(const neutral *n, smg_expr e) {
    smg_expr_node node = *smg_expr_get(pool_of(n), e);
    switch (node.prim) {
    case SMG_PRIM_CONST: return isfinite(node.value);
    case SMG_PRIM_LEAF: return old_tile(n, e) < 0 || n->tile[old_tile(n, e)].finite;
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB:
    case SMG_PRIM_MUL:
    case SMG_PRIM_NEG:
    case SMG_PRIM_ABS:
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX:
    case SMG_PRIM_EXP:
    case SMG_PRIM_TANH:
    case SMG_PRIM_SIN:
    case SMG_PRIM_COS:
    case SMG_PRIM_SELECT:
    case SMG_PRIM_TO_FLOAT: break;
    default: return false;
    }
    bool finite = true;
    for (int i = node.prim == SMG_PRIM_SELECT; i < smg_prim_arity(node.prim); i++)
        finite = finite && counts_finite(n, node.arg[i]);
    return finite;
}

/* From where to where a value is. */
typedef struct reach {
    double low, high;
} reach;

static const reach anywhere = {-HUGE_VAL, HUGE_VAL};

static reach reach_of(const neutral *n, smg_expr e);

/* Of what a load gives: elements of a small constant, or 0 outside of it. */
static reach load_reach(const lowering *l, const smg_kleaf *leaf) {
    const smg_node *node = smg_graph_node(l->g, l->k->buffers.items[l->k->accesses.items[leaf->index].buffer].value);
    smg_size elements = smg_node_elements(l->g, l->k->buffers.items[l->k->accesses.items[leaf->index].buffer].value);
    const float *data = smg_op_is_constant(node->op) && node->type == SMG_TYPE_F32 ? node->data : NULL;
    int64_t count;
    reach all = {0, 0};
    if (data == NULL || !smg_size_is_const(l->g->sizes, elements, &count) || count > MOST_ELEMENTS) return anywhere;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(data[i])) return anywhere;
        all = (reach){fmin(all.low, data[i]), fmax(all.high, data[i])};
    }
    return all;
}

static reach leaf_reach(const neutral *n, smg_expr e) {
    int leaf = smg_expr_get(pool_of(n), e)->leaf;
    if (is_product(n, e)) return (reach){-PRODUCT_MOST, PRODUCT_MOST};
    bool load = leaf < n->l->k->leaves.count && n->l->k->leaves.items[leaf].what == SMG_KLEAF_LOAD;
    return load ? load_reach(n->l, &n->l->k->leaves.items[leaf]) : anywhere;
}

static reach scaled(const neutral *n, const smg_expr_node *node, bool divides) {
    double by;
    for (int i = divides; i < 2; i++) {
        if (!is_number(n, node->arg[i], &by) || !isfinite(by) || equals(n, node->arg[i], 0)) continue;
        reach x = reach_of(n, node->arg[1 - i]);
        by = divides ? 1 / by : by;
        return by < 0 ? (reach){by * x.high, by * x.low} : (reach){by * x.low, by * x.high};
    }
    return anywhere;
}

static reach reach_of(const neutral *n, smg_expr e) {
    smg_expr_node node = *smg_expr_get(pool_of(n), e);
    reach x, y;
    switch (node.prim) {
    case SMG_PRIM_CONST: return (reach){node.value, node.value};
    case SMG_PRIM_LEAF: return leaf_reach(n, e);
    case SMG_PRIM_TANH: return (reach){-1, 1};
    case SMG_PRIM_NEG: x = reach_of(n, node.arg[0]); return (reach){-x.high, -x.low};
    case SMG_PRIM_MUL:
    case SMG_PRIM_DIV: return scaled(n, &node, node.prim == SMG_PRIM_DIV);
    case SMG_PRIM_ADD:
    case SMG_PRIM_SUB:
    case SMG_PRIM_MIN:
    case SMG_PRIM_MAX: break;
    default: return anywhere;
    }
    x = reach_of(n, node.arg[0]);
    y = reach_of(n, node.arg[1]);
    if (node.prim == SMG_PRIM_ADD) return (reach){x.low + y.low, x.high + y.high};
    if (node.prim == SMG_PRIM_SUB) return (reach){x.low - y.high, x.high - y.low};
    if (node.prim == SMG_PRIM_MIN) return (reach){fmin(x.low, y.low), fmin(x.high, y.high)};
    return (reach){fmax(x.low, y.low), fmax(x.high, y.high)};
}

/* ---- values in the slice ---------------------------------------------------------------------------------- */

/* Is the value far below what the maximum is in the end? */
static bool is_far(const neutral *n, smg_expr value, int tile) {
    const tile_facts *top = &n->tile[tile];
    bool other = n->top >= 0 && n->top != tile;
    return !other && top->maximum && top->start <= top->kept - FAR && reach_of(n, value).high <= top->kept - FAR;
}

/* x - maximum, of which exp is 0. */
static bool falls_away(neutral *n, smg_expr x, smg_expr y) {
    int tile = old_tile(n, y);
    if (n->turn == TURN_RISE) return is_leaf(n, x, LEAF_LOW) && is_leaf(n, y, LEAF_TOP);
    if (n->turn != TURN_OUT || tile < 0 || !is_far(n, x, tile)) return false;
    n->top = tile;
    n->leaning = true;
    return true;
}

static smg_expr difference(neutral *n, const smg_expr x[3]) {
    smg_expr least = number(n, -HUGE_VAL);
    if (x[0] == x[1] && counts_finite(n, x[0])) return number(n, 0);
    if (equals(n, x[0], -HUGE_VAL) && counts_finite(n, x[1])) return least;
    if (falls_away(n, x[0], x[1])) return least;
    if (n->turn == TURN_RISE && falls_away(n, x[1], x[0])) return number(n, HUGE_VAL);
    return smg_expr_make(pool_of(n), SMG_PRIM_SUB, x[0], x[1], SMG_EXPR_NONE);
}

/* Laws that hold because of what is known here, over those that hold always. */
static smg_expr made(neutral *n, smg_prim prim, const smg_expr x[3]) {
    if (prim == SMG_PRIM_SUB && smg_expr_get(pool_of(n), x[0])->kind == SMG_KIND_FLOAT) return difference(n, x);
    for (int i = 0; i < 2; i++) {
        bool infinite = prim == SMG_PRIM_ADD && (equals(n, x[i], -HUGE_VAL) || equals(n, x[i], HUGE_VAL));
        bool none = prim == SMG_PRIM_MUL && equals(n, x[i], 0);
        if ((infinite || none) && counts_finite(n, x[1 - i])) return x[i];
    }
    return smg_expr_make(pool_of(n), prim, x[0], x[1], x[2]);
}

static smg_expr leaf_now(neutral *n, smg_expr e, int leaf) {
    const smg_kleaf *f = &n->l->k->leaves.items[leaf];
    double value;
    if (f->what != SMG_KLEAF_TILE) return e;
    smg_expr now = n->tile[f->index].now;
    n->leaning = n->leaning || n->tile[f->index].leans;
    if (f->pick_count == 0 || is_number(n, now, &value)) return now;
    return new_of(n, f->kind, false);
}

/* The expression's value in the slice; SMG_EXPR_NONE when memory is out. */
static smg_expr evaluate(neutral *n, smg_expr e) {
    if (e == n->slice->condition)
        return smg_expr_const(pool_of(n), SMG_KIND_BOOL, n->slice->value == (n->turn == TURN_OUT));
    if (e < n->known && n->memo[e] != SMG_EXPR_NONE) return n->memo[e];
    smg_expr_node node = *smg_expr_get(pool_of(n), e);
    smg_expr x[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE}, value = e;
    for (int i = 0; i < smg_prim_arity(node.prim); i++) {
        x[i] = evaluate(n, node.arg[i]);
        if (x[i] == SMG_EXPR_NONE) return SMG_EXPR_NONE;
    }
    if (node.prim == SMG_PRIM_LEAF)
        value = leaf_now(n, e, node.leaf);
    else if (node.prim != SMG_PRIM_CONST)
        value = made(n, node.prim, x);
    if (e < n->known) n->memo[e] = value;
    return value;
}

static smg_expr value_of(neutral *n, smg_expr e) {
    for (int i = 0; i < n->known; i++) n->memo[i] = SMG_EXPR_NONE;
    n->leaning = false;
    return evaluate(n, e);
}

/* ---- instructions ------------------------------------------------------------------------------------------- */

static void become(neutral *n, int tile, smg_expr value) {
    n->tile[tile].now = value;
    n->tile[tile].leans = n->leaning;
}

/* Something that is not followed. */
static void become_new(neutral *n, int tile, bool product) {
    n->leaning = false;
    become(n, tile, new_of(n, smg_tile_kind(&n->l->k->tiles.items[tile]), product));
}

/* The tile keeps its value; it leans on what was added to it. */
static void stay(neutral *n, int tile, bool leaning) {
    tile_facts *t = &n->tile[tile];
    t->wiped = n->turn == TURN_RISE && equals(n, t->now, 0);
    t->leans = t->leans || leaning;
}

/* The maximum of what there is and the value. */
static void run_maximum(neutral *n, const smg_instr *in, smg_expr value) {
    tile_facts *t = &n->tile[in->dst];
    bool own = t->now == old_of(n, in->dst);
    double v;
    if (n->turn == TURN_KEPT) {
        t->kept = n->slice->keeps ? reach_of(n, value).low : -HUGE_VAL;
        stay(n, in->dst, false);
    } else if (n->turn == TURN_RISE && in->dst == n->top) {
        t->now = smg_expr_leaf(pool_of(n), SMG_KIND_FLOAT, LEAF_TOP);
    } else if (own && t->maximum && is_number(n, value, &v) && v <= t->start) {
        stay(n, in->dst, n->leaning);
    } else if (own && n->turn == TURN_OUT && is_far(n, value, in->dst)) {
        n->top = in->dst;
    } else {
        become_new(n, in->dst, false);
    }
}

static void run_reduce(neutral *n, const smg_instr *in) {
    smg_expr value = value_of(n, in->expr);
    bool nothing = equals(n, value, smg_combine_identity(in->combine));
    if (in->accumulate && (nothing || (n->turn == TURN_RISE && n->tile[in->dst].must)))
        stay(n, in->dst, n->leaning);
    else if (in->accumulate && in->combine == SMG_COMBINE_MAX)
        run_maximum(n, in, value);
    else if (!in->accumulate && nothing)
        become(n, in->dst, value);
    else
        become_new(n, in->dst, false);
}

static void run_product(neutral *n, const smg_instr *in) {
    const smg_tile *a = &n->l->k->tiles.items[in->a], *b = &n->l->k->tiles.items[in->b];
    const tile_facts *x = &n->tile[in->a], *y = &n->tile[in->b];
    bool left = a->residence != SMG_VIEW && equals(n, x->now, 0);
    bool right = b->residence != SMG_VIEW && equals(n, y->now, 0);
    if (left || right || (n->turn == TURN_RISE && n->tile[in->dst].must))
        stay(n, in->dst, (left && x->leans) || (right && y->leans));
    else
        become_new(n, in->dst, true);
}

/* What is put into shared memory is followed where it is 0. */
static void run_copy(neutral *n, int dst, smg_expr value) {
    if (equals(n, value, 0))
        become(n, dst, value);
    else
        become_new(n, dst, false);
}

static void run_instr(neutral *n, const smg_instr *in) {
    switch (in->kind) {
    case SMG_I_SET: become(n, in->dst, value_of(n, in->expr)); break;
    case SMG_I_STAGE: run_copy(n, in->dst, value_of(n, in->expr)); break;
    case SMG_I_SPILL:
        n->leaning = n->tile[in->a].leans;
        run_copy(n, in->dst, n->tile[in->a].now);
        break;
    case SMG_I_REDUCE: run_reduce(n, in); break;
    case SMG_I_MMA: run_product(n, in); break;
    case SMG_I_STORE: n->why = "results are stored in them"; break;
    case SMG_I_BARRIER: break;
    default:
        if (in->dst >= 0) become_new(n, in->dst, false);
        break;
    }
}

static smg_status run(neutral *n, int from, int to);

/* Known, or made of what is. */
static bool is_followed(const neutral *n, smg_expr e) {
    const smg_expr_node *node = smg_expr_get(pool_of(n), e);
    return node->prim != SMG_PRIM_LEAF || node->leaf < LEAF_NEW || node->leaf >= LEAF_LOW;
}

/* What a step of an inner loop changes is something new from the first step on. */
static smg_status run_loop(neutral *n, int loop, int end) {
    int tiles = n->l->k->tiles.count;
    smg_expr *before = SMG_ARENA_ARRAY(n->l->arena, smg_expr, (size_t)tiles + 1);
    if (before == NULL) return SMG_MEMORY;
    for (bool steady = false; !steady && n->why == NULL;) {
        steady = true;
        for (int t = 0; t < tiles; t++) before[t] = n->tile[t].now;
        SMG_TRY(run(n, loop + 1, end));
        for (int t = 0; t < tiles; t++) {
            if (before[t] == n->tile[t].now) continue;
            steady = steady && !is_followed(n, before[t]);
            become_new(n, t, is_product(n, n->tile[t].now));
        }
    }
    return SMG_OK;
}

static smg_status run(neutral *n, int from, int to) {
    for (int at = from; at < to && n->why == NULL; at++) {
        const smg_instr *in = &n->l->k->code.items[at];
        if (in->kind == SMG_I_LOOP) {
            int end = smg_kernel_loop_end(n->l->k, at);
            SMG_TRY(run_loop(n, at, end));
            at = end;
            continue;
        }
        run_instr(n, in);
        if (in->dst >= 0 && n->tile[in->dst].now == SMG_EXPR_NONE) return SMG_MEMORY;
    }
    return smg_context_status(n->l->ctx);
}

/* ---- before and behind the slice ---------------------------------------------------------------------------- */

typedef struct reads {
    const lowering *l;
    int tile;
    bool found;
} reads;

static void seek_tile(void *user, int leaf) {
    reads *r = user;
    const smg_kleaf *f = &r->l->k->leaves.items[leaf];
    r->found = r->found || (f->what == SMG_KLEAF_TILE && f->index == r->tile);
}

static bool is_read(const lowering *l, const smg_instr *in, int tile) {
    reads r = {.l = l, .tile = tile};
    bool adds = in->kind == SMG_I_MMA || in->kind == SMG_I_JOIN || (in->kind == SMG_I_REDUCE && in->accumulate);
    if (in->expr != SMG_EXPR_NONE) smg_kernel_leaves(l->k, in->expr, seek_tile, &r);
    if (in->kind == SMG_I_STORE && l->k->accesses.items[in->a].index != SMG_EXPR_NONE)
        smg_kernel_leaves(l->k, l->k->accesses.items[in->a].index, seek_tile, &r);
    bool operand = (smg_instr_reads_a(in) && in->a == tile) || (in->kind == SMG_I_MMA && in->b == tile);
    return r.found || operand || (adds && in->dst == tile);
}

/* What writes of the tile, wherever they are, say of it. */
static void learn(neutral *n, int tile) {
    const smg_kernel *k = n->l->k;
    double value, least = HUGE_VAL;
    bool finite = true, rises = true;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->dst != tile) continue;
        bool start = in->kind == SMG_I_SET && is_number(n, in->expr, &value);
        bool more = in->kind == SMG_I_REDUCE && in->accumulate;
        bool update = in->kind == SMG_I_SET && is_read(n->l, in, tile);
        if (start && value < least) least = value;
        finite =
            finite && (more || update || in->kind == SMG_I_MMA || in->kind == SMG_I_JOIN || (start && isfinite(value)));
        bool most = (more || in->kind == SMG_I_JOIN) && in->combine == SMG_COMBINE_MAX;
        rises = rises && (start || most);
    }
    n->tile[tile] =
        (tile_facts){.finite = finite, .maximum = rises && least < HUGE_VAL, .start = least, .kept = -HUGE_VAL};
}

/* Is the tile written before it is read, from `from` on? */
static bool written_first(const lowering *l, int from, int to, int tile) {
    for (int i = from; i < to; i++) {
        if (is_read(l, &l->k->code.items[i], tile)) return false;
        if (l->k->code.items[i].dst == tile) return true;
    }
    return true;
}

/* Nobody behind the slice reads it: not the next one, not what comes after the loop, or before it in an outer one. */
static bool forgotten(const neutral *n, int tile) {
    int count = n->l->k->code.count;
    bool inside = smg_kernel_loop_around(n->l->k, n->slice->begin) >= 0;
    if (!written_first(n->l, n->slice->begin + 1, n->slice->end, tile)) return false;
    for (int i = 0; inside && i < count; i++)
        if ((i < n->slice->begin || i > n->slice->end) && is_read(n->l, &n->l->k->code.items[i], tile)) return false;
    return written_first(n->l, n->slice->end + 1, count, tile);
}

static void compare(neutral *n) {
    for (int t = 0; t < n->l->k->tiles.count && n->why == NULL; t++) {
        if (n->tile[t].now == old_of(n, t) || forgotten(n, t)) continue;
        n->why = smg_arena_format(n->l->arena, "nothing proves that '%s' stays as it is", n->l->k->tiles.items[t].name);
    }
}

static smg_status take_turn(neutral *n, turn which) {
    n->turn = which;
    for (int t = 0; t < n->l->k->tiles.count; t++) {
        bool low = which == TURN_RISE && t == n->top;
        n->tile[t].must = which == TURN_RISE && n->tile[t].leans && !forgotten(n, t);
        n->tile[t].leans = n->tile[t].wiped = false;
        n->tile[t].now = low ? smg_expr_leaf(pool_of(n), SMG_KIND_FLOAT, LEAF_LOW) : old_of(n, t);
    }
    return run(n, n->slice->begin + 1, n->slice->end);
}

smg_status lower_neutral(lowering *l, const lower_slice *slice, const char **out_why) {
    size_t known = (size_t)smg_expr_count(l->k->exprs);
    neutral n = {.l = l, .slice = slice, .top = -1, .known = (int)known};
    n.tile = SMG_ARENA_ARRAY(l->arena, tile_facts, (size_t)l->k->tiles.count + 1);
    n.memo = SMG_ARENA_ARRAY(l->arena, smg_expr, known + 1);
    if (n.tile == NULL || n.memo == NULL) return SMG_MEMORY;
    for (int t = 0; t < l->k->tiles.count; t++) learn(&n, t);
    SMG_TRY(take_turn(&n, TURN_KEPT));
    SMG_TRY(take_turn(&n, TURN_OUT));
    compare(&n);
    if (n.why == NULL && n.top >= 0) SMG_TRY(take_turn(&n, TURN_RISE));
    for (int t = 0; t < l->k->tiles.count && n.why == NULL; t++)
        if (n.tile[t].must && !n.tile[t].wiped)
            n.why = smg_arena_format(l->arena, "'%s' keeps what is added before the maximum rises",
                                     l->k->tiles.items[t].name);
    *out_why = n.why;
    return smg_context_status(l->ctx);
}
