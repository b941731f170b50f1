/* Every MAP and REDUCE row of op.def, products, gathers and views, each as a graph of its own: plan, interpreter,
 * reference; sizes 1, primes, around tiles; every target. A new row is tested without a line here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/check_plan.h"

#define LIMIT 32
#define TOLERANCE 2e-5

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *target[LIMIT];
    int targets, next, checked;
} fixture;

static int setup(void **state) {
    static const char *const named[] = {"lavapipe", "h200", "careful", "navi31", "dg2", "adreno740", "m1"};
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    for (size_t i = 0; i < SMG_COUNT_OF(named); i++) f.target[f.targets++] = named[i];
    f.targets += check_list(f.arena, "tests/targets", ".target", f.target + f.targets, LIMIT - f.targets);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* Positive numbers for every second input named p..., so that roots and divisions are tame. */
static void fill_positive(void *user, const smg_node *n, const int64_t *dims, double *data) {
    int64_t count = 1;
    (void)user;
    for (int d = 0; d < n->rank; d++) count *= dims[d];
    for (int64_t i = 0; n->name[0] == 'p' && i < count; i++) {
        bool real = smg_type_kind(n->type) == SMG_KIND_FLOAT;
        data[i] = real ? 1.25 + (double)(float)(0.75 * data[i]) : 1 + (double)((i * 7 + 3) % 5);
        if (real) data[i] = (double)(float)data[i];
    }
}

/* Finishes g (output y), checks it at n on the next target or all of them, destroys it. */
static void check(fixture *f, smg_graph *g, smg_value y, int64_t n, bool all, const char *what) {
    smg_graph_output(g, "y", y);
    if (smg_graph_finish(g) != SMG_OK) fail_msg("%s: %s", what, smg_context_error(f->ctx));
    const int64_t symbols[2] = {n, n};
    for (int t = 0; t < (all ? f->targets : 1); t++) {
        check_result r;
        check_options o = {.target = f->target[f->next++ % f->targets],
                           .symbols = symbols,
                           .tolerance = TOLERANCE,
                           .fill = fill_positive,
                           .int_limit = 3,
                           .seed = (uint64_t)n};
        smg_status status = check_plan(f->ctx, g, &o, &r);
        if (status != SMG_OK || !r.pass) {
            fail_msg("%s, size %lld, %s: %s, error %g", what, (long long)n, o.target, smg_context_error(f->ctx),
                     r.max_error);
        }
        f->checked++;
    }
    smg_graph_destroy(g);
}

static smg_graph *begin(fixture *f, const char *name) {
    smg_graph *g;
    assert_int_equal(smg_graph_create(f->ctx, name, &g), SMG_OK);
    return g;
}

static const int64_t sizes[] = {1, 2, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257};

/* ---- maps ----------------------------------------------------------------------------------------- */

/* The operand types that a row takes: the first of these that infers. */
static bool operand_types(smg_op op, int arity, smg_type kind, smg_type *out) {
    smg_type result;
    for (int k = 0; k < arity; k++) out[k] = kind;
    if (smg_op_infer_type(op, out, arity, &result)) return true;
    if (arity == 3) out[0] = SMG_TYPE_BOOL;
    return smg_op_infer_type(op, out, arity, &result);
}

static void map_row(fixture *f, smg_op op, smg_type kind, int64_t n, const char *const *dims) {
    const smg_op_row *row = smg_op_get(op);
    smg_type type[3];
    smg_value operand[3], y;
    if (!operand_types(op, row->arity, kind, type)) return;
    smg_graph *g = begin(f, row->word);
    for (int k = 0; k < row->arity; k++) {
        const char *name = smg_arena_format(f->arena, "p%d", k);
        operand[k] = smg_graph_input(g, name, smg_type_word(type[k]), dims[k]);
    }
    if (op == SMG_OP_CAST)
        y = smg_graph_cast(g, operand[0], kind == SMG_TYPE_F32 ? "i32" : "f32");
    else
        y = smg_graph_map(g, row->word, row->arity, operand);
    check(f, g, y, n, n == 33, row->word);
}

