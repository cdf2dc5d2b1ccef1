#include "engine/local/snapshot.h"

#include "base/turn.h"
#include "base/xalloc.h"
#include "bolt/sha256.h"
#include "engine/local/shard.h"
#include "engine/local/snapshot_rows.h"

#include <stdlib.h>

/* Some milliseconds under one pin: memory that writers replace meanwhile waits no longer. */
enum { CHANGES_PER_STEP = 8192 };
/* A compaction while it is measured begins it anew. After so many it keeps its pin. */
enum { RESTARTS_MAX = 3, GATHERINGS_MAX = 8 };

_Static_assert((int)ENGINE_SNAPSHOT_DIGEST_BYTES == (int)SHA256_BYTES, "of the same kind");

struct piece {
    uint8_t *bytes; /* owned */
    size_t len;
};

/* One snapshot. With the keeper while it gathers, then the snapshotter's until it is closed. */
struct local_snapshot {
    struct mailbox_node in_mailbox;
    struct list in_all, in_measuring;
    struct engine_snapshot *asker; /* while an operation is under way, and not after its answer */
    bool closes;
    struct snapshot_rows rows;
    struct store_snapshot *store; /* owned; NULL after a failure */
    unsigned gatherings;
    uint64_t pinned;               /* 0: nothing */
    const struct store_view *view; /* while it is */
    enum status status;            /* what every further read comes to */
    struct sha256 *sum;
    uint64_t left;          /* bytes not made yet */
    bool has_ahead;         /* pieces[1] is made */
    struct piece pieces[2]; /* handed out, and made ahead of being asked for */
};

/* -- Life -- */

static struct local_snapshot *snapshot_new(struct engine_snapshot *asker)
{
    struct local_snapshot *s = xcalloc(1, sizeof(*s));
    s->asker = asker;
    list_init(&s->in_all);
    list_init(&s->in_measuring);
    snapshot_rows_init(&s->rows);
    return s;
}

/* Lets go of everything but the memory that was handed out. */
static void snapshot_drop(struct local_snapshot *s)
{
    store_snapshot_free(TAKE(s->store));
    snapshot_rows_fini(&s->rows);
    snapshot_rows_init(&s->rows);
}

static void snapshot_free(struct local_snapshot *s)
{
    list_remove(&s->in_all);
    list_remove(&s->in_measuring);
    store_snapshot_free(s->store);
    snapshot_rows_fini(&s->rows);
    sha256_free(s->sum);
    free(s->pieces[0].bytes);
    free(s->pieces[1].bytes);
    free(s);
}

static void answer(struct local_snapshot *s, enum status status)
{
    struct engine_op *op = &TAKE(s->asker)->op;
    op->status = status;
    local_answer(op); /* from here on it may be gone */
}

/* The segments it has held may be removed now. */
static void wake_keeper(struct local_snapshotter *snapshotter)
{
    waker_wake(&snapshotter->engine->keeper.waker);
}

/* -- The keeper's part -- */

static enum status gather(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    struct engine_local *engine = snapshotter->engine;
    struct keeper_base base;
    TRY(keeper_base_take(engine->keeper.keeper, snapshot_rows_take, &s->rows, &base));
    snapshot_rows_finish(&s->rows, &(struct snapshot_origin){
                                       .about = s->asker->about,
                                       .member_id = engine->options.member_id,
                                       .term = store_term(engine->store),
                                       .index = base.log_index,
                                   });
    s->store = store_snapshot_new(base.hold, base.revision, &s->rows.source);
    s->asker->op.revision = base.revision;
    return ST_OK;
}

