/* bundle.c: storage formats and the check that everything in a bundle is in range.
 *
 * The runtime indexes a bundle without further checks, so smg_bundle_verify is the one place where a
 * wrong index, a missing module or a written constant becomes a status instead of a crash.
 */
#include "bundle/bundle.h"

static const struct {
    const char *word; /* of the host */
    int host_bytes, device_bytes;
    smg_storage given;
} storages[SMG_STORE_COUNT] = {
    [SMG_STORE_F32] = {"f32", 4, 4, SMG_STORE_F32},
    [SMG_STORE_F16] = {"f16", 2, 2, SMG_STORE_F16},
    [SMG_STORE_BF16] = {"bf16", 2, 2, SMG_STORE_BF16},
    [SMG_STORE_I32] = {"i32", 4, 4, SMG_STORE_I32},
    [SMG_STORE_I64_AS_I32] = {"i64", 8, 4, SMG_STORE_I64_AS_I32},
    [SMG_STORE_BOOL_AS_U32] = {"bool", 1, 4, SMG_STORE_BOOL_AS_U32},
    [SMG_STORE_F32_AS_F16] = {"f32", 4, 2, SMG_STORE_F32},
    [SMG_STORE_F32_AS_BF16] = {"f32", 4, 2, SMG_STORE_F32},
};

smg_storage smg_storage_given(smg_storage storage) {
    return storages[storage].given;
}

int64_t smg_storage_host_bytes(smg_storage storage) {
    return storages[storage].host_bytes;
}

int64_t smg_storage_device_bytes(smg_storage storage) {
    return storages[storage].device_bytes;
}

bool smg_storage_is_integer(smg_storage storage) {
    return storage == SMG_STORE_I32 || storage == SMG_STORE_I64_AS_I32;
}

const char *smg_storage_word(smg_storage storage) {
    return storages[storage].word;
}

bool smg_storage_find(const char *word, smg_storage *out_storage) {
    for (int i = 0; i < SMG_STORE_COUNT; i++) {
        if (strcmp(storages[i].word, word) != 0) continue;
        *out_storage = (smg_storage)i;
        return true;
    }
    return false;
}

smg_storage smg_storage_stored(smg_storage storage) {
    switch (storage) {
    case SMG_STORE_F32_AS_F16: return SMG_STORE_F16;
    case SMG_STORE_F32_AS_BF16: return SMG_STORE_BF16;
    case SMG_STORE_I64_AS_I32:
    case SMG_STORE_BOOL_AS_U32: return SMG_STORE_I32;
    default: return storage;
    }
}

bool smg_storage_same(smg_storage storage) {
    return smg_storage_stored(storage) == storage;
}

static bool is_size(smg_size size) {
    return size >= 0;
}

static smg_status verify_temporary(smg_context *ctx, const smg_bundle *bundle, const smg_bbuffer *b) {
    if (b->variant < 0 || b->variant >= bundle->variants.count) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: temporary '%s' is of run list %d of %d", b->name, b->variant,
                        bundle->variants.count);
    }
    int steps = bundle->variants.items[b->variant].run.count;
    if (b->first < 0 || b->last < b->first || b->last >= steps) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: temporary '%s' lives from step %d to %d of %d", b->name, b->first,
                        b->last, steps);
    }
    return SMG_OK;
}

static smg_status verify_stack(smg_context *ctx, const smg_bundle *bundle, int index) {
    const smg_bbuffer *s = &bundle->buffers.items[index];
    int64_t all = 0, most = SMG_SIZE_UNBOUNDED;
    smg_size_is_const(bundle->sizes, s->elements, &all);
    bool good = s->member_count > 0 && s->stride > 0 && s->stride <= most / s->member_count;
    for (int i = 0; good && i < s->member_count; i++) {
        int64_t elements = 0;
        int id = s->members[i];
        if (id < 0 || id >= bundle->buffers.count)
            return smg_fail(ctx, SMG_INTERNAL, "bundle: stack '%s' has buffer %d of %d", s->name, id,
                            bundle->buffers.count);
        const smg_bbuffer *m = &bundle->buffers.items[id];
        good = (m->kind == SMG_BUFFER_CONSTANT || m->kind == SMG_BUFFER_DERIVED) &&
               smg_storage_device_bytes(m->storage) == smg_storage_device_bytes(s->storage) &&
               smg_size_is_const(bundle->sizes, m->elements, &elements) && elements >= 0 && elements <= s->stride &&
               i * s->stride + elements <= all;
        for (int other = 0; good && other <= index; other++) {
            const smg_bbuffer *o = &bundle->buffers.items[other];
            for (int n = 0; good && n < (other < index ? o->member_count : i); n++) good = o->members[n] != id;
        }
    }
    if (good) return SMG_OK;
    return smg_fail(ctx, SMG_INTERNAL,
                    "bundle: the %d buffers of stack '%s' do not lie one behind the other, %lld elements each",
                    s->member_count, s->name, (long long)s->stride);
}

