/* Proofs of optional features: what a device says of itself, a kept file that says otherwise, another driver's file, and
 * layouts found from places. Skips with the reason when there is no device. */
#define _DEFAULT_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/output.h"
#include "support/witness.h"
#include "vulkan/prove_matrix_spirv.h"
#include "vulkan/prove_small_spirv.h"
#include "vulkan/vulkan_prove.h"

/* ---- layouts from places ------------------------------------------------------------------------------- */

enum { LANES = 32 };
static uint32_t words[2 * SMG_VK_MOST_ELEMENTS * LANES];

static bool find(uint32_t elements, uint32_t row(uint32_t e, uint32_t l), uint32_t column(uint32_t e, uint32_t l),
                 smg_fragment *fragment) {
    const smg_vk_places places = {words, elements, LANES};
    memset(words, 0xff, sizeof words);
    for (uint32_t e = 0; e < elements && e < 2 * SMG_VK_MOST_ELEMENTS; e++)
        for (uint32_t l = 0; l < LANES; l++) words[e * LANES + l] = row(e, l) | column(e, l) << 16;
    *fragment = (smg_fragment){.rows = 16, .columns = 16};
    return smg_vk_find_layout(&places, fragment);
}

static uint32_t far_row(uint32_t e, uint32_t l) {
    return l / 4 + 8 * (e >> 2 & 1);
}
static uint32_t near_column(uint32_t e, uint32_t l) {
    return 2 * (l & 3) + (e & 1) + 8 * (e >> 1 & 1);
}
static uint32_t same_row(uint32_t e, uint32_t l) {
    (void)e;
    return l & 15;
}
static uint32_t element(uint32_t e, uint32_t l) {
    (void)l;
    return e;
}
static uint32_t turned_row(uint32_t e, uint32_t l) {
    return ((l & 15) + e) & 15;
}
static uint32_t twice_column(uint32_t e, uint32_t l) {
    return near_column(e, l) & 7;
}
static uint32_t other_origin(uint32_t e, uint32_t l) {
    return near_column(e, l) ^ 1;
}
static uint32_t nowhere(uint32_t e, uint32_t l) {
    return e == 3 && l == 7 ? UINT32_MAX : near_column(e, l);
}

static void test_layouts(void **state) {
    (void)state;
    smg_fragment f;
    assert_true(find(8, far_row, near_column, &f));
    assert_int_equal(smg_layout_registers(&f.layout), 8);
    assert_int_equal(smg_layout_coordinate(&f.layout, SMG_FRAGMENT_COLUMN, 3, 2, 0), 13);
    assert_true(find(16, same_row, element, &f)); /* half of the lanes hold the same */
    assert_int_equal(smg_layout_replicas(&f.layout), 16);
    assert_false(find(16, turned_row, element, &f));     /* adds where bits would have to be set */
    assert_false(find(8, far_row, twice_column, &f));    /* half of the columns are nowhere */
    assert_false(find(8, far_row, other_origin, &f));    /* the first element is not the matrix's */
    assert_false(find(8, far_row, nowhere, &f));         /* an element that was not told */
    assert_false(find(6, far_row, near_column, &f));     /* no power of two */
    assert_false(find(0, far_row, near_column, &f));     /* nothing was told */
    assert_false(find(256, same_row, element, &f));      /* more than there is room for */
    assert_false(find(8, near_column, near_column, &f)); /* a bit of both */
}

/* ---- words of bf16 ---------------------------------------------------------------------------------------- */

static bool is(const uint32_t *at, uint32_t op, uint32_t first) {
    return (at[0] & 0xffffu) == op && at[1] == first;
}

