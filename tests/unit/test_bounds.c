/* Loops that leave out slices. First hand-written programs: a range runs the steps that some element of the workgroup
 * needs, is printed and read, and is refused where lanes could differ. Then what lowering derives: which loops of small
 * graphs get a range, and why others do not. That the programs compute the graph's values is test_every_schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/plan_internal.h"
#include "support/check_plan.h"
#include "support/kernel_bench.h"

/* ---- programs ------------------------------------------------------------------------------------------- */

/* y[q] = sum of x[k] for q - 9 <= k < q - 2, one count a step: the steps that were run, to be seen from outside. The
 * slices are fetched ahead, through shared memory. */
static const char window[] = "kernel good\n"
                             "lanes 4 subgroup 4\n"
                             "symbol s <= 4096\n"
                             "axis q = s tile 4 grid back\n"
                             "axis k = s tile 8\n"
                             "axis r = floor(s/1000)+1 tile 2\n"
                             "grid q\n"
                             "layout 0 = [q] lanes q*4\n"
                             "layout 1 = [q, k] registers k*8 lanes q*4\n"
                             "buffer x f32 [s] value 0\n"
                             "buffer y f32 [s] value 1 written\n"
                             "buffer n f32 [s] value 2 written\n"
                             "tile sum float register [q] layout 0\n"
                             "tile steps float register [q] layout 0\n"
                             "tile sx float shared [k]\n"
                             "tile next float staging [k]\n"
                             "access 0 = x at [0] k*[1]\n"
                             "access 1 = y at [0] q*[1]\n"
                             "access 2 = n at [0] q*[1]\n"
                             "access 3 = - at [0] q*[1]\n"
                             "access 4 = - at [0] k*[1]\n"
                             "code\n"
                             "  set sum = 0\n"
                             "  set steps = 0\n"
                             "  fetch next walk [k] along k ahead 0 = load(0)\n"
                             "  loop k from sub(iota(3), 9i) to sub(iota(3), 2i)\n"
                             "    set steps = add(steps, 1)\n"
                             "    put sx walk [k] = next\n"
                             "    barrier\n"
                             "    fetch next walk [k] along k ahead 1 = load(0)\n"
                             "    accumulate sum = add over [k] layout 1 of select(and(le(sub(iota(3), 9i), iota(4)), "
                             "lt(iota(4), sub(iota(3), 2i))), sx, 0)\n"
                             "    barrier\n"
                             "  end\n"
                             "  store 1 over [q] layout 0 = sum\n"
                             "  store 2 over [q] layout 0 = steps\n";

typedef smg_status interpreter(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                               bool single);

static void check_window(interpreter *run, int64_t s) {
    bench b;
    smg_karray a[3];
    bench_open(&b, window);
    b.symbols[0] = s;
    for (int i = 0; i < 3; i++) a[i] = (smg_karray){calloc((size_t)s, sizeof(double)), s};
    for (int64_t i = 0; i < s; i++) a[0].data[i] = (double)(i * i % 17);
    if (run(b.ctx, b.k, b.symbols, a, false) != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    for (int64_t q = 0; q < s; q++) {
        double sum = 0;
        for (int64_t k = q < 9 ? 0 : q - 9; k < q - 2; k++) sum += a[0].data[k];
        int64_t base = q / 4 * 4, first = base < 9 ? 0 : (base - 9) / 8, end = base + 3 - 2;
        if (end > s) end = s;
        int64_t steps = end > first * 8 ? (end + 7) / 8 - first : 0;
        if (fabs(a[1].data[q] - sum) > 1e-9 || fabs(a[2].data[q] - (double)steps) > 1e-9)
            fail_msg("s %d, row %d: sum %g wanted %g, steps %g wanted %d", (int)s, (int)q, a[1].data[q], sum,
                     a[2].data[q], (int)steps);
    }
    for (int i = 0; i < 3; i++) free(a[i].data);
    bench_close(&b);
}

static void a_range_runs_what_its_rows_need(void **state) {
    static const int64_t sizes[] = {1, 2, 3, 8, 16, 31, 100};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        check_window(smg_kernel_interpret, sizes[i]);
        check_window(smg_kernel_interpret_lanes, sizes[i]);
    }
}

