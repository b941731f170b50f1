/* What fusion leaves with the objective of fewest dispatches, of every stored model and of the subgraphs of
 * support/subgraphs.h: how many kernels, what they move, why, and which patterns are fused. docs/fusion.md shows it, and
 * this test makes what stands between its marks: where kernels or reasons differ, the page as it should be is in the test
 * output. Bytes, and patterns by time, hang on prices: of them bounds are tested, and that no subgraph moves much more
 * than the page says.
 *
 * Of a layer of a model: each row-wise maximum stands between two products in one kernel (scores, softmax and what it
 * weighs, whatever the exporter wrote around them), and from one such kernel to the next there are no more dispatches
 * than promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/check_plan.h"
#include "support/output.h"

#define PAGE "docs/fusion.md"
#define TARGET "h200"
/* Distinct patterns at least, of models, and with the subgraphs. */
enum { LEAST_OF_MODELS = 60, LEAST_OF_ALL = 80 };
#define MOST_ATTENTION 0.04 /* of unfused bytes, over 1024 keys */
#define MOST_STREAMED 1.3   /* of inputs and outputs */

typedef struct model_row {
    const char *root, *folder, *file;
} model_row;

#define HF(folder_, output_, ...) {"tests/models/", folder_, ""},
#define ONNX(folder_, output_, ...) {NULL, folder_, "/model.onnx"},
static const model_row models[] = {
#include "support/hf_models.h"
#include "support/onnx_models.h"
};
#undef HF
#undef ONNX

typedef enum does { STREAMED, WHOLE, PASSES, MORE } does;
typedef struct subgraph_row {
    const char *file;
    int kernels;
    does does;
} subgraph_row;
static const subgraph_row subgraphs[] = {
#define SUBGRAPH(file_, kernels_, does_) {file_, kernels_, does_},
#include "support/subgraphs.h"
#undef SUBGRAPH
};

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena; /* of what is kept */
    smg_target target;
    smg_map *met;            /* patterns */
    smg_text table, reasons; /* of the subgraphs */
    smg_text patterns;
    int found;
} fixture;

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void expect_ok(const fixture *f, smg_status status, const char *of) {
    if (status != SMG_OK) fail_msg("%s: %s", of, smg_context_error(f->ctx));
}

/* ---- patterns ---------------------------------------------------------------------------------------- */

/* Several operations, one of which reduces or multiplies. */
static bool is_fused(const smg_graph *g, const smg_pstep *step) {
    bool more = false;
    for (int i = 0; i < step->node_count; i++) {
        smg_op_class class_ = smg_node_class(smg_graph_node(g, step->nodes[i]));
        more = more || class_ == SMG_CLASS_REDUCE || class_ == SMG_CLASS_CONTRACT;
    }
    return more && step->node_count >= 2;
}

static void add_pattern(fixture *f, const smg_graph *g, const smg_pstep *step, const char *where) {
    smg_text text;
    void *unused;
    smg_text_init(&text, f->ctx);
    expect_ok(f, smg_plan_pattern(g, step->nodes, step->node_count, &text), where);
    const char *pattern = smg_text_cstr(&text);
    if (!smg_map_get(f->met, pattern, strlen(pattern), &unused)) {
        expect_ok(f, smg_map_set(f->met, pattern, strlen(pattern), f), where);
        smg_text_addf(&f->patterns, "%d. %s %s: `%s`\n", ++f->found, where, step->name, pattern);
    }
    smg_text_free(&text);
}

static void add_patterns(fixture *f, const smg_plan *plan, const char *where) {
    for (int s = 0; s < plan->steps.count; s++)
        if (is_fused(plan->graph, &plan->steps.items[s])) add_pattern(f, plan->graph, &plan->steps.items[s], where);
}

/* ---- models ------------------------------------------------------------------------------------------ */

static int most_of(const char *folder) {
    return strstr(folder, "llama") != NULL ? 7 : 6;
}

static int holds(const smg_graph *g, const smg_pstep *s, const char *word) {
    int found = 0;
    for (int i = 0; i < s->node_count; i++) {
        found += strcmp(smg_op_get(smg_graph_node(g, s->nodes[i])->op)->word, word) == 0;
    }
    return found;
}

static void check_steps(const smg_plan *plan, const char *folder) {
    int last = -1, found = 0;
    for (int s = 0; s < plan->steps.count; s++) {
        const smg_pstep *step = &plan->steps.items[s];
        if (holds(plan->graph, step, "reduce_max") == 0) continue;
        if (holds(plan->graph, step, "contract") < 2) fail_msg("%s: attention is cut at %s", folder, step->name);
        if (last >= 0 && s - last > most_of(folder))
            fail_msg("%s: %d dispatches before %s", folder, s - last, step->name);
        last = s;
        found++;
    }
    printf("%s: %d dispatches, %d kernels of attention\n", folder, plan->steps.count, found);
    if (strstr(folder, "linear") == NULL) assert_true(found > 0);
}

