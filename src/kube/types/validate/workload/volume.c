#include "kube/types/validate/workload/volume.h"
#include "kube/types/validate/rules.h"

#include "kube/types/validate/kinds.h"
#include "kube/types/validate/quantity.h"

#define FILE_MODE WITHIN(0, 0777, "must be a number between 0 and 0777 (octal), both inclusive")
#define NOTHING WHY(NULL)

/* -- Paths -- */

static bool has_parent_step(struct slice path)
{
    for (size_t i = 0; i + 1 < path.len; i++) {
        /* Two dots are a step up only as a whole part: "a..b" is a name. */
        bool begins = !i || path.ptr[i - 1] == '/';
        bool ends = i + 2 == path.len || path.ptr[i + 2] == '/';
        if (begins && ends && memcmp(path.ptr + i, "..", 2) == 0)
            return true;
    }
    return false;
}

void rule_path_stays(struct check *c, const struct at *at, struct slice path)
{
    if (has_parent_step(path))
        bad_text(c, at, path, "must not contain '..'");
}

void rule_path_descends(struct check *c, const struct at *at, struct slice path)
{
    if (path.len && path.ptr[0] == '/')
        bad_text(c, at, path, "must be a relative path");
    rule_path_stays(c, at, path);
}

void rule_local_path(struct check *c, const struct at *at, struct slice path)
{
    rule_path_descends(c, at, path);
    /* Otherwise it has been refused. */
    if (!has_parent_step(path) && path.len >= 2 && memcmp(path.ptr, "..", 2) == 0)
        bad_text(c, at, path, "must not start with '..'");
}

/* -- Files -- */

static const struct rule key_path_rules[] = {
    {"key", NEEDED, NOTHING},
    {"path", NEEDED, NOTHING},
    {"path", ALWAYS, TEXT(rule_local_path)},
    {"mode", ALWAYS, FILE_MODE},
};

