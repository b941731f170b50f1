/* Weights in the order of their products: which operands get a copy, that the graph's value stays, and that plans of
 * the result (the copies in the prepare list) give that value through the kernel interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "rewrite/rewrite.h"
#include "support/check_plan.h"

#define PLENTY (INT64_C(1) << 40)

static const int64_t symbols[1] = {5};

typedef struct stored {
    smg_context *ctx;
    smg_graph *g;
    int copies, along;
} stored;

static stored store_by(const char *text, const smg_store_options *options) {
    stored s = {0};
    assert_int_equal(smg_context_create(NULL, &s.ctx), SMG_OK);
    if (smg_graph_parse(s.ctx, text, strlen(text), "text", &s.g) != SMG_OK) fail_msg("%s", smg_context_error(s.ctx));
    assert_int_equal(smg_rewrite_store_weights(s.g, options, &s.copies, &s.along), SMG_OK);
    return s;
}

/* few: results up to which a product reads its operand along what it contracts. */
static stored store_for(const char *text, int64_t limit, int64_t twice, int64_t few) {
    const smg_store_options options = {.limit = limit, .twice = twice, .few = few, .nominal = symbols};
    return store_by(text, &options);
}

static stored store_as(const char *text, smg_type type) {
    const smg_store_options options = {.limit = PLENTY, .stored = type, .nominal = symbols};
    return store_by(text, &options);
}

static stored store(const char *text, int64_t limit, int64_t twice) {
    return store_for(text, limit, twice, 0);
}

static void drop(stored *s) {
    smg_graph_destroy(s->g);
    smg_context_destroy(s->ctx);
}

static const smg_node *find(const stored *s, const char *name) {
    for (smg_node_id id = 0; id < s->g->nodes.count; id++) {
        if (strcmp(s->g->nodes.items[id].name, name) == 0) return &s->g->nodes.items[id];
    }
    fail_msg("there is no %s", name);
    return NULL;
}

