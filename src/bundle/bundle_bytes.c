/* bundle_bytes.c: a bundle as bytes, and back.
 *
 *     magic, version, bytes behind the header, their hash
 *     sizes       symbols, atoms, polynomials (base/size.h)
 *     buffers     with the data of constants that have no source
 *     modules     with their words (bundle_words.c)
 *     prepare     steps
 *     variants    guards and steps
 *
 * Everything is little-endian and of fixed width, lists begin with their count. Reading trusts nothing: a count is
 * checked against the bytes that are left, a size against the pool, the rest by smg_bundle_verify. The hash tells
 * damage early; it keeps nobody from writing other bytes. */
#include "bundle/bundle.h"

enum { MAX_LOCAL_SIZE = 65536, MAX_SHARED_BYTES = 1 << 28 };

static const char bundle_magic[8] = {'S', 'M', 'G', 'B', 'N', 'D', 'L', 0};

/* ---- writing ------------------------------------------------------------------------------------ */

static void add_int(smg_text *out, int value) {
    smg_text_add_u32(out, (uint32_t)value);
}

static void add_long(smg_text *out, int64_t value) {
    smg_text_add_u64(out, (uint64_t)value);
}

static int64_t constant_bytes(const smg_bundle *bundle, const smg_bbuffer *b) {
    int64_t elements = 0;
    smg_size_is_const(bundle->sizes, b->elements, &elements);
    return elements * smg_storage_host_bytes(b->storage);
}

static void write_buffer(const smg_bundle *bundle, const smg_bbuffer *b, smg_text *out) {
    bool constant = b->kind == SMG_BUFFER_CONSTANT;
    smg_text_add_string(out, b->name);
    add_int(out, (int)b->kind);
    add_int(out, (int)b->storage);
    add_int(out, b->rank);
    for (int d = 0; d < b->rank; d++) add_int(out, b->dims[d]);
    add_int(out, b->elements);
    add_int(out, b->variant);
    add_int(out, b->first);
    add_int(out, b->last);
    add_int(out, constant ? b->source : -1);
    if (b->kind == SMG_BUFFER_STATE) add_int(out, b->next);
    if (b->kind == SMG_BUFFER_STACK) {
        add_int(out, b->member_count);
        for (int i = 0; i < b->member_count; i++) add_int(out, b->members[i]);
        add_long(out, b->stride);
    }
    if (constant && b->source < 0) smg_text_add_n(out, b->data, (size_t)constant_bytes(bundle, b));
}

static void write_module(const smg_bmodule *m, smg_text *out) {
    smg_text_add_string(out, m->name);
    add_int(out, m->local_size);
    add_int(out, m->subgroup);
    add_int(out, m->shared_bytes);
    smg_text_add_u64(out, m->hash);
    for (int i = 0; i < 2; i++) smg_text_add_u64(out, m->text[i]);
    add_int(out, (int)m->word_count);
    smg_words_write(m->words, m->word_count, out);
}

static void write_step(const smg_bstep *s, smg_text *out) {
    uint64_t estimate = 0;
    memcpy(&estimate, &s->estimate, sizeof(estimate));
    smg_text_add_string(out, s->name);
    add_int(out, s->module);
    add_int(out, s->diagnostics);
    smg_text_add_u64(out, estimate);
    add_int(out, s->bytes);
    add_int(out, s->flops);
    add_int(out, s->binding_count);
    for (int i = 0; i < s->binding_count; i++) {
        add_int(out, s->bindings[i].buffer);
        add_int(out, s->bindings[i].written);
    }
    add_int(out, s->address_count);
    for (int i = 0; i < s->address_count; i++) add_int(out, s->address_bindings[i]);
    add_int(out, s->push_count);
    for (int i = 0; i < s->push_count; i++) add_int(out, s->push_symbols[i]);
    add_int(out, s->grid_count);
    for (int i = 0; i < s->grid_count; i++) {
        add_int(out, s->grid_extent[i]);
        add_long(out, s->grid_tile[i]);
    }
    add_int(out, s->even_count);
    for (int i = 0; i < s->even_count; i++) {
        add_int(out, s->even_size[i]);
        add_long(out, s->even_by[i]);
    }
}

static void write_steps(const smg_bstep *steps, int count, smg_text *out) {
    add_int(out, count);
    for (int i = 0; i < count; i++) write_step(&steps[i], out);
}

