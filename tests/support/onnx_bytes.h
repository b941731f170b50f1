/* ONNX files byte by byte, for tests: protobuf fields appended to a buffer, messages nested by begin and
 * end, and the messages that most tests need. Nothing here is shared with the reader. */
#ifndef TESTS_ONNX_BYTES_H
#define TESTS_ONNX_BYTES_H

#include <stddef.h>
#include <stdint.h>

#define PB_DEEPEST 256

typedef struct pb {
    uint8_t *data; /* malloc */
    size_t size, capacity;
    size_t open[PB_DEEPEST]; /* where the open messages begin */
    int depth;
} pb;

void pb_free(pb *p);
void pb_raw(pb *p, const void *bytes, size_t count);
void pb_varint(pb *p, uint64_t value);
void pb_int(pb *p, int field, int64_t value);
void pb_float(pb *p, int field, float value);
void pb_bytes(pb *p, int field, const void *bytes, size_t count);
void pb_text(pb *p, int field, const char *text);
void pb_begin(pb *p, int field);
void pb_end(pb *p);

/* TensorProto.DataType */
enum {
    ONNX_F32 = 1,
    ONNX_U8 = 2,
    ONNX_I8 = 3,
    ONNX_I32 = 6,
    ONNX_I64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_F16 = 10,
    ONNX_F64 = 11,
    ONNX_BF16 = 16
};

/* ir_version, one import of the domain "", and the graph open. */
void onnx_begin(pb *p, int opset);
void onnx_end(pb *p); /* of the graph */
/* dims: "batch 3 ?": names, numbers, and nothing. field: 11 input, 12 output. */
void onnx_value(pb *p, int field, const char *name, int type, const char *dims);
/* Names separated by blanks; "-" stands for "". The node stays open for attributes. */
void onnx_node(pb *p, const char *op, const char *name, const char *inputs, const char *outputs);
void onnx_plain(pb *p, const char *op, const char *name, const char *inputs, const char *outputs);
void onnx_attr_int(pb *p, const char *name, int64_t value);
void onnx_attr_ints(pb *p, const char *name, const int64_t *values, int count);
/* Name, type and dims; the tensor stays open for its elements. field: 5 in a graph, in an attribute too. */
void onnx_tensor(pb *p, int field, const char *name, int type, const char *dims);
void onnx_tensor_i64(pb *p, int field, const char *name, const char *dims, const int64_t *values, int count);
void onnx_tensor_f32(pb *p, int field, const char *name, const char *dims, const float *values, int count);

#endif
