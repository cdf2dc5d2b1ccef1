#include "engine/local/mirror/mirror_store.h"

#include "base/xalloc.h"
#include "engine/local/shard/shard.h"
#include "store/log/damage.h"
#include "store/mvcc/range_walk.h"

#include <stdlib.h>

enum { WALK_KEYS = 1024 }; /* in one step, for which the epoch is pinned */

static struct local_shared *shared_of(const struct engine *engine)
{
    return CONTAINER_OF((struct engine *)(uintptr_t)engine, struct local_shared, engine);
}

int64_t local_mirror_revision(const struct engine *engine)
{
    return atomic_load_explicit(&shared_of(engine)->mirror.revision, memory_order_acquire);
}

int64_t local_mirror_compact_revision(const struct engine *engine)
{
    return atomic_load_explicit(&shared_of(engine)->mirror.compact_revision, memory_order_acquire);
}

bool local_mirror_is_damaged(const struct engine *engine)
{
    return log_is_damaged(store_log(shared_of(engine)->store));
}

bool local_mirror_range_start(struct engine_shard *shard, struct engine_range *range)
{
    range->op.shard = shard;
    return local_range_try(range);
}

static void op_done(struct engine_op *op)
{
    struct mirror_batch *batch = CONTAINER_OF(op, struct mirror_batch, op);
    batch->done(batch, op->status);
}

void local_mirror_apply(struct engine *engine, struct mirror_batch *batch)
{
    struct local_shared *shared = shared_of(engine);
    assert(shared->options.is_mirror);
    assert(!batch->is_part || batch->compact);
    batch->applied = 0;
    batch->op = (struct engine_op){.kind = LOCAL_MIRROR, .done = op_done};
    mailbox_post(&shared->writer.requests, &batch->op.in_mailbox);
}

void local_mirror_retry(struct engine *engine)
{
    atomic_store(&shared_of(engine)->mirror.failed, ST_OK);
}

/* -- Walking -- */

/* In the buffer, followed by the key. */
struct walked {
    int64_t mod_revision;
    uint64_t key_bytes;
};

struct mirror_walk {
    struct local_shared *shared;
    int64_t revision;   /* revision of the state that is walked */
    struct buf step;    /* struct walked and key, one after the other, unaligned */
    size_t offset;      /* offset of the next one */
    struct buf last;    /* key of the last step, and a zero */
    struct slice key;   /* returned last, in `step` */
    struct buf version; /* version of that key: a copy of the whole change */
    bool ended, damaged;
};

struct mirror_walk *local_mirror_walk_new(struct engine *engine)
{
    struct local_shared *shared = shared_of(engine);
    struct mirror_walk *walk = xcalloc(1, sizeof(*walk));
    bool walking = atomic_exchange(&shared->mirror.walking, true);
    assert(!walking);
    (void)walking;
    walk->shared = shared;
    uint64_t pinned = epoch_pin(shared->mirror.slot);
    walk->revision = store_view(shared->store)->revision;
    epoch_unpin(shared->mirror.slot, pinned);
    return walk;
}

static void add(struct buf *to, struct slice bytes)
{
    if (buf_append(to, bytes) != ST_OK)
        abort();
}

static void take_keys(struct mirror_walk *walk, struct range_walk *range)
{
    const struct range_kv *kv = NULL;
    for (size_t i = 0; i < WALK_KEYS && (kv = range_walk_next(range)); i++) {
        struct slice key = index_item_key(kv->item);
        struct walked head = {.mod_revision = kv->mod_revision, .key_bytes = key.len};
        add(&walk->step, slice_of(&head, sizeof(head)));
        add(&walk->step, key);
        if (i + 1 == WALK_KEYS) {
            /* The step is full. The next one begins with the first key that can follow this one. */
            walk->last.len = 0;
            add(&walk->last, key);
            add(&walk->last, slice_of("", 1));
        }
    }
    walk->ended = !kv;
    walk->damaged |= range->damaged;
}

/* The epoch is pinned for one step only: a walk may take long, because its caller waits for the
 * other server in between. */
static void take_step(struct mirror_walk *walk)
{
    struct local_shared *shared = walk->shared;
    uint64_t pinned = epoch_pin(shared->mirror.slot);
    struct range_state state = range_state_of(store_view(shared->store), store_log(shared->store));
    struct range_bounds bounds = {.from = buf_slice(&walk->last), .to_end = true};
    struct range_walk range;
    walk->step.len = walk->offset = 0;
    range_walk_init(&range, &state, bounds, walk->revision);
    take_keys(walk, &range);
    epoch_unpin(shared->mirror.slot, pinned);
}

bool local_mirror_walk_next(struct mirror_walk *walk, struct slice *ret_key,
                            int64_t *ret_mod_revision)
{
    if (walk->offset == walk->step.len && !walk->ended)
        take_step(walk);
    if (walk->offset == walk->step.len)
        return false;
    struct walked head;
    memcpy(&head, walk->step.ptr + walk->offset, sizeof(head));
    *ret_key = slice_of(walk->step.ptr + walk->offset + sizeof(head), head.key_bytes);
    walk->key = *ret_key;
    *ret_mod_revision = head.mod_revision;
    walk->offset += sizeof(head) + head.key_bytes;
    return true;
}

static enum status find_version(const struct mirror_walk *walk, const struct store_view *view,
                                const struct change_head **ret_change)
{
    const struct log *log = store_log(walk->shared->store);
    const struct index_item *item = index_root_find(&view->root, walk->key);
    struct range_kv kv;
    TRY(item ? range_item_at(log, item, walk->revision, &kv) : ST_NOT_FOUND);
    return change_get(log, kv.loc, ret_change);
}

void local_mirror_walk_get(struct mirror_walk *walk, struct change_kv *ret_kv)
{
    struct local_shared *shared = walk->shared;
    uint64_t pinned = epoch_pin(shared->mirror.slot);
    const struct change_head *change;
    enum status status = find_version(walk, store_view(shared->store), &change);
    *ret_kv = (struct change_kv){.key = walk->key};
    if (status == ST_OK) {
        walk->version.len = 0;
        add(&walk->version, slice_of(change, CHANGE_HEAD_BYTES + change->field_bytes));
        change_read_kv(change_at(walk->version.ptr), ret_kv);
    }
    walk->damaged |= status != ST_OK;
    epoch_unpin(shared->mirror.slot, pinned);
}

bool local_mirror_walk_is_complete(const struct mirror_walk *walk)
{
    return walk->ended && !walk->damaged && walk->offset == walk->step.len;
}

void local_mirror_walk_free(struct mirror_walk *walk)
{
    if (!walk)
        return;
    atomic_store(&walk->shared->mirror.walking, false);
    buf_fini(&walk->step);
    buf_fini(&walk->last);
    buf_fini(&walk->version);
    free(walk);
}

/* -- History -- */

void local_mirror_wrap_history(struct engine_shard *base,
                               struct watch_history *(*wrap)(void *ctx, struct watch_history *own),
                               void *ctx)
{
    struct local_shard *shard = CONTAINER_OF(base, struct local_shard, base.shard);
    assert(!shard->watch);
    shard->wrap = wrap;
    shard->wrap_ctx = ctx;
}
