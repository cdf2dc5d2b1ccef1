#include "engine/local/shard/direct.h"

#include "base/xalloc.h"
#include "engine/local/state/shared.h"
#include "store/mvcc/version.h"

/* One of the pool; the thread that has set taken owns the rest. */
struct local_reader {
    _Alignas(64) _Atomic bool taken;
    struct local_shared *shared;
    struct epoch_slot *slot; /* NULL: it was never used, and costs the writer nothing */
    uint64_t pinned;
    const struct auth_rights *rights;
    struct range_state state;
};

static struct local_shared *shared_of(struct engine *engine)
{
    return CONTAINER_OF(engine, struct local_shared, engine);
}

/* -- Reading -- */

struct local_reader *local_readers_new(struct local_shared *shared)
{
    struct local_reader *readers =
        xcalloc_aligned(_Alignof(struct local_reader), LOCAL_READERS_MAX * sizeof(*readers));
    for (int i = 0; i < LOCAL_READERS_MAX; i++)
        readers[i].shared = shared;
    return readers;
}

/* Each thread begins to look at another place, and finds its own free the next time. */
static struct local_reader *take(struct local_reader *readers)
{
    static _Atomic unsigned threads;
    static _Thread_local unsigned place; /* plus one; 0: none was chosen yet */
    if (UNLIKELY(!place))
        place = atomic_fetch_add(&threads, 1) % LOCAL_READERS_MAX + 1;
    for (unsigned i = 0; i < LOCAL_READERS_MAX; i++) {
        struct local_reader *reader = &readers[(place - 1 + i) % LOCAL_READERS_MAX];
        if (!atomic_load_explicit(&reader->taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&reader->taken, true, memory_order_acquire))
            return reader;
    }
    return NULL;
}

struct local_reader *local_reader_begin(struct engine *engine)
{
    struct local_shared *shared = shared_of(engine);
    struct local_reader *reader = take(shared->readers);
    if (!reader)
        return NULL;
    if (UNLIKELY(!reader->slot))
        reader->slot = epoch_slot_add(store_epoch(shared->store));
    reader->pinned = epoch_pin(reader->slot);
    const struct store_view *view = store_view(shared->store);
    reader->rights = local_auth_of(view);
    reader->state = range_state_of(view, store_log(shared->store));
    return reader;
}

void local_reader_end(struct local_reader *reader)
{
    epoch_unpin(reader->slot, reader->pinned);
    atomic_store_explicit(&reader->taken, false, memory_order_release);
}

bool local_reader_is_free(const struct local_reader *reader)
{
    return !auth_rights_enabled(reader->rights);
}

const struct range_state *local_reader_state(const struct local_reader *reader)
{
    return &reader->state;
}

enum status local_reader_get(struct local_reader *reader, struct slice key,
                             const struct change_head **ret_change)
{
    const struct index_item *item = index_root_find(&reader->state.root, key);
    *ret_change = NULL;
    if (!item || !index_item_live(item))
        return ST_OK;
    enum status status = version_get(reader->state.log, item, item->newest.loc, ret_change);
    return status == ST_DAMAGED ? local_report_damage(&reader->shared->report, NULL) : status;
}

/* -- Writing -- */

void local_direct_start(struct engine *engine, struct engine_op *op, enum engine_kind kind,
                        const void *request)
{
    struct local_shared *shared = shared_of(engine);
    op->shard = &shared->direct.shard;
    op->kind = (uint8_t)kind;
    op->request = request;
    op->pinned = 0;
    mailbox_post(&shared->writer.requests, &op->in_mailbox);
}