static smg_compilation *plan_model(fixture *f, const smg_graph *g, smg_objective objective, const char *folder) {
    smg_dim dims[8];
    smg_compilation *made;
    int count = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < count && i < 8; i++) {
        const char *name = smg_size_symbol_name(g->sizes, i);
        int64_t most = smg_size_symbol_max(g->sizes, i);
        dims[i] = (smg_dim){.name = name, .value = strcmp(name, "batch") == 0 ? 1 : most < 128 ? most : 128};
    }
    const smg_compile_options o = {.objective = objective, .dims = dims, .dim_count = count};
    if (smg_compile_plan(g->ctx, g, &f->target, &o, &made) != SMG_OK)
        fail_msg("%s: %s", folder, smg_context_error(g->ctx));
    return made;
}

static void check_model(fixture *f, const smg_graph *g, const char *folder) {
    smg_compilation *made = plan_model(f, g, SMG_OBJECTIVE_DISPATCHES, folder);
    check_steps(made->plan, folder);
    add_patterns(f, made->plan, folder);
    smg_compilation_destroy(made);
}

/* Of directories: exporters' files are cut by time where these are. */
static void add_patterns_by_time(fixture *f, const smg_graph *g, const char *folder) {
    const char *name = smg_arena_format(f->arena, "%s by time", folder);
    smg_compilation *made = plan_model(f, g, SMG_OBJECTIVE_TIME, folder);
    assert_non_null(name);
    add_patterns(f, made->plan, name);
    smg_compilation_destroy(made);
}

static void of_models(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(models); i++) {
        smg_context *ctx;
        smg_source source;
        const model_row *r = &models[i];
        const char *root = r->root != NULL ? r->root : getenv("SMG_TEST_MODELS");
        assert_non_null(root);
        assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
        const char *path =
            smg_arena_format(f->arena, "%s%s%s%s", root, r->root != NULL ? "" : "/onnx/", r->folder, r->file);
        if (smg_source_open(ctx, path, false, &source) != SMG_OK) fail_msg("%s: %s", path, smg_context_error(ctx));
        check_model(f, source.graph, r->folder);
        if (r->root != NULL) add_patterns_by_time(f, source.graph, r->folder);
        smg_source_close(&source);
        smg_context_destroy(ctx);
    }
    printf("%d patterns\n", f->found);
    assert_true(f->found >= LEAST_OF_MODELS);
}

/* ---- subgraphs --------------------------------------------------------------------------------------- */

static int64_t size_of(const smg_graph *g, int symbol) {
    const char *name = smg_size_symbol_name(g->sizes, symbol);
    int64_t most = smg_size_symbol_max(g->sizes, symbol);
    int64_t size = strcmp(name, "b") == 0 || strcmp(name, "h") == 0 ? 8 : 1024;
    return size < most ? size : most;
}

static smg_compilation *plan_of(fixture *f, const smg_graph *g, const char *file, bool unfused) {
    smg_compilation *c;
    smg_dim dims[8];
    int count = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < count; i++) {
        dims[i] = (smg_dim){.name = smg_size_symbol_name(g->sizes, i), .value = size_of(g, i)};
    }
    const smg_compile_options o = {
        .objective = SMG_OBJECTIVE_DISPATCHES, .unfused = unfused, .dims = dims, .dim_count = count};
    expect_ok(f, smg_compile_plan(f->ctx, g, &f->target, &o, &c), file);
    return c;
}

static double bytes_moved(const smg_compilation *c) {
    double bytes = 0;
    for (int s = 0; s < c->plan->steps.count; s++) bytes += c->plan->steps.items[s].price.bytes;
    return bytes;
}

/* Of what kernels of the run read that no other one writes, and of the graph's outputs. */
static double bytes_of_ends(const fixture *f, const smg_compilation *c) {
    const smg_graph *g = c->plan->graph;
    double bytes = 0;
    bool *ours = SMG_ARENA_ARRAY(f->arena, bool, (size_t)g->nodes.count + 1);
    bool *seen = SMG_ARENA_ARRAY(f->arena, bool, (size_t)g->nodes.count + 1);
    assert_true(ours != NULL && seen != NULL);
    for (int s = 0; s < c->plan->steps.count; s++)
        for (int n = 0; n < c->plan->steps.items[s].node_count; n++) ours[c->plan->steps.items[s].nodes[n]] = true;
    for (int o = 0; o < g->outputs.count; o++) ours[smg_space_source(g, g->outputs.items[o].node)] = false;
    for (int s = 0; s < c->plan->steps.count; s++) {
        const smg_kernel *k = c->plan->steps.items[s].kernel;
        for (int b = 0; b < k->buffers.count; b++) {
            const smg_kbuffer *buffer = &k->buffers.items[b];
            int64_t elements = 0;
            if (ours[buffer->value] || seen[buffer->value]) continue;
            seen[buffer->value] = true;
            assert_true(smg_size_eval(k->sizes, buffer->elements, c->nominal, &elements));
            bytes += (double)elements * (double)smg_type_device_bytes(buffer->type);
        }
    }
    return bytes;
}

