/* The text form: every graph of tests/graphs prints what parses back to the same, odd names survive, and
 * broken text is refused with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "graph/graph.h"

static const char *const files[] = {
    "softmax",   "layernorm",     "rmsnorm",
    "logsumexp", "cross_entropy", "gelu_tanh",
    "attention", "linear_gelu",   "linear_residual_layernorm",
    "mlp",       "softmax_gemm",  "mha",
};

static int setup(void **state) {
    static smg_context *ctx;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

static smg_graph *parse(smg_context *ctx, const char *text, const char *where) {
    smg_graph *g = NULL;
    if (smg_graph_parse(ctx, text, strlen(text), where, &g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    return g;
}

static void assert_round_trip(smg_context *ctx, const char *text, const char *where) {
    smg_graph *g = parse(ctx, text, where);
    smg_text first, second;
    smg_text_init(&first, ctx);
    smg_text_init(&second, ctx);
    smg_graph_print(g, &first);
    smg_graph *h = parse(ctx, smg_text_cstr(&first), "printed");
    smg_graph_print(h, &second);
    assert_int_equal(smg_text_status(&second), SMG_OK);
    assert_string_equal(smg_text_cstr(&first), smg_text_cstr(&second));
    assert_int_equal(g->nodes.count, h->nodes.count);
    assert_true(smg_graph_hash(g) == smg_graph_hash(h));
    smg_text_free(&first);
    smg_text_free(&second);
    smg_graph_destroy(g);
    smg_graph_destroy(h);
}

static void files_round_trip(void **state) {
    for (size_t i = 0; i < SMG_COUNT_OF(files); i++) {
        char path[128], *text;
        size_t size;
        snprintf(path, sizeof path, "tests/graphs/%s.smg", files[i]);
        assert_int_equal(smg_file_read(*state, path, &text, &size), SMG_OK);
        assert_round_trip(*state, text, path);
        smg_free(*state, text, size + 1);
    }
}

static void every_statement_round_trips(void **state) {
    assert_round_trip(*state,
                      "graph \"odd name\"\n"
                      "dim s max 77   # comment\n"
                      "dim b\n"
                      "\n"
                      "%0 = input f32[b, 2*s+1] name=\"onnx::\\\"in\\\" \\u00e9\"\n"
                      "c = constant f16[2, 2] data=[0.5, -1, inf, nan]\n"
                      "i = constant i64[3] data=[1, -2, 3]\n"
                      "t = constant bool[] data=[1]\n"
                      "big = constant f32[100]\n"
                      "f = fill -inf : f32[b]\n"
                      "n = size floor(s/2)\n"
                      "k = iota axis=1 : i32[b, 4]\n"
                      "/layer.0/Add = add(%0, n)\n"
                      "%7 = reduce_min(/layer.0/Add) axis=-1\n"
                      "%8 = exp(%7) name=\"f\"\n"
                      "m = mul(%8, f)\n"
                      "g = gather(c, k)\n"
                      "v = slice(g) axis=1 begin=3 count=2 step=-2\n"
                      "o = window(g) axis=1 begin=-1 step=2 dilation=-3 fill=-inf : f16[b, 2*s, 3, 2]\n"
                      "l = size 2*s : i64[]\n"
                      "w = transpose(v) perm=[2, 1, 0]\n"
                      "h = cast(w) : f32[2, 2, b]\n"
                      "e = contract(h, h) \"abc,dbc->da\"\n"
                      "u = broadcast(m) : f32[3, b]\n"
                      "output \"a result\" = e\n"
                      "output m = u\n",
                      "all");
}

/* It is the same whatever lines met first: symbols, or sizes that are made of them. */
static void sizes_have_one_text(void **state) {
    assert_round_trip(*state, "x = input f32[floor(m/2)+q]\noutput y = x\n", "symbols");
    assert_round_trip(*state,
                      "dim m\ndim q\nx = input f32[min(m,q)*2]\nz = input f32[floor(m/2)+min(m,q), "
                      "floor(m/2)*q+mod(min(q,m)+floor(m/3),q)]\noutput y = x\noutput w = z\n",
                      "operations");
}

static void long_names_and_data(void **state) {
    smg_graph *g = parse(*state,
                         "x = constant f32[2] data=[1.5, -0.25]\ny = constant f16[2] random seed=3 scale=0.5\n"
                         "z = constant f16[2] random seed=3 scale=0.5\noutput y = x\n",
                         "data");
    const float *data = g->nodes.items[0].data;
    assert_true(data[0] == 1.5f && data[1] == -0.25f);
    assert_memory_equal(g->nodes.items[1].data, g->nodes.items[2].data, 4);
    smg_graph_destroy(g);
}