static void a_range_is_printed_and_read(void **state) {
    bench b;
    smg_text text;
    (void)state;
    bench_open(&b, window);
    smg_text_init(&text, b.ctx);
    smg_kernel_print(b.k, &text);
    assert_string_equal(smg_text_cstr(&text), window);
    smg_text_free(&text);
    bench_close(&b);
}

/* y[b] = sum of x[b, k] for first[b] <= k < length[b], whatever these are, and the steps that were run. */
static const char lengths[] = "kernel good\n"
                              "lanes 4 subgroup 4\n"
                              "symbol s <= 4096\n"
                              "axis b = 9 tile 1 grid\n"
                              "axis k = s tile 8\n"
                              "grid b\n"
                              "layout 0 = [b] lanes *4\n"
                              "layout 1 = [b, k] registers k*2 lanes k*4:2\n"
                              "buffer x f32 [9*s] value 0\n"
                              "buffer first i32 [9] value 1\n"
                              "buffer length i32 [9] value 2\n"
                              "buffer y f32 [9] value 3 written\n"
                              "buffer n f32 [9] value 4 written\n"
                              "tile sum float register [b] layout 0\n"
                              "tile steps float register [b] layout 0\n"
                              "tile sx float shared [k]\n"
                              "tile next float staging [k]\n"
                              "access 0 = x at [0] k*[1] b*[s]\n"
                              "access 1 = first at [0] b*[1]\n"
                              "access 2 = length at [0] b*[1]\n"
                              "access 3 = - at [0] k*[1]\n"
                              "access 4 = y at [0] b*[1]\n"
                              "access 5 = n at [0] b*[1]\n"
                              "code\n"
                              "  set sum = 0\n"
                              "  set steps = 0\n"
                              "  fetch next walk [k] along k ahead 0 = load(0)\n"
                              "  loop k from load(1) to load(2)\n"
                              "    set steps = add(steps, 1)\n"
                              "    put sx walk [k] = next\n"
                              "    barrier\n"
                              "    fetch next walk [k] along k ahead 1 = load(0)\n"
                              "    accumulate sum = add over [k] layout 1 of select(and(le(load(1), iota(3)), "
                              "lt(iota(3), load(2))), sx, 0)\n"
                              "    barrier\n"
                              "  end\n"
                              "  store 4 over [b] layout 0 = sum\n"
                              "  store 5 over [b] layout 0 = steps\n";

static void check_lengths(interpreter *run, int64_t s) {
    static const double first[9] = {0, 3, 8, -5, 12, 0, -2147483648.0, 17, 2147483647.0};
    static const double length[9] = {0, 20, 9, 2147483647.0, 12, 1, 2147483647.0, -4, -2147483648.0};
    bench b;
    smg_karray a[5];
    bench_open(&b, lengths);
    b.symbols[0] = s;
    for (int i = 0; i < 5; i++) {
        int64_t count = i == 0 ? 9 * s : 9;
        a[i] = (smg_karray){calloc((size_t)count, sizeof(double)), count};
    }
    for (int64_t i = 0; i < 9 * s; i++) a[0].data[i] = (double)(i * i % 17);
    memcpy(a[1].data, first, sizeof first);
    memcpy(a[2].data, length, sizeof length);
    if (run(b.ctx, b.k, b.symbols, a, false) != SMG_OK) fail_msg("%s", smg_context_error(b.ctx));
    for (int i = 0; i < 9; i++) {
        double from = fmax(first[i], 0), to = fmin(length[i], (double)s), sum = 0;
        for (int64_t k = (int64_t)from; k < (int64_t)to; k++) sum += a[0].data[i * s + k];
        double begin = floor(from / 8) * 8, steps = to > begin ? ceil((to - begin) / 8) : 0;
        if (fabs(a[3].data[i] - sum) > 1e-9 || fabs(a[4].data[i] - steps) > 1e-9)
            fail_msg("s %d, row %d: sum %g wanted %g, steps %g wanted %g", (int)s, i, a[3].data[i], sum, a[4].data[i],
                     steps);
    }
    for (int i = 0; i < 5; i++) free(a[i].data);
    bench_close(&b);
}

static void a_range_may_lie_in_memory(void **state) {
    static const int64_t sizes[] = {1, 8, 13, 24, 100};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(sizes); i++) {
        check_lengths(smg_kernel_interpret, sizes[i]);
        check_lengths(smg_kernel_interpret_lanes, sizes[i]);
    }
}

