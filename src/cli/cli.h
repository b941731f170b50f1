/* cli: argv to exit status.
 *
 * Takes:    the command line.
 * Gives:    0; 1 when --check fails; 2 with `smg: sentence` on stderr for every error.
 * Promises: results go to stdout, progress and errors to stderr; quiet in a pipe. Written with smg/smg.h and the C
 *           library alone. Without the compiler (SMG_COMPILER=OFF) cli_without_compiler.c is in the place of all files
 *           that need it.
 * Does not: hold logic worth testing: that is in the library.
 */
#ifndef SMG_CLI_H
#define SMG_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smg/smg.h"

#if defined(__MINGW32__) /* whose printf is by default an old one of the system's, which has no %zu */
#define CLI_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#elif defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CLI_PRINTF(f, a)
#endif

#define CLI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        smg_status try_status_ = (call);                                                                               \
        if (try_status_ != SMG_OK) return try_status_;                                                                 \
    } while (0)

#define CLI_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define CLI_MAX_DIMS 16
#define CLI_MAX_FILES 64
#define CLI_MAX_REPEATS 100000

enum { CLI_OK = 0, CLI_CHECK_FAILED = 1, CLI_ERROR = 2 };

/* cli_text.c: text that grows. Once memory is out, appends do nothing. */
typedef struct cli_text {
    char *data;
    size_t length, capacity;
    bool failed;
} cli_text;
void cli_text_free(cli_text *text); /* zeroed is fine, and is empty */
void cli_text_add(cli_text *text, const char *string);
void cli_text_add_n(cli_text *text, const char *string, size_t length);
void cli_text_addf(cli_text *text, const char *format, ...) CLI_PRINTF(2, 3);
/* Shortest decimal that reads back as the same float. */
void cli_text_add_f32(cli_text *text, float value);
/* A JSON string literal (bytes that are not UTF-8 become U+FFFD). */
void cli_text_add_json(cli_text *text, const char *string);
void cli_text_add_json_n(cli_text *text, const char *string, size_t length); /* may hold NULs */
const char *cli_text_cstr(const cli_text *text);                             /* never NULL */
smg_status cli_text_status(const cli_text *text);
smg_sink cli_text_sink(cli_text *text);
/* To stdout, if it could be written; then it is freed. */
smg_status cli_text_print(cli_text *text, smg_status status);

typedef struct cli_file {
    const char *name, *value; /* of --input and --output */
} cli_file;

typedef struct cli_options {
    smg_context *ctx;
    cli_text *problem;        /* what the command itself found wrong; empty: nothing */
    const char *const *words; /* what is no option: model, texts */
    int word_count;
    const char *device, *target, *out, *phase, *after, *kernel, *objective, *precision, *tuning, *time, *trace;
    uint64_t given; /* bits by row of the table of options */
    bool json, check, profile, prices, interpret, unfused, no_calibrate, no_matrices, measure, padding_unread, verbose,
        prepared, report, dot, rates, nominal;
    int64_t repeat, seed, rank, ranks, max_memory, max_fused_ops, max_fused_products, min_gain;
    smg_dim dims[CLI_MAX_DIMS], max_dims[CLI_MAX_DIMS];
    int64_t dims_from[CLI_MAX_DIMS]; /* of a range, which ends at the dim's value; 0: it is no range */
    int dim_count, max_dim_count;
    cli_file inputs[CLI_MAX_FILES], outputs[CLI_MAX_FILES];
    int input_count, output_count;
} cli_options;

typedef struct cli_command {
    const char *name;
    int (*run)(cli_options *o);
    const char *options; /* words of options.c that it takes, space-separated */
    const char *usage, *doc;
} cli_command;

/* cli_args.c: io_options has its context and place for problems. */
smg_status cli_parse(const cli_command *command, int argc, char **argv, cli_options *io_options);

/* cli_message.c: something is wrong with the command line or what it names; returns the status. */
smg_status cli_error(const cli_options *o, smg_status status, const char *format, ...) CLI_PRINTF(3, 4);
/* Prints that sentence, else the context's; returns the exit status. */
int cli_fail(const cli_options *o);
/* What long work of the command's own has come to, on a terminal. */
void cli_progress(const char *phase, size_t done, size_t total);
/* The context's callbacks. */
void cli_on_progress(void *user, const char *phase, size_t done, size_t total, const char *unit);
void cli_on_log(void *user, smg_log_level level, const char *line);

/* cli_inputs.c: arrays for every input of a model, from files or empty, and the sizes that options and
 * files give. */
typedef struct cli_arrays {
    smg_arrays *all;
    int count;
    smg_tensor *inputs;
    int output_count;
    smg_tensor *outputs; /* for results */
    const smg_dim *dims; /* nominal sizes of the plan */
    int dim_count;
    smg_dim_range ranges[CLI_MAX_DIMS]; /* of those that have one */
    int range_count;
} cli_arrays;
smg_status cli_make_arrays(const cli_options *o, const smg_signature *signature, cli_arrays *out);
void cli_free_arrays(cli_arrays *arrays); /* zeroed is fine */
/* The arrays that no file gave: random, or what the model has for them beside files. Apart, because sizes that do not
 * fit the device should be found before the host's memory is filled. */
