/* spirv: GLSL text to SPIR-V words.
 *
 * Takes:    the whole text of one compute shader (nothing is included from files).
 * Gives:    words that SPIRV-Tools' validator accepts, from shaderc or from the disk cache. Not optimised: every
 *           driver does that itself, and needs seconds for what an optimiser has written out.
 * Promises: the same text, options and compiler give the same words; a damaged cache entry is
 *           ignored and replaced; two processes may use one cache folder.
 * Does not: know kernels, or call Vulkan.
 */
#ifndef SMG_SPIRV_H
#define SMG_SPIRV_H

#include "base/base.h"

typedef struct smg_spirv_compiler smg_spirv_compiler;

/* All fields may be zero. */
typedef struct smg_spirv_options {
    /* Major * 10 + minor: 13, 14, 15 or 16. 0: 13, which every Vulkan 1.1 device takes. Cooperative
     * matrices need 16 (Vulkan 1.3). */
    int version;
    bool keep; /* names, for reading the words */
} smg_spirv_options;

typedef struct smg_spirv_module {
    const uint32_t *words; /* in the arena */
    size_t word_count;
    bool from_cache;
} smg_spirv_module;

smg_status smg_spirv_compiler_create(smg_context *ctx, smg_spirv_compiler **out_compiler);
void smg_spirv_compiler_destroy(smg_spirv_compiler *compiler); /* NULL is fine */

/* `options` may be NULL. FORMAT: the text has an error (the first lines of the compiler's message,
 * with `name`); INTERNAL: the compiler's words were refused by the validator. */
smg_status smg_spirv_compile(smg_spirv_compiler *compiler, smg_arena *arena, const char *name, const char *text,
                             const smg_spirv_options *options, smg_spirv_module *out_module);
/* One text of many. */
typedef struct smg_spirv_job {
    const char *name, *text;
    smg_spirv_module module; /* given back */
} smg_spirv_job;
/* The same for many texts: those that the cache does not have are compiled on all cores. The first failure
 * in the order of the jobs is told. */
smg_status smg_spirv_compile_all(smg_spirv_compiler *compiler, smg_arena *arena, smg_spirv_job *jobs, int count,
                                 const smg_spirv_options *options);
/* Validates words from elsewhere (a bundle) for the environment of `version`. */
smg_status smg_spirv_validate(smg_spirv_compiler *compiler, const char *name, const uint32_t *words, size_t word_count,
                              int version);
/* The compiler and what it links: words made by another one may differ. */
uint64_t smg_spirv_revision(uint64_t seed);
/* A listing for people; bfloat16 is shown as a signed integer where SPIRV-Tools does not know it. */
smg_status smg_spirv_disassemble(smg_spirv_compiler *compiler, const uint32_t *words, size_t word_count,
                                 smg_text *text);

#endif
