/*
 * The methods of etcd's API that are called with one request and answered with one response: one
 * row each, for the calls of the library and for the commands of the command line.
 */
#ifndef VIGIL_CLIENT_API_METHODS_H
#define VIGIL_CLIENT_API_METHODS_H

#include "client/call/call.h"
#include "codec/pb/rpc.pb.h"

enum client_method_id {
    METHOD_TXN,
    METHOD_RANGE,
    METHOD_PUT,
    METHOD_DELETE_RANGE,
    METHOD_COMPACT,
    METHOD_LEASE_GRANT,
    METHOD_LEASE_REVOKE,
    METHOD_LEASE_TIME_TO_LIVE,
    METHOD_LEASE_LEASES,
    METHOD_LEASE_KEEP_ALIVE,
    METHOD_MEMBER_LIST,
    METHOD_MEMBER_ADD,
    METHOD_MEMBER_REMOVE,
    METHOD_MEMBER_UPDATE,
    METHOD_MEMBER_PROMOTE,
    METHOD_AUTH_ENABLE,
    METHOD_AUTH_DISABLE,
    METHOD_AUTH_STATUS,
    METHOD_USER_ADD,
    METHOD_USER_DELETE,
    METHOD_USER_CHANGE_PASSWORD,
    METHOD_USER_GRANT_ROLE,
    METHOD_USER_REVOKE_ROLE,
    METHOD_USER_GET,
    METHOD_USER_LIST,
    METHOD_ROLE_ADD,
    METHOD_ROLE_DELETE,
    METHOD_ROLE_GET,
    METHOD_ROLE_LIST,
    METHOD_ROLE_GRANT_PERMISSION,
    METHOD_ROLE_REVOKE_PERMISSION,
    METHOD_STATUS,
    METHOD_ALARM_LIST,
    METHOD_ALARM_DISARM,
    METHOD_DEFRAGMENT,
    METHOD_HASH_KV,
    METHOD_MOVE_LEADER,
    METHOD_DOWNGRADE,
    METHOD_LOCK,
    METHOD_UNLOCK,
    METHOD_CAMPAIGN,
    METHOD_PROCLAIM,
    METHOD_RESIGN,
    METHOD_LEADER,
    METHOD_COUNT
};

extern const struct client_method client_methods[METHOD_COUNT];

/* A call of the method with this request, which is the struct of its row. NULL: no memory. */
struct vigil_call *client_request(struct vigil_client *client, enum client_method_id id,
                                  const void *request);
/* The response of a call that has succeeded. NULL: it has not, or is a call of another method. */
const void *client_result(const struct vigil_call *call, enum client_method_id id);

#endif
