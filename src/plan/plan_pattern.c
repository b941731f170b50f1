/* What a kernel does, whatever its sizes and names: its operations, the tensors that it reads (in memory, or computed
 * anew of one that is), and who reads whom, connected maps as one. Kernels of different models, or of different sizes,
 * with the same text are the same fusion. Views, numbers and indices are left out.
 *
 * Parts are brought into an order that depends on structure alone: each gets a label of its operation, which takes in
 * the labels of those that it reads and of those that read it, until all of them are in. Parts with equal labels look
 * alike from everywhere: one of them is marked, and the others find out. Order is by depth, then by label. */
#include <stdlib.h>

#include "plan/plan.h"
#include "space/space.h"

typedef struct part {
    const char *word;
    int depth;      /* reductions and products on the longest way here, at the least of its maps */
    uint64_t label; /* of what is around it */
    bool tensor;    /* in memory */
    int number;     /* in the order */
    int shown;      /* in the text, from 1, tensors by themselves; 0: not yet */
} part;

typedef struct pattern {
    const smg_graph *g;
    const smg_node_id *nodes;
    int count;
    int *place;   /* per node of the graph: among `nodes`, -1 */
    int *tensor;  /* per node of the graph: the part that it is as a tensor in memory, -1 */
    int *part_of; /* per node of the kernel */
    part *parts;
    int part_count;
    int *from, *to; /* reads, between parts */
    int reads;
} pattern;

static bool is_map(const pattern *p, int i) {
    return smg_node_class(smg_graph_node(p->g, p->nodes[i])) == SMG_CLASS_MAP;
}

/* Where the operand is computed among the nodes; -1: it is not. */
static int producer(const pattern *p, int i, int operand) {
    return p->place[smg_space_source(p->g, smg_graph_node(p->g, p->nodes[i])->operand[operand])];
}

/* The part that an operand is, -1: none. Tensors become parts when they are first met. */
static int part_read(pattern *p, int i, int operand) {
    int from = producer(p, i, operand);
    smg_node_id source = smg_space_source(p->g, smg_graph_node(p->g, p->nodes[i])->operand[operand]);
    const smg_node *n = smg_graph_node(p->g, source);
    if (from >= 0) return p->part_of[from];
    bool in_memory = smg_node_computes(n) || smg_op_leaf(n->op) == SMG_LEAF_TENSOR;
    if (!in_memory || smg_size_is_one(p->g->sizes, smg_node_elements(p->g, source))) return -1;
    if (p->tensor[source] < 0) {
        p->tensor[source] = p->part_count;
        p->parts[p->part_count++] = (part){.word = "tensor", .tensor = true};
    }
    return p->tensor[source];
}

static int operands_of(const pattern *p, int i) {
    return smg_graph_node(p->g, p->nodes[i])->operand_count;
}

static int root_of(const int *parent, int i) {
    while (parent[i] != i) i = parent[i];
    return i;
}

/* Maps that read maps are one part. */
static void join_maps(pattern *p, int *parent) {
    for (int i = 0; i < p->count; i++) {
        parent[i] = i;
        for (int k = 0; is_map(p, i) && k < operands_of(p, i); k++) {
            int from = producer(p, i, k);
            if (from >= 0 && is_map(p, from)) parent[root_of(parent, i)] = root_of(parent, from);
        }
    }
}

static void make_parts(pattern *p, const int *parent, int *depth) {
    for (int i = 0; i < p->count; i++) {
        const smg_node *n = smg_graph_node(p->g, p->nodes[i]);
        for (int k = 0; k < n->operand_count; k++) {
            int from = producer(p, i, k);
            if (from < 0) continue;
            int here = depth[from] + !is_map(p, from);
            if (here > depth[i]) depth[i] = here;
        }
        p->part_of[i] = -1;
    }
    for (int i = 0; i < p->count; i++) {
        int root = root_of(parent, i);
        if (p->part_of[root] < 0) {
            const smg_node *n = smg_graph_node(p->g, p->nodes[i]);
            p->part_of[root] = p->part_count;
            p->parts[p->part_count++] =
                (part){.word = is_map(p, i) ? "maps" : smg_op_get(n->op)->word, .depth = depth[i]};
        }
        p->part_of[i] = p->part_of[root];
        part *mine = &p->parts[p->part_of[i]];
        if (depth[i] < mine->depth) mine->depth = depth[i];
    }
}

