/* The files of tests/models/onnx-*.tar.xz with their stored cases: ONNX(folder, output, cases...). Written by
 * two exporters at several opsets, as the names say; what they answer is onnxruntime's (CPU, f32). The build
 * unpacks them into $SMG_TEST_MODELS/onnx. */
ONNX("albert-export-eager-opset18", "last_hidden_state", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("albert-ts-eager-opset14", "last_hidden_state", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("bert-export-sdpa-opset20", "last_hidden_state", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("bert-export-sdpa-opset23", "last_hidden_state", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("bert-ts-eager-opset14", "last_hidden_state", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("gpt2-export-eager-opset18", "logits", "b1s7", "b1s77", "b3s128")
ONNX("gpt2-export-sdpa-opset23", "logits", "b1s7", "b1s77", "b3s128")
ONNX("llama-export-eager-opset18", "logits", "b1s7", "b1s77", "b3s128")
ONNX("llama-export-sdpa-opset20", "logits", "b1s7", "b1s77", "b3s128")
ONNX("t5-export-sdpa-opset20", "logits", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("t5-ts-eager-opset14", "logits", "b1s7", "b1s77", "b3s128", "b4s33-masks")
ONNX("vit-export-sdpa-opset20", "last_hidden_state", "b1", "b3")
ONNX("vit-ts-eager-opset14", "last_hidden_state", "b1", "b3")
