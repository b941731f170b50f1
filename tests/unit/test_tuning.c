/* Tuning: files of what was measured are read back as they were written, and nothing else is taken from them; a plan
 * takes a measured schedule where it is one of its own; on the device schedules are measured, kept and taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/output.h"

static const char model[] = "graph model\ndim n max 4096\nx = input f32[n, 256]\n"
                            "w = constant f32[256, 256] random seed=1 scale=0.1\nc = constant f32[256] random seed=2\n"
                            "p = contract(x, w) \"ni,io->no\"\nq = add(p, c)\nr = relu(q)\n"
                            "s = reduce_max(r) axis=1\noutput y = r\noutput s = s\n";

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    int ignored; /* files, by the log */
    char folder[512];
} fixture;

static void on_log(void *user, smg_log_level level, const char *line) {
    fixture *f = user;
    f->ignored += level == SMG_LOG_WARNING && strstr(line, "ignored") != NULL;
}

static int setup(void **state) {
    static fixture f;
    static int number;
    char root[256];
    f = (fixture){0};
    test_output(root, sizeof(root), "tuning");
    snprintf(f.folder, sizeof(f.folder), "%s/%016llx/%d", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()), number++);
    const smg_context_desc desc = {.log = on_log, .user = &f, .cache_dir = f.folder};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_path_make_dirs(f.ctx, f.folder), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static const char *path_of(fixture *f, const char *name) {
    return smg_arena_format(f->arena, "%s/%s", f->folder, name);
}

/* A built-in target as if it were a device. */
static smg_target device_target(fixture *f) {
    smg_target target;
    assert_int_equal(smg_target_named(f->ctx, "careful", &target), SMG_OK);
    snprintf(target.driver, sizeof(target.driver), "driver 1");
    target.uuid[3] = 7;
    return target;
}

/* ---- files ---------------------------------------------------------------------------------------- */

static const smg_measured rows[] = {{3, 10, 2e-6, 4e-6}, {UINT64_MAX, 11, 1.25e-4, 1.25e-4}};

enum { CUTS = 3, TRIED = 3 };
static const smg_cut cuts[CUTS] = {
    {9, SMG_CUT_TOGETHER, 1e-4, 2e-4, 0}, {10, SMG_CUT_APART, 2e-4, 1e-4, 0}, {11, SMG_CUT_PARTS, 1e-4, 2e-4, 512}};

static const smg_timing timings[] = {
    {3, 10, 2e-6, SMG_TIMING_PASSES}, {3, 11, 3e-6, SMG_TIMING_BEATEN}, {4, 1, 5e-6, SMG_TIMING_ALONE}};

static const smg_cut tried[TRIED] = {
    {7, SMG_CUT_APART, 1e-4, 2e-4, 0}, {11, SMG_CUT_PARTS, 3e-4, 1e-4, 0}, {11, SMG_CUT_PARTS, 2e-4, 1e-4, 1024}};

static const char *write_rows(fixture *f, const smg_target *target, const char *path) {
    smg_measured items[2] = {rows[0], rows[1]};
    smg_cut decided[CUTS], left[TRIED];
    memcpy(decided, cuts, sizeof(cuts));
    memcpy(left, tried, sizeof(tried));
    smg_timing times[3] = {timings[0], timings[1], timings[2]};
    const smg_tuning tuning = {.items = items,
                               .count = 2,
                               .cuts = decided,
                               .cut_count = CUTS,
                               .timings = times,
                               .timing_count = 3,
                               .tried = left,
                               .tried_count = TRIED};
    const char *out = NULL;
    assert_int_equal(smg_tuning_write(f->ctx, target, path, &tuning, f->arena, &out), SMG_OK);
    return out;
}

static smg_status read_rows(fixture *f, const smg_target *target, const char *path, smg_tuning *out) {
    smg_status status = smg_tuning_read(f->ctx, target, path, f->arena, out);
    smg_context_clear_error(f->ctx);
    return status;
}

static bool same_cuts(const smg_cut *a, int count, const smg_cut *b, int other) {
    bool same = count == other;
    for (int i = 0; same && i < count; i++) {
        same = a[i].at == b[i].at && a[i].kind == b[i].kind && a[i].chunk == b[i].chunk;
        assert_float_equal(a[i].seconds, b[i].seconds, 1e-9);
        assert_float_equal(a[i].apart, b[i].apart, 1e-9);
    }
    return same;
}

