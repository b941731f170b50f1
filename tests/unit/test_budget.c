/* Runs that are cut give the bits of those that are not: into dispatches over ranges of workgroups, and into submissions
 * that go on with each look at the ticket; with sizes that change, tensors, ranges and shared models. What is measured
 * keeps within the budget. Runs that are taken back leave the model as good as before. All of it where the host sees the
 * device's memory, and where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/runs.h"

#if SMG_VULKAN
#include "runtime/runtime.h"
#include "vulkan/vulkan.h"

static smg_program_pieces pieces(smg_model *m) {
    return smg_program_pieces_of(smg_model_program(m));
}

static void expect_same_run(runs *f, smg_model *m, int64_t rows) {
    find_wanted(f, rows);
    arrays a = arrays_of(f, rows, NULL, NULL);
    expect_ok(f, smg_model_run(m, a.in, 2, a.out, 2));
    expect_wanted(f, rows);
}

/* Budgets that nothing keeps within: as many pieces as there can be. */
static const double tiny = 1e-9;

static void the_same_bits(void **state) {
    runs *f = *state;
    if (f->missing) skip();
    expect_same_run(f, f->a, ROWS);
    const smg_program_pieces whole = pieces(f->a);
    assert_int_equal(whole.submissions, 1);
    for (int way = 1; way < 4; way++) {
        expect_ok(f, smg_model_set_budget(f->a, way & 1 ? tiny : 0, way & 2 ? tiny : 0));
        for (int i = 0; i < 6; i++) expect_same_run(f, f->a, i % 2 ? ROWS : 7);
        const smg_program_pieces cut = pieces(f->a);
        print_message("%d dispatches in %d submissions, %d in %d\n", whole.dispatches, whole.submissions,
                      cut.dispatches, cut.submissions);
        assert_true(cut.dispatches > whole.dispatches);
        assert_int_equal(cut.submissions, way & 2 ? cut.dispatches : 1);
    }
    /* A range keeps its bounds. */
    expect_ok(f, smg_model_set_range(f->a, "n", 1, ROWS));
    expect_same_run(f, f->a, ROWS);
    expect_same_run(f, f->a, 3);
    assert_true(pieces(f->a).submissions > 1);
    expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
    expect_same_run(f, f->a, ROWS);
    assert_int_equal(pieces(f->a).dispatches, whole.dispatches);
}

/* Without a budget kernels are cut that seem to outlast a watchdog, also at sizes of a range. */
static void watched(void **state) {
    runs *f = *state;
    if (f->missing) skip();
    expect_same_run(f, f->a, ROWS);
    const smg_program_pieces whole = pieces(f->a);
    smg_program_set_watchdog(smg_model_program(f->a), tiny);
    for (int i = 0; i < 6; i++) expect_same_run(f, f->a, i % 2 ? ROWS : 7);
    assert_true(pieces(f->a).dispatches > whole.dispatches);
    assert_int_equal(pieces(f->a).submissions, 1);
    expect_ok(f, smg_model_set_range(f->a, "n", 1, ROWS));
    for (int i = 0, before = 0; i < 12; i++) {
        if (i == 6) before = f->allocations;
        arrays a = arrays_of(f, i % 2 ? ROWS : 7, NULL, NULL);
        expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
        assert_true(pieces(f->a).dispatches > whole.dispatches);
        if (i == 11) assert_int_equal(f->allocations, before);
    }
    expect_same_run(f, f->a, ROWS);
    expect_ok(f, smg_model_set_budget(f->a, INFINITY, 0));
    expect_same_run(f, f->a, ROWS);
    assert_int_equal(pieces(f->a).dispatches, whole.dispatches);
    expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
    expect_same_run(f, f->a, ROWS);
    assert_int_equal(pieces(f->a).dispatches, whole.dispatches);
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
    smg_program_set_watchdog(smg_model_program(f->a), 1e6);
    expect_same_run(f, f->a, ROWS);
    assert_int_equal(pieces(f->a).dispatches, whole.dispatches);
    /* What was estimated much too short is cut behind the first run. */
    smg_program_set_watchdog(smg_model_program(f->a), 1e-6);
    expect_same_run(f, f->a, ROWS);
    expect_same_run(f, f->a, ROWS);
    assert_true(pieces(f->a).dispatches > whole.dispatches);
    smg_program_set_watchdog(smg_model_program(f->a), 0);
}

