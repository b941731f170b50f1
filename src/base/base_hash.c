/* Hashes: names of cache files and keys of maps.
 *
 * The mixing of MurmurHash64A (Austin Appleby, public domain), reading little-endian on every
 * machine so that a cache file has one name everywhere. Not for secrets: where a collision would
 * matter, a cache also stores what its entry was made from.
 */
#include "base/base_internal.h"

#define HASH_FACTOR UINT64_C(0xc6a4a7935bd1e995)

static uint64_t mix(uint64_t hash, uint64_t value) {
    value *= HASH_FACTOR;
    value ^= value >> 47;
    value *= HASH_FACTOR;
    return (hash ^ value) * HASH_FACTOR;
}

static uint64_t finish(uint64_t hash) {
    hash ^= hash >> 47;
    hash *= HASH_FACTOR;
    return hash ^ (hash >> 47);
}

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
    uint64_t hash = seed ^ ((uint64_t)count * HASH_FACTOR);
    for (; count >= 8; at += 8, count -= 8) hash = mix(hash, read_word(at));
    if (count != 0) hash = (hash ^ read_rest(at, count)) * HASH_FACTOR;
    return finish(hash);
}

uint64_t smg_hash_u64(uint64_t seed, uint64_t value) {
    return finish(mix(seed ^ (8 * HASH_FACTOR), value));
}

uint64_t smg_hash_text(uint64_t seed, const char *text) {
    return smg_hash_bytes(seed, text, strlen(text));
}
