/* program_pipelines.c: one pipeline per module and form. A module with an even form (bundle.h) is built in the form
 * that the sizes at hand ask for, with sizes as push constants where there is one tuple of them, from memory where
 * there is a range, as literals where most runs have them (program_literals.c), and as one that begins at any row of
 * the grid where steps are sliced; the other forms wait until sizes ask for them.
 *
 * What a driver refuses to build has something in its place, mostly: literals what is pushed, an even form the one for
 * any sizes, a range its sizes one by one, a run list for some sizes the first one, which is right for all. */
#include "program/program_private.h"

enum { EVEN = 1, FROM_MEMORY = 2, SLICED = 4, LITERAL = 8, FORMS = 16 };

bool smg_program_moves(const smg_program *p, const int64_t *low, const int64_t *high) {
    return memcmp(low, high, (size_t)p->symbol_count * sizeof(*low)) != 0;
}

static int slot_of(const smg_program *p, const smg_bstep *step, const int64_t *low, const int64_t *high, bool sliced) {
    int without = p->without[step->module];
    bool even = low != NULL && !(without & EVEN) && smg_bundle_even(p->bundle, step, low, high);
    bool from_memory = low != NULL && smg_bundle_push_bytes(step) > 0 && smg_program_moves(p, low, high);
    bool literal = !from_memory && !(without & LITERAL) && smg_program_has_literals(p, step, low, high);
    return step->module * FORMS + (even ? EVEN : 0) + (from_memory ? FROM_MEMORY : 0) + (sliced ? SLICED : 0) +
           (literal ? LITERAL : 0);
}

smg_vk_pipeline *smg_program_pipeline(const smg_program *p, const smg_bstep *step, const int64_t *low,
                                      const int64_t *high, bool sliced) {
    return p->pipelines[slot_of(p, step, low, high, sliced)];
}

static int slot_in(const smg_program *p, const smg_program_steps *list, int i) {
    return slot_of(p, &list->steps[i], list->low, list->high, list->sliced != NULL && list->sliced[i]);
}

static smg_vk_pipeline_desc describe(const smg_program *p, const smg_bstep *step, int slot) {
    static const uint32_t even = 1;
    const smg_bmodule *module = &p->bundle->modules.items[step->module];
    return (smg_vk_pipeline_desc){
        .name = module->name,
        .words = module->words,
        .word_count = module->word_count,
        .local_size = {module->local_size, 1, 1},
        .binding_count = step->binding_count + (step->diagnostics ? 1 : 0),
        .push_bytes = smg_bundle_push_bytes(step),
        .subgroup_size = module->subgroup > 1 ? module->subgroup : 0,
        .full_subgroups = module->subgroup > 1,
        .shared_bytes = module->shared_bytes,
        .constants = &even,
        .constant_count = (slot % FORMS & EVEN) != 0,
        .from_memory = (slot % FORMS & FROM_MEMORY) != 0,
        .sliced = (slot % FORMS & SLICED) != 0,
        .literals = p->literals[step->module].values,
        .literal_count = (slot % FORMS & LITERAL) != 0 ? p->literals[step->module].count : 0,
    };
}

typedef struct missing {
    smg_vk_pipeline_desc *descs;
    smg_vk_pipeline **pipelines;
    int *slots;
    int count;
} missing;

static bool is_listed(const missing *m, int slot) {
    for (int i = 0; i < m->count; i++)
        if (m->slots[i] == slot) return true;
    return false;
}

/* The largest first, so that no core is left with one at the end. */
static void insert(missing *m, smg_vk_pipeline_desc desc, int slot) {
    int at = m->count++;
    for (; at > 0 && m->descs[at - 1].word_count < desc.word_count; at--) {
        m->descs[at] = m->descs[at - 1];
        m->slots[at] = m->slots[at - 1];
    }
    m->descs[at] = desc;
    m->slots[at] = slot;
}

