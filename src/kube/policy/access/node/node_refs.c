#include "kube/policy/access/node/node_refs.h"

#include "codec/json/scanner.h"

/* -- A list of names -- */

struct reading {
    struct arena *arena;
    struct slice namespace; /* that of the pod */
    struct node_refs *refs;
    enum status status; /* the first failure */
};

static struct slice text_at(struct reading *r, const struct json_node *from, const char *path)
{
    struct slice text = SLICE_EMPTY;
    enum status status = json_node_text(json_look_path(from, path), r->arena, &text);
    if (status != ST_OK)
        r->status = status;
    return text;
}

static void add(struct reading *r, enum node_kind kind, struct slice namespace, struct slice name)
{
    struct node_refs *refs = r->refs;
    if (!name.len || refs->count == NODE_NAMED_MAX)
        return;
    if (refs->count == refs->capacity) {
        size_t capacity = size_max(8, 2 * refs->capacity);
        struct node_object *more = arena_calloc(r->arena, capacity, sizeof(*more));
        if (!more) {
            r->status = ST_NOMEM;
            return;
        }
        if (refs->count)
            memcpy(more, refs->named, refs->count * sizeof(*more));
        refs->named = more;
        refs->capacity = capacity;
    }
    refs->named[refs->count++] = (struct node_object){kind, namespace, name};
}

/* The name at a path is that of an object in the namespace of the pod. */
static void add_at(struct reading *r, enum node_kind kind, const struct json_node *from,
                   const char *path)
{
    add(r, kind, r->namespace, text_at(r, from, path));
}

/* -- Pods -- */

static void read_containers(struct reading *r, const struct json_node *spec, const char *list)
{
    const struct json_node *container = json_node_items_at(spec, list);
    for (; container; container = container->next) {
        const struct json_node *item = json_node_items_at(container, "envFrom");
        for (; item; item = item->next) {
            add_at(r, NODE_SECRET, item, "secretRef.name");
            add_at(r, NODE_CONFIG_MAP, item, "configMapRef.name");
        }
        for (item = json_node_items_at(container, "env"); item; item = item->next) {
            add_at(r, NODE_SECRET, item, "valueFrom.secretKeyRef.name");
            add_at(r, NODE_CONFIG_MAP, item, "valueFrom.configMapKeyRef.name");
        }
    }
}

/* Where a volume of this type names its secret. */
static const struct {
    const char *type, *path;
} pod_secrets[] = {
    {"azureFile", "azureFile.secretName"},
    {"cephfs", "cephfs.secretRef.name"},
    {"cinder", "cinder.secretRef.name"},
    {"flexVolume", "flexVolume.secretRef.name"},
    {"rbd", "rbd.secretRef.name"},
    {"secret", "secret.secretName"},
    {"scaleIO", "scaleIO.secretRef.name"},
    {"iscsi", "iscsi.secretRef.name"},
    {"storageos", "storageos.secretRef.name"},
    {"csi", "csi.nodePublishSecretRef.name"},
};

enum status node_ephemeral_claim(struct arena *arena, struct slice pod, struct slice volume,
                                 struct slice *ret_name)
{
    uint8_t *name = arena_alloc(arena, pod.len + 1 + volume.len);
    if (!name)
        return ST_NOMEM;
    slice_copy(name, pod);
    name[pod.len] = '-';
    slice_copy(name + pod.len + 1, volume);
    *ret_name = slice_of(name, pod.len + 1 + volume.len);
    return ST_OK;
}

static void read_claim(struct reading *r, struct slice pod, const struct json_node *volume)
{
    struct slice name;
    if (json_node_is_set(json_node_named(volume, "persistentVolumeClaim"))) {
        add_at(r, NODE_CLAIM, volume, "persistentVolumeClaim.claimName");
    } else if (json_node_is_set(json_node_named(volume, "ephemeral"))) {
        if (node_ephemeral_claim(r->arena, pod, text_at(r, volume, "name"), &name) == ST_OK)
            add(r, NODE_CLAIM, r->namespace, name);
        else
            r->status = ST_NOMEM;
    }
}

