#include "suite.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TAKE_MS = 60000 };

static vigil_queue *new_queue(vigil_client *client)
{
    vigil_queue *queue = NULL;
    CHECK(vigil_queue_new(client, &queue) == VIGIL_OK);
    return queue;
}

static const vigil_item *take(vigil_queue *queue)
{
    const vigil_item *item = NULL;
    CHECK(vigil_queue_take(queue, TAKE_MS, &item) == VIGIL_OK);
    return item;
}

static void check_empty(vigil_queue *queue)
{
    const vigil_item *item = NULL;
    CHECK(vigil_queue_take(queue, 0, &item) == VIGIL_ERROR_TIMEOUT);
    CHECK(!item);
}

static bool is_readable(const vigil_queue *queue)
{
    struct pollfd fd = {vigil_queue_fd(queue), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

static int64_t grant(vigil_client *client, int64_t ttl)
{
    vigil_call *call = vigil_lease_grant(client, ttl, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    int64_t id = vigil_lease_grant_result(call)->id;
    vigil_call_free(call);
    return id;
}

/* A call that does not complete by itself: another lease has the lock. */
static vigil_call *endless_call(vigil_client *client)
{
    static int64_t first, second;
    if (!first) {
        first = grant(client, 600);
        second = grant(client, 600);
        must(vigil_lock(client, vigil_text("taken"), first));
    }
    return vigil_lock(client, vigil_text("taken"), second);
}

static void queue_delivers_completed_calls(void)
{
    enum { CALLS = 200 };
    vigil_client *client = new_client(), *other = new_client();
    vigil_queue *queue = new_queue(client);
    static int seen[CALLS];
    check_empty(queue);
    CHECK(!is_readable(queue));
    CHECK(vigil_queue_call(queue, NULL, NULL) == VIGIL_ERROR_MEMORY);
    for (int i = 0; i < CALLS; i++) {
        vigil_call *call = vigil_put(client, vigil_text("q"), vigil_text("v"), 0);
        CHECK(vigil_queue_call(queue, call, &seen[i]) == VIGIL_OK);
        CHECK(vigil_queue_call(queue, call, &seen[i]) == VIGIL_ERROR_ARGUMENT);
    }
    vigil_call *foreign = vigil_get(other, vigil_text("q"));
    CHECK(vigil_queue_call(queue, foreign, NULL) == VIGIL_ERROR_ARGUMENT);
    vigil_call_free(foreign);
    for (int i = 0; i < CALLS; i++) {
        const vigil_item *item = take(queue);
        CHECK(item->what == VIGIL_ITEM_CALL && item->call && !item->watch && !item->lease);
        CHECK(item->user == vigil_call_user(item->call));
        CHECK(item->error == vigil_call_error(item->call));
        CHECK_CODE(item->call, VIGIL_OK);
        CHECK(vigil_put_result(item->call)->header->revision > 0);
        ++*(int *)item->user;
        if (i % 2)
            vigil_call_free(item->call); /* before or after the item */
        vigil_call *call = item->call;
        vigil_item_release(item);
        if (i % 2 == 0)
            vigil_call_free(call);
    }
    for (int i = 0; i < CALLS; i++)
        CHECK(seen[i] == 1);
    check_empty(queue);
    CHECK(!is_readable(queue));
    vigil_queue_free(queue);
    vigil_client_free(client);
    vigil_client_free(other);
}

/* Waits until the calls have completed, without taking them. */
static void wait_for_calls(vigil_client *client, vigil_call **calls, int count)
{
    for (int i = 0; i < count; i++)
        while (!vigil_call_header(calls[i])) {
            CHECK_CODE(calls[i], VIGIL_OK);
            must(vigil_get(client, vigil_text("q")));
        }
}

/* The descriptor is written once for all calls that complete while the queue is not empty. */
static void queue_wakes_the_program_once(void)
{
    enum { CALLS = 50 };
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *calls[CALLS];
    eventfd_t written;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CALLS; i++) {
            calls[i] = vigil_get(client, vigil_text("q"));
            CHECK(vigil_queue_call(queue, calls[i], NULL) == VIGIL_OK);
        }
        wait_for_calls(client, calls, CALLS);
        CHECK(is_readable(queue));
        CHECK(eventfd_read(vigil_queue_fd(queue), &written) == 0 && written == 1);
        for (int i = 0; i < CALLS; i++) /* etcd may answer in another order */
            vigil_item_release(take(queue));
        for (int i = 0; i < CALLS; i++)
            vigil_call_free(calls[i]);
        CHECK(!is_readable(queue));
    }
    vigil_queue_free(queue);
    vigil_client_free(client);
}

static void queue_take_has_a_timeout(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *call = endless_call(client);
    const vigil_item *item;
    CHECK(vigil_queue_call(queue, call, NULL) == VIGIL_OK);
    CHECK(vigil_queue_take(queue, 50, &item) == VIGIL_ERROR_TIMEOUT);
    vigil_call_cancel(call);
    item = take(queue);
    CHECK(item->call == call && item->error->code == VIGIL_ERROR_CANCELED);
    vigil_item_release(item);
    vigil_call_free(call);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

static void queue_delivers_a_lost_lease(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_lease *lease, *forgotten;
    int64_t id = grant(client, 2);
    int user;
    CHECK(vigil_queue_lease(queue, 0, 2, NULL, &lease) == VIGIL_ERROR_ARGUMENT);
    CHECK(vigil_queue_lease(queue, id, 2, &user, &lease) == VIGIL_OK);
    CHECK(vigil_queue_lease(queue, id, 2, NULL, &forgotten) == VIGIL_OK);
    vigil_lease_free(forgotten);
    must(vigil_lease_revoke(client, id));
    const vigil_item *item = take(queue);
    CHECK(item->what == VIGIL_ITEM_LEASE && item->lease == lease && item->user == &user);
    CHECK(item->error->code == VIGIL_ERROR_LEASE_NOT_FOUND);
    vigil_lease_free(lease);
    CHECK(item->error->code == VIGIL_ERROR_LEASE_NOT_FOUND); /* still valid */
    vigil_item_release(item);
    check_empty(queue);
    vigil_queue_free(queue);
    vigil_client_free(client);
}

/* -- Inside callbacks, and on several threads -- */

struct inside {
    vigil_client *client;
    vigil_queue *queue;
    vigil_call *started;
};

static void take_inside(vigil_call *call, void *user)
{
    struct inside *inside = user;
    const vigil_item *item;
    CHECK(vigil_queue_take(inside->queue, 0, &item) == VIGIL_ERROR_TIMEOUT);
    CHECK(vigil_queue_take(inside->queue, -1, &item) == VIGIL_ERROR_WOULD_BLOCK);
    inside->started = vigil_get(inside->client, vigil_text("q"));
    CHECK(vigil_queue_call(inside->queue, inside->started, NULL) == VIGIL_OK);
    vigil_call_free(call);
}

static void queue_may_be_used_inside_a_callback(void)
{
    vigil_client *client = new_client();
    struct inside inside = {client, new_queue(client), NULL};
    CHECK(vigil_call_start(vigil_get(client, vigil_text("q")), take_inside, &inside) == VIGIL_OK);
    const vigil_item *item = take(inside.queue);
    CHECK(item->call == inside.started);
    vigil_item_release(item);
    vigil_call_free(inside.started);
    vigil_queue_free(inside.queue);
    vigil_client_free(client);
}

enum { TAKERS = 4, SHARED_CALLS = 2000 };

struct sharing {
    vigil_queue *queue;
    int seen[SHARED_CALLS];
    struct latch taken;
};

static void *take_shared(void *arg)
{
    struct sharing *sharing = arg;
    const vigil_item *item;
    int code;
    while ((code = vigil_queue_take(sharing->queue, -1, &item)) == VIGIL_OK) {
        CHECK(item->error->code == VIGIL_OK);
        ++*(int *)item->user; /* no other thread has this item */
        vigil_call_free(item->call);
        vigil_item_release(item);
        latch_add(&sharing->taken, 1);
    }
    CHECK(code == VIGIL_ERROR_CANCELED);
    return NULL;
}

static void threads_may_share_a_queue(void)
{
    static struct sharing sharing = {NULL, {0}, LATCH_INIT};
    vigil_options options;
    vigil_client *client;
    pthread_t threads[TAKERS];
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    sharing.queue = new_queue(client);
    for (int i = 0; i < TAKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_shared, &sharing) == 0);
    for (int i = 0; i < SHARED_CALLS; i++)
        CHECK(vigil_queue_call(sharing.queue, vigil_get(client, vigil_text("q")),
                               &sharing.seen[i]) == VIGIL_OK);
    latch_wait(&sharing.taken, SHARED_CALLS);
    vigil_client_shutdown(client); /* all of them return */
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED_CALLS; i++)
        CHECK(sharing.seen[i] == 1);
    vigil_queue_free(sharing.queue);
    vigil_client_free(client);
}

