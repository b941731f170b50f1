/* Constants larger than one binding may reach, as parts that fit. A part is a run of the constant's first axis: the
 * same bytes, no copy. Parts travel through transposes, reshapes that keep the axis whole, and maps, up to those who
 * can work by parts:
 *
 *     gather     each part gives its rows, the index selects between them
 *     contract   along a contracted axis a sum of products over slices of the other operand; along an axis of the
 *                result, or of both operands, the parts' results one behind the other
 *
 * Everything else reads the constant as it was, and the program says that it does not fit. Rewrites drop what nobody
 * reads any more. */
#include "rewrite/rewrite.h"

#define SPLIT_GRAIN 64 /* parts are multiples of this where they may be: whole tiles */

typedef struct parts {
    int count, axis;
    int64_t *begin; /* count + 1 */
    smg_value *value;
} parts;

typedef struct splitter {
    const smg_graph *from;
    smg_graph *to;
    smg_value *now; /* per old node */
    parts **split;  /* per old node; NULL: not in parts */
    int64_t limit;
    int constants;
} splitter;

static bool fixed_dims(const smg_graph *g, const smg_node *n, int64_t *out_dims) {
    for (int d = 0; d < n->rank; d++)
        if (!smg_size_is_const(g->sizes, n->dims[d], &out_dims[d])) return false;
    return true;
}

/* Device bytes of one step along the first axis, and the steps; false when that is no finite number. */
static bool rows_of(const smg_graph *g, const smg_node *n, int64_t *out_rows, int64_t *out_bytes) {
    int64_t dims[SMG_MAX_RANK];
    if (n->rank < 1 || !fixed_dims(g, n, dims)) return false;
    *out_rows = dims[0];
    *out_bytes = smg_type_device_bytes(n->type);
    for (int d = 1; d < n->rank; d++)
        if (!smg_mul_i64(*out_bytes, dims[d], out_bytes)) return false;
    return *out_bytes > 0;
}

static bool is_large(const smg_graph *g, const smg_node *n, int64_t limit) {
    int64_t rows, bytes, all;
    if (!smg_op_is_constant(n->op) || !rows_of(g, n, &rows, &bytes)) return false;
    return bytes <= limit && (!smg_mul_i64(rows, bytes, &all) || all > limit);
}

static parts *new_parts(splitter *s, const parts *like, int count, int axis) {
    parts *p = SMG_ARENA_NEW(s->to->arena, parts);
    if (p == NULL) return NULL;
    *p = (parts){.count = count, .axis = axis};
    p->value = SMG_ARENA_ARRAY(s->to->arena, smg_value, (size_t)count);
    p->begin = like ? like->begin : SMG_ARENA_ARRAY(s->to->arena, int64_t, (size_t)count + 1);
    return p->value != NULL && p->begin != NULL ? p : NULL;
}

static smg_size extent_of(splitter *s, const parts *p, int i) {
    return smg_size_const(s->to->sizes, p->begin[i + 1] - p->begin[i]);
}

static smg_value push(splitter *s, smg_node *node) {
    return (smg_value){smg_graph_push(s->to, node) + 1};
}

/* ---- into parts, and through what keeps them --------------------------------------------------- */

