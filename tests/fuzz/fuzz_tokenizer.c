/* Tokenizer files and text. The first byte chooses: '{' - the bytes are a tokenizer.json that then
 * encodes its own text; 'V' - a vocab.txt, likewise; anything else - text for a fixed vocabulary. */
#include "fuzz.h"

static const char fixed_vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nab\n##a\n##b\n##ab\n##abb\n"
                                  "the\n##s\n,\n.\n!\n-\n\xe4\xb8\xad\n\xce\xb1\n##\xce\xb2\n\xc3\xa9\n";

static void encode(smg_context *ctx, smg_tokenizer *tokenizer, const char *text, size_t length) {
    enum { ROOM = 24 };
    int32_t all[ROOM + 1];
    int32_t some[ROOM + 1];
    int all_count = 0;
    int some_count = 0;
    all[ROOM] = -5;
    smg_status status = smg_tokenizer_encode(tokenizer, text, length, all, ROOM, &all_count);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK(all[ROOM] == -5 && all_count >= 0 && all_count <= ROOM);
    FUZZ_CHECK(status == SMG_OK || status == SMG_FORMAT);
    for (int i = 0; i < all_count; i++) {
        FUZZ_CHECK(all[i] >= 0 && all[i] < smg_tokenizer_vocab_size(tokenizer));
    }
    if (status != SMG_OK) return;
    /* Twice the same, and less room gives a prefix but for the last id. */
    FUZZ_CHECK(smg_tokenizer_encode(tokenizer, text, length, some, ROOM / 2, &some_count) == SMG_OK);
    FUZZ_CHECK(some_count <= ROOM / 2 && some_count <= all_count);
    for (int i = 0; i < some_count - 1; i++) FUZZ_CHECK(some[i] == all[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    smg_context *ctx = fuzz_context();
    smg_tokenizer *tokenizer = NULL;
    const char *text = (const char *)data;
    smg_status status;
    if (size > 0 && text[0] == '{') {
        status = smg_tokenizer_open_bytes(ctx, NULL, 0, text, size, &tokenizer);
    } else if (size > 0 && text[0] == 'V') {
        status = smg_tokenizer_open_bytes(ctx, text + 1, size - 1, NULL, 0, &tokenizer);
    } else {
        status = smg_tokenizer_open_bytes(ctx, fixed_vocab, sizeof(fixed_vocab) - 1, NULL, 0, &tokenizer);
        FUZZ_CHECK(status == SMG_OK);
    }
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (tokenizer != NULL));
    if (tokenizer != NULL) encode(ctx, tokenizer, size > 0 ? text : "", size);
    smg_tokenizer_close(tokenizer);
    smg_context_destroy(ctx);
    return 0;
}
