/* Barriers: as few as the verifier accepts, each with the smallest scope. Each product and each exchange brings its own
 * barriers, of the workgroup; between two of them some separate no write of a shared tile from another use of it,
 * because one further on, or of the step before, does already. Those go, from the last one on. Of those that are left
 * some separate uses of one subgroup only: there a barrier of the subgroup does, where the device is asked for whole
 * subgroups of the size that the program relies on. */
#include "lower/lower_internal.h"

static bool has_hazard(smg_hazards *hazards) {
    smg_hazard hazard;
    return smg_hazards_find(hazards, &hazard);
}

/* Every barrier of a larger scope gets this one, from the last on, where that makes no hazard. */
static void narrow(smg_kernel *k, smg_hazards *hazards, smg_scope scope) {
    for (int i = k->code.count - 1; i >= 0; i--) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_BARRIER || in->scope >= scope) continue;
        smg_scope before = in->scope;
        in->scope = scope;
        if (has_hazard(hazards)) in->scope = before;
    }
}

static void compact(smg_kernel *k) {
    int kept = 0;
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_BARRIER || in->scope != SMG_SCOPE_NONE) k->code.items[kept++] = *in;
    }
    k->code.count = kept;
}

static bool has_barrier(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_BARRIER) return true;
    return false;
}

smg_status lower_barriers(lower_sized *l) {
    smg_kernel *k = l->k;
    smg_hazards *hazards;
    if (!has_barrier(k)) return SMG_OK;
    SMG_TRY(smg_hazards_make(k, l->arena, &hazards));
    narrow(k, hazards, SMG_SCOPE_NONE);
    if (l->target->subgroup_selectable && k->subgroup > 1) narrow(k, hazards, SMG_SCOPE_SUBGROUP);
    compact(k);
    return SMG_OK;
}
