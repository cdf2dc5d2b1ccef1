#include "engine/local/mirror/mirror_writer.h"

#include "base/clock.h"
#include "engine/local/state/shared.h"

enum { GROUP_BYTES_MAX = 1 << 20 }; /* a few milliseconds to write */

/* -- Opening -- */

enum status local_mirror_writer_check_complete(const struct local_shared *shared,
                                               struct error *error)
{
    if (applier_is_complete(store_applier(shared->store)))
        return ST_OK;
    return error_set(error, ST_DAMAGED, "%s: only a part of the state was loaded",
                     shared->options.data_dir);
}

static void note_published(struct local_shared *shared)
{
    const struct applier *applier = store_applier(shared->store);
    atomic_store_explicit(&shared->mirror.compact_revision, applier->compact_revision,
                          memory_order_release);
    atomic_store_explicit(&shared->mirror.revision, applier->revision, memory_order_release);
}

void local_mirror_writer_open(struct local_shared *shared)
{
    /* Keys keep the numbers of their leases, which only the other server knows. */
    struct applier *applier = store_applier(shared->store);
    applier->lease_exists = NULL;
    applier->lease_moved = NULL;
    shared->mirror.slot = epoch_slot_add(store_epoch(shared->store));
    note_published(shared);
}

/* -- Applying -- */

static struct mirror_batch *batch_of(struct mailbox_node *node)
{
    return CONTAINER_OF(op_of(node), struct mirror_batch, op);
}

static bool has_content(const struct mirror_batch *batch)
{
    return batch->count > 0 || batch->is_part;
}

static bool compacts(const struct local_mirror_writer *m, const struct mirror_batch *batch)
{
    return batch->compact && batch->compact > store_applier(m->shared->store)->compact_revision;
}

/* A watch must not end as compacted only because its shard has not read the revisions yet. */
static bool shards_lag(struct local_mirror_writer *m, const struct mirror_batch *batch)
{
    struct local_shared *shared = m->shared;
    const struct applier *applier = store_applier(shared->store);
    int64_t revision = batch->compact < applier->revision ? batch->compact : applier->revision;
    if (!compacts(m, batch))
        return false;
    for (unsigned i = 0; i < shared->options.shards_max; i++)
        if (revision_notice_lags(&shared->notices[i], revision))
            return true;
    return false;
}

/* Another batch with content waits, so the ones after it do too. */
static bool is_behind(const struct local_mirror_writer *m)
{
    for (struct mailbox_node *node = m->deferred.first; node; node = node->next)
        if (has_content(batch_of(node)))
            return true;
    return false;
}

static bool must_wait(struct local_mirror_writer *m, const struct mirror_batch *batch,
                      int64_t now_ns)
{
    if (is_behind(m))
        return true;
    if (store_is_hidden(m->shared->store) || !shards_lag(m, batch))
        return false;
    if (!m->deferred_until_ns)
        m->deferred_until_ns = clock_add(now_ns, m->shared->options.compaction_wait_ns);
    return now_ns < m->deferred_until_ns;
}

/* Before the changes of the batch: those of a state are hidden from here on. */
static enum status compact(struct local_mirror_writer *m, const struct mirror_batch *batch)
{
    struct store *store = m->shared->store;
    struct applier *applier = store_applier(store);
    if (!compacts(m, batch))
        return ST_OK;
    if (store_is_hidden(store))
        return ST_INVALID; /* another state, of which a part is missing */
    if (has_content(batch))
        m->commit(m->ctx);
    int64_t reached = applier->revision;
    if (!has_content(batch) && reached < batch->compact)
        reached = batch->compact;
    TRY(applier_mirror_compact(applier, batch->compact, reached));
    store_hide(store, has_content(batch));
    return ST_OK;
}

static void write_hidden(struct local_mirror_writer *m)
{
    enum status status = store_commit(m->shared->store);
    if (status != ST_OK)
        local_fail(&m->shared->report, "the log could not be written", status);
    else if (log_wants_prepare(store_log(m->shared->store)))
        waker_wake(&m->shared->keeper.waker);
}

static enum status apply_revisions(struct local_mirror_writer *m, struct mirror_batch *batch)
{
    struct store *store = m->shared->store;
    for (; batch->applied < batch->count; batch->applied++) {
        const struct mirror_revision *next = &batch->revisions[batch->applied];
        TRY(applier_mirror(store_applier(store), next->revision, next->changes, next->count));
        if (local_has_failed(&m->shared->report))
            return ST_STOPPED;
        if (store_pending_bytes(store) <= GROUP_BYTES_MAX)
            continue;
        if (store_is_hidden(store))
            write_hidden(m);
        else
            m->commit(m->ctx);
    }
    return ST_OK;
}

/* The last part of a state, or a batch that is complete in itself. */
static enum status show(struct local_mirror_writer *m, const struct mirror_batch *batch)
{
    struct store *store = m->shared->store;
    struct applier *applier = store_applier(store);
    applier_reach(applier, batch->reach);
    if (store_is_hidden(store)) {
        int64_t reached = applier->revision;
        if (reached < applier->compact_revision)
            reached = applier->compact_revision;
        TRY(applier_mirror_compact(applier, applier->compact_revision, reached));
    }
    store_hide(store, false);
    store_note_reached(store);
    return ST_OK;
}

static enum status apply(struct local_mirror_writer *m, struct mirror_batch *batch)
{
    TRY(compact(m, batch));
    TRY(apply_revisions(m, batch));
    return batch->is_part ? ST_OK : show(m, batch);
}

void local_mirror_writer_execute(struct local_mirror_writer *m, struct mirror_batch *batch,
                                 int64_t now_ns)
{
    if (must_wait(m, batch, now_ns)) {
        mailbox_chain_add(&m->deferred, &batch->op.in_mailbox);
        return;
    }
    _Atomic int *failed = &m->shared->mirror.failed;
    enum status before = (enum status)atomic_load(failed);
    batch->op.status = before == ST_OK ? apply(m, batch) : before;
    atomic_store(failed, (int)batch->op.status);
    if (store_is_hidden(m->shared->store)) {
        write_hidden(m);
        if (local_has_failed(&m->shared->report))
            batch->op.status = ST_STOPPED;
        batch->op.done(&batch->op);
    } else {
        mailbox_chain_add(&m->applied, &batch->op.in_mailbox);
    }
}

void local_mirror_writer_continue(struct local_mirror_writer *m, int64_t now_ns)
{
    struct mailbox_node *node = m->deferred.first, *next;
    m->deferred = (struct mailbox_chain){0};
    for (; node; node = next) {
        next = node->next;
        local_mirror_writer_execute(m, batch_of(node), now_ns);
    }
    if (!m->deferred.first)
        m->deferred_until_ns = 0;
}

void local_mirror_writer_published(struct local_mirror_writer *m)
{
    struct mailbox_node *node = m->applied.first, *next;
    if (!node)
        return;
    note_published(m->shared);
    m->applied = (struct mailbox_chain){0};
    for (; node; node = next) {
        next = node->next; /* done may free it */
        op_of(node)->done(op_of(node));
    }
}

void local_mirror_writer_refuse(struct local_mirror_writer *m)
{
    local_refuse_chain(&m->applied, ST_STOPPED);
    local_refuse_chain(&m->deferred, ST_STOPPED);
}
