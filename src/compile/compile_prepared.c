/* compile_prepared.c: a bundle whose prepare list has run already.
 *
 * The list runs on a device, as it does when a model is opened; what run lists read of its results become constants,
 * and what only it read goes, with its modules. The kernels and their order are those of the list, so that the bits are
 * those that the device would have made itself. */
#include "compile/compile.h"

#if SMG_VULKAN

typedef struct prepared {
    smg_context *ctx;
    smg_arena *arena;
    const smg_bundle *from;
    smg_program *program;
    smg_bundle *to;
    int *buffers, *modules; /* old -> new, -1: gone */
} prepared;

/* Can the device run the list? */
static smg_status check_device(const prepared *p, const smg_target *made_for, const smg_target *device) {
    smg_target needs;
    smg_text missing;
    SMG_TRY(smg_bundle_needs(p->ctx, p->from, made_for, &needs));
    smg_text_init(&missing, p->ctx);
    bool enough = smg_target_meets(device, &needs, &missing);
    smg_status status = smg_text_status(&missing);
    if (status == SMG_OK && !enough)
        status = smg_fail(p->ctx, SMG_UNSUPPORTED, "weights cannot be prepared on %s: %s", device->name,
                          smg_text_cstr(&missing));
    smg_text_free(&missing);
    return status;
}

static void mark_members(const prepared *p, int stack) {
    const smg_bbuffer *b = &p->from->buffers.items[stack];
    for (int i = 0; i < b->member_count; i++) p->buffers[b->members[i]] = 0;
}

static void mark_used(const prepared *p) {
    for (int i = 0; i < p->from->buffers.count; i++) {
        smg_buffer_kind kind = p->from->buffers.items[i].kind;
        p->buffers[i] = kind == SMG_BUFFER_CONSTANT || kind == SMG_BUFFER_DERIVED ? -1 : 0;
    }
    for (int i = 0; i < p->from->buffers.count; i++) mark_members(p, i);
    for (int i = 0; i < p->from->modules.count; i++) p->modules[i] = -1;
    for (int v = 0; v < p->from->variants.count; v++) {
        const smg_bvariant *list = &p->from->variants.items[v];
        for (int s = 0; s < list->run.count; s++) {
            const smg_bstep *step = &list->run.items[s];
            p->modules[step->module] = 0;
            for (int i = 0; i < step->binding_count; i++) p->buffers[step->bindings[i].buffer] = 0;
        }
    }
}

/* Its bytes as they lie on the device. */
static smg_status fetch(prepared *p, int buffer, smg_bbuffer *io) {
    int64_t elements = 0;
    smg_size_is_const(p->from->sizes, io->elements, &elements);
    int64_t bytes = elements * smg_storage_device_bytes(io->storage);
    void *data = smg_arena_alloc(p->arena, (size_t)bytes + 1, 1);
    if (data == NULL) return SMG_MEMORY;
    SMG_TRY(smg_program_read_derived(p->program, buffer, data, bytes));
    io->kind = SMG_BUFFER_CONSTANT;
    io->storage = smg_storage_stored(io->storage);
    io->data = data;
    io->source = -1;
    return SMG_OK;
}

/* Buffers that a buffer names, by their new numbers. */
static smg_status renumber(const prepared *p, smg_bbuffer *io) {
    const int *old = io->members;
    if (io->kind == SMG_BUFFER_STATE) io->next = p->buffers[io->next];
    if (io->member_count == 0) return SMG_OK;
    io->members = SMG_ARENA_ARRAY(p->arena, int, (size_t)io->member_count);
    if (io->members == NULL) return SMG_MEMORY;
    for (int i = 0; i < io->member_count; i++) io->members[i] = p->buffers[old[i]];
    return SMG_OK;
}

