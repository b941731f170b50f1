/* layout: every question against its definition, over all places of random layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout.h"
#include "support/check_plan.h"

enum { ROUNDS = 1000 / CHECK_ONE_IN, SOME = 50 / CHECK_ONE_IN, MOST_AXES = 4, MOST_SPAN = 1 << 15 };

static uint64_t seed = 1;

static int draw(int below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)below);
}

/* Digits of 2 in any order, some replicated; then repeats. */
static smg_layout random_layout(void) {
    smg_layout l = smg_layout_one();
    int axes = 1 + draw(MOST_AXES), digits = draw(10);
    for (int a = 0; a < axes; a++) smg_layout_add(&l, SMG_LAYOUT_REGISTER, 3 + 2 * a, 1);
    for (int n = 0; n < digits; n++) {
        smg_layout_level level = (smg_layout_level)draw(SMG_LAYOUT_LEVELS);
        if (level != SMG_LAYOUT_REGISTER && draw(4) == 0)
            smg_layout_replicate(&l, level, 2);
        else
            smg_layout_add(&l, level, 3 + 2 * draw(axes), 2);
    }
    if (draw(2) == 0) smg_layout_repeat(&l, 3 + 2 * draw(axes), 1 + draw(6));
    if (draw(4) == 0) smg_layout_repeat(&l, 3, 3);
    return l;
}

typedef struct place {
    int64_t reg, lane, subgroup;
} place;

static int64_t places(const smg_layout *l) {
    return smg_layout_registers(l) * smg_layout_numbers(l, SMG_LAYOUT_LANE) *
           smg_layout_numbers(l, SMG_LAYOUT_SUBGROUP);
}

static place place_of(const smg_layout *l, int64_t n) {
    int64_t regs = smg_layout_registers(l), lanes = smg_layout_numbers(l, SMG_LAYOUT_LANE);
    return (place){n % regs, n / regs % lanes, n / regs / lanes};
}

/* The definition: bits by their bases, blocks by mixed radix. */
static int64_t coordinate_by_definition(const smg_layout *l, int axis, place p) {
    int64_t number[SMG_LAYOUT_LEVELS] = {p.reg, p.lane, p.subgroup}, sum = 0, blocks = p.reg;
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        for (int i = 0; i < l->bits[level]; i++)
            if (l->basis[level][i].axis == axis && (number[level] >> i) % 2 == 1)
                sum ^= (int64_t)1 << l->basis[level][i].bit;
    for (int i = 0; i < l->bits[SMG_LAYOUT_REGISTER]; i++) blocks /= 2;
    for (int i = l->axis_count - 1; i >= 0; i--) {
        if (l->axes[i].axis == axis) sum += blocks % l->axes[i].repeats * ((int64_t)1 << l->axes[i].bits);
        blocks /= l->axes[i].repeats;
    }
    return sum;
}

static int64_t coordinate(const smg_layout *l, int axis, place p) {
    return smg_layout_coordinate(l, axis, p.reg, p.lane, p.subgroup);
}

/* All coordinates in one number. */
static int64_t element(const smg_layout *l, place p) {
    int64_t all = 0;
    for (int axis = 3; axis < 3 + 2 * MOST_AXES; axis += 2) all = all * MOST_SPAN + coordinate(l, axis, p);
    return all;
}

static int64_t elements(const smg_layout *l) {
    int64_t count = 1;
    for (int i = 0; i < l->axis_count; i++) count *= smg_layout_span(l, l->axes[i].axis);
    return count;
}

static void test_coordinates(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        const char *why;
        assert_true(smg_layout_valid(&l, &why));
        for (int64_t n = 0; n < places(&l); n++) {
            place p = place_of(&l, n);
            int64_t at[SMG_LAYOUT_AXES];
            for (int i = 0; i < l.axis_count; i++) {
                at[i] = coordinate(&l, l.axes[i].axis, p);
                assert_int_equal(at[i], coordinate_by_definition(&l, l.axes[i].axis, p));
                assert_in_range(at[i], 0, smg_layout_span(&l, l.axes[i].axis) - 1);
            }
            assert_int_equal(smg_layout_register_of(&l, at), p.reg);
        }
    }
}

