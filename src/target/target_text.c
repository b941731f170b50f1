/* The text form of a target: one `key = value  # origin` line a fact, in the order of the table, and
 * the `matrix` and `fragment` lines of target_matrix.c. A line's comment is its origin when it
 * is one of the five words; otherwise the fact was written by a person and counts as "table". Facts
 * that a text leaves out keep their careful value. Parsing what was printed gives the same target. */
#include "target/target_private.h"

#include <errno.h>
#include <stdlib.h>

typedef struct line_reader {
    smg_context *ctx;
    const char *where;
    int number;
    smg_target *target;
    bool *seen; /* by row */
} line_reader;

typedef struct span {
    const char *text;
    size_t length;
} span;

static span trim(const char *begin, const char *end) {
    while (begin < end && (*begin == ' ' || *begin == '\t' || *begin == '\r')) begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
    return (span){begin, (size_t)(end - begin)};
}

static bool span_is(span s, const char *word) {
    return strlen(word) == s.length && memcmp(s.text, word, s.length) == 0;
}

static smg_status copy_text(const line_reader *reader, span value, const char *key, char *out, size_t capacity) {
    if (value.length == 0 || value.length >= capacity)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: %s has %zu bytes, must have 1 to %zu", reader->where,
                        reader->number, key, value.length, capacity - 1);
    memset(out, 0, capacity);
    memcpy(out, value.text, value.length);
    return SMG_OK;
}

static bool read_integer(span value, int64_t *out_value) {
    char buffer[32];
    if (value.length == 0 || value.length >= sizeof buffer) return false;
    memcpy(buffer, value.text, value.length);
    buffer[value.length] = 0;
    if (buffer[0] != '-' && (buffer[0] < '0' || buffer[0] > '9')) return false;
    char *end = NULL;
    errno = 0;
    long long number = strtoll(buffer, &end, 10);
    *out_value = (int64_t)number;
    return *end == 0 && errno == 0;
}

static smg_fact_origin read_origin(span comment) {
    for (int i = SMG_FACT_ASSUMED; i <= SMG_FACT_FITTED; i++)
        if (span_is(comment, smg_target_origin_word((smg_fact_origin)i))) return (smg_fact_origin)i;
    return SMG_FACT_TABLE;
}

/* ---- one line ------------------------------------------------------------------------------ */

static smg_status parse_matrix(line_reader *reader, span value) {
    smg_target *target = reader->target;
    if (target->matrix_count >= SMG_MAX_MATRIX_SHAPES)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: more than %d matrix shapes", reader->where, reader->number,
                        SMG_MAX_MATRIX_SHAPES);
    if (smg_matrix_read(value.text, value.length, &target->matrix[target->matrix_count++])) return SMG_OK;
    return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: matrix '%.*s' is not of the form 16x16x16 f16 f16 f32 f32",
                    reader->where, reader->number, (int)value.length, value.text);
}

static smg_status parse_fragment(line_reader *reader, span value, span comment) {
    smg_target *target = reader->target;
    if (target->fragment_count >= SMG_MAX_FRAGMENTS)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: more than %d fragments", reader->where, reader->number,
                        SMG_MAX_FRAGMENTS);
    smg_fragment *fragment = &target->fragments[target->fragment_count++];
    if (!smg_fragment_read(value.text, value.length, fragment))
        return smg_fail(reader->ctx, SMG_FORMAT,
                        "%s:%d: fragment '%.*s' is not of the form a 8x8 f16 registers row*8 lanes column*8",
                        reader->where, reader->number, (int)value.length, value.text);
    fragment->from = read_origin(comment);
    return SMG_OK;
}

static smg_status parse_type(line_reader *reader, span value) {
    for (int i = SMG_DEVICE_OTHER; i <= SMG_DEVICE_CPU; i++) {
        if (span_is(value, smg_device_type_word((smg_device_type)i))) {
            reader->target->type = (smg_device_type)i;
            return SMG_OK;
        }
    }
    return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: type '%.*s' is not cpu, discrete, integrated, virtual or other",
                    reader->where, reader->number, (int)value.length, value.text);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static smg_status parse_uuid(line_reader *reader, span value) {
    uint8_t uuid[16];
    bool good = value.length == 32;
    for (size_t i = 0; i < 16 && good; i++) {
        int high = hex_digit(value.text[2 * i]), low = hex_digit(value.text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        uuid[i] = good ? (uint8_t)(high * 16 + low) : 0;
    }
    if (!good)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: uuid '%.*s' is not 32 hexadecimal digits", reader->where,
                        reader->number, (int)value.length, value.text);
    memcpy(reader->target->uuid, uuid, sizeof uuid);
    return SMG_OK;
}

static smg_status parse_revision(line_reader *reader, span value) {
    if (read_integer(value, &reader->target->revision) && reader->target->revision > 0) return SMG_OK;
    return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: revision '%.*s' is not a positive integer", reader->where,
                    reader->number, (int)value.length, value.text);
}

