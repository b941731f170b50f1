/* array_signature.c: an interface in words, for who has public headers alone. */
#include "array/array.h"

/* What callers have, with what they give back to us. */
typedef struct written {
    smg_signature told; /* first */
    const smg_interface *interface;
} written;

static smg_status write_port(smg_arena *arena, const smg_interface *n, const smg_port *port, smg_port_info *out) {
    *out = (smg_port_info){.name = port->name, .type = smg_storage_word(port->type), .rank = port->rank};
    out->optional = port->absent == SMG_ABSENT_ZEROS || port->absent == SMG_ABSENT_ONES;
    if (port->absent == SMG_ABSENT_STATE) out->state = n->outputs[port->next].name;
    for (int d = 0; d < port->rank; d++) {
        smg_text text;
        smg_text_init(&text, smg_arena_context(arena));
        smg_size_print(n->sizes, port->dims[d], &text);
        smg_status status = smg_text_status(&text);
        if (status == SMG_OK) out->dims[d] = smg_arena_string(arena, smg_text_cstr(&text));
        smg_text_free(&text);
        if (out->dims[d] == NULL) return SMG_MEMORY;
        if (!smg_size_is_const(n->sizes, port->dims[d], &out->fixed[d])) out->fixed[d] = -1;
    }
    return SMG_OK;
}

smg_status smg_signature_make(smg_arena *arena, const smg_interface *n, const smg_signature **out_signature) {
    int symbols = smg_size_symbol_count(n->sizes);
    written *w = SMG_ARENA_NEW(arena, written);
    smg_port_info *inputs = SMG_ARENA_ARRAY(arena, smg_port_info, (size_t)n->input_count + 1);
    smg_port_info *outputs = SMG_ARENA_ARRAY(arena, smg_port_info, (size_t)n->output_count + 1);
    smg_size_info *sizes = SMG_ARENA_ARRAY(arena, smg_size_info, (size_t)symbols + 1);
    if (w == NULL || inputs == NULL || outputs == NULL || sizes == NULL) return SMG_MEMORY;
    for (int i = 0; i < n->input_count; i++) SMG_TRY(write_port(arena, n, &n->inputs[i], &inputs[i]));
    for (int i = 0; i < n->output_count; i++) SMG_TRY(write_port(arena, n, &n->outputs[i], &outputs[i]));
    for (int i = 0; i < symbols; i++) {
        int64_t max = smg_size_symbol_max(n->sizes, i);
        sizes[i] = (smg_size_info){.name = smg_size_symbol_name(n->sizes, i), .usual = n->nominal[i]};
        if (max < SMG_SIZE_UNBOUNDED) sizes[i].max = max;
    }
    w->interface = n;
    w->told = (smg_signature){.inputs = inputs,
                              .outputs = outputs,
                              .sizes = sizes,
                              .input_count = n->input_count,
                              .output_count = n->output_count,
                              .size_count = symbols};
    *out_signature = &w->told;
    return SMG_OK;
}

const smg_interface *smg_signature_interface(const smg_signature *signature) {
    return ((const written *)(const void *)signature)->interface;
}