/* A line of a step's reasons that stands whatever tiles and prices are: numbers of tiles go, and so do prices. */
static bool settle(const char *line, size_t length, smg_text *out) {
    static const char *const kept[] = {"postponed past",
                                       "of one pass",
                                       "products with 1",
                                       "and 0 for all elements",
                                       "update-then-aggregate",
                                       "no update",
                                       "cut before",
                                       "cut all the same",
                                       ": only "};
    char text[1024];
    bool stands = false;
    if (length >= sizeof(text)) length = sizeof(text) - 1;
    memcpy(text, line, length);
    text[length] = '\0';
    for (size_t i = 0; i < SMG_COUNT_OF(kept); i++) stands = stands || strstr(text, kept[i]) != NULL;
    if (!stands) return false;
    char *prices = strstr(text, ": together ");
    if (prices != NULL && strncmp(prices, ": together impossible", 21) != 0) strcpy(prices, ": all cost less apart");
    for (const char *c = text; *c != '\0'; c++) {
        bool number = c > text && c[0] >= '0' && c[0] <= '9' && c[-1] >= 'a' && c[-1] <= 'z' && text[0] != 'i';
        if (!number) smg_text_add_n(out, c, 1);
    }
    return true;
}

static void add_reasons(fixture *f, const smg_plan *plan, const char *name) {
    bool first = true;
    for (int s = 0; s < plan->steps.count; s++) {
        const char *line = plan->steps.items[s].because;
        while (line != NULL && *line != '\0') {
            size_t length = strcspn(line, "\n");
            smg_text one;
            smg_text_init(&one, f->ctx);
            while (*line == ' ') line++, length--;
            if (settle(line, length, &one)) {
                if (first) smg_text_addf(&f->reasons, "\n**%s**\n\n", name);
                smg_text_addf(&f->reasons, "- `%s`\n", smg_text_cstr(&one));
                first = false;
            }
            smg_text_free(&one);
            line += length + (line[length] == '\n');
        }
    }
}

static bool says(const smg_plan *plan, const char *what) {
    bool found = false;
    for (int s = 0; s < plan->steps.count; s++) found = found || strstr(plan->steps.items[s].because, what) != NULL;
    return found;
}

/* What is wrong with it; NULL: nothing. */
static const char *breach_of(const subgraph_row *r, const smg_plan *plan, double times, double share) {
    bool one = plan->steps.count == 1, streams = r->does == STREAMED || r->does == WHOLE;
    if (plan->steps.count != r->kernels) return "it is more or fewer kernels than promised";
    if (one && streams && times > MOST_STREAMED) return "it moves too much";
    if (strstr(r->file, "/attention") != NULL && share > MOST_ATTENTION && strstr(r->file, "block") == NULL)
        return "it moves too much of what unfused kernels move";
    if (r->does == WHOLE && says(plan, "temporal")) return "it is cut into slices, although rows fit";
    if (r->does == PASSES && !says(plan, "no update, because")) return "nothing says why it has several passes";
    return NULL;
}

static int check_subgraph(fixture *f, const subgraph_row *r) {
    smg_graph *g;
    const char *name = base_name(r->file), *path = smg_arena_format(f->arena, "tests/%s.smg", r->file);
    expect_ok(f, check_load(f->ctx, path, &g), path);
    smg_compilation *fused = plan_of(f, g, path, false), *unfused = plan_of(f, g, path, true);
    double moved = bytes_moved(fused), before = bytes_moved(unfused), ends = bytes_of_ends(f, fused);
    smg_text_addf(&f->table, "| [%s](../%s) | %d | %d | %.0f | %.0f | %.1f %% | %.0f | %.2f |\n", name, path,
                  unfused->plan->steps.count, fused->plan->steps.count, moved / 1e3, before / 1e3, 100 * moved / before,
                  ends / 1e3, moved / ends);
    add_reasons(f, fused->plan, name);
    add_patterns(f, fused->plan, name);
    const char *breach = breach_of(r, fused->plan, moved / ends, moved / before);
    if (breach != NULL)
        printf("%s: %d kernels, %.2f times inputs and outputs, %.1f %% of unfused: %s\n", name,
               fused->plan->steps.count, moved / ends, 100 * moved / before, breach);
    smg_compilation_destroy(fused);
    smg_compilation_destroy(unfused);
    smg_graph_destroy(g);
    return breach != NULL;
}

