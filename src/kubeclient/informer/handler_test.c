/* Handlers of an informer in the three places where they may run. */
#include "kubeclient/informer/handler.h"

#include "kubeclient/data/objects_test.h"
#include "kubeclient/informer/collection_sim_test.h"
#include "kubeclient/informer/informer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vigil/kube/call.h>

static struct kube_world world;
static struct collection collection;
static vigil_kube_informer *informer;

/* What a handler saw. Its function may run on another thread, which the test waits for. */
struct seen {
    vigil_kube_handler *handler;
    struct lock lock;
    int known[COLLECTION_NAMES];
    unsigned calls, initial, resyncs;
    bool wrong;             /* the state before was not the one seen last */
    sem_t *entered, *leave; /* every call announces itself, and waits */
    bool frees;             /* the first call frees the handler */
    bool waits;             /* every call waits for the informer, which must exist */
    int wait_code;          /* result of waiting inside the function */
};

static int number_of(vigil_bytes text)
{
    return test_number(slice_of(text.data, text.size));
}

static void note(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct seen *seen = user;
    int name = number_of(vigil_kube_object_name(change->object));
    int before = change->before ? number_of(vigil_kube_object_version(change->before)) : 0;
    bool deleted = change->kind == VIGIL_KUBE_CHANGE_DELETED;
    if (seen->entered)
        sem_post(seen->entered);
    if (seen->leave)
        sem_wait(seen->leave);
    lock_take(&seen->lock);
    seen->wrong |= seen->known[name] != before;
    seen->known[name] = deleted ? 0 : number_of(vigil_kube_object_version(change->object));
    seen->calls++;
    seen->initial += change->initial;
    seen->resyncs += change->resync;
    lock_release(&seen->lock);
    if (seen->waits)
        seen->wait_code = vigil_kube_informer_wait_synced(informer, 0);
    if (seen->frees)
        vigil_kube_handler_free(handler);
}

static bool has_all(struct seen *seen)
{
    LOCK_SCOPE(&seen->lock);
    for (int name = 0; name < COLLECTION_NAMES; name++) {
        if (seen->known[name] != collection_version(&collection, name, collection.revision))
            return false;
    }
    return true;
}

static void begin(void)
{
    kube_world_init(&world, SIM_HTTP2, NULL);
    collection_init(&collection, &world, 1);
    for (int name = 0; name < 5; name++)
        collection_put(&collection, name);
    assert_true(kube_world_start(&world));
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
}

static void start(void)
{
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, vigil_kube_informer_has_synced(informer));
    kube_world_run(&world, NS_PER_S);
}

static void end(void)
{
    vigil_kube_informer_free(informer);
    kube_world_fini(&world);
}

static vigil_kube_handler_options options_of(int place, struct seen *seen)
{
    vigil_kube_handler_options options;
    vigil_kube_handler_options_init(&options);
    options.place = place;
    options.fn = note;
    options.user = seen;
    return options;
}

static void add(struct seen *seen, int place, int64_t resync_ms)
{
    vigil_kube_handler_options options = options_of(place, seen);
    options.resync_ms = resync_ms;
    lock_init(&seen->lock);
    assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &seen->handler), VIGIL_OK);
}

/* Takes all that wait. */
static void take_all(struct seen *seen)
{
    vigil_kube_change change;
    int code;
    while ((code = vigil_kube_handler_take(seen->handler, 0, &change)) == VIGIL_OK)
        note(seen->handler, &change, seen);
    assert_int_equal(code, VIGIL_ERROR_TIMEOUT);
}

/* Waits for a thread that will do it soon. */
#define AWAIT(condition) \
    while (!(condition)) \
    sched_yield()

static void change_some(int count)
{
    for (int i = 0; i < count; i++)
        collection_change_one(&collection);
    kube_world_run(&world, NS_PER_S);
}

