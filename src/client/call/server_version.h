/* The version of a server, "3.4.30": what can be concluded from it, and how a client asks for it.
 */
#ifndef VIGIL_CLIENT_CALL_SERVER_VERSION_H
#define VIGIL_CLIENT_CALL_SERVER_VERSION_H

#include "base/slice.h"
#include "base/status.h"

struct vigil_call;
struct vigil_client;

/* Progress says that everything before it was delivered. In etcd before 3.4.31, and from 3.5.0 to
 * 3.5.12, a requested one may overtake events. False for a text that is not a version. */
bool server_version_has_progress(struct slice version);

/* A question for the version of the server that the client is connected to. Embedded by its owner
 * and zeroed at first; the loop's thread. */
struct server_inquiry {
    struct vigil_call *call; /* owned; NULL: nothing is being asked */
    void (*answered)(struct server_inquiry *inquiry);
    /* The answer, valid in answered. */
    bool is_final;        /* a server has answered, even if with an error */
    uint64_t member_id;   /* id of the server; 0: it has not said */
    struct slice version; /* empty if it has not said */
};

/* Calls inquiry->answered later, unless it is ended before. Nothing else is being asked. ST_NOMEM.
 */
MUST_CHECK
enum status server_inquiry_begin(struct server_inquiry *inquiry, struct vigil_client *client);
void server_inquiry_end(struct server_inquiry *inquiry);

#endif