/* -- The end -- */

/* After the end every take says so at once, and the descriptor stays readable. */
static void check_over(vigil_queue *queue)
{
    const vigil_item *item;
    CHECK(is_readable(queue));
    CHECK(vigil_queue_take(queue, 0, &item) == VIGIL_ERROR_CANCELED);
    CHECK(vigil_queue_take(queue, -1, &item) == VIGIL_ERROR_CANCELED);
}

static void end_a_queue(bool by_free)
{
    enum { CALLS = 20 };
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_lease *lease;
    int calls = 0, leases = 0;
    for (int i = 0; i < CALLS; i++)
        CHECK(vigil_queue_call(queue, endless_call(client), NULL) == VIGIL_OK);
    CHECK(vigil_queue_lease(queue, grant(client, 60), 60, NULL, &lease) == VIGIL_OK);
    if (by_free)
        vigil_client_free(client);
    else
        vigil_client_shutdown(client);
    const vigil_item *item;
    int code;
    while ((code = vigil_queue_take(queue, TAKE_MS, &item)) == VIGIL_OK) {
        CHECK(item->error->code == VIGIL_ERROR_CANCELED);
        calls += item->what == VIGIL_ITEM_CALL;
        leases += item->what == VIGIL_ITEM_LEASE;
        vigil_call_free(item->call);
        vigil_lease_free(item->lease);
        vigil_item_release(item);
    }
    CHECK(code == VIGIL_ERROR_CANCELED && calls == CALLS && leases == 1);
    check_over(queue);
    vigil_queue_free(queue);
    if (!by_free)
        vigil_client_free(client);
}

