/* The program's structure: axes, passes, then the program in order. Staged-once operands first; one loop
 * per pass with the folds of that pass; what is final after a pass behind its loop; results that do not
 * vary at the end. */
#include "lower/lower_internal.h"

/* The grid's last axis is the one that its next block moves along. Where a product reads its factors where they lie,
 * the next block has other rows and the same columns, so that a core finds the right factor in its own cache: a block
 * has fewer rows than columns, and would read all of that factor for each few of them. So it is where schedules ask for
 * it: right factors that the cache does not keep come from memory once. */
static void put_rows_last(smg_kernel *k, int rows) {
    for (int g = 0; g + 1 < k->grid.count; g++) {
        if (k->grid.items[g] != rows) continue;
        k->grid.items[g] = k->grid.items[g + 1];
        k->grid.items[g + 1] = rows;
    }
}

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
    if (l->s->rows_next || (l->s->direct && !l->s->guarded)) put_rows_last(l->k, l->s->row_axis);
    return SMG_OK;
}

typedef struct need {
    lowering *l;
    bool *wanted;
} need;

static void want_operands(need *n, int node);

static void want_leaf(void *user, int leaf) {
    need *n = user;
    int owner = n->l->leaf_node.items[leaf];
    if (owner < 0 || n->wanted[owner] || !n->l->node[owner].varies) return;
    n->wanted[owner] = true;
    want_operands(n, owner);
}

static void want_operands(need *n, int node) {
    const lnode *of = &n->l->node[node];
    smg_kernel_leaves(n->l->k, of->core, want_leaf, n);
    if (of->right != SMG_EXPR_NONE) smg_kernel_leaves(n->l->k, of->right, want_leaf, n);
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
    smg_kernel_leaves(l->k, value, latest_leaf, &f);
    *out_pass = f.pass;
    return SMG_OK;
}

static bool stores_varying(const lowering *l, int i) {
    const smg_snode *n = &l->space->nodes.items[i];
    return n->output && (n->result & lower_cut(l)) != 0;
}

static smg_status emit_loop(lowering *l, int axis, int pass) {
    smg_instr *loop = lower_emit(l, SMG_I_LOOP);
    if (loop == NULL) return SMG_MEMORY;
    loop->axis_count = 1;
    loop->axes[0] = axis;
    loop->note = smg_arena_numbered(l->arena, "pass ", pass);
    return loop->note != NULL ? SMG_OK : SMG_MEMORY;
}

/* Of a pass, the innermost over slices of the temporal axis. */
static smg_status begin_loops(lowering *l, int pass) {
    for (int a = 0; a < l->space->axes.count; a++)
        if (l->s->serial & SMG_AXIS_BIT(a)) SMG_TRY(emit_loop(l, a, pass));
    return emit_loop(l, l->s->temporal, pass);
}

static smg_status end_loops(lowering *l) {
    for (int a = 0; a < l->space->axes.count; a++)
        if ((lower_cut(l) & SMG_AXIS_BIT(a)) && lower_emit(l, SMG_I_END) == NULL) return SMG_MEMORY;
    return SMG_OK;
}

/* One loop over the temporal axis: products that the pass needs, running folds, results that vary. */
static smg_status emit_pass(lowering *l, int pass, const int *store_in) {
    int count = l->space->nodes.count;
    need n = {.l = l, .wanted = SMG_ARENA_ARRAY(l->arena, bool, (size_t)count + 1)};
    if (n.wanted == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        if (material(l, i) && l->node[i].running && l->node[i].pass == pass) {
            SMG_TRY(lower_emit_init(l, i));
            want_operands(&n, i);
        }
        if (stores_varying(l, i) && store_in[i] == pass) {
            smg_expr value;
            SMG_TRY(lower_value(l, i, &value));
            smg_kernel_leaves(l->k, value, want_leaf, &n);
        }
    }
    SMG_TRY(begin_loops(l, pass));
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (material(l, i) && l->node[i].running && l->node[i].pass == pass) SMG_TRY(lower_emit_fold(l, i, true));
        if (material(l, i) && l->node[i].varies && n.wanted[i]) SMG_TRY(lower_emit_fold(l, i, false));
        if (stores_varying(l, i) && store_in[i] == pass) SMG_TRY(lower_emit_store(l, i));
    }
    SMG_TRY(end_loops(l));
    for (int i = 0; i < count && l->refused == NULL; i++)
        if (l->node[i].apart && l->node[i].pass == pass) SMG_TRY(lower_emit_join(l, i));
    return SMG_OK;
}

/* Folds that neither run nor vary and are final after `pass`. */
static smg_status emit_between(lowering *l, int pass) {
    for (int i = 0; i < l->space->nodes.count && l->refused == NULL; i++) {
        const lnode *n = &l->node[i];
        if (material(l, i) && !n->running && !n->varies && n->pass == pass) SMG_TRY(lower_emit_fold(l, i, false));
    }
    return SMG_OK;
}

