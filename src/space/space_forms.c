/* Affine forms: the arithmetic of index maps. A form is a sum of atoms at strides; whether it is one run (a plain
 * relabeling), what its bounds are, and what is left of it when it is divided by an extent are decided here, by
 * proofs over sizes only. What cannot be proved becomes an index: an expression that the kernel evaluates. */
#include "space/space_internal.h"

bool smg_space_is_one(const smg_space_builder *b, smg_size size) {
    return size == b->one;
}

bool smg_size_at_least(const smg_space_builder *b, smg_size a, smg_size least) {
    int64_t low, high;
    smg_size_bounds(b->sizes, smg_size_sub(b->sizes, a, least), &low, &high);
    return low >= 0;
}

void smg_dim_of_list(smg_space_builder *b, const smg_atom_list *list, smg_dim_map *out) {
    smg_size run = b->one;
    *out = (smg_dim_map){.count = list->count};
    for (int i = list->count - 1; i >= 0; i--) {
        out->term[i] = (smg_term){.atom = list->atom[i], .by = run};
        if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[list->atom[i]].extent);
    }
}

/* Terms over roots: an atom that was split is its two parts at the right strides. */
static bool resolve(smg_space_builder *b, smg_dim_map *dim) {
    smg_dim_map old = *dim;
    dim->count = 0;
    for (int t = 0; t < old.count; t++) {
        smg_atom_list list = {.count = 1, .atom = {old.term[t].atom}};
        if (!smg_atom_resolve(&b->atoms, &list, &list) || dim->count + list.count > SMG_ATOM_LIST) return false;
        smg_size run = old.term[t].by;
        for (int i = list.count - 1; i >= 0; i--) {
            dim->term[dim->count + i] = (smg_term){.atom = list.atom[i], .by = run};
            if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[list.atom[i]].extent);
        }
        dim->count += list.count;
    }
    return true;
}

bool smg_dim_run(smg_space_builder *b, const smg_dim_map *dim, smg_atom_list *out_list, smg_size *out_unit) {
    smg_dim_map d = *dim;
    for (int i = 0; i < SMG_VIEW_INDICES; i++) {
        if (d.times[i] != SMG_SIZE_ZERO) return false;
    }
    if (!resolve(b, &d)) return false;
    *out_list = (smg_atom_list){.count = d.count};
    *out_unit = d.count > 0 ? d.term[d.count - 1].by : b->one;
    smg_size run = *out_unit;
    for (int i = d.count - 1; i >= 0; i--) {
        if (d.term[i].by != run) return false;
        out_list->atom[i] = d.term[i].atom;
        if (i > 0) run = smg_size_mul(b->sizes, run, b->atoms.pool.items[d.term[i].atom].extent);
    }
    return true;
}

bool smg_dim_plain(smg_space_builder *b, const smg_dim_map *dim, smg_atom_list *out_list) {
    smg_size unit;
    return dim->begin == SMG_SIZE_ZERO && smg_dim_run(b, dim, out_list, &unit) && unit == b->one;
}

static bool add_term(smg_space_builder *b, smg_dim_map *io, smg_term term) {
    for (int t = 0; t < io->count; t++) {
        if (io->term[t].atom != term.atom) continue;
        io->term[t].by = smg_size_add(b->sizes, io->term[t].by, term.by);
        return true;
    }
    if (io->count == SMG_ATOM_LIST) return false;
    io->term[io->count++] = term;
    return true;
}

bool smg_dim_add(smg_space_builder *b, smg_dim_map *io, const smg_dim_map *dim, smg_size by) {
    smg_sizes *s = b->sizes;
    io->begin = smg_size_add(s, io->begin, smg_size_mul(s, dim->begin, by));
    for (int i = 0; i < SMG_VIEW_INDICES; i++) {
        if (dim->times[i] == SMG_SIZE_ZERO) continue;
        io->times[i] = smg_size_add(s, io->times[i], smg_size_mul(s, dim->times[i], by));
    }
    for (int t = 0; t < dim->count; t++) {
        smg_term term = {.atom = dim->term[t].atom, .by = smg_size_mul(s, dim->term[t].by, by)};
        if (!add_term(b, io, term)) return false;
    }
    return true;
}

/* Adds by * [0, range) to the bound that it moves; false when its sign or its range is unknown. */
static bool reach(smg_space_builder *b, smg_size by, smg_size range, smg_size *io_low, smg_size *io_high) {
    smg_sizes *s = b->sizes;
    int64_t low, high;
    if (range == SMG_SIZE_NONE) return false;
    smg_size_bounds(s, by, &low, &high);
    if (low < 0 && high > 0) return false;
    smg_size *bound = low < 0 ? io_low : io_high;
    *bound = smg_size_add(s, *bound, smg_size_mul(s, by, smg_size_sub(s, range, b->one)));
    return true;
}

