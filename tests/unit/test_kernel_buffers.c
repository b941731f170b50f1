/* kernel: what a program does to the buffers that it writes. Each element of one is one lane's. The verifier refuses
 * what it cannot prove from the text, the per-lane mode what two lanes did in a run: texts that race are told by both,
 * with both instructions; those that come close to one are right, and say the same in all modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "support/kernel_bench.h"

#define NO_ORDER ", and no barrier orders buffers"

static const char head[] = "kernel k\n"
                           "lanes 8 subgroup 4\n"
                           "symbol s <= 64\n"
                           "axis i = 8 tile 8\n"
                           "axis j = 4 tile 4\n"
                           "axis g = 4 tile 1 grid\n"
                           "axis n = s tile 64\n"
                           "axis m = s-2 tile 64\n"
                           "axis one = 1 tile 1\n"
                           "grid g\n"
                           "layout 0 = [i] lanes i*4 subgroups i*2:4\n"
                           "layout 1 = [i, j] registers j*4 lanes i*4 subgroups i*2:4\n"
                           "layout 2 = [j] registers j*4 lanes *4 subgroups *2\n"
                           "layout 3 = [i] lanes i*4:2 subgroups i*2\n"
                           "layout 4 = [j, n] registers j*4 n*16:4 lanes n*4 subgroups *2\n"
                           "layout 5 = [j, m] registers j*4 m*16:4 lanes m*4 subgroups *2\n"
                           "layout 6 = [i, j] registers j*4 lanes i*4:2 subgroups i*2\n"
                           "layout 7 = [n] registers n*8:8 lanes n*4 subgroups n*2:4\n"
                           "buffer x i32 [8] value 0\n"
                           "buffer y f32 [1024+32*s] value 1 written\n"
                           "tile r float register [i] layout 0\n"
                           "tile t float register [i] layout 3\n"
                           "tile w float register [i, j] layout 1\n"
                           "tile u float register [n] layout 7\n"
                           "tile q float register [j] layout 2\n"
                           "tile sa float shared [i]\n"
                           "access 0 = y at [0] i*[1] g*[8]\n"
                           "access 1 = y at [7] i*[-1] g*[8]\n";

enum { ELEMENTS = 1024 + 32 * 64, TEXT = 4096 };

/* The text, its symbol and what the two say to it; "": it is right. */
typedef struct verdict {
    const char *text; /* behind the head */
    const char *verified, *run;
} verdict;

static void assert_told(const bench *b, const char *text, smg_status status, const char *sentence) {
    if (sentence[0] == 0) {
        if (status != SMG_OK) fail_msg("%s: %s", text, smg_context_error(b->ctx));
        return;
    }
    if (status != SMG_INTERNAL) fail_msg("%s: accepted", text);
    if (!strstr(smg_context_error(b->ctx), sentence))
        fail_msg("%s: \"%s\", wanted \"%s\"", text, smg_context_error(b->ctx), sentence);
}

static void open_text(bench *b, const char *text) {
    char whole[TEXT];
    assert_in_range(snprintf(whole, sizeof whole, "%s%s", head, text), 1, TEXT - 1);
    bench_open(b, whole);
    b->symbols[0] = 6;
}

/* Rows that x names are all 3. */
static smg_status run(bench *b) {
    static double x[8], y[ELEMENTS];
    smg_karray arrays[] = {{x, 8}, {y, 0}};
    for (int i = 0; i < 8; i++) x[i] = 3;
    memset(y, 0, sizeof y);
    assert_true(smg_size_eval(b->sizes, b->k->buffers.items[1].elements, b->symbols, &arrays[1].elements));
    return smg_kernel_interpret_lanes(b->ctx, b->k, b->symbols, arrays, false);
}

static void check(const verdict *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bench b;
        open_text(&b, rows[i].text);
        assert_told(&b, rows[i].text, smg_kernel_verify(b.ctx, b.k), rows[i].verified);
        smg_context_clear_error(b.ctx);
        assert_told(&b, rows[i].text, run(&b), rows[i].run);
        bench_close(&b);
    }
}

