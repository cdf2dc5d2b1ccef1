#include "client/connect/channel.h"

#include "client/connect/channel_internal.h"
#include "client/names/resolver.h"
#include "io/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>

#define KEEPALIVE_NS_MAX (INT64_C(7200) * NS_PER_S)
#define BACKOFF_NS_MIN (1 * NS_PER_MS)
#define MOVE_NS (10 * NS_PER_S)      /* between moves of lasting calls to another connection */
#define ATTEMPT_NS (250 * NS_PER_MS) /* until another endpoint is tried at the same time */
#define BLAME_NS (1 * NS_PER_S)      /* from the opening of a connection; see channel_blame */

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

void channel_move(struct channel *channel, enum channel_state next)
{
    assert(moves[channel->state] & (1u << next));
    channel->state = next;
}

static void log_line(struct channel *channel, int level, const char *text)
{
    if (channel->options.log)
        channel->options.log(channel->options.ctx, level, text);
}

void channel_note_failure(struct channel *channel, const char *text)
{
    snprintf(channel->failure, sizeof(channel->failure), "%s", text);
    log_line(channel, VIGIL_LOG_WARN, text);
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* -- Waiters -- */

void channel_waiter_cancel(struct channel_waiter *waiter)
{
    if (waiter->in_channel.next)
        list_remove(&waiter->in_channel);
}

/* In order, until one has to wait again: then there is no room for the others either, and trying
 * each of them whenever a stream ends would cost their number squared. */
void channel_wake_waiters(struct channel *channel)
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

enum status channel_start_call(struct channel *channel, struct grpc_client_call *call,
                               const struct channel_request *request)
{
    AUTO(grpc_head_unrefp) struct grpc_head *head = NULL;
    struct h2_session *session = connection_session(channel->current->connection);
    if (!session)
        return ST_CLOSED;
    /* A call that is passed on for another client has the credentials of that client, and says
     * which servers it has come through, so that servers that pass calls to each other notice a
     * circle.
     */
    struct slice via = request->via;
    if (request->caller && !via.len)
        via = slice_from_text(channel->options.via ? channel->options.via : "vigil");
    struct client_credentials credentials = {
        .token = request->caller ? *request->caller : buf_slice(&channel->token),
        .via = request->caller ? via : SLICE_EMPTY,
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
static void begin_attempt(struct channel *channel);

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
    channel->tried = 0;
    channel_move(channel, CHANNEL_PAUSING);
    loop_timer_set(channel->loop, &channel->pause, loop_now_ns(channel->loop) + pause);
}

/* After a failure, while nothing is being opened: the next endpoint, or a pause if all have failed.
 */
static void go_on(struct channel *channel)
{
    if (list_empty(&channel->waiters)) {
        channel->tried = 0;
        channel_move(channel, CHANNEL_IDLE);
    } else if (channel->tried >= channel->endpoints.count) {
        pause_then_connect(channel);
    } else {
        channel_move(channel, CHANNEL_IDLE);
        connect_next(channel);
    }
}

/* After the loss of a connection that was ready. Another one follows at once if that one was of use
 * or lasted longer than the next pause: a server that accepts connections and breaks them is not
 * called in a busy loop. If nothing waits, the next call or stream that begins connects. */
static void connect_again(struct channel *channel)
{
    int64_t lasted_ns = loop_now_ns(channel->loop) - channel->opened_ns;
    if (!channel->worked && lasted_ns <= channel->backoff_ns) {
        go_on(channel);
        return;
    }
    channel->tried = 0;
    channel->backoff_ns = channel->options.backoff_min_ns;
    channel_move(channel, CHANNEL_IDLE);
    if (!list_empty(&channel->waiters))
        connect_next(channel);
}

static void link_free(struct link *link)
{
    list_remove(&link->in_channel);
    connection_free(link->connection);
    free(link);
}

static void end_attempts(struct channel *channel)
{
    loop_timer_cancel(channel->loop, &channel->next_attempt);
    while (!list_empty(&channel->attempts)) {
        link_free(LIST_ENTRY(channel->attempts.next, struct link, in_channel));
        channel->tried--;
    }
}

/* The connection is not used for new calls any more, nor for the authentication under way. */
static void retire(struct channel *channel)
{
    struct link *link = channel->current;
    channel->current = NULL;
    channel->generation++;
    client_heads_drop(&channel->heads);
    list_push_back(&channel->old, &link->in_channel);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    grpc_client_call_cancel(&channel->auth);
}

static void on_open(void *owner)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    char text[ENDPOINT_TEXT_BYTES + 32];
    assert(link->is_attempt && channel->state == CHANNEL_CONNECTING && !channel->current);
    list_remove(&link->in_channel);
    link->is_attempt = false;
    channel->current = link;
    channel->generation++;
    end_attempts(channel); /* the others are slower */
    counter_add_alone(&channel->counters.connects, 1);
    channel->opened_ns = loop_now_ns(channel->loop);
    channel->worked = false;
    snprintf(text, sizeof(text), "connected to %s", connection_endpoint(link->connection)->text);
    log_line(channel, VIGIL_LOG_INFO, text);
    if (channel->options.user)
        channel_authenticate(channel);
    else
        channel_become_ready(channel);
}

static void on_draining(void *owner, enum h2_error code, const char *text)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    int64_t *keepalive = &channel->connector.options.h2.keepalive_ns;
    /* This is how gRPC servers say that the client pings too often. Later connections ping less. */
    if (code == H2_ENHANCE_YOUR_CALM && strcmp(text, "too_many_pings") == 0 &&
        *keepalive < KEEPALIVE_NS_MAX / 2)
        *keepalive *= 2;
    if (link != channel->current)
        return;
    log_line(channel, VIGIL_LOG_INFO, "the server closes the connection");
    counter_add_alone(&channel->counters.disconnects, channel->state == CHANNEL_READY);
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
    channel_wake_waiters(channel);
}

