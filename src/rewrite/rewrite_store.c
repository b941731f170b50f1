/* Weights in the order in which products read them. A product whose last axis comes from a constant walks that constant
 * along this axis with neighbouring lanes; files mostly have the contracted axis innermost instead. Such an operand is
 * replaced by a copy of a transposed view: batch axes, contracted axes, then its own in the order of the result. The
 * copy depends on constants alone, so that it is made once, before the first run, and the original goes where nobody
 * else reads it. Where a product has few results, its slices are deeper than they are wide: then its operand is copied
 * to lie along the contracted axis, or stays as it is, so that what is read at once lies side by side. No product, name
 * or model is special: what counts is the axis that is innermost in memory. */
#include "rewrite/rewrite_internal.h"

typedef struct stored_view {
    smg_node_id view; /* old id */
    int perm[SMG_MAX_RANK];
    bool blocked;
    smg_node_id copy; /* new id */
} stored_view;

typedef struct store {
    smg_graph *g;
    const smg_node *old;
    int count;
    bool *fixed, *stored; /* per old node, see smg_graph_mark_fixed */
    smg_node_id *now;     /* old id -> new id */
    int *readers;         /* per old node: reads of its memory by anything but views */
    int *wanted;          /* of these, reads that would take a copy in another order */
    SMG_ARRAY(stored_view) made;
    int along; /* of these, along a contracted axis */
    const smg_store_options *options;
    int64_t twice; /* bytes left for copies beside an original that stays */
} store;

static smg_node_id source_of(const store *s, smg_node_id id) {
    return smg_rewrite_source(s->old, id);
}

/* The product of the extents behind an axis; -1 when one is symbolic. */
static int64_t behind(const smg_graph *g, const smg_node *n, int axis) {
    int64_t product = 1, extent;
    for (int d = axis + 1; d < n->rank; d++) {
        if (!smg_size_is_const(g->sizes, n->dims[d], &extent) || !smg_mul_i64(product, extent, &product)) return -1;
    }
    return product;
}

/* The axis of `id` along which memory is contiguous (apart from a slice's step), -1: none that is known. */
static int inner_axis(const store *s, smg_node_id id) {
    const smg_node *n = &s->old[id];
    if (smg_node_class(n) != SMG_CLASS_VIEW) return smg_rewrite_last_axis(s->g, n);
    const smg_node *a = &s->old[n->operand[0]];
    int axis = inner_axis(s, n->operand[0]);
    if (axis < 0) return -1;
    switch (smg_op_view(n->op)) {
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < n->rank; i++)
            if (n->perm[i] == axis) return i;
        return -1;
    case SMG_VIEW_RESHAPE:
        for (int i = n->rank - 1; i >= 0; i--)
            if (!smg_size_is_one(s->g->sizes, n->dims[i]) && behind(s->g, n, i) == behind(s->g, a, axis)) return i;
        return -1;
    case SMG_VIEW_BROADCAST: return axis + n->rank - a->rank;
    case SMG_VIEW_SLICE: return axis;
    case SMG_VIEW_WINDOW:
    case SMG_VIEW_NONE: break;
    }
    return -1;
}

static bool bytes_of(const store *s, smg_node_id id, int64_t *out_bytes) {
    const smg_node *n = &s->old[id];
    int64_t count = behind(s->g, n, -1);
    return count >= 0 && smg_mul_i64(count, smg_type_device_bytes(n->type), out_bytes);
}

static bool has(const char *label, char letter) {
    return strchr(label, letter) != NULL;
}

static int64_t elements_at(const store *s, const smg_node *n) {
    return smg_rewrite_elements_at(s->g->sizes, n, s->options->nominal);
}

/* Is it added to another product? One kernel's sums then go on with the slices of both in turn, which are short. */
static bool goes_on(const store *s, const smg_node *product) {
    for (int i = 0; i < s->count; i++) {
        const smg_node *n = &s->old[i];
        if (n->op != SMG_OP_ADD) continue;
        const smg_node *a = &s->old[n->operand[0]], *b = &s->old[n->operand[1]];
        if ((a == product && b->op == SMG_OP_CONTRACT) || (b == product && a->op == SMG_OP_CONTRACT)) return true;
    }
    return false;
}

/* Does the product read its constant operand along what it contracts? */
static bool goes_along(const store *s, const smg_node *product) {
    int64_t results = elements_at(s, product);
    if (results >= 0 && results <= s->options->few) return true;
    return s->options->along != NULL && s->options->along[product - s->old] && !goes_on(s, product);
}

