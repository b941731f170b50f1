/* The per-lane mode of the interpreter. Right programs, one for each way in which elements lie in lanes and move
 * between them, give the results of the fast mode. Wrong ones, each a right one with a line changed, end with a
 * sentence that names lanes, element and instruction; those that a device would often get away with are why the mode
 * is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/kernel_bench.h"

#define MOST_BUFFERS 8

/* Random floats; integers are row numbers below 7. What kernels write is NaN before. */
static void fill(const smg_kernel *k, const int64_t *symbols, smg_karray *out) {
    uint32_t state = 12345;
    assert_true(k->buffers.count <= MOST_BUFFERS);
    for (int b = 0; b < k->buffers.count; b++) {
        const smg_kbuffer *buffer = &k->buffers.items[b];
        assert_true(smg_size_eval(k->sizes, buffer->elements, symbols, &out[b].elements));
        out[b].data = calloc((size_t)out[b].elements + 1, sizeof(double));
        assert_non_null(out[b].data);
        for (int64_t i = 0; i < out[b].elements; i++) {
            state = state * 1664525u + 1013904223u;
            double draw = (double)(state >> 8) / 8388608.0 - 1.0;
            out[b].data[i] = buffer->written ? (double)NAN : draw;
            if (smg_type_kind(buffer->type) == SMG_KIND_INT) out[b].data[i] = (double)(state >> 8 & 0xffff) / 10000.0;
            if (smg_type_kind(buffer->type) == SMG_KIND_INT) out[b].data[i] = floor(out[b].data[i]);
        }
    }
}

static void drop(const smg_kernel *k, smg_karray *arrays) {
    for (int b = 0; b < k->buffers.count; b++) free(arrays[b].data);
}

static void set_symbols(bench *b, int64_t first, int64_t second) {
    int count = smg_size_symbol_count(b->sizes);
    if (count > 0) b->symbols[0] = first;
    if (count > 1) b->symbols[1] = second;
}

/* Both modes give the same, and every element of every result is a number. */
static void assert_agrees(const char *text, int64_t first, int64_t second) {
    bench b;
    smg_karray fast[MOST_BUFFERS], lanes[MOST_BUFFERS];
    bench_open(&b, text);
    if (smg_kernel_verify(b.ctx, b.k) != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    set_symbols(&b, first, second);
    fill(b.k, b.symbols, fast);
    fill(b.k, b.symbols, lanes);
    if (smg_kernel_interpret(b.ctx, b.k, b.symbols, fast, false) != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    if (smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, lanes, false) != SMG_OK)
        fail_msg("%s", smg_context_error(b.ctx));
    for (int n = 0; n < b.k->buffers.count; n++)
        for (int64_t i = 0; i < fast[n].elements; i++) {
            double x = fast[n].data[i], y = lanes[n].data[i];
            if (!(fabs(x - y) <= 1e-12 * (1.0 + fabs(x))))
                fail_msg("%s: element %lld of '%s' is %.17g by lane, %.17g otherwise", b.k->name, (long long)i,
                         b.k->buffers.items[n].name, y, x);
        }
    drop(b.k, fast);
    drop(b.k, lanes);
    bench_close(&b);
}

static void assert_told(const char *text, int64_t first, int64_t second, const char *sentence) {
    bench b;
    smg_karray arrays[MOST_BUFFERS];
    bench_open(&b, text);
    set_symbols(&b, first, second);
    fill(b.k, b.symbols, arrays);
    assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, arrays, false), SMG_INTERNAL);
    assert_string_equal(smg_context_error(b.ctx), sentence);
    drop(b.k, arrays);
    bench_close(&b);
}

/* The program is right, and wrong with the change. */
static void assert_told_changed(const char *text, const char *old, const char *now, int64_t first, int64_t second,
                                const char *sentence) {
    char *wrong = bench_changed(text, old, now);
    assert_agrees(text, first, second);
    assert_told(wrong, first, second, sentence);
    free(wrong);
}

/* ---- programs --------------------------------------------------------------------------------------- */

/* Rows of exp(x - max) / sum with a running maximum. k lies over registers, lanes and subgroups; rows are repeated
 * three times in registers. */
