/* Plans that were kept: the second open of a model reads what the first made and plans nothing; whatever a plan depends
 * on gives another key, and weights do not; an entry that is damaged or of other weights is ignored with a line; run
 * lists that were not kept are made later, as if nothing had been read. Needs no device but for the last tests. */
#define _POSIX_C_SOURCE 200809L /* setrlimit */
#define _XOPEN_SOURCE 700       /* SIGXFSZ */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "compile/compile.h"
#include "support/device.h"
#include "support/fault.h"
#include "support/output.h"

/* w has more elements than rewriting reads, c fewer; "s" is folded. */
#define MODEL(seed, small, name, op)                                                                                   \
    "graph model\ndim n max 4096\n" name " = input f32[n, 300]\n"                                                      \
    "w = constant f32[300, 300] random seed=" seed " scale=0.1\n"                                                      \
    "v = constant f32[300, 300] random seed=8 scale=0.1\n"                                                             \
    "c = constant f32[300] random seed=" small "\nd = constant f32[300] random seed=3\ns = mul(c, d)\n"                \
    "p = contract(" name ", w) \"ni,io->no\"\nq = add(p, s)\nr = " op "(q)\n"                                          \
    "t = contract(r, v) \"ni,io->no\"\ny = add(t, " name ")\noutput y = y\n"
static const char model[] = MODEL("1", "2", "x", "relu");

typedef struct seen {
    int analyses, warnings, others;
    char line[512];
} seen;

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    seen seen;
    char folder[512];
} fixture;

static void on_progress(void *user, const char *phase, size_t done, size_t total, const char *unit) {
    (void)done, (void)total, (void)unit;
    if (strcmp(phase, "analysis") == 0 || strcmp(phase, "plan") == 0) ((seen *)user)->analyses++;
}

static void on_log(void *user, smg_log_level level, const char *line) {
    seen *s = user;
    if (strstr(line, "plan cache") == NULL) return;
    *(level == SMG_LOG_WARNING ? &s->warnings : &s->others) += 1;
    snprintf(s->line, sizeof(s->line), "%s", line);
}

/* Each test has a cache folder of its own, new in every run. */
static void open_context(fixture *f, const char *folder) {
    const smg_context_desc desc = {.log = on_log, .progress = on_progress, .user = &f->seen, .cache_dir = folder};
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    f->seen = (seen){0};
}

static void close_context(fixture *f) {
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
}

static int setup(void **state) {
    static fixture f;
    static int number;
    char root[256];
    test_output(root, sizeof(root), "plan-cache");
    snprintf(f.folder, sizeof(f.folder), "%s/%016llx/%d", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()), number++);
    open_context(&f, f.folder);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    close_context(*state);
    return 0;
}

