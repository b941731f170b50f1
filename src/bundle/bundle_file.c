/* bundle_file.c: a bundle's file, read: header, index, one class, weights where they are asked for. */
#include "bundle/file_private.h"

const char smg_bfile_magic[8] = {'S', 'M', 'G', 'B', '\r', '\n', 0x1a, '\n'};

bool smg_bfile_looks_like(const void *bytes, size_t size) {
    return size >= sizeof(smg_bfile_magic) && memcmp(bytes, smg_bfile_magic, sizeof(smg_bfile_magic)) == 0;
}

bool smg_bfile_is_at(smg_context *ctx, const char *path) {
    smg_mapped_file file = {0};
    bool failed_before = smg_context_status(ctx) != SMG_OK;
    if (!smg_file_exists(path)) return false;
    if (smg_file_map(ctx, path, &file) != SMG_OK) { /* who opens it says why */
        if (!failed_before) smg_context_clear_error(ctx);
        return false;
    }
    bool is = smg_bfile_looks_like(file.data, file.size);
    smg_file_unmap(&file);
    return is;
}

/* ---- bytes of the source ---------------------------------------------------------------------------- */

static smg_status damaged(const smg_bfile *f, const char *what) {
    return smg_fail(smg_arena_context(f->arena), SMG_FORMAT, "'%s' is a damaged bundle: %s", f->label, what);
}

static bool is_inside(const smg_bfile *f, int64_t offset, int64_t bytes) {
    return offset >= 0 && bytes >= 0 && offset <= f->source.bytes && bytes <= f->source.bytes - offset &&
           (uint64_t)bytes <= PTRDIFF_MAX;
}

static smg_status copy_bytes(const smg_bfile *f, int64_t offset, int64_t bytes, void *into) {
    if (!is_inside(f, offset, bytes)) return damaged(f, "it refers to bytes behind its end");
    if (bytes == 0) return SMG_OK;
    if (f->source.data != NULL) {
        memcpy(into, f->source.data + offset, (size_t)bytes);
        return SMG_OK;
    }
    if (f->source.read(f->source.user, offset, into, (size_t)bytes)) return SMG_OK;
    return smg_fail(smg_arena_context(f->arena), SMG_IO, "'%s': its reader failed at byte %lld, of %lld bytes",
                    f->label, (long long)offset, (long long)bytes);
}

/* Where these bytes lie: in the source's memory, or a copy in the arena. */
static smg_status some_bytes(const smg_bfile *f, smg_arena *arena, int64_t offset, int64_t bytes, const uint8_t **out) {
    if (!is_inside(f, offset, bytes)) return damaged(f, "it refers to bytes behind its end");
    if (f->source.data != NULL) {
        *out = f->source.data + offset;
        return SMG_OK;
    }
    uint8_t *copy = smg_arena_alloc(arena, (size_t)bytes + 1, 1);
    if (copy == NULL) return SMG_MEMORY;
    *out = copy;
    return copy_bytes(f, offset, bytes, copy);
}

/* ---- header and index ------------------------------------------------------------------------------- */

typedef struct header {
    uint64_t index_offset, index_bytes, index_hash;
} header;