static smg_status verify_buffer(smg_context *ctx, const smg_bundle *bundle, int index) {
    const smg_bbuffer *b = &bundle->buffers.items[index];
    if (b->name == NULL) return smg_fail(ctx, SMG_INTERNAL, "bundle: buffer %d has no name", index);
    if (b->rank < 0 || b->rank > SMG_BUNDLE_RANK || !is_size(b->elements)) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: buffer '%s' has rank %d or no element count", b->name, b->rank);
    }
    for (int d = 0; d < b->rank; d++) {
        if (!is_size(b->dims[d])) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: buffer '%s' has no size in axis %d", b->name, d);
        }
    }
    bool stack = b->kind == SMG_BUFFER_STACK;
    bool fixed = b->kind == SMG_BUFFER_CONSTANT || b->kind == SMG_BUFFER_DERIVED || stack;
    if (fixed && !smg_size_is_const(bundle->sizes, b->elements, NULL)) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: constant '%s' has a symbolic size", b->name);
    }
    if (b->kind == SMG_BUFFER_CONSTANT && b->data == NULL && b->source < 0) {
        return smg_fail(ctx, SMG_INVALID, "constant '%s' has no data: the graph gives its shape only", b->name);
    }
    if (stack) SMG_TRY(verify_stack(ctx, bundle, index));
    if (b->kind == SMG_BUFFER_TEMPORARY) SMG_TRY(verify_temporary(ctx, bundle, b));
    bool input = b->kind == SMG_BUFFER_INPUT || b->kind == SMG_BUFFER_STATE;
    for (int other = 0; other < index && (input || b->kind == SMG_BUFFER_OUTPUT); other++) {
        const smg_bbuffer *o = &bundle->buffers.items[other];
        bool alike = input ? o->kind == SMG_BUFFER_INPUT || o->kind == SMG_BUFFER_STATE : o->kind == b->kind;
        if (alike && strcmp(o->name, b->name) == 0)
            return smg_fail(ctx, SMG_INVALID, "two %s are named '%s'", input ? "inputs" : "outputs", b->name);
    }
    return SMG_OK;
}

static smg_status verify_binding(smg_context *ctx, const smg_bundle *bundle, const smg_bstep *step, int index,
                                 bool prepare, int position) {
    const smg_bbinding *binding = &step->bindings[index];
    if (binding->buffer < 0 || binding->buffer >= bundle->buffers.count) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' binds buffer %d of %d", step->name, binding->buffer,
                        bundle->buffers.count);
    }
    const smg_bbuffer *b = &bundle->buffers.items[binding->buffer];
    bool fixed = b->kind == SMG_BUFFER_CONSTANT || b->kind == SMG_BUFFER_DERIVED;
    if (prepare && !fixed) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: prepare step '%s' binds '%s', which is no constant", step->name,
                        b->name);
    }
    bool may_write =
        b->kind == SMG_BUFFER_OUTPUT || b->kind == SMG_BUFFER_TEMPORARY || (prepare && b->kind == SMG_BUFFER_DERIVED);
    if (binding->written && !may_write) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' writes '%s', which may only be read", step->name,
                        b->name);
    }
    if (b->kind == SMG_BUFFER_TEMPORARY && (position < b->first || position > b->last)) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: step %d '%s' uses '%s', which lives from %d to %d", position,
                        step->name, b->name, b->first, b->last);
    }
    for (int other = 0; other < index; other++) {
        if (step->bindings[other].buffer == binding->buffer && (step->bindings[other].written || binding->written)) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' reads and writes '%s'", step->name, b->name);
        }
    }
    return SMG_OK;
}

