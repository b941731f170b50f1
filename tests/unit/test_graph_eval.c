/* The reference evaluation against straightforward loops: the graphs of tests/graphs, then the operations
 * that those lack, then what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "graph/graph.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    int64_t symbols[8];
    smg_array in[4], out[2];
    uint32_t seed;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){.seed = 11};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_graph_destroy(f->g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void open_text(fixture *f, const char *text) {
    smg_graph_destroy(f->g);
    f->g = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "test", &f->g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_file(fixture *f, const char *name) {
    char path[128], *text;
    size_t size;
    snprintf(path, sizeof path, "tests/graphs/%s.smg", name);
    assert_int_equal(smg_file_read(f->ctx, path, &text, &size), SMG_OK);
    open_text(f, text);
    smg_free(f->ctx, text, size + 1);
}

static void set(fixture *f, const char *symbol, int64_t value) {
    int at = smg_size_symbol_find(f->g->sizes, symbol);
    assert_in_range(at, 0, 7);
    f->symbols[at] = value;
}

static double uniform(fixture *f) {
    f->seed = f->seed * 1664525u + 1013904223u;
    return (double)(f->seed >> 8) / 8388608.0 - 1.0;
}

/* Every input gets its dims and values in [-2, 2); integer inputs integers in [0, 4). */
static void fill_inputs(fixture *f) {
    int count = 0;
    for (int i = 0; i < f->g->nodes.count; i++) {
        const smg_node *node = smg_graph_node(f->g, i);
        if (node->op != SMG_OP_INPUT) continue;
        smg_array *a = &f->in[count++];
        *a = (smg_array){.type = node->type, .rank = node->rank};
        for (int k = 0; k < a->rank; k++)
            assert_true(smg_size_eval(f->g->sizes, node->dims[k], f->symbols, &a->dims[k]));
        a->data = SMG_ARENA_ARRAY(f->arena, double, (size_t)smg_array_elements(a));
        for (int64_t k = 0; k < smg_array_elements(a); k++)
            a->data[k] = node->type == SMG_TYPE_F32 ? 2.0 * uniform(f) : floor(2.0 + 2.0 * uniform(f));
    }
}

static void run(fixture *f) {
    if (smg_graph_eval(f->g, f->symbols, f->in, f->arena, f->out) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static const float *weight(const fixture *f, const char *name) {
    for (int i = 0; i < f->g->nodes.count; i++)
        if (strcmp(f->g->nodes.items[i].name, name) == 0) return f->g->nodes.items[i].data;
    fail_msg("no constant %s", name);
    return NULL;
}

static void close_to(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-10 * (1.0 + fabs(expected)))) fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static double softmax_row(const double *x, int64_t n, double *out) {
    double largest = x[0], sum = 0.0;
    for (int64_t i = 0; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < n; i++) sum += out[i] = exp(x[i] - largest);
    for (int64_t i = 0; i < n; i++) out[i] /= sum;
    return largest + log(sum);
}

static void layernorm_row(const double *x, int64_t n, const float *gamma, const float *beta, double *out) {
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) / sqrt(variance + 1e-12) * (double)gamma[i] + (double)beta[i];
}

/* One row of x @ w^T + bias. */
static void linear_row(const double *x, const float *w, const float *bias, int64_t in, int64_t out, double *y) {
    for (int64_t o = 0; o < out; o++) {
        y[o] = bias ? (double)bias[o] : 0.0;
        for (int64_t i = 0; i < in; i++) y[o] += x[i] * (double)w[o * in + i];
    }
}

static void softmax_and_logsumexp(void **state) {
    fixture *f = *state;
    double row[1024];
    open_file(f, "softmax");
    set(f, "rows", 5);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 5; r++) {
        softmax_row(f->in[0].data + r * 1024, 1024, row);
        for (int64_t i = 0; i < 1024; i++) close_to(f->out[0].data[r * 1024 + i], row[i]);
    }
    open_file(f, "logsumexp");
    set(f, "rows", 5);
    fill_inputs(f);
    run(f);
    assert_int_equal(f->out[0].rank, 1);
    for (int64_t r = 0; r < 5; r++) close_to(f->out[0].data[r], softmax_row(f->in[0].data + r * 1000, 1000, row));
}

