#include "kube/handlers/write/update.h"

#include "kube/call/call_offload.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/apply.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/builtin_schema.h"
#include "kube/handlers/write/certificate_request.h"
#include "kube/handlers/write/convert.h"
#include "kube/handlers/write/managed_versions.h"
#include "kube/handlers/write/part.h"
#include "kube/handlers/write/scale.h"
#include "kube/merge/patch/patch.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/object/strategy.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>

/* Replaces a member of `to` by that of `from`, or removes it. */
static bool replace(struct kube_change *change, struct json_node *to, const struct json_node *from,
                    const char *key)
{
    const struct json_node *wanted = json_node_named(from, key);
    struct json_node *had = json_node_named(to, key);
    if (!wanted) {
        if (had)
            json_node_remove(to, had);
        return true;
    }
    struct json_node *value = json_node_copy(&change->scratch, wanted);
    if (value && json_node_set(&change->scratch, to, slice_from_text(key), value) == ST_OK)
        return true;
    return kube_fail_engine(&change->call->status, ST_NOMEM);
}

/* -- Patches -- */

static bool apply_json(struct kube_change *change, struct json_node *base,
                       const struct json_node *patch, struct json_node **ret_object)
{
    struct kube_status *status = &change->call->status;
    struct error error = {0};
    if (patch->type != JSON_TYPE_ARRAY)
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "error decoding patch: json: cannot unmarshal %s into Go value of type "
                         "[]handlers.jsonPatchOp",
                         kube_json_type(patch));
    switch (patch_json(&change->scratch, base, patch, ret_object, &error)) {
    case ST_OK:
        return true;
    case ST_MALFORMED:
        return kube_fail(status, KUBE_BAD_REQUEST, "error decoding patch: %s", error.text);
    case ST_INVALID:
        return kube_fail_bare(status, KUBE_INVALID,
                              "the server rejected our request due to an error in our request");
    case ST_LIMIT:
        return kube_fail(status, KUBE_TOO_LARGE, "Request entity too large: %s", error.text);
    default:
        return kube_fail(
            status, KUBE_TOO_LARGE,
            "Request entity too large: the patch takes more memory than a request may");
    }
}

static bool make_patched(struct kube_change *change, struct json_node *base,
                         struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    switch (change->patch_type) {
    case KUBE_PATCH_JSON:
        return apply_json(change, base, change->body, ret_object);
    case KUBE_PATCH_STRATEGIC:
        return kube_schema_patch(&change->scratch, call->kind, base, change->body, ret_object,
                                 &call->status);
    default:
        if (change->body->type != JSON_TYPE_OBJECT)
            return kube_fail(&call->status, KUBE_BAD_REQUEST,
                             "error decoding patch: json: cannot unmarshal %s into Go value of "
                             "type map[string]interface {}",
                             kube_json_type(change->body));
        return patch_merge(&change->scratch, base, change->body, ret_object) == ST_OK ||
               kube_fail_engine(&change->call->status, ST_NOMEM);
    }
}

static bool applies(const struct kube_change *change)
{
    return change->patches && change->patch_type == KUBE_PATCH_APPLY;
}

/* A custom resource without replicas has a Scale with a number that stands for none. */
static bool mark_absent(struct kube_change *change, const struct json_node *stored,
                        struct json_node *scale)
{
    const struct kube_custom *custom = kube_custom_of(change->call->kind);
    struct json_node *spec = json_node_named(scale, "spec");
    return !custom || json_node_path(stored, custom->replicas_path) ||
           kube_meta_set_int(&change->meta, spec, "replicas", INT32_MIN);
}

/* What a patch applies to: the object with its resourceVersion, or its scale. */
static bool make_base(struct kube_change *change, const struct json_node *stored,
                      struct json_node **ret_base)
{
    char version[24];
    if (change->call->subresource == KUBE_SUBRESOURCE_SCALE)
        return kube_scale_make(&change->scratch, change->call->kind, stored, change->revision,
                               ret_base, &change->call->status) &&
               (applies(change) ? replace(change, json_node_named(*ret_base, "metadata"),
                                          json_node_named(stored, "metadata"), "managedFields")
                                : mark_absent(change, stored, *ret_base));
    struct json_node *base = json_node_copy(&change->scratch, stored);
    struct json_node *metadata = json_node_named(base, "metadata");
    snprintf(version, sizeof(version), "%lld", (long long)change->revision);
    if (!metadata)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    *ret_base = base;
    return kube_meta_set_text(&change->meta, metadata, "resourceVersion", slice_from_text(version));
}