static smg_status split_constant(splitter *s, const smg_node *n, parts **out) {
    int64_t rows = 0, bytes = 0;
    rows_of(s->from, n, &rows, &bytes);
    int64_t fit = s->limit / bytes;
    if (fit > SPLIT_GRAIN) fit -= fit % SPLIT_GRAIN;
    int64_t count = (rows + fit - 1) / fit;
    parts *p = count < 4096 ? new_parts(s, NULL, (int)count, 0) : NULL;
    *out = p;
    if (p == NULL) return count < 4096 ? SMG_MEMORY : SMG_OK;
    int64_t host = bytes / smg_type_device_bytes(n->type) * smg_type_host_bytes(n->type);
    for (int i = 0; i < p->count; i++) {
        p->begin[i] = i * fit;
        p->begin[i + 1] = rows < (i + 1) * fit ? rows : (i + 1) * fit;
        smg_node part = *n;
        part.name = n->name[0] ? smg_arena_format(s->to->arena, "%s/part%d", n->name, i) : "";
        if (part.name == NULL) return SMG_MEMORY;
        for (int d = 1; d < n->rank; d++) part.dims[d] = smg_size_import(s->to->sizes, s->from->sizes, n->dims[d]);
        part.dims[0] = extent_of(s, p, i);
        if (n->data != NULL) part.data = (const char *)n->data + p->begin[i] * host;
        p->value[i] = push(s, &part);
    }
    s->constants++;
    return s->to->status;
}

/* The axis of a view that is axis `axis` of its operand, whole; -1: none. */
static int axis_through(const splitter *s, const smg_node *view, int axis) {
    const smg_node *a = smg_graph_node(s->from, view->operand[0]);
    int64_t own[SMG_MAX_RANK], behind[SMG_MAX_RANK], before = 1;
    if (smg_op_view(view->op) == SMG_VIEW_TRANSPOSE) {
        for (int i = 0; i < view->rank; i++)
            if (view->perm[i] == axis) return i;
    }
    if (smg_op_view(view->op) != SMG_VIEW_RESHAPE) return -1;
    if (!fixed_dims(s->from, view, own) || !fixed_dims(s->from, a, behind)) return -1;
    for (int d = 0; d < axis; d++) before *= behind[d];
    for (int i = 0; i < view->rank; before /= i < view->rank ? own[i] : 1, i++) {
        if (before == 1 && own[i] == behind[axis]) return i;
        if (own[i] == 0 || before % own[i] != 0) return -1;
    }
    return -1;
}

static smg_status split_view(splitter *s, const smg_node *now, const smg_node *old, parts **out) {
    const parts *p = s->split[old->operand[0]];
    int axis = axis_through(s, old, p->axis);
    if (axis < 0) return SMG_OK;
    if ((*out = new_parts(s, p, p->count, axis)) == NULL) return SMG_MEMORY;
    for (int i = 0; i < p->count; i++) {
        smg_node part = *now;
        part.name = "";
        part.operand[0] = p->value[i].id - 1;
        part.dims[axis] = extent_of(s, p, i);
        (*out)->value[i] = push(s, &part);
    }
    return s->to->status;
}

static smg_value slice(splitter *s, smg_value a, int axis, const parts *p, int i) {
    smg_size begin = smg_size_const(s->to->sizes, p->begin[i]);
    return smg_graph_slice_of(s->to, a, axis, begin, extent_of(s, p, i), 1);
}

/* One operand in parts; the others are cut to them where they run along the axis. */
static smg_status split_map(splitter *s, const smg_node *now, const smg_node *old, parts **out) {
    int which = -1;
    for (int k = 0; k < old->operand_count; k++) {
        if (s->split[old->operand[k]] == NULL) continue;
        if (which >= 0) return SMG_OK;
        which = k;
    }
    const parts *p = s->split[old->operand[which]];
    int axis = p->axis + old->rank - smg_graph_node(s->from, old->operand[which])->rank;
    if ((*out = new_parts(s, p, p->count, axis)) == NULL) return SMG_MEMORY;
    for (int i = 0; i < p->count; i++) {
        smg_node part = *now;
        part.name = "";
        for (int k = 0; k < old->operand_count; k++) {
            const smg_node *operand = smg_graph_node(s->from, old->operand[k]);
            int own = axis - (old->rank - operand->rank);
            int64_t extent = 1;
            if (own >= 0 && !smg_size_is_const(s->from->sizes, operand->dims[own], &extent)) extent = 0;
            if (k == which)
                part.operand[k] = p->value[i].id - 1;
            else if (extent != 1)
                part.operand[k] = slice(s, s->now[old->operand[k]], own, p, i).id - 1;
        }
        if (s->to->status != SMG_OK) return s->to->status;
        (*out)->value[i] = push(s, &part);
    }
    return s->to->status;
}

