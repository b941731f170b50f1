/* Lowering, the driver: axes, passes, then the program in order. Staged-once operands first; one loop
 * per pass with the folds of that pass; what is final after a pass behind its loop; results that do not
 * vary at the end. */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

static smg_status make_axes(lowering *l) {
    for (int a = 0; a < l->space->axes.count; a++) {
        smg_kaxis *axis = SMG_ARRAY_PUSH(l->arena, &l->k->axes);
        if (axis == NULL) return SMG_MEMORY;
        *axis = (smg_kaxis){.name = l->space->axes.items[a].name,
                            .extent = l->space->axes.items[a].extent,
                            .tile = l->s->tile[a],
                            .grid = (l->s->grid & SMG_AXIS_BIT(a)) != 0};
        if (!axis->grid) continue;
        int *slot = SMG_ARRAY_PUSH(l->arena, &l->k->grid);
        if (slot == NULL) return SMG_MEMORY;
        *slot = a;
    }
    return SMG_OK;
}

typedef struct need {
    lowering *l;
    bool *wanted;
} need;

static void want_leaf(void *user, int leaf) {
    need *n = user;
    int owner = n->l->leaf_node.items[leaf];
    if (owner < 0 || n->wanted[owner] || !n->l->node[owner].varies) return;
    n->wanted[owner] = true;
    lower_leaves(n->l, n->l->node[owner].core, want_leaf, n);
    if (n->l->node[owner].right != SMG_EXPR_NONE) {
        lower_leaves(n->l, n->l->node[owner].right, want_leaf, n);
    }
}

static bool material(const lowering *l, int i) {
    return l->node[i].core != SMG_EXPR_NONE;
}

typedef struct latest {
    const lowering *l;
    int pass;
} latest;

static void latest_leaf(void *user, int leaf) {
    latest *f = user;
    int owner = f->l->leaf_node.items[leaf];
    if (owner < 0) return;
    const lnode *n = &f->l->node[owner];
    int pass = n->varies ? n->pass : n->pass + 1;
    if (pass > f->pass) f->pass = pass;
}

/* The pass in which a result that varies along the temporal axis can be stored. */
static smg_status store_pass(lowering *l, int i, int *out_pass) {
    smg_expr value;
    latest f = {.l = l, .pass = 0};
    SMG_TRY(lower_value(l, i, &value));
    if (l->refused != NULL) return SMG_OK;
    lower_leaves(l, value, latest_leaf, &f);
    *out_pass = f.pass;
    return SMG_OK;
}

static bool stores_varying(const lowering *l, int i) {
    const smg_snode *n = &l->space->nodes.items[i];
    return n->output && l->s->temporal >= 0 && (n->result & SMG_AXIS_BIT(l->s->temporal));
}

/* One loop over the temporal axis: products that the pass needs, running folds, results that vary. */
static smg_status emit_pass(lowering *l, int pass, const int *store_in) {
    int count = l->space->nodes.count;
    need n = {.l = l, .wanted = SMG_ARENA_ARRAY(l->arena, bool, (size_t)count + 1)};
    if (n.wanted == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        if (material(l, i) && l->node[i].running && l->node[i].pass == pass) {
            SMG_TRY(lower_emit_init(l, i));
            lower_leaves(l, l->node[i].core, want_leaf, &n);
        }
        if (stores_varying(l, i) && store_in[i] == pass) {
            smg_expr value;
            SMG_TRY(lower_value(l, i, &value));
            lower_leaves(l, value, want_leaf, &n);
        }
    }
    smg_instr *loop = lower_emit(l, SMG_I_LOOP);
    if (loop == NULL) return SMG_MEMORY;
    loop->axis_count = 1;
    loop->axes[0] = l->s->temporal;
    loop->note = smg_arena_format(l->arena, "pass %d", pass);
    int from = l->body.count;
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (material(l, i) && l->node[i].running && l->node[i].pass == pass) SMG_TRY(lower_emit_fold(l, i, true));
        if (material(l, i) && l->node[i].varies && n.wanted[i]) SMG_TRY(lower_emit_fold(l, i, false));
        if (stores_varying(l, i) && store_in[i] == pass) SMG_TRY(lower_emit_store(l, i));
    }
    SMG_TRY(lower_merge(l, from));
    SMG_TRY(lower_share(l, from));
    return lower_emit(l, SMG_I_END) != NULL ? SMG_OK : SMG_MEMORY;
}

/* Folds that neither run nor vary and are final after `pass`. */
static smg_status emit_between(lowering *l, int pass) {
    int from = l->body.count;
    for (int i = 0; i < l->space->nodes.count && l->refused == NULL; i++) {
        const lnode *n = &l->node[i];
        if (material(l, i) && !n->running && !n->varies && n->pass == pass) SMG_TRY(lower_emit_fold(l, i, false));
    }
    SMG_TRY(lower_merge(l, from));
    return lower_share(l, from);
}

