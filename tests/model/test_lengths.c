/* Lengths that are data: attention whose mask is a tensor of the run, or whose rows have lengths. For every way to
 * write such a mask its end is found, loops over keys stop there, and the results are those of the reference for runs of
 * ones, holes, padding in front, rows without a key and numbers that are no mask; by the interpreter on several targets
 * and on the device. What cannot be proved is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "plan/plan.h"
#include "support/device.h"

enum { MOST_INPUTS = 8 };

/* ---- graphs ------------------------------------------------------------------------------------------------- */

/* %s: what scores become; what comes of `o`; what is given. */
static const char attention[] = "graph attention\n"
                                "dim b max 16\n"
                                "dim s max 512\n"
                                "dim t max 512\n"
                                "q = input f32[b, s, 3, 16]\n"
                                "k = input f32[b, t, 3, 16]\n"
                                "v = input f32[b, t, 3, 16]\n"
                                "scores = contract(q, k) \"bshd,bthd->bhst\"\n"
                                "scale = fill 0.25 : f32[]\n"
                                "scaled = mul(scores, scale)\n"
                                "%s\n"
                                "top = reduce_max(masked) axis=3 keep\n"
                                "shifted = sub(masked, top)\n"
                                "e = exp(shifted)\n"
                                "total = sum(e) axis=3 keep\n"
                                "p = div(e, total)\n"
                                "o = contract(p, v) \"bhst,bthd->bshd\"\n"
                                "%s\n"
                                "output o = %s\n";

#define LOWEST "low = fill -3.4028234663852886e38 : f32[]\n"
#define TERM                                                                                                           \
    "mask = input i32[b, t]\nvalid = cast(mask) : f32[b, t]\nview = reshape(valid) : f32[b, 1, 1, t]\n"                \
    "one = fill 1 : f32[]\ninvalid = sub(one, view)\n"
#define TRUTH                                                                                                          \
    "mask = input i32[b, t]\nvalid = cast(mask) : bool[b, t]\nview = reshape(valid) : bool[b, 1, 1, t]\n"              \
    "kept = broadcast(view) : bool[b, 1, s, t]\n"
#define LENGTHS                                                                                                        \
    "length = input i32[b, 1, 1, 1]\nplace = iota axis=3 : i32[1, 1, 1, t]\nkept = lt(place, length)\n"                \
    "none = fill -inf : f32[]\nmasked = select(kept, scaled, none)"
#define WINDOW                                                                                                         \
    "first = input i32[b, 1, 1, 1]\nlength = input i32[b, 1, 1, 1]\nplace = iota axis=3 : i32[1, 1, 1, t]\n"           \
    "late = le(first, place)\nearly = lt(place, length)\nkept = and(late, early)\n"
#define ROWS "row = iota axis=1 : i32[1, s, 1, 1]\nzero = fill 0 : f32[]\n"
#define NONE "none = fill -inf : f32[]\n"

typedef struct form {
    const char *what, *masked;
    bool ends;         /* loops over keys stop at the mask's end */
    const char *given; /* NULL: `o` as it is */
    bool skips;        /* blocks of rows that are not wanted run no loop */
} form;