/* ---- who works by parts ------------------------------------------------------------------------- */

static smg_value pair(splitter *s, const char *op, smg_value a, smg_value b) {
    return smg_graph_map(s->to, op, 2, (smg_value[]){a, b});
}

/* The index counted from the front (a negative one counts from the end, as everywhere). */
static smg_value from_front(splitter *s, const char *type, smg_value index, const parts *p) {
    smg_value all = smg_graph_number(s->to, type, (double)p->begin[p->count]);
    smg_value negative = pair(s, "lt", index, smg_graph_number(s->to, type, 0));
    return smg_graph_map(s->to, "select", 3, (smg_value[]){negative, pair(s, "add", index, all), index});
}

/* The index within part i; the nearest there is where it is not in there. One that is in no part stays outside for
 * the part that is selected, so that the kernel reports it: one that is negative still for the first (which adds its
 * extent again), one that is too large for the last. */
static smg_value index_in(splitter *s, const char *type, smg_value index, const parts *p, int i) {
    smg_value zero = smg_graph_number(s->to, type, 0), begin = smg_graph_number(s->to, type, (double)p->begin[i]);
    if (i == 0) {
        smg_value end = smg_graph_number(s->to, type, (double)p->begin[1]);
        smg_value outside = pair(s, "sub", index, end);
        smg_value own = smg_graph_map(s->to, "select", 3, (smg_value[]){pair(s, "lt", index, zero), outside, index});
        return smg_graph_map(s->to, "select", 3, (smg_value[]){pair(s, "lt", index, end), own, zero});
    }
    smg_value own = pair(s, "max", pair(s, "sub", index, begin), zero);
    if (i + 1 < p->count) {
        return pair(s, "min", own, smg_graph_number(s->to, type, (double)(p->begin[i + 1] - p->begin[i] - 1)));
    }
    smg_value all = smg_graph_number(s->to, type, (double)p->begin[p->count]);
    return smg_graph_map(s->to, "select", 3, (smg_value[]){pair(s, "lt", index, all), own, index});
}

static smg_value gather_parts(splitter *s, const smg_node *old) {
    const parts *p = s->split[old->operand[0]];
    const smg_node *n = smg_graph_node(s->to, s->now[old->operand[1]].id - 1);
    const char *type = smg_type_word(n->type);
    smg_size dims[SMG_MAX_RANK];
    int rank = n->rank, more = old->rank - rank;
    for (int d = 0; d < old->rank; d++) dims[d] = d < rank ? n->dims[d] : smg_size_const(s->to->sizes, 1);
    smg_value index = from_front(s, type, s->now[old->operand[1]], p), rows = {0};
    for (int i = 0; i < p->count; i++) {
        smg_value own = smg_graph_gather(s->to, p->value[i], index_in(s, type, index, p, i));
        smg_value begin = smg_graph_number(s->to, type, (double)p->begin[i]);
        smg_value before = i > 0 ? pair(s, "lt", index, begin) : own;
        if (i > 0 && more > 0) before = smg_graph_reshape_to(s->to, before, rank + more, dims);
        rows = i > 0 ? smg_graph_map(s->to, "select", 3, (smg_value[]){before, rows, own}) : own;
    }
    return rows;
}

