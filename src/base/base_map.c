/* The map from byte strings to pointers: open addressing, linear probing, at most 2/3 full.
 *
 * Entries are never removed, so probing needs no tombstones. Keys are copied into the arena; when
 * the table grows the old one stays there until the arena goes, which at doubling costs at most as
 * much again. There is no iteration: whoever needs an order keeps an array beside the map.
 */
#include "base/base_internal.h"

typedef struct map_entry {
    uint64_t hash;
    const void *key; /* NULL: free */
    size_t key_bytes;
    void *value;
} map_entry;

struct smg_map {
    smg_arena *arena;
    map_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
};

smg_status smg_map_create(smg_arena *arena, smg_map **out_map) {
    *out_map = NULL;
    smg_map *map = SMG_ARENA_NEW(arena, smg_map);
    if (map == NULL) return SMG_MEMORY;
    map->arena = arena;
    *out_map = map;
    return SMG_OK;
}

/* The entry of the key, or the free one where it belongs. There is always a free one. */
static map_entry *find(map_entry *entries, size_t capacity, uint64_t hash, const void *key, size_t key_bytes) {
    for (size_t at = (size_t)hash & (capacity - 1);; at = (at + 1) & (capacity - 1)) {
        map_entry *entry = &entries[at];
        if (entry->key == NULL) return entry;
        if (entry->hash == hash && entry->key_bytes == key_bytes &&
            (key_bytes == 0 || memcmp(entry->key, key, key_bytes) == 0)) {
            return entry;
        }
    }
}

static smg_status grow(smg_map *map) {
    size_t capacity = map->capacity != 0 ? map->capacity * 2 : 16;
    map_entry *entries = SMG_ARENA_ARRAY(map->arena, map_entry, capacity);
    if (entries == NULL) return SMG_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        const map_entry *old = &map->entries[i];
        if (old->key == NULL) continue;
        *find(entries, capacity, old->hash, old->key, old->key_bytes) = *old;
    }
    map->entries = entries;
    map->capacity = capacity;
    return SMG_OK;
}

smg_status smg_map_set(smg_map *map, const void *key, size_t key_bytes, void *value) {
    if (map->count >= map->capacity / 3 * 2) SMG_TRY(grow(map));
    uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, key, key_bytes);
    map_entry *entry = find(map->entries, map->capacity, hash, key, key_bytes);
    if (entry->key == NULL) {
        void *copy = smg_arena_alloc(map->arena, key_bytes, 1);
        if (copy == NULL) return SMG_MEMORY;
        if (key_bytes != 0) memcpy(copy, key, key_bytes);
        entry->hash = hash;
        entry->key = copy;
        entry->key_bytes = key_bytes;
        map->count++;
    }
    entry->value = value;
    return SMG_OK;
}

bool smg_map_get(const smg_map *map, const void *key, size_t key_bytes, void **out_value) {
    if (map->count == 0) return false;
    uint64_t hash = smg_hash_bytes(SMG_HASH_SEED, key, key_bytes);
    const map_entry *entry = find(map->entries, map->capacity, hash, key, key_bytes);
    if (entry->key == NULL) return false;
    if (out_value != NULL) *out_value = entry->value;
    return true;
}
