/* glsl_direct.c: MMA whose factors are read by address, for cores whose lanes are the elements of one vector register
 * (drivers there make a load of one address by all lanes one load, and a load of lanes' own addresses one for each
 * lane). Lanes lie over columns, a subgroup over one row lane; addresses are therefore the same for all lanes:
 * an element of the left factor is read once, and a run of neighbouring columns by reads that every lane makes alike,
 * of which each takes its own (smg_across): the driver's compiler makes one vector load of them. Addresses are 64-bit
 * numbers, because loads from bindings are checked against their ends one by one. */
#include "glsl_private.h"

typedef struct direct_form {
    glsl_iter it;
    const smg_access *a, *b;
    const glsl_pointer *to_a, *to_b;
    int depth, together; /* of k: the tile's, as many as are written out */
    bool clamped;        /* some rows of the tile may lie behind the last one */
    bool pairs;          /* two k of a row are one word */
    glsl_sums sums;
    const char *from; /* the first k of those written out */
} direct_form;

static smg_type type_of(const smg_kernel *k, const smg_access *access) {
    return k->buffers.items[access->buffer].type;
}

/* The axis of rows; -1 without one. */
static int row_axis(const direct_form *f) {
    return f->it.outer_count > 0 ? f->it.outer_axes[0] : -1;
}

/* `push.a_x` moved on by the elements that do not change with rows, columns and k of what is written out. */
static const char *start_of(glsl_writer *w, const direct_form *f, const smg_access *access, int k, const char *more) {
    const char *sum = glsl_plus(w, glsl_offset_part(w, access), more);
    sum = glsl_plus(w, sum, glsl_address_part(w, access, k, f->from));
    for (int i = 0; i < access->axis_count; i++) {
        if (access->axis[i] == row_axis(f)) continue; /* in `more` */
        sum = glsl_plus(w, sum, glsl_base_part(w, access, i));
    }
    w->address_used[access->buffer] = true;
    int bytes = glsl_pointer_to(w, type_of(w->k, access))->bytes;
    return GLSL_STRING(w, "push.a_%s + %dul * uint64_t(uint(%s))", w->buffer_name[access->buffer], bytes, sum);
}

static const char *number(glsl_writer *w, int64_t value) {
    return GLSL_STRING(w, "%lld", (long long)value);
}

/* What register i adds to its row. */
static const char *row_part(glsl_writer *w, const direct_form *f, int64_t i) {
    return number(w, smg_layout_part(&f->it.outer, row_axis(f), SMG_LAYOUT_REGISTER, i));
}

/* One address for all rows where their distance is known and none has to be clamped, else one for each. */
static void row_addresses(glsl_writer *w, const direct_form *f, int along) {
    int axis = row_axis(f);
    int count = axis >= 0 && f->clamped ? f->it.outer_registers : 1;
    for (int i = 0; i < count; i++) {
        const char *row = "0";
        if (axis >= 0)
            row = glsl_plus(w, glsl_base(w, axis),
                            glsl_plus(w, row_part(w, f, i), glsl_lane_part(w, &f->it.layout, axis)));
        if (axis >= 0 && f->clamped)
            row = GLSL_STRING(w, "min(%s, %s - 1)", row, glsl_size(w, w->k->axes.items[axis].extent));
        const char *more = axis >= 0 ? glsl_times(w, row, smg_access_stride(f->a, axis)) : "0";
        const char *word = f->pairs ? glsl_pointer_to_pairs(w) : f->to_a->word;
        GLSL_LINE(w, "%s a%d = %s(%s);", word, i, word, start_of(w, f, f->a, along, more));
    }
}

/* Where register j's run of columns begins behind the start of the right factor. */
static const char *column_place(glsl_writer *w, const direct_form *f, int j) {
    const char *sum = "0";
    for (int n = f->it.inner_count - 1; n >= 0; n--) {
        int axis = f->it.inner_axes[n];
        int64_t at = smg_layout_part(&f->it.inner, axis, SMG_LAYOUT_REGISTER, j);
        if (at != 0) sum = glsl_plus(w, sum, glsl_address_number(w, f->b, axis, at));
    }
    return sum;
}

