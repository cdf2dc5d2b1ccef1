#include "kube/policy/policies/inputs.h"

#include "kube/custom/definition.h"
#include "kube/types/object/conversion.h"

#include <stdio.h>

const struct json_node *kube_policy_namespace_of(const struct kube_policy_write *w)
{
    bool is_namespace = kube_kind_is(w->request.kind, "", "namespaces");
    bool writes = w->request.operation & (KUBE_MATCH_CREATE | KUBE_MATCH_UPDATE);
    if (!is_namespace)
        return w->namespace_object;
    return writes && !w->request.subresource.len ? w->object : w->old;
}

/* -- Objects -- */

bool kube_policy_converts(const struct kube_policy_write *w, const struct kube_kind *kind)
{
    const struct kube_kind *asked = w->request.kind;
    return kind != asked && strcmp(w->object_kind.kind, asked->kind) == 0 &&
           strcmp(w->object_kind.group, asked->group) == 0;
}

bool kube_policy_converts_by_webhook(const struct kube_policy_write *w,
                                     const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    return custom && custom->definition->webhook.converts && kube_policy_converts(w, kind);
}

static const struct kube_policy_sight *find_sight(const struct kube_policy_write *w,
                                                  const struct kube_kind *kind)
{
    for (size_t i = 0; w->sights && i < w->sights->count; i++)
        if (w->sights->items[i].kind == kind)
            return &w->sights->items[i];
    return NULL;
}

bool kube_policy_can_show(const struct kube_policy_write *w, const struct kube_kind *kind)
{
    if (!kube_policy_converts_by_webhook(w, kind) || !w->sights || find_sight(w, kind))
        return true;
    if (!w->sights->wanted)
        w->sights->wanted = kind;
    return false;
}

struct slice kube_policy_show_error(const struct kube_policy_write *w, const struct kube_kind *kind)
{
    const struct kube_policy_sight *sight = find_sight(w, kind);
    return sight ? sight->error : SLICE_EMPTY;
}

struct json_node *kube_policy_move(const struct kube_policy_write *w, struct arena *arena,
                                   const struct kube_kind *to, const struct json_node *object,
                                   struct slice *ret_error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *tree;
    struct error ignored;
    struct slice copy;
    if (json_tree_write(object, &text) != ST_OK)
        return NULL;
    struct kube_policy_moved *moved = w->sights->moved;
    while (moved && !(moved->to == to && slice_equal(moved->before, buf_slice(&text))))
        moved = moved->next;
    if (moved) {
        *ret_error = moved->error;
        bool read = !moved->error.len && arena_dup(arena, moved->after, &copy) == ST_OK &&
                    json_tree_read(arena, copy, &tree, &ignored) == ST_OK;
        return read ? tree : NULL;
    }
    if (!(moved = arena_calloc(w->arena, 1, sizeof(*moved))) ||
        arena_dup(w->arena, buf_slice(&text), &moved->before) != ST_OK)
        return NULL;
    moved->to = to;
    w->sights->leaving = moved;
    return NULL;
}

/* The object in another version. NULL: no memory, or it cannot be converted. */
static struct json_node *converted(const struct kube_policy_write *w, const struct kube_kind *kind,
                                   const struct json_node *object)
{
    const struct kube_policy_sight *sight = find_sight(w, kind);
    struct json_node *tree;
    struct error ignored;
    if (!kube_policy_converts_by_webhook(w, kind)) {
        tree = json_node_copy(w->arena, object);
        return tree && kube_policy_convert(w->arena, w->request.kind, kind, tree) ? tree : NULL;
    }
    if (!sight || (object != w->object && object != w->old))
        return NULL;
    struct slice text = object == w->old ? sight->old : sight->object;
    return json_tree_read(w->arena, text, &tree, &ignored) == ST_OK ? tree : NULL;
}

/* Two versions of a kind of Kubernetes have the same stored form. */
bool kube_policy_convert(struct arena *arena, const struct kube_kind *from,
                         const struct kube_kind *to, struct json_node *object)
{
    char version[KUBE_API_VERSION_BYTES];
    if (from->flags & KUBE_STORED_CONVERTED && kube_convert_to_stored(from, arena, object) != ST_OK)
        return false;
    if (to->flags & KUBE_STORED_CONVERTED)
        return kube_convert_from_stored(to, arena, object) == ST_OK;
    /* Versions of a custom resource differ in their names alone. */
    return !(to->flags & KUBE_CUSTOM) ||
           json_node_put(arena, object, "apiVersion",
                         json_node_new_text(
                             arena, slice_from_text(kube_kind_api_version(to, version)))) == ST_OK;
}

/* The object with the version that is stored. All but a few members is shared with the original. */
static struct json_node *with_version(struct arena *arena, const struct json_node *object,
                                      int64_t revision)
{
    const struct json_node *metadata = json_node_named(object, "metadata");
    char text[24];
    struct json_node *copy = json_node_copy_members(arena, object);
    if (!copy || !metadata || metadata->type != JSON_TYPE_OBJECT)
        return copy;
    struct json_node *with = json_node_copy_members(arena, metadata);
    snprintf(text, sizeof(text), "%lld", (long long)revision);
    if (!with ||
        json_node_put(arena, with, "resourceVersion",
                      json_node_new_text(arena, slice_from_text(text))) != ST_OK ||
        json_node_put(arena, copy, "metadata", with) != ST_OK)
        return NULL;
    return copy;
}

