/*
 * A range of a client or of the Kubernetes API.
 *
 *     start ──► admitting ──► probing ──► waiting ──► admitting ──► given to the mirror
 *       │        (clients)  (linearizable)  │ ▲        (again)         │
 *       │                                   │ │ too long an answer     │ it has dropped the revision
 *       │                                   ▼ │                        │
 *       └──────────────► in line ──────► forwarded ──► scanning ──► ready ──► closed
 *                           ▲                                          │
 *                           └──────────────────────────────────────────┘
 *
 * Each step is left out when it is not needed: a serializable range of a known caller is given to
 * the mirror at once. A read whose permission has become too old while it waited is admitted again,
 * because the mirror shows it what is new by then. Every step can fail, which is the end; and the
 * caller can give up, after which the range ends as cancelled in the same turn.
 */
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "engine/local/mirror/mirror_store.h"
#include "engine/local/state/revision_notice.h"
#include "io/loop.h"
#include "mirror/answer/forwarded_range.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/follower.h"
#include "mirror/link/kept_answers.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"
#include "mirror/shared_calls/grants.h"
#include "mirror/shared_calls/probe.h"

#include <stdlib.h>

enum { NUMBER_SERIALIZABLE = 7 }; /* field of a RangeRequest */

enum mirror_read_state {
    READ_ADMITTING,
    READ_PROBING,
    READ_WAITING, /* for the mirror */
    READ_LINED,   /* until fewer are forwarded */
    READ_FORWARDED,
    READ_SCANNING,
    READ_READY,
    READ_ENDING, /* given up: done is called at the end of the turn */
    READ_OVER,
};

/* In the operation's arena, as long as the range does not belong to the mirror. */
struct mirror_read {
    enum mirror_read_state state;
    struct mirror_shard *shard;
    struct engine_range *range;
    const struct pb_range_request *request; /* the operation's */
    int64_t seen;     /* clients of this server may have seen this revision when the read began */
    int64_t needed;   /* the revision that the mirror must have */
    int64_t until_ns; /* while waiting, in line, or forwarded */
    bool only_forwarded;  /* the mirror cannot answer it */
    bool only_admitted;   /* the mirror has what it needs: only its permission was too old */
    bool is_ahead;        /* it needs a revision that was not seen here */
    bool was_too_long;    /* the cluster's answer was: only the mirror can answer it */
    bool as_linearizable; /* while forwarded */
    bool is_late;         /* forwarded because the mirror was late; counted in shard_reads.late */
    bool is_counted;      /* forwarded for another reason; counted in shard_reads.forwarded */
    struct grants_waiter grant;
    struct probe_waiter probe;
    struct list in_reads; /* links shard_reads.waiting, .line, .scanning or .ending */
    struct upstream_call *call;
    struct forwarded_range answer;
    struct kept_answer kept; /* holds the answer */
    enum status taken;       /* result of the answer; ST_AGAIN: none has come */
};

/* The reads of a shard. */
struct shard_reads {
    struct mirror_shard *shard;
    struct list waiting; /* the first to be forwarded first */
    struct list line;    /* to be forwarded; the oldest first */
    size_t lined;        /* its length */
    struct list scanning;
    struct list ending;
    struct timer due;     /* when the first that waits is due */
    struct deferred work; /* scans, and ends reads that were given up */
    int64_t looked_at;    /* the mirror's revision when the waiting reads were last examined */
    size_t late;          /* reads that are forwarded because the mirror was late */
    size_t forwarded;     /* for other reasons */
    struct revision_notice *notice; /* the engine's */
    struct mailbox mailbox;         /* receives the notice */
};

/* -- States -- */

#define TO(state) (1u << READ_##state)

