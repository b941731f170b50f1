/* A bundle as bytes: what is read is what was written; damage is noticed; bytes that only look right (their hash is
 * mended) are refused or read, never believed. The seeds of the fuzzer are of the version that is read today. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "bundle/bundle.h"
#include "support/output.h"

enum { HEADER_BYTES = 32, WEIGHT_SOURCE = 3 };

static const float own_data[] = {0.5f, -2.0f}, weight_data[] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint32_t words[] = {0x07230203u, 0x00010300u, 0, 8, 0};

enum { STACK = 6 /* its number */ };

typedef struct fixture {
    smg_context *ctx;
    smg_arena *arena;
    smg_bundle bundle;
} fixture;

static smg_size size_of(fixture *f, const char *text) {
    smg_size size = SMG_SIZE_NONE;
    assert_int_equal(smg_size_parse(f->bundle.sizes, &text, &size), SMG_OK);
    return size;
}

static smg_bbuffer *add_buffer(fixture *f, const char *name, smg_buffer_kind kind, const char *rows, const char *all) {
    smg_bbuffer *b = SMG_ARRAY_PUSH(f->arena, &f->bundle.buffers);
    assert_non_null(b);
    *b = (smg_bbuffer){.name = name, .kind = kind, .rank = 2, .first = -1, .last = -1, .source = -1};
    b->dims[0] = size_of(f, rows);
    b->dims[1] = size_of(f, "4");
    b->elements = size_of(f, all);
    return b;
}

static void add_step(fixture *f, smg_bstep *s, const char *name, int module, int read, int written) {
    *s = (smg_bstep){.name = name, .module = module, .binding_count = 2, .push_count = 1, .grid_count = 1};
    s->bindings = SMG_ARENA_ARRAY(f->arena, smg_bbinding, 2);
    s->bindings[0] = (smg_bbinding){read, false};
    s->bindings[1] = (smg_bbinding){written, true};
    s->push_symbols = SMG_ARENA_ARRAY(f->arena, int, 1);
    s->push_symbols[0] = 1;
    s->grid_extent = SMG_ARENA_ARRAY(f->arena, smg_size, 1);
    s->grid_tile = SMG_ARENA_ARRAY(f->arena, int64_t, 1);
    s->grid_extent[0] = size_of(f, "floor(n/2)+s");
    s->grid_tile[0] = 64;
    s->estimate = 1.5e-6;
    s->bytes = size_of(f, "1000");
    s->flops = size_of(f, "0");
}

static int setup(void **state) {
    static fixture f;
    f = (fixture){0};
    assert_int_equal(smg_context_create(NULL, &f.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f.ctx, &f.arena), SMG_OK);
    f.bundle.arena = f.arena;
    assert_int_equal(smg_sizes_create(f.arena, &f.bundle.sizes), SMG_OK);
    size_of(&f, "n+s");
    smg_size_symbol_set_max(f.bundle.sizes, 0, 512);
    add_buffer(&f, "x", SMG_BUFFER_INPUT, "n", "4*n");
    smg_bbuffer *weight = add_buffer(&f, "w", SMG_BUFFER_CONSTANT, "2", "8");
    weight->source = WEIGHT_SOURCE;
    weight->data = weight_data;
    add_buffer(&f, "folded", SMG_BUFFER_CONSTANT, "2", "2")->data = own_data;
    add_buffer(&f, "d", SMG_BUFFER_DERIVED, "2", "8");
    smg_bbuffer *kept = add_buffer(&f, "t", SMG_BUFFER_TEMPORARY, "n", "4*n");
    kept->first = 0;
    kept->last = 1;
    add_buffer(&f, "y", SMG_BUFFER_OUTPUT, "min(n,s)", "4*min(n,s)");
    smg_bbuffer *stack = add_buffer(&f, "w and d", SMG_BUFFER_STACK, "2", "72");
    static int members[] = {1, 3};
    stack->members = members;
    stack->member_count = 2;
    stack->stride = 64;
    for (int i = 0; i < 2; i++) {
        smg_bmodule *m = SMG_ARRAY_PUSH(f.arena, &f.bundle.modules);
        *m = (smg_bmodule){.name = "k",
                           .words = words,
                           .word_count = 5,
                           .local_size = 32 << i,
                           .subgroup = 1 + i,
                           .shared_bytes = 4096 * i};
        m->text[0] = 7;
        m->text[1] = (uint64_t)i << 40;
    }
    add_step(&f, SMG_ARRAY_PUSH(f.arena, &f.bundle.prepare), "p0", 0, 1, 3);
    for (int i = 0; i < 2; i++) {
        smg_bvariant *v = SMG_ARRAY_PUSH(f.arena, &f.bundle.variants);
        *v = (smg_bvariant){.measure = size_of(&f, "n*s"), .low = i == 0 ? 0 : 101, .high = i == 0 ? 100 : INT64_MAX};
        v->made = i == 0;
    }
    smg_bvariant *v = &f.bundle.variants.items[0];
    add_step(&f, SMG_ARRAY_PUSH(f.arena, &v->run), "k0", 0, 0, 4);
    add_step(&f, SMG_ARRAY_PUSH(f.arena, &v->run), "k1", 1, 4, 5);
    smg_bstep *last = &v->run.items[1];
    last->even_count = last->address_count = 1;
    last->even_size = last->grid_extent;
    last->even_by = last->grid_tile;
    last->address_bindings = SMG_ARENA_ARRAY(f.arena, int, 1);
    last->diagnostics = true;
    if (smg_bundle_verify(f.ctx, &f.bundle) != SMG_OK) fail_msg("%s", smg_context_error(f.ctx));
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    return 0;
}

