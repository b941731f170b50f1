/* glsl.c: the entry. The inside of main is written first; what it turned out to use (sizes, extensions, diagnostics)
 * then decides the head. */
#include "glsl_private.h"

/* Limits that do not depend on the text. */
static void check_limits(glsl_writer *w) {
    const smg_kernel *k = w->k;
    int64_t shared = smg_kernel_shared_bytes(k);
    int invocations = k->lanes;
    if (invocations > w->target->max_invocations || invocations > w->target->max_size_x) {
        glsl_fail(w, SMG_UNSUPPORTED,
                  GLSL_STRING(w, "%d invocations in a workgroup, the device has at most %lld", invocations,
                              (long long)w->target->max_invocations));
    }
    if (shared > w->target->shared_bytes) {
        glsl_fail(w, SMG_UNSUPPORTED,
                  GLSL_STRING(w, "%lld bytes of shared memory, the device has %lld", (long long)shared,
                              (long long)w->target->shared_bytes));
    }
    if (k->subgroup > 1 && (k->subgroup & (k->subgroup - 1)) != 0)
        glsl_fail(w, SMG_INTERNAL, "the subgroup size is not a power of two");
}

static smg_status prepare(glsl_writer *w) {
    const smg_kernel *k = w->k;
    w->depth = 1;
    w->symbol_count = smg_size_symbol_count(k->sizes);
    w->looped = glsl_zeroed(w, k->axes.count, sizeof(bool));
    w->symbol_used = glsl_zeroed(w, w->symbol_count, sizeof(bool));
    w->buffer_read = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->address_used = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->buffer_words = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->buffer_wide = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->buffer_pair = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->buffer_eight = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->buffer_halves = glsl_zeroed(w, k->buffers.count, sizeof(bool));
    w->ahead = glsl_zeroed(w, k->axes.count, sizeof(int64_t));
    w->copy = glsl_zeroed(w, k->axes.count, sizeof(int));
    w->moved = glsl_zeroed(w, k->axes.count, sizeof(char *));
    w->ranged = glsl_zeroed(w, k->code.count, sizeof(bool));
    w->open = glsl_zeroed(w, k->axes.count, sizeof(int));
    if (w->status != SMG_OK) return w->status;
    w->uses[GLSL_USE_SUBGROUP] = k->numbered;
    return glsl_names(w);
}

/* Of the axis at a place in the grid. */
static smg_size blocks_along(const glsl_writer *w, int place) {
    const smg_kaxis *axis = &w->k->axes.items[w->k->grid.items[place]];
    return smg_size_ceil_div(w->k->sizes, axis->extent, smg_size_const(w->k->sizes, axis->tile));
}

static void write_base(glsl_writer *w, int place, const char *block) {
    int a = w->k->grid.items[place];
    const smg_kaxis *axis = &w->k->axes.items[a];
    if (axis->back) block = GLSL_STRING(w, "(%s - 1 - %s)", glsl_size(w, blocks_along(w, place)), block);
    GLSL_LINE(w, "int at_%s = %s;", w->axis_name[a], glsl_times_literal(w, block, axis->tile));
}

/* The last two axes: so many blocks of the last one for each of the other; in the last band there may be fewer. */
static void write_bands(glsl_writer *w) {
    const smg_kernel *k = w->k;
    int last = k->grid.count - 1;
    smg_size along = blocks_along(w, last), across = blocks_along(w, last - 1);
    const char *whole = glsl_size(w, smg_size_mul(k->sizes, across, smg_size_const(k->sizes, k->band)));
    const char *both = glsl_size(w, smg_size_mul(k->sizes, across, along));
    GLSL_LINE(w, "int in_band = %s;", last > 1 ? GLSL_STRING(w, "wg %% %s", both) : "wg");
    GLSL_LINE(w, "int band = in_band / %s * %lld;", whole, (long long)k->band);
    GLSL_LINE(w, "int high = min(%s - band, %lld);", glsl_size(w, along), (long long)k->band);
    GLSL_LINE(w, "in_band %%= %s;", whole);
    write_base(w, last, "(band + in_band % high)");
    write_base(w, last - 1, "(in_band / high)");
    if (last > 1) GLSL_LINE(w, "wg /= %s;", both);
}

