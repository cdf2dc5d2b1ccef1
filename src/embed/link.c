#include "embed/link.h"

#include "io/loop.h"
#include "wire/connection.h"

#include <stdlib.h>

enum { ROUNDS_PER_TURN = 64 };
/* A turn does not serve links for longer: callbacks of the program may take time, too. */
#define SERVE_NS_MAX (1 * NS_PER_MS)

/* One connection. */
struct link {
    struct links *links;
    struct wire_connection *server;
    int handle;
    struct io_watch *watch; /* the client's; NULL: it wants nothing */
    unsigned events;        /* that it wants */
    bool dry;               /* a read found nothing in this turn, though something is to come */
    struct timer timer;     /* timer of the server's side */
    struct list in_links;   /* links links.open */
};

static int64_t now_of(const struct link *link)
{
    return loop_now_ns(link->links->loop);
}

/* As a connection of a server does: a deadline that moves does not change the heap. */
static void arm(struct link *link)
{
    int64_t at = wire_connection_timeout(link->server);
    if (at != CLOCK_NEVER && (!link->timer.set || at < link->timer.at_ns))
        loop_timer_set(link->links->loop, &link->timer, at);
}

static void on_timer(struct timer *timer)
{
    struct link *link = CONTAINER_OF(timer, struct link, timer);
    if (wire_connection_timeout(link->server) <= now_of(link))
        wire_connection_tick(link->server, now_of(link));
    arm(link);
}

/* -- The socket of the client -- */

static struct link *link_of(const struct socket *socket)
{
    return socket->world;
}

static enum status link_read(struct socket *socket, void *to, size_t len, size_t *ret_len)
{
    struct link *link = link_of(socket);
    assert(len >= WIRE_FILL_ROOM_MIN);
    size_t n = 0;
    if (wire_connection_wants_write(link->server))
        n = wire_connection_fill(link->server, to, len, now_of(link));
    arm(link);
    link->dry = n == 0;
    if (n == 0)
        return wire_connection_should_close(link->server) ? ST_END : ST_AGAIN;
    *ret_len = n;
    return ST_OK;
}

static enum status link_writev(struct socket *socket, const struct iovec *parts, int count,
                               size_t *ret_len)
{
    struct link *link = link_of(socket);
    size_t fed = 0;
    for (int i = 0; i < count && wire_connection_wants_read(link->server); i++) {
        wire_connection_feed(link->server, slice_of(parts[i].iov_base, parts[i].iov_len),
                             now_of(link));
        fed += parts[i].iov_len;
    }
    arm(link);
    *ret_len = fed;
    return fed > 0 ? ST_OK : ST_AGAIN;
}

static void link_shutdown(struct socket *socket)
{
    wire_connection_feed_end(link_of(socket)->server, now_of(link_of(socket)));
}

static void link_close(struct socket *socket)
{
    struct link *link = link_of(socket);
    assert(!link->watch);
    loop_timer_cancel(link->links->loop, &link->timer);
    wire_connection_free(link->server);
    list_remove(&link->in_links);
    free(link);
}

static enum status link_peer(const struct socket *socket, struct address *ret_address)
{
    (void)socket;
    (void)ret_address;
    return ST_CLOSED; /* it has no address */
}

static enum status link_connected(struct socket *socket)
{
    (void)socket;
    return ST_OK;
}

static const struct socket_ops link_ops = {
    .read = link_read,
    .writev = link_writev,
    .shutdown = link_shutdown,
    .close = link_close,
    .peer = link_peer,
    .connected = link_connected,
};

/* -- The poller: epoll for descriptors, and the handles of links -- */

struct link_poller {
    struct poller poller;
    struct poller *descriptors; /* owned */
    struct links *links;
};

static struct link_poller *self_of(const struct poller *poller)
{
    return CONTAINER_OF((struct poller *)(uintptr_t)poller, struct link_poller, poller);
}

static struct link *find(const struct links *links, int handle)
{
    struct link *link;
    LIST_FOREACH (link, &links->open, in_links)
        if (link->handle == handle)
            return link;
    return NULL;
}

/* Handles of links are negative. */
static enum status poller_set(struct poller *poller, struct io_watch *watch, unsigned events)
{
    struct link_poller *self = self_of(poller);
    if (watch->handle >= 0)
        return self->descriptors->ops->set(self->descriptors, watch, events);
    struct link *link = find(self->links, watch->handle);
    assert(link);
    link->watch = events ? watch : NULL;
    link->events = events;
    return ST_OK;
}

static size_t poller_wait(struct poller *poller, int64_t wait_ns, struct io_ready *ready,
                          size_t max)
{
    struct poller *descriptors = self_of(poller)->descriptors;
    return descriptors->ops->wait(descriptors, wait_ns, ready, max);
}

static int poller_fd(const struct poller *poller)
{
    const struct poller *descriptors = self_of(poller)->descriptors;
    return descriptors->ops->fd(descriptors);
}

