/*
 * A store in this process that a client uses instead of servers (src/embed). Its network leads to
 * the store without sockets, and its part of the store works in the turns of the client's loop.
 * Some calls it executes itself, without encoding them for a connection.
 *
 *     created ── client_new_over ──► turns ──► close ──► free
 */
#ifndef VIGIL_CLIENT_CALL_LOCAL_H
#define VIGIL_CLIENT_CALL_LOCAL_H

#include <stdbool.h>

struct client_local;
struct network;
struct vigil_call;
struct vigil_client;

/* Calls that a store may execute itself: client_method.kind. */
enum client_local_kind {
    LOCAL_KIND_NONE,
    LOCAL_KIND_RANGE,
    LOCAL_KIND_PUT,
    LOCAL_KIND_DELETE,
    LOCAL_KIND_TXN,
    LOCAL_KIND_COMPACT,
};

struct client_local_ops {
    /*
     * Executes a call and sets its error and response; the call has a kind. run is called on the
     * thread that waits in vigil_call_run, and returns when it is done; begin on the loop's thread,
     * and calls client_call_complete then or later, unless the call was completed meanwhile. False:
     * the call was not executed, and goes to the connection.
     */
    bool (*run)(struct client_local *local, struct vigil_call *call);
    bool (*begin)(struct client_local *local, struct vigil_call *call);
    /* On the loop's thread, in every turn: after its input was served, and at its end, when the
     * writes that have begun are passed on. True: the next turn does not wait, because there is
     * more to do. */
    void (*after_input)(struct client_local *local);
    bool (*end_of_turn)(struct client_local *local);
    /* On the loop's thread, which makes no turn any more; all connections are closed. Also called
     * if the client could not be created, perhaps without a loop. */
    void (*close)(struct client_local *local);
    /* After the last reference to the client. */
    void (*free)(struct client_local *local);
};

/* Embedded in the store's part. */
struct client_local {
    const struct client_local_ops *ops;
};

#endif
