/* Facts of a device that took time to find out, kept in <cache>/<kind>: a target text behind a line with its hash.
 * A file's name depends on the device, its driver and the kind of facts, so that an older program's file is left alone
 * and a changed driver is looked at again. Never a failure: what cannot be read is found out again. */
#include "vulkan/vulkan_private.h"

#include <stdlib.h>

smg_status smg_vk_kept_path(smg_vk_device *dev, const smg_vk_kept *kind, const char **out_path) {
    *out_path = NULL;
    const char *folder = smg_context_cache_dir(dev->ctx);
    if (!folder[0]) return SMG_OK;
    uint64_t key = smg_hash_bytes(SMG_HASH_SEED, dev->target.uuid, sizeof dev->target.uuid);
    key = smg_hash_text(key, kind->word);
    key = smg_hash_text(key, dev->target.name);
    key = smg_hash_text(key, dev->target.driver);
    key = smg_hash_u64(key, dev->flags & SMG_VK_NO_OPTIONAL);
    *out_path = smg_arena_format(dev->arena, "%s/%s/%016llx.target", folder, kind->folder, (unsigned long long)key);
    return *out_path ? SMG_OK : SMG_MEMORY;
}

/* "WORD", 16 digits, a new line, and what the digits are the hash of. */
static bool text_valid(const char *text, const char *word, const char **out_body) {
    size_t length = strlen(word);
    if (strncmp(text, word, length) != 0) return false;
    char *end = NULL;
    uint64_t hash = (uint64_t)strtoull(text + length, &end, 16);
    if (end != text + length + 16 || *end != '\n') return false;
    *out_body = end + 1;
    return smg_hash_text(SMG_HASH_SEED, *out_body) == hash;
}

/* As it comes back from a line of text: without blanks around it, and without a comment. */
static bool same_line(const char *kept, const char *own) {
    own += strspn(own, " \t");
    size_t length = strlen(kept);
    if (strncmp(own, kept, length) != 0) return false;
    own += length + strspn(own + length, " \t");
    return *own == 0 || *own == '#';
}

/* A file that was brought from elsewhere under this device's name says nothing about it. */
static bool of_device(const smg_vk_device *dev, const smg_target *kept) {
    return same_line(kept->name, dev->target.name) && same_line(kept->driver, dev->target.driver) &&
           memcmp(kept->uuid, dev->target.uuid, sizeof kept->uuid) == 0;
}

bool smg_vk_kept_read(smg_vk_device *dev, const smg_vk_kept *kind, const char *path, smg_target *out_kept,
                      const char **out_body) {
    if (!path || !smg_file_exists(path)) return false;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    char *text = NULL;
    const char *body = NULL;
    size_t size = 0;
    bool good = smg_file_read(dev->ctx, path, &text, &size) == SMG_OK && strlen(text) == size &&
                text_valid(text, kind->word, &body) && smg_target_parse(dev->ctx, body, path, out_kept) == SMG_OK &&
                of_device(dev, out_kept);
    if (good && out_body) {
        *out_body = smg_arena_string(dev->arena, body);
        good = *out_body != NULL;
    }
    if (text) smg_free(dev->ctx, text, size + 1);
    if (good) return true;
    if (!had_failure) smg_context_clear_error(dev->ctx);
    smg_log(dev->ctx, SMG_LOG_WARNING, "%s is damaged, or of another device or driver: found out again", path);
    return false;
}

static smg_status write_text(smg_vk_device *dev, const smg_vk_kept *kind, const char *path, const smg_text *body) {
    SMG_TRY(smg_text_status(body));
    const char *folder = smg_path_join(dev->arena, smg_context_cache_dir(dev->ctx), kind->folder);
    if (!folder) return SMG_MEMORY;
    SMG_TRY(smg_path_make_dirs(dev->ctx, folder));
    smg_text whole;
    smg_text_init(&whole, dev->ctx);
    smg_text_addf(&whole, "%s%016llx\n", kind->word,
                  (unsigned long long)smg_hash_text(SMG_HASH_SEED, smg_text_cstr(body)));
    smg_text_add(&whole, smg_text_cstr(body));
    smg_status status = smg_text_status(&whole);
    if (status == SMG_OK) status = smg_file_write_atomic(dev->ctx, path, whole.data, whole.length);
    smg_text_free(&whole);
    return status;
}

void smg_vk_kept_write(smg_vk_device *dev, const smg_vk_kept *kind, const char *path, const smg_text *body) {
    if (!path) return;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    if (write_text(dev, kind, path, body) == SMG_OK) return;
    smg_log(dev->ctx, SMG_LOG_WARNING, "%s could not be written: %s", path, smg_context_error(dev->ctx));
    if (!had_failure) smg_context_clear_error(dev->ctx);
}