static struct waker *poller_waker(struct poller *poller)
{
    struct poller *descriptors = self_of(poller)->descriptors;
    return descriptors->ops->waker(descriptors);
}

static void poller_close(struct poller *poller)
{
    struct poller *descriptors = self_of(poller)->descriptors;
    descriptors->ops->close(descriptors);
}

static void poller_free(struct poller *poller)
{
    struct link_poller *self = self_of(poller);
    self->descriptors->ops->free(self->descriptors);
    free(self);
}

static enum status poller_new(struct links *links, struct poller **ret_poller)
{
    static const struct poller_ops ops = {
        .set = poller_set,
        .wait = poller_wait,
        .fd = poller_fd,
        .waker = poller_waker,
        .close = poller_close,
        .free = poller_free,
    };
    struct link_poller *self = malloc(sizeof(*self));
    if (!self)
        return ST_NOMEM;
    *self = (struct link_poller){.poller.ops = &ops, .links = links};
    enum status status = poller_epoll_new(&self->descriptors);
    if (status != ST_OK) {
        free(self);
        return status;
    }
    *ret_poller = &self->poller;
    return ST_OK;
}

/* -- The network -- */

static struct links *links_of(struct network *network)
{
    return CONTAINER_OF(network, struct links, network);
}

static enum status links_loop_new(struct network *network, struct loop **ret_loop)
{
    struct links *links = links_of(network);
    struct poller *poller;
    assert(!links->loop);
    TRY(poller_new(links, &poller));
    TRY(loop_new_over(poller, clock_system(), &links->loop));
    enum status status = links->started(links);
    if (status != ST_OK) {
        loop_free(links->loop);
        links->loop = NULL;
        return status;
    }
    *ret_loop = links->loop;
    return ST_OK;
}

static enum status links_listen(struct network *network, const struct address *address,
                                struct listener *ret_listener, struct error *error)
{
    (void)network;
    (void)address;
    (void)ret_listener;
    return error_set(error, ST_UNIMPLEMENTED, "nothing listens here");
}

static int64_t fresh_ns(void *owner)
{
    (void)owner;
    return clock_mono_ns(clock_system());
}

/* Output is noticed at the end of the turn. */
static void on_output(void *owner)
{
    (void)owner;
}

static enum status links_connect(struct network *network, const struct address *address,
                                 struct socket *ret_socket, struct error *error)
{
    (void)address;
    struct links *links = links_of(network);
    if (links->refusal)
        return error_set(error, ST_CLOSED, "%s", links->refusal);
    struct link *link = calloc(1, sizeof(*link));
    if (!link)
        return error_no_memory(error);
    *link = (struct link){.links = links, .handle = --links->next_handle, .timer.fn = on_timer};
    struct wire_hooks hooks = {.on_output = on_output, .fresh_ns = fresh_ns, .owner = link};
    enum status status =
        wire_connection_new(links->wire, hooks, loop_now_ns(links->loop), &link->server);
    if (status != ST_OK) {
        free(link);
        return error_set(error, status, "%s", status_reason(status));
    }
    list_push_back(&links->open, &link->in_links);
    *ret_socket = (struct socket){.ops = &link_ops, .world = link, .handle = link->handle};
    arm(link);
    return ST_OK;
}

void links_init(struct links *links, enum status (*started)(struct links *links))
{
    static const struct network_ops ops = {
        .loop_new = links_loop_new, .listen = links_listen, .connect = links_connect};
    *links = (struct links){.network.ops = &ops, .next_handle = -1, .started = started};
    list_init(&links->open);
}

/* -- Turns -- */

static unsigned ready_of(const struct link *link)
{
    bool readable = !link->dry && (wire_connection_wants_write(link->server) ||
                                   wire_connection_should_close(link->server));
    return link->events &
           ((readable ? IO_READ : 0u) | (wire_connection_wants_read(link->server) ? IO_WRITE : 0u));
}

static struct link *first_ready(const struct links *links)
{
    struct link *link;
    LIST_FOREACH (link, &links->open, in_links)
        if (ready_of(link))
            return link;
    return NULL;
}

/* The callbacks of the program, which are made here, may close any link. */
bool links_serve(struct links *links)
{
    struct link *link;
    LIST_FOREACH (link, &links->open, in_links)
        link->dry = false;
    for (int i = 0; (link = first_ready(links)); i++) {
        if (i == ROUNDS_PER_TURN ||
            (i > 0 && clock_mono_ns(clock_system()) - loop_now_ns(links->loop) > SERVE_NS_MAX))
            return true;
        list_remove(&link->in_links); /* the next turn begins with another one */
        list_push_back(&links->open, &link->in_links);
        link->watch->fn(link->watch, ready_of(link));
    }
    return false;
}

void links_check_closed(const struct links *links)
{
    assert(list_empty(&links->open));
}
