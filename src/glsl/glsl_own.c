/* glsl_own.c: MMA whose left factor each lane holds itself. Lanes are rows, so an element of the right factor is the
 * same for all of them: one load, by a 64-bit address where the program says so, because loads from bindings are
 * checked against their ends one by one. What is behind the end of an axis is read as its last element: of columns
 * nobody looks at those sums, and along the contraction the left factor is 0 there. Written out, so that sums are
 * registers; neighbours of the right factor are one load by four where they lie so. */
#include "glsl_private.h"

typedef struct own_form {
    glsl_iter it;
    const smg_instr *instr;
    const smg_access *b;
    const glsl_pointer *pointer; /* NULL: not by address */
    int pairs;                   /* then the axis of which two neighbours are one word; -1 */
    int together;                /* k that are written out */
    const char *from;            /* the first of them */
    bool k_ends, columns_end;    /* may lie behind the end */
    bool four_columns, four_k;   /* neighbours of the right factor are read by four */
    glsl_sums sums;
} own_form;

static const char *number(glsl_writer *w, int64_t value) {
    return GLSL_STRING(w, "%lld", (long long)value);
}

static bool is_column(const own_form *f, int axis) {
    for (int n = 0; n < f->it.inner_count; n++)
        if (f->it.inner_axes[n] == axis) return true;
    return false;
}

/* What lies behind what is multiplied at x and j along the axis: the register's part, and the lane's if it has one. */
static const char *coordinate(glsl_writer *w, const own_form *f, int axis, int x, int j) {
    if (axis == f->instr->axes[0]) return glsl_plus(w, f->from, number(w, x));
    int64_t at = smg_layout_part(&f->it.inner, axis, SMG_LAYOUT_REGISTER, j);
    return glsl_plus(w, number(w, at), glsl_lane_part(w, &f->it.layout, axis));
}

/* Does each element along the axis have a place of its own? Else they are constant distances apart. */
static bool apart(const own_form *f, int axis) {
    return axis == f->instr->axes[0] ? f->k_ends : is_column(f, axis) && f->columns_end;
}

/* "b2_0": the right factor from the x-th k and column j on, as far as they have places of their own. */
static const char *place_name(glsl_writer *w, const own_form *f, int x, int j) {
    return GLSL_STRING(w, "b%d_%d", f->k_ends ? x : 0, f->columns_end ? j : 0);
}

/* What term i adds to the place in panels, whose axes come out even. */
static const char *panel_place(glsl_writer *w, const own_form *f, int i, int x, int j) {
    int axis = f->b->axis[i];
    const char *base = glsl_base_part(w, f->b, i);
    if (axis != f->instr->axes[0] && !is_column(f, axis)) return base;
    const char *at = coordinate(w, f, axis, x, j);
    if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
    return glsl_plus(w, base, glsl_address_part(w, f->b, axis, at));
}

static void declare_place(glsl_writer *w, const own_form *f, int x, int j) {
    const char *sum = glsl_offset_part(w, f->b), *name = place_name(w, f, x, j);
    for (int i = 0; i < f->b->axis_count; i++) {
        int axis = f->b->axis[i];
        const char *at = glsl_base(w, axis);
        if (glsl_by_blocks(w, f->b)) {
            sum = glsl_plus(w, sum, panel_place(w, f, i, x, j));
            continue;
        }
        if (axis == f->instr->axes[0] || is_column(f, axis)) at = glsl_plus(w, at, coordinate(w, f, axis, x, j));
        if (apart(f, axis) && !glsl_always_valid(w, axis))
            at = GLSL_STRING(w, "min(%s, %s - 1)", at, glsl_size(w, w->k->axes.items[axis].extent));
        else if (strchr(at, ' ') != NULL)
            at = GLSL_STRING(w, "(%s)", at);
        sum = glsl_plus(w, sum, glsl_times(w, at, f->b->stride[i]));
    }
    if (f->pointer == NULL) {
        GLSL_LINE(w, "int %s = %s;", name, sum);
        return;
    }
    w->address_used[f->b->buffer] = true;
    const char *word = f->pointer->word;
    if (f->pairs >= 0) word = glsl_pointer_to_pairs(w);
    if (f->four_columns || f->four_k) word = glsl_pointer_to_groups(w, SMG_TYPE_F32, SMG_WIDE);
    GLSL_LINE(w, "%s %s = %s(push.a_%s + %dul * uint64_t(uint(%s)));", word, name, word, w->buffer_name[f->b->buffer],
              f->pointer->bytes, sum);
}

