/* facts_model.c: include/smg/measure.h: sizes made ready, runs repeated, times and memory of a model. */
#include "runtime/runtime.h"
#include "smg/measure.h"

#if SMG_VULKAN

smg_device *smg_model_device(const smg_model *m) {
    return m != NULL ? smg_model_parts_of(m)->device : NULL;
}

static smg_status check_dims(smg_context *ctx, const smg_dim *dims, int count) {
    if (count < 0 || (dims == NULL && count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_model_prepare: %d sizes%s", count, dims == NULL ? " at NULL" : "");
    for (int i = 0; i < count; i++)
        if (dims[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_prepare: dims[%d] has no name", i);
    return SMG_OK;
}

static smg_status prepare(smg_model *m, const smg_dim *dims, int count) {
    SMG_TRY(smg_model_check_idle(m, "smg_model_prepare"));
    SMG_TRY(check_dims(smg_model_context(m), dims, count));
    SMG_TRY(smg_model_update(m));
    SMG_TRY(smg_model_check_idle(m, "smg_model_prepare"));
    return smg_model_bind_named(m, dims, count);
}

smg_status smg_model_prepare(smg_model *m, const smg_dim *dims, int dim_count) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_model_context(m));
    return smg_context_told(smg_model_context(m), prepare(m, dims, dim_count));
}

static smg_status repeat(smg_model *m) {
    SMG_TRY(smg_model_check_idle(m, "smg_model_repeat"));
    return smg_model_again(m);
}

smg_status smg_model_repeat(smg_model *m) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_model_context(m));
    return smg_context_told(smg_model_context(m), repeat(m));
}

/* ---- what it took --------------------------------------------------------------------------------------- */

static smg_status get_memory(smg_model *m, smg_memory_info *out) {
    smg_program_memory used;
    if (smg_model_program(m) == NULL)
        return smg_fail(smg_model_context(m), SMG_DEVICE, "the model has no device since it could not be recovered");
    smg_model_memory(m, &used);
    *out = (smg_memory_info){.weights = used.constant_bytes,
                             .derived = used.derived_bytes,
                             .values = used.arena_bytes,
                             .values_apart = used.unaliased_bytes,
                             .states = used.state_bytes,
                             .prepare = used.prepare_bytes,
                             .peak = used.peak_bytes,
                             .prepare_kernels = smg_model_parts_of(m)->bundle->prepare.count,
                             .prepare_seconds = used.prepare_seconds,
                             .barriers = used.barriers,
                             .pipelines = used.pipelines};
    return SMG_OK;
}

smg_status smg_model_get_memory(smg_model *m, smg_memory_info *out_memory) {
    if (m == NULL || out_memory == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_model_context(m));
    return smg_context_told(smg_model_context(m), get_memory(m, out_memory));
}

void smg_model_open_seconds(const smg_model *m, double *out_device, double *out_program) {
    double device = 0, program = 0;
    if (m != NULL) smg_model_times(m, &device, &program);
    if (out_device != NULL) *out_device = device;
    if (out_program != NULL) *out_program = program;
}

/* ---- by step and by kernel ------------------------------------------------------------------------------ */

static smg_status set_profile(smg_model *m, bool on) {
    SMG_TRY(smg_model_check_idle(m, "smg_model_set_profile"));
    return smg_program_set_profile(smg_model_program(m), on);
}

smg_status smg_model_set_profile(smg_model *m, bool on) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_model_context(m));
    return smg_context_told(smg_model_context(m), set_profile(m, on));
}

static smg_status set_runs(smg_model *m, int runs, int *out_runs) {
    if (runs < 0) return smg_fail(smg_model_context(m), SMG_INVALID, "smg_model_set_runs: %d runs", runs);
    SMG_TRY(smg_model_check_idle(m, "smg_model_set_runs"));
    runs = smg_program_set_runs(smg_model_program(m), runs);
    if (out_runs != NULL) *out_runs = runs;
    return SMG_OK;
}

smg_status smg_model_set_runs(smg_model *m, int runs, int *out_runs) {
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_model_context(m));
    return smg_context_told(smg_model_context(m), set_runs(m, runs, out_runs));
}

static smg_program *program_of(const smg_model *m) {
    return m != NULL ? smg_model_program(m) : NULL;
}

int smg_model_step_count(const smg_model *m) {
    const smg_program *program = program_of(m);
    return program != NULL ? smg_program_step_count(program) : 0;
}

static double number_of(const smg_bundle *bundle, smg_size size) {
    int64_t number = 0;
    return smg_size_is_const(bundle->sizes, size, &number) ? (double)number : 0;
}

bool smg_model_step(const smg_model *m, int index, smg_step_info *out) {
    if (out == NULL || index < 0 || index >= smg_model_step_count(m)) return false;
    const smg_bundle *bundle = smg_model_parts_of(m)->bundle;
    const smg_program *program = program_of(m);
    const smg_bstep *step = &bundle->variants.items[smg_program_variant(program)].run.items[index];
    *out = (smg_step_info){.name = step->name,
                           .kernel = step->module,
                           .seconds = smg_program_step_time(program, index),
                           .estimate = step->estimate,
                           .bytes = number_of(bundle, step->bytes),
                           .flops = number_of(bundle, step->flops)};
    return true;
}

int smg_model_kernel_count(const smg_model *m) {
    return program_of(m) != NULL ? smg_model_parts_of(m)->bundle->modules.count : 0;
}

bool smg_model_kernel(const smg_model *m, int index, smg_kernel_info *out) {
    if (out == NULL || index < 0 || index >= smg_model_kernel_count(m)) return false;
    const smg_vk_built built = smg_program_built(program_of(m), index);
    *out = (smg_kernel_info){.name = smg_model_parts_of(m)->bundle->modules.items[index].name,
                             .registers = built.registers,
                             .shared_bytes = built.shared,
                             .spills = built.spills};
    return true;
}

#else /* no model is ever opened */

smg_device *smg_model_device(const smg_model *m) {
    (void)m;
    return NULL;
}

smg_status smg_model_prepare(smg_model *m, const smg_dim *dims, int dim_count) {
    (void)m, (void)dims, (void)dim_count;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_repeat(smg_model *m) {
    (void)m;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_get_memory(smg_model *m, smg_memory_info *out_memory) {
    (void)m, (void)out_memory;
    return SMG_UNSUPPORTED;
}

void smg_model_open_seconds(const smg_model *m, double *out_device, double *out_program) {
    (void)m;
    if (out_device != NULL) *out_device = 0;
    if (out_program != NULL) *out_program = 0;
}

smg_status smg_model_set_profile(smg_model *m, bool on) {
    (void)m, (void)on;
    return SMG_UNSUPPORTED;
}

smg_status smg_model_set_runs(smg_model *m, int runs, int *out_runs) {
    (void)m, (void)runs, (void)out_runs;
    return SMG_UNSUPPORTED;
}

int smg_model_step_count(const smg_model *m) {
    (void)m;
    return 0;
}

bool smg_model_step(const smg_model *m, int index, smg_step_info *out) {
    (void)m, (void)index, (void)out;
    return false;
}

int smg_model_kernel_count(const smg_model *m) {
    (void)m;
    return 0;
}

bool smg_model_kernel(const smg_model *m, int index, smg_kernel_info *out) {
    (void)m, (void)index, (void)out;
    return false;
}

#endif
