/* Hashes: names of cache files and keys of maps.
 *
 * The mixing of MurmurHash64A (Austin Appleby, public domain), reading little-endian on every
 * machine so that a cache file has one name everywhere. Not for secrets: where a collision would
 * matter, a cache also stores what its entry was made from.
 */
#include "base/base_internal.h"

/* Fewer than 8. */
static uint64_t read_rest(const unsigned char *at, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Written out: compilers make one load of it. */
static uint64_t read_word(const unsigned char *at) {
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

uint64_t smg_hash_bytes(uint64_t seed, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ ((uint64_t)count * SMG_HASH_FACTOR);
    for (; count >= 8; at += 8, count -= 8) hash = smg_hash_mix(hash, read_word(at));
    if (count != 0) hash = (hash ^ read_rest(at, count)) * SMG_HASH_FACTOR;
    return smg_hash_finish(hash);
}

/* One of four lanes, whose multiplications overlap: 14 GB/s where smg_hash_bytes has 4 to 7. No two words lead from the
 * same lane to the same lane, and the rotation lets high bits count for what follows. */
static uint64_t lane(uint64_t hash, const unsigned char *at) {
    uint64_t word = 0;
    memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * SMG_HASH_FACTOR;
    return hash << 27 | hash >> 37;
}

static uint64_t hash_block(uint64_t number, const unsigned char *at, size_t count) {
    uint64_t seed = smg_hash_u64(SMG_HASH_SEED, number), a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
    for (; count >= 32; at += 32, count -= 32) {
        a = lane(a, at);
        b = lane(b, at + 8);
        c = lane(c, at + 16);
        d = lane(d, at + 24);
    }
    return smg_hash_bytes(smg_hash_mix(smg_hash_mix(smg_hash_mix(a, b), c), d), at, count);
}

uint64_t smg_hash_blocks(int64_t first, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t sum = 0;
    for (uint64_t number = (uint64_t)first; count > 0; number++) {
        size_t part = count < SMG_HASH_BLOCK ? count : SMG_HASH_BLOCK;
        sum += hash_block(number, at, part);
        at += part;
        count -= part;
    }
    return sum;
}

uint64_t smg_hash_text(uint64_t seed, const char *text) {
    return smg_hash_bytes(seed, text, strlen(text));
}
