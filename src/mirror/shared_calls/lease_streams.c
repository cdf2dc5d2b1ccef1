#include "mirror/shared_calls/lease_streams.h"

#include "base/container/hash_map.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/leases.h"
#include "io/loop.h"
#include "mirror/answer/answer.h"
#include "mirror/link/state.h"
#include "mirror/link/upstream.h"

#include <stdlib.h>

enum {
    FAILURES_MAX = 3, /* limit on streams that end one after the other without an answer */
    SCRATCH_BYTES = 256,
    ANSWER_BYTES_MAX = 4 << 10,
    REQUEST_BYTES = 16,
};
/* etcd itself gives up after about seven seconds. */
#define ANSWER_NS (10 * NS_PER_S)
#define TRY_AGAIN_NS (5 * NS_PER_S) /* later failures are not repeated */
#define IDLE_NS (60 * NS_PER_S)
#define PAUSE_NS (50 * NS_PER_MS)

enum lease_stream_state { LEASE_STREAM_CLOSED, LEASE_STREAM_OPEN, LEASE_STREAM_PAUSING };

/* Renewals that a client has sent together. */
struct batch {
    struct engine_renewals *renewals;
    size_t sent, answered; /* items; answered <= sent <= count */
    int64_t begun_ns;
    struct list in_stream;
};

struct lease_stream {
    struct lease_streams *streams;
    enum lease_stream_state state;
    struct upstream_call *call; /* while open */
    struct list batches;        /* batch.in_stream, in the order in which they are sent */
    struct batch *unsent;       /* the first one that is not sent completely; NULL: none */
    size_t unanswered;          /* renewals that are sent */
    unsigned failures;          /* without an answer between them */
    struct timer timer;         /* open: the first answer is late, or idle; pausing: its end */
    bool is_self;               /* in Vigil's own name */
    bool is_kept;               /* found by its token */
    struct list in_streams;     /* kept ones: the one that was not used for longest comes first */
    size_t token_len;
    uint8_t token[];
};

struct lease_streams {
    struct loop *loop;
    struct upstream *upstream;
    struct mirror_state *state;
    struct hash_map by_token;
    struct lease_stream *own; /* the kept one in Vigil's own name; NULL: none */
    struct list kept, others; /* lease_stream.in_streams */
    size_t count;
};

static struct slice token_of(const void *value)
{
    const struct lease_stream *stream = value;
    return slice_of(stream->token, stream->token_len);
}

/* -- States -- */

#define TO(state) (1u << LEASE_STREAM_##state)

/* Drawn in lease_streams.h. */
static const uint8_t moves[] = {
    [LEASE_STREAM_CLOSED] = TO(OPEN),
    [LEASE_STREAM_OPEN] = TO(PAUSING) | TO(CLOSED),
    [LEASE_STREAM_PAUSING] = TO(OPEN) | TO(CLOSED),
};

static void move(struct lease_stream *stream, enum lease_stream_state next)
{
    assert(moves[stream->state] & (1u << next));
    stream->state = next;
}

static void stream_check(const struct lease_stream *stream)
{
    const struct batch *batch;
    size_t unanswered = 0;
    bool all_sent = true;
    assert((stream->state == LEASE_STREAM_OPEN) == (stream->call != NULL));
    LIST_FOREACH (batch, &stream->batches, in_stream) {
        assert(batch->answered <= batch->sent && batch->sent <= batch->renewals->count);
        assert(all_sent || batch->sent == 0);
        if (all_sent && batch->sent < batch->renewals->count) {
            assert(stream->unsent == batch);
            all_sent = false;
        }
        unanswered += batch->sent - batch->answered;
    }
    assert(!all_sent || !stream->unsent);
    assert(unanswered == stream->unanswered && unanswered <= LEASE_STREAM_WINDOW);
    assert(stream->timer.set == (stream->state != LEASE_STREAM_CLOSED));
    assert(stream->state != LEASE_STREAM_CLOSED || list_empty(&stream->batches));
    assert(stream->is_kept || !list_empty(&stream->batches));
}

static size_t kept_count(const struct lease_streams *streams)
{
    return streams->by_token.count + (streams->own ? 1 : 0);
}

void lease_streams_check(const struct lease_streams *streams)
{
    const struct lease_stream *stream;
    size_t kept = 0, others = 0;
    LIST_FOREACH (stream, &streams->kept, in_streams) {
        stream_check(stream);
        kept++;
    }
    LIST_FOREACH (stream, &streams->others, in_streams) {
        stream_check(stream);
        others++;
    }
    assert(kept <= LEASE_STREAMS_MAX && kept == kept_count(streams));
    assert(kept + others == streams->count);
}

