/* Reads what smg_kernel_print wrote: golden tests and kernels written by hand. One line is one
 * statement; names must be declared before they are used, and only the index of an access may look
 * ahead, at accesses further down. The reader makes a well-formed kernel, or fails with FORMAT and the
 * line; whether the program is right is the verifier's business. */
#include "kernel/kernel_parse.h"
#include "kernel/kernel_live.h"

#define MOST_LANES 4096
#define MOST_PAD 4096
#define MOST_WORDS (1 << 20) /* of an exchange, and registers of a lane */
#define MOST_WRITTEN (1 << 20)

/* ---- header ---------------------------------------------------------------------------------------- */

static smg_status read_lanes(kernel_reader *r) {
    SMG_TRY(kernel_read_int(r, 1, MOST_LANES, &r->k->lanes));
    SMG_TRY(kernel_read_word(r, "subgroup"));
    SMG_TRY(kernel_read_int(r, 1, MOST_LANES, &r->k->subgroup));
    r->k->numbered = kernel_read_keyword(r, "numbered");
    return kernel_read_keyword(r, "written") ? kernel_read_int(r, 1, MOST_WRITTEN, &r->k->written) : SMG_OK;
}

static smg_status read_symbol(kernel_reader *r) {
    const char *name = NULL;
    SMG_TRY(kernel_read_name(r, &name));
    if (smg_size_symbol(r->k->sizes, name) == SMG_SIZE_NONE) return smg_context_status(r->ctx);
    if (!kernel_read_take(r, "<=")) return SMG_OK;
    int64_t max = 0;
    SMG_TRY(kernel_read_integer(r, 1, SMG_SIZE_UNBOUNDED, &max));
    smg_size_symbol_set_max(r->k->sizes, smg_size_symbol_find(r->k->sizes, name), max);
    return SMG_OK;
}

static smg_status read_axis_line(kernel_reader *r) {
    smg_kaxis axis = {0};
    SMG_TRY(kernel_read_name(r, &axis.name));
    SMG_TRY(kernel_read_sign(r, "="));
    SMG_TRY(kernel_read_size(r, &axis.extent));
    SMG_TRY(kernel_read_word(r, "tile"));
    SMG_TRY(kernel_read_integer(r, 1, SMG_SIZE_UNBOUNDED, &axis.tile));
    axis.grid = kernel_read_keyword(r, "grid");
    axis.back = axis.grid && kernel_read_keyword(r, "back");
    smg_kaxis *slot = SMG_ARRAY_PUSH(r->arena, &r->k->axes);
    if (!slot) return SMG_MEMORY;
    *slot = axis;
    return SMG_OK;
}

static smg_status read_grid(kernel_reader *r) {
    do {
        int axis = 0;
        SMG_TRY(kernel_read_axis(r, &axis));
        int *slot = SMG_ARRAY_PUSH(r->arena, &r->k->grid);
        if (!slot) return SMG_MEMORY;
        *slot = axis;
    } while (kernel_read_take(r, ","));
    return kernel_read_keyword(r, "bands") ? kernel_read_integer(r, 1, INT32_MAX, &r->k->band) : SMG_OK;
}

/* Those that lie one behind the other. */
static smg_status read_values(kernel_reader *r, smg_kbuffer *buffer) {
    SMG_ARRAY(int) each = {0};
    do {
        int *slot = SMG_ARRAY_PUSH(r->arena, &each);
        if (!slot) return SMG_MEMORY;
        SMG_TRY(kernel_read_int(r, 0, INT32_MAX, slot));
    } while (!kernel_read_keyword(r, "every"));
    buffer->value = each.items[0];
    buffer->each = each.items;
    buffer->each_count = each.count;
    return kernel_read_integer(r, 1, SMG_SIZE_UNBOUNDED, &buffer->stride);
}

static smg_status read_blocks(kernel_reader *r, smg_kbuffer *buffer) {
    SMG_TRY(kernel_read_int(r, 1, INT32_MAX, &buffer->block[0]));
    SMG_TRY(kernel_read_word(r, "x"));
    SMG_TRY(kernel_read_int(r, 1, INT32_MAX, &buffer->block[1]));
    SMG_TRY(kernel_read_word(r, "of"));
    SMG_TRY(kernel_read_word(r, "rows"));
    SMG_TRY(kernel_read_word(r, "of"));
    return kernel_read_integer(r, 1, INT32_MAX, &buffer->row);
}

