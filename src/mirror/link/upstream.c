#include "mirror/link/upstream.h"

#include "base/container/list.h"
#include "client/connect/channel.h"
#include "client/connect/error.h"
#include "client/connect/policy.h"
#include "io/loop.h"
#include "mirror/link/hint.h"
#include "mirror/link/kept_answers.h"
#include "mirror/link/loop_guard.h"
#include "mirror/link/options.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ATTEMPTS_MAX = 8,
    REFUSED_MAX = 3,   /* attempts of a read that servers answer as unavailable */
    RENEWALS_MAX = 2,  /* renewals of the token because of one call */
    KEPT_CALLS = 256,  /* that have ended, for the next ones */
    TEXT_BYTES = 1024, /* length of an error that is made here */
    PAUSE_DOUBLINGS = 5,
};
#define NO_ROOM                                                                                \
    "vigil: too many long answers of the cluster arrive at the same time; this call may have " \
    "been carried out"
#define NO_STREAM                                                                             \
    "vigil: the member of the cluster allows no more calls at the same time than those that " \
    "are under way (--max-concurrent-streams)"
#define PAUSE_NS (25 * NS_PER_MS)
#define PAUSE_NS_MAX (1000 * NS_PER_MS)
#define AVOID_NS (250 * NS_PER_MS) /* between changes of the server, however many calls fail */
/* The reason why there is no connection is sent this long before the deadline, so that a client
 * gets it before its own clock ends the call. */
#define MARGIN_NS_MAX (100 * NS_PER_MS)

enum upstream_call_state {
    UPSTREAM_CALL_WAITING, /* for a connection, a token, or the peer's limit of streams */
    UPSTREAM_CALL_SENT,
    UPSTREAM_CALL_PAUSING, /* before another attempt */
    UPSTREAM_CALL_FAILING,
    UPSTREAM_CALL_ENDED,
};

/* One way to the cluster. */
struct upstream_way {
    struct channel *channel; /* owned */
    int64_t avoid_again_ns;  /* its server is not changed before */
    bool is_unreachable;     /* the last call that needed a connection has waited in vain */
};

struct upstream {
    struct loop *loop;
    struct upstream_options options; /* everything in it is borrowed */
    struct upstream_way own, clients[UPSTREAM_LANES];
    struct list calls; /* upstream_call.in_upstream: not ended */
    struct list kept;  /* the same: ended */
    size_t kept_count;
    size_t waiting;    /* calls in that state */
    size_t held_bytes; /* size of all calls */
    struct receive_budget budget;
    struct kept_answers answers;
    struct deferred budget_work; /* gives shares to calls that wait */
    bool is_stopping;
};

struct upstream_call {
    struct grpc_client_call grpc; /* has the messages; used by the session while sent */
    struct upstream *upstream;
    struct upstream_way *way;
    struct upstream_request request;
    const struct upstream_ops *ops;
    void *user;
    enum upstream_call_state state;
    struct list in_upstream;
    struct channel_waiter waiter;
    struct channel_lasting lasting;
    struct timer limit, pause;
    struct deferred fail;
    int64_t reach_by_ns; /* a connection must be found until then … */
    int64_t start_by_ns; /* … and the call must have been started on it until then */
    unsigned attempts;   /* that were sent */
    unsigned renewals;
    uint64_t generation;        /* generation of the connection of the last attempt */
    size_t held_bytes;          /* messages that are kept for another attempt */
    struct receive_share share; /* for the message that arrives */
    bool received, paused, too_long;
    enum grpc_code code; /* while failing */
    struct buf text;
    struct buf via; /* servers that a call has passed through before; otherwise empty */
};

/* -- States -- */

#define TO(state) (1u << UPSTREAM_CALL_##state)

/* Drawn in upstream.h. Every call may be cancelled. */
static const uint8_t moves[] = {
    [UPSTREAM_CALL_WAITING] = TO(SENT) | TO(FAILING) | TO(ENDED),
    [UPSTREAM_CALL_SENT] = TO(WAITING) | TO(PAUSING) | TO(FAILING) | TO(ENDED),
    [UPSTREAM_CALL_PAUSING] = TO(WAITING) | TO(FAILING) | TO(ENDED),
    [UPSTREAM_CALL_FAILING] = TO(ENDED),
    [UPSTREAM_CALL_ENDED] = 0,
};

