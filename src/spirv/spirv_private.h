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
/* false: no usable entry. */
bool smg_spirv_cache_read(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const char *name,
                          smg_spirv_module *out_module);
/* Never a failure: the cache is optional. */
void smg_spirv_cache_write(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const smg_spirv_module *module);

#endif
