/* glsl_exchange.c: what lanes tell each other. JOIN inside a subgroup by the operation that the program names;
 * LEAVE, FOLD and GATHER through the words of an exchange, between barriers that the program has. */
#include "glsl_private.h"

static const char *subgroup_word(smg_combine combine) {
    static const char *const words[SMG_COMBINE_COUNT] = {
        [SMG_COMBINE_ADD] = "Add", [SMG_COMBINE_MAX] = "Max", [SMG_COMBINE_MIN] = "Min", [SMG_COMBINE_MUL] = "Mul"};
    return words[combine];
}

/* A loop over `count` registers, written out; the register's number in the text. */
static const char *open_registers(glsl_writer *w, int count) {
    if (count == 1) {
        glsl_open(w, "");
        return "0";
    }
    GLSL_LINE(w, "[[unroll]]");
    glsl_open(w, GLSL_STRING(w, "for (int r = 0; r < %d; ++r)", count));
    return "r";
}

static void join_register(glsl_writer *w, const smg_instr *instr, const char *name, uint32_t lanes) {
    const char *word = subgroup_word(instr->combine);
    switch (instr->form) {
    case SMG_JOIN_WHOLE:
        w->uses[GLSL_USE_ARITHMETIC] = true;
        GLSL_LINE(w, "%s = subgroup%s(%s);", name, word, name);
        break;
    case SMG_JOIN_CLUSTERED:
        w->uses[GLSL_USE_CLUSTERED] = true;
        GLSL_LINE(w, "%s = subgroupClustered%s(%s, %uu);", name, word, name, lanes + 1);
        break;
    case SMG_JOIN_XOR:
        w->uses[GLSL_USE_SHUFFLE] = true;
        for (uint32_t bit = (uint32_t)w->k->subgroup / 2; bit > 0; bit /= 2) {
            if ((lanes & bit) == 0) continue;
            const char *other = GLSL_STRING(w, "subgroupShuffleXor(%s, %uu)", name, bit);
            GLSL_LINE(w, "%s = %s;", name, glsl_combined(w, instr->combine, name, other));
        }
        break;
    case SMG_JOIN_OPEN: glsl_fail(w, SMG_INTERNAL, "lanes join in no form"); break;
    }
}

void glsl_join(glsl_writer *w, const smg_instr *instr) {
    smg_exchange e = smg_kernel_exchange(w->k, instr);
    int registers = (int)smg_tile_registers(w->k, &w->k->tiles.items[instr->dst]);
    if ((e.joined | e.parts) == 0) return;
    w->uses[GLSL_USE_SUBGROUP] = true;
    const char *r = open_registers(w, registers);
    join_register(w, instr, glsl_register(w, instr->dst, r), e.joined);
    glsl_close(w);
}

/* The unit that the invocation is in. */
static const char *unit_of(glsl_writer *w, const smg_exchange *e) {
    return e->width > 1 ? GLSL_STRING(w, "(local / %d)", e->width) : "local";
}

/* The condition that picks the lane that speaks for its unit; "" where each does. */
static const char *speaker(glsl_writer *w, const smg_exchange *e) {
    uint32_t copies = e->width > 1 ? (uint32_t)e->width - 1 : e->joined;
    return copies == 0 ? "" : GLSL_STRING(w, "if ((local & %u) == 0)", copies);
}

void glsl_leave(glsl_writer *w, const smg_instr *instr) {
    if (instr->matrices) {
        glsl_leave_matrices(w, instr);
        return;
    }
    smg_exchange e = smg_kernel_exchange(w->k, instr);
    glsl_open(w, speaker(w, &e));
    const char *r = open_registers(w, instr->registers);
    const char *from = GLSL_STRING(w, instr->first > 0 ? "%s + %d" : "%s", r, instr->first);
    GLSL_LINE(w, "t_%s[%s] = %s;", w->tile_name[instr->dst],
              glsl_plus(w, glsl_times_literal(w, r, e.units), unit_of(w, &e)), glsl_register(w, instr->a, from));
    glsl_close(w);
    glsl_close(w);
}

/* `total` becomes the combination of the register's words behind `place`: a loop over each run of bits in which the
 * units differ. */
