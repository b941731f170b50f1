/* compile_bundle.c: plans as a bundle: buffers, modules, prepare list, run lists.
 *
 * A buffer stands for a node whose value lies in memory: an input, a constant, what the prepare list derives
 * from constants, an output, or a temporary that lives from the step that writes it to the last that reads
 * it. A module is one text: kernels that
 * differ in names only (the same block of every layer) are written with plain names, so that they are
 * one text, compiled once. */
#include "compile/compile.h"
#include "glsl/glsl.h"

typedef struct smg_bundler {
    smg_compilation *c;
    smg_bundle *bundle;
    bool preparing;                /* the step at hand is of the prepare list */
    int variant;                   /* the run list at hand */
    int *buffer_of;                /* node -> buffer, -1 */
    int *own;                      /* the same for nodes that only the graph of the list at hand has */
    smg_map *modules;              /* two hashes of a text -> module index */
    SMG_ARRAY(smg_spirv_job) jobs; /* of the modules that the list at hand adds, in their order */
    SMG_ARRAY(int *) indices;      /* theirs in `modules` */
    smg_text text;
} smg_bundler;

bool smg_compile_storage(smg_type type, smg_type stored, smg_storage *out_storage) {
    static const struct {
        smg_type type, stored;
        smg_storage storage;
    } rows[] = {
        {SMG_TYPE_F32, SMG_TYPE_F32, SMG_STORE_F32},        {SMG_TYPE_F16, SMG_TYPE_F16, SMG_STORE_F16},
        {SMG_TYPE_BF16, SMG_TYPE_BF16, SMG_STORE_BF16},     {SMG_TYPE_I32, SMG_TYPE_I32, SMG_STORE_I32},
        {SMG_TYPE_I64, SMG_TYPE_I64, SMG_STORE_I64_AS_I32}, {SMG_TYPE_BOOL, SMG_TYPE_BOOL, SMG_STORE_BOOL_AS_U32},
        {SMG_TYPE_F32, SMG_TYPE_F16, SMG_STORE_F32_AS_F16}, {SMG_TYPE_F32, SMG_TYPE_BF16, SMG_STORE_F32_AS_BF16},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        if (rows[i].type != type || rows[i].stored != stored) continue;
        *out_storage = rows[i].storage;
        return true;
    }
    return false;
}

static smg_size import_size(smg_bundler *b, smg_size size) {
    return smg_size_import(b->bundle->sizes, b->c->graph->sizes, size);
}

/* The output row that a stored node's buffer serves, -1: none. */
static int output_of(const smg_graph *g, smg_node_id stored) {
    for (int i = 0; i < g->outputs.count; i++) {
        smg_node_id node = g->outputs.items[i].node;
        while (smg_node_class(smg_graph_node(g, node)) == SMG_CLASS_VIEW) {
            node = smg_graph_node(g, node)->operand[0];
        }
        if (node == stored) return i;
    }
    return -1;
}

/* The graph of the list at hand, as a plan has it. */
static const smg_graph *list_graph(const smg_bundler *b) {
    const smg_plan *plan = b->c->variants[b->variant].plan;
    return b->preparing || plan == NULL ? b->c->graph : plan->graph;
}

/* Where the buffer of a node of that graph is kept: by the node of the compilation's graph that has the same value, so
 * that all lists know it. */
static int *slot_of(smg_bundler *b, smg_node_id id) {
    smg_node_id home = list_graph(b) == b->c->graph ? id : smg_plan_origin(b->c->variants[b->variant].plan, id);
    return home >= 0 ? &b->buffer_of[home] : &b->own[id];
}

