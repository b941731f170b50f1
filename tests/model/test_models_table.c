/* docs/models.md: what becomes of every stored model. Writes the table anew when called with --write; otherwise every row must
 * be what the document says (bytes within a quarter: they follow tile sizes), every layer must take no more dispatches than
 * promised, and every row-wise maximum must stand between two products in one kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"

#define DOCUMENT "docs/models.md"
#define TARGET "h200"

typedef struct row {
    const char *root, *folder, *file;
} row;

#define HF(folder_, output_, ...) { "tests/models/", folder_, "" },
#define ONNX(folder_, output_, ...) { NULL, folder_, "/model.onnx" },
static const row rows[] = {
#include "support/hf_models.h"
#include "support/onnx_models.h"
};
#undef HF
#undef ONNX

static const char *arguments = "";

typedef struct counts {
    int nodes, ops, kernels, dispatches, prepared, attentions, layer;
    double bytes, unfused;
} counts;

static int most_of(const char *folder) { return strstr(folder, "llama") != NULL ? 7 : 6; }

static int holds(const smg_graph *g, const smg_pstep *s, const char *word) {
    int found = 0;
    for (int i = 0; i < s->node_count; i++) {
        found += strcmp(smg_op_get(smg_graph_node(g, s->nodes[i])->op)->word, word) == 0;
    }
    return found;
}

/* The program without the names of tensors, which differ from layer to layer. */
static uint64_t structure_of(smg_context *ctx, const smg_pstep *s) {
    char plain[64][8];
    smg_text text;
    smg_text_init(&text, ctx);
    smg_kernel k = *s->kernel;
    smg_kbuffer buffers[64];
    assert_true(k.buffers.count <= 64);
    for (int i = 0; i < k.buffers.count; i++) {
        buffers[i] = s->kernel->buffers.items[i];
        snprintf(plain[i], sizeof(plain[i]), "b%d", i);
        buffers[i].name = plain[i];
    }
    k.buffers.items = buffers;
    k.name = "k";
    smg_kernel_print(&k, &text);
    uint64_t hash = SMG_HASH_SEED;
    for (const char *at = smg_text_cstr(&text); *at; at++) {
        if (*at == '#') at += strcspn(at, "\n"); /* notes name nodes */
        if (*at == 0) break;
        hash = smg_hash_u64(hash, (uint64_t)(unsigned char)*at);
    }
    smg_text_free(&text);
    return hash;
}

static void count_steps(smg_context *ctx, const smg_plan *plan, counts *c, const char *folder) {
    uint64_t seen[256];
    int last = -1;
    c->dispatches = plan->steps.count;
    c->prepared = plan->prepare.count;
    assert_true(c->dispatches <= 256);
    for (int s = 0; s < plan->steps.count; s++) {
        const smg_pstep *step = &plan->steps.items[s];
        uint64_t key = structure_of(ctx, step);
        int at = 0;
        while (at < c->kernels && seen[at] != key) at++;
        if (at == c->kernels) seen[c->kernels++] = key;
        if (holds(plan->graph, step, "reduce_max") == 0) continue;
        if (holds(plan->graph, step, "contract") < 2) fail_msg("%s: attention is cut at %s", folder, step->name);
        c->attentions++;
        if (last >= 0 && s - last > c->layer) c->layer = s - last;
        last = s;
    }
}

static double compile(smg_context *ctx, const smg_graph *g, bool unfused, counts *c, const char *folder) {
    smg_dim dims[8];
    smg_target target;
    smg_compilation *made;
    double bytes, flops, seconds;
    int count = smg_size_symbol_count(g->sizes);
    for (int i = 0; i < count && i < 8; i++) {
        const char *name = smg_size_symbol_name(g->sizes, i);
        int64_t most = smg_size_symbol_max(g->sizes, i);
        dims[i] = (smg_dim){ .name = name, .value = strcmp(name, "batch") == 0 ? 1 : most < 128 ? most : 128 };
    }
    assert_int_equal(smg_target_named(ctx, TARGET, &target), SMG_OK);
    smg_compile_options o = { .objective = SMG_OBJECTIVE_DISPATCHES, .unfused = unfused, .dims = dims, .dim_count = count };
    if (smg_compile_plan(ctx, g, &target, &o, &made) != SMG_OK) fail_msg("%s: %s", folder, smg_context_error(ctx));
    smg_compile_work(made, &bytes, &flops, &seconds);
    if (!unfused) {
        c->nodes = smg_compile_op_count(g);
        c->ops = smg_compile_run_ops(made);
        count_steps(ctx, made->plan, c, folder);
    }
    smg_compilation_destroy(made);
    return bytes;
}

