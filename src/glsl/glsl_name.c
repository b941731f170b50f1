/* glsl_name.c: identifiers. Names of the kernel are kept where GLSL allows: other characters become
 * one underscore (two in a row are reserved), and a second user of a name gets a number behind it.
 */
#include "glsl_private.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *cleaned(glsl_writer *w, const char *name) {
    size_t length = name == NULL ? 0 : strlen(name);
    char *text = smg_arena_alloc(w->arena, length + 2, 1);
    if (text == NULL) return glsl_kept(w, NULL);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (is_word(name[i])) {
            text[used++] = name[i];
        } else if (used > 0 && text[used - 1] != '_') {
            text[used++] = '_';
        }
    }
    while (used > 0 && text[used - 1] == '_') used--;
    if (used == 0) text[used++] = 'n';
    text[used] = 0;
    return text;
}

static const char *unique(glsl_writer *w, const char *name, const char *const *taken, int index) {
    const char *text = cleaned(w, name);
    for (int i = 0; i < index; i++) {
        if (strcmp(taken[i], text) == 0) {
            text = GLSL_STRING(w, "%s_x%d", text, index);
            i = -1;
        }
    }
    return text;
}

/* Tiles on one memory share its array. */
static const char *tile_array(glsl_writer *w, int t) {
    int memory = w->k->tiles.items[t].memory;
    for (int i = 0; memory > 0 && i < t; i++)
        if (w->k->tiles.items[i].memory == memory) return w->tile_name[i];
    return unique(w, w->k->tiles.items[t].name, w->tile_name, t);
}

smg_status glsl_names(glsl_writer *w) {
    const smg_kernel *k = w->k;
    w->axis_name = glsl_zeroed(w, k->axes.count, sizeof(char *));
    w->tile_name = glsl_zeroed(w, k->tiles.count, sizeof(char *));
    w->buffer_name = glsl_zeroed(w, k->buffers.count, sizeof(char *));
    if (w->status != SMG_OK) return w->status;
    for (int i = 0; i < k->axes.count; i++) w->axis_name[i] = unique(w, k->axes.items[i].name, w->axis_name, i);
    for (int i = 0; i < k->tiles.count; i++) w->tile_name[i] = tile_array(w, i);
    for (int i = 0; i < k->buffers.count; i++)
        w->buffer_name[i] = unique(w, k->buffers.items[i].name, w->buffer_name, i);
    return w->status;
}

const char *glsl_comment(glsl_writer *w, const char *text) {
    size_t length = text == NULL ? 0 : strlen(text);
    char *copy = smg_arena_alloc(w->arena, length + 1, 1);
    if (copy == NULL) return glsl_kept(w, NULL);
    for (size_t i = 0; i < length; i++) {
        bool plain = text[i] >= ' ' && text[i] <= '~' && text[i] != '\\';
        copy[i] = plain ? text[i] : (text[i] == '\n' ? ' ' : '?');
    }
    return copy;
}
