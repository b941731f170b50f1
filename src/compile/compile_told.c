/* compile_told.c: include/smg/compile.h: what is told of a compilation: facts, texts, results beside the reference. */
#include "compile/compile.h"

smg_status smg_compilation_get_facts(const smg_compilation *c, smg_compilation_facts *out) {
    if (c == NULL || out == NULL) return SMG_INVALID;
    *out = (smg_compilation_facts){.graph = c->source->name,
                                   .target = c->target.name,
                                   .driver = c->target.driver,
                                   .operations = smg_compile_op_count(c->source),
                                   .operations_rewritten = c->run_ops,
                                   .kernels = smg_compile_kernel_count(c),
                                   .modules = c->bundle != NULL ? c->bundle->modules.count : -1,
                                   .modules_cached = c->modules_cached,
                                   .rejected = c->options.driver.rejected_count,
                                   .from_cache = c->from_cache,
                                   .plan_seconds = c->seconds.rewrite + c->seconds.plan,
                                   .glsl_seconds = c->seconds.glsl,
                                   .spirv_seconds = c->seconds.spirv,
                                   .cache_seconds = c->seconds.cache};
    smg_compile_work(c, &out->bytes, &out->flops, &out->estimate);
    return SMG_OK;
}

/* ---- texts -------------------------------------------------------------------------------------------- */

/* Is there what the description asks for? */
static smg_status check_kept(const smg_compilation *c, const smg_explain_desc *desc) {
    bool reports = desc->form == SMG_EXPLAIN_REPORT || desc->form == SMG_EXPLAIN_REPORT_JSON;
    bool text = desc->form == SMG_EXPLAIN_TEXT && desc->phase != NULL;
    if ((int)desc->form < SMG_EXPLAIN_TEXT || desc->form > SMG_EXPLAIN_DOT)
        return smg_fail(c->ctx, SMG_INVALID, "smg_explain_desc: there is no form %d", (int)desc->form);
    if (c->plan == NULL)
        return smg_fail(c->ctx, SMG_INVALID,
                        "the plan of '%s' was kept from an earlier open: smg_source_compile makes one to explain",
                        c->source->name);
    const char *lacks = reports && !c->options.report                                          ? "report"
                        : text && strcmp(desc->phase, "search") == 0 && !c->options.search     ? "search"
                        : text && strcmp(desc->phase, "lower") == 0 && !c->options.keep_passes ? "passes"
                                                                                               : NULL;
    if (lacks != NULL)
        return smg_fail(c->ctx, SMG_INVALID, "'%s' was compiled without smg_compile_desc.%s", c->source->name, lacks);
    return SMG_OK;
}

static smg_status tell(smg_compilation *c, const smg_explain_desc *desc, smg_text *text) {
    const smg_explain_options options = {
        .phase = desc->phase, .kernel = desc->kernel, .after = desc->after, .prices = desc->prices};
    switch (desc->form) {
    case SMG_EXPLAIN_TEXT: return smg_compile_explain(c, &options, text);
    case SMG_EXPLAIN_JSON: return smg_compile_explain_json(c, text);
    case SMG_EXPLAIN_REPORT: return smg_compile_report(c, text);
    case SMG_EXPLAIN_REPORT_JSON: return smg_compile_report_json(c, text);
    case SMG_EXPLAIN_DOT: return smg_compile_dot(c, desc->kernel, text);
    }
    return SMG_OK;
}

static smg_status explain(smg_compilation *c, const smg_explain_desc *desc, smg_sink sink) {
    static const smg_explain_desc nothing = {0};
    smg_text text;
    if (desc == NULL) desc = &nothing;
    SMG_TRY(check_kept(c, desc));
    smg_text_init(&text, c->ctx);
    smg_status status = tell(c, desc, &text);
    if (status == SMG_OK) return smg_text_give(&text, sink);
    smg_text_free(&text);
    return status;
}

smg_status smg_compilation_explain(smg_compilation *c, const smg_explain_desc *desc, smg_sink sink) {
    if (c == NULL) return SMG_INVALID;
    smg_context_clear_error(c->ctx);
    return smg_context_told(c->ctx, explain(c, desc, sink));
}

/* ---- arrays that are a run's ---------------------------------------------------------------------------- */

static bool has_input(const smg_graph *g, const char *name) {
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        const smg_node *node = smg_graph_node(g, id);
        if (smg_node_is_input(node) && strcmp(node->name, name) == 0) return true;
    }
    return false;
}

