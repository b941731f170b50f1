/* The rewriter's state and its rules. A rule looks at one node whose operands are final and either
 * edits it in place, names an existing node that equals it, or does nothing. */
#ifndef SMG_REWRITE_INTERNAL_H
#define SMG_REWRITE_INTERNAL_H

#include "affine/affine.h"
#include "rewrite/rewrite.h"

typedef struct rewriter {
    smg_graph *g;     /* being rebuilt, pass by pass, in one arena */
    smg_exprs *exprs; /* scratch */
    int32_t *table;   /* nodes of this pass by contents: open addressing, id + 1 */
    int table_size;
    int *uses; /* per node of this pass: readers in the pass before, outputs too; 0: not known */
    int uses_size;
    SMG_ARRAY(smg_affine_value) known; /* of the nodes of this pass, made when asked for */
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
extern const rewrite_rule smg_gate_rules[];
extern const int smg_gate_rule_count;
extern const rewrite_rule smg_range_rules[];
extern const int smg_range_rule_count;
extern const rewrite_rule smg_index_rules[];
extern const int smg_index_rule_count;

/* Appends unless an equal node exists; -1 after a failure. */
smg_node_id smg_rewriter_add(rewriter *r, smg_node *node);
bool smg_rule_fold_constants(rewriter *r, smg_node *node, smg_node_id *out_same);
bool smg_rule_fold_numbers(rewriter *r, smg_node *node, smg_node_id *out_same);

/* rewrite_ask.c: the node whose value the views show; elements at these values of symbols, -1: not known. */
smg_node_id smg_rewrite_source(const smg_node *nodes, smg_node_id id);
int64_t smg_rewrite_elements_at(smg_sizes *sizes, const smg_node *node, const int64_t *symbols);
/* The axis that is innermost in memory, which has more than one element; -1: there is none. */
int smg_rewrite_last_axis(const smg_graph *g, const smg_node *node);

/* Questions that many rules ask; those of operands are in rewrite_ask.c too. */
const smg_node *smg_rewriter_operand(const rewriter *r, const smg_node *node, int k);
bool smg_rewriter_is_number(const rewriter *r, const smg_node *node, int k, double *out_value);
/* The node becomes one literal everywhere, with the dims and the type it has. */
void smg_rewriter_become_number(smg_node *node, double value);
/* Readers of a node, as far as known: 2 stands for more than one and for not known. */
int smg_rewriter_uses(const rewriter *r, smg_node_id id);
/* The operands of a map, all but `without`, give the dims that it has. */
bool smg_map_keeps_dims(const rewriter *r, const smg_node *node, int without);

/* rewrite_known.c: what integers and truths are at each position. */
/* `node` need not be in the graph yet; its operands are. False: memory is out. */
bool smg_rewriter_known(rewriter *r, const smg_node *node, smg_affine_value *out);
/* A map of operands of which this is known, at the positions of the node. */
smg_affine_value smg_known_map(rewriter *r, const smg_node *node, const smg_affine_value *operand);

/* rewrite_known_views.c: the indices of a node's value are its axes; what was found of an operand. */
smg_affine_scope smg_known_scope(const rewriter *r, const smg_node *node);
const smg_affine_value *smg_known_operand(const rewriter *r, const smg_node *node, int k);
smg_affine_value smg_known_view(const rewriter *r, const smg_node *node);
/* What is known along axis d of `from` is so along axis `to`, which is as long. */
void smg_known_carry(const smg_affine_scope *scope, const smg_affine_value *from, int d, smg_affine_value *io, int to);

#endif
