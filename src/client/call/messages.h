/*
 * A queue of messages that are kept as they arrived, because the user has paused or because they
 * are fragments.
 *
 * The queue is a ring and known by its newest message, whose next is the oldest. NULL is an empty
 * queue. Owned by a watch or a call; the loop's thread.
 */
#ifndef VIGIL_CLIENT_CALL_MESSAGES_H
#define VIGIL_CLIENT_CALL_MESSAGES_H

#include "base/slice.h"
#include "base/status.h"

struct client_message {
    struct client_message *next;
    size_t len;
    bool progress; /* it is the progress of a watch: newer progress may replace it */
    bool early;    /* progress whose revision means nothing */
    uint8_t bytes[];
};

/* Every message has room for this many bytes. Progress consists of four numbers of the header and
 * an id, so it always fits. */
enum { CLIENT_MESSAGE_ROOM = 64 };

/* Appends a copy. ST_NOMEM. */
MUST_CHECK
enum status client_messages_push(struct client_message **newest, struct slice bytes);
/* Removes the oldest message; the caller frees it. The queue must not be empty. */
struct client_message *client_messages_pop(struct client_message **newest);
void client_messages_free(struct client_message **newest);
/* The bytes of all messages together, without their heads. */
size_t client_messages_bytes(const struct client_message *newest);

#endif
