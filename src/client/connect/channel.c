#include "client/connect/channel.h"

#include "base/random.h"
#include "client/connect/connection.h"
#include "client/connect/error.h"
#include "client/connect/metadata.h"
#include "client/names/endpoint_list.h"
#include "client/names/resolver.h"
#include "codec/pb/rpc.pb.h"
#include "io/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>

enum { FAILURE_BYTES = 512, SCRATCH_BYTES = 1024 };
#define KEEPALIVE_NS_MAX (INT64_C(7200) * NS_PER_S)
#define BACKOFF_NS_MIN (1 * NS_PER_MS)
#define MOVE_NS (10 * NS_PER_S) /* between moves of lasting calls to another connection */

enum channel_state {
    CHANNEL_IDLE,
    CHANNEL_RESOLVING, /* the SRV records */
    CHANNEL_CONNECTING,
    CHANNEL_AUTHENTICATING,
    CHANNEL_READY,
    CHANNEL_PAUSING,
};

/* A connection of the channel: the one in use, or one that only finishes its calls. */
struct link {
    struct channel *channel;
    struct connection *connection; /* owned */
    struct list in_old;            /* links channel.old; alone while it is in use */
    struct list lasting;           /* channel_lasting.in_link */
    bool avoided;
};

struct channel {
    struct loop *loop;
    struct channel_options options; /* its texts are owned */
    struct connector connector;
    struct resolver *resolver;
    struct tls_client_source *tls; /* NULL: not configured */
    struct endpoint_list endpoints;
    size_t next_endpoint;
    struct lookup *lookup; /* of SRV records, while resolving */

    enum channel_state state;
    struct link *current; /* NULL: no connection is in use */
    struct list old;      /* link.in_old */
    struct list waiters;  /* channel_waiter.in_channel */
    size_t failed;        /* endpoints that failed since the last success or pause */
    int64_t backoff_ns;   /* the next pause */
    int64_t opened_ns;    /* when the latest connection was opened */
    bool worked;          /* see channel_worked */
    struct timer pause;
    struct timer move;     /* lasting calls are moved to another connection */
    int64_t move_again_ns; /* not before this time */
    struct random random;
    uint64_t generation;

    struct grpc_client_call auth; /* open only while authenticating */
    struct timer auth_limit;      /* set only while authenticating */
    bool auth_answered;
    struct buf token;
    struct client_heads heads;
    bool token_wanted; /* the token was refused: another one is fetched first */
    bool rejected;     /* the waiters fail because of it, just now */
    bool ending;
    char failure[FAILURE_BYTES];
    struct channel_stats stats;
};

/* -- States -- */

#define TO(state) (1u << CHANNEL_##state)

/* Drawn in channel.h. */
static const uint8_t moves[] = {
    [CHANNEL_IDLE] = TO(RESOLVING) | TO(CONNECTING) | TO(PAUSING),
    [CHANNEL_RESOLVING] = TO(CONNECTING) | TO(PAUSING) | TO(IDLE),
    [CHANNEL_CONNECTING] = TO(AUTHENTICATING) | TO(READY) | TO(PAUSING) | TO(IDLE),
    [CHANNEL_AUTHENTICATING] = TO(READY) | TO(PAUSING) | TO(IDLE),
    [CHANNEL_READY] = TO(AUTHENTICATING) | TO(PAUSING) | TO(IDLE),
    [CHANNEL_PAUSING] = TO(RESOLVING) | TO(CONNECTING) | TO(IDLE),
};

static void move(struct channel *channel, enum channel_state next)
{
    assert(moves[channel->state] & (1u << next));
    channel->state = next;
}

static void log_line(struct channel *channel, int level, const char *text)
{
    if (channel->options.log)
        channel->options.log(channel->options.ctx, level, text);
}

