/* Values in parts. The axis is found by following one value's dim through the group, against and along the flow; what
 * comes from outside of the group is a view of memory with two axes instead of one. Behind the last part's end stands
 * what the reader asks for; what is computed there is anything, and is masked where it is summed up. */
#include "plan/plan_parts.h"

static const smg_node *node_of(const parts *s, smg_node_id id) {
    return smg_graph_node(s->g, id);
}

bool parts_is_inside(const parts *s, smg_node_id id) {
    const smg_node *n = node_of(s, smg_space_source(s->g, id));
    smg_op_class class_ = smg_node_class(n);
    if (class_ == SMG_CLASS_LEAF || class_ == SMG_CLASS_GATHER) return false;
    smg_node_id source = smg_space_source(s->g, id);
    return s->own[source] || (s->p->inlined[source] && !s->bare);
}

static bool is_one(const parts *s, const smg_node *n, int d) {
    return smg_size_is_one(s->g->sizes, n->dims[d]);
}

/* ---- the axis ------------------------------------------------------------------------------------ */

/* d: -1 where the value should have the axis and has no dim that is it. */
static void set_axis(parts *s, smg_node_id id, int d) {
    const smg_node *n = node_of(s, id);
    if ((d >= 0 && s->axis[id] == d) || s->clash) return;
    s->clash = s->axis[id] >= 0 || d < 0 || d >= n->rank || n->dims[d] != s->extent;
    s->axis[id] = d;
    smg_node_id *slot = SMG_ARRAY_PUSH(s->arena, &s->waiting);
    if (slot != NULL) *slot = id;
}

static int letter_at(const char *label, char letter) {
    const char *at = letter ? strchr(label, letter) : NULL;
    return at != NULL ? (int)(at - label) : -1;
}

/* The dim of a reshaped value that is dim d of the other shape: as long, with as much behind it. */
static int same_dim(const parts *s, const smg_node *of, int d, const smg_node *in) {
    smg_size behind = smg_size_const(s->g->sizes, 1), other = behind;
    for (int i = d + 1; i < of->rank; i++) behind = smg_size_mul(s->g->sizes, behind, of->dims[i]);
    for (int i = in->rank - 1; i >= 0; i--) {
        if (in->dims[i] == of->dims[d] && other == behind) return i;
        other = smg_size_mul(s->g->sizes, other, in->dims[i]);
    }
    return -1;
}

/* Dim d of operand k in the view's result; -1: it is gone. */
static int through_view(const parts *s, const smg_node *n, int d) {
    const smg_node *a = node_of(s, n->operand[0]);
    switch (smg_op_view(n->op)) {
    case SMG_VIEW_TRANSPOSE:
        for (int i = 0; i < n->rank; i++)
            if (n->perm[i] == d) return i;
        return -1;
    case SMG_VIEW_RESHAPE: return same_dim(s, a, d, n);
    case SMG_VIEW_BROADCAST: return d + n->rank - a->rank;
    case SMG_VIEW_SLICE: return n->axis != d ? d : -1;
    case SMG_VIEW_WINDOW:
    case SMG_VIEW_NONE: break;
    }
    return -1;
}

/* Dim d of the view's result in its operand; -1: it has none. */
static int before_view(const parts *s, const smg_node *n, int d) {
    const smg_node *a = node_of(s, n->operand[0]);
    switch (smg_op_view(n->op)) {
    case SMG_VIEW_TRANSPOSE: return n->perm[d];
    case SMG_VIEW_RESHAPE: return same_dim(s, n, d, a);
    case SMG_VIEW_BROADCAST: {
        int at = d - (n->rank - a->rank);
        return at >= 0 && !is_one(s, a, at) ? at : -1;
    }
    case SMG_VIEW_SLICE: return n->axis != d ? d : -1;
    case SMG_VIEW_WINDOW:
    case SMG_VIEW_NONE: break;
    }
    return -1;
}

static void follow_product(parts *s, smg_node_id id, char letter) {
    const smg_node *n = node_of(s, id);
    for (int k = 0; k < 2; k++) {
        int at = letter_at(n->label[k], letter);
        if (at >= 0) set_axis(s, n->operand[k], at);
    }
    if (letter_at(n->label[2], letter) >= 0) set_axis(s, id, letter_at(n->label[2], letter));
}