static const char softmax[] = "kernel softmax\n"
                              "lanes 16 subgroup 4\n"
                              "symbol s <= 4096\n"
                              "symbol n <= 4096\n"
                              "axis q = s tile 6 grid\n"
                              "axis k = n tile 32\n"
                              "grid q\n"
                              "layout 0 = [q] lanes *4 subgroups *2 q*2 repeat q*3\n"
                              "layout 1 = [q, k] registers k*2 k*2:16 lanes k*4:2 subgroups k*2:8 q*2 repeat q*3\n"
                              "layout 2 = [q] lanes *2 q*2 subgroups *4 repeat q*3\n"
                              "layout 3 = [q] lanes *4 subgroups *2 q*2\n"
                              "buffer x f32 [s*n] value 0\n"
                              "buffer y f32 [s*n] value 1 written\n"
                              "tile max float register [q] layout 0\n"
                              "tile old float register [q] layout 0\n"
                              "tile sum float register [q] layout 0\n"
                              "tile e float register [q, k] layout 1\n"
                              "access 0 = x at [0] q*[n] k*[1]\n"
                              "access 1 = y at [0] q*[n] k*[1]\n"
                              "code\n"
                              "  set max = -3e+38\n"
                              "  set sum = 0\n"
                              "  loop k\n"
                              "    set old = max\n"
                              "    accumulate max = max over [k] layout 1 of load(0)\n"
                              "    set sum = mul(sum, exp(sub(old, max)))\n"
                              "    accumulate sum = add over [k] layout 1 of exp(sub(load(0), max))\n"
                              "  end\n"
                              "  loop k\n"
                              "    set e = exp(sub(load(0), max))\n"
                              "    store 1 over [q, k] layout 1 = div(e, sum)\n"
                              "  end\n";

/* A lane's bits are woven: column, row, column, row. The left slice is fetched a step ahead. */
static const char woven[] = "kernel woven\n"
                            "lanes 16 subgroup 16\n"
                            "symbol m\n"
                            "axis i = m tile 8 grid\n"
                            "axis j = 13 tile 8 grid\n"
                            "axis k = 19 tile 4\n"
                            "grid i, j\n"
                            "layout 0 = [i, j] registers j*2 i*2:4 lanes j*2:2 i*2 j*2:4 i*2:2\n"
                            "layout 1 = [i, j, k] registers j*2 i*2:4 k*4 lanes j*2:2 i*2 j*2:4 i*2:2\n"
                            "layout 2 = [i, j, k] registers j*2 i*2:4 k*4 lanes i*2 j*2:2 j*2:4 i*2:2\n"
                            "buffer a f32 [19*m] value 0\n"
                            "buffer b f32 [247] value 1\n"
                            "buffer c f32 [13*m] value 2 written\n"
                            "tile acc float register [i, j] layout 0\n"
                            "tile sa float shared [i, k] pad 1 clamped [i]\n"
                            "tile sb float shared [k, j] clamped [j]\n"
                            "tile next float staging [i, k] clamped [i, k]\n"
                            "access 0 = a at [0] i*[19] k*[1]\n"
                            "access 1 = b at [0] k*[13] j*[1]\n"
                            "access 2 = c at [0] i*[13] j*[1]\n"
                            "code\n"
                            "  set acc = 0\n"
                            "  fetch next walk [i, k] along k ahead 0 = load(0)\n"
                            "  loop k\n"
                            "    put sa walk [i, k] = next\n"
                            "    stage sb walk [j, k] = load(1)\n"
                            "    barrier\n"
                            "    fetch next walk [i, k] along k ahead 1 = load(0)\n"
                            "    mma acc += sa * sb over [k] layout 1\n"
                            "    barrier  # read\n"
                            "  end\n"
                            "  store 2 over [i, j] layout 0 = acc\n";

/* Four lanes share out k, two in a subgroup; the rest of a tile's k is in registers. */
static const char depth[] = "kernel depth\n"
                            "lanes 16 subgroup 8\n"
                            "symbol m\n"
                            "axis i = m tile 4 grid\n"
                            "axis j = 5 tile 4 grid\n"
                            "axis k = 21 tile 16\n"
                            "grid i, j\n"
                            "layout 0 = [i, j] registers j*2 i*2:2 lanes j*2:2 i*2 *2 subgroups *2\n"
                            "layout 1 = [i, j, k] registers j*2 i*2:2 k*4 lanes j*2:2 i*2 k*2:4 subgroups k*2:8\n"
                            "layout 2 = [i, j, k] registers j*2 i*2:2 k*4 k*2:8 lanes j*2:2 i*2 k*2:4 subgroups *2\n"
                            "buffer a f32 [21*m] value 0\n"
                            "buffer b f32 [105] value 1\n"
                            "buffer c f32 [5*m] value 2 written\n"
                            "tile acc float register [i, j] layout 0\n"
                            "tile sa float shared [i, k]\n"
                            "tile sb float shared [j, k] pad 4\n"
                            "access 0 = a at [0] i*[21] k*[1]\n"
                            "access 1 = b at [0] k*[5] j*[1]\n"
                            "access 2 = c at [0] i*[5] j*[1]\n"
                            "code\n"
                            "  set acc = 0\n"
                            "  loop k\n"
                            "    stage sa walk [i, k] = load(0)\n"
                            "    stage sb walk [j, k] = load(1)\n"
                            "    barrier\n"
                            "    mma acc += sa * sb over [k] layout 1\n"
                            "    barrier\n"
                            "  end\n"
                            "  join acc = add over [k] layout 1\n"
                            "  store 2 over [i, j] layout 0 = add(acc, 1)\n";

