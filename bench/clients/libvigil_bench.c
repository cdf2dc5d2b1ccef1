/*
 * What libvigil costs a program: CPU per call, per event and per watch. bench/clients/clientv3 does
 * the same with etcd's own client.
 *
 *     libvigil_bench ENDPOINT put|get COUNT            100 in flight
 *     libvigil_bench ENDPOINT events WATCHES COUNT
 *     libvigil_bench ENDPOINT watches COUNT
 *     libvigil_bench ENDPOINT resume COUNT
 *     libvigil_bench ENDPOINT idle|idle-loop COUNT     handles with a connection, without work
 *
 * Prints one JSON object: CPU per operation, the time of all, and bytes of resident memory and of
 * the heap per watch or handle.
 */
#include "meter.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <vigil/poll.h>
#include <vigil/vigil.h>

enum { DESCRIPTORS_MAX = 1024, IDLE_SECONDS = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_long completed, wanted;

/* Takes the mutex only at the end: per event it would be a part of what is measured. */
static void note(long n)
{
    if (atomic_fetch_add(&completed, n) + n < atomic_load(&wanted))
        return;
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Set before the work is begun, so that nothing is signalled before it is complete. */
static void expect(long count)
{
    atomic_store(&completed, 0);
    atomic_store(&wanted, count);
}

static void wait_for_expected(void)
{
    pthread_mutex_lock(&mutex);
    while (atomic_load(&completed) < atomic_load(&wanted))
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void fail(const char *what, const vigil_error *error)
{
    fprintf(stderr, "libvigil_bench: %s: %s\n", what, error ? error->text : "failed");
    exit(1);
}

static vigil_client *new_client(const char *endpoint, int own_thread)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_options_init(&options);
    options.endpoints = endpoint;
    options.call_timeout_ms = 60000;
    options.own_thread = own_thread;
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK)
        fail("cannot make a client", &error);
    return client;
}

static vigil_client *connect_to(const char *endpoint)
{
    vigil_client *client = new_client(endpoint, 1);
    vigil_call *call = vigil_get(client, vigil_text("warm"));
    if (vigil_call_run(call) != VIGIL_OK)
        fail("cannot connect", vigil_call_error(call));
    vigil_call_free(call);
    return client;
}

/* -- Calls -- */

struct load {
    vigil_client *client;
    int puts;
    long left;
};

static void start_next(struct load *load);

static void on_done(vigil_call *call, void *user)
{
    struct load *load = user;
    if (vigil_call_error(call)->code != VIGIL_OK)
        fail("call", vigil_call_error(call));
    vigil_call_free(call);
    start_next(load);
    note(1);
}

/* Only on the client's thread, once the load has begun. */
static void start_next(struct load *load)
{
    char key[32];
    static char value[256];
    if (load->left == 0)
        return;
    snprintf(key, sizeof(key), "bench/%ld", load->left-- % 10000);
    vigil_call *call = load->puts ? vigil_put(load->client, vigil_text(key),
                                              vigil_bytes_of(value, sizeof(value)), 0)
                                  : vigil_get(load->client, vigil_text(key));
    if (vigil_call_start(call, on_done, load) != VIGIL_OK)
        fail("start", NULL);
}

static void begin_load(vigil_call *call, void *user)
{
    struct load *load = user;
    vigil_call_free(call);
    for (long i = 0; i < 100; i++)
        start_next(load);
}

static void run_calls(const char *endpoint, int puts, long count)
{
    struct load load = {connect_to(endpoint), puts, count};
    expect(count);
    struct meter meter = start_meter();
    if (vigil_call_start(vigil_get(load.client, vigil_text("go")), begin_load, &load) != VIGIL_OK)
        fail("start", NULL);
    wait_for_expected();
    report(&meter, count);
    vigil_client_free(load.client);
}

/* -- Watches -- */

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    (void)user;
    if (batch->what == VIGIL_WATCH_ENDED)
        fail("watch", batch->error);
    note(batch->what == VIGIL_WATCH_EVENTS ? (long)batch->event_count : 1);
    return VIGIL_WATCH_CONTINUE;
}

static void make_watches(vigil_client *client, long count, const char *pattern)
{
    char key[32];
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.created_notify = 1;
    expect(count);
    for (long i = 0; i < count; i++) {
        vigil_watch *watch;
        snprintf(key, sizeof(key), pattern, i);
        options.key = vigil_text(key);
        if (vigil_watch_new(client, &options, on_batch, NULL, &watch) != VIGIL_OK)
            fail("watch", NULL);
    }
    wait_for_expected();
}

/* A change of the key that all watches see. */
static void put_seen(vigil_client *client)
{
    static char value[300];
    vigil_call *call =
        vigil_put(client, vigil_text("seen"), vigil_bytes_of(value, sizeof(value)), 0);
    if (vigil_call_run(call) != VIGIL_OK)
        fail("put", vigil_call_error(call));
    vigil_call_free(call);
}

