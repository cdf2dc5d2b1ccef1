#include "server/trimmer.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"

#include <malloc.h>
#include <stdlib.h>

#define SETTLE_NS (1 * NS_PER_S) /* after memory was released, for the rest of a burst to end */
#define PAUSE_NS (9 * NS_PER_S)  /* between two trims, in addition */

enum {
    /* glibc's own first value, and the one to which it raises it when large blocks are freed. */
    MAPPED_BYTES_MIN = 32 * 1024,
    MAPPED_BYTES_MAX = 32 * 1024 * 1024,
    CALM_PART = 8, /* less than an eighth of the budget is little */
};

struct trimmer {
    struct budget *budget; /* borrowed */
    pthread_t thread;
    struct lock lock;
    pthread_cond_t changed;
    bool wanted, stopping; /* under the lock */
};

/* Blocks of at least this size are mappings of their own. As much may stay free at the end of a
 * heap, twice that while speed counts. */
static void set_mapped(int bytes)
{
    (void)mallopt(M_MMAP_THRESHOLD, bytes);
    (void)mallopt(M_TRIM_THRESHOLD, bytes == MAPPED_BYTES_MIN ? bytes : 2 * bytes);
}

static void on_much(void *ctx)
{
    (void)ctx;
    set_mapped(MAPPED_BYTES_MIN);
}

static void on_fall(void *ctx)
{
    struct trimmer *trimmer = ctx;
    LOCK_SCOPE(&trimmer->lock);
    trimmer->wanted = true;
    pthread_cond_signal(&trimmer->changed);
}

static void trim(struct trimmer *trimmer)
{
    int64_t from_ns = clock_mono_ns(clock_system());
    (void)malloc_trim(0);
    log_debug("returned freed memory",
              LOG_I64("took-us", (clock_mono_ns(clock_system()) - from_ns) / NS_PER_US));
    struct budget_stats stats = budget_stats(trimmer->budget);
    if (stats.held_bytes < stats.limit_bytes / CALM_PART) {
        set_mapped(MAPPED_BYTES_MAX);
        budget_calm(trimmer->budget);
    }
}

/* With the lock held. */
static void pause_for(struct trimmer *trimmer, int64_t ns)
{
    int64_t until_ns = clock_mono_ns(clock_system()) + ns;
    while (!trimmer->stopping && clock_mono_ns(clock_system()) < until_ns)
        lock_wait_until(&trimmer->lock, &trimmer->changed, until_ns);
}

static void *trimmer_main(void *arg)
{
    struct trimmer *trimmer = arg;
    lock_take(&trimmer->lock);
    while (!trimmer->stopping) {
        if (!trimmer->wanted) {
            lock_wait(&trimmer->lock, &trimmer->changed);
            continue;
        }
        pause_for(trimmer, SETTLE_NS);
        trimmer->wanted = false;
        lock_release(&trimmer->lock);
        trim(trimmer);
        lock_take(&trimmer->lock);
        pause_for(trimmer, PAUSE_NS);
    }
    lock_release(&trimmer->lock);
    return NULL;
}

enum status trimmer_start(struct budget *budget, struct trimmer **ret_trimmer)
{
    struct trimmer *trimmer = xcalloc(1, sizeof(*trimmer));
    trimmer->budget = budget;
    lock_init(&trimmer->lock);
    lock_condition_init(&trimmer->changed);
    int error = pthread_create(&trimmer->thread, NULL, trimmer_main, trimmer);
    if (error) {
        free(trimmer);
        return status_from_errno(error);
    }
    pthread_setname_np(trimmer->thread, "vigil-trimmer");
    budget_set_levels(budget, (struct budget_levels){on_much, on_fall, trimmer});
    *ret_trimmer = trimmer;
    return ST_OK;
}

void trimmer_free(struct trimmer *trimmer)
{
    if (!trimmer)
        return;
    budget_set_levels(trimmer->budget, (struct budget_levels){0});
    lock_take(&trimmer->lock);
    trimmer->stopping = true;
    pthread_cond_signal(&trimmer->changed);
    lock_release(&trimmer->lock);
    pthread_join(trimmer->thread, NULL);
    pthread_cond_destroy(&trimmer->changed);
    lock_fini(&trimmer->lock);
    free(trimmer);
}
