/* kernel: programs as text through the reader, the printer, the verifier and the interpreter, against
 * plain loops in C: ragged tiles, running maximum and sum, a staged product, symbols, gathers, and the
 * failures of the interpreter. Every program's text must read back as the same text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/kernel_bench.h"

static void open_verified(bench *b, const char *text) {
    bench_open(b, text);
    if (smg_kernel_verify(b->ctx, b->k) != SMG_OK) fail_msg("%s", smg_context_error(b->ctx));
}

static void bind(bench *b, const char *symbol, int64_t value) {
    int found = smg_size_symbol_find(b->sizes, symbol);
    assert_true(found >= 0 && found < 4);
    b->symbols[found] = value;
}

static void run(bench *b, smg_karray *arrays) {
    if (smg_kernel_interpret(b->ctx, b->k, b->symbols, arrays, false) != SMG_OK)
        fail_msg("%s", smg_context_error(b->ctx));
}

static double *numbers(int64_t count, unsigned seed) {
    double *data = calloc((size_t)count + 1, sizeof(double));
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (double)(seed >> 8) / 8388608.0 - 1.0;
    }
    return data;
}

static void assert_near(double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-9 * (1.0 + fabs(wanted)))) fail_msg("%.17g, wanted %.17g", found, wanted);
}

static void assert_prints_back(const char *text) {
    bench b;
    open_verified(&b, text);
    smg_text out;
    smg_text_init(&out, b.ctx);
    smg_kernel_print(b.k, &out);
    assert_int_equal(smg_text_status(&out), SMG_OK);
    assert_string_equal(smg_text_cstr(&out), text);
    smg_text_free(&out);
    bench_close(&b);
}

/* ---- programs --------------------------------------------------------------------------------------- */

static const char elementwise[] = "kernel squares\n"
                                  "lanes 8 subgroup 8\n"
                                  "axis i = 100 tile 24 grid\n"
                                  "grid i\n"
                                  "layout 0 = [i] lanes i*8 repeat i*3\n"
                                  "buffer x f32 [100] value 0\n"
                                  "buffer y f32 [100] value 1 written\n"
                                  "tile t float register [i] layout 0\n"
                                  "access 0 = x at [0] i*[1]\n"
                                  "access 1 = y at [0] i*[1]\n"
                                  "code\n"
                                  "  set t = load(0)  # kept\n"
                                  "  store 1 over [i] layout 0 = add(%1:mul(t, t), mul(%1, 0.5))\n";

/* Rows of exp(x - max) / sum, one pass with a running maximum, a second to write. */
static const char online[] = "kernel online\n"
                             "lanes 16 subgroup 4\n"
                             "symbol s <= 4096\n"
                             "symbol n <= 4096\n"
                             "axis q = s tile 3 grid\n"
                             "axis k = n tile 32\n"
                             "grid q\n"
                             "layout 0 = [q] registers q*2:2 lanes *4 subgroups *2 q*2\n"
                             "layout 1 = [q, k] registers k*2 k*2:16 q*2:2 lanes k*4:2 subgroups k*2:8 q*2\n"
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
                             "  loop k  # update-then-aggregate\n"
                             "    set old = max\n"
                             "    accumulate max = max over [k] layout 1 of load(0)\n"
                             "    set sum = mul(sum, exp(sub(old, max)))\n"
                             "    accumulate sum = add over [k] layout 1 of exp(sub(load(0), max))\n"
                             "  end\n"
                             "  loop k\n"
                             "    set e = exp(sub(load(0), max))\n"
                             "    store 1 over [q, k] layout 1 = div(e, sum)\n"
                             "  end\n";

