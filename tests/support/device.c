/* See the header. One flag for the whole program: a test with a part that was not run is not passed. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "support/all_cases.h"

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

void device_compiles_plainly(void) {
    if (!all_cases()) assert_int_equal(setenv("GALLIVM_PERF", "nopt", 0), 0);
}
