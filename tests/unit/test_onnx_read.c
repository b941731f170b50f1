/* Reading ONNX files: element types in every place where elements may be, external data, and bytes that
 * are no sound file. Files are made byte by byte. */
#define _XOPEN_SOURCE 700 /* symlink */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/onnx_made.h"
#include "support/output.h"

typedef onnx_made fixture;

/* The output "y" of a model without inputs. */
static void expect_values(fixture *f, const double *want, int count) {
    smg_arena *arena = NULL;
    smg_array out;
    onnx_made_expect_ok(f, smg_arena_create(f->ctx, &arena));
    onnx_made_expect_ok(f, smg_graph_eval(f->graph, NULL, NULL, arena, &out));
    assert_int_equal(smg_array_elements(&out), count);
    for (int i = 0; i < count; i++)
        if (!(out.data[i] == want[i] || (isnan(out.data[i]) && isnan(want[i]))))
            fail_msg("element %d is %.17g, must be %.17g", i, out.data[i], want[i]);
    smg_arena_destroy(arena);
}

/* ---- element types -------------------------------------------------------------------------- */

typedef struct kind {
    const char *what;
    int type, field; /* field 9: raw */
    const char *bytes;
    size_t byte_count;
    int count;
    double want[6];
} kind;
#define BYTES(text) text, sizeof(text) - 1

/* Little-endian whatever the machine is. */
static const kind kinds[] = {
    {"f32 raw", ONNX_F32, 9, BYTES("\0\0\x80\x3f\0\0\0\xc0\1\0\0\0\0\0\x80\x7f"), 4, {1, -2, 0x1p-149, INFINITY}},
    {"f32 typed", ONNX_F32, 4, BYTES("\0\0\x80\x3f\0\0\xc0\x7f"), 2, {1, NAN}},
    {"f16 raw", ONNX_F16, 9, BYTES("\0\x3c\1\0\xff\x83\0\xfc"), 4, {1, 0x1p-24, -0x3ffp-24, -INFINITY}},
    {"f16 typed", ONNX_F16, 5, BYTES("\x80\x78\1\x80\x80\x02"), 3, {1, 0x1p-24, -0.0}},
    {"bf16 raw", ONNX_BF16, 9, BYTES("\x80\x3f\1\0"), 2, {1, 0x1p-133}},
    {"bf16 typed", ONNX_BF16, 5, BYTES("\x80\x7f\1"), 2, {1, 0x1p-133}},
    {"f64 raw", ONNX_F64, 9, BYTES("\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\x80"), 2, {1.5, -0.0}},
    {"f64 typed", ONNX_F64, 10, BYTES("\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\xf0\x3f"), 2, {1.5, 1}},
    {"i64 raw", ONNX_I64, 9, BYTES("\x05\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff"), 2, {5, -2}},
    {"i64 typed", ONNX_I64, 7, BYTES("\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x80\1"), 3, {5, -1, 128}},
    {"i32 raw", ONNX_I32, 9, BYTES("\x07\0\0\0\0\0\0\x80"), 2, {7, -2147483648.0}},
    {"i32 typed", ONNX_I32, 5, BYTES("\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x09"), 3, {7, -1, 9}},
    {"i8 raw", ONNX_I8, 9, BYTES("\x07\x80\xff"), 3, {7, -128, -1}},
    {"u8 raw", ONNX_U8, 9, BYTES("\x07\x80\xff"), 3, {7, 128, 255}},
    {"u8 typed", ONNX_U8, 5, BYTES("\x07\xff\1\x02"), 3, {7, 255, 2}},
    {"bool raw", ONNX_BOOL, 9, BYTES("\1\0\1"), 3, {1, 0, 1}},
    {"bool typed", ONNX_BOOL, 5, BYTES("\1\0\0\1"), 4, {1, 0, 0, 1}},
    {"one f32", ONNX_F32, 9, BYTES("\0\0\0\x40"), 1, {2}},
    {"one i64", ONNX_I64, 7, BYTES("\x2a"), 1, {42}},
};

