/* target_needs.c: does a device have what was relied on? Needs are a target in which only the facts that matter are
 * given; all of them are limits that must be reached, but the smallest subgroup and the largest, which must lie within
 * the device's. */
#include <stdio.h>

#include "target/target_private.h"

static void miss(smg_text *missing, const char *format, ...) SMG_PRINTF(2, 3);
static void miss(smg_text *missing, const char *format, ...) {
    char line[256];
    va_list args;
    if (missing == NULL) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (missing->length > 0) smg_text_add(missing, ", ");
    smg_text_add(missing, line);
}

/* How a device's value stands to what is needed of that fact. */
static bool is_enough(const smg_target *device, const char *key, int64_t have, int64_t need) {
    if (strcmp(key, "subgroup_min") == 0) return have <= need;
    if (strcmp(key, "subgroup_size") == 0) return true; /* said by the two others */
    /* Where there is one size only, nobody has to ask for it. */
    if (strcmp(key, "subgroup_selectable") == 0 && device->subgroup_min == device->subgroup_max) return true;
    if (strcmp(key, "max_buffer_range") == 0) return smg_target_largest_buffer(device) >= need;
    return have >= need;
}

static bool meets_facts(const smg_target *device, const smg_target *needs, smg_text *missing) {
    bool all = true;
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        if (row->is_real || smg_fact_from(needs, row) == SMG_FACT_ASSUMED) continue;
        int64_t have = smg_fact_int(device, row), need = smg_fact_int(needs, row);
        if (is_enough(device, row->key, have, need)) continue;
        miss(missing, "%s %lld (%lld there)", row->key, (long long)need, (long long)have);
        all = false;
    }
    return all;
}

static bool has_shape(const smg_target *device, const smg_matrix_shape *shape) {
    for (int i = 0; i < device->matrix_count; i++)
        if (smg_matrix_same_shape(&device->matrix[i], shape)) return true;
    return false;
}

static bool has_fragment(const smg_target *device, const smg_fragment *fragment) {
    for (int i = 0; i < device->fragment_count; i++) {
        const smg_fragment *f = &device->fragments[i];
        if (smg_fragment_same_matrix(f, fragment) && smg_layout_equal(&f->layout, &fragment->layout)) return true;
    }
    return false;
}

bool smg_target_meets(const smg_target *device, const smg_target *needs, smg_text *missing) {
    bool all = meets_facts(device, needs, missing);
    for (int i = 0; i < needs->matrix_count; i++) {
        const smg_matrix_shape *s = &needs->matrix[i];
        if (has_shape(device, s)) continue;
        miss(missing, "matrices %dx%dx%d %s %s %s %s", s->m, s->n, s->k, s->a, s->b, s->c, s->result);
        all = false;
    }
    for (int i = 0; i < needs->fragment_count; i++) {
        const smg_fragment *f = &needs->fragments[i];
        if (has_fragment(device, f)) continue;
        miss(missing, "the layout of fragment %s %dx%d %s", smg_matrix_use_word(f->use), f->rows, f->columns, f->type);
        all = false;
    }
    return all;
}
