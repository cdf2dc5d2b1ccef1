#include "kube/policy/admission/plugins/pods/token_volume.h"

#define PREFIX SLICE_LITERAL("kube-api-access-")
#define PATH "/var/run/secrets/kubernetes.io/serviceaccount"

/* The token expires after a little more than an hour. */
#define SOURCE                                                                                 \
    "{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}}," \
    "{\"configMap\":{\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}],"                    \
    "\"name\":\"kube-root-ca.crt\"}},"                                                         \
    "{\"downwardAPI\":{\"items\":[{\"fieldRef\":{\"apiVersion\":\"v1\","                       \
    "\"fieldPath\":\"metadata.namespace\"},\"path\":\"namespace\"}]}}],\"defaultMode\":420}"

enum { RANDOM_BYTES = 5, NAME_BYTES_MAX = 32 };

/* The name of the volume that the pod has already; empty: none. */
static bool find_name(const struct kube_admission_write *write, const struct json_node *spec,
                      struct slice *ret_name)
{
    const struct json_node *volumes = json_node_named(spec, "volumes");
    *ret_name = SLICE_EMPTY;
    for (const struct json_node *v = volumes ? volumes->first : NULL; v; v = v->next) {
        struct slice name;
        if (json_node_text(json_node_named(v, "name"), write->arena, &name) != ST_OK)
            return kube_fail_engine(write->status, ST_NOMEM);
        if (!slice_has_prefix(name, PREFIX))
            continue;
        *ret_name = name;
        return true;
    }
    return true;
}

static struct slice make_name(const struct kube_admission_write *write, char to[NAME_BYTES_MAX])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* as in generated names */
    slice_copy(to, PREFIX);
    for (size_t i = 0; i < RANDOM_BYTES; i++)
        to[PREFIX.len + i] = letters[random_below(write->random, sizeof(letters) - 1)];
    return slice_of(to, PREFIX.len + RANDOM_BYTES);
}

static bool has_mount(const struct json_node *container)
{
    const struct json_node *mounts = json_node_named(container, "volumeMounts");
    for (const struct json_node *m = mounts ? mounts->first : NULL; m; m = m->next)
        if (json_node_text_is(m, "mountPath", PATH))
            return true;
    return false;
}

static bool add_mount(struct kube_admission_write *write, struct json_node *container,
                      struct slice name)
{
    const struct kube_meta meta = kube_admission_meta(write);
    struct json_node *mounts, *mount = json_node_new(write->arena, JSON_TYPE_OBJECT);
    struct json_node *yes = json_node_new(write->arena, JSON_TYPE_BOOL);
    if (!mount || !yes)
        return kube_fail_engine(write->status, ST_NOMEM);
    yes->truth = true;
    if (!kube_meta_array(&meta, container, "volumeMounts", &mounts))
        return false;
    if (json_node_insert(mounts, NULL, mount) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return kube_meta_set_text(&meta, mount, "name", name) &&
           (json_node_set(write->arena, mount, SLICE_LITERAL("readOnly"), yes) == ST_OK ||
            kube_fail_engine(write->status, ST_NOMEM)) &&
           kube_meta_set_text(&meta, mount, "mountPath", SLICE_LITERAL(PATH));
}

/* Whether a container mounts the volume now. */
static bool add_mounts(struct kube_admission_write *write, struct json_node *containers,
                       struct slice name, bool *mounted)
{
    if (!containers || containers->type != JSON_TYPE_ARRAY)
        return true;
    for (struct json_node *c = json_node_first(containers); c; c = json_node_next(c)) {
        if (c->type != JSON_TYPE_OBJECT || has_mount(c))
            continue;
        if (!add_mount(write, c, name))
            return false;
        *mounted = true;
    }
    return true;
}

static bool add_volume(struct kube_admission_write *write, struct json_node *spec,
                       struct slice name)
{
    const struct kube_meta meta = kube_admission_meta(write);
    struct json_node *volumes, *source, *volume = json_node_new(write->arena, JSON_TYPE_OBJECT);
    struct error ignored;
    if (!volume || json_tree_read(write->arena, SLICE_LITERAL(SOURCE), &source, &ignored) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (!kube_meta_array(&meta, spec, "volumes", &volumes))
        return false;
    if (json_node_insert(volumes, NULL, volume) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return kube_meta_set_text(&meta, volume, "name", name) &&
           (json_node_set(write->arena, volume, SLICE_LITERAL("projected"), source) == ST_OK ||
            kube_fail_engine(write->status, ST_NOMEM));
}

bool kube_token_volume_add(struct kube_admission_write *write, struct json_node *spec)
{
    char made[NAME_BYTES_MAX];
    struct slice name;
    bool mounted = false;
    if (!find_name(write, spec, &name))
        return false;
    bool exists = name.len;
    if (!exists)
        name = make_name(write, made);
    if (!add_mounts(write, json_node_named(spec, "initContainers"), name, &mounted) ||
        !add_mounts(write, json_node_named(spec, "containers"), name, &mounted))
        return false;
    return exists || !mounted || add_volume(write, spec, name);
}