static void note_failure(struct channel *channel, const char *text)
{
    snprintf(channel->failure, sizeof(channel->failure), "%s", text);
    log_line(channel, VIGIL_LOG_WARN, text);
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* -- Waiters -- */

static void wait_on(struct channel *channel, struct channel_waiter *waiter)
{
    if (!waiter->in_channel.next)
        list_init(&waiter->in_channel);
    if (list_empty(&waiter->in_channel))
        list_push_back(&channel->waiters, &waiter->in_channel);
}

void channel_waiter_cancel(struct channel_waiter *waiter)
{
    if (waiter->in_channel.next)
        list_remove(&waiter->in_channel);
}

/* In order, until one has to wait again: then there is no room for the others either, and trying
 * each of them whenever a stream ends would cost their number squared. */
static void wake_waiters(struct channel *channel)
{
    struct list woken;
    list_init(&woken);
    list_append(&woken, &channel->waiters);
    while (list_empty(&channel->waiters) && !list_empty(&woken)) {
        struct list *link = list_pop_front(&woken);
        struct channel_waiter *waiter = LIST_ENTRY(link, struct channel_waiter, in_channel);
        waiter->ready(waiter);
    }
    list_append(&channel->waiters, &woken);
}

/* -- Credentials -- */

static struct slice via_of(const struct channel *channel, const struct channel_request *request)
{
    const char *usual = channel->options.via;
    return request->via.len ? request->via : slice_from_text(usual ? usual : "vigil");
}

static enum status start_call(struct channel *channel, struct grpc_client_call *call,
                              const struct channel_request *request)
{
    AUTO(grpc_head_unrefp) struct grpc_head *head = NULL;
    struct h2_session *session = connection_session(channel->current->connection);
    if (!session)
        return ST_CLOSED;
    struct client_credentials credentials = {
        .token = request->caller ? *request->caller : buf_slice(&channel->token),
        .via = request->caller ? via_of(channel, request) : SLICE_EMPTY,
        .is_usual = !request->via.len,
        .require_leader = request->require_leader,
        .metadata = request->metadata,
    };
    TRY(client_heads_find(&channel->heads, channel->current->connection, &credentials, &head));
    struct grpc_client_request start = {
        .head = head,
        .path = request->path,
        .deadline_ns = request->deadline_ns,
        .receive_max = (uint32_t)size_min(request->receive_max ? request->receive_max
                                                               : channel->options.receive_bytes_max,
                                          UINT32_MAX),
        .replayable = request->replayable,
    };
    TRY(grpc_client_call_start(call, session, &start));
    if (request->lasting)
        list_push_back(&channel->current->lasting, &request->lasting->in_link);
    return ST_OK;
}

/* -- Connecting -- */

static void connect_next(struct channel *channel);
static void become_ready(struct channel *channel);
static void authenticate(struct channel *channel);

int64_t channel_next_pause(struct channel *channel, int64_t *backoff_ns)
{
    const struct channel_options *o = &channel->options;
    int64_t pause = *backoff_ns ? *backoff_ns : o->backoff_min_ns;
    *backoff_ns = pause > o->backoff_max_ns / 2 ? o->backoff_max_ns : pause * 2;
    return random_between(&channel->random, pause - pause / 5, pause + pause / 5);
}

static void pause_then_connect(struct channel *channel)
{
    int64_t pause = channel_next_pause(channel, &channel->backoff_ns);
    channel->failed = 0;
    move(channel, CHANNEL_PAUSING);
    loop_timer_set(channel->loop, &channel->pause, loop_now_ns(channel->loop) + pause);
}

/* After a failure: the next endpoint, or a pause if all have failed. */
static void go_on(struct channel *channel)
{
    channel->failed++;
    if (list_empty(&channel->waiters)) {
        channel->failed = 0;
        move(channel, CHANNEL_IDLE);
    } else if (channel->failed >= channel->endpoints.count) {
        pause_then_connect(channel);
    } else {
        move(channel, CHANNEL_IDLE);
        connect_next(channel);
    }
}

/* After the loss of a connection that was ready. Another one follows at once if that one was of use
 * or lasted longer than the next pause: a server that accepts connections and breaks them is not
 * called in a busy loop. */
static void connect_again(struct channel *channel)
{
    int64_t lasted_ns = loop_now_ns(channel->loop) - channel->opened_ns;
    if (!channel->worked && lasted_ns <= channel->backoff_ns) {
        go_on(channel);
        return;
    }
    channel->failed = 0;
    channel->backoff_ns = channel->options.backoff_min_ns;
    move(channel, CHANNEL_IDLE);
    if (!list_empty(&channel->waiters))
        connect_next(channel);
}

static void link_free(struct link *link)
{
    list_remove(&link->in_old);
    connection_free(link->connection);
    free(link);
}

/* The connection is not used for new calls any more, nor for the authentication under way. */
static void retire(struct channel *channel)
{
    struct link *link = channel->current;
    channel->current = NULL;
    channel->generation++;
    client_heads_drop(&channel->heads);
    list_push_back(&channel->old, &link->in_old);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    grpc_client_call_cancel(&channel->auth);
}

static void on_open(void *owner)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    char text[ENDPOINT_TEXT_BYTES + 32];
    assert(link == channel->current && channel->state == CHANNEL_CONNECTING);
    channel->stats.connects++;
    channel->opened_ns = loop_now_ns(channel->loop);
    channel->worked = false;
    snprintf(text, sizeof(text), "connected to %s", connection_endpoint(link->connection)->text);
    log_line(channel, VIGIL_LOG_INFO, text);
    if (channel->options.user)
        authenticate(channel);
    else
        become_ready(channel);
}

