/* ONNX files of several exporters on a device, against what onnxruntime stored for them. */
#include "support/driver_leaks.h"
#include "support/model_case.h"

int main(void) {
    return model_device_main(MODEL_ONNX, false);
}