size_t lease_streams_count(const struct lease_streams *streams)
{
    return streams->count;
}

/* -- Answers to clients, always the last step: done may renew again -- */

static void succeed(struct batch *batch, int64_t revision)
{
    struct engine_renewals *renewals = batch->renewals;
    renewals->answered = batch->answered;
    renewals->op.revision = revision;
    renewals->op.status = ST_OK;
    free(batch);
    renewals->op.done(&renewals->op);
}

static void fail(struct batch *batch, enum grpc_code code, struct slice text)
{
    struct engine_renewals *renewals = batch->renewals;
    renewals->answered = batch->answered;
    cluster_fail(&renewals->op, code, text);
    free(batch);
    renewals->op.done(&renewals->op);
}

static void fail_all(struct list *batches, enum grpc_code code, struct slice text)
{
    struct list *link;
    while ((link = list_pop_front(batches)))
        fail(LIST_ENTRY(link, struct batch, in_stream), code, text);
}

/* -- Streams -- */

static struct batch *first_of(const struct lease_stream *stream)
{
    return LIST_ENTRY(stream->batches.next, struct batch, in_stream);
}

static void set_timer(struct lease_stream *stream)
{
    struct loop *loop = stream->streams->loop;
    bool is_idle = list_empty(&stream->batches);
    int64_t at = is_idle ? loop_now_ns(loop) + IDLE_NS : first_of(stream)->begun_ns + ANSWER_NS;
    loop_timer_set(loop, &stream->timer, at);
}

/* Ends the call; what was not answered counts as not sent. */
static void disconnect(struct lease_stream *stream)
{
    struct batch *batch;
    if (stream->call)
        upstream_cancel(TAKE(stream->call));
    LIST_FOREACH (batch, &stream->batches, in_stream)
        batch->sent = batch->answered;
    stream->unanswered = 0;
    stream->unsent = list_empty(&stream->batches) ? NULL : first_of(stream);
}

static void stream_close(struct lease_stream *stream)
{
    assert(list_empty(&stream->batches));
    disconnect(stream);
    loop_timer_cancel(stream->streams->loop, &stream->timer);
    if (stream->state != LEASE_STREAM_CLOSED)
        move(stream, LEASE_STREAM_CLOSED);
}

static void stream_free(struct lease_stream *stream)
{
    struct lease_streams *streams = stream->streams;
    stream_close(stream);
    if (streams->own == stream)
        streams->own = NULL;
    else if (stream->is_kept)
        (void)hash_map_remove(&streams->by_token, token_of(stream));
    list_remove(&stream->in_streams);
    streams->count--;
    free(stream);
}

static enum status send_one(struct lease_stream *stream, int64_t id)
{
    struct pb_lease_keep_alive_request request = {.id = id};
    uint8_t bytes[REQUEST_BYTES];
    size_t size = pb_size(&pb_lease_keep_alive_request_table, &request);
    assert(size <= sizeof(bytes));
    pb_encode(&pb_lease_keep_alive_request_table, &request, bytes, size);
    return upstream_send(stream->call, slice_of(bytes, size));
}

/* As many as the window allows. The rest is sent when answers have come. */
static void send_more(struct lease_stream *stream)
{
    while (stream->unsent && stream->unanswered < LEASE_STREAM_WINDOW) {
        struct batch *batch = stream->unsent;
        if (batch->sent < batch->renewals->count) {
            if (send_one(stream, batch->renewals->items[batch->sent].id) != ST_OK)
                return;
            batch->sent++;
            stream->unanswered++;
        }
        if (batch->sent == batch->renewals->count) {
            /* The batch still waits for answers; sending continues with the one behind it. */
            struct list *next = batch->in_stream.next;
            stream->unsent =
                next == &stream->batches ? NULL : LIST_ENTRY(next, struct batch, in_stream);
        }
    }
}

static const struct upstream_ops stream_ops;

/* A member that has lost the leader refuses such a stream, and another one is used. */
static void stream_open(struct lease_stream *stream)
{
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_LEASE_LEASE_KEEP_ALIVE_PATH),
        .caller = {.is_self = stream->is_self, .token = token_of(stream)},
        .deadline_ns = CLOCK_NEVER,
        .lasts = true,
        .lane = UPSTREAM_LANE_LEASES,
        .require_leader = true,
    };
    if (upstream_start(stream->streams->upstream, &request, &stream_ops, stream, &stream->call) !=
        ST_OK)
        abort(); /* without memory */
    move(stream, LEASE_STREAM_OPEN);
    set_timer(stream);
    send_more(stream);
}

