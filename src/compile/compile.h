/* compile: the one list of phases, and what surrounds it.
 *
 * Takes:    a path (model directory, ONNX file, graph text) or a graph; a target; options.
 * Gives:    a compilation (rewritten graph, plan, bundle) whose every phase can be printed; a model that
 *           runs; checks against the reference; inputs made or read.
 * Promises: the same source, target and options give the same bundle; what it made is freed on failure.
 * Does not: hold logic of a phase.
 */
#ifndef SMG_COMPILE_H
#define SMG_COMPILE_H

#include "array/array.h"
#include "bundle/bundle.h"
#include "bundle/file.h"
#include "bundle/interface.h"
#include "facts/facts.h"
#include "graph/graph.h"
#include "import/import.h"
#include "model/model.h"
#include "onnx/onnx.h"
#include "plan/plan.h"
#include "precision/precision.h"
#include "program/program.h"
#include "rewrite/rewrite.h"
#include "runtime/runtime.h"
#include "smg/compile.h"
#include "smg/embed.h"
#include "smg/model.h"
#include "smg/smg.h"
#include "space/space.h"
#include "spirv/spirv.h"
#include "target/target.h"
#include "vulkan/vulkan.h"

/* ---- source: a graph and the files its constants lie in (compile_load.c) -------------------------- */

struct smg_source {
    smg_context *ctx;
    smg_graph *graph;
    bool owns_graph;
    smg_import_dir *dir; /* of a directory, else NULL */
    smg_onnx *onnx;      /* of an ONNX file, also a directory's, else NULL */
    smg_arena *arena;    /* converted weights */
};

/* A directory, an ONNX file, or a file of graph text. embedding_only: of a sentence encoder, nothing but the pooled
 * embedding; UNSUPPORTED when the directory has no pooling that smg knows. */
smg_status smg_source_open(smg_context *ctx, const char *path, bool embedding_only, smg_source *out_source);
/* The same, but an ONNX file with unsupported operators is no failure: graph is NULL then, and
 * smg_onnx_missing_at(source->onnx, ..) lists them. */
smg_status smg_source_look(smg_context *ctx, const char *path, bool embedding_only, smg_source *out_source);
void smg_source_close(smg_source *source); /* zeroed is fine */
/* How to fill an input that a caller did not give: of a directory's graph some have a value of their own
 * (smg_model_input_default). false: it must be given. */
bool smg_source_default(const smg_source *source, const char *input, smg_fill *out_fill);
/* For smg_program_options: drops the pages of an uploaded weight. user: the smg_source. */
void smg_source_uploaded(void *user, const void *data, size_t bytes);

/* ---- sizes (compile_sizes.c) ---------------------------------------------------------------------- */

/* smg_model_desc_check inside of a call. */
smg_status smg_desc_check(smg_context *ctx, const smg_model_desc *desc);
/* Lowers symbols' maxima; INVALID when a name is unknown or the value above what the model allows. */
smg_status smg_sizes_limit(smg_context *ctx, smg_sizes *sizes, const smg_dim *dims, int count);
/* One value per symbol: given, else smg_plan_nominal's. */
smg_status smg_sizes_choose(smg_context *ctx, const smg_graph *g, const smg_dim *dims, int count, int64_t *out_values);

/* What runs see of the graph: its sizes and names are borrowed, nominal sizes are the planner's. source may be NULL:
 * every input must be given. */
smg_status smg_compile_interface(smg_arena *arena, const smg_graph *g, const smg_source *source,
                                 smg_interface **out_interface);
smg_status smg_compile_input_port(const smg_graph *g, smg_node_id input, smg_port *out_port);

/* ---- phases (compile.c) --------------------------------------------------------------------------- */

/* Of one model, while its kernels spill on the device; the last ones by time, because where the fewest kernels spill
 * time and again, others do not, and of those the first choice may spill as well. */
#define SMG_MOST_PLANS 8
#define SMG_PLANS_BY_TIME 2

/* Of one device: what was measured there, by ascending `at`. Plans are made by what was confirmed in turns; the rest is
 * for reports, and for the next tuning, which does not measure it again. */
