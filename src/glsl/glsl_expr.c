/* glsl_expr.c: scalar expressions at the current element, and the loads in them. A node with several parents, and any
 * that grows long, becomes a temporary; everything else is written where it is used.
 *
 * An invalid element is loaded from address 0, which always exists, and replaced by 0: no branch, so loads stay
 * together. */
#include <math.h>

#include "glsl_private.h"

#define LONG_TEXT 80

static void prepare_leaf(glsl_writer *w, glsl_iter *it, int index) {
    if (index < 0 || index >= w->k->leaves.count) {
        glsl_fail(w, SMG_INTERNAL, "an expression's leaf does not exist");
        return;
    }
    const smg_kleaf *leaf = &w->k->leaves.items[index];
    if (leaf->what != SMG_KLEAF_LOAD && leaf->what != SMG_KLEAF_IOTA) return;
    const smg_access *access = &w->k->accesses.items[leaf->index];
    it->access_used[leaf->index] = true;
    if (leaf->what == SMG_KLEAF_IOTA) return;
    glsl_check_axes(it, access->axis, access->axis_count);
    if (access->index != SMG_EXPR_NONE) glsl_expr_prepare(w, it, access->index);
}

void glsl_expr_prepare(glsl_writer *w, glsl_iter *it, smg_expr expr) {
    if (expr == SMG_EXPR_NONE || w->status != SMG_OK) return;
    if (it->uses[expr]++ > 0) return;
    const smg_expr_node *node = smg_expr_get(w->k->exprs, expr);
    if (node->prim == SMG_PRIM_LEAF) prepare_leaf(w, it, node->leaf);
    for (int i = 0; i < smg_prim_arity(node->prim); i++) glsl_expr_prepare(w, it, node->arg[i]);
}

void glsl_expr_forget(glsl_writer *w, glsl_iter *it) {
    int count = smg_expr_count(w->k->exprs);
    if (it->memo != NULL && count > 0) memset(it->memo, 0, (size_t)count * sizeof *it->memo);
}

/* ---- loads: an index from data is an expression too
 * ------------------------------------------------------- */

static bool may_be_absent(const smg_exprs *pool, smg_expr expr) {
    smg_expr_node n = *smg_expr_get(pool, expr);
    if (n.prim == SMG_PRIM_CONST) return n.value <= (double)SMG_INDEX_ABSENT;
    if (n.prim != SMG_PRIM_SELECT) return false;
    return may_be_absent(pool, n.arg[1]) || may_be_absent(pool, n.arg[2]);
}

/* What the index adds to the address, clamped; where it is bad, it is noted. Where it may be absent, *out_present is
 * the condition that it is not: of a load; what is stored has its place. */
static const char *index_part(glsl_writer *w, glsl_iter *it, int a, const char *valid, const char **out_present) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *limit = glsl_size(w, access->index_limit), *text = glsl_expr_text(w, it, access->index);
    int number = w->serial++;
    GLSL_LINE(w, "int x%d = %s;", number, text);
    text = GLSL_STRING(w, "x%d", number);
    if (out_present != NULL && may_be_absent(w->k->exprs, access->index)) {
        GLSL_LINE(w, "bool on%d = %s != %d;", number, text, SMG_INDEX_ABSENT);
        *out_present = GLSL_STRING(w, "on%d", number);
        valid = glsl_both(w, valid, *out_present);
    }
    if (smg_access_reports(w->k, access)) {
        int64_t most;
        bool bounded = !smg_size_is_const(w->k->sizes, access->index_limit, &most) || most < SMG_SIZE_UNBOUNDED;
        const char *bad =
            bounded ? GLSL_STRING(w, "(%s < 0 || %s >= %s)", text, text, limit) : GLSL_STRING(w, "(%s < 0)", text);
        glsl_open(w, GLSL_STRING(w, "if (%s)", glsl_both(w, valid, bad)));
        GLSL_LINE(w, "bad = true;");
        GLSL_LINE(w, "bad_index = %s;", text);
        GLSL_LINE(w, "bad_limit = %s;", limit);
        glsl_close(w);
        text = GLSL_STRING(w, "clamp(%s, 0, %s - 1)", text, limit);
    }
    return glsl_times(w, text, access->index_stride);
}