static const uint16_t moves[] = {
    [READ_ADMITTING] =
        TO(PROBING) | TO(WAITING) | TO(LINED) | TO(FORWARDED) | TO(ENDING) | TO(OVER),
    [READ_PROBING] =
        TO(ADMITTING) | TO(WAITING) | TO(LINED) | TO(FORWARDED) | TO(ENDING) | TO(OVER),
    [READ_WAITING] = TO(ADMITTING) | TO(LINED) | TO(FORWARDED) | TO(ENDING) | TO(OVER),
    [READ_LINED] = TO(FORWARDED) | TO(ENDING) | TO(OVER),
    [READ_FORWARDED] = TO(ADMITTING) | TO(WAITING) | TO(SCANNING) | TO(ENDING) | TO(OVER),
    [READ_SCANNING] = TO(LINED) | TO(FORWARDED) | TO(READY) | TO(ENDING) | TO(OVER),
    [READ_READY] = TO(OVER),
    [READ_ENDING] = TO(OVER),
    [READ_OVER] = 0,
};

static void read_check(const struct mirror_read *read)
{
    assert((read->state == READ_FORWARDED) == (read->call != NULL));
    bool in_list = read->state == READ_WAITING || read->state == READ_LINED ||
                   read->state == READ_SCANNING || read->state == READ_ENDING;
    assert(in_list == !list_empty(&read->in_reads));
    assert(read->state >= READ_SCANNING || read->answer.message.len == 0 ||
           read->state == READ_FORWARDED);
}

static void move(struct mirror_read *read, enum mirror_read_state next)
{
    assert(moves[read->state] & (1u << next));
    read->shard->reads->lined -= read->state == READ_LINED;
    read->shard->reads->lined += next == READ_LINED;
    read->state = next;
}

/* -- Where to -- */

static struct mirror_state *state_of(const struct mirror_read *read)
{
    return &read->shard->shared->state;
}

static bool is_compacted(struct mirror_shared *shared, int64_t revision)
{
    return revision > 0 && revision < atomic_load(&shared->state.compacted);
}

/* The mirror has compacted the revision, or is about to. The cluster may still have it: of one that
 * may have been restored, the mirror keeps the state and not the history. */
static bool mirror_lacks(struct mirror_shared *shared, int64_t revision)
{
    return revision > 0 &&
           (revision < local_mirror_compact_revision(shared->mirror->engine) ||
            is_compacted(shared, revision) || revision < atomic_load(&shared->state.oldest) - 1);
}

static struct slice sent_of(const struct mirror_read *read)
{
    return read->range->op.principal.is_server ? SLICE_EMPTY : read->range->sent;
}
/* The client wants something that this version does not know of. */
static bool has_unknown_fields(const struct mirror_read *read)
{
    return sent_of(read).len > pb_size(&pb_range_request_table, read->request);
}

/* Decides whether the mirror can answer at all. ST_NOT_SYNCED: it could, later. */
static enum status choose(struct mirror_read *read)
{
    struct mirror_shared *shared = read->shard->shared;
    const struct pb_range_request *r = read->request;
    bool is_ours = read->range->op.principal.is_server;
    bool forwards = shared->options.reads == MIRROR_READS_FORWARD && !r->serializable && !is_ours;
    read->only_forwarded =
        forwards || has_unknown_fields(read) ||
        !mirror_covers(&shared->options, r->key, r->range_end) ||
        (!is_ours && !grants_can_decide(read->shard->grants, r->key, r->range_end));
    if (!read->only_forwarded && !atomic_load(&shared->state.synced))
        return ST_NOT_SYNCED;
    read->only_forwarded = read->only_forwarded || mirror_lacks(shared, r->revision) ||
                           mirror_state_lag(&shared->state) > shared->options.lag_max_revisions;
    return ST_OK;
}

/* -- Ends -- */

static void release_answer(struct mirror_read *read)
{
    forwarded_range_fini(&read->answer);
    kept_answer_release(&read->kept);
}

/* The range ends without an answer; its status is set. */
static void finish(struct mirror_read *read)
{
    struct engine_range *range = read->range;
    move(read, READ_OVER);
    release_answer(read);
    read_check(read);
    read->shard->in_progress--;
    range->state = NULL;
    range->op.done(&range->op);
}

static void fail(struct mirror_read *read, enum status status)
{
    read->range->op.status = status;
    finish(read);
}
static void fail_text(struct mirror_read *read, enum grpc_code code, struct slice text)
{
    cluster_fail(&read->range->op, code, text);
    finish(read);
}

static void forward(struct mirror_read *read, bool as_linearizable);

