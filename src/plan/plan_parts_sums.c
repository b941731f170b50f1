/* A sum over the axis by its parts. What is summed up is an expression over values and other sums over the axis; each
 * part takes these sums of its own, and the same update that corrects a running sum when a loop goes on corrects a
 * part's when all parts meet: from the part's sums to those of all. A factor that does not vary is left for the end.
 * Where no update exists the sums of all are waited for, so that this one has parts of its own and no correction. */
#include <float.h>

#include "plan/plan_parts.h"

/* One operand of what is summed up. */
typedef struct summand {
    smg_node_id operand;
    int behind;
    smg_expr core, factor, guard;
    bool running; /* the core has other sums of the part */
} summand;

typedef struct summing {
    parts *s;
    smg_node_id id;
    const smg_node *n;
    summand sides[2];
    int count, leading; /* sides; the one with running sums */
    char letter, part;  /* of a product's axis */
    char label[SMG_MAX_RANK + 2];
    smg_expr update;
    int running_leaf;
} summing;

/* ---- expressions over values of the graph -------------------------------------------------------- */

static int leaf_of(parts *s, parts_leaf_kind what, smg_node_id node) {
    for (int i = 0; i < s->leaves.count; i++)
        if (s->leaves.items[i].what == what && s->leaves.items[i].node == node) return i;
    parts_leaf *slot = SMG_ARRAY_PUSH(s->arena, &s->leaves);
    if (slot == NULL) return -1;
    *slot = (parts_leaf){.what = what, .node = node};
    return s->leaves.count - 1;
}

static smg_expr leaf_expr(parts *s, parts_leaf_kind what, smg_node_id node) {
    int leaf = leaf_of(s, what, node);
    if (leaf < 0) return SMG_EXPR_NONE;
    return smg_expr_leaf(s->exprs, smg_type_kind(smg_graph_node(s->g, node)->type), leaf);
}

static smg_expr expr_of(parts *s, smg_node_id id) {
    const smg_node *n = smg_graph_node(s->g, id);
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (!s->depends[id] || s->part[id] >= 0 || smg_node_class(n) != SMG_CLASS_MAP) return leaf_expr(s, PARTS_VALUE, id);
    for (int k = 0; k < n->operand_count; k++) operand[k] = expr_of(s, n->operand[k]);
    smg_expr expr = smg_op_expr(s->exprs, n->op, n->type, operand);
    parts_expr *slot = SMG_ARRAY_PUSH(s->arena, &s->known);
    if (slot == NULL) return SMG_EXPR_NONE;
    *slot = (parts_expr){expr, id};
    return expr;
}

/* In parts a value is rounded as it would be whole; what is no value of the graph keeps its type. */
static void store_alike(parts *s, smg_expr expr, smg_node_id node) {
    for (int i = 0; i < s->known.count; i++)
        if (s->known.items[i].expr == expr) s->storage.items[node] = smg_graph_storage(s->g, s->known.items[i].node);
}

static smg_status make_roles(parts *s, smg_slice_roles *out) {
    for (int i = 0; i < s->leaves.count; i++) { /* grows while it is read */
        const parts_leaf *leaf = &s->leaves.items[i];
        if (leaf->what == PARTS_VALUE && s->part[leaf->node] >= 0) leaf_of(s, PARTS_OLD, leaf->node);
    }
    size_t count = (size_t)s->leaves.count;
    smg_leaf_role *role = SMG_ARENA_ARRAY(s->arena, smg_leaf_role, count + 1);
    smg_expr *old = SMG_ARENA_ARRAY(s->arena, smg_expr, count + 1);
    smg_expr *sum_of = SMG_ARENA_ARRAY(s->arena, smg_expr, count + 1);
    if (role == NULL || old == NULL || sum_of == NULL) return SMG_MEMORY;
    for (int i = 0; i < s->leaves.count; i++) {
        parts_leaf leaf = s->leaves.items[i];
        const smg_node *n = smg_graph_node(s->g, leaf.node);
        old[i] = sum_of[i] = SMG_EXPR_NONE;
        if (leaf.what != PARTS_VALUE) continue;
        if (s->axis[leaf.node] >= 0) role[i] = SMG_ROLE_VARIES;
        if (s->part[leaf.node] < 0) continue;
        role[i] = SMG_ROLE_AGGREGATE;
        old[i] = leaf_expr(s, PARTS_OLD, leaf.node);
        if (smg_op_combine(n->op) == SMG_COMBINE_ADD) sum_of[i] = expr_of(s, n->operand[0]);
    }
    *out = (smg_slice_roles){
        .pool = s->exprs, .role = role, .old = old, .sum_of = sum_of, .count = (int)count, .asked = s->p->asked};
    return smg_context_status(s->p->ctx);
}

