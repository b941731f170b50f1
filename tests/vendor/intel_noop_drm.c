// intel_noop_drm.c: an LD_PRELOAD library that makes one Intel GPU appear to exist, so that Mesa's Vulkan driver for Intel can
// be loaded, queried and made to compile pipelines on a machine that has none. Nothing is ever executed: a submission succeeds
// at once and does nothing, and everything a GPU would have written stays zero.
//
//   build: cc -O2 -fPIC -shared -o libintel_noop_drm.so intel_noop_drm.c -ldl    (64-bit, glibc >= 2.33)
//   use:   INTEL_NOOP_DEVICE=dg2 LD_PRELOAD=$PWD/libintel_noop_drm.so VK_DRIVER_FILES=.../intel_icd.json program
//
//   INTEL_NOOP_DEVICE  a name of the table below, a PCI id in hex (the row whose id has the same high byte lends its topology),
//                      or NAME:PCIID; "list" prints the table. Default: tgl.
//   INTEL_NOOP_KMD     i915 or xe: overrides the kernel driver of the row.
//   INTEL_NOOP_DEBUG   1: reports on stderr every path answered and every ioctl refused; 2: every ioctl.
//
// How it works. libdrm finds devices by listing /dev/dri and reading a few files below /sys/dev/char/MAJOR:MINOR; Mesa then
// opens the render node and talks to it with ioctl and mmap. So three things are needed:
//   1. a small read-only file tree (section "tree"): a render node and one PCI device, served by wrappers of the libc calls that
//      take a path. Calls that libc makes inside itself do not pass here, which is why fopen, opendir and realpath are wrapped too.
//   2. a file descriptor for the node. It is a memfd, one for the process; every open returns a duplicate. Descriptors are
//      recognised by the inode, so dup, fcntl and fork need no wrapper, and a buffer object is simply a range of the memfd:
//      its "fake mmap offset" is a true file offset, so mmap needs no wrapper either, and pages exist only once touched.
//   3. answers to ioctls (sections "common", "i915", "xe"), by number: the sizes of the structures grow over the years.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "intel_noop_uapi.h"

// ------------------------------------------------------------------------------------------------------------------- chips
// ss: subslices (dual subslices from gen12 to Xe-HPG, Xe cores from Xe2), present ones first. max_ss and max_slices: the shape in
// which the kernel reports them. ver: graphics IP version * 100, reported by xe and believed by Mesa from Xe2 on.
// Topology only matters to limits and thread counts, not to the code generated.
enum { I915, XE };
static struct chip {
    const char *name; int pci, rev, kmd, ver, max_slices, max_ss, ss, eu, threads, l3; unsigned clock; uint64_t vram; const char *what;
} chip, chips[] = {
    { "skl",  0x1912, 0x06, I915,  900, 3,  4,  3,  8,  7,  4, 12000000, 0, "Skylake GT2 (HD 530), gen9" },
    { "kbl",  0x5912, 0x04, I915,  900, 3,  4,  3,  8,  7,  4, 12000000, 0, "Kaby Lake GT2 (HD 630), gen9" },
    { "icl",  0x8a52, 0x07, I915, 1100, 1,  8,  8,  8,  7,  8, 12000000, 0, "Ice Lake GT2 (Iris Plus), gen11" },
    { "tgl",  0x9a49, 0x03, I915, 1200, 1,  6,  6, 16,  7,  8, 19200000, 0, "Tiger Lake GT2 (Iris Xe), gen12" },
    { "adl",  0x4680, 0x0c, I915, 1200, 1,  6,  2, 16,  7,  4, 19200000, 0, "Alder Lake-S GT1 (UHD 770), gen12" },
    { "adlp", 0x46a6, 0x0c, I915, 1200, 1,  6,  6, 16,  7,  8, 19200000, 0, "Alder Lake-P GT2 (Iris Xe), gen12" },
    { "dg2",  0x56a0, 0x08, I915, 1255, 1, 32, 32, 16,  8, 32, 19200000, 16ull << 30, "DG2-G10 (Arc A770), Xe-HPG" },
    { "a380", 0x56a5, 0x05, I915, 1256, 1, 32,  8, 16,  8,  8, 19200000, 6ull << 30, "DG2-G11 (Arc A380), Xe-HPG" },
    { "mtl",  0x7d55, 0x08, I915, 1271, 1, 32,  8, 16,  8,  8, 19200000, 0, "Meteor Lake-H (Arc, 8 Xe cores), Xe-LPG, no XMX" },
    { "arl",  0x7d51, 0x03, I915, 1274, 1, 32,  8, 16,  8,  8, 19200000, 0, "Arrow Lake-H (Arc 140T), Xe-LPG+, XMX" },
    { "lnl",  0x64a0, 0x04, XE,   2004, 1, 64,  8,  8,  8,  8, 19200000, 0, "Lunar Lake (Arc 140V), Xe2" },
    { "bmg",  0xe20b, 0x00, XE,   2001, 1, 64, 20,  8,  8, 18, 19200000, 12ull << 30, "Battlemage G21 (Arc B580), Xe2" },
    { "ptl",  0xb080, 0x00, XE,   3000, 1, 64, 12,  8, 10, 16, 19200000, 0, "Panther Lake (12 Xe cores), Xe3" },
};
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SRAM (16ull << 30)
static int debug;
#define LOG(...) do { if (debug) fprintf(stderr, "intel_noop_drm: " __VA_ARGS__); } while (0)

