/* Which nodes are in no list at all because every reader computes them anew: maps and gathers of positions, sizes and
 * tensors that lie in memory anyway, or of results of kernels that are much smaller than they are (a mask of two
 * counts). What is cheap and reads one tensor at most (a predicate over positions, a mask
 * turned into summands, a cast) costs its readers no more traffic than its stored form would. Anything else of this
 * kind is priced, from the last to the first: a kernel and the traffic of its result against computing it once for each
 * reader. What an inlined node is made of is inlined with it. */
#include <math.h>

#include "plan/plan_internal.h"

#define PLAN_INLINE_COST 8.0 /* multiply-adds per element, operands included: never worth a kernel */
#define PLAN_INLINE_LOADS 1
#define PLAN_ANEW_COST 80.0   /* beyond this nothing is computed more than once */
#define PLAN_GATHER_COST 4.0  /* an index: from which end, inside or not, where */
#define PLAN_BOUND_SHARE 0.25 /* of its own bytes, at most, are results of kernels that it is made of */
#define PLAN_REUSE 64.0       /* products that a staged element serves */

/* What it takes to make one value from memory. */
typedef struct weight {
    bool known;
    double cost;  /* multiply-adds per element, operands included */
    double bytes; /* of all that is read, once */
    int loads;    /* tensors, each time it is named */
    bool checked; /* an index is data: one more binding, for errors */
    bool bound;   /* reads the result of a kernel, which has to come first */
} weight;

/* Who asks for a value, through what is inlined. */
typedef struct demand {
    double readers, elements;
    bool forced; /* by an inlined reader */
} demand;

typedef struct inliner {
    planner *p;
    weight *weights;
    demand *demands;
    bool *output;
} inliner;

double plan_map_cost(const planner *p, smg_exprs *exprs, const smg_node *n) {
    smg_expr operand[SMG_MAX_OPERANDS] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (smg_node_class(n) != SMG_CLASS_MAP) return 0;
    for (int k = 0; k < n->operand_count; k++) {
        operand[k] = smg_expr_leaf(exprs, smg_type_kind(smg_graph_node(p->g, n->operand[k])->type), k);
    }
    return smg_expr_cost(exprs, smg_op_expr(exprs, n->op, n->type, operand));
}

double plan_elements(const planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    double count = 1;
    for (int d = 0; d < n->rank; d++) {
        int64_t extent;
        if (smg_size_eval(p->g->sizes, n->dims[d], p->nominal, &extent)) count *= (double)extent;
    }
    return count;
}

/* ---- weights, operands first ---------------------------------------------------------------------- */

static bool in_memory(const planner *p, smg_node_id source) {
    return p->prepared[source] || smg_op_leaf(smg_graph_node(p->g, source)->op) == SMG_LEAF_TENSOR;
}

/* One operand of a node of `elements`; false when that cannot be read anew. */
static bool add_operand(const inliner *in, smg_node_id operand, double elements, weight *io) {
    smg_node_id source = smg_space_source(in->p->g, operand);
    const weight *w = &in->weights[source];
    if (in_memory(in->p, source)) {
        io->loads++;
        io->bytes += 4.0 * fmin(elements, plan_elements(in->p, source));
        return true;
    }
    if (smg_node_class(smg_graph_node(in->p->g, source)) == SMG_CLASS_LEAF) return true;
    if (!w->known) { /* a result of a kernel: in memory, too, once that has run */
        io->loads++;
        io->bytes += 4.0 * fmin(elements, plan_elements(in->p, source));
        io->bound = true;
        return !in->p->options->unfused;
    }
    io->loads += w->loads;
    io->cost += w->cost;
    io->bytes += w->bytes;
    io->checked = io->checked || w->checked;
    io->bound = io->bound || w->bound;
    return true;
}