static void follow_up(parts *s, smg_node_id id) {
    const smg_node *n = node_of(s, id);
    int d = s->axis[id];
    if (!parts_is_inside(s, id)) return;
    if (smg_node_class(n) == SMG_CLASS_CONTRACT) follow_product(s, id, n->label[2][d]);
    if (smg_node_class(n) == SMG_CLASS_REDUCE) set_axis(s, n->operand[0], n->keep ? d : d + (d >= n->axis));
    if (smg_node_class(n) == SMG_CLASS_VIEW) {
        int at = before_view(s, n, d);
        bool broadcast = smg_op_view(n->op) == SMG_VIEW_BROADCAST;
        if (at >= 0 || !broadcast) set_axis(s, n->operand[0], at);
    }
    for (int k = 0; smg_node_class(n) == SMG_CLASS_MAP && k < n->operand_count; k++) {
        const smg_node *a = node_of(s, n->operand[k]);
        int at = d - (n->rank - a->rank);
        if (at >= 0 && !is_one(s, a, at)) set_axis(s, n->operand[k], at);
    }
}

/* What operand k of `id` says of it. */
static void follow_down(parts *s, smg_node_id id, int k) {
    const smg_node *n = node_of(s, id), *a = node_of(s, n->operand[k]);
    int d = s->axis[n->operand[k]];
    switch (smg_node_class(n)) {
    case SMG_CLASS_MAP: set_axis(s, id, d + n->rank - a->rank); break;
    case SMG_CLASS_CONTRACT: follow_product(s, id, n->label[k][d]); break;
    case SMG_CLASS_REDUCE:
        if (n->axis != d) set_axis(s, id, n->keep ? d : d - (d > n->axis));
        break;
    case SMG_CLASS_VIEW: {
        int at = through_view(s, n, d);
        if (at >= 0 || parts_is_inside(s, id)) set_axis(s, id, at);
        break;
    }
    case SMG_CLASS_GATHER: s->clash = true; break;
    case SMG_CLASS_LEAF: break;
    }
}

static void add_around(parts *s, smg_node_id id, bool *seen) {
    const smg_node *n = node_of(s, id);
    if (seen[id]) return;
    seen[id] = true;
    bool outside = smg_node_class(n) != SMG_CLASS_VIEW && !parts_is_inside(s, id);
    for (int k = 0; !outside && k < n->operand_count; k++) add_around(s, n->operand[k], seen);
}

static smg_status find_around(parts *s) {
    int nodes = s->g->nodes.count;
    bool *seen = SMG_ARENA_ARRAY(s->arena, bool, (size_t)nodes + 1);
    s->around = SMG_ARENA_ARRAY(s->arena, smg_node_id, (size_t)nodes + 1);
    if (seen == NULL || s->around == NULL) return SMG_MEMORY;
    for (smg_node_id id = 0; id < nodes; id++)
        if (s->own[id]) add_around(s, id, seen);
    for (smg_node_id id = 0; id < nodes; id++)
        if (seen[id]) s->around[s->around_count++] = id;
    return SMG_OK;
}

char parts_letter(const parts *s, const smg_node *n) {
    for (int k = 0; k < 2; k++) {
        int d = s->axis[n->operand[k]];
        if (d >= 0) return n->label[k][d];
    }
    return 0;
}

bool parts_folds(const parts *s, smg_node_id id) {
    const smg_node *n = node_of(s, id);
    if (!s->own[id]) return false;
    if (smg_node_class(n) == SMG_CLASS_REDUCE) return s->axis[n->operand[0]] == n->axis;
    if (smg_node_class(n) != SMG_CLASS_CONTRACT) return false;
    char letter = parts_letter(s, n);
    return letter != 0 && letter_at(n->label[2], letter) < 0;
}

static void find_dependence(parts *s) {
    for (int i = 0; i < s->around_count; i++) {
        smg_node_id id = s->around[i];
        const smg_node *n = node_of(s, id);
        for (int k = 0; parts_is_inside(s, id) && k < n->operand_count; k++) {
            smg_node_id a = n->operand[k];
            s->depends[id] = s->depends[id] || s->depends[a] || parts_folds(s, a);
        }
        s->sums += parts_folds(s, id);
    }
}

