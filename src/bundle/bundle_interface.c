/* bundle_interface.c: inputs and outputs by name: the sizes that arrays imply, what is wrong with an array, bytes. */
#include "bundle/interface.h"

/* ---- names ------------------------------------------------------------------------------------------ */

smg_status smg_interface_find_input(smg_context *ctx, const smg_interface *interface, const char *name,
                                    int *out_index) {
    for (int i = 0; name != NULL && i < interface->input_count; i++) {
        if (strcmp(interface->inputs[i].name, name) == 0) {
            *out_index = i;
            return SMG_OK;
        }
    }
    smg_text names;
    smg_text_init(&names, ctx);
    for (int i = 0; i < interface->input_count; i++) {
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", interface->inputs[i].name);
    }
    smg_status status = smg_fail(ctx, SMG_NOT_FOUND, "the model has no input '%s'; it has: %s",
                                 name != NULL ? name : "", smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

smg_status smg_interface_find_state(smg_context *ctx, const smg_interface *interface, const char *name,
                                    int *out_input) {
    for (int i = 0; name != NULL && i < interface->input_count; i++) {
        if (interface->inputs[i].absent != SMG_ABSENT_STATE || strcmp(interface->inputs[i].name, name) != 0) continue;
        *out_input = i;
        return SMG_OK;
    }
    smg_text names;
    smg_text_init(&names, ctx);
    for (int i = 0; i < interface->input_count; i++) {
        if (interface->inputs[i].absent != SMG_ABSENT_STATE) continue;
        smg_text_addf(&names, "%s%s", names.length > 0 ? ", " : "", interface->inputs[i].name);
    }
    smg_status status = smg_fail(ctx, SMG_NOT_FOUND, "the model has no state '%s'; it has: %s",
                                 name != NULL ? name : "", names.length > 0 ? smg_text_cstr(&names) : "none");
    smg_text_free(&names);
    return status;
}

int smg_interface_state_of(const smg_interface *interface, int output) {
    for (int i = 0; i < interface->input_count; i++)
        if (interface->inputs[i].absent == SMG_ABSENT_STATE && interface->inputs[i].next == output) return i;
    return -1;
}

smg_status smg_sizes_find(smg_context *ctx, const smg_sizes *sizes, const char *name, int *out_symbol) {
    *out_symbol = smg_size_symbol_find(sizes, name);
    if (*out_symbol >= 0) return SMG_OK;
    smg_text names;
    smg_text_init(&names, ctx);
    for (int i = 0; i < smg_size_symbol_count(sizes); i++) {
        smg_text_addf(&names, "%s%s", i > 0 ? ", " : "", smg_size_symbol_name(sizes, i));
    }
    smg_status status = smg_fail(ctx, SMG_NOT_FOUND, "the model has no size '%s'; it has: %s", name,
                                 names.length > 0 ? smg_text_cstr(&names) : "none");
    smg_text_free(&names);
    return status;
}

smg_status smg_sizes_give(smg_context *ctx, const smg_sizes *sizes, const smg_dim *dims, int count,
                          int64_t *io_values) {
    for (int i = 0; i < count; i++) {
        int symbol = 0;
        SMG_TRY(smg_sizes_find(ctx, sizes, dims[i].name, &symbol));
        int64_t max = smg_size_symbol_max(sizes, symbol);
        if (dims[i].value < 1 || dims[i].value > max) {
            return smg_fail(ctx, SMG_INVALID, "%s is %lld, it must be in [1, %lld]", dims[i].name,
                            (long long)dims[i].value, (long long)max);
        }
        io_values[symbol] = dims[i].value;
    }
    return SMG_OK;
}

bool smg_sizes_all_given(const smg_sizes *sizes, const smg_dim *dims, int count) {
    for (int s = 0; s < smg_size_symbol_count(sizes); s++) {
        int i = 0;
        while (i < count && strcmp(dims[i].name, smg_size_symbol_name(sizes, s)) != 0) i++;
        if (i == count) return false;
    }
    return true;
}

bool smg_sizes_same_symbols(const smg_sizes *a, const smg_sizes *b) {
    int count = smg_size_symbol_count(a);
    if (count != smg_size_symbol_count(b)) return false;
    for (int i = 0; i < count; i++)
        if (strcmp(smg_size_symbol_name(a, i), smg_size_symbol_name(b, i)) != 0) return false;
    return true;
}

/* ---- sizes ------------------------------------------------------------------------------------------ */

static const smg_tensor *find_tensor(const smg_tensor *tensors, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (tensors[i].name != NULL && strcmp(tensors[i].name, name) == 0) return &tensors[i];
    }
    return NULL;
}

/* A dim that is a plain symbol gives it its value; 0 in `values`: none yet. */
static smg_status read_dims(smg_context *ctx, const smg_sizes *sizes, const smg_port *port, const smg_tensor *tensor,
                            int64_t *values) {
    if (tensor->rank != port->rank) {
        return smg_fail(ctx, SMG_INVALID, "input '%s' has %d axes, %d were given", port->name, port->rank,
                        tensor->rank);
    }
    for (int d = 0; d < port->rank; d++) {
        int symbol = 0;
        if (!smg_size_is_symbol(sizes, port->dims[d], &symbol)) continue;
        const char *name = smg_size_symbol_name(sizes, symbol);
        int64_t max = smg_size_symbol_max(sizes, symbol);
        if (tensor->dims[d] < 1 || tensor->dims[d] > max) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d (%s) is %lld, it must be in [1, %lld]", port->name,
                            d, name, (long long)tensor->dims[d], (long long)max);
        }
        if (values[symbol] != 0 && values[symbol] != tensor->dims[d]) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d (%s) is %lld, another input has %lld", port->name, d,
                            name, (long long)tensor->dims[d], (long long)values[symbol]);
        }
        values[symbol] = tensor->dims[d];
    }
    return SMG_OK;
}