/* Every element has one place for each number of the replicated bits. */
static void test_valid_covers_once(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS / 4; round++) {
        smg_layout l = random_layout();
        int64_t found = 0;
        for (int64_t n = 0; n < places(&l); n++) {
            place p = place_of(&l, n);
            uint32_t lanes = smg_layout_mask(&l, SMG_LAYOUT_LANE, -1);
            uint32_t subgroups = smg_layout_mask(&l, SMG_LAYOUT_SUBGROUP, -1);
            if ((p.lane & lanes) != 0 || (p.subgroup & subgroups) != 0) continue;
            found++;
            for (int64_t m = 0; m < n; m++) {
                place q = place_of(&l, m);
                bool copy = (q.lane & lanes) != 0 || (q.subgroup & subgroups) != 0;
                assert_true(copy || element(&l, p) != element(&l, q));
            }
        }
        assert_int_equal(found, elements(&l));
    }
}

static void test_invalid(void **state) {
    (void)state;
    const char *why;
    smg_layout twice = smg_layout_one();
    smg_layout_add(&twice, SMG_LAYOUT_LANE, 0, 4);
    smg_layout_set(&twice, SMG_LAYOUT_REGISTER, 0, (smg_basis){0, 1});
    assert_false(smg_layout_valid(&twice, &why));
    assert_string_equal(why, "two bits of a layout set the same coordinate bit");
    smg_layout hole = smg_layout_one();
    smg_layout_set(&hole, SMG_LAYOUT_LANE, 2, (smg_basis){0, 3});
    assert_false(smg_layout_valid(&hole, &why));
    assert_string_equal(why, "no bit of a layout sets some coordinate bit of an axis");
    smg_layout even = smg_layout_one();
    smg_layout_add(&even, SMG_LAYOUT_LANE, 0, 4);
    even.axes[0].repeats = 4;
    assert_false(smg_layout_valid(&even, &why));
    smg_layout wide = smg_layout_one();
    smg_layout_add(&wide, SMG_LAYOUT_LANE, 0, (int64_t)1 << 30);
    assert_false(smg_layout_valid(&wide, &why));
    assert_string_equal(why, "a layout has too many axes or bits");
    smg_layout held = smg_layout_one(); /* 1024 x 4095 x 4095 x 4095 registers: any limit refuses them */
    smg_layout_add(&held, SMG_LAYOUT_LANE, 0, 4);
    smg_layout_repeat(&held, 0, 1024);
    for (int a = 1; a < 4; a++) smg_layout_repeat(&held, a, 4095);
    assert_int_equal(smg_layout_registers(&held), SMG_LAYOUT_HUGE);
    assert_true(smg_layout_valid(&held, &why));
    smg_layout larger = smg_layout_one();
    for (int a = 0; a < 2; a++) smg_layout_repeat(&larger, a, 65536);
    assert_int_equal(smg_layout_registers(&larger), SMG_LAYOUT_HUGE);
    assert_false(smg_layout_valid(&larger, &why));
    smg_layout part = smg_layout_keep(&larger, &(int){1}, 1);
    assert_int_equal(smg_layout_registers(&part), SMG_LAYOUT_HUGE);
    smg_layout many = smg_layout_one();
    for (int a = 0; a <= SMG_LAYOUT_AXES; a++) smg_layout_add(&many, SMG_LAYOUT_REGISTER, a, 2);
    assert_false(smg_layout_valid(&many, &why));
}

static void test_shape(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        for (int axis = 3; axis < 3 + 2 * MOST_AXES; axis += 2) {
            static bool distinct[MOST_SPAN];
            memset(distinct, 0, sizeof distinct);
            int64_t along = 0;
            for (int64_t reg = 0; reg < smg_layout_registers(&l); reg++) {
                int64_t at = coordinate(&l, axis, (place){.reg = reg});
                along += !distinct[at];
                distinct[at] = true;
            }
            assert_int_equal(smg_layout_registers_along(&l, axis), along);
            for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
                for (int i = 0; i < l.bits[level]; i++) {
                    int64_t number[SMG_LAYOUT_LEVELS] = {0};
                    number[level] = (int64_t)1 << i;
                    bool moves = coordinate(&l, axis, (place){number[0], number[1], number[2]}) != 0;
                    assert_int_equal(smg_layout_mask(&l, (smg_layout_level)level, axis) >> i & 1, moves);
                }
        }
        bool uniform = true;
        for (int64_t n = 0; n < places(&l); n++) {
            place p = place_of(&l, n), first = p;
            first.lane = 0;
            uniform = uniform && element(&l, p) == element(&l, first);
        }
        assert_int_equal(smg_layout_uniform(&l), uniform);
    }
}

