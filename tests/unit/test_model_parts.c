/* Parts of models against formulas: every activation by its name, norms, and the attention core with
 * grouped heads, a bias, a mask and a causal order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "model/model_private.h"

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    model_builder b;
} fixture;

static int setup(void **state) {
    static fixture f;
    f = (fixture){.b = {.prefix = "", .eps = 1e-3}};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_graph_create(f.ctx, "part", &f.b.g), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_graph_destroy(f->b.g);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void finish(fixture *f, smg_value y) {
    smg_graph_output(f->b.g, "y", y);
    if (smg_graph_finish(f->b.g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void evaluate(fixture *f, const smg_array *inputs, smg_array *out) {
    int64_t symbols[1] = {2}; /* batch, where there is one */
    if (smg_graph_eval(f->b.g, symbols, inputs, f->arena, out) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

/* ---- activations ---------------------------------------------------------------------------- */

static double gelu(double x) {
    return x / 2 * (1 + erf(x * sqrt(0.5)));
}
static double gelu_tanh(double x) {
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double quick_gelu(double x) {
    return x * sigmoid(1.702 * x);
}
static double relu(double x) {
    return x > 0 ? x : 0;
}
static double relu2(double x) {
    return relu(x) * relu(x);
}
static double silu(double x) {
    return x * sigmoid(x);
}
static double linear(double x) {
    return x;
}

static void each_activation_is_its_formula(void **state) {
    static const struct {
        const char *name;
        double (*formula)(double x);
    } rows[] = {
        {"gelu", gelu},
        {"gelu_python", gelu},
        {"gelu_new", gelu_tanh},
        {"gelu_fast", gelu_tanh},
        {"gelu_pytorch_tanh", gelu_tanh},
        {"quick_gelu", quick_gelu},
        {"relu", relu},
        {"relu2", relu2},
        {"silu", silu},
        {"swish", silu},
        {"sigmoid", sigmoid},
        {"tanh", tanh},
        {"linear", linear},
    };
    double data[] = {-30, -3, -0.5, 0, 0.25, 1, 2.5, 30};
    (void)state;
    for (size_t r = 0; r < SMG_COUNT_OF(rows); r++) {
        fixture *f = NULL;
        smg_array out, in = {SMG_TYPE_F32, 1, {8}, data};
        setup((void **)&f);
        f->b.activation = rows[r].name;
        assert_true(smg_model_activation_known(rows[r].name));
        assert_non_null(strstr(smg_model_activation_names(), rows[r].name));
        smg_value x = smg_graph_input(f->b.g, "x", "f32", "8");
        finish(f, smg_model_activation(&f->b, smg_model_map1(&f->b, "neg", x), "a"));
        evaluate(f, &in, &out);
        for (int i = 0; i < 8; i++) {
            double want = rows[r].formula(-data[i]);
            if (fabs(out.data[i] - want) > 1e-6 * (1 + fabs(want)))
                fail_msg("%s(%g) is %g, not %g", rows[r].name, -data[i], out.data[i], want);
        }
        teardown((void **)&f);
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

enum { B = 2, S = 3, T = 4, KV = 2, G = 2, H = KV * G, D = 2 };

typedef struct attended {
    const double *q, *k, *v, *bias, *mask; /* bias, mask: NULL for none */
    double scale;
    bool causal;
} attended;

static double score(const attended *a, int b, int h, int s, int t) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += a->q[((b * S + s) * H + h) * D + d] * a->k[((b * T + t) * KV + h / G) * D + d];
    sum *= a->scale;
    if (a->bias) sum += a->bias[(h * S + s) * T + t];
    if (a->mask && a->mask[b * T + t] < 0.5) return -INFINITY;
    return a->causal && t > s ? -INFINITY : sum;
}

static double expected(const attended *a, int b, int s, int h, int d) {
    double total = 0, sum = 0;
    for (int t = 0; t < T; t++) {
        double e = exp(score(a, b, h, s, t));
        total += e;
        sum += e * a->v[((b * T + t) * KV + h / G) * D + d];
    }
    return sum / total;
}

static double *numbers(fixture *f, int count, unsigned seed) {
    double *data = SMG_ARENA_ARRAY(f->arena, double, (size_t)count);
    assert_non_null(data);
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (double)(float)((double)(seed >> 8) / 8388608.0 - 1.0);
    }
    return data;
}

static void expect_attended(fixture *f, const attended *a, const smg_array *in) {
    smg_array out;
    evaluate(f, in, &out);
    assert_int_equal(smg_array_elements(&out), B * S * H * D);
    for (int i = 0; i < B * S * H * D; i++) {
        int d = i % D, h = i / D % H, s = i / (D * H) % S, b = i / (D * H * S);
        assert_true(fabs(out.data[i] - expected(a, b, s, h, d)) < 1e-6);
    }
}

static void grouped_attention_is_its_formula(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        fixture *f = NULL;
        setup((void **)&f);
        model_builder *b = &f->b;
        double mask[B * T] = {1, 1, 0, 1, 0, 1, 1, 0};
        attended a = {.q = numbers(f, B * S * H * D, 1),
                      .k = numbers(f, B * T * KV * D, 2),
                      .v = numbers(f, B * T * KV * D, 3),
                      .bias = variant % 2 ? numbers(f, H * S * T, 4) : NULL,
                      .mask = variant > 0 && variant < 3 ? mask : NULL,
                      .scale = variant == 2 ? 1 : 0.75,
                      .causal = variant == 3};
        smg_array in[5] = {{SMG_TYPE_F32, 4, {B, S, H, D}, (double *)a.q},
                           {SMG_TYPE_F32, 4, {B, T, KV, D}, (double *)a.k},
                           {SMG_TYPE_F32, 4, {B, T, KV, D}, (double *)a.v},
                           {SMG_TYPE_F32, 3, {H, S, T}, numbers(f, H * S * T, 4)},
                           {SMG_TYPE_F32, 4, {B, 1, 1, T}, mask}};
        smg_value q = smg_graph_input(b->g, "q", "f32", "batch, 3, 4, 2");
        smg_value k = smg_graph_input(b->g, "k", "f32", "batch, 4, 2, 2");
        smg_value v = smg_graph_input(b->g, "v", "f32", "batch, 4, 2, 2");
        smg_value bias = smg_graph_input(b->g, "bias", "f32", "4, 3, 4");
        smg_value valid = smg_graph_input(b->g, "mask", "f32", "batch, 1, 1, 4");
        smg_value term = smg_model_map2(b, "sub", smg_model_number(b, 1), valid);
        term = smg_model_map2(b, "mul", term, smg_model_number(b, SMG_MODEL_LOWEST));
        const model_attention options = {.heads = H,
                                         .kv_heads = KV,
                                         .dim = D,
                                         .queries = "3",
                                         .keys = "4",
                                         .scale = a.scale,
                                         .bias = a.bias ? bias : (smg_value){0},
                                         .mask_term = a.mask ? term : (smg_value){0},
                                         .causal = a.causal,
                                         .name = "a"};
        finish(f, smg_model_attention(b, &options, q, k, v));
        expect_attended(f, &a, in);
        teardown((void **)&f);
    }
}

/* ---- norms ---------------------------------------------------------------------------------- */

static bool tensor(void *user, const char *name, smg_type *out_type, int *out_rank, int64_t out_dims[SMG_MAX_RANK],
                   const void **out_data) {
    static const float scale[4] = {1, -2, 0.5f, 3}, shift[4] = {0.25f, 0, -1, 2};
    (void)user;
    *out_type = SMG_TYPE_F32;
    *out_rank = 1;
    out_dims[0] = 4;
    *out_data = strcmp(name, "n.weight") == 0 ? scale : shift;
    return true;
}

static void norms_are_their_formulas(void **state) {
    static const double scale[4] = {1, -2, 0.5, 3}, shift[4] = {0.25, 0, -1, 2};
    double x[4] = {1, 2, -3, 0.5};
    const smg_model_source source = {.tensor = tensor};
    (void)state;
    for (int rms = 0; rms < 2; rms++) {
        fixture *f = NULL;
        smg_array out, in = {SMG_TYPE_F32, 3, {1, 1, 4}, x};
        setup((void **)&f);
        f->b.source = &source;
        assert_int_equal(smg_map_create(f->b.g->arena, &f->b.weights), SMG_OK);
        smg_value v = smg_graph_input(f->b.g, "x", "f32", "1, 1, 4");
        finish(f, rms ? smg_model_rms_norm(&f->b, v, "n", 4, "norm") : smg_model_layer_norm(&f->b, v, "n", 4, "norm"));
        evaluate(f, &in, &out);
        double mean = rms ? 0 : (x[0] + x[1] + x[2] + x[3]) / 4, energy = 0;
        for (int i = 0; i < 4; i++) energy += (x[i] - mean) * (x[i] - mean) / 4;
        for (int i = 0; i < 4; i++) {
            double want = (x[i] - mean) / sqrt(energy + 1e-3) * scale[i] + (rms ? 0 : shift[i]);
            assert_true(fabs(out.data[i] - want) < 1e-6);
        }
        teardown((void **)&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_activation_is_its_formula),
        cmocka_unit_test(grouped_attention_is_its_formula),
        cmocka_unit_test(norms_are_their_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
