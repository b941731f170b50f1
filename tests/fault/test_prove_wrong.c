/* Experiments on a driver that computes something else: one word of their modules is changed before the driver gets them,
 * so that a sum is a maximum, or a product one of another matrix. The results must be found wrong, and what gave them is
 * not used. Other features are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/base.h"

#if SMG_VULKAN
#include "support/device.h"
#include "support/device_graph.h"
#include "support/driver_leaks.h"
#include "support/output.h"
#include "support/witness.h"
#include "vulkan/prove_matrix_spirv.h"
#include "vulkan/prove_small_spirv.h"
#include "vulkan/vulkan_private.h"

/* ---- the driver ---------------------------------------------------------------------------------------------- */

enum { MOST_WRONG = 8, MOST_WORDS = 4096 };

typedef struct module {
    const uint32_t *words;
    size_t count;
} module;
#define MODULE(words) {words, SMG_COUNT_OF(words)}

static struct {
    PFN_vkCreateShaderModule create;
    struct {
        module of;
        size_t place;
        uint32_t word;
        bool met;
    } list[MOST_WRONG];
    int count;
} wrong;

static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *hooks, VkShaderModule *out) {
    uint32_t words[MOST_WORDS];
    VkShaderModuleCreateInfo other = *info;
    if (info->codeSize > sizeof words) return wrong.create(device, info, hooks, out);
    memcpy(words, info->pCode, info->codeSize);
    for (int i = 0; i < wrong.count; i++) {
        const module *of = &wrong.list[i].of;
        if (of->count * sizeof *words != info->codeSize || memcmp(of->words, info->pCode, info->codeSize) != 0)
            continue;
        words[wrong.list[i].place] = wrong.list[i].word;
        wrong.list[i].met = true;
    }
    other.pCode = words;
    return wrong.create(device, &other, hooks, out);
}

static void make_wrong(module of, size_t place, uint32_t word) {
    assert_in_range(wrong.count, 0, MOST_WRONG - 1);
    assert_int_not_equal(of.words[place], word);
    wrong.list[wrong.count].of = of;
    wrong.list[wrong.count].place = place;
    wrong.list[wrong.count].met = false;
    wrong.list[wrong.count++].word = word;
}

enum {
    FADD = 129,
    FMUL = 133,
    SHIFT_RIGHT = 194,
    SHIFT_LEFT = 196,
    GROUP_SHUFFLE = 345,
    GROUP_SHUFFLE_XOR = 346,
    GROUP_FADD = 350,
    GROUP_FMAX = 358,
    MATRIX_LOAD = 4457,
    MATRIX_MULTIPLY_ADD = 4459
};

/* Where the instruction is that is the `which`-th of its operation, from 0. */
static size_t find(module in, uint32_t operation, int which) {
    size_t at = 5;
    while (at < in.count && ((in.words[at] & 0xffff) != operation || which-- > 0)) at += in.words[at] >> 16;
    if (at >= in.count) fail_msg("operation %u is not there as often", (unsigned)operation);
    return at;
}

/* ---- a device of it -------------------------------------------------------------------------------------------- */

typedef struct fixture {
    device_graph d;
    witness seen;
} fixture;

/* `cache`: the folder of kept verdicts, "": none. */
static void open_fixture(fixture *f, const char *cache) {
    memset(f, 0, sizeof *f);
    smg_context_desc desc = witness_desc(&f->seen);
    desc.cache_dir = cache;
    wrong.count = 0;
    assert_int_equal(smg_context_create(&desc, &f->d.ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->d.ctx, &f->d.arena), SMG_OK);
}

static bool open_device(fixture *f) {
    smg_status status = smg_vk_open(f->d.ctx, NULL, SMG_VK_NO_PIPELINE_CACHE, &f->d.dev);
    if (device_missing(f->d.ctx, status)) return false;
    device_graph_expect_ok(&f->d, status);
    wrong.create = f->d.dev->fn.CreateShaderModule;
    f->d.dev->fn.CreateShaderModule = create_module;
    f->seen.warnings = 0;
    return true;
}

static void close_device(fixture *f) {
    assert_int_equal(smg_vk_validation_errors(f->d.dev), 0);
    smg_vk_close(f->d.dev);
    f->d.dev = NULL;
}

static void close_fixture(fixture *f) {
    device_graph_close(&f->d);
    assert_int_equal(f->seen.live_bytes, 0);
}

static void close_and_skip(fixture *f) {
    close_fixture(f);
    skip();
}

static const smg_target *prove(fixture *f, bool matrices) {
    device_graph_expect_ok(&f->d, smg_vk_prove(f->d.dev, matrices));
    for (int i = 0; i < wrong.count; i++) assert_true(wrong.list[i].met);
    return smg_vk_target(f->d.dev);
}