static void on_draining(void *owner, enum h2_error code, const char *text)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    int64_t *keepalive = &channel->connector.options.h2.keepalive_ns;
    if (code == H2_ENHANCE_YOUR_CALM && strcmp(text, "too_many_pings") == 0 &&
        *keepalive < KEEPALIVE_NS_MAX / 2)
        *keepalive *= 2;
    if (link != channel->current)
        return;
    log_line(channel, VIGIL_LOG_INFO, "the server closes the connection");
    channel->stats.disconnects += channel->state == CHANNEL_READY;
    retire(channel);
    connect_again(channel);
}

static void on_room(void *owner)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    if (link != channel->current || channel->state != CHANNEL_READY)
        return;
    channel->failure[0] = '\0';
    wake_waiters(channel);
}

static void on_closed(void *owner, const struct error *error)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    bool was_ready = channel->state == CHANNEL_READY;
    if (link != channel->current) {
        link_free(link);
        return;
    }
    note_failure(channel, error->text);
    retire(channel);
    link_free(link);
    if (was_ready) {
        channel->stats.disconnects++;
        connect_again(channel);
    } else {
        channel->stats.connect_errors++;
        go_on(channel);
    }
}

static enum status link_new(struct channel *channel, const struct endpoint *endpoint)
{
    struct link *link = calloc(1, sizeof(*link));
    if (!link)
        return ST_NOMEM;
    link->channel = channel;
    list_init(&link->in_old);
    list_init(&link->lasting);
    struct connection_hooks hooks = {on_open, on_draining, on_room, on_closed, link};
    enum status status =
        connection_new(&channel->connector, endpoint, SESSION_HTTP2, hooks, &link->connection);
    if (status != ST_OK) {
        free(link);
        return status;
    }
    channel->current = link;
    channel->generation++;
    return ST_OK;
}

static void connect_endpoint(struct channel *channel)
{
    const struct endpoint *endpoint =
        endpoint_list_at(&channel->endpoints, channel->next_endpoint++);
    move(channel, CHANNEL_CONNECTING);
    if (link_new(channel, endpoint) == ST_OK)
        return;
    note_failure(channel, "out of memory");
    pause_then_connect(channel);
}

/* -- SRV records -- */

void channel_take_targets(struct channel *channel, const struct lookup_result *result)
{
    const char *fault = endpoint_list_take(&channel->endpoints, result);
    if (fault)
        note_failure(channel, fault);
    else
        channel->next_endpoint = 0; /* the targets are in the order in which to try them */
}

static void on_targets(void *owner, const struct lookup_result *result)
{
    struct channel *channel = owner;
    channel->lookup = NULL;
    channel_take_targets(channel, result);
    if (channel->endpoints.count)
        connect_endpoint(channel);
    else
        pause_then_connect(channel);
}

enum status channel_look_up(struct channel *channel, struct lookup_hooks hooks,
                            struct lookup **ret_lookup)
{
    return endpoint_list_look_up(&channel->endpoints, channel->resolver, hooks, ret_lookup);
}

static void look_up_targets(struct channel *channel)
{
    struct lookup_hooks hooks = {on_targets, channel};
    move(channel, CHANNEL_RESOLVING);
    if (channel_look_up(channel, hooks, &channel->lookup) == ST_OK)
        return;
    note_failure(channel, "cannot look up the SRV records");
    pause_then_connect(channel);
}

/* The records are looked up again after every endpoint has failed once. */
static void connect_next(struct channel *channel)
{
    if (channel->options.srv_domain && channel->failed == 0)
        look_up_targets(channel);
    else
        connect_endpoint(channel);
}

static void on_pause_over(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, pause);
    connect_next(channel);
}

/* -- Authentication -- */

static void become_ready(struct channel *channel)
{
    channel->failure[0] = '\0';
    channel->generation++;
    client_heads_drop(&channel->heads);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    move(channel, CHANNEL_READY);
    wake_waiters(channel);
}

