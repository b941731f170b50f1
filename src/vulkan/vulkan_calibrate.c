/* Measured facts: multiply-add rate, bandwidth against the working set (which shows the last-level cache), cost of a
 * dispatch and of a workgroup barrier, lanes, registers and shared memory that a core holds at a time; where no table
 * tells, the rate of shared memory and the latency of a load. What can be asked is asked: the cores of a CPU and its
 * cache; cores of another device that nobody tells are how many times faster the whole device is than one workgroup.
 * Rates are rounded to steps beside the table's value, so that a machine gives the same answer each time; where even
 * the best runs disagree somebody else is using the device, and the table's value stays. The result is kept in
 * <cache>/calibration as a target text behind a line with its hash, so that a second run reads it. */
#include "vulkan/vulkan_measure.h"

#include <math.h>

enum { SET_COUNT = 15 }; /* 4 MiB .. 512 MiB in half octaves */

static const smg_vk_kept calibration = {"calibration", "# smg calibration 5 "};

typedef struct measured {
    double value; /* 0: not measured */
    bool settled;
} measured;

typedef struct measurements {
    measured fma_rate, one_group_rate, bandwidth, cache_bandwidth, dispatch_cost, barrier_cost;
    measured near_bytes, load_latency;
    int64_t cores, cache_bytes; /* 0: told by somebody, or none seen */
    int64_t core_lanes, shared_core;
    int64_t registers_lane, registers_core; /* 0: known, or not found out */
} measurements;

/* ---- measuring ------------------------------------------------------------------------------- */

static smg_status read_set(smg_vk_bench *bench, int64_t bytes, int64_t *out_bytes, measured *out_rate) {
    SMG_TRY(smg_vk_bench_read(bench, bytes, out_bytes, &out_rate->value));
    out_rate->settled = bench->settled;
    smg_log(bench->dev->ctx, SMG_LOG_INFO, "calibrate: %lld bytes at %.4g B/s%s", (long long)*out_bytes,
            out_rate->value, out_rate->settled ? "" : ", not settled");
    return SMG_OK;
}

/* Sets of growing size, until they are far larger than any cache. */
static smg_status seek_cache(smg_vk_bench *bench, measurements *m) {
    measured rates[SET_COUNT];
    int64_t sizes[SET_COUNT];
    int count = 0;
    for (int i = 0; i < SET_COUNT; i++) {
        double bytes = 4194304.0 * pow(2.0, i / 2.0);
        if (bytes > (double)bench->data_bytes) break;
        SMG_TRY(read_set(bench, (int64_t)bytes, &sizes[count], &rates[count]));
        count++;
    }
    if (count == 0) return read_set(bench, bench->data_bytes, &sizes[0], &m->bandwidth);
    m->bandwidth = m->cache_bandwidth = rates[count - 1];
    for (int i = 0; i < count; i++)
        if (rates[i].value > m->cache_bandwidth.value) m->cache_bandwidth = rates[i];
    if (m->cache_bandwidth.value < 1.25 * m->bandwidth.value) return SMG_OK;
    /* Past the cache's size the rate falls slowly, because a part of the set still hits. */
    for (int i = 0; i < count; i++)
        if (rates[i].value >= 0.8 * m->cache_bandwidth.value) m->cache_bytes = sizes[i];
    return SMG_OK;
}

#define STREAM_BYTES (8 << 20) /* about a millisecond of a CPU's memory */

/* The cache's size is known; runs are short, because other programs use the same memory. */
static smg_status measure_cpu_memory(smg_vk_bench *bench, measurements *m) {
    int64_t bytes = 0;
    SMG_TRY(read_set(bench, bench->dev->target.cache_bytes / 8, &bytes, &m->cache_bandwidth));
    SMG_TRY(smg_vk_bench_stream(bench, STREAM_BYTES, &m->bandwidth.value));
    m->bandwidth.settled = bench->settled;
    return SMG_OK;
}

static int64_t cores_seen(const measurements *m) {
    double ratio = m->one_group_rate.value > 0 ? m->fma_rate.value / m->one_group_rate.value : 1;
    return ratio < 1 ? 1 : (int64_t)(ratio + 0.5);
}

