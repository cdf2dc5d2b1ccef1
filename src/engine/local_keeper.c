#include "engine/local_internal.h"

#include "base/xalloc.h"

#include <stdlib.h>

/* A log that stopped growing is taken over after this long. */
static const int64_t idle_checkpoint_ns = INT64_C(5000000000);

/* -- Hashes -- */

static const struct kept_hash *find_kept(const struct local_keeper *keeper, int64_t revision)
{
    unsigned count = keeper->hash_count < KEPT_HASHES ? keeper->hash_count : KEPT_HASHES;
    for (unsigned i = 0; i < count; i++) {
        if (keeper->hashes[i].revision == revision)
            return &keeper->hashes[i];
    }
    return NULL;
}

static enum status hash_at(struct local_keeper *keeper, struct engine_hash *op)
{
    const struct kept_hash *kept = find_kept(keeper, op->at_revision);
    if (kept) {
        op->op.revision = keeper_revision(keeper->keeper);
        op->hash = kept->hash;
        op->compact_revision = kept->compact_revision;
        op->hash_revision = kept->revision;
        return ST_OK;
    }
    struct keeper_hash hash;
    enum status status = keeper_hash_at(keeper->keeper, op->at_revision, &hash);
    op->op.revision = hash.newest;
    op->hash = hash.hash;
    op->compact_revision = hash.compact_revision;
    op->hash_revision = hash.revision;
    return status;
}

/* As etcd does: the hash of what a compaction found, before anything is dropped. */
static void keep_hash(struct local_keeper *keeper, const struct local_compacted *compaction)
{
    struct kept_hash kept = {
        .compact_revision = compaction->before,
        .revision = compaction->revision,
    };
    enum status status =
        keeper_hash_compaction(keeper->keeper, kept.compact_revision, kept.revision, &kept.hash);
    if (status == ST_COMPACTED)
        return; /* the next compaction came too soon after it: etcd's clients are told the same */
    if (status != ST_OK) {
        local_warn(keeper->engine, "the hash of a compaction could not be computed", status, "");
        return;
    }
    keeper->hashes[keeper->hash_count++ % KEPT_HASHES] = kept;
}

static void take_hashes(struct local_keeper *keeper)
{
    struct mailbox_node *next;
    for (struct mailbox_node *node = mailbox_take(&keeper->compactions); node; node = next) {
        next = node->next;
        struct local_compacted *compaction = CONTAINER_OF(node, struct local_compacted, in_mailbox);
        keep_hash(keeper, compaction);
        free(compaction);
    }
    for (struct mailbox_node *node = mailbox_take(&keeper->requests); node; node = next) {
        next = node->next;
        struct engine_hash *op = CONTAINER_OF(op_of(node), struct engine_hash, op);
        op->op.status = hash_at(keeper, op);
        local_answer(&op->op);
    }
}

/* -- Checkpoints and cleaning -- */

static void checkpoint(struct local_keeper *keeper)
{
    enum status status = keeper_checkpoint(keeper->keeper);
    if (status != ST_OK)
        local_warn(keeper->engine, "the checkpoint could not be written and will be tried again",
                   status, keeper_error_text(keeper->keeper));
}

static void clean(struct local_keeper *keeper)
{
    struct relocation *relocation;
    enum status status = keeper_clean_begin(keeper->keeper, &relocation);
    if (status != ST_OK) {
        local_warn(keeper->engine, "a segment of the log could not be cleaned", status,
                   keeper_error_text(keeper->keeper));
        return;
    }
    if (!relocation)
        return;
    struct local_job *job = xcalloc(1, sizeof(*job));
    job->relocation = relocation;
    keeper->cleaning = true;
    mailbox_post(&keeper->engine->writer.jobs, &job->in_mailbox);
}

/* The writer has pointed the index to the copies: the checkpoint follows, the old segment goes. */
static void take_moved(struct local_keeper *keeper)
{
    struct mailbox_node *node = mailbox_take(&keeper->moved);
    if (!node)
        return;
    assert(!node->next);
    struct local_job *job = CONTAINER_OF(node, struct local_job, in_mailbox);
    job->segment = job->relocation->old_segment;
    enum status status = keeper_clean_end(keeper->keeper, TAKE(job->relocation));
    keeper->cleaning = false;
    if (status != ST_OK)
        local_fatal(keeper->engine, "the checkpoint of a cleaned segment could not be written",
                    status);
    mailbox_post(&keeper->engine->writer.jobs, &job->in_mailbox);
}

/* -- The thread -- */

static void work(struct local_keeper *keeper, bool idle)
{
    take_hashes(keeper);
    take_moved(keeper);
    enum status status = keeper_prepare(keeper->keeper);
    if (status != ST_OK)
        local_warn(keeper->engine, "no room for the next segment of the log", status, "");
    bool dirty = atomic_load(&keeper->dirty);
    bool much = dirty && keeper_checkpoint_lag_bytes(keeper->keeper) >=
                             keeper->engine->options.checkpoint_bytes;
    if (!much && !(dirty && idle))
        return;
    atomic_store(&keeper->dirty, false);
    checkpoint(keeper);
    if (!keeper->cleaning)
        clean(keeper);
}

static bool has_messages(const struct local_keeper *keeper)
{
    return !mailbox_empty(&keeper->requests) || !mailbox_empty(&keeper->compactions) ||
           !mailbox_empty(&keeper->moved);
}

static void *keeper_main(void *arg)
{
    struct local_keeper *keeper = arg;
    keeper_join(keeper->keeper);
    work(keeper, false);
    while (!atomic_load_explicit(&keeper->stopping, memory_order_acquire)) {
        bool waits = atomic_load(&keeper->dirty);
        int64_t timeout = waits ? idle_checkpoint_ns : CLOCK_NEVER;
        bool woken = has_messages(keeper);
        if (!woken) {
            mailbox_wait(&keeper->requests, timeout);
            woken = has_messages(keeper);
        }
        work(keeper, waits && !woken);
    }
    take_hashes(keeper);
    take_moved(keeper);
    checkpoint(keeper);
    return NULL;
}

void local_keeper_init(struct local_keeper *keeper, struct engine_local *engine)
{
    keeper->engine = engine;
    keeper->keeper = keeper_new(engine->store);
    atomic_store(&keeper->dirty, true); /* what was replayed is not in the checkpoint */
    waker_init_thread(&keeper->waker);
    mailbox_init(&keeper->requests, &keeper->waker);
    mailbox_init(&keeper->compactions, &keeper->waker);
    mailbox_init(&keeper->moved, &keeper->waker);
}

void local_keeper_start(struct local_keeper *keeper)
{
    int error = pthread_create(&keeper->thread, NULL, keeper_main, keeper);
    if (error)
        local_fatal(keeper->engine, "no thread for the keeper", status_from_errno(error));
    pthread_setname_np(keeper->thread, "vigil-keeper");
}

void local_keeper_stop(struct local_keeper *keeper)
{
    atomic_store_explicit(&keeper->stopping, true, memory_order_release);
    waker_wake(&keeper->waker);
    pthread_join(keeper->thread, NULL);
}

void local_keeper_fini(struct local_keeper *keeper)
{
    keeper_free(keeper->keeper);
    waker_fini(&keeper->waker);
}
