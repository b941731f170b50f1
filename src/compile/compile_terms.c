/* compile_terms.c: products whose factor is shifted and scaled by its own statistics, as they are or by terms
 * (plan/plan_linear.c): both graphs get a plan, and the cheaper one is taken, for all sizes. Where there are many rows
 * statistics of their own cost next to nothing; of few rows a kernel that makes them costs as much as the product. */
#include "compile/compile.h"

/* Of a product, at the sizes given; of more the norm is a kernel of its own, where that may be. By matrices lanes hold
 * what they sum up. */
#define FEW_ROWS 64
#define SOME_ROWS 1024
/* Of the time, at most, is left: beside matrices sums take up to a fifth more than their price. */
#define BY_MATRICES 0.92

typedef struct terms_form {
    smg_graph *graph; /* NULL where no product has another form */
    smg_precision_plan precision;
} terms_form;

static smg_status make_graph(smg_compilation *c, smg_graph **out_graph, const smg_node_id **out_like) {
    int count = 0;
    *out_graph = NULL;
    smg_graph *made = SMG_ARENA_NEW(c->graph->arena, smg_graph);
    if (made == NULL) return SMG_MEMORY;
    int64_t few = c->graph->storage == NULL ? FEW_ROWS : SOME_ROWS;
    if (c->options.objective == SMG_OBJECTIVE_DISPATCHES) few = INT64_MAX;
    SMG_TRY(smg_plan_linear(c->graph, few, c->nominal, c->arena, made, out_like, &count));
    c->terms = count;
    if (count > 0) *out_graph = made;
    return SMG_OK;
}

/* What the precision plan says of values holds of them there, too; terms stay in f32. */
static smg_status make_terms(smg_compilation *c, terms_form *out) {
    const smg_node_id *like;
    SMG_TRY(make_graph(c, &out->graph, &like));
    out->precision = c->precision;
    if (out->graph == NULL || c->graph->storage == NULL) return SMG_OK;
    size_t count = (size_t)out->graph->nodes.count;
    smg_precision_plan *p = &out->precision;
    p->storage = SMG_ARENA_ARRAY(c->arena, smg_type, count + 1);
    p->why = SMG_ARENA_ARRAY(c->arena, const char *, count + 1);
    if (p->storage == NULL || p->why == NULL) return SMG_MEMORY;
    for (size_t i = 0; i < count; i++) {
        p->storage[i] = like[i] >= 0 ? c->precision.storage[like[i]] : smg_graph_node(out->graph, (smg_node_id)i)->type;
        p->why[i] = like[i] >= 0 ? c->precision.why[like[i]]
                                 : "it is a product without its factor's scale, or what goes into that";
    }
    out->graph->storage = p->storage;
    return SMG_OK;
}

/* Cores that run one subgroup after the other hide nothing of what a loop does more. */
static bool may_have(const smg_compilation *c) {
    bool asked = !c->options.unfused && (c->options.precision == SMG_TYPE_F32 || c->target.matrix_count > 0);
    return asked && c->options.objective != SMG_OBJECTIVE_MEMORY && smg_target_switches_lanes(&c->target);
}

static double seconds_of(const smg_plan *p) {
    double seconds = 0;
    for (int i = 0; i < p->steps.count; i++) seconds += p->steps.items[i].price.seconds - p->steps.items[i].beside;
    return seconds;
}

/* Of as many kernels the faster ones, where kernels are what counts. */
static bool is_cheaper(const smg_compilation *c, const smg_plan *one, const smg_plan *other) {
    double most = c->graph->storage == NULL ? 1 : BY_MATRICES;
    if (c->plan_options.objective != SMG_OBJECTIVE_DISPATCHES) return one->cost < most * other->cost;
    if (one->steps.count != other->steps.count) return one->steps.count < other->steps.count;
    return seconds_of(one) < seconds_of(other);
}

/* It lies in the arena of the graph before. */
static void take(smg_compilation *c, const terms_form *form) {
    c->graph = form->graph;
    c->precision = form->precision;
}

smg_status smg_compile_take_terms(smg_compilation *c) {
    terms_form made;
    SMG_TRY(make_terms(c, &made));
    if (made.graph != NULL) take(c, &made);
    return SMG_OK;
}

smg_status smg_compile_choose_terms(smg_compilation *c) {
    terms_form made;
    smg_plan *plan;
    if (!may_have(c)) return SMG_OK;
    SMG_TRY(make_terms(c, &made));
    if (made.graph == NULL) return SMG_OK;
    smg_status status = smg_plan_make(made.graph, &c->target, &c->plan_options, c->arena, &plan);
    if (status == SMG_MEMORY) return status;
    if (status != SMG_OK) smg_context_clear_error(c->ctx); /* there is no plan of it within the limits */
    if (status == SMG_OK && is_cheaper(c, plan, c->plan)) {
        take(c, &made);
        c->plan = plan;
    } else {
        c->terms = 0;
    }
    return SMG_OK;
}
