/* program.c: making a program and asking about it.
 *
 * Creation is a short list: tables, pipelines, constants, the prepare list. Everything that depends on
 * sizes waits for smg_program_bind_sizes (program_run.c). */
#include "program/program_private.h"

static smg_status make_tables(smg_program *p) {
    const smg_bundle *bundle = p->bundle;
    size_t buffers = (size_t)bundle->buffers.count;
    size_t most = 1;
    size_t all = 1;
    for (int i = 0; i < bundle->prepare.count; i++) {
        size_t count = (size_t)bundle->prepare.items[i].binding_count + 1;
        all += count;
        if (count > most) most = count;
    }
    for (int i = 0; i < bundle->run.count; i++) {
        size_t count = (size_t)bundle->run.items[i].binding_count + 1;
        all += count;
        if (count > most) most = count;
    }
    p->range_capacity = (int)(all + most);
    p->symbol_count = smg_size_symbol_count(bundle->sizes);
    p->fixed_places = SMG_ARENA_ARRAY(p->arena, smg_place, buffers + 1);
    p->memory.items = SMG_ARENA_ARRAY(p->arena, smg_vk_buffer *, buffers + 1);
    p->written = SMG_ARENA_ARRAY(p->arena, bool, buffers + 1);
    p->step_seconds = SMG_ARENA_ARRAY(p->arena, double, (size_t)bundle->run.count + 2);
    p->slots = SMG_ARENA_ARRAY(p->arena, smg_arena_slot, buffers + 1);
    p->slot_buffer = SMG_ARENA_ARRAY(p->arena, int, buffers + 1);
    p->order = SMG_ARENA_ARRAY(p->arena, int, buffers + 1);
    p->placed = SMG_ARENA_ARRAY(p->arena, int, buffers + 1);
    p->chunk_bytes = SMG_ARENA_ARRAY(p->arena, int64_t, buffers + 1);
    p->bindings = SMG_ARENA_ARRAY(p->arena, smg_vk_binding, most);
    p->ranges = SMG_ARENA_ARRAY(p->arena, smg_range, (size_t)p->range_capacity);
    p->pipelines = SMG_ARENA_ARRAY(p->arena, smg_vk_pipeline *, (size_t)bundle->modules.count + 1);
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) {
        smg_bound *bound = &p->cache[i];
        bound->values = SMG_ARENA_ARRAY(p->arena, int64_t, (size_t)p->symbol_count + 1);
        bound->places = SMG_ARENA_ARRAY(p->arena, smg_place, buffers + 1);
        bound->dims = SMG_ARENA_ARRAY(p->arena, int64_t, buffers * SMG_BUNDLE_RANK + 1);
        if (bound->values == NULL || bound->places == NULL || bound->dims == NULL)
            return SMG_MEMORY;
    }
    bool made = p->fixed_places && p->memory.items && p->written && p->step_seconds && p->slots &&
                p->slot_buffer && p->order && p->placed && p->chunk_bytes && p->bindings &&
                p->ranges && p->pipelines;
    return made ? SMG_OK : SMG_MEMORY;
}

/* A module's pipeline layout comes from the first step that uses it; all its steps bind alike. */
static const smg_bstep *step_of_module(const smg_bundle *bundle, int module) {
    for (int i = 0; i < bundle->run.count; i++) {
        if (bundle->run.items[i].module == module) return &bundle->run.items[i];
    }
    for (int i = 0; i < bundle->prepare.count; i++) {
        if (bundle->prepare.items[i].module == module) return &bundle->prepare.items[i];
    }
    return NULL;
}

static smg_status make_pipelines(smg_program *p) {
    int count = p->bundle->modules.count;
    for (int i = 0; i < count; i++) {
        const smg_bmodule *module = &p->bundle->modules.items[i];
        const smg_bstep *step = step_of_module(p->bundle, i);
        smg_progress(p->ctx, "pipelines", (size_t)i, (size_t)count, module->name);
        if (step == NULL) continue;
        smg_vk_pipeline_desc desc = {
            .name = module->name,
            .words = module->words,
            .word_count = module->word_count,
            .local_size = {module->local_size, 1, 1},
            .binding_count = step->binding_count + (step->diagnostics ? 1 : 0),
            .push_bytes = step->push_count * 4,
            .subgroup_size = module->subgroup > 1 ? module->subgroup : 0,
            .full_subgroups = module->subgroup > 1,
        };
        SMG_TRY(smg_vk_pipeline_create(p->device, &desc, &p->pipelines[i]));
    }
    smg_progress(p->ctx, "pipelines", (size_t)count, (size_t)count, "");
    return SMG_OK;
}

