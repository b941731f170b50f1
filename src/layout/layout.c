/* Building layouts, and what they are. */
#include "layout/layout_private.h"

const smg_layout_axis *layout_axis(const smg_layout *layout, int axis) {
    for (int i = 0; i < layout->axis_count; i++)
        if (layout->axes[i].axis == axis) return &layout->axes[i];
    return NULL;
}

/* The axis, added where it is new; NULL when there is no room. */
static smg_layout_axis *found_or_new(smg_layout *layout, int axis) {
    for (int i = 0; i < layout->axis_count; i++)
        if (layout->axes[i].axis == axis) return &layout->axes[i];
    if (layout->axis_count >= SMG_LAYOUT_AXES) {
        layout->too_large = true;
        return NULL;
    }
    layout->axes[layout->axis_count] = (smg_layout_axis){.axis = (int16_t)axis, .repeats = 1};
    return &layout->axes[layout->axis_count++];
}

smg_layout smg_layout_one(void) {
    return (smg_layout){0};
}

void smg_layout_set(smg_layout *layout, smg_layout_level level, int bit, smg_basis basis) {
    if (bit >= SMG_LAYOUT_LEVEL_BITS) {
        layout->too_large = true;
        return;
    }
    for (int i = layout->bits[level]; i <= bit; i++) layout->basis[level][i] = (smg_basis){.axis = -1};
    if (layout->bits[level] <= bit) layout->bits[level] = bit + 1;
    layout->basis[level][bit] = basis;
    if (basis.axis < 0) return;
    smg_layout_axis *a = found_or_new(layout, basis.axis);
    if (a != NULL && a->bits <= basis.bit) a->bits = (int16_t)(basis.bit + 1);
}

void smg_layout_add(smg_layout *layout, smg_layout_level level, int axis, int64_t count) {
    smg_layout_axis *a = found_or_new(layout, axis);
    for (int n = smg_log2(count); a != NULL && n > 0; n--) {
        int bit = layout->bits[level];
        if (bit == SMG_LAYOUT_LEVEL_BITS) {
            layout->too_large = true;
            return;
        }
        layout->basis[level][bit] = (smg_basis){(int8_t)axis, (int8_t)a->bits++};
        layout->bits[level] = bit + 1;
    }
}

void smg_layout_replicate(smg_layout *layout, smg_layout_level level, int64_t count) {
    for (int n = smg_log2(count); n > 0; n--)
        smg_layout_set(layout, level, layout->bits[level], (smg_basis){.axis = -1});
}

void smg_layout_repeat(smg_layout *layout, int axis, int64_t times) {
    smg_layout_axis *a = found_or_new(layout, axis);
    if (times > INT32_MAX) {
        layout->too_large = true;
        return;
    }
    int64_t twos = times > 1 ? times & -times : 1;
    smg_layout_add(layout, SMG_LAYOUT_REGISTER, axis, twos);
    if (a != NULL) a->repeats = (int)(times / twos);
}

bool smg_layout_valid(const smg_layout *layout, const char **out_why) {
    uint32_t covered[SMG_LAYOUT_AXES] = {0};
    *out_why = NULL;
    if (layout->too_large) *out_why = "a layout has too many axes or bits";
    for (int level = 0; level < SMG_LAYOUT_LEVELS && *out_why == NULL; level++) {
        for (int i = 0; i < layout->bits[level]; i++) {
            smg_basis b = layout->basis[level][i];
            const smg_layout_axis *a = layout_axis(layout, b.axis);
            if (b.axis < 0) continue;
            if (a == NULL || b.bit < 0 || b.bit >= a->bits || a->bits > SMG_LAYOUT_LEVEL_BITS) {
                *out_why = "a bit of a layout sets a coordinate that is none of its axes'";
                break;
            }
            uint32_t bit = 1u << b.bit, *seen = &covered[a - layout->axes];
            if (*seen & bit) *out_why = "two bits of a layout set the same coordinate bit";
            *seen |= bit;
        }
    }
    for (int i = 0; i < layout->axis_count && *out_why == NULL; i++) {
        if (layout->axes[i].repeats % 2 != 1) *out_why = "an axis of a layout is repeated no odd number of times";
        if (covered[i] != (1u << layout->axes[i].bits) - 1)
            *out_why = "no bit of a layout sets some coordinate bit of an axis";
    }
    return *out_why == NULL;
}

int64_t smg_layout_numbers(const smg_layout *layout, smg_layout_level level) {
    return (int64_t)1 << layout->bits[level];
}

int64_t smg_layout_registers(const smg_layout *layout) {
    int64_t count = layout->too_large ? SMG_LAYOUT_HUGE : smg_layout_numbers(layout, SMG_LAYOUT_REGISTER);
    for (int i = 0; i < layout->axis_count; i++)
        count = smg_mul_at_most(count, layout->axes[i].repeats, SMG_LAYOUT_HUGE);
    return count;
}

bool smg_layout_has(const smg_layout *layout, int axis) {
    return layout_axis(layout, axis) != NULL;
}

int64_t smg_layout_span(const smg_layout *layout, int axis) {
    const smg_layout_axis *a = layout_axis(layout, axis);
    return a == NULL ? 1 : (int64_t)a->repeats << a->bits;
}

uint32_t smg_layout_mask(const smg_layout *layout, smg_layout_level level, int axis) {
    uint32_t mask = 0;
    for (int i = 0; i < layout->bits[level]; i++)
        if (layout->basis[level][i].axis == axis) mask |= 1u << i;
    return mask;
}

