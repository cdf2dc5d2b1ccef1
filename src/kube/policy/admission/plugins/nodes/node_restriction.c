#include "kube/policy/admission/plugins/nodes/node_restriction.h"

#include "base/slices.h"
#include "codec/base64.h"
#include "kube/policy/access/node/node_refs.h"
#include "kube/policy/access/rbac/node_authorizer.h"
#include "kube/types/storage.h"
#include "net/tls/request.h"

#include <stdio.h>

#define LEASES_NAMESPACE "kube-node-lease"
#define NODE_TEXT(node) (int)size_min((node).len, 253), (const char *)(node).ptr

static const char *const operations[] = {[KUBE_ADMISSION_CREATE] = "CREATE",
                                         [KUBE_ADMISSION_UPDATE] = "UPDATE",
                                         [KUBE_ADMISSION_DELETE] = "DELETE"};

/* -- Reading -- */

struct slice kube_node_text(const struct kube_admission_write *w, const struct json_node *from,
                            const char *path)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_look_path(from, path), w->arena, &text);
    return text; /* the arena remembers a failure */
}

/* As Go's decoder: what is missing, null or empty is the zero value. */
static bool is_zero(const struct json_node *node)
{
    if (!node || node->type == JSON_TYPE_NULL)
        return true;
    if (node->type == JSON_TYPE_BOOL)
        return !node->truth;
    return node->type == JSON_TYPE_STRING ? !node->text.len
                                          : node->type != JSON_TYPE_NUMBER && !node->count;
}

static bool is_same(const struct json_node *a, const struct json_node *b)
{
    if (is_zero(a) || is_zero(b))
        return is_zero(a) && is_zero(b);
    if (a->type != b->type)
        return false;
    if (a->type == JSON_TYPE_ARRAY) {
        bool same = a->count == b->count;
        for (a = a->first, b = b->first; same && a; a = a->next, b = b->next)
            same = is_same(a, b);
        return same;
    }
    if (a->type != JSON_TYPE_OBJECT)
        return json_node_equal(a, b);
    for (const struct json_node *member = a->first; member; member = member->next)
        if (!is_same(member, json_look_member(b, member->key)))
            return false;
    for (const struct json_node *member = b->first; member; member = member->next)
        if (!json_look_member(a, member->key) && !is_zero(member))
            return false;
    return true;
}

/* A write of the status alone does not take a change of anything else, and is refused all the same
 * if it has one. */
static const struct json_node *wanted(const struct kube_admission_write *w)
{
    return w->wanted ? w->wanted : w->object;
}

static bool is_same_at(const struct kube_admission_write *w, const char *path)
{
    return is_same(json_node_path(wanted(w), path), json_node_path(w->old, path));
}

/* The name of the object: that of a new one is not in the path. As in Kubernetes, what is deleted
 * with its collection has none, so that a node deletes no collections of what has its name. */
static struct slice name_of(const struct kube_admission_write *w)
{
    return w->name.len || w->operation == KUBE_ADMISSION_DELETE
               ? w->name
               : kube_node_text(w, w->object, "metadata.name");
}

/* -- Facts -- */

bool kube_node_fact(struct kube_admission_write *w, const char *prefix, struct slice namespace,
                    struct slice name, const struct json_node **ret_object)
{
    struct kube_node_facts *facts = w->nodes;
    struct slice key;
    *ret_object = NULL;
    if (kube_key_make(w->arena, prefix, namespace, name, &key) != ST_OK)
        return kube_fail_engine(w->status, ST_NOMEM);
    for (size_t i = 0; facts && i < facts->count; i++)
        if (slice_equal(facts->items[i].key, key)) {
            *ret_object = facts->items[i].object;
            return true;
        }
    if (!facts || facts->count == KUBE_NODE_FACTS_MAX)
        return kube_admission_forbid(w, "the pod has more volumes than this server examines");
    facts->wanted = key;
    return false;
}

bool kube_node_fail_missing(struct kube_admission_write *w, const char *what, struct slice name)
{
    return kube_fail_not_found(w->status, SLICE_EMPTY, slice_from_text(what), name);
}

/* -- Pods -- */