/* The value of the edited graph is that of the text, and its plan's kernels give it too. */
static void expect_same_value(const char *text, stored *s, int prepare) {
    static const char *const targets[] = {"h200", "lavapipe", "tests/targets/shared16k_inv128.target"};
    smg_graph *before;
    smg_arena *arena;
    smg_array x = {.type = SMG_TYPE_F32, .rank = 2, .dims = {5, 24}}, was[4], is[4];
    double data[5 * 24];
    for (int i = 0; i < 5 * 24; i++) data[i] = (double)(i * 37 % 101) / 101 - 0.5;
    x.data = data;
    assert_int_equal(smg_arena_create(s->ctx, &arena), SMG_OK);
    assert_int_equal(smg_graph_parse(s->ctx, text, strlen(text), "text", &before), SMG_OK);
    assert_int_equal(smg_graph_eval(before, symbols, &x, arena, was), SMG_OK);
    assert_int_equal(smg_graph_eval(s->g, symbols, &x, arena, is), SMG_OK);
    for (int64_t i = 0; i < smg_array_elements(&was[0]); i++) {
        assert_true(fabs(was[0].data[i] - is[0].data[i]) <= 1e-12 * (1 + fabs(was[0].data[i])));
    }
    for (size_t t = 0; t < SMG_COUNT_OF(targets); t++) {
        for (int unfused = 0; unfused <= 1; unfused++) {
            check_options o = {
                .target = targets[t], .symbols = symbols, .tolerance = 2e-5, .int_limit = 30, .plan.unfused = unfused};
            check_result r;
            if (check_plan(s->ctx, s->g, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(s->ctx));
            assert_int_equal(r.prepare, prepare);
            assert_true(r.pass);
        }
    }
    smg_graph_destroy(before);
    smg_arena_destroy(arena);
}

#define HEAD "graph g\ndim n max 100\nx = input f32[n, 24]\n"

static void a_linear_layer(void **state) {
    (void)state;
    static const char text[] = HEAD "w = constant f32[40, 24] random seed=1\n"
                                    "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    stored s = store(text, PLENTY, 0);
    assert_int_equal(s.copies, 1);
    assert_string_equal(find(&s, "y")->label[1], "io");
    assert_int_equal(find(&s, "w/stored")->op, SMG_OP_COPY);
    expect_same_value(text, &s, 1);
    drop(&s);
    s = store(text, 40 * 24 * 4 - 1, 0); /* too large for one binding */
    assert_int_equal(s.copies, 0);
    drop(&s);
}

static void what_lies_right_is_left_alone(void **state) {
    (void)state;
    static const char *const texts[] = {
        HEAD "w = constant f32[24, 40] random seed=1\ny = contract(x, w) \"ni,io->no\"\noutput y = y\n",
        /* a transposed file order */
        HEAD "w = constant f32[24, 40] random seed=1\nt = transpose(w) perm=[1, 0]\n"
             "y = contract(x, t) \"ni,oi->no\"\noutput y = y\n",
        /* the last axis of the result is the input's */
        HEAD "w = constant f32[40, 24] random seed=1\ny = contract(w, x) \"oi,ni->on\"\noutput y = y\n",
        /* no constant */
        HEAD "w = input f32[40, 24]\ny = contract(x, w) \"ni,oi->no\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = store(texts[i], PLENTY, PLENTY);
        assert_int_equal(s.copies, 0);
        drop(&s);
    }
}

static void views_and_slices(void **state) {
    (void)state;
    static const char heads[] = HEAD "w = constant f32[48, 24] random seed=1\n"
                                     "h = reshape(w) : f32[4, 12, 24]\n"
                                     "y = contract(x, h) \"ni,hdi->nhd\"\noutput y = y\n";
    stored s = store(heads, PLENTY, 0);
    assert_int_equal(s.copies, 1);
    assert_string_equal(find(&s, "y")->label[1], "ihd");
    expect_same_value(heads, &s, 1);
    drop(&s);
    static const char slices[] = HEAD "w = constant f32[48, 24] random seed=1\n"
                                      "a = slice(w) axis=0 begin=0 count=16\n"
                                      "b = slice(w) axis=0 begin=16 count=32\n"
                                      "p = contract(x, a) \"ni,oi->no\"\n"
                                      "q = contract(x, b) \"ni,oi->no\"\n"
                                      "s = sum(p) axis=1 keep\ny = add(q, s)\noutput y = y\n";
    s = store(slices, PLENTY, 0);
    assert_int_equal(s.copies, 2);
    expect_same_value(slices, &s, 2);
    drop(&s);
}

static void one_copy_for_two_readers(void **state) {
    (void)state;
    static const char text[] = HEAD "w = constant f32[24, 24] random seed=1\n"
                                    "p = contract(x, w) \"ni,oi->no\"\n"
                                    "y = contract(p, w) \"ni,oi->no\"\noutput y = y\n";
    stored s = store(text, PLENTY, 0);
    assert_int_equal(s.copies, 1);
    expect_same_value(text, &s, 1);
    drop(&s);
}

/* A table that rows are also gathered from stays; a copy beside it takes room that has to be there. */
static void a_tied_table(void **state) {
    (void)state;
    static const char text[] = HEAD "ids = input i32[n]\n"
                                    "w = constant f32[30, 24] random seed=1\n"
                                    "e = gather(w, ids)\nh = add(x, e)\n"
                                    "y = contract(h, w) \"ni,oi->no\"\noutput y = y\n";
    stored s = store(text, PLENTY, 30 * 24 * 4 - 1);
    assert_int_equal(s.copies, 0);
    drop(&s);
    s = store(text, PLENTY, 30 * 24 * 4);
    assert_int_equal(s.copies, 1);
    drop(&s);
    for (int room = 0; room <= 1; room++) { /* half as much in 16 bits */
        const smg_store_options options = {
            .limit = PLENTY, .twice = 30 * 24 * 2 - 1 + room, .stored = SMG_TYPE_F16, .nominal = symbols};
        s = store_by(text, &options);
        assert_int_equal(s.copies, room);
        drop(&s);
    }
}

/* The narrow tensor is copied and still widened by its reader: no byte more is stored or read. */
static void half_precision_stays_narrow(void **state) {
    (void)state;
    static const char *const types[] = {"f16", "bf16"};
    for (size_t i = 0; i < SMG_COUNT_OF(types); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 HEAD "h = constant %s[40, 24] random seed=1\n"
                      "w = cast(h) : f32[40, 24]\n"
                      "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n",
                 types[i]);
        stored s = store(text, PLENTY, 0);
        assert_int_equal(s.copies, 1);
        assert_string_equal(smg_type_word(find(&s, "h/stored")->type), types[i]);
        assert_int_equal(s.g->nodes.items[find(&s, "y")->operand[1]].op, SMG_OP_CAST);
        drop(&s);
    }
}

