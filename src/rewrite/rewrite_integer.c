/* Products of integers as what they mean: aligned operands, a product of elements and sums. Product kernels
 * stage floats; integers of more than 24 bits would not survive that. */
#include "rewrite/rewrite_internal.h"

static int find(const char *letters, char letter) {
    const char *at = strchr(letters, letter);
    return at ? (int)(at - letters) : -1;
}

/* Letters of the result, then those that are summed; their number, or -1 when there are too many. */
static int all_letters(const smg_node *node, char out[SMG_MAX_RANK + 1]) {
    int count = (int)strlen(node->label[2]);
    memcpy(out, node->label[2], (size_t)count + 1);
    for (const char *at = node->label[0]; *at; at++) {
        if (find(out, *at) >= 0) continue;
        if (count == SMG_MAX_RANK) return -1;
        out[count++] = *at;
        out[count] = '\0';
    }
    return count;
}

/* Operand k with an axis for every letter, of extent 1 where it has none; -1 after a failure. */
static smg_node_id align(rewriter *r, const smg_node *node, int k, const char *letters, smg_size *io_dims) {
    const smg_node source = *smg_rewriter_operand(r, node, k);
    smg_node turned = {.op = SMG_OP_TRANSPOSE, .type = source.type, .operand_count = 1, .name = ""};
    smg_node wide = {.op = SMG_OP_RESHAPE, .type = source.type, .operand_count = 1, .name = ""};
    turned.operand[0] = node->operand[k];
    for (const char *at = letters; *at; at++) {
        int axis = find(node->label[k], *at);
        wide.dims[wide.rank] = axis >= 0 ? source.dims[axis] : smg_size_const(r->g->sizes, 1);
        if (axis >= 0) {
            io_dims[wide.rank] = source.dims[axis];
            turned.perm[turned.rank] = axis;
            turned.dims[turned.rank++] = source.dims[axis];
        }
        wide.rank++;
    }
    wide.operand[0] = smg_rewriter_add(r, &turned);
    return wide.operand[0] < 0 ? -1 : smg_rewriter_add(r, &wide);
}

static bool integer_product(rewriter *r, smg_node *node, smg_node_id *out_same) {
    char letters[SMG_MAX_RANK + 1];
    (void)out_same;
    if (node->op != SMG_OP_CONTRACT || smg_type_kind(node->type) != SMG_KIND_INT) return false;
    int count = all_letters(node, letters), kept = (int)strlen(node->label[2]);
    if (count < 0) return false;
    smg_node product = {.op = SMG_OP_MUL, .type = node->type, .rank = count, .operand_count = 2, .name = ""};
    for (int k = 0; k < 2; k++) {
        product.operand[k] = align(r, node, k, letters, product.dims);
        if (product.operand[k] < 0) return false;
    }
    for (int rank = count; rank > kept; rank--) {
        smg_node sum = {
            .op = SMG_OP_SUM, .type = node->type, .rank = rank - 1, .axis = rank - 1, .operand_count = 1, .name = ""};
        memcpy(sum.dims, product.dims, sizeof sum.dims);
        sum.dims[rank - 1] = 0;
        sum.operand[0] = smg_rewriter_add(r, &product);
        if (sum.operand[0] < 0) return false;
        product = sum;
    }
    product.name = node->name;
    *node = product;
    return true;
}

const rewrite_rule smg_integer_rules[] = {
    {"integer product as sums", integer_product},
};
const int smg_integer_rule_count = (int)SMG_COUNT_OF(smg_integer_rules);
