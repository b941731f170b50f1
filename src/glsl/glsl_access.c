/* glsl_access.c: addresses in buffers, built in steps, each where it stops changing: p at the start of the instruction
 * (offset and bases), q in the loop over rows, what an index from data adds (glsl_expr.c), and the columns' part at the
 * element. */
#include "glsl_private.h"

/* May an index of what the instruction reads or writes be bad? */
static bool may_be_bad(const glsl_writer *w, const glsl_iter *it) {
    bool any = false;
    for (int a = 0; a < w->k->accesses.count; a++)
        any = any || (it->access_used[a] && smg_access_reports(w->k, &w->k->accesses.items[a]));
    return any;
}

void glsl_hoist(glsl_writer *w, glsl_iter *it) {
    if (may_be_bad(w, it)) {
        GLSL_LINE(w, "bool bad = false;");
        GLSL_LINE(w, "int bad_index = 0, bad_limit = 0;");
    }
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++) {
        if (!it->access_used[a]) continue;
        const smg_access *access = &w->k->accesses.items[a];
        const char *sum = glsl_offset_part(w, access);
        for (int n = 0; n < access->axis_count; n++) sum = glsl_plus(w, sum, glsl_base_part(w, access, n));
        it->address[a] = sum;
        if (strchr(sum, ' ') != NULL) {
            GLSL_LINE(w, "int p%d = %s;", a, sum);
            it->address[a] = GLSL_STRING(w, "p%d", a);
        }
        it->start[a] = it->address[a];
    }
}

/* Once for all elements: a report is a branch, in front of which no driver moves a load. Where lanes are the elements
 * of a vector register it is one for each lane, whose compiler takes long over as many. */
void glsl_report(glsl_writer *w, const glsl_iter *it) {
    if (!may_be_bad(w, it)) return;
    GLSL_LINE(w, "if (bad) smg_report(bad_index, bad_limit);");
    w->uses[GLSL_USE_DIAGNOSTICS] = true;
}

void glsl_hoist_direct(glsl_writer *w, glsl_iter *it, int a) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *sum = it->address[a];
    bool any = false;
    for (int n = 0; n < access->axis_count; n++) {
        int axis = access->axis[n];
        if (!glsl_is_outer(it, axis) || strcmp(it->coord[axis], "0") == 0) continue;
        sum = glsl_plus(w, sum, glsl_address_part(w, access, axis, it->coord[axis]));
        any = true;
    }
    if (!any) return;
    GLSL_LINE(w, "int q%d = %s;", a, sum);
    it->address[a] = GLSL_STRING(w, "q%d", a);
}

/* The address without the index from data, as if its buffer were in no blocks where these want all of it. */
const char *glsl_direct_address(glsl_writer *w, const glsl_iter *it, int a) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *sum = it->address[a];
    if (sum == NULL) {
        glsl_fail(w, SMG_INTERNAL, "an access was used that the expression did not announce");
        return "0";
    }
    for (int n = 0; n < access->axis_count; n++) {
        int axis = access->axis[n];
        if (glsl_is_outer(it, axis)) continue; /* in q */
        sum = glsl_plus(w, sum, glsl_address_part(w, access, axis, it->coord[axis]));
    }
    return sum;
}

const char *glsl_address(glsl_writer *w, const glsl_iter *it, int a) {
    return glsl_place(w, &w->k->accesses.items[a], glsl_direct_address(w, it, a));
}

const char *glsl_iota(glsl_writer *w, glsl_iter *it, int access) {
    return GLSL_STRING(w, "(%s)", glsl_direct_address(w, it, access));
}

/* The name of a local that holds the validity, where there is a condition at all. */
const char *glsl_named_condition(glsl_writer *w, const char *valid, int number) {
    if (valid == NULL || strchr(valid, ' ') == NULL) return valid;
    GLSL_LINE(w, "bool ok%d = %s;", number, valid);
    return GLSL_STRING(w, "ok%d", number);
}
