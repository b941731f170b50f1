/* facts_text.c: text that is done, to who asked for it. */
#include "facts/facts.h"

smg_status smg_text_give(smg_text *text, smg_sink sink) {
    smg_status status = smg_text_status(text);
    if (status == SMG_OK && sink.write == NULL)
        status = smg_fail(text->ctx, SMG_INVALID, "smg_sink: there is no function to write with");
    if (status == SMG_OK) sink.write(sink.user, smg_text_cstr(text), text->length);
    smg_text_free(text);
    return status;
}