static void test_round_trip(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    smg_tuning back;
    const char *path = write_rows(f, &target, NULL);
    assert_non_null(strstr(path, f->folder));
    assert_int_equal(read_rows(f, &target, NULL, &back), SMG_OK);
    assert_int_equal(back.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(back.items[i].at == rows[i].at && back.items[i].schedule == rows[i].schedule);
        assert_float_equal(back.items[i].seconds, rows[i].seconds, 1e-9);
        assert_float_equal(back.items[i].cheapest, rows[i].cheapest, 1e-9);
    }
    assert_true(same_cuts(back.cuts, back.cut_count, cuts, CUTS));
    assert_int_equal(back.timing_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(back.timings[i].at == timings[i].at && back.timings[i].schedule == timings[i].schedule);
        assert_int_equal(back.timings[i].kind, timings[i].kind);
        assert_float_equal(back.timings[i].seconds, timings[i].seconds, 1e-9);
    }
    assert_true(same_cuts(back.tried, back.tried_count, tried, TRIED));
    smg_measured again = {3, 12, 1e-6, 4e-6};
    smg_cut other = {10, SMG_CUT_TOGETHER, 1e-4, 3e-4, 0}, now_decided = {7, SMG_CUT_TOGETHER, 1e-4, 3e-4, 0};
    smg_cut both[2] = {other, now_decided};
    smg_timing anew[2] = {{4, 1, 6e-6, SMG_TIMING_PASSES}, {3, 12, 1e-6, SMG_TIMING_PASSES}};
    const smg_tuning more = {
        .items = &again, .count = 1, .cuts = both, .cut_count = 2, .timings = anew, .timing_count = 2};
    assert_int_equal(smg_tuning_write(f->ctx, &target, NULL, &more, f->arena, &path), SMG_OK);
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    assert_int_equal(back.timing_count, 4);
    assert_true(back.timings[2].schedule == 12 && back.timings[3].kind == SMG_TIMING_PASSES);
    assert_int_equal(back.tried_count, 2); /* of parts: other nodes */
    assert_int_equal(back.count, 2);
    assert_true(back.items[0].schedule == 12 && back.items[1].schedule == 11);
    assert_int_equal(back.cut_count, 4);
    assert_true(back.cuts[0].at == 7 && back.cuts[1].at == 9 && back.cuts[2].at == 10 &&
                back.cuts[2].kind == SMG_CUT_TOGETHER);
    assert_int_equal(read_rows(f, &target, "", &back), SMG_OK);
    assert_int_equal(back.count, 0);
}

/* Another number of parts takes the place of the one that decided; what decides is not tried. */
static void test_parts_take_the_place(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    smg_tuning back;
    const char *path = write_rows(f, &target, NULL);
    smg_cut now = {11, SMG_CUT_PARTS, 5e-5, 1e-4, 1024}, before = {11, SMG_CUT_PARTS, 1e-4, 5e-5, 512};
    const smg_tuning more = {.cuts = &now, .cut_count = 1, .tried = &before, .tried_count = 1};
    uint64_t hash[3];
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    hash[0] = smg_tuning_hash(1, &back);
    assert_int_equal(smg_tuning_write(f->ctx, &target, NULL, &more, f->arena, &path), SMG_OK);
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    assert_true(back.cut_count == CUTS && back.cuts[2].chunk == 1024 && back.cuts[2].at == 11);
    assert_true(back.tried_count == 3 && back.tried[1].chunk == 0 && back.tried[2].chunk == 512);
    assert_true(smg_tuning_find_cut(&back, &now) == &back.cuts[2]);
    assert_true(smg_tuning_find_cut(&back, &before) == &back.tried[2]);
    before.chunk = 2048;
    assert_null(smg_tuning_find_cut(&back, &before));
    before = (smg_cut){.at = 11};
    assert_null(smg_tuning_find_cut(&back, &before)); /* these nodes as one kernel are another question */
    hash[1] = smg_tuning_hash(1, &back);
    back.tried_count = 0;
    hash[2] = smg_tuning_hash(1, &back);
    assert_true(hash[0] != hash[1] && hash[1] == hash[2]);
}

/* Of more schedules than a kernel may have the fastest stay, and other kernels keep theirs. */
static void test_most_timings(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    smg_tuning back;
    const char *path = NULL;
    enum { MANY = SMG_MOST_TIMINGS + 3 };
    smg_timing all[MANY];
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < MANY; i++)
            all[i] = (smg_timing){5, (uint64_t)(run * 1000 + i), (MANY - i + run * 10) * 1e-6, SMG_TIMING_PASSES};
        all[0].at = 4;
        const smg_tuning tuning = {.timings = all, .timing_count = MANY};
        assert_int_equal(smg_tuning_write(f->ctx, &target, NULL, &tuning, f->arena, &path), SMG_OK);
        assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
        assert_int_equal(back.timing_count, SMG_MOST_TIMINGS + 1 + run);
    }
    int of_first = 0;
    for (int i = 0; i < back.timing_count; i++) {
        assert_true(back.timings[i].at == 4 || back.timings[i].seconds < (SMG_MOST_TIMINGS / 2 + 6) * 1e-6);
        of_first += back.timings[i].schedule < 1000;
    }
    assert_in_range(of_first, SMG_MOST_TIMINGS / 2 + 1, SMG_MOST_TIMINGS / 2 + 7);
}

