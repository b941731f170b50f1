/* The spatial slicer. With mappings derived from index maps the table of the paper reduces to one test
 * per axis: a value that is not streamed and lacks the axis is either an All-to-One result along it or the source
 * of a One-to-All along it, and both forbid the cut. */
#include "slice/slice.h"

static void explain(const smg_space *space, const smg_snode *n, smg_axis_set lost, smg_text *why) {
    if (why == NULL) return;
    for (int a = 0; a < space->axes.count; a++) {
        if (!(lost & SMG_AXIS_BIT(a))) continue;
        bool reduced = (n->iterates & SMG_AXIS_BIT(a)) != 0;
        smg_text_addf(why, "%s is not cut: %s %s\n", space->axes.items[a].name,
                      smg_graph_describe(space->graph, n->node),
                      reduced ? "is all-to-one along it" : "is needed over the whole of it");
    }
}

/* Axes along which a body of a repetition reads the whole of what the one before it has made. */
static smg_axis_set carried_whole(const smg_space *space) {
    smg_axis_set whole = 0;
    for (int i = 0; i < space->repeat.slice_count; i++) whole |= SMG_AXIS_BIT(space->repeat.slice[i].whole);
    return whole;
}

smg_axis_set smg_slice_spatial(const smg_space *space, smg_text *why) {
    smg_axis_set spatial = space->axes.count >= 32 ? ~(smg_axis_set)0 : SMG_AXIS_BIT(space->axes.count) - 1u;
    for (int a = 0; a < space->axes.count; a++) {
        if (!space->axes.items[a].held) continue;
        spatial &= ~SMG_AXIS_BIT(a);
        if (why == NULL) continue;
        smg_text_addf(why, "%s is not cut: what is computed is read at other elements along it\n",
                      space->axes.items[a].name);
    }
    for (int a = 0; a < space->axes.count && space->repeat.count > 0; a++) {
        bool whole = carried_whole(space) & SMG_AXIS_BIT(a);
        if (!whole && a != space->repeat.axis) continue;
        spatial &= ~SMG_AXIS_BIT(a);
        if (why != NULL)
            smg_text_addf(why, "%s is not cut: %s\n", space->axes.items[a].name,
                          whole ? "the next body needs the whole of it" : "each body needs the one before it");
    }
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        if ((n->streamed && !n->output) || n->idle) continue;
        explain(space, n, spatial & ~n->result, why);
        spatial &= n->result;
    }
    return spatial;
}

smg_axis_set smg_slice_anew(const smg_space *space) {
    smg_axis_set lacked = 0, fixed = carried_whole(space);
    for (int i = 0; i < space->nodes.count; i++) {
        const smg_snode *n = &space->nodes.items[i];
        bool sum = n->operand_count == 1; /* as a product with 1 (smg_space_multiply_sums) */
        if (n->output || (n->class_ == SMG_CLASS_CONTRACT && !sum)) fixed |= ~n->result;
        if (n->streamed || n->idle) continue;
        fixed |= n->iterates & ~n->result;
        lacked |= ~n->result;
    }
    for (int i = 0; i < space->axes.count; i++)
        if (space->axes.items[i].held) fixed |= SMG_AXIS_BIT(i);
    smg_axis_set all = space->axes.count >= 32 ? ~(smg_axis_set)0 : SMG_AXIS_BIT(space->axes.count) - 1u;
    return all & lacked & ~fixed;
}