static smg_graph *parse(fixture *f, const char *text) {
    smg_graph *g = NULL;
    if (smg_graph_parse(f->ctx, text, strlen(text), "text", &g) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return g;
}

static smg_target target_of(fixture *f, const char *name) {
    smg_target target;
    assert_int_equal(smg_target_named(f->ctx, name, &target), SMG_OK);
    return target;
}

static smg_compilation *open_graph(fixture *f, const smg_graph *g, const smg_target *target,
                                   const smg_compile_options *options) {
    smg_compilation *c = NULL;
    int before = f->seen.analyses;
    if (smg_compile_open(f->ctx, g, target, options, &c) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_string_equal(smg_context_error(f->ctx), "");
    assert_int_equal(c->from_cache, f->seen.analyses == before);
    assert_int_equal(c->from_cache, c->plan == NULL);
    return c;
}

static void write(fixture *f, const smg_compilation *c, smg_text *text) {
    smg_text_init(text, f->ctx);
    smg_bundle_write(c->bundle, text);
    assert_int_equal(smg_text_status(text), SMG_OK);
}

static void assert_same_bundle(fixture *f, const smg_compilation *a, const smg_compilation *b) {
    smg_text x, y;
    write(f, a, &x);
    write(f, b, &y);
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.data, y.data, x.length);
    smg_text_free(&x);
    smg_text_free(&y);
}

static char *entry_of(fixture *f, const smg_compilation *c) {
    return smg_arena_format(f->arena, "%s/plans/%016llx.plan", f->folder, (unsigned long long)c->key[0]);
}

static void the_second_open_reads(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    smg_target target = target_of(f, "h200");
    smg_compilation *first = open_graph(f, g, &target, NULL), *second = open_graph(f, g, &target, NULL);
    assert_false(first->from_cache);
    assert_true(second->from_cache);
    assert_null(second->graph);
    assert_same_bundle(f, first, second);
    assert_int_equal(first->run_ops, second->run_ops);
    assert_int_equal(smg_compile_kernel_count(first), smg_compile_kernel_count(second));
    assert_int_equal(first->nominal[0], second->nominal[0]);
    double a[3], b[3];
    smg_compile_work(first, &a[0], &a[1], &a[2]);
    smg_compile_work(second, &b[0], &b[1], &b[2]);
    for (int i = 0; i < 3; i++) assert_true(a[i] > 0 && b[i] > 0.999 * a[i] && b[i] < 1.001 * a[i]);
    for (int64_t n = 1; n < 4096; n = 2 * n + 1)
        assert_int_equal(smg_compile_choose(first, &n), smg_compile_choose(second, &n));
    smg_compilation_destroy(first);
    smg_compilation_destroy(second);
    smg_graph_destroy(g);
    assert_int_equal(f->seen.warnings + f->seen.others, 0);
}

/* Constants of the caller are bound to the caller's memory, what was folded lies in the entry. */
static void constants_find_their_data(void **state) {
    fixture *f = *state;
    smg_target target = target_of(f, "lavapipe");
    smg_graph *g[2] = {parse(f, model), parse(f, MODEL("77", "2", "x", "relu"))};
    for (int i = 0; i < 2; i++) {
        smg_compilation *c = open_graph(f, g[i], &target, NULL);
        bool found[2] = {false, false};
        int own = 0;
        assert_int_equal(c->from_cache, i == 1); /* other weights, the same key */
        for (int k = 0; k < c->bundle->buffers.count; k++) {
            const smg_bbuffer *b = &c->bundle->buffers.items[k];
            if (b->kind != SMG_BUFFER_CONSTANT) continue;
            own += b->source < 0;
            for (int w = 0; w < 2; w++) found[w] = found[w] || b->data == smg_graph_node(g[i], 1 + w)->data;
        }
        assert_true(found[0] && found[1]);
        assert_int_equal(own, 1);
        smg_compilation_destroy(c);
    }
    smg_graph_destroy(g[0]);
    smg_graph_destroy(g[1]);
}

/* Parts of a constant that one binding cannot reach lie in the caller's memory too. They are small enough here to be
 * read, so that other weights have another key. */
static void parts_of_constants_find_their_data(void **state) {
    fixture *f = *state;
    static float table[2][700 * 48];
    char *text = NULL;
    size_t size = 0;
    smg_target target;
    smg_compilation *c[3];
    smg_graph *g[3] = {NULL, NULL, NULL};
    assert_int_equal(smg_file_read(f->ctx, "tests/targets/range64k.target", &text, &size), SMG_OK);
    assert_int_equal(smg_target_parse(f->ctx, text, "range64k", &target), SMG_OK);
    smg_free(f->ctx, text, size + 1);
    table[1][5] = 1.0f;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(smg_graph_create(f->ctx, "g", &g[i]), SMG_OK);
        smg_value ids = smg_graph_input(g[i], "ids", "i64", "n");
        smg_value t = smg_graph_constant(g[i], "t", "f32", "700, 48", table[i / 2]);
        smg_graph_output(g[i], "y", smg_graph_gather(g[i], t, ids));
        assert_int_equal(smg_graph_finish(g[i]), SMG_OK);
        c[i] = open_graph(f, g[i], &target, NULL);
        assert_int_equal(c[i]->split, 1);
        assert_int_equal(c[i]->from_cache, i == 1);
    }
    int parts = 0;
    for (int k = 0; k < c[0]->bundle->buffers.count; k++) {
        const smg_bbuffer *a = &c[0]->bundle->buffers.items[k], *b = &c[1]->bundle->buffers.items[k];
        parts += a->kind == SMG_BUFFER_CONSTANT;
        assert_ptr_equal(a->data, b->data);
    }
    assert_true(parts > 1);
    for (int i = 0; i < 3; i++) {
        smg_compilation_destroy(c[i]);
        smg_graph_destroy(g[i]);
    }
}

