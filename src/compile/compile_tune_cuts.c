/* compile_tune_cuts.c: other cuts of the plan of prices into kernels: each kernel of several operations apart, and each
 * two neighbours together, is a plan, which is run in turns with the one at hand where its price is near, and takes its
 * place where it is faster. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define MOST_PROPOSALS 24 /* cuts that are planned */
#define MOST_CUTS 8       /* and run */
#define FAR_PLAN 1.3      /* of the price of the plan at hand: dearer plans are not run */
#define CUT_SHARE 3.0     /* of the time that schedules are measured for */
#define CUTS_END 0.35     /* of the time there is */

/* What the driver made nothing good of on the way to the plan. */
static smg_status know_rejected(smg_tuner *t, smg_model *model) {
    const smg_compilation *c = smg_model_compilation(model);
    int count = c->options.rejected_count;
    smg_choice *rejected = SMG_ARENA_ARRAY(t->arena, smg_choice, (size_t)count + 1);
    if (rejected == NULL) return SMG_MEMORY;
    if (count > 0) memcpy(rejected, c->options.rejected, (size_t)count * sizeof(*rejected));
    t->parts.rejected = rejected;
    t->parts.rejected_count = count;
    return SMG_OK;
}

typedef struct proposal {
    smg_cut cut;
    double weight; /* seconds of what it is about, by price */
} proposal;

typedef struct proposals {
    SMG_ARRAY(proposal) items;
} proposals;

static smg_status add_proposal(smg_tuner *t, uint64_t at, bool together, double weight, proposals *all) {
    if (smg_tuning_find_cut(&t->cuts, at) != NULL) return SMG_OK; /* by this run or an earlier one */
    for (int i = 0; i < all->items.count; i++) {
        if (all->items.items[i].cut.at != at) continue;
        all->items.items[i].weight += weight;
        return SMG_OK;
    }
    proposal *slot = SMG_ARRAY_PUSH(t->arena, &all->items);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (proposal){{.at = at, .together = together}, weight};
    return SMG_OK;
}

static int by_weight(const void *a, const void *b) {
    double x = ((const proposal *)a)->weight, y = ((const proposal *)b)->weight;
    return (x < y) - (x > y);
}

static smg_status propose(smg_tuner *t, const smg_plan *plan, proposals *out) {
    *out = (proposals){{0}};
    for (int i = 0; i < plan->steps.count; i++) {
        const smg_pstep *step = &plan->steps.items[i];
        const smg_joint *joint = &step->joint;
        if (step->node_count > 1) SMG_TRY(add_proposal(t, step->choice.at, false, step->price.seconds, out));
        if (joint->at != 0 && joint->seconds < FAR_PLAN * joint->apart)
            SMG_TRY(add_proposal(t, joint->at, true, joint->apart, out));
    }
    if (out->items.count > 0) qsort(out->items.items, (size_t)out->items.count, sizeof(proposal), by_weight);
    return SMG_OK;
}

bool smg_tuner_same_kernels(const smg_plan *a, const smg_plan *b) {
    bool same = a->steps.count == b->steps.count;
    for (int i = 0; same && i < a->steps.count; i++) same = a->steps.items[i].choice.at == b->steps.items[i].choice.at;
    return same;
}

/* Is there another plan with the cut, and its price near? */
static smg_status is_near(smg_tuner *t, const smg_compilation *now, const smg_tuning *with, bool *out_near) {
    smg_compilation *c = NULL;
    smg_compile_options options = smg_compile_options_of(t->desc);
    double bytes, flops, before, after;
    options.measured = with;
    options.rejected = t->parts.rejected;
    options.rejected_count = t->parts.rejected_count;
    *out_near = false;
    smg_status status = smg_compile_plan(t->ctx, t->source->graph, &now->target, &options, &c);
    if (status == SMG_NO_FIT) smg_context_clear_error(t->ctx);
    if (status != SMG_OK) return status == SMG_NO_FIT ? SMG_OK : status;
    smg_compile_work(now, &bytes, &flops, &before);
    smg_compile_work(c, &bytes, &flops, &after);
    *out_near = !smg_tuner_same_kernels(c->plan, now->plan) && after < FAR_PLAN * before;
    smg_compilation_destroy(c);
    return SMG_OK;
}

