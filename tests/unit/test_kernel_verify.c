/* kernel: the verifier. One program that holds every kind of instruction is right; each row of the table
 * spoils one line of it and names a part of the sentence that must come out. What text cannot spoil is
 * spoilt in the kernel itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/kernel_bench.h"

static const char good[] = "kernel good\n"
                           "lanes 16 subgroup 1\n"
                           "symbol m <= 1024\n"
                           "axis i = m tile 8 grid\n"
                           "axis j = 21 tile 8 grid\n"
                           "axis k = m tile 4\n"
                           "axis l = 3 tile 4\n"
                           "grid i, j\n"
                           "layout 0 = [i, j] registers j*2:4 i*2:4 subgroups j*4 i*4\n"
                           "layout 1 = [i] registers i*2:4 subgroups *4 i*4\n"
                           "layout 2 = [i, k] registers i*2:4 subgroups k*4 i*4\n"
                           "layout 3 = [i, l] registers i*2:4 subgroups l*4 i*4\n"
                           "layout 4 = [i, j, k] registers j*2:4 i*2:4 k*4 subgroups j*4 i*4\n"
                           "layout 5 = [i, j, l] registers j*2:4 i*2:4 l*4 subgroups j*4 i*4\n"
                           "buffer a f32 [m*m] value 0\n"
                           "buffer b f32 [21*m] value 1\n"
                           "buffer c f32 [21*m] value 2 written\n"
                           "buffer n i32 [21*m] value 3\n"
                           "buffer y f32 [21*m] value 4 written\n"
                           "tile acc float register [i, j] layout 0\n"
                           "tile r float register [i] layout 1\n"
                           "tile p float register [i, k] layout 2\n"
                           "tile w float register [i, l] layout 3\n"
                           "tile sa float shared [i, k] pad 1\n"
                           "tile sb float shared [k, j]\n"
                           "tile flag bool register [i] layout 1\n"
                           "access 0 = a at [0] i*[m] k*[1]\n"
                           "access 1 = b at [0] k*[21] j*[1]\n"
                           "access 2 = c at [0] i*[21] j*[1]\n"
                           "access 3 = n at [0] i*[1]\n"
                           "access 4 = a at [0] i*[1] : index*[1] below [m] of load(3)\n"
                           "access 5 = y at [0] i*[21] j*[1]\n"
                           "access 6 = y at [0] i*[21]\n"
                           "even [m] by 8\n"
                           "code\n"
                           "  set acc = 0\n"
                           "  set r = load(4)\n"
                           "  set w = r\n"
                           "  reduce r = max over [l] layout 3 of w\n"
                           "  loop k\n"
                           "    set p = load(0)\n"
                           "    accumulate r = add over [k] layout 2 of p\n"
                           "    spill sa = p\n"
                           "    stage sb walk [j, k] = load(1)\n"
                           "    barrier\n"
                           "    mma acc += sa * sb over [k] layout 4\n"
                           "    barrier # last\n"
                           "  end\n"
                           "  store 2 over [i, j] layout 0 = mul(acc, r)\n";

typedef struct spoilt {
    const char *from, *to, *sentence;
} spoilt;

static const spoilt rows[] = {
    /* lanes and grid */
    {"lanes 16", "lanes 12", "must be a power of two up to 4096"},
    {"lanes 16", "lanes 32", "layout 0 has 16 subgroups of 1 lanes, the kernel 32 lanes in subgroups of 1"},
    {"subgroup 1", "subgroup 3", "subgroups of 3 in 16 lanes"},
    {"grid i, j", "grid i", "axis 'j' is a grid axis and stands 0 times"},
    {"grid i, j", "grid i, j, j", "stands 2 times"},
    {"grid i, j", "grid i, j, k", "axis 'k' is not a grid axis"},
    {"grid i, j", "grid i, j bands 3", ""},
    {"[i, j] layout 0\ntile", "[i, j] layout 0 pad 2\ntile", "only shared tiles"},
    {"[i, j] layout 0\ntile", "[i, j] layout 0 clamped [i]\ntile", "along axes it does not have, or is not staged"},
    {"sb float shared [k, j]", "sb float shared [k, j] clamped [i]", "along axes it does not have, or is not staged"},
    {"sb float shared [k, j]", "sb float shared [k, j] clamped [k]", "'sb' is clamped along axis 'k', over which it"},
    {"shared [i, k] pad 1", "shared [i, k] pad 1 clamped [i]", "'sa' is clamped, and not staged"},
    {"[i, j] layout 0\ntile", "[i, j] layout 0 memory 1\ntile", "only shared tiles of floats share one"},
    {"register [i, j]", "register [i, i]", "names axis 'i' twice"},
    /* layouts */
    {"[i, j] registers j*2:4 i*2:4", "[i, j] registers j*2:4 i*2:2", "two bits of a layout set the same coordinate"},
    {"[i] registers i*2:4", "[i] registers i*2:8", "no bit of a layout sets some coordinate bit of an axis"},
    {"subgroups *4 i*4", "subgroups i*4 *4", "register tile 'r' (layout 1) lies in other lanes"},
    {"subgroups l*4 i*4", "subgroups l*2 *2 i*4", "spans 2 of the 4 elements of axis 'l'"},
    {"register [i] layout 1\ntile p", "register [i] layout 2\ntile p", "has axis 'k', which that has not"},
    {"register [i] layout 1\ntile p", "register [i]\ntile p", "r has layout -1 of 6"},
    {"r = max over [l] layout 3", "r = max over [l]", "the instruction has layout -1 of 6"},
    {"r = max over [l] layout 3", "r = max over [l] layout 0", "spans 1 of the 4 elements of axis 'l'"},
    {"subgroups l*4 i*4", "subgroups i*4 l*4", "register tile 'r' (layout 1) lies in other lanes"},
    {"k*4 subgroups j*4 i*4", "subgroups j*4 k*4", "no bit of a layout sets some coordinate bit of an axis"},
    {"k*4 subgroups j*4 i*4", "k*4 subgroups i*4 j*4",
     "the result 'acc' lies in other lanes than layout 4 makes it in"},
    /* loops */
    {"  end\n", "", "the loop over axis 'k' has no end"},
    {"  loop k\n", "", "an end without a loop"},
    {"  loop k\n", "  loop j\n", "a loop over axis 'j', which is a grid axis"},
    {"    set p = load(0)\n", "  loop k\n  end\n", "which is looped already"},
    {"  loop k\n", "  set p = 0\n  loop k\n", "axis 'k' has up to 1024 elements, its tile 4, and no loop"},
    {"mul(acc, r)", "mul(acc, to_float(size(m)))", ""},
    {"axis l = 3 tile 4", "axis l = m tile 4", "axis 'l' has up to 1024 elements"},
    {"  store 2", "  loop k\n  accumulate r = add over [k] layout 2 of p\n  end\n  store 2", "tile 'p' is read before"},
    /* tiles before they are written */
    {"  set acc = 0\n", "", "tile 'acc' is read before it is written"},
    {"  set w = r\n", "", "tile 'w' is read before it is written"},
    {"    spill sa = p\n", "", "tile 'sa' is read before it is written"},
    /* barriers */
    {"    barrier\n", "", "shared tile 'sa' is read without a workgroup barrier after instruction 7 wrote it"},
    {"    barrier # last\n", "",
     "shared tile 'sa' is written without a workgroup barrier after instruction 10 read it"},
    {"    spill sa = p\n", "    spill sa = p\n    spill sa = p\n",
     "instruction 8: shared tile 'sa' is written without a workgroup barrier after instruction 7 wrote it"},
    {"    barrier\n", "    barrier subgroup\n", "a barrier of scope 'subgroup' in subgroups of 1"},
    /* leaves and kinds */
    {"set w = r", "set r = w", "tile 3 runs over axis 'l'"},
    {"set acc = 0\n", "set acc = load(0)\n", "axis 'k' has up to 1024 elements, its tile 4, and no loop"},
    {"accumulate r = add over [k] layout 2 of p", "set acc = load(0)",
     "access 0 runs over axis 'k', which the instruction"},
    {"set w = r\n", "set w = r\n  set acc = w\n", "runs over axis 'l', which the instruction does not"},
    {"    spill", "    set acc = p\n    spill", "tile 2 runs over axis 'k', which the instruction does not"},
    {"stage sb walk [j, k] = load(1)", "stage sb walk [j, k] = r", "a stage reads register tile 'r'"},
    {"set acc = 0\n", "set acc = 0i\n", "an expression has kind 1, its place has kind 0"},
    {"mul(acc, r)", "exp(to_int(acc))", "exp (expression"},
    {"mul(acc, r)", "add(acc, to_int(r))", "add (expression"},
    {"mul(acc, r)", "select(acc, acc, acc)", ""}, /* simplified away */
    {"mul(acc, r)", "select(acc, acc, r)", "select (expression"},
    {"mul(acc, r)", "to_float(and(acc, true))", "and (expression"},
    {"of load(3)", "of load(1)", "an expression has kind 0, its place has kind 1"},
    {"of load(3)", "of load(4)", "the index of access 4 depends on itself"},
    {"of load(3)", "of to_int(load(4))", "the index of access 4 depends on itself"},
    /* instructions */
    {"reduce r = max over [l] layout 3 of w", "reduce w = max over [l] layout 3 of w", "axis 'l' stands twice"},
    {"reduce r = max over [l] layout 3 of w", "reduce r = max over [] layout 1 of r", "over no axis"},
    {"reduce r = max over [l] layout 3 of w", "reduce r = max over [i] layout 1 of r", "axis 'i' stands twice"},
    {"  reduce r = max over [l] layout 3 of w", "  reduce flag = max over [l] layout 3 of true",
     "of a reduction is bool"},
    {"walk [j, k]", "walk [k]", "the walk is no permutation of the axes of 'sb'"},
    {"walk [j, k]", "walk [k, l]", "the walk is no permutation of the axes of 'sb'"},
    {"walk [j, k] =", "walk [j, k] ahead 1 =", "tile 'sb' is filled 1 steps ahead, at most 0 are possible"},
    {"spill sa = p", "spill sa = r", "'sa' and 'r' differ"},
    {"spill sa = p", "spill sa = sb", "the operand 'sb' must be a register tile"},
    {"set acc = 0\n", "set sa = 0\n", "the result 'sa' must be a register tile"},
    {"stage sb walk [j, k]", "stage acc walk [j, i]", "the result 'acc' must be a shared tile"},
    {"sa * sb", "sb * sa", ""},
    {"sa * sb", "sa * sa", "the right factor 'sa' has axis 'i'"},
    {"i*2:4 k*4 subgroups j*4", "i*2:4 k*2:2 k*2 subgroups j*4",
     "no lane of layout 4 has axis 'k' in groups of 4, 4 apart"},
    {"over [k] layout 4", "over [k] layout 4 unroll 3", "3 of 4 k are written out at once, in groups of 4"},
    {"over [k] layout 4", "over [k] layout 4 unroll 8", "8 of 4 k are written out at once, in groups of 4"},
    {"  loop k\n", "  loop k unroll\n", "the loop over 'k' is written out, and sizes decide"},
    {"  loop k\n", "  loop k rolled\n", ""},
    {"sa * sb over [k]", "sa * sb over [l]", "layout 4 of the instruction spans 1 of the 4 elements of axis 'l'"},
    {"sa * sb over [k]", "sa * sb over [j]", "axis 'j' stands twice"},
    {"sb float shared [k, j]\n", "sb float view [k, j] of 1\n", "the result 'sb' must be a shared tile"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [k, j] of 1\n", ""},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [k, j] of 9\n", "a view of access 9 of 7"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [k] of 1\n", "lacks axis 'j'"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [i, j] of 2\n",
     "is not of floats, or written"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [i] of 3\n",
     "is not of floats, or written"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [i] of 4\n", "or with an index"},
    /* blocks */
    {"b f32 [21*m] value 1\n", "b f32 [420] value 1 blocks 5 x 7 of rows of 21\n", ""},
    {"b f32 [21*m] value 1\n", "b f32 [21*m] value 1 blocks 5 x 7 of rows of 21\n", "in whole blocks of 5 x 7"},
    {"b f32 [21*m] value 1\n", "b f32 [420] value 1 blocks 5 x 6 of rows of 21\n", "in whole blocks of 5 x 6"},
    {"b f32 [21*m] value 1\n", "b f32 [420] value 1 blocks 8 x 7 of rows of 21\n", "in whole blocks of 8 x 7"},
    {"b f32 [21*m] value 1\n", "b i32 [420] value 1 blocks 5 x 7 of rows of 21\n", "is no floats in whole blocks"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v float view [k, j] of 7\n", "a view of access 7 of 7"},
    /* types */
    {"sb float shared [k, j]\n", "sb f16 shared [k, j]\n", ""},
    {"sb float shared [k, j]\n", "sb bf16 shared [k, j]\n", ""},
    {"sb float shared [k, j]\n", "sb int shared [k, j]\n", "an expression has kind 0, its place has kind 1"},
    {"acc float register", "acc f16 register",
     "tile 'acc' is of f16; only shared and staging tiles and factors of matrices hold floats of 16 bits"},
    {"sb float shared [k, j]\n", "sb float shared [k, j]\ntile v bf16 view [k, j] of 1\n",
     "is not of floats, or written"},
    /* stores */
    {"store 2 over [i, j] layout 0 = mul(acc, r)", "store 2 over [i] layout 1 = r",
     "access 2 runs over axis 'j', which the store does not"},
    {"store 2 over [i, j] layout 0", "store 2 over [i, j, l] layout 5", "each element of axis 'l'"},
    {"store 2 over [i, j] layout 0 = mul(acc, r)", "store 6 over [i] layout 1 = r", "each element of axis 'j'"},
    {"store 2", "store 1", "a store through access 1, whose buffer is not written"},
    {"= mul(acc, r)", "= to_int(acc)", "an expression has kind 1, its place has kind 0"},
    {"barrier # last\n", "barrier\n    store 2 over [i, j] layout 0 = acc\n", "each element of axis 'k'"},
};

static void assert_verdict(const bench *b, const char *what, const char *sentence) {
    smg_status status = smg_kernel_verify(b->ctx, b->k);
    if (sentence[0] == 0) {
        if (status != SMG_OK) fail_msg("%s: %s", what, smg_context_error(b->ctx));
        return;
    }
    if (status != SMG_INTERNAL) fail_msg("%s: accepted", what);
    if (!strstr(smg_context_error(b->ctx), sentence))
        fail_msg("%s: \"%s\", wanted \"%s\"", what, smg_context_error(b->ctx), sentence);
    char name[32];
    (void)snprintf(name, sizeof name, "kernel '%s'", b->k->name);
    if (!strstr(smg_context_error(b->ctx), name)) fail_msg("%s", smg_context_error(b->ctx));
}

enum { TEXT = 4096 };

/* sentence: of the failure, at least; "": it is right. what: for the message. */
static void check_text(const char *text, const char *what, const char *sentence) {
    bench b;
    bench_open(&b, text);
    assert_verdict(&b, what, sentence);
    bench_close(&b);
}

/* Each body with its sentence. */
static void check_bodies(const char *head, const char *const bodies[][2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        char text[TEXT];
        assert_in_range(snprintf(text, sizeof text, "%s%s", head, bodies[i][0]), 1, TEXT - 1);
        check_text(text, bodies[i][0], bodies[i][1]);
    }
}

/* The first of these parts is another one. */
static void check_changed(const char *text, const char *from, const char *to, const char *sentence) {
    char changed[TEXT];
    const char *at = strstr(text, from);
    assert_non_null(at);
    int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_in_range(length, 1, TEXT - 1);
    check_text(changed, to[0] ? to : from, sentence);
}

/* A product of views; then one of them read by something else. */
static void test_views(void **state) {
    static const struct {
        const char *from, *to, *sentence;
    } views[] = {
        {"    stage sb walk [j, k] = load(1)\n", "", ""},
        {"    spill sa = p\n    stage sb walk [j, k] = load(1)\n", "    set p = u\n", "by another instruction"},
    };
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(views); i++) {
        static const char shared[] = "tile sb float shared [k, j]\n", product[] = "sa * sb";
        char first[sizeof good + 256], second[sizeof good + 256], text[sizeof good + 256];
        const char *at = strstr(good, views[i].from);
        (void)snprintf(first, sizeof first, "%.*s%s%s", (int)(at - good), good, views[i].to,
                       at + strlen(views[i].from));
        at = strstr(first, shared);
        (void)snprintf(second, sizeof second, "%.*s%s%s", (int)(at - first), first,
                       "tile v float view [k, j] of 1\ntile u float view [i, k] of 0\n", at + strlen(shared));
        at = strstr(second, product);
        (void)snprintf(text, sizeof text, "%.*ssa * v%s", (int)(at - second), second, at + strlen(product));
        check_text(text, views[i].sentence[0] ? "read elsewhere" : "a view", views[i].sentence);
    }
}