static void on_closed(void *owner, const struct error *error)
{
    struct link *link = owner;
    struct channel *channel = link->channel;
    bool was_ready = channel->state == CHANNEL_READY;
    if (link->is_attempt) {
        channel_note_failure(channel, error->text);
        counter_add_alone(&channel->counters.connect_errors, 1);
        link_free(link);
        /* Another endpoint follows at once, if there is one that was not tried. */
        loop_timer_cancel(channel->loop, &channel->next_attempt);
        if (list_empty(&channel->attempts))
            go_on(channel);
        else if (channel->tried < channel->endpoints.count && !list_empty(&channel->waiters))
            begin_attempt(channel);
        return;
    }
    if (link != channel->current) {
        link_free(link);
        return;
    }
    channel_note_failure(channel, error->text);
    retire(channel);
    link_free(link);
    /* A connection that was lost before the server has accepted the user is like one that could not
     * be made. */
    if (was_ready) {
        counter_add_alone(&channel->counters.disconnects, 1);
        connect_again(channel);
    } else {
        counter_add_alone(&channel->counters.connect_errors, 1);
        go_on(channel);
    }
}

static enum status link_new(struct channel *channel, const struct endpoint *endpoint)
{
    struct link *link = calloc(1, sizeof(*link));
    if (!link)
        return ST_NOMEM;
    link->channel = channel;
    link->is_attempt = true;
    list_init(&link->lasting);
    struct connection_hooks hooks = {on_open, on_draining, on_room, on_closed, link};
    enum status status =
        connection_new(&channel->connector, endpoint, SESSION_HTTP2, hooks, &link->connection);
    if (status != ST_OK) {
        free(link);
        return status;
    }
    list_push_back(&channel->attempts, &link->in_channel);
    return ST_OK;
}

/* Tries the next endpoint, also beside others that take long: a member that is stopped or cannot be
 * reached does not delay a client that has another one. */
static void begin_attempt(struct channel *channel)
{
    const struct endpoint *endpoint =
        endpoint_list_at(&channel->endpoints, channel->next_endpoint++);
    channel->tried++;
    if (link_new(channel, endpoint) != ST_OK) {
        channel_note_failure(channel, "out of memory");
        channel->tried = channel->endpoints.count;
    }
    if (list_empty(&channel->attempts))
        pause_then_connect(channel);
    else if (channel->tried < channel->endpoints.count)
        loop_timer_set(channel->loop, &channel->next_attempt,
                       loop_now_ns(channel->loop) + ATTEMPT_NS);
}

static void on_next_attempt(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, next_attempt);
    if (list_empty(&channel->waiters)) /* there may be some later */
        loop_timer_set(channel->loop, timer, loop_now_ns(channel->loop) + ATTEMPT_NS);
    else
        begin_attempt(channel);
}

/* -- SRV records -- */

void channel_take_targets(struct channel *channel, const struct lookup_result *result)
{
    const char *fault = endpoint_list_take(&channel->endpoints, result);
    if (fault)
        channel_note_failure(channel, fault);
    else
        channel->next_endpoint = 0; /* the targets are in the order in which to try them */
}