/* One store, by how far its axes step. */
static void test_maps(void **state) {
#define OVER(map, layout) "access 2 = y at " map "\ncode\n  store 2 over [" layout " = 1\n"
#define LOOPED(map)                                                                                                    \
    "axis k = 4 tile 1\naccess 2 = y at " map "\ncode\n  loop k\n    store 2 over [i] layout 0 = 1\n  end\n"
    static const verdict rows[] = {
        {OVER("[0] i*[4] j*[1] g*[32]", "i, j] layout 1"), "", ""},
        {OVER("[0] i*[1] j*[8] g*[32]", "i, j] layout 1"), "", ""},
        {OVER("[31] i*[-4] j*[-1] g*[32]", "i, j] layout 1"), "", ""},
        {OVER("[0] i*[6] j*[1] one*[1] g*[64]", "i, j] layout 1"), "", ""},
        {OVER("[0] i*[1] j*[1] g*[8]", "i, j] layout 1"),
         "kernel 'k', instruction 0: access 2 may store several elements at one place of 'y': a step along axis 'j' is "
         "1 where all of axis 'i' is 8 by 1",
         "kernel 'k', instruction 0, workgroup 0: lane 1 writes element 1 of buffer 'y', which lane 0 of workgroup 0 "
         "writes in instruction 0" NO_ORDER},
        {OVER("[7] i*[-1] j*[1] g*[16]", "i, j] layout 1"), "a step along axis 'j' is 1 where",
         "lane 7 writes element 1 of buffer 'y', which lane 6"},
        {OVER("[0] i*[3] j*[1] g*[32]", "i, j] layout 1"), "axis 'i' is 3 where all of axis 'j' is 4 by 1",
         "lane 1 writes element 3 of buffer 'y', which lane 0"},
        {OVER("[0] i*[4] j*[1] g*[31]", "i, j] layout 1"), "axis 'g' is 31 where all of axis 'i' is 8 by 4",
         "instruction 0, workgroup 1: lane 0 writes element 31 of buffer 'y', which lane 7 of workgroup 0 writes in"},
        {OVER("[0] i*[1]", "i] layout 0"), "stored once for each element of axis 'g'",
         "instruction 0, workgroup 3: lane 0 writes element 0 of buffer 'y', which lane 0 of workgroup 0 writes in"},
        {LOOPED("[0] i*[1] k*[8] g*[32]"), "", ""},
        {LOOPED("[0] i*[1] k*[7] g*[32]"), "instruction 1: access 2 may store several elements at one place of 'y'",
         "instruction 1, workgroup 0: lane 7 writes element 7 of buffer 'y', which lane 0 of workgroup 0"},
        {LOOPED("[0] i*[1] g*[32]"), "stored once for each element of axis 'k'", ""}, /* by one lane, in a run */
        /* sizes that only a run knows */
        {OVER("[0] n*[1] j*[s] g*[4*s]", "j, n] layout 4"), "", ""},
        {OVER("[0] n*[4] j*[1] g*[4*s]", "j, n] layout 4"), "", ""},
        {OVER("[0] n*[1] j*[s+1] g*[5*s+4]", "j, n] layout 4"), "", ""},
        {OVER("[0] m*[1] j*[s-2] g*[4*s-8]", "j, m] layout 5"), "", ""},
        {OVER("[0] n*[1] j*[s-1] g*[4*s]", "j, n] layout 4"), "where all of axis 'n' is",
         "lane 1 writes element 5 of buffer 'y', which lane 0"},
        {OVER("[0] n*[1] j*[s] g*[3*s]", "j, n] layout 4"), "where all of axis 'j' is",
         "instruction 0, workgroup 1: lane 0 writes element 18 of buffer 'y', which lane 0 of workgroup 0"},
        {OVER("[0] n*[s-2] j*[s*s] g*[4*s*s]", "j, n] layout 4"),
         "access 2 stores to 'y' by steps along axis 'n' that may be 0", ""},
    };
    (void)state;
    check(rows, SMG_COUNT_OF(rows));
}

/* Which of two products of sizes is longer no bound of them says. */
static void test_many_sizes(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        bench b;
        char text[TEXT];
        const char *outer = i == 0 ? "o*[p*q*r*t]" : "o*[p*q*r*r]";
        (void)snprintf(
            text, sizeof text,
            "kernel k\nlanes 4 subgroup 4\nsymbol p\nsymbol q\nsymbol r\nsymbol t\naxis i = p tile 1 grid\n"
            "axis j = q tile 1 grid\naxis k = r tile 1 grid\naxis l = t tile 1 grid\naxis o = 3 tile 1 grid\n"
            "grid i, j, k, l, o\nlayout 0 = [] lanes *4\nbuffer y f32 [3*p*q*r*t] value 0 written\n"
            "access 0 = y at [0] %s l*[p*q*r] k*[p*q] j*[p] i*[1]\ncode\n  store 0 over [] layout 0 = 1\n",
            outer);
        bench_open(&b, text);
        assert_told(&b, outer, smg_kernel_verify(b.ctx, b.k), i == 0 ? "" : "where all of axis 'l' is");
        bench_close(&b);
    }
}

