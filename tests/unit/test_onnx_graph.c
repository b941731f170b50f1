/* ONNX graphs: order and names of nodes, functions of the model, branches, constants, symbols of sizes, and
 * what is refused. Files are made byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "support/onnx_made.h"

typedef onnx_made fixture;

static void expect_graph(fixture *f) {
    onnx_made_expect_ok(f, onnx_made_convert(f, NULL));
}

static void expect_failure(fixture *f, smg_status want, const char *part) {
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), want, part);
}

/* x = f32[3] {1, -2, 3} in, y out; a symbolic size is 3. */
static void expect_y(fixture *f, double a, double b, double c) {
    double data[] = {1, -2, 3};
    const double want[] = {a, b, c};
    const int64_t symbols[] = {3};
    smg_arena *arena = NULL;
    smg_array out, in = {.type = SMG_TYPE_F32, .rank = 1, .dims = {3}, .data = data};
    expect_graph(f);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    if (smg_graph_eval(f->graph, symbols, &in, arena, &out) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_array_elements(&out), 3);
    for (int i = 0; i < 3; i++) assert_true(out.data[i] == want[i]);
    smg_arena_destroy(arena);
    onnx_made_clear(f);
}

static void begin_xy(pb *p, int opset) {
    onnx_begin(p, opset);
    onnx_value(p, 11, "x", ONNX_F32, "3");
    onnx_value(p, 12, "y", ONNX_F32, "3");
}

/* ---- order and names ------------------------------------------------------------------------ */

static void nodes_may_come_in_any_order(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Neg", "last", "b", "y");
    onnx_plain(&f->p, "Abs", "middle", "a", "b");
    onnx_plain(&f->p, "Neg", "first", "x", "a");
    onnx_end(&f->p);
    expect_y(f, -1, -2, -3);
}