#define MOST_SOLVED 64 /* symbols up to which dims are solved: a set of them is one word */

/* Dims such as 2*s or s+1 give s its value where no plain dim did; what does not come out is left to the check. Unknown
 * symbols stand at 1 meanwhile: a run allocates nothing. */
static void solve_dims(const smg_sizes *sizes, const smg_port *port, const smg_tensor *tensor, int64_t *values,
                       uint64_t *io_unknown) {
    for (int d = 0; d < port->rank; d++) {
        int moving = 0, last = -1;
        int64_t at_one, at_two, slope = 0;
        if (!smg_size_eval(sizes, port->dims[d], values, &at_one)) continue;
        for (int i = 0; i < smg_size_symbol_count(sizes); i++) {
            if (!(*io_unknown >> i & 1)) continue;
            values[i] = 2;
            bool known = smg_size_eval(sizes, port->dims[d], values, &at_two);
            values[i] = 1;
            if (!known || at_two == at_one) continue;
            moving++;
            last = i;
            slope = at_two - at_one;
        }
        if (moving != 1 || (tensor->dims[d] - at_one) % slope != 0) continue;
        int64_t value = 1 + (tensor->dims[d] - at_one) / slope;
        if (value < 1 || value > smg_size_symbol_max(sizes, last)) continue;
        values[last] = value;
        *io_unknown &= ~(UINT64_C(1) << last);
    }
}

/* Values for what no plain dim gave: from other dims, else the defaults. */
static void fill_unknown(const smg_interface *interface, const smg_tensor *inputs, int count, const int64_t *defaults,
                         int64_t *values) {
    int symbols = smg_size_symbol_count(interface->sizes);
    uint64_t unknown = 0;
    for (int i = 0; i < symbols && symbols <= MOST_SOLVED; i++) {
        if (values[i] != 0) continue;
        unknown |= UINT64_C(1) << i;
        values[i] = 1;
    }
    for (int i = 0; unknown != 0 && i < interface->input_count; i++) {
        const smg_port *port = &interface->inputs[i];
        const smg_tensor *tensor = find_tensor(inputs, count, port->name);
        if (tensor != NULL && tensor->rank == port->rank) solve_dims(interface->sizes, port, tensor, values, &unknown);
    }
    for (int i = 0; i < symbols; i++) {
        bool given = symbols <= MOST_SOLVED ? !(unknown >> i & 1) : values[i] != 0;
        if (!given) values[i] = defaults != NULL ? defaults[i] : 1;
    }
}