static void check_downward_file(struct check *c, const struct at *at, const struct json_node *file)
{
    const struct json_node *field = rule_member(file, "fieldRef");
    const struct json_node *resource = rule_member(file, "resourceFieldRef");
    static const struct rule of_path[] = {
        {"path", NEEDED, NOTHING},
        {"path", ALWAYS, TEXT(rule_local_path)},
    };
    rule_rows(c, at, file, of_path);
    if (field) {
        rule_field_ref(c, AT(at, "fieldRef"), field,
                       "metadata.annotations,metadata.labels,metadata.name,metadata.namespace,"
                       "metadata.uid");
        if (resource)
            bad_text(c, at, SLICE_LITERAL("resource"),
                     "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (resource) {
        rule_resource_ref(c, AT(at, "resourceFieldRef"), resource, true);
    } else {
        bad_required(c, at, "one of fieldRef and resourceFieldRef is required");
    }
    rule_one(c, at, file, "mode", ALWAYS, FILE_MODE);
}

/* -- Projections -- */

/* Paths of all sources of a volume; each may be there once. */
static void check_distinct(struct check *c, const struct at *at, struct seen *paths,
                           const struct json_node *items, struct slice shown)
{
    for (const struct json_node *item = rule_first(items); item; item = item->next) {
        struct slice path = rule_text(c, item, "path");
        if (path.len && !seen_add(c, paths, path))
            bad_text(c, at, shown.len ? shown : path, "conflicting duplicate paths");
    }
}

static void check_keys_projection(struct check *c, const struct at *at, const struct at *volume,
                                  const struct json_node *source, struct seen *paths)
{
    static const struct rule rules[] = {
        {"name", NEEDED, NOTHING},
        {"items", EACH, ROWS(key_path_rules)},
    };
    rule_rows(c, at, source, rules);
    check_distinct(c, volume, paths, rule_member(source, "items"), rule_text(c, source, "name"));
}

const struct rule rule_token_seconds[2] = {
    {"expirationSeconds", IF_SET,
     WITHIN(600, INT64_MAX, "may not specify a duration less than 10 minutes")},
    {"expirationSeconds", IF_SET,
     WITHIN(INT64_MIN, 1LL << 32, "may not specify a duration larger than 2^32 seconds")},
};

static void check_projection(struct check *c, const struct at *at, const struct at *volume,
                             const struct json_node *item, struct seen *paths)
{
    const struct json_node *secret = rule_member(item, "secret"),
                           *map = rule_member(item, "configMap");
    const struct json_node *downward = rule_member(item, "downwardAPI");
    const struct json_node *token = rule_member(item, "serviceAccountToken");
    if (secret)
        check_keys_projection(c, AT(at, "secret"), volume, secret, paths);
    if (map)
        check_keys_projection(c, AT(at, "configMap"), volume, map, paths);
    for (const struct json_node *file = rule_first(rule_member(downward, "items")); file;
         file = file->next)
        check_downward_file(c, AT(at, "downwardAPI"), file);
    check_distinct(c, volume, paths, rule_member(downward, "items"), SLICE_EMPTY);
    if (token) {
        struct slice path = rule_text(c, token, "path");
        rule_rows(c, AT(at, "serviceAccountToken"), token, rule_token_seconds);
        /* The path of the token is reported at the volume and not at its source, as in
         * Kubernetes. */
        if (!path.len)
            bad_required(c, AT(volume, "path"), NULL);
        else
            rule_local_path(c, AT(volume, "path"), path);
    }
    if ((secret != NULL) + (map != NULL) + (downward != NULL) + (token != NULL) > 1)
        bad_forbidden(c, at, "may not specify more than 1 volume type per source");
}

static void check_projected(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct at *list = AT(at, "sources");
    struct seen paths = {0};
    size_t i = 0;
    rule_one(c, at, source, "defaultMode", ALWAYS, FILE_MODE);
    for (const struct json_node *item = rule_first(rule_member(source, "sources")); item;
         item = item->next)
        check_projection(c, AT_ITEM(list, i++), at, item, &paths);
}

/* -- Sources -- */

static void check_empty_dir(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct json_node *limit = rule_member(source, "sizeLimit");
    if (limit && quantity_of(c, limit) < 0)
        bad_forbidden(c, AT(at, "sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

#define HOST_PATH_TYPES \
    ",BlockDevice,CharDevice,Directory,DirectoryOrCreate,File,FileOrCreate,Socket"

static void check_host_path(struct check *c, const struct at *at, const struct json_node *source)
{
    static const struct rule rules[] = {
        {"path", NEEDED, TEXT(rule_path_stays)},
        {"type", IF_SOME, CHOICE(HOST_PATH_TYPES)},
    };
    rule_apply(c, at, source, rules, rule_text(c, source, "path").len ? COUNT_OF(rules) : 1);
}

static const struct rule git_rules[] = {
    {"repository", NEEDED, NOTHING},
    {"directory", ALWAYS, TEXT(rule_path_descends)},
};

static const struct rule secret_rules[] = {
    {"secretName", NEEDED, NOTHING},
    {"defaultMode", ALWAYS, FILE_MODE},
    {"items", EACH, ROWS(key_path_rules)},
};

static const struct rule map_rules[] = {
    {"name", NEEDED, NOTHING},
    {"defaultMode", ALWAYS, FILE_MODE},
    {"items", EACH, ROWS(key_path_rules)},
};

static void check_downward(struct check *c, const struct at *at, const struct json_node *source)
{
    rule_one(c, at, source, "defaultMode", ALWAYS, FILE_MODE);
    for (const struct json_node *file = rule_first(rule_member(source, "items")); file;
         file = file->next)
        check_downward_file(c, at, file);
}

static void check_absolute(struct check *c, const struct at *at, struct slice path)
{
    if (!path.len || path.ptr[0] != '/')
        bad_text(c, at, path, "must be an absolute path");
}

static const struct rule nfs_rules[] = {
    {"server", NEEDED, NOTHING},
    {"path", NEEDED, NOTHING},
    {"path", ALWAYS, TEXT(check_absolute)},
};

static const struct rule local_rules[] = {
    {"path", NEEDED, NOTHING},
    {"path", ALWAYS, TEXT(rule_path_stays)},
};

static void check_csi_driver(struct check *c, const struct at *at, struct slice driver)
{
    char why[NAME_ERROR_BYTES];
    if (!driver.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (driver.len > 63)
        bad_long(c, at, 63);
    if (!subdomain_valid(rule_lower(c, driver), why))
        bad_text(c, at, driver, why);
}

static const struct rule secret_ref_rules[] = {
    {"name", NEEDED, NAME(subdomain_valid)},
    {"namespace", NEEDED, NAME(dns_label_valid)},
};

static const struct rule csi_cluster_rules[] = {
    {"driver", ALWAYS, TEXT(check_csi_driver)},
    {"volumeHandle", NEEDED, NOTHING},
    {"controllerPublishSecretRef", IF_SET, ROWS(secret_ref_rules)},
    {"controllerExpandSecretRef", IF_SET, ROWS(secret_ref_rules)},
    {"nodePublishSecretRef", IF_SET, ROWS(secret_ref_rules)},
    {"nodeExpandSecretRef", IF_SET, ROWS(secret_ref_rules)},
};

static void check_csi(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct json_node *ref = rule_member(source, "nodePublishSecretRef");
    check_csi_driver(c, AT(at, "driver"), rule_text(c, source, "driver"));
    if (!ref)
        return;
    if (!rule_text(c, ref, "name").len)
        bad_required(c, AT(AT(at, "nodePublishSecretRef"), "name"), NULL);
    else
        rule_name(c, AT(at, "name"), rule_text(c, ref, "name"), subdomain_valid);
}

static void check_ephemeral(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct json_node *template = rule_member(source, "volumeClaimTemplate");
    const struct at *in = AT(at, "volumeClaimTemplate");
    if (!template) {
        bad_required(c, in, NULL);
        return;
    }
    rule_labels(c, AT(AT(in, "metadata"), "labels"), json_node_path(template, "metadata.labels"));
    rule_claim_spec(c, AT(in, "spec"), rule_member(template, "spec"));
}

enum {
    OF_POD = 1 << VOLUME_OF_POD,
    OF_CLUSTER = 1 << VOLUME_OF_CLUSTER,
    OF_BOTH = OF_POD | OF_CLUSTER,
};
#define NEEDS(...) .needed = {__VA_ARGS__}

/* The order of Kubernetes. Of sources that are rarely used only the required members are checked.
 */
static const struct volume_type {
    const char *name;
    unsigned owners;
    const char *needed[3];
    const struct rule *rows;
    size_t count;
    void (*part)(struct check *c, const struct at *at, const struct json_node *source);
    const char *shown; /* the name in errors; NULL: its own */
} types[] = {
    {"emptyDir", OF_POD, PART(check_empty_dir)},
    {"hostPath", OF_BOTH, PART(check_host_path)},
    {"gitRepo", OF_POD, ROWS(git_rules)},
    {"gcePersistentDisk", OF_BOTH, NEEDS("pdName"), SHOWN("persistentDisk")},
    {"awsElasticBlockStore", OF_BOTH, NEEDS("volumeID")},
    {"secret", OF_POD, ROWS(secret_rules)},
    {"nfs", OF_BOTH, ROWS(nfs_rules)},
    {"iscsi", OF_BOTH, NEEDS("targetPortal", "iqn")},
    {"glusterfs", OF_BOTH, NEEDS("endpoints", "path")},
    {"flocker", OF_BOTH, NEEDS(NULL)},
    {"persistentVolumeClaim", OF_POD, NEEDS("claimName")},
    {"rbd", OF_BOTH, NEEDS("monitors", "image")},
    {"cinder", OF_BOTH, NEEDS("volumeID")},
    {"cephfs", OF_BOTH, NEEDS("monitors")},
    {"quobyte", OF_BOTH, NEEDS("volume")},
    {"downwardAPI", OF_POD, PART(check_downward)},
    {"fc", OF_BOTH, NEEDS(NULL)},
    {"flexVolume", OF_BOTH, NEEDS("driver")},
    {"configMap", OF_POD, ROWS(map_rules)},
    {"azureFile", OF_BOTH, NEEDS("secretName", "shareName")},
    {"vsphereVolume", OF_BOTH, NEEDS("volumePath")},
    {"photonPersistentDisk", OF_BOTH, NEEDS("pdID")},
    {"portworxVolume", OF_BOTH, NEEDS("volumeID")},
    {"azureDisk", OF_BOTH, NEEDS("diskName", "diskURI")},
    {"storageos", OF_BOTH, NEEDS(NULL)},
    {"projected", OF_POD, PART(check_projected)},
    {"scaleIO", OF_BOTH, NEEDS("gateway", "system", "volumeName")},
    {"local", OF_CLUSTER, ROWS(local_rules)},
    {"csi", OF_BOTH, PART(check_csi)},
    {"ephemeral", OF_POD, PART(check_ephemeral)},
    {"image", OF_POD, NEEDS(NULL)},
};

static void check_typed(struct check *c, const struct at *at, const struct volume_type *type,
                        const struct json_node *source, enum volume_owner owner)
{
    const struct at *in = AT(at, type->shown ? type->shown : type->name);
    for (size_t i = 0; i < COUNT_OF(type->needed) && type->needed[i]; i++)
        rule_apply(c, in, source, &(struct rule){type->needed[i], NEEDED, NOTHING}, 1);
    rule_apply(c, in, source, type->rows, type->count);
    /* A persistent volume has another CSI source than a pod, with the same name. */
    if (type->part == check_csi && owner == VOLUME_OF_CLUSTER)
        rule_rows(c, in, source, csi_cluster_rules);
    else if (type->part)
        type->part(c, in, source);
}

void rule_volume_source(struct check *c, const struct at *at, const struct json_node *source,
                        enum volume_owner owner)
{
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const struct volume_type *type = &types[i];
        bool fits = type->owners & (1u << owner);
        const struct json_node *node = fits ? rule_member(source, type->name) : NULL;
        /* Only the first type is examined any further. */
        if (node && found)
            bad_forbidden(c, AT(at, type->name), "may not specify more than 1 volume type");
        else if (node)
            check_typed(c, at, type, node, owner);
        found = found || node;
    }
    if (!found)
        bad_required(c, at, "must specify a volume type");
}
