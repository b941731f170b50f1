/* Factors laid out as rows. A product that contracts several axes of a factor walks them in turn, and where they lie
 * apart in memory (channels, lines and columns of a patch of an image) its slices are as short as one of them, and rows
 * are those of one axis. Such a factor is read through a copy whose rows are what the product contracts, side by side,
 * so that in memory there is one contracted axis, and one of rows. The copy takes a read and a write of the factor,
 * each of whose elements serves every column. Whether it gets a kernel is for the planner to say, by price: a copy that
 * has none is read through. Only factors whose elements are all read once: windows that overlap would make a copy of
 * more than there is. */
#include "rewrite/rewrite_internal.h"

#define LEAST_COLUMNS 64 /* results that an element of the copy serves */

typedef struct rows {
    smg_graph *g;
    const smg_node *old;
    int count;
    bool *fixed, *stored; /* per old node, see smg_graph_mark_fixed */
    smg_node_id *now;     /* old id -> new id */
} rows;

/* Axes of one factor, by letters: those that the result has, in its order, then the contracted ones. */
typedef struct factor_axes {
    char own[SMG_MAX_RANK + 1], contracted[SMG_MAX_RANK + 1];
} factor_axes;

static bool has(const char *label, char letter) {
    return strchr(label, letter) != NULL;
}

/* False where an axis is both factors' and the result's, or one factor's alone. */
static bool axes_of(const smg_node *product, int k, factor_axes *out) {
    const char *own = product->label[k], *other = product->label[1 - k], *result = product->label[2];
    int owns = 0, contracted = 0;
    for (const char *l = result; *l; l++) {
        if (has(own, *l) && has(other, *l)) return false;
        if (has(own, *l)) out->own[owns++] = *l;
    }
    for (const char *l = own; *l; l++) {
        if (has(result, *l)) continue;
        if (!has(other, *l)) return false;
        out->contracted[contracted++] = *l;
    }
    out->own[owns] = out->contracted[contracted] = '\0';
    return true;
}

static smg_size dim_at(const smg_node *n, const char *label, char letter) {
    return n->dims[strchr(label, letter) - label];
}

/* The elements of these axes; -1: not known. */
static int64_t elements_of(const rows *r, const smg_node *n, const char *label, const char *letters) {
    int64_t product = 1, extent;
    for (const char *l = letters; *l; l++)
        if (!smg_size_is_const(r->g->sizes, dim_at(n, label, *l), &extent) || !smg_mul_i64(product, extent, &product))
            return -1;
    return product;
}

/* Every element of memory at most once: views that neither repeat nor overlap. */
static bool reads_once(const rows *r, smg_node_id id) {
    for (; smg_node_class(&r->old[id]) == SMG_CLASS_VIEW; id = r->old[id].operand[0]) {
        smg_view_kind kind = smg_op_view(r->old[id].op);
        if (kind != SMG_VIEW_RESHAPE && kind != SMG_VIEW_TRANSPOSE && kind != SMG_VIEW_SLICE) return false;
    }
    return true;
}

/* Do the contracted axes of factor k lie apart, and is the other one a constant with many columns? */
static bool lies_apart(const rows *r, const smg_node *product, int k, factor_axes *out) {
    factor_axes other;
    smg_node_id id = product->operand[k], right = product->operand[1 - k];
    if (smg_node_class(product) != SMG_CLASS_CONTRACT || product->operand_count != 2) return false;
    if (r->fixed[id] || !r->fixed[right] || !r->stored[right] || !reads_once(r, id)) return false;
    if (!axes_of(product, k, out) || !axes_of(product, 1 - k, &other)) return false;
    if (strlen(out->contracted) < 2 || strstr(product->label[k], out->contracted) != NULL) return false;
    return elements_of(r, &r->old[right], product->label[1 - k], other.own) >= LEAST_COLUMNS &&
           elements_of(r, &r->old[id], product->label[k], out->contracted) > 0;
}

