/* What a target is: its facts as a table of offsets, their careful values, the checks that refuse
 * impossible limits, and the hash that names a plan's device. The text form is in target_text.c,
 * the built-in devices are in target_table.c. */
#include "target/target_private.h"

#include <math.h>
#include <stddef.h>

/* Tells the two field types of SMG_TARGET_FACTS apart without naming a variable. */
#define FIELD_IS_REAL(ctype) (_Generic((ctype)0, double: true, default: false))

const smg_fact_row smg_fact_rows[SMG_TARGET_FACT_COUNT] = {
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what)                                                            \
    {#field,                                                                                                           \
     FIELD_IS_REAL(ctype),                                                                                             \
     offsetof(smg_target, field),                                                                                      \
     offsetof(smg_target, field##_from),                                                                               \
     false,                                                                                                            \
     (double)(careful),                                                                                                \
     0,                                                                                                                \
     0},
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
#define SMG_COST_ROW(field, switching, spreading, least, what)                                                         \
    {"cost." #field, true, offsetof(smg_target, costs.field), offsetof(smg_target, costs_from.field), true, switching, \
     spreading,      least},
#include "target/costs.def"
#undef SMG_COST_ROW
};

int64_t smg_fact_int(const smg_target *target, const smg_fact_row *row) {
    int64_t value = 0;
    memcpy(&value, (const char *)target + row->value_offset, sizeof value);
    return value;
}

double smg_fact_real(const smg_target *target, const smg_fact_row *row) {
    double value = 0;
    memcpy(&value, (const char *)target + row->value_offset, sizeof value);
    return value;
}

smg_fact_origin smg_fact_from(const smg_target *target, const smg_fact_row *row) {
    smg_fact_origin origin = SMG_FACT_ASSUMED;
    memcpy(&origin, (const char *)target + row->origin_offset, sizeof origin);
    return origin;
}

void smg_fact_set(smg_target *target, const smg_fact_row *row, int64_t integer, double real, smg_fact_origin origin) {
    char *value = (char *)target + row->value_offset;
    if (row->is_real)
        memcpy(value, &real, sizeof real);
    else
        memcpy(value, &integer, sizeof integer);
    memcpy((char *)target + row->origin_offset, &origin, sizeof origin);
}

const smg_fact_row *smg_fact_find(const char *key, size_t length) {
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const char *name = smg_fact_rows[i].key;
        if (strlen(name) == length && memcmp(name, key, length) == 0) return &smg_fact_rows[i];
    }
    return NULL;
}

void smg_target_init(smg_target *target) {
    memset(target, 0, sizeof *target);
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        smg_fact_set(target, row, (int64_t)row->careful, row->careful, SMG_FACT_ASSUMED);
    }
}

/* ---- verify -------------------------------------------------------------------------------- */

static bool is_flag(const char *key) {
    static const char *const flags[] = {"subgroup_selectable",
                                        "subgroup_arithmetic",
                                        "subgroup_clustered",
                                        "subgroup_shuffle",
                                        "fp16",
                                        "storage16",
                                        "storage8",
                                        "int8",
                                        "buffer_addresses",
                                        "nan_preserve"};
    for (size_t i = 0; i < SMG_COUNT_OF(flags); i++)
        if (strcmp(flags[i], key) == 0) return true;
    return false;
}

static smg_status verify_row(smg_context *ctx, const smg_target *target, const smg_fact_row *row) {
    if (row->is_real) {
        double value = smg_fact_real(target, row);
        if (isfinite(value) && (row->is_cost ? value >= row->least : value > 0)) return SMG_OK;
        if (!row->is_cost)
            return smg_fail(ctx, SMG_FORMAT, "target '%s': %s is %g, must be positive and finite", target->name,
                            row->key, value);
        return smg_fail(ctx, SMG_FORMAT, "target '%s': %s is %g, must be finite and at least %g", target->name,
                        row->key, value, row->least);
    }
    int64_t value = smg_fact_int(target, row);
    if (is_flag(row->key)) {
        if (value == 0 || value == 1) return SMG_OK;
        return smg_fail(ctx, SMG_FORMAT, "target '%s': %s is %lld, must be 0 or 1", target->name, row->key,
                        (long long)value);
    }
    if (value > 0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "target '%s': %s is %lld, must be positive", target->name, row->key,
                    (long long)value);
}

static smg_status verify_powers(smg_context *ctx, const smg_target *target) {
    static const char *const powers[] = {"subgroup_min", "subgroup_max", "subgroup_size", "buffer_alignment"};
    for (size_t i = 0; i < SMG_COUNT_OF(powers); i++) {
        const smg_fact_row *row = smg_fact_find(powers[i], strlen(powers[i]));
        int64_t value = smg_fact_int(target, row);
        if (!smg_is_power_of_two(value))
            return smg_fail(ctx, SMG_FORMAT, "target '%s': %s is %lld, must be a power of two", target->name, row->key,
                            (long long)value);
    }
    return SMG_OK;
}

#define MOST_SLOTS 8 /* of a tile (kernel/kernel.h) */

