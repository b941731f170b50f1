/* Instructions of one reduction, one product, one result. */
#include <float.h>

#include "lower/lower_internal.h"

static smg_axis_set folded(const smg_snode *n) {
    return n->iterates & ~n->result;
}

smg_instr lower_blank(smg_instr_kind kind) {
    return (smg_instr){.kind = kind, .dst = -1, .a = -1, .b = -1, .layout = -1, .expr = SMG_EXPR_NONE, .note = ""};
}

smg_instr *lower_emit(lowering *l, smg_instr_kind kind) {
    smg_instr *instr = SMG_ARRAY_PUSH(l->arena, &l->k->code);
    if (instr == NULL) return NULL;
    *instr = lower_blank(kind);
    return instr;
}

smg_status lower_insert(smg_kernel *k, int at, smg_instr instr) {
    if (SMG_ARRAY_PUSH(k->arena, &k->code) == NULL) return SMG_MEMORY;
    memmove(k->code.items + at + 1, k->code.items + at, (size_t)(k->code.count - 1 - at) * sizeof(smg_instr));
    k->code.items[at] = instr;
    return SMG_OK;
}

int lower_find(const smg_kernel *k, int from, int to, smg_instr_kind kind, int dst) {
    for (int i = from; i < to; i++)
        if (k->code.items[i].kind == kind && (dst < 0 || k->code.items[i].dst == dst)) return i;
    return -1;
}

smg_expr lower_leaf_of(smg_kernel *k, smg_kleaf leaf) {
    smg_kleaf *slot = SMG_ARRAY_PUSH(k->arena, &k->leaves);
    if (slot == NULL) return SMG_EXPR_NONE;
    *slot = leaf;
    return smg_expr_leaf(k->exprs, leaf.kind, k->leaves.count - 1);
}

smg_expr lower_tile_element(smg_kernel *k, int tile) {
    smg_kind kind = smg_tile_kind(&k->tiles.items[tile]);
    return lower_leaf_of(k, (smg_kleaf){.what = SMG_KLEAF_TILE, .kind = kind, .index = tile});
}

smg_expr lower_size(smg_kernel *k, smg_size size) {
    return lower_leaf_of(k, (smg_kleaf){.what = SMG_KLEAF_SIZE, .kind = SMG_KIND_INT, .size = size});
}

smg_status lower_emit_set(lowering *l, int tile, smg_expr expr, const char *note) {
    smg_instr *set = lower_emit(l, SMG_I_SET);
    if (set == NULL || expr == SMG_EXPR_NONE) return SMG_MEMORY;
    set->dst = tile;
    set->expr = expr;
    set->note = note;
    return SMG_OK;
}

static smg_status emit_simple(lowering *l, smg_instr_kind kind, int axis) {
    smg_instr *instr = lower_emit(l, kind);
    if (instr == NULL) return SMG_MEMORY;
    if (axis >= 0) {
        instr->axis_count = 1;
        instr->axes[0] = axis;
    }
    return SMG_OK;
}

static double start_value(const lnode *n, smg_combine combine) {
    double identity = smg_combine_identity(combine);
    if (!n->stabiliser || (combine != SMG_COMBINE_MAX && combine != SMG_COMBINE_MIN)) return identity;
    return identity < 0 ? -(double)FLT_MAX : (double)FLT_MAX;
}

/* Before a slice is folded in: keep the old value for others, correct this one for them. */
static smg_status prepare_running(lowering *l, lnode *n) {
    if (n->old_leaf >= 0 && n->stabiliser) {
        int old = l->k->leaves.items[n->old_leaf].index;
        smg_expr now = smg_expr_leaf(l->k->exprs, l->k->leaves.items[n->leaf].kind, n->leaf);
        SMG_TRY(lower_emit_set(l, old, now, "previous value"));
    }
    if (n->update == SMG_EXPR_NONE) return SMG_OK;
    return lower_emit_set(l, n->tile, n->update, "update: derived");
}

/* One over the axes that the node folds. */
static smg_status emit_reduce(lowering *l, int node, smg_instr what) {
    smg_instr *reduce = lower_emit(l, SMG_I_REDUCE);
    if (reduce == NULL) return SMG_MEMORY;
    reduce->dst = what.dst;
    reduce->expr = what.expr;
    reduce->combine = what.combine;
    reduce->accumulate = what.accumulate;
    reduce->apart = what.accumulate && l->node[node].apart;
    reduce->note = what.note;
    smg_axis_set axes = folded(&l->space->nodes.items[node]);
    if (!lower_tile_axes(l, axes, SMG_TILE_AXES, reduce->axes, &reduce->axis_count)) return lower_refuse_axes(l);
    return SMG_OK;
}

