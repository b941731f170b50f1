/* compile_embed.c: texts to embeddings, in batches of like length.
 *
 * A window of texts is tokenised, sorted by length and cut into batches, so that little is padded; rows
 * go back to the places of their texts. Everything is made for the largest batch once. A directory's
 * own graph pools on the device; where an ONNX file gives one row a token, they are pooled here. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"

enum { BATCH = 32, TOKENS = 4096 }; /* rows, and rows x length, of one batch at most */

struct smg_embedder {
    smg_model *model;
    smg_source own; /* and the model is its own, too; zero where both are borrowed */
    smg_context *ctx;
    smg_arena *arena;
    smg_tokenizer *tokenizer;
    int max_length, most_rows, width;
    int64_t done; /* texts of earlier windows */
    int32_t pad;
    int32_t *ids, *mask, *types; /* of one batch */
    bool has_mask, has_types;
    const char *output;         /* the one that embeddings come from */
    smg_import_pooling pooling; /* of its rows, one a token; NONE: it has one a text */
    bool normalize;             /* after pooling */
    int64_t exact_length;       /* of every row, where the model has only this one; else 0 */
};

/* The names that directories and exporters give, the best first. */
static const struct {
    const char *name;
    int rank;
} outputs[] = {{"embedding", 2}, {"sentence_embedding", 2}, {"last_hidden_state", 3}, {"token_embeddings", 3}};

static smg_status choose_output(smg_embedder *e, const smg_import_dir *dir) {
    bool pools = dir->pooling == SMG_IMPORT_POOLING_MEAN || dir->pooling == SMG_IMPORT_POOLING_CLS;
    for (size_t o = 0; o < SMG_COUNT_OF(outputs); o++) {
        for (int i = 0; i < smg_model_output_count(e->model); i++) {
            smg_tensor out;
            smg_model_output(e->model, i, &out);
            int64_t width = out.rank > 0 ? out.dims[out.rank - 1] : 0;
            if (strcmp(out.name, outputs[o].name) != 0 || out.rank != outputs[o].rank || strcmp(out.type, "f32") != 0)
                continue;
            if (width <= 0 || width >= INT32_MAX || (out.rank == 3 && !pools)) continue;
            e->output = outputs[o].name;
            e->width = (int)width;
            e->pooling = out.rank == 3 ? dir->pooling : SMG_IMPORT_POOLING_NONE;
            e->normalize = dir->normalize;
            return SMG_OK;
        }
    }
    return smg_fail(e->ctx, SMG_UNSUPPORTED, "the model gives no output 'embedding' of one row a text");
}

/* Which inputs there are; the bounds of the rows and columns of the ids. */
static smg_status look_at_inputs(smg_embedder *e, int64_t low[2], int64_t high[2]) {
    const smg_bundle *bundle = smg_model_compilation(e->model)->bundle;
    bool has_ids = false;
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        if (b->kind != SMG_BUFFER_INPUT) continue;
        e->has_mask |= strcmp(b->name, "attention_mask") == 0;
        e->has_types |= strcmp(b->name, "token_type_ids") == 0;
        if (strcmp(b->name, "input_ids") != 0 || b->rank != 2) continue;
        has_ids = true;
        for (int d = 0; d < 2; d++) smg_size_bounds(bundle->sizes, b->dims[d], &low[d], &high[d]);
    }
    return has_ids ? SMG_OK : smg_fail(e->ctx, SMG_UNSUPPORTED, "the model has no input 'input_ids' of two axes");
}

/* The longest row: what the tokenizer cuts to, the directory's max_seq_length, the position table or the caller's
 * maximum; and the most rows of a batch. */
static smg_status limit_batches(smg_embedder *e, const smg_source *source) {
    int64_t low[2], high[2];
    SMG_TRY(look_at_inputs(e, low, high));
    if (low[0] > 1)
        return smg_fail(e->ctx, SMG_UNSUPPORTED, "the model takes %lld texts at once, no fewer", (long long)low[0]);
    e->max_length = smg_tokenizer_max_length(e->tokenizer);
    int64_t given = source->dir->max_seq_length;
    if (given > 1 && given < e->max_length) e->max_length = (int)given;
    if (high[1] < e->max_length) e->max_length = (int)high[1];
    if (e->max_length > TOKENS) e->max_length = TOKENS;
    if (low[1] == high[1]) e->exact_length = low[1];
    if (e->exact_length > TOKENS)
        return smg_fail(e->ctx, SMG_UNSUPPORTED, "the model takes %lld tokens a text, smg embeds at most %d",
                        (long long)e->exact_length, TOKENS);
    e->most_rows = high[0] < BATCH ? (int)high[0] : BATCH;
    if (e->max_length >= 2) return SMG_OK;
    return smg_fail(e->ctx, SMG_INVALID, "sequence is at most %d, a text takes 2 tokens or more", e->max_length);
}