static smg_status add_buffer(smg_bundler *b, const smg_graph *g, smg_node_id id, int *io_slot) {
    const smg_node *node = smg_graph_node(g, id);
    const smg_node *shape = node;
    smg_bbuffer *buffer = SMG_ARRAY_PUSH(b->bundle->arena, &b->bundle->buffers);
    if (buffer == NULL) return SMG_MEMORY;
    *io_slot = b->bundle->buffers.count - 1;
    int output = output_of(g, id);
    buffer->first = buffer->last = buffer->source = -1;
    buffer->name = smg_graph_describe(g, id);
    if (smg_node_is_input(node)) {
        buffer->kind = smg_graph_next_of(g, node->name) >= 0 ? SMG_BUFFER_STATE : SMG_BUFFER_INPUT;
        buffer->name = node->name;
    } else if (smg_node_class(node) == SMG_CLASS_LEAF) {
        buffer->kind = SMG_BUFFER_CONSTANT;
        buffer->data = node->data;
    } else if (b->preparing) {
        buffer->kind = SMG_BUFFER_DERIVED;
    } else if (output >= 0) {
        buffer->kind = SMG_BUFFER_OUTPUT;
        buffer->name = g->outputs.items[output].name;
        shape = smg_graph_node(g, g->outputs.items[output].node);
    } else {
        buffer->kind = SMG_BUFFER_TEMPORARY;
        buffer->variant = b->variant;
    }
    if (b->variant > 0 && buffer->kind != SMG_BUFFER_TEMPORARY) {
        return smg_fail(b->c->ctx, SMG_INTERNAL, "run list %d binds '%s', which the first does not", b->variant,
                        smg_graph_describe(g, id));
    }
    buffer->name = smg_arena_string(b->bundle->arena, buffer->name);
    if (buffer->name == NULL) return SMG_MEMORY;
    if (!smg_compile_storage(node->type, smg_graph_storage(g, id), &buffer->storage)) {
        return smg_fail(b->c->ctx, SMG_INTERNAL, "'%s' has type %d", buffer->name, (int)node->type);
    }
    buffer->rank = shape->rank;
    buffer->elements = import_size(b, smg_node_elements(g, id));
    if (buffer->elements == SMG_SIZE_NONE) return smg_context_status(b->c->ctx);
    for (int d = 0; d < shape->rank; d++) {
        buffer->dims[d] = import_size(b, shape->dims[d]);
        if (buffer->dims[d] == SMG_SIZE_NONE) return smg_context_status(b->c->ctx);
    }
    return SMG_OK;
}

/* The buffer of one value of the list at hand. */
static smg_status buffer_for(smg_bundler *b, smg_node_id id, int *out_buffer) {
    int *slot = slot_of(b, id);
    if (*slot < 0) SMG_TRY(add_buffer(b, list_graph(b), id, slot));
    *out_buffer = *slot;
    return SMG_OK;
}

static bool has_members(const smg_bbuffer *stack, const int *members, int count, int64_t stride) {
    return stack->kind == SMG_BUFFER_STACK && stack->member_count == count && stack->stride == stride &&
           memcmp(stack->members, members, (size_t)count * sizeof *members) == 0;
}

/* The buffer that has these values one behind the other; the first run list decides which there are. */
static smg_status stack_for(smg_bundler *b, const smg_kbuffer *kb, int *out_buffer) {
    smg_bundle *bundle = b->bundle;
    int *members = SMG_ARENA_ARRAY(bundle->arena, int, (size_t)kb->each_count);
    if (members == NULL) return SMG_MEMORY;
    for (int i = 0; i < kb->each_count; i++) SMG_TRY(buffer_for(b, kb->each[i], &members[i]));
    for (*out_buffer = 0; *out_buffer < bundle->buffers.count; ++*out_buffer)
        if (has_members(&bundle->buffers.items[*out_buffer], members, kb->each_count, kb->stride)) return SMG_OK;
    if (b->variant > 0)
        return smg_fail(b->c->ctx, SMG_INTERNAL, "run list %d binds a stack of %d values, which the first does not",
                        b->variant, kb->each_count);
    smg_bbuffer *stack = SMG_ARRAY_PUSH(bundle->arena, &bundle->buffers);
    if (stack == NULL) return SMG_MEMORY;
    const smg_bbuffer *first = &bundle->buffers.items[members[0]];
    *stack = (smg_bbuffer){.kind = SMG_BUFFER_STACK,
                           .storage = smg_storage_stored(first->storage),
                           .elements = import_size(b, kb->elements),
                           .first = -1,
                           .last = -1,
                           .source = -1,
                           .member_count = kb->each_count,
                           .members = members,
                           .stride = kb->stride};
    stack->name = smg_arena_format(bundle->arena, "%s and %d more", first->name, kb->each_count - 1);
    return stack->name != NULL && stack->elements != SMG_SIZE_NONE ? SMG_OK : SMG_MEMORY;
}

