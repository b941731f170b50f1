/* Where masks that are data begin and end. A softmax over scores with a mask that tensors of the run decide (padding)
 * computes all keys: nothing is known of the mask before it is there. So its ends are computed first, by a kernel of
 * their own, once for all that read the mask: the first key that a row keeps, and behind the last one. Other keys are
 * -inf, which changes no value (their exponentials are 0 in any case), and lets loops over keys go from the one to the
 * other (docs/decisions/0026-ends-of-masks.md).
 *
 * Not how a mask is written counts, but what it does: a term T of the scores S + T without an axis of rows. Where T is
 * below OUT, a score is below all scores whose T is above KEPT. A row without any of those keeps all keys. Between
 * them T decides nothing; such keys stay. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

#define OUT (-0x1p100)      /* terms of keys that are left out are not above it */
#define KEPT (-0x1p64)      /* one key of each row that has an end has a term not below it */
#define FAR 128.0           /* exp(-FAR) is 0 in f32 */
#define PRODUCT_MOST 0x1p64 /* a product of more has been without meaning for long: its square overflows */
#define INTEGER_MOST 0x1p31
#define MOST_ELEMENTS 4096 /* of a constant that is looked at; not more than SMG_HOST_ELEMENTS */
#define LEAST_KEYS 64      /* a loop over fewer has little to leave out */
#define DEEPEST 64         /* operands of operands that are looked at */

/* From where to where a value is. */
typedef struct reach {
    double low, high;
} reach;

static const reach anywhere = {-HUGE_VAL, HUGE_VAL};

/* The mask of a softmax: a term, or the truth of a choice between something and a number. Old ids, -1: not that. */
typedef struct mask {
    smg_node_id term, truth;
    double otherwise; /* the term where the truth is false; 0 where it is true */
    reach rest;       /* what else scores are made of */
    int added;        /* the scores' operand that the mask is, where it is added last; -1 */
} mask;

typedef struct made_end {
    mask of;
    int axis, rank;                /* of the scores */
    smg_node_id at, first, behind; /* positions of keys; the first that is kept; one behind the last */
} made_end;

typedef struct ends {
    smg_graph *g;
    smg_exprs *exprs;
    const smg_node *old;
    int count;
    bool *given, *counted; /* per old node: an input decides it; positions do */
    int *readers;          /* per old node, outputs too */
    smg_node_id *now;      /* old id -> new id */
    smg_node_id *ended;    /* old id of scores -> new id of those with an end; -1 */
    bool *takes_ended;     /* per old node: it reads the scores with an end */
    smg_node_id *shares;   /* per old node: the scores whose exponentials it computes, where they get an end; -1 */
    bool unread;           /* rows outside of the ends of their own mask may have any value */
    SMG_ARRAY(made_end) made;
    int weak; /* masks that leave nothing out, whatever they are */
} ends;

static const smg_node *operand(const ends *e, const smg_node *n, int k) {
    return &e->old[n->operand[k]];
}

static bool is_number(const smg_node *n, double *out_value) {
    *out_value = n->value;
    return smg_op_leaf(n->op) == SMG_LEAF_NUMBER;
}

/* What the node computes of its operands, leaves by their number. */
static smg_expr_node formula(const ends *e, const smg_node *n, smg_expr *out_expr) {
    smg_expr leaf[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < n->operand_count; k++)
        leaf[k] = smg_expr_leaf(e->exprs, smg_type_kind(operand(e, n, k)->type), k);
    *out_expr = smg_op_expr(e->exprs, n->op, n->type, leaf);
    return *out_expr != SMG_EXPR_NONE ? *smg_expr_get(e->exprs, *out_expr) : (smg_expr_node){.prim = SMG_PRIM_CONST};
}

/* Is the node one primitive of its operands in their order? */
static bool is_prim(const ends *e, const smg_node *n, smg_prim prim) {
    smg_expr expr;
    if (smg_node_class(n) != SMG_CLASS_MAP) return false;
    smg_expr_node root = formula(e, n, &expr);
    bool same = root.prim == prim && smg_prim_arity(prim) == n->operand_count;
    for (int k = 0; k < n->operand_count && same; k++) {
        const smg_expr_node *leaf = smg_expr_get(e->exprs, root.arg[k]);
        same = leaf->prim == SMG_PRIM_LEAF && leaf->leaf == k;
    }
    return same;
}

