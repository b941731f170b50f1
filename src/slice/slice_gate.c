/* The numeric gate: t over a few elements at the old aggregates, corrected, must equal t at the new ones; what is made
 * of sums of terms must equal the sum.
 *
 * Values are drawn in several ways, because an update can be right for positive numbers alone: a factor that may be
 * negative, a running sum that is 0, a mask that is off. A trial whose recomputation is no number, or leaves the range
 * of doubles on its way, says nothing. Too few trials that say something refuse the update. */
#include <math.h>

#include "slice/slice_internal.h"

enum { TRIALS_A_WAY = 8, ELEMENTS = 3, LEAST_TRIALS = 4 };

typedef enum sign_choice { POSITIVE, NEGATIVE, MIXED } sign_choice;

/* Magnitudes are 2 to the power of something between `least` and `most`. */
typedef struct way {
    double least, most;
    sign_choice sign;
    bool zeros; /* every third one is 0 */
} way;

static const way ways[] = {
    {-2, 1.2, POSITIVE, false}, {-2, 1.2, NEGATIVE, false}, {-2, 1.2, MIXED, false}, {-2, 1.2, MIXED, true},
    {-8, -1, MIXED, false},     {2, 6, MIXED, false},       {7, 20, MIXED, true},
};

typedef struct gate {
    const smg_exprs *pool;
    const way *way;
    double *leaf;
    double *value;  /* by expression, where its draw is the one at hand: expressions share most of what they have */
    uint32_t *draw; /* by expression; 0: none yet */
    uint32_t draws;
    uint64_t state;
    bool lost; /* some value left the range of doubles */
} gate;

static uint32_t bits(gate *g) {
    g->state = g->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g->state >> 33);
}

static double draw(gate *g) {
    const way *w = g->way;
    uint32_t choice = bits(g);
    double size = exp2(w->least + (w->most - w->least) * (double)bits(g) / (double)(UINT32_MAX >> 1));
    if (w->zeros && choice % 3 == 0) return 0.0;
    return w->sign == NEGATIVE || (w->sign == MIXED && (choice & 64) != 0) ? -size : size;
}

/* A large constant (a mask's -3.4e38) would drown what the gate compares, or overflow; the identity does not depend on
 * its value, so another of its sign stands in. */
static double tame(const smg_expr_node *n) {
    if (n->kind != SMG_KIND_FLOAT || fabs(n->value) <= 8.0 || isnan(n->value)) return n->value;
    double size = isinf(n->value) ? 40.0 : log10(fabs(n->value));
    return copysign(1.0 + size / 40.0, n->value);
}

/* What was drawn, as a leaf of this kind holds it: whole numbers are small, conditions hold as often as not. */
static double of_kind(smg_kind kind, double drawn) {
    if (kind == SMG_KIND_BOOL) return fmod(floor(fabs(drawn) * 1024.0), 2.0);
    return kind == SMG_KIND_INT ? trunc(2.0 * drawn) : drawn;
}

static bool beyond(const smg_expr_node *n, double value) {
    double size = fabs(value);
    bool never_zero = n->prim == SMG_PRIM_EXP || n->prim == SMG_PRIM_POW;
    if (n->kind != SMG_KIND_FLOAT) return false;
    return size > 1e150 || (size < 1e-150 && (size > 0 || never_zero));
}

static double evaluate(gate *g, smg_expr e);

static double evaluate_anew(gate *g, smg_expr e) {
    const smg_expr_node *n = smg_expr_get(g->pool, e);
    double x[3] = {0.0, 0.0, 0.0};
    if (n->prim == SMG_PRIM_CONST) return tame(n);
    if (n->prim == SMG_PRIM_LEAF) return of_kind(n->kind, g->leaf[n->leaf]);
    for (int i = 0, arity = smg_prim_arity(n->prim); i < arity; i++) x[i] = evaluate(g, n->arg[i]);
    double value = smg_prim_eval(n->prim, n->kind, x[0], x[1], x[2]);
    g->lost = g->lost || beyond(n, value);
    return value;
}

static double evaluate(gate *g, smg_expr e) {
    if (e < 0) return evaluate_anew(g, e);
    if (g->draw[e] != g->draws) {
        g->value[e] = evaluate_anew(g, e);
        g->draw[e] = g->draws;
    }
    return g->value[e];
}

typedef enum verdict { SAYS_NOTHING, AGREES, DIFFERS } verdict;

/* About an update, or about terms. */
typedef struct question {
    const smg_slice_roles *roles;
    smg_combine combine;
    smg_expr now, before; /* the operand at the new and the old aggregates */
    const smg_update *update;
    const smg_terms *terms;
    int leaf_count;
    verdict (*try_once)(gate *g, const struct question *q);
} question;

static void draw_varying(gate *g, const smg_slice_roles *r) {
    g->draws++;
    for (int i = 0; i < r->count; i++)
        if (r->role[i] == SMG_ROLE_VARIES) g->leaf[i] = draw(g);
}

