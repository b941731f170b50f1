/* Two models of one small graph on one device, arrays for their runs, and what those are to give. */
#ifndef TESTS_RUNS_H
#define TESTS_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "smg/smg.h"

enum { ROWS = 20, WIDTH = 96, ALL = ROWS * WIDTH };

typedef struct runs {
    smg_context *ctx;
    smg_device *device;
    smg_graph *graph;
    smg_model *a, *b;
    bool missing;
    int allocations; /* of the host */
    int64_t ids[ROWS];
    float x[ALL], want[ALL], got[ALL], total[ROWS], want_total[ROWS];
} runs;

extern unsigned runs_flags; /* of the device */

int runs_setup(void **state);
int runs_teardown(void **state);
void expect_ok(const runs *f, smg_status status);
void expect_refused(const runs *f, smg_status status, smg_status want, const char *sentence);
smg_status runs_open(runs *f, smg_model **out_model);

typedef struct arrays {
    smg_tensor in[2], out[2];
} arrays;
arrays arrays_of(runs *f, int64_t rows, smg_device_tensor *x, smg_device_tensor *y);
/* By model b. What was got is forgotten. */
void find_wanted(runs *f, int64_t rows);
void expect_wanted(const runs *f, int64_t rows);

#endif