static const char *right_element(glsl_writer *w, const own_form *f, int x, int j) {
    const char *name = place_name(w, f, x, j), *on = "0";
    int k = f->instr->axes[0], half = f->pairs == k ? x % 2 : 0;
    if (!f->k_ends) on = glsl_address_number(w, f->b, k, x - half);
    for (int n = 0; n < f->it.inner_count && !f->columns_end; n++) {
        int axis = f->it.inner_axes[n];
        int64_t at = smg_layout_part(&f->it.inner, axis, SMG_LAYOUT_REGISTER, j);
        if (axis == f->pairs) half = (int)(at % 2);
        if (axis == f->pairs) at -= half;
        if (at != 0) on = glsl_plus(w, on, glsl_address_number(w, f->b, axis, at));
    }
    if (f->pairs >= 0) return glsl_pair_element(w, w->k->buffers.items[f->b->buffer].type, name, on, half);
    if (f->pointer != NULL) return GLSL_STRING(w, "%s%s.v[%s]%s", f->pointer->before, name, on, f->pointer->behind);
    return glsl_buffer_element(w, f->b->buffer, glsl_plus(w, name, on));
}

/* Along which axis are two elements of the right factor one word? None where each has a place of its own. */
static int axis_of_pairs(const glsl_writer *w, const own_form *f) {
    for (int i = 0; i < f->b->axis_count; i++) {
        int axis = f->b->axis[i];
        bool along = axis == f->instr->axes[0] && f->together % SMG_PAIR == 0;
        if ((along || is_column(f, axis)) && !apart(f, axis) && glsl_lies_in_pairs(w, f->instr->b, axis)) return axis;
    }
    return -1;
}

/* The register of the x-th k, of row i, that lanes hold. */
static const char *left_element(glsl_writer *w, const own_form *f, int i, int x) {
    const smg_layout *held = &w->k->layouts.items[w->k->tiles.items[f->instr->a].layout];
    int64_t at[SMG_LAYOUT_AXES], next[SMG_LAYOUT_AXES];
    for (int n = 0; n < held->axis_count; n++) {
        int axis = held->axes[n].axis;
        bool k = axis == f->instr->axes[0];
        at[n] = k ? x : smg_layout_part(&f->it.outer, axis, SMG_LAYOUT_REGISTER, i);
        next[n] = k ? x + 1 : at[n];
    }
    int64_t first = smg_layout_register_of(held, at), step = 1;
    if (strcmp(f->from, "0") != 0) step = smg_layout_register_of(held, next) - first;
    const char *place = glsl_plus(w, glsl_times_literal(w, f->from, step), number(w, first));
    return glsl_register(w, f->instr->a, place);
}

/* ---- by four ---------------------------------------------------------------------------------------- */

/* Elements from the place's address to the x-th k of column j; false: the run's sizes say. */
static bool known_distance(const glsl_writer *w, const own_form *f, int x, int j, int64_t *out_elements) {
    int k = f->instr->axes[0];
    int64_t part = 0;
    *out_elements = 0;
    if (!f->k_ends && !glsl_address_distance(w, f->b, k, x, out_elements)) return false;
    for (int n = 0; n < f->it.inner_count && !f->columns_end; n++) {
        int64_t at = smg_layout_part(&f->it.inner, f->it.inner_axes[n], SMG_LAYOUT_REGISTER, j);
        if (!glsl_address_distance(w, f->b, f->it.inner_axes[n], at, &part)) return false;
        *out_elements += part;
    }
    return true;
}

/* Does every fourth k, or column, begin a group of the address's with the next three? */
static bool lies_by_four(const glsl_writer *w, const own_form *f, bool along_k) {
    for (int x = 0; x < f->together; x++)
        for (int j = 0; j < f->it.inner_registers; j++) {
            int n = (along_k ? x : j) % SMG_WIDE;
            int64_t first, here;
            if (!known_distance(w, f, along_k ? x - n : x, along_k ? j : j - n, &first)) return false;
            if (!known_distance(w, f, x, j, &here) || first % SMG_WIDE != 0 || here != first + n) return false;
        }
    return true;
}

static void find_fours(const glsl_writer *w, own_form *f) {
    bool floats = f->pointer != NULL && w->k->buffers.items[f->b->buffer].type == SMG_TYPE_F32;
    f->four_columns = floats && f->sums.group == SMG_WIDE && !f->columns_end && lies_by_four(w, f, false);
    f->four_k = floats && !f->four_columns && !f->k_ends && f->together % SMG_WIDE == 0 && lies_by_four(w, f, true);
}