/* Operand k's axis along which slices of a contraction go: the longest, of several the last. -1: one is symbolic. */
static int sliced_axis(const store *s, const smg_node *product, int k) {
    const smg_node *operand = &s->old[product->operand[k]];
    int64_t extent, longest = 0;
    int found = -1;
    for (int d = 0; d < operand->rank; d++) {
        if (has(product->label[2], product->label[k][d])) continue;
        if (!smg_size_is_const(s->g->sizes, operand->dims[d], &extent)) return -1;
        if (extent < longest) continue;
        longest = extent;
        found = d;
    }
    return found;
}

/* Operand k's axes that the product contracts, that of slices last, or its own ones, in the order of the result. */
static void add_axes(const store *s, const smg_node *product, int k, bool contracted, int *perm, int *io_count) {
    const char *own = product->label[k], *other = product->label[1 - k], *result = product->label[2];
    int sliced = sliced_axis(s, product, k);
    for (const char *l = own; contracted && *l; l++)
        if (!has(result, *l) && l - own != sliced) perm[(*io_count)++] = (int)(l - own);
    if (contracted && sliced >= 0) perm[(*io_count)++] = sliced;
    for (const char *l = result; !contracted && *l; l++)
        if (has(own, *l) && !has(other, *l)) perm[(*io_count)++] = (int)(strchr(own, *l) - own);
}

/* The copied order of operand k: its batch axes, then its contracted and its own ones, or these first. */
static void order_axes(const store *s, const smg_node *product, int k, int *perm) {
    const char *own = product->label[k], *other = product->label[1 - k];
    bool along = goes_along(s, product);
    int count = 0;
    for (const char *l = product->label[2]; *l; l++)
        if (has(own, *l) && has(other, *l)) perm[count++] = (int)(strchr(own, *l) - own);
    add_axes(s, product, k, !along, perm, &count);
    add_axes(s, product, k, along, perm, &count);
}

/* Elements of operand k that rows of the other one are multiplied with; -1: not known. */
static int64_t own_elements(const store *s, const smg_node *product, int k) {
    const smg_node *operand = &s->old[product->operand[k]];
    int64_t own = 1, extent;
    for (int d = 0; d < operand->rank; d++) {
        if (!has(product->label[2], product->label[k][d])) continue;
        if (!smg_size_is_const(s->g->sizes, operand->dims[d], &extent)) return -1;
        own *= extent;
    }
    return own;
}

static bool is_whole(const store *s, const smg_node *operand, int axis, int block) {
    int64_t extent;
    return smg_size_is_const(s->g->sizes, operand->dims[axis], &extent) && extent % block == 0;
}

/* In which a copy of the product's operand may come. */
static const smg_weight_blocks *blocks_of(const store *s, const smg_node *product) {
    return goes_along(s, product) ? &s->options->blocks : &s->options->panels;
}

/* Does a copy of operand k come in blocks? Then each of its rows is multiplied often enough, and neither of its last
 * axes, what is contracted and its own, ends within a block. */
static bool goes_by_blocks(const store *s, const smg_node *product, int k) {
    const smg_weight_blocks *b = blocks_of(s, product);
    const smg_node *operand = &s->old[product->operand[k]];
    const char *own = product->label[k], *result = product->label[2];
    int perm[SMG_MAX_RANK] = {0}, last = operand->rank - 1;
    int64_t elements = own_elements(s, product, k);
    if (b->rows == 0 || last < 1 || elements <= 0) return false;
    bool along = goes_along(s, product);
    order_axes(s, product, k, perm);
    if (behind(s->g, operand, -1) < b->smallest) return false;
    if (!along && own[perm[last]] != result[smg_rewrite_last_axis(s->g, product)]) return false; /* a left factor */
    return has(result, own[perm[last]]) == !along && has(result, own[perm[last - 1]]) == along &&
           is_whole(s, operand, perm[last - 1], b->rows) && is_whole(s, operand, perm[last], b->cols) &&
           elements_at(s, product) / elements >= b->least;
}

/* Is what is converted from the type stored in another one that takes no more (bf16 read as f16)? */
static bool is_stored_otherwise(const store *s, smg_type from) {
    smg_type as = s->options->stored;
    return as != SMG_TYPE_F32 && as != from && smg_type_device_bytes(as) <= smg_type_device_bytes(from);
}