static smg_status read_buffer(kernel_reader *r) {
    smg_kbuffer buffer = {0};
    const char *word = NULL;
    SMG_TRY(kernel_read_name(r, &buffer.name));
    SMG_TRY(kernel_read_name(r, &word));
    if (!smg_type_find(word, &buffer.type)) return kernel_read_fail(r, "the type of a buffer");
    SMG_TRY(kernel_read_bracket(r, &buffer.elements));
    if (kernel_read_keyword(r, "values")) {
        SMG_TRY(read_values(r, &buffer));
    } else {
        SMG_TRY(kernel_read_word(r, "value"));
        SMG_TRY(kernel_read_int(r, -1, INT32_MAX, &buffer.value));
    }
    if (kernel_read_keyword(r, "blocks")) SMG_TRY(read_blocks(r, &buffer));
    buffer.written = kernel_read_keyword(r, "written");
    smg_kbuffer *slot = SMG_ARRAY_PUSH(r->arena, &r->k->buffers);
    if (!slot) return SMG_MEMORY;
    *slot = buffer;
    return SMG_OK;
}

/* What a layout says behind its axes, to the end of the line. */
static smg_status read_places(kernel_reader *r, smg_layout_take_axis *take_axis, smg_layout *layout) {
    const char *end = strchr(r->at, '\n'), *at = r->at;
    const char *wrong = smg_layout_read(&at, end != NULL ? end : at + strlen(at), take_axis, r, layout);
    r->at = at;
    return wrong == NULL ? SMG_OK : kernel_read_fail(r, wrong);
}

static int take_axis(void *user, const char **io_at, const char *end) {
    kernel_reader *r = user;
    int axis = -1;
    (void)end;
    r->at = *io_at;
    if (kernel_read_axis(r, &axis) != SMG_OK) return -1;
    *io_at = r->at;
    return axis;
}

static smg_status read_sides(kernel_reader *r, smg_layout *layout) {
    *layout = smg_layout_one();
    for (int side = 0; side < 2; side++) smg_layout_add(layout, SMG_LAYOUT_REGISTER, side, 1);
    return read_places(r, smg_layout_take_side, layout);
}

/* ROWS COLUMNS DEPTH TYPE, and where the sums are */
static smg_status read_matrix(kernel_reader *r) {
    smg_matrix *matrix = &r->k->matrix;
    const char *type = NULL;
    SMG_TRY(kernel_read_int(r, 1, MOST_WRITTEN, &matrix->rows));
    SMG_TRY(kernel_read_int(r, 1, MOST_WRITTEN, &matrix->cols));
    SMG_TRY(kernel_read_int(r, 1, MOST_WRITTEN, &matrix->depth));
    SMG_TRY(kernel_read_name(r, &type));
    if (!smg_type_find(type, &matrix->type)) return kernel_read_fail(r, "the type of a matrix");
    matrix->opaque = kernel_read_keyword(r, "opaque");
    return read_sides(r, &matrix->sums);
}

static smg_status read_left(kernel_reader *r) {
    return read_sides(r, &r->k->matrix.left);
}

static smg_status read_right(kernel_reader *r) {
    return read_sides(r, &r->k->matrix.right);
}

static smg_status read_layout(kernel_reader *r) {
    smg_layout layout = smg_layout_one();
    int number = 0, axes[SMG_TILE_AXES * 2], count = 0;
    SMG_TRY(kernel_read_int(r, r->k->layouts.count, r->k->layouts.count, &number));
    SMG_TRY(kernel_read_sign(r, "="));
    SMG_TRY(kernel_read_list(r, (int)SMG_COUNT_OF(axes), axes, &count));
    for (int i = 0; i < count; i++) smg_layout_add(&layout, SMG_LAYOUT_REGISTER, axes[i], 1);
    SMG_TRY(read_places(r, take_axis, &layout));
    smg_layout *slot = SMG_ARRAY_PUSH(r->arena, &r->k->layouts);
    if (!slot) return SMG_MEMORY;
    *slot = layout;
    return SMG_OK;
}

