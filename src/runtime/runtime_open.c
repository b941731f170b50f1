/* runtime_open.c: a bundle's file as a model: the device, the class that suits it, weights uploaded.
 *
 * Everything that a model keeps is copied out of the file while it is opened; its bytes may go afterwards. */
#include "runtime/runtime_private.h"

/* What is borrowed from an open file by its model: an arena with the index and one class. */
typedef struct opened {
    smg_arena *arena;
    const smg_bfile *file;
    smg_bfile_check check; /* NULL: none */
    smg_room piece;        /* bytes of a weight on their way, of a file that is read by calls */
    int class_index;
    const smg_bundle *bundle;
    const char *device;      /* that is opened; NULL: the best */
    smg_mapped_file mapping; /* kept, of a model that is recoverable */
} opened;

static void drop_opened(void *owner) {
    opened *o = owner;
    smg_file_unmap(&o->mapping);
    smg_free(smg_arena_context(o->arena), o->piece.data, o->piece.bytes);
    smg_arena_destroy(o->arena);
}

static smg_status fetch(void *user, int source, int64_t offset, size_t bytes, const void **out_data) {
    opened *o = user;
    smg_context *ctx = smg_arena_context(o->arena);
    if (o->piece.bytes < bytes) {
        smg_free(ctx, o->piece.data, o->piece.bytes);
        o->piece = (smg_room){smg_alloc(ctx, bytes, 1), bytes};
        if (o->piece.data == NULL) {
            o->piece.bytes = 0;
            return SMG_MEMORY;
        }
    }
    *out_data = o->piece.data;
    return smg_bfile_read_weight(o->file, source, offset, o->piece.data, bytes);
}

static smg_status arrived(void *user, int source, const char *name, uint64_t hash) {
    const opened *o = user;
    return smg_bfile_check_weight(o->file, source, name, hash);
}

/* ---- description ------------------------------------------------------------------------------------ */

static smg_status check_desc(smg_context *ctx, const smg_bundle_desc *desc) {
    if (desc->dim_count < 0 || (desc->dims == NULL && desc->dim_count > 0) || desc->range_count < 0 ||
        (desc->ranges == NULL && desc->range_count > 0))
        return smg_fail(ctx, SMG_INVALID, "smg_bundle_desc: %d dims and %d ranges, less than none or an array is NULL",
                        desc->dim_count, desc->range_count);
    for (int i = 0; i < desc->dim_count; i++)
        if (desc->dims[i].name == NULL) return smg_fail(ctx, SMG_INVALID, "smg_bundle_desc: dims[%d] has no name", i);
    for (int i = 0; i < desc->range_count; i++)
        if (desc->ranges[i].name == NULL)
            return smg_fail(ctx, SMG_INVALID, "smg_bundle_desc: ranges[%d] has no name", i);
    if (desc->memory_bytes < 0)
        return smg_fail(ctx, SMG_INVALID, "smg_bundle_desc: memory of %lld bytes", (long long)desc->memory_bytes);
    return smg_model_check_device(ctx, desc->on);
}

/* ---- device and class ------------------------------------------------------------------------------- */

static bool has_matrices(const smg_bfile *file) {
    for (int i = 0; i < file->class_count; i++)
        if (file->classes[i].needs.matrix_count > 0) return true;
    return false;
}

static smg_status open_device(opened *o, smg_model_parts *parts) {
    double start = smg_clock_seconds();
    if (parts->device == NULL) {
        SMG_TRY(smg_vk_open(smg_arena_context(o->arena), o->device, 0, &parts->device));
        parts->owns_device = true;
    }
    smg_status status = smg_vk_prove(parts->device, has_matrices(o->file));
    parts->device_seconds = smg_clock_seconds() - start;
    return status;
}

static smg_status take_class(opened *o, smg_model_parts *parts) {
    int index = 0;
    smg_bundle *bundle = NULL;
    SMG_TRY(smg_bfile_choose(o->file, smg_vk_target(parts->device), &index));
    if (o->bundle == NULL || index != o->class_index) {
        SMG_TRY(smg_bfile_read_class(o->file, index, o->arena, &bundle));
        if (o->check != NULL) SMG_TRY(o->check(o->file, index, bundle));
        o->bundle = bundle;
        o->class_index = index;
    }
    parts->bundle = o->bundle;
    parts->class_name = o->file->classes[index].name;
    return SMG_OK;
}

static smg_status take_device(void *owner, smg_model_parts *parts) {
    SMG_TRY(open_device(owner, parts));
    return take_class(owner, parts);
}

