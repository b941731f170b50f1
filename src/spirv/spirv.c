/* One compilation: cache, shaderc, validator, cache. A kernel's compile error can be thousands of
 * lines, so only its first lines go into the sentence. */
#include "spirv/spirv_private.h"

#include <stdatomic.h>

#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>

enum { MESSAGE_BYTES = 400, DEFAULT_VERSION = 13 };

struct smg_spirv_compiler {
    smg_context *ctx;
    shaderc_compiler_t shaderc;
};

typedef struct environment {
    int version;
    shaderc_env_version vulkan;
    shaderc_spirv_version spirv;
    spv_target_env validator;
} environment;

static const environment environments[] = {
    {13, shaderc_env_version_vulkan_1_1, shaderc_spirv_version_1_3, SPV_ENV_VULKAN_1_1},
    {14, shaderc_env_version_vulkan_1_2, shaderc_spirv_version_1_4, SPV_ENV_VULKAN_1_1_SPIRV_1_4},
    {15, shaderc_env_version_vulkan_1_2, shaderc_spirv_version_1_5, SPV_ENV_VULKAN_1_2},
    {16, shaderc_env_version_vulkan_1_3, shaderc_spirv_version_1_6, SPV_ENV_VULKAN_1_3},
};

const char *smg_spirv_tools_version(void) {
    return spvSoftwareVersionDetailsString();
}

static smg_status find_environment(smg_context *ctx, const char *name, int version,
                                   const environment **out_environment) {
    for (size_t i = 0; i < SMG_COUNT_OF(environments); i++) {
        if (environments[i].version != (version ? version : DEFAULT_VERSION)) continue;
        *out_environment = &environments[i];
        return SMG_OK;
    }
    return smg_fail(ctx, SMG_INVALID, "kernel '%s': SPIR-V version %d is not 13, 14, 15 or 16", name, version);
}

smg_status smg_spirv_compiler_create(smg_context *ctx, smg_spirv_compiler **out_compiler) {
    *out_compiler = NULL;
    smg_spirv_compiler *compiler = smg_alloc(ctx, 1, sizeof *compiler);
    if (!compiler) return SMG_MEMORY;
    compiler->ctx = ctx;
    compiler->shaderc = shaderc_compiler_initialize();
    if (!compiler->shaderc) {
        smg_free(ctx, compiler, sizeof *compiler);
        return smg_fail(ctx, SMG_MEMORY, "shaderc could not be initialised");
    }
    *out_compiler = compiler;
    return SMG_OK;
}

