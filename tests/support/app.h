/* An application with a VkDevice of its own, as smg does not make them. Its validation layer (where there is one) tells
 * it of every mistake, and of what is left on the device when it goes. */
#ifndef TESTS_APP_H
#define TESTS_APP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "smg/vulkan.h"

/* What the application itself calls. */
/* clang-format off */
#define APP_FUNCTIONS(X)                                                                           \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceQueueFamilyProperties)       \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceProperties)                            \
    X(CreateDevice) X(DestroyDevice) X(GetDeviceQueue)                                             \
    X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)                               \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements)                                \
    X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) X(MapMemory)                               \
    X(CreateSemaphore) X(DestroySemaphore) X(SignalSemaphore) X(GetSemaphoreCounterValue)          \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers)     \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(QueueSubmit)                                       \
    X(CreateFence) X(DestroyFence) X(WaitForFences)
/* clang-format on */

typedef struct app {
    void *library;
    PFN_vkGetInstanceProcAddr get;
#define APP_MEMBER(name) PFN_vk##name name;
    APP_FUNCTIONS(APP_MEMBER)
#undef APP_MEMBER
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    bool validated;
    atomic_int messages; /* of the validation layer */
    char first[600];
} app;

/* Instance and physical device ($SMG_DEVICE, or the first); false: there is none, with the reason printed, and the test
 * fails where SMG_REQUIRE_DEVICE is set. */
bool app_begin(app *a);
/* The handles there are so far, for smg_vk_wish and, behind app_make_device, for smg_vk_adopt. */
smg_vulkan_desc app_desc(const app *a);
/* With these features and extensions, and its first queue with compute. */
void app_make_device(app *a, const void *enabled, const char *const *extensions, uint32_t extension_count);
/* Destroys the device if there is one. The test fails where the layer said anything before or while that was done. */
void app_drop_device(app *a);
void app_end(app *a);

/* A buffer that the application also sees. */
typedef struct app_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    void *data;
} app_buffer;
void app_make_buffer(app *a, VkBufferUsageFlags usage, VkDeviceSize bytes, app_buffer *out_buffer);
void app_drop_buffer(app *a, app_buffer *buffer);

#endif