static void test_good(void **state) {
    (void)state;
    check_text(good, "good", "");
}

static void test_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) check_changed(good, rows[i].from, rows[i].to, rows[i].sentence);
}

/* ---- what text cannot spoil ------------------------------------------------------------------------- */

enum {
    LEAF_NUMBER,
    LEAF_TILE,
    LEAF_KIND,
    AXIS_OF_TILE,
    BUFFER_OF_ACCESS,
    EXPRESSION,
    EVEN_BY,
    SURE,
    KIND_OF_INSTR,
    SPOILS
};

static const char *spoil(smg_kernel *k, int which) {
    switch (which) {
    case LEAF_NUMBER:
        k->code.items[0].expr = smg_expr_leaf(k->exprs, SMG_KIND_FLOAT, 99);
        return "an expression has leaf 99 of";
    case LEAF_TILE: {
        smg_kleaf *leaf = SMG_ARRAY_PUSH(k->arena, &k->leaves);
        *leaf = (smg_kleaf){.what = SMG_KLEAF_TILE, .kind = SMG_KIND_FLOAT, .index = 77};
        return "tile 77 of";
    }
    case LEAF_KIND: k->leaves.items[0].kind = SMG_KIND_BOOL; return "what it reads has kind";
    case AXIS_OF_TILE: k->tiles.items[0].axis[1] = 12; return "names axis 12 of";
    case BUFFER_OF_ACCESS: k->accesses.items[2].buffer = 9; return "buffer 9 of";
    case EXPRESSION: k->code.items[0].expr = SMG_EXPR_NONE; return "expression -1 does not exist";
    case EVEN_BY: k->evens.items[0].by = 1; return "the even form asks for multiples of 1";
    case SURE: {
        smg_expr *slot = SMG_ARRAY_PUSH(k->arena, &k->sure);
        *slot = k->code.items[0].expr;
        return "what is sure in the even form is no condition";
    }
    default: k->code.items[0].dst = -1; return "the result is tile -1 of";
    }
}