static smg_status parse_fact(line_reader *reader, span key, span value, span comment) {
    const smg_fact_row *row = smg_fact_find(key.text, key.length);
    if (!row)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: '%.*s' is not a fact of a target", reader->where,
                        reader->number, (int)key.length, key.text);
    if (reader->seen[row - smg_fact_rows])
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: '%s' is given twice", reader->where, reader->number, row->key);
    reader->seen[row - smg_fact_rows] = true;
    int64_t integer = 0;
    double real = 0;
    bool good = row->is_real ? smg_real_read(value.text, value.length, &real) : read_integer(value, &integer);
    if (!good)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: %s = '%.*s' is not %s", reader->where, reader->number,
                        row->key, (int)value.length, value.text, row->is_real ? "a number" : "an integer");
    smg_fact_set(reader->target, row, integer, real, read_origin(comment));
    return SMG_OK;
}

static smg_status parse_line(line_reader *reader, const char *begin, const char *end) {
    const char *hash = memchr(begin, '#', (size_t)(end - begin));
    span comment = hash ? trim(hash + 1, end) : (span){end, 0};
    span line = trim(begin, hash ? hash : end);
    if (line.length == 0) return SMG_OK;
    const char *equals = memchr(line.text, '=', line.length);
    if (!equals)
        return smg_fail(reader->ctx, SMG_FORMAT, "%s:%d: '%.*s' is not of the form key = value", reader->where,
                        reader->number, (int)(line.length > 60 ? 60 : line.length), line.text);
    span key = trim(line.text, equals);
    span value = trim(equals + 1, line.text + line.length);
    if (span_is(key, "name"))
        return copy_text(reader, value, "name", reader->target->name, sizeof reader->target->name);
    if (span_is(key, "driver"))
        return copy_text(reader, value, "driver", reader->target->driver, sizeof reader->target->driver);
    if (span_is(key, "type")) return parse_type(reader, value);
    if (span_is(key, "uuid")) return parse_uuid(reader, value);
    if (span_is(key, "revision")) return parse_revision(reader, value);
    if (span_is(key, "matrix")) return parse_matrix(reader, value);
    if (span_is(key, "fragment")) return parse_fragment(reader, value, comment);
    return parse_fact(reader, key, value, comment);
}

smg_status smg_target_parse(smg_context *ctx, const char *text, const char *where, smg_target *out_target) {
    smg_target target;
    bool seen[SMG_TARGET_FACT_COUNT] = {false};
    smg_target_init(&target);
    line_reader reader = {ctx, where, 0, &target, seen};
    while (*text) {
        const char *end = strchr(text, '\n');
        if (!end) end = text + strlen(text);
        reader.number++;
        SMG_TRY(parse_line(&reader, text, end));
        text = *end ? end + 1 : end;
    }
    if (!target.name[0]) {
        size_t length = strlen(where);
        memcpy(target.name, where, length < sizeof target.name ? length : sizeof target.name - 1);
    }
    smg_target_settle(&target);
    SMG_TRY(smg_target_verify(ctx, &target));
    *out_target = target;
    return SMG_OK;
}

/* ---- print --------------------------------------------------------------------------------- */

static void print_fact(const smg_target *target, const smg_fact_row *row, smg_text *text) {
    smg_text_addf(text, "%s = ", row->key);
    if (row->is_real)
        smg_text_add_f64(text, smg_fact_real(target, row));
    else
        smg_text_addf(text, "%lld", (long long)smg_fact_int(target, row));
    smg_text_addf(text, "  # %s\n", smg_target_origin_word(smg_fact_from(target, row)));
}

static void print_revision(const smg_target *target, smg_text *text) {
    if (target->revision > 0) smg_text_addf(text, "revision = %lld\n", (long long)target->revision);
}

void smg_target_print_given(const smg_target *target, smg_text *text) {
    smg_text_addf(text, "type = %s\n", smg_device_type_word(target->type));
    print_revision(target, text);
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++)
        if (smg_fact_from(target, &smg_fact_rows[i]) != SMG_FACT_ASSUMED) print_fact(target, &smg_fact_rows[i], text);
    smg_matrices_print(target, text);
}

void smg_target_print(const smg_target *target, smg_text *text) {
    smg_text_addf(text, "name = %s\n", target->name);
    if (target->driver[0]) smg_text_addf(text, "driver = %s\n", target->driver);
    smg_text_addf(text, "type = %s\n", smg_device_type_word(target->type));
    static const uint8_t no_uuid[16];
    if (memcmp(target->uuid, no_uuid, sizeof no_uuid) != 0) {
        smg_text_add(text, "uuid = ");
        for (int i = 0; i < 16; i++) smg_text_addf(text, "%02x", (unsigned)target->uuid[i]);
        smg_text_add(text, "\n");
    }
    print_revision(target, text);
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) print_fact(target, &smg_fact_rows[i], text);
    smg_matrices_print(target, text);
}
