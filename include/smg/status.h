/* smg/status.h: what every fallible function of smg returns.
 *
 * A function either returns SMG_OK or a code below; in the second case the context that was passed
 * to it (directly, or through the object it belongs to) holds one sentence that says what was wrong,
 * with names and numbers: smg_context_error(). Calls do not remember each other's failures; of the
 * builders of a graph (smg/graph.h) the first failure wins.
 */
#ifndef SMG_STATUS_H
#define SMG_STATUS_H

/* On Windows: SMG_STATIC is for who links the static library (the packages define it), SMG_BUILD for smg's own
 * sources. */
#if defined(_WIN32) && defined(SMG_STATIC)
#define SMG_API
#elif defined(_WIN32) && defined(SMG_BUILD)
#define SMG_API __declspec(dllexport)
#elif defined(_WIN32)
#define SMG_API __declspec(dllimport)
#else
#define SMG_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One row per code: name, value, word, what the caller can do about it. Values are stable. */
#define SMG_STATUS_MAP(X)                                                                                              \
    X(OK, 0, "ok", "nothing to do")                                                                                    \
    X(INVALID, 1, "invalid argument", "correct the call: name, type, rank, shape or value")                            \
    X(FORMAT, 2, "malformed input", "the file or text is broken; get a good one")                                      \
    X(UNSUPPORTED, 3, "unsupported", "the input is fine, smg or the device cannot do it yet")                          \
    X(NOT_FOUND, 4, "not found", "a file, name or device does not exist")                                              \
    X(IO, 5, "input/output error", "the operating system refused; the sentence has its reason")                        \
    X(MEMORY, 6, "out of memory", "host memory is exhausted, or the caller's allocator said no")                       \
    X(DEVICE_MEMORY, 7, "out of device memory", "use smaller sizes or another device")                                 \
    X(DEVICE, 8, "device error", "the Vulkan driver failed; the sentence names the call")                              \
    X(NO_FIT, 9, "does not fit", "no schedule fits the limits of the target")                                          \
    X(INTERNAL, 10, "internal error", "a defect in smg: please report it with the sentence")                           \
    X(CANCELLED, 11, "taken back", "nothing, or run it again")

typedef enum smg_status {
#define SMG_STATUS_ROW(name, value, word, advice) SMG_##name = (value),
    SMG_STATUS_MAP(SMG_STATUS_ROW)
#undef SMG_STATUS_ROW
} smg_status;

/* The short word of a code ("out of memory"); never NULL, static storage. */
SMG_API const char *smg_status_word(smg_status status);

#ifdef __cplusplus
}
#endif
#endif
