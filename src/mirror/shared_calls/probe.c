#include "mirror/shared_calls/probe.h"

#include "base/xalloc.h"
#include "client/connect/error.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "io/loop.h"
#include "mirror/link/state.h"
#include "mirror/link/upstream.h"

#include <stdlib.h>

enum {
    REQUEST_KEY_BYTES_MAX = 1024, /* a longer key is cut; what remains is a key as well */
    REQUEST_BYTES_MAX = REQUEST_KEY_BYTES_MAX + 32,
    NUMBER_REVISION = 4,                         /* field of a RangeRequest */
    QUESTION_BYTES_MAX = REQUEST_BYTES_MAX + 11, /* with a revision */
    ANSWER_BYTES = 512,                          /* memory for a decoded answer */
    ANSWER_BYTES_MAX = 4 << 10,                  /* it has a header and a count */
};

/* etcd itself gives up after about seven seconds, and a member that has stalled is noticed after
 * eight: so what remains is a cluster that lives and does not answer. */
static const int64_t answer_within_ns = 9 * NS_PER_S;
static const int64_t join_after_ns = 1 * NS_PER_S;

/*
 *     idle ── the first read asks ──► deferred ── end of the turn ──► asked ── the answer ──► idle
 *                                        ▲                              │
 *                                        └── reads have come meanwhile ─┘
 */
struct probe {
    struct loop *loop;
    struct upstream *upstream;
    struct mirror_state *state;
    struct list waiting;        /* probe_waiter: for the next question */
    struct list asked;          /* for the one under way */
    struct upstream_call *call; /* NULL: no question is under way */
    struct deferred start;
    int64_t revision; /* revision of the answer; 0: none has come */
    int64_t mirrored; /* by the mirror when the question was sent */
    bool is_other;    /* the answer is of another history than the mirror */
    int64_t at;       /* revision of the question; 0: the newest one */
    size_t request_len;
    uint8_t request[REQUEST_BYTES_MAX];
};

static void probe_check(const struct probe *probe)
{
    assert(probe->call || list_empty(&probe->asked));
    assert(probe->call || probe->revision == 0);
}

/* -- Answers -- */

/* The question is linearizable, so an answer that is older than the mirror was is of another
 * history, which the follower has not noticed yet. */
static bool is_other(const struct probe *probe, const struct pb_response_header *header)
{
    uint64_t id = atomic_load(&probe->state->cluster_id);
    return (id && header->cluster_id != id) || header->revision < probe->mirrored;
}

static void on_message(struct upstream_call *call, struct slice message)
{
    struct probe *probe = upstream_call_user(call);
    uint8_t first[ANSWER_BYTES];
    struct arena arena;
    struct pb_range_response response;
    arena_init(&arena, first, sizeof(first), ANSWER_BYTES_MAX);
    enum status status = pb_decode(&pb_range_response_table, message, &arena, &response);
    bool has_header = status == ST_OK && response.header;
    probe->revision = has_header ? response.header->revision : 0;
    probe->is_other = has_header && is_other(probe, response.header);
    arena_fini(&arena);
}

/* Functions that are called may ask again, which starts the next question. */
static void finish(struct probe *probe, int64_t revision, enum grpc_code code, struct slice text)
{
    struct list done, *link;
    list_init(&done);
    list_append(&done, &probe->asked);
    while ((link = list_pop_front(&done))) {
        struct probe_waiter *waiter = LIST_ENTRY(link, struct probe_waiter, in_probe);
        waiter->revision = revision;
        waiter->code = code;
        waiter->text = text;
        waiter->done(waiter);
    }
}

/* Reads that have waited long enough for the question which has failed now fail with it: another
 * one would make them wait as long once more. They are in the order in which they came. */
static void join_failure(struct probe *probe)
{
    int64_t before_ns = loop_now_ns(probe->loop) - join_after_ns;
    while (!list_empty(&probe->waiting)) {
        struct list *link = probe->waiting.next;
        if (LIST_ENTRY(link, struct probe_waiter, in_probe)->since_ns > before_ns)
            break;
        list_remove(link);
        list_push_back(&probe->asked, link);
    }
}

/* The revision of the question cannot be read. That says nothing of the reads that asked for
 * another one, or for none: the former are not examined one by one, and the latter wait for the
 * next question. */
