/* Model directories of every family on a device, against what PyTorch stored for them. */
#include "support/driver_leaks.h"
#include "support/model_case.h"

int main(void) {
    return model_device_main(MODEL_HF, false);
}
