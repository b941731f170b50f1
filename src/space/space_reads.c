/* Reads of what is computed in the set. A plain map shares the producer's axes. Any other is taken apart digit by
 * digit, from the innermost of the producer's axes on: a digit that is an axis of the reader is shared, one that is a
 * number is picked, one that runs backwards is picked from the end. What is picked is held whole where it is computed,
 * so only short axes are; a long one that is read by equal parts (gates, halves) becomes two. */
#include "space/space_internal.h"

#define MOST_HELD 16 /* elements of an axis that is picked from */

typedef struct digits {
    smg_space_builder *b;
    const smg_operand_map *map;
    smg_atom_list atoms; /* of the producer's dimension, those that are left */
    smg_affine form;     /* which element is read */
    smg_sread *read;
} digits;

static bool is_short(const smg_space_builder *b, int atom) {
    int64_t extent;
    return smg_size_is_const(b->sizes, b->atoms.pool.items[atom].extent, &extent) && extent <= MOST_HELD;
}

static bool pick(digits *d, int atom, int from, int64_t at) {
    if (d->read->pick_count == SMG_READ_PICKS || !is_short(d->b, atom)) return false;
    d->read->pick[d->read->pick_count++] = (smg_spick){.axis = atom, .from = from, .at = at};
    return true;
}

static bool hold(smg_space_builder *b, int atom) {
    if (!is_short(b, atom)) return false;
    b->atoms.pool.items[atom].held = true;
    return true;
}

/* Where the next digit may end, by the form alone: the extent of an axis that it runs along by single steps, or the
 * least step; 0 where no axis moves it. */
static bool form_step(const digits *d, int64_t *out_step) {
    *out_step = 0;
    for (int t = 0; t < d->form.count; t++) {
        int64_t by, extent = 1;
        const smg_affine_term *term = &d->form.term[t];
        if (term->index < 0 || !smg_size_is_const(d->b->sizes, term->by, &by)) return false;
        if (by < 0) by = -by;
        if (by == 1 && !smg_size_is_const(d->b->sizes, d->b->atoms.pool.items[term->index].extent, &extent))
            return false;
        by *= extent;
        if (*out_step == 0 || by < *out_step) *out_step = by;
    }
    return true;
}

/* The producer's innermost atom, of which only so much is taken that its extent is a multiple of; -1: it is none. */
static int take_last(digits *d, smg_size size) {
    int last = d->atoms.atom[d->atoms.count - 1];
    smg_size outer, extent = d->b->atoms.pool.items[last].extent;
    d->atoms.count--;
    if (extent == size) return last;
    if (!smg_size_divide_exact(d->b->sizes, extent, size, &outer)) return -1;
    if (!smg_atom_split(&d->b->atoms, last, outer, size)) return -1;
    d->atoms.atom[d->atoms.count++] = d->b->atoms.pool.items[last].outer;
    return d->b->atoms.pool.items[last].inner;
}

/* One digit of the producer's index is `rest`. */
static bool match_digit(digits *d, int atom, smg_size size, const smg_affine *rest) {
    smg_sizes *s = d->b->sizes;
    int64_t begin, by = 0, extent;
    if (!smg_size_is_const(s, rest->begin, &begin) || !smg_size_is_const(s, size, &extent) || rest->count > 1)
        return false;
    if (rest->count == 0) return pick(d, atom, -1, begin);
    int index = rest->term[0].index;
    if (index < 0 || d->b->atoms.pool.items[index].extent != size || !smg_size_is_const(s, rest->term[0].by, &by))
        return false;
    if (by == -1 && begin == extent - 1) return hold(d->b, index) && pick(d, atom, index, 0);
    smg_atom_list own = {.count = 1, .atom = {atom}}, other = {.count = 1, .atom = {index}};
    return by == 1 && begin == 0 && smg_atom_unify(&d->b->atoms, &own, &other);
}

