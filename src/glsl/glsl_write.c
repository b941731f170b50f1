/* glsl_write.c: lines, blocks, failures and memory of the writer. */
#include "glsl_private.h"

void glsl_line(glsl_writer *w, const char *text) {
    for (int i = 0; i < w->depth; i++) smg_text_add(&w->body, "    ");
    smg_text_add(&w->body, text);
    smg_text_add(&w->body, "\n");
}

const char *glsl_kept(glsl_writer *w, const char *text) {
    if (text != NULL) return text;
    if (w->status == SMG_OK) w->status = SMG_MEMORY;
    return "";
}

void glsl_fail(glsl_writer *w, smg_status code, const char *sentence) {
    if (w->status != SMG_OK) return;
    w->status = smg_fail(w->ctx, code, "kernel %s: %s", w->k->name == NULL ? "" : w->k->name, sentence);
}

void *glsl_zeroed(glsl_writer *w, int count, size_t size) {
    void *memory = smg_arena_alloc(w->arena, (size_t)(count < 1 ? 1 : count), size);
    if (memory == NULL && w->status == SMG_OK) w->status = SMG_MEMORY;
    return memory;
}

void glsl_open(glsl_writer *w, const char *head) {
    GLSL_LINE(w, "%s%s{", head, head[0] != 0 ? " " : "");
    w->depth++;
}

void glsl_close(glsl_writer *w) {
    w->depth--;
    GLSL_LINE(w, "}");
}
