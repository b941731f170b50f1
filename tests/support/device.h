/* Tests that run on whatever Vulkan device there is, and say so when there is none. */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include <stdbool.h>

#include "smg/smg.h"
#if SMG_VULKAN
#include "vulkan/vulkan.h"
#endif

/* `status` (of opening a device or a model) says that there is no device, or that smg was built without
 * Vulkan. Then the reason is printed; the test fails where SMG_REQUIRE_DEVICE is set. The caller cleans up
 * and skips. */
bool device_missing(const smg_context *ctx, smg_status status);
/* What main returns after cmocka's count of failures: 77, which ctest shows as skipped, where any test missed its
 * device. */
int device_result(int failed);
/* Before a device is opened, by tests of whole models and of what surrounds kernels: the CPU driver, most of whose time
 * is its compiler's, does not optimise. Forms of kernels are for tests that let it, unit.glsl*; with
 * SMG_ALL_CASES all of them do. */
void device_compiles_plainly(void);
#if SMG_VULKAN
/* The shape of f16 with sums of f32 that the device's target has, or NULL. */
const smg_matrix_shape *device_half_shape(const smg_vk_device *dev);
/* Once its matrices were tried: it has none, which is printed; the test fails where SMG_REQUIRE_DEVICE is set and the
 * driver offers one, or is known to. The caller cleans up and skips. */
bool device_lacks_halves(const smg_vk_device *dev);
#endif

#endif
