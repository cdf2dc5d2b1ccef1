#include "simulated/sim.h"

#include "base/buf.h"
#include "io/loop.h"
#include "io/poller.h"

#include <errno.h>
#include <stdlib.h>

enum { HANDLES_MAX = 4096, CONNECTIONS_WAITING_MAX = 512 };
/* After this the system notices that the peer is silent (TCP's keepalive, io/socket_posix.c). */
#define SILENCE_NS (90 * NS_PER_S)

/* Bytes, or the end of the stream, in flight to a socket. */
struct sim_segment {
    struct list in_flight; /* links sim_handle.flight */
    int64_t at_ns;
    bool end;
    struct slice bytes; /* stored after this struct */
};

enum handle_kind { HANDLE_FREE, HANDLE_SOCKET, HANDLE_LISTENER };

/* One end of a connection, or a listener. */
struct sim_handle {
    enum handle_kind kind;
    int number;
    struct io_watch *watch; /* NULL: not watched */
    struct sim_poller *poller;

    /* a socket */
    struct sim_handle *peer; /* NULL once the peer closed */
    struct list flight;      /* segments in flight to this end; the first arrives first */
    size_t flight_bytes;
    struct buf arrived;
    size_t arrived_at; /* bytes before this were read */
    bool end_arrived, end_sent, broken;
    int64_t silent_until_ns;   /* it breaks then; 0: it is not silent */
    bool silent, slow;         /* what is sent to it is lost, or takes a second longer */
    struct sim_handle *origin; /* listener of the accepting end; NULL once that is closed */

    /* a listener */
    bool unplugged;
    char address[ADDRESS_TEXT_BYTES];
    int waiting[CONNECTIONS_WAITING_MAX]; /* handles of connections to accept */
    unsigned waiting_count;
};

struct sim {
    struct network network;
    struct clock_sim clock;
    struct random random;
    struct sim_options options;
    struct list pollers; /* sim_poller.in_sim */
    struct sim_handle *handles[HANDLES_MAX];
    int handles_used; /* numbers below this are in use or were used */
    uint16_t next_port;
    char unreachable[ADDRESS_TEXT_BYTES]; /* an address; empty: none */
    char shared[ADDRESS_TEXT_BYTES];      /* the same, with … */
    char other[ADDRESS_TEXT_BYTES];       /* … this one */
};

