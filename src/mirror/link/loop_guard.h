/*
 * The servers in front of a cluster through which a call has passed: "vigil ID ID …". Each adds its
 * id, so that one which finds its own knows that it is in front of itself: without that, a call
 * would go round for ever. The text is the value of the field grpcgateway-accept, which forwarded
 * calls have anyway (client/connect/metadata.h).
 */
#ifndef VIGIL_MIRROR_LINK_LOOP_GUARD_H
#define VIGIL_MIRROR_LINK_LOOP_GUARD_H

#include "base/buf.h"

enum { LOOP_GUARD_OWN_BYTES = 32, LOOP_GUARD_BYTES_MAX = 512 };

#define LOOP_GUARD_LOOP_TEXT                                                                  \
    "vigil: this server is in front of itself: --upstream-endpoints, here or at the servers " \
    "behind it, must lead to the members of the cluster"

/* "vigil ID" with a random id. */
void loop_guard_make(char ret_own[LOOP_GUARD_OWN_BYTES]);
/*
 * Replaces the chain by what a call carries that was passed on by the servers in `passed`, which is
 * a client's and may be anything: if it is not such a text, it is ignored. The chain is empty if
 * the server's own text will do. ST_EXISTS: this server is among them; ST_LIMIT: they are too many;
 * ST_NOMEM.
 */
MUST_CHECK
enum status loop_guard_extend(struct slice passed, const char *own, struct buf *chain);

#endif
