/* compile_terms.c: products whose factor is shifted and scaled by its own statistics, as they are or by terms
 * (plan/plan_linear.c): both graphs get a plan, and the cheaper one is taken, for all sizes. Where there are many rows
 * statistics of their own cost next to nothing; of few rows a kernel that makes them costs as much as the product. */
#include "compile/compile.h"

#define FEW_ROWS 64 /* of a product, at the sizes given; of more the norm is a kernel of its own, where that may be */

/* *out_graph: NULL where no product has another form. */
static smg_status make_terms(smg_compilation *c, smg_graph **out_graph) {
    int count = 0;
    *out_graph = NULL;
    smg_graph *made = SMG_ARENA_NEW(c->graph->arena, smg_graph);
    if (made == NULL) return SMG_MEMORY;
    int64_t few = c->options.objective == SMG_OBJECTIVE_DISPATCHES ? INT64_MAX : FEW_ROWS;
    SMG_TRY(smg_plan_linear(c->graph, few, c->nominal, c->arena, made, &count));
    c->terms = count;
    if (count > 0) *out_graph = made;
    return SMG_OK;
}

/* Not in 16 bits, where a value at a pivot has too few digits. And cores that run one subgroup after the other hide
 * nothing of what a loop does more. */
static bool may_have(const smg_compilation *c) {
    bool asked = !c->options.unfused && c->options.precision == SMG_TYPE_F32;
    return asked && c->options.objective != SMG_OBJECTIVE_MEMORY && smg_target_switches_lanes(&c->target);
}

static double seconds_of(const smg_plan *p) {
    double seconds = 0;
    for (int i = 0; i < p->steps.count; i++) seconds += p->steps.items[i].price.seconds - p->steps.items[i].beside;
    return seconds;
}

/* Of as many kernels the faster ones, where kernels are what counts. */
static bool is_cheaper(const smg_compilation *c, const smg_plan *one, const smg_plan *other) {
    if (c->plan_options.objective != SMG_OBJECTIVE_DISPATCHES) return one->cost < other->cost;
    if (one->steps.count != other->steps.count) return one->steps.count < other->steps.count;
    return seconds_of(one) < seconds_of(other);
}

smg_status smg_compile_take_terms(smg_compilation *c) {
    smg_graph *made;
    SMG_TRY(make_terms(c, &made));
    if (made != NULL) c->graph = made; /* in the arena of the one before */
    return SMG_OK;
}

smg_status smg_compile_choose_terms(smg_compilation *c) {
    smg_graph *made;
    smg_plan *plan;
    if (!may_have(c)) return SMG_OK;
    SMG_TRY(make_terms(c, &made));
    if (made == NULL) return SMG_OK;
    smg_status status = smg_plan_make(made, &c->target, &c->plan_options, c->arena, &plan);
    if (status == SMG_MEMORY) return status;
    if (status != SMG_OK) smg_context_clear_error(c->ctx); /* there is no plan of it within the limits */
    if (status == SMG_OK && is_cheaper(c, plan, c->plan)) {
        c->graph = made;
        c->plan = plan;
    } else {
        c->terms = 0;
    }
    return SMG_OK;
}