/* Opens the device while nothing is wrong yet. false: it is not there, or has no matrices that tests are made for. */
static bool prove_rightly(fixture *f) {
    if (!open_device(f)) return false;
    prove(f, true);
    return !device_lacks_halves(f->d.dev);
}

static const char *why(const fixture *f, const char *what) {
    const smg_vk_verdict *list = NULL;
    for (int i = smg_vk_verdicts(f->d.dev, &list) - 1; i >= 0; i--)
        if (strcmp(list[i].what, what) == 0) return list[i].why;
    fail_msg("%s was not tried", what);
    return NULL;
}

static void expect_part(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
}

/* ---- words of small experiments ------------------------------------------------------------------------------------ */

enum { FP16, SUBGROUP_SIZE, ARITHMETIC, CLUSTERED, SHUFFLE, FEATURES };

static void list_features(const smg_target *t, int64_t out[FEATURES]) {
    out[FP16] = t->fp16;
    out[SUBGROUP_SIZE] = t->subgroup_size;
    out[ARITHMETIC] = t->subgroup_arithmetic;
    out[CLUSTERED] = t->subgroup_clustered;
    out[SHUFFLE] = t->subgroup_shuffle;
}

/* Only what is tried wrongly goes, and with subgroups what is made of them. */
static void expect_features(const smg_target *t, const int64_t before[FEATURES], int failed) {
    int64_t is[FEATURES];
    list_features(t, is);
    for (int i = 0; i < FEATURES; i++) {
        bool gone = i == failed || (failed == SUBGROUP_SIZE && i > SUBGROUP_SIZE);
        int64_t none = i == SUBGROUP_SIZE ? 1 : 0;
        assert_int_equal(is[i], gone ? none : before[i]);
    }
}

static void wrong_words_remove_a_feature(void **state) {
    (void)state;
    static const struct {
        const char *name;
        module of;
        uint32_t was, is; /* operations with the same operands */
        int which;
    } rows[FEATURES] = {
        [FP16] = {"fp16", MODULE(smg_prove_small_half), FMUL, FADD, 1}, /* of pairs */
        /* Numbers of subgroups are 0: the words of the first are right. */
        [SUBGROUP_SIZE] = {"subgroup_size", MODULE(smg_prove_small_subgroup_size), SHIFT_LEFT, SHIFT_RIGHT, 1},
        [ARITHMETIC] = {"subgroup_arithmetic", MODULE(smg_prove_small_subgroup_arithmetic), GROUP_FADD, GROUP_FMAX, 0},
        [CLUSTERED] = {"subgroup_clustered", MODULE(smg_prove_small_subgroup_clustered), GROUP_FADD, GROUP_FMAX, 0},
        [SHUFFLE] = {"subgroup_shuffle", MODULE(smg_prove_small_subgroup_shuffle), GROUP_SHUFFLE_XOR, GROUP_SHUFFLE, 0},
    };
    fixture f;
    for (int i = 0; i < FEATURES; i++) {
        int64_t before[FEATURES];
        open_fixture(&f, "");
        if (!open_device(&f)) close_and_skip(&f);
        list_features(smg_vk_target(f.d.dev), before);
        if (before[i] > (i == SUBGROUP_SIZE ? 1 : 0)) {
            size_t at = find(rows[i].of, rows[i].was, rows[i].which);
            make_wrong(rows[i].of, at, (rows[i].of.words[at] & 0xffff0000u) | rows[i].is);
            expect_features(prove(&f, false), before, i);
            expect_part(why(&f, rows[i].name), ", must be ");
            assert_int_equal(f.seen.warnings, 1);
            expect_part(f.seen.warning, rows[i].name);
        } else {
            print_message("the device has no %s\n", rows[i].name);
        }
        close_fixture(&f);
    }
}

/* ---- modules of matrices ---------------------------------------------------------------------------------------- */

/* A space in front, as one type is the end of another's name. */
static const struct {
    const char *types;
    module of;
} matrix_modules[] = {{" f16 f16 f16 f16", MODULE(smg_prove_matrix_f16_f16)},
                      {" f16 f16 f32 f32", MODULE(smg_prove_matrix_f16_f32)},
                      {" i8 i8 i32 i32", MODULE(smg_prove_matrix_i8_i32)},
                      {" u8 u8 u32 u32", MODULE(smg_prove_matrix_u8_u32)}};
enum { F16_F16, F16_F32, MODULES = SMG_COUNT_OF(matrix_modules) };

static void print_shape(const smg_matrix_shape *s, char out[SMG_VK_VERDICT_TEXT]) {
    snprintf(out, SMG_VK_VERDICT_TEXT, "matrix %dx%dx%d %s %s %s %s", s->m, s->n, s->k, s->a, s->b, s->c, s->result);
}

