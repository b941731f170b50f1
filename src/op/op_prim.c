/* The scalar primitives and the combines: prim.def as a table, and their values in double. Integers
 * are exact in double up to 2^53, their products modulo 2^32 beyond; integer division truncates and a division by
 * zero gives 0, as no device promises anything there. */
#include "op/op_private.h"

#include <math.h>

typedef struct prim_row {
    const char *word;
    int arity;
    prim_result result;
    double cost;
    const char *glsl;
    unsigned laws;
} prim_row;

static const prim_row prim_rows[SMG_PRIM_COUNT] = {
#define LAW(name) (unsigned)SMG_LAW_##name
#define PRIM(id, word, arity, result, cost, c, glsl, laws)                                                             \
    [SMG_PRIM_##id] = {word, arity, PRIM_RESULT_##result, cost, glsl, laws},
#include "op/prim.def"
#undef PRIM
#undef LAW
};

int smg_prim_arity(smg_prim prim) {
    return prim < SMG_PRIM_COUNT ? prim_rows[prim].arity : 0;
}

const char *smg_prim_word(smg_prim prim) {
    return prim < SMG_PRIM_COUNT ? prim_rows[prim].word : "?";
}

const char *smg_prim_glsl(smg_prim prim) {
    return prim < SMG_PRIM_COUNT ? prim_rows[prim].glsl : "";
}

double smg_prim_cost(smg_prim prim) {
    return prim < SMG_PRIM_COUNT ? prim_rows[prim].cost : 0.0;
}

bool smg_prim_obeys(smg_prim prim, smg_law law) {
    return prim < SMG_PRIM_COUNT && (prim_rows[prim].laws & (unsigned)law) != 0;
}

prim_result smg_prim_result(smg_prim prim) {
    return prim < SMG_PRIM_COUNT ? prim_rows[prim].result : PRIM_RESULT_NONE;
}

bool smg_prim_find(const char *word, size_t length, smg_prim *out_prim) {
    for (int i = 0; i < SMG_PRIM_COUNT; i++) {
        if (strlen(prim_rows[i].word) != length || memcmp(prim_rows[i].word, word, length) != 0) continue;
        *out_prim = (smg_prim)i;
        return true;
    }
    return false;
}

static double eval_as_written(smg_prim prim, double x, double y, double z) {
    switch (prim) {
#define PRIM(id, word, arity, result, cost, c, glsl, laws)                                                             \
    case SMG_PRIM_##id: return (c);
#include "op/prim.def"
#undef PRIM
    case SMG_PRIM_COUNT: break;
    }
    (void)z;
    return 0.0;
}

bool smg_prim_is_step(smg_prim prim) {
    static const smg_prim steps[] = {SMG_PRIM_FLOOR, SMG_PRIM_CEIL, SMG_PRIM_ROUND, SMG_PRIM_TO_INT};
    for (size_t i = 0; i < SMG_COUNT_OF(steps); i++)
        if (steps[i] == prim) return true;
    return false;
}

bool smg_prim_compares(smg_prim prim) {
    return prim == SMG_PRIM_LT || prim == SMG_PRIM_LE || prim == SMG_PRIM_EQ;
}

static double to_integer(double value) {
    if (!(value >= -2147483648.0)) return value < 0.0 ? -2147483648.0 : 0.0; /* NaN: 0 */
    return value > 2147483647.0 ? 2147483647.0 : trunc(value);
}

double smg_wrap_i32(double value) {
    if (value >= -2147483648.0 && value <= 2147483647.0) return value;
    if (!isfinite(value)) return value; /* what a maximum of nothing is */
    double low = fmod(value, 4294967296.0);
    if (low >= 2147483648.0) return low - 4294967296.0;
    return low < -2147483648.0 ? low + 4294967296.0 : low;
}

/* Above 2^53 a double does not hold the product of two i32, only what is left of it in 32 bits. */
static bool multiply_exactly(double x, double y, double *out_low) {
    const double exact = 9007199254740992.0, most = 2147483648.0;
    if (fabs(x * y) <= exact || !(fabs(x) <= most && fabs(y) <= most)) return false;
    *out_low = (double)(int32_t)(uint32_t)((uint64_t)(int64_t)x * (uint64_t)(int64_t)y);
    return true;
}

double smg_prim_eval(smg_prim prim, smg_kind kind, double x, double y, double z) {
    double low;
    if (prim == SMG_PRIM_MUL && kind == SMG_KIND_INT && multiply_exactly(x, y, &low)) return low;
    bool division = prim == SMG_PRIM_DIV || prim == SMG_PRIM_MOD;
    if (kind == SMG_KIND_INT && division) {
        if (!(y < 0.0 || y > 0.0)) return 0.0;
        double value = eval_as_written(prim, x, y, z);
        return prim == SMG_PRIM_DIV ? trunc(value) : value;
    }
    if (prim == SMG_PRIM_TO_INT) return to_integer(x);
    return eval_as_written(prim, x, y, z);
}

/* One loop for each primitive: a choice for every element takes longer than most of them. */
static void eval_each(smg_prim prim, const double *xs, const double *ys, const double *zs, int n, double *out) {
    switch (prim) {
#define PRIM(id, word, arity, result, cost, c, glsl, laws)                                                             \
    case SMG_PRIM_##id:                                                                                                \
        for (int i = 0; i < n; i++) {                                                                                  \
            double x = xs[i], y = ys[i], z = zs[i];                                                                    \
            (void)x, (void)y, (void)z;                                                                                 \
            out[i] = (c);                                                                                              \
        }                                                                                                              \
        break;
#include "op/prim.def"
#undef PRIM
    case SMG_PRIM_COUNT: break;
    }
}

void smg_prim_eval_each(smg_prim prim, smg_kind kind, const double *x, const double *y, const double *z, int n,
                        double *out) {
    if (kind != SMG_KIND_INT && prim != SMG_PRIM_TO_INT) {
        eval_each(prim, x, y, z, n, out);
        return;
    }
    for (int i = 0; i < n; i++) out[i] = smg_prim_eval(prim, kind, x[i], y[i], z[i]);
}

/* ---- combines ------------------------------------------------------------------------------- */

typedef struct combine_row {
    const char *word;
    smg_prim prim;
    double identity;
} combine_row;

static const combine_row combine_rows[SMG_COMBINE_COUNT] = {
    [SMG_COMBINE_ADD] = {"add", SMG_PRIM_ADD, 0.0},
    [SMG_COMBINE_MAX] = {"max", SMG_PRIM_MAX, -HUGE_VAL},
    [SMG_COMBINE_MIN] = {"min", SMG_PRIM_MIN, HUGE_VAL},
    [SMG_COMBINE_MUL] = {"mul", SMG_PRIM_MUL, 1.0},
};

const char *smg_combine_word(smg_combine combine) {
    return combine < SMG_COMBINE_COUNT ? combine_rows[combine].word : "?";
}

smg_prim smg_combine_prim(smg_combine combine) {
    return combine < SMG_COMBINE_COUNT ? combine_rows[combine].prim : SMG_PRIM_ADD;
}

double smg_combine_identity(smg_combine combine) {
    return combine < SMG_COMBINE_COUNT ? combine_rows[combine].identity : 0.0;
}
