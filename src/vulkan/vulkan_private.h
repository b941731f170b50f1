/* Shared by the sources of vulkan/: what the opaque types of vulkan.h are. Function pointers live in
 * the objects they belong to (one table an instance, one a device), never in volk's globals, so that
 * two contexts share nothing and an adopted device uses its owner's loader. */
#ifndef SMG_VULKAN_PRIVATE_H
#define SMG_VULKAN_PRIVATE_H

/* <vulkan/vulkan.h> would find this folder's own front header. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define VOLK_VULKAN_H_PATH <vulkan/vulkan_core.h>
#include <volk.h>

#include "vulkan/vulkan.h"

#include <stdatomic.h>

/* clang-format off */
#define SMG_VK_INSTANCE_FUNCTIONS(X)                                                               \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties)                  \
    X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2)                                  \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceMemoryProperties2)                     \
    X(GetPhysicalDeviceQueueFamilyProperties) X(EnumerateDeviceExtensionProperties)                \
    X(GetPhysicalDeviceExternalBufferProperties)                                                   \
    X(CreateDevice) X(GetDeviceProcAddr)

#define SMG_VK_INSTANCE_OPTIONAL(X)                                                                \
    X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)                               \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define SMG_VK_DEVICE_FUNCTIONS(X)                                                                 \
    X(DestroyDevice) X(GetDeviceQueue) X(QueueWaitIdle)                                            \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)            \
    X(AllocateMemory) X(FreeMemory) X(MapMemory)                                                   \
    X(CreateShaderModule) X(DestroyShaderModule)                                                   \
    X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)                                     \
    X(CreatePipelineLayout) X(DestroyPipelineLayout)                                               \
    X(CreateComputePipelines) X(DestroyPipeline)                                                   \
    X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData)                         \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets)                     \
    X(UpdateDescriptorSets)                                                                        \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers)     \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(ResetCommandBuffer)                                \
    X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch)                 \
    X(CmdDispatchIndirect) X(CmdDispatchBase)                                                      \
    X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer)                                        \
    X(CmdResetQueryPool) X(CmdWriteTimestamp)                                                      \
    X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults)                                  \
    X(CreateFence) X(DestroyFence) X(ResetFences) X(WaitForFences) X(GetFenceStatus)               \
    X(QueueSubmit)

#define SMG_VK_DEVICE_OPTIONAL(X)                                                                  \
    X(GetPipelineExecutablePropertiesKHR) X(GetPipelineExecutableStatisticsKHR)                    \
    X(GetBufferDeviceAddress) X(GetMemoryFdPropertiesKHR)
/* clang-format on */

#define SMG_VK_MEMBER(name) PFN_vk##name name;
typedef struct smg_vk_instance_table {
    SMG_VK_INSTANCE_FUNCTIONS(SMG_VK_MEMBER)
    SMG_VK_INSTANCE_OPTIONAL(SMG_VK_MEMBER)
} smg_vk_instance_table;
typedef struct smg_vk_device_table {
    SMG_VK_DEVICE_FUNCTIONS(SMG_VK_MEMBER)
    SMG_VK_DEVICE_OPTIONAL(SMG_VK_MEMBER)
} smg_vk_device_table;
#undef SMG_VK_MEMBER

/* ---- instance ------------------------------------------------------------------------------ */

typedef struct smg_vk_instance {
    smg_context *ctx;
    VkInstance handle;
    bool owned;                         /* false: the application's */
    PFN_vkGetInstanceProcAddr get_proc; /* the loader's, or the application's */
    smg_vk_instance_table fn;
    uint32_t api_version; /* what was asked for */
    VkDebugUtilsMessengerEXT messenger;
    bool validation;
    atomic_int validation_messages;
    atomic_int silent;          /* how many reasons there are not to log: other threads may be at work */
    char validation_first[400]; /* the first of them, cut */
} smg_vk_instance;

smg_status smg_vk_instance_create(smg_context *ctx, smg_vk_instance **out_instance);
smg_status smg_vk_instance_wrap(smg_context *ctx, VkInstance handle, PFN_vkGetInstanceProcAddr get_proc,
                                uint32_t api_version, smg_vk_instance **out_instance);
void smg_vk_instance_destroy(smg_vk_instance *instance); /* NULL is fine */

