/*
 * What libvigil costs a program: CPU per call, per event and per watch. bench/clients/clientv3 does
 * the same with etcd's own client.
 *
 *     libvigil_bench ENDPOINT put|get COUNT            100 in flight
 *     libvigil_bench ENDPOINT events WATCHES COUNT
 *     libvigil_bench ENDPOINT watches COUNT
 *
 * Prints one JSON object: seconds of CPU and of time, operations, and bytes of memory per watch.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vigil/vigil.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long completed, wanted;

static void note(long n)
{
    pthread_mutex_lock(&mutex);
    completed += n;
    if (completed >= wanted)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for(long count)
{
    pthread_mutex_lock(&mutex);
    wanted = count;
    while (completed < wanted)
        pthread_cond_wait(&changed, &mutex);
    completed = 0;
    wanted = 0;
    pthread_mutex_unlock(&mutex);
}

static void fail(const char *what, const vigil_error *error)
{
    fprintf(stderr, "libvigil_bench: %s: %s\n", what, error ? error->text : "failed");
    exit(1);
}

static vigil_client *connect_to(const char *endpoint)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_options_init(&options);
    options.endpoints = endpoint;
    options.call_timeout_ms = 60000;
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK)
        fail("cannot make a client", &error);
    vigil_call *call = vigil_get(client, vigil_text("warm"));
    if (vigil_call_run(call) != VIGIL_OK)
        fail("cannot connect", vigil_call_error(call));
    vigil_call_free(call);
    return client;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long resident_kb(void)
{
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%ld %ld", &pages, &resident) != 2)
        fail("no statm", NULL);
    fclose(statm);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void report(long count, double cpu, double seconds, double bytes_each)
{
    printf("{\"count\": %ld, \"cpu_us\": %.4f, \"seconds\": %.4f, \"bytes\": %.1f}\n", count,
           cpu / (double)count * 1e6, seconds, bytes_each);
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
    double cpu = cpu_seconds(), began = now_seconds();
    if (vigil_call_start(vigil_get(load.client, vigil_text("go")), begin_load, &load) != VIGIL_OK)
        fail("start", NULL);
    wait_for(count);
    report(count, cpu_seconds() - cpu, now_seconds() - began, 0);
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
    for (long i = 0; i < count; i++) {
        vigil_watch *watch;
        snprintf(key, sizeof(key), pattern, i);
        options.key = vigil_text(key);
        if (vigil_watch_new(client, &options, on_batch, NULL, &watch) != VIGIL_OK)
            fail("watch", NULL);
    }
    wait_for(count);
}

/* Puts of one key that all watches see, by another process. */
static pid_t start_writer(const char *endpoint, long puts, int go)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte, value[300];
    memset(value, 'v', sizeof(value));
    vigil_client *client = connect_to(endpoint);
    if (read(go, &byte, 1) != 1)
        _exit(1);
    for (long i = 0; i < puts; i++) {
        vigil_call *call =
            vigil_put(client, vigil_text("seen"), vigil_bytes_of(value, sizeof(value)), 0);
        if (vigil_call_run(call) != VIGIL_OK)
            _exit(1);
        vigil_call_free(call);
    }
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
    double cpu = cpu_seconds(), began = now_seconds();
    if (write(go[1], "x", 1) != 1)
        fail("pipe", NULL);
    wait_for(count);
    report(count, cpu_seconds() - cpu, now_seconds() - began, 0);
    waitpid(writer, NULL, 0);
    vigil_client_free(client);
}

static void run_watches(const char *endpoint, long count)
{
    vigil_client *client = connect_to(endpoint);
    long before = resident_kb();
    double cpu = cpu_seconds(), began = now_seconds();
    make_watches(client, count, "watched/%08ld");
    report(count, cpu_seconds() - cpu, now_seconds() - began,
           (double)(resident_kb() - before) * 1024 / (double)count);
    vigil_client_free(client);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[2], "put") == 0)
        run_calls(argv[1], 1, atol(argv[3]));
    else if (argc == 4 && strcmp(argv[2], "get") == 0)
        run_calls(argv[1], 0, atol(argv[3]));
    else if (argc == 5 && strcmp(argv[2], "events") == 0)
        run_events(argv[1], atol(argv[3]), atol(argv[4]));
    else if (argc == 4 && strcmp(argv[2], "watches") == 0)
        run_watches(argv[1], atol(argv[3]));
    else
        return 2;
    return 0;
}