static void list_missing(const smg_program *p, const smg_program_steps *lists, int count, missing *m) {
    for (int l = 0; l < count; l++)
        for (int i = 0; i < lists[l].count; i++) {
            int slot = slot_in(p, &lists[l], i);
            if (p->pipelines[slot] != NULL || is_listed(m, slot)) continue;
            insert(m, describe(p, &lists[l].steps[i], slot), slot);
        }
}

smg_status smg_program_make_pipelines(smg_program *p, const smg_program_steps *lists, int count) {
    smg_arena *scratch = NULL;
    missing m = {0};
    size_t most = 0;
    p->refused = -1;
    for (int l = 0; l < count; l++)
        for (int i = 0; i < lists[l].count; i++) most += p->pipelines[slot_in(p, &lists[l], i)] == NULL;
    if (most == 0) return SMG_OK;
    SMG_TRY(smg_arena_create(p->ctx, &scratch));
    m.descs = SMG_ARENA_ARRAY(scratch, smg_vk_pipeline_desc, most);
    m.pipelines = SMG_ARENA_ARRAY(scratch, smg_vk_pipeline *, most);
    m.slots = SMG_ARENA_ARRAY(scratch, int, most);
    smg_status status = m.descs && m.pipelines && m.slots ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK) {
        list_missing(p, lists, count, &m);
        status = smg_vk_pipelines_create(p->device, m.descs, m.count, m.pipelines);
    }
    for (int i = 0; status == SMG_OK && i < m.count; i++) p->pipelines[m.slots[i]] = m.pipelines[i];
    for (int i = m.count - 1; status == SMG_DEVICE && i >= 0; i--)
        if (smg_vk_refuses(p->device, &m.descs[i])) p->refused = m.slots[i];
    smg_arena_destroy(scratch);
    return status;
}

static bool has_module(const smg_bvariant *list, int module) {
    for (int i = 0; i < list->run.count; i++)
        if (list->run.items[i].module == module) return true;
    return false;
}

/* Lists with the module, where the first has it not. */
static bool drop_lists(smg_program *p, int module) {
    bool dropped = false;
    if (has_module(&p->bundle->variants.items[0], module)) return false;
    for (int v = 1; v < p->known_lists; v++) {
        if (p->dropped[v] || !has_module(&p->bundle->variants.items[v], module)) continue;
        p->dropped[v] = dropped = true;
    }
    return dropped;
}

int smg_program_refused(const smg_program *p) {
    return p->refused < 0 ? -1 : p->refused / FORMS;
}

bool smg_program_do_without(smg_program *p) {
    int module = smg_program_refused(p), form = p->refused % FORMS;
    const char *instead;
    if (module < 0) return false;
    if (form & LITERAL) {
        p->without[module] |= LITERAL;
        instead = "its form with sizes pushed serves";
    } else if (form & EVEN) {
        p->without[module] |= EVEN;
        instead = "its form for any sizes serves";
    } else if (form & FROM_MEMORY) {
        p->single = true;
        instead = "ranges are recorded for each of their sizes";
    } else if (drop_lists(p, module)) {
        instead = "the kernels of other sizes serve";
    } else {
        return false;
    }
    smg_log(p->ctx, SMG_LOG_WARNING, "kernel '%s' is not built by the driver: %s",
            p->bundle->modules.items[module].name, instead);
    p->refused = -1;
    return true;
}

int smg_program_pipeline_slots(int modules) {
    return modules * FORMS;
}

smg_vk_built smg_program_built(const smg_program *p, int module) {
    smg_vk_built most = {-1, -1, -1, false};
    for (int i = module * FORMS; module < p->known_modules && i < (module + 1) * FORMS; i++) {
        if (p->pipelines[i] == NULL) continue;
        smg_vk_built built = smg_vk_pipeline_built(p->pipelines[i]);
        if (built.spills > most.spills) most.spills = built.spills;
        if (built.registers > most.registers) most.registers = built.registers;
        if (built.shared > most.shared) most.shared = built.shared;
        most.of_lane = most.of_lane || built.of_lane;
    }
    return most;
}