static const form forms[] = {
    {"a term of the lowest float", TERM LOWEST "term = mul(invalid, low)\nmasked = add(scaled, term)", true, NULL,
     false},
    {"a term beside another",
     TERM LOWEST "bias = constant f32[3, 1, 1] random seed=3\nterm = mul(invalid, low)\nbiased = add(scaled, bias)\n"
                 "masked = add(term, biased)",
     true, NULL, false},
    {"a term under another",
     TERM LOWEST "bias = constant f32[3, 1, 1] random seed=3\nterm = mul(invalid, low)\nfirst = add(scaled, term)\n"
                 "masked = add(first, bias)",
     true, NULL, false},
    {"a choice between 0 and the lowest float",
     TRUTH LOWEST "zero = fill 0 : f32[]\nterm = select(kept, zero, low)\nmasked = add(scaled, term)", true, NULL,
     false},
    {"a choice between scores and -inf", TRUTH NONE "masked = select(kept, scaled, none)", true, NULL, false},
    {"a choice between scores and the lowest float", TRUTH LOWEST "masked = select(kept, scaled, low)", true, NULL,
     false},
    {"a term that is given", "mask = input f32[b, 1, 1, t]\nmasked = add(scaled, mask)", true, NULL, false},
    {"a term too weak", TERM "low = fill -10000 : f32[]\nterm = mul(invalid, low)\nmasked = add(scaled, term)", false,
     NULL, false},
    {"a choice too weak", TRUTH "low = fill -1e9 : f32[]\nmasked = select(kept, scaled, low)", false, NULL, false},
    {"beside a term without bounds",
     TERM LOWEST "bias = input f32[b, 1, s, t]\nterm = mul(invalid, low)\nbiased = add(scaled, bias)\n"
                 "masked = add(biased, term)",
     false, NULL, false},
    {"a mask for each row", "mask = input f32[b, 1, s, t]\nmasked = add(scaled, mask)", false, NULL, false},
    {"lengths",
     "length = input i32[b, 1, 1, 1]\nplace = iota axis=3 : i32[1, 1, 1, t]\nkept = lt(place, length)\n" NONE
     "masked = select(kept, scaled, none)",
     true, NULL, false},
    {"lengths and the lowest float",
     "length = input i32[b, 1, 1, 1]\nplace = iota axis=3 : i32[1, 1, 1, t]\nkept = lt(place, length)\n" LOWEST
     "masked = select(kept, scaled, low)",
     true, NULL, false},
    {"a window", WINDOW NONE "masked = select(kept, scaled, none)", true, NULL, false},
    {"a window and the lowest float", WINDOW LOWEST "masked = select(kept, scaled, low)", true, NULL,
     true /* the begin is asked for rows that keep nothing, in the same words */},
};

/* ---- masks --------------------------------------------------------------------------------------------------- */

static uint32_t draw(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Is key t of the row kept? Rows by their number: a run of ones, one with holes, padding in front, nothing, everything,
 * one key. */
static bool kept(int64_t row, int64_t t, int64_t keys, uint32_t *state) {
    int64_t length = (row * 37 + 21) % keys + 1;
    bool hole = draw(state) % 3 == 0;
    switch (row % 6) {
    case 0: return t < length;
    case 1: return t < length && !hole;
    case 2: return t >= keys - length;
    case 3: return false;
    case 4: return true;
    default: return t == length / 2;
    }
}

/* odd: numbers that are none of a mask, too; of a factor that f32 has room for. */
static void fill_mask(smg_tensor *t, bool odd, bool factor) {
    static const double terms[] = {-3.4028234663852886e38, -HUGE_VAL, -1e30, -1e35, -2e30};
    static const double others[] = {0, 1, -3, -20, -1e20, 1e20, 0.5, -8};
    static const double numbers[] = {2, -1, 0, 7, 2147483647.0, -2147483648.0};
    bool floats = strcmp(t->type, "f32") == 0;
    int64_t keys = t->dims[t->rank - 1], elements = smg_tensor_elements(t);
    uint32_t state = 7;
    for (int64_t i = 0; i < elements; i++) {
        bool keep = kept(i / keys, i % keys, keys, &state);
        double value = keep;
        if (floats) value = keep ? others[odd ? draw(&state) % 8 : 0] : terms[draw(&state) % (odd ? 5 : 1)];
        if (!floats && odd && draw(&state) % 4 == 0) value = factor ? 2 : numbers[draw(&state) % 6];
        smg_tensor_set(t, i, value);
    }
}

static void fill_lengths(smg_tensor *t, bool odd) {
    static const double numbers[] = {2147483647.0, -5, 0, -2147483648.0, 1};
    for (int64_t i = 0; i < t->dims[0]; i++) smg_tensor_set(t, i, odd ? numbers[i % 5] : (double)((i * 37 + 21) % 90));
}

/* Before, at and behind the lengths. */
static void fill_firsts(smg_tensor *t, bool odd) {
    static const double numbers[] = {-2147483648.0, 7, 0, 2147483647.0, -1};
    for (int64_t i = 0; i < t->dims[0]; i++) smg_tensor_set(t, i, odd ? numbers[i % 5] : (double)((i * 31 + 5) % 60));
}

/* ---- one form ------------------------------------------------------------------------------------------------- */

typedef struct scene {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_tensor inputs[MOST_INPUTS];
    int input_count;
    smg_array expected;
} scene;

static void must(const scene *s, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(s->ctx));
}

