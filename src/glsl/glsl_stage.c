/* glsl_stage.c: from global memory to shared memory, by all invocations together. At once (STAGE), or in two halves
 * with other work between them: FETCH into registers, PUT from there. What the
 * walk takes at once is stored as one where the shared tile keeps it together. */
#include "glsl_private.h"

/* What the step loads and nothing else, of the tile's own 16 bits: it is not made wider on its way. */
static bool loads_memory(const glsl_writer *w, const smg_instr *instr, int group) {
    int access = smg_kernel_plain_load(w->k, instr->expr);
    if (access < 0 || w->k->accesses.items[access].index != SMG_EXPR_NONE || !w->target->storage16) return false;
    if (group == 1 && !smg_target_moves_halves(w->target)) return false;
    smg_type type = w->k->buffers.items[w->k->accesses.items[access].buffer].type;
    return type == w->k->tiles.items[instr->dst].type && type != smg_kind_type(smg_type_kind(type));
}

/* Every element of the step, as the tile has them: one, or a group. */
static const char *step_value(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    int last = instr->axes[instr->axis_count - 1];
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    const char *valid = glsl_all_valid(w, it, dst->axis, dst->axis_count);
    const char *first = it->coord[last], *part[4] = {"", "", "", ""}, *value;
    const char *zero = glsl_zero_memory(w, dst->type, it->group);
    if (loads_memory(w, instr, it->group)) {
        value = glsl_load_memory(w, it, smg_kernel_plain_load(w->k, instr->expr));
        return valid != NULL ? GLSL_STRING(w, "%s ? %s : %s", valid, value, zero) : value;
    }
    if (it->group == SMG_WIDE) glsl_load_groups(w, it, instr->expr, instr->wide[0]);
    for (it->member = 0; it->member < it->group; it->member++) {
        if (it->member > 0) it->coord[last] = GLSL_STRING(w, "(%s + %d)", first, it->member);
        part[it->member] = glsl_convert(w, glsl_expr_text(w, it, instr->expr), kind, smg_tile_kind(dst));
        glsl_expr_forget(w, it);
    }
    it->coord[last] = first;
    value = it->group == 4 ? GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]) : part[0];
    value = glsl_memory_as(w, smg_kind_type(smg_tile_kind(dst)), dst->type, it->group, value);
    return valid != NULL ? GLSL_STRING(w, "%s ? %s : %s", valid, value, zero) : value;
}

/* Writes the step's elements, as its type has them, to the shared tile. */
static void store_step(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *value) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    int last = instr->axes[instr->axis_count - 1];
    const char *first = it->coord[last];
    if (it->group == 1) {
        GLSL_LINE(w, "%s = %s;", glsl_tile_element(w, it, instr->dst), value);
        return;
    }
    if (it->group == SMG_WIDEST && dst->in_runs) {
        glsl_put_in_runs(w, it, instr->dst, value);
        return;
    }
    if (it->group == SMG_WIDEST || (dst->axis[dst->axis_count - 1] == last && smg_tile_wide(w->k, dst))) {
        GLSL_LINE(w, "%s = %s;", glsl_tile_group(w, it, instr->dst), value);
        return;
    }
    int number = w->serial++;
    GLSL_LINE(w, "%s u%d = %s;", glsl_local_word(w, dst->type, 4), number, value);
    for (int member = 0; member < 4; member++) {
        if (member > 0) it->coord[last] = GLSL_STRING(w, "(%s + %d)", first, member);
        GLSL_LINE(w, "%s = u%d[%d];", glsl_tile_element(w, it, instr->dst), number, member);
    }
    it->coord[last] = first;
}

/* Elements behind the end of an axis that are not made 0: as STAGE and FETCH clamp them, or as PUT moves them. */
static bool is_kept(const glsl_writer *w, const smg_instr *instr, int axis) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    bool moved = instr->kind == SMG_I_PUT && !smg_tile_clamps(&w->k->tiles.items[instr->a], axis);
    return moved || smg_tile_clamps(dst, axis);
}