/* ---- between which numbers values are ----------------------------------------------------------------------- */

static reach reach_of(const ends *e, smg_node_id id, int depth);

static reach of_constant(const ends *e, const smg_node *n, smg_node_id id) {
    int64_t elements;
    if (n->data == NULL || !smg_size_is_const(e->g->sizes, smg_node_elements(e->g, id), &elements) || elements < 1 ||
        elements > MOST_ELEMENTS)
        return anywhere;
    reach all = {HUGE_VAL, -HUGE_VAL};
    for (int64_t i = 0; i < elements; i++) {
        double value = smg_host_get(n->type, n->data, i);
        if (!isfinite(value)) return anywhere;
        all = (reach){fmin(all.low, value), fmax(all.high, value)};
    }
    return all;
}

static reach of_leaf(const ends *e, smg_node_id id) {
    const smg_node *n = &e->old[id];
    double value;
    if (is_number(n, &value)) return (reach){value, value};
    if (smg_op_is_constant(n->op)) return of_constant(e, n, id);
    smg_kind kind = smg_type_kind(n->type);
    if (kind == SMG_KIND_BOOL) return (reach){0, 1};
    return kind == SMG_KIND_INT ? (reach){-INTEGER_MOST, INTEGER_MOST} : anywhere;
}

static reach of_product(reach x, reach y) {
    double corner[] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
    reach all = {corner[0], corner[0]};
    for (int i = 0; i < 4; i++) {
        if (isnan(corner[i])) return anywhere;
        all = (reach){fmin(all.low, corner[i]), fmax(all.high, corner[i])};
    }
    return all;
}

static reach of_quotient(reach x, reach y) {
    if (!(y.low > 0 || y.high < 0)) return anywhere;
    return of_product(x, (reach){1 / y.high, 1 / y.low});
}

/* x: of the operands. */
static reach of_prim(const smg_expr_node *n, const reach x[3]) {
    switch (n->prim) {
    case SMG_PRIM_CONST: return (reach){n->value, n->value};
    case SMG_PRIM_ADD: return (reach){x[0].low + x[1].low, x[0].high + x[1].high};
    case SMG_PRIM_SUB: return (reach){x[0].low - x[1].high, x[0].high - x[1].low};
    case SMG_PRIM_NEG: return (reach){-x[0].high, -x[0].low};
    case SMG_PRIM_MUL: return of_product(x[0], x[1]);
    case SMG_PRIM_DIV: return of_quotient(x[0], x[1]);
    case SMG_PRIM_MIN: return (reach){fmin(x[0].low, x[1].low), fmin(x[0].high, x[1].high)};
    case SMG_PRIM_MAX: return (reach){fmax(x[0].low, x[1].low), fmax(x[0].high, x[1].high)};
    case SMG_PRIM_SELECT: return (reach){fmin(x[1].low, x[2].low), fmax(x[1].high, x[2].high)};
    case SMG_PRIM_TANH: return (reach){-1, 1};
    case SMG_PRIM_TO_FLOAT: return x[0];
    default: return n->kind == SMG_KIND_BOOL ? (reach){0, 1} : anywhere;
    }
}

static reach of_expr(const ends *e, const smg_node *n, smg_expr expr, int depth) {
    smg_expr_node node = *smg_expr_get(e->exprs, expr);
    reach x[3] = {anywhere, anywhere, anywhere};
    if (node.prim == SMG_PRIM_LEAF) return reach_of(e, n->operand[node.leaf], depth + 1);
    for (int k = 0; k < smg_prim_arity(node.prim); k++) x[k] = of_expr(e, n, node.arg[k], depth);
    reach all = of_prim(&node, x);
    return isnan(all.low) || isnan(all.high) ? anywhere : all;
}

