#include "io/poller.h"

#include "io/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256 };

struct poller_epoll {
    struct poller poller;
    int epoll_fd;
    bool coarse; /* the kernel or a sandbox has no epoll_pwait2: waits are in milliseconds */
    struct waker waker;
    struct epoll_event events[EVENTS_MAX];
};

static struct poller_epoll *self_of(struct poller *poller)
{
    return CONTAINER_OF(poller, struct poller_epoll, poller);
}

static uint32_t to_epoll(unsigned events)
{
    return (events & IO_READ ? EPOLLIN | EPOLLRDHUP : 0u) | (events & IO_WRITE ? EPOLLOUT : 0u);
}

/* An error or a hang-up is reported as the requested events: the next read or write returns
 * details. */
static unsigned from_epoll(uint32_t events)
{
    unsigned ready = 0;
    if (events & (EPOLLIN | EPOLLRDHUP))
        ready |= IO_READ;
    if (events & EPOLLOUT)
        ready |= IO_WRITE;
    if (events & (EPOLLERR | EPOLLHUP))
        ready |= IO_READ | IO_WRITE | IO_BROKEN;
    return ready;
}

static enum status epoll_set(struct poller *poller, struct io_watch *watch, unsigned events)
{
    struct poller_epoll *self = self_of(poller);
    struct epoll_event event = {.events = to_epoll(events), .data.ptr = watch};
    int op = !watch->events ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    if (epoll_ctl(self->epoll_fd, op, watch->handle, &event) != 0)
        return status_from_errno(errno);
    return ST_OK;
}

static int to_ms_rounded_up(int64_t ns)
{
    int64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int wait_events(struct poller_epoll *self, int64_t wait_ns, int max)
{
    if (wait_ns == CLOCK_NEVER)
        return epoll_wait(self->epoll_fd, self->events, max, -1);
    if (!self->coarse && wait_ns > 0) {
        struct timespec timeout = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
                                   .tv_nsec = (long)(wait_ns % NS_PER_S)};
        int n = epoll_pwait2(self->epoll_fd, self->events, max, &timeout, NULL);
        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        /* Older kernels (before 5.11) lack the call, and some sandboxes forbid it. It is tried only
         * once. */
        self->coarse = true;
    }
    return epoll_wait(self->epoll_fd, self->events, max, to_ms_rounded_up(wait_ns));
}

static size_t epoll_wait_ready(struct poller *poller, int64_t wait_ns, struct io_ready *ready,
                               size_t max)
{
    struct poller_epoll *self = self_of(poller);
    int n = wait_events(self, wait_ns, (int)size_min(max, EVENTS_MAX));
    if (n < 0 &&
        errno ==
            EINTR) /* the process was stopped and continued: ready handles must not be missed */
        n = wait_events(self, 0, (int)size_min(max, EVENTS_MAX));
    assert(n >= 0); /* any other error is a bug of ours */
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        struct epoll_event *event = &self->events[i];
        if (event->data.ptr) /* the waker's event has no watch */
            ready[count++] =
                (struct io_ready){.watch = event->data.ptr, .events = from_epoll(event->events)};
    }
    return count;
}

static int epoll_descriptor(const struct poller *poller)
{
    return CONTAINER_OF(poller, const struct poller_epoll, poller)->epoll_fd;
}

static struct waker *epoll_waker(struct poller *poller)
{
    return &self_of(poller)->waker;
}

static void epoll_close(struct poller *poller)
{
    struct poller_epoll *self = self_of(poller);
    waker_fini(&self->waker);
    if (self->epoll_fd >= 0)
        close(self->epoll_fd);
    self->epoll_fd = -1;
}

static void epoll_free(struct poller *poller)
{
    epoll_close(poller);
    free(self_of(poller));
}

static enum status epoll_init(struct poller_epoll *self)
{
    TRY(waker_init_event(&self->waker));
    self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (self->epoll_fd < 0)
        return status_from_errno(errno);
    /* Edge-triggered: each signal is reported once, and the counter need not be read. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, self->waker.event_fd, &event) != 0)
        return status_from_errno(errno);
    return ST_OK;
}

enum status poller_epoll_new(struct poller **ret_poller)
{
    static const struct poller_ops ops = {
        .set = epoll_set,
        .wait = epoll_wait_ready,
        .fd = epoll_descriptor,
        .waker = epoll_waker,
        .close = epoll_close,
        .free = epoll_free,
    };
    struct poller_epoll *self = aligned_alloc(
        _Alignof(struct poller_epoll), align_up(sizeof(*self), _Alignof(struct poller_epoll)));
    if (!self)
        return ST_NOMEM;
    *self = (struct poller_epoll){.poller.ops = &ops, .epoll_fd = -1, .waker.event_fd = -1};
    enum status status = epoll_init(self);
    if (status != ST_OK) {
        epoll_free(&self->poller);
        return status;
    }
    *ret_poller = &self->poller;
    return ST_OK;
}