static void test_indices(void **state) {
    (void)state;
    for (int which = 0; which < SPOILS; which++) {
        bench b;
        smg_text text;
        bench_open(&b, good);
        const char *sentence = spoil(b.k, which);
        assert_verdict(&b, sentence, sentence);
        smg_text_init(&text, b.ctx); /* a broken program still prints */
        smg_kernel_print(b.k, &text);
        assert_false(text.failed);
        smg_text_free(&text);
        bench_close(&b);
    }
}

/* Register tiles: an element must be read where it lives. */
static void test_owners(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 4 subgroup 4\naxis i = 4 tile 4\naxis j = 4 tile 4\n"
                               "layout 0 = [i, j] registers i*4 lanes j*4\nlayout 1 = [j, i] registers j*4 lanes i*4\n"
                               "layout 2 = [j] lanes j*4\nlayout 3 = [j] registers j*4 lanes *4\n"
                               "tile ij float register [i, j] layout 0\ntile ji float register [j, i] layout 1\n"
                               "tile jshort float register [j] layout 2\ntile jall float register [j] layout 3\ncode\n";
    static const char *const bodies[][2] = {
        {"  set ij = 0\n  set ji = ij\n", "register tile 'ij' (layout 0) lies in other lanes"},
        {"  set jshort = 0\n  set ij = jshort\n", ""},
        {"  set jshort = 0\n  set ji = jshort\n", "register tile 'jshort' (layout 2) lies in other lanes"},
        {"  set jall = 0\n  set ji = jall\n", ""},
        {"  set ij = 0\n  set ij = neg(ij)\n", ""},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* Another element than the instruction's own: along an axis that each lane has whole, and only such. */
static void test_picks(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 4 subgroup 4\nsymbol s <= 4\naxis i = 4 tile 4\naxis g = 4 tile 4\n"
                               "axis h = 4 tile 4\naxis s = s tile 4\naxis p = 2 tile 2\n"
                               "layout 0 = [g, i] registers g*4 lanes i*4\nlayout 1 = [i] lanes i*4\n"
                               "layout 2 = [h, i] registers h*4 lanes i*4\nlayout 3 = [s] registers s*4 lanes *4\n"
                               "layout 4 = [p, i] registers p*2 lanes i*4\n"
                               "tile gi float register [g, i] layout 0\ntile r float register [i] layout 1\n"
                               "tile hi float register [h, i] layout 2\ntile c float register [s] layout 3\n"
                               "tile b float shared [g, i]\ntile pi float register [p, i] layout 4\n"
                               "code\n  set gi = 0\n  set c = 0\n";
    static const char *const bodies[][2] = {
        {"  set r = add(gi[g at 3], gi[g at 0])\n", ""},
        {"  set hi = gi[g back h]\n", ""},
        {"  set gi = gi[g back g]\n", ""},
        {"  set r = gi[g at 4]\n", "element 4 along 'g' is picked, of 4"},
        {"  set c = c[s at 1]\n", "element 1 along 's' is picked, of 1"},
        {"  set r = gi[h at 0]\n", "a pick of tile 'gi' along an axis it lacks"},
        {"  set r = gi[g at 0, g at 1]\n", "picks along axis 1 twice"},
        {"  set gi = gi[i at 0]\n", "lies in other lanes than the instruction's elements"},
        {"  set r = gi[g back i]\n", "lies in other lanes than the instruction's elements"},
        {"  set pi = gi[g back p]\n", "axis 'g' is picked from backwards along 'p', which is not as long"},
        {"  set r = gi[g back h]\n", "runs over axis 'h', which the instruction does not"},
        {"  set r = b[g at 0]\n", "tile 'b' is picked from along 'g', which is not held whole in registers"},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* Partial sums want f16 factors in shared memory, whole k and runs of columns in each lane, and whole parts of k. */
static void test_partial(void **state) {
    (void)state;
    static const char format[] = "kernel good\nlanes 2 subgroup 2\naxis m = 2 tile 2\naxis n = 4 tile 4\n"
                                 "axis k = 8 tile 8\nlayout 0 = [m, n] %s\nlayout 1 = [m, n, k] %s\n"
                                 "buffer x f16 [32] value 0\ntile c float register [m, n] layout 0\n"
                                 "tile a %s shared [k, m]\ntile b f16 shared [k, n]\ntile v float view [k, n] of 1\n"
                                 "access 0 = x at [0] m*[8] k*[1]\naccess 1 = x at [0] k*[4] n*[1]\ncode\n"
                                 "  stage a walk [m, k] = load(0)\n  stage b walk [k, n] = load(1)\n  set c = 0\n"
                                 "  barrier\n  mma c += a * %s over [k] layout 1 partial f16 %s\n";
    static const struct {
        const char *sums, *products, *type, *right, *terms, *sentence;
    } cases[] = {
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "b", "8", ""},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "b", "4 unroll 4", ""},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "b", "open", ""},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "b", "4 unroll 8",
         "8 k are written out at once, of partial sums of 4"},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "float", "b", "8",
         "its factors are no shared f16 tiles"},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "v", "8",
         "its factors are no shared f16 tiles"},
        {"registers n*4 m*2 lanes *2", "registers n*4 m*2 k*4 lanes k*2:4", "f16", "b", "4", "lanes share out its k"},
        {"registers n*2 m*2 lanes n*2:2", "registers n*2 m*2 k*8 lanes n*2:2", "f16", "b", "8",
         "no lane owns runs of its columns"},
        {"registers n*4 lanes m*2", "registers n*4 k*8 lanes m*2", "f16", "b", "3",
         "a product sums up 3 products in f16: they are no part of its k, or too many"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        char text[sizeof format + 256];
        (void)snprintf(text, sizeof text, format, cases[i].sums, cases[i].products, cases[i].type, cases[i].right,
                       cases[i].terms);
        check_text(text, cases[i].sentence, cases[i].sentence);
    }
}