static void made_tensor(fixture *f, const kind *k, bool in_constant) {
    char dims[16];
    snprintf(dims, sizeof dims, "%d", k->count);
    onnx_begin(&f->p, 18);
    if (in_constant) {
        onnx_node(&f->p, "Constant", "c", "", "y");
        pb_begin(&f->p, 5);
        pb_text(&f->p, 1, "value");
        pb_int(&f->p, 20, 4);
        onnx_tensor(&f->p, 5, "", k->type, dims);
    } else {
        onnx_tensor(&f->p, 5, "w", k->type, dims);
    }
    pb_bytes(&f->p, k->field, k->bytes, k->byte_count);
    for (int i = 0; i < (in_constant ? 3 : 1); i++) pb_end(&f->p);
    if (!in_constant) onnx_plain(&f->p, "Identity", "i", "w", "y");
    onnx_value(&f->p, 12, "y", k->type, dims);
    onnx_end(&f->p);
}

static void every_type_is_read(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < 2 * SMG_COUNT_OF(kinds); i++) {
        const kind *k = &kinds[i / 2];
        made_tensor(f, k, i % 2 == 1);
        smg_status status = onnx_made_convert(f, NULL);
        if (status != SMG_OK) fail_msg("%s: %s", k->what, smg_context_error(f->ctx));
        expect_values(f, k->want, k->count);
        onnx_made_clear(f);
    }
}

/* f32, f16 and bf16 weights stay in the caller's bytes. */
static void weights_are_not_copied(void **state) {
    fixture *f = *state;
    static const int borrowed[] = {0, 1, 2, 4};
    for (size_t i = 0; i < SMG_COUNT_OF(borrowed); i++) {
        bool found = false;
        made_tensor(f, &kinds[borrowed[i]], false);
        onnx_made_expect_ok(f, onnx_made_convert(f, NULL));
        for (int id = 0; id < f->graph->nodes.count; id++) {
            const uint8_t *data = f->graph->nodes.items[id].data;
            found = found || (data >= f->p.data && data < f->p.data + f->p.size);
        }
        assert_true(found);
        onnx_made_clear(f);
    }
}

/* ---- tensors that are wrong ----------------------------------------------------------------- */

typedef struct wrong {
    int type, field;
    const char *dims, *bytes;
    size_t byte_count;
    smg_status status;
    const char *part;
} wrong;

static const wrong wrongs[] = {
    {ONNX_F32, 9, "3", BYTES("\0\0\0\0"), SMG_FORMAT, "holds 4 bytes, its shape needs 12"},
    {ONNX_F32, 9, "0", BYTES("\0\0\0\0"), SMG_FORMAT, "holds 4 bytes, its shape needs 0"},
    {ONNX_F32, 7, "1", BYTES("\1"), SMG_FORMAT, "field 7"},
    {ONNX_I64, 7, "2", BYTES("\1"), SMG_FORMAT, "its shape needs 2"},
    {ONNX_I64, 7, "1", BYTES("\1\2"), SMG_FORMAT, "more than"},
    {ONNX_I64, 7, "1", BYTES("\x80"), SMG_FORMAT, "is cut off"},
    {ONNX_I8, 5, "1", BYTES("\x80\x80\4"), SMG_FORMAT, "does not fit I8"},
    {ONNX_F32, 9, "-1", BYTES(""), SMG_FORMAT, "axis 0 of tensor 'w' is -1"},
    {ONNX_F32, 9, "4611686018427387904 4", BYTES(""), SMG_FORMAT, "too many elements"},
    {ONNX_F32, 9, "4611686018427387904", BYTES(""), SMG_FORMAT, "too many elements"},
    {ONNX_F32, 9, "1 1 1 1 1 1 1 1 1", BYTES("\0\0\0\0"), SMG_UNSUPPORTED, "9 axes"},
    {ONNX_STRING, 6, "1", BYTES("text"), SMG_UNSUPPORTED, "strings (type 8)"},
    {13, 11, "1", BYTES("\1"), SMG_UNSUPPORTED, "uint64"},
    {77, 9, "1", BYTES("\1"), SMG_UNSUPPORTED, "type 77"},
    {ONNX_I64, 7, "2", BYTES("\x01\x80\x80\x80\x80\x80\x01"), SMG_UNSUPPORTED, "outside 32 bits"},
};