static void every_map(void **state) {
    static const char *const whole[] = {"n", "n", "n"}, *const rows[] = {"3, n", "n", "3, 1"},
                             *const outer[] = {"n, 1", "1, 5", "n, 5"};
    static const smg_type kinds[] = {SMG_TYPE_F32, SMG_TYPE_I32, SMG_TYPE_BOOL};
    fixture *f = *state;
    for (int op = 0; op < SMG_OP_COUNT; op++) {
        if (smg_op_get((smg_op)op)->class_ != SMG_CLASS_MAP) continue;
        for (size_t k = 0; k < SMG_COUNT_OF(kinds); k++) {
            for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
                map_row(f, (smg_op)op, kinds[k], sizes[s], whole);
                map_row(f, (smg_op)op, kinds[k], sizes[s], rows);
                map_row(f, (smg_op)op, kinds[k], sizes[s], outer);
            }
        }
    }
    printf("%d plans\n", f->checked);
}

/* ---- reductions, products, gathers ------------------------------------------------------------------ */

static void every_reduction(void **state) {
    fixture *f = *state;
    for (int op = 0; op < SMG_OP_COUNT; op++) {
        const smg_op_row *row = smg_op_get((smg_op)op);
        if (row->class_ != SMG_CLASS_REDUCE) continue;
        for (size_t s = 0; s < SMG_COUNT_OF(sizes) * 12; s++) {
            int axis = (int)(s % 3), way = (int)(s / 3 % 4);
            int64_t n = sizes[s / 12];
            static const char *const dims[] = {"n, 3, 5", "2, n, 5", "2, 3, n"};
            smg_graph *g = begin(f, row->word);
            smg_value x = smg_graph_input(g, "x", way & 2 ? "i32" : "f32", dims[axis]);
            check(f, g, smg_graph_reduce(g, row->word, x, axis, way & 1), n, n == 33, row->word);
        }
    }
}

static void products(void **state) {
    static const struct {
        const char *labels, *a, *b;
    } row[] = {
        {"mk,kn->mn", "n, 33", "33, 17"},
        {"mk,nk->mn", "5, n", "9, n"},
        {"km,kn->mn", "n, 4", "n, 65"},
        {"mk,kn->nm", "33, n", "n, 5"},
        {"k,k->", "n", "n"},
        {"mk,k->m", "n, 40", "40"},
        {"bmk,bkn->bmn", "3, n, 8", "3, 8, 12"},
        {"bshd,bthd->bhst", "2, n, 3, 16", "2, 7, 3, 16"},
        {"bhst,bthd->bshd", "2, 3, 5, n", "2, n, 3, 16"},
        {"m,n->mn", "n", "6"},
        {"mab,abn->mn", "7, 3, n", "3, n, 5"},
        {"mn,mn->mn", "n, 5", "n, 5"},
        {"mk,kn->mn", "n, 1", "1, 9"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(row); i++) {
        for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
            smg_graph *g = begin(f, "product");
            smg_value a = smg_graph_input(g, "a", "f32", row[i].a), b = smg_graph_input(g, "b", "f32", row[i].b);
            check(f, g, smg_graph_contract(g, row[i].labels, a, b), sizes[s], sizes[s] == 33, row[i].labels);
        }
    }
}

static void gathers(void **state) {
    static const struct {
        const char *table, *indices;
    } row[] = {{"3", "n"}, {"3, 7", "n"}, {"4, n", "2, 5"}, {"5, 2, n", "n"}, {"3, 8", "n, 2"}, {"3, 1", "1"}};
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(row); i++) {
        for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
            smg_graph *g = begin(f, "gather");
            smg_value a = smg_graph_input(g, "a", "f32", row[i].table);
            smg_value at = smg_graph_input(g, "at", s % 2 ? "i32" : "i64", row[i].indices);
            check(f, g, smg_graph_gather(g, a, at), sizes[s] + (s == 0), s == 5, row[i].table);
        }
    }
}

/* ---- views: each read by a map and by a reduction ------------------------------------------------------ */

