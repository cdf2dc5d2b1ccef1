#include "wire/h2/error.h"

const char *h2_error_name(enum h2_error error)
{
    static const char *const names[] = {
        [H2_NO_ERROR] = "NO_ERROR",
        [H2_PROTOCOL_ERROR] = "PROTOCOL_ERROR",
        [H2_INTERNAL_ERROR] = "INTERNAL_ERROR",
        [H2_FLOW_CONTROL_ERROR] = "FLOW_CONTROL_ERROR",
        [H2_SETTINGS_TIMEOUT] = "SETTINGS_TIMEOUT",
        [H2_STREAM_CLOSED] = "STREAM_CLOSED",
        [H2_FRAME_SIZE_ERROR] = "FRAME_SIZE_ERROR",
        [H2_REFUSED_STREAM] = "REFUSED_STREAM",
        [H2_CANCEL] = "CANCEL",
        [H2_COMPRESSION_ERROR] = "COMPRESSION_ERROR",
        [H2_CONNECT_ERROR] = "CONNECT_ERROR",
        [H2_ENHANCE_YOUR_CALM] = "ENHANCE_YOUR_CALM",
        [H2_INADEQUATE_SECURITY] = "INADEQUATE_SECURITY",
        [H2_HTTP_1_1_REQUIRED] = "HTTP_1_1_REQUIRED",
    };
    return (size_t)error < COUNT_OF(names) ? names[error] : "unknown";
}
