/* smg/embed.h: texts to vectors by a sentence encoder's directory; and its tokenizer alone.
 *
 *     smg_embedder *embedder;
 *     smg_embedder_open(ctx, "all-MiniLM-L6-v2", NULL, &embedder);
 *     int width = smg_embedder_width(embedder);
 *     const char *texts[] = {"one text", "another one"};
 *     smg_embedder_embed(embedder, texts, NULL, 2, rows);            float rows[2 * width]
 *     smg_embedder_close(embedder);
 *
 * Ownership: both belong to the caller, and are closed before their context. Threads, errors: as smg/rt.h.
 */
#ifndef SMG_EMBED_H
#define SMG_EMBED_H

#include <stddef.h>
#include <stdint.h>

#include "smg/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- embeddings -------------------------------------------------------------------------------------- */

typedef struct smg_embedder smg_embedder;

/* A Hugging Face directory with tokenizer files and a model whose embeddings are one row a text, or rows of tokens with
 * a pooling that the directory names. A text with more tokens than the directory's maximum, or than max_dims has for
 * "sequence", is cut. desc may be NULL.
 * NOT_FOUND, FORMAT: as smg_model_open; UNSUPPORTED: no such embedding, another tokenizer than WordPiece. */
SMG_API smg_status smg_embedder_open(smg_context *ctx, const char *dir, const smg_model_desc *desc,
                                     smg_embedder **out_embedder);
SMG_API void smg_embedder_close(smg_embedder *embedder); /* NULL is fine */
/* Floats of an embedding. */
SMG_API int smg_embedder_width(const smg_embedder *embedder);
/* Of `count` texts in UTF-8; lengths in bytes, NULL: each ends at its NUL. out_rows: count * width floats, in the order
 * of the texts. They run in batches of like length; a few hundred at a time keep the device busy.
 * FORMAT: a text that is not UTF-8, with its number. */
SMG_API smg_status smg_embedder_embed(smg_embedder *embedder, const char *const *texts, const size_t *lengths,
                                      int count, float *out_rows);

/* ---- tokens ------------------------------------------------------------------------------------------ */

typedef struct smg_tokenizer smg_tokenizer;

/* WordPiece as BERT uses it, of the directory's tokenizer.json, else vocab.txt and tokenizer_config.json. NOT_FOUND:
 * there is none; UNSUPPORTED: another one. */
SMG_API smg_status smg_tokenizer_load(smg_context *ctx, const char *dir, smg_tokenizer **out_tokenizer);
SMG_API void smg_tokenizer_unload(smg_tokenizer *tokenizer); /* NULL is fine */
/* Ids of [CLS] text [SEP], at most `capacity` (2 or more) and the maximum below: the text is cut, [SEP] stays. `length`
 * in bytes. FORMAT, with the byte: not UTF-8. Takes no memory, and time by the length. */
SMG_API smg_status smg_tokenizer_tokens(smg_tokenizer *tokenizer, const char *text, size_t length, int32_t *out_ids,
                                        int capacity, int *out_count);
SMG_API int smg_tokenizer_max_length(const smg_tokenizer *tokenizer); /* of ids, specials included */
SMG_API int smg_tokenizer_vocab_size(const smg_tokenizer *tokenizer); /* largest id + 1 */
SMG_API int32_t smg_tokenizer_pad_id(const smg_tokenizer *tokenizer); /* 0 where there is no [PAD] */

#ifdef __cplusplus
}
#endif
#endif
