/* compile_judge.c: what the driver's compiler made of a plan's kernels, and what that says for another plan: schedules
 * that are left out, and prices by the registers that it takes and spills (decisions 0029, 0058). */
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

static void reject(const smg_compilation *c, const smg_pstep *step, const smg_choice *choice, double spills,
                   smg_verdicts *v) {
    const smg_driver_facts known = smg_verdicts_facts(v);
    if (smg_driver_rejects(&known, choice->schedule)) return;
    smg_choice *slot = SMG_ARRAY_PUSH(v->arena, &v->rejected);
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

/* A core may hold fewer of its workgroups at a time than the price counts on, or more registers are in memory. */
static void take(const smg_compilation *c, const smg_pstep *step, const smg_choice *choice, const smg_vk_built *built,
                 smg_verdicts *v) {
    const smg_taken before = {choice->schedule, step->price.taken, step->price.spilled},
                    now = {choice->schedule, (int64_t)built->registers, (int64_t)built->spills};
    if (now.registers <= 0) return;
    double counted = smg_plan_seconds_taking(step, &c->target, c->nominal, &before);
    double seconds = smg_plan_seconds_taking(step, &c->target, c->nominal, &now);
    if (seconds <= counted) return;
    v->dearer += seconds - counted;
    const smg_driver_facts known = smg_verdicts_facts(v);
    if (smg_driver_taken(&known, choice->schedule).registers > 0) return;
    smg_taken *slot = SMG_ARRAY_PUSH(v->arena, &v->taken);
    if (slot == NULL) return;
    *slot = now;
    smg_log(c->ctx, SMG_LOG_INFO,
            "kernel '%s' of '%s' takes %.0f registers and spills %.0f, and so %.2f us for %.2f by its price",
            step->name, c->source->name, built->registers, fmax(0, built->spills), seconds * 1e6, counted * 1e6);
}

/* More than half of what a lane may hold, or as many as it does hold: so it is where the driver's compiler leaves an
 * array of many registers in memory. */
static bool spills_much(const smg_target *target, const smg_vk_built *built) {
    bool holds_less = built->of_lane && built->registers > 0 && built->spills >= built->registers;
    return built->spills >= (double)target->spills_lane || holds_less;
}

/* What was measured, or is about to be, may spill, and has a time in place of a price. */
void smg_compile_judge(const smg_compilation *c, int step, const smg_vk_built *built, smg_verdicts *io) {
    const smg_pstep *of = &c->plan->steps.items[step % c->plan->steps.count];
    const smg_choice *choice = smg_compile_choice(c, step);
    bool measured = c->options.passes.rivals > 0 || of->measured != NULL;
    if (measured ? isinf(built->spills) : spills_much(&c->target, built))
        reject(c, of, choice, built->spills, io);
    else if (!measured && built->of_lane)
        take(c, of, choice, built, io);
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

/* ---- plan after plan ------------------------------------------------------------------------------- */

#define MOST_TUNING_PLANS 32 /* each leaves a schedule out that is not built, at least */

void smg_judge_begin(smg_judge *j, smg_compile_options *io) {
    j->again = false;
    io->driver = smg_verdicts_facts(&j->verdicts);
    io->plan_anew = j->made > 0;
    io->late_plan = io->passes.rivals == 0 && j->made >= SMG_MOST_PLANS - SMG_PLANS_BY_TIME;
}

/* What is not to be had when the driver refuses modules of the prepare list: out, by buffer. */
static void mark_unprepared(const smg_bundle *b, const smg_vk_built *built, int modules, bool *out) {
    for (int i = 0; i < b->prepare.count; i++) {
        const smg_bstep *step = &b->prepare.items[i];
        bool missing = step->module < modules && isinf(built[step->module].spills);
        for (int k = 0; k < step->binding_count; k++)
            missing = missing || (!step->bindings[k].written && out[step->bindings[k].buffer]);
        for (int k = 0; k < step->binding_count; k++)
            if (missing && step->bindings[k].written) out[step->bindings[k].buffer] = true;
    }
    for (int i = 0; i < b->buffers.count; i++)
        for (int k = 0; k < b->buffers.items[i].member_count; k++)
            out[i] = out[i] || out[b->buffers.items[i].members[k]];
}

static bool reads_any(const smg_bstep *step, const bool *buffers) {
    for (int i = 0; i < step->binding_count; i++)
        if (!step->bindings[i].written && buffers[step->bindings[i].buffer]) return true;
    return false;
}

/* A kept plan is what came out of this at an earlier time; it is made anew where it is not built any more. A kernel
 * whose weights are not prepared counts as one that is not built. */
bool smg_judge_leaves(void *judge, const smg_vk_built *built, int modules) {
    static const smg_vk_built unknown = {-1, -1, -1, false};
    smg_judge *j = judge;
    const smg_compilation *c = j->c;
    const smg_bvariant *list = &c->bundle->variants.items[0];
    int most = c->options.passes.rivals > 0 ? MOST_TUNING_PLANS : SMG_MOST_PLANS;
    bool refused = false;
    if (c->options.rank > 0 || ++j->made >= most) return false;
    bool *unprepared = SMG_ARENA_ARRAY(j->verdicts.arena, bool, (size_t)c->bundle->buffers.count + 1);
    if (unprepared == NULL) return false;
    mark_unprepared(c->bundle, built, modules, unprepared);
    for (int i = 0; i < list->run.count; i++) {
        int module = list->run.items[i].module;
        smg_vk_built of = module < modules ? built[module] : unknown;
        if (reads_any(&list->run.items[i], unprepared)) of.spills = HUGE_VAL;
        if (c->plan != NULL) smg_compile_judge(c, i, &of, &j->verdicts);
        refused = refused || isinf(of.spills);
    }
    j->again = c->plan != NULL ? smg_verdicts_want_plan(c, &j->verdicts) : refused;
    return j->again;
}

/* Its pipelines are built and dropped. */
static smg_status build_once(const smg_compilation *c, smg_vk_device *device, smg_judge *j) {
    smg_program *program = NULL;
    const smg_program_options options = {
        .expected = c->nominal, .leaves = smg_judge_leaves, .leaves_user = j, .pipelines_only = true};
    j->c = c;
    smg_status status = smg_program_create(c->ctx, c->bundle, device, &options, &program);
    smg_program_destroy(program);
    return status;
}

smg_status smg_compile_for_driver(smg_context *ctx, const smg_graph *g, const smg_target *target, smg_vk_device *device,
                                  smg_arena *arena, smg_compile_options *io, smg_compilation **out) {
    smg_judge judge = {.made = 0};
    smg_status status;
    SMG_TRY(smg_verdicts_begin(&judge.verdicts, arena, &io->driver));
    *out = NULL;
    do {
        smg_compilation_destroy(*out);
        *out = NULL;
        smg_judge_begin(&judge, io);
        SMG_TRY(smg_compile_open(ctx, g, target, io, out));
        status = build_once(*out, device, &judge);
        if (judge.again) smg_context_clear_error(ctx);
    } while (judge.again);
    return status;
}

#else

smg_status smg_compile_for_driver(smg_context *ctx, const smg_graph *g, const smg_target *target, smg_vk_device *device,
                                  smg_arena *arena, smg_compile_options *io, smg_compilation **out) {
    (void)g, (void)target, (void)device, (void)arena, (void)io;
    *out = NULL;
    return smg_fail(ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: no driver can be asked");
}

#endif