/* Does the number with this bit alone lie elsewhere than number 0, along any of the axes? */
static bool bit_moves(const smg_layout *l, smg_layout_level level, int bit, const int *axes, int count) {
    int64_t number[SMG_LAYOUT_LEVELS] = {0};
    number[level] = (int64_t)1 << bit;
    for (int i = 0; i < count; i++)
        if (coordinate(l, axes[i], (place){number[0], number[1], number[2]}) != 0) return true;
    return false;
}

/* Questions about several axes at once, and about levels together. */
static void test_several_axes(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        int axes[MOST_AXES], all[MOST_AXES], count = 0;
        for (int a = 0; a < MOST_AXES; a++) {
            all[a] = 3 + 2 * a;
            if (draw(2) == 0) axes[count++] = all[a];
        }
        uint32_t on_axes = 0, replicas = 0;
        for (int level = SMG_LAYOUT_LANE; level < SMG_LAYOUT_LEVELS; level++)
            for (int i = 0; i < l.bits[level]; i++) {
                uint32_t bit = 1u << (i + (level == SMG_LAYOUT_SUBGROUP ? l.bits[SMG_LAYOUT_LANE] : 0));
                if (bit_moves(&l, (smg_layout_level)level, i, axes, count)) on_axes |= bit;
                if (!bit_moves(&l, (smg_layout_level)level, i, all, MOST_AXES)) replicas |= bit;
            }
        assert_int_equal(smg_layout_local_mask(&l, axes, count), on_axes);
        assert_int_equal(smg_layout_local_mask(&l, &(int){-1}, 1), replicas);
        assert_int_equal(smg_layout_replicas(&l), replicas);
        int64_t over = 0;
        for (int64_t reg = 0; reg < smg_layout_registers(&l); reg++) {
            bool again = false;
            for (int64_t old = 0; old < reg && !again; old++) {
                again = true;
                for (int i = 0; i < count; i++)
                    again = again && coordinate(&l, axes[i], (place){.reg = reg}) ==
                                         coordinate(&l, axes[i], (place){.reg = old});
            }
            over += !again;
        }
        assert_int_equal(smg_layout_registers_over(&l, axes, count), over);
        for (int64_t n = 0; n < places(&l); n++) {
            place p = place_of(&l, n);
            for (int a = 0; a < MOST_AXES; a++)
                assert_int_equal(smg_layout_part(&l, all[a], SMG_LAYOUT_REGISTER, p.reg) +
                                     smg_layout_part(&l, all[a], SMG_LAYOUT_LANE, p.lane) +
                                     smg_layout_part(&l, all[a], SMG_LAYOUT_SUBGROUP, p.subgroup),
                                 coordinate_by_definition(&l, all[a], p));
        }
    }
}

/* The same axes with their register bits, and sometimes all bits, in another order. */
static smg_layout shuffled(const smg_layout *l, int levels) {
    smg_layout s = *l;
    for (int n = 0; n < 6; n++) {
        int x = draw(levels), y = draw(levels);
        if (s.bits[x] == 0 || s.bits[y] == 0) continue;
        smg_basis *a = &s.basis[x][draw(s.bits[x])], *b = &s.basis[y][draw(s.bits[y])], old = *a;
        bool copies = (x == SMG_LAYOUT_REGISTER) != (y == SMG_LAYOUT_REGISTER) && (a->axis < 0 || b->axis < 0);
        if (copies) continue; /* registers are not replicated */
        *a = *b;
        *b = old;
    }
    return s;
}

/* Does lane p of `beside` have p's element, its axes of `of`, in the register of `of`? -1: in none. */
static int64_t register_by_definition(const smg_layout *of, const smg_layout *beside, place p) {
    for (int64_t reg = 0; reg < smg_layout_registers(of); reg++) {
        bool same = true;
        for (int i = 0; i < of->axis_count && same; i++) {
            int axis = of->axes[i].axis;
            same = coordinate(of, axis, (place){reg, p.lane, p.subgroup}) == coordinate(beside, axis, p);
        }
        if (same) return reg;
    }
    return -1;
}

