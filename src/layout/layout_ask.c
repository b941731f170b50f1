/* What lowering asks of layouts. */
#include "layout/layout_private.h"

#include <string.h>

#define BANKS 32
#define BANK_BYTES 4

static bool listed(const int *axes, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

smg_layout smg_layout_keep(const smg_layout *layout, const int *axes, int count) {
    smg_layout kept = {.too_large = layout->too_large};
    for (int i = 0; i < layout->axis_count; i++)
        if (listed(axes, count, layout->axes[i].axis)) kept.axes[kept.axis_count++] = layout->axes[i];
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        for (int i = 0; i < layout->bits[level]; i++) {
            smg_basis b = layout->basis[level][i];
            bool stays = b.axis >= 0 && listed(axes, count, b.axis);
            if (stays || level != SMG_LAYOUT_REGISTER)
                kept.basis[level][kept.bits[level]++] = stays ? b : (smg_basis){.axis = -1};
        }
    return kept;
}

bool smg_layout_readable(const smg_layout *of, const smg_layout *beside) {
    for (int i = 0; i < of->axis_count; i++) {
        const smg_layout_axis *a = &of->axes[i], *b = layout_axis(beside, a->axis);
        if (b == NULL || a->bits != b->bits || a->repeats != b->repeats) return false;
    }
    for (int level = SMG_LAYOUT_LANE; level < SMG_LAYOUT_LEVELS; level++) {
        if (of->bits[level] != beside->bits[level]) return false;
        for (int i = 0; i < of->bits[level]; i++) {
            smg_basis a = of->basis[level][i], b = beside->basis[level][i];
            bool shared = b.axis >= 0 && smg_layout_has(of, b.axis);
            if (a.axis != (shared ? b.axis : -1) || (shared && a.bit != b.bit)) return false;
        }
    }
    return true;
}

int64_t smg_layout_register_beside(const smg_layout *of, const smg_layout *beside, int64_t reg) {
    int64_t coordinates[SMG_LAYOUT_AXES];
    for (int i = 0; i < of->axis_count; i++)
        coordinates[i] = smg_layout_part(beside, of->axes[i].axis, SMG_LAYOUT_REGISTER, reg);
    return smg_layout_register_of(of, coordinates);
}

static const smg_layout_pick *pick_of(const smg_layout_pick *picks, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (picks[i].axis == axis) return &picks[i];
    return NULL;
}

/* All elements along the axis are in each lane. */
static bool in_registers(const smg_layout *layout, int axis) {
    return smg_layout_mask(layout, SMG_LAYOUT_LANE, axis) == 0 &&
           smg_layout_mask(layout, SMG_LAYOUT_SUBGROUP, axis) == 0;
}

bool smg_layout_readable_at(const smg_layout *of, const smg_layout *beside, const smg_layout_pick *picks, int count) {
    int rest[SMG_LAYOUT_AXES], rest_count = 0;
    for (int i = 0; i < of->axis_count; i++)
        if (pick_of(picks, count, of->axes[i].axis) == NULL) rest[rest_count++] = of->axes[i].axis;
    for (int i = 0; i < count; i++) {
        int from = picks[i].from;
        if (!in_registers(of, picks[i].axis)) return false;
        if (from < 0) continue;
        if (!in_registers(beside, from) || smg_layout_span(beside, from) != smg_layout_span(of, picks[i].axis))
            return false;
    }
    smg_layout kept = smg_layout_keep(of, rest, rest_count);
    return smg_layout_readable(&kept, beside);
}

int64_t smg_layout_register_at(const smg_layout *of, const smg_layout *beside, const smg_layout_pick *picks, int count,
                               int64_t reg) {
    int64_t coordinates[SMG_LAYOUT_AXES];
    for (int i = 0; i < of->axis_count; i++) {
        int axis = of->axes[i].axis;
        const smg_layout_pick *p = pick_of(picks, count, axis);
        int from = p == NULL ? axis : p->from;
        coordinates[i] = from < 0 ? p->at : smg_layout_part(beside, from, SMG_LAYOUT_REGISTER, reg);
        if (p != NULL && from >= 0) coordinates[i] = smg_layout_span(of, axis) - 1 - coordinates[i];
    }
    return smg_layout_register_of(of, coordinates);
}

static bool same_blocks(const smg_layout *a, const smg_layout *b) {
    bool repeats = false;
    for (int i = 0; i < a->axis_count; i++) repeats = repeats || a->axes[i].repeats != 1;
    if (!repeats) return true; /* then the order of axes decides nothing */
    for (int i = 0; i < a->axis_count; i++)
        if (a->axes[i].axis != b->axes[i].axis) return false;
    return true;
}

smg_conversion smg_layout_conversion(const smg_layout *from, const smg_layout *to) {
    bool blocks = from->axis_count == to->axis_count;
    for (int i = 0; i < from->axis_count && blocks; i++) {
        const smg_layout_axis *a = &from->axes[i], *b = layout_axis(to, a->axis);
        blocks = b != NULL && a->bits == b->bits && a->repeats == b->repeats;
    }
    if (!blocks || !layout_same_numbers(from, to, SMG_LAYOUT_SUBGROUP)) return SMG_CONVERSION_SHARED;
    if (!layout_same_numbers(from, to, SMG_LAYOUT_LANE)) return SMG_CONVERSION_SHUFFLE;
    bool none = layout_same_numbers(from, to, SMG_LAYOUT_REGISTER) && same_blocks(from, to);
    return none ? SMG_CONVERSION_NONE : SMG_CONVERSION_RENAME;
}

int64_t smg_layout_run(const smg_layout *layout, int axis) {
    int bits = 0;
    while (bits < layout->bits[SMG_LAYOUT_REGISTER] && layout->basis[SMG_LAYOUT_REGISTER][bits].axis == axis &&
           layout->basis[SMG_LAYOUT_REGISTER][bits].bit == bits)
        bits++;
    return (int64_t)1 << bits;
}

int64_t smg_layout_own_run(const smg_layout *layout, int axis) {
    int bits = 0;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER]; i++) {
        smg_basis b = layout->basis[SMG_LAYOUT_REGISTER][i];
        if (b.axis != axis) continue;
        if (b.bit != bits) break;
        bits++;
    }
    return (int64_t)1 << bits;
}

