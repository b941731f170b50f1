/* compile_report.c: what a plan saves, and what other groupings of its kernels would be: smg explain --report.
 *
 * All numbers are the planner's (plan_report.c): prices, and where a tuning file has the kernel the time that was
 * measured. Here they are added up and laid out; layers that repeat are one row. */
#include <stdio.h>

#include "compile/compile.h"

/* Kernels that are equal in structure and sizes. */
typedef struct row {
    const smg_pstep *step;
    int at, calls;
} row;

typedef struct report {
    const smg_compilation *c;
    const smg_plan *plan;
    row *rows;
    int count;
    double seconds, bytes, flops, apart_seconds, apart_bytes;
    int64_t live, apart_live;
    int nodes, joined, measured;
} report;

static void add_step(report *r, int at) {
    const smg_pstep *step = &r->plan->steps.items[at];
    r->seconds += step->price.seconds;
    r->bytes += step->price.bytes;
    r->flops += step->price.flops;
    r->apart_seconds += step->apart.seconds;
    r->apart_bytes += step->apart.bytes;
    if (step->live > r->live) r->live = step->live;
    if (step->apart.live > r->apart_live) r->apart_live = step->apart.live;
    r->nodes += step->node_count;
    r->joined += step->node_count - 1;
    r->measured += step->measured != NULL;
    for (int i = 0; i < r->count; i++) {
        const smg_choice *other = &r->rows[i].step->choice;
        if (other->at != step->choice.at || other->schedule != step->choice.schedule) continue;
        r->rows[i].calls++;
        return;
    }
    r->rows[r->count++] = (row){.step = step, .at = at, .calls = 1};
}

static smg_status collect(const smg_compilation *c, smg_arena *arena, report *out) {
    *out = (report){.c = c, .plan = c->plan, .rows = SMG_ARENA_ARRAY(arena, row, (size_t)c->plan->steps.count + 1)};
    if (out->rows == NULL) return SMG_MEMORY;
    for (int i = 0; i < c->plan->steps.count; i++) add_step(out, i);
    return SMG_OK;
}

static double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

/* Flop for each byte that reaches device memory. */
static double intensity(const smg_pstep *step) {
    return share(step->price.flops, step->price.bytes);
}

static double bandwidth_share(const report *r, const smg_pstep *step) {
    return share(step->price.bytes / r->c->target.bandwidth, step->measured->seconds);
}

static double arithmetic_share(const smg_pstep *step) {
    return share(step->price.flops / step->rate, step->measured->seconds);
}

/* ---- text ----------------------------------------------------------------------------------------- */

static void print_head(const report *r, smg_text *text) {
    const smg_compilation *c = r->c;
    smg_text_addf(text, "report of %s on %s", c->graph->name, c->target.name);
    if (smg_size_symbol_count(c->graph->sizes) > 0) smg_text_add(text, " at");
    smg_compile_print_sizes(c, c->nominal, text);
    smg_text_addf(text, "\n%-10s %8s %12s %12s %12s\n", "", "kernels", "us", "MB", "live MB");
    smg_text_addf(text, "%-10s %8d %12.2f %12.3f %12.3f\n", "as planned", r->plan->steps.count, r->seconds * 1e6,
                  r->bytes / 1e6, (double)r->live / 1e6);
    smg_text_addf(text, "%-10s %8d %12.2f %12.3f %12.3f\n", "apart", r->nodes, r->apart_seconds * 1e6,
                  r->apart_bytes / 1e6, (double)r->apart_live / 1e6);
    smg_text_addf(text,
                  "%.2f times as fast as each operation apart, by price; %.1f %% of the bytes and %.1f %% of what "
                  "lives between kernels are saved\n",
                  share(r->apart_seconds, r->seconds), 100 * (1 - share(r->bytes, r->apart_bytes)),
                  100 * (1 - share((double)r->live, (double)r->apart_live)));
    smg_text_addf(text, "fusion rate: %d of the %d neighbours that some kernel has together are in one (%.0f %%)\n",
                  r->joined, r->plan->joinable, 100 * share(r->joined, r->plan->joinable));
}

