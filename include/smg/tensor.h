/* smg/tensor.h: named arrays, and symbolic sizes with their values: what runs take and give. */
#ifndef SMG_TENSOR_PUBLIC_H
#define SMG_TENSOR_PUBLIC_H

#include <stddef.h>
#include <stdint.h>

#define SMG_TENSOR_RANK 8

struct smg_device_tensor; /* smg/device.h */

/* A named array, row-major, dense. */
typedef struct smg_tensor {
    const char *name;
    const char *type; /* f32 f16 bf16 i32 i64 bool (one byte); NULL: as the model has it. An input of another
                       * integer type is converted and range-checked */
    int rank;
    int64_t dims[SMG_TENSOR_RANK];
    void *data;
    size_t bytes; /* of `data`: an output's own memory; an input's may be 0 (not told), else it must be enough */
    struct smg_device_tensor *on; /* the array lies on the device; `data` and `bytes` are not looked at */
} smg_tensor;

/* A symbolic size and a value. */
typedef struct smg_dim {
    const char *name;
    int64_t value;
} smg_dim;

/* A symbolic size and the values that runs will give it, both ends among them. */
typedef struct smg_dim_range {
    const char *name;
    int64_t low, high;
} smg_dim_range;

#endif