/* Operands where they lie; no barrier. */
static const char view[] = "kernel view\n"
                           "lanes 8 subgroup 4\n"
                           "symbol m\n"
                           "axis i = m tile 4 grid\n"
                           "axis j = 8 tile 8 grid\n"
                           "axis k = 10 tile 4\n"
                           "grid i, j\n"
                           "layout 0 = [i, j] registers j*2 i*2:2 lanes j*4:2 subgroups i*2\n"
                           "layout 1 = [i, j, k] registers j*2 i*2:2 k*4 lanes j*4:2 subgroups i*2\n"
                           "buffer a f32 [10*m] value 0\n"
                           "buffer b f32 [80] value 1\n"
                           "buffer c f32 [8*m] value 2 written\n"
                           "tile acc float register [i, j] layout 0\n"
                           "tile va float view [i, k] of 0\n"
                           "tile vb float view [k, j] of 1\n"
                           "access 0 = a at [0] i*[10] k*[1]\n"
                           "access 1 = b at [0] k*[8] j*[1]\n"
                           "access 2 = c at [0] i*[8] j*[1]\n"
                           "code\n"
                           "  set acc = 0\n"
                           "  loop k\n"
                           "    mma acc += va * vb over [k] layout 1\n"
                           "  end\n"
                           "  store 2 over [i, j] layout 0 = acc\n";

/* A register tile spilled in another order and read by other lanes; rows are in lanes that hold copies. The second
 * spill lies on the memory of the first. */
static const char spill[] = "kernel spill\n"
                            "lanes 8 subgroup 4\n"
                            "symbol s <= 16\n"
                            "axis q = s tile 16\n"
                            "axis c = 3 tile 4\n"
                            "layout 0 = [q, c] registers c*2:2 q*8:2 lanes c*2 *2 subgroups q*2\n"
                            "layout 1 = [q] registers q*2 q*4:4 lanes *4 subgroups q*2:2\n"
                            "layout 2 = [q, c] registers q*2 q*4:4 lanes c*4 subgroups q*2:2\n"
                            "buffer x f32 [3*s] value 0\n"
                            "buffer y f32 [s] value 1 written\n"
                            "buffer z f32 [s] value 2 written\n"
                            "tile t float register [q, c] layout 0\n"
                            "tile u float register [q, c] layout 0\n"
                            "tile turned float shared [c, q] pad 3 memory 1\n"
                            "tile again float shared [q, c] memory 1\n"
                            "tile r float register [q] layout 1\n"
                            "access 0 = x at [0] q*[3] c*[1]\n"
                            "access 1 = y at [0] q*[1]\n"
                            "access 2 = z at [0] q*[1]\n"
                            "code\n"
                            "  set t = load(0)\n"
                            "  set u = mul(t, t)\n"
                            "  spill turned = t\n"
                            "  barrier\n"
                            "  reduce r = min over [c] layout 2 of turned\n"
                            "  store 1 over [q] layout 1 = r\n"
                            "  barrier\n"
                            "  spill again = u\n"
                            "  barrier\n"
                            "  reduce r = add over [c] layout 2 of again\n"
                            "  store 2 over [q] layout 1 = r\n";

/* What is left are columns: rows go, in registers, lanes and subgroups. The layout spans 8 of 6 columns. */
static const char columns[] = "kernel columns\n"
                              "lanes 32 subgroup 8\n"
                              "symbol n\n"
                              "axis r = n tile 16\n"
                              "axis c = 6 tile 6\n"
                              "layout 0 = [c] registers c*2 lanes c*4:2 *2 subgroups *4\n"
                              "layout 1 = [r, c] registers c*2 r*2:8 lanes c*4:2 r*2 subgroups r*4:2\n"
                              "buffer x f32 [6*n] value 0\n"
                              "buffer y f32 [6] value 1 written\n"
                              "tile sum float register [c] layout 0\n"
                              "access 0 = x at [0] r*[6] c*[1]\n"
                              "access 1 = y at [0] c*[1]\n"
                              "code\n"
                              "  set sum = 0\n"
                              "  loop r\n"
                              "    accumulate sum = add over [r] layout 1 of load(0)\n"
                              "  end\n"
                              "  store 1 over [c] layout 0 = sum\n";

