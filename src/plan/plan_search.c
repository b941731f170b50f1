/* How the schedule of a segment was found, as a record: which schedules were generated, which were lowered, what each
 * costs or why it is none, and how many were left alone. It is kept of segments that became kernels, for explain. */
#include <math.h>

#include "plan/plan_internal.h"

smg_status plan_record_tried(planner *p, uint64_t choice, const smg_schedule *s, double guess, const char *refused,
                             const smg_price *price) {
    smg_text text;
    if (p->record == NULL) return SMG_OK;
    for (int i = 0; i < p->record->tried.count; i++)
        if (p->record->tried.items[i].schedule == choice) {
            p->record->repeated++;
            return SMG_OK;
        }
    smg_tried *slot = SMG_ARRAY_PUSH(p->kept_in, &p->record->tried);
    if (slot == NULL) return SMG_MEMORY;
    p->record->untried -= p->record->untried > 0; /* one that was measured comes after the others */
    *slot = (smg_tried){.schedule = choice, .guess = guess, .price = *price};
    smg_text_init(&text, p->ctx);
    smg_sched_print(s, &text);
    slot->text = smg_arena_string(p->kept_in, smg_text_cstr(&text));
    smg_status status = smg_text_status(&text);
    smg_text_free(&text);
    if (refused != NULL) slot->refused = smg_arena_string(p->kept_in, refused);
    return slot->text == NULL || (refused != NULL && slot->refused == NULL) ? SMG_MEMORY : status;
}

smg_status plan_record_crowded(planner *p, const char *why) {
    if (p->record == NULL) return SMG_OK;
    for (int i = 0; i < p->record->crowded.count; i++) {
        if (strcmp(p->record->crowded.items[i].why, why) != 0) continue;
        p->record->crowded.items[i].count++;
        return SMG_OK;
    }
    smg_fallen *slot = SMG_ARRAY_PUSH(p->kept_in, &p->record->crowded);
    if (slot == NULL) return SMG_MEMORY;
    *slot = (smg_fallen){.why = smg_arena_string(p->kept_in, why), .count = 1};
    return slot->why != NULL ? SMG_OK : SMG_MEMORY;
}

/* What was lowered has no guess any more. */
void plan_record_left(planner *p, int generated, const double *guess, int count) {
    if (p->record == NULL) return;
    p->record->generated = generated;
    p->record->untried = 0;
    for (int i = 0; i < count; i++) p->record->untried += !isinf(guess[i]);
    p->record->roomless = generated - p->record->untried - p->record->tried.count - p->record->repeated;
}