static void test_another_device(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    const char *path = write_rows(f, &target, path_of(f, "own.tuning"));
    smg_tuning back;
    target.uuid[0]++;
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    assert_int_equal(back.count, 0);
    assert_int_equal(f->ignored, 1);
    target.uuid[0]--;
    snprintf(target.driver, sizeof(target.driver), "driver 2");
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    assert_int_equal(back.count, 0);
    assert_int_equal(f->ignored, 2);
    assert_int_equal(read_rows(f, &target, NULL, &back), SMG_OK); /* the cache has none of it */
    assert_int_equal(back.count + f->ignored, 2);
}

static smg_status read_bytes(fixture *f, const smg_target *target, const char *text, size_t size) {
    const char *path = path_of(f, "bytes.tuning");
    smg_tuning back;
    assert_int_equal(smg_file_write_atomic(f->ctx, path, text, size), SMG_OK);
    return read_rows(f, target, path, &back);
}

/* A body of this one's with a hash that is right; kernels, and more in the lines behind. */
static smg_status read_body(fixture *f, const smg_target *target, const char *whole, const char *kernels) {
    const char *start = strchr(whole, '\n') + 1, *lines = strstr(start, "kernel");
    const char *body = smg_arena_format(f->arena, "%.*s%s", (int)(lines - start), start, kernels);
    const char *text = smg_arena_format(f->arena, "smg tuning 3 %016llx\n%s",
                                        (unsigned long long)smg_hash_text(SMG_HASH_SEED, body), body);
    return read_bytes(f, target, text, strlen(text));
}

/* Of the same device, by other sources: schedules have other numbers there. */
static void test_another_version(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    smg_tuning back;
    char *text = NULL;
    size_t size = 0;
    const char *path = write_rows(f, &target, path_of(f, "own.tuning"));
    assert_int_equal(smg_file_read(f->ctx, path, &text, &size), SMG_OK);
    const char *body = strchr(text, '\n') + 1, *line = strstr(body, "smg = ");
    assert_non_null(line);
    const char *digit = strchr(line, '\n') - 1;
    const char *other =
        smg_arena_format(f->arena, "%.*s%c%s", (int)(digit - body), body, *digit == '0' ? '1' : '0', digit + 1);
    const char *whole = smg_arena_format(f->arena, "smg tuning 3 %016llx\n%s",
                                         (unsigned long long)smg_hash_text(SMG_HASH_SEED, other), other);
    assert_int_equal(smg_file_write_atomic(f->ctx, path, whole, strlen(whole)), SMG_OK);
    assert_int_equal(read_rows(f, &target, path, &back), SMG_OK);
    assert_int_equal(back.count, 0);
    assert_int_equal(f->ignored, 1);
    smg_free(f->ctx, text, size + 1);
}

/* As an smg before timings, or sums in parts, wrote it: whole, it is another version's; damaged, it is that. */
static void test_older_format(void **state) {
    static const char body[] = "smg = 0.1.0 0123456789abcdef\ndevice = any\ndriver = any\nuuid = 00\n"
                               "kernel 0000000000000003 000000000000000a 2.000 4.000\n";
    fixture *f = *state;
    smg_target target = device_target(f);
    const unsigned long long hash = smg_hash_text(SMG_HASH_SEED, body);
    const char *text = "";
    for (int version = 1; version <= 2; version++) {
        text = smg_arena_format(f->arena, "smg tuning %d %016llx\n%s", version, hash, body);
        f->ignored = 0;
        assert_int_equal(read_bytes(f, &target, text, strlen(text)), SMG_OK);
        assert_int_equal(f->ignored, 1);
        assert_int_equal(read_bytes(f, &target, text, strlen(text) - 1), SMG_FORMAT);
    }
    text = smg_arena_format(f->arena, "smg tuning 4 %016llx\n%s", hash, body);
    assert_int_equal(read_bytes(f, &target, text, strlen(text)), SMG_FORMAT);
    assert_int_equal(f->ignored, 1);
}

