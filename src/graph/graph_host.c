/* What the elements of host arrays (constants) are along their axes. */
#include "graph/graph_private.h"

#include <math.h>

typedef struct plane {
    smg_type type;
    const void *data;
    int rank;
    const int64_t *extent, *index; /* index -1: all along the axis */
} plane;

static double element_at(const plane *p, const int64_t *at) {
    int64_t flat = 0;
    for (int d = 0; d < p->rank; d++) flat = flat * p->extent[d] + at[d];
    return smg_host_get(p->type, p->data, flat);
}

/* Steps to the next place along the axes that vary; false after the last. */
static bool next_place(const plane *p, int64_t *at) {
    for (int d = p->rank - 1; d >= 0; d--) {
        if (p->index[d] >= 0) continue;
        if (++at[d] < p->extent[d]) return true;
        at[d] = 0;
    }
    return false;
}

bool smg_host_plane(smg_type type, const void *data, int rank, const int64_t *extent, const int64_t *index,
                    int64_t *out_first, int64_t *out_slope) {
    plane p = {type, data, rank, extent, index};
    int64_t at[SMG_MAX_RANK];
    for (int d = 0; d < rank; d++) at[d] = index[d] < 0 ? 0 : index[d];
    double first = element_at(&p, at);
    if (!(first >= -2147483648.0 && first <= 2147483647.0 && first <= floor(first))) return false;
    *out_first = (int64_t)first;
    for (int d = 0; d < rank; d++) {
        out_slope[d] = 0;
        if (index[d] >= 0 || extent[d] < 2) continue;
        at[d] = 1;
        double step = element_at(&p, at) - first;
        at[d] = 0;
        if (!(fabs(step) <= 2147483647.0 && step <= floor(step))) return false;
        out_slope[d] = (int64_t)step;
    }
    do {
        double wanted = first, found = element_at(&p, at);
        for (int d = 0; d < rank; d++)
            if (index[d] < 0) wanted += (double)(out_slope[d] * at[d]);
        if (wanted < found || wanted > found) return false;
    } while (next_place(&p, at));
    return true;
}