typedef struct smg_tuning {
    smg_measured *items;
    int count;
    smg_cut *cuts;
    int cut_count;
    smg_timing *timings; /* of one `at` by ascending schedule, SMG_MOST_TIMINGS at most */
    int timing_count;
    smg_cut *tried; /* cuts that were run, and whose plan was no faster, or is no more: they decide nothing */
    int tried_count;
} smg_tuning;
#define SMG_MOST_TIMINGS 64

/* Of a run list that goes through its plan several times, each time with other schedules: 0 those that are taken, 1 the
 * first rivals, and so on (compile_tune.c). It begins with its first pass a few times more, which nobody asks after:
 * what a device does first after it was idle takes longer. */
typedef struct smg_passes {
    int rivals;   /* of each step, at most; 0: the run list is the plan */
    int from, to; /* the passes from this one to before that one */
} smg_passes;

typedef struct smg_compile_options {
    smg_objective objective;
    bool unfused;
    bool no_matrices;            /* the target's products of matrices are left out */
    bool padding_unread;         /* rows outside of the ends of their mask may have any value */
    int rank;                    /* of the schedule by price; 0: the best */
    int max_nodes, max_products; /* as in plan.h: of a kernel */
    double min_gain;
    double memory_pressure;
    int64_t max_live;           /* where no other list keeps to it, but the first does, it takes the least */
    smg_driver_facts driver;    /* as in plan.h; borrowed. A kept plan is found without them, by its device */
    bool plan_anew;             /* a kept plan is not taken: what comes out takes its place */
    const char *tuning;         /* a file; "": none; NULL: what the cache folder has of the target */
    const smg_tuning *measured; /* in the place of a file; borrowed */
    smg_passes passes;
    bool late_plan;      /* one of SMG_PLANS_BY_TIME: whole sums as well, since kernels of parts may spill each time */
    smg_type precision;  /* F32, F16 or BF16: in which values lie in memory where nothing speaks against it */
    const smg_dim *dims; /* prices */
    int dim_count;
    const smg_dim *max_dims;
    int max_dim_count;
    bool keep_passes; /* of lowering, for the phase "lower" of smg_compile_explain */
    bool report;      /* for smg_compile_report */
    bool search;      /* for the phase "search" */
    /* Inputs of a run that stands for others, borrowed until the compilation is made: values that it shows not to fit
     * the precision stay f32. */
    const smg_tensor *samples;
    int sample_count;
    bool no_plan_cache; /* smg_compile_open makes everything anew and keeps nothing of it */
} smg_compile_options;
/* The description is one that smg_desc_check accepts. */
smg_compile_options smg_compile_options_of(const smg_model_desc *desc);

typedef struct smg_phase_times {
    double rewrite, plan, glsl, spirv;
    double cache; /* looking for plan and modules among those that were kept, and reading them */
} smg_phase_times;

/* A run list for a range of sizes. Every list is right for all sizes; tiles are chosen for `nominal`. */
#define SMG_MAX_VARIANTS 3
typedef struct smg_variant {
    int64_t low, high; /* guard: low <= measure <= high */
    int64_t *nominal;  /* per symbol */
    smg_plan *plan;    /* NULL: not planned yet */
} smg_variant;

struct smg_compilation {
    smg_context *ctx;
    smg_arena *arena;
    const smg_graph *source;     /* as given */
    smg_graph *parts;            /* the source with constants in parts that a binding reaches; NULL: all are */
    int split;                   /* constants that became parts */
    smg_compile_options options; /* names and arrays in the arena */
    smg_graph *graph;            /* rewritten; outputs copied where a program cannot give them as they are */
    smg_rewrite_report report;
    smg_precision_plan precision; /* of `graph` */
    smg_target target;
    smg_size measure;                       /* in graph->sizes: what guards look at */
    smg_variant variants[SMG_MAX_VARIANTS]; /* the first is for the sizes given, the others are made when needed */
    int variant_count;
    int64_t *nominal; /* of variant 0 */
    smg_plan *plan;   /* of variant 0, the only one with the prepare list */
    smg_plan_options plan_options;
    smg_tuning tuning; /* that plans are made with */
    int run_ops;       /* nodes that every run computes */
    int terms;         /* products of the graph that are there by terms */
    struct smg_bundler *bundler;
    smg_bundle *bundle; /* NULL until smg_compile_modules */
    smg_phase_times seconds;
    int modules_cached; /* of bundle->modules, from the SPIR-V cache */
    bool from_cache;    /* bundle and nominal sizes were read: there is no plan, and no graph before a run list that
                         * was not kept is asked for */
    bool keeps;         /* what is made is kept under the key */
    uint64_t key[2];
    int *origins; /* from_cache: per buffer of the bundle read its node of the graph, -1 */
    int origin_count;
};

