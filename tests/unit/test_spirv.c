/* spirv: a compute shader to valid words, error messages with the kernel's name and a bounded length,
 * and the disk cache: hit, key, corruption of every kind, no folder, two processes. */
#define _DEFAULT_SOURCE /* mkdtemp, fork */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spirv/spirv_private.h"
#include "support/output.h"

static const char good_text[] = "#version 450\n"
                                "#extension GL_KHR_shader_subgroup_arithmetic : require\n"
                                "layout(local_size_x = 32) in;\n"
                                "layout(std430, binding = 0) buffer A { float a[]; };\n"
                                "void main() {\n"
                                "    uint i = gl_GlobalInvocationID.x;\n"
                                "    a[i] = subgroupAdd(a[i]);\n"
                                "}\n";

typedef struct fixture {
    char folder[512];
    int warnings;
    smg_context *ctx;
    smg_arena *arena;
    smg_spirv_compiler *compiler;
} fixture;

static void on_log(void *user, smg_log_level level, const char *line) {
    (void)line;
    if (level == SMG_LOG_WARNING) ((fixture *)user)->warnings++;
}

static void begin(fixture *f, bool cached) {
    memset(f, 0, sizeof *f);
    if (cached) {
        test_output(f->folder, sizeof f->folder, "smg-spirv-XXXXXX");
        assert_non_null(mkdtemp(f->folder));
    }
    const smg_context_desc desc = {.log = on_log, .user = f, .cache_dir = f->folder};
    assert_int_equal(smg_context_create(&desc, &f->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(f->ctx, &f->arena), SMG_OK);
    assert_int_equal(smg_spirv_compiler_create(f->ctx, &f->compiler), SMG_OK);
}

/* The path of the `index`-th cache entry (not of a file that is being written), or false. */
static bool entry(const fixture *f, int index, char *path, size_t size) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s/spirv", f->folder);
    DIR *dir = opendir(folder);
    if (!dir) return false;
    bool found = false;
    for (struct dirent *item = readdir(dir); item && !found; item = readdir(dir)) {
        size_t length = strlen(item->d_name);
        if (length < 5 || strcmp(item->d_name + length - 4, ".spv") != 0 || index-- > 0) continue;
        snprintf(path, size, "%s/%.200s", folder, item->d_name);
        found = true;
    }
    closedir(dir);
    return found;
}

static void end(fixture *f) {
    smg_spirv_compiler_destroy(f->compiler);
    smg_arena_destroy(f->arena);
    smg_context_destroy(f->ctx);
    char path[1024];
    while (f->folder[0] && entry(f, 0, path, sizeof path)) assert_int_equal(remove(path), 0);
    snprintf(path, sizeof path, "%s/spirv", f->folder);
    if (f->folder[0]) {
        (void)rmdir(path);
        assert_int_equal(rmdir(f->folder), 0);
    }
}

static smg_spirv_module compile(fixture *f, const char *text, const smg_spirv_options *options) {
    smg_spirv_module module;
    if (smg_spirv_compile(f->compiler, f->arena, "kernel 7", text, options, &module) != SMG_OK)
        fail_msg("%s", smg_context_error(f->ctx));
    assert_int_equal(module.words[0], 0x07230203);
    return module;
}

static void same(const smg_spirv_module *a, const smg_spirv_module *b) {
    assert_int_equal(a->word_count, b->word_count);
    assert_memory_equal(a->words, b->words, a->word_count * 4);
}

static void test_versions(void **state) {
    (void)state;
    fixture f;
    begin(&f, false);
    static const struct {
        int version;
        uint32_t word;
    } rows[] = {{0, 0x10300}, {13, 0x10300}, {14, 0x10400}, {15, 0x10500}, {16, 0x10600}};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        const smg_spirv_options options = {.version = rows[i].version};
        smg_spirv_module module = compile(&f, good_text, &options);
        assert_int_equal(module.words[1], rows[i].word);
        assert_false(module.from_cache);
    }
    smg_spirv_module module;
    const smg_spirv_options wrong = {.version = 12};
    assert_int_equal(smg_spirv_compile(f.compiler, f.arena, "old", good_text, &wrong, &module), SMG_INVALID);
    end(&f);
}

/* A product of 16x16x16 of factors of that type, which memory has as the other one; `more` stands before its end. */
static const char *matrix_text(fixture *f, const char *head, const char *type, const char *memory, const char *more) {
    return smg_arena_format(f->arena,
                            "#version 450\n"
                            "#extension GL_KHR_cooperative_matrix : require\n"
                            "#extension GL_KHR_memory_scope_semantics : require\n"
                            "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                            "%s"
                            "layout(local_size_x = 32) in;\n"
                            "layout(std430, binding = 0) buffer A { %s a[]; };\n"
                            "layout(std430, binding = 1) buffer C { float c[]; };\n"
                            "void main() {\n"
                            "    coopmat<%s, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> x;\n"
                            "    coopmat<%s, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> y;\n"
                            "    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> z =\n"
                            "        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);\n"
                            "    coopMatLoad(x, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n"
                            "    coopMatLoad(y, a, 256, 16, gl_CooperativeMatrixLayoutRowMajor);\n"
                            "%s"
                            "    coopMatStore(coopMatMulAdd(x, y, z), c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n"
                            "}\n",
                            head, memory, type, type, more);
}

