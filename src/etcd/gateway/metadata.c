/*
 * Makes the metadata of a call from the fields of an HTTP request, like grpc-gateway: Authorization
 * keeps its name, and Grpc-Metadata-X becomes x. Services do not use other fields, so those are
 * dropped.
 */
#include "etcd/gateway/gateway.h"
#include "wire/grpc/timeout.h"

static const struct slice prefix = SLICE_LITERAL("grpc-metadata-");

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i] | 0x20;
        bool letter = (c >= 'a' && c <= 'z');
        bool other = (name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '-' ||
                     name.ptr[i] == '.' || name.ptr[i] == '_';
        if (!letter && !other)
            return false;
    }
    return name.len > 0;
}

static bool is_value(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < ' ' || value.ptr[i] > '~')
            return false;
    }
    return true;
}

/* The field's name as metadata, not yet in lower case. */
static bool name_of(struct slice field, struct slice *ret_name)
{
    if (http_name_equal(field, SLICE_LITERAL("authorization"))) {
        *ret_name = field;
        return true;
    }
    if (field.len <= prefix.len || !http_name_equal(slice_sub(field, 0, prefix.len), prefix))
        return false;
    *ret_name = slice_sub(field, prefix.len, field.len - prefix.len);
    return true;
}

static struct slice lower(struct slice name, uint8_t *dst)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        dst[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
    }
    return slice_of(dst, name.len);
}

void gateway_metadata_take(struct gateway_metadata *m, const struct http_request *request)
{
    size_t used = 0;
    m->count = 0;
    for (size_t i = 0; i < request->field_count && m->count < GATEWAY_FIELDS_MAX; i++) {
        struct slice name, value = request->fields[i].value;
        if (!name_of(request->fields[i].name, &name) || !is_name(name) || !is_value(value))
            continue;
        if (name.len > sizeof(m->names) - used)
            return;
        m->fields[m->count].name = lower(name, m->names + used);
        m->fields[m->count++].value = value;
        used += name.len;
    }
}

/* Go accepts as many digits as fit into 64 bits. A number longer than gRPC's eight digits means
 * that there is no timeout. */
static bool is_long_timeout(struct slice text)
{
    if (text.len > 19)
        return false;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    }
    return strchr("HMSmun", text.ptr[text.len - 1]) != NULL;
}

bool gateway_timeout(const struct http_request *request, int64_t *ret_ns, struct slice *ret_text)
{
    struct slice text;
    int64_t ns = 0;
    *ret_ns = INT64_MAX;
    if (!http_request_get(request, SLICE_LITERAL("grpc-timeout"), &text) || text.len == 0)
        return true;
    *ret_text = text;
    bool negative = text.ptr[0] == '-';
    if (negative || text.ptr[0] == '+')
        text = slice_sub(text, 1, text.len - 1);
    enum grpc_timeout_fault fault = grpc_timeout_parse(text, &ns);
    if (fault == GRPC_TIMEOUT_LONG && is_long_timeout(text))
        ns = INT64_MAX;
    else if (fault != GRPC_TIMEOUT_FINE)
        return false;
    if (ns) /* 0 means no timeout */
        *ret_ns = negative ? -1 : ns;
    return true;
}
