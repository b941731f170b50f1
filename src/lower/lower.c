/* Lowering, the driver: one list of passes in their order. Each works on the whole program and leaves one that the
 * verifier accepts, and a reader can look at. */
#include "kernel/kernel_live.h"
#include "lower/lower_internal.h"

static smg_status keep_live(lower_sized *l) {
    return kernel_live_keep(l->k);
}

static smg_status unroll(lower_sized *l) {
    smg_kernel_unroll(l->k, l->target);
    return SMG_OK;
}

static smg_status widen(lower_sized *l) {
    smg_kernel_widen(l->k, l->target);
    return SMG_OK;
}

static smg_status layouts(lower_sized *l) {
    if (!l->placed) SMG_TRY(lower_layouts(l));
    if (l->refused == NULL) lower_correct(l);
    lower_panels(l);
    return SMG_OK;
}

static smg_status operands(lower_sized *l) {
    return l->placed ? SMG_OK : lower_operands(l);
}

static smg_status find_evens(lower_sized *l) {
    return smg_kernel_find_evens(l->k, l->target);
}

/* One of the three: what the schedule's structure decides, what its sizes do, or what no price depends on: that is done
 * for kernels that are kept. */
typedef struct pass {
    smg_lower_pass shown;
    smg_status (*structure)(lowering *l);
    smg_status (*sized)(lower_sized *l);
    smg_status (*last)(lower_sized *l);
} pass;

static const pass passes[] = {
    {{"structure", "loops, folds, updates and stores over tiles that lie nowhere yet"}, .structure = lower_structure},
    {{"merge", "neighbouring loops of products over one axis become one"}, .structure = lower_merge},
    {{"bounds", "loops leave out slices that change nothing"}, .structure = lower_bounds},
    {{"share", "what several instructions compute becomes a tile"}, .structure = lower_share},
    {{"units", "maxima of sums by matrices are kept in the units of exponents, what is masked is so once"},
     .structure = lower_units},
    {{"columns", "what no row changes is computed once for all rows of a lane"}, .structure = lower_columns_once},
    {{"join", "partial sums of lanes that share out a contraction are added up"}, .structure = lower_join},
    {{"pipeline", "slices are fetched before they are needed"}, .structure = lower_pipeline},
    {{"drop", "tiles that nothing writes go"}, .structure = lower_drop},
    {{"alone", "lanes that have their rows alone hold left factors, and read right ones where they lie"},
     .structure = lower_alone},
    {{"clamp", "operands repeat the end of an axis where no result has it"}, .structure = lower_clamp},
    {{"types", "tiles hold what memory has where they only move it"}, .structure = lower_types},
    {{"layouts", "every register tile and instruction gets its place in lanes and registers"}, .sized = layouts},
    {{"operands", "shared operands lie in the order in which lanes read them"}, .sized = operands},
    {{"pairs", "products sum up in f16 what their tiles allow"}, .sized = lower_pairs},
    {{"forward", "left factors that lanes hold as matrices want them stay in registers"}, .sized = lower_forward},
    {{"streams", "factors of matrices are read from memory by the lanes that have them"}, .sized = lower_streams},
    {{"beside", "right factors come from memory a step ahead, beside left ones in shared memory"},
     .sized = lower_beside},
    {{"rings", "factors of matrices are on their way steps before they are needed"}, .sized = lower_rings},
    {{"along", "sums beside products by matrices fold what lanes hold of the left factor"}, .sized = lower_along},
    {{"starts", "sums of matrices start with what is added to them"}, .sized = lower_starts},
    {{"opaque", "sums of matrices whose lanes nobody knows come by shared memory"}, .sized = lower_opaque},
    {{"exchange", "what lanes tell each other becomes instructions, words and barriers"}, .sized = lower_exchange},
    {{"memory", "shared tiles that are never needed together lie on the same memory"}, .sized = lower_memory},
    {{"barriers", "barriers that order nothing go"}, .sized = lower_barriers},
    {{"live", "what is needed at once is noted for the count of registers"}, .sized = keep_live},
    {{"unroll", "short loops and products are written out within the budget of code"}, .sized = unroll},
    {{"early",
      "loads stand alone: of a store in front of it, or of the loop before; of a map where sizes make groups of them"},
     .last = lower_early},
    {{"wide", "neighbours that lie side by side are loaded and stored at once"}, .last = widen},
    {{"peel", "a step that is not whole is a loop of its own"}, .last = lower_peel},
    {{"even", "sizes are named whose multiples need fewer checks"}, .last = find_evens},
};

int smg_lower_pass_count(void) {
    return (int)SMG_COUNT_OF(passes);
}

const smg_lower_pass *smg_lower_pass_get(int number) {
    return &passes[number].shown;
}

static smg_status look(smg_context *ctx, const smg_lower_options *options, size_t number, const smg_kernel *k) {
    if (options->verify) {
        smg_status status = smg_kernel_verify(ctx, k);
        if (status != SMG_OK) return smg_fail_within(ctx, status, "after pass '%s'", passes[number].shown.name);
    }
    return options->after != NULL ? options->after(options->user, (int)number, k) : SMG_OK;
}