static smg_status read_clamped(kernel_reader *r, uint64_t *out_clamped) {
    int axes[SMG_TILE_AXES], count = 0;
    SMG_TRY(kernel_read_list(r, SMG_TILE_AXES, axes, &count));
    for (int i = 0; i < count; i++) {
        if (axes[i] >= 64) return kernel_read_fail(r, "one of the first 64 axes");
        *out_clamped |= UINT64_C(1) << axes[i];
    }
    return SMG_OK;
}

/* Of a tile that stands before. */
static smg_status read_slice(kernel_reader *r, smg_tile *tile) {
    tile->sliced = true;
    SMG_TRY(kernel_read_word(r, "along"));
    SMG_TRY(kernel_read_axis(r, &tile->ring));
    SMG_TRY(kernel_read_word(r, "of"));
    SMG_TRY(kernel_read_tile(r, &tile->of));
    SMG_TRY(kernel_read_word(r, "along"));
    return kernel_read_axis(r, &tile->along);
}

static smg_status read_tile_line(kernel_reader *r) {
    smg_tile tile = {.layout = -1};
    SMG_TRY(kernel_read_name(r, &tile.name));
    while (tile.type < SMG_TYPE_COUNT && !kernel_read_keyword(r, smg_tile_word(tile.type))) tile.type++;
    if (tile.type == SMG_TYPE_COUNT) return kernel_read_fail(r, "the type of a tile");
    if (kernel_read_keyword(r, "shared"))
        tile.residence = SMG_SHARED;
    else if (kernel_read_keyword(r, "staging"))
        tile.residence = SMG_STAGING;
    else if (kernel_read_keyword(r, "view"))
        tile.residence = SMG_VIEW;
    else if (kernel_read_keyword(r, "exchange"))
        tile.residence = SMG_EXCHANGE;
    else
        SMG_TRY(kernel_read_word(r, "register"));
    SMG_TRY(kernel_read_list(r, SMG_TILE_AXES, tile.axis, &tile.axis_count));
    if (tile.residence == SMG_REGISTER && kernel_read_keyword(r, "layout"))
        SMG_TRY(kernel_read_int(r, 0, r->k->layouts.count - 1, &tile.layout));
    bool left = tile.residence == SMG_REGISTER && kernel_read_keyword(r, "left");
    if (left || (tile.residence == SMG_REGISTER && kernel_read_keyword(r, "right"))) {
        SMG_TRY(kernel_read_word(r, "fragments"));
        tile.fragments = left ? SMG_FRAGMENTS_LEFT : SMG_FRAGMENTS_RIGHT;
    } else if (tile.residence == SMG_REGISTER && kernel_read_keyword(r, "fragments")) {
        tile.fragments = SMG_FRAGMENTS_SUMS;
    }
    if (tile.residence == SMG_EXCHANGE) {
        SMG_TRY(kernel_read_word(r, "words"));
        SMG_TRY(kernel_read_int(r, 1, MOST_WORDS, &tile.words));
    }
    if (kernel_read_keyword(r, "pad")) SMG_TRY(kernel_read_int(r, 0, MOST_PAD, &tile.pad));
    if (kernel_read_keyword(r, "in")) {
        SMG_TRY(kernel_read_word(r, "runs"));
        tile.in_runs = true;
    }
    if (kernel_read_keyword(r, "slots")) {
        SMG_TRY(kernel_read_int(r, 2, SMG_SLOTS, &tile.slots));
        SMG_TRY(kernel_read_word(r, "along"));
        SMG_TRY(kernel_read_axis(r, &tile.ring));
    }
    if (kernel_read_keyword(r, "slice")) SMG_TRY(read_slice(r, &tile));
    if (tile.residence == SMG_VIEW) {
        SMG_TRY(kernel_read_word(r, "of"));
        SMG_TRY(kernel_read_int(r, 0, INT32_MAX, &tile.access));
    }
    if (kernel_read_keyword(r, "memory")) SMG_TRY(kernel_read_int(r, 1, INT32_MAX, &tile.memory));
    if (kernel_read_keyword(r, "clamped")) SMG_TRY(read_clamped(r, &tile.clamped));
    smg_tile *slot = SMG_ARRAY_PUSH(r->arena, &r->k->tiles);
    if (!slot) return SMG_MEMORY;
    *slot = tile;
    return SMG_OK;
}