static const char product[] = "kernel product\n"
                              "lanes 16 subgroup 1\n"
                              "symbol m\n"
                              "axis i = m tile 8 grid\n"
                              "axis j = 21 tile 8 grid\n"
                              "axis k = 19 tile 4\n"
                              "grid i, j\n"
                              "layout 0 = [i, j] registers j*2:4 i*2:4 subgroups j*4 i*4\n"
                              "layout 1 = [i, j, k] registers j*2:4 i*2:4 k*4 subgroups j*4 i*4\n"
                              "buffer a f32 [19*m] value 0\n"
                              "buffer b f32 [399] value 1\n"
                              "buffer c f32 [21*m] value 2 written\n"
                              "tile acc float register [i, j] layout 0\n"
                              "tile sa float shared [i, k] pad 1 clamped [i]\n"
                              "tile sb float shared [k, j] clamped [j]\n"
                              "access 0 = a at [0] i*[19] k*[1]\n"
                              "access 1 = b at [0] k*[21] j*[1]\n"
                              "access 2 = c at [0] i*[21] j*[1]\n"
                              "code\n"
                              "  set acc = 0\n"
                              "  loop k\n"
                              "    stage sa walk [i, k] = load(0)\n"
                              "    stage sb walk [k, j] = load(1)\n"
                              "    barrier\n"
                              "    mma acc += sa * sb over [k] layout 1\n"
                              "    barrier\n"
                              "  end\n"
                              "  store 2 over [i, j] layout 0 = acc\n";

static const char gather[] =
    "kernel gather\n"
    "lanes 8 subgroup 4\n"
    "symbol s\n"
    "axis t = s tile 2 grid\n"
    "axis d = 5 tile 8\n"
    "grid t\n"
    "layout 0 = [t, d] registers d*2:4 lanes d*4 subgroups t*2\n"
    "buffer ids i64 [s] value 0\n"
    "buffer table f32 [35] value 1\n"
    "buffer y f32 [5*s] value 2 written\n"
    "access 0 = ids at [0] t*[1]\n"
    "access 1 = table at [0] d*[1] : index*[5] below [7] of select(lt(load(0), 0i), add(load(0), 7i), load(0))\n"
    "access 2 = y at [0] t*[5] d*[1]\n"
    "access 3 = - at [0] t*[1]\n"
    "code\n"
    "  store 2 over [t, d] layout 0 = add(load(1), to_float(iota(3)))\n";

/* A register tile spilled in another order, a size in a value, booleans, quoted and repeated names. */
static const char mixed[] = "kernel \"mixed bag\"\n"
                            "lanes 4 subgroup 2\n"
                            "symbol s <= 16\n"
                            "axis q = s tile 16\n"
                            "axis \"k k\" = 3 tile 4\n"
                            "layout 0 = [q, \"k k\"] registers \"k k\"*2:2 q*8:2 lanes \"k k\"*2 subgroups q*2\n"
                            "layout 1 = [q] registers q*8:2 lanes *2 subgroups q*2\n"
                            "buffer \"in \\\"x\\\"\" f32 [3*s] value 0\n"
                            "buffer flag bool [3] value 1\n"
                            "buffer y f32 [s] value 2 written\n"
                            "tile \"true\" float register [q, \"k k\"] layout 0\n"
                            "tile back float shared [\"k k\", q] pad 3\n"
                            "tile r float register [q] layout 1\n"
                            "access 0 = \"in \\\"x\\\"\" at [0] q*[3] \"k k\"*[1]\n"
                            "access 1 = flag at [0] \"k k\"*[1]\n"
                            "access 2 = y at [0] q*[1]\n"
                            "code\n"
                            "  set \"true\" = select(load(1), load(0), mul(fsize(2*s+1), 0.25))\n"
                            "  spill back = \"true\"\n"
                            "  barrier\n"
                            "  reduce r = min over [\"k k\"] layout 0 of back\n"
                            "  store 2 over [q] layout 1 = select(lt(r, -inf), nan, r)\n";

static void test_text(void **state) {
    (void)state;
    assert_prints_back(elementwise);
    assert_prints_back(online);
    assert_prints_back(product);
    assert_prints_back(gather);
    assert_prints_back(mixed);
    assert_prints_back(bench_gates);
    assert_prints_back(bench_ring);
}

/* ---- results ---------------------------------------------------------------------------------------- */