static void wrong_tensors_are_named(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(wrongs); i++) {
        const wrong *w = &wrongs[i];
        onnx_begin(&f->p, 18);
        onnx_tensor(&f->p, 5, "w", w->type, w->dims);
        pb_bytes(&f->p, w->field, w->bytes, w->byte_count);
        pb_end(&f->p);
        onnx_plain(&f->p, "Identity", "i", "w", "y");
        onnx_value(&f->p, 12, "y", w->type, "?");
        onnx_end(&f->p);
        onnx_made_expect_failure(f, onnx_made_convert(f, NULL), w->status, w->part);
    }
}

static void elements_in_pieces_are_refused(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    onnx_tensor(&f->p, 5, "w", ONNX_F32, "2");
    pb_bytes(&f->p, 4, "\0\0\0\0", 4);
    pb_bytes(&f->p, 4, "\0\0\0\0", 4);
    pb_end(&f->p);
    onnx_end(&f->p);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_UNSUPPORTED, "second piece");
    onnx_begin(&f->p, 18);
    onnx_tensor(&f->p, 5, "w", ONNX_F32, "1");
    pb_float(&f->p, 4, 1);
    pb_end(&f->p);
    onnx_end(&f->p);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_UNSUPPORTED, "not packed");
}

/* A file cannot say where in itself the elements are: those fields are the reader's own. */
static void a_file_has_no_say_in_places(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    onnx_tensor(&f->p, 5, "w", ONNX_F32, "4");
    pb_int(&f->p, 2001, 9);
    pb_int(&f->p, 2002, 0);
    pb_int(&f->p, 2003, 16);
    pb_end(&f->p);
    onnx_plain(&f->p, "Identity", "i", "w", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, "4");
    onnx_end(&f->p);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_FORMAT, "holds 0 elements, its shape needs 4");
}

/* ---- external data -------------------------------------------------------------------------- */

static const char *folder(char *room, size_t bytes) {
    mkdir(test_output(room, bytes, "onnx_external"), 0777);
    return room;
}

static void write_file(fixture *f, const char *where, const char *name, const void *data, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", where, name);
    onnx_made_expect_ok(f, smg_file_write_atomic(f->ctx, path, data, size));
}

static void entry(pb *p, const char *key, const char *value) {
    pb_begin(p, 13);
    pb_text(p, 1, key);
    pb_text(p, 2, value);
    pb_end(p);
}

static void made_external(fixture *f, const char *location, const char *offset, const char *length) {
    onnx_begin(&f->p, 18);
    onnx_tensor(&f->p, 5, "w", ONNX_F32, "2");
    if (location) entry(&f->p, "location", location);
    if (offset) entry(&f->p, "offset", offset);
    if (length) entry(&f->p, "length", length);
    pb_int(&f->p, 14, 1);
    pb_end(&f->p);
    onnx_plain(&f->p, "Identity", "i", "w", "y");
    onnx_value(&f->p, 12, "y", ONNX_F32, "2");
    onnx_end(&f->p);
}

static void external_data_is_mapped(void **state) {
    fixture *f = *state;
    char room[256];
    static const char data[] = "abc\0\0\x80\x3f\0\0\0\x40";
    const double want[] = {1, 2};
    const char *where = folder(room, sizeof room);
    write_file(f, where, "w.data", data, sizeof data - 1);
    made_external(f, "w.data", "3", "8");
    onnx_made_expect_ok(f, onnx_made_convert(f, where));
    expect_values(f, want, 2);
    onnx_made_clear(f);
    made_external(f, "./w.data", "3", NULL);
    onnx_made_expect_ok(f, onnx_made_convert(f, where));
    onnx_made_clear(f);
    /* Through a path: the folder is the file's. */
    char path[512];
    made_external(f, "w.data", "3", "8");
    write_file(f, where, "model.onnx", f->p.data, f->p.size);
    snprintf(path, sizeof path, "%s/model.onnx", where);
    onnx_made_expect_ok(f, smg_onnx_open(f->ctx, path, &f->model));
    onnx_made_expect_ok(f, smg_onnx_make_graph(f->model, &f->graph));
    expect_values(f, want, 2);
}

