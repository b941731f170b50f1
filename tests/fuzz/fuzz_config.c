/* Bytes as config.json: walk all of it, and ask every typed getter for the keys models ask for. */
#include "fuzz.h"

static void walk(smg_json_at at, int depth, size_t *seen) {
    (*seen)++;
    int64_t number = 0;
    double real = 0;
    bool flag = false;
    const char *text = NULL;
    size_t length = 0;
    int kinds = smg_json_as_double(at, &real) + smg_json_as_bool(at, &flag) + smg_json_as_text(at, &text, &length) +
                smg_json_is_object(at) + smg_json_is_array(at) + !smg_json_exists(at);
    FUZZ_CHECK(kinds == 1);
    if (smg_json_as_int(at, &number)) FUZZ_CHECK(smg_json_as_double(at, &real));
    if (text != NULL) FUZZ_CHECK(text[length] == '\0');
    if (depth == 0) return;
    size_t count = 0;
    for (smg_json_iter i = smg_json_begin(at); smg_json_next(&i); count++) {
        FUZZ_CHECK((i.key != NULL) == smg_json_is_object(at));
        walk(i.value, depth - 1, seen);
    }
    FUZZ_CHECK(count == smg_json_count(at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const keys[] = {"model_type", "hidden_size",       "layer_norm_eps", "use_cache",
                                       "vocab_size", "num_hidden_layers", "hidden_act",     ""};
    smg_context *ctx = fuzz_context();
    smg_json *json = NULL;
    smg_status status = smg_json_parse(ctx, "fuzz", (const char *)data, size, &json);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (json != NULL));
    smg_json_at root = smg_json_root(json);
    for (size_t i = 0; json != NULL && i < SMG_COUNT_OF(keys); i++) {
        int64_t number = 0;
        double real = 0;
        bool flag = false;
        const char *text = NULL;
        fuzz_check_status(ctx, smg_json_need_int(root, keys[i], 1, 1 << 20, &number));
        smg_context_clear_error(ctx);
        fuzz_check_status(ctx, smg_json_get_int(root, keys[i], 7, 1, 1 << 20, &number));
        FUZZ_CHECK(smg_context_error(ctx)[0] != '\0' || (number >= 1 && number <= 1 << 20));
        smg_context_clear_error(ctx);
        fuzz_check_status(ctx, smg_json_need_double(root, keys[i], &real));
        smg_context_clear_error(ctx);
        fuzz_check_status(ctx, smg_json_get_bool(root, keys[i], true, &flag));
        smg_context_clear_error(ctx);
        fuzz_check_status(ctx, smg_json_get_text(root, keys[i], "x", &text));
        smg_context_clear_error(ctx);
    }
    size_t seen = 0;
    if (json != NULL) walk(root, 50, &seen);
    smg_json_close(json);
    smg_context_destroy(ctx);
    return 0;
}
