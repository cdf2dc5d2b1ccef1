#include "kube/handlers/write/heartbeat.h"

#include "codec/json/resent.h"
#include "codec/json/tree.h"
#include "codec/kube_time.h"
#include "codec/pb/wire.h"
#include "kube/call/conversion.h"
#include "kube/policy/admission/admission.h"
#include "kube/types/object/object.h"
#include "kube/types/schema/go_value.h"
#include "kube/types/schema/protobuf.h"

#include <stdio.h>

/* Objects that are larger have other contents, too; and what their trees take. */
enum { HEARTBEAT_BYTES_MAX = 4096, HEARTBEAT_TREE_BYTES_MAX = 256 * 1024 };

/* The fields that are only times: no rule of their kind depends on them. Their form is checked
 * here. */
static const struct {
    const char *group, *plural;
    struct json_resent_path time; /* with six digits of a fraction */
    uint32_t numbers[2];          /* the same path in protobuf */
} rows[] = {
    {"coordination.k8s.io", "leases", {"spec", "renewTime"}, {2, 4}},
};

static size_t row_of(const struct kube_kind *kind)
{
    size_t i = 0;
    while (i < COUNT_OF(rows) && !kube_kind_is(kind, rows[i].group, rows[i].plural))
        i++;
    return i;
}

static bool has_type(const struct kube_call *call, const char *type)
{
    struct slice found = SLICE_EMPTY;
    return http_request_get(call->request, SLICE_LITERAL("content-type"), &found) &&
           slice_is(found, type);
}

static bool is_protobuf(const struct kube_call *call)
{
    return has_type(call, "application/vnd.kubernetes.protobuf");
}

/* Whether an object has a member of this name, or says it somewhere else: then it is an ordinary
 * PUT without need. */
static bool mentions(struct slice json, const char *name)
{
    return memmem(json.ptr, json.len, name, strlen(name)) != NULL;
}

/* What is known before the object is read is examined here, because what is determined later costs
 * another reading. */
bool kube_heartbeat_may_be(const struct kube_change *change)
{
    const struct kube_call *call = change->call;
    unsigned needs = 0;
    if (call->path.subresource.len || change->dry_run ||
        call->request->body.len > HEARTBEAT_BYTES_MAX || row_of(call->kind) == COUNT_OF(rows))
        return false;
    return (is_protobuf(call) || has_type(call, "application/json")) &&
           !mentions(call->request->body, "managedFields") &&
           !kube_conversion_concerns(call->kind) &&
           kube_admission_is_unbound(call->api->admission) &&
           !kube_admission_concerns(call->api->admission, call->kind, call->path.subresource,
                                    KUBE_ADMISSION_UPDATE, &needs);
}

/* Whether nothing but the time decides about this write. Policies may have come meanwhile. */
static bool is_alone(struct kube_change *change)
{
    struct kube_object object;
    return kube_admission_is_unbound(change->call->api->admission) &&
           kube_object_parse_head(change->stored, &object) == ST_OK && object.leading &&
           !mentions(change->stored, "managedFields") &&
           !mentions(change->stored, "deletionTimestamp");
}

static bool is_current(const struct kube_change *change, struct slice version)
{
    char current[24];
    snprintf(current, sizeof(current), "%lld", (long long)change->revision);
    return slice_is(version, current);
}

/* Kubernetes writes such a time in the form that it has when it is read. */
static bool is_written_so(struct slice time)
{
    static const char form[] = "0000-00-00T00:00:00.000000Z";
    struct error error;
    return time.len == sizeof(form) - 1 && time.ptr[time.len - 1] == 'Z' &&
           go_time_check(time, true, &error) == ST_OK;
}

/* -- In protobuf -- */

/* The first message with that number. Fields before it are numbers, texts and messages. */
static bool find_message(struct slice message, uint32_t number, struct slice *ret_value)
{
    const uint8_t *p = message.ptr, *end = p + message.len;
    while (p && p < end) {
        uint64_t tag, value;
        size_t len;
        p = pb_varint_read(p, end, &tag);
        if (p && (tag & 7) == PB_WIRE_VARINT) {
            p = pb_varint_read(p, end, &value);
            continue;
        }
        if (!p || (tag & 7) != PB_WIRE_LEN || !(p = pb_len_read(p, end, &len)))
            return false;
        if (tag >> 3 == number) {
            *ret_value = slice_of(p, len);
            return true;
        }
        p += len;
    }
    return false;
}