void local_snapshot_gather(struct local_snapshotter *snapshotter, struct engine_op *op)
{
    struct engine_snapshot *asker = CONTAINER_OF(op, struct engine_snapshot, op);
    struct local_snapshot *s = asker->state;
    enum status status = atomic_load(&asker->given_up) ? ST_CANCELED : ST_OK;
    if (!s) {
        snapshotter->count -= atomic_exchange(&snapshotter->ended, 0);
        if (status == ST_OK && snapshotter->count >= ENGINE_SNAPSHOTS_MAX)
            status = ST_REQUEST_TOO_MANY_REQUESTS;
        if (status != ST_OK) {
            op->status = status;
            local_answer(op);
            return;
        }
        snapshotter->count++;
        asker->state = s = snapshot_new(asker);
    }
    /* A failure is told there too: who has come so far ends in one place. */
    s->status = status == ST_OK ? gather(snapshotter, s) : status;
    mailbox_post(&snapshotter->requests, &s->in_mailbox);
}

void local_snapshots_shed(struct local_snapshotter *snapshotter)
{
    atomic_store(&snapshotter->sheds, true);
    waker_wake(&snapshotter->waker);
}

/* -- Measuring -- */

static void unpin(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    if (s->pinned)
        epoch_unpin(snapshotter->slot, s->pinned);
    s->pinned = 0;
}

static enum status measure_step(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    struct store *store = snapshotter->engine->store;
    if (s->status != ST_OK)
        return s->status;
    if (atomic_load(&s->asker->given_up))
        return ST_CANCELED;
    if (!s->pinned) {
        s->pinned = epoch_pin(snapshotter->slot);
        s->view = store_view(store);
    }
    enum status status =
        store_snapshot_measure(s->store, s->view, store_log(store), CHANGES_PER_STEP);
    if (status != ST_AGAIN || store_snapshot_restarts(s->store) < RESTARTS_MAX)
        unpin(snapshotter, s);
    return status;
}

/* The keeper is asked again: what was gathered is older than what there is. */
static void gather_again(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    snapshot_drop(s);
    list_remove(&s->in_all);
    mailbox_post(&snapshotter->engine->keeper.requests, &s->asker->op.in_mailbox);
}

static void fail(struct local_snapshotter *snapshotter, struct local_snapshot *s,
                 enum status status)
{
    s->asker->state = NULL;
    answer(s, status);
    snapshot_free(s);
    atomic_fetch_add(&snapshotter->ended, 1);
    wake_keeper(snapshotter);
}

static void measured(struct local_snapshot *s)
{
    s->sum = sha256_new();
    s->left = s->asker->bytes = store_snapshot_bytes(s->store);
    for (size_t i = 0; i < COUNT_OF(s->pieces); i++)
        s->pieces[i].bytes = xmalloc(ENGINE_SNAPSHOT_PIECE_BYTES);
    answer(s, ST_OK);
}

static void measure(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    enum status status = measure_step(snapshotter, s);
    if (status == ST_AGAIN) {
        list_push_back(&snapshotter->measuring, &s->in_measuring);
        return;
    }
    if (status == ST_COMPACTED && ++s->gatherings < GATHERINGS_MAX)
        gather_again(snapshotter, s);
    else if (status != ST_OK)
        fail(snapshotter, s, status);
    else
        measured(s);
}

/* -- Reading -- */

static void make_ahead(struct local_snapshot *s)
{
    struct piece *piece = &s->pieces[1];
    if (s->status != ST_OK || s->has_ahead || s->left == 0)
        return;
    size_t room = size_min(s->left, ENGINE_SNAPSHOT_PIECE_BYTES);
    s->status = store_snapshot_fill(s->store, piece->bytes, room, &piece->len);
    if (s->status != ST_OK)
        return;
    assert(piece->len == room); /* the two passes agree */
    sha256_add(s->sum, slice_of(piece->bytes, room));
    s->left -= room;
    s->has_ahead = true;
}

static void hand_out(struct local_snapshot *s)
{
    struct piece handed = s->pieces[1];
    s->pieces[1] = s->pieces[0];
    s->pieces[0] = handed;
    s->has_ahead = false;
    s->asker->piece = slice_of(handed.bytes, handed.len);
    if (s->left == 0)
        sha256_finish(s->sum, s->asker->digest);
}

