#include "io/patched.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES_MIN = 512, LOSSES_MAX = 1000 };

/* Never freed, since a handler may look at it, but used again unless the report needs its path. */
struct region {
    struct region *next;
    _Atomic(uint8_t *) base; /* NULL: it was removed */
    size_t len, page_bytes, block_bytes;
    int fd;
    bool has_losses;
    char *path; /* owned */
};

struct loss {
    const struct region *region;
    uint64_t offset, bytes;
};

static _Atomic(struct region *) regions;
static struct sigaction before;
static struct loss losses[LOSSES_MAX];
static size_t loss_count;
static uint64_t lost_bytes;

/* -- In the handler: everything here is async-signal-safe -- */

static void note_loss(struct region *region, uint64_t offset, uint64_t bytes)
{
    struct loss *last = loss_count ? &losses[loss_count - 1] : NULL;
    region->has_losses = true;
    lost_bytes += bytes;
    if (last && last->region == region && last->offset + last->bytes == offset)
        last->bytes += bytes;
    else if (loss_count < LOSSES_MAX)
        losses[loss_count++] = (struct loss){region, offset, bytes};
}

/* A file system may fail to read a large part of its cache for one block in it; the others are read
 * here. */
static bool patch(struct region *region, uint8_t *page, uint64_t offset)
{
    if (mmap(page, region->page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    for (size_t at = 0; at < region->page_bytes && offset + at < region->len;) {
        size_t left = region->len - offset - at;
        size_t bytes = left < region->block_bytes ? left : region->block_bytes;
        if (pread(region->fd, page + at, bytes, (off_t)(offset + at)) != (ssize_t)bytes) {
            memset(page + at, 0, bytes);
            note_loss(region, offset + at, bytes);
        }
        at += bytes;
    }
    return true;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    uint8_t *at = info->si_addr;
    for (struct region *region = atomic_load(&regions); region; region = region->next) {
        uint8_t *base = atomic_load(&region->base);
        if (!base || at < base || (size_t)(at - base) >= region->len)
            continue;
        size_t offset = (size_t)(at - base) & ~(region->page_bytes - 1);
        if (!patch(region, base + offset, offset))
            break;
        errno = saved;
        return;
    }
    /* The access is repeated, and the fault goes to the handler that was there before. */
    sigaction(number, &before, NULL);
}

/* -- Mappings -- */

/* One that is not in use; NULL without memory. */
static struct region *region_take(void)
{
    for (struct region *region = atomic_load(&regions); region; region = region->next) {
        if (!atomic_load(&region->base) && !region->has_losses)
            return region;
    }
    struct region *region = calloc(1, sizeof(*region));
    if (!region)
        return NULL;
    region->next = atomic_load(&regions);
    if (!region->next) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
        sigaction(SIGBUS, &action, &before);
    }
    atomic_store(&regions, region);
    return region;
}

/* Smaller parts than a block of the file system cannot be read by themselves. */
static size_t block_bytes_of(int fd, size_t page_bytes)
{
    struct stat st;
    size_t bytes = fstat(fd, &st) == 0 ? (size_t)st.st_blksize : 0;
    return bytes < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : bytes > page_bytes ? page_bytes : bytes;
}

enum status patched_map(const char *path, int fd, size_t len, const uint8_t **ret_base)
{
    char *copy = strdup(path);
    struct region *region = copy ? region_take() : NULL;
    if (!region) {
        free(copy);
        return ST_NOMEM;
    }
    free(region->path);
    region->path = copy;
    void *base = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED)
        return status_from_errno(errno);
    region->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    region->block_bytes = block_bytes_of(fd, region->page_bytes);
    region->len = len;
    region->fd = fd;
    atomic_store(&region->base, base);
    *ret_base = base;
    return ST_OK;
}

void patched_unmap(const uint8_t *base)
{
    for (struct region *region = atomic_load(&regions); region; region = region->next) {
        if (atomic_load(&region->base) != base)
            continue;
        atomic_store(&region->base, NULL);
        int result = munmap((void *)(uintptr_t)base, region->len);
        assert(result == 0);
        return;
    }
}

uint64_t patched_losses(void (*fn)(void *ctx, const char *path, uint64_t offset, uint64_t bytes),
                        void *ctx)
{
    for (size_t i = 0; i < loss_count; i++)
        fn(ctx, losses[i].region->path, losses[i].offset, losses[i].bytes);
    return lost_bytes;
}
