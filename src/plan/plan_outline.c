/* The outline of a space: its folds in the order in which they run, with what each of them, their factors and the
 * results load and evaluate. Made once for all schedules of the space. */
#include <math.h>

#include "plan/plan_outline.h"

typedef struct tracer {
    plan_outline *o;
    const planner *p;
    smg_arena *arena;
    smg_exprs *exprs; /* for questions about an operation */
    outline_value *value;
    bool leaves;                /* what this value has of folds: it is a factor that leaves its product */
    bool seen[SMG_SPACE_NODES]; /* by node: in this value */
    bool kept[SMG_SPACE_NODES]; /* in an earlier one of registers */
} tracer;

static smg_status add_access(tracer *t, const smg_sview *view, smg_axis_set axes, smg_node_id source) {
    const smg_graph *g = t->o->space->graph;
    smg_size one = smg_size_const(g->sizes, 1);
    outline_access *slot = SMG_ARRAY_PUSH(t->arena, &t->o->accesses);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (outline_access){.source = source,
                             .axes = axes,
                             .unit = -1,
                             .size = (double)smg_type_device_bytes(smg_graph_storage(g, source))};
    int64_t elements;
    bool known = smg_size_eval(g->sizes, smg_node_elements(g, source), t->p->nominal, &elements);
    slot->whole = slot->size;
    for (smg_axis_set set = axes; set != 0;) slot->whole *= (double)t->o->extent[next_axis(&set)];
    if (known) slot->whole = plan_lesser(slot->whole, (double)elements * slot->size);
    for (int i = 0; i < view->axis_count; i++) {
        int axis = view->axis[i];
        bool longer = slot->unit < 0 || t->o->extent[axis] > t->o->extent[slot->unit]; /* of a window there are two */
        if (view->stride[i] == one && longer) slot->unit = axis;
    }
    return SMG_OK;
}

/* Multiply-adds of guards around a value. */
static double layers_cost(const smg_space *space, const smg_slayer *layers, int count) {
    double cost = 0;
    for (int i = 0; i < count; i++) cost += 1 + smg_expr_cost(space->exprs, layers[i].guard);
    return cost;
}

static void add_cost(tracer *t, double cost, bool kept) {
    t->value->cost += cost;
    if (!kept) t->value->new_cost += cost;
}

static smg_status add_load(tracer *t, const smg_sview *view) {
    double cost = layers_cost(t->o->space, view->layer, view->layer_count);
    for (int i = 0; i < view->index_count; i++) cost += smg_expr_cost(t->o->space->exprs, view->index[i].expr);
    add_cost(t, cost, false);
    t->value->index_cost += cost;
    if (view->source < 0) return SMG_OK;
    const smg_node *source = smg_graph_node(t->o->space->graph, view->source);
    if (smg_node_class(source) == SMG_CLASS_LEAF && smg_op_leaf(source->op) != SMG_LEAF_TENSOR) return SMG_OK;
    t->value->loads++;
    return add_access(t, view, smg_space_view_axes(t->o->space, view), view->source);
}

/* Multiply-adds of a node itself; of a product that is multiplied element by element, the multiplication. */
static double own_cost(const tracer *t, const smg_snode *n) {
    bool product = smg_node_class(smg_graph_node(t->o->space->graph, n->node)) == SMG_CLASS_CONTRACT;
    return product && n->class_ == SMG_CLASS_MAP ? 1 : t->p->map_cost[n->node];
}

static smg_status trace(tracer *t, const smg_soperand *operand) {
    int at = operand->producer;
    if (at < 0 && operand->view < 0) return SMG_OK; /* a number */
    if (at < 0) return add_load(t, &t->o->space->views.items[operand->view]);
    const smg_snode *n = &t->o->space->nodes.items[at];
    if (t->seen[at]) return SMG_OK;
    t->seen[at] = true;
    if (t->o->fold_of[at] >= 0) {
        if (!t->leaves) t->value->folds |= bit_of(t->o->fold_of[at]);
        return SMG_OK;
    }
    add_cost(t, own_cost(t, n) + layers_cost(t->o->space, n->layer, n->layer_count), t->kept[at]);
    for (int k = 0; k < n->operand_count; k++) SMG_TRY(trace(t, &n->operand[k]));
    return SMG_OK;
}

static smg_status trace_value(tracer *t, const smg_soperand *operand, smg_axis_set axes, outline_value *out) {
    *out = (outline_value){.axes = axes, .first = t->o->accesses.count};
    t->value = out;
    t->leaves = operand->producer >= 0 && t->o->space->nodes.items[operand->producer].streamed;
    memset(t->seen, 0, sizeof t->seen);
    return trace(t, operand);
}

