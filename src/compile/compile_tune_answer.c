/* compile_tune_answer.c: what a plan's run gives, for tuning: candidates count only where they give what the plan gives
 * in which each operation is its own kernel, and that is compared with the reference as far as a moment allows. */
#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define MOST_FLOPS 5e9 /* of the reference: about two seconds */

static smg_status ask_answer(smg_tuner *t, smg_model *model, smg_arena *arena, smg_answer *out_answer) {
    const smg_graph *g = t->source->graph;
    const smg_tune_options *o = t->options;
    smg_tensor *outputs = SMG_ARENA_ARRAY(arena, smg_tensor, (size_t)g->outputs.count + 1);
    if (outputs == NULL) return SMG_MEMORY;
    for (int i = 0; i < g->outputs.count; i++) {
        SMG_TRY(smg_tensor_make(t->ctx, g, g->outputs.items[i].node, o->symbols, arena, &outputs[i]));
        outputs[i].name = g->outputs.items[i].name;
        outputs[i].type = NULL; /* as the model has it */
    }
    SMG_TRY(smg_program_poison(smg_model_program(model))); /* else it may have what another model left there */
    SMG_TRY(smg_model_run(model, o->inputs, o->input_count, outputs, g->outputs.count));
    *out_answer = (smg_answer){outputs, g->outputs.count, smg_compile_roundings(smg_model_compilation(model))};
    return SMG_OK;
}

/* "output 'y' is 3 at element 7, 0.1 elsewhere: .." */
static const char *tell(const smg_check_row *row, smg_arena *arena) {
    const char *text = smg_arena_format(
        arena, "output '%s', element %lld: %g, and %g is wanted (%.2g off, %.2g are allowed)", row->output,
        (long long)row->worst, row->worst_got, row->worst_want, row->max_rel, row->tolerance);
    return text != NULL ? text : "";
}

/* By the reference. *out_wrong: a sentence; NULL: it is right, or one row would take too long. */
static smg_status check_answer(smg_tuner *t, const smg_answer *answer, const char **out_wrong) {
    const smg_tune_options *o = t->options;
    smg_check check;
    *out_wrong = NULL;
    SMG_TRY(smg_compile_check_some(t->ctx, t->source->graph, answer->roundings, o->symbols, o->inputs, o->input_count,
                                   answer->outputs, MOST_FLOPS, t->arena, &check));
    if (check.sampled == 0)
        smg_log(t->ctx, SMG_LOG_INFO,
                "results are compared with each other only: one row of the reference takes more than "
                "%.0f Gflop",
                MOST_FLOPS / 1e9);
    for (int i = 0; i < check.count && check.sampled > 0 && *out_wrong == NULL; i++)
        if (!check.rows[i].pass) *out_wrong = tell(&check.rows[i], t->arena);
    return SMG_OK;
}

/* Are both within what either may be off? Only floats count: a choice between near values goes either way.
 * *out_differs: a sentence in the arena; NULL: they agree. */
static smg_status compare_answer(smg_tuner *t, const smg_answer *want, const smg_answer *got, smg_arena *arena,
                                 const char **out_differs) {
    const smg_graph *g = t->source->graph;
    smg_allowance own, other;
    *out_differs = NULL;
    SMG_TRY(smg_compile_allow(g, want->roundings, t->options->symbols, arena, &own));
    SMG_TRY(smg_compile_allow(g, got->roundings, t->options->symbols, arena, &other));
    const smg_allowance both = {own.relative + other.relative, own.least + other.least};
    for (int i = 0; i < want->count && *out_differs == NULL; i++) {
        smg_check_row row;
        const smg_node *node = smg_graph_node(g, g->outputs.items[i].node);
        if (smg_type_kind(node->type) != SMG_KIND_FLOAT) continue;
        smg_compile_compare(&want->outputs[i], &got->outputs[i], both, &row);
        if (!row.pass) *out_differs = tell(&row, arena);
    }
    return SMG_OK;
}

/* ---- plans ------------------------------------------------------------------------------------------ */