static void start(scene *s, const char *text) {
    *s = (scene){0};
    assert_int_equal(smg_context_create(NULL, &s->ctx), SMG_OK);
    must(s, smg_arena_create(s->ctx, &s->arena));
    must(s, smg_graph_parse(s->ctx, text, strlen(text), "text", &s->g));
}

static void start_form(scene *s, const form *f) {
    char text[sizeof attention + 1024];
    (void)snprintf(text, sizeof text, attention, f->masked, f->given != NULL ? f->given : "",
                   f->given != NULL ? "y" : "o");
    start(s, text);
}

static void finish(scene *s) {
    smg_graph_destroy(s->g);
    smg_arena_destroy(s->arena);
    smg_context_destroy(s->ctx);
}

static void give_inputs(scene *s, const form *f, const int64_t *sizes, bool odd) {
    smg_node_id nodes[MOST_INPUTS];
    smg_array arrays[MOST_INPUTS];
    s->input_count = smg_graph_input_nodes(s->g, nodes, MOST_INPUTS);
    for (int i = 0; i < s->input_count; i++) {
        smg_tensor *t = &s->inputs[i];
        must(s, smg_tensor_fill(s->ctx, s->g, nodes[i], sizes, SMG_FILL_RANDOM, (uint64_t)i + 5, s->arena, t));
        if (strcmp(t->name, "mask") == 0) fill_mask(t, odd, strstr(f->masked, "invalid") != NULL);
        if (strcmp(t->name, "length") == 0) fill_lengths(t, odd);
        if (strcmp(t->name, "first") == 0) fill_firsts(t, odd);
        must(s, smg_tensor_to_array(t, s->arena, &arrays[i]));
    }
    must(s, smg_graph_eval(s->g, sizes, arrays, s->arena, &s->expected));
}

/* A row that keeps nothing is NaN where the mask is -inf, and rounded to steps of 1e-3 where it is -10000. */
static void compare(const scene *s, const form *f, const char *where, const int64_t *sizes, const smg_tensor *got) {
    for (int64_t i = 0; i < smg_array_elements(&s->expected); i++) {
        double want = s->expected.data[i], value = smg_tensor_get(got, i);
        if (isnan(want) && isnan(value)) continue;
        if (isnan(want) != isnan(value) || fabs(want - value) > (f->ends ? 2e-5 : 1e-3))
            fail_msg("%s on %s, sizes %d %d %d: element %d is %g, wanted %g", f->what, where, (int)sizes[0],
                     (int)sizes[1], (int)sizes[2], (int)i, value, want);
    }
}

static const int64_t all_sizes[][3] = {{7, 9, 130}, {6, 70, 70}, {1, 1, 1}, {13, 1, 97}};

/* Has some loop over slices that in its bounds? */
static bool bounds_have(const smg_compilation *c, const char *part) {
    bool found = false;
    for (int i = 0; i < c->plan->steps.count; i++) {
        smg_text text;
        smg_text_init(&text, c->ctx);
        smg_kernel_print(c->plan->steps.items[i].kernel, &text);
        for (const char *loop = smg_text_cstr(&text); (loop = strstr(loop, "  loop ")) != NULL; loop++) {
            const char *end = strchr(loop, '\n'), *at = strstr(loop, part);
            found = found || (at != NULL && at < end);
        }
        smg_text_free(&text);
    }
    return found;
}

static void check_bounds(const form *f, const smg_compilation *c, const char *where) {
    bool window = strstr(f->masked, "first") != NULL;
    if (window && strcmp(where, "lavapipe") == 0) return; /* scores are stored there, which is priced lower */
    if (bounds_have(c, "load(") != f->ends)
        fail_msg("%s on %s: loops %s", f->what, where, f->ends ? "have no end" : "end");
    if (bounds_have(c, "mul(min(max(") != f->skips)
        fail_msg("%s on %s: blocks are %s", f->what, where, f->skips ? "not left out" : "left out");
}