/* One recording serves what of a range need not be cut, and what need is cut, once a run has told how long kernels take. */
static void a_range_is_cut_where_it_is_long(void **state) {
    runs *f = *state;
    if (f->missing) skip();
    smg_program *p = smg_model_program(f->a);
    expect_ok(f, smg_model_set_range(f->a, "n", 1, ROWS));
    smg_program_set_watchdog(p, 1e6);
    expect_same_run(f, f->a, ROWS);
    expect_same_run(f, f->a, 1);
    const smg_program_pieces whole = pieces(f->a);
    double low = 0, high = 1e6;
    /* What is cut at all rows and not at one; begun anew, because a run that was held up leads astray. */
    for (int i = 0; i < 60; i++) {
        if (i % 15 == 0) low = 0, high = 1e6;
        const double limit = sqrt(low > 0 ? low * high : 1e-12 * high);
        smg_program_set_watchdog(p, limit);
        expect_same_run(f, f->a, ROWS);
        expect_same_run(f, f->a, ROWS);
        const bool many = pieces(f->a).dispatches > whole.dispatches;
        expect_same_run(f, f->a, 1);
        const bool one = pieces(f->a).dispatches > whole.dispatches;
        if (many && !one) break;
        *(many ? &low : &high) = limit;
        assert_true(i < 59);
    }
    expect_same_run(f, f->a, ROWS);
    smg_program_set_watchdog(p, 0);
    expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
}

/* One look at the ticket is one part at most. */
static void part_by_part(void **state) {
    runs *f = *state;
    smg_device_tensor *y = NULL;
    if (f->missing) skip();
    expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &y));
    expect_ok(f, smg_model_set_budget(f->a, 0, tiny));
    for (int i = 0; i < 4; i++) {
        smg_ticket ticket;
        bool done = false;
        int looks = 0;
        find_wanted(f, ROWS);
        arrays a = arrays_of(f, ROWS, NULL, i % 2 ? y : NULL);
        expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &ticket));
        for (; !done; looks++) expect_ok(f, smg_ticket_wait(ticket, 0, &done));
        assert_true(looks >= pieces(f->a).submissions);
        if (i % 2) expect_ok(f, smg_tensor_download(y, 0, f->got, ALL));
        expect_wanted(f, ROWS);
        assert_true(smg_model_seconds(f->a) > 0);
        /* Another model's runs come between the parts. */
        expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &ticket));
        expect_same_run(f, f->b, 7);
        find_wanted(f, ROWS);
        expect_ok(f, smg_ticket_wait(ticket, -1, &done));
        assert_true(done);
        if (i % 2) expect_ok(f, smg_tensor_download(y, 0, f->got, ALL));
        expect_wanted(f, ROWS);
    }
    smg_tensor_destroy(y);
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
}

static void shared(void **state) {
    runs *f = *state;
    smg_model *m = NULL;
    if (f->missing) skip();
    expect_ok(f, smg_model_set_budget(f->a, tiny, tiny));
    expect_ok(f, smg_model_share(f->a, f->ctx, &m));
    expect_same_run(f, m, ROWS);
    assert_true(pieces(m).submissions > 1);
    smg_model_close(m);
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
}

/* Runs that differ allocate nothing once they were measured. */
static void nothing_grows(void **state) {
    runs *f = *state;
    int before = 0;
    if (f->missing) skip();
    expect_ok(f, smg_model_set_budget(f->a, tiny, tiny));
    for (int i = 0; i < 100; i++) {
        if (i == 40) before = f->allocations;
        arrays a = arrays_of(f, i % 2 ? ROWS : 7, NULL, NULL);
        expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
    }
    assert_int_equal(f->allocations, before);
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
}

