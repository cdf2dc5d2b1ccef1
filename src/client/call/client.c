#include "client/call/client.h"

#include "client/call/version.h"
#include "client/connect/error.h"
#include "io/socket.h"

#include <stdlib.h>

/* -- The program's handle -- */

void vigil_client_shutdown(vigil_client *client)
{
    if (client)
        driver_shutdown(&client->driver);
}

void vigil_client_free(vigil_client *client)
{
    if (client)
        driver_free(&client->driver);
}

int vigil_client_fd(const vigil_client *client)
{
    return client ? driver_fd(&client->driver) : -1;
}

int vigil_client_timeout_ms(const vigil_client *client)
{
    return client ? driver_timeout_ms(&client->driver) : -1;
}

void vigil_client_process(vigil_client *client)
{
    if (client)
        driver_process(&client->driver);
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
        .connect_timeout_ns = driver_ns(o->connect_timeout_ms),
        .keepalive_ns = driver_ns(o->keepalive_ms),
        .keepalive_timeout_ns = driver_ns(o->keepalive_timeout_ms),
        .backoff_min_ns = driver_ns(o->backoff_min_ms),
        .backoff_max_ns = driver_ns(o->backoff_max_ms),
        .receive_bytes_max = o->receive_bytes_max,
        .log = driver_log,
        .ctx = &client->driver,
    };
    return channel_new(client->driver.loop, network, &options, &client->channel, error);
}

static void close_channel(struct driver *driver)
{
    struct vigil_client *client = CONTAINER_OF(driver, struct vigil_client, driver);
    channel_free(client->channel);
    client->channel = NULL;
    if (client->local)
        client->local->ops->close(client->local);
}

static void destroy(struct driver *driver)
{
    struct vigil_client *client = CONTAINER_OF(driver, struct vigil_client, driver);
    assert(!client->channel);
    free((void *)client->prefix.ptr);
    if (client->local)
        client->local->ops->free(client->local);
    free(client);
}

static const struct driver_ops client_driver_ops = {
    .close = close_channel,
    .destroy = destroy,
};

/* -- With a store in this process -- */

static void local_after_input(void *ctx)
{
    struct vigil_client *client = ctx;
    client->local->ops->after_input(client->local);
}

static bool local_end_of_turn(void *ctx)
{
    struct vigil_client *client = ctx;
    /* The store has received every write that arrived in this turn. From now on, writes of other
     * threads may overtake them no more, so they may run on their own thread again. */
    bool more = client->local->ops->end_of_turn(client->local);
    if (client->writes_arrived)
        atomic_fetch_sub(&client->writes_posted, client->writes_arrived);
    client->writes_arrived = 0;
    return more;
}

static enum status client_init(struct vigil_client *client, struct network *network,
                               struct client_local *local, const vigil_options *options,
                               struct error *error)
{
    *client = (struct vigil_client){
        .local = local,
        .driver.own_thread = options->own_thread != 0,
        .driver.log = options->log,
        .driver.log_user = options->log_user,
        .call_timeout_ms = options->call_timeout_ms,
        .send_bytes_max = options->send_bytes_max,
        .receive_bytes_max = options->receive_bytes_max,
    };
    TRY(driver_init(&client->driver, network, &client_driver_ops));
    if (client->local)
        loop_set_hooks(client->driver.loop, (struct loop_hooks){.after_input = local_after_input,
                                                                .end_of_turn = local_end_of_turn,
                                                                .ctx = client});
    if (options->prefix && *options->prefix) {
        char *copy = strdup(options->prefix);
        if (!copy)
            return ST_NOMEM;
        client->prefix = slice_of(copy, strlen(copy));
    }
    TRY(open_channel(client, network, options, error));
    return driver_start(&client->driver);
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

/* The options with the defaults for fields that the program's header does not have. */
static int complete_options(const vigil_options *options, vigil_options *ret_complete,
                            vigil_error *error)
{
    vigil_options *o = ret_complete;
    const char *fault = NULL;
    vigil_options_init(o);
    if (options && (options->size == 0 || options->size > sizeof(*o)))
        return refuse(error, VIGIL_ERROR_ARGUMENT,
                      "the options were not set up with vigil_options_init");
    /* A program that was compiled with an older header has a shorter struct. */
    if (options)
        memcpy(o, options, options->size);
    if (o->connect_timeout_ms < 0 || o->call_timeout_ms < 0 || o->keepalive_ms < 0 ||
        o->keepalive_timeout_ms < 0 || o->backoff_min_ms < 0 ||
        o->backoff_max_ms < o->backoff_min_ms)
        fault = "a time is negative, or backoff_max_ms is less than backoff_min_ms";
    else if (!o->cert_file != !o->key_file)
        fault = "cert_file and key_file belong together, but only one of them is set";
    else if (o->password && !o->user)
        fault = "password is set without user";
    return fault ? refuse(error, VIGIL_ERROR_ARGUMENT, fault) : VIGIL_OK;
}

int client_new_over(struct network *network, struct client_local *local,
                    const vigil_options *options, vigil_client **ret_client, vigil_error *error)
{
    vigil_options complete;
    struct vigil_client *client = NULL;
    int code = complete_options(options, &complete, error);
    if (code == VIGIL_OK)
        client = aligned_alloc(_Alignof(struct vigil_client),
                               align_up(sizeof(*client), _Alignof(struct vigil_client)));
    if (!client) {
        /* The client owns its side of the store, even if it cannot be created. */
        if (local) {
            local->ops->close(local);
            local->ops->free(local);
        }
        return code == VIGIL_OK ? refuse(error, VIGIL_ERROR_MEMORY, "out of memory") : code;
    }
    struct error why = {0};
    enum status status = client_init(client, network, local, &complete, &why);
    if (status != ST_OK) {
        driver_abandon(&client->driver);
        return refuse(error, code_of(status), why.text[0] ? why.text : status_reason(status));
    }
    if (error)
        *error = (vigil_error){.grpc_code = -1};
    *ret_client = client;
    return VIGIL_OK;
}

int vigil_client_new(const vigil_options *options, vigil_client **ret_client, vigil_error *error)
{
    if (!ret_client)
        return refuse(error, VIGIL_ERROR_ARGUMENT, "there is no place for the client");
    return client_new_over(network_posix(), NULL, options, ret_client, error);
}

void vigil_client_get_stats(const vigil_client *client, vigil_client_stats *ret_stats, size_t size)
{
    if (!client) {
        client_stats_copy(ret_stats, size, NULL, 0);
        return;
    }
    const struct client_counters *c = &client->counters;
    struct channel_stats channel = channel_stats(client->channel);
    vigil_client_stats stats = {
        .connects = channel.connects,
        .connect_errors = channel.connect_errors,
        .disconnects = channel.disconnects,
        .calls_started = atomic_load(&c->calls_started),
        .calls_completed = atomic_load(&c->calls_completed),
        .calls_retried = atomic_load(&c->calls_retried),
        .watches = atomic_load(&c->watches),
        .watch_resumes = atomic_load(&c->watch_resumes),
        .watch_events = atomic_load(&c->watch_events),
        .queued_bytes = atomic_load(&c->queued_bytes),
        .bytes_sent = channel.bytes_sent,
        .bytes_received = channel.bytes_received,
    };
    client_stats_copy(ret_stats, size, &stats, sizeof(stats));
}

const char *vigil_version(void)
{
    return LIBRARY_VERSION;
}
