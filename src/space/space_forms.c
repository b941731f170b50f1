/* The forms of index maps (affine/), over atoms: whether one is a single run (a plain relabeling), what splits when it
 * is divided by an extent, and its value as an expression. A division that is not proved becomes an index: an
 * expression that the kernel evaluates. */
#include "space/space_internal.h"

bool smg_space_is_one(const smg_space_builder *b, smg_size size) {
    return size == b->one;
}

void smg_dim_of_list(smg_space_builder *b, const smg_atom_list *list, smg_affine *out) {
    smg_size run = b->one;
    *out = (smg_affine){.count = list->count};
    for (int i = list->count - 1; i >= 0; i--) {
        out->term[i] = (smg_affine_term){.index = list->atom[i], .by = run};
        if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[list->atom[i]].extent);
    }
}

bool smg_dim_resolve(smg_space_builder *b, smg_affine *dim) {
    smg_affine old = *dim;
    dim->count = 0;
    for (int t = 0; t < old.count; t++) {
        smg_atom_list list = {.count = 1, .atom = {old.term[t].index}};
        bool atom = old.term[t].index >= 0;
        if (atom && !smg_atom_resolve(&b->atoms, &list, &list)) return false;
        if (dim->count + list.count > SMG_AFFINE_TERMS) return false;
        smg_size run = old.term[t].by;
        for (int i = list.count - 1; i >= 0; i--) {
            dim->term[dim->count + i] = (smg_affine_term){.index = list.atom[i], .by = run};
            if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[list.atom[i]].extent);
        }
        dim->count += list.count;
    }
    return true;
}

bool smg_dim_run(smg_space_builder *b, const smg_affine *dim, smg_atom_list *out_list, smg_size *out_unit) {
    smg_affine d = *dim;
    if (!smg_dim_resolve(b, &d) || d.count > SMG_ATOM_LIST) return false;
    for (int t = 0; t < d.count; t++) {
        if (d.term[t].index < 0) return false;
    }
    *out_list = (smg_atom_list){.count = d.count};
    *out_unit = d.count > 0 ? d.term[d.count - 1].by : b->one;
    smg_size run = *out_unit;
    for (int i = d.count - 1; i >= 0; i--) {
        if (d.term[i].by != run) return false;
        out_list->atom[i] = d.term[i].index;
        if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[d.term[i].index].extent);
    }
    return true;
}

bool smg_dim_plain(smg_space_builder *b, const smg_affine *dim, smg_atom_list *out_list) {
    smg_size unit;
    return dim->begin == SMG_SIZE_ZERO && smg_dim_run(b, dim, out_list, &unit) && unit == b->one;
}

/* ---- how far indices run --------------------------------------------------------------------------- */

static smg_size extent_of(const void *user, int index) {
    const smg_dim_where *where = user;
    return index >= 0 ? where->b->atoms.pool.items[index].extent : where->map->index[SMG_DIM_INDEX(index)].range;
}

/* Where a run crosses the boundary `by`, its atom is two: what is beyond it and what is within. */
static bool split_at(const void *user, smg_affine *io, smg_size by) {
    smg_space_builder *b = ((const smg_dim_where *)user)->b;
    if (!smg_dim_resolve(b, io)) return false;
    for (int t = 0; t < io->count; t++) {
        int64_t step;
        smg_size inner, outer, extent = extent_of(user, io->term[t].index), times = io->term[t].by;
        if (io->term[t].index < 0) continue;
        if (smg_size_is_const(b->sizes, times, &step) && step < 0) times = smg_size_const(b->sizes, -step);
        if (!smg_size_divide_exact(b->sizes, by, times, &inner) || smg_space_is_one(b, inner)) continue;
        if (!smg_size_divide_exact(b->sizes, extent, inner, &outer) || smg_space_is_one(b, outer)) continue;
        if (!smg_atom_split(&b->atoms, io->term[t].index, outer, inner)) return false;
    }
    return smg_dim_resolve(b, io);
}

smg_affine_scope smg_dim_scope(const smg_dim_where *where) {
    return (smg_affine_scope){.sizes = where->b->sizes, .extent = extent_of, .split = split_at, .user = where};
}

/* ---- values --------------------------------------------------------------------------------------- */

static bool pool(smg_space_builder *b) {
    return b->space->exprs != NULL || smg_exprs_create(b->arena, &b->space->exprs) == SMG_OK;
}