/* Analysis: rewrite, plan. Needs no device and no shader compiler. */
smg_status smg_compile_plan(smg_context *ctx, const smg_graph *g, const smg_target *target,
                            const smg_compile_options *options, smg_compilation **out_compilation);
/* Code: GLSL, SPIR-V (from the cache where it has it), bundle with variant 0. Equal kernels share a module. */
smg_status smg_compile_modules(smg_compilation *c);
/* Both; or the bundle that an earlier call, maybe of another process, made of the same graph, target and options. */
smg_status smg_compile_open(smg_context *ctx, const smg_graph *g, const smg_target *target,
                            const smg_compile_options *options, smg_compilation **out_compilation);
/* The variant for these sizes. */
int smg_compile_choose(const smg_compilation *c, const int64_t *symbols);
/* Plans a variant; with the bundle there, adds its steps and modules to it, and to what is kept. */
smg_status smg_compile_variant(smg_compilation *c, int variant);
/* c->graph is there afterwards, or stays NULL where a kept plan does not fit what rewriting gives now. */
smg_status smg_compile_need_graph(smg_compilation *c);
/* Nodes that compute something (no leaves, no views): "graph ops" in all reports. */
int smg_compile_op_count(const smg_graph *g);
/* Times that the run list of passes has its first one before them. */
int smg_compile_leads(const smg_compilation *c);
/* The pass that a step of the first run list is of; 0 where it has none. */
int smg_compile_pass(const smg_compilation *c, int step);
/* What was chosen for a step of the first run list; in its passes. Of a compilation with a plan. */
const smg_choice *smg_compile_choice(const smg_compilation *c, int step);
/* Steps of the run list for the sizes given, of its plan or its bundle. */
int smg_compile_kernel_count(const smg_compilation *c);
/* Modelled traffic, arithmetic and time of these steps at the nominal sizes. */
void smg_compile_work(const smg_compilation *c, double *out_bytes, double *out_flops, double *out_seconds);

/* compile_tuning.c: what a file, or with NULL the cache folder, has for the target. What is of another device or
 * another smg gives nothing, with a log line, and so does a broken file of the cache folder. NOT_FOUND, FORMAT: a file
 * that was named is not there, or broken. */
smg_status smg_tuning_read(smg_context *ctx, const smg_target *target, const char *path, smg_arena *arena,
                           smg_tuning *out_tuning);
/* Adds to what is there, and replaces what is there for the same nodes and sizes (and, of timings, schedule); of more
 * timings than a kernel may have the fastest stay. out_path: where it lies. */
smg_status smg_tuning_write(smg_context *ctx, const smg_target *target, const char *path, const smg_tuning *tuning,
                            smg_arena *arena, const char **out_path);
/* The same of a file that may be there, or be broken: then there is nothing, with a log line. */
smg_status smg_tuning_known(smg_context *ctx, const smg_target *target, const char *path, smg_arena *arena,
                            smg_tuning *out_tuning);
smg_status smg_tuning_copy(const smg_tuning *from, smg_arena *arena, smg_tuning *out_tuning);
void smg_tuning_sort(smg_tuning *tuning);
/* What runs took with these nodes as one kernel and as several, or with their sums in as many parts, whether that
 * decides plans or not; NULL: nobody measured it. */
const smg_cut *smg_tuning_find_cut(const smg_tuning *tuning, const smg_cut *like);
uint64_t smg_tuning_hash(uint64_t hash, const smg_tuning *tuning);