smg_status cli_fill_arrays(const cli_options *o, cli_arrays *arrays);
smg_status cli_run_arrays(smg_model *model, cli_arrays *arrays);
/* Writes the results that --output names. */
smg_status cli_save_outputs(const cli_options *o, const cli_arrays *arrays);
/* cli_model.c: a command over one MODEL. */
typedef enum cli_need {
    CLI_LOOK,  /* the source, also of a model that cannot be converted */
    CLI_GRAPH, /* a source that can */
    CLI_ARRAYS /* and arrays for its inputs */
} cli_need;
typedef struct cli_job {
    cli_options *o;
    smg_source *source;
    const smg_source_facts *facts;
    cli_arrays arrays;
    cli_text text; /* goes to stdout when all is done */
    bool pass;     /* false: a check failed */
    double start;  /* when the command began to look at the model, by smg_command_seconds */
    double load;   /* seconds until the source was there */
} cli_job;
typedef smg_status (*cli_work)(cli_job *job);
/* Opens what `need` says, works, closes; the exit status. */
int cli_on_model(cli_options *o, cli_need need, cli_work work);
smg_status cli_check_precision(const cli_options *o); /* is there such a --precision? */
smg_model_desc cli_model_desc(const cli_options *o);
/* NULL: time. false: there is no such objective. */
bool cli_goal(const char *objective, smg_goal *out_goal);
smg_model_desc cli_job_desc(const cli_job *job); /* with the sizes of the arrays as nominal ones, and the ranges */
/* --target name or file; else NULL for --device; else `fallback`. */
const char *cli_target(const cli_options *o, const char *fallback);
/* The device for several models, calibrated as they would do it. */
smg_status cli_open_device(const cli_options *o, smg_device **out_device);

void cli_print_dims(cli_text *text, const cli_arrays *arrays);
void cli_print_dims_json(cli_text *text, const cli_arrays *arrays); /* "sizes": {"batch": 1} */

int cli_devices(cli_options *o);
int cli_info(cli_options *o);
int cli_run(cli_options *o);
int cli_compile(cli_options *o);
int cli_explain(cli_options *o);
int cli_bench(cli_options *o);
int cli_embed(cli_options *o);
int cli_tune(cli_options *o);

/* cli_ranks.c: the work of smg bench --ranks. */
smg_status cli_ranks(cli_job *job);

/* cli_trace.c: runs as events for Perfetto; start and end by the host's clock. */
typedef struct cli_trace {
    cli_text events;
    double origin; /* by smg_command_seconds */
    int runs;
} cli_trace;
void cli_trace_begin(cli_trace *trace, const smg_compilation_facts *facts);
void cli_trace_run(cli_trace *trace, const smg_model *model, double start, double end); /* the last run, profiled */
smg_status cli_trace_write(cli_trace *trace, smg_context *ctx, const char *path);
void cli_trace_end(cli_trace *trace);

/* cli_report.c */
void cli_print_check(const smg_check *check, cli_text *text);
/* Runs with a time stamp after every step and adds the table, or the members of a JSON object; writes --trace. */
smg_status cli_profile(const cli_options *o, smg_model *model, const cli_arrays *arrays, cli_text *text);
/* cli_bundle.c: the same commands of a bundle. */
bool cli_is_bundle(const cli_options *o);
/* Kernels are looked at before they are told or run, where the compiler is there. */
smg_status cli_validate_bundle(smg_bundle_file *file);
int cli_bundle_info(cli_options *o);
int cli_bundle_run(cli_options *o);
/* cli_measure.c */
/* Runs until clocks are up: a GPU that idles has a fifth of its clock. */
#define CLI_WARM_SECONDS 0.7
#define CLI_PAUSE_SECONDS 1.0 /* that clocks stay up behind work, at least */
smg_status cli_warm_up(smg_model *model, double seconds);
/* Behind runs that warmed up: from now on a short run is measured several times in a row, as one submission, since what
 * a device takes to begin is as much as some kernels take. *out_runs: so many times. Inputs are sent once more
 * for that; where clocks may have fallen meanwhile, it warms up again. */
smg_status cli_run_in_row(smg_model *model, const cli_arrays *arrays, int *out_runs);
typedef struct cli_spread {
    int n;
    double min, median, p95; /* seconds; p95: the least value that 95 % of all are not above */
} cli_spread;
cli_spread cli_spread_of(double *seconds, int count);                 /* sorts */
void cli_print_spread(const cli_spread *spread, cli_text *text);      /* "n 3, min 1.2 ms, median .." */
void cli_print_spread_json(const cli_spread *spread, cli_text *text); /* "n": 3, "min_us": 1.2, .. */
/* What measured: the device, its driver, this program. */
void cli_print_device(const char *device, const char *driver, cli_text *text);      /* the line "device   .." */
void cli_print_device_json(const char *device, const char *driver, cli_text *text); /* "device": .., "driver": .., .. */
typedef struct cli_result {
    cli_spread spread; /* on the device; n 0: not measured */
    double first;      /* of the first run: drivers may compile then */
    double program;    /* pipelines and upload */
    double device;     /* opening it, with the calibration where there was none */
    smg_memory_info memory;
    double ready; /* since `start`: the first result is there */
} cli_result;
/* The first run pays for what drivers put off; the others are measured. */
smg_status cli_measure(const cli_options *o, cli_arrays *arrays, smg_model *model, double start,
                       cli_result *out_result);
void cli_print_output(const smg_tensor *output, cli_text *text);

#endif
