/* What `smg embed` does, in C: embed_texts all-MiniLM-L6-v2 "a text" "another one" ..
 *
 * Prints each text's ids, and how near it is to the first text: 1 is the same. Links libsmg, which compiles. */
#include <smg/embed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static smg_status print_ids(smg_tokenizer *tokenizer, const char *text) {
    int32_t ids[64];
    int count = 0;
    smg_status status = smg_tokenizer_tokens(tokenizer, text, strlen(text), ids, 64, &count);
    for (int i = 0; i < count; i++) printf("%s%ld", i > 0 ? " " : "", (long)ids[i]);
    return status;
}

static smg_status compare(smg_embedder *embedder, smg_tokenizer *tokenizer, const char *const *texts, int count) {
    int width = smg_embedder_width(embedder);
    float *rows = malloc((size_t)count * (size_t)width * sizeof(*rows));
    if (rows == NULL) return SMG_MEMORY;
    smg_status status = smg_embedder_embed(embedder, texts, NULL, count, rows);
    for (int i = 0; i < count && status == SMG_OK; i++) {
        double near = 0; /* rows have length 1 */
        for (int k = 0; k < width; k++) near += (double)rows[k] * (double)rows[i * width + k];
        status = print_ids(tokenizer, texts[i]);
        printf(": %.3f\n", near);
    }
    free(rows);
    return status;
}

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_embedder *embedder = NULL;
    smg_tokenizer *tokenizer = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: embed_texts FOLDER TEXT..\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = smg_tokenizer_load(ctx, argv[1], &tokenizer);
    if (status == SMG_OK) status = smg_embedder_open(ctx, argv[1], NULL, &embedder);
    if (status == SMG_OK) status = compare(embedder, tokenizer, (const char *const *)&argv[2], argc - 2);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    smg_embedder_close(embedder);
    smg_tokenizer_unload(tokenizer);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
