/* precision: in which element type each value lies in memory.
 *
 * Takes:    a rewritten graph of f32 values; the type that was asked for (f32, f16, bf16); how large values became in
 *           a run that stands for others, where there was one.
 * Gives:    the precision plan: per value its type in device memory, and why where that is not the one asked for.
 * Promises: a value is narrowed only where nothing that is known of it speaks against that: what constants, literals
 *           and indices put into it fits the type, and what is rounded off is not enlarged too much on its way. Values
 *           of other types than f32 keep theirs. The answers that the plan hangs on are among graph->facts.
 * Does not: change the graph, or what kernels compute in: that is f32, sums and statistics included.
 */
#ifndef SMG_PRECISION_H
#define SMG_PRECISION_H

#include "graph/graph.h"

typedef struct smg_precision_plan {
    smg_type asked;
    smg_type *storage; /* per node; of a view its operand's */
    const char **why;  /* per node: the sentence behind "f32 because", NULL where the type is the one asked for */
    double likely;     /* what roundings come to in an output: an estimate without a run, root mean square */
} smg_precision_plan;

/* The word of a precision; NULL is f32. INVALID lists those that there are. */
smg_status smg_precision_find(smg_context *ctx, const char *word, smg_type *out_type);
/* measured: per node what it became in a run that stands for others (smg_graph_peaks); NULL: there was none. A value
 * that came nearer to the type's end than by half, or that stayed where the type is coarse, is not narrowed.
 * plan->storage becomes graph->storage where something is narrower than its type. */
smg_status smg_precision_make(smg_graph *g, smg_type asked, const smg_peak *measured, smg_arena *arena,
                              smg_precision_plan *out_plan);

/* What a plan rounds to beside f32: values in memory; with `partial` also sums of some products, to f16
 * (smg_target_pairs). */
typedef struct smg_roundings {
    smg_type stored;
    bool partial;
} smg_roundings;

/* The largest relative error that these add to an output: 4 epsilon sqrt(n), n the float values on the longest way
 * through the graph, each of which may be stored; a product whose partial sums are rounded counts as 16 more. Roundings
 * are as good as independent, so they add up by squares; 0 for f32, whose stores round nothing. */
smg_status smg_precision_bound(const smg_graph *g, smg_roundings roundings, smg_arena *scratch, double *out_bound);

#endif