static void move(struct upstream_call *call, enum upstream_call_state next)
{
    assert(moves[call->state] & (1u << next));
    call->upstream->waiting -= call->state == UPSTREAM_CALL_WAITING;
    call->upstream->waiting += next == UPSTREAM_CALL_WAITING;
    call->state = next;
}

static void call_check(const struct upstream_call *call)
{
    bool waits = call->waiter.in_channel.next && !list_empty(&call->waiter.in_channel);
    assert(!waits || call->state == UPSTREAM_CALL_WAITING);
    assert(call->pause.set == (call->state == UPSTREAM_CALL_PAUSING));
    assert(!grpc_client_call_is_open(&call->grpc) || call->state == UPSTREAM_CALL_SENT ||
           call->state == UPSTREAM_CALL_FAILING);
    assert(call->state != UPSTREAM_CALL_SENT || grpc_client_call_is_open(&call->grpc));
    assert(call->share.kind == RECEIVE_NONE || grpc_client_call_is_open(&call->grpc));
}

void upstream_check(const struct upstream *upstream)
{
    const struct upstream_call *call;
    size_t waiting = 0, held = 0, lined = 0;
    LIST_FOREACH (call, &upstream->calls, in_upstream) {
        call_check(call);
        waiting += call->state == UPSTREAM_CALL_WAITING;
        held += call->held_bytes;
        lined += call->share.kind && !list_empty(&call->share.in_line);
    }
    assert(lined == list_length(&upstream->budget.line) + list_length(&upstream->budget.held_line));
    assert(waiting == upstream->waiting && held == upstream->held_bytes);
    assert(upstream->kept_count == list_length(&upstream->kept));
    assert(upstream->kept_count <= KEPT_CALLS);
    channel_check(upstream->own.channel);
    for (size_t i = 0; i < UPSTREAM_LANES; i++)
        channel_check(upstream->clients[i].channel);
}

/* -- The end of a call -- */

static void call_free(struct upstream_call *call)
{
    list_remove(&call->in_upstream);
    grpc_client_call_fini(&call->grpc);
    buf_fini(&call->text);
    buf_fini(&call->via);
    free(call);
}

static void keep_or_free(struct upstream_call *call)
{
    struct upstream *upstream = call->upstream;
    if (upstream->kept_count >= KEPT_CALLS) {
        call_free(call);
        return;
    }
    grpc_client_call_clear(&call->grpc);
    list_remove(&call->in_upstream);
    list_push_front(&upstream->kept, &call->in_upstream);
    upstream->kept_count++;
}

/* Nothing calls it any more. */
static void leave(struct upstream_call *call)
{
    struct upstream *upstream = call->upstream;
    move(call, UPSTREAM_CALL_ENDED);
    channel_waiter_cancel(&call->waiter);
    loop_timer_cancel(upstream->loop, &call->limit);
    loop_timer_cancel(upstream->loop, &call->pause);
    loop_defer_cancel(&call->fail);
    grpc_client_call_cancel(&call->grpc);
    upstream->held_bytes -= call->held_bytes;
    call->held_bytes = 0;
}

static void end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    leave(call);
    call->ops->on_end(call, code, text);
    keep_or_free(call);
}

void upstream_cancel(struct upstream_call *call)
{
    if (call->state == UPSTREAM_CALL_ENDED)
        return; /* within on_end */
    leave(call);
    keep_or_free(call);
}

static void on_fail(struct deferred *deferred)
{
    struct upstream_call *call = CONTAINER_OF(deferred, struct upstream_call, fail);
    end(call, call->code, buf_slice(&call->text));
}

/* Without memory the code must do. */
static void set_text(struct upstream_call *call, struct slice text)
{
    call->text.len = 0;
    if (buf_append(&call->text, text) != ST_OK)
        call->text.len = 0;
}