/* Planned for many long rows, where ends pay everywhere. */
static void by_the_interpreter(void **state) {
    static const char *const names[] = {"h200", "lavapipe", "navi31"};
    static const smg_dim dims[] = {{"b", 16}, {"s", 512}, {"t", 512}};
    static const smg_compile_options options = {.dims = dims, .dim_count = 3};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(forms); i++) {
        scene s;
        start_form(&s, &forms[i]);
        for (size_t n = 0; n < SMG_COUNT_OF(names); n++) {
            smg_target target;
            smg_compilation *c;
            must(&s, smg_target_named(s.ctx, names[n], &target));
            must(&s, smg_compile_plan(s.ctx, s.g, &target, &options, &c));
            check_bounds(&forms[i], c, names[n]);
            for (size_t z = 0; z < SMG_COUNT_OF(all_sizes) * 2; z++) {
                smg_tensor out;
                if ((z + i + n) % 3 != 0) continue;
                give_inputs(&s, &forms[i], all_sizes[z / 2], z % 2 != 0);
                must(&s, smg_compile_interpret(c, all_sizes[z / 2], s.inputs, s.input_count, s.arena, &out));
                compare(&s, &forms[i], names[n], all_sizes[z / 2], &out);
            }
            smg_compilation_destroy(c);
        }
        finish(&s);
    }
}

/* A mask's end takes a kernel: not for a row that is alone, whose size can be bound, nor for one slice of keys. */
static void ends_where_they_pay(void **state) {
    static const struct {
        smg_dim dims[3];
        bool ends;
    } rows[] = {{{{"b", 16}, {"s", 512}, {"t", 512}}, true},
                {{{"b", 1}, {"s", 512}, {"t", 512}}, false},
                {{{"b", 16}, {"s", 32}, {"t", 32}}, false}};
    (void)state;
    scene s;
    start_form(&s, &forms[0]);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        const smg_compile_options options = {.dims = rows[i].dims, .dim_count = 3};
        smg_target target;
        smg_compilation *c;
        must(&s, smg_target_named(s.ctx, "navi31", &target));
        must(&s, smg_compile_plan(s.ctx, s.g, &target, &options, &c));
        bool cheaper = c->plan->kept < 1 && c->plan->with_ends < c->plan->without_ends;
        if (bounds_have(c, "load(") != rows[i].ends || cheaper != rows[i].ends)
            fail_msg("%lld rows of %lld keys %s an end: %g us with, %g us without", (long long)rows[i].dims[0].value,
                     (long long)rows[i].dims[2].value, rows[i].ends ? "lack" : "have", c->plan->with_ends * 1e6,
                     c->plan->without_ends * 1e6);
        smg_compilation_destroy(c);
    }
    finish(&s);
}

/* What lanes have folded and join behind the loop is the loop's work, read whatever the condition is. */
static void what_is_joined_is_read(void **state) {
    static const char text[] = "graph joined\n"
                               "x = input f32[12, 17, 8]\n"
                               "row = iota axis=0 : i32[12, 1, 1]\n"
                               "five = fill 5 : i32[]\n"
                               "late = le(five, row)\n"
                               "two = fill 2 : f32[]\n"
                               "some = select(late, x, two)\n"
                               "total = sum(some) axis=2 keep\n"
                               "most = max(some, total)\n"
                               "output most = most\n";
    static const char *const names[] = {"h200", "lavapipe", "navi31"};
    static const int64_t none[3] = {0};
    const smg_compile_options options = {.objective = SMG_OBJECTIVE_DISPATCHES};
    const form f = {.what = "a sum", .masked = "", .ends = true};
    (void)state;
    for (size_t n = 0; n < SMG_COUNT_OF(names); n++) {
        smg_target target;
        smg_compilation *c;
        smg_tensor out;
        scene s;
        start(&s, text);
        must(&s, smg_target_named(s.ctx, names[n], &target));
        must(&s, smg_compile_plan(s.ctx, s.g, &target, &options, &c));
        give_inputs(&s, &f, none, false);
        must(&s, smg_compile_interpret(c, none, s.inputs, s.input_count, s.arena, &out));
        compare(&s, &f, names[n], none, &out);
        smg_compilation_destroy(c);
        finish(&s);
    }
}