/* ---- and back ------------------------------------------------------------------------------------ */

typedef enum form { IN_PARTS, AT_MERGE, AT_END } form;

/* An extreme of nothing is as far away as numbers get, and differences of two such must be 0. */
static smg_node_id finite(parts *s, smg_node_id sum, smg_node_id node) {
    smg_combine combine = smg_op_combine(smg_graph_node(s->g, sum)->op);
    if (combine == SMG_COMBINE_MAX)
        return parts_map(s, SMG_OP_MAX, 2, node, parts_number(s, SMG_TYPE_F32, -(double)FLT_MAX), -1);
    if (combine == SMG_COMBINE_MIN)
        return parts_map(s, SMG_OP_MIN, 2, node, parts_number(s, SMG_TYPE_F32, (double)FLT_MAX), -1);
    return node;
}

/* A node that stands as the operand with `letters` does, as the result with `target`. */
static smg_node_id align(parts *s, smg_node_id node, const char *letters, const char *target) {
    smg_size dims[SMG_MAX_RANK];
    if (node < 0) return -1;
    smg_node view = {.op = SMG_OP_TRANSPOSE, .operand_count = 1, .operand = {node}};
    smg_node n = *smg_graph_node(s->to, node);
    int rank = (int)strlen(target), count = 0;
    const char *own = letters + strlen(letters) - n.rank;
    for (int i = 0; i < rank; i++) {
        const char *at = strchr(own, target[i]);
        dims[i] = at != NULL ? n.dims[at - own] : smg_size_const(s->g->sizes, 1);
        if (at != NULL) view.perm[count++] = (int)(at - own);
    }
    for (int i = 0; i < n.rank; i++) {
        if (strchr(target, own[i]) != NULL) continue;
        if (!smg_size_is_one(s->g->sizes, n.dims[i])) return -1;
        view.perm[count++] = i;
    }
    if (n.rank == 0) return node;
    return parts_reshape(s, parts_push(s, view), rank, dims);
}

static smg_node_id leaf_node(summing *m, parts_leaf leaf, form how) {
    parts *s = m->s;
    const summand *side = &m->sides[m->leading];
    bool folded = s->part[leaf.node] >= 0 && leaf.what != PARTS_RUNNING;
    if (leaf.what == PARTS_RUNNING) return s->part[m->id];
    if (s->axis[leaf.node] >= 0) return how == IN_PARTS ? parts_value(s, leaf.node) : -1;
    smg_node_id node = folded ? s->whole[leaf.node] : s->now[leaf.node];
    bool of_part = folded && (how == IN_PARTS || leaf.what == PARTS_OLD);
    if (of_part) node = s->part[leaf.node];
    if (folded) node = finite(s, leaf.node, node);
    if (!of_part && how != AT_END) node = parts_beside(s, node, side->behind);
    if (how == IN_PARTS || smg_node_class(m->n) != SMG_CLASS_CONTRACT) return node;
    char letters[SMG_MAX_RANK + 2], *at = letters;
    for (const char *l = m->n->label[m->leading]; *l != 0; l++) {
        if (*l == m->letter && how == AT_MERGE) *at++ = m->part;
        *at++ = *l;
    }
    *at = 0;
    return align(s, node, letters, how == AT_MERGE ? m->label : m->n->label[2]);
}

static smg_node_id to_node(summing *m, smg_expr expr, form how) {
    parts *s = m->s;
    int behind = how == IN_PARTS ? m->sides[m->leading].behind : -1 - (int)how - 8 * m->id;
    for (int i = 0; i < s->exprs_made.count; i++)
        if (s->exprs_made.items[i].key == expr && s->exprs_made.items[i].behind == behind)
            return s->exprs_made.items[i].node;
    smg_expr_node e = *smg_expr_get(s->exprs, expr);
    smg_node_id arg[3] = {-1, -1, -1}, node = -1;
    smg_op op;
    if (e.prim == SMG_PRIM_LEAF) {
        node = leaf_node(m, s->leaves.items[e.leaf], how);
    } else if (e.prim == SMG_PRIM_CONST) {
        smg_type type = e.kind == SMG_KIND_FLOAT ? SMG_TYPE_F32 : SMG_TYPE_I32;
        node = e.kind == SMG_KIND_BOOL ? -1 : parts_number(s, type, e.value);
    } else if (smg_op_of_prim(e.prim, &op)) {
        for (int k = 0; k < smg_prim_arity(e.prim); k++) arg[k] = to_node(m, e.arg[k], how);
        node = parts_map(s, op, smg_prim_arity(e.prim), arg[0], arg[1], arg[2]);
        if (node >= 0 && how == IN_PARTS) store_alike(s, expr, node);
    }
    parts_made *slot = SMG_ARRAY_PUSH(s->arena, &s->exprs_made);
    if (slot == NULL) return -1;
    *slot = (parts_made){.key = expr, .behind = behind, .node = node};
    return node;
}