/* After some batches were removed from a stream whose call has ended. */
static void go_on(struct lease_stream *stream)
{
    struct loop *loop = stream->streams->loop;
    if (list_empty(&stream->batches)) {
        if (stream->is_kept)
            stream_close(stream);
        else
            stream_free(stream);
    } else if (stream->failures <= 1) {
        move(stream, LEASE_STREAM_PAUSING);
        stream_open(stream);
    } else {
        move(stream, LEASE_STREAM_PAUSING);
        loop_timer_set(loop, &stream->timer,
                       loop_now_ns(loop) + (PAUSE_NS << (stream->failures - 2)));
    }
}

/* -- What the cluster says -- */

static bool decode(struct slice message, int64_t *ret_id, int64_t *ret_ttl, int64_t *ret_revision)
{
    uint8_t scratch[SCRATCH_BYTES];
    struct arena arena;
    struct pb_lease_keep_alive_response response;
    arena_init(&arena, scratch, sizeof(scratch), ANSWER_BYTES_MAX);
    bool valid =
        pb_decode(&pb_lease_keep_alive_response_table, message, &arena, &response) == ST_OK;
    if (valid) {
        *ret_id = response.id;
        *ret_ttl = response.ttl;
        *ret_revision = response.header ? response.header->revision : 0;
    }
    arena_fini(&arena);
    return valid;
}

static void ended(struct lease_stream *stream, enum grpc_code code, struct slice text);

/* The answer belongs to the first renewal that has none. */
static void on_message(struct upstream_call *call, struct slice message)
{
    struct lease_stream *stream = upstream_call_user(call);
    int64_t id, ttl_s, revision;
    struct batch *batch = first_of(stream);
    if (!decode(message, &id, &ttl_s, &revision) || !stream->unanswered ||
        batch->renewals->items[batch->answered].id != id) {
        disconnect(stream);
        ended(stream, GRPC_UNAVAILABLE, SLICE_LITERAL("the cluster's answer is of another lease"));
        return;
    }
    mirror_state_heard(stream->streams->state, revision);
    batch->renewals->items[batch->answered++].ttl_s = ttl_s;
    stream->unanswered--;
    stream->failures = 0;
    bool is_complete = batch->answered == batch->renewals->count;
    if (is_complete) {
        list_remove(&batch->in_stream);
        if (!stream->is_kept && list_empty(&stream->batches)) {
            stream_free(stream);
        } else {
            set_timer(stream);
            send_more(stream);
        }
        succeed(batch, revision);
    } else {
        send_more(stream);
    }
}

/* The cluster's servers may be able to answer soon. */
static bool is_temporary(enum grpc_code code)
{
    return code == GRPC_OK || code == GRPC_UNAVAILABLE || code == GRPC_CANCELLED ||
           code == GRPC_DEADLINE_EXCEEDED || code == GRPC_INTERNAL || code == GRPC_UNKNOWN;
}

/* The call has ended: fails the renewals that caused it, and repeats the others. */
static void ended(struct lease_stream *stream, enum grpc_code code, struct slice text)
{
    struct list failed;
    int64_t now = loop_now_ns(stream->streams->loop);
    bool none = list_empty(&stream->batches);
    bool repeats = !none && is_temporary(code) && ++stream->failures < FAILURES_MAX &&
                   now - first_of(stream)->begun_ns < TRY_AGAIN_NS;
    bool has_sent = stream->unanswered > 0;
    disconnect(stream);
    list_init(&failed);
    /* A missing permission concerns the lease that was sent first, and the others are repeated. */
    if (code == GRPC_PERMISSION_DENIED && has_sent)
        list_push_back(&failed, list_pop_front(&stream->batches));
    else if (!repeats)
        list_append(&failed, &stream->batches);
    stream->unsent = list_empty(&stream->batches) ? NULL : first_of(stream);
    if (list_empty(&stream->batches))
        stream->failures = 0;
    go_on(stream);
    if (code == GRPC_OK) {
        code = GRPC_UNAVAILABLE;
        text = SLICE_LITERAL("the cluster has ended the stream of renewals");
    }
    fail_all(&failed, code, text);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct lease_stream *stream = upstream_call_user(call);
    stream->call = NULL;
    ended(stream, code, text);
}

static const struct upstream_ops stream_ops = {.on_message = on_message, .on_end = on_end};