/* TestSharedInformerMultipleRegistration: all of them have the same function. */
static void handlers_in_all_places_get_the_same(void **state)
{
    (void)state;
    struct seen thread = {0}, callback = {.waits = true}, taken = {0};
    begin();
    add(&thread, VIGIL_KUBE_HANDLER_THREAD, 0);
    add(&callback, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    add(&taken, VIGIL_KUBE_HANDLER_TAKE, 0);
    assert_int_equal(vigil_kube_handler_fd(callback.handler), -1);
    start();
    take_all(&taken);
    for (int i = 0; i < 30; i++) {
        change_some(10);
        take_all(&taken);
    }
    AWAIT(has_all(&thread));
    assert_true(has_all(&callback) && has_all(&taken));
    AWAIT(vigil_kube_handler_has_synced(thread.handler));
    assert_true(vigil_kube_handler_has_synced(callback.handler));
    assert_true(vigil_kube_handler_has_synced(taken.handler));
    assert_false(thread.wrong || callback.wrong || taken.wrong);
    assert_int_equal(thread.calls, (unsigned)collection.revision);
    assert_int_equal(callback.calls, (unsigned)collection.revision);
    assert_int_equal(taken.calls, (unsigned)collection.revision);
    assert_int_equal(callback.wait_code, VIGIL_ERROR_WOULD_BLOCK);
    vigil_kube_handler_free(thread.handler);
    vigil_kube_handler_free(callback.handler);
    vigil_kube_handler_free(taken.handler);
    end();
}

/* TestAddWhileActive */
static void late_handler_gets_the_current_state(void **state)
{
    (void)state;
    struct seen late[3] = {{0}};
    begin();
    start();
    for (int place = 0; place < 3; place++)
        add(&late[place], place, 0);
    assert_int_equal(vigil_kube_handler_has_synced(late[VIGIL_KUBE_HANDLER_TAKE].handler), 0);
    kube_world_run(&world, NS_PER_S);
    take_all(&late[VIGIL_KUBE_HANDLER_TAKE]);
    for (int place = 0; place < 3; place++) {
        AWAIT(vigil_kube_handler_has_synced(late[place].handler));
        assert_true(has_all(&late[place]));
        assert_int_equal(late[place].calls, 5);
        assert_int_equal(late[place].initial, 5);
    }
    collection_put(&collection, 1);
    kube_world_run(&world, NS_PER_S);
    take_all(&late[VIGIL_KUBE_HANDLER_TAKE]);
    for (int place = 0; place < 3; place++) {
        AWAIT(has_all(&late[place]));
        assert_int_equal(late[place].initial, 5);
        vigil_kube_handler_free(late[place].handler);
    }
    end();
}

static void descriptor_is_readable_while_a_change_waits(void **state)
{
    (void)state;
    struct seen taken = {0};
    vigil_kube_change first, second;
    begin();
    add(&taken, VIGIL_KUBE_HANDLER_TAKE, 0);
    struct pollfd fd = {.fd = vigil_kube_handler_fd(taken.handler), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(vigil_kube_handler_take(taken.handler, 0, &first), VIGIL_ERROR_TIMEOUT);
    assert_int_equal(vigil_kube_handler_take(taken.handler, 1, &first), VIGIL_ERROR_TIMEOUT);
    start();
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(vigil_kube_handler_take(taken.handler, -1, &first), VIGIL_OK);
    int version = number_of(vigil_kube_object_version(first.object));
    collection_delete(&collection, version - 1);
    kube_world_run(&world, NS_PER_S); /* the change stays valid */
    assert_int_equal(number_of(vigil_kube_object_version(first.object)), version);
    for (int i = 0; i < 5; i++)
        assert_int_equal(vigil_kube_handler_take(taken.handler, 0, &second), VIGIL_OK);
    assert_int_equal(second.kind, VIGIL_KUBE_CHANGE_DELETED);
    assert_int_equal(number_of(vigil_kube_object_version(second.before)), version);
    assert_int_equal(number_of(vigil_kube_object_version(second.object)), 6);
    assert_int_equal(poll(&fd, 1, 0), 0);
    vigil_kube_informer_free(informer);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(vigil_kube_handler_take(taken.handler, -1, &first), VIGIL_ERROR_CANCELED);
    informer = NULL;
    vigil_kube_handler_free(taken.handler);
    end();
}

/* -- Slow handlers -- */

static void slow_handler_delays_no_other(void **state)
{
    (void)state;
    sem_t entered, leave;
    struct seen slow = {.entered = &entered, .leave = &leave}, quick = {0}, forgotten = {0};
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    begin();
    add(&slow, VIGIL_KUBE_HANDLER_THREAD, 0);
    add(&quick, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    add(&forgotten, VIGIL_KUBE_HANDLER_TAKE, 0); /* takes nothing */
    start();
    sem_wait(&entered); /* it stays in its first call */
    for (int i = 0; i < 25; i++) {
        change_some(100);
        assert_true(has_all(&quick));
        size_t most = CHANGES_UNJOINED_MAX + COLLECTION_NAMES;
        assert_true(change_queue_count(&slow.handler->consumer.queue) <= most);
        assert_true(change_queue_count(&forgotten.handler->consumer.queue) <= most);
    }
    assert_int_equal(quick.calls, (unsigned)collection.revision);
    assert_int_equal(vigil_kube_handler_has_synced(slow.handler), 0);
    for (int i = 0; i < 2 * CHANGES_UNJOINED_MAX; i++)
        sem_post(&leave);
    AWAIT(has_all(&slow));
    assert_false(slow.wrong);
    assert_true(slow.calls < (unsigned)collection.revision);
    vigil_kube_handler_free(slow.handler);
    vigil_kube_handler_free(quick.handler);
    vigil_kube_handler_free(forgotten.handler);
    end();
    sem_destroy(&entered);
    sem_destroy(&leave);
}

/* -- Freeing -- */

static void handler_frees_itself(void **state)
{
    (void)state;
    sem_t entered;
    sem_init(&entered, 0, 0);
    for (int place = VIGIL_KUBE_HANDLER_THREAD; place <= VIGIL_KUBE_HANDLER_CALLBACK; place++) {
        for (int late = 0; late < 2; late++) {
            struct seen seen = {.entered = &entered, .frees = true};
            begin();
            if (late)
                start();
            add(&seen, place, 10);
            if (!late)
                start();
            kube_world_run(&world, NS_PER_S);
            sem_wait(&entered);
            change_some(20);
            while (atomic_load(&informer->copy->refs) > 1) /* until its thread is over, too */
                kube_world_run(&world, NS_PER_MS);
            end();
            assert_int_equal(seen.calls, 1);
            assert_int_equal(sem_trywait(&entered), -1);
        }
    }
    sem_destroy(&entered);
}

static void *free_handler(void *arg)
{
    vigil_kube_handler_free(arg);
    return NULL;
}

/* TestRemoveWhileActive, TestSharedInformerRemoveHandler: the handler is freed while its function
 * runs on its thread, and while the thread waits. */
static void freeing_waits_for_the_function(void **state)
{
    (void)state;
    sem_t entered, leave;
    pthread_t thread;
    struct seen seen = {.entered = &entered, .leave = &leave}, idle = {0};
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    begin();
    add(&seen, VIGIL_KUBE_HANDLER_THREAD, 0);
    start();
    sem_wait(&entered);
    assert_int_equal(pthread_create(&thread, NULL, free_handler, seen.handler), 0);
    struct change_queue *queue = &seen.handler->consumer.queue;
    AWAIT(change_queue_count(queue) == 0); /* it is being freed, and waits */
    assert_int_equal(seen.calls, 0);
    sem_post(&leave);
    pthread_join(thread, NULL);
    assert_int_equal(seen.calls, 1);
    collection_delete(&collection, 0);
    collection_delete(&collection, 1);
    kube_world_run(&world, NS_PER_S);
    add(&idle, VIGIL_KUBE_HANDLER_THREAD, 0);
    AWAIT(has_all(&idle));
    vigil_kube_handler_free(idle.handler);
    assert_int_equal(seen.calls, 1);
    end();
    sem_destroy(&entered);
    sem_destroy(&leave);
}

/* TestRemoveOnStoppedSharedInformer, TestShutdown */
static void handlers_outlive_informer_and_client(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct seen seen[3] = {{0}};
        begin();
        for (int place = 0; place < 3; place++)
            add(&seen[place], place, 1000);
        start();
        AWAIT(has_all(&seen[VIGIL_KUBE_HANDLER_THREAD]));
        if (order == 0)
            vigil_kube_informer_free(TAKE(informer));
        kube_world_free_client(&world);
        for (int place = 0; place < 3; place++)
            vigil_kube_handler_free(seen[place].handler);
        end();
    }
}

/* TestAddOnStoppedSharedInformer */
static void handler_of_an_informer_that_has_ended_is_refused(void **state)
{
    (void)state;
    struct seen seen = {0};
    vigil_kube_handler_options options = options_of(VIGIL_KUBE_HANDLER_THREAD, &seen);
    begin();
    kube_world_free_client(&world);
    assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &seen.handler),
                     VIGIL_ERROR_CANCELED);
    assert_null(seen.handler);
    end();
}

