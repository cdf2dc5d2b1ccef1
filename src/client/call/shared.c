#include "client/call/shared.h"

void client_shared_init(struct client_shared *shared, uint32_t refs,
                        void (*run)(struct client_command *command))
{
    *shared = (struct client_shared){.command.run = run, .refs = refs};
}

void client_shared_ref(struct client_shared *shared)
{
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
}

bool client_shared_unref(struct client_shared *shared)
{
    return atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) == 1;
}

void client_shared_want(struct client_shared *shared, struct vigil_client *client, uint32_t what)
{
    /* Before the bit is set: the loop may already run the command of an earlier bit. */
    client_shared_ref(shared);
    if (atomic_fetch_or(&shared->wanted, what) == 0) {
        client_post(client, &shared->command);
    } else {
        bool last = client_shared_unref(shared);
        assert(!last); /* the caller has one */
        (void)last;
    }
}

uint32_t client_shared_wanted(struct client_shared *shared)
{
    return atomic_exchange(&shared->wanted, 0);
}