/* A Timestamp: two numbers, both always there. */
static bool read_time(struct slice message, char text[KUBE_TIME_BYTES])
{
    const uint8_t *p = message.ptr, *end = p + message.len;
    uint64_t values[2];
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (p == end || *p++ != PB_TAG(i + 1, PB_WIRE_VARINT))
            return false;
        p = pb_varint_read(p, end, &values[i]);
        if (!p)
            return false;
    }
    return p == end && values[1] < (uint64_t)NS_PER_S &&
           kube_time_write((int64_t)values[0], (int32_t)values[1], true, text);
}

/* The stored object as its client would send it with this time: as Kubernetes encodes it, and in
 * the current version. */
static enum status encode_with(struct kube_change *change, struct arena *arena,
                               const struct json_resent_path *path, const char *time,
                               struct slice *ret_before, struct buf *to)
{
    char version[24];
    struct error error;
    struct json_node *root;
    snprintf(version, sizeof(version), "%lld", (long long)change->revision);
    TRY(json_tree_read(arena, change->stored, &root, &error));
    struct json_node *parent = json_node_named(root, path->member);
    struct json_node *metadata = json_node_named(root, "metadata");
    const struct json_node *before = json_node_named(parent, path->name);
    if (!json_node_has_text(before) || before->escaped || !metadata)
        return ST_NOT_FOUND;
    *ret_before = before->text;
    TRY(json_node_put(arena, parent, path->name, json_node_new_text(arena, slice_from_text(time))));
    TRY(json_node_put(arena, metadata, "resourceVersion",
                      json_node_new_text(arena, slice_from_text(version))));
    return kube_protobuf_encode(arena, root, to, &error);
}

/* Encoding the stored object with the new time and comparing the bytes takes less than decoding the
 * body, and shows that nothing else is different. */
static bool is_resent_in_protobuf(struct kube_change *change, struct slice *ret_before,
                                  char time[KUBE_TIME_BYTES])
{
    enum { MAGIC_BYTES = 4, RAW = 2 };
    const struct kube_call *call = change->call;
    struct slice body = call->request->body, raw, parent, message;
    size_t row = row_of(call->kind);
    _Alignas(max_align_t) uint8_t room[8 * 1024];
    struct arena arena;
    if (!kube_protobuf_is(body) ||
        !find_message(slice_sub(body, MAGIC_BYTES, body.len - MAGIC_BYTES), RAW, &raw) ||
        !find_message(raw, rows[row].numbers[0], &parent) ||
        !find_message(parent, rows[row].numbers[1], &message) || !read_time(message, time))
        return false;
    AUTO(buf_fini) struct buf encoded = {0};
    arena_init(&arena, room, sizeof(room), HEARTBEAT_TREE_BYTES_MAX);
    bool same = encode_with(change, &arena, &rows[row].time, time, ret_before, &encoded) == ST_OK &&
                slice_equal(buf_slice(&encoded), body);
    arena_fini(&arena);
    return same && !slice_is(*ret_before, time);
}

static enum status make_value(struct kube_change *change, struct slice before, struct slice after)
{
    struct buf *value = &change->encoded;
    size_t at = (size_t)(before.ptr - change->stored.ptr), end = at + before.len;
    buf_reset(value, SIZE_MAX);
    TRY(buf_reserve(value, change->stored.len + after.len));
    TRY(buf_append(value, slice_sub(change->stored, 0, at)));
    TRY(buf_append(value, after));
    TRY(buf_append(value, slice_sub(change->stored, end, change->stored.len - end)));
    change->value = buf_slice(value);
    change->decision = KUBE_DECIDE_PUT;
    return ST_OK;
}

static bool is_resent(struct kube_change *change, char time[KUBE_TIME_BYTES],
                      struct slice *ret_before, struct slice *ret_after)
{
    const struct kube_call *call = change->call;
    struct json_resent resent = {.changed = rows[row_of(call->kind)].time,
                                 .added = {"metadata", "resourceVersion"}};
    if (is_protobuf(call)) {
        bool same = is_resent_in_protobuf(change, ret_before, time);
        *ret_after = slice_from_text(time);
        return same;
    }
    if (!json_is_resent(&resent, change->stored, call->request->body) ||
        !is_written_so(resent.after) || !is_current(change, resent.version))
        return false;
    *ret_before = resent.before;
    *ret_after = resent.after;
    return true;
}

enum kube_stepped kube_heartbeat_take(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct slice before, after;
    char time[KUBE_TIME_BYTES];
    if (!change->stored.len || !is_alone(change) || !is_resent(change, time, &before, &after))
        return kube_change_as_put(change);
    kube_count_total(&call->api->counter, KUBE_TOTAL_ATTEMPTS, 1);
    kube_count_total(&call->api->counter, KUBE_TOTAL_HEARTBEATS, 1);
    return make_value(change, before, after) == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
}