static void test_elementwise(void **state) {
    (void)state;
    bench b;
    open_verified(&b, elementwise);
    double *x = numbers(100, 1), y[100] = {0};
    smg_karray arrays[2] = {{x, 100}, {y, 100}};
    run(&b, arrays);
    for (int i = 0; i < 100; i++) assert_near(y[i], 1.5 * x[i] * x[i]);
    assert_int_equal(smg_kernel_interpret(b.ctx, b.k, b.symbols, arrays, true), SMG_OK);
    for (int i = 0; i < 100; i++) assert_true(y[i] == (double)(float)y[i]);
    arrays[1].elements = 99;
    assert_int_equal(smg_kernel_interpret(b.ctx, b.k, b.symbols, arrays, false), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(b.ctx), "buffer 'y' has 99 elements, needs 100"));
    free(x);
    bench_close(&b);
}

static void check_online(int64_t s, int64_t n) {
    bench b;
    open_verified(&b, online);
    bind(&b, "s", s);
    bind(&b, "n", n);
    double *x = numbers(s * n, 7), *y = numbers(s * n, 8);
    for (int64_t i = 0; i < s * n; i++) x[i] *= 30.0;
    smg_karray arrays[2] = {{x, s * n}, {y, s * n}};
    run(&b, arrays);
    for (int64_t q = 0; q < s; q++) {
        double max = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < n; k++) max = fmax(max, x[q * n + k]);
        for (int64_t k = 0; k < n; k++) sum += exp(x[q * n + k] - max);
        for (int64_t k = 0; k < n; k++) assert_near(y[q * n + k], exp(x[q * n + k] - max) / sum);
    }
    free(x);
    free(y);
    bench_close(&b);
}

static void test_online(void **state) {
    (void)state;
    check_online(1, 1);
    check_online(7, 100);
    check_online(64, 32);
    check_online(5, 300);
}

static void check_product(int64_t m) {
    bench b;
    open_verified(&b, product);
    bind(&b, "m", m);
    double *x = numbers(m * 19, 3), *y = numbers(19 * 21, 4), *z = numbers(m * 21, 5);
    smg_karray arrays[3] = {{x, m * 19}, {y, 19 * 21}, {z, m * 21}};
    run(&b, arrays);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < 21; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < 19; k++) sum += x[i * 19 + k] * y[k * 21 + j];
            assert_near(z[i * 21 + j], sum);
        }
    int64_t groups = 0;
    assert_true(smg_kernel_grid(b.k, b.symbols, &groups));
    assert_int_equal(groups, (m + 7) / 8 * 3);
    free(x);
    free(y);
    free(z);
    bench_close(&b);
}

static void test_product(void **state) {
    (void)state;
    check_product(1);
    check_product(13);
    check_product(200);
}

static void test_gather(void **state) {
    (void)state;
    bench b;
    open_verified(&b, gather);
    bind(&b, "s", 5);
    double ids[5] = {3, 0, -1, 6, 2}, *table = numbers(35, 9), y[25] = {0};
    smg_karray arrays[3] = {{ids, 5}, {table, 35}, {y, 25}};
    run(&b, arrays);
    for (int t = 0; t < 5; t++)
        for (int d = 0; d < 5; d++) {
            int row = ids[t] < 0 ? (int)ids[t] + 7 : (int)ids[t];
            assert_near(y[t * 5 + d], table[row * 5 + d] + t);
        }
    ids[3] = 30600;
    assert_int_equal(smg_kernel_interpret(b.ctx, b.k, b.symbols, arrays, false), SMG_INVALID);
    assert_string_equal(smg_context_error(b.ctx), "kernel 'gather', buffer 'table': index 30600 outside [0, 7)");
    free(table);
    bench_close(&b);
}

static void test_mixed(void **state) {
    (void)state;
    bench b;
    open_verified(&b, mixed);
    bind(&b, "s", 11);
    double *x = numbers(33, 2), flag[3] = {1, 0, 1}, y[11] = {0};
    smg_karray arrays[3] = {{x, 33}, {flag, 3}, {y, 11}};
    run(&b, arrays);
    for (int q = 0; q < 11; q++) assert_near(y[q], fmin(fmin(x[q * 3], 23 * 0.25), x[q * 3 + 2]));
    bind(&b, "s", 17);
    arrays[0].elements = 51;
    assert_int_equal(smg_kernel_interpret(b.ctx, b.k, b.symbols, arrays, false), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(b.ctx), "axis 'q' has 17 elements, its tile holds 16"));
    free(x);
    bench_close(&b);
}

