/* The text of a tile program: complete, so that kernel_parse.c reads the same program back, and laid
 * out for people, so that explain and the golden files show it as it is.
 *
 *     kernel row_sum
 *     lanes 64 subgroup 32
 *     symbol s <= 4096
 *     axis q = s tile 2 grid
 *     axis k = 100 tile 32
 *     grid q
 *     layout 0 = [q] lanes *32 subgroups q*2
 *     layout 1 = [q, k] lanes k*32 subgroups q*2
 *     buffer x f32 [100*s] value 0
 *     buffer y f32 [s] value 1 written
 *     tile sum float register [q] layout 0
 *     access 0 = x at [0] q*[100] k*[1]
 *     access 1 = y at [0] q*[1]
 *     code
 *       set sum = 0
 *       loop k
 *         accumulate sum = add over [k] layout 1 of load(0)  # partial sums
 *       end
 *       store 1 over [q] layout 0 = sum
 *
 * Expressions are calls of primitives over constants (2.5, 3i, true), tiles by name, load(access),
 * iota(access), size(...) and its float form fsize(...). A part that occurs twice is labelled where it
 * stands first, "%1:mul(x, x)", and "%1" from then on. Names that are not plain words are quoted.
 * Broken programs print too, with "?" for what is out of range. */
#include "kernel/kernel.h"

/* ---- names and lists ------------------------------------------------------------------------------- */

static bool plain_name(const char *name) {
    static const char *const reserved[] = {"true", "false", "inf", "nan"};
    for (size_t i = 0; i < SMG_COUNT_OF(reserved); i++)
        if (strcmp(name, reserved[i]) == 0) return false;
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        bool other = (*c >= '0' && *c <= '9') || *c == '.';
        if (!letter && !(other && c != name)) return false;
    }
    return *name != 0;
}

static void add_name(smg_text *text, const char *name) {
    if (name && plain_name(name))
        smg_text_add(text, name);
    else
        smg_text_add_json(text, name ? name : "");
}

/* Names are for people and may repeat; a later one then carries its number, so that the text is clear. */
static void add_unique(smg_text *text, const char *name, bool repeated, int number) {
    if (!repeated) {
        add_name(text, name);
        return;
    }
    smg_text own;
    smg_text_init(&own, text->ctx);
    smg_text_addf(&own, "%s~%d", name, number);
    add_name(text, smg_text_cstr(&own));
    if (own.failed) text->failed = true;
    smg_text_free(&own);
}

