/* layout: where the elements of a tile live.
 *
 * Takes:    digits: so many elements of an axis over registers, lanes or subgroups.
 * Gives:    the element that a register of a lane holds, and the questions that lowering asks of that.
 * Promises: every answer follows from the bits alone; who verifies, prices, interprets or writes a tile asks here and
 *           has no formula of its own.
 * Does not: know tiles, kernels or targets; say what is valid behind the end of an axis.
 *
 * A place is a register, a lane of a subgroup and a subgroup, each a number of some bits. Every bit has a basis: the
 * bit of one axis's coordinate that it sets, or nothing, and then all values of that bit hold the same element (it is
 * replicated). Each coordinate bit is set by one basis, so an axis has a block of a power of two elements. Blocks may
 * be repeated an odd number of times: 12 = 3 * 4. Repeats are the outermost digits of the register's number, in the
 * order of the axes, the last one fastest. (Linear Layouts, arXiv 2505.23819, section 4, with at most one bit a basis;
 * repeats are ours.)
 *
 * Axes are numbers that the caller gives them. Layouts that are asked about each other use the same numbers.
 */
#ifndef SMG_LAYOUT_H
#define SMG_LAYOUT_H

#include "base/base.h"

#define SMG_LAYOUT_AXES 12
#define SMG_LAYOUT_LEVEL_BITS 20
#define SMG_LAYOUT_HUGE (INT64_C(1) << 40) /* registers of a layout that is too large: any limit refuses it */

typedef enum smg_layout_level {
    SMG_LAYOUT_REGISTER,
    SMG_LAYOUT_LANE,
    SMG_LAYOUT_SUBGROUP,
    SMG_LAYOUT_LEVELS
} smg_layout_level;

typedef struct smg_basis {
    int8_t axis; /* -1: replicated */
    int8_t bit;  /* of the axis's coordinate */
} smg_basis;

typedef struct smg_layout_axis {
    int16_t axis;
    int16_t bits; /* of a coordinate inside the block */
    int repeats;  /* blocks */
} smg_layout_axis;

typedef struct smg_layout {
    int axis_count;
    smg_layout_axis axes[SMG_LAYOUT_AXES];
    bool too_large; /* more bits or axes were asked for than there is room for: the rest says nothing */
    int bits[SMG_LAYOUT_LEVELS];
    smg_basis basis[SMG_LAYOUT_LEVELS][SMG_LAYOUT_LEVEL_BITS]; /* from the lowest bit of each level */
} smg_layout;

/* ---- building: digits from the inside out; what does not fit leaves a layout that is too large -------- */

/* One element: no axis, one register of one lane. */
smg_layout smg_layout_one(void);
/* The next `count` (a power of two) numbers of the level step along the axis: by 1, then by what the axis has so far.
 * An axis is known from its first digit on, also of 1. */
void smg_layout_add(smg_layout *layout, smg_layout_level level, int axis, int64_t count);
/* The next `count` (a power of two) numbers of the level hold the same elements. */
void smg_layout_replicate(smg_layout *layout, smg_layout_level level, int64_t count);
/* The axis's block so often, behind each other. Its factors of two become register bits; what is left is repeated. */
void smg_layout_repeat(smg_layout *layout, int axis, int64_t times);
/* Sets the basis of one bit of the level; grows the level and the axis as needed. */
void smg_layout_set(smg_layout *layout, smg_layout_level level, int bit, smg_basis basis);
/* Every coordinate bit is set by exactly one basis, and all numbers are in range. *out_why: a static sentence. */
bool smg_layout_valid(const smg_layout *layout, const char **out_why);

/* ---- what it is ---------------------------------------------------------------------------------- */

