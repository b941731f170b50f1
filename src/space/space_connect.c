/* Edges. Every operand's index map is pushed back through the views behind it. What it meets is the memory of a tensor,
 * which any map can read; or a node of the set, with which a plain map shares its axes. A node that is made of
 * inputs only has no place of its own: where its axes do not fit the reader's it is written down once more, at the
 * reader's coordinates. So is a map of sums that lack the axes along which it is read elsewhere. */
#include "space/space_internal.h"

/* ---- atoms as they were ----------------------------------------------------------------------------- */

typedef struct saved_atoms {
    smg_atom *items;
    int count;
} saved_atoms;

static void copy_atoms(const smg_space_builder *b, saved_atoms *out) {
    out->count = b->atoms.pool.count;
    if (out->count > 0) memcpy(out->items, b->atoms.pool.items, (size_t)out->count * sizeof(smg_atom));
}

static bool save(smg_space_builder *b, saved_atoms *out) {
    out->items = SMG_ARENA_ARRAY(b->arena, smg_atom, (size_t)b->atoms.pool.count + 1);
    if (out->items != NULL) copy_atoms(b, out);
    return out->items != NULL;
}

/* Where one node after the other is connected, in the same memory. */
static bool save_before_node(smg_space_builder *b, saved_atoms *out) {
    int count = b->atoms.pool.count;
    if (b->kept_atoms == NULL || b->kept_room < count) {
        b->kept_room = 2 * count + 16;
        b->kept_atoms = SMG_ARENA_ARRAY(b->arena, smg_atom, (size_t)b->kept_room);
    }
    out->items = b->kept_atoms;
    if (out->items != NULL) copy_atoms(b, out);
    return out->items != NULL;
}

static void restore(smg_space_builder *b, const saved_atoms *saved) {
    if (saved->count > 0) memcpy(b->atoms.pool.items, saved->items, (size_t)saved->count * sizeof(smg_atom));
    b->atoms.pool.count = saved->count;
}

/* ---- copies --------------------------------------------------------------------------------------- */

static smg_snode *node_at(smg_space_builder *b, int i) {
    return i < b->count ? &b->space->nodes.items[i] : &b->copies.items[i - b->count];
}

static smg_status keep_map(smg_space_builder *b, int i, int k, const smg_operand_map *map) {
    smg_operand_map *kept = SMG_ARENA_NEW(b->arena, smg_operand_map);
    if (kept == NULL) return SMG_MEMORY;
    *kept = *map;
    b->maps[i][k] = kept;
    return SMG_OK;
}

static bool is_streamed(const smg_space_builder *b, int position) {
    return b->space->nodes.items[position].streamed;
}

/* Sums and what was gathered by them have a place: a copy reads them there. */
static bool has_copy(const smg_space_builder *b, int position) {
    return is_streamed(b, position) || b->space->nodes.items[position].class_ == SMG_CLASS_MAP;
}

static bool reads_streamed_alone(smg_space_builder *b, int i) {
    const smg_snode *n = node_at(b, i);
    bool alone = true;
    for (int k = 0; k < n->operand_count; k++)
        alone = alone && (n->operand[k].producer < 0 || node_at(b, n->operand[k].producer)->streamed);
    return alone;
}

static smg_status connect_operands(smg_space_builder *b, int i, const smg_operand_map *frame, bool deep);

/* The node at `position`, indexed by `map`. Its layers stand around its value; its operands are read only
 * where they hold, so that no address leaves its tensor. deep: down to inputs and sums, even where axes would fit. */