/* Both plans were run: what that says of the cut, the last of `with`. *out_faster: it takes the place. */
static void judge(smg_tuner *t, const smg_tune_turns *both, smg_tuning *with, bool *out_faster) {
    smg_cut *cut = &with->cuts[with->cut_count - 1];
    bool together = cut->together;
    bool faster = both->median[1] < SMG_TUNE_MARGIN * both->median[0] && both->least[1] < both->least[0];
    bool slower = together && both->median[1] > SMG_TUNE_NOISE * both->median[0] && both->least[1] > both->least[0];
    if (t->untuned == 0) t->untuned = t->best = both->median[0];
    cut->seconds = both->median[together ? 1 : 0];
    cut->apart = both->median[together ? 0 : 1];
    cut->together = together && !slower;                             /* neighbours that are better as they are */
    if (!faster && !slower) with->tried[with->tried_count++] = *cut; /* there is room for one more */
    if (!faster && !slower) with->cut_count--;
    t->cuts = *with;
    if (faster) t->best = fmin(t->best, both->median[1]);
    t->cuts_faster += faster;
    *out_faster = faster;
}

/* *io_model is of the plan at hand; that with the cut takes its place where it is faster. */
static smg_status try_cut(smg_tuner *t, smg_cut cut, smg_model **io_model) {
    smg_tuning with;
    bool near = false, right = false, faster = false;
    smg_tune_turns both = {.models = {*io_model, NULL}};
    SMG_TRY(smg_tuning_copy(&t->cuts, t->arena, &with)); /* has room for one more */
    with.cuts[with.cut_count++] = cut;
    SMG_TRY(is_near(t, smg_model_compilation(*io_model), &with, &near));
    if (!near) return SMG_OK;
    smg_open_parts parts = t->parts;
    parts.measured = &with;
    t->cuts_tried++;
    smg_status status = smg_tuner_open_checked(t, &parts, "another cut", &both.models[1], &right);
    t->wrong += status == SMG_OK && !right;
    if (status == SMG_OK && right) status = smg_tuner_time_runs(t, &both, "cuts", t->options->seconds / CUT_SHARE);
    if (status == SMG_OK && right && !t->stopped) judge(t, &both, &with, &faster);
    smg_model_close(faster ? *io_model : both.models[1]);
    if (faster) *io_model = both.models[1];
    return status;
}

/* The plan at hand is opened again on the device that is. */
static smg_status go_on(smg_tuner *t, smg_status status, smg_model **io_model) {
    smg_model_close(*io_model);
    *io_model = NULL;
    SMG_TRY(smg_tuner_recover(t, status, "another cut does not count"));
    return smg_tuner_open(t, &t->parts, io_model);
}

static smg_status try_cuts(smg_tuner *t, smg_model **io_model) {
    proposals all;
    SMG_TRY(propose(t, smg_model_compilation(*io_model)->plan, &all));
    for (int i = 0; i < all.items.count && i < MOST_PROPOSALS && t->cuts_tried < MOST_CUTS; i++) {
        if (smg_tuner_is_over(t, "cuts", CUTS_END)) break;
        smg_progress(t->ctx, "cuts", (size_t)i, (size_t)all.items.count, "");
        smg_status status = try_cut(t, all.items.items[i].cut, io_model);
        t->failed += status == SMG_DEVICE;
        if (status == SMG_DEVICE) status = go_on(t, status, io_model);
        SMG_TRY(status);
    }
    smg_progress(t->ctx, "cuts", 1, 1, "");
    return SMG_OK;
}

/* The plan of prices, or one that is cut otherwise and faster. */
smg_status smg_tuner_find_cuts(smg_tuner *t) {
    smg_model *model = NULL;
    t->parts.measured = &t->cuts;
    smg_status status = smg_tuner_open_first(t, &model);
    if (status == SMG_OK) status = know_rejected(t, model);
    if (status == SMG_OK && t->desc->goal == SMG_GOAL_TIME) status = try_cuts(t, &model);
    if (status == SMG_OK) status = know_rejected(t, model);
    smg_model_close(model);
    return status;
}

#endif