static bool readable_by_definition(const smg_layout *of, const smg_layout *beside) {
    for (int i = 0; i < of->axis_count; i++)
        if (smg_layout_span(of, of->axes[i].axis) != smg_layout_span(beside, of->axes[i].axis)) return false;
    for (int64_t n = 0; n < places(beside); n++)
        if (register_by_definition(of, beside, place_of(beside, n)) < 0) return false;
    return true;
}

static void check_beside(const smg_layout *of, const smg_layout *beside) {
    bool readable = smg_layout_readable(of, beside);
    /* A lane may hold by chance what belongs to another: replicas in `of` that are none beside it do no harm. */
    if (readable) assert_true(readable_by_definition(of, beside));
    for (int64_t n = 0; readable && n < places(beside); n++) {
        place p = place_of(beside, n);
        assert_int_equal(smg_layout_register_beside(of, beside, p.reg), register_by_definition(of, beside, p));
    }
}

static void test_keep_and_beside(void **state) {
    (void)state;
    int readable = 0, refused = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        smg_layout l = random_layout();
        int axes[MOST_AXES], count = 0;
        for (int i = 0; i < l.axis_count; i++)
            if (draw(2) == 0) axes[count++] = l.axes[i].axis;
        smg_layout kept = smg_layout_keep(&l, axes, count);
        const char *why;
        assert_true(smg_layout_valid(&kept, &why));
        assert_int_equal(kept.axis_count, count);
        assert_true(smg_layout_readable(&kept, &l));
        check_beside(&kept, &l);
        smg_layout turned = shuffled(&kept, 1); /* registers only */
        assert_true(smg_layout_readable(&turned, &l));
        check_beside(&turned, &l);
        smg_layout moved = shuffled(&kept, SMG_LAYOUT_LEVELS);
        check_beside(&moved, &l);
        if (smg_layout_readable(&moved, &l))
            readable++;
        else
            refused++;
        /* Without replicas the definition decides in both directions. */
        bool replicas = false;
        for (int level = SMG_LAYOUT_LANE; level < SMG_LAYOUT_LEVELS; level++)
            replicas = replicas || smg_layout_mask(&moved, (smg_layout_level)level, -1) != 0;
        if (!replicas) assert_int_equal(smg_layout_readable(&moved, &l), readable_by_definition(&moved, &l));
    }
    assert_true(readable > SOME && refused > SOME);
}

/* The same for an element that is another one along some axes. */
static int64_t picked_by_definition(const smg_layout *of, const smg_layout *beside, const smg_layout_pick *picks,
                                    int count, place p) {
    for (int64_t reg = 0; reg < smg_layout_registers(of); reg++) {
        bool same = true;
        for (int i = 0; i < of->axis_count && same; i++) {
            int axis = of->axes[i].axis;
            int64_t wanted = coordinate(beside, axis, p);
            for (int n = 0; n < count; n++) {
                if (picks[n].axis != axis) continue;
                wanted = picks[n].at;
                if (picks[n].from >= 0) wanted = smg_layout_span(of, axis) - 1 - coordinate(beside, picks[n].from, p);
            }
            same = coordinate(of, axis, (place){reg, p.lane, p.subgroup}) == wanted;
        }
        if (same) return reg;
    }
    return -1;
}

static void test_picks(void **state) {
    (void)state;
    int readable = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout(), of = shuffled(&l, 1), beside = l;
        smg_layout_pick picks[SMG_LAYOUT_PICKS];
        int count = 0;
        for (int i = 0; i < of.axis_count && count < SMG_LAYOUT_PICKS; i++) {
            int axis = of.axes[i].axis;
            if (draw(2) == 0) continue;
            int from = draw(3) == 0 ? axis : draw(4) == 0 ? of.axes[draw(of.axis_count)].axis : -1;
            picks[count++] = (smg_layout_pick){axis, from, draw((int)smg_layout_span(&of, axis))};
        }
        bool yes = smg_layout_readable_at(&of, &beside, picks, count);
        for (int64_t n = 0; yes && n < places(&beside); n++) {
            place p = place_of(&beside, n);
            int64_t reg = picked_by_definition(&of, &beside, picks, count, p);
            assert_true(reg >= 0);
            assert_int_equal(smg_layout_register_at(&of, &beside, picks, count, p.reg), reg);
        }
        /* A constant element is in each lane only where lanes do not decide along its axis. */
        for (int i = 0; yes && i < count; i++)
            for (int level = SMG_LAYOUT_LANE; level < SMG_LAYOUT_LEVELS; level++)
                assert_int_equal(smg_layout_mask(&of, (smg_layout_level)level, picks[i].axis), 0);
        readable += yes && count > 0;
        refused += !yes;
    }
    assert_true(readable > SOME && refused > SOME);
}