static smg_status measure_fma(smg_vk_bench *bench, int64_t groups, measured *out_rate) {
    SMG_TRY(smg_vk_bench_fma(bench, groups, &out_rate->value));
    out_rate->settled = bench->settled;
    return SMG_OK;
}

/* One core of a CPU is nearly always free for a moment, all of them seldom are. */
static smg_status measure_cpu(smg_vk_bench *bench, measurements *m) {
    SMG_TRY(smg_vk_bench_warm(bench, 0.05));
    SMG_TRY(measure_fma(bench, 1, &m->one_group_rate));
    m->fma_rate = m->one_group_rate;
    m->fma_rate.value *= (double)bench->cores;
    return SMG_OK;
}

/* A table's row stands for one chip. */
static smg_status measure_gpu(smg_vk_bench *bench, measurements *m) {
    const smg_target *target = &bench->dev->target;
    SMG_TRY(smg_vk_bench_warm(bench, 0.7));
    SMG_TRY(measure_fma(bench, 4096, &m->fma_rate));
    if (target->cores_from == SMG_FACT_QUERIED || target->cores_from == SMG_FACT_TABLE) return SMG_OK;
    SMG_TRY(measure_fma(bench, 1, &m->one_group_rate));
    m->cores = bench->cores = cores_seen(m);
    return SMG_OK;
}

/* Of workgroups without shared memory to speak of, and of those with a half of it to an eighth, a core runs as many as
 * it holds: what the driver gives a compute shader may be a part of what the chip has. */
static smg_status measure_core(smg_vk_bench *bench, measurements *m) {
    const smg_target *target = &bench->dev->target;
    int64_t groups = 0, lanes = bench->read_size / 2;
    SMG_TRY(smg_vk_bench_resident(bench, bench->read_size, 0, &groups));
    m->core_lanes = groups / bench->cores * bench->read_size;
    for (int64_t share = 2; share <= 8; share++) {
        int64_t bytes = target->shared_bytes / share / 16 * 16;
        SMG_TRY(smg_vk_bench_resident(bench, lanes, bytes, &groups));
        int64_t held = groups / bench->cores * bytes;
        if (held > m->shared_core) m->shared_core = held;
    }
    if (m->shared_core < target->shared_bytes) m->shared_core = target->shared_bytes;
    smg_log(bench->dev->ctx, SMG_LOG_INFO, "calibrate: a core holds %lld lanes, %lld bytes of shared memory",
            (long long)m->core_lanes, (long long)m->shared_core);
    return SMG_OK;
}

#define REGISTERS_GROUP 64  /* lanes: a core's registers are dealt out in small parts */
#define REGISTERS_STEP 1024 /* what does not fill another workgroup is left */
#define REGISTERS_FEW 64    /* values of a lane that every GPU has registers for */
#define REGISTERS_MANY 320  /* that none has */

/* Lanes of the kernel that a core holds, and the registers that the driver says one has. A kernel that cannot be built
 * says nothing: 0. Out of memory and a loss are failures. */
static smg_status count_lanes(smg_vk_bench *bench, bool all, int64_t *out_lanes, int64_t *out_registers) {
    smg_context *ctx = bench->dev->ctx;
    bool had_failure = smg_context_status(ctx) != SMG_OK;
    int64_t lanes = bench->read_size < REGISTERS_GROUP ? bench->read_size : REGISTERS_GROUP, groups = 0;
    smg_status status = smg_vk_bench_registers(bench, all, lanes, &groups, out_registers);
    *out_lanes = groups / bench->cores * lanes;
    if (status == SMG_OK || status == SMG_MEMORY || status == SMG_DEVICE_MEMORY || smg_vk_is_lost(bench->dev))
        return status;
    if (!had_failure) smg_context_clear_error(ctx);
    *out_lanes = *out_registers = 0;
    return SMG_OK;
}

/* A lane has what the driver gives a kernel that wants more than there are, where it tells; a core as many as the lanes
 * that it holds of such a kernel, or of one with fewer. */
