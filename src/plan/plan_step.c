/* What becomes of a segment that was chosen: its schedule is lowered for good, with the reasons, and beside it what the
 * options ask for, how it was found and which others are to be measured. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_segment.h"

static int by_id(const void *a, const void *b) {
    smg_node_id x = *(const smg_node_id *)a, y = *(const smg_node_id *)b;
    return x < y ? -1 : x > y;
}

typedef struct pass_keeper {
    planner *p;
    smg_pstep *step;
} pass_keeper;

static smg_status keep_pass(void *user, int pass, const smg_kernel *k) {
    const pass_keeper *keeper = user;
    smg_arena *arena = keeper->p->arena;
    smg_pstep *step = keeper->step;
    smg_text text;
    smg_text_init(&text, keeper->p->ctx);
    smg_kernel_print(k, &text);
    const char *before = step->lowered.count > 0 ? step->lowered.items[step->lowered.count - 1].text : "";
    smg_status status = smg_text_status(&text);
    if (status == SMG_OK && strcmp(smg_text_cstr(&text), before) != 0) {
        smg_lowered *slot = SMG_ARRAY_PUSH(arena, &step->lowered);
        const char *kept = smg_arena_string(arena, smg_text_cstr(&text));
        if (slot != NULL) *slot = (smg_lowered){.pass = pass, .text = kept};
        if (slot == NULL || kept == NULL) status = SMG_MEMORY;
    }
    smg_text_free(&text);
    return status;
}

static void tell_measured(const segment *s, smg_text *why) {
    const smg_measured *m = s->measured;
    if (m->seconds < m->cheapest)
        smg_text_addf(why, "measured: the fastest took %.2f us, the cheapest by price %.2f us on the device\n",
                      m->seconds * 1e6, m->cheapest * 1e6);
    else
        smg_text_addf(why, "measured: none is faster than the cheapest by price, %.2f us on the device\n",
                      m->cheapest * 1e6);
}

static void tell_taken(const smg_price *price, smg_text *why) {
    smg_text_addf(why, "the driver's compiler takes %lld registers of a lane", (long long)price->taken);
    if (price->spilled > 0) smg_text_addf(why, " and spills %lld more", (long long)price->spilled);
    smg_text_add(why, ": the price is by these\n");
}

/* The verifier is asked about the complete program. Where it does not accept one, lowering once more with a look after
 * each pass tells which it was; so it goes where passes are shown. */
static smg_status lower_verified(planner *p, const smg_schedule *schedule, smg_text *why, smg_pstep *step,
                                 const char **out_refused) {
    pass_keeper keeper = {.p = p, .step = step};
    smg_lower_options options = {.name = step->name,
                                 .target = p->target,
                                 .why = why,
                                 .verify = p->options->keep_passes,
                                 .after = p->options->keep_passes ? keep_pass : NULL,
                                 .user = &keeper};
    SMG_TRY(smg_kernel_lower(schedule, &options, p->arena, &step->kernel, out_refused));
    if (options.verify || step->kernel == NULL) return SMG_OK;
    smg_status status = smg_kernel_verify(p->ctx, step->kernel);
    if (status == SMG_OK) return SMG_OK;
    options.verify = true;
    options.why = NULL;
    SMG_TRY(smg_kernel_lower(schedule, &options, p->arena, &step->kernel, out_refused));
    return status;
}

smg_status plan_lower(planner *p, int from, int to, const segment *s, smg_text *why, smg_pstep *out_step) {
    smg_node_id *nodes = SMG_ARENA_ARRAY(p->arena, smg_node_id, (size_t)(to - from));
    segment_members of;
    const char *refused;
    smg_space *space;
    smg_schedule schedule = s->schedule;
    if (nodes == NULL) return SMG_MEMORY;
    SMG_TRY(plan_find_members(p, from, to, s->body, p->arena, &of));
    memcpy(nodes, p->order + from, (size_t)(to - from) * sizeof *nodes);
    qsort(nodes, (size_t)(to - from), sizeof *nodes, by_id);
    SMG_TRY(smg_space_build_repeated(p->g, p->arena, of.nodes, of.count, p->needed, &of.repeat, &space));
    if (s->multiplies_sums) {
        smg_space_multiply_sums(space);
        smg_text_add(why, "sums along what products contract are products with 1: they go by in the same slices\n");
    }
    if (schedule.form == SMG_SPACE_LINEAR) {
        SMG_TRY(smg_slice_linear(space, p->arena, &space));
        smg_text_add(why, "factors of sums leave the products: the sums go by in the same slices\n");
    } else if (schedule.form == SMG_SPACE_MULTIPLIED) {
        SMG_TRY(smg_slice_multiplied(space, p->arena, &space));
        smg_text_add(why, "products with vectors are multiplied and summed: nothing is used twice\n");
    }
    schedule.space = space;
    smg_slice_spatial(space, why);
    smg_sched_print(&schedule, why);
    if (s->measured != NULL) tell_measured(s, why);
    if (s->cut != NULL)
        smg_text_addf(why, "measured: a run took %.2f us with these as one kernel, %.2f us with them apart\n",
                      s->cut->seconds * 1e6, s->cut->apart * 1e6);
    if (s->rejected > 0)
        smg_text_addf(why, "%d schedules left out: the driver made nothing good of them\n", s->rejected);
    if (s->price.taken > 0) tell_taken(&s->price, why);
    SMG_TRY(lower_verified(p, &schedule, why, out_step, &refused));
    if (out_step->kernel == NULL) {
        return smg_fail(p->ctx, SMG_INTERNAL, "plan: %s was lowered before and is refused now: %s", out_step->name,
                        refused);
    }
    out_step->nodes = nodes;
    out_step->space = space;
    out_step->node_count = to - from;
    out_step->price = s->measured != NULL ? s->measured_price : s->price;
    out_step->measured = s->measured;
    out_step->choice = (smg_choice){.nodes = s->key,
                                    .at = s->at,
                                    .first = nodes[0],
                                    .last = nodes[to - from - 1],
                                    .schedule = smg_schedule_hash(s->at, &s->schedule),
                                    .registers = out_step->price.registers};
    return SMG_OK;
}

