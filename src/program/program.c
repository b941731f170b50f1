/* program.c: making a program and asking about it.
 *
 * Creation is a short list: tables, pipelines, constants, the prepare list. Everything that depends on
 * sizes waits for smg_program_bind_sizes (program_bind.c). */
#include <math.h>

#include "program/program_private.h"

/* Of the prepare list, and of the first run list in the forms that the sizes expected ask for. */
static smg_status make_pipelines(smg_program *p) {
    const smg_bundle *bundle = p->bundle;
    const smg_bvariant *first = &bundle->variants.items[0];
    const int64_t *low = p->options.expected;
    const int64_t *high = p->options.expected_high != NULL && !p->single ? p->options.expected_high : low;
    const smg_program_steps lists[] = {{bundle->prepare.items, bundle->prepare.count, NULL, NULL, NULL},
                                       {first->run.items, first->run.count, low, high, NULL}};
    return smg_program_make_pipelines(p, lists, p->options.prepare_only ? 1 : (int)SMG_COUNT_OF(lists));
}

static bool has_diagnostics(const smg_bstep *steps, int count) {
    for (int i = 0; i < count; i++) {
        if (steps[i].diagnostics) return true;
    }
    return false;
}

static smg_status make_diagnostics(smg_program *p) {
    const smg_bundle *bundle = p->bundle;
    bool needed = has_diagnostics(bundle->prepare.items, bundle->prepare.count);
    for (int i = 0; i < bundle->variants.count; i++) {
        const smg_bvariant *v = &bundle->variants.items[i];
        needed = needed || has_diagnostics(v->run.items, v->run.count);
    }
    if (!needed || p->diagnostics != NULL) return SMG_OK;
    SMG_TRY(smg_vk_buffer_create(p->device, "diagnostics", SMG_PROGRAM_DIAGNOSTICS_BYTES, SMG_VK_READBACK,
                                 &p->diagnostics));
    void *words = smg_vk_buffer_map(p->diagnostics);
    if (words == NULL) return smg_fail(p->ctx, SMG_INTERNAL, "the diagnostics buffer is not mapped");
    memset(words, 0, SMG_PROGRAM_DIAGNOSTICS_BYTES);
    return SMG_OK;
}

/* A queue without timestamps says so once, here, and host time takes their place. */
static smg_status probe_timestamps(smg_program *p) {
    smg_vk_recording *recording = NULL;
    double seconds[2] = {0, 0};
    smg_status status = smg_vk_recording_begin(p->device, 2, &recording);
    if (status == SMG_OK) {
        smg_vk_record_timestamp(recording, 0);
        smg_vk_record_timestamp(recording, 1);
        status = smg_vk_recording_end(recording);
    }
    if (status == SMG_OK) status = smg_vk_run(recording);
    if (status == SMG_OK) status = smg_vk_timestamps(recording, seconds, 2);
    smg_vk_recording_destroy(recording);
    p->timestamps = status == SMG_OK;
    if (status != SMG_UNSUPPORTED) return status;
    smg_context_clear_error(p->ctx);
    return SMG_OK;
}

/* status: of building the pipelines. Another bundle does without what was refused. */
static smg_status judge(smg_program *p, smg_status status) {
    int modules = p->bundle->modules.count;
    if (p->options.leaves == NULL || (status != SMG_OK && p->refused < 0)) return status;
    smg_vk_built *built = SMG_ARENA_ARRAY(p->arena, smg_vk_built, (size_t)modules + 1);
    if (built == NULL) return SMG_MEMORY;
    for (int i = 0; i < modules; i++) built[i] = smg_program_built(p, i);
    if (status != SMG_OK) built[smg_program_refused(p)].spills = HUGE_VAL;
    if (!p->options.leaves(p->options.leaves_user, built, modules)) return status;
    p->refused = -1;
    if (status != SMG_OK) return status;
    return smg_fail(p->ctx, SMG_NO_FIT, "the driver's compiler spills registers of these kernels");
}

