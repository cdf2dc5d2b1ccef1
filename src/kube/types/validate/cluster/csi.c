/* CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"
#include "kube/types/validate/workload/volume.h"

#include <stdlib.h>

enum {
    PERIOD_SECONDS_MIN = 10,
    DRIVER_BYTES_MAX = 63,
    NODE_ID_BYTES_MAX = 256,
    MESSAGE_BYTES_MAX = 1024,
    METADATA_BYTES_MAX = 256 * 1024,
};

/* -- Drivers -- */

static void check_token_requests(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen audiences = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice audience = rule_text(c, item, "audience");
        if (!seen_add(c, &audiences, audience))
            bad_repeat(c, AT(in, "audience"), audience);
        else
            rule_rows(c, in, item, rule_token_seconds);
    }
}

void kube_validate_csi_driver(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    static const struct rule rules[] = {
        {"fsGroupPolicy", IF_SET, CHOICE("File,None,ReadWriteOnceWithFSType")},
        {"tokenRequests", ALWAYS, PART(check_token_requests)},
        {"volumeLifecycleModes", EACH_AT, CHOICE("Persistent,Ephemeral")},
        {"nodeAllocatableUpdatePeriodSeconds", IF_SET,
         WITHIN(PERIOD_SECONDS_MIN, INT64_MAX, "must be greater than or equal to 10 seconds")},
    };
    const struct json_node *spec = rule_member(object, "spec"), *was = rule_member(old, "spec");
    const struct json_node *in_secrets = rule_member(spec, "serviceAccountTokenInSecrets");
    const struct at *at = AT(NULL, "spec");
    rule_rows(c, at, spec, rules);
    if (in_secrets && !rule_filled(spec, "tokenRequests"))
        bad_node(c, AT(at, "serviceAccountTokenInSecrets"), in_secrets,
                 "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    if (old)
        rule_fixed(c, at, spec, was, "attachRequired=attachedRequired,volumeLifecycleModes");
}

/* Its case does not count. */
static void check_driver_name(struct check *c, const struct at *at, struct slice name)
{
    char why[NAME_ERROR_BYTES];
    if (!name.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (name.len > DRIVER_BYTES_MAX)
        bad_long(c, at, DRIVER_BYTES_MAX);
    if (!subdomain_valid(rule_lower(c, name), why))
        bad_texts(c, at, name, "", why);
}

/* -- Nodes -- */

static void check_topology_keys(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen seen = {0};
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        struct slice key = rule_text_of(c, item);
        if (!key.len)
            bad_required(c, at, NULL);
        if (!seen_add(c, &seen, key))
            bad_repeat(c, at, key);
        rule_name(c, at, key, label_key_valid);
    }
}

static void check_driver(struct check *c, const struct at *at, const struct json_node *driver,
                         struct seen *seen)
{
    struct slice name = rule_text(c, driver, "name"), id = rule_text(c, driver, "nodeID");
    const struct json_node *room = rule_member(driver, "allocatable");
    check_driver_name(c, AT(at, "name"), name);
    if (!id.len)
        bad_required(c, AT(at, "nodeID"), NULL);
    if (id.len > NODE_ID_BYTES_MAX)
        bad_text(c, AT(at, "nodeID"), id, "must be 256 characters or less");
    rule_not_negative(c, AT(AT(at, "allocatable"), "count"), rule_int(room, "count", 0));
    if (!seen_add(c, seen, name))
        bad_repeat(c, AT(at, "name"), name);
    check_topology_keys(c, at, rule_member(driver, "topologyKeys"));
}

struct named {
    struct slice name;
    const struct json_node *node;
};

static int named_order(const void *a, const void *b)
{
    return slice_compare(((const struct named *)a)->name, ((const struct named *)b)->name);
}

SHOWN_TYPE(driver_type, SHOWN_TEXT("Name", "name"), SHOWN_TEXT("NodeID", "nodeID"),
           SHOWN_NULL("TopologyKeys", "topologyKeys"), SHOWN_NULL("Allocatable", ""));

/* Drivers may be added and removed, and how many volumes one allows may change. */
static void check_kept_drivers(struct check *c, const struct at *at, const struct json_node *list,
                               const struct json_node *old)
{
    size_t count = rule_count(list), n = 0;
    struct named *drivers = count ? arena_calloc(c->arena, count, sizeof(*drivers)) : NULL;
    if (!drivers) {
        c->errors->no_memory = c->errors->no_memory || count;
        return;
    }
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        drivers[n++] = (struct named){rule_text(c, item, "name"), item};
    qsort(drivers, n, sizeof(*drivers), named_order);
    for (const struct json_node *item = rule_first(old); item; item = item->next) {
        struct named key = {rule_text(c, item, "name"), item};
        const struct named *is = bsearch(&key, drivers, n, sizeof(*drivers), named_order);
        /* A driver that stays may not become that of another node. */
        if (is && (!rule_same_member(is->node, item, "nodeID") ||
                   !rule_same_member(is->node, item, "topologyKeys")))
            bad_raw(c, at, show_struct(c, is->node, &driver_type), "field is immutable");
    }
}

void kube_validate_csi_node(struct check *c, const struct json_node *object,
                            const struct json_node *old)
{
    const struct json_node *drivers = rule_member(rule_member(object, "spec"), "drivers");
    const struct at *at = AT(AT(NULL, "spec"), "drivers");
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(drivers); item; item = item->next)
        check_driver(c, AT_ITEM(at, i++), item, &seen);
    check_kept_drivers(c, at, drivers, rule_member(rule_member(old, "spec"), "drivers"));
}

