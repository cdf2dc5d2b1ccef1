/*
 * What drives a client: one loop with a thread of its own, or the program's loop; and the rules for
 * threads and callbacks that all of its objects follow.
 *
 * Public functions run on any thread and only post commands; the rest happens in the loop's turns:
 *
 *     any thread ── vigil_call_start … ──► mailbox ──► loop: calls, watches … ──► callbacks
 *
 * The driver is reference-counted, because calls and watches may outlive the program's handle.
 * Embedded in a client, which is freed with it.
 */
#ifndef VIGIL_CLIENT_DRIVER_DRIVER_H
#define VIGIL_CLIENT_DRIVER_DRIVER_H

#include "base/fork.h"
#include "base/lock.h"
#include "client/driver/end.h"
#include "client/driver/group.h"
#include "client/driver/member.h"

#include <pthread.h>

struct driver;
struct network;
struct driver_ops {
    /* On the loop's thread, which makes no turn any more: ends connections and everything else that
     * uses the loop. Also called if the client could not be created. */
    void (*close)(struct driver *driver);
    void (*destroy)(struct driver *driver); /* frees the client, after the last reference */
};

struct driver {
    /* Constant. The first four are set by the client. */
    bool own_thread;
    struct driver_group *group; /* borrowed; NULL: it has a loop of its own */
    void (*log)(void *user, int level, const char *text);
    void *log_user;
    const struct driver_ops *ops;
    struct loop *loop; /* owned without a group */
    pthread_t thread;  /* valid with an own thread */
    const void *owner; /* driver_scope.owner; may be NULL */
    unsigned forks;    /* fork_count of the process that it belongs to */

    /* The loop's thread. */
    struct list members; /* driver_member.in_driver */
    struct list parts;   /* driver_part.in_driver */
    bool ended;          /* nothing is started any more */
    bool free_wanted;    /* freed inside a callback of the program's loop */

    /* Any thread. */
    _Atomic unsigned refs;
    _Atomic bool quiet;      /* freed: no callbacks any more, except for the completion of calls */
    _Atomic bool closing;    /* freed, and everything ends: no call is started any more */
    _Atomic bool silent;     /* everything has ended: no callbacks any more */
    _Atomic bool loop_ended; /* no turn is made any more */
    _Atomic bool shutting_down;
    _Atomic(const struct driver_object *) inside; /* whose callback is being made */
    _Atomic pthread_t inside_thread;              /* valid while inside is not NULL */
    struct mailbox *mailbox;                      /* constant: its own, or the group's */
    struct mailbox own_mailbox;
    _Atomic unsigned signalling; /* threads that may be about to signal the loop's descriptor */
    struct driver_command shutdown;
    struct driver_end end; /* why everything ends */

    /* Protected by the lock. */
    struct lock lock;
    pthread_cond_t changed;   /* a callback ended, a call completed, or it is freed */
    _Atomic unsigned waiting; /* threads that wait for changed; read without the lock */
    bool all_ended;           /* everything that was begun has ended */
    struct list observers;    /* driver_observer.in_driver */
    bool running_rest;        /* a thread runs the commands that were posted after the loop's end */
};

/* With the program's reference. ST_NOMEM, ST_LIMIT: no descriptor. If this, what follows or
 * driver_start fails, driver_abandon is called. */
MUST_CHECK
enum status driver_init(struct driver *driver, struct network *network,
                        const struct driver_ops *ops);
/* Starts the thread, if it has its own. */
MUST_CHECK
enum status driver_start(struct driver *driver);
/* Another thread, which takes no signals: they are for the program. */
MUST_CHECK
enum status driver_thread_new(void *(*run)(void *arg), void *arg, pthread_t *ret_thread);
/* It could not be created: frees it. */
void driver_abandon(struct driver *driver);

void driver_ref(struct driver *driver);
void driver_unref(struct driver *driver);

/* What the public functions of a client do: see vigil/client.h. */
void driver_shutdown(struct driver *driver);
void driver_shutdown_for(struct driver *driver, enum vigil_code code, const char *text);
void driver_free(struct driver *driver);
/* The same without any callback: for callers in the server, outside of callbacks. */
void driver_free_silently(struct driver *driver);
int driver_fd(const struct driver *driver);
int driver_timeout_ms(const struct driver *driver);
void driver_process(struct driver *driver);
/* Waits until something is due, and does it. The caller has a reference. */
void driver_process_and_wait(struct driver *driver);

/* Any thread. The command is not posted again before it has run. */
void driver_post(struct driver *driver, struct driver_command *command);
/* The same for a start of a call. False: the client is freed, and the command does not run, so that
 * a program that starts a call whenever one has completed can free its client, too. */
MUST_CHECK
bool driver_post_start(struct driver *driver, struct driver_command *command);
/* On the loop's thread. False: the user has dropped the object; or driver_callback_end follows. */
MUST_CHECK
bool driver_callback_begin(struct driver *driver, const struct driver_object *object);
/* The same for the completion of a call, which vigil_client_free makes, too. */
MUST_CHECK
bool driver_completion_begin(struct driver *driver, const struct driver_object *object);
void driver_callback_end(struct driver *driver);
/* Any thread: no callback of the object follows. Waits for one that runs on another thread. */
void driver_drop(struct driver *driver, struct driver_object *object);

/* The caller is inside a callback of this client; of it or its owner, so it must not wait. */
bool driver_is_inside(struct driver *driver);
bool driver_must_not_wait(struct driver *driver);

/* This process is a child of the one that the client belongs to: nothing is done with it any more,
 * and its memory remains. */
static inline bool driver_is_inherited(const struct driver *driver)
{
    return driver->forks != fork_count();
}

/* With the lock held: waits until something has changed, and says that something has. */
void driver_wait(struct driver *driver);
void driver_changed(struct driver *driver);

/* A thread that calls functions of the program and that a callback may have to wait for. */
struct driver_thread {
    _Atomic bool waits; /* it waits for the client, so that no callback may wait for it */
};
/* This thread is the one; it stays valid until the thread ends, or until NULL is entered. */
void driver_thread_enter(struct driver_thread *thread);
/* Before and after this thread waits for the client. No effect on others. */
void driver_thread_waits(bool waits);

/* On the loop's thread: calls the program's logger, if there is one. ctx is the driver. */
void driver_log(void *ctx, int level, const char *text);

/* A time of the public interface, shortened to what can be added to a clock. */
int64_t driver_ns(int64_t ms);

#endif