static void norms(void **state) {
    fixture *f = *state;
    double row[768];
    open_file(f, "layernorm");
    set(f, "rows", 3);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 3; r++) {
        layernorm_row(f->in[0].data + r * 768, 768, weight(f, "gamma"), weight(f, "beta"), row);
        for (int64_t i = 0; i < 768; i++) close_to(f->out[0].data[r * 768 + i], row[i]);
    }
    open_file(f, "rmsnorm");
    set(f, "rows", 3);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 3; r++) {
        double energy = 0.0;
        const double *x = f->in[0].data + r * 512;
        for (int64_t i = 0; i < 512; i++) energy += x[i] * x[i] / 512.0;
        for (int64_t i = 0; i < 512; i++)
            close_to(f->out[0].data[r * 512 + i], x[i] / sqrt(energy + 1e-6) * (double)weight(f, "gamma")[i]);
    }
}

static void cross_entropy(void **state) {
    fixture *f = *state;
    double row[320];
    open_file(f, "cross_entropy");
    set(f, "rows", 6);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 6; r++) {
        const double *x = f->in[0].data + r * 320;
        close_to(f->out[0].data[r], softmax_row(x, 320, row) - x[(int64_t)f->in[1].data[r]]);
    }
}

static double gelu_erf(double x) {
    return x / 2.0 * (1.0 + erf(x * sqrt(0.5)));
}

static void gelu_chains(void **state) {
    fixture *f = *state;
    double row[512];
    open_file(f, "gelu_tanh");
    set(f, "n", 100);
    fill_inputs(f);
    run(f);
    for (int64_t i = 0; i < 100; i++) {
        double x = f->in[0].data[i];
        close_to(f->out[0].data[i], x / 2.0 * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x))));
    }
    open_file(f, "linear_gelu");
    set(f, "rows", 7);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 7; r++) {
        linear_row(f->in[0].data + r * 256, weight(f, "w"), weight(f, "bias"), 256, 512, row);
        for (int64_t i = 0; i < 512; i++) close_to(f->out[0].data[r * 512 + i], gelu_erf(row[i]));
    }
}

