/* compile_tuner.h: what the files of tuning share: kernels with their measured schedules, and how plans are opened. */
#ifndef SMG_COMPILE_TUNER_H
#define SMG_COMPILE_TUNER_H

#include "compile/compile.h"

/* The outputs of the first run of a model, and what its plan rounds them to. */
typedef struct smg_answer {
    smg_tensor *outputs;
    int count; /* 0: there is none */
    smg_roundings roundings;
} smg_answer;

/* One schedule of some nodes. */
typedef struct smg_tune_row {
    smg_choice choice;
    double *seconds; /* room for the most that are kept */
    int count;
    double median; /* or what an earlier run measured; HUGE_VAL: nobody did */
    bool doubted;  /* the device was lost since, and it may be this one that loses it */
    bool beaten;   /* in turns with the one of the lowest price, or wrong */
    bool wrong;    /* its results are others, or it loses the device */
} smg_tune_row;

/* Kernels of one structure and size. */
typedef struct smg_tune_kernel {
    const char *name;
    int calls;
    SMG_ARRAY(smg_tune_row) rows; /* the first is the one of the lowest price */
    int best;
    bool settled; /* it is faster in turns, too, or is the first */
    bool unknown; /* nobody had the time to find out */
} smg_tune_kernel;

typedef struct smg_tuner {
    smg_context *ctx;
    smg_source *source;
    const smg_model_desc *desc;
    const smg_tune_options *options;
    smg_vk_device *device;
    smg_arena *arena;
    smg_open_parts parts;
    smg_tuning cuts;             /* that the plan at hand has, and those that were no faster; no schedules */
    smg_tuning known;            /* of earlier runs */
    int cuts_tried, cuts_faster; /* of this one */
    SMG_ARRAY(smg_timing) apart; /* operations as kernels of their own, as far as anybody looked */
    SMG_ARRAY(smg_tune_kernel) kernels;
    int failed, wrong;
    int lost;             /* times that the device was */
    smg_answer right;     /* of the unfused plan, or, where that is none, of the plan of prices */
    double start, busy;   /* by the clock: of the tuning; when one run behind another ended last */
    double untuned, best; /* seconds of a run, of the plan of prices and the best so far; 0: not known */
    bool stopped;         /* by the caller */
} smg_tuner;

#define SMG_TUNE_MARGIN 0.985 /* of the time of the one at hand, at most, is what another one takes to be kept */
#define SMG_TUNE_NOISE 1.01   /* times as long as the plan of prices is no slower yet */

#define SMG_TUNE_ROUNDS 5 /* at least */
#define SMG_TUNE_FEWEST 2 /* where a round takes long */

/* Two plans in turns: medians and minima of runs. */
typedef struct smg_tune_turns {
    smg_model *models[2];
    double median[2], least[2];
} smg_tune_turns;

/* compile_tune_turns.c. Is the part of this share of the time to end? */
bool smg_tuner_is_over(smg_tuner *t, const char *phase, double share);
smg_status smg_tuner_open_device(smg_tuner *t);
void smg_tuner_close_device(smg_tuner *t);
/* Where the status is DEVICE the device is opened again, with a line that begins with `what`; its models have to be
 * closed before. Any other status is given back, and so is DEVICE where the device is an application's, or was lost too
 * often. */
smg_status smg_tuner_recover(smg_tuner *t, smg_status status, const char *what);
double smg_tuner_median(double *io_seconds, int count); /* sorts them */
/* As smg_program_run, where more than one run comes in a row: the device's clocks are up behind it. */
smg_status smg_tuner_run_program(smg_tuner *t, smg_program *program);
/* By time: longer where the device was left alone before. */
smg_status smg_tuner_warm_up(smg_tuner *t, smg_program *program);
bool smg_tuner_is_enough(double seconds, double asked, int rounds);
/* A run more, of inputs that lie there since the one before where nothing was bound anew. */
smg_status smg_tuner_run(smg_tuner *t, smg_model *model);
/* It is run and warm afterwards, with a time for each step or not. Short runs come several in a row: no kernel is the
 * first behind a pause. */
smg_status smg_tuner_make_ready(smg_tuner *t, smg_model *model, bool stamped, int *out_in_row);
/* Twice where a row is one run: the caches are its own then. */
smg_status smg_tuner_run_turn(smg_tuner *t, smg_program *program, int in_row);
smg_status smg_tuner_time_runs(smg_tuner *t, smg_tune_turns *both, const char *phase, double asked);

/* compile_tune_cuts.c: other cuts of the plan of prices, and numbers of parts of its sums, into t->cuts. */
smg_status smg_tuner_find_cuts(smg_tuner *t);
bool smg_tuner_same_kernels(const smg_plan *a, const smg_plan *b);

/* compile_tune_kept.c. What plans are made by: cuts, and the best schedule of each kernel that is known. */
smg_status smg_tuner_decide(smg_tuner *t, smg_tuning *out);
/* What earlier runs know of the rows, which are all that each kernel has. */
void smg_tuner_recall(smg_tuner *t);
/* Writes what is decided (NULL: nothing), and all that was measured. *out_path: NULL: there is nothing to write. */
smg_status smg_tuner_keep(smg_tuner *t, const smg_target *target, const smg_tuning *decided, const char **out_path);

/* compile_tune_answer.c. Each opens a model and runs it once. */
smg_status smg_tuner_open(smg_tuner *t, const smg_open_parts *parts, smg_model **out_model);
/* A candidate. *out_right: it gives what it should; of one that does not a warning tells, called `what`. */
smg_status smg_tuner_open_checked(smg_tuner *t, const smg_open_parts *parts, const char *what, smg_model **out_model,
                                  bool *out_right);
/* t->right is what each operation as a kernel of its own gives, where that is right and can be had. *out_model: that
 * plan's; NULL: there is none. */
smg_status smg_tuner_ask_unfused(smg_tuner *t, smg_model **out_model);
/* The plan of prices (t->parts). Where the unfused plan is no help t->right is what this one gives; INTERNAL: that is
 * wrong by the reference. */
smg_status smg_tuner_open_first(smg_tuner *t, smg_model **out_model);

#endif
