#include "kube/policy/admission/plugins/pods/secret_limit.h"

#include <stdio.h>

/* Names in messages are cut here. */
static int cut(struct slice text)
{
    enum { SHOWN_MAX = 256 };
    return (int)size_min(text.len, SHOWN_MAX);
}
#define CUT(s) cut(s), (const char *)(s).ptr

static struct slice text_of(struct arena *arena, const struct json_node *node, const char *key)
{
    struct slice text = SLICE_EMPTY;
    (void)!(json_node_text(json_node_named(node, key), arena, &text) == ST_OK);
    return text;
}

static const struct json_node *items(const struct json_node *node, const char *key)
{
    const struct json_node *list = json_node_named(node, key);
    return list ? list->first : NULL;
}

/* -- The limit -- */

static bool check_volumes(const struct kube_secret_limit *limit, struct arena *arena,
                          const struct json_node *spec, char why[KUBE_MESSAGE_BYTES])
{
    for (const struct json_node *v = items(spec, "volumes"); v; v = v->next) {
        const struct json_node *source = json_node_named(v, "secret");
        if (!source)
            continue;
        struct slice name = text_of(arena, source, "secretName");
        if (kube_texts_have(&limit->secrets, name))
            continue;
        snprintf(why, KUBE_MESSAGE_BYTES,
                 "volume with secret.secretName=\"%.*s\" is not allowed because service account "
                 "%.*s does not reference that secret",
                 CUT(name), CUT(limit->account));
        return false;
    }
    return true;
}

static bool check_env(const struct kube_secret_limit *limit, struct arena *arena,
                      const struct json_node *container, const char *kind,
                      char why[KUBE_MESSAGE_BYTES])
{
    for (const struct json_node *e = items(container, "env"); e; e = e->next) {
        const struct json_node *ref = json_node_path(e, "valueFrom.secretKeyRef");
        struct slice name = text_of(arena, ref, "name");
        if (!ref || kube_texts_have(&limit->secrets, name))
            continue;
        struct slice container_name = text_of(arena, container, "name");
        struct slice variable = text_of(arena, e, "name");
        snprintf(why, KUBE_MESSAGE_BYTES,
                 "%s %.*s with envVar %.*s referencing secret.secretName=\"%.*s\" is not allowed "
                 "because service account %.*s does not reference that secret",
                 kind, CUT(container_name), CUT(variable), CUT(name), CUT(limit->account));
        return false;
    }
    return true;
}

static bool check_env_from(const struct kube_secret_limit *limit, struct arena *arena,
                           const struct json_node *container, const char *kind,
                           char why[KUBE_MESSAGE_BYTES])
{
    for (const struct json_node *e = items(container, "envFrom"); e; e = e->next) {
        const struct json_node *ref = json_node_named(e, "secretRef");
        struct slice name = text_of(arena, ref, "name");
        if (!ref || kube_texts_have(&limit->secrets, name))
            continue;
        struct slice container_name = text_of(arena, container, "name");
        snprintf(why, KUBE_MESSAGE_BYTES,
                 "%s %.*s with envFrom referencing secret.secretName=\"%.*s\" is not allowed "
                 "because service account %.*s does not reference that secret",
                 kind, CUT(container_name), CUT(name), CUT(limit->account));
        return false;
    }
    return true;
}

static bool check_containers(const struct kube_secret_limit *limit, struct arena *arena,
                             const struct json_node *first, const char *kind,
                             char why[KUBE_MESSAGE_BYTES])
{
    for (const struct json_node *c = first; c; c = c->next)
        if (!check_env(limit, arena, c, kind, why) || !check_env_from(limit, arena, c, kind, why))
            return false;
    return true;
}

static bool check_pull_secrets(const struct kube_secret_limit *limit, struct arena *arena,
                               const struct json_node *spec, char why[KUBE_MESSAGE_BYTES])
{
    size_t at = 0;
    for (const struct json_node *s = items(spec, "imagePullSecrets"); s; s = s->next, at++) {
        struct slice name = text_of(arena, s, "name");
        if (kube_texts_have(&limit->pull_secrets, name))
            continue;
        snprintf(why, KUBE_MESSAGE_BYTES,
                 "imagePullSecrets[%zu].name=\"%.*s\" is not allowed because service account %.*s "
                 "does not reference that imagePullSecret",
                 at, CUT(name), CUT(limit->account));
        return false;
    }
    return true;
}

bool kube_secret_limit_pod(const struct kube_secret_limit *limit, struct arena *arena,
                           const struct json_node *spec, char why[KUBE_MESSAGE_BYTES])
{
    return check_volumes(limit, arena, spec, why) &&
           check_containers(limit, arena, items(spec, "initContainers"), "init container", why) &&
           check_containers(limit, arena, items(spec, "containers"), "container", why) &&
           check_pull_secrets(limit, arena, spec, why);
}

bool kube_secret_limit_debug(const struct kube_secret_limit *limit, struct arena *arena,
                             const struct json_node *spec, char why[KUBE_MESSAGE_BYTES])
{
    return check_containers(limit, arena, items(spec, "ephemeralContainers"), "ephemeral container",
                            why);
}

/* -- References -- */

static bool container_uses_secrets(const struct json_node *container)
{
    for (const struct json_node *e = items(container, "envFrom"); e; e = e->next)
        if (json_node_has_text(json_node_path(e, "secretRef.name")))
            return true;
    for (const struct json_node *e = items(container, "env"); e; e = e->next)
        if (json_node_has_text(json_node_path(e, "valueFrom.secretKeyRef.name")))
            return true;
    return false;
}

static bool projects(const struct json_node *volume, const char *path, bool named)
{
    const struct json_node *projected = json_node_named(volume, "projected");
    for (const struct json_node *s = items(projected, "sources"); s; s = s->next)
        if (named ? json_node_has_text(json_node_path(s, path)) : json_node_path(s, path) != NULL)
            return true;
    return false;
}

static bool volume_uses_secrets(const struct json_node *volume)
{
    static const char *const paths[] = {
        "azureFile.secretName",         "cephfs.secretRef.name", "cinder.secretRef.name",
        "flexVolume.secretRef.name",    "rbd.secretRef.name",    "secret.secretName",
        "scaleIO.secretRef.name",       "iscsi.secretRef.name",  "storageos.secretRef.name",
        "csi.nodePublishSecretRef.name"};
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (json_node_has_text(json_node_path(volume, paths[i])))
            return true;
    return projects(volume, "secret.name", true);
}

bool kube_pod_uses_secrets(const struct json_node *spec)
{
    static const char *const containers[] = {"initContainers", "containers", "ephemeralContainers"};
    for (const struct json_node *s = items(spec, "imagePullSecrets"); s; s = s->next)
        if (json_node_has_text(json_node_path(s, "name")))
            return true;
    for (size_t i = 0; i < COUNT_OF(containers); i++)
        for (const struct json_node *c = items(spec, containers[i]); c; c = c->next)
            if (container_uses_secrets(c))
                return true;
    for (const struct json_node *v = items(spec, "volumes"); v; v = v->next)
        if (volume_uses_secrets(v))
            return true;
    return false;
}

bool kube_pod_uses_token(const struct json_node *spec)
{
    for (const struct json_node *v = items(spec, "volumes"); v; v = v->next)
        if (projects(v, "serviceAccountToken", false))
            return true;
    return false;
}