static void test_picks(void **state) {
    (void)state;
    bench b;
    open_verified(&b, bench_gates);
    bind(&b, "s", 7);
    double *x = numbers(420, 3), y[35] = {0}, z[105] = {0};
    smg_karray arrays[3] = {{x, 420}, {y, 35}, {z, 105}};
    run(&b, arrays);
    for (int q = 0; q < 7; q++)
        for (int d = 0; d < 5; d++) {
            const double *row = x + q * 60 + d;
            assert_near(y[q * 5 + d], row[2 * 20 + 1 * 5] - row[3 * 5]);
            for (int g = 0; g < 3; g++) assert_near(z[q * 15 + g * 5 + d], row[(2 - g) * 20 + 2 * 5]);
        }
    free(x);
    bench_close(&b);
}

/* An address outside a buffer is a defect of the kernel. */
static void test_address(void **state) {
    (void)state;
    bench b;
    char text[sizeof elementwise + 8];
    const char *at = strstr(elementwise, "x at [0]");
    (void)snprintf(text, sizeof text, "%.*sx at [1]%s", (int)(at - elementwise), elementwise, at + 8);
    open_verified(&b, text);
    double x[100] = {0}, y[100] = {0};
    smg_karray arrays[2] = {{x, 100}, {y, 100}};
    assert_int_equal(smg_kernel_interpret(b.ctx, b.k, b.symbols, arrays, false), SMG_INTERNAL);
    assert_string_equal(smg_context_error(b.ctx), "kernel 'squares', instruction 0, workgroup 4: access 0 reaches "
                                                  "element 100 of buffer 'x' with 100 elements");
    bench_close(&b);
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

static void test_shape(void **state) {
    (void)state;
    bench b;
    open_verified(&b, online);
    const smg_tile *e = &b.k->tiles.items[3], *sum = &b.k->tiles.items[2];
    assert_int_equal(b.k->lanes, 16);
    assert_int_equal(smg_layout_registers_along(&b.k->layouts.items[e->layout], 0), 2);
    assert_int_equal(smg_layout_registers_along(&b.k->layouts.items[e->layout], 1), 4);
    assert_int_equal(smg_tile_elements(b.k, e), 96);
    assert_int_equal(smg_tile_registers(b.k, e), 2 * 4);
    assert_int_equal(smg_tile_registers(b.k, sum), 2);
    assert_int_equal(smg_kernel_registers(b.k), 8 + 2 * 2); /* e, sum and max; old and max were before */
    assert_int_equal(smg_kernel_shared_bytes(b.k), 0);
    bench_close(&b);
    open_verified(&b, product);
    assert_int_equal(smg_tile_shared_bytes(b.k, &b.k->tiles.items[1]), 8 * (4 + 1) * 4);
    assert_int_equal(smg_kernel_shared_bytes(b.k), 160 + 4 * 8 * 4);
    assert_int_equal(smg_tile_registers(b.k, &b.k->tiles.items[1]), 0);
    bench_close(&b);
}

/* What is spilled is rounded to the tile's type, in both modes, and takes its bytes. */
static void test_types(void **state) {
    static const struct {
        const char *type;
        double stored;
        int64_t bytes;
    } cases[] = {{"float", 1.001953125 + 0x1p-12, 4 * 4}, {"f16", 1.001953125, 4 * 2}, {"bf16", 1.0, 4 * 2}};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        static const char format[] = "kernel t\nlanes 4 subgroup 4\naxis i = 4 tile 4\nlayout 0 = [i] lanes i*4\n"
                                     "buffer x f32 [4] value 0\nbuffer y f32 [4] value 1 written\n"
                                     "tile r float register [i] layout 0\ntile s %s shared [i]\n"
                                     "access 0 = x at [0] i*[1]\naccess 1 = y at [0] i*[1]\ncode\n"
                                     "  set r = load(0)\n  spill s = r\n  barrier\n"
                                     "  store 1 over [i] layout 0 = s\n";
        char text[sizeof format + 8];
        double x[4] = {1.001953125 + 0x1p-12, 1.001953125 + 0x1p-12, -2, 0}, y[2][4] = {{0}, {0}};
        bench b;
        (void)snprintf(text, sizeof text, format, cases[i].type);
        open_verified(&b, text);
        assert_int_equal(smg_kernel_shared_bytes(b.k), cases[i].bytes);
        for (int lanes = 0; lanes < 2; lanes++) {
            smg_karray arrays[] = {{x, 4}, {y[lanes], 4}};
            smg_status status =
                (lanes ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, b.k, NULL, arrays, 0);
            assert_int_equal(status, SMG_OK);
            assert_true(y[lanes][1] <= cases[i].stored && y[lanes][1] >= cases[i].stored);
            assert_true(y[lanes][2] <= -2 && y[lanes][2] >= -2);
        }
        bench_close(&b);
    }
}