/* Physical devices of Vulkan 1.1 or later with a compute queue, in the arena. */
smg_status smg_vk_list_physical(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice **out_list,
                                int *out_count);
/* The family to use: compute without graphics is not preferred, because graphics queues are the
 * ones every driver tests; the first family with compute. false: none. */
bool smg_vk_compute_family(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice physical, uint32_t *out_family,
                           uint32_t *out_timestamp_bits);
void smg_vk_describe(smg_vk_instance *instance, VkPhysicalDevice physical, int index, smg_vk_device_info *out_info);
/* The extensions of a device. */
typedef struct smg_vk_extensions {
    VkExtensionProperties *items;
    uint32_t count;
} smg_vk_extensions;
smg_status smg_vk_list_extensions(smg_vk_instance *instance, smg_arena *arena, VkPhysicalDevice physical,
                                  smg_vk_extensions *out_extensions);
bool smg_vk_has_extension(const smg_vk_extensions *extensions, const char *name);

/* ---- features ------------------------------------------------------------------------------ */

/* VK_KHR_shader_bfloat16, for headers older than it. */
#ifndef VK_KHR_shader_bfloat16
#define SMG_VK_OLD_HEADERS
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR 1000141000
#define VK_COMPONENT_TYPE_BFLOAT16_KHR 1000141000
typedef struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderBFloat16Type;
    VkBool32 shaderBFloat16DotProduct;
    VkBool32 shaderBFloat16CooperativeMatrix;
} VkPhysicalDeviceShaderBfloat16FeaturesKHR;
#endif

/* X(field, structure, structure type, extension, version that has it without the extension) */
#define SMG_VK_FEATURE_STRUCTS(X)                                                                                      \
    X(storage16, VkPhysicalDevice16BitStorageFeatures, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,       \
      "VK_KHR_16bit_storage", VK_API_VERSION_1_1)                                                                      \
    X(storage8, VkPhysicalDevice8BitStorageFeatures, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,          \
      "VK_KHR_8bit_storage", VK_API_VERSION_1_2)                                                                       \
    X(float16_int8, VkPhysicalDeviceShaderFloat16Int8Features,                                                         \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, "VK_KHR_shader_float16_int8",                    \
      VK_API_VERSION_1_2)                                                                                              \
    X(subgroup_types, VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures,                                             \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,                                       \
      "VK_KHR_shader_subgroup_extended_types", VK_API_VERSION_1_2)                                                     \
    X(memory_model, VkPhysicalDeviceVulkanMemoryModelFeatures,                                                         \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, "VK_KHR_vulkan_memory_model",                    \
      VK_API_VERSION_1_2)                                                                                              \
    X(subgroup_size, VkPhysicalDeviceSubgroupSizeControlFeatures,                                                      \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, "VK_EXT_subgroup_size_control",                \
      VK_API_VERSION_1_3)                                                                                              \
    X(maintenance4, VkPhysicalDeviceMaintenance4Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,    \
      "VK_KHR_maintenance4", VK_API_VERSION_1_3)                                                                       \
    X(dot_product, VkPhysicalDeviceShaderIntegerDotProductFeatures,                                                    \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, "VK_KHR_shader_integer_dot_product",      \
      VK_API_VERSION_1_3)                                                                                              \
    X(addresses, VkPhysicalDeviceBufferDeviceAddressFeatures,                                                          \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, "VK_KHR_buffer_device_address",                \
      VK_API_VERSION_1_2)                                                                                              \
    X(statistics, VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR,                                             \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,                                   \
      "VK_KHR_pipeline_executable_properties", UINT32_MAX)                                                             \
    X(matrix, VkPhysicalDeviceCooperativeMatrixFeaturesKHR,                                                            \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, "VK_KHR_cooperative_matrix", UINT32_MAX)      \
    X(bf16, VkPhysicalDeviceShaderBfloat16FeaturesKHR, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR, \
      "VK_KHR_shader_bfloat16", UINT32_MAX)                                                                            \
    X(matrix2, VkPhysicalDeviceCooperativeMatrix2FeaturesNV,                                                           \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV, "VK_NV_cooperative_matrix2", UINT32_MAX)