static smg_status bind_buffers(smg_bundler *b, const smg_kernel *k, smg_bstep *step, int position) {
    step->binding_count = k->buffers.count;
    step->bindings = SMG_ARENA_ARRAY(b->bundle->arena, smg_bbinding, (size_t)k->buffers.count + 1);
    if (step->bindings == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->buffers.count; i++) {
        const smg_kbuffer *kb = &k->buffers.items[i];
        int number = -1;
        SMG_TRY(kb->each != NULL ? stack_for(b, kb, &number) : buffer_for(b, kb->value, &number));
        smg_bbuffer *buffer = &b->bundle->buffers.items[number];
        if (buffer->kind == SMG_BUFFER_TEMPORARY) {
            if (buffer->first < 0 && !kb->written) {
                return smg_fail(b->c->ctx, SMG_INTERNAL, "step '%s' reads '%s' before any writes it", step->name,
                                buffer->name);
            }
            if (buffer->first < 0) buffer->first = position;
            buffer->last = position;
        }
        step->bindings[i] = (smg_bbinding){.buffer = number, .written = kb->written};
    }
    return SMG_OK;
}

static smg_status set_grid(smg_bundler *b, const smg_kernel *k, smg_bstep *step) {
    step->grid_count = k->grid.count;
    step->grid_extent = SMG_ARENA_ARRAY(b->bundle->arena, smg_size, (size_t)k->grid.count + 1);
    step->grid_tile = SMG_ARENA_ARRAY(b->bundle->arena, int64_t, (size_t)k->grid.count + 1);
    if (step->grid_extent == NULL || step->grid_tile == NULL) return SMG_MEMORY;
    for (int i = 0; i < k->grid.count; i++) {
        const smg_kaxis *axis = &k->axes.items[k->grid.items[i]];
        step->grid_extent[i] = smg_size_import(b->bundle->sizes, k->sizes, axis->extent);
        step->grid_tile[i] = axis->tile;
        if (step->grid_extent[i] == SMG_SIZE_NONE) return smg_context_status(b->c->ctx);
    }
    return SMG_OK;
}

static smg_status set_pushes(smg_bundler *b, const smg_kernel *k, const smg_glsl_interface *interface,
                             smg_bstep *step) {
    int addresses = step->address_count = interface->address_count;
    step->address_bindings = SMG_ARENA_ARRAY(b->bundle->arena, int, (size_t)addresses + 1);
    if (step->address_bindings == NULL) return SMG_MEMORY;
    memcpy(step->address_bindings, interface->address_bindings, (size_t)addresses * sizeof(int));
    step->push_count = interface->push_count;
    step->push_symbols = SMG_ARENA_ARRAY(b->bundle->arena, int, (size_t)interface->push_count + 1);
    if (step->push_symbols == NULL) return SMG_MEMORY;
    for (int i = 0; i < interface->push_count; i++) {
        const char *name = smg_size_symbol_name(k->sizes, interface->push_symbols[i]);
        step->push_symbols[i] = smg_size_symbol_find(b->bundle->sizes, name);
    }
    return SMG_OK;
}