smg_status lower_emit_fold(lowering *l, int node, bool accumulate) {
    const smg_snode *n = &l->space->nodes.items[node];
    lnode *ln = &l->node[node];
    if (n->class_ == SMG_CLASS_CONTRACT) return lower_emit_product(l, node, accumulate);
    if (accumulate) SMG_TRY(prepare_running(l, ln));
    if (accumulate && ln->counted != SMG_EXPR_NONE)
        SMG_TRY(emit_reduce(l, node,
                            (smg_instr){.dst = ln->count,
                                        .expr = ln->counted,
                                        .combine = SMG_COMBINE_ADD,
                                        .accumulate = true,
                                        .note = "elements that the update moves"}));
    for (int i = 0; i < ln->more_count; i++)
        SMG_TRY(emit_reduce(l, node,
                            (smg_instr){.dst = ln->more_tile[i],
                                        .expr = ln->more[i],
                                        .combine = SMG_COMBINE_ADD,
                                        .accumulate = accumulate,
                                        .note = "another term"}));
    const char *note = smg_arena_string(l->arena, smg_graph_describe(l->g, n->node));
    if (note == NULL) return SMG_MEMORY;
    return emit_reduce(l, node,
                       (smg_instr){.dst = ln->tile,
                                   .expr = ln->core,
                                   .combine = smg_op_combine(n->op),
                                   .accumulate = accumulate,
                                   .note = note});
}

static smg_status emit_join(lowering *l, int node, int tile) {
    const smg_snode *n = &l->space->nodes.items[node];
    smg_instr *join = lower_emit(l, SMG_I_JOIN);
    if (join == NULL) return SMG_MEMORY;
    join->dst = tile;
    join->combine = smg_op_combine(n->op);
    if (!lower_tile_axes(l, folded(n), SMG_TILE_AXES, join->axes, &join->axis_count)) return lower_refuse_axes(l);
    join->note = smg_arena_string(l->arena, smg_graph_describe(l->g, n->node));
    return join->note != NULL ? SMG_OK : SMG_MEMORY;
}

smg_status lower_emit_join(lowering *l, int node) {
    lnode *ln = &l->node[node];
    if (l->reduces) SMG_TRY(prepare_running(l, ln));
    for (int i = 0; i < ln->more_count && l->refused == NULL; i++) SMG_TRY(emit_join(l, node, ln->more_tile[i]));
    return l->refused == NULL ? emit_join(l, node, ln->tile) : SMG_OK;
}

smg_status lower_emit_init(lowering *l, int node) {
    const smg_snode *n = &l->space->nodes.items[node];
    const lnode *ln = &l->node[node];
    smg_combine combine = n->class_ == SMG_CLASS_REDUCE ? smg_op_combine(n->op) : SMG_COMBINE_ADD;
    smg_kind kind = smg_tile_kind(&l->k->tiles.items[ln->tile]);
    if (ln->counted != SMG_EXPR_NONE)
        SMG_TRY(lower_emit_set(l, ln->count, smg_expr_const(l->k->exprs, SMG_KIND_FLOAT, 0), "start"));
    if (ln->pivot >= 0) SMG_TRY(lower_emit_set(l, ln->pivot, ln->pivot_of, "pivot"));
    for (int i = 0; i < ln->more_count; i++)
        SMG_TRY(lower_emit_set(l, ln->more_tile[i], smg_expr_const(l->k->exprs, SMG_KIND_FLOAT, 0), "start"));
    return lower_emit_set(l, ln->tile, smg_expr_const(l->k->exprs, kind, start_value(ln, combine)), "start");
}

smg_status lower_emit_store(lowering *l, int node) {
    const smg_snode *n = &l->space->nodes.items[node];
    const smg_sview *view = &l->space->views.items[n->store];
    smg_expr value;
    SMG_TRY(l->carried >= 0 ? lower_carried(l, view, &value) : lower_value(l, node, &value));
    if (l->refused != NULL) return SMG_OK;
    if (view->axis_count > SMG_ACCESS_AXES) return lower_refuse(l, "a result has too many axes");
    int buffer = lower_buffer(l, l->carried >= 0 ? l->space->repeat.last : n->node, true);
    smg_access *access = SMG_ARRAY_PUSH(l->arena, &l->k->accesses);
    smg_instr *store = lower_emit(l, SMG_I_STORE);
    if (buffer < 0 || access == NULL || store == NULL) return SMG_MEMORY;
    *access =
        (smg_access){.buffer = buffer, .offset = view->offset, .axis_count = view->axis_count, .index = SMG_EXPR_NONE};
    memcpy(access->axis, view->axis, (size_t)view->axis_count * sizeof(int));
    memcpy(access->stride, view->stride, (size_t)view->axis_count * sizeof(smg_size));
    store->a = l->k->accesses.count - 1;
    store->expr = value;
    if (!lower_tile_axes(l, n->result, SMG_TILE_AXES, store->axes, &store->axis_count)) return lower_refuse_axes(l);
    store->note = l->k->buffers.items[buffer].name;
    return SMG_OK;
}