/* Do the two hold the same elements in every group of places that `part` numbers? */
static bool same_sets(const smg_layout *a, const smg_layout *b, int64_t (*part)(const smg_layout *l, place p)) {
    for (int side = 0; side < 2; side++) {
        const smg_layout *x = side ? b : a, *y = side ? a : b;
        for (int64_t n = 0; n < places(x); n++) {
            place p = place_of(x, n);
            bool found = false;
            for (int64_t m = 0; m < places(y) && !found; m++) {
                place q = place_of(y, m);
                found = part(x, p) == part(y, q) && element(x, p) == element(y, q);
            }
            if (!found) return false;
        }
    }
    return true;
}

static int64_t by_subgroup(const smg_layout *l, place p) {
    (void)l;
    return p.subgroup;
}

static int64_t by_lane(const smg_layout *l, place p) {
    return p.subgroup * smg_layout_numbers(l, SMG_LAYOUT_LANE) + p.lane;
}

static int64_t by_register(const smg_layout *l, place p) {
    return by_lane(l, p) * smg_layout_registers(l) + p.reg;
}

static void test_conversion(void **state) {
    (void)state;
    int seen[4] = {0};
    for (int round = 0; round < ROUNDS / 4; round++) {
        smg_layout a = random_layout();
        if (places(&a) > 512) continue;
        smg_layout b = shuffled(&a, 1 + draw(SMG_LAYOUT_LEVELS));
        smg_conversion by = SMG_CONVERSION_NONE;
        if (!same_sets(&a, &b, by_subgroup))
            by = SMG_CONVERSION_SHARED;
        else if (!same_sets(&a, &b, by_lane))
            by = SMG_CONVERSION_SHUFFLE;
        else if (!same_sets(&a, &b, by_register))
            by = SMG_CONVERSION_RENAME;
        assert_int_equal(smg_layout_conversion(&a, &b), by);
        seen[by]++;
        assert_int_equal(smg_layout_equal(&a, &b), by == SMG_CONVERSION_NONE);
    }
    for (int i = 0; i < 4; i++) assert_true(seen[i] > SOME / 10);
}

static bool runs(const smg_layout *l, int axis, int64_t run) {
    if (smg_layout_registers(l) % run != 0) return false;
    for (int64_t n = 0; n < places(l); n++) {
        place p = place_of(l, n), first = p;
        first.reg -= p.reg % run;
        int64_t ahead = coordinate(l, axis, p) - coordinate(l, axis, first);
        if (ahead != p.reg % run || coordinate(l, axis, first) % run != 0) return false;
        for (int other = 3; other < 3 + 2 * MOST_AXES; other += 2)
            if (other != axis && coordinate(l, other, p) != coordinate(l, other, first)) return false;
    }
    return true;
}

/* Has the lane of p the element whose coordinate along the axis is `at`, the others those of p? */
static bool lane_has(const smg_layout *l, place p, int axis, int64_t at) {
    for (int64_t reg = 0; reg < smg_layout_registers(l); reg++) {
        place q = {reg, p.lane, p.subgroup};
        bool same = coordinate(l, axis, q) == at;
        for (int other = 3; other < 3 + 2 * MOST_AXES && same; other += 2)
            same = other == axis || coordinate(l, other, q) == coordinate(l, other, p);
        if (same) return true;
    }
    return false;
}

static bool has_run_by_definition(const smg_layout *l, int axis, int width) {
    for (int64_t n = 0; n < places(l); n++) {
        place p = place_of(l, n);
        int64_t first = coordinate(l, axis, p) / width * width;
        for (int i = 0; i < width; i++)
            if (!lane_has(l, p, axis, first + i)) return false;
    }
    return true;
}