/* Partial sums are rounded to f16 after each product, and added up as f32: 2048 + 1 is 2048 there. */
static void test_partial(void **state) {
    static const struct {
        const char *partial;
        double sum;
    } cases[] = {{"", 2051}, {" partial f16 4", 2048}, {" partial f16 2", 2050}, {" partial f16 1", 2051}};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        static const char format[] = "kernel t\nlanes 2 subgroup 2\naxis m = 2 tile 2\naxis n = 4 tile 4\n"
                                     "axis k = 4 tile 4\nlayout 0 = [m, n] registers n*4 lanes m*2\n"
                                     "layout 1 = [m, n, k] registers n*4 k*4 lanes m*2\n"
                                     "buffer x f16 [8] value 0\nbuffer w f16 [16] value 1\n"
                                     "buffer y f32 [8] value 2 written\ntile c float register [m, n] layout 0\n"
                                     "tile a f16 shared [k, m]\ntile b f16 shared [k, n]\n"
                                     "access 0 = x at [0] m*[4] k*[1]\naccess 1 = w at [0] k*[4] n*[1]\n"
                                     "access 2 = y at [0] m*[4] n*[1]\ncode\n  stage a walk [m, k] = load(0)\n"
                                     "  stage b walk [k, n] = load(1)\n  set c = 0\n  barrier\n"
                                     "  mma c += a * b over [k] layout 1%s\n  store 2 over [m, n] layout 0 = c\n";
        char text[sizeof format + 32];
        double x[8] = {2048, 1, 1, 1, 1, 1, 1, 1}, w[16], y[2][8] = {{0}, {0}};
        bench b;
        (void)snprintf(text, sizeof text, format, cases[i].partial);
        open_verified(&b, text);
        for (int n = 0; n < 16; n++) w[n] = 1;
        for (int lanes = 0; lanes < 2; lanes++) {
            smg_karray arrays[] = {{x, 8}, {w, 16}, {y[lanes], 8}};
            smg_status status =
                (lanes ? smg_kernel_interpret_lanes : smg_kernel_interpret)(b.ctx, b.k, NULL, arrays, 0);
            assert_int_equal(status, SMG_OK);
            assert_true(y[lanes][3] <= cases[i].sum && y[lanes][3] >= cases[i].sum);
            assert_true(y[lanes][4] <= 4 && y[lanes][4] >= 4);
        }
        bench_close(&b);
    }
}

/* Of a slice that a walk brings, a lane holds what it loads, and of a turned one also where each word goes, unless the
 * walk is a loop. Beside it stand four sums; a product of them reads four words. */
static void test_walk_registers(void **state) {
    static const struct {
        int64_t k;
        int64_t along, turned;
    } cases[] = {{4, 8, 8}, {64, 4 + 32, 4 + 64}, {256, 4 + 128, 4 + 256}, {512, 8, 4 + 2 * 4}};
    (void)state;
    bench b;
    open_verified(&b, product);
    smg_instr *stage = &b.k->code.items[2], *other = &b.k->code.items[3];
    assert_true(stage->kind == SMG_I_STAGE && other->kind == SMG_I_STAGE);
    for (size_t n = 0; n < SMG_COUNT_OF(cases); n++) {
        b.k->axes.items[2].tile = cases[n].k;
        assert_int_equal(smg_kernel_registers(b.k), cases[n].along);
        int first = stage->axes[0];
        stage->axes[0] = stage->axes[1];
        stage->axes[1] = first;
        assert_int_equal(smg_kernel_registers(b.k), cases[n].turned);
        stage->axes[1] = stage->axes[0];
        stage->axes[0] = first;
    }
    bench_close(&b);
}

