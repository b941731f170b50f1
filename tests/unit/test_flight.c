/* Runs that do not wait give the bits of those that do, with arrays of the host, with tensors, and one behind the other;
 * meanwhile nothing of a run may be touched; a run that fails says so to who asks; models and tensors may go at any time.
 * All of it where the host sees the device's memory, and where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smg/smg.h"
#include "support/device.h"
#include "support/runs.h"

#if SMG_VULKAN
#include "vulkan/vulkan.h"

static smg_status submit(smg_model *m, arrays *a, smg_ticket *out_ticket) {
    return smg_model_submit(m, a->in, 2, a->out, 2, out_ticket);
}

static void wait(const runs *f, smg_ticket ticket) {
    bool done = false;
    expect_ok(f, smg_ticket_wait(ticket, -1, &done));
    assert_true(done);
}

static void host_arrays(void **state) {
    runs *f = *state;
    if (f->missing) skip();
    int before = 0;
    for (int i = 0; i < 6; i++) {
        int64_t rows = i % 2 ? ROWS : 7;
        smg_ticket ticket;
        bool done = false;
        find_wanted(f, rows);
        arrays a = arrays_of(f, rows, NULL, NULL);
        if (i == 4) before = f->allocations;
        expect_ok(f, submit(f->a, &a, &ticket));
        assert_true(a.out[0].dims[0] == rows && a.out[0].rank == 2 && strcmp(a.out[0].type, "f32") == 0);
        memset(&a.out, 0, sizeof(a.out)); /* it is not looked at any more */
        while (!done) expect_ok(f, smg_ticket_wait(ticket, i % 3 * 1e-4, &done));
        expect_wanted(f, rows);
        assert_true(smg_model_seconds(f->a) > 0);
        /* Asked again. */
        expect_ok(f, smg_ticket_wait(ticket, 0, NULL));
    }
    assert_int_equal(f->allocations, before);
}

/* The model's own memory for outputs, and runs that wait in between. */
static void memory_of_the_model(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    if (f->missing) skip();
    find_wanted(f, ROWS);
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    a.out[0].data = NULL;
    expect_ok(f, submit(f->a, &a, &ticket));
    assert_non_null(a.out[0].data);
    wait(f, ticket);
    assert_memory_equal(a.out[0].data, f->want, sizeof(f->want));
    a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
    expect_wanted(f, ROWS);
}

/* Both in flight, the second on what the first one writes. */
static void one_behind_the_other(void **state) {
    runs *f = *state;
    smg_device_tensor *t = NULL, *u = NULL;
    smg_ticket first, second;
    static float once[ALL];
    if (f->missing) skip();
    expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &t));
    expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &u));
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    a.out[0].data = once;
    expect_ok(f, smg_model_run(f->b, a.in, 2, a.out, 2));
    a = arrays_of(f, ROWS, NULL, NULL);
    a.in[1].data = once;
    a.out[0].data = f->want;
    expect_ok(f, smg_model_run(f->b, a.in, 2, a.out, 2));
    for (int i = 0; i < 3; i++) {
        memset(f->got, 0, sizeof(f->got));
        arrays up = arrays_of(f, ROWS, NULL, t), down = arrays_of(f, ROWS, t, u);
        expect_ok(f, submit(f->a, &up, &first));
        expect_ok(f, submit(f->b, &down, &second));
        expect_refused(f, smg_tensor_download(t, 0, f->got, ALL), SMG_INVALID, "tensor 'y' is used by a run in flight");
        expect_refused(f, smg_tensor_upload(t, 0, f->got, ALL), SMG_INVALID, "is used by a run in flight");
        wait(f, second);
        expect_refused(f, smg_tensor_upload(t, 0, f->got, 1), SMG_INVALID, "is used by a run in flight");
        wait(f, first);
        expect_ok(f, smg_tensor_download(u, 0, f->got, ALL));
        assert_memory_equal(f->got, f->want, sizeof(f->want));
    }
    smg_tensor_destroy(t);
    smg_tensor_destroy(u);
}

static void one_at_a_time(void **state) {
    runs *f = *state;
    smg_ticket ticket, none = {0};
    if (f->missing) skip();
    find_wanted(f, ROWS);
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, submit(f->a, &a, &ticket));
    arrays b = arrays_of(f, ROWS, NULL, NULL);
    expect_refused(f, submit(f->a, &b, &none), SMG_INVALID, "of the model is in flight: wait for its ticket");
    assert_true(none.model == NULL && none.number == 0);
    expect_refused(f, smg_model_run(f->a, b.in, 2, b.out, 2), SMG_INVALID, "in flight: wait for its ticket");
    wait(f, ticket);
    expect_wanted(f, ROWS);
    none = ticket;
    none.number++;
    expect_refused(f, smg_ticket_wait(none, 0, NULL), SMG_INVALID, "of a model that has given");
    none.number = 0;
    expect_refused(f, smg_ticket_wait(none, 0, NULL), SMG_INVALID, "ticket 0 of a model that has given");
    assert_int_equal(smg_ticket_wait((smg_ticket){0}, 0, NULL), SMG_INVALID);
    assert_int_equal(smg_model_submit(NULL, a.in, 2, a.out, 2, &none), SMG_INVALID);
    expect_refused(f, submit(f->a, &a, NULL), SMG_INVALID, "no place for the ticket");
    expect_refused(f, smg_model_submit(f->a, a.in, 2, NULL, 2, &none), SMG_INVALID, "whose array is NULL");
    expect_refused(f, smg_model_submit(f->a, a.in, 2, a.out, 3, &none), SMG_INVALID, "3 outputs are asked for");
    expect_refused(f, smg_model_submit(f->a, a.in, 1, a.out, 2, &none), SMG_INVALID, "input 'x' is missing");
    a.out[0].bytes = 5;
    expect_refused(f, submit(f->a, &a, &none), SMG_INVALID, "output 'y' takes 7680 bytes, there is room for 5");
    /* What was to go up with the run that was refused is forgotten. */
    a = arrays_of(f, 7, NULL, NULL);
    expect_ok(f, submit(f->a, &a, &none));
    wait(f, none);
    a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, submit(f->a, &a, &none));
    expect_ok(f, smg_ticket_wait(ticket, 0, NULL)); /* an earlier run's */
    wait(f, none);
    expect_wanted(f, ROWS);
}

