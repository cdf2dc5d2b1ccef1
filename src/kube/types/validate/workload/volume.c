#include "kube/types/validate/workload/volume.h"

#include "kube/types/validate/kinds.h"
#include "kube/types/validate/quantity.h"

#define FILE_MODE "must be a number between 0 and 0777 (octal), both inclusive"

/* -- Paths -- */

static bool has_parent_step(struct slice path)
{
    for (size_t i = 0; i + 1 < path.len; i++) {
        bool begins = !i || path.ptr[i - 1] == '/';
        bool ends = i + 2 == path.len || path.ptr[i + 2] == '/';
        if (begins && ends && memcmp(path.ptr + i, "..", 2) == 0)
            return true;
    }
    return false;
}

static bool is_absolute(struct slice path)
{
    return path.len && path.ptr[0] == '/';
}

void rule_path_stays(struct check *c, const struct at *at, struct slice path)
{
    if (has_parent_step(path))
        bad_text(c, at, path, "must not contain '..'");
}

static void check_descending(struct check *c, const struct at *at, struct slice path)
{
    if (is_absolute(path))
        bad_text(c, at, path, "must be a relative path");
    rule_path_stays(c, at, path);
}

void rule_local_path(struct check *c, const struct at *at, struct slice path)
{
    check_descending(c, at, path);
    /* Otherwise it has been refused. */
    if (!has_parent_step(path) && path.len >= 2 && memcmp(path.ptr, "..", 2) == 0)
        bad_text(c, at, path, "must not start with '..'");
}

/* -- Files -- */

static void check_mode(struct check *c, const struct at *at, const struct json_node *of,
                       const char *name)
{
    int64_t mode = rule_int(of, name, 0);
    if (mode < 0 || mode > 0777)
        bad_int(c, AT(at, name), mode, FILE_MODE);
}

static void need(struct check *c, const struct at *at, const struct json_node *of, const char *name)
{
    const struct json_node *node = rule_member(of, name);
    if (!node || (!node->first && !rule_text_of(c, node).len))
        bad_required(c, AT(at, name), NULL);
}

static void check_key_path(struct check *c, const struct at *at, const struct json_node *item)
{
    need(c, at, item, "key");
    need(c, at, item, "path");
    rule_local_path(c, AT(at, "path"), rule_text(c, item, "path"));
    check_mode(c, at, item, "mode");
}

static void check_key_paths(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct at *list = AT(at, "items");
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(source, "items")); item;
         item = item->next)
        check_key_path(c, AT_ITEM(list, i++), item);
}

static void check_downward_file(struct check *c, const struct at *at, const struct json_node *file)
{
    const struct json_node *field = rule_member(file, "fieldRef");
    const struct json_node *resource = rule_member(file, "resourceFieldRef");
    need(c, at, file, "path");
    rule_local_path(c, AT(at, "path"), rule_text(c, file, "path"));
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
    check_mode(c, at, file, "mode");
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
    need(c, at, source, "name");
    check_key_paths(c, at, source);
    check_distinct(c, volume, paths, rule_member(source, "items"), rule_text(c, source, "name"));
}

static void check_token_projection(struct check *c, const struct at *at, const struct at *volume,
                                   const struct json_node *source)
{
    int64_t seconds = rule_int(source, "expirationSeconds", 3600);
    struct slice path = rule_text(c, source, "path");
    if (seconds < 600)
        bad_int(c, AT(at, "expirationSeconds"), seconds,
                "may not specify a duration less than 10 minutes");
    if (seconds > 1LL << 32)
        bad_int(c, AT(at, "expirationSeconds"), seconds,
                "may not specify a duration larger than 2^32 seconds");
    if (!path.len)
        bad_required(c, AT(volume, "path"), NULL);
    else
        rule_local_path(c, AT(volume, "path"), path);
}

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
    if (token)
        check_token_projection(c, AT(at, "serviceAccountToken"), volume, token);
    if ((secret != NULL) + (map != NULL) + (downward != NULL) + (token != NULL) > 1)
        bad_forbidden(c, at, "may not specify more than 1 volume type per source");
}

