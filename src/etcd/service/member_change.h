/* What the gRPC and the v2 API have in common when members are changed. */
#ifndef VIGIL_ETCD_SERVICE_MEMBER_CHANGE_H
#define VIGIL_ETCD_SERVICE_MEMBER_CHANGE_H

#include "engine/member.h"

struct etcd_face;

/*
 * Checks URLs that a client has given, in their place, and makes them the member's. Those of a new
 * member are trimmed and sorted, as etcd does. ST_MEMBER_BAD_UR_LS; ST_LIMIT for too many of them.
 */
MUST_CHECK
enum status member_change_urls(struct slice *urls, size_t count, bool is_new,
                               struct engine_member *ret_member);

/* Tells the log what was done; nothing if it failed or was only a question. */
void member_change_log(const struct etcd_face *face, const struct engine_members *members);

#endif