/* compile_ahead.c: one class of a bundle's file for each target, in this order. */
typedef struct smg_ahead_target {
    const char *name;
    const char *match; /* part of the names of devices that it stands for; "": none */
    smg_target target;
    smg_vk_device *built_on;   /* whose compiler is asked what becomes of its kernels; NULL: none */
    smg_vk_device *prepare_on; /* its weights are stored as this device prepares them; NULL: devices do when a bundle is
                                * opened */
} smg_ahead_target;
/* Compiles the source for each and writes the file. What is wrong with one target names it. */
smg_status smg_compile_ahead(smg_context *ctx, smg_source *source, const smg_ahead_target *targets, int count,
                             const smg_compile_options *options, const char *path);

/* compile_prepared.c: the same without a prepare list, in the arena: what it derives are constants, as the device makes
 * them. `made_for` is the target of the bundle, whose data and modules are borrowed. UNSUPPORTED: the device misses
 * what the bundle needs. */
smg_status smg_compile_prepared(const smg_bundle *bundle, const smg_target *made_for, smg_vk_device *device,
                                smg_arena *arena, smg_bundle **out_bundle);

/* compile_output.c: gives every output a buffer of its own; see there. */
smg_status smg_compile_copy_outputs(smg_graph *g);
/* A node, not in the graph yet, that stores the value as it is. name: kept, not copied. */
smg_node smg_compile_copy_node(const smg_graph *g, smg_node_id of, const char *name);
/* compile_views.c: copies what no kernel can read through the views behind it. *out_copied: how many. */
smg_status smg_compile_copy_views(smg_graph *g, int *out_copied);
/* compile_orders.c: which products of the graph read their weight along what they contract, at its nominal sizes; for
 * smg_rewrite_store_weights. */
smg_status smg_compile_choose_orders(smg_compilation *c, smg_store_options *io_options);
/* compile_variants.c: the measure, the ranges and their nominal sizes, from those of variant 0. */
smg_status smg_compile_choose_variants(smg_compilation *c);
/* compile_terms.c: the graph with its plan, or the one with products by terms and its plan, whichever is cheaper. */
smg_status smg_compile_choose_terms(smg_compilation *c);
/* The latter, of a kept plan that was made of it. */
smg_status smg_compile_take_terms(smg_compilation *c);
/* A product's operand that is the same in every run; -1: none, or not exactly one. fixed: as smg_graph_mark_fixed. */
int smg_compile_weight_of(const smg_node *product, const bool *fixed);
/* compile_bundle.c: the bundle with variant 0; later, the run list of another planned variant. */
smg_status smg_compile_bundle(smg_compilation *c);
smg_status smg_compile_add_variant(smg_compilation *c, int variant);
/* A bundle that was read goes on where the one that was written stopped; needs the graph. false: the graph is not the
 * one that it was made of. */
smg_status smg_compile_resume(smg_compilation *c, bool *out_fits);
/* Per buffer of the bundle the node that it stands for, -1: a temporary. */
smg_status smg_compile_origins(const smg_compilation *c, smg_arena *arena, int **out_origins);
/* Further run lists read the stacks of the bundle, and no others; without a bundle any. */
smg_status smg_compile_stacks(const smg_compilation *c, smg_plan_options *io_options);
/* Host elements of `type` that lie on the device as `stored`; false: there is no such storage. */
bool smg_compile_storage(smg_type type, smg_type stored, smg_storage *out_storage);
/* compile_cache.c: the kept bundle, when there is one that fits; keeping it, in place of one that is kept already. Both
 * behind smg_compile_cache_open, which finds out whether anything is. None of it is ever a failure. */
void smg_compile_cache_open(smg_compilation *c);
bool smg_compile_cache_read(smg_compilation *c);
void smg_compile_cache_write(smg_compilation *c);

/* ---- arrays (compile_tensor.c) -------------------------------------------------------------------- */

/* smg_tensor_fill_port for the input that is this node. */
smg_status smg_tensor_fill(smg_context *ctx, const smg_graph *g, smg_node_id node, const int64_t *symbols, smg_fill how,
                           uint64_t seed, smg_arena *arena, smg_tensor *out_tensor);