/* A strategic patch cannot change the kind: Kubernetes ignores it there. */
static bool keep_kind(struct kube_change *change, const struct json_node *stored,
                      struct json_node *wanted)
{
    if (change->patch_type != KUBE_PATCH_STRATEGIC ||
        change->call->subresource == KUBE_SUBRESOURCE_SCALE)
        return true;
    return replace(change, wanted, stored, "kind") && replace(change, wanted, stored, "apiVersion");
}

/* The object that the client wants. */
static bool make_wanted(struct kube_change *change, const struct json_node *stored,
                        struct json_node **ret_wanted)
{
    struct json_node *base;
    if (applies(change)) {
        if (!make_base(change, stored, &base) ||
            !kube_apply(&change->meta, change->call, base, change->body, ret_wanted) ||
            !kube_body_report_config(change->call, change->repeats))
            return false;
    } else if (change->patches) {
        if (!make_base(change, stored, &base) || !make_patched(change, base, ret_wanted) ||
            !keep_kind(change, stored, *ret_wanted) ||
            !kube_body_prune_patched(change->call, *ret_wanted, change->repeats))
            return false;
    } else {
        /* kube_update_decode has checked it. */
        *ret_wanted = json_node_copy(&change->scratch, change->body);
        return *ret_wanted || kube_fail_engine(&change->call->status, ST_NOMEM);
    }
    return change->call->subresource == KUBE_SUBRESOURCE_SCALE ||
           kube_meta_check(&change->meta, *ret_wanted);
}

/* -- Subresources -- */

/* The stored object with the metadata members that this subresource may change. */
static bool with_identity(struct kube_change *change, const struct json_node *stored,
                          struct json_node *wanted, struct json_node **ret_object)
{
    static const struct {
        const char *name;
        unsigned unless; /* a flag of the kind; 0: always */
    } members[] = {{"name", 0},
                   {"namespace", 0},
                   {"uid", 0},
                   {"resourceVersion", 0},
                   {"labels", KUBE_STATUS_ONLY | KUBE_STATUS_NO_LABELS},
                   {"annotations", KUBE_STATUS_ONLY},
                   {"finalizers", KUBE_STATUS_ONLY},
                   {"ownerReferences", KUBE_STATUS_ONLY | KUBE_STATUS_NO_OWNERS}};
    unsigned flags = KUBE_STATUS_ONLY; /* flags of a Scale, and of most parts */
    if (change->call->subresource == KUBE_SUBRESOURCE_STATUS)
        flags = change->call->rules;
    else if (kube_part_takes_metadata(change->call))
        flags = 0;
    struct json_node *object = json_node_copy(&change->scratch, stored);
    struct json_node *metadata = json_node_named(object, "metadata");
    if (!metadata)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (!(members[i].unless & flags) &&
            !replace(change, metadata, json_node_named(wanted, "metadata"), members[i].name))
            return false;
    }
    *ret_object = object;
    return true;
}

static bool take_spec(struct kube_change *change, struct json_node *object,
                      const struct json_node *from, const char *key)
{
    struct json_node *spec;
    return kube_meta_object(&change->meta, object, "spec", &spec) &&
           replace(change, spec, json_node_named(from, "spec"), key);
}

/* At "spec.replicas", or at the path that the definition gives. */
static bool set_replicas(struct kube_change *change, struct json_node *object, int64_t replicas)
{
    const struct kube_custom *custom = kube_custom_of(change->call->kind);
    const char *path = custom && custom->replicas_path ? custom->replicas_path : "spec.replicas";
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char step[256];
        snprintf(step, sizeof(step), "%.*s", (int)(dot - path), path);
        if (!kube_meta_object(&change->meta, object, step, &object))
            return false;
    }
    return kube_meta_set_int(&change->meta, object, path, replicas);
}