static smg_status emit_program(lowering *l) {
    int count = l->space->nodes.count;
    if (l->space->repeat.count > 0) return lower_emit_bodies(l);
    int *store_in = SMG_ARENA_ARRAY(l->arena, int, (size_t)count + 1);
    if (store_in == NULL) return SMG_MEMORY;
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (!stores_varying(l, i)) continue;
        SMG_TRY(store_pass(l, i, &store_in[i]));
        if (store_in[i] + 1 > l->passes) l->passes = store_in[i] + 1;
    }
    if (l->passes > 0) SMG_TRY(emit_between(l, LOWER_BEFORE));
    for (int pass = 0; pass < l->passes && l->refused == NULL; pass++) {
        SMG_TRY(emit_pass(l, pass, store_in));
        if (pass + 1 < l->passes) SMG_TRY(emit_between(l, pass));
    }
    int last = l->passes - 1;
    for (int i = 0; i < count && l->refused == NULL; i++) {
        const lnode *n = &l->node[i];
        if (material(l, i) && !n->running && !n->varies && n->pass == last) SMG_TRY(lower_emit_fold(l, i, false));
    }
    for (int i = 0; i < count && l->refused == NULL; i++) {
        if (l->space->nodes.items[i].output && !stores_varying(l, i)) SMG_TRY(lower_emit_store(l, i));
    }
    return SMG_OK;
}

/* ---- what lanes fold apart ----------------------------------------------------------------------------- */

typedef struct reader {
    const lowering *l;
    int of; /* node */
    bool found;
} reader;

static void seek_node(void *user, int leaf) {
    reader *r = user;
    const lnode *n = &r->l->node[r->of];
    r->found = r->found || leaf == n->leaf || leaf == n->old_leaf;
}

static bool reads(const lowering *l, smg_expr expr, int of) {
    reader r = {.l = l, .of = of};
    if (expr != SMG_EXPR_NONE) smg_kernel_leaves(l->k, expr, seek_node, &r);
    return r.found;
}

/* Does the loop of its pass need the running value for something else than to go on with it? */
static smg_status is_read_inside(lowering *l, int of, bool *out_read) {
    for (int i = 0; i < l->space->nodes.count && !*out_read; i++) {
        const lnode *n = &l->node[i];
        bool inside = material(l, i) && (n->varies || (n->running && n->pass == l->node[of].pass));
        if (i != of && inside) *out_read = reads(l, n->core, of) || reads(l, n->right, of) || reads(l, n->update, of);
        if (!stores_varying(l, i)) continue;
        smg_expr value;
        SMG_TRY(lower_value(l, i, &value));
        *out_read = *out_read || (l->refused == NULL && reads(l, value, of));
    }
    return SMG_OK;
}

/* Between two slices lanes tell each other nothing that waits until behind the loop. Where all that runs is reductions
 * they all wait: what one corrects by is its lane's own. Beside a product, whose lanes are others, only those wait that
 * nobody reads. */
static smg_status mark_apart(lowering *l) {
    l->reduces = !smg_space_has_products(l->space);
    for (int i = 0; i < l->space->nodes.count && l->refused == NULL; i++) {
        bool running = material(l, i) && l->node[i].running;
        bool reduces = l->space->nodes.items[i].class_ == SMG_CLASS_REDUCE, read = !reduces;
        if (!running) continue;
        if (!l->reduces && reduces) SMG_TRY(is_read_inside(l, i, &read));
        l->node[i].apart = reduces && (l->reduces || !read);
    }
    return SMG_OK;
}

/* Does a loop over slices begin or end here? `depth`: loops inside of it that are open. */
static bool parts_stretches(const lowering *l, int at, int *depth) {
    const smg_instr *in = &l->k->code.items[at];
    if (in->kind == SMG_I_LOOP && ((lower_cut(l) & SMG_AXIS_BIT(in->axes[0])) || lower_is_repeat(l, in))) return true;
    if (in->kind == SMG_I_END && *depth == 0) return true;
    *depth += (in->kind == SMG_I_LOOP) - (in->kind == SMG_I_END);
    return false;
}

bool lower_next_stretch(const lowering *l, lower_stretch *s) {
    int depth = 0;
    s->from = s->to + 1;
    if (s->from > l->k->code.count) return false;
    for (s->to = s->from; s->to < l->k->code.count; s->to++)
        if (parts_stretches(l, s->to, &depth)) break;
    return true;
}

smg_status lower_structure(lowering *l) {
    SMG_TRY(make_axes(l));
    if (l->space->repeat.count > 0) SMG_TRY(lower_make_carried(l));
    if (l->refused == NULL) SMG_TRY(lower_plan_passes(l));
    if (l->refused == NULL) SMG_TRY(mark_apart(l));
    return l->refused == NULL ? emit_program(l) : SMG_OK;
}
