/* program_copy.c: host elements to device elements and back.
 *
 * i64 and bool are 4-byte words on the device. They pass through a small buffer on the stack, so that a
 * run allocates nothing; all other types are copied as they are. */
#include "program/program_private.h"

enum { CONVERT_CHUNK = 1024 };

static smg_status narrow(smg_program *p, const smg_bbuffer *buffer, const uint8_t *data, int64_t position,
                         int64_t count, int32_t *out) {
    for (int64_t i = 0; i < count; i++) {
        if (buffer->storage == SMG_STORE_BOOL_AS_U32) {
            out[i] = data[position + i] != 0;
            continue;
        }
        int64_t value = 0;
        memcpy(&value, data + (position + i) * 8, sizeof(value));
        if (value < INT32_MIN || value > INT32_MAX) {
            return smg_fail(p->ctx, SMG_INVALID,
                            "'%s': element %lld is %lld, outside the 32 bits that devices compute with", buffer->name,
                            (long long)(position + i), (long long)value);
        }
        out[i] = (int32_t)value;
    }
    return SMG_OK;
}

static bool same_format(const smg_bbuffer *buffer) {
    return buffer->storage != SMG_STORE_I64_AS_I32 && buffer->storage != SMG_STORE_BOOL_AS_U32;
}

smg_status smg_program_upload(smg_program *p, const smg_bbuffer *buffer, smg_vk_buffer *memory, int64_t offset,
                              const void *data, int64_t count) {
    if (same_format(buffer)) {
        return smg_vk_upload(memory, offset, data, count * smg_storage_device_bytes(buffer->storage));
    }
    int32_t words[CONVERT_CHUNK];
    for (int64_t at = 0; at < count; at += CONVERT_CHUNK) {
        int64_t part = count - at < CONVERT_CHUNK ? count - at : CONVERT_CHUNK;
        SMG_TRY(narrow(p, buffer, data, at, part, words));
        SMG_TRY(smg_vk_upload(memory, offset + at * 4, words, part * 4));
    }
    return SMG_OK;
}

static void widen(const smg_bbuffer *buffer, const int32_t *words, int64_t count, uint8_t *out) {
    for (int64_t i = 0; i < count; i++) {
        if (buffer->storage == SMG_STORE_BOOL_AS_U32) {
            out[i] = words[i] != 0;
        } else {
            int64_t value = words[i];
            memcpy(out + i * 8, &value, sizeof(value));
        }
    }
}

smg_status smg_program_download(smg_program *p, const smg_bbuffer *buffer, smg_vk_buffer *memory, int64_t offset,
                                void *data, int64_t count) {
    (void)p;
    if (same_format(buffer)) {
        return smg_vk_download(memory, offset, data, count * smg_storage_device_bytes(buffer->storage));
    }
    int32_t words[CONVERT_CHUNK];
    int64_t host = smg_storage_host_bytes(buffer->storage);
    for (int64_t at = 0; at < count; at += CONVERT_CHUNK) {
        int64_t part = count - at < CONVERT_CHUNK ? count - at : CONVERT_CHUNK;
        SMG_TRY(smg_vk_download(memory, offset + at * 4, words, part * 4));
        widen(buffer, words, part, (uint8_t *)data + at * host);
    }
    return SMG_OK;
}