/* What memory has in a third type is copied behind its conversion: products read the copy, whatever the file has. */
static void another_type_is_copied_as_it_is_stored(void **state) {
    (void)state;
    static const char text[] = HEAD "h = constant bf16[40, 24] random seed=1\nw = cast(h) : f32[40, 24]\n"
                                    "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const struct {
        smg_type stored;
        const char *copy;
        smg_type copied;
    } cases[] = {{SMG_TYPE_F16, "w/stored", SMG_TYPE_F32},
                 {SMG_TYPE_BF16, "h/stored", SMG_TYPE_BF16},
                 {SMG_TYPE_F32, "h/stored", SMG_TYPE_BF16}};
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        stored s = store_as(text, cases[i].stored);
        assert_int_equal(s.copies, 1);
        assert_int_equal(find(&s, cases[i].copy)->type, cases[i].copied);
        bool behind = s.g->nodes.items[find(&s, "y")->operand[1]].op == SMG_OP_COPY;
        assert_int_equal(behind, cases[i].copied == SMG_TYPE_F32);
        drop(&s);
    }
}

/* A product of few results reads its operand along what it contracts. */
static void few_results_go_along(void **state) {
    (void)state;
    static const char lies[] = HEAD "w = constant f32[40, 24] random seed=1\n"
                                    "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const char lies_across[] = HEAD "w = constant f32[24, 40] random seed=1\n"
                                           "y = contract(x, w) \"ni,io->no\"\noutput y = y\n";
    stored s = store_for(lies, PLENTY, 0, 5 * 40);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
    s = store_for(lies, PLENTY, 0, 5 * 40 - 1);
    assert_int_equal(s.copies, 1);
    drop(&s);
    s = store_for(lies_across, PLENTY, 0, 5 * 40);
    assert_int_equal(s.copies, 0);
    assert_int_equal(s.along, 1);
    assert_string_equal(find(&s, "y")->label[1], "oi");
    expect_same_value(lies_across, &s, 1);
    drop(&s);
    s = store_for(lies_across, PLENTY, 0, 5 * 40 - 1);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
    static const char one_row[] = "graph t\nx = input f32[1, 24]\nw = constant f32[40, 24] random seed=1\n"
                                  "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    s = store_for(one_row, PLENTY, 0, PLENTY);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
}

#define WINDOWS                                                                                                        \
    HEAD "c = reshape(x) : f32[n, 4, 6]\n"                                                                             \
         "v = window(c) axis=2 begin=-1 step=1 dilation=1 fill=0 : f32[n, 4, 6, 3]\n"