static smg_status measure_registers(smg_vk_bench *bench, measurements *m) {
    const smg_target *target = &bench->dev->target;
    if (target->registers_lane_from != SMG_FACT_ASSUMED) return SMG_OK;
    int64_t lanes = 0, registers = 0;
    SMG_TRY(count_lanes(bench, false, &lanes, &registers));
    int64_t held = lanes * REGISTERS_FEW;
    SMG_TRY(count_lanes(bench, true, &lanes, &registers));
    if (registers > target->registers_lane && registers < REGISTERS_MANY) {
        m->registers_lane = registers;
        if (lanes * registers > held) held = lanes * registers;
    }
    m->registers_core = (held + REGISTERS_STEP - 1) / REGISTERS_STEP * REGISTERS_STEP;
    smg_log(bench->dev->ctx, SMG_LOG_INFO, "calibrate: a lane has %lld registers, a core holds %lld",
            (long long)m->registers_lane, (long long)m->registers_core);
    return SMG_OK;
}

#define FAR_BYTES (INT64_C(64) << 20) /* at least: mostly not in a cache */

/* Where the table of the chip or its maker says nothing. */
static smg_status measure_loads(smg_vk_bench *bench, measurements *m) {
    const smg_target *target = &bench->dev->target;
    if (target->near_bytes_from == SMG_FACT_ASSUMED && m->fma_rate.value > 0) {
        SMG_TRY(smg_vk_bench_near(bench, &m->near_bytes.value));
        m->near_bytes.value /= m->fma_rate.value / 2;
        m->near_bytes.settled = bench->settled && m->fma_rate.settled;
    }
    if (target->load_latency_from != SMG_FACT_ASSUMED) return SMG_OK;
    int64_t cache = m->cache_bytes > 0 ? m->cache_bytes : target->cache_bytes;
    SMG_TRY(smg_vk_bench_latency(bench, 4 * cache < FAR_BYTES ? FAR_BYTES : 4 * cache, &m->load_latency.value));
    m->load_latency.settled = bench->settled;
    return SMG_OK;
}

static smg_status measure_all(smg_vk_bench *bench, measurements *m) {
    bool cpu = bench->dev->target.type == SMG_DEVICE_CPU;
    SMG_TRY(cpu ? measure_cpu(bench, m) : measure_gpu(bench, m));
    SMG_TRY(smg_vk_bench_fill(bench));
    if (cpu) return measure_cpu_memory(bench, m); /* the rest is waking threads up, which the table knows better */
    SMG_TRY(measure_core(bench, m));
    SMG_TRY(measure_registers(bench, m));
    SMG_TRY(seek_cache(bench, m));
    SMG_TRY(smg_vk_bench_dispatch(bench, &m->dispatch_cost.value));
    m->dispatch_cost.settled = bench->settled;
    SMG_TRY(smg_vk_bench_barrier(bench, &m->barrier_cost.value));
    m->barrier_cost.settled = bench->settled;
    return measure_loads(bench, m);
}

static smg_status measure(smg_vk_device *dev, measurements *m) {
    smg_vk_bench bench;
    SMG_TRY(smg_vk_bench_create(dev, &bench));
    smg_status status = measure_all(&bench, m);
    smg_vk_bench_destroy(&bench);
    return status;
}

/* ---- facts ------------------------------------------------------------------------------------- */

#define SET_FACT(target, field, number, origin)                                                                        \
    do {                                                                                                               \
        (target)->field = (number);                                                                                    \
        (target)->field##_from = (origin);                                                                             \
    } while (0)

/* Octaves of a CPU, whose rates vary with what else runs; quarters of one elsewhere. */
static double step_beside(const smg_target *target, double value, double known) {
    double steps = target->type == SMG_DEVICE_CPU ? 1 : 4;
    return known * pow(2.0, floor(steps * log2(value / known) + 0.5) / steps);
}

/* false: not settled, the known value stays. */
static bool take_rate(smg_vk_device *dev, const char *name, measured rate, double *io_value,
                      smg_fact_origin *out_origin) {
    if (rate.value <= 0) return true;
    if (!rate.settled) {
        smg_log(dev->ctx, SMG_LOG_INFO, "calibrate: the device is busy: %s stays %g (%g was the best seen)", name,
                *io_value, rate.value);
        return false;
    }
    *io_value = step_beside(&dev->target, rate.value, *io_value);
    *out_origin = SMG_FACT_MEASURED;
    return true;
}

