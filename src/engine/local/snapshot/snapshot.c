#include "engine/local/snapshot/snapshot.h"

#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "engine/local/snapshot/snapshot_rows.h"
#include "net/sha256.h"
#include "store/mvcc/version.h"
#include "store/upkeep.h"

#include <stdlib.h>

/* A few milliseconds with one pin; memory that the writer replaces meanwhile cannot be freed. */
enum { CHANGES_PER_STEP = 8192 };
/* A compaction during measuring restarts it. After RESTARTS_MAX it keeps its pin. */
enum { RESTARTS_MAX = 3, COLLECTIONS_MAX = 8 };

_Static_assert((int)ENGINE_SNAPSHOT_DIGEST_BYTES == (int)SHA256_BYTES, "both are SHA-256");

struct snapshot_piece {
    uint8_t *bytes; /* owned */
    size_t len;
};

/*
 *     collecting ──► measuring ──► readable ──► over
 *          ▲            │ └─────── failed ───────▲
 *          └─ compacted ┘
 *
 *     collecting   the keeper collects rows and holds segments
 *     measuring    the snapshotter computes the length, in steps
 *     readable     the start was answered; each read returns a piece
 *     over         closed, or the start has failed
 */
enum snapshot_state {
    SNAPSHOT_COLLECTING,
    SNAPSHOT_MEASURING,
    SNAPSHOT_READABLE,
    SNAPSHOT_OVER,
};

#define TO(state) (1u << SNAPSHOT_##state)

/* Drawn above. */
static const unsigned snapshot_moves[] = {
    [SNAPSHOT_COLLECTING] = TO(MEASURING),
    [SNAPSHOT_MEASURING] = TO(COLLECTING) | TO(READABLE) | TO(OVER),
    [SNAPSHOT_READABLE] = TO(OVER),
    [SNAPSHOT_OVER] = 0,
};