struct sim_poller {
    struct poller poller;
    struct sim *sim;
    struct loop *loop; /* the owner */
    struct list in_sim;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void must_ok(enum status status)
{
    if (status != ST_OK)
        abort();
}

static struct sim *sim_of(struct network *network)
{
    return CONTAINER_OF(network, struct sim, network);
}

static int64_t now_of(struct sim *sim)
{
    return clock_mono_ns(&sim->clock.clock);
}

/* -- handles -- */

static struct sim_handle *handle_new(struct sim *sim, enum handle_kind kind)
{
    int number = 0;
    while (number < HANDLES_MAX && sim->handles[number])
        number++;
    assert(number < HANDLES_MAX);
    struct sim_handle *handle = must(calloc(1, sizeof(*handle)));
    handle->kind = kind;
    handle->number = number;
    list_init(&handle->flight);
    sim->handles[number] = handle;
    if (number >= sim->handles_used)
        sim->handles_used = number + 1;
    return handle;
}

static struct sim_handle *handle_at(struct sim *sim, int number, enum handle_kind kind)
{
    assert(number >= 0 && number < sim->handles_used);
    struct sim_handle *handle = sim->handles[number];
    assert(handle && handle->kind == kind);
    return handle;
}

static struct sim_segment *first_segment(struct sim_handle *handle)
{
    return list_empty(&handle->flight)
               ? NULL
               : LIST_ENTRY(handle->flight.next, struct sim_segment, in_flight);
}

static void drop_flight(struct sim_handle *handle)
{
    struct list *link;
    while ((link = list_pop_front(&handle->flight)))
        free(LIST_ENTRY(link, struct sim_segment, in_flight));
    handle->flight_bytes = 0;
}

static void handle_free(struct sim *sim, struct sim_handle *handle)
{
    assert(!handle->watch); /* unwatched before closing */
    drop_flight(handle);
    buf_fini(&handle->arrived);
    sim->handles[handle->number] = NULL;
    free(handle);
}

static size_t unread(const struct sim_handle *handle)
{
    return handle->arrived.len - handle->arrived_at;
}

static size_t room_towards(struct sim *sim, const struct sim_handle *to)
{
    size_t held = to->flight_bytes + unread(to);
    return held < sim->options.buffer_bytes ? sim->options.buffer_bytes - held : 0;
}

static unsigned ready_events(struct sim *sim, const struct sim_handle *handle)
{
    if (handle->kind == HANDLE_LISTENER)
        return handle->waiting_count ? IO_READ : 0;
    if (handle->broken)
        return IO_READ | IO_WRITE | IO_BROKEN;
    unsigned ready = 0;
    if (unread(handle) || handle->end_arrived)
        ready |= IO_READ;
    if (!handle->peer || room_towards(sim, handle->peer))
        ready |= IO_WRITE;
    return ready;
}

static void send_segment(struct sim *sim, struct sim_handle *to, struct slice bytes, bool end)
{
    if (to->silent)
        return;
    struct sim_segment *segment = must(malloc(sizeof(*segment) + bytes.len));
    int64_t delay =
        random_between(&sim->random, sim->options.delay_min_ns, sim->options.delay_max_ns);
    if (to->slow)
        delay += NS_PER_S;
    *segment = (struct sim_segment){
        .at_ns = now_of(sim) + delay, .end = end, .bytes = slice_of(segment + 1, bytes.len)};
    slice_copy(segment + 1, bytes);
    to->flight_bytes += bytes.len;
    list_push_back(&to->flight, &segment->in_flight);
}

static void break_both(struct sim_handle *handle)
{
    struct sim_handle *ends[] = {handle, handle->peer};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!ends[i])
            continue;
        ends[i]->broken = true;
        drop_flight(ends[i]);
    }
}

static bool breaks_now(struct sim *sim, struct sim_handle *handle)
{
    if (!handle->broken && sim->options.reset_per_million &&
        random_chance(&sim->random, sim->options.reset_per_million, 1000000))
        break_both(handle);
    return handle->broken;
}

/* How many of `len` bytes this call transfers. */
static size_t split(struct sim *sim, size_t len)
{
    if (len > 1 && random_chance(&sim->random, sim->options.split_per_1000, 1000))
        return 1 + random_below(&sim->random, len - 1);
    return len;
}

/* -- sockets -- */

static enum status closed(struct socket *socket, int error_number)
{
    socket->error_number = error_number;
    return ST_CLOSED;
}

static enum status sim_read(struct socket *socket, void *to, size_t len, size_t *ret_len)
{
    struct sim *sim = socket->world;
    struct sim_handle *self = handle_at(sim, socket->handle, HANDLE_SOCKET);
    if (breaks_now(sim, self))
        return closed(socket, ECONNRESET);
    size_t n = size_min(len, unread(self));
    if (n == 0)
        return self->end_arrived ? ST_END : ST_AGAIN;
    n = split(sim, n);
    memcpy(to, self->arrived.ptr + self->arrived_at, n);
    self->arrived_at += n;
    if (unread(self) == 0) {
        buf_reset(&self->arrived, 0);
        self->arrived_at = 0;
    }
    *ret_len = n;
    return ST_OK;
}