static void choose(void) {
    const char *want = getenv("INTEL_NOOP_DEVICE"), *kmd = getenv("INTEL_NOOP_KMD"), *d = getenv("INTEL_NOOP_DEBUG"), *colon;
    debug = d ? atoi(d) : 0;
    if (!want || !*want) want = "tgl";
    if (!strcmp(want, "list"))
        for (size_t i = 0; i < COUNT(chips); i++)
            fprintf(stderr, "%-5s %04x %-4s %s\n", chips[i].name, chips[i].pci, chips[i].kmd == XE ? "xe" : "i915", chips[i].what);
    size_t len = (colon = strchr(want, ':')) ? (size_t)(colon - want) : strlen(want);
    for (size_t i = 0; i < COUNT(chips); i++)
        if (strlen(chips[i].name) == len && !strncasecmp(chips[i].name, want, len)) chip = chips[i];
    char *end = ""; long id = colon ? strtol(colon + 1, &end, 16) : chip.name ? 0 : strtol(want, &end, 16);
    if (*end || id < 0x1000 || id > 0xffff) id = 0;
    for (size_t i = COUNT(chips); id && !colon && i-- > 0;)     // the exact id, or else the first row of the same family
        if (chips[i].pci == id || (chips[i].pci >> 8 == id >> 8 && chip.pci != id)) chip = chips[i];
    if (id && chip.name) chip.pci = id;
    if (!chip.name && strcmp(want, "list")) fprintf(stderr, "intel_noop_drm: unknown INTEL_NOOP_DEVICE=%s\n", want);
    if (kmd) chip.kmd = !strcmp(kmd, "xe") ? XE : I915;
}

// -------------------------------------------------------------------------------------------------------------------- tree
#define MAJ 226
#define MIN 128
#define NODE "renderD128"
#define CHARDEV "/sys/dev/char/226:128"
#define SLOT "0000:03:00.0"
#define PCIDIR "/sys/devices/pci0000:00/" SLOT
enum kind { NONE, DIRECTORY, REGULAR, LINK, DEVICE };
struct entry { enum kind kind; const char *path; char data[256]; int len; };
static struct entry tree[] = {
    { DIRECTORY, "/dev/dri" }, { DEVICE, "/dev/dri/" NODE },
    { DIRECTORY, PCIDIR }, { DIRECTORY, PCIDIR "/drm" }, { DIRECTORY, PCIDIR "/drm/" NODE },
    { LINK, PCIDIR "/subsystem", "/sys/bus/pci" }, { LINK, PCIDIR "/driver" },
    { REGULAR, PCIDIR "/uevent" }, { REGULAR, PCIDIR "/config" }, { REGULAR, PCIDIR "/vendor" }, { REGULAR, PCIDIR "/device" },
    { REGULAR, PCIDIR "/subsystem_vendor" }, { REGULAR, PCIDIR "/subsystem_device" }, { REGULAR, PCIDIR "/revision" },
    { REGULAR, PCIDIR "/class" }, { REGULAR, PCIDIR "/drm/" NODE "/uevent" },
};
static int node_fd = -1;                // the memfd behind the node
static struct stat node_stat;           // its identity
static pthread_once_t once = PTHREAD_ONCE_INIT;
#define REAL(f) ({ static __typeof__(&f) real_; if (!real_) real_ = (__typeof__(&f))dlsym(RTLD_NEXT, #f); real_; })

static void init(void) {
    choose();
    if (!chip.name) return;             // nothing is faked then
    node_fd = memfd_create("intel_noop_drm", MFD_CLOEXEC);
    if (node_fd < 0) { perror("intel_noop_drm: memfd_create"); return; }
    int high = fcntl(node_fd, F_DUPFD_CLOEXEC, 900);            // out of the way of small descriptor numbers
    if (high >= 0) { close(node_fd); node_fd = high; }
    REAL(fstat)(node_fd, &node_stat);
    for (size_t i = 0; i < COUNT(tree); i++) {
        struct entry *e = &tree[i]; const char *leaf = strrchr(e->path, '/') + 1; char *d = e->data; int n = sizeof e->data;
        if (e->kind == LINK && !strcmp(leaf, "driver")) snprintf(d, n, "/sys/bus/pci/drivers/%s", chip.kmd == XE ? "xe" : "i915");
        if (e->kind == REGULAR) {
            if (strstr(e->path, "/drm/")) snprintf(d, n, "MAJOR=%d\nMINOR=%d\nDEVNAME=dri/%s\nDEVTYPE=drm_minor\n", MAJ, MIN, NODE);
            else if (!strcmp(leaf, "uevent"))
                snprintf(d, n, "DRIVER=%s\nPCI_CLASS=30000\nPCI_ID=8086:%04X\nPCI_SUBSYS_ID=8086:0000\nPCI_SLOT_NAME=%s\n",
                         chip.kmd == XE ? "xe" : "i915", chip.pci, SLOT);
            else if (!strcmp(leaf, "vendor") || !strcmp(leaf, "subsystem_vendor")) snprintf(d, n, "0x8086\n");
            else if (!strcmp(leaf, "device")) snprintf(d, n, "0x%04x\n", chip.pci);
            else if (!strcmp(leaf, "revision")) snprintf(d, n, "0x%02x\n", chip.rev);
            else if (!strcmp(leaf, "class")) snprintf(d, n, "0x030000\n");
            else if (!strcmp(leaf, "subsystem_device")) snprintf(d, n, "0x0000\n");
            else {                      // config: the first 64 bytes of PCI configuration space
                uint16_t vendor = 0x8086, device = chip.pci;
                memcpy(d, &vendor, 2); memcpy(d + 2, &device, 2); d[8] = chip.rev; d[11] = 3; memcpy(d + 44, &vendor, 2);
                e->len = 64;
            }
        }
        if (!e->len) e->len = strlen(d);
    }
    LOG("%s, pci id %04x, %s\n", chip.what, chip.pci, chip.kmd == XE ? "xe" : "i915");
}