static smg_status make_diagnostics(smg_program *p) {
    bool needed = false;
    for (int i = 0; i < p->bundle->run.count; i++) needed |= p->bundle->run.items[i].diagnostics;
    for (int i = 0; i < p->bundle->prepare.count; i++)
        needed |= p->bundle->prepare.items[i].diagnostics;
    if (!needed) return SMG_OK;
    SMG_TRY(smg_vk_buffer_create(p->device, "diagnostics", SMG_PROGRAM_DIAGNOSTICS_BYTES,
                                 SMG_VK_READBACK, &p->diagnostics));
    void *words = smg_vk_buffer_map(p->diagnostics);
    if (words == NULL)
        return smg_fail(p->ctx, SMG_INTERNAL, "the diagnostics buffer is not mapped");
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

static smg_status build(smg_program *p, const smg_program_options *options) {
    SMG_TRY(make_tables(p));
    SMG_TRY(make_pipelines(p));
    SMG_TRY(make_diagnostics(p));
    SMG_TRY(smg_program_mark_scratch(p));
    SMG_TRY(smg_program_place_constants(p, options));
    SMG_TRY(smg_program_prepare(p, options));
    return probe_timestamps(p);
}

smg_status smg_program_create(smg_context *ctx, const smg_bundle *bundle, smg_vk_device *device,
                              const smg_program_options *options, smg_program **out_program) {
    *out_program = NULL;
    SMG_TRY(smg_bundle_verify(ctx, bundle));
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
    smg_status status = build(p, options);
    if (status != SMG_OK) {
        smg_program_destroy(p);
        return status;
    }
    *out_program = p;
    return SMG_OK;
}

void smg_program_destroy(smg_program *p) {
    if (p == NULL) return;
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) smg_bound_drop(p, &p->cache[i]);
    for (int i = 0; i < p->memory.count; i++) smg_vk_buffer_destroy(p->memory.items[i]);
    for (int i = 0; i < p->fixed.count; i++) smg_vk_buffer_destroy(p->fixed.items[i]);
    smg_program_drop_scratch(p);
    smg_vk_buffer_destroy(p->diagnostics);
    for (int i = 0; p->pipelines != NULL && i < p->bundle->modules.count; i++) {
        smg_vk_pipeline_destroy(p->pipelines[i]);
    }
    smg_arena_destroy(p->arena);
}

const smg_bundle *smg_program_bundle(const smg_program *p) {
    return p->bundle;
}

double smg_program_time(const smg_program *p) {
    return p->seconds;
}

bool smg_program_has_timestamps(const smg_program *p) {
    return p->timestamps;
}

int smg_program_step_count(const smg_program *p) {
    return p->bundle->run.count;
}

double smg_program_step_time(const smg_program *p, int step) {
    bool known = p->timestamps && p->bound != NULL && p->bound->profile && p->ran;
    return known && step >= 0 && step < p->bundle->run.count ? p->step_seconds[step] : 0;
}

smg_status smg_program_set_profile(smg_program *p, bool on) {
    if (on && !p->timestamps) {
        return smg_fail(p->ctx, SMG_UNSUPPORTED, "%s has no timestamps to profile with",
                        p->target->name);
    }
    if (p->profile != on) p->bound = NULL; /* the caller binds again */
    p->profile = on;
    return SMG_OK;
}

void smg_program_memory_used(const smg_program *p, smg_program_memory *out) {
    *out = (smg_program_memory){.constant_bytes = p->constant_bytes,
                                .derived_bytes = p->derived_bytes,
                                .prepare_bytes = p->scratch_bytes,
                                .prepare_seconds = p->prepare_seconds};
    for (int i = 0; i < p->memory.count; i++)
        out->arena_bytes += smg_vk_buffer_bytes(p->memory.items[i]);
    for (int i = 0; i < p->bundle->modules.count; i++) out->pipelines += p->pipelines[i] != NULL;
    if (p->bound == NULL) return;
    out->unaliased_bytes = p->bound->unaliased_bytes;
    out->barriers = p->bound->barriers;
}

void smg_program_work(const smg_program *p, double *out_bytes, double *out_flops) {
    *out_bytes = p->bound != NULL ? p->bound->bytes : 0;
    *out_flops = p->bound != NULL ? p->bound->flops : 0;
}
