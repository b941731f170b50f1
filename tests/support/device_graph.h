/* One small graph on whatever device there is, compiled for a target, and its results beside the reference. All but
 * device_graph_open fail the running test on any failure. */
#ifndef TESTS_DEVICE_GRAPH_H
#define TESTS_DEVICE_GRAPH_H

#include "compile/compile.h"
#include "program/program.h"

typedef struct device_graph {
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *dev;
    smg_graph *g;
    smg_compilation *c;
    smg_program *program; /* the test makes it, of c or of what it makes of that */
} device_graph;

/* Context, arena and device. False: there is no device; the caller closes all the same, and skips. */
bool device_graph_open(device_graph *f);
/* With every call of the driver validated. */
void device_graph_close(device_graph *f);
/* Graph, compilation and program. */
void device_graph_drop(device_graph *f);
void device_graph_expect_ok(const device_graph *f, smg_status status);
/* The device's target as if it were a GPU's: cores hide loads, and matrices are fast. */
smg_target device_graph_gpu(const device_graph *f);
void device_graph_parse(device_graph *f, const char *text);
/* Plan and modules. */
void device_graph_compile(device_graph *f, const smg_target *target, const smg_compile_options *options);
/* One run on random inputs; sizes: a value per symbol of the graph. `what` is for the message. */
void device_graph_check(device_graph *f, const char *what, const int64_t *sizes, uint64_t seed);

#endif