/* ---- accesses -------------------------------------------------------------------------------------- */

static smg_status read_buffer_name(kernel_reader *r, int *out_buffer) {
    const char *name = NULL, *start = r->at;
    *out_buffer = -1;
    if (kernel_read_take(r, "-")) return SMG_OK;
    SMG_TRY(kernel_read_name(r, &name));
    for (int i = 0; i < r->k->buffers.count; i++)
        if (strcmp(r->k->buffers.items[i].name, name) == 0) {
            *out_buffer = i;
            return SMG_OK;
        }
    r->at = start;
    return kernel_read_fail(r, "the name of a buffer");
}

static smg_status read_indirect(kernel_reader *r, smg_access *access, int number) {
    SMG_TRY(kernel_read_word(r, "index"));
    SMG_TRY(kernel_read_sign(r, "*"));
    SMG_TRY(kernel_read_bracket(r, &access->index_stride));
    SMG_TRY(kernel_read_word(r, "below"));
    SMG_TRY(kernel_read_bracket(r, &access->index_limit));
    SMG_TRY(kernel_read_word(r, "of"));
    kernel_pending *pending = SMG_ARRAY_PUSH(r->arena, &r->pending);
    if (!pending) return SMG_MEMORY;
    *pending = (kernel_pending){.access = number, .line = r->line, .at = r->at};
    while (*r->at && *r->at != '\n') r->at++;
    return SMG_OK;
}

static smg_status read_access(kernel_reader *r) {
    smg_access access = {.index = SMG_EXPR_NONE};
    int number = r->k->accesses.count;
    SMG_TRY(kernel_read_int(r, number, number, &number));
    SMG_TRY(kernel_read_sign(r, "="));
    SMG_TRY(read_buffer_name(r, &access.buffer));
    SMG_TRY(kernel_read_word(r, "at"));
    SMG_TRY(kernel_read_bracket(r, &access.offset));
    while (!kernel_read_line_end(r)) {
        if (kernel_read_take(r, ":")) {
            SMG_TRY(read_indirect(r, &access, number));
            break;
        }
        if (access.axis_count == SMG_ACCESS_AXES) return kernel_read_fail(r, "fewer axes in an access");
        SMG_TRY(kernel_read_axis(r, &access.axis[access.axis_count]));
        SMG_TRY(kernel_read_sign(r, "*"));
        SMG_TRY(kernel_read_bracket(r, &access.stride[access.axis_count]));
        access.axis_count++;
    }
    smg_access *slot = SMG_ARRAY_PUSH(r->arena, &r->k->accesses);
    if (!slot) return SMG_MEMORY;
    *slot = access;
    return SMG_OK;
}

static smg_status read_even(kernel_reader *r) {
    smg_even even = {0};
    SMG_TRY(kernel_read_bracket(r, &even.size));
    SMG_TRY(kernel_read_word(r, "by"));
    SMG_TRY(kernel_read_integer(r, 2, SMG_SIZE_UNBOUNDED, &even.by));
    if (r->k->evens.count == SMG_KERNEL_EVENS) return kernel_read_fail(r, "fewer sizes of an even form");
    smg_even *slot = SMG_ARRAY_PUSH(r->arena, &r->k->evens);
    if (!slot) return SMG_MEMORY;
    *slot = even;
    return SMG_OK;
}

static smg_status read_sure(kernel_reader *r) {
    smg_expr *slot = SMG_ARRAY_PUSH(r->arena, &r->k->sure);
    return slot != NULL ? kernel_read_expr(r, slot) : SMG_MEMORY;
}

static smg_status read_pending(kernel_reader *r) {
    kernel_reader ahead = *r;
    for (int i = 0; i < r->pending.count; i++) {
        ahead.at = r->pending.items[i].at;
        ahead.line = r->pending.items[i].line;
        smg_access *access = &r->k->accesses.items[r->pending.items[i].access];
        SMG_TRY(kernel_read_expr(&ahead, &access->index));
        if (!kernel_read_line_end(&ahead)) return kernel_read_fail(&ahead, "the end of the line");
    }
    return SMG_OK;
}

