/* compile_explain.c: every phase of a compilation as text.
 *
 * Explain knows nothing of its own: it prints what each phase left behind (the graph, the counts of its
 * rewrites, spaces, steps with their "because" lines, programs, shaders). Without prices the text
 * depends on structure alone, which is what the golden files hold. */
#include <stdlib.h>

#include "compile/compile.h"
#include "glsl/glsl.h"
#include "lower/lower.h"

typedef smg_status (*print_step)(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                                 smg_text *text);

/* A reason stays, its prices go: they are the same line's rest, from the last colon on. */
static void add_without_prices(smg_text *text, const char *line, size_t length) {
    size_t colon = length;
    while (colon > 0 && line[colon - 1] != ':') colon--;
    bool priced = length > 3 && strncmp(line + length - 3, " us", 3) == 0 && colon > 0;
    smg_text_add_n(text, line, priced ? colon : length);
    if (priced) smg_text_add(text, " all kernels cost less apart");
}

static void print_because(const smg_pstep *step, bool prices, smg_text *text) {
    const char *line = step->because;
    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, "\n");
        smg_text_add(text, "  because ");
        if (prices) {
            smg_text_add_n(text, line, length);
        } else {
            add_without_prices(text, line, length);
        }
        smg_text_add(text, "\n");
        line += length + (line[length] == '\n');
    }
}

/* That the step's nodes are of. */
static const smg_graph *graph_of(const smg_compilation *c, const smg_pstep *step) {
    bool once = step >= c->plan->prepare.items && step < c->plan->prepare.items + c->plan->prepare.count;
    return once ? c->plan->planned : c->plan->graph;
}

/* Of prepare steps the summary says what they make and no more. */
static void print_plan_step(const smg_compilation *c, const smg_pstep *step, bool once,
                            const smg_explain_options *options, smg_text *text) {
    bool prices = options->prices;
    const smg_price *price = &step->price;
    smg_text_addf(text, "%s: %d %s%s", step->name, step->node_count, step->node_count == 1 ? "op" : "ops",
                  once ? ", once, of constants" : "");
    if (prices) {
        smg_text_addf(text, ", %.2f us, %.0f KB, %.3g Mflop, %.0f workgroups", price->seconds * 1e6, price->bytes / 1e3,
                      price->flops / 1e6, price->workgroups);
    }
    smg_text_addf(text, ", %d invocations, shared %lld B, registers %lld, code %lld\n", step->kernel->lanes,
                  (long long)price->shared_bytes, (long long)price->registers, (long long)price->operations);
    for (int n = 0; n < step->node_count; n++) {
        const smg_node *node = smg_graph_node(graph_of(c, step), step->nodes[n]);
        smg_text_addf(text, "    %-10s %s\n", smg_op_get(node->op)->word,
                      smg_graph_describe(graph_of(c, step), step->nodes[n]));
    }
    bool summary = options->phase == NULL && options->kernel == NULL;
    if (!once || !summary) print_because(step, prices, text);
}

/* The last program that stood after pass `pass` or before it. */
static const char *program_after(const smg_pstep *step, int pass) {
    const char *text = "";
    for (int i = 0; i < step->lowered.count && step->lowered.items[i].pass <= pass; i++)
        text = step->lowered.items[i].text;
    return text;
}