/* -- Capacities -- */

void kube_validate_csi_capacity(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    static const struct rule rules[] = {
        {"storageClassName", ALWAYS, NAME(subdomain_valid)},
        {"capacity", IF_SET, PART(rule_quantity_not_negative)},
    };
    const struct json_node *topology = rule_member(object, "nodeTopology");
    rule_kept_selector(c, AT(NULL, "nodeTopology"), topology, rule_member(old, "nodeTopology"));
    rule_rows(c, NULL, object, rules);
    if (old)
        rule_fixed(c, NULL, object, old, "nodeTopology,storageClassName");
}

/* -- Attachments -- */

static void check_inline(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const char *const never[] = {"claimRef", "capacity"};
    static const char reason[] = "may not be specified in the context of inline volumes";
    struct slice policy = rule_text(c, spec, "persistentVolumeReclaimPolicy");
    for (size_t i = 0; i < COUNT_OF(never); i++) {
        const struct json_node *node = rule_member(spec, never[i]);
        /* An empty capacity counts as none. */
        if (node && (i == 0 || node->first))
            bad_forbidden(c, AT(at, never[i]), reason);
    }
    if (!rule_member(spec, "csi"))
        bad_required(c, AT(at, "csi"), "has to be specified in the context of inline volumes");
    rule_one(c, at, spec, "accessModes", NEEDED, WHY(NULL));
    rule_access_modes(c, AT(at, "accessModes"), rule_member(spec, "accessModes"));
    if (policy.len && !slice_is(policy, "Retain"))
        bad_forbidden(c, AT(at, "persistentVolumeReclaimPolicy"),
                      "may only be Retain in the context of inline volumes");
    if (rule_member(spec, "nodeAffinity"))
        bad_forbidden(c, AT(at, "nodeAffinity"), reason);
    rule_volume_source(c, at, spec, VOLUME_OF_CLUSTER);
    if (rule_text(c, spec, "storageClassName").len)
        bad_forbidden(c, AT(at, "storageClassName"), reason);
    if (!rule_choice_is(spec, "volumeMode", "Filesystem", "Filesystem"))
        bad_forbidden(c, AT(at, "volumeMode"),
                      "may not specify volumeMode other than Filesystem in the context of inline "
                      "volumes");
}

static void check_attached(struct check *c, const struct at *at, const struct json_node *source)
{
    static const char both[] = "must specify exactly one of inlineVolumeSpec and "
                               "persistentVolumeName";
    const struct json_node *spec = rule_member(source, "inlineVolumeSpec");
    const struct json_node *name = rule_member(source, "persistentVolumeName");
    if (!spec && !name)
        bad_required(c, at, both);
    else if (spec && name)
        bad_forbidden(c, at, both);
    else if (spec)
        check_inline(c, AT(at, "inlineVolumeSpec"), spec);
    else if (!rule_text_of(c, name).len)
        bad_required(c, AT(at, "persistentVolumeName"),
                     "must specify non empty persistentVolumeName");
}

static void check_volume_error(struct check *c, const struct at *at, const struct json_node *error)
{
    int64_t code = rule_int(error, "errorCode", 0);
    if (rule_text(c, error, "message").len > MESSAGE_BYTES_MAX)
        bad_long(c, AT(at, "message"), METADATA_BYTES_MAX); /* as Kubernetes says */
    if (code < 0)
        rule_range(c, AT(at, "errorCode"), code, 0, INT32_MAX);
}

static void check_attachment(struct check *c, const struct json_node *object)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *status = rule_member(object, "status");
    const struct json_node *source = rule_member(spec, "source");
    const struct at *at = AT(NULL, "spec"), *state = AT(NULL, "status");
    size_t bytes = 0;
    check_driver_name(c, AT(at, "attacher"), rule_text(c, spec, "attacher"));
    check_attached(c, AT(at, "source"), source);
    rule_name(c, AT(at, "nodeName"), rule_text(c, spec, "nodeName"), subdomain_valid);
    for (const struct json_node *item = rule_first(rule_member(status, "attachmentMetadata")); item;
         item = item->next)
        bytes += item->key.len + rule_text_of(c, item).len;
    if (bytes > METADATA_BYTES_MAX)
        bad_long(c, AT(state, "attachmentMetadata"), METADATA_BYTES_MAX);
    check_volume_error(c, AT(state, "attachError"), rule_member(status, "attachError"));
    check_volume_error(c, AT(state, "detachError"), rule_member(status, "detachError"));
    rule_one(c, AT(at, "source"), source, "persistentVolumeName", IF_SET, NAME(subdomain_valid));
}

SHOWN_TYPE(source_type, SHOWN_NULL("PersistentVolumeName", "persistentVolumeName"),
           SHOWN_NULL("InlineVolumeSpec", "inlineVolumeSpec"));

SHOWN_TYPE(attachment_type, SHOWN_TEXT("Attacher", "attacher"),
           {"Source", "source", "{}", &source_type}, SHOWN_TEXT("NodeName", "nodeName"));

void kube_validate_volume_attachment(struct check *c, const struct json_node *object,
                                     const struct json_node *old)
{
    check_attachment(c, object);
    if (old && !rule_same_member(object, old, "spec"))
        bad_raw(c, AT(NULL, "spec"), show_struct(c, rule_member(object, "spec"), &attachment_type),
                "field is immutable");
}

void kube_validate_volume_attachment_status(struct check *c, const struct json_node *object,
                                            const struct json_node *old)
{
    (void)old;
    check_attachment(c, object);
}