static smg_status emit_program(lowering *l) {
    int count = l->space->nodes.count;
    int *store_in = SMG_ARENA_ARRAY(l->arena, int, (size_t)count + 1);
    if (store_in == NULL) return SMG_MEMORY;
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (!stores_varying(l, i)) continue;
        SMG_TRY(store_pass(l, i, &store_in[i]));
        if (store_in[i] + 1 > l->passes) l->passes = store_in[i] + 1;
    }
    int from = 0;
    if (l->passes > 0) SMG_TRY(emit_between(l, LOWER_BEFORE));
    for (int pass = 0; pass < l->passes && l->refused == NULL; pass++) {
        SMG_TRY(emit_pass(l, pass, store_in));
        from = l->body.count;
        if (pass + 1 < l->passes) SMG_TRY(emit_between(l, pass));
    }
    /* The last straight stretch is shared as one: folds and results together. */
    int last = l->passes - 1;
    for (int i = 0; i < count && l->refused == NULL; i++) {
        const lnode *n = &l->node[i];
        if (material(l, i) && !n->running && !n->varies && n->pass == last) SMG_TRY(lower_emit_fold(l, i, false));
    }
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (l->space->nodes.items[i].output && !stores_varying(l, i)) SMG_TRY(lower_emit_store(l, i));
    }
    if (l->refused != NULL) return SMG_OK;
    SMG_TRY(lower_merge(l, from));
    return lower_share(l, from);
}

static smg_status assemble(lowering *l) {
    const code_list *parts[2] = {&l->head, &l->body};
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < parts[p]->count; i++) {
            smg_instr *slot = SMG_ARRAY_PUSH(l->arena, &l->k->code);
            if (slot == NULL) return SMG_MEMORY;
            *slot = parts[p]->items[i];
        }
    }
    return SMG_OK;
}

/* Tiles that nothing writes go, views that no product reads too (previous values nobody corrects by, the twin of a
 * shared stage). Leaves of theirs stand in no expression; they become the number 0, which is valid beside any tiles. */
static smg_status drop_tiles(lowering *l) {
    smg_kernel *k = l->k;
    int *renumber = SMG_ARENA_ARRAY(l->arena, int, (size_t)k->tiles.count + 1);
    if (renumber == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->dst >= 0) renumber[in->dst] = 1;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->a].residence == SMG_VIEW) renumber[in->a] = 1;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->b].residence == SMG_VIEW) renumber[in->b] = 1;
    }
    int kept = 0;
    for (int t = 0; t < k->tiles.count; t++) {
        bool used = renumber[t] != 0;
        renumber[t] = used ? kept : -1;
        if (used) k->tiles.items[kept++] = k->tiles.items[t];
    }
    k->tiles.count = kept;
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->dst >= 0) in->dst = renumber[in->dst];
        if (in->kind != SMG_I_MMA && in->kind != SMG_I_SPILL && in->kind != SMG_I_PUT) continue;
        in->a = renumber[in->a];
        if (in->kind == SMG_I_MMA) in->b = renumber[in->b];
    }
    for (int f = 0; f < k->leaves.count; f++) {
        smg_kleaf *leaf = &k->leaves.items[f];
        if (leaf->what != SMG_KLEAF_TILE) continue;
        leaf->index = renumber[leaf->index];
        if (leaf->index < 0) *leaf = (smg_kleaf){.what = SMG_KLEAF_SIZE, .kind = SMG_KIND_INT, .size = SMG_SIZE_ZERO};
    }
    return SMG_OK;
}

static smg_status start(lowering *l, const char *name) {
    smg_kernel *k = l->k;
    *k = (smg_kernel){.name = name,
                      .arena = l->arena,
                      .sizes = l->g->sizes,
                      .lanes = l->s->lane_rows * l->s->lane_cols * l->s->lane_depth,
                      .subgroup = l->s->subgroup};
    SMG_TRY(smg_exprs_create(l->arena, &k->exprs));
    for (int i = 0; i < SMG_SPACE_NODES; i++) {
        l->node[i] = (lnode){.value = SMG_EXPR_NONE,
                             .tile = -1,
                             .leaf = -1,
                             .old_leaf = -1,
                             .pass = LOWER_BEFORE,
                             .core = SMG_EXPR_NONE,
                             .right = SMG_EXPR_NONE,
                             .update = SMG_EXPR_NONE};
    }
    l->view_value = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->views.count + 1);
    l->space_leaf = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->leaves.count + 1);
    if (l->view_value == NULL || l->space_leaf == NULL) return SMG_MEMORY;
    for (int v = 0; v < l->space->views.count; v++) l->view_value[v] = SMG_EXPR_NONE;
    for (int f = 0; f < l->space->leaves.count; f++) l->space_leaf[f] = SMG_EXPR_NONE;
    return make_axes(l);
}

smg_status smg_kernel_lower(const smg_schedule *schedule, smg_arena *arena, const char *name, smg_text *why,
                            smg_kernel **out_kernel, const char **out_refused) {
    *out_kernel = NULL;
    *out_refused = NULL;
    lowering *l = SMG_ARENA_NEW(arena, lowering);
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    if (l == NULL || k == NULL) return SMG_MEMORY;
    l->s = schedule;
    l->space = schedule->space;
    l->g = schedule->space->graph;
    l->ctx = smg_arena_context(arena);
    l->arena = arena;
    l->k = k;
    l->why = why;
    SMG_TRY(start(l, name));
    SMG_TRY(lower_plan_passes(l));
    if (l->refused == NULL) SMG_TRY(emit_program(l));
    if (l->refused == NULL && l->s->lane_depth > 1) SMG_TRY(lower_join(l));
    if (l->refused == NULL && l->s->ahead > 0) SMG_TRY(lower_pipeline(l));
    if (l->refused == NULL) {
        SMG_TRY(assemble(l));
        SMG_TRY(drop_tiles(l));
        SMG_TRY(lower_distribute(k, l->s));
        if (l->s->reuse) SMG_TRY(lower_memory(l));
        SMG_TRY(lower_barriers(l));
        SMG_TRY(kernel_live_keep(k));
    }
    *out_refused = l->refused;
    if (l->refused == NULL) *out_kernel = k;
    return smg_context_status(l->ctx);
}