int64_t smg_layout_registers(const smg_layout *layout);                       /* a lane's; at most SMG_LAYOUT_HUGE */
int64_t smg_layout_numbers(const smg_layout *layout, smg_layout_level level); /* 1 << bits */
bool smg_layout_has(const smg_layout *layout, int axis);
/* Elements of the axis, 1 where the layout does not have it. */
int64_t smg_layout_span(const smg_layout *layout, int axis);
/* Has each lane runs of so many neighbours along the axis, in whichever of its registers? width: a power of two. */
bool smg_layout_has_run(const smg_layout *layout, int axis, int width);
/* Bits of the level's number that lie on the axis (-1: that are replicated). */
uint32_t smg_layout_mask(const smg_layout *layout, smg_layout_level level, int axis);
/* Bits of a lane's number in the workgroup (subgroups above lanes) that lie on any of the axes (-1: are replicated). */
uint32_t smg_layout_local_mask(const smg_layout *layout, const int *axes, int count);
uint32_t smg_layout_replicas(const smg_layout *layout); /* of one that are replicated */
/* Registers that differ along the axis; along any of several axes. */
int64_t smg_layout_registers_along(const smg_layout *layout, int axis);
int64_t smg_layout_registers_over(const smg_layout *layout, const int *axes, int count);
/* The coordinate along the axis of what the place holds. */
int64_t smg_layout_coordinate(const smg_layout *layout, int axis, int64_t reg, int64_t lane, int64_t subgroup);
/* The part of it that one level's number decides; parts of different levels are added up. */
int64_t smg_layout_part(const smg_layout *layout, int axis, smg_layout_level level, int64_t number);
/* The register that holds the element; coordinates in the order of layout->axes. */
int64_t smg_layout_register_of(const smg_layout *layout, const int64_t *coordinates);
bool smg_layout_equal(const smg_layout *a, const smg_layout *b);

/* Bits of one level that step along one axis by doubling steps: digit = number / below % count, coordinate += digit *
 * step. */
typedef struct smg_layout_digit {
    int axis; /* -1: replicated */
    int64_t below, count, step;
} smg_layout_digit;
/* The level's digits, lowest first, without repeats; at most SMG_LAYOUT_LEVEL_BITS. Returns how many. */
int smg_layout_digits(const smg_layout *layout, smg_layout_level level, smg_layout_digit *out_digits);
/* The digit of the register's number that says which block of the axis it is in; count 1 without repeats. */
smg_layout_digit smg_layout_repeats(const smg_layout *layout, int axis);

/* ---- what lowering asks ---------------------------------------------------------------------------- */

/* The same lanes with these axes only: what is left of a tile when the others are reduced, and what a tile without them
 * must be to be read beside this one. Bits of the others are replicated, their registers are gone. */
smg_layout smg_layout_keep(const smg_layout *layout, const int *axes, int count);
/* Is the element of `of` that belongs to each element of `beside` in the same lane? `of` has no axes that `beside` does
 * not have. */
bool smg_layout_readable(const smg_layout *of, const smg_layout *beside);
/* Then this is its register, beside register `reg` of the other. */
int64_t smg_layout_register_beside(const smg_layout *of, const smg_layout *beside, int64_t reg);

/* Along an axis another element than the one at hand: element `at`, or with `from` the one as far from the last as the
 * element at hand is, along the axis `from`, from the first. */
typedef struct smg_layout_pick {
    int axis, from; /* from -1: none */
    int64_t at;
} smg_layout_pick;
#define SMG_LAYOUT_PICKS 3
/* The same questions where some of the axes are picked: yes where these are in registers only, so that a lane has all
 * of their elements and another one is another register. `of` may have picked axes that `beside` does not have. */
bool smg_layout_readable_at(const smg_layout *of, const smg_layout *beside, const smg_layout_pick *picks, int count);
int64_t smg_layout_register_at(const smg_layout *of, const smg_layout *beside, const smg_layout_pick *picks, int count,
                               int64_t reg);

typedef enum smg_conversion {
    SMG_CONVERSION_NONE,    /* registers keep their numbers */
    SMG_CONVERSION_RENAME,  /* registers change their numbers */
    SMG_CONVERSION_SHUFFLE, /* lanes of one subgroup exchange */
    SMG_CONVERSION_SHARED   /* subgroups exchange */
} smg_conversion;
/* The cheapest way from one place of the same elements to another. */
smg_conversion smg_layout_conversion(const smg_layout *from, const smg_layout *to);