static void answer_is_too_long(struct mirror_read *read);

/*
 * From now on the range is the mirror's. Only the mirror knows, by the state that it reads, whether
 * it still has the revision; if it has dropped it, the cluster answers. What the cluster is known
 * to have compacted is its to refuse.
 */
static void give_to_mirror(struct mirror_read *read)
{
    struct mirror_shard *shard = read->shard;
    assert(list_empty(&read->in_reads));
    shard->in_progress--; /* the read may be over before the mirror returns */
    if (!is_compacted(shard->shared, read->request->revision) &&
        local_mirror_range_start(shard->store_shard, read->range)) {
        atomic_fetch_add_explicit(&shard->shared->state.reads_mirrored, 1, memory_order_relaxed);
        return;
    }
    shard->in_progress++;
    read->range->op.shard = &shard->base;
    read->range->state = read;
    if (read->was_too_long)
        answer_is_too_long(read);
    else
        forward(read, false);
}

/* The mirror has what the read needs. */
static void mirror_is_reached(struct mirror_read *read)
{
    if (read->range->op.principal.is_server || read->state == READ_ADMITTING ||
        grants_is_current(read->shard->grants, &read->grant)) {
        give_to_mirror(read);
        return;
    }
    move(read, READ_ADMITTING);
    read->only_admitted = true;
    grants_ask(read->shard->grants, &read->grant);
}

/* -- Forwarding -- */

static void wait_for_mirror(struct mirror_read *read, int64_t wait_ns);

static void answer_is_ready(struct mirror_read *read)
{
    struct engine_range *range = read->range;
    const struct forwarded_range *answer = &read->answer;
    move(read, READ_READY);
    read_check(read);
    mirror_state_wrote(state_of(read), answer->revision);
    range->op.status = ST_OK;
    range->op.revision = answer->revision;
    range->count = answer->count;
    range->more = answer->more;
    range->kvs = answer->kvs;
    range->kvs_bytes = answer->kvs_bytes;
    read->shard->in_progress--;
    range->op.done(&range->op);
}

/* A part of the answer is examined. */
static void scan(struct mirror_read *read)
{
    struct shard_reads *reads = read->shard->reads;
    enum status status = forwarded_range_scan(&read->answer);
    if (status == ST_AGAIN) {
        list_push_back(&reads->scanning, &read->in_reads);
        loop_defer(read->shard->loop, &reads->work);
    } else if (status != ST_OK) {
        fail_text(read, GRPC_INTERNAL, SLICE_LITERAL("vigil: the cluster's answer is malformed"));
    } else if (read->answer.revision < read->seen && !read->as_linearizable) {
        /* The member that has answered is behind: the client would go back in time. */
        release_answer(read);
        forward(read, true);
    } else {
        answer_is_ready(read);
    }
}

static void on_message(struct upstream_call *call, struct slice message)
{
    struct mirror_read *read = upstream_call_user(call);
    if (read->taken != ST_AGAIN) {
        read->taken = ST_MALFORMED; /* more than one */
        return;
    }
    read->taken = forwarded_range_take(&read->answer, read->range->op.arena->account, message,
                                       read->request->key, read->request->range_end);
    upstream_keep_answer(call, &read->kept);
}

/* The client does not read its answer, for whose room others wait. */
static void on_overdue(struct kept_answer *kept)
{
    struct mirror_read *read = CONTAINER_OF(kept, struct mirror_read, kept);
    if (read->state != READ_READY)
        return;
    read->range->op.status = ST_REQUEST_TOO_MANY_REQUESTS;
    release_answer(read);
}

/* The mirror takes no memory for an answer. It will have the revision soon, if it is not known to
 * be broken. */
static void answer_is_too_long(struct mirror_read *read)
{
    if (read->only_forwarded || read->needed == 0 || read->was_too_long) {
        fail_text(read, GRPC_RESOURCE_EXHAUSTED,
                  SLICE_LITERAL("vigil: the cluster's answer is too long to be forwarded; use a "
                                "limit"));
        return;
    }
    read->was_too_long = true;
    wait_for_mirror(read, MIRROR_PATIENCE_NS);
}