static bool next_digit(digits *d) {
    smg_dim_where where = {d->b, d->map};
    smg_affine_scope scope = smg_dim_scope(&where);
    smg_affine rest, more;
    int64_t step, extent;
    int last = d->atoms.atom[d->atoms.count - 1];
    if (!smg_size_is_const(d->b->sizes, d->b->atoms.pool.items[last].extent, &extent) || !form_step(d, &step))
        return false;
    if (step == 0 || step % extent == 0) step = extent;
    smg_size size = smg_size_const(d->b->sizes, step);
    int atom = take_last(d, size);
    if (atom < 0 || !smg_affine_divide(&scope, &d->form, NULL, size, &more, &rest)) return false;
    d->form = more;
    return match_digit(d, atom, size, &rest);
}

/* Takes factor * what out of the form; false where it does not stand there. */
static bool take_out(digits *d, const smg_affine *what, int64_t *out_factor) {
    smg_sizes *s = d->b->sizes;
    for (int t = 0; t < what->count; t++) {
        int64_t mine, its;
        if (!smg_size_is_const(s, smg_affine_by(&d->form, what->term[t].index), &mine)) return false;
        if (!smg_size_is_const(s, what->term[t].by, &its) || mine == 0 || mine % its != 0) return false;
        if (t > 0 && mine / its != *out_factor) return false;
        *out_factor = mine / its;
    }
    return what->count > 0 && smg_affine_add(s, &d->form, what, smg_size_const(s, -*out_factor));
}

/* What is outside of a window is not read: inside, an index is its rest by the window's extent. */
static bool narrow(digits *d, const smg_bounded *window) {
    smg_dim_where where = {d->b, d->map};
    smg_affine_scope scope = smg_dim_scope(&where);
    smg_affine at = window->at, quotient, rest, old = d->form;
    int64_t factor = 1;
    if (!smg_dim_resolve(d->b, &at) || !smg_dim_resolve(d->b, &d->form) || !take_out(d, &at, &factor)) return false;
    bool good = smg_affine_divide(&scope, &at, NULL, window->extent, &quotient, &rest);
    for (int t = 0; good && t < quotient.count; t++)
        good = quotient.term[t].index >= 0 && hold(d->b, quotient.term[t].index);
    good = good && smg_affine_add(d->b->sizes, &d->form, &rest, smg_size_const(d->b->sizes, factor));
    if (!good) d->form = old;
    return good;
}

/* May the list be all of a dimension? */
static bool may_be_all(smg_space_builder *b, const smg_atom_list *list, smg_size extent) {
    int64_t mine, whole;
    smg_size product = b->one;
    for (int i = 0; i < list->count; i++)
        product = smg_size_mul(b->sizes, product, b->atoms.pool.items[list->atom[i]].extent);
    if (!smg_size_is_const(b->sizes, product, &mine) || !smg_size_is_const(b->sizes, extent, &whole)) return true;
    return mine == whole;
}

static bool match_dim(smg_space_builder *b, int producer, const smg_operand_map *map, int dim, smg_sread *read,
                      const char **out_why) {
    digits d = {.b = b, .map = map, .form = map->dim[dim], .read = read};
    smg_size extent = smg_graph_node(b->g, map->source)->dims[dim];
    smg_atom_list list;
    if (smg_dim_plain(b, &map->dim[dim], &list) && may_be_all(b, &list, extent)) {
        *out_why = "axes do not nest";
        return smg_atom_unify(&b->atoms, &b->out[producer][dim], &list);
    }
    *out_why = "a shifted read of an intermediate";
    for (int w = map->window_count - 1; w >= 0; w--)
        if (narrow(&d, &map->window[w])) break;
    if (!smg_atom_resolve(&b->atoms, &b->out[producer][dim], &d.atoms)) return false;
    while (d.atoms.count > 0) {
        if (!smg_dim_resolve(b, &d.form) || !next_digit(&d)) return false;
        if (!smg_atom_resolve(&b->atoms, &d.atoms, &d.atoms)) return false;
    }
    return d.form.count == 0 && d.form.begin == SMG_SIZE_ZERO;
}

