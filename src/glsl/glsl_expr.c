/* glsl_expr.c: scalar expressions at the current element. A node with several parents, and any that
 * grows long, becomes a temporary; everything else is written where it is used. The text of each
 * primitive is its row in op/prim.def. */
#include <float.h>
#include <math.h>

#include "glsl_private.h"

#define LONG_TEXT 80

const char *glsl_kind(smg_kind kind) {
    return kind == SMG_KIND_FLOAT ? "float" : kind == SMG_KIND_INT ? "int" : "bool";
}

const char *glsl_zero(smg_kind kind) {
    return kind == SMG_KIND_FLOAT ? "0.0" : kind == SMG_KIND_INT ? "0" : "false";
}

const char *glsl_convert(glsl_writer *w, const char *text, smg_kind from, smg_kind to) {
    if (from == to) return text;
    if (to == SMG_KIND_BOOL) return GLSL_STRING(w, "(%s != %s)", text, glsl_zero(from));
    return GLSL_STRING(w, "%s(%s)", glsl_kind(to), text);
}

const char *glsl_float(glsl_writer *w, double value) {
    if (isnan(value)) return "uintBitsToFloat(0x7fc00000u)";
    if (value > FLT_MAX) return "uintBitsToFloat(0x7f800000u)";
    if (value < -FLT_MAX) return "uintBitsToFloat(0xff800000u)";
    smg_text text;
    smg_text_init(&text, w->ctx);
    smg_text_add_f32(&text, (float)value);
    const char *digits = smg_text_cstr(&text);
    const char *point = strpbrk(digits, ".e") == NULL ? ".0" : "";
    const char *result = GLSL_STRING(w, digits[0] == '-' ? "(%s%s)" : "%s%s", digits, point);
    if (smg_text_status(&text) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    smg_text_free(&text);
    return result;
}

const char *glsl_constant(glsl_writer *w, smg_kind kind, double value) {
    if (kind == SMG_KIND_FLOAT) return glsl_float(w, value);
    if (kind == SMG_KIND_BOOL) return value != 0 ? "true" : "false";
    if (!(value > -2147483648.0 && value <= 2147483647.0)) {
        if (value <= -2147483648.0) return "(-2147483647 - 1)"; /* also -inf: identity of max */
        return "2147483647";
    }
    return GLSL_STRING(w, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

const char *glsl_apply(glsl_writer *w, smg_prim prim, const char *x, const char *y, const char *z) {
    const char *arg[3] = {x, y, z};
    smg_text text;
    smg_text_init(&text, w->ctx);
    for (const char *at = smg_prim_glsl(prim); *at != 0; at++) {
        if (at[0] == '$' && at[1] >= '0' && at[1] <= '2') {
            smg_text_add(&text, arg[at[1] - '0']);
            at++;
        } else {
            smg_text_add_n(&text, at, 1);
        }
    }
    if (smg_text_status(&text) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    const char *result = GLSL_STRING(w, "%s", smg_text_cstr(&text));
    smg_text_free(&text);
    return result;
}

/* ---- what an expression needs before its loops open
 * ----------------------------------------------- */

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
    const char *bounded = bounded_text(w, node, arg);
    if (bounded != NULL) return bounded;
    return glsl_apply(w, node->prim, arg[0], arg[1], arg[2]);
}

const char *glsl_expr_text(glsl_writer *w, glsl_iter *it, smg_expr expr) {
    if (expr == SMG_EXPR_NONE || w->status != SMG_OK) {
        glsl_fail(w, SMG_INTERNAL, "an expression is missing");
        return "0";
    }
    if (it->memo[expr] != NULL) return it->memo[expr];
    const smg_expr_node *node = smg_expr_get(w->k->exprs, expr);
    const char *text = node_text(w, it, node);
    bool inner = node->prim != SMG_PRIM_CONST && node->prim != SMG_PRIM_LEAF;
    if (inner && (it->uses[expr] > 1 || strlen(text) > LONG_TEXT)) {
        int number = w->serial++;
        GLSL_LINE(w, "%s e%d = %s;", glsl_kind(node->kind), number, text);
        text = GLSL_STRING(w, "e%d", number);
    }
    it->memo[expr] = text;
    return text;
}
