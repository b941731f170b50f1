/* One kernel of a whole graph beside the graph's reference, in tests that make schedules by themselves. */
#ifndef TESTS_CHECK_KERNEL_H
#define TESTS_CHECK_KERNEL_H

#include "sched/sched.h"
#include "support/check_plan.h"

/* Runs the kernel in the interpreter, in the per-lane mode too where `by_lane`, and fails the test with its text where
 * the results are not the reference's. `s`: its schedule, printed with it, or NULL. */
void check_kernel_is_right(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                           bool by_lane, check_arrays *a);

#endif
