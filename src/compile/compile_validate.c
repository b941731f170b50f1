/* compile_validate.c: kernels of a bundle that somebody else may have made, as SPIRV-Tools sees them. A class's hashes
 * tell damage; words that were written so go to a driver, and not every compiler of a driver takes what is wrong. */
#include "compile/compile.h"

/* SPIR-V's version, as smg_spirv_options has it: it stands behind the magic number as 0, major, minor, 0. */
static int version_of(const smg_bmodule *m) {
    uint32_t word = m->word_count > 1 ? m->words[1] : 0;
    return (int)(word >> 16 & 0xff) * 10 + (int)(word >> 8 & 0xff);
}

/* Has each step what its kernel binds? */
static smg_status check_bindings(smg_context *ctx, const smg_bundle *bundle, const smg_bstep *steps, int count) {
    enum { SPIRV_HEADER = 5, OP_DECORATE = 71, BINDING = 33, DESCRIPTOR_SET = 34 };
    for (int i = 0; i < count; i++) {
        const smg_bmodule *m = &bundle->modules.items[steps[i].module];
        uint32_t bound = (uint32_t)steps[i].binding_count + (steps[i].diagnostics ? 1 : 0);
        for (size_t at = SPIRV_HEADER; at < m->word_count; at += m->words[at] >> 16) {
            const uint32_t *word = &m->words[at];
            if ((word[0] & 0xffff) != OP_DECORATE || word[0] >> 16 != 4) continue;
            if ((word[2] == BINDING && word[3] >= bound) || (word[2] == DESCRIPTOR_SET && word[3] != 0))
                return smg_fail(ctx, SMG_FORMAT, "kernel '%s' has %s %u, step '%s' has %u bindings in set 0", m->name,
                                word[2] == BINDING ? "binding" : "set", (unsigned)word[3], steps[i].name,
                                (unsigned)bound);
        }
    }
    return SMG_OK;
}

static smg_status validate_all(smg_context *ctx, const smg_bundle *bundle) {
    smg_spirv_compiler *compiler = NULL;
    SMG_TRY(smg_spirv_compiler_create(ctx, &compiler));
    smg_status status = SMG_OK;
    for (int i = 0; i < bundle->modules.count && status == SMG_OK; i++) {
        const smg_bmodule *m = &bundle->modules.items[i];
        status = smg_spirv_validate(compiler, m->name, m->words, m->word_count, version_of(m));
    }
    smg_spirv_compiler_destroy(compiler);
    if (status == SMG_OK) status = check_bindings(ctx, bundle, bundle->prepare.items, bundle->prepare.count);
    for (int i = 0; i < bundle->variants.count && status == SMG_OK; i++) {
        const smg_bvariant *v = &bundle->variants.items[i];
        status = check_bindings(ctx, bundle, v->run.items, v->run.count);
    }
    return status;
}

static smg_status check(const smg_bfile *file, int index, const smg_bundle *bundle) {
    smg_context *ctx = smg_arena_context(file->arena);
    smg_status status = validate_all(ctx, bundle);
    if (status == SMG_OK) return SMG_OK;
    return smg_fail_within(ctx, status == SMG_MEMORY ? SMG_MEMORY : SMG_FORMAT, "'%s': class '%s'", file->label,
                           file->classes[index].name);
}

smg_status smg_bundle_file_validate(smg_bundle_file *file) {
    if (file == NULL) return SMG_INVALID;
    smg_context_clear_error(smg_bundle_file_watch(file, check));
    return SMG_OK;
}