static void cycles_are_refused(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Add", "one", "x b", "a");
    onnx_plain(&f->p, "Neg", "two", "a", "b");
    onnx_plain(&f->p, "Neg", "three", "a", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "depends on its own result");
    /* Also where no output needs them. */
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Neg", "self", "a", "a");
    onnx_plain(&f->p, "Neg", "good", "x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "node 'self' (Neg) depends on its own result");
}

static void names_are_made_once(void **state) {
    fixture *f = *state;
    static const float one[] = {1};
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Neg", "n1", "x", "y");
    onnx_plain(&f->p, "Abs", "n2", "x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "value 'y' is made twice, again by node 'n2' (Abs)");
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Neg", "n1", "x", "x");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "value 'x' is made twice");
    begin_xy(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "3");
    onnx_plain(&f->p, "Neg", "n1", "x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "value 'x' exists twice");
    begin_xy(&f->p, 18);
    onnx_tensor_f32(&f->p, 5, "w", "1", one, 1);
    onnx_tensor_f32(&f->p, 5, "w", "1", one, 1);
    onnx_plain(&f->p, "Add", "n1", "x w", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "value 'w' exists twice");
    begin_xy(&f->p, 18);
    onnx_value(&f->p, 12, "y", ONNX_F32, "3");
    onnx_plain(&f->p, "Neg", "n1", "x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_INVALID, "y exists already");
}

static void values_must_come_from_somewhere(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Add", "sum", "x nowhere", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "node 'sum' (Add) reads 'nowhere', which nothing makes");
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Neg", "n", "x", "z");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "nothing makes the output 'y'");
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "3");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "has no outputs");
}

static void a_default_of_an_input_is_a_constant(void **state) {
    fixture *f = *state;
    static const float two[] = {2};
    begin_xy(&f->p, 11);
    onnx_value(&f->p, 11, "w", ONNX_F32, "1");
    onnx_tensor_f32(&f->p, 5, "w", "1", two, 1);
    onnx_plain(&f->p, "Mul", "n", "x w", "y");
    onnx_end(&f->p);
    expect_y(f, 2, -4, 6);
}

/* What nobody needs is not converted, but must still be known. */
static void dead_nodes_are_left_out(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Abs", "dead", "x", "unused");
    onnx_plain(&f->p, "Neg", "n", "x", "y");
    onnx_end(&f->p);
    expect_graph(f);
    assert_int_equal(f->graph->nodes.count, 2);
}

/* ---- unsupported ---------------------------------------------------------------------------- */

static void all_unsupported_operators_are_listed(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 17);
    onnx_plain(&f->p, "Frobnicate", "f1", "x", "a");
    onnx_plain(&f->p, "Neg", "ok", "a", "b");
    onnx_node(&f->p, "Tweak", "", "b", "named");
    pb_text(&f->p, 7, "com.example");
    pb_end(&f->p);
    onnx_node(&f->p, "If", "choice", "x", "y");
    pb_begin(&f->p, 5);
    pb_text(&f->p, 1, "then_branch");
    pb_begin(&f->p, 6);
    onnx_plain(&f->p, "Inside", "deep", "b", "q");
    for (int i = 0; i < 3; i++) pb_end(&f->p);
    onnx_end(&f->p);
    assert_int_equal(smg_onnx_open_bytes(f->ctx, "made.onnx", f->p.data, f->p.size, NULL, &f->model), SMG_OK);
    assert_int_equal(smg_onnx_missing_count(f->model), 3);
    const smg_onnx_missing *m = smg_onnx_missing_at(f->model, 0);
    assert_string_equal(m->node, "f1");
    assert_string_equal(m->op, "Frobnicate");
    assert_int_equal(m->opset, 17);
    m = smg_onnx_missing_at(f->model, 1);
    assert_string_equal(m->node, "named"); /* its output, for want of a name */
    assert_string_equal(m->domain, "com.example");
    assert_string_equal(smg_onnx_missing_at(f->model, 2)->node, "deep");
    assert_null(smg_onnx_missing_at(f->model, 3));
    assert_int_equal(smg_onnx_declared_count(f->model), 2);
    assert_string_equal(smg_onnx_declared_at(f->model, 0)->type, "float32[3]");
    smg_onnx_close(f->model);
    f->model = NULL;
    expect_failure(f, SMG_UNSUPPORTED, "node 'f1' (Frobnicate, opset 17): smg does not know this operator; 3 nodes");
}

static void inputs_of_nodes_are_counted(void **state) {
    fixture *f = *state;
    static const char *const inputs[] = {"x", "x x x", "x -"};
    for (int i = 0; i < 3; i++) {
        begin_xy(&f->p, 18);
        onnx_plain(&f->p, "Sub", "minus", inputs[i], "y");
        onnx_end(&f->p);
        expect_failure(f, SMG_FORMAT, "'made.onnx': node 'minus' (Sub, opset 18): ");
    }
    begin_xy(&f->p, 18);
    onnx_plain(&f->p, "Sum", "list", "x x - x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "node 'list' (Sum, opset 18): input 2 is missing");
    begin_xy(&f->p, 18);
    onnx_node(&f->p, "Softmax", "soft", "x", "y");
    onnx_attr_ints(&f->p, "axis", (const int64_t[]){0}, 1);
    pb_end(&f->p);
    onnx_end(&f->p);
    expect_failure(f, SMG_FORMAT, "attribute 'axis' is of type 7, must be an integer");
}

/* ---- constants ------------------------------------------------------------------------------ */

static void begin_attribute(pb *p, const char *name, int type) {
    pb_begin(p, 5);
    pb_text(p, 1, name);
    pb_int(p, 20, type);
}

static void constants_have_many_forms(void **state) {
    fixture *f = *state;
    for (int form = 0; form < 4; form++) {
        begin_xy(&f->p, 18);
        onnx_node(&f->p, "Constant", "c", "", "c");
        if (form == 0) {
            begin_attribute(&f->p, "value_float", 1);
            pb_float(&f->p, 2, 2);
        } else if (form == 1) {
            begin_attribute(&f->p, "value_floats", 6);
            for (int i = 0; i < 3; i++) pb_float(&f->p, 7, 2);
        } else if (form == 2) {
            begin_attribute(&f->p, "value_int", 2);
            pb_int(&f->p, 3, 2);
        } else {
            begin_attribute(&f->p, "value_ints", 7);
            for (int i = 0; i < 3; i++) pb_int(&f->p, 8, 2);
        }
        pb_end(&f->p);
        pb_end(&f->p);
        onnx_node(&f->p, "Cast", "to", "c", "d");
        onnx_attr_int(&f->p, "to", ONNX_F32);
        pb_end(&f->p);
        onnx_plain(&f->p, "Mul", "n", "x d", "y");
        onnx_end(&f->p);
        expect_y(f, 2, -4, 6);
    }
    begin_xy(&f->p, 18);
    onnx_node(&f->p, "Constant", "text", "", "c");
    begin_attribute(&f->p, "value_string", 3);
    pb_text(&f->p, 4, "words");
    pb_end(&f->p);
    pb_end(&f->p);
    onnx_plain(&f->p, "Add", "n", "x c", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "node 'text' (Constant, opset 18)");
}

/* ---- branches ------------------------------------------------------------------------------- */

static void branch(pb *p, const char *name, const char *op) {
    begin_attribute(p, name, 5);
    pb_begin(p, 6);
    onnx_plain(p, op, name, "x", "r"); /* x is of the graph around */
    onnx_value(p, 12, "r", ONNX_F32, "3");
    pb_end(p);
    pb_end(p);
}

static void choose(pb *p, const char *condition) {
    onnx_node(p, "If", "choice", condition, "y");
    branch(p, "then_branch", "Neg");
    branch(p, "else_branch", "Abs");
    pb_end(p);
}

static void branches_fold(void **state) {
    fixture *f = *state;
    for (int value = 0; value < 2; value++) {
        begin_xy(&f->p, 18);
        onnx_tensor(&f->p, 5, "c", ONNX_BOOL, "");
        pb_bytes(&f->p, 9, value ? "\1" : "\0", 1);
        pb_end(&f->p);
        choose(&f->p, "c");
        onnx_end(&f->p);
        if (value) expect_y(f, -1, 2, -3);
        if (!value) expect_y(f, 1, 2, 3);
    }
    /* A condition on sizes: rank 1 has no second axis. */
    static const int64_t three[] = {3};
    begin_xy(&f->p, 18);
    onnx_tensor_i64(&f->p, 5, "three", "1", three, 1);
    onnx_plain(&f->p, "Shape", "s", "x", "shape");
    onnx_plain(&f->p, "Equal", "e", "shape three", "c");
    choose(&f->p, "c");
    onnx_end(&f->p);
    expect_y(f, -1, 2, -3);
    begin_xy(&f->p, 18);
    onnx_value(&f->p, 11, "c", ONNX_F32, "");
    choose(&f->p, "c");
    onnx_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "its condition 'c' is not known before the run");
}

/* ---- functions of the model ----------------------------------------------------------------- */

static void begin_function(pb *p, const char *name, const char *in, const char *out) {
    pb_begin(p, 25);
    pb_text(p, 1, name);
    pb_text(p, 10, "local");
    pb_text(p, 4, in);
    pb_text(p, 5, out);
    pb_begin(p, 9);
    pb_int(p, 2, 18);
    pb_end(p);
    pb_begin(p, 9);
    pb_text(p, 1, "local");
    pb_int(p, 2, 1);
    pb_end(p);
}

static void call_inside(pb *p, const char *op, const char *in, const char *out) {
    pb_begin(p, 7);
    pb_text(p, 1, in);
    pb_text(p, 2, out);
    pb_text(p, 4, op);
    pb_text(p, 7, "local");
    pb_end(p);
}

static void call(pb *p, const char *op, const char *in, const char *out) {
    onnx_node(p, op, op, in, out);
    pb_text(p, 7, "local");
}

/* A node of a function whose attribute `to` stands for the call's `kind`. */
static void cast_inside(pb *p, const char *in, const char *out) {
    pb_begin(p, 7);
    pb_text(p, 1, in);
    pb_text(p, 2, out);
    pb_text(p, 4, "Cast");
    pb_begin(p, 5);
    pb_text(p, 1, "to");
    pb_int(p, 20, 2);
    pb_text(p, 21, "kind");
    pb_end(p);
    pb_end(p);
}

static void functions_are_expanded(void **state) {
    fixture *f = *state;
    for (int given = 0; given < 2; given++) {
        begin_xy(&f->p, 18);
        call(&f->p, "Outer", "x", "h");
        if (given) onnx_attr_int(&f->p, "kind", ONNX_I32);
        pb_end(&f->p);
        onnx_node(&f->p, "Cast", "back", "h", "y");
        onnx_attr_int(&f->p, "to", ONNX_F32);
        pb_end(&f->p);
        onnx_end(&f->p);
        begin_function(&f->p, "Outer", "a", "c");
        call_inside(&f->p, "Halve", "a", "b");
        cast_inside(&f->p, "b", "c");
        pb_begin(&f->p, 11); /* the default of `kind` */
        pb_text(&f->p, 1, "kind");
        pb_int(&f->p, 3, ONNX_F32);
        pb_int(&f->p, 20, 2);
        pb_end(&f->p);
        pb_end(&f->p);
        begin_function(&f->p, "Halve", "a", "y");
        pb_begin(&f->p, 7);
        pb_text(&f->p, 2, "half");
        pb_text(&f->p, 4, "Constant");
        begin_attribute(&f->p, "value_float", 1);
        pb_float(&f->p, 2, 0.5f);
        pb_end(&f->p);
        pb_end(&f->p);
        pb_begin(&f->p, 7);
        pb_text(&f->p, 1, "a");
        pb_text(&f->p, 1, "half");
        pb_text(&f->p, 2, "y");
        pb_text(&f->p, 4, "Mul");
        pb_end(&f->p);
        pb_end(&f->p);
        if (given) expect_y(f, 0, -1, 1);
        if (!given) expect_y(f, 0.5, -1, 1.5);
    }
}

static void functions_that_call_themselves_end(void **state) {
    fixture *f = *state;
    begin_xy(&f->p, 18);
    call(&f->p, "Loop", "x", "y");
    pb_end(&f->p);
    onnx_end(&f->p);
    begin_function(&f->p, "Loop", "a", "b");
    call_inside(&f->p, "Loop", "a", "b");
    pb_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "nested more than 64 deep");
    /* Each calls the next one twice: 2^40 nodes. */
    begin_xy(&f->p, 18);
    call(&f->p, "F0", "x", "y");
    pb_end(&f->p);
    onnx_end(&f->p);
    for (int i = 0; i < 40; i++) {
        char name[] = {'F', (char)('0' + i), '\0'}, next[] = {'F', (char)('1' + i), '\0'};
        begin_function(&f->p, name, "a", "c");
        call_inside(&f->p, i == 39 ? "Neg" : next, "a", "b");
        call_inside(&f->p, i == 39 ? "Neg" : next, "b", "c");
        pb_end(&f->p);
    }
    begin_function(&f->p, "Neg", "a", "b");
    pb_begin(&f->p, 7);
    pb_text(&f->p, 1, "a");
    pb_text(&f->p, 2, "b");
    pb_text(&f->p, 4, "Neg");
    pb_end(&f->p);
    pb_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "nodes when its functions are expanded");
}

