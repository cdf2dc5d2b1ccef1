/*
 * Calls whose response comes in parts: a function of the user receives each of them, and may pause.
 *
 *     server ──► receive ──► the user's function ──┬─► continue
 *                   │                              └─► pause: no window is returned to the server
 *                   └─► held, while paused: at most a stream's window
 *
 * There are two kinds: a stream of messages (parts_stream_ops, here), and pages, which are
 * requested one after the other (client/pages.c). All of this is the loop's thread, except for
 * vigil_call_resume.
 */
#ifndef VIGIL_CLIENT_CALL_PARTS_H
#define VIGIL_CLIENT_CALL_PARTS_H

#include "client/call/call.h"

#include <vigil/concurrency.h>
#include <vigil/kv.h>
#include <vigil/maintenance.h>

struct client_message;
struct parts_call;

struct parts_hooks {
    /* The part for the user in a decoded response, whose first field is the header. NULL: the
     * response has nothing for the user. */
    const void *(*open)(struct parts_call *parts, void *response);
    /* Calls the user's function. */
    int (*call_back)(struct parts_call *parts, const void *part);
    /* After the last part: why the whole is wrong, or NULL. The hook may be NULL. */
    const char *(*check)(struct parts_call *parts);
    /* Frees what this kind of call owns; called once or twice. May be NULL. */
    void (*release)(struct parts_call *parts);
    /* The response begins with the current state, so the call is repeated also after its first
     * part. */
    bool repeatable;
    /* The user has resumed the call. NULL: it is a stream. */
    void (*resumed)(struct parts_call *parts);
};

struct parts_call {
    struct vigil_call call; /* first */
    const struct parts_hooks *hooks;
    union {
        vigil_range_fn range;
        vigil_snapshot_fn snapshot;
        vigil_leader_fn leader;
    } fn;
    void *user;
    bool paused;
    struct client_message *held; /* received while paused; owned */
    size_t held_bytes;
    struct driver_command resume;
    _Atomic bool resume_posted;
    vigil_header header; /* valid if result.header points to it */
    struct {
        const vigil_header *header;
    } result; /* vigil_call.response of a call that has received a part */
};

extern const struct client_part_ops parts_stream_ops;

/* An object of this size that begins with a parts_call. NULL: no memory. The caller sets fn, and
 * gives it a request by parts_call_with. */
struct parts_call *parts_call_new(struct vigil_client *client, const struct client_method *method,
                                  const struct parts_hooks *hooks, size_t bytes, void *user);

/* As client_call_with. */
struct vigil_call *parts_call_with(struct parts_call *parts, const void *message);

/* Calls the user's function, unless the user does not want parts any more. */
void parts_deliver(struct parts_call *parts, const void *part);

/* Copies the header of a part, if it has one, for the result. */
void parts_note_header(struct parts_call *parts, const void *part);

/* The release of client_part_ops. */
void parts_release(struct vigil_call *call);

/* Asserts every invariant; for tests. */
void parts_check(const struct parts_call *parts);

#endif