/* X(field, member): what is enabled where offered; core features first. */
#define SMG_VK_WANTED_CORE(X) X(shaderInt16) X(shaderInt64) X(shaderFloat64)
#define SMG_VK_WANTED(X)                                                                                               \
    X(storage16, storageBuffer16BitAccess)                                                                             \
    X(storage8, storageBuffer8BitAccess)                                                                               \
    X(float16_int8, shaderFloat16)                                                                                     \
    X(float16_int8, shaderInt8)                                                                                        \
    X(subgroup_types, shaderSubgroupExtendedTypes)                                                                     \
    X(memory_model, vulkanMemoryModel)                                                                                 \
    X(memory_model, vulkanMemoryModelDeviceScope)                                                                      \
    X(subgroup_size, subgroupSizeControl)                                                                              \
    X(subgroup_size, computeFullSubgroups)                                                                             \
    X(maintenance4, maintenance4)                                                                                      \
    X(dot_product, shaderIntegerDotProduct)                                                                            \
    X(addresses, bufferDeviceAddress)                                                                                  \
    X(statistics, pipelineExecutableInfo)                                                                              \
    X(matrix, cooperativeMatrix)                                                                                       \
    X(bf16, shaderBFloat16Type)                                                                                        \
    X(bf16, shaderBFloat16CooperativeMatrix)                                                                           \
    X(matrix2, cooperativeMatrixWorkgroupScope)                                                                        \
    X(matrix2, cooperativeMatrixFlexibleDimensions)                                                                    \
    X(matrix2, cooperativeMatrixReductions)                                                                            \
    X(matrix2, cooperativeMatrixConversions)                                                                           \
    X(matrix2, cooperativeMatrixPerElementOperations)                                                                  \
    X(matrix2, cooperativeMatrixTensorAddressing)                                                                      \
    X(matrix2, cooperativeMatrixBlockLoads)

/* Devices offer a million bindings; kernels use a handful, and arrays of this size sit on the stack. */
enum { SMG_VK_MAX_BINDINGS = 64, SMG_VK_MAX_EXTENSIONS = 24 };

typedef struct smg_vk_features {
    VkPhysicalDeviceFeatures2 core; /* head of the chain */
#define SMG_VK_MEMBER(field, type, stype, extension, version) type field;
    SMG_VK_FEATURE_STRUCTS(SMG_VK_MEMBER)
#undef SMG_VK_MEMBER
    const char *extensions[SMG_VK_MAX_EXTENSIONS]; /* to enable */
    uint32_t extension_count;
} smg_vk_features;

/* False: there is no room for one more. */
bool smg_vk_features_add(smg_vk_features *features, const char *extension);
/* What the device offers of the wanted features, ready to be passed to vkCreateDevice. */
void smg_vk_features_choose(smg_vk_instance *instance, VkPhysicalDevice physical, uint32_t api_version,
                            const smg_vk_extensions *extensions, unsigned flags, smg_vk_features *out_features);
/* What an application's create chain enabled. */
void smg_vk_features_from_chain(const void *chain, const char *const *extensions, uint32_t count,
                                smg_vk_features *out_features);

/* The wanted features as a chain for vkCreateDevice in front of an application's, whose structures are told theirs. */
const void *smg_vk_features_join(smg_vk_features *features, void *chain);

/* ---- device -------------------------------------------------------------------------------- */

typedef struct smg_vk_transfer {
    VkCommandBuffer commands;
    VkFence fence;
    bool in_flight;
} smg_vk_transfer;

typedef struct smg_vk_module_fact {
    uint64_t key;
    smg_vk_built built;
} smg_vk_module_fact;

/* What all devices of one VkDevice have together, whatever thread they are used on. */
typedef struct smg_vk_common {
    smg_lock *queue_lock;
    atomic_bool lost;
    atomic_bool cache_used; /* a pipeline was made since it was read */
    atomic_ullong buffers_made;
} smg_vk_common;