static smg_status prepare(smg_embedder *e, const smg_source *source) {
    if (source->dir == NULL) {
        return smg_fail(e->ctx, SMG_INVALID, "embedding needs a model directory with tokenizer files");
    }
    SMG_TRY(choose_output(e, source->dir));
    SMG_TRY(smg_tokenizer_open(e->ctx, source->dir, &e->tokenizer));
    SMG_TRY(limit_batches(e, source));
    e->pad = smg_tokenizer_pad_id(e->tokenizer);
    e->ids = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    e->mask = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    e->types = SMG_ARENA_ARRAY(e->arena, int32_t, TOKENS);
    return e->ids && e->mask && e->types ? SMG_OK : SMG_MEMORY;
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
    return e != NULL ? e->width : 0;
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

/* One row of `tokens` rows, of which `real` ones are no padding. */
static void pool(const smg_embedder *e, const float *tokens, int real, float *out) {
    double square = 0;
    for (int d = 0; d < e->width; d++) {
        double sum = tokens[d];
        int last = e->pooling == SMG_IMPORT_POOLING_MEAN ? real : 1;
        for (int i = 1; i < last; i++) sum += (double)tokens[(size_t)i * (size_t)e->width + (size_t)d];
        out[d] = (float)(sum / last);
        square += (double)out[d] * (double)out[d];
    }
    if (!e->normalize) return;
    double length = sqrt(square) > 1e-12 ? sqrt(square) : 1e-12;
    for (int d = 0; d < e->width; d++) out[d] = (float)((double)out[d] / length);
}

static int64_t row_length(const smg_embedder *e, const encoded *row) {
    return e->exact_length > 0 ? e->exact_length : row->count;
}

static smg_status run_batch(smg_embedder *e, const encoded *rows, int count, float *out_rows) {
    int64_t length = row_length(e, &rows[count - 1]); /* sorted: the longest */
    for (int r = 0; r < count; r++) {
        for (int64_t i = 0; i < length; i++) {
            bool real = i < rows[r].count;
            e->ids[r * length + i] = real ? rows[r].ids[i] : e->pad;
            e->mask[r * length + i] = real;
        }
    }
    smg_tensor inputs[3] = {{.name = "input_ids", .type = "i32", .rank = 2, .dims = {count, length}, .data = e->ids}};
    int given = 1;
    inputs[1] = inputs[2] = inputs[0];
    if (e->has_mask) inputs[given].name = "attention_mask", inputs[given++].data = e->mask;
    if (e->has_types) inputs[given].name = "token_type_ids", inputs[given++].data = e->types;
    smg_tensor out = {.name = e->output};
    SMG_TRY(smg_model_run(e->model, inputs, given, &out, 1));
    size_t width = (size_t)e->width;
    bool pooled = e->pooling == SMG_IMPORT_POOLING_NONE;
    if (out.dims[0] != count || (!pooled && out.dims[1] != length))
        return smg_fail(e->ctx, SMG_UNSUPPORTED, "output '%s' of %d texts has %lld rows", e->output, count,
                        (long long)(pooled ? out.dims[0] : out.dims[0] * out.dims[1]));
    for (int r = 0; r < count; r++) {
        const float *from = (const float *)out.data + (size_t)r * width * (pooled ? 1 : (size_t)length);
        float *to = out_rows + (size_t)rows[r].text * width;
        if (pooled)
            memcpy(to, from, width * sizeof(float));
        else
            pool(e, from, rows[r].count, to);
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
        while (at + batch < count && batch < e->most_rows && row_length(e, &rows[at + batch]) * (batch + 1) <= TOKENS) {
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

/* ---- include/smg/embed.h ------------------------------------------------------------------------------- */

static smg_status open_embedder(smg_context *ctx, const char *dir, const smg_model_desc *desc,
                                smg_embedder **out_embedder) {
    static const smg_model_desc nothing = {0};
    smg_source source = {0};
    smg_model *model = NULL;
    if (dir == NULL) return smg_fail(ctx, SMG_INVALID, "smg_embedder_open: the path is NULL");
    SMG_TRY(smg_source_open(ctx, dir, true, &source));
    smg_status status = smg_model_open_source(ctx, &source, NULL, desc != NULL ? desc : &nothing, &model);
    if (status == SMG_OK) status = smg_embedder_create(model, &source, out_embedder);
    if (status != SMG_OK) {
        smg_model_close(model);
        smg_source_close(&source);
        return status;
    }
    (*out_embedder)->own = source;
    return SMG_OK;
}

smg_status smg_embedder_open(smg_context *ctx, const char *dir, const smg_model_desc *desc,
                             smg_embedder **out_embedder) {
    if (out_embedder == NULL) return SMG_INVALID;
    *out_embedder = NULL;
    if (ctx == NULL) return SMG_INVALID;
    smg_context_clear_error(ctx);
    return smg_context_told(ctx, open_embedder(ctx, dir, desc, out_embedder));
}

void smg_embedder_close(smg_embedder *e) {
    if (e == NULL) return;
    smg_source source = e->own;
    smg_model *model = e->model;
    smg_embedder_destroy(e);
    smg_model_close(model);
    smg_source_close(&source);
}

static smg_status embed(smg_embedder *e, const char *const *texts, const size_t *lengths, int count, float *rows) {
    smg_arena *arena = NULL;
    if (count < 0 || (count > 0 && (texts == NULL || rows == NULL)))
        return smg_fail(e->ctx, SMG_INVALID, "smg_embedder_embed: %d texts%s", count, count < 0 ? "" : ", at NULL");
    for (int i = 0; i < count; i++)
        if (texts[i] == NULL) return smg_fail(e->ctx, SMG_INVALID, "smg_embedder_embed: text %d is NULL", i + 1);
    if (lengths != NULL) return smg_embedder_run(e, texts, lengths, count, rows);
    SMG_TRY(smg_arena_create(e->ctx, &arena));
    size_t *own = SMG_ARENA_ARRAY(arena, size_t, (size_t)count + 1);
    for (int i = 0; own != NULL && i < count; i++) own[i] = strlen(texts[i]);
    smg_status status = own != NULL ? smg_embedder_run(e, texts, own, count, rows) : SMG_MEMORY;
    smg_arena_destroy(arena);
    return status;
}

smg_status smg_embedder_embed(smg_embedder *e, const char *const *texts, const size_t *lengths, int count,
                              float *out_rows) {
    if (e == NULL) return SMG_INVALID;
    smg_context_clear_error(e->ctx);
    return smg_context_told(e->ctx, embed(e, texts, lengths, count, out_rows));
}