/* What a plan depends on is in its key: none of these finds the entry of another. */
static void another_plan_has_another_key(void **state) {
    fixture *f = *state;
    static const smg_dim few[] = {{"n", 5}}, most[] = {{"n", 100}};
    const smg_compile_options options[] = {{0},
                                           {.objective = SMG_OBJECTIVE_DISPATCHES},
                                           {.unfused = true},
                                           {.objective = SMG_OBJECTIVE_MEMORY},
                                           {.max_nodes = 3},
                                           {.max_products = 3},
                                           {.min_gain = 0.25},
                                           {.max_live = 1 << 20},
                                           {.memory_pressure = 0.5},
                                           {.rank = 1},
                                           {.dims = few, .dim_count = 1},
                                           {.max_dims = most, .max_dim_count = 1},
                                           {.precision = SMG_TYPE_F16}};
    static const char *const texts[] = {MODEL("1", "4", "x", "relu"),   /* a small constant */
                                        MODEL("1", "2", "x", "tanh"),   /* an operation */
                                        MODEL("1", "2", "in", "relu")}; /* a name */
    smg_graph *g = parse(f, model);
    smg_target target = target_of(f, "lavapipe");
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < SMG_COUNT_OF(options); i++) {
            smg_compilation *c = open_graph(f, g, &target, &options[i]);
            assert_int_equal(c->from_cache, round == 1);
            smg_compilation_destroy(c);
        }
        for (size_t i = 0; i < SMG_COUNT_OF(texts); i++) {
            smg_graph *other = parse(f, texts[i]);
            smg_compilation *c = open_graph(f, other, &target, NULL);
            assert_int_equal(c->from_cache, round == 1);
            smg_compilation_destroy(c);
            smg_graph_destroy(other);
        }
        smg_target changed[3] = {target, target, target};
        changed[0].cores++;
        snprintf(changed[1].driver, sizeof(changed[1].driver), "another driver");
        changed[2].uuid[3] ^= 1;
        for (int i = 0; i < 3; i++) {
            smg_compilation *c = open_graph(f, g, &changed[i], NULL);
            assert_int_equal(c->from_cache, round == 1);
            smg_compilation_destroy(c);
        }
    }
    smg_graph_destroy(g);
}

/* Two constants in one memory are merged: the same bytes in two places are another graph. */
static void shared_memory_is_in_the_key(void **state) {
    fixture *f = *state;
    static float data[2][100000];
    smg_target target = target_of(f, "careful");
    bool cached[2][2];
    for (int i = 0; i < 4; i++) {
        smg_graph *g = NULL;
        assert_int_equal(smg_graph_create(f->ctx, "g", &g), SMG_OK);
        smg_value x = smg_graph_input(g, "x", "f32", "n, 100000");
        smg_value a = smg_graph_constant(g, "a", "f32", "100000", data[0]);
        smg_value b = smg_graph_constant(g, "b", "f32", "100000", data[i % 2]);
        smg_value sum = smg_graph_map(g, "add", 2, (smg_value[]){smg_graph_map(g, "mul", 2, (smg_value[]){x, a}), b});
        smg_graph_output(g, "y", sum);
        assert_int_equal(smg_graph_finish(g), SMG_OK);
        smg_compilation *c = open_graph(f, g, &target, NULL);
        cached[i / 2][i % 2] = c->from_cache;
        smg_compilation_destroy(c);
        smg_graph_destroy(g);
    }
    assert_true(!cached[0][0] && !cached[0][1] && cached[1][0] && cached[1][1]);
}