static enum status sim_writev(struct socket *socket, const struct iovec *parts, int count,
                              size_t *ret_len)
{
    struct sim *sim = socket->world;
    struct sim_handle *self = handle_at(sim, socket->handle, HANDLE_SOCKET);
    if (breaks_now(sim, self) || !self->peer)
        return closed(socket, self->peer ? ECONNRESET : EPIPE);
    size_t want = 0;
    for (int i = 0; i < count; i++)
        want += parts[i].iov_len;
    size_t left = size_min(want, room_towards(sim, self->peer));
    if (left == 0)
        return ST_AGAIN;
    left = split(sim, left);
    *ret_len = left;
    for (int i = 0; i < count && left > 0; i++) {
        size_t n = size_min(left, parts[i].iov_len);
        if (n)
            send_segment(sim, self->peer, slice_of(parts[i].iov_base, n), false);
        left -= n;
    }
    return ST_OK;
}

static void sim_shutdown(struct socket *socket)
{
    struct sim *sim = socket->world;
    struct sim_handle *self = handle_at(sim, socket->handle, HANDLE_SOCKET);
    if (self->peer && !self->end_sent && !self->broken)
        send_segment(sim, self->peer, SLICE_EMPTY, true);
    self->end_sent = true;
}

static void close_socket(struct sim *sim, struct sim_handle *self)
{
    if (self->peer) {
        /* Like TCP: closing with unread bytes breaks the connection, otherwise it ends it. */
        if (unread(self) && !self->broken)
            break_both(self);
        else if (!self->end_sent && !self->broken)
            send_segment(sim, self->peer, SLICE_EMPTY, true);
        self->peer->peer = NULL;
    }
    handle_free(sim, self);
}

static void sim_close(struct socket *socket)
{
    struct sim *sim = socket->world;
    close_socket(sim, handle_at(sim, socket->handle, HANDLE_SOCKET));
}

void sim_reset(struct socket *socket)
{
    break_both(handle_at(socket->world, socket->handle, HANDLE_SOCKET));
}

/* -- faults -- */

static void disturb(struct sim *sim, struct sim_handle *handle, enum sim_fault fault)
{
    struct sim_handle *ends[] = {handle, handle->peer};
    if (fault == SIM_BREAK) {
        break_both(handle);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        ends[i]->silent |= fault == SIM_SILENCE;
        ends[i]->slow |= fault == SIM_SLOW;
        if (fault != SIM_SILENCE)
            continue;
        drop_flight(ends[i]);
        ends[i]->silent_until_ns = now_of(sim) + SILENCE_NS; /* also if the other one is closed */
    }
}

bool sim_disturb(struct sim *sim, enum sim_fault fault)
{
    struct sim_handle *chosen = NULL;
    uint64_t count = 0;
    for (int i = 0; i < sim->handles_used; i++) {
        struct sim_handle *handle = sim->handles[i];
        if (handle && handle->kind == HANDLE_SOCKET && handle->peer &&
            random_below(&sim->random, ++count) == 0)
            chosen = handle;
    }
    if (chosen)
        disturb(sim, chosen, fault);
    return chosen;
}

static struct sim_handle *find_listener(struct sim *sim, const char *address);

static void break_connections(struct sim *sim, const struct sim_handle *listener)
{
    for (int i = 0; i < sim->handles_used; i++)
        if (sim->handles[i] && sim->handles[i]->origin == listener)
            break_both(sim->handles[i]);
}

void sim_unplug(struct sim *sim, const struct address *address)
{
    char text[ADDRESS_TEXT_BYTES];
    address_format(address, text);
    struct sim_handle *listener = find_listener(sim, text);
    if (!listener)
        return;
    listener->unplugged = true;
    break_connections(sim, listener);
}

void sim_set_reachable(struct sim *sim, const struct address *address, bool reachable)
{
    char text[ADDRESS_TEXT_BYTES];
    address_format(address, text);
    struct sim_handle *listener = find_listener(sim, text);
    memset(sim->unreachable, 0, sizeof(sim->unreachable));
    if (reachable)
        return;
    memcpy(sim->unreachable, text, sizeof(text));
    if (listener)
        break_connections(sim, listener);
}