/* An index is taken out of a loop over columns that it does not hang on. Beyond the tile it may be anything. */
static void hoist_index(glsl_writer *w, glsl_iter *it, int a, const char *inside) {
    const smg_access *access = &w->k->accesses.items[a];
    bool moves = access->index == SMG_EXPR_NONE || w->k->buffers.items[access->buffer].written;
    for (int n = 0; n < it->inner_count; n++) moves = moves || smg_access_index_moves(w->k, access, it->inner_axes[n]);
    if (moves) return;
    const char *valid = glsl_all_valid(w, it, access->axis, access->axis_count);
    const char *part = index_part(w, it, a, glsl_both(w, inside, valid), &it->present[a]);
    GLSL_LINE(w, "int i%d = %s;", a, glsl_plus(w, it->address[a], part));
    it->address[a] = GLSL_STRING(w, "i%d", a);
    it->indexed[a] = true;
}

void glsl_hoist_outer(glsl_writer *w, glsl_iter *it, const char *inside) {
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++)
        if (it->access_used[a]) glsl_hoist_direct(w, it, a);
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++)
        if (it->access_used[a]) hoist_index(w, it, a, inside);
}

const char *glsl_indexed_address(glsl_writer *w, glsl_iter *it, int a, const char **io_valid) {
    const smg_access *access = &w->k->accesses.items[a];
    if (access->index == SMG_EXPR_NONE) return glsl_address(w, it, a);
    const char *address = glsl_direct_address(w, it, a), *present = it->present[a];
    const char *valid = io_valid != NULL ? *io_valid : NULL;
    if (!it->indexed[a])
        address = glsl_plus(w, address, index_part(w, it, a, valid, io_valid != NULL ? &present : NULL));
    if (io_valid != NULL) *io_valid = glsl_both(w, valid, present);
    return glsl_place(w, access, address);
}

const char *glsl_load(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf) {
    const smg_access *access = &w->k->accesses.items[leaf->index];
    smg_kind kind = smg_type_kind(w->k->buffers.items[access->buffer].type);
    if (it->vector[leaf->index] != NULL)
        return glsl_convert(w, GLSL_STRING(w, "%s[%d]", it->vector[leaf->index], it->member), kind, leaf->kind);
    const char *valid = glsl_all_valid(w, it, access->axis, access->axis_count);
    const char *address = glsl_indexed_address(w, it, leaf->index, &valid);
    int number = w->serial++;
    if (valid != NULL) {
        valid = glsl_named_condition(w, valid, number);
        GLSL_LINE(w, "int a%d = %s;", number, address);
        address = GLSL_STRING(w, "%s ? a%d : 0", valid, number);
    }
    const char *element = (it->alike[leaf->index] ? glsl_element_at : glsl_buffer_element)(w, access->buffer, address);
    GLSL_LINE(w, "%s v%d = %s;", glsl_kind(kind), number, element);
    const char *value = GLSL_STRING(w, "v%d", number);
    if (valid != NULL) GLSL_LINE(w, "%s = %s ? %s : %s;", value, valid, value, glsl_zero(kind));
    return glsl_convert(w, value, kind, leaf->kind);
}

/* ---- text
 * ----------------------------------------------------------------------------------------- */

static const char *tile_text(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf) {
    if (leaf->pick_count == 0) return glsl_tile_value(w, it, leaf->index);
    const smg_layout *layout = &w->k->layouts.items[w->k->tiles.items[leaf->index].layout];
    return glsl_register(w, leaf->index, glsl_register_at(w, it, layout, leaf));
}

static const char *leaf_text(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf) {
    int64_t value;
    switch (leaf->what) {
    case SMG_KLEAF_TILE:
        return glsl_convert(w, tile_text(w, it, leaf), smg_tile_kind(&w->k->tiles.items[leaf->index]), leaf->kind);
    case SMG_KLEAF_LOAD: return glsl_load(w, it, leaf);
    case SMG_KLEAF_IOTA: return glsl_convert(w, glsl_iota(w, it, leaf->index), SMG_KIND_INT, leaf->kind);
    case SMG_KLEAF_SIZE:
        if (smg_size_is_const(w->k->sizes, leaf->size, &value)) return glsl_constant(w, leaf->kind, (double)value);
        return glsl_convert(w, glsl_size(w, leaf->size), SMG_KIND_INT, leaf->kind);
    }
    return "0";
}

static const smg_kleaf *leaf_of(const glsl_writer *w, smg_expr expr) {
    const smg_expr_node *n = smg_expr_get(w->k->exprs, expr);
    return n->prim == SMG_PRIM_LEAF ? &w->k->leaves.items[n->leaf] : NULL;
}