void smg_dim_bounds(smg_space_builder *b, const smg_operand_map *map, const smg_dim_map *dim, smg_size *out_low,
                    smg_size *out_high) {
    bool known = true;
    *out_low = *out_high = dim->begin;
    for (int t = 0; t < dim->count && known; t++) {
        known = reach(b, dim->term[t].by, b->atoms.pool.items[dim->term[t].atom].extent, out_low, out_high);
    }
    for (int i = 0; i < map->index_count && known; i++) {
        if (dim->times[i] != SMG_SIZE_ZERO) known = reach(b, dim->times[i], map->index[i].range, out_low, out_high);
    }
    if (!known) *out_low = *out_high = SMG_SIZE_NONE;
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

smg_expr smg_dim_value(smg_space_builder *b, const smg_operand_map *map, const smg_dim_map *dim) {
    smg_expr value = SMG_EXPR_NONE;
    if (dim->count == 0) {
        value = smg_space_size_expr(b, dim->begin);
    } else {
        smg_sview *form = SMG_ARRAY_PUSH(b->arena, &b->space->views);
        if (form == NULL) return SMG_EXPR_NONE;
        *form = (smg_sview){.source = -1, .offset = dim->begin, .axis_count = dim->count};
        for (int t = 0; t < dim->count; t++) {
            form->axis[t] = dim->term[t].atom; /* atoms until axes are numbered */
            form->stride[t] = dim->term[t].by;
        }
        smg_sleaf leaf = {.what = SMG_SLEAF_FORM, .index = b->space->views.count - 1};
        value = smg_space_leaf(b, leaf, SMG_KIND_INT);
    }
    for (int i = 0; i < map->index_count; i++) {
        if (dim->times[i] == SMG_SIZE_ZERO) continue;
        smg_expr part = smg_space_make(b, SMG_PRIM_MUL, map->index[i].expr, smg_space_size_expr(b, dim->times[i]));
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

/* Where a run crosses the boundary `by`, its atom is two: what is beyond it and what is within. */
static bool split_at(smg_space_builder *b, smg_dim_map *dim, smg_size by) {
    for (int t = 0; t < dim->count; t++) {
        smg_size inner, outer, extent = b->atoms.pool.items[dim->term[t].atom].extent;
        if (!smg_size_divide_exact(b->sizes, by, dim->term[t].by, &inner) || smg_space_is_one(b, inner)) continue;
        if (!smg_size_divide_exact(b->sizes, extent, inner, &outer) || smg_space_is_one(b, outer)) continue;
        if (!smg_atom_split(&b->atoms, dim->term[t].atom, outer, inner)) return false;
    }
    return resolve(b, dim);
}

static void divide_part(smg_space_builder *b, smg_size value, smg_size by, smg_size *out_quotient, smg_size *out_rest) {
    bool exact = smg_size_divide_exact(b->sizes, value, by, out_quotient);
    *out_rest = exact ? SMG_SIZE_ZERO : value;
    if (!exact) *out_quotient = SMG_SIZE_ZERO;
}

static void divide_begin(smg_space_builder *b, smg_size begin, smg_size by, smg_dim_map *quotient, smg_dim_map *rest) {
    divide_part(b, begin, by, &quotient->begin, &rest->begin);
    bool within =
        smg_size_at_least(b, begin, SMG_SIZE_ZERO) && smg_size_at_least(b, smg_size_sub(b->sizes, by, b->one), begin);
    if (rest->begin == SMG_SIZE_ZERO || within) return;
    quotient->begin = smg_size_div(b->sizes, begin, by);
    rest->begin = smg_size_mod(b->sizes, begin, by);
}

static bool divide_value(smg_space_builder *b, smg_operand_map *map, const smg_dim_map *dim, smg_size by,
                         smg_dim_map *quotient, smg_dim_map *rest) {
    int q, r;
    smg_expr value = smg_dim_value(b, map, dim), divisor = smg_space_size_expr(b, by);
    smg_sindex whole = {.expr = smg_space_make(b, SMG_PRIM_DIV, value, divisor), .range = SMG_SIZE_NONE};
    smg_sindex part = {.expr = smg_space_make(b, SMG_PRIM_MOD, value, divisor), .range = by};
    if (whole.expr == SMG_EXPR_NONE || part.expr == SMG_EXPR_NONE) return false;
    if (!smg_map_add_index(map, whole, &q) || !smg_map_add_index(map, part, &r)) return false;
    *quotient = (smg_dim_map){0};
    *rest = (smg_dim_map){0};
    quotient->times[q] = b->one;
    rest->times[r] = b->one;
    return true;
}

bool smg_dim_divide(smg_space_builder *b, smg_operand_map *map, const smg_dim_map *dim, smg_size by,
                    smg_dim_map *out_quotient, smg_dim_map *out_rest) {
    smg_dim_map d = *dim, *q = out_quotient, *r = out_rest;
    if (!resolve(b, &d) || !split_at(b, &d, by)) return false;
    *q = (smg_dim_map){0};
    *r = (smg_dim_map){0};
    divide_begin(b, d.begin, by, q, r);
    for (int i = 0; i < SMG_VIEW_INDICES; i++) divide_part(b, d.times[i], by, &q->times[i], &r->times[i]);
    for (int t = 0; t < d.count; t++) {
        smg_size whole, part;
        divide_part(b, d.term[t].by, by, &whole, &part);
        bool beyond = part == SMG_SIZE_ZERO;
        if (!add_term(b, beyond ? q : r, (smg_term){.atom = d.term[t].atom, .by = beyond ? whole : part})) return false;
    }
    smg_size low, high;
    smg_dim_bounds(b, map, r, &low, &high);
    if (low != SMG_SIZE_NONE && smg_size_at_least(b, low, SMG_SIZE_ZERO) &&
        smg_size_at_least(b, smg_size_sub(b->sizes, by, b->one), high)) {
        return true;
    }
    return divide_value(b, map, &d, by, q, r);
}
