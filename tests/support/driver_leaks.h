/* Included once by a test program whose memory a witness counts: LeakSanitizer stays quiet about what drivers keep when
 * they are unloaded. Other programs go by tests/lsan.supp. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif
