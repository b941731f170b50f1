/* program_pipelines.c: one pipeline per module and form. A module with an even form (bundle.h) is built in the form
 * that the sizes at hand ask for; the other one waits until sizes ask for it. */
#include "program/program_private.h"

enum { FORMS = 2 };

static int slot_of(const smg_program *p, const smg_bstep *step, const int64_t *values) {
    bool even = values != NULL && smg_bundle_even(p->bundle, step, values);
    return step->module * FORMS + (even ? 1 : 0);
}

smg_vk_pipeline *smg_program_pipeline(const smg_program *p, const smg_bstep *step, const int64_t *values) {
    return p->pipelines[slot_of(p, step, values)];
}

static smg_status make_pipeline(smg_program *p, const smg_bstep *step, int slot) {
    static const uint32_t even = 1;
    const smg_bmodule *module = &p->bundle->modules.items[step->module];
    smg_vk_pipeline_desc desc = {
        .name = module->name,
        .words = module->words,
        .word_count = module->word_count,
        .local_size = {module->local_size, 1, 1},
        .binding_count = step->binding_count + (step->diagnostics ? 1 : 0),
        .push_bytes = smg_bundle_push_bytes(step),
        .subgroup_size = module->subgroup > 1 ? module->subgroup : 0,
        .full_subgroups = module->subgroup > 1,
        .constants = &even,
        .constant_count = slot % FORMS,
    };
    return smg_vk_pipeline_create(p->device, &desc, &p->pipelines[slot]);
}

smg_status smg_program_make_pipelines(smg_program *p, const smg_bstep *steps, int count, const int64_t *values) {
    bool made = false;
    for (int i = 0; i < count; i++) {
        int slot = slot_of(p, &steps[i], values);
        if (p->pipelines[slot] != NULL) continue;
        smg_progress(p->ctx, "pipelines", (size_t)i, (size_t)count, p->bundle->modules.items[steps[i].module].name);
        SMG_TRY(make_pipeline(p, &steps[i], slot));
        made = true;
    }
    if (made) smg_progress(p->ctx, "pipelines", (size_t)count, (size_t)count, "");
    return SMG_OK;
}

int smg_program_pipeline_slots(int modules) {
    return modules * FORMS;
}