/* The same of exponentials, corrected as their maximum moves: each lane has its own until the end. */
static const char parts[] = "kernel parts\n"
                            "lanes 32 subgroup 8\n"
                            "symbol n\n"
                            "axis r = n tile 16\n"
                            "axis c = 6 tile 6\n"
                            "layout 0 = [c] registers c*2 lanes c*4:2 *2 subgroups *4\n"
                            "layout 1 = [r, c] registers c*2 r*2:8 lanes c*4:2 r*2 subgroups r*4:2\n"
                            "buffer x f32 [6*n] value 0\n"
                            "buffer y f32 [6] value 1 written\n"
                            "tile most float register [c] layout 0\n"
                            "tile old float register [c] layout 0\n"
                            "tile sum float register [c] layout 0\n"
                            "access 0 = x at [0] r*[6] c*[1]\n"
                            "access 1 = y at [0] c*[1]\n"
                            "code\n"
                            "  set most = -1000\n"
                            "  set sum = 0\n"
                            "  loop r\n"
                            "    set old = most\n"
                            "    accumulate most = max over [r] layout 1 apart of load(0)\n"
                            "    set sum = mul(sum, exp(sub(old, most)))\n"
                            "    accumulate sum = add over [r] layout 1 apart of exp(sub(load(0), most))\n"
                            "  end\n"
                            "  set old = most\n"
                            "  join most = max over [r] layout 1\n"
                            "  set sum = mul(sum, exp(sub(old, most)))\n"
                            "  join sum = add over [r] layout 1\n"
                            "  store 1 over [c] layout 0 = add(log(sum), most)\n";

/* Without subgroups every bit of a lane's number is a subgroup's. */
static const char tree[] = "kernel tree\n"
                           "lanes 16 subgroup 1\n"
                           "axis q = 5 tile 2 grid\n"
                           "axis k = 21 tile 32\n"
                           "grid q\n"
                           "layout 0 = [q] subgroups *8 q*2\n"
                           "layout 1 = [q, k] registers k*4:8 subgroups k*8 q*2\n"
                           "buffer x f32 [105] value 0\n"
                           "buffer y f32 [5] value 1 written\n"
                           "tile most float register [q] layout 0\n"
                           "access 0 = x at [0] q*[21] k*[1]\n"
                           "access 1 = y at [0] q*[1]\n"
                           "code\n"
                           "  reduce most = mul over [k] layout 1 of add(load(0), 1.5)\n"
                           "  store 1 over [q] layout 0 = most\n";

/* Two products at once, z in lanes. Layout 2 is that of the sums without z. */
static const char batch[] = "kernel batch\n"
                            "lanes 8 subgroup 8\n"
                            "axis z = 2 tile 2\n"
                            "axis i = 4 tile 4\n"
                            "axis j = 2 tile 2\n"
                            "axis k = 4 tile 4\n"
                            "layout 0 = [z, i, j] registers i*2:2 lanes j*2 i*2 z*2\n"
                            "layout 1 = [z, i, j, k] registers i*2:2 k*4 lanes j*2 i*2 z*2\n"
                            "layout 2 = [i, j] registers i*2:2 lanes j*2 i*2 *2\n"
                            "buffer a f32 [32] value 0\n"
                            "buffer b f32 [8] value 1\n"
                            "buffer c f32 [16] value 2 written\n"
                            "tile acc float register [z, i, j] layout 0\n"
                            "tile sa float shared [z, i, k]\n"
                            "tile sb float shared [k, j]\n"
                            "access 0 = a at [0] z*[16] i*[4] k*[1]\n"
                            "access 1 = b at [0] k*[2] j*[1]\n"
                            "access 2 = c at [0] z*[8] i*[2] j*[1]\n"
                            "code\n"
                            "  set acc = 0\n"
                            "  stage sa walk [z, i, k] = load(0)\n"
                            "  stage sb walk [k, j] = load(1)\n"
                            "  barrier\n"
                            "  mma acc += sa * sb over [k] layout 1\n"
                            "  store 2 over [z, i, j] layout 0 = acc\n";

/* A left operand made in registers. Behind the end of k both operands would be infinite, if they were not 0. */
static const char chain[] = "kernel chain\n"
                            "lanes 8 subgroup 4\n"
                            "axis i = 4 tile 4\n"
                            "axis j = 4 tile 4\n"
                            "axis k = 6 tile 8\n"
                            "layout 0 = [i, j] registers i*2 lanes j*4 subgroups i*2:2\n"
                            "layout 1 = [i, k] registers i*2 k*2:4 lanes k*4 subgroups i*2:2\n"
                            "layout 2 = [i, j, k] registers i*2 k*8 lanes j*4 subgroups i*2:2\n"
                            "buffer a f32 [24] value 0\n"
                            "buffer b f32 [24] value 1\n"
                            "buffer c f32 [16] value 2 written\n"
                            "tile t float register [i, k] layout 1\n"
                            "tile acc float register [i, j] layout 0\n"
                            "tile sa float shared [i, k]\n"
                            "tile sb float shared [k, j]\n"
                            "access 0 = a at [0] i*[6] k*[1]\n"
                            "access 1 = b at [0] k*[4] j*[1]\n"
                            "access 2 = c at [0] i*[4] j*[1]\n"
                            "code\n"
                            "  set t = div(1, load(0))\n"
                            "  set acc = 0\n"
                            "  spill sa = t\n"
                            "  stage sb walk [k, j] = div(1, load(1))\n"
                            "  barrier\n"
                            "  mma acc += sa * sb over [k] layout 2\n"
                            "  store 2 over [i, j] layout 0 = acc\n";