// Maps the aliases of the device's directory to its true path. Returns 0 for a path that is none of ours.
static int canonical(const char *path, char out[PATH_MAX]) {
    static const char *alias[][2] = { { CHARDEV "/device", PCIDIR }, { CHARDEV, PCIDIR "/drm/" NODE },
        { "/sys/bus/pci/devices/" SLOT, PCIDIR }, { "/sys/class/drm/" NODE, PCIDIR "/drm/" NODE } };
    if (!path || path[0] != '/' || (strncmp(path, "/sys/", 5) && strncmp(path, "/dev/dri", 8))) return 0;
    pthread_once(&once, init);
    if (node_fd < 0) return 0;
    snprintf(out, PATH_MAX, "%s", path);
    for (size_t i = 0; i < COUNT(alias); i++) {
        size_t n = strlen(alias[i][0]);
        if (!strncmp(path, alias[i][0], n) && (!path[n] || path[n] == '/')) { snprintf(out, PATH_MAX, "%s%s", alias[i][1], path + n); break; }
    }
    for (size_t n = strlen(out); n > 1 && out[n - 1] == '/';) out[--n] = 0;
    char *dev = strstr(out, "/" NODE "/device");                // the node's way back to its device
    if (dev) { memmove(out + strlen(PCIDIR), dev + strlen("/" NODE "/device"), strlen(dev + strlen("/" NODE "/device")) + 1); memcpy(out, PCIDIR, strlen(PCIDIR)); }
    static const char *ours[] = { "/dev/dri", PCIDIR };
    for (size_t i = 0; i < COUNT(ours); i++) {
        size_t n = strlen(ours[i]);
        if (!strncmp(out, ours[i], n) && (!out[n] || out[n] == '/')) return 1;
    }
    return 0;
}

// The entry of a path. *ours says whether the path lies in the tree at all: then a missing entry means ENOENT, not "ask libc".
static struct entry *find(const char *path, int *ours) {
    char full[PATH_MAX];
    if (!(*ours = canonical(path, full))) return NULL;
    for (size_t i = 0; i < COUNT(tree); i++)
        if (!strcmp(tree[i].path, full)) { LOG("path %s\n", path); return &tree[i]; }
    LOG("path %s: none\n", path);
    errno = ENOENT;
    return NULL;
}
static int is_node(const struct stat *s) { return node_fd >= 0 && s->st_dev == node_stat.st_dev && s->st_ino == node_stat.st_ino; }

static void fill_stat(const struct entry *e, struct stat *s) {
    memset(s, 0, sizeof *s);
    s->st_ino = 1000 + (e - tree); s->st_nlink = 1; s->st_blksize = 4096; s->st_dev = 1;
    s->st_mode = e->kind == DIRECTORY ? S_IFDIR | 0755 : e->kind == LINK ? S_IFLNK | 0777 : e->kind == DEVICE ? S_IFCHR | 0666 : S_IFREG | 0444;
    if (e->kind == DEVICE) s->st_rdev = makedev(MAJ, MIN); else s->st_size = e->len;
}
static int open_entry(const struct entry *e, int flags) {
    if (e->kind == DEVICE) return fcntl(node_fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 3);
    if (e->kind == DIRECTORY || e->kind == LINK) { errno = EACCES; return -1; }
    int fd = memfd_create("sysfs", MFD_CLOEXEC);
    if (fd < 0 || write(fd, e->data, e->len) != e->len) return -1;
    lseek(fd, 0, SEEK_SET);
    return fd;
}

// ---- wrappers of calls that take a path. The *64 forms are the same functions where off_t has 64 bits.
#define EXPORT __attribute__((visibility("default")))
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list a; va_start(a, flags); mode = va_arg(a, mode_t); va_end(a); }
#define TRY(path, hit) int ours_; struct entry *e = find(path, &ours_); if (ours_) { if (!e) return -1; hit }

EXPORT int open(const char *path, int flags, ...) { MODE TRY(path, return open_entry(e, flags);) return REAL(open)(path, flags, mode); }
EXPORT int open64(const char *path, int flags, ...) { MODE TRY(path, return open_entry(e, flags);) return REAL(open)(path, flags, mode); }
EXPORT int __open_2(const char *path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char *path, int flags) { return open(path, flags); }
EXPORT int openat(int at, const char *path, int flags, ...) { MODE TRY(path, return open_entry(e, flags);) return REAL(openat)(at, path, flags, mode); }
EXPORT int openat64(int at, const char *path, int flags, ...) { MODE TRY(path, return open_entry(e, flags);) return REAL(openat)(at, path, flags, mode); }
EXPORT int __openat_2(int at, const char *path, int flags) { return openat(at, path, flags); }
EXPORT int __openat64_2(int at, const char *path, int flags) { return openat(at, path, flags); }

EXPORT FILE *fopen(const char *path, const char *mode) {
    int ours; struct entry *e = find(path, &ours);
    if (!ours) return REAL(fopen)(path, mode);
    if (e && (e->kind != REGULAR || mode[0] != 'r')) { errno = EACCES; return NULL; }
    return e ? fmemopen(e->data, e->len, "r") : NULL;
}
EXPORT FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

EXPORT int access(const char *path, int how) { TRY(path, (void)how; return 0;) return REAL(access)(path, how); }
EXPORT int faccessat(int at, const char *path, int how, int flags) { TRY(path, return 0;) return REAL(faccessat)(at, path, how, flags); }
EXPORT ssize_t readlink(const char *path, char *buf, size_t size) {
    TRY(path, if (e->kind != LINK) { errno = EINVAL; return -1; } size_t n = (size_t)e->len < size ? (size_t)e->len : size; memcpy(buf, e->data, n); return n;)
    return REAL(readlink)(path, buf, size);
}
EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room) { (void)room; return readlink(path, buf, size); }
EXPORT char *realpath(const char *path, char *out) {
    char full[PATH_MAX]; int ours; struct entry *e = find(path, &ours);
    if (!ours) return REAL(realpath)(path, out);
    if (!e) return NULL;
    canonical(path, full);
    const char *to = e->kind == LINK ? e->data : full;
    return out ? strcpy(out, to) : strdup(to);
}
EXPORT char *__realpath_chk(const char *path, char *out, size_t room) { (void)room; return realpath(path, out); }