static smg_status verify_step(smg_context *ctx, const smg_bundle *bundle, const smg_bstep *step, bool prepare,
                              int position) {
    if (step->name == NULL || step->module < 0 || step->module >= bundle->modules.count) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: step %d has no name or module %d of %d", position, step->module,
                        bundle->modules.count);
    }
    for (int i = 0; i < step->binding_count; i++) {
        SMG_TRY(verify_binding(ctx, bundle, step, i, prepare, position));
    }
    for (int i = 0; i < step->address_count; i++) {
        if (step->address_bindings[i] < 0 || step->address_bindings[i] >= step->binding_count) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' pushes the address of binding %d of %d", step->name,
                            step->address_bindings[i], step->binding_count);
        }
    }
    for (int i = 0; i < step->push_count; i++) {
        if (step->push_symbols[i] < 0 || step->push_symbols[i] >= smg_size_symbol_count(bundle->sizes)) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' pushes symbol %d of %d", step->name,
                            step->push_symbols[i], smg_size_symbol_count(bundle->sizes));
        }
    }
    for (int i = 0; i < step->grid_count; i++) {
        if (!is_size(step->grid_extent[i]) || step->grid_tile[i] < 1) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' has tile %lld in grid axis %d", step->name,
                            (long long)step->grid_tile[i], i);
        }
    }
    for (int i = 0; i < step->even_count; i++) {
        if (!is_size(step->even_size[i]) || step->even_by[i] < 1) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' is even by %lld in size %d", step->name,
                            (long long)step->even_by[i], i);
        }
    }
    if (!is_size(step->bytes) || !is_size(step->flops)) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' has no modelled traffic", step->name);
    }
    return SMG_OK;
}

static smg_status verify_variant(smg_context *ctx, const smg_bundle *bundle, int variant) {
    const smg_bvariant *v = &bundle->variants.items[variant];
    if (!is_size(v->measure) || v->low > v->high || (variant == 0 && !v->made)) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: run list %d is for sizes from %lld to %lld", variant,
                        (long long)v->low, (long long)v->high);
    }
    for (int i = 0; i < v->run.count; i++) {
        const smg_bstep *step = &v->run.items[i];
        SMG_TRY(verify_step(ctx, bundle, step, false, i));
        for (int b = 0; b < step->binding_count; b++) {
            const smg_bbuffer *buffer = &bundle->buffers.items[step->bindings[b].buffer];
            if (buffer->kind != SMG_BUFFER_TEMPORARY || buffer->variant == variant) continue;
            return smg_fail(ctx, SMG_INTERNAL, "bundle: step '%s' of run list %d binds '%s' of %d", step->name, variant,
                            buffer->name, buffer->variant);
        }
    }
    return SMG_OK;
}

static bool writes(const smg_bvariant *list, int buffer) {
    for (int s = 0; s < list->run.count; s++)
        for (int i = 0; i < list->run.items[s].binding_count; i++)
            if (list->run.items[s].bindings[i].buffer == buffer && list->run.items[s].bindings[i].written) return true;
    return false;
}

/* What a run list did not write would be in the next run what it was two runs ago. */
static smg_status verify_state(smg_context *ctx, const smg_bundle *bundle, int buffer) {
    const smg_bbuffer *b = &bundle->buffers.items[buffer];
    if (b->kind != SMG_BUFFER_STATE) return SMG_OK;
    bool valid = b->next >= 0 && b->next < bundle->buffers.count;
    const smg_bbuffer *next = valid ? &bundle->buffers.items[b->next] : b;
    if (next->kind != SMG_BUFFER_OUTPUT || next->storage != b->storage || next->elements != b->elements)
        return smg_fail(ctx, SMG_INTERNAL, "bundle: in the next run state '%s' is no output of its elements (%d of %d)",
                        b->name, b->next, bundle->buffers.count);
    for (int i = 0; i < buffer; i++) {
        const smg_bbuffer *other = &bundle->buffers.items[i];
        if (other->kind == SMG_BUFFER_STATE && other->next == b->next)
            return smg_fail(ctx, SMG_INTERNAL, "bundle: output '%s' is of two states, '%s' and '%s'", next->name,
                            other->name, b->name);
    }
    for (int i = 0; i < bundle->variants.count; i++) {
        if (!bundle->variants.items[i].made || writes(&bundle->variants.items[i], b->next)) continue;
        return smg_fail(ctx, SMG_INTERNAL,
                        "bundle: run list %d does not write '%s', which state '%s' is in the next run", i, next->name,
                        b->name);
    }
    return SMG_OK;
}