/* A kernel of windows has the place in the window innermost, a step of a loop. Slices go along the channels. */
static void kernels_of_windows_lie_along_channels(void **state) {
    (void)state;
    static const char text[] = WINDOWS "w = constant f32[8, 4, 3] random seed=1\n"
                                       "y = contract(v, w) \"ncxj,ocj->nox\"\noutput y = y\n";
    static const struct {
        int64_t few;
        const char *label;
    } cases[] = {{0, "jco"}, {PLENTY, "ojc"}};
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        stored s = store_for(text, PLENTY, 0, cases[i].few);
        assert_int_equal(s.copies + s.along, 1);
        assert_string_equal(find(&s, "y")->label[1], cases[i].label);
        expect_same_value(text, &s, 1);
        drop(&s);
    }
    static const char *const lie[] = {
        WINDOWS "w = constant f32[8, 3, 4] random seed=1\ny = contract(v, w) \"ncxj,ojc->nox\"\noutput y = y\n",
        WINDOWS "w = constant f32[3, 4, 8] random seed=1\ny = contract(v, w) \"ncxj,jco->nox\"\noutput y = y\n",
        /* for each channel by itself */
        WINDOWS "w = constant f32[4, 3] random seed=1\ny = contract(v, w) \"ncxj,cj->ncx\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(lie); i++) {
        stored s = store(lie[i], PLENTY, PLENTY);
        assert_int_equal(s.copies, 0);
        drop(&s);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------ */

/* Blocks of 8 rows and 6 columns, of products with that many rows or more. */
static stored store_in_blocks(const char *text, int64_t rows) {
    const smg_store_options options = {
        .limit = PLENTY, .few = PLENTY, .blocks = {.rows = 8, .cols = 6, .least = rows}, .nominal = symbols};
    return store_by(text, &options);
}

static void expect_text(const stored *s) {
    smg_text text, again;
    smg_graph *read;
    smg_text_init(&text, s->ctx);
    smg_text_init(&again, s->ctx);
    smg_graph_print(s->g, &text);
    assert_int_equal(smg_graph_parse(s->ctx, smg_text_cstr(&text), strlen(smg_text_cstr(&text)), "text", &read),
                     SMG_OK);
    smg_graph_print(read, &again);
    assert_string_equal(smg_text_cstr(&text), smg_text_cstr(&again));
    smg_graph_destroy(read);
    smg_text_free(&text);
    smg_text_free(&again);
}

static void many_rows_go_by_blocks(void **state) {
    (void)state;
    static const char lies[] = HEAD "w = constant f32[40, 24] random seed=1\n"
                                    "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const char lies_across[] = HEAD "w = constant f32[24, 40] random seed=1\n"
                                           "y = contract(x, w) \"ni,io->no\"\noutput y = y\n";
    static const char ends_within[] = HEAD "w = constant f32[44, 24] random seed=1\n"
                                           "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const char *const texts[] = {lies, lies_across};
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = store_in_blocks(texts[i], 5);
        assert_int_equal(s.along, 1);
        assert_string_equal(find(&s, "y")->label[1], "oi");
        assert_int_equal(find(&s, "w/stored")->block[0], 8);
        assert_int_equal(find(&s, "w/stored")->block[1], 6);
        expect_text(&s);
        expect_same_value(texts[i], &s, 1);
        drop(&s);
    }
    stored s = store_in_blocks(lies, 6);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
    s = store_in_blocks(ends_within, 5);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
}

/* Panels of 16 columns, of weights of so many elements or more. */
static stored store_in_panels(const char *text, int64_t rows, int64_t elements) {
    const smg_store_options options = {
        .limit = PLENTY, .panels = {.rows = 1, .cols = 16, .least = rows, .smallest = elements}, .nominal = symbols};
    return store_by(text, &options);
}

static void what_lies_across_goes_by_panels(void **state) {
    (void)state;
    static const char lies[] = HEAD "w = constant f32[24, 48] random seed=1\n"
                                    "y = contract(x, w) \"ni,io->no\"\noutput y = y\n";
    static const char lies_along[] = HEAD "w = constant f32[48, 24] random seed=1\n"
                                          "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const char ends_within[] = HEAD "w = constant f32[24, 40] random seed=1\n"
                                           "y = contract(x, w) \"ni,io->no\"\noutput y = y\n";
    static const char turned_ends_within[] = HEAD "w = constant f32[40, 24] random seed=1\n"
                                                  "y = contract(x, w) \"ni,oi->no\"\noutput y = y\n";
    static const char *const texts[] = {lies, lies_along};
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = store_in_panels(texts[i], 5, 24 * 48);
        assert_int_equal(s.copies, 1);
        assert_int_equal(s.along, 0);
        assert_string_equal(find(&s, "y")->label[1], "io");
        assert_int_equal(find(&s, "w/stored")->block[0], 1);
        assert_int_equal(find(&s, "w/stored")->block[1], 16);
        expect_text(&s);
        expect_same_value(texts[i], &s, 1);
        drop(&s);
    }
    stored s = store_in_panels(ends_within, 5, 0);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
    s = store_in_panels(turned_ends_within, 5, 0);
    assert_int_equal(s.copies, 1);
    assert_false(smg_node_is_blocked(find(&s, "w/stored")));
    drop(&s);
    s = store_in_panels(lies, 6, 0); /* rows */
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
    s = store_in_panels(lies, 5, 24 * 48 + 1);
    assert_int_equal(s.copies + s.along, 0);
    drop(&s);
}

