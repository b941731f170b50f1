/* The diet of a file: the same protobuf message without the elements of tensors and without fields that
 * nobody reads.
 *
 * A general parser copies every bytes field, which for weights would double the memory. So the file is
 * walked once by its wire format, and what is small is copied into a buffer that the parser then reads;
 * of a tensor's elements only the place in the file is written down. The walk also bounds what the
 * parser will recurse into, and refuses a broken file with the offset where it breaks.
 *
 * Lengths of messages are written in five bytes, so that they can be filled in afterwards.
 */
#include "onnx/onnx_private.h"

#define DEEPEST 64 /* messages in messages; an If takes three */
#define LENGTH_BYTES 5

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef enum message_kind {
    END, /* of a table */
    COPY,
    DATA, /* elements of a tensor */
    MODEL,
    ID,
    GRAPH,
    UNREAD,
    NODE,
    ATTRIBUTE,
    TENSOR,
    ENTRY,
    VALUE_INFO,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    FUNCTION,
    MESSAGE_KINDS
} message_kind;

typedef struct field_row {
    uint32_t number;
    message_kind kind;
} field_row;

#define MOST_FIELDS 12
static const field_row fields[MESSAGE_KINDS][MOST_FIELDS] = {
    [MODEL] = {{1, COPY}, {7, GRAPH}, {8, ID}, {25, FUNCTION}},
    [ID] = {{1, COPY}, {2, COPY}},
    [GRAPH] = {{1, NODE}, {2, COPY}, {5, TENSOR}, {11, VALUE_INFO}, {12, VALUE_INFO}, {15, UNREAD}},
    [NODE] = {{1, COPY}, {2, COPY}, {3, COPY}, {4, COPY}, {5, ATTRIBUTE}, {7, COPY}, {8, COPY}},
    [ATTRIBUTE] = {{1, COPY},
                   {2, COPY},
                   {3, COPY},
                   {4, COPY},
                   {5, TENSOR},
                   {6, GRAPH},
                   {7, COPY},
                   {8, COPY},
                   {9, COPY},
                   {20, COPY},
                   {21, COPY}},
    [TENSOR] = {{1, COPY},
                {2, COPY},
                {4, DATA},
                {5, DATA},
                {7, DATA},
                {8, COPY},
                {9, DATA},
                {10, DATA},
                {11, DATA},
                {13, ENTRY},
                {14, COPY}},
    [ENTRY] = {{1, COPY}, {2, COPY}},
    [VALUE_INFO] = {{1, COPY}, {2, TYPE}},
    [TYPE] = {{1, TENSOR_TYPE}},
    [TENSOR_TYPE] = {{1, COPY}, {2, SHAPE}},
    [SHAPE] = {{1, DIMENSION}},
    [DIMENSION] = {{1, COPY}, {2, COPY}},
    [FUNCTION] =
        {{1, COPY}, {4, COPY}, {5, COPY}, {6, COPY}, {7, NODE}, {9, ID}, {10, COPY}, {11, ATTRIBUTE}, {13, COPY}},
};

typedef struct walk {
    smg_context *ctx;
    const char *label;
    const uint8_t *data;
    size_t at;
    uint8_t *out; /* hook memory */
    size_t length, capacity;
} walk;

static smg_status broken(walk *w, size_t at, const char *what) {
    return smg_fail(w->ctx, SMG_FORMAT, "'%s' is not a sound ONNX file: %s at byte %zu", w->label, what, at);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static smg_status reserve(walk *w, size_t bytes) {
    if (bytes <= w->capacity - w->length) return SMG_OK;
    size_t capacity = w->capacity + w->capacity / 2 + bytes + 4096;
    if (capacity > INT32_MAX)
        return smg_fail(w->ctx, SMG_UNSUPPORTED, "'%s' has more than 2 GiB beside the elements of tensors", w->label);
    uint8_t *out = smg_realloc(w->ctx, w->out, w->capacity, capacity);
    if (!out) return SMG_MEMORY;
    w->out = out;
    w->capacity = capacity;
    return SMG_OK;
}

static smg_status put_bytes(walk *w, const uint8_t *bytes, size_t count) {
    SMG_TRY(reserve(w, count));
    if (count > 0) memcpy(w->out + w->length, bytes, count);
    w->length += count;
    return SMG_OK;
}

static smg_status put_varint(walk *w, uint64_t value) {
    uint8_t bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return put_bytes(w, bytes, count);
}

static smg_status put_fixed(walk *w, uint32_t field, uint64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    SMG_TRY(put_varint(w, (uint64_t)field << 3 | WIRE_64));
    return put_bytes(w, bytes, sizeof bytes);
}

static void set_length(walk *w, size_t at, size_t length) {
    for (int i = 0; i < LENGTH_BYTES; i++) {
        uint8_t more = i + 1 < LENGTH_BYTES ? 0x80 : 0;
        w->out[at + (size_t)i] = (uint8_t)((length & 0x7f) | more);
        length >>= 7;
    }
}

/* ---- reading ------------------------------------------------------------------------------------ */

static smg_status get_varint(walk *w, size_t end, uint64_t *out_value) {
    size_t begin = w->at;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at >= end) return broken(w, begin, "a number is cut off");
        uint8_t byte = w->data[w->at++];
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return SMG_OK;
        }
    }
    return broken(w, begin, "a number has more than ten bytes");
}

