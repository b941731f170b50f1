/* glsl_whole.c: matrices that go between memory and registers as a whole, and by runs of their elements. Element by
 * element drivers keep an address for each, from in front of the loops on. Tiles that cross the end of an axis go
 * by elements or pairs. */
#include "glsl_private.h"

const char *glsl_whole(glsl_writer *w, const smg_instr *instr, int a) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    const char *condition = instr->kind == SMG_I_SPILL ? NULL : glsl_aligned(w, a, instr->wide[0]);
    for (int i = 0; i < layout->axis_count; i++) {
        int axis = layout->axes[i].axis;
        if (glsl_always_valid(w, axis)) continue;
        const char *last = GLSL_STRING(w, "%lld", (long long)w->k->axes.items[axis].tile - 1);
        condition = glsl_both(w, condition, glsl_valid_text(w, axis, last));
    }
    return condition;
}

/* Where matrix n of the subgroup's begins in memory; elements: registers that a lane has of one. */
static const char *begin_of(glsl_writer *w, const glsl_iter *it, int a, int64_t n, int64_t elements) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *sum = it->address[a];
    for (int i = 0; i < it->layout.axis_count; i++) {
        int axis = it->layout.axes[i].axis;
        int64_t first = smg_layout_part(&it->layout, axis, SMG_LAYOUT_REGISTER, n * elements);
        const char *at =
            glsl_plus(w, glsl_subgroup_part(w, &it->layout, axis), GLSL_STRING(w, "%lld", (long long)first));
        if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
        sum = glsl_plus(w, sum, glsl_times(w, at, smg_access_stride(access, axis)));
    }
    return sum;
}

static const char *rows_apart(glsl_writer *w, const smg_instr *instr, int a) {
    smg_wide wide;
    int row = -1;
    if (!smg_kernel_whole_matrices(w->k, instr, &wide, &row)) {
        glsl_fail(w, SMG_INTERNAL, "whole matrices at once of what does not lie so");
        return "0";
    }
    return glsl_size(w, smg_access_stride(&w->k->accesses.items[a], row));
}

static void open_block(glsl_writer *w, glsl_iter *it, const smg_instr *instr, int a, const char *whole) {
    glsl_iter_of(w, it, instr);
    if (w->status != SMG_OK) return;
    glsl_expr_prepare(w, it, instr->expr);
    it->access_used[a] = true;
    glsl_open(w, whole == NULL ? "" : GLSL_STRING(w, "if (%s)", whole));
    glsl_hoist(w, it);
}

void glsl_load_matrices(glsl_writer *w, const smg_instr *instr, const char *whole) {
    int a = smg_kernel_plain_load(w->k, instr->expr), buffer = w->k->accesses.items[a].buffer;
    smg_fragments use = w->k->tiles.items[instr->dst].fragments;
    smg_type type = w->k->buffers.items[buffer].type;
    int64_t elements = smg_matrix_elements(&w->k->matrix, use);
    const char *stride = rows_apart(w, instr, a), *narrow = NULL;
    glsl_iter it;
    open_block(w, &it, instr, a, whole);
    if (w->status != SMG_OK) return;
    w->buffer_read[buffer] = w->buffer_words[buffer] = true;
    if (type != w->k->tiles.items[instr->dst].type) {
        narrow = glsl_matrix_word(w, use, glsl_element_word(w, type));
        w->uses[GLSL_USE_16BIT] = true;
    }
    int row = -1, col = -1;
    bool turned = smg_matrix_sides(w->k, &w->k->tiles.items[instr->dst], &row, &col) && instr->wide[0].axis == row;
    for (int64_t n = 0; n < smg_layout_registers(&it.layout) / elements; n++) {
        const char *to = GLSL_STRING(w, "t_%s[%lld]", w->tile_name[instr->dst], (long long)n);
        const char *loaded = narrow == NULL ? to : GLSL_STRING(w, "narrow%lld", (long long)n);
        if (narrow != NULL) GLSL_LINE(w, "%s %s;", narrow, loaded);
        GLSL_LINE(w, "coopMatLoad(%s, g_%s, %s, %s, gl_CooperativeMatrixLayout%sMajor);", loaded,
                  w->buffer_name[buffer], begin_of(w, &it, a, n, elements), stride, turned ? "Column" : "Row");
        if (narrow != NULL) GLSL_LINE(w, "%s = %s(%s);", to, glsl_matrix_word(w, use, "float"), loaded);
    }
    glsl_close(w);
}

