/* The loader and one instance of it. volk finds the loader at run time (nothing of Vulkan is linked)
 * and gives vkGetInstanceProcAddr, in one thread at a time because it keeps that in a global; the instance holds a
 * copy, and every other function pointer. With SMG_VALIDATION=1 the instance has the validation layer with
 * synchronization validation, and its messages are counted and handed to the context's log; a run after one fails
 * (vulkan_submit.c). */
#include "vulkan/vulkan_private.h"

#include <stdio.h>
#include <stdlib.h>

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity;
    smg_vk_instance *instance = user;
    if (!(types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)) return VK_FALSE;
    const char *text = data && data->pMessage ? data->pMessage : "(no text)";
    if (atomic_fetch_add(&instance->validation_messages, 1) == 0)
        snprintf(instance->validation_first, sizeof instance->validation_first, "%s", text);
    if (instance->silent == 0) smg_log(instance->ctx, SMG_LOG_WARNING, "validation: %s", text);
    return VK_FALSE;
}

static bool validation_wanted(void) {
    const char *value = getenv("SMG_VALIDATION");
    return value && value[0] && strcmp(value, "0") != 0;
}

static bool layer_present(const smg_vk_instance *instance) {
    smg_context *ctx = instance->ctx;
    PFN_vkEnumerateInstanceLayerProperties list = (PFN_vkEnumerateInstanceLayerProperties)(void (*)(
        void))instance->get_proc(NULL, "vkEnumerateInstanceLayerProperties");
    uint32_t count = 0;
    if (!list || list(&count, NULL) != VK_SUCCESS || count == 0) return false;
    VkLayerProperties *layers = smg_alloc(ctx, count, sizeof *layers);
    uint32_t capacity = count;
    bool found = false;
    if (layers && list(&count, layers) >= VK_SUCCESS)
        for (uint32_t i = 0; i < count && i < capacity; i++)
            found = found || strcmp(layers[i].layerName, validation_layer) == 0;
    smg_free(ctx, layers, capacity * sizeof *layers);
    return found;
}