/* Every reader of a value of another part, once for each of its operands. */
static void find_reads(pattern *p) {
    for (int i = 0; i < p->count; i++) {
        for (int k = 0; k < operands_of(p, i); k++) {
            int from = part_read(p, i, k);
            if (from < 0 || from == p->part_of[i]) continue;
            bool known = false;
            for (int r = 0; r < p->reads && is_map(p, i); r++)
                known = known || (p->from[r] == from && p->to[r] == p->part_of[i]);
            if (known) continue; /* how often maps read it says nothing of the fusion */
            p->from[p->reads] = from;
            p->to[p->reads++] = p->part_of[i];
        }
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Labels of what a part reads (`to` is the part), or of what reads it, in an order of their own. */
static uint64_t take_in(const pattern *p, int of, const int *here, const int *there, uint64_t *room, uint64_t hash) {
    size_t count = 0;
    for (int r = 0; r < p->reads; r++)
        if (here[r] == of) room[count++] = p->parts[there[r]].label;
    qsort(room, count, sizeof(*room), by_value);
    for (size_t i = 0; i < count; i++) hash = smg_hash_u64(hash, room[i]);
    return smg_hash_u64(hash, count);
}

static void refine_labels(pattern *p, uint64_t *room, uint64_t *next) {
    for (int turn = 0; turn < p->part_count; turn++) {
        for (int i = 0; i < p->part_count; i++) {
            next[i] = take_in(p, i, p->to, p->from, room, p->parts[i].label);
            next[i] = take_in(p, i, p->from, p->to, room, next[i]);
        }
        for (int i = 0; i < p->part_count; i++) p->parts[i].label = next[i];
    }
}

static bool comes_before(const part *a, const part *b) {
    return a->depth != b->depth ? a->depth < b->depth : a->label < b->label;
}

/* Two parts that look alike, -1: all differ. Of all such pairs one with the least label. */
static int find_alike(const pattern *p) {
    int found = -1;
    for (int i = 0; i < p->part_count; i++)
        for (int j = 0; j < i; j++)
            if (p->parts[i].label == p->parts[j].label && (found < 0 || p->parts[i].label < p->parts[found].label))
                found = i;
    return found;
}

/* One of parts that look alike gets a label of its own, whichever it is, until there are none. */
static void number_parts(pattern *p, uint64_t *room, uint64_t *next) {
    for (int i = 0; i < p->part_count; i++)
        p->parts[i].label = smg_hash_u64(smg_hash_text(SMG_HASH_SEED, p->parts[i].word), (uint64_t)p->parts[i].depth);
    refine_labels(p, room, next);
    for (int alike = find_alike(p); alike >= 0; alike = find_alike(p)) {
        p->parts[alike].label++;
        refine_labels(p, room, next);
    }
    for (int i = 0; i < p->part_count; i++) {
        p->parts[i].number = 1;
        for (int j = 0; j < p->part_count; j++) p->parts[i].number += comes_before(&p->parts[j], &p->parts[i]);
    }
}

/* The part with that number. */
static part *part_at(pattern *p, int number) {
    int i = 0;
    while (p->parts[i].number != number) i++;
    return &p->parts[i];
}

static bool reads(const pattern *p, int read, const part *by, const part *from) {
    return &p->parts[p->to[read]] == by && &p->parts[p->from[read]] == from;
}

/* What it reads of other parts, then of tensors, which get a letter when they are first met. */
static void print_reads(pattern *p, const part *mine, int *tensors, smg_text *text) {
    for (int of_memory = 0; of_memory < 2; of_memory++) {
        for (int number = 1; number <= p->part_count; number++) {
            part *from = part_at(p, number);
            for (int r = 0; r < p->reads; r++) {
                if (from->tensor != (of_memory == 1) || !reads(p, r, mine, from)) continue;
                if (from->shown == 0) from->shown = ++*tensors;
                if (!from->tensor) smg_text_addf(text, " %d", from->shown);
                if (from->tensor) smg_text_addf(text, " %c", 'a' + (from->shown - 1) % 26);
                if (from->tensor && from->shown > 26) smg_text_addf(text, "%d", (from->shown - 1) / 26);
            }
        }
    }
}

static void print_parts(pattern *p, smg_text *text) {
    int shown = 0, tensors = 0;
    for (int number = 1; number <= p->part_count; number++) {
        part *mine = part_at(p, number);
        if (!mine->tensor) mine->shown = ++shown;
    }
    for (int number = 1; number <= p->part_count; number++) {
        const part *mine = part_at(p, number);
        if (mine->tensor) continue;
        smg_text_addf(text, "%s%d %s", mine->shown > 1 ? "; " : "", mine->shown, mine->word);
        print_reads(p, mine, &tensors, text);
    }
}

smg_status smg_plan_pattern(const smg_graph *g, const smg_node_id *nodes, int count, smg_text *text) {
    smg_arena *arena;
    size_t most = (size_t)count * SMG_MAX_OPERANDS + 1, of_graph = (size_t)g->nodes.count + 1;
    SMG_TRY(smg_arena_create(g->ctx, &arena));
    pattern p = {.g = g,
                 .nodes = nodes,
                 .count = count,
                 .place = SMG_ARENA_ARRAY(arena, int, of_graph),
                 .tensor = SMG_ARENA_ARRAY(arena, int, of_graph),
                 .part_of = SMG_ARENA_ARRAY(arena, int, most),
                 .parts = SMG_ARENA_ARRAY(arena, part, 2 * most),
                 .from = SMG_ARENA_ARRAY(arena, int, most),
                 .to = SMG_ARENA_ARRAY(arena, int, most)};
    int *parent = SMG_ARENA_ARRAY(arena, int, most), *depth = SMG_ARENA_ARRAY(arena, int, most);
    uint64_t *room = SMG_ARENA_ARRAY(arena, uint64_t, most), *next = SMG_ARENA_ARRAY(arena, uint64_t, 2 * most);
    bool made = p.place != NULL && p.tensor != NULL && p.part_of != NULL && p.parts != NULL && p.from != NULL &&
                p.to != NULL && parent != NULL && depth != NULL && room != NULL && next != NULL;
    if (made) {
        for (size_t id = 0; id < of_graph; id++) p.place[id] = p.tensor[id] = -1;
        for (int i = 0; i < count; i++) p.place[nodes[i]] = i;
        join_maps(&p, parent);
        make_parts(&p, parent, depth);
        find_reads(&p);
        number_parts(&p, room, next);
        print_parts(&p, text);
    }
    smg_arena_destroy(arena);
    return made ? smg_text_status(text) : SMG_MEMORY;
}