static void print_row(const report *r, const row *of, smg_text *text) {
    const smg_pstep *step = of->step;
    smg_text_addf(text, "%-10s %6d %4d %10.2f %10.2f %6.2f %10.1f %10.1f %10.1f %10.1f %4d/%-4d %8.2f", step->name,
                  of->calls, step->node_count, step->price.seconds * 1e6, step->apart.seconds * 1e6,
                  share(step->apart.seconds, step->price.seconds), step->price.bytes / 1e3, step->apart.bytes / 1e3,
                  (double)step->live / 1e3, (double)step->apart.live / 1e3, step->node_count - 1, step->joinable,
                  intensity(step));
    if (step->measured != NULL)
        smg_text_addf(text, " %10.2f %6.1f%% %6.1f%%", step->measured->seconds * 1e6, 100 * bandwidth_share(r, step),
                      100 * arithmetic_share(step));
    if (step->measured != NULL && step->apart.measured > 0)
        smg_text_addf(text, " %10.2f %6.2f", step->apart.measured * 1e6,
                      share(step->apart.measured, step->measured->seconds));
    smg_text_add(text, "\n    ");
    for (int i = 0; i < step->node_count; i++)
        smg_text_addf(text, " %s", smg_op_get(smg_graph_node(r->plan->graph, step->nodes[i])->op)->word);
    smg_text_add(text, "\n");
}

static void print_rows(const report *r, smg_text *text) {
    smg_text_addf(text, "\n%-10s %6s %4s %10s %10s %6s %10s %10s %10s %10s %9s %8s", "kernel", "calls", "ops", "us",
                  "apart us", "times", "KB", "apart KB", "live KB", "apart KB", "joined", "flop/B");
    if (r->measured > 0)
        smg_text_addf(text, " %10s %7s %7s %10s %6s", "measured", "bandw.", "arith.", "apart us", "times");
    smg_text_add(text, "\n");
    for (int i = 0; i < r->count; i++) print_row(r, &r->rows[i], text);
}

static void print_grouping(const report *r, const smg_grouping *g, smg_text *text) {
    const smg_pstep *steps = r->plan->steps.items;
    char name[64];
    snprintf(name, sizeof(name), "%s..%s", steps[g->first].name, steps[g->last].name);
    smg_text_addf(text, "%-12s %6d %4d", name, g->places, g->nodes);
    if (g->refused != NULL) {
        smg_text_addf(text, " %10s %10.2f impossible: %s\n", "", g->apart * 1e6, g->refused);
        return;
    }
    smg_text_addf(text, " %10.2f %10.2f %6.2f %10.1f %10.1f %10.1f %10.1f\n", g->seconds * 1e6, g->apart * 1e6,
                  share(g->apart, g->seconds), g->bytes / 1e3, g->apart_bytes / 1e3, (double)g->live / 1e3,
                  (double)g->apart_live / 1e3);
    const smg_cut *cut = smg_tuning_find_cut(&r->c->tuning, &(smg_cut){.at = g->at});
    if (cut != NULL)
        smg_text_addf(text, "%-12s measured: a run takes %.2f us so, %.2f us apart\n", "", cut->seconds * 1e6,
                      cut->apart * 1e6);
}

static void print_groupings(const report *r, smg_text *text) {
    if (r->plan->groupings.count > 0)
        smg_text_addf(text, "\n%-12s %6s %4s %10s %10s %6s %10s %10s %10s %10s\n", "as one", "places", "ops", "us",
                      "apart us", "times", "KB", "apart KB", "live KB", "apart KB");
    for (int i = 0; i < r->plan->groupings.count; i++) print_grouping(r, &r->plan->groupings.items[i], text);
    if (r->plan->unpriced > 0)
        smg_text_addf(text, "%d longer runs of kernels, all in one among them, have no price: the search ends before\n",
                      r->plan->unpriced);
}

