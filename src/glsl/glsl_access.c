/* glsl_access.c: where elements are: addresses in buffers, places in tiles.
 *
 * An address is built in steps, each where it stops changing: p at the start of the instruction (offset and
 * bases), q in the loop over rows, i with what an index from data adds there, and the columns' part at the
 * element. An invalid element is loaded from address 0, which always exists, and replaced by 0: no branch,
 * so loads stay together. */
#include "glsl_private.h"

const char *glsl_base(glsl_writer *w, int axis) {
    if (!w->k->axes.items[axis].grid && !w->looped[axis]) return "0";
    if (w->moved[axis] != NULL) return w->moved[axis];
    int64_t on = w->ahead[axis] + w->copy[axis] * w->k->axes.items[axis].tile;
    if (on > 0) return GLSL_STRING(w, "(at_%s + %lld)", w->axis_name[axis], (long long)on);
    return GLSL_STRING(w, "at_%s", w->axis_name[axis]);
}

/* ---- addresses
 * ------------------------------------------------------------------------------------ */

void glsl_hoist(glsl_writer *w, glsl_iter *it) {
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++) {
        if (!it->access_used[a]) continue;
        const smg_access *access = &w->k->accesses.items[a];
        const char *sum = glsl_size(w, access->offset);
        for (int n = 0; n < access->axis_count; n++) sum = glsl_plus(w, sum, glsl_base_part(w, access, n));
        it->address[a] = sum;
        if (strchr(sum, ' ') != NULL) {
            GLSL_LINE(w, "int p%d = %s;", a, sum);
            it->address[a] = GLSL_STRING(w, "p%d", a);
        }
        it->start[a] = it->address[a];
    }
}

static void hoist_direct(glsl_writer *w, glsl_iter *it, int a) {
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
static const char *direct_address(glsl_writer *w, const glsl_iter *it, int a) {
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
    return glsl_place(w, &w->k->accesses.items[a], direct_address(w, it, a));
}

const char *glsl_iota(glsl_writer *w, glsl_iter *it, int access) {
    return GLSL_STRING(w, "(%s)", direct_address(w, it, access));
}

static bool may_be_absent(const smg_exprs *pool, smg_expr expr) {
    smg_expr_node n = *smg_expr_get(pool, expr);
    if (n.prim == SMG_PRIM_CONST) return n.value <= (double)SMG_INDEX_ABSENT;
    if (n.prim != SMG_PRIM_SELECT) return false;
    return may_be_absent(pool, n.arg[1]) || may_be_absent(pool, n.arg[2]);
}

/* What the index adds to the address, clamped. *out_report: the line that reports it where it is bad; NULL: none has
 * to. Where it may be absent, *out_present is the condition that it is not: of a load; what is stored has its place. */
static const char *index_part(glsl_writer *w, glsl_iter *it, int a, const char *valid, const char **out_report,
                              const char **out_present) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *limit = glsl_size(w, access->index_limit), *text = glsl_expr_text(w, it, access->index);
    int number = w->serial++;
    GLSL_LINE(w, "int x%d = %s;", number, text);
    text = GLSL_STRING(w, "x%d", number);
    *out_report = NULL;
    if (out_present != NULL && may_be_absent(w->k->exprs, access->index)) {
        GLSL_LINE(w, "bool on%d = %s != %d;", number, text, SMG_INDEX_ABSENT);
        *out_present = GLSL_STRING(w, "on%d", number);
        valid = glsl_both(w, valid, *out_present);
    }
    if (smg_access_reports(w->k, access)) {
        int64_t most;
        bool bounded = !smg_size_is_const(w->k->sizes, access->index_limit, &most) || most < SMG_SIZE_UNBOUNDED;
        const char *bad =
            bounded ? GLSL_STRING(w, "(%s < 0 || %s >= %s)", text, text, limit) : GLSL_STRING(w, "(%s < 0)", text);
        *out_report = GLSL_STRING(w, "if (%s) smg_report(%s, %s);", glsl_both(w, valid, bad), text, limit);
        text = GLSL_STRING(w, "clamp(%s, 0, %s - 1)", text, limit);
        w->uses[GLSL_USE_DIAGNOSTICS] = true;
    }
    return glsl_times(w, text, access->index_stride);
}

/* An index is taken out of a loop over columns that it does not hang on. Returns what reports it; NULL. */
static const char *hoist_index(glsl_writer *w, glsl_iter *it, int a) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *report;
    bool moves = access->index == SMG_EXPR_NONE || w->k->buffers.items[access->buffer].written;
    for (int n = 0; n < it->inner_count; n++) moves = moves || smg_access_index_moves(w->k, access, it->inner_axes[n]);
    if (moves) return NULL;
    const char *valid = glsl_all_valid(w, it, access->axis, access->axis_count);
    const char *part = index_part(w, it, a, valid, &report, &it->present[a]);
    GLSL_LINE(w, "int i%d = %s;", a, glsl_plus(w, it->address[a], part));
    it->address[a] = GLSL_STRING(w, "i%d", a);
    it->indexed[a] = true;
    return report;
}