static void check_projected(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct at *list = AT(at, "sources");
    struct seen paths = {0};
    size_t i = 0;
    check_mode(c, at, source, "defaultMode");
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

static void check_host_path(struct check *c, const struct at *at, const struct json_node *source)
{
    struct slice path = rule_text(c, source, "path"), type = rule_text(c, source, "type");
    need(c, at, source, "path");
    if (!path.len)
        return;
    rule_path_stays(c, AT(at, "path"), path);
    if (type.len)
        rule_choice(c, AT(at, "type"), type,
                    ",BlockDevice,CharDevice,Directory,DirectoryOrCreate,File,FileOrCreate,"
                    "Socket");
}

static void check_git(struct check *c, const struct at *at, const struct json_node *source)
{
    need(c, at, source, "repository");
    check_descending(c, AT(at, "directory"), rule_text(c, source, "directory"));
}

static void check_secret_volume(struct check *c, const struct at *at,
                                const struct json_node *source)
{
    need(c, at, source, "secretName");
    check_mode(c, at, source, "defaultMode");
    check_key_paths(c, at, source);
}

static void check_map_volume(struct check *c, const struct at *at, const struct json_node *source)
{
    need(c, at, source, "name");
    check_mode(c, at, source, "defaultMode");
    check_key_paths(c, at, source);
}

static void check_downward(struct check *c, const struct at *at, const struct json_node *source)
{
    check_mode(c, at, source, "defaultMode");
    for (const struct json_node *file = rule_first(rule_member(source, "items")); file;
         file = file->next)
        check_downward_file(c, at, file);
}

static void check_nfs(struct check *c, const struct at *at, const struct json_node *source)
{
    need(c, at, source, "server");
    need(c, at, source, "path");
    if (!is_absolute(rule_text(c, source, "path")))
        bad_text(c, AT(at, "path"), rule_text(c, source, "path"), "must be an absolute path");
}

static void check_local(struct check *c, const struct at *at, const struct json_node *source)
{
    need(c, at, source, "path");
    rule_path_stays(c, AT(at, "path"), rule_text(c, source, "path"));
}

static void check_csi_driver(struct check *c, const struct at *at, struct slice driver)
{
    char lower[254], why[NAME_ERROR_BYTES];
    size_t len = size_min(driver.len, sizeof(lower));
    if (!driver.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (driver.len > 63)
        bad_long(c, at, 63);
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)(driver.ptr[i] >= 'A' && driver.ptr[i] <= 'Z' ? driver.ptr[i] | 0x20
                                                                       : driver.ptr[i]);
    if (!subdomain_valid(slice_of(lower, len), why))
        bad_text(c, at, driver, why);
}

static void check_secret_ref(struct check *c, const struct at *at, const struct json_node *ref)
{
    struct slice name = rule_text(c, ref, "name"), namespace = rule_text(c, ref, "namespace");
    need(c, at, ref, "name");
    if (name.len)
        rule_name(c, AT(at, "name"), name, subdomain_valid);
    need(c, at, ref, "namespace");
    if (namespace.len)
        rule_name(c, AT(at, "namespace"), namespace, dns_label_valid);
}

static void check_csi_cluster(struct check *c, const struct at *at, const struct json_node *source)
{
    static const char *const refs[] = {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                       "nodePublishSecretRef", "nodeExpandSecretRef"};
    check_csi_driver(c, AT(at, "driver"), rule_text(c, source, "driver"));
    need(c, at, source, "volumeHandle");
    for (size_t i = 0; i < COUNT_OF(refs); i++) {
        if (rule_member(source, refs[i]))
            check_secret_ref(c, AT(at, refs[i]), rule_member(source, refs[i]));
    }
}

static void check_csi(struct check *c, const struct at *at, const struct json_node *source)
{
    const struct json_node *ref = rule_member(source, "nodePublishSecretRef");
    check_csi_driver(c, AT(at, "driver"), rule_text(c, source, "driver"));
    if (!ref)
        return;
    need(c, AT(at, "nodePublishSecretRef"), ref, "name");
    if (rule_text(c, ref, "name").len)
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

/* The order of Kubernetes. Of sources that are rarely used only the required members are checked.
 */
static const struct volume_type {
    const char *name, *shown;
    const char *needed[3];
    void (*rule)(struct check *c, const struct at *at, const struct json_node *source);
    bool of_pod, of_cluster;
} types[] = {
    {"emptyDir", NULL, {NULL}, check_empty_dir, true, false},
    {"hostPath", NULL, {NULL}, check_host_path, true, true},
    {"gitRepo", NULL, {NULL}, check_git, true, false},
    {"gcePersistentDisk", "persistentDisk", {"pdName"}, NULL, true, true},
    {"awsElasticBlockStore", NULL, {"volumeID"}, NULL, true, true},
    {"secret", NULL, {NULL}, check_secret_volume, true, false},
    {"nfs", NULL, {NULL}, check_nfs, true, true},
    {"iscsi", NULL, {"targetPortal", "iqn"}, NULL, true, true},
    {"glusterfs", NULL, {"endpoints", "path"}, NULL, true, true},
    {"flocker", NULL, {NULL}, NULL, true, true},
    {"persistentVolumeClaim", NULL, {"claimName"}, NULL, true, false},
    {"rbd", NULL, {"monitors", "image"}, NULL, true, true},
    {"cinder", NULL, {"volumeID"}, NULL, true, true},
    {"cephfs", NULL, {"monitors"}, NULL, true, true},
    {"quobyte", NULL, {"volume"}, NULL, true, true},
    {"downwardAPI", NULL, {NULL}, check_downward, true, false},
    {"fc", NULL, {NULL}, NULL, true, true},
    {"flexVolume", NULL, {"driver"}, NULL, true, true},
    {"configMap", NULL, {NULL}, check_map_volume, true, false},
    {"azureFile", NULL, {"secretName", "shareName"}, NULL, true, true},
    {"vsphereVolume", NULL, {"volumePath"}, NULL, true, true},
    {"photonPersistentDisk", NULL, {"pdID"}, NULL, true, true},
    {"portworxVolume", NULL, {"volumeID"}, NULL, true, true},
    {"azureDisk", NULL, {"diskName", "diskURI"}, NULL, true, true},
    {"storageos", NULL, {NULL}, NULL, true, true},
    {"projected", NULL, {NULL}, check_projected, true, false},
    {"scaleIO", NULL, {"gateway", "system", "volumeName"}, NULL, true, true},
    {"local", NULL, {NULL}, check_local, false, true},
    {"csi", NULL, {NULL}, check_csi, true, true},
    {"ephemeral", NULL, {NULL}, check_ephemeral, true, false},
    {"image", NULL, {NULL}, NULL, true, false},
};

static void check_typed(struct check *c, const struct at *at, const struct volume_type *type,
                        const struct json_node *source, enum volume_owner owner)
{
    const struct at *in = AT(at, type->shown ? type->shown : type->name);
    for (size_t i = 0; i < COUNT_OF(type->needed) && type->needed[i]; i++)
        need(c, in, source, type->needed[i]);
    if (type->rule == check_csi && owner == VOLUME_OF_CLUSTER)
        check_csi_cluster(c, in, source);
    else if (type->rule)
        type->rule(c, in, source);
}

void rule_volume_source(struct check *c, const struct at *at, const struct json_node *source,
                        enum volume_owner owner)
{
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const struct volume_type *type = &types[i];
        const struct json_node *node = NULL;
        if (owner == VOLUME_OF_POD ? type->of_pod : type->of_cluster)
            node = rule_member(source, type->name);
        if (node && found)
            bad_forbidden(c, AT(at, type->name), "may not specify more than 1 volume type");
        else if (node)
            check_typed(c, at, type, node, owner);
        found = found || node;
    }
    if (!found)
        bad_required(c, at, "must specify a volume type");
}
