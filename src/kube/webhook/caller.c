#include "kube/webhook/caller.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "client/names/resolver.h"
#include "io/loop.h"
#include "kube/webhook/answer.h"
#include "kube/webhook/failure.h"
#include "kube/webhook/peer.h"
#include "net/tls/client.h"

#include <stdio.h>

/* How long a peer without calls is kept; client-go keeps connections as long. */
#define PEER_IDLE_NS (90 * NS_PER_S)

enum { PAUSE_S_MAX = 24 * 3600 };

struct kube_webhook_caller {
    struct kube_webhook_base base;
    struct kube_webhook_settings settings;
    void (*count)(void *ctx, bool begins);
    void *ctx;
    struct list peers; /* the latest used first */
    size_t peer_count;
    struct list dropped;      /* peers that are freed when none of their functions can be running */
    struct list attempts;     /* those of all calls, except for `ending` */
    struct list ending;       /* attempts whose calls have their result */
    size_t calls;             /* in both lists */
    struct deferred turn_end; /* ends calls, and frees what was dropped */
    struct timer expiry;      /* drops peers without calls */
    bool stopped;
};

/*
 * What a call has while it is under way:
 *
 *     asking ──► unpacking ──► ending ──► done
 *      │  ▲                      ▲
 *      ▼  │                      │
 *     pausing ───────────────────┘   (Retry-After; the time is over)
 */
enum state { ASKING, PAUSING, UNPACKING, ENDING };

#define TO(state) (1u << (state))
static const unsigned moves[] = {
    [ASKING] = TO(PAUSING) | TO(UNPACKING) | TO(ENDING),
    [PAUSING] = TO(ASKING) | TO(ENDING),
    [UNPACKING] = TO(PAUSING) | TO(UNPACKING) | TO(ENDING),
    [ENDING] = 0,
};

struct kube_webhook_attempt {
    enum state state;
    struct kube_webhook_caller *caller;
    struct kube_webhook_call *call;
    struct kube_webhook_peer *peer; /* NULL: the call was not made */
    struct list in_caller;          /* links caller.attempts or caller.ending */
    struct pool_request request;
    struct kube_webhook_answer answer;
    unsigned tries;
    struct timer deadline; /* ends the call */
    struct timer pause;    /* until it is made again */
    struct deferred unpack;
    struct slice timeout; /* "10s" */
    char timeout_text[KUBE_WEBHOOK_SECONDS_BYTES];
};

static void schedule(struct kube_webhook_caller *caller)
{
    loop_defer(caller->base.loop, &caller->turn_end);
}

static void count(const struct kube_webhook_caller *caller, bool begins)
{
    if (caller->count)
        caller->count(caller->ctx, begins);
}

static int64_t now_of(const struct kube_webhook_caller *caller)
{
    return loop_now_ns(caller->base.loop);
}

/* -- Peers -- */

static void expire_later(struct kube_webhook_caller *caller)
{
    if (!caller->expiry.set)
        loop_timer_set(caller->base.loop, &caller->expiry, clock_add(now_of(caller), PEER_IDLE_NS));
}

static void drop_peer(struct kube_webhook_caller *caller, struct kube_webhook_peer *peer)
{
    assert(peer->calls == 0);
    list_remove(&peer->in_caller);
    list_push_back(&caller->dropped, &peer->in_caller);
    caller->peer_count--;
    schedule(caller);
}

static void on_expiry(struct timer *timer)
{
    struct kube_webhook_caller *caller = CONTAINER_OF(timer, struct kube_webhook_caller, expiry);
    struct kube_webhook_peer *peer, *following;
    LIST_FOREACH_SAFE (peer, following, &caller->peers, in_caller)
        if (!peer->calls && clock_add(peer->idle_since_ns, PEER_IDLE_NS) <= now_of(caller))
            drop_peer(caller, peer);
    if (!list_empty(&caller->peers))
        expire_later(caller);
}

/* False: all of them have calls. */
static bool make_room(struct kube_webhook_caller *caller)
{
    struct kube_webhook_peer *peer, *latest = NULL;
    if (caller->peer_count < KUBE_WEBHOOK_TARGETS_MAX)
        return true;
    LIST_FOREACH (peer, &caller->peers, in_caller)
        latest = peer->calls ? latest : peer;
    if (latest)
        drop_peer(caller, latest);
    return latest != NULL;
}