/* ---- what it costs ---------------------------------------------------------------------------------------------- */

/* Steps of all loops of the kernel over all workgroups, with rows from these positions to those; NULL: from 0. */
static double steps_of(const smg_kernel *k, const int64_t *sizes, const double *from, const double *to) {
    smg_karray buffers[16];
    int64_t groups, base[16] = {0}, low, high;
    double steps = 0, begin[16] = {0}, behind[16];
    assert_true(k->buffers.count <= 16 && k->axes.count <= 16 && smg_kernel_grid(k, sizes, &groups));
    for (int i = 0; i < sizes[0]; i++) {
        begin[i] = from != NULL ? from[i] : 0;
        behind[i] = to[i];
    }
    for (int i = 0; i < k->buffers.count; i++) {
        bool first = strstr(k->buffers.items[i].name, "/first") != NULL;
        buffers[i] = (smg_karray){first ? begin : behind, sizes[0]};
    }
    for (int64_t group = 0; group < groups; group++) {
        int64_t rest = group;
        for (int i = k->grid.count - 1; i >= 0; i--) {
            const smg_kaxis *axis = &k->axes.items[k->grid.items[i]];
            int64_t extent;
            assert_true(smg_size_eval(k->sizes, axis->extent, sizes, &extent));
            int64_t blocks = (extent + axis->tile - 1) / axis->tile;
            base[k->grid.items[i]] = rest % blocks * axis->tile;
            rest /= blocks;
        }
        for (int i = 0; i < k->code.count; i++) {
            const smg_instr *in = &k->code.items[i];
            if (in->kind != SMG_I_LOOP || in->range == NULL) continue;
            int64_t tile = k->axes.items[in->axes[0]].tile;
            assert_int_equal(smg_kernel_loop_range(k, in, sizes, base, buffers, &low, &high), -1);
            if (high > low) steps += (double)((high - low + tile - 1) / tile);
        }
    }
    return steps;
}

/* Rows of 37, 128, 512 and 9 in one batch beside each by itself, in the kernel that has the loop. Where rows behind a
 * length are wanted, they are computed: by the graph they have a value. */
static void padding_costs_little(void **state) {
    static const double rows[] = {37, 128, 512, 9};
    static const struct {
        const char *given, *output;
        double most;
    } cases[] = {{ROWS "some = lt(row, length)\ny = select(some, o, zero)", "y", 1.25}, {"", "o", 1.45}};
    static const char *const names[] = {"h200", "lavapipe"};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases) * SMG_COUNT_OF(names); i++) {
        const smg_dim dims[] = {{"b", 4}, {"s", 512}, {"t", 512}};
        const smg_compile_options options = {.dims = dims, .dim_count = 3};
        char text[sizeof attention + 1024];
        smg_target target;
        smg_compilation *c;
        scene s;
        double padded = 0, alone = 0;
        (void)snprintf(text, sizeof text, attention, LENGTHS, cases[i / 2].given, cases[i / 2].output);
        start(&s, text);
        must(&s, smg_target_named(s.ctx, names[i % 2], &target));
        must(&s, smg_compile_plan(s.ctx, s.g, &target, &options, &c));
        for (int k = 0; k < c->plan->steps.count; k++) {
            const smg_kernel *kernel = c->plan->steps.items[k].kernel;
            padded += steps_of(kernel, (int64_t[]){4, 512, 512}, NULL, rows);
            for (int r = 0; r < 4; r++)
                alone += steps_of(kernel, (int64_t[]){1, (int64_t)rows[r], (int64_t)rows[r]}, NULL, &rows[r]);
        }
        print_message("%s: %g steps, %g without padding\n", names[i % 2], padded, alone);
        assert_true(alone > 0 && padded <= cases[i / 2].most * alone);
        smg_compilation_destroy(c);
        finish(&s);
    }
}

