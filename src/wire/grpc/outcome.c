#include "wire/grpc/outcome.h"

/* gRPC's mapping of HTTP status codes. */
enum grpc_code grpc_code_from_http(unsigned status)
{
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

/* gRPC's mapping of HTTP/2 error codes. */
static const enum grpc_code resets[] = {
    [H2_NO_ERROR] = GRPC_INTERNAL,
    [H2_PROTOCOL_ERROR] = GRPC_INTERNAL,
    [H2_INTERNAL_ERROR] = GRPC_INTERNAL,
    [H2_FLOW_CONTROL_ERROR] = GRPC_INTERNAL,
    [H2_SETTINGS_TIMEOUT] = GRPC_INTERNAL,
    [H2_STREAM_CLOSED] = GRPC_INTERNAL,
    [H2_FRAME_SIZE_ERROR] = GRPC_INTERNAL,
    [H2_REFUSED_STREAM] = GRPC_UNAVAILABLE,
    [H2_CANCEL] = GRPC_CANCELLED,
    [H2_COMPRESSION_ERROR] = GRPC_INTERNAL,
    [H2_CONNECT_ERROR] = GRPC_INTERNAL,
    [H2_ENHANCE_YOUR_CALM] = GRPC_RESOURCE_EXHAUSTED,
    [H2_INADEQUATE_SECURITY] = GRPC_PERMISSION_DENIED,
    [H2_HTTP_1_1_REQUIRED] = GRPC_INTERNAL,
};

enum grpc_code grpc_code_from_reset(enum h2_error error)
{
    return (size_t)error < COUNT_OF(resets) ? resets[error] : GRPC_UNKNOWN;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Percent-decodes. What is not a valid code is left as it is. */
static struct slice decode_text(struct slice text, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        int high = -1, low = -1;
        if (c == '%' && text.len - i > 2) {
            high = hex_digit(text.ptr[i + 1]);
            low = hex_digit(text.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        to[len++] = c;
    }
    return slice_of(to, len);
}

bool grpc_status_read(const struct h2_headers *headers, uint8_t room[GRPC_STATUS_ROOM],
                      struct grpc_outcome *ret_outcome)
{
    struct slice status, text;
    uint64_t code;
    if (!h2_headers_get(headers, SLICE_LITERAL("grpc-status"), &status))
        return false;
    *ret_outcome = (struct grpc_outcome){.code = GRPC_UNKNOWN, .from_peer = true};
    if (slice_decimal(status, &code) && code <= GRPC_UNAUTHENTICATED)
        ret_outcome->code = (enum grpc_code)code;
    if (h2_headers_get(headers, SLICE_LITERAL("grpc-message"), &text) &&
        text.len <= GRPC_STATUS_ROOM)
        ret_outcome->text = decode_text(text, room);
    return true;
}