static int stat_path(const char *path, struct stat *s, int follow, int (*real)(const char *, struct stat *)) {
    TRY(path, if (e->kind == LINK && follow) e = &tree[2]; fill_stat(e, s); return 0;)     // the links all lead to directories
    return real(path, s);
}
static int stat_fd(int r, struct stat *s) { if (!r && is_node(s)) fill_stat(&tree[1], s); return r; }   // an open node looks like a character device
EXPORT int stat(const char *path, struct stat *s) { return stat_path(path, s, 1, REAL(stat)); }
EXPORT int lstat(const char *path, struct stat *s) { return stat_path(path, s, 0, REAL(lstat)); }
EXPORT int fstat(int fd, struct stat *s) { return stat_fd(REAL(fstat)(fd, s), s); }
EXPORT int fstatat(int at, const char *path, struct stat *s, int flags) {
    TRY(path, if (e->kind == LINK && !(flags & AT_SYMLINK_NOFOLLOW)) e = &tree[2]; fill_stat(e, s); return 0;)
    return stat_fd(REAL(fstatat)(at, path, s, flags), s);
}
EXPORT int stat64(const char *path, struct stat64 *s) { return stat(path, (struct stat *)s); }
EXPORT int lstat64(const char *path, struct stat64 *s) { return lstat(path, (struct stat *)s); }
EXPORT int fstat64(int fd, struct stat64 *s) { return fstat(fd, (struct stat *)s); }
EXPORT int fstatat64(int at, const char *path, struct stat64 *s, int flags) { return fstatat(at, path, (struct stat *)s, flags); }
// What programs linked against glibc before 2.33 call. The first argument is a structure version.
EXPORT int __xstat(int v, const char *path, struct stat *s) { (void)v; return stat(path, s); }
EXPORT int __lxstat(int v, const char *path, struct stat *s) { (void)v; return lstat(path, s); }
EXPORT int __fxstat(int v, int fd, struct stat *s) { (void)v; return fstat(fd, s); }
EXPORT int __xstat64(int v, const char *path, struct stat64 *s) { (void)v; return stat(path, (struct stat *)s); }
EXPORT int __lxstat64(int v, const char *path, struct stat64 *s) { (void)v; return lstat(path, (struct stat *)s); }
EXPORT int __fxstat64(int v, int fd, struct stat64 *s) { (void)v; return fstat(fd, (struct stat *)s); }

// Directories: a DIR of ours is a pointer into this array, so it is told from a true one by its address.
static struct listing { int open, next; const char *path; struct dirent entry; } listings[32];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct listing *listing(DIR *d) { return (struct listing *)d >= listings && (struct listing *)d < listings + COUNT(listings) ? (struct listing *)d : NULL; }

EXPORT DIR *opendir(const char *path) {
    int ours; struct entry *e = find(path, &ours); struct listing *l = NULL;
    if (!ours) return REAL(opendir)(path);
    if (!e) return NULL;
    if (e->kind != DIRECTORY) { errno = ENOTDIR; return NULL; }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < COUNT(listings) && !l; i++) if (!listings[i].open) { l = &listings[i]; l->open = 1; l->next = 0; l->path = e->path; }
    pthread_mutex_unlock(&lock);
    if (!l) errno = EMFILE;
    return (DIR *)l;
}
EXPORT struct dirent *readdir(DIR *d) {
    struct listing *l = listing(d);
    if (!l) return REAL(readdir)(d);
    size_t n = strlen(l->path);
    while (l->next < (int)COUNT(tree)) {
        struct entry *e = &tree[l->next++];
        if (strncmp(e->path, l->path, n) || e->path[n] != '/' || strchr(e->path + n + 1, '/')) continue;
        memset(&l->entry, 0, sizeof l->entry);
        l->entry.d_ino = 1000 + (e - tree); l->entry.d_off = l->next; l->entry.d_reclen = sizeof l->entry;
        l->entry.d_type = e->kind == DIRECTORY ? DT_DIR : e->kind == DEVICE ? DT_CHR : e->kind == LINK ? DT_LNK : DT_REG;
        strcpy(l->entry.d_name, e->path + n + 1);
        return &l->entry;
    }
    return NULL;
}
EXPORT struct dirent64 *readdir64(DIR *d) { return (struct dirent64 *)readdir(d); }
EXPORT int closedir(DIR *d) { struct listing *l = listing(d); if (!l) return REAL(closedir)(d); l->open = 0; return 0; }
EXPORT int dirfd(DIR *d) { return listing(d) ? (errno = ENOTSUP, -1) : REAL(dirfd)(d); }
EXPORT void rewinddir(DIR *d) { struct listing *l = listing(d); if (l) l->next = 0; else REAL(rewinddir)(d); }

// ----------------------------------------------------------------------------------------------------------------- objects
// Buffer objects: ranges of the memfd, never reused; closing one gives its pages back. Handles are reused, as a kernel does.
static struct bo { uint64_t offset, size; uint32_t next_free; } *bos;
static uint32_t bo_count = 1, bo_room, bo_free;
static uint64_t file_end = 1 << 20;
static uint64_t points[1 << 16];        // syncobj: the timeline point reached (handles are never reused)
static uint32_t next_syncobj = 1, next_id = 1;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static uint64_t ticks(void) { return (unsigned __int128)now() * chip.clock / 1000000000; }
#define POINT(h) points[(h) & 0xffff]
#define PTR(u) ((void *)(uintptr_t)(u))

