/* Lowering, the driver: one list of passes in their order. Each works on the whole program and leaves one that the
 * verifier accepts, and a reader can look at. */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

static smg_status keep_live(lowering *l) {
    return kernel_live_keep(l->k);
}

static smg_status distribute(lowering *l) {
    return lower_distribute(l->k, l->s);
}

static smg_status order_operands(lowering *l) {
    lower_operands(l->k);
    return SMG_OK;
}

static smg_status unroll(lowering *l) {
    if (l->target != NULL) smg_kernel_unroll(l->k, l->target);
    return SMG_OK;
}

typedef struct pass {
    smg_lower_pass shown;
    smg_status (*run)(lowering *l);
} pass;

static const pass passes[] = {
    {{"structure", "loops, folds, updates and stores over tiles that lie nowhere yet"}, lower_structure},
    {{"merge", "neighbouring loops of products over one axis become one"}, lower_merge},
    {{"share", "what several instructions compute becomes a tile"}, lower_share},
    {{"join", "partial sums of lanes that share out a contraction are added up"}, lower_join},
    {{"pipeline", "slices are fetched before they are needed"}, lower_pipeline},
    {{"drop", "tiles that nothing writes go"}, lower_drop},
    {{"layouts", "every register tile and instruction gets its place in lanes and registers"}, distribute},
    {{"operands", "shared operands lie in the order in which lanes read them"}, order_operands},
    {{"memory", "shared tiles that are never needed together lie on the same memory"}, lower_memory},
    {{"barriers", "barriers that order nothing go"}, lower_barriers},
    {{"live", "what is needed at once is noted for the count of registers"}, keep_live},
    {{"unroll", "short loops and products are written out within the budget of code"}, unroll},
};

int smg_lower_pass_count(void) {
    return (int)SMG_COUNT_OF(passes);
}

const smg_lower_pass *smg_lower_pass_get(int number) {
    return &passes[number].shown;
}

static smg_status run_passes(lowering *l, const smg_lower_options *options) {
    for (size_t i = 0; i < SMG_COUNT_OF(passes) && l->refused == NULL; i++) {
        SMG_TRY(passes[i].run(l));
        if (l->refused != NULL) break;
        if (options->verify) {
            smg_status status = smg_kernel_verify(l->ctx, l->k);
            if (status != SMG_OK) return smg_fail_within(l->ctx, status, "after pass '%s'", passes[i].shown.name);
        }
        if (options->after != NULL) SMG_TRY(options->after(options->user, (int)i, l->k));
    }
    return SMG_OK;
}

static smg_status start(lowering *l, const char *name) {
    smg_kernel *k = l->k;
    *k = (smg_kernel){.name = name,
                      .arena = l->arena,
                      .sizes = l->g->sizes,
                      .lanes = l->s->lane_rows * l->s->lane_cols * l->s->lane_depth,
                      .subgroup = l->s->subgroup};
    SMG_TRY(smg_exprs_create(l->arena, &k->exprs));
    for (int i = 0; i < SMG_SPACE_NODES; i++) {
        l->node[i] = (lnode){.value = SMG_EXPR_NONE,
                             .tile = -1,
                             .leaf = -1,
                             .old_leaf = -1,
                             .pass = LOWER_BEFORE,
                             .core = SMG_EXPR_NONE,
                             .right = SMG_EXPR_NONE,
                             .update = SMG_EXPR_NONE};
    }
    l->view_value = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->views.count + 1);
    l->space_leaf = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->leaves.count + 1);
    if (l->view_value == NULL || l->space_leaf == NULL) return SMG_MEMORY;
    for (int v = 0; v < l->space->views.count; v++) l->view_value[v] = SMG_EXPR_NONE;
    for (int f = 0; f < l->space->leaves.count; f++) l->space_leaf[f] = SMG_EXPR_NONE;
    /* A product reads what was folded before it, in other lanes. */
    l->apart = l->s->temporal >= 0;
    for (int i = 0; i < l->space->nodes.count; i++)
        if (!l->space->nodes.items[i].streamed && l->space->nodes.items[i].class_ == SMG_CLASS_CONTRACT)
            l->apart = false;
    return SMG_OK;
}

smg_status smg_kernel_lower(const smg_schedule *schedule, const smg_lower_options *options, smg_arena *arena,
                            smg_kernel **out_kernel, const char **out_refused) {
    *out_kernel = NULL;
    *out_refused = NULL;
    lowering *l = SMG_ARENA_NEW(arena, lowering);
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    if (l == NULL || k == NULL) return SMG_MEMORY;
    l->s = schedule;
    l->space = schedule->space;
    l->g = schedule->space->graph;
    l->target = options->target;
    l->ctx = smg_arena_context(arena);
    l->arena = arena;
    l->k = k;
    l->why = options->why;
    SMG_TRY(start(l, options->name));
    SMG_TRY(run_passes(l, options));
    *out_refused = l->refused;
    if (l->refused == NULL) *out_kernel = k;
    return smg_context_status(l->ctx);
}
