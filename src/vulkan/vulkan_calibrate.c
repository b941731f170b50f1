/* stub */
#include "vulkan/vulkan_private.h"
smg_status smg_vk_calibrate(smg_vk_device *dev) { return smg_vk_check_alive(dev); }