static enum status open_resolver(struct kube_webhook_caller *caller)
{
    struct kube_webhook_base *base = &caller->base;
    return base->resolver ? ST_OK
                          : resolver_new(base->loop, caller->settings.resolver,
                                         random_seed_system(), &base->resolver);
}

static enum status open_system_tls(struct kube_webhook_caller *caller,
                                   const struct kube_webhook_target *target,
                                   enum kube_webhook_use use, struct error *error)
{
    struct kube_webhook_base *base = &caller->base;
    if (base->system_tls || !kube_webhook_peer_shares_tls(base->settings, target, use))
        return ST_OK;
    return tls_client_source_new(&TLS_CLIENT_OPTIONS_NONE, (struct tls_source_hooks){0},
                                 &base->system_tls, error);
}

static enum status make_peer(struct kube_webhook_caller *caller,
                             const struct kube_webhook_target *target, enum kube_webhook_use use,
                             struct kube_webhook_peer **ret_peer, struct error *error)
{
    if (!make_room(caller))
        return ST_REQUEST_TOO_MANY_REQUESTS;
    if (open_resolver(caller) != ST_OK)
        return error_no_memory(error);
    TRY(open_system_tls(caller, target, use, error));
    TRY(kube_webhook_peer_new(&caller->base, target, use, ret_peer, error));
    list_push_front(&caller->peers, &(*ret_peer)->in_caller);
    caller->peer_count++;
    expire_later(caller);
    return ST_OK;
}

static struct kube_webhook_peer *find_peer(struct kube_webhook_caller *caller,
                                           const struct kube_webhook_target *target,
                                           enum kube_webhook_use use)
{
    struct kube_webhook_peer *peer;
    LIST_FOREACH (peer, &caller->peers, in_caller)
        if (peer->use == use && kube_webhook_target_equal(&peer->target, target)) {
            list_remove(&peer->in_caller);
            list_push_front(&caller->peers, &peer->in_caller);
            return peer;
        }
    return NULL;
}

/* -- The end of a call -- */

static void attempt_free(struct kube_webhook_attempt *a)
{
    struct kube_webhook_caller *caller = a->caller;
    pool_request_cancel(&a->request);
    loop_timer_cancel(caller->base.loop, &a->deadline);
    loop_timer_cancel(caller->base.loop, &a->pause);
    loop_defer_cancel(&a->unpack);
    kube_webhook_answer_reset(&a->answer);
    list_remove(&a->in_caller);
    if (a->peer && --a->peer->calls == 0)
        a->peer->idle_since_ns = now_of(caller);
    a->call->attempt = NULL;
    assert(*caller->base.under_way > 0);
    --*caller->base.under_way;
    caller->calls--;
    count(caller, false);
    free(a);
}

/* The call has its result. */
static void finish(struct kube_webhook_attempt *a)
{
    struct kube_webhook_call *call = a->call;
    attempt_free(a);
    call->done(call);
}

/* Done follows at the end of the turn. */
static void finish_soon(struct kube_webhook_attempt *a, enum status status)
{
    STATE_MOVE(a->state, moves, ENDING);
    pool_request_cancel(&a->request);
    loop_defer_cancel(&a->unpack);
    a->call->status = status;
    list_remove(&a->in_caller);
    list_push_back(&a->caller->ending, &a->in_caller);
    schedule(a->caller);
}

static struct kube_webhook_place place_of(const struct kube_webhook_attempt *a)
{
    return (struct kube_webhook_place){a->call->target, a->timeout};
}

static enum kube_webhook_stage stage_of(const struct kube_webhook_attempt *a)
{
    return a->answer.code ? KUBE_WEBHOOK_READING : KUBE_WEBHOOK_ASKING;
}

static void fail(struct kube_webhook_attempt *a, enum status status, struct slice reason)
{
    struct kube_webhook_place place = place_of(a);
    kube_webhook_failure(&a->call->error, &place, stage_of(a), reason);
    STATE_MOVE(a->state, moves, ENDING);
    a->call->status = status;
    finish(a);
}

static void on_deadline(struct timer *timer)
{
    struct kube_webhook_attempt *a = CONTAINER_OF(timer, struct kube_webhook_attempt, deadline);
    if (a->state != ENDING)
        fail(a, ST_TIMEOUT, SLICE_LITERAL("context deadline exceeded"));
}

