/* See the header. Nothing of smg's is used but the types of smg/vulkan.h. */
#if SMG_VULKAN
#include "app.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char layer[] = "VK_LAYER_KHRONOS_validation";

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    app *a = user;
    (void)severity;
    if (!(types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)) return VK_FALSE;
    if (atomic_fetch_add(&a->messages, 1) == 0) snprintf(a->first, sizeof(a->first), "%s", data->pMessage);
    return VK_FALSE;
}

static bool is_layer_there(const app *a) {
    const char *wanted = getenv("SMG_VALIDATION");
    VkLayerProperties list[64];
    uint32_t count = 64;
    PFN_vkEnumerateInstanceLayerProperties enumerate =
        (PFN_vkEnumerateInstanceLayerProperties)(void (*)(void))a->get(NULL, "vkEnumerateInstanceLayerProperties");
    if (wanted == NULL || strcmp(wanted, "0") == 0 || enumerate(&count, list) < VK_SUCCESS) return false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].layerName, layer) == 0) return true;
    return false;
}

static VkResult make_instance(app *a) {
    const VkBool32 yes = VK_TRUE;
    const VkLayerSettingEXT settings[] = {
        {layer, "validate_sync", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &yes},
        {layer, "syncval_shader_accesses_heuristic", VK_LAYER_SETTING_TYPE_BOOL32_EXT, 1, &yes},
    };
    const VkLayerSettingsCreateInfoEXT validation = {
        .sType = VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT, .settingCount = 2, .pSettings = settings};
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_3};
    const char *const layers[] = {layer};
    const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = a->validated ? &validation : NULL,
        .pApplicationInfo = &application,
        .enabledLayerCount = a->validated,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = a->validated,
        .ppEnabledExtensionNames = extensions,
    };
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)(void (*)(void))a->get(NULL, "vkCreateInstance");
    return create(&info, NULL, &a->instance);
}

static void listen(app *a) {
    const VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = a,
    };
    if (a->validated) assert_int_equal(a->CreateDebugUtilsMessengerEXT(a->instance, &info, NULL, &a->messenger), 0);
}

static bool none(app *a, const char *what) {
    print_message("no application: %s\n", what);
    if (getenv("SMG_REQUIRE_DEVICE") != NULL) fail_msg("SMG_REQUIRE_DEVICE is set");
    app_end(a);
    return false;
}

bool app_begin(app *a) {
    *a = (app){0};
    a->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (a->library == NULL) return none(a, "there is no Vulkan loader");
    *(void **)&a->get = dlsym(a->library, "vkGetInstanceProcAddr");
    assert_non_null(a->get);
    a->validated = is_layer_there(a);
    if (make_instance(a) != VK_SUCCESS) {
        a->instance = NULL;
        return none(a, "vkCreateInstance failed");
    }
#define LOAD(name) a->name = (PFN_vk##name)(void (*)(void))a->get(a->instance, "vk" #name);
    APP_FUNCTIONS(LOAD)
#undef LOAD
    listen(a);
    VkPhysicalDevice list[16];
    uint32_t count = 16;
    const char *which = getenv("SMG_DEVICE");
    if (a->EnumeratePhysicalDevices(a->instance, &count, list) < VK_SUCCESS || count == 0)
        return none(a, "there is no device");
    uint32_t index = which != NULL && which[0] >= '0' && which[0] <= '9' ? (uint32_t)atoi(which) : 0;
    a->physical = list[index < count ? index : 0];
    VkQueueFamilyProperties families[16];
    count = 16;
    a->GetPhysicalDeviceQueueFamilyProperties(a->physical, &count, families);
    while (a->family < count && !(families[a->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) a->family++;
    assert_true(a->family < count);
    return true;
}

smg_vulkan_desc app_desc(const app *a) {
    return (smg_vulkan_desc){.instance = a->instance,
                             .physical_device = a->physical,
                             .device = a->device,
                             .queue = a->queue,
                             .queue_family = a->family,
                             .get_instance_proc_addr = a->get,
                             .api_version = VK_API_VERSION_1_3};
}

void app_make_device(app *a, const void *enabled, const char *const *extensions, uint32_t extension_count) {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = a->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = enabled,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = extension_count,
                                     .ppEnabledExtensionNames = extensions};
    assert_int_equal(a->CreateDevice(a->physical, &info, NULL, &a->device), VK_SUCCESS);
    a->GetDeviceQueue(a->device, a->family, 0, &a->queue);
}

void app_make_buffer(app *a, VkBufferUsageFlags usage, VkDeviceSize bytes, app_buffer *out) {
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
    VkPhysicalDeviceMemoryProperties types;
    VkMemoryRequirements needs;
    uint32_t type = 0;
    *out = (app_buffer){0};
    a->GetPhysicalDeviceMemoryProperties(a->physical, &types);
    assert_int_equal(a->CreateBuffer(a->device, &info, NULL, &out->handle), VK_SUCCESS);
    a->GetBufferMemoryRequirements(a->device, out->handle, &needs);
    while (type < types.memoryTypeCount &&
           (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & host) != host))
        type++;
    assert_true(type < types.memoryTypeCount);
    const VkMemoryAllocateFlagsInfo addressed = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                                 .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT ? &addressed : NULL,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    assert_int_equal(a->AllocateMemory(a->device, &memory, NULL, &out->memory), VK_SUCCESS);
    assert_int_equal(a->BindBufferMemory(a->device, out->handle, out->memory, 0), VK_SUCCESS);
    assert_int_equal(a->MapMemory(a->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->data), VK_SUCCESS);
}

void app_drop_buffer(app *a, app_buffer *buffer) {
    a->DestroyBuffer(a->device, buffer->handle, NULL);
    a->FreeMemory(a->device, buffer->memory, NULL);
}

static void expect_silence(const app *a) {
    if (a->messages > 0) fail_msg("the validation layer has %d messages, the first: %s", a->messages, a->first);
}

void app_drop_device(app *a) {
    expect_silence(a);
    if (a->device != NULL) a->DestroyDevice(a->device, NULL);
    a->device = NULL;
    a->queue = NULL;
    expect_silence(a);
}

void app_end(app *a) {
    if (a->device != NULL) app_drop_device(a);
    if (a->messenger != VK_NULL_HANDLE) a->DestroyDebugUtilsMessengerEXT(a->instance, a->messenger, NULL);
    if (a->instance != NULL) a->DestroyInstance(a->instance, NULL);
    if (a->library != NULL) dlclose(a->library);
    *a = (app){0};
}

#else
typedef int app_needs_vulkan; /* no empty file */
#endif