static smg_status read_header(smg_bfile *f, header *out) {
    smg_context *ctx = smg_arena_context(f->arena);
    uint8_t bytes[SMG_BFILE_HEADER] = {0};
    uint32_t order = 0;
    int64_t there = f->source.bytes < SMG_BFILE_HEADER ? f->source.bytes : SMG_BFILE_HEADER;
    SMG_TRY(copy_bytes(f, 0, there, bytes));
    if (!smg_bfile_looks_like(bytes, (size_t)there)) return smg_fail(ctx, SMG_FORMAT, "'%s' is no bundle", f->label);
    memcpy(&order, bytes + 12, sizeof(order)); /* as this machine reads it */
    smg_reader r = {.at = bytes + 8, .left = SMG_BFILE_HEADER - 8};
    uint32_t version = smg_reader_u32(&r);
    (void)smg_reader_u32(&r);
    if (there < SMG_BFILE_HEADER) return damaged(f, "it ends within its header");
    if (order != SMG_BFILE_ORDER) {
        return smg_fail(ctx, SMG_FORMAT, "'%s' is a bundle of machines with another byte order", f->label);
    }
    if (version != SMG_BFILE_VERSION) {
        return smg_fail(ctx, SMG_FORMAT, "'%s' is a bundle of version %u, this smg reads version %d", f->label,
                        (unsigned)version, SMG_BFILE_VERSION);
    }
    uint64_t size = smg_reader_u64(&r);
    if (size != (uint64_t)f->source.bytes) {
        return smg_fail(ctx, SMG_FORMAT, "'%s' is a damaged bundle: it has %lld bytes of %llu", f->label,
                        (long long)f->source.bytes, (unsigned long long)size);
    }
    f->head_offset = (int64_t)smg_reader_u64(&r);
    f->head_bytes = (int64_t)smg_reader_u64(&r);
    *out = (header){.index_offset = smg_reader_u64(&r), .index_bytes = smg_reader_u64(&r)};
    out->index_hash = smg_reader_u64(&r);
    return SMG_OK;
}

static smg_status read_constants(smg_bfile *f, smg_reader *r) {
    enum { CONSTANT_BYTES = 28 };
    f->constant_count = smg_reader_count(r, CONSTANT_BYTES);
    f->constants = SMG_ARENA_ARRAY(f->arena, smg_bfile_constant, (size_t)f->constant_count + 1);
    if (f->constants == NULL) return SMG_MEMORY;
    for (int i = 0; i < f->constant_count; i++) {
        smg_bfile_constant *c = &f->constants[i];
        c->offset = (int64_t)smg_reader_u64(r);
        c->bytes = (int64_t)smg_reader_u64(r);
        c->storage = (smg_storage)smg_reader_int(r, 0, SMG_STORE_COUNT - 1);
        c->hash = smg_reader_u64(r);
        if (!smg_storage_same(c->storage) || !is_inside(f, c->offset, c->bytes)) r->failed = true;
        if (!r->failed) f->weights_bytes += c->bytes;
        if (f->weights_bytes > f->source.bytes) r->failed = true;
    }
    return SMG_OK;
}

static smg_status read_needs(smg_bfile *f, smg_reader *r, smg_bfile_class *c) {
    smg_context *ctx = smg_arena_context(f->arena);
    const char *text = smg_reader_string(r, f->arena);
    if (text == NULL || c->name == NULL || c->match == NULL) {
        SMG_TRY(smg_context_status(ctx));
        return damaged(f, "a class has no name or needs");
    }
    smg_status status = smg_target_parse(ctx, text, c->name, &c->needs);
    return status == SMG_OK ? SMG_OK : smg_fail_within(ctx, status, "'%s': needs of class '%s'", f->label, c->name);
}

static smg_status read_classes(smg_bfile *f, smg_reader *r) {
    enum { LEAST_CLASS = 28 };
    f->class_count = smg_reader_count(r, LEAST_CLASS);
    if (f->class_count > SMG_BFILE_MOST_CLASSES) return damaged(f, "it has too many classes");
    f->classes = SMG_ARENA_ARRAY(f->arena, smg_bfile_class, (size_t)f->class_count + 1);
    if (f->classes == NULL) return SMG_MEMORY;
    for (int i = 0; i < f->class_count; i++) {
        smg_bfile_class *c = &f->classes[i];
        c->name = smg_reader_string(r, f->arena);
        c->match = smg_reader_string(r, f->arena);
        SMG_TRY(read_needs(f, r, c));
        c->offset = (int64_t)smg_reader_u64(r);
        c->bytes = (int64_t)smg_reader_u64(r);
        if (!is_inside(f, c->offset, c->bytes)) r->failed = true;
    }
    if (f->class_count == 0) r->failed = true;
    return SMG_OK;
}

