/* ONNX operators against another implementation: tests/onnx/ops.pack holds one small model per case with
 * inputs and what onnxruntime answers (written by tests/onnx/generate_ops.py, which says the format). Each
 * model is imported, evaluated by the reference as it is and after the rewrites, planned for one of a few
 * targets and run by the kernel interpreter, and compared each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "compile/compile.h"
#include "graph/graph_private.h"
#include "onnx/onnx.h"
#include "support/check_plan.h"

#define MAX_TENSORS 8
#define MAX_SYMBOLS 16

/* ---- the pack ------------------------------------------------------------------------------- */

typedef struct pack {
    const uint8_t *at, *end;
} pack;

typedef struct tensor {
    char name[64];
    smg_array array;
} tensor;

typedef struct record {
    char name[128];
    const uint8_t *model;
    size_t model_bytes;
    tensor in[MAX_TENSORS], out[MAX_TENSORS];
    int in_count, out_count;
} record;

static const uint8_t *take(pack *p, size_t bytes) {
    assert_true((size_t)(p->end - p->at) >= bytes);
    const uint8_t *data = p->at;
    p->at += bytes;
    return data;
}

static uint32_t take_u32(pack *p) {
    const uint8_t *b = take(p, 4);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void take_text(pack *p, char *out, size_t capacity) {
    uint32_t length = take_u32(p);
    assert_true(length < capacity);
    memcpy(out, take(p, length), length);
    out[length] = '\0';
}

static void take_tensor(pack *p, smg_arena *arena, tensor *out) {
    char type[8];
    take_text(p, out->name, sizeof out->name);
    take_text(p, type, sizeof type);
    out->array = (smg_array){.rank = (int)take_u32(p)};
    assert_true(smg_type_find(type, &out->array.type) && out->array.rank <= SMG_MAX_RANK);
    for (int i = 0; i < out->array.rank; i++) memcpy(&out->array.dims[i], take(p, 8), 8);
    int64_t count = smg_array_elements(&out->array);
    const uint8_t *data = take(p, (size_t)(count * smg_type_host_bytes(out->array.type)));
    out->array.data = SMG_ARENA_ARRAY(arena, double, (size_t)count + 1);
    assert_non_null(out->array.data);
    for (int64_t i = 0; i < count; i++) out->array.data[i] = smg_host_get(out->array.type, data, i);
}

static void take_record(pack *p, smg_arena *arena, record *out) {
    take_text(p, out->name, sizeof out->name);
    out->model_bytes = take_u32(p);
    out->model = take(p, out->model_bytes);
    out->in_count = (int)take_u32(p);
    assert_in_range(out->in_count, 0, MAX_TENSORS);
    for (int i = 0; i < out->in_count; i++) take_tensor(p, arena, &out->in[i]);
    out->out_count = (int)take_u32(p);
    assert_in_range(out->out_count, 0, MAX_TENSORS);
    for (int i = 0; i < out->out_count; i++) take_tensor(p, arena, &out->out[i]);
}

/* ---- evaluation ----------------------------------------------------------------------------- */

typedef struct sentence {
    char text[512];
} sentence;

static bool say(sentence *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->text, sizeof s->text, format, arguments);
    va_end(arguments);
    return false;
}

/* The record's inputs in node order; symbols that are an extent by themselves get its value. */
static bool bind(const smg_graph *g, const record *r, int64_t *symbols, smg_array *inputs, sentence *s) {
    int count = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *node = &g->nodes.items[i];
        if (smg_op_leaf(node->op) != SMG_LEAF_TENSOR || node->operand_count || node->data) continue;
        const smg_array *given = NULL;
        for (int k = 0; k < r->in_count; k++)
            if (strcmp(r->in[k].name, node->name) == 0) given = &r->in[k].array;
        if (!given || given->rank != node->rank) return say(s, "input %s is not given", node->name);
        for (int k = 0; k < node->rank; k++)
            for (int at = 0; at < smg_size_symbol_count(g->sizes); at++)
                if (smg_size_symbol(g->sizes, smg_size_symbol_name(g->sizes, at)) == node->dims[k])
                    symbols[at] = given->dims[k];
        inputs[count++] = *given;
    }
    return true;
}

