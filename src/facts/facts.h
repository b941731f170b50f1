/* facts: what may be asked of devices, models that run and bundles' files, beside running.
 *
 * Takes:    an open device, a model, the path of a bundle.
 * Gives:    include/smg/measure.h and include/smg/bundle.h, which libsmg-rt has no room for: facts and rates, times by
 *           step, memory, classes and what each needs.
 * Promises: nothing that is asked changes what a model computes.
 * Does not: know graphs or compile anything.
 */
#ifndef SMG_FACTS_H
#define SMG_FACTS_H

#include "base/base.h"
#include "bundle/file.h"
#include "smg/bundle.h"

/* All of the text, if there was memory for it; then it is freed. INVALID: the sink has no function. */
smg_status smg_text_give(smg_text *text, smg_sink sink);
/* From now on classes are told, and run, when this has nothing against them. Returns the file's context. */
smg_context *smg_bundle_file_watch(smg_bundle_file *file, smg_bfile_check check);

#endif