static void without_a_cache_nothing_is_kept(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    smg_target target = target_of(f, "careful");
    const smg_compile_options options = {.no_plan_cache = true};
    for (int i = 0; i < 2; i++) {
        smg_compilation *c = open_graph(f, g, &target, &options);
        assert_false(c->from_cache);
        smg_compilation_destroy(c);
    }
    smg_graph_destroy(g);
    close_context(f);
    open_context(f, "");
    g = parse(f, model);
    for (int i = 0; i < 2; i++) {
        smg_compilation *c = open_graph(f, g, &target, NULL);
        assert_false(c->from_cache);
        smg_compilation_destroy(c);
    }
    smg_graph_destroy(g);
}

/* ---- damage --------------------------------------------------------------------------------------- */

/* The damaged entry is ignored with one warning, and the next open reads again. */
static void expect_ignored(fixture *f, const smg_graph *g, const smg_target *target, const char *path,
                           const char *bytes, size_t size) {
    int warnings = f->seen.warnings;
    assert_int_equal(smg_file_write_atomic(f->ctx, path, bytes, size), SMG_OK);
    smg_compilation *c = open_graph(f, g, target, NULL);
    assert_false(c->from_cache);
    assert_int_equal(f->seen.warnings, warnings + 1);
    assert_non_null(strstr(f->seen.line, "is damaged: ignored"));
    assert_non_null(strstr(f->seen.line, path));
    smg_compilation_destroy(c);
    c = open_graph(f, g, target, NULL);
    assert_true(c->from_cache);
    assert_int_equal(f->seen.warnings, warnings + 1);
    smg_compilation_destroy(c);
}

static void damaged_entries_are_ignored(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, "graph g\ndim n max 64\nx = input f32[n, 8]\ny = relu(x)\noutput y = y\n");
    smg_target target = target_of(f, "careful");
    smg_compilation *c = open_graph(f, g, &target, NULL);
    const char *path = entry_of(f, c);
    char *good = NULL;
    size_t size = 0;
    smg_compilation_destroy(c);
    if (smg_file_read(f->ctx, path, &good, &size) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    for (size_t cut = 0; cut < size; cut += 1 + size / 40) expect_ignored(f, g, &target, path, good, cut);
    for (size_t at = 0; at < size; at += at < 80 ? 1 : 1 + size / 60) { /* 8: the version of the format */
        good[at] = (char)(good[at] ^ 4);
        expect_ignored(f, g, &target, path, good, size);
        good[at] = (char)(good[at] ^ 4);
    }
    expect_ignored(f, g, &target, path, good, size - 1);
    smg_free(f->ctx, good, size + 1);
    smg_graph_destroy(g);
}

enum { EXTRAS_BYTES = 32, EXTRAS_HASH = 40, EXTRAS = 48 }; /* where they are in an entry */

static void put_u64(char *at, uint64_t value) {
    for (size_t i = 0; i < 8; i++) at[i] = (char)(uint8_t)(value >> (8 * i));
}