static void read_volumes(struct reading *r, struct slice pod, const struct json_node *spec)
{
    const struct json_node *volume = json_node_items_at(spec, "volumes");
    for (; volume; volume = volume->next) {
        const struct json_node *source = json_node_items_at(volume, "projected.sources");
        for (; source; source = source->next) {
            add_at(r, NODE_SECRET, source, "secret.name");
            add_at(r, NODE_CONFIG_MAP, source, "configMap.name");
        }
        for (size_t i = 0; i < COUNT_OF(pod_secrets); i++)
            if (json_node_named(volume, pod_secrets[i].type))
                add_at(r, NODE_SECRET, volume, pod_secrets[i].path);
        add_at(r, NODE_CONFIG_MAP, volume, "configMap.name");
        read_claim(r, pod, volume);
    }
}

/* A claim that was made from a template has its name in the status. */
static void read_resource_claims(struct reading *r, const struct json_node *spec,
                                 const struct json_node *status)
{
    const struct json_node *claim = json_node_items_at(spec, "resourceClaims");
    for (; claim; claim = claim->next) {
        struct slice name = text_at(r, claim, "name");
        if (json_node_is_set(json_node_named(claim, "resourceClaimName"))) {
            add_at(r, NODE_RESOURCE_CLAIM, claim, "resourceClaimName");
            continue;
        }
        if (!json_node_is_set(json_node_named(claim, "resourceClaimTemplateName")))
            continue;
        const struct json_node *made = json_node_items_at(status, "resourceClaimStatuses");
        while (made && !slice_equal(text_at(r, made, "name"), name))
            made = made->next;
        add_at(r, NODE_RESOURCE_CLAIM, made, "resourceClaimName");
    }
    add_at(r, NODE_RESOURCE_CLAIM, status, "extendedResourceClaimStatus.resourceClaimName");
}

enum status node_refs_of_pod(struct arena *arena, struct node_object pod,
                             const struct json_node *spec, const struct json_node *status,
                             struct node_refs *ret_refs)
{
    *ret_refs = (struct node_refs){0};
    struct reading r = {.arena = arena, .namespace = pod.namespace, .refs = ret_refs};
    ret_refs->node = text_at(&r, spec, "nodeName");
    add_at(&r, NODE_ACCOUNT, spec, "serviceAccountName");
    const struct json_node *item = json_node_items_at(spec, "imagePullSecrets");
    for (; item; item = item->next)
        add_at(&r, NODE_SECRET, item, "name");
    read_containers(&r, spec, "initContainers");
    read_containers(&r, spec, "containers");
    read_containers(&r, spec, "ephemeralContainers");
    read_volumes(&r, pod.name, spec);
    read_resource_claims(&r, spec, status);
    return r.status;
}

/* -- Volumes -- */

/* Where a volume of this type names a secret, and its namespace. Without one, some types use that
 * of the claim. */
static const struct {
    const char *type, *name, *namespace;
    bool of_claim;
} volume_secrets[] = {
    {"azureFile", "secretName", "secretNamespace", true},
    {"cephfs", "secretRef.name", "secretRef.namespace", true},
    {"cinder", "secretRef.name", "secretRef.namespace", false},
    {"flexVolume", "secretRef.name", "secretRef.namespace", true},
    {"rbd", "secretRef.name", "secretRef.namespace", true},
    {"scaleIO", "secretRef.name", "secretRef.namespace", true},
    {"iscsi", "secretRef.name", "secretRef.namespace", true},
    {"storageos", "secretRef.name", "secretRef.namespace", false},
    {"csi", "nodePublishSecretRef.name", "nodePublishSecretRef.namespace", false},
    {"csi", "nodeStageSecretRef.name", "nodeStageSecretRef.namespace", false},
    {"csi", "nodeExpandSecretRef.name", "nodeExpandSecretRef.namespace", false},
};