/* The server refuses the user: everything that waits fails. The next call tries once more. */
static void reject(struct channel *channel, struct slice text)
{
    char line[FAILURE_BYTES];
    snprintf(line, sizeof(line), "cannot authenticate: %.*s", SLICE_ARGS(text));
    note_failure(channel, line);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    channel->rejected = true;
    wake_waiters(channel);
    channel->rejected = false;
    channel->token_wanted = true;
    move(channel, CHANNEL_READY);
}

static void on_auth_message(struct grpc_client_call *call, struct slice message)
{
    struct channel *channel = CONTAINER_OF(call, struct channel, auth);
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
    struct pb_authenticate_response response;
    struct arena arena;
    arena_init(&arena, scratch, sizeof(scratch), SIZE_MAX);
    channel->token.len = 0;
    channel->auth_answered =
        pb_decode(&pb_authenticate_response_table, message, &arena, &response) == ST_OK &&
        buf_append(&channel->token, response.token) == ST_OK;
    arena_fini(&arena);
}

/* A connection that cannot authenticate is not used any more: the next one may. Calls that were
 * started with the old token are finished. */
static void give_up_connection(struct channel *channel, const char *text)
{
    struct link *link = channel->current;
    note_failure(channel, text);
    retire(channel);
    connection_shutdown(link->connection);
    channel->stats.connect_errors++;
    go_on(channel);
}

static void on_auth_limit(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, auth_limit);
    give_up_connection(channel, "cannot authenticate: the server does not answer");
}

/* The server may be able to authenticate later, or another one now. */
static bool is_temporary(const struct grpc_outcome *outcome)
{
    return !outcome->from_peer || outcome->code == GRPC_OK || outcome->code == GRPC_UNAVAILABLE ||
           outcome->code == GRPC_DEADLINE_EXCEEDED || outcome->code == GRPC_CANCELLED ||
           outcome->code == GRPC_RESOURCE_EXHAUSTED;
}

static void on_auth_end(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    struct channel *channel = CONTAINER_OF(call, struct channel, auth);
    if (channel->ending || !channel->current)
        return;
    assert(channel->state == CHANNEL_AUTHENTICATING);
    enum status status = client_status_of(outcome->text);
    if (outcome->code == GRPC_OK && channel->auth_answered) {
        become_ready(channel);
    } else if (outcome->from_peer && status == ST_AUTH_NOT_ENABLED) {
        channel->token.len = 0;
        become_ready(channel);
    } else if (!connection_session(channel->current->connection)) {
        return; /* it is closed: on_closed follows */
    } else if (is_temporary(outcome)) {
        give_up_connection(channel, "the server cannot authenticate now");
    } else {
        reject(channel, outcome->text);
    }
}

static enum status start_authentication(struct channel *channel)
{
    static const struct grpc_client_ops ops = {.on_message = on_auth_message,
                                               .on_end = on_auth_end};
    AUTO(buf_fini) struct buf message = {0};
    struct pb_authenticate_request request = {
        .name = slice_from_text(channel->options.user),
        .password = slice_from_text(channel->options.password ? channel->options.password : ""),
    };
    struct channel_request start = {
        .path = SLICE_LITERAL("/etcdserverpb.Auth/Authenticate"),
        .deadline_ns = clock_add(loop_now_ns(channel->loop), channel->options.connect_timeout_ns),
    };
    channel->token.len = 0;
    channel->auth_answered = false;
    client_heads_drop(&channel->heads);
    TRY(pb_append(&pb_authenticate_request_table, &request, &message));
    channel->auth.ops = &ops;
    grpc_client_call_clear(&channel->auth); /* an attempt that could not be started */
    TRY(grpc_client_call_send(&channel->auth, buf_slice(&message)));
    grpc_client_call_half_close(&channel->auth);
    return start_call(channel, &channel->auth, &start);
}

static void authenticate(struct channel *channel)
{
    enum status status = start_authentication(channel);
    channel->token_wanted = status == ST_AGAIN || status == ST_CLOSED;
    if (channel->token_wanted && channel->state == CHANNEL_READY)
        return; /* on_room, on_draining or on_closed follows, and the waiters then try again */
    move(channel, CHANNEL_AUTHENTICATING);
    if (status == ST_OK)
        loop_timer_set(channel->loop, &channel->auth_limit,
                       clock_add(loop_now_ns(channel->loop), channel->options.connect_timeout_ns));
    else
        give_up_connection(channel, "cannot authenticate: out of memory, or no stream is allowed");
}