static verdict try_update(gate *g, const question *q) {
    const smg_slice_roles *r = q->roles;
    double old = smg_combine_identity(q->combine), now = old, size = 0.0, count = 0.0;
    smg_prim fold = smg_combine_prim(q->combine);
    g->lost = false;
    for (int i = 0; i < q->leaf_count; i++) g->leaf[i] = draw(g);
    for (int c = 0; c < ELEMENTS; c++) {
        draw_varying(g, r);
        double then = evaluate(g, q->before), value = evaluate(g, q->now);
        old = smg_prim_eval(fold, SMG_KIND_FLOAT, old, then, 0);
        now = smg_prim_eval(fold, SMG_KIND_FLOAT, now, value, 0);
        if (q->update->counted != SMG_EXPR_NONE) count += evaluate(g, q->update->counted);
        size += fabs(value);
        if (q->combine != SMG_COMBINE_ADD) size += fabs(then);
    }
    if (g->lost || !isfinite(old) || !isfinite(now)) return SAYS_NOTHING;
    g->leaf[smg_expr_get(g->pool, q->update->t)->leaf] = old;
    if (q->update->n != SMG_EXPR_NONE) g->leaf[smg_expr_get(g->pool, q->update->n)->leaf] = count;
    g->draws++; /* leaves are others now */
    double corrected = evaluate(g, q->update->value);
    return fabs(corrected - now) <= 1e-9 * size ? AGREES : DIFFERS; /* a corrected NaN differs */
}

static int largest_leaf(const smg_slice_roles *r, const smg_update *update) {
    int largest = r->count - 1, leaf = smg_expr_get(r->pool, update->t)->leaf;
    if (leaf > largest) largest = leaf;
    if (update->n != SMG_EXPR_NONE) leaf = smg_expr_get(r->pool, update->n)->leaf;
    if (leaf > largest) largest = leaf;
    for (int i = 0; i < r->count; i++) {
        if (r->old[i] == SMG_EXPR_NONE) continue;
        leaf = smg_expr_get(r->pool, r->old[i])->leaf;
        if (leaf > largest) largest = leaf;
    }
    return largest;
}

static verdict try_terms(gate *g, const question *q) {
    const smg_terms *t = q->terms;
    double sum = 0.0, made = 0.0, size = 0.0, part[SMG_TERMS] = {0.0};
    g->lost = false;
    for (int i = 0; i < q->leaf_count; i++) g->leaf[i] = draw(g);
    for (int c = 0; c < ELEMENTS; c++) {
        draw_varying(g, q->roles);
        sum += evaluate(g, q->now);
        for (int i = 0; i < t->count; i++) part[i] += evaluate(g, t->summed[i]);
    }
    for (int i = 0; i < t->count; i++) {
        double term = part[i] * evaluate(g, t->factor[i]);
        made += term;
        size += fabs(term);
    }
    if (g->lost || !isfinite(sum)) return SAYS_NOTHING;
    return fabs(made - sum) <= 1e-9 * (size + fabs(sum)) ? AGREES : DIFFERS; /* a NaN of the terms differs */
}

static void largest_visited(void *user, int leaf) {
    int *largest = user;
    if (leaf > *largest) *largest = leaf;
}

static const char *ask(gate *g, const question *q) {
    int agreed = 0;
    for (size_t w = 0; w < SMG_COUNT_OF(ways); w++) {
        g->way = &ways[w];
        for (int trial = 0; trial < TRIALS_A_WAY; trial++) {
            verdict v = q->try_once(g, q);
            if (v == DIFFERS) return "what was derived disagrees with recomputation";
            agreed += v == AGREES;
        }
    }
    return agreed >= LEAST_TRIALS ? NULL : "too few of the values drawn give numbers to compare what was derived with";
}

/* ---- what was asked before ---------------------------------------------------------------------------- */

/* One expression of a question. Others are known by when they were met, from 1 on, and so are leaves. */
typedef struct word {
    int32_t prim, kind, role, leaf;
    int32_t arg[4];
    double value;
} word;

/* A question as words: what programs that number expressions and leaves otherwise ask alike. */
typedef struct wording {
    const question *q;
    int *met, *leaf_met; /* by number; 0: not yet */
    int leaves;
    word *words;
    int count;
} wording;

static int say(wording *w, smg_expr e) {
    if (e == SMG_EXPR_NONE) return 0;
    if (w->met[e] != 0) return w->met[e];
    const smg_slice_roles *r = w->q->roles;
    const smg_expr_node *n = smg_expr_get(r->pool, e);
    word spoken = {.prim = (int32_t)n->prim, .kind = (int32_t)n->kind};
    for (int i = 0; i < smg_prim_arity(n->prim); i++) spoken.arg[i] = say(w, n->arg[i]);
    if (n->prim == SMG_PRIM_CONST) spoken.value = n->value;
    if (n->prim == SMG_PRIM_LEAF) {
        if (w->leaf_met[n->leaf] == 0) w->leaf_met[n->leaf] = ++w->leaves;
        spoken.leaf = w->leaf_met[n->leaf];
        spoken.role = n->leaf < r->count ? (int32_t)r->role[n->leaf] : 0;
    }
    w->words[w->count] = spoken;
    w->met[e] = ++w->count;
    return w->count;
}

