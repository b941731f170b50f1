/* base/descriptor.h: file descriptors that a caller owns (base_descriptor.c). */
#ifndef SMG_DESCRIPTOR_H
#define SMG_DESCRIPTOR_H

#include "base/base.h"

/* Another one of the same, to be closed by itself. INVALID: it is none; UNSUPPORTED: the system has none. */
smg_status smg_descriptor_copy(smg_context *ctx, int descriptor, int *out_copy);
bool smg_descriptor_bytes(int descriptor, int64_t *out_bytes); /* false: it has no size. Leaves it at its start */
void smg_descriptor_close(int descriptor);                     /* below 0: nothing */

#endif