/* A report is a branch, and no driver moves a load in front of that: all indices are loaded first. */
void glsl_hoist_outer(glsl_writer *w, glsl_iter *it) {
    const char **report = glsl_zeroed(w, w->k->accesses.count, sizeof(char *));
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++)
        if (it->access_used[a]) hoist_direct(w, it, a);
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++)
        if (it->access_used[a]) report[a] = hoist_index(w, it, a);
    for (int a = 0; a < w->k->accesses.count && w->status == SMG_OK; a++)
        if (report[a] != NULL) GLSL_LINE(w, "%s", report[a]);
}

const char *glsl_indexed_address(glsl_writer *w, glsl_iter *it, int a, const char **io_valid) {
    const smg_access *access = &w->k->accesses.items[a];
    if (access->index == SMG_EXPR_NONE) return glsl_address(w, it, a);
    const char *address = direct_address(w, it, a), *present = it->present[a], *report = NULL;
    const char *valid = io_valid != NULL ? *io_valid : NULL;
    if (!it->indexed[a])
        address = glsl_plus(w, address, index_part(w, it, a, valid, &report, io_valid != NULL ? &present : NULL));
    if (report != NULL) GLSL_LINE(w, "%s", report);
    if (io_valid != NULL) *io_valid = glsl_both(w, valid, present);
    return glsl_place(w, access, address);
}

/* The name of a local that holds the validity, where there is a condition at all. */
const char *glsl_named_condition(glsl_writer *w, const char *valid, int number) {
    if (valid == NULL || strchr(valid, ' ') == NULL) return valid;
    GLSL_LINE(w, "bool ok%d = %s;", number, valid);
    return GLSL_STRING(w, "ok%d", number);
}

const char *glsl_load(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf) {
    const smg_access *access = &w->k->accesses.items[leaf->index];
    smg_kind kind = smg_type_kind(w->k->buffers.items[access->buffer].type);
    if (it->vector[leaf->index] != NULL)
        return glsl_convert(w, GLSL_STRING(w, "%s[%d]", it->vector[leaf->index], it->member), kind, leaf->kind);
    const char *valid = glsl_all_valid(w, it, access->axis, access->axis_count);
    const char *address = glsl_indexed_address(w, it, leaf->index, &valid);
    int number = w->serial++;
    if (valid != NULL) {
        valid = glsl_named_condition(w, valid, number);
        GLSL_LINE(w, "int a%d = %s;", number, address);
        address = GLSL_STRING(w, "%s ? a%d : 0", valid, number);
    }
    GLSL_LINE(w, "%s v%d = %s;", glsl_kind(kind), number, glsl_buffer_element(w, access->buffer, address));
    const char *value = GLSL_STRING(w, "v%d", number);
    if (valid != NULL) GLSL_LINE(w, "%s = %s ? %s : %s;", value, valid, value, glsl_zero(kind));
    return glsl_convert(w, value, kind, leaf->kind);
}

void glsl_store(glsl_writer *w, glsl_iter *it, int a, const char *value, smg_kind kind) {
    const smg_access *access = &w->k->accesses.items[a];
    smg_type type = w->k->buffers.items[access->buffer].type;
    const char *address = glsl_indexed_address(w, it, a, NULL);
    const char *text = glsl_buffer_value(w, type, value, kind);
    w->buffer_words[access->buffer] = true;
    GLSL_LINE(w, "g_%s[%s] = %s;", w->buffer_name[access->buffer], address, text);
}

/* ---- tiles
 * ---------------------------------------------------------------------------------------- */

int glsl_slot_number(const glsl_writer *w, const smg_tile *tile) {
    int slots = smg_tile_slots(tile);
    if (slots == 1) return 0;
    if (!smg_kernel_steps_known(w->k, tile->ring, slots)) return -1;
    return (int)((w->copy[tile->ring] + w->ahead[tile->ring] / w->k->axes.items[tile->ring].tile) % slots);
}

const char *glsl_slice(glsl_writer *w, int t) {
    t = smg_tile_home(w->k, t);
    const smg_tile *tile = &w->k->tiles.items[t];
    int slot = smg_tile_slots(tile) > 1 ? glsl_slot_number(w, tile) : -1;
    return slot < 0 ? GLSL_STRING(w, "t_%s", w->tile_name[t]) : GLSL_STRING(w, "t_%s[%d]", w->tile_name[t], slot);
}

const char *glsl_slot(glsl_writer *w, const smg_tile *tile) {
    if (tile->sliced) return glsl_times_literal(w, glsl_base(w, tile->ring), smg_tile_slice_stride(w->k, tile));
    int64_t slots = smg_tile_slots(tile), by = slots > 1 ? w->k->axes.items[tile->ring].tile : 1;
    if (glsl_slot_number(w, tile) >= 0) return "0"; /* glsl_slice names it */
    const char *step = slots > 1 ? glsl_base(w, tile->ring) : "0";
    if (strcmp(step, "0") == 0) return step; /* the first step, of a loop from 0 */
    bool powers = smg_is_power_of_two(by) && smg_is_power_of_two(slots);
    if (by > 1)
        step =
            powers ? GLSL_STRING(w, "%s >> %d", step, smg_log2(by)) : GLSL_STRING(w, "%s / %lld", step, (long long)by);
    step = powers ? GLSL_STRING(w, "(%s & %lld)", step, (long long)slots - 1)
                  : GLSL_STRING(w, "(%s %% %lld)", step, (long long)slots);
    return glsl_times_literal(w, step, smg_tile_slot_elements(w->k, tile));
}

