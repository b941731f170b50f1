/* A product with a vector uses each element of its other factor once, so that nothing is shared and nothing adds up in
 * matrices: it is a multiplication for each element, and a sum. As such it goes by in the same slices as the other sums
 * of its space, and lanes have what neighbours in memory, whatever axis is summed up. */
#include "slice/slice.h"

static bool is_vector_product(const smg_space *space, const smg_snode *n) {
    smg_axis_set a = smg_space_operand_axes(space, &n->operand[0]), b = smg_space_operand_axes(space, &n->operand[1]);
    smg_axis_set both = a | b;
    return (a == both || b == both) && n->iterates == both && n->result != both && n->layer_count == 0 &&
           smg_type_kind(n->type) == SMG_KIND_FLOAT;
}

static bool is_sum(const smg_snode *n) {
    bool folds = n->class_ == SMG_CLASS_REDUCE || n->class_ == SMG_CLASS_CONTRACT;
    return folds && !n->streamed && n->iterates != n->result;
}

/* Does some sum need another, so that they are a chain? Products alone have schedules of their own. */
static smg_status is_chain(const smg_space *space, smg_arena *arena, bool *out_is) {
    bool *behind = SMG_ARENA_ARRAY(arena, bool, (size_t)space->nodes.count + 1);
    *out_is = false;
    if (behind == NULL) return SMG_MEMORY;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        bool needs = false;
        for (int k = 0; k < n->operand_count; k++)
            needs = needs || (n->operand[k].producer >= 0 && behind[n->operand[k].producer]);
        *out_is = *out_is || (needs && is_sum(n));
        behind[i] = needs || is_sum(n);
    }
    return SMG_OK;
}

/* Products of the space; 0 where some product is none with a vector. */
static int count_products(const smg_space *space) {
    int count = 0;
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if (n->class_ != SMG_CLASS_CONTRACT) continue;
        if (n->operand_count != 2 || !is_vector_product(space, n)) return 0;
        count++;
    }
    return count;
}

static bool is_streamed(const smg_space *space, const smg_soperand *o) {
    return o->producer < 0 || space->nodes.items[o->producer].streamed;
}

/* What multiplies the factors of a product. */
static smg_snode multiplication(const smg_space *space, const smg_snode *product) {
    smg_snode map = *product;
    map.op = SMG_OP_MUL;
    map.class_ = SMG_CLASS_MAP;
    map.result = product->iterates;
    map.streamed = is_streamed(space, &product->operand[0]) && is_streamed(space, &product->operand[1]);
    map.output = false;
    map.store = -1;
    return map;
}

static void move_operands(smg_snode *io, const int *now) {
    for (int k = 0; k < io->operand_count; k++)
        if (io->operand[k].producer >= 0) io->operand[k].producer = now[io->operand[k].producer];
}

/* now[i]: where node i is, behind what multiplies for it. What reads copies stands in front of them. */
static void split_products(const smg_space *space, smg_snode *to, int *now) {
    for (int i = 0, count = 0; i < space->nodes.count; i++) {
        count += space->nodes.items[i].class_ == SMG_CLASS_CONTRACT;
        now[i] = count++;
    }
    for (int i = 0; i < space->nodes.count; i++) {
        smg_snode n = space->nodes.items[i];
        if (n.class_ == SMG_CLASS_CONTRACT) {
            smg_snode *map = &to[now[i] - 1];
            *map = multiplication(space, &n);
            move_operands(map, now);
            n.op = SMG_OP_SUM;
            n.class_ = SMG_CLASS_REDUCE;
            n.operand[0] = (smg_soperand){.producer = now[i] - 1, .view = -1};
            n.operand_count = 1;
        } else {
            move_operands(&n, now);
        }
        to[now[i]] = n;
    }
}

smg_status smg_slice_multiplied(const smg_space *space, smg_arena *arena, smg_space **out_space) {
    bool chain;
    int products = space->repeat.count == 0 ? count_products(space) : 0;
    size_t count = (size_t)(space->nodes.count + products), leaves = (size_t)space->leaves.count;
    *out_space = NULL;
    if (products == 0) return SMG_OK;
    SMG_TRY(is_chain(space, arena, &chain));
    if (!chain) return SMG_OK;
    smg_space *made = SMG_ARENA_NEW(arena, smg_space);
    smg_snode *nodes = SMG_ARENA_ARRAY(arena, smg_snode, count);
    smg_sleaf *leaf = SMG_ARENA_ARRAY(arena, smg_sleaf, leaves + 1);
    int *now = SMG_ARENA_ARRAY(arena, int, count);
    if (made == NULL || nodes == NULL || leaf == NULL || now == NULL) return SMG_MEMORY;
    split_products(space, nodes, now);
    *made = *space;
    made->form = SMG_SPACE_MULTIPLIED;
    made->nodes.items = nodes;
    made->nodes.count = made->nodes.capacity = (int)count;
    made->leaves.items = leaf;
    made->leaves.capacity = space->leaves.count + 1;
    for (int i = 0; i < space->leaves.count; i++) {
        leaf[i] = space->leaves.items[i];
        if (leaf[i].what == SMG_SLEAF_VALUE) leaf[i].index = now[leaf[i].index];
    }
    *out_space = made;
    return SMG_OK;
}
