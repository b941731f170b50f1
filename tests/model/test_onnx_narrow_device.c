/* ONNX files on a device in f16 and bf16, against what onnxruntime stored for them in f32. */
#include "support/driver_leaks.h"
#include "support/model_case.h"

int main(void) {
    return model_device_main(MODEL_ONNX, true);
}