static smg_status make_model(smg_context *ctx, opened *o, const smg_bundle_desc *desc, smg_model_parts *parts,
                             smg_model **out_model) {
    SMG_TRY(check_desc(ctx, desc));
    o->device = desc->device != NULL ? smg_arena_string(o->arena, desc->device) : NULL;
    if (desc->device != NULL && o->device == NULL) return SMG_MEMORY;
    parts->device = desc->on;
    SMG_TRY(take_device(o, parts));
    if (desc->recoverable) parts->again = take_device;
    parts->interface = o->file->interface;
    parts->dims = desc->dims;
    parts->dim_count = desc->dim_count;
    parts->program.literal = smg_sizes_all_given(o->file->interface->sizes, desc->dims, desc->dim_count);
    parts->ranges = desc->ranges;
    parts->range_count = desc->range_count;
    parts->program.memory_bytes = desc->memory_bytes;
    parts->program.fetch = fetch;
    parts->program.arrived = arrived;
    parts->program.file = o;
    parts->owner = o;
    parts->drop = drop_opened;
    return smg_model_make(ctx, parts, out_model);
}

/* Pages of constants that were uploaded. */
static void let_go(void *user, const void *data, size_t bytes) {
    const smg_mapped_file *mapping = user;
    smg_file_drop_pages(mapping, (size_t)((const uint8_t *)data - mapping->data), bytes);
}

/* The arena goes with the model, or on failure. */
static smg_status open_read(smg_arena *arena, const smg_bfile *file, smg_bfile_check check, const smg_bundle_desc *desc,
                            smg_mapped_file *mapping, bool keeps, smg_model **out_model) {
    static const smg_bundle_desc nothing = {0};
    smg_model_parts parts = {0};
    opened *o = SMG_ARENA_NEW(arena, opened);
    if (o == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    *o = (opened){.arena = arena, .file = file, .check = check};
    if (mapping != NULL) {
        if (keeps) o->mapping = *mapping;
        if (keeps) *mapping = (smg_mapped_file){0};
        parts.program.uploaded = let_go;
        parts.program.user = keeps ? &o->mapping : mapping;
    }
    smg_status status = make_model(smg_arena_context(arena), o, desc != NULL ? desc : &nothing, &parts, out_model);
    if (status == SMG_OK) return SMG_OK;
    drop_opened(o);
    if (parts.owns_device) smg_vk_close(parts.device);
    return status;
}

smg_status smg_model_open_bytes(smg_context *ctx, const smg_bfile_source *source, const char *label,
                                const smg_bundle_desc *desc, smg_mapped_file *mapping, smg_model **out_model) {
    smg_arena *arena = NULL;
    smg_bfile *file = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    smg_status status = smg_bfile_read(arena, source, label, &file);
    if (status == SMG_OK)
        return open_read(arena, file, NULL, desc, mapping, desc != NULL && desc->recoverable, out_model);
    smg_arena_destroy(arena);
    return status;
}

smg_status smg_model_open_file(smg_context *ctx, const smg_bfile *file, smg_bfile_check check,
                               const smg_bundle_desc *desc, smg_mapped_file *mapping, smg_model **out_model) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(ctx, &arena));
    return open_read(arena, file, check, desc, mapping, false, out_model);
}

/* ---- the three ways --------------------------------------------------------------------------------- */

static smg_status open_path(smg_context *ctx, const char *path, const smg_bundle_desc *desc, smg_model **out_model) {
    smg_mapped_file mapping = {0};
    if (path == NULL) return smg_fail(ctx, SMG_INVALID, "smg_model_open_bundle: the path is NULL");
    SMG_TRY(smg_file_map(ctx, path, &mapping));
    const smg_bfile_source source = {.bytes = (int64_t)mapping.size, .data = mapping.data};
    smg_status status = smg_model_open_bytes(ctx, &source, path, desc, &mapping, out_model);
    smg_file_unmap(&mapping);
    return status;
}

smg_status smg_model_open_bundle(smg_context *ctx, const char *path, const smg_bundle_desc *desc,
                                 smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, open_path(ctx, path, desc, out_model));
}

smg_status smg_model_open_bundle_memory(smg_context *ctx, const void *bytes, size_t size, const smg_bundle_desc *desc,
                                        smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    const smg_bfile_source source = {.bytes = (int64_t)size, .data = bytes};
    smg_status status = bytes == NULL || size > PTRDIFF_MAX
                            ? smg_fail(ctx, SMG_INVALID, "smg_model_open_bundle_memory: %zu bytes at %s", size,
                                       bytes == NULL ? "NULL" : "an address")
                            : smg_model_open_bytes(ctx, &source, "bundle in memory", desc, NULL, out_model);
    return smg_context_told(ctx, status);
}

smg_status smg_model_open_bundle_reader(smg_context *ctx, const smg_bundle_reader *reader, const smg_bundle_desc *desc,
                                        smg_model **out_model) {
    if (out_model == NULL) return SMG_INVALID;
    *out_model = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    if (reader == NULL || reader->read == NULL || reader->bytes < 0) {
        return smg_context_told(ctx, smg_fail(ctx, SMG_INVALID, "smg_model_open_bundle_reader: %s",
                                              reader != NULL && reader->read != NULL ? "it has less than no bytes"
                                                                                     : "there is no function to call"));
    }
    const smg_bfile_source source = {.bytes = reader->bytes, .read = reader->read, .user = reader->user};
    return smg_context_told(ctx, smg_model_open_bytes(ctx, &source, "bundle by calls", desc, NULL, out_model));
}
