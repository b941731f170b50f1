/* Sharing. Every instruction so far evaluates its whole expression. What several of them need (a row that
 * is read for its mean, its variance and its result; an exponential that is summed and multiplied) becomes a
 * register tile before its first use; what has no columns but stands in an expression with columns
 * is evaluated once a row, and what takes long and has some of the columns (the angles of all heads) once for these. */
#include "lower/lower_internal.h"

#define SHARE_COST 4.0  /* multiply-adds from which keeping beats recomputing */
#define COLUMN_COST 8.0 /* the same of what is one of many elements of a lane */

typedef struct candidate {
    smg_expr expr;
    int uses, first, size;
} candidate;

typedef struct sharing {
    lowering *l;
    lower_stretch *stretch;
    int expr_count;
    int *uses; /* per expression: instructions that contain it */
    int *first;
    int *last;
    bool *mark;
    bool *wide;            /* some using instruction has columns */
    smg_axis_set *columns; /* of the using instructions; ~0 when they differ */
    smg_axis_set *common;  /* columns that all of them have */
} sharing;

static bool shares(const smg_instr *i) {
    return i->kind == SMG_I_SET || i->kind == SMG_I_REDUCE || i->kind == SMG_I_STORE;
}

smg_axis_set lower_instr_axes(const lowering *l, const smg_instr *instr) {
    smg_axis_set set = instr->dst >= 0 ? lower_axes_of(&l->k->tiles.items[instr->dst]) : 0;
    for (int a = 0; instr->kind != SMG_I_SET && a < instr->axis_count; a++) set |= SMG_AXIS_BIT(instr->axes[a]);
    return set;
}

static void visit(sharing *s, smg_expr e, int at, smg_axis_set columns) {
    if (e == SMG_EXPR_NONE || s->mark[e]) return;
    s->mark[e] = true;
    if (s->uses[e] == 0) {
        s->first[e] = at;
        s->columns[e] = s->common[e] = columns;
    } else if (s->columns[e] != columns) {
        s->columns[e] = ~(smg_axis_set)0;
    }
    s->common[e] &= columns;
    s->uses[e]++;
    s->last[e] = at;
    s->wide[e] = s->wide[e] || columns != 0;
    smg_expr_node n = *smg_expr_get(s->l->k->exprs, e);
    for (int k = 0; k < smg_prim_arity(n.prim); k++) visit(s, n.arg[k], at, columns);
}

static bool is_load(const lowering *l, smg_expr e) {
    const smg_expr_node *n = smg_expr_get(l->k->exprs, e);
    return n->prim == SMG_PRIM_LEAF && l->k->leaves.items[n->leaf].what == SMG_KLEAF_LOAD;
}

static smg_status count_uses(sharing *s) {
    lowering *l = s->l;
    size_t n = (size_t)smg_expr_count(l->k->exprs) + 1;
    s->expr_count = (int)n - 1;
    s->uses = SMG_ARENA_ARRAY(l->arena, int, n);
    s->first = SMG_ARENA_ARRAY(l->arena, int, n);
    s->last = SMG_ARENA_ARRAY(l->arena, int, n);
    s->mark = SMG_ARENA_ARRAY(l->arena, bool, n);
    s->wide = SMG_ARENA_ARRAY(l->arena, bool, n);
    s->columns = SMG_ARENA_ARRAY(l->arena, smg_axis_set, n);
    s->common = SMG_ARENA_ARRAY(l->arena, smg_axis_set, n);
    if (s->uses == NULL || s->first == NULL || s->last == NULL || s->mark == NULL || s->wide == NULL ||
        s->columns == NULL || s->common == NULL) {
        return SMG_MEMORY;
    }
    for (int i = s->stretch->from; i < s->stretch->to; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (!shares(in) || (in->kind == SMG_I_SET && is_load(l, in->expr))) continue;
        memset(s->mark, 0, n * sizeof(bool));
        visit(s, in->expr, i, lower_columns(l, lower_instr_axes(l, in)));
    }
    return SMG_OK;
}

static void seek_load(void *user, int leaf) {
    bool *found = ((void **)user)[1];
    const lowering *l = ((void **)user)[0];
    if (l->k->leaves.items[leaf].what == SMG_KLEAF_LOAD) *found = true;
}

static bool worth(const lowering *l, smg_expr e) {
    bool found = is_load(l, e);
    void *user[2] = {(void *)(uintptr_t)l, &found};
    const smg_expr_node *n = smg_expr_get(l->k->exprs, e);
    if (n->prim == SMG_PRIM_CONST || (n->prim == SMG_PRIM_LEAF && !found)) return false;
    smg_expr_leaves(l->k->exprs, e, seek_load, user);
    return found || smg_expr_cost(l->k->exprs, e) >= SHARE_COST;
}

/* Tiles that `e` reads must not be written between its first and its last use. */
typedef struct writes {
    const lowering *l;
    int from, to;
    bool stable;
} writes;

static void check_writes(void *user, int leaf) {
    writes *w = user;
    const smg_kleaf *f = &w->l->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_TILE) return;
    for (int i = w->from; i < w->to; i++) {
        if (w->l->k->code.items[i].dst == f->index) w->stable = false;
    }
}

/* What is folded is loaded by groups before; a fold takes one element after the other. */
static bool groups(const sharing *s, smg_expr e) {
    return s->l->s->groups && is_load(s->l, e) && s->l->k->code.items[s->first[e]].kind == SMG_I_REDUCE;
}