void smg_spirv_compiler_destroy(smg_spirv_compiler *compiler) {
    if (!compiler) return;
    shaderc_compiler_release(compiler->shaderc);
    smg_free(compiler->ctx, compiler, sizeof *compiler);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The first MESSAGE_BYTES of a message at most, on one line, cut where a line ends if possible. */
static void trim_message(const char *message, char out[MESSAGE_BYTES + 8]) {
    size_t length = 0, line_end = 0;
    while (message[length] && length < MESSAGE_BYTES) {
        out[length] = message[length] == '\n' ? ' ' : message[length];
        if (message[length] == '\n') line_end = length;
        length++;
    }
    bool cut = message[length] != 0;
    if (cut && line_end > 0) length = line_end;
    while (length > 0 && out[length - 1] == ' ') length--;
    memcpy(out + length, cut ? " ..." : "", cut ? 5 : 1);
}

/* ---- validation and listing ------------------------------------------------------------------ */

/* Is bfloat16 in the grammar of this SPIRV-Tools? */
static bool knows_bf16(spv_context tools) {
    static const char text[] = "OpCapability BFloat16TypeKHR";
    spv_binary words = NULL;
    bool known = spvTextToBinary(tools, text, sizeof text - 1, &words, NULL) == SPV_SUCCESS;
    spvBinaryDestroy(words);
    return known;
}

/* A module as the tools know it: its words, or a copy. */
typedef struct known_words {
    const uint32_t *words;
    size_t count, room; /* of the copy; 0: there is none */
    uint32_t *copy;
} known_words;

static smg_status take_known(smg_context *ctx, spv_context tools, const uint32_t *words, size_t count,
                             known_words *out) {
    *out = (known_words){.words = words, .count = count};
    if (!smg_spirv_has_bf16(words, count) || knows_bf16(tools)) return SMG_OK;
    out->copy = smg_alloc(ctx, count, sizeof *out->copy);
    if (!out->copy) return SMG_MEMORY;
    out->room = count;
    out->words = out->copy;
    out->count = smg_spirv_without_bf16(words, count, out->copy);
    return SMG_OK;
}

static void free_known(smg_context *ctx, const known_words *known) {
    smg_free(ctx, known->copy, known->room * sizeof *known->copy);
}

static smg_status validate(smg_context *ctx, const char *name, const uint32_t *words, size_t word_count,
                           spv_target_env target) {
    spv_context tools = spvContextCreate(target);
    if (!tools) return smg_fail(ctx, SMG_MEMORY, "SPIRV-Tools could not be initialised");
    known_words known;
    spv_diagnostic diagnostic = NULL;
    smg_status status = take_known(ctx, tools, words, word_count, &known);
    spv_const_binary_t binary = {known.words, known.count};
    if (status == SMG_OK && spvValidate(tools, &binary, &diagnostic) != SPV_SUCCESS) {
        char message[MESSAGE_BYTES + 8];
        trim_message(diagnostic && diagnostic->error ? diagnostic->error : "no reason given", message);
        status = smg_fail(ctx, SMG_INTERNAL, "kernel '%s': invalid SPIR-V: %s", name, message);
    }
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(tools);
    free_known(ctx, &known);
    return status;
}

smg_status smg_spirv_validate(smg_spirv_compiler *compiler, const char *name, const uint32_t *words, size_t word_count,
                              int version) {
    const environment *target = NULL;
    SMG_TRY(find_environment(compiler->ctx, name, version, &target));
    return validate(compiler->ctx, name, words, word_count, target->validator);
}

smg_status smg_spirv_disassemble(smg_spirv_compiler *compiler, const uint32_t *words, size_t word_count,
                                 smg_text *text) {
    spv_context tools = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    if (!tools) return smg_fail(compiler->ctx, SMG_MEMORY, "SPIRV-Tools could not be initialised");
    spv_text listing = NULL;
    spv_diagnostic diagnostic = NULL;
    const uint32_t options = SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
    known_words known;
    smg_status status = take_known(compiler->ctx, tools, words, word_count, &known);
    if (status == SMG_OK &&
        spvBinaryToText(tools, known.words, known.count, options, &listing, &diagnostic) == SPV_SUCCESS)
        smg_text_add_n(text, listing->str, listing->length);
    else if (status == SMG_OK)
        status = smg_fail(compiler->ctx, SMG_FORMAT, "these %zu words are not SPIR-V", word_count);
    spvTextDestroy(listing);
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(tools);
    free_known(compiler->ctx, &known);
    return status == SMG_OK ? smg_text_status(text) : status;
}

/* ---- compilation ----------------------------------------------------------------------------- */

static smg_status take_result(smg_spirv_compiler *compiler, smg_arena *arena, const char *name,
                              shaderc_compilation_result_t result, smg_spirv_module *out_module) {
    shaderc_compilation_status status = shaderc_result_get_compilation_status(result);
    if (status != shaderc_compilation_status_success) {
        char message[MESSAGE_BYTES + 8];
        trim_message(shaderc_result_get_error_message(result), message);
        return smg_fail(compiler->ctx,
                        status == shaderc_compilation_status_compilation_error ? SMG_FORMAT : SMG_INTERNAL,
                        "kernel '%s' does not compile: %s", name, message);
    }
    size_t bytes = shaderc_result_get_length(result);
    uint32_t *words = SMG_ARENA_ARRAY(arena, uint32_t, bytes / 4);
    if (!words) return SMG_MEMORY;
    memcpy(words, shaderc_result_get_bytes(result), bytes / 4 * 4);
    *out_module = (smg_spirv_module){words, bytes / 4, false};
    return SMG_OK;
}

/* Touches neither context nor arena, so that several threads may call it. NULL: out of memory. */
static shaderc_compilation_result_t run_shaderc(shaderc_compiler_t compiler, const char *name, const char *text,
                                                const environment *target, const smg_spirv_options *choice) {
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    if (!options) return NULL;
    shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan, target->vulkan);
    shaderc_compile_options_set_target_spirv(options, target->spirv);
    shaderc_compile_options_set_optimization_level(options, shaderc_optimization_level_zero);
    if (choice->keep) shaderc_compile_options_set_generate_debug_info(options);
    shaderc_compilation_result_t result =
        shaderc_compile_into_spv(compiler, text, strlen(text), shaderc_compute_shader, name, "main", options);
    shaderc_compile_options_release(options);
    return result;
}