/* Eight of 16 bits are as wide as four of 32; a product reads them of a view, along columns that one lane owns. */
static void test_eights(void **state) {
    (void)state;
    static const char format[] = "kernel good\nlanes 4 subgroup 4\naxis i = 32 tile 32\naxis k = 8 tile 8\n"
                                 "axis j = 4 tile 4\n"
                                 "layout 0 = [j, i] registers %s j*4 lanes %s\n"
                                 "layout 1 = [j, i, k] registers %s j*4 k*8 lanes %s\n"
                                 "buffer a %s [256] value 0\nbuffer w f16 [32] value 1\n"
                                 "tile c float register [j, i] layout 0\ntile b float view [k, i] of 0\n"
                                 "tile v float view [j, k] of 1\ntile s f16 shared [k, i]\n"
                                 "access 0 = a at [%s] k*[32] i*[1]\naccess 1 = w at [0] j*[8] k*[1]\ncode\n"
                                 "  set c = 0\n  stage s walk [k, i] = load(0)\n  barrier\n"
                                 "  mma c += v%s * %s by 8 i over [k] layout 1\n";
    static const struct {
        bool fours;
        const char *type, *offset, *left, *right, *sentence;
    } cases[] = {
        {false, "f16", "0", "", "b", ""},
        {false, "bf16", "0", "", "b", ""},
        {false, "f32", "0", "", "b", "access 0 has no aligned groups of 8 along axis 'i'"},
        {false, "f16", "4", "", "b", "access 0 has no aligned groups of 8 along axis 'i'"},
        {true, "f16", "0", "", "b", "no lane multiplies runs of 8 of factor 'b' along axis 'i'"},
        {false, "f16", "0", "", "s", "8 neighbours at once, not 4, or 8 of 16 bits that nothing is made of on the way"},
        {false, "f16", "0", " by 8 k", "b", "no lane multiplies runs of 8 of factor 'v' along axis 'k'"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        char text[sizeof format + 128];
        const char *runs = cases[i].fours ? "i*4 i*2:16" : "i*8", *lanes = cases[i].fours ? "i*4:4" : "i*4:8";
        (void)snprintf(text, sizeof text, format, runs, lanes, runs, lanes, cases[i].type, cases[i].offset,
                       cases[i].left, cases[i].right);
        check_text(text, cases[i].sentence, cases[i].sentence);
    }
}

/* Of f16 that is fetched as it is, too; partial sums read it so where that alone is put there. */
static void test_fetched_eights(void **state) {
    (void)state;
    static const char format[] = "kernel good\nlanes 4 subgroup 4\naxis i = 32 tile 32\naxis k = 8 tile 8\n"
                                 "axis j = 4 tile 4\nlayout 0 = [j, i] registers i*8 j*4 lanes i*4:8\n"
                                 "layout 1 = [j, i, k] registers i*8 j*4 k*8 lanes i*4:8\n"
                                 "buffer a %s [256] value 0\nbuffer w f16 [32] value 1\n"
                                 "tile c float register [j, i] layout 0\ntile next %s staging [k, i]\n"
                                 "tile b f16 shared [k, i] pad %d\ntile s f16 shared [j, k]\n"
                                 "access 0 = a at [0] k*[32] i*[1]\naccess 1 = w at [0] j*[8] k*[1]\ncode\n"
                                 "  set c = 0\n  stage s walk [j, k] = load(1)\n"
                                 "  fetch next by 8 i walk [k, i] along k ahead 0 = %s\n"
                                 "  put b by 8 i walk [k, i] = next\n  barrier\n"
                                 "  mma c += s * b by %d i over [k] layout 1%s\n";
    static const struct {
        const char *buffer, *tile;
        int pad;
        const char *value;
        int width;
        const char *partial, *sentence;
    } cases[] = {
        {"f16", "f16", 8, "load(0)", 8, " partial f16 8", ""},
        {"f16", "f16", 4, "load(0)", 4, " partial f16 8", ""},
        {"f16", "f16", 4, "load(0)", 8, " partial f16 8", "8 neighbours at once, not 4"},
        {"f16", "f16", 8, "load(0)", 8, "", "8 neighbours at once, not 4"},
        {"f16", "f16", 8, "load(0)", 4, "", ""},
        {"bf16", "f16", 8, "load(0)", 4, "", "8 neighbours at once, not 4"},
        {"f16", "float", 8, "load(0)", 4, "", "8 neighbours at once, not 4"},
        {"f16", "f16", 8, "neg(load(0))", 4, "", "8 neighbours at once, not 4"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        char text[sizeof format + 128];
        (void)snprintf(text, sizeof text, format, cases[i].buffer, cases[i].tile, cases[i].pad, cases[i].value,
                       cases[i].width, cases[i].partial);
        check_text(text, cases[i].sentence, cases[i].sentence);
    }
}

/* Neighbours at once: they lie side by side, aligned, and one lane has all of them. */
static void test_wide(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 8 subgroup 8\nsymbol s <= 64\n"
                               "axis r = 2 tile 1 grid\naxis i = 32 tile 32\naxis n = 6 tile 6\naxis k = 8 tile 8\n"
                               "axis j = 4 tile 4\ngrid r\n"
                               "layout 0 = [i] registers i*4 lanes i*8:4\nlayout 1 = [i] registers i*4:8 lanes i*8\n"
                               "layout 2 = [j, i] registers i*4 j*4 lanes i*8:4\n"
                               "layout 3 = [j, i, k] registers i*4 j*4 k*8 lanes i*8:4\n"
                               "buffer a f32 [64] value 0\nbuffer o f32 [65] value 1\nbuffer p f32 [2*s] value 2\n"
                               "buffer y f32 [64] value 3 written\nbuffer h f16 [64] value 4\n"
                               "buffer z f16 [64] value 5 written\n"
                               "tile runs float register [i] layout 0\ntile apart float register [i] layout 1\n"
                               "tile c float register [j, i] layout 2\ntile b float shared [k, i]\n"
                               "tile w float shared [j, k]\ntile odd float shared [k, i] pad 1\n"
                               "tile next float staging [k, i]\n"
                               "access 0 = a at [0] r*[32] i*[1]\naccess 1 = o at [1] r*[32] i*[1]\n"
                               "access 2 = p at [0] r*[s] i*[1]\naccess 3 = y at [0] r*[32] i*[1]\n"
                               "access 4 = a at [0] k*[8] i*[1]\naccess 5 = a at [0] j*[8] k*[1]\n"
                               "access 6 = a at [0] r*[1] i*[2]\naccess 7 = h at [0] r*[32] i*[1]\n"
                               "access 8 = z at [0] r*[32] i*[1]\naccess 9 = h at [1] r*[32] i*[1]\n"
                               "access 10 = a at [0] i*[1] : index*[32] below [2] of iota(13)\n"
                               "access 11 = a at [0] i*[1] : index*[2] below [2] of iota(13)\n"
                               "access 12 = a at [0] i*[1] : index*[32] below [2] of iota(14)\n"
                               "access 13 = - at [0] r*[1]\naccess 14 = - at [0] i*[1]\n"
                               "access 15 = a at [0] i*[1] : index*[1] below [64] of "
                               "select(lt(iota(13), 1i), 32i, -2147483647i)\n"
                               "access 16 = a at [0] i*[1] : index*[1] below [64] of "
                               "select(lt(iota(13), 1i), 2i, -2147483647i)\n"
                               "access 17 = a at [0] i*[1] : index*[1] below [64] of "
                               "select(lt(iota(14), 1i), 0i, -2147483647i)\ncode\n";
#define STAGED "  stage w walk [j, k] = load(5)\n  stage b by 4 i walk [k, i] = load(4)\n  set c = 0\n  barrier\n"
    static const char *const bodies[][2] = {
        {"  set runs by 4 i = load(0)\n  store 3 by 4 i over [i] layout 0 = runs\n", ""},
        {"  set runs by 4 i = load(2)\n", ""}, /* s decides, when the kernel runs */
        {"  set runs by 4 i = load(1)\n", "access 1 has no aligned groups of 4 along axis 'i'"},
        {"  set runs by 4 i = load(6)\n", "access 6 has no aligned groups of 4 along axis 'i'"},
        {"  set apart by 4 i = load(0)\n", "no lane owns runs of 4 along axis 'i'"},
        {"  set runs by 4 k = load(0)\n", "no lane owns runs of 4 along axis 'k'"},
        {"  set runs by 4 n = load(0)\n", "4 neighbours at once along axis 'n', whose tile is 6"},
        {"  set runs by 4 i = add(load(0), load(1))\n", ""}, /* one of them */
        {"  set runs by 4 i = neg(load(1))\n", "of what loads no groups of an input"},
        {"  set runs by 4 i = add(load(2), load(2))\n", "of what loads no groups of an input"}, /* s decides */
        {"  set runs by 4 i = load(10)\n", ""},
        {"  set runs by 4 i = load(11)\n", "access 11 has no aligned groups of 4 along axis 'i'"},
        {"  set runs by 4 i = load(12)\n", "access 12 has no aligned groups of 4 along axis 'i'"},
        {"  set runs by 4 i = load(15)\n", ""}, /* a group as a whole is there or absent */
        {"  set runs by 4 i = load(16)\n", "access 16 has no aligned groups of 4 along axis 'i'"},
        {"  set runs by 4 i = load(17)\n", "access 17 has no aligned groups of 4 along axis 'i'"},
        {"  set apart = 0\n  store 3 by 4 i over [i] layout 1 = apart\n", "no lane owns runs of 4 along axis 'i'"},
        {"  set runs by 2 i = load(7)\n  store 8 by 2 i over [i] layout 0 = runs\n", ""},
        {"  set runs by 2 i = load(0)\n", "access 0 has no aligned groups of 2 along axis 'i'"},
        {"  set runs by 2 i = load(9)\n", "access 9 has no aligned groups of 2 along axis 'i'"},
        {"  set apart by 2 i = load(7)\n", "no lane owns runs of 2 along axis 'i'"},
        {"  stage b by 2 i walk [k, i] = load(4)\n", "2 neighbours at once, not 4"},
        {"  stage b by 4 k walk [k, i] = load(4)\n", "the walk does not go by groups of 4 along axis 'k'"},
        {"  fetch next by 4 i walk [k, i] along k ahead 0 = load(4)\n  put b by 4 i walk [k, i] = next\n", ""},
        {"  fetch next by 4 i walk [k, i] along k ahead 0 = load(4)\n  put b walk [k, i] = next\n",
         "'next' is put by groups of 0, and fetched by groups of 4 in instruction 0"},
        {STAGED "  mma c += w by 4 k * b by 4 i over [k] layout 3\n", ""},
        {STAGED "  mma c += w by 4 j * b over [k] layout 3\n", "'w' does not lie in groups of 4 along axis 'j'"},
        {STAGED "  mma c += w * b by 4 k over [k] layout 3\n", "'b' does not lie in groups of 4 along axis 'k'"},
        {"  stage w walk [j, k] = load(5)\n  stage odd walk [k, i] = load(4)\n  set c = 0\n  barrier\n"
         "  mma c += w * odd by 4 i over [k] layout 3\n",
         "'odd' does not lie in groups of 4 along axis 'i'"},
        {STAGED "  mma c += w * b over [k] layout 3 addressed\n", "no views whose columns lie over a subgroup's lanes"},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* By address: loads of words of inputs, of which all lanes read the same. */
static void test_alike(void **state) {
    (void)state;
    static const char head[] =
        "kernel good\nlanes 8 subgroup 8\naxis r = 8 tile 8\naxis i = 4 tile 4\n"
        "layout 0 = [r, i] registers i*4 lanes r*8\nlayout 1 = [r] lanes r*8\n"
        "buffer x f32 [32] value 0\nbuffer w f32 [4] value 1\nbuffer h f16 [4] value 2\nbuffer n i64 [4] value 3\n"
        "buffer y f32 [32] value 4 written\nbuffer z f32 [4] value 5 written\n"
        "tile t float register [r, i] layout 0\ntile s float register [r] layout 1\n"
        "access 0 = x at [0] r*[4] i*[1]\naccess 1 = w at [0] i*[1]\naccess 2 = h at [0] i*[1]\n"
        "access 3 = n at [0] i*[1]\naccess 4 = y at [0] r*[4] i*[1]\naccess 5 = z at [0] i*[1]\n"
        "access 6 = w at [0] : index*[1] below [4] of to_int(load(0))\ncode\n";
    static const char no[] = "loads by address, and none of an input is of one element for all lanes";
    static const char *const bodies[][2] = {
        {"  set t addressed = mul(load(0), load(1))\n", ""},
        {"  set t by 4 i addressed = load(1)\n", ""},
        {"  reduce s addressed = add over [i] layout 0 of mul(load(0), to_float(load(3)))\n", ""},
        {"  set t = load(0)\n  store 4 addressed over [r, i] layout 0 = add(t, load(1))\n", ""},
        {"  set t addressed = load(0)\n", no}, /* each lane has a row */
        {"  set t addressed = load(2)\n", no}, /* halves */
        {"  set t addressed = load(5)\n", no}, /* of what the kernel writes */
        {"  set t addressed = load(6)\n", no}, /* by data */
        {"  set t addressed = 0\n", no},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* Two tiles on one memory: the second ends the first, and waits for its readers. */
static void test_memory(void **state) {
    (void)state;
    static const char head[] =
        "kernel good\nlanes 4 subgroup 4\naxis i = 4 tile 4\n"
        "layout 0 = [i] lanes i*4\ntile r float register [i] layout 0\ntile a float shared [i] memory 1\n"
        "tile b float shared [i] memory 1\ntile c float shared [i]\ncode\n  set r = 0\n";
    static const char *const bodies[][2] = {
        {"  spill a = r\n  barrier\n  stage c walk [i] = a\n  barrier\n  spill b = r\n", ""},
        {"  spill a = r\n  barrier\n  stage c walk [i] = a\n  spill b = r\n",
         "shared tile 'b' is written without a subgroup barrier after instruction 3 read 'a', on whose memory it lies"},
        {"  spill a = r\n  spill b = r\n", "shared tile 'b' is written without a subgroup barrier after instruction 1 "
                                           "wrote 'a', on whose memory it lies"},
        {"  spill a = r\n  barrier\n  spill b = r\n  barrier\n  stage c walk [i] = a\n",
         "tile 'a' is read before it is written"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(bodies); i++) {
        bench b;
        char text[sizeof head + 128];
        (void)snprintf(text, sizeof text, "%s%s", head, bodies[i][0]);
        bench_open(&b, text);
        assert_int_equal(smg_kernel_shared_bytes(b.k), 2 * 4 * 4);
        assert_verdict(&b, bodies[i][0], bodies[i][1]);
        b.k->tiles.items[2].type = SMG_TYPE_F16;
        if (i == 0) assert_verdict(&b, "two types", "tiles 'a' and 'b' lie on one memory and are of float and f16");
        bench_close(&b);
    }
}

/* ---- barriers of a subgroup ---------------------------------------------------------------------------- */

/* Rows lie over subgroups of 4 lanes: what a lane spills of them is read by its own subgroup, what all lanes stage by
 * others too. */
static void test_scopes(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 8 subgroup 4\naxis i = 4 tile 4\naxis j = 4 tile 4\n"
                               "axis k = 8 tile 8\nlayout 0 = [i, j] registers i*2 lanes j*4 subgroups i*2:2\n"
                               "layout 1 = [i, k] registers i*2 k*2:4 lanes k*4 subgroups i*2:2\n"
                               "layout 2 = [i, j, k] registers i*2 k*8 lanes j*4 subgroups i*2:2\n"
                               "layout 3 = [i, k] registers i*2:2 k*2:4 lanes k*4 subgroups i*2\n"
                               "tile t float register [i, k] layout 1\ntile u float register [i, k] layout 3\n"
                               "tile acc float register [i, j] layout 0\ntile sa float shared [i, k]\n"
                               "tile sb float shared [k, j]\ncode\n  set acc = 0\n  set t = 1\n  set u = 1\n";
#define STAGE_B "  stage sb walk [k, j] = 1\n"
#define MULTIPLY "  mma acc += sa * sb over [k] layout 2\n"
    static const char *const bodies[][2] = {
        {STAGE_B "  barrier\n  spill sa = t\n  barrier subgroup\n" MULTIPLY, ""},
        {STAGE_B "  barrier\n  spill sa = t\n" MULTIPLY,
         "instruction 6: shared tile 'sa' is read without a subgroup barrier after instruction 5 wrote it"},
        {STAGE_B "  spill sa = t\n  barrier subgroup\n" MULTIPLY,
         "instruction 6: shared tile 'sb' is read without a workgroup barrier after instruction 3 wrote it"},
        {STAGE_B "  barrier\n  spill sa = u\n  barrier subgroup\n" MULTIPLY,
         "instruction 7: shared tile 'sa' is read without a workgroup barrier after instruction 5 wrote it"},
        {STAGE_B "  barrier\n  loop j\n    spill sa = t\n  end\n",
         "instruction 6: shared tile 'sa' is written without a subgroup barrier after instruction 6 wrote it"},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* ---- slots -------------------------------------------------------------------------------------------- */

#define PUT_NEXT "    put sa walk [i, k] ahead 1 = next\n"

static void test_slots(void **state) {
    (void)state;
    static const spoilt changes[] = {
        {"kernel ring", "kernel ring", ""},
        /* a slot is read before it is written, or holds something else */
        {"  put sa walk [i, k] ahead 0 = next\n", "",
         "instruction 8: slot 0 of tile 'sa' is read before instruction 9 writes it"},
        {"  stage sb walk [j, k] ahead 1 = load(1)\n", "",
         "instruction 8: slot 1 of tile 'sb' is read before instruction 7 writes it"},
        {PUT_NEXT "  end\n", "  end\n", "instruction 9: slot 1 of tile 'sa' is read before instruction 2 writes it"},
        {"stage sb walk [j, k] ahead 2 = load(1)\n", "stage sb walk [j, k] ahead 1 = load(1)\n", ""},
        {"sb float shared [k, j] slots 3", "sb float shared [k, j] slots 4", ""},
        {PUT_NEXT, "    put sa walk [i, k] ahead 0 = next\n",
         "instruction 10: 'next' is put for step 0, and instruction 7 has fetched it for step 1"},
        {"along k ahead 1 = load(0)\n", "along k ahead 2 = load(0)\n",
         "instruction 10: 'next' is put for step 1, and instruction 7 has fetched it for step 2"},
        /* barriers */
        {"    barrier\n", "",
         "instruction 8: shared tile 'sa' is read without a workgroup barrier after instruction 2 wrote it"},
        {"    barrier\n", PUT_NEXT "    barrier\n",
         "instruction 6: 'next' is put for step 1, and instruction 1 has fetched it for step 0"},
        {"    mma acc += sa * sb over [k] layout 1\n", PUT_NEXT "    mma acc += sa * sb over [k] layout 1\n",
         "instruction 11: shared tile 'sa' is written without a workgroup barrier after instruction 9 wrote it"},
        {"stage sb walk [j, k] ahead 2 = load(1)\n", "stage sb walk [j, k] ahead 0 = load(1)\n",
         "instruction 9: shared tile 'sb' is read without a workgroup barrier after instruction 8 wrote it"},
        {"sb float shared [k, j] slots 3", "sb float shared [k, j] slots 2", "is filled 2 steps ahead, at most 1"},
        /* what has slots, and where */
        {"register [i, j] layout 0\n", "register [i, j] layout 0 slots 2 along k\n",
         "tile 'acc' has 2 slots; shared tiles, staging tiles and factors of matrices have them, 2 to 8"},
        {"slots 3 along k", "slots 3 along k memory 1",
         "tile 'sb' of 3 slots lies on the memory of tile 'sb' of 3; there both have as many, and loops"},
        {"slots 3 along k", "slots 3 along j", "tile 'sb' has slots along axis 1 of 3, or along one of the grid"},
        {"  end\n", "  end\n  stage sb walk [j, k] ahead 0 = load(1)\n",
         "tile 'sb' is filled for a step of a loop over axis 'k', and none is open or follows"},
        {"  end\n", "  end\n  fetch next walk [i, k] along k ahead 1 = load(0)\n",
         "tile 'next' is filled for a step of a loop over axis 'k', and none is open or follows"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(changes); i++)
        check_changed(bench_ring, changes[i].from, changes[i].to, changes[i].sentence);
}

/* Slots of what a lane made itself; two loops over one axis, of which nobody knows the steps. */
static void test_spilled_slots(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 4 subgroup 4\nsymbol n <= 64\naxis i = 4 tile 4\naxis k = n tile 1\n"
                               "axis l = n tile 1\nlayout 0 = [i] lanes i*4\ntile r float register [i] layout 0\n"
                               "tile a float shared [i] slots 2 along k\ntile c float shared [i] pad 1\n"
                               "access 0 = - at [0] k*[1]\ncode\n  set r = 0\n";
#define OVER(body) "  loop k\n" body "  end\n"
#define TURN "    spill a = r\n    barrier subgroup\n    set r = a\n"
    static const char *const bodies[][2] = {
        {OVER(TURN), ""},
        {OVER("    spill a = r\n    set r = a\n"),
         "instruction 3: shared tile 'a' is read without a subgroup barrier after instruction 2 wrote it"},
        {OVER(TURN) OVER(TURN),
         "instruction 7: shared tile 'a' is written without a subgroup barrier after instruction 4 read it"},
        {OVER(TURN) "  barrier\n" OVER(TURN), ""},
        {"  loop l\n" OVER(TURN) "  end\n",
         "instruction 3: shared tile 'a' is written without a subgroup barrier after instruction 5 read it"},
        {OVER(TURN) "  barrier\n  stage c walk [i] = a\n",
         "tile 'a' has slots along axis 'k' and is read outside of a loop over it"},
        {"  stage a walk [i] ahead 0 = 1\n  stage a walk [i] ahead 1 = 1\n  barrier\n" OVER("    set r = a\n"),
         "instruction 5: slot 0 of tile 'a' is read for step 2, and instruction 1 has written it for step 0"},
        {"  spill a = r\n", "'a' has slots along axis 'k', and no loop over it is open"},
        {"  loop k to iota(0)\n" TURN "  end\n", "moves with its own steps"},
    };
    check_bodies(head, bodies, SMG_COUNT_OF(bodies));
}

/* ---- exchanges --------------------------------------------------------------------------------------- */

static void test_exchanges(void **state) {
    (void)state;
    static const char head[] = "kernel good\nlanes 16 subgroup 4\naxis i = 16 tile 16\naxis j = 4 tile 4\n"
                               "layout 0 = [] lanes *4 subgroups *4\nlayout 1 = [i] lanes i*4 subgroups i*4:4\n"
                               "layout 2 = [j] registers j*4 lanes *4 subgroups *4\n"
                               "layout 3 = [i, j] registers j*4 lanes i*4 subgroups i*4:4\n"
                               "layout 4 = [j] lanes *2 j*2 subgroups j*2:2 *2\n"
                               "tile r float register [] layout 0\ntile q float register [j] layout 2\n"
                               "tile s float shared []\ntile x float exchange [] words 4\n"
                               "tile y float exchange [] words 8\ncode\n";
#define JOINED "  reduce r = add over [i] layout 1 apart of 1\n  join r = add over [i] layout 1 by xor\n"
#define LEFT JOINED "  leave x = r over [i] layout 1 registers 0 to 0\n"
#define GATHERED LEFT "  barrier\n  gather r = add of x over [i] layout 1 registers 0 to 0\n"
    static const char *const bodies[][2] = {
        {GATHERED "  spill s = r\n", ""},
        {JOINED "  spill s = r\n", "tile 'r' is read before its partial sums are joined"},
        {LEFT "  gather r = add of x over [i] layout 1 registers 0 to 0\n",
         "shared tile 'x' is read without a workgroup barrier after instruction 2 wrote it"},
        {GATHERED "  leave x = r over [i] layout 1 registers 0 to 0\n",
         "tile 'r' is exchanged and holds no parts in those subgroups"},
        {"  reduce r = add over [i] layout 1 apart of 1\n  leave x = r over [i] layout 1 registers 0 to 0\n",
         "tile 'r' is exchanged and holds no parts in those subgroups"},
        {JOINED "  leave x = r over [i] layout 1 registers 0 to 1\n",
         "registers 0 to 1 of the 1 of 'r' do not fit the 4 words of 'x'"},
        {"  reduce r = add over [j] layout 4 apart of 1\n  join r = add over [j] layout 4 by whole\n",
         "the lanes that differ in bits 2 of 3 do not join by 'whole'"},
        {"  reduce r = add over [j] layout 4 apart of 1\n  join r = add over [j] layout 4 by clustered\n",
         "the lanes that differ in bits 2 of 3 do not join by 'clustered'"},
        {"  reduce q = add over [i] layout 3 apart of 1\n  join q = add over [i] layout 3 by whole\n"
         "  leave y = q over [i] layout 3 registers 0 to 1\n  barrier\n"
         "  gather q = add of y over [i] layout 3 registers 2 to 3\n",
         "the words of 'y' are of registers 0 to 1 by layout 3, left by instruction 2"},
        {"  reduce q = add over [i] layout 3 apart of 1\n  join q = add over [i] layout 3 by whole\n"
         "  leave y = q over [i] layout 3 registers 2 to 3\n  barrier\n"
         "  gather q = add of y over [i] layout 3 registers 2 to 3\n",
         "register 2 of 'q' is gathered, and of those before it only 0"},
        {"  stage x walk [] = 1\n", "the result 'x' must be a shared tile"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(bodies); i++) {
        bench b;
        char text[sizeof head + 1024];
        (void)snprintf(text, sizeof text, "%s%s", head, bodies[i][0]);
        bench_open(&b, text);
        assert_int_equal(smg_kernel_shared_bytes(b.k), 13 * 4);
        assert_verdict(&b, bodies[i][0], bodies[i][1]);
        bench_close(&b);
    }
}

/* ---- before layouts ---------------------------------------------------------------------------------- */

/* Lines that declare layouts go, and every mention of one. */
static void without_layouts(const char *text, char *out) {
    while (*text != '\0') {
        bool line = strncmp(text, "layout ", 7) == 0 && text[-1] == '\n';
        if (line) {
            text = strchr(text, '\n') + 1;
        } else if (strncmp(text, " layout ", 8) == 0) {
            text += 9;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

/* What lowering has before it chooses layouts is a program: the same rules but those of lanes, its text is read again,
 * and nothing that has lanes takes it. */
static void test_no_layouts(void **state) {
    (void)state;
    bench b;
    char text[sizeof good];
    without_layouts(good, text);
    bench_open(&b, text);
    assert_verdict(&b, "without layouts", "");
    smg_text printed;
    smg_text_init(&printed, b.ctx);
    smg_kernel_print(b.k, &printed);
    assert_null(strstr(smg_text_cstr(&printed), "layout"));
    smg_kernel *again;
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, smg_text_cstr(&printed), &again), SMG_OK);
    smg_text_free(&printed);
    smg_karray none[1] = {{NULL, 0}};
    assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, none, true), SMG_INTERNAL);
    assert_string_equal(smg_context_error(b.ctx), "kernel 'good' has no layouts, so its lanes hold nothing");
    bench_close(&b);
    char *barrier = strstr(text, "    barrier\n");
    assert_non_null(barrier);
    memmove(barrier, barrier + 12, strlen(barrier + 12) + 1);
    bench_open(&b, text);
    assert_verdict(&b, "without a barrier",
                   "shared tile 'sa' is read without a workgroup barrier after instruction 7 wrote it");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),   cmocka_unit_test(test_good),           cmocka_unit_test(test_rules),
        cmocka_unit_test(test_indices), cmocka_unit_test(test_owners),         cmocka_unit_test(test_wide),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_no_layouts),     cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_slots),   cmocka_unit_test(test_spilled_slots),  cmocka_unit_test(test_eights),
        cmocka_unit_test(test_partial), cmocka_unit_test(test_fetched_eights), cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_picks),   cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
