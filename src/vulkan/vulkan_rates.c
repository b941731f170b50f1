/* Rates that were fitted to measured kernels, kept in <cache>/rates: a target text whose fitted facts count. */
#include "smg_fingerprint.h"
#include "vulkan/vulkan_private.h"

static const smg_vk_kept kind = {"rates", "# smg rates 1 " SMG_FINGERPRINT " "};

void smg_vk_plan_target(const smg_vk_device *dev, bool nominal, smg_target *out) {
    *out = dev->target;
    if (dev->fitted.revision > 0 && !nominal) smg_target_take_fitted(out, &dev->fitted);
}

smg_status smg_vk_read_rates(smg_vk_device *dev) {
    const char *path = NULL;
    smg_target kept;
    SMG_TRY(smg_vk_kept_path(dev, &kind, &path));
    if (!smg_vk_kept_read(dev, &kind, path, &kept, NULL)) return SMG_OK;
    dev->fitted = kept;
    smg_log(dev->ctx, SMG_LOG_INFO, "rates of '%s' are fitted to measured kernels, revision %lld", kept.name,
            (long long)kept.revision);
    return SMG_OK;
}

smg_status smg_vk_keep_rates(smg_vk_device *dev, const smg_target *from) {
    const char *path = NULL;
    smg_text body;
    if (!dev->calibrated)
        return smg_fail(dev->ctx, SMG_INVALID, "rates of '%s' were not measured: none are fitted", dev->target.name);
    SMG_TRY(smg_vk_kept_path(dev, &kind, &path));
    if (path == NULL) return smg_fail(dev->ctx, SMG_INVALID, "there is no cache folder for fitted rates");
    dev->fitted = *from;
    smg_text_init(&body, dev->ctx);
    smg_target_print(from, &body);
    smg_vk_kept_write(dev, &kind, path, &body);
    smg_text_free(&body);
    return SMG_OK;
}