static smg_status copy(smg_space_builder *b, int position, const smg_operand_map *map, bool deep, int *out_node) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[position]);
    smg_operand_map frame = *map;
    *out_node = b->count + b->copies.count;
    if (b->copies.count == SMG_MOST_COPIES) return smg_space_refuse(b, "too many copies", b->nodes[position]);
    smg_snode *c = SMG_ARRAY_PUSH(b->arena, &b->copies);
    if (c == NULL) return SMG_MEMORY;
    *c = (smg_snode){.node = b->nodes[position],
                     .op = n->op,
                     .class_ = smg_node_class(n),
                     .type = n->type,
                     .operand_count = n->operand_count,
                     .streamed = true,
                     .copy = true,
                     .store = -1,
                     .layer_count = map->layer_count};
    memcpy(c->layer, map->layer, sizeof(c->layer));
    for (int i = 1; i < frame.layer_count; i++) {
        frame.layer[0].guard = smg_space_make(b, SMG_PRIM_AND, frame.layer[0].guard, frame.layer[i].guard);
    }
    if (frame.layer_count > 0) {
        frame.layer_count = 1;
        frame.layer[0].fill = 0.0;
        if (frame.layer[0].guard == SMG_EXPR_NONE) return SMG_MEMORY;
    }
    SMG_TRY(connect_operands(b, *out_node, &frame, deep));
    if (b->space->refused == NULL) node_at(b, *out_node)->streamed = reads_streamed_alone(b, *out_node);
    return SMG_OK;
}

/* ---- edges ---------------------------------------------------------------------------------------- */

/* Axes in common with the producer, or else a copy of it. */
static smg_status share_or_copy(smg_space_builder *b, int i, int k, int position, const smg_operand_map *map) {
    const char *why = "";
    saved_atoms saved = {NULL, 0};
    smg_sread *read = NULL;
    int made = -1;
    if (has_copy(b, position) && !save(b, &saved)) return SMG_MEMORY;
    SMG_TRY(smg_space_share(b, position, map, is_streamed(b, position), &read, &why));
    if (why == NULL) {
        node_at(b, i)->operand[k] = (smg_soperand){.producer = position, .view = -1, .read = read};
        return SMG_OK;
    }
    if (!has_copy(b, position)) return smg_space_refuse(b, why, map->source);
    restore(b, &saved);
    SMG_TRY(copy(b, position, map, false, &made));
    node_at(b, i)->operand[k].producer = made;
    return SMG_OK;
}

/* What a copy reads of inputs is copied with it. */
static smg_status attach(smg_space_builder *b, int i, int k, const smg_operand_map *map, bool deep) {
    int made = -1, position = smg_space_position(b, map->source);
    b->maps[i][k] = NULL;
    node_at(b, i)->operand[k] = (smg_soperand){.producer = -1, .view = -1};
    if (position < 0) return keep_map(b, i, k, map);
    bool copies = deep ? has_copy(b, position) : i >= b->count && is_streamed(b, position);
    if (!copies) return share_or_copy(b, i, k, position, map);
    SMG_TRY(copy(b, position, map, deep, &made));
    node_at(b, i)->operand[k].producer = made;
    return SMG_OK;
}

static smg_status connect_operands(smg_space_builder *b, int i, const smg_operand_map *frame, bool deep) {
    const smg_node *n = smg_graph_node(b->g, node_at(b, i)->node);
    for (int k = n->operand_count - 1; k >= 0 && b->space->refused == NULL; k--) { /* a gather's index first */
        smg_operand_map map;
        SMG_TRY(smg_space_own_map(b, i, n, frame, k, &map));
        while (b->space->refused == NULL && smg_node_class(smg_graph_node(b->g, map.source)) == SMG_CLASS_VIEW) {
            smg_node_id view = map.source;
            if (!smg_space_through_view(b, &map)) return smg_space_refuse(b, "too many indices through the view", view);
        }
        if (b->space->refused == NULL) SMG_TRY(attach(b, i, k, &map, deep));
    }
    return SMG_OK;
}

/* deep: what has a copy is read as one. */
static smg_status connect_all(smg_space_builder *b, int i, bool deep) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    smg_operand_map frame;
    smg_map_begin(b->nodes[i], n->rank, &frame);
    for (int d = 0; d < n->rank; d++) smg_dim_of_list(b, &b->out[i][d], &frame.dim[d]);
    return connect_operands(b, i, &frame, deep);
}