static void finish_unreadable(struct probe *probe)
{
    struct list done, *link;
    list_init(&done);
    list_append(&done, &probe->asked);
    while ((link = list_pop_front(&done))) {
        struct probe_waiter *waiter = LIST_ENTRY(link, struct probe_waiter, in_probe);
        waiter->is_unreadable = waiter->at > 0;
        waiter->code = GRPC_OUT_OF_RANGE;
        if (waiter->is_unreadable)
            waiter->done(waiter);
        else
            list_push_back(&probe->waiting, link);
    }
    if (!list_empty(&probe->waiting))
        loop_defer(probe->loop, &probe->start);
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct probe *probe = upstream_call_user(call);
    int64_t revision = probe->revision;
    probe->call = NULL;
    probe->revision = 0;
    if (probe->at && code == GRPC_OUT_OF_RANGE) {
        finish_unreadable(probe);
        return;
    }
    if (code != GRPC_OK)
        join_failure(probe);
    if (!list_empty(&probe->waiting))
        loop_defer(probe->loop, &probe->start);
    if (code == GRPC_OK && !possible_revision(revision)) {
        finish(probe, 0, GRPC_INTERNAL, SLICE_LITERAL("vigil: the cluster's answer is malformed"));
        return;
    }
    if (code == GRPC_OK && probe->is_other) {
        finish(probe, 0, GRPC_UNAVAILABLE,
               SLICE_LITERAL("vigil: the cluster has another past than the mirror"));
        return;
    }
    if (code == GRPC_OK)
        mirror_state_heard(probe->state, revision);
    if (client_is_deadline(code, text)) {
        /* The deadline is ours, of which the client knows nothing: it gets the error of a cluster
         * that is slow. */
        code = status_code(ST_TIMEOUT);
        text = slice_from_text(status_text(ST_TIMEOUT));
    }
    finish(probe, revision, code, text);
    probe_check(probe);
}

/* -- Questions -- */

static enum status send_question(struct probe *probe)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_KV_RANGE_PATH),
        .caller = {.is_self = true},
        .deadline_ns = loop_now_ns(probe->loop) + answer_within_ns,
        .reads = true,
    };
    uint8_t question[QUESTION_BYTES_MAX];
    memcpy(question, probe->request, probe->request_len);
    uint8_t *end = question + probe->request_len;
    if (probe->at)
        end = pb_uint_write(end, NUMBER_REVISION, (uint64_t)probe->at);
    TRY(upstream_start(probe->upstream, &request, &ops, probe, &probe->call));
    TRY(upstream_send(probe->call, slice_of(question, (size_t)(end - question))));
    upstream_half_close(probe->call);
    return ST_OK;
}

/* 0: all are for the newest. */
static int64_t oldest_of(const struct list *waiters)
{
    const struct probe_waiter *waiter;
    int64_t oldest = 0;
    LIST_FOREACH (waiter, waiters, in_probe)
        if (waiter->at > 0 && (oldest == 0 || waiter->at < oldest))
            oldest = waiter->at;
    return oldest;
}

static void start(struct deferred *deferred)
{
    struct probe *probe = CONTAINER_OF(deferred, struct probe, start);
    if (probe->call || list_empty(&probe->waiting))
        return;
    list_append(&probe->asked, &probe->waiting);
    probe->at = oldest_of(&probe->asked);
    atomic_fetch_add_explicit(&probe->state->probes, 1, memory_order_relaxed);
    probe->mirrored = atomic_load(&probe->state->mirrored);
    probe->is_other = false;
    if (send_question(probe) == ST_OK)
        return;
    if (probe->call)
        upstream_cancel(TAKE(probe->call));
    finish(probe, 0, status_code(ST_NOMEM), slice_from_text(status_text(ST_NOMEM)));
}

void probe_ask(struct probe *probe, struct probe_waiter *waiter)
{
    waiter->since_ns = loop_now_ns(probe->loop);
    list_push_back(&probe->waiting, &waiter->in_probe);
    /* At the end of the turn, so that all reads of this turn share the question. */
    if (!probe->call)
        loop_defer(probe->loop, &probe->start);
}

void probe_cancel(struct probe_waiter *waiter)
{
    if (waiter->in_probe.next)
        list_remove(&waiter->in_probe);
}

/* -- Life -- */

struct probe *probe_new(struct loop *loop, struct upstream *upstream, struct mirror_state *state,
                        struct slice key)
{
    struct probe *probe = xcalloc(1, sizeof(*probe));
    struct pb_range_request request = {
        .key = slice_sub(key, 0, size_min(key.len, REQUEST_KEY_BYTES_MAX)),
        .count_only = true,
    };
    if (key.len == 0)
        request.key = SLICE_LITERAL("\0");
    *probe = (struct probe){.loop = loop, .upstream = upstream, .state = state};
    list_init(&probe->waiting);
    list_init(&probe->asked);
    probe->start.fn = start;
    probe->request_len = pb_size(&pb_range_request_table, &request);
    assert(probe->request_len <= sizeof(probe->request));
    pb_encode(&pb_range_request_table, &request, probe->request, probe->request_len);
    return probe;
}

void probe_free(struct probe *probe)
{
    if (!probe)
        return;
    assert(list_empty(&probe->waiting));
    assert(list_empty(&probe->asked));
    loop_defer_cancel(&probe->start);
    if (probe->call)
        upstream_cancel(probe->call);
    free(probe);
}