static void test_has_run(void **state) {
    (void)state;
    int yes = 0, no = 0;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        const smg_layout_axis *a = &l.axes[draw(l.axis_count)];
        if (smg_layout_registers(&l) > 64) continue;
        for (int width = 1; width <= 1 << a->bits; width *= 2) {
            bool has = smg_layout_has_run(&l, a->axis, width);
            assert_int_equal(has, has_run_by_definition(&l, a->axis, width));
            yes += has && width > 1;
            no += !has;
        }
    }
    assert_true(yes > SOME && no > SOME);
}

/* Elements 0 to count - 1 of the axis, all other coordinates 0, in registers [0, run). */
static bool held_together(const smg_layout *l, int axis, int64_t run, int64_t count) {
    for (int64_t c = 0; c < count; c++) {
        bool found = false;
        for (int64_t lane = 0; lane < smg_layout_numbers(l, SMG_LAYOUT_LANE) && !found; lane++)
            for (int64_t reg = 0; reg < run && !found; reg++) {
                place p = {reg, lane, 0};
                found = coordinate(l, axis, p) == c;
                for (int other = 3; other < 3 + 2 * MOST_AXES; other += 2)
                    found = found && (other == axis || coordinate(l, other, p) == 0);
            }
        if (!found) return false;
    }
    return true;
}

static void test_runs(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        int axis = l.axes[draw(l.axis_count)].axis;
        int64_t run = smg_layout_run(&l, axis), together = smg_layout_neighbours(&l, axis);
        assert_true(runs(&l, axis, run));
        if (run < 64) assert_false(runs(&l, axis, 2 * run));
        assert_true(held_together(&l, axis, run, together));
        assert_false(held_together(&l, axis, run, 2 * together));
    }
}

static void test_groups(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        int axis = l.axes[draw(l.axis_count)].axis;
        const char *why;
        for (int64_t width = smg_layout_run(&l, axis); width > 0; width /= 2) {
            smg_layout groups = smg_layout_groups(&l, axis, width);
            assert_true(smg_layout_valid(&groups, &why));
            assert_int_equal(places(&groups) * width, places(&l));
            for (int64_t n = 0; n < places(&l); n++) {
                place p = place_of(&l, n), q = {p.reg / width, p.lane, p.subgroup};
                for (int other = 3; other < 3 + 2 * MOST_AXES; other += 2)
                    assert_int_equal(coordinate(&groups, other, q),
                                     coordinate(&l, other, p) / (other == axis ? width : 1));
            }
        }
    }
}

static void test_segments(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        int64_t strides[SMG_LAYOUT_AXES], bytes = draw(2) ? 4 : 2, segment = draw(2) ? 32 : 128;
        for (int i = 0; i < l.axis_count; i++) strides[i] = draw(3) ? 1 << draw(6) : draw(100);
        smg_layout_access access = {.strides = strides, .run = 1 << draw(3), .element_bytes = bytes};
        static bool touched[65536];
        memset(touched, 0, sizeof touched);
        int64_t count = 0;
        for (int64_t lane = 0; lane < smg_layout_numbers(&l, SMG_LAYOUT_LANE); lane++) {
            int64_t at = 0;
            for (int i = 0; i < l.axis_count; i++)
                at += strides[i] * coordinate(&l, l.axes[i].axis, (place){.lane = lane});
            for (int64_t byte = at * bytes; byte < (at + access.run) * bytes; byte++) {
                count += !touched[byte / segment];
                touched[byte / segment] = true;
            }
        }
        assert_int_equal(smg_layout_segments(&l, &access, segment), count);
    }
}

/* As many lanes at a time as could fill 32 banks of 4 bytes; as many turns as the bank with the most words has. */
static int64_t turns_by_definition(const smg_layout *l, const smg_layout_access *access) {
    static bool touched[MOST_SPAN];
    int64_t lanes = smg_layout_numbers(l, SMG_LAYOUT_LANE), bytes = access->run * access->element_bytes;
    int64_t together = bytes < 4 ? 32 : 128 / bytes, sum = 0, groups = 0;
    for (int64_t from = 0; from < lanes; from += together, groups++) {
        int64_t words[32] = {0}, worst = 1;
        memset(touched, 0, sizeof touched);
        for (int64_t lane = from; lane < lanes && lane < from + together; lane++) {
            int64_t at = 0;
            for (int i = 0; i < l->axis_count; i++)
                at += access->strides[i] * coordinate(l, l->axes[i].axis, (place){.lane = lane});
            for (int64_t byte = at * access->element_bytes; byte < at * access->element_bytes + bytes; byte++) {
                words[byte / 4 % 32] += !touched[byte / 4];
                touched[byte / 4] = true;
            }
        }
        for (int bank = 0; bank < 32; bank++)
            if (words[bank] > worst) worst = words[bank];
        sum += worst;
    }
    return (sum + groups - 1) / groups;
}