static bool equal(const smg_array *got, const tensor *wanted, sentence *s) {
    const smg_array *want = &wanted->array;
    double tolerance = want->type == SMG_TYPE_F16 ? 2e-3 : 2e-5, largest = 1.0;
    bool real = smg_type_kind(want->type) == SMG_KIND_FLOAT;
    if (smg_type_kind(got->type) != smg_type_kind(want->type))
        return say(s, "%s is %s, must be %s", wanted->name, smg_type_word(got->type), smg_type_word(want->type));
    if (got->rank != want->rank) return say(s, "%s has rank %d, not %d", wanted->name, got->rank, want->rank);
    for (int i = 0; i < got->rank; i++)
        if (got->dims[i] != want->dims[i])
            return say(s, "extent %d of %s is %lld, not %lld", i, wanted->name, (long long)got->dims[i],
                       (long long)want->dims[i]);
    for (int64_t i = 0; i < smg_array_elements(want); i++)
        if (isfinite(want->data[i]) && fabs(want->data[i]) > largest) largest = fabs(want->data[i]);
    for (int64_t i = 0; i < smg_array_elements(want); i++) {
        double x = got->data[i], y = want->data[i];
        bool same = isnan(y) ? isnan(x) : (x >= y && x <= y);
        if (!same && real && isfinite(y)) same = fabs(x - y) <= tolerance * largest;
        if (!same) return say(s, "element %lld of %s is %.9g, not %.9g", (long long)i, wanted->name, x, y);
    }
    return true;
}

static bool evaluate(smg_context *ctx, const smg_graph *g, const record *r, sentence *s) {
    smg_array inputs[MAX_TENSORS], outputs[MAX_TENSORS];
    int64_t symbols[MAX_SYMBOLS];
    smg_arena *arena = NULL;
    for (int i = 0; i < MAX_SYMBOLS; i++) symbols[i] = 1;
    if (g->outputs.count != r->out_count) return say(s, "%d outputs", g->outputs.count);
    if (!bind(g, r, symbols, inputs, s)) return false;
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    bool good = smg_graph_eval(g, symbols, inputs, arena, outputs) == SMG_OK;
    if (!good) say(s, "%s", smg_context_error(ctx));
    for (int i = 0; good && i < r->out_count; i++) {
        good = strcmp(g->outputs.items[i].name, r->out[i].name) == 0;
        good = good ? equal(&outputs[i], &r->out[i], s) : say(s, "output %d has another name", i);
    }
    smg_arena_destroy(arena);
    return good;
}

/* The case's inputs as tensors of the types that the planned graph has. */
static smg_status give(smg_compilation *c, const record *r, const int64_t *symbols, smg_arena *arena,
                       smg_tensor *inputs, int *out_count) {
    *out_count = 0;
    for (int id = 0; id < c->graph->nodes.count; id++) {
        const smg_node *node = smg_graph_node(c->graph, id);
        if (!smg_node_is_input(node)) continue;
        smg_tensor *made = &inputs[(*out_count)++];
        SMG_TRY(smg_tensor_make(c->ctx, c->graph, id, symbols, arena, made));
        made->name = node->name;
        for (int k = 0; k < r->in_count; k++) {
            if (strcmp(r->in[k].name, node->name) != 0) continue;
            for (int64_t i = 0; i < smg_tensor_elements(made); i++) smg_tensor_set(made, i, r->in[k].array.data[i]);
        }
    }
    return SMG_OK;
}

static smg_status interpret(smg_compilation *c, const record *r, smg_arena *arena, smg_array *outputs) {
    int64_t symbols[MAX_SYMBOLS];
    smg_array unused[MAX_TENSORS];
    smg_tensor inputs[MAX_TENSORS], got[MAX_TENSORS];
    sentence s;
    int count;
    for (int i = 0; i < MAX_SYMBOLS; i++) symbols[i] = 1;
    if (!bind(c->graph, r, symbols, unused, &s)) return smg_fail(c->ctx, SMG_INTERNAL, "%s", s.text);
    SMG_TRY(give(c, r, symbols, arena, inputs, &count));
    SMG_TRY(smg_compile_interpret(c, symbols, inputs, count, arena, got));
    for (int i = 0; i < r->out_count; i++) SMG_TRY(smg_tensor_to_array(&got[i], arena, &outputs[i]));
    return SMG_OK;
}

