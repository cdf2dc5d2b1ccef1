#include "kubeclient/data/status.h"

#include "codec/utf8.h"
#include "kubeclient/data/protobuf.h"

#include <stdio.h>
#include <vigil/kube/json.h>

/* Raw JSON of which at most VIGIL_KUBE_MESSAGE_BYTES are shown: an escape has up to six bytes for
 * one. */
enum { TEXT_BYTES = 6 * VIGIL_KUBE_MESSAGE_BYTES + 16 };

/* Copies as much as fits, without half of a character at the end. */
static void copy_cut(char *to, size_t size, const char *text, size_t len)
{
    size_t n = size_min(len, size - 1);
    while (n < len && n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80)
        n--;
    slice_copy(to, slice_of(text, n));
    to[n] = 0;
}

/* The bytes of one character in a valid string: an escape, two of them, or a sequence of UTF-8. */
static size_t character_bytes(const uint8_t *at, const uint8_t *end)
{
    size_t n = 1;
    if (*at == '\\') {
        if (at[1] != 'u')
            return 2;
        /* The escape begins a surrogate pair, which is two escapes. */
        return (at[2] == 'd' || at[2] == 'D') && strchr("89abAB", at[3]) ? 12 : 6;
    }
    while (at + n < end && (at[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* A string that is longer than anything we show, as a shorter one of whole characters. */
static vigil_bytes shorten(vigil_bytes value, uint8_t room[TEXT_BYTES])
{
    const uint8_t *from = value.data, *end = from + value.size - 1;
    size_t len = 1, n;
    if (value.size <= TEXT_BYTES || from[0] != '"')
        return value;
    while ((n = character_bytes(from + len, end)) && len + n < TEXT_BYTES)
        len += n;
    slice_copy(room, slice_of(from, len));
    room[len] = '"';
    return vigil_bytes_of(room, len + 1);
}

/* "" if there is no string at the path. */
static void read_text(vigil_bytes json, const char *path, char *to, size_t size)
{
    uint8_t room[TEXT_BYTES];
    char text[TEXT_BYTES];
    size_t len = 0;
    vigil_bytes value;
    if (!vigil_json_find(json, path, &value) ||
        !vigil_json_text(shorten(value, room), text, sizeof(text), &len))
        len = 0;
    copy_cut(to, size, text, len);
}

static int64_t read_number(vigil_bytes json, const char *path, int64_t otherwise)
{
    int64_t number;
    vigil_bytes value;
    if (!vigil_json_find(json, path, &value) || !vigil_json_integer(value, &number))
        return otherwise;
    return number;
}

static void read_causes(vigil_bytes json, struct vigil_kube_status *status)
{
    vigil_bytes causes, cause;
    if (!vigil_json_find(json, "details.causes", &causes))
        return;
    vigil_json_iterator iterator = vigil_json_iterate(causes);
    while (status->cause_count < VIGIL_KUBE_CAUSES_MAX &&
           vigil_json_next(&iterator, NULL, &cause)) {
        vigil_kube_cause *to = &status->causes[status->cause_count++];
        read_text(cause, "reason", to->reason, sizeof(to->reason));
        read_text(cause, "field", to->field, sizeof(to->field));
        read_text(cause, "message", to->message, sizeof(to->message));
    }
}

static int in_range(int64_t number, int least, int most, int otherwise)
{
    return number >= least && number <= most ? (int)number : otherwise;
}

static bool read_json(struct slice json, struct vigil_kube_status *ret_status)
{
    vigil_bytes bytes = vigil_bytes_of(json.ptr, json.len), kind;
    if (!vigil_json_find(bytes, "kind", &kind) || !vigil_json_is(kind, "Status"))
        return false;
    *ret_status = (struct vigil_kube_status){0};
    ret_status->code = in_range(read_number(bytes, "code", 0), 100, 999, 0);
    ret_status->retry_after_s =
        in_range(read_number(bytes, "details.retryAfterSeconds", -1), 1, INT32_MAX, -1);
    read_text(bytes, "reason", ret_status->reason, sizeof(ret_status->reason));
    read_text(bytes, "message", ret_status->message, sizeof(ret_status->message));
    read_causes(bytes, ret_status);
    return true;
}

/* -- Protobuf -- */

enum {
    STATUS_MESSAGE = 3,
    STATUS_REASON = 4,
    STATUS_DETAILS = 5,
    DETAILS_CAUSES = 4,
    CAUSE_REASON = 1,
    CAUSE_MESSAGE = 2,
    CAUSE_FIELD = 3,
};

/* "" if the message has no such text. */
static void copy_field(struct slice message, uint32_t field, char *to, size_t size)
{
    struct slice text = protobuf_bytes(message, field);
    copy_cut(to, size, (const char *)text.ptr, utf8_valid(text) ? text.len : 0);
}

static void copy_causes(struct slice details, struct vigil_kube_status *status)
{
    uint32_t field;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(details.ptr, details.len));
    while (status->cause_count < VIGIL_KUBE_CAUSES_MAX &&
           vigil_pb_next(&iterator, &field, &value)) {
        struct slice cause = slice_of(value.bytes.data, value.bytes.size);
        if (field != DETAILS_CAUSES || value.type != VIGIL_PB_BYTES)
            continue;
        vigil_kube_cause *to = &status->causes[status->cause_count++];
        copy_field(cause, CAUSE_REASON, to->reason, sizeof(to->reason));
        copy_field(cause, CAUSE_FIELD, to->field, sizeof(to->field));
        copy_field(cause, CAUSE_MESSAGE, to->message, sizeof(to->message));
    }
}

static int64_t number_at(struct slice message, const char *path, int64_t otherwise)
{
    vigil_pb_value value;
    bool found = vigil_pb_find(vigil_bytes_of(message.ptr, message.len), path, &value);
    return found ? (int64_t)value.number : otherwise;
}

static bool read_protobuf(struct slice sent, struct vigil_kube_status *ret_status)
{
    struct envelope envelope;
    if (!envelope_read(sent, &envelope) || !slice_equal(envelope.kind, SLICE_LITERAL("Status")))
        return false;
    struct slice message = envelope.message;
    *ret_status = (struct vigil_kube_status){0};
    ret_status->code = in_range(number_at(message, "6", 0), 100, 999, 0);
    ret_status->retry_after_s = in_range(number_at(message, "5.5", -1), 1, INT32_MAX, -1);
    copy_field(message, STATUS_REASON, ret_status->reason, sizeof(ret_status->reason));
    copy_field(message, STATUS_MESSAGE, ret_status->message, sizeof(ret_status->message));
    copy_causes(protobuf_bytes(message, STATUS_DETAILS), ret_status);
    return true;
}

/* -- Results -- */

bool kube_status_read(struct slice sent, struct vigil_kube_status *ret_status)
{
    return envelope_begins(sent) ? read_protobuf(sent, ret_status) : read_json(sent, ret_status);
}

static const char *reason_of(int code)
{
    static const struct {
        int code;
        const char *reason;
    } rows[] = {
        {400, "BadRequest"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "NotFound"},
        {405, "MethodNotAllowed"},
        {406, "NotAcceptable"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "RequestEntityTooLarge"},
        {415, "UnsupportedMediaType"},
        {422, "Invalid"},
        {429, "TooManyRequests"},
        {500, "InternalError"},
        {503, "ServiceUnavailable"},
        {504, "Timeout"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].code == code)
            return rows[i].reason;
    }
    return code >= 500 ? "InternalError" : "Unknown";
}

void kube_status_from_http(int code, struct slice body, struct vigil_kube_status *ret_status)
{
    *ret_status = (struct vigil_kube_status){.code = code, .retry_after_s = -1};
    snprintf(ret_status->reason, sizeof(ret_status->reason), "%s", reason_of(code));
    while (body.len && strchr(" \r\n", body.ptr[body.len - 1]))
        body.len--; /* http.Error of Go adds a line end */
    if (body.len && utf8_valid(body) && !memchr(body.ptr, 0, body.len))
        copy_cut(ret_status->message, sizeof(ret_status->message), (const char *)body.ptr,
                 body.len);
    else
        snprintf(ret_status->message, sizeof(ret_status->message),
                 "the server answered with status %d and without an explanation", code);
}

bool kube_status_is_expired(const struct vigil_kube_status *status)
{
    return status->code == 410 || strcmp(status->reason, "Expired") == 0 ||
           strcmp(status->reason, "Gone") == 0;
}

bool kube_status_is_too_large_version(const struct vigil_kube_status *status)
{
    for (size_t i = 0; i < status->cause_count; i++) {
        const struct vigil_kube_cause *cause = &status->causes[i];
        if (strcmp(cause->reason, "ResourceVersionTooLarge") == 0 ||
            strcmp(cause->message, "Too large resource version") == 0) /* 1.17.0 to 1.18.5 */
            return true;
    }
    /* Servers before 1.17 have no cause. */
    return strstr(status->message, "Too large resource version") != NULL;
}
