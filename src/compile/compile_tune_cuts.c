/* compile_tune_cuts.c: other cuts of the plan of prices into kernels: each kernel of several operations apart, each two
 * neighbours together, and sums that several workgroups share out in each other number of parts, or in none, is a plan,
 * which is run in turns with the one at hand where its price is near, and takes its place where it is faster. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define MOST_PROPOSALS 24 /* cuts that are planned */
#define MOST_CUTS 8       /* and run */
#define FAR_PLAN 1.3      /* of the price of the plan at hand: dearer plans are not run */
#define CUT_SHARE 3.0     /* of the time that schedules are measured for */
#define CUTS_END 0.35     /* of the time there is */

/* What the driver made of schedules on the way to the plan. */
static smg_status know_driver(smg_tuner *t, smg_model *model) {
    smg_verdicts known;
    SMG_TRY(smg_verdicts_begin(&known, t->arena, &smg_model_compilation(model)->options.driver));
    t->parts.driver = smg_verdicts_facts(&known);
    return SMG_OK;
}

typedef struct proposal {
    smg_cut cut;
    double weight; /* seconds of what it is about, by price */
    double price;  /* of that with the cut; 0: it has none by itself */
} proposal;

typedef struct proposals {
    SMG_ARRAY(proposal) items;
} proposals;

static smg_status add_proposal(smg_tuner *t, smg_cut cut, double weight, double price, proposals *all) {
    if (smg_tuning_find_cut(&t->cuts, &cut) != NULL) return SMG_OK; /* by this run or an earlier one */
    for (int i = 0; i < all->items.count; i++) {
        proposal *other = &all->items.items[i];
        if (other->cut.at != cut.at || other->cut.kind != cut.kind || other->cut.chunk != cut.chunk) continue;
        other->weight += weight;
        return SMG_OK;
    }
    proposal *slot = SMG_ARRAY_PUSH(t->arena, &all->items);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (proposal){cut, weight, price};
    return SMG_OK;
}

static double chunk_seconds(const smg_split *s, int64_t elements) {
    double seconds = s->whole;
    for (int i = 0; i < s->priced.count; i++)
        if (s->priced.items[i].elements == elements) seconds = s->priced.items[i].seconds;
    return seconds;
}

/* Other numbers of parts, and none. Of what prices leave whole those that are near. */
static smg_status propose_parts(smg_tuner *t, const smg_split *s, proposals *out) {
    double now = chunk_seconds(s, s->chunk), weight = now * s->places;
    smg_cut cut = {.at = s->at, .kind = SMG_CUT_PARTS};
    if (s->chunk > 0) SMG_TRY(add_proposal(t, cut, weight, s->whole, out));
    for (int i = 0; i < s->priced.count; i++) {
        const smg_chunk *c = &s->priced.items[i];
        bool far_off = s->chunk == 0 && !(c->seconds < FAR_PLAN * now);
        cut.chunk = c->elements;
        if (c->elements != s->chunk && !far_off) SMG_TRY(add_proposal(t, cut, weight, c->seconds, out));
    }
    return SMG_OK;
}

/* The dearest first, of those that are about the same the nearest. */
static int by_weight(const void *a, const void *b) {
    const proposal *x = a, *y = b;
    if (x->weight < y->weight || x->weight > y->weight) return (x->weight < y->weight) - (x->weight > y->weight);
    if (x->price < y->price || x->price > y->price) return (x->price > y->price) - (x->price < y->price);
    return (x->cut.at > y->cut.at) - (x->cut.at < y->cut.at);
}