void sim_share(struct sim *sim, const struct address *address, const struct address *other)
{
    address_format(address, sim->shared);
    address_format(other, sim->other);
}

/* Every socket has its own port. */
static enum status sim_peer(const struct socket *socket, struct address *ret_address)
{
    return address_from_host(SLICE_LITERAL("127.0.0.1"), (uint16_t)socket->handle, ret_address);
}

static enum status sim_connected(struct socket *socket)
{
    struct sim_handle *self = handle_at(socket->world, socket->handle, HANDLE_SOCKET);
    return self->broken ? closed(socket, ECONNRESET) : ST_OK;
}

static struct socket socket_over(struct sim *sim, struct sim_handle *handle)
{
    static const struct socket_ops ops = {
        .read = sim_read,
        .writev = sim_writev,
        .shutdown = sim_shutdown,
        .close = sim_close,
        .peer = sim_peer,
        .connected = sim_connected,
    };
    return (struct socket){.ops = &ops, .world = sim, .handle = handle->number};
}

/* -- listeners -- */

static enum status sim_accept(struct listener *listener, struct socket *ret_socket)
{
    struct sim *sim = listener->world;
    struct sim_handle *self = handle_at(sim, listener->handle, HANDLE_LISTENER);
    if (self->waiting_count == 0)
        return ST_AGAIN;
    *ret_socket = socket_over(sim, handle_at(sim, self->waiting[0], HANDLE_SOCKET));
    self->waiting_count--;
    memmove(self->waiting, self->waiting + 1, self->waiting_count * sizeof(self->waiting[0]));
    return ST_OK;
}

static void sim_close_listener(struct listener *listener)
{
    struct sim *sim = listener->world;
    struct sim_handle *self = handle_at(sim, listener->handle, HANDLE_LISTENER);
    for (unsigned i = 0; i < self->waiting_count; i++) {
        struct sim_handle *waiting = handle_at(sim, self->waiting[i], HANDLE_SOCKET);
        break_both(waiting);
        close_socket(sim, waiting);
    }
    for (int i = 0; i < sim->handles_used; i++)
        if (sim->handles[i] && sim->handles[i]->origin == self)
            sim->handles[i]->origin = NULL;
    handle_free(sim, self);
}

static struct sim_handle *find_listener(struct sim *sim, const char *address)
{
    for (int i = 0; i < sim->handles_used; i++) {
        struct sim_handle *handle = sim->handles[i];
        if (handle && handle->kind == HANDLE_LISTENER && !handle->unplugged &&
            strcmp(handle->address, address) == 0)
            return handle;
    }
    return NULL;
}

static enum status sim_listen(struct network *network, const struct address *address,
                              struct listener *ret_listener, struct error *error)
{
    static const struct listener_ops ops = {.accept = sim_accept, .close = sim_close_listener};
    struct sim *sim = sim_of(network);
    struct address chosen = *address;
    char text[ADDRESS_TEXT_BYTES];
    if (!address_is_path(address) && address_port(address) == 0)
        must_ok(address_from_host(SLICE_LITERAL("127.0.0.1"), sim->next_port++, &chosen));
    address_format(&chosen, text);
    if (find_listener(sim, text))
        return error_set(error, ST_IN_USE, "listen tcp %s: bind: Address already in use", text);
    struct sim_handle *handle = handle_new(sim, HANDLE_LISTENER);
    memcpy(handle->address, text, sizeof(text));
    *ret_listener =
        (struct listener){.ops = &ops, .world = sim, .handle = handle->number, .address = chosen};
    return ST_OK;
}

