/* Scalar expressions: nodes in an arena, looked up in an open-addressing table so that equal trees have equal ids.
 * What the laws of a primitive decide is decided when a node is made, so that nobody has to look for it later. Walks
 * are in op_expr_walk.c. */
#include "op/op_private.h"

#include <math.h>

smg_status smg_exprs_create(smg_arena *arena, smg_exprs **out_exprs) {
    *out_exprs = NULL;
    smg_exprs *pool = SMG_ARENA_NEW(arena, smg_exprs);
    if (!pool) return SMG_MEMORY;
    pool->arena = arena;
    pool->table_size = 64;
    pool->table = SMG_ARENA_ARRAY(arena, int32_t, (size_t)pool->table_size);
    pool->summaries = SMG_ARENA_NEW(arena, expr_summaries);
    if (!pool->table || !pool->summaries) return SMG_MEMORY;
    *out_exprs = pool;
    return SMG_OK;
}

bool smg_expr_valid(const smg_exprs *pool, smg_expr e) {
    return pool != NULL && e >= 0 && e < pool->nodes.count;
}

const smg_expr_node *smg_expr_get(const smg_exprs *pool, smg_expr expr) {
    static const smg_expr_node nothing = {.prim = SMG_PRIM_CONST, .arg = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE}};
    return smg_expr_valid(pool, expr) ? &pool->nodes.items[expr] : &nothing;
}

int smg_expr_count(const smg_exprs *pool) {
    return pool->nodes.count;
}

smg_context *smg_exprs_context(const smg_exprs *pool) {
    return smg_arena_context(pool->arena);
}

/* ---- hash-consing --------------------------------------------------------------------------- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash_node(const smg_expr_node *n) {
    uint64_t hash = smg_hash_u64(SMG_HASH_SEED, (uint64_t)n->prim * 4u + (uint64_t)n->kind);
    for (int i = 0; i < 3; i++) hash = smg_hash_u64(hash, (uint64_t)n->arg[i]);
    return smg_hash_u64(smg_hash_u64(hash, bits_of(n->value)), (uint64_t)n->leaf);
}

static bool same_node(const smg_expr_node *a, const smg_expr_node *b) {
    return a->prim == b->prim && a->kind == b->kind && a->arg[0] == b->arg[0] && a->arg[1] == b->arg[1] &&
           a->arg[2] == b->arg[2] && a->leaf == b->leaf && bits_of(a->value) == bits_of(b->value);
}

static bool grow_table(smg_exprs *pool) {
    int size = pool->table_size * 2;
    int32_t *table = SMG_ARENA_ARRAY(pool->arena, int32_t, (size_t)size);
    if (!table) return false;
    uint64_t mask = (uint64_t)(size - 1);
    for (int i = 0; i < pool->nodes.count; i++) {
        uint64_t slot = hash_node(&pool->nodes.items[i]) & mask;
        while (table[slot]) slot = (slot + 1) & mask;
        table[slot] = i + 1;
    }
    pool->table = table;
    pool->table_size = size;
    return true;
}

static smg_expr intern(smg_exprs *pool, const smg_expr_node *node) {
    if (pool->nodes.count * 2 >= pool->table_size && !grow_table(pool)) return SMG_EXPR_NONE;
    uint64_t mask = (uint64_t)(pool->table_size - 1), slot = hash_node(node) & mask;
    for (; pool->table[slot]; slot = (slot + 1) & mask)
        if (same_node(&pool->nodes.items[pool->table[slot] - 1], node)) return pool->table[slot] - 1;
    smg_expr_node *stored = SMG_ARRAY_PUSH(pool->arena, &pool->nodes);
    if (!stored) return SMG_EXPR_NONE;
    *stored = *node;
    pool->table[slot] = pool->nodes.count;
    return pool->nodes.count - 1;
}

smg_expr smg_expr_const(smg_exprs *pool, smg_kind kind, double value) {
    if (!pool) return SMG_EXPR_NONE;
    if (kind == SMG_KIND_BOOL) value = value < 0.0 || value > 0.0 ? 1.0 : 0.0;
    smg_expr_node node = {SMG_PRIM_CONST, kind, {-1, -1, -1}, value, 0};
    return intern(pool, &node);
}

smg_expr smg_expr_leaf(smg_exprs *pool, smg_kind kind, int leaf) {
    if (!pool) return SMG_EXPR_NONE;
    smg_expr_node node = {SMG_PRIM_LEAF, kind, {-1, -1, -1}, 0.0, leaf};
    return intern(pool, &node);
}

/* ---- making, with the simplifications that are exact ---------------------------------------- */

static bool is_const(const smg_exprs *pool, smg_expr e, double value) {
    const smg_expr_node *n = &pool->nodes.items[e];
    return n->prim == SMG_PRIM_CONST && n->value >= value && n->value <= value;
}

static smg_kind result_kind(const smg_exprs *pool, smg_prim prim, smg_expr last) {
    switch (smg_prim_result(prim)) {
    case PRIM_RESULT_FLOAT: return SMG_KIND_FLOAT;
    case PRIM_RESULT_INT: return SMG_KIND_INT;
    case PRIM_RESULT_BOOL: return SMG_KIND_BOOL;
    case PRIM_RESULT_SAME:
    case PRIM_RESULT_NONE: break;
    }
    return pool->nodes.items[last].kind;
}

/* The operand of e when e is `prim` of something. */
static smg_expr operand_of(const smg_exprs *pool, smg_expr e, smg_prim prim) {
    const smg_expr_node *n = &pool->nodes.items[e];
    return n->prim == prim ? n->arg[0] : SMG_EXPR_NONE;
}