static smg_status no_pass(smg_compilation *c, const char *name) {
    smg_text names;
    smg_text_init(&names, c->ctx);
    for (int i = 0; i < smg_lower_pass_count(); i++)
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", smg_lower_pass_get(i)->name);
    smg_status status =
        smg_fail(c->ctx, SMG_NOT_FOUND, "there is no pass '%s'; there are: %s", name, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

/* The list of passes, each with its program where it made another one of it; or the program after one of them. */
static smg_status print_lower(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                              smg_text *text) {
    int at = 0;
    for (int i = 0; i < smg_lower_pass_count(); i++) {
        const smg_lower_pass *pass = smg_lower_pass_get(i);
        if (options->after != NULL && strcmp(options->after, pass->name) == 0) {
            smg_text_add(text, program_after(step, i));
            return SMG_OK;
        }
        if (options->after != NULL) continue;
        bool changed = at < step->lowered.count && step->lowered.items[at].pass == i;
        smg_text_addf(text, "%s pass %s: %s%s\n", step->name, pass->name, pass->what,
                      changed ? "" : " (nothing to do)");
        if (changed) smg_text_add(text, step->lowered.items[at++].text);
    }
    return options->after != NULL ? no_pass(c, options->after) : SMG_OK;
}

static smg_status print_kernel(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                               smg_text *text) {
    (void)c;
    (void)options;
    smg_kernel_print(step->kernel, text);
    return SMG_OK;
}

static smg_status print_glsl(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                             smg_text *text) {
    (void)options;
    smg_text_addf(text, "// %s\n", step->name);
    return smg_glsl_write(c->ctx, step->kernel, &c->target, text);
}

static smg_status print_space(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                              smg_text *text) {
    (void)c;
    (void)options;
    smg_text_addf(text, "space %s\n", step->name);
    smg_space_print(step->space, text);
    return SMG_OK;
}

bool smg_compile_is_step(const char *kernel, const smg_pstep *step, int index) {
    if (kernel == NULL) return true;
    char *end = NULL;
    long number = strtol(kernel, &end, 10);
    bool is_number = end != kernel && *end == '\0';
    return is_number ? number == index : strcmp(kernel, step->name) == 0;
}

smg_status smg_compile_no_step(smg_compilation *c, const char *kernel) {
    int count = c->plan->steps.count;
    return smg_fail(c->ctx, SMG_NOT_FOUND, "there is no kernel '%s'; there are %d: %s to %s", kernel, count,
                    count > 0 ? c->plan->steps.items[0].name : "none",
                    count > 0 ? c->plan->steps.items[count - 1].name : "none");
}

static smg_status each_step(smg_compilation *c, const smg_explain_options *options, print_step print, smg_text *text) {
    bool any = options->kernel == NULL;
    int prepare = c->plan->prepare.count;
    for (int i = -prepare; i < c->plan->steps.count; i++) {
        const smg_pstep *step = i < 0 ? &c->plan->prepare.items[i + prepare] : &c->plan->steps.items[i];
        if (!smg_compile_is_step(options->kernel, step, i)) continue;
        any = true;
        if (print != NULL) {
            SMG_TRY(print(c, step, options, text));
        } else {
            print_plan_step(c, step, i < 0, options, text);
        }
    }
    return any ? SMG_OK : smg_compile_no_step(c, options->kernel);
}

static void print_rewrites(const smg_compilation *c, smg_text *text) {
    smg_text_addf(text, "rewrites: %d nodes -> %d\n", c->report.nodes_before, c->report.nodes_after);
    for (int i = 0; i < c->report.rules.count; i++) {
        const smg_rewrite_count *rule = &c->report.rules.items[i];
        if (rule->applied > 0) smg_text_addf(text, "  %4d  %s\n", rule->applied, rule->rule);
    }
}

void smg_compile_print_sizes(const smg_compilation *c, const int64_t *values, smg_text *text) {
    for (int i = 0; i < smg_size_symbol_count(c->graph->sizes); i++) {
        smg_text_addf(text, " %s=%lld", smg_size_symbol_name(c->graph->sizes, i), (long long)values[i]);
    }
}

/* Which run list serves which sizes; the one that is printed comes first. */
static void print_guards(const smg_compilation *c, smg_text *text) {
    for (int i = 0; i < c->variant_count && c->variant_count > 1; i++) {
        const smg_variant *v = &c->variants[i];
        smg_text_add(text, i == 0 ? "run list for " : "another for ");
        if (v->low > 1) smg_text_addf(text, "%lld <= ", (long long)v->low);
        smg_size_print(c->graph->sizes, c->measure, text);
        if (v->high < INT64_MAX) smg_text_addf(text, " <= %lld", (long long)v->high);
        smg_text_add(text, ": tiles chosen at");
        smg_compile_print_sizes(c, v->nominal, text);
        smg_text_add(text, i == 0 ? "\n" : ", made when such sizes are bound\n");
    }
}

/* The value's element type in memory, and why it is not the one that was asked for. */
static void print_kept(const smg_compilation *c, smg_node_id id, smg_text *text) {
    smg_text_addf(text, "  %s %s: %s\n", smg_type_word(smg_graph_storage(c->graph, id)),
                  smg_graph_describe(c->graph, id), c->precision.why[id]);
}

/* bound[id]: a kernel of the first run list or of the prepare list has the value's buffer. */
static smg_status mark_bound(const smg_compilation *c, bool **out_bound) {
    bool *bound = SMG_ARENA_ARRAY(c->arena, bool, (size_t)c->graph->nodes.count + 1);
    int prepare = c->plan->prepare.count;
    if (bound == NULL) return SMG_MEMORY;
    for (int i = 0; i < prepare + c->plan->steps.count; i++) {
        const smg_pstep *step = i < prepare ? &c->plan->prepare.items[i] : &c->plan->steps.items[i - prepare];
        for (int b = 0; b < step->kernel->buffers.count; b++) {
            const smg_kbuffer *buffer = &step->kernel->buffers.items[b];
            bound[buffer->value] = true;
            for (int n = 0; n < buffer->each_count; n++) bound[buffer->each[n]] = true;
        }
    }
    *out_bound = bound;
    return SMG_OK;
}

/* Nothing of a plan in f32: that is what everything is. */
static smg_status print_precision(const smg_compilation *c, smg_text *text) {
    int narrow = 0, wide = 0;
    smg_allowance allowed;
    bool *bound = NULL;
    if (c->precision.asked == SMG_TYPE_F32) return SMG_OK;
    const char *word = smg_type_word(c->precision.asked);
    SMG_TRY(mark_bound(c, &bound));
    SMG_TRY(smg_compile_allow(c->source, smg_compile_roundings(c), c->nominal, c->arena, &allowed));
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) {
        bool own = smg_graph_storage(c->graph, id) == smg_graph_node(c->graph, id)->type;
        narrow += bound[id] && !own;
        wide += bound[id] && c->precision.why[id] != NULL;
    }
    bool partial = smg_compile_roundings(c).partial && c->precision.asked == SMG_TYPE_F16;
    smg_text_addf(
        text,
        "precision %s: %d values are %s in memory, %d stay f32; arithmetic is f32%s; --check allows %.2g, %.2g is "
        "likely\n",
        word, narrow, word, wide, partial ? " but for partial sums" : "", allowed.relative, c->precision.likely);
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++)
        if (bound[id] && c->precision.why[id] != NULL) print_kept(c, id, text);
    return SMG_OK;
}