static reach reach_of(const ends *e, smg_node_id id, int depth) {
    const smg_node *n = &e->old[id];
    smg_expr expr;
    if (depth > DEEPEST) return anywhere;
    switch (smg_node_class(n)) {
    case SMG_CLASS_LEAF: return of_leaf(e, id);
    case SMG_CLASS_CONTRACT: return (reach){-PRODUCT_MOST, PRODUCT_MOST};
    case SMG_CLASS_GATHER: return reach_of(e, n->operand[0], depth + 1);
    case SMG_CLASS_VIEW:
        return smg_op_view(n->op) == SMG_VIEW_WINDOW ? anywhere : reach_of(e, n->operand[0], depth + 1);
    case SMG_CLASS_MAP: formula(e, n, &expr); return expr != SMG_EXPR_NONE ? of_expr(e, n, expr, depth) : anywhere;
    case SMG_CLASS_REDUCE: break;
    }
    return anywhere;
}

/* ---- masks ------------------------------------------------------------------------------------------------------ */

/* The product that scores are made of, as long as they are; -1. */
static smg_node_id product_of(const ends *e, smg_node_id id, int depth) {
    const smg_node *n = &e->old[id];
    if (smg_node_class(n) == SMG_CLASS_CONTRACT) return id;
    if (smg_node_class(n) != SMG_CLASS_MAP || depth > DEEPEST) return -1;
    for (int k = 0; k < n->operand_count; k++) {
        smg_node_id found = smg_same_dims(operand(e, n, k), n) ? product_of(e, n->operand[k], depth + 1) : -1;
        if (found >= 0) return found;
    }
    return -1;
}

/* The axes of the product's result that its other factor has alone: with key's axis a block has several of them. */
static uint32_t rows_of(const ends *e, smg_node_id product, int keys) {
    const smg_node *n = &e->old[product];
    const char *result = n->label[2];
    bool left = strchr(n->label[0], result[keys]) != NULL, right = strchr(n->label[1], result[keys]) != NULL;
    const char *own = n->label[left ? 0 : 1], *other = n->label[left ? 1 : 0];
    uint32_t rows = 0;
    for (int i = 0; i < n->rank && left != right; i++)
        if (strchr(other, result[i]) != NULL && strchr(own, result[i]) == NULL) rows |= 1u << i;
    return rows;
}

/* The value behind views that repeat it. */
static smg_node_id once(const ends *e, smg_node_id id) {
    while (smg_op_view(e->old[id].op) == SMG_VIEW_BROADCAST) id = e->old[id].operand[0];
    return id;
}

/* Does an input, and no position, decide the value, along keys but along no row? */
static bool is_narrow(const ends *e, smg_node_id id, const smg_node *scores, int keys, uint32_t rows) {
    const smg_node *n = &e->old[id];
    int shift = scores->rank - n->rank;
    if (!e->given[id] || e->counted[id] || keys < shift || n->dims[keys - shift] != scores->dims[keys]) return false;
    for (int d = 0; d < n->rank; d++)
        if ((rows >> (d + shift) & 1u) && !smg_size_is_one(e->g->sizes, n->dims[d])) return false;
    return true;
}

/* A choice by a narrow truth between something and a number that is out. */
static bool is_choice(const ends *e, const smg_node *n, const smg_node *scores, int keys, uint32_t rows, mask *out) {
    double otherwise;
    if (!is_prim(e, n, SMG_PRIM_SELECT) || !is_number(operand(e, n, 2), &otherwise)) return false;
    *out = (mask){.term = -1, .truth = once(e, n->operand[0]), .otherwise = otherwise, .rest = {0, 0}};
    return is_narrow(e, out->truth, scores, keys, rows);
}

static bool is_term(const ends *e, smg_node_id id, const smg_node *scores, int keys, uint32_t rows, mask *out) {
    const smg_node *n = &e->old[once(e, id)];
    double kept;
    if (is_choice(e, n, scores, keys, rows, out) && is_number(operand(e, n, 1), &kept) && kept >= 0 && kept <= 0)
        return true;
    *out = (mask){.term = once(e, id), .truth = -1, .rest = {0, 0}};
    return n->type == SMG_TYPE_F32 && is_narrow(e, out->term, scores, keys, rows);
}