/* What only reads sums has no parts. */
static smg_status find_own(parts *s) {
    size_t count = (size_t)s->g->nodes.count + 1;
    bool *summed = SMG_ARENA_ARRAY(s->arena, bool, count), *own = SMG_ARENA_ARRAY(s->arena, bool, count);
    if (summed == NULL || own == NULL) return SMG_MEMORY;
    for (smg_node_id id = s->g->nodes.count - 1; id >= 0; id--) {
        const smg_node *n = node_of(s, id);
        smg_op_class class_ = smg_node_class(n);
        bool sums = s->split.run[id] && (class_ == SMG_CLASS_REDUCE || class_ == SMG_CLASS_CONTRACT);
        own[id] = s->split.run[id] && (sums || (summed[id] && !s->bare));
        for (int k = 0; k < n->operand_count; k++) summed[n->operand[k]] = summed[n->operand[k]] || sums || summed[id];
    }
    s->own = own;
    return SMG_OK;
}

static smg_status seek(parts *s) {
    SMG_TRY(find_own(s));
    SMG_TRY(find_around(s));
    set_axis(s, s->split.node, s->split.axis);
    while (s->waiting.count > 0 && !s->clash) {
        smg_node_id id = s->waiting.items[--s->waiting.count];
        follow_up(s, id);
        for (int i = 0; i < s->around_count && !s->clash; i++) {
            const smg_node *n = node_of(s, s->around[i]);
            bool reads = smg_node_class(n) == SMG_CLASS_VIEW || parts_is_inside(s, s->around[i]);
            for (int k = 0; reads && k < n->operand_count; k++)
                if (n->operand[k] == id) follow_down(s, s->around[i], k);
        }
    }
    return smg_context_status(s->p->ctx);
}

static void forget_axes(parts *s) {
    for (int id = 0; id < s->g->nodes.count; id++) s->axis[id] = -1;
    s->waiting.count = s->around_count = 0;
    s->clash = false;
}

/* What a sum is made of may have other axes (all of them read as one): then it comes from memory, or is made anew. */
smg_status parts_find(parts *s, bool *out_found) {
    SMG_TRY(seek(s));
    if (s->clash) {
        s->bare = true;
        forget_axes(s);
        SMG_TRY(seek(s));
    }
    if (!s->clash) find_dependence(s);
    *out_found = !s->clash && s->sums > 0;
    return smg_context_status(s->p->ctx);
}

int parts_behind(const parts *s, smg_node_id id) {
    return node_of(s, id)->rank - 1 - s->axis[id];
}

/* ---- nodes --------------------------------------------------------------------------------------- */

smg_node_id parts_push(parts *s, smg_node node) {
    node.name = "";
    for (int k = 0; k < node.operand_count; k++)
        if (node.operand[k] < 0) return -1;
    smg_node_id id = smg_graph_push(s->to, &node);
    smg_type *type = SMG_ARRAY_PUSH(s->arena, &s->storage);
    smg_node_id *from = SMG_ARRAY_PUSH(s->arena, &s->from);
    int *together = SMG_ARRAY_PUSH(s->arena, &s->together), *merges = SMG_ARRAY_PUSH(s->arena, &s->merges);
    if (id < 0 || type == NULL || from == NULL || together == NULL || merges == NULL) return -1;
    const smg_node *made = smg_graph_node(s->to, id);
    *type = made->type;
    if (smg_node_class(made) == SMG_CLASS_VIEW) *type = s->storage.items[made->operand[0]];
    *from = -1;
    return id;
}

smg_node_id parts_number(parts *s, smg_type type, double value) {
    return parts_push(s, (smg_node){.op = SMG_OP_FILL, .type = type, .value = value});
}

smg_node_id parts_map(parts *s, smg_op op, int count, smg_node_id a, smg_node_id b, smg_node_id c) {
    return parts_push(s, (smg_node){.op = op, .operand_count = count, .operand = {a, b, c}});
}