static bool same_name(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static void add_axis(const smg_kernel *k, smg_text *text, int axis) {
    bool repeated = false;
    if (axis < 0 || axis >= k->axes.count) {
        smg_text_add(text, "?");
        return;
    }
    const char *name = k->axes.items[axis].name;
    for (int i = 0; i < axis; i++) repeated = repeated || same_name(k->axes.items[i].name, name);
    add_unique(text, name, repeated, axis);
}

static void add_tile(const smg_kernel *k, smg_text *text, int tile) {
    bool repeated = false;
    if (tile < 0 || tile >= k->tiles.count) {
        smg_text_add(text, "?");
        return;
    }
    const char *name = k->tiles.items[tile].name;
    for (int i = 0; i < tile; i++) repeated = repeated || same_name(k->tiles.items[i].name, name);
    add_unique(text, name, repeated, tile);
}

static void add_buffer(const smg_kernel *k, smg_text *text, int buffer) {
    bool repeated = false;
    if (buffer < 0 || buffer >= k->buffers.count) {
        smg_text_add(text, "-");
        return;
    }
    const char *name = k->buffers.items[buffer].name;
    for (int i = 0; i < buffer; i++) repeated = repeated || same_name(k->buffers.items[i].name, name);
    add_unique(text, name, repeated, buffer);
}

static void add_list(const smg_kernel *k, smg_text *text, const int *axes, int count) {
    smg_text_add(text, "[");
    for (int i = 0; i < count; i++) {
        if (i > 0) smg_text_add(text, ", ");
        add_axis(k, text, axes[i]);
    }
    smg_text_add(text, "]");
}

static void add_size(const smg_kernel *k, smg_text *text, smg_size size) {
    smg_text_add(text, "[");
    smg_size_print(k->sizes, size, text);
    smg_text_add(text, "]");
}

/* ---- expressions ----------------------------------------------------------------------------------- */

typedef struct expr_writer {
    const smg_kernel *k;
    smg_text *text;
    int *uses; /* by expression; once labelled: minus the label */
    int labels;
} expr_writer;

/* A broken program prints, too. */
static bool exists(const expr_writer *w, smg_expr expr) {
    return expr >= 0 && expr < smg_expr_count(w->k->exprs);
}

static void count_uses(expr_writer *w, smg_expr expr) {
    if (!exists(w, expr) || w->uses[expr]++ > 0) return;
    const smg_expr_node *node = smg_expr_get(w->k->exprs, expr);
    for (int i = 0; i < smg_prim_arity(node->prim); i++) count_uses(w, node->arg[i]);
}

/* "[i1 at 2, i2 back i3]": element 2, and the same element from the end. */
static void add_picks(const expr_writer *w, const smg_kleaf *leaf) {
    for (int i = 0; i < leaf->pick_count; i++) {
        const smg_layout_pick *p = &leaf->pick[i];
        smg_text_add(w->text, i > 0 ? ", " : "[");
        add_axis(w->k, w->text, p->axis);
        smg_text_add(w->text, p->from < 0 ? " at " : " back ");
        if (p->from < 0)
            smg_text_addf(w->text, "%lld", (long long)p->at);
        else
            add_axis(w->k, w->text, p->from);
    }
    if (leaf->pick_count > 0) smg_text_add(w->text, "]");
}

static void add_leaf(expr_writer *w, int number) {
    if (number < 0 || number >= w->k->leaves.count) {
        smg_text_add(w->text, "?");
        return;
    }
    const smg_kleaf *leaf = &w->k->leaves.items[number];
    switch (leaf->what) {
    case SMG_KLEAF_TILE:
        add_tile(w->k, w->text, leaf->index);
        add_picks(w, leaf);
        break;
    case SMG_KLEAF_LOAD: smg_text_addf(w->text, "load(%d)", leaf->index); break;
    case SMG_KLEAF_IOTA: smg_text_addf(w->text, "iota(%d)", leaf->index); break;
    case SMG_KLEAF_SIZE:
        smg_text_add(w->text, leaf->kind == SMG_KIND_FLOAT ? "fsize(" : "size(");
        smg_size_print(w->k->sizes, leaf->size, w->text);
        smg_text_add(w->text, ")");
        break;
    }
}

static void add_const(expr_writer *w, const smg_expr_node *node) {
    if (node->kind == SMG_KIND_BOOL) {
        bool truth = node->value > 0.0 || node->value < 0.0;
        smg_text_add(w->text, truth ? "true" : "false");
        return;
    }
    smg_text_add_f64(w->text, node->value);
    if (node->kind == SMG_KIND_INT) smg_text_add(w->text, "i");
}

static void add_node(expr_writer *w, smg_expr expr) {
    const smg_expr_node *node = smg_expr_get(w->k->exprs, expr);
    if (!exists(w, expr)) {
        smg_text_add(w->text, "?");
        return;
    }
    if (node->prim == SMG_PRIM_LEAF) {
        add_leaf(w, node->leaf);
        return;
    }
    if (node->prim == SMG_PRIM_CONST) {
        add_const(w, node);
        return;
    }
    if (w->uses[expr] < 0) {
        smg_text_addf(w->text, "%%%d", -w->uses[expr]);
        return;
    }
    if (w->uses[expr] > 1) {
        w->uses[expr] = -++w->labels;
        smg_text_addf(w->text, "%%%d:", w->labels);
    }
    smg_text_addf(w->text, "%s(", smg_prim_word(node->prim));
    for (int i = 0; i < smg_prim_arity(node->prim); i++) {
        if (i > 0) smg_text_add(w->text, ", ");
        add_node(w, node->arg[i]);
    }
    smg_text_add(w->text, ")");
}

static void add_expr(const smg_kernel *k, smg_text *text, smg_expr expr) {
    size_t count = (size_t)smg_expr_count(k->exprs) + 1;
    expr_writer w = {.k = k, .text = text, .uses = smg_alloc(text->ctx, count, sizeof(int))};
    if (!w.uses) {
        text->failed = true;
        return;
    }
    count_uses(&w, expr);
    add_node(&w, expr);
    smg_free(text->ctx, w.uses, count * sizeof(int));
}

/* ---- header ---------------------------------------------------------------------------------------- */

static void add_symbols_and_axes(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < smg_size_symbol_count(k->sizes); i++) {
        smg_text_addf(text, "symbol %s", smg_size_symbol_name(k->sizes, i));
        if (smg_size_symbol_max(k->sizes, i) != SMG_SIZE_UNBOUNDED)
            smg_text_addf(text, " <= %lld", (long long)smg_size_symbol_max(k->sizes, i));
        smg_text_add(text, "\n");
    }
    for (int i = 0; i < k->axes.count; i++) {
        const smg_kaxis *axis = &k->axes.items[i];
        smg_text_add(text, "axis ");
        add_axis(k, text, i);
        smg_text_add(text, " = ");
        smg_size_print(k->sizes, axis->extent, text);
        smg_text_addf(text, " tile %lld%s%s\n", (long long)axis->tile, axis->grid ? " grid" : "",
                      axis->back ? " back" : "");
    }
    for (int i = 0; i < k->grid.count; i++) {
        smg_text_add(text, i == 0 ? "grid " : ", ");
        add_axis(k, text, k->grid.items[i]);
        if (i + 1 < k->grid.count) continue;
        if (k->band > 0) smg_text_addf(text, " bands %lld", (long long)k->band);
        smg_text_add(text, "\n");
    }
}

