/* Leases as calls; keeping them is lease_keeper.c's task. */
#include "client/api/methods.h"

#include <vigil/lease.h>

vigil_call *vigil_lease_grant(vigil_client *client, int64_t ttl, int64_t id)
{
    struct pb_lease_grant_request message = {.ttl = ttl, .id = id};
    return client_request(client, METHOD_LEASE_GRANT, &message);
}

const vigil_lease_grant_response *vigil_lease_grant_result(const vigil_call *call)
{
    return client_result(call, METHOD_LEASE_GRANT);
}

vigil_call *vigil_lease_revoke(vigil_client *client, int64_t id)
{
    struct pb_lease_revoke_request message = {.id = id};
    return client_request(client, METHOD_LEASE_REVOKE, &message);
}

vigil_call *vigil_lease_ttl(vigil_client *client, int64_t id, int with_keys)
{
    struct pb_lease_time_to_live_request message = {.id = id, .keys = with_keys != 0};
    return client_request(client, METHOD_LEASE_TIME_TO_LIVE, &message);
}

const vigil_lease_ttl_response *vigil_lease_ttl_result(const vigil_call *call)
{
    return client_result(call, METHOD_LEASE_TIME_TO_LIVE);
}

vigil_call *vigil_lease_list(vigil_client *client)
{
    struct pb_lease_leases_request message = {0};
    return client_request(client, METHOD_LEASE_LEASES, &message);
}

const vigil_lease_list_response *vigil_lease_list_result(const vigil_call *call)
{
    return client_result(call, METHOD_LEASE_LEASES);
}
