#include "kubeclient/data/received_event.h"

#include "codec/json/string.h"
#include "codec/utf8.h"
#include "kubeclient/data/json.h"
#include "kubeclient/data/protobuf.h"

/* The annotation of the bookmark after the last object of a streamed list. */
#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

enum { SHOWN_BYTES_MAX = 40 };

static const char *const type_names[] = {
    [RECEIVED_ADDED] = "ADDED",     [RECEIVED_MODIFIED] = "MODIFIED",
    [RECEIVED_DELETED] = "DELETED", [RECEIVED_BOOKMARK] = "BOOKMARK",
    [RECEIVED_ERROR] = "ERROR",
};

static enum status unknown_type(struct slice type, struct error *error)
{
    type.len = size_min(type.len, SHOWN_BYTES_MAX);
    return error_set(error, ST_MALFORMED, "the watch sent an event of an unknown type: %.*s",
                     SLICE_ARGS(type));
}

/* -- JSON -- */

static enum status read_type(struct slice raw, enum received_type *ret_type, struct error *error)
{
    vigil_bytes value = vigil_bytes_of(raw.ptr, raw.len);
    for (size_t i = 0; i < COUNT_OF(type_names); i++) {
        if (vigil_json_is(value, type_names[i])) {
            *ret_type = (enum received_type)i;
            return ST_OK;
        }
    }
    return unknown_type(raw, error);
}

/* The values of both members, as they are written. */
static bool read_members(struct json_scanner *s, struct slice *ret_type, struct slice *ret_object)
{
    enum json_token token = json_next(s);
    *ret_type = *ret_object = SLICE_EMPTY;
    if (token != JSON_OBJECT)
        return false;
    while ((token = json_next(s)) == JSON_KEY) {
        bool is_type = json_token_is(s, SLICE_LITERAL("type"));
        bool is_object = json_token_is(s, SLICE_LITERAL("object"));
        token = json_next(s);
        const uint8_t *from = s->raw.ptr;
        if (!json_skip(s, token))
            return false;
        struct slice value = slice_of(from, (size_t)(s->at - from));
        /* As in vigil/kube/json.h, the first of equal keys counts. */
        if (is_type && !ret_type->len)
            *ret_type = value;
        if (is_object && !ret_object->len)
            *ret_object = value;
    }
    return token == JSON_OBJECT_END;
}

static struct slice version_of(vigil_bytes object)
{
    vigil_bytes version = json_plain_text(object, "metadata.resourceVersion");
    return slice_of(version.data, version.size);
}

static bool ends_initial_events(vigil_bytes object)
{
    vigil_bytes value;
    return vigil_json_find(object, "metadata.annotations['" INITIAL_EVENTS_END "']", &value) &&
           vigil_json_is(value, "true");
}

static enum status make_event(struct slice type, struct slice object,
                              struct received_event *ret_event, struct error *error)
{
    struct received_event event = {.object = object};
    TRY(read_type(type, &event.type, error));
    if (object.len == 0 || object.ptr[0] != '{')
        return error_set(error, ST_MALFORMED, "the watch sent an event without an object");
    vigil_bytes bytes = vigil_bytes_of(object.ptr, object.len);
    event.version = event.type == RECEIVED_ERROR ? SLICE_EMPTY : version_of(bytes);
    event.ends_initial_events = event.type == RECEIVED_BOOKMARK && ends_initial_events(bytes);
    *ret_event = event;
    return ST_OK;
}

enum status received_event_read(struct slice frame, struct received_event *ret_event,
                                struct error *error)
{
    struct json_scanner s;
    struct slice type, object;
    json_scanner_init(&s, frame);
    if (!read_members(&s, &type, &object) || json_next(&s) != JSON_END) {
        char text[JSON_FAULT_TEXT_BYTES];
        return error_set(error, ST_MALFORMED, "the watch sent an event that is not JSON: %s",
                         json_fault_text(&s, text));
    }
    return make_event(type, object, ret_event, error);
}

/* The members of an event that is complete in its piece: most are, and are examined only here. */
static bool take_whole(struct framer *framer, struct slice *ret_type, struct slice *ret_object)
{
    struct json_scanner s;
    struct slice piece = framer_peek(framer);
    json_scanner_init(&s, piece);
    if (!read_members(&s, ret_type, ret_object))
        return false;
    size_t bytes = (size_t)(s.at - piece.ptr);
    if (bytes > framer->bytes_max)
        return false;
    framer_take(framer, bytes);
    return true;
}

/* -- Protobuf -- */

enum { EVENT_TYPE = 1, EVENT_OBJECT = 2, RAW_EXTENSION_RAW = 1 };

/* False: malformed, or without an object. */
static bool read_fields(struct slice frame, struct slice *ret_type, struct slice *ret_object)
{
    uint32_t field;
    vigil_pb_value value;
    *ret_type = *ret_object = SLICE_EMPTY;
    vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(frame.ptr, frame.len));
    while (vigil_pb_next(&iterator, &field, &value)) {
        struct slice bytes = slice_of(value.bytes.data, value.bytes.size);
        if (field == EVENT_TYPE && !ret_type->len)
            *ret_type = bytes;
        if (field == EVENT_OBJECT && !ret_object->len)
            *ret_object = protobuf_bytes(bytes, RAW_EXTENSION_RAW);
    }
    return !iterator.malformed && ret_object->len;
}

static enum status find_type(struct slice name, enum received_type *ret_type, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(type_names); i++) {
        if (slice_equal(name, slice_from_text(type_names[i]))) {
            *ret_type = (enum received_type)i;
            return ST_OK;
        }
    }
    return unknown_type(utf8_valid(name) ? name : SLICE_EMPTY, error);
}

enum status received_event_read_protobuf(struct slice frame, struct received_event *ret_event,
                                         struct error *error)
{
    struct slice type;
    struct envelope envelope;
    struct received_event event = {0};
    vigil_pb_value value = {0};
    if (!read_fields(frame, &type, &event.object) || !envelope_read(event.object, &envelope))
        return error_set(error, ST_MALFORMED, "the watch sent an event that is not protobuf");
    TRY(find_type(type, &event.type, error));
    vigil_bytes message = vigil_bytes_of(envelope.message.ptr, envelope.message.len);
    if (event.type != RECEIVED_ERROR && vigil_pb_find(message, "1.6", &value))
        event.version = slice_of(value.bytes.data, value.bytes.size);
    event.ends_initial_events = event.type == RECEIVED_BOOKMARK &&
                                vigil_pb_find(message, "1.12['" INITIAL_EVENTS_END "']", &value) &&
                                vigil_pb_is(value, "true");
    *ret_event = event;
    return ST_OK;
}

/* -- Both -- */

enum status received_event_next(struct framer *framer, struct received_event *ret_event,
                                struct error *error)
{
    struct slice frame, type, object;
    bool is_json = framer->format == FRAMER_JSON;
    if (is_json && take_whole(framer, &type, &object))
        return make_event(type, object, ret_event, error);
    enum status status = framer_next(framer, &frame);
    if (status == ST_MALFORMED)
        return error_set(error, status, "the server sent bytes that are not an event");
    TRY(status);
    return is_json ? received_event_read(frame, ret_event, error)
                   : received_event_read_protobuf(frame, ret_event, error);
}
