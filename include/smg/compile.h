/* smg/compile.h: what smg_model_open does, by parts: look at a model, compile it for a device that need not be there,
 * say what became of it, write a bundle, check results against the reference.
 *
 *     smg_source *source;
 *     smg_source_load(ctx, "all-MiniLM-L6-v2", NULL, &source);
 *     smg_compile_desc desc = {.target = "h200"};
 *     smg_compilation *c;
 *     smg_source_compile(source, &desc, &c);
 *     smg_compilation_explain(c, NULL, to_stdout);
 *     smg_compilation_destroy(c);
 *     smg_source_unload(source);
 *
 * Ownership: what is made from a source or a model is destroyed before it, all of it before the context. Threads,
 * errors: as smg/rt.h. The library without a compiler has nothing of this.
 */
#ifndef SMG_COMPILE_PUBLIC_H
#define SMG_COMPILE_PUBLIC_H

#include <stdbool.h>
#include <stdint.h>

#include "smg/arrays.h"
#include "smg/bundle.h"
#include "smg/graph.h"
#include "smg/model.h"
#include "smg/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model before it is compiled -------------------------------------------------------------------- */

typedef struct smg_source smg_source;

/* All fields may be zero. */
typedef struct smg_source_desc {
    bool
        embedding; /* of a sentence encoder, nothing but the pooled embedding; UNSUPPORTED: no pooling that smg knows */
    bool partial;  /* an ONNX file with operators that smg does not know is no failure: facts list them */
} smg_source_desc;

/* A Hugging Face directory, an ONNX file or a graph text file: everything but the weights is read. desc may be NULL.
 * Fails as smg_model_open. */
SMG_API smg_status smg_source_load(smg_context *ctx, const char *path, const smg_source_desc *desc,
                                   smg_source **out_source);
/* The graph is borrowed: it and its constants outlive the source. */
SMG_API smg_status smg_source_of_graph(smg_context *ctx, smg_graph *graph, smg_source **out_source);
SMG_API void smg_source_unload(smg_source *source); /* NULL is fine */

/* An operator that smg does not know, or not so. */
typedef struct smg_unsupported {
    const char *node; /* its name, or that of its first output */
    const char *op, *domain;
    int64_t opset;
    const char *reason; /* one sentence */
} smg_unsupported;

/* An input or output as an ONNX file declares it. */
typedef struct smg_declared {
    const char *name, *type; /* type: "float32[batch, 3]" */
    bool output;
} smg_declared;

typedef struct smg_source_facts {
    const char *name;
    int operations;     /* that compute something */
    int64_t parameters; /* elements of all weights */
    /* NULL: a partial source, which nothing can be made from, and only then there are these: */
    const smg_signature *signature;
    const smg_declared *declared;
    const smg_unsupported *unsupported;
    int declared_count, unsupported_count;
} smg_source_facts;
/* Lives as long as the source. */
SMG_API const smg_source_facts *smg_source_get_facts(const smg_source *source);

/* smg_model_open, smg_model_tune of what is loaded already; several models may be opened. */
SMG_API smg_status smg_source_open_model(smg_source *source, const smg_model_desc *desc, smg_model **out_model);
SMG_API smg_status smg_source_tune(smg_source *source, const smg_model_desc *desc, const smg_tune_desc *tune,
                                   smg_tuned **out_tuned);
/* Does the description make sense by itself? INVALID: a name or number that does not. desc may be NULL. */
SMG_API smg_status smg_model_desc_check(smg_context *ctx, const smg_model_desc *desc);

/* ---- bundles ------------------------------------------------------------------------------------------ */

/* All fields may be zero. */
typedef struct smg_bundle_writing {
    /* Its device, or `on`, is the target where no others are named: its driver builds the kernels, and what it spills
     * is planned otherwise, as when a model is opened. NULL: all zero. */
    const smg_model_desc *model;
    /* Each a built-in name ("h200"; a name that there is not is told all of them) or a target file
     * (smg_device_write_target). One class of the bundle for each, in this order. */
    const char *const *targets;
    int target_count;
    /* Weights of the first target are stored as its kernels want them, made on the device of the description. */
    bool prepared;
} smg_bundle_writing;
/* Compiles for each target and writes the file, whole or not at all. desc may be NULL. What is wrong with one target
 * names it. */
SMG_API smg_status smg_source_write_bundle(smg_source *source, const smg_bundle_writing *desc, const char *path);

/* From now on smg_bundle_file_check and smg_bundle_file_class look at the kernels of a class by SPIRV-Tools, and
 * smg_bundle_file_open_model before a driver gets them: some drivers crash on words that are wrong. Their FORMAT names
 * the kernel. INVALID: `file` is NULL. */
SMG_API smg_status smg_bundle_file_validate(smg_bundle_file *file);

/* ---- compilations ------------------------------------------------------------------------------------- */

typedef struct smg_compilation smg_compilation;

/* All fields may be zero. */
typedef struct smg_compile_desc {
    const smg_model_desc *model; /* NULL: all zero */
    const char *target;          /* as in smg_bundle_writing; NULL: the device that `model` names, which is opened */
    bool passes;                 /* lowering keeps the program after each pass, for the phase "lower" */
    bool search;                 /* what was generated and tried is kept, for the phase "search" */
    bool report;                 /* what other groupings would be is found out, for SMG_EXPLAIN_REPORT */
} smg_compile_desc;

