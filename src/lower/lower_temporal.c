/* Passes. Without a temporal axis every reduction sees its whole operand and there is one straight
 * program. With one, reductions over it run inside a loop; one that depends on another joins the same pass when an
 * update function exists (Update-then-Aggregate), else it waits for the next pass, which reads its
 * inputs again. A factor that does not vary is postponed past a sum first, because that shortens
 * the path between reductions. */
#include "lower/lower_internal.h"

static smg_axis_set folded(const smg_snode *n) {
    return n->iterates & ~n->result;
}

smg_axis_set lower_cut(const lowering *l) {
    return l->s->temporal >= 0 ? l->s->serial | SMG_AXIS_BIT(l->s->temporal) : 0;
}

typedef struct dependence {
    const lowering *l;
    int final_pass;   /* latest pass after which a needed value is final */
    int running_pass; /* latest pass of a running aggregate among the leaves */
    int varying_pass; /* latest pass that a varying tile needs */
} dependence;

static void depend_leaf(void *user, int leaf) {
    dependence *d = user;
    int owner = d->l->leaf_node.items[leaf];
    if (owner < 0) return;
    const lnode *n = &d->l->node[owner];
    int *slot = n->running ? &d->running_pass : n->varies ? &d->varying_pass : &d->final_pass;
    if (n->pass > *slot) *slot = n->pass;
}

static dependence depends(const lowering *l, smg_expr expr) {
    dependence d = {.l = l, .final_pass = LOWER_BEFORE, .running_pass = LOWER_BEFORE, .varying_pass = LOWER_BEFORE};
    if (expr != SMG_EXPR_NONE) smg_kernel_leaves(l->k, expr, depend_leaf, &d);
    return d;
}

static int later(int a, int b) {
    return a > b ? a : b;
}

static smg_expr plain_summand(const lowering *l, int node) {
    const smg_snode *n = &l->space->nodes.items[node];
    bool sum = n->class_ == SMG_CLASS_REDUCE && smg_op_combine(n->op) == SMG_COMBINE_ADD;
    return sum ? l->node[node].core : SMG_EXPR_NONE;
}

/* Does a load take its index from something that is folded here? Its element moves in a way no update knows. */
static void seek_folded_index(void *user, int leaf) {
    dependence *d = user;
    const smg_kleaf *f = &d->l->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD) return;
    smg_expr index = d->l->k->accesses.items[f->index].index;
    if (index != SMG_EXPR_NONE) smg_expr_leaves(d->l->k->exprs, index, depend_leaf, d);
}

static bool index_runs(const lowering *l, smg_expr expr, int pass) {
    dependence d = {.l = l, .final_pass = LOWER_BEFORE, .running_pass = LOWER_BEFORE, .varying_pass = LOWER_BEFORE};
    smg_expr_leaves(l->k->exprs, expr, seek_folded_index, &d);
    return d.running_pass == pass;
}

/* The previous value of what the leaf reads of a running aggregate. */
static smg_status old_value(lowering *l, int leaf, int old_leaf, smg_expr *out_value) {
    smg_kleaf old = l->k->leaves.items[leaf];
    old.index = l->k->leaves.items[old_leaf].index;
    int number = lower_tile_leaf(l, old, -1);
    if (number < 0) return SMG_MEMORY;
    *out_value = smg_expr_leaf(l->k->exprs, old.kind, number);
    return *out_value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* All of them, so that roles have room for them. */
static smg_status make_old_leaves(lowering *l) {
    for (int i = 0, count = l->k->leaves.count; i < count; i++) {
        int owner = l->leaf_node.items[i];
        smg_expr unused;
        if (owner >= 0 && l->node[owner].old_leaf >= 0 && l->k->leaves.items[i].pick_count > 0)
            SMG_TRY(old_value(l, i, l->node[owner].old_leaf, &unused));
    }
    return SMG_OK;
}

/* Roles of all leaves while the axes `cut` vary; aggregates are the tiles of `pass`, or all for pass < 0. */
static smg_status make_roles(lowering *l, smg_axis_set cut, int pass, smg_slice_roles *out) {
    SMG_TRY(make_old_leaves(l));
    int count = l->k->leaves.count;
    smg_leaf_role *role = SMG_ARENA_ARRAY(l->arena, smg_leaf_role, (size_t)count + 1);
    smg_expr *old = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)count + 1);
    smg_expr *sum_of = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)count + 1);
    if (role == NULL || old == NULL || sum_of == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        int owner = l->leaf_node.items[i];
        old[i] = SMG_EXPR_NONE;
        sum_of[i] = owner >= 0 && l->node[owner].leaf == i ? plain_summand(l, owner) : SMG_EXPR_NONE;
        if (lower_leaf_axes(l, i) & cut)
            role[i] = SMG_ROLE_VARIES;
        else if (owner >= 0 && (pass < 0 || (l->node[owner].running && l->node[owner].pass == pass))) {
            role[i] = SMG_ROLE_AGGREGATE;
            if (l->node[owner].old_leaf >= 0) SMG_TRY(old_value(l, i, l->node[owner].old_leaf, &old[i]));
        }
    }
    *out = (smg_slice_roles){
        .pool = l->k->exprs, .role = role, .old = old, .sum_of = sum_of, .count = count, .asked = l->asked};
    return SMG_OK;
}