/* What registers hold of a value is there for later ones, too. */
static void keep(tracer *t, outline_value *v) {
    for (int i = 0; i < t->o->space->nodes.count; i++) t->kept[i] = t->kept[i] || t->seen[i];
    outline_access *a = t->o->accesses.items;
    for (int i = v->first; i < v->first + v->loads; i++) {
        for (int j = 0; j < i && !a[i].again; j++) a[i].again = a[j].kept && same_access(&a[i], &a[j]);
        a[i].kept = true;
    }
}

static bool adds(tracer *t, const smg_snode *n) {
    smg_expr operand[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    for (int k = 0; k < 2; k++) operand[k] = smg_expr_leaf(t->exprs, smg_type_kind(n->type), k);
    smg_expr sum = smg_op_expr(t->exprs, n->op, n->type, operand);
    return sum != SMG_EXPR_NONE && smg_expr_get(t->exprs, sum)->prim == SMG_PRIM_ADD;
}

/* As lower_sums.c does it where nothing is cut temporally. */
static int sum_behind(tracer *t, int product) {
    const plan_outline *o = t->o;
    int sum = smg_space_only_reader(o->space, product);
    if (sum < 0) return -1;
    const smg_snode *n = &o->space->nodes.items[sum];
    if (n->class_ != SMG_CLASS_MAP || n->operand_count != 2 || n->layer_count > 0 || !adds(t, n)) return -1;
    int other = n->operand[n->operand[0].producer == product ? 1 : 0].producer;
    if (other < 0 || smg_space_only_reader(o->space, other) != sum) return -1;
    for (int i = 0; i < o->fold_count; i++) {
        const outline_fold *f = &o->fold[i];
        bool earlier = f->product && (f->node == other || f->sum == other);
        if (earlier && f->result == o->space->nodes.items[product].result) return sum;
    }
    return -1;
}

static bool is_fold(const smg_snode *n) {
    bool folds = n->class_ == SMG_CLASS_REDUCE || n->class_ == SMG_CLASS_CONTRACT;
    return folds && !n->streamed && n->iterates != n->result;
}

static smg_status add_fold(tracer *t, int node) {
    plan_outline *o = t->o;
    const smg_snode *n = &o->space->nodes.items[node];
    outline_fold *f = &o->fold[o->fold_count];
    *f = (outline_fold){.product = n->class_ == SMG_CLASS_CONTRACT,
                        .node = node,
                        .alike = o->fold_count,
                        .sum = -1,
                        .result = n->result,
                        .folded = n->iterates & ~n->result};
    for (int k = 0; k < (f->product ? 2 : 1); k++) {
        SMG_TRY(trace_value(t, &n->operand[k], smg_space_operand_axes(o->space, &n->operand[k]), &f->value[k]));
        if (!f->product || f->value[k].folds != 0) keep(t, &f->value[k]);
    }
    if (f->product) f->sum = sum_behind(t, node);
    while (f->alike > 0 && o->fold[f->alike - 1].result != f->result) f->alike--;
    f->alike = f->alike > 0 ? o->fold[f->alike - 1].alike : o->fold_count;
    o->fold_of[node] = o->fold_count++;
    return SMG_OK;
}

static smg_status add_store(tracer *t, int node) {
    plan_outline *o = t->o;
    const smg_snode *n = &o->space->nodes.items[node];
    smg_soperand self = {.producer = node};
    outline_value *slot = SMG_ARRAY_PUSH(t->arena, &o->stores);
    if (slot == NULL) return SMG_MEMORY;
    SMG_TRY(trace_value(t, &self, n->result, slot));
    keep(t, slot);
    slot->store = o->accesses.count;
    return add_access(t, &o->space->views.items[n->store], n->result, n->node);
}

/* A fold is held from where it is made to the last one that reads it; what is stored, to the end. */
static void mark_live(plan_outline *o) {
    uint64_t later = 0;
    for (int i = 0; i < o->stores.count; i++) later |= o->stores.items[i].folds;
    for (int i = o->fold_count - 1; i >= 0; i--) {
        outline_fold *f = &o->fold[i];
        f->live = later | bit_of(i);
        later = (later & ~bit_of(i)) | f->value[0].folds | f->value[1].folds;
    }
}

/* The pass over the axis in which something that reads these folds is computed. What is folded over the axis itself
 * joins those that it reads: an update is taken for granted. -1: before all passes. */
static int pass_behind(const plan_outline *o, uint64_t folds, const int *pass, smg_axis_set axis, bool joins) {
    int behind = -1;
    for (int i = 0; i < o->fold_count; i++) {
        if (!(folds & bit_of(i))) continue;
        bool runs = (o->fold[i].folded & axis) != 0, varies = (o->fold[i].result & axis) != 0;
        int next = varies || (runs && joins) ? pass[i] : pass[i] + 1;
        if (next > behind) behind = next;
    }
    return behind;
}

/* What varies along the axis is computed anew in each pass that reads it. */
static uint64_t wanted_by(const plan_outline *o, uint64_t folds, smg_axis_set axis) {
    uint64_t wanted = 0;
    for (int i = o->fold_count - 1; i >= 0; i--) {
        const outline_fold *f = &o->fold[i];
        if (!(folds & bit_of(i)) || !(f->result & axis)) continue;
        wanted |= bit_of(i);
        folds |= f->value[0].folds | f->value[1].folds;
    }
    return wanted;
}

static int within_passes(int pass) {
    return pass < 0 ? 0 : pass < OUTLINE_PASSES ? pass : OUTLINE_PASSES - 1;
}

static void plan_passes(const plan_outline *o, smg_axis_set axis, outline_passes *out) {
    int pass[OUTLINE_FOLDS] = {0};
    *out = (outline_passes){.count = 1};
    for (int i = 0; i < o->fold_count; i++) {
        const outline_fold *f = &o->fold[i];
        uint64_t folds = f->value[0].folds | f->value[1].folds;
        bool runs = (f->folded & axis) != 0, varies = (f->result & axis) != 0;
        pass[i] = pass_behind(o, folds, pass, axis, runs);
        if (runs && pass[i] < 0) pass[i] = 0;
        if (!runs && !varies && pass[i] > 0) pass[i]--; /* between that pass and the one before */
        if (varies) continue;
        int at = within_passes(pass[i]);
        out->folds[at] |= bit_of(i) | wanted_by(o, folds, axis);
        if (runs) out->running |= bit_of(i);
        if (at + 1 > out->count) out->count = at + 1;
    }
    for (int i = 0; i < o->stores.count && i < OUTLINE_FOLDS; i++) {
        const outline_value *v = &o->stores.items[i];
        int at = out->count - 1;
        if (v->axes & axis) at = within_passes(pass_behind(o, v->folds, pass, axis, false));
        out->stores[at] |= bit_of(i);
        out->folds[at] |= wanted_by(o, v->folds, axis);
        if (at + 1 > out->count) out->count = at + 1;
    }
}

static int count_buffers(const plan_outline *o) {
    int count = 0;
    for (int i = 0; i < o->accesses.count; i++) {
        int first = 0;
        while (o->accesses.items[first].source != o->accesses.items[i].source) first++;
        count += first == i;
    }
    return count;
}

static smg_status fill(tracer *t) {
    plan_outline *o = t->o;
    const smg_space *space = o->space;
    int folds = 0;
    for (int i = 0; i < space->nodes.count; i++) {
        o->fold_of[i] = -1;
        folds += is_fold(&space->nodes.items[i]);
    }
    o->fold = SMG_ARENA_ARRAY(t->arena, outline_fold, (size_t)folds + 1);
    if (o->fold == NULL) return SMG_MEMORY;
    for (int i = 0; i < space->nodes.count; i++)
        if (is_fold(&space->nodes.items[i]) && o->fold_count < OUTLINE_FOLDS) SMG_TRY(add_fold(t, i));
    for (int i = 0; i < space->nodes.count; i++)
        if (space->nodes.items[i].output) SMG_TRY(add_store(t, i));
    o->buffers = count_buffers(o);
    mark_live(o);
    plan_passes(o, 0, &o->straight);
    o->along = SMG_ARENA_ARRAY(t->arena, outline_passes, (size_t)o->axes + 1);
    if (o->along == NULL) return SMG_MEMORY;
    for (int a = 0; a < o->axes; a++) plan_passes(o, SMG_AXIS_BIT(a), &o->along[a]);
    return SMG_OK;
}

smg_status plan_outline_make(const planner *p, const smg_space *space, const int64_t *extents, smg_arena *arena,
                             plan_outline **out_outline) {
    plan_outline *o = SMG_ARENA_NEW(arena, plan_outline);
    tracer t = {.o = o, .p = p, .arena = arena};
    if (o == NULL) return SMG_MEMORY;
    o->space = space;
    o->target = p->target;
    o->switches = smg_target_switches_lanes(p->target);
    o->hides = smg_target_hides_loads(p->target);
    o->pairs = smg_sched_pairs(space, p->target);
    o->joins = smg_space_has_products(space);
    o->axes = space->axes.count;
    for (int a = 0; a < o->axes; a++) {
        int64_t low;
        o->extent[a] = extents[a];
        o->share[a] = 1;
        smg_size_bounds(p->g->sizes, space->axes.items[a].extent, &low, &o->most[a]);
    }
    *out_outline = o;
    SMG_TRY(smg_exprs_create(arena, &t.exprs));
    return space->nodes.count <= SMG_SPACE_NODES ? fill(&t) : SMG_OK;
}

void plan_outline_share(plan_outline *o, int axis, double share, const plan_uneven *uneven) {
    o->share[axis] = share;
    o->uneven = *uneven;
}