/* The mask that is added to scores, or chosen by, under further terms. */
static bool find_mask(const ends *e, smg_node_id id, int keys, uint32_t rows, mask *out) {
    reach further = {0, 0};
    int added = -1;
    for (int depth = 0; depth < DEEPEST; depth++) {
        const smg_node *n = &e->old[id];
        smg_node_id rest = -1;
        if (is_choice(e, n, n, keys, rows, out)) rest = n->operand[1];
        if (rest < 0 && !is_prim(e, n, SMG_PRIM_ADD)) return false;
        for (int k = 0; k < 2 && rest < 0; k++) {
            if (!is_term(e, n->operand[k], n, keys, rows, out)) continue;
            rest = n->operand[1 - k];
            added = depth == 0 ? k : -1;
        }
        int scores = rest < 0 && product_of(e, n->operand[0], 0) < 0;
        reach own = reach_of(e, rest >= 0 ? rest : n->operand[1 - scores], 0);
        further = (reach){further.low + own.low, further.high + own.high};
        out->rest = further;
        out->added = added;
        if (rest >= 0) return true;
        id = n->operand[scores];
    }
    return false;
}

/* May the mask leave keys out, and are scores then below all that are kept? */
static bool is_strong(ends *e, const mask *m) {
    double least = m->truth >= 0 ? m->otherwise : reach_of(e, m->term, 0).low;
    bool far = m->rest.high + OUT <= m->rest.low + KEPT - FAR;
    e->weak += far && !(least <= OUT);
    return far && least <= OUT;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

static smg_node_id push(ends *e, smg_node node) {
    node.name = "";
    return smg_graph_push(e->g, &node);
}

static smg_node_id number(ends *e, smg_type type, double value) {
    return push(e, (smg_node){.op = SMG_OP_FILL, .type = type, .value = value});
}

static smg_node_id map(ends *e, smg_op op, int count, smg_node_id a, smg_node_id b, smg_node_id c) {
    smg_node node = {.op = op, .operand_count = count, .operand = {a, b, c}};
    for (int k = 0; k < count; k++)
        if (node.operand[k] < 0) return -1;
    return push(e, node);
}

static smg_node_id fold(ends *e, smg_op op, smg_node_id of, int axis) {
    if (of < 0) return -1;
    return push(e, (smg_node){.op = op, .axis = axis, .keep = true, .operand_count = 1, .operand = {of}});
}

/* "mask/end" by what the mask is, or is made of; nothing where that name is taken. */
static const char *name_end(const ends *e, const mask *m, const char *word) {
    smg_node_id id = m->term >= 0 ? m->term : m->truth;
    while (!e->old[id].name[0] && e->old[id].operand_count > 0) {
        int k = 0;
        while (k + 1 < e->old[id].operand_count && !e->given[e->old[id].operand[k]]) k++;
        id = e->old[id].operand[k];
    }
    const char *name = e->old[id].name[0] ? smg_arena_format(e->g->arena, "%s/%s", e->old[id].name, word) : "";
    for (int i = 0; name != NULL && i < e->count; i++)
        if (strcmp(e->old[i].name, name) == 0) return "";
    for (int i = 0; name != NULL && i < e->made.count; i++)
        if (strcmp(e->g->nodes.items[e->made.items[i].behind].name, name) == 0 ||
            strcmp(e->g->nodes.items[e->made.items[i].first].name, name) == 0)
            return "";
    return name;
}

/* keys: the axis of the scores, whose extent is `extent`. */
static void make_ends(ends *e, const mask *m, smg_size extent, int keys, made_end *out) {
    smg_node_id term = m->term >= 0 ? e->now[m->term] : -1;
    if (term < 0)
        term = map(e, SMG_OP_SELECT, 3, e->now[m->truth], number(e, SMG_TYPE_F32, 0),
                   number(e, SMG_TYPE_F32, m->otherwise));
    if (term < 0 || out->at < 0) return;
    int axis = keys - (out->rank - e->g->nodes.items[term].rank);
    smg_node_id none = number(e, SMG_TYPE_I32, 0);
    smg_node_id all = push(e, (smg_node){.op = SMG_OP_SIZE, .type = SMG_TYPE_I32, .size = extent});
    smg_node_id left = map(e, SMG_OP_LE, 2, term, number(e, SMG_TYPE_F32, OUT), -1);
    smg_node_id next = map(e, SMG_OP_ADD, 2, out->at, number(e, SMG_TYPE_I32, 1), -1);
    smg_node_id last = fold(e, SMG_OP_REDUCE_MAX, map(e, SMG_OP_SELECT, 3, left, none, next), keys);
    smg_node_id first = fold(e, SMG_OP_REDUCE_MIN, map(e, SMG_OP_SELECT, 3, left, all, out->at), keys);
    smg_node_id most = fold(e, SMG_OP_REDUCE_MAX, term, axis);
    smg_node_id some = map(e, SMG_OP_LE, 2, number(e, SMG_TYPE_F32, KEPT), most, -1);
    out->first = map(e, SMG_OP_SELECT, 3, some, first, none);
    out->behind = map(e, SMG_OP_SELECT, 3, some, last, all);
}

/* The value from the first that is kept to the last, else a number: two choices, each by a comparison that reads one
 * number a row, so that readers make it anew. */
static smg_node_id between(ends *e, smg_node_id at, smg_node_id first, smg_node_id behind, smg_node_id value,
                           double otherwise) {
    if (value < 0) return -1;
    smg_node_id other = number(e, e->g->nodes.items[value].type, otherwise);
    smg_node_id open = map(e, SMG_OP_SELECT, 3, map(e, SMG_OP_LT, 2, at, behind, -1), value, other);
    smg_node_id both = map(e, SMG_OP_SELECT, 3, map(e, SMG_OP_LE, 2, first, at, -1), open, other);
    if (both >= 0) e->g->nodes.items[open].spare = e->g->nodes.items[both].spare = true;
    return both;
}

static smg_status end_of(ends *e, const mask *m, const smg_node *scores, int keys, const made_end **out) {
    for (int i = 0; i < e->made.count; i++) {
        *out = &e->made.items[i];
        bool same = (*out)->of.term == m->term && (*out)->of.truth == m->truth && (*out)->rank == scores->rank &&
                    (*out)->axis == keys && !((*out)->of.otherwise < m->otherwise) &&
                    !((*out)->of.otherwise > m->otherwise);
        if (same) return SMG_OK;
    }
    smg_node index = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32, .rank = scores->rank, .axis = keys};
    for (int d = 0; d < scores->rank; d++) index.dims[d] = d == keys ? scores->dims[d] : smg_size_const(e->g->sizes, 1);
    made_end own = {.of = *m, .axis = keys, .rank = scores->rank, .at = push(e, index), .first = -1, .behind = -1};
    make_ends(e, m, scores->dims[keys], keys, &own);
    const char *first = name_end(e, m, "first"), *end = name_end(e, m, "end");
    bool good = own.first >= 0 && own.behind >= 0 && first != NULL && end != NULL;
    made_end *made = good ? SMG_ARRAY_PUSH(e->g->arena, &e->made) : NULL;
    if (made == NULL) return e->g->status != SMG_OK ? e->g->status : SMG_MEMORY;
    e->g->nodes.items[own.first].name = first;
    e->g->nodes.items[own.behind].name = end;
    *made = own;
    *out = made;
    return SMG_OK;
}