/* Where row i's element lies for the x-th k behind the start of its address. */
static const char *row_place(glsl_writer *w, const direct_form *f, const smg_instr *instr, int i, int x) {
    const char *place = glsl_times(w, number(w, x), smg_access_stride(f->a, instr->axes[0]));
    if (f->clamped || i == 0) return place;
    return glsl_plus(w, glsl_times(w, row_part(w, f, i), smg_access_stride(f->a, row_axis(f))), place);
}

/* Row i's element for the x-th k. */
static const char *row_element(glsl_writer *w, const direct_form *f, const smg_instr *instr, int i, int x) {
    const char *address = GLSL_STRING(w, "a%d", f->clamped ? i : 0);
    if (f->pairs)
        return glsl_pair_element(w, type_of(w->k, f->a), address, row_place(w, f, instr, i, x - x % 2), x % 2);
    return GLSL_STRING(w, "%s%s.v[%s]%s", f->to_a->before, address, row_place(w, f, instr, i, x), f->to_a->behind);
}

/* The outer product of one k, written out: compilers of shaders take long over loops of that many places. */
static void multiply(glsl_writer *w, const direct_form *f, const smg_instr *instr, int x) {
    int columns = f->it.inner_registers, group = f->sums.group;
    const char *down = glsl_address_number(w, f->b, instr->axes[0], x);
    for (int j = 0; j < columns; j++) {
        glsl_load_across(w, type_of(w->k, f->b),
                         GLSL_STRING(w, "b0 + %dul * uint64_t(uint(%s))", f->to_b->bytes,
                                     glsl_plus(w, down, column_place(w, f, j))));
        const char *to = GLSL_STRING(w, group > 1 ? "fb%d[%d]" : "fb%d", j / group, j % group);
        GLSL_LINE(w, "%s = %s;", to, glsl_take_across(w, type_of(w->k, f->b)));
    }
    for (int i = 0; i < f->it.outer_registers; i++) {
        GLSL_LINE(w, "fa = %s;", row_element(w, f, instr, i, x));
        for (int j = 0; j < columns; j += group)
            glsl_add_products(w, &f->sums, i, j, "fa", GLSL_STRING(w, "fb%d", j / group));
    }
}

static void multiply_all(glsl_writer *w, direct_form *f, const smg_instr *instr) {
    f->sums = glsl_sums_of(w, &f->it, instr->dst);
    glsl_open_sums(w, &f->sums);
    glsl_declare_across(w, type_of(w->k, f->b));
    GLSL_LINE(w, "float fa;");
    for (int j = 0; j < f->it.inner_registers; j += f->sums.group)
        GLSL_LINE(w, "%s fb%d;", glsl_vector(f->sums.group), j / f->sums.group);
    for (int x = 0; x < f->together; x++) multiply(w, f, instr, x);
    glsl_close_sums(w, &f->sums);
}

void glsl_direct_mma(glsl_writer *w, const smg_instr *instr) {
    const smg_kernel *k = w->k;
    direct_form f = {.a = &k->accesses.items[k->tiles.items[instr->a].access],
                     .b = &k->accesses.items[k->tiles.items[instr->b].access]};
    glsl_iter_of_sums(w, &f.it, instr);
    if (w->status != SMG_OK) return;
    w->uses[GLSL_USE_ADDRESSES] = true;
    f.to_a = glsl_pointer_to(w, type_of(w->k, f.a));
    f.to_b = glsl_pointer_to(w, type_of(w->k, f.b));
    f.depth = (int)k->axes.items[instr->axes[0]].tile;
    f.together = instr->unroll > 0 ? instr->unroll : 1;
    f.from = f.together < f.depth ? "k0" : "0";
    f.pairs = f.together % SMG_PAIR == 0 && glsl_lies_in_pairs(w, instr->a, instr->axes[0]);
    int rows = row_axis(&f);
    f.clamped =
        rows >= 0 && (!glsl_always_valid(w, rows) || smg_layout_span(&f.it.layout, rows) != k->axes.items[rows].tile);
    const char *outer = GLSL_STRING(w, "for (int k0 = 0; k0 < %d; k0 += %d)", f.depth, f.together);
    if (f.together < f.depth) GLSL_LINE(w, "[[dont_unroll]]");
    glsl_open(w, f.together < f.depth ? outer : "");
    GLSL_LINE(w, "uint64_t b0 = %s;", start_of(w, &f, f.b, instr->axes[0], "0"));
    row_addresses(w, &f, instr->axes[0]);
    multiply_all(w, &f, instr);
    glsl_close(w);
}