/* Another read may be forwarded. */
static void release_place(struct mirror_read *read)
{
    if (!read->is_late && !read->is_counted)
        return;
    read->shard->reads->late -= read->is_late;
    read->shard->reads->forwarded -= read->is_counted;
    read->is_late = read->is_counted = false;
    loop_defer(read->shard->loop, &read->shard->reads->work);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct mirror_read *read = upstream_call_user(call);
    read->call = NULL;
    release_place(read);
    if (code == GRPC_DEADLINE_EXCEEDED) {
        fail(read, ST_TIMEOUT); /* the deadline was ours, not the caller's */
    } else if (upstream_call_is_too_long(call)) {
        answer_is_too_long(read);
    } else if (code != GRPC_OK) {
        fail_text(read, code, text);
    } else if (read->taken == ST_NOMEM) {
        fail(read, ST_NOMEM);
    } else if (read->taken != ST_OK) {
        fail_text(read, GRPC_INTERNAL, SLICE_LITERAL("vigil: the cluster's answer is malformed"));
    } else {
        move(read, READ_SCANNING);
        scan(read);
    }
}

/* As the client has sent it, with everything that is not known here. Of a field that comes more
 * than once, the last one counts. */
static enum status append_request(const struct mirror_read *read, struct buf *message)
{
    static const uint8_t linearizable[] = {PB_TAG(NUMBER_SERIALIZABLE, PB_WIRE_VARINT), 0};
    struct slice sent = sent_of(read);
    TRY(sent.len ? buf_append(message, sent)
                 : pb_append(&pb_range_request_table, read->request, message));
    if (!read->request->serializable || !read->as_linearizable)
        return ST_OK;
    return buf_append(message, slice_of(linearizable, sizeof(linearizable)));
}

static enum status send_request(struct mirror_read *read)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    const struct auth_principal *principal = &read->range->op.principal;
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_KV_RANGE_PATH),
        .caller = {.is_self = principal->is_server, .token = principal->token},
        .deadline_ns = read->until_ns,
        .receive_max = MIRROR_ANSWER_BYTES_MAX,
        .keeps = true,
        .reads = true,
    };
    struct buf message = {0};
    TRY(upstream_start(read->shard->upstream, &request, &ops, read, &read->call));
    enum status status = append_request(read, &message);
    if (status == ST_OK)
        status = upstream_send(read->call, buf_slice(&message));
    buf_fini(&message);
    if (status == ST_OK)
        upstream_half_close(read->call);
    else
        upstream_cancel(TAKE(read->call));
    return status;
}

static void forward_now(struct mirror_read *read)
{
    move(read, READ_FORWARDED);
    read->taken = ST_AGAIN;
    read->is_counted = !read->is_late;
    read->shard->reads->forwarded += read->is_counted;
    atomic_fetch_add_explicit(&state_of(read)->reads_forwarded, 1, memory_order_relaxed);
    enum status status = send_request(read);
    if (status == ST_OK)
        return;
    release_place(read);
    fail(read, status == ST_LIMIT ? ST_REQUEST_TOO_MANY_REQUESTS : status);
}

/* Those that are late have a limit of their own. */
static void forward(struct mirror_read *read, bool as_linearizable)
{
    struct shard_reads *reads = read->shard->reads;
    read->as_linearizable = as_linearizable || !read->request->serializable;
    read->until_ns = loop_now_ns(read->shard->loop) + MIRROR_FORWARD_NS;
    if (read->is_late || (reads->forwarded < MIRROR_FORWARDED_MAX && !reads->lined)) {
        forward_now(read);
    } else if (reads->lined == MIRROR_LINED_MAX) {
        fail(read, ST_REQUEST_TOO_MANY_REQUESTS);
    } else {
        move(read, READ_LINED);
        list_push_back(&reads->line, &read->in_reads);
    }
}

static void forward_lined(struct shard_reads *reads)
{
    struct list *link;
    while (reads->forwarded < MIRROR_FORWARDED_MAX && (link = list_pop_front(&reads->line))) {
        struct mirror_read *read = LIST_ENTRY(link, struct mirror_read, in_reads);
        if (read->until_ns > loop_now_ns(reads->shard->loop))
            forward_now(read);
        else
            fail(read, ST_TIMEOUT);
    }
}