static void of_subgraphs(void **state) {
    fixture *f = *state;
    int wrong = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(subgraphs); i++) wrong += check_subgraph(f, &subgraphs[i]);
    printf("%d patterns\n", f->found);
    assert_int_equal(wrong, 0);
    assert_true(f->found >= LEAST_OF_ALL);
}

/* ---- the page ---------------------------------------------------------------------------------------- */

/* What is between a mark and its end in the page. */
static const char *find_section(const char *page, const char *mark, size_t *out_length) {
    const char *begin = strstr(page, mark), *end = begin != NULL ? strstr(begin, "<!-- end -->") : NULL;
    if (end == NULL) fail_msg(PAGE " has no mark %s, or no end of it", mark);
    begin += strlen(mark) + 1;
    *out_length = (size_t)(end - begin);
    return begin;
}

/* Of a line of the table: up to what hangs on prices, its fourth bar. */
static size_t settled_length(const char *line) {
    size_t length = strcspn(line, "\n"), at = 0;
    for (int bars = 0; at < length && bars < 4; at++) bars += line[at] == '|';
    return at;
}

#define MOST_MORE 1.1 /* of what the page says that a subgraph moves, in times of its inputs and outputs */

/* The last number of a line of the table. */
static double last_number(const char *line) {
    const char *end = line + strcspn(line, "\n");
    for (int bars = 0; end > line && bars < 2; bars += *end == '|') end--;
    return strtod(end + 1, NULL);
}

/* a: of the page. */
static bool same_rows(const char *a, size_t length, const char *b) {
    const char *end = a + length;
    while (a < end && *b != '\0') {
        size_t settled = settled_length(a);
        if (settled != settled_length(b) || strncmp(a, b, settled) != 0) return false;
        if (last_number(b) > MOST_MORE * last_number(a)) return false;
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    return a == end && *b == '\0';
}

static void page_is_up_to_date(void **state) {
    fixture *f = *state;
    const struct {
        const char *mark;
        const smg_text *made;
    } sections[] = {
        {"<!-- subgraphs -->", &f->table}, {"<!-- reasons -->", &f->reasons}, {"<!-- patterns -->", &f->patterns}};
    char *read, path[4096];
    size_t size;
    smg_text now;
    bool same = true;
    smg_text_init(&now, f->ctx);
    expect_ok(f, smg_file_read(f->ctx, PAGE, &read, &size), PAGE);
    const char *page = smg_arena_format(f->arena, "%.*s", (int)size, read), *rest = page;
    smg_free(f->ctx, read, size + 1);
    assert_non_null(page);
    for (size_t i = 0; i < SMG_COUNT_OF(sections); i++) {
        size_t length;
        const char *old = find_section(rest, sections[i].mark, &length), *made = smg_text_cstr(sections[i].made);
        if (i == 0) same = same && same_rows(old, length, made);
        if (i == 1) same = same && strlen(made) == length && strncmp(old, made, length) == 0;
        smg_text_add_n(&now, rest, (size_t)(old - rest));
        smg_text_add(&now, made);
        rest = old + length;
    }
    smg_text_add(&now, rest);
    expect_ok(f, smg_text_status(&now), PAGE);
    test_output(path, sizeof path, "fusion.md");
    expect_ok(f, smg_file_write_atomic(f->ctx, path, smg_text_cstr(&now), strlen(smg_text_cstr(&now))), path);
    if (!same) printf(PAGE " is another than the plans; if that is meant, what it should be is in %s\n", path);
    smg_text_free(&now);
    assert_true(same);
}

static int setup(void **state) {
    static fixture f;
    char path[1024];
    test_output(path, sizeof path, "fusion.md"); /* before anything takes its time */
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    assert_int_equal(smg_map_create(f.arena, &f.met), SMG_OK);
    assert_int_equal(smg_target_named(f.ctx, TARGET, &f.target), SMG_OK);
    smg_text_init(&f.table, f.ctx);
    smg_text_init(&f.reasons, f.ctx);
    smg_text_init(&f.patterns, f.ctx);
    smg_text_add(&f.table,
                 "| subgraph | operations | kernels | KB moved | KB unfused | share | KB of inputs and outputs | "
                 "times |\n|---|---|---|---|---|---|---|---|\n");
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_text_free(&f->table);
    smg_text_free(&f->reasons);
    smg_text_free(&f->patterns);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_models), cmocka_unit_test(of_subgraphs),
                                       cmocka_unit_test(page_is_up_to_date)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