/* Tokens that look at each other, under an encoder's mask; %s: what comes of `o`. */
static const char encoder[] = "graph encoder\ndim b max 16\ndim s max 512\nmask = input i32[b, s]\n"
                              "q = input f32[b, s, 3, 16]\nk = input f32[b, s, 3, 16]\nv = input f32[b, s, 3, 16]\n"
                              "scores = contract(q, k) \"bshd,bthd->bhst\"\n"
                              "valid = cast(mask) : f32[b, s]\nview = reshape(valid) : f32[b, 1, 1, s]\n"
                              "one = fill 1 : f32[]\ninvalid = sub(one, view)\n" LOWEST "term = mul(invalid, low)\n"
                              "masked = add(scores, term)\ntop = reduce_max(masked) axis=3 keep\n"
                              "shifted = sub(masked, top)\ne = exp(shifted)\ntotal = sum(e) axis=3 keep\n"
                              "p = div(e, total)\no = contract(p, v) \"bhst,bthd->bshd\"\n"
                              "flat = reshape(o) : f32[b, s, 48]\nw = constant f32[48, 48] random seed=5\n"
                              "y = contract(flat, w) \"bsi,oi->bso\"\noutput y = y\n";

static void plan_encoder(scene *s, const char *target_name, bool unread, smg_compilation **out_c) {
    const smg_dim dims[] = {{"b", 16}, {"s", 512}};
    const smg_compile_options options = {.dims = dims, .dim_count = 2, .padding_unread = unread};
    smg_target target;
    must(s, smg_target_named(s->ctx, target_name, &target));
    must(s, smg_compile_plan(s->ctx, s->g, &target, &options, out_c));
}

/* Steps of the kernels that have a loop whose end the mask decides. */
static double masked_steps(const smg_compilation *c, const int64_t *sizes, const double *from, const double *to) {
    double steps = 0;
    for (int k = 0; k < c->plan->steps.count; k++) {
        const smg_kernel *kernel = c->plan->steps.items[k].kernel;
        bool ends = false;
        for (int i = 0; i < kernel->code.count; i++)
            ends = ends || (kernel->code.items[i].kind == SMG_I_LOOP && kernel->code.items[i].range != NULL);
        if (ends) steps += steps_of(kernel, sizes, from, to);
    }
    return steps;
}

/* Where nobody reads padding, behind rows or in front of them, a batch of an encoder takes what its rows take by
 * themselves. In front a row may begin in the middle of a slice, so that it lies in one more. */
static void unread_padding_costs_nothing(void **state) {
    static const double rows[] = {37, 128, 512, 9}, from[] = {475, 384, 0, 503}, to[] = {512, 512, 512, 512};
    static const char *const names[] = {"h200", "navi31"};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(names); i++) {
        smg_compilation *c;
        scene s;
        double alone = 0;
        start(&s, encoder);
        plan_encoder(&s, names[i], true, &c);
        double behind = masked_steps(c, (int64_t[]){4, 512}, NULL, rows);
        double in_front = masked_steps(c, (int64_t[]){4, 512}, from, to);
        for (int r = 0; r < 4; r++) alone += masked_steps(c, (int64_t[]){1, (int64_t)rows[r]}, NULL, &rows[r]);
        print_message("%s: %g steps, padded in front %g, without padding %g\n", names[i], behind, in_front, alone);
        assert_true(alone > 0 && behind <= 1.25 * alone && in_front <= 1.25 * alone);
        smg_compilation_destroy(c);
        finish(&s);
    }
}