static void test_matrix(void **state) {
    (void)state;
    fixture f;
    begin(&f, false);
    const smg_spirv_options options = {.version = 16};
    (void)compile(&f, matrix_text(&f, "", "float16_t", "float16_t", ""), &options);
    end(&f);
}

/* ---- bfloat16 ---------------------------------------------------------------------------------------- */

static const char bf16_head[] =
    "#extension GL_EXT_spirv_intrinsics : require\n"
    "#define bf16 spirv_type(extensions = [\"SPV_KHR_bfloat16\"], capabilities = [5116, 5118], id = 22, 16, 0)\n"
    "spirv_instruction(id = 124) bf16 of_bits(uint16_t bits);\n"
    "spirv_instruction(id = 129) bf16 sum(bf16 a, bf16 b);\n";

/* How often one instruction stands in the module. */
static int count_of(const uint32_t *words, size_t count, const uint32_t *instruction, size_t length) {
    int found = 0;
    for (size_t at = 5; at < count; at += words[at] >> 16) {
        assert_true(words[at] >> 16 > 0 && words[at] >> 16 <= count - at);
        bool same = words[at] >> 16 == length;
        for (size_t i = 0; i < length && same; i++)
            same = instruction[i] == UINT32_MAX || instruction[i] == words[at + i];
        found += same;
    }
    return found;
}

static const uint32_t has_type[] = {2u << 16 | 17, 5116}, has_matrix[] = {2u << 16 | 17, 5118},
                      bf16_type[] = {4u << 16 | 22, UINT32_MAX, 16, 0}, stand_in[] = {4u << 16 | 21, UINT32_MAX, 16, 1};

/* The compiler's words are bfloat16's; tools that do not know it see the rest of them, with an integer in its place. */
static void test_bf16(void **state) {
    (void)state;
    fixture f;
    begin(&f, false);
    smg_spirv_module made =
        compile(&f, matrix_text(&f, bf16_head, "bf16", "uint16_t", "    x[0] = of_bits(a[7]);\n"), NULL);
    const uint32_t *w = made.words;
    size_t n = made.word_count;
    assert_true(smg_spirv_has_bf16(w, n));
    assert_int_equal(count_of(w, n, has_type, 2) + count_of(w, n, has_matrix, 2) + count_of(w, n, bf16_type, 4), 3);
    assert_int_equal(count_of(w, n, stand_in, 4), 0);
    uint32_t *out = SMG_ARENA_ARRAY(f.arena, uint32_t, n);
    assert_non_null(out);
    assert_int_equal(smg_spirv_without_bf16(w, n, out), n - 2 - 6); /* a capability and the extension's name */
    assert_false(smg_spirv_has_bf16(out, n - 8));
    assert_int_equal(count_of(out, n - 8, has_matrix, 2) + count_of(out, n - 8, bf16_type, 4), 0);
    assert_int_equal(count_of(out, n - 8, stand_in, 4), 1);
    for (size_t cut = 0; cut < n; cut++) assert_true(smg_spirv_without_bf16(w, cut, out) <= cut);
    smg_text text;
    smg_text_init(&text, f.ctx);
    assert_int_equal(smg_spirv_disassemble(f.compiler, w, n, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "OpCooperativeMatrixMulAddKHR"));
    smg_text_free(&text);
    end(&f);
}

/* It has no arithmetic: whoever validates says so, also with the integer in its place. */
static void test_bf16_sum(void **state) {
    (void)state;
    fixture f;
    begin(&f, false);
    smg_spirv_module module;
    const char *text =
        matrix_text(&f, bf16_head, "bf16", "uint16_t", "    x[0] = sum(of_bits(a[7]), of_bits(a[8]));\n");
    assert_int_equal(smg_spirv_compile(f.compiler, f.arena, "sum", text, NULL, &module), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f.ctx), "kernel 'sum': invalid SPIR-V"));
    end(&f);
}

