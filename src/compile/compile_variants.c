/* compile_variants.c: for which ranges of sizes a model gets run lists of its own.
 *
 * Tiles that suit 128 rows leave a large device idle with 16 of them and read every weight thirty times too
 * often with 4096. All kernels are right for all sizes, so sizes choose between whole run lists: by one number,
 * the rows of the model's largest product with a constant (batch times sequence; of its largest output where there
 * is no such product), and only on a device with so
 * many cores that the nominal rows do not fill it. The list for the sizes that were given is made at once, the
 * others when sizes in their range are first bound. */
#include <math.h>

#include "compile/compile.h"

#define ROWS_PER_CORE 32 /* of a product; more rows than this on every core change nothing */
#define APART 8          /* nominal sizes of two lists differ by this factor at least */
#define FEW 32           /* the list for few rows is made for this factor less than nominal */

int smg_compile_weight_of(const smg_node *n, const bool *fixed) {
    if (smg_node_class(n) != SMG_CLASS_CONTRACT || fixed[n->operand[0]] == fixed[n->operand[1]]) return -1;
    return fixed[n->operand[0]] ? 0 : 1;
}

/* Elements of a product's result per element of its weight's own axes; of any other node the symbolic part of its
 * elements. */
static smg_size rows_of(const smg_graph *g, const smg_node *n, int weight) {
    smg_size rows = smg_size_const(g->sizes, 1);
    for (int d = 0; d < n->rank; d++) {
        bool counts = weight >= 0 ? strchr(n->label[1 - weight], n->label[2][d]) != NULL
                                  : !smg_size_is_const(g->sizes, n->dims[d], NULL);
        if (counts) rows = smg_size_mul(g->sizes, rows, n->dims[d]);
    }
    return rows;
}

/* Of two nodes the one with more elements at the nominal sizes. */
static void measure_by(smg_compilation *c, smg_node_id id, int weight, int64_t *io_most) {
    const smg_graph *g = c->graph;
    int64_t elements = 0;
    if (!smg_size_eval(g->sizes, smg_node_elements(g, id), c->nominal, &elements)) return;
    if (elements <= *io_most) return;
    *io_most = elements;
    c->measure = rows_of(g, smg_graph_node(g, id), weight);
}

static smg_status choose_measure(smg_compilation *c) {
    const smg_graph *g = c->graph;
    size_t count = (size_t)g->nodes.count + 1;
    bool *fixed = SMG_ARENA_ARRAY(c->arena, bool, count);
    bool *stored = SMG_ARENA_ARRAY(c->arena, bool, count);
    int64_t most = -1;
    if (fixed == NULL || stored == NULL) return SMG_MEMORY;
    c->measure = smg_size_const(g->sizes, 1);
    smg_graph_mark_fixed(g, fixed, stored);
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        int weight = smg_compile_weight_of(smg_graph_node(g, id), fixed);
        if (weight >= 0 && !fixed[id]) measure_by(c, id, weight, &most);
    }
    bool found = most >= 0;
    for (int i = 0; i < g->outputs.count && !found; i++) {
        measure_by(c, g->outputs.items[i].node, -1, &most);
    }
    return c->measure != SMG_SIZE_NONE ? SMG_OK : smg_context_status(c->ctx);
}

static int64_t measure_at(const smg_compilation *c, const int64_t *values) {
    int64_t rows = 0;
    return smg_size_eval(c->graph->sizes, c->measure, values, &rows) && rows > 0 ? rows : 1;
}

/* Moves the nominal sizes towards a measure of `rows`: one symbol after the other, the first (a batch) first. */
static void move_sizes(const smg_compilation *c, int64_t rows, int64_t *values) {
    const smg_sizes *sizes = c->graph->sizes;
    for (int i = 0; i < smg_size_symbol_count(sizes); i++) {
        int64_t now = measure_at(c, values);
        int64_t was = values[i];
        double wanted = (double)was * (double)rows / (double)now;
        int64_t max = smg_size_symbol_max(sizes, i);
        values[i] = was + 1 <= max ? was + 1 : was - 1;
        bool counts = values[i] > 0 && measure_at(c, values) != now;
        values[i] = !counts ? was : wanted<1 ? 1 : wanted>(double) max ? max : (int64_t)wanted;
    }
}

static smg_status add_variant(smg_compilation *c, int64_t rows) {
    smg_variant *v = &c->variants[c->variant_count];
    int symbols = smg_size_symbol_count(c->graph->sizes);
    v->nominal = SMG_ARENA_ARRAY(c->arena, int64_t, (size_t)symbols + 1);
    if (v->nominal == NULL) return SMG_MEMORY;
    memcpy(v->nominal, c->nominal, (size_t)symbols * sizeof(*v->nominal));
    move_sizes(c, rows, v->nominal);
    int64_t own = measure_at(c, c->nominal);
    int64_t moved = measure_at(c, v->nominal);
    bool apart = moved >= own ? moved / own >= APART : own / moved >= APART;
    if (!apart) return SMG_OK; /* bounds of the sizes hold it too near */
    int64_t between = (int64_t)sqrt((double)own * (double)moved);
    if (moved > own) {
        v->low = between + 1;
        v->high = INT64_MAX;
        c->variants[0].high = between;
    } else {
        v->low = 0;
        v->high = between;
        c->variants[0].low = between + 1;
    }
    c->variant_count++;
    return SMG_OK;
}

smg_status smg_compile_choose_variants(smg_compilation *c) {
    c->variant_count = 1;
    c->variants[0] = (smg_variant){.low = 0, .high = INT64_MAX, .nominal = c->nominal, .plan = c->plan};
    SMG_TRY(choose_measure(c));
    if (smg_size_is_const(c->graph->sizes, c->measure, NULL)) return SMG_OK;
    int64_t rows = measure_at(c, c->nominal);
    int64_t full = c->target.cores * ROWS_PER_CORE;
    if (rows / FEW >= 1 && rows < full) SMG_TRY(add_variant(c, rows / FEW));
    return rows < full ? add_variant(c, full) : SMG_OK;
}

int smg_compile_choose(const smg_compilation *c, const int64_t *symbols) {
    if (c->graph == NULL) return smg_bundle_choose(c->bundle, symbols);
    int64_t rows = measure_at(c, symbols);
    for (int i = 0; i < c->variant_count; i++) {
        if (rows >= c->variants[i].low && rows <= c->variants[i].high) return i;
    }
    return 0;
}