static smg_status check_dims(smg_context *ctx, const smg_sizes *sizes, const smg_port *port, const smg_tensor *tensor,
                             const int64_t *values) {
    for (int d = 0; d < port->rank; d++) {
        int64_t want = 0;
        if (!smg_size_eval(sizes, port->dims[d], values, &want) || want != tensor->dims[d]) {
            return smg_fail(ctx, SMG_INVALID, "input '%s': axis %d is %lld, it must be %lld", port->name, d,
                            (long long)tensor->dims[d], (long long)want);
        }
    }
    return SMG_OK;
}

smg_status smg_interface_sizes(smg_context *ctx, const smg_interface *interface, const smg_tensor *inputs, int count,
                               const int64_t *defaults, int64_t *out_values) {
    int symbols = smg_size_symbol_count(interface->sizes);
    for (int i = 0; i < symbols; i++) out_values[i] = 0;
    for (int i = 0; i < interface->input_count; i++) {
        const smg_tensor *tensor = find_tensor(inputs, count, interface->inputs[i].name);
        if (tensor == NULL) continue;
        SMG_TRY(read_dims(ctx, interface->sizes, &interface->inputs[i], tensor, out_values));
    }
    fill_unknown(interface, inputs, count, defaults, out_values);
    for (int i = 0; i < interface->input_count; i++) {
        const smg_tensor *tensor = find_tensor(inputs, count, interface->inputs[i].name);
        if (tensor == NULL) continue;
        SMG_TRY(check_dims(ctx, interface->sizes, &interface->inputs[i], tensor, out_values));
    }
    return SMG_OK;
}

/* ---- copies ----------------------------------------------------------------------------------------- */

static smg_status copy_ports(smg_arena *arena, const smg_interface *from, const smg_port *ports, int count,
                             smg_sizes *sizes, smg_port **out) {
    smg_port *copy = SMG_ARENA_ARRAY(arena, smg_port, (size_t)count + 1);
    if (copy == NULL) return SMG_MEMORY;
    for (int i = 0; i < count; i++) {
        copy[i] = ports[i];
        copy[i].name = smg_arena_string(arena, ports[i].name);
        copy[i].below = smg_size_import(sizes, from->sizes, ports[i].below);
        if (copy[i].name == NULL || copy[i].below == SMG_SIZE_NONE) return smg_context_status(smg_arena_context(arena));
        for (int d = 0; d < ports[i].rank; d++) {
            copy[i].dims[d] = smg_size_import(sizes, from->sizes, ports[i].dims[d]);
            if (copy[i].dims[d] == SMG_SIZE_NONE) return smg_context_status(smg_arena_context(arena));
        }
    }
    *out = copy;
    return SMG_OK;
}