/* ---- softmax --------------------------------------------------------------------------------------------------- */

/* exp(x - max(x)), with nobody else reading the difference: x, or -1. */
static smg_node_id scores_of(const ends *e, smg_node_id id, int *out_keys) {
    const smg_node *exp = &e->old[id];
    if (!is_prim(e, exp, SMG_PRIM_EXP) || exp->type != SMG_TYPE_F32) return -1;
    const smg_node *difference = operand(e, exp, 0);
    if (!is_prim(e, difference, SMG_PRIM_SUB) || e->readers[exp->operand[0]] != 1) return -1;
    const smg_node *top = operand(e, difference, 1);
    bool greatest = smg_node_class(top) == SMG_CLASS_REDUCE && smg_op_combine(top->op) == SMG_COMBINE_MAX && top->keep;
    *out_keys = top->axis;
    return greatest && top->operand[0] == difference->operand[0] ? top->operand[0] : -1;
}

/* The scores whose exponentials node `id` computes get an end. */
static void look_at(ends *e, smg_node_id id, mask *masks, int *keys) {
    int axis;
    int64_t low, high;
    mask m;
    smg_node_id scores = scores_of(e, id, &axis);
    if (scores < 0) return;
    smg_size_bounds(e->g->sizes, e->old[scores].dims[axis], &low, &high);
    smg_node_id product = product_of(e, scores, 0);
    uint32_t rows = product >= 0 && high > LEAST_KEYS ? rows_of(e, product, axis) : 0;
    if (rows == 0 || !find_mask(e, scores, axis, rows, &m) || !is_strong(e, &m)) return;
    masks[scores] = m;
    keys[scores] = axis;
    e->shares[id] = scores;
    const smg_node *difference = operand(e, &e->old[id], 0);
    e->takes_ended[e->old[id].operand[0]] = e->takes_ended[difference->operand[1]] = true;
}

