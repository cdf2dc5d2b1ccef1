#include "store/load_queue.h"

#include "base/lock.h"
#include "base/xalloc.h"

#include <signal.h>
#include <stdlib.h>

enum { BATCH_ENTRIES = 1024, BATCHES = 8 };

struct entry {
    struct slice key;
    struct index_version version;
};

struct batch {
    size_t count;
    struct entry entries[BATCH_ENTRIES];
};

struct load_queue {
    struct index *index;    /* the thread's, if there is one */
    struct index_path last; /* the thread's */
    size_t alone;           /* versions that were put without the thread */
    struct batch *batches;  /* NULL: no thread was started; owned */
    pthread_t thread;
    /* Protected by the lock. */
    struct lock lock;
    pthread_cond_t changed;
    uint64_t filled;  /* batches so far; the caller reads it without the lock */
    uint64_t emptied; /* batches so far */
    bool ended;       /* no other batch follows */
};

/* -- The thread -- */

/* NULL: there is none any more. */
static struct batch *next_full(struct load_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    while (queue->emptied == queue->filled && !queue->ended)
        lock_wait(&queue->lock, &queue->changed);
    return queue->emptied < queue->filled ? &queue->batches[queue->emptied % BATCHES] : NULL;
}

enum { SOME = INDEX_PREFETCH_MAX };

static bool in_order(const struct entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (slice_compare(entries[i - 1].key, entries[i].key) >= 0)
            return false;
    }
    return true;
}

/* Keys in order are mostly in one leaf, whose place is found once. */
static void put_in_order(struct load_queue *queue, const struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        index_load_put(queue->index, entries[i].key, &entries[i].version, &queue->last);
}

/* Others are in as many leaves, whose cache misses are made to overlap. */
static void put_anywhere(struct load_queue *queue, const struct entry *entries, size_t count)
{
    struct slice keys[SOME];
    struct index_root root = index_working_root(queue->index);
    for (size_t i = 0; i < count; i++)
        keys[i] = entries[i].key;
    index_root_prefetch(&root, keys, count);
    for (size_t i = 0; i < count; i++)
        index_put(queue->index, entries[i].key, &entries[i].version);
    queue->last.is_kept = false; /* leaves may have been split */
}

static void put_all(struct load_queue *queue, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i += SOME) {
        const struct entry *entries = &batch->entries[i];
        size_t count = size_min(batch->count - i, SOME);
        if (in_order(entries, count))
            put_in_order(queue, entries, count);
        else
            put_anywhere(queue, entries, count);
    }
}

static void *run(void *arg)
{
    struct load_queue *queue = arg;
    for (struct batch *batch; (batch = next_full(queue));) {
        put_all(queue, batch);
        batch->count = 0;
        LOCK_SCOPE(&queue->lock);
        queue->emptied++;
        pthread_cond_signal(&queue->changed);
    }
    return NULL;
}

/* Takes no signals, because the program may have handlers that expect its own threads. Without a
 * thread the caller continues alone. */
static void start(struct load_queue *queue)
{
    sigset_t all, before;
    queue->batches = xcalloc(BATCHES, sizeof(*queue->batches));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, run, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(TAKE(queue->batches));
        queue->alone = 0; /* tried again later */
    } else {
        pthread_setname_np(queue->thread, "vigil-load");
    }
}

/* -- The caller -- */

struct load_queue *load_queue_new(struct index *index)
{
    struct load_queue *queue = xcalloc(1, sizeof(*queue));
    queue->index = index;
    lock_init(&queue->lock);
    lock_condition_init(&queue->changed);
    return queue;
}

/* The next one is empty on return. */
static void pass_batch(struct load_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    queue->filled++;
    pthread_cond_signal(&queue->changed);
    while (queue->filled - queue->emptied == BATCHES)
        lock_wait(&queue->lock, &queue->changed);
}

void load_queue_put(struct load_queue *queue, struct slice key, const struct index_version *version)
{
    if (!queue->batches) {
        index_put(queue->index, key, version);
        if (++queue->alone == LOAD_ALONE_MAX)
            start(queue);
        return;
    }
    struct batch *batch = &queue->batches[queue->filled % BATCHES];
    batch->entries[batch->count++] = (struct entry){.key = key, .version = *version};
    if (batch->count == BATCH_ENTRIES)
        pass_batch(queue);
}

static void end(struct load_queue *queue)
{
    if (queue->batches[queue->filled % BATCHES].count)
        pass_batch(queue);
    lock_take(&queue->lock);
    queue->ended = true;
    pthread_cond_signal(&queue->changed);
    lock_release(&queue->lock);
    pthread_join(queue->thread, NULL);
}

void load_queue_free(struct load_queue *queue)
{
    if (queue->batches)
        end(queue);
    free(queue->batches);
    pthread_cond_destroy(&queue->changed);
    lock_fini(&queue->lock);
    free(queue);
}