/* ---- what each part sums up ---------------------------------------------------------------------- */

static smg_combine combine_of(const summing *m) {
    return smg_op_combine(m->n->op);
}

static smg_status look_at_sides(summing *m) {
    parts *s = m->s;
    smg_slice_roles roles;
    m->leading = -1;
    for (int k = 0; k < m->n->operand_count; k++) {
        summand *side = &m->sides[m->count];
        smg_postponed p;
        *side = (summand){.operand = m->n->operand[k], .factor = SMG_EXPR_NONE, .guard = SMG_EXPR_NONE};
        m->count++;
        if (s->axis[side->operand] < 0) return SMG_OK;
        side->behind = parts_behind(s, side->operand);
        side->core = expr_of(s, side->operand);
        if (side->core == SMG_EXPR_NONE) return SMG_MEMORY;
        SMG_TRY(make_roles(s, &roles));
        if (!smg_slice_aggregates(&roles, side->core)) continue;
        if (combine_of(m) == SMG_COMBINE_ADD) {
            SMG_TRY(smg_slice_postpone(&roles, side->core, &p));
            side->core = p.core;
            side->factor = p.factor;
            side->guard = p.guard;
        }
        side->running = smg_slice_aggregates(&roles, side->core);
        if (m->leading >= 0) m->leading = 2; /* both */
        if (m->leading < 0) m->leading = k;
    }
    return SMG_OK;
}

static smg_status find_update(summing *m, bool *out_found) {
    parts *s = m->s;
    smg_slice_roles roles;
    const char *why;
    summand *leading = &m->sides[m->leading];
    *out_found = true;
    m->update = SMG_EXPR_NONE;
    if (!leading->running) return SMG_OK;
    m->running_leaf = leaf_of(s, PARTS_RUNNING, m->id);
    SMG_TRY(make_roles(s, &roles));
    smg_update update = {.t = smg_expr_leaf(s->exprs, SMG_KIND_FLOAT, m->running_leaf), .n = SMG_EXPR_NONE};
    SMG_TRY(smg_slice_update(&roles, combine_of(m), leading->core, &update, &why));
    m->update = update.value;
    *out_found = update.value != SMG_EXPR_NONE;
    return SMG_OK;
}

/* Behind the end of the last part nothing counts. */
static smg_node_id operand_of(summing *m, int k, bool by_expression) {
    parts *s = m->s;
    summand *side = &m->sides[k];
    const smg_node *from = smg_graph_node(s->g, side->operand);
    double nothing = smg_combine_identity(combine_of(m));
    bool edge = !parts_is_inside(s, side->operand);
    smg_node_id node = by_expression ? to_node(m, side->core, IN_PARTS) : parts_value(s, side->operand);
    if (node < 0) return -1;
    smg_node wanted = {.op = SMG_OP_BROADCAST, .rank = from->rank, .operand_count = 1, .operand = {node}};
    memcpy(wanted.dims, from->dims, sizeof(wanted.dims));
    if (!parts_split_dims(s, &wanted, s->axis[side->operand])) return -1;
    const smg_node *n = smg_graph_node(s->to, node);
    bool same = n->rank == wanted.rank;
    for (int i = 0; same && i < n->rank; i++) same = n->dims[i] == wanted.dims[i];
    if (!same) node = parts_push(s, wanted);
    bool zero = edge && combine_of(m) == SMG_COMBINE_ADD;
    return zero ? node : parts_mask(s, node, side->behind, nothing);
}

static smg_node_id make_parts(summing *m, const smg_node_id operand[2]) {
    parts *s = m->s;
    smg_node node = *m->n;
    memcpy(node.operand, operand, sizeof(*operand) * (size_t)m->count);
    if (smg_node_class(m->n) == SMG_CLASS_REDUCE) {
        node.axis++;
        node.keep = true;
    } else {
        m->label[0] = m->part;
        strcpy(m->label + 1, m->n->label[2]);
        if (strlen(m->label) > SMG_MAX_RANK) return -1;
        strcpy(node.label[2], m->label);
        for (int k = 0; k < 2; k++) {
            int at = s->axis[m->n->operand[k]], length = (int)strlen(node.label[k]);
            memmove(node.label[k] + at + 1, node.label[k] + at, (size_t)(length - at + 1));
            node.label[k][at] = m->part;
        }
    }
    smg_node_id id = parts_push(s, node);
    if (id >= 0) s->together.items[id] = s->p->groups + 1;
    return id;
}

