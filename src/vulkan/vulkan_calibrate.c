/* Measured facts: multiply-add rate, bandwidth against the working set (which shows the last-level
 * cache), cost of a dispatch and of a workgroup barrier, and the number of cores where nobody tells it
 * (how many times faster the whole device is than one workgroup). The result is kept in
 * <cache>/calibration as a target text behind a line with its hash, so that a second run reads it. */
#include "vulkan/vulkan_measure.h"

#include <math.h>
#include <stdlib.h>

enum { SET_COUNT = 15 }; /* 4 MiB .. 512 MiB in half octaves */

static const char calibration_word[] = "# smg calibration 1 ";

typedef struct measurements {
    double fma_rate, one_group_rate, bandwidth, cache_bandwidth, dispatch_cost, barrier_cost;
    int64_t cache_bytes; /* 0: no cache seen */
} measurements;

/* ---- measuring ------------------------------------------------------------------------------- */

static smg_status measure_memory(smg_vk_bench *bench, measurements *m) {
    double rates[SET_COUNT];
    int64_t sizes[SET_COUNT];
    int count = 0;
    for (int i = 0; i < SET_COUNT; i++) {
        double bytes = 4194304.0 * pow(2.0, i / 2.0);
        if (bytes > (double)bench->data_bytes) break;
        SMG_TRY(smg_vk_bench_read(bench, (int64_t)bytes, &sizes[count], &rates[count]));
        smg_log(bench->dev->ctx, SMG_LOG_INFO, "calibrate: %lld bytes at %.4g B/s", (long long)sizes[count],
                rates[count]);
        count++;
    }
    if (count == 0) return smg_vk_bench_read(bench, bench->data_bytes, &sizes[0], &m->bandwidth);
    m->bandwidth = rates[count - 1];
    m->cache_bandwidth = m->bandwidth;
    for (int i = 0; i < count; i++)
        if (rates[i] > m->cache_bandwidth) m->cache_bandwidth = rates[i];
    if (m->cache_bandwidth < 1.25 * m->bandwidth) return SMG_OK;
    /* Past the cache's size the rate falls slowly, because a part of the set still hits. */
    for (int i = 0; i < count; i++)
        if (rates[i] >= 0.8 * m->cache_bandwidth) m->cache_bytes = sizes[i];
    return SMG_OK;
}

/* A table's row stands for one chip, but every machine's processor differs. */
static bool cores_told(const smg_target *target) {
    return target->cores_from == SMG_FACT_QUERIED ||
           (target->cores_from == SMG_FACT_TABLE && target->type != SMG_DEVICE_CPU);
}

static int64_t cores_seen(const measurements *m) {
    double ratio = m->one_group_rate > 0 ? m->fma_rate / m->one_group_rate : 1;
    return ratio < 1 ? 1 : (int64_t)(ratio + 0.5);
}

static smg_status measure(smg_vk_device *dev, measurements *m) {
    smg_vk_bench bench;
    SMG_TRY(smg_vk_bench_create(dev, &bench));
    bool cpu = dev->target.type == SMG_DEVICE_CPU;
    smg_status status = smg_vk_bench_warm(&bench, cpu ? 0.05 : 0.7);
    if (status == SMG_OK) status = smg_vk_bench_fma(&bench, cpu ? 256 : 4096, &m->fma_rate);
    if (status == SMG_OK) status = smg_vk_bench_fma(&bench, 1, &m->one_group_rate);
    if (status == SMG_OK && !cores_told(&dev->target)) bench.cores = cores_seen(m);
    if (status == SMG_OK) status = smg_vk_bench_fill(&bench);
    if (status == SMG_OK) status = measure_memory(&bench, m);
    if (status == SMG_OK) status = smg_vk_bench_dispatch(&bench, &m->dispatch_cost);
    if (status == SMG_OK) status = smg_vk_bench_barrier(&bench, &m->barrier_cost);
    smg_vk_bench_destroy(&bench);
    return status;
}

#define SET_MEASURED(target, field, value)                                                                             \
    do {                                                                                                               \
        (target)->field = (value);                                                                                     \
        (target)->field##_from = SMG_FACT_MEASURED;                                                                    \
    } while (0)

static void apply(smg_target *target, const measurements *m) {
    SET_MEASURED(target, fma_rate, m->fma_rate);
    SET_MEASURED(target, bandwidth, m->bandwidth);
    SET_MEASURED(target, cache_bandwidth, m->cache_bandwidth > m->bandwidth ? m->cache_bandwidth : m->bandwidth);
    SET_MEASURED(target, dispatch_cost, m->dispatch_cost);
    SET_MEASURED(target, barrier_cost, m->barrier_cost);
    if (m->cache_bytes > 0) SET_MEASURED(target, cache_bytes, m->cache_bytes);
    if (!cores_told(target)) SET_MEASURED(target, cores, cores_seen(m));
}

