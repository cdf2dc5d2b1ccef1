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
    struct index *index;   /* the thread's, if there is one */
    size_t alone;          /* versions that were put without the thread */
    struct batch *batches; /* NULL: no thread was started; owned */
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

static void note_emptied(struct load_queue *queue)
{
    LOCK_SCOPE(&queue->lock);
    queue->emptied++;
    pthread_cond_signal(&queue->changed);
}

static void *run(void *arg)
{
    struct load_queue *queue = arg;
    for (struct batch *batch; (batch = next_full(queue));) {
        for (size_t i = 0; i < batch->count; i++)
            index_put(queue->index, batch->entries[i].key, &batch->entries[i].version);
        batch->count = 0;
        note_emptied(queue);
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
