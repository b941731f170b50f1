/* glsl_layout.c: layouts as text. The element that a register of a lane holds is a sum of digits of three numbers: the
 * register's (the loops over i and j), the lane's and the subgroup's. What lanes add to a coordinate is computed once,
 * at the start of the kernel, and named after the first axis that it is for. */
#include "glsl_private.h"

#define MOST_PIECES (SMG_LAYOUT_LEVEL_BITS + SMG_LAYOUT_AXES)

/* One digit: number / below % count, times step. */
typedef struct piece {
    int64_t below, count, step;
} piece;

typedef struct pieces {
    piece items[MOST_PIECES];
    int count;
} pieces;

/* A digit that goes on where another one ends, in both numbers, is the same digit. */
static void add_piece(pieces *p, piece digit) {
    if (digit.count == 1) return;
    for (int i = 0; i < p->count; i++) {
        piece *old = &p->items[i];
        if (digit.below != old->below * old->count || digit.step != old->step * old->count) continue;
        old->count *= digit.count;
        return;
    }
    if (p->count < MOST_PIECES) p->items[p->count++] = digit;
}

static const char *digit_text(glsl_writer *w, const char *number, int64_t range, const piece *digit) {
    bool whole = digit->below * digit->count >= range;
    const char *of = strchr(number, ' ') != NULL ? GLSL_STRING(w, "(%s)", number) : number;
    if (digit->below == 1 && whole) return number;
    if (!smg_is_power_of_two(digit->below) || !smg_is_power_of_two(digit->count)) {
        const char *rest = digit->below > 1 ? GLSL_STRING(w, "%s / %lld", of, (long long)digit->below) : of;
        return whole ? GLSL_STRING(w, "(%s)", rest) : GLSL_STRING(w, "(%s %% %lld)", rest, (long long)digit->count);
    }
    int shift = smg_log2(digit->below);
    if (shift == 0) return GLSL_STRING(w, "(%s & %lld)", of, (long long)digit->count - 1);
    if (whole) return GLSL_STRING(w, "(%s >> %d)", of, shift);
    return GLSL_STRING(w, "(%s >> %d & %lld)", of, shift, (long long)digit->count - 1);
}

static const char *sum_text(glsl_writer *w, const char *number, int64_t range, const pieces *p) {
    const char *sum = "0";
    if (strcmp(number, "0") == 0) return sum;
    for (int i = p->count - 1; i >= 0; i--) {
        const char *digit = digit_text(w, number, range, &p->items[i]);
        if (p->items[i].step > 1 && strchr(digit, ' ') != NULL && digit[0] != '(')
            digit = GLSL_STRING(w, "(%s)", digit);
        sum = glsl_plus(w, sum, glsl_times_literal(w, digit, p->items[i].step));
    }
    return sum;
}

/* ---- lanes ------------------------------------------------------------------------------------------ */

static pieces on_axis(const smg_layout *layout, smg_layout_level level, int axis, int64_t scale) {
    smg_layout_digit digits[SMG_LAYOUT_LEVEL_BITS];
    pieces p = {.count = 0};
    int count = smg_layout_digits(layout, level, digits);
    for (int i = 0; i < count; i++)
        if (digits[i].axis == axis) add_piece(&p, (piece){digits[i].below * scale, digits[i].count, digits[i].step});
    return p;
}

const char *glsl_local_part(glsl_writer *w, const smg_layout *layout, int axis) {
    pieces all = on_axis(layout, SMG_LAYOUT_LANE, axis, 1);
    pieces above = on_axis(layout, SMG_LAYOUT_SUBGROUP, axis, w->k->subgroup);
    for (int i = 0; i < above.count; i++) add_piece(&all, above.items[i]);
    return sum_text(w, "local", w->k->lanes, &all);
}

static const char *lane_text(glsl_writer *w, const smg_layout *layout, int axis) {
    const smg_kernel *k = w->k;
    if (!k->numbered) return glsl_local_part(w, layout, axis);
    pieces lanes = on_axis(layout, SMG_LAYOUT_LANE, axis, 1);
    pieces above = on_axis(layout, SMG_LAYOUT_SUBGROUP, axis, 1);
    return glsl_plus(w, sum_text(w, "int(gl_SubgroupID)", k->lanes / k->subgroup, &above),
                     sum_text(w, "int(gl_SubgroupInvocationID)", k->subgroup, &lanes));
}