/* Subgroups that hold copies take turns with the matrices: whose matrix n is; NULL: each subgroup has its own. */
static const char *turn_of(glsl_writer *w, const smg_layout *layout, int64_t n) {
    uint32_t copies = smg_layout_replicas(layout), block = copies & (~copies + 1), lanes = (uint32_t)w->k->lanes;
    if (copies == 0) return NULL;
    if (copies + block != lanes) return GLSL_STRING(w, "(local & %u) == 0", copies);
    return GLSL_STRING(w, "local / %u == %u", block, (uint32_t)n % (lanes / block));
}

void glsl_store_matrices(glsl_writer *w, const smg_instr *instr, const char *whole) {
    int a = instr->a, buffer = w->k->accesses.items[a].buffer;
    int64_t elements = smg_matrix_elements(&w->k->matrix, SMG_FRAGMENTS_SUMS);
    smg_type type = w->k->buffers.items[buffer].type;
    const char *stride = rows_apart(w, instr, a), *sums = glsl_matrix_word(w, SMG_FRAGMENTS_SUMS, "float");
    glsl_iter it;
    open_block(w, &it, instr, a, whole);
    if (w->status != SMG_OK) return;
    int64_t count = smg_layout_registers(&it.layout) / elements;
    const char *stored = glsl_matrix_word(w, SMG_FRAGMENTS_SUMS, glsl_element_word(w, type));
    w->buffer_words[buffer] = w->uses[GLSL_USE_16BIT] = true;
    GLSL_LINE(w, "%s whole[%lld];", sums, (long long)count);
    glsl_outer_open(w, &it);
    glsl_inner_open(w, &it);
    const char *value = glsl_expr_text(w, &it, instr->expr), *place = glsl_register_place(w, &it, &it.layout);
    value = glsl_convert(w, value, smg_expr_get(w->k->exprs, instr->expr)->kind, SMG_KIND_FLOAT);
    GLSL_LINE(w, "whole[(%s) / %lld][(%s) %% %lld] = %s;", place, (long long)elements, place, (long long)elements,
              value);
    glsl_inner_close(w, &it);
    glsl_outer_close(w, &it);
    for (int64_t n = 0; n < count; n++) {
        const char *from = GLSL_STRING(w, "whole[%lld]", (long long)n), *turn = turn_of(w, &it.layout, n);
        if (type != SMG_TYPE_F32) from = GLSL_STRING(w, "%s(%s)", stored, from);
        if (turn != NULL) GLSL_LINE(w, "if (%s)", turn);
        GLSL_LINE(w, "coopMatStore(%s, g_%s, %s, %s, gl_CooperativeMatrixLayoutRowMajor);", from,
                  w->buffer_name[buffer], begin_of(w, &it, a, n, elements), stride);
    }
    glsl_close(w);
}

/* Where matrix n of the subgroup's begins in a shared tile, and how far its rows are apart there, in groups. */
static const char *begin_in_tile(glsl_writer *w, const smg_layout *layout, const smg_tile *tile, int64_t first,
                                 int64_t group) {
    const char *sum = glsl_slot(w, tile);
    for (int i = 0; i < layout->axis_count; i++) {
        int axis = layout->axes[i].axis;
        int64_t part = smg_layout_part(layout, axis, SMG_LAYOUT_REGISTER, first);
        const char *at = glsl_plus(w, glsl_subgroup_part(w, layout, axis), GLSL_STRING(w, "%lld", (long long)part));
        if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
        sum = glsl_plus(w, sum, glsl_times_literal(w, at, smg_tile_stride(w->k, tile, axis)));
    }
    return group > 1 ? GLSL_STRING(w, "(%s) / %lld", sum, (long long)group) : sum;
}