static enum status sim_connect(struct network *network, const struct address *address,
                               struct socket *ret_socket, struct error *error)
{
    struct sim *sim = sim_of(network);
    char text[ADDRESS_TEXT_BYTES];
    address_format(address, text);
    bool goes_to_other = strcmp(sim->shared, text) == 0 && random_below(&sim->random, 2);
    struct sim_handle *listener = find_listener(sim, goes_to_other ? sim->other : text);
    if (!listener || listener->waiting_count == CONNECTIONS_WAITING_MAX ||
        strcmp(sim->unreachable, text) == 0)
        return error_set(error, ST_CLOSED, "connection refused");
    struct sim_handle *here = handle_new(sim, HANDLE_SOCKET);
    struct sim_handle *there = handle_new(sim, HANDLE_SOCKET);
    here->peer = there;
    there->peer = here;
    there->origin = listener;
    listener->waiting[listener->waiting_count++] = there->number;
    *ret_socket = socket_over(sim, here);
    return ST_OK;
}

/* -- pollers -- */

static struct sim_poller *poller_of(struct poller *poller)
{
    return CONTAINER_OF(poller, struct sim_poller, poller);
}

static enum status sim_poller_set(struct poller *poller, struct io_watch *watch, unsigned events)
{
    struct sim_poller *self = poller_of(poller);
    assert(watch->handle >= 0 && watch->handle < self->sim->handles_used);
    struct sim_handle *handle = self->sim->handles[watch->handle];
    assert(handle && (!handle->watch || handle->watch == watch));
    handle->watch = events ? watch : NULL;
    handle->poller = events ? self : NULL;
    return ST_OK;
}

static unsigned wanted_and_ready(struct sim_poller *self, struct sim_handle *handle)
{
    if (!handle || !handle->watch || handle->poller != self)
        return 0;
    unsigned ready = ready_events(self->sim, handle);
    return ready & (handle->watch->events | IO_BROKEN);
}

static bool any_ready(struct sim_poller *self)
{
    for (int i = 0; i < self->sim->handles_used; i++)
        if (wanted_and_ready(self, self->sim->handles[i]))
            return true;
    return false;
}

static size_t sim_poller_wait(struct poller *poller, int64_t wait_ns, struct io_ready *ready,
                              size_t max)
{
    (void)wait_ns; /* time passes only between turns */
    struct sim_poller *self = poller_of(poller);
    struct sim *sim = self->sim;
    size_t count = 0;
    for (int i = 0; i < sim->handles_used && count < max; i++) {
        unsigned events = wanted_and_ready(self, sim->handles[i]);
        if (!events || random_chance(&sim->random, sim->options.skip_per_1000, 1000))
            continue;
        /* Inserted at a random index among the others, so that every order is possible. */
        size_t at = random_below(&sim->random, count + 1);
        ready[count] = ready[at];
        ready[at] = (struct io_ready){.watch = sim->handles[i]->watch, .events = events};
        count++;
    }
    return count;
}

static int sim_poller_fd(const struct poller *poller)
{
    (void)poller;
    return -1;
}

static struct waker *sim_poller_waker(struct poller *poller)
{
    (void)poller;
    return NULL;
}

static void sim_poller_free(struct poller *poller)
{
    struct sim_poller *self = poller_of(poller);
    list_remove(&self->in_sim);
    free(self);
}

static enum status sim_loop_new(struct network *network, struct loop **ret_loop)
{
    static const struct poller_ops ops = {
        .set = sim_poller_set,
        .wait = sim_poller_wait,
        .fd = sim_poller_fd,
        .waker = sim_poller_waker,
        .free = sim_poller_free,
    };
    struct sim *sim = sim_of(network);
    struct sim_poller *poller = must(calloc(1, sizeof(*poller)));
    poller->poller.ops = &ops;
    poller->sim = sim;
    list_push_back(&sim->pollers, &poller->in_sim);
    must_ok(loop_new_over(&poller->poller, &sim->clock.clock, &poller->loop));
    *ret_loop = poller->loop;
    return ST_OK;
}

/* -- the simulation -- */