static void add_clamped(const smg_kernel *k, smg_text *text, const smg_tile *tile) {
    int axes[SMG_TILE_AXES], count = 0;
    for (int i = 0; i < tile->axis_count && i < SMG_TILE_AXES; i++)
        if (smg_tile_clamps(tile, tile->axis[i])) axes[count++] = tile->axis[i];
    if (count == 0) return;
    smg_text_add(text, " clamped ");
    add_list(k, text, axes, count);
}

/* Types of 32 bits go by their kind. */
const char *smg_tile_word(smg_type type) {
    static const char *const words[SMG_TYPE_COUNT] = {
        [SMG_TYPE_F32] = "float", [SMG_TYPE_F16] = "f16", [SMG_TYPE_BF16] = "bf16",
        [SMG_TYPE_I32] = "int",   [SMG_TYPE_I64] = "?",   [SMG_TYPE_BOOL] = "bool"};
    return (unsigned)type < SMG_TYPE_COUNT ? words[type] : "?";
}

static void add_buffers_and_tiles(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < k->buffers.count; i++) {
        const smg_kbuffer *buffer = &k->buffers.items[i];
        smg_text_add(text, "buffer ");
        add_buffer(k, text, i);
        smg_text_addf(text, " %s ", smg_type_word(buffer->type));
        add_size(k, text, buffer->elements);
        smg_text_addf(text, buffer->each != NULL ? " values" : " value %d", buffer->value);
        for (int n = 0; buffer->each != NULL && n < buffer->each_count; n++)
            smg_text_addf(text, " %d", buffer->each[n]);
        if (buffer->each != NULL) smg_text_addf(text, " every %lld", (long long)buffer->stride);
        if (smg_kbuffer_is_blocked(buffer))
            smg_text_addf(text, " blocks %d x %d of rows of %lld", buffer->block[0], buffer->block[1],
                          (long long)buffer->row);
        smg_text_add(text, buffer->written ? " written\n" : "\n");
    }
    for (int i = 0; i < k->tiles.count; i++) {
        const smg_tile *tile = &k->tiles.items[i];
        smg_text_add(text, "tile ");
        add_tile(k, text, i);
        smg_text_addf(text, " %s %s ", smg_tile_word(tile->type),
                      tile->residence == SMG_SHARED     ? "shared"
                      : tile->residence == SMG_STAGING  ? "staging"
                      : tile->residence == SMG_VIEW     ? "view"
                      : tile->residence == SMG_EXCHANGE ? "exchange"
                                                        : "register");
        add_list(k, text, tile->axis, tile->axis_count);
        if (tile->residence == SMG_REGISTER && tile->layout >= 0) smg_text_addf(text, " layout %d", tile->layout);
        if (tile->fragments != SMG_FRAGMENTS_NONE)
            smg_text_add(text, tile->fragments == SMG_FRAGMENTS_LEFT    ? " left fragments"
                               : tile->fragments == SMG_FRAGMENTS_RIGHT ? " right fragments"
                                                                        : " fragments");
        if (tile->residence == SMG_EXCHANGE) smg_text_addf(text, " words %d", tile->words);
        if (tile->pad != 0) smg_text_addf(text, " pad %d", tile->pad);
        if (tile->in_runs) smg_text_add(text, " in runs");
        if (tile->slots > 0) {
            smg_text_addf(text, " slots %d along ", tile->slots);
            add_axis(k, text, tile->ring);
        }
        if (tile->sliced) {
            smg_text_add(text, " slice along ");
            add_axis(k, text, tile->ring);
            smg_text_add(text, " of ");
            add_tile(k, text, tile->of);
            smg_text_add(text, " along ");
            add_axis(k, text, tile->along);
        }
        if (tile->residence == SMG_VIEW) smg_text_addf(text, " of %d", tile->access);
        if (tile->memory != 0) smg_text_addf(text, " memory %d", tile->memory);
        add_clamped(k, text, tile);
        smg_text_add(text, "\n");
    }
}