static smg_status verify_relations(smg_context *ctx, const smg_target *target) {
    long long low = (long long)target->subgroup_min, high = (long long)target->subgroup_max;
    long long size = (long long)target->subgroup_size;
    if (target->slots > MOST_SLOTS)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': slots is %lld, at most %d", target->name,
                        (long long)target->slots, MOST_SLOTS);
    if (low > high)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': subgroup_min %lld is above subgroup_max %lld", target->name, low,
                        high);
    if (size > high || (size != 1 && size < low))
        return smg_fail(ctx, SMG_FORMAT,
                        "target '%s': subgroup_size %lld is outside subgroup_min %lld .. subgroup_max %lld",
                        target->name, size, low, high);
    if (size > target->max_invocations)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': subgroup_size %lld is above max_invocations %lld", target->name,
                        size, (long long)target->max_invocations);
    if (target->shared_core < target->shared_bytes)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': shared_core %lld is below shared_bytes %lld", target->name,
                        (long long)target->shared_core, (long long)target->shared_bytes);
    if (target->buffer_alignment > target->max_buffer_range)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': buffer_alignment %lld is above max_buffer_range %lld",
                        target->name, (long long)target->buffer_alignment, (long long)target->max_buffer_range);
    return SMG_OK;
}

smg_status smg_target_verify(smg_context *ctx, const smg_target *target) {
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) SMG_TRY(verify_row(ctx, target, &smg_fact_rows[i]));
    SMG_TRY(verify_powers(ctx, target));
    SMG_TRY(verify_relations(ctx, target));
    return smg_matrices_verify(ctx, target);
}

/* ---- hash ---------------------------------------------------------------------------------- */

uint64_t smg_target_hash(const smg_target *target) {
    uint64_t hash = smg_hash_text(SMG_HASH_SEED, "smg target 2");
    hash = smg_hash_u64(hash, (uint64_t)target->type);
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        uint64_t bits = 0;
        memcpy(&bits, (const char *)target + row->value_offset, sizeof bits);
        hash = smg_hash_u64(hash, bits);
    }
    if (target->revision > 0) hash = smg_hash_u64(hash, (uint64_t)target->revision);
    return smg_matrices_hash(target, hash);
}

int64_t smg_target_largest_buffer(const smg_target *target) {
    int64_t limit = target->max_buffer_range;
    if (target->max_allocation < limit) limit = target->max_allocation;
    return limit / 16 * 16;
}

#define SHORT_LOAD 1e-7 /* seconds */

bool smg_target_hides_loads(const smg_target *target) {
    return target->load_latency > SHORT_LOAD;
}

bool smg_target_pairs(const smg_target *target) {
    return target->fp16 && target->storage16 && target->pair_rate > 1;
}

/* An odd one is taken by something else. */
static int64_t even_registers(const smg_target *target) {
    return (target->registers_lane + 1) / 2 * 2;
}

bool smg_target_many_sums(const smg_target *target, int64_t sums) {
    return 4 * sums >= even_registers(target);
}

int64_t smg_target_most_written(const smg_target *target, int64_t sums) {
    return (smg_target_many_sums(target, sums) ? 4 : 2) * even_registers(target);
}

bool smg_target_switches_lanes(const smg_target *target) {
    return target->core_lanes > target->subgroup_max;
}

bool smg_target_moves_halves(const smg_target *target) {
    return target->storage16 && smg_target_switches_lanes(target);
}

#define LARGEST_LANES 256  /* that a core can give all registers of a lane */
#define FULL_REGISTERS 32  /* that each has where a GPU's core holds all the lanes it can */
#define NEAR_BARRIER 0.125 /* of a workgroup's barrier: one subgroup waits for nothing but its own stores */
#define CPU_LOAD 1e-8      /* seconds: its caches and its own reading ahead answer most loads */

static void assume_costs(smg_target *target) {
    bool switches = smg_target_switches_lanes(target);
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        if (row->is_cost && smg_fact_from(target, row) == SMG_FACT_ASSUMED)
            smg_fact_set(target, row, 0, switches ? row->careful : row->spreading, SMG_FACT_ASSUMED);
    }
}

static void settle_cpu(smg_target *target) {
    if (target->core_lanes_from == SMG_FACT_ASSUMED) target->core_lanes = target->subgroup_max;
    if (target->load_latency_from == SMG_FACT_ASSUMED) target->load_latency = CPU_LOAD;
}

void smg_target_settle(smg_target *target) {
    /* Cores of GPUs hold at least two workgroups of the largest size that one may have. */
    bool gpu = target->type == SMG_DEVICE_DISCRETE || target->type == SMG_DEVICE_INTEGRATED;
    int64_t shared = gpu ? 2 * target->shared_bytes : target->shared_bytes;
    if (target->shared_core_from == SMG_FACT_ASSUMED && target->shared_core < shared) target->shared_core = shared;
    if (target->registers_core_from == SMG_FACT_ASSUMED) {
        target->registers_core = LARGEST_LANES * target->registers_lane;
        if (gpu && target->registers_core < FULL_REGISTERS * target->core_lanes)
            target->registers_core = FULL_REGISTERS * target->core_lanes;
    }
    if (target->spills_lane_from == SMG_FACT_ASSUMED) target->spills_lane = (target->registers_lane + 2) / 2;
    if (target->subgroup_max_from == SMG_FACT_ASSUMED && target->subgroup_max < target->subgroup_size)
        target->subgroup_max = target->subgroup_size;
    if (target->subgroup_barrier_cost_from == SMG_FACT_ASSUMED)
        target->subgroup_barrier_cost = NEAR_BARRIER * target->barrier_cost;
    if (target->type == SMG_DEVICE_CPU) settle_cpu(target);
    assume_costs(target);
}
