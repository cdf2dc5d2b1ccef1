/* The Cluster service of a cluster that has one member and keeps it: the list. */
#include "codec/pb/rpc.pb.h"
#include "etcd/service.h"

static void member_list_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    const struct etcd_config *config = face->config;
    struct pb_member_list_request request;
    if (!etcd_call_decode(call, &pb_member_list_request_table, message, &request))
        return;
    struct pb_response_header header = {
        /* etcd gives no revision here */
        .cluster_id = face->identity.cluster_id,
        .member_id = face->identity.member_id,
        .raft_term = face->identity.raft_term,
    };
    struct pb_member member = {
        .id = face->identity.member_id,
        .name = slice_from_text(config->member_name),
        .peer_urls = (struct slice *)config->peer_urls, /* the encoder only reads */
        .peer_urls_count = config->peer_url_count,
        .client_urls = (struct slice *)config->client_urls,
        .client_urls_count = config->client_url_count,
    };
    struct pb_member_list_response response = {
        .header = &header,
        .members = &member,
        .members_count = 1,
    };
    etcd_call_reply(call, &pb_member_list_response_table, &response);
}

static const struct grpc_method methods[] = {
    {.path = PB_CLUSTER_MEMBER_LIST_PATH, .on_message = member_list_on_message},
};

enum status cluster_service_add(struct etcd_face *face)
{
    return grpc_services_add(face->services, methods, COUNT_OF(methods), face);
}