/* A choice by the ends of a mask between a number and what readers can compute anew. */
static bool chooses_anew(const inliner *in, const smg_node *n) {
    if (!n->spare) return false;
    smg_node_id value = smg_space_source(in->p->g, n->operand[1]);
    return in->weights[value].known || in_memory(in->p, value);
}

static weight weigh(const inliner *in, smg_node_id id) {
    const smg_node *n = smg_graph_node(in->p->g, id);
    weight w = {.known = !in->p->prepared[id] && !in->output[id] && !smg_op_copies(n->op)};
    double elements = plan_elements(in->p, id);
    bool gather = smg_node_class(n) == SMG_CLASS_GATHER && !in->p->options->unfused;
    if (gather) {
        w.cost = PLAN_GATHER_COST;
        w.checked = true;
        w.known = w.known && in_memory(in->p, smg_space_source(in->p->g, n->operand[0]));
    } else {
        w.cost = in->p->map_cost[id];
        w.known = w.known && smg_node_class(n) == SMG_CLASS_MAP;
    }
    for (int k = 0; k < n->operand_count && w.known; k++) w.known = add_operand(in, n->operand[k], elements, &w);
    /* every load is a binding of every reader, which has others to make */
    int64_t bindings = in->p->target->max_bindings / 4;
    if (bindings < PLAN_INLINE_LOADS) bindings = PLAN_INLINE_LOADS;
    w.known = w.known && w.cost <= PLAN_ANEW_COST && w.loads + w.checked <= bindings;
    if (w.bound && !chooses_anew(in, n) && w.bytes > PLAN_BOUND_SHARE * 4.0 * elements) w.known = false;
    return w;
}

/* ---- demands, readers first ------------------------------------------------------------------------ */

/* What node `id` asks of its operands; an inlined one passes on what is asked of it. */
static void demand_operands(inliner *in, smg_node_id id) {
    const smg_node *n = smg_graph_node(in->p->g, id);
    const demand *own = &in->demands[id];
    for (int k = 0; k < n->operand_count; k++) {
        demand *d = &in->demands[smg_space_source(in->p->g, n->operand[k])];
        double elements = plan_elements(in->p, n->operand[k]);
        if (smg_node_class(n) == SMG_CLASS_MAP) elements = plan_elements(in->p, id);
        if (smg_node_class(n) == SMG_CLASS_CONTRACT) {
            const smg_node_id other = n->operand[1 - k];
            elements = fmax(elements, elements * plan_elements(in->p, other) / PLAN_REUSE / plan_elements(in->p, id));
        }
        d->readers += in->p->inlined[id] ? own->readers : 1;
        d->elements += in->p->inlined[id] ? fmax(own->elements, elements) : elements;
        d->forced = d->forced || in->p->inlined[id];
    }
}

/* A truth over positions and a much smaller result of a kernel (keys up to the last of a row) may bound the loops of
 * its readers, as long as they compute it, and the choice by it. */
static bool is_cheap(const inliner *in, smg_node_id id) {
    const weight *w = &in->weights[id];
    if (chooses_anew(in, smg_graph_node(in->p->g, id))) return w->cost <= PLAN_INLINE_COST;
    /* the yardstick has a kernel for every map of tensors that memory shows */
    int loads = in->p->options->unfused && !plan_stores_the_same(in->p, id) ? 0 : PLAN_INLINE_LOADS;
    bool ready = !w->bound || smg_graph_node(in->p->g, id)->type == SMG_TYPE_BOOL;
    return w->cost <= PLAN_INLINE_COST && w->loads <= loads && !w->checked && ready;
}

/* Is a kernel for it dearer than to compute it for each reader? One reader alone can share its kernel. */
static bool is_cheaper_anew(const inliner *in, smg_node_id id) {
    const smg_target *t = in->p->target;
    const weight *w = &in->weights[id];
    const demand *d = &in->demands[id];
    if (in->p->options->unfused || d->readers < 2) return false;
    if (in->p->options->objective == SMG_OBJECTIVE_DISPATCHES) return true;
    double bytes = 4.0 * plan_elements(in->p, id);
    double stored = t->dispatch_cost + (w->bytes + bytes * (1 + d->readers)) / t->bandwidth;
    double anew = w->bytes * d->readers / t->bandwidth + 2.0 * PLAN_ANEW_PASSES * w->cost * d->elements / t->fma_rate;
    return anew < stored;
}