/* ---- code ------------------------------------------------------------------------------------------ */

static smg_status read_equals(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(kernel_read_sign(r, "="));
    return kernel_read_expr(r, &instr->expr);
}

/* N AXIS */
static smg_status read_neighbours(kernel_reader *r, smg_wide *out_wide) {
    SMG_TRY(kernel_read_int(r, SMG_PAIR, SMG_WIDEST, &out_wide->width));
    return kernel_read_axis(r, &out_wide->axis);
}

/* [by N AXIS] */
static smg_status read_wide(kernel_reader *r, smg_wide *out_wide) {
    if (!kernel_read_keyword(r, "by")) return SMG_OK;
    return read_neighbours(r, out_wide);
}

/* [by N AXIS [matrices [else by N AXIS]]] */
static smg_status read_groups(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_wide(r, &instr->wide[0]));
    instr->matrices = instr->wide[0].width > 0 && kernel_read_keyword(r, "matrices");
    if (!instr->matrices || !kernel_read_keyword(r, "else")) return SMG_OK;
    SMG_TRY(kernel_read_word(r, "by"));
    return read_neighbours(r, &instr->wide[1]);
}

/* The tile that is written, and how many neighbours at once. */
static smg_status read_result(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(kernel_read_tile(r, &instr->dst));
    return read_groups(r, instr);
}

static smg_status read_over(kernel_reader *r, const char *word, smg_instr *instr) {
    SMG_TRY(kernel_read_word(r, word));
    return kernel_read_list(r, SMG_TILE_AXES, instr->axes, &instr->axis_count);
}

/* over [axes] [layout N] */
static smg_status read_laid(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_over(r, "over", instr));
    if (!kernel_read_keyword(r, "layout")) return SMG_OK;
    return kernel_read_int(r, 0, r->k->layouts.count - 1, &instr->layout);
}

static smg_status read_combine(kernel_reader *r, smg_instr *instr) {
    const char *word = NULL;
    int combine = 0;
    SMG_TRY(kernel_read_name(r, &word));
    while (combine < SMG_COMBINE_COUNT && strcmp(smg_combine_word((smg_combine)combine), word) != 0) combine++;
    if (combine == SMG_COMBINE_COUNT) return kernel_read_fail(r, "a combine");
    instr->combine = (smg_combine)combine;
    return SMG_OK;
}

/* TILE [addressed] = COMBINE over [axes] layout N */
static smg_status read_folded(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(kernel_read_tile(r, &instr->dst));
    instr->addressed = kernel_read_keyword(r, "addressed");
    SMG_TRY(kernel_read_sign(r, "="));
    SMG_TRY(read_combine(r, instr));
    return read_laid(r, instr);
}

static smg_status read_join(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_folded(r, instr));
    if (!kernel_read_keyword(r, "by")) return SMG_OK;
    for (int form = SMG_JOIN_WHOLE; form <= SMG_JOIN_XOR; form++) {
        if (!kernel_read_keyword(r, smg_join_word((smg_join)form))) continue;
        instr->form = (smg_join)form;
        return SMG_OK;
    }
    return kernel_read_fail(r, "whole, clustered or xor");
}

/* registers A to B */
static smg_status read_registers(kernel_reader *r, smg_instr *instr) {
    int last = 0;
    SMG_TRY(kernel_read_word(r, "registers"));
    SMG_TRY(kernel_read_int(r, 0, MOST_WORDS, &instr->first));
    SMG_TRY(kernel_read_word(r, "to"));
    SMG_TRY(kernel_read_int(r, instr->first, MOST_WORDS, &last));
    instr->registers = last - instr->first + 1;
    return SMG_OK;
}

/* over [axes] layout N registers A to B */
static smg_status read_range(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_laid(r, instr));
    return read_registers(r, instr);
}