/* All lanes read one word; lane 0 reads it once more before it writes it. */
static const char one_word[] = "kernel word\n"
                               "lanes 4 subgroup 4\n"
                               "layout 0 = [] lanes *4\n"
                               "buffer x f32 [1] value 0\n"
                               "buffer y f32 [1] value 1 written\n"
                               "tile one float shared []\n"
                               "tile two float shared []\n"
                               "tile r float register [] layout 0\n"
                               "access 0 = x at [0]\n"
                               "access 1 = y at [0]\n"
                               "code\n"
                               "  stage one walk [] = load(0)\n"
                               "  barrier\n"
                               "  set r = one\n"
                               "  stage two walk [] = one\n"
                               "  barrier  # read\n"
                               "  stage one walk [] = load(0)\n"
                               "  barrier\n"
                               "  store 1 over [] layout 0 = add(r, one)\n";

/* All lanes of four subgroups read all words, then the first ones write them again. */
static const char words[] = "kernel words\n"
                            "lanes 16 subgroup 4\n"
                            "axis i = 4 tile 4\n"
                            "layout 0 = [i] registers i*4 lanes *4 subgroups *4\n"
                            "buffer x f32 [4] value 0\n"
                            "buffer y f32 [4] value 1 written\n"
                            "tile own float shared [i]\n"
                            "tile r float register [i] layout 0\n"
                            "access 0 = x at [0] i*[1]\n"
                            "access 1 = y at [0] i*[1]\n"
                            "code\n"
                            "  stage own walk [i] = load(0)\n"
                            "  barrier\n"
                            "  set r = own\n"
                            "  barrier  # read\n"
                            "  stage own walk [i] = mul(2, load(0))\n"
                            "  barrier\n"
                            "  store 1 over [i] layout 0 = add(r, own)\n";

/* Rows by number, staged; each lane reads what others brought. Integers, and a coordinate as a value. */
static const char gather[] = "kernel gather\n"
                             "lanes 8 subgroup 4\n"
                             "symbol s\n"
                             "axis t = s tile 2 grid\n"
                             "axis d = 5 tile 8\n"
                             "grid t\n"
                             "layout 0 = [t, d] registers d*2:4 lanes d*4 subgroups t*2\n"
                             "buffer ids i64 [s] value 0\n"
                             "buffer table f32 [35] value 1\n"
                             "buffer y f32 [5*s] value 2 written\n"
                             "tile rows float shared [d, t]\n"
                             "access 0 = ids at [0] t*[1]\n"
                             "access 1 = table at [0] d*[1] : index*[5] below [7] of load(0)\n"
                             "access 2 = y at [0] t*[5] d*[1]\n"
                             "access 3 = - at [0] t*[1]\n"
                             "code\n"
                             "  stage rows walk [t, d] = load(1)\n"
                             "  barrier\n"
                             "  store 2 over [t, d] layout 0 = add(rows, to_float(iota(3)))\n";

/* Sums in parts: in the lane, joined in subgroups, told across them by words, two registers in the first turn; folded
 * in the second. */
static const char told[] = "kernel told\n"
                           "lanes 16 subgroup 4\n"
                           "axis i = 12 tile 4 grid\n"
                           "axis k = 48 tile 48\n"
                           "grid i\n"
                           "layout 0 = [i, k] registers i*4 lanes k*4 subgroups k*4:4 repeat k*3\n"
                           "layout 1 = [i] registers i*4 lanes *4 subgroups *4\n"
                           "buffer x f32 [576] value 0\n"
                           "buffer y f32 [12] value 1 written\n"
                           "tile sum float register [i] layout 1\n"
                           "tile words float exchange [] words 8\n"
                           "access 0 = x at [0] i*[48] k*[1]\n"
                           "access 1 = y at [0] i*[1]\n"
                           "code\n"
                           "  reduce sum = add over [k] layout 0 apart of load(0)\n"
                           "  join sum = add over [k] layout 0 by whole\n"
                           "  leave words = sum over [k] layout 0 registers 0 to 1\n"
                           "  barrier # left\n"
                           "  gather sum = add of words over [k] layout 0 registers 0 to 1\n"
                           "  barrier # again\n"
                           "  leave words = sum over [k] layout 0 registers 2 to 3\n"
                           "  barrier # to fold\n"
                           "  fold words = add over [k] layout 0 registers 2 to 3\n"
                           "  barrier # folded\n"
                           "  gather sum = first of words over [k] layout 0 registers 2 to 3\n"
                           "  store 1 over [i] layout 1 = sum\n";