static const char *shared_place(glsl_writer *w, const glsl_iter *it, const smg_tile *tile) {
    const char *sum = glsl_slot(w, tile);
    for (int n = tile->axis_count - 1; n >= 0; n--) {
        int axis = tile->axis[n];
        sum = glsl_plus(w, glsl_times_literal(w, it->coord[axis], smg_tile_stride(w->k, tile, axis)), sum);
    }
    return sum;
}

const char *glsl_tile_group(glsl_writer *w, const glsl_iter *it, int t) {
    return GLSL_STRING(w, "%s[(%s) >> %d]", glsl_slice(w, t), shared_place(w, it, &w->k->tiles.items[t]),
                       it->group == SMG_WIDEST ? 3 : 2);
}

/* The address of the element at hand; *out_valid: the condition that it exists, NULL where it always does. */
static const char *view_address(glsl_writer *w, const glsl_iter *it, const smg_access *access, const char **out_valid) {
    const char *sum = glsl_size(w, access->offset);
    *out_valid = NULL;
    for (int n = 0; n < access->axis_count; n++) {
        int axis = access->axis[n];
        const char *index = glsl_plus(w, glsl_base(w, axis), it->coord[axis]);
        sum = glsl_plus(w, sum, glsl_times(w, GLSL_STRING(w, "(%s)", index), access->stride[n]));
        if (glsl_always_valid(w, axis)) continue;
        *out_valid = glsl_both(w, *out_valid, glsl_valid_text(w, axis, it->coord[axis]));
    }
    return sum;
}

/* An element of memory, 0 where it is not valid. */
static const char *view_element(glsl_writer *w, const glsl_iter *it, const smg_tile *tile) {
    const smg_access *access = &w->k->accesses.items[tile->access];
    const char *valid, *sum = view_address(w, it, access, &valid);
    if (valid == NULL) return glsl_buffer_element(w, access->buffer, sum);
    const char *element = glsl_buffer_element(w, access->buffer, GLSL_STRING(w, "%s ? %s : 0", valid, sum));
    return GLSL_STRING(w, "(%s ? %s : 0.0)", valid, element);
}

static const char *view_group(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_access *access = &w->k->accesses.items[w->k->tiles.items[t].access];
    const char *valid, *sum = view_address(w, it, access, &valid), *name = w->buffer_name[access->buffer];
    w->buffer_wide[access->buffer] = true;
    smg_type type = w->k->buffers.items[access->buffer].type;
    const char *memory = GLSL_STRING(w, "w_%s[(%s) >> 2]", name, sum);
    if (valid != NULL) memory = GLSL_STRING(w, "w_%s[%s ? (%s) >> 2 : 0]", name, valid, sum);
    const char *value = glsl_buffer_group_as(w, type, SMG_TYPE_F32, SMG_WIDE, memory);
    return valid == NULL ? value : GLSL_STRING(w, "(%s ? %s : vec4(0.0))", valid, value);
}

const char *glsl_view_eight(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_access *access = &w->k->accesses.items[w->k->tiles.items[t].access];
    const char *valid, *sum = view_address(w, it, access, &valid), *name = w->buffer_name[access->buffer];
    w->buffer_eight[access->buffer] = true;
    if (valid == NULL) return GLSL_STRING(w, "e_%s[(%s) >> 3]", name, sum);
    return GLSL_STRING(w, "%s ? e_%s[%s ? (%s) >> 3 : 0] : uvec4(0u)", valid, name, valid, sum);
}

const char *glsl_tile_element(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    const char *place;
    if (tile->residence == SMG_VIEW) return view_element(w, it, tile);
    if (tile->residence == SMG_SHARED) {
        place = shared_place(w, it, tile);
        if (smg_tile_wide(w->k, tile)) return GLSL_STRING(w, "%s[(%s) >> 2][(%s) & 3]", glsl_slice(w, t), place, place);
    } else {
        return glsl_register(w, t, glsl_register_place(w, it, &w->k->layouts.items[tile->layout]));
    }
    return GLSL_STRING(w, "%s[%s]", glsl_slice(w, t), place);
}

const char *glsl_tile_value(glsl_writer *w, const glsl_iter *it, int t) {
    return glsl_element_value(w, w->k->tiles.items[t].type, glsl_tile_element(w, it, t));
}

const char *glsl_tile_group_value(glsl_writer *w, const glsl_iter *it, int t) {
    const smg_tile *tile = &w->k->tiles.items[t];
    if (tile->residence == SMG_VIEW) return view_group(w, it, t);
    return glsl_group_value(w, tile->type, SMG_WIDE, glsl_tile_group(w, it, t));
}
