/* The members of a cluster as calls. */
#include "client/call/call.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/cluster.h>

static const struct client_method list_method = {
    .path = "/etcdserverpb.Cluster/MemberList",
    .response = &pb_member_list_response_table,
    .reads = true,
};
static const struct client_method add_method = {
    .path = "/etcdserverpb.Cluster/MemberAdd",
    .response = &pb_member_add_response_table,
};
static const struct client_method remove_method = {
    .path = "/etcdserverpb.Cluster/MemberRemove",
    .response = &pb_member_remove_response_table,
};
static const struct client_method update_method = {
    .path = "/etcdserverpb.Cluster/MemberUpdate",
    .response = &pb_member_update_response_table,
};
static const struct client_method promote_method = {
    .path = "/etcdserverpb.Cluster/MemberPromote",
    .response = &pb_member_promote_response_table,
};

vigil_call *vigil_member_list(vigil_client *client, int linearizable)
{
    struct pb_member_list_request message = {.linearizable = linearizable != 0};
    return client_call_with(client_call_new(client, &list_method), &pb_member_list_request_table,
                            &message);
}

vigil_call *vigil_member_add(vigil_client *client, const char *peer_url, int learner)
{
    struct slice url = slice_from_text(peer_url);
    struct pb_member_add_request message = {
        .peer_urls = &url,
        .peer_urls_count = 1,
        .is_learner = learner != 0,
    };
    return client_call_with(client_call_new(client, &add_method), &pb_member_add_request_table,
                            &message);
}

vigil_call *vigil_member_remove(vigil_client *client, uint64_t id)
{
    struct pb_member_remove_request message = {.id = id};
    return client_call_with(client_call_new(client, &remove_method),
                            &pb_member_remove_request_table, &message);
}

vigil_call *vigil_member_update(vigil_client *client, uint64_t id, const char *peer_url)
{
    struct slice url = slice_from_text(peer_url);
    struct pb_member_update_request message = {
        .id = id,
        .peer_urls = &url,
        .peer_urls_count = 1,
    };
    return client_call_with(client_call_new(client, &update_method),
                            &pb_member_update_request_table, &message);
}

vigil_call *vigil_member_promote(vigil_client *client, uint64_t id)
{
    struct pb_member_promote_request message = {.id = id};
    return client_call_with(client_call_new(client, &promote_method),
                            &pb_member_promote_request_table, &message);
}

const vigil_members_response *vigil_members_result(const vigil_call *call)
{
    static const struct client_method *const methods[] = {&list_method, &remove_method,
                                                          &update_method, &promote_method};
    const void *response = NULL;
    for (size_t i = 0; i < COUNT_OF(methods) && !response; i++)
        response = client_call_response(call, methods[i]);
    return response;
}

const vigil_member_add_response *vigil_member_add_result(const vigil_call *call)
{
    return client_call_response(call, &add_method);
}
