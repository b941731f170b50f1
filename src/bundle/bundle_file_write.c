/* bundle_file_write.c: classes and weights as one file.
 *
 * Constants of all classes are one list: the same bytes of the same type are one entry. Their bytes are made where they
 * are hashed, compared and written, a part at a time, so that no weight has to be in memory twice. Nothing depends on
 * addresses, time or the machine: equal input gives equal bytes. */
#include "bundle/file_private.h"

typedef struct constant {
    const smg_bbuffer *buffer; /* the first that has these bytes */
    int64_t elements, bytes, offset;
    smg_storage storage;
    uint64_t hash;
} constant;

typedef struct file_writer {
    smg_context *ctx;
    smg_arena *arena;
    const smg_bfile_desc *desc;
    SMG_ARRAY(constant) constants;
    smg_text *classes; /* one for each: its bytes */
    smg_text *needs;   /* and its needs */
    int64_t *class_offsets, *class_weights;
    int64_t weights_at, end;
    void *part, *other; /* SMG_BFILE_PART bytes each */
} file_writer;

static int64_t aligned(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- bytes of a constant ---------------------------------------------------------------------------- */

/* Those from byte `at` on, at most a part of them, as they lie on the device. */
static smg_status part_of(const file_writer *w, const smg_bbuffer *b, int64_t bytes, int64_t at, void *room,
                          const void **out, int64_t *out_bytes) {
    int64_t each = smg_storage_device_bytes(b->storage);
    *out_bytes = bytes - at < SMG_BFILE_PART ? bytes - at : SMG_BFILE_PART;
    *out = (const uint8_t *)b->data + at;
    if (smg_storage_same(b->storage)) return SMG_OK;
    *out = room;
    return smg_storage_narrow(w->ctx, b->name, b->storage, b->data, at / each, *out_bytes / each, room);
}

static smg_status hash_constant(const file_writer *w, const smg_bbuffer *b, int64_t bytes, uint64_t *out_hash) {
    *out_hash = 0;
    for (int64_t at = 0, count = 0; at < bytes; at += count) {
        const void *part = NULL;
        SMG_TRY(part_of(w, b, bytes, at, w->part, &part, &count));
        *out_hash += smg_hash_blocks(at / SMG_HASH_BLOCK, part, (size_t)count);
    }
    return SMG_OK;
}

static smg_status same_bytes(const file_writer *w, const smg_bbuffer *a, const smg_bbuffer *b, int64_t bytes,
                             bool *out_same) {
    *out_same = true;
    if (a->data == b->data && a->storage == b->storage) return SMG_OK;
    for (int64_t at = 0, count = 0; at < bytes && *out_same; at += count) {
        const void *x = NULL, *y = NULL;
        SMG_TRY(part_of(w, a, bytes, at, w->part, &x, &count));
        SMG_TRY(part_of(w, b, bytes, at, w->other, &y, &count));
        *out_same = memcmp(x, y, (size_t)count) == 0;
    }
    return SMG_OK;
}

/* Its number in the list; a new one where these bytes are not there yet. */
static smg_status add_constant(file_writer *w, const smg_sizes *sizes, const smg_bbuffer *b, int *out_number) {
    constant c = {.buffer = b, .storage = smg_storage_stored(b->storage)};
    if (b->data == NULL) return smg_fail(w->ctx, SMG_INVALID, "constant '%s' has no data", b->name);
    smg_size_is_const(sizes, b->elements, &c.elements);
    if (!smg_mul_i64(c.elements, smg_storage_device_bytes(b->storage), &c.bytes))
        return smg_fail(w->ctx, SMG_INVALID, "constant '%s' has %lld elements", b->name, (long long)c.elements);
    for (int i = 0; i < w->constants.count; i++) { /* the same weight for another class: not read again */
        const smg_bbuffer *known = w->constants.items[i].buffer;
        if (known->data != b->data || known->storage != b->storage || w->constants.items[i].bytes != c.bytes) continue;
        *out_number = i;
        return SMG_OK;
    }
    SMG_TRY(hash_constant(w, b, c.bytes, &c.hash));
    for (int i = 0; i < w->constants.count; i++) {
        const constant *known = &w->constants.items[i];
        bool same = known->hash == c.hash && known->bytes == c.bytes && known->storage == c.storage;
        if (same) SMG_TRY(same_bytes(w, known->buffer, b, c.bytes, &same));
        if (!same) continue;
        *out_number = i;
        return SMG_OK;
    }
    constant *slot = SMG_ARRAY_PUSH(w->arena, &w->constants);
    if (slot == NULL) return SMG_MEMORY;
    *slot = c;
    *out_number = w->constants.count - 1;
    return SMG_OK;
}

/* ---- classes ---------------------------------------------------------------------------------------- */

/* Is it an instruction that says nothing to a driver: sources, names, lines? */
static bool is_comment(uint32_t opcode) {
    return (opcode >= 2 && opcode <= 8) || opcode == 317 || opcode == 330;
}

static smg_status strip_modules(const file_writer *w, smg_bundle *stored) {
    enum { HEADER_WORDS = 5 };
    const smg_bmodule *from = stored->modules.items;
    stored->modules.items = SMG_ARENA_ARRAY(w->arena, smg_bmodule, (size_t)stored->modules.count + 1);
    if (stored->modules.items == NULL) return SMG_MEMORY;
    for (int i = 0; i < stored->modules.count; i++) {
        smg_bmodule *m = &stored->modules.items[i];
        *m = from[i];
        uint32_t *words = SMG_ARENA_ARRAY(w->arena, uint32_t, m->word_count + 1);
        if (words == NULL) return SMG_MEMORY;
        size_t count = HEADER_WORDS;
        memcpy(words, m->words, HEADER_WORDS * sizeof(*words));
        for (size_t at = HEADER_WORDS, length = 0; at < m->word_count; at += length) {
            length = m->words[at] >> 16;
            if (length == 0 || length > m->word_count - at) length = m->word_count - at; /* told by its needs */
            if (is_comment(m->words[at] & 0xffffu)) continue;
            memcpy(words + count, m->words + at, length * sizeof(*words));
            count += length;
        }
        m->words = words;
        m->word_count = count;
    }
    return SMG_OK;
}

/* The class's bytes: its constants are those of the list. */
static smg_status write_class(file_writer *w, int index) {
    const smg_bfile_class_desc *c = &w->desc->classes[index];
    smg_bundle stored = *c->bundle;
    size_t count = (size_t)stored.buffers.count;
    stored.buffers.items = SMG_ARENA_ARRAY(w->arena, smg_bbuffer, count + 1);
    if (stored.buffers.items == NULL) return SMG_MEMORY;
    if (count > 0) memcpy(stored.buffers.items, c->bundle->buffers.items, count * sizeof(smg_bbuffer));
    for (int i = 0; i < stored.buffers.count; i++) {
        smg_bbuffer *b = &stored.buffers.items[i];
        if (b->kind != SMG_BUFFER_CONSTANT) continue;
        SMG_TRY(add_constant(w, stored.sizes, &c->bundle->buffers.items[i], &b->source));
        b->storage = smg_storage_stored(b->storage);
        bool again = false;
        for (int k = 0; k < i && !again; k++)
            again = stored.buffers.items[k].kind == SMG_BUFFER_CONSTANT && stored.buffers.items[k].source == b->source;
        if (!again) w->class_weights[index] += w->constants.items[b->source].bytes;
    }
    SMG_TRY(strip_modules(w, &stored));
    smg_bundle_write(&stored, &w->classes[index]);
    return smg_text_status(&w->classes[index]);
}

static smg_status check_class(const file_writer *w, int index) {
    const smg_bfile_class_desc *c = &w->desc->classes[index];
    SMG_TRY(smg_bundle_verify(w->ctx, c->bundle));
    for (int i = 0; i < index; i++) {
        if (strcmp(w->desc->classes[i].name, c->name) == 0)
            return smg_fail(w->ctx, SMG_INVALID, "two classes of the bundle are named '%s'", c->name);
    }
    for (int i = 0; i < c->bundle->variants.count; i++) {
        if (!c->bundle->variants.items[i].made)
            return smg_fail(w->ctx, SMG_INVALID, "class '%s' lacks run list %d", c->name, i);
    }
    if (smg_sizes_same_symbols(c->bundle->sizes, w->desc->interface->sizes)) return SMG_OK;
    return smg_fail(w->ctx, SMG_INTERNAL, "class '%s' has other sizes than its model", c->name);
}

static smg_status make_classes(file_writer *w) {
    for (int i = 0; i < w->desc->class_count; i++) {
        smg_target needs;
        const smg_bfile_class_desc *c = &w->desc->classes[i];
        SMG_TRY(check_class(w, i));
        SMG_TRY(write_class(w, i));
        SMG_TRY(smg_bundle_needs(w->ctx, c->bundle, c->target, &needs));
        smg_target_print_given(&needs, &w->needs[i]);
        SMG_TRY(smg_text_status(&w->needs[i]));
    }
    return SMG_OK;
}

/* ---- head ------------------------------------------------------------------------------------------- */

static void add_ports(const smg_interface *n, const smg_port *ports, int count, smg_text *out) {
    static const char *const absent[SMG_ABSENT_COUNT] = {NULL, "zeros", "ones", "state"};
    for (int i = 0; i < count; i++) {
        smg_text_add(out, i > 0 ? ",\n    {\"name\": " : "\n    {\"name\": ");
        smg_text_add_json(out, ports[i].name);
        smg_text_addf(out, ", \"type\": \"%s\", \"dims\": [", smg_storage_word(ports[i].type));
        for (int d = 0; d < ports[i].rank; d++) {
            bool fixed = smg_size_is_const(n->sizes, ports[i].dims[d], NULL);
            smg_text_add(out, d > 0 ? ", " : "");
            if (!fixed) smg_text_add(out, "\"");
            smg_size_print(n->sizes, ports[i].dims[d], out);
            if (!fixed) smg_text_add(out, "\"");
        }
        smg_text_add(out, "]");
        if (absent[ports[i].absent] != NULL) smg_text_addf(out, ", \"absent\": \"%s\"", absent[ports[i].absent]);
        if (ports[i].absent == SMG_ABSENT_STATE) {
            smg_text_add(out, ", \"next\": ");
            smg_text_add_json(out, n->outputs[ports[i].next].name);
        }
        smg_text_add(out, "}");
    }
    smg_text_add(out, "\n  ]");
}

static void add_sizes(const smg_interface *n, smg_text *out) {
    for (int i = 0; i < smg_size_symbol_count(n->sizes); i++) {
        int64_t max = smg_size_symbol_max(n->sizes, i);
        smg_text_add(out, i > 0 ? ", " : "");
        smg_text_add_json(out, smg_size_symbol_name(n->sizes, i));
        smg_text_addf(out, ": {\"nominal\": %lld, \"max\": ", (long long)n->nominal[i]);
        if (max >= SMG_SIZE_UNBOUNDED)
            smg_text_add(out, "null}");
        else
            smg_text_addf(out, "%lld}", (long long)max);
    }
}

/* The needs' lines as strings, without where each comes from. */
static void add_needs(const char *needs, smg_text *out) {
    bool first = true;
    for (const char *end = NULL; *needs != '\0'; needs = *end != '\0' ? end + 1 : end) {
        end = strchr(needs, '\n');
        if (end == NULL) end = needs + strlen(needs);
        const char *comment = strstr(needs, "  #");
        size_t length = (size_t)((comment != NULL && comment < end ? comment : end) - needs);
        smg_text_add(out, first ? "" : ", ");
        smg_text_add_json_n(out, needs, length);
        first = false;
    }
}

static void write_head(const file_writer *w, int64_t weights, smg_text *out) {
    const smg_bfile_desc *d = w->desc;
    smg_text_addf(out, "{\n  \"bundle\": %d,\n  \"maker\": ", SMG_BFILE_VERSION);
    smg_text_add_json(out, d->maker);
    smg_text_add(out, ",\n  \"model\": ");
    smg_text_add_json(out, d->model);
    smg_text_add(out, ",\n  \"precision\": ");
    smg_text_add_json(out, d->precision);
    smg_text_add(out, ",\n  \"inputs\": [");
    add_ports(d->interface, d->interface->inputs, d->interface->input_count, out);
    smg_text_add(out, ",\n  \"outputs\": [");
    add_ports(d->interface, d->interface->outputs, d->interface->output_count, out);
    smg_text_add(out, ",\n  \"sizes\": {");
    add_sizes(d->interface, out);
    smg_text_addf(out, "},\n  \"weights\": {\"constants\": %d, \"bytes\": %lld},\n  \"classes\": [", w->constants.count,
                  (long long)weights);
    for (int i = 0; i < d->class_count; i++) {
        const smg_bundle *b = d->classes[i].bundle;
        smg_text_add(out, i > 0 ? ",\n    {\"name\": " : "\n    {\"name\": ");
        smg_text_add_json(out, d->classes[i].name);
        smg_text_addf(out, ", \"bytes\": %zu, \"kernels\": %d, \"modules\": %d, \"prepare\": %d, \"run_lists\": %d",
                      w->classes[i].length, b->variants.items[0].run.count, b->modules.count, b->prepare.count,
                      b->variants.count);
        smg_text_addf(out, ", \"weights\": %lld, \"match\": ", (long long)w->class_weights[i]);
        smg_text_add_json(out, d->classes[i].match);
        smg_text_add(out, ",\n     \"needs\": [");
        add_needs(smg_text_cstr(&w->needs[i]), out);
        smg_text_add(out, "]}");
    }
    smg_text_add(out, "\n  ]\n}\n");
}

/* ---- index and places ------------------------------------------------------------------------------- */

static void write_index(const file_writer *w, uint64_t head_hash, smg_text *out) {
    const smg_bfile_desc *d = w->desc;
    smg_text_add_string(out, d->model);
    smg_text_add_string(out, d->precision);
    smg_text_add_u64(out, head_hash);
    smg_interface_write(d->interface, out);
    smg_text_add_u32(out, (uint32_t)w->constants.count);
    for (int i = 0; i < w->constants.count; i++) {
        const constant *c = &w->constants.items[i];
        smg_text_add_u64(out, (uint64_t)(w->weights_at + c->offset));
        smg_text_add_u64(out, (uint64_t)c->bytes);
        smg_text_add_u32(out, (uint32_t)c->storage);
        smg_text_add_u64(out, c->hash);
    }
    smg_text_add_u32(out, (uint32_t)d->class_count);
    for (int i = 0; i < d->class_count; i++) {
        smg_text_add_string(out, d->classes[i].name);
        smg_text_add_string(out, d->classes[i].match);
        smg_text_add_string(out, smg_text_cstr(&w->needs[i]));
        smg_text_add_u64(out, (uint64_t)w->class_offsets[i]);
        smg_text_add_u64(out, w->classes[i].length);
    }
}

static bool is_large(const constant *c) {
    return c->bytes >= SMG_BFILE_PAGE;
}

/* Large ones first, each at a page, then the small ones; the bytes of all of them. */
static int64_t place_constants(file_writer *w, int64_t *out_weights) {
    int64_t at = 0;
    *out_weights = 0;
    for (int large = 1; large >= 0; large--) {
        for (int i = 0; i < w->constants.count; i++) {
            constant *c = &w->constants.items[i];
            if (is_large(c) != (large == 1)) continue;
            c->offset = aligned(at, large ? SMG_BFILE_PAGE : SMG_BFILE_ALIGN);
            at = c->offset + c->bytes;
            *out_weights += c->bytes;
        }
    }
    return at;
}

/* The index is as long wherever things lie. */
static void place_all(file_writer *w, size_t head_bytes, size_t index_bytes, int64_t weights) {
    int64_t at = SMG_BFILE_HEADER + (int64_t)head_bytes + (int64_t)index_bytes;
    for (int i = 0; i < w->desc->class_count; i++) {
        at = aligned(at, SMG_BFILE_ALIGN);
        w->class_offsets[i] = at;
        at += (int64_t)w->classes[i].length;
    }
    w->weights_at = weights > 0 ? aligned(at, SMG_BFILE_PAGE) : at;
    w->end = w->weights_at + weights;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void write_header(const file_writer *w, const smg_text *head, const smg_text *index, smg_text *out) {
    smg_text_add_n(out, smg_bfile_magic, sizeof(smg_bfile_magic));
    smg_text_add_u32(out, SMG_BFILE_VERSION);
    smg_text_add_u32(out, SMG_BFILE_ORDER);
    smg_text_add_u64(out, (uint64_t)w->end);
    smg_text_add_u64(out, SMG_BFILE_HEADER);
    smg_text_add_u64(out, head->length);
    smg_text_add_u64(out, SMG_BFILE_HEADER + head->length);
    smg_text_add_u64(out, index->length);
    smg_text_add_u64(out, smg_hash_bytes(SMG_HASH_SEED, smg_text_cstr(index), index->length));
}

typedef struct output {
    smg_file_writer *file;
    int64_t at;
} output;

static void put(output *out, const void *bytes, size_t count) {
    smg_file_writer_add(out->file, bytes, count);
    out->at += (int64_t)count;
}

static void put_zeros_to(output *out, int64_t offset) {
    static const uint8_t zeros[SMG_BFILE_PAGE];
    if (offset > out->at) put(out, zeros, (size_t)(offset - out->at)); /* less than a page */
}

static smg_status put_constants(const file_writer *w, output *out) {
    for (int large = 1; large >= 0; large--) {
        for (int i = 0; i < w->constants.count; i++) {
            const constant *c = &w->constants.items[i];
            if (is_large(c) != (large == 1)) continue;
            put_zeros_to(out, w->weights_at + c->offset);
            for (int64_t at = 0, count = 0; at < c->bytes; at += count) {
                const void *part = NULL;
                SMG_TRY(part_of(w, c->buffer, c->bytes, at, w->part, &part, &count));
                put(out, part, (size_t)count);
            }
        }
    }
    return SMG_OK;
}

static smg_status write_all(const file_writer *w, const smg_text *const parts[3], const char *path) {
    output out = {0};
    SMG_TRY(smg_file_writer_open(w->ctx, path, &out.file));
    for (int i = 0; i < 3; i++) put(&out, smg_text_cstr(parts[i]), parts[i]->length);
    for (int i = 0; i < w->desc->class_count; i++) {
        put_zeros_to(&out, w->class_offsets[i]);
        put(&out, smg_text_cstr(&w->classes[i]), w->classes[i].length);
    }
    smg_status status = put_constants(w, &out);
    smg_status closed = smg_file_writer_close(out.file, status == SMG_OK);
    return status != SMG_OK ? status : closed;
}

/* Header, head and index; then the file. */
static smg_status assemble(file_writer *w, smg_text texts[3], const char *path) {
    int64_t bytes = 0, weights = place_constants(w, &bytes);
    smg_text *header = &texts[0], *head = &texts[1], *index = &texts[2];
    write_head(w, bytes, head);
    uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, smg_text_cstr(head), head->length);
    write_index(w, hash, index);
    SMG_TRY(smg_text_status(index));
    place_all(w, head->length, index->length, weights);
    smg_text_free(index);
    smg_text_init(index, w->ctx);
    write_index(w, hash, index);
    write_header(w, head, index, header);
    for (int i = 0; i < 3; i++) SMG_TRY(smg_text_status(&texts[i]));
    const smg_text *const parts[3] = {header, head, index};
    return write_all(w, parts, path);
}

static smg_status write_file(file_writer *w, const char *path) {
    size_t count = (size_t)w->desc->class_count;
    smg_text texts[3];
    if (w->desc->class_count < 1 || w->desc->class_count > SMG_BFILE_MOST_CLASSES)
        return smg_fail(w->ctx, SMG_INVALID, "a bundle has 1 to %d classes, not %d", SMG_BFILE_MOST_CLASSES,
                        w->desc->class_count);
    w->classes = SMG_ARENA_ARRAY(w->arena, smg_text, count);
    w->needs = SMG_ARENA_ARRAY(w->arena, smg_text, count);
    w->class_offsets = SMG_ARENA_ARRAY(w->arena, int64_t, count);
    w->class_weights = SMG_ARENA_ARRAY(w->arena, int64_t, count);
    w->part = smg_arena_alloc(w->arena, SMG_BFILE_PART, 1);
    w->other = smg_arena_alloc(w->arena, SMG_BFILE_PART, 1);
    if (!w->classes || !w->needs || !w->class_offsets || !w->class_weights || !w->part || !w->other) return SMG_MEMORY;
    for (size_t i = 0; i < count; i++) {
        smg_text_init(&w->classes[i], w->ctx);
        smg_text_init(&w->needs[i], w->ctx);
    }
    for (int i = 0; i < 3; i++) smg_text_init(&texts[i], w->ctx);
    smg_status status = make_classes(w);
    if (status == SMG_OK) status = assemble(w, texts, path);
    for (int i = 0; i < 3; i++) smg_text_free(&texts[i]);
    for (size_t i = 0; i < count; i++) {
        smg_text_free(&w->classes[i]);
        smg_text_free(&w->needs[i]);
    }
    return status;
}

smg_status smg_bfile_write(smg_context *ctx, const smg_bfile_desc *desc, const char *path) {
    file_writer w = {.ctx = ctx, .desc = desc};
    SMG_TRY(smg_arena_create(ctx, &w.arena));
    smg_status status = write_file(&w, path);
    smg_arena_destroy(w.arena);
    return status;
}