static void add_evens(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < k->evens.count; i++) {
        smg_text_add(text, "even ");
        add_size(k, text, k->evens.items[i].size);
        smg_text_addf(text, " by %lld\n", (long long)k->evens.items[i].by);
    }
}

static void add_sure(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < k->sure.count; i++) {
        smg_text_add(text, "sure ");
        add_expr(k, text, k->sure.items[i]);
        smg_text_add(text, "\n");
    }
}

static void add_layout_axis(const void *user, int axis, smg_text *text) {
    add_axis(user, text, axis);
}

static void add_matrix(const smg_matrix *matrix, smg_text *text) {
    if (matrix->rows == 0) return;
    smg_text_addf(text, "matrix %d %d %d %s %s", matrix->rows, matrix->cols, matrix->depth, smg_type_word(matrix->type),
                  matrix->opaque ? "opaque " : "");
    smg_layout_print(&matrix->sums, smg_layout_add_side, NULL, text);
    smg_text_add(text, "\n");
    for (int n = 0; n < 2; n++) {
        const smg_layout *factor = n == 0 ? &matrix->left : &matrix->right;
        if (factor->axis_count == 0) continue;
        smg_text_add(text, n == 0 ? "left " : "right ");
        smg_layout_print(factor, smg_layout_add_side, NULL, text);
        smg_text_add(text, "\n");
    }
}

static void add_layouts(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < k->layouts.count; i++) {
        const smg_layout *layout = &k->layouts.items[i];
        int axes[SMG_LAYOUT_AXES], count = 0;
        for (; count < layout->axis_count && count < SMG_LAYOUT_AXES; count++) axes[count] = layout->axes[count].axis;
        smg_text_addf(text, "layout %d = ", i);
        add_list(k, text, axes, count);
        smg_text_add(text, " ");
        smg_layout_print(layout, add_layout_axis, k, text);
        smg_text_add(text, "\n");
    }
}

static void add_accesses(const smg_kernel *k, smg_text *text) {
    for (int i = 0; i < k->accesses.count; i++) {
        const smg_access *access = &k->accesses.items[i];
        smg_text_addf(text, "access %d = ", i);
        add_buffer(k, text, access->buffer);
        smg_text_add(text, " at ");
        add_size(k, text, access->offset);
        for (int a = 0; a < access->axis_count; a++) {
            smg_text_add(text, " ");
            add_axis(k, text, access->axis[a]);
            smg_text_add(text, "*");
            add_size(k, text, access->stride[a]);
        }
        if (access->index != SMG_EXPR_NONE) {
            smg_text_add(text, " : index*");
            add_size(k, text, access->index_stride);
            smg_text_add(text, " below ");
            add_size(k, text, access->index_limit);
            smg_text_add(text, " of ");
            add_expr(k, text, access->index);
        }
        smg_text_add(text, "\n");
    }
}

const char *smg_join_word(smg_join form) {
    static const char *const words[] = {"", "whole", "clustered", "xor"};
    return (unsigned)form < SMG_COUNT_OF(words) ? words[form] : "?";
}

const char *smg_scope_word(smg_scope scope) {
    static const char *const words[] = {"workgroup", "subgroup", "none"};
    return (unsigned)scope < SMG_COUNT_OF(words) ? words[scope] : "?";
}

/* ---- code ------------------------------------------------------------------------------------------ */

