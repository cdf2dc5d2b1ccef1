#include "client/call/call.h"

#include "client/connect/error.h"
#include "client/connect/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAUSE_NS (25 * NS_PER_MS)
#define PAUSE_NS_MAX (1000 * NS_PER_MS)
enum { RENEWALS_MAX = 2 };

#define TO(state) (1u << CALL_##state)

/* Drawn in call.h. */
static const uint8_t moves[] = {
    [CALL_CREATED] = TO(WAITING) | TO(COMPLETED),
    [CALL_WAITING] = TO(SENT) | TO(COMPLETED),
    [CALL_SENT] = TO(WAITING) | TO(PAUSING) | TO(HOLDING) | TO(COMPLETED),
    [CALL_PAUSING] = TO(WAITING) | TO(COMPLETED),
    [CALL_HOLDING] = TO(WAITING) | TO(COMPLETED),
    [CALL_COMPLETED] = 0,
};

void client_call_check(const struct vigil_call *call)
{
    bool waits = call->waiter.in_channel.next && !list_empty(&call->waiter.in_channel);
    assert(atomic_load(&call->operation.refs) > 0);
    assert(!waits || call->state == CALL_WAITING);
    assert(!call->pause.set || call->state == CALL_PAUSING);
    assert(!call->deadline.set || call->state != CALL_COMPLETED);
    assert(call->response == NULL || call->attempts > 0);
    assert(call->state != CALL_HOLDING || (call->method->parts && !call->deadline.set));
    assert(call->state != CALL_SENT || !call->waits_long || !call->deadline.set);
}

/* -- Completion -- */

static void free_call(struct operation *operation)
{
    struct vigil_call *call = CONTAINER_OF(operation, struct vigil_call, operation);
    if (call->method->parts)
        call->method->parts->release(call);
    arena_fini(&call->arena);
    grpc_client_call_fini(&call->grpc);
    queue_item_fini(&call->item);
    free(call);
}

static void publish(struct operation *operation)
{
    struct vigil_call *call = CONTAINER_OF(operation, struct vigil_call, operation);
    if (call->item.queue)
        queue_item_push(&call->item);
}

void client_call_complete(struct vigil_call *call)
{
    struct vigil_client *client = call->client;
    STATE_MOVE(call->state, moves, CALL_COMPLETED);
    channel_waiter_cancel(&call->waiter);
    loop_timer_cancel(client->driver.loop, &call->deadline);
    loop_timer_cancel(client->driver.loop, &call->pause);
    if (call->method->parts)
        call->method->parts->release(call);
    counter_add(&client->counters.calls_completed, 1);
    operation_complete(&call->operation);
}

/* The attempt has ended, and the error is set. */
static void end_attempt(struct vigil_call *call)
{
    if (call->method->parts)
        call->method->parts->end(call);
    else
        client_call_complete(call);
}

/* Before the request was sent, or after the server has certainly ignored it. */
static void fail(struct vigil_call *call, enum vigil_code code, const char *text)
{
    assert(call->state != CALL_SENT);
    client_error_set(&call->operation.error, code, VIGIL_NOT_SENT, "%s", text);
    client_call_complete(call);
}

void client_call_stop(struct vigil_call *call, enum vigil_code code, const char *text)
{
    bool sent = call->state == CALL_SENT || call->state == CALL_HOLDING;
    if (call->state == CALL_COMPLETED)
        return;
    client_error_set(&call->operation.error, code, sent ? VIGIL_UNKNOWN : VIGIL_NOT_SENT, "%s",
                     text);
    call->stopping = true;
    grpc_client_call_cancel(&call->grpc);
    client_call_complete(call);
}

void client_call_stop_for(struct vigil_call *call, enum status status)
{
    if (status == ST_NOMEM)
        client_call_stop(call, VIGIL_ERROR_MEMORY, "out of memory");
    else if (status == ST_LIMIT)
        client_call_stop(call, VIGIL_ERROR_TOO_LARGE,
                         "the response takes too much memory when it is decoded");
    else
        client_call_stop(call, VIGIL_ERROR_PROTOCOL,
                         "the server sent a response that is not valid");
}