/* The factor with its own axes in the order of the result, then one for all that is contracted; its label, too. */
static smg_value as_rows(rows *r, const smg_node *product, int k, const factor_axes *axes, const char *contracted,
                         char *out_label) {
    const smg_node *factor = &r->old[product->operand[k]];
    const char *label = product->label[k];
    int perm[SMG_MAX_RANK], rank = 0, owns = (int)strlen(axes->own);
    smg_size dims[SMG_MAX_RANK];
    smg_size depth = smg_size_const(r->g->sizes, 1);
    for (const char *l = axes->own; *l; l++) {
        dims[rank] = dim_at(factor, label, *l);
        perm[rank++] = (int)(strchr(label, *l) - label);
    }
    for (const char *l = contracted; *l; l++) {
        depth = smg_size_mul(r->g->sizes, depth, dim_at(factor, label, *l));
        perm[rank++] = (int)(strchr(label, *l) - label);
    }
    dims[owns] = depth;
    memcpy(out_label, axes->own, (size_t)owns);
    out_label[owns] = contracted[0];
    out_label[owns + 1] = '\0';
    smg_value turned = smg_graph_transpose(r->g, (smg_value){r->now[product->operand[k]] + 1}, rank, perm);
    return smg_graph_reshape_to(r->g, turned, owns + 1, dims);
}

static smg_status lay(rows *r, smg_node *product, const smg_node *old, int k, const factor_axes *axes) {
    factor_axes other;
    if (!axes_of(old, 1 - k, &other)) return SMG_INTERNAL;
    smg_value left = as_rows(r, old, k, axes, axes->contracted, product->label[k]);
    smg_value right = as_rows(r, old, 1 - k, &other, axes->contracted, product->label[1 - k]);
    smg_node copy = {.op = SMG_OP_COPY, .operand_count = 1, .operand = {left.id - 1}, .name = ""};
    if (r->g->status != SMG_OK) return r->g->status;
    product->operand[k] = smg_graph_push(r->g, &copy);
    product->operand[1 - k] = right.id - 1;
    return r->g->status;
}

static smg_status rebuild(rows *r, int *io_laid) {
    for (int i = 0; i < r->count; i++) {
        smg_node node = r->old[i];
        factor_axes axes;
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = r->now[node.operand[k]];
        for (int k = 0; k < 2; k++) {
            if (!lies_apart(r, &r->old[i], k, &axes)) continue;
            SMG_TRY(lay(r, &node, &r->old[i], k, &axes));
            *io_laid += 1;
        }
        smg_node *slot = SMG_ARRAY_PUSH(r->g->arena, &r->g->nodes);
        if (slot == NULL) return SMG_MEMORY;
        *slot = node;
        r->now[i] = r->g->nodes.count - 1;
    }
    for (int o = 0; o < r->g->outputs.count; o++) r->g->outputs.items[o].node = r->now[r->g->outputs.items[o].node];
    return SMG_OK;
}

smg_status smg_rewrite_lay_rows(smg_graph *g, int *out_laid) {
    size_t count = (size_t)g->nodes.count + 1;
    rows r = {.g = g, .old = g->nodes.items, .count = g->nodes.count};
    *out_laid = 0;
    r.fixed = SMG_ARENA_ARRAY(g->arena, bool, count);
    r.stored = SMG_ARENA_ARRAY(g->arena, bool, count);
    r.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    if (!r.fixed || !r.stored || !r.now) return SMG_MEMORY;
    smg_graph_mark_fixed(g, r.fixed, r.stored);
    bool finished = g->finished, any = false;
    factor_axes axes;
    for (int i = 0; i < 2 * r.count && !any; i++) any = lies_apart(&r, &r.old[i / 2], i % 2, &axes);
    if (!any) return SMG_OK;
    g->finished = false;
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    SMG_TRY(rebuild(&r, out_laid));
    g->finished = finished;
    return smg_context_status(g->ctx);
}
