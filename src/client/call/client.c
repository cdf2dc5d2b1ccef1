#include "client/call/client.h"

#include "client/connect/error.h"
#include "io/socket.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

/* Ten years: can be added to a clock. */
#define TIME_MS_MAX (INT64_C(10) * 365 * 24 * 3600 * 1000)

/* -- References and commands -- */

void client_ref(struct vigil_client *client)
{
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
}

static void client_destroy(struct vigil_client *client)
{
    assert(list_empty(&client->members));
    assert(!client->channel);
    if (client->loop) {
        mailbox_detach(&client->mailbox);
        assert(mailbox_empty(&client->mailbox));
    }
    loop_free(client->loop);
    pthread_cond_destroy(&client->changed);
    lock_fini(&client->lock);
    free((void *)client->prefix.ptr);
    free(client);
}

void client_unref(struct vigil_client *client)
{
    if (client && atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) == 1)
        client_destroy(client);
}

static void run_command(void *owner, struct mailbox_node *node)
{
    (void)owner;
    struct client_command *command = CONTAINER_OF(node, struct client_command, in_mailbox);
    command->run(command);
}

static void run_commands(struct mailbox_node *node)
{
    while (node) {
        struct mailbox_node *next = node->next;
        run_command(NULL, node);
        node = next;
    }
}

/* The loop has ended: commands run on the threads that post them, and only release what they belong
 * to. One thread at a time runs all of them, because two commands may be about one object. */
static void run_rest(struct vigil_client *client)
{
    struct mailbox_node *node;
    lock_take(&client->lock);
    if (!client->running_rest) {
        client->running_rest = true;
        while ((node = mailbox_take(&client->mailbox))) {
            lock_release(&client->lock);
            run_commands(node);
            lock_take(&client->lock);
        }
        client->running_rest = false;
    }
    lock_release(&client->lock);
}

void client_post(struct vigil_client *client, struct client_command *command)
{
    client_ref(client); /* the command may release the object that holds the client */
    mailbox_post(&client->mailbox, &command->in_mailbox);
    if (atomic_load_explicit(&client->loop_ended, memory_order_seq_cst))
        run_rest(client);
    client_unref(client);
}

/* -- Callbacks -- */

/* Callbacks are frequent, and dropping an object is rare, so only a thread that has to wait takes
 * the lock:
 *
 *     loop: inside = object, then reads dropped       loop: inside = NULL, then reads waiting
 *     user: dropped = true, then reads inside         user: waiting++, then reads inside
 *
 * In each pair at least one of the two threads sees what the other has written. */

bool client_callback_begin(struct vigil_client *client, const struct client_object *object)
{
    if (object->internal)
        return !atomic_load_explicit(&object->dropped, memory_order_relaxed);
    assert(!atomic_load_explicit(&client->inside, memory_order_relaxed));
    atomic_store_explicit(&client->inside_thread, pthread_self(), memory_order_relaxed);
    atomic_store(&client->inside, object);
    if (!atomic_load(&object->dropped) && !atomic_load(&client->quiet))
        return true;
    client_callback_end(client);
    return false;
}

void client_callback_end(struct vigil_client *client)
{
    atomic_store(&client->inside, NULL);
    if (!atomic_load(&client->waiting))
        return;
    LOCK_SCOPE(&client->lock);
    pthread_cond_broadcast(&client->changed);
}

bool client_is_inside(struct vigil_client *client)
{
    return atomic_load(&client->inside) &&
           pthread_equal(atomic_load_explicit(&client->inside_thread, memory_order_relaxed),
                         pthread_self());
}

/* Waits for a callback of this object, or of any if it is NULL; not for one that we are inside. */
static void wait_for_callback(struct vigil_client *client, const struct client_object *object)
{
    LOCK_SCOPE(&client->lock);
    atomic_fetch_add(&client->waiting, 1);
    for (const struct client_object *inside;
         (inside = atomic_load(&client->inside)) && (!object || inside == object);)
        lock_wait(&client->lock, &client->changed);
    atomic_fetch_sub(&client->waiting, 1);
}