static uint32_t bo_create(uint64_t size) {
    pthread_mutex_lock(&lock);
    uint32_t h = bo_free;
    if (h) bo_free = bos[h].next_free;
    else {
        if (bo_count >= bo_room) bos = realloc(bos, (bo_room = bo_room ? 2 * bo_room : 1024) * sizeof *bos);
        h = bo_count++;
    }
    size = (size + 65535) & ~65535ull;
    bos[h] = (struct bo){ file_end, size, 0 };
    file_end += size;
    if (ftruncate(node_fd, file_end)) LOG("ftruncate to %llu: %s\n", (unsigned long long)file_end, strerror(errno));
    pthread_mutex_unlock(&lock);
    return h;
}
static void bo_close(uint32_t h) {
    pthread_mutex_lock(&lock);
    if (h && h < bo_count && bos[h].size) {
        fallocate(node_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, bos[h].offset, bos[h].size);
        bos[h] = (struct bo){ 0, 0, bo_free };
        bo_free = h;
    }
    pthread_mutex_unlock(&lock);
}
static uint64_t bo_offset(uint32_t h) { return h && h < bo_count ? bos[h].offset : 0; }

// The kernel's way of returning text or a blob: the caller's room in *len, the true length back.
static void give(char *to, __kernel_size_t *len, const char *text) {
    if (to) memcpy(to, text, *len < strlen(text) ? *len : strlen(text));
    *len = strlen(text);
}

// ------------------------------------------------------------------------------------------------------------------ common
static int common(unsigned nr, void *arg) {
    switch (nr) {
    case 0x00: {                        // VERSION
        struct drm_version *v = arg;
        v->version_major = 1; v->version_minor = chip.kmd == XE ? 1 : 6; v->version_patchlevel = 0;
        give(v->name, &v->name_len, chip.kmd == XE ? "xe" : "i915");
        give(v->date, &v->date_len, "20260101");
        give(v->desc, &v->desc_len, "Intel graphics (pretended)");
        return 0;
    }
    case 0x09: bo_close(((struct drm_gem_close *)arg)->handle); return 0;
    case 0x0c: {                        // GET_CAP
        struct drm_get_cap *c = arg;
        c->value = c->capability == DRM_CAP_SYNCOBJ || c->capability == DRM_CAP_SYNCOBJ_TIMELINE || c->capability == DRM_CAP_TIMESTAMP_MONOTONIC ? 1
                 : c->capability == DRM_CAP_PRIME ? 3 : 0;
        return 0;
    }
    case 0x0d: return 0;                // SET_CLIENT_CAP
    case 0x2d: ((struct drm_prime_handle *)arg)->fd = fcntl(node_fd, F_DUPFD_CLOEXEC, 3); return 0;    // PRIME_HANDLE_TO_FD
    case 0xbf: {                        // SYNCOBJ_CREATE
        struct drm_syncobj_create *c = arg;
        c->handle = __atomic_fetch_add(&next_syncobj, 1, __ATOMIC_RELAXED); POINT(c->handle) = 0;
        return 0;
    }
    case 0xc0: case 0xc4: case 0xc5: return 0;                  // DESTROY, RESET, SIGNAL
    case 0xc3: ((struct drm_syncobj_wait *)arg)->first_signaled = 0; return 0;              // WAIT: all is always done
    case 0xca: ((struct drm_syncobj_timeline_wait *)arg)->first_signaled = 0; return 0;     // TIMELINE_WAIT
    case 0xcb: case 0xcd: {             // QUERY, TIMELINE_SIGNAL
        struct drm_syncobj_timeline_array *a = arg; uint32_t *h = PTR(a->handles); uint64_t *p = PTR(a->points);
        for (uint32_t i = 0; i < a->count_handles; i++) if (nr == 0xcb) p[i] = POINT(h[i]); else POINT(h[i]) = p[i];
        return 0;
    }
    case 0xcc: { struct drm_syncobj_transfer *t = arg; POINT(t->dst_handle) = t->dst_point; return 0; }
    }
    errno = EINVAL; return -1;
}

// The table of hardware configuration that the firmware hands out: (key, length in words, words...). Only what Mesa reads for
// compute matters; the URB and thread counts of the graphics stages are plausible figures.
static int hwconfig(uint32_t *out) {
    const uint32_t table[][2] = { { 1, (chip.ss + 3) / 4 }, { 2, chip.ss }, { 3, chip.eu }, { 15, chip.threads }, { 16, 546 }, { 17, 336 },
        { 18, 336 }, { 19, 546 }, { 21, 128 }, { 30, 3576 }, { 34, 1548 }, { 36, 1548 }, { 38, 3576 }, { 68, 768 }, { 70, (chip.ss + 3) / 4 * 4 }, { 71, chip.eu } };
    if (chip.ver < 1255) return 0;
    for (size_t i = 0; out && i < COUNT(table); i++) { *out++ = table[i][0]; *out++ = 1; *out++ = table[i][1]; }
    return COUNT(table) * 12;
}

