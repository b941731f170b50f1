/* compile_orders.c: in which order products read their weights, by price.
 *
 * A weight is stored once for all run lists: along what its product contracts (in blocks, where they are whole), or
 * along the product's result. A product of few results takes the first. Any other one is planned by itself in both
 * orders, at the nominal sizes of every run list, and has the order with the lower prices in total. They count as
 * shares of each other, so that the list for the most rows is not the only one that counts; those of the list for the
 * sizes that were given, which most runs have, count several times. Products that are alike are asked once. What a
 * kernel does before and behind its product is left out: it is the same in both. */
#include <math.h>

#include "compile/compile.h"

#define ORDERS_ASKED 24 /* different products of a graph; others go along, the better guess by what was measured */
#define GIVEN 8         /* what the list for the sizes given counts, in others */

typedef struct asked {
    const smg_node *product;
    int weight; /* which operand */
    bool along;
} asked;

typedef struct asker {
    smg_compilation *c;
    const smg_store_options *options;
    asked asked[ORDERS_ASKED];
    int count;
} asker;

static bool are_alike(const smg_graph *g, const smg_node *a, const smg_node *b) {
    bool same = true;
    for (int i = 0; i < 3; i++) same = same && strcmp(a->label[i], b->label[i]) == 0;
    for (int k = 0; k < 2; k++)
        same = same && smg_same_dims(smg_graph_node(g, a->operand[k]), smg_graph_node(g, b->operand[k]));
    return same;
}

/* The product as a graph of its own, of so many elements, its weight stored in one of the orders. */
static smg_status make_product(const asker *a, const asked *q, const int64_t *values, bool along, smg_graph *g) {
    const smg_graph *from = a->c->graph;
    smg_node product = *q->product;
    for (int k = 0; k < 2; k++) {
        const smg_node *operand = smg_graph_node(from, q->product->operand[k]);
        smg_size dims[SMG_MAX_RANK];
        for (int d = 0; d < operand->rank; d++) {
            int64_t extent = 1;
            if (!smg_size_eval(from->sizes, operand->dims[d], values, &extent) || extent < 1) extent = 1;
            dims[d] = smg_size_const(g->sizes, extent);
        }
        smg_value value = k == q->weight ? smg_graph_constant_of(g, "weight", SMG_TYPE_F32, operand->rank, dims, NULL)
                                         : smg_graph_input_of(g, "rows", SMG_TYPE_F32, operand->rank, dims);
        product.operand[k] = value.id - 1;
    }
    product.name = "product";
    smg_node_id id = g->status == SMG_OK ? smg_graph_push(g, &product) : -1;
    if (id < 0) return g->status;
    SMG_TRY(smg_graph_output(g, "product", (smg_value){id + 1}));
    SMG_TRY(smg_graph_finish(g));
    smg_store_options options = *a->options;
    int stored_across, stored_along;
    options.few = along ? INT64_MAX : 0;
    options.along = NULL;
    options.nominal = NULL;
    return smg_rewrite_store_weights(g, &options, &stored_across, &stored_along);
}

static smg_status plan_product(const asker *a, smg_graph *g, smg_arena *scratch, double *out_seconds) {
    const smg_plan_options options = {.objective = SMG_OBJECTIVE_TIME, .run_only = true};
    smg_type *storage = SMG_ARENA_ARRAY(g->arena, smg_type, (size_t)g->nodes.count);
    smg_plan *plan = NULL;
    *out_seconds = 0;
    if (storage == NULL) return SMG_MEMORY;
    for (int i = 0; i < g->nodes.count; i++) storage[i] = a->c->options.precision;
    g->storage = storage;
    SMG_TRY(smg_plan_make(g, &a->c->target, &options, scratch, &plan));
    for (int i = 0; i < plan->steps.count; i++) *out_seconds += plan->steps.items[i].price.seconds;
    return SMG_OK;
}

static smg_status price(const asker *a, const asked *q, const int64_t *values, bool along, double *out_seconds) {
    smg_graph *g = NULL;
    smg_arena *scratch = NULL;
    SMG_TRY(smg_arena_create(a->c->ctx, &scratch));
    smg_status status = smg_graph_make(a->c->ctx, "product", &g);
    if (status == SMG_OK) status = make_product(a, q, values, along, g);
    if (status == SMG_OK) status = plan_product(a, g, scratch, out_seconds);
    smg_graph_destroy(g);
    smg_arena_destroy(scratch);
    return status;
}

static smg_status compare(const asker *a, asked *q) {
    double gain = 0, across, along; /* positive: along what is contracted takes less */
    for (int i = 0; i < a->c->variant_count; i++) {
        SMG_TRY(price(a, q, a->c->variants[i].nominal, false, &across));
        SMG_TRY(price(a, q, a->c->variants[i].nominal, true, &along));
        if (across > 0 && along > 0) gain += (i == 0 ? GIVEN : 1) * log(across / along);
    }
    q->along = gain >= 0;
    return SMG_OK;
}

static smg_status ask(asker *a, const smg_node *product, int weight, bool *out_along) {
    asked *q = a->asked;
    for (; q < a->asked + a->count; q++)
        if (q->weight == weight && are_alike(a->c->graph, q->product, product)) break;
    *out_along = true;
    if (q == a->asked + ORDERS_ASKED) return SMG_OK;
    if (q == a->asked + a->count) {
        *q = (asked){.product = product, .weight = weight};
        SMG_TRY(compare(a, q));
        a->count++;
    }
    *out_along = q->along;
    return SMG_OK;
}

smg_status smg_compile_choose_orders(smg_compilation *c, smg_store_options *io_options) {
    const smg_graph *g = c->graph;
    size_t count = (size_t)g->nodes.count + 1;
    asker a = {.c = c, .options = io_options};
    bool *fixed = SMG_ARENA_ARRAY(c->arena, bool, count), *stored = SMG_ARENA_ARRAY(c->arena, bool, count);
    bool *along = SMG_ARENA_ARRAY(c->arena, bool, count);
    if (fixed == NULL || stored == NULL || along == NULL) return SMG_MEMORY;
    smg_graph_mark_fixed(g, fixed, stored);
    SMG_TRY(smg_compile_choose_variants(c));
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *n = smg_graph_node(g, i);
        int weight = smg_compile_weight_of(n, fixed);
        int64_t results;
        if (weight < 0 || !stored[n->operand[weight]]) continue;
        if (!smg_size_eval(g->sizes, smg_node_elements(g, i), c->nominal, &results) || results <= io_options->few)
            continue;
        SMG_TRY(ask(&a, n, weight, &along[i]));
    }
    io_options->along = along;
    return SMG_OK;
}