static smg_status set_even(smg_bundler *b, const smg_kernel *k, const smg_glsl_interface *interface, smg_bstep *step) {
    int count = step->even_count = interface->even_count;
    step->even_size = SMG_ARENA_ARRAY(b->bundle->arena, smg_size, (size_t)count + 1);
    step->even_by = SMG_ARENA_ARRAY(b->bundle->arena, int64_t, (size_t)count + 1);
    if (step->even_size == NULL || step->even_by == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        step->even_size[i] = smg_size_import(b->bundle->sizes, k->sizes, interface->even_size[i]);
        step->even_by[i] = interface->even_by[i];
        if (step->even_size[i] == SMG_SIZE_NONE) return smg_context_status(b->c->ctx);
    }
    return SMG_OK;
}

/* A copy whose names say nothing but their number. */
static smg_status plain_copy(smg_arena *arena, const smg_kernel *k, smg_kernel *out) {
    *out = *k;
    out->name = "kernel";
    out->axes.items = SMG_ARENA_ARRAY(arena, smg_kaxis, (size_t)k->axes.count + 1);
    out->tiles.items = SMG_ARENA_ARRAY(arena, smg_tile, (size_t)k->tiles.count + 1);
    out->buffers.items = SMG_ARENA_ARRAY(arena, smg_kbuffer, (size_t)k->buffers.count + 1);
    out->code.items = SMG_ARENA_ARRAY(arena, smg_instr, (size_t)k->code.count + 1);
    if (!out->axes.items || !out->tiles.items || !out->buffers.items || !out->code.items) {
        return SMG_MEMORY;
    }
    for (int i = 0; i < k->axes.count; i++) {
        out->axes.items[i] = k->axes.items[i];
        out->axes.items[i].name = smg_arena_format(arena, "x%d", i);
        if (out->axes.items[i].name == NULL) return SMG_MEMORY;
    }
    for (int i = 0; i < k->tiles.count; i++) {
        out->tiles.items[i] = k->tiles.items[i];
        out->tiles.items[i].name = smg_arena_format(arena, "t%d", i);
        if (out->tiles.items[i].name == NULL) return SMG_MEMORY;
    }
    for (int i = 0; i < k->buffers.count; i++) {
        out->buffers.items[i] = k->buffers.items[i];
        out->buffers.items[i].name = smg_arena_format(arena, "b%d", i);
        if (out->buffers.items[i].name == NULL) return SMG_MEMORY;
    }
    for (int i = 0; i < k->code.count; i++) {
        out->code.items[i] = k->code.items[i];
        out->code.items[i].note = NULL;
    }
    return SMG_OK;
}

/* The module's index in the map, or a new one, -1. */
static smg_status find_module(smg_bundler *b, const uint64_t text[2], int **out_index) {
    void *known = NULL;
    if (smg_map_get(b->modules, text, 2 * sizeof(*text), &known)) {
        *out_index = known;
        return SMG_OK;
    }
    *out_index = SMG_ARENA_NEW(b->bundle->arena, int);
    if (*out_index == NULL) return SMG_MEMORY;
    **out_index = -1;
    return smg_map_set(b->modules, text, 2 * sizeof(*text), *out_index);
}