/* ---- products --------------------------------------------------------------------------------- */

typedef struct unit_seek {
    const lowering *l;
    int axis;
} unit_seek;

static void seek_unit(void *user, int leaf) {
    unit_seek *s = user;
    const smg_kleaf *f = &s->l->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_LOAD) return;
    const smg_access *access = &s->l->k->accesses.items[f->index];
    smg_size one = smg_size_const(s->l->g->sizes, 1);
    for (int i = 0; i < access->axis_count; i++) {
        if (access->stride[i] == one) s->axis = access->axis[i];
    }
}

/* The axis of `axes` along which `expr` reads memory with stride 1, if any, goes last. */
static void order_for_reads(const lowering *l, smg_expr expr, int *axes, int count) {
    unit_seek s = {.l = l, .axis = -1};
    smg_expr_leaves(l->k->exprs, expr, seek_unit, &s);
    for (int i = 0; i + 1 < count; i++) {
        if (axes[i] != s.axis) continue;
        int axis = axes[i];
        memmove(axes + i, axes + i + 1, (size_t)(count - 1 - i) * sizeof(int));
        axes[count - 1] = axis;
        return;
    }
}

static smg_status emit_stage(lowering *l, int tile, smg_expr expr, const char *note) {
    smg_instr *stage = lower_emit(l, SMG_I_STAGE);
    if (stage == NULL) return SMG_MEMORY;
    const smg_tile *t = &l->k->tiles.items[tile];
    stage->dst = tile;
    stage->expr = expr;
    stage->axis_count = t->axis_count;
    memcpy(stage->axes, t->axis, sizeof(stage->axes));
    order_for_reads(l, expr, stage->axes, stage->axis_count);
    stage->note = note;
    return SMG_OK;
}

typedef struct product {
    const smg_snode *n;
    lnode *ln;
    smg_axis_set k;
    int mma; /* axis of the MMA */
    int loops[8], loop_count;
    smg_expr factor[2]; /* left, right */
    bool held[2];       /* computed in the block */
    int tile[2];        /* shared tiles, or views */
    bool sliced;        /* the left one is a slice of what is carried from body to body */
} product;

static bool tile_covers(const lowering *l, int axis) {
    int64_t low, high;
    smg_size_bounds(l->g->sizes, l->space->axes.items[axis].extent, &low, &high);
    return high <= l->s->tile[axis];
}

typedef struct tile_seek {
    const smg_kernel *k;
    bool found;
} tile_seek;

static void seek_tile(void *user, int leaf) {
    tile_seek *s = user;
    if (s->k->leaves.items[leaf].what == SMG_KLEAF_TILE) s->found = true;
}

smg_axis_set lower_axes_of(const smg_tile *tile) {
    smg_axis_set set = 0;
    for (int i = 0; i < tile->axis_count; i++) set |= SMG_AXIS_BIT(tile->axis[i]);
    return set;
}

bool lower_reads_tiles(const smg_kernel *k, smg_expr expr) {
    tile_seek s = {.k = k};
    smg_kernel_leaves(k, expr, seek_tile, &s);
    return s.found;
}

static smg_status plan_one(lowering *l, int node, product *p) {
    *p = (product){.n = &l->space->nodes.items[node], .ln = &l->node[node], .mma = -1};
    p->k = folded(p->n);
    p->factor[0] = p->ln->core;
    p->factor[1] = p->ln->right;
    int slice = lower_carried_slice(l, p->n, l->s->left[node]);
    p->sliced = slice >= 0;
    p->tile[0] = slice;
    for (int side = p->sliced; side < 2; side++) p->held[side] = lower_reads_tiles(l->k, p->factor[side]);
    for (int a = 0; a < l->space->axes.count; a++) {
        if (!(p->k & SMG_AXIS_BIT(a))) continue;
        if (l->s->tile[a] > 1 && p->mma >= 0 && l->s->tile[p->mma] > 1) {
            return lower_refuse(l, "two wide contraction axes");
        }
        if (p->mma < 0 || l->s->tile[a] > 1) p->mma = a;
    }
    for (int a = 0; a < l->space->axes.count; a++) {
        bool open = a == l->s->temporal;
        if (!(p->k & SMG_AXIS_BIT(a)) || open || tile_covers(l, a)) continue;
        if (p->held[0] || p->held[1]) return lower_refuse(l, "a computed operand would be read in slices");
        p->loops[p->loop_count++] = a;
    }
    return SMG_OK;
}