static void on_turn_end(struct deferred *deferred)
{
    struct kube_webhook_caller *caller =
        CONTAINER_OF(deferred, struct kube_webhook_caller, turn_end);
    struct list ending;
    list_init(&ending);
    list_append(&ending, &caller->ending);
    /* Calls that begin and end meanwhile are left for the next turn. */
    while (!list_empty(&ending))
        finish(LIST_ENTRY(ending.next, struct kube_webhook_attempt, in_caller));
    while (!list_empty(&caller->dropped))
        kube_webhook_peer_free(
            LIST_ENTRY(caller->dropped.next, struct kube_webhook_peer, in_caller));
}

/* -- The answer -- */

static void ask(struct kube_webhook_attempt *a);

static void on_pause(struct timer *timer)
{
    struct kube_webhook_attempt *a = CONTAINER_OF(timer, struct kube_webhook_attempt, pause);
    if (a->state != PAUSING)
        return;
    STATE_MOVE(a->state, moves, ASKING);
    ask(a);
}

static void ask_again(struct kube_webhook_attempt *a)
{
    struct loop *loop = a->caller->base.loop;
    int64_t wait_s = a->answer.repeat_s < PAUSE_S_MAX ? a->answer.repeat_s : PAUSE_S_MAX;
    STATE_MOVE(a->state, moves, PAUSING);
    kube_webhook_answer_reset(&a->answer);
    loop_timer_set(loop, &a->pause, clock_add(loop_now_ns(loop), wait_s * NS_PER_S));
}

static void take_answer(struct kube_webhook_attempt *a)
{
    struct kube_webhook_call *call = a->call;
    if (a->answer.may_repeat && a->tries < KUBE_WEBHOOK_TRIES_MAX) {
        ask_again(a);
        return;
    }
    STATE_MOVE(a->state, moves, ENDING);
    call->code = a->answer.code;
    call->status = ST_OK;
    if (kube_webhook_answer_fault(&a->answer, &call->error)) {
        call->status = ST_IO;
    } else {
        call->answer = a->answer.body;
        a->answer.body = (struct buf){0};
    }
    finish(a);
}

static void fail_by_answer(struct kube_webhook_attempt *a, enum status status, const char *reason)
{
    char text[64];
    if (status == ST_LIMIT) {
        snprintf(text, sizeof(text), "the answer is longer than %d bytes",
                 KUBE_WEBHOOK_ANSWER_BYTES_MAX);
        reason = text;
    } else if (status == ST_NOMEM) {
        reason = "out of memory";
    }
    fail(a, status, slice_from_text(reason));
}

/* Continues in the next turn until the body is complete. */
static void unpack(struct kube_webhook_attempt *a)
{
    const char *reason = "";
    enum status status = kube_webhook_answer_unpack(&a->answer, &reason);
    STATE_MOVE(a->state, moves, UNPACKING);
    if (status == ST_AGAIN)
        loop_defer(a->caller->base.loop, &a->unpack);
    else if (status == ST_OK)
        take_answer(a);
    else
        fail_by_answer(a, status, reason);
}

static void on_unpack(struct deferred *deferred)
{
    unpack(CONTAINER_OF(deferred, struct kube_webhook_attempt, unpack));
}

static void on_head(struct pool_request *request, unsigned code, const struct http_field *fields,
                    size_t count)
{
    struct kube_webhook_attempt *a = CONTAINER_OF(request, struct kube_webhook_attempt, request);
    kube_webhook_answer_head(&a->answer, code, fields, count);
}

static void on_body(struct pool_request *request, struct slice bytes)
{
    struct kube_webhook_attempt *a = CONTAINER_OF(request, struct kube_webhook_attempt, request);
    enum status status = kube_webhook_answer_add(&a->answer, bytes);
    if (status != ST_OK)
        fail_by_answer(a, status, "");
}

static void on_end(struct pool_request *request, enum status status, const char *reason)
{
    struct kube_webhook_attempt *a = CONTAINER_OF(request, struct kube_webhook_attempt, request);
    struct kube_webhook_place place = place_of(a);
    if (status == ST_OK) {
        unpack(a);
        return;
    }
    kube_webhook_failure_of_connection(&a->call->error, &place, stage_of(a), status, reason);
    STATE_MOVE(a->state, moves, ENDING);
    a->call->status = status;
    finish(a);
}