static void look_around(ends *e) {
    for (int i = 0; i < e->count; i++) {
        const smg_node *n = &e->old[i];
        e->given[i] = smg_op_is_input(n->op);
        e->counted[i] = smg_op_leaf(n->op) == SMG_LEAF_INDEX;
        for (int k = 0; k < n->operand_count; k++) {
            e->given[i] = e->given[i] || e->given[n->operand[k]];
            e->counted[i] = e->counted[i] || e->counted[n->operand[k]];
            e->readers[n->operand[k]]++;
        }
    }
    for (int o = 0; o < e->g->outputs.count; o++) e->readers[e->g->outputs.items[o].node]++;
}

/* ---- rows that nobody reads ------------------------------------------------------------------------------------- */

/* The scores whose shares the value is, divided and cast as they may be; -1. */
static smg_node_id shared_by(const ends *e, smg_node_id id) {
    for (int depth = 0; depth < DEEPEST && smg_node_class(&e->old[id]) == SMG_CLASS_MAP; depth++) {
        if (e->shares[id] >= 0) return e->shares[id];
        const smg_node *n = &e->old[id];
        int k = 0;
        while (k < n->operand_count && !smg_same_dims(operand(e, n, k), n)) k++;
        if (k == n->operand_count) return -1;
        id = n->operand[k];
    }
    return -1;
}

/* The axis of the product's result along which rows have the positions that keys have in the scores; -1. */
static int own_rows(const ends *e, const smg_node *product, int k, const smg_node *scores, int keys) {
    uint32_t rows = rows_of(e, product_of(e, (smg_node_id)(scores - e->old), 0), keys);
    for (int d = 0; d < scores->rank; d++) {
        const char *at = strchr(product->label[2], product->label[k][d]);
        if ((rows >> d & 1u) && scores->dims[d] == scores->dims[keys] && at != NULL)
            return (int)(at - product->label[2]);
    }
    return -1;
}

/* Has the end at most the first axis, and is that the result's first one too? */
static bool is_of_batch(const ends *e, const made_end *end, const smg_node *product, int k) {
    const smg_node *behind = &e->g->nodes.items[end->behind];
    for (int d = 0; d < behind->rank; d++) {
        bool batch = d + end->rank - behind->rank == 0 && product->label[2][0] == product->label[k][0];
        if (!batch && !smg_size_is_one(e->g->sizes, behind->dims[d])) return false;
    }
    return true;
}

/* One of the mask's ends as one number a row of the batch of a value of that rank. */
static smg_node_id of_rank(ends *e, smg_node_id end, int rank, int scores_rank) {
    const smg_node *n = &e->g->nodes.items[end];
    smg_node shape = {.op = SMG_OP_RESHAPE, .operand_count = 1, .operand = {end}, .rank = rank};
    if (n->rank == rank) return end;
    for (int d = 0; d < rank; d++)
        shape.dims[d] = d == 0 && n->rank == scores_rank ? n->dims[0] : smg_size_const(e->g->sizes, 1);
    return push(e, shape);
}

/* The product of shares, of which rows outside of the ends are 0; where masks have no ends, it is as it was. */
static smg_node_id cut_rows(ends *e, smg_node_id product, const made_end *end, int axis) {
    const smg_node of = e->g->nodes.items[product];
    smg_node index = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32, .rank = of.rank, .axis = axis};
    for (int d = 0; d < of.rank; d++) index.dims[d] = d == axis ? of.dims[d] : smg_size_const(e->g->sizes, 1);
    smg_node_id at = push(e, index), first = of_rank(e, end->first, of.rank, end->rank);
    smg_node_id behind = of_rank(e, end->behind, of.rank, end->rank);
    return between(e, at, first, behind, product, 0);
}

