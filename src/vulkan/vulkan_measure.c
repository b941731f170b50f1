/* Experiments: each doubles its work until one run takes a millisecond or a few, then keeps the best of several. On
 * cores that other programs use too, runs are short and time is what the driver's threads have run. Else time comes
 * from timestamps around the work, or from the host where the queue has none. */
#include "vulkan/vulkan_measure.h"

#include "vulkan/calibrate_spirv.h"
#include "vulkan/resident_spirv.h"

#include <math.h>

enum { MAX_STEPS = 1 << 28, FMA_FLOPS_STEP = 128, DISPATCHES = 200 };

typedef struct bench_push {
    uint32_t a, b, c;
} bench_push;

static uint32_t float_bits(float value) {
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- objects --------------------------------------------------------------------------------- */

static int64_t at_most(int64_t value, int64_t limit) {
    return value < limit ? value : limit;
}

/* constants[0]: the workgroup's size. */
static smg_status make_sized(smg_vk_bench *bench, const char *name, const uint32_t *words, size_t bytes,
                             const uint32_t *constants, int count, int bindings, smg_vk_pipeline **out_pipeline) {
    const smg_vk_pipeline_desc desc = {
        .name = name,
        .words = words,
        .word_count = bytes / sizeof *words,
        .local_size = {(int)constants[0], 1, 1},
        .binding_count = bindings,
        .push_bytes = sizeof(bench_push),
        .constants = constants,
        .constant_count = count,
    };
    return smg_vk_pipeline_create(bench->dev, &desc, out_pipeline);
}

static smg_status make_pipeline(smg_vk_bench *bench, const char *name, const uint32_t *words, size_t bytes,
                                int64_t local_size, int bindings, smg_vk_pipeline **out_pipeline) {
    return make_sized(bench, name, words, bytes, (const uint32_t[]){(uint32_t)local_size}, 1, bindings, out_pipeline);
}

static int64_t data_size(const smg_vk_device *dev) {
    int64_t bytes = INT64_C(512) << 20;
    bytes = at_most(bytes, dev->target.max_buffer_range);
    bytes = at_most(bytes, dev->target.max_allocation);
    bytes = at_most(bytes, smg_vk_memory_available(dev) / 4);
    return bytes / 16 * 16;
}

static smg_status create(smg_vk_bench *bench) {
    smg_vk_device *dev = bench->dev;
    const smg_target *target = &dev->target;
    int64_t most = at_most(target->max_invocations, target->max_size_x);
    bench->fma_size = at_most(1024, most);
    bench->read_size = at_most(256, most);
    SMG_TRY(make_pipeline(bench, "calibrate fma", smg_calibrate_fma, sizeof smg_calibrate_fma, bench->fma_size, 1,
                          &bench->fma));
    SMG_TRY(make_pipeline(bench, "calibrate read", smg_calibrate_read, sizeof smg_calibrate_read, bench->read_size, 2,
                          &bench->read));
    SMG_TRY(make_pipeline(bench, "calibrate barrier", smg_calibrate_barrier, sizeof smg_calibrate_barrier,
                          bench->read_size, 1, &bench->barrier));
    SMG_TRY(make_pipeline(bench, "calibrate noise", smg_calibrate_noise, sizeof smg_calibrate_noise, bench->read_size,
                          1, &bench->noise));
    bool shared = target->type == SMG_DEVICE_CPU;
    bench->goal = shared ? 1e-3 : 4e-3;
    bench->tries = shared ? 40 : 5;
    bench->cores = target->cores;
    bench->data_bytes = data_size(dev);
    SMG_TRY(smg_vk_buffer_create(dev, "calibrate data", bench->data_bytes, SMG_VK_DEVICE, &bench->data));
    return smg_vk_buffer_create(dev, "calibrate result", 256, SMG_VK_DEVICE, &bench->result);
}

smg_status smg_vk_bench_create(smg_vk_device *dev, smg_vk_bench *out_bench) {
    memset(out_bench, 0, sizeof *out_bench);
    out_bench->dev = dev;
    smg_status status = create(out_bench);
    if (status != SMG_OK) smg_vk_bench_destroy(out_bench);
    return status;
}

void smg_vk_bench_destroy(smg_vk_bench *bench) {
    smg_vk_pipeline_destroy(bench->read);
    smg_vk_pipeline_destroy(bench->fma);
    smg_vk_pipeline_destroy(bench->barrier);
    smg_vk_pipeline_destroy(bench->noise);
    smg_vk_buffer_destroy(bench->data);
    smg_vk_buffer_destroy(bench->result);
    memset(bench, 0, sizeof *bench);
}

/* ---- one timed run --------------------------------------------------------------------------- */

typedef struct work {
    smg_vk_pipeline *pipeline;
    smg_vk_binding bindings[3];
    int binding_count;
    bench_push push;
    int64_t groups;
    int dispatches;
} work;

/* A CPU's time is that of the driver's threads: what other programs take of the cores does not count. */
static smg_status run_timed(smg_vk_bench *bench, smg_vk_recording *rec, int64_t groups, double *out_seconds) {
    bool cpu = bench->dev->target.type == SMG_DEVICE_CPU;
    double began = cpu ? smg_cpu_seconds() : smg_clock_seconds();
    SMG_TRY(smg_vk_run(rec));
    *out_seconds = (cpu ? smg_cpu_seconds() : smg_clock_seconds()) - began;
    if (cpu) *out_seconds /= (double)at_most(groups, bench->cores);
    if (cpu || bench->dev->timestamp_bits == 0) return SMG_OK;
    double times[2] = {0, 0};
    SMG_TRY(smg_vk_timestamps(rec, times, 2));
    if (times[1] > 0) *out_seconds = times[1];
    return SMG_OK;
}

/* Keeps the three best in order. */
static void keep_best(double best[3], double seconds) {
    for (int i = 0; i < 3; i++) {
        if (seconds >= best[i]) continue;
        memmove(best + i + 1, best + i, (size_t)(2 - i) * sizeof(double));
        best[i] = seconds;
        return;
    }
}

#define MOST_SECONDS 0.08 /* of one experiment's runs */
#define SETTLED 1.25      /* the third best run against the best */

/* The best of `tries` runs. */
static smg_status time_work(smg_vk_bench *bench, const work *w, int tries, double *out_seconds) {
    smg_vk_recording *rec = NULL;
    SMG_TRY(smg_vk_recording_begin(bench->dev, 2, &rec));
    smg_vk_record_timestamp(rec, 0);
    for (int i = 0; i < w->dispatches; i++) {
        smg_vk_record_dispatch(rec, w->pipeline, w->bindings, w->binding_count, &w->push, sizeof w->push, w->groups, 1,
                               1);
        smg_vk_record_barrier(rec);
    }
    smg_vk_record_timestamp(rec, 1);
    smg_status status = smg_vk_recording_end(rec);
    double best[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double end = smg_clock_seconds() + MOST_SECONDS;
    for (int i = 0; i < tries && status == SMG_OK && (i < 5 || smg_clock_seconds() < end); i++) {
        double seconds = 0;
        status = run_timed(bench, rec, w->groups, &seconds);
        keep_best(best, seconds);
    }
    smg_vk_recording_destroy(rec);
    bench->settled = tries < 3 || best[2] <= SETTLED * best[0];
    *out_seconds = best[0] > 1e-9 ? best[0] : 1e-9;
    return status;
}

/* Raises *steps (a member of w's push constants) until a run is long enough, then times it. */
static smg_status time_growing(smg_vk_bench *bench, work *w, uint32_t *steps, double *out_seconds) {
    for (;;) {
        double seconds = 0;
        SMG_TRY(time_work(bench, w, 1, &seconds));
        if (seconds >= bench->goal / 2 || *steps >= MAX_STEPS) break;
        double factor = bench->goal / seconds;
        if (factor > 16) factor = 16;
        if (factor < 2) factor = 2;
        *steps = (uint32_t)((double)*steps * factor);
    }
    return time_work(bench, w, bench->tries, out_seconds);
}

/* The same of a kernel that has not run: drivers have work of their own with the first run. */
static smg_status time_new(smg_vk_bench *bench, work *w, uint32_t *steps, double *out_seconds) {
    SMG_TRY(time_work(bench, w, 1, out_seconds));
    return time_growing(bench, w, steps, out_seconds);
}

/* ---- experiments ----------------------------------------------------------------------------- */

static work fma_work(smg_vk_bench *bench, int64_t groups, uint32_t steps) {
    return (work){
        .pipeline = bench->fma,
        .bindings = {{bench->result, 0, 0}},
        .binding_count = 1,
        .push = {steps, float_bits(0.999f), float_bits(0.5f)},
        .groups = groups,
        .dispatches = 1,
    };
}

smg_status smg_vk_bench_fill(smg_vk_bench *bench) {
    const work w = {
        .pipeline = bench->noise,
        .bindings = {{bench->data, 0, 0}},
        .binding_count = 1,
        .push = {(uint32_t)(bench->data_bytes / 16), 0, 0},
        .groups = at_most(bench->cores * 16, bench->dev->target.max_grid_x),
        .dispatches = 1,
    };
    double seconds = 0;
    return time_work(bench, &w, 1, &seconds);
}

smg_status smg_vk_bench_warm(smg_vk_bench *bench, double seconds) {
    double rate = 0, end = smg_clock_seconds() + seconds;
    do {
        SMG_TRY(smg_vk_bench_fma(bench, 1024, &rate));
    } while (smg_clock_seconds() < end);
    return SMG_OK;
}

smg_status smg_vk_bench_fma(smg_vk_bench *bench, int64_t groups, double *out_rate) {
    work w = fma_work(bench, groups, 8);
    double seconds = 1;
    SMG_TRY(time_growing(bench, &w, &w.push.a, &seconds));
    *out_rate = (double)w.push.a * FMA_FLOPS_STEP * (double)(groups * bench->fma_size) / seconds;
    return SMG_OK;
}

smg_status smg_vk_bench_read(smg_vk_bench *bench, int64_t bytes, int64_t *out_bytes, double *out_rate) {
    const smg_target *target = &bench->dev->target;
    int64_t per_group = bench->read_size * 4; /* uvec4 of one round of one workgroup */
    /* All workgroups run at once: a second wave would leave most of the device idle at the end. */
    int64_t most_groups = at_most(bench->cores * 4, target->max_grid_x);
    int64_t rounds = bytes / 16 / (per_group * most_groups), groups = most_groups;
    if (rounds < 8) { /* too coarse: fewer workgroups instead, so that the set has its size */
        rounds++;
        groups = bytes / 16 / (per_group * rounds);
    }
    if (groups < 1) groups = 1;
    int64_t count = groups * per_group * rounds;
    /* The next pass reads what a workgroup 37 places on has read; a prime, so that it takes long until
     * a core meets what its own first-level cache may still have. */
    int64_t shift = bench->read_size * 37 % count;
    work w = {
        .pipeline = bench->read,
        .bindings = {{bench->data, 0, 0}, {bench->result, 0, 0}},
        .binding_count = 2,
        .push = {(uint32_t)count, 1, (uint32_t)shift},
        .groups = groups,
        .dispatches = 1,
    };
    *out_bytes = count * 16;
    double seconds = 1;
    SMG_TRY(time_growing(bench, &w, &w.push.b, &seconds));
    *out_rate = (double)w.push.b * (double)*out_bytes / seconds;
    return SMG_OK;
}

/* The other half of the data was written last and may be cached. */
smg_status smg_vk_bench_stream(smg_vk_bench *bench, int64_t bytes, double *out_rate) {
    int64_t groups = bench->cores * 4, per_round = bench->read_size * 4 * groups, count = bytes / 16 / per_round;
    count = (count < 1 ? 1 : count) * per_round;
    int64_t window = count * 16, windows = bench->data_bytes / 2 / window;
    double best[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL}, end = smg_clock_seconds() + 3 * MOST_SECONDS;
    for (int64_t i = 0; windows > 0 && (i < 5 || smg_clock_seconds() < end); i++) {
        work w = {
            .pipeline = bench->read,
            .bindings = {{bench->data, i % windows * window, window}, {bench->result, 0, 0}},
            .binding_count = 2,
            .push = {(uint32_t)count, 1, 0},
            .groups = groups,
            .dispatches = 1,
        };
        double seconds = 0;
        SMG_TRY(time_work(bench, &w, 1, &seconds));
        if (i > 0) keep_best(best, seconds); /* the first reads a part from the cache */
    }
    bench->settled = best[2] <= SETTLED * best[0];
    *out_rate = isinf(best[0]) ? 0 : (double)window / best[0];
    return SMG_OK;
}

smg_status smg_vk_bench_dispatch(smg_vk_bench *bench, double *out_seconds) {
    work w = fma_work(bench, 1, 0);
    w.dispatches = DISPATCHES;
    SMG_TRY(time_work(bench, &w, bench->tries, out_seconds));
    *out_seconds /= DISPATCHES;
    return SMG_OK;
}

smg_status smg_vk_bench_barrier(smg_vk_bench *bench, double *out_seconds) {
    work w = {
        .pipeline = bench->barrier,
        .bindings = {{bench->result, 0, 0}},
        .binding_count = 1,
        .push = {64, 0, 0},
        .groups = 1,
        .dispatches = 1,
    };
    double seconds = 1;
    SMG_TRY(time_growing(bench, &w, &w.push.a, &seconds));
    *out_seconds = seconds / (double)w.push.a;
    return SMG_OK;
}

#define NEAR_STEP 64   /* bytes that a lane reads in each step */
#define NEAR_GROUPS 16 /* for each core: several are there at a time */

smg_status smg_vk_bench_near(smg_vk_bench *bench, double *out_rate) {
    smg_vk_pipeline *pipeline = NULL;
    SMG_TRY(make_pipeline(bench, "calibrate near", smg_calibrate_near, sizeof smg_calibrate_near, bench->read_size, 1,
                          &pipeline));
    work w = {
        .pipeline = pipeline,
        .bindings = {{bench->result, 0, 0}},
        .binding_count = 1,
        .push = {64, 0, 0},
        .groups = at_most(bench->cores * NEAR_GROUPS, bench->dev->target.max_grid_x),
        .dispatches = 1,
    };
    double seconds = 1;
    smg_status status = time_new(bench, &w, &w.push.a, &seconds);
    *out_rate = (double)w.push.a * NEAR_STEP * (double)(w.groups * bench->read_size) / seconds;
    smg_vk_pipeline_destroy(pipeline);
    return status;
}

smg_status smg_vk_bench_latency(smg_vk_bench *bench, int64_t bytes, double *out_seconds) {
    smg_vk_pipeline *pipeline = NULL;
    SMG_TRY(make_pipeline(bench, "calibrate latency", smg_calibrate_latency, sizeof smg_calibrate_latency, 1, 2,
                          &pipeline));
    int64_t count = 1;
    while (32 * count <= at_most(bytes, bench->data_bytes)) count *= 2;
    work w = {
        .pipeline = pipeline,
        .bindings = {{bench->data, 0, 0}, {bench->result, 0, 0}},
        .binding_count = 2,
        .push = {64, (uint32_t)(count - 1), 0},
        .groups = 1,
        .dispatches = 1,
    };
    double seconds = 1;
    smg_status status = time_new(bench, &w, &w.push.a, &seconds);
    *out_seconds = seconds / (double)w.push.a;
    smg_vk_pipeline_destroy(pipeline);
    return status;
}

smg_status smg_vk_bench_matrix(smg_vk_device *dev, smg_vk_pipeline *pipeline, smg_vk_buffer *const buffers[3],
                               double flops_step, double *out_rate) {
    bool cpu = dev->target.type == SMG_DEVICE_CPU;
    int64_t groups = cpu ? 1 : dev->target.cores * 16;
    smg_vk_bench bench = {.dev = dev, .goal = cpu ? 1e-3 : 4e-3, .tries = 5, .cores = dev->target.cores};
    work w = {.pipeline = pipeline, .binding_count = 3, .push = {8, 0, 0}, .dispatches = 1};
    w.groups = at_most(groups, dev->target.max_grid_x);
    for (int i = 0; i < w.binding_count; i++) w.bindings[i] = (smg_vk_binding){buffers[i], 0, 0};
    double end = smg_clock_seconds() + (cpu ? 0 : 0.5); /* so that clocks are up */
    *out_rate = 0;
    do {
        double seconds = 1;
        SMG_TRY(time_growing(&bench, &w, &w.push.a, &seconds));
        double rate = (double)w.push.a * flops_step * (double)w.groups / seconds;
        if (rate > *out_rate) *out_rate = rate;
    } while (smg_clock_seconds() < end);
    if (cpu) *out_rate *= (double)dev->target.cores;
    return SMG_OK;
}

#define RESIDENT_GROUPS 40 /* for each core; none runs so many at once */
#define RESIDENT_STEPS 4096
#define REGISTERS_STEPS 256 /* of a multiply-add for each value */

static smg_status count_resident(smg_vk_bench *bench, smg_vk_pipeline *pipeline, uint32_t steps, int64_t *out_groups) {
    const work w = {
        .pipeline = pipeline,
        .bindings = {{bench->result, 0, 0}},
        .binding_count = 1,
        .push = {steps, float_bits(0.999f), float_bits(0.5f)},
        .groups = at_most(bench->cores * RESIDENT_GROUPS, bench->dev->target.max_grid_x),
        .dispatches = 1,
    };
    uint32_t counted[2] = {0, 0};
    double seconds = 0;
    SMG_TRY(smg_vk_fill(bench->result, 0, 256, 0));
    SMG_TRY(time_work(bench, &w, 2, &seconds));
    SMG_TRY(smg_vk_download(bench->result, 0, counted, sizeof counted));
    *out_groups = counted[1];
    return SMG_OK;
}

smg_status smg_vk_bench_resident(smg_vk_bench *bench, int64_t lanes, int64_t shared_bytes, int64_t *out_groups) {
    const uint32_t constants[2] = {(uint32_t)lanes, (uint32_t)(shared_bytes < 4 ? 1 : shared_bytes / 4)};
    smg_vk_pipeline *pipeline = NULL;
    SMG_TRY(make_sized(bench, "calibrate resident", smg_resident_lanes, sizeof smg_resident_lanes, constants, 2, 1,
                       &pipeline));
    smg_status status = count_resident(bench, pipeline, RESIDENT_STEPS, out_groups);
    smg_vk_pipeline_destroy(pipeline);
    return status;
}

smg_status smg_vk_bench_registers(smg_vk_bench *bench, bool all, int64_t lanes, int64_t *out_groups,
                                  int64_t *out_registers) {
    const uint32_t *words = all ? smg_resident_registers_many : smg_resident_registers_few;
    size_t bytes = all ? sizeof smg_resident_registers_many : sizeof smg_resident_registers_few;
    smg_vk_pipeline *pipeline = NULL;
    SMG_TRY(make_pipeline(bench, "calibrate registers", words, bytes, lanes, 1, &pipeline));
    double registers = smg_vk_pipeline_built(pipeline).registers;
    *out_registers = registers > 0 ? (int64_t)registers : 0;
    smg_status status = count_resident(bench, pipeline, REGISTERS_STEPS, out_groups);
    smg_vk_pipeline_destroy(pipeline);
    return status;
}