static smg_status read_index(smg_bfile *f, smg_reader *r) {
    smg_context *ctx = smg_arena_context(f->arena);
    f->model = smg_reader_string(r, f->arena);
    f->precision = smg_reader_string(r, f->arena);
    f->head_hash = smg_reader_u64(r);
    smg_status status = smg_interface_read(r, f->arena, &f->interface);
    if (status != SMG_OK) return smg_fail_within(ctx, status, "'%s'", f->label);
    SMG_TRY(read_constants(f, r));
    SMG_TRY(read_classes(f, r));
    if (r->left > 0) r->failed = true;
    SMG_TRY(smg_context_status(ctx));
    return r->failed || !is_inside(f, f->head_offset, f->head_bytes) ? damaged(f, "its index is wrong") : SMG_OK;
}

smg_status smg_bfile_read(smg_arena *arena, const smg_bfile_source *source, const char *label, smg_bfile **out_file) {
    header h = {0};
    const uint8_t *index = NULL;
    *out_file = NULL;
    smg_bfile *f = SMG_ARENA_NEW(arena, smg_bfile);
    if (f == NULL) return SMG_MEMORY;
    *f = (smg_bfile){.arena = arena, .source = *source, .label = smg_arena_string(arena, label)};
    if (f->label == NULL) return SMG_MEMORY;
    SMG_TRY(read_header(f, &h));
    SMG_TRY(some_bytes(f, arena, (int64_t)h.index_offset, (int64_t)h.index_bytes, &index));
    if (smg_hash_bytes(SMG_HASH_SEED, index, (size_t)h.index_bytes) != h.index_hash) {
        return damaged(f, "its index is not what was written");
    }
    smg_reader r = {.at = index, .left = (size_t)h.index_bytes};
    SMG_TRY(read_index(f, &r));
    *out_file = f;
    return SMG_OK;
}

/* ---- one class -------------------------------------------------------------------------------------- */

static bool find_constant(void *user, int source, smg_storage storage, int64_t elements, const void **out_data) {
    const smg_bfile *f = user;
    int64_t bytes = 0;
    if (source < 0 || source >= f->constant_count) return false;
    const smg_bfile_constant *c = &f->constants[source];
    if (c->storage != storage || !smg_mul_i64(elements, smg_storage_device_bytes(storage), &bytes) || bytes != c->bytes)
        return false;
    *out_data = f->source.data != NULL ? f->source.data + c->offset : NULL;
    return true;
}

/* Everything that is not in the index must agree with it. */
static smg_status check_class(const smg_bfile *f, const smg_bfile_class *c, const smg_bundle *bundle) {
    smg_context *ctx = smg_arena_context(f->arena);
    smg_target needs;
    smg_text missing;
    for (int i = 0; i < bundle->variants.count; i++) {
        if (!bundle->variants.items[i].made)
            return smg_fail(ctx, SMG_FORMAT, "'%s': class '%s' lacks run list %d", f->label, c->name, i);
    }
    if (!smg_sizes_same_symbols(bundle->sizes, f->interface->sizes))
        return smg_fail(ctx, SMG_FORMAT, "'%s': class '%s' has other sizes than its model", f->label, c->name);
    smg_status status = smg_bundle_needs(ctx, bundle, NULL, &needs);
    if (status != SMG_OK) return smg_fail_within(ctx, SMG_FORMAT, "'%s': class '%s'", f->label, c->name);
    smg_text_init(&missing, ctx);
    bool enough = smg_target_meets(&c->needs, &needs, &missing);
    status = smg_text_status(&missing);
    if (status == SMG_OK && !enough)
        status = smg_fail(ctx, SMG_FORMAT, "'%s': class '%s' needs more than it says: %s", f->label, c->name,
                          smg_text_cstr(&missing));
    smg_text_free(&missing);
    return status;
}