/* -- Threads -- */

static _Atomic bool abuse_over;

static void ignore(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    (void)handler, (void)change, (void)user;
}

static void *abuse(void *arg)
{
    struct random random;
    vigil_kube_handler *handlers[8] = {NULL};
    random_init(&random, (uint64_t)(uintptr_t)arg);
    while (!atomic_load(&abuse_over)) {
        vigil_kube_handler_options options =
            options_of((int)random_below(&random, 3), (struct seen *)NULL);
        size_t at = (size_t)random_below(&random, COUNT_OF(handlers));
        options.fn = ignore;
        options.resync_ms = 1000;
        if (handlers[at])
            vigil_kube_handler_free(TAKE(handlers[at]));
        else if (vigil_kube_informer_add_handler(informer, &options, &handlers[at]) != VIGIL_OK)
            abort();
        if (vigil_kube_informer_start(informer) != VIGIL_OK)
            abort();
        vigil_kube_object_unref(vigil_kube_informer_get(informer, vigil_text("odd/1")));
    }
    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        vigil_kube_handler_free(handlers[i]);
    return NULL;
}

/* TestSharedInformerHandlerAbuse, TestSharedInformerStartRace: threads start the informer, and add
 * and free handlers, while objects change. */
static void handlers_are_added_and_freed_on_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct seen seen = {0};
    begin();
    add(&seen, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    atomic_store(&abuse_over, false);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, abuse, (void *)(i + 1)), 0);
    start();
    for (int i = 0; i < 50; i++)
        change_some(10);
    assert_true(has_all(&seen));
    assert_false(seen.wrong);
    atomic_store(&abuse_over, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    kube_world_run(&world, NS_PER_S);
    vigil_kube_handler_free(seen.handler);
    end();
}