typedef struct astray {
    const char *location, *offset, *length;
    smg_status status;
    const char *part;
} astray;

static void external_data_stays_in_the_folder(void **state) {
    fixture *f = *state;
    char room[256], path[512], outside[512];
    const char *where = folder(room, sizeof room);
    static const astray rows[] = {
        {"none.data", NULL, NULL, SMG_NOT_FOUND, "none.data"},
        {"../w.data", NULL, NULL, SMG_INVALID, "not inside the model's folder"},
        {"sub/../../w.data", NULL, NULL, SMG_INVALID, "not inside the model's folder"},
        {"/etc/passwd", NULL, NULL, SMG_INVALID, "not inside the model's folder"},
        {"link.data", NULL, NULL, SMG_INVALID, "not inside the model's folder"},
        {"w.data", "4", NULL, SMG_FORMAT, "bytes 4 to 12 of 'w.data', which has 11"},
        {"w.data", "9223372036854775807", NULL, SMG_FORMAT, "which has 11"},
        {"w.data", "99999999999999999999", NULL, SMG_FORMAT, "not a number"},
        {"w.data", "-1", NULL, SMG_FORMAT, "not a number"},
        {"w.data", "0", "12", SMG_FORMAT, "takes 8 bytes, its entry in 'w.data' has 12"},
        {".", NULL, NULL, SMG_INVALID, "not inside the model's folder"},
        {NULL, NULL, NULL, SMG_FORMAT, "names no file"},
    };
    write_file(f, where, "w.data", "abc\0\0\x80\x3f\0\0\0\x40", 11);
    snprintf(outside, sizeof outside, "%s/../outside.data", where);
    onnx_made_expect_ok(f, smg_file_write_atomic(f->ctx, outside, "12345678", 8));
    snprintf(path, sizeof path, "%s/link.data", where);
    unlink(path);
    assert_int_equal(symlink("../outside.data", path), 0);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        made_external(f, rows[i].location, rows[i].offset, rows[i].length);
        onnx_made_expect_failure(f, onnx_made_convert(f, where), rows[i].status, rows[i].part);
    }
    made_external(f, "w.data", NULL, NULL);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_UNSUPPORTED, "without a folder");
}

/* ---- bytes that are no sound file ----------------------------------------------------------- */

static void made_whole(pb *p) {
    static const float weights[] = {1, 2, 3, 4, 5, 6};
    onnx_begin(p, 18);
    onnx_value(p, 11, "x", ONNX_F32, "batch 2");
    onnx_tensor_f32(p, 5, "w", "2 3", weights, 6);
    onnx_plain(p, "MatMul", "product", "x w", "h");
    onnx_plain(p, "Relu", "act", "h", "y");
    onnx_value(p, 12, "y", ONNX_F32, "batch 3");
    onnx_end(p);
}

static void every_prefix_gives_a_status(void **state) {
    fixture *f = *state;
    pb whole = {0};
    made_whole(&whole);
    for (size_t size = 0; size < whole.size; size++) {
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, whole.data, size);
        smg_onnx *model = NULL;
        smg_graph *graph = NULL;
        smg_status status = smg_onnx_open_bytes(f->ctx, "cut", copy, size, NULL, &model);
        if (status == SMG_OK) status = smg_onnx_make_graph(model, &graph);
        assert_int_not_equal(status, SMG_OK);
        assert_int_not_equal(status, SMG_INTERNAL);
        assert_true(smg_context_error(f->ctx)[0] != '\0');
        smg_onnx_close(model);
        smg_context_clear_error(f->ctx);
        free(copy);
    }
    pb_free(&whole);
}

