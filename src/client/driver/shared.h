/*
 * The part of an object that the user and the loop share, for example of a watch. The user may do
 * something to the object on any thread; that is noted as a bit, and the loop does it:
 *
 *     any thread ── driver_shared_want(…, END) ──► mailbox ──► run: driver_shared_wanted(…) & END
 *
 * However often the user wants something, the command is in the mailbox only once, and it has a
 * reference to the object. Embedded in the object, which holds a reference to its client.
 */
#ifndef VIGIL_CLIENT_DRIVER_SHARED_H
#define VIGIL_CLIENT_DRIVER_SHARED_H

#include "client/driver/driver.h"

struct driver_shared {
    struct driver_command command;
    _Atomic uint32_t wanted; /* bits; the command is posted when it becomes more than 0 */
    _Atomic uint32_t refs;
};

/* run is called on the loop's thread, and ends with the release of the command's reference. */
static inline void driver_shared_init(struct driver_shared *shared, uint32_t refs,
                                      void (*run)(struct driver_command *command))
{
    *shared = (struct driver_shared){.command.run = run, .refs = refs};
}

static inline void driver_shared_ref(struct driver_shared *shared)
{
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

/* True: that was the last reference, and the caller frees the object. */
MUST_CHECK
static inline bool driver_shared_unref(struct driver_shared *shared)
{
    return atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) == 1;
}

/* On any thread that has a reference. */
void driver_shared_want(struct driver_shared *shared, struct driver *driver, uint32_t what);
/* In run: everything that is wanted. */
static inline uint32_t driver_shared_wanted(struct driver_shared *shared)
{
    return atomic_exchange(&shared->wanted, 0);
}

#endif