/* The puts are made by another process, so that its CPU is not counted. */
static pid_t start_writer(const char *endpoint, long puts, int go)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte;
    vigil_client *client = connect_to(endpoint);
    if (read(go, &byte, 1) != 1)
        _exit(1);
    for (long i = 0; i < puts; i++)
        put_seen(client);
    _exit(0);
}

static void run_events(const char *endpoint, long watches, long count)
{
    int go[2];
    if (pipe(go) != 0)
        fail("pipe", NULL);
    pid_t writer = start_writer(endpoint, count / watches, go[0]);
    vigil_client *client = connect_to(endpoint);
    make_watches(client, watches, "seen");
    count = count / watches * watches;
    expect(count);
    struct meter meter = start_meter();
    if (write(go[1], "x", 1) != 1)
        fail("pipe", NULL);
    wait_for_expected();
    report(&meter, count);
    waitpid(writer, NULL, 0);
    vigil_client_free(client);
}

static void run_watches(const char *endpoint, long count)
{
    vigil_client *client = connect_to(endpoint);
    struct meter meter = start_meter();
    make_watches(client, count, "watched/%08ld");
    report(&meter, count);
    vigil_client_free(client);
}

/* -- Resuming -- */

/* The descriptor of the only connection that this process has. */
static int find_connection(void)
{
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET)
            return fd;
    }
    fail("no connection over IPv4", NULL);
    return -1;
}

/* From the end of the connection until each watch has delivered a change that was made meanwhile.
 * Shutting the socket down ends both directions, as if the server had gone away. */
static void run_resume(const char *endpoint, long count)
{
    vigil_client *client = connect_to(endpoint);
    int connection = find_connection();
    vigil_client *writer = connect_to(endpoint);
    make_watches(client, count, "seen");
    expect(count);
    struct meter meter = start_meter();
    if (shutdown(connection, SHUT_RDWR) != 0)
        fail("shutdown", NULL);
    put_seen(writer);
    wait_for_expected();
    report(&meter, count);
    vigil_client_free(writer);
    vigil_client_free(client);
}

/* -- Idle handles -- */

static void on_connected(vigil_call *call, void *user)
{
    if (vigil_call_error(call)->code != VIGIL_OK)
        fail("call", vigil_call_error(call));
    *(int *)user = 1;
    vigil_call_free(call);
}

/* One turn of a loop that has only this client. */
static void turn(vigil_client *client, int timeout_ms)
{
    struct pollfd fd;
    vigil_poll_prepare(client, &fd, &timeout_ms);
    poll(&fd, 1, timeout_ms);
    vigil_client_process(client);
}

static vigil_client *connect_in_loop(const char *endpoint)
{
    int connected = 0;
    vigil_client *client = new_client(endpoint, 0);
    if (vigil_call_start(vigil_get(client, vigil_text("warm")), on_connected, &connected) !=
        VIGIL_OK)
        fail("start", NULL);
    while (!connected)
        turn(client, -1);
    return client;
}

/* Until a client has had the time to give back what it uses only while bytes are transferred. */
static void become_idle(vigil_client **clients, long count, int own_thread)
{
    for (double end = now_seconds() + IDLE_SECONDS; now_seconds() < end; usleep(100000))
        for (long i = 0; i < count && !own_thread; i++)
            turn(clients[i], 0);
}

static void run_idle(const char *endpoint, int own_thread, long count)
{
    vigil_client **clients = calloc((size_t)count, sizeof(vigil_client *));
    if (!clients)
        fail("no memory", NULL);
    /* What the process needs once: code, tables, buffers of the C library. */
    vigil_client *first = own_thread ? connect_to(endpoint) : connect_in_loop(endpoint);
    struct meter meter = start_meter();
    for (long i = 0; i < count; i++)
        clients[i] = own_thread ? connect_to(endpoint) : connect_in_loop(endpoint);
    become_idle(clients, count, own_thread);
    report(&meter, count);
    for (long i = 0; i < count; i++)
        vigil_client_free(clients[i]);
    vigil_client_free(first);
    free(clients);
}

static int run(const char *endpoint, const char *work, long first, long second)
{
    if (strcmp(work, "put") == 0)
        run_calls(endpoint, 1, first);
    else if (strcmp(work, "get") == 0)
        run_calls(endpoint, 0, first);
    else if (strcmp(work, "events") == 0 && second > 0)
        run_events(endpoint, first, second);
    else if (strcmp(work, "watches") == 0)
        run_watches(endpoint, first);
    else if (strcmp(work, "resume") == 0)
        run_resume(endpoint, first);
    else if (strcmp(work, "idle") == 0)
        run_idle(endpoint, 1, first);
    else if (strcmp(work, "idle-loop") == 0)
        run_idle(endpoint, 0, first);
    else
        return 2;
    return 0;
}

int main(int argc, char **argv)
{
    long first = argc >= 4 ? strtol(argv[3], NULL, 10) : 0;
    long second = argc >= 5 ? strtol(argv[4], NULL, 10) : 0;
    if (first <= 0) {
        fprintf(stderr, "usage: libvigil_bench ENDPOINT "
                        "put|get|events|watches|resume|idle|idle-loop COUNT …\n");
        return 2;
    }
    return run(argv[1], argv[2], first, second);
}