static void write_content(const smg_bundle *bundle, smg_text *out) {
    smg_sizes_write(bundle->sizes, out);
    add_int(out, bundle->buffers.count);
    for (int i = 0; i < bundle->buffers.count; i++) write_buffer(bundle, &bundle->buffers.items[i], out);
    add_int(out, bundle->modules.count);
    for (int i = 0; i < bundle->modules.count; i++) write_module(&bundle->modules.items[i], out);
    write_steps(bundle->prepare.items, bundle->prepare.count, out);
    add_int(out, bundle->variants.count);
    for (int i = 0; i < bundle->variants.count; i++) {
        const smg_bvariant *v = &bundle->variants.items[i];
        add_int(out, v->measure);
        add_long(out, v->low);
        add_long(out, v->high);
        add_int(out, v->made);
        write_steps(v->run.items, v->run.count, out);
    }
}

void smg_bundle_write(const smg_bundle *bundle, smg_text *out) {
    smg_text content;
    smg_text_init(&content, out->ctx);
    write_content(bundle, &content);
    if (smg_text_status(&content) != SMG_OK) out->failed = true;
    smg_text_add_n(out, bundle_magic, sizeof(bundle_magic));
    add_int(out, SMG_BUNDLE_VERSION);
    add_int(out, 0);
    smg_text_add_u64(out, content.length);
    smg_text_add_u64(out, smg_hash_bytes(SMG_HASH_SEED, smg_text_cstr(&content), content.length));
    smg_text_add_n(out, smg_text_cstr(&content), content.length);
    smg_text_free(&content);
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct reading {
    smg_reader r;
    smg_context *ctx;
    smg_arena *arena;
    smg_bundle *bundle;
    const smg_bundle_constants *from;
} reading;

static int64_t read_long(reading *in, int64_t least) {
    int64_t value = (int64_t)smg_reader_u64(&in->r);
    if (value < least) in->r.failed = true;
    return value;
}

static bool read_bool(reading *in) {
    return smg_reader_int(&in->r, 0, 1) != 0;
}

static smg_size read_size(reading *in) {
    return smg_reader_int(&in->r, 0, smg_sizes_count(in->bundle->sizes) - 1);
}

/* Memory may be out, or the bytes are wrong: OK means that neither is. */
static smg_status checked(const reading *in, const char *what, int index) {
    smg_status status = smg_context_status(in->ctx);
    if (status != SMG_OK || !in->r.failed) return status;
    return smg_fail(in->ctx, SMG_FORMAT, "bundle: %s %d is damaged", what, index);
}

static smg_status read_data(reading *in, smg_bbuffer *b) {
    int64_t elements = 0, bytes = 0;
    if (in->r.failed || !smg_size_is_const(in->bundle->sizes, b->elements, &elements) || elements < 0 ||
        !smg_mul_i64(elements, smg_storage_host_bytes(b->storage), &bytes)) {
        return smg_fail(in->ctx, SMG_FORMAT, "bundle: a constant has no size");
    }
    if (b->source >= 0) {
        if (in->from->find(in->from->user, b->source, b->storage, elements, &b->data)) return SMG_OK;
        return smg_fail(in->ctx, SMG_FORMAT, "bundle: constant '%s' is not among the caller's", b->name);
    }
    const uint8_t *data = smg_reader_raw(&in->r, (size_t)bytes);
    if (data == NULL) return SMG_OK; /* told by the caller */
    void *copy = smg_arena_alloc(in->arena, (size_t)bytes + 1, 1);
    if (copy == NULL) return SMG_MEMORY;
    memcpy(copy, data, (size_t)bytes);
    b->data = copy;
    return SMG_OK;
}

static smg_status read_members(reading *in, smg_bbuffer *b) {
    b->member_count = smg_reader_count(&in->r, sizeof(uint32_t));
    if (in->r.failed) return SMG_OK; /* told by the caller */
    b->members = SMG_ARENA_ARRAY(in->arena, int, (size_t)b->member_count + 1);
    if (b->members == NULL) return SMG_MEMORY;
    for (int i = 0; i < b->member_count; i++) b->members[i] = smg_reader_int(&in->r, 0, INT32_MAX);
    b->stride = (int64_t)smg_reader_u64(&in->r);
    return SMG_OK;
}

static smg_status read_buffer(reading *in) {
    smg_reader *r = &in->r;
    smg_bbuffer *b = SMG_ARRAY_PUSH(in->arena, &in->bundle->buffers);
    if (b == NULL) return SMG_MEMORY;
    b->name = smg_reader_string(r, in->arena);
    b->kind = (smg_buffer_kind)smg_reader_int(r, 0, SMG_BUFFER_STACK);
    b->storage = (smg_storage)smg_reader_int(r, 0, SMG_STORE_COUNT - 1);
    b->rank = smg_reader_int(r, 0, SMG_BUNDLE_RANK);
    for (int d = 0; d < b->rank; d++) b->dims[d] = read_size(in);
    b->elements = read_size(in);
    b->variant = smg_reader_int(r, 0, INT32_MAX);
    b->first = smg_reader_int(r, -1, INT32_MAX);
    b->last = smg_reader_int(r, -1, INT32_MAX);
    b->source = smg_reader_int(r, -1, INT32_MAX);
    if (b->kind == SMG_BUFFER_STATE) b->next = smg_reader_int(r, 0, INT32_MAX);
    SMG_TRY(checked(in, "buffer", in->bundle->buffers.count - 1));
    if (b->kind == SMG_BUFFER_CONSTANT) SMG_TRY(read_data(in, b));
    if (b->kind == SMG_BUFFER_STACK) SMG_TRY(read_members(in, b));
    return checked(in, "buffer", in->bundle->buffers.count - 1);
}

static smg_status read_module(reading *in) {
    static const uint32_t spirv_magic = 0x07230203u;
    smg_reader *r = &in->r;
    smg_bmodule *m = SMG_ARRAY_PUSH(in->arena, &in->bundle->modules);
    if (m == NULL) return SMG_MEMORY;
    m->name = smg_reader_string(r, in->arena);
    m->local_size = smg_reader_int(r, 1, MAX_LOCAL_SIZE);
    m->subgroup = smg_reader_int(r, 1, MAX_LOCAL_SIZE);
    m->shared_bytes = smg_reader_int(r, 0, MAX_SHARED_BYTES);
    m->hash = smg_reader_u64(r);
    for (int i = 0; i < 2; i++) m->text[i] = smg_reader_u64(r);
    m->word_count = (size_t)smg_reader_count(r, 1);
    SMG_TRY(checked(in, "module", in->bundle->modules.count - 1));
    uint32_t *words = SMG_ARENA_ARRAY(in->arena, uint32_t, m->word_count + 1);
    if (words == NULL) return SMG_MEMORY;
    smg_words_read(r, words, m->word_count);
    if (words[0] != spirv_magic) r->failed = true;
    m->words = words;
    return checked(in, "module", in->bundle->modules.count - 1);
}

static smg_status read_bindings(reading *in, smg_bstep *s) {
    enum { BINDING_BYTES = 8 };
    s->binding_count = smg_reader_count(&in->r, BINDING_BYTES);
    s->bindings = SMG_ARENA_ARRAY(in->arena, smg_bbinding, (size_t)s->binding_count + 1);
    if (s->bindings == NULL) return SMG_MEMORY;
    for (int i = 0; i < s->binding_count; i++) {
        s->bindings[i].buffer = smg_reader_int(&in->r, 0, INT32_MAX);
        s->bindings[i].written = read_bool(in);
    }
    return SMG_OK;
}

static smg_status read_ints(reading *in, int *out_count, int **out_items) {
    *out_count = smg_reader_count(&in->r, sizeof(int32_t));
    *out_items = SMG_ARENA_ARRAY(in->arena, int, (size_t)*out_count + 1);
    if (*out_items == NULL) return SMG_MEMORY;
    for (int i = 0; i < *out_count; i++) (*out_items)[i] = smg_reader_int(&in->r, 0, INT32_MAX);
    return SMG_OK;
}

/* Sizes, each with a number of at least 1. */
static smg_status read_pairs(reading *in, int *out_count, smg_size **out_sizes, int64_t **out_numbers) {
    enum { PAIR_BYTES = 12 };
    *out_count = smg_reader_count(&in->r, PAIR_BYTES);
    *out_sizes = SMG_ARENA_ARRAY(in->arena, smg_size, (size_t)*out_count + 1);
    *out_numbers = SMG_ARENA_ARRAY(in->arena, int64_t, (size_t)*out_count + 1);
    if (*out_sizes == NULL || *out_numbers == NULL) return SMG_MEMORY;
    for (int i = 0; i < *out_count; i++) {
        (*out_sizes)[i] = read_size(in);
        (*out_numbers)[i] = read_long(in, 1);
    }
    return SMG_OK;
}

static smg_status read_step(reading *in, smg_bstep *s, int index) {
    smg_reader *r = &in->r;
    s->name = smg_reader_string(r, in->arena);
    s->module = smg_reader_int(r, 0, INT32_MAX);
    s->diagnostics = read_bool(in);
    uint64_t estimate = smg_reader_u64(r);
    memcpy(&s->estimate, &estimate, sizeof(estimate));
    s->bytes = read_size(in);
    s->flops = read_size(in);
    SMG_TRY(read_bindings(in, s));
    SMG_TRY(read_ints(in, &s->address_count, &s->address_bindings));
    SMG_TRY(read_ints(in, &s->push_count, &s->push_symbols));
    SMG_TRY(read_pairs(in, &s->grid_count, &s->grid_extent, &s->grid_tile));
    SMG_TRY(read_pairs(in, &s->even_count, &s->even_size, &s->even_by));
    return checked(in, "step", index);
}

enum { LEAST_BUFFER = 36, LEAST_MODULE = 40, LEAST_STEP = 48, LEAST_VARIANT = 28 }; /* bytes */

static smg_status read_content(reading *in) {
    smg_bundle *b = in->bundle;
    SMG_TRY(smg_sizes_read(&in->r, in->arena, &b->sizes));
    int buffers = smg_reader_count(&in->r, LEAST_BUFFER);
    for (int i = 0; i < buffers; i++) SMG_TRY(read_buffer(in));
    int modules = smg_reader_count(&in->r, LEAST_MODULE);
    for (int i = 0; i < modules; i++) SMG_TRY(read_module(in));
    int prepare = smg_reader_count(&in->r, LEAST_STEP);
    for (int i = 0; i < prepare; i++) {
        smg_bstep *step = SMG_ARRAY_PUSH(in->arena, &b->prepare);
        if (step == NULL) return SMG_MEMORY;
        SMG_TRY(read_step(in, step, i));
    }
    int variants = smg_reader_count(&in->r, LEAST_VARIANT);
    for (int i = 0; i < variants; i++) {
        smg_bvariant *v = SMG_ARRAY_PUSH(in->arena, &b->variants);
        if (v == NULL) return SMG_MEMORY;
        v->measure = read_size(in);
        v->low = read_long(in, 0);
        v->high = read_long(in, 0);
        v->made = read_bool(in);
        int steps = smg_reader_count(&in->r, LEAST_STEP);
        for (int k = 0; k < steps; k++) {
            smg_bstep *step = SMG_ARRAY_PUSH(in->arena, &v->run);
            if (step == NULL) return SMG_MEMORY;
            SMG_TRY(read_step(in, step, k));
        }
        if (!v->made && steps > 0) in->r.failed = true;
        SMG_TRY(checked(in, "run list", i));
    }
    if (in->r.left > 0) in->r.failed = true;
    return checked(in, "the end behind run list", variants - 1);
}

static bool header_is_valid(smg_reader *r) {
    const uint8_t *magic = smg_reader_raw(r, sizeof(bundle_magic));
    if (magic == NULL || memcmp(magic, bundle_magic, sizeof(bundle_magic)) != 0) return false;
    if (smg_reader_u32(r) != SMG_BUNDLE_VERSION || smg_reader_u32(r) != 0) return false;
    uint64_t bytes = smg_reader_u64(r), hash = smg_reader_u64(r);
    return !r->failed && bytes == r->left && hash == smg_hash_bytes(SMG_HASH_SEED, r->at, r->left);
}

smg_status smg_bundle_read(smg_arena *arena, const void *bytes, size_t size, const smg_bundle_constants *from,
                           smg_bundle **out_bundle) {
    smg_context *ctx = smg_arena_context(arena);
    reading in = {.r = {.at = bytes, .left = size}, .ctx = ctx, .arena = arena, .from = from};
    *out_bundle = NULL;
    if (!header_is_valid(&in.r)) {
        return smg_fail(ctx, SMG_FORMAT, "these %zu bytes are no bundle of version %d, or damaged", size,
                        SMG_BUNDLE_VERSION);
    }
    in.bundle = SMG_ARENA_NEW(arena, smg_bundle);
    if (in.bundle == NULL) return SMG_MEMORY;
    in.bundle->arena = arena;
    SMG_TRY(read_content(&in));
    smg_status status = smg_bundle_verify(ctx, in.bundle);
    if (status == SMG_OK) *out_bundle = in.bundle;
    return status == SMG_INTERNAL || status == SMG_INVALID ? SMG_FORMAT : status;
}