/* Invocations take neighbours at once, one behind the other, again and again. */
static void test_walk(void **state) {
    (void)state;
    static const int64_t elements[] = {1, 7, 64, 96, 520, 13 * 57, 4096};
    bench b;
    open_verified(&b, product);
    for (int lanes = 1; lanes <= 128; lanes *= 8)
        for (int subgroup = 1; subgroup <= lanes; subgroup *= 4)
            for (int width = 1; width <= SMG_WIDEST; width *= 2)
                for (size_t n = 0; n < SMG_COUNT_OF(elements); n++) {
                    b.k->lanes = lanes;
                    b.k->subgroup = subgroup;
                    smg_layout walk = smg_walk_layout(b.k, elements[n], width);
                    int64_t registers = smg_layout_registers(&walk), groups = elements[n] / width;
                    assert_int_equal(registers / width, (groups + (elements[n] % width != 0) + lanes - 1) / lanes);
                    for (int64_t reg = 0; reg < registers; reg++)
                        for (int lane = 0; lane < lanes; lane++)
                            assert_int_equal(
                                smg_layout_coordinate(&walk, SMG_WALK_AXIS, reg, lane % subgroup, lane / subgroup),
                                (reg / width * lanes + lane) * width + reg % width);
                }
    bench_close(&b);
}

/* ---- broken text and failing memory ----------------------------------------------------------------- */

static void assert_unreadable(const char *text, const char *sentence) {
    bench b;
    memset(&b, 0, sizeof b);
    assert_int_equal(smg_context_create(NULL, &b.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(b.ctx, &b.arena), SMG_OK);
    assert_int_equal(smg_sizes_create(b.arena, &b.sizes), SMG_OK);
    assert_int_equal(smg_kernel_parse(b.arena, b.sizes, text, &b.k), SMG_FORMAT);
    assert_null(b.k);
    if (!strstr(smg_context_error(b.ctx), sentence)) fail_msg("%s", smg_context_error(b.ctx));
    bench_close(&b);
}

static void test_broken_text(void **state) {
    (void)state;
    assert_unreadable("", "expected the kernel's name");
    assert_unreadable("kernel x\n", "line 2: expected \"code\"");
    assert_unreadable("kernel x\naxe i = 1\n", "line 2: expected a declaration");
    assert_unreadable("kernel x\naxis i = 4 tile 0\n", "line 2: 0 is outside [1,");
    assert_unreadable("kernel x\nlanes 99999\n", "99999 is outside");
    assert_unreadable("kernel x\naxis i = 4 tile 4 5\n", "expected the end of the line before \"5\"");
    assert_unreadable("kernel x\ntile t float register [i]\n", "the name of an axis");
    assert_unreadable("kernel x\ntile t i64 register []\n", "the type of a tile");
    assert_unreadable("kernel x\ntile \"t\n", "a quoted name that ends");
    assert_unreadable("kernel x\ncode\n  set t = 1\n", "the name of a tile");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = foo(1)\n",
                      "a primitive");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = %1\n",
                      "the definition of a label");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = %1:neg(%1)\n",
                      "the definition of a label");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = add(1)\n",
                      "expected ,");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = 1e\n",
                      "an expression");
    assert_unreadable("kernel x\nlayout 0 = []\ntile t float register [] layout 0\ncode\n  set t = load(0)\n",
                      "0 is outside [0, -1]");
    assert_unreadable("kernel x\ntile t float register [] lay\n", "expected the end of the line");
    assert_unreadable("kernel x\ntile t float register [] layout 0\n", "0 is outside [0, -1]");
    assert_unreadable("kernel x\naxis i = 4 tile 4\ntile t float shared [i] slots 1 along i\n", "1 is outside [2, 8]");
    assert_unreadable("kernel x\naxis i = 4 tile 4\ntile t float shared [i] slots 2 pad 1\n", "expected along");
    assert_unreadable("kernel x\nlayout 1 = []\n", "1 is outside [0, 0]");
    assert_unreadable("kernel x\naxis i = 4 tile 4\nlayout 0 = [i] lanes i*3\n", "a power of two");
    assert_unreadable("kernel x\naxis i = 4 tile 4\nlayout 0 = [i] lanes i*4:3\n", "a power of two");
    assert_unreadable("kernel x\naxis i = 4 tile 4\nlayout 0 = [i] lanes j*4\n", "the name of an axis");
    assert_unreadable("kernel x\naxis i = 4 tile 4\nlayout 0 = [i] lanes *524288 *524288\n", "fewer bits");
    assert_unreadable("kernel x\naccess 1 = - at [0]\n", "1 is outside [0, 0]");
    assert_unreadable("kernel x\naxis i = 8 tile 8\nlayout 0 = [i] lanes i*8\nbuffer y f32 [8] value 0 written\n"
                      "access 0 = y at [0] i*[1]\ncode\n  store 0 by 4 i matrices else over [i] layout 0 = 1\n",
                      "expected by");
}