/* = TILE | = TILE of TILE | += TILE of TILE, and the registers */
static smg_status read_moved_matrices(kernel_reader *r, smg_instr *instr) {
    instr->accumulate = instr->kind == SMG_I_GATHER && kernel_read_take(r, "+=");
    if (!instr->accumulate) SMG_TRY(kernel_read_sign(r, "="));
    SMG_TRY(kernel_read_tile(r, &instr->a));
    if (instr->kind == SMG_I_GATHER) {
        SMG_TRY(kernel_read_word(r, "of"));
        SMG_TRY(kernel_read_tile(r, &instr->b));
    }
    return read_registers(r, instr);
}

/* TILE = TILE | COMBINE | COMBINE of TILE | COMBINE of TILE shares of TILE | first of TILE, and the range */
static smg_status read_exchange(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(kernel_read_tile(r, &instr->dst));
    instr->matrices = instr->kind != SMG_I_FOLD && kernel_read_keyword(r, "matrices");
    if (instr->matrices) return read_moved_matrices(r, instr);
    SMG_TRY(kernel_read_sign(r, "="));
    if (instr->kind == SMG_I_LEAVE) {
        SMG_TRY(kernel_read_tile(r, &instr->a));
        return read_range(r, instr);
    }
    instr->folded = instr->kind == SMG_I_GATHER && kernel_read_keyword(r, "first");
    if (!instr->folded) SMG_TRY(read_combine(r, instr));
    if (instr->kind == SMG_I_GATHER) {
        SMG_TRY(kernel_read_word(r, "of"));
        SMG_TRY(kernel_read_tile(r, &instr->a));
        if (kernel_read_keyword(r, "shares")) {
            SMG_TRY(kernel_read_word(r, "of"));
            SMG_TRY(kernel_read_tile(r, &instr->b));
        }
    }
    return read_range(r, instr);
}

static smg_status read_reduce(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_folded(r, instr));
    instr->apart = kernel_read_keyword(r, "apart");
    SMG_TRY(kernel_read_word(r, "of"));
    return kernel_read_expr(r, &instr->expr);
}

static smg_status read_mma(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(kernel_read_tile(r, &instr->dst));
    SMG_TRY(kernel_read_sign(r, "+="));
    SMG_TRY(kernel_read_tile(r, &instr->a));
    SMG_TRY(read_wide(r, &instr->wide[0]));
    SMG_TRY(kernel_read_sign(r, "*"));
    SMG_TRY(kernel_read_tile(r, &instr->b));
    SMG_TRY(read_wide(r, &instr->wide[1]));
    SMG_TRY(read_laid(r, instr));
    instr->addressed = kernel_read_keyword(r, "addressed");
    if (kernel_read_keyword(r, "partial")) {
        SMG_TRY(kernel_read_word(r, "f16"));
        instr->terms = SMG_TERMS_OPEN;
        if (!kernel_read_keyword(r, "open")) SMG_TRY(kernel_read_int(r, 1, SMG_MOST_TERMS, &instr->terms));
    }
    return kernel_read_keyword(r, "unroll") ? kernel_read_int(r, 1, MOST_WRITTEN, &instr->unroll) : SMG_OK;
}

static smg_status read_loop(kernel_reader *r, smg_instr *instr) {
    instr->axis_count = 1;
    SMG_TRY(kernel_read_axis(r, &instr->axes[0]));
    smg_krange range = {SMG_EXPR_NONE, SMG_EXPR_NONE};
    if (kernel_read_keyword(r, "from")) SMG_TRY(kernel_read_expr(r, &range.from));
    if (kernel_read_keyword(r, "to")) SMG_TRY(kernel_read_expr(r, &range.to));
    if (range.from != SMG_EXPR_NONE || range.to != SMG_EXPR_NONE) {
        smg_krange *kept = SMG_ARENA_NEW(r->arena, smg_krange);
        if (kept == NULL) return SMG_MEMORY;
        *kept = range;
        instr->range = kept;
    }
    instr->unroll = kernel_read_keyword(r, "unroll") ? 1 : kernel_read_keyword(r, "rolled") ? -1 : 0;
    if (instr->unroll < 0 && kernel_read_keyword(r, "by")) return kernel_read_int(r, 2, SMG_SLOTS, &instr->unroll);
    return SMG_OK;
}