/* Derived buffers are written by a prepare step before any step reads them. */
static smg_status verify_derived(smg_context *ctx, const smg_bundle *bundle, int buffer) {
    const smg_bbuffer *b = &bundle->buffers.items[buffer];
    if (b->kind != SMG_BUFFER_DERIVED) return SMG_OK;
    for (int s = 0; s < bundle->prepare.count; s++) {
        const smg_bstep *step = &bundle->prepare.items[s];
        for (int i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].buffer != buffer) continue;
            if (step->bindings[i].written) return SMG_OK;
            return smg_fail(ctx, SMG_INTERNAL, "bundle: prepare step '%s' reads '%s' before any writes it", step->name,
                            b->name);
        }
    }
    return smg_fail(ctx, SMG_INTERNAL, "bundle: no prepare step writes '%s'", b->name);
}

smg_status smg_bundle_verify(smg_context *ctx, const smg_bundle *bundle) {
    if (bundle == NULL || bundle->sizes == NULL || bundle->variants.count < 1) {
        return smg_fail(ctx, SMG_INTERNAL, "bundle: there is none, or it has no sizes or run list");
    }
    for (int i = 0; i < bundle->buffers.count; i++) SMG_TRY(verify_buffer(ctx, bundle, i));
    for (int i = 0; i < bundle->modules.count; i++) {
        const smg_bmodule *m = &bundle->modules.items[i];
        if (m->name == NULL || m->words == NULL || m->word_count < 5 || m->local_size < 1) {
            return smg_fail(ctx, SMG_INTERNAL, "bundle: module %d has %zu words, workgroup size %d", i, m->word_count,
                            m->local_size);
        }
    }
    for (int i = 0; i < bundle->prepare.count; i++) {
        SMG_TRY(verify_step(ctx, bundle, &bundle->prepare.items[i], true, i));
    }
    for (int i = 0; i < bundle->variants.count; i++) SMG_TRY(verify_variant(ctx, bundle, i));
    for (int i = 0; i < bundle->buffers.count; i++) {
        SMG_TRY(verify_derived(ctx, bundle, i));
        SMG_TRY(verify_state(ctx, bundle, i));
    }
    return SMG_OK;
}

int smg_bundle_find(const smg_bundle *bundle, smg_buffer_kind kind, const char *name) {
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        smg_buffer_kind as = b->kind == SMG_BUFFER_STATE ? SMG_BUFFER_INPUT : b->kind;
        if (as == kind && strcmp(b->name, name) == 0) return i;
    }
    return -1;
}

bool smg_bundle_even(const smg_bundle *bundle, const smg_bstep *step, const int64_t *low, const int64_t *high) {
    for (int i = 0; i < step->even_count; i++) {
        int64_t least = 0, most = 0;
        smg_size_between(bundle->sizes, step->even_size[i], low, high, &least, &most);
        if (least != most || least % step->even_by[i] != 0) return false;
    }
    return step->even_count > 0;
}

bool smg_bundle_meets(const smg_bundle *bundle, int variant, const int64_t *low, const int64_t *high) {
    const smg_bvariant *v = &bundle->variants.items[variant];
    int64_t least = 0, most = 0;
    smg_size_between(bundle->sizes, v->measure, low, high, &least, &most);
    return least <= v->high && v->low <= most;
}

int smg_bundle_choose(const smg_bundle *bundle, const int64_t *values) {
    for (int i = 0; i < bundle->variants.count; i++) {
        const smg_bvariant *v = &bundle->variants.items[i];
        int64_t measure = 0;
        if (!smg_size_eval(bundle->sizes, v->measure, values, &measure)) continue;
        if (measure >= v->low && measure <= v->high) return i;
    }
    return 0;
}

int smg_bundle_push_bytes(const smg_bstep *step) {
    return 8 * step->address_count + 4 * step->push_count;
}