/* ---- inputs and sizes ----------------------------------------------------------------------- */

static void expect_dims(const fixture *f, int output, const char *want) {
    const smg_node *node = smg_graph_node(f->graph, f->graph->outputs.items[output].node);
    smg_text text;
    smg_text_init(&text, f->ctx);
    for (int i = 0; i < node->rank; i++) {
        if (i > 0) smg_text_add(&text, " ");
        smg_size_print(f->graph->sizes, node->dims[i], &text);
    }
    assert_string_equal(smg_text_cstr(&text), want);
    smg_text_free(&text);
}

static void sizes_have_the_names_of_the_file(void **state) {
    fixture *f = *state;
    static const char *const rows[][2] = {
        {"batch sequence", "batch sequence"},
        {"s s+1", "s s+1"},
        {"s 2*s", "s 2*s"},
        {"? 4", "x_0 4"},
        {"-1 4", "x_0 4"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        onnx_begin(&f->p, 18);
        onnx_value(&f->p, 11, "x", ONNX_F32, rows[i][0]);
        onnx_value(&f->p, 12, "y", ONNX_F32, rows[i][0]);
        onnx_plain(&f->p, "Neg", "n", "x", "y");
        onnx_end(&f->p);
        expect_graph(f);
        expect_dims(f, 0, rows[i][1]);
        onnx_made_clear(f);
    }
    /* Odd names stay apart and are the same wherever they occur. */
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "a", ONNX_F32, "s.1 s,1 unk__12");
    onnx_value(&f->p, 11, "b", ONNX_F32, "s.1 s,1 unk__12");
    onnx_plain(&f->p, "Add", "n", "a b", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, "? ? ?");
    onnx_end(&f->p);
    expect_graph(f);
    assert_int_equal(smg_size_symbol_count(f->graph->sizes), 3);
}