static bool check_owner(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *owners = json_node_path(w->object, "metadata.ownerReferences");
    const struct json_node *owner = json_node_items(owners), *object;
    if (owners && owners->count > 1)
        return kube_admission_forbid(w,
                                     "node \"%.*s\" can only create pods with a single owner "
                                     "reference set to itself",
                                     NODE_TEXT(node));
    if (!owner || !json_node_text_is(owner, "apiVersion", "v1") ||
        !json_node_text_is(owner, "kind", "Node") ||
        !slice_equal(kube_node_text(w, owner, "name"), node))
        return kube_admission_forbid(
            w, "node \"%.*s\" can only create pods with an owner reference set to itself",
            NODE_TEXT(node));
    if (!json_node_is_true(json_node_named(owner, "controller")))
        return kube_admission_forbid(
            w, "node \"%.*s\" can only create pods with a controller owner reference set to itself",
            NODE_TEXT(node));
    if (json_node_is_true(json_node_named(owner, "blockOwnerDeletion")))
        return kube_admission_forbid(
            w, "node \"%.*s\" must not set blockOwnerDeletion on an owner reference",
            NODE_TEXT(node));
    if (!kube_node_fact(w, "/registry/minions/", SLICE_EMPTY, node, &object))
        return false;
    if (!object)
        return kube_node_fail_missing(w, "node", node);
    struct slice uid = kube_node_text(w, object, "metadata.uid");
    struct slice given = kube_node_text(w, owner, "uid");
    return slice_equal(uid, given) ||
           kube_admission_forbid(w, "node %.*s UID mismatch: expected %.*s got %.*s",
                                 NODE_TEXT(node), NODE_TEXT(given), NODE_TEXT(uid));
}

static const char unknown_source[] = "an unknown source";