static void test_told(void **state) {
    (void)state;
    assert_told_changed(told, "  barrier # left\n", "", 0, 0,
                        "kernel 'told', instruction 3, workgroup 0: lane 0 reads word 1 of 'words', which lane 4 wrote "
                        "in instruction 2 without a workgroup barrier between");
    assert_told_changed(told, "  barrier # again\n", "", 0, 0,
                        "kernel 'told', instruction 5, workgroup 0: lane 0 writes over word 0 of 'words', which lane 4 "
                        "read in instruction 4 without a workgroup barrier between");
    assert_told_changed(told, "  barrier # folded\n", "", 0, 0,
                        "kernel 'told', instruction 9, workgroup 0: lane 0 reads word 4 of 'words', which lane 4 wrote "
                        "in instruction 8 without a workgroup barrier between");
    assert_told_changed(
        told, "  gather sum = add of words over [k] layout 0 registers 0 to 1\n", "", 0, 0,
        "kernel 'told', instruction 9, workgroup 0: lanes 0 and 4 hold element [0] of 'sum' and differ: "
        "0.439020991 and 0.131063938");
}

static void test_agrees(void **state) {
    (void)state;
    assert_agrees(bench_gates, 1, 0);
    assert_agrees(bench_gates, 7, 0);
    assert_agrees(softmax, 7, 100);
    assert_agrees(softmax, 1, 1);
    assert_agrees(woven, 13, 0);
    assert_agrees(depth, 7, 0);
    assert_agrees(view, 6, 0);
    assert_agrees(spill, 11, 0);
    assert_agrees(columns, 37, 0);
    assert_agrees(columns, 1, 0);
    assert_agrees(parts, 37, 0);
    assert_agrees(parts, 1, 0);
    assert_agrees(tree, 0, 0);
    assert_agrees(batch, 0, 0);
    assert_agrees(chain, 0, 0);
    assert_agrees(gather, 5, 0);
}

/* Results are rounded to f32 after each instruction where that is asked for. */
static void test_single(void **state) {
    (void)state;
    bench b;
    smg_karray arrays[MOST_BUFFERS];
    bench_open(&b, woven);
    set_symbols(&b, 9, 0);
    fill(b.k, b.symbols, arrays);
    assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, arrays, true), SMG_OK);
    for (int64_t i = 0; i < arrays[2].elements; i++) assert_true(arrays[2].data[i] == (double)(float)arrays[2].data[i]);
    drop(b.k, arrays);
    bench_close(&b);
}

/* ---- barriers --------------------------------------------------------------------------------------- */

static void test_races(void **state) {
    (void)state;
    assert_told_changed(woven, "    barrier\n", "", 13, 0,
                        "kernel 'woven', instruction 6, workgroup 0: lane 0 reads element [0, 1] of 'sa', which lane 1 "
                        "wrote in instruction 3 without a subgroup barrier between");
    assert_told_changed(woven, "    barrier  # read\n", "", 13, 0,
                        "kernel 'woven', instruction 3, workgroup 0: lane 0 writes over element [0, 0] of 'sa', which "
                        "lane 1 read in instruction 7 without a subgroup barrier between");
    assert_told_changed(spill, "of turned\n  store 1 over [q] layout 1 = r\n  barrier\n",
                        "of turned\n  store 1 over [q] layout 1 = r\n", 11, 0,
                        "kernel 'spill', instruction 6, workgroup 0: lane 0 writes over element [0, 2] of 'again', "
                        "which lane 4 read in instruction 4 without a workgroup barrier between");
    assert_told_changed(gather, "  barrier\n", "  stage rows walk [d, t] = load(1)\n  barrier\n", 5, 0,
                        "kernel 'gather', instruction 1, workgroup 0: lane 1 writes over element [0, 1] of 'rows', "
                        "which lane 0 wrote in instruction 0 without a subgroup barrier between");
    assert_told_changed(one_word, "  barrier  # read\n", "", 0, 0,
                        "kernel 'word', instruction 4, workgroup 0: lane 0 writes over element [] of 'one', which lane "
                        "1 read in instruction 2 without a subgroup barrier between");
}

/* Rows lie over subgroups: what lanes spill their own subgroup reads, what all lanes stage others too. Readers of
 * several subgroups count, and those that have read before a barrier of a subgroup. */
static void test_scopes(void **state) {
    (void)state;
    char *narrow =
        bench_changed(chain, "  spill sa = t\n  stage sb walk [k, j] = div(1, load(1))\n  barrier\n",
                      "  stage sb walk [k, j] = div(1, load(1))\n  barrier\n  spill sa = t\n  barrier subgroup\n");
    assert_told_changed(narrow, "  barrier subgroup\n", "", 0, 0,
                        "kernel 'chain', instruction 5, workgroup 0: lane 0 reads element [0, 1] of 'sa', which lane 1 "
                        "wrote in instruction 4 without a subgroup barrier between");
    assert_told_changed(narrow, "  barrier\n", "  barrier subgroup\n", 0, 0,
                        "kernel 'chain', instruction 6, workgroup 0: lane 0 reads element [1, 0] of 'sb', which lane 4 "
                        "wrote in instruction 2 without a workgroup barrier between");
    free(narrow);
    assert_told_changed(words, "  barrier  # read\n", "  barrier subgroup\n", 0, 0,
                        "kernel 'words', instruction 4, workgroup 0: lane 0 writes over element [0] of 'own', which "
                        "lane 4 read in instruction 2 without a workgroup barrier between");
}

