/* compile_cache.c: plan and SPIR-V of models that were opened before.
 *
 * One file a graph, target and options: <cache>/plans/<key>.plan. It holds the bundle's bytes without weights, and what
 * a compilation knows beside its bundle: nominal sizes, how many products are by terms, what each buffer stands for in
 * the rewritten graph, and the questions about large constants that rewriting asked, with the answers. These are asked
 * again of the constants at hand; where one is answered otherwise the entry is another training's and is left alone
 * until the new plan replaces it. The key has everything else that a plan depends on (decisions/0017-plan-cache.md). A
 * second hash of the same makes a collision harmless. Nothing here is a failure: without a usable entry the plan is
 * made. */
#include "compile/compile.h"
#include "smg_fingerprint.h"

enum { ENTRY_VERSION = 3 };

static const char entry_magic[8] = {'S', 'M', 'G', 'P', 'L', 'A', 'N', 0};

/* What rewriting is given: bundles count its constants. */
static const smg_graph *given(const smg_compilation *c) {
    return c->parts != NULL ? c->parts : c->source;
}

/* ---- key ---------------------------------------------------------------------------------------- */

static uint64_t hash_dims(uint64_t hash, const smg_dim *dims, int count) {
    hash = smg_hash_u64(hash, (uint64_t)count);
    for (int i = 0; i < count; i++) hash = smg_hash_u64(smg_hash_text(hash, dims[i].name), (uint64_t)dims[i].value);
    return hash;
}

static uint64_t hash_samples(uint64_t hash, const smg_compile_options *o) {
    for (int i = 0; i < o->sample_count; i++) {
        const smg_tensor *t = &o->samples[i];
        hash = smg_hash_text(smg_hash_text(hash, t->name), t->type);
        for (int d = 0; d < t->rank; d++) hash = smg_hash_u64(hash, (uint64_t)t->dims[d]);
        hash = smg_hash_bytes(hash, t->data, t->bytes);
    }
    return smg_hash_u64(hash, (uint64_t)o->sample_count);
}

static smg_status make_key(const smg_compilation *c, uint64_t seed, uint64_t *out_key) {
    const smg_compile_options *o = &c->options;
    const smg_target *t = &c->target;
    uint64_t hash = smg_hash_text(seed, "smg plan " SMG_VERSION " " SMG_FINGERPRINT);
    hash = smg_hash_u64(hash, ENTRY_VERSION);
    hash = smg_hash_u64(hash, SMG_PLAN_REVISION);
    hash = smg_spirv_revision(hash);
    hash = smg_hash_u64(hash, smg_target_hash(t));
    hash = smg_hash_text(smg_hash_text(hash, t->name), t->driver);
    hash = smg_hash_bytes(hash, t->uuid, sizeof(t->uuid));
    hash = smg_hash_u64(hash, (uint64_t)o->objective);
    hash = smg_hash_u64(hash, o->unfused ? 1 : 0);
    hash = smg_hash_u64(hash, o->padding_unread ? 1 : 0);
    hash = smg_hash_u64(hash, (uint64_t)o->rank);
    hash = smg_hash_u64(smg_hash_u64(hash, (uint64_t)o->max_nodes), (uint64_t)o->max_products);
    hash = smg_hash_bytes(hash, &o->min_gain, sizeof(o->min_gain));
    hash = smg_hash_u64(hash, (uint64_t)o->max_live);
    hash = smg_hash_bytes(hash, &o->memory_pressure, sizeof(o->memory_pressure));
    hash = smg_tuning_hash(hash, &c->tuning);
    hash = hash_samples(smg_hash_text(hash, smg_type_word(o->precision)), o);
    hash = hash_dims(hash, o->dims, o->dim_count);
    hash = hash_dims(hash, o->max_dims, o->max_dim_count);
    return smg_graph_key(given(c), hash, out_key);
}

void smg_compile_cache_open(smg_compilation *c) {
    if (c->options.no_plan_cache || c->options.passes.rivals > 0 || !smg_context_cache_dir(c->ctx)[0]) return;
    bool had_failure = smg_context_status(c->ctx) != SMG_OK;
    c->keeps = make_key(c, SMG_HASH_SEED, &c->key[0]) == SMG_OK && make_key(c, ~SMG_HASH_SEED, &c->key[1]) == SMG_OK;
    if (!c->keeps && !had_failure) smg_context_clear_error(c->ctx);
}