static enum status read_volume(struct arena *arena, const struct json_node *spec,
                               struct node_refs *ret_refs)
{
    *ret_refs = (struct node_refs){0};
    struct reading r = {.arena = arena, .refs = ret_refs};
    const struct json_node *claim = json_node_named(spec, "claimRef");
    ret_refs->claim = (struct node_object){NODE_CLAIM, text_at(&r, claim, "namespace"),
                                           text_at(&r, claim, "name")};
    for (size_t i = 0; i < COUNT_OF(volume_secrets); i++) {
        const struct json_node *source = json_node_named(spec, volume_secrets[i].type);
        struct slice given = text_at(&r, source, volume_secrets[i].namespace);
        bool of_claim = !given.len && volume_secrets[i].of_claim;
        add(&r, NODE_SECRET, of_claim ? ret_refs->claim.namespace : given,
            text_at(&r, source, volume_secrets[i].name));
    }
    return r.status;
}

/* -- Bytes -- */

struct parts {
    struct slice metadata, spec, status;
};

/* The values of the three members, unparsed. */
static enum status split(struct slice json, struct parts *ret_parts)
{
    struct json_scanner scanner;
    enum json_token token;
    *ret_parts = (struct parts){0};
    json_scanner_init(&scanner, json);
    if (json_next(&scanner) != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(&scanner)) == JSON_KEY) {
        struct slice *part = NULL;
        if (slice_is(scanner.raw, "\"metadata\""))
            part = &ret_parts->metadata;
        else if (slice_is(scanner.raw, "\"spec\""))
            part = &ret_parts->spec;
        else if (slice_is(scanner.raw, "\"status\""))
            part = &ret_parts->status;
        token = json_next(&scanner);
        size_t start = json_position(&scanner);
        if (!json_skip(&scanner, token))
            return ST_MALFORMED;
        size_t end = (size_t)(scanner.at - scanner.start);
        if (part)
            *part = slice_sub(json, start, end - start);
    }
    return token == JSON_OBJECT_END ? ST_OK : ST_MALFORMED;
}

static enum status read_part(struct arena *arena, struct slice part, struct json_node **ret_node)
{
    struct error ignored;
    *ret_node = NULL;
    return part.len ? json_tree_read(arena, part, ret_node, &ignored) : ST_OK;
}

/* Managed fields make metadata long, and few pods have the annotation. */
static enum status is_mirror(struct arena *arena, struct slice metadata, bool *ret_mirror)
{
    struct json_node *node;
    *ret_mirror = false;
    if (!metadata.len || !memmem(metadata.ptr, metadata.len, NODE_MIRROR_ANNOTATION,
                                 sizeof(NODE_MIRROR_ANNOTATION) - 1))
        return ST_OK;
    TRY(read_part(arena, metadata, &node));
    *ret_mirror = json_node_named(json_node_named(node, "annotations"), NODE_MIRROR_ANNOTATION);
    return ST_OK;
}

/* Only claims that were made from templates, or for extended resources, are in the status. */
static enum status read_status(struct arena *arena, struct slice status,
                               struct json_node **ret_node)
{
    static const char claims[] = "esourceClaim";
    bool has = status.len && memmem(status.ptr, status.len, claims, sizeof(claims) - 1);
    return read_part(arena, has ? status : SLICE_EMPTY, ret_node);
}

enum status node_refs_read(struct arena *arena, struct node_object object, struct slice json,
                           struct node_refs *ret_refs)
{
    struct parts parts;
    struct json_node *spec, *status;
    bool mirror = false;
    TRY(split(json, &parts));
    TRY(read_part(arena, parts.spec, &spec));
    if (object.kind == NODE_VOLUME)
        return read_volume(arena, spec, ret_refs);
    if (object.kind == NODE_POD && json_node_has_text(json_node_named(spec, "nodeName"))) {
        TRY(is_mirror(arena, parts.metadata, &mirror));
        TRY(read_status(arena, parts.status, &status));
        TRY(node_refs_of_pod(arena, object, mirror ? NULL : spec, mirror ? NULL : status,
                             ret_refs));
    } else {
        *ret_refs = (struct node_refs){0};
    }
    return json_node_text(json_node_named(spec, "nodeName"), arena, &ret_refs->node);
}