void client_wait(struct vigil_client *client)
{
    atomic_fetch_add(&client->waiting, 1);
    lock_wait(&client->lock, &client->changed);
    atomic_fetch_sub(&client->waiting, 1);
}

void client_changed(struct vigil_client *client)
{
    assert(lock_held(&client->lock));
    if (atomic_load(&client->waiting))
        pthread_cond_broadcast(&client->changed);
}

void client_drop(struct vigil_client *client, struct client_object *object)
{
    atomic_store(&object->dropped, true);
    if (atomic_load(&client->inside) == object && !client_is_inside(client))
        wait_for_callback(client, object);
}

/* -- The end -- */

static void notify_observers(struct vigil_client *client)
{
    struct client_observer *observer;
    LOCK_SCOPE(&client->lock);
    client->all_ended = true;
    LIST_FOREACH (observer, &client->observers, in_client)
        observer->ended(observer);
}

static void end_all(struct vigil_client *client)
{
    client->ended = true;
    while (!list_empty(&client->members)) {
        struct client_member *member =
            LIST_ENTRY(client->members.next, struct client_member, in_client);
        list_remove(&member->in_client);
        member->end(member);
    }
    struct client_part *part;
    LIST_FOREACH (part, &client->parts, in_client)
        part->end(part);
    notify_observers(client);
}

static void free_parts(struct vigil_client *client)
{
    for (struct list *link; (link = list_pop_front(&client->parts));) {
        struct client_part *part = LIST_ENTRY(link, struct client_part, in_client);
        part->free(part);
    }
}

static void run_shutdown(struct client_command *command)
{
    struct vigil_client *client = CONTAINER_OF(command, struct vigil_client, shutdown);
    end_all(client);
    client_unref(client);
}

/* On the thread that drives the loop, which makes no turn any more. */
static void end_loop(struct vigil_client *client)
{
    end_all(client);
    free_parts(client);
    channel_free(client->channel);
    client->channel = NULL;
    atomic_store_explicit(&client->loop_ended, true, memory_order_seq_cst);
    run_rest(client);
}

static void *run_thread(void *arg)
{
    struct vigil_client *client = arg;
    loop_run(client->loop);
    end_loop(client);
    client_unref(client);
    return NULL;
}

void vigil_client_shutdown(vigil_client *client)
{
    if (atomic_exchange(&client->shutting_down, true))
        return;
    client_ref(client);
    client_post(client, &client->shutdown);
}

static void stop_thread(struct vigil_client *client, bool inside)
{
    pthread_t thread = client->thread;
    loop_stop(client->loop);
    if (inside)
        pthread_detach(thread); /* it is this thread, and ends after the callback */
    else
        pthread_join(thread, NULL);
}

void vigil_client_free(vigil_client *client)
{
    if (!client)
        return;
    bool inside = client_is_inside(client);
    atomic_store(&client->quiet, true);
    if (!inside)
        wait_for_callback(client, NULL);
    lock_take(&client->lock);
    client_changed(client);
    lock_release(&client->lock);
    if (client->own_thread)
        stop_thread(client, inside);
    else if (inside)
        client->free_wanted = true;
    else
        end_loop(client);
    if (!client->free_wanted)
        client_unref(client);
}

/* -- In the program's loop -- */

int vigil_client_fd(const vigil_client *client)
{
    return client->own_thread ? -1 : loop_fd(client->loop);
}