static void taken_back(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    bool done = false, cancelled = true;
    if (f->missing) skip();
    find_wanted(f, ROWS);
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    /* All of it is on the queue. */
    expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &ticket));
    expect_ok(f, smg_ticket_cancel(ticket, &cancelled));
    assert_false(cancelled);
    expect_ok(f, smg_ticket_wait(ticket, -1, &done));
    expect_wanted(f, ROWS);
    expect_ok(f, smg_ticket_cancel(ticket, &cancelled));
    assert_false(cancelled);
    /* Parts that are not, and kernels of a range. */
    for (int range = 0; range < 2; range++) {
        if (range) expect_ok(f, smg_model_set_range(f->a, "n", 1, ROWS));
        expect_ok(f, smg_model_set_budget(f->a, 0, range ? 0 : tiny));
        for (int i = 0; i < 3; i++) {
            find_wanted(f, ROWS);
            a = arrays_of(f, ROWS, NULL, NULL);
            expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &ticket));
            for (int looks = 0; looks < i; looks++) expect_ok(f, smg_ticket_wait(ticket, 0, NULL));
            expect_ok(f, smg_ticket_cancel(ticket, &cancelled));
            if (i == 0 || !range) assert_true(cancelled);
            if (!cancelled) continue;
            expect_ok(f, smg_ticket_cancel(ticket, NULL)); /* twice */
            expect_refused(f, smg_ticket_wait(ticket, -1, &done), SMG_CANCELLED, "was taken back");
            assert_true(done);
            assert_int_equal(smg_ticket_wait(ticket, -1, &done), SMG_CANCELLED);
            for (int k = 0; k < ALL; k++) assert_true(f->got[k] == 0);
            expect_same_run(f, f->a, ROWS);
            expect_same_run(f, f->a, 7);
        }
        expect_ok(f, smg_model_set_range(f->a, "n", 0, 0));
    }
    expect_ok(f, smg_model_set_budget(f->a, 0, 0));
    assert_int_equal(smg_ticket_cancel((smg_ticket){0}, &cancelled), SMG_INVALID);
    ticket.number += 100;
    expect_refused(f, smg_ticket_cancel(ticket, &cancelled), SMG_INVALID, "of a model that has given");
}

static void budgets_that_are_refused(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    if (f->missing) skip();
    expect_refused(f, smg_model_set_budget(f->a, -1, 0), SMG_INVALID, "smg_model_set_budget: -1 and 0 seconds");
    expect_refused(f, smg_model_set_budget(f->a, 0, (double)NAN), SMG_INVALID, "smg_model_set_budget: 0 and");
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, smg_model_submit(f->a, a.in, 2, a.out, 2, &ticket));
    expect_refused(f, smg_model_set_budget(f->a, 1, 1), SMG_INVALID, "a run is in flight");
    expect_ok(f, smg_ticket_wait(ticket, -1, NULL));
    assert_int_equal(smg_model_set_budget(NULL, 0, 0), SMG_INVALID);
}

/* ---- times -------------------------------------------------------------------------------------------- */

static const char attention[] =
    "graph attention\ndim n max 65536\nq = input f32[n, 32]\nk = input f32[n, 32]\n"
    "v = input f32[n, 32]\ns = contract(q, k) \"qd,kd->qk\"\nmost = reduce_max(s) axis=1 keep\n"
    "below = sub(s, most)\np = exp(below)\nall = sum(p) axis=1 keep\n"
    "w = div(p, all)\no = contract(w, v) \"qk,kd->qd\"\noutput o = o\n";

/* Attention over SMG_TOKENS tokens (2048 unless set; 32768 takes minutes on a CPU), each dispatch within 50 ms; fewer
 * tokens take 5 ms. */
