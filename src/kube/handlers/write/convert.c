#include "kube/handlers/write/convert.h"

#include "kube/call/call_conversion.h"
#include "kube/call/conversion.h"
#include "kube/call/respond.h"
#include "kube/types/object/kind_rules.h"

static const struct kube_definition *definition_of(const struct kube_change *change)
{
    return kube_custom_of(change->call->kind)->definition;
}

/* -- The stored object -- */

static void on_stored(struct kube_call *call, struct slice converted)
{
    struct kube_change *change = call->handler.change;
    change->served = converted;
    kube_change_next(change);
}

enum kube_stepped kube_convert_stored(struct kube_change *change)
{
    struct kube_call *call = change->call;
    /* It is known already if the attempt has begun again for another reason. */
    if (!change->revision || change->served.len ||
        !kube_conversion_awaits(call->kind, change->stored))
        return KUBE_STEP_NEXT;
    kube_call_convert(call, kube_custom_of(call->kind), change->stored, change->revision,
                      &change->scratch, on_stored);
    return KUBE_STEP_LEFT;
}

/* -- The new one -- */

/* The version of an object that is of the kind; empty: it is another one, such as a Scale. */
static struct slice version_of(const struct kube_change *change, struct slice json)
{
    struct kube_object object;
    bool found = kube_object_parse_head(json, &object) == ST_OK &&
                 slice_is(object.kind, change->call->kind->kind);
    return found ? object.api_version : SLICE_EMPTY;
}

bool kube_convert_is_outdated(const struct kube_change *change)
{
    const struct kube_custom *custom = kube_custom_of(change->call->kind);
    struct slice version = custom ? version_of(change, change->stored) : SLICE_EMPTY;
    return version.len && !slice_is(version, custom->definition->api_version);
}

static void on_new(struct kube_call *call, struct slice converted)
{
    struct kube_change *change = call->handler.change;
    change->value = converted;
    if (converted.len <= KUBE_OBJECT_BYTES_MAX)
        kube_change_next(change);
    else
        kube_call_fail_engine(call, ST_REQUEST_TOO_LARGE);
}

enum kube_stepped kube_convert_to_store(struct kube_change *change)
{
    const struct kube_definition *definition = definition_of(change);
    struct slice version;
    /* What is not changed stays as it is stored. */
    if (change->decision == KUBE_DECIDE_KEEP || change->value.ptr == change->stored.ptr)
        return KUBE_STEP_NEXT;
    version = version_of(change, change->value);
    if (!version.len || slice_is(version, definition->api_version))
        return KUBE_STEP_NEXT;
    kube_call_convert(change->call, definition->storage, change->value, 0, change->arena, on_new);
    return KUBE_STEP_LEFT;
}

/* -- The answer -- */

static void on_answer(struct kube_call *call, struct slice converted)
{
    struct kube_change *change = call->handler.change;
    change->value = converted;
    call->converted = true;
    kube_change_next(change);
}

enum kube_stepped kube_convert_answer(struct kube_change *change)
{
    struct kube_call *call = change->call;
    bool deleted = change->decide && change->decision == KUBE_DECIDE_DELETE;
    /* A deletion is answered with a Status, and one of many objects with what they were. */
    if (call->verb == KUBE_VERB_DELETE_COLLECTION ||
        (deleted && !(call->rules & KUBE_RETURNS_DELETED)))
        return KUBE_STEP_NEXT;
    if (change->value.ptr == change->stored.ptr && change->served.len) {
        change->value = change->served;
        call->converted = true;
        return KUBE_STEP_NEXT;
    }
    if (!kube_conversion_awaits(call->kind, change->value))
        return KUBE_STEP_NEXT;
    kube_call_convert(call, kube_custom_of(call->kind), change->value, 0, &call->arena, on_answer);
    return KUBE_STEP_LEFT;
}
