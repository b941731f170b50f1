/* compile_ahead.c: a source compiled for several targets, as one file (smg compile).
 *
 * Each target is compiled as a model is when it is opened, with all its run lists; plans and SPIR-V come from the
 * caches where they have them. Everything stays in memory until the file is written: classes share constants. */
#include "compile/compile.h"

typedef struct ahead {
    smg_context *ctx;
    smg_arena *arena;
    smg_source *source;
    smg_compilation **compilations;
    smg_bfile_class_desc *classes;
    int count;
} ahead;

static bool all_made(const smg_bundle *bundle) {
    for (int i = 0; i < bundle->variants.count; i++)
        if (!bundle->variants.items[i].made) return false;
    return true;
}

/* *io_options: as its plan was made. */
static smg_status compile_first_list(ahead *a, const smg_ahead_target *target, smg_compile_options *io_options,
                                     smg_compilation **out) {
    const smg_graph *g = a->source->graph;
    if (target->built_on == NULL) return smg_compile_open(a->ctx, g, &target->target, io_options, out);
    return smg_compile_for_driver(a->ctx, g, &target->target, target->built_on, a->arena, io_options, out);
}

static smg_status compile_other_lists(smg_compilation *c) {
    for (int i = 0; i < c->variant_count; i++) SMG_TRY(smg_compile_variant(c, i));
    return SMG_OK;
}

static smg_status compile_class(ahead *a, const smg_ahead_target *target, const smg_compile_options *options) {
    smg_compilation **c = &a->compilations[a->count];
    smg_compile_options own = *options;
    smg_status status = compile_first_list(a, target, &own, c);
    if (status == SMG_OK) status = compile_other_lists(*c);
    if (status == SMG_OK && !all_made((*c)->bundle)) { /* a kept plan that no other list can be added to */
        own.no_plan_cache = true;
        smg_compilation_destroy(*c);
        *c = NULL;
        status = compile_first_list(a, target, &own, c);
        if (status == SMG_OK) status = compile_other_lists(*c);
    }
    a->count += *c != NULL;
    smg_bundle *bundle = status == SMG_OK ? (*c)->bundle : NULL;
    if (status == SMG_OK && target->prepare_on != NULL)
        status = smg_compile_prepared(bundle, &target->target, target->prepare_on, a->arena, &bundle);
    if (status != SMG_OK) return smg_fail_within(a->ctx, status, "target '%s'", target->name);
    a->classes[a->count - 1] = (smg_bfile_class_desc){
        .name = target->name, .match = target->match, .bundle = bundle, .target = &target->target};
    return SMG_OK;
}

static smg_status write_classes(ahead *a, const smg_compile_options *options, const char *path) {
    smg_interface *whole = NULL, *interface = NULL;
    SMG_TRY(smg_compile_interface(a->arena, a->source->graph, a->source, &whole));
    SMG_TRY(smg_interface_copy(a->arena, whole, a->compilations[0]->bundle->sizes, &interface));
    memcpy(interface->nominal, a->compilations[0]->nominal,
           (size_t)smg_size_symbol_count(interface->sizes) * sizeof(*interface->nominal));
    const smg_bfile_desc desc = {.model = a->source->graph->name,
                                 .precision = smg_type_word(options->precision),
                                 .maker = "smg " SMG_VERSION,
                                 .interface = interface,
                                 .classes = a->classes,
                                 .class_count = a->count};
    return smg_bfile_write(a->ctx, &desc, path);
}

smg_status smg_compile_ahead(smg_context *ctx, smg_source *source, const smg_ahead_target *targets, int count,
                             const smg_compile_options *options, const char *path) {
    ahead a = {.ctx = ctx, .source = source};
    if (count < 1) return smg_fail(ctx, SMG_INVALID, "a bundle needs a target");
    SMG_TRY(smg_arena_create(ctx, &a.arena));
    a.compilations = SMG_ARENA_ARRAY(a.arena, smg_compilation *, (size_t)count);
    a.classes = SMG_ARENA_ARRAY(a.arena, smg_bfile_class_desc, (size_t)count);
    smg_status status = a.compilations != NULL && a.classes != NULL ? SMG_OK : SMG_MEMORY;
    for (int i = 0; i < count && status == SMG_OK; i++) {
        for (int other = 0; other < i && status == SMG_OK; other++)
            if (strcmp(targets[other].name, targets[i].name) == 0)
                status = smg_fail(ctx, SMG_INVALID, "target '%s' is given twice", targets[i].name);
        if (status == SMG_OK) status = compile_class(&a, &targets[i], options);
    }
    if (status == SMG_OK) status = write_classes(&a, options, path);
    for (int i = 0; i < a.count; i++) smg_compilation_destroy(a.compilations[i]);
    smg_arena_destroy(a.arena);
    return status;
}