static smg_status read_fetch(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_result(r, instr));
    SMG_TRY(read_over(r, "walk", instr));
    SMG_TRY(kernel_read_word(r, "along"));
    SMG_TRY(kernel_read_axis(r, &instr->a));
    SMG_TRY(kernel_read_word(r, "ahead"));
    SMG_TRY(kernel_read_int(r, 0, SMG_SLOTS, &instr->ahead));
    instr->last = kernel_read_keyword(r, "or");
    if (instr->last) SMG_TRY(kernel_read_word(r, "last"));
    return read_equals(r, instr);
}

/* TILE [by N axis] [addressed] [ahead N [or last]] = expression */
static smg_status read_set(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_result(r, instr));
    instr->addressed = kernel_read_keyword(r, "addressed");
    if (kernel_read_keyword(r, "ahead")) {
        SMG_TRY(kernel_read_int(r, 0, SMG_SLOTS, &instr->ahead));
        instr->last = kernel_read_keyword(r, "or");
        if (instr->last) SMG_TRY(kernel_read_word(r, "last"));
    }
    return read_equals(r, instr);
}

/* TILE [by N axis] [ahead N] = TILE */
static smg_status read_take(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_result(r, instr));
    if (kernel_read_keyword(r, "ahead")) SMG_TRY(kernel_read_int(r, 0, SMG_SLOTS, &instr->ahead));
    SMG_TRY(kernel_read_sign(r, "="));
    return kernel_read_tile(r, &instr->a);
}

/* TILE walk [axes] [ahead N] */
static smg_status read_walk(kernel_reader *r, smg_instr *instr) {
    SMG_TRY(read_result(r, instr));
    SMG_TRY(read_over(r, "walk", instr));
    return kernel_read_keyword(r, "ahead") ? kernel_read_int(r, 0, SMG_SLOTS, &instr->ahead) : SMG_OK;
}

static smg_status read_operands(kernel_reader *r, smg_instr *instr) {
    switch (instr->kind) {
    case SMG_I_SET: return read_set(r, instr);
    case SMG_I_REDUCE: return read_reduce(r, instr);
    case SMG_I_STAGE: SMG_TRY(read_walk(r, instr)); return read_equals(r, instr);
    case SMG_I_FETCH: return read_fetch(r, instr);
    case SMG_I_PUT:
        SMG_TRY(read_walk(r, instr));
        SMG_TRY(kernel_read_sign(r, "="));
        return kernel_read_tile(r, &instr->a);
    case SMG_I_SPILL:
        SMG_TRY(read_result(r, instr));
        SMG_TRY(kernel_read_sign(r, "="));
        return kernel_read_tile(r, &instr->a);
    case SMG_I_TAKE: return read_take(r, instr);
    case SMG_I_MMA: return read_mma(r, instr);
    case SMG_I_JOIN: return read_join(r, instr);
    case SMG_I_LEAVE:
    case SMG_I_FOLD:
    case SMG_I_GATHER: return read_exchange(r, instr);
    case SMG_I_STORE:
        SMG_TRY(kernel_read_int(r, 0, r->k->accesses.count - 1, &instr->a));
        SMG_TRY(read_groups(r, instr));
        instr->exchanged = kernel_read_keyword(r, "exchanged");
        instr->addressed = kernel_read_keyword(r, "addressed");
        SMG_TRY(read_laid(r, instr));
        return read_equals(r, instr);
    case SMG_I_LOOP: return read_loop(r, instr);
    case SMG_I_BARRIER:
        if (kernel_read_keyword(r, smg_scope_word(SMG_SCOPE_SUBGROUP))) instr->scope = SMG_SCOPE_SUBGROUP;
        break;
    case SMG_I_END: break;
    }
    return SMG_OK;
}

static smg_status read_note(kernel_reader *r, const char **out_note) {
    if (!kernel_read_take(r, "#")) return SMG_OK;
    if (*r->at == ' ') r->at++;
    const char *start = r->at;
    while (*r->at && *r->at != '\n') r->at++;
    *out_note = smg_arena_string_n(r->arena, start, (size_t)(r->at - start));
    return *out_note ? SMG_OK : SMG_MEMORY;
}

