/*
 * What a loop waits with: epoll, or a simulated network (tests/doubles/simulated/sim.h). Used only
 * by loops and the two implementations.
 */
#ifndef VIGIL_IO_POLLER_H
#define VIGIL_IO_POLLER_H

#include "base/status.h"
#include "io/waker.h"

struct io_watch;

struct io_ready {
    struct io_watch *watch; /* NULL: unwatched meanwhile */
    unsigned events;        /* enum io_events */
};

struct poller;

struct poller_ops {
    /* Watches for exactly these events; 0: unwatches. watch->events is the old set. */
    enum status (*set)(struct poller *poller, struct io_watch *watch, unsigned events);
    /* Waits at most wait_ns (CLOCK_NEVER: without timeout) and returns what is ready. */
    size_t (*wait)(struct poller *poller, int64_t wait_ns, struct io_ready *ready, size_t max);
    /* Readable when wait would return something; -1: there is no such descriptor. */
    int (*fd)(const struct poller *poller);
    /* Its waker; NULL: no other thread can wake it. */
    struct waker *(*waker)(struct poller *poller);
    /* Gives its descriptors back: only the waker is still used, by threads that do not see that
     * no thread sleeps. NULL: it has none. */
    void (*close)(struct poller *poller);
    void (*free)(struct poller *poller);
};

struct poller {
    const struct poller_ops *ops;
};

MUST_CHECK
enum status poller_epoll_new(struct poller **ret_poller);

#endif