/* Which run list was taken, and what decided. */
static void print_ends(const smg_compilation *c, bool prices, smg_text *text) {
    const smg_plan *plan = c->plan;
    if (plan->kept <= 0) return;
    if (plan->kept >= 1) {
        smg_text_add(text, "masks without ends: a row that is alone has the keys that its size says\n");
        return;
    }
    smg_text_addf(text, "masks %s ends: where rows keep %.0f %% of their keys that is cheaper",
                  plan->with_ends < plan->without_ends ? "with" : "without", 100 * plan->kept);
    if (prices) smg_text_addf(text, ", %.2f us with, %.2f us without", plan->with_ends * 1e6, plan->without_ends * 1e6);
    smg_text_add(text, "\n");
}

static void print_summary(const smg_compilation *c, bool prices, smg_text *text) {
    double bytes = 0;
    double flops = 0;
    double seconds = 0;
    smg_compile_work(c, &bytes, &flops, &seconds);
    smg_text_addf(text, "graph %s: %d ops -> %d ops after rewrites -> %d kernels on %s\n", c->graph->name,
                  smg_compile_op_count(c->source), c->run_ops, c->plan->steps.count, c->target.name);
    if (c->target.revision > 0)
        smg_text_addf(text, "rates: revision %lld, fitted to kernels that were measured\n",
                      (long long)c->target.revision);
    if (c->plan->prepare.count > 0) {
        smg_text_addf(text, "prepare: %d kernels, once, of constants\n", c->plan->prepare.count);
    }
    print_guards(c, text);
    print_ends(c, prices, text);
    if (c->options.max_live > 0 || c->options.objective == SMG_OBJECTIVE_MEMORY)
        smg_text_addf(text, "memory: %lld B of values between kernels live at a time, at most\n",
                      (long long)c->plan->live);
    if (!prices) return;
    smg_text_add(text, "prices at");
    smg_compile_print_sizes(c, c->nominal, text);
    smg_text_addf(text, ": %.1f us, %.3g MB moved, %.3g Mflop\n", seconds * 1e6, bytes / 1e6, flops / 1e6);
}