/* Neighbours along the axis in a lane's lowest registers: what one load or store may take (a power of two). */
int64_t smg_layout_run(const smg_layout *layout, int axis);
/* The same where only the axis is kept. */
int64_t smg_layout_own_run(const smg_layout *layout, int axis);
/* The same places of groups of so many (a power of two) neighbours along the axis, which each lane has in its lowest
 * registers: what was an element's number is now a group's. */
smg_layout smg_layout_groups(const smg_layout *layout, int axis, int64_t width);
/* Neighbours along the axis that a subgroup holds together, runs of its lanes side by side (a power of two). */
int64_t smg_layout_neighbours(const smg_layout *layout, int axis);
/* All lanes of a subgroup hold the same elements: one load serves all of them. */
bool smg_layout_uniform(const smg_layout *layout);

/* An axis of two layouts in another order: its bit i becomes bit bit[i]. `run` bits of the new one are those and,
 * between them, the lowest of the number of the block. */
#define SMG_LAYOUT_ORDER_BITS 8
typedef struct smg_layout_order {
    int8_t bit[SMG_LAYOUT_ORDER_BITS];
    int run;
} smg_layout_order;
/* The order in which each lane has runs of `width` neighbours in registers by both layouts; the axis has as many bits
 * in one as in the other, SMG_LAYOUT_ORDER_BITS at most. */
smg_layout_order smg_layout_in_runs(const smg_layout *a, int axis_a, const smg_layout *b, int axis_b, int width);

/* What an access of one subgroup touches: element = sum of coordinate * stride (in elements, in the order of
 * layout->axes), each lane its first `run` elements from there. */
typedef struct smg_layout_access {
    const int64_t *strides;
    int64_t run;
    int64_t element_bytes;
} smg_layout_access;
/* Distinct segments of so many bytes that an access of register 0 touches (coalescing: fewest is best). */
int64_t smg_layout_segments(const smg_layout *layout, const smg_layout_access *access, int64_t segment_bytes);
/* How many times as long shared memory with 32 banks of 4 bytes takes for it as without conflicts, rounded up.
 * Lanes of one address share. */
int64_t smg_layout_bank_turns(const smg_layout *layout, const smg_layout_access *access);

/* Where the element lies whose coordinate along the axis differs by xor of `by` (inside a block): the same place with
 * these bits turned over, by level. A flip turns all bits; it is a renaming where only registers differ. */
void smg_layout_turn(const smg_layout *layout, int axis, int64_t by, uint32_t out_masks[SMG_LAYOUT_LEVELS]);

/* ---- text ------------------------------------------------------------------------------------------ */

/* "registers i3*4 i2*2:8 lanes i3*8:4 *2 subgroups i2*4 repeat i3*3": digits from the lowest bit on, `axis*count:step`
 * (step 1 is left out, no axis: replicated). `add_axis` adds an axis's name. */
void smg_layout_print(const smg_layout *layout, void (*add_axis)(const void *user, int axis, smg_text *text),
                      const void *user, smg_text *text);
/* Adds what that text says to a layout that may have axes already, and moves *io_at behind it: to `end`, or to a
 * comment (#). `take_axis` gives the axis whose name stands at *io_at, which it moves behind the name; -1: none does.
 * NULL, or what was expected at *io_at (a static phrase). Whether the layout is valid is not asked. */
typedef int smg_layout_take_axis(void *user, const char **io_at, const char *end);
const char *smg_layout_read(const char **io_at, const char *end, smg_layout_take_axis *take_axis, void *user,
                            smg_layout *io_layout);
/* For layouts of matrices: axis 0 is "row", axis 1 "column". */
void smg_layout_add_side(const void *unused, int axis, smg_text *text);
int smg_layout_take_side(void *unused, const char **io_at, const char *end);

#endif