smg_node_id parts_reshape(parts *s, smg_node_id node, int rank, const smg_size *dims) {
    smg_node view = {.op = SMG_OP_RESHAPE, .operand_count = 1, .operand = {node}, .rank = rank};
    if (rank > SMG_MAX_RANK) return -1;
    for (int i = 0; i < rank; i++) view.dims[i] = dims[i];
    return parts_push(s, view);
}

bool parts_split_dims(const parts *s, smg_node *io, int axis) {
    if (io->rank == SMG_MAX_RANK) return false;
    for (int i = io->rank; i > axis + 1; i--) io->dims[i] = io->dims[i - 1];
    io->dims[axis] = s->count;
    io->dims[axis + 1] = smg_size_const(s->g->sizes, s->split.chunk);
    io->rank++;
    return true;
}

smg_node_id parts_beside(parts *s, smg_node_id node, int behind) {
    smg_size dims[SMG_MAX_RANK + 1];
    if (node < 0) return -1;
    const smg_node *n = smg_graph_node(s->to, node);
    int at = n->rank - 1 - behind;
    if (at < 0) return node;
    if (n->rank == SMG_MAX_RANK || !is_one(s, n, at)) return -1;
    for (int i = 0; i <= n->rank; i++) dims[i] = n->dims[i <= at ? i : i - 1];
    return parts_reshape(s, node, n->rank + 1, dims);
}

/* Is an element of a part one of the axis? */
static smg_node_id is_valid(parts *s, int behind) {
    smg_size one = smg_size_const(s->g->sizes, 1);
    smg_node which = {.op = SMG_OP_IOTA, .type = SMG_TYPE_I32, .rank = behind + 2};
    if (which.rank > SMG_MAX_RANK) return -1;
    if (s->valid[behind] > 0) return s->valid[behind] - 1;
    for (int i = 0; i < which.rank; i++) which.dims[i] = one;
    smg_node where = which;
    which.dims[0] = s->count;
    where.axis = 1;
    where.dims[1] = smg_size_const(s->g->sizes, s->split.chunk);
    smg_node_id first =
        parts_map(s, SMG_OP_MUL, 2, parts_push(s, which), parts_number(s, SMG_TYPE_I32, (double)s->split.chunk), -1);
    smg_node_id at = parts_map(s, SMG_OP_ADD, 2, first, parts_push(s, where), -1);
    smg_node_id end = parts_push(s, (smg_node){.op = SMG_OP_SIZE, .type = SMG_TYPE_I32, .size = s->extent});
    s->valid[behind] = parts_map(s, SMG_OP_LT, 2, at, end, -1) + 1;
    return s->valid[behind] - 1;
}

static bool same_number(double a, double b) {
    return !(a < b) && !(a > b);
}

smg_node_id parts_mask(parts *s, smg_node_id node, int behind, double outside) {
    if (s->even || node < 0) return node;
    for (int i = 0; i < s->masked.count; i++)
        if (s->masked.items[i].key == node && same_number(s->masked.items[i].outside, outside))
            return s->masked.items[i].node;
    smg_node_id other = parts_number(s, smg_graph_node(s->to, node)->type, outside);
    smg_node_id chosen = parts_map(s, SMG_OP_SELECT, 3, is_valid(s, behind), node, other);
    parts_made *slot = SMG_ARRAY_PUSH(s->arena, &s->masked);
    if (slot == NULL || chosen < 0) return -1;
    s->storage.items[chosen] = s->storage.items[node];
    *slot = (parts_made){.key = node, .outside = outside, .node = chosen};
    return chosen;
}

/* ---- values in parts ----------------------------------------------------------------------------- */

static smg_node_id edge(parts *s, smg_node_id id) {
    const smg_node *n = node_of(s, id);
    smg_node view = {.op = s->even ? SMG_OP_RESHAPE : SMG_OP_WINDOW, .type = n->type, .rank = n->rank};
    view.operand_count = 1;
    view.operand[0] = s->now[id];
    for (int i = 0; i < n->rank; i++) view.dims[i] = n->dims[i];
    if (!parts_split_dims(s, &view, s->axis[id])) return -1;
    if (s->even) return parts_push(s, view);
    view.axis = s->axis[id];
    view.begin = SMG_SIZE_ZERO;
    view.step = s->split.chunk;
    view.dilation = 1;
    return parts_push(s, view);
}