static smg_value contract_parts(splitter *s, const smg_node *old, int k) {
    const parts *p = s->split[old->operand[k]];
    char letter = old->label[k][p->axis];
    const char *other = strchr(old->label[1 - k], letter), *result = strchr(old->label[2], letter);
    smg_value *piece = SMG_ARENA_ARRAY(s->to->arena, smg_value, (size_t)p->count);
    smg_value sum = {0};
    if (piece == NULL) {
        smg_build_stick(s->to, SMG_MEMORY);
        return sum;
    }
    for (int i = 0; i < p->count; i++) {
        smg_node part = {.op = SMG_OP_CONTRACT, .name = "", .operand_count = 2};
        smg_value against = s->now[old->operand[1 - k]];
        memcpy(part.label, old->label, sizeof part.label);
        if (other != NULL) against = slice(s, against, (int)(other - old->label[1 - k]), p, i);
        part.operand[k] = p->value[i].id - 1;
        part.operand[1 - k] = against.id - 1;
        if (s->to->status != SMG_OK) return sum;
        piece[i] = push(s, &part);
        if (result == NULL) sum = i > 0 ? pair(s, "add", sum, piece[i]) : piece[i];
    }
    return result == NULL ? sum : smg_graph_concat(s->to, p->count, piece, (int)(result - old->label[2]));
}

static smg_status split_node(splitter *s, smg_node_id id, const smg_node *now) {
    const smg_node *old = smg_graph_node(s->from, id);
    bool first = old->operand_count > 0 && s->split[old->operand[0]] != NULL;
    bool second = old->operand_count > 1 && s->split[old->operand[1]] != NULL;
    if (is_large(s->from, old, s->limit)) return split_constant(s, old, &s->split[id]);
    switch (smg_node_class(old)) {
    case SMG_CLASS_VIEW: return first ? split_view(s, now, old, &s->split[id]) : SMG_OK;
    case SMG_CLASS_MAP:
        for (int k = 0; k < old->operand_count; k++)
            if (s->split[old->operand[k]] != NULL) return split_map(s, now, old, &s->split[id]);
        return SMG_OK;
    case SMG_CLASS_GATHER:
        if (first && s->split[old->operand[0]]->axis == 0) s->now[id] = gather_parts(s, old);
        break;
    case SMG_CLASS_CONTRACT:
        if (first != second) s->now[id] = contract_parts(s, old, second);
        break;
    case SMG_CLASS_LEAF:
    case SMG_CLASS_REDUCE: break;
    }
    return s->to->status;
}

static smg_status rebuild(splitter *s) {
    size_t count = (size_t)s->from->nodes.count + 1;
    s->now = SMG_ARENA_ARRAY(s->to->arena, smg_value, count);
    s->split = SMG_ARENA_ARRAY(s->to->arena, parts *, count);
    if (s->now == NULL || s->split == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < s->from->nodes.count; id++) {
        smg_node node = *smg_graph_node(s->from, id);
        SMG_TRY(smg_node_import(s->to, s->from, &node));
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = s->now[node.operand[k]].id - 1;
        smg_node copy = node;
        s->now[id] = push(s, &copy);
        if (s->to->status != SMG_OK) return s->to->status;
        SMG_TRY(split_node(s, id, &node));
    }
    for (int i = 0; i < s->from->outputs.count; i++) {
        const smg_graph_output_row *row = &s->from->outputs.items[i];
        smg_graph_output(s->to, row->name, s->now[row->node]);
        if (row->state != NULL) smg_graph_state(s->to, row->state, row->name);
    }
    return smg_graph_finish(s->to);
}

smg_status smg_rewrite_split_constants(const smg_graph *g, int64_t limit, smg_graph **out_graph, int *out_constants) {
    splitter s = {.from = g, .limit = limit};
    bool any = false;
    *out_graph = NULL;
    *out_constants = 0;
    for (smg_node_id id = 0; id < g->nodes.count; id++) any = any || is_large(g, smg_graph_node(g, id), limit);
    if (!any) return SMG_OK;
    SMG_TRY(smg_graph_create_like(g, &s.to));
    smg_status status = rebuild(&s);
    if (status != SMG_OK) {
        smg_graph_destroy(s.to);
        return status;
    }
    *out_graph = s.to;
    *out_constants = s.constants;
    return SMG_OK;
}