/* Is it tried by this module? Those of bf16 have words of their own. */
static bool is_of(const smg_matrix_shape *s, int number) {
    char name[SMG_VK_VERDICT_TEXT];
    print_shape(s, name);
    return smg_text_ends(name, matrix_modules[number].types);
}

static bool has_shape_of(const smg_target *target, int number) {
    for (int i = 0; i < target->matrix_count; i++)
        if (is_of(&target->matrix[i], number)) return true;
    return false;
}

/* ---- products -------------------------------------------------------------------------------------------------- */

/* The first product of a module, or the second, is of the first matrix that was loaded: as a left factor, its rows. */
static void multiply_rows(int number, int which) {
    const module of = matrix_modules[number].of;
    make_wrong(of, find(of, MATRIX_MULTIPLY_ADD, which) + 3, of.words[find(of, MATRIX_LOAD, 0) + 2]);
}

/* What is left of `before`: all but the shapes of f16 with sums of f32. Returns how many are gone. */
static int expect_other_shapes(const smg_target *before, const smg_target *now) {
    char was[SMG_VK_VERDICT_TEXT], is[SMG_VK_VERDICT_TEXT];
    int kept = 0;
    for (int i = 0; i < before->matrix_count; i++) {
        if (is_of(&before->matrix[i], F16_F32)) continue;
        print_shape(&before->matrix[i], was);
        assert_in_range(kept, 0, now->matrix_count - 1);
        print_shape(&now->matrix[kept++], is);
        assert_string_equal(is, was);
    }
    assert_int_equal(now->matrix_count, kept);
    return before->matrix_count - kept;
}

/* Kernels that multiply by matrices, as plans for the device have them if its matrices are fast. */
static int count_by_matrices(fixture *f) {
    static const char text[] = "graph small\ndim n max 256\nx = input f32[n, 64]\n"
                               "w = constant f32[64, 64] random seed=1 scale=0.1\n"
                               "p = contract(x, w) \"ni,oi->no\"\ny = relu(p)\noutput y = y\n";
    const smg_target target = device_graph_gpu(&f->d);
    const smg_compile_options options = {.precision = SMG_TYPE_F16, .tuning = ""};
    int count = 0;
    device_graph_parse(&f->d, text);
    device_graph_expect_ok(&f->d, smg_compile_plan(f->d.ctx, f->d.g, &target, &options, &f->d.c));
    for (int i = 0; i < f->d.c->plan->steps.count; i++) {
        const smg_kernel *k = f->d.c->plan->steps.items[i].kernel;
        count += k != NULL && k->matrix.rows > 0;
    }
    device_graph_drop(&f->d);
    return count;
}

static void wrong_products_remove_their_shapes(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "");
    if (!prove_rightly(&f)) close_and_skip(&f);
    const smg_target before = *smg_vk_target(f.d.dev);
    char name[SMG_VK_VERDICT_TEXT], told[2 * SMG_VK_VERDICT_TEXT];
    print_shape(device_half_shape(f.d.dev), name);
    assert_int_equal(f.seen.warnings, 0);
    assert_int_equal(count_by_matrices(&f), 1);
    close_device(&f);
    for (int which = 0; which < 2; which++) {
        wrong.count = 0;
        multiply_rows(F16_F32, which);
        assert_true(open_device(&f));
        int gone = expect_other_shapes(&before, prove(&f, true));
        expect_part(why(&f, name), which ? " of a product through shared memory is " : " of a product is ");
        assert_int_equal(f.seen.warnings, 1);
        snprintf(told, sizeof told, "does without %d of its %d matrix shapes: %s (row ", gone,
                 f.d.dev->offered.matrix_count, name + strlen("matrix "));
        expect_part(f.seen.warning, told);
        assert_int_equal(count_by_matrices(&f), 0);
        close_device(&f);
    }
    close_fixture(&f);
}