/* Opens and runs it. out_answer: what that gave, in the arena; NULL: nobody asks. */
static smg_status open_asked(smg_tuner *t, smg_model_desc desc, const smg_open_parts *parts, smg_arena *arena,
                             smg_answer *out_answer, smg_model **out_model) {
    const smg_tune_options *o = t->options;
    desc.tuning = "";
    desc.no_calibrate = true;  /* the device is open already */
    desc.no_plan_cache = true; /* which has no reasons */
    desc.rank = 0;
    SMG_TRY(smg_model_open_parts(t->ctx, t->source, t->device, &desc, parts, out_model));
    smg_status status = smg_model_bind(*out_model, o->symbols);
    if (status == SMG_OK && out_answer == NULL) status = smg_model_run(*out_model, o->inputs, o->input_count, NULL, 0);
    if (status == SMG_OK && out_answer != NULL) status = ask_answer(t, *out_model, arena, out_answer);
    if (status == SMG_OK) return SMG_OK;
    smg_model_close(*out_model);
    *out_model = NULL;
    return status;
}

smg_status smg_tuner_open(smg_tuner *t, const smg_open_parts *parts, smg_model **out_model) {
    smg_model_desc desc = *t->desc;
    desc.unfused = false;
    return open_asked(t, desc, parts, NULL, NULL, out_model);
}

smg_status smg_tuner_open_checked(smg_tuner *t, const smg_open_parts *parts, const char *what, smg_model **out_model,
                                  bool *out_right) {
    smg_model_desc desc = *t->desc;
    smg_answer got;
    smg_arena *scratch;
    const char *differs = NULL;
    desc.unfused = false;
    SMG_TRY(smg_arena_create(t->ctx, &scratch));
    smg_status status = open_asked(t, desc, parts, scratch, &got, out_model);
    if (status == SMG_OK) status = compare_answer(t, &t->right, &got, scratch, &differs);
    *out_right = differs == NULL;
    if (differs != NULL) smg_log(t->ctx, SMG_LOG_WARNING, "%s: %s", what, differs);
    smg_arena_destroy(scratch);
    if (status == SMG_OK) return SMG_OK;
    smg_model_close(*out_model);
    *out_model = NULL;
    return status;
}

smg_status smg_tuner_ask_unfused(smg_tuner *t, smg_model **out_model) {
    static const smg_open_parts parts = {0};
    smg_model_desc desc = *t->desc;
    const char *wrong = NULL;
    *out_model = NULL;
    if (desc.padding_unread) return SMG_OK; /* rows that nobody reads may have any value */
    desc.unfused = true;
    desc.goal = SMG_GOAL_TIME;
    desc.max_memory = 0;
    desc.max_fused_ops = desc.max_fused_products = 0;
    desc.min_gain = 0;
    smg_status status = open_asked(t, desc, &parts, t->arena, &t->right, out_model);
    if (status == SMG_OK) status = check_answer(t, &t->right, &wrong);
    if (status == SMG_OK && wrong == NULL) return SMG_OK;
    smg_model_close(*out_model);
    *out_model = NULL;
    if (status == SMG_DEVICE) return status;
    smg_log(t->ctx, SMG_LOG_WARNING, "candidates are not compared with the unfused plan: %s",
            wrong != NULL ? wrong : smg_context_error(t->ctx));
    smg_context_clear_error(t->ctx);
    t->right = (smg_answer){0};
    return SMG_OK;
}

/* What the plan of prices gives is right where it is what the unfused one gives, or else by the reference. */
static smg_status judge_first(smg_tuner *t, const smg_answer *got) {
    const char *differs = NULL, *wrong = NULL;
    bool alone = t->right.count == 0;
    if (t->desc->padding_unread) return SMG_OK;
    if (!alone) SMG_TRY(compare_answer(t, &t->right, got, t->arena, &differs));
    if (!alone && differs == NULL) return SMG_OK;
    SMG_TRY(check_answer(t, got, &wrong));
    if (wrong != NULL) return smg_fail(t->ctx, SMG_INTERNAL, "the plan that tuning begins with is wrong: %s", wrong);
    if (!alone) smg_log(t->ctx, SMG_LOG_WARNING, "candidates are not compared with the unfused plan: %s", differs);
    t->right = *got;
    return SMG_OK;
}

smg_status smg_tuner_open_first(smg_tuner *t, smg_model **out_model) {
    smg_model_desc desc = *t->desc;
    smg_answer got;
    desc.unfused = false;
    SMG_TRY(open_asked(t, desc, &t->parts, t->arena, &got, out_model));
    smg_status status = judge_first(t, &got);
    if (status == SMG_OK) return SMG_OK;
    smg_model_close(*out_model);
    *out_model = NULL;
    return status;
}

#endif