/* What goes with the bundle, with a hash that is right: read or ignored, and lists are made or left out. */
static void entries_that_look_right_are_not_believed(void **state) {
    fixture *f = *state;
    static const uint8_t odd[] = {0, 1, 0x7f, 0xff};
    smg_graph *g = parse(f, "graph g\ndim n max 4096\nx = input f32[n, 8]\ny = relu(x)\noutput y = y\n");
    smg_target target = target_of(f, "h200");
    smg_compilation *c = open_graph(f, g, &target, NULL);
    const char *path = entry_of(f, c);
    char *bytes = NULL;
    size_t size = 0;
    int taken = 0, ignored = 0, made = 0;
    assert_true(c->variant_count > 1);
    smg_compilation_destroy(c);
    assert_int_equal(smg_file_read(f->ctx, path, &bytes, &size), SMG_OK);
    const size_t extras = (uint8_t)bytes[EXTRAS_BYTES];
    assert_true(extras > 30 && bytes[EXTRAS_BYTES + 1] == 0);
    for (size_t at = EXTRAS; at < EXTRAS + extras; at++) {
        char before = bytes[at];
        for (size_t i = 0; i < SMG_COUNT_OF(odd); i++) {
            bytes[at] = (char)odd[i];
            put_u64(bytes + EXTRAS_HASH, smg_hash_bytes(SMG_HASH_SEED, bytes + EXTRAS, extras));
            assert_int_equal(smg_file_write_atomic(f->ctx, path, bytes, size), SMG_OK);
            c = open_graph(f, g, &target, NULL);
            assert_int_equal(smg_compile_variant(c, 1), SMG_OK);
            *(c->from_cache ? &taken : &ignored) += 1;
            made += c->from_cache && c->bundle->variants.items[1].made;
            smg_compilation_destroy(c);
        }
        bytes[at] = before;
    }
    print_message("%d taken, %d of them with another list, %d ignored\n", taken, made, ignored);
    assert_true(taken > 20 && made > 10 && ignored > 20);
    smg_free(f->ctx, bytes, size + 1);
    smg_graph_destroy(g);
}

static void an_unwritable_folder_is_survived(void **state) {
    fixture *f = *state;
    smg_target target = target_of(f, "careful");
    const char *file = smg_arena_format(f->arena, "%s-file", f->folder);
    char below[600];
    assert_int_equal(smg_path_make_dirs(f->ctx, f->folder), SMG_OK);
    assert_int_equal(smg_file_write_atomic(f->ctx, file, "x", 1), SMG_OK);
    snprintf(below, sizeof(below), "%s/cache", file);
    close_context(f);
    open_context(f, below);
    smg_graph *g = parse(f, model);
    smg_compilation *c = open_graph(f, g, &target, NULL);
    assert_false(c->from_cache);
    assert_int_equal(f->seen.warnings, 1);
    assert_non_null(strstr(f->seen.line, "could not be written"));
    smg_compilation_destroy(c);
    smg_graph_destroy(g);
}

/* A disk with room for small files only: the system's limit on the size of a file gives the same kind of failure. */
static void a_full_disk_is_survived(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    smg_target target = target_of(f, "careful");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {.rlim_cur = 600, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    smg_compilation *c = NULL;
    smg_status status = smg_compile_open(f->ctx, g, &target, NULL, &c);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, SMG_OK);
    assert_int_equal(f->seen.warnings, 1);
    assert_non_null(strstr(f->seen.line, "could not be written"));
    assert_false(smg_file_exists(entry_of(f, c)));
    smg_compilation_destroy(c);
    c = open_graph(f, g, &target, NULL);
    assert_false(c->from_cache);
    smg_compilation_destroy(c);
    smg_graph_destroy(g);
}

/* ---- what rewriting asked of large constants ------------------------------------------------------ */

/* x W * a: the scale goes into W as long as no element of W is near the ends of the exponents. */
static smg_graph *scaled(fixture *f, float *weights, float odd) {
    static float scale[300];
    smg_graph *g = NULL;
    for (int i = 0; i < 300; i++) scale[i] = 2.0f;
    for (int i = 0; i < 300 * 300; i++) weights[i] = 0.25f;
    weights[12345] = odd;
    assert_int_equal(smg_graph_create(f->ctx, "scaled", &g), SMG_OK);
    smg_value x = smg_graph_input(g, "x", "f32", "n, 300");
    smg_value w = smg_graph_constant(g, "w", "f32", "300, 300", weights);
    smg_value a = smg_graph_constant(g, "a", "f32", "300", scale);
    smg_value p = smg_graph_contract(g, "ni,io->no", x, w);
    smg_graph_output(g, "y", smg_graph_map(g, "mul", 2, (smg_value[]){p, a}));
    assert_int_equal(smg_graph_finish(g), SMG_OK);
    return g;
}