static bool scaled(struct kube_change *change, const struct json_node *stored,
                   struct json_node *wanted, struct json_node **ret_object)
{
    int64_t replicas = 0;
    struct json_node *node = json_node_path(wanted, "spec.replicas");
    const struct kube_custom *custom = kube_custom_of(change->call->kind);
    bool absent = custom && change->meta.patched && !json_node_path(stored, custom->replicas_path);
    if (absent && (!node || (json_node_int(node, &replicas) && replicas == INT32_MIN)))
        return kube_fail(&change->call->status, KUBE_BAD_REQUEST,
                         "the spec replicas field \".%s\" cannot be empty", custom->replicas_path);
    if (wanted->type != JSON_TYPE_OBJECT || (node && !json_node_int(node, &replicas)))
        return kube_fail(&change->call->status, KUBE_BAD_REQUEST,
                         "Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is "
                         "not a whole number");
    /* Those of a custom resource are validated with the object. */
    if ((replicas < 0 && !custom) || replicas > INT32_MAX) {
        char message[80];
        snprintf(message, sizeof(message),
                 "Invalid value: %lld: must be greater than or equal to 0", (long long)replicas);
        kube_status_cause(&change->call->status, "FieldValueInvalid", "spec.replicas", message);
        return kube_fail_invalid(&change->call->status, SLICE_LITERAL("autoscaling"),
                                 SLICE_LITERAL("Scale"), change->name);
    }
    if (!with_identity(change, stored, wanted, ret_object))
        return false;
    return set_replicas(change, *ret_object, replicas);
}

/* The object that is stored, before the rules of metadata. */
static bool make_object(struct kube_change *change, const struct json_node *stored,
                        struct json_node *wanted, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    bool certificate = call->rules & KUBE_IS_CERTIFICATE_REQUEST;
    *ret_object = wanted;
    /* The object itself, without the parts that only a subresource changes. */
    if (!call->path.subresource.len)
        return (!(call->kind->flags & KUBE_HAS_STATUS) ||
                replace(change, wanted, stored, "status")) &&
               (!certificate || kube_certificate_update(change, stored, wanted)) &&
               (!(call->rules & KUBE_IS_NAMESPACE) ||
                take_spec(change, wanted, stored, "finalizers"));
    if (call->subresource == KUBE_SUBRESOURCE_SCALE)
        return scaled(change, stored, wanted, ret_object);
    if (!with_identity(change, stored, wanted, ret_object))
        return false;
    if (call->subresource == KUBE_SUBRESOURCE_STATUS)
        return replace(change, *ret_object, wanted, "status") &&
               (!certificate || kube_certificate_status(change, stored, *ret_object)) &&
               kube_body_zero_status(call, &change->scratch, *ret_object);
    return kube_part_take(change, stored, wanted, *ret_object);
}

/* -- Rules -- */

/* Empty and "0" name no version. */
static bool is_zero(struct slice version)
{
    size_t i = 0;
    while (i < version.len && version.ptr[i] == '0')
        i++;
    return i == version.len;
}

/* A patch has the version of the stored object unless it sets another. */
static bool check_version_given(struct kube_change *change, struct json_node *wanted)
{
    struct kube_call *call = change->call;
    struct json_node *version = json_node_path(wanted, "metadata.resourceVersion");
    bool given = version && version->type == JSON_TYPE_STRING && !is_zero(version->text);
    if (given || applies(change) || call->subresource == KUBE_SUBRESOURCE_SCALE ||
        !(call->rules & KUBE_NEEDS_VERSION))
        return true;
    if (!kube_meta_named(&change->meta, wanted))
        return false;
    kube_status_cause(&call->status, "FieldValueInvalid", "metadata.resourceVersion",
                      "Invalid value: 0: must be specified for an update");
    return kube_fail_invalid(&call->status, slice_from_text(call->kind->group),
                             slice_from_text(call->kind->plural), change->name);
}

/* An object that is being deleted is removed with its last finalizer. */
static bool is_over(struct kube_change *change, struct json_node *object)
{
    int64_t grace_s = 0;
    struct json_node *grace = json_node_path(object, "metadata.deletionGracePeriodSeconds");
    struct json_node *held = json_node_path(object, "spec.finalizers");
    if (!kube_meta_is_deleting(object) || kube_meta_has_finalizers(object) ||
        (grace && json_node_int(grace, &grace_s) && grace_s > 0))
        return false;
    return !(change->call->rules & KUBE_IS_NAMESPACE) || !held || held->type != JSON_TYPE_ARRAY ||
           !held->first;
}