/* -- The request -- */

/* "/path?timeout=10s" */
static enum status append_path(const struct kube_webhook_attempt *a, struct buf *to)
{
    TRY(buf_append(to, a->call->target->path));
    TRY(buf_append(to, SLICE_LITERAL("?timeout=")));
    return buf_append(to, a->timeout);
}

/* Adds the fields of the user in whose name the server calls. */
static enum status sign_in(struct kube_webhook_peer *peer, int64_t now_ns,
                           struct http_field *fields, size_t *count, struct buf *authorization)
{
    const struct kube_webhook_credentials *credentials = peer->credentials;
    if (!credentials)
        return ST_OK;
    assert(credentials->field_count < KUBE_WEBHOOK_FIELDS_MAX);
    for (size_t i = 0; i < credentials->field_count; i++)
        fields[(*count)++] = credentials->fields[i];
    if (!peer->token.path)
        return ST_OK;
    (void)token_file_refresh(&peer->token, now_ns);
    TRY(buf_append_text(authorization, "Bearer "));
    TRY(buf_append(authorization, buf_slice(&peer->token.token)));
    fields[(*count)++] =
        (struct http_field){SLICE_LITERAL("Authorization"), buf_slice(authorization)};
    return ST_OK;
}

static enum status post(struct kube_webhook_attempt *a)
{
    enum { OWN_FIELDS = 4 };
    size_t count = OWN_FIELDS;
    struct http_field fields[OWN_FIELDS + KUBE_WEBHOOK_FIELDS_MAX] = {
        {SLICE_LITERAL("User-Agent"), a->call->agent},
        {SLICE_LITERAL("Accept"), SLICE_LITERAL("application/json, */*")},
        {SLICE_LITERAL("Content-Type"), SLICE_LITERAL("application/json")},
        {SLICE_LITERAL("Accept-Encoding"), SLICE_LITERAL("gzip")},
    };
    AUTO(buf_fini) struct buf path = {0}, authorization = {0};
    TRY(sign_in(a->peer, now_of(a->caller), fields, &count, &authorization));
    TRY(append_path(a, &path));
    return http_pool_start(a->peer->pool, &a->request,
                           &(struct pool_request_params){
                               .method = SLICE_LITERAL("POST"),
                               .target = buf_slice(&path),
                               .fields = fields,
                               .field_count = count,
                               .body = a->call->body,
                               .borrows_body = true,
                           });
}

/* Not from within the start of a call, because it may end it. */
static void ask(struct kube_webhook_attempt *a)
{
    a->tries++;
    enum status status = post(a);
    if (status != ST_OK)
        fail(a, status, slice_from_text(status_text(status)));
}

/* -- Calls -- */

static struct kube_webhook_attempt *new_attempt(struct kube_webhook_caller *caller,
                                                struct kube_webhook_call *call)
{
    static const struct pool_request_ops ops = {on_head, on_body, on_end};
    struct kube_webhook_attempt *a = xcalloc(1, sizeof(*a));
    int64_t seconds = (call->timeout_ns + NS_PER_S - 1) / NS_PER_S;
    a->state = ASKING;
    a->caller = caller;
    a->call = call;
    a->request.ops = &ops;
    a->answer.account = call->account;
    a->deadline.fn = on_deadline;
    a->pause.fn = on_pause;
    a->unpack.fn = on_unpack;
    a->timeout = kube_webhook_seconds(seconds, a->timeout_text);
    list_push_back(&caller->attempts, &a->in_caller);
    ++*caller->base.under_way;
    caller->calls++;
    count(caller, true);
    call->attempt = a;
    call->status = ST_OK;
    call->code = 0;
    call->answer = call->error = (struct buf){0};
    return a;
}

/* ST_OK: there is room for the call, and its peer is set. */
static enum status admit(struct kube_webhook_attempt *a, struct error *error)
{
    struct kube_webhook_caller *caller = a->caller;
    struct kube_webhook_peer *peer;
    if (caller->stopped)
        return ST_STOPPED;
    peer = find_peer(caller, a->call->target, a->call->use);
    if (!peer)
        TRY(make_peer(caller, a->call->target, a->call->use, &peer, error));
    if (peer->calls >= KUBE_WEBHOOK_CALLS_PER_TARGET_MAX ||
        (caller->calls > KUBE_WEBHOOK_CALLS_MAX && peer->calls >= KUBE_WEBHOOK_CALLS_RESERVED))
        return ST_REQUEST_TOO_MANY_REQUESTS;
    a->peer = peer;
    peer->calls++;
    return ST_OK;
}

