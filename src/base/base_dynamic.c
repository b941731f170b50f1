/* Can this program load libraries while it runs? glibc lets a static one try, and what was loaded crashes.
 *
 * Apart from base_platform.c, because what it asks is declared for _GNU_SOURCE only, which changes other functions.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "base/base.h"

#if defined(__linux__)
#include <link.h>

/* Of a static program there is itself, without a name, and what the kernel maps, without a path. */
static int is_loaded(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    (void)user;
    return info->dlpi_name != NULL && strchr(info->dlpi_name, '/') != NULL;
}

bool smg_program_is_static(void) {
    return dl_iterate_phdr(is_loaded, NULL) == 0;
}
#else
bool smg_program_is_static(void) {
    return false;
}
#endif
