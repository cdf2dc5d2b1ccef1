#include "kube/types/object/app_armor.h"

#define FIELD "appArmorProfile"

enum {
    PROFILE_BYTES_MAX = 4095, /* the longest path in Linux */
    /* Each is looked for in all containers; a pod with more has some that name none. */
    ANNOTATIONS_MAX = 256,
};

static const struct slice prefix = SLICE_LITERAL("container.apparmor.security.beta.kubernetes.io/");
static const struct slice local = SLICE_LITERAL("localhost/");

/* *ret_profile NULL: the annotation has none, or one that the rules of pods do not allow. */
static enum status profile_of(struct arena *arena, struct slice annotation,
                              struct json_node **ret_profile)
{
    struct json_node *profile = json_node_new(arena, JSON_TYPE_OBJECT);
    struct slice name = SLICE_EMPTY, type = SLICE_LITERAL("Localhost");
    *ret_profile = NULL;
    if (!profile)
        return ST_NOMEM;
    if (slice_is(annotation, "runtime/default"))
        type = SLICE_LITERAL("RuntimeDefault");
    else if (slice_is(annotation, "unconfined"))
        type = SLICE_LITERAL("Unconfined");
    else if (!slice_has_prefix(annotation, local) || annotation.len == local.len)
        return ST_OK;
    else
        name = slice_sub(annotation, local.len, annotation.len - local.len);
    if (name.len > PROFILE_BYTES_MAX || slice_trim(name).len != name.len)
        return ST_OK;
    TRY(json_node_put(arena, profile, "type", json_node_new_text(arena, type)));
    if (name.len)
        TRY(json_node_put(arena, profile, "localhostProfile", json_node_new_text(arena, name)));
    *ret_profile = profile;
    return ST_OK;
}

static bool set_field(const struct kube_meta *meta, struct json_node *container,
                      const struct json_node *annotation, const struct json_node *of_pod)
{
    struct json_node *profile, *context;
    struct slice text;
    if (json_node_text(annotation, meta->arena, &text) != ST_OK ||
        profile_of(meta->arena, text, &profile) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    /* The profile of the pod is not repeated in its containers. */
    if (!profile || (json_node_is_set(of_pod) && json_node_equal(profile, of_pod)))
        return true;
    return kube_meta_object(meta, container, "securityContext", &context) &&
           (json_node_put(meta->arena, context, FIELD, profile) == ST_OK ||
            kube_fail_engine(meta->status, ST_NOMEM));
}

static struct json_node *find_container(struct json_node *spec, struct slice name)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct json_node *list = json_node_named(spec, lists[i]);
        struct json_node *one =
            list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
        for (; one; one = json_node_next(one)) {
            const struct json_node *has = json_node_named((const struct json_node *)one, "name");
            if (has && has->type == JSON_TYPE_STRING && slice_equal(has->text, name))
                return one;
        }
    }
    return NULL;
}

bool kube_app_armor_create(const struct kube_meta *meta, struct json_node *pod)
{
    const struct json_node *annotations =
        json_node_path((const struct json_node *)pod, "metadata.annotations");
    struct json_node *spec = json_node_named(pod, "spec");
    const struct json_node *of_pod =
        json_node_path((const struct json_node *)spec, "securityContext." FIELD);
    unsigned found = 0;
    if (json_node_text_is(spec, "os.name", "windows"))
        return true;
    for (const struct json_node *one = annotations ? annotations->first : NULL; one;
         one = one->next) {
        if (!slice_has_prefix(one->key, prefix) || found == ANNOTATIONS_MAX)
            continue;
        found++;
        /* A name that needs escapes is not that of a container. */
        struct json_node *container =
            find_container(spec, slice_sub(one->key, prefix.len, one->key.len - prefix.len));
        const struct json_node *own =
            json_node_path((const struct json_node *)container, "securityContext." FIELD);
        if (container && !json_node_is_set(own) && !set_field(meta, container, one, of_pod))
            return false;
    }
    return true;
}