static smg_status add_module(smg_bundler *b, const smg_pstep *from, const smg_glsl_interface *interface,
                             int *out_module) {
    const char *text = smg_text_cstr(&b->text);
    const uint64_t hashes[2] = {smg_hash_text(SMG_HASH_SEED, text), smg_hash_text(~SMG_HASH_SEED, text)};
    int *index = NULL;
    SMG_TRY(find_module(b, hashes, &index));
    *out_module = *index;
    if (*index >= 0) return SMG_OK;
    smg_arena *arena = b->bundle->arena;
    smg_bmodule *module = SMG_ARRAY_PUSH(arena, &b->bundle->modules);
    if (module != NULL) *module = (smg_bmodule){0};
    smg_spirv_job *job = SMG_ARRAY_PUSH(arena, &b->jobs);
    if (job != NULL) *job = (smg_spirv_job){0};
    int **slot = SMG_ARRAY_PUSH(arena, &b->indices);
    if (slot != NULL) *slot = index;
    if (module == NULL || job == NULL || slot == NULL) return SMG_MEMORY;
    module->name = job->name = smg_arena_string(arena, from->name);
    module->local_size = interface->local_size;
    module->subgroup = interface->subgroup_size > 1 ? interface->subgroup_size : 1;
    module->shared_bytes = (int)interface->shared_bytes;
    memcpy(module->text, hashes, sizeof(hashes));
    job->text = smg_arena_string(arena, text);
    if (module->name == NULL || job->text == NULL) return SMG_MEMORY;
    *out_module = *index = b->bundle->modules.count - 1;
    return SMG_OK;
}

/* The modules from `first` on: their texts are known, their words follow. */
static smg_status compile_modules(smg_bundler *b, int first) {
    double start = smg_clock_seconds();
    smg_spirv_compiler *compiler = NULL;
    SMG_TRY(smg_spirv_compiler_create(b->c->ctx, &compiler));
    smg_status status = smg_spirv_compile_all(compiler, b->bundle->arena, b->jobs.items, b->jobs.count, NULL);
    smg_spirv_compiler_destroy(compiler);
    b->c->seconds.spirv += smg_clock_seconds() - start;
    SMG_TRY(status);
    for (int i = 0; i < b->jobs.count; i++) {
        const smg_spirv_module *from = &b->jobs.items[i].module;
        smg_bmodule *module = &b->bundle->modules.items[first + i];
        module->words = from->words;
        module->word_count = from->word_count;
        module->hash = smg_hash_bytes(SMG_HASH_SEED, from->words, from->word_count * sizeof(uint32_t));
        b->c->modules_cached += from->from_cache;
    }
    return SMG_OK;
}

static smg_status write_module(smg_bundler *b, const smg_pstep *from, smg_bstep *step) {
    double start = smg_clock_seconds();
    smg_glsl_interface interface = {0};
    smg_kernel plain;
    SMG_TRY(plain_copy(b->bundle->arena, from->kernel, &plain));
    smg_text_free(&b->text);
    smg_text_init(&b->text, b->c->ctx);
    SMG_TRY(smg_glsl_describe(b->c->ctx, &plain, &b->c->target, &interface));
    SMG_TRY(smg_glsl_write(b->c->ctx, &plain, &b->c->target, &b->text));
    SMG_TRY(smg_text_status(&b->text));
    b->c->seconds.glsl += smg_clock_seconds() - start;
    step->diagnostics = interface.diagnostics >= 0;
    if (step->diagnostics && interface.diagnostics != step->binding_count) {
        return smg_fail(b->c->ctx, SMG_INTERNAL, "step '%s': diagnostics are binding %d of %d", step->name,
                        interface.diagnostics, step->binding_count);
    }
    SMG_TRY(set_pushes(b, from->kernel, &interface, step));
    SMG_TRY(set_even(b, from->kernel, &interface, step));
    return add_module(b, from, &interface, &step->module);
}

