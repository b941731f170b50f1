/* program_copy.c: host elements to device elements and back.
 *
 * i64 and bool are 4-byte words on the device, f32 may be 16 bits there. What is converted passes through a small
 * buffer on the stack, or, where there is much of it, through one that the program keeps, so that a run of sizes seen
 * before allocates nothing; all other types are copied as they are. */
#include <math.h>

#include "program/program_private.h"

enum { FEW_ELEMENTS = 1024, MANY_ELEMENTS = 1 << 19, ELEMENT_BYTES = 4 };

static smg_status outside(smg_program *p, const smg_bbuffer *buffer, int64_t position, int64_t value) {
    return smg_fail(p->ctx, SMG_INVALID, "'%s': element %lld is %lld, outside the 32 bits that devices compute with",
                    buffer->name, (long long)position, (long long)value);
}

static smg_status narrow_words(smg_program *p, const smg_bbuffer *buffer, const uint8_t *data, int64_t position,
                               int64_t count, int32_t *out) {
    for (int64_t i = 0; i < count; i++) {
        if (buffer->storage == SMG_STORE_BOOL_AS_U32) {
            out[i] = data[position + i] != 0;
            continue;
        }
        int64_t value = 0;
        memcpy(&value, data + (position + i) * 8, sizeof(value));
        if (value < INT32_MIN || value > INT32_MAX) return outside(p, buffer, position + i, value);
        out[i] = (int32_t)value;
    }
    return SMG_OK;
}

static smg_status narrow_floats(smg_program *p, const smg_bbuffer *buffer, const uint8_t *data, int64_t position,
                                int64_t count, uint16_t *out) {
    bool half = buffer->storage == SMG_STORE_F32_AS_F16;
    const uint16_t infinite = half ? smg_half_of((double)INFINITY) : smg_bf16_of((double)INFINITY);
    for (int64_t i = 0; i < count; i++) {
        float value = 0;
        memcpy(&value, data + (position + i) * 4, sizeof(value));
        out[i] = half ? smg_half_of((double)value) : smg_bf16_of((double)value);
        if ((out[i] & 0x7fff) != infinite || isinf(value)) continue;
        return smg_fail(p->ctx, SMG_INVALID, "'%s': element %lld is %g, more than %s holds", buffer->name,
                        (long long)(position + i), (double)value, half ? "f16" : "bf16");
    }
    return SMG_OK;
}

static bool as_floats(const smg_bbuffer *buffer) {
    return buffer->storage == SMG_STORE_F32_AS_F16 || buffer->storage == SMG_STORE_F32_AS_BF16;
}

static bool same_format(const smg_bbuffer *buffer) {
    return !as_floats(buffer) && buffer->storage != SMG_STORE_I64_AS_I32 && buffer->storage != SMG_STORE_BOOL_AS_U32;
}

/* Memory for elements on their way, and how many of them it has room for. */
static smg_status passage(smg_program *p, int64_t count, int32_t *few, void **out, int64_t *out_room) {
    *out = few;
    *out_room = FEW_ELEMENTS;
    if (count <= FEW_ELEMENTS) return SMG_OK;
    if (p->passage == NULL) p->passage = smg_arena_alloc(p->arena, MANY_ELEMENTS, ELEMENT_BYTES);
    *out = p->passage;
    *out_room = MANY_ELEMENTS;
    return p->passage != NULL ? SMG_OK : SMG_MEMORY;
}

smg_status smg_program_upload(smg_program *p, const smg_bbuffer *buffer, smg_vk_buffer *memory, int64_t offset,
                              const void *data, int64_t count) {
    int64_t bytes = smg_storage_device_bytes(buffer->storage), room = 0;
    int32_t few[FEW_ELEMENTS];
    void *words = NULL;
    if (same_format(buffer)) return smg_vk_upload(memory, offset, data, count * bytes);
    SMG_TRY(passage(p, count, few, &words, &room));
    for (int64_t at = 0; at < count; at += room) {
        int64_t part = count - at < room ? count - at : room;
        SMG_TRY(as_floats(buffer) ? narrow_floats(p, buffer, data, at, part, words)
                                  : narrow_words(p, buffer, data, at, part, words));
        SMG_TRY(smg_vk_upload(memory, offset + at * bytes, words, part * bytes));
    }
    return SMG_OK;
}

static void widen(const smg_bbuffer *buffer, const void *words, int64_t count, uint8_t *out) {
    const int32_t *integers = words;
    const uint16_t *halves = words;
    for (int64_t i = 0; i < count; i++) {
        if (as_floats(buffer)) {
            bool half = buffer->storage == SMG_STORE_F32_AS_F16;
            float value = (float)(half ? smg_half_value(halves[i]) : smg_bf16_value(halves[i]));
            memcpy(out + i * 4, &value, sizeof(value));
        } else if (buffer->storage == SMG_STORE_BOOL_AS_U32) {
            out[i] = integers[i] != 0;
        } else {
            int64_t value = integers[i];
            memcpy(out + i * 8, &value, sizeof(value));
        }
    }
}

smg_status smg_program_download(smg_program *p, const smg_bbuffer *buffer, smg_vk_buffer *memory, int64_t offset,
                                void *data, int64_t count) {
    int64_t bytes = smg_storage_device_bytes(buffer->storage), host = smg_storage_host_bytes(buffer->storage), room = 0;
    int32_t few[FEW_ELEMENTS];
    void *words = NULL;
    if (same_format(buffer)) return smg_vk_download(memory, offset, data, count * bytes);
    SMG_TRY(passage(p, count, few, &words, &room));
    for (int64_t at = 0; at < count; at += room) {
        int64_t part = count - at < room ? count - at : room;
        SMG_TRY(smg_vk_download(memory, offset + at * bytes, words, part * bytes));
        widen(buffer, words, part, (uint8_t *)data + at * host);
    }
    return SMG_OK;
}