/* What `prim` of x and x is, or SMG_EXPR_NONE. x - x is written out because shader compilers take it for 0. */
static smg_expr of_alike(smg_exprs *pool, smg_prim prim, smg_expr x) {
    smg_kind kind = pool->nodes.items[x].kind;
    if (smg_prim_obeys(prim, SMG_LAW_ALIKE_KEEPS)) return kind == result_kind(pool, prim, x) ? x : SMG_EXPR_NONE;
    if (smg_prim_obeys(prim, SMG_LAW_ALIKE_FALSE)) return smg_expr_const(pool, SMG_KIND_BOOL, 0.0);
    if (smg_prim_obeys(prim, SMG_LAW_ALIKE_TRUE)) {
        if (kind != SMG_KIND_FLOAT) return smg_expr_const(pool, SMG_KIND_BOOL, 1.0);
        return smg_expr_make(pool, SMG_PRIM_NOT, smg_expr_make(pool, SMG_PRIM_ISNAN, x, -1, -1), -1, -1);
    }
    if (!smg_prim_obeys(prim, SMG_LAW_ALIKE_ZERO)) return SMG_EXPR_NONE;
    if (kind != SMG_KIND_FLOAT) return smg_expr_const(pool, kind, 0.0);
    smg_expr infinity = smg_expr_const(pool, SMG_KIND_FLOAT, HUGE_VAL);
    smg_expr finite = smg_expr_make(pool, SMG_PRIM_LT, smg_expr_make(pool, SMG_PRIM_ABS, x, -1, -1), infinity, -1);
    return smg_expr_make(pool, SMG_PRIM_SELECT, finite, smg_expr_const(pool, SMG_KIND_FLOAT, 0.0),
                         smg_expr_const(pool, SMG_KIND_FLOAT, nan("")));
}

/* What `prim` of two is when one of them is a number, or both are the same; SMG_EXPR_NONE when no law tells. */
static smg_expr by_law(smg_exprs *pool, smg_prim prim, const smg_expr arg[3]) {
    smg_kind kind = result_kind(pool, prim, arg[1]);
    for (int k = 1; k >= (smg_prim_obeys(prim, SMG_LAW_COMMUTES) ? 0 : 1); k--) {
        if (pool->nodes.items[arg[1 - k]].kind != kind) continue; /* ill-typed, or a comparison: no law of these */
        bool zero = is_const(pool, arg[k], 0.0), one = is_const(pool, arg[k], 1.0);
        if (zero && smg_prim_obeys(prim, SMG_LAW_ZERO_KEEPS)) return arg[1 - k];
        if (one && smg_prim_obeys(prim, SMG_LAW_ONE_KEEPS)) return arg[1 - k];
        if (zero && smg_prim_obeys(prim, SMG_LAW_ZERO_WINS)) return arg[k];
        if (one && smg_prim_obeys(prim, SMG_LAW_ONE_WINS)) return arg[k];
    }
    return arg[0] == arg[1] ? of_alike(pool, prim, arg[0]) : SMG_EXPR_NONE;
}

/* An expression that equals the one to be made and is no longer, or SMG_EXPR_NONE. */
static smg_expr simplify(smg_exprs *pool, smg_prim prim, const smg_expr arg[3]) {
    const smg_expr_node *nodes = pool->nodes.items;
    switch (prim) {
    case SMG_PRIM_SELECT:
        if (arg[1] == arg[2]) return arg[1];
        if (nodes[arg[0]].prim != SMG_PRIM_CONST) return SMG_EXPR_NONE;
        return is_const(pool, arg[0], 0.0) ? arg[2] : arg[1];
    case SMG_PRIM_TO_FLOAT: return nodes[arg[0]].kind == SMG_KIND_FLOAT ? arg[0] : SMG_EXPR_NONE;
    case SMG_PRIM_TO_INT: return nodes[arg[0]].kind == SMG_KIND_INT ? arg[0] : SMG_EXPR_NONE;
    case SMG_PRIM_TO_BOOL: return nodes[arg[0]].kind == SMG_KIND_BOOL ? arg[0] : SMG_EXPR_NONE;
    default: break;
    }
    if (smg_prim_arity(prim) == 2) return by_law(pool, prim, arg);
    return smg_prim_obeys(prim, SMG_LAW_UNDOES_ITSELF) ? operand_of(pool, arg[0], prim) : SMG_EXPR_NONE;
}

smg_expr smg_expr_make(smg_exprs *pool, smg_prim prim, smg_expr a, smg_expr b, smg_expr c) {
    int arity = smg_prim_arity(prim);
    smg_expr arg[3] = {a, arity > 1 ? b : -1, arity > 2 ? c : -1};
    if (!pool || arity == 0) return SMG_EXPR_NONE;
    bool constant = true;
    for (int i = 0; i < arity; i++) {
        if (!smg_expr_valid(pool, arg[i])) return SMG_EXPR_NONE;
        constant = constant && pool->nodes.items[arg[i]].prim == SMG_PRIM_CONST;
    }
    smg_expr_node node = {prim, result_kind(pool, prim, arg[arity - 1]), {arg[0], arg[1], arg[2]}, 0.0, 0};
    if (constant) {
        double value[3] = {0.0, 0.0, 0.0};
        for (int i = 0; i < arity; i++) value[i] = pool->nodes.items[arg[i]].value;
        return smg_expr_const(pool, node.kind, smg_prim_eval(prim, node.kind, value[0], value[1], value[2]));
    }
    smg_expr same = simplify(pool, prim, arg);
    return same != SMG_EXPR_NONE ? same : intern(pool, &node);
}
