/* The members of a cluster as calls. */
#include "client/api/methods.h"

#include <vigil/cluster.h>

vigil_call *vigil_member_list(vigil_client *client, int linearizable)
{
    struct pb_member_list_request message = {.linearizable = linearizable != 0};
    return client_request(client, METHOD_MEMBER_LIST, &message);
}

vigil_call *vigil_member_add(vigil_client *client, const char *peer_url, int learner)
{
    struct slice url = slice_from_text(peer_url ? peer_url : "");
    struct pb_member_add_request message = {
        .peer_urls = &url,
        .peer_urls_count = 1,
        .is_learner = learner != 0,
    };
    return client_request(client, METHOD_MEMBER_ADD, &message);
}

vigil_call *vigil_member_remove(vigil_client *client, uint64_t id)
{
    struct pb_member_remove_request message = {.id = id};
    return client_request(client, METHOD_MEMBER_REMOVE, &message);
}

vigil_call *vigil_member_update(vigil_client *client, uint64_t id, const char *peer_url)
{
    struct slice url = slice_from_text(peer_url ? peer_url : "");
    struct pb_member_update_request message = {
        .id = id,
        .peer_urls = &url,
        .peer_urls_count = 1,
    };
    return client_request(client, METHOD_MEMBER_UPDATE, &message);
}

vigil_call *vigil_member_promote(vigil_client *client, uint64_t id)
{
    struct pb_member_promote_request message = {.id = id};
    return client_request(client, METHOD_MEMBER_PROMOTE, &message);
}

const vigil_members_response *vigil_members_result(const vigil_call *call)
{
    static const enum client_method_id methods[] = {METHOD_MEMBER_LIST, METHOD_MEMBER_REMOVE,
                                                    METHOD_MEMBER_UPDATE, METHOD_MEMBER_PROMOTE};
    const void *response = NULL;
    for (size_t i = 0; i < COUNT_OF(methods) && !response; i++)
        response = client_result(call, methods[i]);
    return response;
}

const vigil_member_add_response *vigil_member_add_result(const vigil_call *call)
{
    return client_result(call, METHOD_MEMBER_ADD);
}
