#include "kube/handlers/write/heartbeat.h"

#include "codec/json/resent.h"
#include "codec/json/tree.h"
#include "kube/call/conversion.h"
#include "kube/handlers/write/admit.h"
#include "kube/policy/admission/admission.h"
#include "kube/types/object/object.h"
#include "kube/types/schema/go_value.h"
#include "kube/types/schema/protobuf.h"

#include <stdio.h>

/* Objects that are larger have other contents, too. */
enum { HEARTBEAT_BYTES_MAX = 4096 };

/* The fields that are only times: no rule of their kind depends on them. Their form is checked
 * here. */
static const struct {
    const char *group, *plural;
    struct json_resent_path time; /* with six digits of a fraction */
} rows[] = {
    {"coordination.k8s.io", "leases", {"spec", "renewTime"}},
};

static const struct json_resent_path *time_of(const struct kube_kind *kind)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (kube_kind_is(kind, rows[i].group, rows[i].plural))
            return &rows[i].time;
    return NULL;
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
bool kube_heartbeat_may_be(struct kube_change *change)
{
    const struct kube_call *call = change->call;
    unsigned needs = 0;
    if (call->path.subresource.len || change->dry_run ||
        call->request->body.len > HEARTBEAT_BYTES_MAX || !time_of(call->kind))
        return false;
    if (!(is_protobuf(call) || has_type(call, "application/json")) ||
        mentions(call->request->body, "managedFields") || kube_conversion_concerns(call->kind) ||
        !kube_admission_is_unbound(call->api->admission))
        return false;
    change->plugins = kube_admission_concerns(
        call->api->admission, call->kind, call->path.subresource, KUBE_ADMISSION_UPDATE, &needs);
    return kube_admission_are_of_nodes(change->plugins);
}

/* The user may write it. Otherwise it is refused as an ordinary update. */
static bool is_admitted(struct kube_change *change)
{
    struct kube_admission_write write = kube_admit_write(change, KUBE_ADMISSION_UPDATE, NULL, NULL);
    return !change->plugins || (kube_admission_run(&write, KUBE_ADMISSION_MUTATE) &&
                                kube_admission_run(&write, KUBE_ADMISSION_VALIDATE));
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

static enum status make_value(struct kube_change *change, const struct json_resent *resent)
{
    struct buf *value = &change->encoded;
    size_t at = (size_t)(resent->before.ptr - change->stored.ptr), end = at + resent->before.len;
    buf_reset(value, SIZE_MAX);
    TRY(buf_reserve(value, change->stored.len + resent->after.len));
    TRY(buf_append(value, slice_sub(change->stored, 0, at)));
    TRY(buf_append(value, resent->after));
    TRY(buf_append(value, slice_sub(change->stored, end, change->stored.len - end)));
    change->value = buf_slice(value);
    change->decision = KUBE_DECIDE_PUT;
    return ST_OK;
}

/* The body as it is stored: JSON that is written as the server writes it. */
static enum status read_body(struct kube_change *change, struct buf *text, struct slice *ret_json)
{
    struct kube_call *call = change->call;
    struct json_node *root;
    struct error error;
    *ret_json = call->request->body;
    if (!is_protobuf(call))
        return ST_OK;
    TRY(kube_protobuf_decode(&call->arena, call->request->body, &root, &error));
    TRY(json_tree_write(root, text));
    *ret_json = buf_slice(text);
    return ST_OK;
}

enum kube_stepped kube_heartbeat_take(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct json_resent resent = {.changed = *time_of(call->kind),
                                 .added = {"metadata", "resourceVersion"}};
    AUTO(buf_fini) struct buf text = {0};
    struct slice json;
    if (!change->stored.len || !is_alone(change) || read_body(change, &text, &json) != ST_OK ||
        !json_is_resent(&resent, change->stored, json) || !is_written_so(resent.after) ||
        !is_current(change, resent.version) || !is_admitted(change))
        return kube_change_as_put(change);
    kube_count_total(&call->api->counter, KUBE_TOTAL_ATTEMPTS, 1);
    kube_count_total(&call->api->counter, KUBE_TOTAL_HEARTBEATS, 1);
    return make_value(change, &resent) == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
}