/* The cores and the cache that a CPU's system tells; the table's rates, for as many cores. */
static void ask(smg_target *target) {
    if (target->type != SMG_DEVICE_CPU) return;
    double known = (double)target->cores;
    int64_t cache = smg_cpu_cache_bytes();
    SET_FACT(target, cores, smg_cpu_cores(), SMG_FACT_QUERIED);
    if (cache > 0) SET_FACT(target, cache_bytes, cache, SMG_FACT_QUERIED);
    target->fma_rate *= (double)target->cores / known;
    target->bandwidth *= (double)target->cores / known;
    target->cache_bandwidth *= (double)target->cores / known;
}

/* false: some rates are still the table's, because the device is busy. */
static bool apply(smg_vk_device *dev, const measurements *m) {
    smg_target *t = &dev->target;
    bool all = true;
    if (m->cores > 0) SET_FACT(t, cores, m->cores, SMG_FACT_MEASURED);
    if (m->cache_bytes > 0) SET_FACT(t, cache_bytes, m->cache_bytes, SMG_FACT_MEASURED);
    if (m->core_lanes > t->subgroup_max) SET_FACT(t, core_lanes, m->core_lanes, SMG_FACT_MEASURED);
    if (m->shared_core > 0) SET_FACT(t, shared_core, m->shared_core, SMG_FACT_MEASURED);
    if (m->registers_lane > 0) SET_FACT(t, registers_lane, m->registers_lane, SMG_FACT_MEASURED);
    if (m->registers_core > 0) SET_FACT(t, registers_core, m->registers_core, SMG_FACT_MEASURED);
    all = take_rate(dev, "fma_rate", m->fma_rate, &t->fma_rate, &t->fma_rate_from) && all;
    all = take_rate(dev, "bandwidth", m->bandwidth, &t->bandwidth, &t->bandwidth_from) && all;
    all = take_rate(dev, "cache_bandwidth", m->cache_bandwidth, &t->cache_bandwidth, &t->cache_bandwidth_from) && all;
    all = take_rate(dev, "dispatch_cost", m->dispatch_cost, &t->dispatch_cost, &t->dispatch_cost_from) && all;
    all = take_rate(dev, "barrier_cost", m->barrier_cost, &t->barrier_cost, &t->barrier_cost_from) && all;
    all = take_rate(dev, "near_bytes", m->near_bytes, &t->near_bytes, &t->near_bytes_from) && all;
    all = take_rate(dev, "load_latency", m->load_latency, &t->load_latency, &t->load_latency_from) && all;
    if (t->cache_bandwidth < t->bandwidth) t->cache_bandwidth = t->bandwidth;
    smg_target_settle(t);
    return all;
}

/* ---- cache file ------------------------------------------------------------------------------ */

static void take_measured(smg_target *target, const smg_target *from) {
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what)                                                            \
    if (from->field##_from == SMG_FACT_MEASURED) SET_FACT(target, field, from->field, SMG_FACT_MEASURED);
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
}

static bool read_cache(smg_vk_device *dev, const char *path) {
    smg_target cached;
    if (!smg_vk_kept_read(dev, &calibration, path, &cached, NULL)) return false;
    take_measured(&dev->target, &cached);
    smg_target_settle(&dev->target);
    return true;
}

static void write_cache(smg_vk_device *dev, const char *path) {
    smg_text body;
    smg_text_init(&body, dev->ctx);
    smg_target_print(&dev->target, &body);
    smg_vk_kept_write(dev, &calibration, path, &body);
    smg_text_free(&body);
}

smg_status smg_vk_calibrate(smg_vk_device *dev) {
    SMG_TRY(smg_vk_check_alive(dev));
    if (dev->calibrated) return SMG_OK;
    const char *path = NULL;
    SMG_TRY(smg_vk_kept_path(dev, &calibration, &path));
    ask(&dev->target);
    SMG_TRY(smg_vk_read_rates(dev));
    dev->calibrated = read_cache(dev, path);
    if (dev->calibrated) return SMG_OK;
    smg_progress(dev->ctx, "calibrate", 0, 1, "device");
    measurements m = {0};
    SMG_TRY(measure(dev, &m));
    bool settled = apply(dev, &m);
    SMG_TRY(smg_target_verify(dev->ctx, &dev->target));
    dev->calibrated = true;
    if (settled) write_cache(dev, path); /* else measured again next time */
    smg_progress(dev->ctx, "calibrate", 1, 1, "device");
    return SMG_OK;
}
