/* Atoms: union-find with splits. A reshape between [b, s, h*d] and [b, s, h, d] does not move data; it
 * says that the atom of extent h*d is a pair. Splitting keeps old lists valid, because lists are
 * resolved through the tree whenever they are read. */
#include "space/space_internal.h"

int smg_atom_new(smg_atoms *atoms, smg_size extent) {
    smg_atom *atom = SMG_ARRAY_PUSH(atoms->arena, &atoms->pool);
    if (atom == NULL) return -1;
    int id = atoms->pool.count - 1;
    *atom = (smg_atom){.extent = extent, .parent = id, .outer = -1, .inner = -1, .axis = -1};
    return id;
}

int smg_atom_root(const smg_atoms *atoms, int atom) {
    while (atoms->pool.items[atom].parent != atom) atom = atoms->pool.items[atom].parent;
    return atom;
}

static bool resolve_one(const smg_atoms *atoms, int id, smg_atom_list *out) {
    int root = smg_atom_root(atoms, id);
    const smg_atom *atom = &atoms->pool.items[root];
    if (atom->outer >= 0) {
        return resolve_one(atoms, atom->outer, out) && resolve_one(atoms, atom->inner, out);
    }
    if (out->count == SMG_ATOM_LIST) return false;
    out->atom[out->count++] = root;
    return true;
}

bool smg_atom_resolve(const smg_atoms *atoms, const smg_atom_list *list, smg_atom_list *out_list) {
    smg_atom_list result = {0};
    for (int i = 0; i < list->count; i++) {
        if (!resolve_one(atoms, list->atom[i], &result)) return false;
    }
    *out_list = result;
    return true;
}

bool smg_atom_split(smg_atoms *atoms, int root, smg_size outer_extent, smg_size inner_extent) {
    int outer = smg_atom_new(atoms, outer_extent);
    int inner = smg_atom_new(atoms, inner_extent);
    if (outer < 0 || inner < 0) return false;
    atoms->pool.items[root].outer = outer;
    atoms->pool.items[root].inner = inner;
    return true;
}

static void drop_first(smg_atom_list *list) {
    list->count--;
    memmove(list->atom, list->atom + 1, (size_t)list->count * sizeof(list->atom[0]));
}

/* Replaces the first atom, split just now, by its two parts. */
static bool expand_first(smg_atoms *atoms, smg_atom_list *list) {
    return smg_atom_resolve(atoms, list, list);
}

bool smg_atom_unify(smg_atoms *atoms, const smg_atom_list *a, const smg_atom_list *b) {
    smg_atom_list x, y;
    if (!smg_atom_resolve(atoms, a, &x) || !smg_atom_resolve(atoms, b, &y)) return false;
    while (x.count > 0 && y.count > 0) {
        int p = x.atom[0], q = y.atom[0];
        smg_size ep = atoms->pool.items[p].extent, eq = atoms->pool.items[q].extent, rest;
        if (p == q || ep == eq) {
            atoms->pool.items[q].parent = p;
            drop_first(&x);
            drop_first(&y);
            /* Uniting may have touched atoms that stand again later in the lists. */
            if (!expand_first(atoms, &x) || !expand_first(atoms, &y)) return false;
        } else if (smg_size_divide_exact(atoms->sizes, ep, eq, &rest)) {
            if (!smg_atom_split(atoms, p, eq, rest)) return false;
            if (!expand_first(atoms, &x) || !expand_first(atoms, &y)) return false;
        } else if (smg_size_divide_exact(atoms->sizes, eq, ep, &rest)) {
            if (!smg_atom_split(atoms, q, ep, rest)) return false;
            if (!expand_first(atoms, &x) || !expand_first(atoms, &y)) return false;
        } else {
            return false;
        }
    }
    return x.count == 0 && y.count == 0;
}

bool smg_atom_take(smg_atoms *atoms, smg_atom_list *list, smg_size extent, smg_atom_list *out_taken) {
    smg_atom_list taken = {0};
    while (!smg_size_is_const(atoms->sizes, extent, NULL) || extent != smg_size_const(atoms->sizes, 1)) {
        if (list->count == 0) return false;
        int p = list->atom[0];
        smg_size ep = atoms->pool.items[p].extent, rest;
        if (ep == extent || smg_size_divide_exact(atoms->sizes, extent, ep, &rest)) {
            if (ep == extent) rest = smg_size_const(atoms->sizes, 1);
            if (taken.count == SMG_ATOM_LIST) return false;
            taken.atom[taken.count++] = p;
            drop_first(list);
            extent = rest;
        } else if (smg_size_divide_exact(atoms->sizes, ep, extent, &rest)) {
            if (!smg_atom_split(atoms, p, extent, rest) || !expand_first(atoms, list)) return false;
        } else {
            return false;
        }
    }
    *out_taken = taken;
    return true;
}