smg_status smg_interface_copy(smg_arena *arena, const smg_interface *from, const smg_sizes *limits,
                              smg_interface **out_interface) {
    int symbols = smg_size_symbol_count(from->sizes);
    smg_interface *n = SMG_ARENA_NEW(arena, smg_interface);
    if (n == NULL) return SMG_MEMORY;
    *n = *from;
    n->nominal = SMG_ARENA_ARRAY(arena, int64_t, (size_t)symbols + 1);
    if (n->nominal == NULL) return SMG_MEMORY;
    memcpy(n->nominal, from->nominal, (size_t)symbols * sizeof(*n->nominal));
    SMG_TRY(smg_sizes_create(arena, &n->sizes));
    for (int i = 0; i < symbols; i++) {
        if (smg_size_symbol(n->sizes, smg_size_symbol_name(from->sizes, i)) == SMG_SIZE_NONE)
            return smg_context_status(smg_arena_context(arena));
        smg_size_symbol_set_max(n->sizes, i, smg_size_symbol_max(limits, i));
    }
    SMG_TRY(copy_ports(arena, from, from->inputs, from->input_count, n->sizes, &n->inputs));
    SMG_TRY(copy_ports(arena, from, from->outputs, from->output_count, n->sizes, &n->outputs));
    *out_interface = n;
    return SMG_OK;
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

static void write_ports(const smg_port *ports, int count, smg_text *out) {
    smg_text_add_u32(out, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        smg_text_add_string(out, ports[i].name);
        smg_text_add_u32(out, (uint32_t)ports[i].type);
        smg_text_add_u32(out, (uint32_t)ports[i].absent);
        if (ports[i].absent == SMG_ABSENT_STATE) smg_text_add_u32(out, (uint32_t)ports[i].next);
        smg_text_add_u32(out, (uint32_t)ports[i].below);
        smg_text_add_u32(out, (uint32_t)ports[i].rank);
        for (int d = 0; d < ports[i].rank; d++) smg_text_add_u32(out, (uint32_t)ports[i].dims[d]);
    }
}

void smg_interface_write(const smg_interface *interface, smg_text *out) {
    smg_sizes_write(interface->sizes, out);
    for (int i = 0; i < smg_size_symbol_count(interface->sizes); i++) {
        smg_text_add_u64(out, (uint64_t)interface->nominal[i]);
    }
    write_ports(interface->inputs, interface->input_count, out);
    write_ports(interface->outputs, interface->output_count, out);
}

static smg_status read_ports(smg_reader *r, smg_arena *arena, const smg_sizes *sizes, smg_port **out, int *out_count) {
    enum { LEAST_PORT = 20 }; /* bytes */
    int last = smg_sizes_count(sizes) - 1;
    *out_count = smg_reader_count(r, LEAST_PORT);
    *out = SMG_ARENA_ARRAY(arena, smg_port, (size_t)*out_count + 1);
    if (*out == NULL) return SMG_MEMORY;
    for (int i = 0; i < *out_count && !r->failed; i++) {
        smg_port *p = &(*out)[i];
        p->name = smg_reader_string(r, arena);
        p->type = (smg_storage)smg_reader_int(r, 0, SMG_STORE_COUNT - 1);
        p->absent = (smg_absent)smg_reader_int(r, 0, SMG_ABSENT_COUNT - 1);
        if (p->absent == SMG_ABSENT_STATE) p->next = smg_reader_int(r, 0, INT32_MAX);
        p->below = smg_reader_int(r, 0, last);
        p->rank = smg_reader_int(r, 0, SMG_BUNDLE_RANK);
        for (int d = 0; d < p->rank; d++) p->dims[d] = smg_reader_int(r, 0, last);
        if (smg_storage_given(p->type) != p->type || p->name == NULL) r->failed = true;
        for (int other = 0; other < i && !r->failed; other++) {
            if (strcmp((*out)[other].name, p->name) == 0) r->failed = true;
        }
    }
    return smg_context_status(smg_arena_context(arena));
}

/* Each state has an output of its own that is like it. */
static bool states_are_valid(const smg_interface *n) {
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i].absent != SMG_ABSENT_REFUSED) return false;
    for (int i = 0; i < n->input_count; i++) {
        const smg_port *in = &n->inputs[i];
        if (in->absent != SMG_ABSENT_STATE) continue;
        if (in->next >= n->output_count || smg_interface_state_of(n, in->next) != i) return false;
        const smg_port *out = &n->outputs[in->next];
        if (in->type != out->type || in->rank != out->rank) return false;
        for (int d = 0; d < in->rank; d++)
            if (in->dims[d] != out->dims[d]) return false;
    }
    return true;
}

smg_status smg_interface_read(smg_reader *r, smg_arena *arena, smg_interface **out_interface) {
    smg_interface *n = SMG_ARENA_NEW(arena, smg_interface);
    if (n == NULL) return SMG_MEMORY;
    SMG_TRY(smg_sizes_read(r, arena, &n->sizes));
    int symbols = smg_size_symbol_count(n->sizes);
    n->nominal = SMG_ARENA_ARRAY(arena, int64_t, (size_t)symbols + 1);
    if (n->nominal == NULL) return SMG_MEMORY;
    for (int i = 0; i < symbols; i++) {
        n->nominal[i] = (int64_t)smg_reader_u64(r);
        if (n->nominal[i] < 1 || n->nominal[i] > smg_size_symbol_max(n->sizes, i)) r->failed = true;
    }
    SMG_TRY(read_ports(r, arena, n->sizes, &n->inputs, &n->input_count));
    SMG_TRY(read_ports(r, arena, n->sizes, &n->outputs, &n->output_count));
    if (r->failed || !states_are_valid(n))
        return smg_fail(smg_arena_context(arena), SMG_FORMAT, "inputs and outputs are damaged");
    *out_interface = n;
    return SMG_OK;
}