bool channel_renew_token(struct channel *channel, uint64_t generation)
{
    if (!channel->options.user)
        return false;
    if (channel->state == CHANNEL_READY && generation == channel->generation)
        channel->token_wanted = true;
    return true;
}

bool channel_has_token(const struct channel *channel)
{
    return channel->token.len > 0;
}

/* -- Calls -- */

/* A call waits although the connection is ready. If the server allows no streams at all, another
 * endpoint may; the only one is kept, because it may allow them later. */
static void leave_without_streams(struct channel *channel)
{
    static const char reason[] = "the server allows no streams";
    struct h2_session *session = connection_session(channel->current->connection);
    if (!session || h2_session_peer_streams_max(session) > 0)
        return;
    if (channel->endpoints.count > 1)
        give_up_connection(channel, reason);
    else
        memcpy(channel->failure, reason, sizeof(reason));
}

enum status channel_start(struct channel *channel, struct grpc_client_call *call,
                          const struct channel_request *request, struct channel_waiter *waiter)
{
    if (channel->state == CHANNEL_READY && !channel->token_wanted) {
        enum status status = start_call(channel, call, request);
        if (status != ST_AGAIN && status != ST_CLOSED)
            return status;
    }
    wait_on(channel, waiter);
    if (channel->state == CHANNEL_READY && channel->token_wanted)
        authenticate(channel);
    if (channel->state == CHANNEL_READY)
        leave_without_streams(channel);
    else if (channel->state == CHANNEL_IDLE)
        connect_next(channel);
    return ST_AGAIN;
}

/* -- Avoiding an endpoint -- */

void channel_lasting_end(struct channel_lasting *lasting)
{
    if (lasting->in_link.next)
        list_remove(&lasting->in_link);
}

static void on_move(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, move);
    struct channel_lasting *lasting, *next_lasting;
    struct link *link;
    channel->move_again_ns = loop_now_ns(channel->loop) + MOVE_NS;
    LIST_FOREACH (link, &channel->old, in_old)
        LIST_FOREACH_SAFE (lasting, next_lasting, &link->lasting, in_link)
            if (link->avoided)
                lasting->avoided(lasting);
}

/* They may be many, and an endpoint may be unavailable for some calls only; so not too often. */
static void move_lasting(struct channel *channel)
{
    int64_t now = loop_now_ns(channel->loop);
    if (!channel->move.set)
        loop_timer_set(channel->loop, &channel->move, max_ns(now, channel->move_again_ns));
}

void channel_avoid(struct channel *channel, uint64_t generation)
{
    struct link *link = channel->current;
    if (channel->state != CHANNEL_READY || generation != channel->generation ||
        channel->endpoints.count < 2)
        return;
    link->avoided = true;
    move_lasting(channel);
    retire(channel);
    connection_shutdown(link->connection);
    move(channel, CHANNEL_IDLE);
    if (!list_empty(&channel->waiters))
        connect_next(channel);
}

void channel_worked(struct channel *channel, uint64_t generation)
{
    if (generation == channel->generation)
        channel->worked = true;
}

uint64_t channel_generation(const struct channel *channel)
{
    return channel->generation;
}

bool channel_is_ready(const struct channel *channel)
{
    return channel->state == CHANNEL_READY;
}

const char *channel_endpoint(const struct channel *channel)
{
    return channel->current ? connection_endpoint(channel->current->connection)->text : "";
}

const char *channel_failure(const struct channel *channel)
{
    return channel->failure;
}

bool channel_is_rejected(const struct channel *channel)
{
    return channel->rejected;
}

struct channel_stats channel_stats(const struct channel *channel)
{
    struct channel_stats stats = channel->stats;
    stats.bytes_sent = channel->connector.stats.bytes_sent;
    stats.bytes_received = channel->connector.stats.bytes_received;
    return stats;
}

/* -- Connections of HTTP/1.1 -- */

struct connector *channel_connector(struct channel *channel)
{
    return &channel->connector;
}

const struct endpoint_list *channel_endpoints(const struct channel *channel)
{
    return &channel->endpoints;
}

const struct channel_options *channel_get_options(const struct channel *channel)
{
    return &channel->options;
}