/* Each spoils what makes a load the same for the whole workgroup. */
static void a_bound_from_memory_is_checked(void **state) {
    static const struct {
        const char *from, *to, *sentence;
    } cases[] = {
        {"from load(1)", "from add(load(1), 1i)", ""},
        {"from load(1)", "from mul(min(max(load(1), -7i), 7i), 100i)", ""},
        {"from load(1)", "from mul(load(1), 2i)", "is no bound: a product of what memory says may overflow"},
        {"access 1 = first at [0] b*[1]", "access 1 = first at [0] k*[1]",
         "is no bound: a workgroup reads more than one element"},
        {"buffer first i32 [9] value 1", "buffer first i32 [9] value 1 written",
         "is no bound: the kernel writes what it reads"},
        {"access 1 = first at [0] b*[1]", "access 1 = first at [0] : index*[1] below [9] of load(2)",
         "is no bound: an index decides what it reads"},
    };
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        bench b;
        char text[sizeof lengths + 256];
        const char *at = strstr(lengths, cases[i].from);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - lengths), lengths, cases[i].to,
                       at + strlen(cases[i].from));
        bench_open(&b, text);
        smg_status status = smg_kernel_verify(b.ctx, b.k);
        if (cases[i].sentence[0] == 0 && status != SMG_OK) fail_msg("%s: %s", cases[i].to, smg_context_error(b.ctx));
        if (cases[i].sentence[0] != 0 && status != SMG_INTERNAL) fail_msg("%s: accepted", cases[i].to);
        if (cases[i].sentence[0] != 0 && !strstr(smg_context_error(b.ctx), cases[i].sentence))
            fail_msg("%s: \"%s\", wanted \"%s\"", cases[i].to, smg_context_error(b.ctx), cases[i].sentence);
        bench_close(&b);
    }
}

static const struct {
    const char *from, *to, *sentence;
} spoilt[] = {
    {"from sub(iota(3), 9i)", "", ""},
    {"to sub(iota(3), 2i)", "", ""},
    {"from sub(iota(3), 9i)", "from size(s)", ""},
    {"from sub(iota(3), 9i)", "from div(mul(neg(iota(3)), 3i), 7i)", ""},
    {"from sub(iota(3), 9i)", "from min(max(iota(3), 2i), add(iota(3), 1i))", ""},
    {"from sub(iota(3), 9i)", "from iota(4)", "a bound of the loop over 'k' moves with its own steps"},
    {"3 = - at [0] q*[1]\n", "3 = - at [0] r*[1]\n", "axis 'r' has up to 5 elements, its tile 2, and no loop"},
    {"from sub(iota(3), 9i)", "from to_int(load(0))", "is no bound: it does not only rise or only fall"},
    {"from sub(iota(3), 9i)", "from mul(iota(3), iota(3))", "is no bound: it does not only rise or only fall"},
    {"from sub(iota(3), 9i)", "from mod(iota(3), 2i)", "is no bound: it does not only rise or only fall"},
    {"from sub(iota(3), 9i)", "from 0.5", "an expression has kind 0, its place has kind 1"},
    {"loop k from sub(iota(3), 9i) to sub(iota(3), 2i)", "loop k to iota(3) unroll",
     "the loop over 'k' is written out, and sizes decide"},
    {"  set steps = 0\n", "", "tile 'steps' is read before it is written"},
    {"    set steps = add(steps, 1)\n", "    set steps = 1\n", ""},
    /* what is written in the loop alone is not there behind it */
    {"  set steps = 0\n", "  set sum = 0\n", "tile 'steps' is read before it is written"},
};

static void a_range_is_checked(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(spoilt); i++) {
        bench b;
        char text[sizeof window + 256];
        const char *at = strstr(window, spoilt[i].from);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - window), window, spoilt[i].to,
                       at + strlen(spoilt[i].from));
        bench_open(&b, text);
        smg_status status = smg_kernel_verify(b.ctx, b.k);
        if (spoilt[i].sentence[0] == 0 && status != SMG_OK) fail_msg("%s: %s", spoilt[i].to, smg_context_error(b.ctx));
        if (spoilt[i].sentence[0] != 0 && status != SMG_INTERNAL) fail_msg("%s: accepted", spoilt[i].to);
        if (spoilt[i].sentence[0] != 0 && !strstr(smg_context_error(b.ctx), spoilt[i].sentence))
            fail_msg("%s: \"%s\", wanted \"%s\"", spoilt[i].to, smg_context_error(b.ctx), spoilt[i].sentence);
        bench_close(&b);
    }
}