bool kube_policy_inputs_show(const struct kube_policy_write *w, const struct kube_policy *policy,
                             const struct json_node *object, const struct json_node **ret_object)
{
    *ret_object = object;
    if (object && policy->uses & KUBE_USES_VERSIONS && w->revision)
        *ret_object = with_version(w->arena, object, w->revision);
    return !object || *ret_object;
}

/* The object itself, or a copy if the policy sees another form of it. */
bool kube_policy_inputs_see(const struct kube_policy_write *w, const struct kube_policy *policy,
                            const struct kube_kind *kind, const struct json_node *object,
                            const struct json_node **ret_object)
{
    const struct json_node *seen = object;
    if (object && kube_policy_converts(w, kind) && !(seen = converted(w, kind, object)))
        return false;
    return kube_policy_inputs_show(w, policy, seen, ret_object);
}

/* -- The request -- */

static bool put(struct arena *arena, struct json_node *to, const char *name, const char *text)
{
    return json_node_put(arena, to, name, json_node_new_text(arena, slice_from_text(text))) ==
           ST_OK;
}

/* Nothing if it is empty. */
static bool put_some(struct arena *arena, struct json_node *to, const char *name, struct slice text)
{
    return !text.len || json_node_put(arena, to, name, json_node_new_text(arena, text)) == ST_OK;
}

/* {"group":…,"version":…,"kind":…}, or with "resource" */
static bool put_kind(struct arena *arena, struct json_node *to, const char *name, const char *group,
                     const char *version, const char *last, const char *value)
{
    struct json_node *kind = json_node_new(arena, JSON_TYPE_OBJECT);
    return kind && put(arena, kind, "group", group) && put(arena, kind, "version", version) &&
           put(arena, kind, last, value) && json_node_put(arena, to, name, kind) == ST_OK;
}

static struct json_node *new_bool(struct arena *arena, bool truth)
{
    struct json_node *node = json_node_new(arena, JSON_TYPE_BOOL);
    if (node)
        node->truth = truth;
    return node;
}

const char *kube_policy_operation(unsigned operation)
{
    if (operation & KUBE_MATCH_CREATE)
        return "CREATE";
    if (operation & KUBE_MATCH_UPDATE)
        return "UPDATE";
    return operation & KUBE_MATCH_DELETE ? "DELETE" : "CONNECT";
}

static bool fill_request(const struct kube_policy_write *w, const struct kube_kind *kind,
                         struct json_node *to)
{
    struct arena *arena = w->arena;
    const struct kube_kind *asked = w->request.kind;
    struct kube_policy_object_kind of = w->object_kind;
    if (kube_policy_converts(w, kind))
        of = (struct kube_policy_object_kind){kind->group, kind->version, kind->kind};
    static const struct kube_user_info nobody;
    struct json_node *user = kube_user_json(arena, w->user ? w->user : &nobody);
    return put_kind(arena, to, "kind", of.group, of.version, "kind", of.kind) &&
           put_kind(arena, to, "resource", kind->group, kind->version, "resource", kind->plural) &&
           put_some(arena, to, "subResource", w->request.subresource) &&
           put_kind(arena, to, "requestKind", w->object_kind.group, w->object_kind.version, "kind",
                    w->object_kind.kind) &&
           put_kind(arena, to, "requestResource", asked->group, asked->version, "resource",
                    asked->plural) &&
           put_some(arena, to, "requestSubResource", w->request.subresource) &&
           put_some(arena, to, "name", w->request.name) &&
           put_some(arena, to, "namespace", w->request.namespace) &&
           put(arena, to, "operation", kube_policy_operation(w->request.operation)) &&
           json_node_put(arena, to, "userInfo", user) == ST_OK &&
           json_node_put(arena, to, "dryRun", new_bool(arena, w->dry_run)) == ST_OK &&
           json_node_put(arena, to, "options",
                         w->options ? json_node_copy(arena, w->options)
                                    : json_node_new(arena, JSON_TYPE_NULL)) == ST_OK;
}

static bool make_inputs(const struct kube_policy_write *w, const struct kube_policy *policy,
                        const struct kube_kind *kind, struct kube_policy_inputs *inputs)
{
    struct json_node *request = NULL;
    *inputs = (struct kube_policy_inputs){0};
    if (!kube_kind_is(w->request.kind, "", "namespaces"))
        inputs->namespace_object = w->namespace_object;
    if (policy->uses & KUBE_USES_REQUEST) {
        request = json_node_new(w->arena, JSON_TYPE_OBJECT);
        if (!request || !fill_request(w, kind, request))
            return false;
    }
    inputs->request = request;
    return kube_policy_inputs_see(w, policy, kind, w->object, &inputs->object) &&
           kube_policy_inputs_see(w, policy, kind, w->old, &inputs->old);
}

const struct kube_policy_inputs *kube_policy_inputs_make(const struct kube_policy_write *w,
                                                         const struct kube_policy *policy,
                                                         const struct kube_kind *kind,
                                                         struct kube_policy_inputs_cache *cache)
{
    unsigned uses = policy->uses & (KUBE_USES_VERSIONS | KUBE_USES_REQUEST);
    for (size_t i = 0; i < COUNT_OF(cache->made); i++)
        if (cache->made[i].kind == kind && cache->made[i].uses == uses)
            return &cache->made[i].inputs;
    struct kube_policy_inputs_made *made = &cache->made[cache->next++ % COUNT_OF(cache->made)];
    made->kind = NULL;
    if (!make_inputs(w, policy, kind, &made->inputs))
        return NULL;
    made->kind = kind;
    made->uses = uses;
    return &made->inputs;
}