static void questions_about_weights_are_asked_again(void **state) {
    fixture *f = *state;
    static float weights[2][300 * 300];
    smg_target target = target_of(f, "lavapipe");
    smg_graph *tame = scaled(f, weights[0], 0.125f), *wild = scaled(f, weights[1], 1e30f);
    smg_compilation *a = open_graph(f, tame, &target, NULL);
    assert_int_equal(a->graph->facts.count, 1);
    assert_int_equal(a->graph->facts.items[0].answer, 1);
    smg_compilation *b = open_graph(f, wild, &target, NULL);
    assert_memory_equal(a->key, b->key, sizeof(a->key));
    assert_false(b->from_cache);
    assert_non_null(strstr(f->seen.line, "other weights"));
    assert_int_equal(f->seen.warnings, 0);
    assert_int_equal(b->graph->facts.items[0].answer, 0);
    smg_compilation *again = open_graph(f, wild, &target, NULL);
    assert_true(again->from_cache);
    assert_same_bundle(f, b, again);
    smg_compilation_destroy(a);
    smg_compilation_destroy(b);
    smg_compilation_destroy(again);
    smg_graph_destroy(tame);
    smg_graph_destroy(wild);
}

/* ---- run lists that were not kept ------------------------------------------------------------------ */

/* Of a compilation and one that was read. */
static void add_lists(fixture *f, const smg_graph *g, const smg_compile_options *options, int lists, int terms) {
    smg_target target = target_of(f, "h200");
    smg_compilation *whole = open_graph(f, g, &target, options);
    assert_int_equal(whole->variant_count, lists);
    assert_int_equal(whole->terms, terms);
    smg_compilation *read = open_graph(f, g, &target, options);
    for (int v = 1; v < lists; v++) {
        assert_int_equal(smg_compile_variant(whole, v), SMG_OK);
        assert_true(read->from_cache);
        assert_false(read->bundle->variants.items[v].made);
        assert_int_equal(smg_compile_variant(read, v), SMG_OK);
        assert_non_null(read->graph);
        assert_true(read->bundle->variants.items[v].made);
        assert_int_equal(smg_bundle_verify(f->ctx, read->bundle), SMG_OK);
        assert_same_bundle(f, whole, read);
        smg_compilation_destroy(read);
        read = open_graph(f, g, &target, options); /* has it now */
        assert_true(read->bundle->variants.items[v].made);
        assert_null(read->graph);
        assert_same_bundle(f, whole, read);
    }
    smg_compilation_destroy(whole);
    smg_compilation_destroy(read);
}

static void lists_are_added_to_what_was_read(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    add_lists(f, g, NULL, 3, 0);
    smg_graph_destroy(g);
}

/* The graph that the kept plan was made of is not the one that rewriting gives. */
static void lists_of_products_by_terms(void **state) {
    fixture *f = *state;
    static const smg_dim one[] = {{"n", 1}};
    const smg_compile_options options = {.dims = one, .dim_count = 1};
    smg_graph *g =
        parse(f, "graph norm\ndim n max 4096\nx = input f32[n, 768]\n"
                 "w = constant f32[768, 2304] random seed=1 scale=0.05\nb = constant f32[768] random seed=2\n"
                 "k = fill 768 : f32[]\nt = sum(x) axis=1 keep\nm = div(t, k)\nd = sub(x, m)\n"
                 "s = square(d)\ne = sum(s) axis=1 keep\nv = div(e, k)\nr = rsqrt(v)\nh = mul(d, r)\n"
                 "z = add(h, b)\ny = contract(z, w) \"nk,kc->nc\"\noutput y = y\n");
    add_lists(f, g, &options, 2, 1);
    smg_graph_destroy(g);
}

