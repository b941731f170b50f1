/* See the header. One flag for the whole program: a test with a part that was not run is not passed. */
#include "device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static bool missed;

bool device_missing(const smg_context *ctx, smg_status status) {
    if (status != SMG_NOT_FOUND && (SMG_VULKAN || status != SMG_UNSUPPORTED)) return false;
    print_message("no device: %s\n", smg_context_error(ctx));
    if (SMG_VULKAN && getenv("SMG_REQUIRE_DEVICE") != NULL) fail_msg("SMG_REQUIRE_DEVICE is set");
    return missed = true;
}

int device_result(int failed) {
    return failed == 0 && missed ? 77 : failed;
}
