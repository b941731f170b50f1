/* The disk cache: one small file a module, <cache>/spirv/<key>.spv, with a header that is checked
 * before use. The key covers the text, the options and the versions of the compiler and of this
 * format; a second hash in the header makes a collision of the first harmless. */
#include "spirv/spirv_private.h"

#ifndef SMG_SHADERC_VERSION
#define SMG_SHADERC_VERSION "unknown"
#endif

enum { FORMAT_VERSION = 2 };

typedef struct cache_header {
    char magic[8];
    uint32_t version;
    uint32_t word_count;
    uint64_t key;
    uint64_t check;
    uint64_t hash; /* of the words */
} cache_header;

static const char cache_magic[8] = {'S', 'M', 'G', 'S', 'P', 'I', 'R', 'V'};
static const uint32_t spirv_magic = 0x07230203u;

uint64_t smg_spirv_revision(uint64_t seed) {
    uint64_t hash = smg_hash_u64(seed, FORMAT_VERSION);
    hash = smg_hash_text(hash, "shaderc " SMG_SHADERC_VERSION);
    return smg_hash_text(hash, smg_spirv_tools_version());
}

smg_spirv_key smg_spirv_key_of(const char *text, int version, const smg_spirv_options *options) {
    uint64_t hash = smg_spirv_revision(SMG_HASH_SEED);
    hash = smg_hash_u64(hash, (uint64_t)version);
    hash = smg_hash_u64(hash, options->keep ? 1 : 0);
    hash = smg_hash_u64(hash, strlen(text));
    smg_spirv_key key;
    key.key = smg_hash_text(hash, text);
    key.check = smg_hash_text(smg_hash_u64(hash, UINT64_C(0x736d67)), text);
    return key;
}

static char *entry_path(smg_context *ctx, smg_arena *arena, smg_spirv_key key) {
    const char *folder = smg_context_cache_dir(ctx);
    if (!folder[0]) return NULL;
    return smg_arena_format(arena, "%s/spirv/%016llx.spv", folder, (unsigned long long)key.key);
}

static bool entry_valid(const smg_mapped_file *file, smg_spirv_key key) {
    cache_header header;
    if (file->size < sizeof header + 5 * sizeof(uint32_t)) return false;
    memcpy(&header, file->data, sizeof header);
    size_t bytes = file->size - sizeof header;
    uint32_t first = 0;
    memcpy(&first, file->data + sizeof header, sizeof first);
    return memcmp(header.magic, cache_magic, sizeof cache_magic) == 0 && header.version == FORMAT_VERSION &&
           header.key == key.key && header.check == key.check &&
           bytes == (size_t)header.word_count * sizeof(uint32_t) && first == spirv_magic &&
           header.hash == smg_hash_bytes(SMG_HASH_SEED, file->data + sizeof header, bytes);
}

static bool read_entry(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const char *name,
                       smg_spirv_module *out_module) {
    const char *path = entry_path(ctx, arena, key);
    if (!path || !smg_file_exists(path)) return false;
    smg_mapped_file file = {0};
    if (smg_file_map(ctx, path, &file) != SMG_OK) return false;
    uint32_t *words = NULL;
    if (entry_valid(&file, key)) {
        size_t bytes = file.size - sizeof(cache_header);
        words = SMG_ARENA_ARRAY(arena, uint32_t, bytes / 4);
        if (words) memcpy(words, file.data + sizeof(cache_header), bytes);
        if (words) *out_module = (smg_spirv_module){words, bytes / 4, true};
    } else {
        smg_log(ctx, SMG_LOG_WARNING, "SPIR-V cache entry %s of kernel '%s' is damaged: ignored", path, name);
    }
    smg_file_unmap(&file);
    return words != NULL;
}

smg_status smg_spirv_cache_read(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const char *name,
                                smg_spirv_module *out_module, bool *out_found) {
    bool had_failure = smg_context_status(ctx) != SMG_OK;
    *out_found = read_entry(ctx, arena, key, name, out_module);
    if (*out_found || had_failure) return SMG_OK;
    if (smg_context_status(ctx) == SMG_MEMORY) return SMG_MEMORY;
    smg_context_clear_error(ctx);
    return SMG_OK;
}

static smg_status write_entry(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const smg_spirv_module *module) {
    const char *path = entry_path(ctx, arena, key);
    if (!path) return smg_context_status(ctx);
    const char *folder = smg_path_join(arena, smg_context_cache_dir(ctx), "spirv");
    if (!folder) return SMG_MEMORY;
    SMG_TRY(smg_path_make_dirs(ctx, folder));
    size_t bytes = module->word_count * sizeof(uint32_t);
    cache_header header = {.version = FORMAT_VERSION,
                           .word_count = (uint32_t)module->word_count,
                           .key = key.key,
                           .check = key.check,
                           .hash = smg_hash_bytes(SMG_HASH_SEED, module->words, bytes)};
    memcpy(header.magic, cache_magic, sizeof cache_magic);
    char *data = smg_alloc(ctx, sizeof header + bytes, 1);
    if (!data) return SMG_MEMORY;
    memcpy(data, &header, sizeof header);
    memcpy(data + sizeof header, module->words, bytes);
    smg_status status = smg_file_write_atomic(ctx, path, data, sizeof header + bytes);
    smg_free(ctx, data, sizeof header + bytes);
    return status;
}

void smg_spirv_cache_write(smg_context *ctx, smg_arena *arena, smg_spirv_key key, const smg_spirv_module *module) {
    bool had_failure = smg_context_status(ctx) != SMG_OK;
    if (write_entry(ctx, arena, key, module) == SMG_OK || had_failure) return;
    smg_log(ctx, SMG_LOG_WARNING, "a SPIR-V cache entry could not be written: %s", smg_context_error(ctx));
    smg_context_clear_error(ctx);
}