smg_status plan_mark_inlined(planner *p) {
    size_t count = (size_t)p->g->nodes.count + 1;
    inliner in = {.p = p};
    in.weights = SMG_ARENA_ARRAY(p->arena, weight, count);
    in.demands = SMG_ARENA_ARRAY(p->arena, demand, count);
    in.output = SMG_ARENA_ARRAY(p->arena, bool, count);
    bool *live = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->inlined = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->bound = SMG_ARENA_ARRAY(p->arena, bool, count);
    p->weighed = SMG_ARENA_ARRAY(p->arena, bool, count);
    if (in.weights == NULL || in.demands == NULL || in.output == NULL || live == NULL || p->inlined == NULL ||
        p->bound == NULL || p->weighed == NULL)
        return SMG_MEMORY;
    smg_graph_mark_live(p->g, live);
    for (int o = 0; o < p->g->outputs.count; o++) {
        in.output[smg_space_source(p->g, p->g->outputs.items[o].node)] = true;
    }
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        if (smg_node_computes(smg_graph_node(p->g, id))) in.weights[id] = weigh(&in, id);
    }
    for (smg_node_id id = p->g->nodes.count - 1; id >= 0; id--) {
        if (!live[id] || !smg_node_computes(smg_graph_node(p->g, id))) continue;
        bool possible = in.weights[id].known;
        bool always = in.demands[id].forced || is_cheap(&in, id);
        p->weighed[id] = possible && !always && is_cheaper_anew(&in, id);
        p->inlined[id] = p->weighed[id] || (possible && always);
        p->bound[id] = p->inlined[id] && in.weights[id].bound;
        demand_operands(&in, id);
    }
    return smg_context_status(p->ctx);
}

/* An operand that got a kernel has to come before everybody who still computes its readers anew. */
static void mark_bound(planner *p) {
    for (smg_node_id id = 0; id < p->g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(p->g, id);
        for (int k = 0; k < n->operand_count && p->inlined[id]; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            bool computed = smg_node_computes(smg_graph_node(p->g, source)) && !p->prepared[source];
            p->bound[id] = p->bound[id] || (computed && (!p->inlined[source] || p->bound[source]));
        }
    }
}

void plan_set_anew(planner *p, const smg_node_id *nodes, int count, bool anew) {
    for (int i = 0; i < count; i++) p->inlined[nodes[i]] = anew;
    for (int i = 0; i < count; i++) p->bound[nodes[i]] = false;
    mark_bound(p);
}

bool plan_give_kernels(planner *p, smg_node_id id) {
    const smg_node *n = smg_graph_node(p->g, id);
    bool given = false;
    for (int k = 0; k < n->operand_count; k++) {
        smg_node_id source = smg_space_source(p->g, n->operand[k]);
        given = given || p->inlined[source];
        p->inlined[source] = p->bound[source] = false;
    }
    if (given) mark_bound(p);
    return given;
}

static bool has(const smg_node_id *nodes, int count, smg_node_id id) {
    for (int i = 0; i < count; i++) {
        if (nodes[i] == id) return true;
    }
    return false;
}

int plan_add_inlined(const planner *p, smg_node_id *io_nodes, int count) {
    for (int i = 0; i < count; i++) { /* grows while it is read: operands of operands */
        const smg_node *n = smg_graph_node(p->g, io_nodes[i]);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            if (!p->inlined[source] || has(io_nodes, count, source)) continue;
            if (count == PLAN_MAX_MEMBERS) return -1;
            io_nodes[count++] = source;
        }
    }
    return count;
}