int vigil_client_timeout_ms(const vigil_client *client)
{
    int64_t next = client->own_thread ? CLOCK_NEVER : loop_next_ns(client->loop);
    if (next == CLOCK_NEVER)
        return -1;
    int64_t left = next - clock_mono_ns(clock_system());
    if (left <= 0)
        return 0;
    int64_t ms = left / NS_PER_MS + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

void vigil_client_process(vigil_client *client)
{
    if (client->own_thread)
        return;
    loop_turn_nested(client->loop);
    if (client->free_wanted) {
        end_loop(client);
        client_unref(client);
    }
}

void client_process_and_wait(struct vigil_client *client)
{
    struct pollfd waited = {.fd = loop_fd(client->loop), .events = POLLIN};
    (void)poll(&waited, 1, vigil_client_timeout_ms(client)); /* interrupted: an early turn */
    vigil_client_process(client);
}

/* -- The beginning -- */

void vigil_options_init(vigil_options *options)
{
    *options = (vigil_options){
        .size = sizeof(*options),
        .endpoints = "http://127.0.0.1:2379",
        .connect_timeout_ms = 5000,
        .call_timeout_ms = 5000,
        .keepalive_ms = 10000,
        .keepalive_timeout_ms = 5000,
        .backoff_min_ms = 25,
        .backoff_max_ms = 3000,
        .receive_bytes_max = 64u << 20,
        .send_bytes_max = 2u << 20,
        .own_thread = 1,
    };
}

static void log_line(void *ctx, int level, const char *text)
{
    struct vigil_client *client = ctx;
    static const struct client_object nobody;
    if (client->log && client_callback_begin(client, &nobody)) {
        client->log(client->log_user, level, text);
        client_callback_end(client);
    }
}

int64_t client_ns(int64_t ms)
{
    return ms > TIME_MS_MAX ? TIME_MS_MAX * NS_PER_MS : ms * NS_PER_MS;
}

static enum status open_channel(struct vigil_client *client, struct network *network,
                                const vigil_options *o, struct error *error)
{
    struct channel_options options = {
        .endpoints = o->endpoints,
        .srv_domain = o->srv_domain,
        .srv_name = o->srv_name,
        .ca_file = o->ca_file,
        .cert_file = o->cert_file,
        .key_file = o->key_file,
        .server_name = o->server_name,
        .insecure_skip_verify = o->insecure_skip_verify != 0,
        .user = o->user,
        .password = o->password,
        .token = o->token,
        .connect_timeout_ns = client_ns(o->connect_timeout_ms),
        .keepalive_ns = client_ns(o->keepalive_ms),
        .keepalive_timeout_ns = client_ns(o->keepalive_timeout_ms),
        .backoff_min_ns = client_ns(o->backoff_min_ms),
        .backoff_max_ns = client_ns(o->backoff_max_ms),
        .receive_bytes_max = o->receive_bytes_max,
        .log = log_line,
        .ctx = client,
    };
    return channel_new(client->loop, network, &options, &client->channel, error);
}

static enum status copy_prefix(struct vigil_client *client, const char *prefix)
{
    if (!prefix || !*prefix)
        return ST_OK;
    char *copy = strdup(prefix);
    client->prefix = slice_of(copy, copy ? strlen(copy) : 0);
    return copy ? ST_OK : ST_NOMEM;
}

/* The thread takes no signals: they are for the program. */
static enum status start_thread(struct vigil_client *client)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    client_ref(client);
    int failed = pthread_create(&client->thread, NULL, run_thread, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return ST_OK;
    client_unref(client);
    return status_from_errno(failed);
}

static void publish(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* The counters of the channel belong to the loop's thread. */
static bool publish_stats(void *ctx)
{
    struct vigil_client *client = ctx;
    if (!client->channel)
        return false;
    struct channel_stats stats = channel_stats(client->channel);
    publish(&client->counters.connects, stats.connects);
    publish(&client->counters.connect_errors, stats.connect_errors);
    publish(&client->counters.disconnects, stats.disconnects);
    publish(&client->counters.bytes_sent, stats.bytes_sent);
    publish(&client->counters.bytes_received, stats.bytes_received);
    return false;
}

static enum status client_init(struct vigil_client *client, struct network *network,
                               const vigil_options *options, struct error *error)
{
    *client = (struct vigil_client){
        .refs = 1,
        .own_thread = options->own_thread != 0,
        .call_timeout_ms = options->call_timeout_ms,
        .send_bytes_max = options->send_bytes_max,
        .receive_bytes_max = options->receive_bytes_max,
        .log = options->log,
        .log_user = options->log_user,
        .shutdown.run = run_shutdown,
    };
    lock_init(&client->lock);
    pthread_cond_init(&client->changed, NULL);
    list_init(&client->members);
    list_init(&client->parts);
    list_init(&client->observers);
    TRY(copy_prefix(client, options->prefix));
    TRY(network_loop_new(network, &client->loop));
    loop_attach(client->loop, &client->mailbox, run_command, NULL);
    loop_set_hooks(client->loop, (struct loop_hooks){.end_of_turn = publish_stats, .ctx = client});
    TRY(open_channel(client, network, options, error));
    if (client->own_thread)
        return start_thread(client);
    loop_turn_nested(client->loop);
    return ST_OK;
}

static enum vigil_code code_of(enum status status)
{
    switch (status) {
    case ST_NOMEM:
        return VIGIL_ERROR_MEMORY;
    case ST_INVALID:
        return VIGIL_ERROR_ARGUMENT;
    default:
        return VIGIL_ERROR_SYSTEM;
    }
}

static int refuse(vigil_error *error, enum vigil_code code, const char *text)
{
    if (error)
        client_error_set(error, code, VIGIL_NOT_SENT, "%s", text);
    return (int)code;
}

static bool has_negative_time(const vigil_options *o)
{
    return o->connect_timeout_ms < 0 || o->call_timeout_ms < 0 || o->keepalive_ms < 0 ||
           o->keepalive_timeout_ms < 0 || o->backoff_min_ms < 0 ||
           o->backoff_max_ms < o->backoff_min_ms;
}

/* Why these options cannot be used; NULL if they can. */
static const char *fault_of(const vigil_options *o)
{
    if (has_negative_time(o))
        return "a time is negative, or backoff_max_ms is less than backoff_min_ms";
    if (!o->cert_file != !o->key_file)
        return "cert_file and key_file belong together, but only one of them is set";
    if (o->password && !o->user)
        return "password is set without user";
    return NULL;
}

int client_new_over(struct network *network, const vigil_options *options,
                    vigil_client **ret_client, vigil_error *error)
{
    vigil_options complete;
    vigil_options_init(&complete);
    if (options && (options->size == 0 || options->size > sizeof(complete)))
        return refuse(error, VIGIL_ERROR_ARGUMENT,
                      "the options were not set up with vigil_options_init");
    if (options)
        memcpy(&complete, options, options->size);
    const char *fault = fault_of(&complete);
    if (fault)
        return refuse(error, VIGIL_ERROR_ARGUMENT, fault);
    struct vigil_client *client = aligned_alloc(
        _Alignof(struct vigil_client), align_up(sizeof(*client), _Alignof(struct vigil_client)));
    if (!client)
        return refuse(error, VIGIL_ERROR_MEMORY, "out of memory");
    struct error why = {0};
    enum status status = client_init(client, network, &complete, &why);
    if (status != ST_OK) {
        channel_free(client->channel);
        client->channel = NULL;
        client_unref(client);
        return refuse(error, code_of(status), why.text[0] ? why.text : status_reason(status));
    }
    if (error)
        *error = (vigil_error){.grpc_code = -1};
    *ret_client = client;
    return VIGIL_OK;
}

int vigil_client_new(const vigil_options *options, vigil_client **ret_client, vigil_error *error)
{
    return client_new_over(network_posix(), options, ret_client, error);
}

void vigil_client_get_stats(const vigil_client *client, vigil_client_stats *ret_stats, size_t size)
{
    const struct client_counters *c = &client->counters;
    vigil_client_stats stats = {
        .connects = atomic_load(&c->connects),
        .connect_errors = atomic_load(&c->connect_errors),
        .disconnects = atomic_load(&c->disconnects),
        .calls_started = atomic_load(&c->calls_started),
        .calls_completed = atomic_load(&c->calls_completed),
        .calls_retried = atomic_load(&c->calls_retried),
        .watches = atomic_load(&c->watches),
        .watch_resumes = atomic_load(&c->watch_resumes),
        .watch_events = atomic_load(&c->watch_events),
        .queued_bytes = atomic_load(&c->queued_bytes),
        .bytes_sent = atomic_load(&c->bytes_sent),
        .bytes_received = atomic_load(&c->bytes_received),
    };
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}

const char *vigil_version(void)
{
    return "1.0.0";
}
