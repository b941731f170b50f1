/* rewrite: a graph into a smaller or more regular one of the same value.
 *
 * Takes:    a finished graph; how large a buffer of the device may be.
 * Gives:    a new graph and what was done to it: canonical form, folding, algebra, what is known of integers;
 *           constants in parts that fit one binding; weights in the order in which products read them.
 * Promises: every element keeps its value, infinities and NaN included (the sign of zero may change), except that
 *           scales move into weights where f32 is as exact, and numbers that follow each other are multiplied; passes
 *           end.
 * Does not: decide which nodes share a kernel.
 */
#ifndef SMG_REWRITE_H
#define SMG_REWRITE_H

#include "graph/graph.h"

/* ---- rewrites to a fixed point (rewrite.c) --------------------------------------------------------- */

typedef struct smg_rewrite_count {
    const char *rule;
    int applied;
} smg_rewrite_count;
typedef struct smg_rewrite_report {
    SMG_ARRAY(smg_rewrite_count) rules; /* in the order they ran */
    int nodes_before, nodes_after;
} smg_rewrite_report;
/* Canonicalise, fold small constants, algebra, common subexpressions, dead code; to a fixed point.
 * The new graph owns its arena; constant data stays borrowed or lives in the new arena. */
smg_status smg_rewrite_graph(const smg_graph *g, smg_graph **out_graph, smg_rewrite_report *out_report);

/* ---- before and after ------------------------------------------------------------------------------ */

/* Constants of more than `limit` bytes on the device as parts that fit (rewrite_split.c), in a new graph that borrows
 * their data; NULL when there are none. To be done before rewrites, which clean up behind it. */
smg_status smg_rewrite_split_constants(const smg_graph *g, int64_t limit, smg_graph **out_graph, int *out_constants);

/* Edits a finished graph: scores of a softmax that a mask of the run's own decides get ends at the first and the last
 * key that a row keeps, which loops over keys may go between (rewrite_ends.c). *out_ends: masks; *out_weak: softmaxes
 * whose mask leaves nothing out for certain, as its numbers are not low enough. `unread`: where rows have the positions
 * that keys have, those outside of the ends may have any value. */
smg_status smg_rewrite_end_masks(smg_graph *g, bool unread, int *out_ends, int *out_weak);

/* In which blocks such an operand lies in memory (node.block), of products that have so many rows for it: what the
 * lanes of a subgroup load together is one block, or what a loop reads step by step lies step by step (a panel: blocks
 * of one row). rows 0: in none. */
typedef struct smg_weight_blocks {
    int rows, cols;
    int64_t least;    /* rows of a product */
    int64_t smallest; /* elements of a weight */
} smg_weight_blocks;

typedef struct smg_store_options {
    int64_t limit; /* bytes of one copy */
    int64_t twice; /* of all copies whose original stays because something else reads it */
    /* Products of at most `few` results at these values of symbols read their operand along what they contract; of
     * others those that are marked, per node; NULL: none. */
    int64_t few;
    const bool *along;
    smg_weight_blocks blocks; /* of what lies along what is contracted */
    smg_weight_blocks panels; /* of what lies along the result's axis */
    int64_t few_joined;       /* results of a product that others of its left operand make */
    smg_type stored;          /* of f32 values in memory, where nothing speaks against it */
    const int64_t *nominal;
} smg_store_options;
/* Edits a finished graph: products whose factor has the axes that they contract apart in memory, the other one being a
 * constant, read it through a copy that has them as one (rewrite_rows.c). How many there were. */
smg_status smg_rewrite_lay_rows(smg_graph *g, int *out_laid);
/* Edits a finished graph: values that are computed with another axis innermost than maps read them by, several times
 * over at these values of symbols, are read through a copy (rewrite_turn.c). How many there were. */
smg_status smg_rewrite_turn_values(smg_graph *g, const int64_t *nominal, int *out_laid);
/* Edits a finished graph: products of one left operand, each with a constant, become one with all columns, where
 * nothing elementwise follows (rewrite_join.c); only such whose constants may lie in blocks. How many there were. */
smg_status smg_rewrite_join_products(smg_graph *g, const smg_store_options *options, int *out_joined);
/* Edits a finished graph: products read fixed operands that lie in memory along a contracted axis through a copy with
 * the result's axis innermost, those of few results the other way round (rewrite_store.c). Copies of either kind. */
smg_status smg_rewrite_store_weights(smg_graph *g, const smg_store_options *options, int *out_across, int *out_along);

#endif
