/* A reduction of what another one leaves, by the same combine, is one All-to-One along the axes of both: what the first
 * leaves is nowhere. The axes then may be one run of memory, and are cut as any axes of one reduction. */
#include "space/space_internal.h"

/* The reduction that node `i` reduces on, and nobody else reads; -1. */
static int reduced_before(const smg_space *space, int i) {
    const smg_snode *n = &space->nodes.items[i];
    int first = n->class_ == SMG_CLASS_REDUCE ? n->operand[0].producer : -1;
    const smg_snode *f = first >= 0 ? &space->nodes.items[first] : NULL;
    if (f == NULL || f->class_ != SMG_CLASS_REDUCE || f->layer_count > 0 || n->operand_count != 1) return -1;
    if (f->operand_count != 1 || smg_op_combine(f->op) != smg_op_combine(n->op) || f->type != n->type) return -1;
    return smg_space_only_reader(space, first) == i ? first : -1;
}

void smg_space_join_reductions(smg_space *space) {
    for (int i = 0; i < space->nodes.count; i++) {
        int first = reduced_before(space, i);
        if (first < 0) continue;
        smg_snode *n = &space->nodes.items[i], *f = &space->nodes.items[first];
        n->iterates |= f->iterates;
        n->operand[0] = f->operand[0];
        f->iterates = f->result = 0;
        f->operand_count = 0;
        f->streamed = f->idle = true;
    }
}