static void broken_text_is_refused_with_its_line(void **state) {
    static const struct {
        const char *text;
        smg_status code;
        const char *part;
    } rows[] = {
        {"", SMG_INVALID, "has no output"},
        {"x = input f32[4]\n", SMG_INVALID, "has no output"},
        {"x = input f32[4\n", SMG_FORMAT, "t:1: "},
        {"x = input f64[4]\n", SMG_FORMAT, "t:1: element type f64 does not exist"},
        {"x = input f32[4]\ny = softmax(x)\n", SMG_FORMAT, "t:2: operation softmax does not exist"},
        {"x = input f32[4]\ny = exp(z)\nz = exp(y)\n", SMG_FORMAT, "t:2: z is not defined above this line"},
        {"x = exp(x)\n", SMG_FORMAT, "t:1: x is not defined above this line"},
        {"x = input f32[4]\nx = exp(x)\n", SMG_FORMAT, "t:2: x is defined twice"},
        {"x = input f32[4]\n\n\ny = exp(x) : f32[5]\n", SMG_FORMAT, "t:4: the result is f32[4], the text says f32[5]"},
        {"x = input f32[4]\ny = exp(x) axis=1\n", SMG_FORMAT, "t:2: expects an attribute"},
        {"x = input f32[4]\ny = add(x)\n", SMG_INVALID, "t:2: add: takes 2 operands, got 1"},
        {"x = input f32[4]\ny = add(x, x, x, x)\n", SMG_FORMAT, "t:2: expects ')'"},
        {"x = input f32[4]\ny = reshape(x)\n", SMG_FORMAT, "t:2: expects ': TYPE'"},
        {"x = input f32[s]\ny = reshape(x) : f32[t]\n", SMG_INVALID, "f32[s] has s elements, f32[t] has t"},
        {"x = input f32[4]\ny = sum(x) axis=3\n", SMG_INVALID, "t:2: sum: axis 3 is outside [0, 1) of x"},
        {"x = input f32[4611686018427387904, 4]\n", SMG_INVALID, "t:1: a size does not fit 64 bits"},
        {"x = input f32[1, 1, 1, 1, 1, 1, 1, 1, 1]\n", SMG_INVALID, "t:1: a shape has more than 8 axes"},
        {"x = input f32[0]\n", SMG_INVALID, "t:1: input: extent 0 of x is 0"},
        {"c = constant f32[3] data=[1, 2]\n", SMG_FORMAT, "t:1: 2 numbers are given for 3 elements"},
        {"c = constant f32[s] random seed=1\n", SMG_FORMAT, "t:1: a constant with symbolic dims"},
        {"dim s max 0\n", SMG_INVALID, "t:1: the maximum of s is 0"},
        {"dim 4\n", SMG_FORMAT, "t:1: dim 4 is not a name"},
        {"x = input f32[4]\noutput y x\n", SMG_FORMAT, "t:2: expects '='"},
        {"x = input f32[4]\noutput y = x\noutput y = x\n", SMG_INVALID, "t:3: output: y exists already"},
        {"hello\n", SMG_FORMAT, "t:1: expects 'NAME = ...', graph, dim, output or state"},
        {"x = input f32[4] y\n", SMG_FORMAT, "t:1: expects an attribute"},
        {"x = fill : f32[4]\n", SMG_FORMAT, "t:1: expects a number"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_graph *g = NULL;
        smg_status status = smg_graph_parse(*state, rows[i].text, strlen(rows[i].text), "t", &g);
        assert_null(g);
        if (status != rows[i].code || !strstr(smg_context_error(*state), rows[i].part))
            fail_msg("%d \"%s\" is not \"%s\"", status, smg_context_error(*state), rows[i].part);
        smg_context_clear_error(*state);
    }
    smg_graph *g = NULL;
    assert_int_equal(smg_graph_parse(*state, "x\0y", 3, "t", &g), SMG_FORMAT);
    assert_int_equal(smg_graph_parse(NULL, "", 0, "t", &g), SMG_INVALID);
}

/* Cut and flipped text never does worse than a status. */
static void damaged_text_is_harmless(void **state) {
    char *text;
    size_t size;
    uint32_t seed = 1;
    assert_int_equal(smg_file_read(*state, "tests/graphs/mha.smg", &text, &size), SMG_OK);
    char *copy = smg_alloc(*state, size, 1);
    for (int round = 0; round < 2000; round++) {
        memcpy(copy, text, size);
        seed = seed * 1664525u + 1013904223u;
        size_t at = (seed >> 8) % size, length = round % 2 ? size : at;
        copy[at] = (char)(seed >> 3);
        smg_graph *g = NULL;
        smg_status status = smg_graph_parse(*state, copy, length, "t", &g);
        assert_true((status == SMG_OK) == (g != NULL));
        if (status != SMG_OK) assert_string_not_equal(smg_context_error(*state), "");
        smg_context_clear_error(*state);
        smg_graph_destroy(g);
    }
    smg_free(*state, copy, size);
    smg_free(*state, text, size + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(every_statement_round_trips, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_have_one_text, setup, teardown),
        cmocka_unit_test_setup_teardown(long_names_and_data, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_text_is_refused_with_its_line, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_text_is_harmless, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