static void blocks_are_whole(void **state) {
    (void)state;
    static const char *const wrong[] = {"copy(w) blocks=[7, 6]", "copy(w) blocks=[8, 5]", "copy(w) blocks=[8, 0]",
                                        "copy(w) blocks=[-8, 6]", "copy(b) blocks=[8, 6]"};
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        char text[256];
        smg_context *ctx;
        smg_graph *g;
        assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
        int length = snprintf(text, sizeof text,
                              HEAD "w = constant f32[40, 24] random seed=1\nb = constant f32[24] random seed=1\n"
                                   "y = %s\noutput y = y\n",
                              wrong[i]);
        assert_int_not_equal(smg_graph_parse(ctx, text, (size_t)length, "text", &g), SMG_OK);
        assert_non_null(strstr(smg_context_error(ctx), "whole blocks"));
        smg_context_destroy(ctx);
    }
}

/* ---- products of one operand ------------------------------------------------------------------------------- */

static stored join(const char *text, int64_t few) {
    stored s = {0};
    const smg_store_options options = {
        .blocks = {.rows = 8, .cols = 6, .least = 5}, .few_joined = few, .nominal = symbols};
    assert_int_equal(smg_context_create(NULL, &s.ctx), SMG_OK);
    if (smg_graph_parse(s.ctx, text, strlen(text), "text", &s.g) != SMG_OK) fail_msg("%s", smg_context_error(s.ctx));
    assert_int_equal(smg_rewrite_join_products(s.g, &options, &s.copies), SMG_OK);
    return s;
}

#define THREE                                                                                                          \
    HEAD "u = constant f32[8, 24] random seed=1\nv = constant f32[8, 24] random seed=2\n"                              \
         "bu = constant f32[8] random seed=4\nbv = constant f32[1, 8] random seed=5\n"                                 \
         "p = contract(x, u) \"ni,oi->no\"\npu = add(p, bu)\nq = contract(x, v) \"ni,oi->no\"\n"

static void products_of_one_operand_are_joined(void **state) {
    (void)state;
    static const char three[] = THREE "qv = add(bv, q)\ns = contract(pu, qv) \"ni,mi->nm\"\n"
                                      "w = constant f32[16, 24] random seed=3\nbw = constant f32[16] random seed=6\n"
                                      "t = contract(x, w) \"ni,oi->no\"\ntw = add(t, bw)\n"
                                      "y = contract(s, tw) \"nm,mo->no\"\noutput y = y\n";
    static const char bare[] = HEAD "u = constant f32[24, 8] random seed=1\nv = constant f32[24, 16] random seed=2\n"
                                    "p = contract(x, u) \"ni,io->no\"\nq = contract(x, v) \"ni,io->no\"\n"
                                    "y = contract(p, q) \"no,nj->oj\"\noutput y = y\n";
    stored s = join(three, 5 * 32);
    assert_int_equal(s.copies, 3);
    expect_same_value(three, &s, 4);
    drop(&s);
    s = join(three, 5 * 32 - 1);
    assert_int_equal(s.copies, 0);
    drop(&s);
    s = join(bare, PLENTY);
    assert_int_equal(s.copies, 2);
    expect_same_value(bare, &s, 1);
    drop(&s);
}

/* A number behind one of them, or behind a view of it, goes into its constants. */
static void scales_are_joined(void **state) {
    (void)state;
    static const char *const scaled[] = {
        THREE "qv = add(bv, q)\nhalf = fill 0.35 : f32[]\nsu = mul(pu, half)\n"
              "y = contract(su, qv) \"ni,mi->nm\"\noutput y = y\n",
        THREE "qv = add(bv, q)\nless = fill -0.7 : f32[]\nru = reshape(pu) : f32[n, 2, 4]\n"
              "rv = reshape(qv) : f32[n, 2, 4]\ntv = transpose(rv) perm=[1, 0, 2]\nsv = mul(less, tv)\n"
              "y = contract(ru, sv) \"nhi,hmi->hnm\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(scaled); i++) {
        stored s = join(scaled[i], PLENTY);
        assert_int_equal(s.copies, 2);
        for (smg_node_id id = 0; id < s.g->nodes.count; id++) {
            const smg_node *n = smg_graph_node(s.g, id);
            if (n->op == SMG_OP_MUL) assert_true(smg_size_is_const(s.g->sizes, smg_node_elements(s.g, id), NULL));
        }
        expect_same_value(scaled[i], &s, 4);
        drop(&s);
    }
}

