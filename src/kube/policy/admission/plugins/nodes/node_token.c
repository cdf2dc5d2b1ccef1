/*
 * Tokens of service accounts that a node requests: each is bound to a pod of the node, and for an
 * audience that the pod names, in a projected volume or by the CSI driver of one of its volumes. A
 * node may be allowed to request others: verb request-serviceaccounts-token-audience on the
 * audience as a resource, with the name of the account.
 */
#include "kube/policy/access/node/node_refs.h"
#include "kube/policy/admission/plugins/nodes/node_restriction.h"

#include <stdio.h>

/* The search for an audience, and the objects that it has missed. */
struct looking {
    struct kube_admission_write *write;
    const struct json_node *pod;
    struct slice audience;
    bool found;
    struct kube_text_list errors;
};

static bool note_missing(struct looking *l, const char *what, struct slice name)
{
    char text[512];
    struct slice copy;
    int len = snprintf(text, sizeof(text), "%s \"%.*s\" not found", what,
                       (int)size_min(name.len, 253), (const char *)name.ptr);
    if (arena_dup(l->write->arena, slice_of(text, (size_t)len), &copy) != ST_OK)
        return kube_fail_engine(l->write->status, ST_NOMEM);
    if (!kube_texts_have(&(struct kube_texts){l->errors.items, l->errors.count}, copy))
        kube_text_add(&l->errors, copy);
    return true;
}