static smg_status make_tile(lowering *l, int i, const char *name) {
    const smg_snode *n = &l->space->nodes.items[i];
    lnode *ln = &l->node[i];
    int axes[SMG_TILE_AXES], count;
    if (!lower_tile_axes(l, n->result, SMG_TILE_AXES, axes, &count)) return lower_refuse_axes(l);
    ln->tile = lower_new_tile(l, name, smg_type_kind(n->type), SMG_REGISTER, axes, count, 0);
    if (ln->tile < 0) return SMG_MEMORY;
    smg_kleaf leaf = {.what = SMG_KLEAF_TILE, .kind = smg_type_kind(n->type), .index = ln->tile};
    ln->leaf = lower_new_leaf(l, leaf, i);
    if (ln->leaf < 0) return SMG_MEMORY;
    ln->value = smg_expr_leaf(l->k->exprs, leaf.kind, ln->leaf);
    return ln->value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* Every running aggregate of `pass` that `expr` reads gets a place for its previous value. */
static smg_status keep_old(lowering *l, int pass) {
    for (int j = 0; j < l->space->nodes.count; j++) {
        lnode *n = &l->node[j];
        if (!n->running || n->pass != pass || n->old_leaf >= 0 || n->leaf < 0) continue;
        const smg_tile *t = &l->k->tiles.items[n->tile];
        int tile = lower_new_tile(l, "old", smg_tile_kind(t), SMG_REGISTER, t->axis, t->axis_count, 0);
        if (tile < 0) return SMG_MEMORY;
        smg_kleaf leaf = {.what = SMG_KLEAF_TILE, .kind = l->k->leaves.items[n->leaf].kind, .index = tile};
        n->old_leaf = lower_new_leaf(l, leaf, -1);
        if (n->old_leaf < 0) return SMG_MEMORY;
    }
    return SMG_OK;
}

static void mark_leaf(void *user, int leaf) {
    lowering *l = user;
    const smg_kleaf *f = &l->k->leaves.items[leaf];
    for (int j = 0; f->what == SMG_KLEAF_TILE && j < l->space->nodes.count; j++) {
        int old = l->node[j].old_leaf;
        if (old >= 0 && l->k->leaves.items[old].index == f->index) l->node[j].stabiliser = true;
    }
}

static void name_leaf(void *user, int leaf, smg_text *text) {
    lowering *l = user;
    const smg_kleaf *f = &l->k->leaves.items[leaf];
    if (f->what == SMG_KLEAF_TILE)
        smg_text_add(text, l->k->tiles.items[f->index].name);
    else if (f->what == SMG_KLEAF_SIZE)
        smg_size_print(l->k->sizes, f->size, text);
    else if (l->k->accesses.items[f->index].buffer < 0)
        smg_text_add(text, "index");
    else
        smg_text_add(text, l->k->buffers.items[l->k->accesses.items[f->index].buffer].name);
}

static void tell(lowering *l, int i, const char *what, smg_expr expr) {
    if (l->why == NULL) return;
    smg_text_addf(l->why, "%s: %s ", smg_graph_describe(l->g, l->space->nodes.items[i].node), what);
    if (expr != SMG_EXPR_NONE) smg_expr_print(l->k->exprs, expr, l->why, name_leaf, l);
    smg_text_add(l->why, "\n");
}

/* A place for the number of elements that an update of the node's sum moves. What products add up is not counted. */
static smg_status make_count(lowering *l, int i, smg_combine combine, smg_expr *out_leaf) {
    lnode *ln = &l->node[i];
    *out_leaf = SMG_EXPR_NONE;
    if (combine != SMG_COMBINE_ADD || l->space->nodes.items[i].class_ != SMG_CLASS_REDUCE) return SMG_OK;
    const smg_tile *t = &l->k->tiles.items[ln->tile];
    ln->count = lower_new_tile(l, "n", SMG_KIND_FLOAT, SMG_REGISTER, t->axis, t->axis_count, 0);
    if (ln->count < 0) return SMG_MEMORY;
    int leaf = lower_new_leaf(l, (smg_kleaf){.what = SMG_KLEAF_TILE, .kind = SMG_KIND_FLOAT, .index = ln->count}, -1);
    if (leaf >= 0) *out_leaf = smg_expr_leaf(l->k->exprs, SMG_KIND_FLOAT, leaf);
    return *out_leaf != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

/* Where nothing is counted the place, the last one made, goes again. */
static void drop_count(lowering *l, lnode *ln) {
    if (ln->count < 0 || ln->counted != SMG_EXPR_NONE) return;
    ln->count = -1;
    l->k->tiles.count--;
    l->k->leaves.count--;
    l->leaf_node.count--;
}

/* Pass of a reduction over the temporal axis, and its update when it joins the pass of its source. */
static smg_status place_running(lowering *l, int i, smg_combine combine) {
    lnode *ln = &l->node[i];
    dependence d = depends(l, ln->core), r = depends(l, ln->right);
    int base = later(later(d.varying_pass, d.final_pass + 1), later(r.varying_pass, r.final_pass + 1));
    /* There are no updates for what runs in a right factor. */
    ln->pass = later(later(base, d.running_pass), later(r.running_pass + 1, 0));
    if (d.running_pass < 0 || d.running_pass < ln->pass) return SMG_OK;
    if (index_runs(l, ln->core, ln->pass)) {
        ln->pass++;
        return SMG_OK;
    }
    smg_slice_roles roles;
    const char *why = "";
    SMG_TRY(keep_old(l, ln->pass));
    SMG_TRY(make_roles(l, lower_cut(l), ln->pass, &roles));
    ln->pass = LOWER_NEVER;
    smg_update update = {.t = smg_expr_leaf(l->k->exprs, SMG_KIND_FLOAT, ln->leaf)};
    SMG_TRY(make_count(l, i, combine, &update.n));
    SMG_TRY(smg_slice_update(&roles, combine, ln->core, &update, &why));
    if (update.value != SMG_EXPR_NONE && (lower_expr_axes(l, update.value) & folded(&l->space->nodes.items[i])) != 0) {
        update.value = update.counted = SMG_EXPR_NONE;
        why = "what it follows is another for each element of an axis that it folds";
    }
    ln->update = update.value;
    ln->counted = update.counted;
    drop_count(l, ln);
    ln->pass = d.running_pass;
    if (ln->update == SMG_EXPR_NONE && combine == SMG_COMBINE_ADD &&
        l->space->nodes.items[i].class_ == SMG_CLASS_REDUCE) {
        bool taken = false;
        SMG_TRY(lower_take_terms(l, i, &roles, &taken));
        if (taken) return SMG_OK;
    }
    if (ln->update == SMG_EXPR_NONE) {
        ln->pass = d.running_pass + 1;
        if (l->why != NULL) {
            smg_text_addf(l->why, "%s: no update, because %s; a second pass reads its inputs again\n",
                          smg_graph_describe(l->g, l->space->nodes.items[i].node), why);
        }
        return SMG_OK;
    }
    smg_kernel_leaves(l->k, ln->update, mark_leaf, l);
    tell(l, i, "update-then-aggregate, running value becomes", ln->update);
    return SMG_OK;
}

static smg_status place(lowering *l, int i, smg_combine combine) {
    const smg_snode *n = &l->space->nodes.items[i];
    lnode *ln = &l->node[i];
    ln->running = (folded(n) & lower_cut(l)) != 0;
    ln->varies = (n->result & lower_cut(l)) != 0;
    if (ln->running) return place_running(l, i, combine);
    dependence d = depends(l, ln->core), r = depends(l, ln->right);
    int final_pass = later(later(d.final_pass, d.running_pass), later(r.final_pass, r.running_pass));
    int varying_pass = later(d.varying_pass, r.varying_pass);
    ln->pass = ln->varies ? later(later(varying_pass, final_pass + 1), 0) : final_pass;
    return SMG_OK;
}

/* A factor of the summand, or of one side of a product, that does not vary leaves the sum; the node's value takes it in
 * again. */
static smg_status postpone(lowering *l, int i, smg_expr *summand) {
    lnode *ln = &l->node[i];
    smg_slice_roles roles;
    smg_postponed p;
    SMG_TRY(make_roles(l, folded(&l->space->nodes.items[i]), -1, &roles));
    SMG_TRY(smg_slice_postpone(&roles, *summand, &p));
    if (p.factor == SMG_EXPR_NONE) return SMG_OK;
    *summand = p.core;
    ln->value = smg_expr_make(l->k->exprs, SMG_PRIM_MUL, ln->value, p.factor, SMG_EXPR_NONE);
    tell(l, i, "postponed past the sum: factor", p.factor);
    if (p.guard != SMG_EXPR_NONE) {
        smg_expr none = smg_expr_const(l->k->exprs, SMG_KIND_FLOAT, 0.0);
        ln->value = smg_expr_make(l->k->exprs, SMG_PRIM_SELECT, p.guard, ln->value, none);
        tell(l, i, "and 0 for all elements unless", p.guard);
    }
    return ln->value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
}

static smg_status plan_reduce(lowering *l, int i) {
    const smg_snode *n = &l->space->nodes.items[i];
    smg_combine combine = smg_op_combine(n->op);
    SMG_TRY(lower_operand(l, n, 0, &l->node[i].core));
    if (l->refused != NULL) return SMG_OK;
    if (folded(n) == 0) {
        l->node[i].value = l->node[i].core;
        l->node[i].core = SMG_EXPR_NONE;
        return SMG_OK;
    }
    SMG_TRY(make_tile(l, i, smg_combine_word(combine)));
    if (l->refused != NULL) return SMG_OK;
    if (combine == SMG_COMBINE_ADD) SMG_TRY(postpone(l, i, &l->node[i].core));
    return place(l, i, combine);
}

static smg_status plan_product(lowering *l, int i) {
    const smg_snode *n = &l->space->nodes.items[i];
    if (smg_type_kind(n->type) != SMG_KIND_FLOAT)
        return lower_refuse(l, "products stage floats, this one is of integers");
    lnode *ln = &l->node[i];
    int left = l->s->left[i];
    int slice = lower_carried_slice(l, n, left);
    if (slice < 0)
        SMG_TRY(lower_operand(l, n, left, &ln->core));
    else
        SMG_TRY(lower_slice_value(l, slice, &ln->core));
    SMG_TRY(lower_operand(l, n, 1 - left, &ln->right));
    if (l->refused != NULL) return SMG_OK;
    if (folded(n) == 0) { /* an outer product is a map */
        ln->value = smg_expr_make(l->k->exprs, SMG_PRIM_MUL, ln->core, ln->right, SMG_EXPR_NONE);
        ln->core = SMG_EXPR_NONE;
        return ln->value != SMG_EXPR_NONE ? SMG_OK : SMG_MEMORY;
    }
    SMG_TRY(make_tile(l, i, "acc"));
    if (l->refused != NULL) return SMG_OK;
    SMG_TRY(postpone(l, i, &ln->core));
    SMG_TRY(postpone(l, i, &ln->right));
    SMG_TRY(place(l, i, SMG_COMBINE_ADD));
    lower_go_on(l, i);
    return SMG_OK;
}

smg_status lower_plan_passes(lowering *l) {
    for (int i = 0; i < l->space->nodes.count && l->refused == NULL; i++) {
        const smg_snode *n = &l->space->nodes.items[i];
        if (n->streamed) continue;
        if (n->class_ == SMG_CLASS_REDUCE) SMG_TRY(plan_reduce(l, i));
        if (n->class_ == SMG_CLASS_CONTRACT) SMG_TRY(plan_product(l, i));
        if (l->node[i].core != SMG_EXPR_NONE && l->node[i].pass + 1 > l->passes &&
            (l->node[i].running || l->node[i].varies)) {
            l->passes = l->node[i].pass + 1;
        }
    }
    return SMG_OK;
}