/* Is the buffer what the port says, a state of the same output where it is one? */
static bool suits(const smg_bfile *f, const smg_bundle *bundle, const smg_bbuffer *b, const smg_port *port) {
    if (b->rank != port->rank || smg_storage_given(b->storage) != port->type) return false;
    if ((b->kind == SMG_BUFFER_STATE) != (port->absent == SMG_ABSENT_STATE)) return false;
    return b->kind != SMG_BUFFER_STATE ||
           strcmp(bundle->buffers.items[b->next].name, f->interface->outputs[port->next].name) == 0;
}

static smg_status check_ports(const smg_bfile *f, const smg_bfile_class *c, const smg_bundle *bundle,
                              smg_buffer_kind kind) {
    smg_context *ctx = smg_arena_context(f->arena);
    bool input = kind == SMG_BUFFER_INPUT;
    int count = input ? f->interface->input_count : f->interface->output_count, seen = 0;
    for (int i = 0; i < count; i++) {
        const smg_port *port = input ? &f->interface->inputs[i] : &f->interface->outputs[i];
        int buffer = smg_bundle_find(bundle, kind, port->name);
        if (buffer >= 0 ? !suits(f, bundle, &bundle->buffers.items[buffer], port) : !input)
            return smg_fail(ctx, SMG_FORMAT, "'%s': class '%s' has no %s '%s' of its rank and type%s", f->label,
                            c->name, input ? "input" : "output", port->name,
                            port->absent == SMG_ABSENT_STATE ? ", with its state" : "");
        seen += buffer >= 0;
    }
    for (int i = 0; i < bundle->buffers.count; i++) {
        smg_buffer_kind own = bundle->buffers.items[i].kind;
        seen -= (own == SMG_BUFFER_STATE ? SMG_BUFFER_INPUT : own) == kind;
    }
    if (seen == 0) return SMG_OK;
    return smg_fail(ctx, SMG_FORMAT, "'%s': class '%s' has %s that its model does not", f->label, c->name,
                    input ? "inputs" : "outputs");
}

smg_status smg_bfile_read_class(const smg_bfile *f, int index, smg_arena *arena, smg_bundle **out_bundle) {
    smg_context *ctx = smg_arena_context(f->arena);
    const smg_bfile_class *c = &f->classes[index];
    const uint8_t *bytes = NULL;
    smg_bundle *bundle = NULL;
    smg_bundle_constants from = {.find = find_constant};
    memcpy(&from.user, &f, sizeof(f)); /* read only */
    *out_bundle = NULL;
    SMG_TRY(some_bytes(f, arena, c->offset, c->bytes, &bytes));
    smg_status status = smg_bundle_read(arena, bytes, (size_t)c->bytes, &from, &bundle);
    if (status != SMG_OK) return smg_fail_within(ctx, status, "'%s': class '%s'", f->label, c->name);
    SMG_TRY(check_class(f, c, bundle));
    SMG_TRY(check_ports(f, c, bundle, SMG_BUFFER_INPUT));
    SMG_TRY(check_ports(f, c, bundle, SMG_BUFFER_OUTPUT));
    *out_bundle = bundle;
    return SMG_OK;
}

smg_status smg_bfile_weights(const smg_bfile *f, const smg_bundle *bundle, int64_t *out_bytes) {
    smg_context *ctx = smg_arena_context(f->arena);
    size_t count = (size_t)f->constant_count + 1;
    bool *seen = smg_alloc(ctx, count, sizeof(*seen));
    *out_bytes = 0;
    if (seen == NULL) return SMG_MEMORY;
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        if (b->kind != SMG_BUFFER_CONSTANT || b->source < 0 || seen[b->source]) continue;
        seen[b->source] = true;
        *out_bytes += f->constants[b->source].bytes;
    }
    smg_free(ctx, seen, count * sizeof(*seen));
    return SMG_OK;
}

/* ---- weights and head ------------------------------------------------------------------------------- */

smg_status smg_bfile_read_weight(const smg_bfile *f, int constant, int64_t offset, void *into, size_t bytes) {
    return copy_bytes(f, f->constants[constant].offset + offset, (int64_t)bytes, into);
}

