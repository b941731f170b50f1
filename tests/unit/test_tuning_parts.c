/* Sums that several workgroups share out, in other numbers of parts than prices choose: plans take the number that was
 * measured where it is one of theirs, and give what they should; on the device other numbers are measured and kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "compile/compile.h"
#include "support/check_plan.h"
#include "support/device.h"
#include "support/output.h"

/* By price in parts; whole, with a price in parts that is near. */
static const char few_rows[] = "graph few\nx = input f32[2, 262144]\nm = reduce_max(x) axis=1 keep\nd = sub(x, m)\n"
                               "e = exp(d)\ns = sum(e) axis=1 keep\ny = div(e, s)\noutput y = y\n";
static const char many_rows[] = "graph many\nx = input f32[256, 32768]\ns = sum(x) axis=1 keep\noutput y = s\n";

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *graph;
    smg_text text;
    char folder[512];
} fixture;

static int setup(void **state) {
    static fixture f;
    static int number;
    char root[256];
    f = (fixture){0};
    test_output(root, sizeof(root), "tuning_parts");
    snprintf(f.folder, sizeof(f.folder), "%s/%016llx/%d", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()), number++);
    const smg_context_desc desc = {.cache_dir = f.folder};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_path_make_dirs(f.ctx, f.folder), SMG_OK);
    smg_text_init(&f.text, f.ctx);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_text_free(&f->text);
    smg_graph_destroy(f->graph);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static void parse(fixture *f, const char *text) {
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &f->graph) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
}

/* ---- plans ---------------------------------------------------------------------------------------- */

