/* smg/bundle.h: a look into the file of a bundle, which needs no device.
 *
 *     smg_bundle_file *file;
 *     smg_bundle_file_open(ctx, "minilm.smgb", &file);
 *     for (int i = 0; i < smg_bundle_file_facts(file)->class_count; i++) {
 *         smg_bundle_class c;
 *         if (smg_bundle_file_class(file, i, &c) == SMG_OK) printf("%s: %lld bytes\n", c.name, (long long)c.bytes);
 *     }
 *     smg_bundle_file_close(file);
 *
 * smg_model_open_bundle (smg/rt.h) runs it, smg_source_write_bundle (smg/compile.h) writes one. Ownership: the file is
 * mapped until it is closed, before its context goes. Threads, errors: as smg/rt.h. Not in libsmg-rt.
 */
#ifndef SMG_BUNDLE_PUBLIC_H
#define SMG_BUNDLE_PUBLIC_H

#include "smg/arrays.h"
#include "smg/context.h"
#include "smg/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct smg_bundle_file smg_bundle_file;

/* Is there a file at this path whose first bytes are a bundle's? */
SMG_API bool smg_bundle_file_is_at(smg_context *ctx, const char *path);
/* NOT_FOUND, IO; FORMAT: no bundle, a damaged one, one of another version or byte order. */
SMG_API smg_status smg_bundle_file_open(smg_context *ctx, const char *path, smg_bundle_file **out_file);
SMG_API void smg_bundle_file_close(smg_bundle_file *file); /* NULL is fine */

typedef struct smg_bundle_facts {
    const char *model, *precision;
    int64_t bytes, weights_bytes; /* of the file, and of the weights in it */
    int class_count;
    const smg_signature *signature;
} smg_bundle_facts;
/* Lives as long as the file is open. */
SMG_API const smg_bundle_facts *smg_bundle_file_facts(const smg_bundle_file *file);

typedef struct smg_bundle_class {
    const char *name, *match; /* match: part of the names of devices that it was made for; "": of none */
    const char *type;         /* of such devices: "discrete", .. */
    int64_t bytes;            /* without weights */
    int64_t weights_bytes;    /* of those that it uses */
    int prepare_kernels;      /* that run when it is opened; 0: its weights are ready as they are */
    const char *needs;        /* of a device: lines of a target file (smg explain MODEL --phase target) */
} smg_bundle_class;
/* Reads and verifies it; what is told lives as long as the file is open. INVALID: no such index; FORMAT: damaged. */
SMG_API smg_status smg_bundle_file_class(smg_bundle_file *file, int index, smg_bundle_class *out_class);
/* Reads all that opening it left out, classes and weights: are they what was written? FORMAT names the first that is
 * not. */
SMG_API smg_status smg_bundle_file_check(smg_bundle_file *file);
/* What is in it, as JSON. */
SMG_API smg_status smg_bundle_file_write_json(smg_bundle_file *file, smg_sink sink);
/* smg_model_open_bundle of a file that is open already, and is closed behind the model. */
SMG_API smg_status smg_bundle_file_open_model(smg_bundle_file *file, const smg_bundle_desc *desc,
                                              smg_model **out_model);

#ifdef __cplusplus
}
#endif
#endif
