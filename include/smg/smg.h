/* smg/smg.h: everything of smg but the Vulkan seam.
 *
 * smg/model.h is the short way: open, run, close. smg/graph.h builds graphs in C. smg/context.h is what
 * both need first. smg/vulkan.h is apart, because it needs the Vulkan headers.
 */
#ifndef SMG_SMG_H
#define SMG_SMG_H

#include "smg/context.h"
#include "smg/graph.h"
#include "smg/model.h"
#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": static storage. */
SMG_API const char *smg_version(void);

#ifdef __cplusplus
}
#endif
#endif