static smg_value make_view(smg_graph *g, int which) {
    static const int swap[] = {1, 0}, turn[] = {2, 0, 1};
    smg_value a = smg_graph_input(g, "a", "f32", which == 5 ? "n, 1" : which == 3 ? "4, n, 6" : "n, 24");
    switch (which) {
    case 0: return smg_graph_reshape(g, a, "n, 4, 6");
    case 1: return smg_graph_reshape(g, a, "24*n");
    case 2: return smg_graph_transpose(g, a, 2, swap);
    case 3: return smg_graph_transpose(g, a, 3, turn);
    case 4: return smg_graph_broadcast(g, a, "3, n, 24");
    case 5: return smg_graph_broadcast(g, a, "n, 9");
    case 6: return smg_graph_slice(g, a, 1, "3", "10", 2);
    case 7: return smg_graph_slice(g, a, 0, "0", "n", 1);
    case 8: return smg_graph_transpose(g, smg_graph_reshape(g, a, "n, 4, 6"), 3, turn);
    case 9: return smg_graph_slice(g, smg_graph_reshape(g, a, "n, 2, 12"), 1, "1", "1", 1);
    case 10: return smg_graph_reshape(g, smg_graph_slice(g, a, 1, "4", "12", 1), "n, 12, 1");
    case 11: return smg_graph_slice(g, a, 1, "23", "24", -1);
    case 12: return smg_graph_window(g, a, 1, "0-2", "9", 3, "4", 1, 0.5);
    case 13: return smg_graph_window(g, a, 0, "0-1", "n", 1, "3", 1, 0.0);
    case 14: return smg_graph_pad(g, smg_graph_pad(g, a, 1, "2", "0-3", -1.0), 0, "1", "2", 2.0);
    case 15: return smg_graph_reshape(g, smg_graph_slice(g, a, 1, "1", "15", 1), "5*n, 3");
    case 16: return smg_graph_reshape(g, smg_graph_transpose(g, a, 2, swap), "n, 24");
    case 17: return smg_graph_reshape(g, smg_graph_window(g, a, 1, "1", "6", 4, "4", -1, 3.0), "n, 24");
    case 18: return smg_graph_concat(g, 3, (smg_value[]){a, smg_graph_slice(g, a, 1, "1", "7", 1), a}, 1);
    case 19: return smg_graph_concat(g, 2, (smg_value[]){a, smg_graph_map(g, "exp", 1, &a)}, 0);
    case 20: return smg_graph_cumsum(g, smg_graph_slice(g, a, 1, "2", "5", 1), 0, true, false);
    case 21: return smg_graph_cumsum(g, a, 1, false, true);
    case 22: return smg_graph_take(g, a, smg_graph_input(g, "i", "i32", "5"), 1);
    case 23:
        return smg_graph_take(g, smg_graph_slice(g, a, 1, "20", "7", -3), smg_graph_input(g, "i", "i64", "2, n"), 1);
    case 24: return smg_graph_gather(g, smg_graph_reshape(g, a, "12*n, 2"), smg_graph_input(g, "i", "i32", "7"));
    default:
        return smg_graph_take_at(g, smg_graph_reshape(g, a, "n, 4, 6"), 2,
                                 (smg_value[]){smg_graph_iota(g, "n, 1", 0), smg_graph_input(g, "i", "i32", "n, 3")});
    }
}

static smg_value read_view(smg_graph *g, smg_value v, int reader) {
    if (reader == 0) return smg_graph_map(g, "neg", 1, &v);
    if (reader == 1) return smg_graph_reduce(g, "sum", v, -1, false);
    smg_value row = smg_graph_reduce(g, "reduce_max", v, -1, true);
    smg_value e = smg_graph_map(g, "sub", 2, (smg_value[]){v, row});
    e = smg_graph_map(g, "exp", 1, &e);
    return smg_graph_map(g, "div", 2, (smg_value[]){e, smg_graph_reduce(g, "sum", e, -1, true)});
}

static void views(void **state) {
    fixture *f = *state;
    for (int which = 0; which < 26; which++) {
        for (size_t s = 0; s < SMG_COUNT_OF(sizes); s++) {
            for (int reader = 0; reader < 3; reader++) {
                smg_graph *g = begin(f, "view");
                smg_value v = make_view(g, which);
                check(f, g, read_view(g, v, reader), sizes[s], sizes[s] == 33,
                      smg_arena_format(f->arena, "view %d, reader %d", which, reader));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_map), cmocka_unit_test(every_reduction), cmocka_unit_test(products),
        cmocka_unit_test(gathers),   cmocka_unit_test(views),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