static void inputs_are_refused_with_a_reason(void **state) {
    fixture *f = *state;
    static const struct {
        int type;
        const char *dims;
        const char *part;
    } rows[] = {
        {ONNX_STRING, "3", "input 'x' holds strings"},
        {ONNX_F32, "0", "axis 0 of input 'x' is 0"},
        {ONNX_F32, "99999999999", "must be in [1, 2147483647]"},
        {ONNX_F32, "1 1 1 1 1 1 1 1 1", "has 9 axes"},
        {14, "3", "complex64"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        onnx_begin(&f->p, 18);
        onnx_value(&f->p, 11, "x", rows[i].type, rows[i].dims);
        onnx_value(&f->p, 12, "y", rows[i].type, rows[i].dims);
        onnx_plain(&f->p, "Identity", "n", "x", "y");
        onnx_end(&f->p);
        expect_failure(f, SMG_UNSUPPORTED, rows[i].part);
    }
    onnx_begin(&f->p, 18);
    pb_begin(&f->p, 11);
    pb_text(&f->p, 1, "x");
    pb_end(&f->p);
    onnx_value(&f->p, 12, "y", ONNX_F32, "3");
    onnx_plain(&f->p, "Identity", "n", "x", "y");
    onnx_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "input 'x' is not a tensor");
}