static const smg_plan *plan(fixture *f, smg_plan_options options) {
    smg_target target;
    smg_plan *made = NULL;
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    if (smg_plan_make(f->graph, &target, &options, f->arena, &made) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    return made;
}

static const smg_plan *plan_with(fixture *f, const smg_cut *cut) {
    return plan(f, (smg_plan_options){.cuts = cut, .cut_count = 1});
}

static const char *printed(fixture *f, const smg_plan *p) {
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_plan_print(p, &text);
    const char *kept = smg_arena_string(f->arena, smg_text_cstr(&text));
    smg_text_free(&text);
    assert_non_null(kept);
    return kept;
}

static const smg_split *split_of(const smg_plan *p, uint64_t at) {
    for (int i = 0; i < p->splits.count; i++)
        if (p->splits.items[i].at == at) return &p->splits.items[i];
    return NULL;
}

/* The plan is what the reference says. */
static void assert_right(fixture *f, const smg_cut *cut) {
    check_result r;
    check_options o = {.target = "h200", .tolerance = 1e-4, .plan = {.cuts = cut, .cut_count = 1}};
    if (check_plan(f->ctx, f->graph, &o, &r) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(r.pass);
    assert_true(r.in_parts == (cut->chunk > 0));
}

static void plans_take_measured_parts(void **state) {
    fixture *f = *state;
    char words[64];
    parse(f, few_rows);
    const smg_plan *by_price = plan(f, (smg_plan_options){0});
    assert_int_equal(by_price->splits.count, 1);
    const smg_split *s = &by_price->splits.items[0];
    assert_true(s->chunk > 0 && s->fixed == NULL && s->places == 1 && s->whole > 0);
    assert_true(s->priced.count > 1);
    for (int i = 0; i < s->priced.count; i++) {
        smg_cut cut = {s->at, SMG_CUT_PARTS, 2e-6, 3e-6, s->priced.items[i].elements};
        const smg_plan *so = plan_with(f, &cut);
        const smg_split *now = split_of(so, s->at);
        assert_non_null(now);
        assert_true(now->chunk == cut.chunk && now->fixed == &cut && now->priced.count == s->priced.count);
        snprintf(words, sizeof(words), "in parts of %lld: ", (long long)cut.chunk);
        assert_non_null(strstr(so->steps.items[0].because, words));
        assert_non_null(strstr(so->steps.items[0].because, "measured: a run took 2.00 us so, 3.00 us otherwise"));
        assert_true((so->steps.items[0].choice.at == by_price->steps.items[0].choice.at) == (cut.chunk == s->chunk));
    }
    smg_cut other = {s->at, SMG_CUT_PARTS, 2e-6, 3e-6,
                     s->priced.items[s->chunk == s->priced.items[0].elements].elements};
    assert_right(f, &other);
}

static void plans_take_measured_wholes(void **state) {
    fixture *f = *state;
    parse(f, few_rows);
    const smg_plan *by_price = plan(f, (smg_plan_options){0});
    smg_cut cut = {by_price->splits.items[0].at, SMG_CUT_PARTS, 2e-6, 3e-6, 0};
    const smg_plan *so = plan_with(f, &cut);
    const smg_split *now = split_of(so, cut.at);
    assert_non_null(now);
    assert_true(now->chunk == 0 && now->fixed == &cut);
    for (int i = 0; i < so->steps.count; i++) assert_null(strstr(so->steps.items[i].because, "in parts of"));
    assert_right(f, &cut);
}

/* What prices leave whole is in parts where that was measured to be faster. */
static void plans_split_what_prices_do_not(void **state) {
    fixture *f = *state;
    parse(f, many_rows);
    const smg_plan *by_price = plan(f, (smg_plan_options){.splits = true});
    assert_int_equal(by_price->splits.count, 1);
    const smg_split *s = &by_price->splits.items[0];
    assert_true(s->chunk == 0 && s->priced.count > 0);
    for (int i = 0; i < s->priced.count; i++) assert_true(s->priced.items[i].seconds > s->whole);
    smg_cut cut = {s->at, SMG_CUT_PARTS, 2e-6, 3e-6, s->priced.items[0].elements};
    const smg_plan *so = plan_with(f, &cut);
    assert_int_equal(split_of(so, s->at)->chunk, cut.chunk);
    assert_true(so->steps.count > by_price->steps.count);
    assert_non_null(strstr(so->steps.items[0].because, "together sums would have no parts, which were measured"));
    assert_right(f, &cut);
}

/* Numbers of parts that the planner does not find, other nodes, other objectives. */
static void what_means_nothing_is_ignored(void **state) {
    static const int64_t odd[] = {7, 1, -512, INT64_MAX, 262144, 300};
    fixture *f = *state;
    parse(f, few_rows);
    const smg_plan *by_price = plan(f, (smg_plan_options){0});
    const char *text = printed(f, by_price);
    const smg_split *s = &by_price->splits.items[0];
    int64_t another = s->priced.items[s->chunk == s->priced.items[0].elements].elements;
    smg_cut cut = {s->at, SMG_CUT_PARTS, 2e-6, 3e-6, 0};
    for (size_t i = 0; i < SMG_COUNT_OF(odd); i++) {
        cut.chunk = odd[i];
        const smg_plan *so = plan_with(f, &cut);
        assert_string_equal(printed(f, so), text);
        assert_null(so->splits.items[0].fixed);
    }
    cut.chunk = another;
    for (int kind = SMG_CUT_APART; kind <= SMG_CUT_TOGETHER; kind++) {
        cut.kind = (smg_cut_kind)kind;
        assert_string_equal(printed(f, plan_with(f, &cut)), text);
    }
    cut.kind = SMG_CUT_PARTS;
    cut.at = by_price->steps.items[0].choice.at; /* of a kernel */
    assert_string_equal(printed(f, plan_with(f, &cut)), text);
    cut.at = s->at;
    assert_string_not_equal(printed(f, plan_with(f, &cut)), text);
    for (int i = 0; i < 3; i++) {
        smg_plan_options o = {.objective = i == 0 ? SMG_OBJECTIVE_DISPATCHES : SMG_OBJECTIVE_TIME,
                              .unfused = i == 1,
                              .rank = i == 2 ? 1 : 0};
        const char *without = printed(f, plan(f, o));
        o.cuts = &cut;
        o.cut_count = 1;
        assert_string_equal(printed(f, plan(f, o)), without);
    }
}

static void reports_tell_what_was_measured(void **state) {
    fixture *f = *state;
    smg_compilation *c = NULL;
    smg_target target;
    const smg_compile_options options = {.report = true, .search = true};
    const smg_explain_options search = {.phase = "search"};
    parse(f, few_rows);
    assert_int_equal(smg_target_named(f->ctx, "h200", &target), SMG_OK);
    assert_int_equal(smg_compile_plan(f->ctx, f->graph, &target, &options, &c), SMG_OK);
    assert_int_equal(smg_compile_report(c, &f->text), SMG_OK);
    assert_null(strstr(smg_text_cstr(&f->text), "in parts of"));
    const smg_split *s = &c->plan->splits.items[0];
    smg_cut ran = {.at = s->at, .kind = SMG_CUT_PARTS, .seconds = 31e-6, .apart = 24e-6};
    c->tuning.tried = &ran;
    c->tuning.tried_count = 1;
    assert_int_equal(smg_compile_report(c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "measured: a run takes 31.00 us so, 24.00 us otherwise"));
    assert_int_equal(smg_compile_report_json(c, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "\"otherwise_run_seconds\": 2.4e-05"));
    smg_text_free(&f->text);
    smg_text_init(&f->text, f->ctx);
    assert_int_equal(smg_compile_explain(c, &search, &f->text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&f->text), "us; measured: a run takes 31.00 us so, 24.00 us otherwise"));
    assert_non_null(strstr(smg_text_cstr(&f->text), "us, taken\n"));
    c->tuning.tried_count = 0;
    smg_compilation_destroy(c);
}

/* ---- on the device -------------------------------------------------------------------------------- */

static const int64_t no_sizes[1];

/* Opened with a file, or "": runs, and gives what it should. *out_target: the device's. */
static void open_with(fixture *f, smg_source *source, const char *tuning, smg_target *out_target, smg_split *out) {
    smg_model *m = NULL;
    smg_tensor x, y = {.name = "y"};
    smg_check check;
    const smg_model_desc desc = {.tuning = tuning, .no_calibrate = true, .no_plan_cache = true};
    assert_int_equal(smg_tensor_fill(f->ctx, f->graph, 0, no_sizes, SMG_FILL_RANDOM, 1, f->arena, &x), SMG_OK);
    if (smg_model_open_source(f->ctx, source, NULL, &desc, &m) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    const smg_compilation *c = smg_model_compilation(m);
    assert_int_equal(smg_model_run(m, &x, 1, &y, 1), SMG_OK);
    assert_int_equal(
        smg_compile_check(f->ctx, f->graph, smg_compile_roundings(c), no_sizes, &x, 1, &y, f->arena, &check), SMG_OK);
    assert_true(check.pass);
    *out_target = c->target;
    assert_true(c->plan->splits.count > 0);
    *out = c->plan->splits.items[0];
    out->priced.items = SMG_ARENA_ARRAY(f->arena, smg_chunk, (size_t)out->priced.count + 1);
    memcpy(out->priced.items, c->plan->splits.items[0].priced.items,
           (size_t)out->priced.count * sizeof(*out->priced.items));
    smg_model_close(m);
}

static int count_parts(const smg_cut *cuts, int count, uint64_t at) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (cuts[i].kind != SMG_CUT_PARTS || cuts[i].at != at) continue;
        assert_true(cuts[i].seconds > 0 && cuts[i].apart > 0);
        found++;
    }
    return found;
}