/* The experiment of f16 with another type and what that needs, in its place; nothing else is changed. */
static void test_words_of_bf16(void **state) {
    (void)state;
    smg_context *ctx;
    uint32_t *made = NULL;
    const uint32_t *from = smg_prove_matrix_f16_f32;
    const size_t count = SMG_COUNT_OF(smg_prove_matrix_f16_f32);
    size_t n = 0, at = 5, i = 5;
    int types = 0, capabilities = 0, extensions = 0;
    assert_int_equal(smg_context_create(NULL, &ctx), SMG_OK);
    assert_int_equal(smg_vk_words_of_bf16(ctx, from, count, &made, &n), SMG_OK);
    assert_int_equal(n, count + SMG_VK_BF16_WORDS);
    assert_memory_equal(made, from, 5 * sizeof *made);
    for (size_t length; at < count; at += length, i += made[i] >> 16) {
        length = from[at] >> 16;
        if (is(made + i, 10, 0x5f565053) && memcmp(made + i + 1, "SPV_KHR_bfloat16", 17) == 0) {
            extensions++;
            assert_int_equal(made[i] >> 16, 6);
            i += 6;
        }
        if (is(from + at, 17, 9)) { /* Float16 */
            capabilities++;
            assert_true(is(made + i, 17, 5116) && is(made + i + 2, 17, 5118));
            i += 2;
        } else if ((from[at] & 0xffffu) == 22 && from[at + 2] == 16) {
            const uint32_t want[] = {4u << 16 | 22, from[at + 1], 16, 0};
            types++;
            assert_memory_equal(made + i, want, sizeof want);
        } else {
            assert_memory_equal(made + i, from + at, length * sizeof *made);
        }
    }
    assert_int_equal(i, n);
    assert_true(types == 1 && capabilities == 1 && extensions == 1);
    smg_free(ctx, made, (count + SMG_VK_BF16_WORDS) * sizeof *made);
    smg_context_destroy(ctx);
}

/* ---- on a device ------------------------------------------------------------------------------------------ */

typedef struct fixture {
    witness seen;
    smg_context *ctx;
    smg_arena *arena;
    smg_vk_device *dev;
    char folder[512];
} fixture;

static void open_fixture(fixture *f) {
    memset(f, 0, sizeof *f);
    char root[256]; /* new in every run, and for each test */
    static unsigned number;
    test_output(root, sizeof root, "prove");
    snprintf(f->folder, sizeof f->folder, "%s/%016llx-%u", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()), number++);
    smg_context_desc desc = witness_desc(&f->seen);
    desc.cache_dir = f->folder;
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
}

static void close_fixture(fixture *f) {
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    assert_int_equal(f->seen.live_bytes, 0);
}

static void must(const fixture *f, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(f->ctx));
}

static void open_device(fixture *f) {
    f->seen.warnings = 0;
    must(f, smg_vk_open(f->ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &f->dev));
}

static void close_device(fixture *f) {
    assert_int_equal(smg_vk_validation_errors(f->dev), 0);
    smg_vk_close(f->dev);
}

static const smg_vk_kept proofs = {"proofs", "# smg proof 2 "};

static const char *kept_path(fixture *f) {
    const char *path = NULL;
    must(f, smg_vk_kept_path(f->dev, &proofs, &path));
    return smg_arena_string(f->arena, path);
}

static char *read_text(fixture *f, const char *path) {
    char *text = NULL;
    size_t size = 0;
    must(f, smg_file_read(f->ctx, path, &text, &size));
    char *copy = smg_arena_string(f->arena, text);
    smg_free(f->ctx, text, size + 1);
    return copy;
}

/* `was` becomes `is` in the file, under a hash that is right. */
static void forge(fixture *f, const char *path, const char *was, const char *is) {
    char *text = read_text(f, path), *body = strchr(text, '\n') + 1, *at = strstr(body, was);
    if (!at) fail_msg("'%s' is not in %s", was, body);
    *at = 0;
    const char *forged = smg_arena_format(f->arena, "%s%s%s", body, is, at + strlen(was));
    const char *whole = smg_arena_format(f->arena, "%s%016llx\n%s", proofs.word,
                                         (unsigned long long)smg_hash_text(SMG_HASH_SEED, forged), forged);
    must(f, smg_file_write_atomic(f->ctx, path, whole, strlen(whole)));
}

static const smg_vk_verdict *verdict_of(const fixture *f, const char *what) {
    const smg_vk_verdict *list = NULL;
    for (int i = smg_vk_verdicts(f->dev, &list) - 1; i >= 0; i--)
        if (strcmp(list[i].what, what) == 0) return &list[i];
    return NULL;
}