static smg_status build(smg_program *p) {
    SMG_TRY(smg_program_make_tables(p));
    SMG_TRY(smg_program_make_states(p));
    smg_status status = judge(p, make_pipelines(p));
    while (status != SMG_OK && smg_program_do_without(p)) {
        smg_context_clear_error(p->ctx);
        status = make_pipelines(p);
    }
    SMG_TRY(status);
    if (p->options.pipelines_only) return SMG_OK;
    SMG_TRY(make_diagnostics(p));
    smg_program_mark_scratch(p);
    SMG_TRY(smg_program_place_constants(p));
    SMG_TRY(smg_program_prepare(p));
    return probe_timestamps(p);
}

smg_status smg_program_extend(smg_program *p) {
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) smg_bound_drop(p, &p->cache[i]);
    SMG_TRY(smg_bundle_verify(p->ctx, p->bundle));
    SMG_TRY(smg_program_make_tables(p));
    SMG_TRY(make_diagnostics(p));
    p->stale = false;
    return SMG_OK;
}

static smg_status new_program(smg_context *ctx, const smg_bundle *bundle, smg_vk_device *device,
                              const smg_program_options *options, smg_program **out_program) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_program *p = SMG_ARENA_NEW(arena, smg_program);
    if (p == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    p->ctx = ctx;
    p->arena = arena;
    p->bundle = bundle;
    p->device = device;
    p->target = smg_vk_target(device);
    p->watchdog = p->target->type == SMG_DEVICE_CPU ? 0 : p->target->max_dispatch_time;
    p->runs = 1;
    p->refused = -1;
    p->passage.ctx = ctx;
    if (options != NULL) p->options = *options;
    *out_program = p;
    return SMG_OK;
}

smg_status smg_program_create(smg_context *ctx, const smg_bundle *bundle, smg_vk_device *device,
                              const smg_program_options *options, smg_program **out_program) {
    *out_program = NULL;
    SMG_TRY(smg_bundle_verify(ctx, bundle));
    smg_program *p = NULL;
    SMG_TRY(new_program(ctx, bundle, device, options, &p));
    smg_status status = build(p);
    if (status != SMG_OK) {
        smg_program_destroy(p);
        return status;
    }
    *out_program = p;
    return SMG_OK;
}

/* ---- sharing ---------------------------------------------------------------------------------------- */

/* A bundle that is read on other threads does not change any more. */
static smg_status make_all_lists(smg_program *p) {
    for (int v = 0; v < p->bundle->variants.count && p->options.make_variant != NULL; v++) {
        if (p->bundle->variants.items[v].made) continue;
        p->stale = true;
        SMG_TRY(p->options.make_variant(p->options.variant_user, v));
    }
    if (p->stale) SMG_TRY(smg_program_extend(p));
    p->options.make_variant = NULL;
    return SMG_OK;
}

static smg_status borrow(smg_program *p, const smg_program *from) {
    SMG_TRY(smg_program_make_tables(p));
    SMG_TRY(smg_program_make_states(p));
    p->shared = true;
    memcpy(p->literals, from->literals, (size_t)p->known_modules * sizeof(*p->literals));
    memcpy(p->without, from->without, (size_t)p->known_modules * sizeof(*p->without));
    p->fixed = from->fixed;
    p->fixed_places = from->fixed_places;
    p->scratch = from->scratch;
    p->timestamps = from->timestamps;
    p->options.nominal = from->options.nominal;
    p->options.memory_bytes = from->options.memory_bytes;
    p->dispatch_seconds = from->dispatch_seconds;
    p->submission_seconds = from->submission_seconds;
    p->watchdog = from->watchdog;
    p->pace = from->pace;
    int slots = smg_program_pipeline_slots(p->known_modules);
    for (int i = 0; i < slots; i++) {
        p->pipelines[i] = from->pipelines[i];
        p->lent[i] = from->pipelines[i] != NULL;
    }
    for (int i = 0; i < p->symbol_count; i++) {
        p->range_low[i] = from->range_low[i];
        p->range_high[i] = from->range_high[i];
    }
    return make_diagnostics(p);
}

smg_status smg_program_share(smg_program *from, smg_vk_device *device, smg_program **out_program) {
    *out_program = NULL;
    smg_context *ctx = smg_vk_context(device);
    if (from->in_flight) return smg_fail(ctx, SMG_INVALID, "a run of the model that is to be shared is in flight");
    smg_status status = make_all_lists(from);
    if (status != SMG_OK) return ctx != from->ctx ? smg_fail(ctx, status, "%s", smg_context_error(from->ctx)) : status;
    smg_program *p = NULL;
    SMG_TRY(new_program(ctx, from->bundle, device, NULL, &p));
    status = borrow(p, from);
    if (status != SMG_OK) {
        smg_program_destroy(p);
        return status;
    }
    *out_program = p;
    return SMG_OK;
}