static void add_equals(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    smg_text_add(text, " = ");
    add_expr(k, text, instr->expr);
}

static void add_over(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    smg_text_add(text, " over ");
    add_list(k, text, instr->axes, instr->axis_count);
    if (instr->layout >= 0) smg_text_addf(text, " layout %d", instr->layout);
}

static void add_range(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    add_over(k, text, instr);
    smg_text_addf(text, " registers %d to %d", instr->first, instr->first + instr->registers - 1);
}

static void add_walk(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    smg_text_add(text, " walk ");
    add_list(k, text, instr->axes, instr->axis_count);
}

/* How far a tile is filled ahead, where it has slots. */
static void add_ahead(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    bool good = instr->dst >= 0 && instr->dst < k->tiles.count;
    if (good && (k->tiles.items[instr->dst].slots > 0 || instr->ahead != 0))
        smg_text_addf(text, " ahead %d%s", instr->ahead, instr->last ? " or last" : "");
}

static void add_wide(const smg_kernel *k, smg_text *text, smg_wide wide) {
    if (wide.width == 0) return;
    smg_text_addf(text, " by %d ", wide.width);
    add_axis(k, text, wide.axis);
}

/* Opaque sums that are left, or taken from where they were. */
static void add_moved_matrices(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    smg_text_add(text, instr->accumulate ? " += " : " = ");
    add_tile(k, text, instr->a);
    if (instr->kind == SMG_I_GATHER) {
        smg_text_add(text, " of ");
        add_tile(k, text, instr->b);
    }
    smg_text_addf(text, " registers %d to %d", instr->first, instr->first + instr->registers - 1);
}

/* What lanes tell each other, behind the tile that it goes to. */
static void add_exchange(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    const char *combine = instr->folded ? "first" : smg_combine_word(instr->combine);
    smg_text_addf(text, " = %s", instr->kind == SMG_I_LEAVE ? "" : combine);
    if (instr->kind == SMG_I_GATHER) smg_text_add(text, " of ");
    if (smg_instr_reads_a(instr)) add_tile(k, text, instr->a);
    if (instr->kind == SMG_I_GATHER && instr->b >= 0) {
        smg_text_add(text, " shares of ");
        add_tile(k, text, instr->b);
    }
    if (instr->kind != SMG_I_JOIN) {
        add_range(k, text, instr);
        return;
    }
    add_over(k, text, instr);
    if (instr->form != SMG_JOIN_OPEN) smg_text_addf(text, " by %s", smg_join_word(instr->form));
}

/* The word, and the tile that it writes. */
static void add_word(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    static const char *const words[] = {"set ",   "reduce ", "stage ", "fetch ", "put ",  "spill ",
                                        "take ",  "mma ",    "join ",  "leave ", "fold ", "gather ",
                                        "store ", "loop ",   "end",    "barrier"};
    bool adds = instr->kind == SMG_I_REDUCE && instr->accumulate;
    if (adds)
        smg_text_add(text, "accumulate ");
    else
        smg_text_add(text, (unsigned)instr->kind < SMG_COUNT_OF(words) ? words[instr->kind] : "?");
    if (instr->kind < SMG_I_STORE) add_tile(k, text, instr->dst);
    if (instr->kind == SMG_I_STORE) smg_text_addf(text, "%d", instr->a);
    if (instr->kind != SMG_I_MMA) add_wide(k, text, instr->wide[0]);
    if (instr->matrices) smg_text_add(text, " matrices");
    if (instr->matrices && instr->wide[1].width > 0) {
        smg_text_add(text, " else");
        add_wide(k, text, instr->wide[1]);
    }
    if (instr->exchanged) smg_text_add(text, " exchanged");
    if (instr->addressed && instr->kind != SMG_I_MMA) smg_text_add(text, " addressed");
}

static void add_bounds(const smg_kernel *k, smg_text *text, const smg_krange *range) {
    if (range == NULL) return;
    if (range->from != SMG_EXPR_NONE) {
        smg_text_add(text, " from ");
        add_expr(k, text, range->from);
    }
    if (range->to != SMG_EXPR_NONE) {
        smg_text_add(text, " to ");
        add_expr(k, text, range->to);
    }
}