/* like: a step of this list of the same kernel, for other buffers; -1: there is none. */
static smg_status add_step(smg_bundler *b, const smg_pstep *from, int like) {
    smg_bvariant *list = &b->bundle->variants.items[b->variant];
    int position = list->run.count;
    smg_bstep *step = b->preparing ? SMG_ARRAY_PUSH(b->bundle->arena, &b->bundle->prepare)
                                   : SMG_ARRAY_PUSH(b->bundle->arena, &list->run);
    if (step == NULL) return SMG_MEMORY;
    if (like >= 0) {
        *step = list->run.items[like];
        return bind_buffers(b, from->kernel, step, position);
    }
    step->name = smg_arena_string(b->bundle->arena, from->name);
    if (step->name == NULL) return SMG_MEMORY;
    SMG_TRY(bind_buffers(b, from->kernel, step, position));
    SMG_TRY(set_grid(b, from->kernel, step));
    SMG_TRY(write_module(b, from, step));
    step->estimate = from->price.seconds;
    step->bytes = smg_size_const(b->bundle->sizes, (int64_t)from->price.bytes);
    step->flops = smg_size_const(b->bundle->sizes, (int64_t)from->price.flops);
    return step->bytes == SMG_SIZE_NONE || step->flops == SMG_SIZE_NONE ? SMG_MEMORY : SMG_OK;
}

/* Inputs that no kernel reads still belong to the interface. */
static smg_status add_inputs(smg_bundler *b) {
    const smg_graph *g = b->c->graph;
    for (smg_node_id id = 0; id < g->nodes.count; id++) {
        b->buffer_of[id] = -1;
        if (smg_node_is_input(smg_graph_node(g, id))) SMG_TRY(add_buffer(b, g, id, &b->buffer_of[id]));
    }
    return SMG_OK;
}

static smg_status add_steps(smg_bundler *b, const smg_pstep *steps, int count) {
    for (int i = 0; i < count; i++) {
        SMG_TRY(add_step(b, &steps[i], -1));
    }
    return SMG_OK;
}

static smg_status forget_temporaries(smg_bundler *b, int nodes) {
    b->own = SMG_ARENA_ARRAY(b->c->arena, int, (size_t)nodes + 1);
    if (b->own == NULL) return SMG_MEMORY;
    for (int i = 0; i < nodes; i++) b->own[i] = -1;
    for (smg_node_id id = 0; id < b->c->graph->nodes.count; id++) {
        int buffer = b->buffer_of[id];
        if (buffer < 0) continue;
        if (b->bundle->buffers.items[buffer].kind == SMG_BUFFER_TEMPORARY) b->buffer_of[id] = -1;
    }
    return SMG_OK;
}

/* The plan with the schedules of one pass; what it computes on the way is its own. */
static smg_status add_pass(smg_bundler *b, const smg_plan *plan, int pass) {
    const smg_bvariant *list = &b->bundle->variants.items[b->variant];
    SMG_TRY(forget_temporaries(b, plan->graph->nodes.count));
    for (int i = 0; i < plan->steps.count; i++) {
        smg_pstep step = plan->steps.items[i];
        bool first = pass == 0 || pass > step.rivals.count;
        int like = first && list->run.count >= plan->steps.count ? i : -1;
        if (!first) {
            step.kernel = step.rivals.items[pass - 1].kernel;
            step.price = step.rivals.items[pass - 1].price;
        }
        if (like >= 0 && b->c->options.passes.from > 0 && step.rivals.count > 0) like = -1; /* that was a rival */
        SMG_TRY(add_step(b, &step, like));
    }
    return SMG_OK;
}

static smg_status add_passes(smg_bundler *b, const smg_plan *plan) {
    const smg_passes *passes = &b->c->options.passes;
    smg_status status = SMG_OK;
    if (passes->rivals == 0 || b->variant > 0) return add_pass(b, plan, 0);
    for (int i = 0; i < smg_compile_leads(b->c) && status == SMG_OK; i++) status = add_pass(b, plan, passes->from);
    for (int i = passes->from; i < passes->to && status == SMG_OK; i++) status = add_pass(b, plan, i);
    return status;
}