/* -- Waiting for the mirror -- */

static void listen(struct shard_reads *reads)
{
    revision_notice_listen(reads->notice, !list_empty(&reads->waiting));
}

static void set_due(struct shard_reads *reads)
{
    struct loop *loop = reads->shard->loop;
    if (list_empty(&reads->waiting) || reads->late >= MIRROR_LATE_MAX) {
        loop_timer_cancel(loop, &reads->due);
        return;
    }
    struct mirror_read *first = LIST_ENTRY(reads->waiting.next, struct mirror_read, in_reads);
    if (!reads->due.set || reads->due.at_ns != first->until_ns)
        loop_timer_set(loop, &reads->due, first->until_ns);
}

/* Most wait equally long, so the place is nearly always the last. */
static void insert_waiting(struct shard_reads *reads, struct mirror_read *read)
{
    struct list *after = reads->waiting.prev;
    while (after != &reads->waiting &&
           LIST_ENTRY(after, struct mirror_read, in_reads)->until_ns > read->until_ns)
        after = after->prev;
    list_insert_before(after->next, &read->in_reads);
}

/* While the cluster is not followed it may have been restored to another history, and the revision
 * says nothing: a linearizable read then waits, and is forwarded when that takes too long. */
static bool mirror_has(const struct mirror_read *read)
{
    return read->needed <= atomic_load(&state_of(read)->mirrored) &&
           (read->request->serializable || atomic_load(&state_of(read)->connected));
}

static void wait_for_mirror(struct mirror_read *read, int64_t wait_ns)
{
    struct mirror_shared *shared = read->shard->shared;
    struct shard_reads *reads = read->shard->reads;
    if (mirror_has(read)) {
        mirror_is_reached(read);
        return;
    }
    move(read, READ_WAITING);
    read->until_ns = loop_now_ns(read->shard->loop) + wait_ns;
    insert_waiting(reads, read);
    set_due(reads);
    if (shared->options.prefix_count)
        follower_request_progress(shared->follower);
    /* What was published before it listened is found in the next turn. */
    listen(reads);
    reads->looked_at = 0;
    loop_defer(read->shard->loop, &reads->work);
}

void mirror_reads_continue(struct mirror_shard *shard)
{
    struct shard_reads *reads = shard->reads;
    struct mirror_read *read, *following;
    struct list ready, *link;
    int64_t mirrored = atomic_load(&shard->shared->state.mirrored);
    if (LIKELY(list_empty(&reads->waiting)) || mirrored == reads->looked_at)
        return;
    reads->looked_at = mirrored;
    list_init(&ready);
    LIST_FOREACH_SAFE (read, following, &reads->waiting, in_reads) {
        if (mirror_has(read)) {
            list_remove(&read->in_reads);
            list_push_back(&ready, &read->in_reads);
        }
    }
    /* They were taken out first: what is called may start reads, and give up others. */
    set_due(reads);
    listen(reads);
    while ((link = list_pop_front(&ready)))
        mirror_is_reached(LIST_ENTRY(link, struct mirror_read, in_reads));
}

/* A read of a revision that may never exist has no place among those that are late: it waits in
 * line with the others that only the cluster can answer. */
static void take_late(struct shard_reads *reads, struct list *late)
{
    int64_t now_ns = loop_now_ns(reads->shard->loop);
    list_init(late);
    while (!list_empty(&reads->waiting) && reads->late < MIRROR_LATE_MAX) {
        struct mirror_read *first = LIST_ENTRY(reads->waiting.next, struct mirror_read, in_reads);
        if (first->until_ns > now_ns)
            break;
        list_remove(&first->in_reads);
        list_push_back(late, &first->in_reads);
        first->is_late = !first->is_ahead;
        reads->late += first->is_late;
    }
    set_due(reads);
    listen(reads);
}