/* An entry whose nodes are not those of the graph (nobody writes one): the first list serves all sizes. */
static void a_list_that_cannot_be_added_is_left_out(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model);
    smg_target target = target_of(f, "h200");
    smg_compilation_destroy(open_graph(f, g, &target, NULL));
    smg_compilation *read = open_graph(f, g, &target, NULL);
    for (int i = 0; i < read->origin_count; i++) read->origins[i] = 0;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(smg_compile_variant(read, 1), SMG_OK);
        assert_false(read->bundle->variants.items[1].made);
        assert_null(read->graph);
    }
    smg_compilation_destroy(read);
    smg_graph_destroy(g);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

typedef struct sweep_case {
    smg_graph *g;
    smg_target target;
} sweep_case;

static void prepare_sweep(smg_context *ctx, void *user) {
    sweep_case *s = user;
    assert_int_equal(smg_graph_parse(ctx, model, sizeof(model) - 1, "text", &s->g), SMG_OK);
    assert_int_equal(smg_target_named(ctx, "h200", &s->target), SMG_OK);
}

/* Opens, adds a list, and leaves the entry as the next round wants it: without that list. */
static smg_status sweep_body(smg_context *ctx, void *user) {
    sweep_case *s = user;
    smg_compilation *c = NULL;
    smg_status status = smg_compile_open(ctx, s->g, &s->target, NULL, &c);
    if (status == SMG_OK) {
        c->keeps = false;
        status = smg_compile_variant(c, 2);
        assert_true(status == SMG_MEMORY || c->bundle->variants.items[2].made);
    }
    if (status == SMG_MEMORY && c != NULL) {
        smg_context_clear_error(ctx);
        assert_int_equal(smg_compile_variant(c, 2), SMG_OK);
        assert_true(c->bundle->variants.items[2].made);
        smg_compilation_destroy(c);
        smg_graph_destroy(s->g);
        return SMG_OK;
    }
    smg_compilation_destroy(c);
    smg_graph_destroy(s->g);
    return status;
}

static void refusals_are_survived(void **state) {
    fixture *f = *state;
    sweep_case s;
    const fault_sweep sweep = {.prepare = prepare_sweep,
                               .body = sweep_body,
                               .user = &s,
                               .stride = 97,
                               .cache_dir = f->folder,
                               .may_recover = true};
    print_message("%d allocations refused, one at a time\n", fault_every_allocation(&sweep));
}

/* ---- on a device ----------------------------------------------------------------------------------- */

#if SMG_VULKAN
/* All of y for 40 rows, compared with the reference; NULL: no device. */
static float *run_model(fixture *f, smg_graph *g, bool anew, bool *out_cached) {
    const smg_model_desc desc = {.no_calibrate = true, .no_plan_cache = anew};
    const int64_t rows = 40;
    smg_model *m = NULL;
    smg_check check;
    smg_tensor x, y = {.name = "y"};
    smg_status status = smg_model_open_graph(f->ctx, g, &desc, &m);
    if (device_missing(f->ctx, status)) return NULL;
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_tensor_fill(f->ctx, g, 0, &rows, SMG_FILL_RANDOM, 5, f->arena, &x), SMG_OK);
    if (smg_model_run(m, &x, 1, &y, 1) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_compile_check(f->ctx, g, (smg_roundings){0}, &rows, &x, 1, &y, f->arena, &check), SMG_OK);
    assert_true(check.pass);
    float *copy = SMG_ARENA_ARRAY(f->arena, float, 40 * 300);
    memcpy(copy, y.data, 40 * 300 * sizeof(float));
    *out_cached = smg_model_compilation(m)->from_cache;
    smg_model_close(m);
    return copy;
}