/* Does it take long, and have some of the columns of all who need it, not all? */
static bool lacks_columns(const sharing *s, smg_expr e, smg_axis_set columns) {
    int axes[SMG_TILE_AXES], count;
    bool fewer = columns != s->columns[e] && (columns & ~s->common[e]) == 0;
    return fewer && smg_expr_cost(s->l->k->exprs, e) >= COLUMN_COST &&
           lower_tile_axes(s->l, lower_expr_axes(s->l, e), SMG_TILE_AXES, axes, &count);
}

/* Do lanes hold it as a factor of a product by matrices, where sums fold it (lower_along.c)? */
static bool is_factor(const lowering *l, smg_expr e) {
    if (l->s->matrix == NULL || l->space->form != SMG_SPACE_LINEAR) return false;
    for (int i = 0; i < l->k->code.count; i++)
        if (l->k->code.items[i].kind == SMG_I_STAGE && l->k->code.items[i].expr == e) return true;
    return false;
}

static bool usable(const sharing *s, smg_expr e) {
    const lowering *l = s->l;
    if (s->uses[e] == 0 || !worth(l, e) || is_factor(l, e)) return false;
    smg_axis_set columns = lower_columns(l, lower_expr_axes(l, e));
    bool row_only = columns == 0 && s->wide[e] && smg_expr_cost(l->k->exprs, e) >= SHARE_COST;
    bool fewer = lacks_columns(s, e, columns);
    if (s->uses[e] < 2 && !row_only && !fewer && !groups(s, e)) return false;
    if (columns != 0 && columns != s->columns[e] && !fewer) return false;
    writes w = {.l = l, .from = s->first[e], .to = s->last[e], .stable = true};
    smg_kernel_leaves(l->k, e, check_writes, &w);
    return w.stable;
}

static int tree_size(const smg_exprs *pool, smg_expr e) {
    smg_expr_node n = *smg_expr_get(pool, e);
    int size = 1;
    for (int k = 0; k < smg_prim_arity(n.prim); k++) size += tree_size(pool, n.arg[k]);
    return size;
}

static bool pick(const sharing *s, candidate *out) {
    *out = (candidate){.expr = SMG_EXPR_NONE};
    for (smg_expr e = 0; e < s->expr_count; e++) {
        if (!usable(s, e)) continue;
        int size = tree_size(s->l->k->exprs, e);
        if (s->uses[e] < out->uses || (s->uses[e] == out->uses && size <= out->size)) continue;
        *out = (candidate){.expr = e, .uses = s->uses[e], .first = s->first[e], .size = size};
    }
    return out->expr != SMG_EXPR_NONE;
}

smg_expr lower_replace(smg_exprs *pool, smg_expr in, smg_expr what, smg_expr with) {
    if (in == what) return with;
    smg_expr_node n = *smg_expr_get(pool, in);
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    bool same = true;
    for (int k = 0; k < smg_prim_arity(n.prim); k++) {
        arg[k] = lower_replace(pool, n.arg[k], what, with);
        if (arg[k] == SMG_EXPR_NONE) return SMG_EXPR_NONE;
        same = same && arg[k] == n.arg[k];
    }
    return same ? in : smg_expr_make(pool, n.prim, arg[0], arg[1], arg[2]);
}

smg_status lower_set_apart(lowering *l, int at, smg_expr expr, const char *note, smg_expr *out_element) {
    smg_instr set = lower_blank(SMG_I_SET);
    int axes[SMG_TILE_AXES], count;
    if (!lower_tile_axes(l, lower_expr_axes(l, expr), SMG_TILE_AXES, axes, &count)) return lower_refuse_axes(l);
    set.dst = lower_new_tile(l, "t", smg_expr_get(l->k->exprs, expr)->kind, SMG_REGISTER, axes, count, 0);
    if (set.dst < 0) return SMG_MEMORY;
    set.expr = expr;
    set.note = note;
    smg_kleaf leaf = {.what = SMG_KLEAF_TILE, .index = set.dst, .kind = smg_tile_kind(&l->k->tiles.items[set.dst])};
    int id = lower_new_leaf(l, leaf, -1);
    if (id < 0) return SMG_MEMORY;
    *out_element = smg_expr_leaf(l->k->exprs, leaf.kind, id);
    return *out_element != SMG_EXPR_NONE ? lower_insert(l->k, at, set) : SMG_MEMORY;
}

static smg_status share_one(sharing *s, const candidate *c) {
    lowering *l = s->l;
    smg_expr with;
    SMG_TRY(lower_set_apart(l, c->first, c->expr, "shared", &with));
    if (l->refused != NULL) return SMG_OK;
    s->stretch->to++;
    for (int i = c->first + 1; i < s->stretch->to; i++) {
        smg_instr *in = &l->k->code.items[i];
        if (!shares(in)) continue;
        in->expr = lower_replace(l->k->exprs, in->expr, c->expr, with);
        if (in->expr == SMG_EXPR_NONE) return SMG_MEMORY;
    }
    return SMG_OK;
}

static smg_status share_stretch(lowering *l, lower_stretch *stretch) {
    for (int round = 0; round < 32 && l->refused == NULL; round++) {
        sharing s = {.l = l, .stretch = stretch};
        candidate c;
        SMG_TRY(count_uses(&s));
        if (!pick(&s, &c)) return SMG_OK;
        SMG_TRY(share_one(&s, &c));
    }
    return SMG_OK;
}

smg_status lower_share(lowering *l) {
    for (lower_stretch s = LOWER_NO_STRETCH; lower_next_stretch(l, &s);) SMG_TRY(share_stretch(l, &s));
    return SMG_OK;
}