static void shutdown_is_delivered_through_the_queue(void)
{
    end_a_queue(false);
}

static void freed_client_ends_its_queue(void)
{
    end_a_queue(true);
}

static void freed_queue_drops_its_items(void)
{
    vigil_client *client = new_client();
    vigil_queue *queue = new_queue(client);
    vigil_call *completed = vigil_get(client, vigil_text("q"));
    vigil_call *running = endless_call(client);
    CHECK(vigil_queue_call(queue, completed, NULL) == VIGIL_OK);
    CHECK(vigil_queue_call(queue, running, NULL) == VIGIL_OK);
    wait_for_calls(client, &completed, 1);
    vigil_queue_free(queue);
    vigil_call_cancel(running);
    while (vigil_call_error(running)->code == VIGIL_OK)
        must(vigil_get(client, vigil_text("q")));
    CHECK_CODE(completed, VIGIL_OK);
    vigil_call_free(completed);
    vigil_call_free(running);
    vigil_client_free(client);
}

/* -- Every order of freeing -- */

enum { PARTS = 6, ORDERS = 720 };

/* A call that is running, one that was taken, a kept lease, the queue, the client and an item. */
struct order {
    vigil_client *client;
    vigil_queue *queue;
    vigil_call *running, *taken;
    const vigil_item *item;
    vigil_lease *lease;
};

static void free_part(struct order *order, int part)
{
    switch (part) {
    case 0:
        vigil_client_free(order->client);
        break;
    case 1:
        vigil_queue_free(order->queue);
        break;
    case 2:
        vigil_call_free(order->running);
        break;
    case 3:
        vigil_call_free(order->taken);
        break;
    case 4:
        CHECK(order->item->error->code == VIGIL_OK && order->item->user == order);
        vigil_item_release(order->item);
        break;
    default:
        vigil_lease_free(order->lease);
    }
}

/* The numbers 0 to PARTS - 1 in the order with this number. */
static void permute(int number, int *parts)
{
    for (int i = 0; i < PARTS; i++)
        parts[i] = i;
    for (int left = PARTS; left > 1; left--) {
        int chosen = number % left, last = parts[left - 1];
        parts[left - 1] = parts[chosen];
        parts[chosen] = last;
        number /= left;
    }
}

static void everything_may_be_freed_in_every_order(void)
{
    vigil_client *writer = new_client();
    int64_t id = grant(writer, 600);
    for (int number = 0; number < ORDERS; number++) {
        struct order order = {.client = new_client()};
        int parts[PARTS];
        order.queue = new_queue(order.client);
        order.taken = vigil_get(order.client, vigil_text("q"));
        CHECK(vigil_queue_call(order.queue, order.taken, &order) == VIGIL_OK);
        order.item = take(order.queue);
        order.running = vigil_get(order.client, vigil_text("q"));
        CHECK(vigil_queue_call(order.queue, order.running, NULL) == VIGIL_OK);
        CHECK(vigil_queue_lease(order.queue, id, 600, NULL, &order.lease) == VIGIL_OK);
        permute(number, parts);
        for (int i = 0; i < PARTS; i++)
            free_part(&order, parts[i]);
    }
    vigil_client_free(writer);
}

const struct suite_test queue_tests[] = {
    {"queue_delivers_completed_calls", queue_delivers_completed_calls},
    {"queue_wakes_the_program_once", queue_wakes_the_program_once},
    {"queue_take_has_a_timeout", queue_take_has_a_timeout},
    {"queue_delivers_a_lost_lease", queue_delivers_a_lost_lease},
    {"queue_may_be_used_inside_a_callback", queue_may_be_used_inside_a_callback},
    {"threads_may_share_a_queue", threads_may_share_a_queue},
    {"shutdown_is_delivered_through_the_queue", shutdown_is_delivered_through_the_queue},
    {"freed_client_ends_its_queue", freed_client_ends_its_queue},
    {"freed_queue_drops_its_items", freed_queue_drops_its_items},
    {"everything_may_be_freed_in_every_order", everything_may_be_freed_in_every_order},
    {NULL, NULL},
};
