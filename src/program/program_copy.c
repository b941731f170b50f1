/* program_copy.c: host elements to device elements and back.
 *
 * i64 and bool are 4-byte words on the device, f32 may be 16 bits there. What is converted passes through a small
 * buffer on the stack, or, where there is much of it, through one that is kept, so that a run of sizes seen before
 * allocates nothing; all other types are copied as they are. */
#include "program/program.h"

enum { FEW_ELEMENTS = 1024, MANY_ELEMENTS = 1 << 19, ELEMENT_BYTES = 4 };

/* Memory for elements on their way, and how many of them it has room for. */
static smg_status find_room(smg_passage *p, int64_t count, int32_t *few, void **out, int64_t *out_room) {
    *out = few;
    *out_room = FEW_ELEMENTS;
    if (count <= FEW_ELEMENTS) return SMG_OK;
    if (p->room == NULL) p->room = smg_alloc(p->ctx, MANY_ELEMENTS, ELEMENT_BYTES);
    *out = p->room;
    *out_room = MANY_ELEMENTS;
    return p->room != NULL ? SMG_OK : SMG_MEMORY;
}

void smg_passage_free(smg_passage *p) {
    smg_free(p->ctx, p->room, (size_t)MANY_ELEMENTS * ELEMENT_BYTES);
    p->room = NULL;
}

smg_status smg_passage_upload(smg_passage *p, const char *name, smg_storage storage, smg_vk_buffer *memory,
                              int64_t offset, const void *data, int64_t count) {
    int64_t bytes = smg_storage_device_bytes(storage), room = 0;
    int32_t few[FEW_ELEMENTS];
    void *words = NULL;
    if (smg_storage_same(storage)) return smg_vk_upload(memory, offset, data, count * bytes);
    SMG_TRY(find_room(p, count, few, &words, &room));
    for (int64_t at = 0; at < count; at += room) {
        int64_t part = count - at < room ? count - at : room;
        SMG_TRY(smg_storage_narrow(p->ctx, name, storage, data, at, part, words));
        SMG_TRY(smg_vk_upload(memory, offset + at * bytes, words, part * bytes));
    }
    return SMG_OK;
}

smg_status smg_passage_download(smg_passage *p, smg_storage storage, smg_vk_buffer *memory, int64_t offset, void *data,
                                int64_t count) {
    int64_t bytes = smg_storage_device_bytes(storage), host = smg_storage_host_bytes(storage), room = 0;
    int32_t few[FEW_ELEMENTS];
    void *words = NULL;
    if (smg_storage_same(storage)) return smg_vk_download(memory, offset, data, count * bytes);
    SMG_TRY(find_room(p, count, few, &words, &room));
    for (int64_t at = 0; at < count; at += room) {
        int64_t part = count - at < room ? count - at : room;
        SMG_TRY(smg_vk_download(memory, offset + at * bytes, words, part * bytes));
        smg_storage_widen(storage, words, part, (uint8_t *)data + at * host);
    }
    return SMG_OK;
}