static void print_source(const smg_compilation *c, smg_text *text) {
    smg_graph_print(c->source, text);
}

static void print_rewritten(const smg_compilation *c, smg_text *text) {
    print_rewrites(c, text);
    smg_graph_print(c->graph, text);
}

/* All values, whether a plan has them in memory or not. */
static void print_types(const smg_compilation *c, smg_text *text) {
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) {
        const smg_node *node = smg_graph_node(c->graph, id);
        if (smg_node_class(node) == SMG_CLASS_VIEW) continue;
        if (!smg_node_computes(node) && smg_op_leaf(node->op) != SMG_LEAF_TENSOR) continue;
        bool kept = c->precision.why != NULL && c->precision.why[id] != NULL;
        if (kept)
            print_kept(c, id, text);
        else
            smg_text_addf(text, "  %s %s\n", smg_type_word(smg_graph_storage(c->graph, id)),
                          smg_graph_describe(c->graph, id));
    }
}

static void print_target(const smg_compilation *c, smg_text *text) {
    smg_target_print(&c->target, text);
}

/* A phase is one text, or one for each step (NULL: the step's lines of the plan). */
static const struct phase {
    const char *name;
    void (*whole)(const smg_compilation *c, smg_text *text);
    print_step step;
} phases[] = {
    {"graph", print_source, NULL},    {"rewrite", print_rewritten, NULL},
    {"precision", print_types, NULL}, {"target", print_target, NULL},
    {"space", NULL, print_space},     {"plan", NULL, NULL},
    {"lower", NULL, print_lower},     {"kernel", NULL, print_kernel},
    {"glsl", NULL, print_glsl},       {"search", NULL, smg_compile_print_search},
};