typedef struct compile_run {
    smg_spirv_compiler *compiler;
    const environment *target;
    const smg_spirv_options *options;
    const smg_spirv_job *jobs;
    const int *todo; /* jobs that the cache does not have */
    shaderc_compilation_result_t *results;
    int left;
    atomic_int started;
    uint64_t caller; /* the thread that may report progress */
} compile_run;

static void compile_some(void *user, int64_t begin, int64_t end) {
    compile_run *run = user;
    for (int64_t i = begin; i < end; i++) {
        const smg_spirv_job *job = &run->jobs[run->todo[i]];
        int started = atomic_fetch_add(&run->started, 1);
        if (smg_thread_self() == run->caller)
            smg_progress(run->compiler->ctx, "compile", (size_t)started, (size_t)run->left, job->name);
        run->results[i] = run_shaderc(run->compiler->shaderc, job->name, job->text, run->target, run->options);
    }
}

static smg_status finish_job(const compile_run *run, int i, smg_arena *arena, smg_spirv_key key, smg_spirv_job *job) {
    smg_context *ctx = run->compiler->ctx;
    if (!run->results[i]) return smg_fail(ctx, SMG_MEMORY, "kernel '%s': shaderc gave nothing", job->name);
    SMG_TRY(take_result(run->compiler, arena, job->name, run->results[i], &job->module));
    SMG_TRY(validate(ctx, job->name, job->module.words, job->module.word_count, run->target->validator));
    smg_spirv_cache_write(ctx, arena, key, &job->module);
    return SMG_OK;
}

smg_status smg_spirv_compile_all(smg_spirv_compiler *compiler, smg_arena *arena, smg_spirv_job *jobs, int count,
                                 const smg_spirv_options *options) {
    const smg_spirv_options defaults = {0};
    if (!options) options = &defaults;
    if (count < 1) return SMG_OK;
    compile_run run = {.compiler = compiler, .options = options, .jobs = jobs};
    SMG_TRY(find_environment(compiler->ctx, jobs[0].name, options->version, &run.target));
    int *todo = SMG_ARENA_ARRAY(arena, int, (size_t)count);
    smg_spirv_key *keys = SMG_ARENA_ARRAY(arena, smg_spirv_key, (size_t)count);
    run.results = SMG_ARENA_ARRAY(arena, shaderc_compilation_result_t, (size_t)count);
    if (!todo || !keys || !run.results) return SMG_MEMORY;
    int left = 0;
    for (int i = 0; i < count; i++) {
        keys[left] = smg_spirv_key_of(jobs[i].text, run.target->version, options);
        jobs[i].module = (smg_spirv_module){0};
        bool found;
        SMG_TRY(smg_spirv_cache_read(compiler->ctx, arena, keys[left], jobs[i].name, &jobs[i].module, &found));
        if (!found) todo[left++] = i;
    }
    run.todo = todo;
    run.left = left;
    run.caller = smg_thread_self();
    atomic_init(&run.started, 0);
    smg_parallel_for(left, 1, compile_some, &run);
    if (left > 0) smg_progress(compiler->ctx, "compile", (size_t)left, (size_t)left, "");
    smg_status status = SMG_OK;
    for (int i = 0; i < left; i++) {
        if (status == SMG_OK) status = finish_job(&run, i, arena, keys[i], &jobs[todo[i]]);
        shaderc_result_release(run.results[i]);
    }
    return status;
}

smg_status smg_spirv_compile(smg_spirv_compiler *compiler, smg_arena *arena, const char *name, const char *text,
                             const smg_spirv_options *options, smg_spirv_module *out_module) {
    smg_spirv_job job = {.name = name, .text = text};
    smg_status status = smg_spirv_compile_all(compiler, arena, &job, 1, options);
    *out_module = status == SMG_OK ? job.module : (smg_spirv_module){0};
    return status;
}
