/* What the driver's compiler made of each module: registers, shared memory, spills. Statistics are asked for once,
 * because capturing them may keep a driver from using its own cache, and are kept per driver in <cache>/modules: a
 * target text with a comment for each module. */
#include "vulkan/vulkan_private.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_MODULES = 8192 }; /* kept; the oldest go first */

static const smg_vk_kept modules = {"modules", "# smg modules 3 "};
static const char line_word[] = "# module ";

uint64_t smg_vk_module_key(const smg_vk_pipeline_desc *desc) {
    uint64_t key = smg_hash_bytes(SMG_HASH_SEED, desc->words, desc->word_count * sizeof *desc->words);
    if (desc->constant_count > 0)
        key = smg_hash_bytes(key, desc->constants, (size_t)desc->constant_count * sizeof *desc->constants);
    if (desc->literal_count > 0)
        key = smg_hash_bytes(key, desc->literals, (size_t)desc->literal_count * sizeof *desc->literals);
    key = smg_hash_u64(key, (uint64_t)desc->subgroup_size << 1 | desc->from_memory);
    return smg_hash_u64(key, desc->full_subgroups);
}

static smg_vk_module_fact *find_fact(const smg_vk_device *dev, uint64_t key) {
    for (int i = 0; i < dev->modules.count; i++)
        if (dev->modules.items[i].key == key) return &dev->modules.items[i];
    return NULL;
}

const smg_vk_module_fact *smg_vk_module_find(const smg_vk_device *dev, uint64_t key) {
    return find_fact(dev, key);
}

smg_status smg_vk_module_add(smg_vk_device *dev, uint64_t key, smg_vk_built built) {
    smg_vk_module_fact *fact = find_fact(dev, key);
    if (!fact) fact = SMG_ARRAY_PUSH(dev->arena, &dev->modules);
    if (!fact) return SMG_MEMORY;
    *fact = (smg_vk_module_fact){key, built};
    dev->modules_new = true;
    return SMG_OK;
}

/* "# module <16 digits> SPILLS REGISTERS SHARED OF_LANE" */
static smg_status read_line(smg_vk_device *dev, const char *line) {
    size_t skip = sizeof line_word - 1;
    if (strncmp(line, line_word, skip) != 0) return SMG_OK;
    char *end = NULL;
    uint64_t key = (uint64_t)strtoull(line + skip, &end, 16);
    if (end != line + skip + 16) return SMG_OK;
    double numbers[4];
    for (int i = 0; i < 4; i++) numbers[i] = (double)strtoll(end, &end, 10);
    if (*end != '\n' || smg_vk_module_find(dev, key)) return SMG_OK;
    return smg_vk_module_add(dev, key, (smg_vk_built){numbers[0], numbers[1], numbers[2], numbers[3] > 0});
}

smg_status smg_vk_modules_load(smg_vk_device *dev) {
    if (dev->modules_read) return SMG_OK;
    const char *path = NULL, *line = NULL;
    smg_target kept;
    SMG_TRY(smg_vk_kept_path(dev, &modules, &path));
    dev->modules_read = true;
    if (!smg_vk_kept_read(dev, &modules, path, &kept, &line)) return SMG_OK;
    while (line) {
        SMG_TRY(read_line(dev, line));
        line = strchr(line, '\n');
        if (line) line++;
    }
    dev->modules_new = false;
    return SMG_OK;
}

void smg_vk_modules_store(smg_vk_device *dev) {
    const char *path = NULL;
    smg_text body;
    bool had_failure = smg_context_status(dev->ctx) != SMG_OK;
    if (!dev->modules_new) return;
    if (smg_vk_kept_path(dev, &modules, &path) != SMG_OK && !had_failure) smg_context_clear_error(dev->ctx);
    smg_text_init(&body, dev->ctx);
    int first = dev->modules.count > MOST_MODULES ? dev->modules.count - MOST_MODULES : 0;
    for (int i = first; i < dev->modules.count; i++) {
        const smg_vk_module_fact *m = &dev->modules.items[i];
        if (isinf(m->built.spills)) continue;
        smg_text_addf(&body, "%s%016llx %.0f %.0f %.0f %d\n", line_word, (unsigned long long)m->key, m->built.spills,
                      m->built.registers, m->built.shared, m->built.of_lane);
    }
    smg_target_print(&dev->target, &body);
    smg_vk_kept_write(dev, &modules, path, &body);
    smg_text_free(&body);
}
