/* compile_embed.c: texts to embeddings, in batches of like length.
 *
 * A window of texts is tokenised, sorted by length and cut into batches, so that little is padded; rows
 * go back to the places of their texts. Everything is made for the largest batch once. */
#include <stdlib.h>

#include "compile/compile.h"

enum { BATCH = 32, TOKENS = 4096 }; /* rows, and rows x length, of one batch at most */

struct smg_embedder {
    smg_model *model;
    smg_context *ctx;
    smg_arena *arena;
    smg_tokenizer *tokenizer;
    int max_length, most_rows, width;
    int64_t done; /* texts of earlier windows */
    int32_t pad;
    int32_t *ids, *mask, *types; /* of one batch */
    bool has_types;
    float *rows;
};

static smg_status read_output_width(smg_embedder *e) {
    smg_tensor out;
    for (int i = 0; i < smg_model_output_count(e->model); i++) {
        smg_model_output(e->model, i, &out);
        if (strcmp(out.name, "embedding") != 0) continue;
        if (out.rank == 2 && out.dims[1] > 0 && out.dims[1] < INT32_MAX) {
            e->width = (int)out.dims[1];
            return SMG_OK;
        }
    }
    return smg_fail(e->ctx, SMG_UNSUPPORTED, "the model gives no output 'embedding' of one row a text");
}

static int64_t symbol_limit(const smg_sizes *sizes, const char *name) {
    int symbol = smg_size_symbol_find(sizes, name);
    return symbol >= 0 ? smg_size_symbol_max(sizes, symbol) : SMG_SIZE_UNBOUNDED;
}

/* The longest row: what the tokenizer cuts to, the directory's max_seq_length, the position table or the caller's
 * maximum; and the most rows of a batch. */
static smg_status limit_batches(smg_embedder *e, const smg_source *source) {
    const smg_sizes *sizes = smg_model_compilation(e->model)->bundle->sizes;
    e->max_length = smg_tokenizer_max_length(e->tokenizer);
    int64_t given = source->dir->max_seq_length;
    if (given > 1 && given < e->max_length) e->max_length = (int)given;
    int64_t longest = symbol_limit(sizes, "sequence");
    if (longest < e->max_length) e->max_length = (int)longest;
    if (e->max_length > TOKENS) e->max_length = TOKENS;
    int64_t most = symbol_limit(sizes, "batch");
    e->most_rows = most < BATCH ? (int)most : BATCH;
    if (e->max_length >= 2) return SMG_OK;
    return smg_fail(e->ctx, SMG_INVALID, "sequence is at most %d, a text takes 2 tokens or more", e->max_length);
}

static smg_status prepare(smg_embedder *e, const smg_source *source) {
    if (source->dir == NULL) {
        return smg_fail(e->ctx, SMG_INVALID, "embedding needs a model directory with tokenizer files");
    }
    SMG_TRY(read_output_width(e));
    SMG_TRY(smg_tokenizer_open(e->ctx, source->dir, &e->tokenizer));
    SMG_TRY(limit_batches(e, source));
    e->pad = smg_tokenizer_pad_id(e->tokenizer);
    e->ids = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    e->mask = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    e->types = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    e->rows = SMG_ARENA_ARRAY(e->arena, float, (size_t)e->width *BATCH);
    for (int i = 0; i < smg_model_input_count(e->model); i++) {
        smg_tensor in;
        smg_model_input(e->model, i, &in);
        if (strcmp(in.name, "token_type_ids") == 0) e->has_types = true;
    }
    return e->ids && e->mask && e->types && e->rows ? SMG_OK : SMG_MEMORY;
}

smg_status smg_embedder_create(smg_model *model, const smg_source *source, smg_embedder **out) {
    *out = NULL;
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(source->ctx, &arena));
    smg_embedder *e = SMG_ARENA_NEW(arena, smg_embedder);
    if (e == NULL) {
        smg_arena_destroy(arena);
        return SMG_MEMORY;
    }
    e->model = model;
    e->ctx = source->ctx;
    e->arena = arena;
    smg_status status = prepare(e, source);
    if (status != SMG_OK) {
        smg_embedder_destroy(e);
        return status;
    }
    *out = e;
    return SMG_OK;
}