static void on_targets(void *owner, const struct lookup_result *result)
{
    struct channel *channel = owner;
    channel->lookup = NULL;
    channel_take_targets(channel, result);
    /* If the lookup has failed, the endpoints of an earlier one are still good. */
    if (channel->endpoints.count) {
        channel_move(channel, CHANNEL_CONNECTING);
        begin_attempt(channel);
    } else {
        pause_then_connect(channel);
    }
}

static void connect_next(struct channel *channel)
{
    struct lookup_hooks hooks = {on_targets, channel};
    if (!channel->options.srv_domain || channel->tried > 0) {
        channel_move(channel, CHANNEL_CONNECTING);
        begin_attempt(channel);
        return;
    }
    /* The records are looked up again after every endpoint has failed once. */
    channel_move(channel, CHANNEL_RESOLVING);
    if (endpoint_list_look_up(&channel->endpoints, channel->resolver, hooks, &channel->lookup) !=
        ST_OK) {
        channel_note_failure(channel, "cannot look up the SRV records");
        pause_then_connect(channel);
    }
}

static void on_pause_over(struct timer *timer)
{
    connect_next(CONTAINER_OF(timer, struct channel, pause));
}

/* -- Ready -- */

void channel_become_ready(struct channel *channel)
{
    channel->failure[0] = '\0';
    channel->generation++;
    client_heads_drop(&channel->heads);
    loop_timer_cancel(channel->loop, &channel->auth_limit);
    channel_move(channel, CHANNEL_READY);
    channel_wake_waiters(channel);
}

void channel_give_up_connection(struct channel *channel, const char *text)
{
    struct link *link = channel->current;
    channel_note_failure(channel, text);
    retire(channel);
    connection_shutdown(link->connection);
    counter_add_alone(&channel->counters.connect_errors, 1);
    go_on(channel);
}

/* -- Calls -- */

enum status channel_start(struct channel *channel, struct grpc_client_call *call,
                          const struct channel_request *request, struct channel_waiter *waiter)
{
    static const char no_streams[] = "the server allows no streams";
    if (channel->state == CHANNEL_READY && !channel->token_wanted) {
        enum status status = channel_start_call(channel, call, request);
        if (status != ST_AGAIN && status != ST_CLOSED)
            return status;
    }
    if (!waiter->in_channel.next)
        list_init(&waiter->in_channel);
    if (list_empty(&waiter->in_channel))
        list_push_back(&channel->waiters, &waiter->in_channel);
    if (channel->state == CHANNEL_READY && channel->token_wanted)
        channel_authenticate(channel);
    if (channel->state == CHANNEL_IDLE)
        connect_next(channel);
    if (channel->state != CHANNEL_READY)
        return ST_AGAIN;
    /* The call waits although the connection is ready. If the server allows no streams at all,
     * another endpoint may; the only one is kept, because it may allow them later. */
    struct h2_session *session = connection_session(channel->current->connection);
    if (session && h2_session_peer_streams_max(session) == 0) {
        if (channel->endpoints.count > 1)
            channel_give_up_connection(channel, no_streams);
        else
            memcpy(channel->failure, no_streams, sizeof(no_streams));
    }
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
    LIST_FOREACH (link, &channel->old, in_channel)
        LIST_FOREACH_SAFE (lasting, next_lasting, &link->lasting, in_link)
            if (link->avoided)
                lasting->avoided(lasting);
}

void channel_avoid(struct channel *channel, uint64_t generation)
{
    struct link *link = channel->current;
    if (channel->state != CHANNEL_READY || generation != channel->generation ||
        !channel_has_choice(channel))
        return;
    link->avoided = true;
    /* The streams that last on this connection move to another one, too, but not too often: they
     * may be many, and an endpoint may be unavailable for some calls only. */
    int64_t now = loop_now_ns(channel->loop);
    if (!channel->move.set)
        loop_timer_set(channel->loop, &channel->move, max_ns(now, channel->move_again_ns));
    retire(channel);
    connection_shutdown(link->connection);
    channel->tried = 1; /* this one */
    channel_move(channel, CHANNEL_IDLE);
    if (!list_empty(&channel->waiters))
        connect_next(channel);
}

void channel_blame(struct channel *channel, uint64_t generation)
{
    /* If every endpoint fails in the same way, changing them with every call would not help. */
    if (loop_now_ns(channel->loop) - channel->opened_ns >= BLAME_NS)
        channel_avoid(channel, generation);
}

void channel_timed_out(struct channel *channel, uint64_t generation, int64_t sent_ns, bool quorum)
{
    /* If another call was answered since this one was sent, the server works, and it is the request
     * that is slow. */
    if ((quorum ? channel->agreed_ns : channel->worked_ns) < sent_ns)
        channel_blame(channel, generation);
}