smg_expr smg_space_leaf(smg_space_builder *b, smg_sleaf leaf, smg_kind kind) {
    if (!pool(b)) return SMG_EXPR_NONE;
    smg_sleaf *slot = SMG_ARRAY_PUSH(b->arena, &b->space->leaves);
    if (slot == NULL) return SMG_EXPR_NONE;
    *slot = leaf;
    return smg_expr_leaf(b->space->exprs, kind, b->space->leaves.count - 1);
}

smg_expr smg_space_make(smg_space_builder *b, smg_prim prim, smg_expr x, smg_expr y) {
    return pool(b) ? smg_expr_make(b->space->exprs, prim, x, y, SMG_EXPR_NONE) : SMG_EXPR_NONE;
}

smg_expr smg_space_size_expr(smg_space_builder *b, smg_size size) {
    int64_t value;
    if (!pool(b)) return SMG_EXPR_NONE;
    if (smg_size_is_const(b->sizes, size, &value)) {
        return smg_expr_const(b->space->exprs, SMG_KIND_INT, (double)value);
    }
    return smg_space_leaf(b, (smg_sleaf){.what = SMG_SLEAF_SIZE, .size = size}, SMG_KIND_INT);
}

smg_expr smg_dim_value(smg_space_builder *b, const smg_operand_map *map, const smg_affine *dim) {
    smg_sview form = {.source = -1, .offset = dim->begin};
    smg_expr value = SMG_EXPR_NONE;
    for (int t = 0; t < dim->count; t++) {
        if (dim->term[t].index < 0) continue;
        form.axis[form.axis_count] = dim->term[t].index; /* atoms until axes are numbered */
        form.stride[form.axis_count++] = dim->term[t].by;
    }
    if (form.axis_count == 0) {
        value = smg_space_size_expr(b, dim->begin);
    } else {
        smg_sview *slot = SMG_ARRAY_PUSH(b->arena, &b->space->views);
        if (slot == NULL) return SMG_EXPR_NONE;
        *slot = form;
        smg_sleaf leaf = {.what = SMG_SLEAF_FORM, .index = b->space->views.count - 1};
        value = smg_space_leaf(b, leaf, SMG_KIND_INT);
    }
    for (int i = 0; i < map->index_count; i++) {
        smg_size by = smg_affine_by(dim, SMG_DIM_INDEX(i));
        if (by == SMG_SIZE_ZERO) continue;
        smg_expr part = smg_space_make(b, SMG_PRIM_MUL, map->index[i].expr, smg_space_size_expr(b, by));
        value = smg_space_make(b, SMG_PRIM_ADD, value, part);
    }
    return value;
}

bool smg_map_add_index(smg_operand_map *map, smg_sindex index, int *out_index) {
    if (map->index_count == SMG_VIEW_INDICES) return false;
    *out_index = map->index_count;
    map->index[map->index_count++] = index;
    return true;
}

/* ---- division ------------------------------------------------------------------------------------- */

static bool divide_value(smg_space_builder *b, smg_operand_map *map, const smg_affine *dim, smg_size by,
                         smg_affine *quotient, smg_affine *rest) {
    int q, r;
    smg_expr value = smg_dim_value(b, map, dim), divisor = smg_space_size_expr(b, by);
    smg_sindex whole = {.expr = smg_space_make(b, SMG_PRIM_DIV, value, divisor), .range = SMG_SIZE_NONE};
    smg_sindex part = {.expr = smg_space_make(b, SMG_PRIM_MOD, value, divisor), .range = by};
    if (whole.expr == SMG_EXPR_NONE || part.expr == SMG_EXPR_NONE) return false;
    if (!smg_map_add_index(map, whole, &q) || !smg_map_add_index(map, part, &r)) return false;
    *quotient = (smg_affine){.term = {{SMG_DIM_INDEX(q), b->one}}, .count = 1};
    *rest = (smg_affine){.term = {{SMG_DIM_INDEX(r), b->one}}, .count = 1};
    return true;
}

bool smg_dim_divide(smg_space_builder *b, smg_operand_map *map, const smg_affine *dim, smg_size by,
                    smg_affine *out_quotient, smg_affine *out_rest) {
    smg_dim_where where = {b, map};
    smg_affine_scope scope = smg_dim_scope(&where);
    smg_affine a = *dim;
    return smg_affine_divide(&scope, &a, NULL, by, out_quotient, out_rest) ||
           divide_value(b, map, &a, by, out_quotient, out_rest);
}