/* The run list of one plan; its temporaries are its own. */
static smg_status add_list(smg_bundler *b, int variant) {
    const smg_plan *plan = b->c->variants[variant].plan;
    int first = b->bundle->modules.count;
    b->variant = variant;
    b->jobs.count = b->indices.count = 0;
    smg_text_init(&b->text, b->c->ctx);
    smg_status status = SMG_OK;
    if (variant == 0) {
        b->preparing = true;
        status = add_steps(b, plan->prepare.items, plan->prepare.count);
        b->preparing = false;
    }
    if (status == SMG_OK) status = add_passes(b, plan);
    smg_text_free(&b->text);
    if (status == SMG_OK) status = compile_modules(b, first);
    if (status != SMG_OK) { /* modules without words go */
        b->bundle->modules.count = first;
        for (int i = 0; i < b->indices.count; i++) {
            if (b->indices.items[i] != NULL) *b->indices.items[i] = -1;
        }
    }
    if (status == SMG_OK) status = forget_temporaries(b, plan->graph->nodes.count);
    b->bundle->variants.items[variant].made = status == SMG_OK;
    return status;
}

/* States are inputs, which are there before the outputs that they are in the next run. */
static void link_states(smg_bundler *b) {
    const smg_graph *g = b->c->graph;
    for (int i = 0; i < b->bundle->buffers.count; i++) {
        smg_bbuffer *buffer = &b->bundle->buffers.items[i];
        if (buffer->kind != SMG_BUFFER_STATE) continue;
        const char *next = g->outputs.items[smg_graph_next_of(g, buffer->name)].name;
        buffer->next = smg_bundle_find(b->bundle, SMG_BUFFER_OUTPUT, next);
    }
}

static smg_status add_variants(smg_bundler *b) {
    smg_size measure = import_size(b, b->c->measure);
    if (measure == SMG_SIZE_NONE) return smg_context_status(b->c->ctx);
    for (int i = 0; i < b->c->variant_count; i++) {
        smg_bvariant *v = SMG_ARRAY_PUSH(b->bundle->arena, &b->bundle->variants);
        if (v == NULL) return SMG_MEMORY;
        v->measure = measure;
        v->low = b->c->variants[i].low;
        v->high = b->c->variants[i].high;
    }
    return SMG_OK;
}

static smg_status fill_bundle(smg_bundler *b) {
    const smg_sizes *sizes = b->c->graph->sizes;
    SMG_TRY(smg_sizes_create(b->bundle->arena, &b->bundle->sizes));
    for (int i = 0; i < smg_size_symbol_count(sizes); i++) {
        if (smg_size_symbol(b->bundle->sizes, smg_size_symbol_name(sizes, i)) == SMG_SIZE_NONE) {
            return smg_context_status(b->c->ctx);
        }
        smg_size_symbol_set_max(b->bundle->sizes, i, smg_size_symbol_max(sizes, i));
    }
    SMG_TRY(add_inputs(b));
    SMG_TRY(add_variants(b));
    SMG_TRY(add_list(b, 0));
    link_states(b);
    return SMG_OK;
}

static smg_status create_bundler(smg_compilation *c, smg_bundle *bundle, smg_bundler **out_bundler) {
    smg_bundler *b = SMG_ARENA_NEW(c->arena, smg_bundler);
    if (b == NULL) return SMG_MEMORY;
    b->c = c;
    b->bundle = bundle;
    b->buffer_of = SMG_ARENA_ARRAY(c->arena, int, (size_t)c->graph->nodes.count + 1);
    if (b->buffer_of == NULL) return SMG_MEMORY;
    *out_bundler = b;
    return smg_map_create(c->arena, &b->modules);
}

smg_status smg_compile_bundle(smg_compilation *c) {
    smg_bundler *b = NULL;
    smg_bundle *bundle = SMG_ARENA_NEW(c->arena, smg_bundle);
    if (bundle == NULL) return SMG_MEMORY;
    bundle->arena = c->arena;
    SMG_TRY(create_bundler(c, bundle, &b));
    SMG_TRY(fill_bundle(b));
    c->bundle = bundle;
    c->bundler = b;
    return SMG_OK;
}