static void forward_late(struct shard_reads *reads)
{
    struct list late, *link;
    if (list_empty(&reads->waiting))
        return;
    take_late(reads, &late);
    while ((link = list_pop_front(&late))) {
        struct mirror_read *read = LIST_ENTRY(link, struct mirror_read, in_reads);
        if (read->was_too_long) {
            release_place(read);
            move(read, READ_FORWARDED); /* from where it came */
            answer_is_too_long(read);
        } else {
            forward(read, !read->is_ahead);
        }
    }
}

static void on_due(struct timer *timer)
{
    struct shard_reads *reads = CONTAINER_OF(timer, struct shard_reads, due);
    mirror_reads_continue(reads->shard);
    forward_late(reads);
}

static void receive_notice(void *owner, struct mailbox_node *node)
{
    (void)node; /* it belongs to the engine; the turn continues the reads */
    struct shard_reads *reads = owner;
    revision_notice_received(reads->notice);
    reads->looked_at = 0;
}

void mirror_reads_notify(struct mirror_shared *shared)
{
    unsigned count = atomic_load(&shared->shard_count);
    for (unsigned i = 0; i < count && i < shared->options.mirror.shards_max; i++)
        revision_notice_send(&shared->notices[i]);
}

/* -- The steps before -- */

/* If Vigil's own user may not read, the client still may. The cluster knows what is compacted. */
static void probe_failed(struct mirror_read *read)
{
    const struct probe_waiter *waiter = &read->probe;
    enum status status = cluster_status_of(waiter->code, waiter->text);
    bool is_ours = status == ST_USER_EMPTY || status == ST_AUTH_OLD_REVISION ||
                   waiter->code == GRPC_PERMISSION_DENIED || waiter->code == GRPC_UNAUTHENTICATED;
    if (waiter->is_unreadable || (is_ours && !read->range->op.principal.is_server))
        forward(read, true);
    else
        fail_text(read, waiter->code, waiter->text);
}

static void probed(struct probe_waiter *waiter)
{
    struct mirror_read *read = CONTAINER_OF(waiter, struct mirror_read, probe);
    if (waiter->code != GRPC_OK) {
        probe_failed(read);
        return;
    }
    read->needed = waiter->revision;
    wait_for_mirror(read, read->shard->shared->options.read_wait_ns);
}

/* A serializable range at a revision that the mirror lacks may exist in the cluster. */
static int64_t needed_by_serializable(struct mirror_read *read)
{
    int64_t revision = read->request->revision;
    int64_t written = atomic_load(&state_of(read)->written);
    read->is_ahead = revision > written && revision > atomic_load(&state_of(read)->heard);
    return revision > written ? revision : written;
}

static void admitted(struct mirror_read *read)
{
    if (read->only_admitted) {
        give_to_mirror(read);
        return;
    }
    if (!read->request->serializable) {
        move(read, READ_PROBING);
        read->probe.done = probed;
        read->probe.at = read->request->revision;
        probe_ask(read->shard->probe, &read->probe);
        return;
    }
    read->needed = needed_by_serializable(read);
    wait_for_mirror(read, read->shard->shared->options.read_wait_ns);
}

static void grant_answered(struct grants_waiter *waiter)
{
    struct mirror_read *read = CONTAINER_OF(waiter, struct mirror_read, grant);
    if (waiter->status == ST_OK)
        admitted(read);
    else
        fail_text(read, waiter->code, waiter->text);
}

static void admit(struct mirror_read *read)
{
    const struct auth_principal *principal = &read->range->op.principal;
    if (principal->is_server) {
        admitted(read);
        return;
    }
    read->grant = (struct grants_waiter){
        .done = grant_answered,
        .token = principal->token,
        .key = read->request->key,
        .range_end = read->request->range_end,
    };
    grants_ask(read->shard->grants, &read->grant);
}

static struct mirror_read *read_new(struct mirror_shard *shard, struct engine_range *range)
{
    struct mirror_read *read = arena_calloc(range->op.arena, 1, sizeof(*read));
    if (!read)
        return NULL;
    struct mirror_state *state = &shard->shared->state;
    *read = (struct mirror_read){
        .shard = shard, .range = range, .request = range->op.request, .kept.overdue = on_overdue};
    list_init(&read->in_reads);
    int64_t mirrored = atomic_load(&state->mirrored), written = atomic_load(&state->written);
    read->seen = mirrored > written ? mirrored : written;
    range->state = read;
    shard->in_progress++;
    return read;
}

