/* cli_embed.c: smg embed: texts from the command line, or lines from stdin in windows of constant
 * memory; one line of numbers (or of JSON) a text, in order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { WINDOW = 256 };

typedef struct stream {
    const cli_options *o;
    smg_embedder *embedder;
    float *rows;
    int64_t printed;
} stream;

static smg_status print_rows(stream *s, const char *const *texts, const size_t *lengths, int count) {
    int width = smg_embedder_width(s->embedder);
    cli_text line = {0};
    for (int i = 0; i < count; i++) {
        const float *row = s->rows + (size_t)i * (size_t)width;
        if (s->o->json) {
            cli_text_add(&line, "{\"text\": ");
            cli_text_add_json_n(&line, texts[i], lengths[i]);
            cli_text_add(&line, ", \"embedding\": [");
        }
        for (int d = 0; d < width; d++) {
            if (d > 0) cli_text_add(&line, s->o->json ? ", " : " ");
            if (s->o->json && !isfinite(row[d]))
                cli_text_add(&line, "null"); /* JSON has no NaN */
            else
                cli_text_add_f32(&line, row[d]);
        }
        cli_text_add(&line, s->o->json ? "]}\n" : "\n");
    }
    return cli_text_print(&line, SMG_OK);
}

static smg_status embed_window(stream *s, const char *const *texts, const size_t *lengths, int count) {
    smg_status status = smg_embedder_embed(s->embedder, texts, lengths, count, s->rows);
    if (status != SMG_OK && s->printed > 0)
        cli_error(s->o, status, "after %lld texts: %s", (long long)s->printed, smg_context_error(s->o->ctx));
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
        CLI_TRY(embed_window(s, texts + at, lengths, part));
    }
    return SMG_OK;
}

/* The next line of stdin without its end, NULs included; false: there is none, or no memory for it. */
static bool read_line(cli_text *line) {
    char piece[4096];
    size_t length = 0;
    int c = 0;
    line->length = 0;
    cli_text_add(line, "");
    while ((c = getc(stdin)) != EOF && c != '\n') {
        piece[length++] = (char)c;
        if (length < sizeof(piece)) continue;
        cli_text_add_n(line, piece, length);
        length = 0;
    }
    cli_text_add_n(line, piece, length);
    bool there = c == '\n' || line->length > 0;
    if (line->length > 0 && line->data[line->length - 1] == '\r') line->data[--line->length] = '\0';
    return there && !line->failed;
}

static smg_status embed_lines(stream *s) {
    cli_text lines[WINDOW] = {0};
    const char *texts[WINDOW];
    size_t lengths[WINDOW];
    smg_status status = SMG_OK;
    bool more = true;
    while (more && status == SMG_OK) {
        int count = 0;
        while (more && count < WINDOW && status == SMG_OK) {
            more = read_line(&lines[count]);
            status = cli_text_status(&lines[count]);
            if (!more) break;
            texts[count] = cli_text_cstr(&lines[count]);
            lengths[count] = lines[count].length;
            count++;
        }
        if (count > 0 && status == SMG_OK) status = embed_window(s, texts, lengths, count);
    }
    if (status == SMG_OK && ferror(stdin)) status = cli_error(s->o, SMG_IO, "cannot read stdin");
    for (int i = 0; i < WINDOW; i++) cli_text_free(&lines[i]);
    return status;
}

static smg_status embed(const cli_options *o) {
    stream s = {.o = o};
    const smg_model_desc desc = cli_model_desc(o);
    CLI_TRY(smg_embedder_open(o->ctx, o->words[0], &desc, &s.embedder));
    s.rows = calloc((size_t)smg_embedder_width(s.embedder) * WINDOW, sizeof(float));
    smg_status status = s.rows != NULL ? SMG_OK : SMG_MEMORY;
    if (status == SMG_OK) status = o->word_count > 1 ? embed_words(&s) : embed_lines(&s);
    free(s.rows);
    smg_embedder_close(s.embedder);
    return status;
}

int cli_embed(cli_options *o) {
    if (o->word_count < 1) {
        cli_error(o, SMG_INVALID, "a MODEL_DIR is needed");
        return cli_fail(o);
    }
    return embed(o) == SMG_OK ? CLI_OK : cli_fail(o);
}
