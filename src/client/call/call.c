#include "client/call/call.h"

#include "client/connect/error.h"

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

static void move(struct vigil_call *call, enum call_state next)
{
    assert(moves[call->state] & (1u << next));
    call->state = next;
}

void client_call_check(const struct vigil_call *call)
{
    bool waits = call->waiter.in_channel.next && !list_empty(&call->waiter.in_channel);
    assert(atomic_load(&call->refs) > 0);
    assert(!waits || call->state == CALL_WAITING);
    assert(!call->pause.set || call->state == CALL_PAUSING);
    assert(!call->deadline.set || call->state != CALL_COMPLETED);
    assert(call->response == NULL || call->attempts > 0);
    assert(call->state != CALL_HOLDING || (call->method->parts && !call->deadline.set));
}

/* -- Completion -- */

void client_call_ref(struct vigil_call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

void client_call_unref(struct vigil_call *call)
{
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) > 1)
        return;
    struct vigil_client *client = call->client;
    if (call->method->parts)
        call->method->parts->release(call);
    arena_fini(&call->arena);
    grpc_client_call_fini(&call->grpc);
    queue_item_fini(&call->item);
    free(call);
    driver_unref(&client->driver);
}

static void make_callback(struct vigil_call *call)
{
    struct vigil_client *client = call->client;
    lock_take(&client->driver.lock);
    atomic_store_explicit(&call->completed, true, memory_order_release);
    driver_changed(&client->driver);
    if (call->item.queue)
        queue_item_push(&call->item);
    lock_release(&client->driver.lock);
    if (!call->done || !driver_callback_begin(&client->driver, &call->object))
        return;
    call->done(call, call->user);
    driver_callback_end(&client->driver);
}

void client_call_complete(struct vigil_call *call)
{
    struct vigil_client *client = call->client;
    move(call, CALL_COMPLETED);
    channel_waiter_cancel(&call->waiter);
    loop_timer_cancel(client->driver.loop, &call->deadline);
    loop_timer_cancel(client->driver.loop, &call->pause);
    if (call->member.in_driver.next)
        list_remove(&call->member.in_driver);
    if (call->method->parts)
        call->method->parts->release(call);
    atomic_fetch_add_explicit(&client->counters.calls_completed, 1, memory_order_relaxed);
    make_callback(call);
    client_call_unref(call);
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
    client_error_set(&call->error, code, VIGIL_NOT_SENT, "%s", text);
    client_call_complete(call);
}

