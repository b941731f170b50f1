/* Runs a fuzz target without a fuzzer: every file of a folder as it is, every prefix of it, and a
 * fixed number of pseudo-random changes (the same ones each time). With -fsanitize=fuzzer this file
 * is left out, and the folder is the fuzzer's first corpus.
 *
 *     replay <folder> [changes per file]
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX_LIMIT 4096

static size_t run_count;

/* In memory of exactly this size, so that a sanitizer sees the first byte too many. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size != 0 ? size : 1);
    if (copy == NULL) abort();
    if (size != 0) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    run_count++;
}

static uint32_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

/* One to four bytes changed; now and then a piece taken out or doubled. */
static void run_changed(const uint8_t *data, size_t size, uint64_t *seed) {
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '[', ',', '9', '-', ' ', '\n'};
    uint8_t *copy = malloc(2 * size);
    if (copy == NULL) abort();
    memcpy(copy, data, size);
    size_t now = size;
    size_t at = next_random(seed) % size;
    size_t length = next_random(seed) % (size - at) % 32;
    uint32_t kind = next_random(seed) % 8;
    if (kind == 0) {
        memmove(copy + at, copy + at + length, size - at - length);
        now = size - length;
    } else if (kind == 1) {
        memmove(copy + at + length, copy + at, size - at);
        now = size + length;
    }
    for (uint32_t i = next_random(seed) % 4 + 1; now != 0 && i > 0; i--) {
        size_t where = next_random(seed) % now;
        uint32_t value = next_random(seed);
        copy[where] = value % 2 != 0 ? odd[value / 2 % sizeof(odd)] : (uint8_t)(value >> 8);
    }
    run(copy, now);
    free(copy);
}

static int replay_file(const char *path, long changes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    static uint8_t data[1 << 20];
    size_t size = fread(data, 1, sizeof(data), file);
    fclose(file);
    run(data, size);
    for (size_t cut = 0; cut < size && cut < PREFIX_LIMIT; cut++) run(data, cut);
    uint64_t seed = size;
    for (long i = 0; size != 0 && i < changes; i++) run_changed(data, size, &seed);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s <folder> [changes per file]\n", argv[0]);
        return 2;
    }
    long changes = argc > 2 ? strtol(argv[2], NULL, 10) : 500;
    struct dirent **entries = NULL;
    int count = scandir(argv[1], &entries, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "cannot read the folder %s\n", argv[1]);
        return 2;
    }
    int files = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            failed += replay_file(path, changes);
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d files, %zu inputs\n", files, run_count);
    return failed != 0 || files == 0;
}