void smg_embedder_destroy(smg_embedder *e) {
    if (e == NULL) return;
    smg_tokenizer_close(e->tokenizer);
    smg_arena_destroy(e->arena);
}

int smg_embedder_width(const smg_embedder *e) {
    return e->width;
}

typedef struct encoded {
    int text;
    int count;
    int32_t *ids;
} encoded;

static int by_length(const void *a, const void *b) {
    const encoded *x = a;
    const encoded *y = b;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

static smg_status encode(smg_embedder *e, smg_arena *arena, const char *const *texts, const size_t *lengths, int count,
                         encoded *out) {
    int32_t *ids = SMG_ARENA_ARRAY(arena, int32_t, (size_t)e->max_length + 1);
    if (ids == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        int used = 0;
        smg_status status = smg_tokenizer_encode(e->tokenizer, texts[i], lengths[i], ids, e->max_length, &used);
        if (status != SMG_OK) return smg_fail_within(e->ctx, status, "text %lld", (long long)e->done + i + 1);
        out[i] = (encoded){.text = i, .count = used};
        out[i].ids = SMG_ARENA_ARRAY(arena, int32_t, (size_t)used + 1);
        if (out[i].ids == NULL) return SMG_MEMORY;
        memcpy(out[i].ids, ids, (size_t)used * sizeof(*ids));
    }
    return SMG_OK;
}

static smg_status run_batch(smg_embedder *e, const encoded *rows, int count, float *out_rows) {
    int64_t length = rows[count - 1].count; /* sorted: the longest */
    for (int r = 0; r < count; r++) {
        for (int64_t i = 0; i < length; i++) {
            bool real = i < rows[r].count;
            e->ids[r * length + i] = real ? rows[r].ids[i] : e->pad;
            e->mask[r * length + i] = real;
        }
    }
    const smg_tensor inputs[] = {
        {.name = "input_ids", .type = "i32", .rank = 2, .dims = {count, length}, .data = e->ids},
        {.name = "attention_mask", .type = "i32", .rank = 2, .dims = {count, length}, .data = e->mask},
        {.name = "token_type_ids", .type = "i32", .rank = 2, .dims = {count, length}, .data = e->types},
    };
    smg_tensor out = {.name = "embedding", .data = e->rows, .bytes = (size_t)e->width * BATCH * sizeof(float)};
    SMG_TRY(smg_model_run(e->model, inputs, e->has_types ? 3 : 2, &out, 1));
    for (int r = 0; r < count; r++) {
        memcpy(out_rows + (size_t)rows[r].text * (size_t)e->width, e->rows + (size_t)r * (size_t)e->width,
               (size_t)e->width * sizeof(float));
    }
    return SMG_OK;
}

static smg_status run_window(smg_embedder *e, smg_arena *arena, const char *const *texts, const size_t *lengths,
                             int count, float *out_rows) {
    encoded *rows = SMG_ARENA_ARRAY(arena, encoded, (size_t)count + 1);
    if (rows == NULL) return SMG_MEMORY;
    SMG_TRY(encode(e, arena, texts, lengths, count, rows));
    qsort(rows, (size_t)count, sizeof(*rows), by_length);
    for (int at = 0; at < count;) {
        int batch = 1;
        while (at + batch < count && batch < e->most_rows && rows[at + batch].count * (batch + 1) <= TOKENS) {
            batch++;
        }
        SMG_TRY(run_batch(e, rows + at, batch, out_rows));
        at += batch;
    }
    return SMG_OK;
}

smg_status smg_embedder_run(smg_embedder *e, const char *const *texts, const size_t *lengths, int count,
                            float *out_rows) {
    smg_arena *arena = NULL;
    SMG_TRY(smg_arena_create(e->ctx, &arena));
    smg_status status = run_window(e, arena, texts, lengths, count, out_rows);
    smg_arena_destroy(arena);
    if (status == SMG_OK) e->done += count;
    return status;
}
