/* facts_bundle.c: include/smg/bundle.h: a bundle's file, mapped, with what is told of it, and models of it. */
#include "array/array.h"
#include "bundle/file.h"
#include "facts/facts.h"
#include "runtime/runtime.h"
#include "smg/bundle.h"

struct smg_bundle_file {
    smg_context *ctx;
    smg_arena *arena;
    smg_mapped_file mapping;
    smg_bfile *file;
    smg_bundle_facts facts;
    smg_bundle_class *classes; /* per class, once it was asked for; name NULL: not yet */
    smg_bfile_check check;     /* of classes; NULL: none */
};

bool smg_bundle_file_is_at(smg_context *ctx, const char *path) {
    if (ctx == NULL || path == NULL) return false;
    bool is = smg_bfile_is_at(ctx, path);
    smg_context_clear_error(ctx);
    return is;
}

static smg_status read_file(smg_bundle_file *b, const char *path) {
    SMG_TRY(smg_file_map(b->ctx, path, &b->mapping));
    const smg_bfile_source source = {.bytes = (int64_t)b->mapping.size, .data = b->mapping.data};
    SMG_TRY(smg_bfile_read(b->arena, &source, path, &b->file));
    b->classes = SMG_ARENA_ARRAY(b->arena, smg_bundle_class, (size_t)b->file->class_count + 1);
    if (b->classes == NULL) return SMG_MEMORY;
    b->facts = (smg_bundle_facts){.model = b->file->model,
                                  .precision = b->file->precision,
                                  .bytes = b->file->source.bytes,
                                  .weights_bytes = b->file->weights_bytes,
                                  .class_count = b->file->class_count};
    return smg_signature_make(b->arena, b->file->interface, &b->facts.signature);
}

static smg_status open_file(smg_context *ctx, const char *path, smg_bundle_file **out_file) {
    smg_arena *arena = NULL;
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_bundle_file_open: the path is NULL");
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_bundle_file *b = SMG_ARENA_NEW(arena, smg_bundle_file);
    if (b == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *b = (smg_bundle_file){.ctx = ctx, .arena = arena};
    smg_status status = read_file(b, path);
    if (status == SMG_OK)
        *out_file = b;
    else
        smg_bundle_file_close(b);
    return status;
}

smg_status smg_bundle_file_open(smg_context *ctx, const char *path, smg_bundle_file **out_file) {
    if (out_file == NULL) return SMG_INVALID;
    *out_file = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, open_file(ctx, path, out_file));
}

void smg_bundle_file_close(smg_bundle_file *b) {
    if (b == NULL) return;
    smg_file_unmap(&b->mapping);
    smg_arena_destroy(b->arena);
}

const smg_bundle_facts *smg_bundle_file_facts(const smg_bundle_file *b) {
    return b != NULL ? &b->facts : NULL;
}

smg_context *smg_bundle_file_watch(smg_bundle_file *b, smg_bfile_check check) {
    b->check = check;
    for (int i = 0; i < b->facts.class_count; i++) b->classes[i].name = NULL; /* they are read again */
    return b->ctx;
}

static smg_status needs_of(smg_bundle_file *b, const smg_target *needs, const char **out_text) {
    smg_text text;
    smg_text_init(&text, b->ctx);
    smg_target_print_given(needs, &text);
    smg_status status = smg_text_status(&text);
    if (status == SMG_OK) *out_text = smg_arena_string(b->arena, smg_text_cstr(&text));
    smg_text_free(&text);
    return *out_text != NULL ? SMG_OK : SMG_MEMORY;
}

static smg_status read_class(smg_bundle_file *b, int index, smg_bundle_class *out) {
    const smg_bfile_class *c = &b->file->classes[index];
    smg_arena *scratch = NULL;
    smg_bundle *bundle = NULL;
    smg_bundle_class told = {.name = c->name, .match = c->match, .bytes = c->bytes};
    told.type = smg_device_type_word(c->needs.type);
    SMG_TRY(smg_arena_create(b->ctx, &scratch));
    smg_status status = smg_bfile_read_class(b->file, index, scratch, &bundle);
    if (status == SMG_OK && b->check != NULL) status = b->check(b->file, index, bundle);
    if (status == SMG_OK) status = smg_bfile_weights(b->file, bundle, &told.weights_bytes);
    if (status == SMG_OK) told.prepare_kernels = bundle->prepare.count;
    smg_arena_destroy(scratch);
    if (status == SMG_OK) status = needs_of(b, &c->needs, &told.needs);
    if (status == SMG_OK) *out = told;
    return status;
}

static smg_status tell_class(smg_bundle_file *b, int index, smg_bundle_class *out) {
    if (out == NULL || index < 0 || index >= b->facts.class_count)
        return smg_fail(b->ctx, SMG_INVALID, "smg_bundle_file_class: class %d of %d%s", index, b->facts.class_count,
                        out == NULL ? ", at NULL" : "");
    if (b->classes[index].name == NULL) SMG_TRY(read_class(b, index, &b->classes[index]));
    *out = b->classes[index];
    return SMG_OK;
}

smg_status smg_bundle_file_class(smg_bundle_file *b, int index, smg_bundle_class *out_class) {
    if (b == NULL) return SMG_INVALID;
    smg_context_clear_error(b->ctx);
    return smg_context_told(b->ctx, tell_class(b, index, out_class));
}

static smg_status check(smg_bundle_file *b) {
    smg_bundle_class ignored;
    smg_arena *scratch = NULL;
    const char *head = NULL;
    SMG_TRY(smg_bfile_check_weights(b->file));
    for (int i = 0; i < b->facts.class_count; i++) SMG_TRY(tell_class(b, i, &ignored));
    SMG_TRY(smg_arena_create(b->ctx, &scratch));
    smg_status status = smg_bfile_read_head(b->file, scratch, &head);
    smg_arena_destroy(scratch);
    return status;
}

smg_status smg_bundle_file_check(smg_bundle_file *b) {
    if (b == NULL) return SMG_INVALID;
    smg_context_clear_error(b->ctx);
    return smg_context_told(b->ctx, check(b));
}

static smg_status write_json(smg_bundle_file *b, smg_sink sink) {
    smg_arena *scratch = NULL;
    const char *head = NULL;
    smg_text text;
    SMG_TRY(smg_arena_create(b->ctx, &scratch));
    smg_text_init(&text, b->ctx);
    smg_status status = smg_bfile_read_head(b->file, scratch, &head);
    if (status == SMG_OK) smg_text_add(&text, head);
    smg_arena_destroy(scratch);
    if (status == SMG_OK) return smg_text_give(&text, sink);
    smg_text_free(&text);
    return status;
}

smg_status smg_bundle_file_write_json(smg_bundle_file *b, smg_sink sink) {
    if (b == NULL) return SMG_INVALID;
    smg_context_clear_error(b->ctx);
    return smg_context_told(b->ctx, write_json(b, sink));
}

static smg_status open_model(smg_bundle_file *b, const smg_bundle_desc *desc, smg_model **out_model) {
#if SMG_VULKAN
    return smg_model_open_file(b->ctx, b->file, b->check, desc, &b->mapping, out_model);
#else
    (void)desc;
    (void)out_model;
    return smg_fail(b->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan: it compiles, it does not run");
#endif
}

smg_status smg_bundle_file_open_model(smg_bundle_file *b, const smg_bundle_desc *desc, smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (b == NULL) return SMG_INVALID;
    smg_context_clear_error(b->ctx);
    return smg_context_told(b->ctx, open_model(b, desc, out_model));
}
