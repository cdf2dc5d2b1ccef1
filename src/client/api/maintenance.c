/* Maintenance of a server as calls. */
#include "client/api/methods.h"

#include <vigil/maintenance.h>

vigil_call *vigil_status(vigil_client *client)
{
    struct pb_status_request message = {0};
    return client_request(client, METHOD_STATUS, &message);
}

const vigil_status_response *vigil_status_result(const vigil_call *call)
{
    return client_result(call, METHOD_STATUS);
}

vigil_call *vigil_alarm_list(vigil_client *client)
{
    struct pb_alarm_request message = {.action = PB_ALARM_ACTION_GET};
    return client_request(client, METHOD_ALARM_LIST, &message);
}

vigil_call *vigil_alarm_disarm(vigil_client *client, uint64_t member_id, int type)
{
    struct pb_alarm_request message = {
        .action = PB_ALARM_ACTION_DEACTIVATE,
        .member_id = member_id,
        .alarm = type,
    };
    return client_request(client, METHOD_ALARM_DISARM, &message);
}

const vigil_alarms_response *vigil_alarms_result(const vigil_call *call)
{
    const void *listed = client_result(call, METHOD_ALARM_LIST);
    return listed ? listed : client_result(call, METHOD_ALARM_DISARM);
}

vigil_call *vigil_defragment(vigil_client *client)
{
    struct pb_defragment_request message = {0};
    return client_request(client, METHOD_DEFRAGMENT, &message);
}

vigil_call *vigil_hash_kv(vigil_client *client, int64_t revision)
{
    struct pb_hash_kv_request message = {.revision = revision};
    return client_request(client, METHOD_HASH_KV, &message);
}

const vigil_hash_kv_response *vigil_hash_kv_result(const vigil_call *call)
{
    return client_result(call, METHOD_HASH_KV);
}

vigil_call *vigil_move_leader(vigil_client *client, uint64_t member_id)
{
    struct pb_move_leader_request message = {.target_id = member_id};
    return client_request(client, METHOD_MOVE_LEADER, &message);
}