void glsl_spill_matrices(glsl_writer *w, const smg_instr *spill, const char *whole) {
    const smg_tile *dst = &w->k->tiles.items[spill->dst], *from = &w->k->tiles.items[spill->a];
    const smg_layout *layout = &w->k->layouts.items[from->layout];
    int64_t elements = smg_matrix_elements(&w->k->matrix, SMG_FRAGMENTS_SUMS);
    int64_t group = smg_tile_group(w->k, spill->dst);
    const char *word = glsl_matrix_word(w, SMG_FRAGMENTS_SUMS, glsl_element_word(w, dst->type));
    const char *name = w->tile_name[spill->a];
    glsl_open(w, whole == NULL ? "" : GLSL_STRING(w, "if (%s)", whole));
    for (int64_t n = 0; n < smg_layout_registers(layout) / elements; n++) {
        const char *matrix = GLSL_STRING(w, "%s(t_%s[%lld])", word, name, (long long)n);
        if (from->fragments == SMG_FRAGMENTS_NONE) {
            matrix = GLSL_STRING(w, "half%lld", (long long)n);
            GLSL_LINE(w, "%s %s;", word, matrix);
            GLSL_LINE(w, "[[unroll]]");
            GLSL_LINE(w, "for (int e = 0; e < %lld; ++e) %s[e] = float16_t(t_%s[%lld + e]);", (long long)elements,
                      matrix, name, (long long)(n * elements));
        }
        GLSL_LINE(w, "coopMatStore(%s, %s, %s, %lld, gl_CooperativeMatrixLayoutRowMajor);", matrix,
                  glsl_slice(w, spill->dst), begin_in_tile(w, layout, dst, n * elements, group),
                  (long long)(smg_tile_stride(w->k, dst, dst->axis[0]) / group));
    }
    glsl_close(w);
}

/* ---- opaque sums ------------------------------------------------------------------------------------ */

void glsl_set_matrices(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *dst = &w->k->tiles.items[instr->dst];
    int64_t count = smg_tile_registers(w->k, dst) / smg_matrix_elements(&w->k->matrix, dst->fragments);
    const char *value = glsl_constant(w, SMG_KIND_FLOAT, smg_expr_get(w->k->exprs, instr->expr)->value);
    GLSL_LINE(w, "[[unroll]]");
    GLSL_LINE(w, "for (int m = 0; m < %lld; ++m) t_%s[m] = %s(%s);", (long long)count, w->tile_name[instr->dst],
              glsl_matrix_word(w, dst->fragments, "float"), value);
}

/* The first of the words that the subgroup has of its own, and so many on. */
static const char *own_words(glsl_writer *w, int exchange, int64_t on) {
    int64_t own = smg_matrix_words(w->k, &w->k->tiles.items[exchange]);
    const char *first = w->k->lanes == w->k->subgroup
                            ? "0"
                            : glsl_times_literal(w, GLSL_STRING(w, "(local / %d)", w->k->subgroup), own);
    return glsl_plus(w, first, GLSL_STRING(w, "%lld", (long long)on));
}

void glsl_leave_matrices(glsl_writer *w, const smg_instr *instr) {
    const smg_matrix *m = &w->k->matrix;
    int64_t elements = smg_matrix_elements(m, SMG_FRAGMENTS_SUMS), size = (int64_t)m->rows * m->cols;
    for (int64_t n = 0; n < instr->registers / elements; n++)
        GLSL_LINE(w, "coopMatStore(t_%s[%lld], t_%s, %s, %d, gl_CooperativeMatrixLayoutRowMajor);",
                  w->tile_name[instr->a], (long long)(instr->first / elements + n), w->tile_name[instr->dst],
                  own_words(w, instr->dst, n * size), m->cols);
}

/* The place of a register is that of its lane's first one, and a number. */
void glsl_gather_matrices(glsl_writer *w, const smg_instr *instr) {
    const char *row = glsl_local_part(w, &w->k->matrix.sums, 0), *col = glsl_local_part(w, &w->k->matrix.sums, 1);
    if (strchr(row, ' ') != NULL) row = GLSL_STRING(w, "(%s)", row);
    glsl_open(w, "");
    const char *first = glsl_plus(w, glsl_times_literal(w, row, w->k->matrix.cols), col);
    GLSL_LINE(w, "int first = %s;", glsl_plus(w, own_words(w, instr->a, 0), first));
    for (int r = 0; r < instr->registers; r++)
        GLSL_LINE(w, "t_%s[%d] %s t_%s[first + %lld];", w->tile_name[instr->dst], instr->first + r,
                  instr->accumulate ? "+=" : "=", w->tile_name[instr->a], (long long)smg_matrix_word(w->k, r, 0));
    glsl_close(w);
}

/* ---- runs ------------------------------------------------------------------------------------------- */

/* The register that has the neighbour of register `first` so far on along the axis. */
static int64_t register_on(const smg_layout *layout, int axis, int64_t first, int neighbour) {
    for (int i = 0; i < layout->bits[SMG_LAYOUT_REGISTER]; i++) {
        smg_basis b = layout->basis[SMG_LAYOUT_REGISTER][i];
        if (b.axis == axis && b.bit < 31 && neighbour >> b.bit & 1) first |= INT64_C(1) << i;
    }
    return first;
}