/* Behind all that it is about: what is asked of it. */
static void say_all(wording *w) {
    const question *q = w->q;
    word about[SMG_TERMS + 1] = {{.prim = -1, .kind = (int32_t)q->combine, .leaf = q->terms != NULL}};
    int count = 1;
    about[0].arg[0] = say(w, q->now);
    about[0].arg[1] = say(w, q->before);
    if (q->update != NULL) {
        const smg_expr part[] = {q->update->t, q->update->n, q->update->value, q->update->counted};
        for (int i = 0; i < 4; i++) about[1].arg[i] = say(w, part[i]);
        count = 2;
    }
    for (int i = 0; q->terms != NULL && i < q->terms->count; i++, count++) {
        about[count].arg[0] = say(w, q->terms->summed[i]);
        about[count].arg[1] = say(w, q->terms->factor[i]);
    }
    for (int i = 0; i < count; i++) w->words[w->count++] = about[i];
}

static smg_status ask_anew(question *q, const char **out_why) {
    smg_context *ctx = smg_exprs_context(q->roles->pool);
    size_t leaves = (size_t)q->leaf_count, count = (size_t)smg_expr_count(q->roles->pool);
    gate g = {.pool = q->roles->pool,
              .state = SMG_HASH_SEED,
              .leaf = smg_alloc(ctx, leaves, sizeof(double)),
              .value = smg_alloc(ctx, count, sizeof(double)),
              .draw = smg_alloc(ctx, count, sizeof(uint32_t))};
    bool room = g.leaf != NULL && g.value != NULL && g.draw != NULL;
    if (room) *out_why = ask(&g, q);
    smg_free(ctx, g.leaf, leaves * sizeof(double));
    smg_free(ctx, g.value, count * sizeof(double));
    smg_free(ctx, g.draw, count * sizeof(uint32_t));
    return room ? SMG_OK : SMG_MEMORY;
}

static smg_status ask_once(question *q, const wording *w, const char **out_why) {
    size_t bytes = (size_t)w->count * sizeof(*w->words);
    void *known;
    if (smg_map_get(q->roles->asked, w->words, bytes, &known)) {
        *out_why = known;
        return SMG_OK;
    }
    SMG_TRY(ask_anew(q, out_why));
    return smg_map_set(q->roles->asked, w->words, bytes, (void *)*out_why);
}

static smg_status ask_all(question *q, const char **out_why) {
    if (q->roles->asked == NULL) return ask_anew(q, out_why);
    smg_context *ctx = smg_exprs_context(q->roles->pool);
    size_t leaves = (size_t)q->leaf_count, count = (size_t)smg_expr_count(q->roles->pool),
           words = count + SMG_TERMS + 1;
    wording w = {.q = q,
                 .met = smg_alloc(ctx, count, sizeof(int)),
                 .leaf_met = smg_alloc(ctx, leaves, sizeof(int)),
                 .words = smg_alloc(ctx, words, sizeof(word))};
    smg_status status = w.met != NULL && w.leaf_met != NULL && w.words != NULL ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK) {
        say_all(&w);
        status = ask_once(q, &w, out_why);
    }
    smg_free(ctx, w.met, count * sizeof(int));
    smg_free(ctx, w.leaf_met, leaves * sizeof(int));
    smg_free(ctx, w.words, words * sizeof(word));
    return status;
}

smg_status slice_gate_terms(const smg_slice_roles *r, smg_expr expr, const smg_terms *terms, const char **out_why) {
    int largest = r->count;
    for (int i = 0; i < terms->count; i++) {
        smg_expr_leaves(r->pool, terms->summed[i], largest_visited, &largest);
        smg_expr_leaves(r->pool, terms->factor[i], largest_visited, &largest);
    }
    question q = {.roles = r,
                  .now = expr,
                  .before = SMG_EXPR_NONE,
                  .terms = terms,
                  .leaf_count = largest + 1,
                  .try_once = try_terms};
    SMG_TRY(smg_context_status(smg_exprs_context(r->pool)));
    return ask_all(&q, out_why);
}

smg_status slice_gate(const smg_slice_roles *r, smg_combine combine, smg_expr expr, const smg_update *update,
                      const char **out_why) {
    question q = {.roles = r, .combine = combine, .now = expr, .update = update, .try_once = try_update};
    q.leaf_count = largest_leaf(r, update) + 1;
    q.before = smg_expr_substitute(r->pool, expr, r->old, r->count);
    return q.before != SMG_EXPR_NONE ? ask_all(&q, out_why) : SMG_MEMORY;
}