static smg_status read_instr(kernel_reader *r) {
    static const struct {
        const char *word;
        smg_instr_kind kind;
    } rows[] = {{"set", SMG_I_SET},       {"reduce", SMG_I_REDUCE},  {"accumulate", SMG_I_REDUCE},
                {"stage", SMG_I_STAGE},   {"fetch", SMG_I_FETCH},    {"put", SMG_I_PUT},
                {"spill", SMG_I_SPILL},   {"mma", SMG_I_MMA},        {"take", SMG_I_TAKE},
                {"join", SMG_I_JOIN},     {"leave", SMG_I_LEAVE},    {"fold", SMG_I_FOLD},
                {"gather", SMG_I_GATHER}, {"store", SMG_I_STORE},    {"loop", SMG_I_LOOP},
                {"end", SMG_I_END},       {"barrier", SMG_I_BARRIER}};
    smg_instr instr = {.dst = -1, .a = -1, .b = -1, .layout = -1, .expr = SMG_EXPR_NONE};
    size_t row = 0;
    while (row < SMG_COUNT_OF(rows) && !kernel_read_keyword(r, rows[row].word)) row++;
    if (row == SMG_COUNT_OF(rows)) return kernel_read_fail(r, "an instruction");
    instr.kind = rows[row].kind;
    instr.accumulate = strcmp(rows[row].word, "accumulate") == 0;
    SMG_TRY(read_operands(r, &instr));
    SMG_TRY(read_note(r, &instr.note));
    smg_instr *slot = SMG_ARRAY_PUSH(r->arena, &r->k->code);
    if (!slot) return SMG_MEMORY;
    *slot = instr;
    return SMG_OK;
}

/* ---- lines ----------------------------------------------------------------------------------------- */

static smg_status read_statement(kernel_reader *r) {
    static const struct {
        const char *word;
        smg_status (*read)(kernel_reader *r);
    } rows[] = {{"lanes", read_lanes},   {"symbol", read_symbol}, {"axis", read_axis_line}, {"grid", read_grid},
                {"layout", read_layout}, {"buffer", read_buffer}, {"tile", read_tile_line}, {"access", read_access},
                {"even", read_even},     {"matrix", read_matrix}, {"left", read_left},      {"right", read_right},
                {"sure", read_sure}};
    if (kernel_read_keyword(r, "kernel")) return kernel_read_name(r, &r->k->name);
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++)
        if (kernel_read_keyword(r, rows[i].word)) return rows[i].read(r);
    return kernel_read_fail(r, "a declaration or \"code\"");
}

static smg_status read_lines(kernel_reader *r) {
    bool code = false;
    for (; *r->at; r->line++) {
        if (!kernel_read_line_end(r)) {
            if (!code && kernel_read_keyword(r, "code")) {
                code = true;
                SMG_TRY(read_pending(r));
            } else {
                SMG_TRY(code ? read_instr(r) : read_statement(r));
            }
        }
        if (!kernel_read_line_end(r)) return kernel_read_fail(r, "the end of the line");
        while (*r->at && *r->at != '\n') r->at++;
        if (*r->at == '\n') r->at++;
    }
    if (!r->k->name || !code) return kernel_read_fail(r, r->k->name ? "\"code\"" : "the kernel's name");
    return SMG_OK;
}

smg_status smg_kernel_parse(smg_arena *arena, smg_sizes *sizes, const char *text, smg_kernel **out_kernel) {
    *out_kernel = NULL;
    smg_kernel *k = SMG_ARENA_NEW(arena, smg_kernel);
    if (!k) return SMG_MEMORY;
    k->arena = arena;
    k->sizes = sizes;
    k->lanes = k->subgroup = 1;
    SMG_TRY(smg_exprs_create(arena, &k->exprs));
    kernel_reader r = {.ctx = smg_arena_context(arena), .arena = arena, .k = k, .at = text, .line = 1};
    smg_status before = smg_context_status(r.ctx);
    SMG_TRY(read_lines(&r));
    SMG_TRY(kernel_live_keep(k));
    if (before == SMG_OK) SMG_TRY(smg_context_status(r.ctx)); /* a walk that got no memory says so there */
    *out_kernel = k;
    return SMG_OK;
}