/* One warning, when they are tried and when their verdicts are read. */
static void one_line_tells_of_all_wrong_shapes(void **state) {
    (void)state;
    fixture f;
    char root[256], folder[512];
    test_output(root, sizeof root, "prove-wrong");
    snprintf(folder, sizeof folder, "%s/%016llx", root,
             (unsigned long long)smg_hash_u64((uint64_t)(smg_clock_seconds() * 1e9), smg_thread_self()));
    open_fixture(&f, "");
    if (!prove_rightly(&f)) close_and_skip(&f);
    const smg_target before = *smg_vk_target(f.d.dev);
    close_fixture(&f);
    open_fixture(&f, folder);
    for (int i = 0; i < MODULES; i++)
        if (has_shape_of(&before, i)) multiply_rows(i, 0);
    for (int kept = 0; kept < 2; kept++) {
        char name[SMG_VK_VERDICT_TEXT];
        int right = 0;
        assert_true(open_device(&f));
        const smg_target *now = prove(&f, true);
        assert_int_equal(f.seen.warnings, 1);
        for (int i = 0; i < before.matrix_count; i++) {
            print_shape(&before.matrix[i], name);
            if (strcmp(before.matrix[i].a, "bf16") == 0)
                right++;
            else
                expect_part(f.seen.warning, name + strlen("matrix "));
        }
        assert_int_equal(now->matrix_count, right);
        close_device(&f);
        wrong.count = 0;
    }
    close_fixture(&f);
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

/* Matrices that hold their rows (0) or columns (1) are loaded turned, as left factors are that lie in shared memory. */
static void turn_load(module of, int which) {
    enum { FROM_SHARED = 9, LAYOUT = 4 };
    make_wrong(of, find(of, MATRIX_LOAD, which) + LAYOUT, of.words[find(of, MATRIX_LOAD, FROM_SHARED) + LAYOUT]);
}

/* Both modules that have such a left factor are asked where it keeps its elements; the first answer is taken. */
static void turn_loads_of_halves(const smg_target *target, int which) {
    for (int i = F16_F16; i <= F16_F32; i++)
        if (has_shape_of(target, i)) turn_load(matrix_modules[i].of, which);
}

static bool is_turned(const smg_layout *a, const smg_layout *b, int64_t lanes) {
    for (uint32_t e = 0; e < (uint32_t)smg_layout_registers(a); e++)
        for (uint32_t l = 0; l < (uint32_t)lanes; l++)
            if (smg_layout_coordinate(a, SMG_FRAGMENT_ROW, e, l, 0) !=
                    smg_layout_coordinate(b, SMG_FRAGMENT_COLUMN, e, l, 0) ||
                smg_layout_coordinate(a, SMG_FRAGMENT_COLUMN, e, l, 0) !=
                    smg_layout_coordinate(b, SMG_FRAGMENT_ROW, e, l, 0))
                return false;
    return smg_layout_registers(a) == smg_layout_registers(b);
}

static void layouts_are_those_that_were_seen(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "");
    if (!prove_rightly(&f)) close_and_skip(&f);
    const smg_matrix_shape shape = *device_half_shape(f.d.dev);
    const smg_target before = *smg_vk_target(f.d.dev);
    const smg_layout *known[SMG_MATRIX_USES], *seen[SMG_MATRIX_USES];
    bool told = f.d.dev->offered.fragment_count > 0; /* the table knows the device */
    for (int use = 0; use < SMG_MATRIX_USES; use++)
        known[use] = smg_target_fragment(&before, &shape, (smg_matrix_use)use);
    close_device(&f);
    if (told) assert_non_null(known[SMG_MATRIX_A]);
    if (shape.m != shape.k || !known[SMG_MATRIX_A]) {
        print_message("left factors are not square, or opaque\n");
        close_and_skip(&f);
    }
    for (int opaque = 0; opaque < 2; opaque++) {
        wrong.count = 0;
        if (!opaque) turn_loads_of_halves(&before, 0);
        turn_loads_of_halves(&before, 1); /* alone: rows and columns are both told to be rows */
        assert_true(open_device(&f));
        const smg_target *now = prove(&f, true);
        assert_int_equal(now->matrix_count, before.matrix_count);
        assert_int_equal(now->fragment_count, before.fragment_count - opaque);
        for (int use = 0; use < SMG_MATRIX_USES; use++) {
            seen[use] = smg_target_fragment(now, &shape, (smg_matrix_use)use);
            if (use == SMG_MATRIX_A) continue;
            assert_int_equal(seen[use] != NULL, known[use] != NULL);
            if (seen[use]) assert_true(smg_layout_equal(seen[use], known[use]));
        }
        if (opaque)
            assert_null(seen[SMG_MATRIX_A]);
        else
            assert_true(is_turned(seen[SMG_MATRIX_A], known[SMG_MATRIX_A], now->subgroup_size));
        assert_int_equal(f.seen.warnings, told ? 1 : 0);
        if (told) expect_part(f.seen.warning, opaque ? "it is opaque" : "its own layout is used");
        close_device(&f);
    }
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_words_remove_a_feature),
        cmocka_unit_test(wrong_products_remove_their_shapes),
        cmocka_unit_test(one_line_tells_of_all_wrong_shapes),
        cmocka_unit_test(layouts_are_those_that_were_seen),
    };
    device_compiles_plainly();
    return device_result(cmocka_run_group_tests(tests, NULL, NULL));
}
#else
int main(void) {
    return 77;
}
#endif
