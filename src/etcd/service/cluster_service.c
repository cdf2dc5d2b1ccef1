/*
 * The Cluster service. Only one member, this server, is ever running. Other members can be added,
 * changed and removed as in a one-node etcd, and are listed, but they cannot join.
 */
#include "base/clock.h"
#include "base/log/log.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/service/member_change.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"
#include "etcd/shared/member_id.h"

/* One call that the engine answers. In the call's arena. */
struct cluster_call {
    struct engine_members members; /* first */
    struct service_call base;
};

/* -- Answers -- */

/* etcd sends no revision here. */
static struct pb_response_header header_of(const struct etcd_api *api)
{
    return (struct pb_response_header){
        .cluster_id = api->identity.cluster_id,
        .member_id = api->identity.member_id,
        .raft_term = api->identity.raft_term,
    };
}

/* Members that have never started have no name and no client URLs. */
static struct pb_member message_of(const struct etcd_api *api, const struct engine_member *member)
{
    const struct etcd_config *config = api->config;
    struct pb_member message = {
        .id = member->id,
        .is_learner = member->learner,
        .peer_urls = (struct slice *)member->peer_urls, /* the encoder only reads */
        .peer_urls_count = member->peer_url_count,
    };
    if (member->id != api->identity.member_id)
        return message;
    message.name = slice_from_text(config->member_name);
    message.client_urls = (struct slice *)config->client_urls;
    message.client_urls_count = config->client_url_count;
    return message;
}

static void add_reply(struct cluster_call *c, struct pb_response_header *header,
                      struct pb_member *members, size_t count)
{
    struct pb_member added = message_of(c->base.api, &c->members.member);
    struct pb_member_add_response response = {
        .header = header,
        .member = &added,
        .members = members,
        .members_count = count,
    };
    etcd_call_reply(c->base.call, &pb_member_add_response_table, &response);
}

#define SAME_AS_LIST(type)                                                                         \
    _Static_assert(                                                                                \
        sizeof(struct type) == sizeof(struct pb_member_list_response) &&                           \
            offsetof(struct type, header) == offsetof(struct pb_member_list_response, header) &&   \
            offsetof(struct type, members) == offsetof(struct pb_member_list_response, members) && \
            offsetof(struct type, members_count) ==                                                \
                offsetof(struct pb_member_list_response, members_count),                           \
        "one struct is encoded for all of them")
SAME_AS_LIST(pb_member_remove_response);
SAME_AS_LIST(pb_member_update_response);
SAME_AS_LIST(pb_member_promote_response);

/* The other responses have the same form: a header and the members. */
static const struct pb_message *answer_table(enum engine_member_call call)
{
    switch (call) {
    case ENGINE_MEMBER_REMOVE:
        return &pb_member_remove_response_table;
    case ENGINE_MEMBER_UPDATE:
        return &pb_member_update_response_table;
    case ENGINE_MEMBER_PROMOTE:
        return &pb_member_promote_response_table;
    default:
        return &pb_member_list_response_table;
    }
}

static void reply(struct cluster_call *c)
{
    struct pb_response_header header = header_of(c->base.api);
    size_t count = c->members.count;
    struct pb_member *members =
        arena_calloc(grpc_call_arena(c->base.call), count, sizeof(*members));
    if (!members) {
        grpc_call_fail(c->base.call, ST_NOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++)
        members[i] = message_of(c->base.api, &c->members.list[i]);
    if (c->members.call == ENGINE_MEMBER_ADD) {
        add_reply(c, &header, members, count);
        return;
    }
    struct pb_member_list_response response = {
        .header = &header,
        .members = members,
        .members_count = count,
    };
    etcd_call_reply(c->base.call, answer_table(c->members.call), &response);
}

/* -- Operations of the engine -- */

static void cluster_done(struct engine_op *op)
{
    struct cluster_call *c = CONTAINER_OF(op, struct cluster_call, members.op);
    member_change_log(c->base.api, &c->members);
    if (!service_call_answered(&c->base))
        service_call_release(&c->base);
    else if (op->status != ST_OK)
        etcd_call_fail_op(c->base.call, op);
    else
        reply(c);
}

static void cluster_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct cluster_call *c = grpc_call_user(call);
    if (c) /* otherwise it was refused before the operation was started */
        service_call_end(&c->base);
}

static void start(struct grpc_call *call, struct etcd_api *api, enum engine_member_call kind,
                  struct engine_member member)
{
    struct cluster_call *c = arena_calloc(grpc_call_arena(call), 1, sizeof(*c));
    if (!c) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    service_call_init(&c->base, call, api, &c->members.op, cluster_done);
    c->members.call = kind;
    c->members.member = member;
    service_call_begin(&c->base);
    grpc_call_set_user(call, c);
    engine_members(api->shard, &c->members);
}

/* -- Requests -- */

static void list_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_member_list_request request;
    if (etcd_call_decode(call, &pb_member_list_request_table, message, &request))
        start(call, service, ENGINE_MEMBER_LIST, (struct engine_member){0});
}

static void add_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_member_add_request request;
    if (!etcd_call_decode(call, &pb_member_add_request_table, message, &request))
        return;
    struct engine_member member = {.learner = request.is_learner};
    enum status status =
        member_change_urls(request.peer_urls, request.peer_urls_count, true, &member);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
        return;
    }
    member.id = member_id_make_at(member.peer_urls, member.peer_url_count,
                                  clock_real_ns(clock_system()) / NS_PER_S);
    start(call, service, ENGINE_MEMBER_ADD, member);
}

static void update_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_member_update_request request;
    if (!etcd_call_decode(call, &pb_member_update_request_table, message, &request))
        return;
    struct engine_member member = {.id = request.id};
    enum status status =
        member_change_urls(request.peer_urls, request.peer_urls_count, false, &member);
    if (status != ST_OK)
        grpc_call_fail(call, status);
    else
        start(call, service, ENGINE_MEMBER_UPDATE, member);
}

static void remove_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_member_remove_request request;
    if (etcd_call_decode(call, &pb_member_remove_request_table, message, &request))
        start(call, service, ENGINE_MEMBER_REMOVE, (struct engine_member){.id = request.id});
}

static void promote_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_member_promote_request request;
    if (etcd_call_decode(call, &pb_member_promote_request_table, message, &request))
        start(call, service, ENGINE_MEMBER_PROMOTE, (struct engine_member){.id = request.id});
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_CLUSTER_MEMBER_LIST_PATH, list_on_message, cluster_on_end),
    GRPC_METHOD(PB_CLUSTER_MEMBER_ADD_PATH, add_on_message, cluster_on_end),
    GRPC_METHOD(PB_CLUSTER_MEMBER_UPDATE_PATH, update_on_message, cluster_on_end),
    GRPC_METHOD(PB_CLUSTER_MEMBER_REMOVE_PATH, remove_on_message, cluster_on_end),
    GRPC_METHOD(PB_CLUSTER_MEMBER_PROMOTE_PATH, promote_on_message, cluster_on_end),
};

enum status cluster_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