struct smg_vk_device {
    smg_context *ctx;
    smg_vk_common own;     /* of the first of them */
    smg_vk_common *common; /* `own`, or that of the device that it was shared from */
    smg_vk_device *from;   /* that, kept, where it is of the same context; NULL: none */
    smg_arena *arena;
    smg_vk_instance *instance;
    VkPhysicalDevice physical;
    VkDevice handle;
    bool owned;
    bool closed; /* it goes with the last user */
    int users;
    bool keep_stats;
    unsigned flags;
    VkQueue queue;
    void (*lock_queue)(void *user); /* an application's, around each use of the queue; NULL: none */
    void (*unlock_queue)(void *user);
    void *lock_user;
    uint32_t family;
    uint32_t timestamp_bits;
    uint32_t api_version; /* lower of the instance's and the device's */
    smg_vk_device_table fn;
    smg_vk_features features;
    bool has_budget;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkCommandPool pool;
    VkPipelineCache cache;
    uint64_t cache_hash; /* of the data that was read from disk */
    bool calibrated, proved, proved_matrices;
    SMG_ARRAY(smg_vk_verdict) verdicts;
    SMG_ARRAY(smg_vk_module_fact) modules;
    bool modules_read, modules_new;
    smg_target offered; /* once proved: the target before anything was taken off */
    smg_vk_buffer *staging;
    smg_vk_transfer transfer[2];
    smg_target target;
    smg_target fitted; /* once calibrated: its revision and fitted rates count; revision 0: there are none */
};

/* In the order in which a device is made: one without a VkDevice (takes over the instance, also on failure), its
 * physical device, the functions of its VkDevice, and what is made on that, wherever it came from. */
smg_status smg_vk_device_new(smg_context *ctx, smg_vk_instance *instance, unsigned flags, smg_vk_device **out_dev);
smg_status smg_vk_device_describe(smg_vk_device *dev, smg_vk_extensions *extensions);
smg_status smg_vk_device_load(smg_vk_device *dev);
smg_status smg_vk_device_finish(smg_vk_device *dev, const smg_vk_extensions *extensions);
/* The two uses of the queue. */
VkResult smg_vk_queue_submit(smg_vk_device *dev, const VkSubmitInfo *info, VkFence fence);
void smg_vk_queue_wait_idle(smg_vk_device *dev);

/* Turns a VkResult into a status whose sentence names the call and its subject; remembers a loss. */
smg_status smg_vk_result(smg_vk_device *dev, VkResult result, const char *call, const char *subject);
const char *smg_vk_result_word(VkResult result);
smg_status smg_vk_check_alive(smg_vk_device *dev);
bool smg_vk_is_lost(const smg_vk_device *dev);
bool smg_vk_host_is_device(const smg_vk_device *dev); /* memory is shared: cpu, integrated */
bool smg_vk_has_addresses(const smg_vk_device *dev);  /* buffers have 64-bit addresses, and shaders 64-bit integers */

/* Queried facts into dev->target. */
smg_status smg_vk_query_target(smg_vk_device *dev, const smg_vk_extensions *extensions);

VkBufferUsageFlags smg_vk_buffer_usage(const smg_vk_device *dev, smg_vk_buffer_kind kind);
/* The best of the allowed types for it; false: none suits. */
bool smg_vk_memory_type(const smg_vk_device *dev, uint32_t allowed, smg_vk_buffer_kind kind, uint32_t *out_type);
/* Without a handle and memory. */
smg_status smg_vk_buffer_new(smg_vk_device *dev, const char *label, int64_t bytes, smg_vk_buffer_kind kind,
                             smg_vk_buffer **out_buffer);
struct smg_vk_buffer {
    smg_vk_device *dev;
    VkBuffer handle;
    VkDeviceMemory memory;
    void *mapped;
    bool borrowed;
    uint64_t id;
    int64_t bytes;
    smg_vk_buffer_kind kind;
    char label[48];
};

/* What a module declares. */
typedef struct smg_vk_asked {
    int64_t shared_bytes, lanes; /* of a workgroup */
} smg_vk_asked;

struct smg_vk_pipeline {
    smg_vk_device *dev;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
    VkShaderModule module; /* until it is built */
    VkResult built;
    int binding_count;
    int push_bytes;
    bool sliced;
    bool from_memory; /* they come from a uniform buffer, which is the binding behind the others */
    bool has_stats;
    bool unknown; /* what is built is to be found out */
    smg_vk_built built_as;
    uint64_t key; /* of the module, as it is built here */
    smg_vk_asked asked;
    char name[96];
};

/* vulkan_words.c: the module with its push constants in a uniform buffer at this binding of set 0. The caller frees
 * *out_words, of word_count + SMG_VK_BLOCK_WORDS. INVALID: it has no push constants, or is damaged. */