static smg_status propose(smg_tuner *t, const smg_plan *plan, proposals *out) {
    *out = (proposals){{0}};
    for (int i = 0; i < plan->steps.count; i++) {
        const smg_pstep *step = &plan->steps.items[i];
        const smg_joint *joint = &step->joint;
        const smg_cut apart = {.at = step->choice.at, .kind = SMG_CUT_APART};
        const smg_cut together = {.at = joint->at, .kind = SMG_CUT_TOGETHER};
        if (step->node_count > 1) SMG_TRY(add_proposal(t, apart, step->price.seconds, 0, out));
        if (joint->at != 0 && joint->seconds < FAR_PLAN * joint->apart)
            SMG_TRY(add_proposal(t, together, joint->apart, 0, out));
    }
    for (int i = 0; i < plan->splits.count; i++) SMG_TRY(propose_parts(t, &plan->splits.items[i], out));
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
    options.driver = t->parts.driver;
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

/* How many elements parts of these nodes have in a plan. */
static int64_t chunk_in(const smg_plan *plan, uint64_t at) {
    int64_t chunk = 0;
    for (int i = 0; i < plan->splits.count; i++)
        if (plan->splits.items[i].at == at) chunk = plan->splits.items[i].chunk;
    return chunk;
}

/* In the place of what decides of the same nodes. */
static void set_decided(smg_tuning *io, const smg_cut *cut) {
    int count = 0;
    for (int i = 0; i < io->cut_count; i++)
        if (io->cuts[i].at != cut->at) io->cuts[count++] = io->cuts[i];
    io->cuts[count] = *cut;
    io->cut_count = count + 1;
}

static void set_tried(smg_tuning *io, const smg_cut *cut) {
    int count = 0;
    for (int i = 0; i < io->tried_count; i++)
        if (io->tried[i].at != cut->at || io->tried[i].chunk != cut->chunk) io->tried[count++] = io->tried[i];
    io->tried[count] = *cut;
    io->tried_count = count + 1;
}

/* Both plans were run: what that says of the cut. *out_faster: its plan takes the place of `now`. */
static smg_status judge(smg_tuner *t, const smg_plan *now, const smg_tune_turns *both, smg_cut cut, bool *out_faster) {
    bool together = cut.kind == SMG_CUT_TOGETHER, parts = cut.kind == SMG_CUT_PARTS;
    bool faster = both->median[1] < SMG_TUNE_MARGIN * both->median[0] && both->least[1] < both->least[0];
    bool slower = together && both->median[1] > SMG_TUNE_NOISE * both->median[0] && both->least[1] > both->least[0];
    smg_tuning kept;
    SMG_TRY(smg_tuning_copy(&t->cuts, t->arena, &kept)); /* has room for one more of each kind */
    if (t->untuned == 0) t->untuned = t->best = both->median[0];
    cut.seconds = both->median[together || parts ? 1 : 0];
    cut.apart = both->median[together || parts ? 0 : 1];
    if (slower) cut.kind = SMG_CUT_APART; /* neighbours that are better as they are */
    if (faster || slower) set_decided(&kept, &cut);
    smg_cut other = cut;
    if (parts && faster) {
        /* As many parts as there were are not asked for again. */
        other.chunk = chunk_in(now, cut.at);
        other.seconds = cut.apart;
        other.apart = cut.seconds;
    }
    if (parts || !(faster || slower)) set_tried(&kept, &other);
    t->cuts = kept;
    if (faster) t->best = fmin(t->best, both->median[1]);
    t->cuts_faster += faster;
    *out_faster = faster;
    return SMG_OK;
}

/* *io_model is of the plan at hand; that with the cut takes its place where it is faster. */
static smg_status try_cut(smg_tuner *t, smg_cut cut, smg_model **io_model) {
    smg_tuning with;
    bool near = false, right = false, faster = false;
    smg_tune_turns both = {.models = {*io_model, NULL}};
    SMG_TRY(smg_tuning_copy(&t->cuts, t->arena, &with)); /* has room for one more */
    set_decided(&with, &cut);
    SMG_TRY(is_near(t, smg_model_compilation(*io_model), &with, &near));
    if (!near) return SMG_OK;
    smg_open_parts parts = t->parts;
    parts.measured = &with;
    t->cuts_tried++;
    const smg_plan *now = smg_model_compilation(*io_model)->plan;
    smg_status status = smg_tuner_open_checked(t, &parts, "another cut", &both.models[1], &right);
    t->wrong += status == SMG_OK && !right;
    if (status == SMG_OK && right) status = smg_tuner_time_runs(t, &both, "cuts", t->options->seconds / CUT_SHARE);
    if (status == SMG_OK && right && !t->stopped) status = judge(t, now, &both, cut, &faster);
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

/* A cut that leaves more in memory than the device has room for is no candidate. */
static smg_status leave_out(smg_tuner *t, smg_status status) {
    if (status != SMG_NO_FIT && status != SMG_DEVICE_MEMORY) return status;
    smg_log(t->ctx, SMG_LOG_INFO, "another cut does not count: %s", smg_context_error(t->ctx));
    smg_context_clear_error(t->ctx);
    return SMG_OK;
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
        SMG_TRY(leave_out(t, status));
    }
    smg_progress(t->ctx, "cuts", 1, 1, "");
    return SMG_OK;
}

/* The plan of prices, or one that is cut otherwise and faster. */
smg_status smg_tuner_find_cuts(smg_tuner *t) {
    smg_model *model = NULL;
    t->parts.measured = &t->cuts;
    smg_status status = smg_tuner_open_first(t, &model);
    if (status == SMG_OK) status = know_driver(t, model);
    if (status == SMG_OK && t->desc->goal == SMG_GOAL_TIME) status = try_cuts(t, &model);
    if (status == SMG_OK) status = know_driver(t, model);
    smg_model_close(model);
    return status;
}

#endif
