/* Leases as calls; keeping them is lease_keeper.c's task. */
#include "client/call/call.h"
#include "client/call/prefix.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/lease.h>

static void strip_keys(void *response, size_t prefix_len)
{
    struct pb_lease_time_to_live_response *ttl = response;
    for (size_t i = 0; i < ttl->keys_count; i++)
        prefix_strip(&ttl->keys[i], prefix_len);
}

static const struct client_method grant_method = {
    .path = "/etcdserverpb.Lease/LeaseGrant",
    .response = &pb_lease_grant_response_table,
};
static const struct client_method revoke_method = {
    .path = "/etcdserverpb.Lease/LeaseRevoke",
    .response = &pb_lease_revoke_response_table,
};
static const struct client_method ttl_method = {
    .path = "/etcdserverpb.Lease/LeaseTimeToLive",
    .response = &pb_lease_time_to_live_response_table,
    .reads = true,
    .strip = strip_keys,
};
static const struct client_method list_method = {
    .path = "/etcdserverpb.Lease/LeaseLeases",
    .response = &pb_lease_leases_response_table,
    .reads = true,
};

vigil_call *vigil_lease_grant(vigil_client *client, int64_t ttl, int64_t id)
{
    struct pb_lease_grant_request message = {.ttl = ttl, .id = id};
    return client_call_with(client_call_new(client, &grant_method), &pb_lease_grant_request_table,
                            &message);
}

const vigil_lease_grant_response *vigil_lease_grant_result(const vigil_call *call)
{
    return client_call_response(call, &grant_method);
}

vigil_call *vigil_lease_revoke(vigil_client *client, int64_t id)
{
    struct pb_lease_revoke_request message = {.id = id};
    return client_call_with(client_call_new(client, &revoke_method), &pb_lease_revoke_request_table,
                            &message);
}

vigil_call *vigil_lease_ttl(vigil_client *client, int64_t id, int with_keys)
{
    struct pb_lease_time_to_live_request message = {.id = id, .keys = with_keys != 0};
    return client_call_with(client_call_new(client, &ttl_method),
                            &pb_lease_time_to_live_request_table, &message);
}

const vigil_lease_ttl_response *vigil_lease_ttl_result(const vigil_call *call)
{
    return client_call_response(call, &ttl_method);
}

vigil_call *vigil_lease_list(vigil_client *client)
{
    struct pb_lease_leases_request message = {0};
    return client_call_with(client_call_new(client, &list_method), &pb_lease_leases_request_table,
                            &message);
}

const vigil_lease_list_response *vigil_lease_list_result(const vigil_call *call)
{
    return client_call_response(call, &list_method);
}