const char *glsl_lane_part(glsl_writer *w, const smg_layout *layout, int axis) {
    const char *text = lane_text(w, layout, axis);
    if (strcmp(text, "0") == 0 || strcmp(text, "local") == 0) return text;
    for (int i = 0; i < w->lane_parts.count; i++)
        if (strcmp(w->lane_parts.items[i].text, text) == 0) return w->lane_parts.items[i].name;
    glsl_fail(w, SMG_INTERNAL, "lanes of a layout that the kernel does not list");
    return "0";
}

const char *glsl_subgroup_part(glsl_writer *w, const smg_layout *layout, int axis) {
    pieces above = on_axis(layout, SMG_LAYOUT_SUBGROUP, axis, 1);
    return sum_text(w, "int(gl_SubgroupID)", w->k->lanes / w->k->subgroup, &above);
}

static void declare_part(glsl_writer *w, const smg_layout *layout, int axis) {
    const char *text = lane_text(w, layout, axis);
    if (strcmp(text, "0") == 0 || strcmp(text, "local") == 0) return;
    bool taken = false;
    for (int i = 0; i < w->lane_parts.count; i++) {
        if (strcmp(w->lane_parts.items[i].text, text) == 0) return;
        taken = taken || w->lane_parts.items[i].axis == axis;
    }
    glsl_lane_name *part = SMG_ARRAY_PUSH(w->arena, &w->lane_parts);
    if (part == NULL) {
        if (w->status == SMG_OK) w->status = SMG_MEMORY;
        return;
    }
    const char *base = GLSL_STRING(w, "l_%s", w->axis_name[axis]);
    const char *name = taken ? GLSL_STRING(w, "%s_%d", base, w->lane_parts.count) : base;
    *part = (glsl_lane_name){.axis = axis, .text = text, .name = name};
    GLSL_LINE(w, "int %s = %s;", name, text);
}

void glsl_lanes(glsl_writer *w) {
    const smg_kernel *k = w->k;
    if (k->numbered)
        GLSL_LINE(w, "int local = int(gl_SubgroupID) * %d + int(gl_SubgroupInvocationID);", k->subgroup);
    else
        GLSL_LINE(w, "int local = int(gl_LocalInvocationIndex);");
    for (int i = 0; i < k->layouts.count; i++)
        for (int a = 0; a < k->layouts.items[i].axis_count; a++)
            declare_part(w, &k->layouts.items[i], k->layouts.items[i].axes[a].axis);
    for (int i = 0; i < k->code.count; i++) {
        smg_trade trade;
        if (!k->code.items[i].exchanged || !smg_kernel_trades(k, &k->code.items[i], &trade)) continue;
        declare_part(w, &trade.stored, trade.row);
        declare_part(w, &trade.stored, trade.col);
    }
}

/* ---- registers -------------------------------------------------------------------------------------- */

const char *glsl_register_part(glsl_writer *w, const smg_layout *layout, int axis, const char *number) {
    pieces p = on_axis(layout, SMG_LAYOUT_REGISTER, axis, 1);
    smg_layout_digit repeats = smg_layout_repeats(layout, axis);
    add_piece(&p, (piece){repeats.below, repeats.count, repeats.step});
    return sum_text(w, number, smg_layout_registers(layout), &p);
}

static int bit_of(const smg_layout *layout, smg_basis basis) {
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER]; i++) {
        smg_basis b = layout->basis[SMG_LAYOUT_REGISTER][i];
        if (b.axis == basis.axis && b.bit == basis.bit) return i;
    }
    return -1;
}

/* The axis along which the element at hand decides the coordinate along `axis` of what the leaf reads (NULL: of the
 * same element); -1: none does. `back`: of those that are picked backwards, else of those that are not picked. */
static int decided_by(const smg_kleaf *leaf, int axis, bool back) {
    const smg_layout_pick *p = leaf == NULL ? NULL : smg_kleaf_pick(leaf, axis);
    if (p == NULL) return back ? -1 : axis;
    return back ? p->from : -1;
}