smg_layout smg_layout_groups(const smg_layout *layout, int axis, int64_t width) {
    smg_layout groups = *layout;
    int fewer = smg_log2(width);
    for (int i = 0; i < groups.axis_count; i++)
        if (groups.axes[i].axis == axis) groups.axes[i].bits = (int16_t)(groups.axes[i].bits - fewer);
    groups.bits[SMG_LAYOUT_REGISTER] -= fewer;
    for (int i = 0; i < groups.bits[SMG_LAYOUT_REGISTER]; i++)
        groups.basis[SMG_LAYOUT_REGISTER][i] = layout->basis[SMG_LAYOUT_REGISTER][i + fewer];
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        for (int i = 0; i < groups.bits[level]; i++) {
            smg_basis *b = &groups.basis[level][i];
            if (b->axis == axis) b->bit = (int8_t)(b->bit - fewer);
        }
    return groups;
}

int64_t smg_layout_neighbours(const smg_layout *layout, int axis) {
    int64_t run = smg_layout_run(layout, axis), covered = run - 1;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_LANE]; i++) {
        smg_basis b = layout->basis[SMG_LAYOUT_LANE][i];
        if (b.axis == axis) covered |= (int64_t)1 << b.bit;
    }
    while (covered & run) run *= 2;
    return run;
}

bool smg_layout_uniform(const smg_layout *layout) {
    for (int i = 0; i < layout->bits[SMG_LAYOUT_LANE]; i++)
        if (layout->basis[SMG_LAYOUT_LANE][i].axis >= 0) return false;
    return true;
}

/* ---- what one access of a subgroup touches: counted over its lanes --------------------------------- */

enum { MOST_LANES = 128, MOST_PIECES = 16 };

/* How far each bit of a lane's number moves it, in bytes. */
static void bytes_of_bits(const smg_layout *layout, const smg_layout_access *access, int64_t *out_bytes) {
    for (int bit = 0; bit < layout->bits[SMG_LAYOUT_LANE]; bit++) {
        smg_basis b = layout->basis[SMG_LAYOUT_LANE][bit];
        out_bytes[bit] = 0;
        for (int i = 0; i < layout->axis_count; i++)
            if (layout->axes[i].axis == b.axis)
                out_bytes[bit] = access->strides[i] * ((int64_t)1 << b.bit) * access->element_bytes;
    }
}

static int64_t first_byte(const int64_t *bytes_of_bit, int64_t lane) {
    int64_t byte = 0;
    for (int bit = 0; lane >> bit != 0; bit++)
        if (lane >> bit & 1) byte += bytes_of_bit[bit];
    return byte;
}