/* Of which some number of parts was measured. */
static void print_splits(const report *r, smg_text *text) {
    bool first = true;
    for (int i = 0; i < r->plan->splits.count; i++) {
        if (!smg_compile_knows_split(r->c, &r->plan->splits.items[i])) continue;
        if (first) smg_text_add(text, "\nsums that several workgroups may share out\n");
        first = false;
        smg_compile_print_split(r->c, &r->plan->splits.items[i], text);
    }
}

static void print_unknown(const report *r, smg_text *text) {
    smg_text_addf(text, "\nmeasured: %d of %d kernels, by smg tune", r->measured, r->plan->steps.count);
    smg_text_add(text, r->measured > 0 ? "; shares are of what the device has, bytes and arithmetic are prices'\n"
                                       : "; shares of bandwidth and arithmetic would stand beside those that are\n");
    smg_text_add(text, "not known: hit rates of caches and traffic inside of the device, which Vulkan does not tell\n");
}

smg_status smg_compile_report(const smg_compilation *c, smg_text *text) {
    smg_arena *arena = NULL;
    report r;
    SMG_TRY(smg_arena_create(c->ctx, &arena));
    smg_status status = collect(c, arena, &r);
    if (status == SMG_OK) {
        print_head(&r, text);
        print_rows(&r, text);
        print_groupings(&r, text);
        print_splits(&r, text);
        print_unknown(&r, text);
        status = smg_text_status(text);
    }
    smg_arena_destroy(arena);
    return status;
}

/* ---- JSON ----------------------------------------------------------------------------------------- */

static void add_sums(const char *name, int kernels, double seconds, double bytes, int64_t live, smg_text *text) {
    smg_text_addf(text, "  \"%s\": {\"kernels\": %d, \"seconds\": %.9g, \"bytes\": %.0f, \"live_bytes\": %lld},\n",
                  name, kernels, seconds, bytes, (long long)live);
}

static void add_row(const report *r, const row *of, smg_text *text) {
    const smg_pstep *step = of->step;
    smg_text_add(text, "    {\"kernel\": ");
    smg_text_add_json(text, step->name);
    smg_text_addf(text, ", \"calls\": %d, \"ops\": [", of->calls);
    for (int i = 0; i < step->node_count; i++)
        smg_text_addf(text, "%s\"%s\"", i > 0 ? ", " : "",
                      smg_op_get(smg_graph_node(r->plan->graph, step->nodes[i])->op)->word);
    smg_text_addf(text, "], \"seconds\": %.9g, \"bytes\": %.0f, \"live_bytes\": %lld, \"flops\": %.0f",
                  step->price.seconds, step->price.bytes, (long long)step->live, step->price.flops);
    smg_text_addf(text, ", \"apart\": {\"seconds\": %.9g, \"bytes\": %.0f, \"live_bytes\": %lld}", step->apart.seconds,
                  step->apart.bytes, (long long)step->apart.live);
    smg_text_addf(text, ", \"joined\": %d, \"joinable\": %d, \"flop_per_byte\": %.6g", step->node_count - 1,
                  step->joinable, intensity(step));
    if (step->measured != NULL)
        smg_text_addf(text, ", \"measured_seconds\": %.9g, \"bandwidth_share\": %.4g, \"arithmetic_share\": %.4g",
                      step->measured->seconds, bandwidth_share(r, step), arithmetic_share(step));
    if (step->measured != NULL && step->apart.measured > 0)
        smg_text_addf(text, ", \"measured_apart_seconds\": %.9g", step->apart.measured);
    smg_text_add(text, ", \"because\": ");
    smg_compile_lines_json(step->because, text);
    smg_text_add(text, "}");
}