static void what_goes_on_is_left_alone(void **state) {
    (void)state;
    static const char *const texts[] = {
        /* something elementwise follows one of them, or both */
        THREE "qv = add(bv, q)\nr = relu(pu)\ny = contract(r, qv) \"ni,mi->nm\"\noutput y = y\n",
        THREE "qv = add(bv, q)\ny = mul(pu, qv)\noutput y = y\n",
        /* a number is so small, or so large, that 16 bits may not hold the constant; a scaled value is read twice, or
         * goes on */
        THREE
        "qv = add(bv, q)\nc = fill 2.5 : f32[]\nr = mul(pu, c)\ny = contract(r, qv) \"ni,mi->nm\"\noutput y = y\n",
        THREE
        "qv = add(bv, q)\nc = fill 0.001 : f32[]\nr = mul(pu, c)\ny = contract(r, qv) \"ni,mi->nm\"\noutput y = y\n",
        THREE "qv = add(bv, q)\nc = fill 0.5 : f32[]\nr = mul(pu, c)\nz = contract(pu, qv) \"ni,mi->nm\"\n"
              "y = contract(r, qv) \"ni,mi->nm\"\noutput y = y\noutput z = z\n",
        THREE "qv = add(bv, q)\nc = fill 0.5 : f32[]\nr = mul(pu, c)\nt = relu(r)\n"
              "y = contract(t, qv) \"ni,mi->nm\"\noutput y = y\n",
        /* one of them has no constant added */
        THREE "y = contract(pu, q) \"ni,mi->nm\"\noutput y = y\n",
        /* one of them is a result */
        THREE "qv = add(bv, q)\ny = contract(pu, qv) \"ni,mi->nm\"\noutput y = y\noutput z = pu\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = join(texts[i], PLENTY);
        assert_int_equal(s.copies, 0);
        drop(&s);
    }
}

/* ---- factors laid out as rows -------------------------------------------------------------------------------- */

static stored lay(const char *text) {
    stored s = {0};
    assert_int_equal(smg_context_create(NULL, &s.ctx), SMG_OK);
    if (smg_graph_parse(s.ctx, text, strlen(text), "text", &s.g) != SMG_OK) fail_msg("%s", smg_context_error(s.ctx));
    assert_int_equal(smg_rewrite_lay_rows(s.g, &s.copies), SMG_OK);
    return s;
}

/* Channels, then lines and columns of patches: c _ p _ q. */
#define PATCHES HEAD "v = reshape(x) : f32[n, 2, 2, 3, 1, 2]\n"

static void patches_become_rows(void **state) {
    (void)state;
    static const char *const texts[] = {
        PATCHES "w = constant f32[64, 2, 3, 2] random seed=1\n"
                "y = contract(v, w) \"ncgphq,ocpq->ngho\"\noutput y = y\n",
        PATCHES "w = constant f32[3, 2, 64, 2] random seed=1\n"
                "y = contract(w, v) \"pcoq,ncgphq->ongh\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = lay(texts[i]);
        assert_int_equal(s.copies, 1);
        const smg_node *product = find(&s, "y"), *rows = &s.g->nodes.items[product->operand[i]];
        int64_t depth = 0;
        assert_true(rows->op == SMG_OP_COPY && rows->rank == 4);
        assert_true(smg_size_is_const(s.g->sizes, rows->dims[3], &depth) && depth == 12);
        assert_int_equal(strlen(product->label[1 - i]), 2);
        expect_same_value(texts[i], &s, 0);
        drop(&s);
    }
}

static void what_lies_together_is_left_alone(void **state) {
    (void)state;
    static const char *const texts[] = {
        /* one contracted axis; several that lie together */
        HEAD "w = constant f32[64, 24] random seed=1\ny = contract(x, w) \"ni,oi->no\"\noutput y = y\n",
        PATCHES "w = constant f32[64, 2, 3] random seed=1\n"
                "y = contract(v, w) \"nacphq,ocp->naohq\"\noutput y = y\n",
        /* few columns */
        PATCHES "w = constant f32[63, 2, 3, 2] random seed=1\n"
                "y = contract(v, w) \"ncgphq,ocpq->ngho\"\noutput y = y\n",
        /* windows that overlap: a copy of more than there is */
        HEAD "v = reshape(x) : f32[n, 2, 12]\n"
             "p = window(v) axis=2 begin=0 step=1 dilation=1 fill=0 : f32[n, 2, 10, 3]\n"
             "w = constant f32[64, 2, 3] random seed=1\n"
             "y = contract(p, w) \"nctk,ock->nto\"\noutput y = y\n",
        /* both factors are of the run */
        PATCHES "w = input f32[64, 2, 3, 2]\ny = contract(v, w) \"ncgphq,ocpq->ngho\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = lay(texts[i]);
        if (s.copies != 0) fail_msg("text %zu: a copy", i);
        drop(&s);
    }
}