void channel_worked(struct channel *channel, uint64_t generation)
{
    if (generation != channel->generation)
        return;
    channel->worked = true;
    channel->worked_ns = loop_now_ns(channel->loop);
}

void channel_agreed(struct channel *channel, uint64_t generation)
{
    if (generation == channel->generation)
        channel->agreed_ns = loop_now_ns(channel->loop);
}

bool channel_has_choice(const struct channel *channel)
{
    return channel->endpoints.count > 1;
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
    const struct link *link = channel->current;
    if (!link && !list_empty(&channel->attempts))
        link = LIST_ENTRY(channel->attempts.prev, struct link, in_channel);
    return link ? connection_endpoint(link->connection)->text : "";
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
    const struct channel_counters *c = &channel->counters;
    return (struct channel_stats){
        .connects = counter_get(&c->connects),
        .connect_errors = counter_get(&c->connect_errors),
        .disconnects = counter_get(&c->disconnects),
        .bytes_sent = counter_get(&channel->connector.counters.bytes_sent),
        .bytes_received = counter_get(&channel->connector.counters.bytes_received),
    };
}

/* -- Connections of HTTP/1.1 -- */

struct connector *channel_connector(struct channel *channel)
{
    return &channel->connector;
}

const struct channel_options *channel_get_options(const struct channel *channel)
{
    return &channel->options;
}

void channel_report(struct channel *channel, enum channel_news news, const char *text)
{
    counter_add_alone(&channel->counters.connects, news == CHANNEL_CONNECTED);
    counter_add_alone(&channel->counters.connect_errors, news == CHANNEL_CONNECT_FAILED);
    counter_add_alone(&channel->counters.disconnects, news == CHANNEL_DISCONNECTED);
    log_line(channel, news == CHANNEL_CONNECTED ? VIGIL_LOG_INFO : VIGIL_LOG_WARN, text);
}

/* -- Life -- */

static enum status channel_init(struct channel *channel, struct network *network,
                                const struct channel_options *options, struct error *error)
{
    uint64_t seed = random_seed_system();
    TRY(channel_options_copy(options, &channel->options));
    if (!channel->options.srv_domain)
        TRY(endpoint_list_parse(&channel->endpoints,
                                channel->options.endpoints ? channel->options.endpoints : "",
                                error));
    TRY(channel_options_open_tls(&channel->options, &channel->endpoints, &channel->tls, error));
    channel->endpoints.srv_domain = channel->options.srv_domain;
    channel->endpoints.srv_name = channel->options.srv_name;
    channel->endpoints.srv_secure = channel->tls != NULL;
    TRY(resolver_new(channel->loop, &resolver_system, seed, &channel->resolver));
    const struct channel_options *o = &channel->options;
    struct connector_options connector = CONNECTOR_OPTIONS_DEFAULT;
    connector.loop = channel->loop;
    connector.network = network;
    connector.resolver = channel->resolver;
    connector.tls = channel->tls;
    connector.server_name = o->server_name ? o->server_name : "";
    connector.connect_timeout_ns = o->connect_timeout_ns;
    connector.h2.keepalive_ns = o->keepalive_ns;
    connector.h2.keepalive_timeout_ns = o->keepalive_timeout_ns;
    connector_init(&channel->connector, &connector);
    if (channel->options.token)
        TRY(buf_append_text(&channel->token, channel->options.token));
    random_init(&channel->random, seed);
    /* Clients with the same list of endpoints do not all begin with the first one. */
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
    channel->auth_limit.fn = channel_on_auth_limit;
    channel->next_attempt.fn = on_next_attempt;
    list_init(&channel->attempts);
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
    end_attempts(channel);
    if (channel->current)
        link_free(channel->current);
    while (!list_empty(&channel->old))
        link_free(LIST_ENTRY(channel->old.next, struct link, in_channel));
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
    bool connected = channel->state == CHANNEL_AUTHENTICATING || channel->state == CHANNEL_READY;
    assert(connected == (channel->current != NULL));
    assert((channel->state == CHANNEL_CONNECTING) == !list_empty(&channel->attempts));
    assert(!channel->next_attempt.set || channel->state == CHANNEL_CONNECTING);
    assert((channel->state == CHANNEL_RESOLVING) == (channel->lookup != NULL));
    assert((channel->state == CHANNEL_PAUSING) == channel->pause.set);
    assert((channel->state == CHANNEL_AUTHENTICATING) == channel->auth_limit.set);
    assert(channel->backoff_ns <= channel->options.backoff_max_ns);
}