static smg_status load_table(smg_vk_instance *instance) {
#define LOAD(function)                                                                                                 \
    instance->fn.function = (PFN_vk##function)(void (*)(void))instance->get_proc(instance->handle, "vk" #function);
#define REQUIRE(function)                                                                                              \
    LOAD(function)                                                                                                     \
    if (!instance->fn.function)                                                                                        \
        return smg_fail(instance->ctx, SMG_UNSUPPORTED, "the Vulkan loader has no vk" #function);
    SMG_VK_INSTANCE_FUNCTIONS(REQUIRE)
    SMG_VK_INSTANCE_OPTIONAL(LOAD)
#undef REQUIRE
#undef LOAD
    return SMG_OK;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(smg_vk_instance *instance) {
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = instance,
    };
}

static bool loader_has_extension(const smg_vk_instance *instance, const char *name) {
    smg_context *ctx = instance->ctx;
    PFN_vkEnumerateInstanceExtensionProperties list = (PFN_vkEnumerateInstanceExtensionProperties)(void (*)(
        void))instance->get_proc(NULL, "vkEnumerateInstanceExtensionProperties");
    uint32_t count = 0;
    if (!list || list(NULL, &count, NULL) != VK_SUCCESS || count == 0) return false;
    VkExtensionProperties *items = smg_alloc(ctx, count, sizeof *items);
    uint32_t capacity = count;
    bool found = false;
    if (items && list(NULL, &count, items) >= VK_SUCCESS)
        for (uint32_t i = 0; i < count && i < capacity; i++) found = found || strcmp(items[i].extensionName, name) == 0;
    smg_free(ctx, items, capacity * sizeof *items);
    return found;
}

static smg_status create_handle(smg_vk_instance *instance) {
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)(void (*)(void))instance->get_proc(NULL, "vkCreateInstance");
    if (!create) return smg_fail(instance->ctx, SMG_UNSUPPORTED, "the Vulkan loader has no vkCreateInstance");
    /* Without the second setting the layer takes kernels for harmless: it does not look at what they
     * read and write through descriptors. */
    const VkBool32 yes = VK_TRUE;
    const VkLayerSettingEXT settings[] = {
        {validation_layer, "validate_sync", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &yes},
        {validation_layer, "syncval_shader_accesses_heuristic", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &yes},
    };
    const VkLayerSettingsCreateInfoEXT validation = {
        .sType = VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT,
        .settingCount = SMG_COUNT_OF(settings),
        .pSettings = settings,
    };
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(instance);
    messenger.pNext = &validation;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "smg",
        .pEngineName = "smg",
        .apiVersion = instance->api_version,
    };
    const char *const layers[] = {validation_layer};
    const char *extensions[2];
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .ppEnabledExtensionNames = extensions,
    };
    if (instance->validation) {
        info.pNext = &messenger;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = layers;
        extensions[info.enabledExtensionCount++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    }
    if (loader_has_extension(instance, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
        extensions[info.enabledExtensionCount++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    }
    VkResult result = create(&info, NULL, &instance->handle);
    if (result == VK_SUCCESS) return SMG_OK;
    instance->handle = VK_NULL_HANDLE;
    smg_status code = result == VK_ERROR_OUT_OF_HOST_MEMORY    ? SMG_MEMORY
                      : result == VK_ERROR_INCOMPATIBLE_DRIVER ? SMG_NOT_FOUND
                                                               : SMG_DEVICE;
    return smg_fail(instance->ctx, code, "vkCreateInstance failed: %s%s", smg_vk_result_word(result),
                    code == SMG_NOT_FOUND ? " (no Vulkan driver is installed)" : "");
}

/* volk's globals are written once, and read here alone. */
static void find_loader(void *user) {
    PFN_vkGetInstanceProcAddr *out_get_proc = user;
    bool found = vkGetInstanceProcAddr != NULL || volkInitialize() == VK_SUCCESS;
    *out_get_proc = found ? vkGetInstanceProcAddr : NULL;
}

static smg_status open_loader(smg_context *ctx, PFN_vkGetInstanceProcAddr *out_get_proc) {
    if (smg_program_is_static())
        return smg_fail(ctx, SMG_UNSUPPORTED,
                        "the program is linked statically, so that the Vulkan loader and its drivers cannot be loaded: "
                        "link the C library dynamically (pkg-config smg-static)");
    smg_process_alone(find_loader, out_get_proc);
    if (*out_get_proc == NULL)
        return smg_fail(ctx, SMG_NOT_FOUND, "no Vulkan loader: install one (Debian: libvulkan1) and a driver");
    PFN_vkEnumerateInstanceVersion version =
        (PFN_vkEnumerateInstanceVersion)(void (*)(void))(*out_get_proc)(NULL, "vkEnumerateInstanceVersion");
    uint32_t found = VK_API_VERSION_1_0;
    if (!version || version(&found) != VK_SUCCESS || found < VK_API_VERSION_1_1)
        return smg_fail(ctx, SMG_UNSUPPORTED, "the Vulkan loader is of version 1.0, 1.1 is needed");
    return SMG_OK;
}

smg_status smg_vk_instance_create(smg_context *ctx, smg_vk_instance **out_instance) {
    *out_instance = NULL;
    PFN_vkGetInstanceProcAddr get_proc = NULL;
    SMG_TRY(open_loader(ctx, &get_proc));
    smg_vk_instance *instance = smg_alloc(ctx, 1, sizeof *instance);
    if (!instance) return SMG_MEMORY;
    instance->ctx = ctx;
    instance->owned = true;
    instance->get_proc = get_proc;
    instance->api_version = VK_API_VERSION_1_3;
    if (validation_wanted()) {
        instance->validation = layer_present(instance);
        if (!instance->validation)
            smg_log(ctx, SMG_LOG_WARNING, "SMG_VALIDATION is set but %s is not installed", validation_layer);
    }
    smg_status status = create_handle(instance);
    if (status == SMG_OK) status = load_table(instance);
    if (status == SMG_OK && instance->validation && instance->fn.CreateDebugUtilsMessengerEXT) {
        VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(instance);
        if (instance->fn.CreateDebugUtilsMessengerEXT(instance->handle, &info, NULL, &instance->messenger) !=
            VK_SUCCESS)
            instance->messenger = VK_NULL_HANDLE;
    }
    if (status != SMG_OK) {
        smg_vk_instance_destroy(instance);
        return status;
    }
    *out_instance = instance;
    return SMG_OK;
}

smg_status smg_vk_instance_wrap(smg_context *ctx, VkInstance handle, PFN_vkGetInstanceProcAddr get_proc,
                                uint32_t api_version, smg_vk_instance **out_instance) {
    *out_instance = NULL;
    smg_vk_instance *instance = smg_alloc(ctx, 1, sizeof *instance);
    if (!instance) return SMG_MEMORY;
    instance->ctx = ctx;
    instance->handle = handle;
    instance->get_proc = get_proc;
    instance->api_version = api_version ? api_version : VK_API_VERSION_1_1;
    smg_status status = load_table(instance);
    if (status != SMG_OK) {
        smg_vk_instance_destroy(instance);
        return status;
    }
    *out_instance = instance;
    return SMG_OK;
}

void smg_vk_instance_destroy(smg_vk_instance *instance) {
    if (!instance) return;
    if (instance->messenger && instance->fn.DestroyDebugUtilsMessengerEXT)
        instance->fn.DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, NULL);
    if (instance->owned && instance->handle && instance->fn.DestroyInstance)
        instance->fn.DestroyInstance(instance->handle, NULL);
    smg_free(instance->ctx, instance, sizeof *instance);
}
