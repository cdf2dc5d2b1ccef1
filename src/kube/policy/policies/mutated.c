#include "kube/policy/policies/mutated.h"

#include "kube/custom/definition.h"
#include "kube/types/defaults/defaults.h"
#include "kube/types/schema/strict.h"

#define NOT_AN_OBJECT                                                                          \
    "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value " \
    "of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "   \
    "\"json:\\\"kind,omitempty\\\"\" }"

/* A Binding has a row of its own, because it can also be posted to a namespace. */
const struct kube_kind *kube_mutated_own_kind(const struct kube_policy_write *write,
                                              struct kube_kind *room)
{
    const struct kube_policy_object_kind *of = &write->object_kind;
    const struct kube_kind *asked = write->request.kind;
    size_t count;
    const struct kube_kind *rows = kube_builtin_kinds(&count);
    if (strcmp(of->kind, asked->kind) == 0 && strcmp(of->group, asked->group) == 0)
        return NULL;
    *room = (struct kube_kind){
        .group = of->group, .version = of->version, .kind = of->kind, .plural = ""};
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].kind, of->kind) == 0 && strcmp(rows[i].group, of->group) == 0 &&
            strcmp(rows[i].version, of->version) == 0)
            return &rows[i];
    return room;
}

bool kube_mutated_name(struct arena *arena, const struct kube_kind *kind, struct json_node *object)
{
    char version[KUBE_API_VERSION_BYTES];
    struct slice text = slice_from_text(kube_kind_api_version(kind, version));
    return json_node_put(arena, object, "apiVersion", json_node_new_text(arena, text)) == ST_OK &&
           json_node_put(arena, object, "kind",
                         json_node_new_text(arena, slice_from_text(kind->kind))) == ST_OK;
}

static bool fail_memory(struct kube_policy_run *run)
{
    run->no_memory = true;
    return kube_fail_engine(run->write->status, ST_NOMEM);
}

bool kube_mutated_decode(struct kube_policy_run *run, struct arena *arena,
                         const struct kube_kind *kind, struct json_node *object, bool strict)
{
    AUTO(buf_fini) struct buf unknown = {0};
    struct error why = {0};
    char version[KUBE_API_VERSION_BYTES];
    if (object->type != JSON_TYPE_OBJECT)
        return kube_policy_fail_internal(run, NOT_AN_OBJECT, SLICE_EMPTY);
    kube_kind_api_version(kind, version);
    /* An object that does not name its kind is decoded as what it was. */
    const struct json_node *of = json_node_named(object, "apiVersion");
    const struct json_node *name = json_node_named(object, "kind");
    if ((of && !json_node_is_text(of, version)) || (name && !json_node_is_text(name, kind->kind)))
        return kube_policy_fail_internal(
            run, "failed to convert object: the patch has changed its kind", SLICE_EMPTY);
    if ((!of || !name) && !kube_mutated_name(arena, kind, object))
        return fail_memory(run);
    const struct kube_type *type = kube_custom_of(kind) ? NULL : kube_type_of_kind(kind);
    if (!type)
        return true;
    switch (kube_strict(type, object, &unknown, &why)) {
    case ST_OK:
        return !unknown.len || !strict ||
               kube_policy_fail_internal(run, "strict decoding error: ", buf_slice(&unknown));
    case ST_INVALID:
        return kube_policy_fail_internal(run, "", slice_from_text(why.text));
    default:
        return fail_memory(run);
    }
}

bool kube_mutated_complete(struct kube_policy_run *run, struct arena *arena,
                           const struct kube_kind *kind, struct json_node *object)
{
    struct kube_custom *custom = kube_custom_of(kind);
    if (!custom)
        return kube_default(arena, kind, object, run->write->status);
    const struct schema *schema = kube_custom_schema(custom);
    return !schema || schema_default(arena, schema, object) == ST_OK || fail_memory(run);
}
