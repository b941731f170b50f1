/* compile_dot.c: the Space-Mapping Graphs of a plan's kernels as one digraph, for Graphviz (dot -Tsvg): smg explain
 * --dot. A cluster is a kernel, with the extents of its axes and why the graph was cut behind it. */
#include "compile/compile.h"

/* The step's name, axes, and its lines about the cut. */
static void add_label(const smg_pstep *step, const smg_space *space, smg_text *label) {
    static const char cut[] = "cut before ";
    smg_text_addf(label, "%s:", step->name);
    for (int a = 0; a < space->axes.count; a++) {
        smg_text_addf(label, " %s = ", space->axes.items[a].name);
        smg_size_print(space->graph->sizes, space->axes.items[a].extent, label);
    }
    for (const char *line = step->because; line != NULL && *line != '\0'; line += line[0] == '\n') {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, cut, sizeof(cut) - 1) == 0) {
            smg_text_add(label, "\n");
            smg_text_add_n(label, line, length);
        }
        line += length;
    }
}

/* Values that a kernel of the run list stores for others. */
static bool *mark_stored(const smg_plan *plan, smg_arena *arena) {
    bool *stored = SMG_ARENA_ARRAY(arena, bool, (size_t)plan->graph->nodes.count + 1);
    for (int i = 0; i < plan->steps.count && stored != NULL; i++)
        for (int n = 0; n < plan->steps.items[i].node_count; n++) stored[plan->steps.items[i].nodes[n]] = true;
    return stored;
}

static smg_status add_step(smg_compilation *c, const smg_pstep *step, smg_text *text) {
    smg_arena *arena = NULL;
    smg_text label;
    SMG_TRY(smg_arena_create(c->ctx, &arena));
    smg_text_init(&label, c->ctx);
    const bool *stored = mark_stored(c->plan, arena);
    smg_status status = SMG_MEMORY;
    if (stored != NULL) {
        add_label(step, step->space, &label);
        status = smg_text_status(&label);
        smg_space_print_dot(step->space, step->name, smg_text_cstr(&label), stored, text);
    }
    smg_text_free(&label);
    smg_arena_destroy(arena);
    return status;
}

smg_status smg_compile_dot(smg_compilation *c, const char *kernel, smg_text *text) {
    bool any = kernel == NULL;
    smg_text_add(text, "digraph ");
    smg_text_add_json(text, c->graph->name);
    smg_text_add(text, " {\n");
    for (int i = 0; i < c->plan->steps.count; i++) {
        const smg_pstep *step = &c->plan->steps.items[i];
        if (!smg_compile_is_step(kernel, step, i)) continue;
        any = true;
        SMG_TRY(add_step(c, step, text));
    }
    smg_text_add(text, "}\n");
    return any ? smg_text_status(text) : smg_compile_no_step(c, kernel);
}