/* Slots are different words: what is put beside a product goes to none that it reads. */
static void test_slots(void **state) {
    (void)state;
    static const char both[] = "    stage sb walk [j, k] ahead 2 = load(1)\n    mma acc += sa * sb over [k] layout 1\n";
    for (int64_t m = 1; m < 30; m += 7) assert_agrees(bench_ring, m, 0);
    assert_told_changed(bench_ring, "    barrier\n", "", 13, 0,
                        "kernel 'ring', instruction 8, workgroup 0: lane 0 reads element [0, 1] of 'sa', which lane 1 "
                        "wrote in instruction 2 without a subgroup barrier between");
    assert_told_changed(bench_ring, "slots 2 along k", "", 13, 0,
                        "kernel 'ring', instruction 10, workgroup 0: lane 0 writes over element [0, 0] of 'sa', which "
                        "lane 1 read in instruction 9 without a subgroup barrier between");
    assert_told_changed(bench_ring, both,
                        "    mma acc += sa * sb over [k] layout 1\n    stage sb walk [j, k] ahead 0 = load(1)\n", 13, 0,
                        "kernel 'ring', instruction 9, workgroup 0: lane 0 writes over element [0, 0] of 'sb', which "
                        "lane 8 read in instruction 8 without a workgroup barrier between");
}

/* A lane may read what it wrote itself without a barrier. */
static void test_own_words(void **state) {
    (void)state;
    char *wrong = bench_changed(gather, "  barrier\n", "  stage rows walk [t, d] = mul(rows, 2)\n  barrier\n");
    bench b;
    smg_karray arrays[MOST_BUFFERS];
    bench_open(&b, wrong);
    set_symbols(&b, 5, 0);
    fill(b.k, b.symbols, arrays);
    assert_int_equal(smg_kernel_interpret_lanes(b.ctx, b.k, b.symbols, arrays, false), SMG_OK);
    drop(b.k, arrays);
    bench_close(&b);
    free(wrong);
}

/* ---- what has not been written ---------------------------------------------------------------------- */

static void test_unwritten(void **state) {
    (void)state;
    assert_told_changed(
        softmax, "  set sum = 0\n", "", 7, 40,
        "kernel 'softmax', instruction 4, workgroup 0: lane 0 reads element [0] of 'sum', which nobody has written");
    assert_told_changed(
        woven, "  set acc = 0\n", "", 13, 0,
        "kernel 'woven', instruction 6, workgroup 0: lane 0 adds to a sum of 'acc' that nobody has set");
    assert_told_changed(
        gather, "  stage rows walk [t, d] = load(1)\n", "", 5, 0,
        "kernel 'gather', instruction 1, workgroup 0: lane 0 reads element [0, 0] of 'rows', which nobody has written");
    assert_told_changed(spill, "layout 2 of again", "layout 2 of turned", 11, 0,
                        "kernel 'spill', instruction 9, workgroup 0: lane 0 reads element [0, 0] of 'turned', which "
                        "nobody has written");
    assert_told_changed(
        woven, "  fetch next walk [i, k] along k ahead 0 = load(0)\n", "", 13, 0,
        "kernel 'woven', instruction 2, workgroup 0: lane 0 reads element [0, 0] of 'next', which nobody has written");
}

/* ---- layouts ---------------------------------------------------------------------------------------- */

static void test_layouts(void **state) {
    (void)state;
    assert_told_changed(bench_gates, "registers d*2 h*4 lanes d*4:2", "registers d*2 h*2 d*2:8 lanes h*2:2 d*2:2", 7, 0,
                        "kernel 'gates', instruction 1, workgroup 0: lane 1 works on element [0, 2, 1, 2] of 't', "
                        "which it does not hold");
    assert_told_changed(
        softmax, "sum float register [q] layout 0", "sum float register [q] layout 2", 7, 40,
        "kernel 'softmax', instruction 5, workgroup 0: lane 2 works on element [1] of 'old', which it does not hold");
    assert_told_changed(
        softmax, "sum float register [q] layout 0", "sum float register [q] layout 3", 7, 40,
        "kernel 'softmax', instruction 6, workgroup 0: lane 0 works on element [2] of 'sum', which it does not hold");
    assert_told_changed(
        softmax, "over [q, k] layout 1 = div", "over [q] layout 2 = add", 7, 40,
        "kernel 'softmax', instruction 10, workgroup 0: lane 1 works on element [0, 0] of 'e', which it does not hold");
    assert_told_changed(woven, "over [k] layout 1", "over [k] layout 2", 13, 0,
                        "kernel 'woven', instruction 7, workgroup 0: the sums of 'acc' lie in other lanes than layout "
                        "2 multiplies them in");
    assert_told_changed(
        woven, "put sa walk [i, k]", "put sa walk [k, i]", 13, 0,
        "kernel 'woven', instruction 3, workgroup 0: lane 1 works on element [1, 0] of 'next', which it does not hold");
    assert_told_changed(
        woven, "put sa walk [i, k]", "put sa by 4 k walk [i, k]", 13, 0,
        "kernel 'woven', instruction 3, workgroup 0: 'next' is put by another walk than it was fetched by");
    assert_told_changed(woven, "stage sb walk [j, k] = load(1)", "stage sb walk [j, k] = add(load(1), acc)", 13, 0,
                        "kernel 'woven', instruction 4, workgroup 0: elements that are dealt out over all lanes meet "
                        "register tile 'acc'");
}

