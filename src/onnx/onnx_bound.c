/* Sizes that are the same up to some value of a symbol, or where it is a multiple. positions[:sequence] has
 * min(sequence, 512) rows; where that must equal sequence, the file says that sequences have at most 512 elements. Such
 * a bound is found by bisection, and the conversion starts again with it: the run then refuses what the file itself
 * could not compute. Parts of 8 of a sequence have 8*floor(sequence/8) elements; where that must equal sequence, the
 * file says that it is a multiple of 8. The last rows of a mask are as many as asked for where it has no fewer: it is
 * taken to have as many. */
#include <stdio.h>

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

bool smg_onnx_bound_until_equal(smg_onnx_build *b, smg_size x, smg_size y, int64_t least) {
    int64_t best = least - 1;
    int symbol = 0;
    for (int i = 0; i < smg_size_symbol_count(b->sizes); i++) {
        int64_t bound = largest_bound(b, i, x, y);
        if (bound <= best) continue;
        best = bound;
        symbol = i;
    }
    const char *name = smg_arena_string(b->arena, smg_size_symbol_name(b->sizes, symbol));
    smg_onnx_bound *row = best >= least && name ? SMG_ARRAY_PUSH(b->arena, &b->bounds) : NULL;
    if (!row) return false;
    *row = (smg_onnx_bound){name, best};
    b->restart = true;
    return true;
}

/* ---- multiples, other symbols ------------------------------------------------------------------- */

#define LARGEST_PERIOD 4096

static const char *multiple_text(smg_onnx_build *b, const char *symbol, int64_t of) {
    char text[256];
    int length = snprintf(text, sizeof text, "%lld*%s_over_%lld", (long long)of, symbol, (long long)of);
    return length < (int)sizeof text ? smg_arena_string(b->arena, text) : NULL;
}

/* Equal when the symbol is what the text says? */
static bool equal_at(smg_onnx_build *b, const char *symbol, const char *same_as, smg_size x, smg_size y) {
    smg_arena *arena = NULL;
    smg_sizes *pool = NULL;
    smg_size size = SMG_SIZE_NONE;
    bool equal = false;
    if (smg_arena_create(b->ctx, &arena) == SMG_OK && smg_sizes_create(arena, &pool) == SMG_OK &&
        smg_size_parse(pool, &same_as, &size) == SMG_OK && smg_size_define(pool, symbol, size) == SMG_OK) {
        smg_size p = smg_size_import(pool, b->sizes, x), q = smg_size_import(pool, b->sizes, y);
        equal = p >= 0 && p == q;
    }
    smg_arena_destroy(arena);
    return equal;
}

bool smg_onnx_symbol_until_equal(smg_onnx_build *b, smg_size x, smg_size y, const char **out_symbol,
                                 const char **out_other) {
    for (int i = smg_size_symbol_count(b->sizes) - 1; i > 0; i--)
        for (int k = 0; k < i; k++) {
            *out_symbol = smg_size_symbol_name(b->sizes, i);
            *out_other = smg_size_symbol_name(b->sizes, k);
            if (equal_at(b, *out_symbol, *out_other, x, y)) return true;
        }
    return false;
}

bool smg_onnx_multiple_until_equal(smg_onnx_build *b, smg_size x, smg_size y, const char **out_symbol,
                                   const char **out_multiple) {
    smg_size difference = smg_size_sub(b->sizes, x, y);
    for (int i = 0; i < smg_size_symbol_count(b->sizes) && difference >= 0; i++) {
        const char *symbol = smg_size_symbol_name(b->sizes, i);
        int64_t period = smg_size_period(b->sizes, difference, i);
        if (period > LARGEST_PERIOD) continue;
        for (int64_t of = 2; of <= period; of++) {
            const char *multiple = period % of == 0 ? multiple_text(b, symbol, of) : NULL;
            if (!multiple || !equal_at(b, symbol, multiple, x, y)) continue;
            *out_symbol = symbol;
            *out_multiple = multiple;
            return true;
        }
    }
    return false;
}