/* Plans all kernels; shaders are not compiled, and no device is needed with a target. desc may be NULL. Fails as
 * smg_model_open, and a sample that does not suit its input is INVALID. */
SMG_API smg_status smg_source_compile(smg_source *source, const smg_compile_desc *desc,
                                      smg_compilation **out_compilation);
SMG_API void smg_compilation_destroy(smg_compilation *compilation); /* NULL is fine */
/* What a model was made by: the model's, not to be destroyed, until a hint changes it. NULL: it came from a bundle, or
 * was shared. */
SMG_API smg_compilation *smg_model_compilation(smg_model *model);

typedef struct smg_compilation_facts {
    const char *graph, *target, *driver;  /* driver: "" where it was compiled without a device */
    int operations, operations_rewritten; /* of the graph as it came, and as it runs */
    int kernels;                          /* dispatches of a run */
    int modules, modules_cached;          /* of shader code, and of them those that were kept; modules -1: none yet */
    int rejected;                         /* schedules that the driver makes nothing good of, left out */
    bool from_cache;                      /* plan and shader code were kept from an earlier open */
    double bytes, flops, estimate; /* of a run as modelled, at the sizes that prices are for; estimate in seconds */
    double plan_seconds, glsl_seconds, spirv_seconds,
        cache_seconds; /* that it took; cache: looking for what was kept */
} smg_compilation_facts;
/* Text lives as long as the compilation and what it was made from. INVALID: a NULL. */
SMG_API smg_status smg_compilation_get_facts(const smg_compilation *compilation, smg_compilation_facts *out_facts);

typedef enum smg_explain_form {
    SMG_EXPLAIN_TEXT = 0,
    SMG_EXPLAIN_JSON,        /* the plan with its prices */
    SMG_EXPLAIN_REPORT,      /* what each kernel saves, and what others would be; needs smg_compile_desc.report */
    SMG_EXPLAIN_REPORT_JSON, /* the same for programs */
    SMG_EXPLAIN_DOT          /* Space-Mapping Graphs of the kernels for Graphviz */
} smg_explain_form;

/* All fields may be zero: the summary and the plan as text. */
typedef struct smg_explain_desc {
    smg_explain_form form;
    const char *phase; /* TEXT: graph rewrite precision target space search plan lower kernel glsl; NULL: the summary */
    const char *kernel; /* TEXT, DOT: a step's name or number; NULL: all */
    const char *after;  /* TEXT, phase lower: one pass; NULL: each that changed something */
    bool prices;        /* TEXT: estimates beside the steps */
} smg_explain_desc;
/* desc may be NULL. NOT_FOUND: no such phase, kernel or pass; the sentence lists those that there are. INVALID: no such
 * form, or what it needs was not kept. */
SMG_API smg_status smg_compilation_explain(smg_compilation *compilation, const smg_explain_desc *desc, smg_sink sink);

/* ---- results without a device, and results that are checked -------------------------------------------- */

/* Runs the kernels on the host, in the interpreter (slow). Inputs and sizes are those of the arrays, made for the
 * source that was compiled; their outputs are filled in, with memory of the arrays. */
SMG_API smg_status smg_compilation_interpret(smg_compilation *compilation, smg_arrays *arrays);

/* Above so many floating-point operations rows of the batch are sampled. */
#define SMG_CHECK_FLOPS 20e9

typedef struct smg_check_row {
    const char *output;
    int64_t elements;
    double max_abs, max_rel; /* relative to |reference| + the output's root mean square, but for a last digit near 0 */
    double tolerance;        /* of max_rel, by the roundings that the plan may make */
    int64_t worst;           /* the element where max_rel is */
    double worst_got, worst_want;
    bool pass;
} smg_check_row;

typedef struct smg_check {
    smg_check_row *rows; /* one per output */
    int count;
    bool pass;              /* all of them do */
    int64_t sampled, total; /* batch rows compared of all; equal when everything was */
    double seconds;         /* of the reference */
} smg_check;

/* Compares the outputs of the arrays, as a run of this compilation left them, with the graph evaluated in double on the
 * host (which takes its time). INVALID: an input or output has no data, or the arrays are for another model. The result
 * is the caller's (smg_check_destroy), before its context goes. */
SMG_API smg_status smg_compilation_check(smg_compilation *compilation, smg_arrays *arrays, smg_check **out_check);
SMG_API void smg_check_destroy(smg_check *check); /* NULL is fine */

/* The first value, in the order of the graph, that its 16-bit type does not hold. */
typedef struct smg_overflow_info {
    const char *value; /* NULL: there is none */
    const char *type;
    double size, limit; /* its largest element, and where the type ends */
    int count;          /* of such values */
} smg_overflow_info;
/* Takes as long as a check. Nothing is found for a plan that was kept from an earlier open. */
SMG_API smg_status smg_compilation_find_overflow(smg_compilation *compilation, smg_arrays *arrays,
                                                 smg_overflow_info *out_overflow);

#ifdef __cplusplus
}
#endif
#endif