static void add_loop(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    add_axis(k, text, instr->axis_count > 0 ? instr->axes[0] : -1);
    add_bounds(k, text, instr->range);
    if (instr->unroll != 0) smg_text_add(text, instr->unroll == 1 ? " unroll" : " rolled");
    if (instr->unroll > 1) smg_text_addf(text, " by %d", instr->unroll);
}

static void add_product(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    smg_text_add(text, " += ");
    add_tile(k, text, instr->a);
    add_wide(k, text, instr->wide[0]);
    smg_text_add(text, " * ");
    add_tile(k, text, instr->b);
    add_wide(k, text, instr->wide[1]);
    add_over(k, text, instr);
    if (instr->addressed) smg_text_add(text, " addressed");
    if (instr->terms > 0) smg_text_addf(text, " partial f16 %d", instr->terms);
    if (instr->terms < 0) smg_text_add(text, " partial f16 open");
    if (instr->unroll > 0) smg_text_addf(text, " unroll %d", instr->unroll);
}

static void add_operation(const smg_kernel *k, smg_text *text, const smg_instr *instr) {
    add_word(k, text, instr);
    switch (instr->kind) {
    case SMG_I_SET:
        add_ahead(k, text, instr);
        add_equals(k, text, instr);
        break;
    case SMG_I_REDUCE:
        smg_text_addf(text, " = %s", smg_combine_word(instr->combine));
        add_over(k, text, instr);
        smg_text_add(text, instr->apart ? " apart of " : " of ");
        add_expr(k, text, instr->expr);
        break;
    case SMG_I_STAGE:
        add_walk(k, text, instr);
        add_ahead(k, text, instr);
        add_equals(k, text, instr);
        break;
    case SMG_I_FETCH:
        add_walk(k, text, instr);
        smg_text_add(text, " along ");
        add_axis(k, text, instr->a);
        smg_text_addf(text, " ahead %d%s", instr->ahead, instr->last ? " or last" : "");
        add_equals(k, text, instr);
        break;
    case SMG_I_PUT:
    case SMG_I_TAKE:
    case SMG_I_SPILL:
        if (instr->kind == SMG_I_PUT) add_walk(k, text, instr);
        if (instr->kind != SMG_I_SPILL) add_ahead(k, text, instr);
        smg_text_add(text, " = ");
        add_tile(k, text, instr->a);
        break;
    case SMG_I_MMA: add_product(k, text, instr); break;
    case SMG_I_STORE:
        add_over(k, text, instr);
        add_equals(k, text, instr);
        break;
    case SMG_I_LOOP: add_loop(k, text, instr); break;
    case SMG_I_JOIN:
    case SMG_I_LEAVE:
    case SMG_I_FOLD:
    case SMG_I_GATHER: (instr->matrices ? add_moved_matrices : add_exchange)(k, text, instr); break;
    case SMG_I_BARRIER:
        if (instr->scope != SMG_SCOPE_WORKGROUP) smg_text_addf(text, " %s", smg_scope_word(instr->scope));
        break;
    case SMG_I_END: break;
    }
}

static void add_note(smg_text *text, const char *note) {
    smg_text_add(text, "  # ");
    for (const char *c = note; *c; c++) smg_text_add_n(text, *c == '\n' || *c == '\r' ? " " : c, 1);
}

static void add_code(const smg_kernel *k, smg_text *text) {
    int depth = 1;
    smg_text_add(text, "code\n");
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *instr = &k->code.items[i];
        if (instr->kind == SMG_I_END && depth > 1) depth--;
        for (int d = 0; d < depth; d++) smg_text_add(text, "  ");
        add_operation(k, text, instr);
        if (instr->note && instr->note[0]) add_note(text, instr->note);
        smg_text_add(text, "\n");
        if (instr->kind == SMG_I_LOOP) depth++;
    }
}

void smg_kernel_print(const smg_kernel *k, smg_text *text) {
    smg_text_add(text, "kernel ");
    add_name(text, k->name);
    smg_text_addf(text, "\nlanes %d subgroup %d%s", k->lanes, k->subgroup, k->numbered ? " numbered" : "");
    if (k->written > 0) smg_text_addf(text, " written %d", k->written);
    smg_text_add(text, "\n");
    add_symbols_and_axes(k, text);
    add_matrix(&k->matrix, text);
    add_layouts(k, text);
    add_buffers_and_tiles(k, text);
    add_accesses(k, text);
    add_evens(k, text);
    add_sure(k, text);
    add_code(k, text);
}