static bool seen(const int64_t *list, int count, int64_t value) {
    for (int i = 0; i < count; i++)
        if (list[i] == value) return true;
    return false;
}

/* Distinct pieces of `bytes` that lanes [from, to) touch, into `list`; at most MOST_LANES * MOST_PIECES. */
static int pieces(const smg_layout *layout, const smg_layout_access *access, int64_t from, int64_t to, int64_t bytes,
                  int64_t *list) {
    int count = 0;
    int64_t bytes_of_bit[SMG_LAYOUT_LEVEL_BITS];
    bytes_of_bits(layout, access, bytes_of_bit);
    for (int64_t lane = from; lane < to; lane++) {
        int64_t start = first_byte(bytes_of_bit, lane), end = start + access->run * access->element_bytes - 1;
        for (int64_t piece = start / bytes; piece <= end / bytes && count < MOST_LANES * MOST_PIECES; piece++)
            if (!seen(list, count, piece)) list[count++] = piece;
    }
    return count;
}

int64_t smg_layout_segments(const smg_layout *layout, const smg_layout_access *access, int64_t segment_bytes) {
    int64_t list[MOST_LANES * MOST_PIECES], lanes = smg_layout_numbers(layout, SMG_LAYOUT_LANE);
    return pieces(layout, access, 0, lanes < MOST_LANES ? lanes : MOST_LANES, segment_bytes, list);
}

int64_t smg_layout_bank_turns(const smg_layout *layout, const smg_layout_access *access) {
    int64_t list[MOST_LANES * MOST_PIECES], lanes = smg_layout_numbers(layout, SMG_LAYOUT_LANE);
    int64_t bytes = access->run * access->element_bytes, turns = 0, banks_bytes = (int64_t)BANKS * BANK_BYTES;
    /* Memory serves so many lanes together that their words could fill the banks once. */
    int64_t together = bytes >= BANK_BYTES ? banks_bytes / bytes : BANKS;
    if (lanes > MOST_LANES) lanes = MOST_LANES;
    if (together < 1) together = 1;
    for (int64_t from = 0; from < lanes; from += together) {
        int64_t to = from + together < lanes ? from + together : lanes, worst = 1;
        int count = pieces(layout, access, from, to, BANK_BYTES, list), used[BANKS] = {0};
        for (int i = 0; i < count; i++) {
            int64_t bank = (list[i] % BANKS + BANKS) % BANKS;
            if (++used[bank] > worst) worst = used[bank];
        }
        turns += worst;
    }
    int64_t least = (lanes + together - 1) / together;
    return (turns + least - 1) / least;
}

void smg_layout_turn(const smg_layout *layout, int axis, int64_t by, uint32_t out_masks[SMG_LAYOUT_LEVELS]) {
    memset(out_masks, 0, SMG_LAYOUT_LEVELS * sizeof *out_masks);
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        for (int i = 0; i < layout->bits[level]; i++) {
            smg_basis b = layout->basis[level][i];
            if (b.axis == axis && (by >> b.bit & 1) != 0) out_masks[level] |= 1u << i;
        }
}

/* ---- in another order --------------------------------------------------------------------------------- */

static bool bit_in_registers(const smg_layout *l, int axis, int bit) {
    for (int i = 0; i < l->bits[SMG_LAYOUT_REGISTER]; i++)
        if (l->basis[SMG_LAYOUT_REGISTER][i].axis == axis && l->basis[SMG_LAYOUT_REGISTER][i].bit == bit) return true;
    return false;
}

smg_layout_order smg_layout_in_runs(const smg_layout *a, int axis_a, const smg_layout *b, int axis_b, int width) {
    smg_layout_order order = {.run = 0};
    int bits = smg_log2(smg_layout_span(a, axis_a)), run = smg_log2(width);
    bool both[SMG_LAYOUT_ORDER_BITS] = {false};
    for (int i = 0; i < bits; i++) {
        both[i] = bit_in_registers(a, axis_a, i) && bit_in_registers(b, axis_b, i);
        if (both[i]) order.bit[i] = (int8_t)order.run++;
    }
    if (order.run < run) order.run = run;
    for (int i = 0; i < bits; i++)
        if (!both[i]) order.bit[i] = (int8_t)order.run++;
    return order;
}

bool smg_layout_has_run(const smg_layout *layout, int axis, int width) {
    int found = 0;
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER]; i++) {
        smg_basis b = layout->basis[SMG_LAYOUT_REGISTER][i];
        found += b.axis == axis && 1 << b.bit < width;
    }
    return 1 << found == width;
}
