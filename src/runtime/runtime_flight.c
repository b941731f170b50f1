/* runtime_flight.c: runs that do not wait.
 *
 * A model has one run in flight. What it needs at its end is kept with the model: where outputs go, which tensors are
 * in use. The one who asks after it finishes it, on the caller's thread; there are no threads of smg's. */
#include <math.h>

#include "runtime/runtime_private.h"

static const double spin_seconds = 1e-3;

smg_status smg_flight_make(smg_flight *flight, const smg_interface *n, smg_arena *arena) {
    size_t outputs = (size_t)n->output_count + 1;
    flight->outputs = SMG_ARENA_ARRAY(arena, smg_tensor, outputs);
    flight->wanted = SMG_ARENA_ARRAY(arena, int, outputs);
    flight->tensors = SMG_ARENA_ARRAY(arena, smg_device_tensor *, outputs + (size_t)n->input_count);
    return flight->outputs != NULL && flight->wanted != NULL && flight->tensors != NULL ? SMG_OK : SMG_MEMORY;
}

void smg_flight_land(smg_flight *flight) {
    flight->up = false;
    for (int i = 0; i < flight->tensor_count; i++) {
        smg_device_tensor *tensor = flight->tensors[i];
        tensor->runs--;
        if (tensor->runs == 0 && tensor->dropped) smg_tensor_destroy(tensor);
    }
    flight->tensor_count = 0;
}

static smg_status submit(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs, int output_count,
                         const struct smg_vulkan_sync *sync, smg_ticket *out_ticket) {
    if (out_ticket == NULL) return smg_fail(m->ctx, SMG_INVALID, "smg_model_submit: there is no place for the ticket");
    SMG_TRY(smg_flight_start(m, inputs, input_count, outputs, output_count, sync));
    *out_ticket = (smg_ticket){.model = m, .number = ++m->flight.number};
    return SMG_OK;
}

smg_status smg_flight_submit(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                             int output_count, const struct smg_vulkan_sync *sync, smg_ticket *out_ticket) {
    if (out_ticket != NULL) *out_ticket = (smg_ticket){0};
    if (m == NULL) return SMG_INVALID;
    smg_context_clear_error(m->ctx);
    return smg_context_told(m->ctx, submit(m, inputs, input_count, outputs, output_count, sync, out_ticket));
}

smg_status smg_model_submit(smg_model *m, const smg_tensor *inputs, int input_count, smg_tensor *outputs,
                            int output_count, smg_ticket *out_ticket) {
    return smg_flight_submit(m, inputs, input_count, outputs, output_count, NULL, out_ticket);
}

smg_status smg_flight_check(smg_ticket ticket) {
    const smg_model *m = ticket.model;
    if (ticket.number > 0 && ticket.number <= m->flight.number) return SMG_OK;
    return smg_fail(m->ctx, SMG_INVALID, "ticket %llu of a model that has given %llu",
                    (unsigned long long)ticket.number, (unsigned long long)m->flight.number);
}

static smg_status wait(smg_ticket ticket, double seconds, bool *out_done) {
    smg_model *m = ticket.model;
    smg_flight *flight = &m->flight;
    *out_done = true;
    SMG_TRY(smg_flight_check(ticket));
    if (ticket.number < flight->number) return SMG_OK;
    if (!flight->up) return flight->status;
    smg_status status = smg_program_wait(m->program, spin_seconds, seconds, out_done);
    if (!*out_done) return status;
    smg_flight_land(flight);
    flight->status = status == SMG_OK ? smg_flight_finish(m) : status;
    if (flight->status == SMG_OK) smg_flight_keep(m);
    return flight->status;
}

static smg_status cancel(smg_ticket ticket, bool *out_cancelled) {
    smg_model *m = ticket.model;
    SMG_TRY(smg_flight_check(ticket));
    if (ticket.number == m->flight.number && m->flight.up) smg_program_cancel(m->program, out_cancelled);
    return SMG_OK;
}

smg_status smg_ticket_cancel(smg_ticket ticket, bool *out_cancelled) {
    bool ignored = false;
    if (out_cancelled == NULL) out_cancelled = &ignored;
    *out_cancelled = false;
    if (ticket.model == NULL) return SMG_INVALID;
    smg_context_clear_error(ticket.model->ctx);
    return smg_context_told(ticket.model->ctx, cancel(ticket, out_cancelled));
}

smg_status smg_ticket_wait(smg_ticket ticket, double seconds, bool *out_done) {
    bool ignored = false;
    if (out_done == NULL) out_done = &ignored;
    *out_done = false;
    if (ticket.model == NULL) return SMG_INVALID;
    smg_context_clear_error(ticket.model->ctx);
    return smg_context_told(ticket.model->ctx, wait(ticket, seconds < 0 ? HUGE_VAL : seconds, out_done));
}