/* A local: the run that begins with register `first`; 0 where it is not valid. */
static void load_run(glsl_writer *w, const glsl_iter *it, int a, int64_t first, const char *local) {
    const smg_access *access = &w->k->accesses.items[a];
    const char *address = it->address[a], *valid = NULL, *name = w->buffer_name[access->buffer];
    for (int i = 0; i < it->layout.axis_count; i++) {
        int axis = it->layout.axes[i].axis;
        int64_t part = smg_layout_part(&it->layout, axis, SMG_LAYOUT_REGISTER, first);
        const char *lane = glsl_lane_part(w, &it->layout, axis);
        const char *at = glsl_plus(w, lane, GLSL_STRING(w, "%lld", (long long)part));
        if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
        if (strchr(lane, ' ') != NULL) lane = GLSL_STRING(w, "(%s)", lane);
        if (smg_kbuffer_is_blocked(&w->k->buffers.items[access->buffer])) { /* bits of their own add up */
            address = glsl_plus(w, address, glsl_address_part(w, access, axis, lane));
            address = glsl_plus(w, address, glsl_address_number(w, access, axis, part));
        } else {
            address = glsl_plus(w, address, glsl_address_part(w, access, axis, at));
        }
        if (!glsl_always_valid(w, axis)) valid = glsl_both(w, valid, glsl_valid_text(w, axis, at));
    }
    address = glsl_place(w, access, address);
    w->buffer_eight[access->buffer] = true;
    valid = glsl_named_condition(w, valid, w->serial++);
    if (valid == NULL) {
        GLSL_LINE(w, "uvec4 %s = e_%s[(%s) >> 3];", local, name, address);
        return;
    }
    GLSL_LINE(w, "int a_%s = (%s) >> 3;", local, address);
    GLSL_LINE(w, "uvec4 %s = e_%s[%s ? a_%s : 0];", local, name, valid, local);
    GLSL_LINE(w, "%s = %s ? %s : uvec4(0u);", local, valid, local);
}

/* Does the instruction load a factor by runs, for the step at hand? */
static bool loads_runs(const smg_kernel *k, const smg_instr *instr) {
    return instr->kind == SMG_I_SET && instr->wide[0].width == SMG_WIDEST && !instr->matrices &&
           smg_instr_ahead_axis(k, instr) < 0;
}

/* The runs' first registers, in their order: those whose neighbours along the axis begin with them. */
static int64_t next_run(const smg_layout *layout, int axis, int64_t first) {
    int64_t run = register_on(layout, axis, 0, SMG_WIDEST - 1);
    while (first & run) first++;
    return first;
}

static void take_run(glsl_writer *w, const smg_instr *instr, int64_t first, const char *name) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    for (int n = 0; n < SMG_WIDEST; n++) {
        int64_t place = register_on(layout, instr->wide[0].axis, first, n);
        const char *element = glsl_register(w, instr->dst, GLSL_STRING(w, "%lld", (long long)place));
        GLSL_LINE(w, "%s = %s;", element, glsl_factor_half(w, GLSL_STRING(w, "%s[%d]", name, n / 2), n % 2));
    }
}

/* One factor: its loads (named from `number` on), or what becomes of them. Returns the number behind. */
static int each_run(glsl_writer *w, const smg_instr *instr, int number, bool loads) {
    int a = smg_kernel_plain_load(w->k, instr->expr), axis = instr->wide[0].axis;
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    int64_t count = smg_layout_registers(layout);
    glsl_iter it;
    glsl_iter_of(w, &it, instr);
    if (w->status != SMG_OK) return number;
    glsl_expr_prepare(w, &it, instr->expr);
    it.access_used[a] = true;
    if (loads) glsl_hoist(w, &it);
    for (int64_t first = next_run(layout, axis, 0); first < count && w->status == SMG_OK;
         first = next_run(layout, axis, first + 1)) {
        const char *name = GLSL_STRING(w, "run%d", number++);
        if (loads)
            load_run(w, &it, a, first, name);
        else
            take_run(w, instr, first, name);
    }
    return number;
}

int glsl_load_runs(glsl_writer *w, int at) {
    const smg_instr *code = w->k->code.items;
    int end = at, number = 0;
    while (end < w->k->code.count && loads_runs(w->k, &code[end])) end++;
    if (end == at) return at;
    glsl_open(w, "");
    for (int i = at; i < end; i++) number = each_run(w, &code[i], number, true);
    number = 0;
    for (int i = at; i < end; i++) number = each_run(w, &code[i], number, false);
    glsl_close(w);
    return end;
}