/* A map that only widens its operand (f16 to f32): the narrow one is copied, its reader widens as before. What is
 * stored in a third type is copied as that. */
static bool widens(const store *s, smg_node_id id) {
    const smg_node *n = &s->old[id];
    if (!smg_op_converts(n->op)) return false;
    smg_type from = s->old[n->operand[0]].type;
    return smg_type_device_bytes(from) < smg_type_device_bytes(n->type) && !is_stored_otherwise(s, from);
}

/* Operand k is constant and lies badly. By columns (the result's last axis is its own): along another axis than it is
 * read by, or not in blocks. By rows (a kernel of windows): neither along them nor along slices, but along a short
 * contracted axis, a step of a loop. */
static bool wants_copy(const store *s, const smg_node *product, int k) {
    smg_node_id id = product->operand[k];
    int64_t bytes, source_bytes;
    if (!s->fixed[id] || !s->stored[id] || smg_node_is_blocked(&s->old[source_of(s, id)])) return false;
    if (widens(s, id))
        id = s->old[id].operand[0];
    else if (widens(s, source_of(s, id)))
        return false;
    int column = smg_rewrite_last_axis(s->g, product), inner = inner_axis(s, id);
    if (column < 0 || inner < 0) return false;
    char letter = product->label[2][column];
    bool by_columns = has(product->label[k], letter), own = has(product->label[2], product->label[k][inner]);
    if (by_columns && has(product->label[1 - k], letter)) return false;
    if (by_columns && own != goes_along(s, product) && !goes_by_blocks(s, product, k)) return false;
    if (!by_columns && (own || inner == sliced_axis(s, product, k))) return false;
    return bytes_of(s, id, &bytes) && bytes_of(s, source_of(s, id), &source_bytes) && bytes <= source_bytes &&
           bytes <= s->options->limit;
}

static void count_reads(store *s) {
    for (int i = 0; i < s->count; i++) {
        const smg_node *n = &s->old[i];
        for (int k = 0; k < n->operand_count && smg_node_class(n) != SMG_CLASS_VIEW; k++) {
            smg_node_id source = source_of(s, n->operand[k]);
            s->readers[source]++;
            if (smg_node_class(n) != SMG_CLASS_CONTRACT || !wants_copy(s, n, k)) continue;
            s->wanted[source]++;
            if (widens(s, source)) s->wanted[source_of(s, s->old[source].operand[0])]++;
        }
    }
    for (int o = 0; o < s->g->outputs.count; o++) s->readers[source_of(s, s->g->outputs.items[o].node)]++;
}

/* An original that others read stays beside its copy, as long as there is room for both. */
static bool may_copy(store *s, smg_node_id id) {
    smg_node_id source = source_of(s, id);
    int64_t bytes;
    if (s->readers[source] == s->wanted[source]) return true;
    if (!bytes_of(s, id, &bytes)) return false;
    if (s->old[id].type == SMG_TYPE_F32) /* of what it is stored as */
        bytes = bytes / smg_type_device_bytes(SMG_TYPE_F32) * smg_type_device_bytes(s->options->stored);
    if (bytes > s->twice) return false;
    s->twice -= bytes;
    return true;
}

static smg_node_id push(store *s, const smg_node *node) {
    smg_node *slot = SMG_ARRAY_PUSH(s->g->arena, &s->g->nodes);
    if (slot == NULL) return -1;
    *slot = *node;
    return s->g->nodes.count - 1;
}

/* The name of what is copied: its own, or that of what it is made of by views and a conversion. */
static const char *name_of(const store *s, smg_node_id id) {
    const smg_node *source = &s->old[source_of(s, id)];
    if (s->old[id].name[0]) return s->old[id].name;
    if (source->name[0] || !smg_op_converts(source->op)) return source->name;
    return s->old[source_of(s, source->operand[0])].name;
}

/* "weight/stored", or nothing where that name is taken. */
static const char *name_copy(store *s, smg_node_id id) {
    const char *from = name_of(s, id);
    if (!from[0]) return "";
    const char *name = smg_arena_format(s->g->arena, "%s/stored", from);
    for (int i = 0; name != NULL && i < s->made.count; i++)
        if (strcmp(s->g->nodes.items[s->made.items[i].copy].name, name) == 0) return "";
    for (int i = 0; name != NULL && i < s->count; i++)
        if (strcmp(s->old[i].name, name) == 0) return "";
    return name;
}