smg_status smg_space_share(smg_space_builder *b, int producer, const smg_operand_map *map, bool plain,
                           smg_sread **out_read, const char **out_why) {
    smg_sread read = {.layer_count = map->layer_count};
    memcpy(read.layer, map->layer, sizeof(read.layer));
    *out_read = NULL;
    *out_why = "a shifted read of an intermediate";
    if (plain && map->layer_count > 0) return SMG_OK;
    for (int d = 0; d < map->rank; d++) {
        if (!match_dim(b, producer, map, d, &read, out_why)) return SMG_OK;
        if (plain && read.pick_count > 0) return SMG_OK;
    }
    *out_why = NULL;
    if (read.pick_count == 0 && read.layer_count == 0) return SMG_OK;
    smg_sread *kept = SMG_ARENA_NEW(b->arena, smg_sread);
    if (kept == NULL) return SMG_MEMORY;
    *kept = read;
    *out_read = kept;
    return SMG_OK;
}

/* ---- from atoms to axes ----------------------------------------------------------------------------- */

static int axis_of(const smg_space_builder *b, int atom) {
    return b->atoms.pool.items[smg_atom_root(&b->atoms, atom)].axis;
}

/* A picked atom that was split later is picked by its parts. */
static bool number_pick(const smg_space_builder *b, smg_spick pick, smg_sread *out) {
    smg_atom_list atoms = {.count = 1, .atom = {pick.axis}}, from = {.count = 1, .atom = {pick.from}};
    if (!smg_atom_resolve(&b->atoms, &atoms, &atoms)) return false;
    if (pick.from >= 0 && (!smg_atom_resolve(&b->atoms, &from, &from) || from.count != atoms.count)) return false;
    for (int i = atoms.count - 1; i >= 0; i--) {
        int64_t extent = 1;
        smg_size size = b->atoms.pool.items[atoms.atom[i]].extent;
        if (out->pick_count == SMG_READ_PICKS || !smg_size_is_const(b->sizes, size, &extent)) return false;
        smg_spick *p = &out->pick[out->pick_count++];
        *p = (smg_spick){.axis = axis_of(b, atoms.atom[i]), .from = -1, .at = pick.at % extent};
        pick.at /= extent;
        if (pick.from >= 0) {
            if (b->atoms.pool.items[from.atom[i]].extent != size) return false;
            p->from = axis_of(b, from.atom[i]);
        }
        if (p->axis < 0 || (pick.from >= 0 && p->from < 0)) return false;
        b->space->axes.items[p->axis].held = true;
        if (p->from >= 0) b->space->axes.items[p->from].held = true;
    }
    return true;
}

static bool number_read(const smg_space_builder *b, smg_sread *read) {
    smg_sread old = *read;
    read->pick_count = 0;
    for (int i = 0; i < old.pick_count; i++)
        if (!number_pick(b, old.pick[i], read)) return false;
    return true;
}

/* Held atoms that were split or united since. */
static void number_held(const smg_space_builder *b) {
    for (int atom = 0; atom < b->atoms.pool.count; atom++) {
        smg_atom_list list = {.count = 1, .atom = {atom}};
        if (!b->atoms.pool.items[atom].held || !smg_atom_resolve(&b->atoms, &list, &list)) continue;
        for (int i = 0; i < list.count; i++)
            if (axis_of(b, list.atom[i]) >= 0) b->space->axes.items[axis_of(b, list.atom[i])].held = true;
    }
}

smg_status smg_space_number_reads(smg_space_builder *b) {
    smg_space *space = b->space;
    for (int i = 0; i < space->nodes.count; i++) {
        smg_snode *n = &space->nodes.items[i];
        for (int k = 0; !n->idle && k < n->operand_count; k++) {
            smg_sread *read = n->operand[k].read;
            if (read != NULL && !number_read(b, read)) return smg_space_refuse(b, "axes do not nest", n->node);
        }
    }
    number_held(b);
    return SMG_OK;
}