static smg_status run_structure(lowering *l, const smg_lower_options *options) {
    for (size_t i = 0; i < SMG_COUNT_OF(passes) && l->refused == NULL; i++) {
        if (passes[i].structure == NULL) continue;
        SMG_TRY(passes[i].structure(l));
        if (l->refused == NULL) SMG_TRY(look(l->ctx, options, i, l->k));
    }
    return SMG_OK;
}

static smg_status run_sized(lower_sized *l, const smg_lower_options *options, bool last) {
    for (size_t i = 0; i < SMG_COUNT_OF(passes) && l->refused == NULL; i++) {
        smg_status (*run)(lower_sized *) = last ? passes[i].last : passes[i].sized;
        if (run == NULL) continue;
        SMG_TRY(run(l));
        if (l->refused == NULL) SMG_TRY(look(l->ctx, options, i, l->k));
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
                             .update = SMG_EXPR_NONE,
                             .count = -1,
                             .counted = SMG_EXPR_NONE,
                             .pivot = -1,
                             .pivot_of = SMG_EXPR_NONE};
    }
    l->carried = l->carried_whole = -1;
    l->view_value = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->views.count + 1);
    l->space_leaf = SMG_ARENA_ARRAY(l->arena, smg_expr, (size_t)l->space->leaves.count + 1);
    if (l->view_value == NULL || l->space_leaf == NULL) return SMG_MEMORY;
    for (int v = 0; v < l->space->views.count; v++) l->view_value[v] = SMG_EXPR_NONE;
    for (int f = 0; f < l->space->leaves.count; f++) l->space_leaf[f] = SMG_EXPR_NONE;
    return SMG_OK;
}

smg_status smg_kernel_structure(const smg_schedule *schedule, const smg_lower_options *options, smg_arena *arena,
                                smg_kernel **out_kernel, const char **out_refused) {
    *out_kernel = NULL;
    *out_refused = NULL;
    lowering *l = SMG_ARENA_NEW(arena, lowering);
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    if (l == NULL || k == NULL) return SMG_MEMORY;
    l->s = schedule;
    l->space = schedule->space;
    l->g = schedule->space->graph;
    l->ctx = smg_arena_context(arena);
    l->arena = arena;
    l->k = k;
    l->target = options->target;
    l->why = options->why;
    l->asked = options->asked;
    SMG_TRY(start(l, options->name));
    SMG_TRY(run_structure(l, options));
    *out_refused = l->refused;
    if (l->refused == NULL) *out_kernel = k;
    return smg_context_status(l->ctx);
}

static smg_status fit(const smg_kernel *of, bool placed, const smg_schedule *schedule, const smg_lower_options *options,
                      smg_arena *arena, smg_kernel **out_kernel, const char **out_refused) {
    lower_sized l = {
        .ctx = smg_arena_context(arena), .arena = arena, .s = schedule, .target = options->target, .placed = placed};
    *out_kernel = NULL;
    *out_refused = NULL;
    SMG_TRY(smg_kernel_copy(of, arena, &l.k));
    SMG_TRY(run_sized(&l, options, false));
    *out_refused = l.refused;
    if (l.refused == NULL) *out_kernel = l.k;
    return smg_context_status(l.ctx);
}

smg_status smg_kernel_fit(const smg_kernel *structure, const smg_schedule *schedule, const smg_lower_options *options,
                          smg_arena *arena, smg_kernel **out_kernel, const char **out_refused) {
    return fit(structure, false, schedule, options, arena, out_kernel, out_refused);
}

smg_status smg_kernel_fit_probe(const smg_kernel *probe, const smg_schedule *schedule, const smg_lower_options *options,
                                smg_arena *arena, smg_kernel **out_kernel, const char **out_refused) {
    return fit(probe, true, schedule, options, arena, out_kernel, out_refused);
}

smg_status smg_kernel_probe(const smg_kernel *structure, smg_arena *arena, smg_kernel **out_probe) {
    SMG_TRY(smg_kernel_copy(structure, arena, out_probe));
    return kernel_live_keep(*out_probe);
}

smg_status smg_kernel_retile(const smg_kernel *structure, const smg_schedule *schedule, smg_kernel *probe) {
    lower_sized l = {.ctx = smg_arena_context(probe->arena), .arena = probe->arena, .k = probe, .s = schedule};
    /* Operands have the order of an earlier schedule. */
    if (probe->tiles.count > 0)
        memcpy(probe->tiles.items, structure->tiles.items, (size_t)probe->tiles.count * sizeof(*probe->tiles.items));
    SMG_TRY(lower_layouts(&l));
    return lower_operands(&l);
}

smg_status smg_kernel_lower(const smg_schedule *schedule, const smg_lower_options *options, smg_arena *arena,
                            smg_kernel **out_kernel, const char **out_refused) {
    smg_kernel *structure;
    SMG_TRY(smg_kernel_structure(schedule, options, arena, &structure, out_refused));
    *out_kernel = NULL;
    if (structure == NULL) return SMG_OK;
    SMG_TRY(smg_kernel_fit(structure, schedule, options, arena, out_kernel, out_refused));
    if (*out_kernel == NULL) return SMG_OK;
    lower_sized l = {
        .ctx = smg_arena_context(arena), .arena = arena, .k = *out_kernel, .s = schedule, .target = options->target};
    return run_sized(&l, options, true);
}
