/* Rates of a device that are fitted to kernels: they are found again where times are made with known ones, refused where
 * times say nothing, and on the device kept, told and taken by plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "compile/compile.h"
#include "plan/plan_internal.h"
#include "smg/measure.h"
#include "smg/tune.h"
#include "support/device.h"
#include "support/output.h"

/* Kernels that wait for arithmetic, for memory and for their dispatch. */
static const char model[] =
    "graph model\ndim n max 8192\nx = input f32[n, 512]\nz = input f32[n, 1024]\ns = input f32[8, 16]\n"
    "w = constant f32[512, 512] random seed=1 scale=0.05\nv = constant f32[1024, 64] random seed=2 scale=0.05\n"
    "p = contract(x, w) \"ni,io->no\"\nq = relu(p)\nt = contract(z, v) \"ni,io->no\"\n"
    "m = reduce_max(z) axis=1\na = sum(z) axis=0\ne = exp(s)\n"
    "output q = q\noutput t = t\noutput m = m\noutput a = a\noutput e = e\n";

/* More of them, each with an input of its own: what costs are fitted to. */
static const char longer[] =
    "graph longer\ndim n max 8192\nx1 = input f32[n, 512]\nx2 = input f32[n, 256]\nx3 = input f32[n, 1024]\n"
    "x4 = input f32[n, 96]\nz1 = input f32[n, 1024]\nz2 = input f32[n, 200]\nz3 = input f32[n, 4096]\n"
    "z4 = input f32[n, 32]\nz5 = input f32[n, 700]\n"
    "w1 = constant f32[512, 512] random seed=1 scale=0.05\nw2 = constant f32[256, 1024] random seed=2 scale=0.05\n"
    "w3 = constant f32[1024, 64] random seed=3 scale=0.05\nw4 = constant f32[96, 96] random seed=4 scale=0.05\n"
    "p1 = contract(x1, w1) \"ni,io->no\"\np2 = contract(x2, w2) \"ni,io->no\"\np3 = contract(x3, w3) \"ni,io->no\"\n"
    "p4 = contract(x4, w4) \"ni,io->no\"\nm1 = reduce_max(z1) axis=1\nm2 = reduce_max(z2) axis=0\n"
    "s3 = sum(z3) axis=1\ne4 = exp(z4)\ns5 = sum(z5) axis=0\noutput p1 = p1\noutput p2 = p2\noutput p3 = p3\n"
    "output p4 = p4\noutput m1 = m1\noutput m2 = m2\noutput s3 = s3\noutput e4 = e4\noutput s5 = s5\n";

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_graph *graph;
    smg_compilation *c;
    int ignored; /* files, by the log */
    char folder[512];
} fixture;

static void on_log(void *user, smg_log_level level, const char *line) {
    fixture *f = user;
    f->ignored += level == SMG_LOG_WARNING && strstr(line, "is damaged") != NULL;
}

static int setup(void **state) {
    static fixture f;
    static int number;
    char root[256];
    f = (fixture){0};
    test_output(root, sizeof(root), "rates");
    snprintf(f.folder, sizeof(f.folder), "%s/%016llx/%d", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()), number++);
    const smg_context_desc desc = {.log = on_log, .user = &f, .cache_dir = f.folder};
    assert_int_equal(smg_context_create(&desc, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_path_make_dirs(f.ctx, f.folder), SMG_OK);
    if (smg_graph_parse(f.ctx, model, strlen(model), "text", &f.graph) != SMG_OK)
        fail_msg("%s", smg_context_error(f.ctx));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_compilation_destroy(f->c);
    smg_graph_destroy(f->graph);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

/* ---- targets -------------------------------------------------------------------------------------- */

static void test_text(void **state) {
    fixture *f = *state;
    smg_target nominal, fitted, back, taken;
    smg_text text;
    assert_int_equal(smg_target_named(f->ctx, "h200", &nominal), SMG_OK);
    fitted = nominal;
    for (int r = 0; r < SMG_RATES; r++) smg_target_scale_rate(&fitted, (smg_rate)r, 0.75);
    fitted.revision = 7;
    assert_true(fitted.costs_from.walk == SMG_FACT_FITTED && fitted.costs.walk < nominal.costs.walk);
    smg_text_init(&text, f->ctx);
    smg_target_print(&fitted, &text);
    assert_non_null(strstr(smg_text_cstr(&text), "revision = 7\n"));
    assert_non_null(strstr(smg_text_cstr(&text), "  # fitted\n"));
    assert_int_equal(smg_target_parse(f->ctx, smg_text_cstr(&text), "text", &back), SMG_OK);
    taken = nominal;
    smg_target_take_fitted(&taken, &back);
    for (int r = 0; r < SMG_RATES; r++)
        assert_true(fabs(smg_target_rate(&taken, (smg_rate)r) / smg_target_rate(&nominal, (smg_rate)r) - 0.75) < 1e-5);
    assert_true(taken.revision == 7 && taken.bandwidth_from == SMG_FACT_FITTED && taken.cores == nominal.cores);
    assert_true(smg_target_hash(&taken) == smg_target_hash(&back) &&
                smg_target_hash(&taken) != smg_target_hash(&nominal));
    back = nominal;
    back.revision = 1; /* plans of another revision are other plans, even where no rate is another one */
    assert_true(smg_target_hash(&back) != smg_target_hash(&nominal));
    assert_int_equal(smg_target_parse(f->ctx, "revision = 0\n", "text", &back), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "revision '0' is not a positive integer"));
    smg_text_free(&text);
}