void smg_program_destroy(smg_program *p) {
    if (p == NULL) return;
    smg_vk_recording_destroy(p->outside);
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) {
        smg_bound *bound = &p->cache[i];
        smg_bound_drop(p, bound);
        smg_free(p->ctx, bound->slices, (size_t)bound->slice_capacity * sizeof(*bound->slices));
        smg_free(p->ctx, bound->times, (size_t)bound->time_capacity * sizeof(*bound->times));
        smg_free(p->ctx, bound->parts, (size_t)bound->part_capacity * sizeof(*bound->parts));
    }
    smg_program_drop_crossings(p);
    for (int i = 0; i < p->memory.count; i++) smg_vk_buffer_destroy(p->memory.items[i]);
    for (int i = 0; i < p->fixed.count && !p->shared; i++) smg_vk_buffer_destroy(p->fixed.items[i]);
    smg_program_drop_scratch(p);
    smg_program_drop_states(p);
    smg_vk_buffer_destroy(p->diagnostics);
    for (int i = 0; p->pipelines != NULL && i < smg_program_pipeline_slots(p->known_modules); i++) {
        if (!p->lent[i]) smg_vk_pipeline_destroy(p->pipelines[i]);
    }
    smg_passage_free(&p->passage);
    smg_arena_destroy(p->arena);
}

double smg_program_time(const smg_program *p) {
    return p->seconds;
}

bool smg_program_has_timestamps(const smg_program *p) {
    return p->timestamps;
}

int smg_program_variant(const smg_program *p) {
    return p->bound != NULL ? p->bound->variant : 0;
}

int smg_program_step_count(const smg_program *p) {
    return p->bundle->variants.items[smg_program_variant(p)].run.count;
}

double smg_program_step_time(const smg_program *p, int step) {
    bool known = p->timestamps && p->bound != NULL && p->bound->stamped && p->ran;
    return known && step >= 0 && step < smg_program_step_count(p) ? p->step_seconds[step] : 0;
}

smg_status smg_program_set_profile(smg_program *p, bool on) {
    if (on && !p->timestamps) {
        return smg_fail(p->ctx, SMG_UNSUPPORTED, "%s has no timestamps to profile with", p->target->name);
    }
    if (p->profile != on) p->bound = NULL; /* the caller binds again */
    p->profile = on;
    return SMG_OK;
}

#define RUNS_SECONDS 1e-3 /* of a submission, so that its begin is no part of what one takes */
#define MOST_RUNS 100

int smg_program_set_runs(smg_program *p, int runs) {
    double known = p->seconds > 0 ? RUNS_SECONDS / p->seconds : 1;
    if (runs == 0) runs = known < 1 ? 1 : known > MOST_RUNS ? MOST_RUNS : (int)known;
    if (p->runs != runs) p->bound = NULL; /* the caller binds again */
    p->runs = runs;
    return runs;
}

void smg_program_memory_used(const smg_program *p, smg_program_memory *out) {
    *out = (smg_program_memory){.constant_bytes = p->constant_bytes,
                                .derived_bytes = p->derived_bytes,
                                .state_bytes = smg_program_state_bytes(p),
                                .prepare_bytes = p->scratch_bytes,
                                .prepare_seconds = p->prepare_seconds};
    for (int i = 0; i < p->memory.count; i++) out->arena_bytes += smg_vk_buffer_bytes(p->memory.items[i]);
    int64_t runs = out->arena_bytes + out->state_bytes;
    bool most = runs > out->prepare_bytes; /* what is scratch of the prepare list is gone before */
    out->peak_bytes = out->constant_bytes + out->derived_bytes + (most ? runs : out->prepare_bytes);
    int slots = smg_program_pipeline_slots(p->known_modules);
    for (int i = 0; i < slots; i++) out->pipelines += p->pipelines[i] != NULL;
    if (p->bound == NULL) return;
    out->unaliased_bytes = p->bound->unaliased_bytes;
    out->barriers = p->bound->barriers;
}
