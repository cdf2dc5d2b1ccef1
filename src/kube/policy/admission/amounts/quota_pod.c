#include "kube/policy/admission/amounts/quota_pod.h"

#include "base/buf.h"
#include "codec/json/scanner.h"
#include "codec/json/string.h"
#include "kube/types/object/object.h"
#include "kube/types/validate/check.h"

/* The bytes of a member; empty: there is none. */
static struct slice member_of(struct slice json, struct slice name)
{
    struct json_scanner s;
    json_scanner_init(&s, json);
    if (json_next(&s) != JSON_OBJECT)
        return SLICE_EMPTY;
    while (json_next(&s) == JSON_KEY) {
        bool wanted = json_token_is(&s, name);
        const uint8_t *from = s.at;
        if (!json_skip(&s, JSON_KEY))
            break;
        if (wanted)
            return slice_of(from, (size_t)(s.at - from));
    }
    return SLICE_EMPTY;
}

static bool same_field(const struct kube_object *a, const struct kube_object *b, struct slice path)
{
    struct slice left = SLICE_EMPTY, right = SLICE_EMPTY;
    bool has_left = kube_object_field(a, path, &left),
         has_right = kube_object_field(b, path, &right);
    return has_left == has_right && slice_equal(left, right);
}

/* Appends the members of these names of all objects in an array. */
static enum status append_members(struct slice array, const char *names, struct buf *to)
{
    struct json_scanner s;
    json_scanner_init(&s, array);
    if (!array.len || json_next(&s) != JSON_ARRAY)
        return ST_OK;
    while (json_next(&s) == JSON_OBJECT) {
        while (json_next(&s) == JSON_KEY) {
            struct slice key = slice_sub(s.raw, 1, s.raw.len - 2);
            const uint8_t *from = s.at;
            if (!json_skip(&s, JSON_KEY))
                return ST_MALFORMED;
            if (rule_one_of(key, names))
                TRY(buf_append(to, slice_of(from, (size_t)(s.at - from))));
        }
    }
    return ST_OK;
}

/* What the kubelet has reported of resources. */
static enum status append_reported(struct slice pod, struct buf *to)
{
    struct slice status = member_of(pod, SLICE_LITERAL("status"));
    TRY(append_members(member_of(status, SLICE_LITERAL("containerStatuses")),
                       "name,resources,allocatedResources", to));
    TRY(append_members(member_of(status, SLICE_LITERAL("initContainerStatuses")),
                       "name,resources,allocatedResources", to));
    return append_members(member_of(status, SLICE_LITERAL("conditions")), "type,reason", to);
}

static bool same_reports(struct slice now, struct slice before)
{
    AUTO(buf_fini) struct buf a = {0}, b = {0};
    return append_reported(now, &a) == ST_OK && append_reported(before, &b) == ST_OK &&
           slice_equal(buf_slice(&a), buf_slice(&b));
}

bool kube_quota_pod_is_same(struct slice now, struct slice before)
{
    struct kube_object a, b;
    return same_reports(now, before) && kube_object_parse(now, &a) == ST_OK &&
           kube_object_parse(before, &b) == ST_OK &&
           same_field(&a, &b, SLICE_LITERAL("status.phase")) &&
           same_field(&a, &b, SLICE_LITERAL("status.qosClass")) &&
           same_field(&a, &b, SLICE_LITERAL("metadata.deletionTimestamp")) &&
           slice_equal(member_of(now, SLICE_LITERAL("spec")),
                       member_of(before, SLICE_LITERAL("spec")));
}