smg_status smg_bfile_check_weight(const smg_bfile *f, int constant, const char *name, uint64_t hash) {
    const smg_bfile_constant *c = &f->constants[constant];
    if (hash == c->hash) return SMG_OK;
    return smg_fail(smg_arena_context(f->arena), SMG_FORMAT,
                    "'%s' is a damaged bundle: weights%s%s%s (%lld bytes from %lld on) are not what was written",
                    f->label, name != NULL ? " '" : "", name != NULL ? name : "", name != NULL ? "'" : "",
                    (long long)c->bytes, (long long)c->offset);
}

smg_status smg_bfile_check_weights(const smg_bfile *f) {
    smg_context *ctx = smg_arena_context(f->arena);
    enum { PART = SMG_BFILE_PART };
    uint8_t *part = smg_alloc(ctx, PART, 1);
    smg_status status = part != NULL ? SMG_OK : SMG_MEMORY;
    for (int i = 0; i < f->constant_count && status == SMG_OK; i++) {
        const smg_bfile_constant *c = &f->constants[i];
        uint64_t hash = 0;
        for (int64_t at = 0; at < c->bytes && status == SMG_OK; at += PART) {
            int64_t bytes = c->bytes - at < PART ? c->bytes - at : PART;
            status = copy_bytes(f, c->offset + at, bytes, part);
            if (status == SMG_OK) hash += smg_hash_blocks(at / SMG_HASH_BLOCK, part, (size_t)bytes);
        }
        if (status == SMG_OK) status = smg_bfile_check_weight(f, i, NULL, hash);
    }
    smg_free(ctx, part, PART);
    return status;
}

smg_status smg_bfile_read_head(const smg_bfile *f, smg_arena *arena, const char **out_text) {
    char *text = smg_arena_alloc(arena, (size_t)f->head_bytes + 1, 1);
    if (text == NULL) return SMG_MEMORY;
    SMG_TRY(copy_bytes(f, f->head_offset, f->head_bytes, text));
    if (smg_hash_bytes(SMG_HASH_SEED, text, (size_t)f->head_bytes) != f->head_hash)
        return damaged(f, "its head is not what was written");
    *out_text = text;
    return SMG_OK;
}

/* ---- choosing --------------------------------------------------------------------------------------- */

static int rank_of(const smg_bfile_class *c, const smg_target *device) {
    bool named = c->match[0] != '\0' && smg_text_contains(device->name, c->match);
    return (named ? 8 : 0) + (c->needs.type == device->type ? 4 : 0) + (c->needs.matrix_count > 0 ? 2 : 0) +
           (c->needs.subgroup_max_from != SMG_FACT_ASSUMED ? 1 : 0);
}

smg_status smg_bfile_choose(const smg_bfile *f, const smg_target *device, int *out_class) {
    smg_context *ctx = smg_arena_context(f->arena);
    smg_text all, missing;
    int best = -1;
    smg_text_init(&all, ctx);
    smg_text_init(&missing, ctx);
    for (int i = 0; i < f->class_count; i++) {
        const smg_bfile_class *c = &f->classes[i];
        missing.length = 0;
        if (smg_target_meets(device, &c->needs, &missing)) {
            if (best < 0 || rank_of(c, device) > rank_of(&f->classes[best], device)) best = i;
        } else {
            smg_text_addf(&all, "%s%s lacks %s", all.length > 0 ? "; " : "", c->name, smg_text_cstr(&missing));
        }
    }
    smg_status status = smg_text_status(&missing);
    if (status == SMG_OK) status = smg_text_status(&all);
    if (status == SMG_OK && best < 0)
        status =
            smg_fail(ctx, SMG_UNSUPPORTED, "'%s' has no class for %s: %s", f->label, device->name, smg_text_cstr(&all));
    smg_text_free(&all);
    smg_text_free(&missing);
    *out_class = best;
    return status;
}