/* Rows that are read are the same numbers, with holes in the mask and padding in front, too. */
static void rows_that_are_read_stay(void **state) {
    static const int64_t sizes[] = {4, 150};
    const form f = {.what = "an encoder", .masked = ""};
    (void)state;
    scene s;
    smg_compilation *all, *read;
    smg_tensor want, got;
    start(&s, encoder);
    plan_encoder(&s, "h200", false, &all);
    plan_encoder(&s, "h200", true, &read);
    give_inputs(&s, &f, sizes, false);
    for (int64_t at = 0; at < 4 * 150; at++) {
        int64_t row = at / 150, token = at % 150;
        bool kept[] = {token < 37, token >= 100 && token < 140, token < 150 && token % 7 != 3, false};
        smg_tensor_set(&s.inputs[0], at, kept[row]);
    }
    must(&s, smg_compile_interpret(all, sizes, s.inputs, s.input_count, s.arena, &want));
    must(&s, smg_compile_interpret(read, sizes, s.inputs, s.input_count, s.arena, &got));
    static const int64_t first[] = {0, 100, 0, 0}, end[] = {37, 140, 150, 150};
    for (int64_t at = 0; at < smg_tensor_elements(&got); at++) {
        if (at / 48 % 150 < first[at / 48 / 150] || at / 48 % 150 >= end[at / 48 / 150]) continue;
        double off = fabs(smg_tensor_get(&got, at) - smg_tensor_get(&want, at));
        if (!(off <= 1e-5)) fail_msg("element %lld is off by %g", (long long)at, off);
    }
    smg_compilation_destroy(all);
    smg_compilation_destroy(read);
    finish(&s);
}

static void on_the_device(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(forms); i++) {
        scene s;
        smg_model *model;
        const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true};
        start_form(&s, &forms[i]);
        smg_status status = smg_model_open_graph(s.ctx, s.g, &desc, &model);
        if (device_missing(s.ctx, status)) {
            finish(&s);
            skip();
        }
        must(&s, status);
        for (size_t z = 0; z < SMG_COUNT_OF(all_sizes) * 2; z++) {
            smg_tensor out = {.name = "o"};
            give_inputs(&s, &forms[i], all_sizes[z / 2], z % 2 != 0);
            must(&s, smg_model_run(model, s.inputs, s.input_count, &out, 1));
            compare(&s, &forms[i], "the device", all_sizes[z / 2], &out);
        }
        smg_model_close(model);
        finish(&s);
    }
}

/* ---- lengths instead of a mask -------------------------------------------------------------------------------- */

/* false: there is no device. */
static bool open_form(scene *s, const form *f, const int64_t *sizes, smg_model **out_model) {
    const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = true};
    start_form(s, f);
    smg_status status = smg_model_open_graph(s->ctx, s->g, &desc, out_model);
    if (device_missing(s->ctx, status)) {
        finish(s);
        return false;
    }
    must(s, status);
    give_inputs(s, f, sizes, false);
    return true;
}

static void expect_refused(const scene *s, smg_status status, smg_status want, const char *sentence) {
    if (status != want || strstr(smg_context_error(s->ctx), sentence) == NULL)
        fail_msg("status %d, \"%s\"; wanted %d, \"%s\"", (int)status, smg_context_error(s->ctx), (int)want, sentence);
}

/* Inputs but the last, which is the mask or has the lengths. */
static void run_lengths(const scene *s, smg_model *model, const int64_t *lengths, int count, smg_tensor *out) {
    must(s, smg_model_set_lengths(model, s->inputs[s->input_count - 1].name, lengths, count));
    *out = (smg_tensor){.name = "o"};
    must(s, smg_model_run(model, s->inputs, s->input_count - 1, out, 1));
}

