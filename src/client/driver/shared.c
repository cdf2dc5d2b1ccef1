#include "client/driver/shared.h"

void driver_shared_init(struct driver_shared *shared, uint32_t refs,
                        void (*run)(struct driver_command *command))
{
    *shared = (struct driver_shared){.command.run = run, .refs = refs};
}

void driver_shared_ref(struct driver_shared *shared)
{
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

bool driver_shared_unref(struct driver_shared *shared)
{
    return atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) == 1;
}

void driver_shared_want(struct driver_shared *shared, struct driver *driver, uint32_t what)
{
    /* Before the bit is set: the loop may already run the command of an earlier bit. */
    driver_shared_ref(shared);
    if (atomic_fetch_or(&shared->wanted, what) == 0) {
        driver_post(driver, &shared->command);
    } else {
        bool last = driver_shared_unref(shared);
        assert(!last); /* the caller has one */
        (void)last;
    }
}

uint32_t driver_shared_wanted(struct driver_shared *shared)
{
    return atomic_exchange(&shared->wanted, 0);
}
