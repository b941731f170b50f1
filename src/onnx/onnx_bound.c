/* Sizes that are the same up to some value of a symbol. positions[:sequence] has min(sequence, 512)
 * rows; where that must equal sequence, the file says that sequences have at most 512 elements. Such a
 * bound is found by bisection, and the conversion starts again with it: the run then refuses what the file
 * itself could not compute. */
#include "onnx/onnx_build.h"

/* Could every extent that the graph has so far be at least 1 in that pool? */
static bool extents_exist(const smg_onnx_build *b, smg_sizes *pool) {
    for (int i = 0; i < b->graph->nodes.count; i++) {
        const smg_node *node = &b->graph->nodes.items[i];
        for (int k = 0; k < node->rank; k++) {
            int64_t high = 0;
            smg_size_bounds(pool, smg_size_import(pool, b->sizes, node->dims[k]), NULL, &high);
            if (high < 1) return false;
        }
    }
    return true;
}

/* Equal when `symbol` is at most `most`, and not only because nothing is left of some value? In a pool of its own,
 * where sizes are simplified under that. */
static bool equal_below(smg_onnx_build *b, int symbol, int64_t most, smg_size x, smg_size y, bool exists) {
    smg_arena *arena = NULL;
    smg_sizes *pool = NULL;
    bool equal = false;
    if (smg_arena_create(b->ctx, &arena) == SMG_OK && smg_sizes_create(arena, &pool) == SMG_OK) {
        for (int i = 0; i < smg_size_symbol_count(b->sizes); i++) {
            if (smg_size_symbol(pool, smg_size_symbol_name(b->sizes, i)) < 0) break;
            smg_size_symbol_set_max(pool, i, i == symbol ? most : smg_size_symbol_max(b->sizes, i));
        }
        smg_size p = smg_size_import(pool, b->sizes, x), q = smg_size_import(pool, b->sizes, y);
        equal = p >= 0 && p == q && (!exists || extents_exist(b, pool));
    }
    smg_arena_destroy(arena);
    return equal;
}

/* The largest bound of the symbol below which they are equal; 0: none. What holds below a bound holds below
 * a smaller one. */
static int64_t largest_bound(smg_onnx_build *b, int symbol, smg_size x, smg_size y) {
    int64_t holds = 1, fails = smg_size_symbol_max(b->sizes, symbol);
    if (fails <= 1 || !equal_below(b, symbol, holds, x, y, false)) return 0;
    while (fails - holds > 1) {
        int64_t middle = holds + (fails - holds) / 2;
        *(equal_below(b, symbol, middle, x, y, false) ? &holds : &fails) = middle;
    }
    return equal_below(b, symbol, holds, x, y, true) ? holds : 0;
}

bool smg_onnx_bound_until_equal(smg_onnx_build *b, smg_size x, smg_size y) {
    int64_t best = 0;
    int symbol = 0;
    for (int i = 0; i < smg_size_symbol_count(b->sizes); i++) {
        int64_t bound = largest_bound(b, i, x, y);
        if (bound <= best) continue;
        best = bound;
        symbol = i;
    }
    const char *name = smg_arena_string(b->arena, smg_size_symbol_name(b->sizes, symbol));
    smg_onnx_bound *row = best > 0 && name ? SMG_ARRAY_PUSH(b->arena, &b->bounds) : NULL;
    if (!row) return false;
    *row = (smg_onnx_bound){name, best};
    b->restart = true;
    return true;
}