/* What is set in the loop alone is not there where the loop may have no step, and was there where it has. */
static void a_loop_with_a_range_may_have_no_step(void **state) {
    static const char only[] = "  set steps = 0\n", changed[] = "    set steps = add(steps, 1)\n";
    static const char range[] = " from sub(iota(3), 9i) to sub(iota(3), 2i)";
    (void)state;
    for (int ranged = 0; ranged < 2; ranged++) {
        bench b;
        char one[sizeof window + 64], two[sizeof window + 64], text[sizeof window + 64];
        const char *at = strstr(window, only);
        (void)snprintf(one, sizeof one, "%.*s%s", (int)(at - window), window, at + strlen(only));
        at = strstr(one, changed);
        (void)snprintf(two, sizeof two, "%.*s    set steps = 1\n%s", (int)(at - one), one, at + strlen(changed));
        at = strstr(two, range);
        (void)snprintf(text, sizeof text, "%.*s%s", (int)(at - two), two, ranged ? at : at + strlen(range));
        bench_open(&b, text);
        smg_status status = smg_kernel_verify(b.ctx, b.k);
        assert_int_equal(status, ranged ? SMG_INTERNAL : SMG_OK);
        if (ranged) assert_non_null(strstr(smg_context_error(b.ctx), "tile 'steps' is read before it is written"));
        bench_close(&b);
    }
}

/* The mean over workgroups: a window of seven rows in slices of eight; half of what is behind a row. */
static void a_range_costs_the_steps_that_it_has(void **state) {
    static const struct {
        const char *range;
        int64_t s;
        double share, within;
    } cases[] = {
        {"loop k", 4096, 1, 0},
        {"loop k to iota(3)", 4096, 0.5, 0.01},
        {"loop k from iota(3)", 4096, 0.5, 0.01},
        {"loop k from sub(iota(3), 1023i) to iota(3)", 4096, 7.0 / 32, 0.01}, /* the first quarter has half of it */
        {"loop k from sub(iota(3), 9i) to sub(iota(3), 2i)", 4096, 2.5 / 512, 0.5 / 512},
        {"loop k from size(s)", 4096, 1.0 / 512, 0}, /* none is counted as one */
        {"loop k to iota(3)", 1, 1, 0},
    };
    static const char range[] = "loop k from sub(iota(3), 9i) to sub(iota(3), 2i)";
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(cases); i++) {
        bench b;
        char text[sizeof window + 64];
        const char *at = strstr(window, range);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - window), window, cases[i].range, at + strlen(range));
        bench_open(&b, text);
        b.symbols[0] = cases[i].s;
        double share = plan_share(b.k, b.symbols, 1);
        if (fabs(share - cases[i].share) > cases[i].within + 1e-9)
            fail_msg("%s, s %d: %g of the steps, wanted %g", cases[i].range, (int)cases[i].s, share, cases[i].share);
        bench_close(&b);
    }
}

/* ---- what lowering derives -------------------------------------------------------------------------------- */

/* Attention of s rows by t keys; %s: what is kept, then how scores are masked. */
static const char attention[] = "graph attention\n"
                                "dim s max 4096\n"
                                "q = input f32[2, s, 16]\n"
                                "k = input f32[2, s, 16]\n"
                                "v = input f32[2, s, 16]\n"
                                "bias = input f32[s, s]\n"
                                "valid = input bool[1, s]\n"
                                "length = input i32[2, 1, 1]\n"
                                "first = input i32[2, 1, 1]\n"
                                "widths = input i32[s, 1]\n"
                                "place = iota axis=2 : i32[1, 1, s]\n"
                                "row = iota axis=0 : i32[s, 1]\n"
                                "column = iota axis=1 : i32[1, s]\n"
                                "%s\n"
                                "scores = contract(q, k) \"hqd,hkd->hqk\"\n"
                                "scale = fill 0.25 : f32[]\n"
                                "scaled = mul(scores, scale)\n"
                                "%s\n"
                                "top = reduce_max(masked) axis=-1 keep\n"
                                "shifted = sub(masked, top)\n"
                                "e = exp(shifted)\n"
                                "total = sum(e) axis=-1 keep\n"
                                "p = div(e, total)\n"
                                "o = contract(p, v) \"hqk,hkd->hqd\"\n"
                                "output o = o\n";

