/* Changes of members, as far as the gRPC and the v2 API do the same. */
#ifndef VIGIL_ETCD_SERVICE_MEMBER_CHANGE_H
#define VIGIL_ETCD_SERVICE_MEMBER_CHANGE_H

#include "engine/engine.h"

struct etcd_api;

/*
 * Checks the URLs of a request and makes them the member's, without copying them. Those of a new
 * member are trimmed and sorted in place, as by etcd. ST_MEMBER_BAD_UR_LS; ST_LIMIT: there are too
 * many.
 */
MUST_CHECK
enum status member_change_urls(struct slice *urls, size_t count, bool is_new,
                               struct engine_member *ret_member);

/* Logs a change that was made; a failed change or a list is not logged. */
void member_change_log(const struct etcd_api *api, const struct engine_members *members);

#endif
