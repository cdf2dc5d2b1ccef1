#include "client/driver/shared.h"

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