static void outputs_must_be_what_is_declared(void **state) {
    fixture *f = *state;
    static const struct {
        int type;
        const char *dims, *part;
    } rows[] = {
        {ONNX_F32, "4", "axis 0 of output 'y' is declared as 4 but is 3"},
        {ONNX_F32, "3 1", "declared with 2 axes but has 1"},
        {ONNX_I64, "3", "declared as int64 but is F32"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        onnx_begin(&f->p, 18);
        onnx_value(&f->p, 11, "x", ONNX_F32, "3");
        onnx_value(&f->p, 12, "y", rows[i].type, rows[i].dims);
        onnx_plain(&f->p, "Neg", "n", "x", "y");
        onnx_end(&f->p);
        expect_failure(f, SMG_FORMAT, rows[i].part);
    }
}

/* Contracted axes of different names are one size from then on, for all inputs. */
static void equalities_that_a_file_implies_are_kept(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "a", ONNX_F32, "m left");
    onnx_value(&f->p, 11, "b", ONNX_F32, "right n");
    onnx_value(&f->p, 11, "c", ONNX_F32, "right");
    onnx_plain(&f->p, "MatMul", "product", "a b", "y");
    onnx_plain(&f->p, "Neg", "other", "c", "z");
    onnx_value(&f->p, 12, "y", ONNX_F32, "m n");
    onnx_value(&f->p, 12, "z", ONNX_F32, "?");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "m n");
    expect_dims(f, 1, "left");
    assert_int_equal(smg_size_symbol_find(f->graph->sizes, "right"), -1);
}

static void add_of(fixture *f, const char *a, const char *b, const char *y) {
    onnx_made_clear(f);
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "a", ONNX_F32, a);
    onnx_value(&f->p, 11, "b", ONNX_F32, b);
    onnx_plain(&f->p, "Add", "sum", "a b", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, y);
    onnx_end(&f->p);
}

/* Extents that could be equal or 1 are equal: the run refuses others. */
static void broadcasts_say_what_symbols_are(void **state) {
    fixture *f = *state;
    add_of(f, "s 3", "t 3", "? 3");
    expect_graph(f);
    expect_dims(f, 0, "s 3");
    add_of(f, "t 3", "4 3", "4 3");
    expect_graph(f);
    expect_dims(f, 0, "4 3");
    /* total is past + new, whichever input comes first */
    onnx_made_clear(f);
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "past", ONNX_F32, "p");
    onnx_value(&f->p, 11, "new", ONNX_F32, "n");
    onnx_value(&f->p, 11, "mask", ONNX_F32, "total");
    onnx_node(&f->p, "Concat", "joined", "past new", "all");
    onnx_attr_int(&f->p, "axis", 0);
    pb_end(&f->p);
    onnx_plain(&f->p, "Add", "sum", "all mask", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, "?");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "p+n");
    assert_int_equal(smg_size_symbol_find(f->graph->sizes, "total"), -1);
}

