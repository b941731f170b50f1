/* Model directories with one thing wrong: each is a status and one sentence with names and numbers, and
 * so is every allocation that fails. The directories are copies of tests/models with members of
 * config.json replaced or a tensor renamed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "support/output.h"

typedef struct fault {
    const char *folder;    /* below tests/models */
    const char *config;    /* members that replace those of config.json; "" */
    const char *from, *to; /* a tensor's name in the weights, of equal length; NULL */
    smg_status status;
    const char *part; /* of the sentence */
} fault;

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    const char *folder; /* of the copy */
} fixture;

static int setup(void **state) {
    static fixture f;
    static char folder[512];
    f = (fixture){.ctx = NULL};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    f.folder = test_output(folder, sizeof(folder), "model_faults");
    assert_int_equal(smg_path_make_dirs(f.ctx, f.folder), SMG_OK);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static char *read_all(fixture *f, const char *path, size_t *out_size) {
    char *text = NULL;
    if (smg_file_read(f->ctx, path, &text, out_size) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    return text;
}

static void write_all(const char *path, const char *text, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The last of two equal keys counts. */
static void copy_config(fixture *f, const fault *row) {
    size_t size = 0;
    char *text = read_all(f, smg_arena_format(f->arena, "tests/models/%s/config.json", row->folder), &size);
    int end = (int)size;
    while (end > 0 && text[end] != '}') end--;
    const char *all = smg_arena_format(f->arena, "%.*s%s%s}", end, text, row->config[0] ? "," : "", row->config);
    write_all(smg_path_join(f->arena, f->folder, "config.json"), all, strlen(all));
    smg_free(f->ctx, text, size + 1);
}

static void copy_weights(fixture *f, const fault *row) {
    size_t size = 0;
    char *data = read_all(f, smg_arena_format(f->arena, "tests/models/%s/model.safetensors", row->folder), &size);
    bool done = row->from == NULL;
    size_t length = done ? 0 : strlen(row->from);
    for (size_t i = 0; !done && i + length <= size; i++) {
        if (memcmp(data + i, row->from, length) != 0) continue;
        assert_int_equal(strlen(row->to), length);
        memcpy(data + i, row->to, length);
        done = true;
    }
    assert_true(done);
    write_all(smg_path_join(f->arena, f->folder, "model.safetensors"), data, size);
    smg_free(f->ctx, data, size + 1);
}

static void expect(fixture *f, const fault *row) {
    smg_source source;
    copy_config(f, row);
    copy_weights(f, row);
    smg_status status = smg_source_open(f->ctx, f->folder, false, &source);
    if (status != row->status || (status != SMG_OK && !strstr(smg_context_error(f->ctx), row->part)))
        fail_msg("%s {%s}: status %d \"%s\", expected %d \"...%s...\"", row->folder, row->config, (int)status,
                 smg_context_error(f->ctx), (int)row->status, row->part);
    smg_source_close(&source);
    smg_context_clear_error(f->ctx);
}

#define ALBERT "hf-albert-small"
#define BERT "hf-bert-tiny"
#define DISTIL "hf-distilbert-small"
#define GPT2 "hf-gpt2-small"
#define LLAMA "hf-llama-linear-small"
#define ROBERTA "hf-roberta-small"
#define MISTRAL "hf-mistral-small"
#define T5 "hf-t5-small"
#define VIT "hf-vit-small"

static const fault faults[] = {
    {BERT, "\"model_type\": \"mamba\"", NULL, NULL, SMG_UNSUPPORTED,
     "model_type 'mamba' is not supported; smg knows: albert, bert, camembert, distilbert, gpt2, llama, mistral, "
     "qwen2, qwen3, roberta, t5, vit, xlm-roberta"},
    {ROBERTA, "\"model_type\": \"xlm-roberta\"", NULL, NULL, SMG_OK, ""},
    {ROBERTA, "\"model_type\": \"camembert\"", NULL, NULL, SMG_OK, ""},
    {MISTRAL, "\"sliding_window\": -1", NULL, NULL, SMG_FORMAT, "sliding_window is -1, must not be negative"},
    {BERT, "\"model_type\": 7", NULL, NULL, SMG_FORMAT, "model_type"},
    {BERT, "\"is_decoder\": true", NULL, NULL, SMG_UNSUPPORTED, "is_decoder true is not supported"},
    {BERT, "\"layer_norm_eps\": 2", NULL, NULL, SMG_FORMAT, "layer_norm_eps is 2, must be in [0, 1)"},
    {BERT, "\"type_vocab_size\": 1", NULL, NULL, SMG_FORMAT,
     "embeddings.token_type_embeddings.weight is [2, 64], the configuration makes it [1, 64]"},
    {ALBERT, "\"num_hidden_groups\": 5", NULL, NULL, SMG_FORMAT, "num_hidden_groups 5 is above num_hidden_layers 3"},
    {ALBERT, "\"embedding_size\": 17", NULL, NULL, SMG_FORMAT,
     "albert.embeddings.position_embeddings.weight is [40, 16], the configuration makes it [40, "
     "17]"},
    {ALBERT, "", "albert_layers.1.ffn.bias", "albert_layers.1.ffn.bixs", SMG_NOT_FOUND,
     "tensor albert.encoder.albert_layer_groups.0.albert_layers.1.ffn.bias [40] is not in the "
     "model"},
    {ALBERT, "\"hidden_act\": \"gelu_10\"", NULL, NULL, SMG_UNSUPPORTED,
     "hidden_act 'gelu_10' is not supported (gelu "},
    {DISTIL, "\"n_heads\": 5", NULL, NULL, SMG_FORMAT, "dim 24 is not a multiple of n_heads 5"},
    {DISTIL, "\"activation\": \"mish\"", NULL, NULL, SMG_UNSUPPORTED, "activation 'mish'"},
    {DISTIL, "\"n_layers\": 3", NULL, NULL, SMG_NOT_FOUND,
     "16 tensors are wrong: tensor distilbert.transformer.layer.2."},
    {DISTIL, "\"n_layers\": \"two\"", NULL, NULL, SMG_FORMAT, "n_layers"},
    {ROBERTA, "\"pad_token_id\": 90", NULL, NULL, SMG_FORMAT, "pad_token_id is 90, must be in [0, 90)"},
    {ROBERTA, "\"pad_token_id\": 41", NULL, NULL, SMG_FORMAT,
     "max_position_embeddings 42 leaves no position above pad_token_id 41"},
    {ROBERTA, "\"position_embedding_type\": \"relative_key\"", NULL, NULL, SMG_UNSUPPORTED,
     "position_embedding_type 'relative_key' is not supported"},
    {GPT2, "\"n_inner\": 41", NULL, NULL, SMG_FORMAT,
     "h.0.mlp.c_fc.weight is [24, 40], the configuration makes it [24, 41]"},
    {GPT2, "\"n_embd\": 0", NULL, NULL, SMG_FORMAT, "n_embd is 0, must be in [1, 1048576]"},
    {GPT2, "\"n_layer\": 1e300", NULL, NULL, SMG_FORMAT, "n_layer"},
    {GPT2, "\"n_head\": 7", NULL, NULL, SMG_FORMAT, "n_embd 24 is not a multiple of n_head 7"},
    {GPT2, "\"add_cross_attention\": true", NULL, NULL, SMG_UNSUPPORTED, "add_cross_attention true"},
    {GPT2, "\"architectures\": [\"GPT2LMHeadModel\"], \"tie_word_embeddings\": false", NULL, NULL, SMG_NOT_FOUND,
     "tensor lm_head.weight [90, 24] is not in the model"},
    {GPT2, "", "h.1.ln_2.weight", "h.1.ln_2.wxight", SMG_NOT_FOUND, "tensor h.1.ln_2.weight [24]"},
    {LLAMA, "\"num_key_value_heads\": 2", NULL, NULL, SMG_FORMAT,
     "num_attention_heads 3 is not a multiple of num_key_value_heads 2"},
    {LLAMA, "\"num_key_value_heads\": 1", NULL, NULL, SMG_FORMAT,
     "model.layers.0.self_attn.k_proj.weight is [24, 24], the configuration makes it [8, 24]"},
    {LLAMA, "\"head_dim\": 7", NULL, NULL, SMG_FORMAT, "head_dim is 7, rotary positions take an even"},
    {LLAMA, "\"head_dim\": -8", NULL, NULL, SMG_FORMAT, "head_dim is -8, must be in [1, 65536]"},
    {LLAMA, "\"rope_theta\": 0", NULL, NULL, SMG_FORMAT, "rope_theta of the rotary positions is 0"},
    {LLAMA, "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}", NULL, NULL, SMG_UNSUPPORTED,
     "rope_type yarn is not supported (default linear llama3 are)"},
    {LLAMA, "\"rope_scaling\": {\"type\": \"linear\"}", NULL, NULL, SMG_FORMAT,
     "factor of the rotary positions is 0, must be in (0, 1e30]"},
    {LLAMA,
     "\"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 4, "
     "\"high_freq_factor\": 1}",
     NULL, NULL, SMG_FORMAT, "high_freq_factor of the rotary positions is 1, must be above"},
    {LLAMA, "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}", NULL, NULL, SMG_UNSUPPORTED,
     "partial_rotary_factor 0.5 is not supported"},
    {LLAMA, "\"rope_scaling\": \"linear\"", NULL, NULL, SMG_FORMAT, "\"rope_scaling\" is no object"},
    {LLAMA, "\"attention_bias\": true", NULL, NULL, SMG_NOT_FOUND,
     "tensor model.layers.0.self_attn.q_proj.bias [24] is not in the model"},
    {LLAMA, "\"attention_bias\": 1", NULL, NULL, SMG_FORMAT, "attention_bias"},
    {LLAMA, "", "lm_head.weight", "lm_haed.weight", SMG_NOT_FOUND, "tensor lm_head.weight [90, 24]"},
    {T5, "\"relative_attention_num_buckets\": 6", NULL, NULL, SMG_FORMAT,
     "relative_attention_num_buckets is 6, must be a multiple of 4"},
    {T5, "\"relative_attention_max_distance\": 4", NULL, NULL, SMG_FORMAT,
     "relative_attention_max_distance is 4, must be above half of relative_attention_num_buckets "
     "8"},
    {T5, "\"feed_forward_proj\": \"gated-mish\"", NULL, NULL, SMG_UNSUPPORTED,
     "feed_forward_proj gated-mish is not supported (gelu "},
    {T5, "\"feed_forward_proj\": \"gated-gelu\"", NULL, NULL, SMG_NOT_FOUND,
     "tensor encoder.block.0.layer.1.DenseReluDense.wi_0.weight [40, 24] is not in the model"},
    {T5, "\"tie_word_embeddings\": false", NULL, NULL, SMG_NOT_FOUND, "tensor lm_head.weight [90, 24]"},
    {T5, "\"num_decoder_layers\": 2", NULL, NULL, SMG_NOT_FOUND, "tensor decoder.block.1.layer.0."},
    {T5, "", "shared.weight", "shxred.weight", SMG_NOT_FOUND, "tensor shared.weight [90, 24]"},
    {VIT, "\"patch_size\": 3", NULL, NULL, SMG_FORMAT, "image_size 20 is not a multiple of patch_size 3"},
    {VIT, "\"patch_size\": 5, \"image_size\": 25", NULL, NULL, SMG_FORMAT,
     "vit.embeddings.patch_embeddings.projection.weight is [24, 1, 4, 4], the configuration makes "
     "it "
     "[24, 1, 5, 5]"},
    {VIT, "\"image_size\": 24", NULL, NULL, SMG_FORMAT,
     "vit.embeddings.position_embeddings is [1, 26, 24], the configuration makes it [1, 37, 24]"},
    {VIT, "\"image_size\": [20, 20]", NULL, NULL, SMG_FORMAT, "image_size"},
    {VIT, "\"qkv_bias\": true", NULL, NULL, SMG_NOT_FOUND, "attention.attention.query.bias [24]"},
    /* what is right stays right */
    {GPT2, "\"tie_word_embeddings\": false", NULL, NULL, SMG_OK, ""},
    {LLAMA, "\"architectures\": [\"LlamaModel\"]", NULL, NULL, SMG_OK, ""},
    {LLAMA, "\"max_position_embeddings\": 131072, \"rope_scaling\": null", NULL, NULL, SMG_OK, ""},
    {T5, "\"architectures\": [\"T5EncoderModel\"]", NULL, NULL, SMG_OK, ""},
    {T5, "\"architectures\": []", NULL, NULL, SMG_OK, ""},
};

static void each_fault_is_one_sentence(void **state) {
    for (size_t i = 0; i < SMG_COUNT_OF(faults); i++) expect(*state, &faults[i]);
}

/* ---- what the architecture gives ------------------------------------------------------------ */

static void expect_output(fixture *f, const fault *row, const char *name, int inputs) {
    smg_source source;
    copy_config(f, row);
    copy_weights(f, row);
    if (smg_source_open(f->ctx, f->folder, false, &source) != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(source.graph->outputs.count, 1);
    assert_string_equal(source.graph->outputs.items[0].name, name);
    assert_int_equal(smg_graph_input_nodes(source.graph, NULL, 0), inputs);
    smg_source_close(&source);
}

static void the_architecture_decides_the_output(void **state) {
    const fault rows[] = {
        {GPT2, "\"architectures\": [\"GPT2LMHeadModel\"]", NULL, NULL, SMG_OK, "logits"},
        {GPT2, "\"architectures\": [\"GPT2Model\"]", NULL, NULL, SMG_OK, "last_hidden_state"},
        {LLAMA, "\"architectures\": null", NULL, NULL, SMG_OK, "logits"},
        {LLAMA, "\"architectures\": [\"LlamaModel\"]", NULL, NULL, SMG_OK, "last_hidden_state"},
        {T5, "\"architectures\": [\"T5ForConditionalGeneration\"]", NULL, NULL, SMG_OK, "logits"},
        {T5, "\"architectures\": [\"T5Model\"]", NULL, NULL, SMG_OK, "last_hidden_state"},
        {T5, "\"architectures\": [\"T5EncoderModel\"]", NULL, NULL, SMG_OK, "last_hidden_state"},
    };
    const int inputs[] = {1, 1, 1, 1, 3, 3, 2};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) expect_output(*state, &rows[i], rows[i].part, inputs[i]);
}

static void a_row_is_bounded_by_its_positions(void **state) {
    static const struct {
        const char *folder, *config;
        int64_t most;
    } rows[] = {
        {"hf-roberta-small", "", 40}, /* 42 positions, the first for id 2 */
        {"hf-gpt2-small", "", 40},
        {"hf-llama-linear-small", "\"max_position_embeddings\": 131072", 32768},
        {"hf-distilbert-small", "", 40},
        {MISTRAL, "", 32},
        {MISTRAL, "\"sliding_window\": null", 64},
        {"hf-qwen2-small", "", 64},
        {"hf-qwen2-small", "\"use_sliding_window\": true", 4},
    };
    fixture *f = *state;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        const fault row = {rows[i].folder, rows[i].config, NULL, NULL, SMG_OK, ""};
        smg_source source;
        copy_config(f, &row);
        copy_weights(f, &row);
        assert_int_equal(smg_source_open(f->ctx, f->folder, false, &source), SMG_OK);
        const smg_sizes *sizes = source.graph->sizes;
        assert_int_equal(smg_size_symbol_max(sizes, smg_size_symbol_find(sizes, "sequence")), rows[i].most);
        smg_source_close(&source);
    }
}

/* ---- embeddings ----------------------------------------------------------------------------- */

static void what_has_no_embedding_says_so(void **state) {
    fixture *f = *state;
    smg_source source;
    assert_int_equal(smg_source_open(f->ctx, "tests/models/hf-vit-small", true, &source), SMG_UNSUPPORTED);
    assert_non_null(strstr(smg_context_error(f->ctx), "no pooling"));
    smg_context_clear_error(f->ctx);
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct budget {
    int left; /* allocations that succeed */
    bool refused;
    size_t live;
} budget;

static void *limited(void *user, void *pointer, size_t old_size, size_t new_size) {
    budget *b = user;
    if (new_size > 0 && b->left-- <= 0) {
        b->refused = true;
        return NULL;
    }
    void *moved = new_size > 0 ? realloc(pointer, new_size) : NULL;
    if (new_size == 0) free(pointer);
    if (new_size == 0 || moved != NULL) b->live += new_size - old_size;
    return moved;
}

/* true when everything succeeded */
static bool open_with(const char *folder, int allocations) {
    budget b = {.left = allocations};
    const smg_context_desc desc = {.reallocate = limited, .user = &b};
    smg_context *ctx = NULL;
    smg_source source;
    if (smg_context_create(&desc, &ctx) != SMG_OK) return false;
    smg_status status = smg_source_open(ctx, folder, false, &source);
    if (b.refused != (status == SMG_MEMORY) || (!b.refused && status != SMG_OK))
        fail_msg("%d allocations: %s", allocations, smg_context_error(ctx));
    smg_source_close(&source);
    smg_context_destroy(ctx);
    assert_int_equal(b.live, 0);
    return status == SMG_OK;
}

static void every_allocation_may_fail(void **state) {
    static const char *const folders[] = {"tests/models/hf-llama-small", "tests/models/hf-t5-small",
                                          "tests/models/hf-vit-small", "tests/models/hf-roberta-small"};
    (void)state;
    for (size_t i = 0; i < SMG_COUNT_OF(folders); i++) {
        int allocations = 0;
        while (!open_with(folders[i], allocations)) assert_true(++allocations < 100000);
        assert_true(allocations > 10);
        print_message("%s: %d allocations\n", folders[i], allocations);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_fault_is_one_sentence, setup, teardown),
        cmocka_unit_test_setup_teardown(the_architecture_decides_the_output, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_is_bounded_by_its_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_embedding_says_so, setup, teardown),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