static const smg_matrix_shape *half_shape(const fixture *f) {
    return device_half_shape(f->dev);
}

/* Skips where the device has no such shape. */
static void prove_all(fixture *f) {
    open_device(f);
    must(f, smg_vk_prove(f->dev, true));
    if (!device_lacks_halves(f->dev)) return;
    close_device(f);
    close_fixture(f);
    skip();
}

/* A device keeps what its driver tells, and says what was tried; another time nothing is tried. */
static void test_proved(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    open_device(&f);
    int offered = smg_vk_target(f.dev)->matrix_count;
    bool fp16 = smg_vk_target(f.dev)->fp16 != 0;
    must(&f, smg_vk_prove(f.dev, false));
    assert_int_equal(smg_vk_target(f.dev)->matrix_count, 0); /* not before they were tried */
    assert_int_equal(smg_vk_target(f.dev)->fp16, fp16);
    if (fp16) assert_string_equal(verdict_of(&f, "fp16")->why, "");
    close_device(&f);
    prove_all(&f);
    assert_int_equal(f.seen.warnings, 0);
    assert_in_range(smg_vk_target(f.dev)->matrix_count, 1, offered);
    for (int use = 0; use < SMG_MATRIX_USES; use++)
        assert_non_null(smg_target_fragment(smg_vk_target(f.dev), half_shape(&f), (smg_matrix_use)use));
    const uint64_t hash = smg_target_hash(smg_vk_target(f.dev));
    const char *path = kept_path(&f), *text = read_text(&f, path);
    close_device(&f);
    forge(&f, path, "# passed fp16", "# passed a word that nobody tries\n# passed fp16");
    const char *forged = read_text(&f, path);
    assert_string_not_equal(text, forged);
    prove_all(&f);
    assert_true(smg_target_hash(smg_vk_target(f.dev)) == hash);
    assert_string_equal(read_text(&f, path), forged); /* nothing was tried, so it was not written */
    must(&f, smg_vk_prove(f.dev, true));
    close_device(&f);
    close_fixture(&f);
}

/* The rate of a shape that no table knows is measured, and kept; one that a table knows is believed. */
static void test_rates(void **state) {
    (void)state;
    fixture f;
    double rates[2] = {0, 0};
    open_fixture(&f);
    prove_all(&f);
    double known = half_shape(&f)->rate;
    const char *path = kept_path(&f);
    close_device(&f);
    assert_int_equal(remove(path), 0);
    for (int i = 0; i < 2; i++) {
        open_device(&f);
        for (int k = 0; k < f.dev->target.matrix_count; k++)
            if (strcmp(f.dev->target.matrix[k].c, "f32") == 0) f.dev->target.matrix[k].rate = 0;
        must(&f, smg_vk_prove(f.dev, true));
        rates[i] = half_shape(&f)->rate;
        close_device(&f);
    }
    assert_true(rates[0] > 1e6 && rates[0] < 1e17);
    assert_true(fabs(rates[0] - rates[1]) < 1);
    prove_all(&f);
    assert_true(known <= 0 || fabs(half_shape(&f)->rate - known) < 1);
    close_device(&f);
    close_fixture(&f);
}