struct sim *sim_new(const struct sim_options *options)
{
    static const struct network_ops ops = {
        .loop_new = sim_loop_new,
        .listen = sim_listen,
        .connect = sim_connect,
    };
    assert(options->delay_min_ns <= options->delay_max_ns);
    assert(options->buffer_bytes > 0);
    assert(options->skip_per_1000 < 1000);
    struct sim *sim = must(calloc(1, sizeof(*sim)));
    sim->network = (struct network){.ops = &ops, .stepped = true};
    sim->options = *options;
    sim->next_port = 20000;
    random_init(&sim->random, options->seed);
    clock_sim_init(&sim->clock, options->real_ns);
    list_init(&sim->pollers);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    assert(list_empty(&sim->pollers));
    for (int i = 0; i < sim->handles_used; i++)
        assert(!sim->handles[i]);
    free(sim);
}

struct network *sim_network(struct sim *sim)
{
    return &sim->network;
}

struct clock *sim_clock(struct sim *sim)
{
    return &sim->clock.clock;
}

struct random *sim_random(struct sim *sim)
{
    return &sim->random;
}

static void arrive(struct sim_handle *handle, struct sim_segment *segment)
{
    list_remove(&segment->in_flight);
    must_ok(buf_append(&handle->arrived, segment->bytes));
    handle->flight_bytes -= segment->bytes.len;
    handle->end_arrived |= segment->end;
    free(segment);
}

/* Delivers what is due. Returns when the next segment is due. */
static int64_t deliver(struct sim *sim)
{
    int64_t next = CLOCK_NEVER;
    for (int i = 0; i < sim->handles_used; i++) {
        struct sim_handle *handle = sim->handles[i];
        if (!handle)
            continue;
        int64_t silent_until = handle->broken ? 0 : handle->silent_until_ns;
        if (silent_until && silent_until <= now_of(sim))
            break_both(handle);
        else if (silent_until && silent_until < next)
            next = silent_until;
        struct sim_segment *segment;
        while ((segment = first_segment(handle)) && segment->at_ns <= now_of(sim))
            arrive(handle, segment);
        if (segment && segment->at_ns < next)
            next = segment->at_ns;
    }
    return next;
}

/* A random one of the loops that have work. NULL: none has; *ret_next_ns is when the first will. */
static struct loop *choose_loop(struct sim *sim, int64_t *ret_next_ns)
{
    struct loop *chosen = NULL;
    uint64_t runnable = 0;
    struct sim_poller *poller;
    LIST_FOREACH (poller, &sim->pollers, in_sim) {
        int64_t next = loop_next_ns(poller->loop);
        if (next <= now_of(sim) || any_ready(poller)) {
            if (random_below(&sim->random, ++runnable) == 0)
                chosen = poller->loop;
        } else if (next < *ret_next_ns) {
            *ret_next_ns = next;
        }
    }
    return chosen;
}

static bool step_before(struct sim *sim, int64_t limit_ns)
{
    int64_t next = deliver(sim);
    struct loop *loop = choose_loop(sim, &next);
    if (loop) {
        loop_turn(loop, 0);
        return true;
    }
    if (next > limit_ns || next == CLOCK_NEVER)
        return false;
    clock_sim_advance_to(&sim->clock, next);
    return true;
}

int64_t sim_next_ns(struct sim *sim)
{
    int64_t next = deliver(sim);
    struct sim_poller *poller;
    LIST_FOREACH (poller, &sim->pollers, in_sim) {
        int64_t at = any_ready(poller) ? now_of(sim) : loop_next_ns(poller->loop);
        next = at < next ? at : next;
    }
    return next;
}

bool sim_step(struct sim *sim)
{
    return step_before(sim, CLOCK_NEVER);
}

void sim_run_until(struct sim *sim, int64_t mono_ns)
{
    while (now_of(sim) <= mono_ns && step_before(sim, mono_ns))
        continue;
    clock_sim_advance_to(&sim->clock, mono_ns);
}
