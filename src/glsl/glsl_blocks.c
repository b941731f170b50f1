/* glsl_blocks.c: places in buffers that lie in blocks. Blocks of the same columns lie side by side, so that what a
 * workgroup reads in one step of what is contracted is one piece of memory. Where an access goes by blocks
 * (smg_access_by_blocks) each of its terms adds what it does to the place: a base is whole blocks, an index within a
 * tile a block and a place in it. Of any other access the address is summed up first, and divided. */
#include "glsl_private.h"

typedef struct block_term {
    int64_t size, within, apart; /* elements of a block along the axis; what they and blocks are apart */
} block_term;

static block_term block_term_of(const smg_kernel *k, const smg_kbuffer *b, bool down) {
    int64_t rows = b->block[0], cols = b->block[1];
    return down ? (block_term){rows, cols, rows * cols}
                : (block_term){cols, 1, smg_kbuffer_tensor_elements(k, b) / b->row * cols};
}

/* What an index within a tile of so many elements adds. */
static const char *in_block(glsl_writer *w, const char *at, block_term t, int64_t elements) {
    if (elements <= t.size || strcmp(at, "0") == 0) return glsl_times_literal(w, at, t.within);
    if (t.size == 1) return glsl_times_literal(w, at, t.apart);
    bool powers = smg_is_power_of_two(t.size);
    const char *block = powers ? GLSL_STRING(w, "((%s) >> %d)", at, smg_log2(t.size))
                               : GLSL_STRING(w, "(%s) / %lld", at, (long long)t.size);
    const char *within = powers ? GLSL_STRING(w, "((%s) & %lld)", at, (long long)t.size - 1)
                                : GLSL_STRING(w, "(%s) %% %lld", at, (long long)t.size);
    const char *sum = glsl_plus(w, glsl_times_literal(w, block, t.apart), glsl_times_literal(w, within, t.within));
    return GLSL_STRING(w, "(%s)", sum);
}

static bool by_blocks(const glsl_writer *w, const smg_access *access, int *out_down, int *out_along) {
    return access->buffer >= 0 && smg_kbuffer_is_blocked(&w->k->buffers.items[access->buffer]) &&
           smg_access_by_blocks(w->k, access, out_down, out_along);
}

bool glsl_by_blocks(const glsl_writer *w, const smg_access *access) {
    int down, along;
    return by_blocks(w, access, &down, &along);
}

/* What is so many elements on, by whole tensors, rows or blocks: on the way along a row all rows of a block are between
 * two blocks. */
static int64_t on_by(const smg_kernel *k, const smg_kbuffer *b, int64_t elements) {
    if (elements % smg_kbuffer_tensor_elements(k, b) == 0) return elements;
    block_term t = block_term_of(k, b, elements >= b->row);
    return elements >= b->row ? elements / b->row * t.within : elements * (t.apart / t.size);
}

static const char *term_steps(glsl_writer *w, const smg_access *access, int term, const char *steps) {
    int down, along;
    int64_t stride;
    if (!by_blocks(w, access, &down, &along) || !smg_size_is_const(w->k->sizes, access->stride[term], &stride))
        return glsl_times(w, steps, access->stride[term]);
    return glsl_times_literal(w, steps, on_by(w->k, &w->k->buffers.items[access->buffer], stride));
}

const char *glsl_offset_part(glsl_writer *w, const smg_access *access) {
    int down, along;
    int64_t offset;
    if (!by_blocks(w, access, &down, &along) || !smg_size_is_const(w->k->sizes, access->offset, &offset))
        return glsl_size(w, access->offset);
    const smg_kbuffer *b = &w->k->buffers.items[access->buffer];
    int64_t rest = offset % smg_kbuffer_tensor_elements(w->k, b);
    return GLSL_STRING(w, "%lld", (long long)(offset - rest + on_by(w->k, b, rest)));
}

const char *glsl_base_part(glsl_writer *w, const smg_access *access, int term) {
    return term_steps(w, access, term, glsl_base(w, access->axis[term]));
}

/* The term along the axis, and the blocks that it goes by; size 0: by none. */
static int term_along(const glsl_writer *w, const smg_access *access, int axis, block_term *out) {
    int down, along, term = 0;
    *out = (block_term){0};
    while (term < access->axis_count && access->axis[term] != axis) term++;
    if (term < access->axis_count && by_blocks(w, access, &down, &along) && (term == down || term == along))
        *out = block_term_of(w->k, &w->k->buffers.items[access->buffer], term == down);
    return term;
}

const char *glsl_address_part(glsl_writer *w, const smg_access *access, int axis, const char *at) {
    block_term t;
    int term = term_along(w, access, axis, &t);
    if (term == access->axis_count) return "0";
    return t.size == 0 ? term_steps(w, access, term, at) : in_block(w, at, t, w->k->axes.items[axis].tile);
}

bool glsl_address_distance(const glsl_writer *w, const smg_access *access, int axis, int64_t number, int64_t *out) {
    block_term t;
    int term = term_along(w, access, axis, &t), down, along;
    *out = 0;
    if (number == 0 || term == access->axis_count) return true;
    if (t.size > 0) *out = number / t.size * t.apart + number % t.size * t.within;
    if (t.size > 0) return true;
    if (!smg_size_is_const(w->k->sizes, access->stride[term], out)) return false;
    if (by_blocks(w, access, &down, &along)) *out = on_by(w->k, &w->k->buffers.items[access->buffer], *out);
    *out *= number;
    return true;
}

const char *glsl_address_number(glsl_writer *w, const smg_access *access, int axis, int64_t number) {
    block_term t;
    (void)term_along(w, access, axis, &t);
    if (t.size == 0) return glsl_address_part(w, access, axis, GLSL_STRING(w, "%lld", (long long)number));
    return GLSL_STRING(w, "%lld", (long long)(number / t.size * t.apart + number % t.size * t.within));
}

const char *glsl_place(glsl_writer *w, const smg_access *access, const char *address) {
    int down, along;
    const smg_kbuffer *b = access->buffer >= 0 ? &w->k->buffers.items[access->buffer] : NULL;
    if (b == NULL || !smg_kbuffer_is_blocked(b) || by_blocks(w, access, &down, &along)) return address;
    int number = w->serial++;
    long long tensor = (long long)smg_kbuffer_tensor_elements(w->k, b);
    GLSL_LINE(w, "int n%d = %s;", number, address);
    const char *at = GLSL_STRING(w, "n%d", number), *before = "0";
    if (b->each != NULL) {
        before = GLSL_STRING(w, "%s / %lld * %lld", at, tensor, tensor);
        at = GLSL_STRING(w, "(%s %% %lld)", at, tensor);
    }
    const char *row = GLSL_STRING(w, "(%s / %lld)", at, (long long)b->row);
    const char *col = GLSL_STRING(w, "(%s %% %lld)", at, (long long)b->row);
    const char *place = glsl_plus(w, in_block(w, row, block_term_of(w->k, b, true), INT64_MAX),
                                  in_block(w, col, block_term_of(w->k, b, false), INT64_MAX));
    return glsl_plus(w, before, place);
}