/* What the probe saw is used, whatever the tables say; here it says so in a kept file. */
static void test_other_layout(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    prove_all(&f);
    smg_matrix_shape shape = *half_shape(&f);
    const char *path = kept_path(&f);
    smg_text was, is;
    smg_text_init(&was, f.ctx);
    smg_text_init(&is, f.ctx);
    smg_target one;
    smg_target_init(&one);
    one.fragments[one.fragment_count++] = smg_matrix_operand(&shape, SMG_MATRIX_A);
    one.fragments[0].layout = *smg_target_fragment(smg_vk_target(f.dev), &shape, SMG_MATRIX_A);
    smg_target_print(&one, &was);
    smg_layout turned = smg_layout_one(); /* rows over lanes first, what is left over registers */
    int bits = one.fragments[0].layout.bits[SMG_LAYOUT_LANE], row = smg_log2(shape.m), column = smg_log2(shape.k);
    for (int i = 0; i < row + column; i++) {
        const smg_basis basis = {(int8_t)(i < row ? SMG_FRAGMENT_ROW : SMG_FRAGMENT_COLUMN),
                                 (int8_t)(i < row ? i : i - row)};
        smg_layout_set(&turned, i < bits ? SMG_LAYOUT_LANE : SMG_LAYOUT_REGISTER, i < bits ? i : i - bits, basis);
    }
    assert_true(smg_fragment_set_layout(&one.fragments[0], &turned));
    smg_target_print(&one, &is);
    char *old_line = strstr(was.data, "fragment = "), *new_line = strstr(is.data, "fragment = ");
    *strchr(old_line, '#') = *strchr(new_line, '#') = 0;
    close_device(&f);
    forge(&f, path, old_line, new_line);
    open_device(&f);
    must(&f, smg_vk_prove(f.dev, true));
    assert_true(
        smg_layout_equal(smg_target_fragment(smg_vk_target(f.dev), &shape, SMG_MATRIX_A), &one.fragments[0].layout));
    close_device(&f);
    forge(&f, path, new_line, "# nothing was seen: "); /* as if it had been no layout */
    open_device(&f);
    must(&f, smg_vk_prove(f.dev, true));
    assert_non_null(half_shape(&f));
    assert_null(smg_target_fragment(smg_vk_target(f.dev), &shape, SMG_MATRIX_A));
    assert_int_equal(f.seen.warnings, f.dev->offered.fragment_count > 0 ? 1 : 0); /* otherwise than known */
    close_device(&f);
    smg_text_free(&was);
    smg_text_free(&is);
    close_fixture(&f);
}

/* What failed is not used, and what needs it neither. */
static void test_failed(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    prove_all(&f);
    const char *path = kept_path(&f);
    int count = smg_vk_target(f.dev)->matrix_count;
    char name[SMG_VK_VERDICT_TEXT];
    const smg_matrix_shape *s = half_shape(&f);
    snprintf(name, sizeof name, "matrix %dx%dx%d f16 f16 f32 f32", s->m, s->n, s->k);
    assert_string_equal(verdict_of(&f, name)->why, "");
    close_device(&f);
    forge(&f, path, smg_arena_format(f.arena, "# passed %s\n", name),
          smg_arena_format(f.arena, "# failed %s: row 1 is 2: must be 3\n", name));
    open_device(&f);
    must(&f, smg_vk_prove(f.dev, true));
    assert_string_equal(verdict_of(&f, name)->why, "row 1 is 2: must be 3");
    assert_int_equal(smg_vk_target(f.dev)->matrix_count, count - 1);
    assert_int_equal(f.seen.warnings, 1);
    close_device(&f);
    forge(&f, path, "# passed fp16\n", "# failed fp16: word 0 is 1\n");
    open_device(&f);
    must(&f, smg_vk_prove(f.dev, true));
    assert_int_equal(f.seen.warnings, 1); /* shapes that need it are not told of */
    assert_int_equal(smg_vk_target(f.dev)->fp16, 0);
    assert_null(half_shape(&f));
    close_device(&f);
    forge(&f, path, "# passed subgroup_size\n", "# failed subgroup_size: it is another\n");
    open_device(&f);
    must(&f, smg_vk_prove(f.dev, true));
    const smg_target *target = smg_vk_target(f.dev);
    assert_int_equal(target->subgroup_size, 1);
    assert_int_equal(target->subgroup_arithmetic + target->subgroup_shuffle + target->matrix_count, 0);
    close_device(&f);
    close_fixture(&f);
}

/* A kernel that cannot be built is a feature that is not there, and no error. */
static void test_not_built(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    open_device(&f);
    f.dev->target.subgroup_size = f.dev->target.subgroup_max * 2;
    if (f.dev->target.subgroup_size <= f.dev->target.max_invocations) {
        must(&f, smg_vk_prove(f.dev, false));
        assert_non_null(strstr(verdict_of(&f, "subgroup_size")->why, "needs subgroups of"));
        assert_int_equal(smg_vk_target(f.dev)->subgroup_size, 1);
        assert_int_equal(smg_context_status(f.ctx), SMG_OK);
    }
    close_device(&f);
    close_fixture(&f);
}