/* Are they for the graph, with sizes and all inputs? */
static smg_status check_inputs(const smg_compilation *c, const smg_arrays *a) {
    const smg_graph *g = c->source;
    if (a == NULL) return smg_fail(c->ctx, SMG_INVALID, "'%s': the arrays are NULL", g->name);
    const smg_interface *n = a->interface;
    int symbols = smg_size_symbol_count(g->sizes);
    bool same = smg_sizes_same_symbols(n->sizes, g->sizes) && n->output_count == g->outputs.count &&
                n->input_count == smg_graph_input_nodes(g, NULL, 0);
    for (int i = 0; same && i < n->input_count; i++) same = has_input(g, n->inputs[i].name);
    for (int i = 0; same && i < n->output_count; i++) same = strcmp(n->outputs[i].name, g->outputs.items[i].name) == 0;
    if (!same) return smg_fail(c->ctx, SMG_INVALID, "the arrays are for another model than '%s'", g->name);
    if (!a->settled && symbols > 0)
        return smg_fail(c->ctx, SMG_INVALID, "'%s': the sizes of the arrays are not settled", g->name);
    for (int i = 0; i < n->input_count; i++)
        if (a->inputs[i].data == NULL)
            return smg_fail(c->ctx, SMG_INVALID, "input '%s' has no data", n->inputs[i].name);
    return SMG_OK;
}

static smg_status check_outputs(const smg_compilation *c, const smg_arrays *a) {
    SMG_TRY(check_inputs(c, a));
    for (int i = 0; i < a->interface->output_count; i++)
        if (a->outputs[i].data == NULL)
            return smg_fail(c->ctx, SMG_INVALID, "output '%s' has no data: there was no run", a->outputs[i].name);
    return SMG_OK;
}

static smg_status interpret(smg_compilation *c, smg_arrays *a) {
    smg_arena *room = NULL;
    SMG_TRY(check_inputs(c, a));
    if (c->plan == NULL)
        return smg_fail(c->ctx, SMG_INVALID, "'%s' was kept from an earlier open, without kernels to interpret",
                        c->source->name);
    SMG_TRY(smg_arena_create(c->ctx, &room));
    smg_status status = smg_compile_interpret(c, a->symbols, a->inputs, a->interface->input_count, room, a->outputs);
    if (status != SMG_OK) {
        for (int i = 0; i < a->interface->output_count; i++) a->outputs[i].data = NULL;
        smg_arena_destroy(room);
        return status;
    }
    smg_arena_destroy(a->output_room);
    a->output_room = room;
    return SMG_OK;
}

smg_status smg_compilation_interpret(smg_compilation *c, smg_arrays *arrays) {
    if (c == NULL) return SMG_INVALID;
    smg_context_clear_error(c->ctx);
    return smg_context_told(c->ctx, interpret(c, arrays));
}

/* ---- beside the reference ------------------------------------------------------------------------------- */

/* The result with the arena that it lies in. */
typedef struct checked {
    smg_check told; /* first: it is what callers have */
    smg_arena *arena;
} checked;

static smg_status check(smg_compilation *c, smg_arrays *a, smg_check **out_check) {
    smg_arena *arena = NULL;
    SMG_TRY(check_outputs(c, a));
    SMG_TRY(smg_arena_create(c->ctx, &arena));
    checked *k = SMG_ARENA_NEW(arena, checked);
    smg_status status = k != NULL ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK)
        status = smg_compile_check(c->ctx, c->source, smg_compile_roundings(c), a->symbols, a->inputs,
                                   a->interface->input_count, a->outputs, arena, &k->told);
    if (status != SMG_OK) {
        smg_arena_destroy(arena);
        return status;
    }
    k->arena = arena;
    *out_check = &k->told;
    return SMG_OK;
}

smg_status smg_compilation_check(smg_compilation *c, smg_arrays *arrays, smg_check **out_check) {
    if (out_check == NULL) return SMG_INVALID;
    *out_check = NULL;
    if (c == NULL) return SMG_INVALID;
    smg_context_clear_error(c->ctx);
    return smg_context_told(c->ctx, check(c, arrays, out_check));
}

void smg_check_destroy(smg_check *told) {
    if (told != NULL) smg_arena_destroy(((checked *)(void *)told)->arena);
}

static smg_status find_overflow(smg_compilation *c, smg_arrays *a, smg_overflow_info *out) {
    smg_arena *scratch = NULL;
    smg_overflow found = {0};
    SMG_TRY(check_inputs(c, a));
    SMG_TRY(smg_arena_create(c->ctx, &scratch));
    smg_status status = smg_compile_find_overflow(c, a->symbols, a->inputs, a->interface->input_count, scratch, &found);
    if (status == SMG_OK && found.value != NULL)
        *out = (smg_overflow_info){.value = found.value,
                                   .type = smg_type_word(found.type),
                                   .size = found.size,
                                   .limit = smg_type_limit(found.type),
                                   .count = found.count};
    smg_arena_destroy(scratch);
    return status;
}

smg_status smg_compilation_find_overflow(smg_compilation *c, smg_arrays *arrays, smg_overflow_info *out_overflow) {
    if (out_overflow == NULL) return SMG_INVALID;
    *out_overflow = (smg_overflow_info){0};
    if (c == NULL) return SMG_INVALID;
    smg_context_clear_error(c->ctx);
    return smg_context_told(c->ctx, find_overflow(c, arrays, out_overflow));
}