/* The driver that serves volumes of a type that was built in once. */
static const char *migrated_driver(const struct json_node *source)
{
    static const struct {
        const char *type, *driver;
    } rows[] = {
        {"awsElasticBlockStore", "ebs.csi.aws.com"},
        {"azureDisk", "disk.csi.azure.com"},
        {"azureFile", "file.csi.azure.com"},
        {"cinder", "cinder.csi.openstack.org"},
        {"gcePersistentDisk", "pd.csi.storage.gke.io"},
        {"portworxVolume", "pxd.portworx.com"},
        {"vsphereVolume", "csi.vsphere.vmware.com"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (json_node_is_set(json_node_named(source, rows[i].type)))
            return rows[i].driver;
    return NULL;
}

static bool look_at_driver(struct looking *l, struct slice name)
{
    const struct json_node *driver;
    if (!name.len)
        return true;
    if (!kube_node_fact(l->write, "/registry/csidrivers/", SLICE_EMPTY, name, &driver))
        return false;
    if (!driver)
        return note_missing(l, "csidriver.storage.k8s.io", name);
    const struct json_node *request = json_node_items_at(driver, "spec.tokenRequests");
    for (; request; request = request->next)
        l->found =
            l->found || slice_equal(kube_node_text(l->write, request, "audience"), l->audience);
    return true;
}

/* claim ─► volume ─► its driver */
static bool look_at_claim(struct looking *l, struct slice name)
{
    struct kube_admission_write *w = l->write;
    const struct json_node *claim, *volume;
    if (!kube_node_fact(w, "/registry/persistentvolumeclaims/", w->namespace, name, &claim))
        return false;
    if (!claim)
        return note_missing(l, "persistentvolumeclaim", name);
    struct slice of = kube_node_text(w, claim, "spec.volumeName");
    if (!of.len)
        return note_missing(l, "persistentvolume", of);
    if (!kube_node_fact(w, "/registry/persistentvolumes/", SLICE_EMPTY, of, &volume))
        return false;
    if (!volume)
        return note_missing(l, "persistentvolume", of);
    const struct json_node *spec = json_node_named(volume, "spec");
    const char *migrated = migrated_driver(spec);
    struct slice driver = kube_node_text(w, spec, "csi.driver");
    return look_at_driver(l, driver.len || !migrated ? driver : slice_from_text(migrated));
}

static bool look_at_volume(struct looking *l, const struct json_node *volume)
{
    struct kube_admission_write *w = l->write;
    struct slice claim;
    const struct json_node *source = json_node_items_at(volume, "projected.sources");
    for (; source; source = source->next) {
        const struct json_node *token = json_node_named(source, "serviceAccountToken");
        l->found = l->found || (json_node_is_set(token) &&
                                slice_equal(kube_node_text(w, token, "audience"), l->audience));
    }
    if (l->found)
        return true;
    if (json_node_is_set(json_node_path(volume, "ephemeral.volumeClaimTemplate"))) {
        if (node_ephemeral_claim(w->arena, kube_node_text(w, l->pod, "metadata.name"),
                                 kube_node_text(w, volume, "name"), &claim) != ST_OK)
            return kube_fail_engine(w->status, ST_NOMEM);
        return look_at_claim(l, claim);
    }
    if (json_node_is_set(json_node_named(volume, "persistentVolumeClaim")))
        return look_at_claim(l, kube_node_text(w, volume, "persistentVolumeClaim.claimName"));
    const char *migrated = migrated_driver(volume);
    struct slice driver = kube_node_text(w, volume, "csi.driver");
    return look_at_driver(l, driver.len || !migrated ? driver : slice_from_text(migrated));
}

/* As Kubernetes joins several errors. */
static bool fail_looking(struct looking *l)
{
    AUTO(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < l->errors.count; i++)
        if (buf_append_text(&text, i ? ", " : "") != ST_OK ||
            buf_append(&text, l->errors.items[i]) != ST_OK)
            return kube_fail_engine(l->write->status, ST_NOMEM);
    bool many = l->errors.count > 1;
    return kube_admission_forbid(l->write, "error validating audience \"%.*s\": %s%.*s%s",
                                 SLICE_ARGS(l->audience), many ? "[" : "",
                                 SLICE_ARGS(buf_slice(&text)), many ? "]" : "");
}

static bool may_request(struct kube_admission_write *w, struct slice audience)
{
    struct kube_node_facts *facts = w->nodes;
    if (facts && !facts->answered) {
        facts->asks = true;
        facts->question = (struct kube_attributes){
            .of_resource = true,
            .verb = SLICE_LITERAL("request-serviceaccounts-token-audience"),
            .resource = audience,
            .namespace = w->namespace,
            .name = w->name,
        };
        return false;
    }
    return (facts && facts->allowed) ||
           kube_admission_forbid(w,
                                 "audience \"%.*s\" not found in pod spec volume, %.*s is not "
                                 "authorized to request tokens for this audience",
                                 SLICE_ARGS(audience), SLICE_ARGS(w->user->name));
}

static bool check_audience(struct kube_admission_write *w, const struct json_node *pod)
{
    const struct json_node *audiences = json_node_path(w->object, "spec.audiences");
    const struct json_node *first = json_node_items(audiences);
    struct looking l = {.write = w, .pod = pod, .errors = {.arena = w->arena}};
    if (first && audiences->count > 1)
        return kube_admission_forbid(w, "node may only request 0 or 1 audiences");
    if (first && json_node_text(first, w->arena, &l.audience) != ST_OK)
        return kube_fail_engine(w->status, ST_NOMEM);
    const struct json_node *volume = json_node_items_at(pod, "spec.volumes");
    for (; volume && !l.found; volume = volume->next)
        if (!look_at_volume(&l, volume))
            return false;
    if (!l.found && l.errors.count)
        return fail_looking(&l);
    return l.found || may_request(w, l.audience);
}

bool kube_node_restrict_token(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *ref = json_node_path(w->object, "spec.boundObjectRef"), *pod;
    struct slice name = kube_node_text(w, ref, "name"), uid = kube_node_text(w, ref, "uid");
    if (!json_node_text_is(ref, "apiVersion", "v1") || !json_node_text_is(ref, "kind", "Pod") ||
        !name.len)
        return kube_admission_forbid(w, "node requested token not bound to a pod");
    if (!uid.len)
        return kube_admission_forbid(w, "node requested token with a pod binding without a uid");
    if (!kube_node_fact(w, "/registry/pods/", w->namespace, name, &pod))
        return false;
    if (!pod)
        return kube_node_fail_missing(w, "pod", name);
    if (!slice_equal(uid, kube_node_text(w, pod, "metadata.uid")))
        return kube_admission_forbid(w,
                                     "the UID in the bound object reference (%.*s) does not match "
                                     "the UID in record. The object might have been deleted and "
                                     "then recreated",
                                     SLICE_ARGS(uid));
    if (!slice_equal(kube_node_text(w, pod, "spec.nodeName"), node))
        return kube_admission_forbid(
            w, "node requested token bound to a pod scheduled on a different node");
    return check_audience(w, pod);
}