static void results_are_the_same(void **state) {
    fixture *f = *state;
    smg_graph *g = parse(f, model), *other = parse(f, MODEL("5", "2", "x", "relu"));
    bool cached = false;
    float *anew = run_model(f, g, true, &cached);
    if (anew == NULL) skip();
    assert_false(cached);
    float *first = run_model(f, g, false, &cached);
    assert_false(cached);
    float *second = run_model(f, g, false, &cached);
    assert_true(cached);
    assert_memory_equal(anew, first, 40 * 300 * sizeof(float));
    assert_memory_equal(anew, second, 40 * 300 * sizeof(float));
    float *trained = run_model(f, other, false, &cached); /* other weights: the same entry, their own values */
    assert_true(cached);
    assert_memory_not_equal(anew, trained, 40 * 300 * sizeof(float));
    smg_graph_destroy(g);
    smg_graph_destroy(other);
}

static void run_rows(fixture *f, smg_source *source, smg_model *m, int64_t rows, bool made_before) {
    const smg_compilation *c = smg_model_compilation(m);
    int variant = smg_compile_choose(c, &rows);
    smg_tensor x, y = {.name = "y"};
    smg_check check;
    assert_int_equal(c->bundle->variants.items[variant].made, made_before);
    assert_int_equal(smg_tensor_fill(f->ctx, source->graph, 0, &rows, SMG_FILL_RANDOM, 6, f->arena, &x), SMG_OK);
    if (smg_model_run(m, &x, 1, &y, 1) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(smg_program_variant(smg_model_program(m)), variant);
    assert_int_equal(smg_compile_check(f->ctx, source->graph, (smg_roundings){0}, &rows, &x, 1, &y, f->arena, &check),
                     SMG_OK);
    assert_true(check.pass);
}

/* A program of a bundle that was read takes a list that is made later, and the next one reads that too. */
static void lists_are_added_on_a_device(void **state) {
    fixture *f = *state;
    const smg_dim dims[] = {{"n", 32}};
    const smg_model_desc desc = {.no_calibrate = true, .dims = dims, .dim_count = 1};
    smg_source source = {.ctx = f->ctx, .graph = parse(f, model)};
    smg_vk_device *device = NULL;
    smg_status status = smg_vk_open(f->ctx, NULL, 0, &device);
    if (device_missing(f->ctx, status)) skip();
    assert_int_equal(status, SMG_OK);
    ((smg_target *)smg_vk_target(device))->cores = 64; /* so that 32 rows do not fill it */
    for (int round = 0; round < 3; round++) {
        smg_model *m = NULL;
        if (smg_model_open_source(f->ctx, &source, device, &desc, &m) != SMG_OK)
            fail_msg("%s", smg_context_error(f->ctx));
        assert_int_equal(smg_model_compilation(m)->from_cache, round > 0);
        assert_true(smg_model_compilation(m)->variant_count > 1);
        run_rows(f, &source, m, 32, true);
        if (round > 0) run_rows(f, &source, m, 3000, round > 1);
        run_rows(f, &source, m, 40, true);
        smg_model_close(m);
    }
    smg_vk_close(device);
    smg_graph_destroy(source.graph);
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_second_open_reads),
        TEST(constants_find_their_data),
        TEST(parts_of_constants_find_their_data),
        TEST(another_plan_has_another_key),
        TEST(shared_memory_is_in_the_key),
        TEST(without_a_cache_nothing_is_kept),
        TEST(damaged_entries_are_ignored),
        TEST(entries_that_look_right_are_not_believed),
        TEST(an_unwritable_folder_is_survived),
        TEST(a_full_disk_is_survived),
        TEST(questions_about_weights_are_asked_again),
        TEST(lists_are_added_to_what_was_read),
        TEST(lists_of_products_by_terms),
        TEST(a_list_that_cannot_be_added_is_left_out),
        TEST(refusals_are_survived),
#if SMG_VULKAN
        TEST(results_are_the_same),
        TEST(lists_are_added_on_a_device),
#endif
    };
    return device_result(cmocka_run_group_tests_name("plan_cache", tests, NULL, NULL));
}