static smg_status make_copy(store *s, smg_node_id id, const stored_view *how, const smg_node *product,
                            smg_node_id *out_copy) {
    const smg_node *from = &s->old[id];
    for (int i = 0; i < s->made.count; i++) {
        const stored_view *made = &s->made.items[i];
        *out_copy = made->copy;
        if (made->view == id && made->blocked == how->blocked &&
            memcmp(made->perm, how->perm, (size_t)from->rank * sizeof *how->perm) == 0)
            return SMG_OK;
    }
    smg_node view = {.op = SMG_OP_TRANSPOSE, .type = from->type, .rank = from->rank, .name = "", .operand_count = 1};
    view.operand[0] = s->now[id];
    for (int i = 0; i < from->rank; i++) {
        view.perm[i] = how->perm[i];
        view.dims[i] = from->dims[how->perm[i]];
    }
    smg_node copy = view;
    copy.op = SMG_OP_COPY;
    copy.name = name_copy(s, id);
    memset(copy.perm, 0, sizeof copy.perm);
    if (how->blocked) copy.block[0] = blocks_of(s, product)->rows, copy.block[1] = blocks_of(s, product)->cols;
    copy.operand[0] = push(s, &view);
    stored_view *made = SMG_ARRAY_PUSH(s->g->arena, &s->made);
    *out_copy = copy.operand[0] >= 0 ? push(s, &copy) : -1;
    s->along += goes_along(s, product);
    if (*out_copy < 0 || made == NULL || copy.name == NULL) return SMG_MEMORY;
    *made = *how;
    made->view = id;
    made->copy = *out_copy;
    return SMG_OK;
}

static smg_status reorder(store *s, smg_node *product, int old_id, int k) {
    stored_view how = {.view = -1};
    const smg_node *old = &s->old[old_id];
    smg_node_id id = old->operand[k];
    bool wide = widens(s, id);
    if (!wants_copy(s, old, k) || !may_copy(s, wide ? s->old[id].operand[0] : id)) return SMG_OK;
    order_axes(s, old, k, how.perm);
    how.blocked = goes_by_blocks(s, old, k);
    SMG_TRY(make_copy(s, wide ? s->old[id].operand[0] : id, &how, old, &product->operand[k]));
    for (int i = 0; i < s->old[id].rank; i++) product->label[k][i] = old->label[k][how.perm[i]];
    if (!wide) return SMG_OK;
    smg_node cast = s->old[id];
    cast.name = "";
    for (int i = 0; i < cast.rank; i++) cast.dims[i] = s->old[id].dims[how.perm[i]];
    cast.operand[0] = product->operand[k];
    product->operand[k] = push(s, &cast);
    return product->operand[k] >= 0 ? SMG_OK : SMG_MEMORY;
}

static smg_status rebuild(store *s) {
    for (int i = 0; i < s->count; i++) {
        smg_node node = s->old[i];
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = s->now[node.operand[k]];
        for (int k = 0; k < 2 && smg_node_class(&node) == SMG_CLASS_CONTRACT; k++) SMG_TRY(reorder(s, &node, i, k));
        s->now[i] = push(s, &node);
        if (s->now[i] < 0) return SMG_MEMORY;
    }
    for (int o = 0; o < s->g->outputs.count; o++) {
        s->g->outputs.items[o].node = s->now[s->g->outputs.items[o].node];
    }
    return SMG_OK;
}

smg_status smg_rewrite_store_weights(smg_graph *g, const smg_store_options *options, int *out_across, int *out_along) {
    size_t count = (size_t)g->nodes.count + 1;
    store s = {.g = g, .old = g->nodes.items, .count = g->nodes.count, .options = options, .twice = options->twice};
    s.fixed = SMG_ARENA_ARRAY(g->arena, bool, count);
    s.stored = SMG_ARENA_ARRAY(g->arena, bool, count);
    s.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    s.readers = SMG_ARENA_ARRAY(g->arena, int, count);
    s.wanted = SMG_ARENA_ARRAY(g->arena, int, count);
    if (!s.fixed || !s.stored || !s.now || !s.readers || !s.wanted) return SMG_MEMORY;
    smg_graph_mark_fixed(g, s.fixed, s.stored);
    count_reads(&s);
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    SMG_TRY(rebuild(&s));
    *out_along = s.along;
    *out_across = s.made.count - s.along;
    return SMG_OK;
}