/* Parts of a response do not tell whether the server has a quorum. */
static bool needs_quorum(const struct vigil_call *call)
{
    return !call->alone && !call->method->parts;
}

static void on_deadline(struct timer *timer)
{
    struct vigil_call *call = CONTAINER_OF(timer, struct vigil_call, deadline);
    if (call->state == CALL_SENT && call->client->channel)
        channel_timed_out(call->client->channel, call->generation, call->sent_ns,
                          needs_quorum(call));
    const char *failure = channel_failure(call->client->channel);
    if (!*failure)
        failure = call->operation.error.text; /* error of an earlier attempt */
    if (!*failure && call->waits_long)
        failure = "no server could be reached";
    char text[VIGIL_ERROR_TEXT_BYTES];
    if (call->state == CALL_SENT || !*failure) {
        snprintf(text, sizeof(text), "no answer within %" PRId64 " ms", call->timeout_ms);
        client_call_stop(call, VIGIL_ERROR_TIMEOUT, text);
    } else {
        snprintf(text, sizeof(text), "%.190s (for %" PRId64 " ms)", failure, call->timeout_ms);
        client_call_stop(call, VIGIL_ERROR_UNAVAILABLE, text);
    }
}

static void set_deadline(struct vigil_call *call, int64_t now_ns)
{
    if (call->timeout_ms <= 0 || (call->waits_long && call->state == CALL_SENT))
        return;
    call->reach_by_ns = clock_add(now_ns, driver_ns(call->timeout_ms));
    loop_timer_set(call->client->driver.loop, &call->deadline, call->reach_by_ns);
}

/* The time of the turn may be long ago, if the user's callback took long. */
void client_call_restart_clock(struct vigil_call *call)
{
    set_deadline(call, clock_mono_ns(loop_clock(call->client->driver.loop)));
}

void client_call_stop_clock(struct vigil_call *call)
{
    loop_timer_cancel(call->client->driver.loop, &call->deadline);
}

/* -- Attempts -- */