/* -- Resync -- */

static unsigned resyncs_of(struct seen *seen)
{
    LOCK_SCOPE(&seen->lock);
    return seen->resyncs;
}

/* TestReflectorResync, TestListenerResyncPeriods: every handler has its own time. */
static void resync_reports_every_object_again(void **state)
{
    (void)state;
    struct seen seen[3] = {{0}}, none = {0};
    begin();
    for (int place = 0; place < 3; place++)
        add(&seen[place], place, place == 0 ? 1 : 10000); /* at least a second */
    add(&none, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    start();
    kube_world_run(&world, 7500 * NS_PER_MS);
    AWAIT(resyncs_of(&seen[0]) >= 35);
    take_all(&seen[2]);
    assert_int_equal(seen[1].resyncs, 0);
    kube_world_run(&world, 3 * NS_PER_S);
    take_all(&seen[2]);
    assert_int_equal(seen[1].resyncs, 5);
    assert_int_equal(seen[2].resyncs, 5);
    assert_int_equal(none.resyncs, 0);
    for (int place = 0; place < 3; place++) {
        assert_false(seen[place].wrong);
        vigil_kube_handler_free(seen[place].handler);
    }
    vigil_kube_handler_free(none.handler);
    end();
}

/* -- Missing memory -- */

static void handler_that_cannot_be_added_changes_nothing(void **state)
{
    (void)state;
    begin();
    start();
    for (int place = 0; place < 3; place++) {
        struct seen seen = {0};
        vigil_kube_handler_options options = options_of(place, &seen);
        lock_init(&seen.lock);
        for (size_t at = 1;; at++) {
            memory_fail_at = at;
            int code = vigil_kube_informer_add_handler(informer, &options, &seen.handler);
            memory_fail_at = 0;
            if (code == VIGIL_OK)
                break;
            assert_int_equal(code, VIGIL_ERROR_MEMORY);
            assert_true(list_empty(&informer->copy->consumers));
            assert_true(at < 100);
        }
        vigil_kube_handler_free(seen.handler);
    }
    change_some(5);
    end();
}

/* -- Waiting, with a real loop and no server -- */

static vigil_kube_informer *informer_of(const char *server, vigil_kube **ret_kube, int own_thread)
{
    vigil_kube_options options;
    vigil_kube_informer_options pods;
    vigil_kube_informer *made;
    vigil_kube_options_init(&options);
    vigil_kube_informer_options_init(&pods);
    options.server = server;
    options.own_thread = own_thread;
    pods.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    assert_int_equal(vigil_kube_new(&options, ret_kube, NULL), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_new(*ret_kube, &pods, &made), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_start(made), VIGIL_OK);
    return made;
}

static vigil_kube_informer *informer_without_server(vigil_kube **ret_kube, int own_thread)
{
    return informer_of("http://127.0.0.1:1", ret_kube, own_thread);
}

static void *shut_down(void *arg)
{
    vigil_kube_shutdown(arg);
    return NULL;
}

static void waiting_ends_with_the_time_or_the_client(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread < 2; own_thread++) {
        vigil_kube *kube;
        pthread_t thread;
        informer = informer_without_server(&kube, own_thread);
        assert_int_equal(vigil_kube_informer_wait_synced(informer, 0), VIGIL_ERROR_TIMEOUT);
        assert_int_equal(vigil_kube_informer_wait_synced(informer, 20), VIGIL_ERROR_TIMEOUT);
        assert_int_equal(pthread_create(&thread, NULL, shut_down, kube), 0);
        assert_int_equal(vigil_kube_informer_wait_synced(informer, -1), VIGIL_ERROR_CANCELED);
        pthread_join(thread, NULL);
        vigil_kube_free(kube);
        vigil_kube_informer_free(informer);
    }
}

