/* Every allocation of taking an application's device fails once: a status, nothing leaks, and nothing is left on the
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/device.h"
#include "support/fault.h"

#if SMG_VULKAN
#include "support/app.h"

static smg_status take(smg_context *ctx, void *user) {
    const app *a = user;
    smg_vulkan_desc desc = app_desc(a);
    const char *const own[] = {"VK_KHR_maintenance4"};
    smg_vulkan_wishes *wishes = NULL;
    smg_device *device = NULL;
    desc.extensions = own;
    desc.extension_count = 1;
    SMG_TRY(smg_vk_wish(ctx, &desc, NULL, &wishes));
    desc.enabled = wishes->enabled;
    desc.extensions = wishes->extensions;
    desc.extension_count = wishes->extension_count;
    smg_status status = smg_vk_adopt(ctx, &desc, &device);
    smg_device_close(device);
    smg_vk_wishes_free(wishes);
    return status;
}

static void taking_a_device(void **state) {
    (void)state;
    app a;
    smg_context *ctx = NULL;
    smg_vulkan_wishes *wishes = NULL;
    if (!app_begin(&a)) skip();
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    const smg_vulkan_desc desc = app_desc(&a);
    assert_int_equal(smg_vk_wish(ctx, &desc, NULL, &wishes), SMG_OK);
    app_make_device(&a, wishes->enabled, wishes->extensions, wishes->extension_count);
    const fault_sweep sweep = {.body = take, .user = &a, .stride = 1, .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
    smg_vk_wishes_free(wishes);
    smg_context_destroy(ctx);
    app_end(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(taking_a_device)};
    return device_result(cmocka_run_group_tests_name("app memory", tests, NULL, NULL));
}

#else

int main(void) {
    return 77;
}

#endif