/* ---- how it was found ----------------------------------------------------------------------------- */

smg_status plan_add_search(planner *p, int from, int to, const segment *s, smg_pstep *step) {
    segment_members of;
    segment again = {.key = s->key, .structure = s->structure};
    void *found;
    if (!p->options->search) return SMG_OK;
    if (smg_map_get(p->searches, &s->kept, sizeof(s->kept), &found)) {
        step->search = found;
        return SMG_OK;
    }
    smg_search *made = SMG_ARENA_NEW(p->kept_in, smg_search);
    if (made == NULL) return SMG_MEMORY;
    p->record = made;
    smg_status status = plan_find_members(p, from, to, s->body, p->arena, &of);
    if (status == SMG_OK) status = plan_try_segment(p, &of, HUGE_VAL, &again, NULL);
    p->record = NULL;
    SMG_TRY(status);
    step->search = made;
    return smg_map_set(p->searches, &s->kept, sizeof(s->kept), made);
}

/* ---- schedules to be measured --------------------------------------------------------------------- */

#define FAR_RIVAL 1.6 /* of the lowest price: dearer ones are hardly ever faster */

#define RIVAL_STEPS 3 /* of one structure whose rivals are lowered; the other layers tell nothing new */

typedef struct rivals {
    fitted *items;
    int count;
    int steps; /* that have them */
} rivals;

/* Of the schedules that fit, the next by price behind the one that was taken. */
static smg_status pick_rivals(const planner *p, const fitted_list *all, const segment *s, rivals *out) {
    uint64_t taken = smg_schedule_hash(s->at, &s->schedule);
    int most = p->options->rivals;
    *out = (rivals){.items = SMG_ARENA_ARRAY(p->kept_in, fitted, (size_t)most + 1)};
    if (out->items == NULL) return SMG_MEMORY;
    for (int i = 0; i < all->count && out->count < most; i++) {
        const fitted *r = &all->items[i];
        if (r->price.seconds > FAR_RIVAL * s->price.seconds) break;
        if (smg_schedule_hash(s->at, &r->schedule) != taken) out->items[out->count++] = *r;
    }
    return SMG_OK;
}

static smg_status find_rivals(planner *p, int from, int to, const segment *s, rivals **out_rivals) {
    segment_members of;
    segment again = {.key = s->key, .structure = s->structure};
    fitted_list all = {.count = 0};
    void *found;
    if (smg_map_get(p->rivals, &s->kept, sizeof(s->kept), &found)) {
        *out_rivals = found;
        return SMG_OK;
    }
    rivals *made = SMG_ARENA_NEW(p->kept_in, rivals);
    if (made == NULL) return SMG_MEMORY;
    smg_status status = plan_find_members(p, from, to, s->body, p->arena, &of);
    if (status == SMG_OK) status = plan_try_segment(p, &of, HUGE_VAL, &again, &all);
    if (status == SMG_OK) status = pick_rivals(p, &all, s, made);
    SMG_TRY(status);
    *out_rivals = made;
    return smg_map_set(p->rivals, &s->kept, sizeof(s->kept), made);
}

smg_status plan_add_rivals(planner *p, int from, int to, const segment *s, smg_pstep *step) {
    rivals *all;
    if (p->options->rivals <= 0) return SMG_OK;
    SMG_TRY(find_rivals(p, from, to, s, &all));
    if (all->steps++ >= RIVAL_STEPS) return SMG_OK;
    for (int i = 0; i < all->count; i++) {
        smg_pstep other = {.name = step->name};
        segment made = *s;
        made.schedule = all->items[i].schedule;
        made.price = all->items[i].price;
        made.measured = NULL;
        smg_text why;
        smg_text_init(&why, p->ctx);
        smg_status status = plan_lower(p, from, to, &made, &why, &other);
        smg_text_free(&why);
        if (status == SMG_INTERNAL) { /* a defect, but not of the schedule that is taken */
            smg_log(p->ctx, SMG_LOG_WARNING, "a schedule is not measured: %s", smg_context_error(p->ctx));
            smg_context_clear_error(p->ctx);
            continue;
        }
        SMG_TRY(status);
        smg_rival *slot = SMG_ARRAY_PUSH(p->arena, &step->rivals);
        if (slot == NULL) return SMG_MEMORY;
        *slot = (smg_rival){.kernel = other.kernel, .price = other.price, .choice = other.choice};
    }
    return SMG_OK;
}
