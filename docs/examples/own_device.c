/* A bundle on a VkDevice of the program's own: own_device minilm.smgb input_ids 101 7592 102
 *
 * Prints what run_bundle prints. The device has what is worth enabling for smg; a program that needs more hands its own
 * chain of features and its own extensions to smg_vk_wish. The second run goes beside a render loop, and gives each
 * frame back after 2 ms; how long frames took is told on stderr. After smg_device_close nothing of smg's is left on it. */
#include <smg/rt.h>
#include <smg/vulkan.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vulkan/vulkan.h>

typedef struct gpu {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
} gpu;

/* An instance, its first device and that one's first queue family with compute. */
static int find_gpu(gpu *g) {
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
    VkQueueFamilyProperties families[16];
    uint32_t devices = 1, count = 16;
    if (vkCreateInstance(&info, NULL, &g->instance) != VK_SUCCESS) return 0;
    if (vkEnumeratePhysicalDevices(g->instance, &devices, &g->physical) < VK_SUCCESS || devices == 0) return 0;
    vkGetPhysicalDeviceQueueFamilyProperties(g->physical, &count, families);
    while (g->family < count && !(families[g->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) g->family++;
    return g->family < count;
}

static int make_device(gpu *g, const smg_vulkan_wishes *wishes) {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = g->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = wishes->enabled,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = wishes->extension_count,
                                     .ppEnabledExtensionNames = wishes->extensions};
    if (vkCreateDevice(g->physical, &info, NULL, &g->device) != VK_SUCCESS) return 0;
    vkGetDeviceQueue(g->device, g->family, 0, &g->queue);
    return 1;
}

/* The device as smg's. */
static smg_status adopt(smg_context *ctx, gpu *g, smg_device **out_device) {
    smg_vulkan_wishes *wishes = NULL;
    smg_vulkan_desc desc = {.instance = g->instance,
                            .physical_device = g->physical,
                            .queue_family = g->family,
                            .get_instance_proc_addr = vkGetInstanceProcAddr,
                            .api_version = VK_API_VERSION_1_3};
    smg_status status = smg_vk_wish(ctx, &desc, NULL, &wishes);
    if (status == SMG_OK) status = make_device(g, wishes) ? SMG_OK : SMG_DEVICE;
    if (status == SMG_OK) {
        desc.device = g->device;
        desc.queue = g->queue;
        desc.enabled = wishes->enabled;
        desc.extensions = wishes->extensions;
        desc.extension_count = wishes->extension_count;
        status = smg_vk_adopt(ctx, &desc, out_device);
    }
    smg_vk_wishes_free(wishes);
    return status;
}

/* Stands for what the program draws: it is on the same queue, and so behind what the frame gave to the model. */
static smg_status draw(const gpu *g, VkFence fence) {
    const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    if (vkQueueSubmit(g->queue, 1, &nothing, fence) != VK_SUCCESS) return SMG_DEVICE;
    if (vkWaitForFences(g->device, 1, &fence, VK_TRUE, UINT64_MAX) != VK_SUCCESS) return SMG_DEVICE;
    return vkResetFences(g->device, 1, &fence) == VK_SUCCESS ? SMG_OK : SMG_DEVICE;
}

static double now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One run in as many frames as it takes: each looks at the ticket once, which puts the run's next part on the queue. */
static smg_status run_beside(const gpu *g, smg_model *model, const smg_tensor *in, smg_tensor *out) {
    static const double budget = 2e-3;
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    smg_ticket ticket = {0};
    double longest = 0;
    int frames = 0;
    smg_status status = smg_model_set_budget(model, 0, budget);
    if (status == SMG_OK) status = smg_model_run(model, in, 1, out, 1); /* finds out how long kernels take */
    if (vkCreateFence(g->device, &info, NULL, &fence) != VK_SUCCESS) return SMG_DEVICE;
    if (status == SMG_OK) status = smg_model_submit(model, in, 1, out, 1, &ticket);
    for (bool done = false; !done && status == SMG_OK; frames++) {
        double start = now();
        status = draw(g, fence);
        double seconds = now() - start;
        if (seconds > longest) longest = seconds;
        if (status == SMG_OK) status = smg_ticket_wait(ticket, 0, &done);
    }
    if (status != SMG_OK) (void)smg_ticket_wait(ticket, -1, NULL);
    vkDestroyFence(g->device, fence, NULL);
    fprintf(stderr, "%d frames, the longest %.3f ms, %.3f ms of the model's\n", frames, 1e3 * longest,
            1e3 * smg_model_seconds(model));
    return status;
}

static smg_status run(const gpu *g, smg_model *model, const char *input, int32_t *ids, int count) {
    smg_tensor first, out = {0};
    const smg_tensor in = {.name = input, .type = "i32", .rank = 2, .dims = {1, count}, .data = ids};
    smg_model_output(model, 0, &first);
    out.name = first.name;
    smg_status status = smg_model_run(model, &in, 1, &out, 1);
    if (status == SMG_OK) status = run_beside(g, model, &in, &out);
    if (status == SMG_OK)
        printf("%s by class %s: %g %g ..\n", out.name, smg_model_class(model), (double)((float *)out.data)[0],
               (double)((float *)out.data)[1]);
    return status;
}

int main(int argc, char **argv) {
    gpu g = {0};
    smg_context *ctx = NULL;
    smg_device *device = NULL;
    smg_model *model = NULL;
    int32_t ids[512];
    if (argc < 4 || argc - 3 > 512) {
        fprintf(stderr, "usage: own_device BUNDLE INPUT NUMBER.. (at most 512)\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) ids[i - 3] = (int32_t)strtol(argv[i], NULL, 10);
    if (!find_gpu(&g)) {
        fprintf(stderr, "there is no Vulkan device that this program can use\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = adopt(ctx, &g, &device);
    const smg_bundle_desc desc = {.on = device};
    if (status == SMG_OK) status = smg_model_open_bundle(ctx, argv[1], &desc, &model);
    if (status == SMG_OK) status = run(&g, model, argv[2], ids, argc - 3);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    smg_model_close(model);
    smg_device_close(device);
    smg_context_destroy(ctx);
    if (g.device != NULL) vkDestroyDevice(g.device, NULL);
    vkDestroyInstance(g.instance, NULL);
    return status == SMG_OK ? 0 : 1;
}