static char *entry_path(const smg_compilation *c) {
    return smg_arena_format(c->arena, "%s/plans/%016llx.plan", smg_context_cache_dir(c->ctx),
                            (unsigned long long)c->key[0]);
}

/* ---- constants ---------------------------------------------------------------------------------- */

/* The node of `g` that is constant with this data and so many elements of this type's storage, -1: none. */
static smg_node_id find_constant(const smg_graph *g, const void *data, smg_storage storage, int64_t elements) {
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *n = smg_graph_node(g, id);
        smg_storage own;
        int64_t count = 0;
        if (!smg_op_is_constant(n->op) || n->data != data || data == NULL) continue;
        if (!smg_compile_storage(n->type, n->type, &own) || own != smg_storage_given(storage)) continue;
        if (smg_size_is_const(g->sizes, smg_node_elements(g, id), &count) && count == elements) return id;
    }
    return -1;
}

/* For smg_bundle_read: a source is a node. */
static bool data_of(void *user, int source, smg_storage storage, int64_t elements, const void **out_data) {
    const smg_graph *g = user;
    const smg_node *n = smg_graph_node(g, source);
    smg_storage own;
    int64_t count = 0;
    if (n == NULL || !smg_op_is_constant(n->op) || !smg_compile_storage(n->type, n->type, &own)) return false;
    if (own != smg_storage_given(storage)) return false;
    *out_data = n->data;
    return smg_size_is_const(g->sizes, smg_node_elements(g, source), &count) && count == elements && n->data != NULL;
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct entry {
    int run_ops, terms, variant_count, origin_count;
    int64_t *nominal[SMG_MAX_VARIANTS];
    int *origins;
    smg_bundle *bundle;
} entry;

static smg_status read_header(smg_compilation *c, smg_reader *r, smg_reader *out_extras) {
    const uint8_t *magic = smg_reader_raw(r, sizeof(entry_magic));
    bool good = magic != NULL && memcmp(magic, entry_magic, sizeof(entry_magic)) == 0;
    good = good && smg_reader_u32(r) == ENTRY_VERSION && smg_reader_u32(r) == 0;
    good = good && smg_reader_u64(r) == c->key[0] && smg_reader_u64(r) == c->key[1];
    uint64_t bytes = good ? smg_reader_u64(r) : 0, hash = good ? smg_reader_u64(r) : 0;
    const uint8_t *extras = good && bytes <= r->left ? smg_reader_raw(r, (size_t)bytes) : NULL;
    if (extras == NULL || hash != smg_hash_bytes(SMG_HASH_SEED, extras, (size_t)bytes)) {
        return smg_fail(c->ctx, SMG_FORMAT, "its header is wrong");
    }
    *out_extras = (smg_reader){.at = extras, .left = (size_t)bytes};
    return SMG_OK;
}

static smg_status read_extras(smg_compilation *c, smg_reader *r, entry *e) {
    e->run_ops = smg_reader_int(r, 0, INT32_MAX);
    e->terms = smg_reader_int(r, 0, INT32_MAX);
    e->variant_count = smg_reader_int(r, 1, SMG_MAX_VARIANTS);
    int symbols = smg_reader_count(r, sizeof(int64_t));
    for (int i = 0; i < e->variant_count; i++) {
        e->nominal[i] = SMG_ARENA_ARRAY(c->arena, int64_t, (size_t)symbols + 1);
        if (e->nominal[i] == NULL) return SMG_MEMORY;
        for (int k = 0; k < symbols; k++) e->nominal[i][k] = (int64_t)smg_reader_u64(r);
    }
    e->origin_count = smg_reader_count(r, sizeof(int32_t));
    e->origins = SMG_ARENA_ARRAY(c->arena, int, (size_t)e->origin_count + 1);
    if (e->origins == NULL) return SMG_MEMORY;
    for (int i = 0; i < e->origin_count; i++) e->origins[i] = smg_reader_int(r, -1, INT32_MAX);
    bool good = !r->failed && symbols == smg_size_symbol_count(given(c)->sizes);
    return good ? SMG_OK : smg_fail(c->ctx, SMG_FORMAT, "what goes with its bundle is wrong");
}

/* Are all questions of rewriting answered as they were? */
static smg_status ask_facts(smg_compilation *c, smg_reader *r, bool *out_same) {
    enum { FACT_BYTES = 12 };
    int count = smg_reader_count(r, FACT_BYTES);
    *out_same = true;
    for (int i = 0; i < count && *out_same && !r->failed; i++) {
        int node = smg_reader_int(r, 0, INT32_MAX);
        smg_content question = (smg_content)smg_reader_int(r, 0, SMG_CONTENT_COUNT - 1);
        int answer = smg_reader_int(r, 0, INT32_MAX);
        const smg_node *n = smg_graph_node(given(c), node);
        int64_t elements = 0;
        if (n == NULL || !smg_op_is_constant(n->op) || n->data == NULL || smg_type_kind(n->type) != SMG_KIND_FLOAT ||
            !smg_size_is_const(given(c)->sizes, smg_node_elements(given(c), node), &elements)) {
            r->failed = true;
            break;
        }
        *out_same = smg_content_answer(question, n->type, n->data, elements) == answer;
    }
    return r->failed ? smg_fail(c->ctx, SMG_FORMAT, "its questions are wrong") : smg_context_status(c->ctx);
}

static smg_status read_entry(smg_compilation *c, const smg_mapped_file *file, entry *e, bool *out_same) {
    smg_reader r = {.at = file->data, .left = file->size}, extras;
    const smg_graph *g = given(c);
    smg_bundle_constants from = {.find = data_of};
    memcpy(&from.user, &g, sizeof(g)); /* read only */
    SMG_TRY(read_header(c, &r, &extras));
    SMG_TRY(read_extras(c, &extras, e));
    SMG_TRY(ask_facts(c, &extras, out_same));
    if (!*out_same) return SMG_OK;
    SMG_TRY(smg_bundle_read(c->arena, r.at, r.left, &from, &e->bundle));
    const smg_bundle *b = e->bundle;
    bool good = b->variants.count == e->variant_count && b->buffers.count == e->origin_count &&
                smg_size_symbol_count(b->sizes) == smg_size_symbol_count(g->sizes);
    return good ? SMG_OK : smg_fail(c->ctx, SMG_FORMAT, "its bundle is another one's");
}

static void take_entry(smg_compilation *c, const entry *e) {
    c->bundle = e->bundle;
    c->run_ops = e->run_ops;
    c->terms = e->terms;
    c->variant_count = e->variant_count;
    for (int i = 0; i < e->variant_count; i++) {
        const smg_bvariant *v = &e->bundle->variants.items[i];
        c->variants[i] = (smg_variant){.low = v->low, .high = v->high, .nominal = e->nominal[i]};
    }
    c->nominal = e->nominal[0];
    c->origins = e->origins;
    c->origin_count = e->origin_count;
    c->modules_cached = e->bundle->modules.count;
    c->from_cache = true;
}

static bool find_entry(smg_compilation *c) {
    const char *path = entry_path(c);
    if (path == NULL || !smg_file_exists(path)) return false;
    smg_mapped_file file = {0};
    entry e = {0};
    bool same = false;
    if (smg_file_map(c->ctx, path, &file) != SMG_OK) return false;
    smg_status status = read_entry(c, &file, &e, &same);
    smg_file_unmap(&file);
    if (status == SMG_OK && same) {
        take_entry(c, &e);
        return true;
    }
    if (status == SMG_OK)
        smg_log(c->ctx, SMG_LOG_INFO, "plan cache entry %s was made for other weights: ignored", path);
    else if (status != SMG_MEMORY)
        smg_log(c->ctx, SMG_LOG_WARNING, "plan cache entry %s is damaged: ignored (%s)", path,
                smg_context_error(c->ctx));
    return false;
}

bool smg_compile_cache_read(smg_compilation *c) {
    if (!c->keeps) return false;
    bool had_failure = smg_context_status(c->ctx) != SMG_OK;
    bool found = find_entry(c);
    if (!found && !had_failure) smg_context_clear_error(c->ctx);
    return found;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Constants that rewriting computed are written with the bundle; they are small. */
static bool name_sources(smg_compilation *c) {
    for (int i = 0; i < c->bundle->buffers.count; i++) {
        smg_bbuffer *b = &c->bundle->buffers.items[i];
        int64_t elements = 0;
        if (b->kind != SMG_BUFFER_CONSTANT || b->source >= 0) continue;
        smg_size_is_const(c->bundle->sizes, b->elements, &elements);
        b->source = find_constant(given(c), b->data, b->storage, elements);
        if (b->source < 0 && elements > SMG_HOST_ELEMENTS) return false;
    }
    return true;
}

static bool write_facts(const smg_compilation *c, smg_text *out) {
    smg_text_add_u32(out, (uint32_t)c->graph->facts.count);
    for (int i = 0; i < c->graph->facts.count; i++) {
        const smg_content_fact *fact = &c->graph->facts.items[i];
        smg_storage storage;
        if (!smg_compile_storage(fact->type, fact->type, &storage)) return false;
        smg_node_id node = find_constant(given(c), fact->data, storage, fact->elements);
        if (node < 0) return false;
        smg_text_add_u32(out, (uint32_t)node);
        smg_text_add_u32(out, (uint32_t)fact->question);
        smg_text_add_u32(out, (uint32_t)fact->answer);
    }
    return true;
}

static smg_status write_extras(const smg_compilation *c, smg_text *out, bool *out_whole) {
    int symbols = smg_size_symbol_count(c->graph->sizes);
    int *origins = NULL;
    SMG_TRY(smg_compile_origins(c, c->arena, &origins));
    smg_text_add_u32(out, (uint32_t)c->run_ops);
    smg_text_add_u32(out, (uint32_t)c->terms);
    smg_text_add_u32(out, (uint32_t)c->variant_count);
    smg_text_add_u32(out, (uint32_t)symbols);
    for (int i = 0; i < c->variant_count; i++) {
        for (int k = 0; k < symbols; k++) smg_text_add_u64(out, (uint64_t)c->variants[i].nominal[k]);
    }
    smg_text_add_u32(out, (uint32_t)c->bundle->buffers.count);
    for (int i = 0; i < c->bundle->buffers.count; i++) smg_text_add_u32(out, (uint32_t)origins[i]);
    *out_whole = write_facts(c, out);
    return smg_text_status(out);
}

static smg_status save(const smg_compilation *c, const smg_text *extras, smg_text *out) {
    smg_text_add_n(out, entry_magic, sizeof(entry_magic));
    smg_text_add_u32(out, ENTRY_VERSION);
    smg_text_add_u32(out, 0);
    for (int i = 0; i < 2; i++) smg_text_add_u64(out, c->key[i]);
    smg_text_add_u64(out, extras->length);
    smg_text_add_u64(out, smg_hash_bytes(SMG_HASH_SEED, smg_text_cstr(extras), extras->length));
    smg_text_add_n(out, smg_text_cstr(extras), extras->length);
    smg_bundle_write(c->bundle, out);
    SMG_TRY(smg_text_status(out));
    const char *path = entry_path(c);
    const char *folder = smg_path_join(c->arena, smg_context_cache_dir(c->ctx), "plans");
    if (path == NULL || folder == NULL) return SMG_MEMORY;
    SMG_TRY(smg_path_make_dirs(c->ctx, folder));
    return smg_file_write_atomic(c->ctx, path, smg_text_cstr(out), out->length);
}

static smg_status write_entry(smg_compilation *c) {
    smg_text extras, all;
    bool whole = false;
    if (!name_sources(c)) return SMG_OK;
    smg_text_init(&extras, c->ctx);
    smg_text_init(&all, c->ctx);
    smg_status status = write_extras(c, &extras, &whole);
    if (status == SMG_OK && whole) status = save(c, &extras, &all);
    smg_text_free(&extras);
    smg_text_free(&all);
    return status;
}

void smg_compile_cache_write(smg_compilation *c) {
    if (!c->keeps || c->bundler == NULL) return;
    bool had_failure = smg_context_status(c->ctx) != SMG_OK;
    if (write_entry(c) == SMG_OK || had_failure) return;
    smg_log(c->ctx, SMG_LOG_WARNING, "a plan cache entry could not be written: %s", smg_context_error(c->ctx));
    smg_context_clear_error(c->ctx);
}