static const char *four_at(glsl_writer *w, const own_form *f, int x, int j) {
    int64_t elements = 0;
    known_distance(w, f, x, j, &elements);
    return GLSL_STRING(w, "%s.v[%lld]", place_name(w, f, x, j), (long long)elements / SMG_WIDE);
}

/* ---- multiply-adds ---------------------------------------------------------------------------------- */

/* k that are multiplied before the next columns are. */
static int step_of(const own_form *f) {
    return f->four_k ? SMG_WIDE : 1;
}

/* The right factor's columns of one vector, from j on, for the k from x on: fb0 to fb3. */
static void read_right(glsl_writer *w, const own_form *f, int x, int j) {
    const char *parts[SMG_WIDE] = {"", "", "", ""};
    int group = f->sums.group;
    for (int n = 0; f->four_k && n < group; n++) GLSL_LINE(w, "c%d = %s;", n, four_at(w, f, x, j + n));
    for (int m = 0; m < step_of(f); m++) {
        for (int n = 0; n < group && !f->four_columns; n++)
            parts[n] = f->four_k ? GLSL_STRING(w, "c%d[%d]", n, m) : right_element(w, f, x, j + n);
        GLSL_LINE(w, "fb%d = %s;", m, f->four_columns ? four_at(w, f, x, j) : glsl_vector_of(w, parts, group));
    }
}

static void multiply(glsl_writer *w, const own_form *f, int x) {
    int rows = f->it.outer_registers, step = step_of(f);
    for (int i = 0; i < rows; i++)
        for (int m = 0; m < step; m++) GLSL_LINE(w, "fa%d = %s;", i * step + m, left_element(w, f, i, x + m));
    for (int j = 0; j < f->it.inner_registers; j += f->sums.group) {
        read_right(w, f, x, j);
        for (int i = 0; i < rows; i++)
            for (int m = 0; m < step; m++)
                glsl_add_products(w, &f->sums, i, j, GLSL_STRING(w, "fa%d", i * step + m), GLSL_STRING(w, "fb%d", m));
    }
}

static void multiply_all(glsl_writer *w, const own_form *f) {
    int step = step_of(f);
    glsl_open_sums(w, &f->sums);
    for (int i = 0; i < f->it.outer_registers * step; i++) GLSL_LINE(w, "float fa%d;", i);
    for (int m = 0; m < step; m++) GLSL_LINE(w, "%s fb%d;", glsl_vector(f->sums.group), m);
    for (int n = 0; f->four_k && n < f->sums.group; n++) GLSL_LINE(w, "vec4 c%d;", n);
    for (int x = 0; x < f->together; x += step) multiply(w, f, x);
    glsl_close_sums(w, &f->sums);
}

void glsl_own_mma(glsl_writer *w, const smg_instr *instr) {
    const smg_kernel *k = w->k;
    int axis = instr->axes[0], depth = (int)k->axes.items[axis].tile;
    own_form f = {.instr = instr, .b = &k->accesses.items[k->tiles.items[instr->b].access]};
    glsl_iter_of_sums(w, &f.it, instr);
    if (w->status != SMG_OK) return;
    if (instr->addressed) {
        w->uses[GLSL_USE_ADDRESSES] = true;
        f.pointer = glsl_pointer_to(w, k->buffers.items[f.b->buffer].type);
    }
    f.together = instr->unroll > 0 ? instr->unroll : 1;
    f.from = f.together < depth ? "k0" : "0";
    f.k_ends = !glsl_always_valid(w, axis);
    for (int n = 0; n < f.it.inner_count; n++)
        f.columns_end = f.columns_end || !glsl_always_valid(w, f.it.inner_axes[n]);
    f.pairs = f.pointer != NULL ? axis_of_pairs(w, &f) : -1;
    f.sums = glsl_sums_of(w, &f.it, instr->dst);
    find_fours(w, &f);
    if (f.together < depth) GLSL_LINE(w, "[[dont_unroll]]");
    glsl_open(w, f.together < depth ? GLSL_STRING(w, "for (int k0 = 0; k0 < %d; k0 += %d)", depth, f.together) : "");
    for (int x = 0; x < (f.k_ends ? f.together : 1); x++)
        for (int j = 0; j < (f.columns_end ? f.it.inner_registers : 1); j++) declare_place(w, &f, x, j);
    multiply_all(w, &f);
    glsl_close(w);
}