/* ---- what all parts make ------------------------------------------------------------------------- */

static smg_node_id merge(summing *m) {
    parts *s = m->s;
    bool product = smg_node_class(m->n) == SMG_CLASS_CONTRACT;
    smg_node_id all = m->update != SMG_EXPR_NONE ? to_node(m, m->update, AT_MERGE) : s->part[m->id];
    if (all < 0) return -1;
    smg_node_id id = parts_push(s, (smg_node){.op = product ? SMG_OP_SUM : m->n->op,
                                              .axis = product ? 0 : m->n->axis,
                                              .operand_count = 1,
                                              .operand = {all}});
    if (id >= 0) s->merges.items[id] = s->p->groups + 1;
    return id;
}

/* Each side's factor, and 0 where its guard fails. */
static smg_node_id finish(summing *m, smg_node_id node) {
    parts *s = m->s;
    for (int k = 0; k < m->count; k++) {
        if (m->sides[k].factor == SMG_EXPR_NONE) continue;
        node = parts_map(s, SMG_OP_MUL, 2, node, to_node(m, m->sides[k].factor, AT_END), -1);
        if (m->sides[k].guard == SMG_EXPR_NONE || node < 0) continue;
        node = parts_map(s, SMG_OP_SELECT, 3, to_node(m, m->sides[k].guard, AT_END), node,
                         parts_number(s, SMG_TYPE_F32, 0));
    }
    return node;
}

static smg_node_id give(summing *m, smg_node_id node) {
    parts *s = m->s;
    if (node < 0) return -1;
    s->from.items[node] = m->id;
    s->together.items[node] = -s->p->groups - 1;
    s->storage.items[node] = smg_graph_storage(s->g, m->id);
    if (smg_node_class(m->n) == SMG_CLASS_REDUCE && !m->n->keep) node = parts_reshape(s, node, m->n->rank, m->n->dims);
    if (node >= 0 && !smg_same_dims(smg_graph_node(s->to, node), m->n)) return -1;
    return node;
}

/* Counts are sums, too; extremes of integers have no number that stands for nothing. */
static bool may_have_parts(const summing *m) {
    parts *s = m->s;
    bool product = smg_node_class(m->n) == SMG_CLASS_CONTRACT;
    bool counts = m->n->type == SMG_TYPE_I32 && !product && combine_of(m) == SMG_COMBINE_ADD;
    if ((m->n->type != SMG_TYPE_F32 && !counts) || m->n->rank == SMG_MAX_RANK) return false;
    for (int k = 0; k < m->n->operand_count; k++)
        if (s->axis[m->n->operand[k]] < 0 || smg_graph_node(s->g, m->n->operand[k])->rank == SMG_MAX_RANK) return false;
    return product || m->n->operand_count == 1;
}

smg_status parts_sum(parts *s, smg_node_id id, smg_node_id *out_node) {
    summing m = {.s = s, .id = id, .n = smg_graph_node(s->g, id), .leading = -1, .update = SMG_EXPR_NONE};
    smg_node_id operand[2] = {-1, -1};
    bool found = false;
    *out_node = -1;
    if (!may_have_parts(&m)) return SMG_OK;
    if (smg_node_class(m.n) == SMG_CLASS_CONTRACT) {
        m.letter = parts_letter(s, m.n);
        for (m.part = 'a'; strchr(m.n->label[0], m.part) != NULL || strchr(m.n->label[1], m.part) != NULL;) m.part++;
    }
    SMG_TRY(look_at_sides(&m));
    if (m.leading == 0 || m.leading == 1) SMG_TRY(find_update(&m, &found));
    for (int k = 0; k < m.count; k++) {
        if (!found) m.sides[k].factor = m.sides[k].guard = SMG_EXPR_NONE;
        operand[k] = operand_of(&m, k, found && k == m.leading);
        if (operand[k] < 0) return SMG_OK;
    }
    s->part[id] = make_parts(&m, operand);
    if (s->part[id] < 0) return SMG_OK;
    /* Parts of a product are rounded where its value would be: all of them together as much as that once more. */
    if (smg_node_class(m.n) == SMG_CLASS_CONTRACT && !found)
        s->storage.items[s->part[id]] = smg_graph_storage(s->g, id);
    smg_node_id all = merge(&m);
    bool plain = smg_node_class(m.n) == SMG_CLASS_REDUCE && (!found || m.sides[m.leading].factor == SMG_EXPR_NONE);
    s->whole[id] = all;
    *out_node = give(&m, found ? finish(&m, all) : all);
    if (!plain || !(m.n->keep || m.n->axis == 0)) s->part[id] = -1; /* nobody takes its part */
    return SMG_OK;
}