/* What is set ahead stays as it was loaded until it is multiplied: making matrices of it would wait for it. */
static void load_ahead(glsl_writer *w, const smg_instr *instr) {
    glsl_open(w, "");
    int count = each_run(w, instr, 0, true);
    for (int n = 0; n < count; n++) GLSL_LINE(w, "%s[%d] = run%d;", glsl_slice(w, instr->dst), n, n);
    glsl_close(w);
}

bool glsl_is_loaded_ahead(const glsl_writer *w, int tile) {
    const smg_instr *set = smg_kernel_setter(w->k, tile);
    return set != NULL && smg_instr_ahead_axis(w->k, set) >= 0;
}

void glsl_make_matrix(glsl_writer *w, int tile, int64_t number, const char *name) {
    const smg_layout *layout = &w->k->layouts.items[w->k->tiles.items[tile].layout];
    int64_t elements = smg_matrix_elements(&w->k->matrix, w->k->tiles.items[tile].fragments);
    int along = smg_kernel_setter(w->k, tile)->wide[0].axis;
    int64_t first = next_run(layout, along, 0);
    for (int run = 0; first < smg_layout_registers(layout); run++, first = next_run(layout, along, first + 1))
        for (int n = 0; n < SMG_WIDEST; n++) {
            int64_t place = register_on(layout, along, first, n);
            if (place / elements != number) continue;
            const char *word = GLSL_STRING(w, "%s[%d][%d]", glsl_slice(w, tile), run, n / 2);
            GLSL_LINE(w, "%s[%lld] = %s;", name, (long long)(place % elements), glsl_factor_half(w, word, n % 2));
        }
}

void glsl_set_ahead(glsl_writer *w, const smg_instr *instr, int at) {
    if (instr->wide[0].width != SMG_WIDEST) glsl_fail(w, SMG_INTERNAL, "a factor that is set ahead has no runs");
    glsl_ahead(w, instr, at, load_ahead);
}

/* A run of shared memory, in one group or in two. */
static void take_shared(glsl_writer *w, const smg_instr *instr, int64_t first, const char *place) {
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    const char *name = GLSL_STRING(w, "taken%d", w->serial++), *memory = glsl_slice(w, instr->a), *value;
    bool wide = smg_tile_wide(w->k, &w->k->tiles.items[instr->a]);
    if (smg_tile_widest(w->k, instr->a)) {
        GLSL_LINE(w, "uvec4 %s = %s[(%s) >> 3];", name, memory, place);
        take_run(w, instr, first, name);
        return;
    }
    for (int half = 0; wide && half < SMG_WIDEST / SMG_WIDE; half++)
        GLSL_LINE(w, "%s %s_%d = %s[((%s) >> 2) + %d];", glsl_local_word(w, w->k->matrix.type, SMG_WIDE), name, half,
                  memory, place, half);
    for (int n = 0; n < SMG_WIDEST; n++) {
        int64_t to = register_on(layout, instr->wide[0].axis, first, n);
        value = wide ? GLSL_STRING(w, "%s_%d[%d]", name, n / SMG_WIDE, n % SMG_WIDE)
                     : GLSL_STRING(w, "%s[%s + %d]", memory, place, n);
        GLSL_LINE(w, "%s = %s;", glsl_register(w, instr->dst, GLSL_STRING(w, "%lld", (long long)to)),
                  glsl_register_element(w, &w->k->tiles.items[instr->dst], value));
    }
}

void glsl_take_runs(glsl_writer *w, const smg_instr *instr) {
    const smg_tile *from = &w->k->tiles.items[instr->a];
    const smg_layout *layout = smg_kernel_layout(w->k, instr);
    int along = instr->wide[0].axis;
    glsl_open(w, "");
    for (int64_t first = next_run(layout, along, 0); first < smg_layout_registers(layout) && w->status == SMG_OK;
         first = next_run(layout, along, first + 1)) {
        const char *place = glsl_slot(w, from);
        for (int i = 0; i < from->axis_count; i++) {
            int axis = from->axis[i];
            int64_t part = smg_layout_part(layout, axis, SMG_LAYOUT_REGISTER, first);
            const char *at = glsl_plus(w, glsl_lane_part(w, layout, axis), GLSL_STRING(w, "%lld", (long long)part));
            if (strchr(at, ' ') != NULL) at = GLSL_STRING(w, "(%s)", at);
            place = glsl_plus(w, place, glsl_times_literal(w, at, smg_tile_stride(w->k, from, axis)));
        }
        take_shared(w, instr, first, place);
    }
    glsl_close(w);
}