/* The operands' tiles, as views of memory. */
static smg_status make_views(lowering *l, product *p) {
    smg_tile *a = &l->k->tiles.items[p->tile[0]], *b = &l->k->tiles.items[p->tile[1]];
    bool good =
        !p->held[0] && !p->held[1] && l->s->temporal < 0 &&
        lower_view_operands(l, p->factor[0], p->factor[1], b->axis[b->axis_count - 1], p->mma, &a->access, &b->access);
    if (!good) return lower_refuse(l, "an operand of a product is not read where it lies");
    a->residence = b->residence = SMG_VIEW;
    a->pad = b->pad = 0;
    return SMG_OK;
}

/* Those of a value's axes that its tile has, and those along which it has several elements. */
static smg_axis_set spanned(const lowering *l, smg_axis_set set) {
    return lower_columns(l, set) | (l->s->row_axis >= 0 ? set & SMG_AXIS_BIT(l->s->row_axis) : 0);
}

static smg_axis_set wide(const lowering *l, smg_axis_set set) {
    for (int a = 0; a < l->space->axes.count; a++)
        if (l->s->tile[a] == 1) set &= ~SMG_AXIS_BIT(a);
    return set;
}

/* The left operand has its rows, then k; the right one k, then all columns. */
static smg_status make_shared(lowering *l, product *p) {
    int axes[SMG_TILE_AXES + 1], count = 0;
    smg_axis_set k = SMG_AXIS_BIT(p->mma), row = l->s->row_axis >= 0 ? SMG_AXIS_BIT(l->s->row_axis) : 0;
    smg_axis_set left = spanned(l, lower_expr_axes(l, p->factor[0])) & ~k;
    smg_axis_set right = spanned(l, p->n->result) & ~row & ~wide(l, left);
    if (wide(l, left) & ~p->n->result) return lower_refuse(l, "a left factor has axes that the product lacks");
    if (wide(l, spanned(l, lower_expr_axes(l, p->factor[1])) & ~k & ~right))
        return lower_refuse(l, "both factors of a product go over one axis of it");
    if (!lower_tile_axes(l, left, SMG_TILE_AXES - 1, axes, &count)) return lower_refuse_axes(l);
    axes[count++] = p->mma;
    if (!p->sliced) p->tile[0] = lower_new_tile(l, "sa", SMG_KIND_FLOAT, SMG_SHARED, axes, count, SMG_OPERAND_PAD);
    axes[0] = p->mma;
    if (!lower_tile_axes(l, right, SMG_TILE_AXES - 1, axes + 1, &count)) return lower_refuse_axes(l);
    p->tile[1] = lower_new_tile(l, "sb", SMG_KIND_FLOAT, SMG_SHARED, axes, count + 1, SMG_OPERAND_PAD);
    if (p->tile[0] < 0 || p->tile[1] < 0) return SMG_MEMORY;
    if (l->s->direct) return make_views(l, p);
    return SMG_OK;
}

static const char *const operand_note[] = {"left operand", "right operand"};

/* An operand that is computed in the block: into registers of the lanes that have what it is made of, then to all. */
static smg_status spill_operand(lowering *l, product *p, int side) {
    int axes[SMG_TILE_AXES], count;
    smg_axis_set set = lower_axes_of(&l->k->tiles.items[p->tile[side]]);
    if (spanned(l, lower_expr_axes(l, p->factor[side])) & ~set)
        return lower_refuse(l, "a computed operand has axes that the product lacks");
    if (!lower_tile_axes(l, set, SMG_TILE_AXES, axes, &count)) return lower_refuse_axes(l);
    int tile = lower_new_tile(l, "v", SMG_KIND_FLOAT, SMG_REGISTER, axes, count, 0);
    if (tile < 0) return SMG_MEMORY;
    SMG_TRY(lower_emit_set(l, tile, p->factor[side], operand_note[side]));
    smg_instr *spill = lower_emit(l, SMG_I_SPILL);
    if (spill == NULL) return SMG_MEMORY;
    spill->dst = p->tile[side];
    spill->a = tile;
    return SMG_OK;
}

