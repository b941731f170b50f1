/* See the header. */
#include "support/onnx_bytes.h"

#include <stdlib.h>
#include <string.h>

void pb_free(pb *p) {
    free(p->data);
    *p = (pb){0};
}

void pb_raw(pb *p, const void *bytes, size_t count) {
    if (p->capacity - p->size < count) {
        p->capacity = p->capacity * 2 + count + 64;
        p->data = realloc(p->data, p->capacity);
        if (!p->data) abort();
    }
    if (count > 0) memcpy(p->data + p->size, bytes, count);
    p->size += count;
}

static size_t varint_bytes(uint64_t value, uint8_t out[10]) {
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) out[count++] = (uint8_t)(value | 0x80);
    out[count++] = (uint8_t)value;
    return count;
}

void pb_varint(pb *p, uint64_t value) {
    uint8_t bytes[10];
    pb_raw(p, bytes, varint_bytes(value, bytes));
}

static void tag(pb *p, int field, int wire) {
    pb_varint(p, (uint64_t)field << 3 | (uint64_t)wire);
}

void pb_int(pb *p, int field, int64_t value) {
    tag(p, field, 0);
    pb_varint(p, (uint64_t)value);
}

void pb_float(pb *p, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    tag(p, field, 5);
    for (int i = 0; i < 4; i++) {
        uint8_t byte = (uint8_t)(bits >> 8 * i);
        pb_raw(p, &byte, 1);
    }
}

void pb_bytes(pb *p, int field, const void *bytes, size_t count) {
    tag(p, field, 2);
    pb_varint(p, count);
    pb_raw(p, bytes, count);
}

void pb_text(pb *p, int field, const char *text) {
    pb_bytes(p, field, text, strlen(text));
}

void pb_begin(pb *p, int field) {
    if (p->depth == PB_DEEPEST) abort();
    tag(p, field, 2);
    p->open[p->depth++] = p->size;
}

/* The length goes in front of what was written since. */
void pb_end(pb *p) {
    uint8_t bytes[10];
    size_t begin = p->open[--p->depth], length = p->size - begin;
    size_t count = varint_bytes(length, bytes);
    pb_raw(p, bytes, count);
    memmove(p->data + begin + count, p->data + begin, length);
    memcpy(p->data + begin, bytes, count);
}

/* ---- messages ------------------------------------------------------------------------------- */

void onnx_begin(pb *p, int opset) {
    pb_int(p, 1, 8);
    pb_begin(p, 8);
    pb_int(p, 2, opset);
    pb_end(p);
    pb_begin(p, 7);
    pb_text(p, 2, "made");
}

void onnx_end(pb *p) {
    pb_end(p);
}

/* Calls visit for every word between blanks. */
static void words(const char *text, void (*visit)(pb *p, int field, const char *word), pb *p, int field) {
    while (*text) {
        char word[64];
        size_t length = strcspn(text, " ");
        if (length >= sizeof word) abort();
        memcpy(word, text, length);
        word[length] = '\0';
        if (length > 0) visit(p, field, word);
        text += length;
        while (*text == ' ') text++;
    }
}

static void put_name(pb *p, int field, const char *word) {
    pb_text(p, field, strcmp(word, "-") == 0 ? "" : word);
}

static void put_dimension(pb *p, int field, const char *word) {
    pb_begin(p, field);
    const char *digits = word[0] == '-' ? word + 1 : word;
    if (digits[0] && strspn(digits, "0123456789") == strlen(digits))
        pb_int(p, 1, strtoll(word, NULL, 10));
    else if (strcmp(word, "?") != 0)
        pb_text(p, 2, word);
    pb_end(p);
}

void onnx_value(pb *p, int field, const char *name, int type, const char *dims) {
    pb_begin(p, field);
    pb_text(p, 1, name);
    pb_begin(p, 2);
    pb_begin(p, 1);
    pb_int(p, 1, type);
    pb_begin(p, 2);
    words(dims, put_dimension, p, 1);
    for (int i = 0; i < 4; i++) pb_end(p);
}

void onnx_node(pb *p, const char *op, const char *name, const char *inputs, const char *outputs) {
    pb_begin(p, 1);
    words(inputs, put_name, p, 1);
    words(outputs, put_name, p, 2);
    pb_text(p, 3, name);
    pb_text(p, 4, op);
}

void onnx_plain(pb *p, const char *op, const char *name, const char *inputs, const char *outputs) {
    onnx_node(p, op, name, inputs, outputs);
    pb_end(p);
}

void onnx_attr_int(pb *p, const char *name, int64_t value) {
    pb_begin(p, 5);
    pb_text(p, 1, name);
    pb_int(p, 3, value);
    pb_int(p, 20, 2);
    pb_end(p);
}

void onnx_attr_ints(pb *p, const char *name, const int64_t *values, int count) {
    pb_begin(p, 5);
    pb_text(p, 1, name);
    for (int i = 0; i < count; i++) pb_int(p, 8, values[i]);
    pb_int(p, 20, 7);
    pb_end(p);
}

static void put_dim(pb *p, int field, const char *word) {
    pb_int(p, field, strtoll(word, NULL, 10));
}

void onnx_tensor(pb *p, int field, const char *name, int type, const char *dims) {
    pb_begin(p, field);
    words(dims, put_dim, p, 1);
    pb_int(p, 2, type);
    pb_text(p, 8, name);
}

void onnx_tensor_i64(pb *p, int field, const char *name, const char *dims, const int64_t *values, int count) {
    onnx_tensor(p, field, name, ONNX_I64, dims);
    pb_begin(p, 7);
    for (int i = 0; i < count; i++) pb_varint(p, (uint64_t)values[i]);
    pb_end(p);
    pb_end(p);
}

void onnx_tensor_f32(pb *p, int field, const char *name, const char *dims, const float *values, int count) {
    onnx_tensor(p, field, name, ONNX_F32, dims);
    pb_begin(p, 9);
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int k = 0; k < 4; k++) {
            uint8_t byte = (uint8_t)(bits >> 8 * k);
            pb_raw(p, &byte, 1);
        }
    }
    pb_end(p);
    pb_end(p);
}