static void read_on(struct local_snapshot *s)
{
    assert(s->has_ahead || s->left || s->status != ST_OK);
    make_ahead(s);
    if (s->has_ahead)
        hand_out(s);
    answer(s, s->status);
    make_ahead(s);
}

/* -- The thread -- */

static void shed(struct local_snapshotter *snapshotter)
{
    struct local_snapshot *s;
    LIST_FOREACH (s, &snapshotter->all, in_all) {
        unpin(snapshotter, s);
        snapshot_drop(s);
        s->has_ahead = false;
        s->status = ST_DISK_FULL;
    }
    wake_keeper(snapshotter);
}

static void receive(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    if (s->closes) {
        snapshot_free(s);
        atomic_fetch_add(&snapshotter->ended, 1);
        wake_keeper(snapshotter);
    } else if (s->sum) {
        read_on(s);
    } else {
        list_push_back(&snapshotter->all, &s->in_all);
        list_push_back(&snapshotter->measuring, &s->in_measuring);
    }
}

static void work(struct local_snapshotter *snapshotter)
{
    struct mailbox_node *node = mailbox_take(&snapshotter->requests), *next;
    turn_phase("making pieces of snapshots");
    for (; node; node = next) {
        next = node->next;
        receive(snapshotter, CONTAINER_OF(node, struct local_snapshot, in_mailbox));
    }
    if (atomic_exchange(&snapshotter->sheds, false))
        shed(snapshotter);
    struct list *first = list_pop_front(&snapshotter->measuring);
    turn_phase("measuring a snapshot");
    if (first)
        measure(snapshotter, LIST_ENTRY(first, struct local_snapshot, in_measuring));
}

static void *snapshotter_main(void *arg)
{
    struct local_snapshotter *snapshotter = arg;
    snapshotter->slot = epoch_slot_add(store_epoch(snapshotter->engine->store));
    while (!atomic_load_explicit(&snapshotter->stopping, memory_order_acquire)) {
        turn_begin(snapshotter->turn, clock_mono_ns(clock_system()));
        work(snapshotter);
        turn_end(snapshotter->turn, clock_mono_ns(clock_system()));
        if (list_empty(&snapshotter->measuring) && mailbox_empty(&snapshotter->requests))
            mailbox_wait(&snapshotter->requests, CLOCK_NEVER);
    }
    work(snapshotter);
    assert(list_empty(&snapshotter->all)); /* whoever asked has closed */
    return NULL;
}

void local_snapshot_post(struct engine_snapshot *asker, bool closes)
{
    struct local_shard *shard = CONTAINER_OF(asker->op.shard, struct local_shard, shard);
    struct local_snapshot *s = asker->state;
    s->asker = closes ? NULL : asker;
    s->closes = closes;
    mailbox_post(&shard->engine->snapshotter.requests, &s->in_mailbox);
}

void local_snapshotter_init(struct local_snapshotter *snapshotter, struct engine_local *engine)
{
    snapshotter->engine = engine;
    snapshotter->turn = local_turn(engine, "snapshot");
    list_init(&snapshotter->all);
    list_init(&snapshotter->measuring);
    waker_init_thread(&snapshotter->waker);
    mailbox_init(&snapshotter->requests, &snapshotter->waker);
}

void local_snapshotter_start(struct local_snapshotter *snapshotter)
{
    int error = pthread_create(&snapshotter->thread, NULL, snapshotter_main, snapshotter);
    if (error)
        local_fatal(snapshotter->engine, "no thread for snapshots", status_from_errno(error));
    pthread_setname_np(snapshotter->thread, "vigil-snapshot");
}

void local_snapshotter_stop(struct local_snapshotter *snapshotter)
{
    atomic_store_explicit(&snapshotter->stopping, true, memory_order_release);
    waker_wake(&snapshotter->waker);
    pthread_join(snapshotter->thread, NULL);
}

void local_snapshotter_fini(struct local_snapshotter *snapshotter)
{
    waker_fini(&snapshotter->waker);
}