/* ---- cache file ------------------------------------------------------------------------------ */

static char *cache_path(smg_vk_device *dev) {
    const char *folder = smg_context_cache_dir(dev->ctx);
    if (!folder[0]) return NULL;
    uint64_t key = smg_hash_bytes(SMG_HASH_SEED, dev->target.uuid, sizeof dev->target.uuid);
    key = smg_hash_text(key, dev->target.name);
    key = smg_hash_text(key, dev->target.driver);
    key = smg_hash_u64(key, dev->flags & SMG_VK_NO_OPTIONAL);
    return smg_arena_format(dev->arena, "%s/calibration/%016llx.target", folder, (unsigned long long)key);
}

static void take_measured(smg_target *target, const smg_target *from) {
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what)                                                            \
    if (from->field##_from == SMG_FACT_MEASURED) SET_MEASURED(target, field, from->field);
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
}

/* `text` is "# smg calibration 1 <16 digits>\n" and what the digits are the hash of. */
static bool text_valid(const char *text, const char **out_body) {
    size_t length = sizeof calibration_word - 1;
    if (strncmp(text, calibration_word, length) != 0) return false;
    char *end = NULL;
    uint64_t hash = (uint64_t)strtoull(text + length, &end, 16);
    if (end != text + length + 16 || *end != '\n') return false;
    *out_body = end + 1;
    return smg_hash_text(SMG_HASH_SEED, *out_body) == hash;
}

static bool read_cache(smg_vk_device *dev, const char *path) {
    if (!path || !smg_file_exists(path)) return false;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    char *text = NULL;
    const char *body = NULL;
    size_t size = 0;
    smg_target cached;
    smg_target_init(&cached);
    bool good = smg_file_read(dev->ctx, path, &text, &size) == SMG_OK && text_valid(text, &body) &&
                smg_target_parse(dev->ctx, body, path, &cached) == SMG_OK;
    if (text) smg_free(dev->ctx, text, size + 1);
    if (good) {
        take_measured(&dev->target, &cached);
        return true;
    }
    if (!had_failure) smg_context_clear_error(dev->ctx);
    smg_log(dev->ctx, SMG_LOG_WARNING, "calibration %s is damaged: measured again", path);
    return false;
}

static smg_status write_text(smg_vk_device *dev, const char *path, const smg_text *body) {
    SMG_TRY(smg_text_status(body));
    const char *folder = smg_path_join(dev->arena, smg_context_cache_dir(dev->ctx), "calibration");
    if (!folder) return SMG_MEMORY;
    SMG_TRY(smg_path_make_dirs(dev->ctx, folder));
    smg_text whole;
    smg_text_init(&whole, dev->ctx);
    smg_text_addf(&whole, "%s%016llx\n", calibration_word,
                  (unsigned long long)smg_hash_text(SMG_HASH_SEED, smg_text_cstr(body)));
    smg_text_add(&whole, smg_text_cstr(body));
    smg_status status = smg_text_status(&whole);
    if (status == SMG_OK) status = smg_file_write_atomic(dev->ctx, path, whole.data, whole.length);
    smg_text_free(&whole);
    return status;
}

static void write_cache(smg_vk_device *dev, const char *path) {
    if (!path) return;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    smg_text body;
    smg_text_init(&body, dev->ctx);
    smg_target_print(&dev->target, &body);
    smg_status status = write_text(dev, path, &body);
    smg_text_free(&body);
    if (status == SMG_OK) return;
    smg_log(dev->ctx, SMG_LOG_WARNING, "calibration %s could not be written: %s", path, smg_context_error(dev->ctx));
    if (!had_failure) smg_context_clear_error(dev->ctx);
}

smg_status smg_vk_calibrate(smg_vk_device *dev) {
    SMG_TRY(smg_vk_check_alive(dev));
    if (dev->target.bandwidth_from == SMG_FACT_MEASURED) return SMG_OK;
    const char *path = cache_path(dev);
    if (!path && smg_context_cache_dir(dev->ctx)[0]) return SMG_MEMORY;
    if (read_cache(dev, path)) return SMG_OK;
    smg_progress(dev->ctx, "calibrate", 0, 1, "device");
    measurements m = {0};
    SMG_TRY(measure(dev, &m));
    apply(&dev->target, &m);
    SMG_TRY(smg_target_verify(dev->ctx, &dev->target));
    write_cache(dev, path);
    smg_progress(dev->ctx, "calibrate", 1, 1, "device");
    return SMG_OK;
}
