/* The rewriter's state and its rules. A rule looks at one node whose operands are final and either
 * edits it in place, names an existing node that equals it, or does nothing. */
#ifndef SMG_REWRITE_INTERNAL_H
#define SMG_REWRITE_INTERNAL_H

#include "rewrite/rewrite.h"

/* Where an integer's elements lie, as far as known: SMG_SIZE_NONE is no bound. */
typedef struct int_range {
    smg_size low, high;
    int weight; /* about the terms in a bound */
} int_range;

/* What an integer is at each position, as far as known: begin + sum(by[d] * index d), where first[d] <= index d <=
 * last[d] for all axes d. A BOOL holds where the sum is not negative. */
typedef struct index_form {
    bool known;
    smg_size begin;
    smg_size by[SMG_MAX_RANK], first[SMG_MAX_RANK], last[SMG_MAX_RANK];
} index_form;

typedef struct rewriter {
    smg_graph *g;     /* being rebuilt, pass by pass, in one arena */
    smg_exprs *exprs; /* scratch */
    int32_t *table;   /* nodes of this pass by contents: open addressing, id + 1 */
    int table_size;
    int *uses; /* per node of this pass: readers in the pass before, outputs too; 0: not known */
    int uses_size;
    SMG_ARRAY(int_range) ranges; /* of the nodes of this pass, made when asked for */
    SMG_ARRAY(index_form) forms; /* likewise */
    int merged, dead, applied;
} rewriter;

typedef struct rewrite_rule {
    const char *name;
    /* true when it fired; *out_same >= 0 then names the node that replaces this one. */
    bool (*apply)(rewriter *r, smg_node *node, smg_node_id *out_same);
} rewrite_rule;

extern const rewrite_rule smg_canonical_rules[];
extern const int smg_canonical_rule_count;
extern const rewrite_rule smg_algebra_rules[];
extern const int smg_algebra_rule_count;
extern const rewrite_rule smg_integer_rules[];
extern const int smg_integer_rule_count;
extern const rewrite_rule smg_scale_rules[];
extern const int smg_scale_rule_count;
extern const rewrite_rule smg_range_rules[];
extern const int smg_range_rule_count;
extern const rewrite_rule smg_index_rules[];
extern const int smg_index_rule_count;

/* Appends unless an equal node exists; -1 after a failure. */
smg_node_id smg_rewriter_add(rewriter *r, smg_node *node);
bool smg_rule_fold_constants(rewriter *r, smg_node *node, smg_node_id *out_same);
bool smg_rule_fold_numbers(rewriter *r, smg_node *node, smg_node_id *out_same);

/* Questions that many rules ask. */
const smg_node *smg_rewriter_operand(const rewriter *r, const smg_node *node, int k);
bool smg_rewriter_is_number(const rewriter *r, const smg_node *node, int k, double *out_value);
/* The node becomes one literal everywhere, with the dims and the type it has. */
void smg_rewriter_become_number(smg_node *node, double value);
/* Readers of a node, as far as known: 2 stands for more than one and for not known. */
int smg_rewriter_uses(const rewriter *r, smg_node_id id);
bool smg_same_dims(const smg_node *a, const smg_node *b);
/* The operands of a map, all but `without`, give the dims that it has. */
bool smg_map_keeps_dims(const rewriter *r, const smg_node *node, int without);

/* rewrite_range.c: proofs over sizes; a size that is none proves nothing. */
bool smg_rewriter_at_most(const rewriter *r, smg_size a, smg_size b, int64_t margin); /* a + margin <= b */
smg_size smg_rewriter_lesser(const rewriter *r, smg_size a, smg_size b);              /* NONE where that depends */
smg_size smg_rewriter_greater(const rewriter *r, smg_size a, smg_size b);

/* rewrite_known.c: what a node is at each position. `node` need not be in the graph yet; its operands are. False:
 * memory is out. */
bool smg_rewriter_index(rewriter *r, const smg_node *node, index_form *out);
bool smg_index_of(rewriter *r, const smg_node *node, index_form *out); /* the operands' forms are made */
index_form smg_index_of_view(const rewriter *r, const smg_node *node); /* rewrite_known_views.c */
/* Known at all positions. */
bool smg_index_whole(const rewriter *r, const smg_node *node, const index_form *f);
/* Bounds over the positions where it is known; false where there are none. */
bool smg_index_bounds(const rewriter *r, const smg_node *node, const index_form *f, smg_size *out_low,
                      smg_size *out_high);
/* Of a BOOL: +1 when it holds, -1 when it fails, at all positions where it is known; 0: it depends. */
int smg_index_decision(const rewriter *r, const smg_node *node, const index_form *f);

#endif