static smg_status leave_rows_out(ends *e, int id, const mask *masks, const int *keys) {
    const smg_node *n = &e->old[id];
    const made_end *end;
    for (int o = 0; o < e->g->outputs.count; o++)
        if (e->g->outputs.items[o].node == id) return SMG_OK;
    for (int k = 0; k < 2; k++) {
        smg_node_id scores = shared_by(e, n->operand[k]);
        int axis = scores >= 0 ? own_rows(e, n, k, &e->old[scores], keys[scores]) : -1;
        if (axis < 0) continue;
        SMG_TRY(end_of(e, &masks[scores], &e->old[scores], keys[scores], &end));
        if (!is_of_batch(e, end, n, k)) continue;
        e->now[id] = cut_rows(e, e->now[id], end, axis);
        return e->g->status;
    }
    return SMG_OK;
}

/* Scores that are -inf where the mask leaves keys out. What is added to them has no axis of rows, and is chosen once
 * for all rows then. */
static smg_node_id ended_scores(ends *e, int id, const mask *m, const made_end *end) {
    const smg_node *n = &e->old[id];
    if (m->added < 0) return between(e, end->at, end->first, end->behind, e->now[id], -HUGE_VAL);
    smg_node_id term = e->now[once(e, n->operand[m->added])];
    smg_node_id chosen = between(e, end->at, end->first, end->behind, term, -HUGE_VAL);
    return map(e, SMG_OP_ADD, 2, e->now[n->operand[1 - m->added]], chosen, -1);
}

static smg_status rebuild(ends *e, const mask *masks, const int *keys) {
    for (int i = 0; i < e->count && e->g->status == SMG_OK; i++) {
        smg_node node = e->old[i];
        const made_end *end;
        for (int k = 0; k < node.operand_count; k++) {
            smg_node_id from = node.operand[k];
            node.operand[k] = e->takes_ended[i] && e->ended[from] >= 0 ? e->ended[from] : e->now[from];
        }
        smg_node *slot = SMG_ARRAY_PUSH(e->g->arena, &e->g->nodes);
        if (slot == NULL) return SMG_MEMORY;
        *slot = node;
        e->now[i] = e->g->nodes.count - 1;
        e->ended[i] = -1;
        if (e->unread && smg_node_class(&e->old[i]) == SMG_CLASS_CONTRACT) SMG_TRY(leave_rows_out(e, i, masks, keys));
        if (keys[i] < 0) continue;
        SMG_TRY(end_of(e, &masks[i], &e->old[i], keys[i], &end));
        e->ended[i] = ended_scores(e, i, &masks[i], end);
    }
    for (int o = 0; o < e->g->outputs.count; o++) e->g->outputs.items[o].node = e->now[e->g->outputs.items[o].node];
    return e->g->status;
}

smg_status smg_rewrite_end_masks(smg_graph *g, bool unread, int *out_ends, int *out_weak) {
    size_t count = (size_t)g->nodes.count + 1;
    ends e = {.g = g, .old = g->nodes.items, .count = g->nodes.count, .unread = unread};
    mask *masks = SMG_ARENA_ARRAY(g->arena, mask, count);
    int *keys = SMG_ARENA_ARRAY(g->arena, int, count);
    e.given = SMG_ARENA_ARRAY(g->arena, bool, count);
    e.counted = SMG_ARENA_ARRAY(g->arena, bool, count);
    e.readers = SMG_ARENA_ARRAY(g->arena, int, count);
    e.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    e.ended = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    e.takes_ended = SMG_ARENA_ARRAY(g->arena, bool, count);
    e.shares = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    if (!masks || !keys || !e.given || !e.counted || !e.readers || !e.now || !e.ended || !e.takes_ended || !e.shares)
        return SMG_MEMORY;
    SMG_TRY(smg_exprs_create(g->arena, &e.exprs));
    look_around(&e);
    for (int i = 0; i < e.count; i++) keys[i] = e.shares[i] = -1;
    bool any = false;
    for (int i = 0; i < e.count; i++) look_at(&e, i, masks, keys);
    for (int i = 0; i < e.count; i++) any = any || keys[i] >= 0;
    *out_ends = 0;
    *out_weak = e.weak;
    if (!any) return smg_context_status(g->ctx);
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    SMG_TRY(rebuild(&e, masks, keys));
    *out_ends = e.made.count;
    return smg_context_status(g->ctx);
}
