/* compile_judge.c: what the driver's compiler made of a plan's kernels, and what that says for another plan: schedules
 * that are left out, and prices by the registers that it takes (decisions 0029, 0058). */
#include <math.h>

#include "compile/compile.h"

#if SMG_VULKAN

smg_status smg_verdicts_begin(smg_verdicts *v, smg_arena *arena, const smg_driver_facts *known) {
    *v = (smg_verdicts){.arena = arena};
    for (int i = 0; i < known->rejected_count; i++) {
        smg_choice *slot = SMG_ARRAY_PUSH(arena, &v->rejected);
        if (slot == NULL) return SMG_MEMORY;
        *slot = known->rejected[i];
    }
    for (int i = 0; i < known->taken_count; i++) {
        smg_taken *slot = SMG_ARRAY_PUSH(arena, &v->taken);
        if (slot == NULL) return SMG_MEMORY;
        *slot = known->taken[i];
    }
    return SMG_OK;
}

smg_driver_facts smg_verdicts_facts(const smg_verdicts *v) {
    return (smg_driver_facts){v->rejected.items, v->rejected.count, v->taken.items, v->taken.count};
}

static bool is_rejected(const smg_verdicts *v, const smg_choice *choice) {
    for (int i = 0; i < v->rejected.count; i++)
        if (v->rejected.items[i].schedule == choice->schedule) return true;
    return false;
}

static void reject(const smg_compilation *c, const smg_pstep *step, const smg_choice *choice, double spills,
                   smg_verdicts *v) {
    smg_choice *slot = is_rejected(v, choice) ? NULL : SMG_ARRAY_PUSH(v->arena, &v->rejected);
    if (slot == NULL) return;
    *slot = *choice;
    v->spoilt = true;
    if (isinf(spills)) slot->registers = INT64_MAX;
    if (isinf(spills))
        smg_log(c->ctx, SMG_LOG_WARNING, "kernel '%s' of '%s' is not built by the driver: planned otherwise",
                step->name, c->source->name);
    else
        smg_log(c->ctx, SMG_LOG_INFO, "kernel '%s' of '%s' spills %.0f registers: planned otherwise", step->name,
                c->source->name, spills);
}

static bool is_taken(const smg_verdicts *v, const smg_choice *choice) {
    for (int i = 0; i < v->taken.count; i++)
        if (v->taken.items[i].schedule == choice->schedule) return true;
    return false;
}

/* A core may hold fewer of its workgroups at a time than the price counts on. */
static void take(const smg_compilation *c, const smg_pstep *step, const smg_choice *choice, double registers,
                 smg_verdicts *v) {
    if (!(registers > 0)) return;
    double before = smg_plan_seconds_taking(step, &c->target, c->nominal, step->price.taken);
    double seconds = smg_plan_seconds_taking(step, &c->target, c->nominal, (int64_t)registers);
    if (seconds <= before) return;
    v->dearer += seconds - before;
    smg_taken *slot = is_taken(v, choice) ? NULL : SMG_ARRAY_PUSH(v->arena, &v->taken);
    if (slot == NULL) return;
    *slot = (smg_taken){choice->schedule, (int64_t)registers};
    smg_log(c->ctx, SMG_LOG_INFO, "kernel '%s' of '%s' takes %.0f registers, and so %.2f us for %.2f by its price",
            step->name, c->source->name, registers, seconds * 1e6, before * 1e6);
}

/* What was measured, or is about to be, may spill, and has a time in place of a price. */
void smg_compile_judge(const smg_compilation *c, int step, const smg_vk_built *built, smg_verdicts *io) {
    const smg_pstep *of = &c->plan->steps.items[step % c->plan->steps.count];
    const smg_choice *choice = smg_compile_choice(c, step);
    bool measured = c->options.passes.rivals > 0 || of->measured != NULL;
    if (built->spills >= (measured ? HUGE_VAL : (double)c->target.spills_lane))
        reject(c, of, choice, built->spills, io);
    else if (!measured)
        take(c, of, choice, built->lane_registers, io);
}

#define MUCH_DEARER 0.01 /* of a run: what is less is not worth the wait for another plan */
#define MOST_FOR_REGISTERS 3

bool smg_verdicts_want_plan(const smg_compilation *c, smg_verdicts *v) {
    double seconds = 0;
    for (int i = 0; i < c->plan->steps.count; i++) seconds += c->plan->steps.items[i].price.seconds;
    bool dearer = v->dearer > MUCH_DEARER * seconds && v->for_registers < MOST_FOR_REGISTERS;
    bool wanted = v->spoilt || dearer;
    v->for_registers += dearer && !v->spoilt;
    v->spoilt = false;
    v->dearer = 0;
    return wanted;
}

#endif
