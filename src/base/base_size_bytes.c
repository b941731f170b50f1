/* A pool of sizes as bytes: symbols, atoms, polynomials, in the order of their ids.
 *
 * Reading makes every polynomial anew and expects it under the id that it had. So what is read is canonical and nothing
 * stands twice. An operation may only be on sizes with lower ids than the sizes that mention it: no size contains
 * itself. Questions about a size walk through all that it is made of, so that this is bounded too. */
#include "base/size_private.h"

#define MAX_PARTS 4096 /* of a size, operations within operations included */

enum { SYMBOL_BYTES = 12, ATOM_BYTES = 12, NODE_BYTES = 4, TERM_BYTES = 12 };

void smg_sizes_write(const smg_sizes *s, smg_text *out) {
    smg_text_add_u32(out, (uint32_t)s->symbols.count);
    for (int i = 0; i < s->symbols.count; i++) {
        smg_text_add_string(out, s->symbols.items[i].name);
        smg_text_add_u64(out, (uint64_t)s->symbols.items[i].max);
    }
    smg_text_add_u32(out, (uint32_t)s->atoms.count);
    for (int i = 0; i < s->atoms.count; i++) {
        const size_atom *atom = &s->atoms.items[i];
        smg_text_add_u32(out, atom->is_symbol ? 0 : (uint32_t)atom->op + 1);
        smg_text_add_u32(out, (uint32_t)(atom->is_symbol ? atom->symbol : atom->a));
        smg_text_add_u32(out, (uint32_t)(atom->is_symbol ? 0 : atom->b));
    }
    smg_text_add_u32(out, (uint32_t)s->nodes.count);
    for (int i = 0; i < s->nodes.count; i++) {
        const size_node *node = &s->nodes.items[i];
        smg_text_add_u32(out, (uint32_t)node->count);
        for (int t = 0; t < node->count; t++) {
            smg_text_add_u64(out, (uint64_t)node->terms[t].coefficient);
            smg_text_add_u32(out, (uint32_t)node->terms[t].degree);
            for (int k = 0; k < node->terms[t].degree; k++) smg_text_add_u32(out, (uint32_t)node->terms[t].atom[k]);
        }
    }
}

static smg_status read_symbols(smg_reader *r, smg_sizes *s) {
    int count = smg_reader_count(r, SYMBOL_BYTES);
    for (int i = 0; i < count && !r->failed; i++) {
        char *name = smg_reader_string(r, s->arena);
        int64_t max = (int64_t)smg_reader_u64(r);
        bool known = name != NULL && smg_size_symbol_find(s, name) >= 0;
        if (name == NULL || known || name[0] == '\0' || max < 1 || max > SMG_SIZE_UNBOUNDED) r->failed = true;
        size_symbol *symbol = r->failed ? NULL : SMG_ARRAY_PUSH(s->arena, &s->symbols);
        if (symbol != NULL) *symbol = (size_symbol){.name = name, .max = max};
    }
    return smg_context_status(smg_arena_context(s->arena));
}

static smg_status read_atoms(smg_reader *r, smg_sizes *s) {
    int count = smg_reader_count(r, ATOM_BYTES);
    for (int i = 0; i < count && !r->failed; i++) {
        int kind = smg_reader_int(r, 0, (int)SMG_SIZE_MAX + 1);
        int a = smg_reader_int(r, 0, INT32_MAX), b = smg_reader_int(r, 0, INT32_MAX);
        if (kind == 0 && (a >= s->symbols.count || b != 0)) r->failed = true;
        size_atom *atom = r->failed ? NULL : SMG_ARRAY_PUSH(s->arena, &s->atoms);
        if (atom == NULL) break;
        if (kind == 0)
            *atom = (size_atom){.is_symbol = true, .symbol = a};
        else
            *atom = (size_atom){.op = (smg_size_op)(kind - 1), .a = a, .b = b};
    }
    return smg_context_status(smg_arena_context(s->arena));
}

/* Is the atom one that size `node` may mention? What it is made of is added to *io_parts. */
static bool may_mention(const smg_sizes *s, int32_t id, int node, const int *parts, int *io_parts) {
    if (id >= s->atoms.count) return false;
    const size_atom *atom = &s->atoms.items[id];
    bool below = atom->is_symbol || (atom->a < node && atom->b < node);
    if (!below) return false;
    *io_parts += atom->is_symbol ? 1 : 1 + parts[atom->a] + parts[atom->b];
    return *io_parts <= MAX_PARTS;
}

static smg_status read_node(smg_reader *r, smg_sizes *s, int node, int *parts) {
    int terms = smg_reader_count(r, TERM_BYTES);
    smg_size_begin(s);
    for (int t = 0; t < terms && !r->failed; t++) {
        int32_t atom[SIZE_MAX_DEGREE] = {0};
        int64_t coefficient = (int64_t)smg_reader_u64(r);
        int degree = smg_reader_int(r, 0, SIZE_MAX_DEGREE);
        for (int k = 0; k < degree && !r->failed; k++) {
            atom[k] = smg_reader_int(r, 0, INT32_MAX);
            bool ordered = k == 0 || atom[k - 1] <= atom[k];
            if (!ordered || !may_mention(s, atom[k], node, parts, &parts[node])) r->failed = true;
        }
        if (!r->failed && !smg_size_put(s, coefficient, degree, atom)) r->failed = true;
    }
    if (!r->failed && smg_size_intern(s) != node) r->failed = true;
    return smg_context_status(smg_arena_context(s->arena));
}

static smg_status read_nodes(smg_reader *r, smg_sizes *s) {
    int count = smg_reader_count(r, NODE_BYTES);
    int *parts = SMG_ARENA_ARRAY(s->arena, int, (size_t)count + 1);
    if (parts == NULL) return SMG_MEMORY;
    if (count < 1) r->failed = true; /* number 0 is in every pool */
    bool before = smg_sizes_set_quiet(s, true);
    smg_status status = SMG_OK;
    for (int i = 0; i < count && !r->failed && status == SMG_OK; i++) status = read_node(r, s, i, parts);
    smg_sizes_set_quiet(s, before);
    return status;
}

smg_status smg_sizes_read(smg_reader *r, smg_arena *arena, smg_sizes **out_sizes) {
    smg_sizes *s = NULL;
    *out_sizes = NULL;
    SMG_TRY(smg_sizes_create(arena, &s));
    SMG_TRY(read_symbols(r, s));
    SMG_TRY(read_atoms(r, s));
    SMG_TRY(read_nodes(r, s));
    if (r->failed) return smg_fail(smg_arena_context(arena), SMG_FORMAT, "these bytes are no pool of sizes");
    *out_sizes = s;
    return SMG_OK;
}

int smg_sizes_count(const smg_sizes *s) {
    return s->nodes.count;
}
