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
    double median;
    bool beaten; /* in turns with the one of the lowest price, or wrong */
    bool wrong;  /* its results are others */
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
    smg_tuning cuts;               /* that the plan at hand has, and those that were slower; no schedules */
    smg_tuning known;              /* of earlier runs */
    int cuts_tried, cuts_faster;   /* of this one */
    SMG_ARRAY(smg_measured) apart; /* operations as kernels of their own, as far as anybody looked */
    SMG_ARRAY(smg_tune_kernel) kernels;
    int failed, wrong;
    smg_answer right; /* of the unfused plan, or, where that is none, of the plan of prices */
    double start;
    double untuned, best; /* seconds of a run, of the plan of prices and the best so far; 0: not known */
    bool stopped;         /* by the caller */
} smg_tuner;

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