static int64_t turns(int64_t lanes, int64_t step, int64_t run) {
    smg_layout l = smg_layout_one();
    smg_layout_add(&l, SMG_LAYOUT_LANE, 0, lanes);
    smg_layout_access access = {.strides = &step, .run = run, .element_bytes = 4};
    return smg_layout_bank_turns(&l, &access);
}

static void test_banks(void **state) {
    (void)state;
    assert_int_equal(turns(32, 1, 1), 1);
    assert_int_equal(turns(32, 2, 1), 2);
    assert_int_equal(turns(32, 8, 1), 8);
    assert_int_equal(turns(32, 32, 1), 32);
    assert_int_equal(turns(32, 33, 1), 1);
    assert_int_equal(turns(32, 0, 1), 1);
    assert_int_equal(turns(32, 4, 4), 1);
    assert_int_equal(turns(32, 32, 4), 8);
    assert_int_equal(turns(32, 36, 4), 1);
    assert_int_equal(turns(8, 16, 4), 4);
    assert_int_equal(turns(64, 1, 1), 1);
    int worse = 0;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = smg_layout_one();
        int64_t strides[2] = {draw(3) ? 1 << draw(6) : draw(40), draw(3) ? 1 << draw(6) : draw(40)};
        for (int axis = 0; axis < 2; axis++) smg_layout_add(&l, SMG_LAYOUT_LANE, axis, 1);
        for (int bits = draw(8); bits > 0; bits--) {
            if (draw(4) == 0)
                smg_layout_replicate(&l, SMG_LAYOUT_LANE, 2);
            else
                smg_layout_add(&l, SMG_LAYOUT_LANE, draw(2), 2);
        }
        smg_layout_access access = {.strides = strides, .run = 1 << draw(3), .element_bytes = draw(2) ? 4 : 2};
        int64_t expected = turns_by_definition(&l, &access);
        assert_int_equal(smg_layout_bank_turns(&l, &access), expected);
        worse += expected > 1;
    }
    assert_true(worse > SOME);
}

/* Digits and repeats say the same as bases. */
static void test_digits(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        smg_layout_digit digits[SMG_LAYOUT_LEVEL_BITS];
        for (int level = 0; level < SMG_LAYOUT_LEVELS; level++) {
            int count = smg_layout_digits(&l, (smg_layout_level)level, digits);
            for (int64_t n = 0; n < smg_layout_numbers(&l, (smg_layout_level)level); n++) {
                int64_t sum[3 + 2 * MOST_AXES] = {0}, number[SMG_LAYOUT_LEVELS] = {0};
                number[level] = n;
                for (int i = 0; i < count; i++)
                    if (digits[i].axis >= 0)
                        sum[digits[i].axis] += n / digits[i].below % digits[i].count * digits[i].step;
                for (int axis = 3; axis < 3 + 2 * MOST_AXES; axis += 2)
                    assert_int_equal(sum[axis], coordinate(&l, axis, (place){number[0], number[1], number[2]}));
            }
        }
        for (int64_t reg = 0; reg < smg_layout_registers(&l); reg++)
            for (int i = 0; i < l.axis_count; i++) {
                smg_layout_digit r = smg_layout_repeats(&l, l.axes[i].axis);
                int64_t block = coordinate(&l, l.axes[i].axis, (place){.reg = reg}) >> l.axes[i].bits;
                assert_int_equal(reg / r.below % r.count, block);
                if (r.count > 1) assert_int_equal(r.step, (int64_t)1 << l.axes[i].bits);
            }
    }
}

