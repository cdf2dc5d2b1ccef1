/*
 * The part of an object that the user and the loop share, for example of a watch. The user may do
 * something to the object on any thread; that is noted as a bit, and the loop does it:
 *
 *     any thread ── client_shared_want(…, END) ──► mailbox ──► run: client_shared_wanted(…) & END
 *
 * However often the user wants something, the command is in the mailbox only once, and it has a
 * reference to the object. Embedded in the object, which holds a reference to its client.
 */
#ifndef VIGIL_CLIENT_CALL_SHARED_H
#define VIGIL_CLIENT_CALL_SHARED_H

#include "client/call/client.h"

struct client_shared {
    struct client_command command;
    _Atomic uint32_t wanted; /* bits; the command is posted when it becomes more than 0 */
    _Atomic uint32_t refs;
};

/* run is called on the loop's thread, and ends with the release of the command's reference. */
void client_shared_init(struct client_shared *shared, uint32_t refs,
                        void (*run)(struct client_command *command));

void client_shared_ref(struct client_shared *shared);
/* True: that was the last reference, and the caller frees the object. */
MUST_CHECK
bool client_shared_unref(struct client_shared *shared);

/* On any thread that has a reference. */
void client_shared_want(struct client_shared *shared, struct vigil_client *client, uint32_t what);
/* In run: everything that is wanted. */
uint32_t client_shared_wanted(struct client_shared *shared);

#endif