// -------------------------------------------------------------------------------------------------------------------- i915
// A query item: the kernel returns the length needed when asked with length 0, then the data.
static int i915_item(struct drm_i915_query_item *q) {
    static const struct i915_engine_class_instance engine[] = { { I915_ENGINE_CLASS_RENDER, 0 }, { I915_ENGINE_CLASS_COPY, 0 },
        { I915_ENGINE_CLASS_VIDEO, 0 }, { I915_ENGINE_CLASS_COMPUTE, 0 } };
    union { char bytes[4096]; uint32_t words[1024]; struct drm_i915_query_topology_info topo; struct drm_i915_query_engine_info engines;
            struct drm_i915_query_memory_regions mem; struct drm_i915_query_guc_submission_version guc; } u;
    int len = 0;
    memset(&u, 0, sizeof u);
    switch (q->query_id) {
    case DRM_I915_QUERY_TOPOLOGY_INFO: case DRM_I915_QUERY_GEOMETRY_SUBSLICES: {    // bit masks: slices, subslices, execution units
        int ss_bytes = (chip.max_ss + 7) / 8, eu_bytes = (chip.eu + 7) / 8;
        u.topo.max_slices = chip.max_slices; u.topo.max_subslices = chip.max_ss; u.topo.max_eus_per_subslice = chip.eu;
        u.topo.subslice_offset = 1; u.topo.subslice_stride = ss_bytes;
        u.topo.eu_offset = 1 + chip.max_slices * ss_bytes; u.topo.eu_stride = eu_bytes;
        u.topo.data[0] = 1;
        for (int s = 0; s < chip.ss; s++) {
            u.topo.data[u.topo.subslice_offset + s / 8] |= 1 << s % 8;
            for (int e = 0; e < chip.eu; e++) u.topo.data[u.topo.eu_offset + s * eu_bytes + e / 8] |= 1 << e % 8;
        }
        len = sizeof u.topo + u.topo.eu_offset + chip.max_slices * chip.max_ss * eu_bytes;
        break;
    }
    case DRM_I915_QUERY_ENGINE_INFO:
        u.engines.num_engines = chip.ver >= 1255 ? 4 : 3;       // compute engines begin with DG2
        for (unsigned i = 0; i < u.engines.num_engines; i++) u.engines.engines[i].engine = engine[i];
        len = sizeof u.engines + u.engines.num_engines * sizeof u.engines.engines[0];
        break;
    case DRM_I915_QUERY_MEMORY_REGIONS:
        u.mem.num_regions = chip.vram ? 2 : 1;
        for (unsigned i = 0; i < u.mem.num_regions; i++) {
            struct drm_i915_memory_region_info *r = &u.mem.regions[i];
            r->region.memory_class = i ? I915_MEMORY_CLASS_DEVICE : I915_MEMORY_CLASS_SYSTEM;
            r->probed_size = r->unallocated_size = i ? chip.vram : SRAM;
            r->probed_cpu_visible_size = r->unallocated_cpu_visible_size = i ? chip.vram : 0;
        }
        len = sizeof u.mem + u.mem.num_regions * sizeof u.mem.regions[0];
        break;
    case DRM_I915_QUERY_HWCONFIG_BLOB: len = hwconfig(u.words); if (!len) return -ENODEV; break;
    case DRM_I915_QUERY_GUC_SUBMISSION_VERSION: u.guc.major = 1; u.guc.minor = 30; len = sizeof u.guc; break;
    default: LOG("i915 query %llu unknown\n", (unsigned long long)q->query_id); return -EINVAL;
    }
    if (q->length >= len) memcpy(PTR(q->data_ptr), &u, len); else if (q->length) return -EINVAL;
    return len;
}
static int i915_param(int param) {      // most parameters are "is this feature there"
    switch (param) {
    case I915_PARAM_CHIPSET_ID: return chip.pci;
    case I915_PARAM_REVISION: return chip.rev;
    case I915_PARAM_CS_TIMESTAMP_FREQUENCY: return chip.clock;
    case I915_PARAM_SLICE_MASK: return 1;
    case I915_PARAM_SUBSLICE_MASK: return (int)((1ull << (chip.ss > 31 ? 31 : chip.ss)) - 1);
    case I915_PARAM_SUBSLICE_TOTAL: return chip.ss;
    case I915_PARAM_EU_TOTAL: return chip.ss * chip.eu;
    case I915_PARAM_HAS_ALIASING_PPGTT: return 3;
    case I915_PARAM_MMAP_GTT_VERSION: return 4;
    case I915_PARAM_CMD_PARSER_VERSION: return 10;
    case I915_PARAM_PERF_REVISION: case I915_PARAM_HAS_BSD2: return 0;
    default: return 1;
    }
}
static int i915(unsigned nr, void *arg) {
    switch (nr) {
    case DRM_I915_GETPARAM: {
        struct drm_i915_getparam *g = arg;
        if (g->param == 58) { errno = ENODEV; return -1; }      // PXP_STATUS: no protected content
        *g->value = i915_param(g->param);
        return 0;
    }
    case DRM_I915_QUERY: {
        struct drm_i915_query *q = arg; struct drm_i915_query_item *item = PTR(q->items_ptr);
        for (uint32_t i = 0; i < q->num_items; i++) item[i].length = i915_item(&item[i]);
        return 0;
    }
    case DRM_I915_GEM_CREATE: { struct drm_i915_gem_create *c = arg; c->handle = bo_create(c->size); return 0; }
    case DRM_I915_GEM_CREATE_EXT: { struct drm_i915_gem_create_ext *c = arg; c->handle = bo_create(c->size); return 0; }
    case DRM_I915_GEM_USERPTR: { struct drm_i915_gem_userptr *c = arg; c->handle = bo_create(c->user_size); return 0; }
    case DRM_I915_GEM_MMAP_GTT: { struct drm_i915_gem_mmap_offset *m = arg; m->offset = bo_offset(m->handle); return 0; }   // and MMAP_OFFSET
    case DRM_I915_GEM_MMAP: {
        struct drm_i915_gem_mmap *m = arg;
        void *p = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, node_fd, bo_offset(m->handle) + m->offset);
        if (p == MAP_FAILED) return -1;
        m->addr_ptr = (uintptr_t)p;
        return 0;
    }
    case DRM_I915_GEM_CONTEXT_CREATE: ((struct drm_i915_gem_context_create *)arg)->ctx_id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); return 0;
    case DRM_I915_GEM_VM_CREATE: ((struct drm_i915_gem_vm_control *)arg)->vm_id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); return 0;
    case DRM_I915_GEM_CONTEXT_GETPARAM: {
        struct drm_i915_gem_context_param *p = arg;
        p->value = p->param == I915_CONTEXT_PARAM_GTT_SIZE ? 1ull << 48 : p->param == I915_CONTEXT_PARAM_VM ? 1 : 0;
        return 0;
    }
    case DRM_I915_GET_RESET_STATS: { struct drm_i915_reset_stats *r = arg; r->reset_count = r->batch_active = r->batch_pending = 0; return 0; }
    case DRM_I915_GEM_SET_TILING:       // Mesa asks whether it is there; Xe-HPG and later have none
        if (chip.ver >= 1255) { errno = EOPNOTSUPP; return -1; }
        return 0;
    case DRM_I915_GEM_GET_TILING: { struct drm_i915_gem_get_tiling *t = arg; t->tiling_mode = t->swizzle_mode = 0; return 0; }
    case DRM_I915_GEM_GET_APERTURE: { struct drm_i915_gem_get_aperture *a = arg; a->aper_size = a->aper_available_size = 1ull << 32; return 0; }
    case DRM_I915_GEM_BUSY: ((struct drm_i915_gem_busy *)arg)->busy = 0; return 0;
    case DRM_I915_GEM_MADVISE: ((struct drm_i915_gem_madvise *)arg)->retained = 1; return 0;
    case DRM_I915_REG_READ: ((struct drm_i915_reg_read *)arg)->val = ticks(); return 0;
    case DRM_I915_GEM_EXECBUFFER2: {    // nothing runs, but the timeline points that it would reach are reached
        struct drm_i915_gem_execbuffer2 *b = arg;
        for (struct i915_user_extension *x = b->flags & I915_EXEC_USE_EXTENSIONS ? PTR(b->cliprects_ptr) : NULL; x; x = PTR(x->next_extension)) {
            struct drm_i915_gem_execbuffer_ext_timeline_fences *t = (void *)x;
            if (x->name != DRM_I915_GEM_EXECBUFFER_EXT_TIMELINE_FENCES) continue;
            struct drm_i915_gem_exec_fence *f = PTR(t->handles_ptr); uint64_t *v = PTR(t->values_ptr);
            for (uint64_t i = 0; i < t->fence_count; i++) if (f[i].flags & I915_EXEC_FENCE_SIGNAL) POINT(f[i].handle) = v[i];
        }
        return 0;
    }
    case DRM_I915_GEM_CONTEXT_DESTROY: case DRM_I915_GEM_CONTEXT_SETPARAM: case DRM_I915_GEM_VM_DESTROY: case DRM_I915_GEM_WAIT:
    case DRM_I915_GEM_SET_DOMAIN: case DRM_I915_GEM_SET_CACHING: case DRM_I915_GEM_PREAD: case DRM_I915_GEM_PWRITE: return 0;
    }
    errno = EINVAL; return -1;
}