/* What the number of a register among `from`'s adds to the number of the register in `of` of what the leaf reads. */
static const char *place_part(glsl_writer *w, const smg_layout *of, const smg_layout *from, const char *number,
                              const smg_kleaf *leaf, bool back) {
    pieces p = {.count = 0};
    for (int i = 0; i < of->bits[SMG_LAYOUT_REGISTER]; i++) {
        smg_basis basis = of->basis[SMG_LAYOUT_REGISTER][i];
        if (basis.axis < 0) continue;
        basis.axis = (int8_t)decided_by(leaf, basis.axis, back);
        int bit = basis.axis < 0 ? -1 : bit_of(from, basis);
        if (bit >= 0) add_piece(&p, (piece){INT64_C(1) << bit, 2, INT64_C(1) << i});
    }
    for (int i = of->axis_count - 1; i >= 0; i--) {
        int axis = decided_by(leaf, of->axes[i].axis, back);
        if (axis < 0 || !smg_layout_has(from, axis)) continue;
        smg_layout_digit in = smg_layout_repeats(from, axis), out = smg_layout_repeats(of, of->axes[i].axis);
        add_piece(&p, (piece){in.below, in.count, out.below});
    }
    return sum_text(w, number, smg_layout_registers(from), &p);
}

const char *glsl_register_place(glsl_writer *w, const glsl_iter *it, const smg_layout *of) {
    return glsl_plus(w, place_part(w, of, &it->outer, it->i, NULL, false),
                     place_part(w, of, &it->inner, it->j, NULL, false));
}

const char *glsl_register_at(glsl_writer *w, const glsl_iter *it, const smg_layout *of, const smg_kleaf *leaf) {
    int64_t fixed[SMG_LAYOUT_AXES] = {0};
    for (int i = 0; i < of->axis_count; i++) {
        const smg_layout_pick *p = smg_kleaf_pick(leaf, of->axes[i].axis);
        if (p != NULL) fixed[i] = p->from < 0 ? p->at : smg_layout_span(of, p->axis) - 1;
    }
    const char *sum = GLSL_STRING(w, "%lld", (long long)smg_layout_register_of(of, fixed));
    sum = glsl_plus(w, sum, place_part(w, of, &it->outer, it->i, leaf, false));
    sum = glsl_plus(w, sum, place_part(w, of, &it->inner, it->j, leaf, false));
    const char *back = glsl_plus(w, place_part(w, of, &it->outer, it->i, leaf, true),
                                 place_part(w, of, &it->inner, it->j, leaf, true));
    return strcmp(back, "0") == 0 ? sum : GLSL_STRING(w, "%s - (%s)", sum, back);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

/* The uppermost of them, which differ by whole blocks of lanes. */
static uint32_t upper_replicas(const glsl_writer *w, uint32_t mask) {
    uint32_t upper = 0;
    for (uint32_t bit = (uint32_t)w->k->lanes / 2; bit > 0 && (mask & bit) != 0; bit /= 2) upper |= bit;
    return upper;
}

static const char *first_of(glsl_writer *w, uint32_t mask) {
    return mask == 0 ? NULL : GLSL_STRING(w, "(local & %u) == 0", mask);
}

const char *glsl_once(glsl_writer *w, const glsl_iter *it) {
    return first_of(w, smg_layout_replicas(&it->layout));
}

const char *glsl_once_a_copy(glsl_writer *w, const glsl_iter *it) {
    uint32_t all = smg_layout_replicas(&it->layout);
    return first_of(w, all & ~upper_replicas(w, all));
}

int glsl_sharers(const glsl_writer *w, const glsl_iter *it) {
    uint32_t upper = upper_replicas(w, smg_layout_replicas(&it->layout));
    if (upper == 0) return 1;
    int copies = w->k->lanes / (int)(upper & (~upper + 1));
    return it->outer_registers == 1 || it->outer_registers % copies != 0 ? 1 : copies;
}

const char *glsl_sharer(glsl_writer *w, const glsl_iter *it, int copy) {
    uint32_t upper = upper_replicas(w, smg_layout_replicas(&it->layout));
    if (glsl_sharers(w, it) == 1) return first_of(w, upper);
    return GLSL_STRING(w, "local / %u == %d", upper & (~upper + 1), copy);
}