/* Every prefix of a program is read or refused, never worse. */
static void test_prefixes(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof mixed; n++) {
        bench b;
        char *text = calloc(n + 1, 1);
        assert_non_null(text);
        memcpy(text, mixed, n);
        memset(&b, 0, sizeof b);
        assert_int_equal(smg_context_create(NULL, &b.ctx), SMG_OK);
        assert_int_equal(smg_arena_create(b.ctx, &b.arena), SMG_OK);
        assert_int_equal(smg_sizes_create(b.arena, &b.sizes), SMG_OK);
        if (smg_kernel_parse(b.arena, b.sizes, text, &b.k) == SMG_OK)
            (void)smg_kernel_verify(b.ctx, b.k);
        else
            assert_true(smg_context_error(b.ctx)[0] != 0);
        free(text);
        bench_close(&b);
    }
}

typedef struct failing {
    int calls, fail_at;
} failing;

static void *failing_hook(void *user, void *pointer, size_t old_size, size_t new_size) {
    failing *f = user;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    return ++f->calls == f->fail_at ? NULL : realloc(pointer, new_size);
}

static smg_status whole_way(smg_context *ctx) {
    smg_arena *arena = NULL;
    smg_sizes *sizes = NULL;
    smg_kernel *k = NULL;
    smg_text out;
    int64_t symbols[4] = {11, 11, 11, 11};
    double x[33] = {0}, flag[3] = {0}, y[11] = {0};
    smg_karray arrays[3] = {{x, 33}, {flag, 3}, {y, 11}};
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = smg_sizes_create(arena, &sizes);
    if (status == SMG_OK) status = smg_kernel_parse(arena, sizes, mixed, &k);
    if (status == SMG_OK) {
        smg_text_init(&out, ctx);
        smg_kernel_print(k, &out);
        status = smg_text_status(&out);
        smg_text_free(&out);
    }
    if (status == SMG_OK) status = smg_kernel_interpret(ctx, k, symbols, arrays, false);
    if (status == SMG_OK) status = smg_kernel_interpret_lanes(ctx, k, symbols, arrays, false);
    smg_arena_destroy(arena);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    bool done = false;
    for (int at = 1; !done; at++) {
        failing f = {.fail_at = at};
        smg_context_desc desc = {.reallocate = failing_hook, .user = &f, .cache_dir = ""};
        smg_context *ctx = NULL;
        smg_status status = smg_context_create(&desc, &ctx);
        if (status == SMG_OK) status = whole_way(ctx);
        done = f.calls < at;
        assert_int_equal(status, done ? SMG_OK : SMG_MEMORY);
        if (ctx) smg_context_destroy(ctx);
    }
}

