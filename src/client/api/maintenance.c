/* Maintenance of a server as calls. */
#include "client/call/call.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/maintenance.h>

static const struct client_method status_method = {
    .path = "/etcdserverpb.Maintenance/Status",
    .response = &pb_status_response_table,
    .reads = true,
};
static const struct client_method alarm_list_method = {
    .path = "/etcdserverpb.Maintenance/Alarm",
    .response = &pb_alarm_response_table,
    .reads = true,
};
static const struct client_method alarm_disarm_method = {
    .path = "/etcdserverpb.Maintenance/Alarm",
    .response = &pb_alarm_response_table,
};
static const struct client_method defragment_method = {
    .path = "/etcdserverpb.Maintenance/Defragment",
    .response = &pb_defragment_response_table,
};
static const struct client_method hash_kv_method = {
    .path = "/etcdserverpb.Maintenance/HashKV",
    .response = &pb_hash_kv_response_table,
    .reads = true,
};
static const struct client_method move_leader_method = {
    .path = "/etcdserverpb.Maintenance/MoveLeader",
    .response = &pb_move_leader_response_table,
};

vigil_call *vigil_status(vigil_client *client)
{
    struct pb_status_request message = {0};
    return client_call_with(client_call_new(client, &status_method), &pb_status_request_table,
                            &message);
}

const vigil_status_response *vigil_status_result(const vigil_call *call)
{
    return client_call_response(call, &status_method);
}

vigil_call *vigil_alarm_list(vigil_client *client)
{
    struct pb_alarm_request message = {.action = PB_ALARM_ACTION_GET};
    return client_call_with(client_call_new(client, &alarm_list_method), &pb_alarm_request_table,
                            &message);
}

vigil_call *vigil_alarm_disarm(vigil_client *client, uint64_t member_id, int type)
{
    struct pb_alarm_request message = {
        .action = PB_ALARM_ACTION_DEACTIVATE,
        .member_id = member_id,
        .alarm = type,
    };
    return client_call_with(client_call_new(client, &alarm_disarm_method), &pb_alarm_request_table,
                            &message);
}

const vigil_alarms_response *vigil_alarms_result(const vigil_call *call)
{
    const void *listed = client_call_response(call, &alarm_list_method);
    return listed ? listed : client_call_response(call, &alarm_disarm_method);
}

vigil_call *vigil_defragment(vigil_client *client)
{
    struct pb_defragment_request message = {0};
    return client_call_with(client_call_new(client, &defragment_method),
                            &pb_defragment_request_table, &message);
}

vigil_call *vigil_hash_kv(vigil_client *client, int64_t revision)
{
    struct pb_hash_kv_request message = {.revision = revision};
    return client_call_with(client_call_new(client, &hash_kv_method), &pb_hash_kv_request_table,
                            &message);
}

const vigil_hash_kv_response *vigil_hash_kv_result(const vigil_call *call)
{
    return client_call_response(call, &hash_kv_method);
}

vigil_call *vigil_move_leader(vigil_client *client, uint64_t member_id)
{
    struct pb_move_leader_request message = {.target_id = member_id};
    return client_call_with(client_call_new(client, &move_leader_method),
                            &pb_move_leader_request_table, &message);
}