/* What nobody says is assumed by the kind of core; what somebody says is a number that makes sense. */
static void test_costs_given(void **state) {
    fixture *f = *state;
    smg_target gpu, cpu;
    assert_int_equal(smg_target_parse(f->ctx, "type = discrete\ncost.walk = 11\ncost.idle = 0\n", "text", &gpu),
                     SMG_OK);
    assert_int_equal(smg_target_parse(f->ctx, "type = cpu\nsubgroup_size = 8\n", "text", &cpu), SMG_OK);
    assert_true(gpu.costs.walk == 11 && gpu.costs_from.walk == SMG_FACT_TABLE && gpu.costs.idle == 0);
    assert_true(gpu.costs_from.round == SMG_FACT_ASSUMED && gpu.costs.round < cpu.costs.round);
    assert_int_equal(smg_target_parse(f->ctx, "cost.overlap = 0.5\n", "text", &gpu), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "cost.overlap is 0.5, must be finite and at least 1"));
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_target_parse(f->ctx, "cost.walk = -1\n", "text", &gpu), SMG_FORMAT);
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_target_parse(f->ctx, "cost.wonder = 1\n", "text", &gpu), SMG_FORMAT);
    assert_non_null(strstr(smg_context_error(f->ctx), "'cost.wonder' is not a fact of a target"));
}

/* ---- times that are made with known rates ----------------------------------------------------------- */

enum { MOST = 256 };

typedef struct made {
    smg_target nominal, truth, fitted;
    smg_timed timed[MOST];
    int count;
    smg_fit fit;
} made;

static double price_at(const smg_timed *t, const smg_target *target) {
    smg_price price = t->needs;
    plan_price(t->kernel, target, t->symbols, &price);
    return price.seconds;
}

static void add(made *m, const smg_choice *choice, const smg_kernel *kernel, const smg_price *price,
                const int64_t *symbols) {
    assert_true(m->count < MOST);
    smg_timed *t = &m->timed[m->count++];
    *t = (smg_timed){.kernel = kernel, .needs = *price, .symbols = symbols, .at = choice->at};
    t->seconds = price_at(t, &m->truth);
}