static smg_node_id operand_in_parts(parts *s, smg_node_id operand, int behind) {
    if (s->axis[operand] < 0) return parts_beside(s, s->now[operand], behind);
    return parts_behind(s, operand) == behind ? parts_value(s, operand) : -1;
}

static smg_node_id map_in_parts(parts *s, smg_node_id id) {
    smg_node node = *node_of(s, id);
    for (int k = 0; k < node.operand_count; k++)
        node.operand[k] = operand_in_parts(s, node.operand[k], parts_behind(s, id));
    return parts_push(s, node);
}

/* A letter that the product has not. */
static char new_letter(const smg_node *n) {
    char letter = 'a';
    while (strchr(n->label[0], letter) != NULL || strchr(n->label[1], letter) != NULL) letter++;
    return letter;
}

static bool insert_letter(char *label, char at, char letter) {
    int place = letter_at(label, at), length = (int)strlen(label);
    if (length == SMG_MAX_RANK) return false;
    memmove(label + place + 1, label + place, (size_t)(length - place + 1));
    label[place] = letter;
    return true;
}

static smg_node_id product_in_parts(parts *s, smg_node_id id) {
    smg_node node = *node_of(s, id);
    char letter = node.label[2][s->axis[id]], part = new_letter(&node);
    for (int k = 0; k < 2; k++) {
        bool has = letter_at(node.label[k], letter) >= 0;
        node.operand[k] = has ? parts_value(s, node.operand[k]) : s->now[node.operand[k]];
        if (has && !insert_letter(node.label[k], letter, part)) return -1;
    }
    return insert_letter(node.label[2], letter, part) ? parts_push(s, node) : -1;
}

static smg_node_id view_in_parts(parts *s, smg_node_id id) {
    smg_node node = *node_of(s, id);
    smg_node_id operand = node.operand[0];
    int d = s->axis[id], before = s->axis[operand];
    if (node.rank == SMG_MAX_RANK) return -1;
    if (before >= 0)
        node.operand[0] = parts_value(s, operand);
    else
        node.operand[0] = parts_beside(s, s->now[operand], parts_behind(s, id));
    for (int i = node.rank, from = node.rank - 1; i >= 0; i--, from--) {
        if (i == d) from++; /* twice: its two axes */
        node.perm[i] = node.perm[from] + (node.perm[from] > before || i == d + 1);
    }
    if (smg_op_view(node.op) == SMG_VIEW_SLICE) node.axis += node.axis > d;
    return parts_split_dims(s, &node, d) ? parts_push(s, node) : -1;
}

static smg_node_id make_value(parts *s, smg_node_id id) {
    smg_node node = *node_of(s, id);
    if (!parts_is_inside(s, id)) return edge(s, id);
    switch (smg_node_class(&node)) {
    case SMG_CLASS_MAP: return map_in_parts(s, id);
    case SMG_CLASS_CONTRACT: return product_in_parts(s, id);
    case SMG_CLASS_VIEW: return view_in_parts(s, id);
    case SMG_CLASS_REDUCE:
        node.axis += node.axis > s->axis[node.operand[0]];
        node.operand[0] = parts_value(s, node.operand[0]);
        return parts_push(s, node);
    case SMG_CLASS_GATHER:
    case SMG_CLASS_LEAF: break;
    }
    return -1;
}

/* In parts it is rounded as it would be whole. */
smg_node_id parts_value(parts *s, smg_node_id id) {
    for (int i = 0; i < s->values.count; i++)
        if (s->values.items[i].key == id) return s->values.items[i].node;
    smg_node_id node = make_value(s, id);
    if (node >= 0) s->storage.items[node] = smg_graph_storage(s->g, id);
    parts_made *slot = node >= 0 ? SMG_ARRAY_PUSH(s->arena, &s->values) : NULL;
    if (slot == NULL) return -1;
    *slot = (parts_made){.key = id, .node = node};
    return node;
}
