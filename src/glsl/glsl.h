/* glsl: a kernel as GLSL 450 text.
 *
 * Takes:    a verified kernel and a target.
 * Gives:    the text of one compute shader (entry "main"), and the interface that whoever dispatches it
 *           must serve: bindings, push constants, workgroup size.
 * Promises: the text does what smg_kernel_interpret does, in 32-bit floats; no invocation leaves before a
 *           barrier the others reach; no address outside a buffer's elements is touched.
 * Does not: decide anything: tiles, lanes, loops and barriers are the kernel's.
 *
 * Any grid of at least smg_kernel_grid() workgroups in x and y does: the kernel numbers them
 * linearly and those beyond the last return at once. Buffers of one dispatch must not overlap (all
 * are `restrict`). JOIN relies on full subgroups of exactly kernel->subgroup invocations when
 * that is above 1.
 */
#ifndef SMG_GLSL_H
#define SMG_GLSL_H

#include "base/base.h"
#include "kernel/kernel.h"
#include "target/target.h"

#define SMG_GLSL_MAX_PUSH SMG_KERNEL_SIZES
#define SMG_GLSL_MAX_EVEN SMG_KERNEL_EVENS

/* The diagnostics buffer: uint 0 becomes 1 with the first bad index, int 1 is that index, int 2 its limit. */
#define SMG_GLSL_DIAGNOSTICS_BYTES 16

typedef struct smg_glsl_interface {
    int address_bindings[SMG_GLSL_MAX_PUSH]; /* the addresses of these bindings' buffers, 8 bytes each, come first */
    int address_count;
    int push_symbols[SMG_GLSL_MAX_PUSH]; /* of kernel->sizes, one `int` push constant each, in order */
    int push_count;
    int binding_count; /* kernel->buffers.count, and one for diagnostics where they are */
    int diagnostics;   /* its binding, -1: the kernel has no index from data */
    int local_size;    /* invocations in x; y and z are 1 */
    int subgroup_size; /* size that must be required with full subgroups; 0: any, for lack of choice */
    int64_t shared_bytes;
    /* The even form: specialization constant 0 may be true where each even_size is a multiple of its even_by (tiles
     * come out even, runs are aligned groups). Checks of single elements then fall away. even_count 0: no such form. */
    smg_size even_size[SMG_GLSL_MAX_EVEN];
    int64_t even_by[SMG_GLSL_MAX_EVEN];
    int even_count;
} smg_glsl_interface;

/* Appends the shader to `out`. UNSUPPORTED names the limit of the target that the kernel exceeds. */
smg_status smg_glsl_write(smg_context *ctx, const smg_kernel *k, const smg_target *target, smg_text *out);
/* The interface of the text that smg_glsl_write gives for the same kernel and target. */
smg_status smg_glsl_describe(smg_context *ctx, const smg_kernel *k, const smg_target *target,
                             smg_glsl_interface *out_interface);

#endif
