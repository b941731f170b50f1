/* Experiments on 16-bit floats and on subgroups: one workgroup writes words of which the host knows what they must
 * be. */
#include "vulkan/prove_small_spirv.h"
#include "vulkan/vulkan_prove.h"

#include <stdio.h>

/* ---- what all experiments share ---------------------------------------------------------------- */

smg_status smg_vk_proof_create(smg_vk_device *dev, smg_vk_proof *out_proof) {
    memset(out_proof, 0, sizeof *out_proof);
    out_proof->dev = dev;
    smg_target_init(&out_proof->found);
    out_proof->words = smg_alloc(dev->ctx, SMG_VK_PROOF_BYTES, 1);
    smg_status status = out_proof->words ? SMG_OK : SMG_MEMORY;
    for (size_t i = 0; i < SMG_COUNT_OF(out_proof->buffers) && status == SMG_OK; i++)
        status = smg_vk_buffer_create(dev, "proof", SMG_VK_PROOF_BYTES, SMG_VK_DEVICE, &out_proof->buffers[i]);
    if (status != SMG_OK) smg_vk_proof_destroy(out_proof);
    return status;
}

void smg_vk_proof_destroy(smg_vk_proof *proof) {
    for (size_t i = 0; i < SMG_COUNT_OF(proof->buffers); i++) smg_vk_buffer_destroy(proof->buffers[i]);
    smg_free(proof->dev->ctx, proof->words, SMG_VK_PROOF_BYTES);
    memset(proof, 0, sizeof *proof);
}

static smg_status run(smg_vk_proof *proof, const smg_vk_pipeline *pipeline, int binding_count) {
    smg_vk_recording *rec = NULL;
    smg_vk_binding bindings[SMG_COUNT_OF(proof->buffers)];
    for (int i = 0; i < binding_count; i++) bindings[i] = (smg_vk_binding){proof->buffers[i], 0, 0};
    SMG_TRY(smg_vk_recording_begin(proof->dev, 0, &rec));
    smg_vk_record_dispatch(rec, pipeline, bindings, binding_count, NULL, 0, 1, 1, 1);
    smg_status status = smg_vk_recording_end(rec);
    if (status == SMG_OK) status = smg_vk_run(rec);
    smg_vk_recording_destroy(rec);
    return status;
}

smg_status smg_vk_proof_run(smg_vk_proof *proof, const smg_vk_proof_kernel *kernel) {
    const smg_vk_pipeline_desc desc = {
        .name = kernel->name,
        .words = kernel->words,
        .word_count = kernel->bytes / sizeof *kernel->words,
        .local_size = {(int)kernel->constants[0], 1, 1},
        .binding_count = kernel->binding_count,
        .subgroup_size = kernel->subgroups ? (int)proof->dev->target.subgroup_size : 0,
        .full_subgroups = kernel->subgroups,
        .constants = kernel->constants,
        .constant_count = kernel->constant_count,
    };
    smg_vk_pipeline *pipeline = NULL;
    proof->why[0] = 0;
    SMG_TRY(smg_vk_pipeline_create(proof->dev, &desc, &pipeline));
    smg_status status = run(proof, pipeline, kernel->binding_count);
    smg_vk_pipeline_destroy(pipeline);
    return status;
}

/* ---- words of invocations ------------------------------------------------------------------------ */

typedef uint32_t (*expected_word)(const smg_target *target, uint32_t i);

static smg_status check_words(smg_vk_proof *proof, const smg_vk_proof_kernel *kernel, uint32_t count,
                              expected_word expected) {
    const smg_target *target = &proof->dev->target;
    SMG_TRY(smg_vk_fill(proof->buffers[0], 0, (int64_t)count * 4, UINT32_MAX));
    SMG_TRY(smg_vk_proof_run(proof, kernel));
    SMG_TRY(smg_vk_download(proof->buffers[0], 0, proof->words, (int64_t)count * 4));
    for (uint32_t i = 0; i < count; i++) {
        if (proof->words[i] == expected(target, i)) continue;
        snprintf(proof->why, sizeof proof->why, "word %u is %08x, must be %08x", (unsigned)i, (unsigned)proof->words[i],
                 (unsigned)expected(target, i));
        break;
    }
    return SMG_OK;
}