void channel_report(struct channel *channel, enum channel_news news, const char *text)
{
    channel->stats.connects += news == CHANNEL_CONNECTED;
    channel->stats.connect_errors += news == CHANNEL_CONNECT_FAILED;
    channel->stats.disconnects += news == CHANNEL_DISCONNECTED;
    log_line(channel, news == CHANNEL_CONNECTED ? VIGIL_LOG_INFO : VIGIL_LOG_WARN, text);
}

/* -- Life -- */

static void open_connector(struct channel *channel, struct network *network)
{
    const struct channel_options *o = &channel->options;
    struct connector_options options = CONNECTOR_OPTIONS_DEFAULT;
    options.loop = channel->loop;
    options.network = network;
    options.resolver = channel->resolver;
    options.tls = channel->tls;
    options.server_name = or_empty(o->server_name);
    options.connect_timeout_ns = o->connect_timeout_ns;
    options.h2.keepalive_ns = o->keepalive_ns;
    options.h2.keepalive_timeout_ns = o->keepalive_timeout_ns;
    connector_init(&channel->connector, &options);
}

static enum status channel_init(struct channel *channel, struct network *network,
                                const struct channel_options *options, struct error *error)
{
    uint64_t seed = random_seed_system();
    TRY(channel_options_copy(options, &channel->options));
    if (!channel->options.srv_domain)
        TRY(endpoint_list_parse(&channel->endpoints, or_empty(channel->options.endpoints), error));
    TRY(channel_options_open_tls(&channel->options, &channel->endpoints, &channel->tls, error));
    channel->endpoints.srv_domain = channel->options.srv_domain;
    channel->endpoints.srv_name = channel->options.srv_name;
    channel->endpoints.srv_secure = channel->tls != NULL;
    TRY(resolver_new(channel->loop, &resolver_system, seed, &channel->resolver));
    open_connector(channel, network);
    if (channel->options.token)
        TRY(buf_append_text(&channel->token, channel->options.token));
    random_init(&channel->random, seed);
    if (channel->endpoints.count)
        channel->next_endpoint = random_below(&channel->random, channel->endpoints.count);
    channel->options.backoff_min_ns = max_ns(channel->options.backoff_min_ns, BACKOFF_NS_MIN);
    channel->options.backoff_max_ns =
        max_ns(channel->options.backoff_max_ns, channel->options.backoff_min_ns);
    channel->backoff_ns = channel->options.backoff_min_ns;
    return ST_OK;
}

enum status channel_new(struct loop *loop, struct network *network,
                        const struct channel_options *options, struct channel **ret_channel,
                        struct error *error)
{
    AUTO(channel_freep) struct channel *channel = calloc(1, sizeof(*channel));
    if (!channel)
        return ST_NOMEM;
    channel->loop = loop;
    channel->pause.fn = on_pause_over;
    channel->move.fn = on_move;
    channel->auth_limit.fn = on_auth_limit;
    list_init(&channel->old);
    list_init(&channel->waiters);
    TRY(channel_init(channel, network, options, error));
    *ret_channel = TAKE(channel);
    return ST_OK;
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    assert(list_empty(&channel->waiters));
    channel->ending = true;
    loop_timer_cancel(channel->loop, &channel->pause);
    loop_timer_cancel(channel->loop, &channel->move);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    lookup_cancel(channel->lookup);
    if (channel->current)
        link_free(channel->current);
    while (!list_empty(&channel->old))
        link_free(LIST_ENTRY(channel->old.next, struct link, in_old));
    grpc_client_call_fini(&channel->auth);
    client_heads_drop(&channel->heads);
    if (channel->connector.options.loop)
        connector_fini(&channel->connector);
    resolver_free(channel->resolver);
    tls_client_source_free(channel->tls);
    endpoint_list_fini(&channel->endpoints);
    buf_fini(&channel->token);
    channel_options_fini(&channel->options);
    free(channel);
}

void channel_check(const struct channel *channel)
{
    bool connected = channel->state == CHANNEL_CONNECTING ||
                     channel->state == CHANNEL_AUTHENTICATING || channel->state == CHANNEL_READY;
    assert(connected == (channel->current != NULL));
    assert((channel->state == CHANNEL_RESOLVING) == (channel->lookup != NULL));
    assert((channel->state == CHANNEL_PAUSING) == channel->pause.set);
    assert((channel->state == CHANNEL_AUTHENTICATING) == channel->auth_limit.set);
    assert(channel->backoff_ns <= channel->options.backoff_max_ns);
}