/* All schedules of the graph's plan for the nominal rates, with what they take by others. */
static void make_of(fixture *f, const smg_graph *g, made *m) {
    static const smg_dim dim = {"n", 4096};
    const smg_compile_options options = {
        .passes = {.rivals = 11, .to = 12}, .dims = &dim, .dim_count = 1, .precision = SMG_TYPE_F32, .tuning = ""};
    if (smg_compile_plan(f->ctx, g, &m->nominal, &options, &f->c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (int i = 0; i < f->c->plan->steps.count; i++) {
        const smg_pstep *step = &f->c->plan->steps.items[i];
        add(m, &step->choice, step->kernel, &step->price, f->c->nominal);
        for (int r = 0; r < step->rivals.count; r++) {
            const smg_rival *rival = &step->rivals.items[r];
            add(m, &rival->choice, rival->kernel, &rival->price, f->c->nominal);
        }
    }
}

static void begin(fixture *f, made *m) {
    memset(m, 0, sizeof(*m));
    assert_int_equal(smg_target_named(f->ctx, "h200", &m->nominal), SMG_OK);
    m->truth = m->fitted = m->nominal;
}

static void make(fixture *f, made *m) {
    begin(f, m);
    smg_target_scale_rate(&m->truth, SMG_RATE_ARITHMETIC, exp2(-0.75));
    smg_target_scale_rate(&m->truth, SMG_RATE_MEMORY, exp2(-1));
    smg_target_scale_rate(&m->truth, SMG_RATE_DISPATCH, exp2(0.75));
    make_of(f, f->graph, m);
}

static void fit(fixture *f, made *m, int count) {
    m->fitted = m->nominal;
    assert_int_equal(smg_plan_fit_rates(m->timed, count, &m->nominal, f->arena, &m->fitted, &m->fit), SMG_OK);
}

static void assert_found(const made *m, smg_rate rate, double octaves) {
    double off = log2(smg_target_rate(&m->fitted, rate) / smg_target_rate(&m->truth, rate));
    if (fabs(off) > octaves) fail_msg("%s is off by %g octaves", smg_rate_word(rate), off);
}

static void test_recovered(void **state) {
    fixture *f = *state;
    made m;
    make(f, &m);
    fit(f, &m, m.count);
    if (m.fit.refused != NULL) fail_msg("%s", m.fit.refused);
    assert_true(m.fit.kernels >= 4 && m.fit.schedules == m.count && m.fitted.revision == 1);
    assert_true(m.fit.before.error > 1.3 && m.fit.after.error < 1.06 && m.fit.left_out < 1.25);
    assert_true(m.fit.after.agreed >= m.fit.before.agreed && m.fit.after.agreed > 0.99);
    assert_found(&m, SMG_RATE_ARITHMETIC, 0.13);
    assert_found(&m, SMG_RATE_MEMORY, 0.13);
    assert_found(&m, SMG_RATE_DISPATCH, 0.13);
    assert_true(m.fitted.matrix[0].rate == m.nominal.matrix[0].rate); /* nothing hangs on it */

    smg_target again = m.fitted;
    fit(f, &m, m.count);
    assert_memory_equal(&again, &m.fitted, sizeof(again)); /* the same times, the same rates */

    /* Noise, and one kernel that takes ten times as long for a reason of its own. */
    for (int i = 0; i < m.count; i++) m.timed[i].seconds *= 1 + 0.03 * ((i * 7) % 5 - 2) / 2;
    m.timed[1].seconds *= 10;
    fit(f, &m, m.count);
    assert_null(m.fit.refused);
    assert_found(&m, SMG_RATE_ARITHMETIC, 0.13);
    assert_found(&m, SMG_RATE_MEMORY, 0.13);
}

/* What calibration measured stays, also where times are made with another rate. */
static void test_measured_stay(void **state) {
    fixture *f = *state;
    made m;
    begin(f, &m);
    m.nominal.fma_rate_from = m.nominal.bandwidth_from = SMG_FACT_MEASURED;
    m.truth = m.nominal;
    smg_target_scale_rate(&m.truth, SMG_RATE_ARITHMETIC, exp2(-0.25));
    smg_target_scale_rate(&m.truth, SMG_RATE_DISPATCH, exp2(1.5));
    make_of(f, f->graph, &m);
    fit(f, &m, m.count);
    if (m.fit.refused != NULL) fail_msg("%s", m.fit.refused);
    assert_true(smg_target_rate_from(&m.nominal, SMG_RATE_MATRICES) == SMG_FACT_MEASURED);
    assert_true(m.fitted.fma_rate == m.nominal.fma_rate && m.fitted.bandwidth == m.nominal.bandwidth);
    assert_true(m.fitted.matrix[0].rate == m.nominal.matrix[0].rate);
    assert_true(m.fitted.dispatch_cost > 1.5 * m.nominal.dispatch_cost);
    assert_true(m.fitted.dispatch_cost_from == SMG_FACT_FITTED && m.fitted.fma_rate_from == SMG_FACT_MEASURED);
}

/* A device that hides nothing of what near memory takes, and has less of it: no rate explains that. */
static void test_costs(void **state) {
    fixture *f = *state;
    smg_graph *g = NULL;
    made m;
    if (smg_graph_parse(f->ctx, longer, strlen(longer), "text", &g) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    begin(f, &m);
    smg_target_scale_rate(&m.truth, SMG_RATE_MEMORY, exp2(-0.5));
    smg_target_scale_rate(&m.truth, SMG_RATE_COST_near, exp2(1.75));
    make_of(f, g, &m);
    fit(f, &m, m.count);
    if (m.fit.refused != NULL) fail_msg("%s", m.fit.refused);
    assert_true(m.fit.kernels >= 8);
    assert_true(m.fit.after.error < 1.1 && m.fit.left_out < 1.12 && m.fit.before.error > 1.4);
    assert_found(&m, SMG_RATE_MEMORY, 0.13);
    assert_found(&m, SMG_RATE_COST_near, 0.76); /* slower arithmetic explains some of it as well */
    assert_true(m.fitted.costs_from.near == SMG_FACT_FITTED);
    assert_true(m.fitted.costs.matrix == m.nominal.costs.matrix); /* nothing hangs on it */
    assert_true(m.fitted.costs_from.matrix == SMG_FACT_ASSUMED);

    /* Costs that are what was assumed stay, and are not fitted to noise. */
    for (int i = 0; i < m.count; i++) m.timed[i].seconds = price_at(&m.timed[i], &m.nominal);
    fit(f, &m, m.count);
    assert_non_null(m.fit.refused);
    assert_memory_equal(&m.fitted, &m.nominal, sizeof(m.nominal));
    smg_graph_destroy(g);
}

/* What the plan of a stored graph, made by one target's prices, takes by another's. */
static double planned(fixture *f, const char *name, const smg_target *by, const smg_target *truth) {
    const smg_compile_options options = {.precision = SMG_TYPE_F32, .tuning = ""};
    smg_compilation *c = NULL;
    smg_graph *g = NULL;
    char *text;
    size_t size;
    char path[128];
    double seconds = 0;
    (void)snprintf(path, sizeof path, "tests/graphs/%s.smg", name);
    assert_int_equal(smg_file_read(f->ctx, path, &text, &size), SMG_OK);
    if (smg_graph_parse(f->ctx, text, size, path, &g) != SMG_OK ||
        smg_compile_plan(f->ctx, g, by, &options, &c) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_pstep *step = &c->plan->steps.items[i];
        const smg_timed t = {.kernel = step->kernel, .needs = step->price, .symbols = c->nominal};
        seconds += price_at(&t, truth);
    }
    smg_compilation_destroy(c);
    smg_graph_destroy(g);
    smg_free(f->ctx, text, size + 1);
    return seconds;
}

/* A device whose loads, or dispatches, take longer than anybody assumed: what is learnt of one graph makes plans of others
 * take less there, graphs that were not timed. */
static void test_next_model(void **state) {
    static const char *const next[] = {"attention",           "linear_residual_layernorm",
                                       "projected_attention", "softmax_gemm",
                                       "column_softmax",      "rmsnorm_gemm",
                                       "merged_heads",        "parallel_branches"};
    static const smg_rate unknown[] = {SMG_RATE_LATENCY, SMG_RATE_DISPATCH};
    fixture *f = *state;
    for (size_t r = 0; r < SMG_COUNT_OF(unknown); r++) {
        double all = 0, least = 1;
        made m;
        begin(f, &m);
        m.nominal.fma_rate_from = m.nominal.bandwidth_from = m.nominal.cache_bandwidth_from = SMG_FACT_MEASURED;
        m.truth = m.nominal;
        smg_target_scale_rate(&m.truth, unknown[r], 4);
        make_of(f, f->graph, &m);
        fit(f, &m, m.count);
        if (m.fit.refused != NULL) fail_msg("%s", m.fit.refused);
        for (size_t i = 0; i < SMG_COUNT_OF(next); i++) {
            double share = planned(f, next[i], &m.fitted, &m.truth) / planned(f, next[i], &m.nominal, &m.truth);
            if (share > 1.06) fail_msg("%s takes %.3f times as long by fitted rates", next[i], share);
            all += log(share) / SMG_COUNT_OF(next);
            if (share < least) least = share;
        }
        assert_true(exp(all) < 0.99 && least < 0.9);
        smg_compilation_destroy(f->c);
        f->c = NULL;
    }
}

static void test_refused(void **state) {
    fixture *f = *state;
    made m;
    make(f, &m);
    fit(f, &m, 23);
    assert_non_null(strstr(m.fit.refused, "with 23 schedules were measured, at least 4 with 24"));
    fit(f, &m, 0);
    assert_non_null(strstr(m.fit.refused, "0 kernels with 0 schedules"));
    for (int i = 0; i < m.count; i++) m.timed[i].seconds = price_at(&m.timed[i], &m.nominal);
    fit(f, &m, m.count);
    assert_non_null(strstr(m.fit.refused, "is no better"));
    assert_memory_equal(&m.fitted, &m.nominal, sizeof(m.nominal));
    for (int i = 0; i < m.count; i++)
        m.timed[i].seconds *= m.timed[i].at % 2 == 0 ? 2 : 0.5; /* no rate explains that */
    fit(f, &m, m.count);
    assert_int_equal(m.fitted.revision, m.fit.refused == NULL);
    for (int r = 0; r < SMG_RATES; r++) { /* bounds hold, whatever times say */
        double rate = smg_target_rate(&m.fitted, (smg_rate)r), nominal = smg_target_rate(&m.nominal, (smg_rate)r);
        assert_true(rate >= nominal / 4.01 && rate <= nominal * 4.01);
    }
}

/* ---- on the device -------------------------------------------------------------------------------- */

#if SMG_VULKAN
static smg_vk_device *open_device(fixture *f, bool calibrated) {
    smg_vk_device *device = NULL;
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &device);
    if (device_missing(f->ctx, status)) return NULL;
    if (status == SMG_OK && calibrated) status = smg_vk_calibrate(device);
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return device;
}

static void assert_planned(fixture *f, smg_vk_device *device, bool nominal_rates, int revision) {
    const smg_model_desc desc = {.on = device, .nominal_rates = nominal_rates, .no_plan_cache = true};
    smg_model *m = NULL;
    if (smg_model_open_graph(f->ctx, f->graph, &desc, &m) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    smg_compilation *c = smg_model_compilation(m);
    smg_text text;
    smg_text_init(&text, f->ctx);
    assert_int_equal(c->target.revision, revision);
    assert_int_equal(smg_compile_explain(c, &(smg_explain_options){0}, &text), SMG_OK);
    assert_true((strstr(smg_text_cstr(&text), "rates: revision 3, fitted") != NULL) == (revision == 3));
    smg_text_free(&text);
    smg_model_close(m);
}

static void test_kept(void **state) {
    fixture *f = *state;
    smg_target fitted, planned;
    smg_device_facts facts;
    smg_vk_device *device = open_device(f, false);
    if (device == NULL) skip();
    fitted = *smg_vk_target(device);
    fitted.revision = 3;
    assert_int_equal(smg_vk_keep_rates(device, &fitted), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "were not measured"));
    smg_context_clear_error(f->ctx);
    assert_int_equal(smg_vk_calibrate(device), SMG_OK);
    fitted = *smg_vk_target(device);
    fitted.revision = 3;
    smg_target_scale_rate(&fitted, SMG_RATE_MEMORY, 0.5);
    assert_int_equal(smg_vk_keep_rates(device, &fitted), SMG_OK);
    smg_vk_close(device);

    device = open_device(f, true);
    double nominal = smg_vk_target(device)->bandwidth;
    smg_vk_plan_target(device, false, &planned);
    assert_int_equal(planned.revision, 3);
    assert_true(fabs(planned.bandwidth / fitted.bandwidth - 1) < 1e-5); /* rates may have been measured anew */
    smg_vk_plan_target(device, true, &planned);
    assert_true(planned.revision == 0 && planned.bandwidth == nominal);
    assert_int_equal(smg_device_get_facts(device, &facts), SMG_OK);
    assert_true(facts.revision == 3 && facts.bandwidth == nominal);
    assert_planned(f, device, false, 3);
    assert_planned(f, device, true, 0);
    smg_vk_close(device);
}

/* What times on a busy machine say is theirs; that something is told, and kept or not, is ours. */
static void test_tuned(void **state) {
    fixture *f = *state;
    smg_tuned *tuned = NULL;
    smg_target planned;
    const smg_dim dim = {"n", 64};
    const smg_tune_desc tune = {.seconds = 1.5, .schedules = 8, .fit_rates = true};
    smg_vk_device *device = open_device(f, true);
    if (device == NULL) skip();
    smg_model_desc desc = {.on = device, .dims = &dim, .dim_count = 1};
    if (smg_model_tune_graph(f->ctx, f->graph, &desc, &tune, &tuned) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    const smg_fitted_rates *rates = tuned->rates;
    assert_non_null(rates);
    assert_true(rates->kernels > 0 && rates->schedules >= rates->kernels && rates->error_before >= 1);
    for (int i = 0; i < rates->rate_count; i++) {
        assert_true(rates->rates[i].before == rates->rates[i].nominal);
    }
    smg_vk_plan_target(device, false, &planned);
    assert_int_equal(planned.revision, rates->refused == NULL ? rates->revision : 0);
    assert_true((rates->untuned_before > 0) == (rates->untuned_after > 0));
    smg_tuned_destroy(tuned);
    desc.nominal_rates = true;
    assert_int_equal(smg_model_tune_graph(f->ctx, f->graph, &desc, &tune, NULL), SMG_INVALID);
    assert_non_null(strstr(smg_context_error(f->ctx), "not with nominal_rates"));
    desc = (smg_model_desc){.on = device, .no_calibrate = true};
    assert_int_equal(smg_model_tune_graph(f->ctx, f->graph, &desc, &tune, NULL), SMG_INVALID);
    smg_vk_close(device);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_costs_given, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_measured_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_costs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
#if SMG_VULKAN
        cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tuned, setup, teardown),
#endif
    };
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
