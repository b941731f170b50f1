/* compile_tune_kept.c: what tuning makes plans by, what is kept of all that was measured, and what an earlier run has
 * measured already. */
#include <math.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

smg_status smg_tuner_decide(smg_tuner *t, smg_tuning *out) {
    *out = t->cuts;
    out->items = SMG_ARENA_ARRAY(t->arena, smg_measured, (size_t)t->kernels.count + 1);
    out->count = 0;
    if (out->items == NULL) return SMG_MEMORY;
    for (int i = 0; i < t->kernels.count; i++) {
        const smg_tune_kernel *k = &t->kernels.items[i];
        const smg_tune_row *best = &k->rows.items[k->best];
        if (k->unknown || isinf(k->rows.items[0].median)) continue;
        out->items[out->count++] = (smg_measured){.at = best->choice.at,
                                                  .schedule = best->choice.schedule,
                                                  .seconds = best->median,
                                                  .cheapest = k->rows.items[0].median};
    }
    smg_tuning_sort(out);
    return SMG_OK;
}

/* ---- of earlier runs -------------------------------------------------------------------------------- */

static const smg_measured *find_confirmed(const smg_tuning *known, uint64_t at) {
    for (int i = 0; i < known->count; i++)
        if (known->items[i].at == at) return &known->items[i];
    return NULL;
}

/* Where every schedule has a time, the one that was confirmed stays. */
static void recall_best(const smg_tuning *known, smg_tune_kernel *k) {
    const smg_measured *m = find_confirmed(known, k->rows.items[0].choice.at);
    int best = -1;
    for (int i = 0; i < k->rows.count; i++) {
        if (isinf(k->rows.items[i].median)) return;
        if (m != NULL && k->rows.items[i].choice.schedule == m->schedule) best = i;
    }
    if (best < 0) return;
    k->best = best;
    k->settled = true;
    k->rows.items[0].median = m->cheapest;
    k->rows.items[best].median = m->seconds;
}

/* What an operation took in the unfused plan is not told beside schedules that ran elsewhere. */
void smg_tuner_recall(smg_tuner *t) {
    for (int i = 0; i < t->kernels.count; i++) {
        smg_tune_kernel *k = &t->kernels.items[i];
        for (int r = 0; r < k->rows.count; r++) {
            smg_tune_row *row = &k->rows.items[r];
            const smg_timing *found =
                smg_timing_find(t->known.timings, t->known.timing_count, row->choice.at, row->choice.schedule);
            if (found == NULL || found->kind == SMG_TIMING_ALONE) continue;
            row->median = found->seconds;
            row->beaten = found->kind == SMG_TIMING_BEATEN;
        }
        recall_best(&t->known, k);
    }
}

/* ---- of this one ------------------------------------------------------------------------------------ */

/* Not of schedules that count for nothing. */
static int add_passes(const smg_tuner *t, smg_timing *out) {
    int count = 0;
    for (int i = 0; i < t->kernels.count; i++)
        for (int r = 0; r < t->kernels.items[i].rows.count; r++) {
            const smg_tune_row *row = &t->kernels.items[i].rows.items[r];
            if (isinf(row->median) || row->wrong) continue;
            out[count++] = (smg_timing){.at = row->choice.at,
                                        .schedule = row->choice.schedule,
                                        .seconds = row->median,
                                        .kind = row->beaten ? SMG_TIMING_BEATEN : SMG_TIMING_PASSES};
        }
    return count;
}

static bool has_timing(const smg_timing *timings, int count, const smg_timing *of) {
    for (int i = 0; i < count; i++)
        if (timings[i].at == of->at && timings[i].schedule == of->schedule) return true;
    return false;
}

/* Alone tells less than between neighbours; operations of one structure are one. */
static int add_apart(const smg_tuner *t, int count, smg_timing *io) {
    for (int i = 0; i < t->apart.count; i++) {
        const smg_timing *one = &t->apart.items[i];
        const smg_timing *known = smg_timing_find(t->known.timings, t->known.timing_count, one->at, one->schedule);
        bool better = known != NULL && known->kind != SMG_TIMING_ALONE;
        if (!better && !has_timing(io, count, one)) io[count++] = *one;
    }
    return count;
}

smg_status smg_tuner_keep(smg_tuner *t, const smg_target *target, const smg_tuning *decided, const char **out_path) {
    smg_tuning all = decided != NULL ? *decided : (smg_tuning){0};
    size_t room = (size_t)t->apart.count;
    *out_path = NULL;
    for (int i = 0; i < t->kernels.count; i++) room += (size_t)t->kernels.items[i].rows.count;
    all.tried = t->cuts.tried;
    all.tried_count = t->cuts.tried_count;
    all.timings = SMG_ARENA_ARRAY(t->arena, smg_timing, room + 1);
    if (all.timings == NULL) return SMG_MEMORY;
    all.timing_count = add_apart(t, add_passes(t, all.timings), all.timings);
    if (all.count + all.cut_count + all.timing_count + all.tried_count == 0) return SMG_OK;
    return smg_tuning_write(t->ctx, target, t->options->path, &all, t->arena, out_path);
}

#endif
