/* See the header. One flag for the whole program: a test with a part that was not run is not passed. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/all_cases.h"

static bool missed;

bool device_missing(const smg_context *ctx, smg_status status) {
    if (status != SMG_NOT_FOUND && (SMG_VULKAN || status != SMG_UNSUPPORTED)) return false;
    print_message("no device: %s\n", smg_context_error(ctx));
    if (SMG_VULKAN && getenv("SMG_REQUIRE_DEVICE") != NULL) fail_msg("SMG_REQUIRE_DEVICE is set");
    return missed = true;
}

#if SMG_VULKAN
static const char half_types[] = "f16 f16 f32 f32";

const smg_matrix_shape *device_half_shape(const smg_vk_device *dev) {
    const smg_target *target = smg_vk_target(dev);
    for (int i = 0; i < target->matrix_count; i++)
        if (strcmp(target->matrix[i].a, "f16") == 0 && strcmp(target->matrix[i].c, "f32") == 0)
            return &target->matrix[i];
    return NULL;
}

/* Where it was tried the driver offers it. Lavapipe does wherever its subgroups are of 8. */
static bool should_have_halves(const smg_vk_device *dev) {
    const smg_target *target = smg_vk_target(dev);
    const smg_vk_verdict *verdicts = NULL;
    for (int i = smg_vk_verdicts(dev, &verdicts) - 1; i >= 0; i--)
        if (smg_text_ends(verdicts[i].what, half_types)) return true;
    return strncmp(target->name, "llvmpipe", 8) == 0 && target->subgroup_max == 8;
}

bool device_lacks_halves(const smg_vk_device *dev) {
    if (device_half_shape(dev)) return false;
    print_message("'%s' has no matrices of %s\n", smg_vk_target(dev)->name, half_types);
    if (getenv("SMG_REQUIRE_DEVICE") != NULL && should_have_halves(dev)) fail_msg("SMG_REQUIRE_DEVICE is set");
    return missed = true;
}
#endif

int device_result(int failed) {
    return failed == 0 && missed ? 77 : failed;
}

void device_compiles_plainly(void) {
    if (!all_cases()) assert_int_equal(setenv("GALLIVM_PERF", "nopt", 0), 0);
}