/* Rows of 3 that are all of s, or all of s but its rest: then there is no rest. */
static void parts_of_a_size_make_it_a_multiple(void **state) {
    fixture *f = *state;
    static const int64_t three[] = {3}, all[] = {-1};
    static const char *const op[] = {"Div", "Mod"};
    for (int use = 0; use < 2; use++) {
        onnx_begin(&f->p, 18);
        onnx_value(&f->p, 11, "x", ONNX_F32, "s");
        onnx_value(&f->p, 12, "y", ONNX_F32, "?");
        onnx_tensor_i64(&f->p, 5, "three", "1", three, 1);
        onnx_tensor_i64(&f->p, 5, "all", "1", all, 1);
        onnx_plain(&f->p, "Shape", "n1", "x", "s");
        onnx_plain(&f->p, op[use], "n2", "s three", "parts");
        if (use == 1) onnx_plain(&f->p, "Sub", "n3", "s parts", "count");
        if (use == 0) {
            onnx_node(&f->p, "Concat", "n3", "parts three", "count");
            onnx_attr_int(&f->p, "axis", 0);
            pb_end(&f->p);
        }
        onnx_plain(&f->p, "Reshape", "n4", "x count", "rows");
        onnx_plain(&f->p, "Reshape", "n5", "rows all", "y");
        onnx_end(&f->p);
        expect_graph(f);
        expect_dims(f, 0, "3*s_over_3");
        assert_int_equal(smg_size_symbol_find(f->graph->sizes, "s"), -1);
        onnx_made_clear(f);
    }
    /* The extent that is left free is not 1. */
    static const int64_t rows[] = {0, -1, 32};
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "b s 4");
    onnx_value(&f->p, 12, "y", ONNX_F32, "? ? 32");
    onnx_tensor_i64(&f->p, 5, "rows", "3", rows, 3);
    onnx_plain(&f->p, "Reshape", "n", "x rows", "y");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "b s_over_8 32");
    onnx_made_clear(f);
    /* What both sides are multiples of says nothing: y has as many rows as x. */
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "b s 4");
    onnx_value(&f->p, 11, "z", ONNX_F32, "b t 4");
    onnx_value(&f->p, 12, "y", ONNX_F32, "? ? 4");
    onnx_plain(&f->p, "Shape", "n1", "x", "shape");
    onnx_plain(&f->p, "Reshape", "n2", "z shape", "y");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "b s 4");
}

/* What is left of a length is cut off by a quotient or a remainder, or padded: then every length will do. */
static void lengths_that_are_cut_or_padded_stay_free(void **state) {
    fixture *f = *state;
    static const int64_t two[] = {2}, zero[] = {0}, eight[] = {8}, parts[] = {-1, 8}, pairs[] = {-1, 2};
    for (int use = 0; use < 3; use++) {
        onnx_begin(&f->p, 18);
        onnx_value(&f->p, 11, "x", ONNX_F32, "s");
        onnx_value(&f->p, 12, "y", ONNX_F32, "? ?");
        onnx_tensor_i64(&f->p, 5, "zero", "1", zero, 1);
        onnx_tensor_i64(&f->p, 5, "by", "1", use == 2 ? eight : two, 1);
        onnx_tensor_i64(&f->p, 5, "shape", "2", use == 2 ? parts : pairs, 2);
        onnx_plain(&f->p, "Shape", "n1", "x", "s");
        onnx_plain(&f->p, use == 0 ? "Div" : "Mod", "n2", "s by", "of");
        if (use == 0) onnx_plain(&f->p, "Mul", "n3", "of by", "end");
        if (use == 1) onnx_plain(&f->p, "Sub", "n3", "s of", "end");
        if (use < 2) onnx_plain(&f->p, "Slice", "n4", "x zero end", "all");
        if (use == 2) {
            onnx_plain(&f->p, "Sub", "n3", "by of", "more");
            onnx_node(&f->p, "Concat", "n5", "zero more", "pads");
            onnx_attr_int(&f->p, "axis", 0);
            pb_end(&f->p);
            onnx_plain(&f->p, "Pad", "n4", "x pads", "all");
        }
        onnx_plain(&f->p, "Reshape", "n6", "all shape", "y");
        onnx_end(&f->p);
        expect_graph(f);
        expect_dims(f, 0, use == 2 ? "floor(s/8)+1 8" : "floor(s/2) 2");
        onnx_made_clear(f);
    }
}

/* The first n of 2n - 1, as scores by distance are shifted: n is at most that, being 1 at least. */
static void what_has_elements_is_long_enough(void **state) {
    fixture *f = *state;
    static const int64_t zero[] = {0}, one[] = {1}, end[] = {INT64_MAX};
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "s");
    onnx_value(&f->p, 12, "y", ONNX_F32, "?");
    onnx_tensor_i64(&f->p, 5, "zero", "1", zero, 1);
    onnx_tensor_i64(&f->p, 5, "one", "1", one, 1);
    onnx_tensor_i64(&f->p, 5, "end", "1", end, 1);
    onnx_plain(&f->p, "Slice", "n1", "x one end", "rows");
    onnx_plain(&f->p, "Slice", "n2", "rows one end", "others");
    onnx_node(&f->p, "Concat", "n3", "rows others", "both");
    onnx_attr_int(&f->p, "axis", 0);
    pb_end(&f->p);
    onnx_plain(&f->p, "Shape", "n4", "rows", "count");
    onnx_plain(&f->p, "Slice", "n5", "both zero count", "first");
    onnx_plain(&f->p, "Add", "n6", "rows first", "y");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "s-1");
}