static bool stands_for(const smg_bundler *b, const smg_bbuffer *buffer, smg_node_id id) {
    const smg_graph *g = b->c->graph;
    smg_storage storage;
    if (id < 0 || id >= g->nodes.count || b->buffer_of[id] >= 0) return false;
    const smg_node *node = smg_graph_node(g, id);
    smg_size elements = smg_size_import(b->bundle->sizes, g->sizes, smg_node_elements(g, id));
    return smg_compile_storage(node->type, smg_graph_storage(g, id), &storage) && storage == buffer->storage &&
           elements == buffer->elements &&
           smg_node_is_input(node) == (buffer->kind == SMG_BUFFER_INPUT || buffer->kind == SMG_BUFFER_STATE) &&
           smg_op_is_constant(node->op) == (buffer->kind == SMG_BUFFER_CONSTANT);
}

smg_status smg_compile_resume(smg_compilation *c, bool *out_fits) {
    smg_bundler *b = NULL;
    *out_fits = false;
    SMG_TRY(create_bundler(c, c->bundle, &b));
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) b->buffer_of[id] = -1;
    for (int i = 0; i < c->origin_count; i++) {
        const smg_bbuffer *buffer = &c->bundle->buffers.items[i];
        if (buffer->kind == SMG_BUFFER_TEMPORARY || buffer->kind == SMG_BUFFER_STACK) continue;
        if (!stands_for(b, buffer, c->origins[i])) return smg_context_status(c->ctx);
        b->buffer_of[c->origins[i]] = i;
    }
    for (int i = 0; i < c->bundle->modules.count; i++) {
        int *index = NULL;
        SMG_TRY(find_module(b, c->bundle->modules.items[i].text, &index));
        *index = i;
    }
    c->bundler = b;
    *out_fits = true;
    return smg_context_status(c->ctx);
}

smg_status smg_compile_origins(const smg_compilation *c, smg_arena *arena, int **out_origins) {
    int *origins = SMG_ARENA_ARRAY(arena, int, (size_t)c->bundle->buffers.count + 1);
    if (origins == NULL) return SMG_MEMORY;
    for (int i = 0; i < c->bundle->buffers.count; i++) origins[i] = -1;
    for (smg_node_id id = 0; id < c->graph->nodes.count; id++) {
        if (c->bundler->buffer_of[id] >= 0) origins[c->bundler->buffer_of[id]] = id;
    }
    *out_origins = origins;
    return SMG_OK;
}

smg_status smg_compile_stacks(const smg_compilation *c, smg_plan_options *io_options) {
    int *origins, count = c->bundle != NULL ? c->bundle->buffers.count : 0;
    if (c->bundle == NULL) return SMG_OK;
    smg_stack *stacks = SMG_ARENA_ARRAY(c->arena, smg_stack, (size_t)count + 1);
    if (stacks == NULL) return SMG_MEMORY;
    SMG_TRY(smg_compile_origins(c, c->arena, &origins));
    io_options->stacks = stacks;
    for (int i = 0; i < count; i++) {
        const smg_bbuffer *b = &c->bundle->buffers.items[i];
        if (b->kind != SMG_BUFFER_STACK) continue;
        smg_node_id *each = SMG_ARENA_ARRAY(c->arena, smg_node_id, (size_t)b->member_count);
        if (each == NULL) return SMG_MEMORY;
        for (int n = 0; n < b->member_count; n++) each[n] = origins[b->members[n]];
        stacks[io_options->stack_count++] = (smg_stack){.each = each, .count = b->member_count, .stride = b->stride};
    }
    return SMG_OK;
}

/* What a failure leaves half-made goes. */
smg_status smg_compile_add_variant(smg_compilation *c, int variant) {
    int buffers = c->bundle->buffers.count;
    smg_status status = add_list(c->bundler, variant);
    if (status == SMG_OK) return SMG_OK;
    c->bundle->buffers.count = buffers;
    c->bundle->variants.items[variant].run.count = 0;
    return status;
}