static void attention_within_a_budget(void **state) {
    runs *f = *state;
    const char *asked = getenv("SMG_TOKENS");
    const int64_t tokens = asked != NULL ? atoll(asked) : 2048;
    const double budget = tokens > 8192 ? 50e-3 : 5e-3;
    smg_graph *graph = NULL;
    smg_model *m = NULL;
    if (f->missing) skip();
    const size_t bytes = (size_t)tokens * 32 * sizeof(float);
    float *x = malloc(bytes), *want = malloc(bytes), *got = malloc(bytes);
    for (int64_t i = 0; i < tokens * 32; i++) x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    expect_ok(f, smg_graph_parse(f->ctx, attention, strlen(attention), "text", &graph));
    const smg_model_desc desc = {.no_calibrate = true, .on = f->device};
    expect_ok(f, smg_model_open_graph(f->ctx, graph, &desc, &m));
    const smg_tensor in[] = {{.name = "q", .rank = 2, .dims = {tokens, 32}, .data = x},
                             {.name = "k", .rank = 2, .dims = {tokens, 32}, .data = x},
                             {.name = "v", .rank = 2, .dims = {tokens, 32}, .data = x}};
    smg_tensor out = {.name = "o", .data = want, .bytes = bytes};
    expect_ok(f, smg_model_run(m, in, 3, &out, 1));
    print_message("%lld tokens: %.3f s in one dispatch\n", (long long)tokens, smg_model_seconds(m));
    expect_ok(f, smg_model_set_budget(m, budget, 0));
    out.data = got;
    for (int i = 0; i < 4; i++) {
        memset(got, 0, bytes);
        expect_ok(f, smg_model_run(m, in, 3, &out, 1));
        assert_memory_equal(got, want, bytes);
        const smg_program_pieces cut = pieces(m);
        print_message("%.3f s in %d dispatches, the longest %.1f ms\n", smg_model_seconds(m), cut.dispatches,
                      cut.dispatch_seconds * 1e3);
    }
    assert_true(pieces(m).dispatches > 2);
    smg_model_close(m);
    smg_graph_destroy(graph);
    free(x);
    free(want);
    free(got);
}

/* A sum that a plan shares out to parts has them as workgroups, so that ranges of these are the parts in sequence. */
static void parts_of_a_sum(void **state) {
    runs *f = *state;
    enum { LENGTH = 1 << 18 };
    static const char text[] = "graph parts\ndim n max 4\nx = input f32[n, 262144]\nm = reduce_max(x) axis=1 keep\n"
                               "d = sub(x, m)\ne = exp(d)\ns = sum(e) axis=1\noutput s = s\n";
    smg_graph *graph = NULL;
    smg_model *m = NULL;
    float want = 0, got = 0;
    if (f->missing) skip();
    float *x = malloc(LENGTH * sizeof(*x));
    for (int i = 0; i < LENGTH; i++) x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    expect_ok(f, smg_graph_parse(f->ctx, text, strlen(text), "text", &graph));
    smg_target *target = (smg_target *)smg_vk_target(f->device);
    const int64_t cores = target->cores;
    target->cores = 64; /* on which one workgroup leaves most idle */
    const smg_dim one = {"n", 1};
    const smg_model_desc desc = {.no_calibrate = true, .on = f->device, .dims = &one, .dim_count = 1};
    expect_ok(f, smg_model_open_graph(f->ctx, graph, &desc, &m));
    target->cores = cores;
    const smg_tensor in = {.name = "x", .rank = 2, .dims = {1, LENGTH}, .data = x};
    smg_tensor out = {.name = "s", .data = &want, .bytes = sizeof(want)};
    expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
    const smg_program_pieces whole = pieces(m);
    assert_true(whole.dispatches > 1);
    for (int way = 1; way < 4; way++) {
        expect_ok(f, smg_model_set_budget(m, way & 1 ? tiny : 0, way & 2 ? tiny : 0));
        for (int i = 0; i < 2; i++) {
            out.data = &got;
            got = 0;
            expect_ok(f, smg_model_run(m, &in, 1, &out, 1));
            assert_memory_equal(&got, &want, sizeof(got));
        }
        print_message("%d dispatches, %d with a budget\n", whole.dispatches, pieces(m).dispatches);
        assert_true(pieces(m).dispatches > whole.dispatches + 2);
    }
    smg_model_close(m);
    smg_graph_destroy(graph);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(watched),
        cmocka_unit_test(a_range_is_cut_where_it_is_long),
        cmocka_unit_test(part_by_part),
        cmocka_unit_test(shared),
        cmocka_unit_test(nothing_grows),
        cmocka_unit_test(taken_back),
        cmocka_unit_test(budgets_that_are_refused),
        cmocka_unit_test(attention_within_a_budget),
        cmocka_unit_test(parts_of_a_sum),
    };
    int failed = cmocka_run_group_tests_name("budget, seen memory", tests, runs_setup, runs_teardown);
    runs_flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("budget, unseen memory", tests, runs_setup, runs_teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
