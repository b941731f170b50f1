/* glsl_store.c: STORE. Lanes that hold copies share out the rows. */
#include "glsl_private.h"

static void store_element(glsl_writer *w, glsl_iter *it, int a, const char *value, smg_kind kind) {
    const smg_access *access = &w->k->accesses.items[a];
    smg_type type = w->k->buffers.items[access->buffer].type;
    const char *address = glsl_indexed_address(w, it, a, NULL);
    const char *text = glsl_buffer_value(w, type, value, kind);
    w->buffer_words[access->buffer] = true;
    GLSL_LINE(w, "g_%s[%s] = %s;", w->buffer_name[access->buffer], address, text);
}

/* The group at hand along the run axis; inputs that lie so are loaded by groups, too. */
static void store_members(glsl_writer *w, glsl_iter *it, const smg_instr *instr, smg_wide wide) {
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    int group = wide.width, run = wide.axis;
    const char *part[SMG_WIDE], *first = it->coord[run], *j = it->j;
    glsl_load_groups(w, it, instr->expr, wide);
    for (it->member = 0; it->member < group; it->member++) {
        if (it->member > 0) {
            it->coord[run] = GLSL_STRING(w, "(%s + %d)", first, it->member);
            it->j = GLSL_STRING(w, "(%s + %d)", j, it->member);
        }
        part[it->member] = glsl_convert(w, glsl_expr_text(w, it, instr->expr), kind, SMG_KIND_FLOAT);
        glsl_expr_forget(w, it);
    }
    it->member = 0;
    it->j = j;
    it->coord[run] = first;
    glsl_forget_groups(w, it);
    const char *value = group == SMG_PAIR ? GLSL_STRING(w, "vec2(%s, %s)", part[0], part[1])
                                          : GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]);
    glsl_store_group(w, it, instr->a, group, value);
}