/* By lengths the result is that of the mask, bit by bit, for each of them, and a mask beside them must be theirs. */
static void lengths_are_masks(void **state) {
    static const int64_t sizes[] = {3, 9, 70}, lengths[][3] = {{37, 1, 60}, {70, 0, 3}, {5, 70, 70}};
    static const size_t which[] = {0, 4, 11}; /* a term, a choice, lengths themselves */
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(which); i++) {
        scene s;
        smg_model *model;
        if (!open_form(&s, &forms[which[i]], sizes, &model)) skip();
        smg_tensor *mask = &s.inputs[s.input_count - 1];
        bool number = smg_tensor_elements(mask) == 3;
        for (size_t n = 0; n < SMG_COUNT_OF(lengths); n++) {
            smg_tensor out, want = {.name = "o"};
            for (int64_t at = 0; at < smg_tensor_elements(mask); at++)
                smg_tensor_set(mask, at, number ? (double)lengths[n][at] : at % 70 < lengths[n][at / 70]);
            must(&s, smg_model_set_lengths(model, mask->name, NULL, 0));
            must(&s, smg_model_run(model, s.inputs, s.input_count, &want, 1));
            int64_t count = smg_tensor_elements(&want);
            float *kept = SMG_ARENA_ARRAY(s.arena, float, (size_t)count);
            memcpy(kept, want.data, (size_t)count * sizeof(float));
            run_lengths(&s, model, lengths[n], 3, &out);
            assert_memory_equal(out.data, kept, (size_t)count * sizeof(float));
            must(&s, smg_model_run(model, s.inputs, s.input_count, &out, 1)); /* the same mask beside them */
            smg_tensor_set(mask, number ? 1 : 70 + lengths[n][1] - (lengths[n][1] > 0), 2);
            smg_status status = smg_model_run(model, s.inputs, s.input_count, &out, 1);
            if (!number) expect_refused(&s, status, SMG_INVALID, "input 'mask', row 1: element ");
            if (number)
                expect_refused(&s, status, SMG_INVALID, "'length', row 1: element 0 is 2, and the row's length");
        }
        smg_model_close(model);
        finish(&s);
    }
}

static void wrong_lengths_are_refused(void **state) {
    static const int64_t sizes[] = {3, 9, 70}, good[] = {5, 70, 0}, below[] = {5, -3, 0}, never[] = {5, 0, 513},
                         above[] = {71, 0, 0};
    scene s;
    smg_model *m;
    (void)state;
    if (!open_form(&s, &forms[0], sizes, &m)) skip();
    smg_tensor out;
    int given = s.input_count - 1;
    expect_refused(&s, smg_model_set_lengths(m, "masks", good, 3), SMG_NOT_FOUND,
                   "no input 'masks'; it has: q, k, v, mask");
    expect_refused(&s, smg_model_set_lengths(m, NULL, good, 3), SMG_NOT_FOUND, "no input ''");
    expect_refused(&s, smg_model_set_lengths(m, "mask", NULL, 3), SMG_INVALID, "3 lengths, whose array is NULL");
    expect_refused(&s, smg_model_set_lengths(m, "mask", good, -1), SMG_INVALID, "-1 lengths, less than none");
    expect_refused(&s, smg_model_set_lengths(m, "q", good, 3), SMG_UNSUPPORTED,
                   "'q' is f32: lengths are given to rows");
    expect_refused(&s, smg_model_set_lengths(m, "mask", below, 3), SMG_INVALID, "row 1: length -3 is below 0");
    expect_refused(&s, smg_model_set_lengths(m, "mask", never, 3), SMG_INVALID, "row 2: length 513, a row has 512");
    expect_refused(&s, smg_model_run(m, s.inputs, given, &out, 0), SMG_INVALID, "input 'mask' is missing");
    must(&s, smg_model_set_lengths(m, "mask", above, 3));
    expect_refused(&s, smg_model_run(m, s.inputs, given, &out, 0), SMG_INVALID, "row 0: length 71, a row has 70");
    must(&s, smg_model_set_lengths(m, "mask", good, 2));
    expect_refused(&s, smg_model_run(m, s.inputs, given, &out, 0), SMG_INVALID, "has 3 rows, 2 lengths are given");
    run_lengths(&s, m, good, 3, &out); /* nothing of it stays */
    assert_int_equal(smg_tensor_elements(&out), 3 * 9 * 3 * 16);
    assert_int_equal(smg_model_set_lengths(NULL, "mask", good, 3), SMG_INVALID);
    smg_model_close(m);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_interpreter),
        cmocka_unit_test(ends_where_they_pay),
        cmocka_unit_test(what_is_joined_is_read),
        cmocka_unit_test(padding_costs_little),
        cmocka_unit_test(unread_padding_costs_nothing),
        cmocka_unit_test(rows_that_are_read_stay),
        cmocka_unit_test(on_the_device),
        cmocka_unit_test(lengths_are_masks),
        cmocka_unit_test(wrong_lengths_are_refused),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