void kube_webhook_call_start(struct kube_webhook_caller *caller, struct kube_webhook_call *call)
{
    assert(!call->attempt && call->done && call->target);
    struct error error = {.text = ""};
    struct kube_webhook_attempt *a = new_attempt(caller, call);
    enum status status = admit(a, &error);
    if (status == ST_OK) {
        a->tries++;
        status = post(a);
    }
    if (status == ST_OK) {
        loop_timer_set(caller->base.loop, &a->deadline,
                       clock_add(now_of(caller), call->timeout_ns));
        return;
    }
    (void)!buf_append_text(&call->error, *error.text ? error.text : status_text(status));
    finish_soon(a, status);
}

void kube_webhook_call_cancel(struct kube_webhook_call *call)
{
    if (call->attempt)
        attempt_free(call->attempt);
}

void kube_webhook_call_fini(struct kube_webhook_call *call)
{
    account_buf_fini(call->account, &call->answer);
    buf_fini(&call->error);
}

/* -- Life -- */

struct kube_webhook_caller *kube_webhook_caller_new(
    const struct kube_webhook_caller_options *options)
{
    struct kube_webhook_caller *caller = xcalloc(1, sizeof(*caller));
    caller->settings = options->settings ? *options->settings : kube_webhook_settings_system();
    caller->count = options->count;
    caller->ctx = options->ctx;
    caller->base.loop = options->loop;
    caller->base.shard = options->shard;
    caller->base.under_way = options->under_way;
    caller->base.settings = &caller->settings;
    caller->turn_end.fn = on_turn_end;
    caller->expiry.fn = on_expiry;
    list_init(&caller->peers);
    list_init(&caller->dropped);
    list_init(&caller->attempts);
    list_init(&caller->ending);
    return caller;
}

void kube_webhook_caller_stop(struct kube_webhook_caller *caller)
{
    if (!caller)
        return;
    caller->stopped = true;
    while (!list_empty(&caller->attempts))
        finish_soon(LIST_ENTRY(caller->attempts.next, struct kube_webhook_attempt, in_caller),
                    ST_STOPPED);
}

static void free_peers(struct list *peers)
{
    while (!list_empty(peers))
        kube_webhook_peer_free(LIST_ENTRY(peers->next, struct kube_webhook_peer, in_caller));
}

void kube_webhook_caller_free(struct kube_webhook_caller *caller)
{
    if (!caller)
        return;
    assert(caller->stopped && !caller->calls);
    free_peers(&caller->peers);
    free_peers(&caller->dropped);
    loop_defer_cancel(&caller->turn_end);
    loop_timer_cancel(caller->base.loop, &caller->expiry);
    resolver_free(caller->base.resolver);
    tls_client_source_free(caller->base.system_tls);
    free(caller);
}

size_t kube_webhook_caller_targets(const struct kube_webhook_caller *caller)
{
    return caller->peer_count;
}

void kube_webhook_caller_check(const struct kube_webhook_caller *caller)
{
    const struct kube_webhook_peer *peer;
    const struct kube_webhook_attempt *a;
    size_t calls = 0;
    LIST_FOREACH (peer, &caller->peers, in_caller) {
        http_pool_check(peer->pool);
        assert(peer->calls <= KUBE_WEBHOOK_CALLS_PER_TARGET_MAX);
        calls += peer->calls;
    }
    assert(list_length(&caller->peers) == caller->peer_count);
    assert(caller->peer_count <= KUBE_WEBHOOK_TARGETS_MAX);
    assert(list_empty(&caller->peers) || caller->expiry.set);
    LIST_FOREACH (a, &caller->attempts, in_caller) {
        assert(a->state != ENDING && a->peer && a->deadline.set);
        assert((a->state == ASKING) == (a->request.attempt != NULL));
    }
    assert(calls <= caller->calls);
    assert(calls <=
           KUBE_WEBHOOK_CALLS_MAX + KUBE_WEBHOOK_CALLS_RESERVED * (size_t)KUBE_WEBHOOK_TARGETS_MAX);
    assert(caller->calls == list_length(&caller->attempts) + list_length(&caller->ending));
}
