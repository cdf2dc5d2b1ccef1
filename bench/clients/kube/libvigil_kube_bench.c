/*
 * What an informer and watches of libvigil-kube cost a program. bench/clients/client-go does the
 * same with client-go.
 *
 *     libvigil_kube_bench SERVER informer COUNT   until COUNT pods are in the store and in one
 *                                                 handler
 *     libvigil_kube_bench SERVER catchup COUNT    the same, then "ready"; after a number on the
 *                                                 standard input, until so many changes have
 *                                                 arrived
 *     libvigil_kube_bench SERVER watches COUNT    idle watches
 *
 * Prints one JSON object: CPU per object, change or watch, the time of all, and resident memory:
 * that of the program, or for watches that of each.
 */
#include "../meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <vigil/kube.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_long completed, wanted;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "libvigil_kube_bench: %s: %s\n", what, why);
    exit(1);
}

/* Takes the mutex only at the end: per change it would be a part of what is measured. */
static void note(long n)
{
    if (atomic_fetch_add(&completed, n) + n < atomic_load(&wanted))
        return;
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for_wanted(void)
{
    pthread_mutex_lock(&mutex);
    while (atomic_load(&completed) < atomic_load(&wanted))
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static vigil_kube *connect_to(const char *server, int http)
{
    vigil_kube_options options;
    vigil_kube *kube;
    vigil_error error;
    vigil_kube_options_init(&options);
    options.server = server;
    options.http = http;
    options.calls_per_second = 0;
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK)
        fail("cannot make a client", error.text);
    return kube;
}

/* The version of the pods now. */
static void get_version(vigil_kube *kube, char *ret_version, size_t size)
{
    vigil_kube_target pods = {.version = "v1", .resource = "pods"};
    vigil_kube_list_options options = {.size = sizeof(options), .limit = 1};
    vigil_kube_call *call = vigil_kube_list(kube, &pods, &options);
    if (vigil_kube_call_run(call) != VIGIL_OK)
        fail("list", vigil_kube_call_error(call)->text);
    snprintf(ret_version, size, "%s", vigil_kube_call_version(call));
    vigil_kube_call_free(call);
}

/* -- Informers -- */

static void on_change(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    (void)handler, (void)change, (void)user;
    note(1);
}

static vigil_kube_informer *start_informer(vigil_kube *kube, vigil_kube_handler **ret_handler)
{
    vigil_kube_informer_options options;
    vigil_kube_handler_options handler_options;
    vigil_kube_informer *informer;
    vigil_kube_informer_options_init(&options);
    options.target.version = "v1";
    options.target.resource = "pods";
    vigil_kube_handler_options_init(&handler_options);
    handler_options.place = VIGIL_KUBE_HANDLER_CALLBACK;
    handler_options.fn = on_change;
    if (vigil_kube_informer_new(kube, &options, &informer) != VIGIL_OK ||
        vigil_kube_informer_add_handler(informer, &handler_options, ret_handler) != VIGIL_OK ||
        vigil_kube_informer_start(informer) != VIGIL_OK)
        fail("informer", "cannot be started");
    return informer;
}

/* The memory of the whole program: the store is most of it. */
static void report_whole(const struct meter *since, long count)
{
    printf("{\"count\": %ld, \"cpu_us\": %.4f, \"seconds\": %.4f, \"bytes\": %.1f, "
           "\"heap_bytes\": %.1f}\n",
           count, (cpu_seconds() - since->cpu) / (double)count * 1e6,
           now_seconds() - since->seconds, resident_bytes(), heap_bytes());
}

static void run_informer(const char *server, long count)
{
    struct meter meter = start_meter();
    vigil_kube_handler *handler;
    vigil_kube *kube = connect_to(server, VIGIL_KUBE_HTTP_ANY);
    atomic_store(&wanted, count);
    vigil_kube_informer *informer = start_informer(kube, &handler);
    wait_for_wanted();
    report_whole(&meter, count);
    vigil_kube_handler_free(handler);
    vigil_kube_informer_free(informer);
    vigil_kube_free(kube);
}

static void run_catch_up(const char *server, long count)
{
    long changes;
    vigil_kube_handler *handler;
    vigil_kube *kube = connect_to(server, VIGIL_KUBE_HTTP_ANY);
    atomic_store(&wanted, count);
    vigil_kube_informer *informer = start_informer(kube, &handler);
    wait_for_wanted();
    printf("ready\n");
    fflush(stdout);
    if (scanf("%ld", &changes) != 1)
        fail("standard input", "there is no number");
    struct meter meter = start_meter();
    atomic_fetch_add(&wanted, changes);
    wait_for_wanted();
    report_whole(&meter, changes);
    vigil_kube_handler_free(handler);
    vigil_kube_informer_free(informer);
    vigil_kube_free(kube);
}

/* -- Watches -- */

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    (void)watch, (void)user;
    if (event->type == VIGIL_KUBE_ENDED)
        fail("watch", event->reason);
    return VIGIL_KUBE_CONTINUE;
}

/* Until the server has accepted all of them. */
static void wait_for_watches(vigil_kube *kube, uint64_t received, long count)
{
    vigil_kube_stats stats;
    do {
        usleep(20000);
        vigil_kube_get_stats(kube, &stats, sizeof(stats));
    } while (stats.watches < (uint64_t)count || stats.bytes_received - received < (uint64_t)count);
    usleep(500000);
}

static void run_watches(const char *server, long count)
{
    char version[128];
    vigil_kube *kube = connect_to(server, VIGIL_KUBE_HTTP_2);
    vigil_kube_watch_options options;
    vigil_kube_stats stats;
    get_version(kube, version, sizeof(version));
    vigil_kube_watch_options_init(&options);
    options.target.version = "v1";
    options.target.resource = "pods";
    options.field_selector = "metadata.name=nothing";
    options.version = version;
    vigil_kube_get_stats(kube, &stats, sizeof(stats));
    vigil_kube_watch **watches = calloc((size_t)count, sizeof(*watches));
    if (!watches)
        fail("watches", "out of memory");
    struct meter meter = start_meter();
    for (long i = 0; i < count; i++)
        if (vigil_kube_watch_new(kube, &options, on_event, NULL, &watches[i]) != VIGIL_OK)
            fail("watch", "cannot be started");
    wait_for_watches(kube, stats.bytes_received, count);
    report(&meter, count);
    for (long i = 0; i < count; i++)
        vigil_kube_watch_free(watches[i]);
    free(watches);
    vigil_kube_free(kube);
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (count > 0 && strcmp(argv[2], "informer") == 0)
        run_informer(argv[1], count);
    else if (count > 0 && strcmp(argv[2], "catchup") == 0)
        run_catch_up(argv[1], count);
    else if (count > 0 && strcmp(argv[2], "watches") == 0)
        run_watches(argv[1], count);
    else {
        fprintf(stderr, "usage: libvigil_kube_bench SERVER informer|catchup|watches COUNT\n");
        return 2;
    }
    return 0;
}
