/* A Vulkan driver that is another one, but for one function that always fails.
 *
 * The loader reads it through a manifest that driver.py writes. SMG_REAL_DRIVER is the library behind,
 * SMG_FAIL_CALL the function ("vkCreateDevice"), SMG_FAIL_RESULT what it returns (a VkResult as a
 * number). Only functions with a VkResult may be named: the stand-in takes no arguments and returns an
 * int, which the calling conventions of all systems that the tests run on allow. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*function)(void);
typedef function (*get_proc)(void *object, const char *name);
typedef int (*negotiate)(unsigned *version);

function vk_icdGetInstanceProcAddr(void *instance, const char *name);
function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name);
int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version);

/* POSIX promises that a function's address survives the way through void *. */
static function symbol(const char *name) {
    function found = NULL;
    const char *path = getenv("SMG_REAL_DRIVER");
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *address = library != NULL ? dlsym(library, name) : NULL;
    memcpy(&found, &address, sizeof(found));
    return found;
}

static int fail(void) {
    const char *result = getenv("SMG_FAIL_RESULT");
    return result != NULL ? atoi(result) : -3;
}

static int chosen(const char *name) {
    const char *call = getenv("SMG_FAIL_CALL");
    return call != NULL && strcmp(call, name) == 0;
}

static get_proc real_device_proc; /* set before any device exists */

static function get_device_proc(void *device, const char *name) {
    if (chosen(name)) return (function)fail;
    return real_device_proc != NULL ? real_device_proc(device, name) : NULL;
}

EXPORT function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    if (chosen(name)) return (function)fail;
    get_proc real = (get_proc)symbol("vk_icdGetInstanceProcAddr");
    function found = real != NULL ? real(instance, name) : NULL;
    if (strcmp(name, "vkGetDeviceProcAddr") != 0 || found == NULL) return found;
    real_device_proc = (get_proc)found;
    return (function)get_device_proc;
}

EXPORT function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    get_proc real = (get_proc)symbol("vk_icdGetPhysicalDeviceProcAddr");
    return real != NULL ? real(instance, name) : NULL;
}

EXPORT int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version) {
    negotiate real = (negotiate)symbol("vk_icdNegotiateLoaderICDInterfaceVersion");
    return real != NULL ? real(version) : -9;
}