/* The first kind of object that a source of a projected volume refers to; NULL: to none. */
static const char *projected_reference(const struct json_node *volume)
{
    static const struct {
        const char *source, *what;
    } rows[] = {
        {"configMap", "configmaps (via projected volumes)"},
        {"secret", "secrets (via projected volumes)"},
        {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
        {"clusterTrustBundle", "clustertrustbundles"},
        {"podCertificate", "podcertificates"},
    };
    const struct json_node *source = json_node_items_at(volume, "projected.sources");
    for (; source; source = source->next) {
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            if (json_node_is_set(json_node_named(source, rows[i].source)))
                return rows[i].what;
        if (!json_node_is_set(json_node_named(source, "downwardAPI")))
            return unknown_source;
    }
    return NULL;
}

/* The same for a volume. */
static const char *volume_reference(const struct json_node *volume)
{
    static const struct {
        const char *source, *what;
    } rows[] = {
        {"configMap", "configmaps (via configmap volumes)"},
        {"secret", "secrets (via secret volumes)"},
        {"csi", "csidrivers (via CSI volumes)"},
        {"glusterfs", "endpoints (via glusterFS volumes)"},
        {"persistentVolumeClaim", "persistentvolumeclaims"},
        {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
        {"azureFile", "secrets (via azureFile volumes)"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (json_node_is_set(json_node_named(volume, rows[i].source)))
            return rows[i].what;
    return projected_reference(volume);
}

/* *ret_volume: the volume that refers to it, if one does. */
static const char *find_reference(const struct json_node *spec, const struct node_refs *refs,
                                  const struct json_node **ret_volume)
{
    static const struct {
        enum node_kind kind;
        const char *what;
    } rows[] = {{NODE_SECRET, "secrets"}, {NODE_CONFIG_MAP, "configmaps"}};
    if (json_node_has_text(json_node_named(spec, "serviceAccountName")))
        return "serviceaccounts";
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t n = 0; n < refs->count; n++)
            if (refs->named[n].kind == rows[i].kind)
                return rows[i].what;
    if (json_node_items_at(spec, "resourceClaims"))
        return "resourceclaims";
    const struct json_node *volume = json_node_items_at(spec, "volumes");
    for (; volume; volume = volume->next) {
        const char *what = volume_reference(volume);
        *ret_volume = volume;
        if (what)
            return what;
    }
    return NULL;
}

static bool create_pod(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *spec = json_node_named(w->object, "spec");
    const struct json_node *annotations = json_node_path(w->object, "metadata.annotations");
    const struct json_node *volume = NULL;
    struct node_refs refs;
    if (!json_node_named(annotations, NODE_MIRROR_ANNOTATION))
        return kube_admission_forbid(w,
                                     "pod does not have \"" NODE_MIRROR_ANNOTATION
                                     "\" annotation, node \"%.*s\" can only create mirror pods",
                                     NODE_TEXT(node));
    if (!slice_equal(kube_node_text(w, spec, "nodeName"), node))
        return kube_admission_forbid(
            w, "node \"%.*s\" can only create pods with spec.nodeName set to itself",
            NODE_TEXT(node));
    if (!check_owner(w, node))
        return false;
    if (node_refs_of_pod(w->arena, (struct node_object){0}, spec, NULL, &refs) != ST_OK)
        return kube_fail_engine(w->status, ST_NOMEM);
    const char *what = find_reference(spec, &refs, &volume);
    if (what == unknown_source)
        return kube_admission_forbid(w,
                                     "error checking mirror pod for API references: unknown source "
                                     "for projected volume \"%.*s\"",
                                     SLICE_ARGS(kube_node_text(w, volume, "name")));
    return !what || kube_admission_forbid(w, "node \"%.*s\" can not create pods that reference %s",
                                          NODE_TEXT(node), what);
}

static bool is_on(const struct kube_admission_write *w, const struct json_node *pod,
                  struct slice node)
{
    return slice_equal(kube_node_text(w, pod, "spec.nodeName"), node);
}

static bool restrict_pod(struct kube_admission_write *w, struct slice node)
{
    if (w->operation == KUBE_ADMISSION_CREATE)
        return create_pod(w, node);
    if (w->operation == KUBE_ADMISSION_UPDATE)
        return kube_admission_forbid(
            w,
            "unexpected operation \"UPDATE\", node \"%.*s\" can only create and delete mirror pods",
            NODE_TEXT(node));
    /* Kubernetes looks for the pod by its name. */
    if (!w->name.len)
        return kube_node_fail_missing(w, "pod", SLICE_EMPTY);
    return is_on(w, w->old, node) ||
           kube_admission_forbid(
               w, "node \"%.*s\" can only delete pods with spec.nodeName set to itself",
               NODE_TEXT(node));
}

/* The names of the claims that were made for a pod, which its node may read. */
static bool has_same_claims(const struct kube_admission_write *w)
{
    const char *path = "status.resourceClaimStatuses";
    const struct json_node *is = json_node_items_at(w->object, path);
    const struct json_node *was = json_node_items_at(w->old, path);
    for (; is && was; is = is->next, was = was->next)
        if (!is_same(json_node_named(is, "name"), json_node_named(was, "name")) ||
            !is_same(json_node_named(is, "resourceClaimName"),
                     json_node_named(was, "resourceClaimName")))
            return false;
    return !is && !was;
}

static bool restrict_pod_status(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *labels = json_node_path(w->object, "metadata.labels");
    const struct json_node *before = json_node_path(w->old, "metadata.labels");
    if (w->operation != KUBE_ADMISSION_UPDATE)
        return kube_admission_forbid(w, "unexpected operation \"%s\"", operations[w->operation]);
    if (!is_on(w, w->old, node))
        return kube_admission_forbid(w,
                                     "node \"%.*s\" can only update pod status for pods with "
                                     "spec.nodeName set to itself",
                                     NODE_TEXT(node));
    if ((!is_zero(labels) || !is_zero(before)) &&
        (is_zero(labels) || is_zero(before) || !json_node_equal(labels, before)))
        return kube_admission_forbid(w, "node \"%.*s\" cannot update labels through pod status",
                                     NODE_TEXT(node));
    if (!has_same_claims(w))
        return kube_admission_forbid(w, "node \"%.*s\" cannot update resource claim statues",
                                     NODE_TEXT(node));
    return is_same_at(w, "status.extendedResourceClaimStatus") ||
           kube_admission_forbid(w, "node \"%.*s\" cannot update extended resource claim status",
                                 NODE_TEXT(node));
}

static bool restrict_eviction(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *pod;
    /* The deletion that follows from an eviction was admitted with it. */
    if (w->operation == KUBE_ADMISSION_DELETE)
        return true;
    if (!kube_node_fact(w, "/registry/pods/", w->namespace, w->name, &pod))
        return false;
    if (!pod)
        return kube_node_fail_missing(w, "pod", w->name);
    return is_on(w, pod, node) ||
           kube_admission_forbid(w,
                                 "node %.*s can only evict pods with spec.nodeName set to itself",
                                 NODE_TEXT(node));
}

static bool restrict_pods(struct kube_admission_write *w, struct slice node)
{
    if (!w->subresource.len)
        return restrict_pod(w, node);
    if (slice_is(w->subresource, "status"))
        return restrict_pod_status(w, node);
    if (slice_is(w->subresource, "eviction"))
        return restrict_eviction(w, node);
    return kube_admission_forbid(
        w, "unexpected pod subresource \"%.*s\", only 'status' and 'eviction' are allowed",
        SLICE_ARGS(w->subresource));
}

/* -- Nodes -- */

static bool has_suffix(struct slice text, const char *suffix)
{
    size_t len = strlen(suffix);
    return text.len >= len && slice_is(slice_sub(text, text.len - len, len), suffix);
}

/* The domain or one below it. */
static bool is_domain(struct slice domain, const char *of)
{
    size_t len = strlen(of);
    return has_suffix(domain, of) && (domain.len == len || domain.ptr[domain.len - len - 1] == '.');
}

/* Labels that kubelets set, and others that do not steer pods. */
static bool is_permitted(struct slice key)
{
    static const char *const known[] = {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    };
    struct slice rest = key, domain = SLICE_EMPTY;
    if (memchr(key.ptr, '/', key.len))
        domain = slice_cut(&rest, '/');
    if (is_domain(domain, "node-restriction.kubernetes.io"))
        return false;
    if (!is_domain(domain, "kubernetes.io") && !is_domain(domain, "k8s.io"))
        return true;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (slice_is(key, known[i]))
            return true;
    return is_domain(domain, "kubelet.kubernetes.io") || is_domain(domain, "node.kubernetes.io");
}

static void add_forbidden(struct kube_text_list *list, const struct json_node *labels,
                          const struct json_node *others, bool missing_only)
{
    const struct json_node *label =
        labels && labels->type == JSON_TYPE_OBJECT ? labels->first : NULL;
    for (; label; label = label->next) {
        const struct json_node *other = json_look_member(others, label->key);
        bool differs = missing_only ? !other : !other || !json_node_equal(label, other);
        if (differs && !is_permitted(label->key))
            kube_text_add(list, label->key);
    }
}

/* "a, b" of the labels that the node may not change, sorted; empty: it changes none. */
static struct slice forbidden_labels(struct kube_admission_write *w)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy = SLICE_EMPTY;
    struct kube_text_list list = {.arena = w->arena};
    const struct json_node *is = json_node_path(w->object, "metadata.labels");
    const struct json_node *was = json_node_path(w->old, "metadata.labels");
    add_forbidden(&list, is, was, false);
    add_forbidden(&list, was, is, true);
    slices_sort(list.items, list.count);
    for (size_t i = 0; i < list.count; i++)
        if (buf_append_text(&text, i ? ", " : "") != ST_OK ||
            buf_append(&text, list.items[i]) != ST_OK)
            return list.items[0];
    (void)!arena_dup(w->arena, buf_slice(&text), &copy);
    return copy;
}

static bool restrict_node(struct kube_admission_write *w, struct slice node)
{
    struct slice name = name_of(w), labels;
    bool configured = json_node_is_set(json_node_path(wanted(w), "spec.configSource"));
    if (!slice_equal(name, node))
        return kube_admission_forbid(w, "node \"%.*s\" is not allowed to modify node \"%.*s\"",
                                     NODE_TEXT(node), NODE_TEXT(name));
    if (w->operation == KUBE_ADMISSION_CREATE) {
        if (configured)
            return kube_admission_forbid(
                w, "node \"%.*s\" is not allowed to create pods with a non-nil configSource",
                NODE_TEXT(node));
        labels = forbidden_labels(w);
        return !labels.len ||
               kube_admission_forbid(
                   w, "node \"%.*s\" is not allowed to set the following labels: %.*s",
                   NODE_TEXT(node), SLICE_ARGS(labels));
    }
    if (w->operation == KUBE_ADMISSION_DELETE)
        return true;
    if (configured && !is_same_at(w, "spec.configSource"))
        return kube_admission_forbid(w,
                                     "node \"%.*s\" is not allowed to update configSource to a "
                                     "new non-nil configSource",
                                     NODE_TEXT(node));
    if (!is_same_at(w, "spec.taints"))
        return kube_admission_forbid(w, "node \"%.*s\" is not allowed to modify taints",
                                     NODE_TEXT(node));
    if (!is_same_at(w, "metadata.ownerReferences"))
        return kube_admission_forbid(w, "node \"%.*s\" is not allowed to modify ownerReferences",
                                     NODE_TEXT(node));
    labels = forbidden_labels(w);
    return !labels.len ||
           kube_admission_forbid(w, "is not allowed to modify labels: %.*s", SLICE_ARGS(labels));
}

/* -- Claims -- */

/* As the server sets it by default, in what the client has put as well. */
static bool is_member_same(const struct json_node *a, const struct json_node *b, struct slice key)
{
    static const struct {
        const char *key, *value;
    } defaults[] = {{"volumeMode", "Filesystem"}, {"phase", "Pending"}};
    const struct json_node *mine = json_look_member(a, key), *other = json_look_member(b, key);
    for (size_t i = 0; i < COUNT_OF(defaults); i++)
        if (slice_is(key, defaults[i].key) && is_zero(mine) != is_zero(other))
            return json_node_text_is(is_zero(mine) ? b : a, defaults[i].key, defaults[i].value);
    return is_same(mine, other);
}

/* Whether two objects differ besides these members. */
static bool differ(const struct json_node *a, const struct json_node *b, const char *const *except)
{
    const struct json_node *both[] = {a, b};
    for (size_t i = 0; i < COUNT_OF(both); i++)
        for (const struct json_node *m = both[i] ? both[i]->first : NULL; m; m = m->next) {
            bool known = false;
            for (const char *const *name = except; *name && !known; name++)
                known = slice_is(m->key, *name);
            if (!known && !is_member_same(a, b, m->key))
                return true;
        }
    return false;
}

static bool restrict_claim(struct kube_admission_write *w, struct slice node)
{
    static const char *const none[] = {NULL};
    static const char *const metadata[] = {"resourceVersion", "managedFields", NULL};
    static const char *const status[] = {"capacity", "conditions", "allocatedResourceStatuses",
                                         "allocatedResources", NULL};
    if (!slice_is(w->subresource, "status"))
        return kube_admission_forbid(w, "may only update PVC status");
    if (w->operation != KUBE_ADMISSION_UPDATE)
        return kube_admission_forbid(w, "unexpected operation \"%s\"", operations[w->operation]);
    const struct json_node *claim = wanted(w);
    const char *where = NULL;
    if (differ(json_node_named(claim, "spec"), json_node_named(w->old, "spec"), none))
        where = "spec";
    else if (differ(json_node_named(claim, "metadata"), json_node_named(w->old, "metadata"),
                    metadata))
        where = "metadata";
    else if (differ(json_node_named(claim, "status"), json_node_named(w->old, "status"), status))
        where = "status";
    return !where ||
           kube_admission_forbid(w,
                                 "node \"%.*s\" is not allowed to update fields other than "
                                 "status.quantity and status.conditions: %s differs",
                                 NODE_TEXT(node), where);
}

static bool restrict_account(struct kube_admission_write *w, struct slice node)
{
    return !slice_is(w->subresource, "token") || w->operation != KUBE_ADMISSION_CREATE ||
           kube_node_restrict_token(w, node);
}

/* -- What has the name of the node -- */

static bool restrict_lease(struct kube_admission_write *w, struct slice node)
{
    if (!slice_is(w->namespace, LEASES_NAMESPACE))
        return kube_admission_forbid(w, "can only access leases in the \"" LEASES_NAMESPACE
                                        "\" system namespace");
    return slice_equal(name_of(w), node) ||
           kube_admission_forbid(
               w, "can only access node lease with the same name as the requesting node");
}

static bool restrict_csi_node(struct kube_admission_write *w, struct slice node)
{
    return slice_equal(name_of(w), node) ||
           kube_admission_forbid(
               w, "can only access CSINode with the same name as the requesting node");
}

static bool restrict_slice(struct kube_admission_write *w, struct slice node)
{
    /* The authorizer knows the node of one that exists. */
    if (w->operation == KUBE_ADMISSION_UPDATE)
        return true;
    bool deletes = w->operation == KUBE_ADMISSION_DELETE;
    const struct json_node *of = deletes ? w->old : w->object;
    return slice_equal(kube_node_text(w, of, "spec.nodeName"), node) ||
           kube_admission_forbid(
               w, "can only %s ResourceSlice with the same NodeName as the requesting node",
               deletes ? "delete" : "create");
}

static bool restrict_certificate(struct kube_admission_write *w, struct slice node)
{
    const struct json_node *spec = json_node_named(w->object, "spec");
    struct slice text = kube_node_text(w, spec, "request");
    bool has = false;
    size_t len = 0;
    if (!json_node_text_is(spec, "signerName", "kubernetes.io/kubelet-serving") &&
        !json_node_text_is(spec, "signerName", "kubernetes.io/kube-apiserver-client-kubelet"))
        return true;
    if (w->operation != KUBE_ADMISSION_CREATE)
        return true;
    uint8_t *pem = arena_alloc(w->arena, text.len / 4 * 3 + 3);
    if (!pem)
        return kube_fail_engine(w->status, ST_NOMEM);
    if (!base64_decode(text, pem, &len))
        return kube_admission_forbid(w, "unable to parse csr: it is not base64");
    switch (tls_request_has_name(slice_of(pem, len), w->user->name, &has)) {
    case TLS_REQUEST_FINE:
        break;
    case TLS_REQUEST_NO_MEMORY:
        return kube_fail_engine(w->status, ST_NOMEM);
    case TLS_REQUEST_OTHER_PEM:
        return kube_admission_forbid(
            w, "unable to parse csr: PEM block type must be CERTIFICATE REQUEST");
    default:
        return kube_admission_forbid(w, "unable to parse csr: it is malformed");
    }
    return has || kube_admission_forbid(w, "can only create a node CSR with CN=system:node:%.*s",
                                        NODE_TEXT(node));
}

/* -- The plugin -- */

typedef bool restrict_fn(struct kube_admission_write *write, struct slice node);

static const struct {
    const char *group, *plural;
    restrict_fn *restrict_;
} kinds[] = {
    {"", "pods", restrict_pods},
    {"", "nodes", restrict_node},
    {"", "persistentvolumeclaims", restrict_claim},
    {"", "serviceaccounts", restrict_account},
    {"coordination.k8s.io", "leases", restrict_lease},
    {"storage.k8s.io", "csinodes", restrict_csi_node},
    {"resource.k8s.io", "resourceslices", restrict_slice},
    {"certificates.k8s.io", "certificatesigningrequests", restrict_certificate},
};

bool kube_node_restrict(struct kube_admission_write *w)
{
    struct slice node;
    if (!w->user || !kube_user_is_node(w->user, &node))
        return true;
    if (!node.len)
        return kube_admission_forbid(w, "could not determine node from user \"%.*s\"",
                                     SLICE_ARGS(w->user->name));
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kube_kind_is(w->kind, kinds[i].group, kinds[i].plural))
            return kinds[i].restrict_(w, node);
    return true;
}

/* A deletion is checked once the object is known. */
static bool check(struct kube_admission_write *w)
{
    return w->operation != KUBE_ADMISSION_DELETE || kube_node_restrict(w);
}

#define EVERY (KUBE_ON_CREATE | KUBE_ON_UPDATE | KUBE_ON_DELETE)

const struct kube_admission_plugin kube_node_restriction = {
    .name = "NodeRestriction",
    .is_optional = true,
    /* A node without a name may write nothing. */
    .rules = {{NULL, NULL, NULL, EVERY}},
    .admit = kube_node_restrict,
    .check = check,
};
