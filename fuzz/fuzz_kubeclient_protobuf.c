/* Input: a path and a message, separated by a zero byte. What the lazy view finds in the message is
 * a part of it, and all functions agree about it. The message is also read as an object, as a
 * Status, and as an event of a watch. */
#include "cost.h"

#include "kubeclient/data/object.h"
#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/received_event.h"
#include "kubeclient/data/status.h"

#include <assert.h>
#include <stdio.h>

/* The bytes of a long field are skipped without a look at each, so that short ones after it would
 * look like work that grows faster than the input. */
enum { MESSAGE_BYTES_MAX = 4096 };

static bool is_within(vigil_bytes part, vigil_bytes whole)
{
    const uint8_t *from = part.data, *of = whole.data;
    return part.size == 0 || (from >= of && from + part.size <= of + whole.size);
}

static void check_value(vigil_pb_value value, vigil_bytes message)
{
    assert(value.type > VIGIL_PB_NONE && value.type <= VIGIL_PB_BYTES);
    assert(is_within(value.bytes, message));
    assert(value.type == VIGIL_PB_BYTES ? value.number == 0 : value.bytes.size == 0);
}

static void check_fields(vigil_bytes message)
{
    uint32_t field;
    vigil_pb_value value, found;
    vigil_pb_iterator iterator = vigil_pb_iterate(message);
    for (size_t count = 0; vigil_pb_next(&iterator, &field, &value); count++) {
        check_value(value, message);
        char path[32];
        snprintf(path, sizeof(path), "%u", field);
        if (count == 0)
            assert(vigil_pb_find(message, path, &found) && found.bytes.data == value.bytes.data);
    }
    assert(!vigil_pb_next(&iterator, &field, &value));
}

static void check_object(struct slice sent)
{
    struct vigil_kube_object *object;
    struct vigil_kube_status status;
    if (object_new(sent, &object) == ST_OK) {
        assert(envelope_begins(sent) == (vigil_kube_object_protobuf(object).size > 0));
        assert(vigil_kube_object_name(object).size > 0);
        assert(slice_equal(object_sent(object), sent));
        vigil_kube_object_unref(object);
    }
    if (kube_status_read(sent, &status))
        assert(status.cause_count <= VIGIL_KUBE_CAUSES_MAX && status.retry_after_s != 0);
}

static void check_event(struct slice frame)
{
    struct error error = {0};
    struct received_event event;
    if (received_event_read_protobuf(frame, &event, &error) != ST_OK) {
        assert(error.text[0]);
        return;
    }
    vigil_bytes object = vigil_bytes_of(event.object.ptr, event.object.len);
    assert(is_within(object, vigil_bytes_of(frame.ptr, frame.len)));
    assert(is_within(vigil_bytes_of(event.version.ptr, event.version.len), object));
    check_object(event.object);
}

FUZZ_INPUT()
{
    AUTO(buf_fini) struct buf path = {0};
    vigil_pb_value found;
    struct slice bytes = slice_of(data, size);
    if (buf_append(&path, slice_cut(&bytes, '\0')) != ST_OK || buf_append(&path, slice_of("", 1)))
        return 0;
    bytes.len = size_min(bytes.len, MESSAGE_BYTES_MAX);
    vigil_bytes message = vigil_bytes_of(bytes.ptr, bytes.len);
    check_fields(message);
    check_object(bytes);
    check_event(bytes);
    if (vigil_pb_find(message, (const char *)path.ptr, &found)) {
        check_value(found, message);
        if (found.type == VIGIL_PB_BYTES)
            check_fields(found.bytes);
    }
    return 0;
}