/* Shape and type of the node at these sizes, memory for the elements. */
smg_status smg_tensor_make(smg_context *ctx, const smg_graph *g, smg_node_id node, const int64_t *symbols,
                           smg_arena *arena, smg_tensor *out_tensor);
smg_status smg_tensor_to_array(const smg_tensor *tensor, smg_arena *arena, smg_array *out_array);
/* Reads the symbols' values off the dims of inputs; INVALID names what disagrees. A symbol that no input
 * has gets its default (one when NULL). */
smg_status smg_tensor_sizes(smg_context *ctx, const smg_graph *g, const smg_tensor *inputs, int count,
                            const int64_t *defaults, int64_t *out_values);

/* ---- reference, check, interpreter ----------------------------------------------------------------- */

/* The outputs in double by graph/'s evaluation; above SMG_CHECK_FLOPS rows of the batch are sampled,
 * where the graph treats them one by one. */
typedef struct smg_rows {
    int symbol;           /* of the batch; -1: everything is evaluated */
    int64_t count, total; /* rows that are evaluated, of how many; 1 of 1: everything */
    int64_t *row_of;      /* which they are; NULL: all in order */
} smg_rows;
/* The inputs of such an evaluation, by the graph's input nodes; the batch's symbol becomes the number of its rows. */
smg_status smg_compile_take_rows(smg_context *ctx, const smg_graph *g, int64_t *io_symbols, const smg_tensor *inputs,
                                 int input_count, smg_arena *arena, smg_array **out_inputs, smg_rows *out_rows);
/* What the plans of a compilation round to. */
smg_roundings smg_compile_roundings(const smg_compilation *c);
/* outputs[i] belongs to the i-th output row of g; the roundings are those of the plan which made them. */
smg_status smg_compile_check(smg_context *ctx, const smg_graph *g, smg_roundings roundings, const int64_t *symbols,
                             const smg_tensor *inputs, int input_count, const smg_tensor *outputs, smg_arena *arena,
                             smg_check *out_check);
/* The same of as many rows of the batch as take `most` operations; of none where one takes more: `sampled` is 0 then,
 * and nothing passes. */
smg_status smg_compile_check_some(smg_context *ctx, const smg_graph *g, smg_roundings roundings, const int64_t *symbols,
                                  const smg_tensor *inputs, int input_count, const smg_tensor *outputs, double most,
                                  smg_arena *arena, smg_check *out_check);
/* What an element of an output may be off. */
typedef struct smg_allowance {
    double relative; /* of the element and the output's root mean square: smg_check_row.tolerance */
    double least;    /* and so much beside: the last digit near 0 of what values are kept in */
} smg_allowance;
/* One output of two runs. */
void smg_compile_compare(const smg_tensor *want, const smg_tensor *got, smg_allowance allowed, smg_check_row *out_row);
/* What the check allows at these sizes: the roundings of f32 that the longest chain of operations can gather, and
 * smg_precision_bound. */
smg_status smg_compile_allow(const smg_graph *g, smg_roundings roundings, const int64_t *symbols, smg_arena *scratch,
                             smg_allowance *out_allowance);
/* Per node of c->graph how large it becomes with these inputs, by the reference (compile_peaks.c). */
smg_status smg_compile_peaks(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs, int input_count,
                             smg_arena *arena, smg_peak **out_peaks);
/* Where a run became infinite that is not in f32: the first value, in the order of the graph, that its type in memory
 * does not hold. */
typedef struct smg_overflow {
    const char *value; /* NULL: there is none */
    smg_type type;
    double size;
    int count; /* of such values */
} smg_overflow;
/* Takes as long as a check. Nothing is found for a plan that was read and that the graph is not there for. */
smg_status smg_compile_find_overflow(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs,
                                     int input_count, smg_arena *arena, smg_overflow *out_overflow);
/* The axis 0 that every step of the graph carries along untouched (a batch): its symbol, or -1. */
int smg_compile_batch_symbol(const smg_graph *g, smg_arena *scratch);
/* Runs the kernels of the variant for these sizes on the CPU through the kernel interpreter, no device needed. */
smg_status smg_compile_interpret(smg_compilation *c, const int64_t *symbols, const smg_tensor *inputs, int input_count,
                                 smg_arena *arena, smg_tensor *out_outputs);