static void test_broken(void **state) {
    fixture *f = *state;
    smg_target target = device_target(f);
    smg_tuning back;
    char *text = NULL;
    size_t size = 0;
    const char *cached = write_rows(f, &target, NULL);
    assert_int_equal(smg_file_read(f->ctx, cached, &text, &size), SMG_OK);
    assert_int_equal(read_bytes(f, &target, text, size), SMG_OK);
    for (size_t cut = 0; cut < size; cut++) assert_int_equal(read_bytes(f, &target, text, cut), SMG_FORMAT);
    for (size_t at = 0; at < size; at++) {
        bool older = at == strlen("smg tuning "); /* by its number, which no hash is over */
        text[at] ^= 1;
        assert_int_equal(read_bytes(f, &target, text, size), older ? SMG_OK : SMG_FORMAT);
        text[at] ^= 1;
    }
    assert_int_equal(f->ignored, 1);
    f->ignored = 0;
    static const char *const kernels[] = {
        "kernel 0000000000000003 000000000000000a 2.0 nan\n",
        "kernel 0000000000000003 000000000000000a 2.0 -1\n",
        "kernel 0000000000000003 000000000000000a 2.0\n",
        "kernel 0000000000000003 000000000000000a 2.0 4.0",
        "kernel 0000000000000003 00a 2.0 4.0\n",
        "kernel 3 000000000000000a 2.0 4.0\n",
        "kernel 0000000000000003 000000000000000a 1e300 4.0\n",
        "kernels\n",
        "cut 0000000000000003 2.0 4.0\n",
        "apart 0000000000000003 2.0\n",
        "together 0000000000000003 000000000000000a 2.0 4.0\n",
        "apart 0000000000000003 2.0 4.0\ntogether 0000000000000003 2.0 4.0\n",
        "apart 0000000000000003 2.0 4.0\nkernel 0000000000000003 000000000000000a 2.0 4.0\n",
        "kernel 0000000000000003 000000000000000a 2.0 4.0\nkernel 0000000000000003 000000000000000a 2.0 4.0\n",
        "\n",
        "passes 0000000000000003 000000000000000a\n",
        "passes 0000000000000003 000000000000000a 2.0 4.0\n",
        "passes 0000000000000003 000000000000000a -2.0\n",
        "passes 0000000000000003 000000000000000a inf\n",
        "passes 0000000000000003 000000000000000a 2.0",
        "passed 0000000000000003 000000000000000a 2.0\n",
        "beaten 0000000000000003 00000000000000a 2.0\n",
        "alone 0000000000000003 000000000000000a 2.0\npasses 0000000000000003 000000000000000a 2.0\n",
        "passes 0000000000000003 000000000000000b 2.0\npasses 0000000000000003 000000000000000a 2.0\n",
        "passes 0000000000000004 000000000000000a 2.0\npasses 0000000000000003 000000000000000b 2.0\n",
        "passes 0000000000000003 000000000000000a 2.0\nkernel 0000000000000003 000000000000000a 2.0 4.0\n",
        "apart 0000000000000003 2.0 4.0\npasses 0000000000000003 000000000000000a 2.0\n",
        "tried 0000000000000003 2.0\n",
        "tried 0000000000000003 2.0 4.0\ntried 0000000000000003 2.0 4.0\n",
        "tried 0000000000000003 2.0 4.0\napart 0000000000000004 2.0 4.0\n",
        "parts 0000000000000003 2.0 4.0\n",
        "parts 0000000000000003  2.0 4.0\n",
        "parts 0000000000000003 -512 2.0 4.0\n",
        "parts 0000000000000003 +512 2.0 4.0\n",
        "parts 0000000000000003 0x200 2.0 4.0\n",
        "parts 0000000000000003 512.0 2.0 4.0\n",
        "parts 0000000000000003 9223372036854775808 2.0 4.0\n",
        "parts 0000000000000003 512 2.0\n",
        "parts 0000000000000003 512 2.0 nan\n",
        "parts 0000000000000003 512 2.0 4.0",
        "parts 3 512 2.0 4.0\n",
        "parted 0000000000000003 512 2.0 4.0\n",
        "parts 0000000000000003 512 2.0 4.0\nparts 0000000000000003 1024 2.0 4.0\n",
        "apart 0000000000000003 2.0 4.0\nparts 0000000000000003 1024 2.0 4.0\n",
        "tried parts 0000000000000003 2.0 4.0\n",
        "tried parts 0000000000000003 512 2.0 4.0\ntried parts 0000000000000003 512 2.0 4.0\n",
        "tried parts 0000000000000003 512 2.0 4.0\ntried parts 0000000000000003 0 2.0 4.0\n",
        "tried parts 0000000000000003 512 2.0 4.0\nparts 0000000000000004 512 2.0 4.0\n",
    };
    for (size_t i = 0; i < SMG_COUNT_OF(kernels); i++)
        assert_int_equal(read_body(f, &target, text, kernels[i]), SMG_FORMAT);
    const char *many = "";
    for (int i = 0; i <= SMG_MOST_TIMINGS; i++) {
        assert_int_equal(read_body(f, &target, text, many), SMG_OK);
        many = smg_arena_format(f->arena, "%spasses 0000000000000003 %016x 2.0\n", many, (unsigned)i);
    }
    assert_int_equal(read_body(f, &target, text, many), SMG_FORMAT);
    assert_int_equal(read_body(f, &target, text, "kernel 0000000000000003 000000000000000a 2.0 4.0\n"), SMG_OK);
    assert_int_equal(read_body(f, &target, text, ""), SMG_OK);
    assert_int_equal(read_body(f, &target, text,
                               "parts 0000000000000003 512 2.0 4.0\ntried 0000000000000003 2.0 4.0\n"
                               "tried parts 0000000000000003 0 2.0 4.0\n"
                               "tried parts 0000000000000003 999999999999999999 2.0 4.0\n"),
                     SMG_OK);
    assert_int_not_equal(read_rows(f, &target, path_of(f, "none.tuning"), &back), SMG_OK);
    assert_int_equal(f->ignored, 0);
    assert_int_equal(smg_file_write_atomic(f->ctx, cached, text, size / 2), SMG_OK);
    assert_int_equal(read_rows(f, &target, NULL, &back), SMG_OK); /* that nobody named */
    assert_int_equal(back.count, 0);
    assert_int_equal(f->ignored, 1);
    smg_free(f->ctx, text, size + 1);
}