static bool may_read_copies(const smg_space_builder *b, int i) {
    const smg_snode *n = &b->space->nodes.items[i];
    for (int k = 0; k < n->operand_count; k++) {
        int p = n->operand[k].producer;
        if (p >= 0 && p < b->count && has_copy(b, p)) return true;
    }
    return false;
}

smg_status smg_space_connect(smg_space_builder *b, int i) {
    smg_snode *n = &b->space->nodes.items[i];
    bool maps = n->class_ == SMG_CLASS_MAP || n->class_ == SMG_CLASS_GATHER;
    saved_atoms saved;
    int copies = b->copies.count, labels[52];
    memcpy(labels, b->labels[i], sizeof(labels));
    if (!save_before_node(b, &saved)) return SMG_MEMORY;
    SMG_TRY(connect_all(b, i, false));
    if (b->space->refused != NULL) return SMG_OK;
    /* Two reads of one value at two axes (x[i] - x[j]) would make the axes one. */
    if (may_read_copies(b, i) && !smg_space_distinct(b, i, i + 1)) {
        restore(b, &saved);
        memcpy(b->labels[i], labels, sizeof(labels)); /* what was made since is no atom any more */
        b->copies.count = copies;
        SMG_TRY(connect_all(b, i, true));
        /* What copies lack is not why they were tried. A map may still be idle in the end. */
        if (b->space->refused != NULL || (!maps && !smg_space_distinct(b, i, i + 1))) {
            b->space->refused = NULL;
            return smg_space_refuse(b, "one axis would index a value twice", b->nodes[i]);
        }
    }
    n->streamed = maps && reads_streamed_alone(b, i);
    return SMG_OK;
}

static void use(smg_space_builder *b, int i, bool *used) {
    if (used[i]) return;
    used[i] = true;
    const smg_snode *n = node_at(b, i);
    for (int k = 0; k < n->operand_count; k++) {
        if (n->operand[k].producer >= 0) use(b, n->operand[k].producer, used);
    }
}

/* A map or gather that nobody reads where it is, since all have copies, has no axes in the space. */
void smg_space_mark_idle(smg_space_builder *b) {
    bool used[256] = {false};
    int total = b->count + b->copies.count;
    if (total > 256) return;
    for (int i = 0; i < b->count; i++) {
        const smg_snode *n = &b->space->nodes.items[i];
        if (n->output || !has_copy(b, i)) use(b, i, used);
    }
    for (int i = 0; i < total; i++) node_at(b, i)->idle = !used[i];
}

/* ---- once each ------------------------------------------------------------------------------------- */

static bool distinct_node(const smg_space_builder *b, int i) {
    const smg_node *n = smg_graph_node(b->g, b->nodes[i]);
    smg_atom_list all = {0};
    for (int d = 0; d < n->rank; d++) {
        for (int a = 0; a < b->out[i][d].count; a++) {
            if (all.count == SMG_ATOM_LIST) return false;
            all.atom[all.count++] = b->out[i][d].atom[a];
        }
    }
    if (b->reduced[i] >= 0 && all.count < SMG_ATOM_LIST) all.atom[all.count++] = b->reduced[i];
    for (int l = 0; l < 52 && smg_node_class(n) == SMG_CLASS_CONTRACT; l++) {
        if (b->labels[i][l] < 0 || all.count == SMG_ATOM_LIST) continue;
        char letter = (char)(l < 26 ? 'a' + l : 'A' + l - 26);
        if (memchr(n->label[2], letter, (size_t)n->rank) == NULL) all.atom[all.count++] = b->labels[i][l];
    }
    if (!smg_atom_resolve(&b->atoms, &all, &all)) return false;
    for (int x = 0; x < all.count; x++) {
        for (int y = x + 1; y < all.count; y++) {
            if (all.atom[x] == all.atom[y]) return false;
        }
    }
    return true;
}

bool smg_space_distinct(const smg_space_builder *b, int first, int last) {
    for (int i = first; i < last; i++) {
        if (!b->space->nodes.items[i].idle && !distinct_node(b, i)) return false;
    }
    return true;
}