#define INFINITE "none = fill -inf : f32[]\nmasked = select(kept, scaled, none)"
#define LOWEST "none = fill -3.4028234663852886e38 : f32[]\nmasked = select(kept, scaled, none)"
#define LOW "none = fill -1e30 : f32[]\nmasked = select(kept, scaled, none)"
#define SOME "none = fill -1e9 : f32[]\nmasked = select(kept, scaled, none)"
#define ADDED_LOWEST                                                                                                   \
    "none = fill -3.4028234663852886e38 : f32[]\nzero = fill 0 : f32[]\nterm = select(kept, zero, none)\n"             \
    "masked = add(scaled, term)"
#define BIASED                                                                                                         \
    "biased = add(scaled, bias)\nnone = fill -3.4028234663852886e38 : f32[]\nmasked = select(kept, biased, none)"
#define BIASED_INFINITE "biased = add(scaled, bias)\nnone = fill -inf : f32[]\nmasked = select(kept, biased, none)"
#define TURNED "none = fill -inf : f32[]\nmasked = select(kept, none, scaled)"
#define CAUSAL "kept = le(column, row)"
#define BEHIND "kept = lt(row, column)"
#define PADDED "upto = le(column, row)\nkept = and(upto, valid)"
/* Up to the end where that leaves rows without an element. */
#define ASKED(end) "max(%1:" end ", mul(sub(1i, min(max(%1, 0i), 1i)), 2147483647i))"
#define LENGTH "kept = lt(place, length)"
#define STRETCH "after = le(first, place)\nupto = lt(place, length)\nkept = and(after, upto)"
#define CAUSAL_LENGTH "upto = le(column, row)\nwithin = lt(place, length)\nkept = and(upto, within)"
#define WIDTHS "kept = lt(column, widths)"
#define FAR_BEHIND "by = fill 5 : i32[]\nbefore = sub(row, by)\nkept = le(column, before)"
#define NEAR                                                                                                           \
    "by = fill 5 : i32[]\nbefore = sub(row, by)\nafter = lt(before, column)\nupto = le(column, row)\nkept = "          \
    "and(after, "                                                                                                      \
    "upto)"