/* The last `count` instructions move to the program's head. */
static void move_to_head(lowering *l, int count) {
    smg_instr moved[2];
    smg_instr *code = l->k->code.items;
    int rest = l->k->code.count - count - l->head;
    memcpy(moved, code + l->head + rest, (size_t)count * sizeof *moved);
    memmove(code + l->head + count, code + l->head, (size_t)rest * sizeof *moved);
    memcpy(code + l->head, moved, (size_t)count * sizeof *moved);
    l->head += count;
}

/* A staged left operand that no open loop changes is staged once, before everything. One that is the same for every k
 * still has as many columns as a slice has k. */
static smg_status stage_left(lowering *l, product *p) {
    bool open = l->s->temporal >= 0 && p->loop_count == 0 && p->mma != l->s->temporal;
    bool fixed = open && !(lower_expr_axes(l, p->factor[0]) & SMG_AXIS_BIT(l->s->temporal));
    if (!fixed) return emit_stage(l, p->tile[0], p->factor[0], operand_note[0]);
    SMG_TRY(emit_stage(l, p->tile[0], p->factor[0], "left operand, the same for all slices"));
    SMG_TRY(emit_simple(l, SMG_I_BARRIER, -1));
    move_to_head(l, 2);
    return SMG_OK;
}

/* A sum that goes by in the slices of a product by matrices: lanes fold what they have apart (lower_join.c). */
static smg_status emit_sum(lowering *l, int node, const product *p) {
    smg_expr summed = smg_expr_make(l->k->exprs, SMG_PRIM_MUL, p->factor[0], p->factor[1], SMG_EXPR_NONE);
    const char *note = smg_arena_string(l->arena, smg_graph_describe(l->g, p->n->node));
    if (summed == SMG_EXPR_NONE || note == NULL) return SMG_MEMORY;
    if (p->loop_count != 1) return lower_refuse(l, "a sum beside a product by matrices has no slices of its own");
    SMG_TRY(lower_emit_init(l, node));
    SMG_TRY(emit_simple(l, SMG_I_LOOP, p->loops[0]));
    SMG_TRY(emit_reduce(
        l, node,
        (smg_instr){.dst = p->ln->tile, .expr = summed, .combine = SMG_COMBINE_ADD, .accumulate = true, .note = note}));
    l->k->code.items[l->k->code.count - 1].apart = true;
    return emit_simple(l, SMG_I_END, -1);
}

smg_status lower_emit_product(lowering *l, int node, bool accumulate) {
    product p;
    SMG_TRY(plan_one(l, node, &p));
    if (l->refused != NULL) return SMG_OK;
    if (p.n->operand_count == 1 && l->s->matrix != NULL) return emit_sum(l, node, &p);
    SMG_TRY(make_shared(l, &p));
    if (l->refused != NULL) return SMG_OK;
    if (accumulate)
        SMG_TRY(prepare_running(l, p.ln));
    else if (!p.ln->goes_on)
        SMG_TRY(lower_emit_init(l, node));
    for (int side = 0; side < 2; side++)
        if (p.held[side]) SMG_TRY(spill_operand(l, &p, side));
    if (l->refused != NULL) return SMG_OK;
    for (int i = 0; i < p.loop_count; i++) SMG_TRY(emit_simple(l, SMG_I_LOOP, p.loops[i]));
    if (!p.held[0] && !p.sliced && !l->s->direct) SMG_TRY(stage_left(l, &p));
    if (!p.held[1] && !l->s->direct) SMG_TRY(emit_stage(l, p.tile[1], p.factor[1], operand_note[1]));
    if (!l->s->direct) SMG_TRY(emit_simple(l, SMG_I_BARRIER, -1));
    smg_instr *mma = lower_emit(l, SMG_I_MMA);
    if (mma == NULL) return SMG_MEMORY;
    mma->dst = p.ln->tile;
    mma->a = p.tile[0];
    mma->b = p.tile[1];
    mma->axis_count = 1;
    mma->axes[0] = p.mma;
    mma->note = smg_arena_string(l->arena, smg_graph_describe(l->g, p.n->node));
    if (!l->s->direct) SMG_TRY(emit_simple(l, SMG_I_BARRIER, -1));
    for (int i = 0; i < p.loop_count; i++) SMG_TRY(emit_simple(l, SMG_I_END, -1));
    return SMG_OK;
}