static void linear_chains(void **state) {
    fixture *f = *state;
    double row[512], norm[512];
    open_file(f, "linear_residual_layernorm");
    set(f, "rows", 3);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 3; r++) {
        linear_row(f->in[0].data + r * 512, weight(f, "w"), weight(f, "bias"), 512, 256, row);
        for (int64_t i = 0; i < 256; i++) row[i] += f->in[1].data[r * 256 + i];
        layernorm_row(row, 256, weight(f, "gamma"), weight(f, "beta"), norm);
        for (int64_t i = 0; i < 256; i++) close_to(f->out[0].data[r * 256 + i], norm[i]);
    }
    open_file(f, "mlp");
    set(f, "rows", 9);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 9; r++) {
        linear_row(f->in[0].data + r * 128, weight(f, "w1"), weight(f, "b1"), 128, 512, row);
        for (int64_t i = 0; i < 512; i++) row[i] = row[i] > 0.0 ? row[i] : 0.0;
        linear_row(row, weight(f, "w2"), weight(f, "b2"), 512, 128, norm);
        for (int64_t i = 0; i < 128; i++) close_to(f->out[0].data[r * 128 + i], norm[i]);
    }
    open_file(f, "softmax_gemm");
    set(f, "rows", 4);
    fill_inputs(f);
    run(f);
    for (int64_t r = 0; r < 4; r++) {
        softmax_row(f->in[0].data + r * 512, 512, row);
        for (int64_t n = 0; n < 64; n++) {
            double sum = 0.0;
            for (int64_t k = 0; k < 512; k++) sum += row[k] * (double)weight(f, "w")[k * 64 + n];
            close_to(f->out[0].data[r * 64 + n], sum);
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* One query row: q[d], k and v with row t at stride `step`, bias[t]; out[d]. */
static void attend(const double *q, const double *k, const double *v, int64_t step, int64_t tokens, int64_t dim,
                   double scale, const double *bias, double *out) {
    double scores[64], p[64];
    for (int64_t t = 0; t < tokens; t++) {
        scores[t] = 0.0;
        for (int64_t d = 0; d < dim; d++) scores[t] += q[d] * k[t * step + d];
        scores[t] = scores[t] * scale + bias[t];
    }
    softmax_row(scores, tokens, p);
    for (int64_t d = 0; d < dim; d++) {
        out[d] = 0.0;
        for (int64_t t = 0; t < tokens; t++) out[d] += p[t] * v[t * step + d];
    }
}

static void attention(void **state) {
    fixture *f = *state;
    const int64_t b = 2, h = 3, s = 5, t = 11, step = h * 64;
    double out[64];
    open_file(f, "attention");
    set(f, "b", b);
    set(f, "h", h);
    set(f, "s", s);
    set(f, "t", t);
    fill_inputs(f);
    run(f);
    for (int64_t i = 0; i < b * s * h; i++) {
        int64_t head = i % h, row = i / h % s, batch = i / h / s;
        const double *k = f->in[1].data + batch * t * step + head * 64;
        const double *v = f->in[2].data + batch * t * step + head * 64;
        attend(f->in[0].data + i * 64, k, v, step, t, 64, 0.125, f->in[3].data + (batch * s + row) * t, out);
        for (int64_t d = 0; d < 64; d++) close_to(f->out[0].data[i * 64 + d], out[d]);
    }
}

static void multi_head_attention(void **state) {
    fixture *f = *state;
    enum { B = 2, S = 6 };
    static double q[B * S * 128], k[B * S * 128], v[B * S * 128], joined[B * S * 128];
    double bias[S], row[128];
    open_file(f, "mha");
    set(f, "b", B);
    set(f, "s", S);
    fill_inputs(f);
    for (int i = 0; i < B * S; i++) f->in[1].data[i] = i % S < 4 ? 1.0 : 0.0;
    run(f);
    for (int i = 0; i < B * S; i++) {
        linear_row(f->in[0].data + i * 128, weight(f, "wq"), weight(f, "bq"), 128, 128, q + i * 128);
        linear_row(f->in[0].data + i * 128, weight(f, "wk"), NULL, 128, 128, k + i * 128);
        linear_row(f->in[0].data + i * 128, weight(f, "wv"), NULL, 128, 128, v + i * 128);
    }
    for (int i = 0; i < B * S; i++) {
        const int first = i / S * S * 128;
        for (int t = 0; t < S; t++) bias[t] = (1.0 - f->in[1].data[i / S * S + t]) * -3.4028234663852886e38;
        for (int head = 0; head < 128; head += 32)
            attend(q + i * 128 + head, k + first + head, v + first + head, 128, S, 32, sqrt(1.0 / 32.0), bias,
                   joined + i * 128 + head);
    }
    for (int i = 0; i < B * S; i++) {
        linear_row(joined + i * 128, weight(f, "wo"), NULL, 128, 128, row);
        for (int d = 0; d < 128; d++) close_to(f->out[0].data[i * 128 + d], row[d]);
    }
}

/* ---- other operations ----------------------------------------------------------------------- */

static void assert_values(fixture *f, const char *text, const double *expected, int64_t count) {
    open_text(f, text);
    fill_inputs(f);
    run(f);
    assert_int_equal(smg_array_elements(&f->out[0]), count);
    for (int64_t i = 0; i < count; i++) close_to(f->out[0].data[i], expected[i]);
}

static void small_cases(void **state) {
    fixture *f = *state;
    assert_values(f,
                  "c = constant f32[3, 2] data=[1, 2, 3, 4, 5, 6]\ni = constant i64[3] data=[2, 0, -1]\n"
                  "y = gather(c, i)\noutput y = y\n",
                  (double[]){5, 6, 1, 2, 5, 6}, 6);
    assert_values(f,
                  "c = constant f16[5] data=[1, 2, 3, 4, 5.5]\ny = slice(c) axis=0 begin=4 count=3 step=-2\n"
                  "output y = y\n",
                  (double[]){5.5, 3, 1}, 3);
    assert_values(f,
                  "c = constant f32[2, 3] data=[1, 2, 3, 4, 5, 6]\ny = transpose(c) perm=[1, "
                  "0]\noutput y = y\n",
                  (double[]){1, 4, 2, 5, 3, 6}, 6);
    assert_values(f, "c = constant f32[2, 1] data=[1, 2]\ny = broadcast(c) : f32[2, 2, 2]\noutput y = y\n",
                  (double[]){1, 1, 2, 2, 1, 1, 2, 2}, 8);
    assert_values(f,
                  "c = constant i32[2, 3] data=[7, -7, 5, 3, 2, 0]\nd = constant i32[] data=[2]\ny "
                  "= div(c, d)\n"
                  "output y = y\n",
                  (double[]){3, -3, 2, 1, 1, 0}, 6);
    assert_values(f,
                  "c = constant f32[2, 3] data=[7, -7, 5, 3, 2, 0]\ny = reduce_prod(c) "
                  "axis=0\noutput y = y\n",
                  (double[]){21, -14, 0}, 3);
    assert_values(f,
                  "c = constant f32[2, 3] data=[7, -7, 5, 3, 2, 0]\ny = reduce_min(c) axis=1 "
                  "keep\noutput y = y\n",
                  (double[]){-7, 0}, 2);
    assert_values(f, "y = iota axis=0 : i32[2, 2]\noutput y = y\n", (double[]){0, 0, 1, 1}, 4);
    assert_values(f,
                  "a = constant f32[2] data=[1, 2]\nb = constant f32[3] data=[3, 4, 5]\n"
                  "y = contract(a, b) \"a,b->ba\"\noutput y = y\n",
                  (double[]){3, 6, 4, 8, 5, 10}, 6);
    assert_values(f, "a = constant f32[2, 2] data=[1, 2, 3, 4]\ny = contract(a, a) \"ab,ab->\"\noutput y = y\n",
                  (double[]){30}, 1);
}

static void a_size_is_a_number(void **state) {
    fixture *f = *state;
    open_text(f, "x = input f32[s]\nn = size 2*s+1\ny = add(x, n)\noutput y = y\noutput n = n\n");
    set(f, "s", 4);
    fill_inputs(f);
    run(f);
    close_to(f->out[1].data[0], 9.0);
    close_to(f->out[0].data[2], f->in[0].data[2] + 9.0);
}

/* log(2) / 2.7725887298584 * 8 is 1.99999999451: 2 in f32, as every f32 machine has it. */
static void steps_see_f32(void **state) {
    fixture *f = *state;
    open_text(f, "x = input f32[1]\nk = fill 2.7725887298583984 : f32[]\ne = fill 8.0 : f32[]\n"
                 "l = log(x)\nq = div(l, k)\nb = mul(q, e)\ni = cast(b) : i32[1]\nd = floor(b)\n"
                 "output i = i\noutput d = d\n");
    fill_inputs(f);
    f->in[0].data[0] = 2.0;
    run(f);
    close_to(f->out[0].data[0], 2.0);
    close_to(f->out[1].data[0], 2.0);
}

static void assert_refused(fixture *f, const char *part) {
    assert_int_equal(smg_graph_eval(f->g, f->symbols, f->in, f->arena, f->out), SMG_INVALID);
    if (!strstr(smg_context_error(f->ctx), part)) fail_msg("\"%s\"", smg_context_error(f->ctx));
    smg_context_clear_error(f->ctx);
}

static void bad_values_are_refused(void **state) {
    fixture *f = *state;
    open_text(f, "t = constant f32[3, 2] random seed=1\ni = input i32[s]\ny = gather(t, i)\noutput y = y\n");
    set(f, "s", 2);
    fill_inputs(f);
    f->in[0].data[0] = 0.0;
    f->in[0].data[1] = 30600.0;
    assert_refused(f, "gather: index 30600 at position 1 of i is outside [0, 3)");
    f->in[0].dims[0] = 3;
    assert_refused(f, "input i: extent 0 is 3, the graph says 2");
    f->symbols[0] = 0;
    assert_refused(f, "extent 0 is 0");
    open_text(f, "x = input f32[8]\ny = slice(x) axis=0 begin=0 count=s\noutput y = y\n");
    set(f, "s", 9);
    fill_inputs(f);
    assert_refused(f, "slice: elements 0 to 8 of axis 0 are outside [0, 8) of x");
    open_text(f, "c = constant f32[2]\ny = exp(c)\noutput y = y\n");
    assert_refused(f, "constant c has a shape but no data");
}

static void flops_are_counted(void **state) {
    fixture *f = *state;
    open_text(f, "x = input f32[r, 8]\nw = constant f32[4, 8]\ny = contract(x, w) "
                 "\"ri,oi->ro\"\noutput y = y\n");
    set(f, "r", 10);
    close_to(smg_graph_flops(f->g, f->symbols), 2.0 * 10 * 8 * 4);
    open_text(f, "x = input f32[r, 8]\ny = sum(x) axis=1\nz = mul(y, y)\noutput y = z\n");
    set(f, "r", 10);
    close_to(smg_graph_flops(f->g, f->symbols), 2.0 * (80 + 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(softmax_and_logsumexp, setup, teardown),
        cmocka_unit_test_setup_teardown(norms, setup, teardown),
        cmocka_unit_test_setup_teardown(cross_entropy, setup, teardown),
        cmocka_unit_test_setup_teardown(gelu_chains, setup, teardown),
        cmocka_unit_test_setup_teardown(linear_chains, setup, teardown),
        cmocka_unit_test_setup_teardown(attention, setup, teardown),
        cmocka_unit_test_setup_teardown(multi_head_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(small_cases, setup, teardown),
        cmocka_unit_test_setup_teardown(a_size_is_a_number, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_see_f32, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_values_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(flops_are_counted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