/* -- Objects that do not exist -- */

/* The version that a write requires is ignored, because there is no other. */
static bool drop_version(struct kube_change *change, struct json_node *object)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    struct json_node *node = json_node_named(metadata, "resourceVersion");
    struct slice text;
    int64_t ignored;
    if (!node)
        return true;
    if (json_node_text(node, &change->scratch, &text) != ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    const char *why = kube_revision_parse(text, &ignored);
    if (why)
        return kube_fail(&change->call->status, KUBE_UNKNOWN,
                         "strconv.ParseUint: parsing \"%.*s\": %s", (int)size_min(text.len, 64),
                         (const char *)text.ptr, why);
    /* A dry run repeats it, as in Kubernetes. */
    if (!change->dry_run)
        json_node_remove(metadata, node);
    return true;
}

/* A new object consists of the configuration. */
static bool apply_new(struct kube_change *change, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct slice uid;
    char why[256];
    if (!kube_apply(&change->meta, call, NULL, change->body, ret_object) ||
        !kube_body_report_config(call, change->repeats))
        return false;
    if (json_node_text(json_node_path(*ret_object, "metadata.uid"), &change->scratch, &uid) !=
        ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    if (uid.len) {
        snprintf(why, sizeof(why),
                 "uid mismatch: the provided object specified uid %.*s, and no existing object was "
                 "found",
                 (int)size_min(uid.len, 128), (const char *)uid.ptr);
        return kube_fail_conflict(&call->status, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->plural), call->path.name, why);
    }
    return kube_meta_check(&change->meta, *ret_object) &&
           kube_meta_named(&change->meta, *ret_object) && drop_version(change, *ret_object);
}

/* A PUT creates the object if its kind allows it and the request names no version or uid. */
static bool put_new(struct kube_change *change, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct json_node *object = json_node_copy(&change->scratch, change->body);
    if (!object)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    if (!kube_meta_named(&change->meta, object))
        return false;
    if (call->path.subresource.len || !(call->rules & KUBE_CREATES_ON_PUT))
        return kube_call_not_found(call);
    *ret_object = object;
    return kube_meta_absent(&change->meta, object, change->key) && drop_version(change, object);
}

/* The object of an apply, or of a PUT. */
static bool make_new(struct kube_change *change)
{
    struct kube_call *call = change->call;
    if (call->subresource == KUBE_SUBRESOURCE_SCALE)
        return kube_call_not_found(call);
    if (applies(change) && !apply_new(change, &change->object))
        return false;
    if (applies(change) && !call->path.subresource.len)
        return true;
    /* Other patches need an object; so does an apply to a part, whose configuration is checked
     * before that is answered, as in Kubernetes. */
    if (change->patches)
        return kube_call_not_found(call);
    return put_new(change, &change->object);
}

/* -- Steps -- */

enum kube_stepped kube_update_decode(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_meta meta = kube_call_meta(call, &call->arena);
    struct json_node *body;
    bool fine =
        change->patches
            ? kube_body_read_patch(call, call->request, &change->patch_type, &body,
                                   &change->repeats)
            : kube_body_read_object(call, call->request, call->kind->kind, &body) &&
                  (call->subresource == KUBE_SUBRESOURCE_SCALE || kube_meta_check(&meta, body));
    if (!fine)
        return KUBE_STEP_FAIL;
    change->body = body;
    return KUBE_STEP_NEXT;
}

enum kube_stepped kube_update_make(struct kube_change *change)
{
    change->meta.patched = change->patches;
    change->meta.of_status = change->call->subresource == KUBE_SUBRESOURCE_STATUS;
    change->meta.goes_on = change->goes_on;
    /* Nothing is stored under this name: an apply creates it, and a PUT of some kinds. */
    if (!change->old)
        return make_new(change) ? kube_change_as_create(change) : KUBE_STEP_FAIL;
    if (!make_wanted(change, change->old, &change->wanted))
        return kube_managed_versions_wanted(change) ? kube_change_convert(change) : KUBE_STEP_FAIL;
    /* A Scale has no metadata of its own. */
    bool completes = !change->patches && change->call->subresource != KUBE_SUBRESOURCE_SCALE;
    return check_version_given(change, change->wanted) &&
           (!completes || kube_meta_begin(&change->meta, change->wanted)) &&
           make_object(change, change->old, change->wanted, &change->object);
}