// ---------------------------------------------------------------------------------------------------------------------- xe
static void xe_signal(uint64_t syncs, uint32_t count) {
    struct drm_xe_sync *s = PTR(syncs);
    for (uint32_t i = 0; i < count; i++) {
        if (!(s[i].flags & DRM_XE_SYNC_FLAG_SIGNAL)) continue;
        if (s[i].type == DRM_XE_SYNC_TYPE_TIMELINE_SYNCOBJ) POINT(s[i].handle) = s[i].timeline_value;
        if (s[i].type == DRM_XE_SYNC_TYPE_USER_FENCE && s[i].addr) *(uint64_t *)PTR(s[i].addr) = s[i].timeline_value;
    }
}
// One mask of the topology query: `count` low bits set in `bytes` bytes.
static char *xe_mask(char *p, int type, int count, int bytes) {
    struct drm_xe_query_topology_mask *m = (void *)p;
    m->gt_id = 0; m->type = type; m->num_bytes = bytes;
    for (int i = 0; i < count; i++) m->mask[i / 8] |= 1 << i % 8;
    return p + sizeof *m + bytes;
}
static int xe_query(struct drm_xe_device_query *q) {
    static const uint16_t classes[] = { DRM_XE_ENGINE_CLASS_RENDER, DRM_XE_ENGINE_CLASS_COPY, DRM_XE_ENGINE_CLASS_COMPUTE, DRM_XE_ENGINE_CLASS_VIDEO_DECODE };
    union { char bytes[4096]; uint32_t words[1024]; struct drm_xe_query_engines engines; struct drm_xe_query_mem_regions mem; struct drm_xe_query_config config;
            struct drm_xe_query_gt_list gts; struct drm_xe_query_uc_fw_version fw; struct drm_xe_query_engine_cycles cycles; } u;
    unsigned len = 0;
    memset(&u, 0, sizeof u);
    if (q->data && q->size <= sizeof u) memcpy(&u, PTR(q->data), q->size);      // some queries have inputs
    switch (q->query) {
    case DRM_XE_DEVICE_QUERY_ENGINES:
        u.engines.num_engines = COUNT(classes);
        for (unsigned i = 0; i < COUNT(classes); i++) u.engines.engines[i].instance.engine_class = classes[i];
        len = sizeof u.engines + COUNT(classes) * sizeof u.engines.engines[0];
        break;
    case DRM_XE_DEVICE_QUERY_MEM_REGIONS:
        u.mem.num_mem_regions = chip.vram ? 2 : 1;
        for (unsigned i = 0; i < u.mem.num_mem_regions; i++) {
            struct drm_xe_mem_region *r = &u.mem.mem_regions[i];
            r->mem_class = i ? DRM_XE_MEM_REGION_CLASS_VRAM : DRM_XE_MEM_REGION_CLASS_SYSMEM; r->instance = i;
            r->min_page_size = i ? 65536 : 4096; r->total_size = i ? chip.vram : SRAM / 2; r->cpu_visible_size = i ? chip.vram : 0;
        }
        len = sizeof u.mem + u.mem.num_mem_regions * sizeof u.mem.mem_regions[0];
        break;
    case DRM_XE_DEVICE_QUERY_CONFIG:
        u.config.num_params = 5;
        u.config.info[DRM_XE_QUERY_CONFIG_REV_AND_DEVICE_ID] = chip.rev << 16 | chip.pci;
        u.config.info[DRM_XE_QUERY_CONFIG_FLAGS] = chip.vram ? DRM_XE_QUERY_CONFIG_FLAG_HAS_VRAM : 0;
        u.config.info[DRM_XE_QUERY_CONFIG_MIN_ALIGNMENT] = chip.vram ? 65536 : 4096;
        u.config.info[DRM_XE_QUERY_CONFIG_VA_BITS] = 48;
        u.config.info[DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY] = 1;
        len = sizeof u.config + 5 * sizeof u.config.info[0];
        break;
    case DRM_XE_DEVICE_QUERY_GT_LIST: {
        struct drm_xe_gt *g = &u.gts.gt_list[0];
        u.gts.num_gt = 1; g->type = DRM_XE_QUERY_GT_TYPE_MAIN; g->reference_clock = chip.clock;
        g->near_mem_regions = chip.vram ? 2 : 1; g->far_mem_regions = chip.vram ? 1 : 0;
        g->ip_ver_major = chip.ver / 100; g->ip_ver_minor = chip.ver % 100; g->ip_ver_rev = 4;
        len = sizeof u.gts + sizeof *g;
        break;
    }
    case DRM_XE_DEVICE_QUERY_HWCONFIG: len = hwconfig(u.words); break;
    case DRM_XE_DEVICE_QUERY_GT_TOPOLOGY: {
        char *p = u.bytes;
        p = xe_mask(p, DRM_XE_TOPO_DSS_GEOMETRY, chip.ss, 8);
        p = xe_mask(p, DRM_XE_TOPO_DSS_COMPUTE, chip.ss, 8);
        p = xe_mask(p, DRM_XE_TOPO_L3_BANK, chip.l3, 8);
        p = xe_mask(p, chip.ver >= 2000 ? DRM_XE_TOPO_SIMD16_EU_PER_DSS : DRM_XE_TOPO_EU_PER_DSS, chip.eu, 4);
        len = p - u.bytes;
        break;
    }
    case DRM_XE_DEVICE_QUERY_ENGINE_CYCLES: u.cycles.width = 36; u.cycles.cpu_timestamp = now(); u.cycles.engine_cycles = ticks(); u.cycles.cpu_delta = 1; len = sizeof u.cycles; break;
    case DRM_XE_DEVICE_QUERY_UC_FW_VERSION: u.fw.major_ver = 1; u.fw.minor_ver = 30; len = sizeof u.fw; break;
    case 9: errno = ENODEV; return -1;                          // PXP_STATUS: no protected content
    default: LOG("xe query %u unknown\n", q->query); errno = EINVAL; return -1;
    }
    if (q->data && q->size >= len) memcpy(PTR(q->data), &u, len); else if (q->size) { errno = EINVAL; return -1; }
    q->size = len;
    return 0;
}
static int xe(unsigned nr, void *arg) {
    switch (nr) {
    case DRM_XE_DEVICE_QUERY: return xe_query(arg);
    case DRM_XE_GEM_CREATE: { struct drm_xe_gem_create *c = arg; c->handle = bo_create(c->size); return 0; }
    case DRM_XE_GEM_MMAP_OFFSET: { struct drm_xe_gem_mmap_offset *m = arg; m->offset = bo_offset(m->handle); return 0; }
    case DRM_XE_VM_CREATE: ((struct drm_xe_vm_create *)arg)->vm_id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); return 0;
    case DRM_XE_EXEC_QUEUE_CREATE: ((struct drm_xe_exec_queue_create *)arg)->exec_queue_id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); return 0;
    case DRM_XE_EXEC_QUEUE_GET_PROPERTY: ((struct drm_xe_exec_queue_get_property *)arg)->value = 0; return 0;      // not banned
    case DRM_XE_VM_BIND: { struct drm_xe_vm_bind *b = arg; xe_signal(b->syncs, b->num_syncs); return 0; }
    case DRM_XE_EXEC: { struct drm_xe_exec *x = arg; xe_signal(x->syncs, x->num_syncs); return 0; }
    case DRM_XE_VM_DESTROY: case DRM_XE_EXEC_QUEUE_DESTROY: case DRM_XE_WAIT_USER_FENCE: return 0;
    }
    errno = EINVAL; return -1;
}

EXPORT int ioctl(int fd, unsigned long request, ...) {
    va_list a; va_start(a, request); void *arg = va_arg(a, void *); va_end(a);
    struct stat s;
    if (_IOC_TYPE(request) != 'd' || node_fd < 0 || REAL(fstat)(fd, &s) || !is_node(&s)) return REAL(ioctl)(fd, request, arg);
    unsigned nr = _IOC_NR(request);
    int driver = nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END;
    int r = !driver ? common(nr, arg) : chip.kmd == XE ? xe(nr - DRM_COMMAND_BASE, arg) : i915(nr - DRM_COMMAND_BASE, arg);
    if (debug > 1 || (r && debug)) LOG("ioctl %s 0x%02x: %s\n", driver ? chip.kmd == XE ? "xe" : "i915" : "drm", driver ? nr - DRM_COMMAND_BASE : nr, r ? strerror(errno) : "ok");
    return r;
}
