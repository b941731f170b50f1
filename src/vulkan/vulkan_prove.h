/* Small experiments that show whether an optional feature does what it says, for vulkan_prove.c. */
#ifndef SMG_VULKAN_PROVE_H
#define SMG_VULKAN_PROVE_H

#include "vulkan/vulkan_private.h"

typedef struct smg_vk_proof {
    smg_vk_device *dev;
    smg_vk_buffer *buffers[4];
    uint32_t *words;               /* what a kernel told, PROOF_WORDS */
    smg_target found;              /* its fragments: layouts that were seen */
    char why[SMG_VK_VERDICT_TEXT]; /* of the last experiment; empty: it was right */
} smg_vk_proof;

smg_status smg_vk_proof_create(smg_vk_device *dev, smg_vk_proof *out_proof);
void smg_vk_proof_destroy(smg_vk_proof *proof);

/* Every buffer and `words` have room for so many bytes. */
enum { SMG_VK_PROOF_BYTES = 1 << 18 };
typedef struct smg_vk_proof_kernel {
    const char *name;
    const uint32_t *words;
    size_t bytes;
    bool subgroups;        /* full ones, of the size that kernels are built for */
    uint32_t constants[5]; /* the first one is the workgroup's size */
    int constant_count, binding_count;
} smg_vk_proof_kernel;
/* Builds the kernel, runs one workgroup on the first buffers, destroys it. */
smg_status smg_vk_proof_run(smg_vk_proof *proof, const smg_vk_proof_kernel *kernel);

/* An error: it could not be built or run. Else proof->why tells what was wrong, or nothing. */
smg_status smg_vk_prove_fp16(smg_vk_proof *proof);
smg_status smg_vk_prove_subgroup_size(smg_vk_proof *proof);
smg_status smg_vk_prove_subgroup_arithmetic(smg_vk_proof *proof);
smg_status smg_vk_prove_subgroup_clustered(smg_vk_proof *proof);
smg_status smg_vk_prove_subgroup_shuffle(smg_vk_proof *proof);
/* Why no experiment can be made on the shape, or NULL. */
const char *smg_vk_matrix_untried(const smg_target *target, const smg_matrix_shape *shape);
/* Row + 65536 * column by element and lane. */
enum { SMG_VK_MOST_ELEMENTS = 128 };
typedef struct smg_vk_places {
    const uint32_t *words;
    uint32_t elements, lanes; /* of a lane; of the subgroup */
} smg_vk_places;
/* The layout of rows x columns that is like this; false: there is none. */
bool smg_vk_find_layout(const smg_vk_places *places, smg_fragment *fragment);
/* The product; layouts that were seen on the way go to proof->found where they are layouts. */
smg_status smg_vk_prove_matrix(smg_vk_proof *proof, const smg_matrix_shape *shape);
/* After a proof of the shape: flop/s of products alone. */
smg_status smg_vk_matrix_rate(smg_vk_proof *proof, const smg_matrix_shape *shape, double *out_rate);

#endif
