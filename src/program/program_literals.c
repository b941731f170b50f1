/* program_literals.c: sizes that pipelines have as literals. A kernel whose sizes are pushed waits for them before its
 * first load, and divides by them where it could shift. So the sizes that most runs have, where the caller said which
 * (smg_program_options.literal), are written into the pipelines that serve them; others are pushed, as ever.
 *
 * Steps may share a module and push different symbols. A module has one set of literals, those of its first step: the
 * others have them where the values are the same. */
#include "program/program_private.h"

static void choose(smg_program *p, const smg_bstep *step) {
    smg_literals *chosen = &p->literals[step->module];
    if (step->push_count > (int)SMG_COUNT_OF(chosen->values)) return;
    for (int i = 0; i < step->push_count; i++) chosen->values[i] = (int32_t)p->options.expected[step->push_symbols[i]];
    chosen->count = step->push_count;
}

void smg_program_choose_literals(smg_program *p, int known_modules) {
    if (!p->options.literal || p->options.expected == NULL) return;
    for (int v = 0; v < p->bundle->variants.count; v++) {
        const smg_bvariant *list = &p->bundle->variants.items[v];
        for (int i = 0; i < list->run.count; i++) {
            const smg_bstep *step = &list->run.items[i];
            if (step->module >= known_modules && p->literals[step->module].count == 0) choose(p, step);
        }
    }
}

bool smg_program_has_literals(const smg_program *p, const smg_bstep *step, const int64_t *low, const int64_t *high) {
    const smg_literals *known = &p->literals[step->module];
    if (low == NULL || known->count == 0 || known->count != step->push_count) return false;
    for (int i = 0; i < known->count; i++) {
        int symbol = step->push_symbols[i];
        if (low[symbol] != high[symbol] || low[symbol] != known->values[i]) return false;
    }
    return true;
}
