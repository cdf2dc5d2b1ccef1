#include "kube/types/defaults/image.h"
#include "kube/types/defaults/rules.h"

/* -- Containers and volumes -- */

static enum status set_pull_policy(struct arena *arena, struct json_node *object, const char *key,
                                   const char *image_key)
{
    if (!default_lacks(object, key))
        return ST_OK;
    const char *policy =
        image_is_latest(default_text(object, image_key)) ? "Always" : "IfNotPresent";
    return default_set_text(arena, object, key, policy);
}

enum status default_container(struct arena *arena, struct json_node *container)
{
    return set_pull_policy(arena, container, "imagePullPolicy", "image");
}

/* Pods are created without such containers, so no create shows these. */
enum status default_ephemeral_container(struct arena *arena, struct json_node *container)
{
    TRY(default_set_text(arena, container, "terminationMessagePath", "/dev/termination-log"));
    TRY(default_set_text(arena, container, "terminationMessagePolicy", "File"));
    return default_container(arena, container);
}

/* A volume without a source is an empty directory. */
enum status default_volume(struct arena *arena, struct json_node *volume)
{
    struct json_node *source = json_node_named(volume, "image"), *ignored;
    size_t named = json_node_named(volume, "name") != NULL;
    if (volume->count == named)
        return default_set_object(arena, volume, "emptyDir", &ignored);
    return source && source->type == JSON_TYPE_OBJECT
               ? set_pull_policy(arena, source, "pullPolicy", "reference")
               : ST_OK;
}

/* The field that serviceAccountName replaced always has the same value. */
enum status default_pod_spec(struct arena *arena, struct json_node *spec)
{
    struct json_node *old = json_node_named(spec, "serviceAccount");
    struct json_node *name = json_node_named(spec, "serviceAccountName");
    if (!name)
        return old ? default_set_copy(arena, spec, "serviceAccountName", old) : ST_OK;
    if (old)
        json_node_remove(spec, old);
    return default_set_copy(arena, spec, "serviceAccount", name);
}

/* -- Pods, but not their templates -- */

/* Requests that are omitted equal the limits. */
static enum status request_limits(struct arena *arena, struct json_node *resources)
{
    struct json_node *limits = json_node_named(resources, "limits"), *requests;
    if (!limits || limits->type != JSON_TYPE_OBJECT || !limits->first)
        return ST_OK;
    TRY(default_set_object(arena, resources, "requests", &requests));
    return default_set_missing(arena, requests, limits);
}

/* In the host's network, a port of the container is one of the host. */
static enum status expose_ports(struct arena *arena, struct json_node *ports)
{
    struct json_node *port =
        ports && ports->type == JSON_TYPE_ARRAY ? json_node_first(ports) : NULL;
    for (; port; port = json_node_next(port)) {
        struct json_node *number = json_node_named(port, "containerPort");
        if (number && port->type == JSON_TYPE_OBJECT)
            TRY(default_set_copy(arena, port, "hostPort", number));
    }
    return ST_OK;
}

static enum status set_containers(struct arena *arena, struct json_node *list, bool host_network)
{
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    for (; item; item = json_node_next(item)) {
        struct json_node *resources = json_node_named(item, "resources");
        if (resources && resources->type == JSON_TYPE_OBJECT)
            TRY(request_limits(arena, resources));
        if (host_network)
            TRY(expose_ports(arena, json_node_named(item, "ports")));
    }
    return ST_OK;
}

enum status default_pod(struct arena *arena, struct json_node *pod)
{
    struct json_node *spec = json_node_named(pod, "spec");
    bool host_network = json_node_is_true(json_node_named(spec, "hostNetwork"));
    TRY(set_containers(arena, json_node_named(spec, "containers"), host_network));
    TRY(set_containers(arena, json_node_named(spec, "initContainers"), host_network));
    return default_pod_resources(arena, spec);
}