uint32_t smg_layout_local_mask(const smg_layout *layout, const int *axes, int count) {
    uint32_t mask = 0;
    for (int i = 0; i < count; i++)
        mask |= smg_layout_mask(layout, SMG_LAYOUT_LANE, axes[i]) |
                smg_layout_mask(layout, SMG_LAYOUT_SUBGROUP, axes[i]) << layout->bits[SMG_LAYOUT_LANE];
    return mask;
}

uint32_t smg_layout_replicas(const smg_layout *layout) {
    static const int nothing = -1;
    return smg_layout_local_mask(layout, &nothing, 1);
}

int64_t smg_layout_registers_along(const smg_layout *layout, int axis) {
    const smg_layout_axis *a = layout_axis(layout, axis);
    if (a == NULL) return 1;
    int64_t count = a->repeats;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER]; i++)
        if (layout->basis[SMG_LAYOUT_REGISTER][i].axis == axis) count *= 2;
    return count;
}

int64_t smg_layout_registers_over(const smg_layout *layout, const int *axes, int count) {
    int64_t registers = 1;
    for (int i = 0; i < count; i++)
        registers = smg_mul_at_most(registers, smg_layout_registers_along(layout, axes[i]), SMG_LAYOUT_HUGE);
    return registers;
}

/* Which block of the axis the register's number is in. */
static int64_t block_of(const smg_layout *layout, int axis, int64_t reg) {
    int64_t rest = reg >> layout->bits[SMG_LAYOUT_REGISTER];
    for (int i = layout->axis_count - 1; i >= 0; i--) {
        const smg_layout_axis *a = &layout->axes[i];
        if (a->axis == axis) return rest % a->repeats;
        rest /= a->repeats;
    }
    return 0;
}

int64_t smg_layout_part(const smg_layout *layout, int axis, smg_layout_level level, int64_t number) {
    const smg_layout_axis *a = layout_axis(layout, axis);
    if (a == NULL) return 0;
    int64_t sum = level == SMG_LAYOUT_REGISTER ? block_of(layout, axis, number) << a->bits : 0;
    for (int i = 0; i < layout->bits[level]; i++) {
        smg_basis b = layout->basis[level][i];
        if (b.axis == axis && (number >> i & 1) != 0) sum += (int64_t)1 << b.bit;
    }
    return sum;
}

int64_t smg_layout_coordinate(const smg_layout *layout, int axis, int64_t reg, int64_t lane, int64_t subgroup) {
    return smg_layout_part(layout, axis, SMG_LAYOUT_REGISTER, reg) +
           smg_layout_part(layout, axis, SMG_LAYOUT_LANE, lane) +
           smg_layout_part(layout, axis, SMG_LAYOUT_SUBGROUP, subgroup);
}

int64_t smg_layout_register_of(const smg_layout *layout, const int64_t *coordinates) {
    int64_t blocks = 0, reg = 0;
    for (int i = 0; i < layout->axis_count; i++) {
        const smg_layout_axis *a = &layout->axes[i];
        blocks = blocks * a->repeats + (coordinates[i] >> a->bits);
    }
    for (int bit = 0; bit < layout->bits[SMG_LAYOUT_REGISTER]; bit++) {
        smg_basis b = layout->basis[SMG_LAYOUT_REGISTER][bit];
        for (int i = 0; i < layout->axis_count; i++)
            if (layout->axes[i].axis == b.axis && (coordinates[i] >> b.bit & 1) != 0) reg |= (int64_t)1 << bit;
    }
    return (blocks << layout->bits[SMG_LAYOUT_REGISTER]) + reg;
}

bool layout_same_numbers(const smg_layout *a, const smg_layout *b, smg_layout_level level) {
    if (a->bits[level] != b->bits[level]) return false;
    for (int i = 0; i < a->bits[level]; i++) {
        smg_basis x = a->basis[level][i], y = b->basis[level][i];
        if (x.axis != y.axis || (x.axis >= 0 && x.bit != y.bit)) return false;
    }
    return true;
}

bool smg_layout_equal(const smg_layout *a, const smg_layout *b) {
    if (a->axis_count != b->axis_count) return false;
    for (int i = 0; i < a->axis_count; i++) {
        const smg_layout_axis *x = &a->axes[i], *y = &b->axes[i];
        if (x->axis != y->axis || x->bits != y->bits || x->repeats != y->repeats) return false;
    }
    bool same = a->too_large == b->too_large;
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        same = same && layout_same_numbers(a, b, (smg_layout_level)level);
    return same;
}

/* ---- digits -------------------------------------------------------------------------------------- */

int smg_layout_digits(const smg_layout *layout, smg_layout_level level, smg_layout_digit *out_digits) {
    const smg_basis *b = layout->basis[level];
    int bits = layout->bits[level], count = 0;
    for (int i = 0, next; i < bits; i = next) {
        for (next = i + 1; next < bits; next++)
            if (b[next].axis != b[i].axis || (b[i].axis >= 0 && b[next].bit != b[next - 1].bit + 1)) break;
        int64_t step = b[i].axis < 0 ? 0 : (int64_t)1 << b[i].bit;
        out_digits[count++] = (smg_layout_digit){b[i].axis, (int64_t)1 << i, (int64_t)1 << (next - i), step};
    }
    return count;
}

smg_layout_digit smg_layout_repeats(const smg_layout *layout, int axis) {
    smg_layout_digit digit = {.axis = axis, .below = smg_layout_numbers(layout, SMG_LAYOUT_REGISTER), .count = 1};
    for (int i = layout->axis_count - 1; i >= 0; i--) {
        const smg_layout_axis *a = &layout->axes[i];
        if (a->axis == axis) {
            digit.count = a->repeats;
            digit.step = (int64_t)1 << a->bits;
            return digit;
        }
        digit.below *= a->repeats;
    }
    return digit;
}
