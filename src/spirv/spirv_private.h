/* Shared by the sources of spirv/. */
#ifndef SMG_SPIRV_PRIVATE_H
#define SMG_SPIRV_PRIVATE_H

#include "spirv/spirv.h"

/* What a cache entry answers for. `key` names the file, `check` is a second hash of the same text. */
typedef struct smg_spirv_key {
    uint64_t key;
    uint64_t check;
} smg_spirv_key;

/* SPIRV-Tools' header defines a variable, so that only spirv.c includes it. */
const char *smg_spirv_tools_version(void);
smg_spirv_key smg_spirv_key_of(const char *text, int version, const smg_spirv_options *options);
/* *out_found false: no usable entry; a file that cannot be read is none. Only MEMORY is a failure. */
smg_status smg_spirv_cache_read(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const char *name,
                                smg_spirv_module *out_module, bool *out_found);
/* Never a failure: the cache is optional. */
void smg_spirv_cache_write(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const smg_spirv_module *module);

/* spirv_bf16.c: does the module have bfloat16? The same words without it, for tools that do not know it: at most as
 * many. Returns how many. */
bool smg_spirv_has_bf16(const uint32_t *words, size_t count);
size_t smg_spirv_without_bf16(const uint32_t *words, size_t count, uint32_t *out_words);

#endif