static void a_run_that_fails(void **state) {
    runs *f = *state;
    smg_ticket ticket;
    bool done = false;
    if (f->missing) skip();
    find_wanted(f, ROWS);
    f->ids[3] = 77;
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, submit(f->a, &a, &ticket));
    f->ids[3] = 3;
    expect_refused(f, smg_ticket_wait(ticket, -1, &done), SMG_INVALID, "index 77 outside its table [0, 6)");
    assert_true(done);
    assert_int_equal(smg_ticket_wait(ticket, -1, &done), SMG_INVALID);
    expect_ok(f, submit(f->a, &a, &ticket));
    wait(f, ticket);
    expect_wanted(f, ROWS);
}

/* Of the process, what the driver takes included; 0: the system does not tell, or a sanitizer keeps what was freed. */
static long resident_pages(void) {
    long all = 0, resident = 0;
#if !defined(__SANITIZE_ADDRESS__)
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
    (void)fclose(file);
#endif
    (void)all;
    return resident;
}

/* Sizes, tensors and ways to wait take turns; nothing grows, of the host or of the device (the CPU driver's memory is the
 * process's; its own tables double once or twice, by 1.6 MiB in 70000 runs). */
static void ten_thousand_runs(void **state) {
    runs *f = *state;
    enum { RUNS = 10000, WARM = 1000, SPARE_PAGES = 512 };
    long pages = 0;
    smg_device_tensor *y[2] = {NULL, NULL};
    if (f->missing) skip();
    for (int i = 0; i < 2; i++) expect_ok(f, smg_model_create_tensor(f->a, "y", ALL, &y[i]));
    int before = 0;
    for (int i = 0; i < RUNS; i++) {
        int64_t rows = i % 2 ? ROWS : 7;
        smg_ticket ticket;
        if (i == 24) before = f->allocations; /* every combination was there */
        if (i == WARM) pages = resident_pages();
        arrays a = arrays_of(f, rows, NULL, i % 3 ? y[i % 3 - 1] : NULL);
        if (i % 4 == 3) {
            expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
        } else {
            expect_ok(f, submit(f->a, &a, &ticket));
            wait(f, ticket);
        }
    }
    assert_int_equal(f->allocations, before);
    const long grown = resident_pages() - pages;
    if (grown > SPARE_PAGES) fail_msg("%ld pages more after %d runs", grown, RUNS - WARM);
    find_wanted(f, ROWS);
    arrays a = arrays_of(f, ROWS, NULL, NULL);
    expect_ok(f, smg_model_run(f->a, a.in, 2, a.out, 2));
    expect_wanted(f, ROWS);
    smg_tensor_destroy(y[0]);
    smg_tensor_destroy(y[1]);
}

/* Before their run is over. */
static void what_goes_early(void **state) {
    runs *f = *state;
    smg_device_tensor *x = NULL, *y = NULL;
    smg_model *m = NULL;
    smg_ticket ticket;
    if (f->missing) skip();
    find_wanted(f, ROWS);
    expect_ok(f, runs_open(f, &m));
    for (int i = 0; i < 2; i++) {
        expect_ok(f, smg_model_create_tensor(m, "x", ALL, &x));
        expect_ok(f, smg_model_create_tensor(m, "y", ALL, &y));
        expect_ok(f, smg_tensor_upload(x, 0, f->x, ALL));
        arrays a = arrays_of(f, ROWS, x, y);
        expect_ok(f, submit(m, &a, &ticket));
        smg_tensor_destroy(x);
        smg_tensor_destroy(y);
        if (i == 0) wait(f, ticket);
    }
    assert_memory_equal(f->total, f->want_total, sizeof(f->total));
    smg_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_arrays),          cmocka_unit_test(memory_of_the_model),
        cmocka_unit_test(one_behind_the_other), cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(a_run_that_fails),     cmocka_unit_test(what_goes_early),
        cmocka_unit_test(ten_thousand_runs),
    };
    device_compiles_plainly();
    int failed = cmocka_run_group_tests_name("flight, seen memory", tests, runs_setup, runs_teardown);
    runs_flags = SMG_VK_UNSEEN_MEMORY;
    failed += cmocka_run_group_tests_name("flight, unseen memory", tests, runs_setup, runs_teardown);
    return device_result(failed);
}

#else

int main(void) {
    return 77;
}

#endif