struct blocked {
    vigil_kube_handler *handler;
    sem_t entered, leave;
    _Atomic bool left, freed;
};

static void block(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct blocked *b = user;
    (void)handler, (void)change;
    sem_post(&b->entered);
    sem_wait(&b->leave);
    atomic_store(&b->left, true);
}

static void *free_blocked(void *arg)
{
    struct blocked *b = arg;
    vigil_kube_handler_free(b->handler);
    assert(atomic_load(&b->left));
    atomic_store(&b->freed, true);
    return NULL;
}

/* On the client's own thread, to which an object that is put into the copy is reported. */
static void freeing_waits_for_a_callback_on_another_thread(void **state)
{
    (void)state;
    vigil_kube *kube;
    pthread_t thread;
    struct blocked blocked = {0};
    vigil_kube_handler_options options = options_of(VIGIL_KUBE_HANDLER_CALLBACK, NULL);
    struct vigil_kube_object *object = test_object("a", 1);
    sem_init(&blocked.entered, 0, 0);
    sem_init(&blocked.leave, 0, 0);
    informer = informer_without_server(&kube, 1);
    lock_take(&informer->copy->lock);
    assert_int_equal(cache_put(&informer->copy->cache, object), ST_OK);
    lock_release(&informer->copy->lock);
    options.fn = block;
    options.user = &blocked;
    assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &blocked.handler),
                     VIGIL_OK);
    sem_wait(&blocked.entered);
    assert_int_equal(pthread_create(&thread, NULL, free_blocked, &blocked), 0);
    AWAIT(atomic_load(&kube->driver.waiting) || atomic_load(&blocked.freed));
    sem_post(&blocked.leave);
    pthread_join(thread, NULL);
    vigil_kube_object_unref(object);
    vigil_kube_informer_free(informer);
    vigil_kube_free(kube);
    sem_destroy(&blocked.entered);
    sem_destroy(&blocked.leave);
}