static smg_status tune(fixture *f, smg_source *source, const char *path, smg_tuned *out) {
    smg_tensor x;
    const smg_model_desc desc = {.no_calibrate = true};
    assert_int_equal(smg_tensor_fill(f->ctx, f->graph, 0, no_sizes, SMG_FILL_RANDOM, 1, f->arena, &x), SMG_OK);
    const smg_tune_options options = {
        .rivals = 1, .seconds = 0.05, .inputs = &x, .input_count = 1, .symbols = no_sizes, .path = path};
    return smg_compile_tune(f->ctx, source, &desc, &options, f->arena, out);
}

/* All rows of the one are in the other. */
static bool has_all(const smg_tuning *all, const smg_tuning *some) {
    bool has = true;
    for (int i = 0; i < some->cut_count; i++) has = has && smg_tuning_find_cut(all, &some->cuts[i]) != NULL;
    for (int i = 0; i < some->tried_count; i++) has = has && smg_tuning_find_cut(all, &some->tried[i]) != NULL;
    return has;
}

/* What was run is not run again: a second tuning has the same cuts to propose, unless some was faster. */
static void tuning_measures_parts(void **state) {
    fixture *f = *state;
    smg_tuned tuned, again;
    smg_target target;
    smg_split by_price, now;
    smg_tuning kept, after;
    parse(f, few_rows);
    smg_source source = {.ctx = f->ctx, .graph = f->graph};
    const char *path = smg_arena_format(f->arena, "%s/own.tuning", f->folder);
    smg_status status = tune(f, &source, path, &tuned);
    if (device_missing(f->ctx, status)) skip();
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_true(tuned.cuts_tried > 0 && tuned.wrong == 0);
    open_with(f, &source, "", &target, &by_price);
    assert_int_equal(smg_tuning_read(f->ctx, &target, path, f->arena, &kept), SMG_OK);
    int rows = count_parts(kept.tried, kept.tried_count, by_price.at);
    if (tuned.taken) rows += count_parts(kept.cuts, kept.cut_count, by_price.at);
    assert_true(rows > 0);
    assert_int_equal(tune(f, &source, path, &again), SMG_OK);
    if (tuned.cuts == 0) assert_int_equal(again.cuts_tried, 0);
    assert_int_equal(smg_tuning_read(f->ctx, &target, path, f->arena, &after), SMG_OK);
    assert_true(has_all(&after, &kept));

    smg_cut cut = {.at = by_price.at, .kind = SMG_CUT_PARTS, .seconds = 1e-6, .apart = 2e-6};
    const smg_tuning other = {.cuts = &cut, .cut_count = 1};
    for (int i = -1; i < by_price.priced.count && i < 2; i++) {
        cut.chunk = i < 0 ? 0 : by_price.priced.items[i].elements;
        path = smg_arena_format(f->arena, "%s/other%d.tuning", f->folder, i);
        assert_int_equal(smg_tuning_write(f->ctx, &target, path, &other, f->arena, &path), SMG_OK);
        open_with(f, &source, path, &target, &now);
        assert_true(now.at == cut.at && now.chunk == cut.chunk);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_take_measured_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(plans_take_measured_wholes, setup, teardown),
        cmocka_unit_test_setup_teardown(plans_split_what_prices_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(what_means_nothing_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_tell_what_was_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(tuning_measures_parts, setup, teardown),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
