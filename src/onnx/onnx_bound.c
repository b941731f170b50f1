/* Sizes that are the same up to some value of a symbol. positions[:sequence] has min(sequence, 512)
 * rows; where that must equal sequence, the file says that sequences have at most 512 elements. Such a
 * bound is found by trying the numbers that the two sizes contain, and the conversion starts again with
 * it: the run then refuses what the file itself could not compute. */
#include "onnx/onnx_build.h"

#define MOST_NUMBERS 16

/* Equal when `symbol` is at most `most`? In a pool of its own, where sizes are simplified under that. */
static bool equal_below(smg_onnx_build *b, int symbol, int64_t most, smg_size x, smg_size y) {
    smg_arena *arena = NULL;
    smg_sizes *pool = NULL;
    bool equal = false;
    if (smg_arena_create(b->ctx, &arena) == SMG_OK && smg_sizes_create(arena, &pool) == SMG_OK) {
        for (int i = 0; i < smg_size_symbol_count(b->sizes); i++) {
            if (smg_size_symbol(pool, smg_size_symbol_name(b->sizes, i)) < 0) break;
            smg_size_symbol_set_max(pool, i,
                                    i == symbol ? most : smg_size_symbol_max(b->sizes, i));
        }
        smg_size p = smg_size_import(pool, b->sizes, x), q = smg_size_import(pool, b->sizes, y);
        equal = p >= 0 && p == q;
    }
    smg_arena_destroy(arena);
    return equal;
}

/* The whole numbers in the text of a size. */
static int numbers_in(const char *text, int count, int64_t *out) {
    for (const char *at = text; *at; at++) {
        bool inside = at > text && ((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '_' ||
                                    (at[-1] >= 'A' && at[-1] <= 'Z') ||
                                    (at[-1] >= '0' && at[-1] <= '9'));
        int64_t value = 0;
        if (inside || *at < '0' || *at > '9') continue;
        for (; *at >= '0' && *at <= '9' && value < SMG_SIZE_UNBOUNDED; at++)
            value = value * 10 + (*at - '0');
        at--;
        if (count < MOST_NUMBERS && value > 1) out[count++] = value;
    }
    return count;
}

bool smg_onnx_bound_until_equal(smg_onnx_build *b, smg_size x, smg_size y) {
    int64_t numbers[MOST_NUMBERS];
    int count = numbers_in(smg_onnx_size_text(b, x), 0, numbers);
    count = numbers_in(smg_onnx_size_text(b, y), count, numbers);
    for (int i = 0; i < smg_size_symbol_count(b->sizes); i++)
        for (int k = 0; k < count; k++) {
            if (numbers[k] >= smg_size_symbol_max(b->sizes, i)) continue;
            if (!equal_below(b, i, numbers[k], x, y)) continue;
            smg_onnx_bound *row = SMG_ARRAY_PUSH(b->arena, &b->bounds);
            const char *name = smg_arena_string(b->arena, smg_size_symbol_name(b->sizes, i));
            if (!row || !name) return false;
            *row = (smg_onnx_bound){name, numbers[k]};
            b->restart = true;
            return true;
        }
    return false;
}