/* Workgroup number -> bases of the grid axes, the last of kernel->grid fastest. */
static void write_grid(glsl_writer *w) {
    const smg_kernel *k = w->k;
    smg_size total = smg_size_const(k->sizes, 1);
    int places = k->band > 0 ? k->grid.count - 2 : k->grid.count;
    GLSL_LINE(w, "int wg = int(gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x);");
    for (int g = 0; g < k->grid.count; g++) total = smg_size_mul(k->sizes, total, blocks_along(w, g));
    GLSL_LINE(w, "if (wg >= %s) return; // uniform", glsl_size(w, total));
    if (k->band > 0) write_bands(w);
    for (int g = places - 1; g >= 0; g--) {
        const char *count = glsl_size(w, blocks_along(w, g));
        write_base(w, g, g > 0 ? GLSL_STRING(w, "(wg %% %s)", count) : "wg");
        if (g > 0) GLSL_LINE(w, "wg /= %s;", count);
    }
}

static void write_main(glsl_writer *w) {
    const smg_kernel *k = w->k;
    write_grid(w);
    glsl_lanes(w);
    for (int t = 0; t < k->tiles.count; t++) {
        const smg_tile *tile = &k->tiles.items[t];
        (void)glsl_element_word(w, tile->type); /* the head has to know of it */
        if (tile->residence == SMG_REGISTER) glsl_registers(w, t);
        if (tile->residence == SMG_STAGING) glsl_staging(w, t);
    }
    glsl_code(w);
}

static smg_status write_into(glsl_writer *w, smg_text *out, smg_glsl_interface *out_interface) {
    SMG_TRY(prepare(w));
    check_limits(w);
    write_main(w);
    if (w->status != SMG_OK) return w->status;
    SMG_TRY(smg_text_status(&w->body));
    glsl_size_symbols(w);
    smg_glsl_interface interface;
    SMG_TRY(glsl_interface_of(w, &interface));
    if (out_interface != NULL) *out_interface = interface;
    if (out == NULL) return w->status;
    smg_text text;
    smg_text_init(&text, w->ctx);
    glsl_head(w, &text);
    smg_text_add_n(&text, w->body.data, w->body.length);
    smg_text_add(&text, "}\n");
    smg_status status = w->status == SMG_OK ? smg_text_status(&text) : w->status;
    if (status == SMG_OK) {
        smg_text_add_n(out, text.data, text.length);
        status = smg_text_status(out);
    }
    smg_text_free(&text);
    return status;
}

static smg_status run(smg_context *ctx, const smg_kernel *k, const smg_target *target, smg_text *out,
                      smg_glsl_interface *out_interface) {
    if (k == NULL || target == NULL) return smg_fail(ctx, SMG_INVALID, "glsl: no kernel or no target");
    if (!smg_kernel_laid_out(k)) return smg_fail(ctx, SMG_INVALID, "glsl: kernel '%s' has no layouts yet", k->name);
    glsl_writer w;
    memset(&w, 0, sizeof w);
    w.ctx = ctx;
    w.k = k;
    w.target = target;
    w.status = SMG_OK;
    SMG_TRY(smg_arena_create(ctx, &w.arena));
    smg_text_init(&w.body, ctx);
    bool clean = smg_context_status(ctx) == SMG_OK;
    smg_status status = write_into(&w, out, out_interface);
    /* A question about sizes that ran out of memory is answered with no: the text would be right, and another one. */
    if (status == SMG_OK && clean) status = smg_context_status(ctx);
    smg_text_free(&w.body);
    smg_arena_destroy(w.arena);
    return status;
}

smg_status smg_glsl_write(smg_context *ctx, const smg_kernel *k, const smg_target *target, smg_text *out) {
    if (out == NULL) return smg_fail(ctx, SMG_INVALID, "glsl: nowhere to write to");
    return run(ctx, k, target, out, NULL);
}

smg_status smg_glsl_describe(smg_context *ctx, const smg_kernel *k, const smg_target *target,
                             smg_glsl_interface *out_interface) {
    if (out_interface == NULL) return smg_fail(ctx, SMG_INVALID, "glsl: nowhere to describe to");
    return run(ctx, k, target, NULL, out_interface);
}
