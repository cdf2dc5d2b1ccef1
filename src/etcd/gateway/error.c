#include "codec/json/writer.h"
#include "etcd/gateway/gateway.h"

unsigned gateway_http_status(enum grpc_code code)
{
    switch (code) {
    case GRPC_OK:
        return 200;
    case GRPC_CANCELLED:
        return 499;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_FAILED_PRECONDITION:
    case GRPC_OUT_OF_RANGE:
        return 400;
    case GRPC_DEADLINE_EXCEEDED:
        return 504;
    case GRPC_NOT_FOUND:
        return 404;
    case GRPC_ALREADY_EXISTS:
    case GRPC_ABORTED:
        return 409;
    case GRPC_PERMISSION_DENIED:
        return 403;
    case GRPC_UNAUTHENTICATED:
        return 401;
    case GRPC_RESOURCE_EXHAUSTED:
        return 429;
    case GRPC_UNIMPLEMENTED:
        return 501;
    case GRPC_UNAVAILABLE:
        return 503;
    default:
        return 500;
    }
}

enum status gateway_error_append(struct buf *out, enum grpc_code code, struct slice text)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_begin_object(&w);
    json_member_i64(&w, "code", code);
    if (text.len) {
        json_member_string(&w, "message", text);
    }
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* The form of errors before etcd 3.5. */
static enum status old_error_append(struct buf *out, enum grpc_code code, struct slice text)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_begin_object(&w);
    json_member_string(&w, "error", text);
    json_member_string(&w, "message", text);
    json_member_i64(&w, "code", code);
    json_end_object(&w);
    return json_writer_finish(&w);
}

void gateway_respond_error(const struct gateway *gateway, struct http_exchange *x,
                           enum grpc_code code, struct slice text)
{
    AUTO(buf_fini) struct buf body = {0};
    enum status status = gateway->before_3_5 ? old_error_append(&body, code, text)
                                             : gateway_error_append(&body, code, text);
    if (status != ST_OK) {
        http_abort(x);
        return;
    }
    /* The field is left out if the text is not valid in a field. */
    if (code == GRPC_UNAUTHENTICATED)
        (void)!http_add_field(x, SLICE_LITERAL("WWW-Authenticate"), text);
    http_respond(x, gateway_http_status(code), SLICE_LITERAL("application/json"), buf_slice(&body));
}