/* The first answer is late: those that have waited as long fail, the others go to another stream.
 */
static void expire(struct lease_stream *stream)
{
    struct list failed;
    int64_t begun_until = loop_now_ns(stream->streams->loop) - ANSWER_NS;
    list_init(&failed);
    disconnect(stream);
    while (!list_empty(&stream->batches) && first_of(stream)->begun_ns <= begun_until)
        list_push_back(&failed, list_pop_front(&stream->batches));
    stream->unsent = list_empty(&stream->batches) ? NULL : first_of(stream);
    stream->failures = 0;
    go_on(stream);
    fail_all(&failed, status_code(ST_TIMEOUT), slice_from_text(status_text(ST_TIMEOUT)));
}

static void on_timer(struct timer *timer)
{
    struct lease_stream *stream = CONTAINER_OF(timer, struct lease_stream, timer);
    if (stream->state == LEASE_STREAM_PAUSING)
        stream_open(stream);
    else if (list_empty(&stream->batches))
        stream_free(stream);
    else
        expire(stream);
}

/* -- Finding a stream -- */

static struct lease_stream *stream_new(struct lease_streams *streams, struct slice token,
                                       bool is_self)
{
    struct lease_stream *stream = xcalloc(1, sizeof(*stream) + token.len);
    stream->streams = streams;
    stream->timer.fn = on_timer;
    stream->is_self = is_self;
    stream->token_len = token.len;
    slice_copy(stream->token, token);
    list_init(&stream->batches);
    list_init(&stream->in_streams);
    streams->count++;
    return stream;
}

/* Makes room for another stream that is kept. False: all are in use. */
static bool make_room(struct lease_streams *streams)
{
    struct lease_stream *stream;
    if (kept_count(streams) < LEASE_STREAMS_MAX)
        return true;
    LIST_FOREACH (stream, &streams->kept, in_streams) {
        if (!list_empty(&stream->batches))
            continue;
        stream_free(stream);
        return true;
    }
    return false;
}

static void keep(struct lease_streams *streams, struct lease_stream *stream)
{
    void *replaced;
    stream->is_kept = true;
    list_push_back(&streams->kept, &stream->in_streams);
    if (stream->is_self)
        streams->own = stream;
    else if (hash_map_put(&streams->by_token, stream, &replaced) != ST_OK)
        abort(); /* without memory */
}

static struct lease_stream *find(struct lease_streams *streams, struct slice token, bool is_self)
{
    struct lease_stream *found = is_self ? streams->own : hash_map_get(&streams->by_token, token);
    if (found) {
        list_remove(&found->in_streams);
        list_push_back(&streams->kept, &found->in_streams);
        return found;
    }
    bool has_room = make_room(streams);
    struct lease_stream *made = stream_new(streams, token, is_self);
    if (has_room)
        keep(streams, made);
    else
        list_push_back(&streams->others, &made->in_streams);
    return made;
}

void lease_streams_renew(struct lease_streams *streams, struct engine_renewals *renewals)
{
    const struct auth_principal *principal = &renewals->op.principal;
    struct slice token = principal->is_server ? SLICE_EMPTY : principal->token;
    struct lease_stream *stream = find(streams, token, principal->is_server);
    struct batch *batch = xcalloc(1, sizeof(*batch));
    assert(renewals->count > 0);
    batch->renewals = renewals;
    batch->begun_ns = loop_now_ns(streams->loop);
    list_push_back(&stream->batches, &batch->in_stream);
    if (!stream->unsent)
        stream->unsent = batch;
    if (stream->state == LEASE_STREAM_CLOSED) {
        stream_open(stream);
    } else if (stream->state == LEASE_STREAM_OPEN) {
        set_timer(stream);
        send_more(stream);
    }
}

/* -- Life -- */

struct lease_streams *lease_streams_new(struct loop *loop, struct upstream *upstream,
                                        struct mirror_state *state)
{
    struct lease_streams *streams = xcalloc(1, sizeof(*streams));
    streams->loop = loop;
    streams->upstream = upstream;
    streams->state = state;
    hash_map_init(&streams->by_token, token_of, random_seed_system());
    list_init(&streams->kept);
    list_init(&streams->others);
    return streams;
}

void lease_streams_free(struct lease_streams *streams)
{
    if (!streams)
        return;
    assert(list_empty(&streams->others));
    while (!list_empty(&streams->kept))
        stream_free(LIST_ENTRY(streams->kept.next, struct lease_stream, in_streams));
    hash_map_fini(&streams->by_token);
    free(streams);
}