/* Where the comparison asks whether the element at hand is inside of an axis, as checks do: even forms know that. NULL:
 * it asks something else. */
static const char *inside_text(glsl_writer *w, const glsl_iter *it, const smg_expr_node *less) {
    const smg_kleaf *at = leaf_of(w, less->arg[0]), *end = leaf_of(w, less->arg[1]);
    if (at == NULL || end == NULL || at->what != SMG_KLEAF_IOTA || end->what != SMG_KLEAF_SIZE) return NULL;
    const smg_access *place = &w->k->accesses.items[at->index];
    if (place->axis_count != 1 || place->offset != SMG_SIZE_ZERO || place->index != SMG_EXPR_NONE ||
        !smg_size_is_one(w->k->sizes, place->stride[0]) || w->k->axes.items[place->axis[0]].extent != end->size)
        return NULL;
    int axis = place->axis[0];
    return glsl_always_valid(w, axis) ? "true" : GLSL_STRING(w, "(%s)", glsl_valid_text(w, axis, it->coord[axis]));
}

/* max(x, literal) or min(x, literal) in two operations; where both might be NaN it takes twice as many and more. NULL:
 * it is neither, or the device does not promise what a comparison with NaN says. */
static const char *bounded_text(glsl_writer *w, const smg_expr_node *node, const char *const arg[2]) {
    bool max = node->prim == SMG_PRIM_MAX;
    if ((!max && node->prim != SMG_PRIM_MIN) || node->kind != SMG_KIND_FLOAT || !w->target->nan_preserve) return NULL;
    for (int i = 0; i < 2; i++) {
        const smg_expr_node *n = smg_expr_get(w->k->exprs, node->arg[i]);
        if (n->prim == SMG_PRIM_CONST && !isnan(n->value))
            return GLSL_STRING(w, "smg_at_%s(%s, %s)", max ? "least" : "most", arg[1 - i], arg[i]);
    }
    return NULL;
}

static const char *node_text(glsl_writer *w, glsl_iter *it, const smg_expr_node *node) {
    if (node->prim == SMG_PRIM_CONST) return glsl_constant(w, node->kind, node->value);
    if (node->prim == SMG_PRIM_LEAF) return leaf_text(w, it, &w->k->leaves.items[node->leaf]);
    const char *arg[3] = {"", "", ""};
    smg_kind kind = SMG_KIND_FLOAT;
    for (int i = 0; i < smg_prim_arity(node->prim); i++) {
        arg[i] = glsl_expr_text(w, it, node->arg[i]);
        kind = smg_expr_get(w->k->exprs, node->arg[i])->kind;
    }
    const char *inside = node->prim == SMG_PRIM_LT ? inside_text(w, it, node) : NULL;
    if (inside != NULL) return inside;
    if (node->prim == SMG_PRIM_TO_BOOL) return glsl_convert(w, arg[0], kind, SMG_KIND_BOOL);
    if (node->prim == SMG_PRIM_TO_INT && kind == SMG_KIND_FLOAT && !smg_target_switches_lanes(w->target))
        return GLSL_STRING(w, "smg_int(%s)", arg[0]);
    const char *bounded = bounded_text(w, node, arg);
    if (bounded != NULL) return bounded;
    return glsl_apply(w, node->prim, arg[0], arg[1], arg[2]);
}

static bool is_sure(const glsl_writer *w, smg_expr expr) {
    for (int i = 0; i < w->k->sure.count; i++)
        if (w->k->sure.items[i] == expr) return true;
    return false;
}

const char *glsl_expr_text(glsl_writer *w, glsl_iter *it, smg_expr expr) {
    if (expr == SMG_EXPR_NONE || w->status != SMG_OK) {
        glsl_fail(w, SMG_INTERNAL, "an expression is missing");
        return "0";
    }
    if (it->memo[expr] != NULL) return it->memo[expr];
    const smg_expr_node *node = smg_expr_get(w->k->exprs, expr);
    const char *text = node_text(w, it, node);
    if (is_sure(w, expr)) text = GLSL_STRING(w, "(even || %s)", text);
    bool inner = node->prim != SMG_PRIM_CONST && node->prim != SMG_PRIM_LEAF;
    if (inner && (it->uses[expr] > 1 || strlen(text) > LONG_TEXT)) {
        int number = w->serial++;
        GLSL_LINE(w, "%s e%d = %s;", glsl_kind(node->kind), number, text);
        text = GLSL_STRING(w, "e%d", number);
    }
    it->memo[expr] = text;
    return text;
}