static bool find_weight(void *user, int source, smg_storage storage, int64_t elements, const void **out_data) {
    (void)user;
    *out_data = weight_data;
    return source == WEIGHT_SOURCE && storage == SMG_STORE_F32 && elements == 8;
}

static const smg_bundle_constants constants = {.find = find_weight};

/* In memory of exactly this size, so that a sanitizer sees the first byte too many. */
static smg_status read_exactly(fixture *f, const char *bytes, size_t size, smg_arena *arena, smg_bundle **out) {
    char *copy = malloc(size + (size == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    smg_status status = smg_bundle_read(arena, copy, size, &constants, out);
    free(copy);
    if (status != SMG_OK) {
        assert_string_not_equal(smg_context_error(f->ctx), "");
        assert_null(*out);
    }
    smg_context_clear_error(f->ctx);
    return status;
}

static smg_status try_read(fixture *f, const char *bytes, size_t size) {
    smg_arena *arena = NULL;
    smg_bundle *bundle = NULL;
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    smg_status status = read_exactly(f, bytes, size, arena, &bundle);
    smg_arena_destroy(arena);
    return status;
}

static void write(fixture *f, const smg_bundle *bundle, smg_text *text) {
    smg_text_init(text, f->ctx);
    smg_bundle_write(bundle, text);
    assert_int_equal(smg_text_status(text), SMG_OK);
}

static void what_is_read_is_what_was_written(void **state) {
    fixture *f = *state;
    smg_text first, second;
    smg_bundle *b = NULL;
    write(f, &f->bundle, &first);
    assert_int_equal(read_exactly(f, first.data, first.length, f->arena, &b), SMG_OK);
    write(f, b, &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    assert_ptr_equal(b->buffers.items[1].data, weight_data);
    assert_memory_equal(b->buffers.items[2].data, own_data, sizeof(own_data));
    assert_string_equal(b->buffers.items[5].name, "y");
    assert_int_equal(smg_size_symbol_max(b->sizes, 0), 512);
    assert_int_equal(b->variants.items[0].run.count, 2);
    assert_false(b->variants.items[1].made);
    assert_int_equal(smg_bundle_choose(b, (int64_t[]){20, 6}), 1);
    assert_true(smg_bundle_even(b, &b->variants.items[0].run.items[1], (int64_t[]){100, 14}, (int64_t[]){100, 14}));
    assert_true(b->variants.items[0].run.items[1].diagnostics);
    assert_memory_equal(b->modules.items[1].words, words, sizeof(words));
    smg_text_free(&first);
    smg_text_free(&second);
}

static void damage_is_noticed(void **state) {
    fixture *f = *state;
    smg_text text;
    write(f, &f->bundle, &text);
    for (size_t cut = 0; cut < text.length; cut++) assert_int_equal(try_read(f, text.data, cut), SMG_FORMAT);
    for (size_t bit = 0; bit < 8 * text.length; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
        assert_int_equal(try_read(f, text.data, text.length), SMG_FORMAT);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
    }
    smg_text_addf(&text, "more");
    assert_int_equal(try_read(f, text.data, text.length), SMG_FORMAT);
    smg_text_free(&text);
}

static void mend_hash(smg_text *text) {
    uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, text->data + HEADER_BYTES, text->length - HEADER_BYTES);
    for (size_t i = 0; i < 8; i++) text->data[HEADER_BYTES - 8 + i] = (char)(uint8_t)(hash >> (8 * i));
}

/* Every byte of the content takes values that counts, indices and sizes break on. */
static void bytes_that_look_right_are_not_believed(void **state) {
    fixture *f = *state;
    static const uint8_t odd[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    smg_text text;
    int refused = 0, taken = 0;
    write(f, &f->bundle, &text);
    for (size_t at = HEADER_BYTES; at < text.length; at++) {
        char before = text.data[at];
        for (size_t i = 0; i < SMG_COUNT_OF(odd); i++) {
            text.data[at] = (char)odd[i];
            mend_hash(&text);
            smg_status status = try_read(f, text.data, text.length);
            assert_true(status == SMG_OK || status == SMG_FORMAT);
            refused += status == SMG_FORMAT;
            taken += status == SMG_OK;
        }
        text.data[at] = before;
    }
    print_message("%d refused, %d read\n", refused, taken);
    assert_true(refused > 500 && taken > 100);
    smg_text_free(&text);
}

static void wrong_bundles_are_refused(void **state) {
    fixture *f = *state;
    smg_text text;
    f->bundle.buffers.items[1].source = WEIGHT_SOURCE + 1; /* a constant that the caller does not have */
    write(f, &f->bundle, &text);
    assert_int_equal(try_read(f, text.data, text.length), SMG_FORMAT);
    smg_text_free(&text);
    f->bundle.buffers.items[1].source = WEIGHT_SOURCE;
    f->bundle.variants.items[0].run.items[0].bindings[0].buffer = 99;
    write(f, &f->bundle, &text);
    assert_int_equal(try_read(f, text.data, text.length), SMG_FORMAT);
    smg_text_free(&text);
    f->bundle.variants.items[0].run.items[0].bindings[0].buffer = 0;
    static const int wrong[] = {99, 4, 3}; /* no buffer, a temporary, a buffer that is in the stack already */
    int *members = f->bundle.buffers.items[STACK].members;
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        members[0] = wrong[i];
        assert_int_equal(smg_bundle_verify(f->ctx, &f->bundle), SMG_INTERNAL);
        assert_non_null(strstr(smg_context_error(f->ctx), "stack 'w and d'"));
        smg_context_clear_error(f->ctx);
    }
    members[0] = 1;
    f->bundle.buffers.items[STACK].stride = 4; /* less than its members have */
    assert_int_equal(smg_bundle_verify(f->ctx, &f->bundle), SMG_INTERNAL);
    smg_context_clear_error(f->ctx);
    f->bundle.buffers.items[STACK].stride = 64;
    assert_int_equal(smg_bundle_verify(f->ctx, &f->bundle), SMG_OK);
}

static void expect_wrong(fixture *f, const char *sentence) {
    assert_int_equal(smg_bundle_verify(f->ctx, &f->bundle), SMG_INTERNAL);
    if (strstr(smg_context_error(f->ctx), sentence) == NULL) fail_msg("'%s'", smg_context_error(f->ctx));
    smg_context_clear_error(f->ctx);
}

/* Each is an output in the next run that every run list writes. */
static void states_have_outputs_of_their_own(void **state) {
    fixture *f = *state;
    enum { X = 0, Y = 5 };
    smg_bbuffer *x = &f->bundle.buffers.items[X], *y = &f->bundle.buffers.items[Y], was = *x, had = *y;
    smg_bstep *last = &f->bundle.variants.items[0].run.items[1];
    smg_bundle *read = NULL;
    smg_arena *arena = NULL;
    smg_text text;
    x->kind = SMG_BUFFER_STATE;
    x->next = Y;
    expect_wrong(f, "in the next run state 'x' is no output of its elements");
    y->elements = x->elements;
    x->next = 99;
    expect_wrong(f, "is no output of its elements (99 of 7)");
    x->next = Y;
    assert_int_equal(smg_bundle_verify(f->ctx, &f->bundle), SMG_OK);
    write(f, &f->bundle, &text);
    assert_int_equal(smg_arena_create(f->ctx, &arena), SMG_OK);
    assert_int_equal(read_exactly(f, text.data, text.length, arena, &read), SMG_OK);
    assert_int_equal(read->buffers.items[X].kind, SMG_BUFFER_STATE);
    assert_int_equal(read->buffers.items[X].next, Y);
    assert_int_equal(smg_bundle_find(read, SMG_BUFFER_INPUT, "x"), X);
    smg_arena_destroy(arena);
    smg_text_free(&text);
    last->bindings[1].written = false;
    expect_wrong(f, "run list 0 does not write 'y', which state 'x' is in the next run");
    last->bindings[1].written = true;
    f->bundle.variants.items[0].run.items[0].bindings[0].written = true;
    expect_wrong(f, "writes 'x', which may only be read");
    f->bundle.variants.items[0].run.items[0].bindings[0].written = false;
    smg_bbuffer *other = add_buffer(f, "z", SMG_BUFFER_STATE, "n", "4*n");
    other->next = Y;
    expect_wrong(f, "output 'y' is of two states, 'x' and 'z'");
    f->bundle.buffers.count--;
    f->bundle.buffers.items[X] = was;
    f->bundle.buffers.items[Y] = had;
}

/* Any words, instructions or not, are read as they were written; fewer bytes fail. */
static void words_return(void **state) {
    fixture *f = *state;
    enum { WORDS = 400, SEEDS = 200 };
    uint32_t want[WORDS], got[WORDS], random = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        size_t count = (size_t)(seed * 7 % WORDS) + 1;
        for (size_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            want[i] = seed % 4 == 0 ? random : (random >> 12 & 7) << 16 | (random >> 20 & 1023);
            if (seed % 4 == 1) want[i] = random >> 30 == 0 ? 0 : 0xffffffffu;
        }
        smg_text text;
        smg_text_init(&text, f->ctx);
        smg_words_write(want, count, &text);
        assert_int_equal(smg_text_status(&text), SMG_OK);
        smg_reader r = {.at = (const uint8_t *)text.data, .left = text.length};
        smg_words_read(&r, got, count);
        assert_false(r.failed);
        assert_int_equal(r.left, 0);
        assert_memory_equal(got, want, count * sizeof(*want));
        for (size_t length = 0; length < text.length; length++) {
            r = (smg_reader){.at = (const uint8_t *)text.data, .left = length};
            smg_words_read(&r, got, count);
            assert_true(r.failed);
        }
        smg_text_free(&text);
    }
    /* The second of two alike takes a byte for each of its words. */
    const uint32_t alike[] = {0, 0, 0, 0, 0, 4u << 16 | 300, 70000, 80000, 90000, 4u << 16 | 300, 70000, 80003, 90001};
    smg_text text;
    smg_text_init(&text, f->ctx);
    smg_words_write(alike, SMG_COUNT_OF(alike), &text);
    assert_int_equal(text.length, 5 + 2 + 1 + 3 * 3 + 2 + 3);
    smg_text_free(&text);
    /* No opcode, no length and no number is that large. */
    static const uint8_t wrong[][12] = {
        {0, 0, 0, 0, 0, 0x80, 0x80, 0x10}, {0, 0, 0, 0, 0, 1, 0x80, 0x80, 4}, {0x80, 0x80, 0x80, 0x80, 0x80, 0}};
    for (size_t i = 0; i < SMG_COUNT_OF(wrong); i++) {
        smg_reader r = {.at = wrong[i], .left = sizeof(wrong[i])};
        smg_words_read(&r, got, 6);
        assert_true(r.failed);
    }
}

/* When the format changes, the seed below the test output takes the place of tests/fuzz/corpus/bundle/steps. */
static void seeds_are_of_this_version(void **state) {
    fixture *f = *state;
    char room[512];
    smg_text text;
    char *seed = NULL;
    size_t size = 0;
    write(f, &f->bundle, &text);
    const char *path = test_output(room, sizeof(room), "bundle-seed");
    assert_int_equal(smg_file_write_atomic(f->ctx, path, text.data, text.length), SMG_OK);
    if (smg_file_read(f->ctx, "tests/fuzz/corpus/bundle/steps", &seed, &size) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(size, text.length);
    assert_memory_equal(seed, text.data, size);
    smg_free(f->ctx, seed, size + 1);
    smg_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(bytes_that_look_right_are_not_believed),
        cmocka_unit_test(wrong_bundles_are_refused),
        cmocka_unit_test(states_have_outputs_of_their_own),
        cmocka_unit_test(seeds_are_of_this_version),
        cmocka_unit_test(words_return),
    };
    return cmocka_run_group_tests_name("bundle", tests, setup, teardown);
}