/* Reads go to the last element of a clamped axis; its own coordinate is kept for what is stored. */
static void clamp(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *out_own[SMG_TILE_AXES]) {
    int last = instr->axes[instr->axis_count - 1];
    for (int i = 0; i < instr->axis_count; i++) {
        int axis = instr->axes[i];
        const char *own = out_own[i] = it->coord[axis];
        if (!smg_tile_clamps(&w->k->tiles.items[instr->dst], axis) || glsl_always_valid(w, axis)) continue;
        const char *end =
            GLSL_STRING(w, "%s - %d", glsl_size(w, w->k->axes.items[axis].extent), axis == last ? it->group : 1);
        if (strcmp(glsl_base(w, axis), "0") != 0) end = GLSL_STRING(w, "%s - %s", end, glsl_base(w, axis));
        it->coord[axis] = GLSL_STRING(w, "r_%s", w->axis_name[axis]);
        GLSL_LINE(w, "int %s = %s ? %s : %s;", it->coord[axis], glsl_valid_text(w, axis, own), own, end);
    }
}

static void unclamp(glsl_iter *it, const smg_instr *instr, const char *own[SMG_TILE_AXES]) {
    for (int i = 0; i < instr->axis_count; i++) it->coord[instr->axes[i]] = own[i];
}

static bool open_walk(glsl_writer *w, glsl_iter *it, const smg_instr *instr, bool reads) {
    glsl_iter_init(w, it);
    if (w->status != SMG_OK) return false;
    if (reads) glsl_expr_prepare(w, it, instr->expr);
    for (int i = 0; i < instr->axis_count; i++) it->check[instr->axes[i]] = !is_kept(w, instr, instr->axes[i]);
    glsl_open(w, "");
    if (reads) glsl_hoist(w, it);
    glsl_walk_open(w, it, instr);
    return w->status == SMG_OK;
}

static void stage(glsl_writer *w, const smg_instr *instr) {
    glsl_iter it;
    if (!open_walk(w, &it, instr, true)) return;
    const char *own[SMG_TILE_AXES];
    clamp(w, &it, instr, own);
    const char *value = step_value(w, &it, instr);
    unclamp(&it, instr, own);
    store_step(w, &it, instr, value);
    glsl_walk_close(w, &it);
    glsl_report(w, &it);
    glsl_close(w);
}

static const smg_instr *first_fetch(const glsl_writer *w, int tile) {
    for (int i = 0; i < w->k->code.count; i++) {
        const smg_instr *in = &w->k->code.items[i];
        if (in->kind == SMG_I_FETCH && in->dst == tile) return in;
    }
    return NULL;
}

void glsl_staging(glsl_writer *w, int tile) {
    const smg_instr *fetch = first_fetch(w, tile);
    if (fetch == NULL) return;
    int slots = smg_tile_slots(&w->k->tiles.items[tile]);
    GLSL_LINE(w, "%s t_%s%s[%lld];", glsl_local_word(w, w->k->tiles.items[tile].type, smg_walk_width(fetch)),
              w->tile_name[tile], slots > 1 ? GLSL_STRING(w, "[%d]", slots) : "",
              (long long)smg_walk_steps(w->k, fetch));
}

static void fetch(glsl_writer *w, const smg_instr *instr) {
    glsl_iter it;
    if (!open_walk(w, &it, instr, true)) return;
    const char *own[SMG_TILE_AXES];
    clamp(w, &it, instr, own);
    const char *value = step_value(w, &it, instr);
    GLSL_LINE(w, "%s[%s] = %s;", glsl_slice(w, instr->dst), it.step, value);
    glsl_walk_close(w, &it);
    glsl_report(w, &it);
    glsl_close(w);
}

/* Eight of f16, into a tile that is not made of such groups, as two of four. */
static void put_halves(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const char *value) {
    int last = instr->axes[instr->axis_count - 1], number = w->serial++;
    smg_type to = w->k->tiles.items[instr->dst].type;
    const char *first = it->coord[last];
    GLSL_LINE(w, "uvec4 o%d = %s;", number, value);
    w->uses[GLSL_USE_FLOAT16] = true;
    it->group = SMG_WIDE;
    for (int n = 0; n < 2; n++) {
        const char *four = GLSL_STRING(w, "f16vec4(unpackFloat2x16(o%d[%d]), unpackFloat2x16(o%d[%d]))", number, 2 * n,
                                       number, 2 * n + 1);
        if (n > 0) it->coord[last] = GLSL_STRING(w, "(%s + %d)", first, SMG_WIDE);
        store_step(w, it, instr, glsl_memory_as(w, SMG_TYPE_F16, to, SMG_WIDE, four));
    }
    it->coord[last] = first;
}

