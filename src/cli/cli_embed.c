/* cli_embed.c: smg embed: texts from the command line, or lines from stdin in windows of constant
 * memory; one line of numbers (or of JSON) a text, in order. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

enum { WINDOW = 256 };

typedef struct stream {
    cli_options *o;
    smg_embedder *embedder;
    float *rows;
    int64_t printed;
} stream;

static smg_status print_rows(stream *s, const char *const *texts, const size_t *lengths, int count) {
    int width = smg_embedder_width(s->embedder);
    smg_text line;
    smg_text_init(&line, s->o->ctx);
    for (int i = 0; i < count; i++) {
        const float *row = s->rows + (size_t)i * (size_t)width;
        if (s->o->json) {
            smg_text_add(&line, "{\"text\": ");
            smg_text_add_json_n(&line, texts[i], lengths[i]);
            smg_text_add(&line, ", \"embedding\": [");
        }
        for (int d = 0; d < width; d++) {
            if (d > 0) smg_text_add(&line, s->o->json ? ", " : " ");
            if (s->o->json && !isfinite(row[d]))
                smg_text_add(&line, "null"); /* JSON has no NaN */
            else
                smg_text_add_f32(&line, row[d]);
        }
        smg_text_add(&line, s->o->json ? "]}\n" : "\n");
    }
    smg_status status = smg_text_status(&line);
    if (status == SMG_OK) fputs(smg_text_cstr(&line), stdout);
    smg_text_free(&line);
    return status;
}

static smg_status embed_window(stream *s, const char *const *texts, const size_t *lengths, int count) {
    smg_status status = smg_embedder_run(s->embedder, texts, lengths, count, s->rows);
    if (status != SMG_OK && s->printed > 0) {
        smg_fail_within(s->o->ctx, status, "after %lld texts", (long long)s->printed);
    }
    if (status != SMG_OK) return status;
    s->printed += count;
    return print_rows(s, texts, lengths, count);
}

static smg_status embed_words(stream *s) {
    const char *const *texts = s->o->words + 1;
    int count = s->o->word_count - 1;
    size_t lengths[WINDOW];
    for (int at = 0; at < count; at += WINDOW) {
        int part = count - at < WINDOW ? count - at : WINDOW;
        for (int i = 0; i < part; i++) lengths[i] = strlen(texts[at + i]);
        SMG_TRY(embed_window(s, texts + at, lengths, part));
    }
    return SMG_OK;
}

static size_t without_newline(char *line, ssize_t length) {
    size_t kept = (size_t)length;
    if (kept > 0 && line[kept - 1] == '\n') kept--;
    if (kept > 0 && line[kept - 1] == '\r') kept--;
    line[kept] = '\0';
    return kept;
}

static smg_status embed_lines(stream *s) {
    char *lines[WINDOW] = {0};
    size_t room[WINDOW] = {0};
    size_t lengths[WINDOW];
    smg_status status = SMG_OK;
    bool more = true;
    while (more && status == SMG_OK) {
        int count = 0;
        while (count < WINDOW) {
            /* Every line is freed below. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
            ssize_t length = getline(&lines[count], &room[count], stdin);
            if (length < 0) {
                more = false;
                break;
            }
            lengths[count] = without_newline(lines[count], length);
            count++;
        }
        if (count > 0) status = embed_window(s, (const char *const *)lines, lengths, count);
    }
    if (status == SMG_OK && ferror(stdin)) status = smg_fail(s->o->ctx, SMG_IO, "cannot read stdin");
    for (int i = 0; i < WINDOW; i++) free(lines[i]);
    return status;
}

static smg_status embed(cli_options *o, smg_source *source) {
    smg_model *model = NULL;
    stream s = {.o = o};
    const smg_model_desc desc = cli_model_desc(o);
    SMG_TRY(smg_model_open_source(o->ctx, source, NULL, &desc, &model));
    smg_status status = smg_embedder_create(model, source, &s.embedder);
    size_t floats = 0;
    if (status == SMG_OK) {
        floats = (size_t)smg_embedder_width(s.embedder) * WINDOW;
        s.rows = smg_alloc(o->ctx, floats, sizeof(float));
        status = s.rows != NULL ? SMG_OK : SMG_MEMORY;
    }
    if (status == SMG_OK) status = o->word_count > 1 ? embed_words(&s) : embed_lines(&s);
    smg_free(o->ctx, s.rows, floats * sizeof(float));
    smg_embedder_destroy(s.embedder);
    smg_model_close(model);
    return status;
}

int cli_embed(cli_options *o) {
    smg_source source = {0};
    if (o->word_count < 1) {
        smg_fail(o->ctx, SMG_INVALID, "a MODEL_DIR is needed");
        return cli_fail(o->ctx);
    }
    if (smg_source_open(o->ctx, o->words[0], true, &source) != SMG_OK) return cli_fail(o->ctx);
    smg_status status = embed(o, &source);
    smg_source_close(&source);
    return status == SMG_OK ? CLI_OK : cli_fail(o->ctx);
}