void mirror_range_start(struct engine_op *op)
{
    struct engine_range *range = CONTAINER_OF(op, struct engine_range, op);
    struct mirror_read *read = read_new(mirror_shard_of(op->shard), range);
    if (!read) {
        range->state = NULL;
        op->status = ST_NOMEM;
        op->done(op);
        return;
    }
    if (choose(read) == ST_NOT_SYNCED) {
        mirror_fail_unsynced(read->shard->shared, op);
        finish(read);
    } else if (read->only_forwarded) {
        forward(read, false);
    } else {
        admit(read);
    }
}

/* -- Forwarded answers, and giving up -- */

static struct forwarded_range *answer_of(struct engine_range *range)
{
    struct mirror_read *read = range->state;
    assert(read->state == READ_READY);
    return &read->answer;
}

void mirror_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes)
{
    forwarded_range_window(answer_of(range), keys_max, ret_keys, ret_bytes);
}

bool mirror_range_next(struct engine_range *range, struct slice *ret_field)
{
    return forwarded_range_next(answer_of(range), ret_field);
}

size_t mirror_range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    return forwarded_range_fill(answer_of(range), dst, room);
}

void mirror_range_close(struct engine_range *range)
{
    struct mirror_read *read = range->state;
    if (!read)
        return;
    move(read, READ_OVER);
    release_answer(read);
    range->state = NULL;
}

void mirror_give_up(struct engine_op *op)
{
    /* Other operations than ranges were sent to the cluster, and end when it has answered. */
    if (op->kind != ENGINE_RANGE)
        return;
    struct mirror_read *read = CONTAINER_OF(op, struct engine_range, op)->state;
    if (!read || read->state >= READ_READY)
        return;
    struct shard_reads *reads = read->shard->reads;
    grants_cancel(&read->grant);
    probe_cancel(&read->probe);
    if (read->call)
        upstream_cancel(TAKE(read->call));
    release_place(read);
    list_remove(&read->in_reads);
    move(read, READ_ENDING);
    list_push_back(&reads->ending, &read->in_reads);
    set_due(reads);
    loop_defer(read->shard->loop, &reads->work);
}

/* -- The reads of a shard -- */

static void on_work(struct deferred *deferred)
{
    struct shard_reads *reads = CONTAINER_OF(deferred, struct shard_reads, work);
    struct list *link;
    mirror_reads_continue(reads->shard);
    forward_late(reads);
    forward_lined(reads);
    while ((link = list_pop_front(&reads->ending)))
        fail(LIST_ENTRY(link, struct mirror_read, in_reads), ST_CANCELED);
    link = list_pop_front(&reads->scanning); /* one in each turn */
    if (link)
        scan(LIST_ENTRY(link, struct mirror_read, in_reads));
    if (!list_empty(&reads->scanning))
        loop_defer(reads->shard->loop, &reads->work);
}

struct shard_reads *mirror_reads_new(struct mirror_shard *shard)
{
    struct shard_reads *reads = xcalloc(1, sizeof(*reads));
    reads->shard = shard;
    list_init(&reads->waiting);
    list_init(&reads->line);
    list_init(&reads->scanning);
    list_init(&reads->ending);
    reads->due.fn = on_due;
    reads->work.fn = on_work;
    reads->notice = &shard->shared->notices[shard->number];
    loop_attach(shard->loop, &reads->mailbox, receive_notice, reads);
    reads->notice->to = &reads->mailbox;
    return reads;
}

void mirror_reads_free(struct shard_reads *reads)
{
    if (!reads)
        return;
    assert(list_empty(&reads->waiting));
    assert(list_empty(&reads->line) && !reads->lined);
    assert(list_empty(&reads->scanning));
    assert(list_empty(&reads->ending));
    assert(reads->late == 0 && reads->forwarded == 0);
    loop_timer_cancel(reads->shard->loop, &reads->due);
    loop_defer_cancel(&reads->work);
    revision_notice_end(reads->notice);
    mailbox_detach(&reads->mailbox);
    free(reads);
}
