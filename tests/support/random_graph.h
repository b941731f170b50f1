/* Seeded random graphs from the public builder, tame by construction: every value carries an interval and a bound on
 * its rounding error, and an operation that would leave them is not taken. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "graph/graph.h"

typedef struct random_options {
    uint64_t seed;
    int operations;
    bool symbolic;        /* some extents are the symbols s and t */
    int64_t s, t;         /* what they are bound to; bounds the work */
    int64_t max_elements; /* of one value */
    double epsilon;       /* the relative error of an operation, and of inputs where it is more than f32's; 0: f32's */
    double max_error;     /* of a value; 0: 2e-5 */
} random_options;

/* Relative to 1 + |reference|: no value of such a graph is further off in f32. */
#define RANDOM_TOLERANCE 4e-4
/* The same where values lie in 16 bits in memory, of graphs that are made for it. */
#define RANDOM_TOLERANCE_NARROW 0.1
random_options random_narrow(random_options o, smg_type type);

smg_status random_graph(smg_context *ctx, const random_options *options, smg_graph **out_graph);
/* Values of the symbols in the order of the graph. */
void random_symbols(const smg_graph *g, const random_options *options, int64_t *out_symbols);

#endif