static const struct {
    const char *what, *kept, *masked;
    const char *range; /* of the loop over keys; NULL: it has none */
    const char *told;
} rows[] = {
    {"an infinite mask needs nothing else", CAUSAL, INFINITE, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"nor a row that keeps an element", PADDED, INFINITE, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"nor rows that are all masked", FAR_BEHIND, INFINITE, " to add(iota(r), -4i)", "elsewhere nothing"},
    {"a condition may hold where nothing is kept", BEHIND, TURNED, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"both ends", NEAR, INFINITE, " from add(iota(r), -4i) to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"the lowest float needs rows that keep an element", CAUSAL, LOWEST, " to add(iota(r), 1i)", "elsewhere nothing"},
    {"which blocks are asked for", FAR_BEHIND, LOWEST, " to " ASKED("add(iota(r), -4i)"),
     "changes unless a row keeps nothing"},
    {"data tells nothing", PADDED, LOWEST, NULL, "nothing proves that"},
    {"what is added may be as low", CAUSAL, BIASED, NULL, "nothing proves that"},
    {"-inf is below everything", CAUSAL, BIASED_INFINITE, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"as a summand", CAUSAL, ADDED_LOWEST, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"of rows that are asked", FAR_BEHIND, ADDED_LOWEST, " to " ASKED("add(iota(r), -4i)"),
     "changes unless a row keeps nothing"},
    {"a number below all products will do", CAUSAL, LOW, " to add(iota(r), 1i)", "elsewhere nothing changes"},
    {"if rows keep an element", PADDED, LOW, NULL, "nothing proves that"},
    {"some finite number is no mask", CAUSAL, SOME, NULL, "nothing proves that"},
    {"a length from memory", LENGTH, INFINITE, " to load(m)", "only to length, elsewhere nothing changes"},
    {"begin and end", STRETCH, INFINITE, " from load(m) to load(m)",
     "only from first to length, elsewhere nothing changes"},
    {"beside another condition", CAUSAL_LENGTH, INFINITE, " to min(add(iota(r), 1i), load(m))",
     "elsewhere nothing changes"},
    {"may be 0", LENGTH, LOWEST, " to max(load(m), mul(sub(1i, min(max(load(m), 0i), 1i)), 2147483647i))",
     "elsewhere nothing changes"},
    {"a length for each row is no bound", WIDTHS, INFINITE, NULL, ""},
};

/* The coordinate's access has another number in each program. */
static void name_coordinates(char *text) {
    static const char *const calls[] = {"iota(", "load("};
    for (size_t i = 0; i < SMG_COUNT_OF(calls); i++) {
        for (char *at = text; (at = strstr(at, calls[i])) != NULL;) {
            char *number = at + strlen(calls[i]), *end = strchr(number, ')');
            *number = i == 0 ? 'r' : 'm';
            memmove(number + 1, end, strlen(end) + 1);
            at = number;
        }
    }
}

/* The graph as one kernel by its first schedule that is sliced along keys. *out_why: what lowering tells; free it. */
static void check_attention(const char *what, const char *text, const char *range, const char *told) {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *g;
    smg_space *space;
    smg_target target;
    smg_schedules schedules;
    smg_node_id nodes[64];
    int64_t nominal[SMG_SPACE_AXES], symbols[8] = {512, 512, 512, 512};
    int count = 0, sliced = 0;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    if (smg_graph_parse(ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
    bool *needed = SMG_ARENA_ARRAY(arena, bool, (size_t)g->nodes.count + 1);
    for (smg_node_id i = 0; i < g->nodes.count; i++)
        if (smg_node_computes(smg_graph_node(g, i))) nodes[count++] = i;
    needed[smg_space_source(g, g->outputs.items[0].node)] = true;
    assert_int_equal(check_target(ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_space_build(g, arena, nodes, count, needed, &space), SMG_OK);
    assert_null(space->refused);
    for (int i = 0; i < space->axes.count; i++)
        assert_true(smg_size_eval(g->sizes, space->axes.items[i].extent, symbols, &nominal[i]));
    assert_int_equal(smg_sched_candidates(space, &target, nominal, (smg_sched_room){0}, arena, &schedules), SMG_OK);
    for (int i = 0; i < schedules.items.count && sliced < 3; i++) {
        const smg_schedule *s = &schedules.items.items[i];
        smg_kernel *k;
        const char *refused;
        smg_text why, program;
        if (s->temporal < 0) continue;
        smg_text_init(&why, ctx);
        smg_text_init(&program, ctx);
        smg_lower_options options = {.name = "k", .target = &target, .verify = true, .why = &why};
        if (smg_kernel_lower(s, &options, arena, &k, &refused) != SMG_OK) fail_msg("%s", smg_context_error(ctx));
        if (k != NULL) {
            char loop[256];
            sliced++;
            smg_kernel_print(k, &program);
            name_coordinates(program.data);
            (void)snprintf(loop, sizeof loop, "  loop %s%s rolled", k->axes.items[s->temporal].name,
                           range != NULL ? range : "");
            if (strstr(smg_text_cstr(&program), loop) == NULL)
                fail_msg("%s: no \"%s\" in\n%s", what, loop, smg_text_cstr(&program));
            if (strstr(smg_text_cstr(&why), told) == NULL)
                fail_msg("%s: no \"%s\" in\n%s", what, told, smg_text_cstr(&why));
        }
        smg_text_free(&why);
        smg_text_free(&program);
    }
    assert_true(sliced > 0);
    smg_graph_destroy(g);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
}

static void slices_are_left_out_where_that_is_proved(void **state) {
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        char text[sizeof attention + 512];
        (void)snprintf(text, sizeof text, attention, rows[i].kept, rows[i].masked);
        check_attention(rows[i].what, text, rows[i].range, rows[i].told);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_runs_what_its_rows_need),
        cmocka_unit_test(a_range_is_printed_and_read),
        cmocka_unit_test(a_range_is_checked),
        cmocka_unit_test(a_range_may_lie_in_memory),
        cmocka_unit_test(a_bound_from_memory_is_checked),
        cmocka_unit_test(a_loop_with_a_range_may_have_no_step),
        cmocka_unit_test(a_range_costs_the_steps_that_it_has),
        cmocka_unit_test(slices_are_left_out_where_that_is_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