/* Up to its data: all lanes go to row 3, or each to its own. */
static void test_indirect(void **state) {
    static const verdict rows[] = {
        {"access 2 = x at [0] i*[1]\naccess 3 = y at [0] g*[8] : index*[1] below [8] of load(2)\n"
         "code\n  store 3 over [i] layout 0 = 1\n",
         "", "instruction 0, workgroup 0: lane 7 writes element 3 of buffer 'y', which lane 0 of workgroup 0"},
        {"access 2 = - at [0] i*[1]\naccess 3 = y at [0] g*[8] : index*[1] below [8] of iota(2)\n"
         "code\n  store 3 over [i] layout 0 = 1\n",
         "", ""},
        {"access 2 = - at [0] i*[1]\naccess 3 = y at [0] g*[8] : index*[1] below [8] of iota(2)\n"
         "code\n  store 3 over [i] layout 0 = 1\n  store 3 over [i] layout 0 = 2\n",
         "instruction 1: access 3 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER, ""},
    };
    (void)state;
    check(rows, SMG_COUNT_OF(rows));
}

static void test_stores(void **state) {
    static const verdict rows[] = {
        {"code\n  store 0 over [i] layout 0 = 1\n  store 0 over [i] layout 0 = 2\n", "", ""},
        {"access 2 = y at [0] g*[8] i*[1]\ncode\n  store 0 over [i] layout 0 = 1\n  store 2 over [g, i] layout 0 = 2\n",
         "", ""},
        {"access 2 = y at [0] j*[1] g*[4]\ncode\n  store 2 over [j] layout 2 = 1\n  store 2 over [j] layout 2 = 2\n",
         "", ""},
        {"code\n  store 0 over [i] layout 0 = 1\n  store 1 over [i] layout 0 = 2\n",
         "kernel 'k', instruction 1: access 1 stores elements of 'y' that other lanes may store in instruction "
         "0" NO_ORDER,
         "kernel 'k', instruction 1, workgroup 0: lane 7 writes element 0 of buffer 'y', which lane 0 of workgroup 0 "
         "writes in instruction 0" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = 1\n  barrier\n  store 1 over [i] layout 0 = 2\n",
         "instruction 2: access 1 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 2, workgroup 0: lane 7 writes element 0 of buffer 'y', which lane 0 of workgroup 0 writes in "
         "instruction 0" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = 1\n  store 0 over [i] layout 3 = 2\n", /* the same map by other lanes */
         "instruction 1: access 0 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 1, workgroup 0: lane 4 writes element 1 of buffer 'y', which lane 1 of workgroup 0 writes in "
         "instruction 0" NO_ORDER},
        /* in another part of the buffer, and one element into it */
        {"access 2 = y at [32] i*[1] g*[8]\ncode\n  store 0 over [i] layout 0 = 1\n  store 2 over [i] layout 3 = 2\n",
         "", ""},
        {"access 2 = y at [31] i*[1] g*[8]\ncode\n  store 0 over [i] layout 0 = 1\n  store 2 over [i] layout 3 = 2\n",
         "instruction 1: access 2 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "writes element 31 of buffer 'y'"},
        {"access 2 = y at [0] i*[2] g*[16]\ncode\n  store 0 over [i] layout 0 = 1\n  store 2 over [i] layout 0 = 2\n",
         "instruction 1: access 2 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "lane 2 writes element 2 of buffer 'y', which lane 1 of workgroup 0 writes in instruction 1" NO_ORDER},
        {"access 2 = y at [1] i*[1] g*[8]\ncode\n  store 0 over [i] layout 0 = 1\n  store 2 over [i] layout 0 = 2\n",
         "instruction 1: access 2 stores elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "lane 1 writes element 1 of buffer 'y', which lane 0 of workgroup 0 writes in instruction 1" NO_ORDER},
    };
    (void)state;
    check(rows, SMG_COUNT_OF(rows));
}

static void test_loads(void **state) {
#define LOADED(number)                                                                                                 \
    "instruction " number ": access 1 loads elements of 'y' that other lanes may store in instruction "
    static const verdict rows[] = {
        {"code\n  store 0 over [i] layout 0 = 1\n  set r = load(0)\n  store 0 over [i] layout 0 = add(r, 1)\n", "", ""},
        {"code\n  store 0 over [i] layout 0 = 1\n  store 0 over [i] layout 0 = add(load(0), 1)\n", "", ""},
        {"code\n  set r = load(0)\n  store 0 over [i] layout 0 = add(r, 1)\n", "", ""},
        {"code\n  set w = load(0)\n  store 0 over [i] layout 0 = 1\n", "", ""}, /* its own, several times */
        {"code\n  set r = load(1)\n", "", ""},                                  /* nobody stores */
        {"code\n  store 0 over [i] layout 0 = 1\n  set r = load(1)\n  store 0 over [i] layout 0 = add(r, 1)\n",
         "kernel 'k', " LOADED("1") "0" NO_ORDER,
         "kernel 'k', instruction 1, workgroup 0: lane 7 loads element 0 of buffer 'y', which lane 0 of workgroup 0 "
         "writes in instruction 0" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = 1\n  barrier\n  set r = load(1)\n", LOADED("2") "0" NO_ORDER,
         "instruction 2, workgroup 0: lane 7 loads element 0 of buffer 'y', which lane 0 of workgroup 0 writes in "
         "instruction 0" NO_ORDER},
        {"code\n  set r = load(1)\n  store 0 over [i] layout 0 = 1\n", LOADED("0") "1" NO_ORDER,
         "instruction 0, workgroup 0: lane 7 loads element 0 of buffer 'y', which lane 0 of workgroup 0 writes in "
         "instruction 1" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = load(1)\n", LOADED("0") "0" NO_ORDER,
         "lane 7 loads element 0 of buffer 'y', which lane 0 of workgroup 0 writes in instruction 0" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = 1\n  set t = load(0)\n", "may store in instruction 0" NO_ORDER,
         "lane 4 loads element 1 of buffer 'y', which lane 1 of workgroup 0 writes in instruction 0" NO_ORDER},
        /* elements that do not exist are not loaded */
        {"access 2 = y at [0] n*[1] g*[s]\ncode\n  store 2 over [n] layout 7 = 1\n  set u = load(2)\n", "", ""},
        {"access 2 = y at [0] i*[1] g*[8] j*[8]\ncode\n  store 0 over [i] layout 0 = 1\n  set w = load(2)\n",
         "access 2 loads elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 1, workgroup 0: lane 0 loads element 8 of buffer 'y', which lane 0 of workgroup 1 writes in"},
        {"access 2 = y at [0] i*[1]\ncode\n  store 0 over [i] layout 0 = 1\n  set r = load(2)\n", /* of workgroup 0 */
         "access 2 loads elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 1, workgroup 3: lane 0 loads element 0 of buffer 'y', which lane 0 of workgroup 0 writes in "
         "instruction 0" NO_ORDER},
        /* all lanes that hold copies load, the first one stores */
        {"access 2 = y at [0] j*[1] g*[4]\ncode\n  store 2 over [j] layout 2 = 1\n  set q = load(2)\n",
         "access 2 loads elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 1, workgroup 0: lane 7 loads element 0 of buffer 'y', which lane 0 of workgroup 0 writes in "
         "instruction 0" NO_ORDER},
        {"code\n  store 0 over [i] layout 0 = 1\n  stage sa walk [i] = load(0)\n", /* dealt out over all lanes */
         "instruction 1: access 0 loads elements of 'y' that other lanes may store in instruction 0" NO_ORDER, ""},
        {"code\n  store 0 over [i] layout 0 = 1\n  reduce r = add over [j] layout 1 of load(0)\n", "", ""},
        {"code\n  store 0 over [i] layout 0 = 1\n  reduce t = add over [j] layout 6 of load(0)\n",
         "instruction 1: access 0 loads elements of 'y' that other lanes may store in instruction 0" NO_ORDER,
         "instruction 1, workgroup 0: lane 4 loads element 1 of buffer 'y', which lane 1"},
    };
    (void)state;
    check(rows, SMG_COUNT_OF(rows));
}

/* Lanes that store whole matrices, or exchange elements first, store what others hold. */
static void test_together(void **state) {
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"code\n  store 0 over [i] layout 0 = 1\n  store 0 over [i] layout 0 = 2\n",
         "instruction 1: access 0 stores elements of 'y' that other lanes may store in instruction 0"},
        {"code\n  set r = load(0)\n  store 0 over [i] layout 0 = 2\n",
         "instruction 0: access 0 loads elements of 'y' that other lanes may store in instruction 1"},
    };
    (void)state;
    for (int i = 0; i < 4; i++) {
        bench b;
        open_text(&b, rows[i / 2].text);
        assert_told(&b, "own", smg_kernel_verify(b.ctx, b.k), "");
        b.k->code.items[1].exchanged = i % 2 == 0;
        b.k->code.items[1].matrices = i % 2 == 1;
        assert_told(&b, rows[i / 2].text, smg_kernel_verify(b.ctx, b.k), rows[i / 2].sentence);
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_sizes), cmocka_unit_test(test_maps),  cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_stores),     cmocka_unit_test(test_loads), cmocka_unit_test(test_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