/* One snapshot. The keeper owns it while it is collecting, otherwise the snapshotter. */
struct local_snapshot {
    enum snapshot_state state; /* changed by the snapshotter */
    struct mailbox_node in_mailbox;
    struct list in_all, in_measuring;
    struct engine_snapshot *asker; /* while an operation is in progress; else NULL */
    bool closes;
    struct snapshot_rows rows;
    struct store_snapshot *store; /* owned; NULL after a failure */
    unsigned collections;
    uint64_t pinned;                 /* 0: not pinned */
    const struct store_view *view;   /* while pinned */
    enum status status;              /* the result of every further read */
    struct sha256 *sum;              /* owned, as are the pieces; NULL before it is readable */
    uint64_t left;                   /* bytes not made yet */
    bool has_next;                   /* pieces[1] is ready */
    struct snapshot_piece pieces[2]; /* the piece the caller has, and the next one */
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

static void snapshot_move(struct local_snapshot *s, enum snapshot_state next)
{
    assert(snapshot_moves[s->state] & (1u << next));
    s->state = next;
}

/* Frees everything but the piece that the caller has. */
static void snapshot_drop(struct local_snapshot *s)
{
    store_snapshot_free(TAKE(s->store));
    snapshot_rows_fini(&s->rows);
    snapshot_rows_init(&s->rows);
}

static void snapshot_free(struct local_snapshot *s)
{
    snapshot_move(s, SNAPSHOT_OVER);
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
    local_answer(op); /* the operation may be freed from here on */
}

/* Segments that a snapshot held may be removed now. */
static void wake_keeper(struct local_snapshotter *snapshotter)
{
    waker_wake(&snapshotter->shared->keeper.waker);
}

/* -- On the keeper's thread -- */

static enum status collect(const struct local_shared *shared, struct upkeep *upkeep,
                           struct local_snapshot *s)
{
    struct upkeep_base base;
    TRY(upkeep_base_take(upkeep, snapshot_rows_take, &s->rows, &base));
    snapshot_rows_finish(&s->rows, &(struct snapshot_origin){
                                       .about = s->asker->about,
                                       .member_id = shared->options.member_id,
                                       .term = store_term(shared->store),
                                       .index = base.log_index,
                                   });
    s->store = store_snapshot_new(base.hold, base.revision, &s->rows.source);
    s->asker->op.revision = base.revision;
    return ST_OK;
}

void local_snapshot_collect(struct local_shared *shared, struct upkeep *upkeep,
                            struct engine_op *op)
{
    struct local_snapshot_inbox *inbox = &shared->snapshots;
    struct engine_snapshot *asker = CONTAINER_OF(op, struct engine_snapshot, op);
    struct local_snapshot *s = asker->state;
    enum status status = atomic_load(&op->given_up) ? ST_CANCELED : ST_OK;
    if (!s) {
        inbox->count -= atomic_exchange(&inbox->ended, 0);
        if (status == ST_OK && inbox->count >= ENGINE_SNAPSHOTS_MAX)
            status = ST_REQUEST_TOO_MANY_REQUESTS;
        if (status != ST_OK) {
            op->status = status;
            local_answer(op);
            return;
        }
        inbox->count++;
        asker->state = s = snapshot_new(asker);
    }
    /* The snapshotter also answers failures, so that a snapshot that exists ends in one place. */
    s->status = status == ST_OK ? collect(shared, upkeep, s) : status;
    mailbox_post(&inbox->requests, &s->in_mailbox);
}

void local_snapshots_end_all(struct local_snapshot_inbox *inbox)
{
    atomic_store(&inbox->disk_full, true);
    waker_wake(&inbox->waker);
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
    struct store *store = snapshotter->shared->store;
    if (s->status != ST_OK)
        return s->status;
    if (atomic_load(&s->asker->op.given_up))
        return ST_CANCELED;
    if (!s->pinned) {
        s->pinned = epoch_pin(snapshotter->slot);
        s->view = store_view(store);
    }
    enum status status =
        store_snapshot_measure(s->store, s->view, store_log(store), CHANGES_PER_STEP);
    /* After so many restarts the view stays pinned, so that no other compaction restarts it again.
     */
    if (status != ST_AGAIN || store_snapshot_restarts(s->store) < RESTARTS_MAX)
        unpin(snapshotter, s);
    return status;
}

/* The collected rows are older than the newest compaction: the keeper collects them again. */
static void collect_again(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    snapshot_move(s, SNAPSHOT_COLLECTING);
    snapshot_drop(s);
    list_remove(&s->in_all);
    mailbox_post(&snapshotter->shared->keeper.requests, &s->asker->op.in_mailbox);
}

/* A snapshot has everything: its error names the key that must be given up. */
static void describe_damage(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    struct store *store = snapshotter->shared->store;
    log_loc at = store_snapshot_damage(s->store);
    uint64_t pinned = epoch_pin(snapshotter->slot);
    log_note_damage(store_log(store), at);
    (void)version_find_damaged(&store_view(store)->root, store_log(store), at);
    epoch_unpin(snapshotter->slot, pinned);
    local_describe_damage(&s->asker->op);
}

static void fail(struct local_snapshotter *snapshotter, struct local_snapshot *s,
                 enum status status)
{
    if (status == ST_DAMAGED && s->store)
        describe_damage(snapshotter, s);
    s->asker->state = NULL;
    answer(s, status);
    snapshot_free(s);
    atomic_fetch_add(&snapshotter->inbox->ended, 1);
    wake_keeper(snapshotter);
}

static void measured(struct local_snapshot *s)
{
    snapshot_move(s, SNAPSHOT_READABLE);
    s->sum = xalloc_check(sha256_new(), SHA256_BYTES);
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
    if (status == ST_COMPACTED && ++s->collections < COLLECTIONS_MAX)
        collect_again(snapshotter, s);
    else if (status != ST_OK)
        fail(snapshotter, s, status);
    else
        measured(s);
}

/* -- Reading -- */

static void make_next(struct local_snapshot *s)
{
    struct snapshot_piece *piece = &s->pieces[1];
    if (s->status != ST_OK || s->has_next || s->left == 0)
        return;
    size_t room = size_min(s->left, ENGINE_SNAPSHOT_PIECE_BYTES);
    s->status = store_snapshot_fill(s->store, piece->bytes, room, &piece->len);
    if (s->status != ST_OK)
        return;
    assert(piece->len == room); /* measuring found the same length */
    sha256_add(s->sum, slice_of(piece->bytes, room));
    s->left -= room;
    s->has_next = true;
}

static void hand_out(struct local_snapshot *s)
{
    struct snapshot_piece handed = s->pieces[1];
    s->pieces[1] = s->pieces[0];
    s->pieces[0] = handed;
    s->has_next = false;
    s->asker->piece = slice_of(handed.bytes, handed.len);
    if (s->left == 0)
        s->status = sha256_finish(s->sum, s->asker->digest);
}

static void read_on(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    assert(s->has_next || s->left || s->status != ST_OK);
    make_next(s);
    if (s->has_next)
        hand_out(s);
    else if (s->status == ST_DAMAGED)
        describe_damage(snapshotter, s);
    answer(s, s->status);
    make_next(s);
}

/* -- The thread -- */

static void end_all(struct local_snapshotter *snapshotter)
{
    struct local_snapshot *s;
    LIST_FOREACH (s, &snapshotter->all, in_all) {
        unpin(snapshotter, s);
        snapshot_drop(s);
        s->has_next = false;
        s->status = ST_DISK_FULL;
    }
    wake_keeper(snapshotter);
}

static void receive(struct local_snapshotter *snapshotter, struct local_snapshot *s)
{
    if (s->closes) {
        snapshot_free(s);
        atomic_fetch_add(&snapshotter->inbox->ended, 1);
        wake_keeper(snapshotter);
    } else if (s->state == SNAPSHOT_READABLE) {
        read_on(snapshotter, s);
    } else {
        snapshot_move(s, SNAPSHOT_MEASURING);
        list_push_back(&snapshotter->all, &s->in_all);
        list_push_back(&snapshotter->measuring, &s->in_measuring);
    }
}

static void work(struct local_snapshotter *snapshotter)
{
    struct mailbox_node *node = mailbox_take(&snapshotter->inbox->requests), *next;
    turn_phase("making pieces of snapshots");
    for (; node; node = next) {
        next = node->next;
        receive(snapshotter, CONTAINER_OF(node, struct local_snapshot, in_mailbox));
    }
    if (atomic_exchange(&snapshotter->inbox->disk_full, false))
        end_all(snapshotter);
    struct list *first = list_pop_front(&snapshotter->measuring);
    turn_phase("measuring a snapshot");
    if (first)
        measure(snapshotter, LIST_ENTRY(first, struct local_snapshot, in_measuring));
}

static void *snapshotter_main(void *arg)
{
    struct local_snapshotter *snapshotter = arg;
    snapshotter->slot = epoch_slot_add(store_epoch(snapshotter->shared->store));
    while (!atomic_load_explicit(&snapshotter->stopping, memory_order_acquire)) {
        turn_begin(snapshotter->turn, clock_mono_ns(clock_system()));
        work(snapshotter);
        turn_end(snapshotter->turn, clock_mono_ns(clock_system()));
        if (list_empty(&snapshotter->measuring) && mailbox_empty(&snapshotter->inbox->requests))
            mailbox_wait(&snapshotter->inbox->requests, CLOCK_NEVER);
    }
    work(snapshotter);
    assert(list_empty(&snapshotter->all)); /* every caller has closed its snapshot */
    return NULL;
}

void local_snapshot_post(struct local_snapshot_inbox *inbox, struct engine_snapshot *asker,
                         bool closes)
{
    struct local_snapshot *s = asker->state;
    s->asker = closes ? NULL : asker;
    s->closes = closes;
    mailbox_post(&inbox->requests, &s->in_mailbox);
}

void local_snapshotter_init(struct local_snapshotter *snapshotter, struct local_shared *shared)
{
    snapshotter->shared = shared;
    snapshotter->inbox = &shared->snapshots;
    snapshotter->turn = local_turn(shared, "snapshot");
    list_init(&snapshotter->all);
    list_init(&snapshotter->measuring);
    waker_init_thread(&snapshotter->inbox->waker);
    mailbox_init(&snapshotter->inbox->requests, &snapshotter->inbox->waker);
}

void local_snapshotter_start(struct local_snapshotter *snapshotter)
{
    int error = pthread_create(&snapshotter->thread, NULL, snapshotter_main, snapshotter);
    if (error)
        local_fatal(&snapshotter->shared->report, "cannot create the thread of the snapshotter",
                    status_from_errno(error));
    pthread_setname_np(snapshotter->thread, "vigil-snapshot");
}

void local_snapshotter_stop(struct local_snapshotter *snapshotter)
{
    atomic_store_explicit(&snapshotter->stopping, true, memory_order_release);
    waker_wake(&snapshotter->inbox->waker);
    pthread_join(snapshotter->thread, NULL);
}

void local_snapshotter_fini(struct local_snapshotter *snapshotter)
{
    waker_fini(&snapshotter->inbox->waker);
}
