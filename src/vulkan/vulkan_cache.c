/* The driver's pipeline cache on disk: one file a device and driver, with our own header in front
 * (magic, size, hash) because drivers have crashed on damaged data. Whatever does not fit is ignored
 * with a log line and written anew when the device closes. Never a failure: a cache is optional. */
#include "vulkan/vulkan_private.h"

typedef struct cache_header {
    char magic[8];
    uint64_t size;
    uint64_t hash;
} cache_header;

static const char cache_magic[8] = {'S', 'M', 'G', 'P', 'I', 'P', 'E', '1'};

static char *cache_path(smg_vk_device *dev) {
    const char *folder = smg_context_cache_dir(dev->ctx);
    if (!folder[0] || (dev->flags & SMG_VK_NO_PIPELINE_CACHE)) return NULL;
    uint64_t key = smg_hash_bytes(SMG_HASH_SEED, dev->properties.pipelineCacheUUID, VK_UUID_SIZE);
    key = smg_hash_u64(key, (uint64_t)dev->properties.vendorID << 32 | dev->properties.deviceID);
    key = smg_hash_u64(key, dev->properties.driverVersion);
    return smg_arena_format(dev->arena, "%s/pipelines/%016llx.bin", folder, (unsigned long long)key);
}

/* The header that Vulkan defines for the data: size 32, version 1, vendor, device, UUID. */
static bool made_by_device(const smg_vk_device *dev, const char *data, uint64_t size) {
    uint32_t words[4];
    if (size < sizeof words + VK_UUID_SIZE) return false;
    memcpy(words, data, sizeof words);
    return words[0] >= 32 && words[1] == 1 && words[2] == dev->properties.vendorID &&
           words[3] == dev->properties.deviceID &&
           memcmp(data + sizeof words, dev->properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

static bool read_valid(smg_vk_device *dev, const char *path, smg_mapped_file *out_file, const char **out_data,
                       uint64_t *out_size) {
    if (!smg_file_exists(path)) return false;
    if (smg_file_map(dev->ctx, path, out_file) != SMG_OK) return false;
    cache_header header;
    bool good = out_file->size > sizeof header;
    if (good) {
        memcpy(&header, out_file->data, sizeof header);
        *out_data = (const char *)out_file->data + sizeof header;
        *out_size = out_file->size - sizeof header;
        good = memcmp(header.magic, cache_magic, sizeof cache_magic) == 0 && header.size == *out_size &&
               header.hash == smg_hash_bytes(SMG_HASH_SEED, *out_data, (size_t)*out_size) &&
               made_by_device(dev, *out_data, *out_size);
    }
    if (good) return true;
    smg_log(dev->ctx, SMG_LOG_WARNING, "pipeline cache %s is damaged or foreign: ignored", path);
    smg_file_unmap(out_file);
    return false;
}

void smg_vk_cache_load(smg_vk_device *dev) {
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    smg_mapped_file file = {0};
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    const char *path = cache_path(dev), *data = NULL;
    uint64_t size = 0;
    if (path && read_valid(dev, path, &file, &data, &size)) {
        info.initialDataSize = (size_t)size;
        info.pInitialData = data;
        dev->cache_hash = smg_hash_bytes(SMG_HASH_SEED, data, (size_t)size);
    }
    if (dev->fn.CreatePipelineCache(dev->handle, &info, NULL, &dev->cache) != VK_SUCCESS) dev->cache = VK_NULL_HANDLE;
    smg_file_unmap(&file);
    if (!had_failure) smg_context_clear_error(dev->ctx);
}

static smg_status write_file(smg_vk_device *dev, const char *path, char *bytes, size_t size) {
    cache_header header = {.size = size};
    memcpy(header.magic, cache_magic, sizeof cache_magic);
    header.hash = smg_hash_bytes(SMG_HASH_SEED, bytes + sizeof header, size);
    if (header.hash == dev->cache_hash) return SMG_OK;
    memcpy(bytes, &header, sizeof header);
    const char *folder = smg_path_join(dev->arena, smg_context_cache_dir(dev->ctx), "pipelines");
    if (!folder) return SMG_MEMORY;
    SMG_TRY(smg_path_make_dirs(dev->ctx, folder));
    return smg_file_write_atomic(dev->ctx, path, bytes, size + sizeof header);
}

static smg_status store(smg_vk_device *dev) {
    const char *path = cache_path(dev);
    size_t size = 0;
    if (!path || dev->fn.GetPipelineCacheData(dev->handle, dev->cache, &size, NULL) != VK_SUCCESS || size == 0)
        return smg_context_status(dev->ctx);
    size_t room = size + sizeof(cache_header);
    char *bytes = smg_alloc(dev->ctx, room, 1);
    if (!bytes) return SMG_MEMORY;
    smg_status status = SMG_OK;
    if (dev->fn.GetPipelineCacheData(dev->handle, dev->cache, &size, bytes + sizeof(cache_header)) == VK_SUCCESS)
        status = write_file(dev, path, bytes, size);
    smg_free(dev->ctx, bytes, room);
    return status;
}

void smg_vk_cache_store(smg_vk_device *dev) {
    if (!dev->cache || !dev->common->cache_used || smg_vk_is_lost(dev)) return;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    if (store(dev) == SMG_OK || had_failure) return;
    smg_log(dev->ctx, SMG_LOG_WARNING, "the pipeline cache could not be written: %s", smg_context_error(dev->ctx));
    smg_context_clear_error(dev->ctx);
}