/* After an update the file has another name; one that was brought under this name is not believed. */
static void test_other_driver(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    prove_all(&f);
    const char *path = kept_path(&f), *text = read_text(&f, path);
    const char *driver = smg_vk_target(f.dev)->driver;
    const char *line = smg_arena_format(f.arena, "driver = %s\n", driver);
    snprintf(f.dev->target.driver, sizeof f.dev->target.driver, "another version");
    assert_string_not_equal(kept_path(&f), path);
    close_device(&f);
    forge(&f, path, "# passed fp16\n", "# failed fp16: on another driver\n");
    forge(&f, path, line, "driver = another version\n");
    prove_all(&f);
    assert_int_equal(f.seen.warnings, 1);
    assert_string_equal(verdict_of(&f, "fp16")->why, "");
    assert_int_equal(smg_vk_target(f.dev)->fp16, 1);
    close_device(&f);
    assert_string_equal(read_text(&f, path), text);                       /* made anew */
    must(&f, smg_file_write_atomic(f.ctx, path, text, strlen(text) - 1)); /* cut off */
    prove_all(&f);
    assert_int_equal(f.seen.warnings, 1);
    close_device(&f);
    assert_string_equal(read_text(&f, path), text);
    close_fixture(&f);
}

/* ---- spills ------------------------------------------------------------------------------------------------ */

static void test_built(void **state) {
    (void)state;
    static const smg_vk_stat amd[] = {{"VGPRs", 256}, {"Spilled SGPRs", 2}, {"Spilled VGPRs", 5}, {"LDS size", 4096}};
    static const smg_vk_stat intel[] = {
        {"Spills", 3}, {"Fills", 4}, {"Workgroup Memory Size", 1024}, {"Max live registers", 96}};
    static const smg_vk_stat nvidia[] = {{"Register Count", 255}, {"Shared Memory Size", 6656}, {"LocalMemorySize", 8}};
    /* One driver's local memory begins at 64 GiB. */
    static const smg_vk_stat offset[] = {{"Register Count", 80}, {"Local Memory Size", 68719476736.0 + 16}};
    static const smg_vk_stat silent[] = {{"Instruction count", 7}, {"Spill", 1}, {"Max spills", 1}};
    /* Two workgroups of 128 lanes with 255 registers each, whatever they take of the shared memory of a core. */
    static const smg_vk_stat beyond[] = {{"Register Count", 255}, {"Shared Memory Size", 24064}};
    static const struct {
        const smg_vk_stat *stats;
        int count;
        smg_vk_asked asked;
        smg_vk_built built;
    } rows[] = {
        {amd, 4, {0, 64}, {7, 256, 4096, true}},          {amd, 1, {0, 64}, {-1, 256, -1, true}},
        {intel, 4, {0, 64}, {7, 96, 1024, false}},        {nvidia, 2, {6656, 32}, {0, 255, 6656, true}},
        {nvidia, 2, {6144, 32}, {4, 255, 6656, true}},    {nvidia, 3, {6656, 32}, {2, 255, 6656, true}},
        {beyond, 2, {9216, 128}, {0, 255, 24064, true}},  {beyond, 2, {9216, 64}, {58, 255, 24064, true}},
        {beyond, 2, {16384, 64}, {30, 255, 24064, true}}, {silent, 3, {0, 64}, {-1, -1, -1, false}},
        {offset, 2, {0, 64}, {4, 80, -1, true}},
    };
    smg_target target;
    smg_target_init(&target);
    target.shared_core = 49152;
    target.registers_core = 65536;
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        smg_vk_built built = smg_vk_built_of(&target, &rows[i].asked, rows[i].stats, rows[i].count);
        assert_true(fabs(built.spills - rows[i].built.spills) < 1e-9);
        assert_true(fabs(built.registers - rows[i].built.registers) < 1e-9);
        assert_true(fabs(built.shared - rows[i].built.shared) < 1e-9);
        assert_int_equal(built.of_lane, rows[i].built.of_lane);
    }
}