static void try_to_send(struct vigil_call *call)
{
    struct vigil_client *client = call->client;
    /* The deadline of a stream of parts moves with every part. */
    bool moves_deadline = call->method->parts && call->method->parts->receive;
    bool for_server = call->deadline.set && !moves_deadline && !call->waits_long;
    struct channel_request request = {
        .path = slice_from_text(call->method->path),
        .deadline_ns = for_server ? call->deadline.at_ns : CLOCK_NEVER,
        .replayable = true,
    };
    assert(call->state == CALL_WAITING);
    if (channel_is_rejected(client->channel)) {
        fail(call, VIGIL_ERROR_UNAUTHENTICATED, channel_failure(client->channel));
        return;
    }
    enum status status = channel_start(client->channel, &call->grpc, &request, &call->waiter);
    if (status == ST_AGAIN)
        return;
    if (status == ST_NOMEM) {
        fail(call, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    if (status != ST_OK) {
        fail(call, VIGIL_ERROR_ARGUMENT, CHANNEL_BAD_CREDENTIALS);
        return;
    }
    STATE_MOVE(call->state, moves, CALL_SENT);
    if (call->waits_long)
        client_call_stop_clock(call);
    call->attempts++;
    call->generation = channel_generation(client->channel);
    call->sent_ns = loop_now_ns(client->driver.loop);
}

static void on_channel_ready(struct channel_waiter *waiter)
{
    try_to_send(CONTAINER_OF(waiter, struct vigil_call, waiter));
}

static void on_pause_over(struct timer *timer)
{
    struct vigil_call *call = CONTAINER_OF(timer, struct vigil_call, pause);
    STATE_MOVE(call->state, moves, CALL_WAITING);
    try_to_send(call);
}

void client_call_drop_response(struct vigil_call *call)
{
    call->response = NULL;
    arena_fini(&call->arena);
    arena_init(&call->arena, NULL, 0, client_decode_bytes_max(call->client));
}

void client_call_progressed(struct vigil_call *call)
{
    call->attempts = 1;
    call->renewals = 0;
}

void client_call_hold(struct vigil_call *call)
{
    STATE_MOVE(call->state, moves, CALL_HOLDING);
}

void client_call_continue(struct vigil_call *call)
{
    client_call_drop_response(call);
    call->attempts = call->renewals = 0;
    client_call_restart_clock(call);
    STATE_MOVE(call->state, moves, CALL_WAITING);
    try_to_send(call);
}

static void try_again(struct vigil_call *call, bool at_once)
{
    struct vigil_client *client = call->client;
    counter_add(&client->counters.calls_retried, 1);
    client_call_drop_response(call);
    if (call->method->parts && call->method->parts->repeat)
        call->method->parts->repeat(call);
    int64_t now_ns = loop_now_ns(client->driver.loop);
    STATE_MOVE(call->state, moves, at_once ? CALL_WAITING : CALL_PAUSING);
    /* The timeout of a call that waits long ended when it was sent, and begins again because the
     * server has not processed it. It ends at the same time as before, so that a server that breaks
     * one attempt after the other does not prolong it. */
    if (call->waits_long && now_ns >= call->reach_by_ns)
        set_deadline(call, now_ns);
    else if (call->waits_long)
        loop_timer_set(client->driver.loop, &call->deadline, call->reach_by_ns);
    if (at_once) {
        try_to_send(call);
        return;
    }
    int64_t pause = PAUSE_NS << (call->attempts < 6 ? call->attempts - 1 : 5);
    loop_timer_set(client->driver.loop, &call->pause,
                   now_ns + (pause < PAUSE_NS_MAX ? pause : PAUSE_NS_MAX));
}

/* -- What the connection says -- */

struct slice client_call_request(const struct vigil_call *call)
{
    struct slice output = buf_slice(&call->grpc.output);
    return slice_sub(output, GRPC_PREFIX_BYTES, output.len - GRPC_PREFIX_BYTES);
}

void client_call_take_response(struct vigil_call *call, void *response)
{
    if (call->client->prefix.len && call->method->strip)
        call->method->strip(response, call->client->prefix.len);
    call->response = response;
}

enum status client_call_decode(struct vigil_call *call, struct slice message)
{
    void *response = arena_alloc(&call->arena, call->method->response->struct_bytes);
    if (!response)
        return ST_NOMEM;
    TRY(pb_decode(call->method->response, message, &call->arena, response));
    client_call_take_response(call, response);
    return ST_OK;
}

static void on_message(struct grpc_client_call *grpc, struct slice message)
{
    struct vigil_call *call = CONTAINER_OF(grpc, struct vigil_call, grpc);
    const struct client_part_ops *parts = call->method->parts;
    enum status status;
    struct slice bytes;
    if (parts && parts->receive) {
        status = parts->receive(call, message);
    } else if (call->response) {
        status = ST_MALFORMED; /* one response too many */
    } else {
        /* The message is only valid inside this callback, but the decoded response refers to its
         * bytes until the user frees the call. */
        status = arena_dup(&call->arena, message, &bytes);
        if (status == ST_OK)
            status = client_call_decode(call, bytes);
    }
    if (status != ST_OK)
        client_call_stop_for(call, status);
}

/* The server answered with an error. */
static void refused(struct vigil_call *call, const struct grpc_outcome *outcome)
{
    struct channel *channel = call->client->channel;
    enum status status = client_status_of(outcome->text);
    struct error_policy policy = error_policy_of(outcome->code, outcome->text);
    bool token = status == ST_INVALID_AUTH_TOKEN || status == ST_AUTH_OLD_REVISION ||
                 status == ST_USER_EMPTY; /* authentication was enabled after we connected */
    /* Users or roles were changed while the request was on its way. A client that is known by its
     * certificate needs no new token for another attempt. */
    bool outdated = status == ST_AUTH_OLD_REVISION;
    if (token && !call->delivered && call->renewals < RENEWALS_MAX &&
        (channel_renew_token(channel, call->generation) || outdated)) {
        call->renewals++;
        try_again(call, true);
        return;
    }
    client_error_from_server(&call->operation.error, outcome->code,
                             outcome->text); /* also for on_deadline */
    if (policy.is_not_done && !call->delivered && channel_has_choice(channel)) {
        channel_avoid(channel, call->generation);
        try_again(call, call->attempts == 1); /* all endpoints may be such servers */
    } else if (outcome->code == GRPC_UNAVAILABLE && (call->method->reads && !call->delivered)) {
        if (policy.leaves)
            channel_avoid(channel, call->generation);
        try_again(call, false);
    } else {
        if (policy.leaves)
            channel_blame(channel, call->generation);
        end_attempt(call);
    }
}

/* The server has not answered with a status. */
static enum vigil_code broken_code(const struct grpc_outcome *outcome)
{
    if (outcome->reason == ST_LIMIT)
        return VIGIL_ERROR_TOO_LARGE;
    if (outcome->reason == ST_NOMEM)
        return VIGIL_ERROR_MEMORY;
    switch (outcome->code) {
    case GRPC_UNAVAILABLE:
        return VIGIL_ERROR_UNAVAILABLE;
    case GRPC_RESOURCE_EXHAUSTED: /* it has reset the stream with ENHANCE_YOUR_CALM */
        return VIGIL_ERROR_TOO_MANY_REQUESTS;
    case GRPC_DEADLINE_EXCEEDED:
        return VIGIL_ERROR_TIMEOUT;
    case GRPC_CANCELLED: /* by the server: our own cancellation does not come here */
        return VIGIL_ERROR_UNAVAILABLE;
    default:
        return VIGIL_ERROR_PROTOCOL;
    }
}

static void on_end(struct grpc_client_call *grpc, const struct grpc_outcome *outcome)
{
    struct vigil_call *call = CONTAINER_OF(grpc, struct vigil_call, grpc);
    assert(call->state == CALL_SENT);
    if (call->stopping)
        return; /* by client_call_stop, which completes it */
    if (outcome->from_peer)
        channel_worked(call->client->channel, call->generation);
    /* A server may notice the deadline before us, and answers with a status or resets the stream.
     */
    if (client_is_deadline(outcome->code, outcome->text))
        channel_timed_out(call->client->channel, call->generation, call->sent_ns,
                          needs_quorum(call));
    if (outcome->code == GRPC_OK && call->response) {
        call->operation.error = (vigil_error){.grpc_code = GRPC_OK};
        if (needs_quorum(call))
            channel_agreed(call->client->channel, call->generation);
        end_attempt(call);
    } else if (outcome->code == GRPC_OK) {
        client_error_set(&call->operation.error, VIGIL_ERROR_PROTOCOL, VIGIL_UNKNOWN,
                         "the server ended the call without a response");
        end_attempt(call);
    } else if (outcome->from_peer) {
        refused(call, outcome);
    } else if (outcome->unprocessed ||
               (call->method->reads && !call->delivered && outcome->code == GRPC_UNAVAILABLE)) {
        /* The server has certainly not seen the call, or the call reads and may be repeated. A
         * change that the server may have seen is never sent again. */
        try_again(call, outcome->unprocessed && call->attempts == 1);
    } else {
        client_error_set(&call->operation.error, broken_code(outcome), VIGIL_UNKNOWN, "%.*s",
                         SLICE_ARGS(outcome->text));
        end_attempt(call);
    }
}

static const struct grpc_client_ops call_ops = {.on_message = on_message, .on_end = on_end};

/* -- For the operation -- */

/* The server would refuse it, too, but only after it has received all of it. */
static bool is_too_large(const struct vigil_call *call)
{
    size_t bytes = grpc_client_call_queued_bytes(&call->grpc) - GRPC_PREFIX_BYTES;
    return bytes > call->client->send_bytes_max;
}

static bool is_local_write(const struct vigil_call *call)
{
    return call->client->local && call->method->kind > LOCAL_KIND_RANGE;
}

/* Counted until the end of the turn in which it reaches the loop, when it is passed to the store.
 */
static int post(struct vigil_call *call)
{
    call->posted = is_local_write(call);
    if (call->posted)
        atomic_fetch_add(&call->client->writes_posted, 1);
    return operation_post(&call->operation);
}

static void note_arrival(struct vigil_call *call)
{
    if (call->posted)
        call->client->writes_arrived++;
    call->posted = false;
}

void client_call_pass_on(struct vigil_call *call)
{
    client_call_drop_response(call);
    STATE_MOVE(call->state, moves, CALL_WAITING);
    call->attempts = 0;
    try_to_send(call);
}

static void begin(struct operation *operation)
{
    struct vigil_call *call = CONTAINER_OF(operation, struct vigil_call, operation);
    struct vigil_client *client = call->client;
    note_arrival(call);
    if (call->invalid) {
        fail(call, VIGIL_ERROR_ARGUMENT, call->invalid);
        return;
    }
    if (is_too_large(call)) {
        fail(call, VIGIL_ERROR_REQUEST_TOO_LARGE, "the request exceeds send_bytes_max");
        return;
    }
    counter_add(&client->counters.calls_started, 1);
    set_deadline(call, loop_now_ns(client->driver.loop));
    STATE_MOVE(call->state, moves, CALL_WAITING);
    if (client->local && call->method->kind) {
        STATE_MOVE(call->state, moves, CALL_SENT);
        call->attempts = 1;
        if (client->local->ops->begin(client->local, call))
            return;
        /* The store in this process has not begun the call, so that it has changed nothing. It goes
         * through the connection like a call of a remote client. */
        STATE_MOVE(call->state, moves, CALL_WAITING);
        call->attempts = 0;
    }
    try_to_send(call);
}

static void stop(struct operation *operation, enum vigil_code code, const char *text)
{
    note_arrival(CONTAINER_OF(operation, struct vigil_call, operation));
    client_call_stop(CONTAINER_OF(operation, struct vigil_call, operation), code, text);
}

static const struct operation_ops operation_ops = {
    .begin = begin, .stop = stop, .publish = publish, .free = free_call};

/* -- Public functions -- */

struct vigil_call *client_call_new(struct vigil_client *client, const struct client_method *method)
{
    return client_call_new_sized(client, method, sizeof(struct vigil_call));
}

struct vigil_call *client_call_new_sized(struct vigil_client *client,
                                         const struct client_method *method, size_t bytes)
{
    struct vigil_call *call = client ? malloc(bytes) : NULL; /* glibc's calloc has no cache */
    if (!call)
        return NULL;
    memset(call, 0, bytes);
    operation_init(&call->operation, &client->driver, &operation_ops);
    call->client = client;
    call->method = method;
    call->alone = method->alone;
    call->grpc.ops = &call_ops;
    call->waiter.ready = on_channel_ready;
    call->deadline.fn = on_deadline;
    call->pause.fn = on_pause_over;
    call->timeout_ms = client->call_timeout_ms;
    arena_init(&call->arena, NULL, 0, client_decode_bytes_max(client));
    return call;
}

struct vigil_call *client_call_with(struct vigil_call *call, const void *message)
{
    if (call && client_call_encode(call, message) == ST_OK)
        return call;
    vigil_call_free(call);
    return NULL;
}

struct vigil_call *client_call_wait_long(struct vigil_call *call)
{
    if (call)
        call->waits_long = true;
    return call;
}

uint8_t *client_call_room(struct vigil_call *call, size_t bytes)
{
    grpc_client_call_clear(&call->grpc);
    uint8_t *room = grpc_client_call_message(&call->grpc, bytes);
    if (room)
        grpc_client_call_half_close(&call->grpc);
    return room;
}

enum status client_call_encode(struct vigil_call *call, const void *message)
{
    const struct pb_message *type = call->method->request;
    size_t size = pb_size(type, message);
    uint8_t *to = client_call_room(call, size);
    if (!to)
        return ST_NOMEM;
    pb_encode(type, message, to, size);
    return ST_OK;
}

static const void *response_of(const struct vigil_call *call)
{
    return call && operation_has_completed(&call->operation) &&
                   call->operation.error.code == VIGIL_OK
               ? call->response
               : NULL;
}

const void *client_call_response(const struct vigil_call *call, const struct client_method *method)
{
    const void *response = response_of(call);
    return response && call->method == method ? response : NULL;
}

void vigil_call_set_timeout(vigil_call *call, int64_t timeout_ms)
{
    if (!call || atomic_load(&call->operation.started))
        return;
    call->timeout_ms = timeout_ms;
    call->waits_long = false;
}

static void make_callback(struct operation *operation)
{
    struct vigil_call *call = CONTAINER_OF(operation, struct vigil_call, operation);
    call->done(call, call->user);
}

int vigil_call_start(vigil_call *call, vigil_done done, void *user)
{
    int code = operation_claim(call ? &call->operation : NULL);
    if (code != VIGIL_OK)
        return code;
    call->done = done;
    call->user = user;
    call->operation.done = done ? make_callback : NULL;
    return post(call);
}

static void ref_item(struct queue_item *item)
{
    operation_ref(&CONTAINER_OF(item, struct vigil_call, item)->operation);
}

static void unref_item(struct queue_item *item)
{
    operation_unref(&CONTAINER_OF(item, struct vigil_call, item)->operation);
}

int vigil_queue_call(vigil_queue *queue, vigil_call *call, void *user)
{
    static const struct queue_item_ops item_ops = {.ref = ref_item, .unref = unref_item};
    if (!queue || (call && call->client != queue_client(queue)))
        return VIGIL_ERROR_ARGUMENT;
    int code = operation_claim(call ? &call->operation : NULL);
    if (code != VIGIL_OK)
        return code;
    call->item.shown = (vigil_item){
        .what = VIGIL_ITEM_CALL, .user = user, .call = call, .error = &call->operation.error};
    queue_item_init(&call->item, queue, &item_ops);
    call->user = user;
    return post(call);
}

/* On this thread, by the store in this process. False: it goes to the loop. */
static bool run_here(struct vigil_call *call)
{
    struct vigil_client *client = call->client;
    struct client_local *local = client->local;
    if (call->invalid || is_too_large(call) || atomic_load(&call->operation.canceled) ||
        atomic_load(&client->driver.shutting_down))
        return false;
    if (is_local_write(call) && atomic_load(&client->writes_posted))
        return false;
    if (!local->ops->run(local, call))
        return false;
    counter_add(&client->counters.calls_started, 1);
    counter_add(&client->counters.calls_completed, 1);
    operation_complete_here(&call->operation);
    return true;
}

int vigil_call_run(vigil_call *call)
{
    if (!call || !call->client->local || !call->method->kind ||
        driver_must_not_wait(&call->client->driver))
        return operation_run(call ? &call->operation : NULL);
    int code = operation_claim(&call->operation);
    if (code != VIGIL_OK)
        return code;
    if (!run_here(call))
        return operation_run_claimed(&call->operation);
    /* A blocking call drives a client in the program's loop, also if it did not have to wait. */
    if (!call->client->driver.own_thread && !atomic_load(&call->client->driver.loop_ended) &&
        driver_timeout_ms(&call->client->driver) == 0)
        driver_process(&call->client->driver);
    return call->operation.error.code;
}

void vigil_call_cancel(vigil_call *call)
{
    operation_cancel(call ? &call->operation : NULL);
}

void vigil_call_free(vigil_call *call)
{
    if (!call)
        return;
    driver_drop(&call->client->driver, &call->operation.object);
    queue_item_drop(&call->item);
    operation_free(&call->operation);
}

const vigil_error *vigil_call_error(const vigil_call *call)
{
    return operation_error(call ? &call->operation : NULL);
}

void *vigil_call_user(const vigil_call *call)
{
    return call ? call->user : NULL;
}

/* Every response begins with its header. */
const vigil_header *vigil_call_header(const vigil_call *call)
{
    const void *response = response_of(call);
    return response ? *(const vigil_header *const *)response : NULL;
}