/* A server that accepts connections and never answers. */
static int silent_server(char *ret_url, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(ret_url, size, "http://127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

/* The function of a handler with a thread of its own waits in one of these ways. */
enum way { BY_A_CALL, BY_WAITING_FOR_THE_COPY, BY_ITSELF, WAYS };

struct waiter {
    enum way way;
    vigil_kube *kube;
    vigil_kube_handler *handler;
    sem_t entered, leave, left, freed;
    _Atomic bool returned, waited_for; /* by the callback that frees it */
};

static void wait_for_client(vigil_kube_handler *handler, const vigil_kube_change *change,
                            void *user)
{
    struct waiter *w = user;
    vigil_kube_target pods = {.version = "v1", .resource = "pods"};
    (void)handler, (void)change;
    sem_post(&w->entered);
    if (w->way == BY_A_CALL) {
        vigil_kube_call *call = vigil_kube_list(w->kube, &pods, NULL);
        (void)vigil_kube_call_run(call);
        vigil_kube_call_free(call);
    } else if (w->way == BY_WAITING_FOR_THE_COPY) {
        (void)vigil_kube_informer_wait_synced(informer, -1);
    } else {
        sem_wait(&w->leave);
    }
    atomic_store(&w->returned, true);
    sem_post(&w->left);
}

static void *let_go(void *arg)
{
    struct waiter *w = arg;
    usleep(20000);
    sem_post(&w->leave);
    return NULL;
}

static void free_waiter(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct waiter *w = user;
    pthread_t thread;
    (void)handler, (void)change;
    sem_wait(&w->entered);
    pthread_create(&thread, NULL, let_go, w);
    vigil_kube_handler_free(w->handler);
    atomic_store(&w->waited_for, atomic_load(&w->returned));
    pthread_join(thread, NULL);
    sem_post(&w->freed);
}

static void freeing_in_a_callback_does_not_wait_for_what_waits_for_the_client(void **state)
{
    (void)state;
    char url[64];
    int server = silent_server(url, sizeof(url));
    for (enum way way = 0; way < WAYS; way++) {
        struct waiter w = {.way = way};
        vigil_kube_handler *callback;
        vigil_kube_handler_options options = options_of(VIGIL_KUBE_HANDLER_THREAD, NULL);
        struct vigil_kube_object *object = test_object("a", 1);
        sem_t *all[] = {&w.entered, &w.leave, &w.left, &w.freed};
        for (size_t i = 0; i < COUNT_OF(all); i++)
            sem_init(all[i], 0, 0);
        informer = informer_of(url, &w.kube, 1);
        lock_take(&informer->copy->lock);
        assert_int_equal(cache_put(&informer->copy->cache, object), ST_OK);
        lock_release(&informer->copy->lock);
        options.user = &w;
        options.fn = wait_for_client;
        assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &w.handler), VIGIL_OK);
        options.place = VIGIL_KUBE_HANDLER_CALLBACK;
        options.fn = free_waiter;
        assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &callback), VIGIL_OK);
        sem_wait(&w.freed);
        assert_int_equal(atomic_load(&w.waited_for), way == BY_ITSELF);
        vigil_kube_shutdown(w.kube); /* ends what the function waits for */
        sem_wait(&w.left);
        vigil_kube_handler_free(callback);
        vigil_kube_object_unref(object);
        vigil_kube_informer_free(informer);
        vigil_kube_free(w.kube);
        for (size_t i = 0; i < COUNT_OF(all); i++)
            sem_destroy(all[i]);
    }
    close(server);
}

/* TestSharedInformerInitializationRace: in any order, and while it begins. */
static void client_with_its_own_thread_is_freed_at_any_time(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct seen seen = {0};
        vigil_kube *kube;
        informer = informer_without_server(&kube, 1);
        add(&seen, i % 3, 1000);
        if (i % 2)
            vigil_kube_free(kube);
        if (i % 5 == 0)
            vigil_kube_handler_free(TAKE(seen.handler));
        vigil_kube_informer_free(informer);
        vigil_kube_handler_free(seen.handler);
        if (i % 2 == 0)
            vigil_kube_free(kube);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_in_all_places_get_the_same),
        cmocka_unit_test(late_handler_gets_the_current_state),
        cmocka_unit_test(descriptor_is_readable_while_a_change_waits),
        cmocka_unit_test(slow_handler_delays_no_other),
        cmocka_unit_test(handler_frees_itself),
        cmocka_unit_test(freeing_waits_for_the_function),
        cmocka_unit_test(handlers_outlive_informer_and_client),
        cmocka_unit_test(handler_of_an_informer_that_has_ended_is_refused),
        cmocka_unit_test(handlers_are_added_and_freed_on_many_threads),
        cmocka_unit_test(resync_reports_every_object_again),
        cmocka_unit_test(handler_that_cannot_be_added_changes_nothing),
        cmocka_unit_test(waiting_ends_with_the_time_or_the_client),
        cmocka_unit_test(freeing_waits_for_a_callback_on_another_thread),
        cmocka_unit_test(freeing_in_a_callback_does_not_wait_for_what_waits_for_the_client),
        cmocka_unit_test(client_with_its_own_thread_is_freed_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