/* ---- explain (compile_explain.c) --------------------------------------------------------------------- */

/* phase: "graph", "rewrite", "precision", "space", "search" (of a compilation that was asked for it), "plan", "lower",
 * "kernel", "glsl", "target", or NULL for the summary and the plan. kernel: a step's name or number; NULL: all. after:
 * the pass of lowering whose program is shown (phase "lower", of a compilation that kept them); NULL: each that changed
 * something. NOT_FOUND lists what there is. */
typedef struct smg_explain_options {
    const char *phase;
    const char *kernel;
    const char *after;
    bool prices; /* estimates beside the steps; without them the text depends on structure only */
} smg_explain_options;
smg_status smg_compile_explain(smg_compilation *c, const smg_explain_options *options, smg_text *text);
smg_status smg_compile_explain_json(smg_compilation *c, smg_text *text);
/* compile_search.c: what was generated and tried for a step; before the first, what was looked at to cut the graph. */
smg_status smg_compile_print_search(smg_compilation *c, const smg_pstep *step, const smg_explain_options *options,
                                    smg_text *text);
/* Prices of these sums whole and in parts, and what was measured of them. */
void smg_compile_print_split(const smg_compilation *c, const smg_split *split, smg_text *text);
/* What was measured of them in parts of so many elements, 0: whole; NULL: nothing. */
const smg_cut *smg_compile_find_parts(const smg_compilation *c, const smg_split *split, int64_t elements);
bool smg_compile_knows_split(const smg_compilation *c, const smg_split *split); /* something was */
/* " b=8 s=512" */
void smg_compile_print_sizes(const smg_compilation *c, const int64_t *values, smg_text *text);
/* ["..", ".."], a string a line. */
void smg_compile_lines_json(const char *lines, smg_text *text);

/* compile_report.c: what the plan of a compilation that was asked for a report saves, and what other groupings are. */
smg_status smg_compile_report(const smg_compilation *c, smg_text *text);
smg_status smg_compile_report_json(const smg_compilation *c, smg_text *text);
/* compile_dot.c: the Space-Mapping Graphs of the run list for Graphviz: a cluster a kernel. kernel: as in
 * smg_explain_options. */
smg_status smg_compile_dot(smg_compilation *c, const char *kernel, smg_text *text);
/* Of the steps from the first of the prepare list (-its count) on: is this one asked for? */
bool smg_compile_is_step(const char *kernel, const smg_pstep *step, int index);
smg_status smg_compile_no_step(smg_compilation *c, const char *kernel);

/* ---- model on a device (compile_model.c; UNSUPPORTED in a build without Vulkan) ------------------------ */

/* What plans depend on: features are tried, matrices where the precision may use them, and rates measured. Nothing
 * where the description says so. */
smg_status smg_compile_know_device(smg_vk_device *device, const smg_model_desc *desc);
/* source and device are borrowed; device NULL opens desc->device, and the model owns it. */
smg_status smg_model_open_source(smg_context *ctx, smg_source *source, smg_vk_device *device,
                                 const smg_model_desc *desc, smg_model **out_model);
/* What the driver's compiler made of kernels that were planned (compile_judge.c). */
typedef struct smg_verdicts {
    smg_arena *arena;
    SMG_ARRAY(smg_choice) rejected;
    SMG_ARRAY(smg_taken) taken;
    /* Of the plan at hand: */
    bool spoilt;       /* some of its kernels are rejected */
    double dearer;     /* seconds more than its prices, by the registers that are taken */
    int for_registers; /* plans that were made for these alone */
} smg_verdicts;
smg_status smg_verdicts_begin(smg_verdicts *verdicts, smg_arena *arena, const smg_driver_facts *known);
/* Borrowed from the verdicts. */
smg_driver_facts smg_verdicts_facts(const smg_verdicts *verdicts);
/* Of a step of the compilation's run list, from what came of its pipeline. Where memory is out nothing is known. */
void smg_compile_judge(const smg_compilation *c, int step, const smg_vk_built *built, smg_verdicts *io_verdicts);
/* Of all steps that were judged: are they worth another plan? Those that are judged next are of that one. */
bool smg_verdicts_want_plan(const smg_compilation *c, smg_verdicts *io_verdicts);