static void test_errors(void **state) {
    (void)state;
    fixture f;
    begin(&f, true);
    smg_text text;
    smg_text_init(&text, f.ctx);
    smg_text_add(&text, "#version 450\nvoid main() {\n");
    for (int i = 0; i < 500; i++) smg_text_addf(&text, "    int x%d = unknown_%d;\n", i, i);
    smg_text_add(&text, "}\n");
    smg_spirv_module module;
    assert_int_equal(smg_spirv_compile(f.compiler, f.arena, "broken", smg_text_cstr(&text), NULL, &module), SMG_FORMAT);
    const char *error = smg_context_error(f.ctx);
    assert_non_null(strstr(error, "'broken'"));
    assert_non_null(strstr(error, "unknown_0"));
    assert_true(strlen(error) < 480 && !strchr(error, '\n'));
    assert_null(module.words);
    smg_context_clear_error(f.ctx);
    char path[1024];
    assert_false(entry(&f, 0, path, sizeof path));
    static const uint32_t nonsense[6] = {0x07230203, 0x10300, 0, 1, 0, 0xffffffff};
    assert_int_equal(smg_spirv_validate(f.compiler, "foreign", nonsense, 6, 13), SMG_INTERNAL);
    assert_non_null(strstr(smg_context_error(f.ctx), "'foreign'"));
    smg_text_free(&text);
    end(&f);
}

static void test_listing(void **state) {
    (void)state;
    fixture f;
    begin(&f, false);
    smg_spirv_module module = compile(&f, good_text, NULL);
    smg_text text;
    smg_text_init(&text, f.ctx);
    assert_int_equal(smg_spirv_disassemble(f.compiler, module.words, module.word_count, &text), SMG_OK);
    assert_non_null(strstr(smg_text_cstr(&text), "OpGroupNonUniformFAdd"));
    smg_text_free(&text);
    end(&f);
}

static void test_cache(void **state) {
    (void)state;
    fixture f;
    begin(&f, true);
    char path[1024];
    smg_spirv_module first = compile(&f, good_text, NULL);
    assert_false(first.from_cache);
    smg_spirv_module second = compile(&f, good_text, NULL);
    assert_true(second.from_cache);
    same(&first, &second);
    const smg_spirv_options newer = {.version = 16};
    assert_false(compile(&f, good_text, &newer).from_cache);
    const smg_spirv_options kept = {.keep = true};
    assert_false(compile(&f, good_text, &kept).from_cache);
    assert_true(entry(&f, 2, path, sizeof path));
    assert_false(entry(&f, 3, path, sizeof path));
    assert_int_equal(f.warnings, 0);
    end(&f);
}

static void write_file(const char *path, const char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_corruption(void **state) {
    (void)state;
    fixture f;
    begin(&f, true);
    char path[1024], *data = NULL;
    size_t size = 0;
    smg_spirv_module first = compile(&f, good_text, NULL);
    assert_true(entry(&f, 0, path, sizeof path));
    assert_int_equal(smg_file_read(f.ctx, path, &data, &size), SMG_OK);
    for (size_t step = 0; step < size; step += 1 + step / 8) { /* cut, then a flipped bit */
        for (int kind = 0; kind < 2; kind++) {
            data[step] = (char)(data[step] ^ (kind ? 4 : 0));
            write_file(path, data, kind ? size : step);
            int before = f.warnings;
            smg_spirv_module again = compile(&f, good_text, NULL);
            assert_false(again.from_cache);
            assert_int_equal(f.warnings, before + 1);
            same(&first, &again);
            data[step] = (char)(data[step] ^ (kind ? 4 : 0));
            assert_true(compile(&f, good_text, NULL).from_cache);
        }
    }
    smg_free(f.ctx, data, size + 1);
    end(&f);
}

static void test_unwritable(void **state) {
    (void)state;
    fixture f;
    begin(&f, true);
    char path[1024];
    snprintf(path, sizeof path, "%s/spirv", f.folder);
    write_file(path, "in the way", 10); /* a file where the folder should be */
    assert_false(compile(&f, good_text, NULL).from_cache);
    assert_int_equal(f.warnings, 1);
    assert_string_equal(smg_context_error(f.ctx), "");
    assert_int_equal(remove(path), 0);
    end(&f);
}

static void test_two_processes(void **state) {
    (void)state;
    fixture f;
    begin(&f, true);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        bool good = true;
        for (int round = 0; round < 20; round++) {
            char text[1024], path[1024];
            snprintf(text, sizeof text, "%s// %d\n", good_text, round);
            smg_spirv_module module;
            good = good && smg_spirv_compile(f.compiler, f.arena, "shared", text, NULL, &module) == SMG_OK;
            if (round % 4 == 3 && entry(&f, 0, path, sizeof path)) (void)remove(path);
        }
        _exit(good && f.warnings == 0 ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),   cmocka_unit_test(test_matrix),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_listing),    cmocka_unit_test(test_cache),         cmocka_unit_test(test_corruption),
        cmocka_unit_test(test_unwritable), cmocka_unit_test(test_two_processes), cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_bf16_sum),
    };
    return cmocka_run_group_tests_name("spirv", tests, NULL, NULL);
}
