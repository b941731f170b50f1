/* program: the arena's plan, without a device: slots that live at the same time do not overlap, offsets are aligned, no
 * chunk exceeds the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/base.h"

#if SMG_VULKAN
#include "program/program.h"

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void test_arena(void **state) {
    (void)state;
    enum { COUNT = 40 };
    smg_arena_slot slots[COUNT];
    int order[COUNT], placed[COUNT];
    int64_t chunk_bytes[COUNT];
    uint32_t random = 7;
    for (int round = 0; round < 300; round++) {
        int chunks = 0;
        for (int i = 0; i < COUNT; i++) {
            slots[i] = (smg_arena_slot){.bytes = 16 * (1 + next(&random) % 60)};
            slots[i].first = (int)(next(&random) % 30);
            slots[i].last = slots[i].first + (int)(next(&random) % 6);
        }
        int64_t limit = round % 2 ? 1024 : 100000;
        assert_true(smg_program_plan_arena(slots, COUNT, 64, limit, order, placed, chunk_bytes, &chunks));
        for (int i = 0; i < COUNT; i++) {
            const smg_arena_slot *a = &slots[i];
            assert_true(a->offset % 64 == 0 && a->chunk >= 0 && a->chunk < chunks);
            assert_true(a->offset + a->bytes <= chunk_bytes[a->chunk] && chunk_bytes[a->chunk] <= limit);
            for (int j = 0; j < i; j++) {
                const smg_arena_slot *b = &slots[j];
                bool together = a->first <= b->last && b->first <= a->last && a->chunk == b->chunk;
                bool overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
                assert_false(together && overlap);
            }
        }
    }
    slots[0].bytes = 2048;
    int chunks = 0;
    assert_false(smg_program_plan_arena(slots, COUNT, 64, 1024, order, placed, chunk_bytes, &chunks));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arena)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 77;
}
#endif