/* ---- plans ---------------------------------------------------------------------------------------- */

static smg_graph *parse(fixture *f, const char *text) {
    smg_graph *g = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return g;
}

static smg_plan *plan(fixture *f, const smg_graph *g, smg_plan_options options) {
    static const int64_t nominal[] = {512};
    smg_target target;
    smg_plan *made = NULL;
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    if (options.nominal == NULL) options.nominal = nominal;
    if (smg_plan_make(g, &target, &options, f->arena, &made) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return made;
}

static void test_plan_takes_what_was_measured(void **state) {
    static const int64_t others[] = {64};
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    enum { RIVALS = 5 };
    const smg_plan *by_price = plan(f, g, (smg_plan_options){.rivals = RIVALS});
    const smg_pstep *first = &by_price->steps.items[0];
    assert_in_range(first->rivals.count, 2, RIVALS);
    for (int i = 0; i < first->rivals.count; i++) {
        const smg_rival *r = &first->rivals.items[i];
        assert_true(r->choice.at == first->choice.at && r->choice.schedule != first->choice.schedule);
        assert_true(r->kernel != NULL && r->price.seconds >= first->price.seconds * 0.997);
    }
    const smg_choice *fastest = &first->rivals.items[1].choice;
    smg_measured m = {fastest->at, fastest->schedule, 1e-6, 2e-6};
    const smg_plan_options tuned = {.measured = &m, .measured_count = 1};
    const smg_plan *measured = plan(f, g, tuned);
    assert_int_equal(measured->steps.count, by_price->steps.count);
    assert_true(measured->steps.items[0].choice.schedule == fastest->schedule);
    assert_true(measured->steps.items[0].measured == &m);
    assert_true(measured->steps.items[0].price.seconds == first->rivals.items[1].price.seconds);
    assert_non_null(strstr(measured->steps.items[0].because, "measured: the fastest took 1.00 us"));

    m.schedule = first->choice.schedule;
    m.seconds = m.cheapest;
    assert_non_null(strstr(plan(f, g, tuned)->steps.items[0].because, "measured: none is faster"));
    m.schedule = ~fastest->schedule; /* no schedule of these nodes */
    assert_true(plan(f, g, tuned)->steps.items[0].choice.schedule == first->choice.schedule);
    assert_null(plan(f, g, tuned)->steps.items[0].measured);
    m.schedule = fastest->schedule;
    smg_plan_options other = tuned;
    other.nominal = others;
    assert_null(plan(f, g, other)->steps.items[0].measured);
    other = tuned;
    other.rank = 1;
    assert_null(plan(f, g, other)->steps.items[0].measured);
    const smg_plan *ranked = plan(f, g, (smg_plan_options){.rank = 1});
    assert_true(plan(f, g, other)->steps.items[0].choice.schedule == ranked->steps.items[0].choice.schedule);
    const smg_choice rejected = {.schedule = fastest->schedule, .registers = INT64_MAX};
    other = (smg_plan_options){.rivals = RIVALS, .driver = {.rejected = &rejected, .rejected_count = 1}};
    const smg_pstep *without = &plan(f, g, other)->steps.items[0];
    for (int i = 0; i < without->rivals.count; i++)
        assert_true(without->rivals.items[i].choice.schedule != fastest->schedule);
    smg_graph_destroy(g);
}

/* Another model, of other names, that has these operations among others. */
static void test_other_models_take_it(void **state) {
    static const char other[] = "graph other\ndim m max 4096\nu = input f32[m, 256]\nk = input f32[m, 64]\n"
                                "top = reduce_max(k) axis=0 keep\nv = sub(k, top)\n"
                                "a = constant f32[256, 256] random seed=7\nb = constant f32[256] random seed=8\n"
                                "d = contract(u, a) \"ni,io->no\"\ne = add(d, b)\ng = relu(e)\n"
                                "s = reduce_max(g) axis=1\noutput z = g\noutput s = s\noutput v = v\n";
    fixture *f = *state;
    smg_graph *g = parse(f, model), *o = parse(f, other);
    const smg_plan *by_price = plan(f, g, (smg_plan_options){.rivals = 2});
    smg_measured all[8];
    int found = 0, count = by_price->steps.count;
    assert_in_range(count, 1, 8);
    for (int i = 0; i < count; i++) {
        const smg_pstep *step = &by_price->steps.items[i];
        assert_true(step->rivals.count > 0);
        all[i] = (smg_measured){step->choice.at, step->rivals.items[0].choice.schedule, 1e-6, 2e-6};
    }
    const smg_plan *tuned = plan(f, o, (smg_plan_options){.measured = all, .measured_count = count});
    for (int i = 0; i < tuned->steps.count; i++) found += tuned->steps.items[i].measured != NULL;
    assert_true(tuned->steps.count > count && found > 0);
    smg_graph_destroy(g);
    smg_graph_destroy(o);
}

static void test_plan_takes_measured_cuts(void **state) {
    static const char pair[] = "graph pair\ndim n max 4096\nx = input f32[n, 256]\n"
                               "w = constant f32[256, 256] random seed=1\nc = constant f32[256] random seed=2\n"
                               "p = contract(x, w) \"ni,io->no\"\nq = add(p, c)\noutput y = q\n";
    fixture *f = *state;
    smg_graph *g = parse(f, pair);
    const smg_plan *whole = plan(f, g, (smg_plan_options){0});
    assert_int_equal(whole->steps.count, 1);
    smg_cut cut = {whole->steps.items[0].choice.at, SMG_CUT_APART, 2e-6, 1e-6, 0};
    smg_plan_options options = {.cuts = &cut, .cut_count = 1};
    const smg_plan *apart = plan(f, g, options);
    assert_int_equal(apart->steps.count, 2);
    assert_non_null(strstr(apart->steps.items[0].because, "a run took 2.00 us so, 1.00 us apart, as was measured"));
    options.objective = SMG_OBJECTIVE_DISPATCHES;
    assert_int_equal(plan(f, g, options)->steps.count, 1);
    options = (smg_plan_options){.cuts = &cut, .cut_count = 1, .unfused = true};
    assert_int_equal(plan(f, g, options)->steps.count, plan(f, g, (smg_plan_options){.unfused = true})->steps.count);
    smg_graph_destroy(g);
}

static void test_plan_takes_measured_wholes(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    const smg_plan *parts = plan(f, g, (smg_plan_options){0});
    assert_true(parts->steps.count > 1);
    smg_cut cut = {parts->steps.items[0].joint.at, SMG_CUT_TOGETHER, 2e-6, 3e-6, 0};
    const smg_plan_options options = {.cuts = &cut, .cut_count = 1};
    const smg_plan *together = plan(f, g, options);
    assert_int_equal(together->steps.count, parts->steps.count - 1);
    assert_non_null(strstr(together->steps.items[0].because, "measured: a run took 2.00 us with these as one kernel"));
    cut.at++;
    assert_null(strstr(plan(f, g, options)->steps.items[0].because, "measured"));
    smg_graph_destroy(g);
}

/* ---- on the device -------------------------------------------------------------------------------- */

static smg_target open_tuned(fixture *f, smg_source *source, const char *tuning, smg_tensor *input, int expected) {
    smg_model *m = NULL;
    const smg_dim size = {"n", 512};
    const smg_model_desc desc = {
        .dims = &size, .dim_count = 1, .tuning = tuning, .no_calibrate = true, .no_plan_cache = true};
    int measured = 0;
    smg_check check;
    smg_tensor outputs[2] = {{.name = "y"}, {.name = "s"}};
    if (smg_model_open_source(f->ctx, source, NULL, &desc, &m) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    const smg_compilation *c = smg_model_compilation(m);
    for (int i = 0; i < c->plan->steps.count; i++) measured += c->plan->steps.items[i].measured != NULL;
    assert_int_equal(measured, expected < 0 ? c->plan->steps.count : expected);
    assert_int_equal(smg_model_run(m, input, 1, outputs, 2), SMG_OK);
    assert_int_equal(smg_compile_check(f->ctx, source->graph, smg_compile_roundings(c), &size.value, input, 1, outputs,
                                       f->arena, &check),
                     SMG_OK);
    assert_true(check.pass);
    const smg_target target = c->target;
    smg_model_close(m);
    return target;
}

/* Of other kernels there may be more: a machine that is busy cuts otherwise another time. */
static bool has_timing(const smg_tuning *tuning, const smg_timing *timing) {
    bool found = false;
    for (int i = 0; i < tuning->timing_count && !found; i++) {
        const smg_timing *t = &tuning->timings[i];
        found = t->at == timing->at && t->schedule == timing->schedule;
    }
    return found;
}

/* Operations are measured as kernels of their own, too, once. A schedule that is none of the kernel's is no start: another
 * one is confirmed in its place. It stays with a kernel that the second plan, cut otherwise, does not have. */
static void check_apart(fixture *f, smg_source *source, const smg_target *target, const smg_model_desc *desc,
                        smg_tune_options options) {
    smg_tuning before, after;
    smg_tuned tuned;
    int kept = 0, alone = 0;
    options.path = path_of(f, "apart.tuning");
    if (smg_compile_tune(f->ctx, source, desc, &options, f->arena, &tuned) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_non_null(tuned.path);
    assert_int_equal(smg_tuning_read(f->ctx, target, options.path, f->arena, &before), SMG_OK);
    for (int i = 0; i < before.timing_count; i++) alone += before.timings[i].kind == SMG_TIMING_ALONE;
    assert_true(alone > 0);
    assert_int_equal(before.count, tuned.taken ? tuned.kernel_count : 0); /* not where a busy machine made it slower */
    for (int i = 0; i < before.count; i++) before.items[i].schedule = 7;
    assert_int_equal(smg_tuning_write(f->ctx, target, options.path, &before, f->arena, &options.path), SMG_OK);
    if (smg_compile_tune(f->ctx, source, desc, &options, f->arena, &tuned) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_tuning_read(f->ctx, target, options.path, f->arena, &after), SMG_OK);
    for (int i = 0; i < after.count; i++) kept += after.items[i].schedule == 7;
    assert_int_equal(after.count - kept, tuned.taken ? tuned.kernel_count : 0);
    assert_true(kept <= before.count && (tuned.taken || kept == before.count));
    for (int i = 0; i < before.timing_count; i++) assert_true(has_timing(&after, &before.timings[i]));
}

static void test_device(void **state) {
    fixture *f = *state;
    smg_source source = {.ctx = f->ctx, .graph = parse(f, model)};
    const int64_t sizes[] = {512};
    const smg_dim dim = {"n", 512};
    smg_tensor input;
    smg_tuned tuned;
    assert_int_equal(smg_tensor_fill(f->ctx, source.graph, 0, sizes, SMG_FILL_RANDOM, 1, f->arena, &input), SMG_OK);
    const smg_model_desc desc = {.dims = &dim, .dim_count = 1, .no_calibrate = true};
    smg_tune_options options = {.rivals = 3, .seconds = 0.05, .inputs = &input, .input_count = 1, .symbols = sizes};
    smg_status status = smg_compile_tune(f->ctx, &source, &desc, &options, f->arena, &tuned);
    if (device_missing(f->ctx, status)) {
        smg_graph_destroy(source.graph);
        skip();
    }
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_not_equal(tuned.kernel_count, 0);
    for (int i = 0; i < tuned.kernel_count; i++) {
        const smg_tuned_kernel *k = &tuned.kernels[i];
        assert_true(k->calls > 0 && k->tried > 0 && k->tried <= 4 && k->rank < k->tried);
        assert_true(k->fastest > 0 && k->fastest <= k->cheapest);
    }
    assert_int_equal(tuned.failed, 0);
    assert_true(tuned.tuned > 0 && tuned.untuned > 0);
    const smg_target target =
        open_tuned(f, &source, "", &input, 0); /* nothing was kept where a busy machine made it slower */
    assert_non_null(tuned.path);
    open_tuned(f, &source, NULL, &input, tuned.taken ? -1 : 0);
    open_tuned(f, &source, tuned.path, &input, tuned.taken ? -1 : 0);
    check_apart(f, &source, &target, &desc, options);
    smg_graph_destroy(source.graph);
}

/* ---- through smg/tune.h --------------------------------------------------------------------------- */

typedef struct watched {
    int calls, last; /* phases do not go back */
    int schedules;   /* calls in their phase */
    bool order;
    const char *end; /* the phase in which it is stopped; NULL: in none */
} watched;

static bool watch(void *user, const smg_tune_progress *at) {
    static const char *const phases[] = {"cuts", "schedules", "turns", "whole"};
    watched *w = user;
    int phase = 0;
    while (phase < 4 && strcmp(phases[phase], at->phase) != 0) phase++;
    w->order = w->order && phase < 4 && phase >= w->last && at->seconds >= 0;
    w->last = phase;
    w->schedules += phase == 1;
    w->calls++;
    return w->end == NULL || strcmp(w->end, at->phase) != 0;
}

static int count_lines(fixture *f, const char *path, const char *word) {
    char *text = NULL;
    size_t size = 0;
    int count = 0;
    assert_int_equal(smg_file_read(f->ctx, path, &text, &size), SMG_OK);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
    smg_free(f->ctx, text, size + 1);
    return count;
}

/* Tuning of the file once more: what was measured before it was stopped in `w` is not measured again, and has effect
 * only once it is confirmed. */
static void check_continued(fixture *f, smg_graph *g, const smg_model_desc *model_desc, smg_tune_desc desc,
                            const smg_tuned *tuned) {
    int passes = count_lines(f, desc.path, "\npasses ") + count_lines(f, desc.path, "\nbeaten "), schedules = 0;
    watched again = {.order = true};
    smg_tuned *next = NULL;
    for (int i = 0; i < tuned->kernel_count; i++) schedules += tuned->kernels[i].tried;
    assert_true(schedules > 0);
    assert_int_equal(passes, schedules);
    desc.user = &again;
    assert_int_equal(smg_model_tune_graph(f->ctx, g, model_desc, &desc, &next), SMG_OK);
    assert_true(again.order && !next->stopped);
    if (next->cuts == 0) assert_int_equal(again.schedules, 0);
    assert_true(next->kernel_count >= tuned->kernel_count);
    assert_int_equal(count_lines(f, desc.path, "\nkernel "), next->taken ? next->kernel_count : 0);
    smg_tuned_destroy(next);
}

static void test_public(void **state) {
    static const char *const ends[] = {NULL, "cuts", "schedules", "turns", "whole"};
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    const smg_dim dim = {"n", 512};
    const smg_model_desc model_desc = {.dims = &dim, .dim_count = 1, .no_calibrate = true};
    for (size_t i = 0; i < SMG_COUNT_OF(ends); i++) {
        watched w = {.order = true, .end = ends[i]};
        const char *path = path_of(f, smg_arena_format(f->arena, "%zu.tuning", i));
        const smg_tune_desc desc = {
            .seconds = i == 0 ? 1 : 3, .schedules = i == 2 ? 4 : 6, .path = path, .progress = watch, .user = &w};
        smg_tuned *tuned = NULL;
        smg_status status = smg_model_tune_graph(f->ctx, g, &model_desc, &desc, &tuned);
        if (i == 0 && device_missing(f->ctx, status)) {
            smg_graph_destroy(g);
            skip();
        }
        if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
        bool reached = ends[i] != NULL && strcmp(ends[i], "whole") != 0 && i < 3;
        assert_true(w.calls > 0 && w.order && tuned->device[0] != '\0');
        if (reached) assert_true(tuned->stopped && tuned->tuned == 0);
        if (ends[i] == NULL) assert_true(!tuned->stopped && tuned->kernel_count > 0);
        assert_non_null(tuned->path);
        assert_true(smg_file_exists(path));
        if (i == 1) assert_true(tuned->kernel_count == 0 && !tuned->taken); /* no kernel was measured */
        if (i == 1) assert_true(count_lines(f, path, "\nalone ") > 0);
        if (i == 2) assert_true(tuned->kernel_count > 0 && count_lines(f, path, "\nkernel ") == 0);
        if (i == 2) check_continued(f, g, &model_desc, desc, tuned);
        /* What was confirmed in turns by then is taken. */
        if (i == 4 && tuned->stopped) assert_true(tuned->taken && count_lines(f, path, "\nkernel ") > 0);
        smg_tuned_destroy(tuned);
    }
    smg_tuned_destroy(NULL);
    assert_int_equal(smg_model_tune_graph(f->ctx, g, &model_desc, &(smg_tune_desc){.schedules = -1}, NULL),
                     SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "schedules is -1"));
    assert_int_equal(smg_model_tune_graph(f->ctx, g, &model_desc, &(smg_tune_desc){.seconds = -2}, NULL), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "seconds is -2"));
    assert_int_equal(smg_model_tune_graph(f->ctx, g, &model_desc, &(smg_tune_desc){.input_count = 1}, NULL),
                     SMG_INVALID);
    const smg_tensor wrong = {.name = "z", .rank = 1, .dims = {1}};
    assert_int_equal(
        smg_model_tune_graph(f->ctx, g, &model_desc, &(smg_tune_desc){.inputs = &wrong, .input_count = 1}, NULL),
        SMG_NOT_FOUND);
    assert_int_equal(smg_model_tune_graph(f->ctx, NULL, NULL, NULL, NULL), SMG_INVALID);
    assert_int_equal(smg_model_tune(f->ctx, NULL, NULL, NULL, NULL), SMG_INVALID);
    assert_int_equal(smg_model_tune(f->ctx, path_of(f, "none"), NULL, NULL, NULL), SMG_NOT_FOUND);
    assert_int_equal(smg_model_tune(NULL, "x", NULL, NULL, NULL), SMG_INVALID);
    smg_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts_take_the_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_most_timings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_format, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan_takes_what_was_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_models_take_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan_takes_measured_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan_takes_measured_wholes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_public, setup, teardown),
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