/* Plans of one model, one after the other. */
typedef struct smg_judge {
    smg_verdicts verdicts;
    const smg_compilation *c; /* whose pipelines are built */
    int made;                 /* plans */
    bool again;               /* another one is to be made */
} smg_judge;
/* What the next plan is made with. */
void smg_judge_begin(smg_judge *judge, smg_compile_options *io_options);
bool smg_judge_leaves(void *judge, const smg_vk_built *built, int modules); /* for smg_program_options.leaves */
/* smg_compile_open until the device's compiler has nothing against the plan, or as often as a model is planned; its
 * pipelines are built for that and dropped. *io_options: as the last plan was made, in the arena. Also where it fails
 * *out_compilation may be one, of the caller. */
smg_status smg_compile_for_driver(smg_context *ctx, const smg_graph *g, const smg_target *target, smg_vk_device *device,
                                  smg_arena *arena, smg_compile_options *io_options, smg_compilation **out_compilation);

/* What tuning asks of an open beside the description; borrowed until it returns. */
typedef struct smg_open_parts {
    const smg_tuning *measured;
    smg_passes passes;
    smg_driver_facts driver;  /* to begin with */
    const smg_target *target; /* to plan for; NULL: the device's */
} smg_open_parts;
smg_status smg_model_open_parts(smg_context *ctx, smg_source *source, smg_vk_device *device, const smg_model_desc *desc,
                                const smg_open_parts *parts, smg_model **out_model);

/* ---- tuning (compile_tune.c; UNSUPPORTED in a build without Vulkan) -------------------------------------- */

typedef struct smg_tune_options {
    int rivals;               /* schedules of a kernel beside the one that is taken */
    double seconds;           /* that each measurement takes, about */
    double limit;             /* seconds that all of it takes, about; 0: any */
    const smg_tensor *inputs; /* of one run */
    int input_count;
    const int64_t *symbols;                                    /* its sizes */
    const char *path;                                          /* where the result goes; NULL: the cache folder */
    bool fit_rates;                                            /* as in smg_tune_desc */
    bool (*progress)(void *user, const smg_tune_progress *at); /* as in smg_tune_desc */
    void *progress_user;
    /* For tests: told of each device when it is open. NULL: nobody is. */
    void (*opened)(void *user, smg_vk_device *device);
    void *user;
} smg_tune_options;
/* Measures the schedules of each kernel of the plan on the device, and writes what was fastest. What out_tuned points
 * to lives in the arena. */
smg_status smg_compile_tune(smg_context *ctx, smg_source *source, const smg_model_desc *desc,
                            const smg_tune_options *options, smg_arena *arena, smg_tuned *out_tuned);
/* compile_tune_rates.c. Fits the rates of the device to the schedules of the plan that were measured; nothing is kept.
 * The options are those of the passes. Where that is not refused, *out_target is the device's with these rates. */
smg_status smg_compile_fit_rates(smg_context *ctx, const smg_graph *g, smg_vk_device *device,
                                 const smg_compile_options *options, const smg_timing *timings, int count,
                                 smg_arena *arena, smg_target *out_target, smg_fitted_rates *out_rates);
/* compile_tune_model.c: smg_model_tune of a source that is open. */
smg_status smg_model_tune_source(smg_context *ctx, smg_source *source, const smg_model_desc *model,
                                 const smg_tune_desc *tune, smg_tuned **out_tuned);

/* ---- embed (compile_embed.c) ---------------------------------------------------------------------------- */

/* The model must have come from a directory with tokenizer files and give one row per text. */
smg_status smg_embedder_create(smg_model *model, const smg_source *source, smg_embedder **out_embedder);
void smg_embedder_destroy(smg_embedder *embedder); /* NULL is fine */
/* Embeds texts in batches by length; out_rows has count * width floats, in the order of the texts. */
smg_status smg_embedder_run(smg_embedder *embedder, const char *const *texts, const size_t *lengths, int count,
                            float *out_rows);

#endif
