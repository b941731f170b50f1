/* Numbers and strings as bytes: fixed width, little-endian on every machine, for files that another process reads.
 *
 * Writing appends to a text, which may hold any bytes. Reading is sticky: what is not there reads as 0, and the reader
 * says so once at the end. A count is checked against the bytes that are left before anything is allocated for it. */
#include "base/base_internal.h"

static void add_little(smg_text *text, uint64_t value, size_t bytes) {
    char little[8];
    for (size_t i = 0; i < bytes; i++) little[i] = (char)(uint8_t)(value >> (8 * i));
    smg_text_add_n(text, little, bytes);
}

void smg_text_add_u32(smg_text *text, uint32_t value) {
    add_little(text, value, 4);
}

void smg_text_add_u64(smg_text *text, uint64_t value) {
    add_little(text, value, 8);
}

void smg_text_add_string(smg_text *text, const char *string) {
    size_t length = strlen(string);
    smg_text_add_u32(text, (uint32_t)length);
    smg_text_add_n(text, string, length);
}

const uint8_t *smg_reader_raw(smg_reader *r, size_t count) {
    if (r->failed || count > r->left) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *at = r->at;
    r->at += count;
    r->left -= count;
    return at;
}

static uint64_t read_little(smg_reader *r, size_t bytes) {
    const uint8_t *at = smg_reader_raw(r, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at != NULL && i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

uint32_t smg_reader_u32(smg_reader *r) {
    return (uint32_t)read_little(r, 4);
}

uint64_t smg_reader_u64(smg_reader *r) {
    return read_little(r, 8);
}

int smg_reader_int(smg_reader *r, int low, int high) {
    int32_t value = (int32_t)smg_reader_u32(r);
    if (value >= low && value <= high) return value;
    r->failed = true;
    return low;
}

int smg_reader_count(smg_reader *r, size_t least) {
    uint32_t count = smg_reader_u32(r);
    if (!r->failed && count <= INT32_MAX && count <= r->left / least) return (int)count;
    r->failed = true;
    return 0;
}

char *smg_reader_string(smg_reader *r, smg_arena *arena) {
    size_t length = (size_t)smg_reader_count(r, 1);
    const uint8_t *at = smg_reader_raw(r, length);
    if (at == NULL || memchr(at, 0, length) != NULL) {
        r->failed = true;
        return NULL;
    }
    return smg_arena_string_n(arena, (const char *)at, length);
}