static void put(glsl_writer *w, const smg_instr *instr) {
    glsl_iter it;
    int group = smg_walk_width(instr);
    if (!open_walk(w, &it, instr, false)) return;
    const char *valid = glsl_all_valid(w, &it, instr->axes, instr->axis_count);
    smg_type to = w->k->tiles.items[instr->dst].type;
    const char *value = GLSL_STRING(w, "%s[%s]", glsl_slice(w, instr->a), it.step);
    int word = smg_tile_group(w->k, instr->dst);
    bool halves = group == SMG_WIDEST && word != SMG_WIDEST && word != SMG_PAIR;
    if (!halves) value = glsl_memory_as(w, w->k->tiles.items[instr->a].type, to, group, value);
    const char *zero = glsl_zero_memory(w, to, group);
    if (valid != NULL) value = GLSL_STRING(w, "%s ? %s : %s", valid, value, zero);
    (halves ? put_halves : store_step)(w, &it, instr, value);
    glsl_walk_close(w, &it);
    glsl_close(w);
}

/* In front of a loop its first step counts, where it is not 0 and known, and those behind that. */
static bool open_first(glsl_writer *w, int axis, int loop, int64_t ahead) {
    if (w->looped[axis] || loop < 0 || (w->k->code.items[loop].range == NULL && ahead == 0)) return false;
    glsl_range(w, loop);
    const char *first = glsl_loop_first(w, loop), *end = glsl_loop_end(w, loop);
    const char *step = ahead > 0 ? GLSL_STRING(w, "%s + %lld", first, (long long)ahead) : first;
    w->looped[axis] = true;
    w->open[axis] = loop;
    glsl_open(w, GLSL_STRING(w, "if (%s < %s)", step, end));
    GLSL_LINE(w, "int at_%s = %s;", w->axis_name[axis], first);
    return true;
}

/* What works ahead of the loop's last step fetches that once more. */
static bool open_last(glsl_writer *w, const smg_instr *instr, int axis) {
    if (!instr->last || !w->looped[axis]) return false;
    int64_t steps = smg_kernel_loop_steps(w->k, &w->k->code.items[w->open[axis]]);
    glsl_open(w, "");
    GLSL_LINE(w, "int last_%s = min(%s, %lld);", w->axis_name[axis], glsl_base(w, axis),
              (long long)((steps - 1) * w->k->axes.items[axis].tile));
    w->moved[axis] = GLSL_STRING(w, "last_%s", w->axis_name[axis]);
    return true;
}

/* What may work ahead: for the step so far on, and not at all where the loop has no such step. A PUT or TAKE of the
 * last steps fills slots that nobody reads: without a branch it goes among the product's multiplications. */
void glsl_ahead(glsl_writer *w, const smg_instr *instr, int at, void (*write)(glsl_writer *w, const smg_instr *instr)) {
    int axis = smg_instr_ahead_axis(w->k, instr);
    if (axis < 0) {
        write(w, instr);
        return;
    }
    int64_t ahead = w->ahead[axis] = instr->ahead * w->k->axes.items[axis].tile;
    bool reads = instr->kind != SMG_I_PUT && instr->kind != SMG_I_TAKE, last = open_last(w, instr, axis);
    bool guard = w->looped[axis] && ahead > 0 && reads && !last;
    bool first = open_first(w, axis, smg_kernel_next_loop(w->k, at), ahead);
    if (guard) glsl_open(w, GLSL_STRING(w, "if (%s < %s)", glsl_base(w, axis), glsl_loop_end(w, w->open[axis])));
    write(w, instr);
    if (guard || first || last) glsl_close(w);
    w->moved[axis] = NULL;
    if (first) w->looped[axis] = false;
    w->ahead[axis] = 0;
}

void glsl_stage(glsl_writer *w, const smg_instr *instr, int at) {
    glsl_ahead(w, instr, at, stage);
}

void glsl_fetch(glsl_writer *w, const smg_instr *instr, int at) {
    glsl_ahead(w, instr, at, fetch);
}

void glsl_put(glsl_writer *w, const smg_instr *instr, int at) {
    glsl_ahead(w, instr, at, put);
}