/* The last s of t elements are s: not 1 of each, as many of both. */
static void symbols_are_the_same_before_they_are_one(void **state) {
    fixture *f = *state;
    static const int64_t end[] = {INT64_MAX};
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "s");
    onnx_value(&f->p, 11, "m", ONNX_F32, "t");
    onnx_value(&f->p, 12, "y", ONNX_F32, "?");
    onnx_tensor_i64(&f->p, 5, "end", "1", end, 1);
    onnx_plain(&f->p, "Shape", "n1", "x", "shape");
    onnx_plain(&f->p, "Neg", "n2", "shape", "from");
    onnx_plain(&f->p, "Slice", "n3", "m from end", "last");
    onnx_plain(&f->p, "Mul", "n4", "last x", "y");
    onnx_end(&f->p);
    expect_graph(f);
    expect_dims(f, 0, "s");
    assert_int_equal(smg_size_symbol_find(f->graph->sizes, "t"), -1);
}

static void equalities_that_say_nothing_are_refused(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "a", ONNX_F32, "s t");
    onnx_value(&f->p, 11, "b", ONNX_F32, "6");
    onnx_node(&f->p, "Flatten", "flat", "a", "row");
    onnx_attr_int(&f->p, "axis", 0);
    pb_end(&f->p);
    onnx_plain(&f->p, "Add", "sum", "row b", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, "1 6");
    onnx_end(&f->p);
    expect_failure(f, SMG_UNSUPPORTED, "node 'sum' (Add, opset 18): extents");
}

/* ---- values that follow from positions ------------------------------------------------------ */

static void ints(pb *p, const char *name, const char *dims, int count, int64_t a, int64_t b) {
    const int64_t values[] = {a, b};
    onnx_tensor_i64(p, 5, name, dims, values, count);
}

/* x[1:] = updates: indices that enumerate a box, whatever made them. */
static void assignments_to_boxes_are_choices(void **state) {
    fixture *f = *state;
    static const float two[] = {8, 9}, three[] = {7, 8, 9};
    begin_xy(&f->p, 18);
    ints(&f->p, "at", "2 1", 2, 1, 2);
    onnx_tensor_f32(&f->p, 5, "new", "2", two, 2);
    onnx_plain(&f->p, "ScatterND", "n", "x at new", "y");
    onnx_end(&f->p);
    expect_y(f, 1, 8, 9);
    /* Two axes, given as numbers on a plane. */
    static const int64_t pairs[] = {0, 1, 0, 2};
    begin_xy(&f->p, 18);
    ints(&f->p, "zero", "1", 1, 0, 0);
    onnx_tensor_i64(&f->p, 5, "at", "2 2", pairs, 4);
    onnx_tensor_f32(&f->p, 5, "new", "2", two, 2);
    onnx_plain(&f->p, "Unsqueeze", "n1", "x zero", "row");
    onnx_plain(&f->p, "ScatterND", "n2", "row at new", "changed");
    onnx_plain(&f->p, "Squeeze", "n3", "changed zero", "y");
    onnx_end(&f->p);
    expect_y(f, 1, 8, 9);
    /* The whole of a symbolic axis: nothing is left of x. */
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "s");
    onnx_value(&f->p, 12, "y", ONNX_F32, "s");
    ints(&f->p, "zero", "", 1, 0, 0);
    ints(&f->p, "one", "", 1, 1, 0);
    ints(&f->p, "last", "1", 1, -1, 0);
    onnx_plain(&f->p, "Shape", "n1", "x", "shape");
    onnx_plain(&f->p, "Squeeze", "n2", "shape", "s");
    onnx_plain(&f->p, "Range", "n3", "zero s one", "r");
    onnx_plain(&f->p, "Unsqueeze", "n4", "r last", "at");
    onnx_plain(&f->p, "Neg", "n5", "x", "new");
    onnx_plain(&f->p, "ScatterND", "n6", "x at new", "y");
    onnx_end(&f->p);
    expect_y(f, -1, 2, -3);
    /* Every second element is no box; neither is an order that data decides: every place is asked then. */
    begin_xy(&f->p, 18);
    ints(&f->p, "at", "2 1", 2, 0, 2);
    onnx_tensor_f32(&f->p, 5, "new", "2", two, 2);
    onnx_plain(&f->p, "ScatterND", "n", "x at new", "y");
    onnx_end(&f->p);
    expect_y(f, 8, -2, 9);
    begin_xy(&f->p, 18);
    onnx_value(&f->p, 11, "at", ONNX_I64, "3 1");
    onnx_tensor_f32(&f->p, 5, "new", "3", three, 3);
    onnx_plain(&f->p, "ScatterND", "n", "x at new", "y");
    onnx_end(&f->p);
    expect_graph(f);
}

