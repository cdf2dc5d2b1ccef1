/*
 * grpc.health.v1 as in etcd: the only service is the whole server, with the name "", and its status
 * is SERVING. A Watch gets one response and stays open, because the status does not change while
 * the process runs.
 */
#include "codec/pb/health.pb.h"
#include "etcd/service/services.h"
#include "etcd/shared/service.h"

static void check_on_message(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    struct pb_health_check_request request;
    if (!etcd_call_decode(call, &pb_health_check_request_table, message, &request))
        return;
    if (request.service.len) {
        grpc_call_fail_text(call, GRPC_NOT_FOUND, SLICE_LITERAL("unknown service"));
        return;
    }
    struct pb_health_check_response response = {.status = PB_SERVING_STATUS_SERVING};
    etcd_call_reply(call, &pb_health_check_response_table, &response);
}

static void watch_on_message(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    struct pb_health_check_request request;
    if (!etcd_call_decode(call, &pb_health_check_request_table, message, &request))
        return;
    struct pb_health_check_response response = {
        .status =
            request.service.len ? PB_SERVING_STATUS_SERVICE_UNKNOWN : PB_SERVING_STATUS_SERVING,
    };
    size_t size = pb_size(&pb_health_check_response_table, &response);
    uint8_t *dst = grpc_call_message(call, size);
    if (dst)
        pb_encode(&pb_health_check_response_table, &response, dst, size);
    else
        grpc_call_fail(call, ST_NOMEM);
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_HEALTH_CHECK_PATH, check_on_message, NULL),
    GRPC_METHOD(PB_HEALTH_WATCH_PATH, watch_on_message, NULL, .server_streams = true,
                .parks = true),
};

enum status health_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
