/* Vigil's store in this process, and a server of etcd's API, both through libvigil. */
#include "stores.h"

#include "../clients/meter.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <vigil/embed.h>
#include <vigil/vigil.h>

enum { TXN_OPS_MAX = 128, IN_FLIGHT = 1024 };

struct session {
    vigil_client *client;
    vigil_txn *txn; /* puts that are not committed yet; NULL: none */
    int ops;
};

static void run(vigil_call *call)
{
    if (vigil_call_run(call) != VIGIL_OK)
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    must(vigil_call_error(call)->code == VIGIL_OK, "a call");
    vigil_call_free(call);
}

static struct session *session_of(vigil_client *client)
{
    struct session *session = calloc(1, sizeof(*session));
    must(session, "memory");
    session->client = client;
    return session;
}

static vigil_client *open_directory(const char *place)
{
    vigil_embedded_options options;
    vigil_client *client = NULL;
    vigil_error error;
    vigil_embedded_options_init(&options);
    options.quota_bytes = 0;
    if (vigil_open_embedded(place, &options, &client, &error) != VIGIL_OK)
        fprintf(stderr, "%s\n", error.text);
    must(client, "vigil_open_embedded");
    return client;
}

static void *vigil_open(const char *place)
{
    return session_of(open_directory(place));
}

static void *server_open(const char *place)
{
    vigil_options options;
    vigil_client *client = NULL;
    vigil_options_init(&options);
    options.endpoints = place;
    options.call_timeout_ms = 60000;
    must(vigil_client_new(&options, &client, NULL) == VIGIL_OK, "vigil_client_new");
    return session_of(client);
}

static void client_close(void *arg)
{
    struct session *session = arg;
    vigil_client_free(session->client);
    free(session);
}

static void *client_join(void *arg)
{
    return session_of(((struct session *)arg)->client);
}

static void client_leave(void *session)
{
    free(session);
}

static void client_get(void *arg, const char *key)
{
    struct session *session = arg;
    vigil_call *call = vigil_get(session->client, vigil_bytes_of(key, KEY_BYTES));
    must(vigil_call_run(call) == VIGIL_OK && vigil_range_result(call)->kv_count == 1, "a get");
    vigil_call_free(call);
}

static void commit(struct session *session)
{
    run(vigil_txn_call(session->txn));
    vigil_txn_free(session->txn);
    session->txn = NULL;
    session->ops = 0;
}

static void client_put(void *arg, const char *key, const char *value, bool last)
{
    struct session *session = arg;
    vigil_bytes name = vigil_bytes_of(key, KEY_BYTES), bytes = vigil_bytes_of(value, VALUE_BYTES);
    if (last && !session->txn) {
        run(vigil_put(session->client, name, bytes, 0));
        return;
    }
    if (!session->txn)
        session->txn = vigil_txn_new(session->client);
    vigil_txn_put(session->txn, name, bytes, 0);
    if (++session->ops == TXN_OPS_MAX || last)
        commit(session);
}

const struct store_ops vigil_store = {vigil_open,   client_close, client_join,
                                      client_leave, client_get,   client_put};
const struct store_ops server_store = {server_open,  client_close, client_join,
                                       client_leave, client_get,   client_put};

/* -- Events -- */

static _Atomic long completed, delivered;

static void on_done(vigil_call *call, void *user)
{
    (void)user;
    must(vigil_call_error(call)->code == VIGIL_OK, "a put");
    vigil_call_free(call);
    atomic_fetch_add(&completed, 1);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    (void)user;
    must(batch->what != VIGIL_WATCH_ENDED, "a watch");
    atomic_fetch_add(&delivered, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

static void put_all(vigil_client *client, long count)
{
    char key[KEY_BYTES + 1], value[VALUE_BYTES];
    memset(value, 'v', sizeof(value));
    atomic_store(&completed, 0);
    for (long i = 0; i < count; i++) {
        while (i - atomic_load(&completed) >= IN_FLIGHT)
            usleep(20);
        make_key(key, i % 1000);
        vigil_call_start(vigil_put(client, vigil_bytes_of(key, KEY_BYTES),
                                   vigil_bytes_of(value, sizeof(value)), 0),
                         on_done, NULL);
    }
    while (atomic_load(&completed) < count)
        usleep(20);
}

/* So many that they take more than the difference between two runs of the same puts. */
enum { WATCHES = 10 };

/* The CPU of an event is what puts with watches take more than puts without one. */
void vigil_events(const char *place, long count)
{
    vigil_client *client = open_directory(place);
    vigil_watch_options options;
    vigil_watch *watches[WATCHES];
    put_all(client, count / 10);
    struct meter meter = start_meter();
    put_all(client, count);
    double without = cpu_seconds() - meter.cpu;
    vigil_watch_options_init(&options);
    options.key = vigil_text("bench/");
    options.prefix = 1;
    for (int i = 0; i < WATCHES; i++) {
        must(vigil_watch_new(client, &options, on_batch, NULL, &watches[i]) == VIGIL_OK, "a watch");
        atomic_store(&delivered, 0);
        while (atomic_load(&delivered) <= i) { /* until it is there, too */
            atomic_store(&delivered, 0);
            put_all(client, 1);
            usleep(10000);
        }
    }
    atomic_store(&delivered, 0);
    meter = start_meter();
    put_all(client, count);
    while (atomic_load(&delivered) < count * WATCHES)
        usleep(20);
    meter.cpu += without;
    report(&meter, count * WATCHES);
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(watches[i]);
    vigil_client_free(client);
}

const struct store_ops *store_named(const char *name)
{
    if (strcmp(name, "vigil") == 0)
        return &vigil_store;
    if (strcmp(name, "server") == 0)
        return &server_store;
    if (strcmp(name, "lmdb") == 0)
        return &lmdb_store;
    return strcmp(name, "sqlite") == 0 ? &sqlite_store : NULL;
}
