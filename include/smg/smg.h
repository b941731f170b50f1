/* smg/smg.h: everything of smg but the Vulkan seam.
 *
 * smg/model.h is the short way: open, run, close; smg/rt.h is the part of it that the library without a compiler has.
 * smg/embed.h makes vectors of texts. smg/compile.h has the parts of opening a model: what it takes and gives, how it
 * is compiled and for what, bundles written, results checked; smg/tune.h measures its kernels on the device.
 * smg/arrays.h makes inputs, smg/bundle.h looks into bundles, smg/measure.h tells of devices, times and memory,
 * smg/command.h is for programs of the command line. smg/graph.h builds graphs in C. smg/context.h is what all of them
 * need first. smg/vulkan.h is apart, because it needs the Vulkan headers.
 */
#ifndef SMG_SMG_H
#define SMG_SMG_H

#include "smg/arrays.h"
#include "smg/bundle.h"
#include "smg/command.h"
#include "smg/compile.h"
#include "smg/context.h"
#include "smg/device.h"
#include "smg/embed.h"
#include "smg/graph.h"
#include "smg/measure.h"
#include "smg/model.h"
#include "smg/rt.h"
#include "smg/status.h"
#include "smg/tensor.h"
#include "smg/tune.h"
#include "smg/version.h"

#endif