static const char own[] = "kernel own\nlanes 4 subgroup 4 numbered\nsymbol s <= 64\naxis i = s tile 4 grid\n"
                          "axis j = 4 tile 4\naxis k = s tile 2\ngrid i\n"
                          "layout 0 = [i, k] registers k*2 lanes i*4\nlayout 1 = [i, j] registers j*4 lanes i*4\n"
                          "layout 2 = [i, j, k] registers j*4 k*2 lanes i*4\n"
                          "layout 3 = [i, k] registers i*2 lanes k*2 i*2:2\n"
                          "buffer a f32 [s*s] value 0\nbuffer b f32 [4*s] value 1\nbuffer c f32 [4*s] value 2 written\n"
                          "tile t float register [i, k] layout 0\ntile v float view [k, j] of 1\n"
                          "tile acc float register [i, j] layout 1\naccess 0 = a at [0] i*[s] k*[1]\n"
                          "access 1 = b at [0] k*[4] j*[1]\naccess 2 = c at [0] i*[4] j*[1]\ncode\n"
                          "  set acc = 0\n  loop k\n    set t = load(0)\n    mma acc += t * v over [k] layout 2\n"
                          "  end\n  store 2 over [i, j] layout 1 = acc\n";

/* A lane multiplies what it holds itself. */
static void test_own_factors(void **state) {
    static const char in[] = "float register [i, k] layout 0", elsewhere[] = "float register [i, k] layout 3";
    (void)state;
    assert_agrees(own, 7, 0);
    assert_told_changed(
        own, in, elsewhere, 7, 0,
        "kernel 'own', instruction 3, workgroup 0: lane 0 multiplies an element of 't' that it does not "
        "hold");
    bench b;
    char *wrong = bench_changed(own, in, elsewhere);
    bench_open(&b, wrong);
    assert_int_equal(smg_kernel_verify(b.ctx, b.k), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(b.ctx), "lies in other lanes than those that multiply it"));
    bench_close(&b);
    free(wrong);
}

/* Another order of registers in the same lanes is as good. */
static void test_register_order(void **state) {
    (void)state;
    char *text = bench_changed(softmax, "layout 2 = [q] lanes *2 q*2 subgroups *4 repeat q*3",
                               "layout 2 = [q, k] registers k*2:16 k*2 lanes k*4:2 subgroups k*2:8 q*2 repeat q*3");
    char *other = bench_changed(text, "e float register [q, k] layout 1", "e float register [q, k] layout 2");
    assert_agrees(other, 7, 100);
    free(other);
    free(text);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

static void test_copies(void **state) {
    (void)state;
    assert_told_changed(batch, "acc float register [z, i, j] layout 0", "acc float register [i, j] layout 2", 0, 0,
                        "kernel 'batch', instruction 4, workgroup 0: lanes 0 and 4 hold element [0, 0] of 'acc' and "
                        "differ: -0.259870774 and -0.0265885321");
}

static void test_partial_sums(void **state) {
    (void)state;
    assert_told_changed(depth, "  join acc = add over [k] layout 1\n", "", 7, 0,
                        "kernel 'depth', instruction 8, workgroup 0: 'acc' is read before its partial sums are joined");
    assert_told_changed(depth, "  join acc = add over [k] layout 1\n", "  join acc = add over [k] layout 2\n", 7, 0,
                        "kernel 'depth', instruction 9, workgroup 0: 'acc' is read before its partial sums are joined");
    assert_told_changed(
        parts, "  join sum = add over [r] layout 1\n", "", 21, 0,
        "kernel 'parts', instruction 11, workgroup 0: 'sum' is read before its partial sums are joined");
    assert_told_changed(
        parts, "apart of exp", "of exp", 21, 0,
        "kernel 'parts', instruction 6, workgroup 0: 'most' is read before its partial sums are joined");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),        cmocka_unit_test(test_agrees),         cmocka_unit_test(test_single),
        cmocka_unit_test(test_races),       cmocka_unit_test(test_scopes),         cmocka_unit_test(test_slots),
        cmocka_unit_test(test_own_words),   cmocka_unit_test(test_unwritten),      cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_own_factors), cmocka_unit_test(test_register_order), cmocka_unit_test(test_copies),
        cmocka_unit_test(test_partial_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