static void add_grouping(const report *r, const smg_grouping *g, smg_text *text) {
    const smg_pstep *steps = r->plan->steps.items;
    smg_text_add(text, "    {\"first\": ");
    smg_text_add_json(text, steps[g->first].name);
    smg_text_add(text, ", \"last\": ");
    smg_text_add_json(text, steps[g->last].name);
    smg_text_addf(text, ", \"places\": %d, \"ops\": %d, ", g->places, g->nodes);
    smg_text_addf(text, "\"apart\": {\"seconds\": %.9g, \"bytes\": %.0f, \"live_bytes\": %lld}, ", g->apart,
                  g->apart_bytes, (long long)g->apart_live);
    const smg_cut *cut = smg_tuning_find_cut(&r->c->tuning, &(smg_cut){.at = g->at});
    if (cut != NULL)
        smg_text_addf(text, "\"measured\": {\"run_seconds\": %.9g, \"apart_run_seconds\": %.9g}, ", cut->seconds,
                      cut->apart);
    if (g->refused != NULL) {
        smg_text_add(text, "\"refused\": ");
        smg_text_add_json(text, g->refused);
    } else {
        smg_text_addf(text, "\"seconds\": %.9g, \"bytes\": %.0f, \"live_bytes\": %lld", g->seconds, g->bytes,
                      (long long)g->live);
    }
    smg_text_add(text, "}");
}

static void add_split(const report *r, const smg_split *s, smg_text *text) {
    smg_text_add(text, "    {\"what\": ");
    smg_text_add_json(text, s->what);
    smg_text_addf(text, ", \"places\": %d, \"part_elements\": %lld, \"tried\": [", s->places, (long long)s->chunk);
    for (int i = -1; i < s->priced.count; i++) {
        const smg_chunk c = i < 0 ? (smg_chunk){0, s->whole, s->whole} : s->priced.items[i];
        const smg_cut *cut = smg_compile_find_parts(r->c, s, c.elements);
        smg_text_addf(text, "%s{\"part_elements\": %lld, \"seconds\": %.9g, \"apart_seconds\": %.9g",
                      i >= 0 ? ", " : "", (long long)c.elements, c.least, c.seconds);
        if (cut != NULL)
            smg_text_addf(text, ", \"measured\": {\"run_seconds\": %.9g, \"otherwise_run_seconds\": %.9g}",
                          cut->seconds, cut->apart);
        smg_text_add(text, "}");
    }
    smg_text_add(text, "]}");
}

static void add_json(const report *r, smg_text *text) {
    const smg_compilation *c = r->c;
    smg_text_add(text, "{\n  \"graph\": ");
    smg_text_add_json(text, c->graph->name);
    smg_text_add(text, ",\n  \"target\": ");
    smg_text_add_json(text, c->target.name);
    smg_text_add(text, ",\n");
    add_sums("planned", r->plan->steps.count, r->seconds, r->bytes, r->live, text);
    add_sums("apart", r->nodes, r->apart_seconds, r->apart_bytes, r->apart_live, text);
    smg_text_addf(text, "  \"joined\": %d,\n  \"joinable\": %d,\n  \"measured\": %d,\n  \"kernels\": [\n", r->joined,
                  r->plan->joinable, r->measured);
    for (int i = 0; i < r->count; i++) {
        add_row(r, &r->rows[i], text);
        smg_text_add(text, i + 1 < r->count ? ",\n" : "\n");
    }
    smg_text_add(text, "  ],\n  \"as_one\": [\n");
    for (int i = 0; i < r->plan->groupings.count; i++) {
        add_grouping(r, &r->plan->groupings.items[i], text);
        smg_text_add(text, i + 1 < r->plan->groupings.count ? ",\n" : "\n");
    }
    smg_text_add(text, "  ],\n  \"in_parts\": [\n");
    for (int i = 0; i < r->plan->splits.count; i++) {
        add_split(r, &r->plan->splits.items[i], text);
        smg_text_add(text, i + 1 < r->plan->splits.count ? ",\n" : "\n");
    }
    smg_text_addf(text, "  ],\n  \"unpriced\": %d,\n  \"unknown\": [\"cache hit rates\"]\n}\n", r->plan->unpriced);
}

smg_status smg_compile_report_json(const smg_compilation *c, smg_text *text) {
    smg_arena *arena = NULL;
    report r;
    SMG_TRY(smg_arena_create(c->ctx, &arena));
    smg_status status = collect(c, arena, &r);
    if (status == SMG_OK) {
        add_json(&r, text);
        status = smg_text_status(text);
    }
    smg_arena_destroy(arena);
    return status;
}
