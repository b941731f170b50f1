/* smg/smg.h: everything of smg but the Vulkan seam.
 *
 * smg/model.h is the short way: open, run, close; smg/rt.h is the part of it that the library without a compiler has.
 * smg/tune.h measures a model's kernels on the device. smg/graph.h builds graphs in C. smg/context.h is what all of them need first. smg/vulkan.h is apart, because it needs
 * the Vulkan headers.
 */
#ifndef SMG_SMG_H
#define SMG_SMG_H

#include "smg/context.h"
#include "smg/device.h"
#include "smg/graph.h"
#include "smg/model.h"
#include "smg/rt.h"
#include "smg/status.h"
#include "smg/tensor.h"
#include "smg/tune.h"
#include "smg/version.h"

#endif