static double spills_of(fixture *f, const smg_vk_pipeline_desc *desc) {
    smg_vk_pipeline *pipeline = NULL;
    must(f, smg_vk_pipeline_create(f->dev, desc, &pipeline));
    double spills = smg_vk_pipeline_built(pipeline).spills;
    smg_vk_pipeline_destroy(pipeline);
    return spills;
}

/* What was found out about a module is known another time; of another form of it nothing is. */
static void test_modules(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    open_device(&f);
    const uint32_t sizes[2] = {16, 32};
    smg_vk_pipeline_desc desc = {
        .name = "half",
        .words = smg_prove_small_half,
        .word_count = sizeof smg_prove_small_half / 4,
        .local_size = {16, 1, 1},
        .binding_count = 1,
        .constants = &sizes[0],
        .constant_count = 1,
    };
    if (!smg_vk_target(f.dev)->fp16) desc.words = NULL;
    if (desc.words) {
        double before = spills_of(&f, &desc);
        must(&f, smg_vk_module_add(f.dev, smg_vk_module_key(&desc), (smg_vk_built){42, 7, -1, true}));
        close_device(&f);
        open_device(&f);
        assert_true(fabs(spills_of(&f, &desc) - (before < 0 ? 42 : before)) < 1e-9);
        desc.constants = &sizes[1];
        desc.local_size[0] = 32;
        assert_true(fabs(spills_of(&f, &desc) - 42) > 1);
        assert_int_equal(f.seen.warnings, 0);
    }
    close_device(&f);
    close_fixture(&f);
}

/* Each allocation of reading what is kept; and of trying, in steps. */
static void test_allocations_fail(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    prove_all(&f);
    close_device(&f);
    for (int kept = 1; kept >= 0; kept--) {
        bool done = false;
        for (int step = 1; !done && step < 2000; step += kept ? 1 : 23) {
            witness seen;
            smg_context_desc desc = witness_desc(&seen);
            desc.log = NULL;
            desc.cache_dir = kept ? f.folder : "";
            smg_context *ctx = NULL;
            smg_vk_device *dev = NULL;
            assert_int_equal(smg_context_create(&desc, &ctx), SMG_OK);
            assert_int_equal(smg_vk_open(ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &dev), SMG_OK);
            int before = seen.calls;
            seen.fail_at = before + step;
            smg_status status = smg_vk_prove(dev, kept != 0);
            if (status != SMG_OK && status != SMG_MEMORY) fail_msg("%s", smg_context_error(ctx));
            done = seen.calls < before + step;
            if (done) assert_int_equal(status, SMG_OK);
            smg_vk_close(dev);
            smg_context_destroy(ctx);
            assert_int_equal(seen.live_bytes, 0);
        }
        assert_true(done);
    }
    close_fixture(&f);
}

/* 0: there is a device. 77, the code of a skipped test: there is none, and the output says why. */
static int find_device(void) {
    static const char lavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.json";
    if (!getenv("VK_DRIVER_FILES") && !getenv("SMG_DEVICE") && smg_file_exists(lavapipe))
        setenv("VK_DRIVER_FILES", lavapipe, 1);
    setenv("SMG_VALIDATION", "1", 0);
    smg_context *ctx = NULL;
    smg_vk_device *dev = NULL;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 1;
    smg_status status = smg_vk_open(ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &dev);
    bool missing = device_missing(ctx, status);
    smg_vk_close(dev);
    smg_context_destroy(ctx);
    return missing ? device_result(0) : status != SMG_OK;
}

int main(void) {
    int found = find_device();
    if (found != 0) return found;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),   cmocka_unit_test(test_words_of_bf16),    cmocka_unit_test(test_proved),
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_other_layout),     cmocka_unit_test(test_failed),
        cmocka_unit_test(test_not_built), cmocka_unit_test(test_other_driver),     cmocka_unit_test(test_built),
        cmocka_unit_test(test_modules),   cmocka_unit_test(test_allocations_fail),
    };
    return device_result(cmocka_run_group_tests_name("prove", tests, NULL, NULL));
}
#else
int main(void) {
    print_message("skipped: built without Vulkan\n");
    return 77;
}
#endif