/* Which accesses of a buffer in blocks of 4 x 8, of rows of 64, give each term a part of its own in the place. */
static void test_terms_by_blocks(void **state) {
    (void)state;
    static const char format[] = "kernel t\nlanes 4 subgroup 4\nsymbol n\naxis p = %s tile 1 grid\naxis o = %s grid\n"
                                 "axis k = %s grid\ngrid p, o, k\nlayout 0 = [k] lanes k*4 repeat k*2\n"
                                 "buffer x f32 [%s blocks 4 x 8 of rows of 64\nbuffer y f32 [n] value 9 written\n"
                                 "tile t float register [k] layout 0\naccess 0 = x at [%s\naccess 1 = y at [0]\n"
                                 "code\n  set t = load(0)\n";
    static const struct {
        const char *what, *parts, *rows, *columns, *buffer, *access;
        int down, along; /* -2: not by blocks */
    } cases[] = {
        {"rows and columns", "1", "16 tile 4", "64 tile 8", "1024] value 0", "0] k*[1] o*[64]", 1, 0},
        {"parts of a row", "4", "16 tile 4", "16 tile 8", "1024] value 0", "0] k*[1] p*[16] o*[64]", 2, 0},
        {"parts that are no blocks", "16", "16 tile 4", "4 tile 4", "1024] value 0", "0] k*[1] p*[4] o*[64]", -2, 0},
        {"parts behind the row's end", "5", "15 tile 4", "16 tile 8", "1024] value 0", "0] k*[1] p*[16] o*[64]", -2, 0},
        {"so many parts as are asked for", "n", "16 tile 4", "16 tile 8", "1024] value 0", "0] k*[1] p*[16] o*[64]", -2,
         0},
        {"heads of rows", "4", "4 tile 4", "64 tile 8", "1024] value 0", "0] k*[1] p*[256] o*[64]", 2, 0},
        {"heads of half a block", "8", "2 tile 2", "64 tile 8", "1024] value 0", "0] k*[1] p*[128] o*[64]", -2, 0},
        {"from row 4 on", "1", "12 tile 4", "64 tile 8", "1024] value 0", "256] k*[1] o*[64]", 1, 0},
        {"from row 2 on", "1", "12 tile 4", "64 tile 8", "1024] value 0", "128] k*[1] o*[64]", -2, 0},
        {"tiles of half a block", "1", "16 tile 4", "64 tile 4", "1024] value 0", "0] k*[1] o*[64]", -2, 0},
        {"across", "1", "16 tile 4", "64 tile 8", "1024] value 0", "0] k*[64] o*[1]", -2, 0},
        {"tensors", "2", "8 tile 4", "64 tile 8", "1024] values 0 1 every 512", "0] k*[1] p*[512] o*[64]", 2, 0},
        {"from row 4 of a tensor on", "2", "4 tile 4", "64 tile 8", "1024] values 0 1 every 512",
         "256] k*[1] p*[512] o*[64]", 2, 0},
        {"from there into the next", "1", "8 tile 4", "64 tile 8", "1024] values 0 1 every 512", "256] k*[1] o*[64]",
         -2, 0},
        {"rows of two tensors", "1", "16 tile 4", "64 tile 8", "1024] values 0 1 every 512", "0] k*[1] o*[64]", -2, 0},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        char text[1024];
        int down, along;
        bench b;
        (void)snprintf(text, sizeof text, format, cases[i].parts, cases[i].rows, cases[i].columns, cases[i].buffer,
                       cases[i].access);
        bench_open(&b, text);
        bool by = smg_access_by_blocks(b.k, &b.k->accesses.items[0], &down, &along);
        if (by != (cases[i].down != -2) || (by && (down != cases[i].down || along != cases[i].along)))
            fail_msg("%s: %s, down %d, along %d", cases[i].what, by ? "by blocks" : "not by blocks", down, along);
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),        cmocka_unit_test(test_elementwise),     cmocka_unit_test(test_online),
        cmocka_unit_test(test_product),     cmocka_unit_test(test_gather),          cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_address),     cmocka_unit_test(test_shape),           cmocka_unit_test(test_types),
        cmocka_unit_test(test_partial),     cmocka_unit_test(test_walk_registers),  cmocka_unit_test(test_walk),
        cmocka_unit_test(test_broken_text), cmocka_unit_test(test_prefixes),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_picks),       cmocka_unit_test(test_terms_by_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