static void count_row(const row *r, counts *c) {
    smg_context *ctx;
    smg_arena *arena;
    smg_source source;
    const char *root = r->root != NULL ? r->root : getenv("SMG_TEST_MODELS");
    assert_non_null(root);
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    const char *path = smg_arena_format(arena, "%s%s%s%s", root, r->root != NULL ? "" : "/onnx/", r->folder, r->file);
    if (smg_source_open(ctx, path, false, &source) != SMG_OK) fail_msg("%s: %s", path, smg_context_error(ctx));
    *c = (counts){ 0 };
    c->bytes = compile(ctx, source.graph, false, c, r->folder);
    c->unfused = compile(ctx, source.graph, true, c, r->folder);
    smg_source_close(&source);
    smg_arena_destroy(arena);
    smg_context_destroy(ctx);
}

static void row_text(const row *r, const counts *c, char out[256]) {
    snprintf(out, 256, "| %s%s | %d | %d | %d | %d | %d | %d | %d |", r->folder, r->file, c->nodes, c->ops, c->kernels,
             c->dispatches, c->attentions, c->layer, c->prepared);
}

static bool near(double a, double b) { return fabs(a - b) <= 0.25 * (a > b ? a : b) + 0.02; }

static const char head[] =
    "# What becomes of a model\n\n"
    "Made by `tests/test_models_table --write` (in the build folder, run from the source folder); do not edit. Every stored\n"
    "model is planned for an H200 with `--objective dispatches` at batch 1 and 128 tokens, or as many as it takes. The\n"
    "models are small: where a row of a wide one does not fit on chip, it takes a kernel or two more a layer.\n\n"
    "*Ops* are the operations of the imported graph, *after rewrites* those that every run computes; *kernels* are different\n"
    "programs, *dispatches* how often one is started in a run. *Attention* counts the kernels that hold the scores, their\n"
    "softmax and the product behind it, whatever the exporter wrote around them; *a layer* is the most dispatches from one of\n"
    "them to the next. *Prepared* kernels run once, on constants. MB are the modelled traffic of a run, and of the same graph\n"
    "with every operation its own kernel.\n\n"
    "| model | ops | after rewrites | kernels | dispatches | attention | a layer | prepared | MB | unfused MB |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

static void models_are_as_documented(void **state) {
    bool write = strcmp(arguments, "--write") == 0;
    smg_context *ctx;
    char *document = NULL, text[256];
    size_t size = 0;
    int wrong = 0;
    (void)state;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    FILE *file = write ? fopen(DOCUMENT, "w") : NULL;
    if (write) {
        assert_non_null(file);
        fputs(head, file);
    } else {
        assert_int_equal(smg_file_read(ctx, DOCUMENT, &document, &size), SMG_OK);
    }
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        counts c;
        double bytes = 0, unfused = 0;
        count_row(&rows[i], &c);
        row_text(&rows[i], &c, text);
        if (c.layer > most_of(rows[i].folder)) fail_msg("%s: a layer takes %d dispatches", rows[i].folder, c.layer);
        if (write) fprintf(file, "%s %.2f | %.2f |\n", text, c.bytes / 1e6, c.unfused / 1e6);
        if (write) continue;
        const char *line = strstr(document, text);
        bool same = line != NULL && sscanf(line + strlen(text), " %lf | %lf |", &bytes, &unfused) == 2 &&
                    near(bytes, c.bytes / 1e6) && near(unfused, c.unfused / 1e6);
        if (!same) printf("now: %s %.2f | %.2f |\n", text, c.bytes / 1e6, c.unfused / 1e6);
        wrong += !same;
    }
    if (file != NULL) fclose(file);
    if (document != NULL) smg_free(ctx, document, size + 1);
    smg_context_destroy(ctx);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(models_are_as_documented) };
    if (argc > 1) arguments = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
