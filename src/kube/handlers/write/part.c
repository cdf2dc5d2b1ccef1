#include "kube/handlers/write/part.h"

#include "kube/call/call.h"
#include "kube/handlers/write/certificate_request.h"

#include <stdio.h>

typedef bool take_fn(struct kube_change *change, const struct json_node *stored,
                     const struct json_node *wanted, struct json_node *object);

/* Replaces a member of `to` by a copy of that of `from`, or removes it. */
static bool take(struct kube_change *change, struct json_node *to, const struct json_node *from,
                 const char *key)
{
    const struct json_node *wanted = json_node_named(from, key);
    struct json_node *had = json_node_named(to, key);
    if (!wanted && had)
        json_node_remove(to, had);
    if (!wanted)
        return true;
    struct json_node *copy = json_node_copy(&change->scratch, wanted);
    return (copy && json_node_set(&change->scratch, to, slice_from_text(key), copy) == ST_OK) ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

static bool same_name(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *x = json_node_named(a, "name"), *y = json_node_named(b, "name");
    return x && y && json_node_equal(x, y);
}

static bool fail_pod(struct kube_change *change)
{
    return kube_fail_invalid(&change->call->status, SLICE_EMPTY, SLICE_LITERAL("Pod"),
                             change->name);
}

/* -- pods/ephemeralcontainers -- */

static void check_ephemeral(struct kube_change *change, const struct json_node *old,
                            const struct json_node *wanted)
{
    const struct json_node *name = json_node_named(old, "name");
    const struct json_node *now = json_node_items_at(wanted, "spec.ephemeralContainers");
    char message[256];
    while (now && !same_name(now, old))
        now = now->next;
    if (now && json_node_equal(now, old))
        return;
    snprintf(message, sizeof(message),
             "Forbidden: existing ephemeral containers \"%.*s\" may not be %s\n",
             name ? (int)size_min(name->text.len, 63) : 0, name ? (const char *)name->text.ptr : "",
             now ? "changed" : "removed");
    kube_status_cause(&change->call->status, "FieldValueForbidden", "spec.ephemeralContainers",
                      message);
}

static bool take_ephemeral(struct kube_change *change, const struct json_node *stored,
                           const struct json_node *wanted, struct json_node *object)
{
    const struct json_node *old = json_node_items_at(stored, "spec.ephemeralContainers");
    struct json_node *spec;
    for (; old; old = old->next)
        check_ephemeral(change, old, wanted);
    if (change->call->status.cause_count)
        return fail_pod(change);
    return kube_meta_object(&change->meta, object, "spec", &spec) &&
           take(change, spec, json_node_named(wanted, "spec"), "ephemeralContainers");
}

/* -- pods/resize -- */

/* Containers must keep their number, order and names. */
static bool same_containers(const struct json_node *a, const struct json_node *b)
{
    while (a && b && same_name(a, b)) {
        a = a->next;
        b = b->next;
    }
    return !a && !b;
}

static bool resize_list(struct kube_change *change, const struct json_node *wanted,
                        struct json_node *object, const char *path)
{
    const struct json_node *from = json_node_items_at(wanted, path);
    struct json_node *list = json_node_path(object, path);
    if (!same_containers(from, json_node_items_at(object, path))) {
        kube_status_cause(&change->call->status, "FieldValueForbidden", path,
                          "Forbidden: containers may not be added, removed, renamed or reordered "
                          "on resize");
        return fail_pod(change);
    }
    struct json_node *to = list ? json_node_first(list) : NULL;
    for (; to && from; to = json_node_next(to), from = from->next)
        if (!take(change, to, from, "resources") || !take(change, to, from, "resizePolicy"))
            return false;
    return true;
}

static bool take_resize(struct kube_change *change, const struct json_node *stored,
                        const struct json_node *wanted, struct json_node *object)
{
    (void)stored;
    return resize_list(change, wanted, object, "spec.containers") &&
           resize_list(change, wanted, object, "spec.initContainers");
}

/* -- namespaces/finalize -- */

static bool take_finalizers(struct kube_change *change, const struct json_node *stored,
                            const struct json_node *wanted, struct json_node *object)
{
    struct json_node *spec;
    (void)stored;
    return kube_meta_object(&change->meta, object, "spec", &spec) &&
           take(change, spec, json_node_named(wanted, "spec"), "finalizers");
}

/* -- certificatesigningrequests/approval -- */

static bool take_approval(struct kube_change *change, const struct json_node *stored,
                          const struct json_node *wanted, struct json_node *object)
{
    struct json_node *status;
    return kube_meta_object(&change->meta, object, "status", &status) &&
           take(change, status, json_node_named(wanted, "status"), "conditions") &&
           kube_certificate_approval(change, stored, object);
}

/* -- All -- */

static const struct part {
    const char *group, *plural, *name;
    bool takes_metadata; /* labels, annotations, finalizers and owners, too */
    take_fn *take;
} parts[] = {
    {"", "namespaces", "finalize", true, take_finalizers},
    {"", "pods", "ephemeralcontainers", false, take_ephemeral},
    {"", "pods", "resize", false, take_resize},
    {"certificates.k8s.io", "certificatesigningrequests", "approval", true, take_approval},
};

static const struct part *find(const struct kube_call *call)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (strcmp(call->kind->group, parts[i].group) == 0 &&
            strcmp(call->kind->plural, parts[i].plural) == 0 &&
            slice_is(call->path.subresource, parts[i].name))
            return &parts[i];
    return NULL;
}

bool kube_is_part(const struct kube_call *call)
{
    return find(call) != NULL;
}

bool kube_part_takes_metadata(const struct kube_call *call)
{
    const struct part *part = find(call);
    return part && part->takes_metadata;
}

bool kube_part_take(struct kube_change *change, const struct json_node *stored,
                    const struct json_node *wanted, struct json_node *object)
{
    return find(change->call)->take(change, stored, wanted, object);
}
