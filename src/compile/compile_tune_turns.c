/* compile_tune_turns.c: what all parts of tuning measure with: the time there is, the device, which may be lost, and
 * two plans in turns. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile_tuner.h"

#if SMG_VULKAN

#define WARM 0.1      /* seconds before anything is measured */
#define COLD_WARM 0.7 /* the same behind a pause: clocks of GPUs rise under sustained work alone */
#define PAUSE 1.5     /* those of an H200 were up 1.7 s behind work and down behind 2.4 */
#define MOST_ROUNDS 400
#define LONG 8.0     /* times as many seconds as were asked for, at most */
#define MOST_LOST 64 /* times that the device is: then it is none to tune on */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double smg_tuner_median(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof(*seconds), by_size);
    return count > 0 ? seconds[count / 2] : HUGE_VAL;
}

bool smg_tuner_is_over(smg_tuner *t, const char *phase, double share) {
    const smg_tune_options *o = t->options;
    const smg_tune_progress at = {phase, smg_clock_seconds() - t->start, t->untuned, t->best};
    if (o->progress != NULL && !t->stopped) t->stopped = !o->progress(o->progress_user, &at);
    return t->stopped || (o->limit > 0 && at.seconds > share * o->limit);
}

void smg_tuner_close_device(smg_tuner *t) {
    if (t->desc->on == NULL) smg_vk_close(t->device);
    t->device = NULL;
}

smg_status smg_tuner_open_device(smg_tuner *t) {
    t->device = t->desc->on;
    if (t->device == NULL) SMG_TRY(smg_vk_open(t->ctx, t->desc->device, 0, &t->device));
    if (t->options->opened != NULL) t->options->opened(t->options->user, t->device);
    return smg_compile_know_device(t->device, t->desc);
}

smg_status smg_tuner_recover(smg_tuner *t, smg_status status, const char *what) {
    if (status != SMG_DEVICE || t->desc->on != NULL || ++t->lost > MOST_LOST) return status;
    smg_log(t->ctx, SMG_LOG_WARNING, "%s: %s", what, smg_context_error(t->ctx));
    smg_context_clear_error(t->ctx);
    smg_tuner_close_device(t);
    return smg_tuner_open_device(t);
}

smg_status smg_tuner_run_program(smg_tuner *t, smg_program *program) {
    SMG_TRY(smg_program_run(program));
    t->busy = smg_clock_seconds();
    return SMG_OK;
}

static bool is_paused(const smg_tuner *t) {
    return smg_clock_seconds() - t->busy > PAUSE && smg_vk_target(t->device)->type != SMG_DEVICE_CPU;
}

smg_status smg_tuner_warm_up(smg_tuner *t, smg_program *program) {
    double start = smg_clock_seconds();
    bool cold = is_paused(t);
    while (smg_clock_seconds() - start < (cold ? COLD_WARM : WARM)) SMG_TRY(smg_tuner_run_program(t, program));
    return SMG_OK;
}

bool smg_tuner_is_enough(double seconds, double asked, int rounds) {
    if (rounds >= MOST_ROUNDS) return true;
    return seconds >= asked && rounds >= (seconds >= LONG * asked ? SMG_TUNE_FEWEST : SMG_TUNE_ROUNDS);
}

smg_status smg_tuner_run(smg_tuner *t, smg_model *model) {
    if (smg_program_is_bound(smg_model_program(model))) return smg_program_run(smg_model_program(model));
    return smg_model_run(model, t->options->inputs, t->options->input_count, NULL, 0);
}

smg_status smg_tuner_make_ready(smg_tuner *t, smg_model *model, bool stamped, int *out_in_row) {
    smg_program *program = smg_model_program(model);
    SMG_TRY(smg_program_set_profile(program, stamped));
    SMG_TRY(smg_tuner_run(t, model));
    SMG_TRY(smg_tuner_warm_up(t, program));
    *out_in_row = smg_program_set_runs(program, 0);
    SMG_TRY(smg_tuner_run(t, model)); /* sends inputs once more, which may take long */
    return is_paused(t) ? smg_tuner_warm_up(t, program) : SMG_OK;
}

smg_status smg_tuner_run_turn(smg_tuner *t, smg_program *program, int in_row) {
    if (in_row == 1) SMG_TRY(smg_tuner_run_program(t, program));
    return smg_tuner_run_program(t, program);
}

smg_status smg_tuner_time_runs(smg_tuner *t, smg_tune_turns *both, const char *phase, double asked) {
    double *seconds[2];
    int rounds = 0, in_row[2];
    for (int i = 0; i < 2; i++) {
        SMG_TRY(smg_tuner_make_ready(t, both->models[i], false, &in_row[i]));
        seconds[i] = SMG_ARENA_ARRAY(t->arena, double, MOST_ROUNDS + 1);
        if (seconds[i] == NULL) return SMG_MEMORY;
    }
    double start = smg_clock_seconds();
    while (!smg_tuner_is_enough(smg_clock_seconds() - start, asked, rounds)) {
        for (int i = 0; i < 2; i++) {
            SMG_TRY(smg_tuner_run_turn(t, smg_model_program(both->models[i]), in_row[i]));
            seconds[i][rounds] = smg_model_seconds(both->models[i]);
        }
        rounds++;
        if (smg_tuner_is_over(t, phase, 1) && (t->stopped || rounds >= SMG_TUNE_FEWEST)) break;
    }
    if (t->stopped) return SMG_OK;
    for (int i = 0; i < 2; i++) {
        both->median[i] = smg_tuner_median(seconds[i], rounds);
        both->least[i] = seconds[i][0]; /* in order now */
    }
    return SMG_OK;
}

#endif