/* Through kernels, for another target and the other objective from case to case. */
static bool run_kernels(smg_context *ctx, const smg_graph *g, const record *r, sentence *s) {
    static const char *const targets[] = {"h200", "tests/targets/subgroup4.target",
                                          "tests/targets/shared16k_inv128.target"};
    smg_compile_options options = {0};
    smg_compilation *c = NULL;
    smg_array outputs[MAX_TENSORS];
    smg_target target;
    smg_arena *arena = NULL;
    int turn = (int)(smg_hash_text(SMG_HASH_SEED, r->name) % 6);
    if (turn >= 3) options.objective = SMG_OBJECTIVE_DISPATCHES;
    assert_int_equal(check_target(ctx, targets[turn % 3], &target), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    bool good = smg_compile_plan(ctx, g, &target, &options, &c) == SMG_OK && interpret(c, r, arena, outputs) == SMG_OK;
    if (!good) say(s, "kernels for %s: %s", targets[turn % 3], smg_context_error(ctx));
    for (int i = 0; good && i < r->out_count; i++) good = equal(&outputs[i], &r->out[i], s);
    smg_compilation_destroy(c);
    smg_arena_destroy(arena);
    return good;
}

static bool check_graph(smg_context *ctx, const smg_graph *g, const record *r, sentence *s) {
    smg_graph *rewritten = NULL;
    if (!evaluate(ctx, g, r, s)) return false;
    if (smg_rewrite_graph(g, &rewritten, NULL) != SMG_OK) return say(s, "rewrites: %s", smg_context_error(ctx));
    bool good = evaluate(ctx, rewritten, r, s);
    smg_graph_destroy(rewritten);
    return good && run_kernels(ctx, g, r, s);
}

static bool is_refused(const record *r) {
    return strncmp(r->name, "refused/", 8) == 0;
}

static bool check(const record *r, sentence *s) {
    smg_context *ctx = NULL;
    smg_onnx *model = NULL;
    smg_graph *g = NULL;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    smg_status status = smg_onnx_open_bytes(ctx, r->name, r->model, r->model_bytes, NULL, &model);
    if (status == SMG_OK) status = smg_onnx_make_graph(model, &g);
    bool good;
    if (is_refused(r))
        good = status == SMG_UNSUPPORTED && strstr(smg_context_error(ctx), "_to_y0") != NULL;
    else
        good = status == SMG_OK && check_graph(ctx, g, r, s);
    if (!good && (status != SMG_OK || is_refused(r))) say(s, "status %d: %s", (int)status, smg_context_error(ctx));
    smg_graph_destroy(g);
    smg_onnx_close(model);
    smg_context_destroy(ctx);
    return good;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_every_case(void **state) {
    static const char magic[8] = "SMGOPS1\n";
    smg_context *ctx = *state;
    smg_mapped_file file;
    smg_arena *arena = NULL;
    int wrong = 0, refused = 0;
    assert_int_equal(smg_file_map(ctx, "tests/onnx/ops.pack", &file), SMG_OK);
    pack p = {file.data, file.data + file.size};
    assert_memory_equal(take(&p, 8), magic, 8);
    uint32_t count = take_u32(&p);
    assert_true(count > 500);
    for (uint32_t i = 0; i < count; i++) {
        record r;
        sentence s = {""};
        assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
        take_record(&p, arena, &r);
        refused += is_refused(&r) ? 1 : 0;
        if (!check(&r, &s)) {
            wrong++;
            print_error("%s: %s\n", r.name, s.text);
        }
        smg_arena_destroy(arena);
    }
    assert_true(p.at == p.end);
    smg_file_unmap(&file);
    print_message("%u cases, %d of them refused\n", count, refused);
    assert_int_equal(wrong, 0);
}

static int setup(void **state) {
    return smg_context_create(NULL, (smg_context **)state) == SMG_OK ? 0 : -1;
}

static int teardown(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_case, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
