/* The schedules of a space that have room, by a count over it. Those with the statistics of a norm in the loop of the
 * product behind it come on top where rows are long. */
#include "plan/plan_internal.h"

/* Of few rows lanes have time to share out what is contracted, which a reduction has not; of more a reduction takes
 * less than a product with 1. By matrices lanes have what they sum up. */
#define LINEAR_ROWS 64
#define LINEAR_LEAST 512 /* elements of a row: shorter ones are held */

typedef struct filter {
    planner *p;
    const smg_space *space;
    const int64_t *nominal;
    smg_arena *arena;
    plan_outline *outline; /* once something asks for it */
    const char *refused;
    bool by_matrices;
    smg_status status;
} filter;

static smg_status outline(filter *f) {
    return f->outline != NULL ? SMG_OK : plan_outline_make(f->p, f->space, f->nominal, f->arena, &f->outline);
}

static bool may_fit(void *user, const smg_schedule *s) {
    filter *f = user;
    const char *why;
    if (f->status == SMG_OK) f->status = outline(f);
    if (f->status != SMG_OK) return false;
    if (plan_may_fit(f->outline, s, &why)) return true;
    if (f->refused == NULL) f->refused = why;
    if (f->status == SMG_OK) f->status = plan_record_crowded(f->p, why);
    return false;
}

/* Most spaces have no schedule at all, and need no outline to know. */
static smg_status find(filter *f, smg_schedules *out_schedules) {
    const smg_sched_room room = {may_fit, f, f->by_matrices};
    SMG_TRY(smg_sched_candidates(f->space, f->p->target, f->nominal, room, f->arena, out_schedules));
    SMG_TRY(f->status);
    return out_schedules->items.count > 0 ? outline(f) : SMG_OK;
}

smg_status plan_find_schedules(planner *p, const smg_space *space, const int64_t *nominal, smg_arena *arena,
                               plan_found *io) {
    filter f = {.p = p, .space = space, .nominal = nominal, .arena = arena, .refused = io->refused};
    SMG_TRY(find(&f, &io->schedules));
    io->outline[SMG_SPACE_AS_IS] = f.outline;
    io->refused = f.refused;
    return SMG_OK;
}

static int64_t elements_over(const smg_space *space, smg_axis_set axes, const int64_t *nominal) {
    int64_t elements = 1;
    for (int a = 0; a < space->axes.count; a++)
        if (axes & SMG_AXIS_BIT(a)) elements = smg_mul_at_most(elements, nominal[a], INT32_MAX);
    return elements;
}

static bool is_sum(const smg_snode *n) {
    return n->class_ == SMG_CLASS_CONTRACT && n->operand_count == 1;
}

/* Are all sums that have become products long ones? */
static bool long_sums(const smg_space *space, const int64_t *nominal) {
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (is_sum(n) && elements_over(space, n->iterates & ~n->result, nominal) < LINEAR_LEAST) return false;
    }
    return true;
}

static bool few_sums(const smg_space *space, const int64_t *nominal) {
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (is_sum(n) && elements_over(space, n->result, nominal) > LINEAR_ROWS) return false;
    }
    return true;
}

static smg_status add_form(planner *p, const smg_space *form, bool by_matrices, const int64_t *nominal,
                           smg_arena *arena, plan_found *io) {
    smg_schedules more;
    filter f = {.p = p, .space = form, .nominal = nominal, .arena = arena, .by_matrices = by_matrices};
    SMG_TRY(find(&f, &more));
    io->outline[form->form] = f.outline;
    for (int i = 0; i < more.items.count; i++) {
        smg_schedule *slot = SMG_ARRAY_PUSH(arena, &io->schedules.items);
        if (slot == NULL) return SMG_MEMORY;
        *slot = more.items.items[i];
    }
    return SMG_OK;
}

/* Lanes of a vector register have products of few rows side by side already; cores that switch lanes wait for what one
 * product reads before they ask for what the next one does. */
static bool has_lanes_to_multiply(const smg_target *t) {
    return smg_target_switches_lanes(t) && smg_target_hides_loads(t);
}

smg_status plan_find_forms(planner *p, const smg_space *space, const int64_t *nominal, smg_arena *arena,
                           plan_found *io) {
    smg_space *linear, *multiplied = NULL;
    SMG_TRY(smg_slice_linear(space, arena, &linear));
    bool asked = linear != NULL && long_sums(linear, nominal), few = asked && few_sums(linear, nominal);
    bool by_matrices = p->target->matrix_count > 0 && p->g->storage != NULL;
    if (asked && (few || by_matrices)) SMG_TRY(add_form(p, linear, !few, nominal, arena, io));
    if (has_lanes_to_multiply(p->target)) SMG_TRY(smg_slice_multiplied(space, arena, &multiplied));
    return multiplied != NULL ? add_form(p, multiplied, false, nominal, arena, io) : SMG_OK;
}