/* A subresource changes only its part, and the rest of the object is as it was stored. */
enum kube_stepped kube_update_default(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct arena *arena = &change->scratch;
    if (call->subresource == KUBE_SUBRESOURCE_STATUS)
        return kube_default_member(arena, call->kind, change->object, SLICE_LITERAL("status"),
                                   &call->status);
    if (call->path.subresource.len)
        return KUBE_STEP_NEXT;
    if (!kube_strategy_decode(&change->meta, change->object))
        return KUBE_STEP_FAIL;
    return change->patches
               ? kube_default_changed(arena, call->kind, change->old, change->object, &call->status)
               : kube_default(arena, call->kind, change->object, &call->status);
}

/* An apply has set the owners; other writes update them if the object has any. */
enum kube_stepped kube_update_own(struct kube_change *change)
{
    struct json_node *wanted = change->wanted, *object = change->object;
    if (!applies(change)) {
        bool tracked = kube_apply_track(&change->meta, change->call, change->old, wanted, object);
        return kube_managed_versions_wanted(change) ? kube_change_convert(change) : tracked;
    }
    return object == wanted || replace(change, json_node_named(object, "metadata"),
                                       json_node_named(wanted, "metadata"), "managedFields");
}

bool kube_update_take(struct kube_change *change, const struct json_node *before)
{
    struct json_node *mutated = change->object;
    /* A Scale changes the replicas that it was made from, and has no managers. */
    bool scales = change->call->subresource == KUBE_SUBRESOURCE_SCALE;
    const struct json_node *owned = scales ? before : mutated;
    return make_object(change, scales ? before : change->old, mutated, &change->object) &&
           (change->object == mutated ||
            replace(change, json_node_named(change->object, "metadata"),
                    json_node_named(owned, "metadata"), "managedFields"));
}

enum kube_stepped kube_update_prepare(struct kube_change *change)
{
    return kube_strategy_update(&change->meta, change->old, change->object) &&
           kube_meta_update(&change->meta, change->old, change->object, change->revision,
                            change->key);
}

enum kube_stepped kube_update_conclude(struct kube_change *change)
{
    if (!kube_meta_order(&change->meta, change->object) ||
        !kube_apply_keep_times(&change->meta, change->old, change->object))
        return KUBE_STEP_FAIL;
    /* The client has removed the last finalizer of an object that was to be deleted. An object
     * that is as it was is not written, so that watches see no change, unless it is stored in a
     * version that is not the stored one any more: so all objects can be brought to a new one. */
    if (is_over(change, change->object))
        change->decision = KUBE_DECIDE_DELETE;
    else if (json_node_equal(change->old, change->object) && !kube_convert_is_outdated(change))
        change->decision = KUBE_DECIDE_KEEP;
    else
        change->decision = KUBE_DECIDE_PUT;
    return KUBE_STEP_NEXT;
}

/* -- Answering -- */

static void respond_scale(struct kube_call *call)
{
    struct kube_change *change = call->handler.change;
    struct json_node *object, *scale;
    struct error error;
    AUTO(buf_fini) struct buf text = {0};
    bool made = json_tree_read(&call->arena, change->value, &object, &error) == ST_OK &&
                kube_scale_make(&call->arena, call->kind, object, change->revision, &scale,
                                &call->status) &&
                json_tree_write(scale, &text) == ST_OK;
    if (made)
        kube_call_respond(call, 200, buf_slice(&text));
    else
        kube_call_fail_engine(call, ST_NOMEM);
}

enum kube_stepped kube_update_answer(struct kube_change *change)
{
    /* An object that was removed with its last finalizer has its previous version, as in
     * Kubernetes. */
    if (change->decision == KUBE_DECIDE_DELETE)
        change->revision = change->before;
    if (change->call->subresource == KUBE_SUBRESOURCE_SCALE)
        kube_call_work(change->call, change->value.len, respond_scale);
    else
        kube_change_respond(change, 200);
    return KUBE_STEP_LEFT;
}