enum { SMG_VK_BLOCK_WORDS = 8 };
smg_status smg_vk_words_from_memory(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, uint32_t **out_words);
/* The module with literals where it reads its last `literal_count` push constants, each an int of its own behind
 * addresses of 8 bytes; reads of another form stay. The caller frees word_count + SMG_VK_LITERAL_WORDS(desc). INVALID:
 * it has no push constants, or is damaged. */
#define SMG_VK_LITERAL_WORDS(desc) (4u * (size_t)(desc)->literal_count)
smg_status smg_vk_words_with_literals(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, uint32_t **out_words,
                                      size_t *out_count);
/* The module's words with bfloat16 in the place of f16: one of our own, with no arithmetic of f16. There are at most so
 * many more; the caller frees count + SMG_VK_BF16_WORDS. */
enum { SMG_VK_BF16_WORDS = 9 };
smg_status smg_vk_words_of_bf16(smg_context *ctx, const uint32_t *words, size_t count, uint32_t **out_words,
                                size_t *out_count);

/* In three steps, of which only the second takes time and may run on any thread: it touches neither context nor
 * device. A pipeline that began is destroyed like any other. */
smg_status smg_vk_pipeline_begin(smg_vk_device *dev, const smg_vk_pipeline_desc *desc, smg_vk_pipeline **out_pipeline);
void smg_vk_pipeline_build(smg_vk_pipeline *pipeline, const smg_vk_pipeline_desc *desc);
smg_status smg_vk_pipeline_end(smg_vk_pipeline *pipeline);
/* A dispatch of no workgroups: the driver finishes the pipeline, and nothing runs. Every binding is `nothing`. */
void smg_vk_record_first_use(smg_vk_recording *rec, const smg_vk_pipeline *pipeline, smg_vk_buffer *nothing);

/* vulkan_kept.c: facts of the device in the cache folder. */
typedef struct smg_vk_kept {
    const char *folder;
    const char *word; /* begins each file; has a version */
} smg_vk_kept;
/* The file of this device and driver; NULL without a cache. */
smg_status smg_vk_kept_path(smg_vk_device *dev, const smg_vk_kept *kind, const char **out_path);
/* Reads it as a target, which is of this device and driver; its text, comments too, in the device's arena (out_body may
 * be NULL). false, with a log line where there is a file: it says nothing. */
bool smg_vk_kept_read(smg_vk_device *dev, const smg_vk_kept *kind, const char *path, smg_target *out_kept,
                      const char **out_body);
void smg_vk_kept_write(smg_vk_device *dev, const smg_vk_kept *kind, const char *path, const smg_text *body);
/* vulkan_rates.c: those that were kept, if there are any. */
smg_status smg_vk_read_rates(smg_vk_device *dev);

/* vulkan_modules.c: what is known of modules on this driver. */
uint64_t smg_vk_module_key(const smg_vk_pipeline_desc *desc);
const smg_vk_module_fact *smg_vk_module_find(const smg_vk_device *dev, uint64_t key); /* NULL: nothing */
smg_status smg_vk_module_add(smg_vk_device *dev, uint64_t key, smg_vk_built built);
smg_status smg_vk_modules_load(smg_vk_device *dev); /* once */
void smg_vk_modules_store(smg_vk_device *dev);
/* What statistics say of a kernel that was asked for so. */
smg_vk_built smg_vk_built_of(const smg_target *target, const smg_vk_asked *asked, const smg_vk_stat *stats, int count);

void smg_vk_cache_load(smg_vk_device *dev);
void smg_vk_cache_store(smg_vk_device *dev);

smg_status smg_vk_transfer_create(smg_vk_device *dev);
void smg_vk_transfer_destroy(smg_vk_device *dev);
/* What a command does, as a set. */
enum { SMG_VK_COMPUTE = 1, SMG_VK_COPY = 2, SMG_VK_ANYTHING = 3 };
/* One global memory barrier between commands of the kinds `before` and `after`. Drivers flush and
 * wait for less when fewer kinds are named. */
void smg_vk_barrier(const smg_vk_device *dev, VkCommandBuffer commands, int before, int after);
/* Between everything before and everything after. */
void smg_vk_full_barrier(const smg_vk_device *dev, VkCommandBuffer commands);
void smg_vk_host_barrier(const smg_vk_device *dev, VkCommandBuffer commands);

#endif