/* The last element of a range of unknown length is a size: it can shape a tensor. */
static void elements_of_ranges_are_sizes(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    onnx_value(&f->p, 11, "x", ONNX_F32, "s");
    onnx_value(&f->p, 12, "y", ONNX_F32, "?");
    ints(&f->p, "zero", "", 1, 0, 0);
    ints(&f->p, "one", "1", 1, 1, 0);
    ints(&f->p, "step", "", 1, 1, 0);
    ints(&f->p, "last", "1", 1, -1, 0);
    onnx_plain(&f->p, "Shape", "n1", "x", "shape");
    onnx_plain(&f->p, "Squeeze", "n2", "shape", "s");
    onnx_plain(&f->p, "Range", "n3", "zero s step", "r");
    onnx_plain(&f->p, "Gather", "n4", "r last", "end");
    onnx_plain(&f->p, "Add", "n5", "end one", "count");
    onnx_plain(&f->p, "Reshape", "n6", "x count", "y");
    onnx_end(&f->p);
    expect_y(f, 1, -2, 3);
}

/* Pieces of x by number, and back together in another order. */
static void sequences_are_lists_of_values(void **state) {
    fixture *f = *state;
    for (int use = 0; use < 3; use++) {
        begin_xy(&f->p, 18);
        ints(&f->p, "two", "", 1, 2, 0);
        ints(&f->p, "first", "", 1, 0, 0);
        ints(&f->p, "last", "", 1, -1, 0);
        ints(&f->p, "past", "", 1, 2, 0);
        onnx_plain(&f->p, "SplitToSequence", "n1", "x two", "list");
        onnx_plain(&f->p, "SequenceAt", "n2", "list first", "head");
        onnx_plain(&f->p, "SequenceAt", "n3", use == 1 ? "list past" : "list last", "tail");
        onnx_plain(&f->p, "SequenceConstruct", "n4", "tail head", "turned");
        if (use == 2) onnx_plain(&f->p, "Neg", "n5", "turned", "y");
        if (use != 2) {
            onnx_node(&f->p, "ConcatFromSequence", "n5", "turned", "y");
            onnx_attr_int(&f->p, "axis", 0);
            pb_end(&f->p);
        }
        onnx_end(&f->p);
        if (use == 0) expect_y(f, 3, 1, -2);
        if (use == 1) expect_failure(f, SMG_INVALID, "item 2 of a sequence of 2");
        if (use == 2) expect_failure(f, SMG_UNSUPPORTED, "input 0 ('turned') is a sequence");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sequences_are_lists_of_values, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(assignments_to_boxes_are_choices, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(elements_of_ranges_are_sizes, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(nodes_may_come_in_any_order, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(cycles_are_refused, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(names_are_made_once, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(values_must_come_from_somewhere, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(a_default_of_an_input_is_a_constant, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(dead_nodes_are_left_out, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(all_unsupported_operators_are_listed, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(inputs_of_nodes_are_counted, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(constants_have_many_forms, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(branches_fold, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(functions_are_expanded, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(functions_that_call_themselves_end, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(sizes_have_the_names_of_the_file, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(inputs_are_refused_with_a_reason, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(outputs_must_be_what_is_declared, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(equalities_that_a_file_implies_are_kept, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(broadcasts_say_what_symbols_are, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(parts_of_a_size_make_it_a_multiple, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(lengths_that_are_cut_or_padded_stay_free, onnx_made_set_up,
                                        onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(what_has_elements_is_long_enough, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(symbols_are_the_same_before_they_are_one, onnx_made_set_up,
                                        onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(equalities_that_say_nothing_are_refused, onnx_made_set_up, onnx_made_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