static smg_status no_phase(smg_compilation *c, const char *name) {
    smg_text names;
    smg_text_init(&names, c->ctx);
    for (size_t i = 0; i < SMG_COUNT_OF(phases); i++) smg_text_addf(&names, "%s%s", i ? ", " : "", phases[i].name);
    smg_status status =
        smg_fail(c->ctx, SMG_NOT_FOUND, "there is no phase '%s'; there are: %s", name, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

smg_status smg_compile_explain(smg_compilation *c, const smg_explain_options *options, smg_text *text) {
    if (options->phase == NULL) {
        print_summary(c, options->prices, text);
        SMG_TRY(print_precision(c, text));
        print_rewrites(c, text);
        SMG_TRY(each_step(c, options, NULL, text));
        return smg_text_status(text);
    }
    const struct phase *phase = NULL;
    for (size_t i = 0; i < SMG_COUNT_OF(phases); i++)
        if (strcmp(phases[i].name, options->phase) == 0) phase = &phases[i];
    if (phase == NULL) return no_phase(c, options->phase);
    if (options->after != NULL && phase->step != print_lower)
        return smg_fail(c->ctx, SMG_INVALID, "phase '%s' has no program after pass '%s'; phase 'lower' has",
                        phase->name, options->after);
    if (phase->whole != NULL && options->kernel != NULL)
        return smg_fail(c->ctx, SMG_INVALID, "phase '%s' is one text, without kernel '%s'", phase->name,
                        options->kernel);
    if (phase->whole != NULL)
        phase->whole(c, text);
    else
        SMG_TRY(each_step(c, options, phase->step, text));
    return smg_text_status(text);
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

void smg_compile_lines_json(const char *lines, smg_text *text) {
    smg_text_add(text, "[");
    char line[1024];
    for (bool first = true; lines != NULL && *lines != '\0'; first = false) {
        size_t length = strcspn(lines, "\n");
        size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;
        memcpy(line, lines, kept);
        line[kept] = '\0';
        if (!first) smg_text_add(text, ", ");
        smg_text_add_json(text, line);
        lines += length + (lines[length] == '\n');
    }
    smg_text_add(text, "]");
}

static smg_status add_step_json(const smg_compilation *c, const smg_pstep *step, smg_text *text) {
    smg_text_add(text, "    {\"name\": ");
    smg_text_add_json(text, step->name);
    smg_text_add(text, ", \"ops\": [");
    for (int n = 0; n < step->node_count; n++) {
        smg_text_add(text, n > 0 ? ", " : "");
        smg_text_add_json(text, smg_op_get(smg_graph_node(graph_of(c, step), step->nodes[n])->op)->word);
    }
    smg_text_add(text, "], \"pattern\": \"");
    SMG_TRY(smg_plan_pattern(graph_of(c, step), step->nodes, step->node_count, text));
    smg_text_addf(text, "\", \"seconds\": %.9g, \"seconds_beside\": %.9g, \"bytes\": %.0f, \"flops\": %.0f, ",
                  step->price.seconds, step->beside, step->price.bytes, step->price.flops);
    smg_text_addf(text, "\"workgroups\": %.0f, ", step->price.workgroups);
    smg_text_addf(
        text, "\"shared_bytes\": %lld, \"registers\": %lld, \"operations\": %lld, \"invocations\": %d, \"because\": ",
        (long long)step->price.shared_bytes, (long long)step->price.registers, (long long)step->price.operations,
        step->kernel->lanes);
    smg_compile_lines_json(step->because, text);
    smg_text_add(text, "}");
    return SMG_OK;
}

/* high is null where there is no bound. */
static void add_guards_json(const smg_compilation *c, smg_text *text) {
    smg_text_add(text, "[");
    for (int i = 0; i < c->variant_count; i++) {
        const smg_variant *v = &c->variants[i];
        smg_text_add(text, i > 0 ? ", {\"measure\": \"" : "{\"measure\": \"");
        smg_size_print(c->graph->sizes, c->measure, text);
        smg_text_addf(text, "\", \"low\": %lld, \"high\": ", (long long)v->low);
        if (v->high < INT64_MAX) {
            smg_text_addf(text, "%lld}", (long long)v->high);
        } else {
            smg_text_add(text, "null}");
        }
    }
    smg_text_add(text, "]");
}

smg_status smg_compile_explain_json(smg_compilation *c, smg_text *text) {
    smg_text_add(text, "{\n  \"graph\": ");
    smg_text_add_json(text, c->graph->name);
    smg_text_add(text, ",\n  \"target\": ");
    smg_text_add_json(text, c->target.name);
    if (c->target.revision > 0) smg_text_addf(text, ",\n  \"rates_revision\": %lld", (long long)c->target.revision);
    smg_text_addf(text, ",\n  \"precision\": \"%s\",\n  \"ops\": %d,\n  \"ops_rewritten\": %d,\n  \"rewrites\": {",
                  smg_type_word(c->options.precision), smg_compile_op_count(c->source), c->run_ops);
    bool first = true;
    for (int i = 0; i < c->report.rules.count; i++) {
        const smg_rewrite_count *rule = &c->report.rules.items[i];
        if (rule->applied == 0) continue;
        smg_text_add(text, first ? "" : ", ");
        smg_text_add_json(text, rule->rule);
        smg_text_addf(text, ": %d", rule->applied);
        first = false;
    }
    smg_text_addf(text, "},\n  \"live_bytes\": %lld,\n  \"guards\": ", (long long)c->plan->live);
    add_guards_json(c, text);
    smg_text_add(text, ",\n  \"prepare\": [\n");
    for (int i = 0; i < c->plan->prepare.count; i++) {
        SMG_TRY(add_step_json(c, &c->plan->prepare.items[i], text));
        smg_text_add(text, i + 1 < c->plan->prepare.count ? ",\n" : "\n");
    }
    smg_text_add(text, "  ],\n  \"kernels\": [\n");
    for (int i = 0; i < c->plan->steps.count; i++) {
        SMG_TRY(add_step_json(c, &c->plan->steps.items[i], text));
        smg_text_add(text, i + 1 < c->plan->steps.count ? ",\n" : "\n");
    }
    smg_text_add(text, "  ]\n}\n");
    return smg_text_status(text);
}
