/* Small experiments on a device, for vulkan_calibrate.c. */
#ifndef SMG_VULKAN_MEASURE_H
#define SMG_VULKAN_MEASURE_H

#include "vulkan/vulkan_private.h"

typedef struct smg_vk_bench {
    smg_vk_device *dev;
    smg_vk_pipeline *read, *fma, *barrier, *noise;
    smg_vk_buffer *data, *result;
    int64_t data_bytes;
    int64_t fma_size;  /* workgroup size of fma */
    int64_t read_size; /* of the others */
    int64_t cores;     /* for as many workgroups as run at once */
    double goal;       /* seconds that one run takes about */
    int tries;         /* runs of each experiment; the best counts */
    bool settled;      /* the best runs of the last experiment agree; where not, somebody else is using the device */
} smg_vk_bench;

smg_status smg_vk_bench_create(smg_vk_device *dev, smg_vk_bench *out_bench);
void smg_vk_bench_destroy(smg_vk_bench *bench);

/* Fills the data with noise; before the first read. */
smg_status smg_vk_bench_fill(smg_vk_bench *bench);
/* Runs multiply-adds for that long, so that clocks are up. */
smg_status smg_vk_bench_warm(smg_vk_bench *bench, double seconds);
/* Floating-point operations a second of `groups` workgroups at once. */
smg_status smg_vk_bench_fma(smg_vk_bench *bench, int64_t groups, double *out_rate);
/* Bytes a second, reading `bytes` again and again (rounded down; `out_bytes` is the set that was used). */
smg_status smg_vk_bench_read(smg_vk_bench *bench, int64_t bytes, int64_t *out_bytes, double *out_rate);
/* Bytes a second of a stretch of about so many bytes that was not read lately, over and over another one. */
smg_status smg_vk_bench_stream(smg_vk_bench *bench, int64_t bytes, double *out_rate);
/* Bytes a second of shared memory, all cores together. */
smg_status smg_vk_bench_near(smg_vk_bench *bench, double *out_rate);
/* Seconds of a load that somebody waits for, from anywhere in about so many bytes. */
smg_status smg_vk_bench_latency(smg_vk_bench *bench, int64_t bytes, double *out_seconds);
smg_status smg_vk_bench_dispatch(smg_vk_bench *bench, double *out_seconds);
smg_status smg_vk_bench_barrier(smg_vk_bench *bench, double *out_seconds);
/* The most workgroups of `lanes` invocations that ran at the same time, each with so much shared memory. */
smg_status smg_vk_bench_resident(smg_vk_bench *bench, int64_t lanes, int64_t shared_bytes, int64_t *out_groups);
/* The same of invocations with many values each (all: more than any lane has registers for), and how many registers the
 * driver says that a lane has; 0: it does not say. */
smg_status smg_vk_bench_registers(smg_vk_bench *bench, bool all, int64_t lanes, int64_t *out_groups,
                                  int64_t *out_registers);

/* Flop/s of a kernel that does `flops_step` in each of as many steps as its first push constant says, in each
 * workgroup; the others are 0, its bindings the buffers. */
enum { SMG_VK_BENCH_PUSH_BYTES = 12 };
smg_status smg_vk_bench_matrix(smg_vk_device *dev, smg_vk_pipeline *pipeline, smg_vk_buffer *const buffers[3],
                               double flops_step, double *out_rate);

#endif