static void add_words(glsl_writer *w, const smg_instr *instr, const smg_exchange *e, const char *words,
                      const char *place) {
    int loops = 0;
    for (uint32_t rest = e->parts; rest != 0; loops++) {
        uint32_t lowest = rest & (~rest + 1), run = rest & ~(rest + lowest);
        uint32_t count = run / lowest + 1;
        if (e->part_count <= 32) GLSL_LINE(w, "[[unroll]]");
        glsl_open(w, GLSL_STRING(w, "for (int p%d = 0; p%d < %u; ++p%d)", loops, loops, count, loops));
        place = glsl_plus(w, place, glsl_times_literal(w, GLSL_STRING(w, "p%d", loops), (int64_t)lowest));
        rest &= ~run;
    }
    GLSL_LINE(w, "total = %s;", glsl_combined(w, instr->combine, "total", GLSL_STRING(w, "t_%s[%s]", words, place)));
    for (; loops > 0; loops--) glsl_close(w);
}

static void total_of(glsl_writer *w, const smg_instr *instr, const smg_exchange *e, int tile, const char *place) {
    smg_kind kind = smg_tile_kind(&w->k->tiles.items[tile]);
    GLSL_LINE(w, "%s total = %s;", glsl_kind(kind), glsl_constant(w, kind, smg_combine_identity(instr->combine)));
    add_words(w, instr, e, w->tile_name[tile], place);
}

/* Where the first word lies of those that belong to the invocation's. */
static void open_first(glsl_writer *w, const smg_exchange *e, const char *head) {
    glsl_open(w, head);
    GLSL_LINE(w, "int first = int(uint(%s) & ~%uu);", unit_of(w, e), e->others);
}

/* The number of the unit among those that hold parts of the same values. */
static const char *part_number(glsl_writer *w, const smg_exchange *e) {
    const char *sum = "0";
    uint32_t below = 1;
    for (uint32_t rest = e->parts; rest != 0;) {
        uint32_t lowest = rest & (~rest + 1), run = rest & ~(rest + lowest), count = run / lowest + 1;
        const char *digit = GLSL_STRING(w, "(%s / %u %% %u)", unit_of(w, e), lowest, count);
        sum = glsl_plus(w, sum, glsl_times_literal(w, digit, below));
        below *= count;
        rest &= ~run;
    }
    return sum;
}

void glsl_fold(glsl_writer *w, const smg_instr *instr) {
    smg_exchange e = smg_kernel_exchange(w->k, instr);
    open_first(w, &e, speaker(w, &e));
    glsl_open(w, GLSL_STRING(w, "for (int r = %s; r < %d; r += %lld)", part_number(w, &e), instr->registers,
                             (long long)e.part_count));
    const char *place = glsl_plus(w, glsl_times_literal(w, "r", e.units), "first");
    total_of(w, instr, &e, instr->dst, place);
    GLSL_LINE(w, "t_%s[%s] = total;", w->tile_name[instr->dst], place);
    glsl_close(w);
    glsl_close(w);
}

void glsl_gather(glsl_writer *w, const smg_instr *instr) {
    if (instr->matrices) {
        glsl_gather_matrices(w, instr);
        return;
    }
    smg_exchange e = smg_kernel_exchange(w->k, instr);
    open_first(w, &e, "");
    const char *r = open_registers(w, instr->registers);
    const char *to = GLSL_STRING(w, instr->first > 0 ? "%s + %d" : "%s", r, instr->first);
    const char *left = r;
    if (instr->b >= 0) {
        const char *share = glsl_times_literal(w, part_number(w, &e), instr->registers);
        left = GLSL_STRING(w, "(%s)", glsl_plus(w, share, r));
    }
    const char *place = glsl_plus(w, glsl_times_literal(w, left, e.units), "first");
    if (!instr->folded) total_of(w, instr, &e, instr->a, place);
    GLSL_LINE(w, "%s = %s;", glsl_register(w, instr->dst, to),
              instr->folded ? GLSL_STRING(w, "t_%s[%s]", w->tile_name[instr->a], place) : "total");
    glsl_close(w);
    glsl_close(w);
}