static smg_status skip(walk *w, size_t end, uint32_t wire) {
    uint64_t value = 0;
    size_t begin = w->at, step = 0;
    switch (wire) {
    case WIRE_VARINT: return get_varint(w, end, &value);
    case WIRE_64: step = 8; break;
    case WIRE_32: step = 4; break;
    case WIRE_BYTES:
        SMG_TRY(get_varint(w, end, &value));
        if (value > end - w->at) return broken(w, begin, "a length leads past the end");
        step = (size_t)value;
        break;
    default: return broken(w, begin, "a field has an unknown wire type");
    }
    if (step > end - w->at) return broken(w, begin, "a field is cut off");
    w->at += step;
    return SMG_OK;
}

static message_kind find_field(message_kind kind, uint64_t number) {
    for (int i = 0; i < MOST_FIELDS && fields[kind][i].kind != END; i++)
        if (fields[kind][i].number == number) return fields[kind][i].kind;
    return END;
}

/* One piece of elements: its place. */
static smg_status walk_data(walk *w, size_t end, uint64_t field, uint32_t wire, bool *io_seen) {
    uint64_t bytes = 0;
    size_t begin = w->at;
    if (wire != WIRE_BYTES)
        return smg_fail(w->ctx, SMG_UNSUPPORTED,
                        "'%s': a tensor's elements at byte %zu are written one by one, not packed", w->label, begin);
    if (*io_seen)
        return smg_fail(w->ctx, SMG_UNSUPPORTED, "'%s': a tensor has a second piece of elements at byte %zu", w->label,
                        begin);
    *io_seen = true;
    SMG_TRY(get_varint(w, end, &bytes));
    if (bytes > end - w->at) return broken(w, begin, "a tensor leads past the end");
    SMG_TRY(put_varint(w, 2001u << 3 | WIRE_VARINT));
    SMG_TRY(put_varint(w, field));
    SMG_TRY(put_fixed(w, 2002, w->at));
    SMG_TRY(put_fixed(w, 2003, bytes));
    w->at += (size_t)bytes;
    return SMG_OK;
}

static smg_status walk_message(walk *w, size_t end, message_kind kind, int depth) {
    bool seen_data = false;
    if (depth > DEEPEST) return broken(w, w->at, "messages are nested more than 64 deep");
    while (w->at < end) {
        size_t begin = w->at;
        uint64_t tag = 0;
        SMG_TRY(get_varint(w, end, &tag));
        uint64_t number = tag >> 3;
        uint32_t wire = (uint32_t)(tag & 7);
        message_kind what = find_field(kind, number);
        if (number == 0 || number > 536870911) return broken(w, begin, "a field has no number");
        if (what == DATA) {
            SMG_TRY(walk_data(w, end, number, wire, &seen_data));
            continue;
        }
        size_t value = w->at;
        SMG_TRY(skip(w, end, wire));
        if (what == END) continue;
        if (what == COPY) {
            SMG_TRY(put_bytes(w, w->data + begin, w->at - begin));
            continue;
        }
        if (wire != WIRE_BYTES) return broken(w, begin, "a message has a wrong wire type");
        size_t inner_end = w->at;
        uint64_t length = 0;
        w->at = value;
        SMG_TRY(get_varint(w, end, &length));
        SMG_TRY(put_varint(w, tag));
        size_t hole = w->length;
        SMG_TRY(put_bytes(w, (const uint8_t[LENGTH_BYTES]){0}, LENGTH_BYTES));
        SMG_TRY(walk_message(w, inner_end, what, depth + 1));
        set_length(w, hole, w->length - hole - LENGTH_BYTES);
    }
    return SMG_OK;
}

smg_status smg_onnx_diet(smg_context *ctx, const char *label, const void *data, size_t size, uint8_t **out_data,
                         size_t *out_size, size_t *out_capacity) {
    walk w = {.ctx = ctx, .label = label, .data = data};
    smg_status status = walk_message(&w, size, MODEL, 0);
    if (status == SMG_OK) status = reserve(&w, 1); /* never NULL */
    *out_data = NULL;
    if (status != SMG_OK) {
        smg_free(ctx, w.out, w.capacity);
        return status;
    }
    *out_data = w.out;
    *out_size = w.length;
    *out_capacity = w.capacity;
    return SMG_OK;
}