static smg_status copy_buffers(prepared *p) {
    for (int i = 0; i < p->from->buffers.count; i++) {
        if (p->buffers[i] < 0) continue;
        smg_bbuffer *b = SMG_ARRAY_PUSH(p->arena, &p->to->buffers);
        if (b == NULL) return SMG_MEMORY;
        *b = p->from->buffers.items[i];
        p->buffers[i] = p->to->buffers.count - 1;
        if (b->kind == SMG_BUFFER_DERIVED) SMG_TRY(fetch(p, i, b));
    }
    for (int i = 0; i < p->to->buffers.count; i++) SMG_TRY(renumber(p, &p->to->buffers.items[i]));
    return SMG_OK;
}

static smg_status copy_modules(prepared *p) {
    for (int i = 0; i < p->from->modules.count; i++) {
        if (p->modules[i] < 0) continue;
        smg_bmodule *m = SMG_ARRAY_PUSH(p->arena, &p->to->modules);
        if (m == NULL) return SMG_MEMORY;
        *m = p->from->modules.items[i];
        p->modules[i] = p->to->modules.count - 1;
    }
    return SMG_OK;
}

static smg_status copy_list(prepared *p, const smg_bvariant *from) {
    smg_bvariant *to = SMG_ARRAY_PUSH(p->arena, &p->to->variants);
    if (to == NULL) return SMG_MEMORY;
    *to = (smg_bvariant){.measure = from->measure, .low = from->low, .high = from->high, .made = from->made};
    for (int s = 0; s < from->run.count; s++) {
        smg_bstep *step = SMG_ARRAY_PUSH(p->arena, &to->run);
        if (step == NULL) return SMG_MEMORY;
        *step = from->run.items[s];
        step->module = p->modules[step->module];
        step->bindings = SMG_ARENA_ARRAY(p->arena, smg_bbinding, (size_t)step->binding_count + 1);
        if (step->bindings == NULL) return SMG_MEMORY;
        for (int i = 0; i < step->binding_count; i++) {
            const smg_bbinding *binding = &from->run.items[s].bindings[i];
            step->bindings[i] = (smg_bbinding){.buffer = p->buffers[binding->buffer], .written = binding->written};
        }
    }
    return SMG_OK;
}

static smg_status copy_bundle(prepared *p) {
    p->to->arena = p->arena;
    p->to->sizes = p->from->sizes;
    mark_used(p);
    SMG_TRY(copy_buffers(p));
    SMG_TRY(copy_modules(p));
    for (int v = 0; v < p->from->variants.count; v++) SMG_TRY(copy_list(p, &p->from->variants.items[v]));
    return smg_bundle_verify(p->ctx, p->to);
}

smg_status smg_compile_prepared(const smg_bundle *bundle, const smg_target *made_for, smg_vk_device *device,
                                smg_arena *arena, smg_bundle **out_bundle) {
    prepared p = {.ctx = smg_arena_context(arena), .arena = arena, .from = bundle};
    const smg_program_options options = {.prepare_only = true};
    *out_bundle = NULL;
    p.to = SMG_ARENA_NEW(arena, smg_bundle);
    p.buffers = SMG_ARENA_ARRAY(arena, int, (size_t)bundle->buffers.count + 1);
    p.modules = SMG_ARENA_ARRAY(arena, int, (size_t)bundle->modules.count + 1);
    if (p.to == NULL || p.buffers == NULL || p.modules == NULL) return SMG_MEMORY;
    SMG_TRY(check_device(&p, made_for, smg_vk_target(device)));
    SMG_TRY(smg_program_create(p.ctx, bundle, device, &options, &p.program));
    smg_status status = copy_bundle(&p);
    smg_program_destroy(p.program);
    if (status == SMG_OK) *out_bundle = p.to;
    return status;
}

#else

smg_status smg_compile_prepared(const smg_bundle *bundle, const smg_target *made_for, smg_vk_device *device,
                                smg_arena *arena, smg_bundle **out_bundle) {
    (void)bundle, (void)made_for, (void)device;
    *out_bundle = NULL;
    return smg_fail(smg_arena_context(arena), SMG_UNSUPPORTED,
                    "this smg was built without Vulkan: it prepares nothing");
}

#endif