static void other_bytes_are_refused(void **state) {
    fixture *f = *state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *part;
    } rows[] = {
        {BYTES(""), "holds no ONNX graph (0 bytes)"},
        {BYTES("graph g\nx = input f32[2]\n"), "not a sound ONNX file"},
        {BYTES("\x08\x08"), "holds no ONNX graph"},
        {BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), "more than ten bytes"},
        {BYTES("\x3a\x05\x0a"), "a length leads past the end"},
        {BYTES("\x3b"), "unknown wire type"},
        {BYTES("\x38\x01"), "wrong wire type"},
        {BYTES("\x00\x01"), "no number"},
        {BYTES("\x0a\x01\x41\x3a\x00"), "another type than ONNX gives it"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        pb_raw(&f->p, rows[i].bytes, rows[i].count);
        onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_FORMAT, rows[i].part);
    }
}

/* An If in an If in an If: as deep as the file likes, but not as deep as the stack. */
static void nesting_is_bounded(void **state) {
    fixture *f = *state;
    onnx_begin(&f->p, 18);
    for (int i = 0; i < 70; i++) {
        onnx_node(&f->p, "If", "deep", "c", "y");
        pb_begin(&f->p, 5);
        pb_text(&f->p, 1, "then_branch");
        pb_begin(&f->p, 6);
    }
    for (int i = 0; i < 3 * 70; i++) pb_end(&f->p);
    onnx_end(&f->p);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_FORMAT, "nested more than 64 deep");
}

static void opsets_have_limits(void **state) {
    fixture *f = *state;
    static const int versions[] = {1, 10, 24, 1000000};
    for (size_t i = 0; i < SMG_COUNT_OF(versions); i++) {
        onnx_begin(&f->p, versions[i]);
        onnx_end(&f->p);
        onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_UNSUPPORTED, "smg reads 11 to 23");
    }
    pb_begin(&f->p, 7);
    pb_end(&f->p);
    onnx_made_expect_failure(f, onnx_made_convert(f, NULL), SMG_FORMAT, "does not say which opset");
    for (int version = 11; version <= 23; version++) {
        onnx_begin(&f->p, version);
        onnx_value(&f->p, 11, "x", ONNX_F32, "2");
        onnx_plain(&f->p, "Identity", "i", "x", "y");
        onnx_value(&f->p, 12, "y", ONNX_F32, "2");
        onnx_end(&f->p);
        onnx_made_expect_ok(f, onnx_made_convert(f, NULL));
        onnx_made_clear(f);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static smg_status whole_life(smg_context *ctx, void *user) {
    const pb *p = user;
    smg_onnx *model = NULL;
    smg_graph *graph = NULL;
    smg_status status = smg_onnx_open_bytes(ctx, "made", p->data, p->size, NULL, &model);
    if (status == SMG_OK) status = smg_onnx_make_graph(model, &graph);
    assert_true((status == SMG_OK) == (graph != NULL));
    smg_graph_destroy(graph);
    smg_onnx_close(model);
    return status;
}

/* Branches, functions, shapes and indices as well: the sound files of the fuzz corpus. */
static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"branch", "function", "shape", "slice", "types", "sequence", "scatter"};
    const fault_sweep sweep = {.body = whole_life, .user = &f->p, .stride = 1};
    made_whole(&f->p);
    assert_true(fault_every_allocation(&sweep) > 10);
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        char path[128], *data = NULL;
        size_t size = 0;
        pb_free(&f->p);
        snprintf(path, sizeof path, "tests/fuzz/corpus/onnx/%s", names[i]);
        onnx_made_expect_ok(f, smg_file_read(f->ctx, path, &data, &size));
        pb_raw(&f->p, data, size);
        smg_free(f->ctx, data, size + 1);
        assert_true(fault_every_allocation(&sweep) > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_type_is_read, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(weights_are_not_copied, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(wrong_tensors_are_named, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(elements_in_pieces_are_refused, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(a_file_has_no_say_in_places, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(external_data_is_mapped, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(external_data_stays_in_the_folder, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(every_prefix_gives_a_status, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(other_bytes_are_refused, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(nesting_is_bounded, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(opsets_have_limits, onnx_made_set_up, onnx_made_tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, onnx_made_set_up, onnx_made_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