/* ---- values laid out as they are read ------------------------------------------------------------------------ */

static stored turn(const char *text) {
    stored s = {0};
    assert_int_equal(smg_context_create(NULL, &s.ctx), SMG_OK);
    if (smg_graph_parse(s.ctx, text, strlen(text), "text", &s.g) != SMG_OK) fail_msg("%s", smg_context_error(s.ctx));
    assert_int_equal(smg_rewrite_turn_values(s.g, symbols, &s.copies), SMG_OK);
    return s;
}

/* A value of 5 by 24, read with the 5 innermost. */
#define TURNED HEAD "e = exp(x)\nt = transpose(e) perm=[1, 0]\n"

static void what_is_read_often_is_turned(void **state) {
    (void)state;
    static const char *const texts[] = {
        /* once for each row of a batch */
        TURNED "b = constant f32[4, 24, 1] random seed=1\ny = add(t, b)\noutput y = y\n",
        /* by several maps, through other views */
        TURNED "b = constant f32[24, 1] random seed=1\nr = reshape(t) : f32[4, 6, n]\nd = constant f32[4, 6, 1] random "
               "seed=2\n"
               "p = add(t, b)\nq = mul(t, p)\ns = add(r, d)\nv = mul(r, s)\nf = reshape(v) : f32[24, n]\n"
               "y = add(q, f)\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = turn(texts[i]);
        assert_int_equal(s.copies, 1);
        expect_same_value(texts[i], &s, 0);
        drop(&s);
    }
}

static void what_is_read_seldom_stays(void **state) {
    (void)state;
    static const char *const texts[] = {
        TURNED "b = constant f32[3, 24, 1] random seed=1\ny = add(t, b)\noutput y = y\n",
        /* the same axis innermost; an input; products, which lay out their factors by themselves */
        HEAD "r = reshape(x) : f32[n, 4, 6]\ne = exp(r)\nt = transpose(e) perm=[1, 0, 2]\n"
             "b = constant f32[9, 4, 1, 6] random seed=1\ny = add(t, b)\noutput y = y\n",
        HEAD "t = transpose(x) perm=[1, 0]\nb = constant f32[9, 24, 1] random seed=1\ny = add(t, b)\noutput y = y\n",
        TURNED "w = constant f32[64, 24] random seed=1\ny = contract(w, t) \"oi,in->on\"\noutput y = y\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
        stored s = turn(texts[i]);
        if (s.copies != 0) fail_msg("text %zu: a copy", i);
        drop(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_layer),
        cmocka_unit_test(what_lies_right_is_left_alone),
        cmocka_unit_test(views_and_slices),
        cmocka_unit_test(one_copy_for_two_readers),
        cmocka_unit_test(a_tied_table),
        cmocka_unit_test(half_precision_stays_narrow),
        cmocka_unit_test(another_type_is_copied_as_it_is_stored),
        cmocka_unit_test(few_results_go_along),
        cmocka_unit_test(kernels_of_windows_lie_along_channels),
        cmocka_unit_test(many_rows_go_by_blocks),
        cmocka_unit_test(what_lies_across_goes_by_panels),
        cmocka_unit_test(blocks_are_whole),
        cmocka_unit_test(products_of_one_operand_are_joined),
        cmocka_unit_test(scales_are_joined),
        cmocka_unit_test(what_goes_on_is_left_alone),
        cmocka_unit_test(patches_become_rows),
        cmocka_unit_test(what_lies_together_is_left_alone),
        cmocka_unit_test(what_is_read_often_is_turned),
        cmocka_unit_test(what_is_read_seldom_stays),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