/* Numbers of prove_small_half.comp; all of them, and what they are made of, have few enough bits. */
static uint32_t half_word(const smg_target *target, uint32_t i) {
    (void)target;
    uint32_t lane = i / 2;
    double x = (double)lane + 1, y = 0.25 * x - 3.125;
    double low = i % 2 ? (x < y ? x : y) : x * y + x, high = i % 2 ? (x > y ? x : y) : y * x - x;
    return smg_half_of(low) | (uint32_t)smg_half_of(high) << 16;
}

smg_status smg_vk_prove_fp16(smg_vk_proof *proof) {
    enum { LANES = 32 };
    const smg_vk_proof_kernel kernel = {
        "proof of fp16", smg_prove_small_half, sizeof smg_prove_small_half, false, {LANES}, 1, 1,
    };
    return check_words(proof, &kernel, 2 * LANES, half_word);
}

/* ---- subgroups: prove_small_subgroup.comp ---------------------------------------------------------------- */

static uint32_t value(uint32_t i) {
    return (i * i * 7u + i) % 61u;
}

/* The sum and the largest of the values in the group of `size` that i is in. */
static uint32_t sum_and_most(uint32_t i, uint32_t size) {
    uint32_t sum = 0, most = 0, first = i / size * size;
    for (uint32_t k = first; k < first + size; k++) {
        sum += value(k);
        if (value(k) > most) most = value(k);
    }
    return sum | most << 16;
}

static uint32_t size_word(const smg_target *target, uint32_t i) {
    uint32_t size = (uint32_t)target->subgroup_size;
    return size | (i % size) << 8 | (i / size) << 16;
}

static uint32_t arithmetic_word(const smg_target *target, uint32_t i) {
    return sum_and_most(i, (uint32_t)target->subgroup_size);
}

static uint32_t clustered_word(const smg_target *target, uint32_t i) {
    (void)target;
    return sum_and_most(i, 4);
}

static uint32_t shuffle_word(const smg_target *target, uint32_t i) {
    uint32_t size = (uint32_t)target->subgroup_size;
    return value(i ^ 1) | value(i / size * size + size - 1 - i % size) << 16;
}

static smg_status check_subgroups(smg_vk_proof *proof, const char *name, const uint32_t *words, size_t bytes,
                                  expected_word expected) {
    const smg_target *target = &proof->dev->target;
    int64_t count = 4 * target->subgroup_size; /* so that subgroups have numbers, too */
    if (count > target->max_invocations || count > target->max_size_x) count = target->subgroup_size;
    const smg_vk_proof_kernel kernel = {name, words, bytes, true, {(uint32_t)count}, 1, 1};
    return check_words(proof, &kernel, (uint32_t)count, expected);
}

smg_status smg_vk_prove_subgroup_size(smg_vk_proof *proof) {
    return check_subgroups(proof, "proof of subgroup_size", smg_prove_small_subgroup_size,
                           sizeof smg_prove_small_subgroup_size, size_word);
}

smg_status smg_vk_prove_subgroup_arithmetic(smg_vk_proof *proof) {
    return check_subgroups(proof, "proof of subgroup_arithmetic", smg_prove_small_subgroup_arithmetic,
                           sizeof smg_prove_small_subgroup_arithmetic, arithmetic_word);
}

smg_status smg_vk_prove_subgroup_clustered(smg_vk_proof *proof) {
    return check_subgroups(proof, "proof of subgroup_clustered", smg_prove_small_subgroup_clustered,
                           sizeof smg_prove_small_subgroup_clustered, clustered_word);
}

smg_status smg_vk_prove_subgroup_shuffle(smg_vk_proof *proof) {
    return check_subgroups(proof, "proof of subgroup_shuffle", smg_prove_small_subgroup_shuffle,
                           sizeof smg_prove_small_subgroup_shuffle, shuffle_word);
}
