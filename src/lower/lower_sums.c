/* Sums of products. Where two products are only added to each other, the later one goes on in the registers of the
 * earlier one, and the addition is gone: a(x) + b(y) takes as many sums as a(x). */
#include "lower/lower_internal.h"

/* The product whose sums are the node's value; -1. */
static int product_behind(const lowering *l, int node) {
    smg_expr value = l->node[node].value;
    const smg_expr_node *n = value != SMG_EXPR_NONE ? smg_expr_get(l->k->exprs, value) : NULL;
    if (n == NULL || n->prim != SMG_PRIM_LEAF) return -1;
    int owner = l->leaf_node.items[n->leaf];
    bool product = owner >= 0 && l->space->nodes.items[owner].class_ == SMG_CLASS_CONTRACT;
    return product && l->node[owner].leaf == n->leaf ? owner : -1;
}

static bool adds(const lowering *l, const smg_snode *n, smg_expr x, smg_expr y) {
    smg_expr operand[3] = {x, y, SMG_EXPR_NONE};
    smg_expr sum = smg_op_expr(l->k->exprs, n->op, n->type, operand);
    return sum != SMG_EXPR_NONE && smg_expr_get(l->k->exprs, sum)->prim == SMG_PRIM_ADD;
}

void lower_go_on(lowering *l, int product) {
    int sum = product_behind(l, product) == product ? smg_space_only_reader(l->space, product) : -1;
    if (l->s->temporal >= 0 || sum < 0) return;
    const smg_snode *n = &l->space->nodes.items[sum];
    if (n->class_ != SMG_CLASS_MAP || n->operand_count != 2 || n->layer_count > 0) return;
    int other = n->operand[n->operand[0].producer == product ? 1 : 0].producer;
    int earlier = other >= 0 && smg_space_only_reader(l->space, other) == sum ? product_behind(l, other) : -1;
    if (earlier < 0 || l->space->nodes.items[earlier].result != l->space->nodes.items[product].result) return;
    if (!adds(l, n, l->node[earlier].value, l->node[product].value)) return;
    l->node[product].goes_on = true;
    l->node[product].tile = l->node[earlier].tile;
    l->node[product].value = l->node[sum].value = l->node[earlier].value;
}