/* What the lane owns of one outer register: by elements, or by groups whose members are valid together. */
static void store_inner(glsl_writer *w, glsl_iter *it, const smg_instr *instr, smg_wide wide) {
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    it->j_step = wide.width > 0 ? wide.width : 1;
    glsl_inner_open(w, it);
    const char *valid = glsl_all_valid(w, it, instr->axes, instr->axis_count);
    if (valid != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", valid));
    if (wide.width > 0)
        store_members(w, it, instr, wide);
    else
        store_element(w, it, instr->a, glsl_expr_text(w, it, instr->expr), kind);
    if (valid != NULL) glsl_close(w);
    glsl_inner_close(w, it);
    it->j_step = 1;
}

/* Whose turn it is stands around the loop over rows: drivers do not write out a loop with such a condition inside, and
 * sums that it counts through then lie in local memory instead of registers. */
static void store_outer(glsl_writer *w, glsl_iter *it, const smg_instr *instr, smg_wide wide) {
    int sharers = glsl_sharers(w, it);
    it->i_step = sharers;
    for (int copy = 0; copy < sharers; copy++) {
        const char *turn = glsl_sharer(w, it, copy);
        it->i_first = copy;
        if (turn != NULL) glsl_open(w, GLSL_STRING(w, "%sif (%s)", copy > 0 ? "else " : "", turn));
        glsl_outer_open(w, it);
        store_inner(w, it, instr, wide);
        glsl_outer_close(w, it);
        if (turn != NULL) glsl_close(w);
        glsl_expr_forget(w, it);
    }
    it->i_first = 0;
    it->i_step = 1;
}

/* ---- by neighbours ------------------------------------------------------------------------------------------ */

#define TRADED 4 /* elements of a lane that take part in one exchange: two bits of their register's number */

/* Element m of the four at hand, as the expression has it. */
static const char *traded_part(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const smg_trade *t, int m) {
    const char *first = it->coord[t->col], *j = it->j, *valid = it->valid[t->col];
    int64_t on = (m & 1 ? t->columns[0] : 0) + (m & 2 ? t->columns[1] : 0);
    if (m > 0) {
        it->coord[t->col] = GLSL_STRING(w, "(%s + %lld)", first, (long long)on);
        it->j = GLSL_STRING(w, "(%s + %d)", j, m);
        if (valid != NULL) it->valid[t->col] = GLSL_STRING(w, "(%s)", glsl_valid_text(w, t->col, it->coord[t->col]));
    }
    smg_kind kind = smg_expr_get(w->k->exprs, instr->expr)->kind;
    const char *part = glsl_convert(w, glsl_expr_text(w, it, instr->expr), kind, SMG_KIND_FLOAT);
    glsl_expr_forget(w, it);
    it->coord[t->col] = first;
    it->j = j;
    it->valid[t->col] = valid;
    return part;
}

/* Lanes that differ in the bit keep one of two words and give the other away. */
static void trade_words(glsl_writer *w, uint32_t lane) {
    GLSL_LINE(w, "upper = (gl_SubgroupInvocationID & %uu) != 0u;", lane);
    GLSL_LINE(w, "given = subgroupShuffleXor(upper ? x0 : x1, %uu);", lane);
    GLSL_LINE(w, "x0 = upper ? given : x0;");
    GLSL_LINE(w, "x1 = upper ? x1 : given;");
}

static void exchange_four(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const smg_trade *t) {
    const char *part[TRADED];
    for (int m = 0; m < TRADED; m++) part[m] = traded_part(w, it, instr, t, m);
    GLSL_LINE(w, "uint x0 = packFloat2x16(f16vec2(vec2(%s, %s)));", part[0], part[2]);
    GLSL_LINE(w, "uint x1 = packFloat2x16(f16vec2(vec2(%s, %s))), given;", part[1], part[3]);
    GLSL_LINE(w, "bool upper;");
    trade_words(w, t->lane[0]);
    GLSL_LINE(w, "f16vec2 u0 = unpackFloat2x16(x0), u1 = unpackFloat2x16(x1);");
    GLSL_LINE(w, "x0 = packFloat2x16(f16vec2(u0.x, u1.x));");
    GLSL_LINE(w, "x1 = packFloat2x16(f16vec2(u0.y, u1.y));");
    trade_words(w, t->lane[1]);
    GLSL_LINE(w, "u0 = unpackFloat2x16(x0);");
    GLSL_LINE(w, "u1 = unpackFloat2x16(x1);");
}

/* The four elements that the lane has then are of one column, in rows apart. */
static void store_four(glsl_writer *w, glsl_iter *it, const smg_instr *instr, const smg_trade *t) {
    const smg_access *access = &w->k->accesses.items[instr->a];
    w->buffer_words[access->buffer] = true;
    GLSL_LINE(w, "int to_row = %s;",
              glsl_plus(w, glsl_register_part(w, &it->outer, t->row, it->i), glsl_lane_part(w, &t->stored, t->row)));
    GLSL_LINE(w, "int to_col = %s;",
              glsl_plus(w, glsl_register_part(w, &it->inner, t->col, it->j), glsl_lane_part(w, &t->stored, t->col)));
    const char *to = glsl_plus(w, it->address[instr->a], glsl_address_part(w, access, t->col, "to_col"));
    GLSL_LINE(w, "int to = %s;", glsl_plus(w, to, glsl_address_part(w, access, t->row, "to_row")));
    const char *in_col = glsl_always_valid(w, t->col) ? NULL : glsl_valid_text(w, t->col, "to_col");
    for (int m = 0; m < TRADED; m++) {
        int64_t on = (m & 1 ? t->rows[0] : 0) + (m & 2 ? t->rows[1] : 0);
        const char *row = on == 0 ? "to_row" : GLSL_STRING(w, "(to_row + %lld)", (long long)on);
        const char *valid = glsl_always_valid(w, t->row) ? NULL : glsl_valid_text(w, t->row, row);
        const char *down = glsl_address_part(w, access, t->row, GLSL_STRING(w, "%lld", (long long)on));
        valid = glsl_both(w, in_col, valid);
        GLSL_LINE(w, "%sg_%s[%s] = u%d[%d];", valid != NULL ? GLSL_STRING(w, "if (%s) ", valid) : "",
                  w->buffer_name[access->buffer], on == 0 ? "to" : glsl_plus(w, "to", down), m >> 1, m & 1);
    }
}

/* All lanes take part in the exchange, also those whose elements are not valid. */
static void store_exchanged(glsl_writer *w, glsl_iter *it, const smg_instr *instr) {
    smg_trade t;
    if (!smg_kernel_trades(w->k, instr, &t)) {
        glsl_fail(w, SMG_INTERNAL, "lanes exchange what they store, and hold no columns of rows");
        return;
    }
    w->uses[GLSL_USE_SUBGROUP] = w->uses[GLSL_USE_SHUFFLE] = true;
    w->uses[GLSL_USE_FLOAT16] = w->uses[GLSL_USE_16BIT] = true;
    glsl_open(w, "");
    glsl_hoist(w, it);
    it->access_used[instr->a] = false; /* its rows are others than those that the lane computes */
    it->j_step = TRADED;
    glsl_outer_open(w, it);
    glsl_inner_open(w, it);
    exchange_four(w, it, instr, &t);
    store_four(w, it, instr, &t);
    glsl_inner_close(w, it);
    glsl_outer_close(w, it);
    glsl_report(w, it);
    glsl_close(w);
}

void glsl_write_store(glsl_writer *w, const smg_instr *instr) {
    const smg_access *access = &w->k->accesses.items[instr->a];
    glsl_iter it;
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return;
    glsl_check_axes(&it, instr->axes, instr->axis_count);
    glsl_expr_prepare(w, &it, instr->expr);
    if (access->index != SMG_EXPR_NONE) glsl_expr_prepare(w, &it, access->index);
    it.access_used[instr->a] = true;
    if (instr->exchanged) {
        store_exchanged(w, &it, instr);
        return;
    }
    const char *whole = instr->matrices ? glsl_whole(w, instr, instr->a) : NULL;
    if (instr->matrices) {
        glsl_store_matrices(w, instr, whole);
        if (whole == NULL) return;
        GLSL_LINE(w, "else");
    }
    const char *once = glsl_once_a_copy(w, &it), *condition = NULL;
    glsl_open(w, once == NULL ? "" : GLSL_STRING(w, "if (%s)", once));
    glsl_hoist(w, &it);
    smg_wide wide = instr->wide[instr->matrices ? 1 : 0];
    if (wide.width > 0) condition = glsl_aligned(w, instr->a, wide);
    if (condition != NULL) glsl_open(w, GLSL_STRING(w, "if (%s)", condition));
    if (wide.width > 0) store_outer(w, &it, instr, wide);
    if (condition != NULL) {
        glsl_close(w);
        glsl_open(w, "else");
    }
    if (wide.width == 0 || condition != NULL) store_outer(w, &it, instr, (smg_wide){0});
    if (condition != NULL) glsl_close(w);
    glsl_report(w, &it);
    glsl_close(w);
}