static void test_turn(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        smg_layout l = random_layout();
        const smg_layout_axis *a = &l.axes[draw(l.axis_count)];
        int64_t by = draw(1 << a->bits);
        uint32_t masks[SMG_LAYOUT_LEVELS];
        smg_layout_turn(&l, a->axis, by, masks);
        for (int64_t n = 0; n < places(&l); n++) {
            place p = place_of(&l, n), q = {p.reg ^ masks[0], p.lane ^ masks[1], p.subgroup ^ masks[2]};
            assert_int_equal(coordinate(&l, a->axis, q), coordinate(&l, a->axis, p) ^ by);
            for (int other = 3; other < 3 + 2 * MOST_AXES; other += 2)
                if (other != a->axis) assert_int_equal(coordinate(&l, other, q), coordinate(&l, other, p));
        }
    }
}

/* One axis of so many elements, its bits in any order over registers and lanes. */
static smg_layout random_row(int axis, int bits) {
    int order[SMG_LAYOUT_ORDER_BITS] = {0};
    smg_layout l = smg_layout_one();
    for (int i = 0; i < bits; i++) {
        int at = draw(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < bits; i++) {
        smg_layout_level level = draw(2) ? SMG_LAYOUT_REGISTER : SMG_LAYOUT_LANE;
        smg_layout_set(&l, level, l.bits[level], (smg_basis){(int8_t)axis, (int8_t)order[i]});
    }
    return l;
}

/* Element c of block n in the other order. */
static int64_t in_order(const smg_layout_order *o, int bits, int both, int64_t c, int64_t n) {
    int64_t at = n << both;
    for (int i = 0; i < bits; i++) at += (c >> i & 1) << o->bit[i];
    return at;
}

/* Of blocks behind each other in registers each lane has whole runs, by either layout, and no two elements meet. */
static void check_runs_of(const smg_layout *l, int axis, const smg_layout_order *o, int bits, int both, int width) {
    int64_t blocks = INT64_C(1) << (o->run - bits), total = blocks << bits;
    static bool any[MOST_SPAN];
    memset(any, 0, sizeof any);
    for (int64_t lane = 0; lane < smg_layout_numbers(l, SMG_LAYOUT_LANE); lane++) {
        static bool held[MOST_SPAN];
        memset(held, 0, sizeof held);
        for (int64_t reg = 0; reg < smg_layout_registers(l); reg++)
            for (int64_t n = 0; n < blocks; n++) {
                int64_t at = in_order(o, bits, both, coordinate(l, axis, (place){reg, lane, 0}), n);
                assert_in_range(at, 0, total - 1);
                assert_false(any[at]);
                any[at] = held[at] = true;
            }
        for (int64_t first = 0; first < total; first += width)
            for (int i = 1; i < width; i++) assert_int_equal(held[first + i], held[first]);
    }
    for (int64_t at = 0; at < total; at++) assert_true(any[at]);
}

static void test_in_runs(void **state) {
    (void)state;
    int alone = 0, with_blocks = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int bits = 1 + draw(5), both = 0, width = 1 << draw(4);
        smg_layout a = random_row(3, bits), b = random_row(5, bits);
        for (int i = 0; i < bits; i++) {
            int64_t by = INT64_C(1) << i; /* another element of the same lane, by both */
            both += lane_has(&a, (place){0}, 3, coordinate(&a, 3, (place){0}) ^ by) &&
                    lane_has(&b, (place){0}, 5, coordinate(&b, 5, (place){0}) ^ by);
        }
        smg_layout_order o = smg_layout_in_runs(&a, 3, &b, 5, width);
        check_runs_of(&a, 3, &o, bits, both, width);
        check_runs_of(&b, 5, &o, bits, both, width);
        alone += width > 1 && o.run == bits;
        with_blocks += o.run > bits;
    }
    assert_true(alone > SOME && with_blocks > SOME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinates),  cmocka_unit_test(test_valid_covers_once),
        cmocka_unit_test(test_invalid),      cmocka_unit_test(test_shape),
        cmocka_unit_test(test_several_axes), cmocka_unit_test(test_keep_and_beside),
        cmocka_unit_test(test_picks),        cmocka_unit_test(test_conversion),
        cmocka_unit_test(test_runs),         cmocka_unit_test(test_has_run),
        cmocka_unit_test(test_groups),       cmocka_unit_test(test_segments),
        cmocka_unit_test(test_banks),        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_turn),         cmocka_unit_test(test_in_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