void client_call_stop(struct vigil_call *call, enum vigil_code code, const char *text)
{
    bool sent = call->state == CALL_SENT || call->state == CALL_HOLDING;
    if (call->state == CALL_COMPLETED)
        return;
    client_error_set(&call->error, code, sent ? VIGIL_UNKNOWN : VIGIL_NOT_SENT, "%s", text);
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

static void on_deadline(struct timer *timer)
{
    struct vigil_call *call = CONTAINER_OF(timer, struct vigil_call, deadline);
    const char *failure = channel_failure(call->client->channel);
    if (!*failure)
        failure = call->error.text; /* of an earlier attempt */
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
    if (call->timeout_ms > 0)
        loop_timer_set(call->client->driver.loop, &call->deadline,
                       clock_add(now_ns, driver_ns(call->timeout_ms)));
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
    struct channel_request request = {
        .path = slice_from_text(call->method->path),
        .deadline_ns = call->deadline.set && !moves_deadline ? call->deadline.at_ns : CLOCK_NEVER,
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
    move(call, CALL_SENT);
    call->attempts++;
    call->generation = channel_generation(client->channel);
}

static void on_channel_ready(struct channel_waiter *waiter)
{
    try_to_send(CONTAINER_OF(waiter, struct vigil_call, waiter));
}

static void on_pause_over(struct timer *timer)
{
    struct vigil_call *call = CONTAINER_OF(timer, struct vigil_call, pause);
    move(call, CALL_WAITING);
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
    move(call, CALL_HOLDING);
}

void client_call_continue(struct vigil_call *call)
{
    client_call_drop_response(call);
    call->attempts = call->renewals = 0;
    client_call_restart_clock(call);
    move(call, CALL_WAITING);
    try_to_send(call);
}

static void try_again(struct vigil_call *call, bool at_once)
{
    struct vigil_client *client = call->client;
    atomic_fetch_add_explicit(&client->counters.calls_retried, 1, memory_order_relaxed);
    client_call_drop_response(call);
    if (call->method->parts && call->method->parts->repeat)
        call->method->parts->repeat(call);
    if (at_once) {
        move(call, CALL_WAITING);
        try_to_send(call);
        return;
    }
    int64_t pause = PAUSE_NS << (call->attempts < 6 ? call->attempts - 1 : 5);
    move(call, CALL_PAUSING);
    loop_timer_set(client->driver.loop, &call->pause,
                   loop_now_ns(client->driver.loop) +
                       (pause < PAUSE_NS_MAX ? pause : PAUSE_NS_MAX));
}

/* -- What the connection says -- */

static enum status take_response(struct vigil_call *call, struct slice message)
{
    struct slice bytes;
    if (call->response)
        return ST_MALFORMED; /* one response too many */
    void *response = arena_alloc(&call->arena, call->method->response->struct_bytes);
    if (!response)
        return ST_NOMEM;
    TRY(arena_dup(&call->arena, message, &bytes));
    TRY(pb_decode(call->method->response, bytes, &call->arena, response));
    if (call->client->prefix.len && call->method->strip)
        call->method->strip(response, call->client->prefix.len);
    call->response = response;
    return ST_OK;
}

static void on_message(struct grpc_client_call *grpc, struct slice message)
{
    struct vigil_call *call = CONTAINER_OF(grpc, struct vigil_call, grpc);
    const struct client_part_ops *parts = call->method->parts;
    enum status status =
        parts && parts->receive ? parts->receive(call, message) : take_response(call, message);
    if (status != ST_OK)
        client_call_stop_for(call, status);
}

static bool may_be_repeated(const struct vigil_call *call)
{
    return call->method->reads && !call->delivered;
}

/* The server answered with an error. */
static void refused(struct vigil_call *call, const struct grpc_outcome *outcome)
{
    struct channel *channel = call->client->channel;
    enum status status = client_status_of(outcome->text);
    bool token = status == ST_INVALID_AUTH_TOKEN || status == ST_AUTH_OLD_REVISION;
    if (token && !call->delivered && call->renewals < RENEWALS_MAX &&
        channel_renew_token(channel, call->generation)) {
        call->renewals++;
        try_again(call, true);
    } else if (outcome->code == GRPC_UNAVAILABLE && may_be_repeated(call)) {
        client_error_from_server(&call->error, outcome->code, outcome->text); /* for on_deadline */
        channel_avoid(channel, call->generation);
        try_again(call, false);
    } else {
        client_error_from_server(&call->error, outcome->code, outcome->text);
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
    if (outcome->code == GRPC_OK && call->response) {
        call->error = (vigil_error){.grpc_code = GRPC_OK};
        end_attempt(call);
    } else if (outcome->code == GRPC_OK) {
        client_error_set(&call->error, VIGIL_ERROR_PROTOCOL, VIGIL_UNKNOWN,
                         "the server ended the call without a response");
        end_attempt(call);
    } else if (outcome->from_peer) {
        refused(call, outcome);
    } else if (outcome->unprocessed ||
               (may_be_repeated(call) && outcome->code == GRPC_UNAVAILABLE)) {
        try_again(call, outcome->unprocessed && call->attempts == 1);
    } else {
        client_error_set(&call->error, broken_code(outcome), VIGIL_UNKNOWN, "%.*s",
                         SLICE_ARGS(outcome->text));
        end_attempt(call);
    }
}

static const struct grpc_client_ops call_ops = {.on_message = on_message, .on_end = on_end};

/* -- Commands -- */

static void end_member(struct driver_member *member)
{
    struct vigil_call *call = CONTAINER_OF(member, struct vigil_call, member);
    client_call_stop(call, VIGIL_ERROR_CANCELED, "the client was shut down");
}

static void run_start(struct driver_command *command)
{
    struct vigil_call *call = CONTAINER_OF(command, struct vigil_call, start);
    struct vigil_client *client = call->client;
    if (client->driver.ended || atomic_load(&call->canceled)) {
        fail(call, VIGIL_ERROR_CANCELED,
             client->driver.ended ? "the client was shut down" : "the call was canceled");
        return;
    }
    if (call->invalid) {
        fail(call, VIGIL_ERROR_ARGUMENT, call->invalid);
        return;
    }
    if (grpc_client_call_queued_bytes(&call->grpc) - GRPC_PREFIX_BYTES > client->send_bytes_max) {
        fail(call, VIGIL_ERROR_REQUEST_TOO_LARGE, "the request exceeds send_bytes_max");
        return;
    }
    list_push_back(&client->driver.members, &call->member.in_driver);
    atomic_fetch_add_explicit(&client->counters.calls_started, 1, memory_order_relaxed);
    set_deadline(call, loop_now_ns(client->driver.loop));
    move(call, CALL_WAITING);
    try_to_send(call);
}

static void run_cancel(struct driver_command *command)
{
    struct vigil_call *call = CONTAINER_OF(command, struct vigil_call, cancel);
    if (call->state != CALL_CREATED) /* otherwise it is cancelled by its start */
        client_call_stop(call, VIGIL_ERROR_CANCELED, "the call was canceled");
    client_call_unref(call);
}

/* -- Public functions -- */

struct vigil_call *client_call_new(struct vigil_client *client, const struct client_method *method)
{
    return client_call_new_sized(client, method, sizeof(struct vigil_call));
}

struct vigil_call *client_call_new_sized(struct vigil_client *client,
                                         const struct client_method *method, size_t bytes)
{
    struct vigil_call *call = calloc(1, bytes);
    if (!call)
        return NULL;
    call->client = client;
    call->method = method;
    call->refs = 1;
    call->grpc.ops = &call_ops;
    call->start.run = run_start;
    call->cancel.run = run_cancel;
    call->member.end = end_member;
    call->waiter.ready = on_channel_ready;
    call->deadline.fn = on_deadline;
    call->pause.fn = on_pause_over;
    call->timeout_ms = client->call_timeout_ms;
    call->error.grpc_code = -1;
    arena_init(&call->arena, NULL, 0, client_decode_bytes_max(client));
    driver_ref(&client->driver);
    return call;
}

struct vigil_call *client_call_with(struct vigil_call *call, const struct pb_message *type,
                                    const void *message)
{
    if (call && client_call_encode(call, type, message) == ST_OK)
        return call;
    vigil_call_free(call);
    return NULL;
}

enum status client_call_encode(struct vigil_call *call, const struct pb_message *type,
                               const void *message)
{
    size_t size = pb_size(type, message);
    grpc_client_call_clear(&call->grpc);
    uint8_t *to = grpc_client_call_message(&call->grpc, size);
    if (!to)
        return ST_NOMEM;
    pb_encode(type, message, to, size);
    grpc_client_call_half_close(&call->grpc);
    return ST_OK;
}

/* What the loop's thread has written about the result can be read when this is true. */
static bool has_completed(const struct vigil_call *call)
{
    return atomic_load_explicit(&call->completed, memory_order_acquire);
}

static const void *response_of(const struct vigil_call *call)
{
    return call && has_completed(call) && call->error.code == VIGIL_OK ? call->response : NULL;
}

const void *client_call_response(const struct vigil_call *call, const struct client_method *method)
{
    const void *response = response_of(call);
    return response && call->method == method ? response : NULL;
}

void vigil_call_set_timeout(vigil_call *call, int64_t timeout_ms)
{
    if (call && !atomic_load(&call->started))
        call->timeout_ms = timeout_ms;
}

/* Receives the start only once; a call that is NULL has failed already. */
static int begin_start(struct vigil_call *call)
{
    if (!call)
        return VIGIL_ERROR_MEMORY;
    return atomic_exchange(&call->started, true) ? VIGIL_ERROR_ARGUMENT : VIGIL_OK;
}

static void post_start(struct vigil_call *call, void *user)
{
    call->user = user;
    client_call_ref(call);
    driver_post(&call->client->driver, &call->start);
}

int vigil_call_start(vigil_call *call, vigil_done done, void *user)
{
    int code = begin_start(call);
    if (code != VIGIL_OK)
        return code;
    call->done = done;
    post_start(call, user);
    return VIGIL_OK;
}

static struct vigil_call *call_of(struct queue_item *item)
{
    return CONTAINER_OF(item, struct vigil_call, item);
}

static void ref_item(struct queue_item *item)
{
    client_call_ref(call_of(item));
}

static void unref_item(struct queue_item *item)
{
    client_call_unref(call_of(item));
}

int vigil_queue_call(vigil_queue *queue, vigil_call *call, void *user)
{
    static const struct queue_item_ops item_ops = {.ref = ref_item, .unref = unref_item};
    if (call && call->client != queue_client(queue))
        return VIGIL_ERROR_ARGUMENT;
    int code = begin_start(call);
    if (code != VIGIL_OK)
        return code;
    call->item.shown =
        (vigil_item){.what = VIGIL_ITEM_CALL, .user = user, .call = call, .error = &call->error};
    queue_item_init(&call->item, queue, &item_ops);
    post_start(call, user);
    return VIGIL_OK;
}

static void wait_for_thread(struct vigil_call *call)
{
    LOCK_SCOPE(&call->client->driver.lock);
    while (!has_completed(call))
        driver_wait(&call->client->driver);
}

int vigil_call_run(vigil_call *call)
{
    if (!call)
        return VIGIL_ERROR_MEMORY;
    if (driver_is_inside(&call->client->driver)) {
        atomic_store(&call->would_block, true);
        return VIGIL_ERROR_WOULD_BLOCK;
    }
    int code = vigil_call_start(call, NULL, NULL);
    if (code != VIGIL_OK)
        return code;
    if (call->client->driver.own_thread || atomic_load(&call->client->driver.loop_ended))
        wait_for_thread(call);
    while (!has_completed(call))
        driver_process_and_wait(&call->client->driver);
    return call->error.code;
}

void vigil_call_cancel(vigil_call *call)
{
    if (!call || atomic_exchange(&call->canceled, true) || !atomic_load(&call->started))
        return;
    client_call_ref(call);
    driver_post(&call->client->driver, &call->cancel);
}

void vigil_call_free(vigil_call *call)
{
    if (!call)
        return;
    driver_drop(&call->client->driver, &call->object);
    queue_item_drop(&call->item);
    vigil_call_cancel(call);
    client_call_unref(call);
}

const vigil_error *vigil_call_error(const vigil_call *call)
{
    static const vigil_error no_memory = {
        .code = VIGIL_ERROR_MEMORY, .grpc_code = -1, .text = "out of memory"};
    static const vigil_error running = {.grpc_code = -1};
    static const vigil_error would_block = {
        .code = VIGIL_ERROR_WOULD_BLOCK,
        .grpc_code = -1,
        .text = "vigil_call_run cannot wait inside a callback; use vigil_call_start",
    };
    if (!call)
        return &no_memory;
    if (has_completed(call))
        return &call->error;
    return atomic_load(&call->would_block) && !atomic_load(&call->started) ? &would_block
                                                                           : &running;
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