/* Ends the call at the end of the turn: its owner, the channel or the session may be at work. */
static void fail_later(struct upstream_call *call, enum grpc_code code, const char *text)
{
    if (call->state == UPSTREAM_CALL_FAILING)
        return;
    move(call, UPSTREAM_CALL_FAILING);
    channel_waiter_cancel(&call->waiter);
    loop_timer_cancel(call->upstream->loop, &call->limit);
    loop_timer_cancel(call->upstream->loop, &call->pause);
    call->code = code;
    set_text(call, slice_from_text(text));
    loop_defer(call->upstream->loop, &call->fail);
}

/* There is no connection. The failure is that of one endpoint; the others have failed as well. */
static void end_unreached(struct upstream_call *call)
{
    const char *failure = channel_failure(call->way->channel);
    char text[TEXT_BYTES];
    call->way->is_unreachable |= call->reach_by_ns < call->start_by_ns; /* not the caller's */
    int len = snprintf(text, sizeof(text), "the cluster cannot be reached (%s)%s%s%s",
                       call->upstream->options.endpoints, *failure ? ": " : "", failure,
                       hint_for(&call->upstream->options, failure));
    end(call, GRPC_UNAVAILABLE, slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
}

static void on_limit(struct timer *timer)
{
    struct upstream_call *call = CONTAINER_OF(timer, struct upstream_call, limit);
    const struct channel *channel = call->way->channel;
    if (call->state == UPSTREAM_CALL_SENT)
        end(call, GRPC_DEADLINE_EXCEEDED, SLICE_LITERAL("context deadline exceeded"));
    else if (!*channel_failure(channel) && call->text.len) /* the last attempt was refused */
        end(call, call->code, buf_slice(&call->text));
    else if (!channel_is_ready(channel))
        end_unreached(call);
    else if (loop_now_ns(call->upstream->loop) < call->start_by_ns)
        loop_timer_set(call->upstream->loop, &call->limit, call->start_by_ns);
    else
        end(call, GRPC_UNAVAILABLE, SLICE_LITERAL(NO_STREAM));
}

/* -- Attempts -- */

static void set_limit(struct upstream_call *call, int64_t at_ns)
{
    if (at_ns == CLOCK_NEVER)
        loop_timer_cancel(call->upstream->loop, &call->limit);
    else
        loop_timer_set(call->upstream->loop, &call->limit, at_ns);
}

static void sent(struct upstream_call *call)
{
    move(call, UPSTREAM_CALL_SENT);
    call->way->is_unreachable = false;
    set_limit(call, call->request.deadline_ns);
    call->attempts++;
    call->generation = channel_generation(call->way->channel);
    if (call->paused)
        grpc_client_call_withhold(&call->grpc, true);
}

static void try_to_send(struct upstream_call *call)
{
    struct channel *channel = call->way->channel;
    const struct upstream_request *r = &call->request;
    struct channel_request request = {
        .path = r->path,
        .require_leader = r->require_leader,
        .caller = r->caller.is_self ? NULL : &r->caller.token,
        .via = buf_slice(&call->via),
        .deadline_ns = r->deadline_ns,
        .receive_max = r->receive_max,
        .replayable = !r->lasts,
        .lasting = r->lasts ? &call->lasting : NULL,
    };
    if (channel_is_rejected(channel)) {
        fail_later(call, GRPC_UNAUTHENTICATED, channel_failure(channel));
        return;
    }
    enum status status = channel_start(channel, &call->grpc, &request, &call->waiter);
    if (status == ST_OK)
        sent(call);
    else if (status == ST_AGAIN) /* there is no connection; the channel calls the waiter back */
        set_limit(call, call->reach_by_ns);
    else if (status == ST_NOMEM)
        fail_later(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        fail_later(call, GRPC_UNAUTHENTICATED, CHANNEL_BAD_CREDENTIALS);
}

static void on_channel_ready(struct channel_waiter *waiter)
{
    try_to_send(CONTAINER_OF(waiter, struct upstream_call, waiter));
}

static void on_pause_over(struct timer *timer)
{
    struct upstream_call *call = CONTAINER_OF(timer, struct upstream_call, pause);
    move(call, UPSTREAM_CALL_WAITING);
    try_to_send(call);
}

static void try_again(struct upstream_call *call, bool at_once)
{
    struct loop *loop = call->upstream->loop;
    unsigned doublings = call->attempts - 1;
    if (at_once) {
        move(call, UPSTREAM_CALL_WAITING);
        try_to_send(call);
        return;
    }
    int64_t pause = PAUSE_NS << (doublings < PAUSE_DOUBLINGS ? doublings : PAUSE_DOUBLINGS);
    move(call, UPSTREAM_CALL_PAUSING);
    set_limit(call, call->reach_by_ns);
    loop_timer_set(loop, &call->pause,
                   loop_now_ns(loop) + (pause < PAUSE_NS_MAX ? pause : PAUSE_NS_MAX));
}

/* -- The budget for answers -- */

static void update_window(struct upstream_call *call)
{
    if (grpc_client_call_is_open(&call->grpc))
        grpc_client_call_withhold(&call->grpc,
                                  call->paused || receive_share_is_stalled(&call->share));
}

static void on_budget(struct deferred *deferred)
{
    struct upstream *upstream = CONTAINER_OF(deferred, struct upstream, budget_work);
    struct receive_share *share;
    while ((share = receive_budget_next(&upstream->budget)))
        update_window(CONTAINER_OF(share, struct upstream_call, share));
}

/* At the end of the turn: the session may be at work. */
static void grant_later(struct upstream *upstream)
{
    if (!list_empty(&upstream->budget.line) || !list_empty(&upstream->budget.held_line))
        loop_defer(upstream->loop, &upstream->budget_work);
}

static void release_share(struct upstream_call *call)
{
    if (LIKELY(call->share.kind == RECEIVE_NONE))
        return;
    receive_budget_release(&call->upstream->budget, &call->share);
    update_window(call);
    grant_later(call->upstream);
}

static bool on_begin(struct grpc_client_call *grpc, size_t len)
{
    struct upstream_call *call = CONTAINER_OF(grpc, struct upstream_call, grpc);
    struct upstream *upstream = call->upstream;
    release_share(call); /* that of an answer before, which its owner has not kept */
    if (!receive_budget_take(&upstream->budget, &call->share, len, call->request.keeps,
                             call->paused))
        return false;
    update_window(call);
    kept_answers_watch(&upstream->answers);
    return true;
}

void upstream_keep_answer(struct upstream_call *call, struct kept_answer *answer)
{
    kept_answer_take(&call->upstream->answers, answer, &call->share);
}

static void on_released(struct kept_answers *answers)
{
    grant_later(CONTAINER_OF(answers, struct upstream, answers));
}

/* -- What the connection says -- */

static void on_message(struct grpc_client_call *grpc, struct slice message)
{
    struct upstream_call *call = CONTAINER_OF(grpc, struct upstream_call, grpc);
    if (call->share.kind != RECEIVE_HELD)
        release_share(call);
    if (call->state != UPSTREAM_CALL_SENT)
        return;
    call->received = true;
    call->ops->on_message(call, message);
}

static bool has_time(const struct upstream_call *call)
{
    return call->attempts < ATTEMPTS_MAX && !call->request.lasts &&
           loop_now_ns(call->upstream->loop) < call->reach_by_ns;
}

static bool may_be_repeated(const struct upstream_call *call)
{
    return call->request.reads && !call->received && has_time(call);
}

static bool renew_token(struct upstream_call *call)
{
    return call->request.caller.is_self &&
           channel_renew_token(call->way->channel, call->generation);
}

void upstream_renew_token(struct upstream_call *call)
{
    (void)renew_token(call);
}

/* Vigil's own token has expired or was made invalid, or authentication was enabled since it had
 * none: the call was refused before anything was done. A call that lasts is repeated by its owner,
 * with the new token. */
static bool renews_token(struct upstream_call *call, const struct grpc_outcome *outcome)
{
    enum status status = client_status_of(outcome->text);
    if (call->renewals >= RENEWALS_MAX ||
        (status != ST_INVALID_AUTH_TOKEN && status != ST_AUTH_OLD_REVISION &&
         status != ST_USER_EMPTY) ||
        !renew_token(call))
        return false;
    call->renewals++;
    return !call->received && !call->request.lasts;
}

static void avoid_server(struct upstream_call *call)
{
    struct upstream_way *way = call->way;
    int64_t now = loop_now_ns(call->upstream->loop);
    if (now < way->avoid_again_ns || call->generation != channel_generation(way->channel))
        return;
    way->avoid_again_ns = now + AVOID_NS;
    channel_avoid(way->channel, call->generation);
}

/* This member cannot do it, and has not: only the leader can, or only members that vote. The others
 * are tried one after the other. A learner that is promoted is used like them: it refuses nothing
 * any more. */
static bool seeks_other_member(struct upstream_call *call, const struct grpc_outcome *outcome,
                               struct error_policy policy)
{
    bool may_repeat = has_time(call) && !call->received;
    bool needs_leader = may_repeat && client_status_of(outcome->text) == ST_NOT_LEADER;
    if (policy.is_not_done || needs_leader)
        channel_avoid(call->way->channel, call->generation);
    return may_repeat && (policy.is_not_done || needs_leader);
}

/* The cluster has answered with an error, which passes unchanged. */
static void refused(struct upstream_call *call, const struct grpc_outcome *outcome)
{
    struct error_policy policy = error_policy_of(outcome->code, outcome->text);
    bool repeats =
        outcome->code == GRPC_UNAVAILABLE && may_be_repeated(call) && call->attempts < REFUSED_MAX;
    if (policy.leaves && !policy.is_not_done)
        avoid_server(call);
    if (renews_token(call, outcome)) {
        try_again(call, true);
    } else if (seeks_other_member(call, outcome, policy) || repeats) {
        call->code = outcome->code; /* for on_limit */
        set_text(call, outcome->text);
        try_again(call, false);
    } else if (policy.is_not_done && call->request.lasts) {
        /* A stream is not repeated here: its owner or its client shall do it. */
        end(call, GRPC_UNAVAILABLE, outcome->text);
    } else {
        end(call, outcome->code, outcome->text);
    }
}

/* Its end is not the cluster's: the connection was lost, or the answer is too long. */
static void end_unanswered(struct upstream_call *call, const struct grpc_outcome *outcome)
{
    char text[TEXT_BYTES];
    if (outcome->code == GRPC_UNAVAILABLE) {
        int len = snprintf(text, sizeof(text), "the cluster (%s) has not answered%s: %.*s",
                           call->upstream->options.endpoints,
                           call->request.reads ? "" : ", and the call may have been carried out",
                           SLICE_ARGS(outcome->text));
        end(call, outcome->code, slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
        return;
    }
    call->too_long = outcome->reason == ST_LIMIT || outcome->reason == ST_NOMEM;
    end(call, outcome->code, outcome->reason == ST_NOMEM ? SLICE_LITERAL(NO_ROOM) : outcome->text);
}

static void on_end(struct grpc_client_call *grpc, const struct grpc_outcome *outcome)
{
    struct upstream_call *call = CONTAINER_OF(grpc, struct upstream_call, grpc);
    release_share(call);
    channel_lasting_end(&call->lasting);
    if (outcome->from_peer)
        channel_worked(call->way->channel, call->generation);
    if (call->state != UPSTREAM_CALL_SENT)
        return; /* cancelled, or its end is known already */
    if (outcome->code == GRPC_OK)
        end(call, GRPC_OK, SLICE_EMPTY);
    else if (outcome->from_peer)
        refused(call, outcome);
    else if ((outcome->unprocessed && !call->received && has_time(call)) ||
             (outcome->code == GRPC_UNAVAILABLE && may_be_repeated(call)))
        try_again(call, outcome->unprocessed && call->attempts == 1);
    else
        end_unanswered(call, outcome);
}

/* Another call was refused as unavailable by the same server. */
static void on_avoided(struct channel_lasting *lasting)
{
    struct upstream_call *call = CONTAINER_OF(lasting, struct upstream_call, lasting);
    fail_later(call, GRPC_UNAVAILABLE, "the member of the cluster is not used any more");
}

/* -- Calls -- */

/* A kept one or a new one; NULL: no memory. */
static struct upstream_call *take_call(struct upstream *upstream)
{
    static const struct grpc_client_ops grpc_ops = {
        .on_message = on_message, .on_begin = on_begin, .on_end = on_end};
    struct upstream_call *call;
    if (list_empty(&upstream->kept)) {
        call = calloc(1, sizeof(*call));
        if (!call)
            return NULL;
        list_init(&call->in_upstream);
    } else {
        call = LIST_ENTRY(list_pop_front(&upstream->kept), struct upstream_call, in_upstream);
        upstream->kept_count--;
    }
    struct grpc_client_call grpc = call->grpc;
    struct buf text = call->text, via = call->via;
    *call = (struct upstream_call){
        .grpc = grpc,
        .text = text,
        .via = via,
        .upstream = upstream,
        .waiter.ready = on_channel_ready,
        .lasting.avoided = on_avoided,
        .limit.fn = on_limit,
        .pause.fn = on_pause_over,
        .fail.fn = on_fail,
    };
    call->grpc.ops = &grpc_ops;
    call->text.len = call->via.len = 0;
    list_push_back(&upstream->calls, &call->in_upstream);
    return call;
}

static int64_t start_by(int64_t now_ns, int64_t deadline_ns)
{
    if (deadline_ns == CLOCK_NEVER)
        return clock_add(now_ns, UPSTREAM_REACH_NS);
    int64_t margin = (deadline_ns - now_ns) / 20;
    return deadline_ns - (margin < 0 ? 0 : margin < MARGIN_NS_MAX ? margin : MARGIN_NS_MAX);
}

static void set_limits(struct upstream_call *call)
{
    int64_t now_ns = loop_now_ns(call->upstream->loop);
    int64_t reach_ns = call->way->is_unreachable ? UPSTREAM_REACH_AGAIN_NS : UPSTREAM_REACH_NS;
    int64_t reach_by_ns = clock_add(now_ns, reach_ns);
    call->start_by_ns = start_by(now_ns, call->request.deadline_ns);
    call->reach_by_ns = reach_by_ns < call->start_by_ns ? reach_by_ns : call->start_by_ns;
}

static bool goes_round(struct upstream_call *call)
{
    const char *own = call->upstream->options.via;
    struct slice passed = call->request.caller.via;
    call->request.caller.via = SLICE_EMPTY; /* not borrowed any longer */
    return own && passed.len && loop_guard_extend(passed, own, &call->via) != ST_OK;
}

enum status upstream_start(struct upstream *upstream, const struct upstream_request *request,
                           const struct upstream_ops *ops, void *user,
                           struct upstream_call **ret_call)
{
    struct upstream_call *call = take_call(upstream);
    if (!call)
        return ST_NOMEM;
    call->request = *request;
    call->way = request->caller.is_self ? &upstream->own : &upstream->clients[request->lane];
    call->ops = ops;
    call->user = user;
    call->state = UPSTREAM_CALL_WAITING;
    set_limits(call);
    /* Also a call that fails at once ends later, when its owner has it. */
    if (++upstream->waiting > UPSTREAM_WAITING_MAX)
        fail_later(call, status_code(ST_REQUEST_TOO_MANY_REQUESTS),
                   status_text(ST_REQUEST_TOO_MANY_REQUESTS));
    else if (upstream->is_stopping)
        fail_later(call, status_code(ST_STOPPED), status_text(ST_STOPPED));
    else if (goes_round(call))
        fail_later(call, GRPC_FAILED_PRECONDITION, LOOP_GUARD_LOOP_TEXT);
    else
        try_to_send(call);
    *ret_call = call;
    return ST_OK;
}

void upstream_stop(struct upstream *upstream)
{
    struct upstream_call *call;
    upstream->is_stopping = true;
    LIST_FOREACH (call, &upstream->calls, in_upstream)
        fail_later(call, status_code(ST_STOPPED), status_text(ST_STOPPED));
}

void *upstream_call_user(const struct upstream_call *call)
{
    return call->user;
}

bool upstream_call_is_too_long(const struct upstream_call *call)
{
    return call->too_long;
}

static bool has_room(const struct upstream_call *call, size_t bytes)
{
    if (call->request.lasts) {
        size_t queued = grpc_client_call_queued_bytes(&call->grpc);
        return !queued || queued + bytes <= UPSTREAM_QUEUED_BYTES_MAX;
    }
    return call->upstream->held_bytes + bytes <= UPSTREAM_HELD_BYTES_MAX;
}

enum status upstream_send(struct upstream_call *call, struct slice message)
{
    if (!has_room(call, message.len))
        return ST_LIMIT;
    TRY(grpc_client_call_send(&call->grpc, message));
    if (!call->request.lasts) {
        call->held_bytes += message.len;
        call->upstream->held_bytes += message.len;
    }
    return ST_OK;
}

void upstream_half_close(struct upstream_call *call)
{
    grpc_client_call_half_close(&call->grpc);
}

void upstream_pause(struct upstream_call *call, bool paused)
{
    call->paused = paused;
    receive_budget_pause(&call->upstream->budget, &call->share, paused);
    update_window(call);
    grant_later(call->upstream);
}

/* -- Life -- */

static int64_t or_default(int64_t ns, int64_t default_ns)
{
    return ns ? ns : default_ns;
}

static const char *or_none(const char *text)
{
    return text && *text ? text : NULL;
}

static enum status open_way(struct upstream *upstream, struct network *network,
                            const struct upstream_options *o, bool is_own, struct upstream_way *way,
                            struct error *error)
{
    struct channel_options options = {
        .endpoints = o->endpoints,
        .ca_file = or_none(o->ca_file),
        .cert_file = or_none(o->cert_file),
        .key_file = or_none(o->key_file),
        .server_name = or_none(o->server_name),
        .insecure_skip_verify = o->insecure_skip_verify,
        .user = is_own ? or_none(o->user) : NULL,
        .password = is_own ? or_none(o->password) : NULL,
        .via = o->via,
        .connect_timeout_ns = or_default(o->connect_timeout_ns, 5 * NS_PER_S),
        .keepalive_ns = or_default(o->keepalive_ns, UPSTREAM_KEEPALIVE_NS),
        .keepalive_timeout_ns = or_default(o->keepalive_timeout_ns, UPSTREAM_KEEPALIVE_TIMEOUT_NS),
        .backoff_min_ns = 25 * NS_PER_MS,
        .backoff_max_ns = 3 * NS_PER_S,
        .receive_bytes_max = UPSTREAM_ANSWER_BYTES_MAX,
    };
    return channel_new(upstream->loop, network, &options, &way->channel, error);
}

enum status upstream_new(struct loop *loop, struct network *network,
                         const struct upstream_options *options, struct upstream **ret_upstream,
                         struct error *error)
{
    struct upstream *upstream = calloc(1, sizeof(*upstream));
    if (!upstream)
        return ST_NOMEM;
    upstream->loop = loop;
    upstream->options = *options;
    list_init(&upstream->calls);
    list_init(&upstream->kept);
    receive_budget_init(&upstream->budget);
    kept_answers_init(&upstream->answers, loop, &upstream->budget, on_released);
    upstream->budget_work.fn = on_budget;
    enum status status = open_way(upstream, network, options, true, &upstream->own, error);
    for (size_t i = 0; i < UPSTREAM_LANES && status == ST_OK; i++)
        status = open_way(upstream, network, options, false, &upstream->clients[i], error);
    if (status == ST_OK)
        *ret_upstream = upstream;
    else
        upstream_free(upstream);
    return status;
}

void upstream_free(struct upstream *upstream)
{
    if (!upstream)
        return;
    while (!list_empty(&upstream->calls))
        upstream_cancel(LIST_ENTRY(upstream->calls.next, struct upstream_call, in_upstream));
    while (!list_empty(&upstream->kept))
        call_free(LIST_ENTRY(upstream->kept.next, struct upstream_call, in_upstream));
    kept_answers_fini(&upstream->answers);
    loop_defer_cancel(&upstream->budget_work);
    channel_free(upstream->own.channel);
    for (size_t i = 0; i < UPSTREAM_LANES; i++)
        channel_free(upstream->clients[i].channel);
    free(upstream);
}

const char *upstream_failure(const struct upstream *upstream)
{
    const char *failure = channel_failure(upstream->own.channel);
    for (size_t i = 0; i < UPSTREAM_LANES && !*failure; i++)
        failure = channel_failure(upstream->clients[i].channel);
    return failure;
}
